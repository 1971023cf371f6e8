//! CNAME and DNAME.

use resolver::Settings;
use wire::{Rcode, Rtype};

use crate::world::{Behaviour, World, plain_settings, record};

fn world() -> World {
    world_with(plain_settings())
}

fn world_with(settings: Settings) -> World {
    let mut world = World::with(settings);
    world.zone(
        ".",
        &["192.0.2.1"],
        "org NS ns.org
         ns.org A 192.0.2.2
         net NS ns.net
         ns.net A 192.0.2.5",
    );
    world.zone(
        "org",
        &["192.0.2.2"],
        "www.org 300 CNAME cdn.net
         inner.org CNAME host.org
         host.org A 198.51.100.1
         gone.org CNAME none.net
         old.org 300 DNAME new.net
         a.org CNAME b.net
         self.org CNAME self.org
         c0.org CNAME c1.net
         c2.org CNAME c3.net
         c4.org CNAME c5.net
         c6.org CNAME c7.net
         c8.org CNAME c9.net
         c10.org CNAME c11.net
         c12.org CNAME c13.net",
    );
    world.zone(
        "net",
        &["192.0.2.5"],
        "cdn.net 60 A 198.51.100.7
         www.new.net 60 A 198.51.100.8
         b.net CNAME a.org
         c1.net CNAME c2.org
         c3.net CNAME c4.org
         c5.net CNAME c6.org
         c7.net CNAME c8.org
         c9.net CNAME c10.org
         c11.net CNAME c12.org
         c13.net A 198.51.100.9",
    );
    world
}

#[test]
fn an_alias_into_another_zone_is_followed_there() {
    let mut world = world();
    let seen = world.resolve("www.org", Rtype::A);
    assert_eq!(seen.answer, ["www.org. 300 CNAME cdn.net.", "cdn.net. 60 A 198.51.100.7"]);
    assert_eq!((seen.rcode, seen.sends), (Rcode::NOERROR, 4));
    let again = world.resolve("www.org", Rtype::A);
    assert_eq!((again.answer, again.sends), (seen.answer, 0));
    world.pass_ms(100_000);
    assert_eq!(world.resolve("www.org", Rtype::A).sends, 1, "the alias is still known");
}

#[test]
fn an_alias_within_the_zone_costs_nothing_more() {
    let mut world = world();
    let seen = world.resolve("inner.org", Rtype::A);
    assert_eq!(seen.answer, ["inner.org. 3600 CNAME host.org.", "host.org. 3600 A 198.51.100.1"]);
    assert_eq!(seen.sends, 2);
}

#[test]
fn who_asks_for_the_alias_itself_gets_it() {
    let mut world = world();
    let seen = world.resolve("www.org", Rtype::CNAME);
    assert_eq!((&*seen.answer, seen.sends), (&["www.org. 300 CNAME cdn.net.".to_string()][..], 2));
}

#[test]
fn an_alias_for_nothing_says_so_with_the_soa_of_its_targets_zone() {
    let mut world = world();
    for sends in [4, 0] {
        let seen = world.resolve("gone.org", Rtype::A);
        assert_eq!((seen.rcode, seen.answer.len(), seen.sends), (Rcode::NXDOMAIN, 1, sends));
        assert!(seen.authority[0].starts_with("net. 300 SOA"));
    }
}

#[test]
fn a_dname_is_asked_for_again_over_tcp() {
    let mut world = world();
    let seen = world.resolve("www.old.org", Rtype::A);
    assert_eq!(
        seen.answer,
        [
            "old.org. 300 DNAME new.net.",
            "www.old.org. 300 CNAME www.new.net.",
            "www.new.net. 60 A 198.51.100.8"
        ]
    );
    let over_tcp: Vec<bool> = world.sent.iter().map(|sent| sent.over_tcp).collect();
    assert_eq!(over_tcp, [false, false, true, false, false]);
    assert_eq!(world.resolve("www.old.org", Rtype::A).sends, 0);
}

#[test]
fn an_alias_that_is_known_comes_with_the_dname_that_it_was_made_from() {
    let mut world = world();
    world.resolve("www.old.org", Rtype::A);
    let expected = ["old.org. 300 DNAME new.net.", "www.old.org. 300 CNAME www.new.net."];
    for rtype in [Rtype::TXT, Rtype::CNAME] {
        let seen = world.resolve("www.old.org", rtype);
        assert_eq!(seen.answer, expected, "{rtype}");
    }
}

