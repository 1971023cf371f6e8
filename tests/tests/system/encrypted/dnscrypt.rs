//! DNSCrypt as a server: certificates, queries over UDP and TCP, and what comes from strangers.

use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use testkit::client::framed;
use testkit::dnscrypt_client::{
    DnscryptClient, PROVIDER, ResolverFiles, make_certificate, make_provider, stamp,
};
use testkit::{
    Answer, Ask, DEADLINE, Script, Server, Stub, TcpClient, UdpClient, eventually, forwarding, tool,
};
use wire::{Flags, OptionCode, Rcode, Rtype};

/// Octets of a usual question.
const OCTETS: usize = 512;

/// Returns the settings of a server with these files.
fn settings(given: &[&ResolverFiles], rotated: &[&ResolverFiles]) -> String {
    let list = |files: &mut dyn Iterator<Item = &Path>| {
        files.map(|file| format!("\"{}\"", file.display())).collect::<Vec<_>>().join(", ")
    };
    format!(
        "dnscrypt:\n  provider: {PROVIDER}\n  keys: [{}]\n  certificates: [{}]\n  rotated-certificates: [{}]\n",
        list(&mut given.iter().chain(rotated).map(|files| &*files.key)),
        list(&mut given.iter().map(|files| &*files.certificate)),
        list(&mut rotated.iter().map(|files| &*files.certificate)),
    )
}

fn config(stub: &Stub, more: &str) -> String {
    let listen = "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: dnscrypt}]";
    forwarding(&[stub], more).replace("listen: [\"@ADDRESS@\"]", listen)
}

/// Starts a server with one certificate.
fn start(stub: &Stub, cipher: &str, more: &str) -> (Server, ResolverFiles) {
    let directory = TempDir::new().expect("a temporary directory");
    make_provider(directory.path());
    let files = make_certificate(directory.path(), &["--cipher", cipher]);
    let more = format!("{}{more}", settings(&[&files], &[]));
    (Server::start_in(directory, &config(stub, &more)), files)
}

fn client(server: &Server, files: &ResolverFiles) -> DnscryptClient {
    DnscryptClient::new(server.another(), server.directory(), files)
}

fn stat(server: &Server, name: &str) -> u64 {
    server.stat("listen", name)
}

/// Returns the certificates that a server gives in plain DNS over UDP.
fn shown(server: &Server) -> Vec<Vec<u8>> {
    let plain = UdpClient::connect(server.another());
    plain.send(&Ask::new(PROVIDER, Rtype::TXT).edns(1232).bytes());
    let heard = plain.receive();
    assert_eq!(heard.rcode(), Rcode::NOERROR);
    // The last 124 octets of each record, which has one string.
    let bytes = heard.bytes();
    let starts = (0..bytes.len() - 4).filter(|&at| bytes[at..].starts_with(b"|DNSC"));
    starts.map(|at| bytes[at + 1..at + 125].to_vec()).collect()
}

fn check(cipher: &str) {
    let stub = Stub::start(Script::default());
    let (server, files) = start(&stub, cipher, "");
    let shown = shown(&server);
    assert_eq!(shown, [std::fs::read(&files.certificate).expect("a certificate")]);
    let client = DnscryptClient::by(server.another(), server.directory(), &shown[0]);
    for name in ["one.example.org", "two.example.org", "one.example.org"] {
        let query = Ask::new(name, Rtype::A).edns(1232).bytes();
        let heard = client.ask(&query, OCTETS);
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1), "{heard:?}");
        let replies = client.ask_stream(&[&query, &query]);
        assert_eq!(replies.len(), 2);
        assert!(replies.iter().all(|heard| heard.answers().len() == 1), "{replies:?}");
    }
    assert_eq!(stub.count("one.example.org."), 1, "the second time it comes from the cache");
    let mut plain = TcpClient::connect(server.another());
    plain.send([&Ask::new(PROVIDER, Rtype::TXT).bytes()[..]]);
    assert_eq!(plain.receive().expect("a reply").answers().len(), 1);
    assert_eq!(server.stat("engine", "queries_dnscrypt"), 9);
    assert_eq!(stat(&server, "dnscrypt_queries"), 9);
    assert_eq!(stat(&server, "dnscrypt_certificates"), 2);
}

