//! Every fetch of one worker as one state machine without I/O: it is told what happened and when,
//! and tells its [`Network`] what to send.
//!
//! Never waits, reads no clock, and calls nobody back: what has ended is taken out as [`Event`]s.

mod ending;
mod links;
mod names;
mod pools;
mod replies;
mod sending;
mod sockets;
mod splits;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use engine::ops::split::{BranchReport, Next, Progress};
use engine::{EndedBranch, Failure, OutQuery, PoolId, Want};
use hashbrown::HashTable;
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use slab::Slab;
use wire::{Class, HashKey, Message, NameBuf, Rcode, Rtype};

use crate::clients::{ClientCell, Clients};
use crate::counters::Counters;
use crate::network::{LinkKey, Network, SocketKey};
use crate::packet::CaseSeed;
use crate::pick::Candidate;
use crate::plan::{Limits, RcodeSet};
use crate::time::{Moment, Span};
use crate::upstream::Upstream;
use crate::wheel::{TimerKey, Wheel};
use links::Link;
use names::Named;
use pools::Pool;
use sockets::Socket;
use splits::Split;
pub(crate) use splits::SplitKey;

/// Sends one fetch may cause, so that a lossy or lying network costs a bounded number of packets.
const ATTEMPTS_MAX: usize = 8;
/// Wrong replies to one fetch after which it goes on over TCP: somebody may be guessing.
const WRONG_MAX: u8 = 4;
/// Time for the answer to a probe.
const PROBE_TIMEOUT: Span = Span::from_ms(900);
/// Hedges cost ten fetches' worth of credit: at most one query in ten is hedged.
const HEDGE_COST: u32 = 10;
/// Credit that can be saved up.
const HEDGE_CREDIT_MAX: u32 = 100;

const NIL: u32 = u32::MAX;

/// A query that waits, as far as the machine must know it.
pub(crate) trait Waiter {
    /// Returns what it waits for.
    fn want(&self) -> &Want;
    /// Returns whose query it is; `None` for work that no client waits for.
    fn client(&self) -> Option<IpAddr>;
    /// Returns what to do about the branches it waits for when they are so far.
    fn next(&self, progress: &Progress) -> Next;
    /// Takes the answer of a branch that ended before it was taken.
    fn take_ended(&mut self, branch: u8) -> Option<EndedBranch>;
}

/// Something for the owner of the machine to do.
pub(crate) enum Event<W> {
    /// A fetch ended.
    Finished(Finished<'static>),
    /// A query was not taken.
    Rejected(W, Failure),
    /// The client of this waiter (see [`Machine::waiter`]) should get a stale answer now; the fetch goes on.
    Impatient(u32),
    /// This branch is to start, for whoever waits there (see [`Machine::split_waiter`]); its end is told with
    /// [`Machine::branch_ended`].
    Branch(SplitKey, u8),
    /// A query has slept enough.
    Slept(W),
}

/// A fetch that ended, and who waited for it (see [`Machine::next_waiter`]).
pub(crate) struct Finished<'b> {
    pub(crate) waiters: WaiterList,
    pub(crate) ending: Ending<'b>,
    /// Who sent the reply, and how long after it was asked.
    pub(crate) from: Option<(SocketAddr, Span)>,
}

/// The waiters of a fetch that ended.
pub(crate) struct WaiterList(u32);

/// How a fetch ended.
pub(crate) enum Ending<'b> {
    /// With the reply that is at hand.
    Reply(Message<'b>),
    /// With an unusable reply that came earlier.
    Held(Box<[u8]>),
    /// With nothing.
    Failed(Failure),
    /// With the answer of a branch.
    Branch {
        /// Which branch.
        branch: u8,
        /// What is known about it.
        report: BranchReport,
        /// How far the branches were.
        progress: Progress,
        /// The answer.
        octets: Box<[u8]>,
    },
    /// Without an answer from any branch.
    NoBranch,
}

