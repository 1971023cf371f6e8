//! Dumps: what was written comes back, what was damaged does not.

#![cfg(not(miri))]

use cache::{
    Ageing, Cache, Clocks, DumpError, Entry, Freshness, Key, KeyBits, Limits, Loaded, Meaning, Now, Scope,
    Security, Stored,
};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use wire::{Class, EdeCode, Flags, HashKey, NameBuf, Rcode, Rtype};

const AGEING: Ageing = Ageing { stale_ttl: 30 };
const MEANING: Meaning = Meaning(42);

fn cache_of(secret: u64) -> Cache {
    Cache::new(Limits { octets_max: 4 << 20 }, HashKey::new([secret, 0x9e37_79b9_7f4a_7c15 ^ secret]))
}

/// What the wall's clock says when the cache's says 0.
const WALL: u32 = 1_800_000_000;
/// Octets of a file's header.
const HEADER: usize = 48;

/// Clocks that agree, without a number for the run of the machine: a file's age is that on the
/// wall.
fn at(now: u32) -> Clocks {
    Clocks { now: Now(now), unix_seconds: WALL + now, boot: None }
}

fn load(cache: &Cache, path: &Path, now: u32) -> Loaded {
    cache.load(path, at(now), MEANING, |_| {}).expect("readable")
}

/// All security states.
const STATES: [Security; 5] =
    [Security::Unchecked, Security::Secure, Security::Insecure, Security::Indeterminate, Security::Bogus];

/// Stores so many entries, each of its own kind, at second 1000, fresh for 100 seconds and stale
/// for another 50.
fn fill(cache: &Cache, count: u32) {
    for i in 0..count {
        with_key(cache, i, |key| {
            let body = body(i);
            let entry = Entry {
                body: &body,
                ttl_offsets: &[0, 4],
                rcode: Rcode((i % 40) as u16),
                flags: Flags::RA,
                security: STATES[i as usize % STATES.len()],
                answers: (i % 300) as u16,
                authorities: 2,
                additionals: 3,
                ttl: 100,
                stale: 50,
                ede: (i % 5 == 0).then_some(EdeCode(i as u16)),
            };
            assert_eq!(cache.insert(key, &entry, Now(1000)), Stored::New);
        });
    }
}

fn body(i: u32) -> Vec<u8> {
    let mut body = vec![i as u8; 8 + i as usize % 500];
    body[..4].copy_from_slice(&100_u32.to_be_bytes());
    body[4..8].copy_from_slice(&(200 + i).to_be_bytes());
    body
}

fn with_key<T>(cache: &Cache, i: u32, f: impl FnOnce(&Key<'_>) -> T) -> T {
    let mut name = NameBuf::root();
    name.push_label(format!("n{i}").as_bytes()).expect("short");
    name.push_label(b"example").expect("short");
    let name = name.as_name().to_folded();
    let key = Key::new(
        cache.hash_key(),
        &name,
        Rtype((i % 7) as u16),
        Class::IN,
        KeyBits((i % 8) as u8),
        (i % 3) as u16,
    );
    let scope = Scope { address: [i as u8; 16], family: 2, prefix: 56 };
    if i.is_multiple_of(4) { f(&key.with_scope(cache.hash_key(), scope)) } else { f(&key) }
}

fn contents(cache: &Cache) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    cache.for_each(|view| {
        let key = format!(
            "{:?} {:?} {:?} {} {:?} {:?} {:?} {:?} {:?} {} {} {} {:?} {} {} {:?}",
            view.name.as_bytes(),
            view.qtype,
            view.bits,
            view.view,
            view.scope,
            view.rcode,
            view.flags,
            view.security,
            view.ede,
            view.answers,
            view.authorities,
            view.additionals,
            view.stored_at,
            view.ttl,
            view.stale,
            view.ttl_offsets
        );
        assert!(all.insert(key, view.body.to_vec()).is_none());
    });
    all
}

/// Dumps a cache with so many entries; the directory goes with the first value.
fn dumped(count: u32) -> (tempfile::TempDir, PathBuf, Cache) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("answers");
    let cache = cache_of(1);
    fill(&cache, count);
    let dumped = cache.dump(&path, at(1000), MEANING, |_| {}).expect("written");
    assert_eq!(dumped.entries, u64::from(count));
    assert_eq!(dumped.octets, std::fs::metadata(&path).expect("there").len());
    (directory, path, cache)
}

#[test]
fn a_dump_comes_back_under_another_secret() {
    let (directory, path, cache) = dumped(5000);
    let other = cache_of(2);
    let mut steps = 0;
    let loaded = other.load(&path, at(1000), MEANING, |_| steps += 1).expect("readable");
    assert_eq!((loaded.entries, loaded.is_complete, loaded.octets_dropped), (5000, true, 0));
    assert_eq!(steps, loaded.blocks);
    assert!(steps > 1);
    assert_eq!(contents(&other), contents(&cache));
    with_key(&other, 77, |key| {
        let mut out = [0; 1000];
        let hit = other.lookup(key, Now(1010), &mut out, AGEING).expect("kept");
        assert_eq!((hit.age, hit.freshness), (10, Freshness::Fresh { left: 90 }));
        assert_eq!(out[..8], [0, 0, 0, 90, 0, 0, 1, 11]);
    });
    // Nothing is left beside it.
    assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 1);
}

