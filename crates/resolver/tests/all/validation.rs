//! What signatures prove, and what happens when they do not.

use cache::Security;
use proptest::prelude::*;
use resolver::{HeapName, Limits, NegativeAnchor, Settings, SignatureTime, Validation, Waiter};
use wire::{Class, EdeCode, Question, Rcode, Rtype, Section};

use crate::signed::{Internet, Signed, Signing};
use crate::world::{Behaviour, Seen, UNIX_SECONDS, name, plain_settings, record, reply_of, signed_reply};

pub(crate) const NSEC3: Signing = Signing::Nsec3 { iterations: 0, opts_out: false };
const OPT_OUT: Signing = Signing::Nsec3 { iterations: 0, opts_out: true };

/// The root, org, example.org at two servers, and unsigned.org.
pub(crate) fn internet(org: Signing, example: Signing) -> Internet {
    Internet::default()
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone("org", &["192.0.2.2"], org, "")
        .zone(
            "example.org",
            &["192.0.2.3", "192.0.2.4"],
            example,
            "www.example.org. 300 A 198.51.100.1
             *.wild.example.org. 300 A 198.51.100.2
             a.b.example.org. TXT \"here\"
             alias.example.org. CNAME www.example.org.
             out.example.org. CNAME www.unsigned.org.
             tree.example.org. DNAME example.org.
             many.example.org. TXT \"x\"",
        )
        .zone("unsigned.org", &["192.0.2.5"], Signing::No, "www.unsigned.org. A 198.51.100.5")
}

fn has(seen: &Seen, what: &str) -> bool {
    seen.with_dnssec.iter().any(|line| line.contains(what))
}

#[track_caller]
pub(crate) fn check(seen: &Seen, rcode: Rcode, security: Security) {
    assert_eq!((seen.rcode, seen.security), (rcode, security), "{seen:?}");
}

#[track_caller]
pub(crate) fn check_bogus(seen: &Seen, ede: EdeCode) {
    assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some("bogus")), "{seen:?}");
    assert_eq!((seen.security, seen.ede), (Security::Bogus, Some(ede)), "{seen:?}");
}

#[test]
fn signatures_lead_from_the_root_to_the_answer() {
    for signing in [Signing::Nsec, NSEC3] {
        let Signed { mut world, .. } = internet(signing, signing).build();
        assert_eq!(world.resolver.zones_known(), 0);
        for sends in [6, 0] {
            let seen = world.resolve("www.example.org", Rtype::A);
            check(&seen, Rcode::NOERROR, Security::Secure);
            assert_eq!((seen.answer.len(), seen.sends), (1, sends));
            assert!(has(&seen, " RRSIG A "), "who sets DO gets the signature: {seen:?}");
            assert_eq!(world.resolver.zones_known(), 3, "the keys of all three");
        }
    }
}

#[test]
fn signatures_may_have_to_be_valid_at_another_time() {
    let Signed { mut world, .. } = internet(Signing::Nsec, Signing::Expired).build();
    check_bogus(&world.resolve("www.example.org", Rtype::A), EdeCode::SIGNATURE_EXPIRED);
    let then = UNIX_SECONDS as u32 - 129_600;
    let at_another = |time| internet(Signing::Nsec, Signing::Expired).trusting(|trust| trust.time = time);
    for time in [SignatureTime::At(then), SignatureTime::Any] {
        let Signed { mut world, .. } = at_another(time).build();
        let seen = world.resolve("www.example.org", Rtype::A);
        check(&seen, Rcode::NOERROR, Security::Secure);
    }
}

#[test]
fn keys_are_asked_for_beside_the_question() {
    let Signed { mut world, .. } = internet(Signing::Nsec, Signing::Nsec).build();
    let seen = world.resolve("www.example.org", Rtype::A);
    assert_eq!((seen.sends, seen.took_ms), (6, 30), "three round trips from nothing");
    let Signed { mut world, .. } = internet(Signing::Nsec, Signing::Nsec).build();
    world.resolve("org", Rtype::SOA);
    let seen = world.resolve("www.example.org", Rtype::A);
    check(&seen, Rcode::NOERROR, Security::Secure);
    assert_eq!((seen.sends, seen.took_ms), (3, 20), "two below a zone that is known");
}

#[test]
fn keys_that_one_worker_checked_no_other_checks_again() {
    for signing in [Signing::Nsec, NSEC3] {
        let Signed { mut world, .. } = internet(signing, signing).build();
        world.resolve("www.example.org", Rtype::A);
        world.change_worker();
        let seen = world.resolve("x.wild.example.org", Rtype::A);
        check(&seen, Rcode::NOERROR, Security::Secure);
        assert_eq!(seen.sends, 1, "neither DNSKEY nor DS records are asked for again");
        let checked = world.resolver.signatures_checked();
        assert!((1..=2).contains(&checked), "of the answer and its proof alone: {checked}");
        world.change_worker();
        for (name, sends) in [("www.example.org", 0), ("www.unsigned.org", 2)] {
            assert_eq!(world.resolve(name, Rtype::A).sends, sends, "{name}");
        }
    }
}

