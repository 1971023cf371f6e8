//! What a parent says of a child's key: DS and CDS (RFC 4034 §5, RFC 7344).

use aws_lc_rs::digest;
use wire::Name;

use crate::algorithm::{Algorithm, DigestType};
use crate::dnskey::Dnskey;

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
