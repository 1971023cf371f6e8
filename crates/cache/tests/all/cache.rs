//! The cache's public face: what goes in comes out, older; what does not fit is not kept.

use cache::{
    Ageing, Cache, Entry, Flush, Freshness, Hit, Key, KeyBits, Limits, Now, Refusal, Scope, Security, Stamp,
    Stored,
};
use wire::{Class, EdeCode, Flags, Folded, HashKey, Name, NameBuf, Rcode, Rtype};

const AGEING: Ageing = Ageing { stale_ttl: 30 };

fn cache_of(octets_max: usize) -> Cache {
    Cache::new(Limits { octets_max }, HashKey::new([0x0123_4567_89ab_cdef, 0x1319_8a2e_0370_7344]))
}

fn name(text: &str) -> Folded {
    let mut name = NameBuf::root();
    for label in text.split('.').filter(|label| !label.is_empty()) {
        name.push_label(label.as_bytes()).expect("a good name");
    }
    name.as_name().to_folded()
}

fn key<'a>(cache: &Cache, name: &'a Folded) -> Key<'a> {
    Key::new(cache.hash_key(), name, Rtype::A, Class::IN, KeyBits::NONE, 0)
}

/// One A record for the question's name.
fn body(ttl: u32, last: u8) -> [u8; 16] {
    let [t0, t1, t2, t3] = ttl.to_be_bytes();
    [0xc0, 12, 0, 1, 0, 1, t0, t1, t2, t3, 0, 4, 192, 0, 2, last]
}

fn entry(body: &[u8], ttl: u32, stale: u32) -> Entry<'_> {
    Entry {
        body,
        ttl_offsets: &[6],
        rcode: Rcode::NOERROR,
        flags: Flags::RA,
        security: Security::Unchecked,
        answers: 1,
        authorities: 0,
        additionals: 0,
        ttl,
        stale,
        ede: None,
    }
}

/// Looks `key` up at `now`; returns the hit and the octets.
fn look(cache: &Cache, key: &Key<'_>, now: u32) -> Option<(Hit, Vec<u8>)> {
    let mut out = vec![0; if cfg!(miri) { 1000 } else { 70_000 }];
    let hit = cache.lookup(key, Now(now), &mut out, AGEING)?;
    out.truncate(hit.len);
    Some((hit, out))
}

#[test]
fn an_answer_grows_old_and_goes() {
    let cache = cache_of(1 << 20);
    let name = name("www.example.org");
    let key = key(&cache, &name);
    assert!(look(&cache, &key, 1000).is_none());
    assert_eq!(cache.insert(&key, &entry(&body(300, 1), 300, 100), Now(1000)), Stored::New);

    let (hit, octets) = look(&cache, &key, 1000).expect("fresh");
    assert_eq!(octets, body(300, 1));
    assert_eq!((hit.age, hit.freshness, hit.original_ttl), (0, Freshness::Fresh { left: 300 }, 300));
    assert_eq!((hit.rcode, hit.flags, hit.answers, hit.popular), (Rcode::NOERROR, Flags::RA, 1, false));
    assert!(hit.fits());

    let (hit, octets) = look(&cache, &key, 1299).expect("fresh");
    assert_eq!((octets.as_slice(), hit.freshness), (&body(1, 1)[..], Freshness::Fresh { left: 1 }));
    assert!(hit.popular);

    let (hit, octets) = look(&cache, &key, 1300).expect("stale");
    assert_eq!((octets.as_slice(), hit.freshness), (&body(30, 1)[..], Freshness::Stale { since: 0 }));
    assert!(look(&cache, &key, 1399).is_some_and(|(hit, _)| hit.is_stale()));
    assert!(look(&cache, &key, 1400).is_none());

    // A clock that was set back makes nothing younger than new.
    let (hit, octets) = look(&cache, &key, 900).expect("fresh");
    assert_eq!((hit.age, octets.as_slice()), (0, &body(300, 1)[..]));
}

