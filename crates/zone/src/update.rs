//! Changes of a zone's records: what a message of RFC 2136 makes of it, and what an operator does.
//!
//! # Limitations
//!
//! Signatures and proofs are not made anew: a zone that was signed elsewhere is better updated
//! there.

mod rrsets;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use wire::message::Record;
use wire::rtypes::is_data;
use wire::{Class, HashKey, Message, Name, NameBuf, Rcode, Rtype, Section, Ttl};

use crate::difference::{Difference, Misfit, serial_of, with_serial};
use crate::rows::{Row, Rows, identity};
use crate::zone::Zone;
pub use rrsets::{RrsetAction, RrsetChange, RrsetMistake, change_rrsets, read_data};
use wire::serial::{SerialPolicy, is_newer};

/// Records that an update may carry, so that one message cannot hold the zone for long.
const RECORDS_MAX: usize = 10_000;

/// What an update came to.
pub struct Updated {
    /// The new version.
    pub zone: Arc<Zone>,
    /// What changed.
    pub difference: Difference,
}

/// Decides whether who sent an update may change records of a type at a name; ANY stands for all
/// types.
pub type May<'a> = &'a dyn Fn(Name<'_>, Rtype) -> bool;

/// One RRset under way: TTL and data of each record.
type Set = Vec<(Ttl, Vec<u8>)>;

/// Which RRset: its name in lower case, and its type.
type SetKey = (Vec<u8>, Rtype);

/// RRsets with their names as they are written, and something for each.
type Sets<T> = BTreeMap<SetKey, (NameBuf, T)>;

/// The zone under way: RRsets that were touched.
struct Draft<'z> {
    zone: &'z Arc<Zone>,
    key: &'z HashKey,
    touched: Sets<Set>,
}

/// A record of an update, read.
struct Change {
    owner: NameBuf,
    rtype: Rtype,
    class: Class,
    ttl: Ttl,
    rdata: Vec<u8>,
}

/// Carries out an update of `zone`, all of it or nothing. `Ok(None)`: it changes nothing. An error
/// is the reply's code.
pub fn update(
    zone: &Arc<Zone>,
    key: &HashKey,
    message: &[u8],
    may: May<'_>,
    (policy, now): (SerialPolicy, u64),
) -> Result<Option<Updated>, Rcode> {
    let parsed = Message::parse(message).map_err(|_| Rcode::FORMERR)?;
    let question = parsed.question.ok_or(Rcode::FORMERR)?;
    if question.qtype != Rtype::SOA {
        return Err(Rcode::FORMERR);
    }
    if question.qclass != Class::IN || question.qname != zone.apex() {
        return Err(Rcode::NOTAUTH);
    }
    if parsed.records().count() > RECORDS_MAX {
        return Err(Rcode::REFUSED);
    }
    let mut draft = Draft { zone, key, touched: BTreeMap::new() };
    prerequisites(&draft, &parsed, message)?;
    let changes = changes(zone, &parsed, message)?;
    // RFC 2136 §3.3: who may not, learns nothing but that; the prerequisites hold already.
    for change in &changes {
        if !may(change.owner.as_name(), change.rtype) {
            return Err(Rcode::REFUSED);
        }
    }
    for change in changes {
        draft.carry_out(change)?;
    }
    // What nobody could serve is refused as a whole (a DNAME above data, say).
    draft.finish(policy, now).map_err(|_| Rcode::REFUSED)
}

fn read(record: &Record<'_>, message: &[u8]) -> Result<Change, Rcode> {
    let owner = record.owner.expand().map_err(|_| Rcode::FORMERR)?;
    let at = record.rdata_at..record.end();
    let mut rdata = Vec::new();
    if !at.is_empty() {
        wire::rdata::check(record.rtype, message, at.clone()).map_err(|_| Rcode::FORMERR)?;
        wire::rdata::write_plain(record.rtype, message, at, &mut rdata).map_err(|_| Rcode::FORMERR)?;
    }
    Ok(Change { owner, rtype: record.rtype, class: record.class, ttl: record.ttl(), rdata })
}

