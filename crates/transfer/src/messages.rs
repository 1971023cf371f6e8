//! What is asked, and what replies say.

use wire::{Class, Flags, Message, Name, Opcode, OptionCode, Question, Rcode, Rtype, Section, Ttl, Writer};
use zone::difference::serial_of;
use zone::incoming::Fault;

use crate::error::PeerError;

/// The octets of a datagram that queries say are taken; they go over connections all the same.
const UDP_OCTETS: u16 = 1232;

/// Whether a query asks for how long the zone may still be served (RFC 7314).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expire {
    Asked,
    /// Whoever is asked knows nothing of EDNS, or it makes no sense.
    Unasked,
}

/// Makes a query of one question; `soa` adds a SOA.
pub(crate) fn query(
    apex: Name<'_>,
    (qtype, opcode): (Rtype, Opcode),
    soa: Option<(Section, Ttl, &[u8])>,
    expire: Expire,
) -> (u16, Vec<u8>) {
    let id = rand::random();
    let mut message = vec![0; 1024];
    let limit = message.len();
    let flags = if opcode == Opcode::NOTIFY { Flags::AA } else { Flags(0) };
    let mut writer = Writer::new(&mut message, limit, id, flags.with_opcode(opcode));
    // A name, a SOA of two names and a few numbers, an OPT: it fits.
    let _ = writer.question(&Question { qname: apex, qtype, qclass: Class::IN });
    if let Some((section, ttl, soa)) = soa {
        let _ = writer.record(section, apex, Rtype::SOA, Class::IN, ttl, |writer| writer.bytes(soa));
    }
    if expire == Expire::Asked {
        let ask = |writer: &mut Writer<'_>| writer.option(OptionCode::EXPIRE, &[]);
        let _ = writer.opt(UDP_OCTETS, Rcode::NOERROR, false, ask);
    }
    let len = writer.finish();
    message.truncate(len);
    (id, message)
}

/// Returns for how many seconds the sender of a reply may still serve the zone, if it says so.
pub(crate) fn expire_in(reply: &[u8]) -> Option<u32> {
    let told = Message::parse(reply).ok()?.edns?.option(OptionCode::EXPIRE)?;
    told.try_into().ok().map(u32::from_be_bytes)
}

/// Returns the serial in the reply to a question for the SOA.
pub(crate) fn serial_in(reply: &[u8], apex: Name<'_>) -> Result<u32, PeerError> {
    let parsed = Message::parse(reply).map_err(|_| PeerError::Fault(Fault::Malformed))?;
    if parsed.rcode() != Rcode::NOERROR {
        return Err(PeerError::Fault(Fault::Rcode(parsed.rcode())));
    }
    let soa = parsed.records().find(|record| {
        record.section == Section::Answer
            && record.rtype == Rtype::SOA
            && record.owner.expand().is_ok_and(|owner| owner.as_name() == apex)
    });
    // Who serves a zone says so: anything else is a guess of a resolver.
    let soa = soa.filter(|_| parsed.header.flags.has(Flags::AA));
    soa.and_then(|soa| serial_of(soa.rdata)).ok_or(PeerError::Fault(Fault::NoSoa))
}

#[cfg(test)]
mod tests {
    use wire::NameBuf;

    use super::*;

    /// The data of a SOA with the root's name twice and this serial.
    fn soa(serial: u32) -> Vec<u8> {
        [&[0, 0][..], &serial.to_be_bytes(), &[0; 16]].concat()
    }

    fn name(text: &str) -> NameBuf {
        NameBuf::from_text(text).expect("a name")
    }

    #[test]
    fn a_query_says_which_version_there_is_and_asks_for_its_expiry() {
        let apex = name("example.org");
        let ours = soa(7);
        let have = Some((Section::Authority, Ttl::new(60), &ours[..]));
        let (id, message) = query(apex.as_name(), (Rtype::IXFR, Opcode::QUERY), have, Expire::Asked);
        let parsed = Message::parse(&message).expect("a message");
        assert_eq!((parsed.header.id, parsed.header.flags), (id, Flags(0)));
        let soas = parsed.records().filter(|record| record.rtype == Rtype::SOA);
        let soas: Vec<_> = soas.map(|record| (record.section, record.rdata)).collect();
        assert_eq!(soas, [(Section::Authority, &ours[..])]);
        let edns = parsed.edns.expect("EDNS");
        assert_eq!(edns.option(OptionCode::EXPIRE), Some(&[][..]));
        let told = Some((Section::Answer, Ttl::new(60), &ours[..]));
        let (_, message) = query(apex.as_name(), (Rtype::SOA, Opcode::NOTIFY), told, Expire::Unasked);
        let parsed = Message::parse(&message).expect("a message");
        assert_eq!(parsed.header.flags, Flags::AA.with_opcode(Opcode::NOTIFY));
        assert!(parsed.edns.is_none());
    }

    #[test]
    fn the_serial_is_that_of_a_server_of_the_zone() {
        let check = |flags: Flags, (section, owner): (Section, &str), expect: Option<u32>| {
            let (apex, owner) = (name("example.org"), name(owner));
            let mut message = vec![0; 512];
            let mut writer = Writer::new(&mut message, 512, 1, flags.with(Flags::QR));
            let question = Question { qname: apex.as_name(), qtype: Rtype::SOA, qclass: Class::IN };
            writer.question(&question).expect("room");
            let write = |writer: &mut Writer<'_>| writer.bytes(&soa(7));
            writer
                .record(section, owner.as_name(), Rtype::SOA, Class::IN, Ttl::new(60), write)
                .expect("room");
            let len = writer.finish();
            let serial = serial_in(&message[..len], apex.as_name()).ok();
            assert_eq!(serial, expect, "{flags:?} {section:?} {owner}");
        };
        check(Flags::AA, (Section::Answer, "example.org"), Some(7));
        check(Flags(0), (Section::Answer, "example.org"), None);
        check(Flags::AA, (Section::Authority, "example.org"), None);
        check(Flags::AA, (Section::Answer, "example.net"), None);
        check(Flags::AA.with_rcode(Rcode::REFUSED), (Section::Answer, "example.org"), None);
    }
}
