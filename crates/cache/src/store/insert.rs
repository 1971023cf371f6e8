//! Storing entries, and making room for them.

use super::slots::{RingId, Slot};
use super::sync::MutexGuard;
use super::{AtomicU64, Head, Ordering, Shard, Store, Writer};
use std::sync::PoisonError;

/// Entries carried to the head of the main ring for one insertion, so that a writer is never long.
const REINSERTIONS_MAX: u32 = 32;
/// Words kept free in the main ring, so that an entry can be carried to the head before the tail
/// passes it. A larger entry whose turn has come is dropped although it is in use.
const RESERVE_WORDS_MAX: u64 = 512;

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
    /// What is there is no older.
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
        match self.shard(newcomer.hash) {
            Some(shard) => Edit::new(self, shard, now).insert(newcomer, is_it, write),
            None => Inserted::TooLarge,
        }
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
struct Edit<'c, H: Head> {
    store: &'c Store<H>,
    shard: &'c Shard,
    writer: MutexGuard<'c, Writer>,
    now: u32,
    reinsertions_left: u32,
}

impl<'c, H: Head> Edit<'c, H> {
    fn new(store: &'c Store<H>, shard: &'c Shard, now: u32) -> Self {
        Self { store, shard, writer: shard.lock(), now, reinsertions_left: REINSERTIONS_MAX }
    }

