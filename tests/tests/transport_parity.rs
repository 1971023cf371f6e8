//! One corpus, every transport, the same bytes: transports decide how large a reply may be, never what it says.

use testkit::corpus::{CACHED, LOCAL, cases};
use testkit::{Answer, Ask, Heard, Script, Server, Stub, TcpClient, UdpClient, forwarding};
use wire::{Flags, Rtype};

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

#[test]
fn udp_and_tcp_give_the_same_bytes() {
    let stub = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::TXT => Answer::long_text(86_400, 2500),
        Rtype::AAAA => Answer::aaaa(86_400, std::net::Ipv6Addr::LOCALHOST),
        _ => Answer::a(86_400, std::net::Ipv4Addr::new(192, 0, 2, 1)),
    }));
    let server = Server::start(&forwarding(&[&stub], &format!("local: {{{LOCAL}: [192.168.1.10]}}")));
    for qtype in [Rtype::A, Rtype::AAAA, Rtype::TXT] {
        server.ask(&Ask::new(CACHED, qtype));
        server.ask(&Ask::new(CACHED, qtype).dnssec());
    }
    for case in cases() {
        // TTLs run down between two replies: equal replies before and after mean that they did not.
        let same_second = std::iter::repeat_with(|| {
            let before = over_udp(&server, &case.bytes);
            let tcp = over_tcp(&server, &case.bytes);
            (over_udp(&server, &case.bytes) == before).then_some((before, tcp))
        });
        let found = same_second.take(20).flatten().next();
        let (udp, tcp) = found.unwrap_or_else(|| panic!("{}: UDP replies differ from each other", case.what));
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
