//! Zones that are served, directories of them, and what their records lead to.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use diagnostic::At;
use wire::{NameBuf, Prefix, Rtype};

use super::{GrantSettings, RemoteSettings, UpdateSettings};
use plan::checks::Check;
use plan::signing::{DenialKind, SigningPolicy};
use plan::zones::{CatalogRole, FileChange, FileFormat, ZoneName, ZonemdRule};
use schema::SerialWord;

/// A zone that is served.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneSettings {
    /// Its apex.
    pub name: At<NameBuf>,
    /// Its master file, or a file in JSON that has it; a zone that comes from other servers needs
    /// none.
    pub file: Option<At<PathBuf>>,
    /// The set of zones that it is in, if not the one that answers before any policy.
    pub set: Option<At<String>>,
    /// Clients that may query it; everybody by default.
    pub allow_query: Option<Vec<Prefix>>,
    /// Whether no client is answered from it: it is for resolvers alone.
    pub is_for_resolvers: bool,
    /// What becomes of a version by its digest.
    pub zonemd: ZonemdRule,
    /// The resolver whose trust anchors count for that; the default one unless something else is
    /// said.
    pub trusted_by: Option<String>,
    /// A file that versions from other servers are written to.
    pub copy: Option<At<PathBuf>>,
    /// Whether versions from other servers are kept on disk.
    pub keeps: bool,
    /// Names that are made from addresses.
    pub make: Vec<ZoneMaker>,
    /// Records of which the client decides.
    pub choose: Vec<ZoneChoice>,
    /// How the server signs it.
    pub sign: Option<Arc<SigningPolicy>>,
    /// A file with keys that it is signed with.
    pub key_sets: Option<At<PathBuf>>,
    /// How absence is proved if it brings the keys it is signed with.
    pub own_denial: Option<DenialKind>,
    /// Where it comes from.
    pub primaries: Vec<At<RemoteSettings>>,
    /// Where it is as a master file on web servers.
    pub urls: Vec<At<String>>,
    /// Who is told of new versions.
    pub notify: Vec<At<RemoteSettings>>,
    /// Who may take it over.
    pub transfer: Vec<At<GrantSettings>>,
    /// Who may say that there is a newer version, besides its primaries.
    pub notify_from: Vec<At<GrantSettings>>,
    /// Who may change it, and what of it.
    pub update: Vec<At<UpdateSettings>>,
    /// Whose updates are passed on to its primaries.
    pub forward_updates: Vec<At<GrantSettings>>,
    /// What becomes of updates when its file changes.
    pub on_file_change: FileChange,
    /// How serials grow.
    pub serial: SerialWord,
    /// Octets of history that are kept.
    pub journal_size: u64,
    /// Octets of one transfer from a primary; `None`: what all zones may have.
    pub transfer_size: Option<u64>,
    /// How long one may take.
    pub transfer_time: Duration,
    /// The catalog that it belongs to.
    pub catalog: Option<At<NameBuf>>,
    /// What it is in that catalog.
    pub group: Option<String>,
    /// What the catalog is to this server.
    pub catalog_role: Option<CatalogRole>,
}

/// Names that a zone makes from addresses, or addresses from names.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneMaker {
    /// What stands before the address in the first label.
    pub prefix: String,
    /// The addresses.
    pub networks: Vec<Prefix>,
    /// What stands after the first label, in a reverse zone.
    pub origin: Option<At<ZoneName>>,
    /// How long what is made may be kept.
    pub ttl: Duration,
}

/// The records of one type at one name, of which the client decides.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneChoice {
    /// The name.
    pub name: At<ZoneName>,
    /// The type.
    pub rtype: At<Rtype>,
    /// How long they may be kept.
    pub ttl: Duration,
    /// How it is checked whether their addresses work.
    pub check: Option<Arc<Check>>,
    /// What there is to choose from.
    pub alternatives: Vec<ZoneAlternative>,
}

/// Records that some clients get.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneAlternative {
    /// The data of each record, in wire form.
    pub data: Vec<Vec<u8>>,
    /// Clients that get nothing else; empty: those for whom there is nothing closer.
    pub clients: Vec<Prefix>,
    /// Sets of addresses, likewise.
    pub sets: Vec<At<String>>,
    /// Its share among those that are equally close.
    pub weight: u32,
}

/// A directory whose files are zones.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneDirectory {
    /// The directory.
    pub path: At<PathBuf>,
    /// Which files are read.
    pub format: FileFormat,
    /// Which records of files in JSON are taken: those of these contexts, and those without any.
    pub contexts: Option<Vec<String>>,
    /// Whether a record with an empty list of contexts is taken, if contexts are chosen.
    pub matches_empty: bool,
    /// The set of zones that they are in, if not the one that answers before any policy.
    pub set: Option<At<String>>,
    /// Clients that may query them; everybody by default.
    pub allow_query: Option<Vec<Prefix>>,
    /// How the server signs them.
    pub sign: Option<Arc<SigningPolicy>>,
    /// A directory with keys that those in master files are signed with: for each a file named
    /// after it.
    pub key_sets: Option<PathBuf>,
    /// How absence is proved in those that bring the keys they are signed with.
    pub own_denial: Option<DenialKind>,
    /// What other servers may do with each of them, if anything; name and file are its own.
    pub common: Option<Arc<ZoneSettings>>,
}

/// How what ALIAS records lead to is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasSettings {
    /// Servers that are asked.
    pub resolvers: Vec<SocketAddr>,
    /// For how long addresses are used that could not be asked for again.
    pub stale: Duration,
    /// Targets that are looked after.
    pub targets: u32,
}
