//! Zones that the server itself has.

use std::sync::Arc;

use cache::Security;
use resolver::{HeapName, NegativeAnchor, OwnZones, Route, Settings, Way};
use wire::{Rcode, Rtype};
use zone::{Change, Specials, Zones};

use crate::forwards::forward;
use crate::referrals::small;
use crate::signed::{Signed, Signing, zones};
use crate::validation::{check, check_bogus, internet};
use crate::world::{World, ip, name, plain_settings};

const HEAD: &str = "$TTL 300\ncorp.example.org. SOA ns.corp.example.org. admin.example.org. 1 7200 3600 86400 300\n\
                    corp.example.org. NS ns.corp.example.org.\nns.corp.example.org. A 10.0.0.1\n";

/// Returns a zone `corp.example.org` with these records.
fn corp(records: &str) -> Arc<Zones> {
    zones(&[("corp.example.org", &format!("{HEAD}{records}"))])
}

/// Returns zones that clients are answered from.
fn served(zones: Arc<Zones>) -> OwnZones {
    OwnZones { for_clients: Some(zones), for_resolvers: None }
}

/// Returns zones that are for resolvers alone.
fn unserved(zones: Arc<Zones>) -> OwnZones {
    OwnZones { for_clients: None, for_resolvers: Some(zones) }
}

/// Returns these zones, of which one answers only the clients of a network.
fn restricted(zones: &Zones, apex: &str) -> Arc<Zones> {
    let mut network = sets::AddressSetBuilder::new();
    assert!(network.prefix(ip("10.0.0.0"), 8));
    let specials =
        Specials::new(zones.key(), Vec::new(), Vec::new()).for_clients(Arc::new(network.compile()));
    Arc::new(zones.with_all([Change::Special(name(apex), Arc::new(specials))]))
}

/// Returns a route to a zone of this server.
fn own(zone: &str) -> Route {
    Route { zone: HeapName::new(name(zone).as_name()), way: Way::Own, first: false, keeps: true }
}

fn world(settings: Settings) -> World {
    let mut world = World::with(settings);
    small(&mut world);
    world.zone("lab.corp.example.org", &["192.0.2.9"], "www.lab.corp.example.org A 10.1.0.9");
    world
}

#[test]
fn own_zones_are_read_and_change_at_once() {
    let mut world = world(plain_settings());
    for (number, address) in [(1, "10.1.0.1"), (2, "10.1.0.2")] {
        world.resolver.serve(served(corp(&format!("www.corp.example.org. A {address}\n"))));
        for _ in 0..2 {
            let seen = world.resolve("www.corp.example.org", Rtype::A);
            assert_eq!(seen.answer, [format!("www.corp.example.org. 300 A {address}")], "{number}");
            assert_eq!(seen.sends, 0);
        }
        assert_eq!(world.resolve("none.corp.example.org", Rtype::A).rcode, Rcode::NXDOMAIN);
        assert_eq!(world.resolve("www.corp.example.org", Rtype::TXT).authority.len(), 1);
    }
    assert_eq!(world.sent.len(), 0);
    // Without them, their servers are asked again.
    world.resolver.serve(OwnZones::default());
    assert!(world.resolve("www.corp.example.org", Rtype::A).sends > 0);
}

#[test]
fn aliases_lead_into_own_zones_and_out_of_them() {
    let mut world = world(plain_settings());
    let text = "www.corp.example.org. A 10.1.0.1\nout.corp.example.org. CNAME www.example.org.\n";
    world.resolver.serve(served(corp(text)));
    let seen = world.resolve("out.corp.example.org", Rtype::A);
    assert_eq!((seen.failure, seen.answer.len()), (None, 3));
    world.zone("org", &[], "in.org CNAME www.corp.example.org");
    let seen = world.resolve("in.org", Rtype::A);
    assert_eq!(seen.answer.last().map(String::as_str), Some("www.corp.example.org. 300 A 10.1.0.1"));
}

#[test]
fn a_delegation_of_an_own_zone_is_followed() {
    let mut world = world(plain_settings());
    let text = "lab.corp.example.org. NS ns.lab.corp.example.org.\nns.lab.corp.example.org. A 192.0.2.9\n";
    world.resolver.serve(served(corp(text)));
    let seen = world.resolve("www.lab.corp.example.org", Rtype::A);
    assert_eq!((seen.answer.len(), seen.sends), (1, 1), "{seen:?}");
    assert_eq!(world.sent[0].to, ip("192.0.2.9"));
    assert_eq!(world.resolve("none.lab.corp.example.org", Rtype::A).rcode, Rcode::NXDOMAIN);
}

