//! The examples of the RFCs.

use crate::support;

use support::{Chain, check, hash, name, sign, zones};
use wire::{Rcode, Rtype};

const OK: (Rcode, bool) = (Rcode::NOERROR, true);
const NO: (Rcode, bool) = (Rcode::NXDOMAIN, true);
const REFERRED: (Rcode, bool) = (Rcode::NOERROR, false);

/// RFC 4592 §2.2.1, from the example on.
const RFC_4592: &str = "
$ORIGIN example.
example.                 3600 IN  SOA   ns.example.com. admin.example.com. 1 2 3 4 300
example.                 3600     NS    ns.example.com.
example.                 3600     NS    ns.example.net.
*.example.               3600     TXT   \"this is a wildcard\"
*.example.               3600     MX    10 host1.example.
sub.*.example.           3600     TXT   \"this is not a wildcard\"
host1.example.           3600     A     192.0.2.1
_ssh._tcp.host1.example. 3600     SRV   0 0 22 host1.example.
_ssh._tcp.host2.example. 3600     SRV   0 0 22 host2.example.
subdel.example.          3600     NS    ns.example.com.
subdel.example.          3600     NS    ns.example.net.
";

#[test]
fn wildcards_answer_as_in_rfc_4592() {
    let zones = zones(&[("example", RFC_4592)]);
    let soa = "au example. SOA";
    check(
        &zones,
        "host3.example",
        Rtype::MX,
        false,
        OK,
        &["an host3.example. MX 10 host1.example.", "ad host1.example. A 192.0.2.1"],
    );
    check(&zones, "host3.example", Rtype::A, false, OK, &[soa]);
    check(
        &zones,
        "foo.bar.example",
        Rtype::TXT,
        false,
        OK,
        &["an foo.bar.example. TXT \"this is a wildcard\""],
    );
    check(&zones, "host1.example", Rtype::MX, false, OK, &[soa]);
    check(&zones, "sub.*.example", Rtype::MX, false, OK, &[soa]);
    check(&zones, "_telnet._tcp.host1.example", Rtype::SRV, false, NO, &[soa]);
    let servers = ["au subdel.example. NS ns.example.com.", "au subdel.example. NS ns.example.net."];
    check(&zones, "host.subdel.example", Rtype::A, false, REFERRED, &servers);
    check(&zones, "ghost.*.example", Rtype::MX, false, NO, &[soa]);
    // §4.2.1 and RFC 8020: what exists only because names below it do has no data.
    check(&zones, "_tcp.host1.example", Rtype::A, false, OK, &[soa]);
    check(&zones, "host2.example", Rtype::A, false, OK, &[soa]);
    check(&zones, "*.example", Rtype::TXT, false, OK, &["an *.example. TXT \"this is a wildcard\""]);
}

/// RFC 4035 appendix A, without keys and signatures.
const RFC_4035: &str = "
$ORIGIN example.
$TTL 3600
@        SOA   ns1 bugs.x.w 1081539377 3600 300 3600000 3600
         NS    ns1
         NS    ns2
         MX    1 xx
a        NS    ns1.a
         NS    ns2.a
         DS    57855 5 1 B6DCD485719ADCA18E5F3D48A2331627FDD3636B
ns1.a    A     192.0.2.5
ns2.a    A     192.0.2.6
ai       A     192.0.2.9
         HINFO \"KLH-10\" \"ITS\"
         AAAA  2001:db8::f00:baa9
b        NS    ns1.b
         NS    ns2.b
ns1.b    A     192.0.2.7
ns2.b    A     192.0.2.8
ns1      A     192.0.2.1
ns2      A     192.0.2.2
*.w      MX    1 ai
x.w      MX    1 xx
x.y.w    MX    1 xx
xx       A     192.0.2.10
         HINFO \"KLH-10\" \"TOPS-20\"
         AAAA  2001:db8::f00:baaa
";

