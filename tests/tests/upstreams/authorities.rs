//! The built program resolves what other programs sign and serve, and other validators agree with
//! it.

mod internet;

use std::process::Command;
use std::time::SystemTime;

use testkit::{Ask, contains, eventually, said};
use wire::{Flags, Rcode, Rtype};

use internet::{BOGUS, INSECURE, Internet, SECURE, signed_by_ldns};

/// What is asked of each zone: the name below it (or its own), the type, the rcode, and the data of
/// the answer's last record, as far as tests print it.
const QUESTIONS: [(&str, Rtype, Rcode, &str); 17] = [
    ("www", Rtype::A, Rcode::NOERROR, "A 192.0.2.1"),
    ("www", Rtype::AAAA, Rcode::NOERROR, "AAAA 2001:db8::1"),
    ("www", Rtype::MX, Rcode::NOERROR, ""),
    ("", Rtype::MX, Rcode::NOERROR, "TYPE15"),
    ("", Rtype::SOA, Rcode::NOERROR, "SOA"),
    ("", Rtype::TXT, Rcode::NOERROR, ""),
    ("alias", Rtype::A, Rcode::NOERROR, "A 192.0.2.1"),
    ("far", Rtype::A, Rcode::NOERROR, "A 192.0.2.1"),
    ("lost", Rtype::A, Rcode::NXDOMAIN, "CNAME"),
    ("a.wild", Rtype::TXT, Rcode::NOERROR, "TXT \"any\""),
    ("a.b.wild", Rtype::A, Rcode::NOERROR, ""),
    ("empty", Rtype::A, Rcode::NOERROR, ""),
    ("nothing", Rtype::A, Rcode::NXDOMAIN, ""),
    ("a.www", Rtype::A, Rcode::NXDOMAIN, ""),
    ("x.tree", Rtype::A, Rcode::NOERROR, "A 192.0.2.3"),
    ("y.tree", Rtype::A, Rcode::NXDOMAIN, "CNAME"),
    ("sub", Rtype::DS, Rcode::NOERROR, ""),
];

fn full_name(name: &str, zone: &str) -> String {
    if name.is_empty() { zone.to_owned() } else { format!("{name}.{zone}") }
}

/// What a validator makes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Secure,
    Insecure,
    Bogus,
}

/// Has BIND's validator look at what the server passes on with CD.
fn delv(internet: &Internet, name: &str, rtype: &str) -> Verdict {
    let text = internet.resolver.delv(".", name, rtype);
    // It says so of each part of an answer.
    if text.contains("unsigned answer") || text.contains("answer not validated") {
        Verdict::Insecure
    } else if text.contains("fully validated") {
        Verdict::Secure
    } else {
        assert!(text.contains("resolution failed"), "{name} {rtype}: {text}");
        Verdict::Bogus
    }
}

/// Has Unbound's validator look at it.
fn unbound_host(internet: &Internet, name: &str, rtype: &str) -> Verdict {
    let output = Command::new("unbound-host")
        .args(["-C", "unbound.conf", "-v", "-t", rtype, name])
        .current_dir(internet.resolver.directory())
        .output()
        .expect("unbound-host is installed: `cargo xtask test` does that");
    let text = said(&output);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains('(')).collect();
    assert!(!lines.is_empty(), "{name} {rtype}: {text}");
    if text.contains("(BOGUS") || text.contains("SERVFAIL") {
        Verdict::Bogus
    } else if lines.iter().all(|line| line.contains("(secure)")) {
        Verdict::Secure
    } else {
        Verdict::Insecure
    }
}

/// Writes what `unbound-host` reads: it asks the server under test, and trusts what that one does.
fn configure_unbound_host(internet: &Internet) {
    let address = internet.resolver.address();
    let directory = internet.resolver.directory();
    let text = format!(
        "server:\n  do-not-query-localhost: no\n  trust-anchor-file: \"{}\"\n  ede: no\n\
         forward-zone:\n  name: \".\"\n  forward-addr: {}@{}\n",
        directory.join("root.ds").display(),
        address.ip(),
        address.port()
    );
    std::fs::write(directory.join("unbound.conf"), text).expect("writable");
}

