//! Brings clients' queries, upstreams' replies and the engine together, on one worker.

mod second_level;
mod sockets;
mod stale;

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use dnstap::{SharedTap, TapWriter};
use engine::ops::quickest::Probe;
use engine::ops::split::{BranchReport, Next, Progress, Worth};
use engine::{
    Continuation, EndedBranch, Failure, OutQuery, Outcome, Outlet, Reply, ReplyTo, Resolved, Share,
    Suspended, Transport, Unresolved, Verdict, Want, Won, Worker,
};
use exchange::net::{Net, PoolEvents, PoolNet, SocketEvents};
use exchange::server::Meters;
use exchange::sys::Inbox;
use forward::status::{Status, UpstreamStatus};
use forward::upstream_log::UpstreamLog;
use identity::Registry;
use plan::upstreams::{Plan, Shed};
use rand::rngs::StdRng;
use resolver::Resolution;
use timers::{Histogram, Moment, Span};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use wire::{Header, Message, Question, Rcode};

use crate::clients::Held;
use crate::counters::{Counts, WaitedFor};
use crate::machine::{Ending, Event, Finished, Machine, SplitKey, Waiter};
use crate::recursion::{self, ResolverTables};
use crate::second_level::SecondLevels;
use crate::survey::Survey;

/// Times one query may be deferred: a program that forwards, looks, and forwards again is finite,
/// and this says how finite.
const DEFERRALS_MAX: u8 = 16;
/// Outlets looked through for whether they are to be flushed already; one flushed twice does no
/// harm.
const TOUCHED_SEEN_MAX: usize = 8;
/// The status that others read is at most this old while anything happens.
const PUBLISH_EVERY: Span = Span::from_ms(1000);

/// Where one worker shows how its queries that wait are doing; read from other threads.
#[derive(Debug, Default)]
pub struct Board {
    /// What it counts.
    pub counts: Counts,
    upstream_log: Arc<UpstreamLog>,
    published: Mutex<Published>,
    /// Queries that wait right now, and the fetches they wait for.
    waiting: AtomicU32,
    fetching: AtomicU32,
    /// Zones of which resolvers have noted the keys, or that there are none; also expired notes.
    pub zones_known: AtomicU32,
}

/// What is written down once a second, and where the numbers stand that change with each query.
#[derive(Debug, Default)]
struct Published {
    status: Status,
    meters: Vec<Arc<Meters>>,
}

impl Board {
    /// Returns the board of a worker of those that write to the log together.
    pub fn sharing(upstream_log: &Arc<UpstreamLog>) -> Self {
        Self { upstream_log: Arc::clone(upstream_log), ..Self::default() }
    }

    /// Returns the upstreams and their state. Counts are those of this moment, round-trip times at
    /// most about a second old.
    pub fn status(&self) -> Status {
        let published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        let mut status = published.status.clone();
        for (upstream, meters) in status.upstreams.iter_mut().zip(&published.meters) {
            upstream.tally = meters.tally();
            upstream.outstanding = meters.outstanding.read() as u32;
        }
        status.waiting = self.waiting.load(Ordering::Relaxed);
        status.fetching = self.fetching.load(Ordering::Relaxed);
        status
    }

    /// Calls `f` with each upstream and how long its replies took.
    pub fn read_reply_times(&self, mut f: impl FnMut(&UpstreamStatus, &Histogram)) {
        // Copied, so that the worker does not wait for what `f` does.
        let (upstreams, meters) = {
            let published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
            (published.status.upstreams.clone(), published.meters.clone())
        };
        for (upstream, meters) in upstreams.iter().zip(&meters) {
            f(upstream, &meters.reply_times);
        }
    }
}

/// What the queries of a worker that wait run on.
#[derive(Clone, Copy)]
pub struct Plans<'p> {
    /// Whom steps that forward ask.
    pub upstreams: &'p Plan,
    /// What steps that recurse have.
    pub resolvers: &'p plan::resolvers::Plan,
}

/// What all workers share beside the cache.
#[derive(Clone, Default)]
pub struct Shared {
    /// What is known of upstreams.
    pub registry: Arc<Registry>,
    /// What resolvers have learned.
    pub tables: Arc<ResolverTables>,
}

