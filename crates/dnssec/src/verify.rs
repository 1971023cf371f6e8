//! Checks signatures of RRsets. Work is bounded: who sends many keys with one tag, or many
//! signatures, gains nothing by it (the attack is known as KeyTrap, CVE-2023-50387).

use std::fmt;

use wire::serial::is_newer;
use wire::{EdeCode, Name};

use crate::algorithm::{Algorithm, Algorithms};
use crate::parsed::{Mismatch, PublicKey};
use crate::rrset::{Rrset, signed_labels};
use crate::rrsig::Rrsig;

/// Signatures that are checked for one RRset, so that an RRset with many wrong ones costs little.
pub const SIGNATURES_MAX: u32 = 8;
/// Keys with the tag and algorithm of one signature, or of one DS, that are looked at.
pub(crate) const KEYS_PER_TAG_MAX: usize = 4;

/// Signatures that may still be checked on somebody's behalf.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    checks: u32,
    failures: u32,
}

impl Budget {
    /// Allows `signatures` checks, whatever comes of them.
    pub const fn new(signatures: u32) -> Self {
        Self::with_failures(signatures, signatures)
    }

    /// Allows `checks` checks, of which `failures` may fail: good signatures are what is asked for,
    /// many bad ones are an attack.
    pub const fn with_failures(checks: u32, failures: u32) -> Self {
        Self { checks, failures }
    }

    /// Returns the checks that are left.
    pub const fn left(&self) -> u32 {
        self.checks
    }

    /// Returns the checks that may still fail.
    pub const fn failures_left(&self) -> u32 {
        self.failures
    }

    const fn spend(&mut self) -> bool {
        match self.checks.checked_sub(1) {
            Some(left) if self.failures > 0 => {
                self.checks = left;
                true
            }
            _ => false,
        }
    }

    const fn note_failure(&mut self) {
        self.failures = self.failures.saturating_sub(1);
    }
}

/// Proof that one of an RRset's signatures is good, and what that signature says. Only
/// [`Verifier::verify`] makes one.
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

    /// Returns the labels that the signature counts (RFC 4034 §3.1.3): fewer than the owner has if
    /// the RRset was made from a wildcard.
    pub fn labels(&self) -> u8 {
        self.wildcard_labels.unwrap_or(signed_labels(self.rrset.owner()))
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

    /// Returns the seconds that the RRset may be kept from `now` on: its own TTL may be smaller
    /// (RFC 4035 §5.3.3).
    pub const fn ttl_max(&self, now: u32) -> u32 {
        ttl_max(self.original_ttl, self.expiration, now)
    }

    /// Returns the tag of the key.
    pub const fn tag(&self) -> u16 {
        self.tag
    }
}

/// Returns the smaller of the TTL that was signed and the life that the signature has left.
pub(crate) const fn ttl_max(original_ttl: u32, expiration: u32, now: u32) -> u32 {
    let left = if is_newer(expiration, now) { expiration.wrapping_sub(now) } else { 0 };
    if left < original_ttl { left } else { original_ttl }
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
    /// It expires before it is good.
    ExpiredBeforeValid,
    /// No key has its tag and algorithm.
    NoKey,
    /// The key with its tag is not one for zones, or revoked.
    NotAZoneKey,
    /// It is not good yet.
    NotYetValid,
    /// It is no longer good.
    Expired,
    /// Key and data do not belong to the signature.
    Signature,
}

impl Unverified {
    /// Returns the code that tells a client why (RFC 8914 §4).
    pub const fn ede(self) -> EdeCode {
        match self {
            Self::Unsigned => EdeCode::RRSIGS_MISSING,
            Self::Unsupported(_) => EdeCode::UNSUPPORTED_DNSKEY_ALGORITHM,
            Self::Bogus(Bogus::Malformed | Bogus::Signature) | Self::TooMuchWork => EdeCode::DNSSEC_BOGUS,
            Self::Bogus(Bogus::ExpiredBeforeValid) => EdeCode::SIGNATURE_EXPIRED_BEFORE_VALID,
            Self::Bogus(Bogus::NoKey) => EdeCode::DNSKEY_MISSING,
            Self::Bogus(Bogus::NotAZoneKey) => EdeCode::NO_ZONE_KEY_BIT_SET,
            Self::Bogus(Bogus::NotYetValid) => EdeCode::SIGNATURE_NOT_YET_VALID,
            Self::Bogus(Bogus::Expired) => EdeCode::SIGNATURE_EXPIRED,
        }
    }
}

