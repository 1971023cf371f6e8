//! What hostile zones have validators compute, and what they have them believe.

use std::sync::Arc;

use cache::Security;
use dnssec::Dnskey;
use resolver::Waiter;
use wire::{Class, EdeCode, Message, Question, Rcode, Rtype, rdata};

use crate::signed::{Internet, Signed, Signing};
use crate::validation::{NSEC3, check, check_bogus, internet};
use crate::world::{Behaviour, name, plain_settings, signed_reply};

/// Checks that lead to the keys of example.org: a DNSKEY and a DS set of the root's and of org's,
/// and its own DNSKEY set.
const CHAIN: u64 = 5;
/// The tag of all keys of [`colliding_keys`].
const TAG: u16 = 4242;

/// Returns DNSKEY data as text: so many keys of one algorithm and tag.
fn colliding_keys(count: u8) -> Vec<String> {
    let key = |number: u8| {
        let mut data = vec![1, 0, 3, 13];
        data.extend([number; 64]);
        let last = data.len() - 2;
        // The tag is a sum of words (RFC 4034, appendix B).
        for more in 0..=u16::MAX {
            data[last..].copy_from_slice(&more.to_be_bytes());
            if Dnskey::parse(&data).expect("a key").tag() == TAG {
                break;
            }
        }
        rdata::display(Rtype::DNSKEY, &data, 0..data.len()).to_string()
    };
    (1..=count).map(key).collect()
}

/// Makes so many signatures of one of a set, all wrong and by a key with this tag; the line stays
/// if `is_kept`.
fn many_signatures(line: &str, covered: &str, tag: Option<u16>, count: u8) -> String {
    let mut words: Vec<String> = line.split(' ').map(ToString::to_string).collect();
    if words[3] != "RRSIG" || words[4] != covered {
        return line.to_string();
    }
    if let Some(tag) = tag {
        words[10] = tag.to_string();
    }
    let signature = words.pop().expect("a signature");
    let head = words.join(" ");
    let wrong = (0..count).map(|number| {
        let letters = [b'A' + number % 26, b'A' + number / 26].map(char::from);
        format!("{head} {}{}{}", letters[0], letters[1], &signature[2..])
    });
    wrong.collect::<Vec<_>>().join("\n")
}

/// An internet in which example.org has more keys, six with one tag, and its servers change what
/// they serve.
fn trapped(example: Signing, change: impl Fn(&str) -> String + Copy) -> Signed {
    let mut text = String::from("www.example.org. 300 A 198.51.100.1\n");
    for number in 0..12 {
        text += &format!("a{number}.example.org. CNAME a{}.example.org.\n", number + 1);
    }
    for key in colliding_keys(6) {
        text += &format!("example.org. DNSKEY {key}\n");
    }
    let mut signed = Internet::default()
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone("org", &["192.0.2.2"], Signing::Nsec, "")
        .zone("example.org", &["192.0.2.3", "192.0.2.4", "192.0.2.6"], example, &text)
        .zone("honest.org", &["192.0.2.5"], Signing::Nsec, "www.honest.org. A 198.51.100.5")
        .build();
    let keys = signed.texts["example.org"].lines().filter(|line| line.contains(" IN DNSKEY ")).count();
    assert_eq!(keys, 7);
    for address in ["192.0.2.3", "192.0.2.4", "192.0.2.6"] {
        signed.tamper(address, |line| Some(change(line)));
    }
    signed
}

pub(crate) fn keytrap() -> Signed {
    trapped(Signing::Nsec, |line| many_signatures(line, "A", Some(TAG), 14))
}

/// A zone whose names are hashed fifty times, and one of its names.
pub(crate) fn deep_hashes() -> (Signed, String) {
    let many = Signing::Nsec3 { iterations: 50, opts_out: false };
    (internet(Signing::Nsec, many).build(), "a.".repeat(110))
}

/// Asks for a name while another client asks for an honest one, and returns what was checked for
/// both.
#[track_caller]
fn attack(signed: &mut Signed, text: &str) -> u64 {
    let world = &mut signed.world;
    world.want("www.honest.org", Rtype::A, 1);
    let before = world.sent.len();
    let seen = world.resolve(text, Rtype::A);
    assert_eq!(seen.rcode, Rcode::SERVFAIL, "{seen:?}");
    assert!(world.sent.len() - before <= 64);
    assert_eq!(world.done[&Waiter(1)].security, Security::Secure);
    world.resolver.signatures_checked()
}

