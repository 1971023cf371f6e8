//! Zones that the operator adds and removes while the server runs.

use testkit::{contains, eventually};

use super::*;

/// Settings of a server that has no zone, and what zones may have in common.
const TEMPLATES: &str =
    "zone-templates:\n  customers: {file: \"{name}.zone\", transfer: [\"key xfr.example.org\"]}\n";

fn settings(more: &str) -> String {
    let stub_that_is_not_asked = Stub::start(Script::silent());
    forwarding(
        &[&stub_that_is_not_asked],
        &format!(
            "keys: [{{name: {KEY}, secret: {SECRET}}}]\n{more}policy: {{main: [{{do: reject(refused)}}]}}\n"
        ),
    )
}

fn small(serial: u32) -> String {
    format!(
        "$TTL 60\n@ SOA ns admin {serial} 7200 600 86400 300\n@ NS ns\nns A 192.0.2.7\nv A 192.0.2.{serial}\n"
    )
}

fn serving(more: &str, files: &[(&str, &str)]) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).expect("a writable directory");
    }
    Server::start_in(directory, &settings(more))
}

/// Runs `gannet zone …`.
fn zone(server: &Server, arguments: &[&str]) -> (bool, String) {
    let output = server.command(&[&["zone"], arguments].concat());
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said)
}

#[track_caller]
fn done(server: &Server, arguments: &[&str]) -> String {
    let (is_done, said) = zone(server, arguments);
    assert!(is_done, "{arguments:?}: {said}");
    said
}

#[track_caller]
fn refused(server: &Server, arguments: &[&str], why: &str) {
    let (is_done, said) = zone(server, arguments);
    assert!(!is_done && said.contains(why), "{arguments:?}: {said}");
}

fn restarted(server: Server, more: &str) -> Server {
    let (status, log, directory) = server.stop();
    assert!(status.success(), "{log:?}");
    Server::start_in(directory, &settings(more))
}

fn is_refused(server: &Server, name: &str) -> bool {
    server.dig(&[name, "A"]).contains("status: REFUSED")
}

#[test]
fn a_zone_that_is_added_is_served_until_it_is_removed() {
    let server = serving("", &[("org", ORG)]);
    assert!(is_refused(&server, "mail.example.org"));
    assert_eq!(done(&server, &["add", "example.org", "--with", "file: org"]), "1 zone\n");
    let said = server.dig(&["mail.example.org", "A"]);
    contains(&said, "192.0.2.2");
    contains(&said, "flags: qr aa");
    contains(
        &done(&server, &["status", "example.org"]),
        "example.org.  primary  serial 10  260 records  added\n",
    );
    // Neither a reload nor a restart forgets it.
    assert!(server.command(&["reload"]).status.success());
    contains(&server.dig(&["mail.example.org", "A"]), "192.0.2.2");
    let server = restarted(server, "");
    contains(&server.dig(&["mail.example.org", "A"]), "192.0.2.2");
    // Its file is looked at like that of every zone.
    let changed = ORG.replace("192.0.2.2", "192.0.2.22").replace(" 10 ", " 11 ");
    std::fs::write(server.directory().join("org"), changed).expect("writable");
    done(&server, &["reload", "example.org"]);
    contains(&server.dig(&["mail.example.org", "A"]), "192.0.2.22");
    assert_eq!(done(&server, &["remove", "example.org"]), "1 zone\n");
    assert!(is_refused(&server, "mail.example.org"));
    let server = restarted(server, "");
    assert!(is_refused(&server, "mail.example.org"));
    refused(&server, &["remove", "example.org"], "there is no zone \"example.org.\" that was added");
}