impl fmt::Display for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned => f.write_str("no signature"),
            Self::Unsupported(algorithm) => {
                write!(f, "signed with algorithm {algorithm}, which is not known")
            }
            Self::Bogus(Bogus::Malformed) => f.write_str("a signature that cannot be read"),
            Self::Bogus(Bogus::ExpiredBeforeValid) => {
                f.write_str("a signature that expires before it is good")
            }
            Self::Bogus(Bogus::NoKey) => f.write_str("signed with a key that the zone does not have"),
            Self::Bogus(Bogus::NotAZoneKey) => f.write_str("signed with a key that is not one for zones"),
            Self::Bogus(Bogus::NotYetValid) => f.write_str("a signature that is not good yet"),
            Self::Bogus(Bogus::Expired) => f.write_str("a signature that has expired"),
            Self::Bogus(Bogus::Signature) => f.write_str("a signature that is wrong"),
            Self::TooMuchWork => f.write_str("more signatures than are checked"),
        }
    }
}

/// Why an RRset is not known to be good, and whose signature says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong.
    pub why: Unverified,
    /// The tag and the algorithm of the signature, or of the DS that no key belongs to.
    pub key: Option<(u16, Algorithm)>,
}

impl Failure {
    pub(crate) const fn bogus(bogus: Bogus) -> Self {
        Self { why: Unverified::Bogus(bogus), key: None }
    }

    /// Returns the code that tells a client why (RFC 8914 §4).
    pub const fn ede(&self) -> EdeCode {
        self.why.ede()
    }
}

impl fmt::Display for Failure {
    /// Writes the reason, with the key it is about.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.why)?;
        match self.key {
            Some((tag, algorithm)) => write!(f, " (key {tag}, algorithm {algorithm})"),
            None => Ok(()),
        }
    }
}

/// Checks RRsets of one zone with its keys (RFC 4035 §5.3).
#[derive(Debug)]
pub struct Verifier<'k, K> {
    /// The zone that signs.
    pub zone: Name<'k>,
    /// The keys of its DNSKEY set; who calls has made sure that these are the zone's.
    pub keys: &'k [K],
    /// The algorithms that count; signatures by others prove nothing.
    pub accepted: Algorithms,
    /// The time, modulo 2^32; `None`: signatures of any time count.
    pub now: Option<u32>,
    /// How far clocks of signers may be wrong.
    pub skew: Skew,
}

/// How far clocks of signers may be wrong: a tenth of the time that a signature is good for, within
/// these bounds, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skew {
    /// At least.
    pub min: u32,
    /// At most.
    pub max: u32,
}

impl Skew {
    /// All clocks are right.
    pub const NONE: Self = Self { min: 0, max: 0 };

    /// Returns from when to when a signature counts that is good from `inception` to `expiration`,
    /// all modulo 2^32.
    pub const fn span_of(self, inception: u32, expiration: u32) -> (u32, u32) {
        let mut seconds = expiration.wrapping_sub(inception) / 10;
        if seconds < self.min {
            seconds = self.min;
        }
        if seconds > self.max {
            seconds = self.max;
        }
        (inception.wrapping_sub(seconds), expiration.wrapping_add(seconds))
    }
}