    fn insert(
        &mut self,
        newcomer: Newcomer,
        is_it: impl Fn(&[AtomicU64]) -> bool,
        write: impl FnOnce(&[AtomicU64]),
    ) -> Inserted {
        let Newcomer { hash, words, stored_at, is_proven, only_newer } = newcomer;
        if words + self.reserve() > self.writer.main.capacity() / 2 {
            return Inserted::TooLarge;
        }
        let store = self.store;
        let old = store.find(hash, is_it);
        if only_newer
            && old.and_then(|(_, slot)| self.head(slot)).is_some_and(|head| head.stored_at() >= stored_at)
        {
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

    /// Counts an entry whose slot is needed in a full bucket as dropped. Its words stay until the
    /// tail passes them.
    fn push_out(&mut self, slot: Slot) {
        if slot.is_empty() {
            return;
        }
        if let Some(head) = self.head(slot)
            && slot.ring() == RingId::Small
        {
            self.writer.ghosts.remember(head.hash());
        }
        self.writer.entries -= 1;
        self.writer.evictions += 1;
    }

    /// Reads the head of the entry in a slot.
    fn head(&self, slot: Slot) -> Option<H> {
        H::read(self.shard.ring(slot.ring()).words(&self.store.arena, slot.position()))
    }

    fn reserve(&self) -> u64 {
        (self.writer.main.capacity() / 16).min(RESERVE_WORDS_MAX)
    }

    /// Drops the oldest entries of a ring until `words` fit; returns where.
    ///
    /// Ends: every turn shortens the ring or uses up a reinsertion, and an empty ring has room.
    fn make_room(&mut self, ring: RingId, words: u64) -> u64 {
        let wanted = words + if ring == RingId::Main { self.reserve() } else { 0 };
        loop {
            if let Some(position) = self.writer.ends(ring).fit(wanted) {
                return position;
            }
            match ring {
                RingId::Small => self.retire_from_small(),
                RingId::Main => self.retire_from_main(),
            }
        }
    }

    /// Takes words at a position that was found to be free, and makes them safe to write.
    fn append(&mut self, ring: RingId, position: u64, words: u64) {
        let ends = self.writer.ends(ring);
        ends.take(position, words);
        self.shard.ring(ring).forget_below(ends.tail());
    }

    /// Moves the oldest entry of the small ring to the main ring, or drops it.
    fn retire_from_small(&mut self) {
        let Some(oldest) = self.oldest(RingId::Small) else { return };
        if let Some((at, slot)) = oldest.live {
            let main_has_room = self.writer.main.fit(oldest.words + self.reserve()).is_some();
            if !oldest.is_expired && (slot.freq() > 0 || main_has_room) {
                let to = self.make_room(RingId::Main, oldest.words);
                self.carry(&oldest, at, to, 0);
            } else {
                self.writer.ghosts.remember(oldest.hash);
                self.drop_entry(at);
            }
        }
        self.forget(RingId::Small, oldest.words);
    }

    /// Carries the oldest entry of the main ring to its head, or drops it.
    fn retire_from_main(&mut self) {
        let Some(oldest) = self.oldest(RingId::Main) else { return };
        if let Some((at, slot)) = oldest.live {
            let room = self.writer.main.fit(oldest.words);
            match room {
                Some(to) if slot.freq() > 0 && !oldest.is_expired && self.reinsertions_left > 0 => {
                    self.reinsertions_left -= 1;
                    self.carry(&oldest, at, to, slot.freq() - 1);
                }
                _ => self.drop_entry(at),
            }
        }
        self.forget(RingId::Main, oldest.words);
    }

    /// Reads the head of the oldest entry of a ring.
    fn oldest(&mut self, ring: RingId) -> Option<Oldest<'c>> {
        let position = self.writer.ends(ring).oldest()?;
        let words = self.shard.ring(ring).words(&self.store.arena, position);
        let head = H::read(words)?;
        let live = self.store.index.bucket_of(head.hash()).iter().find_map(|at| {
            let slot = Slot(at.load(Ordering::Relaxed));
            slot.is_same_place(ring, position).then_some((at, slot))
        });
        Some(Oldest {
            ring,
            position,
            words: head.words() as u64,
            hash: head.hash(),
            is_expired: head.is_expired(self.now),
            live,
        })
    }

    /// Copies an entry to the main ring and lets its slot follow.
    fn carry(&mut self, entry: &Oldest<'c>, at: &AtomicU64, to: u64, freq: u64) {
        self.append(RingId::Main, to, entry.words);
        let count = entry.words as usize;
        let from = self.shard.ring(entry.ring).words(&self.store.arena, entry.position);
        let into = self.shard.ring(RingId::Main).words(&self.store.arena, to);
        for (from, into) in from.iter().zip(into).take(count) {
            into.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        // Ends: between two loads readers can add three uses and claim or release a refresh, no
        // more in practice.
        loop {
            let slot = Slot(at.load(Ordering::Relaxed));
            let moved = Slot::new(slot.tag(), RingId::Main, to).with_freq(freq).claimed(slot.is_claimed());
            if at.compare_exchange(slot.0, moved.0, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    fn drop_entry(&mut self, at: &AtomicU64) {
        at.store(Slot::EMPTY.0, Ordering::Relaxed);
        self.writer.entries -= 1;
        self.writer.evictions += 1;
    }

    fn forget(&mut self, ring: RingId, words: u64) {
        let ends = self.writer.ends(ring);
        ends.forget(words);
        self.shard.ring(ring).forget_below(ends.tail());
    }
}

impl<H: Head> Drop for Edit<'_, H> {
    fn drop(&mut self) {
        self.shard.note_used(&self.writer);
    }
}

/// The entry at a ring's tail.
struct Oldest<'c> {
    ring: RingId,
    position: u64,
    words: u64,
    hash: u64,
    is_expired: bool,
    /// Its slot, unless it was replaced, flushed or pushed out of its bucket.
    live: Option<(&'c AtomicU64, Slot)>,
}

/// How much a slot is worth keeping: empty ones nothing, then by use, then by ring.
fn worth(at: &AtomicU64) -> u64 {
    let slot = Slot(at.load(Ordering::Relaxed));
    match slot.ring() {
        _ if slot.is_empty() => 0,
        RingId::Small => 1 + 2 * slot.freq(),
        RingId::Main => 2 + 2 * slot.freq(),
    }
}
