//! Zones that are served: where they come from, how they are signed, who may query and change them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::peers::Rights;
use resolver::{HeapName, NegativeAnchor, Trust, TrustAnchor};
use sets::AddressSet;
use tsig::Keys;
use values::Misread;
use wire::{Name, NameBuf, Rtype, Ttl};
use zone::json::Contexts;

use crate::checks::Check;
use crate::signing::{DenialKind, ParentServers, SigningPolicy};
use crate::transfers::Remote;

values::words! {
    /// The files of a directory that are zones.
    FileFormat {
        /// Master files (`.zone`), and JSON (`.json`).
        Auto = "auto",
        /// Master files.
        Master = "master",
        /// JSON, as erldns has it.
        Json = "json",
    }
}

values::words! {
    /// What becomes of what was changed while the server runs when a zone's file changes.
    FileChange {
        /// It stays, and the new file is not taken before somebody decides.
        Refuse = "refuse",
        /// It stays, and what has changed in the file is changed in the zone.
        Merge = "merge",
        /// It is dropped: the zone is what the file says.
        Replace = "replace",
    }
}

values::words! {
    /// What a catalog zone is to this server (RFC 9432).
    CatalogRole {
        /// It says which zones there are here.
        Consumer = "consumer",
        /// It is made here from the zones that name it.
        Producer = "producer",
    }
}

values::words! {
    /// What becomes of a version of a zone by its digest, ZONEMD (RFC 8976).
    ZonemdRule {
        /// Nobody looks at it.
        Off = "off",
        /// What is wrong is logged, and the version is taken.
        Log = "log",
        /// A version whose digest is wrong is not taken.
        Verify = "verify",
        /// Nor is one without a digest that can be checked.
        Require = "require",
    }
}

/// All zones.
#[derive(Clone, PartialEq)]
pub struct ZonesPlan {
    /// Zones that are named, in the order in which they are written.
    pub zones: Vec<Arc<ZonePlan>>,
    /// Directories whose files are zones, in the order in which they are written.
    pub directories: Vec<DirectoryPlan>,
    /// Whether there are zones, or may be, that were added while the server ran.
    pub has_added: bool,
    /// Whether the records of answers take turns in being the first.
    pub rotates: bool,
    /// Whether somebody resolves what ALIAS records lead to.
    pub resolves_aliases: bool,
    /// Octets of memory for signatures that are made while clients wait.
    pub signatures_octets_max: usize,
    /// How many of them are made in a second.
    pub signatures_per_second: u32,
    /// Keys that sign messages between servers.
    pub keys: Keys,
    /// How many transfers there may be.
    pub transfers: TransferLimits,
    /// The servers that are sent the DS of zones, by the name of their policy.
    pub parents: BTreeMap<String, ParentServers>,
}

/// How long a transfer may take unless its zone says otherwise.
const TRANSFER_TIME: Duration = Duration::from_secs(2 * 3600);

/// How many transfers there may be at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferLimits {
    /// To other servers.
    pub outgoing_max: u16,
    /// To each of them.
    pub outgoing_client_max: u16,
    /// From other servers.
    pub incoming_max: u16,
    /// Octets of one from another server.
    pub octets_max: u64,
}

/// One zone.
#[derive(Clone, PartialEq)]
pub struct ZonePlan {
    /// Its apex.
    pub apex: NameBuf,
    /// Its master file, or a file in JSON that has it; a zone that comes from other servers needs
    /// none.
    pub file: Option<PathBuf>,
    /// The set of zones that it is in, if not the one that answers before any policy.
    pub set: Option<String>,
    /// Clients that may query it; everybody by default.
    pub clients: Option<Arc<AddressSet>>,
    /// Whether it is for the resolvers of this server alone: no client is answered from it.
    pub is_for_resolvers: bool,
    /// How the digest of a version is checked before it is taken; nobody looks at it by default.
    pub zonemd: Option<Arc<ZonemdPlan>>,
    /// A file that versions from other servers are written to.
    pub copy: Option<PathBuf>,
    /// Whether versions from other servers are kept on disk: without, the zone is fetched anew
    /// after a start.
    pub keeps: bool,
    /// Records that it has besides those in its file; at a catalog, what its members have.
    pub synthesis: Option<Arc<Synthesis>>,
    /// How the server signs it.
    pub sign: Option<Arc<SigningPolicy>>,
    /// A file with keys that it is signed with when it is read.
    pub key_sets: Option<PathBuf>,
    /// How absence is proved if it brings the keys it is signed with.
    pub own_denial: Option<DenialKind>,
    /// Where it comes from.
    pub primaries: Vec<Remote>,
    /// Where it is as a master file on web servers, which are asked when no primary has answered.
    pub urls: Vec<String>,
    /// Who is notified of new versions.
    pub notify: Vec<Remote>,
    /// Who may do what with it.
    pub rights: Arc<Rights>,
    /// What becomes of what was changed here when its file changes.
    pub on_file_change: FileChange,
    /// Octets of history that are kept.
    pub journal_octets_max: u64,
    /// Octets of one transfer from another server; `None`: what all zones may have.
    pub transfer_octets_max: Option<u64>,
    /// How long one may take.
    pub transfer_time: Duration,
    /// What it is to this server if it is a catalog.
    pub catalog_role: Option<CatalogRole>,
    /// The catalog that is made here and lists it.
    pub member_of: Option<Membership>,
}

