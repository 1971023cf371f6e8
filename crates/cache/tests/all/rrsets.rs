//! RRsets and negative answers: what replaces what, who sees what, and what it takes.

use cache::rrsets::{
    Found, NewNegative, NewRrset, Partition, Put, Rank, Reference, Renewal, RrsetFlush, RrsetKey,
    RrsetLimits, Rrsets,
};
use cache::{Now, Security};
use proptest::prelude::*;
use std::collections::HashMap;
use wire::{Class, Folded, HashKey, Name, NameBuf, Rtype};

fn rrsets(octets_max: usize) -> Rrsets {
    Rrsets::new(
        RrsetLimits::with_octets(octets_max),
        HashKey::new([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]),
    )
}

fn folded(text: &str) -> Folded {
    NameBuf::from_text(text).expect("a name").as_name().to_folded()
}

const NEW: NewRrset<'static> = NewRrset {
    records: &[&[192, 0, 2, 1]],
    signatures: &[],
    ttl: 300,
    rank: Rank::Answer,
    security: Security::Unchecked,
    signer_labels: 0,
    labels_signed: 0,
    renewal: Renewal::No,
};

/// What a look returns, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    records: Vec<Vec<u8>>,
    signatures: Vec<Vec<u8>>,
    rank: Rank,
    security: Security,
    expires_at: u32,
    is_negative: bool,
}

fn look(rrsets: &Rrsets, key: &RrsetKey<'_>, now: u32) -> Option<Seen> {
    let mut out = Vec::new();
    Some(match rrsets.look(key, Now(now), &mut out)? {
        Found::Rrset(rrset) => Seen {
            records: rrset.records().map(<[u8]>::to_vec).collect(),
            signatures: rrset.signatures().map(<[u8]>::to_vec).collect(),
            rank: rrset.rank,
            security: rrset.security,
            expires_at: now + rrset.ttl,
            is_negative: false,
        },
        Found::NoData(negative) | Found::NoName(negative) => Seen {
            records: negative.references().map(|reference| reference.mark.to_be_bytes().to_vec()).collect(),
            signatures: Vec::new(),
            rank: negative.rank(),
            security: negative.security(),
            expires_at: now + negative.ttl(),
            is_negative: true,
        },
    })
}

/// One rule: what came first, what came `later_s` seconds after, and what is there then.
fn check(
    rtype: Rtype,
    first: &NewRrset<'_>,
    later_s: u32,
    second: &NewRrset<'_>,
    put: Put,
    ttl: Option<u32>,
) {
    let rrsets = rrsets(1 << 20);
    let name = folded("www.example.org");
    let key = RrsetKey::new(rrsets.hash_key(), &name, rtype, Class::IN, Partition(0));
    assert!(matches!(rrsets.put(&key, first, Now(1000)), Put::Stored { .. }));
    let now = 1000 + later_s;
    assert_eq!(rrsets.put(&key, second, Now(now)), put, "{first:?}, then {second:?}");
    let seen = look(&rrsets, &key, now);
    assert_eq!(seen.as_ref().map(|seen| seen.expires_at - now), ttl, "{first:?}, then {second:?}");
    if matches!(put, Put::Stored { .. }) {
        let seen = seen.expect("it was stored");
        assert_eq!((seen.rank, seen.security), (second.rank, second.security));
        assert!(seen.records.iter().eq(second.records));
    }
}

const OTHER: &[&[u8]] = &[&[192, 0, 2, 2]];
const EIGHT: &[u8] = &[0; 8];
const SIGNATURE: &[&[u8]] = &[&[1; 90]];

#[test]
fn data_of_higher_rank_replaces_and_of_lower_rank_does_not() {
    let glue = NewRrset { rank: Rank::Additional, records: OTHER, ..NEW };
    check(Rtype::A, &NEW, 10, &glue, Put::Kept, Some(290));
    check(Rtype::A, &glue, 10, &NEW, Put::Stored { ttl: 300 }, Some(300));
    check(Rtype::A, &NEW, 300, &glue, Put::Stored { ttl: 300 }, Some(300));
}

