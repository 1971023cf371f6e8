//! From the root down to the answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use resolver::{HeapName, Route, Settings, Stub, Validation, Waiter, Way};
use wire::{Class, Flags, Question, Rcode, Rtype, Section, Ttl, Writer};

use crate::signed::Signing;
use crate::validation::internet;
use crate::world::{Behaviour, Seen, World, ip, name, plain_settings, record};

/// The root, org and example.org, each with one server of its own.
pub(crate) fn small(world: &mut World) {
    world.zone(
        ".",
        &["192.0.2.1"],
        "org NS ns.org
         ns.org A 192.0.2.2",
    );
    world.zone(
        "org",
        &["192.0.2.2"],
        "example.org 600 NS ns1.example.org
         example.org 600 NS ns2.example.org
         ns1.example.org A 192.0.2.3
         ns2.example.org A 192.0.2.4",
    );
    world.zone(
        "example.org",
        &["192.0.2.3", "192.0.2.4"],
        "www.example.org 300 A 198.51.100.1
         www.example.org 300 A 198.51.100.2
         once.example.org 0 A 198.51.100.9
         deep.below.example.org TXT \"here\"",
    );
}

fn world() -> World {
    let mut world = World::new();
    small(&mut world);
    world
}

#[test]
fn a_question_goes_down_from_the_root() {
    let mut world = world();
    let seen = world.resolve("www.example.org", Rtype::A);
    assert_eq!(seen.rcode, Rcode::NOERROR);
    assert_eq!(seen.answer, ["www.example.org. 300 A 198.51.100.1", "www.example.org. 300 A 198.51.100.2"]);
    assert_eq!((seen.sends, seen.took_ms), (3, 30));
    let to: Vec<String> = world.sent.iter().map(|sent| sent.to.to_string()).collect();
    assert_eq!(to[..2], ["192.0.2.1", "192.0.2.2"]);
    assert!(world.sent.iter().all(|sent| sent.question == "www.example.org. A"));
}

#[test]
fn the_servers_of_the_zone_are_told_to_who_wants_them() {
    let beside = |section, line: &str| (section, record(line));
    let records = vec![
        beside(Section::Authority, "example.org 600 NS ns1.example.org"),
        beside(Section::Additional, "ns1.example.org 600 A 192.0.2.3"),
        beside(Section::Additional, "ns1.example.net 600 A 192.0.2.66"),
    ];
    for minimal_responses in [true, false] {
        let mut world = World::with(Settings { minimal_responses, ..plain_settings() });
        small(&mut world);
        for address in ["192.0.2.3", "192.0.2.4"] {
            world.server(address).behaviour = Behaviour::Poisoner(records.clone());
        }
        let seen = world.resolve("www.example.org", Rtype::A);
        let expected: &[&str] = match minimal_responses {
            true => &[],
            false => &["example.org. 600 NS ns1.example.org."],
        };
        assert_eq!(
            (seen.answer.len(), &seen.authority[..]),
            (2, &expected.iter().map(ToString::to_string).collect::<Vec<_>>()[..])
        );
        let again = world.resolve("www.example.org", Rtype::A);
        assert_eq!((again.sends, again.authority), (0, seen.authority));
    }
}

#[test]
fn hosts_that_records_name_come_with_their_addresses_where_settings_say_so() {
    for minimal_additional in [true, false] {
        let mut world = World::with(Settings { minimal_additional, ..plain_settings() });
        small(&mut world);
        let records = vec![
            (Section::Answer, record("example.org 300 MX 10 mx.example.org")),
            (Section::Authority, record("example.org 600 NS ns1.example.org")),
            (Section::Additional, record("mx.example.org 300 A 198.51.100.7")),
            (Section::Additional, record("mx.example.org 300 AAAA 2001:db8::7")),
            (Section::Additional, record("mx.example.net 300 A 192.0.2.66")),
            (Section::Additional, record("other.example.org 300 A 192.0.2.66")),
        ];
        for address in ["192.0.2.3", "192.0.2.4"] {
            world.server(address).behaviour = Behaviour::Liar(records.clone());
        }
        let expected: &[&str] = match minimal_additional {
            true => &[],
            false => &["mx.example.org. 300 A 198.51.100.7", "mx.example.org. 300 AAAA 2001:db8::7"],
        };
        let text = |lines: &[&str]| -> Vec<String> { lines.iter().map(ToString::to_string).collect() };
        // From the server, then from the tables.
        for sends in [3, 0] {
            let seen = world.resolve("example.org", Rtype::MX);
            assert_eq!((seen.answer.len(), seen.sends), (1, sends));
            assert_eq!((seen.authority.len(), &seen.with_dnssec[1..]), (0, &text(expected)[..]), "{seen:?}");
        }
    }
}