/// How the digest of a zone's versions is checked.
#[derive(Clone, Debug, PartialEq)]
pub struct ZonemdPlan {
    /// What becomes of a version.
    pub rule: ZonemdRule,
    /// What is trusted to sign it, and how signatures are checked: what the resolver does.
    pub trust: Trust,
    /// The resolver that finds out which keys the zone has, where it is not a trust anchor itself;
    /// without one, the digest alone is checked.
    pub resolver: Option<String>,
}

/// What stands for the keys of a zone: data of DS and of DNSKEY records. If it is nothing, the
/// zone's signatures prove nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneTrust {
    /// Data of DS records.
    pub ds: Vec<Box<[u8]>>,
    /// Data of DNSKEY records.
    pub keys: Vec<Box<[u8]>>,
}

/// How a zone stands to what is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is a trust anchor itself.
    Anchor(ZoneTrust),
    /// A trust anchor is above it: its parent says which keys it has.
    Below,
    /// Nothing that is trusted leads to it.
    Untrusted,
}

impl Standing {
    /// Returns how a zone stands to these trust anchors, and negative ones.
    pub fn of(apex: Name<'_>, anchors: &[TrustAnchor], negative: &[NegativeAnchor]) -> Self {
        let labels = |zone: &HeapName| zone.as_name().label_count();
        let above = anchors.iter().filter(|anchor| apex.is_at_or_below(anchor.zone.as_name()));
        let Some(anchor) = above.max_by_key(|anchor| labels(&anchor.zone)) else {
            return Self::Untrusted;
        };
        let is_negative = negative.iter().any(|negative| {
            apex.is_at_or_below(negative.zone.as_name()) && labels(&negative.zone) >= labels(&anchor.zone)
        });
        if is_negative {
            Self::Untrusted
        } else if anchor.zone.as_name() == apex {
            Self::Anchor(ZoneTrust { ds: anchor.ds.clone(), keys: anchor.keys.clone() })
        } else {
            Self::Below
        }
    }
}

/// A zone's place in a catalog that is made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The catalog.
    pub catalog: NameBuf,
    /// Its group there.
    pub group: Option<String>,
}

impl ZonePlan {
    /// Returns the plan of a zone of which nothing is known but that it is ours.
    pub fn nothing(apex: Name<'_>) -> Self {
        Self {
            apex: apex.to_buf(),
            file: None,
            set: None,
            clients: None,
            is_for_resolvers: false,
            zonemd: None,
            copy: None,
            keeps: true,
            synthesis: None,
            sign: None,
            key_sets: None,
            own_denial: None,
            primaries: Vec::new(),
            urls: Vec::new(),
            notify: Vec::new(),
            rights: Arc::default(),
            on_file_change: FileChange::Refuse,
            journal_octets_max: 0,
            transfer_octets_max: None,
            transfer_time: TRANSFER_TIME,
            catalog_role: None,
            member_of: None,
        }
    }

    /// Returns whether the zone changes while the server runs, by transfers or updates.
    pub fn changes(&self) -> bool {
        self.is_secondary() || !self.rights.update.is_empty()
    }

    /// Returns whether the zone comes from other servers.
    pub fn is_secondary(&self) -> bool {
        !(self.primaries.is_empty() && self.urls.is_empty())
    }

    /// Returns whether other servers get the zone.
    pub fn is_given_away(&self) -> bool {
        !self.rights.transfer.is_empty() || !self.notify.is_empty() || self.member_of.is_some()
    }

    /// Returns whether the zone is a catalog that says which zones there are here.
    pub fn is_consumer(&self) -> bool {
        self.catalog_role == Some(CatalogRole::Consumer)
    }
}

