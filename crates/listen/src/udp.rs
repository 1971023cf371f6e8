//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Datagrams: receive a batch, answer each, send a batch.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::{Address, Client, Now, Outlet, ReplyTo, Transport};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::bind::ListenerInfo;
use crate::counters::Counters;
use crate::dnscrypt::{Carrier, Opener, ReplyKey, Sealed, sealing};
use crate::proxy::{self, Source};
use crate::service::{self, Answer, Answered, Service};
use crate::steering::{self, Seated};
use crate::sys::{self, Inbox, Local, Message, Outbox, Received, Shape};
use plan::listeners::{Grouping, Prefix, UdpPlan};

/// Datagrams per system call. More gains nothing: at 64 the call itself is a few percent of the
/// cost.
const BATCH_MESSAGES: usize = 64;

/// Messages per system call where one may hold 64 KB of datagrams.
const COALESCED_MESSAGES: usize = 16;

/// The largest query worth reading, a PROXY header included. Real ones have less than 100 octets;
/// nothing that we answer over UDP needs more than this.
const QUERY_OCTETS_MAX: usize = 4096;

/// Messages of a batch from which on it pays to look for more at once. Answering so many takes long
/// enough for others to arrive, and then one system call saves a trip to the runtime and back;
/// after fewer it mostly hears "nothing".
const AGAIN_MESSAGES_MIN: usize = 4;

/// Batches from one socket before the worker's other tasks get their turn.
const BATCHES_MAX: usize = 4;

/// How often the kernel is asked how many datagrams it dropped.
const LOST_INTERVAL_MS: u64 = 1000;

/// Datagrams of one batch that wait for an upstream before they are handed over.
const DEFERRED_MAX: usize = 64;

/// One worker's socket for one address. What replies go out through, now or later.
pub(crate) struct UdpOutlet {
    pub(crate) socket: AsyncFd<OwnedFd>,
    outbox: RefCell<Outbox>,
    counters: Arc<Counters>,
    reply_octets_max: u16,
}

impl UdpOutlet {
    /// Sends what is queued.
    fn send(&self, outbox: &mut Outbox) {
        if outbox.is_empty() {
            return;
        }
        let sent = outbox.send(self.socket.get_ref().as_fd());
        self.counters.udp_replies.add(sent.replies);
        if sent.grouped != 0 {
            self.counters.udp_grouped.add(sent.grouped);
        }
        if sent.dropped != 0 {
            self.counters.udp_unsent.add(sent.dropped);
        }
    }
}

impl Outlet for UdpOutlet {
    fn deliver(&self, address: &Address, reply: &[u8]) {
        // Only a batch in progress holds the outbox, and it does not call anybody who delivers.
        let Ok(mut outbox) = self.outbox.try_borrow_mut() else {
            self.counters.udp_unsent.bump();
            return;
        };
        if outbox.is_full() {
            self.send(&mut outbox);
        }
        match outbox.room().get_mut(..reply.len()) {
            Some(room) => {
                room.copy_from_slice(reply);
                outbox.push(reply.len(), &address.peer, &address.local);
            }
            None => self.counters.udp_unsent.bump(),
        }
    }

    fn flush(&self) {
        if let Ok(mut outbox) = self.outbox.try_borrow_mut() {
            self.send(&mut outbox);
        }
    }

    fn reply_octets_max(&self) -> usize {
        usize::from(self.reply_octets_max)
    }
}

/// A deferred query of the batch at hand.
struct Late<D> {
    deferred: D,
    peer: SocketAddr,
    local: Local,
}

/// Reads one socket.
pub(crate) struct Reader<S: Service> {
    service: Rc<S>,
    outlet: Rc<UdpOutlet>,
    inbox: Inbox,
    listener_info: Arc<ListenerInfo>,
    late: Vec<Late<<S::Engine as Answer>::Deferred>>,
    /// What opens messages, where DNSCrypt is spoken.
    opener: Option<Rc<RefCell<Opener>>>,
    /// What the replies to `late` are sealed with, then.
    reply_keys: Vec<ReplyKey>,
    /// Microseconds that a query may have waited in the kernel, where that is bounded.
    queue_timeout_us: u64,
    /// When the batch at hand was received, in microseconds since 1970.
    received_us: u64,
    /// The last value of the kernel's count of lost datagrams, and when it was asked for.
    lost: u32,
    lost_asked_ms: u64,
    steered: Option<Steered>,
    /// When to look next to how many workers datagrams are steered.
    steered_ms: u64,
}

