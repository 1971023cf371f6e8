//! What does a million answers take, and how long does finding one take?
//!
//! `cargo run --release -p gannet-cache --example million [MEGABYTES]`

#![allow(clippy::print_stdout, reason = "printing is what it does")]

use cache::{Ageing, Cache, Entry, Key, KeyBits, Limits, Now, Security};
use std::time::Instant;
use wire::{Class, Flags, Folded, HashKey, NameBuf, Rcode, Rtype};

const ENTRIES: u32 = 1_000_000;
const ASKED: usize = 1 << 16;
const ROUNDS: u32 = 30;

/// Octets of memory that are resident.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0) * 1024
}

/// A name of 25 octets.
fn name(i: u32) -> Folded {
    let mut name = NameBuf::root();
    for label in [format!("n{i:010}").as_str(), "example", "org"] {
        name.push_label(label.as_bytes()).expect("short");
    }
    name.as_name().to_folded()
}

fn key<'a>(cache: &Cache, name: &'a Folded) -> Key<'a> {
    Key::new(cache.hash_key(), name, Rtype::A, Class::IN, KeyBits::NONE, 0)
}

fn main() {
    let megabytes = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(120);
    let before = resident();
    let secret = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];
    let cache = Cache::new(Limits { octets_max: megabytes * 1_000_000 }, HashKey::new(secret));
    println!("{megabytes} MB at most, {} octets resident when new", resident() - before);
    let start = Instant::now();
    for i in 0..ENTRIES {
        let [a, b, c, d] = i.to_be_bytes();
        let entry = Entry {
            body: &[0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, a, b, c, d],
            ttl_offsets: &[6],
            rcode: Rcode::NOERROR,
            flags: Flags::RA,
            security: Security::Unchecked,
            answers: 1,
            authorities: 0,
            additionals: 0,
            ttl: 300,
            stale: 0,
            ede: None,
        };
        let _ = cache.insert(&key(&cache, &name(i)), &entry, Now(0));
        if i == 9_999 {
            println!("{} octets resident after 10,000 answers", resident() - before);
        }
    }
    println!("{} ns per insertion, name made included", start.elapsed().as_nanos() / u128::from(ENTRIES));
    let (stats, resident) = (cache.stats(), resident() - before);
    println!("{stats:?}");
    println!("{resident} octets resident, {} per entry", resident as u64 / stats.entries);

    let mut state = 1_u32;
    let names: Vec<(Folded, u32)> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let i = ((u64::from(state) * u64::from(ENTRIES)) >> 32) as u32;
        (name(i), i)
    })
    .take(ASKED)
    .collect();
    let mut out = [0; 512];
    let mut best = u128::MAX;
    let mut found = 0;
    for _ in 0..ROUNDS {
        found = 0;
        let mut took = 0;
        for names in names.chunks(256) {
            let keys: Vec<(Key<'_>, u32)> = names.iter().map(|(name, i)| (key(&cache, name), *i)).collect();
            let start = Instant::now();
            for (key, i) in &keys {
                if let Some(hit) = cache.lookup(key, Now(7), &mut out, Ageing { stale_ttl: 30 }) {
                    found += 1;
                    assert_eq!((hit.len, &out[12..16]), (16, &i.to_be_bytes()[..]));
                }
            }
            took += start.elapsed().as_nanos();
        }
        best = best.min(took / ASKED as u128);
    }
    println!("{found} of {ASKED} found; {best} ns per look-up in random order, best of {ROUNDS} rounds");
}
