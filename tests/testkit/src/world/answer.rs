//! What a server answers (RFC 1034 §4.3.2, RFC 4035 §3.1).

use std::net::IpAddr;

use wire::{Class, Flags, Full, Name, NameBuf, Query, Question, Rcode, Rtype, Section, Ttl, Writer};

use super::chain::Absence;
use super::contents::{Found, NS_TTL, Node, Set};
use super::counts::Asked;
use super::places::Labels;
use super::{Fault, Role, World, Zone};

/// Octets of a reply over UDP at most, and to those who do not say what they take.
const UDP_OCTETS_MAX: usize = 1_232;
const UDP_OCTETS_PLAIN: usize = 512;
/// What servers say they take.
const EDNS_OCTETS: u16 = 1_232;

/// What a query came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A datagram.
    Udp,
    /// A connection.
    Tcp,
}

/// A reply in the making.
struct Reply {
    rcode: Rcode,
    is_authoritative: bool,
    sets: Vec<(Section, Set)>,
    /// The zone whose servers' addresses come last, if they have their names in it.
    glue: Option<Zone>,
}

/// A zone that answers, and whether it does with signatures.
#[derive(Clone, Copy)]
struct Speaker {
    zone: Zone,
    signs: bool,
}

impl World {
    /// Answers a query that was sent to an address; returns the octets of the reply, 0 to stay
    /// silent.
    pub fn answer(&self, bytes: &[u8], to: IpAddr, carrier: Carrier, out: &mut [u8]) -> usize {
        let Some(role) = self.role(to) else { return 0 };
        let Ok(query) = Query::parse(bytes) else { return 0 };
        let labels = Labels::new(query.question.qname);
        let is_cut = match role.zone {
            Zone::Root => labels.count == 1 && self.tld_of(&labels).is_some(),
            Zone::Tld(_) => labels.count == 2 && self.leaf_of(&labels).is_some(),
            Zone::Leaf(_) => false,
        };
        let mut asked = Asked {
            level: role.zone,
            qtype: query.question.qtype,
            is_cut,
            has_edns: query.edns.is_some(),
            is_tcp: carrier == Carrier::Tcp,
            is_truncated: false,
        };
        let len = match self.fault(role) {
            Some(Fault::Dead) => 0,
            Some(Fault::Lame) => refuse(&query, Rcode::REFUSED, query.edns.is_some(), out),
            // RFC 6891 §7: who does not know the record sends none.
            Some(Fault::WithoutEdns) if query.edns.is_some() => refuse(&query, Rcode::FORMERR, false, out),
            Some(Fault::WithoutEdns) | None => {
                let attacked = self.attack(role, (bytes, &query), &labels, carrier, out);
                let (len, is_truncated) =
                    attacked.unwrap_or_else(|| self.answer_as(role, &query, &labels, carrier, out));
                asked.is_truncated = is_truncated;
                len
            }
        };
        self.counts.note(&asked);
        len
    }

    /// Returns the zone that a server answers from.
    fn zone_at(&self, role: Role, labels: &Labels<'_>) -> Option<Zone> {
        match role.zone {
            Zone::Root => Some(Zone::Root),
            Zone::Tld(tld) => (self.tld_of(labels)? == tld).then_some(role.zone),
            Zone::Leaf(provider) => {
                let leaf = self.leaf_of(labels)?;
                let serves = match self.providers_of(leaf) {
                    Some(providers) => providers.get(usize::from(role.server)) == Some(&provider),
                    None => leaf == provider,
                };
                serves.then_some(Zone::Leaf(leaf))
            }
        }
    }

