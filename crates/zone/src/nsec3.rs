//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The NSEC3 records of a zone, in the order of their hashes (RFC 5155 §7).

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use dnssec::{Nsec3Hash, Nsec3Parameters};
use wire::Name;

use crate::block::Block;
use crate::zone::{Zone, bucket, wildcard_of};

/// Iterations with which names are hashed while clients wait. RFC 9276 §3.1 asks for none, and
/// validators treat an answer with more than this as insecure (150 is the largest limit in use,
/// that of RFC 5155 §10.3 for short keys).
pub const ITERATIONS_MAX: u16 = 150;

/// NSEC3 records in the order of their hashes.
pub(crate) struct Nsec3Chain {
    parameters: Nsec3Parameters,
    /// Each hash, and where its block is among [`Zone::hashed`].
    hashes: Box<[(Nsec3Hash, u32)]>,
    /// The number of the record that matches the apex, if there is one.
    apex: Option<u32>,
    /// For each record, the number plus one of the record that covers the wildcard below the name
    /// that it matches; 0 until a query needed it. Threads that write at the same time write the
    /// same number.
    wildcards: Box<[AtomicU32]>,
}

// Once per version of a zone.
impl Nsec3Chain {
    /// Returns the chain of these records; nothing if there are none.
    pub(crate) fn new(
        parameters: Nsec3Parameters,
        mut hashes: Vec<(Nsec3Hash, u32)>,
        apex: Name<'_>,
    ) -> Option<Self> {
        if hashes.is_empty() {
            return None;
        }
        hashes.sort_unstable();
        let wildcards = hashes.iter().map(|_| AtomicU32::new(0)).collect();
        let mut chain = Self { parameters, hashes: hashes.into_boxed_slice(), apex: None, wildcards };
        chain.apex = chain.matching(apex);
        Some(chain)
    }

    /// Returns the number of the record that matches a name, if one does.
    pub(crate) fn matching(&self, name: Name<'_>) -> Option<u32> {
        let hash = self.parameters.hash(name);
        let found = self.hashes.binary_search_by(|(other, _)| other.cmp(&hash));
        found.ok().and_then(|number| u32::try_from(number).ok())
    }

    /// Returns how many octets of memory it takes.
    pub(crate) const fn octets(&self) -> usize {
        size_of_val(&*self.hashes) + size_of_val(&*self.wildcards)
    }
}

impl Nsec3Chain {
    /// Returns whether names have more than [`ITERATIONS_MAX`] iterations. Then none is hashed but
    /// the apex.
    pub(crate) const fn is_costly(&self) -> bool {
        self.parameters.iterations > ITERATIONS_MAX
    }

    /// Returns the record of this number in the order of hashes.
    pub(crate) fn numbered<'z>(&self, zone: &'z Zone, number: usize) -> Option<Block<'z>> {
        Block::read(&zone.hashed, self.hashes.get(number)?.1)
    }

    /// Returns the record that covers a name that no record matches.
    ///
    /// Of a chain that [is costly](Self::is_costly) it returns the record that matches the apex: a
    /// validator that sees its iterations treats the answer as insecure (RFC 9276 §3.2), whatever
    /// else is proved.
    pub(crate) fn covering<'z>(&self, zone: &'z Zone, name: Name<'_>) -> Option<Block<'z>> {
        self.numbered(zone, self.number_covering(name)?)
    }

    /// Returns the record that covers the wildcard below a name that the record of this number
    /// matches. The wildcard is hashed once in the life of this version of the zone.
    pub(crate) fn covering_wildcard<'z>(
        &self,
        zone: &'z Zone,
        number: usize,
        name: Name<'_>,
    ) -> Option<Block<'z>> {
        let place = self.wildcards.get(number)?;
        let covering = match place.load(Relaxed) {
            0 => {
                let covering = self.number_covering(wildcard_of(name)?.as_name())?;
                place.store(u32::try_from(covering).ok()? + 1, Relaxed);
                covering
            }
            known => known as usize - 1,
        };
        self.numbered(zone, covering)
    }

    fn number_covering(&self, name: Name<'_>) -> Option<usize> {
        if self.is_costly() {
            return self.apex.map(|number| number as usize);
        }
        self.number_before(&self.parameters.hash(name))
    }

    /// Returns the number of the last record before a hash that no record has; the ends of the
    /// chain meet.
    ///
    /// Hashes are spread evenly: the search begins where this one should be and doubles its step
    /// away from there. In a large chain that reads a few lines of memory, where halving the whole
    /// reads one for each bit of its length.
    fn number_before(&self, hash: &Nsec3Hash) -> Option<usize> {
        let is_before = |at: usize| self.hashes.get(at).is_some_and(|(other, _)| other < hash);
        let len = self.hashes.len();
        let guess = hash.first_chunk().map_or(0, |first| bucket(u64::from_be_bytes(*first), len));
        // All records before `low` are before the hash, none from `high` on is.
        let (mut low, mut high) = (0, len);
        let mut step = 1;
        // Both loops end: the step doubles until it leaves the chain.
        if is_before(guess) {
            low = guess + 1;
            while low + step < high {
                if !is_before(low + step) {
                    high = low + step;
                    break;
                }
                low += step + 1;
                step *= 2;
            }
        } else {
            high = guess;
            while step <= high {
                if is_before(high - step) {
                    low = high - step + 1;
                    break;
                }
                high -= step;
                step *= 2;
            }
        }
        let near = self.hashes.get(low..high)?;
        let after = low + near.partition_point(|(other, _)| other < hash);
        after.checked_sub(1).or_else(|| len.checked_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::NameBuf;

    fn chain(mut hashes: Vec<Nsec3Hash>) -> Nsec3Chain {
        hashes.sort_unstable();
        hashes.dedup();
        let hashes = hashes.into_iter().map(|hash| (hash, 0)).collect();
        Nsec3Chain::new(Nsec3Parameters::default(), hashes, NameBuf::root().as_name()).expect("records")
    }

    fn check(chain: &Nsec3Chain, hash: &Nsec3Hash) {
        let len = chain.hashes.len();
        let after = chain.hashes.partition_point(|(other, _)| other < hash);
        assert_eq!(chain.number_before(hash), Some((after + len - 1) % len), "{hash:02x?} among {len}");
    }

    proptest! {
        #[test]
        fn the_record_before_a_hash_is_found_among_spread_and_crowded_ones(
            hashes in prop::collection::vec(prop::array::uniform20(any::<u8>()), 1..200),
            crowded in any::<bool>(),
            asked in prop::array::uniform20(any::<u8>()),
        ) {
            let crowd = |mut hash: Nsec3Hash| {
                if crowded {
                    hash[..7].fill(0x5a);
                }
                hash
            };
            let chain = chain(hashes.iter().copied().map(crowd).collect());
            check(&chain, &asked);
            check(&chain, &crowd(asked));
            check(&chain, &[0; 20]);
            check(&chain, &[0xff; 20]);
        }
    }
}
