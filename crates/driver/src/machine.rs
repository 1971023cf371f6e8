//! Every query of one worker that waits, as one state machine without I/O: what it waits for, with
//! whom, and for how long.
//!
//! Never waits, reads no clock, and calls nobody back: what has ended is taken out as [`Event`]s.

mod admission;
mod forwards;
mod resolutions;
mod splits;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use authorities::PoolNetwork;
use dnstap::SharedTap;
use engine::ops::split::{BranchReport, Next, Progress};
use engine::{EndedBranch, Failure, OutQuery, PoolId, Want, Watch};
use exchange::Exchange;
use exchange::network::{LinkKey, Network, SocketKey};
use exchange::server::Meters;
use forward::status::Status;
use forward::upstream_log::StateChange;
use forward::{FetchKey, Forward, PoolKey};
use hashbrown::HashTable;
use identity::Registry;
use plan::resolvers;
use plan::upstreams::{Limits, Plan, WaitNetwork};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use resolver::Resolution;
use slab::Slab;
use timers::{Moment, Span, TimerKey, Wheel};
use wire::{HashKey, Message};

use crate::clients::{ClientCell, Clients, Held};
use crate::counters::{Counters, Counts};
use crate::recursion::{InstanceKey, Recursion, Resolved, ResolverTables, lines};

use admission::Begins;
use splits::Split;
pub(crate) use splits::SplitKey;

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
    /// Returns whether it holds a reply, and to what kind of address.
    fn held(&self) -> Held {
        Held::Nothing
    }
    /// Returns whether somebody watches what happens to it.
    fn is_watched(&self) -> bool {
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
    /// The client of this waiter (see [`Machine::waiter`]) should get a stale answer now; the fetch
    /// goes on.
    Impatient(u32),
    /// This branch is to start, for whoever waits there (see [`Machine::split_waiter`]); its end is
    /// told with [`Machine::branch_ended`].
    Branch(SplitKey, u8),
    /// A query has slept enough.
    Slept(W),
    /// An upstream went down or came back.
    StateChange(Box<StateChange>),
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
    /// With what a resolver found for this question, or why it found nothing.
    Resolved { resolution: Arc<Resolution>, query: OutQuery },
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
    NoBranch {
        /// Whether the one that counts has ended in silence.
        is_dropped: bool,
    },
}

/// What a deadline is for.
#[derive(Clone, Copy, Debug)]
enum Token {
    /// The patience of a client that could have a stale answer.
    Waiter(u32),
    /// The time that a split gives its branches.
    Split(u32),
    /// The end of a sleep.
    Sleep(u32),
}

/// Who brings what queries wait for.
enum Source {
    /// A server of a group.
    Forward { fetch: FetchKey, pool: PoolKey },
    /// A resolver, asked for this.
    Resolver { instance: InstanceKey, query: OutQuery, watch: Option<Watch> },
    /// A server of a group, for a resolver that knows the question by this tag.
    ForResolver { tag: u32 },
}

/// One fetch, a resolver's work included, and who waits for it.
struct Shared {
    source: Source,
    /// The hash of its query.
    hash: u64,
    waiters: Waiters,
}

/// Those who wait for the same: the first, the last, and how many.
#[derive(Clone, Copy)]
struct Waiters {
    first: u32,
    last: u32,
    count: u32,
}

impl Waiters {
    const NOBODY: Self = Self { first: NIL, last: NIL, count: 0 };
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
    held: Held,
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
    Turn,
    /// Nothing any more: it is about to be told.
    Ending,
}

/// All queries of one worker that wait, and what they wait for.
pub(crate) struct Machine<N, P, W> {
    forward: Forward<N>,
    recursion: Recursion<P>,
    limits: Limits,
    /// Networks whose clients may hold other numbers of replies, the longest prefix first.
    wait_networks: Arc<[WaitNetwork]>,
    counters: Arc<Counters>,
    /// Fetches that queries wait for.
    fetches: Slab<Shared>,
    /// The same, by query: what is asked already is joined.
    index: HashTable<u32>,
    /// Fetches that resolvers wait for, not clients.
    for_resolvers: u32,
    waiters: Slab<WaiterEntry<W>>,
    splits: Slab<Split>,
    split_index: HashTable<u32>,
    split_serial: u32,
    clients: Clients,
    wheel: Wheel<Token>,
    /// Who waits for nothing but a turn, the longest first.
    yielded: VecDeque<u32>,
    events: VecDeque<Event<W>>,
    is_stopping: bool,
}

