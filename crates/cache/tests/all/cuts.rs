//! Delegations: which one is closest, until when, and what it takes.

use cache::Now;
use cache::cuts::{Cut, Ds, NewCut, NewCutServer, NewDs};
use cache::rrsets::{Partition, Put, RrsetFlush, RrsetLimits, Rrsets};
use proptest::prelude::*;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::{HashKey, Name, NameBuf};

const OWN: Partition = Partition(0);
const FOREVER: Now = Now(u32::MAX);

fn rrsets(octets_max: usize) -> Rrsets {
    Rrsets::new(
        RrsetLimits::with_octets(octets_max),
        HashKey::new([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]),
    )
}

fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

fn put(rrsets: &Rrsets, zone: &str, ttl: u32, parent_ends_at: Now, now: u32) -> Put {
    let server = name(&format!("ns.{}", zone.trim_start_matches('.')));
    let servers = [NewCutServer { name: server.as_name(), addresses: &[] }];
    let new = NewCut { servers: &servers, child: &[], ds: NewDs::Unknown, ttl, parent_ends_at };
    rrsets.put_cut(name(zone).as_name(), OWN, &new, Now(now))
}

fn closest(rrsets: &Rrsets, wanted: &str, now: u32) -> Option<(String, u32)> {
    let mut out = Vec::new();
    let cut = rrsets.closest_cut(name(wanted).as_name(), OWN, Now(now), &mut out)?;
    Some((cut.zone.to_buf().to_string(), cut.ends_at.0))
}

#[test]
fn a_cut_is_given_back_as_it_came() {
    let rrsets = rrsets(1 << 20);
    let (first, second, outside) = (name("ns1.example.org"), name("NS2.example.org"), name("ns.example.net"));
    let addresses: [IpAddr; 3] =
        [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::new(192, 0, 2, 2).into()];
    let servers = [
        NewCutServer { name: first.as_name(), addresses: &addresses },
        NewCutServer { name: outside.as_name(), addresses: &[] },
        NewCutServer { name: second.as_name(), addresses: &addresses[..1] },
    ];
    let child = [second.as_name(), outside.as_name()];
    let digest: &[u8] = &[7; 36];
    for ds in [NewDs::Unknown, NewDs::Unsigned, NewDs::Signed(&[digest, &[8; 24]])] {
        let _ = rrsets.flush(RrsetFlush::All);
        let new = NewCut { servers: &servers, child: &child, ds, ttl: 100, parent_ends_at: FOREVER };
        assert_eq!(
            rrsets.put_cut(name("Example.ORG").as_name(), OWN, &new, Now(7)),
            Put::Stored { ttl: 100 }
        );
        let mut out = Vec::new();
        let cut = rrsets.cut(name("example.org").as_name(), OWN, Now(8), &mut out).expect("it is there");
        assert_eq!((cut.zone.as_bytes(), cut.ttl, cut.ends_at), (&b"\x07example\x03org\0"[..], 99, Now(107)));
        let found: Vec<_> =
            cut.servers().map(|(name, addresses)| (name, addresses.collect::<Vec<_>>())).collect();
        assert_eq!(found.len(), 3);
        for ((name, found), given) in found.iter().zip(&servers) {
            assert!(name.as_name() == given.name);
            assert!(found.iter().all(|address| given.addresses.contains(address)));
            assert_eq!(found.len(), given.addresses.len());
        }
        assert!(cut.child().map(|(name, _)| name).eq([second, outside]));
        match (cut.ds(), ds) {
            (Ds::Unknown, NewDs::Unknown) | (Ds::Unsigned, NewDs::Unsigned) => {}
            (Ds::Signed(found), NewDs::Signed(given)) => assert!(found.eq(given.iter().copied())),
            _ => panic!("another state of DS than {ds:?}"),
        }
    }
}

