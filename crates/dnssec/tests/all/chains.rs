//! From DS records and trust anchors to keys of zones, and from those to RRsets.

use crate::support;

use dnssec::chain::{
    Insecure, KEYS_MAX, Rules, SecureKeys, TrustPoint, ZoneKeys, insecurity, known_zone_keys, zone_keys,
};
use dnssec::{
    Algorithm, Algorithms, Bogus, Budget, DigestType, Dnskey, Ds, Failure, KeySize, ParsedKey,
    PublicKey as _, REVOKED, Rrset, SecretKey, SignedBy, Unverified, flags_of, verify_octets,
};
use support::{name, rdata};
use wire::{EdeCode, NameBuf, Rtype};

const NOW: u32 = 1_795_000_000;
const DAY: u32 = 86_400;

/// A zone with two keys of one algorithm: one for keys, one for the rest.
struct Zone {
    apex: NameBuf,
    ksk: SecretKey,
    zsk: SecretKey,
}

fn generate(algorithm: u8) -> SecretKey {
    SecretKey::generate(Algorithm(algorithm), KeySize::Bits2048).expect("a key")
}

impl Zone {
    fn new(algorithm: u8) -> Self {
        Self { apex: name("example.org"), ksk: generate(algorithm), zsk: generate(algorithm) }
    }

    fn keys(&self) -> [Vec<u8>; 2] {
        [self.ksk.dnskey(flags_of(true)), self.zsk.dnskey(flags_of(false))]
    }

    fn ds(&self, digest_type: u8) -> Vec<u8> {
        let [ksk, _] = self.keys();
        let key = Dnskey::parse(&ksk).expect("a key");
        Ds::write(self.apex.as_name(), key, DigestType(digest_type)).expect("a digest that is known")
    }

    fn sign(&self, key: &SecretKey, flags: u16, rrset: &Rrset) -> Vec<u8> {
        let rdata = key.dnskey(flags);
        let by = SignedBy {
            key,
            tag: Dnskey::parse(&rdata).expect("a key").tag(),
            zone: self.apex.as_name(),
            ttl: 3600,
            inception: NOW - DAY,
            expiration: NOW + DAY,
        };
        rrset.sign(&by).expect("a signature")
    }

    fn judge(&self, ds: &[&[u8]], keys: &[&[u8]], rrsigs: &[&[u8]], accepted: Algorithms) -> ZoneKeys {
        let points: Vec<TrustPoint<'_>> =
            ds.iter().map(|ds| TrustPoint::Ds(Ds::parse(ds).expect("a DS"))).collect();
        self.judge_by(&points, keys, rrsigs, accepted)
    }