#[test]
fn servers_beside_an_answer_end_when_they_did_as_they_were_seen_first() {
    let mut world = World::with(Settings { minimal_responses: false, ..plain_settings() });
    small(&mut world);
    let beside = |section, line: &str| (section, record(line));
    let records = vec![
        beside(Section::Authority, "example.org 600 NS ns1.example.org"),
        beside(Section::Additional, "ns1.example.org 600 A 192.0.2.3"),
    ];
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Poisoner(records.clone());
    }
    for (text, ttl) in [("www.example.org", 600), ("ftp.example.org", 500), ("none.example.org", 400)] {
        let seen = world.resolve(text, Rtype::TXT);
        let expected = format!("example.org. {ttl} NS ns1.example.org.");
        assert!(seen.authority.iter().all(|line| !line.contains(" NS ") || *line == expected), "{seen:?}");
        world.pass_ms(100_000);
    }
}

#[test]
fn servers_beside_an_answer_end_with_those_that_somebody_asked_for() {
    for validation in [Validation::Off, Validation::Relay] {
        ends_with_what_was_asked_for(validation);
    }
}

fn ends_with_what_was_asked_for(validation: Validation) {
    let mut world = World::with(Settings { minimal_responses: false, validation, ..plain_settings() });
    small(&mut world);
    world.zone(
        "example.org",
        &["192.0.2.3", "192.0.2.4"],
        "example.org 600 NS ns1.example.org
         www.example.org 300 A 198.51.100.1",
    );
    let records = vec![(Section::Authority, record("example.org 600 NS ns1.example.org"))];
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Poisoner(records.clone());
    }
    let ttl = |seen: &Seen| seen.authority.iter().find(|line| line.contains(" NS ")).cloned();
    let expected = |ttl: u32| Some(format!("example.org. {ttl} NS ns1.example.org."));
    world.resolve("example.org", Rtype::NS);
    world.pass_ms(200_000);
    assert_eq!(ttl(&world.resolve("www.example.org", Rtype::A)), expected(400));
    world.pass_ms(300_000);
    let qname = name("example.org");
    let question = Question { qname: qname.as_name(), qtype: Rtype::NS, qclass: Class::IN };
    world.resolver.want_anew(&question, Waiter(7), world.now);
    world.settle_effects();
    world.pass_ms(200_000);
    assert_eq!(ttl(&world.resolve("www.example.org", Rtype::A)), expected(400));
}

#[test]
fn what_is_known_is_asked_for_again_where_the_servers_beside_it_are_not() {
    let mut world = World::with(Settings { minimal_responses: false, ..plain_settings() });
    small(&mut world);
    let records = vec![(Section::Authority, record("example.org 100 NS ns1.example.org"))];
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Poisoner(records.clone());
    }
    let seen = world.resolve("www.example.org", Rtype::A);
    world.pass_ms(99_000);
    let again = world.resolve("www.example.org", Rtype::A);
    assert_eq!((again.sends, &*again.answer[0]), (0, "www.example.org. 201 A 198.51.100.1"));
    assert_eq!(again.authority, ["example.org. 1 NS ns1.example.org."]);
    world.pass_ms(1000);
    let anew = world.resolve("www.example.org", Rtype::A);
    assert_eq!((anew.sends, anew.answer, anew.authority), (1, seen.answer, seen.authority));
}

#[test]
fn what_servers_have_nothing_beside_is_asked_for_once() {
    let settings = || Settings { minimal_responses: false, ..plain_settings() };
    let mut world = World::with(settings());
    small(&mut world);
    let mut signed = internet(Signing::Nsec, Signing::Nsec).with(settings()).build().world;
    for world in [&mut world, &mut signed] {
        let seen = world.resolve("www.example.org", Rtype::A);
        assert!(seen.authority.is_empty() && !seen.answer.is_empty(), "{seen:?}");
        let again = world.resolve("www.example.org", Rtype::A);
        assert_eq!((again.sends, again.answer), (0, seen.answer));
    }
}

