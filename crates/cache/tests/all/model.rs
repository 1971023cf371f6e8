//! The cache against a map that never forgets: an answer is the one stored last, or none.

#![cfg(not(miri))]

use cache::{Ageing, Cache, Entry, Flush, Freshness, Key, KeyBits, Limits, Now, Security, Stored};
use proptest::prelude::*;
use std::collections::HashMap;
use wire::{Class, Flags, Folded, HashKey, NameBuf, Rcode, Rtype};

const AGEING: Ageing = Ageing { stale_ttl: 30 };

#[derive(Clone, Debug)]
enum Step {
    Insert { name: u16, qtype: u16, octets: usize, ttl: u32, stale: u32 },
    Look { name: u16, qtype: u16 },
    Claim { name: u16, qtype: u16 },
    Flush { name: u16 },
    FlushAll,
    Wait { seconds: u32 },
}

fn step(names: u16) -> impl Strategy<Value = Step> {
    let name = 0..names;
    let qtype = 1..3_u16;
    prop_oneof![
        8 => (name.clone(), qtype.clone(), 0..700_usize, 0..50_u32, 0..20_u32)
            .prop_map(|(name, qtype, octets, ttl, stale)| Step::Insert { name, qtype, octets, ttl, stale }),
        12 => (name.clone(), qtype.clone()).prop_map(|(name, qtype)| Step::Look { name, qtype }),
        1 => (name.clone(), qtype).prop_map(|(name, qtype)| Step::Claim { name, qtype }),
        1 => name.prop_map(|name| Step::Flush { name }),
        1 => (0..200_u32).prop_map(|draw| if draw == 0 { Step::FlushAll } else { Step::Wait { seconds: draw % 9 } }),
    ]
}

struct Known {
    body: Vec<u8>,
    stored_at: u32,
    ttl: u32,
    stale: u32,
    claimed: bool,
}

fn name_of(number: u16) -> Folded {
    let mut name = NameBuf::root();
    name.push_label(&vec![b'a' + (number % 26) as u8; 1 + usize::from(number) % 40]).expect("short");
    name.push_label(number.to_string().as_bytes()).expect("short");
    name.as_name().to_folded()
}

/// Runs the steps; returns how many look-ups found something.
fn check(octets_max: usize, steps: &[Step]) -> usize {
    let cache =
        Cache::new(Limits { octets_max }, HashKey::new([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]));
    let mut model: HashMap<(u16, u16), Known> = HashMap::new();
    let (mut now, mut serial, mut found) = (1000, 0_u32, 0);
    let mut out = vec![0; 1024];
    for step in steps {
        match *step {
            Step::Insert { name, qtype, octets, ttl, stale } => {
                serial += 1;
                let body: Vec<u8> = serial.to_be_bytes().into_iter().cycle().take(octets).collect();
                let entry = Entry {
                    body: &body,
                    ttl_offsets: &[],
                    rcode: Rcode::NOERROR,
                    flags: Flags(0),
                    security: Security::Unchecked,
                    answers: 1,
                    authorities: 0,
                    additionals: 0,
                    ttl,
                    stale,
                    ede: None,
                };
                let folded = name_of(name);
                let key = Key::new(cache.hash_key(), &folded, Rtype(qtype), Class::IN, KeyBits::NONE, 0);
                if matches!(cache.insert(&key, &entry, Now(now)), Stored::Refused(_)) {
                    assert!(ttl == 0 && stale == 0 || octets_max < 20_000);
                } else {
                    model.insert((name, qtype), Known { body, stored_at: now, ttl, stale, claimed: false });
                }
            }
            Step::Look { name, qtype } => {
                let folded = name_of(name);
                let key = Key::new(cache.hash_key(), &folded, Rtype(qtype), Class::IN, KeyBits::NONE, 0);
                if let Some(hit) = cache.lookup(&key, Now(now), &mut out, AGEING) {
                    found += 1;
                    let known = &model[&(name, qtype)];
                    assert_eq!(out[..hit.len], known.body);
                    let age = now - known.stored_at;
                    assert_eq!((hit.age, hit.original_ttl), (age, known.ttl));
                    assert_eq!(hit.refresh_claimed, known.claimed);
                    match hit.freshness {
                        Freshness::Fresh { left } => assert_eq!(left, known.ttl - age),
                        Freshness::Stale { since } => {
                            assert_eq!(since, age - known.ttl);
                            assert!(since < known.stale);
                        }
                    }
                }
            }
            Step::Claim { name, qtype } => {
                let folded = name_of(name);
                let key = Key::new(cache.hash_key(), &folded, Rtype(qtype), Class::IN, KeyBits::NONE, 0);
                if cache.try_claim_refresh(&key) {
                    let known = model.get_mut(&(name, qtype)).expect("what is claimed is known");
                    assert!(!std::mem::replace(&mut known.claimed, true));
                }
            }
            Step::Flush { name } => {
                let before = cache.stats().entries;
                let flushed = cache.flush(Flush::Name(name_of(name).as_name()));
                assert_eq!(cache.stats().entries, before - flushed as u64);
                model.retain(|&(other, _), _| other != name);
            }
            Step::FlushAll => {
                let before = cache.stats().entries;
                assert_eq!(cache.flush(Flush::All) as u64, before);
                model.clear();
            }
            Step::Wait { seconds } => now += seconds,
        }
        let stats = cache.stats();
        assert!(stats.octets <= stats.octets_max);
        assert!(stats.entries <= model.len() as u64);
    }
    let mut walked = 0;
    cache.for_each(|_| walked += 1);
    assert_eq!(walked, cache.stats().entries);
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_full_cache_never_answers_wrong(steps in prop::collection::vec(step(60), 1..1500)) {
        check(16_000, &steps);
    }

    #[test]
    fn a_cache_with_shards_never_answers_wrong(steps in prop::collection::vec(step(3000), 1..3000)) {
        check(512 * 1024, &steps);
    }
}

#[test]
fn a_cache_with_room_forgets_nothing() {
    let steps: Vec<Step> = (0..20_000_u32)
        .flat_map(|i| {
            let (name, qtype) = ((i * 7 % 2000) as u16, 1 + (i % 2) as u16);
            [Step::Insert { name, qtype, octets: 40, ttl: 100, stale: 0 }, Step::Look { name, qtype }]
        })
        .collect();
    assert_eq!(check(8 << 20, &steps), 20_000);
}
