//! Eviction: makes room for entries by S3-FIFO, with a small ring, a main ring and ghosts.

use super::insert::Edit;
use super::slots::{RingId, Slot};
use super::{AtomicU64, Head, Ordering};

/// Words kept free in the main ring, so that an entry can be carried to the head before the tail
/// passes it. A larger entry whose turn has come is dropped although it is in use.
const RESERVE_WORDS_MAX: u64 = 512;

impl<'c, H: Head> Edit<'c, H> {
    /// Counts an entry whose slot is needed in a full bucket as dropped. Its words stay until the
    /// tail passes them.
    pub(super) fn push_out(&mut self, slot: Slot) {
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

    pub(super) fn reserve(&self) -> u64 {
        (self.writer.main.capacity() / 16).min(RESERVE_WORDS_MAX)
    }

    /// Drops the oldest entries of a ring until `words` fit; returns where.
    ///
    /// Ends: every turn shortens the ring or uses up a reinsertion, and an empty ring has room.
    pub(super) fn make_room(&mut self, ring: RingId, words: u64) -> u64 {
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
    pub(super) fn append(&mut self, ring: RingId, position: u64, words: u64) {
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
pub(super) fn worth(at: &AtomicU64) -> u64 {
    let slot = Slot(at.load(Ordering::Relaxed));
    match slot.ring() {
        _ if slot.is_empty() => 0,
        RingId::Small => 1 + 2 * slot.freq(),
        RingId::Main => 2 + 2 * slot.freq(),
    }
}
