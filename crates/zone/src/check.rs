//! What is wrong with a zone's data although each record by itself is right.

use std::fmt;

use wire::{NameBuf, Rtype};

use crate::master::Place;
use crate::nsec3::ITERATIONS_MAX;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The zone is served; somebody should look at it.
    Warning,
    /// The zone is not served.
    Error,
}

/// Who can put right what is wrong with a zone's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// We, or who sends an update: they come from here.
    #[default]
    Own,
    /// The operator of another server: they came by a transfer, or were kept of one. What can be
    /// served is served.
    Received,
}

/// Something wrong with a zone's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The first record of the owner, where there is one.
    pub place: Option<Place>,
    /// The owner that it is about.
    pub owner: NameBuf,
    /// What is wrong.
    pub problem: Problem,
}

/// What can be wrong with a zone's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no SOA at the apex.
    NoSoa,
    /// There are several SOA records.
    ManySoas,
    /// A SOA that is not at the apex.
    SoaBelowApex,
    /// There is no NS at the apex.
    NoNs,
    /// A CNAME and other data (RFC 2181 §10.1).
    AliasWithOthers(Rtype),
    /// Several CNAME records (RFC 2181 §10.1).
    ManyAliases,
    /// Several DNAME records (RFC 6672 §2.4).
    ManyDnames,
    /// Several ALIAS records at one name.
    ManyTargets,
    /// A zone that is signed beforehand has ALIAS: the addresses of its target are not signed.
    UnsignedAddresses,
    /// NS and DNAME at a name that is not the apex (RFC 6672 §2.3).
    CutWithDname,
    /// Data below a DNAME (RFC 6672 §2.4).
    BelowDname,
    /// DS at the apex: it belongs to the parent (RFC 4035 §2.4).
    DsAtApex,
    /// DS where there is no NS (RFC 4035 §2.4).
    DsWithoutCut,
    /// Not at or below the apex; left out.
    OutOfZone,
    /// Records of one RRset have different TTLs (RFC 2181 §5.2); the smallest is taken.
    Ttls(Rtype),
    /// An RRset, or all signatures of one, that does not fit a message.
    TooLarge(Rtype),
    /// A text of more than 255 octets: it becomes several strings.
    Split(Rtype),
    /// A record that is there twice; it is served once.
    Twice(Rtype),
    /// Data below a zone cut that is not glue; it is never served.
    Hidden(Rtype),
    /// A server of a zone cut lies below that cut and has no address: nobody can reach it.
    NoGlue(NameBuf),
    /// A server of a zone cut lies below another cut of this zone, or in it, and has no address
    /// here.
    NoAddress(NameBuf),
    /// What an NS, MX or SRV record names is an alias (RFC 2181 §10.3).
    TargetIsAlias(Rtype, NameBuf),
    /// A wildcard with NS: what that means is not defined (RFC 4592 §4.2).
    WildcardCut,
    /// A wildcard with DNAME: likewise (RFC 4592 §4.4).
    WildcardDname,
    /// NSEC3 records that no NSEC3PARAM at the apex belongs to: they prove nothing.
    StrayNsec3,
    /// NSEC3 with iterations (RFC 9276 §3.1), perhaps more than are computed here.
    Iterations {
        /// Those of NSEC3PARAM.
        iterations: u16,
        /// Whether denials prove nothing but that they are too many.
        is_costly: bool,
    },
    /// The zone has more octets than can be numbered.
    ZoneTooLarge,
    /// A record whose data has the form of its type and contradicts itself: why.
    Data(Rtype, &'static str),
}

impl Problem {
    /// Returns how bad it is.
    pub const fn level(&self) -> Level {
        match self {
            Self::NoSoa
            | Self::ManySoas
            | Self::SoaBelowApex
            | Self::AliasWithOthers(_)
            | Self::ManyAliases
            | Self::ManyDnames
            | Self::ManyTargets
            | Self::CutWithDname
            | Self::BelowDname
            | Self::DsAtApex
            | Self::TooLarge(_)
            | Self::Data(..)
            | Self::ZoneTooLarge => Level::Error,
            Self::NoNs
            | Self::DsWithoutCut
            | Self::OutOfZone
            | Self::Ttls(_)
            | Self::Twice(_)
            | Self::Split(_)
            | Self::Hidden(_)
            | Self::NoGlue(_)
            | Self::NoAddress(_)
            | Self::TargetIsAlias(..)
            | Self::WildcardCut
            | Self::WildcardDname
            | Self::StrayNsec3
            | Self::UnsignedAddresses
            | Self::Iterations { .. } => Level::Warning,
        }
    }