/// One worker's queries that wait: takes them, drives what they wait for, resumes and delivers.
///
/// Everything runs on the worker's own thread. A query costs no task, timer or channel of its own.
pub struct Driver {
    worker: Rc<Worker>,
    machine: RefCell<Machine<Net, PoolNet, Asker>>,
    /// What is known of servers, shared with other workers.
    registry: Arc<Registry>,
    inbox: RefCell<Inbox>,
    pool_inbox: RefCell<Inbox>,
    reply: RefCell<Box<[u8]>>,
    /// Where the answers of resolvers are written; of a message's size once there was one.
    written: RefCell<Vec<u8>>,
    /// How the queries went on that have been resumed with one outcome; empty between outcomes.
    resumed: Cell<Vec<Continuation>>,
    /// Outlets with replies queued.
    touched: RefCell<Vec<Rc<dyn Outlet>>>,
    /// The time of the batch that listeners are feeding us.
    batch: Cell<Option<Moment>>,
    gathered: Gathered,
    survey: Survey,
    second_levels: RefCell<SecondLevels>,
    /// Where what they are to store is written.
    stored: RefCell<Vec<u8>>,
    /// What all workers share of resolvers.
    tables: Arc<ResolverTables>,
    me: Weak<Driver>,
    alarm: Rc<Alarm>,
    alarm_task: Cell<Option<AbortHandle>>,
    board: Arc<Board>,
    published: Cell<Moment>,
    publish_at: Cell<Moment>,
    /// Age of a query after which an answer is not sent to an address that may be forged.
    discard_after: Cell<Span>,
    /// What a query over UDP gets that is shed.
    shed: Cell<Shed>,
}

/// Replies of authoritative servers that were read and not settled yet.
///
/// They come on many sockets, a few on each. What they cause is sent when all sockets that are
/// ready have been read, so that one look at deadlines, one system call for clients and one waking
/// of whoever is asked next is for all.
#[derive(Default)]
struct Gathered {
    datagrams: Cell<usize>,
    is_waiting: Rc<Notify>,
    task: Cell<Option<AbortHandle>>,
}

/// When to wake for the next deadline.
struct Alarm {
    at: Cell<Moment>,
    changed: Notify,
}

/// A query that waits.
struct Asker {
    suspended: Box<Suspended>,
    to: To,
    deferrals: u8,
    /// When it came.
    since: Moment,
}

/// Who gets what a query brings.
enum To {
    Client(ReplyTo),
    /// The query that was split, as the answer of this branch.
    Split(SplitKey, u8),
    /// Nobody: it only fills a cache.
    Nobody,
}

impl Waiter for Asker {
    fn want(&self) -> &Want {
        self.suspended.want()
    }

    fn client(&self) -> Option<IpAddr> {
        match self.to {
            To::Client(_) | To::Split(..) => Some(self.suspended.client().address),
            To::Nobody => None,
        }
    }

    fn cause(&self) -> Option<IpAddr> {
        Some(self.suspended.client().address)
    }

    fn held(&self) -> Held {
        match self.to {
            To::Client(_) if self.suspended.is_proven() => Held::Proven,
            To::Client(_) => Held::Unproven,
            To::Split(..) | To::Nobody => Held::Nothing,
        }
    }

    fn is_watched(&self) -> bool {
        self.suspended.recorder().is_some()
    }

    fn next(&self, progress: &Progress) -> Next {
        self.suspended.next(progress)
    }

    fn take_ended(&mut self, branch: u8) -> Option<EndedBranch> {
        self.suspended.take_ended(branch)
    }
}

