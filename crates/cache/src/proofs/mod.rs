//! Ranges of names that do not exist, proved by NSEC and NSEC3 records, for use in answers to names
//! that nobody asked for before (RFC 8198).
//!
//! One ordered map in each shard; a zone is in one shard. A mutex protects it: only queries that no
//! cache could answer come here. The key of a range is `partition, zone, kind, owner`, so that the
//! ranges of a zone are neighbours and the one before a name is one look away. For NSEC3,
//! iterations and salt belong to the kind.
//!
//! What goes in must have been validated. Not taken are ranges that cover next to nothing, made for
//! one question ("black lies", RFC 4470, RFC 9824), and NSEC3 ranges with opt-out, which say
//! little.
//!
//! # Limitations
//!
//! Class IN only. A shard is at least 256 KiB, so that a bound of one megabyte makes four, and one
//! zone may fill a quarter of it.

mod new;
mod proof;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wire::canonical::{KEY_OCTETS_MAX as KEY_OCTETS_OF_NAME_MAX, Key};
use wire::{HashKey, Name};

use crate::depths::Depths;
use crate::rrsets::Partition;
use crate::{Now, Stats};
pub use new::{NewProof, Taken, Untaken};
pub use proof::{Coverage, Hash, Proof};
use proof::{Nsec, Nsec3, Stored};

/// Octets of the smallest shard.
const SHARD_OCTETS_MIN: usize = 256 * 1024;
const SHARDS_MAX: usize = 16;
/// Entries that a node of a map holds at most; all but the root hold five or more.
const NODE_ENTRIES_MAX: usize = 11;
const NODE_ENTRIES_MIN: usize = 5;
/// Octets of a node: entries, edges and what links it.
const NODE_OCTETS: usize =
    NODE_ENTRIES_MAX * (size_of::<Box<[u8]>>() + size_of::<Range>()) + 14 * size_of::<usize>();
/// Octets that an entry takes besides what its boxes hold.
const ENTRY_OCTETS: usize = NODE_OCTETS.div_ceil(NODE_ENTRIES_MIN);
/// Octets of a key: partition, zone, NSEC3 with its salt, and an owner's place.
const KEY_OCTETS_MAX: usize = 2 + 255 + 4 + 255 + KEY_OCTETS_OF_NAME_MAX;
/// Ranges looked at to make room for one, so that the mutex is not held for long.
const STEPS_MAX: usize = 64;
/// Ranges dropped because a newer one says that their owners are gone.
const OVERTAKEN_MAX: usize = 16;

/// Ranges, shared by all workers.
pub struct Proofs {
    shards: Box<[Mutex<Shard>]>,
    shard_octets_max: usize,
    octets_max: usize,
    hash_key: HashKey,
    /// Of zones that have ranges, so that nobody waits for a mutex to look for others.
    depths: Depths,
}

#[derive(Default)]
struct Shard {
    ranges: BTreeMap<Box<[u8]>, Range>,
    octets: usize,
    /// Where the search for what can go stopped.
    hand: Option<Box<[u8]>>,
    inserts: u64,
    evictions: u64,
}

/// One range. Where it ends stands in its record.
struct Range {
    stored: Stored,
    expires_at: u32,
    /// Whether it was used since the hand came by.
    is_used: bool,
}

impl Range {
    fn octets(&self, key: &[u8]) -> usize {
        ENTRY_OCTETS + key.len() + self.stored.octets()
    }
}

impl Shard {
    fn remove(&mut self, key: &[u8]) {
        if let Some(range) = self.ranges.remove(key) {
            self.octets -= range.octets(key);
        }
    }

    /// Drops a range that nobody used since the hand last came by, or the last one looked at.
    fn make_room(&mut self, now: Now) {
        for step in 1..=STEPS_MAX {
            let from = self.hand.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let after = self.ranges.range_mut::<[u8], _>((from, Bound::Unbounded)).next();
            let Some((key, range)) = after else {
                if self.hand.take().is_none() {
                    return;
                }
                continue;
            };
            let key = key.clone();
            let is_kept = range.is_used && range.expires_at > now.0 && step < STEPS_MAX;
            range.is_used = false;
            if !is_kept {
                self.remove(&key);
                self.evictions += 1;
            }
            self.hand = Some(key);
            if !is_kept {
                return;
            }
        }
    }
}

impl Proofs {
    /// Returns an empty table of at most so many octets. Memory is taken from the system as it is
    /// filled.
    pub fn new(octets_max: usize, hash_key: HashKey) -> Self {
        let shards = (octets_max / SHARD_OCTETS_MIN).clamp(1, SHARDS_MAX);
        let octets_base = size_of::<Self>() + shards * Self::shard_octets_base();
        Self {
            shards: (0..shards).map(|_| Mutex::new(Shard::default())).collect(),
            shard_octets_max: octets_max.saturating_sub(octets_base) / shards,
            octets_max,
            hash_key,
            depths: Depths::none(),
        }
    }

