//! Why a question has no answer: one reason that machines read, and a text for people.

use std::fmt;
use std::net::IpAddr;

use dnssec::proof::Unproved;
use wire::EdeCode;

use crate::budget::Limit;
use crate::heap_name::HeapName;

/// Octets of a text in an Extended DNS Error, so that no reply grows large by it.
const TEXT_OCTETS_MAX: usize = 120;

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason.
    pub reason: Reason,
    /// The zone whose servers could not be made to answer, or whose signatures are wrong, if it
    /// came to that.
    pub zone: Option<HeapName>,
    /// The server whose reply is bogus.
    pub server: Option<IpAddr>,
    /// Whom the zone wants to hear of it (RFC 9567).
    pub(crate) agent: Option<HeapName>,
    /// Whether it is the keys of the zone that could not be had.
    pub is_of_keys: bool,
}

/// The reason of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No server of the zone answered.
    Silent,
    /// No server of the zone serves it: they refuse, or answer without AA.
    Lame,
    /// The servers of the zone answer with errors, or with what is no answer.
    Faulty,
    /// No address of any server of the zone could be found.
    NoAddress,
    /// The addresses of the zone's servers depend on each other, and nobody has glue.
    Circle,
    /// The zone is one of this server's, and is not loaded or has expired.
    NotLoaded,
    /// Aliases lead back to where they came from.
    AliasLoop,
    /// The question would have cost more than one may.
    Limit(Limit),
    /// Nobody can be asked for data of this type or class.
    Unsupported,
    /// The zone is signed, and what it says is not proved to be its own.
    Bogus(Defect),
    /// The name asks whether a key of the root is trusted, and the answer is no (RFC 8509).
    Sentinel,
    /// Policies were asked before servers, and nobody else wants to know.
    Stopped,
}

/// What a validator finds wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// No signature is good.
    Signature(dnssec::Failure),
    /// Absence is not proved.
    Denial(Unproved),
    /// Absence is not proved by the proofs that there are, or by nobody who could.
    Unproved,
    /// A zone that its parent has DS records of has no DNSKEY.
    NoKeys,
    /// Data is signed as if by a zone that is none.
    NoZone,
}

impl Defect {
    /// Returns the code of its Extended DNS Error (RFC 8914 §4).
    pub const fn ede(self) -> EdeCode {
        match self {
            Self::Signature(failure) => failure.ede(),
            Self::Denial(unproved) => unproved.ede(),
            Self::NoKeys => EdeCode::DNSKEY_MISSING,
            Self::NoZone | Self::Unproved => EdeCode::DNSSEC_BOGUS,
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signature(failure) => fmt::Display::fmt(failure, f),
            Self::Denial(Unproved::Missing) => f.write_str("no proof of absence"),
            Self::Denial(Unproved::Exists) => f.write_str("a proof that what is denied exists"),
            Self::Denial(Unproved::MixedParameters) => f.write_str("NSEC3 records of different chains"),
            Self::Denial(Unproved::TooMuchWork) => f.write_str("a proof that takes too many hashes"),
            Self::Unproved => f.write_str("absence that nothing proves"),
            Self::NoKeys => f.write_str("no DNSKEY"),
            Self::NoZone => f.write_str("signed as if by a zone that is none"),
        }
    }
}

impl Reason {
    /// Returns the name that machines read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Lame => "lame",
            Self::Faulty => "faulty",
            Self::NoAddress => "no-address",
            Self::Circle => "circle",
            Self::NotLoaded => "not-loaded",
            Self::AliasLoop => "alias-loop",
            Self::Limit(_) => "limit",
            Self::Unsupported => "unsupported",
            Self::Bogus(_) => "bogus",
            Self::Sentinel => "sentinel",
            Self::Stopped => "stopped",
        }
    }
}

impl Failure {
    /// Returns a failure that no zone is to blame for.
    pub(crate) const fn without_zone(reason: Reason) -> Self {
        Self { reason, zone: None, server: None, agent: None, is_of_keys: false }
    }

    /// Returns a failure of a zone's.
    pub(crate) const fn of_zone(reason: Reason, zone: HeapName) -> Self {
        Self { reason, zone: Some(zone), server: None, agent: None, is_of_keys: false }
    }

