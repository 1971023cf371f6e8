//! Groups of servers over an exchange: which server is asked, when a second one is, and when it is
//! given up.
//!
//! Never answers a client and never waits: what has ended is taken out as [`Event`]s.

mod names;
mod pools;
mod replies;
mod sending;
mod steps;

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use engine::{Failure, OutQuery, PoolId};
use rand::SeedableRng;
use rand::rngs::StdRng;
use slab::Slab;
use timers::{Moment, Span, TimerKey, Wheel};
use wire::Message;

use crate::counters::Counters;
use crate::pick::Candidate;
use crate::upstream_log::StateChange;
use exchange::network::{LinkKey, Network, SocketKey};
use exchange::{Exchange, RequestKey, ServerKey, Terms};

use names::Named;
use pools::Pool;

/// Time between clients' queries that are asked although their group is down and their clients have
/// been served.
const TRY_EVERY: Span = Span::from_ms(500);
/// Credit that can be saved up.
const HEDGE_CREDIT_MAX: u32 = 100;

const NIL: u32 = u32::MAX;

/// Names a group as it is now; a reload that changes it makes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolKey(u32);

/// Names a fetch until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchKey(u32);

/// Something for whoever has fetches begun.
pub enum Event {
    /// A fetch ended.
    Ended(Ended<'static>),
    /// Every server of this group is down, or has been silent for so long that expired answers are
    /// given.
    Silent(PoolKey),
    /// A server of this group answers again after having been down.
    Recovered(PoolId),
    /// A server went down or came back.
    StateChange(Box<StateChange>),
}

/// A fetch that ended.
pub struct Ended<'b> {
    /// What [`Forward::begin`] was given.
    pub tag: u32,
    /// How.
    pub ending: Ending<'b>,
    /// Who sent the reply, and how long after it was asked.
    pub from: Option<(SocketAddr, Span)>,
}

/// How a fetch ended.
pub enum Ending<'b> {
    /// With the reply that is at hand.
    Reply(Message<'b>),
    /// With a reply that came earlier, in the hope of a better one.
    Held(Box<[u8]>),
    /// With nothing.
    Failed(Failure),
}

/// What a deadline is for.
#[derive(Clone, Copy, Debug)]
enum Token {
    /// The next step of a fetch.
    Fetch(u32),
    /// A health check of a server that is down.
    Probe(ServerKey),
    /// The refresh of a server's addresses: its name, and whether of IPv6.
    Name(u32, names::Family),
    /// The end of the wait for a server's other addresses.
    Settle(u32),
}

/// Why we ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// For whoever knows it by this tag.
    Tag(u32),
    /// To learn addresses of a server.
    Resolve { named: u32, family: names::Family },
}

struct Fetch {
    purpose: Purpose,
    pool: u32,
    request: RequestKey,
    /// Times that we had to send again because of silence.
    resends: u8,
    /// Whether all servers were down at the start.
    is_last_resort: bool,
    /// Whether it waits for the pool's first address.
    is_parked: bool,
    hedge_at: Moment,
    retry_at: Moment,
    deadline: Moment,
    timer: TimerKey,
    held: Option<Held>,
    /// When what is held is good enough.
    settle_at: Moment,
    /// Answers among which none has enough that agree with it.
    votes: Vec<Box<[u8]>>,
    last_failure: Failure,
}

impl Fetch {
    /// Waits for the answer to what was just sent: in a race the fastest server's patience counts;
    /// later sends start it anew.
    fn wait_until(&mut self, due: Moment, now: Moment) {
        self.retry_at = if self.retry_at > now { self.retry_at.min(due) } else { due };
    }

    /// Forgets the deadlines of what was sent before: what is sent next has its own patience.
    fn begin_anew(&mut self) {
        (self.retry_at, self.hedge_at) = (Moment::NEVER, Moment::NEVER);
    }
}

/// A reply that is kept in case nothing better comes.
struct Held {
    rank: u8,
    bytes: Box<[u8]>,
}

