//! Numbers of algorithms, and which of them are known here.

use std::fmt;
use std::str::FromStr;

/// A DNSSEC algorithm (IANA "DNS Security Algorithm Numbers"). Open: any number is legal, the known
/// ones have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Algorithm(pub u8);

impl Algorithm {
    /// RSA with SHA-1 (RFC 3110): checked for those who accept it, never signed with (RFC 9905).
    pub const RSASHA1: Self = Self(5);
    /// The same, of zones that may have NSEC3 (RFC 5155 §2).
    pub const RSASHA1_NSEC3_SHA1: Self = Self(7);
    /// RSA with SHA-256 (RFC 5702).
    pub const RSASHA256: Self = Self(8);
    /// RSA with SHA-512 (RFC 5702).
    pub const RSASHA512: Self = Self(10);
    /// ECDSA over P-256 with SHA-256 (RFC 6605).
    pub const ECDSAP256SHA256: Self = Self(13);
    /// ECDSA over P-384 with SHA-384 (RFC 6605).
    pub const ECDSAP384SHA384: Self = Self(14);
    /// Ed25519 (RFC 8080).
    pub const ED25519: Self = Self(15);
    /// Ed448 (RFC 8080).
    pub const ED448: Self = Self(16);

    /// The algorithms that are signed with and checked here. SHA-1 is not among them (RFC 9905).
    pub const SUPPORTED: [(Self, &'static str); 6] = [
        (Self::RSASHA256, "RSASHA256"),
        (Self::RSASHA512, "RSASHA512"),
        (Self::ECDSAP256SHA256, "ECDSAP256SHA256"),
        (Self::ECDSAP384SHA384, "ECDSAP384SHA384"),
        (Self::ED25519, "ED25519"),
        (Self::ED448, "ED448"),
    ];

    /// Returns whether signatures of this algorithm can be made and checked.
    pub fn is_supported(self) -> bool {
        Self::SUPPORTED.iter().any(|&(known, _)| known == self)
    }

    /// Returns whether keys are those of RSA, which come in sizes.
    pub const fn is_rsa(self) -> bool {
        matches!(self, Self::RSASHA256 | Self::RSASHA512)
    }
}

/// The algorithms whose signatures somebody accepts. Signatures by others prove nothing (RFC 4035
/// §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithms {
    /// Those that count.
    accepted: u32,
    /// Those of them whose signatures are not checked.
    believed: u32,
    /// Whether each that the parent of a zone speaks of has to sign.
    demands_all: bool,
}

impl Algorithms {
    /// Those that are signed with here: [`Algorithm::SUPPORTED`].
    pub const SUPPORTED: Self = Self {
        accepted: 1 << 8 | 1 << 10 | 1 << 13 | 1 << 14 | 1 << 15 | 1 << 16,
        believed: 0,
        demands_all: false,
    };

    /// Those that can be checked.
    const KNOWN: u32 = Self::SUPPORTED.accepted | 1 << 5 | 1 << 7;

    /// Returns the set with an algorithm more; one that cannot be checked changes nothing.
    #[must_use]
    pub const fn with(self, algorithm: Algorithm) -> Self {
        Self { accepted: self.accepted | Self::bit(algorithm) & Self::KNOWN, ..self }
    }

    /// Returns the set without an algorithm.
    #[must_use]
    pub const fn without(self, algorithm: Algorithm) -> Self {
        let others = !Self::bit(algorithm);
        Self { accepted: self.accepted & others, believed: self.believed & others, ..self }
    }

    /// Returns the set with an algorithm more, known or not, whose signatures are believed without
    /// a check. Anybody can forge them: for tests with zones that were signed long ago.
    #[must_use]
    pub const fn believing(self, algorithm: Algorithm) -> Self {
        let bit = Self::bit(algorithm);
        Self { accepted: self.accepted | bit, believed: self.believed | bit, ..self }
    }

    /// Returns the set for who wants a good signature of each algorithm in it that the DS records
    /// of a zone speak of, and not of any of them, which is what RFC 6840 §5.11 says.
    #[must_use]
    pub const fn demanding_all(self) -> Self {
        Self { demands_all: true, ..self }
    }

    /// Returns whether one good signature does not suffice.
    pub const fn demands_all(self) -> bool {
        self.demands_all
    }

    /// Returns the set with one of its algorithms alone.
    #[must_use]
    pub(crate) const fn only(self, algorithm: Algorithm) -> Self {
        let bit = Self::bit(algorithm);
        Self { accepted: self.accepted & bit, believed: self.believed & bit, ..self }
    }

    /// Returns whether signatures of an algorithm are believed without a check.
    pub const fn believes(self, algorithm: Algorithm) -> bool {
        self.believed & Self::bit(algorithm) != 0
    }

    /// Returns whether an algorithm is in it.
    pub const fn contains(self, algorithm: Algorithm) -> bool {
        self.accepted & Self::bit(algorithm) != 0
    }

    const fn bit(algorithm: Algorithm) -> u32 {
        if algorithm.0 < 32 { 1 << algorithm.0 } else { 0 }
    }
}

impl fmt::Display for Algorithm {
    /// Writes the mnemonic, or the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::SUPPORTED.iter().find(|(known, _)| known == self) {
            Some((_, name)) => f.pad(name),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl FromStr for Algorithm {
    type Err = wire::numbers::Unknown;

    /// Reads a supported algorithm: its mnemonic in any letter case, with or without hyphens, or
    /// its number.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain: String = text.chars().filter(|&c| c != '-' && c != '_').collect();
        Self::SUPPORTED
            .iter()
            .find(|(known, name)| name.eq_ignore_ascii_case(&plain) || plain == known.0.to_string())
            .map(|&(known, _)| known)
            .ok_or(wire::numbers::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha_1_counts_only_where_it_is_asked_for() {
        for number in 0..=u8::MAX {
            let algorithm = Algorithm(number);
            assert_eq!(Algorithms::SUPPORTED.contains(algorithm), algorithm.is_supported(), "{number}");
            let is_known = algorithm.is_supported() || [5, 7].contains(&number);
            assert_eq!(Algorithms::SUPPORTED.with(algorithm).contains(algorithm), is_known, "{number}");
            assert!(!Algorithms::SUPPORTED.with(algorithm).without(algorithm).contains(algorithm));
        }
    }

    #[test]
    fn what_is_believed_counts_although_it_cannot_be_checked() {
        let dsa = Algorithm(3);
        let believing = Algorithms::SUPPORTED.believing(dsa);
        assert!(believing.contains(dsa) && believing.believes(dsa));
        assert!(!believing.believes(Algorithm::RSASHA256) && !Algorithms::SUPPORTED.believes(dsa));
        assert_eq!(believing.without(dsa), Algorithms::SUPPORTED);
    }

    #[test]
    fn algorithms_are_read_by_name_and_number() {
        for (text, expect) in [
            ("ECDSAP256SHA256", Some(13)),
            ("ecdsa-p256-sha256", Some(13)),
            ("15", Some(15)),
            ("ed448", Some(16)),
            ("RSASHA1", None),
            ("5", None),
            ("", None),
        ] {
            assert_eq!(text.parse::<Algorithm>().ok().map(|algorithm| algorithm.0), expect, "{text}");
        }
        assert_eq!(Algorithm(13).to_string(), "ECDSAP256SHA256");
        assert_eq!(Algorithm(3).to_string(), "3");
    }
}
