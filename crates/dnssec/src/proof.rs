//! Denial of existence: what verified NSEC and NSEC3 records prove (RFC 4035 §5.4, RFC 5155 §8, RFC
//! 6840 §4, RFC 9824).

mod nsec;
mod nsec3;

use wire::{EdeCode, Name, Rtype};

use crate::bitmap::{has_only, has_type};
use crate::rrset::signed_labels;
use crate::verify::Verified;

/// Iterations of NSEC3 above which a proof is not looked at (RFC 9276 §3.2 lets validators choose).
pub const ITERATIONS_MAX: u16 = 50;
/// Hashes that one search for a closest encloser may cost, so that long names do not buy much work
/// (CVE-2023-50868).
pub const HASHES_PER_SEARCH_MAX: usize = 8;

/// One NSEC or NSEC3 record whose signature was verified. Who makes one vouches for that.
#[derive(Clone, Copy, Debug)]
pub struct DenialRecord<'r> {
    /// The owner, as it came.
    pub owner: Name<'r>,
    /// NSEC or NSEC3; records of other types prove nothing.
    pub rtype: Rtype,
    /// The data, names in full.
    pub rdata: &'r [u8],
    /// The Labels field of the RRSIG that was verified: fewer than the owner has mean that the
    /// record was made from a wildcard, and denies nothing.
    pub labels: u8,
}

impl<'r> DenialRecord<'r> {
    /// Returns the records of an RRset that was verified.
    pub fn of(verified: &Verified<'r>) -> impl Iterator<Item = Self> {
        let rrset = verified.rrset();
        let labels = verified.labels();
        let (owner, rtype) = (rrset.owner(), rrset.rtype());
        rrset.data().map(move |rdata| Self { owner, rtype, rdata, labels })
    }

    /// Returns whether the record was made from a wildcard.
    fn is_expanded(&self) -> bool {
        signed_labels(self.owner) != self.labels
    }
}

/// What the proofs of one question may cost.
#[derive(Clone, Copy, Debug)]
pub struct HashBudget {
    iterations_max: u16,
    hashes: u32,
}

impl HashBudget {
    /// Allows `hashes` hashes of names, and NSEC3 records with up to `iterations_max` iterations.
    pub const fn new(iterations_max: u16, hashes: u32) -> Self {
        Self { iterations_max, hashes }
    }

    /// Returns the hashes that are left.
    pub const fn left(&self) -> u32 {
        self.hashes
    }

    fn spend(&mut self) -> Result<(), Unproved> {
        self.hashes = self.hashes.checked_sub(1).ok_or(Unproved::TooMuchWork)?;
        Ok(())
    }
}

/// How well something is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proved {
    /// It is so: secure.
    Fully,
    /// It is so but for unsigned delegations, which an opt-out range leaves out: insecure (RFC 5155
    /// §9.2).
    OptOut,
    /// Nobody looked, because the names are hashed more often than allowed: insecure (RFC 9276
    /// §3.2).
    TooManyIterations,
}

impl Proved {
    /// Returns whether the answer is secure.
    pub const fn is_secure(self) -> bool {
        matches!(self, Self::Fully)
    }

    /// Returns the code that tells a client why the answer is not secure, if there is one.
    pub const fn ede(self) -> Option<EdeCode> {
        match self {
            Self::Fully | Self::OptOut => None,
            Self::TooManyIterations => Some(EdeCode::UNSUPPORTED_NSEC3_ITERATIONS),
        }
    }
}

/// Why something is not proved: the answer is bogus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unproved {
    /// A record that the proof needs is not there, or does not speak for the name.
    Missing,
    /// A record says the contrary: the name, the type or the DS exists.
    Exists,
    /// The NSEC3 records are of different chains (RFC 5155 §8.2).
    MixedParameters,
    /// It would have taken more hashes than allowed.
    TooMuchWork,
}

impl Unproved {
    /// Returns the code that tells a client why (RFC 8914 §4).
    pub const fn ede(self) -> EdeCode {
        match self {
            Self::Missing => EdeCode::NSEC_MISSING,
            Self::Exists | Self::MixedParameters | Self::TooMuchWork => EdeCode::DNSSEC_BOGUS,
        }
    }
}

/// What a parent proves about a name that may be a delegation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delegation {
    /// It is a delegation without DS: what is below is insecure (RFC 6840 §4.4).
    Unsigned,
    /// An opt-out range covers it: if it is a delegation, it is an unsigned one.
    OptOut,
    /// Nobody looked, because the names are hashed more often than allowed: insecure.
    TooManyIterations,
    /// It is none: the name has no NS, or does not exist. The zone goes on below it.
    NoCut,
}

/// The NSEC and NSEC3 records that one zone signed, to be asked what they prove.
#[derive(Debug)]
pub struct Denials<'r> {
    zone: Name<'r>,
    names: nsec::Names<'r>,
    hashes: nsec3::Hashes<'r>,
}

impl<'r> Denials<'r> {
    /// Takes the records that the keys of `zone` signed. Those that are malformed, made from a
    /// wildcard, hashed in a way that is not known, or not of the zone prove nothing.
    pub fn new(zone: Name<'r>, records: impl IntoIterator<Item = DenialRecord<'r>>) -> Self {
        let mut denials = Self { zone, names: nsec::Names::new(zone), hashes: nsec3::Hashes::new(zone) };
        for record in records {
            match record.rtype {
                _ if record.is_expanded() => {}
                Rtype::NSEC => denials.names.add(&record),
                Rtype::NSEC3 => denials.hashes.add(&record),
                _ => {}
            }
        }
        denials
    }

