//! Clients that ask for much and take nothing: what they cost, and what others get meanwhile.

use std::net::{Ipv4Addr, SocketAddr};

use tempfile::TempDir;
use testkit::streams::{Hoarder, RawHttp2, ask_doq, post_h2, post_h3};
use testkit::tls::{NAME, responses_in_records};
use testkit::{Ask, Heard, Server, certificate, eventually};
use wire::Rtype;

use super::TLS;

/// Octets by which the server may grow because of clients that take nothing.
const GROWTH_OCTETS_MAX: u64 = 64 << 20;
/// Octets that may be left of that when they are gone.
const LEFT_OCTETS_MAX: u64 = 24 << 20;
/// Connections of a client over HTTP/2, and queries on each.
const HTTP2: (usize, u32) = (200, 127);
/// The same over QUIC, where each costs the test a handshake.
const QUIC: (usize, usize) = (40, 100);
/// Those of a client that leaves before it has its answers.
const LEAVING: (usize, usize) = (10, 50);

/// Starts a server with a zone that has a record set of 60 kB.
fn start() -> Server {
    start_with("")
}

/// The same with more settings.
fn start_with(more: &str) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    certificate(directory.path(), &[NAME, "127.0.0.1"]);
    let mut zone = "$TTL 300\n@ SOA ns root 1 1h 1h 1w 1h\n@ NS ns\nns A 192.0.2.1\n".to_owned();
    for number in 0..230 {
        zone.push_str(&format!("big TXT \"{number:03}{}\"\n", "x".repeat(252)));
    }
    std::fs::write(directory.path().join("example.org.zone"), zone).expect("a writable directory");
    let yaml = format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\n\
         listen: [\"@ADDRESS@\", {{at: \"127.0.0.1:0\", transport: https}}, {{at: \"127.0.0.1:0\", transport: http}}, \
         {{at: \"127.0.0.1:0\", transport: [quic, h3]}}]\n\
         zones: [{{name: example.org, file: \"@DIRECTORY@/example.org.zone\"}}]\npolicy: {{main: [zones]}}\n{TLS}\n{more}"
    );
    Server::start_in(directory, &yaml)
}

fn at(server: &Server, transport: &str) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, server.port(transport)).into()
}

/// Returns how much memory the server has.
fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

fn big() -> Vec<u8> {
    Ask::new("big.example.org", Rtype::TXT).id(0).bytes()
}

/// Asserts that this reply is the record set of 60 kB.
#[track_caller]
fn is_big(reply: &[u8]) {
    assert_eq!(Heard::new(reply.to_vec()).answers().len(), 230);
}

/// Asserts that a client that takes its answers gets them over each transport.
fn others_are_served(server: &Server) {
    let trusted = server.directory().join("certificate.pem");
    for _ in 0..5 {
        let (status, body) = post_h2(at(server, "https"), &trusted, &big());
        assert_eq!(status, 200);
        is_big(&body);
        is_big(&ask_doq(at(server, "quic"), &trusted, &big()).expect("a reply"));
        let (status, body) = post_h3(at(server, "h3"), &trusted, &big());
        assert_eq!(status, 200);
        is_big(&body);
    }
}

/// Asserts that the server has not grown by more than it may.
#[track_caller]
fn has_grown_little(server: &Server, before: u64) {
    let grown = resident(server).saturating_sub(before);
    assert!(grown <= GROWTH_OCTETS_MAX, "{} MiB more", grown >> 20);
}

#[test]
fn clients_of_http2_that_take_nothing_cost_little_and_are_ended_whatever_else_they_say() {
    let server = start();
    others_are_served(&server);
    let before = resident(&server);
    let mut hoarders = Vec::new();
    for _ in 0..HTTP2.0 {
        let mut hoarder = RawHttp2::connect(at(&server, "http"), 0).expect("a connection");
        // It may be ended already while it asks.
        let _ = hoarder.ask(HTTP2.1, &big());
        hoarders.push(hoarder);
    }
    for hoarder in &mut hoarders {
        let _ = hoarder.send(6, 0, 0, &[7; 8]);
    }
    // The answer to a ping says that everything before it was read.
    let asked = hoarders.iter_mut().filter_map(|hoarder| hoarder.wait_for(6)).count();
    assert!(asked > 0, "none got as far");
    has_grown_little(&server, before);
    others_are_served(&server);
    has_grown_little(&server, before);
    eventually("all are ended that take an octet now and then, and send pings", || {
        hoarders.retain_mut(|hoarder| {
            let _ = hoarder.send(6, 0, 0, &[7; 8]);
            let _ = hoarder.send(8, 0, 1, &1_u32.to_be_bytes());
            hoarder.is_open()
        });
        hoarders.is_empty()
    });
    let left = || resident(&server).saturating_sub(before);
    eventually("the memory is given back", || left() <= LEFT_OCTETS_MAX);
    assert!(server.stat("listen", "tcp-closed-slow-reader") >= HTTP2.0 as u64);
    others_are_served(&server);
}

