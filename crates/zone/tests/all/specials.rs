//! Names made from addresses, records chosen for the client, and records that take turns.

use crate::support;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sets::{AddressSet, AddressSetBuilder};
use support::{KEY, name, zones};
use wire::{Class, Flags, Message, Question, Rcode, Rtype, Ttl, Writer};
use zone::{Alternative, Answered, Asked, Choice, Maker, Specials, Zones};

const ORG: &str = "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nhost-192-0-2-7 TXT \"here\"\n\
    *.wild A 192.0.2.2\nmany A 192.0.2.11\nmany A 192.0.2.12\nmany A 192.0.2.13\nmail MX 10 many\nmail MX 20 ns\n";
const REVERSE: &str =
    "$TTL 60\n@ SOA ns.example.org. a 1 2 3 4 5\n@ NS ns.example.org.\n1 PTR ns.example.org.\n";

fn networks(list: &[(&str, u8)]) -> Arc<AddressSet> {
    let mut builder = AddressSetBuilder::new();
    for (address, bits) in list {
        assert!(builder.prefix(address.parse().expect("an address"), *bits));
    }
    Arc::new(builder.compile())
}

fn ask(zones: &Zones, asked: Asked<'_>) -> (Answered, Vec<String>) {
    let mut buffer = [0; 4096];
    let mut writer = Writer::new(&mut buffer, 4096, 1, Flags::QR);
    let question = Question { qname: asked.qname, qtype: asked.qtype, qclass: Class::IN };
    writer.question(&question).expect("room");
    let answered = zones.answer(&asked, &mut writer).expect("a zone of ours");
    let len = writer.finish();
    let message = Message::parse(&buffer[..len]).expect("a message");
    let lines = message.records().map(|record| {
        let data = wire::rdata::display(record.rtype, &buffer[..len], record.rdata_at..record.end());
        format!("{} {} {} {data}", record.owner, record.ttl(), record.rtype)
    });
    (answered, lines.collect())
}

fn check(zones: &Zones, qname: &str, qtype: Rtype, rcode: Rcode, lines: &[&str]) {
    let qname = name(qname);
    let (answered, found) = ask(zones, Asked::new(qname.as_name(), qtype, false));
    assert_eq!(
        (answered.rcode, found.iter().map(String::as_str).collect::<Vec<_>>()),
        (rcode, lines.to_vec())
    );
}

fn with_makers() -> Zones {
    let maker = |origin: Option<&str>| Maker {
        prefix: "host-".into(),
        networks: networks(&[("192.0.2.0", 24), ("2001:db8::", 64)]),
        origin: origin.map(name),
        ttl: Ttl::new(3600),
    };
    let of = |origin| Specials::new(&KEY, vec![maker(origin)], vec![]);
    let ip6 = "0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
    zones(&[("example.org", ORG), ("2.0.192.in-addr.arpa", REVERSE), (ip6, REVERSE)]).with_specials(vec![
        (name("example.org"), of(None)),
        (name("2.0.192.in-addr.arpa"), of(Some("example.org"))),
        (name(ip6), of(Some("example.org"))),
    ])
}

const SOA: &str = "example.org. 5 SOA ns.example.org. a.example.org. 1 2 3 4 5";

#[test]
fn names_are_made_from_addresses() {
    let zones = with_makers();
    check(
        &zones,
        "host-192-0-2-9.example.org",
        Rtype::A,
        Rcode::NOERROR,
        &["host-192-0-2-9.example.org. 3600 A 192.0.2.9"],
    );
    check(
        &zones,
        "HOST-2001-db8--1.example.org",
        Rtype::AAAA,
        Rcode::NOERROR,
        &["HOST-2001-db8--1.example.org. 3600 AAAA 2001:db8::1"],
    );
    // The name exists, but not with this type.
    check(&zones, "host-192-0-2-9.example.org", Rtype::AAAA, Rcode::NOERROR, &[SOA]);
    for absent in [
        "host-192-0-3-9",
        "host-192-0-2",
        "host-",
        "guest-192-0-2-9",
        "host-192\\.0\\.2\\.9",
        "a.host-192-0-2-9",
    ] {
        check(&zones, &format!("{absent}.example.org"), Rtype::A, Rcode::NXDOMAIN, &[SOA]);
    }
    // What is in the zone comes first.
    check(&zones, "host-192-0-2-7.example.org", Rtype::A, Rcode::NOERROR, &[SOA]);
    check(
        &zones,
        "host-192-0-2-9.wild.example.org",
        Rtype::A,
        Rcode::NOERROR,
        &["host-192-0-2-9.wild.example.org. 60 A 192.0.2.2"],
    );
}

