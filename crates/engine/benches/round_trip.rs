//! What does one query cost from its bytes to the reply's bytes?
//!
//! `cached` is the case that Numa's suite calls `round_trip_cached`: parse a one-question query,
//! look it up, build the reply. Each case asserts its answer first.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::ops::cache::CacheRules;
use engine::{Engine, Reply, Verdict};
use wire::{Flags, Rcode, Rtype};

#[path = "../tests/common/mod.rs"]
mod common;
use common::{Ask, Server, gate, header, seen, usual, with_address};

fn answer_all<'q>(
    engine: &mut Engine,
    client: &engine::Client,
    queries: impl IntoIterator<Item = &'q [u8]>,
    buf: &mut [u8],
) {
    for query in queries {
        let mut reply = Reply::new(buf);
        let verdict = engine.answer(black_box(query), client, &mut reply);
        assert!(matches!(verdict, Verdict::Answered));
        black_box(reply.bytes());
    }
}

/// Queries one behind the other, as a receive buffer holds them: reading them costs next to
/// nothing.
struct Queries {
    octets: Vec<u8>,
    ends: Vec<usize>,
}

impl Queries {
    fn new(queries: &[Vec<u8>]) -> Self {
        let (mut octets, mut ends) = (vec![], vec![]);
        for query in queries {
            octets.extend_from_slice(query);
            ends.push(octets.len());
        }
        Self { octets, ends }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn query(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.octets[start..self.ends[i]]
    }
}

fn filled(names: u32) -> (Server, Queries) {
    let rules = CacheRules { prefetch_percent: 0, ..CacheRules::default() };
    let mut server = Server::with_cache(gate(), 256 << 20, |cache| usual(cache, rules));
    let mut queries = vec![];
    for i in 0..names {
        let mut ask = Ask::new(&format!("domain-{i}.example.com"), Rtype::A);
        ask.flags = Flags::RD;
        server.fetch(&ask, &with_address(&ask, 3600, i.to_be_bytes()));
        queries.push(ask.bytes());
    }
    // A full bucket pushes an entry out now and then: what is measured is hits.
    let client = server.client.clone();
    let mut buf = [0; 1232];
    queries.retain(|query| {
        matches!(server.engine.answer(query, &client, &mut Reply::new(&mut buf)), Verdict::Answered)
    });
    assert!(queries.len() as u32 >= names - names / 1000, "{} of {names} kept", queries.len());
    // A fixed shuffle: neighbours in memory are not neighbours in time.
    let mut state = 1_u64;
    for i in (1..queries.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        queries.swap(i, (state >> 33) as usize % (i + 1));
    }
    (server, Queries::new(&queries))
}

/// Filling a million names takes a while: not for a case that the command line leaves out.
fn is_left_out(case: &str) -> bool {
    let filter = std::env::args().skip(1).find(|word| word.contains("cached"));
    filter.is_some_and(|filter| match filter.strip_suffix('$') {
        Some(end) => !case.ends_with(end),
        None => !case.contains(&filter),
    })
}

fn cached(c: &mut Criterion) {
    let mut group = c.benchmark_group("round_trip");
    for names in [1_u32, 1_000, 1_000_000] {
        if is_left_out(&format!("cached/{names}")) {
            continue;
        }
        let (mut server, queries) = filled(names);
        let reply = server.ask(&Ask::new("domain-0.example.com", Rtype::A)).answered();
        assert_eq!(seen(&reply).answers, [(1, 3600, vec![0, 0, 0, 0])]);
        let mut buf = [0; 1232];
        let mut at = 0;
        let client = server.client.clone();
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("cached/{names}"), |b| {
            b.iter(|| {
                at = if at + 1 < queries.len() { at + 1 } else { 0 };
                answer_all(&mut server.engine, &client, [queries.query(at)], &mut buf);
            });
        });
    }
    if !is_left_out("cached_in_batches/1000000") {
        // As a listener does it: a batch is announced, then answered.
        const BATCH: usize = 32;
        let (mut server, queries) = filled(1_000_000);
        let client = server.client.clone();
        let mut buf = [0; 1232];
        let mut at = 0;
        server.wait(1);
        group.throughput(Throughput::Elements(BATCH as u64));
        group.bench_function("cached_in_batches/1000000", |b| {
            b.iter(|| {
                at = if at + 2 * BATCH <= queries.len() { at + BATCH } else { 0 };
                let batch = || (at..at + BATCH).map(|i| queries.query(i));
                server.engine.prefetch_lines(batch());
                answer_all(&mut server.engine, &client, batch(), &mut buf);
            });
        });
    }
    for batch in [1_usize, 10, 100] {
        let (mut server, queries) = filled(100);
        let client = server.client.clone();
        let mut buf = [0; 1232];
        group.throughput(Throughput::Elements(batch as u64));
        group.bench_function(format!("throughput/{batch}"), |b| {
            b.iter(|| {
                answer_all(&mut server.engine, &client, (0..batch).map(|i| queries.query(i)), &mut buf);
            });
        });
    }
    group.finish();
}

fn others(c: &mut Criterion) {
    let mut group = c.benchmark_group("round_trip");
    let mut server = Server::new(CacheRules::default());
    let client = server.client.clone();
    let mut buf = [0; 1232];
    for (case, ask, rcode) in [
        ("local", Ask::new("nas.home.arpa", Rtype::A), Rcode::NOERROR),
        ("local_nxdomain", Ask::new("no.such.invalid", Rtype::A), Rcode::NXDOMAIN),
        ("any", Ask::new("example.org", Rtype::ANY), Rcode::NOERROR),
        ("local_edns", Ask::new("nas.home.arpa", Rtype::A).edns(1232), Rcode::NOERROR),
    ] {
        assert_eq!(header(&server.ask(&ask).answered()).flags.rcode(), rcode);
        let query = ask.bytes();
        group.throughput(Throughput::Elements(1));
        group.bench_function(case, |b| {
            b.iter(|| answer_all(&mut server.engine, &client, [query.as_slice()], &mut buf));
        });
    }
    group.finish();
}

criterion_group!(benches, cached, others);
criterion_main!(benches);
