//! Each starter configuration starts, and does what its comments say.
//!
//! The tests replace addresses that only an operator's network has, and nothing else.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{PATIENCE, Place, Server, Upstream, text};

/// Lines that a starter may have.
const LINES_MAX: usize = 40;

/// Returns what `gannet config starter` prints, with each text of `replacements` replaced.
fn starter(purpose: &str, replacements: &[(&str, &str)]) -> String {
    let (code, mut yaml, stderr) = text(&Place::new().run(&["config", "starter", purpose]));
    assert_eq!(code, 0, "{stderr}");
    assert!(yaml.lines().count() < LINES_MAX, "{purpose} has {} lines", yaml.lines().count());
    for (theirs, ours) in replacements {
        assert!(yaml.contains(theirs), "the starter {purpose} has no {theirs:?}");
        yaml = yaml.replace(theirs, ours);
    }
    yaml
}

/// Starts a server in a folder with these files, with its state in the folder `state`.
fn start(yaml: &str, files: &[(&str, &str)]) -> Server {
    let place = Place::new();
    for (name, text) in files {
        std::fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
        place.write(name, text);
    }
    let yaml = match yaml.contains("server: {") {
        true => yaml.replace("server: {", "server: {state-directory: state, "),
        false => format!("{yaml}server: {{state-directory: state}}\n"),
    };
    let file = place.write("gannet.yaml", &yaml);
    Server::start_with(place, |command| {
        command.arg("run").arg("-c").arg(&file);
    })
}

/// Returns the status line and the rest of what a query brings.
fn query(server: &Server, arguments: &[&str]) -> String {
    text(&server.run(&[&["query"], arguments].concat())).1
}

/// Repeats a query until its reply contains `expected`.
fn eventually(server: &Server, arguments: &[&str], expected: &str) {
    let begin = Instant::now();
    loop {
        let reply = query(server, arguments);
        if reply.contains(expected) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "no {expected} in {reply}");
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// Starts a web server that has `page` at every path.
fn web(page: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let _ = connection.read(&mut [0; 4096]);
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", page.len());
            let _ = connection.write_all(format!("{head}{page}").as_bytes());
        }
    });
    address
}

