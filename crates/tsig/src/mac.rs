//! Message authentication codes: HMAC (RFC 2104) over what is fed in piece by piece.

use aws_lc_rs::{constant_time, hmac};
use md5::{Digest as _, Md5};

use crate::key::Algorithm;

/// Octets of a block of MD5.
const MD5_BLOCK_OCTETS: usize = 64;
/// Octets of the longest MAC.
pub(crate) const MAC_OCTETS_MAX: usize = 64;

/// A secret, prepared for an algorithm.
pub(crate) enum Prepared {
    /// The library has it. It is several times as large as the other.
    Sha(Box<hmac::Key>),
    /// It does not have MD5: what the inner and the outer hash begin with.
    Md5 { inner: Md5, outer: Md5 },
}

/// A MAC in the making.
#[derive(Clone)]
pub(crate) enum Digest {
    Sha(Box<hmac::Context>),
    Md5 { inner: Md5, outer: Md5 },
}

/// A MAC.
#[derive(Clone, Copy)]
pub(crate) struct Mac {
    octets: [u8; MAC_OCTETS_MAX],
    len: usize,
}

impl Prepared {
    pub(crate) fn new(algorithm: Algorithm, secret: &[u8]) -> Self {
        let sha = match algorithm {
            Algorithm::Md5 => return Self::md5(secret),
            Algorithm::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Algorithm::Sha224 => hmac::HMAC_SHA224,
            Algorithm::Sha256 => hmac::HMAC_SHA256,
            Algorithm::Sha384 => hmac::HMAC_SHA384,
            Algorithm::Sha512 => hmac::HMAC_SHA512,
        };
        Self::Sha(Box::new(hmac::Key::new(sha, secret)))
    }

    fn md5(secret: &[u8]) -> Self {
        let mut block = [0; MD5_BLOCK_OCTETS];
        let hashed;
        let secret = if secret.len() > MD5_BLOCK_OCTETS {
            hashed = Md5::digest(secret);
            &hashed[..]
        } else {
            secret
        };
        block[..secret.len()].copy_from_slice(secret);
        let begun = |pad: u8| Md5::new().chain_update(block.map(|octet| octet ^ pad));
        Self::Md5 { inner: begun(0x36), outer: begun(0x5c) }
    }

    pub(crate) fn begin(&self) -> Digest {
        match self {
            Self::Sha(key) => Digest::Sha(Box::new(hmac::Context::with_key(key))),
            Self::Md5 { inner, outer } => Digest::Md5 { inner: inner.clone(), outer: outer.clone() },
        }
    }
}

impl Digest {
    pub(crate) fn feed(&mut self, octets: &[u8]) {
        match self {
            Self::Sha(context) => context.update(octets),
            Self::Md5 { inner, .. } => inner.update(octets),
        }
    }

    pub(crate) fn finish(self) -> Mac {
        match self {
            Self::Sha(context) => Mac::new(context.sign().as_ref()),
            Self::Md5 { inner, outer } => Mac::new(&outer.chain_update(inner.finalize()).finalize()),
        }
    }
}

impl Mac {
    /// Keeps the first octets of a MAC.
    pub(crate) fn new(octets: &[u8]) -> Self {
        let len = octets.len().min(MAC_OCTETS_MAX);
        let mut mac = Self { octets: [0; MAC_OCTETS_MAX], len };
        mac.octets[..len].copy_from_slice(&octets[..len]);
        mac
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.octets[..self.len]
    }

    #[must_use]
    pub(crate) fn cut_to(self, len: usize) -> Self {
        Self { len: len.min(self.len), ..self }
    }

    /// Returns whether `other` is this MAC, or as much of it as there is; takes the same time
    /// whatever differs.
    pub(crate) fn begins_with(&self, other: &[u8]) -> bool {
        self.octets
            .get(..other.len())
            .is_some_and(|own| constant_time::verify_slices_are_equal(own, other).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(algorithm: Algorithm, secret: &[u8], text: &[u8], expect: &str) {
        let mut digest = Prepared::new(algorithm, secret).begin();
        // However it is cut.
        for piece in text.chunks(7) {
            digest.feed(piece);
        }
        let mac: String = digest.finish().as_bytes().iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(mac, expect, "{algorithm:?}");
    }

    #[test]
    fn macs_are_those_of_rfc_2202_and_4231() {
        // RFC 2202 §2 and §3, cases 2 and 6.
        let question = b"what do ya want for nothing?";
        check(Algorithm::Md5, b"Jefe", question, "750c783e6ab0b503eaa86e310a5db738");
        check(Algorithm::Sha1, b"Jefe", question, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
        let long = b"Test Using Larger Than Block-Size Key - Hash Key First";
        check(Algorithm::Md5, &[0xaa; 80], long, "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd");
        check(Algorithm::Sha1, &[0xaa; 80], long, "aa4ae5e15272d00e95705637ce8a3b55ed402112");
        // RFC 4231 §4.3.
        check(
            Algorithm::Sha224,
            b"Jefe",
            question,
            "a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44",
        );
        check(
            Algorithm::Sha256,
            b"Jefe",
            question,
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        );
        check(
            Algorithm::Sha384,
            b"Jefe",
            question,
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
        );
        check(
            Algorithm::Sha512,
            b"Jefe",
            question,
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
             9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
        );
    }
}
