//! A table of entries of one kind, shared by all workers: two rings of words in each shard, an
//! index of their positions, and S3-FIFO eviction.
//!
//! What an entry is made of is the table's business: the store asks its [`Head`] how long it is and
//! until when it is worth keeping, and whoever looks one up reads its words.

mod eviction;
mod flush;
mod ghost;
mod insert;
mod look;
mod plan;
mod ring;
mod slots;

use std::marker::PhantomData;
use std::mem::size_of;

use crate::sync::Mutex;
pub(crate) use crate::sync::{AtomicU64, Ordering};
use ghost::Ghosts;
pub(crate) use insert::{Inserted, Newcomer};
pub(crate) use look::{LINE_WORDS, Word};
use plan::Plan;
use ring::{Ends, Ring};
use slots::Index;
pub(crate) use slots::{Pages, RingId, Slot, ask_for, zeroed};

/// Words of a main ring from which on it is in huge pages. Rings fill from one end: with smaller
/// ones, a few answers in each shard would make most of the arena resident.
const HUGE_WORDS_MIN: usize = 1 << 20;

/// What the store needs to know about an entry: its kind says where that stands in its words.
///
/// Read from words that may be overwritten meanwhile: nothing in it can be trusted before the
/// ring's tail was looked at.
pub(crate) trait Head: Copy {
    /// Reads the head of an entry.
    fn read<W: Word>(words: &[W]) -> Option<Self>;

    /// Returns the hash that the entry was stored under.
    fn hash(&self) -> u64;

    /// Returns the words that it takes.
    fn words(&self) -> usize;

    /// Returns the second that it was stored in.
    fn stored_at(&self) -> u32;

    /// Returns whether nobody wants it any more at second `now`.
    fn is_expired(&self, now: u32) -> bool;
}

/// The table.
pub(crate) struct Store<H> {
    index: Index,
    arena: Box<[AtomicU64]>,
    shards: Box<[Shard]>,
    buckets_per_shard: usize,
    octets_max: usize,
    octets_fixed: usize,
    kind: PhantomData<fn() -> H>,
}

/// The rings of one run of buckets.
#[repr(align(64))]
struct Shard {
    small: Ring,
    main: Ring,
    /// Words in use in both rings, as the last writer left them.
    used: AtomicU64,
    writer: Mutex<Writer>,
}

impl Shard {
    fn ring(&self, id: RingId) -> &Ring {
        match id {
            RingId::Small => &self.small,
            RingId::Main => &self.main,
        }
    }

    /// Says how much of the rings is in use, to whoever does not hold the mutex.
    fn note_used(&self, writer: &Writer) {
        self.used.store(writer.small.used() + writer.main.used(), Ordering::Relaxed);
    }
}

/// What only the holder of a shard's mutex sees.
struct Writer {
    small: Ends,
    main: Ends,
    ghosts: Ghosts,
    entries: u64,
    inserts: u64,
    evictions: u64,
}

