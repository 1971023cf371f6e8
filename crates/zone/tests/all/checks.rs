//! What is wrong with a zone's data, and how bad that is.

use crate::support;

use support::{KEY, name};
use zone::master::NoIncludes;
use zone::{Level, load};

fn check(text: &str, is_served: bool, expect: &[&str]) {
    let text = format!("$TTL 60\n{text}");
    let loaded = load(name("example.org").as_name(), "zone", text.as_bytes(), &mut NoIncludes, KEY);
    let shown: Vec<String> = loaded
        .findings
        .iter()
        .map(|finding| {
            let level = if finding.problem.level() == Level::Error { "error" } else { "warning" };
            let line = finding.place.map_or(0, |place| place.line);
            format!("{line} {level} {}: {}", finding.owner, finding.problem)
        })
        .collect();
    assert_eq!(loaded.mistakes, []);
    assert_eq!(shown, expect, "{text}");
    assert_eq!(loaded.zone.is_some(), is_served, "{text}");
}

const TOP: &str = "@ SOA ns a 1 2 3 4 5\n@ NS ns.example.net.\n";

#[test]
fn a_sound_zone_has_no_findings() {
    check(
        &format!(
            "{TOP}sub NS ns.sub\nsub NS ns.side\nns.sub A 192.0.2.1\nside NS ns.side\nns.side AAAA 2001:db8::1\nwww CNAME web\nweb A 192.0.2.1\nweb A 192.0.2.2\n*.w MX 1 web\n"
        ),
        true,
        &[],
    );
}

#[test]
fn a_zone_has_one_soa_and_servers() {
    check("@ NS ns.example.net.\n", false, &["0 error example.org.: no SOA at the apex"]);
    check(
        "",
        false,
        &["0 warning example.org.: no NS at the apex", "0 error example.org.: no SOA at the apex"],
    );
    check("@ SOA ns a 1 2 3 4 5\n", true, &["0 warning example.org.: no NS at the apex"]);
    check(
        &format!("{TOP}@ SOA ns a 2 2 3 4 5\n"),
        false,
        &["2 error example.org.: several SOA records, expected one"],
    );
    check(
        &format!("{TOP}@ SOA NS a 1 2 3 4 5\n"),
        true,
        &["4 warning example.org.: the same SOA record twice"],
    );
    check(
        &format!("{TOP}sub SOA ns a 2 2 3 4 5\n"),
        false,
        &["4 error sub.example.org.: a SOA that is not at the apex"],
    );
}

#[test]
fn an_alias_stands_alone() {
    check(
        &format!("{TOP}a CNAME b\na TXT x\nb CNAME x\nb CNAME y\nc CNAME d\nC CNAME D\n"),
        false,
        &[
            "4 error a.example.org.: a CNAME beside TXT, expected it to stand alone",
            "6 error b.example.org.: several CNAME records, expected one",
            "9 warning c.example.org.: the same CNAME record twice",
        ],
    );
}

#[test]
fn nothing_lies_below_a_dname() {
    check(
        &format!("{TOP}d DNAME e\nx.d A 192.0.2.1\nf DNAME g\nf DNAME h\ni DNAME j\ni NS ns.example.net.\n"),
        false,
        &[
            "5 error x.d.example.org.: data below a DNAME",
            "6 error f.example.org.: several DNAME records, expected one",
            "8 error i.example.org.: a DNAME beside NS, expected it at the apex or without NS",
        ],
    );
}

#[test]
fn what_lies_below_a_zone_cut_is_glue_or_hidden() {
    check(
        &format!("{TOP}sub NS ns.sub\nns.sub A 192.0.2.1\nns.sub TXT x\na.b.sub A 192.0.2.1\n"),
        true,
        &["5 warning ns.sub.example.org.: TXT below a zone cut, which is never served"],
    );
}

#[test]
fn servers_need_addresses() {
    check(
        &format!(
            "{TOP}@ NS ns\nsub NS ns.sub\nside NS ns.sub\nother NS alias\nalias CNAME web\nweb A 192.0.2.1\nmore NS made.up\n*.up A 192.0.2.1\n"
        ),
        true,
        &[
            "2 warning example.org.: no address of the server ns.example.org., which lies in this zone",
            "5 warning sub.example.org.: no address of the server ns.sub.example.org., which lies below this zone cut",
            "6 warning side.example.org.: no address of the server ns.sub.example.org., which lies in this zone",
            "7 warning other.example.org.: NS names alias.example.org., which is an alias",
        ],
    );
}

