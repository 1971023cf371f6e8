//! What NSEC and NSEC3 records prove: the examples of the RFCs, rules of RFC 6840, and zones whose
//! every name is asked for.

use crate::support;

use dnssec::proof::{
    Delegation, DenialRecord, Denials, HASHES_PER_SEARCH_MAX, HashBudget, ITERATIONS_MAX, Proved, Unproved,
};
use dnssec::{Algorithm, Budget, Dnskey, KeySize, Rrset, SecretKey, SignedBy, flags_of, verify_rrset};
use support::{name, rdata};
use wire::{EdeCode, NameBuf, Rtype};

/// A record as a test has it.
struct Row {
    owner: NameBuf,
    rtype: Rtype,
    rdata: Vec<u8>,
    labels: u8,
}

/// Reads lines of owner, type and data.
fn rows(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let mut words = line.trim().splitn(3, ' ');
        let owner = name(words.next().expect("an owner"));
        let rtype: Rtype = words.next().expect("a type").parse().expect("a type");
        let labels = owner.as_name().labels().filter(|label| *label != b"*").count() as u8;
        Row { owner, rtype, rdata: rdata(rtype, words.next().expect("data")), labels }
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(row).collect()
}

fn denials<'r>(zone: &'r NameBuf, rows: &'r [Row]) -> Denials<'r> {
    let record = |row: &'r Row| DenialRecord {
        owner: row.owner.as_name(),
        rtype: row.rtype,
        rdata: &row.rdata,
        labels: row.labels,
    };
    Denials::new(zone.as_name(), rows.iter().map(record))
}

fn budget() -> HashBudget {
    HashBudget::new(ITERATIONS_MAX, 100)
}

/// What is asked of the records of a zone.
#[derive(Clone, Copy, Debug)]
enum Asked {
    NameError,
    NoData(Rtype),
    /// With the Labels field of the answer's signature.
    Expansion(u8),
}

fn ask(zone: &NameBuf, rows: &[Row], qname: &str, asked: Asked) -> Result<Proved, Unproved> {
    let (denials, qname) = (denials(zone, rows), name(qname));
    let (qname, mut budget) = (qname.as_name(), budget());
    match asked {
        Asked::NameError => denials.name_error(qname, &mut budget),
        Asked::NoData(qtype) => denials.no_data(qname, qtype, &mut budget),
        Asked::Expansion(labels) => denials.expansion(qname, labels, &mut budget),
    }
}

/// All of the records together prove it; without any one of them, nothing does.
#[track_caller]
fn check_needed(zone: &str, text: &str, qname: &str, asked: Asked, expect: Proved) {
    let zone = name(zone);
    let mut rows = rows(text);
    assert_eq!(ask(&zone, &rows, qname, asked), Ok(expect), "{qname} {asked:?}");
    for i in 0..rows.len() {
        let left_out = rows.remove(i);
        let found = ask(&zone, &rows, qname, asked);
        assert!(found.is_err(), "{qname} {asked:?} without {}: {found:?}", left_out.owner);
        rows.insert(i, left_out);
    }
    // A record that was made from a wildcard denies nothing, whoever signed the wildcard.
    for i in 0..rows.len() {
        rows[i].labels -= 1;
        assert!(ask(&zone, &rows, qname, asked).is_err(), "{qname} {asked:?}");
        rows[i].labels += 1;
    }
}

#[track_caller]
fn check(zone: &str, text: &str, qname: &str, asked: Asked, expect: Result<Proved, Unproved>) {
    assert_eq!(ask(&name(zone), &rows(text), qname, asked), expect, "{qname} {asked:?}");
}

#[track_caller]
fn check_delegation(zone: &str, text: &str, owner: &str, expect: Result<Delegation, Unproved>) {
    let (zone, rows) = (name(zone), rows(text));
    let found = denials(&zone, &rows).delegation(name(owner).as_name(), &mut budget());
    assert_eq!(found, expect, "{owner}");
}

