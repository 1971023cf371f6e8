//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Numbers of a query that conditions compare.

use wire::Query;

/// Which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The octets of a UDP message that the client says it takes; without EDNS, 512 (RFC 6891
    /// §6.2.5).
    EdnsSize,
    /// The labels of the name asked for, without that of the root (RFC 9499 §2).
    QnameLabels,
    /// The octets of the name asked for, with those of the lengths and the root: 1 to 255 (RFC 1035
    /// §3.1).
    QnameLength,
}

impl Number {
    /// Returns it.
    pub(crate) fn of(self, query: &Query<'_>) -> u16 {
        match self {
            Self::EdnsSize => query.edns.map_or(0, |edns| edns.udp_size).max(512),
            Self::QnameLabels => query.question.qname.label_count() as u16,
            Self::QnameLength => query.question.qname.len() as u16,
        }
    }

    /// Returns its word in conditions.
    pub const fn word(self) -> &'static str {
        match self {
            Self::EdnsSize => "edns-size",
            Self::QnameLabels => "qname-labels",
            Self::QnameLength => "qname-length",
        }
    }
}
