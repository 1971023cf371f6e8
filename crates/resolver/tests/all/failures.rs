//! Servers that are silent, lame, broken, or without an address.

use resolver::{Limits, Settings};
use wire::{Rcode, Rtype};

use crate::referrals::small;
use crate::world::{Behaviour, World, ip, plain_settings};

fn world() -> World {
    let mut world = World::new();
    small(&mut world);
    world
}

/// Of a hundred names, returns how many sends and milliseconds the dearest took.
fn worst(mut prepare: impl FnMut(&mut World)) -> (usize, u64) {
    let mut worst = (0, 0);
    let mut world = world();
    world.resolve("ns1.example.org", Rtype::A);
    prepare(&mut world);
    for number in 0..100 {
        let seen = world.resolve(&format!("n{number}.example.org"), Rtype::A);
        assert_eq!(seen.rcode, Rcode::NXDOMAIN);
        worst = (worst.0.max(seen.sends), worst.1.max(seen.took_ms));
        world.pass_ms(1000);
    }
    worst
}

#[test]
fn a_server_that_is_dead_costs_a_moment_and_no_answer() {
    let (sends, took_ms) = worst(|world| world.server("192.0.2.3").behaviour = Behaviour::Dead);
    assert!(sends <= 4 && took_ms <= 320, "{sends} {took_ms}");
}

#[test]
fn a_dead_server_is_soon_asked_last() {
    let mut world = world();
    world.server("192.0.2.3").behaviour = Behaviour::Dead;
    for number in 0..60 {
        world.resolve(&format!("n{number}.example.org"), Rtype::A);
    }
    let dead = world.sent.iter().filter(|sent| sent.to.to_string() == "192.0.2.3").count();
    assert!((1..12).contains(&dead), "{dead} of 60");
}

#[test]
fn servers_that_refuse_are_lame_and_asked_last() {
    let mut world = world();
    world.server("192.0.2.3").behaviour = Behaviour::Rcode(Rcode::REFUSED);
    let mut detours = 0;
    for number in 0..40 {
        let seen = world.resolve(&format!("n{number}.example.org"), Rtype::A);
        assert_eq!(seen.rcode, Rcode::NXDOMAIN);
        detours += usize::from(number > 0 && seen.took_ms > 10);
    }
    assert!(detours <= 1, "{detours} had to wait for it");
    // It may be measured beside the other one before anybody has read what it says.
    let asked = world.sent.iter().filter(|sent| sent.to.to_string() == "192.0.2.3").count();
    assert!((1..=3).contains(&asked), "{asked}");
}

#[test]
fn errors_of_one_server_are_not_the_clients() {
    let broken = [
        Behaviour::Rcode(Rcode::SERVFAIL),
        Behaviour::Rcode(Rcode::FORMERR),
        Behaviour::Rcode(Rcode::NOTIMP),
        Behaviour::WithoutAuthority,
    ];
    for behaviour in broken {
        let mut world = world();
        world.server("192.0.2.3").behaviour = behaviour;
        for name in ["www.example.org", "n1.example.org", "n2.example.org", "n3.example.org"] {
            let seen = world.resolve(name, Rtype::A);
            assert_eq!((seen.failure, seen.took_ms <= 50), (None, true));
        }
    }
}

#[test]
fn a_failure_says_why() {
    let check = |behaviour: Behaviour, reason: &str| {
        let mut world = world();
        for address in ["192.0.2.3", "192.0.2.4"] {
            world.server(address).behaviour = behaviour.clone();
        }
        let seen = world.resolve("www.example.org", Rtype::A);
        assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some(reason)));
        assert!(seen.answer.is_empty() && seen.authority.is_empty());
        assert!(seen.took_ms <= 10_000 && seen.sends <= 18, "{reason}: {} ms, {}", seen.took_ms, seen.sends);
    };
    check(Behaviour::Dead, "silent");
    check(Behaviour::Rcode(Rcode::REFUSED), "lame");
    check(Behaviour::WithoutAuthority, "lame");
    check(Behaviour::Rcode(Rcode::SERVFAIL), "faulty");
}

#[test]
fn an_answer_without_aa_counts_where_that_is_not_required() {
    let settings = Settings { requires_authority: false, ..plain_settings() };
    let mut world = World::with(settings);
    small(&mut world);
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::WithoutAuthority;
    }
    let seen = world.resolve("www.example.org", Rtype::A);
    assert_eq!((seen.failure, seen.answer.len()), (None, 2));
}

