//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Numbers of a query that conditions compare.

use wire::Query;

/// Which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The octets of a UDP message that the client says it takes; without EDNS, 512 (RFC 6891 §6.2.5).
    EdnsSize,
}

impl Number {
    /// Returns it.
    pub(crate) fn of(self, query: &Query<'_>) -> u16 {
        match self {
            Self::EdnsSize => query.edns.map_or(0, |edns| edns.udp_size).max(512),
        }
    }

    /// Returns its word in conditions.
    pub const fn word(self) -> &'static str {
        match self {
            Self::EdnsSize => "edns-size",
        }
    }
}
