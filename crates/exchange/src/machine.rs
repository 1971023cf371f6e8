//! One question to one server over one transport: what leaves, what comes back, and whether it is
//! believed.
//!
//! Never chooses between servers and never waits: an [`Exchange`] is a state machine over a
//! [`Network`]. Whoever drives it says which server is asked, and takes replies and [`Event`]s out.

mod links;
mod replies;
mod requests;
mod servers;
mod sockets;
mod tapping;

use std::collections::VecDeque;
use std::hash::RandomState;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use dnstap::SharedTap;
use engine::Failure;
use hashbrown::HashTable;
use plan::upstreams::Limits;
use queries::questions::Questions;
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use slab::Slab;
use timers::{Moment, Span, Wheel};
use wire::{HashKey, Message};

use crate::counters::Counters;
use crate::health::{Change, Why};
use crate::network::{LinkKey, Network, SocketKey};
use crate::rtt::{INITIAL, RETRY_MAX};
use crate::server::Server;

use links::Link;
use requests::Request;
use sockets::Socket;

pub use requests::{ATTEMPTS_MAX, Ask, question};
pub use servers::SERVERS_MAX;

/// Names a server from [`Exchange::hold`] to [`Exchange::release`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ServerKey(pub u32);

/// Names a request for as long as there is one, and nothing after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestKey {
    slot: u32,
    serial: u32,
}

/// How the messages of a request look, besides its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Whether RD is set, unless the query forbids it.
    pub recursion_desired: bool,
    /// The UDP payload size in our OPT.
    pub udp_size: u16,
    /// Whether the letter case of the name is made random, to be compared on return.
    pub case_randomisation: bool,
}

/// How to send, where it is not the server's usual way.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// Over TCP whatever the protocol.
    pub stream: bool,
    /// Without EDNS.
    pub plain: bool,
    /// Even while connecting is backed off.
    pub force: bool,
}

/// Who else could be asked: how long one server is waited for depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Alternatives {
    /// Whether another server is up.
    pub has_others: bool,
    /// Whether another address of the same server is up.
    pub has_siblings: bool,
    /// How often the request was sent again because of silence: each time doubles the patience.
    pub resends: u8,
    /// The patience with a server that was never heard from.
    pub unknown: Span,
    /// The longest patience.
    pub longest: Span,
}

impl Alternatives {
    /// Nobody else could be asked.
    pub const NONE: Self =
        Self { has_others: false, has_siblings: false, resends: 0, unknown: INITIAL, longest: RETRY_MAX };
}

/// Why a query cannot leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The network refuses, or did so a moment ago.
    Network,
    /// We have no ID, port, descriptor or connection for it: no fault of the server.
    Shortage,
    /// The request was sent as often as one may be.
    Attempts,
}

impl SendError {
    /// Returns the error for the client if nothing better comes; `None`: the one from before.
    pub const fn failure(self) -> Option<Failure> {
        match self {
            Self::Network => Some(Failure::Network),
            Self::Shortage => Some(Failure::Overloaded),
            Self::Attempts => None,
        }
    }
}

/// A reply that is ours, whole, and from the server that was asked.
pub struct Heard<'b> {
    /// Whom the request belongs to.
    pub tag: u32,
    /// What it answers.
    pub request: RequestKey,
    /// Who sent it.
    pub server: ServerKey,
    /// Where that is.
    pub address: SocketAddr,
    /// How long it took.
    pub took: Span,
    /// Whether the query had EDNS.
    pub had_edns: bool,
    /// The reply.
    pub message: Message<'b>,
}

/// Something that whoever owns a request, or chooses servers, has to know.
#[derive(Debug)]
pub enum Event {
    /// A server went down, came back, or fell silent.
    Changed(ServerKey, Change, Why),
    /// A connection to a server was made.
    Connected(ServerKey),
    /// A request has one hope less: what it was sent as brought nothing that can be used.
    Lost {
        /// Whom the request belongs to.
        tag: u32,
        /// The request.
        request: RequestKey,
        /// Why, if that is new.
        failure: Option<Failure>,
        /// Whether older deadlines are void, because the server was to be asked in another way.
        is_anew: bool,
    },
    /// A request was sent once more to the same server: over TCP, without EDNS, over another
    /// connection.
    Resent {
        /// Whom the request belongs to.
        tag: u32,
        /// The request.
        request: RequestKey,
        /// When it counts as unanswered.
        due: Moment,
        /// Whether older deadlines are void.
        is_anew: bool,
    },
    /// One server was asked ([`Exchange::ask`]) and no reply will be taken any more.
    Unanswered {
        /// Whom the request belongs to.
        tag: u32,
        /// The request, which has ended.
        request: RequestKey,
        /// Why.
        failure: Failure,
    },
    /// A connection took its time: the request counts as unanswered later.
    Later {
        /// Whom the request belongs to.
        tag: u32,
        /// The request.
        request: RequestKey,
        /// When.
        due: Moment,
    },
}

/// What a deadline is for.
#[derive(Clone, Copy, Debug)]
enum Token {
    /// The end of a UDP port's life.
    Socket(u32),
    /// A look at a connection: whether it idles, or is silent.
    Link(u32),
    /// The opening of connections to a server that are to be kept.
    Fill(u32),
    /// The end of a request that has no owner to time it.
    Request(u32),
}