    /// Returns the code of its Extended DNS Error (RFC 8914 §4).
    pub const fn ede(&self) -> EdeCode {
        match self.reason {
            Reason::Silent | Reason::Lame | Reason::Faulty | Reason::NoAddress if self.is_of_keys => {
                EdeCode::DNSKEY_MISSING
            }
            Reason::Silent | Reason::Lame | Reason::NoAddress | Reason::Circle => {
                EdeCode::NO_REACHABLE_AUTHORITY
            }
            Reason::Faulty => EdeCode::NETWORK_ERROR,
            Reason::AliasLoop | Reason::NotLoaded => EdeCode::INVALID_DATA,
            Reason::Limit(_) | Reason::Stopped => EdeCode::OTHER,
            // What the name says of our keys is wrong.
            Reason::Sentinel => EdeCode::DNSSEC_BOGUS,
            Reason::Unsupported => EdeCode::NOT_SUPPORTED,
            Reason::Bogus(defect) => defect.ede(),
        }
    }

    /// Returns the text of its Extended DNS Error, at most 120 octets.
    pub fn text(&self) -> String {
        let mut text = self.to_string();
        while text.len() > TEXT_OCTETS_MAX {
            text.pop();
        }
        text
    }
}

impl fmt::Display for Failure {
    /// Writes the reason and then the zone, whose name may be long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_of_keys {
            f.write_str("no DNSKEY: ")?;
        }
        match self.reason {
            Reason::Silent => f.write_str("no server answers")?,
            Reason::Lame => f.write_str("no server is authoritative")?,
            Reason::Faulty => f.write_str("all servers answer with errors")?,
            Reason::NoAddress => f.write_str("no server has an address")?,
            Reason::Circle => f.write_str("the servers' addresses depend on each other")?,
            Reason::NotLoaded => f.write_str("the zone is not loaded or has expired")?,
            Reason::AliasLoop => f.write_str("aliases lead back to where they came from")?,
            Reason::Limit(limit) => write!(f, "limit: {limit}")?,
            Reason::Unsupported => f.write_str("nobody can be asked for data of this type")?,
            Reason::Bogus(defect) => write!(f, "{defect}")?,
            Reason::Sentinel => f.write_str("root key sentinel: the answer is no")?,
            Reason::Stopped => f.write_str("policies were asked before servers")?,
        }
        if let Some(server) = &self.server {
            write!(f, ", from {server}")?;
        }
        match &self.zone {
            Some(zone) => write!(f, " for zone {zone}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnssec::{Algorithm, Unverified};
    use wire::NameBuf;

    #[test]
    fn a_text_stays_short_whatever_the_zone_is_called() {
        let name = NameBuf::from_text(&[r"\001\002."; 60].concat()).expect("a name");
        let failure = Failure::of_zone(Reason::Silent, HeapName::new(name.as_name()));
        assert_eq!(failure.text().len(), 120);
        assert!(failure.text().starts_with("no server answers for zone \\001"));
        assert_eq!(failure.ede(), EdeCode::NO_REACHABLE_AUTHORITY);
    }

    #[test]
    fn keys_that_cannot_be_had_are_missing() {
        let zone = NameBuf::from_text("example.org").expect("a name");
        let failure = Failure::of_zone(Reason::Faulty, HeapName::new(zone.as_name()));
        let failure = Failure { is_of_keys: true, ..failure };
        let expected = "no DNSKEY: all servers answer with errors for zone example.org.";
        assert_eq!((failure.text().as_str(), failure.ede()), (expected, EdeCode::DNSKEY_MISSING));
    }

    #[test]
    fn what_is_bogus_names_the_key_the_server_and_the_zone() {
        let why = Unverified::Bogus(dnssec::Bogus::Expired);
        let signature = dnssec::Failure { why, key: Some((20_326, Algorithm::ECDSAP256SHA256)) };
        let zone = NameBuf::from_text("example.org").expect("a name");
        let reason = Reason::Bogus(Defect::Signature(signature));
        let failure = Failure {
            server: Some(IpAddr::from([192, 0, 2, 3])),
            ..Failure::of_zone(reason, HeapName::new(zone.as_name()))
        };
        let expected = "a signature that has expired (key 20326, algorithm ECDSAP256SHA256), \
                        from 192.0.2.3 for zone example.org.";
        assert_eq!((failure.text().as_str(), failure.ede()), (expected, EdeCode::SIGNATURE_EXPIRED));
    }
}