impl<N: Network, P: PoolNetwork, W: Waiter> Machine<N, P, W> {
    /// Returns a machine without pools (see [`Machine::adopt`]) that stands at `now`.
    pub(crate) fn new(
        (network, pool): (N, P),
        tables: Arc<ResolverTables>,
        mut rng: StdRng,
        counts: &Counts,
        now: Moment,
    ) -> Self {
        let resolving = StdRng::from_rng(&mut rng);
        let counters = (Arc::clone(&counts.recursion), Arc::clone(&counts.authorities));
        let recursion = Recursion::new(pool, tables, resolving, counters, now);
        let exchange = Exchange::new(network, StdRng::from_rng(&mut rng), Arc::clone(&counts.exchange), now);
        let forward = Forward::new(exchange, StdRng::from_rng(&mut rng), Arc::clone(&counts.forward), now);
        Self {
            forward,
            recursion,
            limits: Limits::default(),
            wait_networks: Arc::default(),
            counters: Arc::clone(&counts.driver),
            fetches: Slab::new(),
            index: HashTable::new(),
            for_resolvers: 0,
            waiters: Slab::new(),
            splits: Slab::new(),
            split_index: HashTable::new(),
            split_serial: 0,
            clients: Clients::new(HashKey::new([rng.next_u64(), rng.next_u64()])),
            wheel: Wheel::new(now),
            yielded: VecDeque::new(),
            events: VecDeque::new(),
            is_stopping: false,
        }
    }

    /// Runs on `plan` from now on. What is the same keeps its state; fetches under way end as they
    /// began.
    pub(crate) fn adopt(
        &mut self,
        (plan, resolvers): (&Plan, &resolvers::Plan),
        registry: &Registry,
        now: Moment,
    ) {
        self.limits = plan.limits;
        self.wait_networks = Arc::clone(&plan.wait_networks);
        self.forward.adopt(plan, registry, now);
        self.recursion.adopt(resolvers);
        self.drain(now);
    }

    /// Copies messages of other servers into this ring from now on.
    pub(crate) fn tap_into(&mut self, tap: SharedTap) {
        self.recursion.tap_into(tap.clone());
        self.forward.exchange_mut().tap_into(tap);
    }

    /// Lets `bind` say how sockets to authoritative servers are bound; if it says that those that
    /// are open are bound otherwise, they are replaced.
    pub(crate) fn bind_pool(&mut self, bind: impl FnOnce(&mut P) -> bool) {
        if bind(self.recursion.network_mut()) {
            self.recursion.renew_sockets();
        }
    }

    #[cfg(test)]
    fn forward(&self) -> &Forward<N> {
        &self.forward
    }

    /// Returns the network of servers of groups.
    pub(crate) fn network(&self) -> &N {
        self.forward.exchange().network()
    }

    /// Returns the network of authoritative servers.
    pub(crate) fn pool_network(&self) -> &P {
        self.recursion.network()
    }

    #[cfg(test)]
    fn pool_network_mut(&mut self) -> &mut P {
        self.recursion.network_mut()
    }

    #[cfg(test)]
    fn network_mut(&mut self) -> &mut N {
        self.forward.exchange_mut().network_mut()
    }

    /// Returns how many fetches clients wait for.
    pub(crate) fn active(&self) -> usize {
        self.fetching() as usize
    }

    fn fetching(&self) -> u32 {
        self.forward.active() - self.for_resolvers + self.recursion.active()
    }

    /// Returns how many queries wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// Returns of how many zones resolvers know which keys they have, or that they have none.
    pub(crate) fn zones_known(&self) -> u32 {
        self.recursion.zones_known()
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
        self.clients.leave(cell, (entry.older, entry.newer), entry.held);
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
        let held = std::mem::replace(&mut entry.held, Held::Nothing);
        if let Some(cell) = entry.cell {
            self.clients.replied(cell, held);
        }
    }

