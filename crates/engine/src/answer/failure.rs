//! Why nobody answered.

use wire::{EdeCode, Rcode};

/// Why a fetch brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// No upstream answered in time.
    Timeout,
    /// The network refused: unreachable, connection refused or reset.
    Network,
    /// Every server is known to be down, so that nobody was asked.
    Down,
    /// Upstreams answered, but nothing that could be used; the last rcode.
    BadReply(Rcode),
    /// A bound on waiting queries was reached; the query was shed.
    Overloaded,
    /// The pool has no upstream with a known address (yet).
    NoUpstream,
    /// The server is stopping.
    Stopping,
}

impl Failure {
    /// Returns the Extended DNS Error that tells the client about it (RFC 8914).
    pub const fn ede(self) -> (EdeCode, &'static str) {
        match self {
            Self::Timeout => (EdeCode::NO_REACHABLE_AUTHORITY, "no upstream answered in time"),
            Self::Down => (EdeCode::NO_REACHABLE_AUTHORITY, "all upstreams are down"),
            Self::Network => (EdeCode::NETWORK_ERROR, "upstream not reachable"),
            Self::BadReply(_) => (EdeCode::INVALID_DATA, "upstream sent no usable answer"),
            Self::Overloaded => (EdeCode::OTHER, "too many queries waiting"),
            Self::NoUpstream => (EdeCode::NO_REACHABLE_AUTHORITY, "no upstream has a known address"),
            Self::Stopping => (EdeCode::NOT_READY, "server is stopping"),
        }
    }
}