#[test]
fn signed_answers_are_those_of_rfc_4035_appendix_b() {
    let zones = zones(&[("example", &sign("example", RFC_4035, Chain::Nsec))]);
    let soa = ["au example. SOA", "au example. RRSIG SOA"];
    let apex = ["au example. NSEC a.example.", "au example. RRSIG NSEC"];
    // B.1 An answer.
    check(
        &zones,
        "x.w.example",
        Rtype::MX,
        true,
        OK,
        &[
            "an x.w.example. MX 1 xx.example.",
            "an x.w.example. RRSIG MX",
            "ad xx.example. A 192.0.2.10",
            "ad xx.example. RRSIG A",
            "ad xx.example. AAAA 2001:db8::f00:baaa",
            "ad xx.example. RRSIG AAAA",
        ],
    );
    // B.2 A name error.
    let ml = ["au b.example. NSEC ns1.example.", "au b.example. RRSIG NSEC"];
    check(&zones, "ml.example", Rtype::A, true, NO, &[soa, ml, apex].concat());
    // B.3 No data.
    let ns1 = ["au ns1.example. NSEC ns2.example.", "au ns1.example. RRSIG NSEC"];
    check(&zones, "ns1.example", Rtype::MX, true, OK, &[soa, ns1].concat());
    // B.4 A referral to a signed zone.
    check(
        &zones,
        "mc.a.example",
        Rtype::MX,
        true,
        REFERRED,
        &[
            "au a.example. NS ns1.a.example.",
            "au a.example. NS ns2.a.example.",
            "au a.example. DS",
            "au a.example. RRSIG DS",
            "ad ns1.a.example. A 192.0.2.5",
            "ad ns2.a.example. A 192.0.2.6",
        ],
    );
    // B.5 A referral to an unsigned zone.
    check(
        &zones,
        "mc.b.example",
        Rtype::MX,
        true,
        REFERRED,
        &[
            "au b.example. NS ns1.b.example.",
            "au b.example. NS ns2.b.example.",
            "au b.example. NSEC ns1.example.",
            "au b.example. RRSIG NSEC",
            "ad ns1.b.example. A 192.0.2.7",
            "ad ns2.b.example. A 192.0.2.8",
        ],
    );
    // B.6 An expanded wildcard.
    let cover = ["au x.y.w.example. NSEC xx.example.", "au x.y.w.example. RRSIG NSEC"];
    check(
        &zones,
        "a.z.w.example",
        Rtype::MX,
        true,
        OK,
        &[
            "an a.z.w.example. MX 1 ai.example.",
            "an a.z.w.example. RRSIG MX",
            cover[0],
            cover[1],
            "ad ai.example. A 192.0.2.9",
            "ad ai.example. RRSIG A",
            "ad ai.example. AAAA 2001:db8::f00:baa9",
            "ad ai.example. RRSIG AAAA",
        ],
    );
    // B.7 A wildcard without data of the type.
    let wildcard = ["au *.w.example. NSEC x.w.example.", "au *.w.example. RRSIG NSEC"];
    check(&zones, "a.z.w.example", Rtype::AAAA, true, OK, &[soa, wildcard, cover].concat());
    // B.8 DS asked for at the child.
    check(&zones, "example", Rtype::DS, true, OK, &[soa, apex].concat());
}

/// RFC 5155 appendix A, without keys and signatures.
const RFC_5155: &str = "
$ORIGIN example.
$TTL 3600
@        SOA   ns1 bugs.x.w 1 3600 300 3600000 3600
         NS    ns1
         NS    ns2
         MX    1 xx
2t7b4g4vsa5smi47k61mv5bv1a22bojr A 192.0.2.127
a        NS    ns1.a
         NS    ns2.a
         DS    58470 5 1 3079F1593EBAD6DC121E202A8B766A6A4837206C
ns1.a    A     192.0.2.5
ns2.a    A     192.0.2.6
ai       A     192.0.2.9
         HINFO \"KLH-10\" \"ITS\"
         AAAA  2001:db8::f00:baa9
c        NS    ns1.c
         NS    ns2.c
ns1.c    A     192.0.2.7
ns2.c    A     192.0.2.8
ns1      A     192.0.2.1
ns2      A     192.0.2.2
*.w      MX    1 ai
x.w      MX    1 xx
x.y.w    MX    1 xx
xx       A     192.0.2.10
         HINFO \"KLH-10\" \"TOPS-20\"
         AAAA  2001:db8::f00:baaa
";