/// For the other client: the three sets of honest.org, and the DS set of org, which comes to both.
const HONEST: u64 = 4;

/// KeyTrap (CVE-2023-50387): keys with one tag times signatures with that tag.
#[test]
fn keys_with_one_tag_times_signatures_are_not_all_checked() {
    let checked = attack(&mut keytrap(), "www.example.org");
    assert!((CHAIN + HONEST + 8..=CHAIN + HONEST + 16).contains(&checked), "{checked}");
    // The DNSKEY set itself.
    let change = |line: &str| many_signatures(line, "DNSKEY", Some(TAG), 14);
    let checked = attack(&mut trapped(Signing::Nsec, change), "www.example.org");
    assert!(checked <= CHAIN - 1 + HONEST + 16, "{checked}");
}

/// "SigJam": signatures by the one good key, over many sets of one reply.
#[test]
fn many_sets_of_one_reply_share_what_may_be_wrong() {
    for covered in ["CNAME", "NSEC", "SOA"] {
        let change = move |line: &str| many_signatures(line, covered, None, 14);
        let name = if covered == "CNAME" { "a0.example.org" } else { "none.example.org" };
        let checked = attack(&mut trapped(Signing::Nsec, change), name);
        assert!(checked <= CHAIN + HONEST + 16 + 2, "{covered}: {checked}");
    }
    let change = |line: &str| many_signatures(line, "NSEC3", Some(TAG), 14);
    let checked = attack(&mut trapped(NSEC3, change), "x.none.example.org");
    assert!(checked <= CHAIN + HONEST + 16 + 2, "{checked}");
}

/// Limits that a restart of the work resets (CVE-2026-50045): a judgement that pauses after each
/// signature begins anew.
#[test]
fn a_judgement_that_pauses_costs_no_more() {
    for checks_per_run in [1, 3] {
        let mut signed = internet(Signing::Nsec, Signing::Nsec)
            .trusting(|trust| trust.checks_per_run = checks_per_run)
            .build();
        for address in ["192.0.2.3", "192.0.2.4"] {
            signed.tamper(address, |line| Some(many_signatures(line, "A", None, 14)));
        }
        let seen = signed.world.resolve("www.example.org", Rtype::A);
        assert_eq!(seen.failure.as_deref(), Some("limit"), "{seen:?}");
        assert_eq!(signed.world.resolver.signatures_checked(), CHAIN + 16);
    }
}

/// Many DS records with the tag of many keys: each pair would be a digest.
#[test]
fn many_ds_records_times_keys_are_not_all_hashed() {
    let mut text = String::new();
    for number in 0..90 {
        text += &format!("example.org. DS {TAG} 13 2 {}\n", format!("{number:02x}").repeat(32));
    }
    let keys: String = colliding_keys(60).iter().map(|key| format!("example.org. DNSKEY {key}\n")).collect();
    let mut signed = Internet::default()
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone("org", &["192.0.2.2"], Signing::Nsec, &text)
        .zone("example.org", &["192.0.2.3"], Signing::Nsec, &keys)
        .zone("honest.org", &["192.0.2.5"], Signing::Nsec, "www.honest.org. A 198.51.100.5")
        .build();
    let seen = signed.world.resolve("www.example.org", Rtype::A);
    check_bogus(&seen, EdeCode::DNSSEC_BOGUS);
    assert!(signed.world.resolver.signatures_checked() <= CHAIN);
    check(&signed.world.resolve("www.honest.org", Rtype::A), Rcode::NOERROR, Security::Secure);
}

/// CVE-2023-50868: names of as many labels as there can be, hashed fifty times each.
#[test]
fn deep_names_in_hashed_zones_are_hashed_to_a_limit() {
    let (mut signed, deep) = deep_hashes();
    for number in 0..20 {
        let seen = signed.world.resolve(&format!("{deep}n{number}.example.org"), Rtype::A);
        let is_limited = seen.failure.as_deref() == Some("limit");
        assert!(is_limited || seen.security == Security::Secure, "{seen:?}");
    }
    let seen = signed.world.resolve("www.example.org", Rtype::A);
    check(&seen, Rcode::NOERROR, Security::Secure);
    // More iterations are not computed at all.
    let more = Signing::Nsec3 { iterations: 2500, opts_out: false };
    let mut settings = plain_settings();
    settings.limits.hashes = 0;
    let mut signed = internet(Signing::Nsec, more).with(settings).build();
    let seen = signed.world.resolve(&format!("{deep}example.org"), Rtype::A);
    check(&seen, Rcode::NXDOMAIN, Security::Insecure);
}

