//! What we need to know about a certificate: until when it holds, and for which names (RFC 5280 §4.1).

use std::net::{Ipv4Addr, Ipv6Addr};

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// From when it holds, in seconds since 1970.
    pub(super) begins: i64,
    /// Until when.
    pub(super) ends: i64,
    /// The names and addresses it is for.
    pub(super) names: Vec<String>,
}

const BOOLEAN: u8 = 0x01;
const OID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERAL_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;
/// 2.5.29.17, subjectAltName.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// Reads a certificate in DER form; `None` if it is not one.
pub(super) fn read(der: &[u8]) -> Option<Facts> {
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
    let mut names = Vec::new();
    // Subject and key, perhaps unique identifiers, extensions.
    while let Some((tag, content, after)) = element(rest) {
        if tag == EXTENSIONS {
            names = alternative_names(content).unwrap_or_default();
        }
        rest = after;
    }
    Some(Facts { begins, ends, names })
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
    Some((days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second, rest))
}

/// Returns the days from 1970-01-01 to a day of the Gregorian calendar.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that a leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

fn alternative_names(extensions: &[u8]) -> Option<Vec<String>> {
    let (mut rest, _) = expect(extensions, SEQUENCE)?;
    while let Some((_, extension, after)) = element(rest) {
        rest = after;
        let (oid, mut value) = expect(extension, OID)?;
        if value.first() == Some(&BOOLEAN) {
            (_, _, value) = element(value)?;
        }
        if oid != ALTERNATIVE_NAMES {
            continue;
        }
        let (value, _) = expect(value, OCTETS)?;
        let (mut names, _) = expect(value, SEQUENCE)?;
        let mut found = Vec::new();
        while let Some((tag, name, after)) = element(names) {
            names = after;
            match tag {
                DNS_NAME => found.extend(std::str::from_utf8(name).ok().map(str::to_owned)),
                IP_ADDRESS => found.extend(address(name)),
                _ => {}
            }
        }
        return Some(found);
    }
    Some(Vec::new())
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
    fn days_are_counted_from_1970() {
        for (date, expect) in [
            ((1970, 1, 1), 0),
            ((1970, 12, 31), 364),
            ((2000, 2, 29), 11_016),
            ((2000, 3, 1), 11_017),
            ((2026, 11, 20), 20_777),
            ((1969, 12, 31), -1),
        ] {
            let (year, month, day) = date;
            assert_eq!(days(year, month, day), expect, "{date:?}");
        }
    }

    #[test]
    fn times_are_read_in_both_forms() {
        let utc = b"\x17\x0d700101000001Z";
        assert_eq!(time(utc), Some((1, &b""[..])));
        let general = b"\x18\x0f20500101000000Z";
        assert_eq!(time(general), Some((2_524_608_000, &b""[..])));
        assert_eq!(time(b"\x17\x0d700101000001+"), None);
        assert_eq!(time(b"\x18\x0d700101000001Z").map(|(seconds, _)| seconds > 0), None);
    }

    proptest! {
        #[test]
        fn no_octets_panic(octets in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&octets);
            let _ = time(&octets);
        }
    }
}
