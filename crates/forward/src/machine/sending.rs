//! How a fetch begins, and who is asked.

use engine::Failure;
use timers::{Moment, Span};

use crate::machine::pools::Member;
use crate::machine::{Ending, Forward, Token};
use crate::pick::{self, Candidate};
use exchange::network::Network;
use exchange::{Alternatives, How, ServerKey};
use plan::upstreams::{Hedge, Pick};

/// Time a query waits for a pool to learn its first address.
const PARKED_MAX: Span = Span::from_ms(3000);

impl<N: Network> Forward<N> {
    /// Collects the members of a fetch's pool that it may ask and `keep` wants into
    /// `self.candidates`.
    pub(super) fn gather(&mut self, key: u32, keep: impl Fn(ServerKey) -> bool) {
        self.candidates.clear();
        let Some(fetch) = self.fetches.get(key as usize) else { return };
        let Some(pool) = self.pools.get(fetch.pool as usize) else { return };
        let query = self.exchange.query(fetch.request);
        // One bit for each that may be asked; zero: all.
        let members = query.map_or(0, |query| query.members);
        for member in &pool.members {
            if (members == 0 || members >> (member.member & 63) & 1 != 0)
                && let Some(server) = self.exchange.server(member.server)
                && keep(member.server)
            {
                self.candidates.push(Candidate {
                    server: member.server,
                    weight: member.weight,
                    is_up: server.health.is_up(),
                    score: match (pool.plan.pick, query) {
                        (Pick::Hashed, Some(query)) => {
                            pick::distance(query.qname.as_name(), server.remote.address, member.weight)
                        }
                        _ => server.rtt.score(),
                    },
                    heard: server.health.heard_at(),
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
        self.gather(key, |_| true);
        if self.candidates.is_empty() {
            return self.finish_later(key, Ending::Failed(Failure::NoUpstream), now);
        }
        let chosen = pick::first(pick, &self.candidates, &mut self.rng);
        let can_hedge = self.candidates.iter().filter(|candidate| candidate.is_up).count() > 1;
        if let Some(fetch) = self.fetches.get_mut(key as usize) {
            fetch.is_last_resort = chosen.is_last_resort;
        }
        let mut has_sent = false;
        for &server in chosen.as_slice() {
            has_sent |= self.send(key, server, now);
        }
        if let Some(other) = chosen.explored
            && self.send(key, other, now)
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
            Hedge::Auto => {
                let [first, ..] = self.exchange.tried(fetch.request);
                let server = first.and_then(|first| self.exchange.server(first));
                server.and_then(|server| server.rtt.hedge_after())
            }
        };
        if let Some(after) = after {
            fetch.hedge_at = now + after;
        }
    }

    /// Asks one server; says whether the query left.
    pub(super) fn send(&mut self, key: u32, to: ServerKey, now: Moment) -> bool {
        let Some(fetch) = self.fetches.get(key as usize) else { return false };
        let alternatives = self.alternatives(fetch.pool, to, fetch.resends);
        let sent = self.exchange.send(fetch.request, to, How::default(), alternatives, now);
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return false };
        match sent {
            Ok(due) => fetch.wait_until(due, now),
            Err(error) => fetch.last_failure = error.failure().unwrap_or(fetch.last_failure),
        }
        sent.is_ok()
    }

    /// Returns who else in a pool could be asked instead of `one`.
    fn alternatives(&self, pool: u32, one: ServerKey, resends: u8) -> Alternatives {
        let members = self.pools.get(pool as usize).map_or(&[][..], |pool| &pool.members);
        let others =
            || members.iter().filter(|other| other.server != one && self.exchange.is_up(other.server));
        let own = members.iter().find(|member| member.server == one);
        let is_sibling = |own: &Member| others().any(|other| other.part == own.part);
        let patience = self.pools.get(pool as usize).map(|pool| pool.plan.patience).unwrap_or_default();
        let span = |ms: u32| Span::from_ms(u64::from(ms));
        Alternatives {
            has_others: others().next().is_some(),
            has_siblings: own.is_some_and(is_sibling),
            resends,
            unknown: span(patience.unknown_ms),
            longest: span(patience.max_ms),
        }
    }

    /// Sets a fetch's timer to its next step.
    pub(super) fn arm(&mut self, key: u32) {
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        self.wheel.cancel(fetch.timer);
        let at = fetch.hedge_at.min(fetch.retry_at).min(fetch.deadline).min(fetch.settle_at);
        fetch.timer = self.wheel.set(at, Token::Fetch(key));
    }
}
