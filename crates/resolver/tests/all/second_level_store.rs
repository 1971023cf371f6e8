//! The second-level cache of a small internet.

use std::collections::BTreeMap;

use resolver::{LookUp, Store, Unanswered};
use wire::{Class, Message, Question};

use super::World;

/// What it has, as messages by `NAME TYPE`, and what it was asked for.
#[derive(Clone, Default)]
pub(crate) struct SecondLevelStore {
    pub(crate) has: BTreeMap<String, Vec<u8>>,
    pub(crate) asked: Vec<String>,
}

impl World {
    pub(super) fn look_up(&mut self, worker: usize, look_up: &LookUp) {
        let question = format!("{} {}", look_up.qname, look_up.qtype);
        let found = self.second_level.has.get(&question).cloned();
        self.second_level.asked.push(question);
        let now = self.now;
        let resolver = self.worker(worker);
        match found {
            Some(octets) => {
                let message = Message::parse(&octets).expect("well formed");
                resolver.heard_forwarders(look_up.key, &message, None, now);
            }
            None => resolver.forwarders_failed(look_up.key, Unanswered::NotSent, now),
        }
    }

    pub(super) fn store(&mut self, store: &Store) {
        let question = Question { qname: store.qname.as_name(), qtype: store.qtype, qclass: Class::IN };
        let mut octets = vec![0; wire::MESSAGE_OCTETS_MAX];
        let len = store.resolution.write(&question, true, &mut octets).expect("there is room");
        octets.truncate(len);
        self.second_level.has.insert(format!("{} {}", store.qname, store.qtype), octets);
    }
}