/// A socket that shares its address with those of other workers.
struct Steered {
    seat: Rc<Seated>,
    is_v6: bool,
    /// Workers that get what comes to this address.
    active: usize,
}

/// Where in a batch the work goes on.
#[derive(Default)]
struct Cursor {
    message: usize,
    /// Octets of that message that are done.
    octets: usize,
}

impl<S: Service> Reader<S> {
    /// Takes over a bound socket. Must be called inside the worker's runtime.
    // Once per worker.
    pub(crate) fn new(
        service: Rc<S>,
        socket: OwnedFd,
        address: SocketAddr,
        plan: &UdpPlan,
        listener_info: Arc<ListenerInfo>,
        counters: Arc<Counters>,
        seat: Option<Rc<Seated>>,
        opener: Option<Rc<RefCell<Opener>>>,
    ) -> io::Result<Self> {
        // On a specific address replies can only leave from there.
        let addressed = address.ip().is_unspecified();
        let coalesced = plan.receiving == Grouping::Together;
        let stamped = plan.queue_timeout_s > 0;
        let coalesced =
            sys::prepare_datagrams(socket.as_fd(), address.is_ipv6(), addressed, coalesced, stamped)?;
        let steered = seat.map(|seat| {
            seat.take(&counters);
            let is_v6 = address.is_ipv6();
            let active = seat.apply(socket.as_fd(), is_v6);
            Steered { seat, is_v6, active }
        });
        let reply_octets_max = plan.reply_octets_max.max(UdpPlan::REPLY_OCTETS_MIN);
        let outgoing = Shape {
            messages: BATCH_MESSAGES,
            query_octets_max: QUERY_OCTETS_MAX,
            reply_octets_max: usize::from(reply_octets_max),
            addressed,
            coalesced,
            stamped,
            segmented: plan.sending == Grouping::Together,
        };
        let incoming =
            Shape { messages: if coalesced { COALESCED_MESSAGES } else { BATCH_MESSAGES }, ..outgoing };
        let outlet = UdpOutlet {
            socket: sys::watch(socket, Interest::READABLE)?,
            outbox: RefCell::new(Outbox::new(&outgoing)),
            counters,
            reply_octets_max,
        };
        Ok(Self {
            service,
            outlet: Rc::new(outlet),
            inbox: Inbox::new(&incoming),
            listener_info,
            late: Vec::with_capacity(DEFERRED_MAX),
            reply_keys: Vec::with_capacity(if opener.is_some() { DEFERRED_MAX } else { 0 }),
            opener,
            queue_timeout_us: u64::from(plan.queue_timeout_s) * 1_000_000,
            received_us: 0,
            lost: 0,
            lost_asked_ms: 0,
            steered_ms: if steered.is_some() { 0 } else { u64::MAX },
            steered,
        })
    }

    /// Returns the socket.
    pub(crate) fn outlet(&self) -> Rc<UdpOutlet> {
        Rc::clone(&self.outlet)
    }

    /// Returns whether queries of this socket still wait for their replies.
    pub(crate) fn is_waiting(&self) -> bool {
        // Each of them holds the port as its outlet.
        Rc::strong_count(&self.outlet) > 1
    }

