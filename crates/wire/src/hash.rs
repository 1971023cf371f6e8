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
    /// Returns a key from sixteen random octets. They are stirred first: even a poor secret spreads
    /// names well.
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
        let mut state = self.begin(bytes.len());
        let (words, _) = bytes.as_chunks::<8>();
        for word in words {
            state = self.absorb(state, lower(u64::from_le_bytes(*word)));
        }
        self.absorb(state, lower(last_word(bytes)))
    }

    /// Copies `name` in lower case over `folded` and returns what [`HashKey::hash_name`] does, in
    /// one pass.
    #[inline(always)]
    pub fn fold(&self, name: Name<'_>, folded: &mut Folded) -> u64 {
        let bytes = name.as_bytes();
        let mut state = self.begin(bytes.len());
        let (words, _) = bytes.as_chunks::<8>();
        let out = folded.room(bytes.len());
        let (out_words, _) = out.as_chunks_mut::<8>();
        for (word, out) in words.iter().zip(out_words) {
            let word = lower(u64::from_le_bytes(*word));
            *out = word.to_le_bytes();
            state = self.absorb(state, word);
        }
        let last = lower(last_word(bytes));
        match out.last_chunk_mut::<8>() {
            // Some of these octets were written before; that is cheaper than one octet after the
            // other.
            Some(out) => *out = last.to_le_bytes(),
            None => {
                for (octet, out) in bytes.iter().zip(out) {
                    *out = octet.to_ascii_lowercase();
                }
            }
        }
        self.absorb(state, last)
    }

    const fn begin(&self, len: usize) -> u64 {
        self.seed ^ (len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    const fn absorb(&self, state: u64, word: u64) -> u64 {
        fold_multiply(state ^ word, self.multiplier)
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

/// Returns the last eight octets; of shorter names all, so that each octet has its place given the
/// length.
fn last_word(bytes: &[u8]) -> u64 {
    if let Some(last) = bytes.last_chunk::<8>() {
        return u64::from_le_bytes(*last);
    }
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | (u64::from(u32::from_le_bytes(*last)) << 32)
        }
        _ => bytes.iter().fold(0, |word, &octet| (word << 8) | u64::from(octet)),
    }
}

/// Folds the 128-bit product to 64 bits.
const fn fold_multiply(a: u64, b: u64) -> u64 {
    let product = (a as u128).wrapping_mul(b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Compares octets without regard to the case of ASCII letters, eight at a time. What the standard
/// library has for this goes octet by octet up to the fifteenth, and most names are no longer.
#[inline]
pub fn eq_ignore_case(a: &[u8], b: &[u8]) -> bool {
    // Mostly the case is the same, too.
    a.len() == b.len() && (are_equal(a, b, |word| word) || are_equal_but_for_case(a, b))
}

#[cold]
#[inline(never)]
fn are_equal_but_for_case(a: &[u8], b: &[u8]) -> bool {
    are_equal(a, b, lower)
}

/// Compares as many octets after `f` was done to them, eight at a time.
#[inline(always)]
fn are_equal(a: &[u8], b: &[u8], f: impl Fn(u64) -> u64) -> bool {
    let (words, _) = a.as_chunks::<8>();
    let (other_words, _) = b.as_chunks::<8>();
    let is_same =
        |(word, other): (&[u8; 8], &[u8; 8])| f(u64::from_le_bytes(*word)) == f(u64::from_le_bytes(*other));
    words.iter().zip(other_words).all(is_same) && f(end_of(a)) == f(end_of(b))
}

/// Returns the last eight octets; of shorter names all, so that two of one length are the same if
/// these are.
#[inline]
fn end_of(octets: &[u8]) -> u64 {
    if let Some(last) = octets.last_chunk() {
        return u64::from_le_bytes(*last);
    }
    if let (Some(first), Some(last)) = (octets.first_chunk(), octets.last_chunk()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
    }
    if let (Some(first), Some(last)) = (octets.first_chunk(), octets.last_chunk()) {
        return u64::from(u16::from_le_bytes(*first)) | u64::from(u16::from_le_bytes(*last)) << 16;
    }
    octets.first().map_or(0, |&octet| u64::from(octet))
}

/// Turns the ASCII upper-case letters among eight octets into lower case.
pub(crate) const fn lower(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let heptets = word & (0x7f * ONES);
    let above_z = heptets.wrapping_add((0x7f - b'Z' as u64) * ONES);
    let from_a = heptets.wrapping_add((0x80 - b'A' as u64) * ONES);
    let is_ascii = !word & (0x80 * ONES);
    let upper = is_ascii & (from_a ^ above_z);
    word | (upper >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::NameBuf;

    #[test]
    fn eight_octets_are_lowered_like_one() {
        for octet in 0..=u8::MAX {
            let mut word = [b'A', b'z', b'@', b'[', b'`', b'{', 0xc1, octet];
            let lowered = lower(u64::from_le_bytes(word)).to_le_bytes();
            word.make_ascii_lowercase();
            assert_eq!(lowered, word);
        }
    }

    #[test]
    fn octets_are_equal_if_they_differ_in_the_case_of_letters_alone() {
        let octets: Vec<u8> =
            (0..40_u8).map(|at| [b'a', b'Z', b'@', 1, b'k', 0xc1, b'['][usize::from(at % 7)]).collect();
        for len in 0..octets.len() {
            let own = &octets[..len];
            assert!(eq_ignore_case(own, own), "{len}");
            assert!(!eq_ignore_case(own, &octets[..=len]), "{len}");
            for at in 0..len {
                for bit in 0..8 {
                    let mut other = own.to_vec();
                    other[at] ^= 1 << bit;
                    let expect = own.eq_ignore_ascii_case(&other);
                    assert_eq!(eq_ignore_case(own, &other), expect, "{own:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn the_hash_ignores_case_and_nothing_else() {
        let key = HashKey::new([3, 5]);
        let mut folded = Folded::root();
        for text in
            ["", "a", "AB", "a.B", "abc.d", "abc.de.", "Ab-Cd.Ef", "www.Example.org", "a.b.c.d.E.f.g.h.i.j.k"]
        {
            let name =
                if text.is_empty() { NameBuf::root() } else { NameBuf::from_text(text).expect("a name") };
            let lower = name.as_name().to_folded();
            let hash = key.hash(lower.as_name(), 9);
            assert_eq!(key.hash(name.as_name(), 9), hash, "{text}");
            assert_eq!(key.mix(key.fold(name.as_name(), &mut folded), 9), hash, "{text}");
            assert_eq!(folded.as_bytes(), lower.as_bytes(), "{text}");
            assert_ne!(key.hash(name.as_name(), 8), hash, "{text}");
            assert_ne!(HashKey::new([4, 5]).hash(name.as_name(), 9), hash, "{text}");
            assert_ne!(HashKey::new([3, 7]).hash(name.as_name(), 9), hash, "{text}");
            // Every octet counts.
            for at in 0..lower.as_bytes().len() {
                let mut other = lower.as_bytes().to_vec();
                other[at] ^= 0x80;
                assert_ne!(key.hash(Name::trusted(&other), 9), hash, "{text} {at}");
            }
        }
    }
}