#[test]
fn data_of_equal_rank_brings_no_new_life() {
    check(Rtype::A, &NEW, 10, &NEW, Put::Kept, Some(290));
    check(Rtype::A, &NEW, 10, &NewRrset { records: OTHER, ..NEW }, Put::Kept, Some(290));
    check(Rtype::A, &NEW, 300, &NEW, Put::Stored { ttl: 300 }, Some(300));
    let ns = NewRrset { rank: Rank::Authority, ..NEW };
    check(Rtype::NS, &ns, 299, &ns, Put::Kept, Some(1));
    let longer = NewRrset { ttl: 9999, ..NEW };
    check(Rtype::A, &NEW, 10, &longer, Put::Kept, Some(290));
}

#[test]
fn what_was_asked_for_again_on_purpose_lives_on_unless_it_is_ns_or_glue() {
    let again = NewRrset { renewal: Renewal::Prefetched, records: OTHER, ..NEW };
    check(Rtype::A, &NEW, 280, &again, Put::Stored { ttl: 300 }, Some(300));
    check(Rtype::NS, &NEW, 280, &again, Put::Kept, Some(20));
    let glue = NewRrset { rank: Rank::Additional, ..NEW };
    check(Rtype::A, &glue, 280, &NewRrset { rank: Rank::Additional, ..again }, Put::Kept, Some(20));
}

#[test]
fn signatures_and_their_check_are_taken_without_a_new_life() {
    let signed = NewRrset { signatures: SIGNATURE, ..NEW };
    check(Rtype::A, &NEW, 10, &signed, Put::Stored { ttl: 290 }, Some(290));
    let secure = NewRrset { security: Security::Secure, ..signed };
    check(Rtype::A, &signed, 10, &secure, Put::Stored { ttl: 290 }, Some(290));
    // Checked data takes the place of other data that nobody checked.
    check(Rtype::A, &NewRrset { records: OTHER, ..NEW }, 10, &secure, Put::Stored { ttl: 290 }, Some(290));
    // The order of records is none of their own.
    let records: &[&[u8]] = &[&[1], &[2]];
    let turned: &[&[u8]] = &[&[2], &[1]];
    let first = NewRrset { records, ..NEW };
    check(Rtype::A, &first, 10, &NewRrset { records: turned, ..signed }, Put::Stored { ttl: 290 }, Some(290));
    check(Rtype::A, &first, 10, &signed, Put::Kept, Some(290));
}

#[test]
fn what_is_proved_yields_to_what_is_proved_alone() {
    let secure = NewRrset { rank: Rank::Authority, security: Security::Secure, ..NEW };
    check(Rtype::A, &secure, 10, &NewRrset { records: OTHER, ..NEW }, Put::Kept, Some(290));
    let bogus = NewRrset { security: Security::Bogus, records: OTHER, ..NEW };
    check(Rtype::A, &secure, 10, &bogus, Put::Kept, Some(290));
    let better = NewRrset { rank: Rank::Answer, ttl: 500, ..secure };
    check(Rtype::A, &secure, 10, &better, Put::Stored { ttl: 500 }, Some(500));
}

#[test]
fn bogus_data_is_kept_twice_as_long_each_time_and_a_minute_at_most() {
    let rrsets = rrsets(1 << 20);
    let name = folded("www.example.org");
    let key = RrsetKey::new(rrsets.hash_key(), &name, Rtype::A, Class::IN, Partition(0));
    let bogus = NewRrset { security: Security::Bogus, ..NEW };
    let mut now = 1000;
    for seconds in [5, 10, 20, 40, 60, 60, 60] {
        assert_eq!(rrsets.put(&key, &bogus, Now(now)), Put::Stored { ttl: seconds });
        assert_eq!(rrsets.put(&key, &bogus, Now(now + 1)), Put::Kept);
        now += seconds;
        assert_eq!(look(&rrsets, &key, now), None);
    }
    // A minute later it is forgotten.
    now += 60;
    assert_eq!(rrsets.put(&key, &bogus, Now(now)), Put::Stored { ttl: 5 });
    assert_eq!(rrsets.put(&key, &NewRrset { ttl: 3, ..bogus }, Now(now + 5)), Put::Stored { ttl: 3 });
    // The first that is not bogus ends it.
    let insecure = NewRrset { security: Security::Insecure, ..NEW };
    assert_eq!(rrsets.put(&key, &insecure, Now(now + 6)), Put::Stored { ttl: 300 });
}

