//! What do a hit and a miss in a million rules cost, and what do regular expressions add? Is every
//! answer right?
//!
//! `cargo bench -p gannet-sets`. The rules and the names asked for are made up; each bench asks for
//! 20,000 different names in turn, so that nothing but what fits the processor's own memory stays
//! there.

#![expect(clippy::print_stderr, reason = "a benchmark talks to its user")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sets::{AddressSet, AddressSetBuilder, Lookahead, NameSet, NameSetBuilder, Reach, Sought};
use wire::{Folded, HashKey, Name, NameBuf};

const KEY: HashKey = HashKey::new([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]);
const RULES: u32 = 1_000_000;
const NAMES: u32 = 20_000;
/// Names that are announced together.
const BATCH: usize = 16;
const TOPS: [&str; 8] = ["com", "net", "org", "cn", "de", "io", "example", "co.uk"];
const WORDS: [&str; 16] = [
    "ads", "track", "metric", "pixel", "static", "cdn", "beacon", "shop", "news", "games", "video", "click",
    "mail", "data", "cloud", "login",
];

/// Scatters a number.
const fn scatter(number: u32) -> u32 {
    let number = (number ^ (number >> 16)).wrapping_mul(0x45d9_f3b5);
    (number ^ (number >> 15)).wrapping_mul(0x2c1b_3c6d)
}

/// Returns the name of a rule: seventeen octets on average.
fn rule(number: u32) -> String {
    let chance = scatter(number);
    let word = WORDS[chance as usize % WORDS.len()];
    let top = TOPS[(chance >> 8) as usize % TOPS.len()];
    format!("{word}{number}.{top}")
}

fn million(regexes: u32) -> NameSet {
    let mut builder = NameSetBuilder::new(&KEY);
    builder.source("made up");
    for number in 0..RULES {
        let name = NameBuf::from_text(&rule(number)).expect("a name");
        builder.name(name.as_name(), Reach::ItselfAndBelow, number + 1);
    }
    for number in 0..regexes {
        builder.regex(&regex(number), RULES + number + 1).expect("a regular expression");
    }
    builder.compile()
}

/// Returns an expression such as lists hold: some begin, some end, some have classes and
/// alternatives. Their words are those that the rules are made of, and most of them have a piece
/// that many of the names asked for contain.
fn regex(number: u32) -> String {
    let word = WORDS[scatter(number) as usize % WORDS.len()];
    match number % 5 {
        0 => format!(r"^{word}[0-9]+-{number}\.example\.org$"),
        1 => format!(r"(^|\.){word}{number}[a-z]\.test$"),
        2 => format!(r"^r[0-9]+---sn-{word}{number}\.(invalid|example)$"),
        3 => format!(r"{word}-{number}-[0-9a-f]+\.example\.net$"),
        _ => format!(r"^(.+\.)?{word}{number}x+\.example\.[a-z]{{2,6}}$"),
    }
}

/// Names as they come with queries, close together so that reading them is not what is measured.
#[derive(Default)]
struct Names {
    octets: Vec<u8>,
    ends: Vec<u32>,
}

impl Names {
    fn add(&mut self, text: &str) {
        let name = NameBuf::from_text(text).expect("a name");
        self.octets.extend(name.as_name().as_bytes());
        self.ends.push(self.octets.len() as u32);
    }

