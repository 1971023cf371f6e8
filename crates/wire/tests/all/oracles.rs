//! Other DNS libraries read the same messages and the same text as we do.
//!
//! Where `domain` accepts a message that we refuse, the reason is one of these, each asserted:
//! - more than one question: nobody sends them (RFC 9619), our callers need not think about them;
//! - a compressed name in the question: nothing stands before it that it could point to;
//! - a pointer into the header, or one that does not lead before the labels it ends (RFC 1035
//!   §4.1.4: "a prior occurrence"): `domain` only asks that it points before itself;
//! - a second OPT, one outside the additional section, not at the root, or with an option that
//!   overruns (RFC 6891 §6.1.1);
//! - octets after the last record.
//!
//! `hickory-proto` reads all data strictly, so it refuses far more than we do; what it accepts, we
//! accept, except for the same reasons.

use crate::support;

use std::path::Path;

use domain::base::iana::Rtype as DomainRtype;
use domain::base::rdata::UnknownRecordData;
use domain::base::{Message as DomainMessage, ToName};
use domain::zonefile::inplace::{Entry, Zonefile};
use proptest::prelude::*;
use wire::{Header, Malformed, Message, Query, Rtype, rdata};

use support::{model, mutated};

/// A record reduced to what both sides know: owner, type, class, TTL, octets of data.
type Flat = (Vec<u8>, u16, u16, u32, Vec<u8>);

fn ours(bytes: &[u8]) -> Result<Vec<Flat>, Malformed> {
    let message = Message::parse(bytes)?;
    Ok(message
        .records()
        .map(|record| {
            let owner = record.owner.expand().expect("owners are checked");
            let owner = support::folded(owner.as_name());
            (owner, record.rtype.0, record.class.0, record.ttl_raw, record.rdata.to_vec())
        })
        .collect())
}

/// What `domain` makes of a message; also where its last record ends.
fn domains(bytes: &[u8]) -> Option<(Vec<Flat>, usize)> {
    let message = DomainMessage::from_octets(bytes).ok()?;
    let mut question = message.question();
    for entry in &mut question {
        entry.ok()?;
    }
    let mut flat = Vec::new();
    let mut section = question.answer().ok()?;
    loop {
        for record in &mut section {
            let record = record.ok()?;
            let owner = record.owner().to_vec().as_slice().to_ascii_lowercase();
            let (rtype, class, ttl) =
                (record.rtype().to_int(), record.class().to_int(), record.ttl().as_secs());
            let data = record.into_record::<UnknownRecordData<_>>().ok()??;
            flat.push((owner, rtype, class, ttl, data.data().data().to_vec()));
        }
        let at = section.pos();
        match section.next_section().ok()? {
            Some(next) => section = next,
            None => return Some((flat, at)),
        }
    }
}

/// Returns whether the name at `at` has a pointer of the kinds that only we refuse, and where it
/// ends.
fn odd_pointer(bytes: &[u8], mut at: usize) -> Option<(bool, usize)> {
    let mut end = None;
    let mut row_at = at;
    for _ in 0..300 {
        let len = usize::from(*bytes.get(at)?);
        match len {
            0 => return Some((false, end.unwrap_or(at + 1))),
            1..=63 => at += 1 + len,
            _ => {
                let target = ((len & 0x3f) << 8) | usize::from(*bytes.get(at + 1)?);
                end.get_or_insert(at + 2);
                if target < Header::LEN || target >= row_at {
                    return Some((true, end?));
                }
                (at, row_at) = (target, target);
            }
        }
    }
    None
}

/// Returns whether some owner has such a pointer, or the question is compressed.
fn has_odd_pointer(bytes: &[u8]) -> bool {
    let Some(header) = Header::parse(bytes) else { return false };
    let mut at = Header::LEN;
    for _ in 0..header.questions {
        let Some((is_odd, end)) = odd_pointer(bytes, at) else { return false };
        if is_odd || bytes[at..end].last() != Some(&0) || wire::Name::parse(&bytes[at..]).is_err() {
            return true;
        }
        at = end + 4;
    }
    let records =
        usize::from(header.answers) + usize::from(header.authorities) + usize::from(header.additionals);
    for _ in 0..records {
        let Some((is_odd, end)) = odd_pointer(bytes, at) else { return false };
        if is_odd {
            return true;
        }
        let Some(&[h, l]) = bytes.get(end + 8..end + 10).and_then(|len| len.first_chunk()) else {
            return false;
        };
        at = end + 10 + usize::from(u16::from_be_bytes([h, l]));
    }
    false
}

