//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The certificates, which clients ask for in plain DNS.

use dnscrypt::CERTIFICATE_OCTETS;
use plan::dnscrypt::ProviderPlan;
use wire::{Class, Edns, Flags, Header, Opcode, Query, Rtype};

/// For how many seconds a client may keep an answer: until it sees that there is a newer
/// certificate, it uses the old one, which is taken for longer than that.
const TTL: u32 = 600;

/// What stands for the name of the question in an answer (RFC 1035 §4.1.4).
const QNAME: [u8; 2] = [0xc0, Header::LEN as u8];

/// Octets of a datagram that every client takes (RFC 1035 §4.2.1).
const DATAGRAM_OCTETS: u16 = 512;

/// Returns whether a query asks for the certificates.
pub(super) fn is_asked_for(query: &Query<'_>, plan: &ProviderPlan) -> bool {
    query.header.flags.opcode() == Opcode::QUERY
        && query.question.qtype == Rtype::TXT
        && query.question.qclass == Class::IN
        && query.question.qname == plan.name.as_name()
}

/// Returns how large an answer may be that is a datagram.
pub(super) fn datagram_limit(query: &Query<'_>) -> usize {
    let told = query.edns.as_ref().map_or(DATAGRAM_OCTETS, |edns: &Edns<'_>| edns.udp_size);
    usize::from(told.max(DATAGRAM_OCTETS))
}

/// Writes the answer with the certificates that are valid, of at most so many octets; returns its
/// length, zero if there is no room for anything.
pub(super) fn write(
    query: &Query<'_>,
    plan: &ProviderPlan,
    unix_seconds: u64,
    limit: usize,
    room: &mut [u8],
) -> usize {
    let len = room.len().min(limit);
    let mut writer = Writer { room: room.get_mut(..len).unwrap_or(&mut []), len: 0 };
    let mut answers = 0;
    let certificates = plan
        .keys
        .iter()
        // A client may look at what is not valid yet, and decides by its own clock.
        .filter(|it| unix_seconds <= u64::from(it.key.certificate().valid.1))
        .filter_map(|it| it.published.as_ref());
    let is_whole = writer.head(query).is_some()
        && certificates.map(|certificate| writer.certificate(certificate)).all(|written| {
            answers += 1;
            written.is_some()
        });
    let (answers, is_cut) = if is_whole { (answers, false) } else { (0, true) };
    if is_cut {
        writer.len = Header::LEN + query.question_bytes().len();
    }
    let has_opt = query.edns.is_some();
    if has_opt && writer.opt().is_none() {
        return 0;
    }
    let flags = Flags::QR.with(Flags::AA).with(query.header.flags.only(Flags::RD));
    let header = Header {
        id: query.header.id,
        flags: if is_cut { flags.with(Flags::TC) } else { flags },
        questions: 1,
        answers,
        additionals: u16::from(has_opt),
        ..Header::default()
    };
    let len = writer.len;
    match room.get_mut(..Header::LEN) {
        Some(place) => place.copy_from_slice(&header.to_bytes()),
        None => return 0,
    }
    len
}

struct Writer<'r> {
    room: &'r mut [u8],
    len: usize,
}

impl Writer<'_> {
    fn put(&mut self, octets: &[u8]) -> Option<()> {
        let end = self.len + octets.len();
        self.room.get_mut(self.len..end)?.copy_from_slice(octets);
        self.len = end;
        Some(())
    }

    /// Leaves room for the header and repeats the question.
    fn head(&mut self, query: &Query<'_>) -> Option<()> {
        self.put(&[0; Header::LEN])?;
        self.put(query.question_bytes())
    }

    fn certificate(&mut self, certificate: &[u8; CERTIFICATE_OCTETS]) -> Option<()> {
        const STRING: u8 = CERTIFICATE_OCTETS as u8;
        self.put(&QNAME)?;
        self.put(&Rtype::TXT.0.to_be_bytes())?;
        self.put(&Class::IN.0.to_be_bytes())?;
        self.put(&TTL.to_be_bytes())?;
        self.put(&[0, STRING + 1, STRING])?;
        self.put(certificate)
    }

    fn opt(&mut self) -> Option<()> {
        let [s0, s1] = DATAGRAM_OCTETS.to_be_bytes();
        self.put(&[0, 0, Rtype::OPT.0 as u8, s0, s1, 0, 0, 0, 0, 0, 0])
    }
}
