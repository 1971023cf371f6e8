//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! `dns64(…)`: IPv6 addresses made from IPv4 ones, for networks that reach IPv4 through a
//! translator (RFC 6147).

use wire::reply::write_record;
use wire::{
    Class, EdeCode, Flags, Message, Name, NameBuf, Prefix64, Query, Rcode, Record, Rtype, Section, Ttl,
    Writer,
};

use super::rewrite::Style;
use crate::answer::written::Written;
use crate::answer::{Answer, all_records, answer_records};

/// The TTL of a synthesised record when nothing else bounds it (RFC 6147 §5.1.7).
const TTL_DEFAULT: u32 = 600;
/// Octets of a reverse IPv6 name: 32 nibbles, `ip6`, `arpa`, the root.
const REVERSE_OCTETS: usize = 32 * 2 + 4 + 5 + 1;

/// Addresses with a prefix in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excluded {
    /// The first address.
    pub bits: u128,
    /// How many leading bits count.
    pub length: u8,
}

impl Excluded {
    /// `::ffff:0:0/96`: IPv4 in disguise, of no use to clients without IPv4 (RFC 6147 §5.1.4).
    pub const MAPPED: Self = Self { bits: 0xffff << 32, length: 96 };

    const fn holds(self, address: u128) -> bool {
        self.length == 0 || (address ^ self.bits) >> (128 - self.length as u32) == 0
    }
}

/// Makes addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dns64 {
    /// What they begin with; each IPv4 address is embedded in each.
    pub prefixes: Box<[Prefix64]>,
    /// IPv6 addresses that count as none.
    pub excluded: Box<[Excluded]>,
    /// Whether all of them count only where there is no IPv4 address.
    pub ignores_ipv6: bool,
    /// Whether clients get them that set CD and DO.
    pub ignores_cd: bool,
}

impl Dns64 {
    /// Returns whether a query may get addresses that we made.
    pub(crate) fn applies(&self, query: &Query<'_>) -> bool {
        // RFC 6147 §5.5: whoever validates by itself makes them by itself.
        let validates = query.wants_dnssec() && query.header.flags.has(Flags::CD) && !self.ignores_cd;
        query.question.qtype == Rtype::AAAA && !validates
    }

    fn excludes(&self, record: &Record<'_>) -> bool {
        record.rtype == Rtype::AAAA
            && <[u8; 16]>::try_from(record.rdata)
                .is_ok_and(|octets| self.excluded.iter().any(|net| net.holds(u128::from_be_bytes(octets))))
    }

    /// Returns for how many seconds it is true that there is no IPv6 address, if there is none.
    pub(crate) fn lacks_addresses(&self, answer: &Answer, message: &[u8], body_at: usize) -> Option<u32> {
        // RFC 6147 §5.1.2: NXDOMAIN is true for all types; any other error is as if there were no
        // record.
        if matches!(answer.rcode, Rcode::NXDOMAIN | Rcode::YXDOMAIN) {
            return None;
        }
        if answer.rcode == Rcode::NOERROR
            && !self.ignores_ipv6
            && answer_records(answer, message, body_at)
                .any(|record| record.rtype == Rtype::AAAA && !self.excludes(&record))
        {
            return None;
        }
        // RFC 6147 §5.1.7: no longer than the negative answer says.
        let soa = all_records(answer, message, body_at).find(|record| record.rtype == Rtype::SOA);
        let minimum =
            soa.and_then(|soa| Some(u32::from_be_bytes(*soa.rdata.last_chunk::<4>()?).min(soa.ttl_raw)));
        Some(minimum.unwrap_or(TTL_DEFAULT))
    }