/// All groups of one worker and what they fetch.
pub struct Forward<N> {
    exchange: Exchange<N>,
    rng: StdRng,
    counters: Arc<Counters>,
    pools: Slab<Pool>,
    /// Runtime pool by [`PoolId`]; `NIL` where there is none.
    by_id: Vec<u32>,
    named: Slab<Named>,
    /// When servers that are down are asked next.
    probes: HashMap<ServerKey, TimerKey>,
    fetches: Slab<Fetch>,
    /// Fetches that somebody else has begun.
    active: u32,
    wheel: Wheel<Token>,
    events: VecDeque<Event>,
    candidates: Vec<Candidate>,
    has_garbage: bool,
    is_stopping: bool,
}

impl<N: Network> Forward<N> {
    /// Returns one without groups (see [`Forward::adopt`]) that stands at `now`.
    pub fn new(exchange: Exchange<N>, mut rng: StdRng, counters: Arc<Counters>, now: Moment) -> Self {
        Self {
            exchange,
            rng: StdRng::from_rng(&mut rng),
            counters,
            pools: Slab::new(),
            by_id: Vec::new(),
            named: Slab::new(),
            probes: HashMap::new(),
            fetches: Slab::new(),
            active: 0,
            wheel: Wheel::new(now),
            events: VecDeque::new(),
            candidates: Vec::new(),
            has_garbage: false,
            is_stopping: false,
        }
    }

    /// Returns what it asks through.
    pub fn exchange(&self) -> &Exchange<N> {
        &self.exchange
    }

    /// Returns what it asks through.
    pub fn exchange_mut(&mut self) -> &mut Exchange<N> {
        &mut self.exchange
    }

    /// Returns how many fetches were begun by others and have not ended.
    pub fn active(&self) -> u32 {
        self.active
    }

    /// Returns how many fetches there are, its own included.
    pub fn fetch_count(&self) -> usize {
        self.fetches.len()
    }

    /// Returns how many groups there are, those included that were replaced and have fetches.
    pub fn pool_count(&self) -> usize {
        self.pools.len()
    }

    /// Returns the next thing that happened.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the group with this number.
    pub fn pool(&self, id: PoolId) -> Option<PoolKey> {
        let key = self.pool_of(id);
        self.pools.contains(key as usize).then_some(PoolKey(key))
    }

    fn pool_of(&self, id: PoolId) -> u32 {
        self.by_id.get(usize::from(id.0)).copied().unwrap_or(NIL)
    }

    /// Returns how many fetches others have begun in a group, and how many there may be.
    pub fn load(&self, pool: PoolKey) -> (u32, u32) {
        self.pools.get(pool.0 as usize).map_or((0, u32::MAX), |pool| (pool.active, pool.room))
    }

    /// Returns whether every server of a group is down, or has been silent for so long that expired
    /// answers are given.
    pub fn is_silent(&self, pool: PoolKey) -> bool {
        let Some(pool) = self.pools.get(pool.0 as usize) else { return false };
        let is_silent = |member: &pools::Member| {
            self.exchange.server(member.server).is_some_and(|server| server.health.is_silent())
        };
        !pool.members.is_empty() && pool.members.iter().all(is_silent)
    }

    /// Returns whether one more query is asked although every server of its group is silent and its
    /// client is served without: one now and then, because a server may answer clients' questions
    /// and not ours.
    pub fn may_try(&mut self, pool: PoolKey, now: Moment) -> bool {
        let Some(pool) = self.pools.get_mut(pool.0 as usize) else { return false };
        let is_due = now >= pool.try_at;
        if is_due {
            pool.try_at = now + TRY_EVERY;
        }
        is_due
    }

    /// Returns what a fetch asks.
    pub fn query(&self, fetch: FetchKey) -> Option<&OutQuery> {
        self.exchange.query(self.fetches.get(fetch.0 as usize)?.request)
    }

    /// Begins a fetch. How it ends comes as [`Event::Ended`] or with the call that brings its
    /// reply, and carries `tag`.
    pub fn begin(&mut self, pool: PoolKey, query: OutQuery, tag: u32, now: Moment) -> FetchKey {
        let timeout = match self.pools.get_mut(pool.0 as usize) {
            Some(pool) => {
                pool.active += 1;
                pool.give_up_after()
            }
            None => Span(0),
        };
        let fetch = self.insert(Purpose::Tag(tag), pool.0, query, now + timeout);
        self.active += 1;
        self.counters.fetches.bump();
        self.start(fetch, now);
        self.drain(now);
        FetchKey(fetch)
    }

