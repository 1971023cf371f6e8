//! What do the rules of a policy, as people write them, cost a query that they do not concern?
//!
//! Two hundred rules on names, clients, types and flags; none fits, and a last one answers. The
//! difference to the policy that has only the last one is what the rules cost.

use std::hint::black_box;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use config::compile;
use criterion::{Criterion, criterion_group, criterion_main};
use engine::{Client, Engine, ListenerId, Now, Reply, SnapshotCell, Transport, Verdict};
use environment::System;
use settings::load_text;
use wire::{Class, Flags, NameBuf, Question, Rtype, Writer};

/// Writes `count` rules of a mixture that `kind` chooses.
fn policy(count: usize, kind: &str) -> String {
    let rule = |number: usize| match (kind, number % 4) {
        ("names", _) | ("mixed", 0 | 1) => {
            format!("qname in suffix:a.r{number}.example|suffix:b.r{number}.example|exact:r{number}.other")
        }
        ("mixed", 2) => format!("client in 10.{}.0.0/16|2001:db8:{number:x}::/48", number % 256),
        _ => format!("qtype in [TYPE{}, MX] and do", 300 + number),
    };
    let rules = (0..count).map(|number| format!("    - {{if: '{}', do: [mark(1), drop]}}\n", rule(number)));
    format!(
        "upstreams: {{default: {{servers: 192.0.2.1}}}}\npolicy:\n  main:\n{}    - reject(nxdomain)\n",
        rules.collect::<String>()
    )
}

fn engine(text: &str) -> Engine {
    let loaded = load_text(Path::new("bench"), text, &System).expect("no mistakes");
    let plans = compile(&loaded, &[], None, &System).unwrap_or_else(|found| panic!("{}", found[0].line()));
    let (reclaim, _) = std::sync::mpsc::channel();
    let cell = Arc::new(SnapshotCell::new(Arc::clone(&plans.snapshot), reclaim));
    let mut engine = Engine::new(cell, Arc::default());
    engine.begin(Now::new(SystemTime::now(), Duration::ZERO));
    engine
}

fn query() -> Vec<u8> {
    let name: NameBuf = "www.some.example.com".parse().expect("a name");
    let mut query = vec![0; 512];
    let mut writer = Writer::new(&mut query, 512, 7, Flags::RD);
    let question = Question { qname: name.as_name(), qtype: Rtype::A, qclass: Class::IN };
    writer.question(&question).expect("room");
    let len = writer.finish();
    query.truncate(len);
    query
}

fn policies(criterion: &mut Criterion) {
    let client = Client {
        address: IpAddr::from([127, 0, 0, 1]),
        port: 4711,
        transport: Transport::Udp,
        verified: false,
        reply_octets_max: 1232,
        keepalive: None,
        listener: ListenerId::default(),
        connection: 0,
        certificate: None,
    };
    let query = query();
    let mut group = criterion.benchmark_group("policy");
    for (count, kind) in [(0, "mixed"), (200, "mixed"), (200, "names"), (200, "types")] {
        let mut engine = engine(&policy(count, kind));
        group.bench_function(format!("{count} rules that do not fit, {kind}"), |bencher| {
            bencher.iter(|| {
                let mut buffer = [0; 512];
                let mut reply = Reply::new(&mut buffer);
                assert!(matches!(engine.answer(black_box(&query), &client, &mut reply), Verdict::Answered));
                assert_eq!(reply.bytes().get(3).map(|flags| flags & 15), Some(3), "NXDOMAIN");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, policies);
criterion_main!(benches);
