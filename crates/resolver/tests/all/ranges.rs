//! Answers that nobody is asked for: ranges of names that do not exist, wildcards, DNAME records.

use cache::Security;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use resolver::{HeapName, NegativeAnchor, Route, Settings, Stub, Way};
use wire::{Rcode, Rtype};

use crate::agreement::{pick, signed_internet, without_ttl};
use crate::signed::{Internet, Signed, Signing};
use crate::world::{Behaviour, Seen, name, plain_settings};

const NSEC3: Signing = Signing::Nsec3 { iterations: 1, opts_out: false };

/// The root, org, and example.org, signed in this way.
fn build(signing: Signing, settings: Settings) -> Signed {
    Internet::default()
        .with(settings)
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone("org", &["192.0.2.2"], Signing::Nsec, "")
        .zone(
            "example.org",
            &["192.0.2.3"],
            signing,
            "www.example.org. A 198.51.100.1
             www.example.org. TXT \"x\"
             a.b.example.org. A 198.51.100.2
             *.wild.example.org. A 198.51.100.3
             *.alias.example.org. CNAME www.example.org.
             d.example.org. DNAME other.example.org.
             x.other.example.org. A 198.51.100.4
             y.other.example.org. A 198.51.100.5",
        )
        .build()
}

fn signed(signing: Signing) -> Signed {
    build(signing, plain_settings())
}

/// Asks twice; returns what the second question comes to, which must be secure.
fn second(signed: &mut Signed, first: (&str, Rtype), second: (&str, Rtype)) -> Seen {
    assert_eq!(signed.world.resolve(first.0, first.1).security, Security::Secure);
    let seen = signed.world.resolve(second.0, second.1);
    assert_eq!((seen.security, &seen.failure), (Security::Secure, &None), "{second:?}");
    let (rcode, answer) = signed.truth(second.0, second.1);
    assert_eq!((seen.rcode, without_ttl(&seen.answer)), (rcode, without_ttl(&answer)), "{second:?}");
    seen
}

#[test]
fn a_name_in_a_known_range_is_denied_without_a_question() {
    for (signing, proof) in [(Signing::Nsec, " NSEC "), (NSEC3, " NSEC3 ")] {
        let mut signed = signed(signing);
        // Hashes fall where they like: after some names all ranges are known.
        for number in 0..40 {
            signed.world.resolve(&format!("n{number}.example.org"), Rtype::A);
        }
        let seen = second(&mut signed, ("no.example.org", Rtype::A), ("nobody.example.org", Rtype::AAAA));
        assert_eq!((seen.rcode, seen.sends), (Rcode::NXDOMAIN, 0));
        assert!(seen.with_dnssec.iter().any(|record| record.contains(proof)), "{:?}", seen.with_dnssec);
        assert!(seen.with_dnssec.iter().any(|record| record.contains(" SOA ")));
        // Nor is one below it.
        let seen = signed.world.resolve("x.y.nobody.example.org", Rtype::A);
        assert_eq!((seen.rcode, seen.sends, seen.security), (Rcode::NXDOMAIN, 0, Security::Secure));
        assert!(signed.world.resolver.counts().derived >= 2);
    }
}

#[test]
fn a_type_that_a_known_name_lacks_is_denied_without_a_question() {
    for signing in [Signing::Nsec, NSEC3] {
        let mut signed = signed(signing);
        let seen = second(&mut signed, ("www.example.org", Rtype::MX), ("www.example.org", Rtype::AAAA));
        assert_eq!((seen.rcode, seen.sends, seen.answer.len()), (Rcode::NOERROR, 0, 0));
        // What it has is asked for.
        let seen = signed.world.resolve("www.example.org", Rtype::TXT);
        assert_eq!((seen.answer.len(), seen.sends), (1, 1));
    }
}

#[test]
fn a_denial_from_ranges_ends_with_what_it_leans_on() {
    let mut signed = signed(Signing::Nsec);
    second(&mut signed, ("www.example.org", Rtype::MX), ("www.example.org", Rtype::AAAA));
    signed.world.pass_ms(200_000);
    let seen = signed.world.resolve("www.example.org", Rtype::AAAA);
    let ttls = seen.with_dnssec.iter().map(|record| record.split(' ').nth(1).expect("a TTL").to_owned());
    assert!(ttls.collect::<Vec<_>>().iter().all(|ttl| ttl == "100"), "{:?}", seen.with_dnssec);
    signed.world.pass_ms(100_000);
    assert_eq!(signed.world.resolve("www.example.org", Rtype::AAAA).sends, 1);
}

