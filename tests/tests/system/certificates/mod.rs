//! The built program and an authority that gives certificates: Pebble, which asks the program
//! itself for addresses.

mod lego;
mod pebble;
mod records;
mod renewal;

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use pebble::{BINDING, Conduct, Pebble};
use serde_json::Value;
use tempfile::TempDir;
use testkit::tls::NAME;
use testkit::{Ask, Server, TlsClient, eventually, free_address};
use wire::{Rcode, Rtype};

/// Where the program listens.
struct Places {
    dns: SocketAddr,
    http: SocketAddr,
    tls: SocketAddr,
}

impl Places {
    fn new() -> Self {
        Self { dns: free_address(), http: free_address(), tls: free_address() }
    }

    /// Returns how an authority behaves that looks at these.
    fn conduct(&self) -> Conduct {
        Conduct {
            resolver: Some(self.dns),
            looks_at: Some((self.http, self.tls)),
            refuses_nonces: 15,
            ..Conduct::default()
        }
    }

    /// Starts the program with a certificate that it orders.
    fn start(&self, directory: TempDir, certificate: &str) -> Server {
        self.start_with(directory, certificate, "", "")
    }

    /// Starts the program with a certificate that it orders, `listeners` besides, and `more`
    /// settings.
    fn start_with(&self, directory: TempDir, certificate: &str, listeners: &str, more: &str) -> Server {
        let Self { http, tls, .. } = self;
        let yaml = format!(
            "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\n\
             listen: [\"@ADDRESS@\", {{at: \"{http}\", transport: http}}, {{at: \"{tls}\", transport: tls}}{listeners}]\n\
             local: {{{NAME}: 127.0.0.1}}\nupstreams: {{default: {{servers: [\"127.0.0.1:9\"]}}}}\n\
             certificates: {{dns: {{names: [{NAME}, 127.0.0.1], {certificate}}}}}\n{more}"
        );
        let yaml = yaml.replace("@DIRECTORY@", &directory.path().display().to_string());
        Server::start_at(self.dns, directory, &yaml)
    }
}

/// Returns how the certificate stands.
fn shown(server: &Server) -> Value {
    let output = server.command(&["certificates", "show", "dns", "--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    all[0].clone()
}

/// Waits until the server shows a certificate that leads to the root, and has put down that it is
/// ordered no more, which comes a moment later; returns it.
fn issued(server: &Server, tls: SocketAddr, root: &Path, pebble: &Pebble) -> Vec<u8> {
    let mut certificate = None;
    eventually("a certificate is issued", || {
        let state = shown(server);
        assert!(state["trouble"].is_null(), "{state}\n{}", pebble.log());
        let client = TlsClient::try_connect(tls, root, "dot");
        certificate = client.ok().and_then(|client| client.certificate());
        certificate.is_some() && state["is-at-work"] == false
    });
    certificate.expect("there is one")
}

#[test]
fn a_certificate_is_ordered_over_http_and_used_without_a_restart() {
    let places = Places::new();
    let pebble = Pebble::start(&places.conduct());
    let directory = TempDir::new().expect("a temporary directory");
    let root = pebble.root(directory.path());
    let item = pebble.item(", profile: default");
    let server = places.start(directory, &format!("authorities: [{item}]"));
    let first = issued(&server, places.tls, &root, &pebble);
    let state = shown(&server);
    assert_eq!((state["failures"].as_u64(), state["trouble"].as_str()), (Some(0), None), "{state}");
    assert!(state["ends-in-s"].as_i64() > Some(7_000_000), "{state}");
    // Nobody else reads the key.
    let kept = server.directory().join("certificates");
    for file in [kept.join("dns.pem"), kept.join("dns.json")] {
        let mode = std::fs::metadata(&file).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    // A connection from before goes on while the next certificate comes.
    let ask = Ask::new(NAME, Rtype::A);
    let mut client = TlsClient::connect(places.tls, &root);
    assert_eq!(client.ask(&ask).rcode(), Rcode::NOERROR);
    assert!(server.command(&["certificates", "renew", "dns"]).status.success());
    eventually("another certificate is shown", || {
        assert_eq!(client.ask(&ask).rcode(), Rcode::NOERROR);
        let other = TlsClient::connect(places.tls, &root).certificate();
        other.is_some_and(|other| other != first)
    });
    assert_eq!(client.ask(&ask).rcode(), Rcode::NOERROR);
}

#[test]
fn a_certificate_is_ordered_in_a_handshake_and_others_get_none_of_it() {
    let places = Places::new();
    let pebble = Pebble::start(&places.conduct());
    let directory = TempDir::new().expect("a temporary directory");
    let root = pebble.root(directory.path());
    let certificate =
        format!("authorities: [{}], challenge: tls-alpn-01, key-type: rsa-2048", pebble.item(""));
    let server = places.start(directory, &certificate);
    let issued = issued(&server, places.tls, &root, &pebble);
    let facts = plan::tls::CertificateFacts::parse(&issued).expect("a certificate");
    assert_eq!(facts.names, [NAME, "127.0.0.1"]);
    // No authority looks for anything now.
    let refused = TlsClient::try_connect(places.tls, &root, "acme-tls/1");
    assert!(refused.is_err());
}

#[test]
fn the_next_authority_is_asked_with_a_bound_account_and_a_profile() {
    let places = Places::new();
    let pebble = Pebble::start(&Conduct { wants_binding: true, ..places.conduct() });
    let directory = TempDir::new().expect("a temporary directory");
    let root = pebble.root(directory.path());
    let nobody = free_address();
    let (key_id, key) = BINDING;
    std::fs::write(directory.path().join("eab.key"), format!("{key}\n")).expect("a writable directory");
    let item =
        pebble.item(&format!(", profile: shortlived, eab-key-id: {key_id}, eab-key: \"file:eab.key\""));
    let server = places.start(directory, &format!("authorities: [\"https://{nobody}/dir\", {item}]"));
    issued(&server, places.tls, &root, &pebble);
    let state = shown(&server);
    let left = state["ends-in-s"].as_i64().expect("it ends");
    assert!((500_000..520_000).contains(&left), "{state}");
    assert_eq!(state["failures"], 0, "{state}");
    let key = std::fs::read_dir(server.directory().join("certificates/accounts")).expect("accounts").count();
    assert_eq!(key, 1, "the account at the authority that answered");
}