#[test]
fn reverse_names_lead_back() {
    let zones = with_makers();
    check(
        &zones,
        "9.2.0.192.in-addr.arpa",
        Rtype::PTR,
        Rcode::NOERROR,
        &["9.2.0.192.in-addr.arpa. 3600 PTR host-192-0-2-9.example.org."],
    );
    check(
        &zones,
        "1.2.0.192.in-addr.arpa",
        Rtype::PTR,
        Rcode::NOERROR,
        &["1.2.0.192.in-addr.arpa. 60 PTR ns.example.org."],
    );
    let reverse = format!("1.{}0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.", "0.".repeat(15));
    check(
        &zones,
        &reverse,
        Rtype::PTR,
        Rcode::NOERROR,
        &[&format!("{reverse} 3600 PTR host-2001-db8--1.example.org.")],
    );
    let soa = "2.0.192.in-addr.arpa. 5 SOA ns.example.org. a.2.0.192.in-addr.arpa. 1 2 3 4 5";
    for absent in ["256", "09", "x", "9.9"] {
        check(&zones, &format!("{absent}.2.0.192.in-addr.arpa"), Rtype::PTR, Rcode::NXDOMAIN, &[soa]);
    }
}

fn a(address: &str) -> Alternative {
    let octets = address.parse::<std::net::Ipv4Addr>().expect("an address").octets();
    Alternative::new(Rtype::A, Ttl::new(30), &[octets.to_vec()])
}

fn choosing(alternatives: Vec<Alternative>) -> Zones {
    let choice = Choice::new(name("www.example.org"), Rtype::A, alternatives);
    zones(&[("example.org", ORG)])
        .with_specials(vec![(name("example.org"), Specials::new(&KEY, vec![], vec![choice]))])
}

fn chosen(zones: &Zones, client: &str, random: u32) -> String {
    let qname = name("www.example.org");
    let client: Option<IpAddr> = Some(client.parse().expect("an address"));
    let asked = Asked { client, random, ..Asked::new(qname.as_name(), Rtype::A, false) };
    let (_, lines) = ask(zones, asked);
    assert_eq!(lines.len(), 1);
    lines[0].rsplit(' ').next().expect("data").to_owned()
}

#[test]
fn a_clients_network_decides() {
    let near = |address, network| Alternative { clients: Some(networks(&[network])), ..a(address) };
    let zones = choosing(vec![
        near("203.0.113.1", ("198.51.100.0", 24)),
        near("203.0.113.2", ("2001:db8::", 32)),
        a("203.0.113.3"),
    ]);
    for (client, address) in
        [("198.51.100.9", "203.0.113.1"), ("2001:db8::9", "203.0.113.2"), ("192.0.2.1", "203.0.113.3")]
    {
        assert_eq!(chosen(&zones, client, 7), address);
    }
    let qname = name("www.example.org");
    let (answered, _) = ask(&zones, Asked::new(qname.as_name(), Rtype::A, false));
    assert!(answered.depends_on_client);
    // The name exists for every type, and nothing else changes.
    check(&zones, "www.example.org", Rtype::TXT, Rcode::NOERROR, &[SOA]);
    check(&zones, "ns.example.org", Rtype::A, Rcode::NOERROR, &["ns.example.org. 60 A 192.0.2.1"]);
}

#[test]
fn weights_share_clients_out() {
    let zones = choosing(vec![
        Alternative { weight: 3, ..a("203.0.113.1") },
        Alternative { weight: 1, ..a("203.0.113.2") },
        Alternative { weight: 0, ..a("203.0.113.3") },
    ]);
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for i in 0..4000_u32 {
        *counts.entry(chosen(&zones, "192.0.2.1", i.wrapping_mul(1_073_741))).or_default() += 1;
    }
    let of = |address: &str| counts.get(address).copied().unwrap_or(0);
    assert!((2950..=3050).contains(&of("203.0.113.1")), "{counts:?}");
    assert!((950..=1050).contains(&of("203.0.113.2")), "{counts:?}");
    assert_eq!(of("203.0.113.3"), 0);
}

#[test]
fn what_is_not_healthy_is_not_chosen_as_long_as_something_else_is() {
    let health = [0; 3].map(|down| Arc::new(AtomicU64::new(down)));
    let checked = |at: usize, it: Alternative| Alternative { health: Some(Arc::clone(&health[at])), ..it };
    let zones = choosing(vec![
        checked(0, Alternative { clients: Some(networks(&[("198.51.100.0", 24)])), ..a("203.0.113.1") }),
        checked(1, a("203.0.113.2")),
        checked(2, Alternative { weight: 0, ..a("203.0.113.3") }),
    ]);
    let now = || chosen(&zones, "198.51.100.9", 0);
    assert_eq!(now(), "203.0.113.1");
    health[0].store(1, Ordering::Relaxed);
    assert_eq!(now(), "203.0.113.2");
    health[1].store(1, Ordering::Relaxed);
    assert_eq!(now(), "203.0.113.3");
    // Nothing is healthy: better what is close than nothing.
    health[2].store(1, Ordering::Relaxed);
    assert_eq!(now(), "203.0.113.1");
}

