//! Ranges of NSEC and NSEC3: what they say is true of the zone, and which ones are not taken.

use cache::Now;
use cache::proofs::{Coverage, NewProof, Proofs, Taken, Untaken};
use cache::rrsets::Partition;
use proptest::prelude::*;
use std::collections::BTreeSet;
use wire::canonical::Key;
use wire::{HashKey, Name, NameBuf, Rtype};

const OWN: Partition = Partition(0);
const UNIX_NOW: u32 = 1_800_000_000;

fn proofs(octets_max: usize) -> Proofs {
    Proofs::new(octets_max, HashKey::new([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]))
}

fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

/// The data of an NSEC with these types, all below 256.
fn nsec(next: Name<'_>, types: &[Rtype]) -> Vec<u8> {
    let mut bits = [0_u8; 32];
    for rtype in types {
        bits[usize::from(rtype.0 / 8)] |= 0x80 >> (rtype.0 % 8);
    }
    [next.as_bytes(), &[0, 32], &bits].concat()
}

fn nsec3(flags: u8, salt: &[u8], next: &[u8; 20]) -> Vec<u8> {
    [&[1, flags, 0, 5, salt.len() as u8], salt, &[20], next, &[0, 1, 0x40]].concat()
}

/// The data of an RRSIG with what the table looks at.
fn rrsig(zone: Name<'_>, labels: u8, original_ttl: u32, expiration: u32) -> Vec<u8> {
    let head = [0, 47, 13, labels];
    let (ttl, end) = (original_ttl.to_be_bytes(), expiration.to_be_bytes());
    [&head[..], &ttl, &end, &[0; 6], zone.as_bytes(), &[9; 64]].concat()
}

