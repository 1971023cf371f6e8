//! The digest of a zone as a whole, and the signatures that it needs (RFC 8976 §4).

use std::fmt;

use wire::{Name, Rtype};

use crate::bitmap::has_type;
use crate::chain::{Rules, SecureKeys, TrustPoint, ZoneKeys, zone_keys};
use crate::nsec3::{Nsec3Parameters, next_and_types, owner_of};
use crate::rrset::Rrset;
use crate::tree::{Set, Tree};
use crate::verify::{Bogus, Budget, Failure};
use crate::zonemd::{ZonemdVerdict, check_zonemd};

/// Signatures that are checked for one zone: of keys, SOA, ZONEMD and a proof of absence.
const CHECKS_MAX: u32 = 64;

/// Why a zone's ZONEMD, or that it has none, is not proved to be the zone's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZonemdUnproved {
    /// No good signature is over the RRset of this type at the apex.
    Signature(Rtype, Failure),
    /// The proof of absence at the apex is missing, or says that there is a ZONEMD.
    Hidden,
}

impl fmt::Display for ZonemdUnproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signature(rtype, failure) => write!(f, "{rtype} of the zone: {failure}"),
            Self::Hidden => f.write_str("it is not proved that the zone has no ZONEMD"),
        }
    }
}

/// Checks a zone against its ZONEMD. Where something is `trusted` for the zone, its trust anchors
/// or the verified DS records that its parent has, an error says what of it is not signed as it
/// must be. Without, or if nobody knows the algorithms, the digest alone is checked: it shows
/// accidents, and no attacks.
pub fn check_signed_zonemd(
    tree: &Tree,
    trusted: &[TrustPoint<'_>],
    rules: Rules,
) -> Result<ZonemdVerdict, ZonemdUnproved> {
    if !trusted.is_empty() {
        let mut budget = Budget::new(CHECKS_MAX);
        let dnskeys = tree.set(tree.apex(), Rtype::DNSKEY);
        let missing = || ZonemdUnproved::Signature(Rtype::DNSKEY, Failure::bogus(Bogus::NoKey));
        let set = dnskeys.ok_or_else(missing)?;
        let rrset = rrset(tree.apex(), set)?;
        match zone_keys(tree.apex(), trusted, &rrset, set.signatures(), rules, &mut budget) {
            ZoneKeys::Secure(keys) => check_signatures(tree, &keys, rules, &mut budget)?,
            ZoneKeys::Insecure(_) => {}
            ZoneKeys::Bogus(failure) => return Err(ZonemdUnproved::Signature(Rtype::DNSKEY, failure)),
        }
    }
    Ok(check_zonemd(tree))
}

fn rrset(owner: Name<'_>, set: &Set) -> Result<Rrset, ZonemdUnproved> {
    let malformed = |_| ZonemdUnproved::Signature(set.rtype(), Failure::bogus(Bogus::Malformed));
    Rrset::of(owner, set.rtype(), set.records()).map_err(malformed)
}

/// Checks that the SOA and the ZONEMD are signed, or that there is no ZONEMD.
fn check_signatures(
    tree: &Tree,
    keys: &SecureKeys,
    rules: Rules,
    budget: &mut Budget,
) -> Result<(), ZonemdUnproved> {
    let mut check = |owner: Name<'_>, set: &Set| {
        let rrset = rrset(owner, set)?;
        let verified = keys.verify(&rrset, set.signatures(), rules, budget);
        verified.map(drop).map_err(|failure| ZonemdUnproved::Signature(set.rtype(), failure))
    };
    let apex = tree.apex();
    if let Some(soa) = tree.set(apex, Rtype::SOA) {
        check(apex, soa)?;
    }
    if let Some(zonemd) = tree.set(apex, Rtype::ZONEMD) {
        return check(apex, zonemd);
    }
    if let Some(nsec) = tree.set(apex, Rtype::NSEC) {
        check(apex, nsec)?;
        let types = nsec.records().find_map(|rdata| Some(Name::parse(rdata).ok()?.1));
        return absent(types);
    }
    let parameters =
        tree.set(apex, Rtype::NSEC3PARAM).and_then(|set| set.records().find_map(Nsec3Parameters::parse));
    let hash = parameters.map(|parameters| parameters.hash(apex)).ok_or(ZonemdUnproved::Hidden)?;
    let (nsec3, owner) = tree.hashed.get(&hash).zip(owner_of(&hash, apex)).ok_or(ZonemdUnproved::Hidden)?;
    check(owner.as_name(), nsec3)?;
    absent(nsec3.records().find_map(|rdata| Some(next_and_types(rdata)?.1)))
}

/// Returns whether the types of the apex prove that it has no ZONEMD.
fn absent(types: Option<&[u8]>) -> Result<(), ZonemdUnproved> {
    match types {
        Some(types) if !has_type(types, Rtype::ZONEMD) => Ok(()),
        _ => Err(ZonemdUnproved::Hidden),
    }
}
