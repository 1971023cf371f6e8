//! A worker's fetching without a worker: a clock that is set and a network that remembers.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use authorities::{Family, PoolLinkKey, PoolNetwork, PoolSocketKey, Unsent};
use engine::ops::split::{BranchReport, Next, Progress, SplitStep, Worth};
use engine::{EndedBranch, Failure, FetchWant, OutQuery, PoolId, SharedSplit, SplitWant, Want};
use rand::SeedableRng;
use rand::rngs::StdRng;
use timers::{Moment, Span};
use wire::{Class, Flags, Message, NameBuf, Query, Rcode, Rtype, Section, Ttl, Writer};

use super::super::{Ending, Event, Finished, Machine, SplitKey, Waiter};
use crate::clients::Held;
use crate::counters::Counts;
use exchange::network::{LinkKey, Network, Remote, SocketKey};
use forward::status::UpstreamState;
use forward::upstream_log::StateChange;
use identity::Registry;
use plan::resolvers;
use plan::upstreams::{Hedge, Limits, Pick, Plan, PoolPlan, ServerPlan};

/// What a fetch brought: an rcode or a failure.
pub(super) type Brought = Result<Rcode, Failure>;

/// A network that remembers what was sent and sends nothing.
#[derive(Default)]
pub(super) struct Wire {
    pub(super) sockets: HashMap<u32, SocketAddr>,
    pub(super) links: HashMap<u32, SocketAddr>,
    pub(super) queued: VecDeque<Sent>,
    /// Whether the process has no descriptors left.
    pub(super) lacks_descriptors: bool,
    /// Addresses to which no socket can be opened.
    pub(super) unreachable: Vec<SocketAddr>,
    pub(super) opened: usize,
    /// Whether there is no way to any IPv6 address.
    pub(super) lacks_ipv6: bool,
}

/// A network to authoritative servers that remembers what was sent and sends nothing.
#[derive(Default)]
pub(super) struct PoolWire {
    pub(super) queued: VecDeque<(PoolSocketKey, SocketAddr, Vec<u8>)>,
}

impl PoolNetwork for PoolWire {
    fn open(&mut self, _: PoolSocketKey, _: Family) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, _: PoolSocketKey) {}

    fn queue(&mut self, key: PoolSocketKey, to: SocketAddr, packet: &[u8]) {
        self.queued.push_back((key, to, packet.to_vec()));
    }

    fn flush(&mut self, _: &mut Vec<Unsent>) {}

    fn connect(&mut self, _: PoolLinkKey, _: SocketAddr, _: authorities::Carrier) {}

    fn write(&mut self, _: PoolLinkKey, _: &[u8]) {}

    fn disconnect(&mut self, _: PoolLinkKey) {}
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Udp(SocketKey),
    Tcp(LinkKey),
}

#[derive(Clone)]
pub(super) struct Sent {
    pub(super) over: Over,
    pub(super) to: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

impl Network for Wire {
    fn open(&mut self, key: SocketKey, remote: &Remote) -> io::Result<()> {
        if self.unreachable.contains(&remote.address) {
            return Err(io::ErrorKind::NetworkUnreachable.into());
        }
        if self.lacks_descriptors {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        self.opened += 1;
        assert!(self.sockets.insert(key.0, remote.address).is_none(), "a key is used once at a time");
        Ok(())
    }

    fn close(&mut self, key: SocketKey) {
        assert!(self.sockets.remove(&key.0).is_some(), "closed once");
    }

    fn queue(&mut self, key: SocketKey, packet: &[u8]) {
        let to = self.sockets[&key.0];
        self.queued.push_back(Sent { over: Over::Udp(key), to, bytes: packet.to_vec() });
    }

    fn flush(&mut self, _: &mut Vec<(SocketKey, io::ErrorKind)>) {}

    fn reaches(&self, address: IpAddr) -> bool {
        address.is_ipv4() || !self.lacks_ipv6
    }

    fn connect(&mut self, key: LinkKey, remote: &Remote) {
        assert!(self.links.insert(key.0, remote.address).is_none(), "a key is used once at a time");
    }

    fn write(&mut self, key: LinkKey, packet: &[u8]) {
        let to = self.links[&key.0];
        self.queued.push_back(Sent { over: Over::Tcp(key), to, bytes: packet.to_vec() });
    }

    fn disconnect(&mut self, key: LinkKey) {
        self.links.remove(&key.0);
    }
}

pub(super) struct Asker {
    pub(super) number: u32,
    pub(super) want: Want,
    pub(super) client: Option<IpAddr>,
    /// The rule of the branches it waits for.
    pub(super) split: Option<Rc<SplitStep>>,
    /// The split that it is a branch of.
    pub(super) parent: Option<(SplitKey, u8)>,
    /// What it asks.
    pub(super) text: String,
}

impl Waiter for Asker {
    fn want(&self) -> &Want {
        &self.want
    }

    fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// Clients of 203.0.113.0/24 prove nothing.
    fn held(&self) -> Held {
        match self.client {
            Some(IpAddr::V4(address)) if address.octets().starts_with(&[203, 0, 113]) => Held::Unproven,
            Some(_) => Held::Proven,
            None => Held::Nothing,
        }
    }

    fn next(&self, progress: &Progress) -> Next {
        self.split.as_ref().expect("it waits for branches").next(progress)
    }

    fn take_ended(&mut self, _: u8) -> Option<EndedBranch> {
        None
    }
}

pub(super) struct Sim {
    pub(super) machine: Machine<Wire, PoolWire, Asker>,
    pub(super) counters: Counts,
    pub(super) now: Moment,
    pub(super) asked: u32,
    pub(super) ended: HashMap<u32, Brought>,
    pub(super) impatient: Vec<u32>,
    /// Branches that were started: who asks, and which branch it is.
    pub(super) branches: Vec<(u32, u8)>,
    /// Branches that won.
    pub(super) winners: Vec<u8>,
    /// Upstreams that went down or came back.
    pub(super) state_changes: Vec<StateChange>,
    /// Groups of which a server came back.
    pub(super) recovered: Vec<PoolId>,
}

pub(super) const POOL: PoolId = PoolId(0);
pub(super) const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 77));

pub(super) fn server(last: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, last], 53))
}

pub(super) fn name(text: &str) -> NameBuf {
    let mut name = NameBuf::root();
    for label in text.split('.').filter(|label| !label.is_empty()) {
        name.push_label(label.as_bytes()).expect("a label");
    }
    name
}

pub(super) fn pool(pick: Pick, servers: &[u8]) -> PoolPlan {
    let servers = servers.iter().map(|&last| ServerPlan::udp(server(last))).collect();
    PoolPlan { pick, hedge: Hedge::Off, ..PoolPlan::new(POOL, "test", servers) }
}

pub(super) fn question(text: &str) -> OutQuery {
    let qname = name(text);
    let folded = qname.as_name().to_folded();
    let hash = folded.as_bytes().iter().fold(7u64, |hash, &octet| hash.wrapping_mul(31) + u64::from(octet));
    OutQuery {
        qname,
        qtype: Rtype::A,
        qclass: Class::IN,
        checking_disabled: false,
        wants_dnssec: false,
        no_recursion: false,
        client_subnet: None,
        options: Box::default(),
        members: 0,
        hash,
    }
}

/// Writes a reply to `query` with one address in it if it is NOERROR.
pub(super) fn reply_to(query: &[u8], rcode: Rcode) -> Vec<u8> {
    let addresses: &[u8] = if rcode == Rcode::NOERROR { &[1] } else { &[] };
    reply_with(query, rcode, addresses)
}

/// Writes a reply to `query` with addresses of which these are the last octets.
pub(super) fn reply_with(query: &[u8], rcode: Rcode, addresses: &[u8]) -> Vec<u8> {
    let query = Query::parse(query).expect("we send queries");
    let mut out = vec![0; 512];
    let flags = Flags::QR.with(Flags::RD).with(Flags::RA).with_rcode(rcode);
    let mut writer = Writer::new(&mut out, 512, query.header.id, flags);
    writer.question(&query.question).expect("fits");
    for &last in addresses {
        let rdata = |w: &mut Writer<'_>| w.bytes(&[192, 0, 2, last]);
        writer
            .record(Section::Answer, query.question.qname, Rtype::A, Class::IN, Ttl::new(60), rdata)
            .expect("fits");
    }
    if query.edns.is_some() {
        writer.opt(1232, rcode, false, |_| Ok(())).expect("fits");
    }
    let len = writer.finish();
    out.truncate(len);
    out
}

impl Sim {
    pub(super) fn new(pools: Vec<PoolPlan>) -> Self {
        Self::with_limits(pools, Limits::default())
    }

    pub(super) fn with_limits(pools: Vec<PoolPlan>, limits: Limits) -> Self {
        Self::with_plans(pools, limits, &resolvers::Plan::default())
    }