#[test]
fn absence_is_proved() {
    for signing in [Signing::Nsec, NSEC3] {
        let settings = Settings { aggressive_nsec: false, ..plain_settings() };
        let Signed { mut world, .. } = internet(signing, signing).with(settings).build();
        let proof = if matches!(signing, Signing::Nsec) { " NSEC " } else { " NSEC3 " };
        for (name, rtype, rcode) in [
            ("none.example.org", Rtype::A, Rcode::NXDOMAIN),
            ("x.none.example.org", Rtype::A, Rcode::NXDOMAIN),
            ("www.example.org", Rtype::TXT, Rcode::NOERROR),
            ("b.example.org", Rtype::A, Rcode::NOERROR),
            ("x.wild.example.org", Rtype::TXT, Rcode::NOERROR),
            ("example.org", Rtype::MX, Rcode::NOERROR),
            ("none", Rtype::A, Rcode::NXDOMAIN),
        ] {
            for again in [false, true] {
                let seen = world.resolve(name, rtype);
                check(&seen, rcode, Security::Secure);
                assert_eq!(
                    (seen.answer.len(), seen.authority.len(), seen.sends == 0),
                    (0, 1, again),
                    "{name}"
                );
                assert!((has(&seen, proof) || name == "none") && has(&seen, " RRSIG NSEC"), "{seen:?}");
            }
        }
    }
}

#[test]
fn what_comes_with_every_denial_is_checked_once() {
    let settings = Settings { aggressive_nsec: false, ..plain_settings() };
    let Signed { mut world, .. } = internet(OPT_OUT, NSEC3).with(settings).build();
    let checked_for = |world: &mut crate::world::World, name: &str, rtype: Rtype| {
        let before = world.resolver.signatures_checked();
        world.resolve(name, rtype);
        world.resolver.signatures_checked() - before
    };
    checked_for(&mut world, "www.example.org", Rtype::TXT);
    let again = checked_for(&mut world, "example.org", Rtype::MX);
    assert_eq!(again, 1, "the SOA record is known, the proof is not");
    assert_eq!(checked_for(&mut world, "www.example.org", Rtype::MX), 0, "both are");
    // A signature that is good no longer is not good because it was.
    let later = world.now;
    world.resolver.set_time(UNIX_SECONDS + 11 * 86_400, later);
    check_bogus(&world.resolve("www.example.org", Rtype::HINFO), EdeCode::SIGNATURE_EXPIRED);
}

#[test]
fn a_wildcard_comes_with_the_proof_that_it_may_stand_in() {
    for (signing, proof) in [(Signing::Nsec, " RRSIG NSEC "), (NSEC3, " RRSIG NSEC3 ")] {
        let Signed { mut world, .. } = internet(signing, signing).build();
        for _ in 0..2 {
            let seen = world.resolve("x.wild.example.org", Rtype::A);
            check(&seen, Rcode::NOERROR, Security::Secure);
            assert_eq!(seen.answer, ["x.wild.example.org. 300 A 198.51.100.2"]);
            assert!(has(&seen, proof), "{seen:?}");
        }
    }
}

#[test]
fn aliases_are_worth_what_they_lead_to() {
    let Signed { mut world, .. } = internet(Signing::Nsec, Signing::Nsec).build();
    for _ in 0..2 {
        let seen = world.resolve("alias.example.org", Rtype::A);
        check(&seen, Rcode::NOERROR, Security::Secure);
        assert_eq!(seen.answer.len(), 2);
        let seen = world.resolve("out.example.org", Rtype::A);
        check(&seen, Rcode::NOERROR, Security::Insecure);
        assert_eq!(seen.answer.len(), 2);
        let seen = world.resolve("www.tree.example.org", Rtype::A);
        check(&seen, Rcode::NOERROR, Security::Secure);
        assert!(has(&seen, " RRSIG DNAME "), "{seen:?}");
    }
}

#[test]
fn below_a_delegation_without_ds_nothing_is_signed() {
    for org in [Signing::Nsec, NSEC3, OPT_OUT] {
        let Signed { mut world, .. } = internet(org, Signing::Nsec).build();
        let seen = world.resolve("www.unsigned.org", Rtype::A);
        check(&seen, Rcode::NOERROR, Security::Insecure);
        assert_eq!(seen.ede, None);
        check(&world.resolve("none.unsigned.org", Rtype::A), Rcode::NXDOMAIN, Security::Insecure);
        let ds = world.resolve("unsigned.org", Rtype::DS);
        let expected = if matches!(org, Signing::Nsec3 { opts_out: true, .. }) {
            Security::Insecure
        } else {
            Security::Secure
        };
        check(&ds, Rcode::NOERROR, expected);
    }
}