    fn judge_by(
        &self,
        points: &[TrustPoint<'_>],
        keys: &[&[u8]],
        rrsigs: &[&[u8]],
        accepted: Algorithms,
    ) -> ZoneKeys {
        let dnskeys = rrset(&self.apex, Rtype::DNSKEY, keys);
        let rules = Rules::exact(accepted, NOW);
        let mut budget = Budget::with_failures(48, 16);
        zone_keys(self.apex.as_name(), points, &dnskeys, rrsigs.iter().copied(), rules, &mut budget)
    }
}

fn rrset(owner: &NameBuf, rtype: Rtype, data: &[&[u8]]) -> Rrset {
    Rrset::of(owner.as_name(), rtype, data.iter().copied()).expect("data")
}

#[track_caller]
fn secure(found: ZoneKeys) -> SecureKeys {
    match found {
        ZoneKeys::Secure(keys) => keys,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn bogus(found: ZoneKeys) -> Failure {
    match found {
        ZoneKeys::Bogus(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn insecure(found: ZoneKeys) -> Insecure {
    match found {
        ZoneKeys::Insecure(insecure) => insecure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_that_were_good_are_known_for_as_long_as_what_stands_for_them() {
    let zone = Zone::new(13);
    let [ksk, zsk] = zone.keys();
    let dnskeys = rrset(&zone.apex, Rtype::DNSKEY, &[&ksk, &zsk]);
    let by_ksk = zone.sign(&zone.ksk, flags_of(true), &dnskeys);
    let known = |ds: &[u8], rrsig: &[u8], now: u32| {
        let points = [TrustPoint::Ds(Ds::parse(ds).expect("a DS"))];
        let rules = Rules::exact(Algorithms::SUPPORTED, now);
        known_zone_keys(zone.apex.as_name(), &points, &dnskeys, rrsig, rules)
    };
    let keys = known(&zone.ds(2), &by_ksk, NOW).expect("they are known");
    let judged = secure(zone.judge(&[&zone.ds(2)], &[&ksk, &zsk], &[&by_ksk], Algorithms::SUPPORTED));
    let facts = |keys: &SecureKeys| (keys.tag(), keys.original_ttl(), keys.expiration(), keys.keys().len());
    assert_eq!((facts(&keys), keys.zone()), (facts(&judged), judged.zone()));
    let is_known = |ds: &[u8], rrsig: &[u8], now| known(ds, rrsig, now).is_some();
    assert!(is_known(&zone.ds(2), &by_ksk, NOW + DAY));
    assert!(!is_known(&zone.ds(2), &by_ksk, NOW + DAY + 1), "it has ended");
    assert!(!is_known(&zone.ds(2), &by_ksk, NOW - DAY - 1), "it has not begun");
    assert!(!is_known(&Zone::new(13).ds(2), &by_ksk, NOW), "the parent has other keys now");
    let by_zsk = zone.sign(&zone.zsk, flags_of(false), &dnskeys);
    assert!(!is_known(&zone.ds(2), &by_zsk, NOW), "nothing stands for the key that signed");
    let address = rrset(&zone.apex, Rtype::A, &[&[192, 0, 2, 1]]);
    let of_another = zone.sign(&zone.ksk, flags_of(true), &address);
    assert!(!is_known(&zone.ds(2), &of_another, NOW), "it is of another set");
    assert!(!is_known(&zone.ds(2), &by_ksk[..10], NOW), "it is none");
}

#[test]
fn a_ds_leads_to_the_keys_and_these_to_the_rest() {
    for algorithm in [8, 10, 13, 14, 15, 16] {
        let zone = Zone::new(algorithm);
        let [ksk, zsk] = zone.keys();
        let dnskeys = rrset(&zone.apex, Rtype::DNSKEY, &[&ksk, &zsk]);
        let by_ksk = zone.sign(&zone.ksk, flags_of(true), &dnskeys);
        for digest in [1, 2, 4] {
            let found = zone.judge(&[&zone.ds(digest)], &[&ksk, &zsk], &[&by_ksk], Algorithms::SUPPORTED);
            let keys = secure(found);
            assert_eq!((keys.keys().len(), keys.zone()), (2, zone.apex.as_name()));
            assert_eq!((keys.original_ttl(), keys.expiration()), (3600, NOW + DAY));
            assert_eq!([NOW, NOW + DAY - 60, NOW + DAY].map(|now| keys.ttl_max(now)), [3600, 60, 0]);
            let owner = name("www.example.org");
            let address = rrset(&owner, Rtype::A, &[&[192, 0, 2, 1]]);
            let by_zsk = zone.sign(&zone.zsk, flags_of(false), &address);
            let verify = |rrsigs: &[&[u8]], now: u32| {
                let rules = Rules::exact(Algorithms::SUPPORTED, now);
                let done = keys.verify(&address, rrsigs.iter().copied(), rules, &mut Budget::new(8));
                done.map(|verified| (verified.ttl_max(now), verified.wildcard_labels()))
            };
            assert_eq!(verify(&[&by_zsk], NOW), Ok((3600, None)));
            assert_eq!(verify(&[&by_zsk], NOW + DAY - 5), Ok((5, None)));
            let fault = |rrsigs: &[&[u8]], now| verify(rrsigs, now).expect_err("it is not good").ede();
            assert_eq!(fault(&[], NOW), EdeCode::RRSIGS_MISSING);
            assert_eq!(fault(&[&by_zsk], NOW + 2 * DAY), EdeCode::SIGNATURE_EXPIRED);
            assert_eq!(fault(&[&by_zsk], NOW - 2 * DAY), EdeCode::SIGNATURE_NOT_YET_VALID);
            let mut wrong = by_zsk.clone();
            *wrong.last_mut().expect("a signature") ^= 1;
            assert_eq!(fault(&[&wrong], NOW), EdeCode::DNSSEC_BOGUS);
            // Another tag, and times that cannot be.
            let mut wrong = by_zsk.clone();
            wrong[16] ^= 1;
            assert_eq!(fault(&[&wrong], NOW), EdeCode::DNSKEY_MISSING);
            let mut wrong = by_zsk.clone();
            wrong[8..12].copy_from_slice(&(NOW - 2 * DAY).to_be_bytes());
            assert_eq!(fault(&[&wrong], NOW), EdeCode::SIGNATURE_EXPIRED_BEFORE_VALID);
        }
        // A trust anchor that is the key itself.
        let anchor = TrustPoint::Key(Dnskey::parse(&ksk).expect("a key"));
        let found = zone.judge_by(&[anchor], &[&ksk, &zsk], &[&by_ksk], Algorithms::SUPPORTED);
        assert_eq!(secure(found).tag(), Dnskey::parse(&ksk).expect("a key").tag());
    }
}

#[test]
fn what_does_not_lead_to_the_keys_is_bogus() {
    let (zone, other) = (Zone::new(13), Zone::new(13));
    let [ksk, zsk] = zone.keys();
    let keys = rrset(&zone.apex, Rtype::DNSKEY, &[&ksk, &zsk]);
    let (by_ksk, by_zsk) =
        (zone.sign(&zone.ksk, flags_of(true), &keys), zone.sign(&zone.zsk, flags_of(false), &keys));
    let judge = |ds: &[&[u8]], keys: &[&[u8]], rrsigs: &[&[u8]]| {
        bogus(zone.judge(ds, keys, rrsigs, Algorithms::SUPPORTED))
    };
    let ds = zone.ds(2);
    // The DS is of a key that is not there; the reason names it.
    let failure = judge(&[&other.ds(2)], &[&ksk, &zsk], &[&by_ksk]);
    assert_eq!((failure.ede(), failure.why), (EdeCode::DNSKEY_MISSING, Unverified::Bogus(Bogus::NoKey)));
    let tag = Ds::parse(&other.ds(2)).expect("a DS").tag;
    assert_eq!(failure.key, Some((tag, Algorithm(13))));
    let text = failure.to_string();
    assert!(text.ends_with(&format!("(key {tag}, algorithm ECDSAP256SHA256)")), "{text}");
    // Tag and algorithm fit, the digest does not.
    let mut wrong = ds.clone();
    wrong[4] ^= 1;
    assert_eq!(judge(&[&wrong], &[&ksk, &zsk], &[&by_ksk]).ede(), EdeCode::DNSKEY_MISSING);
    // Only the other key signed, or nobody, or the set is another.
    assert_eq!(judge(&[&ds], &[&ksk, &zsk], &[&by_zsk]).ede(), EdeCode::DNSKEY_MISSING);
    assert_eq!(judge(&[&ds], &[&ksk, &zsk], &[]).ede(), EdeCode::RRSIGS_MISSING);
    assert_eq!(judge(&[&ds], &[&ksk], &[&by_ksk]).why, Unverified::Bogus(Bogus::Signature));
    // A revoked key is never used, whoever signed with it.
    let revoked = zone.ksk.dnskey(flags_of(true) | REVOKED);
    let set = rrset(&zone.apex, Rtype::DNSKEY, &[&revoked, &zsk]);
    let by_revoked = zone.sign(&zone.ksk, flags_of(true) | REVOKED, &set);
    let of_revoked = Ds::write(zone.apex.as_name(), Dnskey::parse(&revoked).expect("a key"), DigestType(2));
    let of_revoked = of_revoked.expect("a DS");
    assert_eq!(judge(&[&of_revoked], &[&revoked, &zsk], &[&by_revoked]).ede(), EdeCode::DNSKEY_MISSING);
    assert!(matches!(
        zone.judge(&[&ds], &[&ksk, &revoked], &[&by_ksk], Algorithms::SUPPORTED),
        ZoneKeys::Bogus(_)
    ));
    let both = rrset(&zone.apex, Rtype::DNSKEY, &[&ksk, &revoked]);
    let by_ksk = zone.sign(&zone.ksk, flags_of(true), &both);
    let found = zone.judge(&[&ds], &[&ksk, &revoked], &[&by_ksk], Algorithms::SUPPORTED);
    assert_eq!(secure(found).keys().len(), 1);
}

#[test]
fn what_is_not_known_is_insecure_unless_something_else_is() {
    let zone = Zone::new(13);
    let [ksk, zsk] = zone.keys();
    let keys = rrset(&zone.apex, Rtype::DNSKEY, &[&ksk, &zsk]);
    let by_ksk = zone.sign(&zone.ksk, flags_of(true), &keys);
    let judge = |ds: &[&[u8]]| zone.judge(ds, &[&ksk, &zsk], &[&by_ksk], Algorithms::SUPPORTED);
    let with = |algorithm, digest| {
        let mut ds = zone.ds(2);
        (ds[2], ds[3]) = (algorithm, digest);
        ds
    };
    let found = insecure(judge(&[&with(200, 2)]));
    assert_eq!(
        (found, found.ede()),
        (Insecure::Algorithm(Algorithm(200)), EdeCode::UNSUPPORTED_DNSKEY_ALGORITHM)
    );
    let found = insecure(judge(&[&with(13, 3)]));
    assert_eq!((found, found.ede()), (Insecure::Digest(DigestType(3)), EdeCode::UNSUPPORTED_DS_DIGEST_TYPE));
    assert_eq!(insecure(judge(&[&with(5, 2), &with(7, 2)])), Insecure::Algorithm(Algorithm(5)));
    // One DS that is known suffices to promise signatures.
    secure(judge(&[&with(200, 2), &zone.ds(2)]));
    bogus(judge(&[&with(200, 2), &with(8, 2)]));
    let point = [TrustPoint::Key(Dnskey::parse(&ksk).expect("a key"))];
    assert_eq!(insecurity(&point, Algorithms::SUPPORTED), None);
    let without = Algorithms::SUPPORTED.without(Algorithm(13));
    assert_eq!(insecurity(&point, without), Some(Insecure::Algorithm(Algorithm(13))));
}

#[test]
fn harden_algo_downgrade_wants_a_signature_of_each_algorithm_that_the_parent_names() {
    let (old, new) = (Zone::new(8), Zone::new(13));
    let [old_ds, new_ds, weak_ds] = [old.ds(2), new.ds(2), old.ds(1)];
    let keys: Vec<Vec<u8>> = old.keys().into_iter().chain(new.keys()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let dnskeys = rrset(&old.apex, Rtype::DNSKEY, &keys);
    let by_old = old.sign(&old.ksk, flags_of(true), &dnskeys);
    let by_new = new.sign(&new.ksk, flags_of(true), &dnskeys);
    let (usual, strict) = (Algorithms::SUPPORTED, Algorithms::SUPPORTED.demanding_all());
    let both: &[&[u8]] = &[&old_ds, &new_ds];
    secure(old.judge(both, &keys, &[&by_new], usual));
    assert_eq!(bogus(old.judge(both, &keys, &[&by_new], strict)).why, Unverified::Bogus(Bogus::NoKey));
    // The parent says only the new one, or the old one with a digest that does not count.
    secure(old.judge(&[&new_ds], &keys, &[&by_new], strict));
    secure(old.judge(&[&weak_ds, &new_ds], &keys, &[&by_new], strict));
    let found = secure(old.judge(both, &keys, &[&by_old, &by_new], strict));

    let data = rrset(&name("www.example.org"), Rtype::A, &[&[192, 0, 2, 1]]);
    let [a, b] = [old.sign(&old.zsk, flags_of(false), &data), new.sign(&new.zsk, flags_of(false), &data)];
    let check = |rrsigs: &[&[u8]], accepted| {
        let mut budget = Budget::with_failures(48, 16);
        found.verify(&data, rrsigs.iter().copied(), Rules::exact(accepted, NOW), &mut budget).map(drop)
    };
    assert_eq!(check(&[&a, &b], strict), Ok(()));
    for alone in [&a, &b] {
        let failure = check(&[alone], strict).expect_err("an algorithm is missing");
        assert_eq!(failure.why, Unverified::Bogus(Bogus::NoKey));
    }
    assert_eq!(check(&[], strict).expect_err("it is not signed").why, Unverified::Unsigned);
}

#[test]
fn a_sha_1_digest_is_ignored_where_there_is_a_better_one() {
    // RFC 4509 §3: who can break SHA-1 gains nothing, and loses nothing if that is all there is.
    let (zone, other) = (Zone::new(13), Zone::new(13));
    let [ksk, zsk] = zone.keys();
    let keys = rrset(&zone.apex, Rtype::DNSKEY, &[&ksk, &zsk]);
    let by_ksk = zone.sign(&zone.ksk, flags_of(true), &keys);
    let judge = |ds: &[&[u8]]| zone.judge(ds, &[&ksk, &zsk], &[&by_ksk], Algorithms::SUPPORTED);
    bogus(judge(&[&zone.ds(1), &other.ds(2)]));
    bogus(judge(&[&zone.ds(1), &other.ds(4)]));
    secure(judge(&[&zone.ds(1), &zone.ds(4)]));
    // Digests that are not known, and those of other algorithms, are no better ones.
    let mut unknown = other.ds(2);
    unknown[3] = 3;
    secure(judge(&[&zone.ds(1), &unknown]));
    let mut another = other.ds(2);
    another[2] = 8;
    secure(judge(&[&zone.ds(1), &another]));
}

#[test]
fn keys_that_cannot_be_used_make_a_zone_insecure_only_if_all_are() {
    // RFC 5702 §6.1: a key of 512 bits.
    let small = rdata(
        Rtype::DNSKEY,
        "256 3 8 AwEAAcFcGsaxxdgiuuGmCkVImy4h99CqT7jwY3pexPGcnUFtR2Fh36BponcwtkZ4cAgtvd4Qs8PkxUdp6p/DlUmObdk=",
    );
    let zone = Zone::new(13);
    let small_ds = Ds::write(zone.apex.as_name(), Dnskey::parse(&small).expect("a key"), DigestType(2));
    let small_ds = small_ds.expect("a DS");
    let found = zone.judge(&[&small_ds], &[&small], &[], Algorithms::SUPPORTED);
    assert_eq!(insecure(found), Insecure::Key(Algorithm(8)));
    // Somebody left out the key that could be used.
    let found = zone.judge(&[&small_ds, &zone.ds(2)], &[&small], &[], Algorithms::SUPPORTED);
    bogus(found);
    let [ksk, _] = zone.keys();
    bogus(zone.judge(&[&small_ds, &zone.ds(2)], &[&small, &ksk], &[], Algorithms::SUPPORTED));
}

#[test]
fn many_keys_and_signatures_cost_no_more_than_allowed() {
    let zone = Zone::new(13);
    let [ksk, _] = zone.keys();
    // Keys whose octets are swapped in pairs have the same tag; DS for each.
    let keys: Vec<Vec<u8>> = (0..30)
        .map(|i| {
            let mut key = ksk.clone();
            key.swap(4 + 2 * i, 6 + 2 * i);
            key
        })
        .collect();
    let mut keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    // As they stand in the set: the first ones are looked at.
    keys.sort_unstable();
    let ds = |key: &&[u8]| {
        Ds::write(zone.apex.as_name(), Dnskey::parse(key).expect("a key"), DigestType(2)).expect("a DS")
    };
    let ds: Vec<Vec<u8>> = keys.iter().map(ds).collect();
    let ds: Vec<&[u8]> = ds.iter().map(Vec::as_slice).collect();
    let set = rrset(&zone.apex, Rtype::DNSKEY, &keys);
    let mut by = zone.sign(&zone.ksk, flags_of(true), &set);
    *by.last_mut().expect("a signature") ^= 1;
    let many: Vec<&[u8]> = (0..40).map(|_| &by[..]).collect();
    let failure = bogus(zone.judge(&ds, &keys, &many, Algorithms::SUPPORTED));
    assert_eq!(failure.why, Unverified::TooMuchWork);
    let failure = bogus(zone.judge(&ds[..8], &keys, &many, Algorithms::SUPPORTED));
    assert_eq!(failure.why, Unverified::TooMuchWork);
    // More keys than any zone has.
    let hoard: Vec<Vec<u8>> =
        (0..=KEYS_MAX).map(|i| [&ksk[..], &[(i >> 8) as u8, i as u8]].concat()).collect();
    let hoard: Vec<&[u8]> = hoard.iter().map(Vec::as_slice).collect();
    let failure = bogus(zone.judge(&[&zone.ds(2)], &hoard, &[&by], Algorithms::SUPPORTED));
    assert_eq!(failure.why, Unverified::TooMuchWork);
    // What fails counts apart from what succeeds.
    let set = rrset(&zone.apex, Rtype::DNSKEY, &[&ksk]);
    let good = zone.sign(&zone.ksk, flags_of(true), &set);
    let mut bad = good.clone();
    *bad.last_mut().expect("a signature") ^= 1;
    let parsed = [ParsedKey::new(Dnskey::parse(&ksk).expect("a key"))];
    let mut budget = Budget::with_failures(100, 3);
    let verify = |rrsig: &[u8], budget: &mut Budget| {
        dnssec::verify_rrset(&set, [rrsig], zone.apex.as_name(), &parsed, NOW, budget).map(drop)
    };
    for _ in 0..3 {
        assert_eq!(verify(&good, &mut budget), Ok(()));
        assert_eq!(verify(&bad, &mut budget), Err(Unverified::Bogus(Bogus::Signature)));
    }
    assert_eq!((budget.left(), budget.failures_left()), (94, 0));
    assert_eq!(verify(&good, &mut budget), Err(Unverified::TooMuchWork));
}

#[test]
fn a_key_that_is_parsed_once_checks_like_one_that_is_parsed_each_time() {
    for algorithm in [8, 10, 13, 14, 15, 16] {
        let key = generate(algorithm);
        let rdata = key.dnskey(flags_of(false));
        let dnskey = Dnskey::parse(&rdata).expect("a key");
        let parsed = ParsedKey::new(dnskey);
        assert!(parsed.is_supported() && parsed.signs_zones());
        assert_eq!((parsed.tag(), parsed.algorithm()), (dnskey.tag(), Algorithm(algorithm)));
        let mut signature = Vec::new();
        key.sign(b"message", &mut signature).expect("a signature");
        for message in [&b"message"[..], b"massage"] {
            let expect = message == b"message";
            assert_eq!(parsed.check(message, &signature).is_ok(), expect);
            assert_eq!(verify_octets(dnskey, message, &signature).is_ok(), expect);
        }
        assert!(parsed.check(b"message", &signature[1..]).is_err());
        // A key that is too short fails in each check.
        let short = Dnskey::write(256, Algorithm(algorithm), &[1, 3]);
        let short = ParsedKey::new(Dnskey::parse(&short).expect("a key"));
        assert!(short.check(b"message", &signature).is_err());
    }
}

#[test]
fn rsa_with_sha_1_is_checked_for_those_who_accept_it() {
    // RFC 4035 appendix B.6: an answer that was made from a wildcard.
    let key = rdata(
        Rtype::DNSKEY,
        "256 3 5 AQOy1bZVvpPqhg4j7EJoM9rI3ZmyEx2OzDBVrZy/lvI5CQePxXHZS4i8dANH4DX3tbHol61ek8EFMcsGXxKciJFHyhl94C+NwILQdzsUlSFovBZsyl/NX6yEbtw/xN9ZNcrbYvgjjZ/UVPZIySFNsgEYvh0z2542lzMKR4Dh8uZffQ==",
    );
    let rrsig = rdata(
        Rtype::RRSIG,
        "MX 5 2 3600 20040509183619 20040409183619 38519 example. OMK8rAZlepfzLWW75Dxd63jy2wswESzxDKG2f9AMN1CytCd10cYISAxfAdvXSZ7xujKAtPbctvOQ2ofO7AZJ+d01EeeQTVBPq4/6KCWhqe2XTjnkVLNvvhnc0u28aoSsG0+4InvkkOHknKxw4kX18MMR34i8lC36SR5xBni8vHI=",
    );
    let (zone, owner) = (name("example"), name("a.z.w.example"));
    let mx = rrset(&owner, Rtype::MX, &[&rdata(Rtype::MX, "1 ai.example.")]);
    let keys = [ParsedKey::new(Dnskey::parse(&key).expect("a key"))];
    let verify = |accepted| {
        let now = 1_083_000_000;
        let (now, skew) = (Some(now), dnssec::Skew::NONE);
        let verifier = dnssec::Verifier { zone: zone.as_name(), keys: &keys, accepted, now, skew };
        verifier.verify(&mx, [&rrsig[..]], &mut Budget::new(8)).map(|verified| verified.wildcard_labels())
    };
    assert_eq!(verify(Algorithms::SUPPORTED.with(Algorithm::RSASHA1)), Ok(Some(2)));
    let failure = verify(Algorithms::SUPPORTED).expect_err("it is not accepted");
    assert_eq!(failure.why, Unverified::Unsupported(Algorithm(5)));
    assert_eq!(failure.key, Some((38519, Algorithm(5))));
}
