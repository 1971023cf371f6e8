//! `allow-query` of a zone holds for every transport, and it is the client's address that counts,
//! whoever says it.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;

use tempfile::TempDir;
use testkit::client::read_reply;
use testkit::tls::NAME;
use testkit::{Ask, Heard, Script, Server, Stub, TcpClient, TlsClient, UdpClient, certificate, forwarding};
use wire::{Rcode, Rtype};

use super::STREAMS;

/// What is in each of the zones.
const ZONE: &str = "$TTL 60\n@ SOA ns admin 1 7200 600 86400 300\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n";

/// The zone of whoever comes from this machine, and that of somebody else, [`ELSEWHERE`].
const MINE: &str = "www.mine.example";
const THEIRS: &str = "www.theirs.example";
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

const LISTEN: &str = "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: tls}, \
    {at: \"127.0.0.1:0\", transport: [https, h3]}, {at: \"127.0.0.1:0\", transport: quic}]\n\
    local-sockets: [\"@DIRECTORY@/stream.sock\", {path: \"@DIRECTORY@/datagram.sock\", kind: datagram}]";

const ZONES: &str = "allow: any\n\
    zones:\n\
    \x20 - {name: mine.example, file: zone, allow-query: [127.0.0.1, '::1']}\n\
    \x20 - {name: theirs.example, file: zone, allow-query: [198.51.100.7]}\n\
    policy: {main: [zones, reject(refused)]}\n";

fn start(listen: &str, more: &str) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    certificate(directory.path(), &[NAME]);
    std::fs::write(directory.path().join("zone"), ZONE).expect("a writable directory");
    let stub_that_is_not_asked = Stub::start(Script::silent());
    let config = forwarding(&[&stub_that_is_not_asked], &format!("{ZONES}{more}"));
    Server::start_in(directory, &config.replace("listen: [\"@ADDRESS@\"]", listen))
}

fn query(name: &str) -> Vec<u8> {
    Ask::new(name, Rtype::A).edns(1232).bytes()
}

/// Asks for a name in both zones: the one is answered, the other refused.
#[track_caller]
fn check(what: &str, answered: &str, refused: &str, carry: impl Fn(&[u8]) -> Heard) {
    let heard = carry(&query(answered));
    assert_eq!(heard.rcode(), Rcode::NOERROR, "{what}: {answered}");
    assert_eq!(heard.answers(), [format!("{answered}. 60 A 192.0.2.2")], "{what}");
    let heard = carry(&query(refused));
    assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::REFUSED, 0), "{what}: {refused}");
}

#[test]
fn who_may_query_a_zone_does_not_depend_on_the_transport() {
    let server = start(LISTEN, "tls: {certificates: [{certificate: certificate.pem, key: key.pem}]}\n");
    let trusted = server.directory().join("certificate.pem");
    check("UDP", MINE, THEIRS, |query| {
        let client = UdpClient::connect(server.address());
        client.send(query);
        client.receive()
    });
    check("TCP", MINE, THEIRS, |query| {
        let mut client = TcpClient::connect(server.address());
        client.send([query]);
        client.receive().expect("a reply")
    });
    check("TLS", MINE, THEIRS, |query| {
        let mut client = TlsClient::connect(server.another(), &trusted);
        client.send([query]);
        client.receive().expect("a reply")
    });
    for (transport, word, carry) in STREAMS {
        let at = SocketAddr::new(server.address().ip(), server.port(word));
        check(transport, MINE, THEIRS, |query| carry(at, &trusted, query).expect("a reply"));
    }
    // Who may write to the file of a Unix socket may ask for everything: there is no address to
    // look at.
    let over_stream = |query: &[u8]| {
        let mut stream = UnixStream::connect(server.directory().join("stream.sock")).expect("a socket");
        stream.set_read_timeout(Some(testkit::DEADLINE)).expect("a timeout");
        let framed = [&(query.len() as u16).to_be_bytes()[..], query].concat();
        stream.write_all(&framed).expect("an open connection");
        read_reply(&mut stream).expect("a reply")
    };
    for name in [MINE, THEIRS] {
        let expect = [format!("{name}. 60 A 192.0.2.2")];
        assert_eq!(over_stream(&query(name)).answers(), expect, "a Unix socket");
        assert_eq!(ask_by_datagram(server.directory(), &query(name)).answers(), expect, "datagrams");
    }
}

fn ask_by_datagram(directory: &Path, query: &[u8]) -> Heard {
    let own = TempDir::new().expect("a temporary directory");
    let socket = UnixDatagram::bind(own.path().join("client")).expect("a writable directory");
    socket.set_read_timeout(Some(testkit::DEADLINE)).expect("a timeout");
    socket.send_to(query, directory.join("datagram.sock")).expect("sent");
    let mut reply = vec![0; 65_535];
    let octets = socket.recv(&mut reply).expect("a reply");
    reply.truncate(octets);
    Heard::new(reply)
}

/// Returns a PROXY v2 header: TCP is 1, UDP is 2.
fn proxy_header(transport: u8) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21".to_vec();
    header.extend([0x10 | transport, 0, 12]);
    header.extend(ELSEWHERE.octets());
    header.extend([192, 0, 2, 53, 0x12, 0x34, 0, 53]);
    header
}

#[test]
fn behind_a_proxy_it_is_the_proxys_client_that_may_query_a_zone() {
    let listen = "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", proxy-protocol-from: [127.0.0.0/8]}, \
                  {at: \"127.0.0.1:0\", transport: http, forwarded-from: 127.0.0.1}]";
    let server = start(listen, "");
    check("PROXY over UDP", THEIRS, MINE, |query| {
        let client = UdpClient::connect(server.another());
        client.send(&[&proxy_header(2)[..], query].concat());
        client.receive()
    });
    check("PROXY over TCP", THEIRS, MINE, |query| {
        let mut client = TcpClient::connect(server.another());
        client.send_raw(&proxy_header(1));
        client.send([query]);
        client.receive().expect("a reply")
    });
    let at = SocketAddr::new(server.address().ip(), server.port("http"));
    check("a forwarded request of HTTP", THEIRS, MINE, |query| {
        let mut stream = std::net::TcpStream::connect(at).expect("a connection");
        stream.set_read_timeout(Some(testkit::DEADLINE)).expect("a timeout");
        let head = format!(
            "POST /dns-query HTTP/1.1\r\nHost: {NAME}\r\nX-Forwarded-For: {ELSEWHERE}\r\n\
             Content-Type: application/dns-message\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            query.len()
        );
        stream.write_all(&[head.as_bytes(), query].concat()).expect("an open connection");
        let mut response = Vec::new();
        std::io::Read::read_to_end(&mut stream, &mut response).expect("a whole response");
        let end = response.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
        Heard::new(response.split_off(end + 4))
    });
}
