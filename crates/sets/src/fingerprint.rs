//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Fingerprints of names: 128 bits under a secret key, made label by label from the root down.
//!
//! A rule is kept as a fingerprint and not as a name. Two names that are taken for each other agree
//! in the 62 bits that are compared and in the bits that chose the place: fewer than one pair in
//! 2^80, and nobody can look for one without the key.

use wire::{HashKey, Name};

use crate::sought::word_at;

/// What fingerprints are made with: derived from the key that the process hashes names with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FingerprintKey {
    place: u64,
    check: u64,
    place_multiplier: u64,
    check_multiplier: u64,
}

/// The fingerprint of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// Says where the rule is.
    pub(crate) place: u64,
    /// Is kept with the rule, but for the two lowest bits.
    pub(crate) check: u64,
}

impl Fingerprint {
    /// Returns another fingerprint for the same name, for what is not to be taken for it.
    #[inline]
    pub(crate) const fn turned(self) -> Self {
        Self { place: self.place.rotate_left(17) ^ 0x5851_f42d_4c95_7f2d, check: self.check.rotate_left(29) }
    }
}

impl FingerprintKey {
    pub(crate) fn new(key: &HashKey) -> Self {
        let secret = |number| key.mix(key.hash_name(Name::ROOT) ^ number, 0x6a09_e667_f3bc_c908 ^ number);
        Self {
            place: secret(0x9e37_79b9_7f4a_7c15),
            check: secret(0xbf58_476d_1ce4_e5b9),
            place_multiplier: secret(0x94d0_49bb_1331_11eb) | 1,
            check_multiplier: secret(0xd6e8_feb8_6659_fd93) | 1,
        }
    }

    /// Returns the fingerprint of the root.
    pub(crate) const fn root(&self) -> Fingerprint {
        Fingerprint { place: self.place, check: self.check }
    }

    /// Returns the fingerprint of the name that has `label`, in lower case, put before the name of
    /// `parent`.
    #[inline]
    pub(crate) fn below(&self, parent: Fingerprint, label: &[u8]) -> Fingerprint {
        let mut state = begin(parent, label.len());
        let (words, rest) = label.as_chunks::<8>();
        for word in words {
            state = self.absorb(state, u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            state = self.absorb(state, last_word(label, rest));
        }
        state
    }

    /// Like [`FingerprintKey::below`], of a label of `len` octets that begins at `start` of a name
    /// in wire form.
    ///
    /// Most labels are short and have others behind them: then one or two words are read without a
    /// loop.
    #[inline]
    pub(crate) fn below_at(&self, parent: Fingerprint, wire: &[u8], start: usize, len: usize) -> Fingerprint {
        let word = word_at(wire, start);
        let rest = wire.get(start..).unwrap_or(&[]);
        let state = begin(parent, len);
        match len {
            1..=8 => self.absorb(state, word & u64::MAX >> (64 - 8 * len as u32)),
            9..=16 => {
                let last = rest
                    .get(len - 8..)
                    .and_then(<[u8]>::first_chunk)
                    .map_or(0, |last| u64::from_le_bytes(*last));
                self.absorb(self.absorb(state, word), last)
            }
            _ => self.below(parent, rest.get(..len).unwrap_or(&[])),
        }
    }

    #[inline]
    const fn absorb(&self, state: Fingerprint, word: u64) -> Fingerprint {
        Fingerprint {
            place: fold_multiply(state.place ^ word, self.place_multiplier),
            check: fold_multiply(state.check ^ word.rotate_left(32), self.check_multiplier),
        }
    }
}

/// Returns what the octets of a label of `len` octets are absorbed into.
#[inline]
const fn begin(parent: Fingerprint, len: usize) -> Fingerprint {
    let length = (len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Fingerprint { place: parent.place ^ length, check: parent.check.wrapping_add(length) }
}

/// Returns the last eight octets; of shorter labels all, with zeros behind them.
#[inline]
fn last_word(label: &[u8], rest: &[u8]) -> u64 {
    match label.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().rev().fold(0, |word, &octet| word << 8 | u64::from(octet)),
    }
}

/// Folds the 128-bit product to 64 bits.
#[inline]
const fn fold_multiply(a: u64, b: u64) -> u64 {
    let product = (a as u128).wrapping_mul(b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Scales a number to `0..range`, by its high bits.
#[inline]
pub(crate) const fn scale(number: u64, range: usize) -> usize {
    ((number as u128 * range as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn labels_that_differ_in_an_octet_or_in_length_differ_in_both_halves() {
        let key = FingerprintKey::new(&HashKey::new([1, 2]));
        let (mut places, mut checks, mut count) = (HashSet::new(), HashSet::new(), 0);
        for length in 1..=63_usize {
            let mut label = vec![b'a'; length];
            for at in 0..=length {
                if let Some(octet) = label.get_mut(at) {
                    *octet = b'b';
                }
                let found = key.below(key.root(), &label);
                if let Some(octet) = label.get_mut(at) {
                    *octet = b'a';
                }
                count += 1;
                places.insert(found.place);
                checks.insert(found.check >> 2);
            }
        }
        assert_eq!((places.len(), checks.len()), (count, count));
    }

    #[test]
    fn a_label_in_a_name_has_the_fingerprint_of_the_label() {
        let key = FingerprintKey::new(&HashKey::new([1, 2]));
        for length in 1..=63_u8 {
            for behind in [&b"\0"[..], b"\x02de\0", b"\x07example\x03org\0"] {
                let label: Vec<u8> = (0..length).map(|octet| octet.wrapping_mul(37) | 1).collect();
                let wire = [&[length], label.as_slice(), behind].concat();
                let parent = key.below(key.root(), b"x");
                let found = key.below_at(parent, &wire, 1, label.len());
                assert_eq!(found, key.below(parent, &label), "{length} {behind:?}");
            }
        }
    }

    #[test]
    fn the_border_between_labels_counts() {
        let key = FingerprintKey::new(&HashKey::new([1, 2]));
        let name =
            |labels: &[&[u8]]| labels.iter().fold(key.root(), |parent, label| key.below(parent, label));
        assert_ne!(name(&[b"org", b"example"]), name(&[b"orgexample"]));
        assert_ne!(name(&[b"org", b"example"]), name(&[b"orge", b"xample"]));
        assert_ne!(FingerprintKey::new(&HashKey::new([1, 3])).below(key.root(), b"a"), name(&[b"a"]));
    }
}
