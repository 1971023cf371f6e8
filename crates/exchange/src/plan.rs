//! Whom to ask and how: plain data that `config` builds and every worker adopts.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use engine::PoolId;
use wire::{NameBuf, Rcode};

use crate::secure::News;
use crate::server::SOCKETS_MAX;

pub use crate::provider::{Dnscrypt, DnscryptPlan, Odoh, OdohPlan};
pub use crate::secure::{
    Identity, Proof, Roots, Secure, SecurePlan, Unusable, certificates, pin, pin_text, tls_name,
};

/// Everything that forwarding needs to know; replaced whole on a reload.
#[derive(Clone, PartialEq)]
pub struct Plan {
    /// The upstream groups.
    pub pools: Vec<PoolPlan>,
    /// What one worker may hold.
    pub limits: Limits,
}

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
    /// The time a client waits, in milliseconds; we give up at nine tenths of it, so that our failure still arrives.
    pub timeout_ms: u32,
    /// Whether a slow answer makes us ask another server as well.
    pub hedge: Hedge,
    /// The rcodes that make us ask the next server.
    pub fallback_on: RcodeSet,
    /// Resolvers for the names among `servers`.
    pub bootstrap: Vec<SocketAddr>,
    /// Whether the letter case of names is made random (draft-vixie-dnsext-dns0x20), to be compared on return.
    pub case_randomisation: bool,
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
            hedge: Hedge::Auto,
            fallback_on: RcodeSet::UNUSABLE,
            bootstrap: Vec::new(),
            case_randomisation: false,
            recursion_desired: true,
            udp_size: 1232,
            fetching_max: Limits::default().fetching_max,
        }
    }
}

/// One server of a group.
#[derive(Clone, PartialEq)]
pub struct ServerPlan {
    /// Where it is.
    pub target: Target,
    /// How to talk to it.
    pub way: Arc<Way>,
    /// Its share under [`Pick::Balanced`]; zero counts as one.
    pub weight: u16,
    /// Which bit stands for it where only some servers of the group may be asked.
    pub member: u8,
}

impl ServerPlan {
    /// Returns a server at `address` that is asked in this way.
    pub fn new(address: SocketAddr, way: Way) -> Self {
        Self { target: Target::Address(address), way: Arc::new(way), weight: 1, member: 0 }
    }

    /// Returns a server at `address` that is asked over UDP (and over TCP when it truncates).
    pub fn udp(address: SocketAddr) -> Self {
        Self::new(address, Way::default())
    }

    /// Returns a server at `address` that is asked over TCP only.
    pub fn tcp(address: SocketAddr) -> Self {
        Self::new(address, Way { protocol: Protocol::Tcp, ..Way::default() })
    }
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// At this address.
    Address(SocketAddr),
    /// At all addresses that the pool's bootstrap resolvers give for this name.
    Name {
        /// The name.
        name: NameBuf,
        /// The port.
        port: u16,
    },
}

/// Everything about how a server is asked, except where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// What carries the queries.
    pub protocol: Protocol,
    /// What our sockets are bound to.
    pub bind: Bind,
    /// What the server must prove; set if and only if the protocol encrypts.
    pub secure: Option<Secure>,
    /// What is asked for; set if and only if the protocol is HTTP.
    pub http: Option<HttpPlan>,
    /// Whose resolver it must be; set if and only if the protocol is DNSCrypt.
    pub dnscrypt: Option<Dnscrypt>,
    /// Who alone reads the messages; set if and only if the protocol is oblivious DNS over HTTPS.
    pub odoh: Option<Odoh>,
    /// The SOCKS5 proxy that connects us.
    pub proxy: Option<Proxy>,
    /// How many connections are kept.
    pub connections: Connections,
}

impl Way {
    /// Returns whether connections are all that is used; what a proxy relays is one, too.
    pub fn is_connected(&self) -> bool {
        self.protocol.is_connected() || self.proxy.is_some()
    }

    /// Returns whose name the server proves, if it must prove one, and what was told of its trouble.
    pub(crate) fn proven(&self) -> Option<(String, &News)> {
        let secure =
            self.secure.as_ref().map(|secure| (secure.plan().name.to_str().into_owned(), secure.news()));
        secure.or_else(|| self.dnscrypt.as_ref().map(|plan| (plan.plan().name.to_string(), plan.news())))
    }
}

/// A SOCKS5 proxy (RFC 1928).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Where it is.
    pub address: SocketAddr,
    /// What it is told about us, if anything.
    pub login: Option<Login>,
}

/// A user and a password, at most 255 octets each (RFC 1929).
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password. Never printed.
    pub password: Vec<u8>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Where an HTTP server has its DNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPlan {
    /// The name or address that requests are for, and the port if it is not 443.
    pub authority: String,
    /// The path, beginning with a slash.
    pub path: String,
}

/// How to talk to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Datagrams, and TCP for what does not fit.
    #[default]
    Udp,
    /// Connections only.
    Tcp,
    /// TLS over TCP (RFC 7858).
    Tls,
    /// HTTP/2 over TLS (RFC 8484).
    Https,
    /// QUIC (RFC 9250).
    Quic,
    /// HTTP/3 over QUIC (RFC 8484).
    Https3,
    /// DNSCrypt version 2.
    Dnscrypt,
    /// Oblivious messages over HTTP/2 (RFC 9230).
    Odoh,
}

