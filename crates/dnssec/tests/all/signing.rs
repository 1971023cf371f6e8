//! Zones that are signed and checked, keys that are written and read.

use crate::support;

use std::sync::Arc;

use dnssec::chain::{Rules, TrustPoint};
use dnssec::keys::{ZoneKey, bind, erldns, pem};
use dnssec::{
    Algorithm, Algorithms, Denial, DigestType, Dnskey, Ds, Holder, KeySize, KeyUse, Nsec3Parameters,
    SecretKey, Signer, SigningKey, Unusable, Validity, ZonemdHash, ZonemdVerdict, check_signed_zonemd,
    check_tree, check_zonemd, flags_of,
};
use support::{name, text_of, tree};
use wire::Rtype;

const NOW: u32 = 1_795_000_000;
const DAY: u32 = 86_400;

const ZONE: &str = "$TTL 3600\n\
    @ SOA ns.Example.ORG. admin 7 7200 600 86400 300\n\
    @ NS ns\n@ NS ns.example.net.\n@ MX 10 Mail\n\
    ns A 192.0.2.1\nMail A 192.0.2.2\nmail AAAA 2001:db8::2\n\
    *.wild TXT \"anything\"\n\
    a.b.c.deep TXT \"deep\"\n\
    secure NS ns.secure\nns.secure A 192.0.2.3\nsecure DS 1 13 2 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n\
    open NS ns.open\nns.open A 192.0.2.4\n\
    only.open.between NS ns.example.net.\n\
    alias CNAME www\nwww HTTPS 1 . alpn=h2\n\
    under DNAME example.net.\n\
    \\000odd.label TXT \"x\"\n";

const ALGORITHMS: [u8; 6] = [8, 10, 13, 14, 15, 16];

fn everything() -> KeyUse {
    KeyUse { is_published: true, signs_keys: true, signs_zone: true, is_announced: true }
}

fn validity() -> Validity {
    Validity {
        inception: NOW - 5400,
        expiration: NOW + 14 * DAY,
        jitter: 0,
        keep_after: NOW + 2 * DAY,
        now: NOW,
    }
}

fn signer<'k>(keys: &[(&'k SecretKey, KeyUse, bool)], denial: Denial) -> Signer<'k> {
    Signer {
        keys: keys
            .iter()
            .map(|&(secret, does, is_entry_point)| SigningKey {
                secret,
                flags: flags_of(is_entry_point),
                does,
                validity: None,
            })
            .collect(),
        dnskey_ttl: None,
        denial,
        validity: validity(),
        cds_digests: vec![DigestType::SHA256],
        asks_for_removal: false,
        has_csync: false,
        zonemd: None,
    }
}

fn generate(algorithm: u8) -> SecretKey {
    SecretKey::generate(Algorithm(algorithm), KeySize::Bits2048).expect("a key")
}

fn denials() -> [Denial; 4] {
    let nsec3 = |iterations, salt: &[u8], opts_out| {
        Denial::Nsec3(Nsec3Parameters { iterations, salt: salt.into(), opts_out })
    };
    [Denial::Nsec, nsec3(0, b"", false), nsec3(5, b"\xaa\xbb", false), nsec3(0, b"", true)]
}

#[test]
fn what_is_signed_is_good_with_every_algorithm_and_denial() {
    for algorithm in ALGORITHMS {
        let key = generate(algorithm);
        for denial in denials() {
            let signer = signer(&[(&key, everything(), true)], denial.clone());
            let mut tree = tree("example.org", ZONE);
            let done = signer.sign(&mut tree, &[]).expect("a signed zone");
            assert!(done.made > 20 && done.kept == 0, "{done:?}");
            assert_eq!(done.first_expiration, Some(NOW + 14 * DAY));
            assert_eq!(check_tree(&mut tree, NOW, 10), [""; 0], "{algorithm} {denial:?}");
            // It reads back as it was written, and is still good.
            let mut again = support::tree("example.org", &text_of(&tree));
            assert_eq!(check_tree(&mut again, NOW, 10), [""; 0], "{algorithm} {denial:?}");
            assert_eq!(text_of(&again), text_of(&tree));
            // Late, all is wrong.
            assert!(check_tree(&mut tree, NOW + 15 * DAY, 1000).len() >= done.made);
        }
    }
}

