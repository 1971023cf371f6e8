//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Frames: receive a batch from one queue of an interface, answer each into a spare frame, send a
//! batch.
//!
//! The kernel's sockets stay open on the same addresses and serve whatever is not taken here.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use ::xdp::Packet;
use ::xdp::headers::{Datagram, Flow, IPV6_OCTETS, Mac, Neighbour, UDP_OCTETS};
use engine::{Address, Client, ListenerId, Outlet, ReplyTo, Transport};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::counters::Counters;
use crate::service::{self, Answer, Answered, Service};
use crate::sys;

/// Packets of a batch: as many as of one system call on the kernel's own sockets.
const BATCH_PACKETS: usize = 64;

/// Batches from one queue before the worker's other tasks get their turn.
const BATCHES_MAX: usize = 4;

/// One queue of an interface, and who is listened for on it.
#[derive(Debug)]
pub struct XdpQueue {
    /// The socket.
    pub socket: ::xdp::Socket,
    /// The interface's own address.
    pub mac: Mac,
    /// Its MTU.
    pub mtu: u32,
    /// Where queries may go to, and which listener each stands for. A listener on a wildcard
    /// address comes last.
    pub destinations: Arc<[(SocketAddr, ListenerId)]>,
    /// The most octets of a reply, whatever the client's EDNS and the MTU say.
    pub reply_octets_max: u16,
}

impl XdpQueue {
    /// Returns the most octets of a reply: what fits one packet of the interface, with the larger
    /// of both IP headers.
    fn reply_octets_max(&self) -> u16 {
        let headers = (IPV6_OCTETS + UDP_OCTETS) as u32;
        let fitting = u16::try_from(self.mtu.saturating_sub(headers)).unwrap_or(u16::MAX);
        self.reply_octets_max.min(fitting)
    }
}

/// One worker's socket on one queue. What replies go out through, now or later.
pub(super) struct XdpOutlet {
    socket: RefCell<::xdp::Socket>,
    /// A second descriptor of the same socket, for the runtime.
    watch: AsyncFd<OwnedFd>,
    counters: Arc<Counters>,
    mac: Mac,
    reply_octets_max: u16,
    /// Packets on the transmit ring that the kernel has not taken.
    unsent: Cell<u32>,
    /// Whether replies were put on the transmit ring since the last time that it was shown to the
    /// kernel.
    is_loaded: Cell<bool>,
    /// Told when there are some.
    stuck: Notify,
}

impl XdpOutlet {
    /// Returns what the runtime watches.
    pub(super) const fn watch(&self) -> &AsyncFd<OwnedFd> {
        &self.watch
    }

    /// Waits until packets wait for an interface that takes no more.
    pub(super) fn stuck(&self) -> Notified<'_> {
        self.stuck.notified()
    }

    /// Notes how many packets the kernel has not taken.
    fn note(&self, unsent: u32) {
        self.unsent.set(unsent);
        if unsent != 0 {
            self.stuck.notify_one();
        }
    }

    /// Returns whether packets wait for an interface that took no more.
    pub(super) fn has_unsent(&self) -> bool {
        self.unsent.get() != 0
    }
}

impl Outlet for XdpOutlet {
    fn deliver(&self, address: &Address, reply: &[u8]) {
        // Only a batch in progress holds the socket, and it does not call anybody who delivers.
        let sent = self.socket.try_borrow_mut().is_ok_and(|mut socket| {
            let Some((local, port)) = address.local else { return false };
            let Ok(port) = u16::try_from(port) else { return false };
            let neighbour = Neighbour::from_bits(address.stream);
            let flow = Flow {
                source: SocketAddr::new(local, port),
                destination: address.peer,
                source_mac: self.mac,
                destination_mac: neighbour.mac,
                vlan: neighbour.vlan,
            };
            let Some(packet) = socket.spare() else { return false };
            let frame = socket.write(&packet);
            let at = flow.headers_octets();
            if let Some(room) = frame.get_mut(at..).and_then(|room| room.get_mut(..reply.len())) {
                room.copy_from_slice(reply);
            }
            transmit(&mut socket, packet, &flow, reply.len())
        });
        if sent {
            self.is_loaded.set(true);
            self.counters.xdp_replies.bump();
        } else {
            self.counters.xdp_unsent.bump();
        }
    }

