//! A load generator: keeps a number of queries outstanding, or sends at a rate, and checks every answer.
//!
//! Never sends a query without a way to know its reply: ID, question and response code are compared.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use wire::Header;

use crate::histogram::Histogram;
use crate::queries::{Dice, Packets};
use crate::sys::{self, Batch, Poller, Wait};

/// Datagrams per system call.
const BATCH: usize = 64;
/// Octets of a datagram buffer: larger than any reply we ask for.
const DATAGRAM_OCTETS: usize = 2048;
/// Octets of socket buffer asked for.
const SOCKET_OCTETS: i32 = 4 << 20;
/// Times a query is asked again when every one must be answered.
const RETRIES_MAX: u32 = 20;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time.
    Elapsed(Duration),
    /// When each query has been answered once (lost ones are asked again), or this time is over.
    EachAnswered(Duration),
}

/// What a right answer looks like, beside ID and question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// This response code, and at least one answer record if `records`.
    Answer {
        /// The response code.
        rcode: u8,
        /// Whether there must be an answer record.
        records: bool,
    },
    /// The query itself with QR set.
    Echo,
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whom to ask.
    pub server: SocketAddr,
    /// Sockets, each with its own port.
    pub clients: usize,
    /// Loopback addresses the clients are spread over (127.0.0.1, .2, …).
    pub client_addresses: usize,
    /// Queries in flight at most, over all clients.
    pub outstanding: usize,
    /// Queries per second; as many as the answers allow without it.
    pub rate: Option<f64>,
    /// When to stop.
    pub until: Until,
    /// How long an answer may take before its query counts as lost.
    pub timeout: Duration,
    /// What a right answer looks like.
    pub expect: Expect,
    /// Ask in an order shuffled by this seed instead of front to back.
    pub shuffle: Option<u64>,
}

/// What came of it.
#[derive(Clone, Default)]
pub struct Tally {
    /// Queries sent, repetitions included.
    pub sent: u64,
    /// Right answers in time.
    pub answered: u64,
    /// Queries without an answer in time.
    pub lost: u64,
    /// Replies with an unexpected response code or without records.
    pub wrong_content: u64,
    /// How many of these had each response code.
    pub wrong_rcodes: [u64; 16],
    /// Replies to the right ID with another question.
    pub wrong_question: u64,
    /// Datagrams that match no query in flight.
    pub unexpected: u64,
    /// From the first query to the last answer.
    pub elapsed: Duration,
    /// CPU time of the generator.
    pub own_cpu: Duration,
    /// How long right answers took.
    pub latency: Histogram,
}

impl Tally {
    /// Returns right answers per second.
    pub fn qps(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Returns the share of queries lost, in per cent.
    pub fn loss_percent(&self) -> f64 {
        100.0 * self.lost as f64 / (self.sent as f64).max(1.0)
    }

    /// Describes the replies that were not right, if there were any.
    pub fn complaint(&self) -> Option<String> {
        if self.wrong() == 0 {
            return None;
        }
        let rcodes = self.wrong_rcodes.iter().enumerate().filter(|(_, count)| **count > 0);
        let rcodes: Vec<String> =
            rcodes.map(|(rcode, count)| format!("{count} with rcode {rcode}")).collect();
        Some(format!(
            "{} of {} answers were wrong ({}; {} to another question)",
            self.wrong(),
            self.wrong() + self.answered,
            rcodes.join(", "),
            self.wrong_question
        ))
    }

    /// Returns replies that were not right.
    pub const fn wrong(&self) -> u64 {
        self.wrong_content + self.wrong_question
    }
}

#[derive(Clone, Copy, Default)]
struct Slot {
    sent_ns: u64,
    query: u32,
    id: u16,
    busy: bool,
}

struct Client {
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Bits of an ID that name the slot; the others tell its uses apart.
    slot_bits: u32,
    uses: u16,
}

impl Client {
    fn new(window: usize, uses: u16) -> Self {
        let window = window.clamp(1, 1 << 16);
        Self {
            slots: vec![Slot::default(); window],
            free: (0..window).rev().map(|slot| slot as u16).collect(),
            slot_bits: window.next_power_of_two().trailing_zeros(),
            uses,
        }
    }

