//! From what is trusted, DS records or keys, to the keys of a zone (RFC 4035 §5.2), and from those
//! to its RRsets.

use std::fmt;

use wire::serial::is_newer;
use wire::{EdeCode, Name, NameBuf, Rtype};

use crate::algorithm::{Algorithm, Algorithms};
use crate::dnskey::Dnskey;
use crate::ds::{DigestType, Ds};
use crate::parsed::{ParsedKey, PublicKey};
use crate::rrset::Rrset;
use crate::rrsig::Rrsig;
use crate::verify::{
    Bogus, Budget, Failure, KEYS_PER_TAG_MAX, Skew, Unverified, Verified, Verifier, ttl_max,
};

/// Records of a DNSKEY set, and trusted keys of one zone: more are an attack, because each of the
/// ones is compared with each of the others.
pub const KEYS_MAX: usize = 100;
/// Digests of keys that are made for one DNSKEY set.
const DIGESTS_MAX: u32 = 32;

/// What stands for a key of a zone and is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustPoint<'t> {
    /// A verified DS of the parent's, or a trust anchor of this form.
    Ds(Ds<'t>),
    /// A trust anchor that is a key.
    Key(Dnskey<'t>),
}

impl TrustPoint<'_> {
    /// Returns the algorithm of the key.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Self::Ds(ds) => ds.algorithm,
            Self::Key(key) => key.algorithm(),
        }
    }

    /// Returns the tag of the key.
    pub fn tag(&self) -> u16 {
        match self {
            Self::Ds(ds) => ds.tag,
            Self::Key(key) => key.tag(),
        }
    }

    fn is_known(&self, accepted: Algorithms) -> bool {
        let has_known_digest = match self {
            Self::Ds(ds) => ds.digest_type.is_supported(),
            Self::Key(_) => true,
        };
        has_known_digest && accepted.contains(self.algorithm())
    }
}

/// Why what a zone says cannot be checked: as far as we can tell, it is not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insecure {
    /// No DS is of an algorithm that counts here.
    Algorithm(Algorithm),
    /// No DS is of a digest that is known here.
    Digest(DigestType),
    /// The keys that are trusted are of a size or kind that is not known here.
    Key(Algorithm),
}

impl Insecure {
    /// Returns the code that tells a client why (RFC 8914 §4).
    pub const fn ede(self) -> EdeCode {
        match self {
            Self::Algorithm(_) | Self::Key(_) => EdeCode::UNSUPPORTED_DNSKEY_ALGORITHM,
            Self::Digest(_) => EdeCode::UNSUPPORTED_DS_DIGEST_TYPE,
        }
    }
}

impl fmt::Display for Insecure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Algorithm(algorithm) => write!(f, "algorithm {algorithm} is not accepted"),
            Self::Digest(digest) => write!(f, "digest {digest} is not known"),
            Self::Key(algorithm) => write!(f, "keys of algorithm {algorithm} of a kind that is not known"),
        }
    }
}

/// What a zone's DNSKEY set is worth.
#[derive(Debug)]
pub enum ZoneKeys {
    /// The zone's keys.
    Secure(SecureKeys),
    /// The zone may say what it likes.
    Insecure(Insecure),
    /// The zone is signed, and this is not right.
    Bogus(Failure),
}

/// The keys of a zone, which a chain of signatures leads to.
#[derive(Clone, Debug)]
pub struct SecureKeys {
    zone: NameBuf,
    keys: Box<[ParsedKey]>,
    /// The algorithms of which each has to sign; without any, one good signature suffices.
    demanded: Box<[Algorithm]>,
    original_ttl: u32,
    expiration: u32,
    tag: u16,
}

