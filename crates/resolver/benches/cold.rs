//! What a name costs of which nothing is known but the servers of its top-level domain.
//!
//! It takes two queries, a referral with glue and an answer, in a network that is a function. The
//! time is that of this thread, without what the network takes to write the replies. Names come one
//! after the other, so nothing is shared; the tables are as full as they get.

#![expect(clippy::print_stdout, reason = "what was measured is what it is for")]

#[path = "network/mod.rs"]
mod network;

use std::hint::black_box;
use std::time::{Duration, Instant};

use network::{TLD, name, reply, resolver};
use resolver::{Arrival, Effect, Moment, Resolver, Waiter};
use wire::{Class, Message, Name, NameBuf, Question, Rtype};

/// Names of a round.
const NAMES: u32 = 20_000;
const ROUNDS: usize = 11;

/// Resolves a name to its end; returns the queries that it took and what the network took.
fn resolve(resolver: &mut Resolver, qname: Name<'_>, clock: &mut Moment) -> (u32, Duration) {
    let question = Question { qname, qtype: Rtype::A, qclass: Class::IN };
    resolver.want(&question, Waiter(1), *clock);
    let mut room = [0; 512];
    let (mut queries, mut network) = (0, Duration::ZERO);
    while let Some(effect) = resolver.next_effect() {
        match effect {
            Effect::Ask(ask) => {
                let began = Instant::now();
                let len = reply(&ask, &mut room);
                let message = Message::parse(room.get(..len).expect("its length")).expect("a message");
                network += began.elapsed();
                queries += 1;
                *clock = clock.after_ms(1);
                resolver.heard(ask.key, &message, Arrival::Udp, *clock);
            }
            Effect::Forward(_) => unreachable!("no name is forwarded"),
            Effect::LookUp(_) | Effect::Store(_) => unreachable!("there is no second-level cache"),
            Effect::Done { resolution, .. } => {
                assert!(resolution.failure.is_none(), "{:?}", resolution.failure);
                black_box(resolution);
            }
        }
    }
    (queries, network)
}

fn main() {
    let mut costs = Vec::new();
    for round in 0..ROUNDS {
        let mut resolver = resolver();
        let mut clock = Moment::default().after_ms(1000);
        let names: Vec<NameBuf> =
            (0..NAMES).map(|number| name(&format!("www.z{number}r{round}.{TLD}"))).collect();
        resolve(&mut resolver, name(&format!("www.first.{TLD}")).as_name(), &mut clock);
        let (mut queries, mut network) = (0, Duration::ZERO);
        let began = Instant::now();
        for name in &names {
            let (asked, took) = resolve(&mut resolver, name.as_name(), &mut clock);
            queries += asked;
            network += took;
        }
        costs.push((began.elapsed().saturating_sub(network) / NAMES, queries));
    }
    costs.sort_unstable();
    let (each, queries) = costs[ROUNDS / 2];
    println!(
        "{:.2} us a cold name, {:.2} queries",
        each.as_secs_f64() * 1e6,
        f64::from(queries) / f64::from(NAMES)
    );
}