    fn next_id(&mut self, slot: u16) -> u16 {
        self.uses = self.uses.wrapping_add(1);
        (u32::from(self.uses) << self.slot_bits) as u16 | slot
    }

    fn slot_of(&self, id: u16) -> usize {
        (u32::from(id) & ((1 << self.slot_bits) - 1)) as usize
    }
}

/// Which query comes next.
struct Order {
    shuffled: Option<Vec<u32>>,
    count: usize,
    at: usize,
    again: VecDeque<u32>,
    once: bool,
}

impl Order {
    fn new(count: usize, shuffle: Option<u64>, until: Until) -> Self {
        let shuffled = shuffle.map(|seed| {
            let mut order: Vec<u32> = (0..count as u32).collect();
            Dice::new(seed).shuffle(&mut order);
            order
        });
        let once = matches!(until, Until::EachAnswered(_));
        Self { shuffled, count, at: 0, again: VecDeque::new(), once }
    }

    fn next(&mut self) -> Option<u32> {
        if let Some(query) = self.again.pop_front() {
            return Some(query);
        }
        if self.at == self.count {
            if self.once {
                return None;
            }
            self.at = 0;
        }
        let query = self.shuffled.as_ref().map_or(self.at as u32, |order| order[self.at]);
        self.at += 1;
        Some(query)
    }
}

/// A run in progress.
struct Run<'a> {
    plan: &'a Plan,
    packets: &'a Packets,
    sockets: Vec<UdpSocket>,
    clients: Vec<Client>,
    order: Order,
    out: Batch,
    input: Batch,
    tally: Tally,
    in_flight: usize,
    begun: Instant,
    last_answer_ns: u64,
    /// Queries due so far when sending at a rate.
    scheduled: u64,
    retries: u64,
}

/// Runs `plan` over `packets`, on the calling thread.
pub fn run(plan: &Plan, packets: &Packets) -> io::Result<Tally> {
    let clients = plan.clients.clamp(1, plan.outstanding.max(1));
    let mut sockets = Vec::with_capacity(clients);
    for i in 0..clients {
        let host = (i % plan.client_addresses.clamp(1, 250)) as u8;
        let local = match plan.server.ip() {
            IpAddr::V4(address) if address.is_loopback() => IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1 + host)),
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((local, 0))?;
        socket.connect(plan.server)?;
        sys::set_buffers(&socket, SOCKET_OCTETS)?;
        sockets.push(socket);
    }
    let mut poller = Poller::new(&sockets)?;
    let mut dice = Dice::new(plan.shuffle.unwrap_or(1));
    let mut run = Run {
        clients: (0..clients)
            .map(|i| {
                let window = plan.outstanding / clients + usize::from(i < plan.outstanding % clients);
                Client::new(window, dice.roll() as u16)
            })
            .collect(),
        order: Order::new(packets.len(), plan.shuffle, plan.until),
        out: Batch::new(BATCH, DATAGRAM_OCTETS),
        input: Batch::new(BATCH, DATAGRAM_OCTETS),
        tally: Tally::default(),
        in_flight: 0,
        begun: Instant::now(),
        last_answer_ns: 0,
        scheduled: 0,
        retries: 0,
        plan,
        packets,
        sockets,
    };
    let cpu_before = sys::thread_cpu();
    run.drive(&mut poller)?;
    run.tally.own_cpu = sys::thread_cpu() - cpu_before;
    run.tally.elapsed = Duration::from_nanos(run.last_answer_ns.max(1));
    Ok(run.tally)
}