/// Flags of a reply that offers recursion, and has the answer from elsewhere.
fn recursive(lines: &'static [&'static str]) -> Behaviour {
    Behaviour::Crafted(std::sync::Arc::new(move |question| {
        let lines: Vec<_> =
            lines.iter().map(|line| (wire::Section::Answer, crate::world::record(line))).collect();
        let mut reply = crate::world::reply_of(question, &lines);
        (reply[2], reply[3]) = (reply[2] & !0x04, reply[3] | 0x80);
        Some(reply)
    }))
}

#[test]
fn a_server_that_has_the_answer_from_elsewhere_is_the_last_resort() {
    let lines: &[&str] = &["www.example.org 60 A 203.0.113.9"];
    let check = |requires_authority: bool, both: bool| {
        let mut world = World::with(Settings { requires_authority, ..plain_settings() });
        small(&mut world);
        world.server("192.0.2.3").behaviour = recursive(lines);
        if both {
            world.server("192.0.2.4").behaviour = recursive(lines);
        }
        let seen = world.resolve("www.example.org", Rtype::A);
        (seen.answer.len(), seen.answer.iter().any(|line| line.contains("203.0.113.9")))
    };
    for requires_authority in [false, true] {
        assert_eq!(check(requires_authority, false), (2, false), "the other server knows better");
    }
    assert_eq!((check(false, true), check(true, true)), ((1, true), (0, false)));
}

#[test]
fn who_says_nothing_at_all_is_believed_if_another_server_says_so_too_or_nobody_else_answers() {
    let empty = || Behaviour::Liar(Vec::new());
    let check = |[one, other]: [Behaviour; 2], rcode: Rcode, answers: usize| {
        let mut world = world();
        world.server("192.0.2.3").behaviour = one;
        world.server("192.0.2.4").behaviour = other;
        let seen = world.resolve("www.example.org", Rtype::A);
        assert_eq!((seen.rcode, seen.answer.len()), (rcode, answers), "{seen:?}");
        // The root, the domain, and each of the two once.
        assert!(seen.sends <= 4, "{}", seen.sends);
    };
    check([empty(), Behaviour::Honest], Rcode::NOERROR, 2);
    check([Behaviour::Honest, empty()], Rcode::NOERROR, 2);
    check([empty(), empty()], Rcode::NOERROR, 0);
    check([empty(), Behaviour::Dead], Rcode::NOERROR, 0);
    check([empty(), Behaviour::Rcode(Rcode::SERVFAIL)], Rcode::NOERROR, 0);
}

#[test]
fn servers_that_come_back_are_found_at_once() {
    let mut world = world();
    world.resolve("www.example.org", Rtype::A);
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Dead;
    }
    for number in 0..200 {
        // Others are heard meanwhile, so that their silence is their own.
        world.want(&format!("n{number}.org"), Rtype::A, number);
        let seen = world.resolve(&format!("n{number}.example.org"), Rtype::A);
        assert_eq!(seen.failure.as_deref(), Some("silent"));
        world.pass_ms(100);
    }
    world.server("192.0.2.4").behaviour = Behaviour::Honest;
    let seen = world.resolve("back.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.took_ms <= 2100), (Rcode::NXDOMAIN, true), "{} ms", seen.took_ms);
}

#[test]
fn a_question_that_failed_is_not_asked_again_at_once() {
    for behaviour in [Behaviour::Dead, Behaviour::Rcode(Rcode::SERVFAIL), Behaviour::Rcode(Rcode::REFUSED)] {
        let mut world = world();
        let all = ["192.0.2.3", "192.0.2.4"];
        all.iter().for_each(|address| world.server(address).behaviour = behaviour.clone());
        let first = world.resolve_now("www.example.org", Rtype::A);
        let again = world.resolve_now("www.example.org", Rtype::A);
        assert_eq!((again.failure, again.ede, again.sends), (first.failure, first.ede, 0));
        assert_eq!(world.resolver.counts().remembered, 1);
        world.pass_ms(1000);
        assert!(world.resolve_now("www.example.org", Rtype::A).sends > 0);
        // For hours it costs one question in two seconds, however often it is asked.
        let (sent, began) = (world.sent.len(), world.now);
        for _ in 0..10_000 {
            world.resolve_now("www.example.org", Rtype::A);
            world.pass_ms(100);
        }
        let seconds = world.now.since_us(began) as usize / 1_000_000;
        assert!(world.sent.len() - sent < 2 * seconds, "{} in {seconds} s", world.sent.len() - sent);
    }
}