    /// Shows every query that waits, and since when, in no order.
    pub(crate) fn each_waiting(&self, mut show: impl FnMut(&W, Moment)) {
        for (_, entry) in self.waiters.iter().filter(|(_, entry)| entry.home != Home::Ending) {
            show(&entry.who, entry.since);
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
            Want::Resolve(_) => self.take_resolution(who, now),
            Want::Split(_) => self.take_split(who, now),
            Want::Sleep(_) | Want::Yield => self.take_sleeper(who, now),
        }
    }

    fn take_fetch(&mut self, who: W, now: Moment) {
        let Want::Fetch(want) = who.want() else { return };
        let pool = self.forward.pool(want.pool);
        let is_served_at_once =
            want.stale_after_ms.is_some() && pool.is_some_and(|pool| self.forward.is_silent(pool));
        if is_served_at_once && !pool.is_some_and(|pool| self.forward.may_try(pool, now)) {
            return self.events.push_back(Event::Down(who));
        }
        let query = &want.query;
        let is_equal = |&key: &u32| match self.fetches.get(key as usize).map(|other| &other.source) {
            Some(Source::Forward { fetch, pool: other }) => {
                Some(*other) == pool && self.forward.query(*fetch) == Some(query)
            }
            Some(Source::Resolver { .. } | Source::ForResolver { .. }) | None => false,
        };
        if let Some(&key) = self.index.find(query.hash, is_equal) {
            return self.join(key, who, now);
        }
        let query = query.clone();
        let refused = if self.is_stopping { Failure::Stopping } else { Failure::NoUpstream };
        let Some(pool) = pool.filter(|_| !self.is_stopping) else {
            return self.events.push_back(Event::Rejected(who, refused));
        };
        match self.admit(0, Begins::Fetch(pool), &who, now) {
            Ok(cell) => {
                let (hash, key) = (query.hash, self.fetches.vacant_key() as u32);
                let fetch = self.forward.begin(pool, query, key, now);
                self.enter(hash, Source::Forward { fetch, pool });
                self.attach(key, who, cell, now);
                if is_served_at_once {
                    self.hurry(key);
                }
                self.drain(now);
            }
            Err(failure) => self.events.push_back(Event::Rejected(who, failure)),
        }
    }

    /// Has a query wait for a fetch under way.
    fn join(&mut self, key: u32, who: W, now: Moment) {
        // What a prefetch would bring is on its way already.
        if who.client().is_none() {
            return;
        }
        self.counters.coalesced.bump();
        match self.admit(self.waiting_for(key), Begins::Nothing, &who, now) {
            Ok(cell) if self.fetches.contains(key as usize) => self.attach(key, who, cell, now),
            // The query that made room was the only one that waited there.
            Ok(_) => self.take(who, now),
            Err(failure) => self.events.push_back(Event::Rejected(who, failure)),
        }
    }

    /// Notes a fetch that has begun; the next query like it joins it.
    fn enter(&mut self, hash: u64, source: Source) {
        let key = self.fetches.insert(Shared { source, hash, waiters: Waiters::NOBODY }) as u32;
        let fetches = &self.fetches;
        self.index
            .insert_unique(hash, key, |&other| fetches.get(other as usize).map_or(0, |other| other.hash));
    }

    /// Ends the patience of those who wait for a fetch and could have a stale answer.
    fn hurry(&mut self, key: u32) {
        let mut next = self.fetches.get(key as usize).map_or(NIL, |fetch| fetch.waiters.first);
        while let Some(entry) = self.waiters.get_mut(next as usize) {
            if entry.timer != TimerKey::NONE {
                self.wheel.cancel(std::mem::replace(&mut entry.timer, TimerKey::NONE));
                self.events.push_back(Event::Impatient(next));
            }
            next = entry.next;
        }
    }

    /// Ends the patience of those who wait for a group all of whose servers are silent.
    #[cold]
    fn hurry_silent(&mut self, pool: PoolKey) {
        let is_waited_for = |(key, fetch): (usize, &Shared)| {
            matches!(fetch.source, Source::Forward { pool: other, .. } if other == pool).then_some(key as u32)
        };
        let fetches: Vec<u32> = self.fetches.iter().filter_map(is_waited_for).collect();
        for fetch in fetches {
            self.hurry(fetch);
        }
    }

    /// Acts on what the fetches tell of; returns whether groups were asked for resolvers, or have
    /// answered them.
    fn drain(&mut self, now: Moment) -> bool {
        let mut has_any = self.take_events(now);
        // Ends: each question of a resolver's is paid from the budget of a client's.
        while self.take_forwards(now) {
            has_any = true;
            self.take_events(now);
        }
        has_any
    }