impl<K: PublicKey> Verifier<'_, K> {
    /// Checks an RRset. `rrsigs` are the data of the RRSIG records at its owner. One good signature
    /// suffices. Each check costs one of `budget`.
    pub fn verify<'r, 'd>(
        &self,
        rrset: &'r Rrset,
        rrsigs: impl IntoIterator<Item = &'d [u8]>,
        budget: &mut Budget,
    ) -> Result<Verified<'r>, Failure> {
        let mut work = Work { for_rrset: Budget::new(SIGNATURES_MAX), budget, message: Vec::new() };
        let labels = signed_labels(rrset.owner());
        let mut unsupported = None;
        let mut worst = None;
        for rdata in rrsigs {
            let Some(rrsig) = Rrsig::parse(rdata) else {
                worst = worst.max(Some((Bogus::Malformed, None)));
                continue;
            };
            if rrsig.covered != rrset.rtype() || rrsig.signer != self.zone {
                continue;
            }
            let key = Some((rrsig.tag, rrsig.algorithm));
            match self.check(rrset, &rrsig, labels, &mut work) {
                Ok(()) => {
                    return Ok(Verified {
                        rrset,
                        wildcard_labels: (rrsig.labels < labels).then_some(rrsig.labels),
                        original_ttl: rrsig.original_ttl,
                        expiration: rrsig.expiration,
                        tag: rrsig.tag,
                    });
                }
                Err(Unverified::Bogus(bogus)) => worst = worst.max(Some((bogus, key))),
                Err(Unverified::TooMuchWork) => return Err(Failure { why: Unverified::TooMuchWork, key }),
                Err(why) => unsupported = Some(Failure { why, key }),
            }
        }
        Err(match (worst, unsupported) {
            (Some((bogus, key)), _) => Failure { why: Unverified::Bogus(bogus), key },
            (None, Some(failure)) => failure,
            (None, None) => Failure { why: Unverified::Unsigned, key: None },
        })
    }

    /// Checks one signature of the zone's with the keys that have its tag.
    fn check(
        &self,
        rrset: &Rrset,
        rrsig: &Rrsig<'_>,
        labels: u8,
        work: &mut Work<'_>,
    ) -> Result<(), Unverified> {
        let bogus = |bogus| Err(Unverified::Bogus(bogus));
        if !self.accepted.contains(rrsig.algorithm) {
            return Err(Unverified::Unsupported(rrsig.algorithm));
        }
        if rrsig.labels > labels || !rrset.owner().is_at_or_below(self.zone) {
            return bogus(Bogus::Malformed);
        }
        if is_newer(rrsig.inception, rrsig.expiration) {
            return bogus(Bogus::ExpiredBeforeValid);
        }
        // RFC 4034 §3.1.5: both ends belong to the time it is good for.
        if let Some(now) = self.now {
            let (begins, ends) = self.skew.span_of(rrsig.inception, rrsig.expiration);
            if is_newer(begins, now) {
                return bogus(Bogus::NotYetValid);
            }
            if is_newer(now, ends) {
                return bogus(Bogus::Expired);
            }
        }
        work.message.clear();
        if !rrset.write_signed(rrsig, &mut work.message) {
            return bogus(Bogus::Malformed);
        }
        let mut outcome = Unverified::Bogus(Bogus::NoKey);
        let fitting = |key: &&K| key.algorithm() == rrsig.algorithm && key.tag() == rrsig.tag;
        for key in self.keys.iter().filter(fitting).take(KEYS_PER_TAG_MAX) {
            if !key.signs_zones() {
                if outcome == Unverified::Bogus(Bogus::NoKey) {
                    outcome = Unverified::Bogus(Bogus::NotAZoneKey);
                }
                continue;
            }
            if !work.spend() {
                return Err(Unverified::TooMuchWork);
            }
            if self.accepted.believes(rrsig.algorithm) && !rrsig.signature.is_empty() {
                return Ok(());
            }
            match key.check(&work.message, rrsig.signature) {
                Ok(()) => return Ok(()),
                Err(Mismatch::Unsupported) if outcome == Unverified::Bogus(Bogus::Signature) => {}
                Err(Mismatch::Unsupported) => outcome = Unverified::Unsupported(rrsig.algorithm),
                Err(Mismatch::Wrong) => {
                    work.budget.note_failure();
                    outcome = Unverified::Bogus(Bogus::Signature);
                }
            }
        }
        Err(outcome)
    }
}

/// What the checks of one RRset may cost, and what they write to.
struct Work<'b> {
    for_rrset: Budget,
    budget: &'b mut Budget,
    message: Vec<u8>,
}

impl Work<'_> {
    const fn spend(&mut self) -> bool {
        self.for_rrset.spend() && self.budget.spend()
    }
}

/// Checks an RRset with its signatures and the keys of the zone `signer`, at the time `now` (RFC
/// 4035 §5.3), by the algorithms that are signed with here.
///
/// `rrsigs` are the data of the RRSIG records at the owner, `keys` those of the zone's DNSKEY set;
/// who calls has made sure that these are the zone's. One good signature suffices. Each check costs
/// one of `budget`.
pub fn verify_rrset<'r, 'd, K: PublicKey>(
    rrset: &'r Rrset,
    rrsigs: impl IntoIterator<Item = &'d [u8]>,
    signer: Name<'_>,
    keys: &[K],
    now: u32,
    budget: &mut Budget,
) -> Result<Verified<'r>, Unverified> {
    let (accepted, skew) = (Algorithms::SUPPORTED, Skew::NONE);
    let verifier = Verifier { zone: signer, keys, accepted, now: Some(now), skew };
    verifier.verify(rrset, rrsigs, budget).map_err(|failure| failure.why)
}
