//! What a worker reads: compiled once, swapped whole, never changed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use sets::{Epochs, State};
use wire::HashKey;
use zone::Zones;

use super::{Op, Program};
use crate::answer::chaos::Chaos;
use crate::matchers::text::TextTest;
use crate::peers::Authority;
use clients::gate::Gate;
use clients::gate::prefix_set::PrefixSet;

/// Tests of what a connection begins with: one bit each in
/// [`Client::connection`](crate::Client::connection).
pub const CONNECTION_TESTS_MAX: usize = 64;

/// What a connection can say about itself when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionText {
    /// The name that the client sends in TLS (SNI).
    ServerName,
    /// The path of an HTTP request.
    Path,
    /// A header of an HTTP request, its name in lower case.
    Header(Box<str>),
    /// Whom the client's certificate is for, as RFC 4514 writes it.
    CertificateSubject,
    /// The names in the client's certificate.
    CertificateNames,
    /// The SHA-256 of the client's certificate, in lower-case hexadecimal digits.
    CertificateFingerprint,
}

/// What a connection says about something.
#[derive(Clone, Copy, Debug)]
pub enum Said<'t> {
    /// Nothing at all, which counts as an empty text.
    Nothing,
    /// This.
    One(&'t [u8]),
    /// These; a test holds if it does for one of them.
    Several(&'t [String]),
}

impl<'t> From<Option<&'t [u8]>> for Said<'t> {
    fn from(text: Option<&'t [u8]>) -> Self {
        text.map_or(Self::Nothing, Self::One)
    }
}

impl Said<'_> {
    fn fits(self, test: &TextTest) -> bool {
        match self {
            Self::Nothing | Self::Several([]) => test.holds(&[]),
            Self::One(text) => test.holds(text),
            Self::Several(texts) => texts.iter().any(|text| test.holds(text.as_bytes())),
        }
    }
}

/// A test of what a connection begins with.
pub struct ConnectionTest {
    /// What is compared.
    pub text: ConnectionText,
    /// How.
    pub test: TextTest,
}

/// Everything a query can meet.
pub struct Snapshot {
    /// What names are hashed with everywhere in this process; the same in every snapshot and cache.
    pub key: HashKey,
    /// Who may ask.
    pub gate: Gate,
    /// The policy.
    pub program: Program,
    /// Which snapshot of this process it is: what is told about a query says which policy it went
    /// through.
    pub number: u32,
    /// Whether the way of each query through the policy is noted, for those that tell it.
    pub keeps_path: bool,
    /// Whether messages between clients and us are copied, for dnstap.
    pub taps_clients: bool,
    /// The number of the event that queries are told by which are turned away before the policy.
    pub refused_event: Option<u16>,
    /// Whether queries and replies are counted by type, code and the like.
    pub counts_details: bool,
    /// Peers that are believed when they say whom they ask for.
    pub trusted_peers: PrefixSet,
    /// What is found out about a connection when it begins, at most [`CONNECTION_TESTS_MAX`].
    pub connection_tests: Box<[ConnectionTest]>,
    /// What class CHAOS and NSID tell.
    pub chaos: Chaos,
    /// The largest UDP reply. 512 to 4096 octets.
    pub udp_octets_max: u16,
    /// The size announced in our OPT. 512 to 4096 octets.
    pub udp_octets_announced: u16,
    /// Octets that the length of a reply to a client that pads is a multiple of (RFC 8467 §4.1);
    /// zero: replies are not padded.
    pub padding_octets: u16,
    /// Whether replies say what went wrong (Extended DNS Errors, RFC 8914).
    pub extended_errors: bool,
    /// Whether clients that set DO get replies with EDNS.
    pub takes_dnssec_ok: bool,
    /// Whether a reply that is too large has as many RRsets as fit, and none otherwise.
    pub fills_truncated: bool,
    /// Whether addresses in answers from memory take turns in being the first, as the program has
    /// them do.
    pub rotates: bool,
    /// Whether ANY gets one HINFO record for names in no zone of ours (RFC 8482 §4.2).
    pub minimal_any: bool,
    /// Whether replies say RA: some way through the program resolves names that are not ours.
    pub recursion_available: bool,
}

impl Snapshot {
    /// Returns whether a query's way, its messages or its details are wanted.
    pub(crate) const fn is_watched(&self) -> bool {
        self.keeps_path || self.taps_clients || self.counts_details
    }

    /// Returns the bits for [`Client::connection`](crate::Client::connection): which tests hold for
    /// a connection. `say` returns what the connection says about something.
    pub fn connection_bits<'t>(&self, say: impl Fn(&ConnectionText) -> Said<'t>) -> u64 {
        let mut bits = 0;
        for (bit, test) in self.connection_tests.iter().enumerate().take(CONNECTION_TESTS_MAX) {
            if say(&test.text).fits(&test.test) {
                bits |= 1 << bit;
            }
        }
        bits
    }
}

