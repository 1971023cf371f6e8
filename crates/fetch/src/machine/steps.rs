//! What a fetch does when time passes or an attempt fails: hedge, ask again, ask the next server, give up.

use wire::{NameBuf, Rtype};

use crate::health::{Change, Why};
use crate::machine::pools::{Member, Pool};
use crate::machine::{
    ATTEMPTS_MAX, AttemptState, Ending, Event, HEDGE_COST, How, Machine, NIL, PROBE_TIMEOUT, Purpose, Token,
    USABLE, Via, Waiter,
};
use crate::network::Network;
use crate::notices::News;
use crate::pick;
use crate::plan::Pick;
use crate::time::Moment;
use crate::wheel::TimerKey;

use rand::Rng;

/// Rounds of asking again after which a fetch settles for what it has.
const ROUNDS_MAX: u8 = 3;

impl<N: Network, W: Waiter> Machine<N, W> {
    /// Does the next step of a fetch whose timer ran out.
    pub(super) fn fetch_due(&mut self, key: u32, now: Moment) {
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        fetch.timer = TimerKey::NONE;
        if fetch.is_lingering {
            self.expire(key, now);
            return self.remove(key);
        }
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
        if self.send(key, next, How::default(), now) {
            self.counters.hedged.bump();
        }
    }

    /// Sends again because nothing came in time.
    fn retry(&mut self, key: u32, now: Moment) {
        self.expire(key, now);
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        fetch.retry_at = Moment::NEVER;
        if matches!(fetch.purpose, Purpose::Probe { .. }) || fetch.is_last_resort {
            return self.give_up(key, now);
        }
        fetch.resends = fetch.resends.saturating_add(1);
        // Rounds, not attempts: a race begins with several at once.
        let is_tired = fetch.resends >= ROUNDS_MAX;
        let Some((pool, pick)) = self.untried(key) else { return };
        // Ends: each round uses up one attempt.
        while let Some(next) = pick::next(pick, &self.candidates, false) {
            if self.send(key, next, How::default(), now) {
                self.counters.retransmitted.bump();
                return;
            }
            self.candidates.retain(|candidate| candidate.upstream != next);
        }
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        let has_held = fetch.held.is_some();
        // A packet may have been lost: what is silent in a race is asked again before a bad answer wins it.
        if has_held && (is_tired || !pick.is_race()) {
            return self.pass_on_when_due(key, now);
        }
        // Servers that were silent may be asked again; over TCP the kernel does that.
        let silent = |upstream: u32| {
            let last = fetch.attempts().iter().rev().find(|attempt| attempt.upstream == upstream);
            last.is_none_or(|last| last.is_open() && matches!(last.via, Via::Socket(_)))
        };
        let again: [Option<u32>; ATTEMPTS_MAX] = std::array::from_fn(|i| {
            fetch.attempts().get(i).map(|attempt| attempt.upstream).filter(|&upstream| silent(upstream))
        });
        let tried: [Option<u32>; ATTEMPTS_MAX] =
            std::array::from_fn(|i| fetch.attempts().get(i).map(|attempt| attempt.upstream));
        let members = fetch.query.members;
        self.gather(pool, members, |upstream| {
            again.contains(&Some(upstream)) || !tried.contains(&Some(upstream))
        });
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
            .min_by_key(|candidate| tried.iter().rposition(|&upstream| upstream == Some(candidate.upstream)))
            .map(|candidate| candidate.upstream);
        if let Some(next) = next
            && self.send(key, next, How::default(), now)
        {
            self.counters.retransmitted.bump();
        } else if has_held {
            self.pass_on_when_due(key, now);
        }
    }

    /// Passes the bad answer on that is held, once the attempts that still wait have had their time.
    fn pass_on_when_due(&mut self, key: u32, now: Moment) {
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        let waiting = fetch.attempts().iter().filter(|attempt| attempt.state == AttemptState::Waiting);
        match waiting.map(|attempt| attempt.due).min() {
            Some(due) => fetch.retry_at = due,
            None => self.give_up(key, now),
        }
    }

    /// Collects the members of a fetch's pool that it has not tried yet; returns the pool and how it picks.
    fn untried(&mut self, key: u32) -> Option<(u32, Pick)> {
        let fetch = self.fetches.get(key as usize)?;
        let (pool, members) = (fetch.pool, fetch.query.members);
        let pick = self.pools.get(pool as usize)?.plan.pick;
        let tried: [u32; ATTEMPTS_MAX] =
            std::array::from_fn(|i| fetch.attempts().get(i).map_or(NIL, |attempt| attempt.upstream));
        self.gather(pool, members, |upstream| !tried.contains(&upstream));
        Some((pool, pick))
    }