#[test]
fn what_is_wrong_with_a_zone_is_said_and_nothing_is_added() {
    let configured = "zones: [{name: example.org, file: org}]\n";
    let server =
        serving(&format!("{TEMPLATES}{configured}"), &[("org", ORG), ("example.net.zone", &small(1))]);
    refused(
        &server,
        &["add", "EXAMPLE.org", "--like", "customers"],
        "zone \"EXAMPLE.org.\" is in the configuration",
    );
    refused(&server, &["remove", "example.org"], "is in the configuration: take it out there");
    refused(
        &server,
        &["add", "example.net", "--like", "custmers"],
        "unknown template \"custmers\" (did you mean \"customers\"?)",
    );
    refused(
        &server,
        &["add", "example.net", "--with", "fiel: x"],
        "unknown setting \"fiel\" (did you mean \"file\"?)",
    );
    refused(&server, &["add", "example.net", "--with", "update: [key nobody]"], "unknown key \"nobody.\"");
    refused(&server, &["add", "example.net", "--with", "[x]"], "a list cannot stand here");
    refused(&server, &["add", "a..b"], "is no name of a zone");
    assert!(is_refused(&server, "v.example.net"));
    // Of several, those that can be added are.
    refused(
        &server,
        &["add", "example.net", "example.org", "example.net", "--like", "customers"],
        "1 zone\nexample.org: not done:",
    );
    contains(&server.dig(&["v.example.net", "A"]), "192.0.2.1");
    refused(&server, &["add", "example.net"], "was added before");
    // A file that is not there can still come.
    contains(
        &done(&server, &["add", "later.example", "--like", "customers"]),
        "questions about it get SERVFAIL",
    );
    contains(&server.dig(&["v.later.example", "A"]), "status: SERVFAIL");
    std::fs::write(server.directory().join("later.example.zone"), small(2)).expect("writable");
    done(&server, &["reload"]);
    contains(&server.dig(&["v.later.example", "A"]), "192.0.2.2");
}

#[test]
fn zones_have_templates_in_common() {
    let configured = "zones: [{name: example.com, like: customers}, {name: example.org, file: org, like: customers, transfer: []}]\n";
    let files = [
        ("org", ORG),
        ("example.com.zone", &small(1)),
        ("example.net.zone", &small(2)),
        ("list", "# customers\nexample.net customers\nexample.edu   # no template\n"),
    ];
    let server = serving(&format!("{TEMPLATES}{configured}"), &files);
    contains(
        &done(&server, &["add", "--from", &server.directory().join("list").display().to_string()]),
        "1 zone\n1 zone\n",
    );
    let transfer = |name: &str| dig_anyway(&server, &["-y", &key_option("hmac-sha256"), name, "AXFR"]);
    contains(&transfer("example.com"), "192.0.2.1");
    contains(&transfer("example.net"), "192.0.2.2");
    contains(&transfer("example.org"), "Transfer failed");
    contains(&server.dig(&["v.example.edu", "A"]), "status: SERVFAIL");
    // What was added is removed with the same list.
    contains(
        &done(&server, &["remove", "--from", &server.directory().join("list").display().to_string()]),
        "2 zones\n",
    );
    assert!(is_refused(&server, "v.example.net") && !is_refused(&server, "v.example.com"));
    // A template that is gone leaves those that were planned by it as they are.
    done(&server, &["add", "example.net", "--like", "customers"]);
    let mut server = server;
    server.write_config(&settings("zones: [{name: example.org, file: org}]\n"));
    assert!(server.command(&["reload"]).status.success());
    server.wait_for_log("unknown template \"customers\"");
    contains(&server.dig(&["v.example.net", "A"]), "192.0.2.2");
}

