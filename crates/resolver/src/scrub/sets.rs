//! RRsets, taken from a message.

use std::collections::HashSet;
use std::ops::Range;

use cache::Security;
use dnssec::Rrsig;
use wire::{Class, Message, Name, Rtype, Section, Ttl, rdata};

use super::work::Unreadable;
use super::{Beside, Terms};
use crate::heap_name::HeapName;

/// An RRset, names in its data in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) owner: HeapName,
    pub(crate) rtype: Rtype,
    /// The smallest of its records (RFC 2181 §5.2).
    pub(crate) ttl: u32,
    pub(crate) records: Vec<Box<[u8]>>,
    /// The data of the RRSIG records that cover it. If one was found good, it is the first.
    pub(crate) signatures: Vec<Box<[u8]>>,
    /// What is known of these.
    pub(crate) security: Security,
    /// Labels of the zone whose signature was found good; 0 if none was.
    pub(crate) signer_labels: u8,
    /// Labels that this signature counts (RFC 4034 §3.1.3).
    pub(crate) labels_signed: u8,
}

impl Set {
    /// Returns an RRset without signatures, of which nothing is known.
    pub(crate) const fn new(owner: HeapName, rtype: Rtype, ttl: u32, records: Vec<Box<[u8]>>) -> Self {
        Self {
            owner,
            rtype,
            ttl,
            records,
            signatures: Vec::new(),
            security: Security::Unchecked,
            signer_labels: 0,
            labels_signed: 0,
        }
    }

    /// Returns whether a good signature says that it was made from a wildcard.
    pub(crate) fn is_expanded(&self) -> bool {
        let owner = self.owner.as_name();
        let asterisk = usize::from(owner.labels().next() == Some(b"*"));
        let is_signed = self.security == Security::Secure && !self.signatures.is_empty();
        is_signed && usize::from(self.labels_signed) + asterisk < owner.label_count()
    }

    /// Returns whether any signature says so, good or not.
    pub(crate) fn claims_expansion(&self) -> bool {
        let owner = self.owner.as_name();
        let labels = owner.label_count() - usize::from(owner.labels().next() == Some(b"*"));
        let mut signatures = self.signatures.iter().filter_map(|data| Rrsig::parse(data));
        signatures.any(|rrsig| usize::from(rrsig.labels) < labels)
    }

    /// Returns the zones that its signatures name, good or not.
    pub(crate) fn signers(&self) -> impl Iterator<Item = Name<'_>> {
        self.signatures.iter().filter_map(|data| Rrsig::parse(data)).map(|rrsig| rrsig.signer)
    }

    /// Returns the data of each record.
    pub(crate) fn data(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().map(|data| &**data)
    }
}

/// RRsets of NSEC and NSEC3 records that are taken from a reply; a name error takes three.
const PROOFS_MAX: usize = 12;

/// Takes an RRset of class IN from a section; `Ok(None)` if it is not there, `Err` if its data
/// cannot be read.
pub(super) fn take(
    message: &Message<'_>,
    section: Section,
    owner: Name<'_>,
    rtype: Rtype,
    terms: &Terms<'_>,
) -> Result<Option<Set>, Unreadable> {
    let mut set: Option<Set> = None;
    for record in message.records().take_while(|record| record.section <= section) {
        terms.work.pass()?;
        if record.section != section || record.rtype != rtype || record.class != Class::IN {
            continue;
        }
        if !terms.work.is_owner(&record, owner)? {
            continue;
        }
        let range = record.rdata_at..record.end();
        if is_acted_on(rtype) {
            rdata::check(rtype, message.as_bytes(), range.clone())?;
        }
        let data = plain(message, rtype, range, terms)?;
        let ttl = record.ttl().seconds().min(terms.ttl_max);
        let set = set.get_or_insert_with(|| Set::new(terms.own(owner), rtype, ttl, Vec::new()));
        set.ttl = set.ttl.min(ttl);
        set.records.push(data);
    }
    Ok(set.map(without_duplicates))
}

/// Copies data, names in it in full.
fn plain(
    message: &Message<'_>,
    rtype: Rtype,
    range: Range<usize>,
    terms: &Terms<'_>,
) -> Result<Box<[u8]>, Unreadable> {
    let mut room = terms.work.room.borrow_mut();
    room.clear();
    rdata::write_plain(rtype, message.as_bytes(), range, &mut room)?;
    Ok(room.as_slice().into())
}

/// Takes the same with the signatures that cover it, whatever section these are in: some servers
/// put them into another one, and a signature proves itself wherever it stands.
pub(super) fn take_signed(
    message: &Message<'_>,
    section: Section,
    owner: Name<'_>,
    rtype: Rtype,
    terms: &Terms<'_>,
) -> Result<Option<Set>, Unreadable> {
    let mut set = take(message, section, owner, rtype, terms)?;
    if let Some(set) = set.as_mut().filter(|_| terms.dnssec_ok && rtype != Rtype::RRSIG) {
        for record in message.records() {
            terms.work.pass()?;
            let covered = record.rdata.first_chunk().map(|octets| Rtype(u16::from_be_bytes(*octets)));
            if record.rtype != Rtype::RRSIG
                || record.class != Class::IN
                || covered != Some(rtype)
                || set.signatures.len() == terms.signatures_max
                || !terms.work.is_owner(&record, owner)?
            {
                continue;
            }
            let data = plain(message, Rtype::RRSIG, record.rdata_at..record.end(), terms)?;
            if !set.signatures.contains(&data) {
                set.ttl = set.ttl.min(record.ttl().seconds());
                set.signatures.push(data);
            }
        }
    }
    Ok(set)
}

