//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Hashes of names (RFC 5155 §5). SHA-1 protects nothing here: it spreads names. The crypto library
//! computes it, with whatever instructions the processor has for it.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use wire::Name;

use super::{Nsec3Hash, Nsec3Parameters};

/// Octets of a hash.
const HASH_OCTETS: usize = 20;
/// Octets of the longest input: a name and a salt, at most 255 octets each.
const INPUT_MAX: usize = 2 * 255;

impl Nsec3Parameters {
    /// Hashes a name, letter case ignored. Each of the `iterations + 1` rounds costs one or more
    /// blocks of SHA-1: whoever hashes for strangers bounds `iterations` first.
    pub fn hash(&self, name: Name<'_>) -> Nsec3Hash {
        let folded = name.to_folded();
        let mut input = [0; INPUT_MAX];
        let mut hash = sha1(self.salted(folded.as_bytes(), &mut input));
        if self.iterations > 0 {
            let len = self.salted(&hash, &mut input).len();
            // The salt stays where it is; each round replaces the hash before it.
            for _ in 0..self.iterations {
                if let Some(place) = input.first_chunk_mut::<HASH_OCTETS>() {
                    *place = hash;
                }
                hash = sha1(input.get(..len).unwrap_or(&[]));
            }
        }
        hash
    }

    /// Writes octets and the salt behind them; returns what was written.
    fn salted<'i>(&self, octets: &[u8], input: &'i mut [u8; INPUT_MAX]) -> &'i [u8] {
        let len = (octets.len() + self.salt.len()).min(INPUT_MAX);
        for (place, octet) in input.iter_mut().zip(octets.iter().chain(&self.salt)) {
            *place = *octet;
        }
        input.get(..len).unwrap_or(&[])
    }
}

fn sha1(input: &[u8]) -> Nsec3Hash {
    digest(&SHA1_FOR_LEGACY_USE_ONLY, input).as_ref().first_chunk().copied().unwrap_or_default()
}