/// Checks what must hold before (RFC 2136 §3.2).
fn prerequisites(draft: &Draft<'_>, parsed: &Message<'_>, message: &[u8]) -> Result<(), Rcode> {
    // RRsets that must be exactly these.
    let mut exact: Sets<Vec<Vec<u8>>> = BTreeMap::new();
    for record in parsed.records().filter(|record| record.section == Section::Answer) {
        let Change { owner, rtype, class, ttl, rdata } = read(&record, message)?;
        if ttl != Ttl::ZERO {
            return Err(Rcode::FORMERR);
        }
        if !owner.as_name().is_at_or_below(draft.zone.apex()) {
            return Err(Rcode::NOTZONE);
        }
        let is_for_all = rtype == Rtype::ANY;
        match class {
            Class::ANY | Class::NONE if !rdata.is_empty() || !(is_for_all || is_data(rtype)) => {
                return Err(Rcode::FORMERR);
            }
            Class::ANY if is_for_all && !draft.is_in_use(owner.as_name()) => return Err(Rcode::NXDOMAIN),
            Class::ANY if !is_for_all && draft.set(owner.as_name(), rtype).is_empty() => {
                return Err(Rcode::NXRRSET);
            }
            Class::NONE if is_for_all && draft.is_in_use(owner.as_name()) => return Err(Rcode::YXDOMAIN),
            Class::NONE if !is_for_all && !draft.set(owner.as_name(), rtype).is_empty() => {
                return Err(Rcode::YXRRSET);
            }
            Class::ANY | Class::NONE => {}
            Class::IN if is_data(rtype) => {
                let row = Row { owner: owner.as_name(), rtype, ttl, rdata: &rdata };
                let entry = exact.entry((folded(owner.as_name()), rtype));
                entry.or_insert_with(|| (owner, Vec::new())).1.push(identity(&row));
            }
            _ => return Err(Rcode::FORMERR),
        }
    }
    for ((_, rtype), (owner, mut wanted)) in exact {
        let set = draft.set(owner.as_name(), rtype);
        let mut there: Vec<Vec<u8>> = set
            .iter()
            .map(|(ttl, rdata)| identity(&Row { owner: owner.as_name(), rtype, ttl: *ttl, rdata }))
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        there.sort_unstable();
        if wanted != there {
            return Err(Rcode::NXRRSET);
        }
    }
    Ok(())
}

/// Reads the update section; nothing is done before all of it is right (RFC 2136 §3.4.1).
fn changes(zone: &Zone, parsed: &Message<'_>, message: &[u8]) -> Result<Vec<Change>, Rcode> {
    let mut changes = Vec::new();
    for record in parsed.records().filter(|record| record.section == Section::Authority) {
        let change = read(&record, message)?;
        if !change.owner.as_name().is_at_or_below(zone.apex()) {
            return Err(Rcode::NOTZONE);
        }
        let is_right = match change.class {
            Class::IN => is_data(change.rtype) && !record.rdata.is_empty() || is_empty_type(change.rtype),
            Class::ANY => {
                record.ttl_raw == 0
                    && change.rdata.is_empty()
                    && (change.rtype == Rtype::ANY || is_data(change.rtype))
            }
            Class::NONE => record.ttl_raw == 0 && is_data(change.rtype),
            _ => false,
        };
        if !is_right {
            return Err(Rcode::FORMERR);
        }
        changes.push(change);
    }
    Ok(changes)
}

/// Returns whether records of a type may have no data at all (APL, NULL).
const fn is_empty_type(rtype: Rtype) -> bool {
    matches!(rtype.0, 10 | 42)
}

fn folded(name: Name<'_>) -> Vec<u8> {
    name.to_folded().as_bytes().to_vec()
}