impl Driver {
    /// Returns the driver of `worker`, which shares `registry` with others. Must be called where
    /// `spawn_local` works; never waits, even if the names of upstreams are not resolved yet.
    pub fn new(worker: Rc<Worker>, plans: Plans<'_>, shared: Shared, board: Arc<Board>) -> Rc<Self> {
        let Shared { registry, tables } = shared;
        let alarm = Rc::new(Alarm { at: Cell::new(Moment::NEVER), changed: Notify::new() });
        let driver = Rc::new_cyclic(|driver: &Weak<Self>| {
            let now = moment(&worker);
            let rng: StdRng = rand::make_rng();
            let owner: Weak<dyn SocketEvents> = Weak::<Self>::clone(driver);
            let pool_owner: Weak<dyn PoolEvents> = Weak::<Self>::clone(driver);
            let networks = (Net::new(owner), PoolNet::new(pool_owner));
            let machine = Machine::new(networks, Arc::clone(&tables), rng, &board.counts, now);
            Self {
                worker,
                machine: RefCell::new(machine),
                registry,
                inbox: RefCell::new(Inbox::new()),
                pool_inbox: RefCell::new(Inbox::with_sources()),
                reply: RefCell::new(vec![0; wire::MESSAGE_OCTETS_MAX].into_boxed_slice()),
                written: RefCell::default(),
                resumed: Cell::default(),
                touched: RefCell::new(Vec::new()),
                batch: Cell::new(None),
                gathered: Gathered::default(),
                survey: Survey::default(),
                second_levels: RefCell::default(),
                stored: RefCell::default(),
                tables,
                me: driver.clone(),
                alarm: Rc::clone(&alarm),
                alarm_task: Cell::new(None),
                board,
                published: Cell::new(Moment(0)),
                publish_at: Cell::new(Moment::NEVER),
                discard_after: Cell::new(Span(u64::MAX)),
                shed: Cell::new(Shed::Servfail),
            }
        });
        let task = tokio::task::spawn_local(watch(Rc::downgrade(&driver), alarm));
        driver.alarm_task.set(Some(task.abort_handle()));
        let is_waiting = Rc::clone(&driver.gathered.is_waiting);
        let task = tokio::task::spawn_local(settle_gathered(Rc::downgrade(&driver), is_waiting));
        driver.gathered.task.set(Some(task.abort_handle()));
        driver.adopt(plans);
        driver
    }

    /// Runs on `plans` from now on; fetches under way end as they began.
    pub fn adopt(&self, plans: Plans<'_>) {
        let now = self.now();
        let limits = &plans.upstreams.limits;
        self.discard_after.set(Span::from_ms(u64::from(limits.discard_after_ms)));
        self.shed.set(limits.shed);
        self.machine.borrow_mut().bind_pool(|pool| pool.bind(&plans.resolvers.outgoing));
        self.machine.borrow_mut().adopt((plans.upstreams, plans.resolvers), &self.registry, now);
        self.adopt_second_levels(plans.resolvers, now);
        let servers = self.machine.borrow().servers_known();
        self.worker.engine.borrow_mut().know_servers(Box::new(servers));
        self.publish(now);
        self.settle(now);
    }

    /// Returns the time, for what is shown to operators.
    pub(crate) fn now_for_operators(&self) -> Moment {
        self.now()
    }

    /// Shows every query that waits: its octets, who waits for it, what for, and since when.
    pub(crate) fn each_waiting(&self, mut show: impl FnMut(&[u8], Option<IpAddr>, &Want, Moment)) {
        self.machine.borrow().each_waiting(|asker, since| {
            show(asker.suspended.query(), asker.client(), asker.suspended.want(), since);
        });
    }

    /// Copies messages of other servers into this ring from now on.
    pub fn tap_into(&self, writer: TapWriter) {
        self.machine.borrow_mut().tap_into(SharedTap::new(writer));
    }

    /// Asks a question of a job's.
    pub fn probe(&self, probe: recursion::Probe) {
        let now = self.begin();
        self.machine.borrow_mut().probe(probe, now);
        self.settle(now);
    }

    /// Ends queries that wait now, as an operator wants; returns how many there were.
    pub fn end_waiting(&self) -> usize {
        let now = self.begin();
        let count = self.machine.borrow_mut().shed_all();
        self.settle(now);
        count
    }

    /// Ends all fetches with [`Failure::Stopping`] and takes no more.
    pub fn stop(&self) {
        let now = self.begin();
        self.machine.borrow_mut().stop(now);
        self.settle(now);
    }

    /// Returns how the upstreams are doing right now.
    pub fn status(&self) -> Status {
        self.machine.borrow().status(self.now())
    }

    /// Returns how many queries wait.
    pub fn waiting(&self) -> usize {
        self.machine.borrow().waiting()
    }

    fn now(&self) -> Moment {
        moment(&self.worker)
    }

    /// Begins a batch that no listener began: tells the engine the time.
    fn begin(&self) -> Moment {
        let (now, since_boot) = self.worker.clock.read();
        self.worker.engine.borrow_mut().begin(now);
        self.show_zones();
        to_moment(since_boot)
    }