/// Everything one worker has on the wire to other servers.
pub struct Exchange<N> {
    network: N,
    rng: StdRng,
    question_key: HashKey,
    limits: Limits,
    counters: Arc<Counters>,
    servers: Slab<Server>,
    /// The same, by address.
    by_address: HashTable<u32>,
    address_key: RandomState,
    /// Where the search for a server to evict goes on.
    hand: usize,
    sockets: Slab<Socket>,
    links: Slab<Link>,
    /// Datagrams outstanding, by question.
    questions: Questions,
    requests: Slab<Request>,
    request_serial: u32,
    wheel: Wheel<Token>,
    events: VecDeque<Event>,
    /// Sockets that are drained and can be closed at the next flush.
    closing: Vec<SocketKey>,
    failed: Vec<(SocketKey, std::io::ErrorKind)>,
    has_garbage: bool,
    is_stopping: bool,
    /// Where messages are copied to.
    tap: SharedTap,
}

impl<N: Network> Exchange<N> {
    /// Returns an exchange that knows no server and stands at `now`.
    pub fn new(network: N, mut rng: StdRng, counters: Arc<Counters>, now: Moment) -> Self {
        let question_key = HashKey::new([rng.next_u64(), rng.next_u64()]);
        Self {
            network,
            rng,
            question_key,
            limits: Limits::default(),
            counters,
            servers: Slab::new(),
            by_address: HashTable::new(),
            address_key: RandomState::new(),
            hand: 0,
            sockets: Slab::new(),
            links: Slab::new(),
            questions: Questions::new(),
            requests: Slab::new(),
            request_serial: 0,
            wheel: Wheel::new(now),
            events: VecDeque::new(),
            closing: Vec::new(),
            failed: Vec::new(),
            has_garbage: false,
            is_stopping: false,
            tap: SharedTap::default(),
        }
    }

    /// Copies messages into this ring from now on.
    pub fn tap_into(&mut self, tap: SharedTap) {
        self.tap = tap;
    }

    /// Keeps to `limits` from now on.
    pub fn adopt(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Opens no connections in advance, and measures nobody, from now on.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Returns the network.
    pub fn network(&self) -> &N {
        &self.network
    }

    /// Returns the network.
    pub fn network_mut(&mut self) -> &mut N {
        &mut self.network
    }

    /// Returns whether this machine has a way to an address at all.
    pub fn reaches(&self, address: IpAddr) -> bool {
        self.network.reaches(address)
    }

    /// Returns how many UDP sockets are open.
    pub fn socket_count(&self) -> usize {
        self.sockets.len()
    }

    /// Returns how many connections are open or opening.
    pub fn connection_count(&self) -> usize {
        self.links.len()
    }

    /// Returns how many requests there are, those that are only measured included.
    pub fn request_count(&self) -> usize {
        self.requests.len()
    }

    /// Returns how many datagrams are on the wire for requests; health checks do not count.
    pub fn outstanding(&self) -> usize {
        let all = self.sockets.iter().flat_map(|(_, socket)| socket.transactions.iter());
        let is_probe = |slot: u32| self.requests.get(slot as usize).is_some_and(Request::is_probe);
        all.filter(|transaction| !is_probe(transaction.request)).count()
    }

    /// Returns the next thing that happened.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns when to call [`Exchange::due`] next.
    pub fn next_due(&self) -> Option<Moment> {
        self.wheel.next()
    }

    /// Does what is due by `now`.
    pub fn due(&mut self, now: Moment) {
        while let Some(token) = self.wheel.pop(now) {
            match token {
                Token::Socket(socket) => self.socket_due(SocketKey(socket)),
                Token::Link(link) => self.link_due(LinkKey(link), now),
                Token::Fill(server) => self.fill(server, now),
                Token::Request(request) => self.request_due(request, now),
            }
        }
    }

    /// Sends what was queued. Returns whether sending failed: then events report it, and what they
    /// cause wants another flush. Ends: every round after the first is for requests that go
    /// elsewhere, each as often as it has attempts.
    pub fn flush(&mut self, now: Moment) -> bool {
        let mut failed = std::mem::take(&mut self.failed);
        self.network.flush(&mut failed);
        let has_failed = !failed.is_empty();
        for (socket, why) in failed.drain(..) {
            self.socket_failed(socket, why, now);
        }
        self.failed = failed;
        if !has_failed {
            self.close_drained();
            if self.has_garbage {
                self.collect_garbage();
            }
        }
        has_failed
    }

    /// Returns what is known about a server.
    pub fn server(&self, key: ServerKey) -> Option<&Server> {
        self.servers.get(key.0 as usize)
    }

    /// Walks all servers.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().map(|(_, server)| server)
    }

    /// Returns whether a server is up.
    pub fn is_up(&self, key: ServerKey) -> bool {
        self.server(key).is_some_and(|server| server.health.is_up())
    }

    /// Returns when a server that is down is to be asked whether it is back; `None` if it is up.
    pub fn next_probe(&mut self, key: ServerKey, now: Moment) -> Option<Moment> {
        let jitter = self.rng.next_u32();
        self.server(key)?.health.next_probe(now, jitter)
    }

    /// Acts on a server's change of state.
    fn changed(&mut self, key: u32, change: Change, why: Why) {
        match change {
            Change::None => return,
            Change::FellSilent | Change::CameUp => (),
            Change::WentDown => {
                // Our address or route may have changed: the next packets leave through new
                // sockets.
                self.retire_sockets(key);
                self.suspect_links(key);
            }
        }
        self.events.push_back(Event::Changed(ServerKey(key), change, why));
    }

    /// Returns a random number below `bound`.
    fn random_below(&mut self, bound: usize) -> usize {
        self.rng.random_range(0..bound.max(1))
    }
}
