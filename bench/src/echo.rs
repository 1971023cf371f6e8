//! A bare echo server: what receiving and sending a datagram costs on this machine, and no DNS at
//! all.
//!
//! Never looks at a datagram beyond setting QR: nothing that answers queries can be cheaper.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use crate::sys::{self, Batch, Grouped, Interest, Poller, Wait};

/// Datagrams taken by one call.
const BATCH: usize = 64;
/// Octets of a plain datagram buffer.
const DATAGRAM_OCTETS: usize = 2048;
/// Octets of a buffer that may receive coalesced datagrams, or what a connection holds.
const COALESCED_OCTETS: usize = 65_535;
/// Octets of socket buffer asked for.
const SOCKET_OCTETS: i32 = 4 << 20;

/// Connections that can be ready at one look.
const READY_MAX: usize = 1024;
/// How long the kernel may let a listener without connections wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// How datagrams cross the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One by one.
    Plain,
    /// Replies of one size to one address as one `UDP_SEGMENT` send, and `UDP_GRO` on receipt.
    Segmented,
}

/// Echoes until an error.
pub fn serve(socket: &UdpSocket, mode: Mode) -> io::Result<()> {
    sys::set_buffers(socket, SOCKET_OCTETS)?;
    match mode {
        Mode::Plain => plain(socket),
        Mode::Segmented => segmented(socket),
    }
}

fn plain(socket: &UdpSocket) -> io::Result<()> {
    let mut batch = Batch::new(BATCH, DATAGRAM_OCTETS);
    loop {
        let count = batch.receive(socket, BATCH, Wait::ForOne)?;
        for i in 0..count {
            set_qr(batch.received(i));
            batch.address_in_place(i);
        }
        batch.send(socket, count)?;
    }
}

fn segmented(socket: &UdpSocket) -> io::Result<()> {
    sys::enable_gro(socket)?;
    let mut batch = Batch::new(BATCH, COALESCED_OCTETS);
    let mut grouped = Grouped::new(BATCH);
    loop {
        let count = batch.receive_coalesced(socket, BATCH, Wait::ForOne)?;
        for i in 0..count {
            let segment = batch.segment_size(i).map_or(COALESCED_OCTETS, usize::from).max(1);
            batch.received(i).chunks_mut(segment).for_each(set_qr);
        }
        grouped.send_back(socket, &mut batch, count)?;
    }
}

/// A connection, and what has come but not gone.
struct Connection {
    stream: TcpStream,
    bytes: Vec<u8>,
    /// Octets at the front that are whole messages with QR set.
    ready: usize,
    interest: Interest,
}

/// Echoes messages over TCP until an error; one thread serves all connections.
pub fn serve_stream(listener: &TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut poller = Poller::with_capacity(READY_MAX)?;
    // Token 0 is the listener, the others are places in `connections` plus one.
    poller.watch(listener, 0, Interest::Read)?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut scratch = vec![0; COALESCED_OCTETS];
    loop {
        let ready = poller.wait(PATIENCE)?;
        for i in 0..ready {
            let Some(place) = poller.ready(i).checked_sub(1) else {
                accept(listener, &poller, &mut connections)?;
                continue;
            };
            let Some(slot) = connections.get_mut(place) else { continue };
            let is_open = slot.as_mut().is_some_and(|connection| {
                connection.echo(&mut scratch).is_ok_and(|is_open| is_open)
                    && connection.flush(&poller, place + 1).is_ok()
            });
            if !is_open {
                *slot = None;
            }
        }
    }
}

fn accept(
    listener: &TcpListener,
    poller: &Poller,
    connections: &mut Vec<Option<Connection>>,
) -> io::Result<()> {
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => return Err(error),
        };
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let place = connections.iter().position(Option::is_none).unwrap_or(connections.len());
        let interest = Interest::Read;
        poller.watch(&stream, place + 1, interest)?;
        let connection = Connection { stream, bytes: Vec::new(), ready: 0, interest };
        match connections.get_mut(place) {
            Some(slot) => *slot = Some(connection),
            None => connections.push(Some(connection)),
        }
    }
}

impl Connection {
    /// Reads what is there and sets QR in whole messages; returns whether more may come.
    fn echo(&mut self, scratch: &mut [u8]) -> io::Result<bool> {
        let read = match self.stream.read(scratch) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        self.bytes.extend_from_slice(&scratch[..read]);
        while let Some((len, rest)) = self.bytes[self.ready..].split_first_chunk_mut::<2>()
            && let Some(message) = rest.get_mut(..usize::from(u16::from_be_bytes(*len)))
        {
            set_qr(message);
            self.ready += 2 + message.len();
        }
        Ok(true)
    }

    /// Sends what is ready, and asks to be told when the rest can be sent.
    fn flush(&mut self, poller: &Poller, token: usize) -> io::Result<()> {
        while self.ready > 0 {
            match self.stream.write(&self.bytes[..self.ready]) {
                Ok(sent) => {
                    self.bytes.drain(..sent);
                    self.ready -= sent;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let interest = if self.ready == 0 { Interest::Read } else { Interest::ReadAndWrite };
        if interest != self.interest {
            self.interest = interest;
            poller.rewatch(&self.stream, token, interest)?;
        }
        Ok(())
    }
}

fn set_qr(datagram: &mut [u8]) {
    if let Some(flags) = datagram.get_mut(2) {
        *flags |= 0x80;
    }
}
