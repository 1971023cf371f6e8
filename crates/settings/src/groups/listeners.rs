//! Where clients' queries are taken, and who the server is to them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use diagnostic::At;
use plan::listeners::{ClientCertificates, LocalPlan, TransportWord};
use plan::tls::SuiteWord;
use schema::TlsVersionWord;
use wire::NameBuf;
use wire::Prefix;

use super::TrustedRoots;

/// One address at which queries are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// The address and port.
    pub at: At<SocketAddr>,
    /// What conditions call it.
    pub name: Option<At<String>>,
    /// What is spoken there.
    pub speaks: Vec<TransportWord>,
    /// Proxies that tell the client's address.
    pub proxy_protocol_from: Vec<Prefix>,
    /// Paths at which HTTP requests are answered.
    pub paths: Vec<String>,
    /// Proxies that tell the client's address in a header of HTTP.
    pub forwarded_from: Vec<Prefix>,
    /// Whether clients show certificates.
    pub client_certificates: Option<At<ClientCertificates>>,
}

/// An oblivious target that messages are carried to.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayTarget {
    /// Its name.
    pub host: At<String>,
    /// Its port.
    pub port: u16,
    /// Its address; looked up if `None`.
    pub dial: Option<IpAddr>,
    /// The authorities that may vouch for it.
    pub roots: At<TrustedRoots>,
}

/// A Unix socket where queries are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalSocket {
    /// How it is opened and served.
    pub plan: LocalPlan,
    /// What conditions call it.
    pub name: Option<At<String>>,
}

/// Who the server is over TLS, and whom it lets in.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// Certificates; the first is for clients that name no server, or one that no certificate has.
    pub certificates: Vec<Certificate>,
    /// The oldest version that is spoken.
    pub min_version: TlsVersionWord,
    /// Cipher suites that are offered; none: all.
    pub ciphers: Vec<SuiteWord>,
    /// Whether clients of plain DNS are told of encrypted listeners.
    pub discovery: bool,
    /// Files with the certificates of those who sign for clients; if there are any, clients must
    /// have one, unless a listener says otherwise.
    pub client_ca: Vec<At<PathBuf>>,
    /// Files with keys of session tickets.
    pub ticket_keys: Vec<At<PathBuf>>,
}

/// Who the server is over DNSCrypt.
#[derive(Clone, Debug, PartialEq)]
pub struct Dnscrypt {
    /// The provider's name.
    pub provider: Option<At<NameBuf>>,
    /// Files with secret keys.
    pub keys: Vec<At<PathBuf>>,
    /// Files with certificates that clients are given.
    pub certificates: Vec<At<PathBuf>>,
    /// Files with certificates that were replaced.
    pub rotated: Vec<At<PathBuf>>,
    /// Octets for keys agreed on with clients.
    pub agreed_octets: u64,
    /// Octets for what is known of queries.
    pub replay_octets: u64,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The file with the chain, the server's own first.
    pub chain: At<PathBuf>,
    /// The file with the private key; may be the same.
    pub key: At<PathBuf>,
}
