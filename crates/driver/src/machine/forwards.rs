//! Questions of resolvers that groups of servers answer.

use authorities::PoolNetwork;
use engine::{Failure, OutQuery, PoolId};
use exchange::network::Network;
use forward::{Ended, Ending, PoolKey};
use resolver::{Forward, Unanswered};
use timers::Moment;
use wire::{Class, Message};

use super::{Machine, Shared, Source, Waiter, Waiters};

impl<N: Network, P: PoolNetwork, W: Waiter> Machine<N, P, W> {
    /// Has groups asked what resolvers want of them; returns whether there was anything.
    pub(super) fn take_forwards(&mut self, now: Moment) -> bool {
        let mut has_any = false;
        while let Some((tag, wanted)) = self.recursion.next_forward() {
            has_any = true;
            match self.group_for(&wanted, now) {
                Ok(pool) => self.begin_forward(pool, &wanted, tag, now),
                Err(why) => self.recursion.forwarders_failed(tag, why, now),
            }
        }
        has_any
    }

    /// Returns the group that answers a question, or why it is not asked.
    fn group_for(&mut self, wanted: &Forward, now: Moment) -> Result<PoolKey, Unanswered> {
        let pool = self.forward.pool(PoolId(wanted.forwarders.0)).filter(|_| !self.is_stopping);
        let pool = pool.ok_or(Unanswered::NotSent)?;
        // Whoever has another way need not wait for servers that are down, but now and then.
        if wanted.is_optional && self.forward.is_silent(pool) && !self.forward.may_try(pool, now) {
            return Err(Unanswered::Unreachable);
        }
        let (fetching, room) = self.forward.load(pool);
        if fetching >= room {
            self.counters.shed_fetching.bump();
            return Err(Unanswered::NotSent);
        }
        Ok(pool)
    }

    fn begin_forward(&mut self, pool: PoolKey, wanted: &Forward, tag: u32, now: Moment) {
        let query = OutQuery {
            qname: wanted.qname.as_name().to_buf(),
            qtype: wanted.qtype,
            qclass: Class::IN,
            checking_disabled: wanted.validates,
            wants_dnssec: wanted.wants_signatures,
            no_recursion: false,
            client_subnet: wanted.subnet,
            options: Box::default(),
            members: self.forward.members_without(pool, &wanted.refused),
            // Nobody joins it.
            hash: 0,
        };
        let key = self.fetches.vacant_key() as u32;
        self.forward.begin(pool, query, key, now);
        self.for_resolvers += 1;
        let source = Source::ForResolver { tag };
        self.fetches.insert(Shared { source, hash: 0, waiters: Waiters::NOBODY });
    }

    /// Tells a resolver what became of a question that a group was asked.
    pub(super) fn forward_ended(&mut self, tag: u32, ended: &Ended<'_>, now: Moment) {
        self.for_resolvers -= 1;
        let from = ended.from.map(|(server, _)| server);
        let held;
        let message = match &ended.ending {
            Ending::Reply(message) => message,
            Ending::Held(octets) => match Message::parse(octets) {
                Ok(message) => {
                    held = message;
                    &held
                }
                Err(_) => return self.recursion.forwarders_failed(tag, Unanswered::Unreachable, now),
            },
            Ending::Failed(failure) => {
                return self.recursion.forwarders_failed(tag, unanswered(*failure), now);
            }
        };
        self.recursion.heard_forwarders(tag, message, from, now);
    }
}

/// Returns why a group has no answer, as resolvers count it.
const fn unanswered(failure: Failure) -> Unanswered {
    match failure {
        Failure::Timeout => Unanswered::Timeout,
        Failure::Overloaded | Failure::ClientLimit | Failure::Stopping | Failure::NoUpstream => {
            Unanswered::NotSent
        }
        _ => Unanswered::Unreachable,
    }
}
