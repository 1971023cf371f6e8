//! What another server is told, imported and served here: both give the same answers from the same
//! files.

use testkit::{Other, Server, is_installed};

use super::*;

/// A zone with one of everything that answers differ by, for servers that know no `$GENERATE`.
const ZONE: &str = "$TTL 3600\n\
    @ SOA ns admin 10 7200 600 86400 300\n@ NS ns\n@ MX 10 mail\n\
    ns A 192.0.2.1\nmail A 192.0.2.2\nmail AAAA 2001:db8::2\nalias CNAME mail\nfar CNAME www.example.net.\n\
    *.wild TXT \"anything\" \"at all\"\nsub NS ns.sub\nns.sub A 192.0.2.3\na.b.empty A 192.0.2.4\n\
    old DNAME new.example.net.\nsvc SRV 1 2 53 mail\n";

/// Questions, and what answers to them are about.
const QUESTIONS: [(&str, &str); 14] = [
    ("mail", "A"),
    ("MAIL", "AAAA"),
    ("mail", "TXT"),
    ("nobody", "A"),
    ("alias", "A"),
    ("far", "A"),
    ("x.wild", "TXT"),
    ("x.wild", "A"),
    ("host.sub", "A"),
    ("b.empty", "A"),
    ("x.old", "A"),
    ("svc", "SRV"),
    ("@", "SOA"),
    ("@", "MX"),
];

/// Imports what `other` is told and serves it at a port of our own.
fn import(program: &str, other: &Other) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    let conf = other.directory().join("conf");
    let output = testkit::program(directory.path())
        .args(["import", program])
        .arg(&conf)
        .args(["--to", "made.yaml"])
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    let made = std::fs::read_to_string(directory.path().join("made.yaml")).expect("the file that it wrote");
    let made = made.replace(&format!("127.0.0.1:{}", other.address().port()), "\"@ADDRESS@\"");
    let state = "server:\n  state-directory: \"@DIRECTORY@\"\n";
    let made = match made.split_once("server:\n") {
        Some((before, after)) => format!("{before}{state}{after}"),
        None => format!("{state}\n{made}"),
    };
    Server::start_in(directory, &made)
}

/// What of an answer has to be the same: the response code, whether it is authoritative, the answer
/// and the authority, in any order and any case of letters.
fn essence(printed: &str) -> Vec<String> {
    let flags = printed.lines().find(|line| line.contains(";; flags:")).unwrap_or("");
    let flags = flags.split(';').nth(2).unwrap_or("");
    let status = printed.lines().find(|line| line.contains("status:")).unwrap_or("");
    let status = status.split(", id:").next().unwrap_or("");
    let mut lines: Vec<String> = printed
        .lines()
        .filter(|line| !line.starts_with(';') && !line.trim().is_empty())
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase())
        .collect();
    lines.sort();
    lines.extend([flags.trim().to_owned(), status.trim().to_owned()]);
    lines
}

fn check_the_same(other: &Other, server: &Server, zone: &str) {
    for (label, rtype) in QUESTIONS {
        let name = if label == "@" { zone.to_owned() } else { format!("{label}.{zone}") };
        let arguments = ["+norecurse", "+noadditional", "+noedns", name.as_str(), rtype];
        assert_eq!(essence(&server.dig(&arguments)), essence(&other.dig(&arguments)), "{name} {rtype}");
    }
    let elsewhere = ["+norecurse", "+noedns", "example.net", "A"];
    assert_eq!(essence(&server.dig(&elsewhere)), essence(&other.dig(&elsewhere)));
    // Whoever has the key gets the same zone from both, and nobody else gets it from either.
    let key = key_option("hmac-sha256");
    let transfer = ["-y", key.as_str(), zone, "AXFR"];
    assert_eq!(records(&server.dig(&transfer)), records(&other.dig(&transfer)));
    assert!(dig_anyway(server, &[zone, "AXFR"]).contains("Transfer failed"));
}

#[test]
fn what_knot_serves_is_imported_and_answered_alike() {
    if !is_installed("knotd") {
        return;
    }
    let more = format!(
        "{KNOT_KEY}acl:\n  - id: given\n    key: {KEY}\n    action: transfer\n\
         mod-synthrecord:\n  - id: names\n    type: forward\n    prefix: dyn-\n    ttl: 400\n    network: 192.0.2.0/24\n\
         template:\n  - id: default\n    storage: @DIRECTORY@\n    file: \"%s\"\n    acl: given\n\
         zone:\n  - domain: example.org\n    module: mod-synthrecord/names\n  - domain: example.com\n    file: example.org\n"
    );
    let other = Other::knot(&more, &[("example.org", ZONE)]);
    let server = import("knot", &other);
    check_the_same(&other, &server, "example.org");
    check_the_same(&other, &server, "example.com");
    let made = ["+norecurse", "+noedns", "dyn-192-0-2-77.example.org", "A"];
    assert_eq!(essence(&server.dig(&made)), essence(&other.dig(&made)));
}

#[test]
fn what_nsd_serves_and_has_listed_is_imported_and_answered_alike() {
    if !is_installed("nsd") {
        return;
    }
    let more = format!(
        "{NSD_KEY}pattern:\n  name: here\n  zonefile: \"%s\"\n  provide-xfr: 127.0.0.1 {KEY}\n\
         pattern:\n  name: listed\n  include-pattern: here\n\
         zone:\n  name: example.org\n  include-pattern: here\n"
    );
    let files = [
        ("example.org", ZONE),
        ("example.com", ZONE),
        ("list", "# NSD zone list\n# name pattern\nadd example.com listed\n"),
    ];
    let other = Other::nsd("  minimal-responses: yes", &more, &files);
    let server = import("nsd", &other);
    check_the_same(&other, &server, "example.org");
    check_the_same(&other, &server, "example.com");
}

#[test]
fn what_bind_serves_is_imported_and_answered_alike() {
    if !is_installed("named") {
        return;
    }
    let more = format!(
        "{BIND_KEY}\nacl given {{ !192.0.2.1; key {KEY}; }};\n\
         zone \"example.org\" {{ type primary; file \"example.org\"; allow-transfer {{ given; }}; }};\n\
         zone \"example.com\" {{ type primary; file \"db.com\"; allow-transfer {{ given; }}; }};\n\
         zone \"example.info\" {{ type primary; file \"example.info\"; allow-transfer {{ given; }}; }};\n"
    );
    let files = [("example.org", ZONE), ("db.com", ZONE), ("example.info", ZONE)];
    let other = Other::bind("minimal-responses yes; check-names primary ignore;", &more, &files);
    let server = import("bind", &other);
    for zone in ["example.org", "example.com", "example.info"] {
        check_the_same(&other, &server, zone);
    }
}
