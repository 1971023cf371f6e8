//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A table of fingerprints that is read while somebody writes it.
//!
//! A fingerprint is in one of two lines of memory, in any of eight slots; a reader looks at both
//! and never waits. Half of the slots are used at most, so that there is practically always room in
//! one of the two.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::fingerprint::{Fingerprint, scale};

/// Fingerprints of one line of memory.
const BUCKET: usize = 8;

#[repr(align(64))]
#[derive(Default)]
struct Bucket([AtomicU64; BUCKET]);

/// A table of fingerprints. One thread writes at a time; any number reads.
pub(crate) struct LiveTable {
    buckets: Box<[Bucket]>,
    len: AtomicUsize,
    /// Bit `n`: something is kept that is `n` labels or bits long.
    lengths: [AtomicU64; 3],
}

impl LiveTable {
    /// Returns a table with room for so many.
    // Once per configuration.
    pub(crate) fn new(limit: usize) -> Self {
        let buckets = (limit * 2).div_ceil(BUCKET).max(2);
        Self {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            len: AtomicUsize::new(0),
            lengths: Default::default(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    /// Returns whether something of this length may be kept.
    #[inline]
    pub(crate) fn may_hold(&self, length: u32) -> bool {
        self.lengths
            .get(length as usize / 64)
            .is_some_and(|word| word.load(Ordering::Relaxed) >> (length % 64) & 1 != 0)
    }

    /// Returns whether a fingerprint is kept.
    #[inline]
    pub(crate) fn contains(&self, fingerprint: Fingerprint) -> bool {
        let wanted = kept(fingerprint);
        self.places(fingerprint)
            .into_iter()
            .flatten()
            .any(|bucket| bucket.0.iter().any(|slot| slot.load(Ordering::Acquire) == wanted))
    }

    /// Keeps a fingerprint that is not kept yet; returns false if both of its lines are full.
    pub(crate) fn insert(&self, fingerprint: Fingerprint, length: u32) -> bool {
        if let Some(word) = self.lengths.get(length as usize / 64) {
            word.fetch_or(1 << (length % 64), Ordering::Relaxed);
        }
        // The emptier line, so that both fill evenly.
        let free = |bucket: &Bucket| bucket.0.iter().filter(|slot| slot.load(Ordering::Relaxed) == 0).count();
        let emptier = self.places(fingerprint).into_iter().flatten().max_by_key(|bucket| free(bucket));
        let slot = emptier.and_then(|bucket| bucket.0.iter().find(|slot| slot.load(Ordering::Relaxed) == 0));
        let Some(slot) = slot else { return false };
        slot.store(kept(fingerprint), Ordering::Release);
        self.len.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Forgets a fingerprint.
    pub(crate) fn remove(&self, fingerprint: Fingerprint) {
        let wanted = kept(fingerprint);
        let mut slots = self.places(fingerprint).into_iter().flatten().flat_map(|bucket| &bucket.0);
        if let Some(slot) = slots.find(|slot| slot.load(Ordering::Relaxed) == wanted) {
            slot.store(0, Ordering::Release);
            if self.len.fetch_sub(1, Ordering::Relaxed) == 1 {
                // Nothing is left of any length.
                for word in &self.lengths {
                    word.store(0, Ordering::Relaxed);
                }
            }
        }
    }

    pub(crate) fn octets(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    #[inline]
    fn places(&self, fingerprint: Fingerprint) -> [Option<&Bucket>; 2] {
        let count = self.buckets.len();
        let first = scale(fingerprint.place, count);
        let second = scale(fingerprint.place << 32, count);
        // One line twice would be looked at twice.
        let second = if second == first { (second + 1) % count } else { second };
        [self.buckets.get(first), self.buckets.get(second)]
    }
}

/// Returns what is kept of a fingerprint; never zero, which is a free slot.
#[inline]
const fn kept(fingerprint: Fingerprint) -> u64 {
    if fingerprint.check == 0 { 1 } else { fingerprint.check }
}
