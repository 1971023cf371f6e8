//! Single queries to authoritative servers: many addresses, few sockets.
//!
//! Never does I/O: [`Authorities`] is a state machine over a [`PoolNetwork`].
//!
//! For each of a few upstreams, `exchange` keeps sockets and state. Here nothing is kept of a
//! server but what the shared table of [`Servers`] has. A query leaves once, through a socket drawn
//! from a pool. It is repeated only because of what the server said: without EDNS, with a new
//! cookie, over TCP. Silence ends it: whoever asks chooses another server meanwhile.

#![forbid(unsafe_code)]

mod cookies;
mod counters;
mod deadlines;
mod encryption;
mod limits;
mod links;
mod network;
mod outstanding;
mod pool;
mod replies;
mod sending;
mod tapping;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use cache::NowMs;
use cache::servers::{Edns, LetterCase, Servers};
use dnstap::SharedTap;
use engine::ops::outgoing::ServerOptions;
use queries::questions::Questions;
use rand::Rng;
use rand::rngs::StdRng;
use slab::Slab;
use timers::{Moment, TimerKey, Wheel};
use wire::{ClientSubnet, HashKey, Message, Name, Rtype};

use deadlines::Token;
use links::Link;
use outstanding::{Query, QueryName, Tried, Via};
use pool::{Means, Pool};

pub use cookies::CookieSecret;
pub use counters::Counters;
pub use encryption::Encrypt;
pub use limits::PoolLimits;
pub use network::{Carrier, Family, PoolLinkKey, PoolNetwork, PoolSocketKey, Unsent};

/// A query of class IN to one server.
#[derive(Clone, Copy, Debug)]
pub struct AuthorityQuery<'q> {
    /// Whom to ask.
    pub address: SocketAddr,
    /// The name.
    pub qname: Name<'q>,
    /// The type.
    pub qtype: Rtype,
    /// Whether to ask over TCP at once.
    pub over_tcp: bool,
    /// UDP payload to announce in EDNS.
    pub udp_octets: u16,
    /// What the server makes of EDNS, as far as it is known.
    pub edns: Edns,
    /// Whether it repeats letter case; if it is not known not to, the case is random.
    pub case: LetterCase,
    /// DO.
    pub dnssec_ok: bool,
    /// RD.
    pub recursion_desired: bool,
    /// CD.
    pub checking_disabled: bool,
    /// Whether it has a cookie (RFC 7873), if the server takes EDNS.
    pub cookies: bool,
    /// Which encryption is used where the server has it.
    pub encrypt: Encrypt,
    /// What the server is told of the client (RFC 7871), if it takes EDNS.
    pub subnet: Option<ClientSubnet>,
}

/// Cells in which queries are counted by address: those that share one share the bound on one.
const SERVER_CELLS: usize = 4096;

/// Names a query for as long as there is one, and nothing after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryKey {
    slot: u32,
    serial: u32,
}

/// How a reply came, which says how hard it is to forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// In a datagram.
    Udp,
    /// In a datagram with the cookie that we sent (RFC 7873).
    UdpWithCookie,
    /// Over a connection.
    Tcp,
}

/// A reply that is ours, whole, and from the server that was asked. The query has ended.
pub struct Heard<'b> {
    /// Whose the query was.
    pub tag: u32,
    /// The reply.
    pub message: Message<'b>,
    /// How it came.
    pub arrival: Arrival,
}

/// Why a query has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Nothing came in time.
    Timeout,
    /// The network says that the server cannot be reached, or the server wants no connection.
    Unreachable,
    /// The query could not be sent: we have no room, no socket or no route. It says nothing about
    /// the server.
    NotSent,
}

/// Something that whoever asks has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A query has ended without a reply.
    Unanswered {
        /// Whose it was.
        tag: u32,
        /// Why.
        why: Unanswered,
    },
}

