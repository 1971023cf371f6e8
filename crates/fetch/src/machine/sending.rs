//! How a fetch begins, and how one query leaves for one server.

use engine::Failure;
use rand::Rng as _;

use crate::machine::{
    ATTEMPTS_MAX, Attempt, AttemptState, Ending, Hindrance, How, Machine, Token, Via, Waiter,
};
use crate::network::Network;
use crate::packet::{CaseSeed, Dress, QUERY_OCTETS_MAX};
use crate::pick::{self, Candidate};
use crate::plan::Hedge;
use crate::questions::QUESTION_QUERIES_MAX;
use crate::rtt::RETRY_MAX;
use crate::time::{Moment, Span};

/// Time for an answer over a connection that is open, at least; the kernel retransmits there.
pub(super) const STREAM_PATIENCE_MIN: Span = Span::from_ms(300);
/// Time to connect, besides that for the answer, before the same server counts as silent.
const CONNECT_PATIENCE: Span = Span::from_ms(700);
/// The same where there is another server.
const CONNECT_PATIENCE_OTHERS: Span = Span::from_ms(250);
/// Time to connect before another address of the same server is tried, too (the Connection Attempt Delay of RFC 8305 §5).
/// Once a connection is open, its answer has the usual time.
const ATTEMPT_DELAY: Span = Span::from_ms(250);
/// Time a query waits for a pool to learn its first address.
const PARKED_MAX: Span = Span::from_ms(3000);

impl<N: Network, W: Waiter> Machine<N, W> {
    /// Collects the members of a fetch's pool that `keep` wants into `self.candidates`.
    ///
    /// `members` are those that may be asked, one bit each; zero: all.
    pub(super) fn gather(&mut self, pool: u32, members: u64, keep: impl Fn(u32) -> bool) {
        self.candidates.clear();
        let Some(pool) = self.pools.get(pool as usize) else { return };
        for member in &pool.members {
            if (members == 0 || members >> (member.member & 63) & 1 != 0)
                && let Some(upstream) = self.upstreams.get(member.upstream as usize)
                && keep(member.upstream)
            {
                self.candidates.push(Candidate {
                    upstream: member.upstream,
                    weight: member.weight,
                    is_up: upstream.health.is_up(),
                    score: upstream.rtt.score(),
                    heard: upstream.health.heard_at(),
                });
            }
        }
    }

    /// Sends a fetch's first queries.
    pub(super) fn start(&mut self, key: u32, now: Moment) {
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        let Some(pool) = self.pools.get_mut(fetch.pool as usize) else {
            return self.finish_later(key, Ending::Failed(Failure::NoUpstream), now);
        };
        let (pick, hedge) = (pool.plan.pick, pool.plan.hedge);
        if pool.members.is_empty() {
            if !pool.awaits_addresses() {
                return self.finish_later(key, Ending::Failed(Failure::NoUpstream), now);
            }
            fetch.is_parked = true;
            fetch.last_failure = Failure::NoUpstream;
            fetch.deadline = fetch.deadline.min(now + PARKED_MAX);
            pool.parked.push(key);
            return self.arm(key);
        }
        fetch.is_parked = false;
        fetch.last_failure = Failure::Timeout;
        let (pool, members) = (fetch.pool, fetch.query.members);
        self.gather(pool, members, |_| true);
        if self.candidates.is_empty() {
            return self.finish_later(key, Ending::Failed(Failure::NoUpstream), now);
        }
        let chosen = pick::first(pick, &self.candidates, &mut self.rng);
        let can_hedge = self.candidates.iter().filter(|candidate| candidate.is_up).count() > 1;
        if let Some(fetch) = self.fetches.get_mut(key as usize) {
            fetch.is_last_resort = chosen.is_last_resort;
        }
        let mut has_sent = false;
        for &upstream in chosen.as_slice() {
            has_sent |= self.send(key, upstream, How::default(), now);
        }
        if let Some(other) = chosen.explored
            && self.send(key, other, How::default(), now)
        {
            self.counters.explored.bump();
        }
        if !has_sent {
            return self.advance(key, now);
        }
        if can_hedge && !pick.is_race() {
            self.plan_hedge(key, hedge, now);
        }
        self.arm(key);
    }

