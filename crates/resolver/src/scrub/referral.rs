//! Referrals: that others serve the zone which the name is in.

use std::net::IpAddr;

use wire::{Class, Flags, Message, Name, Rtype, Section};

use super::sets::{self, Set, take, take_signed};
use super::work::Unreadable;
use super::{Asked, Fault, Terms};
use crate::addresses::Namer;
use crate::delegation::NameServer;
use crate::heap_name::HeapName;

/// Addresses of a name server that are taken, of each family.
const ADDRESSES_MAX: usize = 8;

/// Who serves a zone below the one that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Referral {
    pub(crate) zone: HeapName,
    pub(crate) servers: Vec<NameServer>,
    /// Seconds that the parent gives.
    pub(crate) ttl: u32,
    /// The zone's DS RRset, as the parent has it.
    pub(crate) ds: Option<Set>,
    /// NSEC and NSEC3 RRsets that came along.
    pub(crate) proofs: Vec<Set>,
}

/// Reads the authority section of a reply that has no answer; `Ok(None)` if it refers to nobody.
pub(super) fn read(
    message: &Message<'_>,
    asked: &Asked<'_>,
    terms: &Terms<'_>,
) -> Result<Option<Referral>, Fault> {
    let malformed = |_: Unreadable| Fault::Malformed;
    let mut zone = None;
    for record in message.records() {
        terms.work.pass().map_err(malformed)?;
        if record.section != Section::Authority || record.rtype != Rtype::NS || record.class != Class::IN {
            continue;
        }
        let owner = terms.work.owner(&record).map_err(malformed)?;
        let owner = owner.as_name();
        // NS records of the zone itself come beside a NODATA, too; those of other names say
        // nothing.
        let is_below = owner.len() > asked.zone.len() && owner.is_at_or_below(asked.zone);
        // RFC 4035 §3.1.4.1: the parent has the DS records, and no child knows better.
        let is_owners = asked.qtype == Rtype::DS && asked.qname == owner;
        if is_below && !is_owners && asked.qname.is_at_or_below(owner) {
            zone = Some(HeapName::new(owner));
            break;
        }
    }
    let flags = message.header.flags;
    let is_authoritative = terms.is_authoritative(flags);
    let is_denial = sets::soa(message, asked.qname, asked.zone, terms).ok_or(Fault::Malformed)?;
    let Some(zone) = zone else {
        // A server that refers to where we come from does not know the zone, nor does one that has
        // nothing to say and no AA. Who has a proof that something is not there has the zone.
        let denies = || -> Result<bool, Unreadable> {
            Ok(is_denial.is_some() || !sets::proofs(message, asked.zone, terms)?.is_empty())
        };
        let is_answer = flags.has(Flags::AA) || (is_authoritative && denies().map_err(malformed)?);
        return if is_answer { Ok(None) } else { Err(Fault::Lame) };
    };
    if is_denial.is_some() && is_authoritative {
        return Ok(None);
    }
    let set = take(message, Section::Authority, zone.as_name(), Rtype::NS, terms).map_err(malformed)?;
    let Some(set) = set else { return Err(Fault::Malformed) };
    let ds = match terms.dnssec_ok {
        true => {
            take_signed(message, Section::Authority, zone.as_name(), Rtype::DS, terms).map_err(malformed)?
        }
        false => None,
    };
    let proofs = match ds {
        Some(_) => Vec::new(),
        None => sets::proofs(message, asked.zone, terms).map_err(malformed)?,
    };
    let servers = servers(message, &set, asked, terms)?;
    Ok(Some(Referral { zone, servers, ttl: set.ttl, ds, proofs }))
}

/// Reads which servers the root or a stub zone has, if that was asked and there are addresses
/// beside it (RFC 9609 §4).
pub(crate) fn read_priming(message: &Message<'_>, asked: &Asked<'_>, terms: &Terms<'_>) -> Option<Referral> {
    let is_priming = asked.primes && asked.qname == asked.zone && asked.qtype == Rtype::NS;
    if !is_priming {
        return None;
    }
    let set = take(message, Section::Answer, asked.zone, Rtype::NS, terms).ok()??;
    let servers = servers(message, &set, asked, terms).ok()?;
    let has_addresses = servers.iter().any(|server| !server.glue.is_empty());
    has_addresses.then_some(Referral { zone: set.owner, servers, ttl: set.ttl, ds: None, proofs: Vec::new() })
}

fn servers(
    message: &Message<'_>,
    set: &Set,
    asked: &Asked<'_>,
    terms: &Terms<'_>,
) -> Result<Vec<NameServer>, Fault> {
    let mut servers = Vec::new();
    for data in set.records.iter().take(terms.servers_max) {
        let (name, _) = Name::parse(data).map_err(|_| Fault::Malformed)?;
        servers.push(NameServer { name: HeapName::new(name), glue: glue(message, name, asked, terms)? });
    }
    Ok(servers)
}

/// Returns the addresses that the additional section has for a server which the zone that was asked
/// may speak for.
fn glue(
    message: &Message<'_>,
    server: Name<'_>,
    asked: &Asked<'_>,
    terms: &Terms<'_>,
) -> Result<Vec<IpAddr>, Fault> {
    let mut glue = Vec::new();
    if asked.covers(server) {
        for rtype in [Rtype::A, Rtype::AAAA] {
            let set = take(message, Section::Additional, server, rtype, terms);
            if let Some(set) = set.map_err(|_| Fault::Malformed)? {
                glue.extend(terms.addresses.admitted(set.data(), Namer::Zone).take(ADDRESSES_MAX));
            }
        }
    }
    Ok(glue)
}
