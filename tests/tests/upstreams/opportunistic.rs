//! The built program as a resolver, and servers of zones that have encryption or not (RFC 9539).

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;
use testkit::tls::NAME;
use testkit::{Ask, Server, UdpClient, certificate, eventually};
use wire::{Rcode, Rtype};

/// Starts a server of `example.org` over UDP and TCP, and over TLS and QUIC on a port for both.
fn authority() -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    certificate(directory.path(), &[NAME]);
    let zone = "$TTL 60\n@ SOA ns admin 1 2 3 4 5\n@ NS ns\nns A 127.0.0.1\n* A 192.0.2.7\n";
    std::fs::write(directory.path().join("zone"), zone).expect("a writable directory");
    Server::start_in(
        directory,
        "server: {workers: 1, state-directory: \"@DIRECTORY@\"}\n\
         listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: tls}, {at: \"@ANOTHER@\", transport: quic}]\n\
         tls: {certificates: [{certificate: certificate.pem, key: key.pem}]}\n\
         zones: [{name: example.org, file: \"@DIRECTORY@/zone\", allow-query: any}]\n\
         policy: {main: [reject(refused)]}\n",
    )
}

/// Starts a resolver that asks it.
fn resolver(authority: &Server, word: &str, encrypted_port: u16) -> Server {
    Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         resolvers: {{default: {{zones: {{example.org: {{stub: \"{}\"}}}}, ask-loopback: true, priming: false, validation: \"off\", \
                      opportunistic-encryption: \"{word}\", encrypted-port: {encrypted_port}}}}}\n\
         policy: {{main: [recurse]}}\n",
        authority.address()
    ))
}

/// Returns how many queries it has sent so.
fn sent(server: &Server, transport: &str) -> u64 {
    let stats = server.command(&["stats", "--prometheus"]);
    let text = String::from_utf8(stats.stdout).expect("text");
    let line = format!("gannet_resolver_sent_total{{transport=\"{transport}\"}} ");
    let numbers = text.lines().filter_map(|shown| shown.strip_prefix(&line)?.parse::<u64>().ok());
    numbers.sum()
}

/// Asks for another name each time; the answer must be right.
fn ask(client: &UdpClient, number: u16) {
    let heard = client.ask(&Ask::new(&format!("n{number}.example.org"), Rtype::A).id(number));
    assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1), "{heard:?}");
}

#[test]
fn a_server_that_has_encryption_is_asked_so_once_that_is_known() {
    let authority = authority();
    for word in ["tls", "quic", "both"] {
        let server = resolver(&authority, word, authority.another().port());
        let client = UdpClient::connect(server.address());
        let mut number = 0;
        eventually("the server is asked over an encrypted connection", || {
            number += 1;
            ask(&client, number);
            sent(&server, "encrypted") >= 5
        });
        // From then on nothing goes in plain text.
        let plain = sent(&server, "udp");
        assert!(plain > 0, "the first query waits for no handshake");
        for number in 1000..1020 {
            ask(&client, number);
        }
        assert_eq!(sent(&server, "udp"), plain, "{word}");
        assert!(sent(&server, "encrypted") >= 25);
    }
}

#[test]
fn nothing_is_encrypted_by_default() {
    let authority = authority();
    let server = resolver(&authority, "off", authority.another().port());
    let client = UdpClient::connect(server.address());
    for number in 0..20 {
        ask(&client, number);
    }
    assert_eq!(sent(&server, "encrypted"), 0);
    assert!(sent(&server, "udp") >= 20);
}

/// Listens as a server with TLS would, and does this with whoever comes.
fn hostile(treat: impl Fn(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            treat(stream);
        }
    });
    port
}

#[test]
fn a_port_that_is_silent_or_hostile_delays_nobody() {
    let authority = authority();
    let held = Arc::new(Mutex::new(Vec::new()));
    let hold = move |stream| held.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    let babble = |mut stream: TcpStream| drop(stream.write_all(&[0x16, 3, 3, 0xff, 0xff, 0x42, 0x42]));
    for port in [hostile(hold), hostile(babble), hostile(drop)] {
        let server = resolver(&authority, "both", port);
        let client = UdpClient::connect(server.address());
        for number in 0..30 {
            ask(&client, number);
        }
        assert_eq!(sent(&server, "encrypted"), 0);
        assert!(sent(&server, "udp") >= 30);
    }
}
