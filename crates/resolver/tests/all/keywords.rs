//! What settings do that `unbound.conf` has words for: each test shows the effect of one.

use std::net::{IpAddr, SocketAddr};

use cache::Security;
use cache::servers::LetterCase;
use dnssec::Skew;
use resolver::{HeapName, Limits, Route, Settings, Stub, Trust, Way};
use wire::{EdeCode, Rcode, Rtype};

use crate::referrals::small;
use crate::signed::{Signed, Signing};
use crate::validation::{check, check_bogus, internet};
use crate::world::{Behaviour, UNIX_SECONDS, World, ip, name, plain_settings};

/// A small internet whose resolver has these settings.
fn world(change: impl FnOnce(&mut Settings)) -> World {
    let mut settings = plain_settings();
    change(&mut settings);
    let mut world = World::with(settings);
    small(&mut world);
    world
}

/// Returns how many queries went to an address.
fn sent_to(world: &World, address: &str) -> usize {
    let address: IpAddr = ip(address);
    world.sent.iter().filter(|sent| sent.to == address).count()
}

#[test]
fn outbound_msg_retry_is_how_often_one_server_is_asked() {
    for attempts in [1, 2, 3] {
        let mut world = world(|settings| settings.attempts = attempts);
        world.resolve("org", Rtype::SOA);
        world.server("192.0.2.3").behaviour = Behaviour::Dead;
        world.server("192.0.2.4").behaviour = Behaviour::Dead;
        let seen = world.resolve("www.example.org", Rtype::A);
        assert_eq!(seen.rcode, Rcode::SERVFAIL);
        let sent = [sent_to(&world, "192.0.2.3"), sent_to(&world, "192.0.2.4")];
        assert_eq!(sent, [usize::from(attempts); 2]);
    }
}

#[test]
fn max_sent_count_bounds_the_queries_to_one_zone() {
    for most in [1, 3] {
        let mut world = world(|settings| settings.limits.sends_per_zone = most);
        world.server("192.0.2.3").behaviour = Behaviour::Dead;
        world.server("192.0.2.4").behaviour = Behaviour::Dead;
        assert_eq!(world.resolve("www.example.org", Rtype::A).rcode, Rcode::SERVFAIL);
        let sent = sent_to(&world, "192.0.2.3") + sent_to(&world, "192.0.2.4");
        assert_eq!(sent, usize::from(most));
    }
}

#[test]
fn max_global_quota_bounds_the_queries_of_one_question() {
    for (most, rcode) in [(2, Rcode::SERVFAIL), (3, Rcode::NOERROR)] {
        let mut world = world(|settings| settings.limits.sends = most);
        let seen = world.resolve("www.example.org", Rtype::A);
        assert_eq!((seen.rcode, seen.sends), (rcode, usize::from(most)));
        // Another question has an allowance of its own.
        assert_eq!(world.resolve("org", Rtype::SOA).rcode, Rcode::NOERROR);
    }
}

#[test]
fn max_query_restarts_bounds_the_aliases_that_are_followed() {
    for (most, rcode) in [(3, Rcode::SERVFAIL), (4, Rcode::NOERROR)] {
        let mut world = world(|settings| settings.limits.aliases = most);
        let zones = ["a.org", "b.org", "c.org", "d.org", "e.org"];
        let mut org = String::new();
        for (number, zone) in zones.iter().enumerate() {
            let address = format!("192.0.2.{}", 20 + number);
            org += &format!("{zone} NS ns.{zone}\nns.{zone} A {address}\n");
            let text = match zones.get(number + 1) {
                Some(next) => format!("www.{zone} CNAME www.{next}"),
                None => format!("www.{zone} A 198.51.100.1"),
            };
            world.zone(zone, &[&address], &text);
        }
        world.zone("org", &[], &org);
        assert_eq!(world.resolve("www.a.org", Rtype::A).rcode, rcode, "{most}");
    }
}

#[test]
fn iter_scrub_ns_is_how_many_servers_of_a_zone_are_known() {
    for (most, expect) in [(2, 2), (20, 6)] {
        let mut world = world(|settings| {
            (settings.servers_max, settings.attempts) = (most, 1);
            settings.limits = Limits { sends: 60, sends_per_zone: 60, ..Limits::default() };
        });
        let servers: String = (0..6)
            .map(|number| {
                format!("many.org NS ns{number}.many.org\nns{number}.many.org A 192.0.2.{}\n", 30 + number)
            })
            .collect();
        world.zone("org", &[], &servers);
        // Nobody is there.
        assert_eq!(world.resolve("www.many.org", Rtype::A).rcode, Rcode::SERVFAIL);
        let asked = (0..6).filter(|number| sent_to(&world, &format!("192.0.2.{}", 30 + number)) > 0).count();
        assert_eq!(asked, expect);
    }
}

#[test]
fn infra_host_ttl_is_how_long_a_lame_server_is_left_alone() {
    let mut world = world(|settings| settings.lame_seconds = 60);
    world.server("192.0.2.3").behaviour = Behaviour::Rcode(Rcode::REFUSED);
    let ask = |world: &mut World, range: std::ops::Range<u32>| {
        let before = sent_to(world, "192.0.2.3");
        for number in range {
            world.resolve(&format!("n{number}.example.org"), Rtype::A);
        }
        sent_to(world, "192.0.2.3") - before
    };
    assert!(ask(&mut world, 0..30) > 0, "it is tried");
    world.pass_ms(30_000);
    assert_eq!(ask(&mut world, 30..60), 0, "it is known to be lame");
    world.pass_ms(300_000);
    assert!(ask(&mut world, 60..90) > 0, "it is tried again");
}

