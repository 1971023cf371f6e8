//! The part of a certificate that is signed, which the library does not show.

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
