//! Hostile zones: what the servers of the last two top-level domains say of names below some labels
//! of theirs ([`Attack`]), to attack resolvers, or others through them.
//!
//! The last top-level domain is not signed, so that it may say what it likes; the one before it is,
//! if any zone is, so that validators have work.

use dnssec::Nsec3Parameters;
use wire::{Class, Flags, Name, NameBuf, Query, Rcode, Rtype, text};

use super::answer::Carrier;
use super::contents::{Node, Set};
use super::places::Labels;
use super::{Draw, Role, World, Zone, stir};

/// What happens below a label of a hostile top-level domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attack {
    /// A referral to thirty names of a victim's zone that do not exist (NXNSAttack).
    Nxns,
    /// A referral to 1,200 of them (NRDelegation).
    Wide,
    /// Each zone's servers have their names in another zone, which is like it (TsuKing, loops).
    Loop,
    /// Aliases of long names, whose zones are referred to servers without addresses (CAMP).
    Camp,
    /// A DNAME for each name, which leads to the next.
    Dname,
    /// An alias in a reply as large as can be, which leads to the next.
    Large,
    /// A reply of thousands of records with the longest names there are (CVE-2024-8508).
    Long,
    /// An answer, and records of others' zones in every section.
    Poison,
    /// A referral to the root.
    Upwards,
    /// Nothing but TC, over TCP as well.
    Cut,
    /// TC, and over TCP an answer of which one octet comes after the other.
    Drip,
    /// An answer behind messages that are none (TuDoor).
    Noise,
    /// No reply (water torture).
    Silent,
    /// Many signatures, all wrong (KeyTrap). Signed.
    KeyTrap,
    /// Proofs of absence for names of many labels, hashed fifty times (CVE-2023-50868). Signed.
    Hashes,
}

/// Labels, and what happens below each.
pub const ATTACKS: [(&str, Attack); 15] = [
    ("nxns", Attack::Nxns),
    ("wide", Attack::Wide),
    ("loop", Attack::Loop),
    ("camp", Attack::Camp),
    ("dname", Attack::Dname),
    ("large", Attack::Large),
    ("long", Attack::Long),
    ("poison", Attack::Poison),
    ("upwards", Attack::Upwards),
    ("cut", Attack::Cut),
    ("drip", Attack::Drip),
    ("noise", Attack::Noise),
    ("silent", Attack::Silent),
    ("keytrap", Attack::KeyTrap),
    ("hashes", Attack::Hashes),
];

/// How a reply is brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// At once.
    Whole,
    /// Over TCP, octet by octet.
    Dripping,
    /// Behind messages that are no reply ([`noise`]).
    Noisy,
}

/// Where the name of the question stands.
const QNAME_AT: usize = 12;
/// Octets of a reply over UDP.
const UDP_OCTETS: usize = 1_232;
/// Octets of a reply that is as large as can be, with room for its last record.
const LARGE_OCTETS: usize = 65_000;
/// Labels of [`Attack::Camp`] before the one with a number.
const CAMP_LABELS: usize = 4;
/// Labels that a name has before it does not exist, in [`Attack::Hashes`].
const HASHED_LABELS: usize = 16;
/// Name servers of a referral.
const NXNS_SERVERS: usize = 30;
/// The same of one that takes TCP.
const WIDE_SERVERS: usize = 1_200;
/// Signatures of an RRset that fit into a datagram.
const SIGNATURES: u8 = 10;

/// A reply in the making, whose names are written as they come, pointers and all.
struct Crude {
    octets: Vec<u8>,
    /// Records of each section.
    counts: [u16; 3],
    flags: Flags,
}

#[derive(Clone, Copy)]
enum Part {
    Answer,
    Authority,
    Additional,
}

impl Crude {
    fn to(bytes: &[u8], query: &Query<'_>) -> Self {
        let question_end = QNAME_AT + query.question.qname.len() + 4;
        Self {
            octets: bytes.get(..question_end).unwrap_or(bytes).to_vec(),
            counts: [0; 3],
            flags: Flags::QR.with(Flags::AA),
        }
    }

