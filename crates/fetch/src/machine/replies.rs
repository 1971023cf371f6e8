//! What upstreams say, and whether to believe it.

use engine::Failure;
use wire::{Flags, Header, Message, Opcode, Rcode, Rtype, Section};

use crate::health::Why;
use crate::machine::{
    AttemptState, Ending, Finished, Held, How, Machine, NIL, USABLE, Via, WRONG_MAX, Waiter, rank,
};
use crate::network::{Network, SocketKey};
use crate::packet::{self, Echo};
use crate::plan::Pick;
use crate::questions::QUESTION_QUERIES_MAX;
use crate::time::{Moment, Span};
use crate::transactions::Transaction;
use crate::upstream::{CASELESS_FOR, PLAIN_FOR};

/// Stray datagrams on one socket, besides late replies, after which its port is given up.
const STRAYS_MAX: u32 = 256;

/// Returns whether an answer has records of the type asked for.
fn is_positive(message: &Message<'_>, qtype: Rtype) -> bool {
    message.rcode() == Rcode::NOERROR && wanted(message, qtype).next().is_some()
}

/// Walks the data of the records asked for.
fn wanted<'m>(message: &Message<'m>, qtype: Rtype) -> impl Iterator<Item = &'m [u8]> {
    let answers = message.records().take_while(|record| record.section == Section::Answer);
    answers.filter(move |record| record.rtype == qtype).map(|record| record.rdata)
}

/// Returns whether two answers say the same: that there is nothing, or that there is a certain record.
fn agree(vote: &[u8], message: &Message<'_>, qtype: Rtype) -> bool {
    let Ok(vote) = Message::parse(vote) else { return false };
    match (is_positive(&vote, qtype), is_positive(message, qtype)) {
        (true, true) => wanted(&vote, qtype).any(|data| wanted(message, qtype).any(|other| data == other)),
        (false, false) => vote.rcode() == message.rcode(),
        _ => false,
    }
}

