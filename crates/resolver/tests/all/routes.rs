//! Zones that are not found from the root down.

use std::net::SocketAddr;

use cache::Security;
use resolver::{AddressPolicy, HeapName, NegativeAnchor, Route, Settings, Stub, Way};
use wire::{Rcode, Rtype, Section};

use crate::referrals::small;
use crate::signed::{Internet, Signed, Signing};
use crate::world::{Behaviour, World, ip, name, plain_settings, record};

/// Returns a stub zone with servers at these addresses.
fn stub(zone: &str, addresses: &[&str]) -> Route {
    let address = |text: &&str| text.parse().unwrap_or_else(|_| SocketAddr::new(ip(text), 53));
    let addresses = addresses.iter().map(address).collect();
    let way = Way::Stub(Stub { addresses, ..Stub::default() });
    Route { zone: HeapName::new(name(zone).as_name()), way, first: false, keeps: true }
}

fn change(mut route: Route, change: impl FnOnce(&mut Stub)) -> Route {
    let Way::Stub(stub) = &mut route.way else { panic!("a stub zone") };
    change(stub);
    route
}

fn with(routes: Vec<Route>) -> World {
    let mut world = World::with(Settings { routes, ..plain_settings() });
    small(&mut world);
    world.zone(
        "corp.example.org",
        &["10.0.0.1", "10.0.0.2"],
        "www.corp.example.org A 10.1.0.1
         corp.example.org NS ns1.corp.example.org
         ns1.corp.example.org A 10.0.0.2
         lab.corp.example.org NS ns.lab.corp.example.org
         ns.lab.corp.example.org A 192.0.2.9
         alias.corp.example.org CNAME www.example.org",
    );
    world.zone("lab.corp.example.org", &["192.0.2.9"], "www.lab.corp.example.org A 10.1.0.9");
    world
}

/// Returns whom a question was sent to, without those who were asked twice in a row.
fn asked(world: &World, from: usize) -> Vec<String> {
    let mut asked: Vec<String> =
        world.sent[from..].iter().map(|sent| SocketAddr::new(sent.to, sent.port).to_string()).collect();
    asked.dedup();
    asked
}

#[test]
fn the_servers_of_a_stub_zone_are_asked_in_place_of_the_parents() {
    let mut world = with(vec![stub("corp.example.org", &["10.0.0.1:5353"])]);
    let seen = world.resolve("www.corp.example.org", Rtype::A);
    assert_eq!(seen.answer, ["www.corp.example.org. 3600 A 10.1.0.1"]);
    assert_eq!(asked(&world, 0), ["10.0.0.1:5353"], "a private address that the settings name");
    // A zone below it is found by its delegation, which is known from then on.
    let from = world.sent.len();
    let seen = world.resolve("www.lab.corp.example.org", Rtype::A);
    assert_eq!(seen.answer, ["www.lab.corp.example.org. 3600 A 10.1.0.9"]);
    assert_eq!(asked(&world, from), ["10.0.0.1:5353", "192.0.2.9:53"]);
    assert_eq!(world.resolve("other.lab.corp.example.org", Rtype::A).sends, 1);
    // An alias leads out of it.
    let from = world.sent.len();
    let seen = world.resolve("alias.corp.example.org", Rtype::A);
    assert_eq!(seen.answer.len(), 3, "{seen:?}");
    assert_eq!(asked(&world, from)[..3], ["10.0.0.1:5353", "192.0.2.1:53", "192.0.2.2:53"]);
}

#[test]
fn each_name_goes_by_the_closest_zone() {
    let routes = vec![
        stub("example.org", &["203.0.113.1"]),
        stub("corp.example.org", &["10.0.0.1"]),
        stub("lab.corp.example.org", &["203.0.113.9"]),
    ];
    let mut world = with(routes);
    world.server("203.0.113.1").zones.push("example.org".to_owned());
    world.server("203.0.113.9").zones.push("lab.corp.example.org".to_owned());
    for (qname, server) in [
        ("www.example.org", "203.0.113.1:53"),
        ("none.example.org", "203.0.113.1:53"),
        ("www.corp.example.org", "10.0.0.1:53"),
        ("www.lab.corp.example.org", "203.0.113.9:53"),
        ("lab.corp.example.org", "203.0.113.9:53"),
    ] {
        let from = world.sent.len();
        assert_eq!(world.resolve(qname, Rtype::A).failure, None, "{qname}");
        assert_eq!(asked(&world, from), [server], "{qname}");
    }
    let from = world.sent.len();
    world.resolve("lab.corp.example.org", Rtype::DS);
    assert_eq!(asked(&world, from), ["10.0.0.1:53"], "the parent has the DS records of a zone");
    let from = world.sent.len();
    world.resolve("www.org", Rtype::A);
    assert_eq!(asked(&world, from), ["192.0.2.1:53", "192.0.2.2:53"], "others are found from the root");
}