impl Protocol {
    /// Returns the prefix that says so before an address.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Udp => "",
            Self::Tcp => "tcp://",
            Self::Tls => "tls://",
            Self::Https => "https://",
            Self::Quic => "quic://",
            Self::Https3 => "h3://",
            Self::Dnscrypt => "dnscrypt://",
            Self::Odoh => "odoh://",
        }
    }

    /// Returns what is offered as the application's protocol (ALPN).
    pub fn alpn(self) -> Vec<Vec<u8>> {
        match self {
            Self::Udp | Self::Tcp | Self::Dnscrypt => Vec::new(),
            Self::Tls => vec![b"dot".to_vec()],
            Self::Https | Self::Odoh => vec![b"h2".to_vec()],
            Self::Quic => vec![b"doq".to_vec()],
            Self::Https3 => vec![b"h3".to_vec()],
        }
    }

    /// Returns whether connections are all that is used.
    pub const fn is_connected(self) -> bool {
        !matches!(self, Self::Udp)
    }
}

/// Connections that one worker keeps to one address of a server, at most.
pub const CONNECTIONS_MAX: usize = 8;

/// How many connections one worker keeps to one address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// This many are opened before anybody asks, and opened again when they end.
    pub min: u8,
    /// At most this many; never more than [`CONNECTIONS_MAX`].
    pub max: u8,
    /// One that has nothing to do is closed after this, in milliseconds, unless it is among the first `min`.
    pub idle_ms: u32,
}

impl Default for Connections {
    fn default() -> Self {
        Self { min: 0, max: 4, idle_ms: 10_000 }
    }
}

/// What sockets are bound to before they connect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bind {
    /// The source address.
    pub source: Option<IpAddr>,
    /// The routing mark (`SO_MARK`; needs `CAP_NET_ADMIN`).
    pub mark: Option<u32>,
    /// The interface (`SO_BINDTODEVICE`).
    pub device: Option<String>,
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
    /// Some at once. The first answer with the records asked for wins; one that says there are none waits a while for
    /// such an answer.
    PreferPositive {
        /// How many at once.
        width: u8,
        /// How long a negative answer waits, in milliseconds.
        wait_ms: u32,
    },
    /// Some at once. The first answer that so many agree on wins: the same kind of negative answer, or a record in
    /// common. If there is no such answer, the one that most agree on.
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
            Self::Ordered | Self::Fastest | Self::Balanced => None,
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
    /// Every rcode but NOERROR, NXDOMAIN and YXDOMAIN, which are answers; the default of `fallback-on`.
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

/// What a query over UDP gets that is shed. Over connections it is always SERVFAIL: somebody waits for each reply there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shed {
    /// SERVFAIL.
    Servfail,
    /// Nothing.
    Drop,
}

/// What one worker may hold. What is shed ends with [`engine::Failure::Overloaded`]; it is a query of the client that has
/// the most waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Fetches under way.
    pub fetching_max: u32,
    /// Queries waiting for them.
    pub waiting_max: u32,
    /// Queries waiting for one fetch.
    pub waiting_per_fetch_max: u32,
    /// Queries waiting from one client (IPv4 address or IPv6 /56) once half of `waiting_max` or `fetching_max` is in use.
    pub waiting_per_client_max: u32,
    /// Replies held for one client whose address may be forged.
    pub unproven_per_client_max: u32,
    /// Age of a query after which no answer is sent to an address that may be forged, in milliseconds.
    pub discard_after_ms: u32,
    /// What a query over UDP gets that is shed.
    pub shed: Shed,
    /// UDP sockets open.
    pub sockets_max: u32,
    /// TCP connections open.
    pub connections_max: u32,
}

/// Descriptors that one worker may hold at once for asking upstreams as `plan` says: sockets, connections, measurements.
///
/// An upper bound: UDP ports are only open while queries leave through them.
pub fn descriptors_max(plan: &Plan) -> usize {
    let mut addresses = 0;
    let (mut sockets, mut connections) = (0, 0);
    for pool in &plan.pools {
        for server in &pool.servers {
            let count = match server.target {
                Target::Address(_) => 1,
                Target::Name { .. } => ADDRESSES_PER_NAME,
            };
            addresses += count;
            connections += count * usize::from(server.way.connections.max).clamp(1, CONNECTIONS_MAX);
            if !server.way.is_connected() {
                sockets += count * SOCKETS_MAX;
            }
        }
        addresses += pool.bootstrap.len();
        sockets += pool.bootstrap.len() * SOCKETS_MAX;
        connections += pool.bootstrap.len() * usize::from(Connections::default().max);
    }
    let Limits { sockets_max, connections_max, .. } = plan.limits;
    // Each address may always have one of both. A connection may need two: DNSCrypt and SOCKS5 have datagrams and TCP.
    let sockets = sockets.min(sockets_max as usize + addresses);
    let connections = 2 * connections.min(connections_max as usize + addresses);
    sockets + connections + DISTANCES_MAX
}

/// Addresses that are connected to at once to measure how far they are; what is noted besides waits its turn, or is noted again.
pub const DISTANCES_MAX: usize = 32;

/// Addresses of a name that count, of both families; most names have fewer.
const ADDRESSES_PER_NAME: usize = 4;

impl Default for Limits {
    fn default() -> Self {
        Self {
            fetching_max: 16_384,
            waiting_max: 32_768,
            waiting_per_fetch_max: 4096,
            waiting_per_client_max: 2048,
            unproven_per_client_max: 500,
            discard_after_ms: 1900,
            shed: Shed::Servfail,
            sockets_max: 512,
            connections_max: 256,
        }
    }
}
