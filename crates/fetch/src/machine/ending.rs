//! How a fetch ends, and what becomes of what it has on the wire.

use engine::Failure;

use crate::machine::{
    Attempt, AttemptState, Ending, Event, Finished, Machine, NIL, Purpose, Via, Waiter, WaiterList,
};
use crate::network::Network;
use crate::time::Moment;

impl<N: Network, W: Waiter> Machine<N, W> {
    /// Ends a fetch from where its ending cannot be handed out directly.
    pub(super) fn finish_later(&mut self, key: u32, ending: Ending<'static>, now: Moment) {
        if let Some(finished) = self.finish(key, ending, now) {
            self.events.push_back(Event::Finished(finished));
        }
    }

    /// Ends a fetch; returns what its waiters get, if it had any.
    pub(super) fn finish<'b>(&mut self, key: u32, ending: Ending<'b>, now: Moment) -> Option<Finished<'b>> {
        let fetch = self.fetches.get_mut(key as usize)?;
        if fetch.is_lingering {
            return None;
        }
        let waiters = fetch.waiters.0;
        fetch.waiters = (NIL, NIL, 0);
        let purpose = fetch.purpose;
        match purpose {
            Purpose::Clients => {
                match ending {
                    Ending::Failed(Failure::Timeout) => self.counters.timeouts.bump(),
                    Ending::Failed(_) => self.counters.failures.bump(),
                    Ending::Reply(_) | Ending::Held(_) | Ending::Branch { .. } | Ending::NoBranch => (),
                }
                let (pool, hash) = (fetch.pool, fetch.query.hash);
                self.end_active(key, pool, hash);
                self.end_waiting(waiters);
                self.linger(key);
                Some(Finished { waiters: WaiterList(waiters), ending, from: None })
            }
            Purpose::Probe { .. } => {
                self.remove(key);
                None
            }
            Purpose::Resolve { named, family } => {
                self.linger(key);
                match ending {
                    Ending::Reply(message) => self.resolved(named, family, Some(&message), now),
                    Ending::Held(_) | Ending::Failed(_) | Ending::Branch { .. } | Ending::NoBranch => {
                        self.resolved(named, family, None, now);
                    }
                }
                None
            }
        }
    }

    /// Keeps an ended fetch while servers that were asked may still show how fast they are.
    fn linger(&mut self, key: u32) {
        let room = self.fetches.len() < 2 * self.limits.fetching_max as usize;
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        let waiting = fetch.attempts().iter().filter(|attempt| attempt.state == AttemptState::Waiting);
        match waiting.map(|attempt| attempt.due).max() {
            Some(last) if room && !self.is_stopping => {
                fetch.is_lingering = true;
                fetch.is_parked = false;
                (fetch.hedge_at, fetch.retry_at, fetch.deadline) = (Moment::NEVER, Moment::NEVER, last);
                fetch.settle_at = Moment::NEVER;
                self.arm(key);
            }
            _ => self.remove(key),
        }
    }

    /// Forgets a fetch and everything of it that is still on the wire.
    pub(super) fn remove(&mut self, key: u32) {
        let Some(fetch) = self.fetches.try_remove(key as usize) else { return };
        self.wheel.cancel(fetch.timer);
        for attempt in fetch.attempts().iter().filter(|attempt| attempt.is_open()) {
            self.end_transaction(attempt, false);
        }
        if fetch.purpose == Purpose::Clients && !fetch.is_lingering && fetch.waiters.0 == NIL {
            // Shed, or finished and not lingering.
            if self.index.find(fetch.query.hash, |&other| other == key).is_some() {
                self.end_active(key, fetch.pool, fetch.query.hash);
            }
        }
        if let Some(pool) = self.pools.get_mut(fetch.pool as usize) {
            pool.fetching -= 1;
            self.has_garbage |= pool.is_retired;
        }
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
        if let Some(upstream) = self.upstreams.get_mut(attempt.upstream as usize) {
            upstream.meters.outstanding.take_back();
            self.has_garbage |= upstream.users == 0;
        }
    }
}
