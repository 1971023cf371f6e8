//! What was learned before, and what is learned now.

use std::sync::Arc;

use cache::rrsets::{
    Found, Negative, NewNegative, NewRrset, Partition, Rank, Reference, Renewal, Rrset, RrsetKey, Rrsets,
};
use cache::servers::Servers;
use cache::{Now, Security};
use wire::{Class, Name, Rtype};

use crate::delegation::Delegation;
use crate::heap_name::HeapName;
use crate::scrub::{Answer, Denial, Referral, Set};

/// The tables that all workers share.
#[derive(Clone)]
pub struct Tables {
    /// RRsets, negative answers and delegations.
    pub rrsets: Arc<Rrsets>,
    /// Facts about servers.
    pub servers: Arc<Servers>,
}

/// What the tables know of a question.
pub(crate) enum Known {
    Data(Set),
    /// The name is an alias: its CNAME RRset.
    Alias(Set),
    NoData(Set),
    NoName(Set),
}

/// One resolver's part of the tables, and the room in which entries are read.
pub(crate) struct Memory {
    pub(crate) tables: Tables,
    partition: Partition,
    room: Vec<u8>,
}

impl Memory {
    pub(crate) const fn new(tables: Tables, partition: Partition) -> Self {
        Self { tables, partition, room: Vec::new() }
    }

    /// Returns what is known of a question.
    pub(crate) fn look(&mut self, name: &HeapName, rtype: Rtype, now: Now) -> Option<Known> {
        if let Some(known) = self.look_at(name, rtype, now) {
            return Some(known);
        }
        if rtype == Rtype::CNAME {
            return None;
        }
        match self.look_at(name, Rtype::CNAME, now)? {
            Known::Data(cname) => Some(Known::Alias(cname)),
            // That there is no alias says nothing about other types.
            Known::Alias(_) | Known::NoData(_) | Known::NoName(_) => None,
        }
    }

    fn look_at(&mut self, name: &HeapName, rtype: Rtype, now: Now) -> Option<Known> {
        let rrsets = &self.tables.rrsets;
        let folded = name.as_name().to_folded();
        let key = RrsetKey::new(rrsets.hash_key(), &folded, rtype, Class::IN, self.partition);
        let key = match rrsets.look(&key, now, &mut self.room) {
            Some(Found::Rrset(rrset)) => return Some(Known::Data(set(&rrset))),
            Some(_) => key,
            None => key.without_type(rrsets.hash_key()),
        };
        let (denial, is_of_name) = match rrsets.look(&key, now, &mut self.room)? {
            Found::Rrset(_) => return None,
            Found::NoData(negative) => (negative, false),
            Found::NoName(negative) => (negative, true),
        };
        let soa = soa_of(rrsets, self.partition, &denial, now)?;
        Some(if is_of_name { Known::NoName(soa) } else { Known::NoData(soa) })
    }

    /// Returns the closest delegation at or above a name.
    pub(crate) fn delegation(&mut self, name: Name<'_>, now: Now) -> Option<Delegation> {
        let cut = self.tables.rrsets.closest_cut(name, self.partition, now, &mut self.room)?;
        Some(Delegation::of(&cut))
    }

    /// Keeps what a server of a zone answered.
    pub(crate) fn keep_answer(&self, answer: &Answer, qtype: Rtype, now: Now) {
        for set in &answer.sets {
            self.keep(set, Rank::Answer, now);
        }
        if let Some(denial) = &answer.denial {
            self.keep_denial(denial, qtype, now);
        }
    }

    fn keep(&self, set: &Set, rank: Rank, now: Now) {
        let rrsets = &self.tables.rrsets;
        let records: Vec<&[u8]> = set.data().collect();
        let owner = set.owner.as_name().to_folded();
        let key = RrsetKey::new(rrsets.hash_key(), &owner, set.rtype, Class::IN, self.partition);
        let new = NewRrset {
            records: &records,
            signatures: &[],
            ttl: set.ttl,
            rank,
            security: Security::Unchecked,
            signer_labels: 0,
            labels_signed: 0,
            renewal: Renewal::No,
        };
        let _ = rrsets.put(&key, &new, now);
    }

    /// Keeps a denial with the SOA record that it leans on; without one it is not kept (RFC 2308
    /// §5).
    fn keep_denial(&self, denial: &Denial, qtype: Rtype, now: Now) {
        let Some(soa) = &denial.soa else { return };
        self.keep(soa, Rank::Authority, now);
        let rrsets = &self.tables.rrsets;
        let name = denial.name.as_name().to_folded();
        let key = RrsetKey::new(rrsets.hash_key(), &name, qtype, Class::IN, self.partition);
        let key = if denial.is_of_name { key.without_type(rrsets.hash_key()) } else { key };
        let mark = rrsets.reference_mark(soa.data());
        let reference = Reference { owner: soa.owner.as_name(), rtype: Rtype::SOA, mark };
        let new = NewNegative {
            references: &[reference],
            ttl: soa.ttl,
            rank: Rank::Answer,
            security: Security::Unchecked,
            signer_labels: 0,
            renewal: Renewal::No,
        };
        let _ = rrsets.put_negative(&key, &new, now);
    }

    /// Keeps a delegation and returns it. It ends with its TTL, or with the one it was found under.
    pub(crate) fn keep_referral(&self, referral: Referral, parent_ends_at: Now, now: Now) -> Delegation {
        let Referral { zone, servers, ttl } = referral;
        let ends_at = Now(now.0.saturating_add(ttl)).min(parent_ends_at);
        let delegation = Delegation { zone, servers, ends_at };
        delegation.with_cut(ttl, parent_ends_at, |cut| {
            let _ = self.tables.rrsets.put_cut(delegation.zone.as_name(), self.partition, cut, now);
        });
        delegation
    }
}

/// Copies an RRset.
fn set(rrset: &Rrset<'_>) -> Set {
    Set {
        owner: HeapName::new(rrset.owner),
        rtype: rrset.rtype,
        ttl: rrset.ttl,
        records: rrset.records().map(Into::into).collect(),
    }
}

/// Returns the SOA record that a denial leans on, if it still says the same.
fn soa_of(rrsets: &Rrsets, partition: Partition, denial: &Negative<'_>, now: Now) -> Option<Set> {
    let reference = denial.references().find(|reference| reference.rtype == Rtype::SOA)?;
    let owner = reference.owner.as_name().to_folded();
    let key = RrsetKey::new(rrsets.hash_key(), &owner, Rtype::SOA, Class::IN, partition);
    let mut room = Vec::new();
    match rrsets.look(&key, now, &mut room)? {
        Found::Rrset(soa) if rrsets.reference_mark(soa.records()) == reference.mark => {
            Some(Set { ttl: soa.ttl.min(denial.ttl()), ..set(&soa) })
        }
        _ => None,
    }
}
