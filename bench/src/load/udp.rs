//! Load over UDP: a socket per client, batches of datagrams per system call.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use super::window::Books;
use super::{Pace, Plan, Tally};
use crate::queries::Packets;
use crate::sys::{self, Batch, Poller, Wait};

/// Datagrams per system call.
const BATCH: usize = 64;
/// Octets of a datagram buffer: larger than any reply we ask for.
const DATAGRAM_OCTETS: usize = 2048;
/// Octets of socket buffer asked for.
const SOCKET_OCTETS: i32 = 4 << 20;

/// A run in progress.
struct Run<'a> {
    packets: &'a Packets,
    sockets: Vec<UdpSocket>,
    books: Books<'a>,
    out: Batch,
    input: Batch,
}

/// Runs `plan` over `packets`.
pub(super) fn run(plan: &Plan, packets: &Packets) -> io::Result<Tally> {
    let clients = plan.clients.clamp(1, plan.outstanding.max(1));
    let mut sockets = Vec::with_capacity(clients);
    for client in 0..clients {
        let socket = UdpSocket::bind((plan.local(client), 0))?;
        socket.connect(plan.server)?;
        sys::set_buffers(&socket, SOCKET_OCTETS)?;
        sockets.push(socket);
    }
    let mut poller = Poller::new(&sockets)?;
    let mut run = Run {
        books: Books::new(plan, packets, clients),
        out: Batch::new(BATCH, DATAGRAM_OCTETS),
        input: Batch::new(BATCH, DATAGRAM_OCTETS),
        packets,
        sockets,
    };
    if plan.is_even {
        run.drive_evenly(plan, &mut poller)?;
    } else {
        run.drive(plan, &mut poller)?;
    }
    Ok(run.books.close())
}

impl Run<'_> {
    fn drive(&mut self, plan: &Plan, poller: &mut Poller) -> io::Result<()> {
        let mut pace = Pace::new(plan);
        self.refill_all()?;
        loop {
            let now = self.books.now_ns();
            if let Some(before) = pace.sweep(now) {
                self.books.sweep(before);
                if pace.is_sending {
                    self.refill_all()?;
                }
            }
            pace.look(now, &self.books);
            if self.books.is_done(pace.is_sending) {
                return Ok(());
            }
            let ready = poller.wait(pace.patience(now, &self.books))?;
            for i in 0..ready {
                let client = poller.ready(i);
                self.collect(client)?;
                if pace.is_sending && plan.rate.is_none() {
                    self.refill(client)?;
                }
            }
            if pace.is_sending && plan.rate.is_some() {
                self.refill_all()?;
            }
        }
    }

    /// Sends each query when it is due, from the next socket, and looks for answers in between,
    /// without sleeping.
    fn drive_evenly(&mut self, plan: &Plan, poller: &mut Poller) -> io::Result<()> {
        let mut pace = Pace::new(plan);
        let mut client = 0;
        loop {
            let now = self.books.now_ns();
            if pace.is_over(now, &mut self.books) {
                return Ok(());
            }
            if pace.is_sending && self.books.is_due(now) {
                if let Some((id, query)) = self.books.next(client, now) {
                    self.put(0, id, query);
                    self.out.send(&self.sockets[client], 1)?;
                }
                client = (client + 1) % self.sockets.len();
            }
            let ready = poller.wait(Duration::ZERO)?;
            for i in 0..ready {
                self.collect(poller.ready(i))?;
            }
        }
    }

    /// Puts a query into the buffer with this index.
    fn put(&mut self, at: usize, id: u16, query: usize) {
        let packet = self.packets.packet(query);
        let buffer = self.out.buffer(at);
        buffer[..packet.len()].copy_from_slice(packet);
        buffer[..2].copy_from_slice(&id.to_be_bytes());
        self.out.address_to_peer(at, packet.len());
    }

    fn refill_all(&mut self) -> io::Result<()> {
        (0..self.sockets.len()).try_for_each(|client| self.refill(client))
    }

    /// Sends as much as the client's window, the rate and the order allow.
    fn refill(&mut self, client: usize) -> io::Result<()> {
        loop {
            let now = self.books.now_ns();
            let room = self.books.room(client, now).min(BATCH);
            let mut count = 0;
            while count < room
                && let Some((id, query)) = self.books.next(client, now)
            {
                self.put(count, id, query);
                count += 1;
            }
            if count == 0 {
                return Ok(());
            }
            // What the kernel does not take is lost like a datagram on the way.
            self.out.send(&self.sockets[client], count)?;
            if count < BATCH {
                return Ok(());
            }
        }
    }

    /// Takes what has arrived for `client`.
    fn collect(&mut self, client: usize) -> io::Result<()> {
        let count = self.input.receive(&self.sockets[client], BATCH, Wait::Not)?;
        let now = self.books.now_ns();
        for i in 0..count {
            self.books.settle(client, self.input.received(i), now);
        }
        Ok(())
    }
}
