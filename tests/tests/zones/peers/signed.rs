//! Zones that change while the server runs, and that it signs.

use testkit::{Server, eventually};

use super::*;

const SIGNING: &str = "signing: {default: {}}\n";

fn is_signed(server: &Server, name: &str, address: &str) -> bool {
    let printed = server.dig(&["+dnssec", name, "A"]);
    printed.contains(address) && printed.contains("RRSIG\tA 13 ")
}

#[test]
fn a_zone_that_is_taken_over_is_signed_before_it_is_served() {
    let first = primary(&format!("transfer: [loopback], update: [\"key {KEY}\"]"), "");
    let settings = |primaries: &str| {
        let zone =
            format!("{{name: example.org, sign: default, primaries: [{primaries}], transfer: [loopback]}}");
        config(&zone, "") + SIGNING
    };
    let settings = settings(&format!("\"{}\"", first.address()));
    let server = Server::start(&settings);
    eventually("the zone, signed", || {
        let printed = server.dig(&["+dnssec", "mail.example.org", "A"]);
        let is_unsigned = printed.contains("192.0.2.2") && !printed.contains("RRSIG");
        assert!(!is_unsigned, "it was served without signatures: {printed}");
        is_signed(&server, "mail.example.org", "192.0.2.2")
    });
    let serial = |server: &Server| -> u32 {
        let soa = server.dig(&["+short", "example.org", "SOA"]);
        soa.split_whitespace().nth(2).and_then(|serial| serial.parse().ok()).expect("a serial")
    };
    let before = serial(&server);
    let (is_done, said) = nsupdate(&first, "update add new.example.org 60 A 192.0.2.99");
    assert!(is_done, "{said}");
    assert!(server.command(&["zone", "reload", "example.org"]).status.success());
    eventually("the difference, signed", || is_signed(&server, "new.example.org", "192.0.2.99"));
    assert!(serial(&server) > before);
    // It goes on as a difference, signatures and all.
    let next = server.dig(&["+tcp", "example.org", &format!("IXFR={before}")]);
    assert!(next.contains("new.example.org.") && next.contains("RRSIG\tA 13 "), "{next}");
    assert!(!next.contains("mail.example.org.\t3600\tIN\tA"), "{next}");
    // What was signed last is there before anybody is asked.
    let (_, _, directory) = server.stop_by("KILL");
    drop(first);
    let server = Server::start_in(directory, &settings);
    assert!(is_signed(&server, "new.example.org", "192.0.2.99"));
}

#[test]
fn a_zone_that_is_updated_is_signed_anew() {
    let zone = format!(
        "{{name: example.org, file: org, sign: default, update: [\"key {KEY}\"], transfer: [loopback]}}"
    );
    let settings = config(&zone, "") + SIGNING;
    let server = Server::start_in(directory_with_org(), &settings);
    eventually("the zone, signed", || is_signed(&server, "mail.example.org", "192.0.2.2"));
    let (is_done, said) = nsupdate(&server, "update add new.example.org 60 A 192.0.2.99");
    assert!(is_done, "{said}");
    eventually("the update, signed", || is_signed(&server, "new.example.org", "192.0.2.99"));
    let (is_done, said) =
        nsupdate(&server, "prereq yxrrset new.example.org A\nupdate delete new.example.org A");
    assert!(is_done, "{said}");
    eventually("the second update, signed", || {
        let printed = server.dig(&["+dnssec", "new.example.org", "A"]);
        printed.contains("NXDOMAIN") && printed.contains("NSEC")
    });
    let diff = server.command(&["zone", "diff", "example.org"]);
    let diff = String::from_utf8_lossy(&diff.stdout).into_owned();
    // What was signed is not what was changed.
    assert_eq!(diff.lines().count(), 2, "{diff}");
    let (is_done, said) = nsupdate(&server, "update add last.example.org 60 A 192.0.2.77");
    assert!(is_done, "{said}");
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &settings);
    assert!(is_signed(&server, "mail.example.org", "192.0.2.2"));
    eventually("what was acknowledged, signed", || is_signed(&server, "last.example.org", "192.0.2.77"));
}

#[test]
fn updates_of_a_signed_zone_stay_when_its_file_is_written_again_and_are_merged_with_a_change() {
    let zone = format!(
        "{{name: example.org, file: org, sign: default, update: [\"key {KEY}\"], on-file-change: merge}}"
    );
    let settings = config(&zone, "") + SIGNING;
    let server = Server::start_in(directory_with_org(), &settings);
    eventually("the zone, signed", || is_signed(&server, "mail.example.org", "192.0.2.2"));
    let (is_done, said) = nsupdate(&server, "update add new.example.org 60 A 192.0.2.99");
    assert!(is_done, "{said}");
    eventually("the update, signed", || is_signed(&server, "new.example.org", "192.0.2.99"));
    let (_, _, directory) = server.stop_by("KILL");
    std::fs::write(directory.path().join("org"), ORG).expect("our file");
    let server = Server::start_in(directory, &settings);
    assert!(is_signed(&server, "new.example.org", "192.0.2.99"));
    let before = serial(&server);
    std::fs::write(server.directory().join("org"), ORG.replace("192.0.2.2\n", "192.0.2.22\n"))
        .expect("our file");
    assert!(server.command(&["reload"]).status.success());
    eventually("the change, signed", || is_signed(&server, "mail.example.org", "192.0.2.22"));
    assert!(is_signed(&server, "new.example.org", "192.0.2.99"));
    assert!(serial(&server) > before);
}