#[test]
fn time_goes_on_while_the_server_is_down() {
    let (_directory, path, _) = dumped(100);
    let check = |now, entries, expired, is_stale| {
        let cache = cache_of(2);
        let loaded = load(&cache, &path, now);
        assert_eq!((loaded.entries, loaded.expired, loaded.is_complete), (entries, expired, true));
        let mut out = [0; 1000];
        let hit = with_key(&cache, 1, |key| cache.lookup(key, Now(now), &mut out, AGEING));
        assert_eq!(hit.map(|hit| hit.is_stale()), is_stale);
    };
    check(1099, 100, 0, Some(false));
    check(1100, 100, 0, Some(true));
    check(1149, 100, 0, Some(true));
    check(1150, 0, 100, None);
}

/// Dumps entries that are 30 seconds old and loads them; returns for how long they are fresh, or
/// have been stale, if they are still there.
fn aged(written: Clocks, read: Clocks) -> Option<Freshness> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("answers");
    let cache = cache_of(1);
    fill(&cache, 2);
    assert_eq!(written.now, Now(1030));
    let _ = cache.dump(&path, written, MEANING, |_| {}).expect("written");
    let cache = cache_of(2);
    let _ = cache.load(&path, read, MEANING, |_| {}).expect("readable");
    let mut out = [0; 1000];
    with_key(&cache, 1, |key| cache.lookup(key, read.now, &mut out, AGEING)).map(|hit| hit.freshness)
}

#[test]
fn within_a_run_of_the_machine_a_file_ages_however_the_wall_clock_is_set() {
    let boot = NonZeroU64::new(7);
    for steps in [[WALL, WALL], [WALL, WALL + 86_400], [WALL + 86_400, WALL], [0, WALL], [WALL, 0], [0, 0]] {
        let [written, read] = steps;
        let read = |now| Clocks { now: Now(now), unix_seconds: read, boot };
        let written = Clocks { now: Now(1030), unix_seconds: written, boot };
        assert_eq!(aged(written, read(1040)), Some(Freshness::Fresh { left: 60 }), "{steps:?}");
        assert_eq!(aged(written, read(1105)), Some(Freshness::Stale { since: 5 }), "{steps:?}");
        assert_eq!(aged(written, read(1150)), None, "{steps:?}");
    }
}

#[test]
fn after_a_boot_a_file_has_aged_by_the_wall_clock_and_is_stale_if_that_cannot_be() {
    let written = Clocks { now: Now(1030), unix_seconds: WALL, boot: NonZeroU64::new(7) };
    // The cache's clock has begun anew, and says more or less than before.
    for (boot, now) in [(8, 10_000), (8, 500), (7, 500)] {
        let read = |unix_seconds| Clocks { now: Now(now), unix_seconds, boot: NonZeroU64::new(boot) };
        assert_eq!(aged(written, read(WALL + 10)), Some(Freshness::Fresh { left: 60 }));
        assert_eq!(aged(written, read(WALL + 75)), Some(Freshness::Stale { since: 5 }));
        assert_eq!(aged(written, read(WALL + 86_400)), None);
        // Set back, or not set yet: who knows how long it was.
        assert_eq!(aged(written, read(WALL - 1)), Some(Freshness::Stale { since: 0 }));
        assert_eq!(aged(written, read(3)), Some(Freshness::Stale { since: 0 }));
        // Never set on either side: an hour between two boots may be a year.
        let unset = Clocks { unix_seconds: 3600, ..written };
        assert_eq!(aged(unset, read(3601)), Some(Freshness::Stale { since: 0 }));
    }
}

#[test]
fn a_file_of_version_1_is_read_by_the_wall_clock() {
    let (directory, path, _) = dumped(100);
    let mut octets = std::fs::read(&path).expect("there");
    octets[8] = 1;
    octets[12..16].fill(0);
    octets.drain(36..HEADER);
    let crc = crc32fast::hash(&octets[..36]);
    octets.splice(36..36, crc.to_le_bytes());
    let old = directory.path().join("old");
    std::fs::write(&old, octets).expect("written");
    let cache = cache_of(2);
    let loaded = load(&cache, &old, 1010);
    assert_eq!((loaded.entries, loaded.is_complete), (100, true));
    let mut out = [0; 1000];
    let hit = with_key(&cache, 1, |key| cache.lookup(key, Now(1010), &mut out, AGEING)).expect("kept");
    assert_eq!(hit.freshness, Freshness::Fresh { left: 90 });
}

#[test]
fn a_dump_leaves_out_what_is_past_use() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("answers");
    let cache = cache_of(1);
    fill(&cache, 10);
    let dumped = cache.dump(&path, at(1150), MEANING, |_| {}).expect("written");
    assert_eq!((dumped.entries, dumped.expired), (0, 10));
    let loaded = load(&cache_of(2), &path, 1150);
    assert_eq!(loaded, Loaded { is_complete: true, ..Loaded::default() });
}

