use std::collections::HashMap;
use std::net::IpAddr;

use wire::{Class, Flags, Header, Message, Name, NameBuf, NameRef, Rcode, Rtype, Section};

use dnssec::proof::{DenialRecord, Denials, HashBudget, Proved};
use dnssec::{Budget, Dnskey, Ds, Rrset, verify_rrset};

use super::*;
use crate::ask::name;

/// Octets of the largest message.
const MESSAGE_OCTETS: usize = 65_535;

fn world(options: Options) -> World {
    World::new(Options { tlds: 5, zones: 400, unix_seconds: 1_800_000_000, ..options })
}

fn query(qname: Name<'_>, qtype: Rtype, wants_dnssec: bool) -> Vec<u8> {
    let header = Header { questions: 1, additionals: 1, ..Header::default() };
    let mut query = header.to_bytes().to_vec();
    query.extend(qname.as_bytes());
    query.extend(qtype.0.to_be_bytes());
    query.extend(Class::IN.0.to_be_bytes());
    query.extend([0, 0, 41, 4, 208, 0, 0, if wants_dnssec { 0x80 } else { 0 }, 0, 0, 0]);
    query
}

fn ask(world: &World, to: IpAddr, qname: Name<'_>, qtype: Rtype, carrier: Carrier) -> Option<Vec<u8>> {
    let mut out = vec![0; MESSAGE_OCTETS];
    let len = world.answer(&query(qname, qtype, true), to, carrier, &mut out);
    out.truncate(len);
    (len > 0).then_some(out)
}

/// Returns the records of a section: owner, type, data with its names in full.
fn records(reply: &[u8], wanted: Section) -> Vec<(NameBuf, Rtype, Vec<u8>)> {
    let message = Message::parse(reply).expect("well formed");
    let of = |record: &wire::Record<'_>| {
        let data = match record.rtype {
            Rtype::NS | Rtype::CNAME => {
                let name = NameRef::new(reply, record.rdata_at).expand().expect("a name");
                name.as_name().as_bytes().to_vec()
            }
            _ => record.rdata.to_vec(),
        };
        (record.owner.expand().expect("a name"), record.rtype, data)
    };
    message.records().filter(|record| record.section == wanted).map(|record| of(&record)).collect()
}

/// Walks down from the root, and tries all servers of each zone.
fn walk(world: &World, qname: Name<'_>, qtype: Rtype, depth: usize) -> Option<Vec<u8>> {
    assert!(depth < 4, "servers whose names lead to others for ever");
    let mut servers: Vec<IpAddr> =
        (0..4).map(|server| world.server_address(Zone::Root, server).into()).collect();
    for _ in 0..4 {
        let reply = servers.iter().find_map(|server| {
            let reply = ask(world, *server, qname, qtype, Carrier::Udp)?;
            let message = Message::parse(&reply).expect("well formed");
            let is_truncated = message.header.flags.has(Flags::TC);
            let reply = if is_truncated { ask(world, *server, qname, qtype, Carrier::Tcp)? } else { reply };
            let rcode = Message::parse(&reply).expect("well formed").rcode();
            matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN).then_some(reply)
        })?;
        if Message::parse(&reply).expect("well formed").header.flags.has(Flags::AA) {
            return Some(reply);
        }
        let glue = records(&reply, Section::Additional);
        servers.clear();
        for (_, rtype, target) in records(&reply, Section::Authority) {
            let Ok((target, _)) = Name::parse(&target) else { continue };
            if rtype != Rtype::NS {
                continue;
            }
            let mut found: Vec<Vec<u8>> = glue
                .iter()
                .filter(|(owner, rtype, _)| owner.as_name() == target && *rtype == Rtype::A)
                .map(|(.., data)| data.clone())
                .collect();
            if found.is_empty() {
                let reply = walk(world, target, Rtype::A, depth + 1)?;
                found.extend(
                    records(&reply, Section::Answer).into_iter().find(|it| it.1 == Rtype::A).map(|it| it.2),
                );
            }
            let address = |data: Vec<u8>| IpAddr::from(<[u8; 4]>::try_from(data).expect("four octets"));
            servers.extend(found.into_iter().map(address));
        }
    }
    None
}

