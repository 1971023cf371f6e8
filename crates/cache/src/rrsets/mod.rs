//! RRsets, negative answers and delegations of other servers, each for itself: what a resolver
//! works with. Finished answers are in [`Cache`](crate::Cache).
//!
//! One table of the store: readers never wait, and the bound in octets holds. An RRset takes 32
//! octets, its name, its data with two octets more for each record, and an eighth of that for the
//! index.
//!
//! What comes in is weighed against what is there (`put`); what fetched with CD brought is apart
//! from the rest.

mod entry;
mod flush;
mod key;
mod look;
mod negative;
mod put;
mod rank;

use wire::HashKey;

use crate::depths::Depths;
use crate::store::{Stats, Store};
pub(crate) use entry::{EntryHead, Facts, Kind, Life, words_for, write};
pub use flush::RrsetFlush;
pub(crate) use key::partition_of;
pub use key::{Partition, RrsetKey};
pub use look::{Found, Octets, Rrset};
pub use negative::{Negative, Reference, References};
pub use put::{NewNegative, NewRrset, Put, Renewal};
pub use rank::Rank;

/// What a table may take, and for how long bogus data stays in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RrsetLimits {
    /// Octets for everything.
    pub octets_max: usize,
    /// Seconds for which data is kept that was bogus for the first time.
    pub bogus_seconds_first: u32,
    /// Seconds for which bogus data is kept at most; each time in a row doubles them.
    pub bogus_seconds_max: u32,
}

impl RrsetLimits {
    /// Returns limits with so many octets, and a minute at most for bogus data.
    pub const fn with_octets(octets_max: usize) -> Self {
        Self { octets_max, bogus_seconds_first: 5, bogus_seconds_max: 60 }
    }
}

/// The table, shared by all workers.
pub struct Rrsets {
    pub(crate) store: Store<EntryHead>,
    hash_key: HashKey,
    limits: RrsetLimits,
    /// Of cuts.
    depths: Depths,
    /// Of DNAME records.
    dname_depths: Depths,
}

impl Rrsets {
    /// Returns an empty table. Memory is taken from the system as it is filled.
    pub fn new(limits: RrsetLimits, hash_key: HashKey) -> Self {
        Self::with_store(Store::new(limits.octets_max, size_of::<Self>()), limits, hash_key)
    }

    /// Returns an empty table with room for so many words, so that loom comes to an end.
    #[cfg(loom)]
    pub fn tiny(words: usize, hash_key: HashKey) -> Self {
        Self::with_store(Store::tiny(words), RrsetLimits::with_octets(usize::MAX), hash_key)
    }

    fn with_store(store: Store<EntryHead>, limits: RrsetLimits, hash_key: HashKey) -> Self {
        Self { store, hash_key, limits, depths: Depths::none(), dname_depths: Depths::none() }
    }

    /// Returns the key that [`RrsetKey::new`] needs.
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

    pub(crate) fn note_depth(&self, labels: usize) {
        self.depths.note(labels);
    }

    /// Returns whether the table may have cuts with so many labels.
    pub(crate) fn has_depth(&self, labels: usize) -> bool {
        self.depths.has(labels)
    }

    /// Returns whether the table may have DNAME records whose owners have so many labels.
    pub fn has_dname_depth(&self, labels: usize) -> bool {
        self.dname_depths.has(labels)
    }
}