#[test]
fn denials_come_with_the_servers_beside_them_where_settings_say_so() {
    let records = vec![(Section::Authority, record("example.org 600 NS ns1.example.org"))];
    for minimal_denials in [true, false] {
        let mut world = World::with(Settings { minimal_denials, ..plain_settings() });
        small(&mut world);
        for address in ["192.0.2.3", "192.0.2.4"] {
            world.server(address).behaviour = Behaviour::Poisoner(records.clone());
        }
        let seen = world.resolve("none.example.org", Rtype::A);
        let servers = seen.authority.iter().filter(|line| line.contains(" NS ")).count();
        assert_eq!((seen.rcode, servers), (Rcode::NXDOMAIN, usize::from(!minimal_denials)), "{seen:?}");
    }
}

#[test]
fn a_delegation_can_end_with_the_zones_own_ns_records() {
    for (own_ns_ttl, asked_after) in [(false, "192.0.2.3"), (true, "192.0.2.2")] {
        let mut world = World::with(Settings { own_ns_ttl, ..plain_settings() });
        small(&mut world);
        world.zone(
            "example.org",
            &["192.0.2.3"],
            "example.org 100 NS ns1.example.org
             www.example.org 300 A 198.51.100.1",
        );
        world.server("192.0.2.4").behaviour = Behaviour::Dead;
        world.resolve("example.org", Rtype::NS);
        world.pass_ms(101_000);
        world.sent.clear();
        world.resolve("ftp.example.org", Rtype::A);
        let first = world.sent.iter().find(|sent| sent.to != ip("192.0.2.4"));
        assert_eq!(first.map(|sent| sent.to), Some(ip(asked_after)), "{own_ns_ttl}");
    }
}

#[test]
fn the_parent_is_asked_for_the_servers_of_a_zone_that_are_wanted_anew() {
    let mut world = World::with(plain_settings());
    small(&mut world);
    world.resolve("example.org", Rtype::NS);
    world.sent.clear();
    let qname = name("example.org");
    let question = Question { qname: qname.as_name(), qtype: Rtype::NS, qclass: Class::IN };
    world.resolver.want_anew(&question, Waiter(7), world.now);
    world.settle_effects();
    let asked: Vec<_> = world.sent.iter().map(|sent| (&*sent.question, sent.to)).collect();
    assert_eq!(asked.first(), Some(&("example.org. NS", ip("192.0.2.2"))), "{asked:?}");
    assert_eq!(asked.len(), 2, "{asked:?}");
}

#[test]
fn the_parent_is_not_asked_for_the_servers_of_a_zone_that_has_a_route() {
    let stub = Stub { addresses: vec!["192.0.2.3:53".parse().expect("an address")], ..Stub::default() };
    let zone = HeapName::new(name("example.org").as_name());
    let routes = vec![Route { zone, way: Way::Stub(stub), first: false, keeps: true }];
    let mut world = World::with(Settings { routes, ..plain_settings() });
    small(&mut world);
    world.resolve("example.org", Rtype::NS);
    world.sent.clear();
    let qname = name("example.org");
    let question = Question { qname: qname.as_name(), qtype: Rtype::NS, qclass: Class::IN };
    world.resolver.want_anew(&question, Waiter(7), world.now);
    world.settle_effects();
    let asked: Vec<_> = world.sent.iter().map(|sent| (&*sent.question, sent.to)).collect();
    assert_eq!(asked, [("example.org. NS", ip("192.0.2.3"))]);
}

#[test]
fn who_asks_for_name_servers_gets_their_addresses() {
    let mut world = world();
    world.zone("example.org", &["192.0.2.3", "192.0.2.4"], "example.org 600 NS ns1.example.org");
    let address = |owner: &str| (Section::Additional, record(&format!("{owner} 600 A 192.0.2.3")));
    for server in ["192.0.2.3", "192.0.2.4"] {
        let records =
            vec![address("ns1.example.org"), address("ns1.example.net"), address("www.example.org")];
        world.server(server).behaviour = Behaviour::Poisoner(records);
    }
    let seen = world.resolve("example.org", Rtype::NS);
    let addresses: Vec<&String> = seen.with_dnssec.iter().filter(|record| record.contains(" A ")).collect();
    assert_eq!(addresses, ["ns1.example.org. 600 A 192.0.2.3"], "{seen:?}");
}

