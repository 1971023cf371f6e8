//! What do a hit, a miss and an insertion cost, and does every answer come out right?
//!
//! `cargo bench -p gannet-cache`. The packet is the one other suites use: 1 answer, 2 name servers,
//! 1 address.

use cache::{Ageing, Cache, Entry, Key, KeyBits, Limits, Now, Security, Stored};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use wire::{Class, Flags, Folded, HashKey, NameBuf, Rcode, Rtype};

const AGEING: Ageing = Ageing { stale_ttl: 30 };
const SECRET: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];
/// Seconds between an insertion and the look-up.
const AGE: u32 = 7;

/// The answer of example.com A with authority and additional sections, after the question: 4
/// records, 114 octets.
fn packet(last: u8) -> (Vec<u8>, [u16; 4]) {
    let mut body = Vec::new();
    let mut offsets = [0; 4];
    let record = |body: &mut Vec<u8>, owner: &[u8], rtype: u16, ttl: u32, rdata: &[u8]| {
        body.extend(owner);
        body.extend(rtype.to_be_bytes());
        body.extend([0, 1]);
        let at = body.len() as u16;
        body.extend(ttl.to_be_bytes());
        body.extend((rdata.len() as u16).to_be_bytes());
        body.extend(rdata);
        at
    };
    offsets[0] = record(&mut body, &[0xc0, 12], 1, 300, &[93, 184, 216, last]);
    offsets[1] = record(&mut body, &[0xc0, 12], 2, 172_800, b"\x03ns1\x07example\x03com\0");
    offsets[2] = record(&mut body, &[0xc0, 12], 2, 172_800, b"\x03ns2\x07example\x03com\0");
    offsets[3] = record(&mut body, b"\x03ns1\x07example\x03com\0", 1, 172_800, &[198, 51, 100, 1]);
    (body, offsets)
}

/// `domain-N.example.com`.
fn name(number: u32) -> Folded {
    let mut name = NameBuf::root();
    for label in [format!("domain-{number}").as_str(), "example", "com"] {
        name.push_label(label.as_bytes()).expect("short");
    }
    name.as_name().to_folded()
}

fn key<'a>(cache: &Cache, name: &'a Folded) -> Key<'a> {
    Key::new(cache.hash_key(), name, Rtype::A, Class::IN, KeyBits::NONE, 0)
}

fn entry<'a>(body: &'a [u8], ttl_offsets: &'a [u16]) -> Entry<'a> {
    Entry {
        body,
        ttl_offsets,
        rcode: Rcode::NOERROR,
        flags: Flags::RA,
        security: Security::Unchecked,
        answers: 1,
        authorities: 2,
        additionals: 1,
        ttl: 300,
        stale: 0,
        ede: None,
    }
}

/// One A record that tells the number of its name.
fn small(number: u32) -> [u8; 16] {
    let [a, b, c, d] = number.to_be_bytes();
    [0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, a, b, c, d]
}

fn filled(count: u32, octets_max: usize) -> (Cache, Vec<Folded>) {
    let cache = Cache::new(Limits { octets_max }, HashKey::new(SECRET));
    let names: Vec<Folded> = (0..count).map(name).collect();
    for (number, name) in names.iter().enumerate() {
        let stored = cache.insert(&key(&cache, name), &entry(&small(number as u32), &[6]), Now(0));
        assert_eq!(stored, Stored::New);
    }
    (cache, names)
}

/// Looks a name up and checks the answer: its address and its age.
fn hit(cache: &Cache, key: &Key<'_>, number: u32, out: &mut [u8]) {
    let hit = cache.lookup(key, Now(AGE), out, AGEING).expect("kept");
    assert_eq!(hit.len, 16);
    let (ttl, address) = (out[6..10].first_chunk().expect("long"), out[12..16].first_chunk().expect("long"));
    assert_eq!(u32::from_be_bytes(*ttl), 300 - AGE);
    assert_eq!(u32::from_be_bytes(*address), number);
}

