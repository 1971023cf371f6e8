//! Zones given to other servers and taken from them, whole and by differences; who is told of news.

use testkit::{Other, Server, eventually, is_installed};

use super::*;

const RECORDS: usize = 9 + 250 + 1;

#[test]
fn a_zone_is_given_to_those_who_may_have_it() {
    let server = primary("transfer: [\"key xfr.example.org\"]", "");
    let key = key_option("hmac-sha256");
    let all = records(&server.dig(&["-y", &key, "example.org", "AXFR"]));
    assert_eq!(all.len(), RECORDS, "{all:?}");
    assert!(all.contains(&"*.wild.example.org. 3600 IN TXT \"anything\" \"at all\"".to_owned()), "{all:?}");
    assert_eq!(records(&server.kdig(&["-y", &key, "example.org", "AXFR"])).len(), RECORDS);
    let refused = dig_anyway(&server, &["example.org", "AXFR"]);
    assert!(refused.contains("Transfer failed"), "{refused}");
    let wrong = format!("hmac-sha256:{KEY}:d3Jvbmc=");
    let not_believed = dig_anyway(&server, &["-y", &wrong, "example.org", "SOA"]);
    assert!(not_believed.contains("NOTAUTH") && not_believed.contains("BADSIG"), "{not_believed}");
    let unknown = format!("hmac-sha256:other:{SECRET}");
    let unknown = dig_anyway(&server, &["-y", &unknown, "example.org", "SOA"]);
    assert!(unknown.contains("NOTAUTH") && unknown.contains("BADKEY"), "{unknown}");
    // What is signed is answered signed; dig says so if the signature is wrong.
    let signed = server.dig(&["-y", &key, "mail.example.org", "A"]);
    assert!(signed.contains("192.0.2.2") && signed.contains("TSIG"), "{signed}");
    assert!(!signed.contains("verify"), "{signed}");
    let elsewhere = dig_anyway(&server, &["-y", &key, "example.net", "AXFR"]);
    assert!(elsewhere.contains("Transfer failed"), "{elsewhere}");
    let current = server.dig(&["-y", &key, "+tcp", "example.org", "IXFR=10"]);
    assert_eq!(records(&current).len(), 1, "{current}");
}

