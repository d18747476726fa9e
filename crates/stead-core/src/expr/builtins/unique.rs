//! `uniqueString`: a short name that depends on its arguments and on nothing else.
//!
//! The arguments are joined with `-` and hashed with `MurmurHash64A` from the seed 0; the eight bytes, lowest first, are
//! written in the lower-case alphabet of RFC 4648 base 32 without padding. DSC v3 computes the same.

use super::super::builtin::{Arguments, BuiltinResult};

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

pub(super) fn unique_string(mut arguments: Arguments) -> BuiltinResult {
    let mut joined = arguments.text()?;
    while arguments.left() > 0 {
        joined.push('-');
        joined.push_str(&arguments.text()?);
    }
    Ok(base32(murmur_hash_64a(joined.as_bytes())).into())
}

fn murmur_hash_64a(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (blocks, tail) = bytes.as_chunks::<8>();
    for block in blocks {
        let mut word = u64::from_le_bytes(*block).wrapping_mul(MULTIPLIER);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        let word = tail.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte));
        hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> SHIFT)
}

/// Thirteen characters: twelve of five bits, and one of the last four.
fn base32(hash: u64) -> String {
    let bits = hash.swap_bytes();
    let digit =
        |index: u64| ALPHABET.get(usize::try_from(index & 31).unwrap_or(0)).map_or('a', |digit| char::from(*digit));
    let full = (0..12).map(|at| digit(bits >> (64 - 5 * (at + 1))));
    full.chain(std::iter::once(digit((bits & 15) << 1))).collect()
}
