//! What is stored of an answer, and by which key: as Unbound does it, so that both can use one
//! Redis.
//!
//! A key is the SHA-256 of name, type, class and secret, in hexadecimal digits. A value is a whole
//! message with its signatures and proofs, when it was written, and when it ends: eight octets
//! each, in seconds since 1970.

use aws_lc_rs::digest::{SHA256, digest};
use plan::Secret;
use resolver::Resolution;
use wire::message::records;
use wire::{Class, Flags, Header, Message, Name, Question, Rcode, Rtype};

/// Octets of a key.
const KEY_OCTETS: usize = 64;
/// Octets of the times behind a message.
const TIMES_OCTETS: usize = 16;
/// Octets of the longest value.
pub(crate) const VALUE_OCTETS_MAX: usize = wire::MESSAGE_OCTETS_MAX + TIMES_OCTETS;

/// The key of a question.
pub(crate) type Key = [u8; KEY_OCTETS];

/// Returns the key of a question, whose name is in lower case.
pub(crate) fn key(qname: Name<'_>, qtype: Rtype, secret: &Secret) -> Key {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let (qtype, qclass) = (qtype.0.to_be_bytes(), Class::IN.0.to_be_bytes());
    let hash = digest(&SHA256, &[qname.as_bytes(), &qtype, &qclass, secret.reveal()].concat());
    let mut key = [0; KEY_OCTETS];
    for (two, octet) in key.chunks_exact_mut(2).zip(hash.as_ref()) {
        let digits = [octet >> 4, octet & 15].map(|digit| DIGITS.get(usize::from(digit)).copied());
        two.copy_from_slice(&digits.map(Option::unwrap_or_default));
    }
    key
}

/// Writes an answer into `out`, which has room for [`VALUE_OCTETS_MAX`]; returns the octets of the
/// value and for how many seconds it is good. `None`: it is not worth being stored.
pub(crate) fn write(
    resolution: &Resolution,
    question: &Question<'_>,
    unix_seconds: u64,
    out: &mut [u8],
) -> Option<(usize, u32)> {
    if !matches!(resolution.rcode, Rcode::NOERROR | Rcode::NXDOMAIN | Rcode::YXDOMAIN) {
        return None;
    }
    let ttl = resolution.records().map(|record| record.ttl().seconds()).min().filter(|&ttl| ttl > 0)?;
    let message = out.get_mut(..wire::MESSAGE_OCTETS_MAX)?;
    let octets = resolution.write(question, true, message).ok()?;
    let ends_at = unix_seconds + u64::from(ttl);
    let times = [unix_seconds.to_be_bytes(), ends_at.to_be_bytes()].concat();
    out.get_mut(octets..octets + TIMES_OCTETS)?.copy_from_slice(&times);
    Some((octets + TIMES_OCTETS, ttl))
}

/// Returns when a value was written, in seconds since 1970.
pub(crate) fn written_at(value: &[u8]) -> Option<u64> {
    let times = value.last_chunk::<TIMES_OCTETS>()?;
    times.first_chunk().map(|octets| u64::from_be_bytes(*octets))
}

/// Makes of a value the reply to a question, with what is left of its TTLs; returns its octets.
/// `None`: the value has ended, or is none.
pub(crate) fn read<'v>(value: &'v mut [u8], question: &Question<'_>, unix_seconds: u64) -> Option<&'v [u8]> {
    let end = value.len().checked_sub(TIMES_OCTETS)?;
    let (octets, times) = value.split_at_mut_checked(end)?;
    let (written, ends) = times.split_first_chunk::<8>()?;
    let written_at = u64::from_be_bytes(*written);
    let ends_at = u64::from_be_bytes(ends.try_into().ok()?);
    // Whoever wrote it may have another clock; TTLs have their bounds in any case.
    let age = unix_seconds.saturating_sub(written_at);
    if ends_at <= unix_seconds || written_at > ends_at {
        return None;
    }
    let message = Message::parse(octets).ok()?;
    let asked = message.question?;
    let is_it =
        asked.qname == question.qname && (asked.qtype, asked.qclass) == (question.qtype, question.qclass);
    let rcode = message.header.flags.rcode();
    if !is_it || !matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN | Rcode::YXDOMAIN) {
        return None;
    }
    let records_at = message.records().next().map(|record| record.at);
    let header = message.header;
    if let Some(at) = records_at {
        age_records(octets, at, &header, u32::try_from(age).unwrap_or(u32::MAX))?;
    }
    // What others thought of it does not count.
    let flags = Flags::QR.with(Flags::RD).with(Flags::RA).with_rcode(rcode);
    octets.get_mut(2..4)?.copy_from_slice(&flags.0.to_be_bytes());
    Some(octets)
}

