//! One connection as the outside sees it: late replies are delivered to it, and it can be told to
//! end.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use engine::{Address, Outlet};
use tokio::time::Instant;
use wire::MESSAGE_OCTETS_MAX;

use super::AnyConnection;
use super::buffer::{Buffer, Pool};
use super::places::Place;
use crate::counters::Counters;
use crate::sys::Stream;
use crate::tls::Session;

/// What a connection with TLS has besides.
pub(super) struct Secure {
    pub(super) session: Session,
    /// Part of a record, or of a message in several records.
    pub(super) record: Buffer,
    /// Late replies that are not encrypted yet.
    late: Buffer,
    /// Where text is encrypted; all connections of the worker share it.
    sealed: Rc<RefCell<Box<[u8]>>>,
}

impl Secure {
    pub(super) fn new(session: Session, pool: Rc<Pool>, sealed: Rc<RefCell<Box<[u8]>>>) -> Box<Self> {
        let record = Buffer::new(Rc::clone(&pool));
        Box::new(Self { session, record, late: Buffer::new(pool), sealed })
    }
}

/// How far late replies may go over the limit of waiting output. They cannot be held back as
/// queries can, so a client that asks much and takes nothing is cut off here.
const LATE_OUTPUT_FACTOR: usize = 4;

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The client closed it.
    Client,
    /// It failed.
    Error,
    /// It was quiet for too long.
    Idle,
    /// It was quiet and another needed the place.
    Evicted,
    /// A query took too long to arrive.
    SlowWriter,
    /// Replies were not taken.
    SlowReader,
    /// What came is not DNS.
    Malformed,
    /// What came from a proxy is not a PROXY header.
    MalformedProxy,
    /// The client behind a proxy has too many connections.
    ClientFull,
    /// It had as many queries as it may, or one that gets no reply.
    Finished,
    /// The server stops.
    Stopping,
    /// The TLS handshake took too long.
    SlowHandshake,
    /// What came is not TLS as we speak it.
    Tls,
    /// There were too many handshakes.
    HandshakesFull,
}

impl Ending {
    /// Counts it.
    pub(crate) fn count(self, counters: &Counters) {
        let counter = match self {
            Self::Client => &counters.tcp_closed_client,
            Self::Error => &counters.tcp_closed_error,
            Self::Idle => &counters.tcp_closed_idle,
            Self::Evicted => &counters.tcp_closed_evicted,
            Self::SlowWriter => &counters.tcp_closed_slow_writer,
            Self::SlowReader => &counters.tcp_closed_slow_reader,
            Self::Malformed => &counters.tcp_closed_malformed,
            Self::MalformedProxy => &counters.proxy_malformed,
            Self::ClientFull => &counters.tcp_refused_client,
            Self::Finished => &counters.tcp_closed_finished,
            Self::Stopping => &counters.tcp_closed_stopping,
            Self::SlowHandshake => &counters.tls_slow,
            Self::Tls => &counters.tls_failed,
            Self::HandshakesFull => &counters.tls_refused,
        };
        counter.bump();
    }
}

/// The shared part of a connection.
pub(crate) struct Connection {
    pub(super) stream: Stream,
    output: RefCell<Buffer>,
    pub(super) secure: Option<RefCell<Box<Secure>>>,
    output_octets_max: usize,
    /// Since when the client has taken nothing, while there is something to take.
    stalled_since: Cell<Option<Instant>>,
    /// Queries whose replies come later.
    waiting: Cell<u32>,
    ending: Cell<Option<Ending>>,
    is_stopping: Cell<bool>,
    /// Whether a query of it gets no reply.
    has_dropped: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// A reply of many messages that waits until the client has taken more.
    room_waker: RefCell<Vec<Waker>>,
    place: RefCell<Option<Place>>,
    pub(super) counters: Arc<Counters>,
}

impl AnyConnection for Connection {
    fn evict(&self) {
        drop(self.place.take());
        self.end(Ending::Evicted);
    }

    fn stop(&self) {
        self.is_stopping.set(true);
        self.wake();
    }
}