    pub(super) fn with_plans(pools: Vec<PoolPlan>, limits: Limits, resolvers: &resolvers::Plan) -> Self {
        let counters = Counts::default();
        let now = Moment(1_000_000);
        let networks = (Wire::default(), PoolWire::default());
        let mut machine = Machine::new(networks, Arc::default(), StdRng::seed_from_u64(42), &counters, now);
        let plans = (&Plan { pools, limits, ..Plan::default() }, resolvers);
        machine.adopt(plans, &Registry::default(), now);
        Self {
            machine,
            counters,
            now,
            asked: 0,
            ended: HashMap::new(),
            impatient: Vec::new(),
            branches: Vec::new(),
            winners: Vec::new(),
            state_changes: Vec::new(),
            recovered: Vec::new(),
        }
    }

    pub(super) fn ask(&mut self, text: &str) -> u32 {
        self.ask_from(text, Some(CLIENT), None)
    }

    pub(super) fn ask_from(
        &mut self,
        text: &str,
        client: Option<IpAddr>,
        stale_after_ms: Option<u32>,
    ) -> u32 {
        self.ask_query(text, question(text), client, stale_after_ms)
    }

    pub(super) fn ask_query(
        &mut self,
        text: &str,
        query: OutQuery,
        client: Option<IpAddr>,
        stale_after_ms: Option<u32>,
    ) -> u32 {
        let want = Want::Fetch(FetchWant { pool: POOL, query, trusts_ad: false, stale_after_ms });
        self.ask_want(text, want, client)
    }

    pub(super) fn ask_want(&mut self, text: &str, want: Want, client: Option<IpAddr>) -> u32 {
        let number = self.asked;
        self.asked += 1;
        self.machine
            .take(Asker { number, want, client, split: None, parent: None, text: text.to_owned() }, self.now);
        self.settle();
        number
    }

    pub(super) fn adopt_resolvers(&mut self, resolvers: Vec<resolvers::ResolverPlan>) {
        let plans = (&Plan::default(), &resolvers::Plan { resolvers, ..Default::default() });
        self.machine.adopt(plans, &Registry::default(), self.now);
        self.settle();
    }

    pub(super) fn settle(&mut self) {
        while let Some(event) = self.machine.next_event() {
            match event {
                Event::Finished(finished) => self.conclude(finished),
                Event::Rejected(asker, failure) => self.end(&asker, Err(failure), &[]),
                Event::Impatient(waiter) => {
                    let asker = self.machine.waiter(waiter).expect("it waits");
                    self.impatient.push(asker.number);
                    asker.client = None;
                }
                Event::Down(asker) => self.end(&asker, Err(Failure::Down), &[]),
                Event::Recovered(pool) => self.recovered.push(pool),
                Event::StateChange(change) => self.state_changes.push(*change),
                Event::Branch(key, branch) => self.begin_branch(key, branch),
                Event::Slept(asker) => {
                    assert!(self.ended.insert(asker.number, Ok(Rcode::NOERROR)).is_none(), "one end each");
                }
            }
        }
        self.machine.flush(self.now);
    }

    /// Asks a question that each branch asks a pool of its own: branch 0 the first pool, and so on.
    pub(super) fn ask_split(&mut self, text: &str, split: &Rc<SplitStep>, is_shared: bool) -> u32 {
        let number = self.asked;
        self.asked += 1;
        let want = SplitWant::new(
            0,
            is_shared.then(|| SharedSplit { query: question(text), continuation: 0 }),
            None,
        );
        let (want, split) = (Want::Split(Box::new(want)), Some(Rc::clone(split)));
        let asker = Asker { number, want, client: Some(CLIENT), split, parent: None, text: text.to_owned() };
        self.machine.take(asker, self.now);
        self.settle();
        number
    }

    fn begin_branch(&mut self, key: SplitKey, branch: u8) {
        let Some(waiter) = self.machine.split_waiter(key) else { return };
        let text = waiter.text.clone();
        let number = self.asked;
        self.asked += 1;
        let query = question(&text);
        let pool = PoolId(u16::from(branch));
        let want = Want::Fetch(FetchWant { pool, query, trusts_ad: false, stale_after_ms: None });
        let parent = Some((key, branch));
        self.branches.push((number, branch));
        self.machine.take(Asker { number, want, client: Some(CLIENT), split: None, parent, text }, self.now);
    }

