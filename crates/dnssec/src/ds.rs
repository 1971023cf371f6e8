//! A parent's record of a child's key: DS and CDS (RFC 4034 §5, RFC 7344).

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest;
use wire::Name;

use crate::algorithm::Algorithm;
use crate::dnskey::Dnskey;

/// A digest that DS records are made with (IANA "DS RR Type Digest Algorithms").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DigestType(pub u8);

impl DigestType {
    /// SHA-1 (RFC 3658): checked, no longer recommended (RFC 9905).
    pub const SHA1: Self = Self(1);
    /// SHA-256 (RFC 4509).
    pub const SHA256: Self = Self(2);
    /// SHA-384 (RFC 6605).
    pub const SHA384: Self = Self(4);

    /// The digests that are known here.
    pub const SUPPORTED: [(Self, &'static str); 3] =
        [(Self::SHA1, "SHA-1"), (Self::SHA256, "SHA-256"), (Self::SHA384, "SHA-384")];

    pub(crate) fn digest(self) -> Option<&'static digest::Algorithm> {
        match self {
            Self::SHA1 => Some(&digest::SHA1_FOR_LEGACY_USE_ONLY),
            Self::SHA256 => Some(&digest::SHA256),
            Self::SHA384 => Some(&digest::SHA384),
            _ => None,
        }
    }

    /// Returns whether this digest can be computed.
    pub fn is_supported(self) -> bool {
        self.digest().is_some()
    }
}

impl fmt::Display for DigestType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::SUPPORTED.iter().find(|(known, _)| known == self) {
            Some((_, name)) => f.pad(name),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl FromStr for DigestType {
    type Err = wire::numbers::Unknown;

    /// Reads a known digest: its name in any letter case, with or without hyphens, or its number.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain: String = text.chars().filter(|&c| c != '-').collect();
        Self::SUPPORTED
            .iter()
            .find(|(known, name)| {
                name.replace('-', "").eq_ignore_ascii_case(&plain) || plain == known.0.to_string()
            })
            .map(|&(known, _)| known)
            .ok_or(wire::numbers::Unknown)
    }
}

/// The data of a DS or CDS record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ds<'a> {
    /// The tag of the key.
    pub tag: u16,
    /// The algorithm of the key.
    pub algorithm: Algorithm,
    /// How the digest was made.
    pub digest_type: DigestType,
    /// The digest.
    pub digest: &'a [u8],
}

impl<'a> Ds<'a> {
    /// Takes the data of a DS or CDS; `None` if it has no digest.
    pub fn parse(rdata: &'a [u8]) -> Option<Self> {
        let (&[t0, t1, algorithm, digest_type], digest) = rdata.split_first_chunk::<4>()?;
        (!digest.is_empty()).then_some(Self {
            tag: u16::from_be_bytes([t0, t1]),
            algorithm: Algorithm(algorithm),
            digest_type: DigestType(digest_type),
            digest,
        })
    }

    /// Returns the data of the DS for a key; `None` if the digest is not known.
    pub fn write(owner: Name<'_>, key: Dnskey<'_>, digest_type: DigestType) -> Option<Vec<u8>> {
        let digest = digest::digest(digest_type.digest()?, &key.digested(owner));
        let mut rdata = Vec::with_capacity(4 + digest.as_ref().len());
        rdata.extend(key.tag().to_be_bytes());
        rdata.extend([key.algorithm().0, digest_type.0]);
        rdata.extend(digest.as_ref());
        Some(rdata)
    }

    /// Returns whether this DS stands for a key. A digest that is not known stands for none.
    pub fn is_of(&self, owner: Name<'_>, key: Dnskey<'_>) -> bool {
        // The cheap questions come first: a digest is only made when tag and algorithm agree.
        self.tag == key.tag()
            && self.algorithm == key.algorithm()
            && self.digest_type.digest().is_some_and(|algorithm| {
                digest::digest(algorithm, &key.digested(owner)).as_ref() == self.digest
            })
    }
}

/// Returns the data of the CDS that asks the parent to remove all DS (RFC 8078 §4).
pub fn write_delete_cds() -> Vec<u8> {
    vec![0, 0, 0, 0, 0]
}

/// Returns the data of the CDNSKEY that asks the parent to remove all DS (RFC 8078 §4).
pub fn write_delete_cdnskey() -> Vec<u8> {
    vec![0, 0, 3, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_by_name_and_number() {
        for (text, expect) in [("sha-256", Some(2)), ("SHA384", Some(4)), ("2", Some(2)), ("3", None)] {
            assert_eq!(text.parse::<DigestType>().ok().map(|digest| digest.0), expect, "{text}");
        }
    }
}
