//! Answers of other servers: one table of the store.

mod dump;
mod entry;
mod flush;
mod key;
mod lookup;
mod recovery;
mod scopes;
mod security;
mod stamp;
mod walk;

use std::sync::atomic::AtomicU32;

use wire::HashKey;

use crate::store::{Head, Inserted, Newcomer, Stats, Store};
pub use dump::{Clocks, DumpError, Dumped, Loaded, Meaning, Progress};
pub use entry::{Entry, Refusal, Stored};
use entry::{Meta, Packed};
pub use flush::Flush;
pub use key::{Key, KeyBits, Now, Scope};
pub use lookup::{Ageing, Freshness, Hit};
use recovery::Recoveries;
pub use recovery::Recovery;
use scopes::Scopes;
pub use security::Security;
pub use stamp::{Place, Stamp};
pub use walk::EntryView;

/// What a cache may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets for everything: answers, index and bookkeeping. A cache of fewer than about two
    /// thousand holds nothing.
    pub octets_max: usize,
}

/// Answers of other servers, shared by all workers.
pub struct Cache {
    store: Store<Meta>,
    hash_key: HashKey,
    recoveries: Recoveries,
    scopes: Scopes,
    /// Until when the last failure is remembered; written once a second at most.
    failures_end: AtomicU32,
}

/// Where an entry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// An answer that came just now.
    Answer,
    /// A file from before the restart.
    File {
        /// When it was an answer.
        stored_at: Now,
        /// Whether it was used then: it goes to the main ring.
        is_proven: bool,
    },
}

impl Cache {
    /// Notes that some answer is kept for all clients with the same first `bits` of their address
    /// (family 1: IPv4, 2: IPv6); returns whether look-ups will find it.
    pub fn note_scope(&self, family: u8, bits: u8) -> bool {
        self.scopes.note(family, bits)
    }

    /// Returns for how many bits answers were kept so far, up to `most`, the longest first.
    pub fn scopes(&self, family: u8, most: u8) -> impl Iterator<Item = u8> {
        self.scopes.lengths(family, most)
    }

    /// Returns an empty cache. Memory is taken from the system as it is filled.
    pub fn new(limits: Limits, hash_key: HashKey) -> Self {
        let store = Store::new(limits.octets_max, size_of::<Self>());
        Self {
            store,
            hash_key,
            recoveries: Recoveries::default(),
            scopes: Scopes::default(),
            failures_end: AtomicU32::new(0),
        }
    }

    /// Returns an empty cache with room for so many words, so that loom comes to an end.
    #[cfg(loom)]
    pub fn tiny(words: usize, hash_key: HashKey) -> Self {
        Self {
            store: Store::tiny(words),
            hash_key,
            recoveries: Recoveries::default(),
            scopes: Scopes::default(),
            failures_end: AtomicU32::new(0),
        }
    }

    /// Returns the key that [`crate::Key::new`] needs.
    pub const fn hash_key(&self) -> &HashKey {
        &self.hash_key
    }

    /// Returns the numbers of the moment. Takes each shard's mutex for an instant.
    pub fn stats(&self) -> Stats {
        self.store.stats()
    }

    /// Returns the octets in use, as [`Stats::octets`] counts them, and takes no mutex.
    pub fn octets_used(&self) -> usize {
        self.store.octets_used()
    }

    /// Remembers `entry` under `key`, in place of what was there. Makes room as needed.
    ///
    /// Takes one shard's mutex; readers go on.
    pub fn insert(&self, key: &Key<'_>, entry: &Entry<'_>, now: Now) -> Stored {
        self.insert_from(key, entry, now, Origin::Answer)
    }

    fn insert_from(&self, key: &Key<'_>, entry: &Entry<'_>, now: Now, origin: Origin) -> Stored {
        let packed = match Packed::new(key, entry) {
            Ok(packed) => packed,
            Err(refusal) => return Stored::Refused(refusal),
        };
        let (stored_at, is_proven, only_newer) = match origin {
            Origin::Answer => (now.0, false, false),
            Origin::File { stored_at, is_proven } => (stored_at.0, is_proven, true),
        };
        let newcomer = Newcomer { hash: key.hash(), words: packed.words(), stored_at, is_proven, only_newer };
        let write = |words: &[_]| packed.write(key, stored_at, words);
        match self.store.insert(newcomer, now.0, |words| Meta::is_of(words, key), write) {
            Inserted::New => Stored::New,
            Inserted::Replaced => Stored::Replaced,
            Inserted::TooLarge => Stored::Refused(Refusal::Size),
            Inserted::Older => Stored::Refused(Refusal::Older),
        }
    }

    /// Asks memory for what a look-up of the key with this hash reads first, without waiting for
    /// it.
    ///
    /// For batches against a cache larger than the processor's: called for all queries, then
    /// [`Cache::prefetch_entry`] for all, then the look-ups; so their waits for memory overlap.
    pub fn prefetch_bucket(&self, hash: u64) {
        self.store.prefetch_bucket(hash);
    }

    /// Asks memory for what a look-up reads next: the entry.
    pub fn prefetch_entry(&self, hash: u64) {
        self.store.prefetch_entry(hash);
    }

    /// Claims the refresh of an entry; `true` for exactly one caller until it is stored anew or
    /// released.
    ///
    /// `false` also if there is no such entry (any more).
    pub fn try_claim_refresh(&self, key: &Key<'_>) -> bool {
        self.store.set_claimed(key.hash(), |words| Meta::is_of(words, key), true)
    }

    /// Keeps an answer that has expired for `stale` more seconds from now on; returns whether there
    /// is one.
    ///
    /// Takes one shard's mutex; readers go on.
    pub fn renew_stale(&self, key: &Key<'_>, now: Now, stale: u32) -> bool {
        let is_it = |words: &[_]| {
            Meta::is_of(words, key) && Meta::read(words).is_some_and(|meta| meta.stale_since(now.0).is_some())
        };
        self.store.change(key.hash(), is_it, |words| Meta::renew_stale(words, now.0, stale))
    }

    /// Gives a claim back, so that another caller may try.
    pub fn release_refresh(&self, key: &Key<'_>) {
        self.store.set_claimed(key.hash(), |words| Meta::is_of(words, key), false);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Entry, Flush, Key, KeyBits, Security};
    use wire::{Class, Flags, NameBuf, Rcode, Rtype};

    #[test]
    fn octets_in_use_are_those_of_the_numbers() {
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
        assert!(cache.octets_used() > empty + 500 * 200);
        cache.flush(Flush::All);
        assert_eq!(cache.octets_used(), empty);
    }
}