    fn take_events(&mut self, now: Moment) -> bool {
        let for_resolvers = self.for_resolvers;
        while let Some(event) = self.forward.next_event() {
            match event {
                forward::Event::Ended(ended) => {
                    if let Some(finished) = self.ended(ended, now) {
                        self.events.push_back(Event::Finished(finished));
                    }
                }
                forward::Event::Silent(pool) => self.hurry_silent(pool),
                forward::Event::Recovered(pool) => self.events.push_back(Event::Recovered(pool)),
                forward::Event::StateChange(state_change) => {
                    self.events.push_back(Event::StateChange(state_change));
                }
            }
        }
        while let Some(Resolved { tag, resolution }) = self.recursion.next_resolved() {
            let Some(Shared { source: Source::Resolver { query, .. }, waiters, .. }) = self.forget_fetch(tag)
            else {
                continue;
            };
            lines::write(&query, &resolution.trace);
            self.end_waiting(waiters.first);
            let ending = Ending::Resolved { resolution, query };
            let finished = Finished { waiters: WaiterList(waiters.first), ending, from: None };
            self.events.push_back(Event::Finished(finished));
        }
        self.for_resolvers != for_resolvers
    }

    /// Takes the end of a fetch; returns who waited for it, if they are clients.
    fn ended<'b>(&mut self, ended: forward::Ended<'b>, now: Moment) -> Option<Finished<'b>> {
        let shared = self.forget_fetch(ended.tag)?;
        if let Source::ForResolver { tag } = shared.source {
            self.forward_ended(tag, &ended, now);
            return None;
        }
        let forward::Ended { ending, from, .. } = ended;
        self.end_waiting(shared.waiters.first);
        let ending = match ending {
            forward::Ending::Reply(message) => Ending::Reply(message),
            forward::Ending::Held(octets) => Ending::Held(octets),
            forward::Ending::Failed(failure) => Ending::Failed(failure),
        };
        Some(Finished { waiters: WaiterList(shared.waiters.first), ending, from })
    }

    /// Takes a fetch off the books.
    fn forget_fetch(&mut self, key: u32) -> Option<Shared> {
        let shared = self.fetches.try_remove(key as usize)?;
        if let Ok(entry) = self.index.find_entry(shared.hash, |&other| other == key) {
            entry.remove();
        }
        Some(shared)
    }

    /// Ends all fetches, and takes no more.
    pub(crate) fn stop(&mut self, now: Moment) {
        self.is_stopping = true;
        self.wake_all();
        self.forward.stop(now);
        self.stop_resolving();
        self.drain(now);
    }

    /// Returns whether queries wait for their turn: [`Machine::due`] is to be called as soon as
    /// clients had theirs.
    fn has_yielded(&self) -> bool {
        !self.yielded.is_empty()
    }

    /// Returns when to call [`Machine::due`] next.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        if self.has_yielded() {
            return Some(Moment(0));
        }
        [self.forward.next_due(), self.recursion.next_due(), self.wheel.next()].into_iter().flatten().min()
    }

    /// Does what is due by `now`.
    pub(crate) fn due(&mut self, now: Moment) {
        self.forward.due(now);
        self.recursion.due(now);
        self.drain(now);
        while let Some(token) = self.wheel.pop(now) {
            match token {
                Token::Waiter(waiter) => {
                    if let Some(entry) = self.waiters.get_mut(waiter as usize) {
                        entry.timer = TimerKey::NONE;
                        self.events.push_back(Event::Impatient(waiter));
                    }
                }
                Token::Split(split) => self.split_due(split, now),
                Token::Sleep(waiter) => self.wake(waiter, Home::Sleep),
            }
        }
        self.give_turns();
    }

    fn waiting_for(&self, fetch: u32) -> u32 {
        self.fetches.get(fetch as usize).map_or(0, |fetch| fetch.waiters.count)
    }

    /// Nobody waits for a fetch any more.
    fn cancel(&mut self, key: u32, source: &Source) {
        match source {
            Source::Forward { fetch, .. } => self.forward.cancel(*fetch),
            Source::Resolver { instance, .. } => self.recursion.forget(*instance, key),
            // Its resolver goes on without clients as far as they have paid.
            Source::ForResolver { .. } => {}
        }
    }

    /// Lets a query wait; says where.
    fn enqueue(&mut self, who: W, cell: Option<ClientCell>, now: Moment) -> u32 {
        let stale_after_ms = who.want().stale_after_ms();
        let held = if cell.is_some() { who.held() } else { Held::Nothing };
        let is_client = who.client().is_some();
        let key = self.waiters.insert(WaiterEntry {
            who,
            previous: NIL,
            next: NIL,
            home: Home::Sleep,
            timer: TimerKey::NONE,
            cell,
            held,
            older: NIL,
            newer: NIL,
            since: now,
        }) as u32;
        let older = cell.map_or(NIL, |cell| self.clients.enter(cell, key, held));
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
}

