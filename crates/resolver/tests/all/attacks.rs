//! What hostile servers try. Each test is named after what does not happen.

use std::net::IpAddr;

use resolver::{AddressPolicy, Settings};
use wire::{Rcode, Rtype, Section};

use crate::referrals::small;
use crate::world::{Behaviour, World, plain_settings, record};

fn world() -> World {
    let mut world = World::new();
    small(&mut world);
    world
}

/// The root and org; evil.org, at 192.0.2.66, says what `text` says; victim.org is honest.
pub(crate) fn with_evil(text: &str) -> World {
    let mut world = World::new();
    world.zone(".", &["192.0.2.1"], "org NS ns.org\n ns.org A 192.0.2.2");
    world.zone(
        "org",
        &["192.0.2.2"],
        "evil.org NS ns.evil.org
         ns.evil.org A 192.0.2.66
         victim.org NS ns.victim.org
         ns.victim.org A 192.0.2.9",
    );
    world.zone("victim.org", &["192.0.2.9"], "www.victim.org A 198.51.100.1");
    world.zone("evil.org", &["192.0.2.66"], text);
    world
}

pub(crate) fn nxns() -> World {
    let servers: Vec<String> =
        (0..100).map(|number| format!("sub.evil.org NS none{number}.victim.org")).collect();
    with_evil(&servers.join("\n"))
}

/// NXNSAttack (CVE-2020-12662): a referral to many names of the victim's that do not exist.
#[test]
fn a_referral_to_many_names_costs_the_victim_little() {
    let mut world = nxns();
    let seen = world.resolve("www.sub.evil.org", Rtype::A);
    assert_eq!(seen.rcode, Rcode::SERVFAIL);
    let at_victim = world.sent.iter().filter(|sent| sent.to.to_string() == "192.0.2.9").count();
    assert!(at_victim <= 16, "{at_victim}");
    assert!(seen.sends <= 64, "{}", seen.sends);
}

pub(crate) fn silent() -> World {
    let mut text = String::new();
    for number in 1..=100 {
        text += &format!(
            "sub.evil.org NS ns{number}.sub.evil.org\nns{number}.sub.evil.org A 203.0.113.{number}\n"
        );
    }
    with_evil(&text)
}

/// NRDelegation (CVE-2022-3204): a referral to many servers that are not responsive.
#[test]
fn a_referral_to_many_silent_addresses_ends() {
    let mut world = silent();
    let seen = world.resolve("www.sub.evil.org", Rtype::A);
    assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some("silent")));
    assert!(seen.sends <= 20 && seen.took_ms <= 12_000, "{} {}", seen.sends, seen.took_ms);
}

pub(crate) fn camp() -> World {
    let mut text = String::new();
    for number in 0..40 {
        let next = number + 1;
        text += &format!("a.b.c.d.e{number}.evil.org CNAME a.b.c.d.e{next}.evil.org\n");
        text += &format!("z{number}.evil.org NS n{number}.z{next}.evil.org\n");
        text += &format!("z{number}.evil.org NS m{number}.z{next}.evil.org\n");
    }
    with_evil(&text)
}

/// CAMP: aliases, referrals and hidden labels multiply each other.
#[test]
fn aliases_times_referrals_stay_within_one_budget() {
    for minimisation in [resolver::Minimisation::Off, resolver::Minimisation::Relaxed] {
        for name in ["a.b.c.d.e0.evil.org", "www.z0.evil.org"] {
            let mut world = camp();
            let resolver = World::with(Settings { minimisation, ..plain_settings() }).resolver;
            world.resolver = resolver;
            let seen = world.resolve(name, Rtype::A);
            assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some("limit")), "{name}");
            assert!(seen.sends <= 64, "{name}: {}", seen.sends);
        }
    }
}

/// Promiscuous records (CVE-2025-11411, CVE-2026-42960), in every section.
#[test]
fn records_that_nobody_asked_for_are_not_kept() {
    let mut world = with_evil("www.evil.org A 198.51.100.6");
    let records = [
        (Section::Answer, "www.victim.org A 203.0.113.66"),
        (Section::Authority, "org NS ns.evil.org"),
        (Section::Authority, "victim.org NS ns.evil.org"),
        (Section::Authority, "evil.org NS ns.victim.org"),
        (Section::Additional, "ns.victim.org A 192.0.2.66"),
        (Section::Additional, "ns.org A 192.0.2.66"),
        (Section::Additional, "www.victim.org A 203.0.113.66"),
    ];
    let records = records.map(|(section, line)| (section, record(line))).to_vec();
    world.server("192.0.2.66").behaviour = Behaviour::Poisoner(records);
    assert_eq!(world.resolve("www.evil.org", Rtype::A).answer, ["www.evil.org. 3600 A 198.51.100.6"]);
    assert_eq!(world.resolve("none.evil.org", Rtype::A).rcode, Rcode::NXDOMAIN);
    world.sent.clear();
    assert_eq!(world.resolve("www.victim.org", Rtype::A).answer, ["www.victim.org. 3600 A 198.51.100.1"]);
    assert!(world.sent.iter().all(|sent| sent.to.to_string() != "192.0.2.66"));
}

/// Glue of another zone's server, in a referral that is sound otherwise.
#[test]
fn glue_serves_its_own_delegation_alone() {
    let mut world = with_evil("sub.evil.org NS ns.victim.org");
    let records = vec![
        (Section::Authority, record("sub.evil.org NS ns.victim.org")),
        (Section::Additional, record("ns.victim.org A 192.0.2.66")),
    ];
    world.server("192.0.2.66").behaviour = Behaviour::Liar(records);
    let _ = world.resolve("www.sub.evil.org", Rtype::A);
    assert_eq!(world.resolve("ns.victim.org", Rtype::A).answer, Vec::<String>::new());
    assert_eq!(world.resolve("www.victim.org", Rtype::A).answer, ["www.victim.org. 3600 A 198.51.100.1"]);
}

