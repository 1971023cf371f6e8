//! Record data as text, both ways.

use std::path::Path;

use wire::{Name, NameBuf, Rtype, rdata, rtypes};

struct Vector {
    place: String,
    rtype: Rtype,
    text: String,
    octets: Vec<u8>,
    shown: String,
}

/// Reads `tests/vectors/*.txt`: type ¦ text ¦ octets in hexadecimal ¦ as shown, if that differs
/// from the text.
fn vectors() -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut vectors = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is in the repository") {
        let path = entry.expect("the folder can be read").path();
        let content = std::fs::read_to_string(&path).expect("vectors are text");
        for (i, line) in content.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let mut columns = line.split('¦').map(str::trim);
            let mut column = || columns.next().expect("three columns");
            let (rtype, text, hex) = (column(), column(), column());
            vectors.push(Vector {
                place: format!("{}:{}", path.display(), i + 1),
                rtype: rtype.parse().expect("a type"),
                text: text.to_owned(),
                octets: (0..hex.len() / 2)
                    .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hexadecimal"))
                    .collect(),
                shown: columns.next().unwrap_or(text).to_owned(),
            });
        }
    }
    vectors
}

fn parse(rtype: Rtype, text: &str) -> Result<Vec<u8>, wire::TextError> {
    let mut octets = Vec::new();
    rdata::parse_text(rtype, text, None, &mut octets).map(|()| octets)
}

#[test]
fn every_vector_is_read_shown_and_read_again() {
    for Vector { place, rtype, text, octets, shown } in vectors() {
        assert_eq!(parse(rtype, &text).as_ref(), Ok(&octets), "{place}: {text}");
        assert_eq!(rdata::display(rtype, &octets, 0..octets.len()).to_string(), shown, "{place}");
        assert_eq!(parse(rtype, &shown).as_ref(), Ok(&octets), "{place}: {shown}");
    }
}