#[test]
fn a_wildcard_answers_for_names_that_nobody_asked_for() {
    for signing in [Signing::Nsec, NSEC3] {
        let mut signed = signed(signing);
        let seen = second(&mut signed, ("x.wild.example.org", Rtype::A), ("x.wild.example.org", Rtype::A));
        assert_eq!(seen.sends, 0, "the proof is known as well");
        let seen = second(&mut signed, ("x.alias.example.org", Rtype::A), ("x.alias.example.org", Rtype::A));
        assert_eq!((seen.sends, seen.answer.len()), (0, 2));
        assert!(seen.with_dnssec.iter().any(|record| record.contains(" NSEC")), "with the proof");
    }
    let mut signed = signed(Signing::Nsec);
    let seen = second(&mut signed, ("x.wild.example.org", Rtype::A), ("y.z.wild.example.org", Rtype::A));
    assert_eq!((seen.sends, &*seen.answer[0]), (0, "y.z.wild.example.org. 300 A 198.51.100.3"));
    let seen = second(&mut signed, ("y.wild.example.org", Rtype::MX), ("z.wild.example.org", Rtype::AAAA));
    assert_eq!((seen.sends, seen.rcode), (0, Rcode::NOERROR), "what it has not got it has for nobody");
}

/// CVE-2026-46582: neither an answer from a wildcard nor its proof is used beyond its time, for
/// whatever name.
#[test]
fn a_wildcard_that_has_expired_stands_in_for_no_name() {
    for signing in [Signing::Nsec, NSEC3] {
        let mut signed = signed(signing);
        let seen = second(&mut signed, ("x.wild.example.org", Rtype::A), ("x.wild.example.org", Rtype::A));
        assert_eq!(seen.sends, 0, "it is known");
        signed.world.pass_ms(301_000);
        for name in ["z.wild.example.org", "x.wild.example.org"] {
            let seen = signed.world.resolve(name, Rtype::A);
            assert_eq!(
                (seen.sends > 0, seen.rcode, seen.security),
                (true, Rcode::NOERROR, Security::Secure),
                "{name}"
            );
            signed.world.pass_ms(301_000);
        }
    }
}

#[test]
fn a_dname_that_is_known_makes_aliases_without_a_question() {
    let mut signed = signed(Signing::Nsec);
    signed.world.resolve("y.other.example.org", Rtype::A);
    let seen = second(&mut signed, ("x.d.example.org", Rtype::A), ("y.d.example.org", Rtype::A));
    assert_eq!((seen.sends, seen.answer.len()), (0, 3), "{:?}", seen.answer);
    // What it makes may be too long for a name.
    let label = "l".repeat(60);
    let long = format!("{label}.{label}.{label}.{}.d.example.org", "l".repeat(54));
    let seen = signed.world.resolve(&long, Rtype::A);
    assert_eq!((seen.rcode, seen.security, seen.sends), (Rcode::YXDOMAIN, Security::Indeterminate, 0));
}

#[test]
fn nothing_is_derived_where_that_is_not_wanted() {
    let mut signed = build(Signing::Nsec, Settings { aggressive_nsec: false, ..plain_settings() });
    let seen = second(&mut signed, ("no.example.org", Rtype::A), ("nobody.example.org", Rtype::A));
    assert_eq!((seen.sends, signed.world.resolver.counts().derived), (1, 0));
}

#[test]
fn ranges_that_opt_out_deny_nothing_else() {
    let mut signed = signed(Signing::Nsec3 { iterations: 0, opts_out: true });
    for number in 0..40 {
        let seen = signed.world.resolve(&format!("n{number}.example.org"), Rtype::A);
        assert_eq!((seen.rcode, seen.sends > 0), (Rcode::NXDOMAIN, true));
    }
}

