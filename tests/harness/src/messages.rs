//! What every message, name and record must keep to. The tests of `wire` run the same functions.

use wire::{
    Folded, HashKey, Malformed, Message, Name, NameBuf, Query, Rtype, Section, normalise, query::cookie_only,
    rdata, truncate,
};

const KEY: HashKey = HashKey::new([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);

/// A stranger's datagram.
pub fn query(bytes: &[u8]) {
    let parsed = Query::parse(bytes);
    if let Some((header, edns)) = cookie_only(bytes) {
        assert_eq!(parsed.err(), Some(Malformed::Question));
        assert_eq!(header.questions, 0);
        assert!(edns.options().count() > 0);
    }
    let Ok(query) = parsed else { return };
    let message = Message::parse(bytes).expect("a query is a message");
    assert_eq!(message.edns, query.edns);
    assert_eq!(message.question.map(|question| question.qtype), Some(query.question.qtype));
    let qname = query.question.qname;
    let again = Name::parse(query.question_bytes()).expect("the question begins with its name").0;
    assert_eq!(again.as_bytes(), qname.as_bytes());
    let mut folded = Folded::root();
    assert_eq!(KEY.fold(qname, &mut folded), KEY.hash_name(qname));
    assert_eq!(KEY.hash_name(folded.as_name()), KEY.hash_name(qname));
    assert_eq!(folded.as_bytes(), qname.to_folded().as_bytes());
    assert!(qname == folded.as_name());
    assert!(qname.is_at_or_below(qname.suffix(1)));
    if let Some(edns) = query.edns {
        let octets: usize = edns.options().map(|option| 4 + option.data.len()).sum();
        assert!(octets <= bytes.len());
    }
}

/// What an upstream sends.
pub fn reply(bytes: &[u8]) {
    let Ok(message) = Message::parse(bytes) else { return };
    let mut kept = 0;
    let mut shown = String::new();
    for record in message.records() {
        let owner = record.owner.expand().expect("owners are checked");
        assert_eq!(Name::parse(owner.as_name().as_bytes()).map(|(_, rest)| rest.len()), Ok(0));
        assert!(record.end() <= bytes.len());
        use std::fmt::Write;
        shown.clear();
        write!(shown, "{record}").expect("a string takes all");
        let range = record.rdata_at..record.end();
        if rdata::check(record.rtype, bytes, range.clone()).is_ok() {
            let mut plain = Vec::new();
            rdata::write_plain(record.rtype, bytes, range.clone(), &mut plain).expect("checked");
            let text = rdata::display(record.rtype, bytes, range).to_string();
            check_text(record.rtype, &text, &plain);
        }
        kept += usize::from(!matches!(record.rtype, Rtype::OPT | Rtype::TSIG));
    }
    let (mut out, mut ttls) = ([0; 4096], [0; 512]);
    if let Ok(done) = normalise(&message, &mut out, &mut ttls) {
        let copy = Message::parse(&out[..done.len]).expect("a message");
        assert_eq!(done.ttl_count, kept);
        assert_eq!(done.body_at, copy.records_at());
        let mut originals = message.records().filter(|it| !matches!(it.rtype, Rtype::OPT | Rtype::TSIG));
        for (record, ttl) in copy.records().zip(&ttls) {
            let original = originals.next().expect("no record is made up");
            assert_eq!(record.ttl_at, done.body_at + usize::from(*ttl));
            assert_eq!(record.ttl(), original.ttl());
            assert_eq!((record.rtype, record.class), (original.rtype, original.class));
            assert!(record.owner.expand() == original.owner.expand());
        }
        assert!(originals.next().is_none());
        // What is normal stays as it is.
        let mut again = [0; 4096];
        let twice = normalise(&copy, &mut again, &mut ttls).expect("it fitted before");
        assert_eq!(out[..done.len], again[..twice.len]);
    }
    let mut cut = bytes.to_vec();
    let len = truncate(&mut cut);
    let cut = Message::parse(&cut[..len]).expect("a message");
    assert_eq!(cut.edns.is_some(), message.edns.is_some());
    assert!(cut.records().all(|record| record.section == Section::Additional));
}

/// A name in text and on the wire.
pub fn name(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(name) = NameBuf::from_text(text)
    {
        check_name(name.as_name());
        let origin = NameBuf::from_text("example.org").expect("a name");
        if let Ok(below) = NameBuf::from_text_below(text, origin.as_name()) {
            assert!(below == name || below.as_name().is_at_or_below(origin.as_name()));
        }
    }
    if let Ok((name, rest)) = Name::parse(bytes) {
        assert_eq!(name.len() + rest.len(), bytes.len());
        check_name(name);
        let labels: usize = name.labels().map(|label| 1 + label.len()).sum();
        assert_eq!(labels + 1, name.len());
    }
}

fn check_name(name: Name<'_>) {
    let text = name.to_string();
    let again = NameBuf::from_text(&text).expect("what is written can be read");
    assert_eq!(again.as_name().as_bytes(), name.as_bytes(), "{text}");
    assert_eq!(KEY.hash_name(name), KEY.hash_name(name.to_folded().as_name()));
}

/// Record data in text: two octets of type, then the text.
pub fn rdata_text(bytes: &[u8]) {
    let Some((&number, text)) = bytes.split_first_chunk::<2>() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let rtype = Rtype(u16::from_be_bytes(number));
    let origin = NameBuf::from_text("example.org").expect("a name");
    let mut octets = Vec::new();
    match rdata::parse_text(rtype, text, Some(origin.as_name()), &mut octets) {
        Ok(()) => {
            assert_eq!(rdata::check(rtype, &octets, 0..octets.len()), Ok(()));
            check_text(rtype, &rdata::display(rtype, &octets, 0..octets.len()).to_string(), &octets);
            let (mut once, mut twice) = (Vec::new(), Vec::new());
            rdata::write_canonical(rtype, &octets, 0..octets.len(), &mut once).expect("checked");
            rdata::write_canonical(rtype, &once, 0..once.len(), &mut twice).expect("canonical form is data");
            assert_eq!(once, twice);
        }
        Err(error) => {
            assert!(error.at <= text.len());
            assert!(octets.is_empty());
            assert!(!error.to_string().is_empty());
        }
    }
}

/// Data that was shown reads back as the same octets.
fn check_text(rtype: Rtype, text: &str, octets: &[u8]) {
    let mut again = Vec::new();
    let read = rdata::parse_text(rtype, text, None, &mut again);
    assert_eq!(read, Ok(()), "{rtype} {text}");
    assert_eq!(again, octets, "{rtype} {text}");
}