impl Connection {
    pub(super) fn new(
        stream: Stream,
        secure: Option<Box<Secure>>,
        pool: Rc<Pool>,
        output_octets_max: usize,
        place: Place,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            stream,
            output: RefCell::new(Buffer::new(pool)),
            secure: secure.map(RefCell::new),
            output_octets_max,
            stalled_since: Cell::new(None),
            waiting: Cell::new(0),
            ending: Cell::new(None),
            is_stopping: Cell::new(false),
            has_dropped: Cell::new(false),
            waker: RefCell::new(None),
            room_waker: RefCell::default(),
            place: RefCell::new(Some(place)),
            counters,
        }
    }

    /// Returns why it has to end, if it has to.
    pub(super) const fn ending(&self) -> Option<Ending> {
        self.ending.get()
    }

    /// Ends it. The first reason counts.
    pub(super) fn end(&self, ending: Ending) {
        if self.ending.get().is_none() {
            self.ending.set(Some(ending));
        }
        self.wake();
    }

    /// Runs `f` on the place; `None` when it was given away.
    pub(super) fn with_place<T>(&self, f: impl FnOnce(&mut Place) -> T) -> Option<T> {
        self.place.borrow_mut().as_mut().map(f)
    }

    /// Returns whether it was asked to end when nothing waits any more.
    pub(super) const fn is_stopping(&self) -> bool {
        self.is_stopping.get()
    }

    /// Notes that a query of it gets no reply. What the client would wait for in vain ends the
    /// connection, as soon as the replies to its other queries are sent.
    pub(super) fn note_dropped(&self) {
        self.has_dropped.set(true);
    }

    /// Returns whether a query of it gets no reply.
    pub(super) const fn has_dropped(&self) -> bool {
        self.has_dropped.get()
    }

    /// Returns how many queries wait for their replies.
    pub(super) const fn waiting(&self) -> u32 {
        self.waiting.get()
    }

    /// Returns how many octets wait to be taken by the client.
    pub(super) fn output_octets(&self) -> usize {
        let late = self.secure.as_ref().map_or(0, |secure| secure.borrow().late.len());
        self.output.borrow().len() + late
    }

    /// Returns whether part of a TLS record is there.
    pub(super) fn has_part_of_record(&self) -> bool {
        self.secure.as_ref().is_some_and(|secure| !secure.borrow().record.is_empty())
    }

    /// Returns whether a TLS handshake is still to be done.
    pub(super) fn is_shaking_hands(&self) -> bool {
        self.secure.as_ref().is_some_and(|secure| !secure.borrow().session.is_established())
    }

    /// Returns since when the client has taken nothing; `None` when there is nothing to take.
    pub(super) const fn stalled_since(&self) -> Option<Instant> {
        self.stalled_since.get()
    }

    /// Makes changes from outside wake the task that polls.
    pub(super) fn watch(&self, context: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match waker.as_mut() {
            Some(waker) => waker.clone_from(context.waker()),
            None => *waker = Some(context.waker().clone()),
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Returns an outlet for one query that waits.
    pub(super) fn ticket(self: &Rc<Self>) -> Rc<dyn Outlet> {
        self.waiting.set(self.waiting.get() + 1);
        Rc::new(Ticket { connection: Rc::downgrade(self), is_answered: Cell::new(false) })
    }

    /// Sends `bytes` after what is already waiting, encrypted if that is how the client speaks.
    pub(super) fn send(&self, bytes: &[u8]) {
        let Some(secure) = &self.secure else { return self.send_raw(bytes) };
        let Secure { session, record, sealed, .. } = &mut **secure.borrow_mut();
        let mut sealed = sealed.borrow_mut();
        match session.seal(record.bytes_mut(), bytes, &mut sealed).and_then(|octets| sealed.get(..octets)) {
            Some(octets) => self.send_raw(octets),
            None => self.end(Ending::Tls),
        }
    }

    /// Encrypts the late replies and puts them behind what is already waiting.
    fn seal_late(&self) {
        let Some(secure) = &self.secure else { return };
        let Secure { session, record, late, sealed } = &mut **secure.borrow_mut();
        if late.is_empty() {
            return;
        }
        let mut sealed = sealed.borrow_mut();
        let octets = session.seal(record.bytes_mut(), late.bytes(), &mut sealed);
        late.clear();
        match octets.and_then(|octets| sealed.get(..octets)) {
            Some(octets) => self.send_raw(octets),
            None => self.end(Ending::Tls),
        }
    }

    /// Sends close_notify, if there is room for it.
    pub(super) fn say_goodbye(&self) {
        let Some(secure) = &self.secure else { return };
        let Secure { session, record, sealed, .. } = &mut **secure.borrow_mut();
        if self.output.borrow().is_empty() {
            let mut sealed = sealed.borrow_mut();
            let octets = session.close(record.bytes_mut(), &mut sealed);
            self.write(sealed.get(..octets).unwrap_or(&[]));
        }
    }

    /// Sends `bytes` after what is already waiting; keeps what the client does not take now.
    pub(super) fn send_raw(&self, bytes: &[u8]) {
        let mut output = self.output.borrow_mut();
        let sent = if output.is_empty() { self.write(bytes) } else { 0 };
        let rest = bytes.get(sent..).unwrap_or(&[]);
        if rest.is_empty() {
            return;
        }
        if output.append(rest).is_err() {
            self.end(Ending::SlowReader);
        }
        if sent > 0 || self.stalled_since.get().is_none() {
            self.stalled_since.set(Some(Instant::now()));
        }
    }

    /// Writes until everything is written or the client takes no more; returns how much.
    fn write(&self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.socket().write(rest) {
                Ok(0) => break,
                Ok(octets) => sent += octets,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.end(Ending::Error);
                    break;
                }
            }
        }
        sent
    }

    /// Sends what waits and asks to be woken when the client takes more.
    pub(super) fn poll_send(&self, context: &mut Context<'_>) {
        self.seal_late();
        let mut output = self.output.borrow_mut();
        if !output.is_empty() && self.stream.watched().is_none() {
            self.send_waiting(&mut output);
        }
        while !output.is_empty() && self.ending.get().is_none() {
            let ready = match self.stream.watch() {
                Ok(watched) => watched.poll_write_ready(context),
                Err(error) => Poll::Ready(Err(error)),
            };
            let Poll::Ready(ready) = ready else { return };
            let Ok(mut guard) = ready else {
                self.end(Ending::Error);
                return;
            };
            self.send_waiting(&mut output);
            if !output.is_empty() {
                guard.clear_ready();
            }
        }
    }

    fn send_waiting(&self, output: &mut Buffer) {
        let sent = self.write(output.bytes());
        output.consume(sent);
        if output.len() <= self.output_octets_max / 2 {
            self.tell_of_room();
        }
        if output.is_empty() {
            self.stalled_since.set(None);
        } else if sent > 0 || self.stalled_since.get().is_none() {
            self.stalled_since.set(Some(Instant::now()));
        }
    }

    /// Wakes the replies that wait for room.
    fn tell_of_room(&self) {
        for waker in self.room_waker.borrow_mut().drain(..) {
            waker.wake();
        }
    }

    /// Waits until the client has taken half of what it may leave waiting; `false` when it has
    /// gone.
    fn poll_room(&self, context: &Context<'_>) -> Poll<bool> {
        if self.ending.get().is_some() {
            return Poll::Ready(false);
        }
        if self.output_octets() <= self.output_octets_max / 2 {
            return Poll::Ready(true);
        }
        self.room_waker.borrow_mut().push(context.waker().clone());
        // Whoever sends what waits has to know that somebody waits for it.
        self.wake();
        Poll::Pending
    }

    /// Queues a reply that comes later.
    fn deliver(&self, reply: &[u8]) {
        let Ok(len) = u16::try_from(reply.len()) else { return };
        if self.ending.get().is_some() {
            return;
        }
        let len = len.to_be_bytes();
        let kept = match &self.secure {
            None => {
                let mut output = self.output.borrow_mut();
                output.append(&len).and_then(|()| output.append(reply))
            }
            Some(secure) => {
                let late = &mut secure.borrow_mut().late;
                late.append(&len).and_then(|()| late.append(reply))
            }
        };
        if kept.is_err() {
            self.end(Ending::SlowReader);
            return;
        }
        self.counters.tcp_replies.bump();
        if self.secure.as_ref().is_some_and(|secure| secure.borrow().late.len() > MESSAGE_OCTETS_MAX) {
            // Another reply of any size still fits where they are encrypted.
            self.seal_late();
        }
        let mut output = self.output.borrow_mut();
        if output.len() > self.output_octets_max {
            self.send_waiting(&mut output);
            if output.len() > self.output_octets_max.saturating_mul(LATE_OUTPUT_FACTOR) {
                self.end(Ending::SlowReader);
            }
        }
    }

    /// Sends what was delivered.
    fn flush(&self) {
        if self.ending.get().is_some() {
            return;
        }
        self.seal_late();
        let mut output = self.output.borrow_mut();
        if !output.is_empty() {
            self.send_waiting(&mut output);
            if !output.is_empty() {
                self.wake();
            }
        }
    }

    /// Forgets everything that waits: nobody will take it.
    pub(super) fn close(&self) {
        if self.ending.get().is_none() {
            self.ending.set(Some(Ending::Error));
        }
        self.output.borrow_mut().clear();
        if let Some(secure) = &self.secure {
            let mut secure = secure.borrow_mut();
            secure.late.clear();
            secure.record.clear();
        }
        drop(self.place.take());
        drop(self.waker.take());
        self.tell_of_room();
    }
}

/// One waiting query of a connection. Dropping it means that no reply will come (any more).
///
/// Does not keep the connection: a socket is closed when the conversation ends, not when the last
/// fetch for it does.
struct Ticket {
    connection: Weak<Connection>,
    is_answered: Cell<bool>,
}

impl Outlet for Ticket {
    fn deliver(&self, _address: &Address, reply: &[u8]) {
        self.is_answered.set(true);
        if let Some(connection) = self.connection.upgrade() {
            connection.deliver(reply);
        }
    }

    fn flush(&self) {
        if let Some(connection) = self.connection.upgrade() {
            connection.flush();
        }
    }

    fn reply_octets_max(&self) -> usize {
        MESSAGE_OCTETS_MAX
    }

    fn poll_room(&self, context: &mut Context<'_>) -> Poll<bool> {
        self.connection.upgrade().map_or(Poll::Ready(false), |connection| connection.poll_room(context))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some(connection) = self.connection.upgrade() else { return };
        connection.waiting.set(connection.waiting.get().saturating_sub(1));
        if !self.is_answered.get() {
            connection.note_dropped();
        }
        // It may read again, be idle, or end; and what was delivered without a flush leaves.
        connection.wake();
    }
}
