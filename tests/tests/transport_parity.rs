//! One corpus, every transport, the same bytes: transports decide how large a reply may be, never what it says.

use tempfile::TempDir;
use testkit::corpus::{CACHED, LOCAL, cases};
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

fn over_https(server: &Server, port: u16, bytes: &[u8]) -> Option<Heard> {
    let trusted = server.directory().join("certificate.pem");
    let (status, body) = post((server.address().ip(), port).into(), &trusted, bytes);
    (status == 200).then(|| Heard::new(body))
}

/// Returns a reply as it would be without encryption: padding is for those alone who hide lengths (RFC 8467).
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
         limits: {{tls: {{handshakes-per-client: 10000}}}}"
    );
    let config = forwarding(&[&stub], &more)
        .replace("listen: [\"@ADDRESS@\"]", "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: tls}, {at: \"127.0.0.1:0\", transport: https}]");
    let server = Server::start_in(directory, &config);
    let https = server.port("https");
    for qtype in [Rtype::A, Rtype::AAAA, Rtype::TXT] {
        server.ask(&Ask::new(CACHED, qtype));
        server.ask(&Ask::new(CACHED, qtype).dnssec());
    }
    for case in cases() {
        // TTLs run down between two replies: equal replies before and after mean that they did not.
        let same_second = std::iter::repeat_with(|| {
            let before = over_udp(&server, &case.bytes);
            let tcp = over_tcp(&server, &case.bytes);
            let tls = over_tls(&server, &case.bytes);
            let over_https = over_https(&server, https, &case.bytes);
            (over_udp(&server, &case.bytes) == before).then_some((before, tcp, tls, over_https))
        });
        let found = same_second.take(20).flatten().next();
        let (udp, tcp, tls, over_https) =
            found.unwrap_or_else(|| panic!("{}: UDP replies differ from each other", case.what));
        assert_eq!(without_padding(tls), tcp, "{} over TLS", case.what);
        assert_eq!(without_padding(over_https), tcp, "{} over HTTPS", case.what);
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