#[test]
fn unknown_server_time_limit_is_the_patience_with_servers_that_nobody_knows() {
    for ms in [100, 700] {
        let mut world = world(|settings| {
            (settings.patience_unknown_ms, settings.patience_ms_min) = (ms, 1);
            settings.attempts = 1;
        });
        world.server("192.0.2.1").behaviour = Behaviour::Dead;
        let seen = world.resolve_now("www.example.org", Rtype::A);
        assert_eq!(seen.rcode, Rcode::SERVFAIL);
        assert!((u64::from(ms)..u64::from(ms) + 50).contains(&seen.took_ms), "{ms}: {}", seen.took_ms);
        world.settle();
    }
}

#[test]
fn infra_cache_min_rtt_is_the_least_patience_with_a_server_that_is_known() {
    for ms in [50, 800] {
        let mut world = world(|settings| (settings.patience_ms_min, settings.attempts) = (ms, 1));
        for number in 0..4 {
            world.resolve(&format!("n{number}.org"), Rtype::A);
        }
        world.server("192.0.2.2").behaviour = Behaviour::Dead;
        let seen = world.resolve_now("later.org", Rtype::A);
        assert!((u64::from(ms)..u64::from(ms) + 50).contains(&seen.took_ms), "{ms}: {}", seen.took_ms);
        world.settle();
    }
}

#[test]
fn caps_exempt_leaves_the_letters_of_these_names_as_they_are() {
    let mut world =
        world(|settings| settings.exact_case = vec![HeapName::new(name("example.org").as_name())]);
    world.zone("net", &["192.0.2.7"], "www.net A 198.51.100.7");
    world.zone(".", &[], "org NS ns.org\nns.org A 192.0.2.2\nnet NS ns.net\nns.net A 192.0.2.7");
    assert_eq!(world.resolve("www.example.org", Rtype::A).rcode, Rcode::NOERROR);
    assert_eq!(world.resolve("www.net", Rtype::A).rcode, Rcode::NOERROR);
    for sent in &world.sent {
        let is_exempt = sent.question.starts_with("www.example.org");
        assert_eq!(sent.case == LetterCase::Changed, is_exempt, "{sent:?}");
    }
}

#[test]
fn stub_tcp_upstream_asks_the_servers_of_one_zone_over_tcp_alone() {
    let stub =
        Stub { addresses: vec![SocketAddr::new(ip("192.0.2.3"), 53)], tcp_only: true, ..Stub::default() };
    let route = Route {
        zone: HeapName::new(name("example.org").as_name()),
        way: Way::Stub(stub),
        first: false,
        keeps: true,
    };
    let mut world = world(|settings| settings.routes = vec![route]);
    assert_eq!(world.resolve("www.example.org", Rtype::A).rcode, Rcode::NOERROR);
    assert_eq!(world.resolve("none.org", Rtype::A).rcode, Rcode::NXDOMAIN);
    for sent in &world.sent {
        assert_eq!(sent.over_tcp, sent.question.starts_with("www.example.org"), "{sent:?}");
    }
}

/// Asks for a name whose signature expired a day ago, of those that are valid for a day.
fn expired(skew: Skew) -> Signed {
    internet(Signing::Nsec, Signing::Expired).trusting(|trust: &mut Trust| trust.skew = skew).build()
}

#[test]
fn val_sig_skew_min_and_max_say_how_wrong_clocks_of_signers_may_be() {
    const DAY: u32 = 86_400;
    // A tenth of its time would be some hours.
    for (min, max, is_good) in [(0, 10 * DAY, false), (2 * DAY, 10 * DAY, true), (2 * DAY, DAY / 2, false)] {
        let Signed { mut world, .. } = expired(Skew { min, max });
        let seen = world.resolve("www.example.org", Rtype::A);
        match is_good {
            true => check(&seen, Rcode::NOERROR, Security::Secure),
            false => check_bogus(&seen, EdeCode::SIGNATURE_EXPIRED),
        }
    }
    assert!(UNIX_SECONDS > u64::from(DAY));
}

#[test]
fn val_bogus_ttl_is_how_long_an_answer_that_is_bogus_is_not_looked_for_again() {
    for (most, expect) in [(2, true), (300, false)] {
        let settings = Settings { bogus_seconds_max: most, ..plain_settings() };
        let Signed { mut world, .. } = internet(Signing::Nsec, Signing::Expired).with(settings).build();
        let mut was_asked = Vec::new();
        for _ in 0..8 {
            let seen = world.resolve("www.example.org", Rtype::A);
            check_bogus(&seen, EdeCode::SIGNATURE_EXPIRED);
            was_asked.push(seen.sends > 0);
            world.pass_ms(2100);
        }
        assert!(was_asked[0]);
        assert_eq!(was_asked.iter().all(|&was| was), expect, "{most}: {was_asked:?}");
    }
}
