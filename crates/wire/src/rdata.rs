//! Record data by the table of types: checked, shown, read from text, brought into canonical form.
//!
//! Cold, except for [`extent`]. Data stands in a message, because names in it may point elsewhere;
//! data on its own is a message that consists of nothing else.
//!
//! # Limitations
//!
//! Data is read as in class IN whatever the class says. Flags of KEY and DNSKEY, and protocols of
//! KEY, are numbers in text. UINFO, UID, GID and UNSPEC have no specification and no form but RFC
//! 3597's.

mod loc;
mod read;
mod show;
mod svc;

use std::fmt;
use std::ops::Range;

use crate::message::NameRef;
use crate::name::{Name, NameBuf};
use crate::numbers::Rtype;
use crate::query::Malformed;
use crate::rtypes::{self, Field, NameRule};

pub use read::{parse_splitting, parse_text, parse_tokens};
pub use svc::SvcKey;

/// Returns how many octets of `rest` (the data from this field to its end) a field takes; `None`
/// when it does not fit.
///
/// Names and the fields that hold names are not for this function.
pub(crate) fn extent(field: Field, rest: &[u8]) -> Option<usize> {
    let len = match field {
        Field::U8 | Field::Algorithm | Field::Scheme | Field::Protocol => 1,
        Field::U16 | Field::TypeNumber | Field::CertType | Field::ErrorCode => 2,
        Field::U32 | Field::Period | Field::Time | Field::Ipv4 => 4,
        Field::U48 | Field::Eui48 => 6,
        Field::U64 | Field::Groups64 | Field::Eui64 => 8,
        Field::Ipv6 | Field::Loc => 16,
        Field::String | Field::Tag | Field::Salt | Field::Base32Hex => 1 + usize::from(*rest.first()?),
        Field::Base64Sized => 2 + usize::from(u16::from_be_bytes(*rest.first_chunk()?)),
        Field::StringMaybe
        | Field::Strings
        | Field::Text
        | Field::Base64
        | Field::Base64Maybe
        | Field::Base64Dash
        | Field::Hex
        | Field::Types
        | Field::TypesNxt
        | Field::Ports
        | Field::Nsap
        | Field::Atma
        | Field::Prefixes
        | Field::SvcParams => rest.len(),
        Field::Name(_) | Field::A6 | Field::Ipseckey | Field::Relay | Field::Hip => return None,
    };
    (len <= rest.len()).then_some(len)
}

/// Reads record data from front to end.
#[derive(Clone, Copy)]
struct Data<'a> {
    message: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Data<'a> {
    fn new(message: &'a [u8], range: &Range<usize>) -> Self {
        let end = range.end.min(message.len());
        Self { message, at: range.start.min(end), end }
    }

    fn rest(&self) -> &'a [u8] {
        self.message.get(self.at..self.end).unwrap_or(&[])
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let octets = self.rest().get(..len)?;
        self.at += len;
        Some(octets)
    }

    fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest();
        self.at = self.end;
        rest
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let octets = *self.rest().first_chunk()?;
        self.at += N;
        Some(octets)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Takes an octet of length and that many octets.
    fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.u8()?;
        self.take(usize::from(len))
    }

    /// Takes a name that must not be compressed (RFC 3597 §4).
    fn plain_name(&mut self) -> Option<()> {
        let (name, _) = Name::parse(self.rest()).ok()?;
        self.at += name.len();
        Some(())
    }

    fn name(&mut self) -> Option<NameBuf> {
        let name = NameRef::new(self.message, self.at);
        let end = name.skip().ok()?;
        if end > self.end {
            return None;
        }
        self.at = end;
        name.expand().ok()
    }
}

/// Checks that data has the form of its type, strictly: whatever passes has a presentation form
/// that reads back as the same octets (names uncompressed). Types without a layout take anything,
/// and so do those for private use, which mean something else to others.
pub fn check(rtype: Rtype, message: &[u8], rdata: Range<usize>) -> Result<(), Malformed> {
    if rtype.is_private() { Ok(()) } else { check_form(rtype, message, rdata) }
}

fn check_form(rtype: Rtype, message: &[u8], rdata: Range<usize>) -> Result<(), Malformed> {
    let Some(fields) = rtypes::describe(rtype).and_then(|known| known.fields) else { return Ok(()) };
    let mut data = Data::new(message, &rdata);
    fields
        .iter()
        .try_for_each(|&field| check_field(field, &mut data))
        .filter(|()| data.rest().is_empty())
        .ok_or(Malformed::Record)
}

