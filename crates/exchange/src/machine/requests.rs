//! One question and the times that it was sent.

use engine::{Failure, OutQuery};
use queries::packet::{self, Asked, CaseSeed, QUERY_OCTETS_MAX, QueryFormat};
use queries::questions::QUESTION_QUERIES_MAX;
use queries::transactions::Transaction;
use rand::Rng as _;
use timers::{Moment, Span, TimerKey};
use wire::{Class, NameBuf, Rtype};

use crate::health::Why;
use crate::machine::links::link_patience;
use crate::machine::{Alternatives, Event, Exchange, How, RequestKey, SendError, ServerKey, Terms, Token};
use crate::network::{LinkKey, Network, Remote, SocketKey};

/// Doublings of the time that a server has: from any usual time to a minute.
const DOUBLINGS_MAX: u8 = 12;

/// Sends one request may cause, so that a lossy or lying network costs a bounded number of packets.
pub const ATTEMPTS_MAX: usize = 8;
/// Time for the answer to a health check.
const PROBE_TIMEOUT: Span = Span::from_ms(900);

const NIL: u32 = u32::MAX;

/// One question for one server.
#[derive(Clone)]
pub struct Ask {
    /// Where the server is, and how it is asked.
    pub remote: Remote,
    /// What it is asked.
    pub query: OutQuery,
    /// How the message looks.
    pub terms: Terms,
    /// Whom the request belongs to.
    pub tag: u32,
}

/// One question under way.
pub(super) struct Request {
    serial: u32,
    tag: u32,
    pub(super) query: OutQuery,
    terms: Terms,
    pub(super) question: u32,
    attempts: [Attempt; ATTEMPTS_MAX],
    attempt_count: u8,
    /// Wrong replies to it.
    pub(super) wrong: u8,
    /// Whether only TCP is to be trusted.
    pub(super) is_stream_only: bool,
    /// Whether a dying connection has cost it a second attempt already.
    pub(super) is_relinked: bool,
    purpose: Purpose,
    /// The end of a request that nobody waits for.
    timer: TimerKey,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// An answer.
    Answer,
    /// An answer from one server: the request is over when that has failed.
    OneServer,
    /// To see whether a server is back: any reply will do.
    Probe,
    /// To measure the servers that have not answered yet; somebody else's answer was good enough.
    Timing,
}

#[derive(Clone, Copy)]
pub(super) struct Attempt {
    pub(super) server: u32,
    pub(super) via: Via,
    pub(super) id: u16,
    pub(super) state: AttemptState,
    pub(super) has_edns: bool,
    pub(super) case: Option<CaseSeed>,
    pub(super) sent: Moment,
    /// When it counts as unanswered.
    pub(super) due: Moment,
    /// Who else could be asked when it left.
    pub(super) alternatives: Alternatives,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    Socket(SocketKey),
    Link(LinkKey),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptState {
    /// On the wire.
    Waiting,
    /// Still on the wire, but given up on.
    Overdue,
    /// Answered, and the answer did not end the request; or taken back.
    Done,
    /// The network refused.
    Failed,
}

impl Attempt {
    const UNUSED: Self = Self {
        server: NIL,
        via: Via::Socket(SocketKey(NIL)),
        id: 0,
        state: AttemptState::Done,
        has_edns: false,
        case: None,
        sent: Moment(0),
        due: Moment(0),
        alternatives: Alternatives::NONE,
    };

    /// Returns whether a reply to it would be taken.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, AttemptState::Waiting | AttemptState::Overdue)
    }
}

impl Request {
    pub(super) fn attempts(&self) -> &[Attempt] {
        self.attempts.get(..usize::from(self.attempt_count)).unwrap_or(&[])
    }

    pub(super) fn attempts_mut(&mut self) -> &mut [Attempt] {
        self.attempts.get_mut(..usize::from(self.attempt_count)).unwrap_or(&mut [])
    }

