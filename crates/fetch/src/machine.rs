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
use crate::notices::News;
use crate::packet::CaseSeed;
use crate::pick::Candidate;
use crate::plan::{Limits, RcodeSet};
use crate::questions::Questions;
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
pub(crate) const WRONG_MAX: u8 = 4;
/// Time for the answer to a probe.
const PROBE_TIMEOUT: Span = Span::from_ms(900);
/// Time between clients' queries that are asked although their group is down and their clients have been served.
const TRY_EVERY: Span = Span::from_ms(500);
/// Hedges cost ten fetches' worth of credit: at most one query in ten is hedged.
const HEDGE_COST: u32 = 10;
/// Credit that can be saved up.
const HEDGE_CREDIT_MAX: u32 = 100;

/// Time that a query has had its chance after, and may give its place to a newer one of its client.
const JOSTLE_AFTER: Span = Span::from_ms(200);
/// Queries that are ended, or passed over, to make room for one.
const SHED_MAX: usize = 16;

const NIL: u32 = u32::MAX;

/// A query that waits, as far as the machine must know it.
pub(crate) trait Waiter {
    /// Returns what it waits for.
    fn want(&self) -> &Want;
    /// Returns whose query it is; `None` for work that no client waits for.
    fn client(&self) -> Option<IpAddr>;
    /// Returns who caused it, clients of refreshes included.
    fn cause(&self) -> Option<IpAddr> {
        self.client()
    }
    /// Returns whether it holds a reply to an address that may be forged.
    fn is_unproven(&self) -> bool {
        false
    }
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
    /// A query with a stale answer at hand was not taken: every server of its group is down.
    Down(W),
    /// The client of this waiter (see [`Machine::waiter`]) should get a stale answer now; the fetch goes on.
    Impatient(u32),
    /// This branch is to start, for whoever waits there (see [`Machine::split_waiter`]); its end is told with
    /// [`Machine::branch_ended`].
    Branch(SplitKey, u8),
    /// A query has slept enough.
    Slept(W),
    /// An upstream went down or came back.
    News(Box<News>),
    /// A server of this group answers again after having been down.
    Recovered(PoolId),
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
    /// The end of a UDP port's life.
    Socket(u32),
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
    /// Those beside it that wait for the same.
    previous: u32,
    next: u32,
    home: Home,
    /// The end of its patience, or of its sleep.
    timer: TimerKey,
    cell: Option<ClientCell>,
    is_unproven: bool,
    /// Its client's queries that came just before and just after it.
    older: u32,
    newer: u32,
    since: Moment,
}

/// What a query waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Fetch(u32),
    Split(u32),
    Sleep,
    /// Nothing any more: it is about to be told.
    Ending,
}

/// How much is waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Load {
    /// There is room for all.
    Light,
    /// Half of what there may be: each client gets its share.
    Half,
    /// No room for another fetch.
    NoFetch,
    /// No room for another query.
    NoQuery,
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