    /// Asks whether a name does not exist and no wildcard stands in for it (RFC 4035 §5.4, RFC 5155
    /// §8.4), or has the type that stands for its absence (RFC 9824 §3.1).
    pub fn name_error(&self, qname: Name<'_>, budget: &mut HashBudget) -> Result<Proved, Unproved> {
        self.ask(
            qname,
            |names| names.name_error(qname).map(|()| Proved::Fully),
            |hashes| hashes.name_error(qname, budget),
        )
    }

    /// Asks whether a name, or the wildcard that stands in for it, has no records of a type (RFC
    /// 4035 §5.4, RFC 5155 §8.5 to §8.7, RFC 6840 §4.1 to §4.3). Only the parent proves that there
    /// is no DS.
    pub fn no_data(
        &self,
        qname: Name<'_>,
        qtype: Rtype,
        budget: &mut HashBudget,
    ) -> Result<Proved, Unproved> {
        if qtype == Rtype::DS && qname == self.zone && !qname.is_root() {
            return Err(Unproved::Missing);
        }
        self.ask(
            qname,
            |names| names.no_data(qname, qtype).map(|()| Proved::Fully),
            |hashes| hashes.no_data(qname, qtype, budget),
        )
    }

    /// Asks whether an answer may have been made from the wildcard below the last `labels` labels
    /// of the name: no closer name exists (RFC 4035 §5.3.4, RFC 5155 §8.8). `labels` is that of the
    /// answer's RRSIG ([`Verified::wildcard_labels`]).
    pub fn expansion(
        &self,
        qname: Name<'_>,
        labels: u8,
        budget: &mut HashBudget,
    ) -> Result<Proved, Unproved> {
        let labels = usize::from(labels);
        if labels < self.zone.label_count() || labels >= qname.label_count() {
            return Err(Unproved::Missing);
        }
        let next_closer = qname.suffix(labels + 1);
        self.ask(
            qname,
            |names| names.absent(next_closer).map(|_| Proved::Fully),
            |hashes| hashes.absent(next_closer, budget),
        )
    }

    /// Asks what the zone proves about a delegation without DS (RFC 4035 §5.2, RFC 5155 §8.9, RFC
    /// 6840 §4.4).
    pub fn delegation(&self, name: Name<'_>, budget: &mut HashBudget) -> Result<Delegation, Unproved> {
        if name == self.zone {
            return Err(Unproved::Missing);
        }
        self.ask(name, |names| names.delegation(name), |hashes| hashes.delegation(name, budget))
    }

    /// Returns whether a name has the type that says that it does not exist: who resolves may then
    /// answer NXDOMAIN (RFC 9824 §5.1).
    pub fn has_nxname(&self, qname: Name<'_>) -> bool {
        self.names.matching(qname).is_some_and(|nsec| is_nxname(nsec.types))
    }

    /// Asks the records of names, then those of hashes: a zone has one kind, or both while it
    /// changes over.
    fn ask<T>(
        &self,
        name: Name<'_>,
        names: impl FnOnce(&nsec::Names<'r>) -> Result<T, Unproved>,
        hashes: impl FnOnce(&nsec3::Hashes<'r>) -> Result<T, Unproved>,
    ) -> Result<T, Unproved> {
        if !name.is_at_or_below(self.zone) {
            return Err(Unproved::Missing);
        }
        match (self.names.is_empty(), self.hashes.is_empty()) {
            (true, true) => Err(Unproved::Missing),
            (false, true) => names(&self.names),
            (true, false) => hashes(&self.hashes),
            (false, false) => names(&self.names).or_else(|_| hashes(&self.hashes)),
        }
    }
}

/// Returns whether the types are those of a delegation, of which the parent knows nothing but the
/// DS (RFC 6840 §4.1).
fn is_cut(types: &[u8]) -> bool {
    has_type(types, Rtype::NS) && !has_type(types, Rtype::SOA)
}

/// Returns whether the zone says nothing about names below one with these types (RFC 6840 §4.1).
fn hides_below(types: &[u8]) -> bool {
    is_cut(types) || has_type(types, Rtype::DNAME)
}

/// Returns whether the types say that their name does not exist (RFC 9824 §2).
fn is_nxname(types: &[u8]) -> bool {
    has_type(types, Rtype::NXNAME) && has_only(types, &[Rtype::NXNAME, Rtype::NSEC, Rtype::RRSIG])
}

/// Asks whether the types of a name, or of the wildcard that stands in for it, leave a type out.
fn lack(types: &[u8], qname: Name<'_>, qtype: Rtype) -> Result<(), Unproved> {
    if is_nxname(types) {
        return Ok(());
    }
    let is_for_parent = qtype == Rtype::DS;
    // Only the parent knows of the DS (but the root has none), and nothing else.
    let is_wrong_side = match is_for_parent {
        true => has_type(types, Rtype::SOA) && !qname.is_root(),
        false => is_cut(types),
    };
    if is_wrong_side {
        return Err(Unproved::Missing);
    }
    let has_some = match qtype {
        Rtype::ANY => !has_only(types, &[Rtype::NSEC, Rtype::RRSIG]),
        _ => has_type(types, qtype),
    };
    match has_some || has_type(types, Rtype::CNAME) {
        true => Err(Unproved::Exists),
        false => Ok(()),
    }
}

/// Returns what the types at a name say of a delegation there.
fn delegation(types: &[u8], name: Name<'_>) -> Result<Delegation, Unproved> {
    lack(types, name, Rtype::DS)?;
    Ok(match has_type(types, Rtype::NS) {
        true => Delegation::Unsigned,
        false => Delegation::NoCut,
    })
}