#[test]
fn a_route_to_a_zone_counts_more_than_the_zone() {
    let mut world = world(Settings { routes: vec![forward("corp.example.org", 1)], ..plain_settings() });
    world.forwarders.insert(1, vec![ip("203.0.113.1")]);
    world.server("203.0.113.1").zones.push("corp.example.org".to_owned());
    world.zone("corp.example.org", &[], "www.corp.example.org A 10.1.0.7");
    world.resolver.serve(served(corp("www.corp.example.org. A 10.1.0.1\n")));
    assert_eq!(
        world.resolve("www.corp.example.org", Rtype::A).answer,
        ["www.corp.example.org. 3600 A 10.1.0.7"]
    );
}

#[test]
fn who_does_not_want_it_asks() {
    let mut world = world(Settings { reads_own_zones: false, ..plain_settings() });
    world.resolver.serve(served(corp("www.corp.example.org. A 10.1.0.1\n")));
    let seen = world.resolve("www.corp.example.org", Rtype::A);
    assert!(seen.sends > 0 && seen.rcode == Rcode::NXDOMAIN);
}

#[test]
fn own_zones_are_validated_like_any_other() {
    let Signed { mut world, texts, .. } = internet(Signing::Nsec, Signing::Nsec).build();
    world.resolver.serve(served(zones(&[("example.org", &texts["example.org"])])));
    for (qname, rcode) in [("www.example.org", Rcode::NOERROR), ("none.example.org", Rcode::NXDOMAIN)] {
        check(&world.resolve(qname, Rtype::A), rcode, Security::Secure);
    }
    check(&world.resolve("x.wild.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
    check(&world.resolve("example.org", Rtype::DS), Rcode::NOERROR, Security::Secure);
    let servers = [ip("192.0.2.3"), ip("192.0.2.4")];
    assert!(world.sent.iter().all(|sent| !servers.contains(&sent.to)), "only its parents are asked");
}

#[test]
fn a_private_zone_below_a_signed_one_needs_a_negative_trust_anchor() {
    let text = "www.corp.example.org. A 10.1.0.1\n";
    let Signed { mut world, .. } = internet(Signing::Nsec, Signing::Nsec).build();
    world.resolver.serve(served(corp(text)));
    check_bogus(&world.resolve("www.corp.example.org", Rtype::A), wire::EdeCode::RRSIGS_MISSING);
    let told = NegativeAnchor { zone: HeapName::new(name("corp.example.org").as_name()), ends_at: None };
    let internet = internet(Signing::Nsec, Signing::Nsec).trusting(|trust| trust.negative = vec![told]);
    let Signed { mut world, .. } = internet.build();
    world.resolver.serve(served(corp(text)));
    let seen = world.resolve("www.corp.example.org", Rtype::A);
    check(&seen, Rcode::NOERROR, Security::Insecure);
    assert_eq!(seen.sends, 0);
}

#[test]
fn a_trace_names_the_own_zone() {
    let mut world = world(plain_settings());
    world.resolver.serve(served(corp("www.corp.example.org. A 10.1.0.1\n")));
    let lines = world.trace("www.corp.example.org", Rtype::A);
    assert_eq!(lines, ["0.0 ms  own zone corp.example.org.  www.corp.example.org. A: answer"]);
}

#[test]
fn a_zone_that_not_everybody_may_query_is_read_only_if_a_route_names_it() {
    let all = restricted(&corp("www.corp.example.org. A 10.1.0.1\n"), "corp.example.org");
    let mut stranger = world(plain_settings());
    stranger.resolver.serve(served(Arc::clone(&all)));
    let seen = stranger.resolve("www.corp.example.org", Rtype::A);
    assert!(seen.sends > 0 && seen.answer.is_empty(), "its servers are asked: {seen:?}");
    let mut named = world(Settings { routes: vec![own("corp.example.org")], ..plain_settings() });
    named.resolver.serve(served(all));
    let seen = named.resolve("www.corp.example.org", Rtype::A);
    assert_eq!((seen.sends, seen.answer.len()), (0, 1), "{seen:?}");
}

#[test]
fn an_open_zone_shows_nothing_of_a_closed_one() {
    // The alias, the mail host and the name itself lie in the closed zone.
    let open = "in.corp.example.org. CNAME www.lab.corp.example.org.\n\
                corp.example.org. MX 10 www.lab.corp.example.org.\n";
    let closed = "$TTL 300\nlab.corp.example.org. SOA ns.lab.corp.example.org. admin.example.org. 1 7200 3600 86400 300\n\
                  lab.corp.example.org. NS ns.example.net.\nwww.lab.corp.example.org. A 10.9.9.9\n";
    let text = format!("{HEAD}{open}");
    let both = zones(&[("corp.example.org", &text), ("lab.corp.example.org", closed)]);
    let mut world = world(plain_settings());
    world.resolver.serve(served(restricted(&both, "lab.corp.example.org")));
    for (qname, rtype) in [
        ("in.corp.example.org", Rtype::A),
        ("corp.example.org", Rtype::MX),
        ("www.lab.corp.example.org", Rtype::A),
    ] {
        let seen = format!("{:?}", world.resolve(qname, rtype));
        assert!(!seen.contains("10.9.9.9"), "{seen}");
    }
}

#[test]
fn zones_for_resolvers_alone_are_read_where_a_route_names_them() {
    let all = corp("www.corp.example.org. A 10.1.0.1\n");
    let mut world = world(Settings { routes: vec![own("corp.example.org")], ..plain_settings() });
    world.resolver.serve(unserved(Arc::clone(&all)));
    let seen = world.resolve("www.corp.example.org", Rtype::A);
    assert_eq!((seen.sends, seen.answer), (0, vec!["www.corp.example.org. 300 A 10.1.0.1".to_owned()]));
    let mut other = self::world(plain_settings());
    other.resolver.serve(unserved(all));
    assert!(other.resolve("www.corp.example.org", Rtype::A).sends > 0);
}

#[test]
fn what_a_route_has_kept_lives_out_its_ttl() {
    let mut world = world(Settings { routes: vec![own("corp.example.org")], ..plain_settings() });
    world.resolver.serve(unserved(corp("www.corp.example.org. A 10.1.0.1\n")));
    world.resolve("www.corp.example.org", Rtype::A);
    world.resolver.serve(unserved(corp("www.corp.example.org. A 10.1.0.2\n")));
    let mut seen = || world.resolve("www.corp.example.org", Rtype::A).answer.concat();
    assert!(seen().ends_with("10.1.0.1"));
    world.pass_ms(300_000);
    let seen = world.resolve("www.corp.example.org", Rtype::A).answer.concat();
    assert!(seen.ends_with("10.1.0.2"), "{seen}");
}

#[test]
fn a_zone_that_is_not_loaded_fails_or_is_asked_for() {
    let gone = Arc::new(corp("").with_unloaded(name("corp.example.org").as_name()));
    let mut closed = world(Settings { routes: vec![own("corp.example.org")], ..plain_settings() });
    closed.resolver.serve(served(Arc::clone(&gone)));
    let seen = closed.resolve("www.corp.example.org", Rtype::A);
    let found = (seen.rcode, seen.failure.as_deref(), seen.sends);
    assert_eq!(found, (Rcode::SERVFAIL, Some("not-loaded"), 0), "{seen:?}");
    // It has come by the next question.
    closed.resolver.serve(served(corp("www.corp.example.org. A 10.1.0.1\n")));
    assert_eq!(closed.resolve("www.corp.example.org", Rtype::A).rcode, Rcode::NOERROR);
    let route = Route { first: true, ..own("corp.example.org") };
    for settings in [Settings { routes: vec![route], ..plain_settings() }, plain_settings()] {
        let mut open = world(settings);
        open.resolver.serve(served(Arc::clone(&gone)));
        let seen = open.resolve("www.corp.example.org", Rtype::A);
        assert!(seen.sends > 0 && seen.rcode == Rcode::NXDOMAIN, "{seen:?}");
    }
}

#[test]
fn a_local_root_answers_for_all_that_it_delegates() {
    let Signed { mut world, texts, .. } = internet(Signing::Nsec, Signing::Nsec)
        .with(Settings { routes: vec![Route { first: true, ..own(".") }], ..plain_settings() })
        .build();
    world.resolver.serve(unserved(zones(&[(".", &texts["."])])));
    check(&world.resolve("www.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
    check(&world.resolve("www.nowhere", Rtype::A), Rcode::NXDOMAIN, Security::Secure);
    assert!(
        world.sent.iter().all(|sent| sent.to != ip("192.0.2.1")),
        "the root is not asked: {:?}",
        world.sent
    );
    // Without the copy, the root's servers are.
    world.resolver.serve(OwnZones::default());
    check(&world.resolve("other.nowhere", Rtype::A), Rcode::NXDOMAIN, Security::Secure);
    world.pass_ms(86_400_000);
    check(&world.resolve("www.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
    assert!(world.sent.iter().any(|sent| sent.to == ip("192.0.2.1")));
}
