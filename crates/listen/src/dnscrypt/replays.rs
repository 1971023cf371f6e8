//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Which queries were answered: one that comes again was recorded on the way by somebody who wants
//! to see the answer leave again.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use dnscrypt::QueryHead;

/// Numbers in one bucket: a cache line.
const BUCKET: usize = 8;

/// A number for each of the latest queries, of all workers. Whoever is new takes the place of
/// another; so many queries later a query could be answered again, but by then its client has
/// long gone.
#[derive(Debug)]
pub(super) struct Replays {
    buckets: Box<[[AtomicU64; BUCKET]]>,
    key: RandomState,
}

impl Replays {
    /// Returns a table of at most so many octets, and of at least one bucket.
    // Once per configuration.
    pub(super) fn new(octets: usize) -> Self {
        let buckets = (octets / size_of::<[AtomicU64; BUCKET]>()).max(1);
        let buckets = std::iter::repeat_with(Default::default).take(buckets).collect();
        Self { buckets, key: RandomState::new() }
    }

    /// Notes a query that was decrypted; returns whether it was there before.
    ///
    /// Two workers that hear the same query in the same moment may both find it new.
    pub(super) fn is_known(&self, head: &QueryHead) -> bool {
        // Nobody else knows the key, so nobody can choose queries that push out others.
        let number = self.key.hash_one((head.key, head.nonce, head.magic)) | 1;
        let at = (number >> 8) as usize % self.buckets.len().max(1);
        let Some(bucket) = self.buckets.get(at) else { return false };
        if bucket.iter().any(|slot| slot.load(Ordering::Relaxed) == number) {
            return true;
        }
        if let Some(slot) = bucket.get((number >> 1) as usize % BUCKET) {
            slot.store(number, Ordering::Relaxed);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(nonce: u32) -> QueryHead {
        let mut head = QueryHead { magic: [1; 8], key: [2; 32], nonce: [0; 12] };
        head.nonce[..4].copy_from_slice(&nonce.to_be_bytes());
        head
    }

    #[test]
    fn a_query_is_new_once() {
        let replays = Replays::new(1 << 16);
        assert!(!replays.is_known(&head(1)));
        assert!(replays.is_known(&head(1)));
        assert!(!replays.is_known(&head(2)));
        assert!(!replays.is_known(&QueryHead { key: [3; 32], ..head(1) }), "another client's");
    }

    #[test]
    fn any_number_of_queries_takes_the_same_memory() {
        let replays = Replays::new(0);
        let known = (0..10_000).filter(|&nonce| replays.is_known(&head(nonce))).count();
        assert_eq!((known, replays.buckets.len()), (0, 1));
        assert!(replays.is_known(&head(9999)), "the latest is known");
    }
}