#[test]
fn the_root_can_be_a_stub_zone() {
    let mut world = with(vec![stub(".", &["203.0.113.1", "203.0.113.2"])]);
    for address in ["203.0.113.1", "203.0.113.2"] {
        world.server(address).zones.push(".".to_owned());
    }
    world.server("192.0.2.1").behaviour = Behaviour::Dead;
    assert_eq!(world.resolve("www.example.org", Rtype::A).answer.len(), 2);
    assert_eq!(world.resolve(".", Rtype::NS).failure, None);
    assert!(world.sent.iter().all(|sent| sent.to != ip("192.0.2.1")));
}

#[test]
fn hosts_of_a_stub_zone_are_looked_for() {
    let host = |host: &str, port: u16| {
        let hosts = vec![(HeapName::new(name(host).as_name()), port)];
        with(vec![change(stub("corp.example.org", &[]), |stub| stub.hosts = hosts)])
    };
    let mut world = host("ns.elsewhere.org", 5300);
    world.zone("org", &[], "elsewhere.org NS ns.elsewhere.org\n ns.elsewhere.org A 192.0.2.5");
    world.zone("elsewhere.org", &["192.0.2.5"], "ns.elsewhere.org A 10.0.0.1");
    for qname in ["www.corp.example.org", "none.corp.example.org"] {
        assert_eq!(world.resolve(qname, Rtype::A).failure, None);
        assert_eq!(asked(&world, 0).last().map(String::as_str), Some("10.0.0.1:5300"));
    }
    let seen = host("none.example.org", 53).resolve("www.corp.example.org", Rtype::A);
    assert_eq!(seen.failure.as_deref(), Some("no-address"));
    let seen = host("ns.corp.example.org", 53).resolve("www.corp.example.org", Rtype::A);
    assert_eq!(seen.failure.as_deref(), Some("circle"), "it would have to be asked where it is");
}

#[test]
fn a_stub_zone_has_servers_of_families_that_are_used() {
    let routes = vec![stub("corp.example.org", &["[2001:db8::1]:53", "10.0.0.1"])];
    let addresses = AddressPolicy { v6: false, ..AddressPolicy::default() };
    let mut world = World::with(Settings { routes, addresses, ..plain_settings() });
    world.zone("corp.example.org", &["10.0.0.1", "2001:db8::1"], "");
    for number in 0..20 {
        world.resolve(&format!("n{number}.corp.example.org"), Rtype::A);
    }
    assert_eq!(asked(&world, 0), ["10.0.0.1:53"]);
}

#[test]
fn servers_that_were_asked_which_ones_there_are_are_asked_no_more() {
    let primed = change(stub("corp.example.org", &["10.0.0.1"]), |stub| stub.primes = true);
    let addresses = AddressPolicy { private: true, ..AddressPolicy::default() };
    let settings = Settings { addresses, ..plain_settings() };
    let mut world = World::with(Settings { routes: vec![primed], ..settings });
    let text = "corp.example.org NS ns1.corp.example.org\n ns1.corp.example.org A 10.0.0.2";
    world.zone("corp.example.org", &["10.0.0.1", "10.0.0.2"], text);
    world.resolve("a.corp.example.org", Rtype::A);
    assert_eq!(asked(&world, 0), ["10.0.0.1:53"]);
    let from = world.sent.len();
    world.resolve("b.corp.example.org", Rtype::A);
    assert_eq!(asked(&world, from), ["10.0.0.2:53"]);
    world.pass_ms(3_600_000);
    let from = world.sent.len();
    world.resolve("c.corp.example.org", Rtype::A);
    world.resolve("d.corp.example.org", Rtype::A);
    assert_eq!(asked(&world, from), ["10.0.0.1:53", "10.0.0.2:53"], "and again when that has expired");
}

#[test]
fn a_zone_whose_servers_fail_is_found_otherwise_if_it_may() {
    let check = |first: bool, behaviour: Behaviour, expected: Option<&str>| {
        let office = Route { first, ..stub("example.org", &["203.0.113.1", "203.0.113.2"]) };
        let mut world = with(vec![office]);
        for address in ["203.0.113.1", "203.0.113.2"] {
            world.server(address).behaviour = behaviour.clone();
        }
        for qname in ["www.example.org", "deep.below.example.org"] {
            let seen = world.resolve(qname, Rtype::TXT);
            assert_eq!(seen.failure.as_deref(), expected, "{qname}");
            assert_eq!(seen.rcode == Rcode::NOERROR, first);
        }
        if first {
            assert!(asked(&world, 0).contains(&"192.0.2.1:53".to_owned()));
        }
    };
    check(true, Behaviour::Dead, None);
    check(true, Behaviour::Rcode(Rcode::REFUSED), None);
    check(true, Behaviour::Rcode(Rcode::SERVFAIL), None);
    check(false, Behaviour::Dead, Some("silent"));
    check(false, Behaviour::Rcode(Rcode::SERVFAIL), Some("faulty"));
}

