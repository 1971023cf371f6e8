//! In internets made at random, the resolver says what somebody says who knows all zones.

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use resolver::{Minimisation, Settings};
use wire::{Rcode, Rtype};

use crate::world::{Behaviour, World, plain_settings};

/// Aliases that a resolver follows.
const ALIASES_MAX: usize = 11;

/// A zone in the making.
struct Draft {
    apex: String,
    servers: Vec<String>,
    text: String,
}

/// An internet, and names in it, near it, and beside it.
struct Internet {
    world: World,
    names: Vec<String>,
}

fn pick<'a>(from: &'a [String], rng: &mut StdRng) -> &'a str {
    &from[rng.random_range(0..from.len())]
}

/// Zones below org and net, each with one to three servers, whose names have glue or are in net.
fn drafts(rng: &mut StdRng) -> Vec<Draft> {
    let draft = |apex: &str, address: &str| Draft {
        apex: apex.to_string(),
        servers: vec![address.to_string()],
        text: String::new(),
    };
    let mut zones = vec![draft("org", "192.0.2.2"), draft("net", "192.0.2.3")];
    for number in 0..rng.random_range(2..14) {
        let parent = rng.random_range(0..zones.len());
        let apex = format!("z{number}.{}", zones[parent].apex);
        let mut servers = Vec::new();
        for server in 0..rng.random_range(1..4) {
            let address = match rng.random_range(0..4) {
                // A server of the parent serves the child, too.
                0 if server == 0 => zones[parent].servers[0].clone(),
                _ => format!("203.0.{number}.{server}"),
            };
            let host = if rng.random_bool(0.3) {
                zones[1].text += &format!("h{number}-{server}.net A {address}\n");
                format!("h{number}-{server}.net")
            } else {
                let host = format!("ns{server}.{apex}");
                zones[parent].text += &format!("{host} A {address}\n");
                host
            };
            zones[parent].text += &format!("{apex} NS {host}\n");
            servers.push(address);
        }
        zones.push(Draft { apex, servers, text: String::new() });
    }
    zones
}

fn internet(seed: u64) -> Internet {
    let mut rng = StdRng::seed_from_u64(seed);
    let modes = [Minimisation::Off, Minimisation::Relaxed, Minimisation::Strict];
    let minimisation = modes[rng.random_range(0..modes.len())];
    let mut world = World::with(Settings { minimisation, ..plain_settings() });
    let mut zones = drafts(&mut rng);
    let apexes: Vec<String> = zones.iter().map(|zone| zone.apex.clone()).collect();
    let mut names = vec!["none".to_string()];
    for apex in &apexes {
        let owners = ["w0", "w1", "w2", "w3", "w4", "a.b0", "b0", "w0.d0", "w2.d0", "none"];
        names.extend(owners.iter().map(|owner| format!("{owner}.{apex}")));
        names.push(apex.clone());
    }
    for (at, zone) in zones.iter_mut().enumerate() {
        let apex = zone.apex.clone();
        let lines = [
            format!("w0.{apex} 30 A 198.51.{at}.1\nw0.{apex} 30 A 198.51.{at}.2"),
            format!("w1.{apex} TXT \"{at}\"\nw1.{apex} 0 A 198.51.{at}.3"),
            format!("w2.{apex} CNAME {}", pick(&names, &mut rng)),
            format!("w3.{apex} 30 CNAME {}", pick(&names, &mut rng)),
            format!("w4.{apex} 0 CNAME {}", pick(&names, &mut rng)),
            format!("a.b0.{apex} A 198.51.{at}.4"),
            format!("d0.{apex} DNAME {}", pick(&apexes, &mut rng)),
        ];
        // Some of what others lead to is not there.
        for line in lines.iter().filter(|_| rng.random_bool(0.85)) {
            zone.text += &format!("{line}\n");
        }
    }
    world.zone(".", &["192.0.2.1"], "org NS ns.org\nns.org A 192.0.2.2\nnet NS ns.net\nns.net A 192.0.2.3");
    for zone in &zones {
        let servers: Vec<&str> = zone.servers.iter().map(String::as_str).collect();
        world.zone(&zone.apex, &servers, &zone.text);
    }
    let broken = [
        Behaviour::Dead,
        Behaviour::Rcode(Rcode::REFUSED),
        Behaviour::Rcode(Rcode::SERVFAIL),
        Behaviour::WithoutAuthority,
    ];
    for zone in &zones {
        // The last one of several is nobody else's.
        let Some(address) = zone.servers.get(1..).and_then(|others| others.last()) else { continue };
        if rng.random_bool(0.5) {
            continue;
        }
        world.server(address).behaviour = broken[rng.random_range(0..broken.len())].clone();
    }
    Internet { world, names }
}

/// Leaves out the TTL, and DNAME records: what is known says the alias that they made.
fn without_ttl(records: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = records
        .iter()
        .map(|record| {
            let words: Vec<&str> = record.split(' ').collect();
            [&words[..1], &words[2..]].concat().join(" ")
        })
        .filter(|line| !line.contains(" DNAME "))
        .collect();
    lines.sort_unstable();
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_replies_say_each_question_ends_within_its_budget(seed: u64) {
        let Internet { mut world, names } = internet(seed);
        for server in world.servers.values_mut() {
            server.behaviour = Behaviour::Garbled;
        }
        let mut rng = StdRng::seed_from_u64(!seed);
        for _ in 0..20 {
            let seen = world.resolve(pick(&names, &mut rng), Rtype::A);
            prop_assert!(seen.sends <= 64 && seen.took_ms <= 12_000, "{} {}", seen.sends, seen.took_ms);
        }
    }

    #[test]
    fn the_answer_is_that_of_who_knows_all(seed: u64) {
        let Internet { mut world, names } = internet(seed);
        let mut rng = StdRng::seed_from_u64(!seed);
        for _ in 0..20 {
            let prefix = ["", "", "", "", "none."][rng.random_range(0..5)];
            let name = format!("{prefix}{}", pick(&names, &mut rng));
            let types = [Rtype::A, Rtype::A, Rtype::TXT, Rtype::AAAA, Rtype::CNAME];
            let rtype = types[rng.random_range(0..types.len())];
            let (rcode, answer) = world.truth(&name, rtype);
            let seen = world.resolve(&name, rtype);
            let aliases = answer.iter().filter(|record| record.contains(" CNAME ")).count();
            prop_assert!(seen.sends <= 64);
            if rtype != Rtype::CNAME && aliases > ALIASES_MAX {
                prop_assert_eq!(seen.rcode, Rcode::SERVFAIL);
            } else {
                let expected = (rcode, without_ttl(&answer));
                let said = (seen.rcode, without_ttl(&seen.answer));
                prop_assert_eq!(said, expected, "{} {}: {:?}", name, rtype, seen.failure);
            }
            world.pass_ms(rng.random_range(0..100_000));
        }
    }
}