/// A directory whose files are zones.
#[derive(Clone, PartialEq)]
pub struct DirectoryPlan {
    /// The directory.
    pub path: PathBuf,
    /// Which files are read.
    pub format: FileFormat,
    /// Which records of files in JSON are taken; all by default.
    pub contexts: Option<Contexts>,
    /// The set of zones that they are in, if not the one that answers before any policy.
    pub set: Option<String>,
    /// Clients that may query them; everybody by default.
    pub clients: Option<Arc<AddressSet>>,
    /// How the server signs them.
    pub sign: Option<Arc<SigningPolicy>>,
    /// A directory with keys that those in master files are signed with: for each a file named
    /// after it.
    pub key_sets: Option<PathBuf>,
    /// How absence is proved in those that bring the keys they are signed with.
    pub own_denial: Option<DenialKind>,
    /// What other servers may do with each of them, if anything; name and file are its own.
    pub common: Option<Arc<ZonePlan>>,
}

/// Returns whether zones in a file are in JSON.
pub fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "json")
}

/// What stands for a zone's name.
pub const NAME_MARK: &str = "{name}";

/// A name that may depend on the zone it is written for.
#[derive(Clone, Debug, PartialEq)]
pub enum ZoneName {
    /// This name.
    Fixed(NameBuf),
    /// What becomes of this text when the zone's name stands in place of [`NAME_MARK`].
    Of(String),
}

impl ZoneName {
    /// Reads a name, or a text that makes a name of that of every zone unless it gets too long.
    pub fn parse(text: &str) -> Result<Self, Misread> {
        if !text.contains(NAME_MARK) {
            return values::name(text).map(Self::Fixed);
        }
        let named = Self::Of(text.to_owned());
        named.of(&values::name("example")?).map(|_| named)
    }

    /// Returns the name in a zone.
    pub fn of(&self, apex: &NameBuf) -> Result<NameBuf, Misread> {
        let text = match self {
            Self::Fixed(name) => return Ok(*name),
            Self::Of(text) => text,
        };
        let apex = apex.to_string();
        let whole = text.replace(NAME_MARK, apex.trim_end_matches('.'));
        // Of the root nothing is left but its dot.
        let whole = if whole.is_empty() { "." } else { &whole };
        values::name(whole).map_err(|misread| Misread { at: 0..text.len(), ..misread })
    }
}

/// Records that any number of zones have besides those in their files.
#[derive(Clone, PartialEq)]
pub struct Synthesis {
    /// Names made from addresses, and addresses from names.
    pub makers: Vec<MakerPlan>,
    /// Records of which the client decides.
    pub choices: Vec<ChoicePlan>,
}

/// Names that a zone makes from addresses, or addresses from names.
#[derive(Clone, PartialEq)]
pub struct MakerPlan {
    /// What stands before the address in the first label.
    pub prefix: Box<str>,
    /// The addresses.
    pub networks: Arc<AddressSet>,
    /// What stands after the first label, in a reverse zone.
    pub origin: Option<ZoneName>,
    /// How long what is made may be kept.
    pub ttl: Ttl,
}

/// The records of one type at one name, of which the client decides.
#[derive(Clone, PartialEq)]
pub struct ChoicePlan {
    /// The name.
    pub name: ZoneName,
    /// The type.
    pub rtype: Rtype,
    /// How long they may be kept.
    pub ttl: Ttl,
    /// How it is checked whether their addresses work.
    pub check: Option<Arc<Check>>,
    /// What there is to choose from.
    pub alternatives: Vec<AlternativePlan>,
}

/// Records that some clients get.
#[derive(Clone, PartialEq)]
pub struct AlternativePlan {
    /// The data of each record, in wire form.
    pub data: Vec<Vec<u8>>,
    /// Clients that get nothing else; without any, those for whom there is nothing closer.
    pub clients: Option<Arc<AddressSet>>,
    /// Its share among those that are equally close.
    pub weight: u32,
}

/// What is worth a warning of a plan, once its zones are loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub subject: Subject,
    /// Which part of that.
    pub part: Part,
    /// What is wrong.
    pub message: String,
    /// What would have been right.
    pub expected: Option<&'static str>,
}

/// What a finding is about, by its number in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// One of [`ZonesPlan::zones`].
    Zone(usize),
    /// One of [`ZonesPlan::directories`].
    Directory(usize),
}

/// The part of a zone or directory that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The zone itself.
    Name,
    /// Its file, or the path of the directory.
    File,
    /// Who may update it.
    Update,
}