/// A range with good signatures, and how it may be bad.
fn put_changed(
    proofs: &Proofs,
    owner: &str,
    rtype: Rtype,
    rdata: &[u8],
    change: impl Fn(&mut NewProof<'_>),
) -> Taken {
    let (zone, owner) = (name("example.org"), name(owner));
    let labels = owner.as_name().labels().filter(|label| *label != b"*").count() as u8;
    let signature = rrsig(zone.as_name(), labels, 900, UNIX_NOW + 100_000);
    let mut new = NewProof {
        partition: OWN,
        zone: zone.as_name(),
        owner: owner.as_name(),
        rtype,
        rdata,
        signatures: &[&signature],
        ttl: 3600,
        negative_ttl: 600,
    };
    change(&mut new);
    proofs.put(&new, Now(1000), UNIX_NOW)
}

fn put(proofs: &Proofs, owner: &str, next: &str, types: &[Rtype]) -> Taken {
    put_changed(proofs, owner, Rtype::NSEC, &nsec(name(next).as_name(), types), |_| {})
}

/// What an NSEC says of a name: by its owner, which is there; by its owner, from before; nothing.
fn look(proofs: &Proofs, wanted: &str, now: u32) -> Option<(Coverage, String)> {
    let mut out = Vec::new();
    let (zone, wanted) = (name("example.org"), name(wanted));
    let proof = proofs.nsec(OWN, zone.as_name(), wanted.as_name(), Now(now), &mut out)?;
    assert_eq!(proof.signatures().count(), 1);
    Some((proof.coverage, proof.owner.to_buf().to_string()))
}

#[test]
fn a_range_says_what_is_there_and_what_is_not() {
    let proofs = proofs(1 << 20);
    assert_eq!(put(&proofs, "example.org", "b.example.org", &[Rtype::SOA, Rtype::NS]), Taken::Yes);
    assert_eq!(put(&proofs, "B.example.org", "f.example.org", &[Rtype::A]), Taken::Yes);
    assert_eq!(put(&proofs, "x.example.org", "example.org", &[Rtype::A]), Taken::Yes);
    let check = |wanted, expected: Option<(Coverage, &str)>| {
        let expected = expected.map(|(coverage, owner)| (coverage, owner.to_string()));
        assert_eq!(look(&proofs, wanted, 1000), expected, "{wanted}");
    };
    check("example.org", Some((Coverage::Matches, "example.org.")));
    check("a.example.org", Some((Coverage::Covers, "example.org.")));
    check("z.a.EXAMPLE.org", Some((Coverage::Covers, "example.org.")));
    check("b.example.org", Some((Coverage::Matches, "b.example.org.")));
    check("under.b.example.org", Some((Coverage::Covers, "b.example.org.")));
    check("c.example.org", Some((Coverage::Covers, "b.example.org.")));
    check("f.example.org", None);
    check("g.example.org", None);
    check("z.example.org", Some((Coverage::Covers, "x.example.org.")));
    check("z.example.com", None);
    let mut out = Vec::new();
    let (zone, wanted) = (name("example.org"), name("b.example.org"));
    let proof = proofs.nsec(OWN, zone.as_name(), wanted.as_name(), Now(1000), &mut out).expect("it is there");
    assert!(proof.has_type(Rtype::A) && !proof.has_type(Rtype::AAAA) && !proof.has_type(Rtype(60_000)));
    assert_eq!((proof.ttl, proof.rtype), (600, Rtype::NSEC));
    assert_eq!(proof.rdata, nsec(name("f.example.org").as_name(), &[Rtype::A]));
    let other = proofs.nsec(Partition(1), zone.as_name(), wanted.as_name(), Now(1000), &mut out);
    assert!(other.is_none(), "another partition");
}

#[test]
fn what_says_something_of_a_name_can_be_forgotten() {
    let check = |flushed: &str, expected: usize, left: &[&str]| {
        let proofs = proofs(1 << 20);
        put(&proofs, "example.org", "b.example.org", &[Rtype::SOA, Rtype::NS]);
        put(&proofs, "b.example.org", "f.example.org", &[Rtype::A]);
        put(&proofs, "x.example.org", "example.org", &[Rtype::A]);
        let count = proofs.flush_name(name(flushed).as_name());
        let wanted = ["a.example.org", "c.example.org", "y.example.org"];
        let known: Vec<&str> =
            wanted.into_iter().filter(|wanted| look(&proofs, wanted, 1000).is_some()).collect();
        assert_eq!((count, &*known), (expected, left), "{flushed}");
    };
    check("c.example.org", 1, &["a.example.org", "y.example.org"]);
    check("B.example.org", 1, &["a.example.org", "y.example.org"]);
    check("z.example.org", 1, &["a.example.org", "c.example.org"]);
    check("f.example.org", 0, &["a.example.org", "c.example.org", "y.example.org"]);
    check("c.example.com", 0, &["a.example.org", "c.example.org", "y.example.org"]);
    let proofs = proofs(1 << 20);
    let owner = format!("{}.example.org", "0".repeat(32));
    let put = put_changed(&proofs, &owner, Rtype::NSEC3, &nsec3(0, b"", &[9; 20]), |_| {});
    assert_eq!(put, Taken::Yes);
    assert_eq!(proofs.flush_name(name("example.com").as_name()), 0);
    assert_eq!(proofs.flush_name(name("a.b.example.org").as_name()), 1, "it may say something of it");
}

#[test]
fn depths_of_zones_without_ranges_need_not_be_looked_at() {
    let proofs = proofs(1 << 20);
    assert!((0..128).all(|labels| !proofs.has_depth(labels)));
    put(&proofs, "example.org", "b.example.org", &[Rtype::SOA, Rtype::NS]);
    let depths: Vec<usize> = (0..200).filter(|&labels| proofs.has_depth(labels)).collect();
    assert_eq!(depths, [2]);
}

#[test]
fn what_is_below_a_delegation_or_a_dname_is_not_denied_from_above() {
    for types in [&[Rtype::NS][..], &[Rtype::DNAME]] {
        let proofs = proofs(1 << 20);
        assert_eq!(put(&proofs, "b.example.org", "f.example.org", types), Taken::Yes);
        assert_eq!(look(&proofs, "under.b.example.org", 1000), None);
        assert!(look(&proofs, "c.example.org", 1000).is_some());
        assert!(look(&proofs, "b.example.org", 1000).is_some());
    }
}

#[test]
fn a_range_ends_with_the_least_of_all_times() {
    let check = |seconds: u32, change: &dyn Fn(&mut NewProof<'_>)| {
        let proofs = proofs(1 << 20);
        let rdata = nsec(name("f.example.org").as_name(), &[Rtype::A]);
        assert_eq!(put_changed(&proofs, "b.example.org", Rtype::NSEC, &rdata, change), Taken::Yes);
        assert!(look(&proofs, "c.example.org", 1000 + seconds - 1).is_some(), "{seconds}");
        assert_eq!(look(&proofs, "c.example.org", 1000 + seconds), None, "{seconds}");
    };
    check(600, &|_| {});
    check(900, &|new| new.negative_ttl = 5000);
    check(50, &|new| new.ttl = 50);
    let zone = name("example.org");
    let short = rrsig(zone.as_name(), 3, 30, UNIX_NOW + 1000);
    let short: &[&[u8]] = &[&short];
    // A borrow of the closure's own cannot go into the range: both cases are by hand.
    for (signatures, seconds) in [(short, 30), (&[&rrsig(zone.as_name(), 3, 900, UNIX_NOW + 20)[..]][..], 20)]
    {
        let proofs = proofs(1 << 20);
        let (owner, rdata) = (name("b.example.org"), nsec(name("f.example.org").as_name(), &[]));
        let new = NewProof {
            partition: OWN,
            zone: zone.as_name(),
            owner: owner.as_name(),
            rtype: Rtype::NSEC,
            rdata: &rdata,
            signatures,
            ttl: 3600,
            negative_ttl: 600,
        };
        assert_eq!(proofs.put(&new, Now(1000), UNIX_NOW), Taken::Yes);
        assert_eq!(look(&proofs, "c.example.org", 1000 + seconds), None);
        assert_eq!(proofs.put(&new, Now(1000), UNIX_NOW + 2000), Taken::No(Untaken::Expired));
    }
}

#[test]
fn what_says_little_or_is_not_the_zones_is_not_taken() {
    let proofs = proofs(1 << 20);
    let taken = |owner: &str, next: &str| put(&proofs, owner, next, &[Rtype::A]);
    assert_eq!(taken("b.example.org", "\\000.b.example.org"), Taken::No(Untaken::Minimal));
    assert_eq!(taken("b.example.net", "f.example.org"), Taken::No(Untaken::Foreign));
    assert_eq!(taken("b.example.org", "f.example.net"), Taken::No(Untaken::Foreign));
    let rdata = nsec(name("f.example.org").as_name(), &[]);
    let check = |owner: &str, rtype, rdata: &[u8], untaken, change: &dyn Fn(&mut NewProof<'_>)| {
        assert_eq!(put_changed(&proofs, owner, rtype, rdata, change), Taken::No(untaken));
    };
    check("b.example.org", Rtype::NSEC, &rdata, Untaken::Malformed, &|new| new.signatures = &[]);
    check("b.example.org", Rtype::NSEC, &rdata, Untaken::Malformed, &|new| new.signatures = &[&[0; 17]]);
    check("b.example.org", Rtype::NSEC, &[], Untaken::Malformed, &|_| {});
    check("b.example.org", Rtype::A, &rdata, Untaken::Malformed, &|_| {});
    check("b.example.org", Rtype::NSEC, &rdata, Untaken::Expired, &|new| new.ttl = 0);
    // From a wildcard: the signature counts a label less.
    let zone = name("example.org");
    let owner = name("b.example.org");
    for signature in
        [rrsig(zone.as_name(), 2, 900, UNIX_NOW + 9), rrsig(name("org").as_name(), 3, 900, UNIX_NOW + 9)]
    {
        let new = NewProof {
            partition: OWN,
            zone: zone.as_name(),
            owner: owner.as_name(),
            rtype: Rtype::NSEC,
            rdata: &rdata,
            signatures: &[&signature],
            ttl: 3600,
            negative_ttl: 600,
        };
        assert_eq!(proofs.put(&new, Now(1000), UNIX_NOW), Taken::No(Untaken::Foreign));
    }
    assert_eq!(taken("*.example.org", "f.example.org"), Taken::Yes, "a wildcard's own range");
    let hashed = owner_of(&[7; 20]);
    let next = |first| {
        let mut next = [7; 20];
        next[0] = first;
        next
    };
    check(&hashed, Rtype::NSEC3, &nsec3(1, b"", &next(9)), Untaken::OptOut, &|_| {});
    check(
        &hashed,
        Rtype::NSEC3,
        &nsec3(
            0,
            b"",
            &[7; 19].iter().copied().chain([9]).collect::<Vec<_>>().try_into().expect("20 octets"),
        ),
        Untaken::Minimal,
        &|_| {},
    );
    check("b.example.org", Rtype::NSEC3, &nsec3(0, b"", &next(9)), Untaken::Malformed, &|_| {});
}

fn owner_of(hash: &[u8; 20]) -> String {
    let mut owner = String::new();
    wire::text::write_base32_hex(&mut owner, hash).expect("a string takes all");
    owner + ".example.org"
}

#[test]
fn hashes_are_covered_in_a_circle() {
    let proofs = proofs(1 << 20);
    let hash = |first: u8| {
        let mut hash = [0x55; 20];
        hash[0] = first;
        hash
    };
    let zone = name("example.org");
    let mut out = Vec::new();
    assert_eq!(proofs.nsec3_parameters(OWN, zone.as_name(), Now(1000), &mut out), None);
    for (first, next) in [(10, 20), (20, 30), (40, 10)] {
        let rdata = nsec3(0, b"salt", &hash(next));
        assert_eq!(put_changed(&proofs, &owner_of(&hash(first)), Rtype::NSEC3, &rdata, |_| {}), Taken::Yes);
    }
    assert_eq!(proofs.nsec3_parameters(OWN, zone.as_name(), Now(1000), &mut out), Some((5, &b"salt"[..])));
    let mut look = |first, salt: &[u8]| {
        let found = proofs.nsec3(OWN, zone.as_name(), (5, salt), &hash(first), Now(1000), &mut out)?;
        Some((found.coverage, found.owner.to_buf().to_string().to_lowercase()))
    };
    let by = |first| owner_of(&hash(first)).to_lowercase() + ".";
    assert_eq!(look(10, b"salt"), Some((Coverage::Matches, by(10))));
    assert_eq!(look(15, b"salt"), Some((Coverage::Covers, by(10))));
    assert_eq!(look(29, b"salt"), Some((Coverage::Covers, by(20))));
    assert_eq!(look(35, b"salt"), None);
    assert_eq!(look(45, b"salt"), Some((Coverage::Covers, by(40))));
    assert_eq!(look(5, b"salt"), Some((Coverage::Covers, by(40))));
    assert_eq!(look(15, b""), None);
    assert_eq!(proofs.flush(name("org").as_name()), 3);
    assert_eq!(proofs.stats().entries, 0);
}

#[test]
fn a_newer_range_takes_the_place_of_those_inside_of_it() {
    let proofs = proofs(1 << 20);
    for (owner, next) in [("b", "d"), ("d", "f"), ("f", "h")] {
        put(&proofs, &format!("{owner}.example.org"), &format!("{next}.example.org"), &[Rtype::A]);
    }
    assert_eq!(put(&proofs, "b.example.org", "f.example.org", &[Rtype::A]), Taken::Yes);
    assert_eq!(look(&proofs, "d.example.org", 1000), Some((Coverage::Covers, "b.example.org.".to_string())));
    assert_eq!(look(&proofs, "f.example.org", 1000), Some((Coverage::Matches, "f.example.org.".to_string())));
    assert_eq!(proofs.stats().entries, 2);
}

fn owner_text(number: u16) -> String {
    // Some are below others.
    if number.is_multiple_of(3) {
        format!("n{number}.example.org")
    } else {
        format!("a.n{}.example.org", number / 3 * 3)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 48 }, ..ProptestConfig::default() })]

    #[test]
    fn what_ranges_say_is_true_of_the_zone(
        there in prop::collection::btree_set(0..300_u16, 1..60),
        known in prop::collection::vec(any::<prop::sample::Index>(), 1..80),
        asked in prop::collection::vec(0..300_u16, 1..80),
        octets_max in prop_oneof![Just(1 << 20), Just(12_000_usize)],
    ) {
        let proofs = proofs(octets_max);
        let key = |text: &str| Key::new(name(text).as_name().as_bytes()).as_bytes().to_vec();
        let mut chain: Vec<String> = there.iter().map(|&number| owner_text(number)).collect();
        chain.push("example.org".to_string());
        chain.sort_by_key(|text| key(text));
        chain.dedup();
        let mut told = BTreeSet::new();
        for index in known {
            let at = index.index(chain.len());
            let (owner, next) = (&chain[at], &chain[(at + 1) % chain.len()]);
            prop_assert_eq!(put(&proofs, owner, next, &[Rtype::A]), Taken::Yes);
            told.insert(at);
            let stats = proofs.stats();
            prop_assert!(stats.octets <= stats.octets_max);
        }
        for number in asked {
            let text = owner_text(number);
            let at = chain.partition_point(|owner| key(owner) <= key(&text)) - 1;
            let is_there = chain[at] == text;
            let found = look(&proofs, &text, 1000);
            if let Some((coverage, owner)) = &found {
                prop_assert_eq!(*coverage == Coverage::Matches, is_there);
                prop_assert_eq!(owner, &format!("{}.", chain[at]));
            }
            if octets_max > 100_000 {
                prop_assert_eq!(found.is_some(), told.contains(&at));
            }
        }
    }
}

#[test]
fn what_is_used_stays() {
    let proofs = proofs(20_000);
    let used = ["b.example.org", "d.example.org"];
    let put_used = || {
        put(&proofs, "b.example.org", "c.example.org", &[Rtype::A]);
        put(&proofs, "d.example.org", "e.example.org", &[Rtype::A]);
    };
    put_used();
    for number in 0..500_u32 {
        put(
            &proofs,
            &format!("n{number:04}.example.org"),
            &format!("n{:04}.example.org", number + 1),
            &[Rtype::A],
        );
        assert!(used.iter().all(|wanted| look(&proofs, wanted, 1000).is_some()), "{number}");
    }
    let stats = proofs.stats();
    assert!(stats.evictions > 300 && stats.entries + stats.evictions <= stats.inserts, "{stats:?}");
}