/// Resolves by walking, as often as there are aliases.
fn resolve(world: &World, qname: Name<'_>, qtype: Rtype) -> (Rcode, Vec<(NameBuf, Rtype, Vec<u8>)>) {
    let (mut all, mut name) = (Vec::new(), qname.to_buf());
    loop {
        let reply = walk(world, name.as_name(), qtype, 0).expect("somebody answers");
        let found: Vec<_> =
            records(&reply, Section::Answer).into_iter().filter(|it| it.1 != Rtype::RRSIG).collect();
        let alias = match &found[..] {
            [(_, Rtype::CNAME, target)] if qtype != Rtype::CNAME => {
                Some(Name::parse(target).expect("a name").0.to_buf())
            }
            _ => None,
        };
        all.extend(found);
        match alias {
            Some(target) => name = target,
            None => return (Message::parse(&reply).expect("well formed").rcode(), all),
        }
    }
}

/// Questions of all kinds about some zones.
fn questions(world: &World) -> Vec<(NameBuf, Rtype)> {
    let mut all = Vec::new();
    for leaf in (0..world.options().zones).step_by(37) {
        let zone = world.zone_text(leaf);
        for host in [
            "www",
            "mail",
            "alias",
            "chain",
            "big",
            "text",
            "deep",
            "host.deep",
            "a.b.wild",
            "wild",
            "ns1",
            "no",
            "a.www",
        ] {
            all.push((name(&format!("{host}.{zone}")), Rtype::A));
        }
        all.push((name(&format!("big.{zone}")), Rtype::TXT));
        all.push((name(&format!("a.wild.{zone}")), Rtype::TXT));
        for rtype in [Rtype::NS, Rtype::SOA, Rtype::DS, Rtype::DNSKEY, Rtype::MX] {
            all.push((name(&zone), rtype));
        }
    }
    for other in [
        "t000",
        "t005",
        "z000001.t000",
        "z000400.t000",
        "no",
        "a.no",
        "ns1",
        "ns9",
        "a.ns1",
        "ns2.t001",
        "x.ns2.t001",
    ] {
        all.extend([(name(other), Rtype::A), (name(other), Rtype::DS)]);
    }
    all
}

#[test]
fn a_walk_from_the_root_finds_what_is_true() {
    for seed in 0..3 {
        let faulty =
            Options { seed, out_of_zone: 300, dead: 100, lame: 100, without_edns: 0, ..Options::default() };
        for options in [Options { seed, ..Options::default() }, faulty] {
            let world = world(options);
            for (qname, qtype) in questions(&world) {
                let truth = world.truth(qname.as_name(), qtype);
                let (rcode, records) = resolve(&world, qname.as_name(), qtype);
                assert_eq!((rcode, &records), (truth.rcode, &truth.records), "{} {qtype}", qname.as_name());
            }
        }
    }
}

#[test]
fn at_most_one_server_of_a_zone_has_a_fault() {
    let world = world(Options { dead: 300, lame: 300, without_edns: 300, ..Options::default() });
    let mut seen: HashMap<Fault, usize> = HashMap::new();
    for leaf in 0..400 {
        let roles =
            (0..world.server_count(Zone::Leaf(leaf))).map(|server| Role { zone: Zone::Leaf(leaf), server });
        let faults: Vec<Fault> = roles.filter_map(|role| world.fault(role)).collect();
        assert!(faults.len() <= 1);
        faults.into_iter().for_each(|fault| *seen.entry(fault).or_default() += 1);
    }
    assert!(seen.len() == 3 && seen.values().all(|count| *count > 80), "{seen:?}");
    assert_eq!(world.fault(Role { zone: Zone::Root, server: 0 }), None);
}

