//! How long it takes to answer from a zone of a million names, and to load it.

#![expect(clippy::print_stderr, reason = "a benchmark talks to its user")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use wire::{Class, Flags, HashKey, Name, NameBuf, Question, Rcode, Rtype, Writer};
use zone::master::NoIncludes;
use zone::{Asked, Zones, load};

const KEY: HashKey = HashKey::new([3, 5]);
const NAMES: u32 = 1_000_000;
/// Questions asked in turn: more than any cache of the processor keeps the answers of.
const QUESTIONS: usize = 1 << 16;

fn text(names: u32) -> String {
    use std::fmt::Write;
    let mut text = String::from("$TTL 3600\n@ SOA ns admin 1 7200 600 86400 300\n@ NS ns\nns A 192.0.2.1\n");
    for i in 0..names {
        let [_, b, c, d] = i.to_be_bytes();
        writeln!(text, "host{i:06} IN A 10.{b}.{c}.{d}").expect("a string takes all");
    }
    text
}

fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

/// Names in an order that memory cannot predict, one behind the other: a server has just received
/// what it is asked, so that the wait for the question's own octets is no part of the answer.
fn questions(make: impl Fn(u32) -> String) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut octets = Vec::new();
    for _ in 0..QUESTIONS {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let qname = name(&make(((u64::from(state) * u64::from(NAMES)) >> 32) as u32));
        octets.extend_from_slice(qname.as_name().as_bytes());
    }
    octets
}

fn names(mut octets: &[u8]) -> Vec<Name<'_>> {
    let mut names = Vec::with_capacity(QUESTIONS);
    while !octets.is_empty() {
        let (name, rest) = Name::parse(octets).expect("a name");
        names.push(name);
        octets = rest;
    }
    names
}

fn ask(zones: &Zones, qname: Name<'_>, buffer: &mut [u8]) -> (Rcode, usize, [u16; 3]) {
    let mut writer = Writer::new(buffer, 1232, 1, Flags::QR);
    let question = Question { qname, qtype: Rtype::A, qclass: Class::IN };
    writer.question(&question).expect("room");
    let asked = Asked::new(qname, Rtype::A, false);
    let answered = zones.answer(&asked, &mut writer).expect("a zone of ours");
    let counts = writer.counts();
    (answered.rcode, writer.finish(), counts)
}

/// Returns what the kernel says about the memory of this process.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines: Vec<&str> =
        status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM")).collect();
    lines.join(", ").replace(['\t', ' '], "")
}

fn answers(c: &mut Criterion) {
    let text = text(NAMES);
    let apex = name("example.org");
    let loaded = load(apex.as_name(), "zone", text.as_bytes(), &mut NoIncludes, KEY);
    let zone = loaded.zone.expect("a sound zone");
    assert_eq!(zone.facts().names, NAMES as usize + 2);
    drop(text);
    eprintln!("octets of the zone: {}, resident: {}", zone.octets(), resident());
    let zones = Zones::new(KEY, vec![Arc::new(zone)]);
    let mut buffer = [0; 1232];
    let present = questions(|i| format!("host{i:06}.example.org"));
    let present = names(&present);
    let absent = questions(|i| format!("none{i:06}.example.org"));
    let absent = names(&absent);
    let mut at = 0;
    c.bench_function("a positive answer, 1 M names, random order", |b| {
        b.iter(|| {
            at = (at + 1) % QUESTIONS;
            let done = ask(&zones, black_box(present[at]), &mut buffer);
            assert!(done.0 == Rcode::NOERROR && done.2 == [1, 0, 0]);
        });
    });
    let mut batch = 0;
    c.bench_function(
        "32 positive answers, prefetched together as the engine does, 1 M names, random order",
        |b| {
            b.iter(|| {
                batch = (batch + 32) % QUESTIONS;
                let questions = &present[batch..batch + 32];
                zones.prefetch_lines(black_box(questions).iter().copied());
                for &question in questions {
                    let done = ask(&zones, question, &mut buffer);
                    assert!(done.0 == Rcode::NOERROR && done.2 == [1, 0, 0]);
                }
            });
        },
    );
    c.bench_function("NXDOMAIN, 1 M names, random order", |b| {
        b.iter(|| {
            at = (at + 1) % QUESTIONS;
            let done = ask(&zones, black_box(absent[at]), &mut buffer);
            assert!(done.0 == Rcode::NXDOMAIN && done.2 == [0, 1, 0]);
        });
    });
    let one = name("host000001.example.org");
    c.bench_function("a positive answer, one name again and again", |b| {
        b.iter(|| {
            let done = ask(&zones, black_box(one.as_name()), &mut buffer);
            assert!(done.0 == Rcode::NOERROR && done.2 == [1, 0, 0]);
        });
    });
}

fn loading(c: &mut Criterion) {
    let apex = name("example.org");
    let text = text(NAMES);
    let mut group = c.benchmark_group("loading");
    group.sample_size(10);
    group.bench_function("1 M names with one A each, from text", |b| {
        b.iter(|| {
            let loaded = load(apex.as_name(), "zone", black_box(text.as_bytes()), &mut NoIncludes, KEY);
            assert_eq!(loaded.zone.expect("a sound zone").facts().records, NAMES as usize + 3);
        });
    });
    group.finish();
}

criterion_group!(benches, answers, loading);
criterion_main!(benches);
