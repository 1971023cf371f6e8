//! The examples of the RFCs: keys, DS, signatures, digests of zones.

use crate::support;

use dnssec::keys::bind;
use dnssec::tree::Tree;
use dnssec::{
    Algorithm, Bogus, Budget, DigestType, Dnskey, Ds, Rrset, Unverified, ZonemdHash, ZonemdScheme,
    ZonemdVerdict, check_zonemd, verify_rrset, zonemd_digest,
};
use support::{name, rdata, tree};
use wire::Rtype;

/// One example: a key, what the parent says of it, a record and its signature.
struct Example {
    source: &'static str,
    zone: &'static str,
    private: Option<&'static str>,
    dnskey: &'static str,
    ds: &'static str,
    owner: &'static str,
    rtype: Rtype,
    data: &'static str,
    rrsig: &'static str,
    /// A time that the signature is good at.
    now: u32,
}

const EXAMPLES: [Example; 6] = [
    Example {
        source: "RFC 6605 §6.1",
        zone: "example.net",
        private: Some("13 (ECDSAP256SHA256)\nPrivateKey: GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ="),
        dnskey: "257 3 13 GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==",
        ds: "55648 13 2 b4c8c1fe2e7477127b27115656ad6256f424625bf5c1e2770ce6d6e37df61d17",
        owner: "www.example.net",
        rtype: Rtype::A,
        data: "192.0.2.1",
        rrsig: "A 13 3 3600 20100909100439 20100812100439 55648 example.net. \
            qx6wLYqmh+l9oCKTN6qIc+bw6ya+KJ8oMz0YP107epXAyGmt+3SNruPFKG7tZoLBLlUzGGus7ZwmwWep666VCw==",
        now: 1_282_000_000,
    },
    Example {
        source: "RFC 6605 §6.2",
        zone: "example.net",
        private: Some(
            "14 (ECDSAP384SHA384)\nPrivateKey: WURgWHCcYIYUPWgeLmiPY2DJJk02vgrmTfitxgqcL4vwW7BOrbawVmVe0d9V94SR",
        ),
        dnskey: "257 3 14 xKYaNhWdGOfJ+nPrL8/arkwf2EY3MDJ+SErKivBVSum1w/egsXvSADtNJhyem5RCOpgQ6K8X1DRSEkrbYQ+OB+v8/uX45NBwY8rp65F6Glur8I/mlVNgF6W/qTI37m40",
        ds: "10771 14 4 72d7b62976ce06438e9c0bf319013cf801f09ecc84b8d7e9495f27e305c6a9b0563a9b5f4d288405c3008a946df983d6",
        owner: "www.example.net",
        rtype: Rtype::A,
        data: "192.0.2.1",
        rrsig: "A 14 3 3600 20100909102025 20100812102025 10771 example.net. \
            /L5hDKIvGDyI1fcARX3z65qrmPsVz73QD1Mr5CEqOiLP95hxQouuroGCeZOvzFaxsT8Glr74hbavRKayJNuydCuzWTSSPdz7wnqXL5bdcJzusdnI0RSMROxxwGipWcJm",
        now: 1_282_000_000,
    },
    Example {
        source: "RFC 8080 §6.1",
        zone: "example.com",
        private: Some("15 (ED25519)\nPrivateKey: ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI="),
        dnskey: "257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=",
        ds: "3613 15 2 3aa5ab37efce57f737fc1627013fee07bdf241bd10f3b1964ab55c78e79a304b",
        owner: "example.com",
        rtype: Rtype::MX,
        data: "10 mail.example.com.",
        rrsig: "MX 15 2 3600 1440021600 1438207200 3613 example.com. \
            oL9krJun7xfBOIWcGHi7mag5/hdZrKWw15jPGrHpjQeRAvTdszaPD+QLs3fx8A4M3e23mRZ9VrbpMngwcrqNAg==",
        now: 1_439_000_000,
    },
    Example {
        source: "RFC 8080 §6.1, the second key",
        zone: "example.com",
        private: Some("15 (ED25519)\nPrivateKey: DSSF3o0s0f+ElWzj9E/Osxw8hLpk55chkmx0LYN5WiY="),
        dnskey: "257 3 15 zPnZ/QwEe7S8C5SPz2OfS5RR40ATk2/rYnE9xHIEijs=",
        ds: "35217 15 2 401781b934e392de492ec77ae2e15d70f6575a1c0bc59c5275c04ebe80c6614c",
        owner: "example.com",
        rtype: Rtype::MX,
        data: "10 mail.example.com.",
        rrsig: "MX 15 2 3600 1440021600 1438207200 35217 example.com. \
            zXQ0bkYgQTEFyfLyi9QoiY6D8ZdYo4wyUhVioYZXFdT410QPRITQSqJSnzQoSm5poJ7gD7AQR0O7KuI5k2pcBg==",
        now: 1_439_000_000,
    },
    Example {
        source: "RFC 8080 §6.2",
        zone: "example.com",
        private: Some(
            "16 (ED448)\nPrivateKey: xZ+5Cgm463xugtkY5B0Jx6erFTXp13rYegst0qRtNsOYnaVpMx0Z/c5EiA9x8wWbDDct/U3FhYWA",
        ),
        dnskey: "257 3 16 3kgROaDjrh0H2iuixWBrc8g2EpBBLCdGzHmn+G2MpTPhpj/OiBVHHSfPodx1FYYUcJKm1MDpJtIA",
        ds: "9713 16 2 6ccf18d5bc5d7fc2fceb1d59d17321402f2aa8d368048db93dd811f5cb2b19c7",
        owner: "example.com",
        rtype: Rtype::MX,
        data: "10 mail.example.com.",
        rrsig: "MX 16 2 3600 1440021600 1438207200 9713 example.com. \
            3cPAHkmlnxcDHMyg7vFC34l0blBhuG1qpwLmjInI8w1CMB29FkEAIJUA0amxWndkmnBZ6SKiwZSAxGILn/NBtOXft0+Gj7FSvOKxE/07+4RQvE581N3Aj/JtIyaiYVdnYtyMWbSNyGEY2213WKsJlwEA",
        now: 1_439_000_000,
    },
    Example {
        source: "RFC 5702 §6.2",
        zone: "example.net",
        private: None,
        dnskey: "256 3 10 AwEAAdHoNTOW+et86KuJOWRDp1pndvwb6Y83nSVXXyLA3DLroROUkN6X0O6pnWnjJQujX/AyhqFDxj13tOnD9u/1kTg7cV6rklMrZDtJCQ5PCl/D7QNPsgVsMu1J2Q8gpMpztNFLpPBz1bWXjDtaR7ZQBlZ3PFY12ZTSncorffcGmhOL",
        ds: "",
        owner: "www.example.net",
        rtype: Rtype::A,
        data: "192.0.2.91",
        rrsig: "A 10 3 3600 20300101000000 20000101000000 3740 example.net. \
            tsb4wnjRUDnB1BUi+t6TMTXThjVnG+eCkWqjvvjhzQL1d0YRoOe0CbxrVDYd0xDtsuJRaeUw1ep94PzEWzr0iGYgZBWm/zpq+9fOuagYJRfDqfReKBzMweOLDiNa8iP5g9vMhpuv6OPlvpXwm9Sa9ZXIbNl1MBGk0fthPgxdDLw=",
        now: 1_700_000_000,
    },
];

