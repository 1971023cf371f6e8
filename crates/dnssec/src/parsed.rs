//! Public keys that signatures are checked with: parsed for each check, or once for many.

use std::sync::OnceLock;

use aws_lc_rs::signature as lc;
use ed448_goldilocks::{Signature, VerifyingKey};

use crate::algorithm::Algorithm;
use crate::dnskey::{Dnskey, RsaParts};

/// Bits that an RSA key has at least and at most.
const RSA_BITS: std::ops::RangeInclusive<usize> = 1024..=8192;
/// Octets that an RSA exponent may have: larger ones only cost time.
const RSA_EXPONENT_OCTETS_MAX: usize = 4;

/// How a signature fared with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Algorithm or key are not known here.
    Unsupported,
    /// The signature is wrong.
    Wrong,
}

/// A key of a DNSKEY record, as [`verify_rrset`](crate::verify_rrset) needs it.
pub trait PublicKey {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Returns the tag.
    fn tag(&self) -> u16;

    /// Returns whether the key may check signatures of zone data ([`Dnskey::signs_zones`]).
    fn signs_zones(&self) -> bool;

    /// Checks a signature over octets.
    fn check(&self, message: &[u8], signature: &[u8]) -> Result<(), Mismatch>;
}

impl PublicKey for Dnskey<'_> {
    fn algorithm(&self) -> Algorithm {
        Dnskey::algorithm(*self)
    }

    fn tag(&self) -> u16 {
        Dnskey::tag(*self)
    }

    fn signs_zones(&self) -> bool {
        Dnskey::signs_zones(*self)
    }

    fn check(&self, message: &[u8], signature: &[u8]) -> Result<(), Mismatch> {
        Material::parse(*self).check(message, signature)
    }
}

/// A key that is parsed once, so that each check but the first costs the check alone.
///
/// That takes time and memory for which there is no bound but the number of keys, so it is not done
/// for the many keys of a zone that never sign.
#[derive(Clone, Debug)]
pub struct ParsedKey {
    algorithm: Algorithm,
    tag: u16,
    signs_zones: bool,
    /// Data of the DNSKEY record.
    data: Box<[u8]>,
    material: OnceLock<Material>,
}

/// A public key as the library that checks with it has it.
#[derive(Clone, Debug)]
enum Material {
    Library(lc::ParsedPublicKey),
    Ed448(Box<VerifyingKey>),
    /// Algorithm, size or exponent are not known here.
    Unsupported,
    /// No signature can be right.
    Malformed,
}

impl ParsedKey {
    /// Takes a key, which is parsed when it is needed. One that is malformed or not known fails in
    /// each check.
    pub fn new(key: Dnskey<'_>) -> Self {
        Self {
            algorithm: key.algorithm(),
            tag: key.tag(),
            signs_zones: key.signs_zones(),
            data: key.as_bytes().into(),
            material: OnceLock::new(),
        }
    }

    /// Returns the octets of its record's data.
    pub const fn octets(&self) -> usize {
        self.data.len()
    }

    fn material(&self) -> &Material {
        self.material.get_or_init(|| Dnskey::parse(&self.data).map_or(Material::Malformed, Material::parse))
    }

    /// Returns whether signatures by such a key can be checked here at all. What is signed only
    /// with others proves nothing (RFC 4035 §5.2).
    pub fn is_supported(&self) -> bool {
        !matches!(self.material(), Material::Unsupported)
    }
}

impl PublicKey for ParsedKey {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn tag(&self) -> u16 {
        self.tag
    }

    fn signs_zones(&self) -> bool {
        self.signs_zones
    }

    fn check(&self, message: &[u8], signature: &[u8]) -> Result<(), Mismatch> {
        self.material().check(message, signature)
    }
}

impl Material {
    fn parse(key: Dnskey<'_>) -> Self {
        match key.algorithm() {
            Algorithm::RSASHA1 | Algorithm::RSASHA1_NSEC3_SHA1 => {
                Self::rsa(&lc::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, key)
            }
            Algorithm::RSASHA256 => Self::rsa(&lc::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, key),
            Algorithm::RSASHA512 => Self::rsa(&lc::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, key),
            Algorithm::ECDSAP256SHA256 => Self::ecdsa(&lc::ECDSA_P256_SHA256_FIXED, 64, key),
            Algorithm::ECDSAP384SHA384 => Self::ecdsa(&lc::ECDSA_P384_SHA384_FIXED, 96, key),
            Algorithm::ED25519 if key.key().len() == 32 => Self::library(&lc::ED25519, key.key()),
            Algorithm::ED25519 => Self::Malformed,
            Algorithm::ED448 => {
                let point = <[u8; 57]>::try_from(key.key()).ok();
                let parsed = point.and_then(|point| VerifyingKey::from_bytes(&point).ok());
                parsed.map_or(Self::Malformed, |key| Self::Ed448(Box::new(key)))
            }
            _ => Self::Unsupported,
        }
    }

    fn library(algorithm: &'static dyn lc::VerificationAlgorithm, key: &[u8]) -> Self {
        lc::ParsedPublicKey::new(algorithm, key).map_or(Self::Malformed, Self::Library)
    }

    fn rsa(parameters: &'static lc::RsaParameters, key: Dnskey<'_>) -> Self {
        let Some(parts) = RsaParts::parse(key.key()) else { return Self::Malformed };
        let zeros = parts.modulus.first().map_or(0, |octet| octet.leading_zeros() as usize);
        let bits = parts.modulus.len() * 8 - zeros;
        if !RSA_BITS.contains(&bits) || parts.exponent.len() > RSA_EXPONENT_OCTETS_MAX {
            return Self::Unsupported;
        }
        let components = lc::RsaPublicKeyComponents { n: parts.modulus, e: parts.exponent };
        components.to_parsed_public_key(parameters).map_or(Self::Malformed, Self::Library)
    }

    fn ecdsa(
        algorithm: &'static lc::EcdsaVerificationAlgorithm,
        point_octets: usize,
        key: Dnskey<'_>,
    ) -> Self {
        // RFC 6605 §4: a DNSKEY has the point without the octet that says how it is written.
        let mut point = [4; 97];
        match point.get_mut(1..=point_octets).filter(|place| place.len() == key.key().len()) {
            Some(place) => place.copy_from_slice(key.key()),
            None => return Self::Malformed,
        }
        Self::library(algorithm, point.get(..=point_octets).unwrap_or(&[]))
    }

    fn check(&self, message: &[u8], signature: &[u8]) -> Result<(), Mismatch> {
        let is_right = match self {
            Self::Library(key) => key.verify_sig(message, signature).is_ok(),
            Self::Ed448(key) => Signature::try_from(signature)
                .is_ok_and(|signature| key.verify_raw(&signature, message).is_ok()),
            Self::Unsupported => return Err(Mismatch::Unsupported),
            Self::Malformed => false,
        };
        if is_right { Ok(()) } else { Err(Mismatch::Wrong) }
    }
}

/// Checks a signature over octets.
pub fn verify_octets(key: Dnskey<'_>, message: &[u8], signature: &[u8]) -> Result<(), Mismatch> {
    key.check(message, signature)
}