    /// Returns how long to let queries gather first, if at all.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let now_ms = || self.service.now().monotonic_ms;
        self.service.busy_poll()?.pause(now_ms, sys::process_cpu_us)
    }

    /// Answers what is there, up to a bound; returns whether that was all.
    pub(crate) fn drain(&mut self) -> bool {
        for _ in 0..BATCHES_MAX {
            match self.inbox.receive(self.outlet.socket.get_ref().as_fd()) {
                Ok(count) => {
                    self.batch(count);
                    if count < AGAIN_MESSAGES_MIN.min(self.inbox.capacity()) {
                        return true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                // A pending error of the socket (an ICMP message, a lack of memory): reported once,
                // then gone.
                Err(_) => self.outlet.counters.udp_errors.bump(),
            }
        }
        self.outlet.counters.udp_backlogs.bump();
        false
    }

    /// Answers the batch in the inbox, which has so many messages.
    fn batch(&mut self, messages: usize) {
        let service = Rc::clone(&self.service);
        let now = service.now();
        self.received_us = now.unix_us();
        let mut cursor = Cursor::default();
        let outlet = Rc::clone(&self.outlet);
        outlet.counters.udp_batches.bump();
        let mut is_first = true;
        loop {
            let is_over = {
                let mut engine = service.engine();
                let mut outbox = outlet.outbox.borrow_mut();
                if is_first {
                    engine.begin(now);
                    // One alone would wait no less for having been announced.
                    if messages > 1 && self.opener.is_none() {
                        engine.prefetch_lines(self.queries());
                    }
                    is_first = false;
                }
                let is_over = if self.opener.is_some() {
                    self.answer_sealed(&mut *engine, &mut outbox, &mut cursor, now)
                } else {
                    self.answer(&mut *engine, &mut outbox, &mut cursor)
                };
                outlet.send(&mut outbox);
                is_over
            };
            let mut reply_keys = self.reply_keys.drain(..);
            for late in self.late.drain(..) {
                let address = Address { peer: late.peer, local: late.local, stream: 0 };
                let outlet = sealing(Rc::clone(&outlet) as _, reply_keys.next());
                service.take(late.deferred, ReplyTo { outlet, address });
            }
            if is_over {
                break;
            }
        }
        service::finish(&*service, messages);
        outlet.flush();
        if now.monotonic_ms >= self.lost_asked_ms + LOST_INTERVAL_MS {
            self.lost_asked_ms = now.monotonic_ms;
            self.count_lost();
        }
        if now.monotonic_ms >= self.steered_ms {
            self.steer(now.monotonic_ms);
        }
    }

    /// Sees whether more workers or fewer are to get what comes to this address.
    #[cold]
    fn steer(&mut self, now_ms: u64) {
        self.steered_ms = now_ms + steering::WINDOW_MS;
        let Some(steered) = &mut self.steered else { return };
        if steered.seat.decide(now_ms, self.service.is_crowded()) != steered.active {
            steered.active = steered.seat.apply(self.outlet.socket.get_ref().as_fd(), steered.is_v6);
        }
    }

    /// Counts what the kernel dropped since it was last asked.
    #[cold]
    fn count_lost(&mut self) {
        if let Some(lost) = sys::lost(self.outlet.socket.get_ref().as_fd()) {
            self.outlet.counters.udp_lost.add(u64::from(lost.wrapping_sub(self.lost)));
            self.lost = lost;
        }
    }

    /// Walks what is in the inbox, as far as it is easily told: coalesced datagrams and PROXY
    /// headers are not taken apart, so of those the first query is not announced, or no query.
    fn queries(&self) -> impl Iterator<Item = &[u8]> {
        let messages = (0..).map_while(|index| self.inbox.message(index));
        messages.filter_map(|received| match received {
            Received::Message(message) => message.bytes.get(..message.datagram_octets),
            Received::Unusable => None,
        })
    }

    /// Answers from `cursor` on until the batch is over (true) or there is no room for another
    /// reply or deferred query.
    fn answer(&mut self, engine: &mut S::Engine, outbox: &mut Outbox, cursor: &mut Cursor) -> bool {
        let counters = &self.outlet.counters;
        let mut datagrams = 0;
        let is_over = loop {
            let Some(received) = self.inbox.message(cursor.message) else { break true };
            let Received::Message(message) = received else {
                counters.udp_unusable.bump();
                cursor.message += 1;
                continue;
            };
            if outbox.is_full() || self.late.len() == DEFERRED_MAX {
                break false;
            }
            let datagram = next_datagram(&message, cursor);
            datagrams += 1;
            let Some((client, query)) = self.client(&message, datagram) else { continue };
            match engine.answer(query, &client, outbox.room()) {
                Answered::Reply(len) => outbox.push(len, &message.peer, &message.local),
                Answered::Nothing => {}
                Answered::Deferred(deferred) => {
                    self.late.push(Late { deferred, peer: message.peer, local: message.local });
                }
            }
        };
        counters.udp_datagrams.add(datagrams);
        is_over
    }

    /// Answers as [`Reader::answer`] does, where DNSCrypt is spoken.
    fn answer_sealed(
        &mut self,
        engine: &mut S::Engine,
        outbox: &mut Outbox,
        cursor: &mut Cursor,
        now: Now,
    ) -> bool {
        let counters = &self.outlet.counters;
        let Some(opener) = &self.opener else { return true };
        let mut opener = opener.borrow_mut();
        opener.begin();
        let mut datagrams = 0;
        let is_over = loop {
            let Some(received) = self.inbox.message(cursor.message) else { break true };
            let Received::Message(message) = received else {
                counters.udp_unusable.bump();
                cursor.message += 1;
                continue;
            };
            if outbox.is_full() || self.late.len() == DEFERRED_MAX {
                break false;
            }
            let datagram = next_datagram(&message, cursor);
            datagrams += 1;
            let Some((client, sealed)) = self.client(&message, datagram) else { continue };
            let client = Client { transport: Transport::Dnscrypt, ..client };
            let room = (Carrier::Datagram, outbox.room());
            match opener.answer(engine, sealed, (&client, now), room) {
                Sealed::Reply(len) => outbox.push(len, &message.peer, &message.local),
                Sealed::Nothing | Sealed::Malformed => {}
                Sealed::Deferred(deferred, reply_key) => {
                    self.late.push(Late { deferred, peer: message.peer, local: message.local });
                    self.reply_keys.push(reply_key);
                }
            }
        };
        counters.udp_datagrams.add(datagrams);
        is_over
    }

    /// Returns who asks and the query itself; `None` to drop the datagram.
    fn client<'a>(&self, message: &Message<'_>, datagram: &'a [u8]) -> Option<(Client, &'a [u8])> {
        if message.peer.port() == 0 {
            // Nothing can be sent there.
            self.outlet.counters.udp_unusable.bump();
            return None;
        }
        if message.came_at_us.is_some_and(|came_at_us| self.is_too_late(came_at_us.get())) {
            return None;
        }
        let client = Client {
            address: message.peer.ip().to_canonical(),
            port: message.peer.port(),
            transport: Transport::Udp,
            verified: false,
            reply_octets_max: self.outlet.reply_octets_max,
            keepalive: None,
            listener: self.listener_info.listener,
            connection: 0,
            certificate: None,
        };
        if self.listener_info.proxies.is_empty() {
            Some((client, datagram))
        } else {
            self.proxied(client, datagram)
        }
    }

    /// Notes how long a query waited in the kernel; returns whether that was too long.
    #[inline(never)]
    fn is_too_late(&self, came_at_us: u64) -> bool {
        let counters = &self.outlet.counters;
        // Nothing comes later than now, unless the clock was set back.
        let waited_us = self.received_us.saturating_sub(came_at_us);
        counters.udp_queued_us_max.note(waited_us);
        let is_too_late = waited_us > self.queue_timeout_us;
        if is_too_late {
            // Its client has asked again by now.
            counters.udp_timed_out.bump();
        }
        is_too_late
    }

    /// Reads the PROXY header if the peer is one that must send it.
    #[cold]
    fn proxied<'a>(&self, peer: Client, datagram: &'a [u8]) -> Option<(Client, &'a [u8])> {
        if !is_proxy(&self.listener_info.proxies, peer.address) {
            return Some((peer, datagram));
        }
        match proxy::parse(datagram) {
            Ok((Source::Peer, query)) => Some((peer, query)),
            Ok((Source::Client { address, port, .. }, query)) => {
                Some((Client { address, port, ..peer }, query))
            }
            Err(_) => {
                self.outlet.counters.proxy_malformed.bump();
                None
            }
        }
    }
}