    fn answer_as(
        &self,
        role: Role,
        query: &Query<'_>,
        labels: &Labels<'_>,
        carrier: Carrier,
        out: &mut [u8],
    ) -> (usize, bool) {
        let has_edns = query.edns.is_some();
        let zone = self.zone_at(role, labels).filter(|_| query.question.qclass == Class::IN);
        let Some(zone) = zone else { return (refuse(query, Rcode::REFUSED, has_edns, out), false) };
        let speaker = Speaker { zone, signs: query.wants_dnssec() && self.is_signed(zone) };
        let reply = self.reply(speaker, &query.question, labels);
        let limit = match (carrier, query.edns) {
            (Carrier::Tcp, _) => usize::from(u16::MAX),
            (Carrier::Udp, Some(edns)) => usize::from(edns.udp_size).clamp(UDP_OCTETS_PLAIN, UDP_OCTETS_MAX),
            (Carrier::Udp, None) => UDP_OCTETS_PLAIN,
        };
        self.write(query, &reply, limit, out)
    }

    fn reply(&self, speaker: Speaker, question: &Question<'_>, labels: &Labels<'_>) -> Reply {
        let mut reply =
            Reply { rcode: Rcode::NOERROR, is_authoritative: true, sets: Vec::with_capacity(8), glue: None };
        let (qname, qtype) = (question.qname, question.qtype);
        match self.find(speaker.zone, labels) {
            Found::Node(Node::Cut(child)) if qtype != Rtype::DS => self.refer(speaker, child, &mut reply),
            Found::Below(child) => self.refer(speaker, child, &mut reply),
            Found::Node(node) => match self.set_or_alias(speaker.zone, node, qtype) {
                Some(set) => self.positive(speaker, set, None, &mut reply),
                None => self.negative(speaker, &Absence::NoData(qname), &mut reply),
            },
            Found::Wildcard(node, closest) => match self.set_or_alias(speaker.zone, node, qtype) {
                Some(set) => {
                    self.positive(speaker, set, Some(qname.to_buf()), &mut reply);
                    if speaker.signs {
                        self.prove(speaker, &Absence::OnlyWildcard(qname, closest), &mut reply);
                    }
                }
                None => self.negative(speaker, &Absence::NoDataAtWildcard(qname, closest), &mut reply),
            },
            Found::Absent(closest) => {
                reply.rcode = Rcode::NXDOMAIN;
                self.negative(speaker, &Absence::Name(qname, closest), &mut reply);
            }
        }
        reply
    }

    /// Returns the records of a type, or the alias that a name has instead.
    pub(crate) fn set_or_alias(&self, zone: Zone, node: Node, qtype: Rtype) -> Option<Set> {
        self.set(zone, node, qtype).or_else(|| self.set(zone, node, Rtype::CNAME))
    }

    /// Adds records, which stand for another name if a wildcard has them, and their signature.
    fn add(&self, speaker: Speaker, section: Section, set: Set, instead: Option<NameBuf>, reply: &mut Reply) {
        let signatures = speaker.signs.then(|| self.signatures(speaker.zone, &set));
        let owner = instead.unwrap_or(set.owner);
        let ttl = set.ttl;
        reply.sets.push((section, Set { owner, ..set }));
        if let Some(signatures) = signatures {
            let data = signatures.iter().map(|signature| signature.to_vec()).collect();
            reply.sets.push((section, Set { owner, rtype: Rtype::RRSIG, ttl, data }));
        }
    }

    fn positive(&self, speaker: Speaker, set: Set, instead: Option<NameBuf>, reply: &mut Reply) {
        reply.glue = (set.rtype == Rtype::NS).then_some(speaker.zone);
        self.add(speaker, Section::Answer, set, instead, reply);
    }

    /// Writes the addresses of a zone's servers that have their names in it.
    ///
    /// Those that do not fit are left out: there are always some (RFC 9471 §3.1).
    fn write_glue(&self, zone: Zone, writer: &mut Writer<'_>) -> Result<(), Full> {
        if matches!(zone, Zone::Leaf(leaf) if self.providers_of(leaf).is_some()) {
            return Ok(());
        }
        for server in 0..self.server_count(zone) {
            let name = self.server_name(zone, server);
            let address = self.server_address(zone, server);
            let mut add = |rtype, data: &[u8]| {
                let (owner, ttl) = (name.as_name(), Ttl::new(NS_TTL));
                writer.record(Section::Additional, owner, rtype, Class::IN, ttl, |writer| writer.bytes(data))
            };
            add(Rtype::A, &address.octets())?;
            if self.options().has_ipv6 {
                add(Rtype::AAAA, &Self::ipv6_of(address).octets())?;
            }
        }
        Ok(())
    }