fn verify(example: &Example, data: &[u8], now: u32) -> Result<u32, Unverified> {
    let key = rdata(Rtype::DNSKEY, example.dnskey);
    let rrsig = rdata(Rtype::RRSIG, example.rrsig);
    let rrset = Rrset::of(name(example.owner).as_name(), example.rtype, [data]).expect("data");
    let keys = [Dnskey::parse(&key).expect("a key")];
    let zone = name(example.zone);
    verify_rrset(&rrset, [&rrsig[..]], zone.as_name(), &keys, now, &mut Budget::new(4)).map(|verified| {
        assert!(std::ptr::eq(verified.rrset(), &raw const rrset), "the proof is for this RRset");
        verified.original_ttl()
    })
}

#[test]
fn the_signatures_of_the_rfcs_are_good_and_changed_ones_are_not() {
    for example in &EXAMPLES {
        let data = rdata(example.rtype, example.data);
        assert_eq!(verify(example, &data, example.now), Ok(3600), "{}", example.source);
        let mut other = data.clone();
        other[0] ^= 1;
        assert_eq!(
            verify(example, &other, example.now),
            Err(Unverified::Bogus(Bogus::Signature)),
            "{}",
            example.source
        );
        // Both ends belong to the time that a signature is good for.
        let rrsig = rdata(Rtype::RRSIG, example.rrsig);
        let rrsig = dnssec::Rrsig::parse(&rrsig).expect("an RRSIG");
        assert_eq!(verify(example, &data, rrsig.expiration), Ok(3600));
        assert_eq!(verify(example, &data, rrsig.inception), Ok(3600));
        assert_eq!(verify(example, &data, rrsig.expiration + 1), Err(Unverified::Bogus(Bogus::Expired)));
        assert_eq!(verify(example, &data, rrsig.inception - 1), Err(Unverified::Bogus(Bogus::NotYetValid)));
    }
}

