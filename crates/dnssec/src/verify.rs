//! Checks signatures. Work is bounded: who sends many keys with one tag, or many signatures, gains
//! nothing by it (the attack is known as KeyTrap, CVE-2023-50387).

use std::fmt;

use aws_lc_rs::signature as lc;
use wire::Name;
use wire::serial::is_newer;

use crate::algorithm::Algorithm;
use crate::dnskey::{Dnskey, RsaParts};
use crate::rrset::{Rrset, signed_labels};
use crate::rrsig::Rrsig;

/// Signatures that are checked for one RRset, so that an RRset with many wrong ones costs little.
pub const SIGNATURES_MAX: u32 = 8;
/// Keys with the tag and algorithm of one signature that it is checked with.
const KEYS_PER_TAG_MAX: usize = 4;
/// Bits that an RSA key has at least and at most.
const RSA_BITS: std::ops::RangeInclusive<usize> = 1024..=8192;
/// Octets that an RSA exponent may have: larger ones only cost time.
const RSA_EXPONENT_OCTETS_MAX: usize = 4;

/// Signatures that may still be checked on somebody's behalf.
#[derive(Clone, Copy, Debug)]
pub struct Budget(u32);

impl Budget {
    /// Allows `signatures` checks.
    pub const fn new(signatures: u32) -> Self {
        Self(signatures)
    }

    /// Returns the checks that are left.
    pub const fn left(&self) -> u32 {
        self.0
    }

    const fn spend(&mut self) -> bool {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}

/// Proof that one of an RRset's signatures is good, and what that signature says. Only
/// [`verify_rrset`] makes one.
///
/// ```compile_fail
/// fn forge(rrset: &dnssec::Rrset) -> dnssec::Verified<'_> {
///     dnssec::Verified { rrset, wildcard_labels: None, original_ttl: 3600, expiration: u32::MAX, tag: 1 }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Verified<'r> {
    rrset: &'r Rrset,
    wildcard_labels: Option<u8>,
    original_ttl: u32,
    expiration: u32,
    tag: u16,
}

impl<'r> Verified<'r> {
    /// Returns the RRset that the signature is for.
    pub const fn rrset(&self) -> &'r Rrset {
        self.rrset
    }

    /// Returns the labels of the wildcard's parent, if the RRset was made from a wildcard: then a
    /// proof is needed that no closer name exists (RFC 4035 §5.3.4).
    pub const fn wildcard_labels(&self) -> Option<u8> {
        self.wildcard_labels
    }

    /// Returns the TTL that the RRset was signed with; it must not be kept longer (RFC 4035
    /// §5.3.3).
    pub const fn original_ttl(&self) -> u32 {
        self.original_ttl
    }

    /// Returns when the signature expires, modulo 2^32.
    pub const fn expiration(&self) -> u32 {
        self.expiration
    }

    /// Returns the tag of the key.
    pub const fn tag(&self) -> u16 {
        self.tag
    }
}

/// Why an RRset is not known to be good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unverified {
    /// It has no signature at all by this zone.
    Unsigned,
    /// There are only signatures by algorithms that are not known here, or with keys that are not:
    /// it proves nothing (RFC 4035 §5.2).
    Unsupported(Algorithm),
    /// It is wrong.
    Bogus(Bogus),
    /// It would have taken more checks than allowed.
    TooMuchWork,
}

/// What is wrong with the best of an RRset's signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bogus {
    /// The data or the signature cannot be read, or says more labels than the owner has.
    Malformed,
    /// No key has its tag and algorithm.
    NoKey,
    /// It is not good yet.
    NotYetValid,
    /// It is no longer good.
    Expired,
    /// Key and data do not belong to the signature.
    Signature,
}

