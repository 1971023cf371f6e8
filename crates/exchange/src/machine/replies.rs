//! What servers say, and whether to believe it.

use engine::Failure;
use queries::packet::{self, Echo};
use queries::questions::QUESTION_QUERIES_MAX;
use queries::transactions::Transaction;
use timers::Moment;
use wire::{Flags, Header, Message, Opcode, Rcode};

use crate::health::Why;
use crate::machine::requests::{ATTEMPTS_MAX, Attempt, AttemptState, Request, Via};
use crate::machine::{Exchange, Heard, How, ServerKey};
use crate::network::{Network, SocketKey};
use crate::server::{CASELESS_FOR, PLAIN_FOR};

/// Wrong replies to one request after which it goes on over TCP: somebody may be guessing.
const WRONG_MAX: u8 = 4;
/// Stray datagrams on one socket, besides late replies, after which its port is given up.
const STRAYS_MAX: u32 = 256;

const NIL: u32 = u32::MAX;

impl<N: Network> Exchange<N> {
    /// Takes one datagram; `is_cut` says that it was longer than our buffer.
    ///
    /// The kernel has checked its source: the socket is connected.
    pub fn datagram<'b>(
        &mut self,
        key: SocketKey,
        bytes: &'b [u8],
        is_cut: bool,
        now: Moment,
    ) -> Option<Heard<'b>> {
        let socket = self.sockets.get(key.0 as usize)?;
        let Some(header) = Header::parse(bytes) else {
            self.counters.mismatched.bump();
            return None;
        };
        match socket.transactions.find(header.id) {
            Some(&transaction) => self.answered(transaction, bytes, &header, is_cut, now),
            None => {
                self.stray(key, bytes, now);
                None
            }
        }
    }

    /// Takes a message that carries the ID of a query of ours.
    pub(super) fn answered<'b>(
        &mut self,
        transaction: Transaction,
        bytes: &'b [u8],
        header: &Header,
        is_cut: bool,
        now: Moment,
    ) -> Option<Heard<'b>> {
        let slot = transaction.request;
        let request = self.requests.get(slot as usize)?;
        let attempt = *request.attempts().get(usize::from(transaction.attempt))?;
        let echo = packet::echo(bytes, header, &request.query, attempt.case);
        self.tap_reply(&attempt, bytes, now);
        if !self.is_believed(slot, &attempt, header, echo, now) {
            return None;
        }

        self.counters.replies.bump();
        let over_stream = matches!(attempt.via, Via::Link(_));
        if !self.close_attempt(transaction, AttemptState::Done) {
            return None;
        }
        if let Some(server) = self.servers.get_mut(attempt.server as usize) {
            server.meters.reply_times.note(now.since(attempt.sent));
            // A query repeated over TCP says nothing about datagrams' round-trip time.
            let usual = over_stream == server.is_connected;
            let change = if usual {
                server.heard(attempt.sent, now)
            } else {
                server.meters.replies.bump();
                server.health.heard(now)
            };
            self.changed(attempt.server, change, Why::Answers);
        }

        let request = self.requests.get(slot as usize)?;
        if request.is_measured_only() || request.is_probe() {
            self.measured(slot);
            return None;
        }
        if over_stream && header.flags.has(Flags::TC) {
            // There is no other way to ask for the rest, and a part passes for the whole.
            self.counters.mismatched.bump();
            if let Some(server) = self.servers.get_mut(attempt.server as usize) {
                server.meters.unusable.bump();
            }
            self.lost(slot, Some(Failure::BadReply(Rcode::SERVFAIL)), false);
            return None;
        }
        if !over_stream && (is_cut || header.flags.has(Flags::TC)) {
            self.counters.truncated.bump();
            self.again(slot, attempt, How { stream: true, ..How::default() }, now);
            return None;
        }
        let Ok(message) = Message::parse(bytes) else {
            // It is our server and our question, but nothing we could pass on.
            self.counters.mismatched.bump();
            self.lost(slot, Some(Failure::BadReply(header.flags.rcode())), false);
            return None;
        };
        if self.wants_plain(slot, &attempt, &message) {
            self.counters.edns_refused.bump();
            self.again(slot, attempt, How { plain: true, stream: over_stream, ..How::default() }, now);
            return None;
        }
        let (tag, request) = self.key_of(slot)?;
        let server = self.servers.get(attempt.server as usize)?;
        let address = server.remote.address;
        self.answered_alone(slot);
        Some(Heard {
            tag,
            request,
            server: ServerKey(attempt.server),
            address,
            took: now.since(attempt.sent),
            had_edns: attempt.has_edns,
            message,
        })
    }

    /// Returns whether a message is the reply to an attempt of ours; what is not counts as a guess
    /// at it.
    fn is_believed(
        &mut self,
        slot: u32,
        attempt: &Attempt,
        header: &Header,
        echo: Echo,
        now: Moment,
    ) -> bool {
        let is_reply = header.flags.has(Flags::QR) && header.flags.opcode() == Opcode::QUERY;
        let is_error = !matches!(header.flags.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN);
        let is_ours = match echo {
            Echo::Same => is_reply,
            // A server that could not read our query cannot repeat it.
            Echo::Absent => is_reply && is_error,
            Echo::OtherCase if matches!(attempt.via, Via::Link(_)) => {
                // Nobody guesses on a connection: this server does not keep letter case.
                if let Some(server) = self.servers.get_mut(attempt.server as usize) {
                    server.caseless_until = now + CASELESS_FOR;
                }
                is_reply
            }
            Echo::OtherCase => {
                // Either a guess at our query or a server that folds names: the same over TCP tells
                // which. One datagram, which anybody may have sent, is no proof.
                self.counters.mismatched.bump();
                self.distrust(slot, now);
                return false;
            }
            Echo::Other => false,
        };
        if !is_ours {
            self.counters.mismatched.bump();
            self.wrong(slot, now);
        }
        is_ours
    }

    /// Returns whether a server is to be asked once more without EDNS: it dislikes that, and was
    /// not asked so yet.
    fn wants_plain(&self, slot: u32, attempt: &Attempt, message: &Message<'_>) -> bool {
        let Some(request) = self.requests.get(slot as usize) else { return false };
        let was_plain = || {
            request.attempts().iter().any(|other| {
                other.server == attempt.server && !other.has_edns && other.state != AttemptState::Failed
            })
        };
        attempt.has_edns && packet::dislikes_edns(message) && !was_plain()
    }

    /// Notes that a reply is of use: a server that answers without EDNS is asked so for a while.
    pub fn was_usable(&mut self, heard: &Heard<'_>, now: Moment) {
        if !heard.had_edns
            && let Some(server) = self.servers.get_mut(heard.server.0 as usize)
            && now >= server.plain_until
        {
            server.plain_until = now + PLAIN_FOR;
        }
    }

    /// Takes a datagram with an ID that no query on its socket has: late, or forged.
    fn stray(&mut self, key: SocketKey, bytes: &[u8], now: Moment) {
        self.counters.mismatched.bump();
        let Some(socket) = self.sockets.get_mut(key.0 as usize) else { return };
        socket.strays += 1;
        if socket.strays > STRAYS_MAX.saturating_add(socket.unanswered) {
            return self.abandon_socket(key, now);
        }
        // Whose question is it? Replies to requests that ended match nobody and do no harm.
        let Some((name, rtype)) = packet::claimed(bytes) else { return };
        let question = self.question_key.hash(name, u64::from(rtype.0)) as u32;
        if self.questions.outstanding(question) == 0 {
            return;
        }
        // A guess is aimed at all that ask this.
        let mut aimed_at = [NIL; QUESTION_QUERIES_MAX as usize];
        let asking = socket.transactions.iter().filter(|transaction| transaction.question == question);
        for (room, transaction) in aimed_at.iter_mut().zip(asking) {
            *room = transaction.request;
        }
        for request in aimed_at.into_iter().take_while(|&request| request != NIL) {
            self.wrong(request, now);
        }
    }

    /// Counts a wrong reply to a request; too many of them look like guessing.
    fn wrong(&mut self, slot: u32, now: Moment) {
        let Some(request) = self.requests.get_mut(slot as usize) else { return };
        request.wrong = request.wrong.saturating_add(1);
        if request.wrong >= WRONG_MAX {
            self.distrust(slot, now);
        }
    }

    /// Goes on with a request over TCP, where guessing is hopeless; datagrams for it are no longer
    /// taken.
    pub(super) fn distrust(&mut self, slot: u32, now: Moment) {
        let Some(request) = self.requests.get_mut(slot as usize) else { return };
        if std::mem::replace(&mut request.is_stream_only, true) {
            return;
        }
        self.counters.spoofs_suspected.bump();
        let mut last = None;
        // Ends: one round per attempt.
        for i in 0..ATTEMPTS_MAX {
            let Some(request) = self.requests.get_mut(slot as usize) else { return };
            let Some(attempt) = request.attempts_mut().get_mut(i) else { break };
            if attempt.is_open() && matches!(attempt.via, Via::Socket(_)) {
                attempt.state = AttemptState::Done;
                let attempt = *attempt;
                last = Some(attempt);
                self.end_transaction(&attempt, false);
            }
        }
        let is_over = self.requests.get(slot as usize).is_none_or(Request::is_measured_only);
        match last.filter(|_| !is_over) {
            Some(last) => self.again(slot, last, How { stream: true, ..How::default() }, now),
            None => self.lost(slot, None, false),
        }
    }
}