#[test]
fn delegations_and_what_is_below_them_are_not_signed() {
    let key = generate(15);
    let mut tree = tree("example.org", ZONE);
    signer(&[(&key, everything(), true)], Denial::Nsec).sign(&mut tree, &[]).expect("a signed zone");
    let count =
        |owner: &str, rtype| tree.set(name(owner).as_name(), rtype).map(|set| set.signatures().count());
    assert_eq!(count("secure.example.org", Rtype::NS), Some(0));
    assert_eq!(count("secure.example.org", Rtype::DS), Some(1));
    assert_eq!(count("secure.example.org", Rtype::NSEC), Some(1));
    assert_eq!(count("ns.secure.example.org", Rtype::A), Some(0));
    assert_eq!(count("ns.secure.example.org", Rtype::NSEC), None);
    assert_eq!(count("example.org", Rtype::NS), Some(1));
    assert_eq!(count("*.wild.example.org", Rtype::TXT), Some(1));
    let apex = name("example.org");
    let nsec = tree.set(apex.as_name(), Rtype::NSEC).expect("an NSEC");
    assert_eq!(nsec.ttl(), 300, "the smaller of the SOA's TTL and MINIMUM");
    let shown = text_of(&tree);
    let line = shown.lines().find(|line| line.starts_with("open.example.org.") && line.contains("IN NSEC "));
    assert!(line.is_some_and(|line| line.ends_with(" NS RRSIG NSEC")), "{line:?}");
}

#[test]
fn opting_out_leaves_out_what_is_not_secure() {
    let key = generate(15);
    let proofs = |opts_out| {
        let parameters = Nsec3Parameters { opts_out, ..Nsec3Parameters::default() };
        let mut tree = tree("example.org", ZONE);
        signer(&[(&key, everything(), true)], Denial::Nsec3(parameters))
            .sign(&mut tree, &[])
            .expect("signed");
        text_of(&tree).lines().filter(|line| line.contains(" IN NSEC3 ")).count()
    };
    // open, only.open.between, and open.between and between above it.
    assert_eq!(proofs(false) - proofs(true), 4);
}

#[test]
fn two_keys_share_the_work() {
    let (ksk, zsk) = (generate(13), generate(13));
    let ksk_use = KeyUse { signs_zone: false, ..everything() };
    let zsk_use = KeyUse { is_published: true, signs_keys: false, signs_zone: true, is_announced: false };
    let mut tree = tree("example.org", ZONE);
    let signer = signer(&[(&ksk, ksk_use, true), (&zsk, zsk_use, false)], Denial::Nsec);
    signer.sign(&mut tree, &[]).expect("a signed zone");
    assert_eq!(check_tree(&mut tree, NOW, 10), [""; 0]);
    let apex = name("example.org");
    let tags = |rtype| -> Vec<u16> {
        let set = tree.set(apex.as_name(), rtype).expect("a set");
        set.signatures().filter_map(dnssec::Rrsig::parse).map(|rrsig| rrsig.tag).collect()
    };
    let tag_of = |key: &SecretKey, is_entry_point| {
        Dnskey::parse(&key.dnskey(flags_of(is_entry_point))).expect("a key").tag()
    };
    for rtype in [Rtype::DNSKEY, Rtype::CDS, Rtype::CDNSKEY] {
        assert_eq!(tags(rtype), [tag_of(&ksk, true)], "{rtype}");
    }
    for rtype in [Rtype::SOA, Rtype::NS, Rtype::NSEC] {
        assert_eq!(tags(rtype), [tag_of(&zsk, false)], "{rtype}");
    }
    // Without a key for the zone, nothing is signed.
    let lone = super_signer(&ksk, ksk_use);
    assert!(lone.sign(&mut support::tree("example.org", ZONE), &[]).is_err());
}

fn super_signer(key: &SecretKey, does: KeyUse) -> Signer<'_> {
    signer(&[(key, does, true)], Denial::Nsec)
}

