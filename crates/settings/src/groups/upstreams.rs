//! Groups of servers that queries are forwarded to.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use diagnostic::At;
use plan::Secret;
use plan::upstreams::{Hedge, Patience, Pick, Scheme};
use schema::{ClientSubnetUse, VerifyWord};
use wire::{NameBuf, Rcode};

/// A group of upstream servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: At<String>,
    /// Its servers.
    pub servers: Vec<GroupServer>,
    /// How to choose among them.
    pub pick: Pick,
    /// How long to try altogether.
    pub timeout: Duration,
    /// How long a silent server is waited for, and how often it is asked.
    pub patience: Patience,
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
    /// Names, with those below them, of which it stays.
    pub exact_case: Vec<NameBuf>,
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
    /// The keys that it may have, as SHA-256 of their SubjectPublicKeyInfo; if there are any, only
    /// they count.
    pub pins: Vec<[u8; 32]>,
    /// The authorities that are trusted.
    pub roots: At<TrustedRoots>,
    /// Whether it must prove anything.
    pub verify: VerifyWord,
    /// Whether it is told its name (SNI).
    pub sends_name: bool,
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
    /// SHA-256 of what is signed (TBSCertificate) of certificates of which one must vouch for the
    /// server.
    pub certificates: Vec<[u8; 32]>,
    /// Whose resolver it must be, for DNSCrypt: the provider's name and key.
    pub provider: Option<(NameBuf, [u8; 32])>,
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