/// What the network brings.
impl<N: Network, P: PoolNetwork, W: Waiter> Machine<N, P, W> {
    /// Takes one datagram; `is_cut` says that it was longer than our buffer.
    pub(crate) fn datagram<'b>(
        &mut self,
        key: SocketKey,
        bytes: &'b [u8],
        is_cut: bool,
        now: Moment,
    ) -> Option<Finished<'b>> {
        let ended = self.forward.datagram(key, bytes, is_cut, now);
        self.drain(now);
        self.finished(ended?, now)
    }

    /// Takes one message from a connection.
    pub(crate) fn message<'b>(&mut self, key: LinkKey, bytes: &'b [u8], now: Moment) -> Option<Finished<'b>> {
        let ended = self.forward.message(key, bytes, now);
        self.drain(now);
        self.finished(ended?, now)
    }

    /// Takes the end of a fetch that the network has brought, and acts on the events that it
    /// causes.
    fn finished<'b>(&mut self, ended: forward::Ended<'b>, now: Moment) -> Option<Finished<'b>> {
        let finished = self.ended(ended, now);
        if finished.is_none() {
            self.drain(now);
        }
        finished
    }

    /// Takes the news that the network refused what a socket sent.
    pub(crate) fn socket_failed(&mut self, key: SocketKey, why: ErrorKind, now: Moment) {
        self.forward.socket_failed(key, why, now);
        self.drain(now);
    }

    /// Takes the news that a connection is open.
    pub(crate) fn link_opened(&mut self, key: LinkKey, now: Moment) {
        self.forward.link_opened(key, now);
        self.drain(now);
    }

    /// Takes the news that a connection could not be made, or that it ended, and why.
    pub(crate) fn link_closed(&mut self, key: LinkKey, trouble: Option<String>, now: Moment) {
        self.forward.link_closed(key, trouble, now);
        self.drain(now);
    }

    /// Takes the news that a connection could not even be tried.
    pub(crate) fn link_lacked(&mut self, key: LinkKey, now: Moment) {
        self.forward.link_lacked(key, now);
        self.drain(now);
    }

    /// Takes the news that a message on a connection does not end.
    pub(crate) fn link_stalled(&mut self, key: LinkKey, now: Moment) {
        self.forward.link_stalled(key, now);
        self.drain(now);
    }

    /// Sends what was queued, once per batch; forgets what is no longer used.
    pub(crate) fn flush(&mut self, now: Moment) {
        // Ends as draining does: what resolvers go on with is sent with the rest.
        loop {
            self.forward.flush(now);
            self.recursion.flush(now);
            if !self.drain(now) {
                break;
            }
        }
    }

    /// Describes the pools and how their upstreams are doing.
    pub(crate) fn status(&self, now: Moment) -> Status {
        Status { waiting: self.waiters.len() as u32, ..self.forward.status(now) }
    }

    /// Returns where the upstreams' numbers stand, in the order of [`Machine::status`].
    pub(crate) fn meters(&self) -> Vec<Arc<Meters>> {
        self.forward.meters()
    }
}

/// Appends a waiter to a list.
fn chain<W>(waiters: &mut Slab<WaiterEntry<W>>, list: &mut Waiters, key: u32, home: Home) {
    list.count += 1;
    let before = std::mem::replace(&mut list.last, key);
    if let Some(entry) = waiters.get_mut(key as usize) {
        entry.previous = before;
        entry.home = home;
    }
    match waiters.get_mut(before as usize) {
        Some(before) => before.next = key,
        None => list.first = key,
    }
}