#[test]
fn signing_again_makes_only_what_changed() {
    let key = generate(15);
    for denial in denials() {
        let signer = signer(&[(&key, everything(), true)], denial);
        let mut tree = tree("example.org", ZONE);
        let first = signer.sign(&mut tree, &[]).expect("a signed zone");
        let second = signer.sign(&mut tree, &[]).expect("a signed zone");
        assert_eq!((second.made, second.kept), (0, first.made));
        // Another address: one signature.
        let mail = name("mail.example.org");
        assert!(tree.replace(mail.as_name(), Rtype::A, 3600, vec![vec![192, 0, 2, 99]]));
        assert_eq!(signer.sign(&mut tree, &[]).expect("a signed zone").made, 1);
        // A new name: its data, its proof and the proof before it.
        let new = name("new.example.org");
        tree.replace(new.as_name(), Rtype::A, 3600, vec![vec![192, 0, 2, 98]]);
        assert_eq!(signer.sign(&mut tree, &[]).expect("a signed zone").made, 3);
        // The name goes again: the proof before it.
        tree.replace(new.as_name(), Rtype::A, 3600, Vec::new());
        assert_eq!(signer.sign(&mut tree, &[]).expect("a signed zone").made, 1);
        assert_eq!(check_tree(&mut tree, NOW, 10), [""; 0]);
        // A zone that is read anew takes over what is the same.
        let previous = support::tree("example.org", &text_of(&tree));
        let mut fresh = support::tree("example.org", &ZONE.replace("192.0.2.1\n", "192.0.2.111\n"));
        signer.prepare(&mut fresh, &[]).expect("a zone with keys");
        fresh.adopt(&previous);
        // The server's address, and the one that was changed above.
        assert_eq!(signer.sign(&mut fresh, &[]).expect("a signed zone").made, 2);
        assert_eq!(check_tree(&mut fresh, NOW, 10), [""; 0]);
    }
}

#[test]
fn old_signatures_are_made_again_in_time() {
    let key = generate(15);
    let mut signer = signer(&[(&key, everything(), true)], Denial::Nsec);
    signer.validity.jitter = 5 * DAY;
    let mut tree = tree("example.org", ZONE);
    let first = signer.sign(&mut tree, &[]).expect("a signed zone");
    let earliest = first.first_expiration.expect("signatures");
    assert!((NOW + 9 * DAY..NOW + 14 * DAY).contains(&earliest), "jitter spreads them");
    signer.validity.now = NOW + 8 * DAY;
    signer.validity.keep_after = NOW + 11 * DAY;
    signer.validity.inception = NOW + 8 * DAY;
    signer.validity.expiration = NOW + 22 * DAY;
    let second = signer.sign(&mut tree, &[]).expect("a signed zone");
    assert!(second.made > 0 && second.kept > 0 && second.made + second.kept == first.made, "{second:?}");
    assert!(second.first_expiration > Some(NOW + 11 * DAY));
}

#[test]
fn parts_can_be_signed_on_several_threads() {
    let key = generate(15);
    let mut text = ZONE.to_owned();
    for i in 0..200 {
        text += &format!("host-{i} A 192.0.2.{i}\n");
    }
    let whole = signer(&[(&key, everything(), true)], Denial::Nsec);
    let mut expect = tree("example.org", &text);
    whole.sign(&mut expect, &[]).expect("a signed zone");
    let mut parted = tree("example.org", &text);
    whole.prepare(&mut parted, &[]).expect("a zone with keys");
    std::thread::scope(|scope| {
        for part in whole.parts(&mut parted, 3) {
            let whole = &whole;
            scope.spawn(move || whole.sign_part(part, || true).expect("signatures"));
        }
    });
    assert_eq!(text_of(&parted), text_of(&expect));
}

#[test]
fn the_digest_of_a_signed_zone_is_right() {
    let key = generate(13);
    for denial in denials() {
        let mut signer = signer(&[(&key, everything(), true)], denial);
        signer.zonemd = Some(ZonemdHash::SHA512);
        signer.has_csync = true;
        let mut tree = tree("example.org", ZONE);
        signer.sign(&mut tree, &[]).expect("a signed zone");
        assert_eq!(check_zonemd(&tree), ZonemdVerdict::Right);
        assert_eq!(check_tree(&mut tree, NOW, 10), [""; 0]);
        let text = text_of(&tree);
        assert_eq!(check_zonemd(&support::tree("example.org", &text)), ZonemdVerdict::Right);
        let changed = text.replace("192.0.2.4", "192.0.2.5");
        assert_eq!(check_zonemd(&support::tree("example.org", &changed)), ZonemdVerdict::Wrong);
        // Signed again without a change, the digest stays.
        let done = signer.sign(&mut tree, &[]).expect("a signed zone");
        assert!(done.made <= 1, "{done:?}");
        assert_eq!(check_zonemd(&tree), ZonemdVerdict::Right);
    }
}

