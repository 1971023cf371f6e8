//! How much data is worth by where it was found (RFC 2181 §5.4.1).

/// Where data was found; more is worth more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The additional section, or the authority section of a reply that is no answer: glue, and the
    /// NS records of referrals.
    Additional = 1,
    /// The answer section of a reply without AA, and what follows an alias into another zone.
    Hearsay = 2,
    /// Glue of a zone that was transferred or is served here.
    ZoneGlue = 3,
    /// The authority section of an answer with AA.
    Authority = 4,
    /// The answer section of an answer with AA; also what an answer with AA denies.
    Answer = 5,
    /// A zone that was transferred.
    Transferred = 6,
    /// A zone that is served here.
    Primary = 7,
}

impl Rank {
    pub(crate) const BITS: u32 = 4;

    /// Returns the rank that an entry has kept; anything unknown is worth least.
    pub(crate) const fn from_bits(bits: u64) -> Self {
        match bits & ((1 << Self::BITS) - 1) {
            2 => Self::Hearsay,
            3 => Self::ZoneGlue,
            4 => Self::Authority,
            5 => Self::Answer,
            6 => Self::Transferred,
            7 => Self::Primary,
            _ => Self::Additional,
        }
    }
}