#[test]
fn what_came_with_cd_is_seen_with_cd_alone() {
    let rrsets = rrsets(1 << 20);
    let name = folded("www.example.org");
    let key = RrsetKey::new(rrsets.hash_key(), &name, Rtype::A, Class::IN, Partition(0));
    let unchecked = key.unchecked(rrsets.hash_key());
    assert!(matches!(rrsets.put(&unchecked, &NEW, Now(0)), Put::Stored { .. }));
    assert_eq!(look(&rrsets, &key, 0), None);
    assert!(look(&rrsets, &unchecked, 0).is_some());
    let checked = NewRrset { records: OTHER, security: Security::Secure, ttl: 10, ..NEW };
    assert!(matches!(rrsets.put(&key, &checked, Now(0)), Put::Stored { .. }));
    assert_eq!(look(&rrsets, &unchecked, 0).expect("it is there").security, Security::Secure);
    assert_eq!(look(&rrsets, &unchecked, 10).expect("it is there").security, Security::Unchecked);
}

#[test]
fn keys_are_apart_by_every_part() {
    let rrsets = rrsets(1 << 20);
    let (name, other) = (folded("www.example.org"), folded("WWW.example.net"));
    let key = RrsetKey::new(rrsets.hash_key(), &name, Rtype::A, Class::IN, Partition(0));
    assert!(matches!(rrsets.put(&key, &NEW, Now(0)), Put::Stored { .. }));
    for other in [
        RrsetKey::new(rrsets.hash_key(), &other, Rtype::A, Class::IN, Partition(0)),
        RrsetKey::new(rrsets.hash_key(), &name, Rtype::AAAA, Class::IN, Partition(0)),
        RrsetKey::new(rrsets.hash_key(), &name, Rtype::A, Class::CH, Partition(0)),
        RrsetKey::new(rrsets.hash_key(), &name, Rtype::A, Class::IN, Partition(1)),
        key.without_type(rrsets.hash_key()),
    ] {
        assert_eq!(look(&rrsets, &other, 0), None);
    }
    let upper = folded("WWW.EXAMPLE.ORG");
    let upper = RrsetKey::new(rrsets.hash_key(), &upper, Rtype::A, Class::IN, Partition(0));
    assert!(look(&rrsets, &upper, 0).is_some());
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let rrsets = rrsets(1 << 20);
    let name = folded("www.example.org");
    let key = RrsetKey::new(rrsets.hash_key(), &name, Rtype::A, Class::IN, Partition(0));
    let check = |new: &NewRrset<'_>| assert_eq!(rrsets.put(&key, new, Now(7)), Put::Refused);
    check(&NewRrset { ttl: 0, ..NEW });
    check(&NewRrset { records: &[], ..NEW });
    check(&NewRrset { records: &[&[0; 65536]], ..NEW });
    check(&NewRrset { records: &[EIGHT; 4096], ..NEW });
    check(&NewRrset { signatures: &[EIGHT; 256], ..NEW });
    check(&NewRrset { records: &[&[0; 60_000], &[0; 60_000], &[0; 60_000]], ..NEW });
    assert_eq!(rrsets.stats().entries, 0);
    let most = NewRrset { records: &[EIGHT; 4095], signatures: &[EIGHT; 255], ..NEW };
    assert!(matches!(rrsets.put(&key, &most, Now(7)), Put::Stored { .. }));
    let seen = look(&rrsets, &key, 7).expect("it is there");
    assert_eq!((seen.records.len(), seen.signatures.len()), (4095, 255));
}