#[test]
fn what_is_wrong_with_a_signed_zone_is_found() {
    let key = generate(15);
    for denial in denials() {
        let mut tree = tree("example.org", ZONE);
        signer(&[(&key, everything(), true)], denial.clone()).sign(&mut tree, &[]).expect("signed");
        let text = text_of(&tree);
        let check = |text: &str, expect: &str| {
            let faults = check_tree(&mut support::tree("example.org", text), NOW, 1000);
            assert!(
                faults.iter().any(|fault| fault.contains(expect)),
                "{denial:?}: expected {expect:?} in {faults:?}"
            );
        };
        check(&text.replace("192.0.2.2\n", "192.0.2.22\n"), "Mail.example.org. A: a signature that is wrong");
        let without = |keep: &dyn Fn(&str) -> bool| -> String {
            text.lines().filter(|line| keep(line)).map(|line| format!("{line}\n")).collect()
        };
        check(&without(&|line| !line.contains("RRSIG MX")), "example.org. MX: no signature");
        check(&without(&|line| !line.contains(" DNSKEY ")), "no DNSKEY");
        let proof = if denial == Denial::Nsec { " IN NSEC " } else { " IN NSEC3 " };
        let mut proofs = text.lines().filter(|line| line.contains(proof));
        let gone = proofs.nth(1).expect("proofs").to_owned();
        let owner = gone.split(' ').next().expect("an owner").to_owned();
        let without_proof = without(&|line| {
            line != gone && !(line.starts_with(&owner) && line.contains(&format!("RRSIG{}", &proof[3..])))
        });
        check(&without_proof, ": missing");
    }
}

#[test]
fn keys_are_written_and_read_in_every_form() {
    let owner = name("Example.org");
    for algorithm in ALGORITHMS {
        let key = ZoneKey {
            owner,
            flags: flags_of(true),
            secret: generate(algorithm).into(),
            times: dnssec::keys::Times {
                created: Some(1_700_000_000),
                publish: Some(1_700_000_000),
                inactive: Some(1_800_000_000),
                ..Default::default()
            },
        };
        let same = |other: &SecretKey| {
            assert_eq!(other.public(), key.secret.public(), "{algorithm}");
            let mut signature = Vec::new();
            other.sign(b"message", &mut signature).expect("a signature");
            let rdata = key.dnskey();
            let dnskey = Dnskey::parse(&rdata).expect("a key");
            assert_eq!(dnssec::verify_octets(dnskey, b"message", &signature), Ok(()), "{algorithm}");
            assert!(dnssec::verify_octets(dnskey, b"massage", &signature).is_err(), "{algorithm}");
        };
        same(&key.secret);
        let private = bind::write_private(&key).expect("a text");
        let read = bind::read(&bind::write_public(&key), &private, &nobody).expect("a key");
        same(&read.secret);
        assert_eq!((read.flags, read.times, read.owner), (key.flags, key.times, key.owner));
        assert_eq!(key.file_stem(), format!("Kexample.org.+{algorithm:03}+{:05}", key.tag()));
        same(
            &pem::read(&pem::write(&key.secret).expect("a text"), Some(Algorithm(algorithm))).expect("a key"),
        );
        // Nothing prints what is secret.
        assert_eq!(format!("{:?}", key.secret), format!("SecretKey({})", Algorithm(algorithm)));
        // A private key beside another public key is refused.
        let other = ZoneKey { secret: generate(algorithm).into(), ..read };
        assert!(bind::read(&bind::write_public(&other), &private, &nobody).is_err());
    }
}

/// Holds no key.
fn nobody(_: Algorithm, label: &str) -> Result<Arc<dyn Holder>, String> {
    Err(format!("nobody holds {label}"))
}

/// Holds a key of Ed25519, which is given the message itself to sign.
struct Keeper(SecretKey, String);

impl Holder for Keeper {
    fn sign(&self, input: &[u8]) -> Result<Vec<u8>, Unusable> {
        let mut signature = Vec::new();
        self.0.sign(input, &mut signature).map(|()| signature)
    }

    fn place(&self) -> &str {
        &self.1
    }
}

