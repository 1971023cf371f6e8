//! Brings clients' queries, upstreams' replies and the engine together, on one worker.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use engine::{Failure, Now, Outcome, Outlet, Reply, ReplyTo, Share, Suspended, Verdict, Want, Worker};
use rand::rngs::StdRng;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use wire::{Message, Rcode};

use crate::counters::Counters;
use crate::machine::{Ending, Event, Finished, Machine, Waiter};
use crate::net::{Net, Received};
use crate::network::{LinkKey, SocketKey};
use crate::plan::Plan;
use crate::status::Status;
use crate::sys::Inbox;
use crate::time::{Moment, Span};

/// Batches read from one socket before others get their turn.
const ROUNDS_MAX: usize = 4;
/// Times one query may be deferred: a program that forwards, looks, and forwards again is finite, and this says how finite.
const DEFERRALS_MAX: u8 = 16;
/// Octets of the largest reply.
const REPLY_OCTETS_MAX: usize = 65_535;
/// Outlets looked through for whether they are to be flushed already; one flushed twice does no harm.
const TOUCHED_SEEN_MAX: usize = 8;
/// The status that others read is at most this old while anything happens.
const PUBLISH_EVERY: Span = Span::from_ms(1000);

/// Where one worker shows how its fetching is doing; read from other threads.
#[derive(Debug, Default)]
pub struct Board {
    /// What it counts.
    pub counters: Arc<Counters>,
    status: Mutex<Status>,
}

impl Board {
    /// Returns the upstreams and their state, at most about a second old.
    pub fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One worker's fetching: takes deferred queries, asks upstreams, resumes and delivers.
///
/// Everything runs on the worker's own thread. A query costs no task, timer or channel of its own.
pub struct Desk {
    worker: Rc<Worker>,
    machine: RefCell<Machine<Net, Asker>>,
    inbox: RefCell<Inbox>,
    reply: RefCell<Box<[u8]>>,
    /// Outlets with replies queued.
    touched: RefCell<Vec<Rc<dyn Outlet>>>,
    /// The time of the batch that listeners are feeding us.
    batch: Cell<Option<Moment>>,
    alarm: Rc<Alarm>,
    alarm_task: Cell<Option<AbortHandle>>,
    board: Arc<Board>,
    published: Cell<Moment>,
    publish_at: Cell<Moment>,
}

/// When to wake for the next deadline.
struct Alarm {
    at: Cell<Moment>,
    changed: Notify,
}

/// A query that waits; without `to`, work that no client waits for.
struct Asker {
    suspended: Box<Suspended>,
    to: Option<ReplyTo>,
    deferrals: u8,
}

impl Waiter for Asker {
    fn want(&self) -> &Want {
        self.suspended.want()
    }

    fn client(&self) -> Option<IpAddr> {
        self.to.as_ref().map(|_| self.suspended.client().address)
    }
}

impl Desk {
    /// Returns the desk of `worker`. Must be called where `spawn_local` works; never waits, even
    /// if the names of upstreams are not resolved yet.
    pub fn new(worker: Rc<Worker>, plan: &Plan, board: Arc<Board>) -> Rc<Self> {
        let alarm = Rc::new(Alarm { at: Cell::new(Moment::NEVER), changed: Notify::new() });
        let desk = Rc::new_cyclic(|desk: &Weak<Self>| {
            let now = moment(&worker);
            let rng: StdRng = rand::make_rng();
            let machine = Machine::new(Net::new(desk.clone()), rng, Arc::clone(&board.counters), now);
            Self {
                worker,
                machine: RefCell::new(machine),
                inbox: RefCell::new(Inbox::new()),
                reply: RefCell::new(vec![0; REPLY_OCTETS_MAX].into_boxed_slice()),
                touched: RefCell::new(Vec::new()),
                batch: Cell::new(None),
                alarm: Rc::clone(&alarm),
                alarm_task: Cell::new(None),
                board,
                published: Cell::new(Moment(0)),
                publish_at: Cell::new(Moment::NEVER),
            }
        });
        let task = tokio::task::spawn_local(watch(Rc::downgrade(&desk), alarm));
        desk.alarm_task.set(Some(task.abort_handle()));
        desk.adopt(plan);
        desk
    }

    /// Runs on `plan` from now on; fetches under way end as they began.
    pub fn adopt(&self, plan: &Plan) {
        let now = self.now();
        self.machine.borrow_mut().adopt(plan, now);
        self.settle(now);
        self.publish(now);
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
        let since_start = self.worker.started.elapsed();
        self.worker.engine.borrow_mut().begin(Now::new(SystemTime::now(), since_start));
        to_moment(since_start)
    }