    /// Shows resolvers the zones that are served now.
    fn show_zones(&self) {
        // While a listener asks the engine, the zones are those of the batch before.
        if let Ok(engine) = self.worker.engine.try_borrow() {
            self.machine.borrow_mut().serve(engine.authority());
        }
    }

    /// Resumes everybody who waited for a fetch.
    fn conclude(&self, finished: Finished<'_>, now: Moment) {
        let Finished { mut waiters, ending, from } = finished;
        let (held, text);
        let mut written = self.written.borrow_mut();
        let parse = |octets| Message::parse(octets).map_err(|_| Failure::BadReply(Rcode::SERVFAIL));
        let outcome = match &ending {
            Ending::Reply(message) => Outcome::Reply(message),
            Ending::Held(octets) => match parse(octets) {
                Ok(message) => {
                    held = message;
                    Outcome::Reply(&held)
                }
                Err(failure) => Outcome::Failed(failure),
            },
            Ending::Resolved { resolution, query } => match &resolution.failure {
                None => match reply_of(resolution, query, &mut written).and_then(parse) {
                    Ok(message) => {
                        held = message;
                        let (security, scope) = (resolution.security, resolution.scope);
                        let is_unsigned = resolution.is_unsigned();
                        let is_interim = resolution.is_interim;
                        Outcome::Resolved(Resolved {
                            message: &held,
                            security,
                            is_unsigned,
                            scope,
                            is_interim,
                        })
                    }
                    Err(failure) => Outcome::Failed(failure),
                },
                Some(failure) => {
                    text = failure.text();
                    let (rcode, ede) = (resolution.rcode, failure.ede());
                    Outcome::Unresolved(Unresolved { rcode, ede, text: &text })
                }
            },
            Ending::Failed(failure) => Outcome::Failed(*failure),
            Ending::Branch { branch, report, progress, octets } => match parse(octets) {
                Ok(message) => {
                    held = message;
                    let (branch, report, progress) = (*branch, *report, *progress);
                    Outcome::Branch(Won { branch, report, progress, message: &held })
                }
                Err(failure) => Outcome::Failed(failure),
            },
            Ending::NoBranch { is_dropped } => Outcome::NoBranch { is_dropped: *is_dropped },
        };
        // That we had no room says nothing about the name: others must not be told from memory.
        let is_ours =
            matches!(outcome, Outcome::Failed(why) if why == Failure::Stopping || Shed::Drop.drops(why));
        // Each way of going on has a cache of its own to fill, or none; the first that goes this
        // way does it.
        let mut resumed = self.resumed.take();
        loop {
            let next = self.machine.borrow_mut().next_waiter(&mut waiters);
            let Some(mut asker) = next else { break };
            if let Some((server, _)) = from {
                asker.suspended.answered_by(server);
            }
            if let (Some(recorder), Some((server, took))) = (asker.suspended.recorder(), from) {
                recorder.won(server, Duration::from_micros(took.0));
            }
            if let (Some(recorder), Ending::Resolved { resolution, .. }) =
                (asker.suspended.recorder(), &ending)
            {
                for line in &resolution.trace {
                    recorder.resolving(line.to_string());
                }
            }
            let continuation = asker.suspended.continuation();
            let is_first = !is_ours && !resumed.contains(&continuation);
            if is_first {
                resumed.push(continuation);
            }
            self.resume(asker, outcome, if is_first { Share::First } else { Share::Other }, now);
        }
        resumed.clear();
        self.resumed.replace(resumed);
    }

    /// Returns whether an answer would come too late for a client whose address may be forged.
    fn is_late(&self, asker: &Asker, now: Moment) -> bool {
        now.since(asker.since) > self.discard_after.get() && !asker.suspended.is_proven()
    }

