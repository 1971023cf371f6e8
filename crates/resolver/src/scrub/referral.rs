//! Referrals: that others serve the zone which the name is in.

use std::net::IpAddr;

use wire::{Class, Flags, Message, Name, NameRef, Rtype, Section, rdata};

use super::sets::{self, Set, take_signed};
use super::work::Unreadable;
use super::{Asked, Fault, Speaker, Terms};
use crate::addresses::Namer;
use crate::delegation::{Glue, NameServer};
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
    let (mut zone, mut names_servers, mut leads_back) = (None, false, false);
    for record in message.records() {
        terms.work.pass().map_err(malformed)?;
        if record.section != Section::Authority || record.rtype != Rtype::NS || record.class != Class::IN {
            continue;
        }
        names_servers = true;
        let owner = terms.work.owner(&record).map_err(malformed)?;
        let owner = owner.as_name();
        // NS records of the zone itself come beside a NODATA, too; those of other names say
        // nothing.
        let is_below = owner.len() > asked.zone.len() && owner.is_at_or_below(asked.zone);
        leads_back |= asked.zone.is_at_or_below(owner);
        // RFC 4035 §3.1.4.1: the parent has the DS records, and no child knows better.
        let is_owners = asked.qtype == Rtype::DS && asked.qname == owner;
        if is_below && !is_owners && asked.qname.is_at_or_below(owner) {
            zone = Some(terms.own(owner));
            break;
        }
    }
    let flags = message.header.flags;
    let is_forwarder = asked.by != Speaker::Server;
    let is_authoritative = is_forwarder || terms.is_authoritative(flags);
    let is_denial = sets::soa(message, asked.qname, asked.denier(), terms).ok_or(Fault::Malformed)?;
    let Some(zone) = zone else {
        // A server that refers to where we come from does not know the zone, nor does one that has
        // nothing to say and no AA. Who has a proof that something is not there has the zone; the
        // proof beside a referral is the parent's, that there is no DS.
        let denies = || -> Result<bool, Unreadable> {
            Ok(is_denial.is_some()
                || !leads_back && !sets::proofs(message, asked.denier(), terms)?.is_empty())
        };
        let is_bare = is_forwarder && !names_servers;
        let is_answer =
            is_bare || flags.has(Flags::AA) || (is_authoritative && denies().map_err(malformed)?);
        return if is_answer { Ok(None) } else { Err(Fault::Lame) };
    };
    if is_denial.is_some() && is_authoritative {
        return Ok(None);
    }
    let named = named_servers(message, Section::Authority, zone.as_name(), terms)?;
    let Some((names, ttl)) = named else { return Err(Fault::Malformed) };
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
    let servers = servers(message, names, asked, terms)?;
    Ok(Some(Referral { zone, servers, ttl, ds, proofs }))
}

/// Reads which servers the root or a stub zone has, if that was asked and there are addresses
/// beside it (RFC 9609 §4).
pub(crate) fn read_priming(message: &Message<'_>, asked: &Asked<'_>, terms: &Terms<'_>) -> Option<Referral> {
    let is_priming = asked.primes && asked.qname == asked.zone && asked.qtype == Rtype::NS;
    if !is_priming {
        return None;
    }
    let (names, ttl) = named_servers(message, Section::Answer, asked.zone, terms).ok()??;
    let servers = servers(message, names, asked, terms).ok()?;
    let has_addresses = servers.iter().any(|server| !server.glue.is_empty());
    let zone = HeapName::new(asked.zone);
    has_addresses.then_some(Referral { zone, servers, ttl, ds: None, proofs: Vec::new() })
}

/// Returns the name servers that a section names for a zone, each once and no more than are taken,
/// and the smallest TTL (RFC 2181 §5.2); `None` if it names none.
fn named_servers(
    message: &Message<'_>,
    section: Section,
    zone: Name<'_>,
    terms: &Terms<'_>,
) -> Result<Option<(Vec<NameServer>, u32)>, Fault> {
    let mut named: Option<(Vec<NameServer>, u32)> = None;
    for record in message.records().take_while(|record| record.section <= section) {
        terms.work.pass().map_err(malformed)?;
        let is_ns = record.rtype == Rtype::NS && record.class == Class::IN;
        if record.section != section || !is_ns || !terms.work.is_owner(&record, zone).map_err(malformed)? {
            continue;
        }
        let range = record.rdata_at..record.end();
        rdata::check(Rtype::NS, message.as_bytes(), range).map_err(|_| Fault::Malformed)?;
        let name = NameRef::new(message.as_bytes(), record.rdata_at).expand();
        let name = HeapName::new(name.map_err(|_| Fault::Malformed)?.as_name());
        let ttl = record.ttl().seconds().min(terms.ttl_max);
        let (servers, least) = named.get_or_insert_with(|| (Vec::new(), ttl));
        *least = ttl.min(*least);
        if servers.len() < terms.servers_max && !servers.iter().any(|server| server.name == name) {
            servers.push(NameServer { name, glue: Glue::new() });
        }
    }
    Ok(named)
}

/// Adds the addresses that the additional section has for those servers which the zone that was
/// asked may speak for, in one walk over it.
fn servers(
    message: &Message<'_>,
    mut servers: Vec<NameServer>,
    asked: &Asked<'_>,
    terms: &Terms<'_>,
) -> Result<Vec<NameServer>, Fault> {
    for record in message.records() {
        terms.work.pass().map_err(malformed)?;
        let is_address = matches!(record.rtype, Rtype::A | Rtype::AAAA) && record.class == Class::IN;
        if record.section != Section::Additional || !is_address {
            continue;
        }
        for server in &mut servers {
            if !terms.work.is_owner(&record, server.name.as_name()).map_err(malformed)? {
                continue;
            }
            if asked.covers(server.name.as_name()) {
                let range = record.rdata_at..record.end();
                rdata::check(record.rtype, message.as_bytes(), range).map_err(|_| Fault::Malformed)?;
                add_glue(server, record.rdata, terms);
            }
            break;
        }
    }
    for server in &mut servers {
        server.glue.sort_by_key(IpAddr::is_ipv6);
    }
    Ok(servers)
}

/// Adds an address to those of a server, if it may be asked, is new, and there are not too many.
fn add_glue(server: &mut NameServer, data: &[u8], terms: &Terms<'_>) {
    let NameServer { name, glue } = server;
    for address in terms.addresses.admitted(name.as_name(), std::iter::once(data), Namer::Zone) {
        let of_family = glue.iter().filter(|other| other.is_ipv4() == address.is_ipv4()).count();
        if of_family < ADDRESSES_MAX && !glue.contains(&address) {
            glue.push(address);
        }
    }
}

fn malformed(_: Unreadable) -> Fault {
    Fault::Malformed
}
