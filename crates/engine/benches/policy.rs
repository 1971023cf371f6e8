//! What do the rules of a policy cost a query that they do not concern?
//!
//! Two hundred rules: half of them compare the name with sets of ten suffixes, the others the client and the type. None
//! fits; a last one answers. The difference to the policy that has only the last one is what the rules cost.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use engine::matchers::{Matcher, TypeSet};
use engine::program::Op;
use engine::{Engine, Reply, Verdict};
use sets::{AddressSetBuilder, NameSetBuilder, Reach};
use wire::{NameBuf, Rcode, Rtype};

#[path = "../tests/common/mod.rs"]
mod common;
use common::{Ask, KEY, Server, gate};

const RULES: u32 = 200;

fn rules(count: u32) -> Vec<Op> {
    let mut ops = vec![];
    for rule in 0..count {
        let matcher = match rule % 4 {
            0 | 1 => {
                let mut set = NameSetBuilder::new(&KEY);
                for number in 0..10 {
                    let name: NameBuf = format!("n{number}.rule{rule}.example.com").parse().expect("a name");
                    set.name(name.as_name(), Reach::ItselfAndBelow, number);
                }
                Matcher::Qname(Arc::new(set.compile()))
            }
            2 => {
                let mut set = AddressSetBuilder::new();
                assert!(set.prefix([10, rule as u8, 0, 0].into(), 16));
                Matcher::Client(Arc::new(set.compile()))
            }
            _ => Matcher::Qtype(TypeSet::new([Rtype(300 + rule as u16), Rtype::MX])),
        };
        ops.extend([Op::SkipUnless(matcher, 1), Op::Drop]);
    }
    ops.push(Op::Reject(Rcode::NXDOMAIN, None));
    ops
}

fn policies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("policy");
    for count in [0, RULES] {
        let mut server = Server::with_cache(gate(), 1 << 20, |_| rules(count));
        let query = Ask::new("www.some.example.com", Rtype::A).bytes();
        let client = server.client;
        group.bench_function(format!("{count} rules that do not fit"), |bencher| {
            bencher.iter(|| answer(&mut server.engine, black_box(&query), &client));
        });
    }
    group.finish();
}

fn answer(engine: &mut Engine, query: &[u8], client: &engine::Client) {
    let mut buffer = [0; 512];
    let mut reply = Reply::new(&mut buffer);
    assert!(matches!(engine.answer(query, client, &mut reply), Verdict::Answered));
    assert_eq!(reply.bytes().get(3).map(|flags| flags & 15), Some(3), "NXDOMAIN");
}

criterion_group!(benches, policies);
criterion_main!(benches);
