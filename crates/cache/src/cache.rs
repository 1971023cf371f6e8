//! The cache: its parts, its limits, its numbers.

use crate::ghost::Ghosts;
use crate::plan::Plan;
use crate::recovery::Recoveries;
use crate::ring::{Ends, Ring};
use crate::slots::{Index, Pages, RingId, zeroed};
use crate::sync::{AtomicU64, Mutex, Ordering};
use std::mem::size_of;
use wire::HashKey;

/// Words of a main ring from which on it is in huge pages. Rings fill from one end: with smaller ones, a few answers in
/// each shard would make most of the arena resident.
const HUGE_WORDS_MIN: usize = 1 << 20;

/// What a cache may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets for everything: answers, index and bookkeeping. A cache of fewer than about two thousand holds nothing.
    pub octets_max: usize,
}

/// Answers of other servers, shared by all workers.
pub struct Cache {
    pub(crate) index: Index,
    pub(crate) arena: Box<[AtomicU64]>,
    pub(crate) shards: Box<[Shard]>,
    pub(crate) buckets_per_shard: usize,
    hash_key: HashKey,
    octets_max: usize,
    octets_fixed: usize,
    pub(crate) recoveries: Recoveries,
}

/// The rings of one run of buckets.
#[repr(align(64))]
pub(crate) struct Shard {
    small: Ring,
    main: Ring,
    /// Words in use in both rings, as the last writer left them.
    used: AtomicU64,
    pub(crate) writer: Mutex<Writer>,
}

impl Shard {
    pub(crate) fn ring(&self, id: RingId) -> &Ring {
        match id {
            RingId::Small => &self.small,
            RingId::Main => &self.main,
        }
    }

    /// Says how much of the rings is in use, to whoever does not hold the mutex.
    pub(crate) fn note_used(&self, writer: &Writer) {
        self.used.store(writer.small.used() + writer.main.used(), Ordering::Relaxed);
    }
}

/// What only the holder of a shard's mutex sees.
pub(crate) struct Writer {
    pub(crate) small: Ends,
    pub(crate) main: Ends,
    pub(crate) ghosts: Ghosts,
    pub(crate) entries: u64,
    pub(crate) inserts: u64,
    pub(crate) evictions: u64,
}

impl Writer {
    pub(crate) fn ends(&mut self, id: RingId) -> &mut Ends {
        match id {
            RingId::Small => &mut self.small,
            RingId::Main => &mut self.main,
        }
    }
}

/// Numbers about a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Entries that can be found, expired ones included.
    pub entries: u64,
    /// Octets in use: bookkeeping, index, and what lies in the rings.
    pub octets: usize,
    /// Octets that will never be exceeded.
    pub octets_max: usize,
    /// Entries ever stored.
    pub inserts: u64,
    /// Entries that made room for others.
    pub evictions: u64,
}

impl Cache {
    /// Returns an empty cache. Memory is taken from the system as it is filled.
    pub fn new(limits: Limits, hash_key: HashKey) -> Self {
        let plan = Plan::new(limits.octets_max, size_of::<Self>(), size_of::<Shard>());
        Self::planned(&plan, limits, hash_key)
    }

    /// Returns an empty cache with room for so many words, so that loom comes to an end.
    #[cfg(loom)]
    pub fn tiny(words: usize, hash_key: HashKey) -> Self {
        Self::planned(&Plan::tiny(words), Limits { octets_max: usize::MAX }, hash_key)
    }

    fn planned(plan: &Plan, limits: Limits, hash_key: HashKey) -> Self {
        let shards = (0..plan.shards)
            .map(|i| {
                let start = i * plan.words_per_shard();
                let (small, small_ends) = Ring::new(start, plan.small_words);
                let (main, main_ends) = Ring::new(start + plan.small_words, plan.main_words);
                let writer = Writer {
                    small: small_ends,
                    main: main_ends,
                    ghosts: Ghosts::new(plan.ghosts_per_shard),
                    entries: 0,
                    inserts: 0,
                    evictions: 0,
                };
                Shard { small, main, used: AtomicU64::new(0), writer: Mutex::new(writer) }
            })
            .collect();
        let pages = if plan.main_words >= HUGE_WORDS_MIN { Pages::Huge } else { Pages::Small };
        Self {
            index: Index::new(plan.shards * plan.buckets_per_shard),
            arena: zeroed(plan.shards * plan.words_per_shard(), pages),
            shards,
            buckets_per_shard: plan.buckets_per_shard,
            hash_key,
            octets_max: limits.octets_max,
            octets_fixed: plan.octets_fixed,
            recoveries: Recoveries::default(),
        }
    }

    /// Returns the key that [`crate::Key::new`] needs.
    pub const fn hash_key(&self) -> &HashKey {
        &self.hash_key
    }

    /// Returns the numbers of the moment. Takes each shard's mutex for an instant.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { octets: self.octets_fixed, octets_max: self.octets_max, ..Stats::default() };
        for shard in &self.shards {
            let writer = shard.lock();
            stats.entries += writer.entries;
            stats.inserts += writer.inserts;
            stats.evictions += writer.evictions;
            stats.octets += 8 * (writer.small.used() + writer.main.used()) as usize;
        }
        stats
    }

    /// Returns the octets in use, as [`Stats::octets`] counts them, and takes no mutex.
    pub fn octets_used(&self) -> usize {
        let words: u64 = self.shards.iter().map(|shard| shard.used.load(Ordering::Relaxed)).sum();
        self.octets_fixed + 8 * words as usize
    }

    /// Returns the shard for `hash`: its top bits.
    pub(crate) fn shard(&self, hash: u64) -> Option<&Shard> {
        self.shards.get(((u128::from(hash) * self.shards.len() as u128) >> 64) as usize)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Entry, Flush, Key, KeyBits, Now, Security};
    use wire::{Class, Flags, NameBuf, Rcode, Rtype};

    #[test]
    fn octets_in_use_are_known_while_writers_write() {
        let hash_key = HashKey::new([7, 11]);
        let cache = Cache::new(Limits { octets_max: 1 << 20 }, hash_key);
        let empty = cache.octets_used();
        for number in 0..500_u32 {
            let name: NameBuf = format!("name{number}.example").parse().expect("a name");
            let folded = name.as_name().to_folded();
            let key = Key::new(cache.hash_key(), &folded, Rtype::A, Class::IN, KeyBits::NONE, 0);
            let entry = Entry {
                body: &[0; 200],
                ttl_offsets: &[],
                rcode: Rcode::NOERROR,
                flags: Flags::default(),
                security: Security::Unchecked,
                answers: 0,
                authorities: 0,
                additionals: 0,
                ttl: 60,
                stale: 0,
                ede: None,
            };
            let _ = cache.insert(&key, &entry, Now(1));
            assert_eq!(cache.octets_used(), cache.stats().octets);
        }
        let all: Vec<_> = cache.shards.iter().map(Shard::lock).collect();
        assert!(cache.octets_used() > empty + 500 * 200, "no mutex is needed");
        drop(all);
        cache.flush(Flush::All);
        assert_eq!(cache.octets_used(), empty);
    }
}
