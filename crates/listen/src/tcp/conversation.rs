//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The life of a connection: read, answer, write, rest.

use std::cell::RefCell;
use std::io::{self, Read};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use engine::{
    Address, Client, ClientCertificate, ConnectionText, Keepalive, ListenerId, ReplyTo, Said, Transport,
};
use tokio::io::unix::AsyncFdReadyGuard;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep_until};
use wire::MESSAGE_OCTETS_MAX;

use super::Shared;
use super::buffer::Buffer;
use super::connection::{Connection, Ending, Secure};
use crate::dnscrypt::{Carrier, Opener, ReplyKey, Sealed, sealing};
use crate::proxy::{self, Source, Unread};
use crate::service::{self, Answer, Answered, Service};
use crate::tls::{FLIGHT_OCTETS_MAX, ShownCertificate, sealed_octets};

/// Octets read at once.
pub(super) const INPUT_OCTETS: usize = 16 << 10;

/// Octets of replies to one read that are written at once: at least two of any size.
const OUTPUT_OCTETS: usize = 2 * (2 + MESSAGE_OCTETS_MAX);
/// Octets of these over TLS, behind a flight of the session's own.
const SEALED_OCTETS_MAX: usize = sealed_octets(OUTPUT_OCTETS) + FLIGHT_OCTETS_MAX;

/// Octets of text that one read of a TLS connection can come to: with an incomplete record of
/// before.
const PLAIN_OCTETS: usize = 2 * INPUT_OCTETS + (2 << 10);

/// Queries of one connection answered before others get their turn.
const QUERIES_PER_TURN_MAX: u32 = 64;

/// Queries of one turn that wait for an upstream before they are handed over.
pub(super) const LATE_MAX: usize = 64;

/// Turns of one connection before others get theirs.
const TURNS_MAX: u32 = 4;

/// The shortest message: a header. Whoever sends less does not speak DNS.
const QUERY_OCTETS_MIN: usize = 12;

/// What a worker has once for all its connections.
pub(super) struct Scratch<D> {
    pub(super) input: Box<[u8]>,
    pub(super) output: Box<[u8]>,
    pub(super) late: Vec<D>,
    /// What the replies to `late` are sealed with, over DNSCrypt.
    pub(super) reply_keys: Vec<ReplyKey>,
    /// Text of TLS connections, decrypted.
    pub(super) plain: Box<[u8]>,
    /// Where text is encrypted.
    pub(super) sealed: Rc<RefCell<Box<[u8]>>>,
}

// Once per worker.
impl<D> Scratch<D> {
    pub(super) fn new() -> Self {
        Self {
            input: vec![0; INPUT_OCTETS].into_boxed_slice(),
            output: vec![0; OUTPUT_OCTETS].into_boxed_slice(),
            late: Vec::with_capacity(LATE_MAX),
            reply_keys: Vec::default(),
            plain: Box::default(),
            sealed: Rc::default(),
        }
    }

    /// Makes room for TLS, at the first connection that speaks it.
    #[cold]
    pub(super) fn prepare_tls(&mut self) {
        if self.plain.is_empty() {
            self.plain = vec![0; PLAIN_OCTETS].into_boxed_slice();
            *self.sealed.borrow_mut() = vec![0; SEALED_OCTETS_MAX].into_boxed_slice();
        }
    }
}

/// What one turn came to.
enum Turn {
    /// There may be more to do.
    More,
    /// Nothing to do until others have had their turn.
    Yield,
    /// Nothing to do until something happens.
    Wait,
}

/// What is known of the socket's queue for as long as the runtime does not watch the socket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Nothing: it is read.
    First,
    /// It was empty: it is read again when others have had their turn.
    Later,
    /// It was empty, and others have had their turn: it is read, and if it is still empty, the
    /// runtime has to watch.
    Last,
}

/// Whether a connection begins with a PROXY header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// The header has still to come.
    Header,
    /// Queries only.
    Queries,
}