/// Asserts that our refusal of what somebody else accepts is one of the known ones.
fn assert_justified(error: Malformed, bytes: &[u8]) {
    let header = Header::parse(bytes).expect("others read a header");
    match error {
        Malformed::Question => assert!(header.questions > 1),
        Malformed::Name => assert!(has_odd_pointer(bytes), "{bytes:02x?}"),
        Malformed::Edns | Malformed::Trailing => {}
        Malformed::Header | Malformed::Record | Malformed::Response | Malformed::Opcode => {
            panic!("refused without reason: {error:?} {bytes:02x?}");
        }
    }
}

fn compare_with_domain(bytes: &[u8]) {
    match (ours(bytes), domains(bytes)) {
        (Ok(ours), Some((theirs, end))) => {
            assert_eq!(ours, theirs);
            assert_eq!(end, bytes.len());
        }
        (Ok(_), None) => panic!("only we accept {bytes:02x?}"),
        (Err(error), Some(_)) => assert_justified(error, bytes),
        (Err(_), None) => {}
    }
}

fn compare_with_hickory(bytes: &[u8]) {
    let Ok(theirs) = hickory_proto::op::Message::from_vec(bytes) else { return };
    let message = match Message::parse(bytes) {
        Ok(message) => message,
        Err(error) => return assert_justified(error, bytes),
    };
    assert_eq!(theirs.metadata.id, message.header.id);
    assert_eq!(theirs.queries.len(), usize::from(message.header.questions));
    if let (Some(question), [query]) = (message.question, theirs.queries.as_slice()) {
        assert_eq!(u16::from(query.query_type()), question.qtype.0);
        assert_eq!(query.name().iter().collect::<Vec<_>>(), question.qname.labels().collect::<Vec<_>>());
    }
    assert_eq!(theirs.edns.is_some(), message.edns.is_some());
    if let (Some(theirs), Some(ours)) = (&theirs.edns, &message.edns) {
        // RFC 6891 §6.2.3: less than 512 means 512; they say so at once, we where it is used.
        assert_eq!(theirs.max_payload(), ours.udp_size.max(512));
        assert_eq!(theirs.flags().dnssec_ok, ours.wants_dnssec());
    }
    // They keep OPT and TSIG apart from the other records.
    let ours: Vec<_> = message
        .records()
        .filter(|record| !matches!(record.rtype, Rtype::OPT | Rtype::TSIG))
        .map(|record| {
            let owner = record.owner.expand().expect("owners are checked");
            let labels: Vec<Vec<u8>> = owner.as_name().labels().map(<[u8]>::to_vec).collect();
            (labels, record.rtype.0, record.ttl().seconds())
        })
        .collect();
    let theirs: Vec<_> = theirs
        .all_sections()
        .map(|record| {
            let labels: Vec<Vec<u8>> = record.name.iter().map(<[u8]>::to_vec).collect();
            (
                labels,
                u16::from(record.record_type()),
                if record.ttl > i32::MAX as u32 { 0 } else { record.ttl },
            )
        })
        .collect();
    assert_eq!(ours, theirs);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn others_read_what_we_write(model in model()) {
        let bytes = model.write();
        compare_with_domain(&bytes);
        prop_assert!(domains(&bytes).is_some());
        compare_with_hickory(&bytes);
    }

    #[test]
    fn others_agree_about_damaged_messages(bytes in mutated()) {
        compare_with_domain(&bytes);
        compare_with_hickory(&bytes);
    }

    #[test]
    fn others_accept_the_queries_we_accept(bytes in mutated()) {
        let mut bytes = bytes;
        if let Some(flags) = bytes.get_mut(2) {
            *flags &= 0x07;
        }
        if let Ok(query) = Query::parse(&bytes) {
            let message = DomainMessage::from_octets(&bytes).expect("a header");
            let question = message.sole_question().expect("one question");
            let qname = question.qname().to_vec();
            prop_assert_eq!(qname.as_slice(), query.question.qname.as_bytes());
            prop_assert_eq!(question.qtype().to_int(), query.question.qtype.0);
            prop_assert_eq!(question.qclass().to_int(), query.question.qclass.0);
            let theirs = message.opt().map(|opt| (opt.udp_payload_size(), opt.dnssec_ok(), opt.version()));
            let ours = query.edns.map(|edns| (edns.udp_size, edns.wants_dnssec(), edns.version));
            prop_assert_eq!(theirs, ours);
        }
    }
}