impl Writer {
    fn ends(&mut self, id: RingId) -> &mut Ends {
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

impl<H: Head> Store<H> {
    /// Returns an empty store of at most so many octets, `octets_base` of which its owner takes for
    /// itself.
    pub(crate) fn new(octets_max: usize, octets_base: usize) -> Self {
        Self::planned(&Plan::new(octets_max, octets_base, size_of::<Shard>()), octets_max)
    }

    /// Returns an empty store with room for so many words, so that loom comes to an end.
    #[cfg(loom)]
    pub(crate) fn tiny(words: usize) -> Self {
        Self::planned(&Plan::tiny(words), usize::MAX)
    }

    fn planned(plan: &Plan, octets_max: usize) -> Self {
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
            octets_max,
            octets_fixed: plan.octets_fixed,
            kind: PhantomData,
        }
    }

    /// Returns the numbers of the moment. Takes each shard's mutex for an instant.
    pub(crate) fn stats(&self) -> Stats {
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
    pub(crate) fn octets_used(&self) -> usize {
        let words: u64 = self.shards.iter().map(|shard| shard.used.load(Ordering::Relaxed)).sum();
        self.octets_fixed + 8 * words as usize
    }

    /// Returns the shard for `hash`: its top bits.
    fn shard(&self, hash: u64) -> Option<&Shard> {
        self.shards.get(((u128::from(hash) * self.shards.len() as u128) >> 64) as usize)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// An entry of another kind than answers: a hash, a second, and a number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Counted {
        hash: u64,
        stored_at: u32,
        number: u64,
    }

    const WORDS: usize = 3;

    impl Head for Counted {
        fn read<W: Word>(words: &[W]) -> Option<Self> {
            let [hash, stored_at, number] = words.first_chunk::<WORDS>()?.each_ref().map(Word::read);
            Some(Self { hash, stored_at: stored_at as u32, number })
        }

        fn hash(&self) -> u64 {
            self.hash
        }

        fn words(&self) -> usize {
            WORDS
        }

        fn stored_at(&self) -> u32 {
            self.stored_at
        }

        fn is_expired(&self, now: u32) -> bool {
            now >= self.stored_at + 60
        }
    }

    /// Spreads numbers over all shards.
    fn hash_of(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
    }

    fn put(store: &Store<Counted>, number: u64, stored_at: u32) -> Inserted {
        let hash = hash_of(number);
        let newcomer = Newcomer { hash, words: WORDS as u64, stored_at, is_proven: false, only_newer: false };
        store.insert(
            newcomer,
            stored_at,
            |words| words[0].read() == hash,
            |words| {
                for (to, word) in words.iter().zip([hash, u64::from(stored_at), number]) {
                    to.store(word, Ordering::Relaxed);
                }
            },
        )
    }

    fn look(store: &Store<Counted>, number: u64) -> Option<u64> {
        let hash = hash_of(number);
        let mut candidates = store.candidates(hash)?;
        while let Some(candidate) = candidates.next() {
            let counted = Counted::read(candidate.words).filter(|counted| counted.hash == hash);
            assert!(candidate.is_intact(), "nobody else writes");
            if let Some(counted) = counted {
                candidate.count_use();
                return Some(counted.number);
            }
        }
        None
    }

    #[test]
    fn a_store_holds_entries_of_any_kind_within_its_bounds() {
        let store = Store::<Counted>::new(1 << 20, 0);
        for number in 0..100_000 {
            assert_eq!(put(&store, number, 1), Inserted::New);
            assert_eq!(look(&store, number), Some(number), "what came last is there");
            assert!(store.octets_used() <= 1 << 20);
        }
        let stats = store.stats();
        assert!(stats.evictions > 0 && stats.octets <= stats.octets_max, "{stats:?}");
        assert_eq!(put(&store, 99_999, 2), Inserted::Replaced);
        let found = (0..100_000).filter(|&number| look(&store, number) == Some(number)).count();
        assert!(found as u64 <= stats.entries && found > 1000, "{found} of {stats:?}");
        let odd = store.flush(|counted: &Counted, _| counted.number % 2 == 1);
        assert!(odd > 0 && look(&store, 99_999).is_none());
        store.flush_all();
        assert_eq!(store.stats().entries, 0);
    }

    #[test]
    fn octets_in_use_are_known_while_writers_write() {
        let store = Store::<Counted>::new(1 << 20, 0);
        let empty = store.octets_used();
        for number in 0..500 {
            let _ = put(&store, number, 1);
            assert_eq!(store.octets_used(), store.stats().octets);
        }
        let writers: Vec<_> = store.shards.iter().map(Shard::lock).collect();
        assert_eq!(store.octets_used(), empty + 500 * 8 * WORDS, "no mutex is needed");
        drop(writers);
        store.flush_all();
        assert_eq!(store.octets_used(), empty);
    }

    #[test]
    fn what_is_asked_for_again_stays_longer() {
        let store = Store::<Counted>::new(1 << 20, 0);
        for number in 0..1000 {
            let _ = put(&store, number, 1);
            assert_eq!(look(&store, number), Some(number));
        }
        for number in 1000..60_000 {
            let _ = put(&store, number, 1);
            // They are used all the time.
            let _ = look(&store, number % 1000);
        }
        let kept = (0..1000).filter(|&number| look(&store, number).is_some()).count();
        assert!(kept > 900, "{kept} of 1000");
    }
}