    /// Reads and handles what has come on one socket.
    pub(crate) fn receive(&self, key: SocketKey, socket: &Rc<UdpSocket>, interest: Interest) -> Received {
        if !self.machine.borrow().network.is_current(key, socket) {
            return Received::Closed;
        }
        let now = self.begin();
        let mut inbox = self.inbox.borrow_mut();
        let mut received = Received::Some;
        let mut datagrams = 0;
        for _ in 0..ROUNDS_MAX {
            inbox.clear();
            let read = socket.try_io(interest, || {
                let has_more = inbox.receive(socket.as_fd())?;
                // A short batch means that the queue is empty; saying so saves the call that would find that out.
                if has_more { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
            });
            for (bytes, is_cut) in inbox.iter() {
                datagrams += 1;
                let finished = self.machine.borrow_mut().datagram(key, bytes, is_cut, now);
                if let Some(finished) = finished {
                    self.conclude(finished, now);
                }
            }
            match read {
                Ok(()) => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    received = Received::All;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(_) => {
                    self.machine.borrow_mut().socket_failed(key, now);
                    received = Received::Closed;
                    break;
                }
            }
        }
        drop(inbox);
        self.settle(now);
        self.worker.vigil.stir(datagrams);
        received
    }

    /// Handles the messages at the front of what was read from a connection; returns the octets they took.
    pub(crate) fn messages(&self, key: LinkKey, bytes: &[u8]) -> usize {
        let now = self.begin();
        let mut rest = bytes;
        let mut messages = 0;
        while let Some((&length, after)) = rest.split_first_chunk::<2>()
            && let Some((message, after)) = after.split_at_checked(usize::from(u16::from_be_bytes(length)))
        {
            rest = after;
            messages += 1;
            let finished = self.machine.borrow_mut().message(key, message, now);
            if let Some(finished) = finished {
                self.conclude(finished, now);
            }
        }
        self.settle(now);
        self.worker.vigil.stir(messages);
        bytes.len() - rest.len()
    }

    pub(crate) fn link_opened(&self, key: LinkKey) {
        self.machine.borrow_mut().link_opened(key);
    }

    pub(crate) fn link_closed(&self, key: LinkKey) {
        let now = self.begin();
        self.machine.borrow_mut().link_closed(key, now);
        self.settle(now);
    }

    /// Resumes everybody who waited for a fetch.
    fn conclude(&self, finished: Finished<'_>, now: Moment) {
        let Finished { mut waiters, ending } = finished;
        let held;
        let outcome = match &ending {
            Ending::Reply(message) => Outcome::Reply(message),
            Ending::Held(bytes) => match Message::parse(bytes) {
                Ok(message) => {
                    held = message;
                    Outcome::Reply(&held)
                }
                Err(_) => Outcome::Failed(Failure::BadReply(Rcode::SERVFAIL)),
            },
            Ending::Failed(failure) => Outcome::Failed(*failure),
        };
        let mut share = Share::First;
        loop {
            let next = self.machine.borrow_mut().next_waiter(&mut waiters);
            let Some(asker) = next else { break };
            self.resume(asker, outcome, share, now);
            share = Share::Other;
        }
    }

    /// Goes on with one query.
    fn resume(&self, asker: Asker, outcome: Outcome<'_>, share: Share, now: Moment) {
        let Asker { suspended, to, deferrals } = asker;
        let mut buffer = self.reply.borrow_mut();
        let mut reply = Reply::new(room(&mut buffer, to.as_ref()));
        let verdict = self.worker.engine.borrow_mut().resume(suspended, outcome, share, &mut reply);
        match verdict {
            Verdict::Answered => {
                if let Some(to) = to {
                    self.deliver(&to, reply.bytes());
                }
            }
            Verdict::Drop => (),
            Verdict::Defer(suspended) => {
                drop(buffer);
                if deferrals < DEFERRALS_MAX {
                    let asker = Asker { suspended, to, deferrals: deferrals + 1 };
                    self.machine.borrow_mut().take(asker, now);
                }
            }
        }
    }

    fn deliver(&self, to: &ReplyTo, reply: &[u8]) {
        to.outlet.deliver(&to.address, reply);
        let mut touched = self.touched.borrow_mut();
        if !touched.iter().rev().take(TOUCHED_SEEN_MAX).any(|seen| Rc::ptr_eq(seen, &to.outlet)) {
            touched.push(Rc::clone(&to.outlet));
        }
    }

    /// Gives a client that waited long enough the stale answer at hand; its query goes on as an errand.
    fn give_stale(&self, waiter: u32) {
        let mut machine = self.machine.borrow_mut();
        let Some(asker) = machine.waiter(waiter) else { return };
        let Some(to) = asker.to.take() else { return };
        let mut buffer = self.reply.borrow_mut();
        let mut reply = Reply::new(room(&mut buffer, Some(&to)));
        match self.worker.engine.borrow_mut().answer_stale(&asker.suspended, &mut reply) {
            Verdict::Answered => {
                drop(machine);
                self.deliver(&to, reply.bytes());
            }
            // Nothing stale after all: it goes on waiting.
            Verdict::Drop | Verdict::Defer(_) => asker.to = Some(to),
        }
    }

    /// Ends a batch: handles what it caused, sends what is queued, sets the alarm.
    fn settle(&self, now: Moment) {
        // Ends: a query is deferred at most DEFERRALS_MAX times, and nothing else makes new events here.
        loop {
            loop {
                let event = self.machine.borrow_mut().next_event();
                match event {
                    None => break,
                    Some(Event::Finished(finished)) => self.conclude(finished, now),
                    Some(Event::Rejected(asker, failure)) => {
                        // A refresh that is not taken is not made; its data is asked for again soon enough.
                        if asker.to.is_some() {
                            self.resume(asker, Outcome::Failed(failure), Share::Other, now);
                        }
                    }
                    Some(Event::Impatient(waiter)) => self.give_stale(waiter),
                }
            }
            loop {
                let errand = self.worker.engine.borrow_mut().next_errand();
                let Some(suspended) = errand else { break };
                let asker = Asker { suspended, to: None, deferrals: 0 };
                self.machine.borrow_mut().take(asker, now);
            }
            let mut machine = self.machine.borrow_mut();
            machine.flush(now);
            if !machine.has_events() {
                break;
            }
        }
        let mut touched = self.touched.take();
        for outlet in &touched {
            outlet.flush();
        }
        touched.clear();
        // Keeps its room for the next batch, unless flushing has filled a new one.
        if self.touched.borrow().is_empty() {
            self.touched.replace(touched);
        }
        if self.publish_at.get() == Moment::NEVER {
            self.publish_at.set(self.published.get() + PUBLISH_EVERY);
        }
        let next = self.next_alarm();
        if next < self.alarm.at.get() {
            self.alarm.at.set(next);
            self.alarm.changed.notify_one();
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
        let status = self.machine.borrow().status(now);
        *self.board.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
        self.published.set(now);
        self.publish_at.set(Moment::NEVER);
    }
}

impl engine::Desk for Desk {
    fn take(&self, suspended: Box<Suspended>, to: ReplyTo) {
        let now = self.batch_now();
        self.machine.borrow_mut().take(Asker { suspended, to: Some(to), deferrals: 0 }, now);
    }

    fn errand(&self, suspended: Box<Suspended>) {
        let now = self.batch_now();
        self.machine.borrow_mut().take(Asker { suspended, to: None, deferrals: 0 }, now);
    }

    fn flush(&self) {
        // Nothing was taken: nothing is to be sent.
        if let Some(now) = self.batch.take() {
            self.settle(now);
        }
    }

    fn fetching(&self) -> usize {
        self.machine.borrow().active()
    }
}

impl Desk {
    /// Returns the time of this batch; the clock is read once for all its queries.
    fn batch_now(&self) -> Moment {
        match self.batch.get() {
            Some(now) => now,
            None => {
                let now = self.now();
                self.batch.set(Some(now));
                now
            }
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(task) = self.alarm_task.take() {
            task.abort();
        }
    }
}

/// Returns the part of the reply buffer that `to` has use for.
fn room<'b>(buffer: &'b mut [u8], to: Option<&ReplyTo>) -> &'b mut [u8] {
    let size = to.map_or(REPLY_OCTETS_MAX, |to| to.outlet.reply_octets_max()).min(buffer.len());
    buffer.get_mut(..size).unwrap_or(&mut [])
}

fn moment(worker: &Worker) -> Moment {
    to_moment(worker.started.elapsed())
}

fn to_moment(since_start: Duration) -> Moment {
    Moment(u64::try_from(since_start.as_micros()).unwrap_or(u64::MAX))
}

/// Wakes the desk at its deadlines: one timer for all of a worker's fetches.
async fn watch(desk: Weak<Desk>, alarm: Rc<Alarm>) {
    loop {
        let Some(started) = desk.upgrade().map(|desk| desk.worker.started) else { return };
        let at = alarm.at.get();
        if at == Moment::NEVER {
            alarm.changed.notified().await;
            continue;
        }
        let until = tokio::time::Instant::from_std(started + Duration::from_micros(at.0));
        tokio::select! {
            () = tokio::time::sleep_until(until) => match desk.upgrade() {
                Some(desk) => desk.tick(),
                None => return,
            },
            () = alarm.changed.notified() => (),
        }
    }
}