    /// Goes on with one query.
    fn resume(&self, asker: Asker, outcome: Outcome<'_>, share: Share, now: Moment) {
        let is_late = self.is_late(&asker, now);
        let Asker { suspended, mut to, deferrals, since } = asker;
        let transport = suspended.client().transport;
        let is_dropped = transport == Transport::Udp
            && matches!(outcome, Outcome::Failed(why) if self.shed.get().drops(why));
        let mut buffer = self.reply.borrow_mut();
        let mut reply = Reply::new(room(&mut buffer, &to));
        let verdict = self.worker.engine.borrow_mut().resume(suspended, outcome, share, &mut reply);
        if is_dropped && matches!((&verdict, &to), (Verdict::Answered, To::Client(_))) && is_failure(&reply) {
            self.board.counts.driver.shed_silently.bump();
            to = To::Nobody;
        }
        if is_late && matches!((&verdict, &to), (Verdict::Answered, To::Client(_))) && !is_failure(&reply) {
            self.board.counts.driver.discarded.bump();
            to = To::Nobody;
        }
        // Who gets no reply has not waited for one.
        if matches!((&verdict, &to), (Verdict::Answered, To::Client(_))) {
            let what = match outcome {
                Outcome::Resolved(_) | Outcome::Unresolved(_) => WaitedFor::Recursion,
                Outcome::Branch(_) | Outcome::NoBranch { .. } => WaitedFor::Branches,
                Outcome::Reply(_) | Outcome::Failed(_) | Outcome::Slept => WaitedFor::Upstream,
            };
            self.board.counts.waits.note(what, transport, now.since(since));
        }
        self.went_on(verdict, &reply, to, (deferrals, since), now);
    }

    /// Starts a branch for those who wait for it.
    fn begin_branch(&self, key: SplitKey, branch: u8, now: Moment) {
        let mut machine = self.machine.borrow_mut();
        let Some(parent) = machine.split_waiter(key) else { return };
        let (to, deferrals, since) = (To::Split(key, branch), parent.deferrals, parent.since);
        if let Some(suspended) = parent.suspended.take_begun(branch) {
            return machine.take(Asker { suspended, to, deferrals: deferrals + 1, since }, now);
        }
        let mut buffer = self.reply.borrow_mut();
        let mut reply = Reply::new(room(&mut buffer, &to));
        let verdict = self.worker.engine.borrow_mut().branch(&parent.suspended, branch, &mut reply);
        drop(machine);
        self.went_on(verdict, &reply, to, (deferrals, since), now);
    }

    /// Hands on what the engine said about a query.
    fn went_on(
        &self,
        verdict: Verdict,
        reply: &Reply<'_>,
        to: To,
        (deferrals, since): (u8, Moment),
        now: Moment,
    ) {
        match (verdict, to) {
            (Verdict::Answered, To::Client(to)) => self.deliver(&to, reply.bytes()),
            (Verdict::Answered | Verdict::Drop, To::Split(key, branch)) => {
                let report = reply.report().unwrap_or(BranchReport::empty(Worth::Nothing));
                self.machine.borrow_mut().branch_ended(key, branch, report, reply.bytes(), now);
            }
            (Verdict::Answered, To::Nobody) | (Verdict::Drop, To::Client(_) | To::Nobody) => (),
            // Only a message of a client's own is handed over.
            (Verdict::Stream(_), _) => (),
            (Verdict::Defer(suspended), to) if deferrals < DEFERRALS_MAX => {
                let asker = Asker { suspended, to, deferrals: deferrals + 1, since };
                self.machine.borrow_mut().take(asker, now);
            }
            (Verdict::Defer(_), To::Split(key, branch)) => {
                let report = BranchReport::empty(Worth::Nothing);
                self.machine.borrow_mut().branch_ended(key, branch, report, &[], now);
            }
            (Verdict::Defer(_), To::Client(_) | To::Nobody) => (),
        }
    }

    /// Begins the measurements that answers asked for.
    fn explore(&self) {
        while let Some(probe) = self.worker.engine.borrow_mut().next_probe() {
            if self.survey.has_room() {
                self.board.counts.driver.distances.bump();
                self.survey.begin(probe, self.me.clone());
            }
        }
    }

    /// Takes a measurement.
    pub(crate) fn measured(&self, probe: &Probe, micros: Option<u32>) {
        self.begin();
        self.worker.engine.borrow_mut().measured(probe, micros);
    }

    fn deliver(&self, to: &ReplyTo, reply: &[u8]) {
        to.outlet.deliver(&to.address, reply);
        let mut touched = self.touched.borrow_mut();
        if !touched.iter().rev().take(TOUCHED_SEEN_MAX).any(|seen| Rc::ptr_eq(seen, &to.outlet)) {
            touched.push(Rc::clone(&to.outlet));
        }
    }

