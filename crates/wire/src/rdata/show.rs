//! From data to text. What comes here has been checked; what is missing all the same is shown as
//! zero.

use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::{CERT_TYPES, Data, PROTOCOLS, SCHEMES, loc, svc};
use crate::numbers::{Rcode, Rtype};
use crate::rtypes::Field;
use crate::text::{write_bare, write_base32_hex, write_base64, write_hex, write_quoted};

/// Puts one space between words.
pub(super) struct Words<'f, 'g> {
    f: &'f mut fmt::Formatter<'g>,
    has_word: bool,
}

impl Words<'_, '_> {
    /// Begins the next word.
    pub(super) fn next(&mut self) -> Result<&mut impl Write, fmt::Error> {
        if self.has_word {
            self.f.write_char(' ')?;
        }
        self.has_word = true;
        Ok(&mut *self.f)
    }

    fn put(&mut self, word: impl fmt::Display) -> fmt::Result {
        write!(self.next()?, "{word}")
    }

    fn number_or_name(&mut self, number: u16, names: &[(u16, &str)]) -> fmt::Result {
        match names.iter().find(|(known, _)| *known == number) {
            Some((_, name)) => self.put(name),
            None => self.put(number),
        }
    }

    fn base64(&mut self, octets: &[u8]) -> fmt::Result {
        if octets.is_empty() { Ok(()) } else { write_base64(self.next()?, octets) }
    }

    fn hex(&mut self, octets: &[u8]) -> fmt::Result {
        if octets.is_empty() { Ok(()) } else { write_hex(self.next()?, octets) }
    }
}

/// Shows octets as RFC 3597 §5 does.
pub(super) fn generic(f: &mut fmt::Formatter<'_>, octets: &[u8]) -> fmt::Result {
    write!(f, "\\# {}", octets.len())?;
    if octets.is_empty() {
        return Ok(());
    }
    f.write_char(' ')?;
    write_hex(f, octets)
}

/// Shows data field by field.
pub(super) fn fields(f: &mut fmt::Formatter<'_>, fields: &[Field], mut data: Data<'_>) -> fmt::Result {
    let mut words = Words { f, has_word: false };
    fields.iter().try_for_each(|&field| show(&mut words, field, &mut data))
}