/// Takes seconds off the TTLs of the records that begin at `at`; `None` if one has ended.
fn age_records(octets: &mut [u8], at: usize, header: &Header, age: u32) -> Option<()> {
    let ttls: Vec<(usize, u32)> = records(octets, at, header)
        .map_while(Result::ok)
        .filter(|record| record.rtype != Rtype::OPT)
        .map(|record| (record.ttl_at, record.ttl().seconds()))
        .collect();
    for (at, ttl) in ttls {
        let left = ttl.checked_sub(age).filter(|&left| left > 0 || age == 0)?;
        octets.get_mut(at..at + 4)?.copy_from_slice(&left.to_be_bytes());
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::{NameBuf, Section, Ttl, Writer};

    const NOW: u64 = 1_800_000_000;

    fn name() -> NameBuf {
        NameBuf::from_text("www.example.org").expect("a name")
    }

    fn question(name: &NameBuf) -> Question<'_> {
        Question { qname: name.as_name(), qtype: Rtype::A, qclass: Class::IN }
    }

    /// A value with two addresses whose TTLs are 300 and `ttl`.
    fn value(flags: Flags, ttl: u32) -> Vec<u8> {
        let qname = name();
        let mut out = vec![0; 512];
        let mut writer = Writer::new(&mut out, 512, 0, flags);
        writer.question(&question(&qname)).expect("room");
        for (ttl, last) in [(300, 1), (ttl, 2)] {
            let data = |writer: &mut Writer<'_>| writer.bytes(&[192, 0, 2, last]);
            writer
                .record(Section::Answer, qname.as_name(), Rtype::A, Class::IN, Ttl::new(ttl), data)
                .expect("room");
        }
        let len = writer.finish();
        out.truncate(len);
        out.extend(NOW.to_be_bytes());
        out.extend((NOW + u64::from(ttl.min(300))).to_be_bytes());
        out
    }

    fn ttls(message: &[u8]) -> Vec<u32> {
        let message = Message::parse(message).expect("well formed");
        message.records().map(|record| record.ttl().seconds()).collect()
    }

    #[test]
    fn keys_are_those_of_unbound() {
        // SHA-256 of 03777777 076578616d706c65 036f7267 00 0001 0001 "default".
        let qname = name();
        let secret = Secret::new(b"default".to_vec());
        let key = key(qname.as_name(), Rtype::A, &secret);
        assert_eq!(std::str::from_utf8(&key), Ok(UNBOUND_KEY));
    }

    const UNBOUND_KEY: &str = "B8BCB2AAFBD98A7FA84CA19DB56A03F4B982C7514D554FAE7F45AB95D172EE3B";

    #[test]
    fn a_value_is_aged_and_loses_flags_that_somebody_set() {
        let qname = name();
        let mut stored = value(Flags::QR.with(Flags::AD).with(Flags::AA), 60);
        let reply = read(&mut stored, &question(&qname), NOW + 10).expect("a reply");
        assert_eq!(ttls(reply), [290, 50]);
        let flags = Header::parse(reply).expect("a header").flags;
        assert!(!flags.has(Flags::AD) && !flags.has(Flags::AA) && flags.has(Flags::RA));
    }

    #[test]
    fn what_has_ended_or_is_for_another_question_is_no_answer() {
        let (qname, other) = (name(), NameBuf::from_text("example.org").expect("a name"));
        let stored = value(Flags::QR, 60);
        let check = |value: &[u8], question: &Question<'_>, at: u64, expected: bool| {
            assert_eq!(read(&mut value.to_vec(), question, at).is_some(), expected, "{at}");
        };
        check(&stored, &question(&qname), NOW + 59, true);
        check(&stored, &question(&qname), NOW + 60, false);
        check(&stored, &question(&qname), u64::MAX, false);
        // Another clock is behind ours, or before it.
        check(&stored, &question(&qname), NOW - 100, true);
        check(&stored, &question(&other), NOW, false);
        check(&stored, &Question { qtype: Rtype::AAAA, ..question(&qname) }, NOW, false);
        check(&value(Flags::QR.with_rcode(Rcode::SERVFAIL), 60), &question(&qname), NOW, false);
        check(&stored[..stored.len() - 1], &question(&qname), NOW, false);
        check(&stored[..15], &question(&qname), NOW, false);
    }

    proptest! {
        #[test]
        fn no_value_panics(mut value in proptest::collection::vec(any::<u8>(), 0..200), at in any::<u64>()) {
            let qname = name();
            let _ = read(&mut value, &question(&qname), at);
        }

        #[test]
        fn a_value_with_wrong_octets_does_not_panic(place in 0_usize..110, octet in any::<u8>()) {
            let qname = name();
            let mut stored = value(Flags::QR, 60);
            let place = place % stored.len();
            stored[place] = octet;
            let _ = read(&mut stored, &question(&qname), NOW + 5);
        }
    }
}