#[test]
fn a_negative_answer_says_what_it_leans_on() {
    let rrsets = rrsets(1 << 20);
    let name = folded("no.such.example.org");
    let key = RrsetKey::new(rrsets.hash_key(), &name, Rtype::MX, Class::IN, Partition(0));
    let none = key.without_type(rrsets.hash_key());
    let owners = ["example.org", "a.EXAMPLE.org", "*.example.org"]
        .map(|text| NameBuf::from_text(text).expect("a name"));
    let mark = rrsets.reference_mark([&b"data"[..]].into_iter());
    assert_ne!(mark, rrsets.reference_mark([&b"date"[..]].into_iter()));
    let rtypes = [Rtype::SOA, Rtype::NSEC, Rtype::NSEC];
    let references: Vec<_> = owners
        .iter()
        .zip(rtypes)
        .map(|(owner, rtype)| Reference { owner: owner.as_name(), rtype, mark })
        .collect();
    let new = NewNegative {
        references: &references,
        ttl: 60,
        rank: Rank::Answer,
        security: Security::Secure,
        signer_labels: 2,
        renewal: Renewal::No,
    };
    assert_eq!(rrsets.put_negative(&none, &new, Now(0)), Put::Stored { ttl: 60 });
    assert_eq!(
        rrsets.put_negative(&key, &NewNegative { references: &[], ..new }, Now(0)),
        Put::Stored { ttl: 60 }
    );
    let mut out = Vec::new();
    match rrsets.look(&none, Now(1), &mut out) {
        Some(Found::NoName(negative)) => {
            assert!(negative.name() == name.as_name() && negative.rtype().is_none());
            assert_eq!(
                (negative.ttl(), negative.security(), negative.signer_labels()),
                (59, Security::Secure, 2)
            );
            let found: Vec<_> = negative.references().collect();
            assert_eq!(found.len(), 3);
            for (found, given) in found.iter().zip(&references) {
                assert!(found.owner.as_name() == given.owner);
                assert_eq!((found.rtype, found.mark), (given.rtype, given.mark));
            }
        }
        _ => panic!("no negative answer"),
    }
    assert!(matches!(rrsets.look(&key, Now(1), &mut out), Some(Found::NoData(_))));
    assert_eq!(rrsets.flush(RrsetFlush::Negative), 2);
}

#[test]
fn flushing_takes_what_it_is_asked_to() {
    let names = ["example.org", "www.example.org", "xexample.org"].map(folded);
    let filled = || {
        let rrsets = rrsets(1 << 20);
        for name in &names {
            for (rtype, security) in [(Rtype::A, Security::Bogus), (Rtype::NS, Security::Insecure)] {
                let key = RrsetKey::new(rrsets.hash_key(), name, rtype, Class::IN, Partition(3));
                assert!(matches!(
                    rrsets.put(&key, &NewRrset { security, ..NEW }, Now(0)),
                    Put::Stored { .. }
                ));
            }
        }
        rrsets
    };
    let check = |what, expected| {
        let rrsets = filled();
        assert_eq!(rrsets.flush(what), expected);
        let mut left = 0;
        rrsets.for_each(Now(0), |_| left += 1);
        assert_eq!(left, 6 - expected);
    };
    let name = names[0].as_name();
    check(RrsetFlush::Name(name), 2);
    check(RrsetFlush::Suffix(name), 4);
    check(RrsetFlush::Suffix(Name::ROOT), 6);
    check(RrsetFlush::Type(name, Rtype::NS), 1);
    check(RrsetFlush::Bogus, 3);
    check(RrsetFlush::Negative, 0);
    check(RrsetFlush::All, 6);
}