#[test]
fn what_the_cache_has_is_not_made_older() {
    let (_directory, path, _) = dumped(100);
    let cache = cache_of(2);
    fill(&cache, 40);
    let loaded = load(&cache, &path, 1010);
    assert_eq!((loaded.entries, loaded.superseded), (60, 40));
}

#[test]
fn a_truncated_dump_yields_its_whole_blocks() {
    let (directory, path, cache) = dumped(3000);
    let whole = std::fs::read(&path).expect("there");
    let before = contents(&cache);
    let short = directory.path().join("short");
    for octets in (HEADER..whole.len()).step_by(whole.len() / 23).chain([whole.len() - 1]) {
        std::fs::write(&short, &whole[..octets]).expect("written");
        let cache = cache_of(2);
        let loaded = load(&cache, &short, 1000);
        assert!(!loaded.is_complete);
        let after = contents(&cache);
        assert_eq!(loaded.entries, after.len() as u64);
        assert!(after.iter().all(|(key, body)| before.get(key) == Some(body)));
        assert_eq!(loaded.blocks, if octets < HEADER + 28 + 256 * 1024 { 0 } else { loaded.blocks.max(1) });
    }
    for octets in 0..HEADER {
        std::fs::write(&short, &whole[..octets]).expect("written");
        let error = cache_of(2).load(&short, at(1000), MEANING, |_| {}).expect_err("no header");
        assert!(matches!(error, DumpError::Foreign { .. }));
    }
}

#[test]
fn a_damaged_octet_costs_one_block() {
    let (directory, path, cache) = dumped(4000);
    let whole = std::fs::read(&path).expect("there");
    let before = contents(&cache);
    let blocks = load(&cache_of(3), &path, 1000).blocks;
    assert!(blocks >= 3);
    let bad = directory.path().join("bad");
    for at in (HEADER..whole.len())
        .step_by(whole.len() / 61)
        .chain(HEADER..HEADER + 28)
        .chain(whole.len() - 36..whole.len())
    {
        let mut octets = whole.clone();
        octets[at] ^= 0x10;
        std::fs::write(&bad, &octets).expect("written");
        let cache = cache_of(2);
        let loaded = load(&cache, &bad, 1000);
        assert!(!loaded.is_complete, "{at}");
        assert!(loaded.octets_dropped > 0 && loaded.octets_dropped < 400_000, "{at}: {loaded:?}");
        assert!(loaded.blocks >= blocks - 1, "{at}: {loaded:?}");
        let after = contents(&cache);
        assert_eq!(loaded.entries, after.len() as u64);
        assert!(after.iter().all(|(key, body)| before.get(key) == Some(body)));
    }
}

#[test]
fn octets_between_blocks_are_stepped_over() {
    let (directory, path, _) = dumped(100);
    let whole = std::fs::read(&path).expect("there");
    let padded = directory.path().join("padded");
    for count in [1, 7, 8, 9, 27, 28, 29, 300_000] {
        let mut octets = whole[..HEADER].to_vec();
        octets.extend(std::iter::repeat_n(0x41, count));
        octets.extend(&whole[HEADER..]);
        std::fs::write(&padded, &octets).expect("written");
        let loaded = load(&cache_of(2), &padded, 1000);
        assert_eq!((loaded.entries, loaded.octets_dropped, loaded.is_complete), (100, count as u64, false));
    }
}

#[test]
fn a_foreign_file_is_refused_with_the_reason() {
    let (directory, path, cache) = dumped(1);
    let check = |path: &Path, meaning, expect: &str| {
        let error = cache.load(path, at(1000), meaning, |_| {}).expect_err("refused");
        assert!(error.to_string().contains(expect), "{error}");
    };
    check(&path, Meaning(43), "written under other views");
    check(&directory.path().join("none"), MEANING, "cannot open");
    let foreign = directory.path().join("foreign");
    std::fs::write(&foreign, [7; 100]).expect("written");
    check(&foreign, MEANING, "not a cache dump");
    let mut newer = std::fs::read(&path).expect("there");
    newer[8] = 9;
    let crc = crc32fast::hash(&newer[..HEADER - 4]);
    newer[HEADER - 4..HEADER].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&foreign, newer).expect("written");
    check(&foreign, MEANING, "of version 9, expected 2");
}

#[test]
fn a_failed_dump_leaves_the_old_file() {
    let (directory, path, cache) = dumped(10);
    // A directory where the new file would be built.
    let beside = directory.path().join(".answers.new");
    std::fs::create_dir(&beside).expect("made");
    std::fs::write(beside.join("full"), []).expect("written");
    let error = cache.dump(&path, at(1000), MEANING, |_| {}).expect_err("refused");
    assert!(error.to_string().starts_with("cannot remove"), "{error}");
    assert_eq!(load(&cache_of(2), &path, 1000).entries, 10);
}

#[cfg(unix)]
#[test]
fn a_dump_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_directory, path, _) = dumped(1);
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
}