/// Returns zones that ldns signs: one that is right, one that was until a date, and one whose DS is
/// wrong.
fn zones_of_ldns(expiry: &str) -> [(&'static str, String); 3] {
    [
        ("nsd", signed_by_ldns("nsd", "RSASHA256", &["-n", "-t", "3", "-s", "beef"])),
        ("expired", signed_by_ldns("expired", "ECDSAP256SHA256", &["-i", "20200101", "-e", expiry])),
        ("swapped", signed_by_ldns("swapped", "RSASHA512", &[])),
    ]
}

/// Returns what is right for a name of a zone: an alias that leads to an unsigned zone is insecure.
fn expected(zone: &str, name: &str) -> Verdict {
    if BOGUS.contains(&zone) {
        Verdict::Bogus
    } else if INSECURE.contains(&zone) || name == "far" {
        Verdict::Insecure
    } else {
        Verdict::Secure
    }
}

#[test]
fn what_others_sign_and_serve_is_resolved_and_other_validators_agree() {
    let internet = Internet::start(&zones_of_ldns("20200201"));
    configure_unbound_host(&internet);
    for zone in SECURE.into_iter().chain(INSECURE).chain(BOGUS) {
        for (name, rtype, rcode, data) in QUESTIONS {
            let qname = full_name(name, zone);
            let right = expected(zone, name);
            let heard = internet.ask(&qname, rtype);
            let found = match (heard.rcode(), heard.has(Flags::AD)) {
                (Rcode::SERVFAIL, _) => Verdict::Bogus,
                (_, true) => Verdict::Secure,
                (_, false) => Verdict::Insecure,
            };
            assert_eq!(found, right, "{qname} {rtype}: {heard:?}");
            if right == Verdict::Bogus {
                let codes: Vec<u16> = heard.errors().iter().map(|(code, _)| *code).collect();
                // Signature Expired; DNSSEC Bogus or DNSKEY Missing.
                let is_said = if zone == "expired" {
                    codes.contains(&7)
                } else {
                    codes.contains(&6) || codes.contains(&9)
                };
                assert!(is_said, "{qname} {rtype}: {heard:?}");
            } else {
                assert_answer(&heard, &qname, (rtype, rcode, data));
            }
            let text = rtype.to_string();
            assert_eq!(delv(&internet, &qname, &text), right, "delv: {qname} {text}");
            assert_eq!(unbound_host(&internet, &qname, &text), right, "unbound-host: {qname} {text}");
        }
    }
}

/// Compares rcode and data of an answer. Compact denial (RFC 9824) says NODATA of names that are
/// not there.
fn assert_answer(heard: &testkit::Heard, qname: &str, (rtype, rcode, data): (Rtype, Rcode, &str)) {
    let is_compact = qname.ends_with("gannet") && rcode == Rcode::NXDOMAIN && heard.rcode() == Rcode::NOERROR;
    assert!(heard.rcode() == rcode || is_compact, "{qname} {rtype}: {heard:?}");
    let is_signature = |line: &&String| line.contains(" TYPE46 ");
    let answers = heard.answers();
    let last = answers.iter().rfind(|line| !is_signature(line));
    match last {
        Some(line) => assert!(!data.is_empty() && line.contains(data), "{qname} {rtype}: {heard:?}"),
        None => assert!(data.is_empty(), "{qname} {rtype}: {heard:?}"),
    }
}

#[test]
fn keys_of_a_zone_roll_while_its_names_are_asked_for() {
    let internet = Internet::start(&zones_of_ldns("20200201"));
    let knot = |command: &[&str]| {
        let socket = internet.knot.directory().join("knot.sock");
        let output = Command::new("knotc").arg("-s").arg(socket).args(command).output().expect("knotc runs");
        assert!(output.status.success(), "{command:?}: {}", said(&output));
        said(&output)
    };
    let mut asked = 0;
    // Each time another name, so that nothing of the answer is known; and it has to be secure.
    let mut ask = || {
        asked += 1;
        let heard = internet.ask(&format!("n{asked}.wild.knot"), Rtype::TXT);
        assert!(heard.rcode() == Rcode::NOERROR && heard.has(Flags::AD), "query {asked}: {heard:?}");
    };
    let tags = |internet: &Internet| {
        let keys = internet
            .dig(std::net::Ipv4Addr::new(127, 83, 0, 2), &["+short", "+rrcomments", "knot", "DNSKEY"]);
        let mut tags: Vec<String> = keys
            .lines()
            .filter_map(|line| line.rsplit_once("key id = ").map(|(_, tag)| tag.to_owned()))
            .collect();
        tags.sort();
        tags
    };
    ask();
    let before = tags(&internet);
    assert_eq!(before.len(), 2, "a KSK and a ZSK: {before:?}");
    knot(&["-b", "zone-key-rollover", "knot", "zsk"]);
    eventually("another ZSK alone", || {
        ask();
        let now = tags(&internet);
        now.len() == 2 && now != before
    });
    let before = internet.ds("knot");
    knot(&["-b", "zone-key-rollover", "knot", "ksk"]);
    eventually("a second KSK", || {
        ask();
        internet.ds("knot").lines().count() > before.lines().count()
    });
    // The parent has both, until Knot has seen it and gives up the old one.
    let mut both: Vec<_> = SECURE.iter().chain(&BOGUS).map(|zone| (*zone, internet.ds(zone))).collect();
    internet.delegate(&both);
    eventually("the new KSK alone", || {
        ask();
        internet.ds("knot").lines().count() == before.lines().count()
    });
    let after = internet.ds("knot");
    assert_ne!(after, before);
    both[0].1 = after;
    internet.delegate(&both);
    // Until DS and keys are asked for again: a name is one query, or none if a proof that is known
    // denies it, and what is asked for again is one more.
    let sent =
        || internet.resolver.stat("resolver", "sent-udp") + internet.resolver.stat("resolver", "sent-tcp");
    eventually("the keys are asked for again", || {
        let before = sent();
        ask();
        sent() > before + 1
    });
    ask();
}

#[test]
fn a_zone_that_loses_its_ds_is_insecure_and_one_that_gets_a_wrong_one_is_bogus() {
    let internet = Internet::start(&zones_of_ldns("20200201"));
    let right: Vec<_> = SECURE.iter().chain(&BOGUS).map(|zone| (*zone, internet.ds(zone))).collect();
    let mut asked = 0;
    let mut ask = |zone: &str| {
        asked += 1;
        internet.ask(&format!("n{asked}.wild.{zone}"), Rtype::TXT)
    };
    assert!(ask("bind").has(Flags::AD));
    let without: Vec<_> = right.iter().filter(|(zone, _)| *zone != "bind").cloned().collect();
    internet.delegate(&without);
    eventually("answers are insecure", || {
        let heard = ask("bind");
        assert_eq!(heard.rcode(), Rcode::NOERROR, "never a failure on the way: {heard:?}");
        !heard.has(Flags::AD)
    });
    assert!(ask("pdns").has(Flags::AD), "others are as they were");
    let mut wrong = right;
    let other = wrong[2].1.replace("nsd.", "bind.");
    wrong[1].1 = other;
    internet.delegate(&wrong);
    eventually("answers are bogus", || ask("bind").rcode() == Rcode::SERVFAIL);
    let output = internet.resolver.command(&["explain", "www.bind"]);
    contains(&said(&output), "bind");
    assert!(ask("pdns").has(Flags::AD), "others are as they were");
}

#[test]
fn an_answer_is_known_no_longer_than_its_signature_is_valid() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    // Time for the servers to start. TTLs are 300 s.
    let internet = Internet::start(&zones_of_ldns(&(now + 15).to_string()));
    let heard = internet.ask("www.expired", Rtype::A);
    assert!(heard.rcode() == Rcode::NOERROR && heard.has(Flags::AD), "{heard:?}");
    eventually("the signature has expired", || {
        let heard = internet.ask("www.expired", Rtype::A);
        assert!(heard.has(Flags::AD) || heard.rcode() == Rcode::SERVFAIL, "{heard:?}");
        heard.rcode() == Rcode::SERVFAIL && heard.errors().iter().any(|(code, _)| *code == 7)
    });
    let cd = Ask::new("www.expired", Rtype::A).dnssec().flags(Flags::RD.with(Flags::CD));
    let heard = internet.resolver.ask_tcp(&cd);
    assert!(heard.rcode() == Rcode::NOERROR && !heard.has(Flags::AD), "{heard:?}");
}
