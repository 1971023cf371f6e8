//! Certificates that the server gets by itself from authorities (ACME, RFC 8555).

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use wire::NameBuf;

use crate::Secret;
use crate::tls::{CertificateDer, CertificateFacts, Identity, Pem, PrivateKeyDer};
use crate::transfers::Remote;

/// A certificate that is ordered, and renewed in time.
#[derive(Clone, Debug, PartialEq)]
pub struct CertificatePlan {
    /// What the configuration calls it.
    pub name: String,
    /// Whom it is for. Not empty.
    pub identifiers: Vec<Identifier>,
    /// Who is asked for it, in this order. Not empty.
    pub authorities: Vec<AuthorityPlan>,
    /// How it is shown that the names are ours.
    pub challenge: ChallengeWord,
    /// Servers that take the records of `dns-01` by dynamic update. Without any, they go into the
    /// server's own zones.
    pub update: Vec<Remote>,
    /// The kind of its key.
    pub key: KeyWord,
    /// The file with its key and chain, which need not be there yet.
    pub file: PathBuf,
}

/// Whom a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identifier {
    /// A host, in lower case and without the last dot; `*.` in front stands for one label.
    Host(String),
    /// An address (RFC 8738).
    Address(IpAddr),
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// An authority that gives certificates.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthorityPlan {
    /// Its directory (RFC 8555 §7.1.1).
    pub url: String,
    /// Whom it may write to: URIs such as `mailto:hostmaster@example.org`.
    pub contact: Vec<String>,
    /// The profile of certificates that is asked for.
    pub profile: Option<String>,
    /// The identifier and the key of an account elsewhere that ours is bound to (RFC 8555 §7.3.4).
    pub binding: Option<(String, Secret)>,
    /// A file with the authorities that vouch for its web server; those that Mozilla trusts if
    /// there is none.
    pub roots: Option<PathBuf>,
}

values::words! {
    /// How it is shown that names are ours.
    ChallengeWord {
        /// A file at a web server of the name (RFC 8555 §8.3).
        Http = "http-01",
        /// A certificate in a TLS handshake (RFC 8737).
        TlsAlpn = "tls-alpn-01",
        /// A TXT record (RFC 8555 §8.4).
        Dns = "dns-01",
    }
}

values::words! {
    /// The kind of a certificate's key.
    KeyWord {
        /// ECDSA with the curve P-256.
        EcdsaP256 = "ecdsa-p256",
        /// ECDSA with the curve P-384.
        EcdsaP384 = "ecdsa-p384",
        /// RSA, 2048 bits.
        Rsa2048 = "rsa-2048",
        /// RSA, 3072 bits.
        Rsa3072 = "rsa-3072",
        /// RSA, 4096 bits.
        Rsa4096 = "rsa-4096",
    }
}

/// What an authority looks for before it gives a certificate.
#[derive(Clone, Debug)]
pub enum Challenge {
    /// A file at a web server, below `/.well-known/acme-challenge/` (RFC 8555 §8.3).
    File {
        /// Its name.
        token: String,
        /// What it holds.
        text: String,
    },
    /// A TXT record (RFC 8555 §8.4).
    Record {
        /// Its name.
        owner: NameBuf,
        /// What it says.
        text: String,
    },
    /// A certificate in a handshake (RFC 8737 §3).
    Handshake {
        /// The name of the server that the authority asks for.
        server_name: String,
        /// The certificate that it is to see. It has an extension that no client would take.
        certificate: CertificateDer<'static>,
        /// Its key.
        key: Arc<PrivateKeyDer<'static>>,
    },
}

/// Reads a certificate with its key from one text in PEM form, and puts them together.
///
/// # Errors
///
/// What is missing, or does not go together.
pub fn identity(pem: &[u8]) -> Result<(Identity, CertificateFacts), String> {
    let parsed = || Pem::parse(pem).map_err(|line| format!("what begins after line {line} is not PEM"));
    let chain = parsed()?.certificates();
    let facts = chain.first().and_then(|first| CertificateFacts::parse(first));
    let facts = facts.ok_or("it does not begin with an X.509 certificate")?;
    let key = parsed()?.key().ok_or("it has no private key")?;
    let identity = Identity::new(chain, &key, facts.names.clone()).map_err(|error| error.to_string())?;
    Ok((identity, facts))
}