#[test]
fn queries_over_dnscrypt_are_answered_with_xchacha20() {
    check("xchacha20");
}

#[test]
fn queries_over_dnscrypt_are_answered_with_xsalsa20() {
    check("xsalsa20");
}

/// The client is `dnscrypt`, in Go, by others.
#[test]
fn a_client_that_is_not_ours_is_answered_with_both_ciphers_over_udp_and_tcp() {
    let stub = Stub::start(Script::default());
    for (cipher, name) in [("xsalsa20", "XSalsa20Poly1305"), ("xchacha20", "XChacha20Poly1305")] {
        let (server, _files) = start(&stub, cipher, "");
        let stamp = stamp(server.directory(), server.another());
        for (network, qname) in [("udp", "one.example.org"), ("tcp", "two.example.org")] {
            let mut command = Command::new(tool("bin/dnscrypt"));
            command.args(["lookup-stamp", "-n", network, "-s", &stamp, "-d", qname, "-t", "A"]);
            let output = command.output().expect("it runs");
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{cipher}, {network}: {output:?}");
            assert!(printed.contains(name) && printed.contains("192.0.2."), "{printed}");
        }
        assert_eq!(stat(&server, "dnscrypt_queries"), 2);
    }
}

#[test]
fn an_answer_over_udp_is_never_longer_than_its_question() {
    let stub = Stub::start(Script::always(Answer::long_text(300, 2500)));
    let (server, files) = start(&stub, "xchacha20", "");
    let client = client(&server, &files);
    let query = Ask::new("long.example.org", Rtype::TXT).edns(4096).bytes();
    // The first time it comes late, then from the cache.
    for octets in [256, 256, 512, 1024] {
        let question = client.seal(&query, octets);
        client.send(&question);
        let (heard, response) = client.receive();
        assert!(heard.has(Flags::TC) && heard.answers().is_empty(), "{heard:?}");
        assert!(response <= question.len(), "{response} octets for {}", question.len());
    }
    for heard in [client.ask(&query, 4000), client.ask_stream(&[&query]).pop().expect("a reply")] {
        assert_eq!((heard.has(Flags::TC), heard.answers().len()), (false, 10));
    }
    // The longest name, and what a reply's EDNS may have.
    let label = "a".repeat(63);
    let name = format!("{label}.{label}.{label}.{}.test", "b".repeat(56));
    let query = Ask::new(&name, Rtype::A).option(OptionCode::COOKIE, &[7; 8]).bytes();
    let question = client.seal(&query, 256);
    client.send(&question);
    let (heard, response) = client.receive();
    assert!(response <= question.len(), "{response} octets for {}", question.len());
    assert_eq!(heard.rcode(), Rcode::NXDOMAIN);
}

#[test]
fn who_has_the_certificate_before_is_served_until_it_ends_but_nobody_is_given_it() {
    let stub = Stub::start(Script::default());
    let (server, old) = start(&stub, "xchacha20", "");
    let new = make_certificate(server.directory(), &[]);
    let (before, query) = (client(&server, &old), Ask::new("example.org", Rtype::A).bytes());
    let connected = client(&server, &old);
    assert_eq!(before.ask(&query, OCTETS).rcode(), Rcode::NOERROR);

    server.write_config(&config(&stub, &settings(&[&new], &[&old])));
    assert!(server.command(&["reload"]).status.success());
    assert_eq!(shown(&server), [std::fs::read(&new.certificate).expect("a certificate")]);
    assert_eq!(before.ask(&query, OCTETS).rcode(), Rcode::NOERROR);
    assert_eq!(client(&server, &new).ask(&query, OCTETS).rcode(), Rcode::NOERROR);
    assert_eq!(connected.ask_stream(&[&query]).len(), 1);

    server.write_config(&config(&stub, &settings(&[&new], &[])));
    assert!(server.command(&["reload"]).status.success());
    let refused = stat(&server, "dnscrypt_cleartext");
    before.send(&before.seal(&query, OCTETS));
    assert_eq!(client(&server, &new).ask(&query, OCTETS).rcode(), Rcode::NOERROR);
    assert!(connected.ask_stream(&[&query]).is_empty(), "the connection is closed");
    eventually("both were counted", || stat(&server, "dnscrypt_cleartext") == refused + 2);
}