#[test]
fn addresses_say_whose_they_are() {
    let world = world(Options { out_of_zone: 500, ..Options::default() });
    for role in [(Zone::Root, 3), (Zone::Tld(4), 2), (Zone::Leaf(0), 1)] {
        let role = Role { zone: role.0, server: role.1 };
        let address = role.address(10);
        assert_eq!(world.role(address.into()), Some(role));
        assert_eq!(world.role(World::ipv6_of(address).into()), Some(role));
    }
    let hosted = (0..400).find(|leaf| world.providers_of(*leaf).is_some()).expect("half of them are");
    let nobodys = [Role { zone: Zone::Leaf(hosted), server: 0 }, Role { zone: Zone::Tld(5), server: 0 }];
    assert!(nobodys.iter().all(|role| world.role(role.address(10).into()).is_none()));
    assert_eq!(world.role([11, 0, 0, 1].into()), None);
}

#[test]
fn queries_are_counted_by_kind() {
    let world = world(Options::default());
    walk(&world, name("big.z000000.t000").as_name(), Rtype::TXT, 0).expect("an answer");
    walk(&world, name("z000000.t000").as_name(), Rtype::NS, 0).expect("an answer");
    let counts: HashMap<&str, u64> = KINDS.into_iter().zip(world.counts.read()).collect();
    for (kind, count) in
        [("all", 7), ("root", 2), ("tld", 2), ("zone", 3), ("ns", 3), ("tcp", 1), ("truncated", 1)]
    {
        assert_eq!(counts[kind], count, "{kind}: {counts:?}");
    }
    assert_eq!((counts["minimised"], counts["edns"]), (1, 7));
}

#[test]
fn the_same_seed_makes_the_same_internet() {
    let options = || Options { seed: 7, out_of_zone: 300, signed: 800, ..Options::default() };
    let (one, other) = (world(options()), world(options()));
    assert_eq!((one.hints(), one.anchor()), (other.hints(), other.anchor()));
    for (qname, qtype) in questions(&one) {
        let of = |world: &World| {
            let truth = world.truth(qname.as_name(), qtype);
            (truth.rcode, truth.is_secure, truth.records)
        };
        assert_eq!(of(&one), of(&other));
    }
}

/// Checks the signatures of a section; returns the records of proofs of absence.
fn verified(world: &World, zone: Zone, reply: &[u8], section: Section) -> Vec<(NameBuf, Rtype, Vec<u8>)> {
    let all = records(reply, section);
    let (apex, dnskey) = (world.apex(zone), world.dnskey(zone));
    let keys = [Dnskey::parse(&dnskey).expect("a key")];
    let now = world.options().unix_seconds as u32;
    let signed = all.iter().filter(|it| it.1 != Rtype::RRSIG);
    let mut proofs = Vec::new();
    for (owner, rtype, _) in signed.clone() {
        let of_set = signed.clone().filter(|it| it.0 == *owner && it.1 == *rtype);
        let set = Rrset::of(owner.as_name(), *rtype, of_set.map(|it| &*it.2)).expect("well formed");
        let covers = |data: &[u8]| data.starts_with(&rtype.0.to_be_bytes());
        let rrsigs = all.iter().filter(|it| it.0 == *owner && it.1 == Rtype::RRSIG && covers(&it.2));
        let rrsigs = rrsigs.map(|it| &*it.2);
        let verified = verify_rrset(&set, rrsigs, apex.as_name(), &keys, now, &mut Budget::new(8));
        let verified = verified.unwrap_or_else(|why| panic!("{} {rtype}: {why}", owner.as_name()));
        let denials = DenialRecord::of(&verified).map(|it| (it.owner.to_buf(), it.rtype, it.rdata.to_vec()));
        proofs.extend(denials.filter(|it| matches!(it.1, Rtype::NSEC | Rtype::NSEC3)));
    }
    proofs
}