/// Everything one worker has on the wire to authoritative servers.
pub struct Authorities<N> {
    network: N,
    servers: Arc<Servers>,
    cookie_secret: CookieSecret,
    rng: StdRng,
    question_key: HashKey,
    limits: PoolLimits,
    /// What certain servers are sent besides.
    options: ServerOptions,
    counters: Arc<Counters>,
    queries: Slab<Query>,
    /// How many ask each address.
    asked: Questions<SERVER_CELLS>,
    serial: u32,
    pool: Pool,
    links: Slab<Link>,
    wheel: Wheel<Token>,
    events: VecDeque<Event>,
    unsent: Vec<Unsent>,
    /// Where messages are copied to.
    tap: SharedTap,
}

impl<N: PoolNetwork> Authorities<N> {
    /// Returns one without sockets that stands at `now`. Workers that share `servers` share
    /// `cookie_secret`, too.
    pub fn new(
        network: N,
        servers: Arc<Servers>,
        cookie_secret: CookieSecret,
        mut rng: StdRng,
        counters: Arc<Counters>,
        now: Moment,
    ) -> Self {
        let question_key = HashKey::new([rng.next_u64(), rng.next_u64()]);
        Self {
            network,
            servers,
            cookie_secret,
            rng,
            question_key,
            limits: PoolLimits::default(),
            options: ServerOptions::default(),
            counters,
            queries: Slab::new(),
            asked: Questions::new(),
            serial: 0,
            pool: Pool::default(),
            links: Slab::new(),
            wheel: Wheel::new(now),
            events: VecDeque::new(),
            unsent: Vec::new(),
            tap: SharedTap::default(),
        }
    }

    /// Copies messages into this ring from now on.
    pub fn tap_into(&mut self, tap: SharedTap) {
        self.tap = tap;
    }

    /// Keeps to `limits` from now on.
    pub fn adopt(&mut self, limits: PoolLimits) {
        self.limits = limits;
    }

    /// Sends servers these options from now on.
    pub fn send_options(&mut self, options: ServerOptions) {
        self.options = options;
    }

    /// Has queries leave through new sockets and connections from now on; what is outstanding on
    /// the old ones ends there.
    pub fn renew_sockets(&mut self) {
        self.pool.give_up_all();
        self.links.iter_mut().for_each(|(_, link)| link.retire());
    }

    /// Returns the network.
    pub fn network(&self) -> &N {
        &self.network
    }

    /// Returns the network.
    pub fn network_mut(&mut self) -> &mut N {
        &mut self.network
    }

    /// Returns how many queries are outstanding.
    pub fn query_count(&self) -> usize {
        self.queries.len()
    }

    /// Returns how many UDP sockets are open, those included that wait for their last replies.
    pub fn socket_count(&self) -> usize {
        self.pool.len()
    }

    /// Returns how many connections are open or opening.
    pub fn link_count(&self) -> usize {
        self.links.len()
    }

    /// Asks a server; the datagram leaves with the next [`Authorities::flush`].
    ///
    /// Ends with exactly one [`Heard`] or [`Event::Unanswered`] that has `tag`, unless it is
    /// cancelled.
    pub fn ask(&mut self, query: &AuthorityQuery<'_>, tag: u32, now: Moment) -> QueryKey {
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        let server = self.server_cell(query.address);
        let is_full = self.queries.len() >= self.limits.queries as usize;
        if is_full || self.asked.outstanding(server) >= self.limits.server_queries {
            self.counters.shortages.bump();
            self.events.push_back(Event::Unanswered { tag, why: Unanswered::NotSent });
            return QueryKey { slot: u32::MAX, serial };
        }
        self.asked.enter(server);
        let slot = self.queries.insert(Query {
            tag,
            serial,
            address: query.address,
            name: QueryName::new(query.qname),
            qtype: query.qtype,
            udp_octets: match query.edns {
                Edns::UpTo { octets } => query.udp_octets.min(octets),
                Edns::Unknown | Edns::Works | Edns::None => query.udp_octets,
            },
            edns: query.edns,
            case: query.case,
            dnssec_ok: query.dnssec_ok,
            recursion_desired: query.recursion_desired,
            checking_disabled: query.checking_disabled,
            cookies: query.cookies,
            encrypt: query.encrypt,
            subnet: query.subnet.map(Box::new),
            tried: Tried { plain: query.edns == Edns::None, ..Tried::default() },
            wrong: 0,
            has_edns: false,
            expects_cookie: false,
            id: 0,
            via: Via::Nothing,
            sent: now,
            case_seed: None,
            timer: TimerKey::NONE,
        }) as u32;
        let is_plain = query.encrypt.is_off() || query.over_tcp;
        let carrier = if is_plain { None } else { self.encrypted_carrier(slot, now) };
        let sent = match carrier {
            Some(carrier) => self.send_encrypted(slot, carrier, now).or_else(|_| self.send_plain(slot, now)),
            None if query.over_tcp => self.send_stream(slot, now),
            None => self.send_datagram(slot, now),
        };
        if let Err(why) = sent {
            self.fail(slot, why);
        }
        QueryKey { slot, serial }
    }