#[test]
fn the_closest_cut_is_that_of_the_longest_suffix() {
    let rrsets = rrsets(1 << 20);
    assert_eq!(closest(&rrsets, "www.example.org", 0), None);
    for zone in [".", "org", "example.org", "a.b.c.example.org"] {
        assert!(matches!(put(&rrsets, zone, 100, FOREVER, 0), Put::Stored { .. }));
    }
    let check = |wanted, zone: &str| {
        assert_eq!(closest(&rrsets, wanted, 0), Some((zone.to_string(), 100)), "{wanted}");
    };
    check("www.example.org", "example.org.");
    check("EXAMPLE.org", "example.org.");
    check("b.c.example.org", "example.org.");
    check("x.a.b.c.example.org", "a.b.c.example.org.");
    check("xexample.org", "org.");
    check("example.net", ".");
    check(".", ".");
    let mut out = Vec::new();
    assert!(rrsets.closest_cut(name("example.org").as_name(), Partition(1), Now(0), &mut out).is_none());
}

#[test]
fn a_cut_ends_with_the_one_it_was_found_under() {
    let rrsets = rrsets(1 << 20);
    assert_eq!(put(&rrsets, "org", 100, FOREVER, 0), Put::Stored { ttl: 100 });
    // The zone above, as the table knows it and as the asker says.
    assert_eq!(put(&rrsets, "example.org", 1000, FOREVER, 10), Put::Stored { ttl: 90 });
    assert_eq!(put(&rrsets, "deep.example.org", 1000, Now(60), 10), Put::Stored { ttl: 50 });
    assert_eq!(put(&rrsets, "deeper.deep.example.org", 1000, FOREVER, 20), Put::Stored { ttl: 40 });
    assert_eq!(put(&rrsets, "other.example.org", 1000, Now(20), 20), Put::Refused);
    // However often its own servers say that it goes on: when org's word for it is over, all is.
    for now in (20..100).step_by(7) {
        for zone in ["example.org", "deep.example.org", "deeper.deep.example.org"] {
            put(&rrsets, zone, 1000, FOREVER, now);
        }
    }
    assert_eq!(closest(&rrsets, "deeper.deep.example.org", 100), None);
}

#[test]
fn a_cut_that_lives_is_changed_but_not_prolonged() {
    let rrsets = rrsets(1 << 20);
    assert_eq!(put(&rrsets, "example.org", 100, FOREVER, 0), Put::Stored { ttl: 100 });
    assert_eq!(put(&rrsets, "example.org", 100, FOREVER, 50), Put::Kept);
    assert_eq!(put(&rrsets, "example.org", 10, FOREVER, 50), Put::Stored { ttl: 10 });
    let moved = name("ns.example.net");
    let servers = [NewCutServer { name: moved.as_name(), addresses: &[] }];
    let new =
        NewCut { servers: &servers, child: &[], ds: NewDs::Unsigned, ttl: 100, parent_ends_at: FOREVER };
    assert_eq!(rrsets.put_cut(name("example.org").as_name(), OWN, &new, Now(55)), Put::Stored { ttl: 5 });
    assert_eq!(put(&rrsets, "example.org", 100, FOREVER, 60), Put::Stored { ttl: 100 });
}

#[test]
fn what_no_cut_can_have_is_refused() {
    let rrsets = rrsets(1 << 20);
    let zone = name("example.org");
    let server = NewCutServer { name: zone.as_name(), addresses: &[] };
    let full = [IpAddr::from(Ipv4Addr::LOCALHOST); 16];
    let check = |servers: &[NewCutServer<'_>], ds| {
        let new = NewCut { servers, child: &[], ds, ttl: 100, parent_ends_at: FOREVER };
        assert_eq!(rrsets.put_cut(zone.as_name(), OWN, &new, Now(0)), Put::Refused);
    };
    check(&[], NewDs::Unknown);
    check(&[server; 256], NewDs::Unknown);
    check(&[NewCutServer { addresses: &full, ..server }], NewDs::Unknown);
    check(&[server], NewDs::Signed(&[]));
    check(&[server], NewDs::Signed(&[&[0; 65536]]));
    assert_eq!(put(&rrsets, "example.org", 0, FOREVER, 0), Put::Refused);
    assert_eq!(rrsets.stats().entries, 0);
}