/// The NSEC records of RFC 4035 appendix A.
const NAMES: &str = "
    example. NSEC a.example. NS SOA MX RRSIG NSEC DNSKEY
    a.example. NSEC ai.example. NS DS RRSIG NSEC
    ai.example. NSEC b.example. A HINFO AAAA RRSIG NSEC
    b.example. NSEC ns1.example. NS RRSIG NSEC
    ns1.example. NSEC ns2.example. A RRSIG NSEC
    ns2.example. NSEC *.w.example. A RRSIG NSEC
    *.w.example. NSEC x.w.example. MX RRSIG NSEC
    x.w.example. NSEC x.y.w.example. MX RRSIG NSEC
    x.y.w.example. NSEC xx.example. MX RRSIG NSEC
    xx.example. NSEC example. A HINFO AAAA RRSIG NSEC";

/// The NSEC3 records of RFC 5155 appendix A.
const HASHES: &str = "
    0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example. NSEC3 1 1 12 aabbccdd 2t7b4g4vsa5smi47k61mv5bv1a22bojr MX DNSKEY NS SOA NSEC3PARAM RRSIG
    2t7b4g4vsa5smi47k61mv5bv1a22bojr.example. NSEC3 1 1 12 aabbccdd 2vptu5timamqttgl4luu9kg21e0aor3s A RRSIG
    2vptu5timamqttgl4luu9kg21e0aor3s.example. NSEC3 1 1 12 aabbccdd 35mthgpgcu1qg68fab165klnsnk3dpvl MX RRSIG
    35mthgpgcu1qg68fab165klnsnk3dpvl.example. NSEC3 1 1 12 aabbccdd b4um86eghhds6nea196smvmlo4ors995 NS DS RRSIG
    b4um86eghhds6nea196smvmlo4ors995.example. NSEC3 1 1 12 aabbccdd gjeqe526plbf1g8mklp59enfd789njgi MX RRSIG
    gjeqe526plbf1g8mklp59enfd789njgi.example. NSEC3 1 1 12 aabbccdd ji6neoaepv8b5o6k4ev33abha8ht9fgc HINFO A AAAA RRSIG
    ji6neoaepv8b5o6k4ev33abha8ht9fgc.example. NSEC3 1 1 12 aabbccdd k8udemvp1j2f7eg6jebps17vp3n8i58h
    k8udemvp1j2f7eg6jebps17vp3n8i58h.example. NSEC3 1 1 12 aabbccdd kohar7mbb8dc2ce8a9qvl8hon4k53uhi
    kohar7mbb8dc2ce8a9qvl8hon4k53uhi.example. NSEC3 1 1 12 aabbccdd q04jkcevqvmu85r014c7dkba38o0ji5r A RRSIG
    q04jkcevqvmu85r014c7dkba38o0ji5r.example. NSEC3 1 1 12 aabbccdd r53bq7cc2uvmubfu5ocmm6pers9tk9en A RRSIG
    r53bq7cc2uvmubfu5ocmm6pers9tk9en.example. NSEC3 1 1 12 aabbccdd t644ebqk9bibcna874givr6joj62mlhv MX RRSIG
    t644ebqk9bibcna874givr6joj62mlhv.example. NSEC3 1 1 12 aabbccdd 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom HINFO A AAAA RRSIG";