fn hits(c: &mut Criterion) {
    let mut out = vec![0; 4096];

    let cache = Cache::new(Limits { octets_max: 16 << 20 }, HashKey::new(SECRET));
    let only = name(0);
    let (body, offsets) = packet(34);
    let _ = cache.insert(&key(&cache, &only), &entry(&body, &offsets), Now(0));
    c.bench_function("hit/1 entry, 4 records", |b| {
        let key = key(&cache, &only);
        b.iter(|| {
            let hit = cache.lookup(black_box(&key), Now(AGE), &mut out, AGEING).expect("kept");
            assert_eq!((hit.len, hit.answers), (body.len(), 1));
            assert_eq!(out[6..10], (300 - AGE).to_be_bytes());
            assert_eq!(out[12..16], [93, 184, 216, 34]);
        });
    });
    c.bench_function("hit/1 entry, 4 records, key made from the name", |b| {
        b.iter(|| {
            let key = key(&cache, black_box(&only));
            let hit = cache.lookup(&key, Now(AGE), &mut out, AGEING).expect("kept");
            assert_eq!(hit.len, body.len());
        });
    });

    for (count, octets_max) in [(1, 16 << 20), (1_000, 16 << 20), (1_000_000, 256 << 20)] {
        let (cache, names) = filled(count, octets_max);
        // An order that no prefetcher predicts. The names asked for are laid out in that order,
        // because a server has the query at hand: the misses to be seen are the cache's.
        let mut state = 1_u32;
        let asked: Vec<(Folded, u32)> = (0..1 << 17)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let number = ((u64::from(state) * u64::from(count)) >> 32) as u32;
                (names[number as usize], number)
            })
            // The few whose entry was pushed out of a full bucket are not asked for.
            .filter(|(name, _)| cache.lookup(&key(&cache, name), Now(AGE), &mut out, AGEING).is_some())
            .collect();
        drop(names);
        let keys: Vec<(Key<'_>, u32)> =
            asked.iter().map(|(name, number)| (key(&cache, name), *number)).collect();
        let mut next = keys.iter().cycle();
        c.bench_function(&format!("hit/{count} entries, random order"), |b| {
            b.iter_batched_ref(
                || {
                    let (key, number) = *next.next().expect("endless");
                    // The server has just read the name from the query.
                    black_box(
                        key.name().as_bytes().iter().fold(0, |sum: u8, &octet| sum.wrapping_add(octet)),
                    );
                    (key, number)
                },
                |(key, number)| hit(&cache, key, *number, &mut out),
                BatchSize::NumIterations(1024),
            );
        });
    }
}

fn misses(c: &mut Criterion) {
    let mut out = vec![0; 4096];
    let empty = Cache::new(Limits { octets_max: 16 << 20 }, HashKey::new(SECRET));
    let unknown = name(99_999_999);
    c.bench_function("miss/empty", |b| {
        let key = key(&empty, &unknown);
        b.iter(|| assert!(empty.lookup(black_box(&key), Now(AGE), &mut out, AGEING).is_none()));
    });
    let (cache, _names) = filled(1_000_000, 256 << 20);
    let names: Vec<Folded> = (2_000_000..2_100_000).map(name).collect();
    let keys: Vec<Key<'_>> = names.iter().map(|name| key(&cache, name)).collect();
    let mut next = keys.iter().cycle();
    c.bench_function("miss/1000000 entries", |b| {
        b.iter_batched_ref(
            || *next.next().expect("endless"),
            |key| assert!(cache.lookup(key, Now(AGE), &mut out, AGEING).is_none()),
            BatchSize::NumIterations(1024),
        );
    });
}

fn inserts(c: &mut Criterion) {
    let (body, offsets) = packet(34);
    let names: Vec<Folded> = (0..1_000_000).map(name).collect();
    for (what, octets_max) in [("with room", 1 << 30), ("into a full cache", 16 << 20)] {
        let cache = Cache::new(Limits { octets_max }, HashKey::new(SECRET));
        let keys: Vec<Key<'_>> = names.iter().map(|name| key(&cache, name)).collect();
        let mut next = keys.iter().cycle();
        if octets_max < 1 << 30 {
            for key in &keys {
                let _ = cache.insert(key, &entry(&body, &offsets), Now(0));
            }
        }
        c.bench_function(&format!("insert/{what}, 4 records"), |b| {
            b.iter_batched_ref(
                || *next.next().expect("endless"),
                |key| {
                    let stored = cache.insert(key, &entry(&body, &offsets), Now(0));
                    assert!(!matches!(stored, Stored::Refused(_)));
                },
                BatchSize::NumIterations(1024),
            );
        });
    }
}

/// N answers out of 100 names, key made from the name each time.
fn throughput(c: &mut Criterion) {
    let (cache, names) = filled(100, 16 << 20);
    let mut out = vec![0; 4096];
    let mut group = c.benchmark_group("throughput");
    for count in [1_u32, 10, 100] {
        group.throughput(Throughput::Elements(u64::from(count)));
        group.bench_function(count.to_string(), |b| {
            b.iter(|| {
                for (number, name) in (0..count).zip(&names) {
                    hit(&cache, &key(&cache, black_box(name)), number, &mut out);
                }
            });
        });
    }
}

criterion_group!(benches, hits, misses, inserts, throughput);
criterion_main!(benches);