    /// Returns whether it is that something is missing.
    pub(crate) const fn is_of_absence(&self) -> bool {
        matches!(self, Self::NoSoa | Self::NoNs | Self::NoGlue(_) | Self::NoAddress(_))
    }

    /// Returns how bad it is in a zone whose records come from there.
    pub const fn level_in(&self, origin: Origin) -> Level {
        match (origin, self) {
            (Origin::Own, _) | (Origin::Received, Self::NoSoa | Self::ManySoas | Self::ZoneTooLarge) => {
                self.level()
            }
            (Origin::Received, _) => Level::Warning,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSoa => f.write_str("no SOA at the apex"),
            Self::ManySoas => f.write_str("several SOA records, expected one"),
            Self::SoaBelowApex => f.write_str("a SOA that is not at the apex"),
            Self::NoNs => f.write_str("no NS at the apex"),
            Self::AliasWithOthers(rtype) => write!(f, "a CNAME beside {rtype}, expected it to stand alone"),
            Self::ManyAliases => f.write_str("several CNAME records, expected one"),
            Self::ManyDnames => f.write_str("several DNAME records, expected one"),
            Self::ManyTargets => f.write_str("several ALIAS records, expected one"),
            Self::UnsignedAddresses => {
                f.write_str("ALIAS in a signed zone: the addresses of its target are not signed, and validating clients refuse them")
            }
            Self::CutWithDname => f.write_str("a DNAME beside NS, expected it at the apex or without NS"),
            Self::BelowDname => f.write_str("data below a DNAME"),
            Self::DsAtApex => f.write_str("a DS at the apex, expected it in the parent zone"),
            Self::DsWithoutCut => f.write_str("a DS without NS"),
            Self::OutOfZone => f.write_str("not in the zone; left out"),
            Self::Ttls(rtype) => write!(f, "{rtype} records with different TTLs; the smallest is taken"),
            Self::TooLarge(rtype) => write!(f, "{rtype} records that do not fit a message of 65535 octets"),
            Self::Twice(rtype) => write!(f, "the same {rtype} record twice"),
            Self::Split(rtype) => {
                write!(f, "a text of more than 255 octets in {rtype}; it is split into several strings")
            }
            Self::Hidden(rtype) => write!(f, "{rtype} below a zone cut, which is never served"),
            Self::NoGlue(server) => {
                write!(f, "no address of the server {server}, which lies below this zone cut")
            }
            Self::NoAddress(server) => {
                write!(f, "no address of the server {server}, which lies in this zone")
            }
            Self::TargetIsAlias(rtype, target) => write!(f, "{rtype} names {target}, which is an alias"),
            Self::WildcardCut => f.write_str("NS at a wildcard, which is never a zone cut"),
            Self::WildcardDname => f.write_str("DNAME at a wildcard, whose meaning is not defined"),
            Self::StrayNsec3 => {
                f.write_str("NSEC3 records without a matching NSEC3PARAM at the apex; nothing is proved")
            }
            Self::Iterations { iterations, is_costly: false } => {
                write!(f, "NSEC3 with {iterations} iterations, expected 0: validators may treat the zone as insecure")
            }
            Self::Iterations { iterations, is_costly: true } => write!(
                f,
                "NSEC3 with {iterations} iterations, expected 0: more than {ITERATIONS_MAX} are not computed, and \
                 validators treat the zone as insecure"
            ),
            Self::Data(rtype, why) => write!(f, "{rtype}: {why}"),
            Self::ZoneTooLarge => f.write_str("more than 4 GiB of records"),
        }
    }
}