#[test]
fn the_security_state_of_an_answer_is_kept() {
    let cache = cache_of(1 << 20);
    let name = name("example.org");
    let key = key(&cache, &name);
    for security in
        [Security::Unchecked, Security::Secure, Security::Insecure, Security::Indeterminate, Security::Bogus]
    {
        // With and without the words that few entries have.
        for answers in [1, 256] {
            let body = body(300, 1);
            let entry = Entry { security, answers, flags: Flags(0xffff), ..entry(&body, 300, 0) };
            let _ = cache.insert(&key, &entry, Now(0));
            let (hit, _) = look(&cache, &key, 1).expect("fresh");
            assert_eq!((hit.security, hit.answers, hit.flags), (security, answers, Flags(0xffff)));
        }
    }
}

#[test]
fn each_record_ages_on_its_own() {
    let cache = cache_of(1 << 20);
    let name = name("example.org");
    let key = key(&cache, &name);
    let records = [body(60, 1), body(3600, 2), body(61, 3)].concat();
    let entry = Entry { ttl_offsets: &[6, 22, 38], answers: 3, ..entry(&records, 60, 60) };
    let _ = cache.insert(&key, &entry, Now(0));
    assert_eq!(look(&cache, &key, 59).expect("fresh").1, [body(1, 1), body(3541, 2), body(2, 3)].concat());
    assert_eq!(look(&cache, &key, 60).expect("stale").1, [body(30, 1), body(3540, 2), body(1, 3)].concat());
}

#[test]
fn no_expired_record_has_a_longer_ttl_than_it_came_with() {
    let cache = cache_of(1 << 20);
    let name = name("example.org");
    let key = key(&cache, &name);
    let records = [body(5, 1), body(60, 2), body(30, 3), body(1, 4)].concat();
    let entry = Entry { ttl_offsets: &[6, 22, 38, 54], answers: 4, ..entry(&records, 1, 600) };
    let _ = cache.insert(&key, &entry, Now(0));
    let (hit, octets) = look(&cache, &key, 300).expect("stale");
    assert!(hit.is_stale());
    assert_eq!(octets, [body(5, 1), body(30, 2), body(30, 3), body(1, 4)].concat());
    // RFC 8767 §4: the TTL is never zero.
    let records = body(0, 1);
    let entry = Entry { ttl_offsets: &[6], answers: 1, ..self::entry(&records, 1, 600) };
    let _ = cache.insert(&key, &entry, Now(0));
    assert_eq!(look(&cache, &key, 300).expect("stale").1, body(1, 1));
}

#[test]
fn keys_that_differ_in_any_part_do_not_meet() {
    let cache = cache_of(1 << 20);
    let hash_key = cache.hash_key();
    let (one, other) = (name("example.org"), name("example.com"));
    let scope = Scope { address: [192, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], family: 1, prefix: 24 };
    let base = key(&cache, &one);
    let keys = [
        base,
        key(&cache, &other),
        Key::new(hash_key, &one, Rtype::AAAA, Class::IN, KeyBits::NONE, 0),
        Key::new(hash_key, &one, Rtype::A, Class::CH, KeyBits::NONE, 0),
        Key::new(hash_key, &one, Rtype::A, Class::IN, KeyBits::DO, 0),
        Key::new(hash_key, &one, Rtype::A, Class::IN, KeyBits::CD, 0),
        Key::new(hash_key, &one, Rtype::A, Class::IN, KeyBits::FAILURE, 0),
        Key::new(hash_key, &one, Rtype::A, Class::IN, KeyBits::NONE, 1),
        base.with_scope(hash_key, scope),
        base.with_scope(hash_key, Scope { prefix: 25, ..scope }),
    ];
    for (i, key) in keys.iter().enumerate() {
        assert_eq!(cache.insert(key, &entry(&body(60, i as u8), 60, 0), Now(0)), Stored::New);
    }
    for (i, key) in keys.iter().enumerate() {
        assert_eq!(look(&cache, key, 0).expect("kept").1, body(60, i as u8));
    }
    assert_eq!(cache.stats().entries, 10);
}