    /// Decides when a second server is asked.
    fn plan_hedge(&mut self, key: u32, hedge: Hedge, now: Moment) {
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        let after = match hedge {
            Hedge::Off => None,
            Hedge::AfterMs(ms) => Some(Span::from_ms(u64::from(ms))),
            Hedge::Auto => fetch
                .attempts()
                .first()
                .and_then(|attempt| self.upstreams.get(attempt.upstream as usize))
                .and_then(|upstream| upstream.rtt.hedge_after()),
        };
        if let Some(after) = after {
            fetch.hedge_at = now + after;
        }
    }

    /// Sends one query to one upstream. On failure the attempt is noted as such; says whether it left.
    pub(super) fn send(&mut self, key: u32, to: u32, how: How, now: Moment) -> bool {
        if self.fetches.get(key as usize).is_some_and(|fetch| fetch.attempt_count > 1) {
            self.supersede(key, to);
        }
        let Some(fetch) = self.fetches.get(key as usize) else { return false };
        let has_others = self.has_others(fetch.pool, to);
        let has_siblings = self.has_siblings(fetch.pool, to);
        let Some(upstream) = self.upstreams.get_mut(to as usize) else { return false };
        let attempt = fetch.attempt_count;
        if usize::from(attempt) >= ATTEMPTS_MAX {
            return false;
        }
        let question = fetch.question;
        // Somebody may be after this very question: where there is nothing to guess, more may ask it.
        let over_stream = how.stream
            || fetch.is_stream_only
            || upstream.is_connected
            || self.questions.outstanding(question) >= QUESTION_QUERIES_MAX;
        let pool = self.pools.get(fetch.pool as usize).map(|pool| &pool.plan);
        let wants_case = pool.is_some_and(|plan| plan.case_randomisation);
        let dress = Dress {
            recursion_desired: !fetch.query.no_recursion && pool.is_none_or(|plan| plan.recursion_desired),
            edns: (!how.plain && now >= upstream.plain_until)
                .then(|| pool.map_or(1232, |plan| plan.udp_size)),
            // To hide its length is of use only where its content is hidden.
            pads: upstream.is_secured,
            // Over TCP there is nothing to guess, but it shows whether the server keeps letter case.
            case: (wants_case && !upstream.is_secured && now >= upstream.caseless_until)
                .then(|| CaseSeed(self.rng.next_u32())),
        };
        let base = if has_others { upstream.rtt.fallback_after() } else { upstream.rtt.retry_after() };
        let (via, patience) = if over_stream {
            let (link, is_open) = match self.link_for(to, how.force, now) {
                Ok(link) => link,
                Err(hindrance) => return self.note_failed_attempt(key, to, hindrance, now),
            };
            let answering = base.max(STREAM_PATIENCE_MIN);
            let patience = match (is_open, has_siblings, has_others) {
                (true, ..) => answering,
                (false, true, _) => ATTEMPT_DELAY,
                (false, false, true) => Span(answering.0 + CONNECT_PATIENCE_OTHERS.0),
                (false, false, false) => Span(answering.0 + CONNECT_PATIENCE.0),
            };
            (Via::Link(link), patience)
        } else {
            let socket = match self.socket_for(to, now) {
                Ok(socket) => socket,
                Err(hindrance) => return self.note_failed_attempt(key, to, hindrance, now),
            };
            (Via::Socket(socket), base)
        };
        let transactions = match via {
            Via::Socket(socket) => {
                self.sockets.get_mut(socket.0 as usize).map(|socket| &mut socket.transactions)
            }
            Via::Link(link) => self.links.get_mut(link.0 as usize).map(|link| &mut link.transactions),
        };
        // The waiter is registered before the packet leaves: no reply can be too early.
        let id = transactions.and_then(|table| table.begin(&mut self.rng, key, attempt, question));
        let (Some(id), Some(fetch)) = (id, self.fetches.get_mut(key as usize)) else {
            return self.note_failed_attempt(key, to, Hindrance::Shortage, now);
        };
        let shift = fetch.resends.min(3);
        let due = now + Span(patience.0 << shift).min(Span(RETRY_MAX.0.max(patience.0)));
        if let Some(room) = fetch.attempts.get_mut(usize::from(attempt)) {
            *room = Attempt {
                upstream: to,
                via,
                id,
                state: AttemptState::Waiting,
                has_edns: dress.edns.is_some(),
                case: dress.case,
                sent: now,
                due,
            };
        }
        fetch.attempt_count += 1;
        // In a race the fastest server's patience counts; later sends start it anew.
        fetch.retry_at = if fetch.retry_at > now { fetch.retry_at.min(due) } else { due };
        let mut packet = [0; QUERY_OCTETS_MAX];
        let len = crate::packet::write(&mut packet, id, &fetch.query, dress);
        let packet = packet.get(..len).unwrap_or(&[]);
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
        if let Some(upstream) = self.upstreams.get_mut(to as usize) {
            upstream.meters.outstanding.bump();
            upstream.meters.queries.bump();
        }
        true
    }

