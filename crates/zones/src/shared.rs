//! What all parts share: the zones, their served versions, and who is notified.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use engine::SnapshotCell;
use engine::peers::{Forward, Places, Update};
use plan::checks::Watched;
use plan::signing::SigningPolicy;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use wire::{HashKey, Name};
use zone::{Zone, Zones};

use crate::added::Added;
use crate::digest::Trust;
use crate::disk::Disk;
use crate::elsewhere::Elsewhere;
use crate::load::{Failing, LoadedZone};
use crate::lock::lock;
use crate::managed::ManagedZone;
use crate::{forwarded, notify, refused, signature_expiry};

/// An order for the thread of the zones.
pub(crate) enum Order {
    /// Look after a zone that comes from other servers, from now on.
    Follow(Arc<ManagedZone>),
    /// Notify the secondaries of a zone.
    Notify(Arc<ManagedZone>),
    /// Carry out an update.
    Update(Box<Update>),
    /// Pass an update on, of which there are only so many at a time.
    Forward(Box<Forward>, OwnedSemaphorePermit),
    /// Look whether signatures end soon.
    LookAtSignatures,
}

/// Every zone, by its name in lower case.
pub(crate) type ByName = BTreeMap<Vec<u8>, Arc<ManagedZone>>;

/// What all parts share.
pub(crate) struct Shared {
    pub(crate) cell: Arc<SnapshotCell>,
    pub(crate) signer: Arc<dyn Signer>,
    pub(crate) watcher: Arc<dyn Watcher>,
    pub(crate) trust: Arc<dyn Trust>,
    pub(crate) elsewhere: Arc<dyn Elsewhere>,
    pub(crate) news: Arc<dyn News>,
    pub(crate) key: HashKey,
    pub(crate) transfers: transfer::Client,
    pub(crate) disk: Arc<dyn Disk>,
    /// Held for a moment; while all zones are walked, their list is copied.
    pub(crate) zones: RwLock<ByName>,
    pub(crate) common: Mutex<Common>,
    /// The zones that are served. Held while they are put together, so that older ones never come
    /// after newer ones.
    pub(crate) live: Mutex<Live>,
    /// Held while the set of zones changes.
    pub(crate) adopting: Mutex<Added>,
    pub(crate) orders: mpsc::UnboundedSender<Order>,
    pub(crate) updates: Arc<Semaphore>,
    pub(crate) forwards: Arc<Semaphore>,
    pub(crate) incoming: Arc<Semaphore>,
    /// The zones that each secondary is to be notified of.
    pub(crate) notify_queues: notify::NotifyQueues,
    /// Updates that could not be kept.
    pub(crate) refused: refused::Refused,
    /// Updates that are on their way to primaries.
    pub(crate) forwarded: forwarded::Forwarded,
    /// Updates that no primary answered.
    pub(crate) not_forwarded: refused::Refused,
    /// The wall clock went on while the timers stood still, as when the machine was suspended.
    pub(crate) clock_moved: Notify,
    /// Zones that are refreshed. While there are none, nobody looks at the clocks.
    pub(crate) refreshed: AtomicUsize,
    /// The first of these has come.
    pub(crate) refresh_began: Notify,
    /// Warnings of signatures that end.
    pub(crate) warned_of_signatures: Mutex<signature_expiry::Warned>,
}

/// The zones as they are now.
#[derive(Default)]
pub(crate) struct Live {
    /// Those that clients are answered from.
    pub(crate) for_clients: Option<Arc<Zones>>,
    /// Those for resolvers alone.
    pub(crate) for_resolvers: Option<Arc<Zones>>,
}

/// What the configuration says of all zones.
pub(crate) struct Common {
    pub(crate) keys: tsig::Keys,
    pub(crate) places: Arc<Places>,
    pub(crate) octets_max: u64,
    pub(crate) incoming_max: usize,
    pub(crate) loaded: Arc<[Arc<LoadedZone>]>,
    /// The zones as the configuration has them.
    pub(crate) base: Option<Arc<Zones>>,
    /// Those of sets, that policies name.
    pub(crate) sets: BTreeMap<String, Arc<Zones>>,
    /// Those that are not as their files say.
    pub(crate) failing: Arc<[Failing]>,
}

/// Signs zones.
pub trait Signer: Send + Sync {
    /// Has a version signed, soon; what comes of it comes by [`crate::ZoneManager::take_signed`].
    fn sign(&self, apex: Name<'_>, version: &Arc<Zone>);

    /// Signs a zone that the operator added from now on. Returns the version that was signed last,
    /// if there is one.
    fn begin(&self, apex: Name<'_>, policy: &Arc<SigningPolicy>) -> Option<Arc<Zone>>;

    /// Does not sign such a zone any more.
    fn end(&self, apex: Name<'_>);
}

/// Hears of zones from other servers.
pub trait News: Send + Sync {
    /// There is another version of a zone, or the first one. Must not wait.
    fn changed(&self, apex: Name<'_>);

    /// A zone of another server was transferred, could not be for the first time, or has expired.
    /// Must not wait.
    fn transfer(&self, apex: Name<'_>, outcome: &TransferOutcome<'_>);
}

/// What became of a zone of another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferOutcome<'a> {
    /// There is a new version, with this serial.
    Transferred(u32),
    /// No primary gave one. Not told again until one of them has answered.
    Failed(&'a str),
    /// No primary was heard of for too long.
    Expired,
}

/// Checks whether what records lead to works.
pub trait Watcher: Send + Sync {
    /// Watches these records of a zone that came while the server runs, instead of those that were
    /// watched before. When this returns, what is known of them counts.
    fn watch(&self, apex: Name<'_>, watched: &[Arc<Watched>]);
}

pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

pub(crate) fn folded(name: Name<'_>) -> Vec<u8> {
    name.to_folded().as_bytes().to_vec()
}

impl Shared {
    /// Returns a zone.
    pub(crate) fn managed(&self, apex: Name<'_>) -> Option<Arc<ManagedZone>> {
        let folded = apex.to_folded();
        let zones = self.zones.read().unwrap_or_else(PoisonError::into_inner);
        zones.get(folded.as_bytes()).map(Arc::clone)
    }

    /// Returns all zones, in the order of their names.
    pub(crate) fn all(&self) -> Vec<Arc<ManagedZone>> {
        let zones = self.zones.read().unwrap_or_else(PoisonError::into_inner);
        zones.values().map(Arc::clone).collect()
    }

    /// Changes which zones there are.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut ByName) -> T) -> T {
        change(&mut self.zones.write().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn octets_max(&self) -> u64 {
        lock(&self.common).octets_max
    }
}