/// Takes the NSEC and NSEC3 RRsets of a zone, and of zones below it, from the authority section.
pub(super) fn proofs(
    message: &Message<'_>,
    zone: Name<'_>,
    terms: &Terms<'_>,
) -> Result<Vec<Set>, Unreadable> {
    let mut proofs: Vec<Set> = Vec::new();
    if !terms.dnssec_ok {
        return Ok(proofs);
    }
    for record in message.records() {
        terms.work.pass()?;
        let is_proof = matches!(record.rtype, Rtype::NSEC | Rtype::NSEC3);
        if record.section != Section::Authority || !is_proof || proofs.len() == PROOFS_MAX {
            continue;
        }
        let owner = terms.work.owner(&record)?;
        let owner = owner.as_name();
        let is_known = |set: &Set| set.rtype == record.rtype && set.owner.as_name() == owner;
        if owner.is_at_or_below(zone) && !proofs.iter().any(is_known) {
            proofs.extend(take_signed(message, Section::Authority, owner, record.rtype, terms)?);
        }
    }
    Ok(proofs)
}

/// Name servers whose addresses are taken from beside an answer.
pub(crate) const SERVERS_MAX: usize = 16;

/// Takes the NS RRset of the zone that an answer or a denial is from, if it is wanted, stands
/// beside it and is not the answer itself, and the addresses of its servers and of those that the
/// answer itself names, as far as they are in the zone asked.
pub(super) fn beside(
    message: &Message<'_>,
    (name, rtype): (Name<'_>, Rtype),
    answer: &[Set],
    zone: Name<'_>,
    terms: &Terms<'_>,
) -> Result<Beside, Unreadable> {
    let mut beside = Beside::default();
    let wants_servers = rtype != Rtype::NS && (terms.takes_servers || answer.is_empty());
    let is_of_answer = |owner: Name<'_>| name.is_at_or_below(owner) && owner.is_at_or_below(zone);
    for record in message.records() {
        terms.work.pass()?;
        if !wants_servers || record.section != Section::Authority || record.rtype != Rtype::NS {
            continue;
        }
        let owner = terms.work.owner(&record)?;
        if is_of_answer(owner.as_name()) && beside.servers.is_empty() {
            beside.servers.extend(take_signed(
                message,
                Section::Authority,
                owner.as_name(),
                Rtype::NS,
                terms,
            )?);
        }
    }
    if !terms.takes_servers && answer.is_empty() {
        return Ok(beside);
    }
    let named = beside.servers.first().into_iter().chain(answer);
    let hosts = named.flat_map(|set| set.data().filter_map(|data| host_in(set.rtype, data)));
    for host in hosts.filter(|host| host.is_at_or_below(zone)).take(SERVERS_MAX) {
        for rtype in [Rtype::A, Rtype::AAAA] {
            let is_known =
                beside.addresses.iter().any(|set| set.rtype == rtype && set.owner.as_name() == host);
            if !is_known {
                beside.addresses.extend(take_signed(message, Section::Additional, host, rtype, terms)?);
            }
        }
    }
    Ok(beside)
}

/// Returns the host that a record names, whose addresses its reader will want next (RFC 1035
/// §3.3, RFC 2782).
pub(crate) fn host_in(rtype: Rtype, data: &[u8]) -> Option<Name<'_>> {
    let skipped = match rtype {
        Rtype::NS => 0,
        Rtype::MX => 2,
        Rtype::SRV => 6,
        _ => return None,
    };
    Name::parse(data.get(skipped..)?).ok().map(|(name, _)| name)
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
    terms: &Terms<'_>,
) -> Option<Option<Set>> {
    for record in message.records() {
        terms.work.pass().ok()?;
        if record.section != Section::Authority || record.rtype != Rtype::SOA {
            continue;
        }
        let owner = terms.work.owner(&record).ok()?;
        let owner = owner.as_name();
        // It must be of a zone that the server may speak for, and that the name is in.
        if !name.is_at_or_below(owner) || !owner.is_at_or_below(zone) {
            continue;
        }
        let soa = take_signed(message, Section::Authority, owner, Rtype::SOA, terms).ok()?;
        let Some(mut soa) = soa else { continue };
        soa.records.truncate(1);
        // RFC 2308 §5: the smaller of the SOA's own TTL and its MINIMUM.
        let minimum = soa.records.first().and_then(|data| minimum(data))?;
        soa.ttl = soa.ttl.min(minimum).min(terms.negative_ttl_max);
        return Some(Some(soa));
    }
    Some(None)
}

/// Returns the last field of a SOA record, whose form [`take`] has checked.
pub(crate) fn minimum(data: &[u8]) -> Option<u32> {
    let minimum = u32::from_be_bytes(*data.last_chunk()?);
    Some(Ttl::new(minimum).seconds())
}