    fn any(&self, state: AttemptState) -> bool {
        self.attempts().iter().any(|attempt| attempt.state == state)
    }

    fn waiting(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts().iter().filter(|attempt| attempt.state == AttemptState::Waiting)
    }

    /// Returns whether nobody waits for an answer to it any more.
    pub(super) fn is_measured_only(&self) -> bool {
        self.purpose == Purpose::Timing
    }

    /// Returns whether it is a health check.
    pub(super) fn is_probe(&self) -> bool {
        self.purpose == Purpose::Probe
    }
}

/// What the owner of a request may know about how it stands.
impl<N: Network> Exchange<N> {
    fn request(&self, key: RequestKey) -> Option<&Request> {
        self.requests.get(key.slot as usize).filter(|request| request.serial == key.serial)
    }

    /// Returns what a request asks.
    pub fn query(&self, key: RequestKey) -> Option<&OutQuery> {
        self.request(key).map(|request| &request.query)
    }

    /// Returns whether an answer may come in time.
    pub fn is_waiting(&self, key: RequestKey) -> bool {
        self.request(key).is_some_and(|request| request.any(AttemptState::Waiting))
    }

    /// Returns whether an answer may come late.
    pub fn is_overdue(&self, key: RequestKey) -> bool {
        self.request(key).is_some_and(|request| request.any(AttemptState::Overdue))
    }

    /// Returns when the next attempt that still waits counts as unanswered.
    pub fn next_overdue(&self, key: RequestKey) -> Option<Moment> {
        self.request(key)?.waiting().map(|attempt| attempt.due).min()
    }

    /// Returns the servers that were tried, in this order.
    pub fn tried(&self, key: RequestKey) -> [Option<ServerKey>; ATTEMPTS_MAX] {
        let attempts = self.request(key).map_or(&[][..], Request::attempts);
        std::array::from_fn(|i| attempts.get(i).map(|attempt| ServerKey(attempt.server)))
    }

    /// Returns whether a server may be asked again for want of an answer: over TCP the kernel does
    /// that.
    pub fn may_be_lost(&self, key: RequestKey, server: ServerKey) -> bool {
        let attempts = self.request(key).map_or(&[][..], Request::attempts);
        let last = attempts.iter().rev().find(|attempt| attempt.server == server.0);
        last.is_none_or(|last| last.is_open() && matches!(last.via, Via::Socket(_)))
    }

    pub(super) fn key_of(&self, slot: u32) -> Option<(u32, RequestKey)> {
        let request = self.requests.get(slot as usize)?;
        Some((request.tag, RequestKey { slot, serial: request.serial }))
    }
}

/// The life of a request.
impl<N: Network> Exchange<N> {
    /// Takes a question, which [`Exchange::send`] sends. Events about it carry `tag`.
    pub fn open(&mut self, query: OutQuery, terms: Terms, tag: u32) -> RequestKey {
        let question = self.question_key.hash(query.qname.as_name(), u64::from(query.qtype.0)) as u32;
        self.request_serial = self.request_serial.wrapping_add(1);
        let serial = self.request_serial;
        let slot = self.requests.insert(Request {
            serial,
            tag,
            query,
            terms,
            question,
            attempts: [Attempt::UNUSED; ATTEMPTS_MAX],
            attempt_count: 0,
            wrong: 0,
            is_stream_only: false,
            is_relinked: false,
            purpose: Purpose::Answer,
            timer: TimerKey::NONE,
        }) as u32;
        RequestKey { slot, serial }
    }

