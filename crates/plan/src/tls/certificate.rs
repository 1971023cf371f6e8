//! What we need to know about a certificate: for whom it is, until when it holds, and for which
//! names (RFC 5280 §4.1).

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use aws_lc_rs::digest::{SHA256, digest};

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Whom it is for, as RFC 4514 writes it: `CN=anna,O=Example`. Empty if it does not say.
    pub subject: String,
    /// From when it holds, in seconds since 1970.
    pub begins: i64,
    /// Until when.
    pub ends: i64,
    /// The names, addresses, mail addresses and URIs it is for (`subjectAltName`).
    pub names: Vec<String>,
    /// The hosts among them.
    pub hosts: Vec<String>,
    /// The SHA-256 of its public key (RFC 7858 §4.2).
    pub key: [u8; 32],
}

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const OID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERAL_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const SET: u8 = 0x31;
const KEY_IDENTIFIER: u8 = 0x80;
const MAIL_ADDRESS: u8 = 0x81;
const DNS_NAME: u8 = 0x82;
const URI: u8 = 0x86;
const IP_ADDRESS: u8 = 0x87;
/// 2.5.29.17, subjectAltName.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
/// 2.5.29.35, authorityKeyIdentifier.
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];

impl CertificateFacts {
    /// Reads a certificate in DER form; `None` if it is not one.
    pub fn parse(der: &[u8]) -> Option<Self> {
        read(der)
    }
}

/// Returns the octets that name a certificate among all (RFC 9773 §4.1): the key identifier of its
/// authority, and its serial number. `None` if it does not say which key its authority has.
pub fn renewal_id(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (certificate, _) = expect(der, SEQUENCE)?;
    let (mut rest, _) = expect(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        (_, _, rest) = element(rest)?;
    }
    let (serial, mut rest) = expect(rest, INTEGER)?;
    while let Some((tag, content, after)) = element(rest) {
        rest = after;
        if tag == EXTENSIONS {
            let (value, _) = expect(extension(content, AUTHORITY_KEY)?, SEQUENCE)?;
            let (key, _) = expect(value, KEY_IDENTIFIER)?;
            return Some((key, serial));
        }
    }
    None
}

fn read(der: &[u8]) -> Option<CertificateFacts> {
    let (certificate, _) = expect(der, SEQUENCE)?;
    let (signed, _) = expect(certificate, SEQUENCE)?;
    let mut rest = signed;
    if rest.first() == Some(&VERSION) {
        (_, _, rest) = element(rest)?;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        (_, _, rest) = element(rest)?;
    }
    let (validity, mut rest) = expect(rest, SEQUENCE)?;
    let (begins, after) = time(validity)?;
    let (ends, _) = time(after)?;
    let (name, after) = expect(rest, SEQUENCE)?;
    let subject = subject(name)?;
    let (_, _, behind_key) = element(after)?;
    let key = digest(&SHA256, after.get(..after.len() - behind_key.len())?);
    let key = key.as_ref().try_into().ok()?;
    rest = behind_key;
    let (mut names, mut hosts) = (Vec::new(), Vec::new());
    // Perhaps unique identifiers, extensions.
    while let Some((tag, content, after)) = element(rest) {
        if tag == EXTENSIONS {
            (names, hosts) = alternative_names(content).unwrap_or_default();
        }
        rest = after;
    }
    Some(CertificateFacts { subject, begins, ends, names, hosts, key })
}

/// Splits off one element: its tag, its content, and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk::<2>()?;
    let (len, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (octets, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if octets.is_empty() || octets.len() > 4 {
            return None;
        }
        (octets.iter().fold(0, |len, &octet| len << 8 | usize::from(octet)), rest)
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((tag, content, rest))
}

fn expect(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = element(bytes)?;
    (tag == wanted).then_some((content, rest))
}

/// Reads a time (RFC 5280 §4.1.2.5: always in UTC, always with seconds).
fn time(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (tag, content, rest) = element(bytes)?;
    let text = std::str::from_utf8(content).ok()?.strip_suffix('Z')?;
    let (year, text) = match tag {
        UTC_TIME => {
            let (year, text) = text.split_at_checked(2)?;
            let year: i64 = year.parse().ok()?;
            (if year >= 50 { 1900 + year } else { 2000 + year }, text)
        }
        GENERAL_TIME => {
            let (year, text) = text.split_at_checked(4)?;
            (year.parse().ok()?, text)
        }
        _ => return None,
    };
    let pair = |at: usize| text.get(at..at + 2)?.parse::<i64>().ok();
    let (month, day, hour, minute, second) = (pair(0)?, pair(2)?, pair(4)?, pair(6)?, pair(8)?);
    Some((wire::calendar::day_of(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second, rest))
}

/// Attributes that have short names in RFC 4514 §3, by their object identifiers (2.5.4.…, the LDAP
/// arc).
const ATTRIBUTES: [(&[u8], &str); 9] = [
    (&[0x55, 0x04, 0x03], "CN"),
    (&[0x55, 0x04, 0x07], "L"),
    (&[0x55, 0x04, 0x08], "ST"),
    (&[0x55, 0x04, 0x0a], "O"),
    (&[0x55, 0x04, 0x0b], "OU"),
    (&[0x55, 0x04, 0x06], "C"),
    (&[0x55, 0x04, 0x09], "STREET"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x19], "DC"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01], "UID"),
];

/// Returns a name as RFC 4514 writes it: the last part first.
fn subject(mut name: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    while !name.is_empty() {
        let (mut set, after) = expect(name, SET)?;
        name = after;
        let mut pairs = Vec::new();
        while !set.is_empty() {
            let (pair, after) = expect(set, SEQUENCE)?;
            set = after;
            let (kind, value) = expect(pair, OID)?;
            pairs.push(attribute(kind, value)?);
        }
        parts.push(pairs.join("+"));
    }
    parts.reverse();
    Some(parts.join(","))
}