impl SecureKeys {
    /// Returns the zone.
    pub fn zone(&self) -> Name<'_> {
        self.zone.as_name()
    }

    /// Returns the keys that may check signatures, revoked ones left out.
    pub const fn keys(&self) -> &[ParsedKey] {
        &self.keys
    }

    /// Returns the tag of the key that the DNSKEY set was signed with.
    pub const fn tag(&self) -> u16 {
        self.tag
    }

    /// Returns the TTL that the DNSKEY set was signed with.
    pub const fn original_ttl(&self) -> u32 {
        self.original_ttl
    }

    /// Returns when the signature of the DNSKEY set expires, modulo 2^32.
    pub const fn expiration(&self) -> u32 {
        self.expiration
    }

    /// Returns the seconds that the keys may be used from `now` on.
    pub const fn ttl_max(&self, now: u32) -> u32 {
        ttl_max(self.original_ttl, self.expiration, now)
    }

    /// Checks an RRset that the zone should have signed. A failure means that it is bogus, also
    /// when the signatures are only of a kind that is not known: the zone promised others.
    pub fn verify<'r, 'd>(
        &self,
        rrset: &'r Rrset,
        rrsigs: impl IntoIterator<Item = &'d [u8]>,
        rules: Rules,
        budget: &mut Budget,
    ) -> Result<Verified<'r>, Failure> {
        let Rules { accepted, now, skew } = rules;
        let verifier = Verifier { zone: self.zone(), keys: &self.keys, accepted, now, skew };
        verify_by_each(&verifier, &self.demanded, rrset, rrsigs, budget)
    }
}

/// What counts, and when.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The algorithms that count.
    pub accepted: Algorithms,
    /// The time, modulo 2^32; `None`: signatures of any time count.
    pub now: Option<u32>,
    /// How far clocks of signers may be wrong.
    pub skew: Skew,
}

impl Rules {
    /// Returns rules for a world in which all clocks are right.
    pub const fn exact(accepted: Algorithms, now: u32) -> Self {
        Self { accepted, now: Some(now), skew: Skew::NONE }
    }
}

/// Returns the trust points that are looked at. RFC 4509 §3: a SHA-1 digest is ignored where there
/// is a better one for the same algorithm.
fn usable<'p, 't>(trusted: &'p [TrustPoint<'t>], accepted: Algorithms) -> Vec<&'p TrustPoint<'t>> {
    let known = || trusted.iter().filter(|point| point.is_known(accepted));
    let is_outdone = |point: &TrustPoint<'_>| match point {
        TrustPoint::Ds(ds) if ds.digest_type == DigestType::SHA1 => known().any(|other| {
            matches!(other, TrustPoint::Ds(other)
                if other.algorithm == ds.algorithm && other.digest_type != DigestType::SHA1)
        }),
        _ => false,
    };
    known().filter(|point| !is_outdone(point)).collect()
}

/// Returns the algorithms of which each has to sign what is in a zone: those of the trust points
/// with the strongest digest, if there are several and all are demanded.
fn demanded(points: &[&TrustPoint<'_>], accepted: Algorithms) -> Box<[Algorithm]> {
    if !accepted.demands_all() {
        return Box::default();
    }
    let digest = |point: &TrustPoint<'_>| match point {
        TrustPoint::Ds(ds) => ds.digest_type.0,
        TrustPoint::Key(_) => u8::MAX,
    };
    let strongest = points.iter().map(|point| digest(point)).max();
    let mut algorithms: Vec<Algorithm> = points
        .iter()
        .filter(|point| Some(digest(point)) == strongest)
        .map(|point| point.algorithm())
        .collect();
    algorithms.sort_unstable_by_key(|algorithm| algorithm.0);
    algorithms.dedup();
    algorithms.into()
}

/// Checks an RRset by each of these algorithms, or by any if there are none. Of several good
/// signatures the one counts that expires first.
fn verify_by_each<'r, 'd, K: PublicKey>(
    verifier: &Verifier<'_, K>,
    demanded: &[Algorithm],
    rrset: &'r Rrset,
    rrsigs: impl IntoIterator<Item = &'d [u8]>,
    budget: &mut Budget,
) -> Result<Verified<'r>, Failure> {
    let [_, ..] = demanded else { return verifier.verify(rrset, rrsigs, budget) };
    let rrsigs: Vec<&[u8]> = rrsigs.into_iter().collect();
    let mut found: Option<Verified<'r>> = None;
    for &algorithm in demanded {
        let only = Verifier {
            zone: verifier.zone,
            keys: verifier.keys,
            accepted: verifier.accepted.only(algorithm),
            now: verifier.now,
            skew: verifier.skew,
        };
        let verified =
            only.verify(rrset, rrsigs.iter().copied(), budget).map_err(|failure| match failure.why {
                // Only the others have signed.
                Unverified::Unsupported(_) => Failure { why: Unverified::Bogus(Bogus::NoKey), key: None },
                _ => failure,
            })?;
        if found.as_ref().is_none_or(|known| is_newer(known.expiration(), verified.expiration())) {
            found = Some(verified);
        }
    }
    found.ok_or(Failure { why: Unverified::Unsigned, key: None })
}

