//! What servers of a zone share: keys, who they are, what they may do.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use diagnostic::At;
use wire::{NameBuf, Prefix, Rtype};

/// A key that signs messages.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySettings {
    /// Its name.
    pub name: At<NameBuf>,
    /// The key.
    pub key: Arc<tsig::Key>,
}

/// Another server of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSettings {
    /// Where it is. Of a host whose addresses are looked for, only the port is known.
    pub address: SocketAddr,
    /// The host, if its addresses are looked for.
    pub host: Option<NameBuf>,
    /// Whether it is spoken to over TLS.
    pub over_tls: bool,
    /// What its certificate is for; its address by default.
    pub tls_name: Option<String>,
    /// What messages are signed with.
    pub key: Option<NameBuf>,
    /// Its keys, as hashes; its certificate counts if there are none.
    pub pins: Vec<[u8; 32]>,
    /// Authorities that sign its certificate; those that Mozilla trusts by default.
    pub roots: Option<PathBuf>,
    /// What is shown to it: a certificate and its key.
    pub certificate: Option<PathBuf>,
    /// The key of that certificate; in its own file by default.
    pub private_key: Option<PathBuf>,
}

/// Who may do something with a zone: everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantSettings {
    /// Who comes from there.
    pub from: Option<Vec<Prefix>>,
    /// Who signs with this key.
    pub key: Option<NameBuf>,
    /// Who comes over TLS.
    pub needs_tls: bool,
    /// Who shows a certificate for one of these hosts, in lower case; anybody if there are none.
    pub hosts: Vec<String>,
    /// Who shows a certificate with one of these keys; anybody if there are none.
    pub pins: Vec<[u8; 32]>,
}

/// Who may change what of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateSettings {
    /// Who.
    pub grant: GrantSettings,
    /// At which names; everywhere if there are none.
    pub names: Vec<ReachSettings>,
    /// Records of which types; of all if there are none.
    pub types: Vec<Rtype>,
}

/// Names that may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachSettings {
    /// This one.
    Name(NameBuf),
    /// All below this one.
    Below(NameBuf),
}
