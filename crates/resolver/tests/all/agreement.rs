//! In internets made at random, the resolver says what somebody says who knows all zones.

use std::collections::BTreeMap;

use cache::Security;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use resolver::{Minimisation, Settings};
use wire::{Rcode, Rtype};

use crate::signed::{Signed, Signing};
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

pub(crate) fn pick<'a>(from: &'a [String], rng: &mut StdRng) -> &'a str {
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

/// Leaves out the TTL, and a DNAME that more than one alias of a chain was made from but for once.
pub(crate) fn without_ttl(records: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = records
        .iter()
        .map(|record| {
            let words: Vec<&str> = record.split(' ').collect();
            [&words[..1], &words[2..]].concat().join(" ")
        })
        .collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// An internet made at random, some of it signed; its zones, and whether all down to each are.
pub(crate) fn signed_internet(rng: &mut StdRng) -> (Signed, Vec<String>, BTreeMap<String, bool>) {
    let modes = [Minimisation::Off, Minimisation::Relaxed, Minimisation::Strict];
    let mode = modes[rng.random_range(0..3)];
    signed_internet_of(rng, mode, &["", "deep.", "very.deep."])
}

/// The same with these labels between a zone and those that it delegates to.
pub(crate) fn signed_internet_of(
    rng: &mut StdRng,
    minimisation: Minimisation,
    between: &[&str],
) -> (Signed, Vec<String>, BTreeMap<String, bool>) {
    let settings = Settings { minimisation, ..plain_settings() };
    let mut zones = vec![(".".to_string(), "192.0.2.1".to_string(), Signing::Nsec)];
    let mut is_signed = BTreeMap::from([(".".to_string(), true)]);
    for number in 0..rng.random_range(3..10) {
        let (parent, address, _) = zones[rng.random_range(0..zones.len())].clone();
        let labels = between[rng.random_range(0..between.len())];
        let below = if parent == "." { String::new() } else { format!(".{parent}") };
        let apex = format!("{labels}z{number}{below}").replace("..", ".");
        let address = if rng.random_bool(0.3) { address } else { format!("203.0.113.{number}") };
        let signing = match rng.random_range(0..8) {
            0..2 => Signing::No,
            2..5 => Signing::Nsec,
            5..7 => Signing::Nsec3 { iterations: rng.random_range(0..2), opts_out: false },
            _ => Signing::Nsec3 { iterations: 0, opts_out: true },
        };
        is_signed.insert(apex.clone(), is_signed[&parent] && !matches!(signing, Signing::No));
        zones.push((apex, address, signing));
    }
    let apexes: Vec<String> = zones.iter().map(|(apex, ..)| apex.clone()).collect();
    let mut names = vec!["none".to_string()];
    for apex in &apexes[1..] {
        let owners = ["w0", "w2", "x.wild", "a.x.wild", "a.b0", "b0", "w0.d0", "none.d0", "none", "x.none"];
        names.extend(owners.iter().map(|owner| format!("{owner}.{apex}")));
        names.push(apex.clone());
    }
    let mut internet = crate::signed::Internet::default().with(settings).lasting();
    for (apex, address, signing) in &zones {
        let mut text = String::new();
        if apex != "." {
            let lines = [
                format!("w0.{apex}. 30 A 198.51.100.1\nw0.{apex}. 30 A 198.51.100.2"),
                format!("w2.{apex}. CNAME {}.", pick(&names, rng)),
                format!("*.wild.{apex}. A 198.51.100.3\n*.wild.{apex}. TXT \"x\""),
                format!("a.b0.{apex}. A 198.51.100.4"),
                format!("d0.{apex}. DNAME {}.", pick(&apexes[1..], rng)),
            ];
            for line in lines.iter().filter(|_| rng.random_bool(0.8)) {
                text += &format!("{line}\n");
            }
        }
        internet = internet.zone(apex, &[address], *signing, &text);
    }
    (internet.build(), names, is_signed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn signed_zones_are_secure_and_others_insecure(seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut signed, names, is_signed) = signed_internet(&mut rng);
        for _ in 0..16 {
            let name = pick(&names, &mut rng).to_string();
            let types = [Rtype::A, Rtype::A, Rtype::TXT, Rtype::MX, Rtype::DS, Rtype::DNSKEY];
            let rtype = types[rng.random_range(0..types.len())];
            let (rcode, answer) = signed.truth(&name, rtype);
            let seen = signed.world.resolve(&name, rtype);
            let aliases = answer.iter().filter(|record| record.contains(" CNAME ")).count();
            prop_assert!(seen.sends <= 64);
            let is_loop = answer.iter().all(|record| record.contains("NAME "));
            if aliases > ALIASES_MAX || is_loop && seen.failure.as_deref() == Some("alias-loop") {
                prop_assert_eq!(seen.rcode, Rcode::SERVFAIL);
                continue;
            }
            let said = (seen.rcode, without_ttl(&seen.answer));
            prop_assert_eq!(&said, &(rcode, without_ttl(&answer)), "{} {}: {:?}", &name, rtype, seen);
            let is_at_apex = |apex: &str| name == apex && rtype != Rtype::DS;
            let holds = |apex: &str| apex == "." || is_at_apex(apex) || name.ends_with(&format!(".{apex}"));
            let zone = is_signed.keys().filter(|apex| holds(apex)).max_by_key(|apex| apex.trim_matches('.').len());
            let is_signed = is_signed[zone.expect("there is the root")];
            match seen.security {
                Security::Secure => prop_assert!(is_signed, "{} {}: {:?}", &name, rtype, seen),
                // Aliases may lead out of what is signed, and ranges that opt out prove little.
                Security::Insecure => {
                    let may_be = aliases > 0 || seen.answer.is_empty() || answer.iter().any(|record| record.contains("wild"));
                    prop_assert!(!is_signed || may_be, "{} {}: {:?}", &name, rtype, seen);
                }
                _ => prop_assert!(false, "{} {}: {:?}", &name, rtype, seen),
            }
            signed.world.pass_ms(rng.random_range(0..100_000));
        }
    }
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