/// A key of a DNSKEY set, and its tag, which is not for free.
struct Tagged<'k> {
    key: Dnskey<'k>,
    tag: u16,
}

impl<'k> Tagged<'k> {
    fn parse(rdata: &'k [u8]) -> Option<Self> {
        Dnskey::parse(rdata).map(|key| Self { key, tag: key.tag() })
    }
}

/// Keys of a set that something trusted stands for.
struct Matched {
    keys: Vec<ParsedKey>,
    /// A trust point that no key belongs to.
    missing: Option<(u16, Algorithm)>,
}

/// Looks for the keys that trust points stand for; `None` if that took too much work.
fn matched(zone: Name<'_>, points: &[&TrustPoint<'_>], keys: &[Tagged<'_>]) -> Option<Matched> {
    let mut found = Matched { keys: Vec::new(), missing: None };
    let mut digests = DIGESTS_MAX;
    let mut taken: Vec<&[u8]> = Vec::new();
    for point in points {
        let (tag, algorithm) = (point.tag(), point.algorithm());
        let fitting = |tagged: &&Tagged<'_>| {
            tagged.tag == tag && tagged.key.algorithm() == algorithm && tagged.key.signs_zones()
        };
        let mut has_key = false;
        for tagged in keys.iter().filter(fitting).take(KEYS_PER_TAG_MAX) {
            let is_it = match point {
                TrustPoint::Ds(ds) => {
                    digests = digests.checked_sub(1)?;
                    ds.is_of(zone, tagged.key)
                }
                TrustPoint::Key(key) => key.key() == tagged.key.key(),
            };
            has_key |= is_it;
            if is_it && !taken.contains(&tagged.key.as_bytes()) {
                taken.push(tagged.key.as_bytes());
                found.keys.push(ParsedKey::new(tagged.key));
            }
        }
        if !has_key {
            found.missing = Some((tag, algorithm));
        }
    }
    Some(found)
}

/// Judges a zone's DNSKEY set, by what is trusted: the verified DS records that the parent has, or
/// trust anchors. `rrsigs` are the data of the RRSIG records of the set.
///
/// Revoked keys are never used. One good signature by a key that something trusted stands for
/// suffices (RFC 6840 §5.11).
pub fn zone_keys<'d>(
    zone: Name<'_>,
    trusted: &[TrustPoint<'_>],
    dnskeys: &Rrset,
    rrsigs: impl IntoIterator<Item = &'d [u8]>,
    rules: Rules,
    budget: &mut Budget,
) -> ZoneKeys {
    let Rules { accepted, now, skew } = rules;
    if dnskeys.owner() != zone || dnskeys.rtype() != Rtype::DNSKEY || trusted.is_empty() {
        return ZoneKeys::Bogus(Failure::bogus(Bogus::Malformed));
    }
    let too_much = ZoneKeys::Bogus(Failure { why: Unverified::TooMuchWork, key: None });
    if trusted.len() > KEYS_MAX || dnskeys.data().count() > KEYS_MAX {
        return too_much;
    }
    if let Some(insecure) = insecurity(trusted, accepted) {
        return ZoneKeys::Insecure(insecure);
    }
    let points = usable(trusted, accepted);
    let keys: Vec<Tagged<'_>> = dnskeys.data().filter_map(Tagged::parse).collect();
    let Some(Matched { keys: trusted, missing }) = matched(zone, &points, &keys) else { return too_much };
    // Only if all that is trusted is there and of no use here: else somebody left out the rest.
    if missing.is_none()
        && let Some(key) = trusted.first()
        && trusted.iter().all(|key| !key.is_supported() && !accepted.believes(key.algorithm()))
    {
        return ZoneKeys::Insecure(Insecure::Key(key.algorithm()));
    }
    if trusted.is_empty() {
        return ZoneKeys::Bogus(Failure { why: Unverified::Bogus(Bogus::NoKey), key: missing });
    }
    let demanded = demanded(&points, accepted);
    let verifier = Verifier { zone, keys: &trusted, accepted, now, skew };
    match verify_by_each(&verifier, &demanded, dnskeys, rrsigs, budget) {
        // What stands at the apex was not made from a wildcard.
        Ok(verified) if verified.wildcard_labels().is_some() => {
            ZoneKeys::Bogus(Failure::bogus(Bogus::Malformed))
        }
        Ok(verified) => ZoneKeys::Secure(SecureKeys {
            zone: zone.to_buf(),
            keys: zone_signing(&keys, accepted),
            demanded,
            original_ttl: verified.original_ttl(),
            expiration: verified.expiration(),
            tag: verified.tag(),
        }),
        Err(failure) => ZoneKeys::Bogus(failure),
    }
}

