//! Service parameters of SVCB and HTTPS (RFC 9460 §2.1, §7, appendix A).
//!
//! # Limitations
//!
//! The keys after `tls-supported-groups` (`docpath`, `pvd` and later ones) are read and shown as
//! `key10` and so on.

use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::show::Words;
use super::strings;
use crate::text::{TextError, Token, Tokens, read_base64, write_bare, write_base64};

/// The key of a service parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SvcKey(pub u16);

impl SvcKey {
    /// Keys a client must understand.
    pub const MANDATORY: Self = Self(0);
    /// Application protocols.
    pub const ALPN: Self = Self(1);
    /// The default protocol is not supported.
    pub const NO_DEFAULT_ALPN: Self = Self(2);
    /// Another port.
    pub const PORT: Self = Self(3);
    /// IPv4 addresses.
    pub const IPV4HINT: Self = Self(4);
    /// Encrypted ClientHello.
    pub const ECH: Self = Self(5);
    /// IPv6 addresses.
    pub const IPV6HINT: Self = Self(6);
    /// The path of a DNS-over-HTTPS server (RFC 9461).
    pub const DOHPATH: Self = Self(7);
    /// Speaks Oblivious HTTP (RFC 9540).
    pub const OHTTP: Self = Self(8);
    /// TLS groups the server supports.
    pub const TLS_SUPPORTED_GROUPS: Self = Self(9);
}

const NAMES: &[&str] = &[
    "mandatory",
    "alpn",
    "no-default-alpn",
    "port",
    "ipv4hint",
    "ech",
    "ipv6hint",
    "dohpath",
    "ohttp",
    "tls-supported-groups",
];

impl fmt::Display for SvcKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.get(usize::from(self.0)) {
            Some(name) => f.write_str(name),
            None => write!(f, "key{}", self.0),
        }
    }
}

impl SvcKey {
    fn from_text(text: &str) -> Option<Self> {
        if let Some(number) = NAMES.iter().position(|name| *name == text) {
            return Some(Self(number as u16));
        }
        let digits = text.strip_prefix("key")?;
        // RFC 9460 §2.1: no leading zeros.
        let is_plain = digits == "0" || !digits.starts_with('0');
        let is_number = is_plain && digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number).map(Self)
    }
}

/// Takes the first parameter off.
fn split(octets: &[u8]) -> Option<(SvcKey, &[u8], &[u8])> {
    let (&[k0, k1, l0, l1], rest) = octets.split_first_chunk::<4>()?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))?;
    Some((SvcKey(u16::from_be_bytes([k0, k1])), value, rest))
}

/// Checks order and values.
pub(super) fn check(mut octets: &[u8]) -> Option<()> {
    let mut least = 0;
    while !octets.is_empty() {
        let (key, value, rest) = split(octets)?;
        if u32::from(key.0) < least || !is_value(key, value) {
            return None;
        }
        least = u32::from(key.0) + 1;
        octets = rest;
    }
    Some(())
}

fn is_value(key: SvcKey, value: &[u8]) -> bool {
    let is_list_of = |size| !value.is_empty() && value.len().is_multiple_of(size);
    match key {
        // RFC 9460 §8: ascending, without itself.
        SvcKey::MANDATORY => {
            let keys: Vec<u16> = words(value).collect();
            is_list_of(2) && keys[0] != 0 && keys.is_sorted_by(|a, b| a < b)
        }
        SvcKey::ALPN => is_list_of(1) && strings(value).is_some() && ids(value).all(|id| !id.is_empty()),
        SvcKey::NO_DEFAULT_ALPN | SvcKey::OHTTP => value.is_empty(),
        SvcKey::PORT => value.len() == 2,
        SvcKey::IPV4HINT => is_list_of(4),
        SvcKey::ECH | SvcKey::DOHPATH => is_list_of(1),
        SvcKey::IPV6HINT => is_list_of(16),
        SvcKey::TLS_SUPPORTED_GROUPS => is_list_of(2),
        _ => true,
    }
}

