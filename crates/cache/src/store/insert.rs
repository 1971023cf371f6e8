//! Storing entries.

use super::eviction::worth;
use super::slots::{RingId, Slot};
use super::{AtomicU64, Head, Ordering, Shard, Store, Writer};
use crate::sync::MutexGuard;
use std::sync::PoisonError;

/// Entries carried to the head of the main ring for one insertion, so that a writer is never long.
const REINSERTIONS_MAX: u32 = 32;

/// An entry that is to be stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    pub(crate) hash: u64,
    /// Words that it takes.
    pub(crate) words: u64,
    pub(crate) stored_at: u32,
    /// Whether it is known to be used: it goes to the main ring.
    pub(crate) is_proven: bool,
    /// Whether what is there already stays if it is no older.
    pub(crate) only_newer: bool,
}

/// What became of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The table had no such entry.
    New,
    /// It takes the place of the one that there was.
    Replaced,
    /// It is larger than half of a shard's main ring.
    TooLarge,
    /// What is there is no older, or stays for another reason.
    Older,
}

impl<H: Head> Store<H> {
    /// Stores an entry in place of the one that `is_it`, and makes room as needed; `write` writes
    /// its words, which no reader trusts yet.
    ///
    /// Takes one shard's mutex; readers go on.
    pub(crate) fn insert(
        &self,
        newcomer: Newcomer,
        now: u32,
        is_it: impl Fn(&[AtomicU64]) -> bool,
        write: impl FnOnce(&[AtomicU64]),
    ) -> Inserted {
        let Newcomer { stored_at, only_newer, .. } = newcomer;
        let is_older = |words: &[_]| H::read(words).is_some_and(|head| head.stored_at() >= stored_at);
        self.insert_if(newcomer, now, is_it, |words| !(only_newer && is_older(words)), write)
    }

    /// Does the same if the words of the entry that is there, if there is one, may be replaced; the
    /// shard's mutex is held from that question to the end.
    pub(crate) fn insert_if(
        &self,
        newcomer: Newcomer,
        now: u32,
        is_it: impl Fn(&[AtomicU64]) -> bool,
        may_replace: impl FnOnce(&[AtomicU64]) -> bool,
        write: impl FnOnce(&[AtomicU64]),
    ) -> Inserted {
        match self.shard(newcomer.hash) {
            Some(shard) => Edit::new(self, shard, now).insert(newcomer, is_it, may_replace, write),
            None => Inserted::TooLarge,
        }
    }
}

impl<H: Head> Store<H> {
    /// Lets `change` write to words of the entry that `is_it`, if there is one. Takes the shard's
    /// mutex, so that nobody else writes them; readers go on, and see each word as it was or as it
    /// is.
    pub(crate) fn change(
        &self,
        hash: u64,
        is_it: impl Fn(&[AtomicU64]) -> bool,
        change: impl Fn(&[AtomicU64]),
    ) -> bool {
        let Some(shard) = self.shard(hash) else { return false };
        let _writer = shard.lock();
        let Some((_, slot)) = self.find(hash, is_it) else { return false };
        change(shard.ring(slot.ring()).words(&self.arena, slot.position()));
        true
    }

    /// Does the same for the entry that was found in a slot, if it is still in the same place and
    /// nobody holds the mutex.
    pub(crate) fn try_change(&self, hash: u64, found: Slot, change: impl Fn(&[AtomicU64])) -> bool {
        let Some(shard) = self.shard(hash) else { return false };
        let Ok(_writer) = shard.writer.try_lock() else { return false };
        let is_found = |at: &AtomicU64| {
            let slot = Slot(at.load(Ordering::Relaxed));
            slot.tag() == found.tag() && slot.is_same_place(found.ring(), found.position())
        };
        let is_there = self.index.bucket_of(hash).iter().any(is_found);
        if is_there {
            change(shard.ring(found.ring()).words(&self.arena, found.position()));
        }
        is_there
    }
}

impl Shard {
    /// Takes the mutex. A writer that panicked left nothing half done that matters: slots and tails
    /// are written last.
    pub(super) fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One change to a shard, its mutex held.
pub(super) struct Edit<'c, H: Head> {
    pub(super) store: &'c Store<H>,
    pub(super) shard: &'c Shard,
    pub(super) writer: MutexGuard<'c, Writer>,
    pub(super) now: u32,
    pub(super) reinsertions_left: u32,
}

impl<'c, H: Head> Edit<'c, H> {
    fn new(store: &'c Store<H>, shard: &'c Shard, now: u32) -> Self {
        Self { store, shard, writer: shard.lock(), now, reinsertions_left: REINSERTIONS_MAX }
    }

    fn insert(
        &mut self,
        newcomer: Newcomer,
        is_it: impl Fn(&[AtomicU64]) -> bool,
        may_replace: impl FnOnce(&[AtomicU64]) -> bool,
        write: impl FnOnce(&[AtomicU64]),
    ) -> Inserted {
        let Newcomer { hash, words, is_proven, .. } = newcomer;
        if words + self.reserve() > self.writer.main.capacity() / 2 {
            return Inserted::TooLarge;
        }
        let store = self.store;
        let old = store.find(hash, is_it);
        if old.is_some_and(|(_, slot)| !may_replace(self.words(slot))) {
            return Inserted::Older;
        }
        let was_main = old.is_some_and(|(_, slot)| slot.ring() == RingId::Main);
        let ring = if was_main
            || is_proven
            || words > self.writer.small.capacity() / 4
            || self.writer.ghosts.recall(hash)
        {
            RingId::Main
        } else {
            RingId::Small
        };
        let position = self.make_room(ring, words);
        self.append(ring, position, words);
        write(self.shard.ring(ring).words(&store.arena, position));
        // The old entry may have been moved or dropped to make room, but its slot is nobody else's
        // yet.
        let old = old.map(|(at, _)| at).filter(|at| !Slot(at.load(Ordering::Relaxed)).is_empty());
        let new = Slot::new(Slot::tag_of(hash), ring, position);
        self.writer.inserts += 1;
        if let Some(at) = old {
            at.store(new.0, Ordering::Release);
            return Inserted::Replaced;
        }
        if let Some(at) = store.index.bucket_of(hash).iter().min_by_key(|at| worth(at)) {
            self.push_out(Slot(at.load(Ordering::Relaxed)));
            self.writer.entries += 1;
            at.store(new.0, Ordering::Release);
        }
        Inserted::New
    }

    /// Reads the head of the entry in a slot.
    pub(super) fn head(&self, slot: Slot) -> Option<H> {
        H::read(self.words(slot))
    }

    /// Returns the words of the entry in a slot, and what follows them in its ring.
    fn words(&self, slot: Slot) -> &'c [AtomicU64] {
        self.shard.ring(slot.ring()).words(&self.store.arena, slot.position())
    }
}

impl<H: Head> Drop for Edit<'_, H> {
    fn drop(&mut self) {
        self.shard.note_used(&self.writer);
    }
}
