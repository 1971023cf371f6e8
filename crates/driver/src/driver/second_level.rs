//! What second-level caches are asked, and what they say.

use std::rc::Weak;

use plan::resolvers::Plan;
use timers::Moment;
use wire::{Class, Question};

use super::Driver;
use crate::recursion::ToSecondLevel;
use crate::second_level::entry::{self, VALUE_OCTETS_MAX};
use crate::second_level::{Replies, Surroundings};

impl Driver {
    /// Has connections to the second-level caches of this plan, and to no others.
    pub(super) fn adopt_second_levels(&self, plan: &Plan, now: Moment) {
        let health = |place: &_| self.tables.second_levels().of(place);
        let surroundings = Surroundings {
            replies: Weak::<Self>::clone(&self.me),
            counters: &self.board.counts.recursion,
            health: &health,
        };
        let gone = self.second_levels.borrow_mut().adopt(plan, &surroundings);
        let mut machine = self.machine.borrow_mut();
        gone.into_iter().for_each(|tag| machine.found(tag, None, now));
    }

    /// Hands second-level caches what they are to do. What cannot be looked up is as good as not
    /// found.
    pub(super) fn ask_second_levels(&self, now: Moment) {
        let counters = &self.board.counts.recursion;
        // Ends: each question is looked up once.
        loop {
            let next = self.machine.borrow_mut().next_to_second_level();
            match next {
                None => return,
                Some(ToSecondLevel::LookUp { tag, plan, key }) => {
                    let second_levels = self.second_levels.borrow();
                    if plan.is_some_and(|plan| second_levels.look_up(&plan, &key, tag)) {
                        counters.second_level_queries.bump();
                    } else {
                        counters.second_level_skipped.bump();
                        self.machine.borrow_mut().found(tag, None, now);
                    }
                }
                Some(ToSecondLevel::Store { plan, store }) => {
                    let question =
                        Question { qname: store.qname.as_name(), qtype: store.qtype, qclass: Class::IN };
                    let unix_seconds = self.machine.borrow().unix_seconds(now);
                    let mut written = self.stored.borrow_mut();
                    written.resize(VALUE_OCTETS_MAX, 0);
                    let value = entry::write(&store.resolution, &question, unix_seconds, &mut written);
                    let Some((octets, seconds)) = value else { continue };
                    let key = entry::key(question.qname, question.qtype, &plan.secret);
                    let value = written.get(..octets).unwrap_or(&[]);
                    if !self.second_levels.borrow().store(&plan, &key, value, seconds) {
                        counters.second_level_not_stored.bump();
                    }
                }
            }
        }
    }
}

impl Replies for Driver {
    fn found(&self, values: Vec<(u32, Option<Vec<u8>>)>) {
        let now = self.begin();
        for (tag, value) in values {
            let mut value = value;
            self.machine.borrow_mut().found(tag, value.as_deref_mut(), now);
        }
        self.settle(now);
    }
}