// A table: an arm for each kind of field.
fn show(words: &mut Words<'_, '_>, field: Field, data: &mut Data<'_>) -> fmt::Result {
    match field {
        Field::U8 | Field::Algorithm => words.put(data.u8().unwrap_or(0)),
        Field::U16 => words.put(data.u16().unwrap_or(0)),
        Field::U32 | Field::Period => words.put(data.u32().unwrap_or(0)),
        Field::U48 => {
            let [a, b, c, d, e, f] = data.array().unwrap_or_default();
            words.put(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
        }
        Field::U64 => words.put(u64::from_be_bytes(data.array().unwrap_or_default())),
        Field::Time => words.put(Time(data.u32().unwrap_or(0))),
        Field::TypeNumber => words.put(Rtype(data.u16().unwrap_or(0))),
        Field::CertType => words.number_or_name(data.u16().unwrap_or(0), CERT_TYPES),
        Field::Scheme => words.number_or_name(u16::from(data.u8().unwrap_or(0)), SCHEMES),
        Field::Protocol => words.number_or_name(u16::from(data.u8().unwrap_or(0)), PROTOCOLS),
        Field::ErrorCode => match Rcode(data.u16().unwrap_or(0)) {
            // RFC 8945 §3: outside of EDNS, 16 means that the signature is wrong.
            Rcode::BADVERS => words.put("BADSIG"),
            code => match code.mnemonic() {
                Some(mnemonic) => words.put(mnemonic),
                None => words.put(code.0),
            },
        },
        Field::Ipv4 => words.put(Ipv4Addr::from(data.array::<4>().unwrap_or_default())),
        Field::Ipv6 => words.put(Ipv6Addr::from(data.array::<16>().unwrap_or_default())),
        Field::Name(_) => name(words, data),
        Field::String => write_quoted(words.next()?, data.string().unwrap_or(&[])),
        Field::StringMaybe | Field::Strings => {
            while let Some(string) = data.string() {
                write_quoted(words.next()?, string)?;
            }
            Ok(())
        }
        Field::Tag => write_bare(words.next()?, data.string().unwrap_or(&[])),
        Field::Text => write_quoted(words.next()?, data.take_rest()),
        Field::Base64 | Field::Base64Maybe => words.base64(data.take_rest()),
        Field::Base64Dash => match data.take_rest() {
            [] => words.put("-"),
            octets => words.base64(octets),
        },
        Field::Base64Sized => {
            let len = data.u16().unwrap_or(0);
            words.put(len)?;
            words.base64(data.take(usize::from(len)).unwrap_or(&[]))
        }
        Field::Hex => words.hex(data.take_rest()),
        Field::Salt => match data.string().unwrap_or(&[]) {
            [] => words.put("-"),
            octets => words.hex(octets),
        },
        Field::Base32Hex => write_base32_hex(words.next()?, data.string().unwrap_or(&[])),
        Field::Types => {
            while let (Some(window), Some(map)) = (data.u8(), data.string()) {
                for bit in bits(map) {
                    words.put(Rtype((u16::from(window) << 8) | bit as u16))?;
                }
            }
            Ok(())
        }
        Field::TypesNxt => bits(data.take_rest()).try_for_each(|bit| words.put(Rtype(bit as u16))),
        Field::Ports => bits(data.take_rest()).try_for_each(|bit| words.put(bit)),
        Field::Nsap => {
            let out = words.next()?;
            out.write_str("0x")?;
            write_hex(out, data.take_rest())
        }
        Field::Atma => match data.take_rest() {
            [1, digits @ ..] => {
                let out = words.next()?;
                out.write_char('+')?;
                write_bare(out, digits)
            }
            [_, octets @ ..] => words.hex(octets),
            [] => Ok(()),
        },
        Field::Loc => loc::show(words.next()?, data.array().unwrap_or_default()),
        Field::Prefixes => {
            while let (Some(family), Some([prefix, len])) = (data.u16(), data.array()) {
                let sign = if len & 0x80 == 0 { "" } else { "!" };
                let octets = data.take(usize::from(len & 0x7f)).unwrap_or(&[]);
                match family {
                    1 => {
                        words
                            .put(format_args!("{sign}1:{}/{prefix}", Ipv4Addr::from(padded::<4>(octets))))?;
                    }
                    _ => words
                        .put(format_args!("{sign}2:{}/{prefix}", Ipv6Addr::from(padded::<16>(octets))))?,
                }
            }
            Ok(())
        }
        Field::SvcParams => svc::show(words, data.take_rest()),
        Field::Groups64 => {
            let octets: [u8; 8] = data.array().unwrap_or_default();
            let (groups, _) = octets.as_chunks::<2>();
            joined(words, groups.iter().map(|&group| format!("{:x}", u16::from_be_bytes(group))), ":")
        }
        Field::Eui48 => {
            joined(words, data.take(6).unwrap_or(&[]).iter().map(|octet| format!("{octet:02x}")), "-")
        }
        Field::Eui64 => {
            joined(words, data.take(8).unwrap_or(&[]).iter().map(|octet| format!("{octet:02x}")), "-")
        }
        Field::A6 => {
            let prefix = data.u8().unwrap_or(0);
            words.put(prefix)?;
            let suffix = data.take(16_usize.saturating_sub(usize::from(prefix) / 8)).unwrap_or(&[]);
            let mut address = [0; 16];
            address[16 - suffix.len()..].copy_from_slice(suffix);
            words.put(Ipv6Addr::from(address))?;
            if prefix > 0 { name(words, data) } else { Ok(()) }
        }
        Field::Ipseckey => {
            let [kind, algorithm] = data.array().unwrap_or_default();
            words.put(kind)?;
            words.put(algorithm)?;
            gateway(words, kind, data)?;
            words.base64(data.take_rest())
        }
        Field::Relay => {
            let kind = data.u8().unwrap_or(0);
            words.put(kind >> 7)?;
            words.put(kind & 0x7f)?;
            gateway(words, kind & 0x7f, data)
        }
        Field::Hip => {
            let [tag_len, algorithm] = data.array().unwrap_or_default();
            let key_len = data.u16().unwrap_or(0);
            words.put(algorithm)?;
            words.hex(data.take(usize::from(tag_len)).unwrap_or(&[]))?;
            words.base64(data.take(usize::from(key_len)).unwrap_or(&[]))?;
            while let Some(server) = data.name() {
                words.put(server)?;
            }
            Ok(())
        }
    }
}

fn name(words: &mut Words<'_, '_>, data: &mut Data<'_>) -> fmt::Result {
    words.put(data.name().unwrap_or(crate::name::NameBuf::root()))
}

fn gateway(words: &mut Words<'_, '_>, kind: u8, data: &mut Data<'_>) -> fmt::Result {
    match kind {
        1 => show(words, Field::Ipv4, data),
        2 => show(words, Field::Ipv6, data),
        3 => name(words, data),
        _ => words.put("."),
    }
}

fn joined(words: &mut Words<'_, '_>, parts: impl Iterator<Item = String>, separator: &str) -> fmt::Result {
    words.put(parts.collect::<Vec<_>>().join(separator))
}

/// Walks the set bits, the most significant of the first octet being 0.
fn bits(map: &[u8]) -> impl Iterator<Item = usize> {
    map.iter().enumerate().flat_map(|(i, octet)| {
        (0..8).filter(move |bit| octet & (0x80 >> bit) != 0).map(move |bit| i * 8 + bit)
    })
}

fn padded<const N: usize>(octets: &[u8]) -> [u8; N] {
    let mut all = [0; N];
    for (to, from) in all.iter_mut().zip(octets) {
        *to = *from;
    }
    all
}

/// Seconds since 1970 as `YYYYMMDDHHmmSS` (RFC 4034 §3.2).
struct Time(u32);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, seconds) = (self.0 / 86_400, self.0 % 86_400);
        let (year, month, day) = crate::calendar::date_of(days.into());
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
    }
}
