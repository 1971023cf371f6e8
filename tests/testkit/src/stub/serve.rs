//! The threads of a stub: datagrams and connections in, replies out when they are due.

use std::collections::BinaryHeap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustls::{HandshakeKind, ServerConnection, StreamOwned};

use super::{Shared, locked};
use crate::ask::octets;

/// How often a thread that waits for packets looks whether it should stop.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// A reply that is not due yet; the earliest is the greatest.
struct Pending<T> {
    due: Instant,
    number: u64,
    what: T,
}

impl<T> PartialEq for Pending<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl<T> Eq for Pending<T> {}
impl<T> PartialOrd for Pending<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Pending<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

/// Replies that wait for their time.
struct Later<T> {
    heap: BinaryHeap<Pending<T>>,
    number: u64,
}

impl<T> Later<T> {
    fn new() -> Self {
        Self { heap: BinaryHeap::new(), number: 0 }
    }

    fn push(&mut self, delay: Duration, what: T) {
        self.number += 1;
        self.heap.push(Pending { due: Instant::now() + delay, number: self.number, what });
    }

    fn pop_due(&mut self) -> Option<T> {
        if self.heap.peek()?.due > Instant::now() {
            return None;
        }
        self.heap.pop().map(|pending| pending.what)
    }

    /// Returns how long to wait for packets; never zero, which sockets read as "for ever".
    fn patience(&self) -> Duration {
        let next = self
            .heap
            .peek()
            .map_or(LOOK_EVERY, |pending| pending.due.saturating_duration_since(Instant::now()));
        next.clamp(Duration::from_micros(100), LOOK_EVERY)
    }
}

pub(super) fn serve_udp(socket: &UdpSocket, shared: &Shared, stop: &AtomicBool) {
    let mut later = Later::new();
    let mut buffer = [0; 65536];
    let mut patience = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        while let Some((reply, to)) = later.pop_due() {
            let reply: Vec<u8> = reply;
            drop(socket.send_to(&reply, to));
        }
        if later.patience() != patience {
            patience = later.patience();
            drop(socket.set_read_timeout(Some(patience)));
        }
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let (delay, replies) = shared.respond(&buffer[..length], from, false);
        for reply in replies {
            if delay.is_zero() {
                drop(socket.send_to(&reply, from));
            } else {
                later.push(delay, (reply, from));
            }
        }
    }
}

pub(super) fn accept_tcp(listener: &TcpListener, shared: &Arc<Shared>, stop: &Arc<AtomicBool>) {
    let mut threads = Vec::new();
    while let Ok((stream, from)) = listener.accept() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        *locked(&shared.connections) += 1;
        let (shared, stop) = (Arc::clone(shared), Arc::clone(stop));
        threads.push(std::thread::spawn(move || drop(serve_tcp(stream, from, &shared, &stop))));
    }
    for thread in threads {
        drop(thread.join());
    }
}

/// A connection whose reads can time out.
trait Timed: io::Read + io::Write {
    fn patience(&self, patience: Duration) -> io::Result<()>;
}

impl Timed for TcpStream {
    fn patience(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))
    }
}

impl Timed for StreamOwned<ServerConnection, TcpStream> {
    fn patience(&self, patience: Duration) -> io::Result<()> {
        self.sock.set_read_timeout(Some(patience))
    }
}

fn serve_tcp(stream: TcpStream, from: SocketAddr, shared: &Shared, stop: &AtomicBool) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let tls = locked(&shared.tls).clone();
    let Some(config) = tls else { return converse(stream, from, shared, stop) };
    stream.set_read_timeout(Some(crate::DEADLINE))?;
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    *locked(&shared.told_name) = stream.conn.server_name().map(str::to_owned);
    if stream.conn.handshake_kind() == Some(HandshakeKind::Resumed) {
        *locked(&shared.resumed) += 1;
    }
    converse(stream, from, shared, stop)
}

fn converse(mut stream: impl Timed, from: SocketAddr, shared: &Shared, stop: &AtomicBool) -> io::Result<()> {
    let mut later: Later<Vec<u8>> = Later::new();
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        while let Some(reply) = later.pop_due() {
            let mut framed = octets(reply.len()).to_vec();
            framed.extend(reply);
            stream.write_all(&framed)?;
            sent += 1;
            if locked(&shared.script).closes_after.is_some_and(|most| sent >= most) {
                return Ok(());
            }
        }
        stream.patience(later.patience())?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => received.extend(&buffer[..length]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        while let Some((&length, rest)) = received.split_first_chunk::<2>() {
            let Some(query) = rest.get(..usize::from(u16::from_be_bytes(length))) else { break };
            let (delay, replies) = shared.respond(query, from, true);
            let used = 2 + query.len();
            for reply in replies {
                later.push(delay, reply);
            }
            received.drain(..used);
        }
    }
    Ok(())
}