#[test]
fn a_key_that_somebody_holds_signs_and_stays_there() {
    const PLACE: &str = "pkcs11:token=a;object=b";
    let inner = generate(15);
    let public = inner.public().to_vec();
    let keeper = Arc::new(Keeper(inner, PLACE.to_owned()));
    let held = SecretKey::held(Algorithm::ED25519, &public, Arc::clone(&keeper) as Arc<dyn Holder>);
    let key = ZoneKey {
        owner: name("example.org"),
        flags: flags_of(true),
        secret: held.expect("a key").into(),
        times: dnssec::keys::Times { created: Some(1_700_000_000), ..Default::default() },
    };
    assert_eq!((key.secret.place(), key.secret.bits()), (Some(PLACE), 256));
    let mut signature = Vec::new();
    key.secret.sign(b"message", &mut signature).expect("a signature");
    let rdata = key.dnskey();
    let dnskey = Dnskey::parse(&rdata).expect("a key");
    assert_eq!(dnssec::verify_octets(dnskey, b"message", &signature), Ok(()));
    // Its private part is nowhere to be had.
    assert_eq!(key.secret.to_pkcs8().err(), Some(Unusable::Held));
    assert_eq!(pem::write(&key.secret).err(), Some(Unusable::Held));
    // Files say where it is.
    let private = bind::write_private(&key).expect("a text");
    assert_eq!(
        private.as_str(),
        "Private-key-format: v1.3\nAlgorithm: 15 (ED25519)\nLabel: cGtjczExOnRva2VuPWE7b2JqZWN0PWIA\n\
         Created: 20231114221320\n"
    );
    let read = bind::read(&bind::write_public(&key), &private, &|algorithm, label| {
        assert_eq!((algorithm, label), (Algorithm::ED25519, PLACE));
        Ok(Arc::clone(&keeper) as Arc<dyn Holder>)
    });
    let read = read.expect("a key");
    assert_eq!((read.dnskey(), read.times), (key.dnskey(), key.times));
    assert_eq!(read.secret.place(), Some(PLACE));
    let why = bind::read(&bind::write_public(&key), &private, &nobody).expect_err("nobody has it");
    assert_eq!(why.to_string(), format!("line 3: nobody holds {PLACE}"));
}

#[test]
fn what_a_holder_signs_with_another_key_is_refused() {
    let keeper: Arc<dyn Holder> = Arc::new(Keeper(generate(15), "pkcs11:object=b".to_owned()));
    let other = generate(15);
    let held = SecretKey::held(Algorithm::ED25519, other.public(), keeper).expect("a key");
    let mut signature = Vec::new();
    let why = held.sign(b"message", &mut signature).expect_err("another key");
    assert_eq!(why.to_string(), "what is signed by pkcs11:object=b does not belong to the DNSKEY");
    assert!(signature.is_empty());
}

#[test]
fn public_parts_of_held_keys_are_whole() {
    let hold = |algorithm: u8, public: &[u8]| {
        let keeper: Arc<dyn Holder> = Arc::new(Keeper(generate(15), String::new()));
        SecretKey::held(Algorithm(algorithm), public, keeper).err()
    };
    for algorithm in ALGORITHMS {
        let key = generate(algorithm);
        assert_eq!(hold(algorithm, key.public()), None, "{algorithm}");
        assert!(hold(algorithm, &key.public()[2..]).is_some(), "{algorithm}");
    }
    let small = dnssec::write_rsa(&[1, 0, 1], &[0x80; 128]);
    assert_eq!(hold(8, &small), None);
    let short = dnssec::write_rsa(&[1, 0, 1], &[0x80; 127]);
    assert_eq!(hold(8, &short), Some(Unusable::Size));
    assert_eq!(hold(5, &[0; 64]), Some(Unusable::Algorithm(Algorithm(5))));
}

#[test]
fn files_of_held_rsa_keys_have_their_public_numbers() {
    let inner = generate(8);
    let public = inner.public().to_vec();
    let keeper: Arc<dyn Holder> = Arc::new(Keeper(inner, "pkcs11:object=b".to_owned()));
    let key = ZoneKey {
        owner: name("example.org"),
        flags: flags_of(false),
        secret: SecretKey::held(Algorithm::RSASHA256, &public, Arc::clone(&keeper)).expect("a key").into(),
        times: dnssec::keys::Times::default(),
    };
    let private = bind::write_private(&key).expect("a text");
    let names: Vec<&str> = private.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(names, ["Private-key-format", "Algorithm", "Modulus", "PublicExponent", "Label"]);
    assert!(private.contains("PublicExponent: AQAB\n"), "{}", private.as_str());
    let open: bind::Opener<'_> = &|_, _| Ok(Arc::clone(&keeper));
    let read = bind::read(&bind::write_public(&key), &private, open).expect("a key");
    assert_eq!((read.secret.public(), read.secret.bits()), (public.as_slice(), 2048));
}