    /// Ends a fetch that nobody waits for any more, without an event.
    pub fn cancel(&mut self, fetch: FetchKey) {
        if let Some(fetch) = self.remove(fetch.0) {
            self.exchange.close(fetch.request);
        }
    }

    /// Ends all fetches, and begins none of its own any more.
    pub fn stop(&mut self, now: Moment) {
        self.is_stopping = true;
        self.exchange.stop();
        let all: Vec<u32> = self.fetches.iter().map(|(fetch, _)| fetch as u32).collect();
        for fetch in all {
            self.finish_later(fetch, Ending::Failed(Failure::Stopping), now);
        }
    }

    fn insert(&mut self, purpose: Purpose, pool: u32, query: OutQuery, deadline: Moment) -> u32 {
        let mut terms = Terms { recursion_desired: true, udp_size: 1232, case_randomisation: false };
        if let Some(pool) = self.pools.get_mut(pool as usize) {
            pool.fetching += 1;
            pool.hedge_credit = (pool.hedge_credit + 1).min(HEDGE_CREDIT_MAX);
            terms = Terms {
                recursion_desired: pool.plan.recursion_desired,
                udp_size: pool.plan.udp_size,
                case_randomisation: pool.plan.mixes_case(query.qname.as_name()),
            };
        }
        let request = self.exchange.open(query, terms, self.fetches.vacant_key() as u32);
        self.fetches.insert(Fetch {
            purpose,
            pool,
            request,
            resends: 0,
            is_last_resort: false,
            is_parked: false,
            hedge_at: Moment::NEVER,
            retry_at: Moment::NEVER,
            deadline,
            timer: TimerKey::NONE,
            held: None,
            settle_at: Moment::NEVER,
            votes: Vec::new(),
            last_failure: Failure::Timeout,
        }) as u32
    }

    /// Takes a fetch off the books.
    fn remove(&mut self, key: u32) -> Option<Fetch> {
        let fetch = self.fetches.try_remove(key as usize)?;
        self.wheel.cancel(fetch.timer);
        let is_active = matches!(fetch.purpose, Purpose::Tag(_));
        self.active -= u32::from(is_active);
        if let Some(pool) = self.pools.get_mut(fetch.pool as usize) {
            pool.active -= u32::from(is_active);
            pool.fetching -= 1;
            self.has_garbage |= pool.is_retired;
        }
        Some(fetch)
    }

    /// Ends a fetch from where its ending cannot be handed out directly.
    fn finish_later(&mut self, key: u32, ending: Ending<'static>, now: Moment) {
        if let Some(ended) = self.finish(key, ending, now) {
            self.events.push_back(Event::Ended(ended));
        }
    }

    /// Ends a fetch; returns what whoever began it gets.
    fn finish<'b>(&mut self, key: u32, ending: Ending<'b>, now: Moment) -> Option<Ended<'b>> {
        let Fetch { purpose, request, .. } = self.remove(key)?;
        self.exchange.linger(request);
        match purpose {
            Purpose::Tag(tag) => {
                match ending {
                    Ending::Failed(Failure::Timeout) => self.counters.timeouts.bump(),
                    Ending::Failed(_) => self.counters.failures.bump(),
                    Ending::Reply(_) | Ending::Held(_) => (),
                }
                Some(Ended { tag, ending, from: None })
            }
            Purpose::Resolve { named, family } => {
                match ending {
                    Ending::Reply(message) => self.resolved(named, family, Some(&message), now),
                    Ending::Held(_) | Ending::Failed(_) => self.resolved(named, family, None, now),
                }
                None
            }
        }
    }
}