/// Serves one connection.
pub(super) struct Conversation<S: Service> {
    pub(super) shared: Rc<Shared<S>>,
    pub(super) connection: Rc<Connection>,
    key: usize,
    client: Client,
    opening: Opening,
    /// What opens messages, if DNSCrypt is spoken.
    opener: Option<Rc<RefCell<Opener>>>,
    /// What was read and not answered: part of a query, or queries that have to wait for their
    /// turn.
    input: Buffer,
    /// When the connection was taken in.
    opened_at: Instant,
    /// Of which snapshot it is that `client.connection` speaks.
    recognised: Option<u64>,
    /// When the first octet of an incomplete query came.
    input_since: Option<Instant>,
    /// When something was last done.
    active_at: Instant,
    look: Look,
    is_eof: bool,
    /// Whether replies were still to come when it was last looked at.
    was_busy: bool,
    queries: u64,
}

impl<S: Service> Conversation<S> {
    pub(super) fn new(
        shared: Rc<Shared<S>>,
        connection: Rc<Connection>,
        key: usize,
        peer: (IpAddr, u16),
        (listener, transport): (ListenerId, Transport),
        opening: Opening,
    ) -> Self {
        let (address, port) = peer;
        let input = Buffer::new(Rc::clone(&shared.pool));
        let now = Instant::now();
        let client = Client {
            address,
            port,
            transport,
            verified: true,
            reply_octets_max: u16::MAX,
            keepalive: None,
            listener,
            connection: 0,
            certificate: None,
        };
        let opener = shared.opener.as_ref().filter(|_| transport == Transport::Dnscrypt).map(Rc::clone);
        Self {
            shared,
            connection,
            key,
            client,
            opening,
            opener,
            input,
            opened_at: now,
            recognised: None,
            input_since: None,
            active_at: now,
            look: Look::First,
            is_eof: false,
            was_busy: false,
            queries: 0,
        }
    }

