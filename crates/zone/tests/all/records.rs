//! A zone is its records: what is read from one builds it again.

use crate::support;

use support::{Chain, KEY, name, sign, zone};
use wire::Rtype;
use zone::{Builder, Zone};

const TEXT: &str = "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nb A 192.0.2.1\n*.B TXT \"x;y\"\n\
    a.c 5 MX 1 b\na.c A 192.0.2.2\nA.c A 192.0.2.3\nsub NS ns.sub\nns.sub A 192.0.2.4\n";

fn lines(zone: &Zone) -> Vec<String> {
    zone.records()
        .map(|record| {
            let data = wire::rdata::display(record.rtype, record.rdata, 0..record.rdata.len());
            format!("{} {} {} {data}", record.owner(), record.ttl, record.rtype)
        })
        .collect()
}

#[test]
fn a_zone_built_from_a_zones_records_is_the_same() {
    for text in [
        TEXT.to_owned(),
        sign("example.org", TEXT, Chain::Nsec),
        sign("example.org", TEXT, Chain::Nsec3 { opt_out: true }),
        // Records of NSEC3 without parameters prove nothing, but they are of the zone.
        sign("example.org", TEXT, Chain::Nsec3 { opt_out: false })
            .replace("NSEC3PARAM 1 0", "NSEC3PARAM 1 1"),
    ] {
        let first = zone("example.org", &text);
        let mut builder = Builder::new(first.apex(), KEY);
        first.records().for_each(|record| builder.add(&record));
        let built = builder.compile();
        let again = built.zone.expect("a zone");
        assert_eq!(lines(&again), lines(&first));
        assert_eq!(again.facts(), first.facts());
        assert_eq!(first.records().count(), first.facts().records);
        // What stands in no file is found in no place.
        assert!(built.findings.iter().all(|finding| finding.place.is_none()), "{:?}", built.findings);
    }
}

#[test]
fn names_come_in_canonical_order_and_can_be_walked_one_by_one() {
    let zone = zone("example.org", TEXT);
    let order = zone.order();
    let names: Vec<String> = (0..order.len())
        .filter_map(|number| zone.records_at(&order, number).next().map(|record| record.owner().to_string()))
        .collect();
    assert_eq!(
        names,
        [
            "example.org.",
            "b.example.org.",
            "*.B.example.org.",
            "a.c.example.org.",
            "ns.example.org.",
            "sub.example.org.",
            "ns.sub.example.org."
        ]
    );
    assert_eq!(zone.records_at(&order, order.len()).count(), 0);
    let of = |text: &str| {
        zone.records_of(name(text).as_name(), &KEY).map(|record| record.rtype).collect::<Vec<_>>()
    };
    assert_eq!(of("A.C.example.org"), [Rtype::A, Rtype::A, Rtype::MX]);
    assert_eq!(of("c.example.org"), []);
    assert_eq!(of("example.net"), []);
}

#[test]
fn records_of_one_owner_may_come_apart() {
    let whole = zone("example.org", TEXT);
    let mut records: Vec<_> = whole.records().collect();
    // The same records, those of each owner scattered.
    records.sort_by_key(|record| (record.rtype, record.rdata.to_vec()));
    let mut builder = Builder::new(whole.apex(), KEY);
    records.iter().for_each(|record| builder.add(record));
    let again = builder.compile().zone.expect("a zone");
    let sorted = |zone: &Zone| {
        let mut lines = lines(zone);
        lines.sort();
        lines
    };
    assert_eq!(sorted(&again), sorted(&whole));
}