fn check_field(field: Field, data: &mut Data<'_>) -> Option<()> {
    match field {
        Field::Name(NameRule::Plain) => return data.plain_name(),
        Field::Name(_) => return data.name().map(drop),
        Field::A6 => {
            let prefix = data.u8().filter(|&prefix| prefix <= 128)?;
            data.take(16 - usize::from(prefix) / 8)?;
            return if prefix > 0 { data.name().map(drop) } else { Some(()) };
        }
        Field::Ipseckey => {
            let [kind, _algorithm] = data.array()?;
            check_gateway(kind, data)?;
            data.take_rest();
            return Some(());
        }
        Field::Relay => {
            let kind = data.u8()? & 0x7f;
            return check_gateway(kind, data);
        }
        Field::Hip => {
            let [tag_len, _algorithm] = data.array()?;
            let key_len = data.u16()?;
            data.take(usize::from(tag_len)).filter(|tag| !tag.is_empty())?;
            data.take(usize::from(key_len)).filter(|key| !key.is_empty())?;
            while !data.rest().is_empty() {
                data.plain_name()?;
            }
            return Some(());
        }
        _ => {}
    }
    let len = extent(field, data.rest())?;
    let octets = data.take(len)?;
    let holds = match field {
        Field::Strings => !octets.is_empty() && strings(octets).is_some(),
        Field::StringMaybe => strings(octets)? <= 1,
        Field::Tag => len > 1 && octets[1..].iter().all(u8::is_ascii_alphanumeric),
        Field::Base32Hex => len > 1,
        Field::Base64 | Field::Hex | Field::Nsap => len > 0,
        Field::Atma => match octets.split_first()? {
            (0, address) => !address.is_empty(),
            (1, address) => !address.is_empty() && address.iter().all(u8::is_ascii_digit),
            _ => false,
        },
        Field::Types => windows(octets).is_some(),
        // RFC 2535 §5.2: bit 0 says that the format is another one; no trailing zeros.
        Field::TypesNxt => {
            (1..=16).contains(&len) && octets[0] & 0x80 == 0 && octets.last().is_some_and(|&last| last != 0)
        }
        Field::Ports => len <= 8192 && octets.last() != Some(&0),
        Field::Loc => loc::check(octets),
        Field::Prefixes => prefixes(octets).is_some(),
        Field::SvcParams => svc::check(octets).is_some(),
        _ => true,
    };
    holds.then_some(())
}

/// Checks a gateway or relay of this kind (RFC 4025 §2.5, RFC 8777 §4.2.4).
fn check_gateway(kind: u8, data: &mut Data<'_>) -> Option<()> {
    match kind {
        0 => Some(()),
        1 => data.take(4).map(drop),
        2 => data.take(16).map(drop),
        3 => data.plain_name(),
        _ => None,
    }
}

/// Counts character-strings.
fn strings(mut octets: &[u8]) -> Option<usize> {
    let mut count = 0;
    while let Some((&len, rest)) = octets.split_first() {
        octets = rest.get(usize::from(len)..)?;
        count += 1;
    }
    Some(count)
}

/// Checks the windows of a type bitmap: ascending, 1 to 32 octets, no trailing zeros (RFC 4034
/// §4.1.2).
fn windows(mut octets: &[u8]) -> Option<()> {
    let mut least = 0;
    while let [window, len, rest @ ..] = octets {
        let (map, rest) = rest.split_at_checked(usize::from(*len))?;
        if u16::from(*window) < least || map.len() > 32 || map.last().is_none_or(|&last| last == 0) {
            return None;
        }
        least = u16::from(*window) + 1;
        octets = rest;
    }
    octets.is_empty().then_some(())
}

/// Checks the items of an APL (RFC 3123 §4).
fn prefixes(mut octets: &[u8]) -> Option<()> {
    while let [f0, f1, prefix, len, rest @ ..] = octets {
        let (prefix_max, len_max) = match u16::from_be_bytes([*f0, *f1]) {
            1 => (32, 4),
            2 => (128, 16),
            _ => return None,
        };
        let (address, rest) = rest.split_at_checked(usize::from(len & 0x7f))?;
        if *prefix > prefix_max || address.len() > len_max || address.last() == Some(&0) {
            return None;
        }
        octets = rest;
    }
    octets.is_empty().then_some(())
}

/// Octets of a hash in NSEC3 (RFC 5155 §11: SHA-1 is the only one).
const NSEC3_HASH_OCTETS: usize = 20;

/// Returns how data that has the form of its type contradicts itself, or the type's specification,
/// if it does. Whoever sends such data is not refused, but nobody should write it. Names in it are
/// in full.
pub fn contradiction(rtype: Rtype, rdata: &[u8]) -> Option<&'static str> {
    match rtype {
        Rtype::SVCB | Rtype::HTTPS => {
            let (_, params) = Name::parse(rdata.get(2..)?).ok()?;
            svc::contradiction(params)
        }
        Rtype::NSEC3 => {
            let &[1, _, _, _, salt, ref rest @ ..] = rdata else { return None };
            let &len = rest.get(usize::from(salt))?;
            let is_wrong = usize::from(len) != NSEC3_HASH_OCTETS;
            is_wrong.then_some("the next hash has not the 20 octets of SHA-1 (RFC 5155 §3.1.7)")
        }
        _ => None,
    }
}