#[test]
fn what_is_known_is_not_asked_again() {
    let mut world = world();
    world.resolve("www.example.org", Rtype::A);
    world.pass_ms(100_000);
    let seen = world.resolve("WWW.example.org", Rtype::A);
    assert_eq!((seen.sends, seen.answer.len()), (0, 2));
    assert_eq!(seen.answer[0], "WWW.example.org. 200 A 198.51.100.1");
    assert_eq!(world.resolve("www.example.org", Rtype::AAAA).sends, 1, "the zone's servers are known");
    world.pass_ms(200_000);
    assert_eq!(world.resolve("www.example.org", Rtype::A).sends, 1, "the data has expired");
    world.pass_ms(300_000);
    assert_eq!(world.resolve("www.example.org", Rtype::A).sends, 2, "the delegation has expired");
}

#[test]
fn what_is_not_there_is_known_for_as_long_as_the_soa_says() {
    let mut world = world();
    let soa = "example.org. 300 SOA ns.example.org. admin.example.org. 1 7200 3600 86400 300";
    let none = world.resolve("none.example.org", Rtype::A);
    assert_eq!((none.rcode, none.answer.len(), none.sends), (Rcode::NXDOMAIN, 0, 3));
    assert_eq!(none.authority, [soa]);
    let again = world.resolve("none.example.org", Rtype::MX);
    assert_eq!((again.rcode, again.sends), (Rcode::NXDOMAIN, 0), "a name has no data of any type");
    let no_data = world.resolve("www.example.org", Rtype::TXT);
    assert_eq!((no_data.rcode, no_data.authority.len(), no_data.sends), (Rcode::NOERROR, 1, 1));
    assert_eq!(world.resolve("www.example.org", Rtype::TXT).sends, 0);
    assert_eq!(world.resolve("www.example.org", Rtype::A).answer.len(), 2);
    assert_eq!(world.resolve("below.example.org", Rtype::A).rcode, Rcode::NOERROR, "others are below it");
    world.pass_ms(300_000);
    assert_eq!(world.resolve("none.example.org", Rtype::A).sends, 1);
}

#[test]
fn what_nobody_may_keep_goes_to_who_asked() {
    let mut world = world();
    for sends in [3, 1, 1] {
        let seen = world.resolve("once.example.org", Rtype::A);
        assert_eq!(
            (seen.sends, &*seen.answer),
            (sends, &["once.example.org. 0 A 198.51.100.9".to_string()][..])
        );
    }
}

#[test]
fn two_clients_with_one_question_share_what_is_asked() {
    let mut world = world();
    world.want("www.example.org", Rtype::A, 1);
    world.want("www.EXAMPLE.org", Rtype::A, 2);
    world.pass_ms(15);
    world.want("www.example.org", Rtype::A, 3);
    world.settle();
    assert_eq!(world.done.len(), 3);
    assert_eq!(world.sent.len(), 3);
}

#[test]
fn who_has_gone_is_told_nothing_and_the_tables_are_filled() {
    let mut world = world();
    world.want("www.example.org", Rtype::A, 1);
    world.resolver.forget(Waiter(1));
    world.settle();
    assert!(world.done.is_empty());
    assert_eq!(world.resolve("www.example.org", Rtype::A).sends, 0);
}

#[test]
fn of_many_who_wait_those_who_have_gone_are_told_nothing_and_all_others_are() {
    const MANY: u32 = 1000;
    let mut world = world();
    (0..MANY).for_each(|waiter| world.want("www.example.org", Rtype::A, waiter));
    let mut expected: BTreeSet<u32> = (0..MANY).collect();
    // In no order: 769 is prime to what is drawn from. Some of them twice, some that never were.
    for step in 0..MANY * 2 / 3 {
        let waiter = step * 769 % (MANY + 50);
        world.resolver.forget(Waiter(waiter));
        expected.remove(&waiter);
        if step % 7 == 0 {
            world.resolver.forget(Waiter(waiter));
        }
        // One comes, while others go.
        if step % 10 == 0 {
            world.want("www.example.org", Rtype::A, 2 * MANY + step);
            expected.insert(2 * MANY + step);
        }
    }
    assert!((100..MANY as usize).contains(&expected.len()), "{} wait", expected.len());
    world.settle();
    let told: BTreeSet<u32> = world.done.keys().map(|waiter| waiter.0).collect();
    assert_eq!(told, expected);
}