/// Returns the lines that begin with one of these.
fn chosen(all: &str, starts: &[&str]) -> String {
    let is_chosen = |line: &&str| starts.iter().any(|start| line.trim().starts_with(start));
    all.lines().filter(is_chosen).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_answers_of_rfc_4035_are_proved_with_all_of_their_records() {
    let check = |starts: &[&str], qname, asked| {
        check_needed("example", &chosen(NAMES, starts), qname, asked, Proved::Fully);
    };
    check(&["b.example. ", "example. "], "ml.example", Asked::NameError);
    check(&["ns1.example. "], "ns1.example", Asked::NoData(Rtype::MX));
    check(&["b.example. "], "b.example", Asked::NoData(Rtype::DS));
    check(&["x.y.w.example. "], "a.z.w.example", Asked::Expansion(2));
    check(&["x.y.w.example. ", "*.w.example. "], "a.z.w.example", Asked::NoData(Rtype::AAAA));
    // A name that exists for those below it, and the last name of the zone.
    check(&["x.w.example. "], "y.w.example", Asked::NoData(Rtype::A));
    check(&["xx.example. ", "example. "], "zz.example", Asked::NameError);
    // Letter case counts for nothing.
    check(&["b.example. ", "example. "], "ML.ExAmPlE", Asked::NameError);
    check_delegation("example", NAMES, "b.example", Ok(Delegation::Unsigned));
    check_delegation("example", NAMES, "a.example", Err(Unproved::Exists));
    check_delegation("example", NAMES, "ns1.example", Ok(Delegation::NoCut));
    check_delegation("example", NAMES, "y.w.example", Ok(Delegation::NoCut));
    check_delegation("example", NAMES, "ml.example", Ok(Delegation::NoCut));
}

#[test]
fn the_answers_of_rfc_5155_are_proved_with_all_of_their_records() {
    let check = |starts: &[&str], qname, asked, expect| {
        check_needed("example", &chosen(HASHES, starts), qname, asked, expect);
    };
    check(&["0p9m", "b4um", "35mt"], "a.c.x.w.example", Asked::NameError, Proved::OptOut);
    check(&["2t7b"], "ns1.example", Asked::NoData(Rtype::MX), Proved::Fully);
    check(&["ji6n"], "y.w.example", Asked::NoData(Rtype::A), Proved::Fully);
    check(&["35mt", "0p9m"], "c.example", Asked::NoData(Rtype::DS), Proved::OptOut);
    check(&["q04j"], "a.z.w.example", Asked::Expansion(2), Proved::OptOut);
    // Where unsigned delegations are left out, this may be one: insecure without the wildcard, too.
    for starts in [&["k8ud", "q04j", "r53b"][..], &["k8ud", "q04j"]] {
        let some = chosen(HASHES, starts);
        self::check("example", &some, "a.z.w.example", Asked::NoData(Rtype::AAAA), Ok(Proved::OptOut));
    }
    check_delegation("example", HASHES, "c.example", Ok(Delegation::OptOut));
    check_delegation("example", HASHES, "a.example", Err(Unproved::Exists));
    check_delegation("example", HASHES, "x.w.example", Ok(Delegation::NoCut));
    // Without opting out, the same records prove all of it.
    let strict = HASHES.replace("NSEC3 1 1 12", "NSEC3 1 0 12");
    let strict = |starts: &[&str]| chosen(&strict, starts);
    check_needed(
        "example",
        &strict(&["0p9m", "b4um", "35mt"]),
        "a.c.x.w.example",
        Asked::NameError,
        Proved::Fully,
    );
    check_needed("example", &strict(&["q04j"]), "a.z.w.example", Asked::Expansion(2), Proved::Fully);
    let some = strict(&["k8ud", "q04j", "r53b"]);
    check_needed("example", &some, "a.z.w.example", Asked::NoData(Rtype::AAAA), Proved::Fully);
    check_delegation("example", &strict(&["0p9m", "35mt"]), "c.example", Ok(Delegation::NoCut));
    // And then nothing proves that there is a DS that is missing.
    self::check(
        "example",
        &strict(&["0p9m", "35mt"]),
        "c.example",
        Asked::NoData(Rtype::DS),
        Err(Unproved::Missing),
    );
}

#[test]
fn what_exists_is_not_denied() {
    for all in [NAMES, HASHES] {
        check("example", all, "ns1.example", Asked::NameError, Err(Unproved::Exists));
        check("example", all, "y.w.example", Asked::NameError, Err(Unproved::Exists));
        check("example", all, "ns1.example", Asked::NoData(Rtype::A), Err(Unproved::Exists));
        check("example", all, "a.z.w.example", Asked::NameError, Err(Unproved::Exists));
        check("example", all, "a.z.w.example", Asked::NoData(Rtype::MX), Err(Unproved::Exists));
        // The next closer name exists, so the wildcard does not stand in for it.
        check("example", all, "a.y.w.example", Asked::Expansion(2), Err(Unproved::Exists));
        // Fewer labels than the zone has, or as many as the name.
        check("example", all, "ml.example", Asked::Expansion(0), Err(Unproved::Missing));
        check("example", all, "ml.example", Asked::Expansion(2), Err(Unproved::Missing));
        check("example", all, "ml.other", Asked::NameError, Err(Unproved::Missing));
    }
    check("example", "", "ml.example", Asked::NameError, Err(Unproved::Missing));
    assert_eq!(Unproved::Missing.ede(), EdeCode::NSEC_MISSING);
    assert_eq!(Unproved::Exists.ede(), EdeCode::DNSSEC_BOGUS);
}

#[test]
fn a_parent_says_nothing_about_names_below_a_delegation() {
    // RFC 6840 §4.1: of the delegation itself, it denies the DS alone.
    for all in [NAMES, HASHES] {
        for qname in ["mc.a.example", "mc.b.example", "x.mc.b.example"] {
            let found = ask(&name("example"), &rows(all), qname, Asked::NameError);
            // With opting out, b.example is not there at all.
            let expect = if all == HASHES && qname.ends_with("b.example") {
                Ok(Proved::OptOut)
            } else {
                Err(Unproved::Missing)
            };
            assert_eq!(found, expect, "{qname}");
        }
        check("example", all, "a.example", Asked::NoData(Rtype::A), Err(Unproved::Missing));
        check("example", all, "mc.a.example", Asked::NoData(Rtype::A), Err(Unproved::Missing));
        check("example", all, "mc.a.example", Asked::Expansion(2), {
            // Nothing tells the hash of a name below a delegation from others: the signature of the
            // wildcard does, which is the zone's.
            if all == HASHES { Ok(Proved::OptOut) } else { Err(Unproved::Missing) }
        });
    }
    check_delegation("example", NAMES, "mc.a.example", Err(Unproved::Missing));
    check_delegation("example", HASHES, "mc.a.example", Err(Unproved::Missing));
    check("example", NAMES, "b.example", Asked::NoData(Rtype::NS), Err(Unproved::Missing));
    // RFC 6840 §4.1: below a DNAME there is nothing to deny.
    let with_dname = "d.example. NSEC example. DNAME RRSIG NSEC\nexample. NSEC d.example. NS SOA RRSIG NSEC";
    check("example", with_dname, "x.d.example", Asked::NameError, Err(Unproved::Missing));
    check("example", with_dname, "d.example", Asked::NoData(Rtype::A), Ok(Proved::Fully));
    check("example", with_dname, "e.example", Asked::NameError, Ok(Proved::Fully));
}

#[test]
fn a_child_does_not_say_that_its_parent_has_no_ds() {
    // The apex of the child, with the child's SOA (RFC 4035 appendix B.8, RFC 5155 appendix B.6).
    for all in [NAMES, HASHES] {
        check("example", all, "example", Asked::NoData(Rtype::DS), Err(Unproved::Missing));
        check_delegation("example", all, "example", Err(Unproved::Missing));
    }
    let child = "a.example. NSEC a.example. NS SOA RRSIG NSEC DNSKEY";
    check("example", child, "a.example", Asked::NoData(Rtype::DS), Err(Unproved::Missing));
    check_delegation("example", child, "a.example", Err(Unproved::Missing));
    // The root has no parent.
    let root = ". NSEC aaa. NS SOA RRSIG NSEC DNSKEY";
    check(".", root, ".", Asked::NoData(Rtype::DS), Ok(Proved::Fully));
    check(".", root, ".", Asked::NoData(Rtype::A), Ok(Proved::Fully));
    check(".", root, "aa", Asked::NameError, Ok(Proved::Fully));
    check(
        ".",
        "*. NSEC . A RRSIG NSEC\n. NSEC *. NS SOA RRSIG NSEC",
        "aa",
        Asked::NameError,
        Err(Unproved::Exists),
    );
}

#[test]
fn an_alias_hides_the_types_that_it_has_not() {
    // RFC 6840 §4.3.
    let alias = "c.example. NSEC d.example. CNAME RRSIG NSEC";
    check("example", alias, "c.example", Asked::NoData(Rtype::A), Err(Unproved::Exists));
    check("example", alias, "c.example", Asked::NoData(Rtype::CNAME), Err(Unproved::Exists));
    let wild = "*.example. NSEC d.example. CNAME RRSIG NSEC";
    check("example", wild, "c.example", Asked::NoData(Rtype::A), Err(Unproved::Exists));
    let any = "c.example. NSEC d.example. A RRSIG NSEC\nd.example. NSEC e.example. RRSIG NSEC";
    check("example", any, "c.example", Asked::NoData(Rtype::ANY), Err(Unproved::Exists));
    check("example", any, "d.example", Asked::NoData(Rtype::ANY), Ok(Proved::Fully));
}

#[test]
fn compact_denial_is_understood() {
    // RFC 9824 §3.1: a name that does not exist, and one without the type.
    let missing = "a.b.example. NSEC \\000.a.b.example. RRSIG NSEC NXNAME";
    check("example", missing, "a.b.example", Asked::NameError, Ok(Proved::Fully));
    check("example", missing, "A.b.example", Asked::NoData(Rtype::A), Ok(Proved::Fully));
    check("example", missing, "c.example", Asked::NameError, Err(Unproved::Missing));
    check_delegation("example", missing, "a.b.example", Ok(Delegation::NoCut));
    let (zone, missing) = (name("example"), rows(missing));
    assert!(denials(&zone, &missing).has_nxname(name("a.b.example").as_name()));
    assert!(!denials(&zone, &missing).has_nxname(name("b.example").as_name()));
    let typed = "a.example. NSEC \\000.a.example. AAAA RRSIG NSEC";
    check("example", typed, "a.example", Asked::NoData(Rtype::A), Ok(Proved::Fully));
    check("example", typed, "a.example", Asked::NoData(Rtype::AAAA), Err(Unproved::Exists));
    check("example", typed, "a.example", Asked::NameError, Err(Unproved::Exists));
    // Something that is there cannot be missing.
    let both = "a.example. NSEC \\000.a.example. A RRSIG NSEC NXNAME";
    check("example", both, "a.example", Asked::NameError, Err(Unproved::Exists));
    let hashed = "35mthgpgcu1qg68fab165klnsnk3dpvl.example. NSEC3 1 0 12 aabbccdd 35mthgpgcu1qg68fab165klnsnk3dpvm RRSIG NXNAME";
    check("example", hashed, "a.example", Asked::NameError, Ok(Proved::Fully));
}

#[test]
fn hashes_that_are_not_known_prove_nothing_and_chains_are_not_mixed() {
    let used = &chosen(HASHES, &["0p9m", "b4um", "35mt"]);
    let asked = |text: &str, expect| check("example", text, "a.c.x.w.example", Asked::NameError, expect);
    asked(&used.replace("NSEC3 1 1 12", "NSEC3 2 1 12"), Err(Unproved::Missing));
    asked(&used.replace("NSEC3 1 1 12", "NSEC3 1 3 12"), Err(Unproved::Missing));
    asked(&used.replace("NSEC3 1 1 12", "NSEC3 1 128 12"), Err(Unproved::Missing));
    asked(&used.replacen("NSEC3 1 1 12", "NSEC3 1 1 11", 1), Err(Unproved::MixedParameters));
    asked(&used.replacen("aabbccdd", "aabbccde", 1), Err(Unproved::MixedParameters));
    // RFC 9276 §3.2: not looked at, and so insecure.
    asked(&used.replace("NSEC3 1 1 12", "NSEC3 1 1 50"), Err(Unproved::Missing));
    asked(&used.replace("NSEC3 1 1 12", "NSEC3 1 1 51"), Ok(Proved::TooManyIterations));
    assert_eq!(Proved::TooManyIterations.ede(), Some(EdeCode::UNSUPPORTED_NSEC3_ITERATIONS));
    let many = used.replace("NSEC3 1 1 12", "NSEC3 1 1 51");
    check_delegation("example", &many, "c.example", Ok(Delegation::TooManyIterations));
    check("example", &many, "a.z.w.example", Asked::Expansion(2), Ok(Proved::TooManyIterations));
    check("example", &many, "ns1.example", Asked::NoData(Rtype::A), Ok(Proved::TooManyIterations));
    // A record of another zone, and one below a hash.
    asked(&used.replace(".example. NSEC3", ".other. NSEC3"), Err(Unproved::Missing));
    asked(&used.replace(".example. NSEC3", ".x.example. NSEC3"), Err(Unproved::Missing));
}

#[test]
fn long_names_cost_no_more_hashes_than_allowed() {
    let (zone, all) = (name("example"), rows(HASHES));
    let denials = denials(&zone, &all);
    for depth in 1..120 {
        let long = name(&format!("{}x.w.example", "a.".repeat(depth)));
        let mut budget = budget();
        let found = denials.name_error(long.as_name(), &mut budget);
        let spent = 100 - budget.left() as usize;
        // Those of the search, and one for the wildcard.
        assert!(spent <= HASHES_PER_SEARCH_MAX + 1, "{depth}: {spent}");
        assert_eq!(found, Ok(Proved::OptOut), "{depth}: x.w.example is near the apex");
    }
    // The closest encloser is far from both ends.
    let apart: Vec<Row> = rows(&HASHES.replace("NSEC3 1 1", "NSEC3 1 0"));
    let zone = name("example");
    let middle = name(&format!("{}b.example", "a.".repeat(100)));
    let records = self::denials(&zone, &apart[..1]);
    let found = records.name_error(middle.as_name(), &mut budget());
    assert_eq!(found, Err(Unproved::TooMuchWork));
    // What the caller allows counts as well.
    let mut few = HashBudget::new(ITERATIONS_MAX, 2);
    let found = denials.name_error(name("a.c.x.w.example").as_name(), &mut few);
    assert_eq!((found, few.left()), (Err(Unproved::TooMuchWork), 0));
}

#[test]
fn only_what_was_signed_denies() {
    const NOW: u32 = 1_795_000_000;
    let key = SecretKey::generate(Algorithm(13), KeySize::Bits2048).expect("a key");
    let dnskey = key.dnskey(flags_of(false));
    let dnskey = Dnskey::parse(&dnskey).expect("a DNSKEY");
    let zone = name("example");
    let by = SignedBy {
        key: &key,
        tag: dnskey.tag(),
        zone: zone.as_name(),
        ttl: 60,
        inception: NOW,
        expiration: NOW + 60,
    };
    let row = |text| rows(text).pop().expect("a record");
    let rrset = |owner: &NameBuf, rdata: &[u8]| Rrset::of(owner.as_name(), Rtype::NSEC, [rdata]);
    let denied = |owner: &NameBuf, rdata: &[u8], rrsig: &[u8], qname: &str| {
        let Ok(rrset) = rrset(owner, rdata) else { return false };
        let verified = verify_rrset(&rrset, [rrsig], zone.as_name(), &[dnskey], NOW, &mut Budget::new(8));
        let Ok(verified) = verified else { return false };
        let denials = Denials::new(zone.as_name(), DenialRecord::of(&verified));
        denials.no_data(name(qname).as_name(), Rtype::MX, &mut budget()) == Ok(Proved::Fully)
    };
    let nsec = row("ns1.example. NSEC ns2.example. A RRSIG NSEC");
    let rrsig = rrset(&nsec.owner, &nsec.rdata).expect("an NSEC").sign(&by).expect("a signature");
    assert!(denied(&nsec.owner, &nsec.rdata, &rrsig, "ns1.example"));
    assert!(!denied(&name("ns0.example"), &nsec.rdata, &rrsig, "ns0.example"));
    for i in 0..nsec.rdata.len() {
        let mut changed = nsec.rdata.clone();
        // Not the letter case alone, which does not count in names.
        changed[i] ^= 0x01;
        assert!(!denied(&nsec.owner, &changed, &rrsig, "ns1.example"), "octet {i} of the data");
    }
    // Names are signed in lower case.
    for i in (0..rrsig.len()).filter(|i| !(19..26).contains(i)) {
        let mut changed = rrsig.clone();
        changed[i] ^= 0x20;
        assert!(!denied(&nsec.owner, &nsec.rdata, &changed, "ns1.example"), "octet {i} of the signature");
    }
    // The NSEC of a wildcard is that of no other name, although its signature is good there.
    let wild = row("*.w.example. NSEC x.w.example. A RRSIG NSEC");
    let rrsig = rrset(&wild.owner, &wild.rdata).expect("an NSEC").sign(&by).expect("a signature");
    assert!(denied(&wild.owner, &wild.rdata, &rrsig, "*.w.example"));
    assert!(!denied(&name("a.w.example"), &wild.rdata, &rrsig, "a.w.example"));
}