#[test]
fn a_question_that_fails_alone_is_asked_less_and_less() {
    let mut world = world();
    let refuses = std::sync::Arc::new(|question: &wire::Question<'_>| {
        let mut out = vec![0; 512];
        let is_bad = question.qtype == Rtype::TXT;
        let flags = wire::Flags::QR.with(wire::Flags::AA);
        let flags = flags.with_rcode(if is_bad { Rcode::SERVFAIL } else { Rcode::NXDOMAIN });
        let mut writer = wire::Writer::new(&mut out, 512, 0, flags);
        writer.question(question).ok()?;
        let len = writer.finish();
        out.truncate(len);
        Some(out)
    });
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Crafted(refuses.clone());
    }
    let mut asked = Vec::new();
    for second in 0..120 {
        world.resolve_now(&format!("n{second}.example.org"), Rtype::A);
        if world.resolve_now("www.example.org", Rtype::TXT).sends > 0 {
            asked.push(second);
        }
        world.pass_ms(1000);
    }
    assert!((5..=9).contains(&asked.len()), "{asked:?}");
}

#[test]
fn servers_that_return_are_found_within_three_seconds_by_who_asks_on() {
    let failing: [fn(&mut World, bool); 4] = [
        |world, fails| {
            let behaviour = if fails { Behaviour::Dead } else { Behaviour::Honest };
            ["192.0.2.7", "192.0.2.8"].iter().for_each(|at| world.server(at).behaviour = behaviour.clone());
        },
        |world, fails| {
            let behaviour = if fails { Behaviour::Rcode(Rcode::SERVFAIL) } else { Behaviour::Honest };
            ["192.0.2.7", "192.0.2.8"].iter().for_each(|at| world.server(at).behaviour = behaviour.clone());
        },
        |world, fails| {
            let behaviour = if fails { Behaviour::Rcode(Rcode::REFUSED) } else { Behaviour::Honest };
            ["192.0.2.7", "192.0.2.8"].iter().for_each(|at| world.server(at).behaviour = behaviour.clone());
        },
        // The servers of the zone that the servers' names are in.
        |world, fails| {
            let behaviour = if fails { Behaviour::Dead } else { Behaviour::Honest };
            world.server("192.0.2.6").behaviour = behaviour;
        },
    ];
    for (number, set) in failing.iter().enumerate() {
        for down_ms in [400, 1000, 2700, 10_000, 61_000, 600_000] {
            let mut world = World::new();
            glueless(&mut world);
            world.resolve_now("ns.org", Rtype::A);
            set(&mut world, true);
            let mut asked = 0;
            while asked < down_ms {
                assert_eq!(world.resolve_now("www.example.org", Rtype::A).rcode, Rcode::SERVFAIL);
                world.pass_ms(200);
                asked += 200;
            }
            set(&mut world, false);
            let back = world.now;
            while world.resolve_now("www.example.org", Rtype::A).failure.is_some() {
                world.pass_ms(100);
            }
            let took_ms = world.now.since_us(back) / 1000;
            assert!(took_ms <= 3000, "{number}, {down_ms} ms down: {took_ms} ms");
        }
    }
}

#[test]
fn what_one_question_could_not_pay_for_another_one_is_asked() {
    let settings = Settings { limits: Limits { sends: 4, ..Limits::default() }, ..plain_settings() };
    let mut world = World::with(settings);
    glueless(&mut world);
    let seen = world.resolve_now("www.example.org", Rtype::A);
    assert_eq!((seen.failure.as_deref(), seen.sends), (Some("limit"), 4));
    let seen = world.resolve_now("ns1.hoster.net", Rtype::A);
    assert_eq!((seen.failure, seen.sends > 0), (None, true));
}