    /// Goes on after a reply that cannot be used or an attempt that failed: next server, or wait, or end.
    pub(super) fn advance(&mut self, key: u32, now: Moment) {
        let Some(fetch) = self.fetches.get(key as usize) else { return };
        if fetch.is_lingering {
            if !fetch.any(AttemptState::Waiting) {
                self.remove(key);
            }
            return;
        }
        let has_held = fetch.held.is_some();
        let is_waiting = fetch.any(AttemptState::Waiting);
        let is_last_resort = fetch.is_last_resort;
        // An answer that others may only have bettered is enough when nobody else is asked any more.
        if !is_waiting && fetch.held.as_ref().is_some_and(|held| held.rank >= USABLE) {
            return self.give_up(key, now);
        }
        let Some((_, pick)) = self.untried(key) else { return self.give_up(key, now) };
        // In a race the others may still answer; only when all have answered or failed is it the next one's turn.
        let may_wait = is_waiting && pick.is_race();
        if !may_wait && !is_last_resort {
            // Ends: each round uses up one attempt or one candidate.
            while let Some(next) = pick::next(pick, &self.candidates, !has_held) {
                if self.send(key, next, How::default(), now) {
                    self.counters.fallbacks.bump();
                    return self.arm(key);
                }
                self.candidates.retain(|candidate| candidate.upstream != next);
            }
        }
        let Some(fetch) = self.fetches.get(key as usize) else { return };
        let is_asked_again = pick.is_race() && fetch.resends < ROUNDS_MAX;
        let may_still_come =
            is_waiting || ((!has_held || is_asked_again) && fetch.any(AttemptState::Overdue));
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
        // Ends: one round per attempt.
        for i in 0..ATTEMPTS_MAX {
            let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
            let deadline = fetch.deadline;
            let Some(attempt) = fetch.attempts_mut().get_mut(i) else { return };
            if attempt.state != AttemptState::Waiting || now < attempt.due.min(deadline) {
                continue;
            }
            attempt.state = AttemptState::Overdue;
            let (to, sent) = (attempt.upstream, attempt.sent);
            if let Some(upstream) = self.upstreams.get_mut(to as usize) {
                let change = upstream.silent(sent, now);
                self.changed(to, change, Why::Silence, now);
            }
        }
    }

    /// Acts on an upstream's change of state.
    pub(super) fn changed(&mut self, key: u32, change: Change, why: Why, now: Moment) {
        if change == Change::None {
            return;
        }
        if change == Change::FellSilent {
            return self.pools_of(key).into_iter().for_each(|pool| self.hurry_silent(pool));
        }
        self.tell_change(key, change, why);
        let Some(upstream) = self.upstreams.get_mut(key as usize) else { return };
        match change {
            Change::None | Change::FellSilent => (),
            Change::WentDown => {
                self.counters.upstreams_down.bump();
                let at = upstream.health.next_probe(now, self.rng.next_u32()).unwrap_or(now);
                self.wheel.cancel(upstream.probe);
                upstream.probe = self.wheel.set(at, Token::Probe(key));
                // Our address or route may have changed: the next packets leave through new sockets.
                self.retire_sockets(key);
                self.suspect_links(key);
                for pool in self.pools_of(key) {
                    self.hurry_silent(pool);
                }
            }
            Change::CameUp => {
                self.counters.upstreams_up.bump();
                self.wheel.cancel(upstream.probe);
                upstream.probe = TimerKey::NONE;
                for pool in self.pools_of(key) {
                    if let Some(pool) = self.pools.get(pool as usize) {
                        self.events.push_back(Event::Recovered(pool.plan.id));
                    }
                }
            }
        }
    }

    /// Returns the groups that an upstream is a member of.
    #[cold]
    fn pools_of(&self, key: u32) -> Vec<u32> {
        let has = |pool: &Pool| pool.members.iter().any(|member| member.upstream == key);
        self.pools
            .iter()
            .filter(|(_, pool)| !pool.is_retired && has(pool))
            .map(|(key, _)| key as u32)
            .collect()
    }

    /// Says that an upstream went down or came back, and which groups have no other.
    #[cold]
    fn tell_change(&mut self, key: u32, change: Change, why: Why) {
        let Some(upstream) = self.upstreams.get(key as usize) else { return };
        let has = |pool: &&Pool| pool.members.iter().any(|member| member.upstream == key);
        let pools = || self.pools.iter().map(|(_, pool)| pool).filter(|pool| !pool.is_retired).filter(has);
        let is_up = |member: &Member| {
            self.upstreams.get(member.upstream as usize).is_some_and(|it| it.health.is_up())
        };
        let dead = pools().filter(|pool| !pool.members.iter().any(is_up));
        let news = News {
            address: upstream.remote.address,
            protocol: upstream.remote.way.protocol,
            is_up: change == Change::CameUp,
            why,
            groups: pools().map(|pool| pool.plan.name.clone()).collect(),
            dead_groups: dead.map(|pool| pool.plan.name.clone()).collect(),
        };
        self.events.push_back(Event::News(Box::new(news)));
    }

    /// Asks an upstream that is down whether it is back.
    pub(super) fn probe_due(&mut self, key: u32, now: Moment) {
        let Some(upstream) = self.upstreams.get_mut(key as usize) else { return };
        upstream.probe = TimerKey::NONE;
        let Some(at) = upstream.health.next_probe(now, self.rng.next_u32()) else { return };
        upstream.probe = self.wheel.set(at, Token::Probe(key));
        self.counters.probes.bump();
        // Through a new socket: the old ones may be bound to an address or a route that is gone.
        self.retire_sockets(key);
        let purpose = Purpose::Probe { upstream: key };
        let fetch = self.begin_own(purpose, NIL, (NameBuf::root(), Rtype::NS), now + PROBE_TIMEOUT);
        if self.send(fetch, key, How { force: true, ..How::default() }, now) {
            if let Some(fetch) = self.fetches.get_mut(fetch as usize) {
                fetch.retry_at = Moment::NEVER;
            }
            self.arm(fetch);
        } else {
            self.remove(fetch);
        }
    }
}
