//! Groups of servers that queries are forwarded to.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use diagnostic::At;
use plan::Secret;
use wire::{NameBuf, Rcode};

values::words! {
    /// What becomes of a client's EDNS client subnet.
    ClientSubnetUse {
        /// Upstreams do not see it.
        Strip = "strip",
        /// Upstreams see it, and the cache keeps answers apart by it.
        Forward = "forward",
    }
}

values::words! {
    /// How to choose among servers, without the number that a race takes.
    PickWord {
        /// The first that works.
        Ordered = "ordered",
        /// The one with the shortest round trip.
        Fastest = "fastest",
        /// Each in turn.
        Balanced = "balanced",
        /// Several at once.
        Race = "race",
        /// Several at once; answers with records before those without.
        PreferPositive = "prefer-positive",
        /// Several at once; what some agree on.
        Consensus = "consensus",
    }
}

/// A group of upstream servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: At<String>,
    /// Its servers.
    pub servers: Vec<GroupServer>,
    /// How to choose among them.
    pub pick: Pick,
    /// How long an answer without records waits for one with.
    pub negative_wait: Duration,
    /// How long to try altogether.
    pub timeout: Duration,
    /// When to ask a second one.
    pub hedge: Hedge,
    /// Response codes after which the next one is asked.
    pub fallback_on: Vec<RcodeTerm>,
    /// Who knows the addresses of servers given by name.
    pub bootstrap: Vec<At<Bootstrap>>,
    /// What becomes of a client's EDNS client subnet.
    pub client_subnet: ClientSubnetUse,
    /// Whether its AD bit is believed.
    pub trust_ad: bool,
    /// Whether the letter case of names is made random.
    pub case_randomisation: bool,
}

/// A server of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupServer {
    /// What policies call it.
    pub name: Option<String>,
    /// What was written.
    pub server: At<Server>,
    /// Its share of the queries.
    pub weight: u16,
    /// The address to ask from.
    pub source: Option<IpAddr>,
    /// The interface to ask through.
    pub interface: Option<String>,
    /// The routing mark.
    pub mark: Option<u32>,
    /// The address to connect to, whatever the server's name stands for.
    pub dial: Option<At<IpAddr>>,
    /// The relay that passes oblivious messages on, an HTTPS server.
    pub relay: Option<At<Server>>,
    /// The SOCKS5 proxy that connects to it.
    pub proxy: Option<At<SocketAddr>>,
    /// The user and the password that the proxy is told.
    pub proxy_login: Option<(String, Secret)>,
    /// What the server must prove, where connections are encrypted.
    pub tls: ServerTls,
    /// Connections kept open, at least.
    pub connections_min: u8,
    /// Connections at most.
    pub connections_max: u8,
    /// How long a connection may have nothing to do.
    pub idle: Duration,
}

/// What a server of a group must prove.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTls {
    /// The name in its certificate, if it is another than the one in its address.
    pub name: Option<At<String>>,
    /// The keys that it may have, as SHA-256 of their SubjectPublicKeyInfo; if there are any, only they count.
    pub pins: Vec<[u8; 32]>,
    /// The authorities that are trusted.
    pub roots: At<TrustedRoots>,
    /// Whether it must prove anything.
    pub verify: bool,
    /// Whether queries may leave before it has answered (TLS 1.3 early data).
    pub early_data: bool,
}

/// Authorities whose certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustedRoots {
    /// Mozilla's, as of when this program was built.
    Mozilla,
    /// Those in this file (PEM).
    File(PathBuf),
}

/// A response code, or all that are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RcodeTerm {
    /// All but those that are answers.
    Unusable,
    /// This one.
    One(Rcode),
}

/// An upstream server as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// The servers of `resolv.conf`.
    System,
    /// One server.
    One {
        /// What carries the queries.
        scheme: Scheme,
        /// Where it is.
        host: Host,
        /// The name in its certificate, where it stands after `#`.
        tls_name: Option<String>,
        /// The path of its URL; empty where there are none.
        path: String,
        /// What its stamp says besides, if it was given as one.
        stamp: Option<Box<Stamp>>,
    },
}

/// What only a DNS stamp says of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The address to connect to.
    pub dial: Option<IpAddr>,
    /// SHA-256 of what is signed (TBSCertificate) of certificates of which one must vouch for the server.
    pub certificates: Vec<[u8; 32]>,
    /// Whose resolver it must be, for DNSCrypt: the provider's name and key.
    pub provider: Option<(NameBuf, [u8; 32])>,
}

/// What carries queries to an upstream server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// UDP, and TCP for what does not fit.
    Udp,
    /// TCP.
    Tcp,
    /// TLS over TCP.
    Tls,
    /// HTTP/2 over TLS.
    Https,
    /// QUIC.
    Quic,
    /// HTTP/3 over QUIC.
    Https3,
    /// DNSCrypt; only stamps say so.
    Dnscrypt,
    /// Oblivious messages over HTTP/2, perhaps through a relay.
    Odoh,
}

impl Scheme {
    /// Returns the scheme that a URL begins with.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "udp" => Some(Self::Udp),
            "tcp" => Some(Self::Tcp),
            "tls" | "dot" => Some(Self::Tls),
            "https" | "doh" => Some(Self::Https),
            "quic" | "doq" => Some(Self::Quic),
            "h3" => Some(Self::Https3),
            "odoh" => Some(Self::Odoh),
            _ => None,
        }
    }

    /// Returns the port if none is written.
    pub const fn port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 53,
            Self::Tls | Self::Quic => 853,
            Self::Https | Self::Https3 | Self::Dnscrypt | Self::Odoh => 443,
        }
    }

    /// Returns whether the server must prove who it is by a certificate of TLS.
    pub const fn is_secured(self) -> bool {
        match self {
            Self::Udp | Self::Tcp | Self::Dnscrypt => false,
            Self::Tls | Self::Https | Self::Quic | Self::Https3 | Self::Odoh => true,
        }
    }

    /// Returns the path if none is written; `None` where there are no paths.
    pub const fn path(self) -> Option<&'static str> {
        match self {
            Self::Udp | Self::Tcp | Self::Tls | Self::Quic | Self::Dnscrypt => None,
            // RFC 8484 leaves the path to the server; this is what everybody chose.
            Self::Https | Self::Https3 | Self::Odoh => Some("/dns-query"),
        }
    }
}

/// Where an upstream server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// At an address.
    Address(SocketAddr),
    /// At the addresses of a name.
    Name {
        /// The name.
        name: NameBuf,
        /// The port.
        port: u16,
    },
}

/// Who is asked for the addresses of upstream servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// The servers of `resolv.conf`.
    System,
    /// A server.
    Address(SocketAddr),
}

/// How to choose among servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The first that works.
    Ordered,
    /// The one with the shortest round trip.
    Fastest,
    /// Each in turn.
    Balanced,
    /// This many at once.
    Race(u8),
    /// This many at once; an answer without records waits for one with.
    PreferPositive(u8),
    /// The answer that some of several agree on.
    Consensus {
        /// How many must agree.
        agreeing: u8,
        /// How many are asked.
        of: u8,
    },
}

impl Pick {
    /// Returns how many servers are asked at once.
    pub const fn width(self) -> u8 {
        match self {
            Self::Ordered | Self::Fastest | Self::Balanced => 1,
            Self::Race(width) | Self::PreferPositive(width) | Self::Consensus { of: width, .. } => width,
        }
    }
}

/// When to ask a second server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hedge {
    /// When the first takes longer than it usually does.
    Auto,
    /// Only when the first has failed.
    Off,
    /// After this time.
    After(Duration),
}
