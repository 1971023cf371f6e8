//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What answers the queries that listeners read, as they see it.

use std::cell::RefMut;
use std::rc::Rc;

use engine::{
    BusyPoll, Client, ConnectionText, Courier, Driver, Engine, Now, Reply, ReplyTo, Said, Streamed,
    Suspended, Verdict, Worker,
};

use wire::Query;

use crate::streamed;

/// Answers from memory.
pub trait Answer {
    /// A query that has to wait.
    type Deferred;

    /// Begins a batch.
    fn begin(&mut self, now: Now);

    /// Hears which queries are about to be answered, so that it can ask memory for what they need.
    fn prefetch_lines<'q>(&self, queries: impl Iterator<Item = &'q [u8]>) {
        let _ = queries;
    }

    /// Answers one query into `room`.
    fn answer(&mut self, query: &[u8], client: &Client, room: &mut [u8]) -> Answered<Self::Deferred>;

    /// Returns the next piece of work that no client waits for.
    fn next_prefetch(&mut self) -> Option<Self::Deferred>;

    /// Returns whether a client is on the access list: for what it asks besides queries.
    fn lets_in(&self, client: &Client) -> bool {
        let _ = client;
        true
    }

    /// Returns whether a query that the listener answers by itself may be answered.
    fn admits(&self, query: &Query<'_>, client: &Client) -> bool {
        let _ = (query, client);
        true
    }

    /// Returns a number that changes when [`Answer::connection_bits`] may say something else.
    fn generation(&self) -> u64 {
        0
    }

    /// Returns what policy wants to know of a connection: the bits for [`Client::connection`].
    fn connection_bits<'t>(&self, say: impl Fn(&ConnectionText) -> Said<'t>) -> u64 {
        let _ = say;
        0
    }
}

/// What became of a query.
#[derive(Debug)]
#[must_use]
pub enum Answered<D> {
    /// The reply has so many octets.
    Reply(usize),
    /// Say nothing.
    Nothing,
    /// The reply comes later.
    Deferred(D),
}

/// A worker, as its listeners see it. The one that serves is [`Local`]; benchmarks and tests bring
/// their own.
pub trait Service {
    /// What answers from memory.
    type Engine: Answer;

    /// Borrows the engine; once per batch, and not while a desk is called.
    fn engine(&self) -> RefMut<'_, Self::Engine>;

    /// Reads the clock.
    fn now(&self) -> Now;

    /// Takes a deferred query. May deliver its reply before it returns.
    fn take(&self, deferred: <Self::Engine as Answer>::Deferred, to: ReplyTo);

    /// Takes work that no client waits for.
    fn prefetch(&self, prefetch: <Self::Engine as Answer>::Deferred);

    /// Says that the batch is over.
    fn flush(&self);

    /// Returns what carries messages to oblivious targets, if anything does.
    fn courier(&self) -> Option<Rc<dyn Courier>> {
        None
    }

    /// Returns whether so many queries wait for upstreams that other workers should take some.
    fn is_crowded(&self) -> bool {
        false
    }

    /// Returns what says whether the worker stays awake when it has nothing to do, if anything
    /// does.
    fn busy_poll(&self) -> Option<&BusyPoll> {
        None
    }
}

/// What a worker's engine does not answer at once.
pub enum Late {
    /// A query that waits for an upstream.
    Query(Box<Suspended>),
    /// What is between servers.
    Streamed(Box<Streamed>),
}

impl Answer for Engine {
    type Deferred = Late;

    fn begin(&mut self, now: Now) {
        Self::begin(self, now);
    }

    fn prefetch_lines<'q>(&self, queries: impl Iterator<Item = &'q [u8]>) {
        Self::prefetch_lines(self, queries);
    }

    fn answer(&mut self, query: &[u8], client: &Client, room: &mut [u8]) -> Answered<Late> {
        let mut reply = Reply::new(room);
        match Self::answer(self, query, client, &mut reply) {
            Verdict::Answered => Answered::Reply(reply.len()),
            Verdict::Drop => Answered::Nothing,
            Verdict::Defer(suspended) => Answered::Deferred(Late::Query(suspended)),
            Verdict::Stream(handed) => Answered::Deferred(Late::Streamed(handed)),
        }
    }

    fn next_prefetch(&mut self) -> Option<Late> {
        Self::next_prefetch(self).map(Late::Query)
    }

    fn lets_in(&self, client: &Client) -> bool {
        Self::lets_in(self, client)
    }

    fn admits(&self, query: &Query<'_>, client: &Client) -> bool {
        Self::admits(self, query, client)
    }

    fn generation(&self) -> u64 {
        Self::generation(self)
    }

    fn connection_bits<'t>(&self, say: impl Fn(&ConnectionText) -> Said<'t>) -> u64 {
        Self::connection_bits(self, say)
    }
}

/// A worker's engine and desk.
#[derive(Clone)]
pub struct Local {
    /// The worker.
    pub worker: Rc<Worker>,
    /// What carries out its fetches.
    pub driver: Rc<dyn Driver>,
    /// What carries messages to oblivious targets.
    pub courier: Option<Rc<dyn Courier>>,
}

impl Service for Local {
    type Engine = Engine;

    fn engine(&self) -> RefMut<'_, Engine> {
        self.worker.engine.borrow_mut()
    }

    fn now(&self) -> Now {
        self.worker.clock.now()
    }

    fn take(&self, deferred: Late, to: ReplyTo) {
        match deferred {
            Late::Query(suspended) => self.driver.take(suspended, to),
            Late::Streamed(handed) => streamed::carry_out(&self.worker, *handed, to),
        }
    }

    fn prefetch(&self, prefetch: Late) {
        if let Late::Query(suspended) = prefetch {
            self.driver.prefetch(suspended);
        }
    }

    fn flush(&self) {
        self.driver.flush();
    }

    fn courier(&self) -> Option<Rc<dyn Courier>> {
        self.courier.as_ref().map(Rc::clone)
    }

    fn is_crowded(&self) -> bool {
        self.driver.is_crowded()
    }

    fn busy_poll(&self) -> Option<&BusyPoll> {
        Some(&self.worker.busy_poll)
    }
}

/// Prefetches handed over per batch, so that a flood of them cannot keep the clients waiting; the
/// rest follows after the next one.
const PREFETCHES_MAX: usize = 64;

/// Ends a batch of so many queries: hands over the prefetches it caused and lets the driver send.
pub(crate) fn finish<S: Service>(service: &S, queries: usize) {
    for _ in 0..PREFETCHES_MAX {
        // A statement of its own: the engine must be free again when the desk is called.
        let prefetch = service.engine().next_prefetch();
        let Some(prefetch) = prefetch else { break };
        service.prefetch(prefetch);
    }
    service.flush();
    if let Some(busy_poll) = service.busy_poll() {
        busy_poll.worked(queries);
    }
}