/// Has `start` make a secondary of ours; it takes the zone over whole, hears of an update and takes
/// the difference.
fn check_secondary(program: &str, start: fn(SocketAddr) -> Other) {
    if !is_installed(program) {
        return;
    }
    let zone = |more: &str| {
        format!("{{name: example.org, file: org, transfer: [\"key {KEY}\"], update: [\"key {KEY}\"]{more}}}")
    };
    let server = Server::start_in(directory_with_org(), &config(&zone(""), ""));
    let other = start(server.address());
    // Where the secondary is, is known only now.
    server.write_config(&config(&zone(&format!(", notify: [\"{}\"]", other.address())), ""));
    assert!(server.command(&["reload"]).status.success());
    eventually("the zone at the secondary", || other.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    assert!(other.dig(&["host-77.example.org", "A"]).contains("10.1.77.1"));
    assert_eq!(server.stat("engine", "transfers_steps"), 0);
    let whole = server.stat("engine", "transfers_whole");
    assert!(whole >= 1, "{whole} transfers");
    let (is_done, said) = nsupdate(
        &server,
        "update delete host-77.example.org A\nupdate add new.example.org 60 A 192.0.2.99\n",
    );
    assert!(is_done, "{said}");
    eventually("the update at the secondary", || {
        other.dig(&["new.example.org", "A"]).contains("192.0.2.99")
            && other.dig(&["host-77.example.org", "A"]).contains("NXDOMAIN")
    });
    assert!(other.dig(&["host-78.example.org", "A"]).contains("10.1.78.1"));
    // It was told, and it took the difference and nothing else.
    assert!(server.stat("engine", "transfers_steps") >= 1, "{}", other.log());
    assert_eq!(server.stat("engine", "transfers_whole"), whole, "{}", other.log());
}

#[test]
fn bind_follows_us() {
    check_secondary("named", |primary| {
        let port = primary.port();
        let zone = format!(
            "{BIND_KEY}\nzone \"example.org\" {{ type secondary; file \"org\"; masterfile-format text;\n\
             primaries {{ 127.0.0.1 port {port} key {KEY}; }}; allow-notify {{ 127.0.0.1; }}; }};\n"
        );
        Other::bind("", &zone, &[])
    });
}

#[test]
fn knot_follows_us() {
    check_secondary("knotd", |primary| {
        let port = primary.port();
        let zone = format!(
            "{KNOT_KEY}remote:\n  - id: primary\n    address: 127.0.0.1@{port}\n    key: {KEY}\n\
             acl:\n  - id: notify\n    address: 127.0.0.1\n    action: notify\n\
             template:\n  - id: default\n    storage: @DIRECTORY@\n\
             zone:\n  - domain: example.org\n    master: primary\n    acl: notify\n"
        );
        Other::knot(&zone, &[])
    });
}

#[test]
fn nsd_follows_us() {
    check_secondary("nsd", |primary| {
        let port = primary.port();
        let zone = format!(
            "{NSD_KEY}zone:\n  name: example.org\n  zonefile: org\n  allow-notify: 127.0.0.1 NOKEY\n\
             \x20 request-xfr: 127.0.0.1@{port} {KEY}\n"
        );
        Other::nsd("", &zone, &[])
    });
}

const SERVED: &str = "$ORIGIN example.org.\n$TTL 3600\n\
    @ SOA ns admin 20 7200 600 86400 300\n@ NS ns\nns A 192.0.2.1\nmail A 192.0.2.2\nold A 192.0.2.3\n";

/// We take a zone over from `start`'s server, which is told where we are; when `change` has changed
/// it there, it tells us, and the difference follows.
fn check_primary(program: &str, start: fn(SocketAddr) -> Other, change: fn(&Other)) {
    if !is_installed(program) {
        return;
    }
    let server = Server::start(&config("{name: elsewhere.example, catalog-role: producer}", ""));
    let other = start(server.address());
    let primaries = format!("\"{} key {KEY}\"", other.address());
    let zone = format!("{{name: example.org, primaries: [{primaries}], transfer: [loopback]}}");
    server.write_config(&config(&zone, ""));
    assert!(server.command(&["reload"]).status.success());
    eventually("the zone here", || server.dig(&["old.example.org", "A"]).contains("192.0.2.3"));
    change(&other);
    eventually("the difference here", || {
        server.dig(&["new.example.org", "A"]).contains("192.0.2.99")
            && server.dig(&["old.example.org", "A"]).contains("NXDOMAIN")
    });
    // It came as a difference, and goes on as one.
    let next = server.dig(&["+tcp", "example.org", "IXFR=20"]);
    let lines = records(&next);
    assert!(lines.iter().any(|line| line.starts_with("old.example.org. ")), "{next}");
    assert!(!lines.iter().any(|line| line.starts_with("mail.example.org. ")), "{next}");
    let (_, log, _) = server.stop();
    let log = log.join("\n");
    assert!(log.contains("transferred by AXFR") && log.contains("transferred by IXFR"), "{log}");
}

/// Changes the zone by an update.
fn change_by_update(other: &Other) {
    let commands = "update delete old.example.org A\nupdate add new.example.org 60 A 192.0.2.99";
    let (is_done, said) = update_at(other.address(), "example.org", commands);
    assert!(is_done, "{said}");
}

#[test]
fn we_follow_bind() {
    check_primary(
        "named",
        |secondary| {
            let zone = format!(
                "{BIND_KEY}\nzone \"example.org\" {{ type primary; file \"org\"; allow-transfer {{ key {KEY}; }};\n\
                 allow-update {{ key {KEY}; }}; also-notify {{ 127.0.0.1 port {} key {KEY}; }}; }};\n",
                secondary.port()
            );
            Other::bind("", &zone, &[("org", SERVED)])
        },
        change_by_update,
    );
}

#[test]
fn we_follow_knot() {
    check_primary(
        "knotd",
        |secondary| {
            let zone = format!(
                "{KNOT_KEY}remote:\n  - id: secondary\n    address: 127.0.0.1@{}\n    key: {KEY}\n\
                 acl:\n  - id: all\n    key: {KEY}\n    action: [transfer, update]\n\
                 template:\n  - id: default\n    storage: @DIRECTORY@\n\
                 zone:\n  - domain: example.org\n    file: org\n    acl: all\n    notify: secondary\n",
                secondary.port()
            );
            Other::knot(&zone, &[("org", SERVED)])
        },
        change_by_update,
    );
}

#[test]
fn we_follow_nsd() {
    check_primary(
        "nsd",
        |secondary| {
            let zone = format!(
                "{NSD_KEY}zone:\n  name: example.org\n  zonefile: org\n  provide-xfr: 127.0.0.1 {KEY}\n\
                 \x20 notify: 127.0.0.1@{} {KEY}\n  store-ixfr: yes\n  create-ixfr: yes\n",
                secondary.port()
            );
            Other::nsd("", &zone, &[("org", SERVED)])
        },
        |other| {
            let changed = SERVED.replace(" 20 ", " 21 ").replace("old A 192.0.2.3", "new 60 A 192.0.2.99");
            // A whole second later by the clock of the file system, which is how NSD notices.
            let file = other.directory().join("org");
            std::fs::write(&file, changed).expect("a writable directory");
            let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
            let file = std::fs::File::options().append(true).open(file).expect("a file");
            file.set_modified(later).expect("a file of ours");
            other.signal("-HUP");
        },
    );
}

#[test]
fn a_secondary_serves_what_it_kept_before_its_primary_is_there() {
    let first = primary("transfer: [loopback]", "");
    let primaries = format!("\"{}\"", first.address());
    let server = secondary(&primaries, "");
    eventually("the zone", || server.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    let (_, _, directory) = server.stop_by("KILL");
    drop(first);
    let zone = format!("{{name: example.org, primaries: [{primaries}]}}");
    let server = Server::start_in(directory, &config(&zone, ""));
    assert!(server.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    eventually("the primary's absence is told", || {
        let status = server.command(&["zone", "status", "example.org"]);
        let said = String::from_utf8_lossy(&status.stdout).into_owned();
        said.contains("secondary  serial 10") && said.contains("expires in") && said.contains("refused")
    });
}
