//! What resolvers want of second-level caches, and what these say.

use std::sync::Arc;

use authorities::PoolNetwork;
use plan::resolvers::SecondLevelPlan;
use resolver::{LookUp, Store, Unanswered};
use slab::Slab;
use timers::Moment;
use wire::{Class, Message, Question};

use super::{OpenForward, Recursion};
use crate::second_level::entry::{self, Key};

/// Something for a second-level cache to do.
pub(crate) enum ToSecondLevel {
    /// Look a key up, and report by the tag.
    LookUp { tag: u32, plan: Option<Arc<SecondLevelPlan>>, key: Key },
    /// Store an answer.
    Store { plan: Arc<SecondLevelPlan>, store: Store },
}

impl ToSecondLevel {
    /// Returns what a question becomes that the resolver `at` wants looked up.
    pub(super) fn look_up(
        look_up: LookUp,
        at: u32,
        plan: Option<&Arc<SecondLevelPlan>>,
        forwards: &mut Slab<OpenForward>,
    ) -> Self {
        let (qname, qtype) = (look_up.qname.as_name(), look_up.qtype);
        let key = plan.map_or([0; _], |plan| entry::key(qname, qtype, &plan.secret));
        let open = OpenForward { instance: at, key: look_up.key, look_up: Some(look_up) };
        Self::LookUp { tag: forwards.insert(open) as u32, plan: plan.cloned(), key }
    }
}

impl<P: PoolNetwork> Recursion<P> {
    /// Returns the next thing for a second-level cache to do.
    pub(crate) fn next_to_second_level(&mut self) -> Option<ToSecondLevel> {
        self.to_second_level.pop_front()
    }

    /// Returns the time by the calendar, in seconds since 1970.
    pub(crate) const fn unix_seconds(&self, now: Moment) -> u64 {
        self.unix_seconds + now.since(self.unix_at).0 / 1_000_000
    }

    /// A second-level cache has this value for a question, or none.
    pub(crate) fn found(&mut self, tag: u32, value: Option<&mut [u8]>, now: Moment) {
        let unix_seconds = self.unix_seconds(now);
        let look_up = self.forwards.get_mut(tag as usize).and_then(|open| open.look_up.take());
        let message = value.zip(look_up).and_then(|(value, LookUp { qname, qtype, .. })| {
            let question = Question { qname: qname.as_name(), qtype, qclass: Class::IN };
            let written_at = entry::written_at(value)?;
            let message = Message::parse(entry::read(value, &question, unix_seconds)?).ok()?;
            self.tables.stored_forgotten().counts(&question, &message, written_at).then_some(message)
        });
        match message {
            Some(message) => {
                self.counters.second_level_hits.bump();
                self.heard_forwarders(tag, &message, None, now);
            }
            None => self.forwarders_failed(tag, Unanswered::NotSent, now),
        }
    }
}