    /// Returns whether a pool has a server besides `one` that is up.
    fn has_others(&self, pool: u32, one: u32) -> bool {
        let members = self.pools.get(pool as usize).map_or(&[][..], |pool| &pool.members);
        let is_up = |key: u32| self.upstreams.get(key as usize).is_some_and(|other| other.health.is_up());
        members.iter().any(|member| member.upstream != one && is_up(member.upstream))
    }

    /// Returns whether the server with this address has another one in a pool that is up.
    fn has_siblings(&self, pool: u32, one: u32) -> bool {
        let members = self.pools.get(pool as usize).map_or(&[][..], |pool| &pool.members);
        let Some(own) = members.iter().find(|member| member.upstream == one) else { return false };
        let is_up = |key: u32| self.upstreams.get(key as usize).is_some_and(|other| other.health.is_up());
        members.iter().any(|other| other.part == own.part && other.upstream != one && is_up(other.upstream))
    }

    /// Gives up the older attempts at a server when it is asked once more. The last one before stays, for its reply may only
    /// be late; so a name whose servers are silent holds two IDs, not one for each time that it was asked.
    fn supersede(&mut self, key: u32, to: u32) {
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        let mut older = [None; ATTEMPTS_MAX];
        let open = fetch.attempts_mut().iter_mut().rev().filter(|attempt| {
            attempt.upstream == to && attempt.is_open() && matches!(attempt.via, Via::Socket(_))
        });
        for (attempt, room) in open.skip(1).zip(&mut older) {
            attempt.state = AttemptState::Done;
            *room = Some(*attempt);
        }
        for attempt in older.into_iter().flatten() {
            self.end_transaction(&attempt, false);
        }
    }

    /// Notes that `to` could not be asked, so that it is not tried again; returns that nothing left.
    #[cold]
    fn note_failed_attempt(&mut self, key: u32, to: u32, hindrance: Hindrance, now: Moment) -> bool {
        let failure = match hindrance {
            Hindrance::Network => {
                self.counters.network_errors.bump();
                Failure::Network
            }
            Hindrance::Shortage => {
                self.counters.shortages.bump();
                Failure::Overloaded
            }
        };
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return false };
        let count = usize::from(fetch.attempt_count);
        if let Some(room) = fetch.attempts.get_mut(count) {
            *room = Attempt { upstream: to, state: AttemptState::Failed, sent: now, ..Attempt::UNUSED };
            fetch.attempt_count += 1;
        }
        fetch.last_failure = failure;
        false
    }

    /// Sets a fetch's timer to its next step.
    pub(super) fn arm(&mut self, key: u32) {
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        self.wheel.cancel(fetch.timer);
        let at = fetch.hedge_at.min(fetch.retry_at).min(fetch.deadline).min(fetch.settle_at);
        fetch.timer = self.wheel.set(at, Token::Fetch(key));
    }
}