    fn end(&mut self, asker: &Asker, brought: Brought, message: &[u8]) {
        if let Some((key, branch)) = asker.parent {
            let worth = match brought {
                Ok(Rcode::NOERROR | Rcode::NXDOMAIN) => Worth::Usable,
                Ok(_) => Worth::Unusable(2),
                Err(_) => Worth::Unusable(1),
            };
            // A branch that failed has an answer all the same: the failure.
            let failure = [0, 0, 0x80, 2, 0, 0, 0, 0, 0, 0, 0, 0];
            let message = if message.is_empty() { &failure } else { message };
            self.machine.branch_ended(key, branch, BranchReport::empty(worth), message, self.now);
        }
        assert!(self.ended.insert(asker.number, brought).is_none(), "one end each");
    }

    pub(super) fn conclude(&mut self, finished: Finished<'_>) {
        let Finished { mut waiters, ending, .. } = finished;
        let rcode = |bytes: &[u8]| Message::parse(bytes).expect("held replies are well formed").rcode();
        let (brought, message) = match &ending {
            Ending::Reply(message) => (Ok(message.rcode()), message.as_bytes()),
            Ending::Held(bytes) => (Ok(rcode(bytes)), &**bytes),
            Ending::Failed(failure) => (Err(*failure), &[][..]),
            Ending::Resolved { resolution, .. } => (Ok(resolution.rcode), &[][..]),
            Ending::Branch { branch, octets, .. } => {
                self.winners.push(*branch);
                (Ok(rcode(octets)), &**octets)
            }
            Ending::NoBranch { .. } => (Err(Failure::BadReply(Rcode::SERVFAIL)), &[][..]),
        };
        while let Some(asker) = self.machine.next_waiter(&mut waiters) {
            self.end(&asker, brought, message);
        }
    }

    /// Takes the oldest packet that was sent and not looked at.
    pub(super) fn sent(&mut self) -> Sent {
        self.machine.network_mut().queued.pop_front().expect("something was sent")
    }

    pub(super) fn sent_nothing(&self) -> bool {
        self.machine.network().queued.is_empty()
    }

    pub(super) fn hear(&mut self, over: Over, bytes: &[u8]) {
        let finished = match over {
            Over::Udp(key) => self.machine.datagram(key, bytes, false, self.now),
            Over::Tcp(key) => self.machine.message(key, bytes, self.now),
        };
        if let Some(finished) = finished {
            // The reply at hand is gone when the call returns, so it is concluded at once.
            self.conclude(finished);
        }
        self.settle();
    }

    pub(super) fn reply(&mut self, sent: &Sent, rcode: Rcode) {
        self.hear(sent.over, &reply_to(&sent.bytes, rcode));
    }

    /// Lets time pass, deadline by deadline.
    pub(super) fn pass(&mut self, ms: u64) {
        let until = self.now + Span::from_ms(ms);
        while let Some(next) = self.machine.next_due().filter(|&next| next <= until) {
            self.now = self.now.max(next);
            self.machine.due(self.now);
            self.settle();
        }
        self.now = until;
        self.machine.due(self.now);
        self.settle();
    }

    /// Answers every packet that `upstream` gets for a while, and drops the others'.
    pub(super) fn run(&mut self, ms: u64, mut upstream: impl FnMut(&Sent) -> Option<Rcode>) -> usize {
        let mut packets = 0;
        for _ in 0..ms {
            self.pass(1);
            while let Some(sent) = self.machine.network_mut().queued.pop_front() {
                packets += 1;
                if let Some(rcode) = upstream(&sent) {
                    self.reply(&sent, rcode);
                }
            }
        }
        packets
    }

    /// Makes the round-trip time to all servers known: `count` queries answered after `ms`.
    pub(super) fn warm_up(&mut self, count: u32, ms: u64) {
        for i in 0..count {
            let asker = self.ask(&format!("warm{i}.example.org"));
            self.pass(ms);
            while let Some(sent) = self.machine.network_mut().queued.pop_front() {
                self.reply(&sent, Rcode::NOERROR);
            }
            assert_eq!(self.ended.remove(&asker), Some(Ok(Rcode::NOERROR)));
        }
    }

    /// Returns how many datagrams are on the wire for clients, as their sockets know them.
    pub(super) fn outstanding(&self) -> usize {
        self.machine.forward().exchange().outstanding()
    }

    pub(super) fn open_link(&mut self, sent: &Sent) {
        let Over::Tcp(key) = sent.over else { panic!("sent over a datagram") };
        self.machine.link_opened(key, self.now);
    }

    pub(super) fn is_up(&self, last: u8) -> bool {
        let status = self.machine.status(self.now);
        let found = status.upstreams.iter().find(|upstream| upstream.address == server(last));
        found.expect("a known upstream").state == UpstreamState::Up
    }
}
