//! Transfers signed with every kind of key, in both directions.

use testkit::{Other, Server, eventually, is_installed};

use super::*;

/// What follows "hmac-" in the names of all algorithms.
const ALGORITHMS: [&str; 6] = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"];

/// The keys of all algorithms, as we are told of them.
fn keys() -> String {
    let each = |word| format!(", {{name: {word}.key, algorithm: hmac-{word}, secret: {SECRET}}}");
    ALGORITHMS.map(each).concat()
}

#[test]
fn every_algorithm_is_understood_by_clients() {
    let server = primary("transfer: [any]", &keys());
    for word in ALGORITHMS {
        let key = format!("hmac-{word}:{word}.key:{SECRET}");
        let dig = server.dig(&["-y", &key, "example.org", "AXFR"]);
        assert!(records(&dig).len() > 250 && !dig.contains("verify"), "{word}: {dig}");
        let kdig = server.kdig(&["-y", &key, "example.org", "SOA"]);
        assert!(kdig.contains("admin.example.org.") && !kdig.contains("WARNING"), "{word}: {kdig}");
    }
}

/// Starts one of ours that gives a zone away for each algorithm, only to who has its key.
fn giving() -> Server {
    let zones = ALGORITHMS
        .map(|word| format!("{{name: {word}.example, file: org, transfer: [\"key {word}.key\"]}}"))
        .join("\n  - ");
    Server::start_in(directory_with_org(), &config(&zones, &keys()))
}

fn check_taken_by(other: &Other) {
    for word in ALGORITHMS {
        eventually(word, || other.dig(&[&format!("mail.{word}.example"), "A"]).contains("192.0.2.2"));
    }
}

/// Takes from `other` a zone for each algorithm.
fn check_taken_from(other: &Other) {
    let address = other.address();
    let zones = ALGORITHMS
        .map(|word| format!("{{name: {word}.example, primaries: [\"{address} key {word}.key\"]}}"))
        .join("\n  - ");
    let server = Server::start(&config(&zones, &keys()));
    for word in ALGORITHMS {
        eventually(word, || server.dig(&[&format!("mail.{word}.example"), "A"]).contains("192.0.2.2"));
    }
    // The key is what counts: with another one there is nothing.
    let zones = format!("{{name: md5.example, primaries: [\"{address} key sha1.key\"]}}");
    let mut server = Server::start(&config(&zones, &keys()));
    server.wait_for_log("no transfer");
    assert!(server.dig(&["mail.md5.example", "A"]).contains("SERVFAIL"));
}

fn bind(each: impl Fn(&str) -> String, files: &[(&str, &str)]) -> Other {
    let zones = ALGORITHMS.map(|word| {
        let zone = each(word);
        format!(
            "key \"{word}.key\" {{ algorithm hmac-{word}; secret \"{SECRET}\"; }};\n\
             zone \"{word}.example\" {{ {zone} }};\n"
        )
    });
    Other::bind("", &zones.concat(), files)
}

fn knot(sections: [&dyn Fn(&str) -> String; 2], kind: &str, files: &[(&str, &str)]) -> Other {
    let [more, zone] = sections;
    let keys = ALGORITHMS
        .map(|word| format!("  - id: {word}.key\n    algorithm: hmac-{word}\n    secret: {SECRET}\n"));
    let more = ALGORITHMS.map(|word| format!("  - id: {word}\n{}", more(word)));
    let zones = ALGORITHMS.map(|word| format!("  - domain: {word}.example\n{}", zone(word)));
    let all = format!(
        "key:\n{}{kind}:\n{}template:\n  - id: default\n    storage: @DIRECTORY@\nzone:\n{}",
        keys.concat(),
        more.concat(),
        zones.concat()
    );
    Other::knot(&all, files)
}

fn nsd(each: impl Fn(&str) -> String, files: &[(&str, &str)]) -> Other {
    let zones = ALGORITHMS.map(|word| {
        let zone = each(word);
        format!(
            "key:\n  name: {word}.key\n  algorithm: hmac-{word}\n  secret: \"{SECRET}\"\n\
             zone:\n  name: {word}.example\n{zone}"
        )
    });
    Other::nsd("", &zones.concat(), files)
}

#[test]
fn bind_takes_zones_signed_with_every_algorithm() {
    if !is_installed("named") {
        return;
    }
    let server = giving();
    let port = server.address().port();
    let zone = |word: &str| {
        format!("type secondary; file \"{word}\"; primaries {{ 127.0.0.1 port {port} key {word}.key; }};")
    };
    check_taken_by(&bind(zone, &[]));
}

#[test]
fn knot_takes_zones_signed_with_every_algorithm() {
    if !is_installed("knotd") {
        return;
    }
    let server = giving();
    let port = server.address().port();
    let remote = |word: &str| format!("    address: 127.0.0.1@{port}\n    key: {word}.key\n");
    let zone = |word: &str| format!("    master: {word}\n");
    check_taken_by(&knot([&remote, &zone], "remote", &[]));
}

#[test]
fn nsd_takes_zones_signed_with_every_algorithm() {
    if !is_installed("nsd") {
        return;
    }
    let server = giving();
    let port = server.address().port();
    let zone = |word: &str| format!("  zonefile: {word}\n  request-xfr: 127.0.0.1@{port} {word}.key\n");
    check_taken_by(&nsd(zone, &[]));
}

#[test]
fn we_take_zones_from_bind_signed_with_every_algorithm() {
    if !is_installed("named") {
        return;
    }
    let zone = |word: &str| format!("type primary; file \"org\"; allow-transfer {{ key {word}.key; }};");
    check_taken_from(&bind(zone, &[("org", ORG)]));
}

#[test]
fn we_take_zones_from_knot_signed_with_every_algorithm() {
    if !is_installed("knotd") {
        return;
    }
    let acl = |word: &str| format!("    key: {word}.key\n    action: transfer\n");
    let zone = |word: &str| format!("    file: org\n    acl: {word}\n");
    let text = without_generate();
    check_taken_from(&knot([&acl, &zone], "acl", &[("org", &text)]));
}

#[test]
fn we_take_zones_from_nsd_signed_with_every_algorithm() {
    if !is_installed("nsd") {
        return;
    }
    let zone = |word: &str| format!("  zonefile: org\n  provide-xfr: 127.0.0.1 {word}.key\n");
    let text = without_generate();
    check_taken_from(&nsd(zone, &[("org", &text)]));
}