#[test]
fn what_fails_goes_by_the_next_route_above() {
    let routes = vec![
        Route { first: true, ..stub("corp.example.org", &["203.0.113.1"]) },
        stub("example.org", &["192.0.2.3"]),
    ];
    let mut world = with(routes);
    world.server("203.0.113.1").behaviour = Behaviour::Rcode(Rcode::REFUSED);
    let seen = world.resolve("www.corp.example.org", Rtype::A);
    assert_eq!(seen.rcode, Rcode::NXDOMAIN, "the zone above knows nothing of it");
    assert_eq!(asked(&world, 0), ["203.0.113.1:53", "192.0.2.3:53"]);
}

/// Who is asked about other names says something of a zone that is found elsewhere.
#[test]
fn nobody_else_speaks_for_a_stub_zone() {
    let mut world = with(vec![stub("corp.example.org", &["10.0.0.1"])]);
    let lies = [
        "www.example.org CNAME www.corp.example.org",
        "www.corp.example.org A 192.0.2.66",
        "next.corp.example.org A 192.0.2.66",
    ];
    let lies = lies.map(|line| (Section::Answer, record(line)));
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Liar(lies.to_vec());
    }
    let seen = world.resolve("www.example.org", Rtype::A);
    assert_eq!(seen.answer[1..], ["www.corp.example.org. 3600 A 10.1.0.1"], "{seen:?}");
    assert_eq!(world.resolve("next.corp.example.org", Rtype::A).rcode, Rcode::NXDOMAIN);
    // Glue for a server in the zone is not the parent's to give either.
    world.zone("org", &[], "other.org NS ns1.corp.example.org\n ns1.corp.example.org A 192.0.2.66");
    let from = world.sent.len();
    world.resolve("www.other.org", Rtype::A);
    assert!(asked(&world, from).iter().all(|server| server != "192.0.2.66:53"));
}

/// A name that is said not to be there hides what is below it (RFC 8020), but for zones that are
/// found elsewhere.
#[test]
fn a_name_that_is_not_there_hides_no_stub_zone() {
    for zone in ["gone.example.org", "inner.gone.example.org", "a.b.c.gone.example.org"] {
        let mut world = with(vec![stub(zone, &["10.0.0.1"])]);
        let host = format!("www.{zone}");
        world.zone(zone, &["10.0.0.1"], &format!("{zone} TXT here\n{host} A 10.1.0.7"));
        if zone != "gone.example.org" {
            assert_eq!(world.resolve("gone.example.org", Rtype::A).rcode, Rcode::NXDOMAIN);
        }
        assert_eq!(world.resolve("other.example.org", Rtype::A).rcode, Rcode::NXDOMAIN);
        let seen = world.resolve(&host, Rtype::A);
        assert_eq!(seen.answer, [format!("{host}. 3600 A 10.1.0.7")], "{zone}");
        assert_eq!(world.resolve(zone, Rtype::TXT).rcode, Rcode::NOERROR, "{zone}");
    }
}

#[test]
fn a_stub_zone_is_validated_like_any_other() {
    let build = |settings: Settings| {
        Internet::default()
            .zone(".", &["192.0.2.1"], Signing::Nsec, "")
            .zone("org", &["192.0.2.2"], Signing::Nsec, "")
            .zone("example.org", &["192.0.2.3"], Signing::Nsec, "www.example.org. A 198.51.100.1")
            .with(settings)
            .build()
    };
    let routes = vec![stub("example.org", &["192.0.2.4"])];
    let settings = Settings { routes, ..plain_settings() };
    let Signed { mut world, .. } = build(settings.clone());
    let zones = world.server("192.0.2.3").signed.take();
    world.server("192.0.2.4").signed = zones;
    world.server("192.0.2.3").behaviour = Behaviour::Dead;
    let seen = world.resolve("www.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.security), (Rcode::NOERROR, Security::Secure), "{seen:?}");
    assert_eq!(world.resolve("none.example.org", Rtype::A).security, Security::Secure);
    // Another zone of that name has other keys, or none.
    for signing in [Signing::No, Signing::Nsec] {
        let check = |negative: Vec<NegativeAnchor>, rcode: Rcode, security: Security| {
            let internet = Internet::default()
                .zone(".", &["192.0.2.1"], Signing::Nsec, "")
                .zone("org", &["192.0.2.2"], Signing::Nsec, "")
                .zone("example.org", &["192.0.2.3"], Signing::Nsec, "www.example.org. A 198.51.100.1");
            let internet = internet.trusting(|trust| trust.negative = negative).with(settings.clone());
            let Signed { mut world, .. } = internet.build();
            let mut other = Internet::default()
                .zone("example.org", &["192.0.2.4"], signing, "www.example.org. A 198.51.100.66")
                .build();
            world.server("192.0.2.4").signed = other.world.server("192.0.2.4").signed.take();
            let seen = world.resolve("www.example.org", Rtype::A);
            assert_eq!((seen.rcode, seen.security), (rcode, security), "{seen:?}");
        };
        check(Vec::new(), Rcode::SERVFAIL, Security::Bogus);
        let told = NegativeAnchor { zone: HeapName::new(name("example.org").as_name()), ends_at: None };
        check(vec![told], Rcode::NOERROR, Security::Insecure);
    }
}
