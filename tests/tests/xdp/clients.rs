//! What runs at the client's end.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use testkit::corpus::{LOCAL, cases};
use testkit::{Ask, Heard};
use wire::{Flags, Message, Rcode, Rtype};

use crate::servers::MANY;
use crate::topology::{PATIENCE, SERVER};

/// Asks all the time, answered or not, until told to end.
pub(crate) fn load(folder: &Path) {
    let socket = socket_to(SocketAddr::new(SERVER[0].parse().expect("an address"), 53));
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    let query = Ask::new(LOCAL, Rtype::A).bytes();
    while folder.exists() && !folder.join("end").exists() {
        for _ in 0..16 {
            // Refused while nobody is there.
            let _ = socket.send(&query);
        }
        while socket.recv(&mut [0; 512]).is_ok() {}
    }
}

/// Asks for more than one packet holds: the reply is cut to what does, and whole over TCP.
pub(crate) fn ask_for_much() {
    let server = SocketAddr::new(SERVER[0].parse().expect("an address"), 53);
    let ask = Ask::new(MANY, Rtype::A).edns(1232);
    let socket = socket_to(server);
    socket.send(&ask.bytes()).expect("sent");
    let heard = Heard::new(receive(&socket));
    assert!(heard.has(Flags::TC), "{:?}", heard.answers());
    assert!(heard.bytes().len() <= 600 - 40 - 8, "{} octets", heard.bytes().len());
    assert_eq!(testkit::TcpClient::connect(server).ask(&ask).answers().len(), 50);
}

/// Asks for a name in its own zone and for one in that of others.
pub(crate) fn ask_guarded() {
    let socket = socket_to(SocketAddr::new(SERVER[0].parse().expect("an address"), 53));
    for (name, rcode, answers) in
        [("www.mine.example", Rcode::NOERROR, 1), ("www.theirs.example", Rcode::REFUSED, 0)]
    {
        socket.send(&Ask::new(name, Rtype::A).edns(1232).bytes()).expect("sent");
        let heard = Heard::new(receive(&socket));
        assert_eq!((heard.rcode(), heard.answers().len()), (rcode, answers), "{name}");
    }
}

/// Asks far more than is allowed.
pub(crate) fn offend() {
    let socket = socket_to(SocketAddr::new(SERVER[0].parse().expect("an address"), 53));
    for _ in 0..200 {
        socket.send(&Ask::new(LOCAL, Rtype::A).bytes()).expect("sent");
    }
}

/// Hears nothing over UDP, and is answered over TCP, where nobody can forge an address.
pub(crate) fn is_banned() {
    let server = SocketAddr::new(SERVER[0].parse().expect("an address"), 53);
    let socket = socket_to(server);
    socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    socket.send(&Ask::new(LOCAL, Rtype::A).bytes()).expect("sent");
    assert!(socket.recv(&mut [0; 512]).is_err(), "{server} answers");
    let heard = testkit::TcpClient::connect(server).ask(&Ask::new(LOCAL, Rtype::A));
    assert_eq!(heard.answers().len(), 1);
}

/// Is answered over UDP, sooner or later.
pub(crate) fn is_let_in() {
    let socket = socket_to(SocketAddr::new(SERVER[0].parse().expect("an address"), 53));
    socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    testkit::eventually("it is answered again", || {
        socket.send(&Ask::new(LOCAL, Rtype::A).bytes()).is_ok() && socket.recv(&mut [0; 512]).is_ok()
    });
}

/// Returns a socket on the interface's own address, or on loopback for a server there.
pub(crate) fn socket_to(server: SocketAddr) -> UdpSocket {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).expect("a socket");
    socket.connect(server).expect("a way there");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

pub(crate) fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 65_536];
    let octets = socket.recv(&mut buffer).expect("a reply");
    buffer.truncate(octets);
    buffer
}

/// Sends the whole corpus; returns all replies, one after the other with their names, TTLs made
/// equal.
pub(crate) fn record(server: SocketAddr) -> Vec<u8> {
    let marker = Ask::new("localhost", Rtype::A).id(0xbeef).bytes();
    let mut all = Vec::new();
    for case in cases() {
        let socket = socket_to(server);
        // A query that is empty or damaged may be refused by the socket itself; the marker tells.
        let _ = socket.send(&case.bytes);
        socket.send(&marker).expect("sent");
        let mut reply = receive(&socket);
        if reply.starts_with(&[0xbe, 0xef]) {
            reply.clear();
        }
        // They run down from one recording to the next.
        let places: Vec<usize> = Message::parse(&reply)
            .map(|message| {
                message.records().filter(|it| it.rtype != Rtype::OPT).map(|it| it.ttl_at).collect()
            })
            .unwrap_or_default();
        for at in places {
            reply[at..at + 4].fill(0);
        }
        all.extend(format!("\n{}: ", case.what).into_bytes());
        all.extend(reply.iter().flat_map(|octet| format!("{octet:02x}").into_bytes()));
    }
    all
}

/// Asks for what nobody has asked for, so that an upstream has to be.
pub(crate) fn miss() {
    for server in SERVER {
        let socket = socket_to(SocketAddr::new(server.parse().expect("an address"), 53));
        for number in 0..50 {
            let family = if server.contains(':') { "six" } else { "four" };
            let ask = Ask::new(&format!("m{number}.{family}.example.org"), Rtype::A).id(number);
            socket.send(&ask.bytes()).expect("sent");
        }
        let mut found: Vec<u16> = (0..50)
            .map(|_| {
                let heard = Heard::new(receive(&socket));
                assert!(heard.has(Flags::RA) && heard.answers().len() == 1, "{:?}", heard.answers());
                heard.id()
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found, (0..50).collect::<Vec<_>>());
    }
}

/// Asks again and again over the family that is not in the way, and must always be answered.
pub(crate) fn bystander() {
    let socket = socket_to(SocketAddr::new(SERVER[0].parse().expect("an address"), 53));
    for number in 0..200 {
        socket.send(&Ask::new(LOCAL, Rtype::A).id(number).bytes()).expect("sent");
        assert_eq!(Heard::new(receive(&socket)).id(), number);
    }
}

/// Asks from many ports, so that every queue gets something, over both families.
pub(crate) fn flows() {
    for server in SERVER {
        for number in 0..64 {
            let socket = socket_to(SocketAddr::new(server.parse().expect("an address"), 53));
            socket.send(&Ask::new(LOCAL, Rtype::A).id(number).bytes()).expect("sent");
            assert_eq!(Heard::new(receive(&socket)).id(), number);
        }
    }
}

/// Asks once over each family, and must hear nothing; nor over TCP, which the program lets pass.
pub(crate) fn is_dropped() {
    for server in SERVER {
        let server = SocketAddr::new(server.parse().expect("an address"), 53);
        let socket = socket_to(server);
        socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
        socket.send(&Ask::new(LOCAL, Rtype::A).bytes()).expect("sent");
        assert!(socket.recv(&mut [0; 512]).is_err(), "{server} answers");
        let mut connection = std::net::TcpStream::connect(server).expect("a connection");
        let query = Ask::new(LOCAL, Rtype::A).bytes();
        let framed = [&(query.len() as u16).to_be_bytes()[..], &query].concat();
        connection.write_all(&framed).expect("sent");
        connection.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
        let heard = connection.read(&mut [0; 14]);
        assert!(!matches!(heard, Ok(1..)), "{server} answers over TCP");
    }
}
