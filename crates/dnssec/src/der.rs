//! As much of DER (ITU-T X.690) as keys are written in: sequences, integers, octets, object
//! identifiers.

use zeroize::Zeroizing;

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;

/// Values one after the other.
#[derive(Clone, Copy)]
pub(crate) struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    pub(crate) const fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// Takes the next value, whatever it is: its tag and content.
    pub(crate) fn next_value(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (len, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (octets, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let len = octets.iter().fold(0_usize, |len, &octet| (len << 8) | usize::from(octet));
                (len, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// Takes the next value, which must have this tag.
    pub(crate) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next_value().filter(|&(found, _)| found == tag).map(|(_, content)| content)
    }

    /// Takes the next value, a sequence.
    pub(crate) fn sequence(&mut self) -> Option<Self> {
        self.expect(SEQUENCE).map(Self)
    }

    /// Takes the next value, an integer that is not negative; leading zeros are left out.
    pub(crate) fn integer(&mut self) -> Option<&'a [u8]> {
        let octets = self.expect(INTEGER)?;
        if octets.first()? & 0x80 != 0 { None } else { Some(crate::dnskey::without_zeros(octets)) }
    }
}

/// Appends a value.
pub(crate) fn push(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    out.push(tag);
    match content.len() {
        len @ 0..=0x7f => out.push(len as u8),
        len @ 0x80..=0xff => out.extend([0x81, len as u8]),
        len => {
            out.push(0x82);
            out.extend((len as u16).to_be_bytes());
        }
    }
    out.extend(content);
}

/// Returns a value whose content `write` writes; it is wiped when it is dropped.
pub(crate) fn value(tag: u8, write: impl FnOnce(&mut Vec<u8>)) -> Zeroizing<Vec<u8>> {
    // Room for the largest key, so that nothing is left behind where the vector grew out of.
    let mut content = Zeroizing::new(Vec::with_capacity(8192));
    write(&mut content);
    let mut out = Zeroizing::new(Vec::with_capacity(content.len() + 4));
    push(&mut out, tag, &content);
    out
}

/// Appends an integer that is not negative.
pub(crate) fn push_integer(out: &mut Vec<u8>, number: &[u8]) {
    let number = crate::dnskey::without_zeros(number);
    if number.first().is_none_or(|first| first & 0x80 != 0) {
        let padded = Zeroizing::new([&[0], number].concat());
        push(out, INTEGER, &padded);
    } else {
        push(out, INTEGER, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for len in [0_usize, 1, 127, 128, 255, 256, 5000] {
            let content = vec![7; len];
            let mut out = Vec::new();
            push(&mut out, OCTET_STRING, &content);
            let mut der = Der::new(&out);
            assert_eq!(der.expect(OCTET_STRING), Some(content.as_slice()));
            assert!(der.next_value().is_none());
        }
        for number in [&[][..], &[1], &[0x80], &[0xff, 0]] {
            let mut out = Vec::new();
            push_integer(&mut out, number);
            assert_eq!(Der::new(&out).integer(), Some(number));
        }
        for bad in [&[0x30][..], &[0x30, 1], &[0x30, 0x80], &[0x30, 0x85, 0, 0, 0, 0, 0], &[2, 1, 0x80]] {
            assert!(Der::new(bad).integer().is_none());
        }
    }
}