#[test]
fn a_client_of_http2_with_small_windows_gets_all_its_answers() {
    let server = start();
    let mut client = RawHttp2::connect(at(&server, "http"), 1000).expect("a connection");
    client.ask(100, &big()).expect("an open connection");
    // 6 MB of answers, of which the server may keep a fraction; all are taken, a piece at a time,
    // and as asked.
    let mut left: std::collections::HashMap<u32, ()> = (0..100).map(|number| (2 * number + 1, ())).collect();
    while !left.is_empty() {
        let (kind, flags, stream, len) = client.next_frame().expect("an open connection");
        if kind == 0 {
            let more = (len as u32).to_be_bytes();
            if len > 0 {
                client.send(8, 0, 0, &more).expect("an open connection");
            }
            if flags & 1 != 0 {
                left.remove(&stream);
            } else if len > 0 {
                client.send(8, 0, stream, &more).expect("an open connection");
            }
        }
        assert_ne!((kind, left.contains_key(&stream)), (3, true), "stream {stream} was reset");
    }
}

#[test]
fn each_of_several_answers_over_http2_is_a_tls_record_of_its_own() {
    let server = start();
    let trusted = server.directory().join("certificate.pem");
    let small = Ask::new("ns.example.org", Rtype::A).id(0).bytes();
    assert_eq!(responses_in_records(at(&server, "https"), &trusted, 10, &small), [1; 10]);
}

/// Asserts that a client over QUIC that takes nothing costs little and is ended.
fn quic_is_bounded(protocol: &'static str, left_octets_max: u64) {
    let server = start();
    others_are_served(&server);
    let before = resident(&server);
    let trusted = server.directory().join("certificate.pem");
    let transport = if protocol == "doq" { "quic" } else { "h3" };
    let hoarder = Hoarder::start(at(&server, transport), &trusted, protocol, QUIC, &big());
    eventually("all is asked", || hoarder.asked() == QUIC.0);
    has_grown_little(&server, before);
    others_are_served(&server);
    has_grown_little(&server, before);
    eventually("all are ended, although they acknowledge", || hoarder.open() == 0);
    eventually("the memory is given back", || resident(&server).saturating_sub(before) <= left_octets_max);
    assert!(server.stat("listen", "tcp-closed-slow-reader") >= QUIC.0 as u64);
    others_are_served(&server);
}

#[test]
fn clients_of_dns_over_quic_that_take_nothing_cost_little_and_are_ended() {
    quic_is_bounded("doq", LEFT_OCTETS_MAX);
}

#[test]
fn clients_of_http3_that_take_nothing_cost_little_and_are_ended() {
    quic_is_bounded("h3", LEFT_OCTETS_MAX);
}

/// A connection that ends before its answers were taken gives everything back that it had: places
/// for connections, and memory.
#[test]
fn clients_of_dns_over_quic_that_leave_early_keep_nothing() {
    let server = start_with(&format!("limits: {{tcp: {{connections: {}}}}}\n", 2 * LEAVING.0));
    others_are_served(&server);
    let before = resident(&server);
    let trusted = server.directory().join("certificate.pem");
    for _ in 0..5 {
        let leaving = Hoarder::start(at(&server, "quic"), &trusted, "doq", LEAVING, &big());
        eventually("all is asked", || leaving.asked() == LEAVING.0);
        drop(leaving);
        others_are_served(&server);
        has_grown_little(&server, before);
    }
    eventually("the memory is given back", || resident(&server).saturating_sub(before) <= LEFT_OCTETS_MAX);
}