/// Returns a zone's keys from a DNSKEY set whose signature was found good before by [`zone_keys`]
/// and has been kept with it. What is trusted must still stand for the key that signed it, and the
/// signature must not have ended; it is not checked again. `None` says that nothing is known that
/// way: judge the set anew.
pub fn known_zone_keys(
    zone: Name<'_>,
    trusted: &[TrustPoint<'_>],
    dnskeys: &Rrset,
    rrsig: &[u8],
    Rules { accepted, now, skew }: Rules,
) -> Option<SecureKeys> {
    let is_usual = dnskeys.owner() == zone && dnskeys.rtype() == Rtype::DNSKEY;
    if !is_usual || trusted.len() > KEYS_MAX || dnskeys.data().count() > KEYS_MAX {
        return None;
    }
    let rrsig = Rrsig::parse(rrsig)?;
    let is_in_time = rrsig.is_good_at(now, skew);
    let is_its = rrsig.covered == Rtype::DNSKEY && rrsig.signer == zone;
    let keys: Vec<Tagged<'_>> = dnskeys.data().filter_map(Tagged::parse).collect();
    let points = usable(trusted, accepted);
    let matched = matched(zone, &points, &keys)?.keys;
    let has_signed = |key: &ParsedKey| (key.tag(), key.algorithm()) == (rrsig.tag, rrsig.algorithm);
    if !is_its || !is_in_time || !matched.iter().any(has_signed) {
        return None;
    }
    Some(SecureKeys {
        zone: zone.to_buf(),
        keys: zone_signing(&keys, accepted),
        demanded: demanded(&points, accepted),
        original_ttl: rrsig.original_ttl,
        expiration: rrsig.expiration,
        tag: rrsig.tag,
    })
}

/// Returns the keys that may check signatures of the zone's data.
fn zone_signing(keys: &[Tagged<'_>], accepted: Algorithms) -> Box<[ParsedKey]> {
    let usable = |key: &&Tagged<'_>| key.key.signs_zones() && accepted.contains(key.key.algorithm());
    keys.iter().filter(usable).map(|tagged| ParsedKey::new(tagged.key)).collect()
}

/// Returns why none of the trust points is known here, if none is: then the zone's DNSKEY set need
/// not be asked for (RFC 4035 §5.2).
pub fn insecurity(trusted: &[TrustPoint<'_>], accepted: Algorithms) -> Option<Insecure> {
    let first = trusted.first().filter(|_| !trusted.iter().any(|point| point.is_known(accepted)))?;
    let digest = trusted.iter().find_map(|point| match point {
        TrustPoint::Ds(ds) if accepted.contains(ds.algorithm) => Some(Insecure::Digest(ds.digest_type)),
        _ => None,
    });
    Some(digest.unwrap_or(Insecure::Algorithm(first.algorithm())))
}