impl Draft<'_> {
    /// Returns an RRset as it is now.
    fn set(&self, owner: Name<'_>, rtype: Rtype) -> Set {
        if let Some((_, set)) = self.touched.get(&(folded(owner), rtype)) {
            return set.clone();
        }
        let rows = self.zone.rows_at(self.key, owner, rtype);
        rows.iter().map(|row| (row.ttl, row.rdata.to_vec())).collect()
    }

    /// Returns the types that a name has now.
    fn types(&self, owner: Name<'_>) -> Vec<Rtype> {
        let folded = folded(owner);
        let mut types: Vec<Rtype> =
            self.zone.rows_at(self.key, owner, Rtype::ANY).iter().map(|row| row.rtype).collect();
        let touched = self.touched.keys().filter(|(name, _)| *name == folded).map(|(_, rtype)| *rtype);
        types.extend(touched);
        types.sort_unstable();
        types.dedup();
        types.retain(|rtype| !self.set(owner, *rtype).is_empty());
        types
    }

    fn is_in_use(&self, owner: Name<'_>) -> bool {
        !self.types(owner).is_empty()
    }

    fn put(&mut self, owner: Name<'_>, rtype: Rtype, set: Set) {
        self.touched.insert((folded(owner), rtype), (owner.to_buf(), set));
    }

    fn carry_out(&mut self, change: Change) -> Result<(), Rcode> {
        let owner = change.owner;
        let owner = owner.as_name();
        let is_apex = owner == self.zone.apex();
        match change.class {
            Class::IN => self.add(change),
            Class::ANY if change.rtype == Rtype::ANY => {
                for rtype in self.types(owner) {
                    if !(is_apex && matches!(rtype, Rtype::SOA | Rtype::NS)) {
                        self.put(owner, rtype, Vec::new());
                    }
                }
                Ok(())
            }
            Class::ANY => {
                // RFC 2136 §3.4.2.3: a zone keeps its SOA and its servers.
                if !(is_apex && matches!(change.rtype, Rtype::SOA | Rtype::NS)) {
                    self.put(owner, change.rtype, Vec::new());
                }
                Ok(())
            }
            _ => {
                let mut set = self.set(owner, change.rtype);
                if change.rtype == Rtype::SOA || (is_apex && change.rtype == Rtype::NS && set.len() <= 1) {
                    return Ok(());
                }
                let gone = self.identity(owner, change.rtype, &change.rdata);
                let before = set.len();
                set.retain(|(_, rdata)| self.identity(owner, change.rtype, rdata) != gone);
                if set.len() != before {
                    self.put(owner, change.rtype, set);
                }
                Ok(())
            }
        }
    }

    fn identity(&self, owner: Name<'_>, rtype: Rtype, rdata: &[u8]) -> Vec<u8> {
        identity(&Row { owner, rtype, ttl: Ttl::ZERO, rdata })
    }

    /// Adds a record (RFC 2136 §3.4.2.2).
    fn add(&mut self, change: Change) -> Result<(), Rcode> {
        let Change { owner, rtype, ttl, rdata, .. } = change;
        let owner = owner.as_name();
        if rtype == Rtype::SOA {
            let current = self.set(owner, Rtype::SOA);
            let newer = match (current.first().and_then(|(_, soa)| serial_of(soa)), serial_of(&rdata)) {
                (Some(before), Some(after)) => is_newer(after, before),
                _ => false,
            };
            if newer {
                self.put(owner, Rtype::SOA, vec![(ttl, rdata)]);
            }
            return Ok(());
        }
        let beside = |rtype: &Rtype| {
            !matches!(
                *rtype,
                Rtype::CNAME | Rtype::RRSIG | Rtype::NSEC | Rtype::KEY | Rtype::SIG | Rtype::NXT
            )
        };
        let types = self.types(owner);
        let is_alias = rtype == Rtype::CNAME;
        if (is_alias && types.iter().any(beside)) || (beside(&rtype) && types.contains(&Rtype::CNAME)) {
            return Ok(());
        }
        if rtype == Rtype::NSEC3PARAM && (owner != self.zone.apex() || types.contains(&rtype)) {
            return Err(Rcode::REFUSED);
        }
        let mut set = if is_alias || rtype == Rtype::DNAME { Vec::new() } else { self.set(owner, rtype) };
        let new = self.identity(owner, rtype, &rdata);
        set.retain(|(_, other)| self.identity(owner, rtype, other) != new);
        // RFC 2181 §5.2: all records of an RRset have one TTL; that of the newest counts.
        // Signatures have their own.
        if rtype != Rtype::RRSIG {
            for (other, _) in &mut set {
                *other = ttl;
            }
        }
        set.push((ttl, rdata));
        self.put(owner, rtype, set);
        Ok(())
    }

    /// Finds what changed, chooses the serial, and makes the new version.
    fn finish(mut self, policy: SerialPolicy, now: u64) -> Result<Option<Updated>, Misfit> {
        let (soa_ttl, soa) = self.zone.soa();
        let new_soa = self.touched.remove(&(folded(self.zone.apex()), Rtype::SOA));
        let new_soa = new_soa.and_then(|(_, set)| set.into_iter().next());
        let (mut removed, mut added) = (Rows::default(), Rows::default());
        for ((_, rtype), (owner, set)) in &self.touched {
            let before = self.zone.rows_at(self.key, owner.as_name(), *rtype);
            let old: Vec<(Vec<u8>, Ttl)> = before.iter().map(|row| (identity(&row), row.ttl)).collect();
            let new: Vec<(Vec<u8>, Ttl)> = set
                .iter()
                .map(|(ttl, rdata)| (self.identity(owner.as_name(), *rtype, rdata), *ttl))
                .collect();
            let (was, is): (HashSet<_>, HashSet<_>) = (old.iter().collect(), new.iter().collect());
            for (row, of) in before.iter().zip(&old) {
                if !is.contains(of) {
                    removed.push(&row);
                }
            }
            for ((ttl, rdata), of) in set.iter().zip(&new) {
                if !was.contains(of) {
                    added.push(&Row { owner: owner.as_name(), rtype: *rtype, ttl: *ttl, rdata });
                }
            }
        }
        if new_soa.is_none() && removed.is_empty() && added.is_empty() {
            return Ok(None);
        }
        let before = serial_of(soa).ok_or(Misfit::Serial)?;
        let new_soa = match new_soa {
            Some((ttl, soa)) => (ttl, soa.into_boxed_slice()),
            None => (soa_ttl, with_serial(soa, policy.next(before, now))),
        };
        let apex = self.zone.apex().to_buf();
        let difference = Difference { apex, old_soa: (soa_ttl, soa.into()), new_soa, removed, added };
        let zone = difference.apply_sharing(self.zone, self.key)?;
        Ok(Some(Updated { zone, difference }))
    }
}
