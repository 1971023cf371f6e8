//! Names of which a resolver knows nothing but the servers of their top-level domain.

use std::collections::HashMap;
use std::hint::black_box;

use resolver::{Arrival, Effect, Moment, Resolver, Waiter};
use wire::{Class, Message, NameBuf, Question, Rtype};

#[path = "../../../crates/resolver/benches/network/mod.rs"]
mod network;
use network::{DOMAIN, TLD, name, reply, resolver};

/// A resolver, names that it has not been asked for, and what servers say to it.
pub(crate) struct Cold {
    resolver: Resolver,
    clock: Moment,
    names: Vec<Expected>,
    next: usize,
}

struct Expected {
    name: NameBuf,
    /// What the server of the domain says, and that of the zone.
    referral: Vec<u8>,
    answer: Vec<u8>,
}

impl Cold {
    /// Makes ready for so many names.
    pub(crate) fn new(count: usize) -> Self {
        let names: Vec<NameBuf> = (0..count).map(|number| name(&format!("www.z{number:06}.{TLD}"))).collect();
        // The same resolver once more: what it asks is what the one that is counted will ask.
        let mut rehearsal = Self { resolver: resolver(), clock: START, names: Vec::new(), next: 0 };
        rehearsal.find(&name(&format!("www.first.{TLD}")), &mut HashMap::new());
        let expected = names.into_iter().map(|name| {
            let mut said = HashMap::new();
            rehearsal.find(&name, &mut said);
            let referral = said.remove(&true).expect("the domain is asked");
            Expected { name, referral, answer: said.remove(&false).expect("the zone is asked") }
        });
        let names = expected.collect();
        let mut cold = Self { resolver: resolver(), clock: START, names, next: 0 };
        cold.find(&name(&format!("www.first.{TLD}")), &mut HashMap::new());
        cold
    }

    /// Resolves a name in the network, and notes what the domain and others said.
    fn find(&mut self, name: &NameBuf, said: &mut HashMap<bool, Vec<u8>>) {
        let question = Question { qname: name.as_name(), qtype: Rtype::A, qclass: Class::IN };
        self.resolver.want(&question, Waiter(1), self.clock);
        let mut room = [0; 512];
        while let Some(effect) = self.resolver.next_effect() {
            let Effect::Ask(ask) = effect else { continue };
            let len = reply(&ask, &mut room);
            let octets = room[..len].to_vec();
            self.clock = self.clock.after_ms(1);
            let message = Message::parse(&octets).expect("a message");
            self.resolver.heard(ask.key, &message, Arrival::Udp, self.clock);
            said.insert(ask.address.ip() == DOMAIN, octets);
        }
    }

    /// Resolves so many names, one after the other.
    pub(crate) fn resolve(&mut self, count: usize) {
        for _ in 0..count {
            let Expected { name, referral, answer } = &self.names[self.next];
            self.next += 1;
            let question = Question { qname: name.as_name(), qtype: Rtype::A, qclass: Class::IN };
            self.resolver.want(&question, Waiter(1), self.clock);
            let mut is_found = false;
            while let Some(effect) = self.resolver.next_effect() {
                match effect {
                    Effect::Ask(ask) => {
                        let octets = if ask.address.ip() == DOMAIN { referral } else { answer };
                        let message = Message::parse(octets).expect("a message");
                        self.clock = self.clock.after_ms(1);
                        self.resolver.heard(ask.key, &message, Arrival::Udp, self.clock);
                    }
                    Effect::Forward(_) => unreachable!("no name is forwarded"),
                    Effect::LookUp(_) | Effect::Store(_) => unreachable!("there is no second-level cache"),
                    Effect::Done { resolution, .. } => {
                        is_found = resolution.failure.is_none();
                        black_box(resolution);
                    }
                }
            }
            assert!(is_found);
        }
    }
}

const START: Moment = Moment(1_000_000);
