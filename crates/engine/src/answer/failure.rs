//! Why nobody answered.

use wire::{EdeCode, Rcode};

/// Why there is no answer, sorted by who is to blame; see [`Failure::blame`].
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
    /// So many replies are held for the client already that it may have no more.
    ClientLimit,
    /// The pool has no upstream with a known address (yet).
    NoUpstream,
    /// The server is stopping.
    Stopping,
    /// No branch of the policy had an answer.
    NoBranch,
    /// A step of the policy could not change the answer: larger than a message, or no records of
    /// the form they claim.
    NotRewritten,
    /// The policy asks for itself too often.
    TooDeep,
}

/// Who is to blame for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// What lies between us and other servers, as far as we can tell.
    Network,
    /// Another server, which said something.
    Server,
    /// A limit of ours.
    Limit,
    /// The state that this server is in.
    State,
    /// The policy.
    Policy,
}

impl Failure {
    /// Octets of its form in a cache.
    pub(crate) const OCTETS: usize = 3;

    /// Returns who is to blame.
    pub const fn blame(self) -> Blame {
        match self {
            Self::Timeout | Self::Network | Self::Down => Blame::Network,
            Self::BadReply(_) => Blame::Server,
            Self::Overloaded | Self::ClientLimit => Blame::Limit,
            Self::NoUpstream | Self::Stopping => Blame::State,
            Self::NoBranch | Self::NotRewritten | Self::TooDeep => Blame::Policy,
        }
    }

    /// Returns the Extended DNS Errors that tell the client about it (RFC 8914), the most telling
    /// first.
    pub const fn edes(self) -> &'static [(EdeCode, &'static str)] {
        match self {
            Self::Timeout => &[(EdeCode::NO_REACHABLE_AUTHORITY, "no upstream answered in time")],
            Self::Network => &[
                (EdeCode::NETWORK_ERROR, "upstream not reachable"),
                (EdeCode::NO_REACHABLE_AUTHORITY, "no upstream could be reached"),
            ],
            Self::Down => &[(EdeCode::NO_REACHABLE_AUTHORITY, "all upstreams are down")],
            Self::BadReply(_) => &[(EdeCode::INVALID_DATA, "upstream sent no usable answer")],
            Self::Overloaded => &[(EdeCode::OTHER, "too many queries waiting")],
            Self::ClientLimit => &[(EdeCode::OTHER, "too many queries of this client are waiting")],
            Self::NoUpstream => &[(EdeCode::NO_REACHABLE_AUTHORITY, "no upstream has a known address")],
            Self::Stopping => &[(EdeCode::NOT_READY, "server is stopping")],
            Self::NoBranch => &[(EdeCode::OTHER, "no branch of the policy had an answer")],
            Self::NotRewritten => &[(EdeCode::INVALID_DATA, "the answer could not be rewritten")],
            Self::TooDeep => &[(EdeCode::OTHER, "the policy asks for itself too often")],
        }
    }

    /// Returns the first of [`Failure::edes`].
    pub fn ede(self) -> (EdeCode, &'static str) {
        self.edes().first().copied().unwrap_or((EdeCode::OTHER, ""))
    }

    /// Returns the form in which a cache keeps it.
    pub(crate) const fn to_octets(self) -> [u8; Self::OCTETS] {
        let (kind, rcode) = match self {
            Self::Timeout => (1, 0),
            Self::Network => (2, 0),
            Self::Down => (3, 0),
            Self::BadReply(rcode) => (4, rcode.0),
            Self::Overloaded => (5, 0),
            Self::NoUpstream => (6, 0),
            Self::Stopping => (7, 0),
            Self::NoBranch => (8, 0),
            Self::NotRewritten => (9, 0),
            Self::TooDeep => (10, 0),
            Self::ClientLimit => (11, 0),
        };
        let [high, low] = rcode.to_be_bytes();
        [kind, high, low]
    }

    /// Returns what a cache has kept; nothing if that is of no kind that we know.
    pub(crate) const fn from_octets([kind, high, low]: [u8; Self::OCTETS]) -> Option<Self> {
        Some(match kind {
            1 => Self::Timeout,
            2 => Self::Network,
            3 => Self::Down,
            4 => Self::BadReply(Rcode(u16::from_be_bytes([high, low]))),
            5 => Self::Overloaded,
            6 => Self::NoUpstream,
            7 => Self::Stopping,
            8 => Self::NoBranch,
            9 => Self::NotRewritten,
            10 => Self::TooDeep,
            11 => Self::ClientLimit,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cache_keeps_is_the_same_failure() {
        for failure in [
            Failure::Timeout,
            Failure::Network,
            Failure::Down,
            Failure::BadReply(Rcode(4095)),
            Failure::Overloaded,
            Failure::ClientLimit,
            Failure::NoUpstream,
            Failure::Stopping,
            Failure::NoBranch,
            Failure::NotRewritten,
            Failure::TooDeep,
        ] {
            assert_eq!(Failure::from_octets(failure.to_octets()), Some(failure));
            assert!(!failure.ede().1.is_empty(), "{failure:?} says why");
        }
        assert_eq!(Failure::from_octets([0; 3]), None);
    }
}
