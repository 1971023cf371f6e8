//! What do the rules of a policy cost a query that they do not concern? What does a query cost that
//! is compared with a million names, alone and in a batch? What does it cost that a query is told
//! of, with its way through the policy?
//!
//! Two hundred rules: half of them compare the name with sets of ten suffixes, the others the
//! client and the type. None fits; a last one answers. The difference to the policy that has only
//! the last one is what the rules cost.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::matchers::{Matcher, TypeSet};
use engine::ops::cache::CacheRules;
use engine::ops::event::EventStep;
use engine::program::Op;
use engine::{Engine, Reply, Verdict};
use events::{EventId, ring};
use sets::{AddressSetBuilder, NameSetBuilder, Reach};
use wire::{NameBuf, Rcode, Rtype};

#[path = "../tests/common/mod.rs"]
mod common;
use common::{Ask, KEY, Server, gate, usual, with_address};

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
        let client = server.client.clone();
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

/// Returns the name of one of a million rules, or of another.
fn one_of_many(number: u32) -> String {
    let top = ["com", "net", "org", "de"][number as usize % 4];
    format!("n{}.{top}", number.wrapping_mul(0x9e37_79b1))
}

fn million(criterion: &mut Criterion) {
    const MANY: u32 = 1_000_000;
    const ASKED: usize = 1 << 15;
    const BATCH: usize = 32;
    let mut set = NameSetBuilder::new(&KEY);
    for number in 0..MANY {
        let name: NameBuf = one_of_many(number).parse().expect("a name");
        set.name(name.as_name(), Reach::ItselfAndBelow, number + 1);
    }
    let set = Arc::new(set.compile());
    let mut server = Server::with_cache(gate(), 1 << 20, |_| {
        vec![
            Op::SkipUnless(Matcher::Qname(Arc::clone(&set)), 1),
            Op::Reject(Rcode::REFUSED, None),
            Op::Reject(Rcode::NXDOMAIN, None),
        ]
    });
    let client = server.client.clone();
    let mut group = criterion.benchmark_group("policy");
    group.throughput(Throughput::Elements(BATCH as u64));
    for (what, first, rcode) in [("in", 0, Rcode::REFUSED), ("not in", MANY, Rcode::NXDOMAIN)] {
        // One behind the other, as a receive buffer holds them.
        let mut octets = vec![];
        let mut ends = vec![];
        for number in 0..ASKED as u32 {
            let name = one_of_many(first + number.wrapping_mul(0x45d9_f3b5) % MANY);
            octets.extend(Ask::new(&format!("www.{name}"), Rtype::A).bytes());
            ends.push(octets.len());
        }
        let query = |i: usize| &octets[if i == 0 { 0 } else { ends[i - 1] }..ends[i]];
        for prefetches_lines in [false, true] {
            let how = if prefetches_lines { "in batches" } else { "one by one" };
            let mut at = 0;
            group.bench_function(format!("a name {what} 1 M rules, {how}"), |bencher| {
                bencher.iter(|| {
                    at = (at + BATCH) % ASKED;
                    if prefetches_lines {
                        server.engine.prefetch_lines((at..at + BATCH).map(query));
                    }
                    for i in at..at + BATCH {
                        let mut buffer = [0; 512];
                        let mut reply = Reply::new(&mut buffer);
                        assert!(matches!(
                            server.engine.answer(query(i), &client, &mut reply),
                            Verdict::Answered
                        ));
                        assert_eq!(reply.bytes().get(3).map(|flags| flags & 15), Some(rcode.0 as u8));
                    }
                });
            });
        }
    }
    group.finish();
}

/// A hit in a small cache, told of or not, and what reading the record costs whoever reads it.
fn with_events(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("policy");
    let ask = Ask::new("www.example.org", Rtype::A).edns(1232);
    let (writer, mut reader) = ring(1 << 18, Arc::default());
    let mut server = Server::with(gate(), |cache| usual(cache, CacheRules::default()));
    server.fetch(&ask, &with_address(&ask, 300, [192, 0, 2, 1]));
    let mut told = Server::noting_path(gate(), |cache| {
        let mut ops = vec![Op::Event(EventStep::Emit { id: EventId(0), share: None, is_urgent: false })];
        ops.extend(usual(cache, CacheRules::default()));
        ops
    });
    told.engine = told.engine.with_events(writer);
    told.fetch(&ask, &with_address(&ask, 300, [192, 0, 2, 1]));
    let (query, client, mut words) = (ask.bytes(), server.client, Vec::new());
    let hit = |engine: &mut Engine| {
        let mut buffer = [0; 512];
        let mut reply = Reply::new(&mut buffer);
        assert!(matches!(engine.answer(black_box(&query), &client, &mut reply), Verdict::Answered));
    };
    group.bench_function("a hit that nobody is told of", |bencher| bencher.iter(|| hit(&mut server.engine)));
    group.bench_function("a hit that is told of and read", |bencher| {
        bencher.iter(|| {
            hit(&mut told.engine);
            words.clear();
            while reader.read_behind(&mut words) {}
        });
    });
    // Nobody reads: the ring is full.
    group.bench_function("a hit that finds no room to be told", |bencher| {
        bencher.iter(|| hit(&mut told.engine));
    });
    group.finish();
}

criterion_group!(benches, policies, million, with_events);
criterion_main!(benches);