#[test]
fn letter_case_does_not_matter() {
    let cache = cache_of(1 << 20);
    let (upper, lower) = (name("WWW.Example.ORG"), name("www.example.org"));
    let _ = cache.insert(&key(&cache, &upper), &entry(&body(60, 1), 60, 0), Now(0));
    assert!(look(&cache, &key(&cache, &lower), 0).is_some());
}

#[test]
fn a_newer_answer_takes_the_place_of_the_older() {
    let cache = cache_of(1 << 20);
    let name = name("example.org");
    let key = key(&cache, &name);
    assert_eq!(cache.insert(&key, &entry(&body(60, 1), 60, 0), Now(0)), Stored::New);
    assert_eq!(cache.insert(&key, &entry(&body(60, 2), 60, 0), Now(1)), Stored::Replaced);
    assert_eq!(look(&cache, &key, 1).expect("kept").1, body(60, 2));
    assert_eq!(cache.stats().entries, 1);
    assert_eq!(cache.insert(&key, &entry(&body(60, 3), 0, 0), Now(1)), Stored::Refused(Refusal::Lifetime));
    assert_eq!(look(&cache, &key, 1).expect("kept").1, body(60, 2));
}

#[test]
fn an_answer_without_room_is_not_copied_but_measured() {
    let cache = cache_of(1 << 20);
    let name = name("example.org");
    let key = key(&cache, &name);
    let _ = cache.insert(&key, &entry(&body(60, 1), 60, 0), Now(0));
    let mut out = [0xee; 15];
    let hit = cache.lookup(&key, Now(0), &mut out, AGEING).expect("found");
    assert_eq!((hit.len, hit.needs, hit.fits(), out), (0, 16, false, [0xee; 15]));
    let mut out = [0xee; 16];
    assert!(cache.lookup(&key, Now(0), &mut out, AGEING).expect("found").fits());
    assert_eq!(out, body(60, 1));
}

#[test]
fn an_answer_of_no_octets_is_an_answer() {
    let cache = cache_of(1 << 20);
    let name = name("example.org");
    let key = key(&cache, &name).with_bits(cache.hash_key(), KeyBits::FAILURE);
    let failure = Entry {
        rcode: Rcode::SERVFAIL,
        ede: Some(EdeCode::NO_REACHABLE_AUTHORITY),
        ttl_offsets: &[],
        answers: 0,
        ..entry(&[], 5, 0)
    };
    let _ = cache.insert(&key, &failure, Now(0));
    let (hit, octets) = look(&cache, &key, 4).expect("kept");
    assert!(octets.is_empty() && hit.fits());
    assert_eq!((hit.rcode, hit.ede), (Rcode::SERVFAIL, Some(EdeCode::NO_REACHABLE_AUTHORITY)));
    assert!(look(&cache, &key, 5).is_none());
}

#[test]
fn a_refresh_is_claimed_once() {
    let cache = cache_of(1 << 20);
    let name = name("example.org");
    let key = key(&cache, &name);
    assert!(!cache.try_claim_refresh(&key));
    let _ = cache.insert(&key, &entry(&body(60, 1), 60, 0), Now(0));
    assert!(!look(&cache, &key, 0).expect("kept").0.refresh_claimed);
    assert!(cache.try_claim_refresh(&key));
    assert!(!cache.try_claim_refresh(&key));
    assert!(look(&cache, &key, 0).expect("kept").0.refresh_claimed);
    cache.release_refresh(&key);
    assert!(cache.try_claim_refresh(&key));
    let _ = cache.insert(&key, &entry(&body(60, 2), 60, 0), Now(1));
    assert!(cache.try_claim_refresh(&key));
}

