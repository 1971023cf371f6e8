//! Changes of whole RRsets, as operators make them: what is wrong is said, and nothing is left out
//! silently as in RFC 2136.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use wire::rtypes::is_data;
use wire::serial::{SerialPolicy, is_newer};
use wire::{HashKey, Name, NameBuf, Rtype, Ttl};

use super::{Draft, Updated};
use crate::difference::{Misfit, serial_of, with_serial};
use crate::master::{self, NameForm, NoIncludes, Options};
use crate::zone::Zone;

/// What becomes of an RRset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RrsetAction {
    /// It has these records and no others; none take it away.
    Replace,
    /// It gets these records besides those that it has.
    Extend,
    /// It loses these records.
    Prune,
}

/// A change of one RRset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RrsetChange {
    /// Its owner.
    pub owner: NameBuf,
    /// Its type.
    pub rtype: Rtype,
    /// What becomes of it.
    pub action: RrsetAction,
    /// The TTL of the RRset; of no matter where nothing is added.
    pub ttl: Ttl,
    /// The data of records, names in full.
    pub records: Vec<Vec<u8>>,
}

/// Why RRsets cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RrsetMistake {
    /// The owner of the change with this number is not in the zone.
    OutOfZone(usize),
    /// Nobody but a signer makes records of this type, or no zone has any.
    Type(usize),
    /// Two changes are about the same RRset.
    Twice(usize),
    /// The SOA, and the name servers of a zone, cannot be taken away.
    Needed(usize),
    /// There is exactly one SOA, at the apex.
    Soa(usize),
    /// What would come of all changes is not a zone that can be served.
    Misfit(Misfit),
}

impl RrsetMistake {
    /// Returns the number of the change that is wrong.
    pub const fn number(&self) -> Option<usize> {
        match *self {
            Self::OutOfZone(at) | Self::Type(at) | Self::Twice(at) | Self::Needed(at) | Self::Soa(at) => {
                Some(at)
            }
            Self::Misfit(_) => None,
        }
    }
}

impl fmt::Display for RrsetMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfZone(_) => "the name is not in the zone; names are in full",
            Self::Type(_) => "records of this type are not changed by hand",
            Self::Twice(_) => "this RRset is changed twice",
            Self::Needed(_) => "a zone keeps its SOA record and at least one NS record at its apex",
            Self::Soa(_) => "a zone has exactly one SOA record, at its apex",
            Self::Misfit(misfit) => return misfit.fmt(f),
        })
    }
}

/// Changes RRsets of `zone`: all of them, or none. `Ok(None)`: it is like that already.
///
/// Secondaries take only what is newer: the version gets the next serial by `policy`, unless a new
/// SOA has a newer one. `now` is in Unix seconds.
pub fn change_rrsets(
    zone: &Arc<Zone>,
    key: &HashKey,
    changes: &[RrsetChange],
    (policy, now): (SerialPolicy, u64),
) -> Result<Option<Updated>, RrsetMistake> {
    let mut draft = Draft { zone, key, touched: BTreeMap::new() };
    for (at, change) in changes.iter().enumerate() {
        let owner = change.owner.as_name();
        if !owner.is_at_or_below(zone.apex()) {
            return Err(RrsetMistake::OutOfZone(at));
        }
        if !is_data(change.rtype) || is_made_by_signers(change.rtype) {
            return Err(RrsetMistake::Type(at));
        }
        if draft.touched.contains_key(&(super::folded(owner), change.rtype)) {
            return Err(RrsetMistake::Twice(at));
        }
        draft.change(at, change, (policy, now))?;
    }
    draft.finish(policy, now).map_err(RrsetMistake::Misfit)
}

/// Returns whether nobody but who signs a zone makes records of a type.
const fn is_made_by_signers(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC3PARAM)
}

impl Draft<'_> {
    fn change(
        &mut self,
        at: usize,
        change: &RrsetChange,
        (policy, now): (SerialPolicy, u64),
    ) -> Result<(), RrsetMistake> {
        let owner = change.owner.as_name();
        let is_apex = owner == self.zone.apex();
        let identity = |rdata: &[u8]| self.identity(owner, change.rtype, rdata);
        let given: HashSet<Vec<u8>> = change.records.iter().map(|rdata| identity(rdata)).collect();
        let mut set = match change.action {
            RrsetAction::Replace => Vec::new(),
            RrsetAction::Extend | RrsetAction::Prune => self.set(owner, change.rtype),
        };
        set.retain(|(_, rdata)| !given.contains(&identity(rdata)));
        if change.action != RrsetAction::Prune {
            // RFC 2181 §5.2: all records of an RRset have one TTL.
            for (ttl, _) in &mut set {
                *ttl = change.ttl;
            }
            // The same record may stand there in other words (RFC 2136 §1.1.1).
            let mut known = HashSet::new();
            let new = change.records.iter().filter(|rdata| known.insert(identity(rdata)));
            set.extend(new.map(|rdata| (change.ttl, rdata.clone())));
        }
        if is_apex && matches!(change.rtype, Rtype::SOA | Rtype::NS) && set.is_empty() {
            return Err(RrsetMistake::Needed(at));
        }
        if change.rtype != Rtype::SOA {
            self.put(owner, change.rtype, set);
        } else if let Some(soa) = self.soa(at, is_apex, set, (policy, now))? {
            self.put(owner, Rtype::SOA, vec![soa]);
        }
        Ok(())
    }

    /// Returns the new SOA with a serial that is newer; `None` if it is the present one, perhaps
    /// with an older serial.
    fn soa(
        &self,
        at: usize,
        is_apex: bool,
        mut set: Vec<(Ttl, Vec<u8>)>,
        (policy, now): (SerialPolicy, u64),
    ) -> Result<Option<(Ttl, Vec<u8>)>, RrsetMistake> {
        let (Some((ttl, data)), true, true) = (set.pop(), set.is_empty(), is_apex) else {
            return Err(RrsetMistake::Soa(at));
        };
        let (present_ttl, present) = self.zone.soa();
        let (Some(before), Some(after)) = (serial_of(present), serial_of(&data)) else {
            return Err(RrsetMistake::Soa(at));
        };
        if is_newer(after, before) {
            return Ok(Some((ttl, data)));
        }
        if ttl == present_ttl && *with_serial(&data, before) == *present {
            return Ok(None);
        }
        Ok(Some((ttl, with_serial(&data, policy.next(before, now)).into_vec())))
    }
}

/// Reads the data of one record as a master file has it (RFC 1035 §5.1): `10 mail.example.org`.
/// Names are in full, with a dot at the end or without.
///
/// # Errors
///
/// What is wrong, with the octet where it is, from 0.
pub fn read_data(rtype: Rtype, text: &str) -> Result<Vec<u8>, (usize, String)> {
    let owner = Name::ROOT;
    if let Some(at) = text.find(['\n', '\r']) {
        return Err((at, "the data of a record stands on one line".to_owned()));
    }
    let before = format!(". 0 IN {rtype} ");
    let line = format!("{before}{text}");
    let mut data = None;
    let options = Options { names: NameForm::Idn, ..Options::of_zone(owner) };
    let outcome = master::read("", line.as_bytes(), &options, &mut NoIncludes, |entry| {
        data = Some(entry.rdata.to_vec());
    });
    match (outcome.mistakes.into_iter().next(), data) {
        (None, Some(data)) => Ok(data),
        (Some(mistake), _) => {
            Err((mistake.at.start.saturating_sub(before.len()).min(text.len()), mistake.to_string()))
        }
        (None, None) => Err((0, "there is no record".to_owned())),
    }
}