/// Holds the newest snapshot and the zones as they are now; workers look at its generation between
/// batches.
pub struct SnapshotCell {
    generation: AtomicU64,
    newest: Mutex<Newest>,
    epochs: Mutex<Epochs>,
    /// Frees old snapshots on a thread of their own: gigabytes are not freed between two packets.
    reclaim: Mutex<Sender<Arc<Snapshot>>>,
    /// Likewise zones.
    reclaim_zones: Mutex<Option<Sender<Arc<Authority>>>>,
}

struct Newest {
    snapshot: Arc<Snapshot>,
    /// The zones that are served; `None` if there are none.
    authority: Option<Arc<Authority>>,
}

impl SnapshotCell {
    /// Returns a cell with its first snapshot. `reclaim` receives what workers no longer use.
    pub fn new(first: Arc<Snapshot>, reclaim: Sender<Arc<Snapshot>>) -> Self {
        Self {
            generation: AtomicU64::new(1),
            newest: Mutex::new(Newest { snapshot: first, authority: None }),
            epochs: Mutex::default(),
            reclaim: Mutex::new(reclaim),
            reclaim_zones: Mutex::default(),
        }
    }

    /// Serves zones from the first query on, which nobody manages: for whoever answers without a
    /// server around it.
    #[must_use]
    pub fn serving(self, zones: Option<Arc<Zones>>) -> Self {
        self.publish_authority(zones.map(|zones| Arc::new(Authority::unmanaged(zones))));
        self
    }

    /// Has zones that workers no longer use received by `reclaim`; without it, who uses them last
    /// frees them.
    #[must_use]
    pub fn reclaiming_zones(self, reclaim: Sender<Arc<Authority>>) -> Self {
        Self { reclaim_zones: Mutex::new(Some(reclaim)), ..self }
    }

    /// Returns the generation of what is newest.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the number of a state of snapshot, zones and sets: another one for each, and zero
    /// for one that is over. Notes beside answers are made with it, so that caches belong to one
    /// cell.
    #[cold]
    pub(crate) fn epoch(&self, state: State) -> u32 {
        self.epochs.lock().unwrap_or_else(PoisonError::into_inner).of(state)
    }

    /// Returns the newest snapshot, the zones, and their generation.
    pub fn load(&self) -> (Arc<Snapshot>, Option<Arc<Authority>>, u64) {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = self.generation.load(Ordering::Acquire);
        (Arc::clone(&newest.snapshot), newest.authority.clone(), generation)
    }

    /// Returns all zones that policies answer from, and the generation; nothing if it is still
    /// `seen`.
    #[cold]
    pub fn zones(&self, seen: Option<u64>) -> Option<(u64, Vec<Arc<Zones>>)> {
        if seen == Some(self.generation()) {
            return None;
        }
        let (snapshot, authority, generation) = self.load();
        let mut all: Vec<Arc<Zones>> = Vec::new();
        for op in snapshot.program.ops() {
            let zones = match op {
                Op::Zone(_) => authority.as_ref().map(|authority| &authority.zones),
                Op::ZoneSet(zones, _) => Some(zones),
                _ => None,
            };
            let Some(zones) = zones else { continue };
            if !all.iter().any(|other| Arc::ptr_eq(other, zones)) {
                all.push(Arc::clone(zones));
            }
        }
        Some((generation, all))
    }

    /// Replaces the snapshot; workers adopt it before their next batch.
    pub fn publish(&self, snapshot: Arc<Snapshot>) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut newest.snapshot, snapshot);
        self.generation.fetch_add(1, Ordering::Release);
        drop(newest);
        self.reclaim(old);
    }

    /// Replaces the zones that are served.
    pub fn publish_authority(&self, authority: Option<Arc<Authority>>) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut newest.authority, authority);
        self.generation.fetch_add(1, Ordering::Release);
        drop(newest);
        self.reclaim_authority(old);
    }

    /// Hands a snapshot that is no longer used to the reclaim thread.
    pub fn reclaim(&self, old: Arc<Snapshot>) {
        let sender = self.reclaim.lock().unwrap_or_else(PoisonError::into_inner);
        // The receiver is gone only while the process ends; then nobody minds who frees it.
        drop(sender.send(old));
    }

    /// Hands zones that are no longer used to the reclaim thread.
    pub fn reclaim_authority(&self, old: Option<Arc<Authority>>) {
        let sender = self.reclaim_zones.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(old), Some(sender)) = (old, sender.as_ref()) {
            drop(sender.send(old));
        }
    }
}
