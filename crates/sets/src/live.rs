//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A table of fingerprints that is read while somebody writes it.
//!
//! A fingerprint is in one of two lines of memory, in any of eight slots; a reader looks at both
//! and never waits. Half of the slots are used at most, so that there is practically always room in
//! one of the two.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::changes::Changes;
use crate::fingerprint::{Fingerprint, scale};

/// Fingerprints of one line of memory.
const BUCKET: usize = 8;
/// Lengths that are told apart.
const LENGTHS: usize = 192;

#[repr(align(64))]
#[derive(Default)]
struct Bucket([AtomicU64; BUCKET]);

/// A table of fingerprints. One thread writes at a time; any number reads.
pub(crate) struct LiveTable {
    buckets: Box<[Bucket]>,
    len: AtomicUsize,
    /// Bit `n`: something is kept that is `n` labels or bits long.
    lengths: [AtomicU64; 3],
    /// How many there are of each length; only whoever writes looks.
    counts: [AtomicU32; LENGTHS],
    changes: Changes,
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
            counts: std::array::from_fn(|_| AtomicU32::new(0)),
            changes: Changes::default(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    /// Returns the lengths from `first` to `last` that something is kept of.
    #[inline]
    pub(crate) fn lengths(&self, first: u32, last: u32) -> impl Iterator<Item = u32> {
        self.lengths.iter().zip([0, 64, 128]).flat_map(move |(word, base)| {
            let from = u64::MAX.checked_shl(first.saturating_sub(base)).unwrap_or(0);
            let beyond = u64::MAX.checked_shl((last + 1).saturating_sub(base)).unwrap_or(0);
            let mut bits = word.load(Ordering::Relaxed) & from & !beyond;
            std::iter::from_fn(move || {
                let next = (bits != 0).then(|| base + bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(next)
            })
        })
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

    /// Returns a free slot of the emptier line, so that both fill evenly.
    fn free_slot(&self, fingerprint: Fingerprint) -> Option<&AtomicU64> {
        let free = |bucket: &Bucket| bucket.0.iter().filter(|slot| slot.load(Ordering::Relaxed) == 0).count();
        let emptier = self.places(fingerprint).into_iter().flatten().max_by_key(|bucket| free(bucket));
        emptier.and_then(|bucket| bucket.0.iter().find(|slot| slot.load(Ordering::Relaxed) == 0))
    }

    /// Returns whether a fingerprint that is not kept yet could be.
    pub(crate) fn has_room(&self, fingerprint: Fingerprint) -> bool {
        self.free_slot(fingerprint).is_some()
    }

    /// Keeps a fingerprint that is not kept yet; returns false if both of its lines are full.
    pub(crate) fn insert(&self, fingerprint: Fingerprint, length: u32) -> bool {
        let Some(slot) = self.free_slot(fingerprint) else { return false };
        if let Some(count) = self.counts.get(length as usize)
            && count.fetch_add(1, Ordering::Relaxed) == 0
            && let Some(word) = self.lengths.get(length as usize / 64)
        {
            word.fetch_or(1 << (length % 64), Ordering::Relaxed);
        }
        slot.store(kept(fingerprint), Ordering::Release);
        self.len.fetch_add(1, Ordering::Relaxed);
        self.changes.count();
        true
    }

    /// Forgets a fingerprint of this length.
    pub(crate) fn remove(&self, fingerprint: Fingerprint, length: u32) {
        let wanted = kept(fingerprint);
        let mut slots = self.places(fingerprint).into_iter().flatten().flat_map(|bucket| &bucket.0);
        let Some(slot) = slots.find(|slot| slot.load(Ordering::Relaxed) == wanted) else { return };
        slot.store(0, Ordering::Release);
        self.len.fetch_sub(1, Ordering::Relaxed);
        if let Some(count) = self.counts.get(length as usize)
            && count.fetch_sub(1, Ordering::Relaxed) == 1
            && let Some(word) = self.lengths.get(length as usize / 64)
        {
            word.fetch_and(!(1 << (length % 64)), Ordering::Relaxed);
        }
        self.changes.count();
    }

    /// Returns the number of its changes.
    pub(crate) const fn changes(&self) -> &Changes {
        &self.changes
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

#[cfg(test)]
mod tests {
    use super::*;

    fn print(number: u64) -> Fingerprint {
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Fingerprint { place: spread, check: number + 1 }
    }

    #[test]
    fn a_length_is_in_use_as_long_as_something_of_it_is_kept() {
        let table = LiveTable::new(100);
        let lengths = |first, last| table.lengths(first, last).collect::<Vec<_>>();
        for (number, length) in [0, 24, 24, 32, 33, 63, 64, 127, 128, 161, 191].into_iter().enumerate() {
            assert!(table.insert(print(number as u64), length));
        }
        assert_eq!(lengths(0, 32), [0, 24, 32]);
        assert_eq!(lengths(33, 161), [33, 63, 64, 127, 128, 161]);
        table.remove(print(1), 24);
        assert_eq!(lengths(0, 32), [0, 24, 32]);
        table.remove(print(2), 24);
        table.remove(print(2), 24);
        table.remove(print(8), 128);
        assert_eq!((lengths(0, 32), lengths(128, 191)), (vec![0, 32], vec![161, 191]));
        assert!(!table.may_hold(24) && table.may_hold(191));
    }

    #[test]
    fn what_finds_no_room_leaves_no_trace() {
        let table = LiveTable::new(1);
        let all: Vec<u64> = (0..100).filter(|number| table.insert(print(*number), 7)).collect();
        assert!(all.len() == 16 && !table.has_room(print(200)));
        assert!(!table.insert(print(200), 9) && !table.may_hold(9));
        all.iter().for_each(|number| table.remove(print(*number), 7));
        assert!(table.is_empty() && !table.may_hold(7) && table.has_room(print(200)));
    }
}