/// What the network brings.
impl<N: Network> Forward<N> {
    /// Takes one datagram; `is_cut` says that it was longer than our buffer.
    pub fn datagram<'b>(
        &mut self,
        key: SocketKey,
        bytes: &'b [u8],
        is_cut: bool,
        now: Moment,
    ) -> Option<Ended<'b>> {
        let heard = self.exchange.datagram(key, bytes, is_cut, now);
        self.heard(heard, now)
    }

    /// Takes one message from a connection.
    pub fn message<'b>(&mut self, key: LinkKey, bytes: &'b [u8], now: Moment) -> Option<Ended<'b>> {
        let heard = self.exchange.message(key, bytes, now);
        self.heard(heard, now)
    }

    fn heard<'b>(&mut self, heard: Option<exchange::Heard<'b>>, now: Moment) -> Option<Ended<'b>> {
        self.drain(now);
        let ended = self.reply(&heard?, now);
        self.drain(now);
        ended
    }

    /// Takes the news that the network refused what a socket sent.
    pub fn socket_failed(&mut self, key: SocketKey, why: ErrorKind, now: Moment) {
        self.exchange.socket_failed(key, why, now);
        self.drain(now);
    }

    /// Takes the news that a connection is open.
    pub fn link_opened(&mut self, key: LinkKey, now: Moment) {
        self.exchange.link_opened(key, now);
        self.drain(now);
    }

    /// Takes the news that a connection could not be made, or that it ended, and why.
    pub fn link_closed(&mut self, key: LinkKey, trouble: Option<String>, now: Moment) {
        self.exchange.link_closed(key, trouble, now);
        self.drain(now);
    }

    /// Takes the news that a connection could not even be tried.
    pub fn link_lacked(&mut self, key: LinkKey, now: Moment) {
        self.exchange.link_lacked(key, now);
        self.drain(now);
    }

    /// Takes the news that a message on a connection does not end.
    pub fn link_stalled(&mut self, key: LinkKey, now: Moment) {
        self.exchange.link_stalled(key, now);
        self.drain(now);
    }

    /// Sends what was queued, once per batch; forgets what is no longer used.
    pub fn flush(&mut self, now: Moment) {
        // Ends: every round after the first is for fetches that failed over, each at most as often
        // as it has attempts.
        while self.exchange.flush(now) {
            self.drain(now);
        }
        if self.has_garbage {
            self.collect_garbage();
        }
    }

    /// Returns when to call [`Forward::due`] next.
    pub fn next_due(&self) -> Option<Moment> {
        match (self.exchange.next_due(), self.wheel.next()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Does what is due by `now`.
    pub fn due(&mut self, now: Moment) {
        self.exchange.due(now);
        self.drain(now);
        while let Some(token) = self.wheel.pop(now) {
            match token {
                Token::Fetch(fetch) => self.fetch_due(fetch, now),
                Token::Probe(server) => self.probe_due(server, now),
                Token::Name(named, family) => self.name_due(named, family, now),
                Token::Settle(named) => self.settle_name(named, now),
            }
            self.drain(now);
        }
    }

    /// Acts on what the exchange tells of. Ends: each event stands for an attempt that was made or
    /// ended, and a fetch has few.
    fn drain(&mut self, now: Moment) {
        while let Some(event) = self.exchange.next_event() {
            match event {
                exchange::Event::Changed(server, change, why) => self.changed(server, change, why, now),
                // Only who asks one server by itself gets it; no group does.
                exchange::Event::Unanswered { .. } => (),
                exchange::Event::Connected(server) => self.worked(server, now),
                exchange::Event::Lost { tag, request, failure, is_anew } => {
                    let Some(fetch) = self.fetch_of(tag, request) else { continue };
                    fetch.last_failure = failure.unwrap_or(fetch.last_failure);
                    if is_anew {
                        fetch.begin_anew();
                    }
                    self.advance(tag, now);
                }
                exchange::Event::Resent { tag, request, due, is_anew } => {
                    let Some(fetch) = self.fetch_of(tag, request) else { continue };
                    if is_anew {
                        fetch.begin_anew();
                    }
                    fetch.wait_until(due, now);
                    self.arm(tag);
                }
                exchange::Event::Later { tag, request, due } => {
                    let Some(fetch) = self.fetch_of(tag, request) else { continue };
                    if fetch.retry_at != Moment::NEVER {
                        fetch.retry_at = due;
                        self.arm(tag);
                    }
                }
            }
        }
    }

    /// Returns the fetch that a request belongs to, unless it has ended.
    fn fetch_of(&mut self, key: u32, request: RequestKey) -> Option<&mut Fetch> {
        self.fetches.get_mut(key as usize).filter(|fetch| fetch.request == request)
    }
}