    /// Calls `f` with each name, brought into the form in which sets are asked, as it is done for
    /// every query.
    fn each(&self, mut f: impl FnMut(&Sought<'_>)) {
        let mut folded = Folded::root();
        let mut start = 0;
        for &end in &self.ends {
            let (name, _) = Name::parse(&self.octets[start..end as usize]).expect("it was written by us");
            let hash = KEY.fold(name, &mut folded);
            f(&Sought::new(&folded, hash));
            start = end as usize;
        }
    }

    /// Parts them into batches.
    fn batches(&self) -> Vec<Self> {
        let mut begin = 0;
        let batches = self.ends.chunks(BATCH).map(|ends| {
            let end = ends.last().map_or(begin, |&end| end as usize);
            let octets = self.octets[begin..end].to_vec();
            let batch = Self { octets, ends: ends.iter().map(|end| end - begin as u32).collect() };
            begin = end;
            batch
        });
        batches.collect()
    }
}

/// Returns names below rules, and names that no rule covers.
fn names() -> (Names, Names) {
    let (mut hits, mut misses) = (Names::default(), Names::default());
    for number in 0..NAMES {
        hits.add(&format!("www.{}", rule(scatter(number) % RULES)));
        misses.add(&format!("www.{}", rule(RULES + number)));
    }
    (hits, misses)
}

/// Octets of the text of the process that are resident.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok()).map_or(0, |kib| kib << 10)
}

fn count(set: &NameSet, names: &Names) -> usize {
    let mut found = 0;
    names.each(|sought| found += usize::from(set.contains(sought)));
    found
}

fn look_ups(c: &mut Criterion) {
    let before = resident();
    let begin = Instant::now();
    let plain = million(0);
    let built = begin.elapsed();
    eprintln!(
        "1 M rules: {:.2} s from names in memory, {} octets in the set, {} more resident",
        built.as_secs_f64(),
        plain.octets(),
        resident().saturating_sub(before)
    );
    assert_eq!(plain.len(), RULES as usize);
    assert!(plain.octets() <= 24 << 20, "{}", plain.octets());
    let begin = Instant::now();
    let with_regexes = million(163);
    eprintln!(
        "1 M rules and 163 regular expressions: {:.2} s, {} octets",
        begin.elapsed().as_secs_f64(),
        with_regexes.octets()
    );
    let (hits, misses) = names();
    for set in [&plain, &with_regexes] {
        assert_eq!((count(set, &hits), count(set, &misses)), (NAMES as usize, 0));
    }
    let mut group = c.benchmark_group("a name in 1 M rules");
    group.throughput(Throughput::Elements(u64::from(NAMES)));
    for (what, set, names) in [
        ("hit", &plain, &hits),
        ("miss", &plain, &misses),
        ("hit, 163 regular expressions", &with_regexes, &hits),
        ("miss, 163 regular expressions", &with_regexes, &misses),
    ] {
        group.bench_function(what, |b| b.iter(|| count(black_box(set), names)));
    }
    // What of that is not the sets': reading the name, and bringing it into form.
    group.bench_function("no set at all", |b| {
        b.iter(|| {
            let mut sum = 0;
            misses.each(|sought| sum += black_box(sought).hash() & 1);
            sum
        });
    });
    // As a batch is answered: all of it is announced first.
    for (what, names) in [("hit, foreseen", &hits), ("miss, foreseen", &misses)] {
        let batches = names.batches();
        let mut ahead = Lookahead::new();
        group.bench_function(what, |b| {
            b.iter(|| {
                let mut found = 0;
                for batch in &batches {
                    ahead.clear();
                    batch.each(|sought| plain.prefetch_filter(sought, &mut ahead));
                    plain.prefetch_rules(&ahead);
                    found += count(&plain, batch);
                }
                found
            });
        });
    }
    group.finish();
}

/// Syllables that names and regular expressions of lists are made of.
const SYLLABLES: [&str; 24] = [
    "ba", "be", "bo", "da", "di", "do", "fa", "ga", "ho", "ji", "ka", "ko", "la", "lu", "ma", "mi", "no",
    "pa", "ra", "ru", "sa", "shi", "ti", "vo",
];

/// Returns a word of so many syllables; each number has its own.
fn word(number: u32, syllables: u32) -> String {
    let parts = (0..syllables).map(|at| SYLLABLES[(scatter(number) >> (5 * at)) as usize % SYLLABLES.len()]);
    parts.collect()
}