/// Types whose data `domain` reads from text; the others it refuses or has no notion of.
fn is_known_to_domain(rtype: Rtype) -> bool {
    use wire::Rtype as R;
    matches!(
        rtype,
        R::A | R::NS
            | R::MD
            | R::MF
            | R::CNAME
            | R::SOA
            | R::MB
            | R::MG
            | R::MR
            | R::PTR
            | R::HINFO
            | R::MINFO
            | R::MX
            | R::TXT
            | R::RP
            | R::AAAA
            | R::SRV
            | R::NAPTR
            | R::DNAME
            | R::DS
            | R::SSHFP
            | R::IPSECKEY
            | R::RRSIG
            | R::NSEC
            | R::DNSKEY
            | R::NSEC3
            | R::NSEC3PARAM
            | R::TLSA
            | R::CDS
            | R::CDNSKEY
            | R::OPENPGPKEY
            | R::ZONEMD
            | R::SVCB
            | R::HTTPS
            | R::CAA
    )
}

/// Reads one record with `domain` and returns its data in wire form.
fn domains_data(rtype: Rtype, text: &str) -> Result<Vec<u8>, String> {
    use domain::rdata::ZoneRecordData;
    let mut file = Zonefile::from(format!("example.org. 60 IN {rtype} {text}\n").as_str());
    match file.next_entry().map_err(|error| error.to_string())? {
        Some(Entry::Record(record)) => {
            let mut octets = Vec::new();
            assert_eq!(record.rtype(), DomainRtype::from_int(rtype.0));
            let data: &ZoneRecordData<_, _> = record.data();
            domain::base::rdata::ComposeRecordData::compose_rdata(data, &mut octets)
                .expect("a vector takes all");
            Ok(octets)
        }
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn numbers_and_names_of_types_are_those_of_domain() {
    // Numbers of private use mean what those who use them agree on (RFC 6895 §3.1): no other
    // library names them.
    for number in 1..65280 {
        let theirs = DomainRtype::from_int(number).to_mnemonic().map(String::from_utf8_lossy);
        // IANA writes it with a hyphen.
        let theirs = theirs.map(|name| if name == "NSAPPTR" { "NSAP-PTR".into() } else { name });
        let ours = wire::rtypes::describe(Rtype(number)).map(|known| known.mnemonic);
        assert_eq!(ours, theirs.as_deref(), "{number}");
    }
}

/// What `domain` does not read, by the words of its own error.
fn is_limit_of_domain(error: &str) -> bool {
    // BIND's units for the times of a SOA; mnemonics of algorithms (RFC 4034 §2.2); commas in
    // protocols (RFC 9460 A.1).
    ["expected decimal number", "expected SecurityAlgorithm", "does not allow escape sequences in alpn"]
        .iter()
        .any(|limit| error.ends_with(limit))
}

#[test]
fn domain_reads_the_text_we_write_and_we_read_what_it_reads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut compared = 0;
    let mut disagreements = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is in the repository") {
        let content = std::fs::read_to_string(entry.expect("an entry").path()).expect("vectors are text");
        for line in content.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<_> = line.split('¦').map(str::trim).collect();
            let rtype: Rtype = columns[0].parse().expect("a type");
            if !is_known_to_domain(rtype) {
                continue;
            }
            let mut ours = Vec::new();
            rdata::parse_text(rtype, columns[1], None, &mut ours).expect("vectors are sound");
            let shown = rdata::display(rtype, &ours, 0..ours.len()).to_string();
            for text in [columns[1], shown.as_str()] {
                compared += 1;
                match domains_data(rtype, text) {
                    Ok(theirs) if theirs == ours => {}
                    Err(error) if is_limit_of_domain(&error) => {}
                    other => disagreements.push(format!("{rtype} {text}: {other:?}")),
                }
            }
        }
    }
    assert!(compared > 80, "{compared}");
    assert_eq!(disagreements, Vec::<String>::new());
}
