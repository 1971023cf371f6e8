//! What is printed reads back as the same zone.

use crate::support;

use support::{Chain, sign, zone};

fn printed(zone: &zone::Zone) -> String {
    let mut out = String::new();
    zone.for_each_record(|owner, rtype, ttl, rdata| {
        let data = wire::rdata::display(rtype, rdata, 0..rdata.len());
        out.push_str(&format!("{owner} {ttl} IN {rtype} {data}\n"));
    });
    out
}

const TEXT: &str = "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns.example.net.\nb A 192.0.2.1\n*.B TXT \"x;y\"\na.c 5 MX 1 b\na.c A 192.0.2.2\nA.c A 192.0.2.3\n";

#[test]
fn records_come_in_canonical_order_and_the_soa_first() {
    assert_eq!(
        printed(&zone("example.org", TEXT)),
        "example.org. 60 IN SOA ns.example.org. a.example.org. 1 2 3 4 5\n\
         example.org. 60 IN NS ns.example.net.\n\
         b.example.org. 60 IN A 192.0.2.1\n\
         *.B.example.org. 60 IN TXT \"x;y\"\n\
         a.c.example.org. 60 IN A 192.0.2.2\n\
         a.c.example.org. 60 IN A 192.0.2.3\n\
         a.c.example.org. 5 IN MX 1 b.example.org.\n"
    );
}

#[test]
fn what_is_printed_reads_back_as_the_same_zone() {
    for text in [
        TEXT.to_owned(),
        sign("example.org", TEXT, Chain::Nsec),
        sign("example.org", TEXT, Chain::Nsec3 { opt_out: false }),
    ] {
        let first = zone("example.org", &text);
        let again = zone("example.org", &printed(&first));
        assert_eq!(printed(&again), printed(&first));
        assert_eq!(again.facts(), first.facts());
    }
}
