//! What does a reload cost when a list of a million names did not change, and what when it did?
//!
//! From the text of the configuration to what a server takes into use. The list is a file; the
//! first compilation is told once, because a set is made from nothing only once.

#![expect(clippy::print_stderr, reason = "a benchmark talks to its user")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use config::{Plans, compile};
use criterion::{Criterion, criterion_group, criterion_main};
use environment::System;
use settings::load_text;
use tempfile::TempDir;

const RULES: usize = 1_000_000;

/// Scatters a number, so that the names are in no order.
const fn scatter(number: usize) -> u32 {
    (number as u32).wrapping_mul(0x9e37_79b1)
}

fn plans(text: &str, previous: Option<&Plans>) -> Plans {
    let loaded = load_text(Path::new("bench"), text, &System).expect("no mistakes");
    compile(&loaded, &[], previous, &System).unwrap_or_else(|found| panic!("{}", found[0].line()))
}

fn fresh(plans: &Plans) -> usize {
    plans.sets.fresh().count()
}

fn reload(criterion: &mut Criterion) {
    let directory = TempDir::new().expect("a temporary directory");
    let file = directory.path().join("list");
    let mut list = String::new();
    for number in 0..RULES {
        writeln!(list, "domain{}.{}", scatter(number), ["com", "net", "org", "de"][number % 4])
            .expect("text");
    }
    std::fs::write(&file, &list).expect("a file");
    let text = format!(
        "upstreams: {{default: {{servers: 192.0.2.1}}}}\nsets: {{many: {{lists: \"names:{}\"}}}}\npolicy:\n  main:\n    \
         - {{if: qname in many, do: reject(refused)}}\n    - reject(nxdomain)\n",
        file.display()
    );
    let begin = Instant::now();
    let running = plans(&text, None);
    let took = begin.elapsed();
    let (_, set) = running.sets.fresh().next().expect("the set was made");
    assert_eq!(set.set.rules, RULES);
    eprintln!(
        "1 M rules from a file of {} octets: {:.2} s, {} octets",
        list.len(),
        took.as_secs_f64(),
        set.set.octets
    );
    let mut group = criterion.benchmark_group("reload");
    group.bench_function("1 M rules that did not change", |bencher| {
        bencher.iter(|| {
            let plans = plans(&text, Some(&running));
            assert_eq!(fresh(&plans), 0, "nothing is made anew");
            black_box(plans)
        });
    });
    group.finish();
}

criterion_group!(benches, reload);
criterion_main!(benches);
