//! Forgetting on request.

use crate::cache::Cache;
use crate::entry::Meta;
use crate::slots::{RingId, Slot};
use crate::sync::Ordering;
use crate::walk::{Octets, name_of};
use wire::{Name, Rtype};

/// Buckets looked at while a shard's mutex is held, so that a writer waits for microseconds only.
const BUCKETS_PER_STEP: usize = 64;

/// What to forget: for all types (unless named), classes, views, bits and scopes.
#[derive(Clone, Copy)]
pub enum Flush<'a> {
    /// The answers for one name.
    Name(Name<'a>),
    /// The answers for a name and everything below it.
    Suffix(Name<'a>),
    /// The answers for one name and type.
    Type(Name<'a>, Rtype),
    /// Everything.
    All,
}

impl Flush<'_> {
    fn takes(&self, name: Name<'_>, qtype: Rtype) -> bool {
        match *self {
            Self::Name(wanted) => name == wanted,
            Self::Suffix(zone) => name.is_at_or_below(zone),
            Self::Type(wanted, wanted_type) => qtype == wanted_type && name == wanted,
            Self::All => true,
        }
    }
}

impl Cache {
    /// Forgets entries and returns how many. Readers go on; writers wait for a few buckets at a time.
    pub fn flush(&self, what: Flush<'_>) -> usize {
        match what {
            Flush::All => self.flush_all(),
            Flush::Name(_) | Flush::Suffix(_) | Flush::Type(..) => self.flush_some(&what),
        }
    }

    fn flush_all(&self) -> usize {
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

    fn flush_some(&self, what: &Flush<'_>) -> usize {
        let mut count = 0;
        for (i, shard) in self.shards.iter().enumerate() {
            for first in (0..self.buckets_per_shard).step_by(BUCKETS_PER_STEP) {
                let last = (first + BUCKETS_PER_STEP).min(self.buckets_per_shard);
                // While the mutex is held, no entry is overwritten: what the slots name can be read as it is.
                let mut writer = shard.lock();
                for number in i * self.buckets_per_shard + first..i * self.buckets_per_shard + last {
                    for at in self.index.bucket(number) {
                        let slot = Slot(at.load(Ordering::Relaxed));
                        if slot.is_empty() {
                            continue;
                        }
                        let words = shard.ring(slot.ring()).words(&self.arena, slot.position());
                        let Some(meta) = Meta::read(words) else { continue };
                        let mut octets = Octets::default();
                        let Some(name) = name_of(&meta, words, &mut octets) else { continue };
                        if what.takes(name, meta.qtype()) {
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
