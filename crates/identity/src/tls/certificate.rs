//! What the library does not say of a certificate: its times, and the part that is signed.

use wire::calendar::existing_day;

/// Returns the first and the last second of a certificate's life (RFC 5280 §4.1.2.5).
pub(super) fn validity(certificate: &[u8]) -> Option<(u64, u64)> {
    let (_, certificate, _) = value(certificate)?;
    let (_, signed, _) = value(certificate)?;
    // Version (which the first one lacks), serial number, algorithm, issuer, validity.
    let (tag, _, rest) = value(signed)?;
    let rest = if tag == 0xa0 { value(rest)?.2 } else { rest };
    let (_, _, rest) = value(rest)?;
    let (_, _, rest) = value(rest)?;
    let (_, validity, _) = value(rest)?;
    let (tag, not_before, rest) = value(validity)?;
    let not_before = moment(tag, not_before)?;
    let (tag, not_after, _) = value(rest)?;
    Some((not_before, moment(tag, not_after)?))
}

/// Reads one DER value: its tag, its content, and what follows it.
fn value(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let &tag = der.first()?;
    let (header, octets) = length(der)?;
    Some((tag, der.get(header..octets)?, der.get(octets..)?))
}

/// Reads a UTCTime or a GeneralizedTime in the form that certificates have.
fn moment(tag: u8, text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"Z")?;
    let number = |from: usize, count: usize| {
        let digits = std::str::from_utf8(digits.get(from..from + count)?).ok()?;
        digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse::<u32>().ok())?
    };
    let (year, at) = match (tag, digits.len()) {
        // RFC 5280 §4.1.2.5.1: two digits are of 1950 to 2049.
        (0x17, 12) => (number(0, 2).map(|year| if year < 50 { 2000 + year } else { 1900 + year })?, 2),
        (0x18, 14) => (number(0, 4)?, 4),
        _ => return None,
    };
    let day = if year < 1970 { 0 } else { existing_day(year, number(at, 2)?, number(at + 2, 2)?)? };
    let (hour, minute, second) = (number(at + 4, 2)?, number(at + 6, 2)?, number(at + 8, 2)?);
    Some(u64::from(day) * 86_400 + u64::from(hour) * 3600 + u64::from(minute) * 60 + u64::from(second))
}

/// Returns the part of a certificate that its issuer signs, the first of the sequence that it is
/// (RFC 5280 §4.1).
pub(super) fn to_be_signed(certificate: &[u8]) -> Option<&[u8]> {
    let (header, octets) = element(certificate)?;
    let content = certificate.get(header..octets)?;
    let (_, octets) = element(content)?;
    content.get(..octets)
}

/// Reads the head of a DER sequence; returns the octets of the head, and of all.
fn element(der: &[u8]) -> Option<(usize, usize)> {
    const SEQUENCE: u8 = 0x30;
    if *der.first()? == SEQUENCE { length(der) } else { None }
}

/// Reads the head of any DER value in the same way.
fn length(der: &[u8]) -> Option<(usize, usize)> {
    let (&[_, first], rest) = der.split_first_chunk::<2>()?;
    if first < 0x80 {
        return Some((2, 2 + usize::from(first)));
    }
    // Longer ones say in how many octets the length follows; certificates are far below 16 MiB.
    let count = usize::from(first & 0x7f);
    let length = rest.get(..count).filter(|_| (1..=3).contains(&count))?;
    let length = length.iter().fold(0, |length, &octet| length << 8 | usize::from(octet));
    Some((2 + count, 2 + count + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_the_first_part_of_a_certificate() {
        assert_eq!(to_be_signed(b"\x30\x05\x30\x01\x07\x05\x00"), Some(&b"\x30\x01\x07"[..]));
        let long = [&b"\x30\x82\x01\x04\x30\x82\x01\x00"[..], &[7; 256]].concat();
        assert_eq!(to_be_signed(&long), Some(&long[4..]));
        for bad in [&b""[..], b"\x30", b"\x31\x00", b"\x30\x02\x30\x05", b"\x30\x84\0\0\0\0", b"\x30\x80\0\0"]
        {
            assert_eq!(to_be_signed(bad), None, "{bad:02x?}");
        }
    }
}