#[test]
fn the_serial_of_a_signed_zone_follows_that_of_its_file() {
    let settings = config("{name: example.org, file: org, sign: default}", "") + SIGNING;
    let server = Server::start_in(directory_with_org(), &settings);
    eventually("the zone, signed", || is_signed(&server, "mail.example.org", "192.0.2.2"));
    std::fs::write(server.directory().join("org"), ORG.replace(" 10 ", " 4000 ")).expect("our file");
    assert!(server.command(&["reload"]).status.success());
    eventually("the new serial", || serial(&server) == 4000);
    assert!(is_signed(&server, "mail.example.org", "192.0.2.2"));
}

/// Returns the serial of the zone.
fn serial(server: &Server) -> u32 {
    let soa = server.dig(&["+short", "example.org", "SOA"]);
    soa.split_whitespace().nth(2).and_then(|serial| serial.parse().ok()).expect("a serial")
}

/// Checks that a secondary with the version `from` gets the difference to one with
/// `new.example.org`, and not the whole zone.
fn check_step(server: &Server, from: u32) {
    let next = server.dig(&["+tcp", "example.org", &format!("IXFR={from}")]);
    assert!(next.contains("new.example.org.") && next.contains("RRSIG\tA 13 "), "{next}");
    assert!(!next.contains("mail.example.org.\t3600\tIN\tA"), "{next}");
}

#[test]
fn what_led_to_a_signed_version_is_there_after_a_restart() {
    let zone = format!(
        "{{name: example.org, file: org, sign: default, update: [\"key {KEY}\"], transfer: [loopback]}}"
    );
    let settings = config(&zone, "") + SIGNING;
    let server = Server::start_in(directory_with_org(), &settings);
    eventually("the zone, signed", || is_signed(&server, "mail.example.org", "192.0.2.2"));
    let before = serial(&server);
    let (is_done, said) = nsupdate(&server, "update add new.example.org 60 A 192.0.2.99");
    assert!(is_done, "{said}");
    eventually("the update, signed", || is_signed(&server, "new.example.org", "192.0.2.99"));
    check_step(&server, before);
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &settings);
    check_step(&server, before);
    // And it goes on from there.
    let (is_done, said) = nsupdate(&server, "update add last.example.org 60 A 192.0.2.77");
    assert!(is_done, "{said}");
    eventually("the next update, signed", || is_signed(&server, "last.example.org", "192.0.2.77"));
    let (_, _, directory) = server.stop();
    let server = Server::start_in(directory, &settings);
    check_step(&server, before);
    assert!(server.dig(&["+tcp", "example.org", &format!("IXFR={before}")]).contains("last.example.org."));
}

#[test]
fn what_led_to_a_signed_file_is_there_after_a_restart() {
    let settings =
        config("{name: example.org, file: org, sign: default, transfer: [loopback]}", "") + SIGNING;
    let server = Server::start_in(directory_with_org(), &settings);
    eventually("the zone, signed", || is_signed(&server, "mail.example.org", "192.0.2.2"));
    let before = serial(&server);
    let changed = ORG.replace("admin 10 ", "admin 11 ") + "new 60 A 192.0.2.99\n";
    std::fs::write(server.directory().join("org"), changed).expect("a writable directory");
    assert!(server.command(&["reload"]).status.success());
    eventually("the change, signed", || is_signed(&server, "new.example.org", "192.0.2.99"));
    check_step(&server, before);
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &settings);
    check_step(&server, before);
}

#[test]
fn zones_of_a_directory_are_signed() {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::create_dir(directory.path().join("all")).expect("a writable directory");
    for name in ["example.org.zone", "example.net.zone"] {
        std::fs::write(directory.path().join("all").join(name), ORG).expect("a writable directory");
    }
    let zone = "{name: elsewhere.example, catalog-role: producer}";
    let settings = config(zone, "") + SIGNING + "zone-directories: [{path: all, sign: default}]\n";
    let server = Server::start_in(directory, &settings);
    eventually("one zone", || is_signed(&server, "mail.example.org", "192.0.2.2"));
    eventually("the other", || is_signed(&server, "mail.example.net", "192.0.2.2"));
}
