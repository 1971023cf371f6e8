//! Zones of whole directories, and what other servers may do with them.

use testkit::{Other, Server, eventually, is_installed};

use super::*;

const JSON: &str = r#"[{"name": "json.example", "records": [
    {"name": "json.example", "type": "SOA", "ttl": 60, "data": {"mname": "ns.json.example", "rname": "admin.json.example",
        "serial": 1, "refresh": 7200, "retry": 600, "expire": 86400, "minimum": 60}},
    {"name": "json.example", "type": "NS", "ttl": 60, "data": {"dname": "ns.json.example"}},
    {"name": "ns.json.example", "type": "A", "ttl": 60, "data": {"ip": "192.0.2.1"}}]}]"#;

/// A directory with zones in text and JSON, one of which the configuration names, too.
fn directory() -> TempDir {
    let directory = directory_with_org();
    let all = directory.path().join("all");
    std::fs::create_dir(&all).expect("a writable directory");
    for name in ["one.example.zone", "two.example.zone", "example.org.zone"] {
        std::fs::write(all.join(name), ORG).expect("a writable directory");
    }
    std::fs::write(all.join("some.json"), JSON).expect("a writable directory");
    directory
}

fn settings(more: &str) -> String {
    let zones = "{name: catalog.example, catalog-role: producer, transfer: [loopback]}\n  - {name: example.org, file: org}";
    let all = format!(
        "zone-directories: [{{path: all, transfer: [\"key {KEY}\"], update: [\"key {KEY}\"], catalog: catalog.example{more}}}]\n"
    );
    config(zones, "") + &all
}

#[test]
fn zones_of_a_directory_are_given_away_updated_and_listed() {
    let server = Server::start_in(directory(), &settings(""));
    let key = key_option("hmac-sha256");
    for (zone, count) in [("one.example", 260), ("two.example", 260), ("json.example", 4)] {
        let all = server.dig(&["-y", &key, zone, "AXFR"]);
        // The SOA is there twice, and counts once.
        assert_eq!(records(&all).len(), if count == 4 { 3 } else { count }, "{zone}: {all}");
        assert!(dig_anyway(&server, &[zone, "AXFR"]).contains("Transfer failed"));
    }
    // What the configuration says of a zone itself is all that is said of it.
    assert!(dig_anyway(&server, &["-y", &key, "example.org", "AXFR"]).contains("Transfer failed"));
    let listed = server.dig(&["catalog.example", "AXFR"]);
    for zone in ["one.example.", "two.example.", "json.example."] {
        assert!(listed.lines().any(|line| line.contains("PTR") && line.ends_with(zone)), "{listed}");
    }
    assert!(!listed.contains("PTR\texample.org."), "{listed}");
    let (is_done, said) =
        update_at(server.address(), "one.example", "update add new.one.example 60 A 192.0.2.99");
    assert!(is_done, "{said}");
    let (is_done, said) =
        update_at(server.address(), "json.example", "update add new.json.example 60 A 192.0.2.98");
    assert!(is_done, "{said}");
    let steps = server.dig(&["-y", &key, "+tcp", "one.example", "IXFR=10"]);
    assert!(steps.contains("new.one.example.") && !steps.contains("mail.one.example."), "{steps}");
    // A reload leaves what was changed, finds what is new, and takes away what is gone.
    let all = server.directory().join("all");
    std::fs::write(all.join("three.example.zone"), ORG).expect("a writable directory");
    std::fs::remove_file(all.join("two.example.zone")).expect("a writable directory");
    assert!(server.command(&["reload"]).status.success());
    assert!(server.dig(&["-y", &key, "three.example", "AXFR"]).contains("mail.three.example."));
    assert!(server.dig(&["two.example", "SOA"]).contains("REFUSED"));
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &settings(""));
    assert!(server.dig(&["new.one.example", "A"]).contains("192.0.2.99"));
    assert!(server.dig(&["new.json.example", "A"]).contains("192.0.2.98"));
}

#[test]
fn knot_follows_a_zone_of_a_directory() {
    if !is_installed("knotd") {
        return;
    }
    let server = Server::start_in(directory(), &settings(""));
    let zone = format!(
        "{KNOT_KEY}remote:\n  - id: primary\n    address: 127.0.0.1@{}\n    key: {KEY}\n\
         acl:\n  - id: notify\n    address: 127.0.0.1\n    action: notify\n\
         template:\n  - id: default\n    storage: @DIRECTORY@\n\
         zone:\n  - domain: one.example\n    master: primary\n    acl: notify\n",
        server.address().port()
    );
    let other = Other::knot(&zone, &[]);
    server.write_config(&settings(&format!(", notify: [\"{}\"]", other.address())));
    assert!(server.command(&["reload"]).status.success());
    eventually("the zone at the secondary", || other.dig(&["mail.one.example", "A"]).contains("192.0.2.2"));
    let (is_done, said) =
        update_at(server.address(), "one.example", "update add new.one.example 60 A 192.0.2.99");
    assert!(is_done, "{said}");
    eventually("the update at the secondary", || other.dig(&["new.one.example", "A"]).contains("192.0.2.99"));
}