#[test]
fn a_name_that_opt_out_leaves_out_is_insecure() {
    let Signed { mut world, .. } = internet(OPT_OUT, Signing::Nsec).build();
    check(&world.resolve("none.org", Rtype::A), Rcode::NXDOMAIN, Security::Insecure);
    check(&world.resolve("www.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
}

#[test]
fn too_many_iterations_are_not_looked_at() {
    let many = Signing::Nsec3 { iterations: 51, opts_out: false };
    let Signed { mut world, .. } = internet(Signing::Nsec, many).build();
    let seen = world.resolve("none.example.org", Rtype::A);
    check(&seen, Rcode::NXDOMAIN, Security::Insecure);
    assert_eq!(seen.ede, Some(EdeCode::UNSUPPORTED_NSEC3_ITERATIONS));
    check(&world.resolve("www.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
}

#[test]
fn what_is_bogus_is_not_asked_for_again_at_once() {
    let Signed { mut world, .. } = internet(Signing::Nsec, Signing::Expired).build();
    check_bogus(&world.resolve("www.example.org", Rtype::A), EdeCode::SIGNATURE_EXPIRED);
    let checked = world.resolver.signatures_checked();
    let again = world.resolve("www.example.org", Rtype::A);
    check_bogus(&again, EdeCode::SIGNATURE_EXPIRED);
    let other = world.resolve("b.example.org", Rtype::A);
    check_bogus(&other, EdeCode::SIGNATURE_EXPIRED);
    assert_eq!((again.sends, world.resolver.signatures_checked()), (0, checked));
    assert!(other.sends <= 1, "the keys are not asked for again: {other:?}");
    world.pass_ms(5000);
    assert!(world.resolve("www.example.org", Rtype::A).sends > 0);
}

#[test]
fn a_signed_dname_is_believed_over_udp() {
    let Signed { mut world, .. } = internet(Signing::Nsec, Signing::Nsec).build();
    check(&world.resolve("www.tree.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
    assert!(world.sent.iter().all(|sent| !sent.over_tcp));
}

#[test]
fn one_server_may_have_parent_and_child() {
    for child in [Signing::Nsec, NSEC3, Signing::No] {
        let mut signed = Internet::default()
            .zone(".", &["192.0.2.1"], Signing::Nsec, "")
            .zone("org", &["192.0.2.2"], Signing::Nsec, "")
            .zone("example.org", &["192.0.2.2"], child, "www.example.org. A 198.51.100.1")
            .zone("deep.below.org", &["192.0.2.2"], child, "www.deep.below.org. A 198.51.100.1")
            .build();
        let expected = if matches!(child, Signing::No) { Security::Insecure } else { Security::Secure };
        for zone in ["example.org", "deep.below.org"] {
            check(&signed.world.resolve(&format!("www.{zone}"), Rtype::A), Rcode::NOERROR, expected);
            check(&signed.world.resolve(&format!("none.{zone}"), Rtype::A), Rcode::NXDOMAIN, expected);
            check(&signed.world.resolve(zone, Rtype::DNSKEY), Rcode::NOERROR, expected);
        }
    }
}

#[test]
fn a_referral_without_ds_records_has_the_parent_asked_for_them() {
    for (name, security) in [("www.example.org", Security::Secure), ("www.unsigned.org", Security::Insecure)]
    {
        let mut signed = internet(Signing::Nsec, Signing::Nsec).build();
        for address in ["192.0.2.1", "192.0.2.2"] {
            signed.world.server(address).refers_bare = true;
        }
        check(&signed.world.resolve(name, Rtype::A), Rcode::NOERROR, security);
        let asked_for_ds = signed.world.sent.iter().filter(|sent| sent.question.ends_with(" DS")).count();
        assert_eq!(asked_for_ds, 2);
    }
}

#[test]
fn who_takes_the_ds_records_away_makes_no_zone_insecure() {
    let mut signed = internet(Signing::Nsec, Signing::Nsec).build();
    signed.tamper("192.0.2.1", |line| (!line.starts_with("org. 3600 IN DS")).then(|| line.to_string()));
    check_bogus(&signed.world.resolve("www.example.org", Rtype::A), EdeCode::DNSSEC_BOGUS);
}

#[test]
fn another_server_is_asked_before_an_answer_is_bogus() {
    let mut signed = internet(Signing::Nsec, Signing::Nsec).build();
    signed.tamper("192.0.2.3", |line| Some(line.replace("198.51.100.1", "203.0.113.66")));
    for _ in 0..8 {
        let seen = signed.world.resolve("www.example.org", Rtype::A);
        check(&seen, Rcode::NOERROR, Security::Secure);
        assert_eq!(seen.answer, ["www.example.org. 300 A 198.51.100.1"]);
        signed.world.pass_ms(400_000);
    }
    signed.tamper("192.0.2.4", |line| Some(line.replace("198.51.100.1", "203.0.113.66")));
    let seen = signed.world.resolve("www.example.org", Rtype::A);
    check_bogus(&seen, EdeCode::DNSSEC_BOGUS);
    let at_zone =
        signed.world.sent.iter().rev().take(seen.sends).filter(|sent| sent.question.contains("www"));
    assert_eq!(at_zone.count(), 2, "both were asked");
    check(&signed.world.resolve("b.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
}

/// Lets both servers of example.org serve what `change` makes of it, and asks them.
fn tampered(example: Signing, change: impl Fn(&str) -> Option<String> + Copy, ask: (&str, Rtype)) -> Seen {
    let mut signed = internet(Signing::Nsec, example).build();
    signed.tamper("192.0.2.3", change);
    signed.tamper("192.0.2.4", change);
    let seen = signed.world.resolve(ask.0, ask.1);
    assert!(seen.sends <= 12, "{seen:?}");
    seen
}

#[test]
fn a_proof_that_comes_with_an_alias_shows_that_its_target_is_unsigned() {
    let internet = Internet::default()
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone("org", &["192.0.2.2"], Signing::Nsec, "")
        .zone("example.org", &["192.0.2.3"], Signing::Nsec, "alias.example.org. CNAME none.sub.example.org.")
        .zone("sub.example.org", &["192.0.2.3"], Signing::No, "");
    let mut signed = internet.build();
    let lines = |owner: &str, rtype: &str| {
        let of = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            let covers = words[3] == "RRSIG" && words[4] == rtype;
            words[0] == format!("{owner}.") && (words[3] == rtype || covers)
        };
        let lines: Vec<_> = signed.texts["example.org"].lines().filter(of).collect();
        lines.into_iter().map(|line| record(&line.replacen(" IN ", " ", 1))).collect::<Vec<_>>()
    };
    let mut records: Vec<_> =
        lines("alias.example.org", "CNAME").into_iter().map(|record| (Section::Answer, record)).collect();
    records.extend(lines("sub.example.org", "NSEC").into_iter().map(|record| (Section::Authority, record)));
    assert_eq!(records.len(), 4, "each with its signature");
    let soa = record("sub.example.org 60 SOA ns.sub.example.org admin.sub.example.org 1 2 3 4 60");
    // With it the target is denied at once, without it the zone is asked.
    for (soa, rcode) in [(Some(soa), Rcode::NOERROR), (None, Rcode::NXDOMAIN)] {
        let mut records = records.clone();
        records.extend(soa.map(|soa| (Section::Authority, soa)));
        let all = signed.all(|line| Some(line.to_owned()));
        signed.world.server("192.0.2.3").behaviour =
            Behaviour::Crafted(std::sync::Arc::new(move |question| {
                if question.qname == name("alias.example.org").as_name() {
                    return Some(reply_of(question, &records));
                }
                Some(signed_reply(&all, question, true))
            }));
        signed.world.forget();
        check(&signed.world.resolve("alias.example.org", Rtype::A), rcode, Security::Insecure);
        let is_of_ds = |sent: &crate::world::Sent| sent.question.ends_with(" DS");
        assert!(!signed.world.sent.iter().any(is_of_ds), "{:?}", signed.world.sent);
    }
}

#[test]
fn ds_records_that_came_with_a_referral_are_known() {
    for signing in [Signing::Nsec, NSEC3] {
        let Signed { mut world, .. } = internet(signing, signing).build();
        assert_eq!(world.resolve("www.example.org", Rtype::A).security, Security::Secure);
        let seen = world.resolve("example.org", Rtype::DS);
        check(&seen, Rcode::NOERROR, Security::Secure);
        assert_eq!((seen.answer.len(), seen.sends), (1, 0));
        assert!(seen.with_dnssec.iter().any(|line| line.contains(" RRSIG DS ")), "{seen:?}");
    }
}

#[test]
fn each_reason_has_its_code() {
    let www = ("www.example.org", Rtype::A);
    let same = |line: &str| Some(line.to_string());
    check_bogus(&tampered(Signing::Expired, same, www), EdeCode::SIGNATURE_EXPIRED);
    let without = |what: &'static str| move |line: &str| (!line.contains(what)).then(|| line.to_string());
    check_bogus(&tampered(Signing::Nsec, without("RRSIG A "), www), EdeCode::RRSIGS_MISSING);
    check_bogus(&tampered(Signing::Nsec, without(" DNSKEY "), www), EdeCode::DNSKEY_MISSING);
    let none = ("none.example.org", Rtype::A);
    check_bogus(&tampered(Signing::Nsec, without("RRSIG NSEC "), none), EdeCode::NSEC_MISSING);
    // A key without the flag.
    let other_flags = |line: &str| Some(line.replace(" DNSKEY 257 ", " DNSKEY 1 "));
    check_bogus(&tampered(Signing::Nsec, other_flags, www), EdeCode::DNSKEY_MISSING);
    let seen = tampered(Signing::Unknown, same, www);
    check(&seen, Rcode::NOERROR, Security::Insecure);
    assert_eq!(seen.ede, Some(EdeCode::UNSUPPORTED_DNSKEY_ALGORITHM));
}

#[test]
fn signatures_are_not_good_before_their_time() {
    let mut signed = internet(Signing::Nsec, Signing::Nsec).build();
    let now = signed.world.now;
    signed.world.resolver.set_time(UNIX_SECONDS - 30 * 86_400, now);
    check_bogus(&signed.world.resolve("www.example.org", Rtype::A), EdeCode::SIGNATURE_NOT_YET_VALID);
}

#[test]
fn what_a_signature_outlives_is_not_kept_longer() {
    let mut signed = internet(Signing::Nsec, Signing::Nsec).build();
    let now = signed.world.now;
    signed.world.resolver.set_time(UNIX_SECONDS + 10 * 86_400 - 60, now);
    let seen = signed.world.resolve("www.example.org", Rtype::A);
    check(&seen, Rcode::NOERROR, Security::Secure);
    assert_eq!(seen.answer, ["www.example.org. 60 A 198.51.100.1"]);
    signed.world.pass_ms(61_000);
    check_bogus(&signed.world.resolve("www.example.org", Rtype::A), EdeCode::SIGNATURE_EXPIRED);
}

#[test]
fn a_ds_that_no_key_belongs_to_is_bogus() {
    let mut signed = internet(Signing::Nsec, Signing::Nsec).build();
    let other = internet(Signing::Nsec, Signing::Nsec).build();
    signed.texts.insert("example.org".to_string(), other.texts["example.org"].clone());
    for address in ["192.0.2.3", "192.0.2.4"] {
        signed.tamper(address, |line| Some(line.to_string()));
    }
    check_bogus(&signed.world.resolve("www.example.org", Rtype::A), EdeCode::DNSKEY_MISSING);
    check(&signed.world.resolve("www.unsigned.org", Rtype::A), Rcode::NOERROR, Security::Insecure);
}

#[test]
fn what_is_not_trusted_is_indeterminate() {
    let Signed { mut world, .. } = internet(Signing::Nsec, Signing::Nsec).build();
    let settings = Settings { validation: Validation::On, ..plain_settings() };
    let trust = resolver::Trust { anchors: Vec::new(), ..settings.trust.clone() };
    let resolver = crate::world::World::with(Settings { trust, ..settings }).resolver;
    world.resolver = resolver;
    check(&world.resolve("www.example.org", Rtype::A), Rcode::NOERROR, Security::Indeterminate);
    check(&world.resolve("none.example.org", Rtype::A), Rcode::NXDOMAIN, Security::Indeterminate);
}

#[test]
fn a_negative_trust_anchor_counts_until_its_end() {
    let org = HeapName::new(name("example.org").as_name());
    let negative = NegativeAnchor { zone: org, ends_at: Some(UNIX_SECONDS + 1000 + 600) };
    let mut signed =
        internet(Signing::Nsec, Signing::Expired).trusting(|trust| trust.negative.push(negative)).build();
    check(&signed.world.resolve("www.example.org", Rtype::A), Rcode::NOERROR, Security::Insecure);
    check(&signed.world.resolve("www.unsigned.org", Rtype::A), Rcode::NOERROR, Security::Insecure);
    signed.world.pass_ms(2_000_000);
    check_bogus(&signed.world.resolve("www.example.org", Rtype::A), EdeCode::SIGNATURE_EXPIRED);
}

#[test]
fn clients_find_out_which_keys_of_the_root_are_trusted() {
    let with_tag = |tag: u16| {
        let names =
            [format!("root-key-sentinel-is-ta-{tag:05}"), format!("root-key-sentinel-not-ta-{tag:05}")];
        names.map(|label| format!("{label}.example.org"))
    };
    let build = |is_on: bool| {
        // Any name below is there.
        let zone = "*.example.org. 300 A 198.51.100.1\nalias.example.org. CNAME root-key-sentinel-is-ta-00001.example.org.";
        Internet::default()
            .zone(".", &["192.0.2.1"], Signing::Nsec, "")
            .zone("example.org", &["192.0.2.3"], Signing::Nsec, zone)
            .zone("unsigned.org", &["192.0.2.5"], Signing::No, "*.unsigned.org. A 198.51.100.5")
            .trusting(|trust| trust.root_key_sentinel = is_on)
            .build()
    };
    let mut signed = build(true);
    let tag = u16::from_be_bytes([signed.anchors[0].ds[0][0], signed.anchors[0].ds[0][1]]);
    let refused = (Rcode::SERVFAIL, Some("sentinel".to_owned()));
    let told = |signed: &mut Signed, text: &str, rtype| {
        let seen = signed.world.resolve(text, rtype);
        (seen.rcode, seen.failure)
    };
    let ([is, not], [is_other, not_other]) = (with_tag(tag), with_tag(tag ^ 1));
    for rtype in [Rtype::A, Rtype::AAAA] {
        assert_eq!(told(&mut signed, &is, rtype), (Rcode::NOERROR, None));
        assert_eq!(told(&mut signed, &not, rtype), refused);
        assert_eq!(told(&mut signed, &is_other, rtype), refused);
        assert_eq!(told(&mut signed, &not_other, rtype), (Rcode::NOERROR, None));
    }
    // Neither other types, nor targets of aliases, nor zones without signatures, nor who sets CD.
    assert_eq!(told(&mut signed, &not, Rtype::TXT), (Rcode::NOERROR, None));
    assert_eq!(told(&mut signed, "alias.example.org", Rtype::A).0, Rcode::NOERROR);
    let unsigned = not.replace("example.org", "unsigned.org");
    assert_eq!(told(&mut signed, &unsigned, Rtype::A), (Rcode::NOERROR, None));
    assert_eq!(resolve_unchecked(&mut signed, &not).rcode, Rcode::NOERROR);
    assert_eq!(told(&mut build(false), &not, Rtype::A), (Rcode::NOERROR, None));
}

#[test]
fn what_is_trusted_changes_at_run_time_and_what_was_learned_stays() {
    let mut signed = internet(Signing::Nsec, Signing::Expired).build();
    let anchors = signed.anchors.clone();
    check(&signed.world.resolve("www.unsigned.org", Rtype::A), Rcode::NOERROR, Security::Insecure);
    check_bogus(&signed.world.resolve("www.example.org", Rtype::A), EdeCode::SIGNATURE_EXPIRED);
    let negative = NegativeAnchor { zone: HeapName::new(name("example.org").as_name()), ends_at: None };
    signed.world.resolver.trust(&anchors, &[negative]);
    check(&signed.world.resolve("www.example.org", Rtype::A), Rcode::NOERROR, Security::Insecure);
    assert_eq!(signed.world.resolve("www.unsigned.org", Rtype::A).sends, 0);
    signed.world.resolver.trust(&anchors, &[]);
    check_bogus(&signed.world.resolve("b.example.org", Rtype::A), EdeCode::SIGNATURE_EXPIRED);
    // Whoever trusts nothing says nothing of signatures.
    signed.world.resolver.trust(&[], &[]);
    check(&signed.world.resolve("b.example.org", Rtype::A), Rcode::NOERROR, Security::Indeterminate);
}

pub(crate) fn resolve_unchecked(signed: &mut Signed, text: &str) -> std::sync::Arc<resolver::Resolution> {
    let qname = name(text);
    let question = Question { qname: qname.as_name(), qtype: Rtype::A, qclass: Class::IN };
    let now = signed.world.now;
    signed.world.resolver.want_unchecked(&question, Waiter(7), now);
    signed.world.settle_effects();
    signed.world.done.remove(&Waiter(7)).expect("it is done")
}

#[test]
fn what_is_fetched_with_cd_is_for_who_sets_cd() {
    let mut signed = internet(Signing::Nsec, Signing::Nsec).build();
    let forged = |line: &str| Some(line.replace("198.51.100.1", "203.0.113.66"));
    signed.tamper("192.0.2.3", forged);
    signed.tamper("192.0.2.4", forged);
    let seen = resolve_unchecked(&mut signed, "www.example.org");
    assert_eq!((seen.rcode, seen.security), (Rcode::NOERROR, Security::Unchecked));
    check_bogus(&signed.world.resolve("www.example.org", Rtype::A), EdeCode::DNSSEC_BOGUS);
    // And the other way around: what was validated is for everybody.
    check(&signed.world.resolve("x.wild.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
    check(&signed.world.resolve("b.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
    let sends = signed.world.sent.len();
    let seen = resolve_unchecked(&mut signed, "b.example.org");
    assert_eq!((seen.rcode, seen.security), (Rcode::NOERROR, Security::Secure));
    assert_eq!(signed.world.sent.len(), sends);
}

#[test]
fn who_validates_by_itself_gets_the_proof_of_an_expansion_each_time() {
    for signing in [Signing::Nsec, NSEC3] {
        let mut signed = internet(signing, signing).build();
        for _ in 0..2 {
            let resolution = resolve_unchecked(&mut signed, "x.wild.example.org");
            let proofs = resolution.records().filter(|it| matches!(it.rtype, Rtype::NSEC | Rtype::NSEC3));
            assert!(proofs.count() > 0, "{signing:?}");
        }
    }
}

#[test]
fn who_validates_by_itself_gets_the_dname_that_an_alias_was_made_from_each_time() {
    let mut signed = internet(Signing::Nsec, Signing::Nsec).build();
    for _ in 0..2 {
        let resolution = resolve_unchecked(&mut signed, "www.tree.example.org");
        let dname = resolution.records().filter(|it| it.rtype == Rtype::DNAME).count();
        let signatures = resolution.records().filter(|it| it.rtype == Rtype::RRSIG).count();
        assert_eq!((dname, signatures), (1, 2), "the DNAME is signed, and the address");
    }
}

#[test]
fn who_is_permissive_gives_what_is_bogus_as_such() {
    let settings = Settings { validation: Validation::Permissive, ..plain_settings() };
    let mut signed = internet(Signing::Nsec, Signing::Expired).with(settings).build();
    let seen = signed.world.resolve("www.example.org", Rtype::A);
    check(&seen, Rcode::NOERROR, Security::Bogus);
    assert_eq!(seen.answer, ["www.example.org. 60 A 198.51.100.1"], "for as long as it is bogus");
    check(&signed.world.resolve("www.unsigned.org", Rtype::A), Rcode::NOERROR, Security::Insecure);
    // After that servers are asked again.
    signed.world.pass_ms(61_000);
    assert!(signed.world.resolve("www.example.org", Rtype::A).sends > 0);
}

#[test]
fn who_sets_cd_gets_what_is_known_to_be_bogus_for_as_long_as_that_is_remembered() {
    let mut signed = internet(Signing::Nsec, Signing::Expired).build();
    let ttls = |resolution: &resolver::Resolution| -> Vec<u32> {
        resolution.records().map(|record| record.ttl().seconds()).collect()
    };
    // Nobody has looked yet, and nobody does because of CD.
    let found = resolve_unchecked(&mut signed, "www.example.org");
    assert_eq!((found.security, ttls(&found)), (Security::Unchecked, vec![300, 300]));
    check_bogus(&signed.world.resolve("www.example.org", Rtype::A), EdeCode::SIGNATURE_EXPIRED);
    let found = resolve_unchecked(&mut signed, "www.example.org");
    assert_eq!((found.security, ttls(&found)), (Security::Bogus, vec![60, 60]));
    // Other names are not.
    let found = resolve_unchecked(&mut signed, "www.unsigned.org");
    assert_ne!(found.security, Security::Bogus);
}

#[test]
fn who_relays_judges_nothing_and_passes_signatures_on() {
    let settings = Settings { validation: Validation::Relay, ..plain_settings() };
    let mut signed = internet(Signing::Nsec, Signing::Expired).with(settings).build();
    let has = |seen: &Seen, rtype: &str| seen.with_dnssec.iter().any(|line| line.contains(rtype));
    // Once from the servers, once from the tables.
    for _ in 0..2 {
        let seen = signed.world.resolve("www.example.org", Rtype::A);
        check(&seen, Rcode::NOERROR, Security::Unchecked);
        assert!(seen.answer.len() == 1 && has(&seen, " RRSIG "), "{seen:?}");
        let seen = signed.world.resolve("no.example.org", Rtype::A);
        check(&seen, Rcode::NXDOMAIN, Security::Unchecked);
        assert!(has(&seen, " NSEC ") && has(&seen, " RRSIG "), "{seen:?}");
    }
    assert_eq!(signed.world.resolver.signatures_checked(), 0);
}

#[test]
fn a_zone_whose_keys_nobody_has_fails_alone() {
    let mut signed = internet(Signing::Nsec, Signing::Nsec).build();
    for address in ["192.0.2.3", "192.0.2.4"] {
        signed.world.server(address).behaviour = Behaviour::Dead;
    }
    let seen = signed.world.resolve("www.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some("silent")));
    check(&signed.world.resolve("www.unsigned.org", Rtype::A), Rcode::NOERROR, Security::Insecure);
}

/// KeyTrap (CVE-2023-50387): many signatures that are wrong, each by the key of the zone.
#[test]
fn many_wrong_signatures_are_not_all_checked() {
    let mut signed = internet(Signing::Nsec, Signing::Nsec).build();
    let many = |line: &str| {
        if !line.contains("RRSIG A ") {
            return Some(line.to_string());
        }
        let (head, signature) = line.rsplit_once(' ').expect("a signature");
        let others =
            (b'A'..=b'Z').map(|letter| format!("{head} {0}{0}{1}", char::from(letter), &signature[2..]));
        Some(others.collect::<Vec<_>>().join("\n"))
    };
    signed.tamper("192.0.2.3", many);
    signed.tamper("192.0.2.4", many);
    let seen = signed.world.resolve("www.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some("limit")), "{seen:?}");
    assert_eq!(seen.ede, Some(EdeCode::OTHER));
    // Sixteen that are wrong, and those that lead to the zone's keys.
    assert_eq!(signed.world.resolver.signatures_checked(), 16 + 5);
    check(&signed.world.resolve("b.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
}

#[test]
fn each_limit_of_the_work_says_that_it_struck() {
    let limited = |change: fn(&mut Limits), ask: &str| {
        let mut settings = plain_settings();
        change(&mut settings.limits);
        let mut signed = internet(NSEC3, NSEC3).with(settings).build();
        let seen = signed.world.resolve(ask, Rtype::A);
        assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some("limit")), "{seen:?}");
        // What others ask is paid for by them.
        check(&signed.world.resolve("www.unsigned.org", Rtype::A), Rcode::NOERROR, Security::Insecure);
    };
    limited(|limits| limits.checks = 5, "www.example.org");
    limited(|limits| limits.hashes = 4, "a.b.c.d.e.f.none.example.org");
}

#[test]
fn signatures_are_checked_some_at_a_time() {
    let mut signed = internet(NSEC3, NSEC3).trusting(|trust| trust.checks_per_run = 1).build();
    let world = &mut signed.world;
    world.want("none.example.org", Rtype::A, 1);
    world.want("www.example.org", Rtype::A, 2);
    let (mut checked, mut waited) = (0, 0);
    while world.step() {
        let now = world.resolver.signatures_checked();
        assert!(now - checked <= 1, "{checked} {now}");
        waited += usize::from(world.resolver.next_due().is_some_and(|due| due <= world.now));
        checked = now;
    }
    assert!(waited > 3, "{waited}");
    for waiter in [1, 2] {
        assert_eq!(world.done[&Waiter(waiter)].security, Security::Secure);
    }
}

/// Leaves out what replies may say as they like: the TTL, as long as it is no longer, and letter
/// case.
pub(crate) fn without_ttl(lines: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = lines
        .iter()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            assert!(words[1].parse::<u32>().is_ok_and(|ttl| ttl <= 3600), "{line}");
            [&words[..1], &words[2..]].concat().join(" ").to_lowercase()
        })
        .collect();
    lines.sort_unstable();
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_octets_are_changed_what_is_secure_is_true(seed: u64) {
        let signing = if seed.is_multiple_of(2) { Signing::Nsec } else { NSEC3 };
        let mut honest = internet(signing, signing).build();
        let texts = honest.texts.clone();
        let Signed { world, .. } = &mut honest;
        let questions = [
            ("www.example.org", Rtype::A),
            ("none.example.org", Rtype::A),
            ("x.wild.example.org", Rtype::A),
            ("alias.example.org", Rtype::A),
            ("b.example.org", Rtype::TXT),
            ("www.tree.example.org", Rtype::A),
            ("example.org", Rtype::DNSKEY),
            ("unsigned.org", Rtype::DS),
        ];
        let truth: Vec<Seen> = questions.iter().map(|&(name, rtype)| world.resolve(name, rtype)).collect();
        prop_assert!(truth.iter().all(|seen| seen.security == Security::Secure), "{:?}", texts.keys());
        world.reseed(seed);
        let addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
        let mut secure = 0;
        for liar in addresses {
            for address in addresses {
                let is_liar = address == liar;
                world.server(address).behaviour = if is_liar { Behaviour::Garbled } else { Behaviour::Honest };
            }
            // Nothing is known any more, whatever TTLs the last liar gave.
            world.pass_ms(90_000_000);
            for (&(name, rtype), truth) in questions.iter().zip(&truth) {
                let seen = world.resolve(name, rtype);
                prop_assert!(seen.sends <= 64);
                secure += usize::from(seen.security == Security::Secure);
                if seen.security == Security::Secure {
                    prop_assert_eq!(seen.rcode, truth.rcode);
                    prop_assert_eq!(without_ttl(&seen.answer), without_ttl(&truth.answer));
                } else {
                    prop_assert!(seen.rcode == Rcode::SERVFAIL || seen.security == Security::Insecure, "{:?}", seen);
                    prop_assert_ne!(seen.security, Security::Insecure, "{} {:?}", name, seen);
                }
            }
        }
        prop_assert!(secure >= 8, "honest servers are believed: {}", secure);
    }
}
