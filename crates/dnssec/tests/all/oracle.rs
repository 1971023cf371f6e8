//! Another library brings records into the same canonical form and order, and gives keys the same
//! tags.

use crate::support;

use domain::base::iana::Rtype as DomainRtype;
use domain::base::name::Name as DomainName;
use domain::base::rdata::ComposeRecordData;
use domain::base::{CanonicalOrd, ParseRecordData, ToName};
use domain::dep::octseq::Parser;
use domain::rdata::{Dnskey as DomainDnskey, ZoneRecordData};
use proptest::prelude::*;
use support::rdata;
use wire::Rtype;
use wire::canonical::Key;

/// Data with names in them, in mixed case.
const DATA: [(u16, &str); 16] = [
    (2, "NS.Example.ORG."),
    (5, "Www.Example.ORG."),
    (6, "NS.Example.ORG. Admin.Example.ORG. 1 2 3 4 5"),
    (12, "A.B.C."),
    (14, "A.B. C.D."),
    (15, "10 Mail.Example.ORG."),
    (33, "1 2 3 Srv.Example.ORG."),
    (35, "1 2 \"S\" \"E2U\" \"\" Replacement.Example.ORG."),
    (39, "Target.Example.ORG."),
    (46, "A 13 2 60 20300101000000 20200101000000 1 Signer.Example.ORG. AAAA"),
    (47, "Next.Example.ORG. A MX RRSIG NSEC"),
    (65, "1 Svc.Example.ORG. alpn=h2"),
    (1, "192.0.2.1"),
    (16, "\"Text Stays\" \"AS IT IS\""),
    (43, "1 13 2 AABB"),
    (48, "256 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4="),
];

fn domains_canonical(rtype: u16, octets: &[u8]) -> Vec<u8> {
    let mut parser = Parser::from_ref(octets);
    let data = ZoneRecordData::<_, domain::base::ParsedName<_>>::parse_rdata(
        DomainRtype::from_int(rtype),
        &mut parser,
    );
    let data = data.expect("well-formed data").expect("a type it knows");
    let mut out = Vec::new();
    data.compose_canonical_rdata(&mut out).expect("a vector takes all");
    out
}

#[test]
fn data_has_the_same_canonical_form() {
    for (rtype, text) in DATA {
        let octets = rdata(Rtype(rtype), text);
        let mut ours = Vec::new();
        wire::rdata::write_canonical(Rtype(rtype), &octets, 0..octets.len(), &mut ours).expect("data");
        assert_eq!(ours, domains_canonical(rtype, &octets), "{}", Rtype(rtype));
    }
}

#[test]
fn keys_have_the_same_tags() {
    for len in 1..300_usize {
        let key: Vec<u8> = (0..len).map(|i| (i * 37 + len) as u8).collect();
        let theirs = DomainDnskey::new(257, 3, domain::base::iana::SecurityAlgorithm::from_int(13), &key[..]);
        let ours = dnssec::Dnskey::write(257, dnssec::Algorithm(13), &key);
        let theirs = theirs.expect("a key").key_tag();
        assert_eq!(dnssec::Dnskey::parse(&ours).map(dnssec::Dnskey::tag), Some(theirs), "{len}");
    }
}

prop_compose! {
    fn a_name()(labels in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..4), 0..5)) -> Vec<u8> {
        let mut wire = Vec::new();
        for label in labels {
            wire.push(label.len() as u8);
            wire.extend(label);
        }
        wire.push(0);
        wire
    }
}

proptest! {
    #[test]
    fn names_have_the_same_canonical_order(a in a_name(), b in a_name()) {
        let theirs = {
            let (a, b) = (DomainName::from_octets(&a[..]).expect("a name"), DomainName::from_octets(&b[..]).expect("a name"));
            prop_assert_eq!(a.name_cmp(&b), a.canonical_cmp(&b));
            a.canonical_cmp(&b)
        };
        prop_assert_eq!(Key::new(&a).as_bytes().cmp(Key::new(&b).as_bytes()), theirs);
    }
}