#[test]
fn a_zone_without_a_file_gets_its_records_from_the_operator() {
    let server = serving("", &[("one", &small(5)), ("two", &small(9)), ("broken", "$TTL 60\n@ SOA\n")]);
    let file = |name: &str| server.directory().join(name).display().to_string();
    done(&server, &["add", "example.org", "--with", &format!("update: [\"key {KEY}\"]")]);
    contains(&server.dig(&["v.example.org", "A"]), "status: SERVFAIL");
    contains(&done(&server, &["load", "example.org", &file("one")]), "has serial 5");
    contains(&server.dig(&["v.example.org", "A"]), "192.0.2.5");
    contains(&done(&server, &["load", "example.org", &file("one")]), "is like that already, with serial 5");
    refused(&server, &["load", "example.org", &file("broken")], "has mistakes");
    refused(&server, &["load", "example.net", &file("one")], "there is no zone");
    let (is_done, said) = nsupdate(&server, "update add new.example.org 60 A 192.0.2.99");
    assert!(is_done, "{said}");
    // Both outlive the server.
    let server = restarted(server, "");
    contains(&server.dig(&["new.example.org", "A"]), "192.0.2.99");
    contains(&server.dig(&["v.example.org", "A"]), "192.0.2.5");
    let file = |name: &str| server.directory().join(name).display().to_string();
    // What is loaded counts whatever its serial; secondaries see a newer one.
    contains(&done(&server, &["load", "example.org", &file("one")]), "has serial 7");
    contains(&server.dig(&["new.example.org", "A"]), "status: NXDOMAIN");
    contains(&done(&server, &["load", "example.org", &file("two")]), "has serial 9");
    contains(&server.dig(&["v.example.org", "A"]), "192.0.2.9");
    // A zone that is added anew has nothing of the old one.
    done(&server, &["remove", "example.org"]);
    done(&server, &["add", "example.org"]);
    contains(&server.dig(&["v.example.org", "A"]), "status: SERVFAIL");
    let server = restarted(server, "");
    contains(&server.dig(&["v.example.org", "A"]), "status: SERVFAIL");
}

#[test]
fn zones_that_are_added_are_followed_signed_and_listed_in_catalogs() {
    let producer = format!(
        "{TEMPLATES}signing: {{s: {{}}}}\nzones: [{{name: catalog.example, catalog-role: producer, transfer: [loopback]}}]\n"
    );
    let server = serving(&producer, &[("example.net.zone", &small(3)), ("signed", &small(4))]);
    // A secondary of a zone of the same server, under its own settings.
    let follower = serving("", &[]);
    let primary = server.address();
    done(
        &server,
        &[
            "add",
            "example.net",
            "--with",
            "{like: customers, catalog: catalog.example, transfer: [loopback]}",
        ],
    );
    contains(&dig_anyway(&server, &["catalog.example", "AXFR"]), "example.net.");
    done(&follower, &["add", "example.net", "--with", &format!("primaries: [\"{primary}\"]")]);
    eventually("the transfer", || follower.dig(&["v.example.net", "A"]).contains("192.0.2.3"));
    contains(&done(&follower, &["status", "example.net"]), "secondary  serial 3");
    // The server signs what is added, too.
    done(&server, &["add", "signed.example", "--with", "{file: signed, sign: s}"]);
    eventually("the signature", || server.dig(&["+dnssec", "v.signed.example", "A"]).contains("RRSIG"));
    let server = restarted(server, &producer);
    eventually("the signature", || server.dig(&["+dnssec", "v.signed.example", "A"]).contains("RRSIG"));
    done(&server, &["remove", "example.net", "signed.example"]);
    assert!(is_refused(&server, "v.signed.example"));
    assert!(!dig_anyway(&server, &["catalog.example", "AXFR"]).contains("example.net."));
}

#[test]
fn what_the_configuration_has_counts_before_what_was_added() {
    let server = serving("", &[("org", ORG), ("other", &small(8))]);
    done(&server, &["add", "example.org", "--with", "file: other"]);
    contains(&server.dig(&["v.example.org", "A"]), "192.0.2.8");
    let mut server = restarted(server, "zones: [{name: example.org, file: org}]\n");
    server.wait_for_log("was added and is in the configuration, which counts");
    contains(&server.dig(&["mail.example.org", "A"]), "192.0.2.2");
    contains(&server.dig(&["v.example.org", "A"]), "status: NXDOMAIN");
    // When the configuration gives it up, it is there again; it can be removed before that.
    server.write_config(&settings(""));
    assert!(server.command(&["reload"]).status.success());
    contains(&server.dig(&["v.example.org", "A"]), "192.0.2.8");
}