#[test]
fn flushing_takes_what_was_named_and_nothing_else() {
    let names = ["example.org", "www.example.org", "a.www.example.org", "badexample.org", "example.com"];
    let check = |what: Flush<'_>, count: usize, left: &[usize]| {
        let cache = cache_of(64 << 10);
        for (i, text) in names.iter().enumerate() {
            let name = name(text);
            for qtype in [Rtype::A, Rtype::AAAA] {
                for view in [0, 1] {
                    let key = Key::new(cache.hash_key(), &name, qtype, Class::IN, KeyBits::DO, view);
                    let _ = cache.insert(&key, &entry(&body(60, i as u8), 60, 0), Now(0));
                }
            }
        }
        assert_eq!(cache.flush(what), count);
        assert_eq!(cache.stats().entries as usize, 20 - count);
        let found: Vec<usize> = (0..names.len())
            .filter(|&i| {
                let name = name(names[i]);
                let key = Key::new(cache.hash_key(), &name, Rtype::A, Class::IN, KeyBits::DO, 1);
                look(&cache, &key, 0).is_some()
            })
            .collect();
        assert_eq!(found, left);
    };
    let org = name("EXAMPLE.org");
    check(Flush::Name(org.as_name()), 4, &[1, 2, 3, 4]);
    check(Flush::Type(org.as_name(), Rtype::A), 2, &[1, 2, 3, 4]);
    check(Flush::Type(org.as_name(), Rtype::MX), 0, &[0, 1, 2, 3, 4]);
    check(Flush::Suffix(org.as_name()), 12, &[3, 4]);
    check(Flush::Suffix(Name::ROOT), 20, &[]);
    check(Flush::All, 20, &[]);
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes there")]
fn a_flushed_cache_is_as_empty_as_a_new_one() {
    let cache = cache_of(1 << 20);
    let empty = cache.stats().octets;
    for i in 0..1000 {
        let name = name(&format!("n{i}.example.org"));
        let _ = cache.insert(&key(&cache, &name), &entry(&body(60, 1), 60, 0), Now(0));
    }
    assert!(cache.stats().octets > empty + 1000 * 64);
    assert_eq!(cache.flush(Flush::All), 1000);
    assert_eq!(cache.stats().octets, empty);
    let name = name("again.example.org");
    assert_eq!(cache.insert(&key(&cache, &name), &entry(&body(60, 7), 60, 0), Now(0)), Stored::New);
    assert_eq!(look(&cache, &key(&cache, &name), 0).expect("kept").1, body(60, 7));
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes there")]
fn the_largest_answer_fits_a_cache_of_256_kib() {
    let name = name("large.example.org");
    let large: Vec<u8> = (0..65_500_u32).map(|i| (i * 7) as u8).collect();
    let entry = Entry { ttl_offsets: &[], ..entry(&large, 60, 0) };
    let cache = cache_of(256 * 1024);
    for _ in 0..20 {
        assert!(!matches!(cache.insert(&key(&cache, &name), &entry, Now(0)), Stored::Refused(_)));
        assert_eq!(look(&cache, &key(&cache, &name), 0).expect("kept").1, large);
    }
    let cache = cache_of(64 * 1024);
    assert_eq!(cache.insert(&key(&cache, &name), &entry, Now(0)), Stored::Refused(Refusal::Size));
}

#[test]
fn a_cache_of_nothing_answers_nothing() {
    let name = name("example.org");
    for octets_max in [0, 1, 100, 1000] {
        let cache = cache_of(octets_max);
        let key = key(&cache, &name);
        let stored = cache.insert(&key, &entry(&body(60, 1), 60, 0), Now(0));
        assert_eq!(stored, Stored::Refused(Refusal::Size));
        assert!(look(&cache, &key, 0).is_none());
        assert_eq!(cache.flush(Flush::All), 0);
    }
}

/// Returns the number of the stamp that is found with the answer for `key`.
fn stamp_of(cache: &Cache, key: &Key<'_>) -> Option<u64> {
    cache.lookup_placed(key, Now(0), &mut [], AGEING).map(|(_, stamp, _)| stamp.number())
}

fn with_room(body: &[u8]) -> Entry<'_> {
    Entry { flags: Flags::RA.with(Entry::STAMPED), ..entry(body, 300, 100) }
}

