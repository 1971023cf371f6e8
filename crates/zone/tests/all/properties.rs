//! What every zone file must keep to, on random ones: pieces of sound files in any order.

use proptest::prelude::*;

#[path = "../../../../tests/harness/src/zone_file.rs"]
#[expect(unreachable_pub, reason = "the module of a library, which this crate is too low to use")]
mod target;

const PIECES: [&str; 34] = [
    "@",
    "a",
    "b.a",
    "*",
    "*.b",
    "x.*",
    "example.net.",
    " ",
    "\t",
    "\n",
    "60",
    "1h",
    "IN",
    "A",
    "192.0.2.1",
    "NS",
    "CNAME",
    "DNAME",
    "TXT \"x\"",
    "MX 1",
    "NSEC a NS SOA",
    "NSEC3PARAM 1 0 1 -",
    "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom 60 NSEC3 1 1 1 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A\n",
    "@ RRSIG SOA 13 2 60 20300101000000 20200101000000 1 @ AAAA\n",
    "(",
    ")",
    ";",
    "$ORIGIN a\n",
    "$TTL 5\n",
    "$INCLUDE more\n",
    "$GENERATE 1-3 h$ A 192.0.2.$\n",
    "\\# 4 c0000201",
    "\u{e9}",
    "\"",
];

const SOUND: &str = "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns.example.net.\n";

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn zone_files_never_panic_and_what_is_printed_reads_back(
        pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..40),
        begins_sound in any::<bool>(),
    ) {
        let text = format!("{}{}\n", if begins_sound { SOUND } else { "" }, pieces.join(" ").replace("\n ", "\n"));
        target::zone_file(text.as_bytes());
    }

    #[test]
    fn random_records_are_served(
        records in prop::collection::vec((0..7_usize, prop::sample::select(vec!["A 192.0.2.1", "TXT x", "MX 1 b", "NS b.a", "CNAME a", "DNAME b", "SRV 1 2 3 b.a", "NSEC a A", "HTTPS 1 ."])), 0..12),
    ) {
        let owners = ["@", "a", "b.a", "*", "*.b", "x.*", "c.b.a"];
        let lines: String = records.iter().map(|(owner, data)| format!("{} {data}\n", owners[*owner])).collect();
        target::zone_file(format!("{SOUND}{lines}").as_bytes());
    }

    #[test]
    fn octets_never_panic(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        target::zone_file(&octets);
    }
}
