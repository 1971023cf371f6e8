//! Datagrams one by one, for systems without `recvmmsg`.
//!
//! # Limitations
//!
//! A socket on a wildcard address answers from the address the system chooses, not from the one
//! that was asked: name each address in the configuration instead.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use socket2::{MaybeUninitSlice, SockAddr, SockRef, Socket};

use super::{Local, Message, Received, SEND_RETRIES, Sent, Shape};

/// Does nothing: there is nothing to prepare without packet information. Coalescing is never in
/// effect.
pub(crate) fn prepare_datagrams(
    _socket: BorrowedFd<'_>,
    _v6: bool,
    _wildcard: bool,
    _coalesced: bool,
    _stamped: bool,
) -> io::Result<bool> {
    Ok(false)
}

/// Returns nothing: this system does not say how many datagrams it dropped.
pub(crate) const fn lost(_socket: BorrowedFd<'_>) -> Option<u32> {
    None
}

/// Accepts a connection; its socket does not block.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> io::Result<(Socket, SockAddr)> {
    let (stream, peer) = SockRef::from(&listener).accept()?;
    stream.set_nonblocking(true)?;
    Ok((stream, peer))
}

/// Whether [`steer`] does something.
pub(crate) const STEERS: bool = false;

/// Does nothing: all workers read the same socket.
pub(crate) fn steer(_socket: BorrowedFd<'_>, _is_v6: bool, _workers: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Asks for room in the kernel's queues, best effort.
pub(crate) fn set_buffers(socket: BorrowedFd<'_>, receive_octets: usize, send_octets: usize) {
    let socket = SockRef::from(&socket);
    let _ = socket.set_recv_buffer_size(receive_octets);
    let _ = socket.set_send_buffer_size(send_octets);
}

/// Receives batches of datagrams. One per socket, for life.
pub(crate) struct Inbox {
    octets: Box<[MaybeUninit<u8>]>,
    octets_each: usize,
    received: Vec<(usize, Option<SocketAddr>)>,
    messages: usize,
}

impl Inbox {
    pub(crate) fn new(shape: &Shape) -> Self {
        let messages = shape.messages.max(1);
        Self {
            octets: vec![MaybeUninit::new(0); messages * shape.query_octets_max].into_boxed_slice(),
            octets_each: shape.query_octets_max,
            received: Vec::with_capacity(messages),
            messages,
        }
    }

    /// Returns how many messages one call receives at most.
    pub(crate) const fn capacity(&self) -> usize {
        self.messages
    }

    /// Receives what is there, up to a full batch; never waits.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.received.clear();
        let socket = SockRef::from(&socket);
        for buffer in self.octets.chunks_exact_mut(self.octets_each.max(1)) {
            match socket.recv_from_vectored(&mut [MaybeUninitSlice::new(buffer)]) {
                Ok((_, flags, _)) if flags.is_truncated() => self.received.push((0, None)),
                Ok((len, _, address)) => self.received.push((len, address.as_socket())),
                Err(error) if self.received.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(self.received.len())
    }

    /// Returns message `index` of the batch; `None` beyond its end.
    pub(crate) fn message(&self, index: usize) -> Option<Received<'_>> {
        let &(len, peer) = self.received.get(index)?;
        let at = index * self.octets_each;
        let bytes = self.octets.get(at..at + len)?;
        // SAFETY: the array was initialised with zeros and the kernel only ever overwrites it.
        let bytes = unsafe { bytes.assume_init_ref() };
        let Some(peer) = peer else { return Some(Received::Unusable) };
        Some(Received::Message(Message { bytes, peer, local: None, datagram_octets: len, came_at_us: None }))
    }
}

/// Collects replies, packed back to back, and sends them. One per socket, for life.
pub(crate) struct Outbox {
    octets: Box<[u8]>,
    used: usize,
    queue: Vec<(usize, SocketAddr)>,
    messages: usize,
    reply_octets_max: usize,
}

impl Outbox {
    pub(crate) fn new(shape: &Shape) -> Self {
        let messages = shape.messages.max(1);
        Self {
            octets: vec![0; messages * shape.reply_octets_max].into_boxed_slice(),
            used: 0,
            queue: Vec::with_capacity(messages),
            messages,
            reply_octets_max: shape.reply_octets_max,
        }
    }

    /// Returns whether replies must be sent before there is room for another.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() == self.messages
    }

    /// Returns whether nothing is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns room for the next reply; empty when full.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.is_full() {
            return &mut [];
        }
        self.octets.get_mut(self.used..self.used + self.reply_octets_max).unwrap_or(&mut [])
    }

    /// Queues the first `len` octets of [`Outbox::room`] for `peer`.
    pub(crate) fn push(&mut self, len: usize, peer: &SocketAddr, _local: &Local) {
        if !self.is_full() && len > 0 && len <= self.reply_octets_max {
            self.queue.push((len, *peer));
            self.used += len;
        }
    }

    /// Sends everything that is queued. What the kernel does not take is dropped and counted.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>) -> Sent {
        let mut sent = Sent::default();
        let socket = SockRef::from(&socket);
        let mut at = 0;
        for &(len, peer) in &self.queue {
            let bytes = self.octets.get(at..at + len).unwrap_or(&[]);
            let to = SockAddr::from(peer);
            let done = (0..=SEND_RETRIES).any(|_| socket.send_to(bytes, &to).is_ok());
            sent.replies += u64::from(done);
            sent.dropped += u64::from(!done);
            at += len;
        }
        self.queue.clear();
        self.used = 0;
        sent
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn accepted_connections_do_not_block() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (mut stream, peer) = accept(listener.as_fd()).expect("accepted");
        assert_eq!(peer.as_socket(), client.local_addr().ok());
        let error = stream.read(&mut [0; 8]).expect_err("nothing was sent");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn datagrams_come_and_go_without_batches() {
        let shape = Shape {
            messages: 3,
            query_octets_max: 8,
            reply_octets_max: 8,
            addressed: false,
            coalesced: false,
            stamped: false,
            segmented: false,
        };
        let server = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
        let client = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
        server.set_nonblocking(true).expect("set");
        prepare_datagrams(server.as_fd(), false, false, true, true).expect("nothing to do");
        set_buffers(server.as_fd(), 1 << 16, 1 << 16);
        assert!(!STEERS && steer(server.as_fd(), false, 2).is_err());
        for bytes in [&b"one"[..], b"much too long", b"two"] {
            client.send_to(bytes, server.local_addr().expect("bound")).expect("sent");
        }
        let (mut inbox, mut outbox) = (Inbox::new(&shape), Outbox::new(&shape));
        assert_eq!(inbox.receive(server.as_fd()).expect("received"), inbox.capacity());
        assert_eq!(lost(server.as_fd()), None);
        for index in 0..3 {
            match inbox.message(index) {
                Some(Received::Message(message)) => {
                    outbox.room()[..message.bytes.len()].copy_from_slice(message.bytes);
                    outbox.push(message.bytes.len(), &message.peer, &message.local);
                }
                _ => assert_eq!(index, 1),
            }
        }
        assert!(!outbox.is_empty());
        assert_eq!(outbox.send(server.as_fd()), Sent { replies: 2, dropped: 0, grouped: 0 });
        let mut buf = [0; 8];
        assert_eq!(client.recv(&mut buf).expect("a reply"), 3);
        assert_eq!(&buf[..3], b"one");
    }
}