#[test]
fn every_type_with_a_layout_has_a_vector() {
    let vectors = vectors();
    let missing: Vec<_> = rtypes::TABLE
        .iter()
        .filter(|known| known.fields.is_some() && !vectors.iter().any(|vector| vector.rtype == known.rtype))
        .map(|known| known.mnemonic)
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn data_cut_short_is_shown_as_octets() {
    for Vector { place, rtype, octets, .. } in vectors() {
        for len in 0..octets.len() {
            let data = &octets[..len];
            let shown = rdata::display(rtype, data, 0..len).to_string();
            let is_sound = rdata::check(rtype, data, 0..len).is_ok();
            if is_sound {
                assert_eq!(parse(rtype, &shown).as_deref(), Ok(data), "{place}: {shown}");
            } else {
                assert!(shown.starts_with("\\# "), "{place}: {shown}");
                assert!(parse(rtype, &shown).is_err(), "{place}: {shown}");
            }
        }
    }
}

#[test]
fn the_table_is_sorted_and_found_by_number_and_by_name() {
    assert!(rtypes::TABLE.is_sorted_by(|a, b| a.rtype < b.rtype));
    for known in rtypes::TABLE {
        assert_eq!(rtypes::describe(known.rtype).map(|found| found.mnemonic), Some(known.mnemonic));
        assert_eq!(known.mnemonic.to_lowercase().parse(), Ok(known.rtype));
        assert_eq!(known.rtype.to_string(), known.mnemonic);
        assert_eq!(format!("type{}", known.rtype.0).parse(), Ok(known.rtype));
    }
    for number in (0..=u16::MAX).filter(|number| rtypes::TABLE.iter().all(|known| known.rtype.0 != *number)) {
        assert!(rtypes::describe(Rtype(number)).is_none());
        assert_eq!(format!("TYPE{number}").parse(), Ok(Rtype(number)));
        assert_eq!(Rtype(number).to_string(), format!("TYPE{number}"));
    }
    for bad in ["", "TYPE", "TYPE65536", "TYPE-1", "TYPE+1", "1", "AA"] {
        assert!(bad.parse::<Rtype>().is_err(), "{bad}");
    }
}

#[test]
fn mistakes_are_pointed_at() {
    fn check(rtype: Rtype, text: &str, at: usize, what: &str) {
        let error = parse(rtype, text).expect_err(text);
        assert_eq!((error.at, error.what.as_str()), (at, what), "{text}: {error}");
    }
    check(Rtype::A, "192.0.2", 0, "192.0.2");
    check(Rtype::A, "", 0, "");
    check(Rtype::A, "192.0.2.1 x", 10, "x");
    check(Rtype::MX, "10", 2, "");
    check(Rtype::MX, "65536 a.", 0, "65536");
    check(Rtype::MX, "10 relative", 3, "relative");
    check(Rtype::MX, "+1 a.", 0, "+1");
    check(Rtype::TXT, "\"open", 5, "");
    check(Rtype::DS, "1 8 2 ABC", 6, "ABC");
    check(Rtype::DS, "1 8 2", 5, "");
    check(Rtype::RRSIG, "A 8 2 60 20230229000000 20230101000000 1 . AAAA", 9, "20230229000000");
    check(Rtype::SVCB, "1 . alpn=h2 alpn=h3", 12, "alpn=h3");
    check(Rtype::SVCB, "1 . port=65536", 9, "65536");
    check(Rtype::HTTPS, "1 . key07=x", 4, "key07=x");
    check(Rtype::NULL, "abc", 0, "abc");
    check(Rtype::A, "\\# 3 000102", 0, "A");
    check(Rtype::A, "\\# 4 000102", 3, "4");
    check(Rtype::OPT, "x", 0, "x");
}

#[test]
fn relative_names_take_the_origin() {
    let origin = NameBuf::from_text("example.org.").expect("a name");
    let mut octets = Vec::new();
    rdata::parse_text(Rtype::NS, "ns", Some(origin.as_name()), &mut octets).expect("a name");
    assert_eq!(
        Name::parse(&octets).expect("a name").0,
        NameBuf::from_text("ns.example.org").expect("a name").as_name()
    );
}

#[test]
fn failed_text_leaves_nothing_behind() {
    let mut octets = vec![1, 2];
    assert!(rdata::parse_text(Rtype::MX, "10 a. b.", None, &mut octets).is_err());
    assert_eq!(octets, [1, 2]);
}

#[test]
fn the_canonical_form_lowers_only_listed_names() {
    fn check(rtype: Rtype, text: &str, canonical: &str) {
        let octets = parse(rtype, text).expect(text);
        let mut out = Vec::new();
        rdata::write_canonical(rtype, &octets, 0..octets.len(), &mut out).expect(text);
        assert_eq!(rdata::display(rtype, &out, 0..out.len()).to_string(), canonical);
    }
    check(Rtype::MX, "10 Mail.Example.ORG.", "10 mail.example.org.");
    check(Rtype::SOA, "A. B. 1 2 3 4 5", "a. b. 1 2 3 4 5");
    check(Rtype::SRV, "1 2 3 A.B.", "1 2 3 a.b.");
    check(Rtype::NAPTR, "1 2 \"S\" \"X\" \"\" A.B.", "1 2 \"S\" \"X\" \"\" a.b.");
    check(Rtype::A6, "64 ::1 A.B.", "64 ::1 a.b.");
    check(
        Rtype::RRSIG,
        "A 8 2 60 1 0 1 Example.ORG. AAAA",
        "A 8 2 60 19700101000001 19700101000000 1 example.org. AAAA",
    );
    // RFC 6840 §5.1.
    check(Rtype::NSEC, "Host.Example.ORG. A", "Host.Example.ORG. A");
    check(Rtype::TXT, "\"Text\"", "\"Text\"");
    check(Rtype::SVCB, "1 Host.Example.ORG.", "1 Host.Example.ORG.");
}

#[test]
fn compressed_names_are_written_out() {
    // A question for example.org, then an MX that points to it.
    let message = b"\0\0\x80\0\0\x01\0\x01\0\0\0\0\x07example\x03org\0\0\x0f\0\x01\xc0\x0c\0\x0f\0\x01\0\0\0\x3c\0\x09\0\x0a\x04Mail\xc0\x0c";
    let parsed = wire::Message::parse(message).expect("a message");
    let record = parsed.records().next().expect("a record");
    assert_eq!(record.to_string(), "example.org. 60 IN MX 10 Mail.example.org.");
    let mut out = Vec::new();
    rdata::write_plain(record.rtype, message, record.rdata_at..record.end(), &mut out).expect("sound");
    assert_eq!(out, b"\0\x0a\x04Mail\x07example\x03org\0");
}
