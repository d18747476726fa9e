//! The graphs of `corpus/graph`, made from numbers as its README says.

/// The function `next` of a graph.
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
fn scaled(number: u64, limit: usize) -> usize {
    ((number & 0xFFFF_FFFF) * limit as u64 >> 32) as usize
}

/// What each node needs, in the order written.
pub(crate) fn generate(seed: u64, index: u64) -> Vec<Vec<usize>> {
    let mut numbers = Numbers::of(seed, index);
    let left = numbers.below(300);
    let count = 1 + left * numbers.below(300) / 299;
    let shape = numbers.below(10);
    let density = numbers.below(4);
    let edges = numbers.below((count << density) + 1);
    let keys: Vec<u64> = (0..count).map(|_| numbers.next()).collect();
    let rank = |node: usize| (keys[node], node);
    let mut needs = vec![Vec::new(); count];
    if shape >= 8 {
        let mut ranked: Vec<usize> = (0..count).collect();
        ranked.sort_by_key(|node| rank(*node));
        ranked.windows(2).for_each(|pair| needs[pair[1]].push(pair[0]));
        if shape == 9 {
            needs[ranked[0]].push(ranked[count - 1]);
        }
    }
    for _ in 0..edges {
        let number = numbers.next();
        let (mut a, mut b) = (scaled(number >> 32, count), scaled(number, count));
        if shape != 5 && shape != 7 {
            if a == b {
                continue;
            }
            if rank(a) < rank(b) {
                (a, b) = (b, a);
            }
        }
        let times = if number & 15 == 0 { 2 } else { 1 };
        needs[a].extend(std::iter::repeat_n(b, times));
    }
    if shape == 4 {
        let a = numbers.below(count);
        needs[a].push(numbers.below(count));
    }
    if shape == 6 || shape == 7 {
        let a = numbers.below(count);
        needs[a].push(count + numbers.below(3));
    }
    needs
}