#[test]
fn a_cut_takes_about_a_hundred_octets() {
    let rrsets = rrsets(1 << 20);
    let (first, second) = (name("ns1.example-zone.com"), name("ns2.example-zone.com"));
    let address = [IpAddr::from(Ipv4Addr::new(192, 0, 2, 1))];
    let names = [first, second];
    let servers = names.each_ref().map(|name| NewCutServer { name: name.as_name(), addresses: &address });
    let digest: &[u8] = &[7; 36];
    let take = |zone: &str, ds| {
        let before = rrsets.octets_used();
        let new = NewCut { servers: &servers, child: &[], ds, ttl: 100, parent_ends_at: FOREVER };
        assert!(matches!(rrsets.put_cut(name(zone).as_name(), OWN, &new, Now(0)), Put::Stored { .. }));
        rrsets.octets_used() - before
    };
    assert_eq!(take("example-zone.com", NewDs::Unsigned), 80);
    let _ = rrsets.flush(RrsetFlush::All);
    assert_eq!(take("example-zone.com", NewDs::Signed(&[digest])), 120);
}

#[test]
fn flushing_a_suffix_takes_the_delegations_in_it() {
    let rrsets = rrsets(1 << 20);
    for zone in ["org", "example.org", "deep.example.org"] {
        put(&rrsets, zone, 100, FOREVER, 0);
    }
    assert_eq!(rrsets.flush(RrsetFlush::Suffix(name("example.org").as_name())), 2);
    assert_eq!(closest(&rrsets, "deep.example.org", 0), Some(("org.".to_string(), 100)));
    assert_eq!(rrsets.flush(RrsetFlush::Type(name("org").as_name(), wire::Rtype::NS)), 1);
}

/// The zone of a number: up to seven labels deep, with many below the same.
fn zone_of(number: u16) -> NameBuf {
    let mut labels = Vec::new();
    let mut left = number;
    while left > 0 {
        labels.extend([1, b'a' + (left % 4) as u8]);
        left /= 4;
    }
    NameBuf::below(&labels, Name::ROOT).expect("short")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 64 }, ..ProptestConfig::default() })]

    #[test]
    fn cuts_are_found_and_end_as_in_a_map_of_them(
        steps in prop::collection::vec((0..2000_u16, 1..500_u32, 0..40_u32, 0..2000_u16), 1..300),
    ) {
        let rrsets = rrsets(1 << 20);
        let mut model: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut now = 1000;
        let mut out = Vec::new();
        let enclosing = |model: &HashMap<Vec<u8>, u32>, name: Option<Name<'_>>, now: u32| {
            std::iter::successors(name, |name| name.parent()).find_map(|name| {
                let ends_at = model.get(name.as_bytes()).copied().filter(|&ends_at| ends_at > now)?;
                Some((name.as_bytes().to_vec(), ends_at))
            })
        };
        for (number, ttl, wait, wanted) in steps {
            now += wait;
            let zone = zone_of(number);
            let above = enclosing(&model, zone.as_name().parent(), now).map_or(u32::MAX, |(_, ends_at)| ends_at);
            let own = model.get(zone.as_name().as_bytes()).copied().filter(|&ends_at| ends_at > now);
            let servers = [NewCutServer { name: zone.as_name(), addresses: &[] }];
            let new = NewCut { servers: &servers, child: &[], ds: NewDs::Unknown, ttl, parent_ends_at: FOREVER };
            let put = rrsets.put_cut(zone.as_name(), OWN, &new, Now(now));
            let ends_at = (now + ttl).min(above).min(own.unwrap_or(u32::MAX));
            let expected = if own == Some(ends_at) { Put::Kept } else { Put::Stored { ttl: ends_at - now } };
            prop_assert_eq!(put, expected);
            model.insert(zone.as_name().as_bytes().to_vec(), ends_at);
            prop_assert!(ends_at <= above, "it outlives its parent");
            let wanted = zone_of(wanted);
            let found = rrsets.closest_cut(wanted.as_name(), OWN, Now(now), &mut out);
            let found = found.map(|cut: Cut<'_>| (cut.zone.as_bytes().to_vec(), cut.ends_at.0));
            prop_assert_eq!(found, enclosing(&model, Some(wanted.as_name()), now));
        }
    }
}