#[test]
fn a_record_that_does_not_work_is_left_out_of_its_set() {
    let down = Arc::new(AtomicU64::new(0));
    let data = [[203, 0, 113, 1], [203, 0, 113, 2], [203, 0, 113, 3]].map(|address| address.to_vec());
    let alternative = Alternative::new(Rtype::A, Ttl::new(30), &data);
    let zones = choosing(vec![
        Alternative { health: Some(Arc::clone(&down)), ..alternative },
        Alternative { weight: 0, ..a("203.0.113.9") },
    ]);
    let qname = name("www.example.org");
    let now = |bits| {
        down.store(bits, Ordering::Relaxed);
        let (_, lines) = ask(&zones, Asked::new(qname.as_name(), Rtype::A, false));
        let last = |line: &String| line.rsplit('.').next().and_then(|octet| octet.parse().ok());
        lines.iter().map(|line| last(line).expect("an address")).collect::<Vec<u8>>()
    };
    assert_eq!(now(0b000), [1, 2, 3]);
    assert_eq!(now(0b010), [1, 3]);
    assert_eq!(now(0b110), [1]);
    assert_eq!(now(0b111), [9]);
}

#[test]
fn names_above_what_is_chosen_or_made_exist() {
    let choice = Choice::new(name("a.b.chosen.example.org"), Rtype::A, vec![a("203.0.113.1")]);
    let zones = zones(&[("example.org", ORG)])
        .with_specials(vec![(name("example.org"), Specials::new(&KEY, vec![], vec![choice]))]);
    for there in ["a.b.chosen", "b.chosen", "chosen"] {
        check(&zones, &format!("{there}.example.org"), Rtype::TXT, Rcode::NOERROR, &[SOA]);
    }
    for absent in ["c.chosen", "x.a.b.chosen", "hosen"] {
        check(&zones, &format!("{absent}.example.org"), Rtype::TXT, Rcode::NXDOMAIN, &[SOA]);
    }
    // RFC 8020: what is above a reverse name that is made must not be denied.
    let zones = with_makers();
    let ip6 = "0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
    let soa = format!("{ip6}. 5 SOA ns.example.org. a.{ip6}. 1 2 3 4 5");
    for labels in ["0", "f.0", "0.0.0.0.0.0.0.0.0.0.0.0.0.0.a"] {
        check(&zones, &format!("{labels}.{ip6}"), Rtype::PTR, Rcode::NOERROR, &[&soa]);
    }
    check(&zones, &format!("x.{ip6}"), Rtype::PTR, Rcode::NXDOMAIN, &[&soa]);
}

#[test]
fn a_chosen_alias_is_followed() {
    let target = name("many.example.org");
    let alias = Alternative::new(Rtype::CNAME, Ttl::new(30), &[target.as_name().as_bytes().to_vec()]);
    let choice = Choice::new(name("cdn.example.org"), Rtype::CNAME, vec![alias]);
    let zones = zones(&[("example.org", ORG)])
        .with_specials(vec![(name("example.org"), Specials::new(&KEY, vec![], vec![choice]))]);
    check(
        &zones,
        "cdn.example.org",
        Rtype::A,
        Rcode::NOERROR,
        &[
            "cdn.example.org. 30 CNAME many.example.org.",
            "many.example.org. 60 A 192.0.2.11",
            "many.example.org. 60 A 192.0.2.12",
            "many.example.org. 60 A 192.0.2.13",
        ],
    );
}

#[test]
fn records_take_turns_if_they_are_to() {
    let zones = zones(&[("example.org", ORG)]).rotating();
    for (qname, qtype, count) in [("many.example.org", Rtype::A, 3), ("mail.example.org", Rtype::MX, 2)] {
        let qname = name(qname);
        let answers = |random| {
            let (_, lines) = ask(&zones, Asked { random, ..Asked::new(qname.as_name(), qtype, false) });
            lines
                .into_iter()
                .filter(|line| line.contains(&format!(" {qtype} ")) && line.starts_with(&qname.to_string()))
                .collect::<Vec<_>>()
        };
        let first = answers(0);
        assert_eq!(first.len(), count);
        for random in 1..=7 {
            let mut turned = first.clone();
            turned.rotate_left(random as usize % count);
            assert_eq!(answers(random), turned);
        }
    }
}