    fn flush(&self) {
        if !self.is_loaded.take() && !self.has_unsent() {
            return;
        }
        if let Ok(mut socket) = self.socket.try_borrow_mut() {
            self.note(socket.finish());
        }
    }

    fn reply_octets_max(&self) -> usize {
        usize::from(self.reply_octets_max)
    }
}

/// Puts headers before a payload that stands in the packet already, and queues it. Returns whether
/// that was possible.
fn transmit(socket: &mut ::xdp::Socket, mut packet: Packet, flow: &Flow, payload_octets: usize) -> bool {
    let written = flow.write(socket.write(&packet), payload_octets);
    let is_ready = written.is_some_and(|octets| socket.resize(&mut packet, octets));
    if !is_ready {
        socket.release(packet);
        return false;
    }
    match socket.transmit(packet) {
        Ok(()) => true,
        Err(packet) => {
            socket.release(packet);
            false
        }
    }
}

/// A packet of the batch at hand.
struct Received {
    packet: Packet,
    datagram: Datagram,
    listener: ListenerId,
}

/// A deferred query of the batch at hand.
struct Late<D> {
    deferred: D,
    flow: Flow,
}

/// Reads one queue.
pub(super) struct Reader<S: Service> {
    service: Rc<S>,
    outlet: Rc<XdpOutlet>,
    destinations: Arc<[(SocketAddr, ListenerId)]>,
    batch: Vec<Received>,
    late: Vec<Late<<S::Engine as Answer>::Deferred>>,
    /// The next packet goes on with one that was too long for a frame.
    is_continued: bool,
    lost: u64,
}

impl<S: Service> Reader<S> {
    /// Takes over a queue. Must be called inside the worker's runtime.
    // Once per worker.
    pub(super) fn new(service: Rc<S>, queue: XdpQueue, counters: Arc<Counters>) -> io::Result<Self> {
        let descriptor = queue.socket.as_fd().try_clone_to_owned()?;
        let outlet = XdpOutlet {
            reply_octets_max: queue.reply_octets_max(),
            watch: sys::watch(descriptor, Interest::READABLE)?,
            socket: RefCell::new(queue.socket),
            counters,
            mac: queue.mac,
            unsent: Cell::new(0),
            is_loaded: Cell::new(false),
            stuck: Notify::new(),
        };
        Ok(Self {
            service,
            outlet: Rc::new(outlet),
            destinations: queue.destinations,
            batch: Vec::with_capacity(BATCH_PACKETS),
            late: Vec::with_capacity(BATCH_PACKETS),
            is_continued: false,
            lost: 0,
        })
    }

    /// Returns the socket.
    pub(super) fn outlet(&self) -> Rc<XdpOutlet> {
        Rc::clone(&self.outlet)
    }

    /// Returns whether queries of this queue still wait for their replies.
    pub(super) fn is_waiting(&self) -> bool {
        // Each of them holds the port as its outlet.
        Rc::strong_count(&self.outlet) > 1
    }

    /// Answers what is there, up to a bound; returns whether that was all.
    pub(super) fn drain(&mut self) -> bool {
        for _ in 0..BATCHES_MAX {
            let packets = self.receive();
            if packets == 0 {
                return true;
            }
            self.answer();
        }
        let outlet = Rc::clone(&self.outlet);
        let has_more = outlet.socket.borrow_mut().has_more();
        !has_more
    }

    /// Fills the batch; returns how many packets were looked at.
    fn receive(&mut self) -> usize {
        let mut socket = self.outlet.socket.borrow_mut();
        let counters = &self.outlet.counters;
        let mut looked_at = 0;
        while looked_at < BATCH_PACKETS {
            let Some(packet) = socket.receive() else { break };
            looked_at += 1;
            let is_part = self.is_continued || packet.continues();
            self.is_continued = packet.continues();
            let datagram = if is_part { None } else { Datagram::parse(socket.read(&packet)).ok() };
            let listener = datagram.as_ref().and_then(|datagram| self.listener(datagram.flow.destination));
            match (datagram, listener) {
                (Some(datagram), Some(listener)) => self.batch.push(Received { packet, datagram, listener }),
                _ => {
                    counters.xdp_unusable.bump();
                    socket.release(packet);
                }
            }
        }
        if looked_at != 0 && self.batch.is_empty() {
            // Nothing to answer, but frames to give back.
            self.outlet.note(socket.finish());
        }
        looked_at
    }

