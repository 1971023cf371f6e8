//! Delegations: which servers a parent names for a zone, and until when.
//!
//! A cut is an entry of the table of RRsets, so that one bound holds for both. It has what the
//! parent said (NS names, glue that is good for this delegation alone, DS records or the proof that
//! there are none) and beside it the NS names that the zone itself gives. A zone of two servers
//! with glue takes 80 octets, a signed one 40 more.
//!
//! A cut ends with the TTL that the parent gave, and no later than the cut it was found under: if
//! a parent takes a delegation back, all below it is gone when that delegation's own time is up,
//! however deep it goes and whatever its servers say (phoenix domains, NDSS 2023).

mod layout;

use std::cell::Cell;
use std::net::IpAddr;

use wire::Name;

use crate::rrsets::{EntryHead, Facts, Kind, Life, Partition, Put, Rank, RrsetKey, Rrsets, words_for, write};
use crate::store::{Head, Inserted, Newcomer};
use crate::{Now, Security};
pub use layout::{Addresses, Cut, CutServers, Ds, DsRecords};

/// A server that the parent names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewCutServer<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// Its glue: up to fifteen of each family.
    pub addresses: &'a [IpAddr],
}

/// Whether the zone is signed, as far as the parent tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewDs<'a> {
    /// Nobody asked.
    #[default]
    Unknown,
    /// The parent proved that there are no DS records.
    Unsigned,
    /// The data of the DS records, checked.
    Signed(&'a [&'a [u8]]),
}

/// A delegation that came.
#[derive(Clone, Copy, Debug)]
pub struct NewCut<'a> {
    /// The servers that the parent names.
    pub servers: &'a [NewCutServer<'a>],
    /// The names that the zone itself gives; none if nobody asked.
    pub child: &'a [Name<'a>],
    /// Whether the zone is signed.
    pub ds: NewDs<'a>,
    /// Seconds that the parent gave.
    pub ttl: u32,
    /// The end of the cut that the parent's servers were found by; [`Now`] of `u32::MAX` if these
    /// are known by configuration.
    pub parent_ends_at: Now,
}

/// Servers, names and DS records that a cut may have each.
const PARTS_MAX: usize = u8::MAX as usize;

impl Rrsets {
    /// Stores a delegation. It ends with its TTL, with the cut it was found under, or when one for
    /// this zone that is there already does, whichever is first.
    pub fn put_cut(&self, zone: Name<'_>, partition: Partition, new: &NewCut<'_>, now: Now) -> Put {
        let is_too_much = new.servers.len() > PARTS_MAX || new.child.len() > PARTS_MAX;
        if is_too_much || new.servers.is_empty() {
            return Put::Refused;
        }
        let zone = zone.to_folded();
        // Nearly all are smaller.
        let mut data = Vec::with_capacity(256);
        // The closest cut above, if it is still there, knows best.
        let above = zone
            .as_name()
            .parent()
            .and_then(|parent| self.closest_by(parent, partition, |key| self.head(key, now)));
        let bound = above.map_or(u32::MAX, |head| head.expires_at).min(new.parent_ends_at.0);
        let expires_at = now.0.saturating_add(new.ttl).min(bound);
        if expires_at <= now.0 {
            return Put::Refused;
        }
        if layout::write(zone.as_name(), new, &mut data).is_none() {
            return Put::Refused;
        }
        let labels = zone.as_name().label_count();
        self.insert_cut(zone.as_name(), partition, &data, Life { stored_at: now.0, expires_at }, labels)
    }