/// Why a query cannot leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hindrance {
    /// The network refuses, or did so a moment ago.
    Network,
    /// We have no ID, port, descriptor or connection for it: no fault of the upstream.
    Shortage,
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
    /// Datagrams outstanding, by question.
    questions: Questions,
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
    /// Sockets that are drained and can be closed at the next flush.
    closing: Vec<SocketKey>,
    failed: Vec<(SocketKey, std::io::ErrorKind)>,
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
            questions: Questions::new(),
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
        self.leave_client(&entry);
        Some(entry.who)
    }

    /// Takes a query off the list of its client.
    fn leave_client(&mut self, entry: &WaiterEntry<W>) {
        let Some(cell) = entry.cell else { return };
        self.clients.leave(cell, (entry.older, entry.newer), entry.is_unproven);
        if let Some(older) = self.waiters.get_mut(entry.older as usize) {
            older.newer = entry.newer;
        }
        if let Some(newer) = self.waiters.get_mut(entry.newer as usize) {
            newer.older = entry.older;
        }
    }

    /// Notes that a waiter's client has got its reply; what waits goes on without it.
    pub(crate) fn replied(&mut self, key: u32) {
        let Some(entry) = self.waiters.get_mut(key as usize) else { return };
        if std::mem::replace(&mut entry.is_unproven, false)
            && let Some(cell) = entry.cell
        {
            self.clients.replied(cell);
        }
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
        let is_served_at_once = want.stale_after_ms.is_some() && self.is_silent(pool);
        if is_served_at_once && !self.may_try(pool, now) {
            return self.events.push_back(Event::Down(who));
        }
        let query = &want.query;
        let found = self.index.find(query.hash, |&fetch| {
            self.fetches.get(fetch as usize).is_some_and(|other| other.pool == pool && other.query == *query)
        });
        if let Some(&fetch) = found {
            // What an errand would bring is on its way already.
            if !is_errand {
                self.counters.coalesced.bump();
                match self.admit(self.waiting_for(fetch), NIL, &who, now) {
                    Ok(cell) if self.fetches.contains(fetch as usize) => self.attach(fetch, who, cell, now),
                    // The query that made room was the only one that waited there.
                    Ok(_) => self.take_fetch(who, now),
                    Err(failure) => self.events.push_back(Event::Rejected(who, failure)),
                }
            }
            return;
        }
        let query = query.clone();
        let admitted = self.can_begin(pool).and_then(|()| self.admit(0, pool, &who, now));
        match admitted {
            Ok(cell) => {
                let fetch = self.begin(pool, query, now);
                self.attach(fetch, who, cell, now);
                if is_served_at_once {
                    self.hurry(fetch);
                }
                self.start(fetch, now);
            }
            Err(failure) => self.events.push_back(Event::Rejected(who, failure)),
        }
    }

    /// Returns whether every server of a group is down, or has been silent for so long that expired answers are given.
    fn is_silent(&self, pool: u32) -> bool {
        let Some(pool) = self.pools.get(pool as usize) else { return false };
        let is_silent = |member: &pools::Member| {
            self.upstreams.get(member.upstream as usize).is_some_and(|upstream| upstream.health.is_silent())
        };
        !pool.members.is_empty() && pool.members.iter().all(is_silent)
    }

    /// Returns whether one more query is asked although every server of its group is silent and its client is served without:
    /// one now and then, because a server may answer clients' questions and not ours.
    fn may_try(&mut self, pool: u32, now: Moment) -> bool {
        let Some(pool) = self.pools.get_mut(pool as usize) else { return false };
        let is_due = now >= pool.try_at;
        if is_due {
            pool.try_at = now + TRY_EVERY;
        }
        is_due
    }

    /// Ends the patience of those who wait for a fetch and could have a stale answer.
    fn hurry(&mut self, fetch: u32) {
        let mut next = self.fetches.get(fetch as usize).map_or(NIL, |fetch| fetch.waiters.0);
        while let Some(entry) = self.waiters.get_mut(next as usize) {
            if entry.timer != TimerKey::NONE {
                self.wheel.cancel(std::mem::replace(&mut entry.timer, TimerKey::NONE));
                self.counters.impatient.bump();
                self.events.push_back(Event::Impatient(next));
            }
            next = entry.next;
        }
    }

    /// Ends the patience of those who wait for a group if all its servers are silent.
    #[cold]
    fn hurry_silent(&mut self, pool: u32) {
        if !self.is_silent(pool) {
            return;
        }
        let is_waited_for = |fetch: &Fetch| fetch.pool == pool && fetch.purpose == Purpose::Clients;
        let fetches: Vec<u32> =
            self.fetches.iter().filter(|(_, it)| is_waited_for(it)).map(|(key, _)| key as u32).collect();
        for fetch in fetches {
            self.hurry(fetch);
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
                Token::Socket(socket) => self.socket_due(SocketKey(socket)),
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

    /// Returns how much is waiting; `pool` is where a fetch would begin, if one would.
    fn load(&self, pool: u32) -> Load {
        let waiting = self.waiters.len() as u32;
        let Limits { waiting_max, fetching_max, .. } = self.limits;
        let (fetching, room) = match self.pools.get(pool as usize) {
            Some(pool) => (pool.active, pool.room),
            None => (0, u32::MAX),
        };
        let begins = pool != NIL;
        if waiting >= waiting_max {
            Load::NoQuery
        } else if begins && (self.active >= fetching_max || fetching >= room) {
            Load::NoFetch
        } else if waiting >= waiting_max / 2
            || begins && (self.active >= fetching_max / 2 || fetching >= room / 2)
        {
            Load::Half
        } else {
            Load::Light
        }
    }

    /// Returns whether half of what may wait is waiting.
    pub(crate) fn is_crowded(&self) -> bool {
        self.load(NIL) >= Load::Half || self.active >= self.limits.fetching_max / 2
    }

    /// Decides whether one more query may wait where `beside` do; `pool` is where a fetch would begin for it, if one would.
    ///
    /// While there is room for all, nobody is limited, except to a number of replies that are held for one address. When half
    /// of the room is in use, a client with more than its share loses its oldest query for each new one. When all is in use,
    /// the client with the most queries does, whoever asks: its queries are what fills the table, and the oldest have had
    /// the most time.
    fn admit(&mut self, beside: u32, pool: u32, who: &W, now: Moment) -> Result<Option<ClientCell>, Failure> {
        if beside >= self.limits.waiting_per_fetch_max {
            self.counters.shed_waiting.bump();
            return Err(Failure::Overloaded);
        }
        let cell = who.cause().map(|address| self.clients.cell(address));
        let load = self.load(pool);
        if let Some(cell) = cell {
            let holds_too_many =
                who.is_unproven() && self.clients.unproven(cell) >= self.limits.unproven_per_client_max;
            let has_its_share =
                load >= Load::Half && self.clients.waiting(cell) >= self.limits.waiting_per_client_max;
            // A refresh takes the place of nobody.
            let may_jostle = who.client().is_some();
            if (holds_too_many || has_its_share) && !(may_jostle && self.jostle(cell, now)) {
                self.counters.shed_client.bump();
                return Err(Failure::Overloaded);
            }
        }
        if load >= Load::NoFetch && (who.client().is_none() || !self.make_room(cell, pool, now)) {
            match load {
                Load::NoQuery => self.counters.shed_waiting.bump(),
                _ => self.counters.shed_fetching.bump(),
            }
            return Err(Failure::Overloaded);
        }
        Ok(cell)
    }

    /// Makes room for one more query at the cost of the client with the most; returns whether there is room now.
    #[cold]
    fn make_room(&mut self, asking: Option<ClientCell>, pool: u32, now: Moment) -> bool {
        for _ in 0..SHED_MAX {
            if self.load(pool) < Load::NoFetch {
                return true;
            }
            let greediest = self.clients.greediest();
            let own = asking.map_or(0, |cell| self.clients.waiting(cell));
            let is_greedier = self.clients.waiting(greediest) > own + 1;
            let is_shed = match asking {
                _ if is_greedier => self.shed_oldest(greediest, Span(0), now),
                Some(cell) => self.jostle(cell, now),
                None => false,
            };
            if !is_shed {
                return false;
            }
        }
        self.load(pool) < Load::NoFetch
    }

    /// Ends a client's oldest query for a new one of its own, if it has waited long enough to have had its chance.
    #[cold]
    fn jostle(&mut self, cell: ClientCell, now: Moment) -> bool {
        self.shed_oldest(cell, JOSTLE_AFTER, now)
    }

    /// Ends the oldest query of a client, if it has waited so long; returns whether it did.
    fn shed_oldest(&mut self, cell: ClientCell, waited_min: Span, now: Moment) -> bool {
        let mut next = self.clients.oldest(cell);
        for _ in 0..SHED_MAX {
            let Some(key) = next else { return false };
            let Some(entry) = self.waiters.get(key as usize) else { return false };
            if now.since(entry.since) < waited_min {
                return false;
            }
            if entry.home != Home::Ending {
                self.counters.shed_oldest.bump();
                self.shed(key);
                return true;
            }
            next = Some(entry.newer);
        }
        false
    }

    /// Ends a query before what it waits for has ended; that ends, too, if nobody else waits for it.
    fn shed(&mut self, key: u32) {
        let Some(entry) = self.waiters.try_remove(key as usize) else { return };
        self.wheel.cancel(entry.timer);
        self.leave_client(&entry);
        if let Some(previous) = self.waiters.get_mut(entry.previous as usize) {
            previous.next = entry.next;
        }
        if let Some(next) = self.waiters.get_mut(entry.next as usize) {
            next.previous = entry.previous;
        }
        let list = match entry.home {
            Home::Fetch(fetch) => self.fetches.get_mut(fetch as usize).map(|fetch| &mut fetch.waiters),
            Home::Split(split) => self.splits.get_mut(split as usize).map(|split| &mut split.waiters),
            Home::Sleep | Home::Ending => None,
        };
        let is_last = list.is_some_and(|(first, last, count)| {
            if *first == key {
                *first = entry.next;
            }
            if *last == key {
                *last = entry.previous;
            }
            *count -= 1;
            *count == 0
        });
        match entry.home {
            Home::Fetch(fetch) if is_last => self.remove(fetch),
            Home::Split(split) if is_last => drop(self.forget_split(split)),
            Home::Fetch(_) | Home::Split(_) | Home::Sleep | Home::Ending => {}
        }
        self.events.push_back(Event::Rejected(entry.who, Failure::Overloaded));
    }

    /// Lets a query wait; says where.
    fn enqueue(&mut self, who: W, cell: Option<ClientCell>, now: Moment) -> u32 {
        let stale_after_ms = who.want().stale_after_ms();
        let is_unproven = cell.is_some() && who.is_unproven();
        let is_client = who.client().is_some();
        let key = self.waiters.insert(WaiterEntry {
            who,
            previous: NIL,
            next: NIL,
            home: Home::Sleep,
            timer: TimerKey::NONE,
            cell,
            is_unproven,
            older: NIL,
            newer: NIL,
            since: now,
        }) as u32;
        let older = cell.map_or(NIL, |cell| self.clients.enter(cell, key, is_unproven));
        if let Some(older) = self.waiters.get_mut(older as usize) {
            older.newer = key;
        }
        let timer = stale_after_ms
            .filter(|_| is_client)
            .map(|ms| self.wheel.set(now + Span::from_ms(u64::from(ms)), Token::Waiter(key)));
        if let Some(entry) = self.waiters.get_mut(key as usize) {
            entry.older = older;
            entry.timer = timer.unwrap_or(TimerKey::NONE);
        }
        key
    }

    fn attach(&mut self, fetch: u32, who: W, cell: Option<ClientCell>, now: Moment) {
        let key = self.enqueue(who, cell, now);
        if let Some(at) = self.fetches.get_mut(fetch as usize) {
            chain(&mut self.waiters, &mut at.waiters, key, Home::Fetch(fetch));
        }
    }

    /// Marks the waiters of what has ended: they are no longer shed.
    fn end_waiting(&mut self, first: u32) {
        let mut next = first;
        while let Some(entry) = self.waiters.get_mut(next as usize) {
            entry.home = Home::Ending;
            next = entry.next;
        }
    }

    /// Says why no fetch can begin in a pool, whatever waits.
    fn can_begin(&self, pool: u32) -> Result<(), Failure> {
        if self.is_stopping {
            return Err(Failure::Stopping);
        }
        if self.pools.contains(pool as usize) { Ok(()) } else { Err(Failure::NoUpstream) }
    }

    /// Makes a fetch for clients, which equal queries can join.
    fn begin(&mut self, pool: u32, query: OutQuery, now: Moment) -> u32 {
        let timeout = match self.pools.get_mut(pool as usize) {
            Some(pool) => {
                pool.active += 1;
                pool.give_up_after()
            }
            None => Span(0),
        };
        let hash = query.hash;
        let fetch = self.insert(Purpose::Clients, pool, query, now + timeout);
        self.active += 1;
        self.counters.fetches.bump();
        let fetches = &self.fetches;
        self.index.insert_unique(hash, fetch, |&other| {
            fetches.get(other as usize).map_or(0, |other| other.query.hash)
        });
        fetch
    }

    /// Takes a fetch off the books of those that clients wait for.
    fn end_active(&mut self, key: u32, pool: u32, hash: u64) {
        self.active -= 1;
        if let Some(pool) = self.pools.get_mut(pool as usize) {
            pool.active -= 1;
        }
        if let Ok(entry) = self.index.find_entry(hash, |&other| other == key) {
            entry.remove();
        }
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
fn chain<W>(
    waiters: &mut Slab<WaiterEntry<W>>,
    (first, last, count): &mut (u32, u32, u32),
    key: u32,
    home: Home,
) {
    *count += 1;
    let before = std::mem::replace(last, key);
    if let Some(entry) = waiters.get_mut(key as usize) {
        entry.previous = before;
        entry.home = home;
    }
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
