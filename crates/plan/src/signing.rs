//! How the server signs zones.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dnssec::rollover::Announce;
use dnssec::{Algorithm, Denial, DigestType, KeySize, ZonemdHash};
use values::TokenUri;
use wire::NameBuf;
use wire::serial::SerialPolicy;
use zone::Zone;

use crate::transfers::Remote;

/// Servers of a parent that are sent DS, in the order in which they are tried.
pub type ParentServers = Arc<[Remote]>;

values::words! {
    /// How absence is proved.
    DenialKind {
        /// By names.
        Nsec = "nsec",
        /// By hashes of names.
        Nsec3 = "nsec3",
        /// By a record made for each question.
        Compact = "compact",
    }
}

/// How the server signs a zone and looks after its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningPolicy {
    /// What zones call it.
    pub name: String,
    /// The algorithm of new keys.
    pub algorithm: Algorithm,
    /// The token that new keys are made in; without one, they are files.
    pub token: Option<TokenUri>,
    /// The size of new RSA keys that sign keys, or everything.
    pub ksk_size: KeySize,
    /// The size of new RSA keys that sign everything else.
    pub zsk_size: KeySize,
    /// Whether one key signs everything.
    pub is_single: bool,
    /// How long a KSK or CSK is in use; without one, for ever.
    pub ksk_lifetime: Option<Duration>,
    /// How long a ZSK is in use; without one, for ever.
    pub zsk_lifetime: Option<Duration>,
    /// How long a change takes to reach all servers of the zone.
    pub propagation_delay: Duration,
    /// The TTL of DNSKEY; without one, the SOA's.
    pub dnskey_ttl: Option<Duration>,
    /// The largest TTL in the zone; without one, it is looked for.
    pub zone_max_ttl: Option<Duration>,
    /// How long signatures are good.
    pub rrsig_lifetime: Duration,
    /// Signatures are made anew when they are good for no longer than this; without one, a tenth of
    /// the lifetime and the delays.
    pub rrsig_refresh: Option<Duration>,
    /// Those that would be due so much later are made anew with them.
    pub rrsig_pre_refresh: Duration,
    /// By how much signatures end earlier, spread over the names.
    pub rrsig_jitter: Duration,
    /// How absence is proved.
    pub denial: Denial,
    /// When CDS and CDNSKEY are in the zone.
    pub announce: Announce,
    /// Whether they ask the parent to remove all DS.
    pub asks_for_removal: bool,
    /// The digests of CDS.
    pub cds_digests: Vec<DigestType>,
    /// Whether CSYNC is in the zone.
    pub has_csync: bool,
    /// The digest of the whole zone.
    pub zonemd: Option<ZonemdHash>,
    /// How the serial goes on.
    pub serial: SerialPolicy,
    /// Servers of the parent, all of which are asked for the DS of a new key.
    pub parent: Vec<SocketAddr>,
    /// How often.
    pub parent_check_interval: Duration,
    /// The TTL of the DS, and how long a change takes to reach all servers of the parent.
    pub parent_delay: Duration,
    /// After so long, a new DS is taken to be there although nobody saw it; without one, it is
    /// waited for.
    pub parent_timeout: Option<Duration>,
    /// Where servers of the parent are that are sent DS; the first that takes them is enough.
    pub ds_push: Vec<SocketAddr>,
    /// Threads that sign one zone; without, one less than there are processors.
    pub threads: Option<usize>,
}

/// A zone that the server signs.
#[derive(Clone)]
pub struct ToSign {
    /// The zone.
    pub apex: NameBuf,
    /// How.
    pub policy: Arc<SigningPolicy>,
    /// As it is written, without signatures. Of a zone that changes while the server runs, versions
    /// come from who keeps it.
    pub source: Option<Arc<Zone>>,
}
