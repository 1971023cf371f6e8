//! A SOCKS5 proxy (RFC 1928) for the user "me" with the password "secret", or for everybody.

use crate::DEADLINE;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How often a thread looks whether it should stop.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// What a proxy did.
#[derive(Debug, Default)]
struct Done {
    connections: AtomicUsize,
    associations: AtomicUsize,
    datagrams: AtomicUsize,
}

/// A running proxy. It runs until the test ends.
pub struct Proxy {
    address: SocketAddr,
    done: Arc<Done>,
}

impl Proxy {
    /// Starts one that only connects.
    ///
    /// # Panics
    ///
    /// When loopback has no free port.
    pub fn connecting() -> Self {
        Self::start(false)
    }

    /// Starts one that relays datagrams, too.
    ///
    /// # Panics
    ///
    /// When loopback has no free port.
    pub fn relaying() -> Self {
        Self::start(true)
    }

    fn start(relays: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        let address = listener.local_addr().expect("a bound socket");
        let done = Arc::new(Done::default());
        let shared = Arc::clone(&done);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let done = Arc::clone(&shared);
                std::thread::spawn(move || drop(serve(stream, relays, &done)));
            }
        });
        Self { address, done }
    }

    /// Returns where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how many connections it made.
    pub fn connections(&self) -> usize {
        self.done.connections.load(Ordering::Relaxed)
    }

    /// Returns for how many clients it relayed datagrams.
    pub fn associations(&self) -> usize {
        self.done.associations.load(Ordering::Relaxed)
    }

    /// Returns how many datagrams it relayed to servers.
    pub fn datagrams(&self) -> usize {
        self.done.datagrams.load(Ordering::Relaxed)
    }
}

fn serve(mut client: TcpStream, relays: bool, done: &Done) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut greeting = [0; 3];
    client.read_exact(&mut greeting)?;
    client.write_all(&[5, greeting[2]])?;
    if greeting[2] == 2 {
        let mut login = [0; 11];
        client.read_exact(&mut login)?;
        let is_right = &login == b"\x01\x02me\x06secret";
        client.write_all(&[1, u8::from(!is_right)])?;
        if !is_right {
            return Ok(());
        }
    }
    let mut request = [0; 10];
    client.read_exact(&mut request)?;
    let [5, command, 0, 1, a, b, c, d, p, q] = request else { return Ok(()) };
    match command {
        1 => {
            let to = SocketAddr::from((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([p, q])));
            connect(client, to, done)
        }
        3 if relays => relay(client, done),
        // RFC 1928 §6: it does not know this command.
        _ => client.write_all(&[5, 7, 0, 1, 0, 0, 0, 0, 0, 0]),
    }
}

fn connect(mut client: TcpStream, to: SocketAddr, done: &Done) -> io::Result<()> {
    let Ok(server) = TcpStream::connect(to) else { return client.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]) };
    server.set_nodelay(true)?;
    done.connections.fetch_add(1, Ordering::Relaxed);
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || io::copy(&mut from_client, &mut to_server));
    let (mut from_server, mut to_client) = (server, client);
    io::copy(&mut from_server, &mut to_client).map(drop)
}

/// Relays datagrams of one client for as long as its connection is open (RFC 1928 §7).
fn relay(mut client: TcpStream, done: &Done) -> io::Result<()> {
    let ours = UdpSocket::bind("127.0.0.1:0")?;
    let out = UdpSocket::bind("127.0.0.1:0")?;
    for socket in [&ours, &out] {
        socket.set_read_timeout(Some(LOOK_EVERY))?;
    }
    done.associations.fetch_add(1, Ordering::Relaxed);
    let [p, q] = ours.local_addr()?.port().to_be_bytes();
    // Its own address is not said, only the port: so do many.
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, p, q])?;
    let is_over = AtomicBool::new(false);
    let whose = std::sync::Mutex::new(None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            client.set_read_timeout(Some(DEADLINE)).ok();
            // Nothing comes but the end.
            drop(client.read(&mut [0]));
            is_over.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            let mut buffer = [0; 65_535];
            while !is_over.load(Ordering::Relaxed) {
                let Ok((octets, from)) = ours.recv_from(&mut buffer) else { continue };
                *whose.lock().expect("nobody panics") = Some(from);
                let [0, 0, 0, 1, a, b, c, d, p, q, payload @ ..] = &buffer[..octets] else { continue };
                let to = SocketAddr::from((Ipv4Addr::new(*a, *b, *c, *d), u16::from_be_bytes([*p, *q])));
                done.datagrams.fetch_add(1, Ordering::Relaxed);
                drop(out.send_to(payload, to));
            }
        });
        let mut buffer = [0; 65_535];
        while !is_over.load(Ordering::Relaxed) {
            let Ok((octets, SocketAddr::V4(from))) = out.recv_from(&mut buffer) else { continue };
            let header =
                [&[0, 0, 0, 1][..], &from.ip().octets(), &from.port().to_be_bytes(), &buffer[..octets]]
                    .concat();
            if let Some(to) = *whose.lock().expect("nobody panics") {
                drop(ours.send_to(&header, to));
            }
        }
    });
    Ok(())
}
