//! Many threads on one small cache: every answer is whole and for its question.

use cache::{Ageing, Cache, Entry, Flush, Key, KeyBits, Limits, Now, Security};
use std::sync::atomic::{AtomicU64, Ordering};
use wire::{Class, Flags, HashKey, NameBuf, Rcode, Rtype};

const AGEING: Ageing = Ageing { stale_ttl: 30 };
const ITERATIONS: u32 = if cfg!(miri) { 120 } else { 200_000 };

/// A body that tells its name and whether it is whole: every word is the same mix of name, version
/// and place.
fn body(out: &mut Vec<u8>, name: u32, version: u32) {
    out.clear();
    let words = (name.wrapping_mul(31).wrapping_add(version) % 90) as usize;
    out.extend(name.to_le_bytes());
    out.extend(version.to_le_bytes());
    for i in 0..words {
        out.extend(
            (u64::from(name) << 32 ^ u64::from(version).wrapping_mul(0x9e37_79b9) ^ i as u64).to_le_bytes(),
        );
    }
}

fn random(state: &mut u64) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 32) as u32
}

/// Half of the draws go to eight names, the others to all of them.
fn draw(state: &mut u64, names: u32) -> u32 {
    let number = random(state);
    if number & 1 == 0 { number >> 1 & 7 } else { (number >> 1) % names }
}

fn with_key(cache: &Cache, name: u32, f: impl FnOnce(&Key<'_>)) {
    let mut buf = NameBuf::root();
    buf.push_label(&name.to_le_bytes()).expect("short");
    let folded = buf.as_name().to_folded();
    f(&Key::new(cache.hash_key(), &folded, Rtype::A, Class::IN, KeyBits::NONE, (name % 3) as u16));
}

fn check(octets_max: usize, names: u32) {
    let cache =
        Cache::new(Limits { octets_max }, HashKey::new([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]));
    let hits = AtomicU64::new(0);
    let versions = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 1..=4_u64 {
            let (cache, hits, versions) = (&cache, &hits, &versions);
            scope.spawn(move || {
                let mut state = thread.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let (mut expected, mut out, mut stored) = (Vec::new(), vec![0; 1024], Vec::new());
                for i in 0..ITERATIONS {
                    let name = draw(&mut state, names);
                    with_key(cache, name, |key| {
                        if thread <= 2 || i % 16 == 0 {
                            let version = versions.fetch_add(1, Ordering::Relaxed) as u32;
                            body(&mut stored, name, version);
                            let entry = Entry {
                                body: &stored,
                                ttl_offsets: &[],
                                rcode: Rcode(name as u16 & 0xff),
                                flags: Flags(version as u16),
                                security: Security::Unchecked,
                                answers: 1,
                                authorities: 0,
                                additionals: 0,
                                ttl: 100,
                                stale: 0,
                                ede: None,
                            };
                            let _ = cache.insert(key, &entry, Now(i / 4096));
                        } else if let Some(hit) = cache.lookup(key, Now(i / 4096), &mut out, AGEING) {
                            hits.fetch_add(1, Ordering::Relaxed);
                            let answer = &out[..hit.len];
                            let (found, rest) = answer.split_first_chunk::<4>().expect("a name");
                            let version = u32::from_le_bytes(*rest.first_chunk::<4>().expect("a version"));
                            assert_eq!(u32::from_le_bytes(*found), name);
                            body(&mut expected, name, version);
                            assert_eq!(answer, expected);
                            assert_eq!(
                                (hit.rcode, hit.flags),
                                (Rcode(name as u16 & 0xff), Flags(version as u16))
                            );
                        }
                    });
                    match i % 8192 {
                        100 => {
                            cache.for_each(|view| {
                                let name = u32::from_le_bytes(*view.body.first_chunk().expect("a name"));
                                assert_eq!(
                                    view.name.labels().next(),
                                    Some(&name.to_le_bytes().to_ascii_lowercase()[..])
                                );
                            });
                        }
                        200 if thread == 1 => {
                            with_key(cache, name, |key| {
                                let _ = cache.flush(Flush::Name(key.name()));
                            });
                        }
                        300 if thread == 2 && i > ITERATIONS / 2 => {
                            let _ = cache.flush(Flush::All);
                        }
                        _ => {}
                    }
                }
            });
        }
    });
    assert!(hits.load(Ordering::Relaxed) > 0);
    let mut walked = 0;
    cache.for_each(|_| walked += 1);
    assert_eq!(walked, cache.stats().entries);
}

#[test]
fn answers_are_whole_in_a_cache_that_turns_over_all_the_time() {
    check(12_000, 500);
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes there")]
fn answers_are_whole_in_a_cache_that_keeps_most() {
    check(200_000, 300);
}

#[test]
fn a_refresh_is_claimed_by_one_of_many() {
    let cache = Cache::new(
        Limits { octets_max: 100_000 },
        HashKey::new([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]),
    );
    let claims = AtomicU64::new(0);
    let rounds = if cfg!(miri) { 2 } else { 500 };
    for round in 0..rounds {
        with_key(&cache, 7, |key| {
            let entry = Entry {
                body: &[1; 20],
                ttl_offsets: &[],
                rcode: Rcode::NOERROR,
                flags: Flags(0),
                security: Security::Unchecked,
                answers: 1,
                authorities: 0,
                additionals: 0,
                ttl: 100,
                stale: 0,
                ede: None,
            };
            let _ = cache.insert(key, &entry, Now(round));
        });
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    with_key(&cache, 7, |key| {
                        let mut out = [0; 64];
                        assert!(cache.lookup(key, Now(round), &mut out, AGEING).is_some());
                        if cache.try_claim_refresh(key) {
                            claims.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                });
            }
        });
        assert_eq!(claims.load(Ordering::Relaxed), u64::from(round) + 1);
    }
}