impl fmt::Display for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned => f.write_str("no signature"),
            Self::Unsupported(algorithm) => {
                write!(f, "signed with algorithm {algorithm}, which is not known")
            }
            Self::Bogus(Bogus::Malformed) => f.write_str("a signature that cannot be read"),
            Self::Bogus(Bogus::NoKey) => f.write_str("signed with a key that the zone does not have"),
            Self::Bogus(Bogus::NotYetValid) => f.write_str("a signature that is not good yet"),
            Self::Bogus(Bogus::Expired) => f.write_str("a signature that has expired"),
            Self::Bogus(Bogus::Signature) => f.write_str("a signature that is wrong"),
            Self::TooMuchWork => f.write_str("more signatures than are checked"),
        }
    }
}

/// How a signature fared with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Algorithm or key are not known here.
    Unsupported,
    /// The signature is wrong.
    Wrong,
}

/// Checks a signature over octets.
pub fn verify_octets(key: Dnskey<'_>, message: &[u8], signature: &[u8]) -> Result<(), Mismatch> {
    let is_right = match key.algorithm() {
        Algorithm::RSASHA256 => {
            rsa(&lc::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, key, message, signature)?
        }
        Algorithm::RSASHA512 => {
            rsa(&lc::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, key, message, signature)?
        }
        Algorithm::ECDSAP256SHA256 => ecdsa(&lc::ECDSA_P256_SHA256_FIXED, 64, key, message, signature)?,
        Algorithm::ECDSAP384SHA384 => ecdsa(&lc::ECDSA_P384_SHA384_FIXED, 96, key, message, signature)?,
        Algorithm::ED25519 => {
            if key.key().len() != 32 {
                return Err(Mismatch::Wrong);
            }
            lc::UnparsedPublicKey::new(&lc::ED25519, key.key()).verify(message, signature).is_ok()
        }
        Algorithm::ED448 => ed448(key, message, signature),
        _ => return Err(Mismatch::Unsupported),
    };
    if is_right { Ok(()) } else { Err(Mismatch::Wrong) }
}

fn rsa(
    parameters: &lc::RsaParameters,
    key: Dnskey<'_>,
    message: &[u8],
    signature: &[u8],
) -> Result<bool, Mismatch> {
    let parts = RsaParts::parse(key.key()).ok_or(Mismatch::Wrong)?;
    let zeros = parts.modulus.first().map_or(0, |octet| octet.leading_zeros() as usize);
    if !RSA_BITS.contains(&(parts.modulus.len() * 8 - zeros))
        || parts.exponent.len() > RSA_EXPONENT_OCTETS_MAX
    {
        return Err(Mismatch::Unsupported);
    }
    let components = lc::RsaPublicKeyComponents { n: parts.modulus, e: parts.exponent };
    Ok(components.verify(parameters, message, signature).is_ok())
}

fn ecdsa(
    algorithm: &'static lc::EcdsaVerificationAlgorithm,
    point_octets: usize,
    key: Dnskey<'_>,
    message: &[u8],
    signature: &[u8],
) -> Result<bool, Mismatch> {
    // RFC 6605 §4: a DNSKEY has the point without the octet that says how it is written.
    let mut point = [4; 97];
    let place = point.get_mut(1..=point_octets).filter(|place| place.len() == key.key().len());
    place.ok_or(Mismatch::Wrong)?.copy_from_slice(key.key());
    let point = point.get(..=point_octets).unwrap_or(&[]);
    Ok(lc::UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok())
}

fn ed448(key: Dnskey<'_>, message: &[u8], signature: &[u8]) -> bool {
    use ed448_goldilocks::{Signature, VerifyingKey};
    let Ok(point) = <[u8; 57]>::try_from(key.key()) else { return false };
    let Ok(key) = VerifyingKey::from_bytes(&point) else { return false };
    Signature::try_from(signature).is_ok_and(|signature| key.verify_raw(&signature, message).is_ok())
}