    /// Asks one server once; over TCP or without EDNS, too, if its reply calls for it.
    ///
    /// The reply comes with the call that takes its message, and ends the request; anything else is
    /// [`Event::Unanswered`], after the time that the server is known to need at most. Nobody needs
    /// to hold the server; at most [`SERVERS_MAX`](crate::SERVERS_MAX) of those are remembered.
    pub fn ask(&mut self, ask: Ask, now: Moment) -> Result<RequestKey, SendError> {
        let server = self.remember(ask.remote)?;
        let key = self.open(ask.query, ask.terms, ask.tag);
        let sent = self.send_to(key.slot, server.0, How::default(), Alternatives::NONE, now);
        match (sent, self.requests.get_mut(key.slot as usize)) {
            (Ok(due), Some(request)) => {
                request.purpose = Purpose::OneServer;
                request.timer = self.wheel.set(due, Token::Request(key.slot));
                Ok(key)
            }
            (sent, _) => {
                self.remove(key.slot);
                Err(sent.err().unwrap_or(SendError::Attempts))
            }
        }
    }

    /// Sends a request to one server; returns when that counts as unanswered. On failure the
    /// attempt is noted as such.
    pub fn send(
        &mut self,
        key: RequestKey,
        to: ServerKey,
        how: How,
        alternatives: Alternatives,
        now: Moment,
    ) -> Result<Moment, SendError> {
        if self.request(key).is_none() {
            return Err(SendError::Attempts);
        }
        self.send_to(key.slot, to.0, how, alternatives, now)
    }

    pub(super) fn send_to(
        &mut self,
        slot: u32,
        to: u32,
        how: How,
        alternatives: Alternatives,
        now: Moment,
    ) -> Result<Moment, SendError> {
        if self.requests.get(slot as usize).is_some_and(|request| request.attempt_count > 1) {
            self.supersede(slot, to);
        }
        let Some(request) = self.requests.get(slot as usize) else { return Err(SendError::Attempts) };
        let Some(server) = self.servers.get(to as usize) else { return Err(SendError::Attempts) };
        let attempt = request.attempt_count;
        if usize::from(attempt) >= ATTEMPTS_MAX {
            return Err(SendError::Attempts);
        }
        let question = request.question;
        // Somebody may be after this very question: where there is nothing to guess, more may ask
        // it.
        let over_stream = how.stream
            || request.is_stream_only
            || server.is_connected
            || self.questions.outstanding(question) >= QUESTION_QUERIES_MAX;
        let Terms { recursion_desired, udp_size, case_randomisation } = request.terms;
        let format = QueryFormat {
            recursion_desired: !request.query.no_recursion && recursion_desired,
            edns: (!how.plain && now >= server.plain_until).then_some(udp_size),
            // To hide its length is of use only where its content is hidden.
            pads: server.is_secured,
            // Over TCP there is nothing to guess, but it shows whether the server keeps letter
            // case.
            case: (case_randomisation && !server.is_secured && now >= server.caseless_until)
                .then(|| CaseSeed(self.rng.next_u32())),
        };
        let Alternatives { has_others, resends, unknown, longest, .. } = alternatives;
        let first = server.rtt.first_wait(unknown, longest);
        // Another one need not suffer for the silence of this one.
        let silences = if has_others { 0 } else { server.rtt.silences() };
        // A connection has time of its own to be made, which nothing doubles.
        let (base, doublings) = match over_stream {
            true => (Span(first.0 << silences).min(longest), resends),
            false => (first, resends.max(silences)),
        };
        let found = match over_stream {
            true => self
                .link_for(to, how.force, now)
                .map(|(link, is_open)| (Via::Link(link), link_patience(base, is_open, alternatives))),
            false => self.socket_for(to, now).map(|socket| (Via::Socket(socket), base)),
        };
        let (via, patience) = match found {
            Ok(found) => found,
            Err(error) => return Err(self.note_failed_attempt(slot, to, error, now)),
        };
        let transactions = match via {
            Via::Socket(socket) => {
                self.sockets.get_mut(socket.0 as usize).map(|socket| &mut socket.transactions)
            }
            Via::Link(link) => self.links.get_mut(link.0 as usize).map(|link| &mut link.transactions),
        };
        // The request is registered before the packet leaves: no reply can be too early.
        let id = transactions.and_then(|table| table.begin(&mut self.rng, slot, attempt, question));
        let (Some(id), Some(request)) = (id, self.requests.get_mut(slot as usize)) else {
            return Err(self.note_failed_attempt(slot, to, SendError::Shortage, now));
        };
        let longest = Span(longest.0.max(patience.0));
        let due = now + Span(patience.0 << doublings.min(DOUBLINGS_MAX)).min(longest);
        if let Some(room) = request.attempts.get_mut(usize::from(attempt)) {
            *room = Attempt {
                server: to,
                via,
                id,
                state: AttemptState::Waiting,
                has_edns: format.edns.is_some(),
                case: format.case,
                sent: now,
                due,
                alternatives,
            };
        }
        request.attempt_count += 1;
        let mut packet = [0; QUERY_OCTETS_MAX];
        let server = self.servers.get(to as usize);
        let of_server = server.map_or(&[][..], |server| {
            let options = &server.remote.way().bind.outgoing.options;
            options.of_server(server.remote.address.ip())
        });
        let asked = Asked { of_server, ..Asked::from(&request.query) };
        let len = packet::write(&mut packet, id, asked, format);
        let packet = packet.get(..len).unwrap_or(&[]);
        self.transmit(via, question, packet);
        self.tap_query((to, via), packet, now);
        if let Some(server) = self.servers.get_mut(to as usize) {
            server.meters.outstanding.bump();
            server.meters.queries.bump();
        }
        Ok(due)
    }