/// A list as published measurements used it: about 144,000 names of two labels, and 163 regular
/// expressions that end in a top-level domain.
fn published(c: &mut Criterion) {
    const PUBLISHED: u32 = 143_840;
    let top = |number: u32| {
        if scatter(number) % 100 < 78 { "com" } else { ["cn", "net", "xyz"][number as usize % 3] }
    };
    let rule = |number: u32| format!("{}{number}.{}", word(number, 4), top(number));
    let build = |regexes: u32| {
        let mut builder = NameSetBuilder::new(&KEY);
        for number in 0..PUBLISHED {
            let name = NameBuf::from_text(&rule(number)).expect("a name");
            builder.name(name.as_name(), Reach::ItselfAndBelow, number + 1);
        }
        for number in 0..regexes {
            let (one, two, top) = (word(number, 2 + number % 3), word(number + 7, 2), top(number));
            let regex = match number % 4 {
                0 => format!(r"(^|\.){one}[0-9]+\.{two}\.{top}$"),
                1 => format!(r".+\.{one}-[a-z]{{2,6}}\.{two}\.{top}$"),
                2 => format!(r"(^|\.){one}(cdn|img|static)[0-9]*\.{top}$"),
                _ => format!(r".+\.{one}{two}[a-z0-9]?\.{top}$"),
            };
            builder.regex(&regex, PUBLISHED + number + 1).expect("a regular expression");
        }
        builder.compile()
    };
    let (plain, with_regexes) = (build(0), build(163));
    let (mut hits, mut misses) = (Names::default(), Names::default());
    for number in 0..NAMES {
        hits.add(&format!("www.{}", rule(scatter(number) % PUBLISHED)));
        misses.add(&format!("www.{}", rule(PUBLISHED + number)));
    }
    for set in [&plain, &with_regexes] {
        assert_eq!((count(set, &hits), count(set, &misses)), (NAMES as usize, 0));
    }
    let mut group = c.benchmark_group("a name in 143,840 rules");
    group.throughput(Throughput::Elements(u64::from(NAMES)));
    for (what, set, names) in [
        ("hit", &plain, &hits),
        ("miss", &plain, &misses),
        ("hit, 163 regular expressions", &with_regexes, &hits),
        ("miss, 163 regular expressions", &with_regexes, &misses),
    ] {
        group.bench_function(what, |b| b.iter(|| count(black_box(set), names)));
    }
    group.finish();
}

fn addresses(c: &mut Criterion) {
    let mut builder = AddressSetBuilder::new();
    for number in 0..10_000 {
        let address = IpAddr::V4(Ipv4Addr::from_bits(scatter(number) & 0xffff_f000));
        assert!(builder.prefix(address, 20 + (number % 5) as u8));
        let high = u128::from(scatter(number)) << 80 | 0x2a00 << 112;
        assert!(builder.prefix(IpAddr::V6(high.into()), 48));
    }
    let set: AddressSet = builder.compile();
    eprintln!("{} ranges: {} octets", set.len(), set.octets());
    let v4: Vec<IpAddr> = (0..4096).map(|n| Ipv4Addr::from_bits(scatter(n * 7 + 1)).into()).collect();
    let v6: Vec<IpAddr> = (0..4096_u32)
        .map(|n| IpAddr::V6((u128::from(scatter(n * 3)) << 80 | 0x2a00 << 112 | 5).into()))
        .collect();
    let mut group = c.benchmark_group("an address in 20,000 prefixes");
    group.throughput(Throughput::Elements(4096));
    for (what, addresses) in [("version 4", &v4), ("version 6", &v6)] {
        let naive = |address: IpAddr| set.ranges().any(|(first, last)| first <= address && address <= last);
        for &address in addresses.iter().take(64) {
            assert_eq!(set.contains(address), naive(address), "{address}");
        }
        group.bench_function(what, |b| {
            b.iter(|| addresses.iter().filter(|&&address| black_box(&set).contains(address)).count());
        });
    }
    group.finish();
}

criterion_group!(benches, look_ups, published, addresses);
criterion_main!(benches);