#[test]
fn an_rrset_takes_its_name_its_data_and_little_more() {
    let rrsets = rrsets(1 << 20);
    let before = rrsets.octets_used();
    let name = folded("www.example.org");
    let key = RrsetKey::new(rrsets.hash_key(), &name, Rtype::A, Class::IN, Partition(0));
    assert!(matches!(rrsets.put(&key, &NEW, Now(0)), Put::Stored { .. }));
    // 32 octets, a name of 17, and a record of 4 with its length.
    assert_eq!(rrsets.octets_used() - before, 56);
    assert_eq!(rrsets.stats().octets, rrsets.octets_used());
}

#[derive(Clone, Debug)]
struct Step {
    name: u8,
    is_ns: bool,
    is_cd: bool,
    is_negative: bool,
    is_prefetched: bool,
    data: u8,
    octets: usize,
    is_signed: bool,
    ttl: u32,
    rank: Rank,
    security: Security,
    wait: u32,
}

fn step(names: u8) -> impl Strategy<Value = Step> {
    let ranks =
        [Rank::Additional, Rank::Hearsay, Rank::ZoneGlue, Rank::Authority, Rank::Answer, Rank::Primary];
    let securities =
        [Security::Unchecked, Security::Secure, Security::Insecure, Security::Indeterminate, Security::Bogus];
    let bits =
        (any::<bool>(), prop::bool::weighted(0.2), prop::bool::weighted(0.2), any::<bool>(), any::<bool>());
    let what = (
        0..3_u8,
        0..200_usize,
        0..100_u32,
        prop::sample::select(ranks.to_vec()),
        prop::sample::select(securities.to_vec()),
    );
    (0..names, bits, what, 0..30_u32).prop_map(|(name, bits, what, wait)| {
        let (is_ns, is_cd, is_negative, is_prefetched, is_signed) = bits;
        let (data, octets, ttl, rank, security) = what;
        Step {
            name,
            is_ns,
            is_cd,
            is_negative,
            is_prefetched,
            data,
            octets,
            is_signed,
            ttl,
            rank,
            security,
            wait,
        }
    })
}

impl Step {
    fn put(&self, rrsets: &Rrsets, key: &RrsetKey<'_>, now: u32) -> Put {
        let renewal = if self.is_prefetched { Renewal::Prefetched } else { Renewal::No };
        if self.is_negative {
            let owner = NameBuf::from_text("example.org").expect("a name");
            let reference =
                Reference { owner: owner.as_name(), rtype: Rtype::SOA, mark: u16::from(self.data) };
            let new = NewNegative {
                references: &[reference],
                ttl: self.ttl,
                rank: self.rank,
                security: self.security,
                signer_labels: 0,
                renewal,
            };
            return rrsets.put_negative(key, &new, Now(now));
        }
        let new = NewRrset {
            records: &[&self.record()],
            signatures: if self.is_signed { SIGNATURE } else { &[] },
            ttl: self.ttl,
            rank: self.rank,
            security: self.security,
            renewal,
            ..NEW
        };
        rrsets.put(key, &new, Now(now))
    }

    /// Data that says whether it came with CD.
    fn record(&self) -> Vec<u8> {
        [&[u8::from(self.is_cd), self.data][..], &vec![self.data; self.octets]].concat()
    }
}

/// Checks what a step did by the rules, not by how they are carried out.
fn check_step(step: &Step, put: Put, before: Option<&Seen>, after: Option<&Seen>, now: u32) {
    match put {
        Put::Stored { ttl } => {
            assert!(ttl > 0 && ttl <= step.ttl);
            let after = after.expect("what was stored is there");
            assert_eq!((after.rank, after.security), (step.rank, step.security));
            assert_eq!((after.expires_at, after.is_negative), (now + ttl, step.is_negative));
            if !step.is_negative {
                assert_eq!(after.records, [step.record()]);
                assert_eq!(after.signatures.len(), usize::from(step.is_signed));
            }
            if step.security == Security::Bogus {
                assert!(ttl <= 60);
            }
        }
        Put::Kept => assert_eq!(after, before),
        Put::Refused => {
            assert_eq!(step.ttl, 0);
            assert_eq!(after, before);
        }
    }
    let Some(before) = before else {
        assert_eq!(matches!(put, Put::Stored { .. }), step.ttl > 0);
        return;
    };
    let after = after.expect("what lives is replaced, not dropped");
    assert!(after.rank >= before.rank, "lower rank replaced higher");
    assert!(before.security != Security::Secure || after.security == Security::Secure);
    let may_renew = step.is_prefetched && step.rank >= Rank::Answer && !step.is_ns;
    if after.rank == before.rank && before.security != Security::Bogus && !may_renew {
        assert!(after.expires_at <= before.expires_at, "a new life by data of equal rank");
    }
}