    /// Returns whether there may be ranges of zones with so many labels. Takes no mutex.
    pub fn has_depth(&self, labels: usize) -> bool {
        self.depths.has(labels)
    }

    /// Octets of a shard besides its entries: itself, a root that holds fewer than other nodes do,
    /// and a key for the hand.
    const fn shard_octets_base() -> usize {
        size_of::<Mutex<Shard>>() + NODE_OCTETS + KEY_OCTETS_MAX
    }

    /// Returns the numbers of the moment. Takes each shard's mutex for an instant.
    pub fn stats(&self) -> Stats {
        let octets_base = size_of::<Self>() + self.shards.len() * Self::shard_octets_base();
        let mut stats = Stats { octets: octets_base, octets_max: self.octets_max, ..Stats::default() };
        for shard in &self.shards {
            let shard = lock(shard);
            stats.entries += shard.ranges.len() as u64;
            stats.octets += shard.octets;
            stats.inserts += shard.inserts;
            stats.evictions += shard.evictions;
        }
        stats
    }

    /// Takes a validated NSEC or NSEC3 RRset; `unix_now` is what its signatures' times are compared
    /// with.
    pub fn put(&self, new: &NewProof<'_>, now: Now, unix_now: u32) -> Taken {
        let (parts, seconds) = match new.parts(unix_now) {
            Ok(parts) => parts,
            Err(untaken) => return Taken::No(untaken),
        };
        let prefix = prefix(new.partition, new.zone, &parts.kind);
        let key = [&prefix[..], &parts.place].concat().into_boxed_slice();
        let expires_at = now.0.saturating_add(seconds);
        let range = Range { stored: Stored::new(new), expires_at, is_used: false };
        let octets = range.octets(&key);
        if octets > self.shard_octets_max {
            return Taken::No(Untaken::Size);
        }
        self.depths.note(new.zone.label_count());
        let mut shard = self.lock(new.partition, new.zone);
        shard.remove(&key);
        // Whoever is inside of it has gone since, as this is the newer one.
        let last = [&prefix[..], &parts.end].concat();
        if *key < *last {
            let inside = (Bound::Excluded(&*key), Bound::Excluded(&*last));
            let overtaken = shard.ranges.range::<[u8], _>(inside).map(|(key, _)| key.clone());
            for key in overtaken.take(OVERTAKEN_MAX).collect::<Vec<_>>() {
                shard.remove(&key);
            }
        }
        while shard.octets + octets > self.shard_octets_max {
            shard.make_room(now);
        }
        shard.octets += octets;
        shard.inserts += 1;
        shard.ranges.insert(key, range);
        Taken::Yes
    }