#[test]
fn a_dname_is_believed_at_once_where_settings_say_so() {
    let mut world = world_with(Settings { checks_dnames: false, ..plain_settings() });
    assert_eq!(world.resolve("www.old.org", Rtype::A).answer.len(), 3);
    assert!(world.sent.iter().all(|sent| !sent.over_tcp));
}

#[test]
fn what_a_dname_leads_to_is_asked_for_by_itself() {
    let mut world = world();
    world.zone("org", &["192.0.2.2"], "near.org 300 DNAME org\n host.org A 198.51.100.1");
    let seen = world.resolve("host.near.org", Rtype::A);
    let expected =
        ["near.org. 300 DNAME org.", "host.near.org. 300 CNAME host.org.", "host.org. 3600 A 198.51.100.1"];
    assert_eq!(seen.answer, expected);
    let asked: Vec<&str> = world.sent.iter().map(|sent| &*sent.question).collect();
    assert_eq!(asked.last(), Some(&"host.org. A"));
}

#[test]
fn aliases_that_lead_back_end_with_a_reason() {
    let mut world = world();
    for name in ["a.org", "b.net", "self.org"] {
        for _ in 0..2 {
            let seen = world.resolve(name, Rtype::A);
            assert_eq!(
                (seen.rcode, seen.failure.as_deref()),
                (Rcode::SERVFAIL, Some("alias-loop")),
                "{name}"
            );
        }
    }
}

#[test]
fn the_limit_of_aliases_strikes_whatever_is_known_already() {
    let mut world = world();
    assert_eq!(world.resolve("c2.org", Rtype::A).answer.len(), 12, "eleven are followed");
    for _ in 0..2 {
        let seen = world.resolve("c1.net", Rtype::A);
        assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some("limit")));
    }
    // Whoever joins in the middle of a chain has a budget of its own, and the same limit.
    let mut world = self::world();
    world.want("c6.org", Rtype::A, 1);
    world.want("c0.org", Rtype::A, 2);
    world.settle();
    let is_answered = |waiter| world.done[&resolver::Waiter(waiter)].failure.is_none();
    assert!(is_answered(1) && !is_answered(2));
}

#[test]
fn an_alias_is_not_believed_about_its_target() {
    let mut world = world();
    world.server("192.0.2.2").behaviour = Behaviour::Liar(vec![
        (wire::Section::Answer, record("www.org 300 CNAME cdn.net")),
        (wire::Section::Answer, record("cdn.net 300 A 203.0.113.66")),
    ]);
    let seen = world.resolve("www.org", Rtype::A);
    assert_eq!(seen.answer, ["www.org. 300 CNAME cdn.net.", "cdn.net. 60 A 198.51.100.7"]);
}

#[test]
fn services_come_with_what_is_known_of_their_targets() {
    let mut world = World::new();
    world.zone(
        ".",
        &["192.0.2.1"],
        "org NS ns.org\n ns.org A 192.0.2.2\n net NS ns.net\n ns.net A 192.0.2.3",
    );
    world.zone(
        "org",
        &["192.0.2.2"],
        "example.org HTTPS 0 svc.hoster.net.
         own.org HTTPS 1 . alpn=h2
         own.org A 198.51.100.1
         none.org HTTPS 0 .
         loop.org HTTPS 0 loop.org.",
    );
    world.zone(
        "net",
        &["192.0.2.3"],
        "svc.hoster.net HTTPS 1 front.hoster.net. alpn=h2
         front.hoster.net A 198.51.100.2
         front.hoster.net AAAA 2001:db8::2",
    );
    let additional = |world: &mut World, name: &str| {
        let seen = world.resolve(name, Rtype::HTTPS);
        assert_eq!((seen.answer.len(), seen.failure), (1, None), "{name}");
        let sends = seen.sends;
        (seen.with_dnssec[1..].to_vec(), sends)
    };
    assert!(additional(&mut world, "example.org").0.is_empty(), "nobody is asked for it");
    world.resolve("svc.hoster.net", Rtype::HTTPS);
    world.resolve("front.hoster.net", Rtype::A);
    world.resolve("front.hoster.net", Rtype::AAAA);
    let (found, sends) = additional(&mut world, "example.org");
    let owners: Vec<&str> = found.iter().filter_map(|record| record.split(' ').next()).collect();
    assert_eq!((owners, sends), (vec!["svc.hoster.net.", "front.hoster.net.", "front.hoster.net."], 0));
    world.resolve("own.org", Rtype::A);
    assert_eq!(additional(&mut world, "own.org").0, ["own.org. 3600 A 198.51.100.1"]);
    for name in ["none.org", "loop.org"] {
        assert!(additional(&mut world, name).0.is_empty(), "{name}");
    }
}
