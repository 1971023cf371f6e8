//! The data of RRSIG records (RFC 4034 §3).

use wire::serial::is_newer;
use wire::{Name, Rtype};

use crate::algorithm::Algorithm;
use crate::verify::Skew;

/// The data of an RRSIG.
#[derive(Clone, Copy, Debug)]
pub struct Rrsig<'a> {
    /// The type of the RRset.
    pub covered: Rtype,
    /// How it was signed.
    pub algorithm: Algorithm,
    /// Labels of the owner that was signed, without the root and a leading `*`.
    pub labels: u8,
    /// The TTL that the RRset was signed with.
    pub original_ttl: u32,
    /// The last second it is good for, modulo 2^32.
    pub expiration: u32,
    /// The first second it is good for, modulo 2^32.
    pub inception: u32,
    /// The tag of the key.
    pub tag: u16,
    /// The zone whose key it is.
    pub signer: Name<'a>,
    /// The signature.
    pub signature: &'a [u8],
}

impl<'a> Rrsig<'a> {
    /// Takes the data of an RRSIG, the signer's name in full.
    pub fn parse(rdata: &'a [u8]) -> Option<Self> {
        let (&[c0, c1, algorithm, labels, ref numbers @ ..], rest) = rdata.split_first_chunk::<18>()?;
        let &[o0, o1, o2, o3, e0, e1, e2, e3, i0, i1, i2, i3, t0, t1] = numbers;
        let (signer, signature) = Name::parse(rest).ok()?;
        Some(Self {
            covered: Rtype(u16::from_be_bytes([c0, c1])),
            algorithm: Algorithm(algorithm),
            labels,
            original_ttl: u32::from_be_bytes([o0, o1, o2, o3]),
            expiration: u32::from_be_bytes([e0, e1, e2, e3]),
            inception: u32::from_be_bytes([i0, i1, i2, i3]),
            tag: u16::from_be_bytes([t0, t1]),
            signer,
            signature,
        })
    }

    /// Appends the data up to the signature, the signer in canonical form.
    pub(crate) fn write_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.covered.0.to_be_bytes());
        out.extend_from_slice(&[self.algorithm.0, self.labels]);
        for number in [self.original_ttl, self.expiration, self.inception] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&self.tag.to_be_bytes());
        out.extend_from_slice(self.signer.to_folded().as_bytes());
    }

    /// Returns the data.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(18 + self.signer.len() + self.signature.len());
        self.write_head(&mut out);
        out.extend_from_slice(self.signature);
        out
    }

    /// Returns whether it has begun and not ended, by clocks that may be wrong; without a time it
    /// has.
    pub const fn is_good_at(&self, now: Option<u32>, skew: Skew) -> bool {
        let (begins, ends) = skew.span_of(self.inception, self.expiration);
        match now {
            Some(now) => !is_newer(begins, now) && !is_newer(now, ends),
            None => true,
        }
    }

    /// Returns the seconds that remain at `now`; 0 if it has expired.
    pub const fn remaining(&self, now: u32) -> u32 {
        if is_newer(self.expiration, now) { self.expiration.wrapping_sub(now) } else { 0 }
    }
}