#[test]
fn mistakes_with_keys_and_certificates_are_explained() {
    let directory = TempDir::new().expect("a temporary directory");
    let here = directory.path();
    make_provider(here);
    let (one, two) = (make_certificate(here, &[]), make_certificate(here, &[]));
    let check = |settings: &str| {
        std::fs::write(here.join("gannet.yaml"), settings).expect("a writable directory");
        let output = testkit::program(here).args(["check", "gannet.yaml", "--format", "line"]).output();
        let output = output.expect("the program starts");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let listen = "listen: [{at: 127.0.0.1, transport: dnscrypt}]\n";
    let contains = |text: &str, part: &str| assert!(text.contains(part), "expected {part:?} in:\n{text}");
    contains(&check(listen), "gannet.yaml:1:15: error: the provider of this listener has no name");
    let found = check(&format!("{listen}dnscrypt: {{provider: {PROVIDER}}}\n"));
    contains(&found, "error: there is no certificate for this listener");
    let good = settings(&[&one], &[&two]);
    let found = check(&format!("{listen}{good}"));
    assert!(!found.contains("error") && !found.contains("warning"), "{found}");
    contains(&check(&good), "warning: \"dnscrypt\" is not used: no listener speaks it");
    let other = ResolverFiles { key: one.key.clone(), certificate: two.certificate.clone() };
    let found = check(&format!("{listen}{}", settings(&[&other], &[])));
    contains(&found, ": its key is not there");
    contains(&found, "warning: \"");
    let wrong = ResolverFiles { key: one.certificate.clone(), certificate: one.key.clone() };
    let found = check(&format!("{listen}{}", settings(&[&wrong], &[])));
    contains(&found, "it has 124 octets");
    contains(&found, "it has 32 octets");
    let twice = settings(&[&one, &one], &[]);
    contains(&check(&format!("{listen}{twice}")), "another certificate has the same client magic");
    let found = check("listen: [{at: 127.0.0.1, transport: [tcp, dnscrypt]}]\n");
    contains(&found, "\"dnscrypt\" and \"tcp\" cannot share a port");
    std::fs::set_permissions(&one.key, Permissions::from_mode(0o644)).expect("our own file");
    let found = check(&format!("{listen}{good}"));
    contains(&found, "warning: every user of this machine can read the private key in");
}

/// Sends octets that are no query, and a good one after them: what comes first is the answer to
/// that.
#[track_caller]
fn is_silent(client: &DnscryptClient, octets: &[u8], id: u16) {
    client.send(octets);
    let marker = Ask::new("localhost", Rtype::A).id(id).bytes();
    assert_eq!(client.ask(&marker, 256).id(), id, "{octets:02x?}");
}

#[test]
fn what_is_no_query_gets_no_answer_and_others_are_still_served() {
    let stub = Stub::start(Script::default());
    let (mut server, files) = start(&stub, "xchacha20", "");
    let client = client(&server, &files);
    let query = Ask::new("example.org", Rtype::A).id(0xbad).bytes();
    let good = client.seal(&query, OCTETS);
    let mut id = 0;
    let mut silent = |octets: &[u8]| {
        id += 1;
        is_silent(&client, octets, id);
    };
    silent(b"");
    // Plain DNS that does not ask for certificates, and not quite.
    silent(&query);
    silent(&Ask::new(PROVIDER, Rtype::A).bytes());
    silent(&Ask::new("3.dnscrypt-cert.example.org", Rtype::TXT).bytes());
    // Garbage of each length, with the right magic and with another.
    for length in (0..300).chain([511, 512, 1232, 4000, 4096]) {
        let mut octets: Vec<u8> = (0..length).map(|at| (at * 7 + length) as u8).collect();
        silent(&octets);
        let begins = length.min(8);
        octets[..begins].copy_from_slice(&good[..begins]);
        silent(&octets);
    }
    // A good question that was cut, or changed in one octet, also in the client's key.
    for cut in (0..good.len()).step_by(13) {
        silent(&good[..cut]);
        let mut changed = good.clone();
        changed[cut] ^= 1;
        silent(&changed);
    }
    // One that is right but too short to be answered over UDP.
    silent(&client.seal(b"", 128));
    // A weak key, with which there is no secret.
    let mut weak = good.clone();
    weak[8..40].fill(0);
    silent(&weak);
    // The good one is answered once.
    assert_eq!(client.ask(&query, OCTETS).id(), 0xbad);
    client.send(&good);
    assert_eq!(client.receive().0.id(), 0xbad);
    silent(&good);
    assert_eq!(stat(&server, "dnscrypt_replayed"), 1);
    assert!(stat(&server, "dnscrypt_malformed") > 300);
    assert!(stat(&server, "dnscrypt_cleartext") > 300);
    // Nothing of it is in the log.
    let log = server.log();
    assert!(log.len() < 50, "{log:?}");
}

#[test]
fn a_connection_that_speaks_something_else_is_closed_and_others_are_still_served() {
    let stub = Stub::start(Script::default());
    let (server, files) = start(&stub, "xchacha20", "");
    let client = client(&server, &files);
    let query = Ask::new("example.org", Rtype::A).bytes();
    for octets in [&query[..], &[7; 300], &client.seal(&query, OCTETS)[..200]] {
        let mut stream = TcpStream::connect(server.another()).expect("a listener");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.write_all(&framed([octets])).expect("an open connection");
        let mut rest = Vec::new();
        // A reset is an end as well.
        let _ = stream.read_to_end(&mut rest);
        assert_eq!(rest, b"", "{octets:02x?}");
        assert_eq!(client.ask_stream(&[&query]).len(), 1);
    }
}

#[test]
fn access_list_rate_limit_and_conditions_hold_for_dnscrypt() {
    let stub = Stub::start(Script::default());
    let policy = "limits: {rate: {per-second: 5, burst: 10, exempt: []}}\n\
                  policy: {main: [{if: transport == dnscrypt and qname == secret.example.org, do: reject(nxdomain)}, \
                  forward(default)]}\n";
    let (server, files) = start(&stub, "xchacha20", policy);
    let client = client(&server, &files);
    let heard = client.ask(&Ask::new("secret.example.org", Rtype::A).bytes(), OCTETS);
    assert_eq!(heard.rcode(), Rcode::NXDOMAIN, "{heard:?}");
    // Datagrams count against the limit, and say TC in its place; connections do not.
    let query = Ask::new("example.org", Rtype::A).bytes();
    for _ in 0..100 {
        client.send(&client.seal(&query, OCTETS));
    }
    let streams: Vec<&[u8]> = vec![&query; 50];
    assert_eq!(client.ask_stream(&streams).len(), 50);
    eventually("most are limited", || server.stat("engine", "limited") > 50);
}

#[test]
fn a_server_of_ours_asks_another_over_dnscrypt() {
    let stub = Stub::start(Script::always(Answer::long_text(300, 2500)));
    let (server, _files) = start(&stub, "xchacha20", "");
    let stamp = stamp(server.directory(), server.another());
    let front = Server::start(&format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{servers: [\"{stamp}\"]}}}}\n"
    ));
    for number in 0..20 {
        let heard = front.ask_tcp(&Ask::new(&format!("n{number}.example.org"), Rtype::TXT).edns(1232));
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 10), "{heard:?}");
    }
    let at: SocketAddr = server.another();
    assert_eq!(server.port("dnscrypt"), at.port());
}