    /// Hands a query to the network.
    fn transmit(&mut self, via: Via, question: u32, packet: &[u8]) {
        match via {
            Via::Socket(socket) => {
                if let Some(socket) = self.sockets.get_mut(socket.0 as usize) {
                    socket.sent += 1;
                }
                self.questions.enter(question);
                self.network.queue(socket, packet);
                self.counters.sent_udp.bump();
            }
            Via::Link(link) => {
                self.network.write(link, packet);
                self.counters.sent_tcp.bump();
            }
        }
    }

    /// Asks the same server once more in another way: older deadlines are void.
    pub(super) fn again(&mut self, slot: u32, from: Attempt, how: How, now: Moment) {
        match self.send_to(slot, from.server, how, from.alternatives, now) {
            Ok(due) => self.resent(slot, due, true),
            Err(error) => self.lost(slot, error.failure(), true),
        }
    }

    /// Tells the owner of a request that it was sent once more.
    pub(super) fn resent(&mut self, slot: u32, due: Moment, is_anew: bool) {
        let Some((tag, key)) = self.key_of(slot) else { return };
        let Some(request) = self.requests.get_mut(slot as usize) else { return };
        match request.purpose {
            Purpose::Answer => self.events.push_back(Event::Resent { tag, request: key, due, is_anew }),
            Purpose::OneServer => {
                self.wheel.cancel(request.timer);
                request.timer = self.wheel.set(due, Token::Request(slot));
            }
            Purpose::Probe | Purpose::Timing => (),
        }
    }

    /// Tells the owner of a request that a deadline has moved.
    pub(super) fn later(&mut self, slot: u32) {
        let Some((tag, key)) = self.key_of(slot) else { return };
        let Some(due) = self.next_overdue(key) else { return };
        let Some(request) = self.requests.get_mut(slot as usize) else { return };
        match request.purpose {
            Purpose::Answer => self.events.push_back(Event::Later { tag, request: key, due }),
            Purpose::OneServer => {
                self.wheel.cancel(request.timer);
                request.timer = self.wheel.set(due, Token::Request(slot));
            }
            Purpose::Probe | Purpose::Timing => (),
        }
    }

