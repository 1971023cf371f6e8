//! What one worker may hold for queries that wait, and for asking upstreams.

use wire::Prefix;

/// UDP sockets that one worker has open to one address of a server at once, each on a random port.
pub const SOCKETS_MAX: usize = 64;

/// Addresses that are connected to at once to measure how far they are. What is noted besides waits
/// its turn, or is noted again.
pub const DISTANCES_MAX: usize = 32;

values::words! {
    /// What a query over UDP gets that is shed. Over connections it is always SERVFAIL: somebody
    /// waits for each reply there.
    Shed {
        /// SERVFAIL.
        Servfail = "servfail",
        /// Nothing.
        Drop = "drop",
        /// Nothing if too many of all clients wait, and SERVFAIL if too many of one do.
        DropOverload = "drop-overload",
    }
}

impl Shed {
    /// Returns whether a query over UDP that ends for this reason gets no reply.
    pub const fn drops(self, why: engine::Failure) -> bool {
        match self {
            Self::Servfail => false,
            Self::Drop => matches!(why, engine::Failure::Overloaded | engine::Failure::ClientLimit),
            Self::DropOverload => matches!(why, engine::Failure::Overloaded),
        }
    }
}

/// What one worker may hold. What is shed ends with [`engine::Failure::Overloaded`], and is a query
/// of the client that has the most waiting; or with [`engine::Failure::ClientLimit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Fetches under way.
    pub fetching_max: u32,
    /// Queries waiting for them.
    pub waiting_max: u32,
    /// Queries waiting for one fetch.
    pub waiting_per_fetch_max: u32,
    /// Queries waiting from one client (IPv4 address or IPv6 /56) once half of `waiting_max` or
    /// `fetching_max` is in use.
    pub waiting_per_client_max: u32,
    /// Replies held for one client whose address may be forged.
    pub unproven_per_client_max: u32,
    /// Replies held for one client whose address is proven, by a connection or a cookie.
    pub proven_per_client_max: u32,
    /// Age of a query after which no answer is sent to an address that may be forged, in
    /// milliseconds.
    pub discard_after_ms: u32,
    /// What a query over UDP gets that is shed.
    pub shed: Shed,
    /// UDP sockets open.
    pub sockets_max: u32,
    /// TCP connections open.
    pub connections_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fetching_max: 16_384,
            waiting_max: 32_768,
            waiting_per_fetch_max: 4096,
            waiting_per_client_max: 2048,
            unproven_per_client_max: 500,
            proven_per_client_max: 5000,
            discard_after_ms: 1900,
            shed: Shed::Servfail,
            sockets_max: 512,
            connections_max: 256,
        }
    }
}

/// How many replies are held for each client of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitNetwork {
    /// The network.
    pub prefix: Prefix,
    /// If the client's address may be forged; `None`: as many as for everybody.
    pub unproven_max: Option<u32>,
    /// If its address is proven; `None`: as many as for everybody.
    pub proven_max: Option<u32>,
}
