//! What a fetch does when time passes or an attempt fails: hedge, ask again, ask the next server,
//! give up.

use crate::machine::pools::{Member, Pool};
use crate::machine::replies::USABLE;
use crate::machine::{Ending, Event, Forward, PoolKey, Token};
use crate::pick;
use crate::upstream_log::StateChange;
use exchange::ServerKey;
use exchange::health::{Change, Why};
use exchange::network::Network;
use plan::upstreams::Pick;
use timers::{Moment, TimerKey};

/// Hedges cost ten fetches' worth of credit: at most one query in ten is hedged.
const HEDGE_COST: u32 = 10;

impl<N: Network> Forward<N> {
    /// Does the next step of a fetch whose timer ran out.
    pub(super) fn fetch_due(&mut self, key: u32, now: Moment) {
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        fetch.timer = TimerKey::NONE;
        if now >= fetch.deadline {
            self.expire(key, now);
            return self.give_up(key, now);
        }
        if now >= fetch.settle_at {
            return self.give_up(key, now);
        }
        if now >= fetch.hedge_at {
            fetch.hedge_at = Moment::NEVER;
            self.hedge(key, now);
        }
        if self.fetches.get(key as usize).is_some_and(|fetch| now >= fetch.retry_at) {
            self.retry(key, now);
        }
        // It may have ended, and its place may even be taken; then the timer is merely set again.
        if self.fetches.contains(key as usize) {
            self.arm(key);
        }
    }

    /// Asks a second server because the first is slower than usual.
    fn hedge(&mut self, key: u32, now: Moment) {
        let Some((pool, pick)) = self.untried(key) else { return };
        let Some(next) = pick::next(pick, &self.candidates, false) else { return };
        let Some(pool) = self.pools.get_mut(pool as usize) else { return };
        if pool.hedge_credit < HEDGE_COST {
            return;
        }
        pool.hedge_credit -= HEDGE_COST;
        if self.send(key, next, now) {
            self.counters.hedged.bump();
        }
    }

    /// Sends again because nothing came in time.
    fn retry(&mut self, key: u32, now: Moment) {
        self.expire(key, now);
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        fetch.retry_at = Moment::NEVER;
        if fetch.is_last_resort {
            return self.give_up(key, now);
        }
        fetch.resends = fetch.resends.saturating_add(1);
        // Rounds, not attempts: a race begins with several at once.
        let rounds_max = self.pools.get(fetch.pool as usize).map_or(0, |pool| pool.plan.patience.attempts);
        let is_tired = fetch.resends >= rounds_max;
        let Some((_, pick)) = self.untried(key) else { return };
        // Ends: each round uses up one attempt.
        while let Some(next) = pick::next(pick, &self.candidates, false) {
            if self.send(key, next, now) {
                self.counters.retransmitted.bump();
                return;
            }
            self.candidates.retain(|candidate| candidate.server != next);
        }
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        let has_held = fetch.held.is_some();
        // A packet may have been lost: what is silent in a race is asked again before a bad answer
        // wins it.
        if has_held && (is_tired || !pick.is_race()) {
            return self.pass_on_when_due(key, now);
        }
        // Servers that were silent may be asked again; over TCP the kernel does that.
        let request = fetch.request;
        let tried = self.exchange.tried(request);
        let again = tried.map(|server| server.filter(|&server| self.exchange.may_be_lost(request, server)));
        self.gather(key, |server| again.contains(&Some(server)) || !tried.contains(&Some(server)));
        let any_up = self.candidates.iter().any(|candidate| candidate.is_up);
        if !any_up && (is_tired || has_held) && !self.candidates.is_empty() {
            // All went down meanwhile: fail now rather than pile up.
            return self.give_up(key, now);
        }
        // The one asked least recently, so that one bad server does not get all the retries.
        let next = self
            .candidates
            .iter()
            .filter(|candidate| candidate.is_up || !any_up)
            .min_by_key(|candidate| tried.iter().rposition(|&server| server == Some(candidate.server)))
            .map(|candidate| candidate.server);
        if let Some(next) = next
            && self.send(key, next, now)
        {
            self.counters.retransmitted.bump();
        } else if has_held {
            self.pass_on_when_due(key, now);
        }
    }

    /// Passes the bad answer on that is held, once the attempts that still wait have had their
    /// time.
    fn pass_on_when_due(&mut self, key: u32, now: Moment) {
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        match self.exchange.next_overdue(fetch.request) {
            Some(due) => fetch.retry_at = due,
            None => self.give_up(key, now),
        }
    }

    /// Collects the members of a fetch's pool that it has not tried yet; returns the pool and how
    /// it picks.
    fn untried(&mut self, key: u32) -> Option<(u32, Pick)> {
        let fetch = self.fetches.get(key as usize)?;
        let pool = fetch.pool;
        let pick = self.pools.get(pool as usize)?.plan.pick;
        let tried = self.exchange.tried(fetch.request);
        self.gather(key, |server| !tried.contains(&Some(server)));
        Some((pool, pick))
    }