/// Checks an RRset with its signatures and the keys of the zone `signer`, at the time `now` (RFC
/// 4035 §5.3).
///
/// `rrsigs` are the data of the RRSIG records at the owner, `keys` those of the zone's DNSKEY set;
/// who calls has made sure that these are the zone's. One good signature suffices. Each check costs
/// one of `budget`.
pub fn verify_rrset<'r, 'd>(
    rrset: &'r Rrset,
    rrsigs: impl IntoIterator<Item = &'d [u8]>,
    signer: Name<'_>,
    keys: &[Dnskey<'_>],
    now: u32,
    budget: &mut Budget,
) -> Result<Verified<'r>, Unverified> {
    let mut unsupported = None;
    let mut worst = None;
    let mut note = |bogus: Bogus| worst = worst.max(Some(bogus));
    let mut for_rrset = Budget::new(SIGNATURES_MAX);
    let mut message = Vec::new();
    let labels = signed_labels(rrset.owner());
    for rdata in rrsigs {
        let Some(rrsig) = Rrsig::parse(rdata) else {
            note(Bogus::Malformed);
            continue;
        };
        if rrsig.covered != rrset.rtype() || rrsig.signer != signer {
            continue;
        }
        if !rrsig.algorithm.is_supported() {
            unsupported = Some(rrsig.algorithm);
            continue;
        }
        if rrsig.labels > labels || !rrset.owner().is_at_or_below(signer) {
            note(Bogus::Malformed);
            continue;
        }
        // RFC 4034 §3.1.5: both ends belong to the time it is good for.
        if is_newer(rrsig.inception, now) {
            note(Bogus::NotYetValid);
            continue;
        }
        if is_newer(now, rrsig.expiration) {
            note(Bogus::Expired);
            continue;
        }
        message.clear();
        if !rrset.write_signed(&rrsig, &mut message) {
            note(Bogus::Malformed);
            continue;
        }
        let fitting = keys
            .iter()
            .filter(|key| key.algorithm() == rrsig.algorithm && key.signs_zones() && key.tag() == rrsig.tag)
            .take(KEYS_PER_TAG_MAX);
        let mut has_key = false;
        for key in fitting {
            if !for_rrset.spend() || !budget.spend() {
                return Err(Unverified::TooMuchWork);
            }
            match verify_octets(*key, &message, rrsig.signature) {
                Ok(()) => {
                    return Ok(Verified {
                        rrset,
                        wildcard_labels: (rrsig.labels < labels).then_some(rrsig.labels),
                        original_ttl: rrsig.original_ttl,
                        expiration: rrsig.expiration,
                        tag: rrsig.tag,
                    });
                }
                Err(Mismatch::Unsupported) => unsupported = Some(rrsig.algorithm),
                Err(Mismatch::Wrong) => {
                    has_key = true;
                    note(Bogus::Signature);
                    continue;
                }
            }
            has_key = true;
        }
        if !has_key {
            note(Bogus::NoKey);
        }
    }
    Err(match (worst, unsupported) {
        (Some(bogus), _) => Unverified::Bogus(bogus),
        (None, Some(algorithm)) => Unverified::Unsupported(algorithm),
        (None, None) => Unverified::Unsigned,
    })
}

/// Returns the keys of a DNSKEY set that a parent's DS stand for, and whether there was a DS that
/// is known here (RFC 4035 §5.2; a zone whose DS are all unknown is not signed, as far as we can
/// tell).
pub fn trusted_by<'k>(
    owner: Name<'_>,
    keys: &[Dnskey<'k>],
    ds: &[crate::ds::Ds<'_>],
) -> (Vec<Dnskey<'k>>, bool) {
    let is_known = |ds: &&crate::ds::Ds<'_>| ds.algorithm.is_supported() && ds.digest_type.is_supported();
    // RFC 4509 §3: SHA-1 is not listened to where there is something better.
    let has_better = ds.iter().filter(is_known).any(|ds| ds.digest_type != crate::DigestType::SHA1);
    let trusted = keys
        .iter()
        .filter(|key| key.signs_zones())
        .filter(|key| {
            ds.iter()
                .filter(is_known)
                .filter(|ds| !has_better || ds.digest_type != crate::DigestType::SHA1)
                .any(|ds| ds.is_of(owner, **key))
        })
        .copied()
        .collect();
    (trusted, ds.iter().any(|ds| is_known(&ds)))
}