/// Ghost domains (CVE-2022-30698): the servers of a zone that was taken away keep it alive.
#[test]
fn a_zone_that_was_taken_away_is_gone_when_its_delegation_ends() {
    let mut world = world();
    let ghosts = vec![
        (Section::Authority, record("example.org 86400 NS ns1.example.org")),
        (Section::Additional, record("ns1.example.org 86400 A 192.0.2.3")),
    ];
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Poisoner(ghosts.clone());
    }
    world.resolve("www.example.org", Rtype::A);
    world.zone("org", &[], "other.org A 198.51.100.7");
    for number in 0..5 {
        world.pass_ms(100_000);
        let seen = world.resolve(&format!("n{number}.example.org"), Rtype::A);
        assert!(seen.authority[0].starts_with("example.org. "), "{number}");
        world.resolve("example.org", Rtype::NS);
    }
    world.pass_ms(100_000);
    assert!(world.resolve("n6.example.org", Rtype::A).authority[0].starts_with("org. "));
}

/// Phoenix domains: a delegation below one that was taken away.
#[test]
fn a_delegation_ends_with_the_one_it_was_found_under() {
    let mut world = world();
    world.zone(
        "example.org",
        &[],
        "sub.example.org 86400 NS ns.sub.example.org
         ns.sub.example.org 86400 A 192.0.2.66",
    );
    world.zone("sub.example.org", &["192.0.2.66"], "www.sub.example.org 60 A 198.51.100.6");
    assert_eq!(world.resolve("www.sub.example.org", Rtype::A).answer.len(), 1);
    world.zone("org", &[], "other.org A 198.51.100.7");
    world.pass_ms(500_000);
    assert_eq!(world.resolve("www.sub.example.org", Rtype::A).answer.len(), 1);
    world.pass_ms(100_000);
    let seen = world.resolve("www.sub.example.org", Rtype::A);
    assert_eq!(seen.rcode, Rcode::NXDOMAIN);
    assert!(seen.authority[0].starts_with("org. "));
}

/// Phoenix domains again: the delegation above may have ended before anybody looks.
#[test]
fn what_is_found_under_a_delegation_that_nobody_keeps_is_not_kept() {
    let mut world = world();
    world.zone(
        "org",
        &[],
        "example.org 0 NS ns1.example.org
         ns1.example.org A 192.0.2.3",
    );
    world.zone(
        "example.org",
        &[],
        "sub.example.org 86400 NS ns.sub.example.org
         ns.sub.example.org 86400 A 192.0.2.66",
    );
    world.zone("sub.example.org", &["192.0.2.66"], "www.sub.example.org 60 A 198.51.100.6");
    assert_eq!(world.resolve("www.sub.example.org", Rtype::A).answer.len(), 1);
    world.zone("org", &[], "other.org A 198.51.100.7");
    world.pass_ms(60_000);
    assert_eq!(world.resolve("www.sub.example.org", Rtype::A).rcode, Rcode::NXDOMAIN);
}

/// TsuKing, CVE-2026-50251: glue that makes us ask ourselves, or those whom only we can ask.
#[test]
fn our_own_addresses_are_not_asked() {
    let addresses = ["0.0.0.0", "127.0.0.1", "10.0.0.1", "203.0.113.53", "224.0.0.1"];
    let mut text = String::new();
    for (number, address) in addresses.iter().enumerate() {
        text += &format!("sub.evil.org NS ns{number}.sub.evil.org\nns{number}.sub.evil.org A {address}\n");
    }
    let mut world = with_evil(&text);
    let own: IpAddr = "203.0.113.53".parse().expect("an address");
    let addresses = AddressPolicy { refused: vec![wire::Prefix::new(own, 32)], ..AddressPolicy::default() };
    world.resolver = World::with(Settings { addresses, ..plain_settings() }).resolver;
    let seen = world.resolve("www.sub.evil.org", Rtype::A);
    assert_eq!(seen.rcode, Rcode::SERVFAIL);
    assert!(world.sent.iter().all(|sent| sent.to.to_string().starts_with("192.0.2.")));
}

/// A referral that leads up, sideways or to where we are, for ever.
#[test]
fn a_referral_that_does_not_lead_down_ends_there() {
    for owner in [".", "org", "evil.org", "victim.org", "other.evil.org"] {
        let mut world = with_evil("");
        let records = vec![(Section::Authority, record(&format!("{owner} NS ns.evil.org")))];
        world.server("192.0.2.66").behaviour = Behaviour::Liar(records);
        let seen = world.resolve("www.evil.org", Rtype::A);
        assert!(seen.sends <= 6, "{owner}: {}", seen.sends);
        assert!(seen.answer.is_empty());
    }
}

/// A referral to a zone for each label of a long name.
#[test]
fn a_name_of_many_zones_stays_within_its_budget() {
    let mut world = World::new();
    world.zone(".", &["192.0.2.1"], "x NS ns.x\n ns.x A 203.0.113.0");
    let mut name = "x".to_string();
    for number in 0..100 {
        let (below, next) = (format!("x.{name}"), number + 1);
        let text = format!("{below} NS ns.{below}\n ns.{below} A 203.0.113.{next}");
        world.zone(&name, &[&format!("203.0.113.{number}")], &text);
        name = below;
    }
    let seen = world.resolve(&name, Rtype::A);
    assert_eq!((seen.failure.as_deref(), seen.sends), (Some("limit"), 64));
}