#[test]
fn ds_stands_at_zone_cuts_of_the_parent() {
    check(
        &format!("{TOP}@ DS 1 13 2 00\na DS 1 13 2 00\n"),
        false,
        &[
            "2 error example.org.: a DS at the apex, expected it in the parent zone",
            "5 warning a.example.org.: a DS without NS",
        ],
    );
}

#[test]
fn what_is_out_of_the_zone_is_left_out() {
    check(
        &format!("{TOP}example.net. A 192.0.2.1\nxexample.org. A 192.0.2.1\n"),
        true,
        &[
            "4 warning example.net.: not in the zone; left out",
            "5 warning xexample.org.: not in the zone; left out",
        ],
    );
}

#[test]
fn an_rrset_has_one_ttl() {
    check(
        &format!("{TOP}a 60 A 192.0.2.1\na 30 A 192.0.2.2\n"),
        true,
        &["4 warning a.example.org.: A records with different TTLs; the smallest is taken"],
    );
}

#[test]
fn an_rrset_fits_a_message() {
    let mut text = TOP.to_owned();
    for i in 0..300 {
        text.push_str(&format!("a TXT {}{i}\n", "x".repeat(240)));
    }
    check(&text, false, &["4 error a.example.org.: TXT records that do not fit a message of 65535 octets"]);
}

#[test]
fn proofs_need_parameters() {
    check(
        &format!("{TOP}0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 0 0 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A\n"),
        true,
        &[
            "0 warning example.org.: NSEC3 records without a matching NSEC3PARAM at the apex; nothing is proved",
        ],
    );
    check(
        &format!(
            "{TOP}@ NSEC3PARAM 1 0 501 -\n0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 0 501 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A\n"
        ),
        true,
        &[
            "0 warning example.org.: NSEC3 with 501 iterations, expected 0: more than 150 are not computed, and validators treat the zone as insecure",
        ],
    );
}

#[test]
fn data_that_contradicts_itself_is_an_error() {
    let error = |rtype: &str, data: &str, why: &str| {
        let found = format!("4 error x.example.org.: {rtype}: {why}");
        check(&format!("{TOP}x {rtype} {data}\n"), false, &[&found]);
    };
    error("SVCB", "1 foo. mandatory=port", "a key in \"mandatory\" is not there (RFC 9460 §8)");
    error("HTTPS", "1 foo. mandatory=key1234", "a key in \"mandatory\" is not there (RFC 9460 §8)");
    error("HTTPS", "1 . no-default-alpn", "\"no-default-alpn\" without \"alpn\" (RFC 9460 §7.1.1)");
    error("SVCB", "1 foo. tls-supported-groups=29,23,29", "a group is in \"tls-supported-groups\" twice");
    check(
        &format!("{TOP}x NSEC3 1 0 0 - IMQ912BREQP1POLAH3RMONG0 A\n"),
        false,
        &[
            "4 error x.example.org.: NSEC3: the next hash has not the 20 octets of SHA-1 (RFC 5155 §3.1.7)",
            "4 warning x.example.org.: NSEC3 records without a matching NSEC3PARAM at the apex; nothing is proved",
        ],
    );
    check(&format!("{TOP}x SVCB 1 foo. mandatory=port,alpn alpn=h2 port=8\n"), true, &[]);
}

#[test]
fn only_what_rfc_4035_names_stands_beside_a_cname() {
    let beside = |record: &str, found: &[&str]| {
        check(&format!("{TOP}x CNAME y\nx {record}\n"), found.is_empty(), found);
    };
    beside("KEY 256 3 5 AAAA", &[]);
    beside("NXT y A", &["4 error x.example.org.: a CNAME beside NXT, expected it to stand alone"]);
}

#[test]
fn a_long_text_is_split_and_told() {
    let long = "x".repeat(256);
    for rtype in ["TXT", "SPF"] {
        let told = format!(
            "4 warning a.example.org.: a text of more than 255 octets in {rtype}; it is split into several strings"
        );
        check(&format!("{TOP}a {rtype} \"{long}\" y\n"), true, &[&told]);
    }
    check(&format!("{TOP}a TXT \"{}\" y\n", "x".repeat(255)), true, &[]);
}