/// Writes one attribute; what has no short name, or is no text, with digits (RFC 4514 §2.4).
fn attribute(kind: &[u8], value: &[u8]) -> Option<String> {
    const TEXTS: [u8; 4] = [0x0c, 0x13, 0x14, 0x16];
    let (tag, content, _) = element(value)?;
    let known = ATTRIBUTES.iter().find(|(octets, _)| *octets == kind);
    let text = std::str::from_utf8(content).ok().filter(|_| TEXTS.contains(&tag));
    if let (Some((_, short)), Some(text)) = (known, text) {
        return Some(format!("{short}={}", escaped(text)));
    }
    let mut out = known.map_or_else(|| dotted(kind), |(_, short)| (*short).to_owned());
    out.push_str("=#");
    for octet in value {
        let _ = write!(out, "{octet:02x}");
    }
    Some(out)
}

/// Writes an object identifier with dots.
fn dotted(kind: &[u8]) -> String {
    let mut arcs: Vec<u64> = Vec::new();
    let mut arc = 0_u64;
    for &octet in kind {
        arc = arc.checked_shl(7).unwrap_or(0) | u64::from(octet & 0x7f);
        if octet & 0x80 != 0 {
            continue;
        }
        if arcs.is_empty() {
            let first = (arc / 40).min(2);
            arcs.extend([first, arc - 40 * first]);
        } else {
            arcs.push(arc);
        }
        arc = 0;
    }
    arcs.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

/// Escapes what has a meaning in such a name (RFC 4514 §2.4).
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let last = text.chars().count().saturating_sub(1);
    for (at, letter) in text.chars().enumerate() {
        let is_special = matches!(letter, '"' | '+' | ',' | ';' | '<' | '>' | '\\')
            || (at == 0 && matches!(letter, ' ' | '#'))
            || (at == last && letter == ' ');
        if is_special {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

/// Returns all alternative names, and the hosts among them.
fn alternative_names(extensions: &[u8]) -> Option<(Vec<String>, Vec<String>)> {
    let (mut found, mut hosts) = (Vec::new(), Vec::new());
    let Some(value) = extension(extensions, ALTERNATIVE_NAMES) else { return Some((found, hosts)) };
    let (mut names, _) = expect(value, SEQUENCE)?;
    while let Some((tag, name, after)) = element(names) {
        names = after;
        if tag == DNS_NAME {
            hosts.extend(std::str::from_utf8(name).ok().map(str::to_owned));
        }
        match tag {
            DNS_NAME | MAIL_ADDRESS | URI => {
                found.extend(std::str::from_utf8(name).ok().map(str::to_owned));
            }
            IP_ADDRESS => found.extend(address(name)),
            _ => {}
        }
    }
    Some((found, hosts))
}

/// Returns the value of an extension; `None` if it is not there.
fn extension<'e>(extensions: &'e [u8], wanted: &[u8]) -> Option<&'e [u8]> {
    let (mut rest, _) = expect(extensions, SEQUENCE)?;
    while let Some((_, extension, after)) = element(rest) {
        rest = after;
        let (oid, mut value) = expect(extension, OID)?;
        if value.first() == Some(&BOOLEAN) {
            (_, _, value) = element(value)?;
        }
        if oid == wanted {
            return Some(expect(value, OCTETS)?.0);
        }
    }
    None
}

fn address(octets: &[u8]) -> Option<String> {
    if let Ok(octets) = <[u8; 4]>::try_from(octets) {
        return Some(Ipv4Addr::from(octets).to_string());
    }
    <[u8; 16]>::try_from(octets).ok().map(|octets| Ipv6Addr::from(octets).to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_in_both_forms() {
        let utc = b"\x17\x0d700101000001Z";
        assert_eq!(time(utc), Some((1, &b""[..])));
        let general = b"\x18\x0f20500101000000Z";
        assert_eq!(time(general), Some((2_524_608_000, &b""[..])));
        assert_eq!(time(b"\x17\x0d700101000001+"), None);
        assert_eq!(time(b"\x18\x0d700101000001Z").map(|(seconds, _)| seconds > 0), None);
    }

    #[test]
    fn subjects_are_written_as_rfc_4514_has_it() {
        let text = |kind: &[u8], value: &str| {
            let value = [&[0x0c, value.len() as u8][..], value.as_bytes()].concat();
            let kind = [&[OID, kind.len() as u8][..], kind].concat();
            [&[SEQUENCE, (kind.len() + value.len()) as u8][..], &kind, &value].concat()
        };
        let set = |pairs: &[Vec<u8>]| {
            let inner = pairs.concat();
            [&[SET, inner.len() as u8][..], &inner].concat()
        };
        let (name, organisation) = (&[0x55, 4, 3][..], &[0x55, 4, 10][..]);
        for (parts, expect) in [
            (vec![], ""),
            (vec![set(&[text(organisation, "Example")]), set(&[text(name, "anna")])], "CN=anna,O=Example"),
            (vec![set(&[text(name, "a"), text(organisation, "b")])], "CN=a+O=b"),
            (vec![set(&[text(name, " a,b ")])], "CN=\\ a\\,b\\ "),
            (
                vec![set(&[text(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "x")])],
                "1.2.840.113549.1.9.1=#0c0178",
            ),
        ] {
            assert_eq!(subject(&parts.concat()).as_deref(), Some(expect));
        }
        assert_eq!(subject(&[SET, 1]), None);
    }

    proptest! {
        #[test]
        fn no_octets_panic(octets in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&octets);
            let _ = time(&octets);
            let _ = subject(&octets);
        }
    }
}
