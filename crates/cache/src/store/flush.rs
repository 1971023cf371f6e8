//! Forgetting on request.

use super::slots::{RingId, Slot};
use super::{AtomicU64, Head, Ordering, Store};

/// Buckets looked at while a shard's mutex is held, so that a writer waits for microseconds only.
const BUCKETS_PER_STEP: usize = 64;

impl<H: Head> Store<H> {
    /// Forgets everything and returns how many entries that were.
    pub(crate) fn flush_all(&self) -> usize {
        let mut count = 0;
        for (i, shard) in self.shards.iter().enumerate() {
            let mut writer = shard.lock();
            for number in i * self.buckets_per_shard..(i + 1) * self.buckets_per_shard {
                for at in self.index.bucket(number) {
                    at.store(Slot::EMPTY.0, Ordering::Relaxed);
                }
            }
            count += std::mem::take(&mut writer.entries) as usize;
            writer.ghosts.clear();
            for ring in [RingId::Small, RingId::Main] {
                let ends = writer.ends(ring);
                ends.forget_all();
                shard.ring(ring).forget_below(ends.tail());
            }
            shard.note_used(&writer);
        }
        count
    }

    /// Forgets the entries that `takes` returns true for, and returns how many. Readers go on;
    /// writers wait for a few buckets at a time.
    pub(crate) fn flush(&self, mut takes: impl FnMut(&H, &[AtomicU64]) -> bool) -> usize {
        let mut count = 0;
        for (i, shard) in self.shards.iter().enumerate() {
            for first in (0..self.buckets_per_shard).step_by(BUCKETS_PER_STEP) {
                let last = (first + BUCKETS_PER_STEP).min(self.buckets_per_shard);
                // While the mutex is held, no entry is overwritten: what the slots name can be read
                // as it is.
                let mut writer = shard.lock();
                for number in i * self.buckets_per_shard + first..i * self.buckets_per_shard + last {
                    for at in self.index.bucket(number) {
                        let slot = Slot(at.load(Ordering::Relaxed));
                        if slot.is_empty() {
                            continue;
                        }
                        let words = shard.ring(slot.ring()).words(&self.arena, slot.position());
                        if H::read(words).is_some_and(|head| takes(&head, words)) {
                            at.store(Slot::EMPTY.0, Ordering::Relaxed);
                            writer.entries -= 1;
                            count += 1;
                        }
                    }
                }
            }
        }
        count
    }
}