fn as_denial((owner, rtype, data): &(NameBuf, Rtype, Vec<u8>)) -> DenialRecord<'_> {
    let owner = owner.as_name();
    // The label of a wildcard does not count (RFC 4034 §3.1.3).
    let labels = owner.labels().filter(|label| label != b"*").count() as u8;
    DenialRecord { owner, rtype: *rtype, rdata: data, labels }
}

/// Checks the last reply to a question: signatures, and proofs of what is not there.
fn check(world: &World, qname: Name<'_>, qtype: Rtype) {
    let reply = walk(world, qname, qtype, 0).expect("an answer");
    let message = Message::parse(&reply).expect("well formed");
    let zone = world.zone_of(qname, qtype);
    if !world.is_signed(zone) {
        return;
    }
    let apex = world.apex(zone);
    let signed = verified(world, zone, &reply, Section::Answer);
    assert!(signed.is_empty());
    let answers = records(&reply, Section::Answer);
    let proofs = verified(world, zone, &reply, Section::Authority);
    let proofs = proofs.iter().map(as_denial);
    let denials = Denials::new(apex.as_name(), proofs);
    let mut budget = HashBudget::new(0, 100);
    let is_aliased = answers.iter().any(|it| it.1 == Rtype::CNAME);
    let proved = match message.rcode() {
        Rcode::NXDOMAIN => denials.name_error(qname, &mut budget),
        _ if answers.is_empty() => denials.no_data(qname, qtype, &mut budget),
        _ if qname.labels().any(|label| label == b"wild") => denials.expansion(qname, 3, &mut budget),
        _ => return,
    };
    let expected = if world.truth(qname, qtype).is_secure { Proved::Fully } else { Proved::OptOut };
    assert!(!is_aliased);
    assert_eq!(proved, Ok(expected), "{qname} {qtype}");
}

#[test]
fn what_a_signed_world_says_can_be_proved() {
    for denial in [Denial::Nsec, Denial::Nsec3, Denial::Mixed] {
        let algorithms = vec![Algorithm::ECDSAP256SHA256, Algorithm::ED25519];
        let world = world(Options { signed: 700, denial, algorithms, ..Options::default() });
        for (qname, qtype) in questions(&world) {
            check(&world, qname.as_name(), qtype);
        }
    }
}

#[test]
fn a_referral_says_whether_the_zone_is_signed() {
    let world = world(Options { signed: 500, denial: Denial::Mixed, ..Options::default() });
    let mut seen = [0; 2];
    for leaf in 0..100 {
        let zone = Zone::Leaf(leaf);
        let (above, apex) = (Zone::Tld(leaf % 5), world.apex(zone));
        let to = world.server_address(above, 1).into();
        let reply = ask(
            &world,
            to,
            name(&format!("www.{}", world.zone_text(leaf))).as_name(),
            Rtype::A,
            Carrier::Udp,
        );
        let authority = records(&reply.expect("a referral"), Section::Authority);
        let ds = authority.iter().find(|it| it.1 == Rtype::DS);
        assert_eq!(ds.is_some(), world.is_signed(zone));
        seen[usize::from(ds.is_some())] += 1;
        match ds {
            Some((_, _, data)) => {
                let dnskey = world.dnskey(zone);
                let key = Dnskey::parse(&dnskey).expect("a key");
                assert!(Ds::parse(data).expect("a DS").is_of(apex.as_name(), key));
            }
            None => {
                let proofs = authority.iter().filter(|it| matches!(it.1, Rtype::NSEC | Rtype::NSEC3));
                let proofs = proofs.map(as_denial);
                let above = world.apex(above);
                let denials = Denials::new(above.as_name(), proofs);
                assert!(denials.delegation(apex.as_name(), &mut HashBudget::new(0, 100)).is_ok());
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}