    /// Adds a record; sections come in their order.
    fn add(&mut self, part: Part, owner: &[u8], (rtype, ttl): (Rtype, u32), data: &[u8]) {
        self.octets.extend(owner);
        for field in [rtype.0, Class::IN.0, (ttl >> 16) as u16, ttl as u16, data.len() as u16] {
            self.octets.extend(field.to_be_bytes());
        }
        self.octets.extend(data);
        if let Some(count) = self.counts.get_mut(part as usize) {
            *count += 1;
        }
    }

    fn add_set(&mut self, part: Part, set: &Set) {
        for data in &set.data {
            self.add(part, set.owner.as_name().as_bytes(), (set.rtype, set.ttl), data);
        }
    }

    /// Ends the message with OPT, and writes it; only TC if it does not fit.
    fn finish(mut self, query: &Query<'_>, limit: usize, out: &mut [u8]) -> (usize, bool) {
        if self.octets.len() + 11 > limit {
            self.octets.truncate(QNAME_AT + query.question.qname.len() + 4);
            self.counts = [0; 3];
            self.flags = self.flags.with(Flags::TC);
        }
        let is_truncated = self.flags.has(Flags::TC);
        if query.edns.is_some() {
            let dnssec_ok = u32::from(query.wants_dnssec()) << 15;
            self.octets.extend([0, 0, 41, 0x04, 0xd0]);
            self.octets.extend(dnssec_ok.to_be_bytes());
            self.octets.extend([0, 0]);
            self.counts[2] += 1;
        }
        let fields = [self.flags.0, 1, self.counts[0], self.counts[1], self.counts[2]];
        for (at, field) in fields.into_iter().enumerate() {
            if let Some(place) = self.octets.get_mut(2 + 2 * at..4 + 2 * at) {
                place.copy_from_slice(&field.to_be_bytes());
            }
        }
        match out.get_mut(..self.octets.len()) {
            Some(place) => {
                place.copy_from_slice(&self.octets);
                (self.octets.len(), is_truncated)
            }
            None => (0, is_truncated),
        }
    }
}

fn pointer(to: usize) -> [u8; 2] {
    (0xc000 | to as u16).to_be_bytes()
}

/// Returns where in the question the name begins that so many labels of it are.
fn place_of(qname: Name<'_>, labels: usize) -> usize {
    QNAME_AT + qname.len() - qname.suffix(labels).len()
}

/// Returns messages that are no reply to the query which this is the reply to.
pub fn noise(reply: &[u8]) -> [Vec<u8>; 3] {
    let changed = |at: usize, by: u8| {
        let mut octets = reply.to_vec();
        if let Some(octet) = octets.get_mut(at) {
            *octet ^= by;
        }
        octets
    };
    // Another ID; another type in the question, whose name is the shortest part of it; half of it.
    let type_at = reply.iter().skip(QNAME_AT).position(|octet| *octet == 0).map_or(1, |at| QNAME_AT + at + 2);
    [changed(1, 0xff), changed(type_at, 0x10), reply.get(..reply.len() / 2).unwrap_or(&[]).to_vec()]
}

impl World {
    /// Returns the name below which an attack happens, as text; `None` if no zone is hostile.
    pub fn attack_text(&self, attack: Attack) -> Option<String> {
        let (label, _) = ATTACKS.iter().find(|(_, other)| *other == attack)?;
        let tld = self.hostile_tld(attack)?;
        Some(format!("{label}.t{tld:03}"))
    }

    /// Returns whether the last two top-level domains are hostile, of which this is one.
    pub fn is_hostile(&self, tld: u32) -> bool {
        self.options.is_hostile && tld + 2 >= self.options.tlds
    }

    fn hostile_tld(&self, attack: Attack) -> Option<u32> {
        let from_last = 1 + u32::from(matches!(attack, Attack::KeyTrap | Attack::Hashes));
        self.options.tlds.checked_sub(from_last).filter(|_| self.options.is_hostile)
    }

    /// Returns the attack that a name belongs to.
    fn attack_on(&self, labels: &Labels<'_>) -> Option<Attack> {
        let tld = self.tld_of(labels)?;
        let label = labels.at(1);
        let (_, attack) = ATTACKS.iter().find(|(text, _)| text.as_bytes().eq_ignore_ascii_case(label))?;
        (self.hostile_tld(*attack) == Some(tld)).then_some(*attack)
    }

