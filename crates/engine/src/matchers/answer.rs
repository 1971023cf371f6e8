//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What is in the answer there is.

use std::net::IpAddr;

use wire::message::{Record, records};
use wire::{Folded, Header, Rtype};

use super::Facts;
use crate::query::names::Sought;

/// Walks the records of the answer section until `f` returns something.
fn walk<T>(facts: &Facts<'_>, mut f: impl FnMut(&Record<'_>) -> Option<T>) -> Option<T> {
    let shape = facts.shape()?;
    let [answers, ..] = shape.counts;
    let bytes = facts.message.get(..shape.body_at + shape.octets)?;
    let header = Header { questions: 1, answers, ..Header::default() };
    for record in records(bytes, shape.body_at, &header) {
        // Ends: at most `answers` records; the first that is malformed ends the walk.
        if let Some(found) = f(&record.ok()?) {
            return Some(found);
        }
    }
    None
}

/// Returns whether the answer section has a record of a type that `f` wants.
pub(super) fn has_type(facts: &Facts<'_>, f: impl Fn(Rtype) -> bool) -> bool {
    walk(facts, |record| f(record.rtype).then_some(())).is_some()
}

/// Returns the first address in the answer section that `f` wants.
pub(super) fn address(facts: &Facts<'_>, mut f: impl FnMut(IpAddr) -> bool) -> Option<IpAddr> {
    walk(facts, |record| {
        let address = match record.rtype {
            Rtype::A => <[u8; 4]>::try_from(record.rdata).ok().map(IpAddr::from),
            Rtype::AAAA => <[u8; 16]>::try_from(record.rdata).ok().map(IpAddr::from),
            _ => None,
        };
        address.filter(|&address| f(address))
    })
}

/// An alias in the answer section.
#[derive(Clone, Copy)]
pub(crate) struct Alias {
    /// How many records there are up to its end.
    pub(crate) records: u16,
    /// Where its data starts.
    pub(crate) rdata_at: usize,
    /// Where it ends; its signatures, if they stand behind it, belong to it.
    pub(crate) end: usize,
}

/// Returns what `f` says of the first target of a CNAME in the answer section of which it says
/// something, with the record.
pub(super) fn cname<T>(facts: &Facts<'_>, f: impl Fn(&Sought<'_>) -> Option<T>) -> Option<(Alias, T)> {
    let (mut records, mut found) = (0, None);
    walk(facts, |record| {
        records += 1;
        let end = record.end();
        if let Some((alias, _)) = &mut found {
            if !is_signature_of_alias(record) {
                return Some(());
            }
            *alias = Alias { records, end, ..*alias };
        } else if record.rtype == Rtype::CNAME {
            let target = record.name_in_rdata(0).expand().ok()?;
            let mut folded = Folded::root();
            let hash = facts.env.key.fold(target.as_name(), &mut folded);
            let alias = Alias { records, rdata_at: record.rdata_at, end };
            found = f(&Sought::new(&folded, hash)).map(|said| (alias, said));
        }
        None
    });
    found
}

fn is_signature_of_alias(record: &Record<'_>) -> bool {
    record.rtype == Rtype::RRSIG && record.rdata.starts_with(&Rtype::CNAME.0.to_be_bytes())
}
