//! Certificates by records: in zones of the program, at the end of an alias, and by update.

use std::net::SocketAddr;
use std::path::PathBuf;

use tempfile::TempDir;
use testkit::{Server, eventually, free_address};
use wire::Rtype;

use super::pebble::{Conduct, IDENTITY, Pebble};
use super::shown;

/// Where nobody listens: whoever asks hears that at once.
const NOBODY: &str = "127.77.77.53";
const KEY: &str = "acme.example.org";

/// Starts the program with two zones and a certificate for `names`; nothing else leads to it.
fn start(dns: SocketAddr, directory: TempDir, records: &str, certificate: &str) -> Server {
    let zone = |records: &str| {
        format!("@ 3600 SOA ns admin 1 3600 600 86400 60\n@ 3600 NS ns\nns 3600 A {NOBODY}\n{records}")
    };
    let alias = "_acme-challenge.www CNAME _acme-challenge.www.validation.example.org.\n";
    for (file, text) in [("org", zone(records)), ("net", zone(alias))] {
        std::fs::write(directory.path().join(file), text).expect("a writable directory");
    }
    let yaml = format!(
        "server: {{workers: 2, state-directory: \"{}\", resolvers: \"{dns}\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{servers: [\"127.0.0.1:9\"]}}}}\n\
         keys: [{{name: {KEY}, secret: c2VjcmV0IHNlY3JldCBzZWNyZXQ=}}]\n\
         zones:\n  - {{name: example.org, file: org, update: [\"key {KEY}\"]}}\n  - {{name: example.net, file: net}}\n\
         certificates: {{dns: {{challenge: dns-01, {certificate}}}}}\n",
        directory.path().display()
    );
    Server::start_at(dns, directory, &yaml)
}

fn pebble(dns: SocketAddr) -> Pebble {
    Pebble::start(&Conduct { resolver: Some(dns), ..Conduct::default() })
}

/// Waits for the certificate; returns its names.
fn names(server: &Server, pebble: &Pebble) -> Vec<String> {
    eventually("a certificate is issued", || {
        let state = shown(server);
        assert!(
            state["failures"].as_u64() <= Some(1) && state["trouble"].is_null(),
            "{state}\n{}",
            pebble.log()
        );
        state["ends"].is_string()
    });
    let file: PathBuf = server.directory().join("certificates/dns.pem");
    let (_, facts) =
        plan::certificates::identity(&std::fs::read(file).expect("it is there")).expect("a certificate");
    facts.names
}

#[test]
fn records_go_into_zones_of_the_program_and_to_the_end_of_an_alias() {
    let dns = free_address();
    let pebble = pebble(dns);
    let directory = TempDir::new().expect("a temporary directory");
    let wanted = ["*.example.org", "example.org", "www.example.net"];
    let certificate = format!("names: [\"{}\"], authorities: [{}]", wanted.join("\", \""), pebble.item(""));
    let server = start(dns, directory, "", &certificate);
    let mut found = names(&server, &pebble);
    found.sort();
    assert_eq!(found, wanted);
    // They were there for a moment, in the zone that the alias leads to.
    eventually("the records are gone", || {
        ["_acme-challenge.example.org", "_acme-challenge.www.validation.example.org"]
            .iter()
            .all(|name| server.dig_short(&[name, "TXT"]).is_empty())
    });
    let serial = |zone: &str| server.dig_short(&[zone, "SOA"]).join("");
    assert!(!serial("example.org").contains(" 1 "), "it was changed");
    assert!(serial("example.net").contains(" 1 "), "nothing was put where the alias is");
}

#[test]
fn records_go_to_the_server_that_takes_updates() {
    let dns = free_address();
    let pebble = pebble(dns);
    let directory = TempDir::new().expect("a temporary directory");
    let item = pebble.item("");
    let certificate = format!("names: a.example.org, update: \"{dns} key {KEY}\", authorities: [{item}]");
    let server = start(dns, directory, "", &certificate);
    assert_eq!(names(&server, &pebble), ["a.example.org"]);
    assert!(server.dig_short(&["_acme-challenge.a.example.org", "TXT"]).is_empty());
}

#[test]
fn an_authority_that_caa_records_do_not_name_is_not_asked() {
    let dns = free_address();
    let pebble = pebble(dns);
    let directory = TempDir::new().expect("a temporary directory");
    let certificate = format!("names: a.example.org, authorities: [{}]", pebble.item(""));
    let server = start(dns, directory, "@ CAA 0 issue \"other.example\"\n", &certificate);
    eventually("the order fails", || shown(&server)["trouble"].is_string());
    let why = shown(&server)["trouble"].as_str().expect("a reason").to_owned();
    assert!(why.contains("the CAA records of example.org (issue \"other.example\")"), "{why}");
    assert!(why.contains(IDENTITY), "{why}");
    assert!(!pebble.log().contains("/order-plz"), "nothing was ordered\n{}", pebble.log());
    assert_eq!(server.ask(&testkit::Ask::new("example.org", Rtype::CAA)).rcode(), wire::Rcode::NOERROR);
}