    /// Tells the owner of a request that it has one hope less; one that nobody waits for ends with
    /// the last hope.
    pub(super) fn lost(&mut self, slot: u32, failure: Option<Failure>, is_anew: bool) {
        let Some((tag, key)) = self.key_of(slot) else { return };
        let Some(request) = self.requests.get(slot as usize) else { return };
        match request.purpose {
            Purpose::Answer => self.events.push_back(Event::Lost { tag, request: key, failure, is_anew }),
            _ if request.any(AttemptState::Waiting) => (),
            Purpose::OneServer => {
                self.remove(slot);
                let failure = failure.unwrap_or(Failure::Timeout);
                self.events.push_back(Event::Unanswered { tag, request: key, failure });
            }
            Purpose::Probe | Purpose::Timing => self.remove(slot),
        }
    }

    /// Ends the part of a reply in a request that nobody waits for.
    pub(super) fn measured(&mut self, slot: u32) {
        if self.requests.get(slot as usize).is_some_and(|request| !request.any(AttemptState::Waiting)) {
            self.remove(slot);
        }
    }

    /// Gives up the older attempts at a server when it is asked once more. The last one before
    /// stays, for its reply may only be late; so a name whose servers are silent holds two IDs, not
    /// one for each time that it was asked.
    fn supersede(&mut self, slot: u32, to: u32) {
        let Some(request) = self.requests.get_mut(slot as usize) else { return };
        let mut older = [None; ATTEMPTS_MAX];
        let open = request.attempts_mut().iter_mut().rev().filter(|attempt| {
            attempt.server == to && attempt.is_open() && matches!(attempt.via, Via::Socket(_))
        });
        for (attempt, room) in open.skip(1).zip(&mut older) {
            attempt.state = AttemptState::Done;
            *room = Some(*attempt);
        }
        for attempt in older.into_iter().flatten() {
            self.end_transaction(&attempt, false);
        }
    }

    /// Notes that `to` could not be asked, so that it is not tried again.
    #[cold]
    fn note_failed_attempt(&mut self, slot: u32, to: u32, error: SendError, now: Moment) -> SendError {
        match error {
            SendError::Network => self.counters.network_errors.bump(),
            SendError::Shortage => self.counters.shortages.bump(),
            SendError::Attempts => (),
        }
        if let Some(request) = self.requests.get_mut(slot as usize) {
            let count = usize::from(request.attempt_count);
            if let Some(room) = request.attempts.get_mut(count) {
                *room = Attempt { server: to, state: AttemptState::Failed, sent: now, ..Attempt::UNUSED };
                request.attempt_count += 1;
            }
        }
        error
    }

    /// Counts the attempts of a request that are due as unanswered; all of them, once `deadline`
    /// has come.
    pub fn expire(&mut self, key: RequestKey, deadline: Moment, now: Moment) {
        if self.request(key).is_some() {
            self.expire_in(key.slot, deadline, now);
        }
    }

    fn expire_in(&mut self, slot: u32, deadline: Moment, now: Moment) {
        // Ends: one round per attempt.
        for i in 0..ATTEMPTS_MAX {
            let Some(request) = self.requests.get_mut(slot as usize) else { return };
            let Some(attempt) = request.attempts_mut().get_mut(i) else { return };
            if attempt.state != AttemptState::Waiting || now < attempt.due.min(deadline) {
                continue;
            }
            attempt.state = AttemptState::Overdue;
            let (to, sent) = (attempt.server, attempt.sent);
            if let Some(server) = self.servers.get_mut(to as usize) {
                let change = server.silent(sent, now);
                self.changed(to, change, Why::Silence);
            }
        }
    }

    /// Ends a request whose answer has come, but keeps it while servers that were asked may still
    /// show how fast they are.
    pub fn linger(&mut self, key: RequestKey) {
        let has_room = self.requests.len() < 2 * self.limits.fetching_max as usize;
        let Some(request) = self.requests.get_mut(key.slot as usize) else { return };
        if request.serial != key.serial {
            return;
        }
        match request.waiting().map(|attempt| attempt.due).max() {
            Some(last) if has_room && !self.is_stopping => {
                request.purpose = Purpose::Timing;
                request.timer = self.wheel.set(last, Token::Request(key.slot));
            }
            _ => self.remove(key.slot),
        }
    }