/// Has the servers of example.org answer one question with their reply to another one, its name
/// in place of the other.
fn replay(signed: &mut Signed, asked: &'static str, instead: &'static str) {
    for address in ["192.0.2.3", "192.0.2.4"] {
        let server = signed.world.server(address);
        let zones = server.signed.take().expect("signed zones");
        server.behaviour = Behaviour::Crafted(Arc::new(move |question: &Question<'_>| {
            if question.qname != name(asked).as_name() {
                return Some(signed_reply(&zones, question, true));
            }
            let other = name(instead);
            assert_eq!(other.as_name().len(), question.qname.len(), "one takes the place of the other");
            let mut reply = signed_reply(&zones, &Question { qname: other.as_name(), ..*question }, true);
            let wanted = question.qname.as_bytes().to_vec();
            let places: Vec<usize> = (0..reply.len().saturating_sub(wanted.len()))
                .filter(|&at| reply[at..].starts_with(other.as_name().as_bytes()))
                .collect();
            for at in places {
                reply[at..at + wanted.len()].copy_from_slice(&wanted);
            }
            Message::parse(&reply).ok().map(|_| reply.clone())
        }));
    }
}

/// Wildcard replay (CVE-2026-44690): the signature of a wildcard is good for each name below it,
/// also for those that are there, or have a closer wildcard.
#[test]
fn a_wildcard_does_not_stand_in_for_a_name_that_is_there() {
    for signing in [Signing::Nsec, NSEC3] {
        let zone = |signing| {
            Internet::default()
                .zone(".", &["192.0.2.1"], Signing::Nsec, "")
                .zone("org", &["192.0.2.2"], Signing::Nsec, "")
                .zone(
                    "example.org",
                    &["192.0.2.3", "192.0.2.4"],
                    signing,
                    "*.example.org. 300 A 203.0.113.66
                     www.example.org. 300 A 198.51.100.1
                     x.sub.example.org. TXT \"here\"",
                )
                .build()
        };
        let mut honest = zone(signing);
        check(&honest.world.resolve("zzz.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
        for (asked, instead) in
            [("www.example.org", "wwx.example.org"), ("y.sub.example.org", "y.tub.example.org")]
        {
            let mut signed = zone(signing);
            replay(&mut signed, asked, instead);
            let seen = signed.world.resolve(asked, Rtype::A);
            assert_eq!(seen.failure.as_deref(), Some("bogus"), "{asked}: {seen:?}");
            // What was not replayed is as it was.
            let other = signed.world.resolve("zzz.example.org", Rtype::A);
            check(&other, Rcode::NOERROR, Security::Secure);
        }
    }
}

/// CD poisoning: a client with CD brings nothing into the answers of clients that want validation,
/// neither the data nor the addresses of name servers.
#[test]
fn what_is_brought_without_validation_answers_nobody_who_wants_it() {
    let mut signed = internet(Signing::Nsec, Signing::Nsec).build();
    for address in ["192.0.2.3", "192.0.2.4"] {
        signed.tamper(address, |line| Some(line.replace("198.51.100.1", "203.0.113.66")));
    }
    let world = &mut signed.world;
    let ask_unchecked = |world: &mut crate::world::World, text: &str, waiter: u32| {
        let qname = name(text);
        let question = Question { qname: qname.as_name(), qtype: Rtype::A, qclass: Class::IN };
        world.resolver.want_unchecked(&question, Waiter(waiter), world.now);
        world.settle_effects();
    };
    ask_unchecked(world, "www.example.org", 1);
    assert_eq!(world.done[&Waiter(1)].rcode, Rcode::NOERROR, "who sets CD gets what there is");
    for again in 2..4 {
        check_bogus(&world.resolve("www.example.org", Rtype::A), EdeCode::DNSSEC_BOGUS);
        check_bogus(&world.resolve("alias.example.org", Rtype::A), EdeCode::DNSSEC_BOGUS);
        ask_unchecked(world, "www.example.org", again);
    }
}