#[test]
fn an_answer_without_room_has_no_stamp() {
    let cache = cache_of(1 << 20);
    let name = name("www.example.org");
    let key = key(&cache, &name);
    let _ = cache.insert(&key, &entry(&body(300, 1), 300, 100), Now(0));
    let (_, _, place) = cache.lookup_placed(&key, Now(0), &mut [], AGEING).expect("kept");
    let _ = cache.stamp(&key, place, Stamp::new(7));
    assert_eq!(stamp_of(&cache, &key), Some(0));
    assert_eq!(look(&cache, &key, 0).map(|(_, octets)| octets), Some(body(300, 1).to_vec()));
}

#[test]
fn a_stamp_stays_with_the_answer_that_it_was_written_beside() {
    let cache = cache_of(1 << 20);
    let name = name("www.example.org");
    let key = key(&cache, &name);
    let stamp = Stamp::new(u64::MAX - 7);
    let stamped = || cache.lookup_stamped(&key, Now(0), &mut [0; 100], AGEING, stamp);
    assert_eq!(stamped(), Err(None), "there is no answer");
    let _ = cache.insert(&key, &with_room(&body(300, 1)), Now(0));
    assert_eq!(stamped(), Err(Some(Stamp::NONE)), "an answer begins without one");
    let (_, _, place) = cache.lookup_placed(&key, Now(0), &mut [], AGEING).expect("kept");
    assert!(cache.stamp(&key, place, stamp));
    assert_eq!(stamped().map(|hit| hit.needs), Ok(body(300, 1).len()));
    let other = cache.lookup_stamped(&key, Now(0), &mut [], AGEING, Stamp::new(7));
    assert_eq!(other, Err(Some(stamp)));
    assert_eq!(
        look(&cache, &key, 0).map(|(_, octets)| octets),
        Some(body(300, 1).to_vec()),
        "who does not ask for one finds the answer as before"
    );
    // Another answer takes its place: what was found out about the old one is not said of it.
    let _ = cache.insert(&key, &with_room(&body(300, 2)), Now(0));
    assert!(!cache.stamp(&key, place, stamp));
    assert_eq!(stamped(), Err(Some(Stamp::NONE)));
}

#[test]
fn an_answer_that_is_carried_on_keeps_its_stamp() {
    let cache = cache_of(1 << 18);
    let kept = name("kept.example.org");
    let key_of_kept = key(&cache, &kept);
    let _ = cache.insert(&key_of_kept, &with_room(&body(300, 1)), Now(0));
    let (_, _, first) = cache.lookup_placed(&key_of_kept, Now(0), &mut [], AGEING).expect("kept");
    assert!(cache.stamp(&key_of_kept, first, Stamp::new(5)));
    let mut number = 0;
    // It is used all the time, so that it moves while others come and go.
    let moved = loop {
        let (_, stamp, place) = cache.lookup_placed(&key_of_kept, Now(0), &mut [], AGEING).expect("in use");
        assert_eq!(stamp, Stamp::new(5));
        if !cache.stamp(&key_of_kept, first, Stamp::new(5)) {
            break place;
        }
        assert!(number < 100_000, "it never moves");
        let other = name(&format!("other-{number}.example.org"));
        let _ = cache.insert(&key(&cache, &other), &with_room(&body(300, 1)), Now(0));
        number += 1;
    };
    assert!(cache.stamp(&key_of_kept, moved, Stamp::new(6)));
    assert_eq!(stamp_of(&cache, &key_of_kept), Some(6));
}

#[test]
fn a_look_up_for_another_stamp_is_no_use() {
    let cache = cache_of(1 << 20);
    let name = name("www.example.org");
    let key = key(&cache, &name);
    let _ = cache.insert(&key, &with_room(&body(300, 1)), Now(0));
    for _ in 0..3 {
        assert!(cache.lookup_stamped(&key, Now(0), &mut [], AGEING, Stamp::new(1)).is_err());
    }
    assert!(look(&cache, &key, 0).is_some_and(|(hit, _)| !hit.popular));
}