/// Returns what parameters that are right one by one say against each other.
pub(super) fn contradiction(params: &[u8]) -> Option<&'static str> {
    let all = || {
        let mut rest = params;
        std::iter::from_fn(move || {
            let (key, value, after) = split(rest)?;
            rest = after;
            Some((key, value))
        })
    };
    for (key, value) in all() {
        match key {
            // RFC 9460 §8: they must be there.
            SvcKey::MANDATORY if words(value).any(|wanted| all().all(|(key, _)| key.0 != wanted)) => {
                return Some("a key in \"mandatory\" is not there (RFC 9460 §8)");
            }
            SvcKey::NO_DEFAULT_ALPN if all().all(|(key, _)| key != SvcKey::ALPN) => {
                return Some("\"no-default-alpn\" without \"alpn\" (RFC 9460 §7.1.1)");
            }
            SvcKey::TLS_SUPPORTED_GROUPS => {
                let is_double = |(at, group): (usize, u16)| words(value).take(at).any(|other| other == group);
                if words(value).enumerate().any(is_double) {
                    return Some("a group is in \"tls-supported-groups\" twice");
                }
            }
            _ => {}
        }
    }
    None
}

fn words(value: &[u8]) -> impl Iterator<Item = u16> {
    value.as_chunks::<2>().0.iter().map(|&word| u16::from_be_bytes(word))
}

fn ids(mut value: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (&len, rest) = value.split_first()?;
        let (id, rest) = rest.split_at_checked(usize::from(len))?;
        value = rest;
        Some(id)
    })
}

pub(super) fn show(out: &mut Words<'_, '_>, mut octets: &[u8]) -> fmt::Result {
    while let Some((key, value, rest)) = split(octets) {
        octets = rest;
        let f = out.next()?;
        write!(f, "{key}")?;
        if value.is_empty() {
            continue;
        }
        f.write_char('=')?;
        match key {
            SvcKey::MANDATORY => listed(f, words(value).map(SvcKey))?,
            SvcKey::TLS_SUPPORTED_GROUPS | SvcKey::PORT => listed(f, words(value))?,
            SvcKey::IPV4HINT => {
                listed(f, value.as_chunks::<4>().0.iter().map(|&octets| Ipv4Addr::from(octets)))?;
            }
            SvcKey::IPV6HINT => {
                listed(f, value.as_chunks::<16>().0.iter().map(|&octets| Ipv6Addr::from(octets)))?;
            }
            SvcKey::ECH => write_base64(f, value)?,
            SvcKey::ALPN => {
                // RFC 9460 A.1: commas and backslashes of an item are escaped, then the whole as a
                // string.
                let mut list = Vec::new();
                for (i, id) in ids(value).enumerate() {
                    if i > 0 {
                        list.push(b',');
                    }
                    for &octet in id {
                        if matches!(octet, b',' | b'\\') {
                            list.push(b'\\');
                        }
                        list.push(octet);
                    }
                }
                write_bare(f, &list)?;
            }
            _ => write_bare(f, value)?,
        }
    }
    Ok(())
}

fn listed(f: &mut impl Write, items: impl Iterator<Item = impl fmt::Display>) -> fmt::Result {
    for (i, item) in items.enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(f, "{comma}{item}")?;
    }
    Ok(())
}

