//! How the server signs zones: named policies, and which version of a zone is served.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use diagnostic::At;
use dnssec::rollover::Announce;
use dnssec::{Algorithm, Denial, DigestType, KeySize, ZonemdHash};
use wire::serial::SerialPolicy;
use wire::{Name, NameBuf};
use zone::{Change, Zone, Zones};

use crate::settings::{RemoteSettings, TokenUri};

/// Servers of a parent that are sent DS, in the order in which they are tried.
pub type ParentServers = Arc<[plan::transfers::Remote]>;

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
    /// Signatures are made anew when they are good for no longer than this; without one, a tenth of the lifetime and the
    /// delays.
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
    /// After so long, a new DS is taken to be there although nobody saw it; without one, it is waited for.
    pub parent_timeout: Option<Duration>,
    /// Servers of the parent that are sent DS; the first that takes them is enough.
    pub ds_push: Vec<At<RemoteSettings>>,
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
    /// As it is written, without signatures. Of a zone that changes while the server runs, versions come from who keeps it.
    pub source: Option<Arc<Zone>>,
}

/// A zone that is to be signed, as the configuration has it.
pub(crate) struct Wanted {
    pub(crate) apex: NameBuf,
    pub(crate) policy: Arc<SigningPolicy>,
    /// Whether it changes while the server runs, by transfers or updates.
    pub(crate) changes: bool,
}

/// Zones that the server signs, and what is served of them.
#[derive(Clone, Default)]
pub struct SigningPlans {
    /// What is to be signed, in the order of the configuration.
    pub zones: Vec<ToSign>,
    /// The servers that are sent the DS of zones, by the name of their policy.
    pub parents: BTreeMap<String, ParentServers>,
    /// The versions that were signed last, by apex in lower case.
    signed: BTreeMap<Vec<u8>, Arc<Zone>>,
    /// The zones as they are written, and as they are served.
    served: Option<(Arc<Zones>, Arc<Zones>)>,
}

fn key_of(apex: Name<'_>) -> Vec<u8> {
    apex.to_folded().as_bytes().to_vec()
}

impl SigningPlans {
    /// Takes a version that was signed; it is served by what is compiled from now on. Returns whether it is another one than
    /// before.
    pub fn take(&mut self, zone: Arc<Zone>) -> bool {
        let key = key_of(zone.apex());
        if self.signed.get(&key).is_some_and(|known| Arc::ptr_eq(known, &zone)) {
            return false;
        }
        self.signed.insert(key, zone);
        self.served = None;
        true
    }

    /// Returns the version of a zone that was signed last, as far as is known here.
    pub(crate) fn last(&self, apex: Name<'_>) -> Option<&Arc<Zone>> {
        self.signed.get(&key_of(apex))
    }
}

/// Returns the zones as they are served: in place of what is to be signed, what was signed last. A zone that was not signed
/// yet is not served: who saw it unsigned would remember that.
pub(crate) fn compile(
    wanted: Vec<Wanted>,
    written: Option<&Arc<Zones>>,
    previous: Option<&SigningPlans>,
) -> (SigningPlans, Option<Arc<Zones>>) {
    let Some(written) = written else { return (SigningPlans::default(), None) };
    let mut zones = Vec::new();
    let mut signed = BTreeMap::new();
    let mut made = Vec::new();
    for Wanted { apex, policy, changes } in wanted {
        let source = written.get(apex.as_name()).filter(|_| !changes).map(Arc::clone);
        if changes || source.is_some() {
            zones.push(ToSign { apex, policy, source });
        }
        let known = previous.and_then(|previous| previous.last(apex.as_name()));
        made.push(match known.filter(|_| !changes) {
            Some(known) => Change::Serve(Arc::clone(known)),
            // One that changes is served by who keeps it.
            None => Change::Unload(apex),
        });
        if let Some(known) = known {
            signed.insert(key_of(apex.as_name()), Arc::clone(known));
        }
    }
    // What is the same is not made twice: the engine would take it for new.
    let before = previous.and_then(|previous| previous.served.as_ref());
    if let Some((known, before)) = before.filter(|(known, _)| Arc::ptr_eq(known, written)) {
        let is_same = previous.is_some_and(|previous| {
            previous.signed.len() == signed.len()
                && previous.zones.len() == zones.len()
                && previous
                    .zones
                    .iter()
                    .zip(&zones)
                    .all(|(a, b)| (a.apex, a.source.is_some()) == (b.apex, b.source.is_some()))
        });
        if is_same {
            let plans = SigningPlans {
                zones,
                signed,
                served: Some((Arc::clone(known), Arc::clone(before))),
                ..SigningPlans::default()
            };
            return (plans, Some(Arc::clone(before)));
        }
    }
    let served = if made.is_empty() { Arc::clone(written) } else { Arc::new(written.with_all(made)) };
    let plans = SigningPlans {
        zones,
        signed,
        served: Some((Arc::clone(written), Arc::clone(&served))),
        ..SigningPlans::default()
    };
    (plans, Some(served))
}
