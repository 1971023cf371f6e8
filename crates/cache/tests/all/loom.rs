//! Readers beside a writer, in every order that the memory model allows.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p gannet-cache --test all --release`

use cache::{Ageing, Cache, Entry, Key, KeyBits, Now, Security, Stored};
use loom::sync::Arc;
use loom::thread;
use std::sync::atomic::{AtomicUsize, Ordering};
use wire::{Class, Flags, HashKey, NameBuf, Rcode, Rtype};

const AGEING: Ageing = Ageing { stale_ttl: 30 };
fn with_key<T>(cache: &Cache, name: u8, f: impl FnOnce(&Key<'_>) -> T) -> T {
    let mut buf = NameBuf::root();
    buf.push_label(&[b'a' + name]).expect("short");
    let folded = buf.as_name().to_folded();
    f(&Key::new(cache.hash_key(), &folded, Rtype::A, Class::IN, KeyBits::NONE, 0))
}

fn insert(cache: &Cache, name: u8, version: u8) {
    // Eight words, from version 3 on eleven.
    let body = [name, version].repeat(if version < 3 { 5 } else { 17 });
    let entry = Entry {
        body: &body,
        ttl_offsets: &[],
        rcode: Rcode(u16::from(name)),
        flags: Flags(u16::from(version)),
        security: Security::Unchecked,
        answers: u16::from(version),
        authorities: 0,
        additionals: 0,
        ttl: 100,
        stale: 0,
        ede: None,
    };
    let stored = with_key(cache, name, |key| cache.insert(key, &entry, Now(0)));
    assert!(!matches!(stored, Stored::Refused(_)));
}

/// Looks a name up; an answer must be whole. Returns its version.
fn look(cache: &Cache, name: u8) -> Option<u8> {
    with_key(cache, name, |key| {
        let mut out = [0; 40];
        let hit = cache.lookup(key, Now(0), &mut out, AGEING)?;
        let version = out[1];
        assert_eq!(hit.len, if version < 3 { 10 } else { 34 });
        assert!(out[..hit.len].chunks(2).all(|pair| pair == [name, version]), "torn: {out:?}");
        assert_eq!((hit.rcode, hit.flags), (Rcode(u16::from(name)), Flags(u16::from(version))));
        assert_eq!(hit.answers, u16::from(version));
        Some(version)
    })
}

/// Runs `write` beside `read`, on a cache of so many words that `setup` saw.
fn check(
    words: usize,
    setup: impl Fn(&Cache) + Sync + Send + 'static,
    write: impl Fn(&Cache) + Copy + Sync + Send + 'static,
    read: impl Fn(&Cache) + Copy + Sync + Send + 'static,
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    let runs = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&runs);
    model.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let cache =
            Arc::new(Cache::tiny(words, HashKey::new([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344])));
        setup(&cache);
        let reader = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || read(&cache))
        };
        // The writer's part runs first when nothing else is decided. loom remembers one access per
        // word only: a store that comes after the writer's own load would hide the reader's.
        write(&cache);
        reader.join().expect("no panic");
    });
    // One run would mean that loom saw nothing to try.
    assert!(runs.load(Ordering::Relaxed) > 1);
}

#[test]
fn an_entry_being_stored_is_seen_whole_or_not_at_all() {
    check(
        30,
        |_| {},
        |cache| insert(cache, 0, 1),
        |cache| {
            let _ = look(cache, 0);
        },
    );
}

#[test]
fn an_entry_being_replaced_is_the_old_or_the_new() {
    check(
        30,
        |cache| insert(cache, 0, 1),
        |cache| insert(cache, 0, 2),
        |cache| assert!(matches!(look(cache, 0), Some(1 | 2))),
    );
}

#[test]
fn an_entry_being_overwritten_is_whole_or_gone() {
    check(
        // A main ring of 27 words: three entries fill it, the fourth takes the place of the first.
        30,
        |cache| (0..3).for_each(|name| insert(cache, name, 1)),
        |cache| insert(cache, 3, 1),
        |cache| {
            let _ = look(cache, 0);
        },
    );
}

#[test]
fn an_entry_being_carried_is_always_found() {
    check(
        // A main ring of 42 words: after four entries ten are left, too few for one of eleven,
        // enough to carry one.
        46,
        |cache| {
            (0..4).for_each(|name| insert(cache, name, 1));
            let _ = look(cache, 0);
        },
        |cache| insert(cache, 4, 3),
        |cache| assert_eq!(look(cache, 0), Some(1)),
    );
}

#[test]
fn a_claim_is_given_once() {
    check(
        30,
        |cache| insert(cache, 0, 1),
        |cache| {
            if with_key(cache, 0, |key| cache.try_claim_refresh(key)) {
                insert(cache, 1, 1);
            }
        },
        |cache| {
            let first = with_key(cache, 0, |key| cache.try_claim_refresh(key));
            let second = with_key(cache, 0, |key| cache.try_claim_refresh(key));
            assert!(!(first && second));
        },
    );
}