    /// Returns who listens for queries to an address and port.
    fn listener(&self, destination: SocketAddr) -> Option<ListenerId> {
        let stands_for = |at: &SocketAddr| {
            at.port() == destination.port()
                && at.is_ipv4() == destination.is_ipv4()
                && (at.ip() == destination.ip() || at.ip().is_unspecified())
        };
        self.destinations.iter().find(|(at, _)| stands_for(at)).map(|(_, listener)| *listener)
    }

    /// Answers the batch.
    fn answer(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let service = Rc::clone(&self.service);
        let outlet = Rc::clone(&self.outlet);
        let now = service.now();
        let packets = self.batch.len();
        outlet.counters.xdp_batches.bump();
        {
            let mut engine = service.engine();
            let mut socket = outlet.socket.borrow_mut();
            engine.begin(now);
            engine.prefetch_lines(
                self.batch
                    .iter()
                    .filter_map(|received| received.datagram.payload_in(socket.read(&received.packet))),
            );
            for received in self.batch.drain(..) {
                let late = answer_one(&mut *engine, &mut socket, &outlet, received);
                self.late.extend(late);
            }
            outlet.note(socket.finish());
        }
        for late in self.late.drain(..) {
            let local = Some((late.flow.destination.ip(), u32::from(late.flow.destination.port())));
            let stream = late.flow.neighbour().to_bits();
            let address = Address { peer: late.flow.source, local, stream };
            service.take(late.deferred, ReplyTo { outlet: Rc::clone(&outlet) as _, address });
        }
        service::finish(&*service, packets);
        outlet.flush();
    }

    /// Tells the socket's numbers, and counts what the kernel dropped since it was last asked.
    #[cold]
    pub(super) fn tell(&mut self) {
        if let Ok(found) = self.outlet.socket.borrow().tell() {
            let lost = found.receive_dropped + found.receive_ring_full + found.fill_ring_empty;
            self.outlet.counters.xdp_lost.add(lost.saturating_sub(self.lost));
            self.lost = lost;
        }
    }
}

/// Answers one query, and hands its frame back. Returns it if it has to wait.
fn answer_one<E: Answer>(
    engine: &mut E,
    socket: &mut ::xdp::Socket,
    outlet: &XdpOutlet,
    received: Received,
) -> Option<Late<E::Deferred>> {
    let Received { packet, datagram, listener } = received;
    let counters = &outlet.counters;
    counters.xdp_datagrams.bump();
    let Some(spare) = socket.spare() else {
        // All frames are on their way out: the interface is slower than we are.
        counters.xdp_unsent.bump();
        socket.release(packet);
        return None;
    };
    let flow = datagram.flow;
    let client = Client {
        address: flow.source.ip().to_canonical(),
        port: flow.source.port(),
        transport: Transport::Udp,
        verified: false,
        reply_octets_max: outlet.reply_octets_max,
        keepalive: None,
        listener,
        connection: 0,
        certificate: None,
    };
    let (frame, room) = socket.read_and_write(&packet, &spare);
    let answered = match (datagram.payload_in(frame), room.get_mut(flow.headers_octets()..)) {
        (Some(query), Some(room)) => engine.answer(query, &client, room),
        _ => Answered::Nothing,
    };
    socket.release(packet);
    match answered {
        Answered::Reply(len) => {
            if transmit(socket, spare, &flow.reversed(), len) {
                counters.xdp_replies.bump();
            } else {
                counters.xdp_unsent.bump();
            }
            None
        }
        Answered::Nothing => {
            socket.release(spare);
            None
        }
        Answered::Deferred(deferred) => {
            socket.release(spare);
            Some(Late { deferred, flow })
        }
    }
}
