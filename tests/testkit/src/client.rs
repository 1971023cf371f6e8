//! DNS clients: our own over plain sockets, and the ones people use.

use crate::DEADLINE;
use crate::ask::{Ask, Heard, octets};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::Command;

/// Octets that may wait to be read; the kernel gives at least twice what it gives unasked.
const RECEIVE_OCTETS: usize = 1 << 20;

/// A UDP socket connected to one server.
pub struct UdpClient(UdpSocket);

impl UdpClient {
    /// Opens a socket.
    ///
    /// # Panics
    ///
    /// When loopback does not work.
    pub fn connect(server: SocketAddr) -> Self {
        Self::connect_from(
            if server.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() },
            server,
        )
    }

    /// Opens a socket with this address of our own, such as `127.0.0.2`.
    ///
    /// # Panics
    ///
    /// When it is not an address of this machine.
    pub fn connect_from(own: IpAddr, server: SocketAddr) -> Self {
        let socket = UdpSocket::bind((own, 0)).expect("a loopback socket");
        // The usual buffer holds fewer than 300 small datagrams: replies to a burst of questions
        // would be lost before they are read.
        socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_OCTETS).expect("a buffer");
        socket.connect(server).expect("a loopback address");
        socket.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        Self(socket)
    }

    /// Sends octets; an error of an earlier datagram (nobody listens) is not ours.
    pub fn send(&self, bytes: &[u8]) {
        if self.0.send(bytes).is_err() {
            drop(self.0.send(bytes));
        }
    }

    /// Receives the next datagram.
    ///
    /// # Panics
    ///
    /// When none comes before the deadline.
    pub fn receive(&self) -> Heard {
        self.try_receive().unwrap_or_else(|why| panic!("no reply over UDP: {why}"))
    }

    /// Receives the next datagram, or the error.
    pub fn try_receive(&self) -> io::Result<Heard> {
        let mut buffer = vec![0; 65536];
        let length = self.0.recv(&mut buffer)?;
        buffer.truncate(length);
        Ok(Heard::new(buffer))
    }

    /// Changes how long a receive waits.
    ///
    /// # Panics
    ///
    /// When the socket does not take it.
    pub fn set_patience(&self, patience: std::time::Duration) {
        self.0.set_read_timeout(Some(patience)).expect("a timeout");
    }

    /// Asks and waits for the reply.
    pub fn ask(&self, ask: &Ask) -> Heard {
        self.send(&ask.bytes());
        self.receive()
    }

    /// Asserts that `bytes` get no reply: a query behind them gets the first one.
    ///
    /// # Panics
    ///
    /// When they do get one.
    pub fn expect_silence(&self, bytes: &[u8]) {
        let marker = Ask::new("localhost", wire::Rtype::A).id(0xbeef);
        self.send(bytes);
        let heard = self.ask(&marker);
        assert_eq!(heard.id(), 0xbeef, "expected silence after {bytes:02x?}, got {heard:?}");
    }
}

/// A TCP connection to one server.
pub struct TcpClient(TcpStream);

impl TcpClient {
    /// Opens a connection.
    ///
    /// # Panics
    ///
    /// When nobody listens.
    pub fn connect(server: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&server, DEADLINE).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Self(stream)
    }

    /// Sends octets as they are.
    ///
    /// # Panics
    ///
    /// When the connection is gone.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("an open connection");
    }

    /// Sends queries in one write, each with its length in front.
    pub fn send<'a>(&mut self, queries: impl IntoIterator<Item = &'a [u8]>) {
        self.send_raw(&framed(queries));
    }

    /// Receives the next reply; `None` when the server closed the connection.
    ///
    /// # Panics
    ///
    /// When neither happens before the deadline.
    pub fn receive(&mut self) -> Option<Heard> {
        read_reply(&mut self.0)
    }

    /// Asks and waits for the reply.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn ask(&mut self, ask: &Ask) -> Heard {
        self.send([ask.bytes().as_slice()]);
        self.receive().expect("a reply")
    }
}

/// Returns queries with their lengths in front.
pub fn framed<'a>(queries: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for query in queries {
        bytes.extend(octets(query.len()));
        bytes.extend(query);
    }
    bytes
}

/// Reads a reply behind its length; `None` when the server closed the connection.
///
/// # Panics
///
/// When neither happens before the deadline.
pub fn read_reply(stream: &mut impl io::Read) -> Option<Heard> {
    let mut length = [0; 2];
    match stream.read_exact(&mut length) {
        Ok(()) => {}
        Err(error)
            if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) =>
        {
            return None;
        }
        Err(error) => panic!("no reply over a connection: {error}"),
    }
    let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut bytes).expect("a whole reply");
    Some(Heard::new(bytes))
}

/// Runs `dig` and returns what it printed.
///
/// # Panics
///
/// When it is not installed or fails.
pub fn dig(server: SocketAddr, arguments: &[&str]) -> String {
    let (address, port) = (format!("@{}", server.ip()), server.port().to_string());
    run("dig", &["-r", &address, "-p", &port, "+time=10", "+tries=1"], arguments)
}

/// Runs `dig` and returns what it printed; nothing if it fails.
pub(crate) fn run_dig(server: SocketAddr, arguments: &[&str]) -> Option<String> {
    let (address, port) = (format!("@{}", server.ip()), server.port().to_string());
    let output = Command::new("dig")
        .args(["-r", &address, "-p", &port, "+time=2", "+tries=1"])
        .args(arguments)
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `kdig` and returns what it printed.
///
/// # Panics
///
/// When it is not installed or fails.
pub fn kdig(server: SocketAddr, arguments: &[&str]) -> String {
    let (address, port) = (format!("@{}", server.ip()), server.port().to_string());
    run("kdig", &[&address, "-p", &port, "+timeout=10", "+retry=0"], arguments)
}

fn run(program: &str, first: &[&str], arguments: &[&str]) -> String {
    let output = Command::new(program).args(first).args(arguments).output();
    let output =
        output.unwrap_or_else(|why| panic!("cannot run {program} ({why}); `cargo xtask test` installs it"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{printed}\n{complaint}", output.status);
    printed
}

/// Asserts that what was printed has a part.
///
/// # Panics
///
/// When it has not.
#[track_caller]
pub fn contains(text: &str, part: &str) {
    assert!(text.contains(part), "expected {part:?} in:\n{text}");
}

/// Asserts that what was printed has no such part.
///
/// # Panics
///
/// When it has.
#[track_caller]
pub fn lacks(text: &str, part: &str) {
    assert!(!text.contains(part), "expected no {part:?} in:\n{text}");
}

/// Opens a connection from an address of our own, such as `127.0.1.1`.
///
/// # Errors
///
/// Nobody listens there.
///
/// # Panics
///
/// When it is not an address of this machine.
pub fn tcp_from(own: IpAddr, server: SocketAddr) -> io::Result<TcpStream> {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::new(own, 0).into()).expect("an address of this machine");
    socket.connect(&server.into())?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(DEADLINE))?;
    Ok(stream)
}