    /// Goes on with the conversation; ready when it is over.
    ///
    /// `timer` is set when the conversation waits for the first time.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, timer: Pin<&mut Option<Sleep>>) -> Poll<Ending> {
        self.connection.watch(context);
        for _ in 0..TURNS_MAX {
            self.connection.poll_send(context);
            if let Some(ending) = self.connection.ending() {
                return Poll::Ready(ending);
            }
            match self.turn(context) {
                Ok(Turn::More) => {}
                Ok(Turn::Yield) => {
                    let ending = self.rest().map_or(Poll::Pending, Poll::Ready);
                    if ending.is_pending() {
                        // The task is woken by that as soon as the runtime has looked at everything
                        // else.
                        let _ = pin!(yield_now()).poll(context);
                    }
                    return ending;
                }
                Ok(Turn::Wait) => return self.rest().map_or_else(|| self.wait(context, timer), Poll::Ready),
                Err(ending) => return Poll::Ready(ending),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Does one thing, if there is one to do.
    fn turn(&mut self, context: &mut Context<'_>) -> Result<Turn, Ending> {
        if !self.may_read() {
            return Ok(Turn::Wait);
        }
        let shared = Rc::clone(&self.shared);
        let mut scratch = shared.scratch.borrow_mut();
        if self.opening == Opening::Queries && has_message(self.input.bytes()) {
            self.work_on_input(&mut scratch)?;
            return Ok(Turn::More);
        }
        if self.is_eof {
            return Ok(Turn::Wait);
        }
        let connection = Rc::clone(&self.connection);
        let mut guard = None;
        match connection.stream.watched() {
            Some(watched) => {
                let Poll::Ready(ready) = watched.poll_read_ready(context) else { return Ok(Turn::Wait) };
                guard = Some(ready.map_err(|_| Ending::Error)?);
            }
            None if self.look == Look::Later => {
                if self.may_end_soon() {
                    self.look = Look::Last;
                    return Ok(Turn::Yield);
                }
                return self.watch();
            }
            None => {}
        }
        match connection.stream.socket().read(&mut scratch.input) {
            Ok(0) => self.is_eof = true,
            Ok(octets) => {
                self.look = Look::First;
                if octets < scratch.input.len() {
                    // The queue is empty; what comes next wakes us again.
                    self.look = Look::Later;
                    guard.iter_mut().for_each(AsyncFdReadyGuard::clear_ready);
                }
                self.active_at = Instant::now();
                if connection.secure.is_some() {
                    self.take_in_sealed(&mut scratch, octets)?;
                } else {
                    self.take_in_input(&mut scratch, octets)?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => match &mut guard {
                Some(guard) => guard.clear_ready(),
                None if self.look == Look::First => self.look = Look::Later,
                None => return self.watch(),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Ending::Error),
        }
        Ok(Turn::More)
    }

    /// Lets the runtime watch the socket.
    fn watch(&self) -> Result<Turn, Ending> {
        self.connection.stream.watch().map(|_| Turn::More).map_err(|_| Ending::Error)
    }

    /// Returns whether the client may well have sent its query, or closed the connection, by the
    /// time that others have had their turn. Whoever has sent half a query, waits for a reply or
    /// speaks TLS takes longer, and has deadlines to keep.
    fn may_end_soon(&self) -> bool {
        self.input_since.is_none() && self.connection.waiting() == 0 && self.connection.secure.is_none()
    }

    /// Returns whether the client's next query may be looked at now.
    fn may_read(&self) -> bool {
        !self.is_finishing()
            && self.connection.waiting() < self.shared.plan.waiting_max.max(1)
            && self.connection.output_octets() <= self.shared.plan.output_octets_max
    }

    /// Returns whether no further queries are answered.
    fn is_finishing(&self) -> bool {
        self.connection.is_stopping()
            || self.connection.has_dropped()
            || self.shared.plan.queries_max.is_some_and(|max| self.queries >= max)
            || self.shared.plan.age_max.is_some_and(|max| self.opened_at.elapsed() >= max)
    }

    /// Works on `octets` new octets in the input.
    fn take_in_input(&mut self, scratch: &mut Scratch<Deferred<S>>, octets: usize) -> Result<(), Ending> {
        let input = std::mem::take(&mut scratch.input);
        let done = self.take_in(scratch, input.get(..octets).unwrap_or(&[]));
        scratch.input = input;
        done
    }

    /// Works on `octets` new octets in the input, which are records of TLS.
    fn take_in_sealed(&mut self, scratch: &mut Scratch<Deferred<S>>, octets: usize) -> Result<(), Ending> {
        let mut input = std::mem::take(&mut scratch.input);
        let mut plain = std::mem::take(&mut scratch.plain);
        let came = input.get_mut(..octets).unwrap_or(&mut []);
        let done = self.open_sealed(scratch, came, &mut plain);
        let done = done.and_then(|octets| match plain.get(..octets) {
            Some(text) if !text.is_empty() => self.take_in(scratch, text),
            _ => {
                self.note_input(0);
                Ok(())
            }
        });
        scratch.input = input;
        scratch.plain = plain;
        done
    }

    /// Decrypts what came into `plain`; returns how many octets that are.
    fn open_sealed(
        &mut self,
        scratch: &Scratch<Deferred<S>>,
        mut came: &mut [u8],
        plain: &mut [u8],
    ) -> Result<usize, Ending> {
        let connection = Rc::clone(&self.connection);
        let Some(secure) = &connection.secure else { return Ok(0) };
        let Secure { session, record, .. } = &mut **secure.borrow_mut();
        if self.opening == Opening::Header {
            // A proxy says for whom it speaks before the client does.
            record.append(came).map_err(|_| Ending::SlowWriter)?;
            let octets = match proxy::parse(record.bytes()) {
                Ok((source, after)) => {
                    self.opening = Opening::Queries;
                    let octets = record.len() - after.len();
                    self.speaks_for(source)?;
                    octets
                }
                Err(Unread::Incomplete) => return Ok(0),
                Err(Unread::Malformed) => return Err(Ending::MalformedProxy),
            };
            record.consume(octets);
            let now = self.shared.service.now();
            if !self.shared.handshakes.admit(self.client.address, now.monotonic_ms) {
                return Err(Ending::HandshakesFull);
            }
            came = &mut [];
        }
        let was_shaking_hands = !session.is_established();
        let is_kept = !record.is_empty();
        if is_kept {
            record.append(came).map_err(|_| Ending::SlowWriter)?;
        }
        let mut sealed = scratch.sealed.borrow_mut();
        let records = if is_kept { record.bytes_mut() } else { &mut *came };
        let advance = session.advance(records, plain, &mut sealed);
        if is_kept {
            record.consume(advance.consumed);
        } else if let Some(rest) = came.get(advance.consumed..).filter(|rest| !rest.is_empty()) {
            record.append(rest).map_err(|_| Ending::SlowWriter)?;
        }
        if let Some(outgoing) = sealed.get(..advance.outgoing).filter(|outgoing| !outgoing.is_empty()) {
            connection.send_raw(outgoing);
        }
        if advance.is_broken {
            return Err(Ending::Tls);
        }
        if was_shaking_hands && session.is_established() {
            connection.counters.tls_handshakes.bump();
            if session.is_resumed() {
                connection.counters.tls_resumed.bump();
            }
            if session.is_challenge() {
                return Err(Ending::Finished);
            }
        }
        self.is_eof |= advance.is_closed;
        Ok(advance.plain)
    }

    /// Works on new octets.
    fn take_in(&mut self, scratch: &mut Scratch<Deferred<S>>, new: &[u8]) -> Result<(), Ending> {
        if !self.input.is_empty() {
            // A client that fills all our memory with half queries is a slow writer.
            self.input.append(new).map_err(|_| Ending::SlowWriter)?;
            return self.work_on_input(scratch);
        }
        // The common case: whole queries, answered where they were read.
        let consumed = self.work(scratch, new)?;
        let rest = new.get(consumed..).unwrap_or(&[]);
        if !rest.is_empty() {
            self.input.append(rest).map_err(|_| Ending::SlowWriter)?;
        }
        self.note_input(consumed);
        Ok(())
    }

    /// Works on what was put aside.
    fn work_on_input(&mut self, scratch: &mut Scratch<Deferred<S>>) -> Result<(), Ending> {
        let empty = Buffer::new(Rc::clone(&self.shared.pool));
        let mut input = std::mem::replace(&mut self.input, empty);
        let done = self.work(scratch, input.bytes());
        if let Ok(consumed) = done {
            input.consume(consumed);
        }
        self.input = input;
        self.note_input(done?);
        Ok(())
    }

    /// Notes since when there is part of a query.
    fn note_input(&mut self, consumed: usize) {
        if self.input.is_empty() && !self.connection.has_part_of_record() {
            self.input_since = None;
        } else if consumed > 0 || self.input_since.is_none() {
            self.input_since = Some(self.active_at);
        }
    }

    /// Answers the whole queries in `bytes`, as many as a turn allows; returns how many octets are
    /// done.
    fn work(&mut self, scratch: &mut Scratch<Deferred<S>>, bytes: &[u8]) -> Result<usize, Ending> {
        let mut rest = bytes;
        if self.opening == Opening::Header {
            match proxy::parse(bytes) {
                Ok((source, after)) => {
                    self.opening = Opening::Queries;
                    rest = after;
                    self.speaks_for(source)?;
                }
                Err(Unread::Incomplete) => return Ok(0),
                Err(Unread::Malformed) => return Err(Ending::MalformedProxy),
            }
        }
        self.client.keepalive = Some(self.keepalive());
        let Scratch { output, late, reply_keys, .. } = scratch;
        let mut used = 0;
        let mut replies = 0;
        let mut queries = 0;
        let is_malformed = {
            let now = self.shared.service.now();
            let mut engine = self.shared.service.engine();
            engine.begin(now);
            if self.client.transport == Transport::Tls && self.recognised != Some(engine.generation()) {
                let generation = engine.generation();
                self.client.connection = recognise(&self.connection, &*engine);
                if self.recognised.is_none() {
                    self.client.certificate = certificate(&self.connection);
                }
                self.recognised = Some(generation);
            }
            loop {
                let waiting = self.connection.waiting() as usize + late.len();
                let is_over = queries >= QUERIES_PER_TURN_MAX
                    || late.len() >= LATE_MAX
                    || waiting >= self.shared.plan.waiting_max.max(1) as usize
                    || self.shared.plan.queries_max.is_some_and(|max| self.queries >= max);
                if is_over {
                    break false;
                }
                let Some((query, after)) = split_message(rest) else { break false };
                let Some(room) = output.get_mut(used..).and_then(|room| room.split_at_mut_checked(2)) else {
                    break false;
                };
                let (head, Some(body)) = (room.0, room.1.get_mut(..MESSAGE_OCTETS_MAX)) else { break false };
                if query.len() < QUERY_OCTETS_MIN {
                    break true;
                }
                rest = after;
                queries += 1;
                self.queries += 1;
                let answered = match &self.opener {
                    None => engine.answer(query, &self.client, body),
                    Some(opener) => {
                        let mut opener = opener.borrow_mut();
                        opener.begin();
                        let who = (&self.client, now);
                        match opener.answer(&mut *engine, query, who, (Carrier::Connection, body)) {
                            Sealed::Reply(len) => Answered::Reply(len),
                            Sealed::Nothing => Answered::Nothing,
                            Sealed::Deferred(deferred, reply_key) => {
                                reply_keys.push(reply_key);
                                Answered::Deferred(deferred)
                            }
                            Sealed::Malformed => break true,
                        }
                    }
                };
                match answered {
                    Answered::Reply(len) => {
                        let len = u16::try_from(len).unwrap_or(u16::MAX);
                        head.copy_from_slice(&len.to_be_bytes());
                        used += 2 + usize::from(len);
                        replies += 1;
                    }
                    // Over DNSCrypt, a key that came too soon gets no reply, and others do.
                    Answered::Nothing if self.opener.is_some() => {}
                    Answered::Nothing => break self.reads_no_more(),
                    Answered::Deferred(deferred) => late.push(deferred),
                }
            }
        };
        let counters = &self.connection.counters;
        counters.tcp_queries.add(u64::from(queries));
        counters.tcp_replies.add(replies);
        if let Some(output) = output.get(..used).filter(|output| !output.is_empty()) {
            self.connection.send(output);
        }
        let mut reply_keys = reply_keys.drain(..);
        for (stream, deferred) in (self.queries..).zip(late.drain(..)) {
            let outlet = sealing(self.connection.ticket(), reply_keys.next());
            let address =
                Address { peer: (self.client.address, self.client.port).into(), local: None, stream };
            self.shared.service.take(deferred, ReplyTo { outlet, address });
        }
        if queries > 0 {
            service::finish(&*self.shared.service, queries as usize);
        }
        if is_malformed { Err(Ending::Malformed) } else { Ok(bytes.len() - rest.len()) }
    }

    /// Notes that a query gets no reply; returns that it is not malformed.
    fn reads_no_more(&self) -> bool {
        self.connection.note_dropped();
        false
    }

    /// Takes the client's address from a PROXY header.
    fn speaks_for(&mut self, source: Source) -> Result<(), Ending> {
        let Source::Client { address, port, stream } = source else { return Ok(()) };
        (self.client.address, self.client.port, self.client.verified) = (address, port, stream);
        let client = self.shared.plan.client(address);
        match self.connection.with_place(|place| place.charge(client)) {
            Some(true) => Ok(()),
            Some(false) => Err(Ending::ClientFull),
            None => Err(Ending::Evicted),
        }
    }

    /// Returns the idle timeout to announce.
    fn keepalive(&self) -> Keepalive {
        let timeout = self.shared.plan.idle_timeout(self.shared.places.taken());
        let timeout = u16::try_from(timeout.as_millis() / 100).unwrap_or(u16::MAX);
        Keepalive { timeout, announced_to: self.shared.plan.announced_to }
    }

    /// Returns whether something is still to be sent.
    fn is_busy(&self) -> bool {
        self.connection.waiting() > 0 || self.connection.output_octets() > 0
    }

    /// Notes that there is nothing to do for now; returns why the connection ends if there will be
    /// nothing any more.
    fn rest(&mut self) -> Option<Ending> {
        let is_busy = self.is_busy();
        if !is_busy {
            if self.connection.is_stopping() {
                return Some(Ending::Stopping);
            }
            if self.is_finishing() {
                return Some(Ending::Finished);
            }
            if self.is_eof {
                return Some(Ending::Client);
            }
        }
        if self.was_busy && !is_busy {
            // The reply to the last query counts as activity (RFC 7766 §6.2.3).
            self.active_at = Instant::now();
        }
        self.was_busy = is_busy;
        let mut table = self.shared.table.borrow_mut();
        // A handshake gives way to others as a quiet connection does.
        let has_part = self.connection.has_part_of_record() && !self.connection.is_shaking_hands();
        if is_busy || !self.input.is_empty() || has_part {
            table.busy(self.key);
        } else {
            table.quiet(self.key);
        }
        None
    }

    /// Waits for what may come, but not for ever.
    fn wait(&self, context: &mut Context<'_>, mut timer: Pin<&mut Option<Sleep>>) -> Poll<Ending> {
        let Some((at, ending)) = self.deadline(self.is_busy()) else { return Poll::Pending };
        if at <= Instant::now() {
            return Poll::Ready(ending);
        }
        if timer.is_none() {
            timer.set(Some(sleep_until(at)));
        }
        let Some(mut sleep) = timer.as_pin_mut() else { return Poll::Pending };
        // A deadline that moved further away is not worth setting the timer: it rings once too
        // early instead.
        if at < sleep.deadline() || sleep.is_elapsed() {
            sleep.as_mut().reset(at);
        }
        if sleep.as_mut().poll(context).is_ready() {
            sleep.as_mut().reset(at);
            if sleep.poll(context).is_ready() {
                return Poll::Ready(ending);
            }
        }
        Poll::Pending
    }

    /// Returns until when something has to happen, and why the connection ends if it does not.
    fn deadline(&self, is_busy: bool) -> Option<(Instant, Ending)> {
        let plan = &self.shared.plan;
        if self.connection.is_shaking_hands() {
            return Some((self.opened_at + plan.handshake_timeout, Ending::SlowHandshake));
        }
        let output =
            self.connection.stalled_since().map(|since| (since + plan.write_timeout, Ending::SlowReader));
        let input = match self.input_since {
            // While we do not read, it is not the client who is slow.
            Some(_) if !self.may_read() => None,
            Some(since) => Some((since + plan.query_timeout, Ending::SlowWriter)),
            None if is_busy => None,
            None if self.queries == 0 => Some((self.active_at + plan.first_timeout, Ending::Idle)),
            None => {
                let timeout = plan.idle_timeout(self.shared.places.taken());
                Some((self.active_at + timeout, Ending::Idle))
            }
        };
        // A busy one ends when it has been answered.
        let age = plan.age_max.filter(|_| !is_busy).map(|max| (self.opened_at + max, Ending::Finished));
        [output, input, age].into_iter().flatten().min_by_key(|&(at, _)| at)
    }
}

impl<S: Service> Drop for Conversation<S> {
    fn drop(&mut self) {
        self.connection.close();
        drop(self.shared.table.borrow_mut().remove(self.key));
    }
}

/// Finds out what policy wants to know about a connection.
#[cold]
fn recognise<E: Answer>(connection: &Connection, engine: &E) -> u64 {
    let Some(secure) = &connection.secure else { return 0 };
    let secure = secure.borrow();
    let name = secure.session.server_name().map(str::as_bytes);
    let certificate = secure.session.certificate();
    engine.connection_bits(|text| match text {
        ConnectionText::ServerName => name.into(),
        ConnectionText::Path | ConnectionText::Header(_) => Said::Nothing,
        ConnectionText::CertificateSubject
        | ConnectionText::CertificateNames
        | ConnectionText::CertificateFingerprint => ShownCertificate::say(certificate.as_ref(), text),
    })
}

/// Returns the certificate that the client has shown, if it has.
#[cold]
fn certificate(connection: &Connection) -> Option<Arc<ClientCertificate>> {
    connection.secure.as_ref()?.borrow().session.client_certificate()
}

/// What waits for an upstream.
pub(super) type Deferred<S> = <<S as Service>::Engine as Answer>::Deferred;

/// Splits off the first message, which follows its length (RFC 1035 §4.2.2).
fn split_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&len, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(len)))
}

/// Returns whether `bytes` begin with a whole message.
fn has_message(bytes: &[u8]) -> bool {
    split_message(bytes).is_some()
}
