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

/// Returns the addresses that a name has, in order.
fn addresses(server: &Server, name: &str) -> Vec<String> {
    let mut found: Vec<String> =
        server.dig(&["+short", name, "A"]).lines().map(|line| line.trim().to_owned()).collect();
    found.sort();
    found
}

/// Answers whoever connects, at this address and the port of `like`, or any.
fn answering(ip: &str, port: u16) -> std::net::TcpListener {
    std::net::TcpListener::bind((ip, port)).expect("a free port of the loopback")
}

/// Returns a template of which `www` is chosen from `data`, and is checked at a port.
fn checked(port: u16, data: &str) -> String {
    format!(
        "checks: {{web: {{port: {port}, interval: 1s, timeout: 1s, rise: 1, fall: 1}}}}\n\
         zone-templates:\n\
         \x20 shops:\n\
         \x20   file: \"{{name}}.zone\"\n\
         \x20   choose: [{{name: \"www.{{name}}\", type: A, check: web, from: [{{data: [{data}]}}]}}]\n"
    )
}

fn port_of(listener: &std::net::TcpListener) -> u16 {
    listener.local_addr().expect("a bound socket").port()
}

fn metrics(server: &Server) -> String {
    let output = server.command(&["stats", "--prometheus"]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn records_of_zones_that_are_added_are_checked() {
    let one = answering("127.0.0.1", 0);
    let port = port_of(&one);
    let templates = checked(port, "127.0.0.1, 127.0.0.9");
    let files = ["a.example.zone", "b.example.zone", "c.example.zone"];
    let text = small(1);
    let mut server = serving(&templates, &files.map(|file| (file, text.as_str())));
    done(&server, &["add", "a.example", "b.example", "--like", "shops"]);
    let www = |server: &Server, zone: &str| addresses(server, &format!("www.{zone}"));
    for zone in ["a.example", "b.example"] {
        eventually("what nobody listens at is left out", || www(&server, zone) == ["127.0.0.1"]);
    }
    contains(&done(&server, &["status", "a.example"]), "www.a.example. A 127.0.0.9  left out (web): ");
    contains(&metrics(&server), "gannet_check_records{check=\"web\",state=\"down\"} 2\n");
    // One that comes later leaves it out from the first answer on: the same is tried once for all
    // of them.
    done(&server, &["add", "c.example", "--like", "shops"]);
    assert_eq!(www(&server, "c.example"), ["127.0.0.1"]);
    let told = |line: &&String| line.contains("does not work") && line.contains("127.0.0.9");
    assert_eq!(server.log().iter().filter(told).count(), 1);
    // Another version of the zone, and a reload, change nothing of it.
    std::fs::write(server.directory().join("given"), small(2)).expect("writable");
    done(&server, &["load", "a.example", "given"]);
    eventually("the new version", || addresses(&server, "v.a.example") == ["192.0.2.2"]);
    assert_eq!(www(&server, "a.example"), ["127.0.0.1"]);
    assert!(server.command(&["reload"]).status.success());
    assert_eq!(www(&server, "a.example"), ["127.0.0.1"]);
    let two = answering("127.0.0.9", port);
    for zone in ["a.example", "b.example"] {
        eventually("both answer", || www(&server, zone) == ["127.0.0.1", "127.0.0.9"]);
    }
    drop(two);
    eventually("one is left out again", || www(&server, "b.example") == ["127.0.0.1"]);
    // One that is removed is not checked any more, the other still is.
    done(&server, &["remove", "a.example"]);
    assert!(is_refused(&server, "www.a.example"));
    contains(&metrics(&server), "gannet_check_records{check=\"web\",state=\"up\"} 2\n");
    testkit::lacks(&metrics(&server), "www.a.example.");
    // What is chosen is there after a restart.
    let server = restarted(server, &templates);
    eventually("one is left out after a restart", || www(&server, "b.example") == ["127.0.0.1"]);
}

#[test]
fn another_template_and_another_check_count_with_a_reload() {
    let one = answering("127.0.0.1", 0);
    let templates = checked(port_of(&one), "127.0.0.1, 127.0.0.9");
    let mut server = serving(&templates, &[("a.example.zone", &small(1))]);
    done(&server, &["add", "a.example", "--like", "shops"]);
    let www = |server: &Server| addresses(server, "www.a.example");
    eventually("what nobody listens at is left out", || www(&server) == ["127.0.0.1"]);
    let reload = |server: &Server, templates: &str| {
        server.write_config(&settings(templates));
        assert!(server.command(&["reload"]).status.success());
    };
    // What is known stays known, where else it is asked for as well.
    reload(&server, &checked(port_of(&one), "127.0.0.9, 127.0.0.1, 127.0.0.8"));
    testkit::lacks(&www(&server).join(" "), "127.0.0.9");
    eventually("the new one is left out, too", || www(&server) == ["127.0.0.1"]);
    // At another port somebody else listens.
    let two = answering("127.0.0.8", 0);
    reload(&server, &checked(port_of(&two), "127.0.0.9, 127.0.0.1, 127.0.0.8"));
    eventually("the one that listens there", || www(&server) == ["127.0.0.8"]);
    // Without a check nothing is left out, and nothing is tried.
    let unchecked = checked(port_of(&two), "127.0.0.1, 127.0.0.9").replace("check: web, ", "");
    reload(&server, &unchecked);
    assert_eq!(www(&server), ["127.0.0.1", "127.0.0.9"]);
    testkit::lacks(&metrics(&server), "gannet_check_up{");
    reload(&server, "zone-templates: {shops: {file: \"{name}.zone\"}}\n");
    assert!(www(&server).is_empty());
    contains(&server.dig(&["v.a.example", "A"]), "192.0.2.1");
    // A check that is gone is a mistake of the configuration; what was there stays.
    let broken = checked(port_of(&two), "127.0.0.1").replace("check: web", "check: wed");
    server.write_config(&settings(&broken));
    let output = server.command(&["reload"]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    contains(&said, "there is no check \"wed\"");
    // One that only the zone itself names is told, and the zone stays as it is.
    done(&server, &["remove", "a.example"]);
    reload(&server, &checked(port_of(&one), "127.0.0.1, 127.0.0.9"));
    let own = "{file: a.example.zone, choose: [{name: www.a.example, type: A, check: web, from: [{data: [127.0.0.1, 127.0.0.9]}]}]}";
    done(&server, &["add", "a.example", "--with", own]);
    eventually("it is checked by itself", || www(&server) == ["127.0.0.1"]);
    reload(&server, "");
    assert_eq!(www(&server), ["127.0.0.1"]);
    contains(&server.wait_for_log("cannot be served as it was"), "there is no check \"web\"");
}

#[test]
fn records_of_members_of_a_catalog_are_checked() {
    let one = answering("127.0.0.1", 0);
    let producer = |zones: &str| {
        settings(&format!(
            "zones: [{{name: catalog.example, catalog-role: producer, transfer: [loopback]}}{zones}]\n"
        ))
    };
    let member = |zone: &str| {
        format!(", {{name: {zone}, file: small, transfer: [loopback], catalog: catalog.example}}")
    };
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("small"), small(1)).expect("a writable directory");
    let primary = Server::start_in(directory, &producer(&member("a.example")));
    let following = |port: u16| {
        format!(
            "checks: {{web: {{port: {port}, interval: 1s, timeout: 1s, rise: 1, fall: 1}}}}\n\
             zones: [{{name: catalog.example, catalog-role: consumer, primaries: [\"{}\"], \
             choose: [{{name: \"www.{{name}}\", type: A, check: web, from: [{{data: [127.0.0.1, 127.0.0.9]}}]}}]}}]\n",
            primary.address()
        )
    };
    let follower = serving(&following(port_of(&one)), &[]);
    eventually("the member is checked", || addresses(&follower, "www.a.example") == ["127.0.0.1"]);
    contains(&done(&follower, &["status", "a.example"]), "www.a.example. A 127.0.0.9  left out (web): ");
    primary.write_config(&producer(&(member("a.example") + &member("b.example"))));
    assert!(primary.command(&["reload"]).status.success());
    done(&follower, &["reload", "catalog.example"]);
    eventually("the new one, too", || addresses(&follower, "www.b.example") == ["127.0.0.1"]);
    // A reload here forgets nothing; members that go are not checked any more.
    assert!(follower.command(&["reload"]).status.success());
    assert_eq!(addresses(&follower, "www.a.example"), ["127.0.0.1"]);
    primary.write_config(&producer(&member("b.example")));
    assert!(primary.command(&["reload"]).status.success());
    done(&follower, &["reload", "catalog.example"]);
    eventually("one is gone", || is_refused(&follower, "www.a.example"));
    eventually("and is not watched", || !metrics(&follower).contains("www.a.example."));
    contains(&metrics(&follower), "name=\"www.b.example.\",address=\"127.0.0.1\"} 1\n");
    // Another check counts with a reload, and members are there after a restart.
    let two = answering("127.0.0.9", 0);
    follower.write_config(&settings(&following(port_of(&two))));
    assert!(follower.command(&["reload"]).status.success());
    eventually("the other one works", || addresses(&follower, "www.b.example") == ["127.0.0.9"]);
    let following = following(port_of(&two));
    drop(primary.stop());
    let (status, log, directory) = follower.stop();
    assert!(status.success(), "{log:?}");
    let follower = Server::start_in(directory, &settings(&following));
    eventually("it works after a restart", || addresses(&follower, "www.b.example") == ["127.0.0.9"]);
}
