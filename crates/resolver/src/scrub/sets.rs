//! RRsets, taken from a message.

use std::collections::HashSet;

use wire::{Class, Message, Name, Rtype, Section, Ttl, rdata};

use crate::heap_name::HeapName;

/// An RRset, names in its data in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) owner: HeapName,
    pub(crate) rtype: Rtype,
    /// The smallest of its records (RFC 2181 §5.2).
    pub(crate) ttl: u32,
    pub(crate) records: Vec<Box<[u8]>>,
}

impl Set {
    /// Returns the data of each record.
    pub(crate) fn data(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().map(|data| &**data)
    }
}

/// Takes an RRset of class IN from a section; `Ok(None)` if it is not there, `Err` if its data
/// cannot be read.
pub(super) fn take(
    message: &Message<'_>,
    section: Section,
    owner: Name<'_>,
    rtype: Rtype,
    ttl_max: u32,
) -> Result<Option<Set>, wire::Malformed> {
    let mut set: Option<Set> = None;
    for record in message.records() {
        if record.section != section || record.rtype != rtype || record.class != Class::IN {
            continue;
        }
        if record.owner.expand()?.as_name() != owner {
            continue;
        }
        let range = record.rdata_at..record.end();
        if is_acted_on(rtype) {
            rdata::check(rtype, message.as_bytes(), range.clone())?;
        }
        let mut data = Vec::new();
        rdata::write_plain(rtype, message.as_bytes(), range, &mut data)?;
        let ttl = record.ttl().seconds().min(ttl_max);
        let set =
            set.get_or_insert_with(|| Set { owner: HeapName::new(owner), rtype, ttl, records: Vec::new() });
        set.ttl = set.ttl.min(ttl);
        set.records.push(data.into());
    }
    Ok(set.map(without_duplicates))
}

/// Returns whether what such data says decides what is done. Other data is the client's business.
const fn is_acted_on(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::A | Rtype::AAAA | Rtype::NS | Rtype::CNAME | Rtype::DNAME | Rtype::SOA)
}

/// Leaves out records that are there twice (RFC 2181 §5).
fn without_duplicates(mut set: Set) -> Set {
    if set.records.len() > 1 {
        let mut seen = HashSet::new();
        let is_first: Vec<bool> = set.records.iter().map(|record| seen.insert(record)).collect();
        let mut is_first = is_first.into_iter();
        set.records.retain(|_| is_first.next().unwrap_or(true));
    }
    set
}

/// Takes the SOA record that a denial of `name` leans on, its TTL being that of the denial; `None`
/// if it cannot be read.
pub(super) fn soa(
    message: &Message<'_>,
    name: Name<'_>,
    zone: Name<'_>,
    ttl_max: u32,
) -> Option<Option<Set>> {
    for record in message.records() {
        if record.section != Section::Authority || record.rtype != Rtype::SOA {
            continue;
        }
        let owner = record.owner.expand().ok()?;
        let owner = owner.as_name();
        // It must be of a zone that the server may speak for, and that the name is in.
        if !name.is_at_or_below(owner) || !owner.is_at_or_below(zone) {
            continue;
        }
        let Some(mut soa) = take(message, Section::Authority, owner, Rtype::SOA, ttl_max).ok()? else {
            continue;
        };
        soa.records.truncate(1);
        // RFC 2308 §5: the smaller of the SOA's own TTL and its MINIMUM.
        let minimum = soa.records.first().and_then(|data| minimum(data))?;
        soa.ttl = soa.ttl.min(minimum);
        return Some(Some(soa));
    }
    Some(None)
}

/// Returns the last field of a SOA record, whose form [`take`] has checked.
fn minimum(data: &[u8]) -> Option<u32> {
    let minimum = u32::from_be_bytes(*data.last_chunk()?);
    Some(Ttl::new(minimum).seconds())
}