#[test]
fn key_sets_of_erldns_are_written_and_read() {
    let owner = name("example.org");
    let key = |algorithm, is_entry_point| ZoneKey {
        owner,
        flags: flags_of(is_entry_point),
        secret: generate(algorithm).into(),
        times: dnssec::keys::Times::default(),
    };
    for algorithm in ALGORITHMS {
        let set = erldns::KeySet {
            ksk: key(algorithm, true),
            zsk: key(algorithm, false),
            inception: 1_700_000_000,
            until: 1_800_000_000,
        };
        let text = erldns::write(std::slice::from_ref(&set)).expect("a text");
        let read = erldns::read(owner.as_name(), &text).expect("key sets");
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].ksk.dnskey(), set.ksk.dnskey());
        assert_eq!(read[0].zsk.dnskey(), set.zsk.dnskey());
        assert_eq!((read[0].inception, read[0].until), (set.inception, set.until));
        let wrong = text.replace(&format!("\"ksk_keytag\": {}", set.ksk.tag()), "\"ksk_keytag\": 1");
        let fault = erldns::read(owner.as_name(), &wrong).expect_err("a wrong tag").to_string();
        assert!(fault.contains("\"ksk_keytag\" is 1"), "{fault}");
    }
    for bad in ["", "[", "[{}]", "[1]", "{\"ksk\": \"x\"}", "[] x", "[{\"a\": \"\\q\"}]"] {
        assert!(erldns::read(owner.as_name(), bad).is_err(), "{bad}");
    }
}

#[test]
fn the_digest_of_a_zone_counts_if_what_is_trusted_has_signed_it() {
    let key = generate(13);
    let apex = name("example.org");
    let dnskey = key.dnskey(flags_of(true));
    let dnskey = Dnskey::parse(&dnskey).expect("a key");
    let ds = Ds::write(apex.as_name(), dnskey, DigestType::SHA256).expect("a digest");
    let trusted = [TrustPoint::Ds(Ds::parse(&ds).expect("a DS"))];
    let rules = |now| Rules::exact(Algorithms::SUPPORTED, now);
    let check = |text: &str, now| {
        check_signed_zonemd(&tree("example.org", text), &trusted, rules(now))
            .map_err(|unproved| unproved.to_string())
    };
    for denial in denials() {
        let mut by_key = signer(&[(&key, everything(), true)], denial);
        let mut bare = tree("example.org", ZONE);
        by_key.sign(&mut bare, &[]).expect("a signed zone");
        let bare = text_of(&bare);
        assert_eq!(check(&bare, NOW), Ok(ZonemdVerdict::Absent));
        by_key.zonemd = Some(ZonemdHash::SHA384);
        let mut signed = tree("example.org", ZONE);
        by_key.sign(&mut signed, &[]).expect("a signed zone");
        let whole = text_of(&signed);
        assert_eq!(check(&whole, NOW), Ok(ZonemdVerdict::Right));
        // Glue has no signature of its own: the digest shows that it is another.
        assert_eq!(check(&whole.replace("192.0.2.3", "192.0.2.33"), NOW), Ok(ZonemdVerdict::Wrong));
        let without = |what: &str| {
            let lines = whole.lines().filter(|line| !line.contains(what));
            lines.map(|line| format!("{line}\n")).collect::<String>()
        };
        // Whoever changes the zone cannot take the digest away, nor sign another one.
        assert_eq!(
            check(&without(" ZONEMD "), NOW),
            Err("it is not proved that the zone has no ZONEMD".to_owned())
        );
        for (what, rtype) in
            [(" RRSIG ZONEMD ", "ZONEMD"), (" RRSIG SOA ", "SOA"), (" RRSIG DNSKEY ", "DNSKEY")]
        {
            let found = check(&without(what), NOW).expect_err("it is not signed");
            assert!(found.starts_with(&format!("{rtype} of the zone: ")), "{found}");
        }
        assert!(check(&whole, NOW + 30 * DAY).is_err(), "the signatures have expired");
        let other = generate(13);
        let mut forged = signer(&[(&other, everything(), true)], Denial::Nsec);
        forged.zonemd = Some(ZonemdHash::SHA384);
        let mut other_zone = tree("example.org", ZONE);
        forged.sign(&mut other_zone, &[]).expect("a signed zone");
        assert!(check(&text_of(&other_zone), NOW).is_err(), "nobody trusts this key");
        let nobody = check_signed_zonemd(&other_zone, &[], rules(NOW));
        assert_eq!(nobody, Ok(ZonemdVerdict::Right), "without a trust anchor, the digest alone counts");
    }
}