#[test]
fn the_ds_of_the_rfcs_are_made() {
    for example in EXAMPLES.iter().filter(|example| !example.ds.is_empty()) {
        check_ds(example.zone, example.dnskey, example.ds);
    }
    // RFC 4034 §5.4 and RFC 4509 §2.3. The algorithm is not supported, its digests are.
    let dnskey = "256 3 5 AQOeiiR0GOMYkDshWoSKz9XzfwJr1AYtsmx3TGkJaNXVbfi/2pHm822aJ5iI9BMzNXxeYCmZDRD99WYwYqUSdjMmmAphXdvxegXd/M5+X7OrzKBaMbCVdFLUUh6DhweJBjEVv5f2wwjM9XzcnOf+EPbtG9DMBmADjFDc2w/rljwvFw==";
    check_ds("dskey.example.com", dnskey, "60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118");
    check_ds(
        "dskey.example.com",
        dnskey,
        "60485 5 2 D4B7D520E7BB5F0F67674A0CCEB1E3E0614B93C4F9E99B8383F6A1E4469DA50A",
    );
}

#[track_caller]
fn check_ds(zone: &str, dnskey: &str, ds: &str) {
    let key = rdata(Rtype::DNSKEY, dnskey);
    let key = Dnskey::parse(&key).expect("a key");
    let expect = rdata(Rtype::DS, ds);
    let parsed = Ds::parse(&expect).expect("a DS");
    let zone = name(zone);
    assert_eq!(key.tag(), parsed.tag);
    assert_eq!(Ds::write(zone.as_name(), key, parsed.digest_type), Some(expect.clone()));
    assert!(parsed.is_of(zone.as_name(), key));
    assert!(!parsed.is_of(name("other").as_name(), key));
    assert_eq!(Ds::write(zone.as_name(), key, DigestType(3)), None);
}

#[test]
fn the_private_keys_of_the_rfcs_belong_to_the_public_ones() {
    for example in &EXAMPLES {
        let Some(private) = example.private else { continue };
        let public = format!("{}. 3600 IN DNSKEY {}", example.zone, example.dnskey);
        let private = format!("Private-key-format: v1.2\nAlgorithm: {private}\n");
        let key = bind::read(&public, &private, &|_, _| Err("nobody".to_owned())).expect(example.source);
        // EdDSA has no chance in it: the signature is the one of the RFC.
        if matches!(key.secret.algorithm(), Algorithm::ED25519 | Algorithm::ED448) {
            let rrsig = rdata(Rtype::RRSIG, example.rrsig);
            let rrsig = dnssec::Rrsig::parse(&rrsig).expect("an RRSIG");
            let data = rdata(example.rtype, example.data);
            let rrset = Rrset::of(name(example.owner).as_name(), example.rtype, [&data[..]]).expect("data");
            let (mut message, mut signature) = (Vec::new(), Vec::new());
            assert!(rrset.write_signed(&rrsig, &mut message));
            key.secret.sign(&message, &mut signature).expect("a signature");
            assert_eq!(signature, rrsig.signature, "{}", example.source);
        }
    }
}

#[test]
fn what_is_not_known_is_not_bogus() {
    // RFC 5702 §6.1 has a key of 512 bits: not known here, and neither is what is signed with it.
    let small = Example {
        source: "RFC 5702 §6.1",
        dnskey: "256 3 8 AwEAAcFcGsaxxdgiuuGmCkVImy4h99CqT7jwY3pexPGcnUFtR2Fh36BponcwtkZ4cAgtvd4Qs8PkxUdp6p/DlUmObdk=",
        rrsig: "A 8 3 3600 20300101000000 20000101000000 9033 example.net. \
            kRCOH6u7l0QGy9qpC9l1sLncJcOKFLJ7GhiUOibu4teYp5VE9RncriShZNz85mwlMgNEacFYK/lPtPiVYP4bwg==",
        ..EXAMPLES[5]
    };
    let data = rdata(Rtype::A, "192.0.2.91");
    assert_eq!(verify(&small, &data, small.now), Err(Unverified::Unsupported(Algorithm::RSASHA256)));
    let unknown = Example {
        dnskey: "256 3 200 AAAA",
        rrsig: "A 200 3 3600 20300101000000 20000101000000 9033 example.net. AAAA",
        ..EXAMPLES[5]
    };
    assert_eq!(verify(&unknown, &data, unknown.now), Err(Unverified::Unsupported(Algorithm(200))));
    let stray = Example { zone: "net", ..EXAMPLES[5] };
    assert_eq!(verify(&stray, &data, stray.now), Err(Unverified::Unsigned));
}