    /// Writes the answer for AAAA that `message`, the answer for A, makes.
    pub(crate) fn synthesise(
        &self,
        ttl_max: u32,
        message: &Message<'_>,
        query: &Query<'_>,
        out: &mut [u8],
    ) -> Option<Written> {
        let (len, body_at) = copy(message, query, out, |record, owner, writer| {
            let is_answer = record.section == Section::Answer;
            if is_answer && is_signature_over(record, Rtype::A) {
                return Some(());
            }
            if !is_answer || record.rtype != Rtype::A {
                return write_record(record, owner, record.ttl(), writer).ok().map(drop);
            }
            let address = u32::from_be_bytes(<[u8; 4]>::try_from(record.rdata).ok()?);
            let ttl = record.ttl().min(Ttl::new(ttl_max));
            for prefix in &self.prefixes {
                let octets = prefix.embed(address).to_be_bytes();
                writer
                    .record(Section::Answer, owner, Rtype::AAAA, Class::IN, ttl, |w| w.bytes(&octets))
                    .ok()?;
            }
            Some(())
        })?;
        let written = Written::new(out, len, body_at, message.rcode())?;
        Some(Written { ede: Some((EdeCode::SYNTHESIZED, "IPv6 addresses made from IPv4")), ..written })
    }

    /// Writes the answer for AAAA without the addresses that are excluded.
    pub(crate) fn without_excluded(
        &self,
        message: &Message<'_>,
        query: &Query<'_>,
        out: &mut [u8],
    ) -> Option<Written> {
        let mut is_whole = true;
        let (len, body_at) = copy(message, query, out, |record, owner, writer| {
            if record.section == Section::Answer && self.excludes(record) {
                is_whole = false;
                return Some(());
            }
            write_record(record, owner, record.ttl(), writer).ok().map(drop)
        })?;
        let written = Written::new(out, len, body_at, message.rcode())?;
        Some(Written { is_whole, ..written })
    }
}

/// Writes the records of `message` one by one as an answer to `query`; returns the octets of all
/// and where records begin.
fn copy(
    message: &Message<'_>,
    query: &Query<'_>,
    out: &mut [u8],
    mut each: impl FnMut(&Record<'_>, Name<'_>, &mut Writer<'_>) -> Option<()>,
) -> Option<(usize, usize)> {
    let mut writer = Writer::new(out, usize::from(u16::MAX), 0, message.header.flags);
    writer.question(&query.question).ok()?;
    let body_at = writer.len();
    for record in message.records() {
        if matches!(record.rtype, Rtype::OPT | Rtype::TSIG) {
            continue;
        }
        let owner = record.owner.expand().ok()?;
        each(&record, owner.as_name(), &mut writer)?;
    }
    Some((writer.finish(), body_at))
}

fn is_signature_over(record: &Record<'_>, rtype: Rtype) -> bool {
    record.rtype == Rtype::RRSIG
        && record.rdata.first_chunk::<2>().is_some_and(|covered| u16::from_be_bytes(*covered) == rtype.0)
}

/// Reverse names of addresses that we make (RFC 6147 §5.3.1): what the reverse name of the IPv4
/// address has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reverse {
    /// The prefixes of the addresses.
    pub prefixes: Box<[Prefix64]>,
    /// Whether the client sees an alias, or the other name's records as if they were this one's.
    pub style: Style,
}

impl Reverse {
    /// Returns the reverse name of the IPv4 address whose IPv6 form `name`, in lower case, is the
    /// reverse name of.
    pub(crate) fn target(&self, query: &Query<'_>, name: Name<'_>) -> Option<NameBuf> {
        if query.question.qtype != Rtype::PTR || name.len() != REVERSE_OCTETS {
            return None;
        }
        if name.suffix(2).as_bytes() != b"\x03ip6\x04arpa\0" {
            return None;
        }
        let mut address = 0_u128;
        for (place, label) in name.labels().take(32).enumerate() {
            let &[digit] = label else { return None };
            let nibble = char::from(digit).to_digit(16)?;
            address |= u128::from(nibble) << (4 * place);
        }
        let address = self.prefixes.iter().find_map(|prefix| prefix.extract(address))?;
        let mut reverse = NameBuf::root();
        for octet in address.to_le_bytes() {
            let mut digits = [0; 3];
            let mut rest = octet;
            let mut first = 3;
            // Ends: an octet has at most three digits.
            loop {
                first -= 1;
                *digits.get_mut(first)? = b'0' + rest % 10;
                rest /= 10;
                if rest == 0 {
                    break;
                }
            }
            reverse.push_label(digits.get(first..)?).ok()?;
        }
        reverse.push_label(b"in-addr").ok()?;
        reverse.push_label(b"arpa").ok()?;
        Some(reverse)
    }
}
