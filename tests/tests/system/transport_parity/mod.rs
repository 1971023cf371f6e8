//! One corpus, every transport, the same bytes: transports decide how large a reply may be, never
//! what it says.

mod allow_query;

use std::net::SocketAddr;
use std::path::Path;

use tempfile::TempDir;
use testkit::corpus::{CACHED, LOCAL, cases};
use testkit::dnscrypt_client::{DnscryptClient, PROVIDER, make_certificate, make_provider};
use testkit::streams::{ask_doq, post_h2, post_h3};
use testkit::tls::{NAME, post};
use testkit::{
    Answer, Ask, Heard, Script, Server, Stub, TcpClient, TlsClient, UdpClient, certificate, forwarding,
};
use wire::{Flags, OptionCode, Rtype};

/// Behind each case goes this query: its reply says that the case got none.
fn marker() -> Ask {
    Ask::new("localhost", Rtype::A).id(0xbeef)
}

fn over_udp(server: &Server, bytes: &[u8]) -> Option<Heard> {
    let client = UdpClient::connect(server.address());
    client.send(bytes);
    client.send(&marker().bytes());
    Some(client.receive()).filter(|heard| heard.id() != 0xbeef)
}

fn over_tcp(server: &Server, bytes: &[u8]) -> Option<Heard> {
    let mut client = TcpClient::connect(server.address());
    client.send([bytes, &marker().bytes()]);
    // A connection that sent something unreadable may be closed instead: silence as well.
    client.receive().filter(|heard| heard.id() != 0xbeef)
}

fn over_tls(server: &Server, bytes: &[u8]) -> Option<Heard> {
    let mut client = TlsClient::connect(server.another(), &server.directory().join("certificate.pem"));
    client.send([bytes, &marker().bytes()]);
    client.receive().filter(|heard| heard.id() != 0xbeef)
}

fn over_dnscrypt(client: &DnscryptClient, bytes: &[u8]) -> Option<Heard> {
    let mut replies = client.ask_stream(&[bytes, &marker().bytes()]).into_iter();
    replies.next().filter(|heard| heard.id() != 0xbeef)
}

fn over_dnscrypt_udp(client: &DnscryptClient, bytes: &[u8]) -> Option<Heard> {
    client.send(&client.seal(bytes, 1280));
    client.send(&client.seal(&marker().bytes(), 1280));
    let (heard, _) = client.receive();
    if heard.id() == 0xbeef {
        return None;
    }
    assert_eq!(client.receive().0.id(), 0xbeef);
    Some(heard)
}

/// Returns what a response of HTTP holds: there is a reply if the status says so.
fn message((status, body): (u16, Vec<u8>)) -> Option<Heard> {
    (status == 200).then(|| Heard::new(body))
}

/// What carries queries in encrypted form, with streams of their own.
const STREAMS: [(&str, &str, Carry); 4] = [
    ("DNS over QUIC", "quic", |at, trusted, bytes| ask_doq(at, trusted, bytes).map(Heard::new)),
    ("HTTP/1.1", "https", |at, trusted, bytes| message(post(at, trusted, bytes))),
    ("HTTP/2", "https", |at, trusted, bytes| message(post_h2(at, trusted, bytes))),
    ("HTTP/3", "h3", |at, trusted, bytes| message(post_h3(at, trusted, bytes))),
];

/// Asks a server at an address, believing the certificate in a file.
type Carry = fn(SocketAddr, &Path, &[u8]) -> Option<Heard>;

/// Returns what a message gets over TCP and over something else, in the same second: TTLs run down
/// and cookies have the time. Equal replies before and after mean that they did not.
fn beside_tcp(
    server: &Server,
    bytes: &[u8],
    other: impl Fn() -> Option<Heard>,
) -> (Option<Heard>, Option<Heard>) {
    let same_second = std::iter::repeat_with(|| {
        let before = over_tcp(server, bytes);
        let other = other();
        (over_tcp(server, bytes) == before).then_some((before, other))
    });
    same_second.take(50).flatten().next().expect("a second in which nothing changes")
}

