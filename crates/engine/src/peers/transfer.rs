//! A zone on its way to another server (RFC 5936, RFC 1995).

use tsig::Signer;
use wire::{Class, Header, MESSAGE_OCTETS_MAX, Name, OptionCode, Rcode, Rtype, Writer};
use zone::Outgoing;

use super::places::Place;

/// Octets of an OPT record without options.
const OPT_OCTETS: usize = 11;
/// Octets of the EXPIRE option.
const EXPIRE_OCTETS: usize = 8;

/// Which OPT record the first message of a transfer has.
#[derive(Clone, Copy)]
pub(super) enum Opt {
    /// None: who asks does not speak EDNS.
    None,
    /// One without options.
    Plain,
    /// One that says for how many seconds we may serve the zone (RFC 7314).
    Expire(u32),
}

impl Opt {
    const fn octets(self) -> usize {
        match self {
            Self::None => 0,
            Self::Plain => OPT_OCTETS,
            Self::Expire(_) => OPT_OCTETS + EXPIRE_OCTETS,
        }
    }
}

/// A zone on its way to a client.
pub struct Transfer {
    pub(super) outgoing: Outgoing,
    pub(super) header: Header,
    pub(super) question: Box<[u8]>,
    pub(super) opt: Opt,
    pub(super) signer: Option<Signer>,
    pub(super) _place: Place,
}

impl Transfer {
    /// Returns the next message; nothing after the last, or if a record fits no message.
    pub fn next(&mut self, unix_seconds: u32) -> Option<Vec<u8>> {
        if self.outgoing.is_done() {
            return None;
        }
        let is_first = self.outgoing.written().0 == 0;
        let question: &[u8] = if is_first { &self.question } else { &[] };
        let shape = (self.header, question, if is_first { self.opt } else { Opt::None });
        let message = fill(&mut self.outgoing, shape, self.signer.as_ref(), MESSAGE_OCTETS_MAX)?;
        Some(sign(self.signer.as_mut(), message, unix_seconds))
    }
}

/// Makes one message of a transfer, with room left for a signature.
pub(super) fn fill(
    outgoing: &mut Outgoing,
    (header, question, opt): (Header, &[u8], Opt),
    signer: Option<&Signer>,
    limit: usize,
) -> Option<Vec<u8>> {
    let mut message = vec![0; limit];
    let limit = limit.checked_sub(signer.map_or(0, Signer::record_octets) + opt.octets())?;
    let mut writer = Writer::new(&mut message, limit, header.id, header.flags);
    if let Some(question) = parse_question(question) {
        writer.question(&question).ok()?;
    }
    outgoing.fill(&mut writer).ok()?;
    writer.set_limit(limit + opt.octets());
    let written = match opt {
        Opt::None => Ok(()),
        Opt::Plain => writer.opt(1232, Rcode::NOERROR, false, |_| Ok(())),
        Opt::Expire(left_s) => writer.opt(1232, Rcode::NOERROR, false, |writer| {
            writer.option(OptionCode::EXPIRE, &left_s.to_be_bytes())
        }),
    };
    written.ok()?;
    let len = writer.finish();
    message.truncate(len);
    Some(message)
}

fn parse_question(bytes: &[u8]) -> Option<wire::Question<'_>> {
    let (qname, rest) = Name::parse(bytes).ok()?;
    let &[t0, t1, c0, c1] = rest.first_chunk::<4>()?;
    Some(wire::Question {
        qname,
        qtype: Rtype(u16::from_be_bytes([t0, t1])),
        qclass: Class(u16::from_be_bytes([c0, c1])),
    })
}

pub(crate) fn sign(signer: Option<&mut Signer>, mut message: Vec<u8>, unix_seconds: u32) -> Vec<u8> {
    if let Some(signer) = signer {
        signer.sign(&mut message, u64::from(unix_seconds));
    }
    message
}