/// The root and org, and example.org, which has moved to other servers: its parent does not know.
fn moved(world: &mut World) {
    world.zone(
        ".",
        &["192.0.2.1"],
        "org NS ns.org\n ns.org A 192.0.2.2\n net NS ns.net\n ns.net A 192.0.2.5",
    );
    world.zone("org", &["192.0.2.2"], "example.org 600 NS ns1.example.org\n ns1.example.org A 192.0.2.3");
    world.zone("net", &["192.0.2.5"], "ns.hoster.net A 192.0.2.6");
    let own =
        "example.org 86400 NS ns.hoster.net\n ns1.example.org A 192.0.2.3\n www.example.org A 198.51.100.1";
    world.zone("example.org", &["192.0.2.3", "192.0.2.6"], own);
}

#[test]
fn servers_that_the_zone_names_are_asked_if_those_of_its_parent_fail() {
    for behaviour in [Behaviour::Dead, Behaviour::Rcode(Rcode::REFUSED), Behaviour::Rcode(Rcode::SERVFAIL)] {
        let mut world = World::new();
        moved(&mut world);
        world.resolve("example.org", Rtype::NS);
        world.server("192.0.2.3").behaviour = behaviour;
        let seen = world.resolve("www.example.org", Rtype::A);
        assert_eq!((seen.failure, seen.answer.len()), (None, 1));
        assert!(seen.sends <= 9, "{}", seen.sends);
        let to = |address: &str| world.sent.iter().filter(|sent| sent.to == ip(address)).count();
        assert_eq!(to("192.0.2.6"), 1, "only if they must be");
    }
}

#[test]
fn servers_that_nobody_asked_for_are_not_asked() {
    let mut world = World::new();
    moved(&mut world);
    let ns = crate::world::record("example.org 86400 NS ns.hoster.net");
    let address = crate::world::record("ns.hoster.net 86400 A 192.0.2.6");
    world.server("192.0.2.3").behaviour =
        Behaviour::Poisoner(vec![(wire::Section::Authority, ns), (wire::Section::Additional, address)]);
    assert_eq!(world.resolve("www.example.org", Rtype::A).failure, None);
    world.server("192.0.2.3").behaviour = Behaviour::Dead;
    let seen = world.resolve("other.example.org", Rtype::A);
    assert_eq!(seen.failure.as_deref(), Some("silent"));
    assert!(world.sent.iter().all(|sent| sent.to != ip("192.0.2.6")));
}