    /// Returns how the reply to a query is brought.
    pub fn manner(&self, query: &[u8], carrier: Carrier) -> Manner {
        if !self.options.is_hostile {
            return Manner::Whole;
        }
        let Ok(query) = Query::parse(query) else { return Manner::Whole };
        match (self.attack_on(&Labels::new(query.question.qname)), carrier) {
            (Some(Attack::Noise), Carrier::Udp) => Manner::Noisy,
            (Some(Attack::Drip), Carrier::Tcp) => Manner::Dripping,
            _ => Manner::Whole,
        }
    }

    /// Answers a query for a hostile name; `None` if it is not one, or none about which there is
    /// anything to lie.
    pub(crate) fn attack(
        &self,
        role: Role,
        (bytes, query): (&[u8], &Query<'_>),
        labels: &Labels<'_>,
        carrier: Carrier,
        out: &mut [u8],
    ) -> Option<(usize, bool)> {
        let Zone::Tld(tld) = role.zone else { return None };
        let attack = self.attack_on(labels).filter(|_| self.is_hostile(tld))?;
        let qtype = query.question.qtype;
        if self.tld_of(labels) != Some(tld) || matches!(qtype, Rtype::DS | Rtype::DNSKEY) {
            return None;
        }
        if attack == Attack::Silent {
            return Some((0, false));
        }
        let mut reply = Crude::to(bytes, query);
        let limit = if carrier == Carrier::Udp { UDP_OCTETS } else { usize::from(u16::MAX) };
        match attack {
            Attack::KeyTrap => self.add_wrong_signatures(role.zone, query, &mut reply),
            Attack::Hashes => self.add_hashes(role.zone, query, labels, &mut reply),
            // A resolver that shows no more than it has to is led on.
            _ if labels.count <= 2 => self.add_no_data(role.zone, &mut reply),
            Attack::Nxns => self.add_victims(query, NXNS_SERVERS, &mut reply),
            Attack::Wide => self.add_victims(query, WIDE_SERVERS, &mut reply),
            Attack::Loop => self.add_other_zone(query, &mut reply),
            Attack::Camp => self.add_camp(query, labels, &mut reply),
            Attack::Dname => self.add_dname(query, &mut reply),
            Attack::Large => self.add_large(query, &mut reply),
            Attack::Long => add_long(query, &mut reply),
            Attack::Poison => self.add_poison(&mut reply),
            Attack::Upwards => {
                reply.flags = Flags::QR;
                reply.add(Part::Authority, &[0], (Rtype::NS, 3_600), &pointer(QNAME_AT));
            }
            Attack::Cut => reply.flags = reply.flags.with(Flags::TC),
            Attack::Drip if carrier == Carrier::Udp => reply.flags = reply.flags.with(Flags::TC),
            Attack::Drip | Attack::Noise | Attack::Silent => add_address(&mut reply),
        }
        Some(reply.finish(query, limit, out))
    }

    fn add_no_data(&self, zone: Zone, reply: &mut Crude) {
        if let Some(soa) = self.set(zone, Node::Apex, Rtype::SOA) {
            reply.add_set(Part::Authority, &soa);
        }
    }

    /// Returns another number for each name.
    fn stirred(&self, name: Name<'_>) -> u64 {
        let octets = name.as_bytes().iter().map(u8::to_ascii_lowercase);
        octets.fold(self.draw(Draw::Target, 0), |what, octet| stir(what, octet.into(), 0))
    }

    /// Refers the third label to servers whose names are in the zone of a victim, and not there.
    fn add_victims(&self, query: &Query<'_>, servers: usize, reply: &mut Crude) {
        let zone = query.question.qname.suffix(3);
        let (at, stirred) = (place_of(query.question.qname, 3), self.stirred(zone));
        reply.flags = Flags::QR;
        let victim = self.apex(Zone::Leaf(0));
        for server in 0..servers {
            let label = format!("{stirred:016x}{server}");
            let data = [&[label.len() as u8], label.as_bytes(), victim.as_name().as_bytes()].concat();
            reply.add(Part::Authority, &pointer(at), (Rtype::NS, 3_600), &data);
        }
    }

    /// Refers the third label to two servers in another zone of this kind.
    fn add_other_zone(&self, query: &Query<'_>, reply: &mut Crude) {
        let zone = query.question.qname.suffix(3);
        let (at, above, stirred) =
            (place_of(query.question.qname, 3), place_of(query.question.qname, 2), self.stirred(zone));
        reply.flags = Flags::QR;
        for server in 0..2 {
            let label = format!("{:08x}", stir(stirred, server, 1) as u32);
            let data = [&[2, b'n', b's', label.len() as u8], label.as_bytes(), &pointer(above)].concat();
            reply.add(Part::Authority, &pointer(at), (Rtype::NS, 3_600), &data);
        }
    }

    /// Refers `eN` to servers in the zone after next if it is odd; else makes `a.b.c.d.eN` an alias
    /// of the same in the next zone.
    fn add_camp(&self, query: &Query<'_>, labels: &Labels<'_>, reply: &mut Crude) {
        let qname = query.question.qname;
        let number: Option<u32> =
            std::str::from_utf8(labels.at(2)).ok().and_then(|text| text.get(1..)?.parse().ok());
        let Some(number) = number else { return self.add_no_data(Zone::Root, reply) };
        let above = place_of(qname, 2);
        let named = |number: u32| {
            let label = format!("e{number}");
            [&[label.len() as u8], label.as_bytes(), &pointer(above)].concat()
        };
        if number % 2 == 1 {
            reply.flags = Flags::QR;
            for label in [b"\x02n1", b"\x02n2"] {
                let data = [&label[..], &named(number + 2)].concat();
                reply.add(Part::Authority, &pointer(place_of(qname, 3)), (Rtype::NS, 3_600), &data);
            }
        } else if labels.count < 3 + CAMP_LABELS {
            self.add_no_data(self.closest_zone(qname), reply);
        } else {
            let kept = place_of(qname, 3) - QNAME_AT;
            let data = [qname.as_bytes().get(..kept).unwrap_or(&[]), &named(number + 1)].concat();
            reply.add(Part::Answer, &pointer(QNAME_AT), (Rtype::CNAME, 3_600), &data);
        }
    }

    /// Makes the name above that of the question lead to another one.
    fn add_dname(&self, query: &Query<'_>, reply: &mut Crude) {
        let qname = query.question.qname;
        let (at, above) = (place_of(qname, 3), place_of(qname, 2));
        if qname.label_count() < 4 {
            return self.add_no_data(self.closest_zone(qname), reply);
        }
        let label = format!("{:08x}", self.stirred(qname.suffix(3)) as u32);
        let target = [&[label.len() as u8], label.as_bytes(), &pointer(above)].concat();
        reply.add(Part::Answer, &pointer(at), (Rtype::DNAME, 3_600), &target);
    }

    fn add_large(&self, query: &Query<'_>, reply: &mut Crude) {
        let qname = query.question.qname;
        let label = format!("{:08x}", self.stirred(qname) as u32);
        let target = [&[label.len() as u8], label.as_bytes(), &pointer(place_of(qname, 2))].concat();
        reply.add(Part::Answer, &pointer(QNAME_AT), (Rtype::CNAME, 3_600), &target);
        while reply.octets.len() < LARGE_OCTETS {
            reply.add(Part::Additional, &[0], (Rtype::TXT, 3_600), &[0; 255]);
        }
    }

    /// Answers, and says of honest zones that their servers, and hosts, are here.
    fn add_poison(&self, reply: &mut Crude) {
        add_address(reply);
        let here = self.server_address(Zone::Root, 9).octets();
        let own = self.below(b"ns1", Zone::Tld(self.options.tlds - 1));
        for zone in [Zone::Tld(0), Zone::Leaf(0), Zone::Leaf(1), Zone::Root] {
            let apex = self.apex(zone);
            let data = own.as_name().as_bytes();
            reply.add(Part::Authority, apex.as_name().as_bytes(), (Rtype::NS, 86_400), data);
        }
        for zone in [Zone::Tld(0), Zone::Leaf(0), Zone::Leaf(1)] {
            for host in ["ns1", "ns2", "www"] {
                let owner = self.below(host.as_bytes(), zone);
                reply.add(Part::Additional, owner.as_name().as_bytes(), (Rtype::A, 86_400), &here);
            }
        }
    }

    /// Answers with signatures of the zone's key that are all wrong.
    fn add_wrong_signatures(&self, zone: Zone, query: &Query<'_>, reply: &mut Crude) {
        let owner = query.question.qname.to_buf();
        let set = Set { owner, rtype: Rtype::A, ttl: 3_600, data: vec![vec![198, 51, 100, 66]] };
        // What the signature says is right, and the signature is that of something else.
        let model = self
            .set(zone, Node::Apex, Rtype::SOA)
            .and_then(|soa| self.signatures(zone, &soa).first().map(|signature| signature.to_vec()));
        reply.add_set(Part::Answer, &set);
        let Some(mut signature) = model.filter(|_| self.is_signed(zone)) else { return };
        if let Some([high, low, _, labels]) = signature.first_chunk_mut() {
            [*high, *low] = Rtype::A.0.to_be_bytes();
            *labels = set.owner.as_name().label_count() as u8;
        }
        for number in 0..SIGNATURES {
            if let Some(last) = signature.last_mut() {
                *last = number;
            }
            reply.add(Part::Answer, &pointer(QNAME_AT), (Rtype::RRSIG, 3_600), &signature);
        }
    }

    /// Denies names of many labels, and says of those with fewer that only others below them are
    /// there.
    fn add_hashes(&self, zone: Zone, query: &Query<'_>, labels: &Labels<'_>, reply: &mut Crude) {
        let parameters = Nsec3Parameters { iterations: 50, ..Nsec3Parameters::default() };
        let mut add = |set: &Set| {
            reply.add_set(Part::Authority, set);
            if self.is_signed(zone) {
                let signatures = self.signatures(zone, set);
                let data = signatures.iter().map(|signature| signature.to_vec()).collect();
                let signature = Set { owner: set.owner, rtype: Rtype::RRSIG, ttl: set.ttl, data };
                reply.add_set(Part::Authority, &signature);
            }
        };
        if let Some(soa) = self.set(zone, Node::Apex, Rtype::SOA) {
            add(&soa);
        }
        let is_there = labels.count < HASHED_LABELS;
        let (of, types) = match is_there {
            true => (query.question.qname.to_buf(), Vec::new()),
            false => (self.apex(zone), vec![Rtype::NS, Rtype::SOA, Rtype::RRSIG]),
        };
        let hash = parameters.hash(of.as_name());
        let mut label = String::with_capacity(32);
        // A string takes all.
        let _ = text::write_base32_hex(&mut label, &hash);
        label.make_ascii_lowercase();
        // The chain's only record covers all other names.
        let data = vec![parameters.write_nsec3(&hash, types)];
        add(&Set { owner: self.below(label.as_bytes(), zone), rtype: Rtype::NSEC3, ttl: 900, data });
        if !is_there {
            reply.flags = reply.flags.with_rcode(Rcode::NXDOMAIN);
        }
    }
}

fn add_address(reply: &mut Crude) {
    reply.add(Part::Answer, &pointer(QNAME_AT), (Rtype::A, 3_600), &[198, 51, 100, 7]);
}

/// Adds a chain of aliases whose names have as many labels as the question's, and DNAME records of
/// such names until the message is full.
fn add_long(query: &Query<'_>, reply: &mut Crude) {
    // The first label of the question is left out, another one takes its place.
    let first = query.question.qname.labels().next().map_or(0, <[u8]>::len);
    let rest = QNAME_AT + 1 + first;
    let below = |label: u8| [&[1, label][..], &pointer(rest)].concat();
    let mut owner = pointer(QNAME_AT).to_vec();
    for label in b'b'..=b'q' {
        reply.add(Part::Answer, &owner, (Rtype::CNAME, 3_600), &below(label));
        owner = below(label);
    }
    while reply.octets.len() < LARGE_OCTETS {
        reply.add(Part::Answer, &below(b'z'), (Rtype::DNAME, 3_600), &[0]);
    }
}

/// Returns a name below another one, with as many labels of one octet as there is room for.
pub fn deepest_below(text: &str) -> String {
    let mut deepest = text.to_owned();
    loop {
        let deeper = format!("a.{deepest}");
        if NameBuf::from_text(&deeper).is_err() {
            return deepest;
        }
        deepest = deeper;
    }
}