/// Reads the remaining words as parameters, in any order; none may come twice.
pub(super) fn read(tokens: &mut Tokens<'_>, out: &mut Vec<u8>) -> Result<(), TextError> {
    let mut params: Vec<(SvcKey, Vec<u8>)> = Vec::new();
    while let Some(token) = tokens.next_token()? {
        let (key_text, value) = match token.text.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (token.text, None),
        };
        let key = SvcKey::from_text(key_text).filter(|_| !token.is_quoted);
        let key = key.ok_or_else(|| token.expected("a service parameter such as alpn=h2"))?;
        if params.iter().any(|(known, _)| *known == key) {
            return Err(token.expected("each parameter once"));
        }
        let value = value.unwrap_or("");
        let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let value_token = Token {
            at: token.at + token.text.len() - value.len(),
            text: quoted.unwrap_or(value),
            is_quoted: quoted.is_some(),
        };
        let octets = read_value(key, &value_token.octets()?)
            .filter(|octets| octets.len() <= usize::from(u16::MAX) && is_value(key, octets))
            .ok_or_else(|| value_token.expected(form(key)))?;
        params.push((key, octets));
    }
    params.sort_unstable_by_key(|(key, _)| *key);
    for (key, octets) in params {
        out.extend(key.0.to_be_bytes());
        out.extend((octets.len() as u16).to_be_bytes());
        out.extend(octets);
    }
    Ok(())
}

/// Says what a key's value looks like.
const fn form(key: SvcKey) -> &'static str {
    match key {
        SvcKey::MANDATORY => "a list of other keys, each once",
        SvcKey::ALPN => "a list of protocols such as h2,h3",
        SvcKey::NO_DEFAULT_ALPN | SvcKey::OHTTP => "no value",
        SvcKey::PORT => "a port",
        SvcKey::IPV4HINT => "a list of IPv4 addresses",
        SvcKey::ECH => "Base64",
        SvcKey::IPV6HINT => "a list of IPv6 addresses",
        SvcKey::DOHPATH => "a path",
        SvcKey::TLS_SUPPORTED_GROUPS => "a list of group numbers",
        _ => "at most 65535 octets",
    }
}

/// Turns the octets of a value's string into its wire form.
fn read_value(key: SvcKey, value: &[u8]) -> Option<Vec<u8>> {
    let text = || std::str::from_utf8(value).ok();
    let items = || text().map(|text| text.split(','));
    let number = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok())?;
    match key {
        SvcKey::MANDATORY => {
            let mut keys: Vec<SvcKey> = items()?.map(SvcKey::from_text).collect::<Option<_>>()?;
            keys.sort_unstable();
            Some(keys.iter().flat_map(|key| key.0.to_be_bytes()).collect())
        }
        SvcKey::ALPN => {
            let mut out = Vec::new();
            for id in split_items(value)? {
                out.push(u8::try_from(id.len()).ok()?);
                out.extend(id);
            }
            Some(out)
        }
        SvcKey::PORT => number(text()?).map(|port: u16| port.to_be_bytes().to_vec()),
        SvcKey::TLS_SUPPORTED_GROUPS => {
            let groups: Vec<u16> = items()?.map(number).collect::<Option<_>>()?;
            Some(groups.iter().flat_map(|group| group.to_be_bytes()).collect())
        }
        SvcKey::IPV4HINT => {
            let hints: Vec<Ipv4Addr> = items()?.map(|item| item.parse().ok()).collect::<Option<_>>()?;
            Some(hints.iter().flat_map(Ipv4Addr::octets).collect())
        }
        SvcKey::IPV6HINT => {
            let hints: Vec<Ipv6Addr> = items()?.map(|item| item.parse().ok()).collect::<Option<_>>()?;
            Some(hints.iter().flat_map(Ipv6Addr::octets).collect())
        }
        SvcKey::ECH => read_base64(value),
        _ => Some(value.to_vec()),
    }
}

/// Cuts a list at its commas; `\,` and `\\` stand for the character (RFC 9460 A.1).
fn split_items(value: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut items = vec![Vec::new()];
    let mut octets = value.iter();
    while let Some(&octet) = octets.next() {
        match octet {
            b',' => items.push(Vec::new()),
            b'\\' => items.last_mut()?.push(*octets.next()?),
            _ => items.last_mut()?.push(octet),
        }
    }
    Some(items)
}
