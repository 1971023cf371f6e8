//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Keyed hashing of names without regard to letter case.

use crate::name::{Folded, Name};

/// A secret that makes hashes of attacker-chosen names unpredictable.
#[derive(Clone, Copy)]
pub struct HashKey {
    seed: u64,
    multiplier: u64,
}

impl HashKey {
    /// Returns a key from sixteen random octets. They are stirred first: even a poor secret spreads names well.
    pub const fn new([seed, multiplier]: [u64; 2]) -> Self {
        Self { seed: stir(seed), multiplier: stir(multiplier ^ 0x5851_f42d_4c95_7f2d) | 1 }
    }

    /// Hashes `name`, ASCII letter case ignored, mixed with `extra` (type, class, flags, view…).
    pub fn hash(&self, name: Name<'_>, extra: u64) -> u64 {
        self.mix(self.hash_name(name), extra)
    }

    /// Hashes `name` alone, ASCII letter case ignored.
    pub fn hash_name(&self, name: Name<'_>) -> u64 {
        let bytes = name.as_bytes();
        let mut state = self.seed ^ (bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (words, tail) = bytes.as_chunks::<8>();
        for word in words {
            state = fold_multiply(state ^ lower(u64::from_le_bytes(*word)), self.multiplier);
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(tail) {
            *to = *from;
        }
        fold_multiply(state ^ lower(u64::from_le_bytes(last)), self.multiplier)
    }

    /// Mixes the hash of a name with `extra`.
    pub const fn mix(&self, name_hash: u64, extra: u64) -> u64 {
        fold_multiply(name_hash ^ extra, self.multiplier.rotate_left(32))
    }
}

/// Spreads every bit over all others (the finaliser of SplitMix64).
const fn stir(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl HashKey {
    /// fold.
    pub fn fold(&self, name: Name<'_>, extra: u64, folded: &mut Folded) -> u64 {
        *folded = name.to_folded();
        self.hash(name, extra)
    }
}

/// Folds the 128-bit product to 64 bits.
const fn fold_multiply(a: u64, b: u64) -> u64 {
    let product = (a as u128).wrapping_mul(b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Turns the ASCII upper-case letters among eight octets into lower case.
const fn lower(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let heptets = word & (0x7f * ONES);
    let above_z = heptets.wrapping_add((0x7f - b'Z' as u64) * ONES);
    let from_a = heptets.wrapping_add((0x80 - b'A' as u64) * ONES);
    let is_ascii = !word & (0x80 * ONES);
    let upper = is_ascii & (from_a ^ above_z);
    word | (upper >> 2)
}