    /// Copies to `out` the NSEC RRset of a zone that is at a name or covers it, and returns a view
    /// of it. One that covers it from a delegation or a DNAME above says nothing and is not
    /// returned (RFC 6840 §4.1).
    pub fn nsec<'b>(
        &self,
        partition: Partition,
        zone: Name<'_>,
        name: Name<'_>,
        now: Now,
        out: &'b mut Vec<u8>,
    ) -> Option<Proof<'b>> {
        let prefix = prefix(partition, zone, &[0]);
        let wanted = Key::new(name.as_bytes());
        let key = [&prefix[..], wanted.as_bytes()].concat();
        let mut shard = self.lock(partition, zone);
        let (found, range) = before(&mut shard, &prefix, &key)?;
        let is_there = *found == *key;
        let nsec = Nsec::parse(range.stored.rdata())?;
        if !is_there && !nsec.covers(range.stored.owner()?, zone, name, wanted.as_bytes()) {
            return None;
        }
        range.copy(if is_there { Coverage::Matches } else { Coverage::Covers }, now, out)
    }

    /// Copies to `out` the NSEC3 RRset of a zone whose owner is a hash or whose range covers it.
    /// `iterations` and `salt` are what the name was hashed with.
    pub fn nsec3<'b>(
        &self,
        partition: Partition,
        zone: Name<'_>,
        (iterations, salt): (u16, &[u8]),
        hash: &Hash,
        now: Now,
        out: &'b mut Vec<u8>,
    ) -> Option<Proof<'b>> {
        let prefix = prefix(partition, zone, &new::kind_of_nsec3(iterations, salt));
        let key = [&prefix[..], hash].concat();
        let mut shard = self.lock(partition, zone);
        let is_there = shard.ranges.contains_key(&*key);
        // What comes before the first owner is covered by the last.
        let above = [&prefix[..], &[u8::MAX; 21]].concat();
        let from = if before(&mut shard, &prefix, &key).is_some() { key } else { above };
        let (_, range) = before(&mut shard, &prefix, &from)?;
        let nsec3 = Nsec3::parse(range.stored.rdata())?;
        if !is_there && !nsec3.covers(&new::hash_of(range.stored.owner()?)?, hash) {
            return None;
        }
        range.copy(if is_there { Coverage::Matches } else { Coverage::Covers }, now, out)
    }

    /// Copies to `out` the salt that names of a zone are hashed with, and returns the iterations
    /// and it; `None` if no NSEC3 range of the zone is known.
    pub fn nsec3_parameters<'b>(
        &self,
        partition: Partition,
        zone: Name<'_>,
        now: Now,
        out: &'b mut Vec<u8>,
    ) -> Option<(u16, &'b [u8])> {
        let prefix = prefix(partition, zone, &[1]);
        let shard = self.lock(partition, zone);
        let mut ranges = shard.ranges.range::<[u8], _>((Bound::Included(&*prefix), Bound::Unbounded));
        let (_, range) = ranges
            .by_ref()
            .take_while(|(key, _)| key.starts_with(&prefix))
            .take(STEPS_MAX)
            .find(|(_, range)| range.expires_at > now.0)?;
        let nsec3 = Nsec3::parse(range.stored.rdata())?;
        out.clear();
        out.extend_from_slice(nsec3.salt);
        let iterations = nsec3.iterations;
        Some((iterations, out.as_slice()))
    }

    /// Forgets what is known of a zone and all below it, in all partitions; returns how many ranges
    /// that were.
    pub fn flush(&self, zone: Name<'_>) -> usize {
        let mut count = 0;
        for shard in &self.shards {
            let mut shard = lock(shard);
            let is_in = |range: &Range| range.stored.owner().is_some_and(|owner| owner.is_at_or_below(zone));
            let keys: Vec<_> =
                shard.ranges.iter().filter(|(_, range)| is_in(range)).map(|(key, _)| key.clone()).collect();
            count += keys.len();
            for key in keys {
                shard.remove(&key);
            }
        }
        count
    }

    /// Forgets what says something of a name, in all partitions; returns how many ranges that were.
    /// Whether a hashed range says something of it nobody finds out: those of all zones that the
    /// name is in are forgotten.
    pub fn flush_name(&self, name: Name<'_>) -> usize {
        let wanted = Key::new(name.as_bytes());
        let mut count = 0;
        for shard in &self.shards {
            let mut shard = lock(shard);
            let speaks_of = |key: &[u8], range: &Range| {
                let Some((zone, place)) = zone_and_place(key) else { return false };
                let Some(owner) = range.stored.owner() else { return false };
                let Some(place) = place else { return name.is_at_or_below(zone) };
                let nsec = Nsec::parse(range.stored.rdata());
                owner == name
                    || place < wanted.as_bytes()
                        && nsec.is_some_and(|nsec| nsec.covers(owner, zone, name, wanted.as_bytes()))
            };
            let keys: Vec<_> = shard
                .ranges
                .iter()
                .filter(|(key, range)| speaks_of(key, range))
                .map(|(key, _)| key.clone())
                .collect();
            count += keys.len();
            for key in keys {
                shard.remove(&key);
            }
        }
        count
    }

    fn lock(&self, partition: Partition, zone: Name<'_>) -> MutexGuard<'_, Shard> {
        let hash = self.hash_key.hash(zone, u64::from(partition.0));
        let number = ((u128::from(hash) * self.shards.len() as u128) >> 64) as usize;
        // There is one at least, and the number is below how many there are.
        lock(self.shards.get(number).unwrap_or(&self.shards[0]))
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Range {
    /// Copies the RRset to `out`, unless it has expired.
    fn copy<'b>(&mut self, coverage: Coverage, now: Now, out: &'b mut Vec<u8>) -> Option<Proof<'b>> {
        let ttl = self.expires_at.checked_sub(now.0).filter(|&ttl| ttl > 0)?;
        self.is_used = true;
        self.stored.copy(coverage, ttl, out)
    }
}

/// Returns the range whose owner is at `key` or before it, among those that begin with `prefix`.
fn before<'s>(shard: &'s mut Shard, prefix: &[u8], key: &[u8]) -> Option<(&'s [u8], &'s mut Range)> {
    let up_to = (Bound::Unbounded, Bound::Included(key));
    let (found, range) = shard.ranges.range_mut::<[u8], _>(up_to).next_back()?;
    found.starts_with(prefix).then_some((&**found, range))
}

/// Returns the zone of a range by its key, and its owner's place among names; `None` for that if
/// names are hashed.
fn zone_and_place(key: &[u8]) -> Option<(Name<'_>, Option<&[u8]>)> {
    let (zone, rest) = Name::parse(key.get(2..)?).ok()?;
    let (&kind, place) = rest.split_first()?;
    Some((zone, (kind == 0).then_some(place)))
}

/// Returns what the keys of a zone's ranges of one kind begin with. No two such beginnings begin
/// alike: a name ends with its root label, and a kind knows its length.
fn prefix(partition: Partition, zone: Name<'_>, kind: &[u8]) -> Vec<u8> {
    let zone = zone.to_folded();
    [&partition.0.to_be_bytes(), zone.as_bytes(), kind].concat()
}