    fn refer(&self, speaker: Speaker, child: Zone, reply: &mut Reply) {
        reply.is_authoritative = false;
        let cut = Node::Cut(child);
        let servers = self.set(speaker.zone, cut, Rtype::NS);
        reply.sets.extend(servers.map(|set| (Section::Authority, set)));
        if speaker.signs {
            match self.set(speaker.zone, cut, Rtype::DS) {
                Some(ds) => self.add(speaker, Section::Authority, ds, None, reply),
                None => self.prove(speaker, &Absence::NoData(self.apex(child).as_name()), reply),
            }
        }
        reply.glue = Some(child);
    }

    fn negative(&self, speaker: Speaker, absence: &Absence<'_>, reply: &mut Reply) {
        if let Some(soa) = self.set(speaker.zone, Node::Apex, Rtype::SOA) {
            self.add(speaker, Section::Authority, soa, None, reply);
        }
        if speaker.signs {
            self.prove(speaker, absence, reply);
        }
    }

    fn prove(&self, speaker: Speaker, absence: &Absence<'_>, reply: &mut Reply) {
        for set in self.proof(speaker.zone, absence) {
            self.add(speaker, Section::Authority, set, None, reply);
        }
    }

    /// Writes a reply of at most `limit` octets; returns its octets, and whether it lacks
    /// something.
    fn write(&self, query: &Query<'_>, reply: &Reply, limit: usize, out: &mut [u8]) -> (usize, bool) {
        const OPT_OCTETS: usize = 11;
        let has_edns = query.edns.is_some();
        let mut flags =
            Flags::QR.with(query.header.flags.only(Flags::RD.with(Flags::CD))).with_rcode(reply.rcode);
        if reply.is_authoritative {
            flags = flags.with(Flags::AA);
        }
        let mut writer = Writer::new(out, limit, query.header.id, flags);
        if writer.question_of(query).is_err() {
            return (0, false);
        }
        let mark = writer.mark();
        writer.set_limit(limit - if has_edns { OPT_OCTETS } else { 0 });
        let mut is_truncated = false;
        for (section, set) in &reply.sets {
            if write_set(&mut writer, *section, set).is_err() {
                writer.take_back(mark);
                writer.set_flags(flags.with(Flags::TC));
                is_truncated = true;
                break;
            }
        }
        if let (Some(zone), false) = (reply.glue, is_truncated) {
            // What does not fit is left out.
            let _ = self.write_glue(zone, &mut writer);
        }
        writer.set_limit(limit);
        if has_edns && writer.opt(EDNS_OCTETS, reply.rcode, query.wants_dnssec(), |_| Ok(())).is_err() {
            return (0, false);
        }
        (writer.finish(), is_truncated)
    }
}

/// Writes a reply without records.
fn refuse(query: &Query<'_>, rcode: Rcode, has_edns: bool, out: &mut [u8]) -> usize {
    let flags = Flags::QR.with(query.header.flags.only(Flags::RD.with(Flags::CD))).with_rcode(rcode);
    let mut writer = Writer::new(out, UDP_OCTETS_PLAIN, query.header.id, flags);
    let written = writer.question_of(query).and_then(|()| match has_edns {
        true => writer.opt(EDNS_OCTETS, rcode, query.wants_dnssec(), |_| Ok(())),
        false => Ok(()),
    });
    if written.is_ok() { writer.finish() } else { 0 }
}

fn write_set(writer: &mut Writer<'_>, section: Section, set: &Set) -> Result<(), Full> {
    let owner = set.owner.as_name();
    for data in &set.data {
        writer.record(section, owner, set.rtype, Class::IN, Ttl::new(set.ttl), |writer| {
            match (set.rtype, Name::parse(data)) {
                (Rtype::NS | Rtype::CNAME, Ok((name, _))) => writer.name(name),
                _ => writer.bytes(data),
            }
        })?;
    }
    Ok(())
}