impl<N: Network, W: Waiter> Machine<N, W> {
    /// Takes one datagram; `is_cut` says that it was longer than our buffer.
    ///
    /// The kernel has checked its source: the socket is connected.
    pub(crate) fn datagram<'b>(
        &mut self,
        key: SocketKey,
        bytes: &'b [u8],
        is_cut: bool,
        now: Moment,
    ) -> Option<Finished<'b>> {
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
    ) -> Option<Finished<'b>> {
        let key = transaction.fetch;
        let fetch = self.fetches.get_mut(key as usize)?;
        let attempt = *fetch.attempts().get(usize::from(transaction.attempt))?;
        let is_reply = header.flags.has(Flags::QR) && header.flags.opcode() == Opcode::QUERY;
        let echo = packet::echo(bytes, header, &fetch.query, attempt.case);
        let is_error = !matches!(header.flags.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN);
        let is_ours = match echo {
            Echo::Same => is_reply,
            // A server that could not read our query cannot repeat it.
            Echo::Absent => is_reply && is_error,
            Echo::OtherCase if matches!(attempt.via, Via::Link(_)) => {
                // Nobody guesses on a connection: this server does not keep letter case.
                if let Some(upstream) = self.upstreams.get_mut(attempt.upstream as usize) {
                    upstream.caseless_until = now + CASELESS_FOR;
                }
                is_reply
            }
            Echo::OtherCase => {
                // Either a guess at our query or a server that folds names: the same over TCP tells which. One datagram,
                // which anybody may have sent, is no proof.
                self.counters.mismatched.bump();
                self.distrust(key, now);
                return None;
            }
            Echo::Other => false,
        };
        if !is_ours {
            self.counters.mismatched.bump();
            self.wrong(key, now);
            return None;
        }

        self.counters.replies.bump();
        let over_stream = matches!(attempt.via, Via::Link(_));
        if !self.close_attempt(transaction, AttemptState::Done) {
            return None;
        }
        if let Some(upstream) = self.upstreams.get_mut(attempt.upstream as usize) {
            // A query repeated over TCP says nothing about datagrams' round-trip time.
            let usual = over_stream == upstream.is_connected;
            let change = if usual {
                upstream.heard(attempt.sent, now)
            } else {
                upstream.meters.replies.bump();
                upstream.health.heard(now)
            };
            self.changed(attempt.upstream, change, Why::Answers, now);
        }

        let fetch = self.fetches.get(key as usize)?;
        if fetch.is_lingering || matches!(fetch.purpose, super::Purpose::Probe { .. }) {
            if !fetch.any(AttemptState::Waiting) {
                self.remove(key);
            }
            return None;
        }
        if over_stream && header.flags.has(Flags::TC) {
            // There is no other way to ask for the rest, and a part passes for the whole.
            self.counters.mismatched.bump();
            if let Some(upstream) = self.upstreams.get_mut(attempt.upstream as usize) {
                upstream.meters.unusable.bump();
            }
            if let Some(fetch) = self.fetches.get_mut(key as usize) {
                fetch.last_failure = Failure::BadReply(Rcode::SERVFAIL);
            }
            self.advance(key, now);
            return None;
        }
        if !over_stream && (is_cut || header.flags.has(Flags::TC)) {
            self.counters.truncated.bump();
            self.again(key, attempt.upstream, How { stream: true, ..How::default() }, now);
            return None;
        }
        let Ok(message) = Message::parse(bytes) else {
            // It is our server and our question, but nothing we could pass on.
            self.counters.mismatched.bump();
            if let Some(fetch) = self.fetches.get_mut(key as usize) {
                fetch.last_failure = Failure::BadReply(header.flags.rcode());
            }
            self.advance(key, now);
            return None;
        };
        let finished = self.reply(key, attempt.upstream, (attempt.has_edns, over_stream), message, now)?;
        let from = self.upstreams.get(attempt.upstream as usize).map(|upstream| upstream.remote.address);
        Some(Finished { from: from.map(|from| (from, now.since(attempt.sent))), ..finished })
    }

    /// Judges a reply that is ours and whole.
    fn reply<'b>(
        &mut self,
        key: u32,
        from: u32,
        (had_edns, over_stream): (bool, bool),
        message: Message<'b>,
        now: Moment,
    ) -> Option<Finished<'b>> {
        let rcode = message.rcode();
        let fetch = self.fetches.get_mut(key as usize)?;
        if had_edns && packet::dislikes_edns(&message) {
            let was_plain = fetch.attempts().iter().any(|other| {
                other.upstream == from && !other.has_edns && other.state != AttemptState::Failed
            });
            if !was_plain {
                self.counters.edns_refused.bump();
                self.again(key, from, How { plain: true, stream: over_stream, ..How::default() }, now);
                return None;
            }
        }
        let pool = fetch.pool;
        if !self.fallback_on(pool).has(rcode) {
            if !had_edns
                && let Some(upstream) = self.upstreams.get_mut(from as usize)
                && now >= upstream.plain_until
            {
                // Without EDNS it works: do without for a while.
                upstream.plain_until = now + PLAIN_FOR;
            }
            return match self.pools.get(pool as usize).map(|pool| pool.plan.pick) {
                Some(Pick::PreferPositive { wait_ms, .. }) => {
                    self.prefer_positive(key, message, wait_ms, now)
                }
                Some(Pick::Consensus { agreeing, .. }) => self.count_votes(key, message, agreeing, now),
                _ => self.finish(key, Ending::Reply(message), now),
            };
        }
        if let Some(upstream) = self.upstreams.get_mut(from as usize) {
            upstream.meters.unusable.bump();
        }
        if let Some(fetch) = self.fetches.get_mut(key as usize) {
            fetch.last_failure = Failure::BadReply(rcode);
            let better = fetch.held.as_ref().is_none_or(|held| rank(rcode) > held.rank);
            if better && message.question.is_some() {
                fetch.held = Some(Held { rank: rank(rcode), bytes: message.as_bytes().into() });
            }
        }
        self.advance(key, now);
        None
    }

    /// Takes an answer if it has what was asked for; another waits for such a one.
    fn prefer_positive<'b>(
        &mut self,
        key: u32,
        message: Message<'b>,
        wait_ms: u32,
        now: Moment,
    ) -> Option<Finished<'b>> {
        let fetch = self.fetches.get_mut(key as usize)?;
        if is_positive(&message, fetch.query.qtype) || !fetch.any(AttemptState::Waiting) {
            return self.finish(key, Ending::Reply(message), now);
        }
        if fetch.held.as_ref().is_none_or(|held| held.rank < USABLE) {
            fetch.held = Some(Held { rank: USABLE, bytes: message.as_bytes().into() });
            fetch.settle_at = now + Span::from_ms(u64::from(wait_ms));
        }
        self.arm(key);
        None
    }

    /// Takes an answer if enough others agree with it.
    fn count_votes<'b>(
        &mut self,
        key: u32,
        message: Message<'b>,
        agreeing: u8,
        now: Moment,
    ) -> Option<Finished<'b>> {
        let fetch = self.fetches.get_mut(key as usize)?;
        let qtype = fetch.query.qtype;
        let others = fetch.votes.iter().filter(|vote| agree(vote, &message, qtype)).count();
        if others + 1 >= usize::from(agreeing) {
            return self.finish(key, Ending::Reply(message), now);
        }
        fetch.votes.push(message.as_bytes().into());
        // The one that most agree on is kept in case no more come; of several such the first.
        let votes = &fetch.votes;
        let count = |vote: &[u8]| {
            Message::parse(vote)
                .map_or(0, |vote| votes.iter().filter(|other| agree(other, &vote, qtype)).count())
        };
        let best = votes.iter().rev().max_by_key(|vote| count(vote)).cloned();
        fetch.held = best.map(|bytes| Held { rank: USABLE, bytes });
        self.advance(key, now);
        None
    }

    /// Asks the same upstream once more in another way, or goes on without it.
    fn again(&mut self, key: u32, upstream: u32, how: How, now: Moment) {
        if let Some(fetch) = self.fetches.get_mut(key as usize) {
            // The new attempt has its own patience.
            fetch.retry_at = Moment::NEVER;
            fetch.hedge_at = Moment::NEVER;
        }
        if self.send(key, upstream, how, now) { self.arm(key) } else { self.advance(key, now) }
    }

    /// Takes a datagram with an ID that no query on its socket has: late, or forged.
    fn stray(&mut self, key: SocketKey, bytes: &[u8], now: Moment) {
        self.counters.mismatched.bump();
        let Some(socket) = self.sockets.get_mut(key.0 as usize) else { return };
        socket.strays += 1;
        if socket.strays > STRAYS_MAX.saturating_add(socket.unanswered) {
            return self.abandon_socket(key, now);
        }
        // Whose question is it? Replies to fetches that ended match nobody and do no harm.
        let Some((name, rtype)) = packet::claimed(bytes) else { return };
        let question = self.question_key.hash(name, u64::from(rtype.0)) as u32;
        if self.questions.outstanding(question) == 0 {
            return;
        }
        // A guess is aimed at all that ask this.
        let mut aimed_at = [NIL; QUESTION_QUERIES_MAX as usize];
        let asking = socket.transactions.iter().filter(|transaction| transaction.question == question);
        for (room, transaction) in aimed_at.iter_mut().zip(asking) {
            *room = transaction.fetch;
        }
        for fetch in aimed_at.into_iter().take_while(|&fetch| fetch != NIL) {
            self.wrong(fetch, now);
        }
    }

    /// Counts a wrong reply to a fetch; too many of them look like guessing.
    fn wrong(&mut self, key: u32, now: Moment) {
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        fetch.wrong = fetch.wrong.saturating_add(1);
        if fetch.wrong >= WRONG_MAX {
            self.distrust(key, now);
        }
    }

    /// Goes on with a fetch over TCP, where guessing is hopeless; datagrams for it are no longer taken.
    pub(super) fn distrust(&mut self, key: u32, now: Moment) {
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        if std::mem::replace(&mut fetch.is_stream_only, true) {
            return;
        }
        self.counters.spoofs_suspected.bump();
        let mut last = NIL;
        // Ends: one round per attempt.
        for i in 0..super::ATTEMPTS_MAX {
            let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
            let Some(attempt) = fetch.attempts_mut().get_mut(i) else { break };
            if attempt.is_open() && matches!(attempt.via, Via::Socket(_)) {
                attempt.state = AttemptState::Done;
                let attempt = *attempt;
                last = attempt.upstream;
                self.end_transaction(&attempt, false);
            }
        }
        let is_over = self.fetches.get(key as usize).is_none_or(|fetch| fetch.is_lingering);
        if is_over || last == NIL {
            return self.advance(key, now);
        }
        self.again(key, last, How { stream: true, ..How::default() }, now);
    }
}