    /// Forgets a query: nobody wants the reply any more. If it has ended already, its event still
    /// comes.
    pub fn cancel(&mut self, key: QueryKey) {
        if self.queries.get(key.slot as usize).is_some_and(|query| query.serial == key.serial) {
            self.end(key.slot, false);
        }
    }

    /// Returns the next thing that happened.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns when to call [`Authorities::due`] next.
    pub fn next_due(&self) -> Option<Moment> {
        self.wheel.next()
    }

    /// Does what is due by `now`.
    pub fn due(&mut self, now: Moment) {
        while let Some(token) = self.wheel.pop(now) {
            match token {
                Token::Query(slot) => self.query_due(slot, now),
                Token::Socket(key) => {
                    let (pool, mut means) = self.pool_and_means();
                    pool.due(PoolSocketKey(key), &mut means, now);
                }
                Token::Link(key) => self.link_due(PoolLinkKey(key), now),
            }
        }
    }

    /// Sends what was queued, and closes sockets that are no longer needed. What could not be sent
    /// becomes events.
    pub fn flush(&mut self) {
        let mut unsent = std::mem::take(&mut self.unsent);
        self.network.flush(&mut unsent);
        self.pool.flushed();
        for one in unsent.drain(..) {
            self.unsent(&one);
        }
        self.unsent = unsent;
        self.pool.close_drained(&mut self.network, &mut self.wheel);
    }

    /// Takes the news that a socket itself has failed: no reply will be read there.
    pub fn socket_failed(&mut self, key: PoolSocketKey) {
        self.counters.network_errors.bump();
        self.pool.give_up(key);
        // Ends: each round ends a query.
        while let Some(slot) = self.pool.any_query(key) {
            self.fail(slot, Unanswered::NotSent);
        }
    }

    /// Ends a query that has no reply.
    fn fail(&mut self, slot: u32, why: Unanswered) {
        if let Some(query) = self.end(slot, false) {
            self.events.push_back(Event::Unanswered { tag: query.tag, why });
        }
    }

    /// Forgets a query, and what was sent for it.
    fn end(&mut self, slot: u32, is_answered: bool) -> Option<Query> {
        self.withdraw(slot, is_answered);
        let query = self.queries.try_remove(slot as usize)?;
        self.wheel.cancel(query.timer);
        self.asked.leave(self.server_cell(query.address));
        Some(query)
    }

    /// Forgets what was sent for a query, but not the query.
    fn withdraw(&mut self, slot: u32, is_answered: bool) {
        let Some(query) = self.queries.get_mut(slot as usize) else { return };
        match std::mem::replace(&mut query.via, Via::Nothing) {
            Via::Nothing => (),
            Via::Socket(key) => self.pool.end(key, query.id, is_answered),
            Via::Link(key) => {
                if let Some(link) = self.links.get_mut(key.0 as usize) {
                    link.end(query.id);
                }
            }
        }
    }

    /// Returns the cell that queries to an address are counted in.
    fn server_cell(&self, address: SocketAddr) -> u32 {
        let bits = match address.ip() {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        let hash = self.question_key.mix((bits >> 64) as u64, bits as u64);
        self.question_key.mix(hash, u64::from(address.port())) as u32
    }

    fn pool_and_means(&mut self) -> (&mut Pool, Means<'_, N>) {
        let Self { pool, network, rng, wheel, limits, .. } = self;
        (pool, Means { network, rng, wheel, limits })
    }
}

/// Returns the time as facts about servers count it.
const fn ms(now: Moment) -> NowMs {
    NowMs(now.0 / 1000)
}
