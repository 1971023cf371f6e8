//! Public keys as DNSKEY and CDNSKEY records hold them (RFC 4034 §2).

use wire::Name;

use crate::algorithm::Algorithm;

/// Flag of DNSKEY: the key signs zones (RFC 4034 §2.1.1).
pub const ZONE_KEY: u16 = 0x0100;
/// Flag of DNSKEY: the key is revoked (RFC 5011 §2.1).
pub const REVOKED: u16 = 0x0080;
/// Flag of DNSKEY: the key is a secure entry point (RFC 4034 §2.1.1).
pub const ENTRY_POINT: u16 = 0x0001;

/// Octets of DNSKEY data before the key.
const HEAD: usize = 4;

/// The data of a DNSKEY: flags, protocol, algorithm and a key of at least one octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dnskey<'a>(&'a [u8]);

impl<'a> Dnskey<'a> {
    /// Takes the data of a DNSKEY or CDNSKEY; `None` if it has no key.
    pub fn parse(rdata: &'a [u8]) -> Option<Self> {
        (rdata.len() > HEAD).then_some(Self(rdata))
    }

    /// Returns the data of a DNSKEY with this key.
    pub fn write(flags: u16, algorithm: Algorithm, key: &[u8]) -> Vec<u8> {
        let mut rdata = Vec::with_capacity(HEAD + key.len());
        rdata.extend(flags.to_be_bytes());
        rdata.extend([3, algorithm.0]);
        rdata.extend(key);
        rdata
    }

    fn head(self) -> [u8; HEAD] {
        self.0.first_chunk().copied().unwrap_or_default()
    }

    /// Returns the whole data.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the flags.
    pub fn flags(self) -> u16 {
        let [high, low, ..] = self.head();
        u16::from_be_bytes([high, low])
    }

    /// Returns the algorithm.
    pub fn algorithm(self) -> Algorithm {
        let [.., algorithm] = self.head();
        Algorithm(algorithm)
    }

    /// Returns the key itself.
    pub fn key(self) -> &'a [u8] {
        self.0.get(HEAD..).unwrap_or(&[])
    }

    /// Returns whether this key may check signatures of zone data: a zone key, of protocol 3, not
    /// revoked (RFC 4034 §2.1, RFC 5011 §2.1).
    pub fn signs_zones(self) -> bool {
        let [_, _, protocol, _] = self.head();
        self.flags() & (ZONE_KEY | REVOKED) == ZONE_KEY && protocol == 3
    }

    /// Returns whether the key is a secure entry point.
    pub fn is_entry_point(self) -> bool {
        self.flags() & ENTRY_POINT != 0
    }

    /// Returns the key tag (RFC 4034 appendix B). Different keys may have the same.
    pub fn tag(self) -> u16 {
        let sum: u32 = self
            .0
            .iter()
            .enumerate()
            .map(|(i, &octet)| if i % 2 == 0 { u32::from(octet) << 8 } else { u32::from(octet) })
            .fold(0, u32::wrapping_add);
        (sum + (sum >> 16)) as u16
    }

    /// Returns the octets that a DS's digest covers: owner in canonical form, then the data (RFC
    /// 4034 §5.1.4).
    pub(crate) fn digested(self, owner: Name<'_>) -> Vec<u8> {
        [owner.to_folded().as_bytes(), self.0].concat()
    }
}

/// An RSA key taken apart (RFC 3110 §2); neither part begins with a zero octet.
pub(crate) struct RsaParts<'a> {
    pub(crate) exponent: &'a [u8],
    pub(crate) modulus: &'a [u8],
}

impl<'a> RsaParts<'a> {
    /// Reads the key field of a DNSKEY.
    pub(crate) fn parse(key: &'a [u8]) -> Option<Self> {
        let (len, rest) = match key {
            [0, high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
            [len @ 1..=u8::MAX, rest @ ..] => (usize::from(*len), rest),
            _ => return None,
        };
        let (exponent, modulus) = rest.split_at_checked(len)?;
        let (exponent, modulus) = (without_zeros(exponent), without_zeros(modulus));
        (!exponent.is_empty() && !modulus.is_empty()).then_some(Self { exponent, modulus })
    }

    /// Returns the key field of a DNSKEY.
    pub(crate) fn write(&self) -> Vec<u8> {
        let len = self.exponent.len();
        let mut key = Vec::with_capacity(len + self.modulus.len() + 3);
        match u8::try_from(len) {
            Ok(len @ 1..) => key.push(len),
            _ => {
                key.push(0);
                key.extend((len as u16).to_be_bytes());
            }
        }
        key.extend(self.exponent);
        key.extend(self.modulus);
        key
    }
}

/// Returns the key field of an RSA key's DNSKEY, of big-endian numbers.
pub fn write_rsa(exponent: &[u8], modulus: &[u8]) -> Vec<u8> {
    RsaParts { exponent: without_zeros(exponent), modulus: without_zeros(modulus) }.write()
}

/// Returns a big-endian number without leading zeros.
pub(crate) fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|&&octet| octet == 0).count();
    number.get(zeros..).unwrap_or(&[])
}
