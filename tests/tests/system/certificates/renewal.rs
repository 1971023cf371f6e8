//! Certificates that take the place of others: when their authority wants it, who is told, and
//! whether anybody is disturbed.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use plan::tls::CertificateFacts;
use serde_json::Value;
use tempfile::TempDir;
use testkit::tls::NAME;
use testkit::{Ask, Page, TlsClient, Web, contains, eventually, free_address};
use wire::{Rcode, Rtype};

use super::pebble::Pebble;
use super::{Places, issued, shown};
use crate::api::events::Watcher;
use crate::api::webhooks::{SECRET, is_verified};

/// Has a server that does not run believe that it got its certificate three days ago, and that its
/// authority is to be asked when to renew it.
fn make_older(directory: &Path) {
    let file = directory.join("certificates/dns.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).expect("a record")).expect("JSON");
    let issued_at = record["issued-at"].as_u64().expect("it was issued");
    record["issued-at"] = (issued_at - 3 * 24 * 60 * 60).into();
    record["ask-at"] = 0.into();
    std::fs::write(file, record.to_string()).expect("a writable directory");
}

fn certificate_of(directory: &Path) -> String {
    std::fs::read_to_string(directory.join("certificates/dns.pem")).expect("a certificate")
}

/// Returns the part of a file with a key and certificates that is the first certificate.
fn first_of(pem: &str) -> &str {
    let begins = pem.find("-----BEGIN CERTIFICATE").expect("a certificate");
    &pem[begins..]
}

#[test]
fn a_window_that_the_authority_moves_counts_and_who_watches_is_told_of_each_certificate() {
    let receiver = Web::start(|_| Page::status("204 No Content", ""));
    let hook = format!(
        "control: {{webhooks: {{hook: {{url: \"{}\", kinds: [certificate], secret: \"file:hook.key\"}}}}}}\n",
        receiver.url("/hook")
    );
    let places = Places::new();
    let pebble = Pebble::start(&places.conduct());
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("hook.key"), format!("{SECRET}\n")).expect("a writable directory");
    let root = pebble.root(directory.path());
    let certificate = format!("authorities: [{}]", pebble.item(""));
    let server = places.start_with(directory, &certificate, "", &hook);
    let first = issued(&server, places.tls, &root, &pebble);
    let mut watcher = Watcher::new(&server, "?kind=certificate&kept", "");
    let event = watcher.next("certificate");
    contains(&event, "\"name\":\"dns\"");
    contains(&event, &format!("\"names\":[\"{NAME}\",\"127.0.0.1\"],\"what\":\"ordered\",\"authority\":"));
    eventually("the webhook has it", || receiver.heard().len() == 1);

    // The window is moved away: it is asked for, and nothing is ordered.
    let (_, _, directory) = server.stop();
    make_older(directory.path());
    let pem = certificate_of(directory.path());
    pebble.move_window(first_of(&pem), ["2099-01-01T00:00:00Z", "2099-01-02T00:00:00Z"]);
    let server = places.start_with(directory, &certificate, "", &hook);
    eventually("the window is known", || {
        shown(&server)["window-begins"].as_str().is_some_and(|begins| begins.starts_with("2099-01-01T00:00"))
    });
    let state = shown(&server);
    // The certificate ends before: it is renewed all the same, in time.
    let (next, ends) = (state["next-in-s"].as_u64(), state["ends-in-s"].as_u64());
    assert!(next > Some(60 * 60) && next < ends, "{state}");
    assert_eq!(state["attempts"], 1, "{state}");

    // The window is moved to a time that is over: the certificate is renewed at once.
    let (_, _, directory) = server.stop();
    make_older(directory.path());
    pebble.move_window(first_of(&pem), ["2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"]);
    let server = places.start_with(directory, &certificate, "", &hook);
    let mut watcher = Watcher::new(&server, "?kind=certificate&kept", "");
    let renewed = watcher.next("certificate");
    contains(&renewed, "\"what\":\"renewed\",\"authority\":");
    let second = issued(&server, places.tls, &root, &pebble);
    assert_ne!(first, second);
    let ends = CertificateFacts::parse(&second).expect("a certificate").ends;
    contains(&renewed, &format!("\"ends-s\":{ends}"));
    assert_eq!(shown(&server)["attempts"], 2);
    // What the authority is told it replaces, it takes for what it gave (RFC 9773 §5).
    contains(&pebble.log(), "replac");
    eventually("the webhook has it", || receiver.heard().len() == 2);
    let heard = receiver.heard();
    contains(&heard[0].body, "\"kind\":\"certificate\",\"name\":\"dns\"");
    contains(&heard[0].body, "\"what\":\"ordered\"");
    contains(&heard[1].body, "\"what\":\"renewed\"");
    assert!(heard.iter().all(|request| is_verified(request, SECRET)));
}