    /// Forgets a request and everything of it that is still on the wire.
    pub fn close(&mut self, key: RequestKey) {
        if self.request(key).is_some() {
            self.remove(key.slot);
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let Some(request) = self.requests.try_remove(slot as usize) else { return };
        self.wheel.cancel(request.timer);
        for attempt in request.attempts().iter().filter(|attempt| attempt.is_open()) {
            self.end_transaction(attempt, false);
        }
    }

    /// Ends a request with the reply that has come, if nothing more than one is wanted.
    pub(super) fn answered_alone(&mut self, slot: u32) {
        if self.requests.get(slot as usize).is_some_and(|request| request.purpose == Purpose::OneServer) {
            self.remove(slot);
        }
    }

    /// Ends a request that has no owner to time it.
    pub(super) fn request_due(&mut self, slot: u32, now: Moment) {
        if let Some(request) = self.requests.get_mut(slot as usize) {
            request.timer = TimerKey::NONE;
            let is_waited_for = request.purpose == Purpose::OneServer;
            self.expire_in(slot, now, now);
            let key = self.key_of(slot).filter(|_| is_waited_for);
            self.remove(slot);
            if let Some((tag, request)) = key {
                self.events.push_back(Event::Unanswered { tag, request, failure: Failure::Timeout });
            }
        }
    }

    /// Asks a server whether it is there; its state shows the reply.
    pub fn probe(&mut self, server: ServerKey, now: Moment) {
        // Through a new socket: the old ones may be bound to an address or a route that is gone.
        self.retire_sockets(server.0);
        let terms = Terms { recursion_desired: true, udp_size: 1232, case_randomisation: false };
        let key = self.open(question(NameBuf::root(), Rtype::NS), terms, NIL);
        if let Some(request) = self.requests.get_mut(key.slot as usize) {
            request.purpose = Purpose::Probe;
            request.timer = self.wheel.set(now + PROBE_TIMEOUT, Token::Request(key.slot));
        }
        let how = How { force: true, ..How::default() };
        if self.send_to(key.slot, server.0, how, Alternatives::NONE, now).is_err() {
            self.remove(key.slot);
        }
    }

    /// Takes one attempt off the wire with the given end; says whether it was on it.
    pub(super) fn close_attempt(&mut self, transaction: Transaction, end: AttemptState) -> bool {
        let Some(request) = self.requests.get_mut(transaction.request as usize) else { return false };
        let Some(attempt) = request.attempts_mut().get_mut(usize::from(transaction.attempt)) else {
            return false;
        };
        if !attempt.is_open() || attempt.id != transaction.id {
            return false;
        }
        attempt.state = end;
        let attempt = *attempt;
        self.end_transaction(&attempt, end == AttemptState::Done);
        true
    }

    /// Takes an attempt off the wire, answered or not.
    pub(super) fn end_transaction(&mut self, attempt: &Attempt, is_answered: bool) {
        match attempt.via {
            Via::Socket(key) => {
                if let Some(socket) = self.sockets.get_mut(key.0 as usize) {
                    if let Some(transaction) = socket.transactions.end(attempt.id) {
                        self.questions.leave(transaction.question);
                    }
                    socket.unanswered += u32::from(!is_answered);
                    if socket.is_retiring && socket.transactions.is_empty() {
                        self.closing.push(key);
                    }
                }
            }
            Via::Link(key) => {
                if let Some(link) = self.links.get_mut(key.0 as usize) {
                    link.transactions.end(attempt.id);
                }
            }
        }
        if let Some(server) = self.servers.get_mut(attempt.server as usize) {
            server.meters.outstanding.take_back();
            self.has_garbage |= server.users == 0;
        }
    }
}

/// Returns a question of our own: a name and a type, everything else as usual.
pub fn question(qname: NameBuf, qtype: Rtype) -> OutQuery {
    OutQuery {
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
    }
}
