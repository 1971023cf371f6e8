//! What a resolver is told to do, with defaults.

use std::net::IpAddr;

use cache::rrsets::Partition;

use crate::addresses::AddressPolicy;
use crate::budget::Limits;
use crate::heap_name::HeapName;
use crate::hints;

/// How much of a name the servers above its zone see (RFC 9156).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Minimisation {
    /// All of it.
    Off,
    /// No more than they need; servers that cannot handle that see all of it.
    #[default]
    Relaxed,
    /// No more than they need, even if a name is lost by it.
    Strict,
}

/// A server of the root, known by configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Its name.
    pub name: HeapName,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// What a resolver is told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What one client's question may cost.
    pub limits: Limits,
    /// How much of a name the servers above its zone see.
    pub minimisation: Minimisation,
    /// Questions with less than the full name for one question (RFC 9156 §2.3: its
    /// MAX_MINIMISE_COUNT); after that the full name is sent.
    pub minimised_max: u8,
    /// Which addresses of servers are asked.
    pub addresses: AddressPolicy,
    /// Name servers of a zone that are used; one that names more does not want more.
    pub servers_max: usize,
    /// Servers of the root, to begin with.
    pub hints: Vec<Hint>,
    /// Whether the root's servers are asked which they are (RFC 9609).
    pub priming: bool,
    /// Port of the servers of zones.
    pub port: u16,
    /// UDP payload that is announced in EDNS.
    pub udp_octets: u16,
    /// Seconds that data is kept at most.
    pub ttl_max: u32,
    /// Seconds that negative answers are kept at most (RFC 2308 §5).
    pub negative_ttl_max: u32,
    /// Seconds for which a server that does not serve a zone is asked for it last.
    pub lame_seconds: u32,
    /// Milliseconds after which another server is asked beside one of which nothing is known.
    pub patience_unknown_ms: u32,
    /// Milliseconds that a server has to answer in any case before another one is asked.
    pub patience_ms_min: u32,
    /// Milliseconds after which another server is asked in any case.
    pub patience_ms_max: u32,
    /// Times that one address is asked one question.
    pub attempts: u8,
    /// What of the tables is this resolver's.
    pub partition: Partition,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            minimisation: Minimisation::default(),
            minimised_max: 10,
            addresses: AddressPolicy::default(),
            servers_max: 13,
            hints: hints::root(),
            priming: true,
            port: 53,
            // RFC 9715 §3: what passes nearly everywhere without fragments.
            udp_octets: 1232,
            ttl_max: 86_400,
            negative_ttl_max: 3600,
            lame_seconds: 900,
            patience_unknown_ms: 150,
            patience_ms_min: 30,
            patience_ms_max: 2000,
            attempts: 4,
            partition: Partition::default(),
        }
    }
}