#[test]
fn the_parent_is_asked_for_the_ds_records_of_a_zone() {
    let mut world = world();
    world.resolve("www.example.org", Rtype::A);
    let seen = world.resolve("example.org", Rtype::DS);
    assert_eq!((seen.rcode, seen.sends), (Rcode::NOERROR, 1));
    assert_eq!(world.sent.last().expect("one was sent").to.to_string(), "192.0.2.2");
    assert!(seen.authority[0].starts_with("org. 300 SOA"));
}

#[test]
fn nobody_is_asked_for_what_no_record_has() {
    let mut world = world();
    for rtype in [Rtype(0), Rtype::OPT, Rtype::AXFR] {
        let seen = world.resolve("www.example.org", rtype);
        assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::NOTIMP, Some("unsupported")));
    }
    assert!(world.sent.is_empty());
}

#[test]
fn a_delegation_with_a_ttl_of_zero_serves_the_question_it_came_for() {
    let mut world = World::new();
    world.zone(".", &["192.0.2.1"], "org 0 NS ns.org\n ns.org A 192.0.2.2");
    world.zone("org", &["192.0.2.2"], "www.org A 198.51.100.1");
    assert_eq!(world.resolve("www.org", Rtype::A).sends, 2);
    assert_eq!(world.resolve("www.org", Rtype::TXT).sends, 2, "and no other");
}

#[test]
fn a_trace_says_who_was_asked_and_what_came() {
    let mut world = world();
    let lines = world.trace("www.example.org", Rtype::A);
    let expected = [
        "0.0 ms  192.0.2.1:53 for .  www.example.org. A: asked",
        "10.0 ms  192.0.2.1:53 for .  www.example.org. A: referral to org.",
        "10.0 ms  192.0.2.2:53 for org.  www.example.org. A: asked",
        "20.0 ms  192.0.2.2:53 for org.  www.example.org. A: referral to example.org.",
    ];
    assert_eq!(lines[..4], expected);
    assert!(lines[4].ends_with("for example.org.  www.example.org. A: asked"));
    assert!(lines[5].ends_with("for example.org.  www.example.org. A: answer"));
    assert_eq!(lines.len(), 6);
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Dead;
    }
    let lines = world.trace("none.example.org", Rtype::A);
    assert!(lines.iter().any(|line| line.ends_with(": late")));
    assert!(world.trace("www.example.org", Rtype::A).is_empty(), "nobody was asked");
}

/// A zone's only server does not answer for its own name, and serves another zone, too.
#[test]
fn a_server_that_does_not_say_where_it_is_is_asked_where_the_zone_above_said() {
    let mut world = World::new();
    world.zone(".", &["192.0.2.1"], "org NS ns.org\nns.org A 192.0.2.2");
    world.zone(
        "org",
        &["192.0.2.2"],
        "example.org NS ns.example.org\nns.example.org A 192.0.2.3\nother.org NS ns.example.org",
    );
    world.zone("example.org", &["192.0.2.3"], "example.org TXT \"here\"");
    let answer = Arc::new(|question: &Question<'_>| {
        if question.qname == name("ns.example.org").as_name() {
            return None;
        }
        let mut out = vec![0; 512];
        let mut writer = Writer::new(&mut out, 512, 0, Flags(Flags::QR.0 | Flags::AA.0));
        writer.question(question).ok()?;
        let address = |writer: &mut Writer<'_>| writer.bytes(&[198, 51, 100, 1]);
        writer.record(Section::Answer, question.qname, Rtype::A, Class::IN, Ttl::new(60), address).ok()?;
        let len = writer.finish();
        out.truncate(len);
        Some(out)
    });
    world.server("192.0.2.3").behaviour = Behaviour::Crafted(answer);
    assert_eq!(world.resolve("www.example.org", Rtype::A).answer, ["www.example.org. 60 A 198.51.100.1"]);
    let other = world.resolve_now("www.other.org", Rtype::A);
    assert_eq!(other.answer, ["www.other.org. 60 A 198.51.100.1"]);
    assert!(other.took_ms < 500, "nobody waits until the zone's servers are given up: {other:?}");
    world.settle();
}