/// Shows data in presentation form: that of its type, or `\# length hex` (RFC 3597 §5) for types
/// without one and for data that does not have the form of its type.
pub fn display(rtype: Rtype, message: &[u8], rdata: Range<usize>) -> Shown<'_> {
    Shown { rtype, data: Data::new(message, &rdata) }
}

/// Data in presentation form; see [`display`].
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    rtype: Rtype,
    data: Data<'a>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_sound = check_form(self.rtype, self.data.message, self.data.at..self.data.end).is_ok();
        match rtypes::describe(self.rtype).and_then(|known| known.fields) {
            Some(fields) if is_sound => show::fields(f, fields, self.data),
            _ => show::generic(f, self.data.rest()),
        }
    }
}

/// Appends data in canonical form (RFC 4034 §6.2): names in full, in lower case where the list says
/// so.
pub fn write_canonical(
    rtype: Rtype,
    message: &[u8],
    rdata: Range<usize>,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let mut data = Data::new(message, &rdata);
    write_uncompressed(rtype, &mut data, out, true).ok_or(Malformed::Record)
}

/// Appends data with its names in full and their letters as they came: as it is stored outside of
/// messages.
pub fn write_plain(
    rtype: Rtype,
    message: &[u8],
    rdata: Range<usize>,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let mut data = Data::new(message, &rdata);
    write_uncompressed(rtype, &mut data, out, false).ok_or(Malformed::Record)
}

fn write_uncompressed(
    rtype: Rtype,
    data: &mut Data<'_>,
    out: &mut Vec<u8>,
    is_canonical: bool,
) -> Option<()> {
    if let Some(known) = rtypes::describe(rtype)
        && !data.rest().is_empty()
    {
        // Names after these are never compressed and keep their letters.
        let leading = usize::from(known.rewrite_fields);
        for &field in known.fields.unwrap_or(&[]).iter().take(leading) {
            let mut is_name = true;
            match field {
                Field::Name(_) => {}
                Field::A6 => {
                    let prefix = *data.rest().first().filter(|&&prefix| prefix <= 128)?;
                    let len = 17 - usize::from(prefix) / 8;
                    out.extend_from_slice(data.take(len)?);
                    is_name = prefix > 0;
                }
                field => {
                    let len = extent(field, data.rest())?;
                    out.extend_from_slice(data.take(len)?);
                    is_name = false;
                }
            }
            if is_name {
                let name = data.name()?;
                match is_canonical && field != Field::Name(NameRule::Plain) {
                    true => out.extend_from_slice(name.as_name().to_folded().as_bytes()),
                    false => out.extend_from_slice(name.as_name().as_bytes()),
                }
            }
        }
    }
    out.extend_from_slice(data.take_rest());
    Some(())
}

/// Appends a name in wire form.
fn push_name(out: &mut Vec<u8>, name: Name<'_>) {
    out.extend_from_slice(name.as_bytes());
}

/// Names and numbers of DNSSEC algorithms (IANA "DNS Security Algorithm Numbers").
const ALGORITHMS: &[(u16, &str)] = &[
    (1, "RSAMD5"),
    (2, "DH"),
    (3, "DSA"),
    (5, "RSASHA1"),
    (6, "DSA-NSEC3-SHA1"),
    (7, "RSASHA1-NSEC3-SHA1"),
    (8, "RSASHA256"),
    (10, "RSASHA512"),
    (12, "ECC-GOST"),
    (13, "ECDSAP256SHA256"),
    (14, "ECDSAP384SHA384"),
    (15, "ED25519"),
    (16, "ED448"),
    (17, "SM2SM3"),
    (23, "ECC-GOST12"),
    (252, "INDIRECT"),
    (253, "PRIVATEDNS"),
    (254, "PRIVATEOID"),
];

/// Names and numbers of certificate types (RFC 4398 §2.1).
const CERT_TYPES: &[(u16, &str)] = &[
    (1, "PKIX"),
    (2, "SPKI"),
    (3, "PGP"),
    (4, "IPKIX"),
    (5, "ISPKI"),
    (6, "IPGP"),
    (7, "ACPKIX"),
    (8, "IACPKIX"),
    (253, "URI"),
    (254, "OID"),
];

/// Names and numbers of DSYNC schemes (RFC 9859 §6.2).
const SCHEMES: &[(u16, &str)] = &[(1, "NOTIFY")];

/// Names and numbers of IP protocols that WKS was used with.
const PROTOCOLS: &[(u16, &str)] = &[(6, "TCP"), (17, "UDP")];

/// Names of ports for WKS; they are read, numbers are written.
const PORTS: &[(u16, &str)] = &[
    (21, "ftp"),
    (22, "ssh"),
    (23, "telnet"),
    (25, "smtp"),
    (37, "time"),
    (53, "domain"),
    (69, "tftp"),
    (79, "finger"),
    (80, "http"),
    (110, "pop3"),
    (119, "nntp"),
    (123, "ntp"),
    (143, "imap"),
    (161, "snmp"),
    (443, "https"),
];