/// Ghost domains (NDSS 2012): what the zone says of itself does not keep it alive.
#[test]
fn servers_that_the_zone_names_do_not_outlive_its_delegation() {
    let mut world = World::new();
    moved(&mut world);
    world.resolve("example.org", Rtype::NS);
    world.server("192.0.2.3").behaviour = Behaviour::Dead;
    world.zone("org", &[], "");
    for minute in 0..9 {
        let seen = world.resolve(&format!("n{minute}.example.org"), Rtype::A);
        assert_eq!((seen.rcode, seen.failure), (Rcode::NXDOMAIN, None));
        world.resolve("example.org", Rtype::NS);
        world.pass_ms(60_000);
    }
    world.pass_ms(60_000);
    let asked = |world: &World| world.sent.iter().filter(|sent| sent.to == ip("192.0.2.6")).count();
    let before = asked(&world);
    let seen = world.resolve("n9.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.failure), (Rcode::NXDOMAIN, None));
    assert_eq!(asked(&world), before, "its parent says that there is no such zone");
}

#[test]
fn servers_that_the_zone_names_cost_no_more_than_allowed() {
    let mut world = World::new();
    moved(&mut world);
    let names = (0..40).map(|number| format!("example.org NS v{number}.hoster.net\n")).collect::<String>();
    world.zone("example.org", &[], &names);
    world.zone(
        "net",
        &[],
        &(0..40).map(|number| format!("v{number}.hoster.net A 203.0.113.{number}\n")).collect::<String>(),
    );
    world.resolve("example.org", Rtype::NS);
    world.server("192.0.2.3").behaviour = Behaviour::Dead;
    world.server("192.0.2.6").behaviour = Behaviour::Dead;
    for number in 0..40 {
        let seen = world.resolve(&format!("n{number}.example.org"), Rtype::A);
        assert_eq!(seen.rcode, Rcode::SERVFAIL);
        assert!(seen.sends <= 16 + 2 * 8, "{}", seen.sends);
    }
}

/// Returns how often in a row a server is said to have been silent.
fn silences(world: &World, address: &str) -> u8 {
    let address = std::net::SocketAddr::new(ip(address), 53);
    world.tables.servers.look(address, world.now.ms()).map_or(0, |facts| facts.silences)
}

#[test]
fn silence_of_everybody_is_charged_to_nobody() {
    let mut world = world();
    world.resolve("www.example.org", Rtype::A);
    let all = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
    all.iter().for_each(|address| world.server(address).behaviour = Behaviour::Dead);
    for number in 0..20 {
        world.resolve(&format!("n{number}.example.org"), Rtype::A);
    }
    assert!(all.iter().all(|address| silences(&world, address) == 0));
    all.iter().for_each(|address| world.server(address).behaviour = Behaviour::Honest);
    let seen = world.resolve("back.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.took_ms), (Rcode::NXDOMAIN, 10));
    // While others answer, it is the server's own.
    world.server("192.0.2.3").behaviour = Behaviour::Dead;
    for number in 20..220 {
        world.resolve(&format!("n{number}.example.org"), Rtype::A);
    }
    assert!(silences(&world, "192.0.2.3") > 0 && silences(&world, "192.0.2.4") == 0);
}

#[test]
fn who_was_silent_a_moment_ago_is_tried_if_there_is_nobody_else() {
    let mut world = world();
    world.resolve("www.example.org", Rtype::A);
    for last in ["192.0.2.3", "192.0.2.4"] {
        for _ in 0..20 {
            for address in ["192.0.2.3", "192.0.2.4"] {
                let is_last = address == last;
                world.server(address).behaviour = if is_last { Behaviour::Honest } else { Behaviour::Dead };
                let address = std::net::SocketAddr::new(ip(address), 53);
                (0..8).for_each(|_| world.tables.servers.record_silence(address, world.now.ms()));
            }
            let seen = world.resolve("none.example.org", Rtype::A);
            assert_eq!((seen.rcode, seen.failure), (Rcode::NXDOMAIN, None));
            world.pass_ms(301_000);
        }
    }
}

#[test]
fn two_percent_of_loss_fail_nobody() {
    let mut world = world();
    for address in ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"] {
        world.server(address).lost_permille = 20;
    }
    let mut took_ms = Vec::new();
    for number in 0..1000 {
        let seen = world.resolve(&format!("n{number}.example.org"), Rtype::A);
        assert_eq!(seen.rcode, Rcode::NXDOMAIN);
        took_ms.push(seen.took_ms);
    }
    took_ms.sort_unstable();
    assert!(took_ms[990] <= 200, "p99 {} ms", took_ms[990]);
}

/// Returns a world with a zone of two servers.
fn two_servers(first_us: u64, second_us: u64) -> World {
    let mut world = World::new();
    let referral = "org NS a.org\norg NS b.org\na.org A 192.0.2.2\nb.org A 192.0.2.3";
    world.zone(".", &["192.0.2.1"], referral);
    world.zone("org", &["192.0.2.2", "192.0.2.3"], "www.org A 198.51.100.1");
    world.server("192.0.2.2").latency_us = first_us;
    world.server("192.0.2.3").latency_us = second_us;
    for number in 0..10 {
        world.resolve(&format!("first{number}.org"), Rtype::A);
    }
    world
}

#[test]
fn who_is_measured_in_place_of_another_delays_nobody_for_long() {
    let mut world = two_servers(20_000, 900_000);
    let sent = world.sent.len();
    for number in 0..400 {
        let seen = world.resolve_now(&format!("n{number}.org"), Rtype::A);
        assert_eq!(seen.rcode, Rcode::NXDOMAIN);
        assert!(seen.took_ms <= 80, "{} ms", seen.took_ms);
        world.pass_ms(10);
    }
    let slow = world.sent[sent..].iter().filter(|sent| sent.to.to_string() == "192.0.2.3").count();
    assert!((1..=30).contains(&slow), "{slow} queries to who is slow");
    assert!(world.sent.len() - sent <= 400 + slow, "nobody else is asked twice");
}

#[test]
fn a_server_that_is_quicker_is_found_without_more_queries() {
    let mut world = two_servers(60_000, 20_000);
    let sent = world.sent.len();
    let mut last_ms = Vec::new();
    for number in 0..600 {
        let seen = world.resolve(&format!("n{number}.org"), Rtype::A);
        last_ms.push(seen.took_ms);
    }
    assert!(
        world.sent.len() - sent <= 605,
        "only who was slow is asked in vain: {}",
        world.sent.len() - sent
    );
    assert!(last_ms[500..].iter().filter(|&&took_ms| took_ms == 20).count() > 90);
}

#[test]
fn ipv6_that_leads_nowhere_is_noticed_within_seconds() {
    let mut world = World::new();
    world.zone(
        ".",
        &["192.0.2.1"],
        "org NS ns.org
         ns.org A 192.0.2.2
         ns.org AAAA 2001:db8::2",
    );
    world.zone("org", &["192.0.2.2"], "www.org A 198.51.100.1");
    world.server("2001:db8::2").zones.push("org".to_string());
    world.server("2001:db8::2").latency_us = 1000;
    world.server("192.0.2.2").latency_us = 30_000;
    // Sooner or later it is measured, and found to be quicker.
    let quick = (0..1000).find(|number| world.resolve(&format!("first{number}.org"), Rtype::A).took_ms == 1);
    assert!(quick.is_some());
    world.server("2001:db8::2").behaviour = Behaviour::Dead;
    for number in 10..20 {
        let seen = world.resolve(&format!("n{number}.org"), Rtype::A);
        assert_eq!(seen.rcode, Rcode::NXDOMAIN);
        world.pass_ms(1000);
    }
    let sent = world.sent.len();
    for number in 20..60 {
        let seen = world.resolve(&format!("n{number}.org"), Rtype::A);
        assert_eq!(seen.took_ms, 30, "nobody waits for it any more");
        world.pass_ms(1000);
    }
    let over_v6 = world.sent[sent..].iter().filter(|sent| sent.to.is_ipv6()).count();
    assert!((1..=40).contains(&over_v6), "it is tried beside: {over_v6}");
    world.server("2001:db8::2").behaviour = Behaviour::Honest;
    for number in 60..64 {
        world.resolve(&format!("n{number}.org"), Rtype::A);
        world.pass_ms(1000);
    }
    assert_eq!(world.resolve("n64.org", Rtype::A).took_ms, 1, "and is back at once");
}

#[test]
fn a_family_that_leads_nowhere_is_not_tried_anew_with_each_server() {
    let mut world = World::new();
    world.zone(".", &["192.0.2.1"], "org NS ns.org\n ns.org A 192.0.2.2");
    let zones = (0..60).map(|number| {
        format!("z{number}.org NS ns.z{number}.org\nns.z{number}.org A 203.0.113.{number}\nns.z{number}.org AAAA 2001:db8::{number}\n")
    });
    world.zone("org", &["192.0.2.2"], &zones.collect::<String>());
    for number in 0..60 {
        world.zone(&format!("z{number}.org"), &[&format!("203.0.113.{number}")], "");
    }
    for number in 0..60 {
        let seen = world.resolve(&format!("z{number}.org"), Rtype::A);
        assert_eq!(seen.rcode, Rcode::NOERROR);
        assert!(number < 20 || seen.took_ms == 20, "{number}: {} ms", seen.took_ms);
        world.pass_ms(1000);
    }
}

/// The root, org, net, and example.org whose servers have names in net.
fn glueless(world: &mut World) {
    world.zone(
        ".",
        &["192.0.2.1"],
        "org NS ns.org
         ns.org A 192.0.2.2
         net NS ns.net
         ns.net A 192.0.2.5",
    );
    world.zone("org", &["192.0.2.2"], "example.org NS ns1.hoster.net\n example.org NS ns2.hoster.net");
    world.zone("net", &["192.0.2.5"], "hoster.net NS ns1.hoster.net\n ns1.hoster.net A 192.0.2.6");
    world.zone("hoster.net", &["192.0.2.6"], "ns1.hoster.net A 192.0.2.7\n ns2.hoster.net A 192.0.2.8");
    world.zone("example.org", &["192.0.2.7", "192.0.2.8"], "www.example.org A 198.51.100.1");
}

#[test]
fn addresses_of_servers_without_glue_are_looked_for() {
    let mut world = World::new();
    glueless(&mut world);
    let seen = world.resolve("www.example.org", Rtype::A);
    assert_eq!(seen.answer, ["www.example.org. 3600 A 198.51.100.1"]);
    assert!(seen.sends <= 10, "{}", seen.sends);
    assert!(seen.took_ms <= 60, "{}", seen.took_ms);
    assert!(
        !world.sent.iter().any(|sent| sent.to.to_string() == "192.0.2.6" && sent.question.contains("www"))
    );
}

/// A server whose address was not looked for yet may be the one that works.
#[test]
fn a_zone_is_not_given_up_while_a_server_has_no_address_yet() {
    for seed in 0..8 {
        for has_two_addresses in [false, true] {
            let mut world = World::new();
            world.reseed(seed);
            glueless(&mut world);
            let mut silent = vec!["192.0.2.7"];
            if has_two_addresses {
                world.zone(
                    "hoster.net",
                    &[],
                    "ns1.hoster.net A 192.0.2.7
                     ns1.hoster.net A 192.0.2.10
                     ns2.hoster.net A 192.0.2.8",
                );
                silent.push("192.0.2.10");
            }
            // Other questions have found out that the first server is silent.
            let now = world.now.ms();
            for address in silent {
                world.server(address).behaviour = Behaviour::Dead;
                (0..4).for_each(|_| world.tables.servers.record_silence((ip(address), 53).into(), now));
            }
            let seen = world.resolve("www.example.org", Rtype::A);
            assert_eq!(seen.answer, ["www.example.org. 3600 A 198.51.100.1"], "{seed}: {:?}", seen.failure);
            assert!(seen.took_ms <= 100 && seen.sends <= 14, "{} ms, {}", seen.took_ms, seen.sends);
        }
    }
}

#[test]
fn a_server_whose_name_does_not_exist_is_passed_over() {
    let mut world = World::new();
    glueless(&mut world);
    world.zone(
        "org",
        &[],
        "example.org NS none1.hoster.net
         example.org NS none2.hoster.net
         example.org NS ns2.hoster.net
         other.org NS none1.hoster.net",
    );
    let seen = world.resolve("www.example.org", Rtype::A);
    assert_eq!(seen.answer, ["www.example.org. 3600 A 198.51.100.1"]);
    let seen = world.resolve("www.other.org", Rtype::A);
    assert_eq!(seen.failure.as_deref(), Some("no-address"));
}

/// RFC 2181 §10.3: the name of a server is no alias.
#[test]
fn a_server_whose_name_is_an_alias_has_no_address() {
    let mut world = World::new();
    glueless(&mut world);
    world.zone("org", &[], "example.org NS alias.hoster.net");
    world.zone("hoster.net", &[], "alias.hoster.net CNAME elsewhere.org");
    let seen = world.resolve("www.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some("no-address")));
    assert!(world.sent.iter().all(|sent| !sent.question.starts_with("elsewhere")), "nobody wants it");
}

#[test]
fn servers_whose_addresses_depend_on_each_other_fail_at_once() {
    let mut world = World::new();
    world.zone(".", &["192.0.2.1"], "org NS ns.org\n ns.org A 192.0.2.2");
    world.zone(
        "org",
        &["192.0.2.2"],
        "a.org NS ns.b.org
         b.org NS ns.a.org
         own.org NS ns.own.org",
    );
    for name in ["www.a.org", "www.b.org", "www.own.org", "ns.own.org", "ns.a.org"] {
        let seen = world.resolve(name, Rtype::A);
        assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some("circle")), "{name}");
        assert!(seen.took_ms <= 50 && seen.sends <= 12, "{name}: {} ms, {}", seen.took_ms, seen.sends);
    }
}

#[test]
fn a_limit_says_that_it_struck() {
    let check = |limits: Limits, reason: &str| {
        let mut world = World::with(Settings { limits, ..plain_settings() });
        glueless(&mut world);
        let seen = world.resolve("www.example.org", Rtype::A);
        let failure = seen.failure.expect("there is no answer");
        assert_eq!((seen.rcode, &*failure), (Rcode::SERVFAIL, "limit"));
        // The reason in full is for the operator.
        world.want("www.example.org", Rtype::A, 7);
        world.settle();
        let failure = world.done[&resolver::Waiter(7)].failure.clone().expect("there is no answer");
        assert!(failure.text().starts_with(reason), "{}", failure.text());
    };
    check(Limits { sends: 2, ..Limits::default() }, "limit: too many queries");
    check(Limits { glueless: 0, ..Limits::default() }, "limit: too many name servers without glue");
    check(Limits { depth: 0, ..Limits::default() }, "limit: name servers without glue, too deep");
}
