//! Random numbers as `corpus/graph/README.md` defines them: the same everywhere and for ever.

/// The function `next`.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn of(seed: u64, index: u64) -> Self {
        let z = seed.wrapping_add((index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self((z ^ (z >> 31)).max(1))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        scaled(self.next() >> 32, limit)
    }
}

/// A number of 32 bits, brought below a limit.
pub(crate) fn scaled(number: u64, limit: usize) -> usize {
    let product = (number & 0xFFFF_FFFF) * limit as u64;
    usize::try_from(product >> 32).unwrap_or(limit)
}