#[test]
fn many_keys_with_one_tag_cost_no_more_than_allowed() {
    // Keys whose octets are swapped in pairs have the same tag.
    let example = &EXAMPLES[0];
    let key = rdata(Rtype::DNSKEY, example.dnskey);
    let keys: Vec<Vec<u8>> = (0..20)
        .map(|i| {
            let mut other = key.clone();
            other.swap(4 + 2 * i, 6 + 2 * i);
            other
        })
        .collect();
    let keys: Vec<Dnskey<'_>> = keys.iter().filter_map(|key| Dnskey::parse(key)).collect();
    assert!(keys.iter().all(|other| other.tag() == 55648));
    let rrsig = rdata(Rtype::RRSIG, example.rrsig);
    let many: Vec<&[u8]> = (0..20).map(|_| &rrsig[..]).collect();
    let rrset = Rrset::of(name(example.owner).as_name(), Rtype::A, [&[192, 0, 2, 1][..]]).expect("data");
    let zone = name(example.zone);
    let mut budget = Budget::new(1000);
    let outcome = verify_rrset(&rrset, many, zone.as_name(), &keys, example.now, &mut budget);
    assert_eq!(outcome.err(), Some(Unverified::TooMuchWork));
    assert!(1000 - budget.left() <= dnssec::SIGNATURES_MAX);
}

const SIMPLE: &str = "$TTL 3600\n\
    @ 86400 SOA ns1 admin 2018031900 1800 900 604800 86400\n\
    @ 86400 NS ns1\n@ 86400 NS ns2\n\
    ns1 A 203.0.113.63\nns2 AAAA 2001:db8::63\n";

const COMPLEX: &str = "@ 86400 SOA ns1 admin 2018031900 1800 900 604800 86400\n\
    @ 86400 NS ns1\n@ 86400 NS ns2\n\
    ns1 3600 A 203.0.113.63\nNS2 3600 AAAA 2001:db8::63\n\
    occluded.sub 7200 TXT \"I'm occluded but must be digested\"\n\
    sub 7200 NS ns1\n\
    duplicate 300 TXT \"I must be digested just once\"\n\
    duplicate 300 TXT \"I must be digested just once\"\n\
    foo.test. 555 TXT \"out-of-zone data must be excluded\"\n\
    UPPERCASE 3600 TXT \"canonicalize uppercase owner names\"\n\
    * 777 PTR dont-forget-about-wildcards\n\
    mail 3600 MX 20 MAIL1\nmail 3600 MX 10 Mail2.Example.\n\
    sortme 3600 AAAA 2001:db8::5:61\nsortme 3600 AAAA 2001:db8::3:62\nsortme 3600 AAAA 2001:db8::4:63\n\
    sortme 3600 AAAA 2001:db8::1:65\nsortme 3600 AAAA 2001:db8::2:64\n\
    non-apex 900 ZONEMD 2018031900 1 1 616c6c6f776564206275742069676e6f7265642e20616c6c6f776564206275742069676e6f7265642e20616c6c6f7765\n";

fn digest_of(tree: &Tree) -> String {
    let digest = zonemd_digest(tree, ZonemdScheme::SIMPLE, ZonemdHash::SHA384).expect("a digest");
    digest.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[test]
fn the_digests_of_rfc_8976_are_made_and_checked() {
    let simple =
        "c68090d90a7aed716bc459f9340e3d7c1370d4d24b7e2fc3a1ddc0b9a87153b9a9713b3c9ae5cc27777f98b8e730044c";
    let complex =
        "a3b69bad980a3504e1cffcb0fd6397f93848071c93151f552ae2f6b1711d4bd2d8b39808226d7b9db71e34b72077f8fe";
    for (text, digest) in [(SIMPLE, simple), (COMPLEX, complex)] {
        assert_eq!(digest_of(&tree("example", text)), digest);
        let with = |serial: &str, scheme, hash| {
            let record = format!("@ 86400 ZONEMD {serial} {scheme} {hash} {digest}\n");
            check_zonemd(&tree("example", &format!("{text}{record}")))
        };
        assert_eq!(with("2018031900", 1, 1), ZonemdVerdict::Right);
        assert_eq!(with("2018031901", 1, 1), ZonemdVerdict::OtherSerial);
        assert_eq!(with("2018031900", 240, 1), ZonemdVerdict::Unsupported);
        assert_eq!(with("2018031900", 1, 240), ZonemdVerdict::Unsupported);
        assert_eq!(with("2018031900", 1, 2), ZonemdVerdict::Wrong);
        assert_eq!(check_zonemd(&tree("example", text)), ZonemdVerdict::Absent);
    }
}