impl Run<'_> {
    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    fn drive(&mut self, poller: &mut Poller) -> io::Result<()> {
        let timeout_ns = self.plan.timeout.as_nanos() as u64;
        let sweep_ns = (timeout_ns / 10).clamp(1_000_000, 100_000_000);
        let end_ns = match self.plan.until {
            Until::Elapsed(time) | Until::EachAnswered(time) => time.as_nanos() as u64,
        };
        let mut next_sweep = sweep_ns;
        let mut sending = true;
        for client in 0..self.clients.len() {
            self.refill(client)?;
        }
        loop {
            let now = self.now_ns();
            if now >= next_sweep {
                next_sweep = now + sweep_ns;
                self.sweep(now.saturating_sub(timeout_ns));
                for client in 0..self.clients.len() {
                    if sending {
                        self.refill(client)?;
                    }
                }
            }
            sending = sending && now < end_ns && !self.gave_up();
            if self.in_flight == 0 && (!sending || self.is_complete()) {
                return Ok(());
            }
            let mut wait_ns =
                next_sweep.saturating_sub(now).min(if sending { end_ns - now } else { u64::MAX });
            if sending && let Some(rate) = self.plan.rate {
                let due = (self.scheduled as f64 * 1e9 / rate) as u64;
                wait_ns = wait_ns.min(due.saturating_sub(now));
            }
            let ready = poller.wait(Duration::from_nanos(wait_ns))?;
            for i in 0..ready {
                let client = poller.ready(i);
                self.collect(client)?;
                if sending && self.plan.rate.is_none() {
                    self.refill(client)?;
                }
            }
            if sending && self.plan.rate.is_some() {
                for client in 0..self.clients.len() {
                    self.refill(client)?;
                }
            }
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self.plan.until, Until::EachAnswered(_))
            && self.order.again.is_empty()
            && self.order.at == self.order.count
    }

    /// Returns whether asking again is hopeless.
    fn gave_up(&self) -> bool {
        self.retries > u64::from(RETRIES_MAX) * self.order.count as u64
    }

    /// Sends as much as the client's window, the rate and the order allow.
    fn refill(&mut self, client: usize) -> io::Result<()> {
        loop {
            let now = self.now_ns();
            let mut room = self.clients[client].free.len().min(BATCH);
            if let Some(rate) = self.plan.rate {
                let due = (now as f64 * rate / 1e9) as u64 + 1;
                let share = due.saturating_sub(self.scheduled).div_ceil(self.clients.len() as u64);
                room = room.min(share as usize);
            }
            let mut count = 0;
            while count < room {
                let Some(query) = self.order.next() else { break };
                let here = &mut self.clients[client];
                let Some(slot) = here.free.pop() else { break };
                let id = here.next_id(slot);
                let sent_ns = match self.plan.rate {
                    // Latency counts from when the query was due, so that a stall is not hidden.
                    Some(rate) => (self.scheduled as f64 * 1e9 / rate) as u64,
                    None => now,
                };
                self.scheduled += 1;
                here.slots[usize::from(slot)] = Slot { sent_ns, query, id, busy: true };
                let packet = self.packets.packet(query as usize);
                let buffer = self.out.buffer(count);
                buffer[..packet.len()].copy_from_slice(packet);
                buffer[..2].copy_from_slice(&id.to_be_bytes());
                self.out.address_to_peer(count, packet.len());
                count += 1;
            }
            if count == 0 {
                return Ok(());
            }
            // What the kernel does not take is lost like a datagram on the way.
            self.out.send(&self.sockets[client], count)?;
            self.tally.sent += count as u64;
            self.in_flight += count;
            if count < BATCH {
                return Ok(());
            }
        }
    }

    /// Takes what has arrived for `client`.
    fn collect(&mut self, client: usize) -> io::Result<()> {
        let count = self.input.receive(&self.sockets[client], BATCH, Wait::Not)?;
        let now = self.now_ns();
        for i in 0..count {
            let reply = self.input.received(i);
            let here = &mut self.clients[client];
            let Some((&[id0, id1, flags0, flags1, _, questions, an0, an1], _)) =
                reply.split_first_chunk::<8>()
            else {
                self.tally.unexpected += 1;
                continue;
            };
            let id = u16::from_be_bytes([id0, id1]);
            let at = here.slot_of(id);
            let Some(slot) = here.slots.get_mut(at).filter(|slot| slot.busy && slot.id == id) else {
                self.tally.unexpected += 1;
                continue;
            };
            let question = self.packets.question(slot.query as usize);
            if questions != 1 || reply.get(Header::LEN..Header::LEN + question.len()) != Some(question) {
                self.tally.wrong_question += 1;
                continue;
            }
            slot.busy = false;
            here.free.push(at as u16);
            self.in_flight -= 1;
            let is_right = flags0 & 0x80 != 0
                && match self.plan.expect {
                    Expect::Echo => true,
                    Expect::Answer { rcode, records } => {
                        flags1 & 0xf == rcode && (!records || an0 | an1 != 0)
                    }
                };
            if is_right {
                self.tally.answered += 1;
                self.tally.latency.record(now.saturating_sub(slot.sent_ns));
                self.last_answer_ns = now;
            } else {
                self.tally.wrong_content += 1;
                self.tally.wrong_rcodes[usize::from(flags1 & 0xf)] += 1;
                if matches!(self.plan.until, Until::EachAnswered(_)) {
                    self.retries += 1;
                    self.order.again.push_back(slot.query);
                }
            }
        }
        Ok(())
    }

    /// Gives up queries sent before `before_ns`.
    fn sweep(&mut self, before_ns: u64) {
        for client in &mut self.clients {
            for (at, slot) in client.slots.iter_mut().enumerate() {
                if slot.busy && slot.sent_ns < before_ns {
                    slot.busy = false;
                    client.free.push(at as u16);
                    self.in_flight -= 1;
                    self.tally.lost += 1;
                    if matches!(self.plan.until, Until::EachAnswered(_)) {
                        self.retries += 1;
                        self.order.again.push_back(slot.query);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echo;
    use crate::queries::{Ask, Extras};
    use crate::stub;
    use wire::Rtype;

    fn plan(server: SocketAddr, expect: Expect) -> Plan {
        Plan {
            server,
            clients: 3,
            client_addresses: 1,
            outstanding: 10,
            rate: None,
            until: Until::EachAnswered(Duration::from_secs(20)),
            timeout: Duration::from_millis(200),
            expect,
            shuffle: Some(1),
        }
    }

    fn packets() -> Packets {
        let asks: Vec<Ask> = (0..100).map(|i| Ask::new(format!("host{i}.example.org"), Rtype::A)).collect();
        Packets::new(&asks, Extras::default()).expect("encodes")
    }

    fn in_background(serve: impl FnOnce(UdpSocket) + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let address = socket.local_addr().expect("bound");
        std::thread::spawn(move || serve(socket));
        address
    }

    #[test]
    fn both_echoes_return_every_query() {
        for mode in [echo::Mode::Plain, echo::Mode::Segmented] {
            let server = in_background(move |socket| drop(echo::serve(&socket, mode)));
            let tally = run(&plan(server, Expect::Echo), &packets()).expect("runs");
            assert_eq!((tally.answered, tally.wrong(), tally.unexpected), (100, 0, 0));
        }
    }

    #[test]
    fn a_stub_that_loses_every_third_query_is_asked_again() {
        let behaviour = stub::Behaviour { loss_percent: 33.0, ..stub::Behaviour::default() };
        let server = in_background(move |socket| drop(stub::serve(&socket, &behaviour)));
        let expect = Expect::Answer { rcode: 0, records: true };
        let tally = run(&plan(server, expect), &packets()).expect("runs");
        assert_eq!((tally.answered, tally.wrong()), (100, 0));
        assert_eq!(tally.sent - tally.lost, 100);
        assert!(tally.lost > 0);
    }

    #[test]
    fn a_wrong_rcode_is_not_an_answer() {
        let behaviour = stub::Behaviour { rcode: 2, ..stub::Behaviour::default() };
        let server = in_background(move |socket| drop(stub::serve(&socket, &behaviour)));
        let expect = Expect::Answer { rcode: 0, records: true };
        let tally = run(&plan(server, expect), &packets()).expect("runs");
        assert_eq!(tally.answered, 0);
        assert!(tally.wrong_content > 100);
    }
}