/// What a deadline is for.
#[derive(Clone, Copy, Debug)]
enum Token {
    /// The next step of a fetch.
    Fetch(u32),
    /// The patience of a client that could have a stale answer.
    Waiter(u32),
    /// A probe of an upstream that is down.
    Probe(u32),
    /// A look at a connection: whether it idles, or is silent.
    Link(u32),
    /// The opening of connections to an upstream that are to be kept.
    Fill(u32),
    /// The time that a split gives its branches.
    Split(u32),
    /// The end of a sleep.
    Sleep(u32),
    /// The refresh of an upstream's addresses: its name, and whether of IPv6.
    Name(u32, names::Family),
    /// The end of the wait for an upstream's other addresses.
    Settle(u32),
}

/// Why we ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// For clients (and refreshes).
    Clients,
    /// To see whether an upstream is back.
    Probe { upstream: u32 },
    /// To learn addresses of an upstream.
    Resolve { named: u32, family: names::Family },
}

struct Fetch {
    purpose: Purpose,
    /// The pool; `NIL` for probes.
    pool: u32,
    query: OutQuery,
    question: u32,
    /// First and last waiter, and how many.
    waiters: (u32, u32, u32),
    attempts: [Attempt; ATTEMPTS_MAX],
    attempt_count: u8,
    /// Times that we had to send again because of silence.
    resends: u8,
    wrong: u8,
    /// Whether only TCP is to be trusted.
    is_stream_only: bool,
    /// The upstream that did not echo our letter case, until TCP shows whether it is to blame.
    case_suspect: Option<u32>,
    /// Whether a dying connection has cost this fetch a second attempt already.
    is_relinked: bool,
    /// Whether all servers were down at the start.
    is_last_resort: bool,
    /// Whether it waits for the pool's first address.
    is_parked: bool,
    /// Whether it ended, and only waits to measure the servers that have not answered yet.
    is_lingering: bool,
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

/// An unusable reply, kept in case nothing better comes.
struct Held {
    rank: u8,
    bytes: Box<[u8]>,
}

#[derive(Clone, Copy)]
struct Attempt {
    upstream: u32,
    via: Via,
    id: u16,
    state: AttemptState,
    has_edns: bool,
    case: Option<CaseSeed>,
    sent: Moment,
    /// When it counts as unanswered.
    due: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Via {
    Socket(SocketKey),
    Link(LinkKey),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttemptState {
    /// On the wire.
    Waiting,
    /// Still on the wire, but given up on.
    Overdue,
    /// Answered, and the answer did not end the fetch; or taken back.
    Done,
    /// The network refused.
    Failed,
}

impl Attempt {
    const UNUSED: Self = Self {
        upstream: NIL,
        via: Via::Socket(SocketKey(NIL)),
        id: 0,
        state: AttemptState::Done,
        has_edns: false,
        case: None,
        sent: Moment(0),
        due: Moment(0),
    };

    /// Returns whether a reply to it would be taken.
    fn is_open(&self) -> bool {
        matches!(self.state, AttemptState::Waiting | AttemptState::Overdue)
    }
}

impl Fetch {
    fn attempts(&self) -> &[Attempt] {
        self.attempts.get(..usize::from(self.attempt_count)).unwrap_or(&[])
    }

    fn attempts_mut(&mut self) -> &mut [Attempt] {
        self.attempts.get_mut(..usize::from(self.attempt_count)).unwrap_or(&mut [])
    }

    fn any(&self, state: AttemptState) -> bool {
        self.attempts().iter().any(|attempt| attempt.state == state)
    }
}

struct WaiterEntry<W> {
    who: W,
    next: u32,
    /// The end of its patience, or of its sleep.
    timer: TimerKey,
    is_asleep: bool,
    cell: Option<ClientCell>,
}

/// How to send, where it is not the upstream's usual way.
#[derive(Clone, Copy, Debug, Default)]
struct How {
    /// Over TCP whatever the protocol.
    stream: bool,
    /// Without EDNS.
    plain: bool,
    /// Even while connecting is backed off.
    force: bool,
}

/// All fetches of one worker.
pub(crate) struct Machine<N, W> {
    pub(crate) network: N,
    rng: StdRng,
    question_key: HashKey,
    limits: Limits,
    counters: Arc<Counters>,
    pools: Slab<Pool>,
    /// Runtime pool by [`PoolId`]; `NIL` where there is none.
    by_id: Vec<u32>,
    upstreams: Slab<Upstream>,
    named: Slab<Named>,
    sockets: Slab<Socket>,
    links: Slab<Link>,
    fetches: Slab<Fetch>,
    /// Fetches that clients wait for; the others linger or are our own.
    active: u32,
    index: HashTable<u32>,
    waiters: Slab<WaiterEntry<W>>,
    splits: Slab<Split>,
    split_index: HashTable<u32>,
    split_serial: u32,
    clients: Clients,
    wheel: Wheel<Token>,
    events: VecDeque<Event<W>>,
    /// Upstreams with a socket chosen for this burst.
    bursts: Vec<u32>,
    /// Sockets that are drained and can be closed at the next flush.
    closing: Vec<SocketKey>,
    failed: Vec<SocketKey>,
    candidates: Vec<Candidate>,
    has_garbage: bool,
    is_stopping: bool,
}

impl<N: Network, W: Waiter> Machine<N, W> {
    /// Returns a machine without pools (see [`Machine::adopt`]) that stands at `now`.
    pub(crate) fn new(network: N, mut rng: StdRng, counters: Arc<Counters>, now: Moment) -> Self {
        let question_key = HashKey::new([rng.next_u64(), rng.next_u64()]);
        let clients = Clients::new(HashKey::new([rng.next_u64(), rng.next_u64()]));
        Self {
            network,
            rng,
            question_key,
            limits: Limits::default(),
            counters,
            pools: Slab::new(),
            by_id: Vec::new(),
            upstreams: Slab::new(),
            named: Slab::new(),
            sockets: Slab::new(),
            links: Slab::new(),
            fetches: Slab::new(),
            active: 0,
            index: HashTable::new(),
            waiters: Slab::new(),
            splits: Slab::new(),
            split_index: HashTable::new(),
            split_serial: 0,
            clients,
            wheel: Wheel::new(now),
            events: VecDeque::new(),
            bursts: Vec::new(),
            closing: Vec::new(),
            failed: Vec::new(),
            candidates: Vec::new(),
            has_garbage: false,
            is_stopping: false,
        }
    }

    /// Returns how many fetches clients wait for.
    pub(crate) fn active(&self) -> usize {
        self.active as usize
    }

    /// Returns how many queries wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// Returns the next thing to do.
    pub(crate) fn next_event(&mut self) -> Option<Event<W>> {
        self.events.pop_front()
    }

    /// Returns whether there is something to do.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Takes the next waiter of a fetch that ended; `None` when there are no more.
    pub(crate) fn next_waiter(&mut self, list: &mut WaiterList) -> Option<W> {
        let entry = self.waiters.try_remove(list.0 as usize)?;
        list.0 = entry.next;
        self.wheel.cancel(entry.timer);
        if let Some(cell) = entry.cell {
            self.clients.leave(cell);
        }
        Some(entry.who)
    }

    /// Returns a waiter whose patience ended.
    pub(crate) fn waiter(&mut self, key: u32) -> Option<&mut W> {
        self.waiters.get_mut(key as usize).map(|entry| &mut entry.who)
    }

    /// Takes a query: joins what it waits for, or begins it.
    pub(crate) fn take(&mut self, who: W, now: Moment) {
        match who.want() {
            Want::Fetch(_) => self.take_fetch(who, now),
            Want::Split(_) => self.take_split(who, now),
            Want::Sleep(_) => self.take_sleeper(who, now),
        }
    }

    fn take_fetch(&mut self, who: W, now: Moment) {
        let Want::Fetch(want) = who.want() else { return };
        let is_errand = who.client().is_none();
        let pool = self.pool_of(want.pool);
        let query = &want.query;
        let found = self.index.find(query.hash, |&fetch| {
            self.fetches.get(fetch as usize).is_some_and(|other| other.pool == pool && other.query == *query)
        });
        if let Some(&fetch) = found {
            // What an errand would bring is on its way already.
            if !is_errand {
                self.counters.coalesced.bump();
                match self.admit(self.waiting_for(fetch), &who) {
                    Ok(cell) => self.attach(fetch, who, cell, now),
                    Err(failure) => self.events.push_back(Event::Rejected(who, failure)),
                }
            }
            return;
        }
        match self.begin(pool, query.clone(), now) {
            Ok(fetch) => match self.admit(0, &who) {
                Ok(cell) => {
                    self.attach(fetch, who, cell, now);
                    self.start(fetch, now);
                }
                Err(failure) => {
                    self.remove(fetch);
                    self.events.push_back(Event::Rejected(who, failure));
                }
            },
            Err(failure) => self.events.push_back(Event::Rejected(who, failure)),
        }
    }

    /// Ends all fetches, and takes no more.
    pub(crate) fn stop(&mut self, now: Moment) {
        self.is_stopping = true;
        self.wake_all();
        let all: Vec<u32> = self.fetches.iter().map(|(fetch, _)| fetch as u32).collect();
        for fetch in all {
            self.finish_later(fetch, Ending::Failed(Failure::Stopping), now);
        }
    }

    /// Returns when to call [`Machine::due`] next.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.wheel.next()
    }

    /// Does what is due by `now`.
    pub(crate) fn due(&mut self, now: Moment) {
        while let Some(token) = self.wheel.pop(now) {
            match token {
                Token::Fetch(fetch) => self.fetch_due(fetch, now),
                Token::Waiter(waiter) => {
                    if let Some(entry) = self.waiters.get_mut(waiter as usize) {
                        entry.timer = TimerKey::NONE;
                        self.counters.impatient.bump();
                        self.events.push_back(Event::Impatient(waiter));
                    }
                }
                Token::Probe(upstream) => self.probe_due(upstream, now),
                Token::Link(link) => self.link_due(LinkKey(link), now),
                Token::Fill(upstream) => self.fill(upstream, now),
                Token::Split(split) => self.split_due(split, now),
                Token::Sleep(waiter) => self.wake(waiter),
                Token::Name(named, family) => self.name_due(named, family, now),
                Token::Settle(named) => self.settle_name(named, now),
            }
        }
    }

    fn pool_of(&self, id: PoolId) -> u32 {
        self.by_id.get(usize::from(id.0)).copied().unwrap_or(NIL)
    }

    fn waiting_for(&self, fetch: u32) -> u32 {
        self.fetches.get(fetch as usize).map_or(0, |fetch| fetch.waiters.2)
    }

    /// Decides whether one more query may wait where `beside` do.
    fn admit(&self, beside: u32, who: &W) -> Result<Option<ClientCell>, Failure> {
        let waiting = self.waiters.len() as u32;
        if waiting >= self.limits.waiting_max || beside >= self.limits.waiting_per_fetch_max {
            self.counters.shed_waiting.bump();
            return Err(Failure::Overloaded);
        }
        let Some(client) = who.client() else { return Ok(None) };
        let cell = self.clients.cell(client);
        // While there is room for all, nobody is limited.
        if waiting >= self.limits.waiting_max / 2
            && self.clients.waiting(cell) >= self.limits.waiting_per_client_max
        {
            self.counters.shed_client.bump();
            return Err(Failure::Overloaded);
        }
        Ok(Some(cell))
    }

    /// Lets a query wait; says where.
    fn enqueue(&mut self, who: W, cell: Option<ClientCell>, now: Moment) -> u32 {
        let stale_after_ms = who.want().stale_after_ms();
        if let Some(cell) = cell {
            self.clients.enter(cell);
        }
        let entry = WaiterEntry { who, next: NIL, timer: TimerKey::NONE, is_asleep: false, cell };
        let key = self.waiters.insert(entry) as u32;
        let timer = stale_after_ms
            .filter(|_| cell.is_some())
            .map(|ms| self.wheel.set(now + Span::from_ms(u64::from(ms)), Token::Waiter(key)));
        if let (Some(timer), Some(entry)) = (timer, self.waiters.get_mut(key as usize)) {
            entry.timer = timer;
        }
        key
    }

    fn attach(&mut self, fetch: u32, who: W, cell: Option<ClientCell>, now: Moment) {
        let key = self.enqueue(who, cell, now);
        if let Some(fetch) = self.fetches.get_mut(fetch as usize) {
            chain(&mut self.waiters, &mut fetch.waiters, key);
        }
    }

    /// Makes a fetch for clients, which equal queries can join.
    fn begin(&mut self, pool: u32, query: OutQuery, now: Moment) -> Result<u32, Failure> {
        if self.is_stopping {
            return Err(Failure::Stopping);
        }
        let runtime = self.pools.get(pool as usize).ok_or(Failure::NoUpstream)?;
        if self.active >= self.limits.fetching_max || runtime.fetching >= runtime.plan.fetching_max {
            self.counters.shed_fetching.bump();
            return Err(Failure::Overloaded);
        }
        let timeout = runtime.give_up_after();
        let hash = query.hash;
        let fetch = self.insert(Purpose::Clients, pool, query, now + timeout);
        self.active += 1;
        self.counters.fetches.bump();
        let fetches = &self.fetches;
        self.index.insert_unique(hash, fetch, |&other| {
            fetches.get(other as usize).map_or(0, |other| other.query.hash)
        });
        Ok(fetch)
    }

    fn insert(&mut self, purpose: Purpose, pool: u32, query: OutQuery, deadline: Moment) -> u32 {
        let question = self.question_key.hash(query.qname.as_name(), u64::from(query.qtype.0)) as u32;
        if let Some(pool) = self.pools.get_mut(pool as usize) {
            pool.fetching += 1;
            pool.hedge_credit = (pool.hedge_credit + 1).min(HEDGE_CREDIT_MAX);
        }
        self.fetches.insert(Fetch {
            purpose,
            pool,
            query,
            question,
            waiters: (NIL, NIL, 0),
            attempts: [Attempt::UNUSED; ATTEMPTS_MAX],
            attempt_count: 0,
            resends: 0,
            wrong: 0,
            is_stream_only: false,
            case_suspect: None,
            is_relinked: false,
            is_last_resort: false,
            is_parked: false,
            is_lingering: false,
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

    /// Begins a fetch of our own, which nobody can join.
    fn begin_own(
        &mut self,
        purpose: Purpose,
        pool: u32,
        question: (NameBuf, Rtype),
        deadline: Moment,
    ) -> u32 {
        let (qname, qtype) = question;
        let query = OutQuery {
            qname,
            qtype,
            qclass: Class::IN,
            checking_disabled: false,
            wants_dnssec: false,
            no_recursion: false,
            client_subnet: None,
            options: Box::default(),
            members: 0,
            continuation: 0,
            hash: 0,
        };
        self.insert(purpose, pool, query, deadline)
    }

    /// Returns a random number below `bound`.
    fn random_below(&mut self, bound: usize) -> usize {
        self.rng.random_range(0..bound.max(1))
    }

    /// Returns the rcodes that make a fetch go on to the next server.
    fn fallback_on(&self, pool: u32) -> RcodeSet {
        self.pools.get(pool as usize).map_or(RcodeSet::UNUSABLE, |pool| pool.plan.fallback_on)
    }
}

/// Appends a waiter to a list: its first and last, and how many.
fn chain<W>(waiters: &mut Slab<WaiterEntry<W>>, (first, last, count): &mut (u32, u32, u32), key: u32) {
    *count += 1;
    let before = std::mem::replace(last, key);
    match waiters.get_mut(before as usize) {
        Some(before) => before.next = key,
        None => *first = key,
    }
}

/// The rank of an answer that is kept because there may be a better one.
const USABLE: u8 = 4;

/// Returns how telling an unusable reply is: the most telling one is passed on.
const fn rank(rcode: Rcode) -> u8 {
    match rcode {
        Rcode::SERVFAIL => 3,
        Rcode::REFUSED => 2,
        _ => 1,
    }
}