/// Returns whether `address` is a peer that must send a PROXY header.
pub(crate) fn is_proxy(proxies: &[Prefix], address: IpAddr) -> bool {
    proxies.iter().any(|prefix| prefix.contains(address))
}

/// Returns the next datagram of a message and moves the cursor behind it.
fn next_datagram<'a>(message: &Message<'a>, cursor: &mut Cursor) -> &'a [u8] {
    let rest = message.bytes.get(cursor.octets..).unwrap_or(&[]);
    match rest.split_at_checked(message.datagram_octets) {
        Some((datagram, after)) if !after.is_empty() && !datagram.is_empty() => {
            cursor.octets += datagram.len();
            datagram
        }
        Some(_) | None => {
            cursor.message += 1;
            cursor.octets = 0;
            rest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], datagram_octets: usize, expect: &[&[u8]]) {
        let peer = SocketAddr::from(([192, 0, 2, 1], 53));
        let message = Message { bytes, peer, local: None, datagram_octets, came_at_us: None };
        let mut cursor = Cursor::default();
        let mut found = Vec::new();
        while cursor.message == 0 {
            found.push(next_datagram(&message, &mut cursor));
        }
        assert_eq!(found, expect);
        assert_eq!((cursor.message, cursor.octets), (1, 0));
    }

    #[test]
    fn coalesced_messages_are_split_into_their_datagrams() {
        check(b"aaabbbcc", 3, &[b"aaa", b"bbb", b"cc"]);
        check(b"aaabbb", 3, &[b"aaa", b"bbb"]);
        check(b"aaa", 3, &[b"aaa"]);
        check(b"aaa", 1232, &[b"aaa"]);
        check(b"", 0, &[b""]);
        check(b"aaa", 0, &[b"aaa"]);
    }
}