/// Returns a reply as it would be without encryption: padding is for those alone who hide lengths
/// (RFC 8467).
fn without_padding(heard: Option<Heard>) -> Option<Heard> {
    let padding = heard.as_ref().and_then(|heard| heard.option(OptionCode::PADDING));
    let (Some(heard), Some(padding)) = (&heard, padding) else { return heard };
    let mut bytes = heard.bytes().to_vec();
    bytes.truncate(bytes.len() - padding.len() - 4);
    // Nothing but the OPT's own options stands behind its length.
    let rdata = (0..).find(|&at| {
        let length = [bytes[bytes.len() - at - 2], bytes[bytes.len() - at - 1]];
        usize::from(u16::from_be_bytes(length)) == at + padding.len() + 4
    });
    let at = rdata.map_or(0, |at| bytes.len() - at - 2);
    let left = u16::try_from(bytes.len() - at - 2).expect("short");
    bytes[at..at + 2].copy_from_slice(&left.to_be_bytes());
    Some(Heard::new(bytes))
}

#[test]
fn all_transports_give_the_same_bytes() {
    let stub = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::TXT => Answer::long_text(86_400, 2500),
        Rtype::AAAA => Answer::aaaa(86_400, std::net::Ipv6Addr::LOCALHOST),
        _ => Answer::a(86_400, std::net::Ipv4Addr::new(192, 0, 2, 1)),
    }));
    let directory = TempDir::new().expect("a temporary directory");
    certificate(directory.path(), &[NAME]);
    let more = format!(
        "local: {{{LOCAL}: [192.168.1.10]}}\n\
         tls: {{certificates: [{{certificate: certificate.pem, key: key.pem}}]}}\n\
         limits: {{tcp: {{connections-per-client: 10000}}, \
                   tls: {{handshakes-per-client: 10000, handshakes-per-second: 10000}}}}"
    );
    make_provider(directory.path());
    let files = make_certificate(directory.path(), &[]);
    let more = format!(
        "{more}\ndnscrypt: {{provider: {PROVIDER}, keys: \"{}\", certificates: \"{}\"}}",
        files.key.display(),
        files.certificate.display()
    );
    let listen = "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: tls}, \
                  {at: \"127.0.0.1:0\", transport: [https, h3]}, {at: \"127.0.0.1:0\", transport: quic}, \
                  {at: \"127.0.0.1:0\", transport: dnscrypt}]";
    let config = forwarding(&[&stub], &more).replace("listen: [\"@ADDRESS@\"]", listen);
    let server = Server::start_in(directory, &config);
    let ports: [SocketAddr; 4] =
        STREAMS.map(|(_, word, _)| (server.address().ip(), server.port(word)).into());
    let trusted = server.directory().join("certificate.pem");
    for qtype in [Rtype::A, Rtype::AAAA, Rtype::TXT] {
        server.ask(&Ask::new(CACHED, qtype));
        server.ask(&Ask::new(CACHED, qtype).dnssec());
    }
    let at = (server.address().ip(), server.port("dnscrypt")).into();
    let sealed = DnscryptClient::new(at, server.directory(), &files);
    for case in cases() {
        let bytes = &case.bytes;
        let (tcp, other) = beside_tcp(&server, bytes, || over_dnscrypt(&sealed, bytes));
        assert_eq!(other, tcp, "{} over DNSCrypt, a connection", case.what);
        let (tcp, other) = beside_tcp(&server, bytes, || over_dnscrypt_udp(&sealed, bytes));
        match (other, tcp) {
            (Some(other), Some(tcp)) if other.has(Flags::TC) => assert!(!tcp.has(Flags::TC), "{}", case.what),
            (other, tcp) => assert_eq!(other, tcp, "{} over DNSCrypt, datagrams", case.what),
        }
        let (tcp, tls) = beside_tcp(&server, bytes, || over_tls(&server, bytes));
        assert_eq!(without_padding(tls), tcp, "{} over TLS", case.what);
        for ((transport, _, carry), at) in STREAMS.into_iter().zip(ports) {
            let (tcp, other) = beside_tcp(&server, bytes, || carry(at, &trusted, bytes));
            assert_eq!(without_padding(other), tcp, "{} over {transport}", case.what);
        }
        let (tcp, udp) = beside_tcp(&server, bytes, || over_udp(&server, bytes));
        match (udp, tcp) {
            (Some(udp), Some(tcp)) if udp.has(Flags::TC) => {
                assert!(!tcp.has(Flags::TC), "{}", case.what);
                assert!(udp.bytes().len() < tcp.bytes().len(), "{}", case.what);
                assert_eq!((udp.id(), udp.rcode()), (tcp.id(), tcp.rcode()), "{}", case.what);
            }
            (udp, tcp) => assert_eq!(udp, tcp, "{}", case.what),
        }
    }
}