    /// Ends a batch: handles what it caused, sends what is queued, sets the alarm.
    fn settle(&self, now: Moment) {
        self.gathered.datagrams.set(0);
        // Ends: a query is deferred at most DEFERRALS_MAX times, and nothing else makes new events
        // here.
        loop {
            loop {
                let event = self.machine.borrow_mut().next_event();
                match event {
                    None => break,
                    Some(Event::Finished(finished)) => self.conclude(finished, now),
                    Some(Event::Rejected(asker, failure)) => {
                        // A refresh that is not taken is not made; its data is asked for again soon
                        // enough.
                        if !matches!(asker.to, To::Nobody) {
                            self.resume(asker, Outcome::Failed(failure), Share::Other, now);
                        }
                    }
                    Some(Event::Down(asker)) => {
                        // As good as a fetch that failed: the next client is answered from memory.
                        self.resume(asker, Outcome::Failed(Failure::Down), Share::First, now);
                    }
                    Some(Event::Recovered(pool)) => self.worker.engine.borrow().group_recovered(pool),
                    Some(Event::Impatient(waiter)) => self.give_stale(waiter, now),
                    Some(Event::Branch(key, branch)) => self.begin_branch(key, branch, now),
                    Some(Event::Slept(asker)) => self.resume(asker, Outcome::Slept, Share::First, now),
                    Some(Event::StateChange(state_change)) => {
                        self.publish_at.set(now);
                        self.board.upstream_log.write(&state_change, Instant::now());
                    }
                }
            }
            loop {
                let prefetch = self.worker.engine.borrow_mut().next_prefetch();
                let Some(suspended) = prefetch else { break };
                let asker = Asker { suspended, to: To::Nobody, deferrals: 0, since: now };
                self.machine.borrow_mut().take(asker, now);
            }
            self.ask_second_levels(now);
            let mut machine = self.machine.borrow_mut();
            machine.flush(now);
            if !machine.has_events() {
                break;
            }
        }
        self.explore();
        self.show_load();
        self.hand_out();
        if self.publish_at.get() == Moment::NEVER {
            self.publish_at.set(self.published.get() + PUBLISH_EVERY);
        }
        let next = self.next_alarm();
        if next < self.alarm.at.get() {
            self.alarm.at.set(next);
            self.alarm.changed.notify_one();
        }
    }

    /// Shows how much waits, before clients have the replies that say that they do not.
    fn show_load(&self) {
        let machine = self.machine.borrow();
        self.board.waiting.store(machine.waiting() as u32, Ordering::Relaxed);
        self.board.fetching.store(machine.active() as u32, Ordering::Relaxed);
    }

    /// Sends clients the replies that were delivered to their outlets.
    fn hand_out(&self) {
        let mut touched = self.touched.take();
        for outlet in &touched {
            outlet.flush();
        }
        touched.clear();
        // Keeps its room for the next batch, unless flushing has filled a new one.
        if self.touched.borrow().is_empty() {
            self.touched.replace(touched);
        }
    }

    fn next_alarm(&self) -> Moment {
        let due = self.machine.borrow().next_due().unwrap_or(Moment::NEVER);
        due.min(self.publish_at.get())
    }

    /// Does what is due.
    fn tick(&self) {
        let now = self.begin();
        // Whatever settling finds to be next is later than this.
        self.alarm.at.set(Moment(0));
        if now >= self.publish_at.get() {
            self.publish(now);
        }
        let is_due = self.machine.borrow().next_due().is_some_and(|due| due <= now);
        if is_due {
            self.machine.borrow_mut().due(now);
            self.settle(now);
        }
        self.alarm.at.set(self.next_alarm());
    }

    fn publish(&self, now: Moment) {
        let wall = self.worker.clock.wall().duration_since(SystemTime::UNIX_EPOCH);
        self.machine.borrow_mut().set_time(wall.map_or(0, |since| since.as_secs()), now);
        let machine = self.machine.borrow();
        let published = Published { status: machine.status(now), meters: machine.meters() };
        self.board.zones_known.store(machine.zones_known(), Ordering::Relaxed);
        drop(machine);
        *self.board.published.lock().unwrap_or_else(PoisonError::into_inner) = published;
        self.published.set(now);
        self.publish_at.set(Moment::NEVER);
    }
}

impl engine::Driver for Driver {
    fn take(&self, suspended: Box<Suspended>, to: ReplyTo) {
        let now = self.batch_now();
        let waiting = self.machine.borrow().waiting();
        self.board.counts.waits.begin(suspended.client().transport, waiting);
        let asker = Asker { suspended, to: To::Client(to), deferrals: 0, since: now };
        self.machine.borrow_mut().take(asker, now);
    }

