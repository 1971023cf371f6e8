//! Upstream groups: which of their servers are asked, and when another one is.

use std::net::SocketAddr;
use std::sync::Arc;

use engine::PoolId;
use wire::{Name, NameBuf, Rcode};

use super::limits::Limits;
use super::servers::ServerPlan;

/// One upstream group.
#[derive(Clone, PartialEq)]
pub struct PoolPlan {
    /// Its number, stable over reloads for as long as it keeps its name.
    pub id: PoolId,
    /// Its name, for people.
    pub name: String,
    /// Its servers, in the order of preference.
    pub servers: Vec<ServerPlan>,
    /// Which of them to ask.
    pub pick: Pick,
    /// The time a client waits, in milliseconds; we give up at nine tenths of it, so that our
    /// failure still arrives.
    pub timeout_ms: u32,
    /// How long a silent server is waited for, and how often it is asked.
    pub patience: Patience,
    /// Whether a slow answer makes us ask another server as well.
    pub hedge: Hedge,
    /// The rcodes that make us ask the next server.
    pub fallback_on: RcodeSet,
    /// Resolvers for the names among `servers`.
    pub bootstrap: Vec<SocketAddr>,
    /// Whether the letter case of names is made random (draft-vixie-dnsext-dns0x20), to be compared
    /// on return.
    pub case_randomisation: bool,
    /// Names, with those below them, whose letter case stays as it is.
    pub exact_case: Arc<[NameBuf]>,
    /// Whether RD is set: yes for forwarders.
    pub recursion_desired: bool,
    /// The UDP payload size we announce.
    pub udp_size: u16,
    /// Fetches of this pool under way on one worker at once; more are shed.
    pub fetching_max: u32,
}

impl PoolPlan {
    /// Returns a pool of `servers` with the defaults: the first that is well, five seconds, hedged.
    pub fn new(id: PoolId, name: &str, servers: Vec<ServerPlan>) -> Self {
        Self {
            id,
            name: name.to_owned(),
            servers,
            pick: Pick::Ordered,
            timeout_ms: 5000,
            patience: Patience::default(),
            hedge: Hedge::Auto,
            fallback_on: RcodeSet::UNUSABLE,
            bootstrap: Vec::new(),
            case_randomisation: false,
            exact_case: Arc::default(),
            recursion_desired: true,
            udp_size: 1232,
            fetching_max: Limits::default().fetching_max,
        }
    }
}

impl PoolPlan {
    /// Returns whether the letter case of this name is made random.
    pub fn mixes_case(&self, name: Name<'_>) -> bool {
        self.case_randomisation && !self.exact_case.iter().any(|zone| name.is_at_or_below(zone.as_name()))
    }
}

/// How long a silent server is waited for before a question is sent again, and how often that is
/// done. Each time doubles the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The first wait for a server that was never heard from, in milliseconds; others have their
    /// usual time and four times its usual variation.
    pub unknown_ms: u32,
    /// The longest wait, in milliseconds.
    pub max_ms: u32,
    /// Rounds of silence after which a question fails if no server of the group works.
    pub attempts: u8,
}

impl Default for Patience {
    /// A lost packet never costs more than 800 ms before the next one leaves.
    fn default() -> Self {
        Self { unknown_ms: 300, max_ms: 800, attempts: 3 }
    }
}

/// Which servers of a group to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The first that is up; the others in order when it fails.
    Ordered,
    /// This many at once. The first usable answer wins; an unusable one is passed on
    /// only when all have answered or failed.
    Race(u8),
    /// The one with the lowest smoothed round-trip time. One query in 32 also goes to
    /// another server, so that all stay measured at no cost to the client.
    Fastest,
    /// One at random, by weight.
    Balanced,
    /// The one that the name asked for belongs to, by weight, so that each server's cache has names
    /// of its own; when it is down, its names spread over the others.
    Hashed,
    /// Some at once. The first answer with the records asked for wins; one that says there are none
    /// waits a while for such an answer.
    PreferPositive {
        /// How many at once.
        width: u8,
        /// How long a negative answer waits, in milliseconds.
        wait_ms: u32,
    },
    /// Some at once. The first answer that so many agree on wins: the same kind of negative answer,
    /// or a record in common. If there is no such answer, the one that most agree on.
    Consensus {
        /// How many at once.
        width: u8,
        /// How many must agree.
        agreeing: u8,
    },
}

impl Pick {
    /// Returns how many servers are asked at once if it is more than one.
    pub const fn width(self) -> Option<u8> {
        match self {
            Self::Race(width) | Self::PreferPositive { width, .. } | Self::Consensus { width, .. } => {
                Some(width)
            }
            Self::Ordered | Self::Fastest | Self::Balanced | Self::Hashed => None,
        }
    }

    /// Returns whether several servers are asked at once.
    pub const fn is_race(self) -> bool {
        self.width().is_some()
    }
}

/// Whether to ask a second server when the first is slower than it usually is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hedge {
    /// Never.
    Off,
    /// When about 95 % of its answers would have come. At most one query in ten is hedged.
    Auto,
    /// After this many milliseconds. At most one query in ten is hedged.
    AfterMs(u32),
}

/// A set of rcodes below 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcodeSet(u32);

impl RcodeSet {
    /// No rcode.
    pub const EMPTY: Self = Self(0);
    /// Every rcode but NOERROR, NXDOMAIN and YXDOMAIN, which are answers; the default of
    /// `fallback-on`.
    pub const UNUSABLE: Self = Self(!(1 | 1 << 3 | 1 << 6));

    /// Returns this set with `rcode`.
    #[must_use]
    pub const fn with(self, rcode: Rcode) -> Self {
        if rcode.0 < 32 { Self(self.0 | 1 << rcode.0) } else { self }
    }

    /// Returns whether `rcode` is in the set; rcodes above 31 always are, nobody can use them.
    pub const fn has(self, rcode: Rcode) -> bool {
        rcode.0 >= 32 || self.0 & (1 << rcode.0) != 0
    }
}