    fn insert_cut(
        &self,
        zone: Name<'_>,
        partition: Partition,
        data: &[u8],
        life: Life,
        labels: usize,
    ) -> Put {
        let key = RrsetKey::cut(self.hash_key(), zone, partition);
        let Some(words) = words_for(&key, data.len()) else { return Put::Refused };
        let facts = Facts {
            kind: Kind::Cut,
            rank: Rank::Additional,
            security: Security::Unchecked,
            signer_labels: 0,
            labels_signed: 0,
            records: 0,
            signatures: 0,
            times_bogus: 0,
        };
        let expires_at = Cell::new(life.expires_at);
        let newcomer = Newcomer {
            hash: key.hash(),
            words,
            stored_at: life.stored_at,
            is_proven: false,
            only_newer: false,
        };
        self.note_depth(labels);
        let inserted = self.store.insert_if(
            newcomer,
            life.stored_at,
            |words| EntryHead::of(words, &key).is_some(),
            |words| {
                let Some(old) = EntryHead::of(words, &key) else { return true };
                if old.is_expired(life.stored_at) {
                    return true;
                }
                expires_at.set(life.expires_at.min(old.expires_at));
                let mut known = Vec::new();
                let is_same =
                    old.copy_to(words, &mut known).is_some() && known.get(old.name_octets()..) == Some(data);
                !is_same || expires_at.get() < old.expires_at
            },
            |words| {
                let life = Life { expires_at: expires_at.get(), ..life };
                write(words, &key, life, facts, data.len(), |pen| pen.put(data));
            },
        );
        match inserted {
            Inserted::New | Inserted::Replaced => Put::Stored { ttl: expires_at.get() - life.stored_at },
            Inserted::Older => Put::Kept,
            Inserted::TooLarge => Put::Refused,
        }
    }

    /// Copies the delegation that encloses a name most closely (that of the name itself, if there
    /// is one) to `out` and returns a view of it.
    ///
    /// Who looks for the servers that know the DS records of a name asks with its parent.
    pub fn closest_cut<'b>(
        &self,
        name: Name<'_>,
        partition: Partition,
        now: Now,
        out: &'b mut Vec<u8>,
    ) -> Option<Cut<'b>> {
        let folded = name.to_folded();
        let (head, _) = self.closest(folded.as_name(), partition, now, out)?;
        layout::view(&head, now, out)
    }

    /// Copies the delegation at a name to `out` and returns a view of it.
    pub fn cut<'b>(
        &self,
        zone: Name<'_>,
        partition: Partition,
        now: Now,
        out: &'b mut Vec<u8>,
    ) -> Option<Cut<'b>> {
        let folded = zone.to_folded();
        let key = RrsetKey::cut(self.hash_key(), folded.as_name(), partition);
        let (head, _) = self.copy(&key, now, out)?;
        layout::view(&head, now, out)
    }

    /// Asks memory for what [`Rrsets::closest_cut`] reads first of a lower-case name, without
    /// waiting for it.
    pub fn prefetch_cuts(&self, name: Name<'_>, partition: Partition) {
        let mut suffix = Some(name);
        for labels in (1..=name.label_count()).rev() {
            let Some(zone) = suffix else { break };
            if self.has_depth(labels) {
                self.prefetch(&RrsetKey::cut(self.hash_key(), zone, partition));
            }
            suffix = zone.parent();
        }
    }

    /// Looks for cuts from the longest suffix of a lower-case name to the root, at such lengths
    /// only as there are cuts of.
    fn closest(
        &self,
        name: Name<'_>,
        partition: Partition,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Option<(EntryHead, bool)> {
        self.closest_by(name, partition, |key| self.copy(key, now, out))
    }

    /// Does the same, with `look` at each of them.
    fn closest_by<T>(
        &self,
        name: Name<'_>,
        partition: Partition,
        mut look: impl FnMut(&RrsetKey<'_>) -> Option<T>,
    ) -> Option<T> {
        let mut suffix = Some(name);
        let mut labels = name.label_count();
        while let Some(zone) = suffix {
            if self.has_depth(labels) {
                let key = RrsetKey::cut(self.hash_key(), zone, partition);
                if let Some(found) = look(&key) {
                    return Some(found);
                }
            }
            suffix = zone.parent();
            labels = labels.saturating_sub(1);
        }
        None
    }
}
