//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Finding an entry, and its use count and claim.

use super::ring::Ring;
use super::slots::{Slot, ask_for, matching};
use super::{AtomicU64, Head, Ordering, Shard, Store};

/// Looks at a bucket per look-up: an entry that moves while it is read is found at its new place.
const LOOKS_MAX: usize = 4;
/// Words of a cache line.
pub(crate) const LINE_WORDS: usize = 8;
/// Attempts to change a slot that readers are changing too; each one fails for at most three uses
/// and two claims.
const EXCHANGES_MAX: usize = 8;

/// A word of an entry, in the arena or in a copy.
pub(crate) trait Word {
    fn read(&self) -> u64;
}

impl Word for AtomicU64 {
    fn read(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
}

impl Word for u64 {
    fn read(&self) -> u64 {
        *self
    }
}

/// An entry that may be the one looked for.
pub(crate) struct Candidate<'s> {
    at: &'s AtomicU64,
    /// What its slot held when it was found.
    pub(crate) slot: Slot,
    ring: &'s Ring,
    /// Its words, and what follows them in the ring. They may be overwritten at any time.
    pub(crate) words: &'s [AtomicU64],
}

impl Candidate<'_> {
    /// Returns whether nobody wrote over the words so far: only then does what was read of them
    /// count.
    #[inline(always)]
    pub(crate) fn is_intact(&self) -> bool {
        self.ring.is_intact(self.slot.position())
    }

    /// Counts a use. Writes shared memory for the first three uses of an entry only.
    #[inline(always)]
    pub(crate) fn count_use(&self) {
        if !self.slot.is_hottest() {
            // Lost to another reader's use, or to a move: then one use goes uncounted.
            let hotter = self.slot.hotter().0;
            let _ = self.at.compare_exchange(self.slot.0, hotter, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// The entries with one hash, as far as the index knows: a few of other hashes may be among them.
///
/// Whoever finds one overwritten while it was read calls [`Candidates::look_again`]: it may have
/// moved.
pub(crate) struct Candidates<'s> {
    arena: &'s [AtomicU64],
    shard: &'s Shard,
    bucket: &'s [AtomicU64],
    tag: u64,
    /// Slots of the bucket that are still to be looked at, a bit each.
    slots: u32,
    looks_left: usize,
    is_overtaken: bool,
}

impl<'s> Candidates<'s> {
    /// Returns the next one.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Candidate<'s>> {
        loop {
            while self.slots != 0 {
                let i = self.slots.trailing_zeros() as usize;
                self.slots &= self.slots - 1;
                let at = self.bucket.get(i)?;
                let slot = Slot(at.load(Ordering::Acquire));
                if slot.is_empty() || slot.tag() != self.tag {
                    continue;
                }
                let ring = self.shard.ring(slot.ring());
                return Some(Candidate { at, slot, ring, words: ring.words(self.arena, slot.position()) });
            }
            if !self.is_overtaken || self.looks_left == 0 {
                return None;
            }
            self.is_overtaken = false;
            self.looks_left -= 1;
            self.slots = matching(self.bucket, self.tag);
        }
    }

    /// Goes through the bucket once more after this time, up to [`LOOKS_MAX`] times in all.
    #[inline(always)]
    pub(crate) fn look_again(&mut self) {
        self.is_overtaken = true;
    }
}

impl<H: Head> Store<H> {
    /// Returns the entries to look at for a hash. Never waits.
    #[inline(always)]
    pub(crate) fn candidates(&self, hash: u64) -> Option<Candidates<'_>> {
        let bucket = self.index.bucket_of(hash);
        let tag = Slot::tag_of(hash);
        Some(Candidates {
            arena: &self.arena,
            shard: self.shard(hash)?,
            bucket,
            tag,
            slots: matching(bucket, tag),
            looks_left: LOOKS_MAX - 1,
            is_overtaken: false,
        })
    }

    /// Asks memory for what a look-up of this hash reads first, without waiting for it.
    pub(crate) fn prefetch_bucket(&self, hash: u64) {
        let (first, second) = self.index.bucket_of(hash).split_at_checked(LINE_WORDS).unwrap_or((&[], &[]));
        ask_for(first);
        ask_for(second);
    }

    /// Asks memory for what a look-up reads next: the entry.
    pub(crate) fn prefetch_entry(&self, hash: u64) {
        let bucket = self.index.bucket_of(hash);
        let candidates = matching(bucket, Slot::tag_of(hash));
        if let (Some(at), Some(shard)) = (bucket.get(candidates.trailing_zeros() as usize), self.shard(hash))
        {
            let slot = Slot(at.load(Ordering::Relaxed));
            let words = shard.ring(slot.ring()).words(&self.arena, slot.position());
            ask_for(words);
            ask_for(words.get(LINE_WORDS..).unwrap_or(&[]));
        }
    }

    /// Sets or clears the claim of the entry that `is_it`; returns whether this call changed it.
    pub(crate) fn set_claimed(&self, hash: u64, is_it: impl Fn(&[AtomicU64]) -> bool, claimed: bool) -> bool {
        for _ in 0..EXCHANGES_MAX {
            let Some((at, slot)) = self.find(hash, &is_it) else { return false };
            if slot.is_claimed() == claimed {
                return false;
            }
            let wanted = slot.claimed(claimed).0;
            if at.compare_exchange(slot.0, wanted, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return true;
            }
        }
        false
    }

    /// Returns the slot of the entry that `is_it`, and what it held. Position and ring name the
    /// entry beyond doubt.
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(&[AtomicU64]) -> bool) -> Option<(&AtomicU64, Slot)> {
        let mut candidates = self.candidates(hash)?;
        while let Some(candidate) = candidates.next() {
            let is_found = is_it(candidate.words);
            if !candidate.is_intact() {
                candidates.look_again();
            } else if is_found {
                return Some((candidate.at, candidate.slot));
            }
        }
        None
    }

    /// Walks all entries, in no order, and calls `show` with each that `take` could copy while
    /// nobody wrote over it.
    ///
    /// Blocks nobody; an entry that is dropped or stored meanwhile may or may not be shown.
    pub(crate) fn for_each<T>(
        &self,
        state: &mut T,
        take: impl Fn(&mut T, &[AtomicU64]) -> bool,
        mut show: impl FnMut(&mut T, Slot),
    ) {
        for (i, shard) in self.shards.iter().enumerate() {
            for number in i * self.buckets_per_shard..(i + 1) * self.buckets_per_shard {
                for at in self.index.bucket(number) {
                    for _ in 0..LOOKS_MAX {
                        let slot = Slot(at.load(Ordering::Acquire));
                        if slot.is_empty() {
                            break;
                        }
                        let ring = shard.ring(slot.ring());
                        let is_taken = take(state, ring.words(&self.arena, slot.position()));
                        if ring.is_intact(slot.position()) {
                            if is_taken {
                                show(state, slot);
                            }
                            break;
                        }
                    }
                }
            }
        }
    }
}
