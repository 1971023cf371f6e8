//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The security state of an answer.

/// Whether an answer is known to be genuine (RFC 4035 §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// Nobody looked, or a step of ours changed it since.
    #[default]
    Unchecked = 0,
    /// Signatures lead to it from a trust anchor.
    Secure = 1,
    /// It is proven that no signatures lead to it.
    Insecure = 2,
    /// No trust anchor says whether signatures should lead to it.
    Indeterminate = 3,
    /// Signatures should lead to it and do not.
    Bogus = 4,
}

impl Security {
    /// Bits that it takes in an entry.
    pub(crate) const BITS: u32 = 3;

    /// Returns what an entry keeps.
    pub(crate) const fn to_bits(self) -> u16 {
        self as u16
    }

    /// Returns what an entry has kept; anything unknown counts as never checked.
    pub(crate) const fn from_bits(bits: u16) -> Self {
        match bits & ((1 << Self::BITS) - 1) {
            1 => Self::Secure,
            2 => Self::Insecure,
            3 => Self::Indeterminate,
            4 => Self::Bogus,
            _ => Self::Unchecked,
        }
    }
}