    /// Goes on after a reply that cannot be used or an attempt that failed: next server, or wait,
    /// or end.
    pub(super) fn advance(&mut self, key: u32, now: Moment) {
        let Some(fetch) = self.fetches.get(key as usize) else { return };
        let request = fetch.request;
        let has_held = fetch.held.is_some();
        let is_waiting = self.exchange.is_waiting(request);
        let is_last_resort = fetch.is_last_resort;
        // An answer that others may only have bettered is enough when nobody else is asked any
        // more.
        if !is_waiting && fetch.held.as_ref().is_some_and(|held| held.rank >= USABLE) {
            return self.give_up(key, now);
        }
        let Some((_, pick)) = self.untried(key) else { return self.give_up(key, now) };
        // In a race the others may still answer; only when all have answered or failed is it the
        // next one's turn.
        let may_wait = is_waiting && pick.is_race();
        if !may_wait && !is_last_resort {
            // Ends: each round uses up one attempt or one candidate.
            while let Some(next) = pick::next(pick, &self.candidates, !has_held) {
                if self.send(key, next, now) {
                    self.counters.fallbacks.bump();
                    return self.arm(key);
                }
                self.candidates.retain(|candidate| candidate.server != next);
            }
        }
        let Some(fetch) = self.fetches.get(key as usize) else { return };
        let rounds_max = self.pools.get(fetch.pool as usize).map_or(0, |pool| pool.plan.patience.attempts);
        let is_asked_again = pick.is_race() && fetch.resends < rounds_max;
        let may_still_come =
            is_waiting || ((!has_held || is_asked_again) && self.exchange.is_overdue(request));
        if may_still_come { self.arm(key) } else { self.give_up(key, now) }
    }

    /// Ends a fetch with what there is.
    fn give_up(&mut self, key: u32, now: Moment) {
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        let ending = match fetch.held.take() {
            Some(held) => Ending::Held(held.bytes),
            None => Ending::Failed(fetch.last_failure),
        };
        self.finish_later(key, ending, now);
    }

    /// Counts the attempts that are due as unanswered.
    fn expire(&mut self, key: u32, now: Moment) {
        let Some(fetch) = self.fetches.get(key as usize) else { return };
        self.exchange.expire(fetch.request, fetch.deadline, now);
        self.drain(now);
    }

    /// Acts on a server's change of state.
    pub(super) fn changed(&mut self, server: ServerKey, change: Change, why: Why, now: Moment) {
        // Servers that were asked by themselves are nobody's upstream.
        if self.exchange.server(server).is_none_or(|server| server.users == 0) {
            return;
        }
        match change {
            Change::None => (),
            Change::FellSilent => self.tell_silent(server),
            Change::WentDown => {
                self.tell_change(server, change, why);
                self.counters.upstreams_down.bump();
                self.plan_probe(server, now);
                self.tell_silent(server);
            }
            Change::CameUp => {
                self.tell_change(server, change, why);
                self.counters.upstreams_up.bump();
                self.forget_probe(server);
                for pool in self.pools_of(server) {
                    if let Some(pool) = self.pools.get(pool as usize) {
                        self.events.push_back(Event::Recovered(pool.plan.id));
                    }
                }
            }
        }
    }

    /// Tells which groups of a server have become silent with it.
    #[cold]
    fn tell_silent(&mut self, server: ServerKey) {
        for pool in self.pools_of(server).into_iter().map(PoolKey) {
            if self.is_silent(pool) {
                self.events.push_back(Event::Silent(pool));
            }
        }
    }

    /// Returns the groups that a server is a member of.
    #[cold]
    fn pools_of(&self, server: ServerKey) -> Vec<u32> {
        let has = |pool: &Pool| pool.members.iter().any(|member| member.server == server);
        self.pools
            .iter()
            .filter(|(_, pool)| !pool.is_retired && has(pool))
            .map(|(key, _)| key as u32)
            .collect()
    }

    /// Says that a server went down or came back, and which groups have no other.
    #[cold]
    fn tell_change(&mut self, server: ServerKey, change: Change, why: Why) {
        let Some(known) = self.exchange.server(server) else { return };
        let has = |pool: &&Pool| pool.members.iter().any(|member| member.server == server);
        let pools = || self.pools.iter().map(|(_, pool)| pool).filter(|pool| !pool.is_retired).filter(has);
        let is_up = |member: &Member| self.exchange.is_up(member.server);
        let dead = pools().filter(|pool| !pool.members.iter().any(is_up));
        let state_change = StateChange {
            address: known.remote.address,
            protocol: known.remote.way().protocol.scheme(),
            is_up: change == Change::CameUp,
            why,
            groups: pools().map(|pool| pool.plan.name.clone()).collect(),
            dead_groups: dead.map(|pool| pool.plan.name.clone()).collect(),
        };
        self.events.push_back(Event::StateChange(Box::new(state_change)));
    }

    /// Plans the next health check of a server that is down.
    pub(super) fn plan_probe(&mut self, server: ServerKey, now: Moment) {
        self.forget_probe(server);
        if let Some(at) = self.exchange.next_probe(server, now) {
            self.probes.insert(server, self.wheel.set(at, Token::Probe(server)));
        }
    }

    /// Takes back the health check that was planned, if any.
    pub(super) fn forget_probe(&mut self, server: ServerKey) {
        if let Some(timer) = self.probes.remove(&server) {
            self.wheel.cancel(timer);
        }
    }

    /// Asks a server that is down whether it is back.
    pub(super) fn probe_due(&mut self, server: ServerKey, now: Moment) {
        self.probes.remove(&server);
        self.plan_probe(server, now);
        if self.probes.contains_key(&server) {
            self.counters.probes.bump();
            self.exchange.probe(server, now);
        }
    }
}