fn run(octets_max: usize, steps: &[Step]) {
    let rrsets = rrsets(octets_max);
    let mut model: HashMap<(u8, bool, bool), Seen> = HashMap::new();
    let mut now = 1000;
    for step in steps {
        now += step.wait;
        let name = folded(&format!("name{}.example.org", step.name));
        let rtype = if step.is_ns { Rtype::NS } else { Rtype::A };
        let plain = RrsetKey::new(rrsets.hash_key(), &name, rtype, Class::IN, Partition(0));
        let key = if step.is_cd { plain.unchecked(rrsets.hash_key()) } else { plain };
        // Who sets CD sees what others fetched: then it does not see what it is about to replace.
        let is_hidden = step.is_cd && look(&rrsets, &plain, now).is_some();
        let before = look(&rrsets, &key, now);
        let put = step.put(&rrsets, &key, now);
        let after = look(&rrsets, &key, now);
        if !is_hidden {
            check_step(step, put, before.as_ref(), after.as_ref(), now);
            let place = (step.name, step.is_ns, step.is_cd);
            if let (Put::Stored { .. }, Some(after)) = (put, after) {
                model.insert(place, after);
            }
        } else if matches!(put, Put::Stored { .. }) {
            model.remove(&(step.name, step.is_ns, step.is_cd));
        }
        if let Some(seen) = look(&rrsets, &plain, now) {
            assert_eq!(Some(&seen), model.get(&(step.name, step.is_ns, false)), "it is what was stored last");
            assert!(seen.expires_at > now);
            assert!(seen.is_negative || seen.records[0][0] == 0, "it was fetched with CD");
        }
        let stats = rrsets.stats();
        assert!(stats.octets <= stats.octets_max);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 64 }, ..ProptestConfig::default() })]

    #[test]
    fn a_table_with_room_keeps_to_the_rules(steps in prop::collection::vec(step(4), 1..400)) {
        run(1 << 20, &steps);
    }

    #[test]
    fn a_full_table_keeps_to_the_rules(steps in prop::collection::vec(step(200), 1..800)) {
        run(16_000, &steps);
    }
}

#[test]
fn many_threads_see_whole_rrsets_alone() {
    let rrsets = rrsets(20_000);
    let rounds = if cfg!(miri) { 20 } else { 30_000_u32 };
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let rrsets = &rrsets;
            scope.spawn(move || {
                let mut out = Vec::new();
                for round in 0..rounds {
                    let number = round.wrapping_mul(thread * 2 + 7) % 100;
                    let name = folded(&format!("name{number}.example.org"));
                    let key = RrsetKey::new(rrsets.hash_key(), &name, Rtype::A, Class::IN, Partition(0));
                    if let Some(Found::Rrset(rrset)) = rrsets.look(&key, Now(round / 1000), &mut out) {
                        assert!(rrset.owner == name.as_name());
                        let version = rrset.records().next().expect("a record")[0];
                        let expected = vec![version; 1 + usize::from(version)];
                        assert!(rrset.records().all(|record| record == expected));
                        assert_eq!(rrset.records().count(), 3);
                    } else {
                        let version = (round % 50) as u8;
                        let record = vec![version; 1 + usize::from(version)];
                        let new = NewRrset { records: &[&record[..]; 3], ttl: 1, ..NEW };
                        let _ = rrsets.put(&key, &new, Now(round / 1000));
                    }
                }
            });
        }
    });
    assert!(rrsets.stats().octets <= 20_000);
}