#[test]
fn home_blocks_fetched_lists_names_devices_and_forwards() {
    let upstream = Upstream::start().address.to_string();
    let list = format!("http://{}/hosts", web("0.0.0.0 ads.example\n0.0.0.0 needed.example\n"));
    let yaml = starter(
        "home",
        &[
            ("\"0.0.0.0:53\", \"[::]:53\"", "\"127.0.0.1:0\""),
            (
                "\"tls://9.9.9.9#dns.quad9.net\", \"tls://149.112.112.112#dns.quad9.net\"",
                &format!("\"{upstream}\""),
            ),
            ("https://raw.githubusercontent.com/StevenBlack/hosts/master/hosts", &list),
        ],
    );
    let server = start(&yaml, &[]);
    assert!(query(&server, &["www.example.org"]).contains("192.0.2.1"));
    assert!(query(&server, &["printer.home.arpa"]).contains("192.168.1.20"));
    assert!(query(&server, &["192.168.1.20"]).contains("printer.home.arpa."));
    eventually(&server, &["ads.example"], "Blocked");
    assert!(query(&server, &["needed.example"]).contains("192.0.2.1"));
    let begin = Instant::now();
    while !text(&server.run(&["log"])).1.contains("ads.example") {
        assert!(begin.elapsed() < PATIENCE, "the query was not recorded");
        thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn office_asks_internal_servers_for_internal_names_and_limits_guests() {
    let (public, internal) = (Upstream::start().address.to_string(), Upstream::start().address.to_string());
    let listen = ("\"0.0.0.0:53\", \"[::]:53\"", "\"127.0.0.1:0\"");
    let metrics = ("metrics: {listen: 127.0.0.1}", "metrics: {listen: \"127.0.0.1:0\"}");
    let (public, internal) = (format!("\"{public}\""), format!("\"{internal}\""));
    // Nobody answers at the public address, and then nobody at the internal one.
    let only_internal = [
        listen,
        metrics,
        ("9.9.9.9, 149.112.112.112", "\"127.0.0.1:1\""),
        ("10.0.0.53, 10.0.1.53", &internal),
    ];
    let server = start(&starter("office", &only_internal), &[]);
    assert!(query(&server, &["files.corp.example"]).contains("192.0.2.1"));
    assert!(query(&server, &["1.2.3.10.in-addr.arpa"]).contains("192.0.2.1"));
    assert!(query(&server, &["www.example.org"]).contains("SERVFAIL"));

    let only_public = [
        listen,
        metrics,
        ("9.9.9.9, 149.112.112.112", &public),
        ("10.0.0.53, 10.0.1.53", "\"127.0.0.1:1\""),
        ("192.168.50.0/24", "127.0.0.1"),
    ];
    let server = start(&starter("office", &only_public), &[]);
    assert!(query(&server, &["www.example.org"]).contains("192.0.2.1"));
    assert!(query(&server, &["files.corp.example"]).contains("SERVFAIL"));
    assert!(query(&server, &["www.social.example"]).contains("REFUSED"), "this client is a guest");
    assert!(text(&server.run(&["cache", "dump"])).1.contains("main.cache"));
    assert!(text(&server.stop()).2.contains("metrics can be fetched address=127.0.0.1:"));
}

#[test]
fn authoritative_signs_and_transfers_its_zones() {
    let zone =
        "$TTL 1h\n@ SOA ns1 hostmaster 1 2h 15m 14d 5m\n@ NS ns1\n@ NS ns2.example.net.\nns1 A 192.0.2.1\n";
    let primary = start(
        "listen: [\"127.0.0.1:0\"]\nzones: [{name: example.net, file: example.net.zone, transfer: 127.0.0.1}]\n",
        &[("example.net.zone", zone)],
    );
    let yaml = starter(
        "authoritative",
        &[
            ("\"0.0.0.0:53\", \"[::]:53\"", "\"127.0.0.1:0\""),
            ("198.51.100.2", "127.0.0.1"),
            ("primaries: 203.0.113.1", &format!("primaries: \"{}\"", primary.address())),
        ],
    );
    let server = start(&yaml, &[("zones/example.org.zone", zone)]);
    eventually(&server, &["ns1.example.org", "+dnssec"], "RRSIG");
    let reply = query(&server, &["ns1.example.org"]);
    assert!(reply.contains("192.0.2.1") && reply.contains(" aa"), "{reply}");
    eventually(&server, &["ns1.example.net"], "192.0.2.1");
    let transfer = query(&server, &["example.org", "AXFR"]);
    assert!(transfer.contains("NSEC") && transfer.contains("DNSKEY"), "{transfer}");
    assert!(query(&server, &["www.example.com"]).contains("REFUSED"), "it does not recurse");
    let (code, stdout, stderr) = text(&server.run(&["zone", "keys", "status", "example.org"]));
    assert!(code == 0 && stdout.contains(" DS "), "{stdout}{stderr}");
}

#[test]
fn forwarder_answers_this_machine_and_keeps_its_cache() {
    let upstream = Upstream::start().address.to_string();
    let yaml = starter(
        "forwarder",
        &[
            ("[127.0.0.1, \"::1\"]", "[\"127.0.0.1:0\"]"),
            ("tls://9.9.9.9#dns.quad9.net", &upstream),
            ("tls://149.112.112.112#dns.quad9.net", "127.0.0.1:1"),
            ("      - \"https://1.1.1.1/dns-query\"\n", ""),
        ],
    );
    let server = start(&yaml, &[]);
    assert!(query(&server, &["www.example.org"]).contains("192.0.2.1"));
    let place = server.stop_in_place();
    let server = Server::start_with(place, |command| {
        command.args(["run", "-c", "gannet.yaml"]);
    });
    assert!(text(&server.run(&["cache", "stats"])).1.starts_with("main: 1 answers in "));
}

#[test]
fn the_manual_shows_the_starters() {
    let index = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/manual/README.md");
    let index = std::fs::read_to_string(index).unwrap();
    for purpose in ["home", "office", "authoritative", "forwarder"] {
        let shown = format!("```yaml\n{}```\n", starter(purpose, &[]));
        assert!(index.contains(&shown), "{purpose}: docs/manual/README.md shows another starter");
    }
}

#[test]
fn starters_pass_the_checker() {
    for purpose in ["home", "office", "authoritative", "forwarder"] {
        let place = Place::new();
        place.write("gannet.yaml", &starter(purpose, &[]));
        let (code, stdout, _) = text(&place.run(&["check", "gannet.yaml"]));
        assert_eq!(code, 0, "{stdout}");
        // The operator brings the zone file, and the list is fetched later.
        let later = ["was not fetched yet", "zones/example.org.zone"];
        let mut warnings = stdout.lines().filter(|line| line.contains(": warning: "));
        assert!(warnings.all(|line| later.iter().any(|later| line.contains(later))), "{purpose}: {stdout}");
    }
    assert_eq!(text(&Place::new().run(&["config", "starter", "pigeons"])).0, 2);
}