#[test]
fn hashed_denial_is_that_of_rfc_5155_appendix_b() {
    for (text, expect) in [
        ("example", "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom"),
        ("x.w.example", "b4um86eghhds6nea196smvmlo4ors995"),
        ("*.w.example", "r53bq7cc2uvmubfu5ocmm6pers9tk9en"),
    ] {
        assert_eq!(hash(&name(text)), expect);
    }
    let zones = zones(&[("example", &sign("example", RFC_5155, Chain::Nsec3 { opt_out: true }))]);
    let soa = ["au example. SOA", "au example. RRSIG SOA"];
    let proof = |hash: &str| [format!("au {hash}.example. NSEC3"), format!("au {hash}.example. RRSIG NSEC3")];
    let check_proof = |qname: &str, qtype, expect, lead: &[&str], hashes: &[&str], rest: &[&str]| {
        let proofs: Vec<String> = hashes.iter().flat_map(|hash| proof(hash)).collect();
        let lines: Vec<&str> = lead
            .iter()
            .copied()
            .chain(proofs.iter().map(String::as_str))
            .chain(rest.iter().copied())
            .collect();
        check(&zones, qname, qtype, true, expect, &lines);
    };
    const APEX: &str = "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom";
    const X_W: &str = "b4um86eghhds6nea196smvmlo4ors995";
    const A: &str = "35mthgpgcu1qg68fab165klnsnk3dpvl";
    const NS1: &str = "2t7b4g4vsa5smi47k61mv5bv1a22bojr";
    const Y_W: &str = "ji6neoaepv8b5o6k4ev33abha8ht9fgc";
    const NS2: &str = "q04jkcevqvmu85r014c7dkba38o0ji5r";
    const W: &str = "k8udemvp1j2f7eg6jebps17vp3n8i58h";
    const WILDCARD: &str = "r53bq7cc2uvmubfu5ocmm6pers9tk9en";
    // B.1 A name error.
    check_proof("a.c.x.w.example", Rtype::A, NO, &soa, &[X_W, APEX, A], &[]);
    // The hash of the wildcard is remembered: the same proof comes out for this name and for its
    // neighbour.
    check_proof("a.c.x.w.example", Rtype::A, NO, &soa, &[X_W, APEX, A], &[]);
    check_proof("b.c.x.w.example", Rtype::A, NO, &soa, &[X_W, APEX, A], &[]);
    // B.2 No data.
    check_proof("ns1.example", Rtype::MX, OK, &soa, &[NS1], &[]);
    // B.2.1 No data, empty non-terminal.
    check_proof("y.w.example", Rtype::A, OK, &soa, &[Y_W], &[]);
    // B.3 A referral to an unsigned zone that opted out.
    check_proof(
        "mc.c.example",
        Rtype::MX,
        REFERRED,
        &["au c.example. NS ns1.c.example.", "au c.example. NS ns2.c.example."],
        &[APEX, A],
        &["ad ns1.c.example. A 192.0.2.7", "ad ns2.c.example. A 192.0.2.8"],
    );
    // B.4 An expanded wildcard.
    check_proof(
        "a.z.w.example",
        Rtype::MX,
        OK,
        &["an a.z.w.example. MX 1 ai.example.", "an a.z.w.example. RRSIG MX"],
        &[NS2],
        &[
            "ad ai.example. A 192.0.2.9",
            "ad ai.example. RRSIG A",
            "ad ai.example. AAAA 2001:db8::f00:baa9",
            "ad ai.example. RRSIG AAAA",
        ],
    );
    // B.5 A wildcard without data of the type.
    check_proof("a.z.w.example", Rtype::AAAA, OK, &soa, &[W, NS2, WILDCARD], &[]);
    // B.6 DS asked for at the child.
    check_proof("example", Rtype::DS, OK, &soa, &[APEX], &[]);
    // §7.2.8: the owner of an NSEC3 record is no name of the zone, unless it has other data.
    check(
        &zones,
        "2t7b4g4vsa5smi47k61mv5bv1a22bojr.example",
        Rtype::A,
        false,
        OK,
        &["an 2t7b4g4vsa5smi47k61mv5bv1a22bojr.example. A 192.0.2.127"],
    );
    check(&zones, "35mthgpgcu1qg68fab165klnsnk3dpvl.example", Rtype::NSEC3, false, NO, &["au example. SOA"]);
}

#[test]
fn a_zone_with_too_many_iterations_is_answered_with_the_record_of_its_apex() {
    for iterations in [zone::ITERATIONS_MAX, zone::ITERATIONS_MAX + 1, u16::MAX] {
        let parameters = dnssec::Nsec3Parameters { iterations, ..dnssec::Nsec3Parameters::default() };
        let hash = |owner: &str| {
            let mut text = String::new();
            let hashed = parameters.hash(name(owner).as_name());
            wire::text::write_base32_hex(&mut text, &hashed).expect("memory");
            text.to_ascii_lowercase()
        };
        let (apex, host) = (hash("example"), hash("host.example"));
        let text = format!(
            "$ORIGIN example.\n$TTL 60\n@ SOA ns.invalid. h.invalid. 1 2 3 4 5\n@ NS ns.invalid.\nhost A 192.0.2.1\n\
             @ NSEC3PARAM 1 0 {iterations} -\n{apex} NSEC3 1 0 {iterations} - {host} SOA NS RRSIG NSEC3PARAM\n\
             {host} NSEC3 1 0 {iterations} - {apex} A RRSIG\n"
        );
        let zones = zones(&[("example", &text)]);
        let ask = |qname: &str, qtype| support::ask(&zones, qname, qtype, true).lines;
        let proofs = |lines: &[String]| lines.iter().filter(|line| line.contains(" NSEC3 ")).count();
        assert_eq!(ask("host.example", Rtype::A), ["an host.example. 60 A 192.0.2.1"]);
        let missing = ask("no.example", Rtype::A);
        let of_apex = format!("au {apex}.example. 60 NSEC3 ");
        assert!(missing.iter().any(|line| line.starts_with(&of_apex)), "{missing:?}");
        assert_eq!(proofs(&ask("host.example", Rtype::TXT)), 1);
        if iterations > zone::ITERATIONS_MAX {
            assert_eq!(proofs(&missing), 1, "{missing:?}");
        }
    }
}