#[test]
fn another_worker_uses_the_ranges_that_one_has_proved() {
    let mut signed = signed(Signing::Nsec);
    signed.world.resolve("no.example.org", Rtype::A);
    signed.world.change_worker();
    let seen = signed.world.resolve("nobody.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.sends, seen.security), (Rcode::NXDOMAIN, 0, Security::Secure));
}

/// CVE-2026-44687: what a zone above denies is found elsewhere all the same.
#[test]
fn a_range_does_not_hide_a_zone_that_is_found_elsewhere() {
    let route = |zone: &str, address: &str| Route {
        zone: HeapName::new(name(zone).as_name()),
        way: Way::Stub(Stub {
            addresses: vec![std::net::SocketAddr::new(address.parse().expect("an address"), 53)],
            ..Stub::default()
        }),
        first: false,
        keeps: true,
    };
    let routes = vec![route("corp.example.org", "192.0.2.9")];
    let mut signed = build(Signing::Nsec, Settings { routes, ..plain_settings() });
    let zone = HeapName::new(name("corp.example.org").as_name());
    let anchors = signed.anchors.clone();
    signed.world.resolver.trust(&anchors, &[NegativeAnchor { zone, ends_at: None }]);
    signed.world.zone("corp.example.org", &["192.0.2.9"], "www.corp.example.org A 10.0.0.1");
    // The range is from "b" to "d".
    let seen = signed.world.resolve("cor.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.security), (Rcode::NXDOMAIN, Security::Secure));
    assert_eq!(signed.world.resolve("corq.example.org", Rtype::A).sends, 0);
    let seen = signed.world.resolve("www.corp.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.answer.len(), seen.security), (Rcode::NOERROR, 1, Security::Insecure));
}

#[test]
fn a_zone_that_is_not_trusted_any_more_denies_nothing_securely() {
    let mut signed = signed(Signing::Nsec);
    signed.world.resolve("no.example.org", Rtype::A);
    let zone = HeapName::new(name("example.org").as_name());
    let anchors = signed.anchors.clone();
    signed.world.resolver.trust(&anchors, &[NegativeAnchor { zone, ends_at: None }]);
    let seen = signed.world.resolve("nobody.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.sends, seen.security), (Rcode::NXDOMAIN, 1, Security::Insecure));
}

#[test]
fn deep_names_do_not_spend_what_a_question_may_hash() {
    let mut signed = signed(NSEC3);
    for number in 0..40 {
        signed.world.resolve(&format!("n{number}.example.org"), Rtype::A);
    }
    for labels in 1..60 {
        let seen = signed.world.resolve(&format!("{}no.example.org", "x.".repeat(labels)), Rtype::A);
        assert_eq!((seen.rcode, seen.failure), (Rcode::NXDOMAIN, None), "{labels}");
    }
}

#[test]
fn water_torture_of_a_signed_zone_costs_its_servers_a_few_queries() {
    for signing in [Signing::Nsec, NSEC3] {
        let mut signed = signed(signing);
        let before = signed.world.sent.len();
        for number in 0..1000 {
            let seen = signed.world.resolve(&format!("n{number}.example.org"), Rtype::A);
            assert_eq!(seen.rcode, Rcode::NXDOMAIN);
        }
        let sent = signed.world.sent.len() - before;
        assert!(sent < 40, "{sent}");
        // It goes on when the zone's servers are gone.
        signed.world.server("192.0.2.3").behaviour = Behaviour::Dead;
        assert_eq!(signed.world.resolve("gone.example.org", Rtype::A).rcode, Rcode::NXDOMAIN);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn an_answer_from_ranges_is_that_of_the_server(seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut signed, names, _) = signed_internet(&mut rng);
        for _ in 0..48 {
            let prefix = ["", "", "q.", "zz.", "a.a."][rng.random_range(0..5)];
            let name = format!("{prefix}{}", pick(&names, &mut rng));
            let types = [Rtype::A, Rtype::AAAA, Rtype::TXT, Rtype::MX, Rtype::DS, Rtype::NS, Rtype::SOA];
            let rtype = types[rng.random_range(0..types.len())];
            let derived = signed.world.resolver.counts().derived;
            let seen = signed.world.resolve(&name, rtype);
            prop_assert!(seen.sends <= 64);
            if signed.world.resolver.counts().derived == derived || seen.failure.is_some() {
                continue;
            }
            let (rcode, answer) = signed.truth(&name, rtype);
            let said = (seen.rcode, without_ttl(&seen.answer));
            prop_assert_eq!(&said, &(rcode, without_ttl(&answer)), "{} {}: {:?}", &name, rtype, seen);
        }
    }
}

#[test]
fn random_worlds_have_answers_from_ranges() {
    let mut derived = 0;
    for seed in 0..8 {
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut signed, names, _) = signed_internet(&mut rng);
        for _ in 0..48 {
            signed.world.resolve(pick(&names, &mut rng), Rtype::AAAA);
        }
        derived += signed.world.resolver.counts().derived;
    }
    assert!(derived > 40, "{derived} of 384");
}