    fn prefetch(&self, suspended: Box<Suspended>) {
        let now = self.batch_now();
        let asker = Asker { suspended, to: To::Nobody, deferrals: 0, since: now };
        self.machine.borrow_mut().take(asker, now);
    }

    fn flush(&self) {
        // Nothing was taken: nothing is to be sent.
        if let Some(now) = self.batch.take() {
            self.settle(now);
        }
        self.explore();
    }

    fn fetching(&self) -> usize {
        self.machine.borrow().active()
    }

    fn is_crowded(&self) -> bool {
        self.machine.borrow().is_crowded()
    }
}

impl Driver {
    /// Returns the time of this batch; the clock is read once for all its queries.
    fn batch_now(&self) -> Moment {
        match self.batch.get() {
            Some(now) => now,
            None => {
                let now = self.now();
                self.batch.set(Some(now));
                self.show_zones();
                now
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        for task in [self.alarm_task.take(), self.gathered.task.take()].into_iter().flatten() {
            task.abort();
        }
    }
}

/// Writes the reply that a resolver's answer comes to.
fn reply_of<'w>(
    resolution: &Resolution,
    query: &OutQuery,
    written: &'w mut Vec<u8>,
) -> Result<&'w [u8], Failure> {
    if written.is_empty() {
        written.resize(wire::MESSAGE_OCTETS_MAX, 0);
    }
    let OutQuery { qname, qtype, qclass, .. } = query;
    let question = Question { qname: qname.as_name(), qtype: *qtype, qclass: *qclass };
    let octets = resolution.write(&question, query.wants_dnssec, written);
    let octets = octets.map_err(|_| Failure::BadReply(Rcode::SERVFAIL))?;
    Ok(written.get(..octets).unwrap_or(&[]))
}

/// Returns the part of the reply buffer that `to` has use for.
fn room<'b>(buffer: &'b mut [u8], to: &To) -> &'b mut [u8] {
    let size = match to {
        To::Client(to) => to.outlet.reply_octets_max().min(buffer.len()),
        To::Split(..) | To::Nobody => buffer.len(),
    };
    buffer.get_mut(..size).unwrap_or(&mut [])
}

/// Returns whether a reply says that there is no answer: as small as a query, and worth knowing
/// even late.
fn is_failure(reply: &Reply<'_>) -> bool {
    Header::parse(reply.bytes()).is_some_and(|header| header.flags.rcode() == Rcode::SERVFAIL)
}

fn moment(worker: &Worker) -> Moment {
    to_moment(worker.clock.since_boot())
}

fn to_moment(since_boot: Duration) -> Moment {
    Moment(u64::try_from(since_boot.as_micros()).unwrap_or(u64::MAX))
}

/// Wakes the driver at its deadlines: one timer for all of a worker's fetches.
async fn watch(driver: Weak<Driver>, alarm: Rc<Alarm>) {
    loop {
        let Some(now) = driver.upgrade().map(|driver| driver.now()) else { return };
        let at = alarm.at.get();
        if at == Moment::NEVER {
            alarm.changed.notified().await;
            continue;
        }
        if at <= now {
            // Sockets come first: a sleep of no time would be one of a millisecond.
            tokio::task::yield_now().await;
            match driver.upgrade() {
                Some(driver) => driver.tick(),
                None => return,
            }
            continue;
        }
        // The runtime's clock may stand still while the machine sleeps, so what is left is what
        // counts.
        let left = Duration::from_micros(at.since(now).0);
        tokio::select! {
            () = tokio::time::sleep(left) => match driver.upgrade() {
                Some(driver) => driver.tick(),
                None => return,
            },
            () = alarm.changed.notified() => (),
        }
    }
}

/// Settles what pooled sockets brought, after all that were ready at once have been read: whoever
/// notifies us does so before the others' turn, and we have ours after them.
async fn settle_gathered(driver: Weak<Driver>, is_waiting: Rc<Notify>) {
    loop {
        is_waiting.notified().await;
        let Some(driver) = driver.upgrade() else { return };
        if driver.gathered.datagrams.get() > 0 {
            let now = driver.begin();
            driver.settle(now);
        }
    }
}