/// Handshakes of each kind that are made with each certificate at least.
const HANDSHAKES_MIN: usize = 60;

/// Where a kind of client connects, with which protocol, and what it asks.
struct Kind {
    at: SocketAddr,
    protocol: &'static str,
    /// A request of HTTP, if it speaks that.
    request: Option<Vec<u8>>,
}

impl Kind {
    /// Connects and asks once; returns the certificate that it was shown, and the connection.
    fn connect(&self, root: &Path) -> (Vec<u8>, TlsClient) {
        let client = TlsClient::try_connect(self.at, root, self.protocol);
        let mut client =
            client.unwrap_or_else(|error| panic!("a handshake fails ({}): {error}", self.protocol));
        self.ask(&mut client);
        (client.certificate().expect("a certificate"), client)
    }

    /// Asks over a connection that is open.
    fn ask(&self, client: &mut TlsClient) {
        match &self.request {
            Some(request) => {
                let (status, body) = client.request(request).expect("an open connection");
                assert!(status == 200 && !body.is_empty(), "{status}");
            }
            None => {
                let heard = client.try_ask(&Ask::new(NAME, Rtype::A)).expect("an open connection");
                assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1));
            }
        }
    }
}

#[test]
fn a_certificate_is_replaced_under_load_without_a_failed_handshake_or_query() {
    let (https, api) = (free_address(), free_address());
    let places = Places::new();
    let pebble = Pebble::start(&places.conduct());
    let directory = TempDir::new().expect("a temporary directory");
    let root = pebble.root(directory.path());
    let certificate = format!("authorities: [{}]", pebble.item(""));
    let server = places.start_with(
        directory,
        &certificate,
        &format!(", {{at: \"{https}\", transport: https}}"),
        // One client makes as many handshakes as it can.
        &format!(
            "control: {{listen: [\"{api}\"]}}\n\
             limits: {{tls: {{handshakes-per-client: 10000, handshakes-per-second: 10000}}}}\n"
        ),
    );
    issued(&server, places.tls, &root, &pebble);
    let message = Ask::new(NAME, Rtype::A).bytes();
    let head = format!(
        "POST /dns-query HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/dns-message\r\nContent-Length: {}\r\n\r\n",
        message.len()
    );
    let health = format!("GET /health HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
    let kinds = [
        Kind { at: places.tls, protocol: "dot", request: None },
        Kind { at: https, protocol: "http/1.1", request: Some([head.as_bytes(), &message].concat()) },
        Kind { at: api, protocol: "http/1.1", request: Some(health.into_bytes()) },
    ];
    let mut open: Vec<(&Kind, Vec<u8>, TlsClient)> = kinds
        .iter()
        .map(|kind| {
            let (shown, client) = kind.connect(&root);
            (kind, shown, client)
        })
        .collect();
    let first = open[0].1.clone();
    assert!(open.iter().all(|(_, shown, _)| *shown == first), "all show the same certificate");
    // Of each kind: handshakes with the first certificate, and with later ones.
    let made: [[AtomicUsize; 2]; 3] = Default::default();
    let is_over = AtomicBool::new(false);
    let has = |which: usize| made.iter().all(|of| of[which].load(Ordering::Relaxed) >= HANDSHAKES_MIN);
    std::thread::scope(|scope| {
        for (kind, made) in kinds.iter().zip(&made) {
            let (root, first, is_over) = (&root, &first, &is_over);
            scope.spawn(move || {
                let mut has_new = false;
                while !is_over.load(Ordering::Relaxed) {
                    let (shown, _) = kind.connect(root);
                    assert!(!has_new || shown != *first, "the old one is not shown again");
                    has_new = shown != *first;
                    made[usize::from(has_new)].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // However it ends, the others do, too.
        let _over = Over(&is_over);
        let mut goes_on = |what: &str, holds: &dyn Fn() -> bool| {
            eventually(what, || {
                open.iter_mut().for_each(|(kind, _, client)| kind.ask(client));
                holds()
            });
        };
        goes_on("many handshakes are made", &|| has(0));
        assert!(server.command(&["certificates", "renew", "dns"]).status.success());
        goes_on("many handshakes are made with the new certificate", &|| has(1));
    });
    // Whoever was connected before goes on, with what it was shown then.
    for (kind, shown, client) in &mut open {
        kind.ask(client);
        assert_eq!(client.certificate().as_ref(), Some(&*shown));
    }
}

/// Says that it is over when this is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
