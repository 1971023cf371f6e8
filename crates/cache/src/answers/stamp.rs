//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A word beside an answer in which its reader notes what he found out about it, so that he need
//! not find it out again.

use super::Cache;
use super::entry::Meta;
use super::key::Key;
use crate::store::Slot;

/// What a reader notes beside an answer that was stored with room for it
/// ([`Entry::STAMPED`](crate::Entry::STAMPED)). An answer has none when it is stored, and takes the
/// one that it has along when it moves within the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(pub(super) u64);

impl Stamp {
    /// No stamp.
    pub const NONE: Self = Self(0);

    /// Returns the stamp that is this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Where an answer was found. No other one is ever there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub(super) Slot);

impl Cache {
    /// Writes a stamp beside an answer if it has room for one and is still where it was found;
    /// returns whether it is there.
    ///
    /// Does nothing while somebody else writes to the shard: it waits for nobody.
    pub fn stamp(&self, key: &Key<'_>, place: Place, stamp: Stamp) -> bool {
        let Place(slot) = place;
        self.store.try_change(key.hash(), slot, |words| Meta::stamp(words, stamp.0))
    }
}
