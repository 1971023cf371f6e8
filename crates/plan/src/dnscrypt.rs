//! DNSCrypt as a resolver: who it is to its clients.

use ::dnscrypt::{CERTIFICATE_OCTETS, ResolverKey};
use wire::NameBuf;

/// A provider, with the keys of this resolver.
#[derive(Debug)]
pub struct ProviderPlan {
    /// The name that its certificates are asked for under: `2.dnscrypt-cert.example.org`.
    pub name: NameBuf,
    /// Keys that queries may be sealed for.
    pub keys: Vec<ResolverKeyPlan>,
    /// Octets that keys agreed on with clients may take, of all workers together.
    pub agreed_octets: usize,
    /// Octets of what is remembered of queries, so that none is answered twice.
    pub replay_octets: usize,
}

/// A key of a resolver.
#[derive(Debug)]
pub struct ResolverKeyPlan {
    /// The key, with what its certificate says.
    pub key: ResolverKey,
    /// The certificate as clients get it; `None`: it was replaced, and only those that have it
    /// already use it.
    pub published: Option<[u8; CERTIFICATE_OCTETS]>,
}
