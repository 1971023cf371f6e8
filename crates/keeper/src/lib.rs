//! Keeps zones current: takes them over from other servers, carries out updates, writes journals, tells secondaries.
//!
//! Never says that an update is done before it is on disk, and never serves half a version.

#![forbid(unsafe_code)]

mod catalog;
pub mod disk;
mod history;
pub mod journal;
mod kept;
#[cfg(test)]
mod power;
mod refresh;
mod report;
mod tell;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use config::zones::{ZonePlan, ZonePlans};
use engine::authority::{Authority, Places, Rights, Update};
use engine::{SnapshotCell, authority};
use tokio::sync::{Semaphore, mpsc};
use tracing::{info, warn};
use wire::{HashKey, Name, NameBuf};
use zone::{Difference, Zone, Zones};

use disk::{Disk, Folder};
use kept::{Kept, Taken, lock};

pub use report::{Role, ZoneReport};

/// Updates that wait for their turn; more than that get SERVFAIL, and their clients try again.
const UPDATES_MAX: usize = 1000;
/// Transfers from primaries at a time, unless the configuration says otherwise.
const INCOMING_MAX: usize = 10;

/// What the keeper's thread is told to do.
enum Order {
    /// Look after a zone that comes from other servers, from now on.
    Follow(Arc<Kept>),
    /// Tell the secondaries of a zone.
    Tell(Arc<Kept>),
    /// Carry out an update.
    Update(Box<Update>),
}

/// Every zone, by its name in lower case.
pub(crate) type ByName = BTreeMap<Vec<u8>, Arc<Kept>>;

/// What all parts share.
pub(crate) struct Shared {
    cell: Arc<SnapshotCell>,
    signer: Arc<dyn Signer>,
    pub(crate) key: HashKey,
    disk: Arc<dyn Disk>,
    zones: Mutex<Arc<ByName>>,
    common: Mutex<Common>,
    /// The zones that are served. Held while they are put together, so that older ones never come after newer ones.
    live: Mutex<Option<Arc<Zones>>>,
    /// Held while the set of zones changes.
    adopting: Mutex<()>,
    orders: mpsc::UnboundedSender<Order>,
    updates: Arc<Semaphore>,
    pub(crate) incoming: Arc<Semaphore>,
    /// What there is to tell each secondary.
    lanes: tell::Lanes,
}

/// What the configuration says of all zones.
struct Common {
    keys: tsig::Keys,
    places: Arc<Places>,
    rights: Arc<HashMap<Vec<u8>, Arc<Rights>>>,
    octets_max: u64,
    incoming_max: usize,
    plans: Arc<[ZonePlan]>,
    /// The zones as the configuration has them.
    base: Option<Arc<Zones>>,
}

/// Looks after all zones of a server.
pub struct Keeper {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    stop: Mutex<Option<tokio::sync::oneshot::Sender<()>>>,
}

/// Signs zones.
pub trait Signer: Send + Sync {
    /// Has a version signed, soon; what comes of it comes by [`Keeper::take_signed`].
    fn sign(&self, apex: Name<'_>, version: &Arc<Zone>);
}

/// What the keeper works with.
pub struct Parts<'a> {
    /// Where zones are published.
    pub cell: Arc<SnapshotCell>,
    /// Signs zones that change while the server runs.
    pub signer: Arc<dyn Signer>,
    /// What names are hashed with.
    pub key: HashKey,
    /// Where journals are.
    pub folder: &'a Path,
}

pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn folded(name: Name<'_>) -> Vec<u8> {
    name.to_folded().as_bytes().to_vec()
}

impl Keeper {
    /// Starts the thread that looks after zones; zones come with [`Keeper::adopt`].
    pub fn start(parts: Parts<'_>) -> io::Result<Self> {
        let (orders, ordered) = mpsc::unbounded_channel();
        let common = Common {
            keys: tsig::Keys::default(),
            places: Arc::new(Places::new(0, 0)),
            rights: Arc::default(),
            octets_max: u64::MAX,
            incoming_max: INCOMING_MAX,
            plans: Arc::from([]),
            base: None,
        };
        let shared = Arc::new(Shared {
            cell: parts.cell,
            signer: parts.signer,
            key: parts.key,
            disk: Arc::new(Folder::new(parts.folder)),
            zones: Mutex::default(),
            common: Mutex::new(common),
            live: Mutex::default(),
            adopting: Mutex::default(),
            orders,
            updates: Arc::new(Semaphore::new(UPDATES_MAX)),
            incoming: Arc::new(Semaphore::new(INCOMING_MAX)),
            lanes: tell::Lanes::default(),
        });
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("keeper".into()).spawn(move || {
            match tokio::runtime::Builder::new_current_thread().enable_all().thread_name("keeper").build() {
                Ok(runtime) => {
                    runtime.block_on(async {
                        tokio::select! {
                            () = work(&for_thread, ordered) => {}
                            _ = stopped => {}
                        }
                    });
                    // Transfers under way are given up; what is being written is written.
                    runtime.shutdown_background();
                }
                Err(error) => tracing::error!(%error, "zones are not looked after"),
            }
        })?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)), stop: Mutex::new(Some(stop)) })
    }

    /// Looks after these zones from now on; those that were there before stay as they are, but for what the configuration
    /// says. Zones that come from other servers are served as they were kept, before anybody is asked.
    pub fn adopt(&self, plans: &ZonePlans) {
        self.shared.adopt(plans);
    }

    /// Serves what was signed of a zone. An error gives it back: it is not looked after here.
    pub fn take_signed(&self, zone: Arc<Zone>) -> Result<(), Arc<Zone>> {
        let kept = self.find(zone.apex()).ok().filter(|kept| kept.plan().signed.has_versions());
        let Some(kept) = kept else { return Err(zone) };
        kept.take_signed(&zone, self.shared.key, unix_seconds());
        self.shared.publish(&kept);
        self.shared.tell(&kept);
        Ok(())
    }

    /// Ends the thread.
    pub fn stop(&self) {
        if let Some(stop) = lock(&self.stop).take() {
            // It has ended by itself if nobody hears.
            let _ = stop.send(());
        }
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }

    /// Says how a zone is, or all of them in the order of their names.
    pub fn report(&self, only: Option<Name<'_>>) -> Vec<ZoneReport> {
        let zones = self.shared.zones();
        let now = unix_seconds();
        match only {
            Some(apex) => {
                zones.get(&folded(apex)).map(|kept| report::report(kept, now)).into_iter().collect()
            }
            None => zones.values().map(|kept| report::report(kept, now)).collect(),
        }
    }

    fn find(&self, apex: Name<'_>) -> Result<Arc<Kept>, String> {
        let found = self.shared.zones().get(&folded(apex)).cloned();
        found.ok_or_else(|| format!("there is no zone \"{}\"", apex.to_buf()))
    }

    /// Asks the primaries of a zone for a newer version; for the whole zone, whatever its serial, if `whole`.
    pub fn refresh(&self, apex: Name<'_>, whole: bool) -> Result<(), String> {
        let kept = self.find(apex)?;
        if !kept.is_secondary() {
            return Err(format!("zone \"{}\" comes from no other server", kept.apex));
        }
        if lock(&kept.current).is_frozen {
            return Err(format!("zone \"{}\" is frozen", kept.apex));
        }
        if whole {
            kept.wants_whole.store(true, Ordering::Relaxed);
        }
        kept.poke.notify_one();
        Ok(())
    }

    /// Lets a zone change no more, or again.
    pub fn freeze(&self, apex: Name<'_>, is_frozen: bool) -> Result<(), String> {
        let kept = self.find(apex)?;
        lock(&kept.current).is_frozen = is_frozen;
        info!(zone = %kept.apex, is_frozen, "by order of the operator");
        if !is_frozen {
            kept.poke.notify_one();
        }
        Ok(())
    }

    /// Returns what changed since the version in the zone's file, or with the last step.
    pub fn difference(&self, apex: Name<'_>) -> Result<Option<Difference>, String> {
        let kept = self.find(apex)?;
        // What was signed of it is not what was changed.
        let current = lock(&kept.current).zone.clone();
        if let (Some(file), Some(current)) = (&kept.plan().zone, current) {
            if Arc::ptr_eq(file, &current) {
                return Ok(None);
            }
            let difference = Difference::between(file, &current, &self.shared.key);
            return Ok(Some(difference));
        }
        let last = lock(&kept.history).last().cloned();
        Ok(last.map(|last| Difference::clone(&last)))
    }

    /// Returns the version of a zone that is served, whether it is looked after here or just a file of a directory.
    pub fn zone(&self, apex: Name<'_>) -> Option<Arc<Zone>> {
        match self.find(apex) {
            Ok(kept) => lock(&kept.served).clone(),
            Err(_) => {
                let live = lock(&self.shared.live).clone().or_else(|| lock(&self.shared.common).base.clone());
                live.and_then(|zones| zones.get(apex).cloned())
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    pub(crate) fn zones(&self) -> Arc<ByName> {
        Arc::clone(&lock(&self.zones))
    }

    pub(crate) fn octets_max(&self) -> u64 {
        lock(&self.common).octets_max
    }

    fn adopt(self: &Arc<Self>, plans: &ZonePlans) {
        let _one_at_a_time = lock(&self.adopting);
        {
            let mut common = lock(&self.common);
            common.keys = plans.keys.clone();
            common.plans = Arc::clone(&plans.plans);
            common.base = plans.signed.clone();
            if let Some(limits) = plans.transfers {
                common.places =
                    Arc::new(Places::new(limits.outgoing_max.into(), limits.outgoing_client_max.into()));
                common.octets_max = limits.octets_max;
                let incoming_max = usize::from(limits.incoming_max);
                if incoming_max > common.incoming_max {
                    self.incoming.add_permits(incoming_max - common.incoming_max);
                } else {
                    self.incoming.forget_permits(common.incoming_max - incoming_max);
                }
                common.incoming_max = incoming_max;
            }
        }
        self.settle();
    }

    /// Brings the set of zones to what configuration and catalogs say. The caller holds `adopting`.
    fn settle(self: &Arc<Self>) {
        let now = unix_seconds();
        let (plans, base) = {
            let common = lock(&self.common);
            (Arc::clone(&common.plans), common.base.clone())
        };
        let before = self.zones();
        let mut zones: ByName = BTreeMap::new();
        let mut begun: Vec<Arc<Kept>> = Vec::new();
        let mut changed: Vec<Arc<Kept>> = Vec::new();
        let mut put = |plan: Arc<ZonePlan>, member: Option<(NameBuf, Vec<u8>)>| {
            let name = folded(plan.apex.as_name());
            if zones.contains_key(&name) {
                return;
            }
            let old = before.get(&name).filter(|old| old.member == member);
            let kept = match old {
                Some(old) => {
                    let was_secondary = old.is_secondary();
                    *lock(&old.plan) = Arc::clone(&plan);
                    let mut current = lock(&old.current);
                    if old.take_file(&mut current, &plan, self.key, now) == Taken::New {
                        changed.push(Arc::clone(old));
                    }
                    old.show(&current, now);
                    drop(current);
                    if !was_secondary && old.is_secondary() {
                        begun.push(Arc::clone(old));
                    }
                    Arc::clone(old)
                }
                None => {
                    let kept = Arc::new(Kept::open(&plan, member, self.key, &self.disk, now));
                    begun.push(Arc::clone(&kept));
                    kept
                }
            };
            zones.insert(name, kept);
        };
        for plan in &*plans {
            put(Arc::new(plan.clone()), None);
        }
        let consumers: Vec<Arc<Kept>> = zones_that_consume(&zones);
        for catalog in consumers {
            for (plan, id) in catalog::members_of(&catalog) {
                let name = folded(plan.apex.as_name());
                let is_in_directory = !zones.contains_key(&name)
                    && base.as_ref().is_some_and(|base| base.at(plan.apex.as_name()).is_some());
                if is_in_directory {
                    warn!(zone = %plan.apex, "is in a catalog and in a directory of zones, which counts");
                    continue;
                }
                // RFC 9432 §5.4: another label for the same zone begins it anew.
                let other = before.get(&name).filter(|old| {
                    old.member.as_ref().is_some_and(|(from, other)| *from == catalog.apex && *other != id)
                });
                if let Some(other) = other {
                    other.remove_files();
                }
                let member = Some((catalog.apex, id));
                if let Some(kept) = self.put_member(plan, member, (&before, &mut zones), now) {
                    begun.push(kept);
                }
            }
        }
        for (name, old) in &*before {
            if !zones.get(name).is_some_and(|kept| Arc::ptr_eq(kept, old)) {
                old.is_gone.store(true, Ordering::Relaxed);
                old.poke.notify_one();
                if old.member.is_some() && !zones.contains_key(name) {
                    info!(zone = %old.apex, "is no member of its catalog any more and is removed");
                    old.remove_files();
                }
            }
        }
        changed.extend(catalog::produce_all(&zones, &plans, self.key, now));
        let rights = zones.iter().map(|(name, kept)| (name.clone(), Arc::clone(&kept.plan().rights)));
        lock(&self.common).rights = Arc::new(rights.collect());
        *lock(&self.zones) = Arc::new(zones);
        self.publish_all(base.as_ref());
        for kept in begun {
            if kept.is_secondary() {
                let _ = self.orders.send(Order::Follow(Arc::clone(&kept)));
            }
            // Whoever has an older version may have missed the word: RFC 1996 §4.8 has all of them told at a start.
            if lock(&kept.served).is_some() {
                self.tell(&kept);
            }
        }
        // Whoever signs knows what is signed already.
        for kept in self.zones().values() {
            self.have_signed(kept);
        }
        for kept in changed.iter().filter(|kept| !kept.plan().signed.has_versions()) {
            self.tell(kept);
        }
    }

    fn put_member(
        &self,
        plan: Arc<ZonePlan>,
        member: Option<(NameBuf, Vec<u8>)>,
        (before, zones): (&ByName, &mut ByName),
        now: u64,
    ) -> Option<Arc<Kept>> {
        let name = folded(plan.apex.as_name());
        if let Some(other) = zones.get(&name) {
            if other.member.is_none() {
                warn!(zone = %other.apex, "is in a catalog and in the configuration, which counts");
            }
            return None;
        }
        if let Some(old) = before.get(&name).filter(|old| old.member == member) {
            *lock(&old.plan) = plan;
            zones.insert(name, Arc::clone(old));
            return None;
        }
        let kept = Arc::new(Kept::open(&plan, member, self.key, &self.disk, now));
        info!(zone = %kept.apex, "is a new member of a catalog");
        zones.insert(name, Arc::clone(&kept));
        Some(kept)
    }

    /// Makes what is current of a zone what is served, on all workers.
    pub(crate) fn publish(self: &Arc<Self>, kept: &Kept) {
        let mut live = lock(&self.live);
        if let Some(zones) = &*live
            && zones.at(kept.apex.as_name()).is_some()
        {
            let with = with(zones, kept);
            *live = Some(Arc::new(with));
        }
        self.publish_live(&live);
    }

    /// Makes these the zones that are served; `base` has those of the configuration, with what they answer beside records.
    fn publish_all(self: &Arc<Self>, base: Option<&Arc<Zones>>) {
        let zones = self.zones();
        let mut live = lock(&self.live);
        *live = base.map(Arc::clone);
        if live.is_none() && !zones.is_empty() {
            *live = Some(Arc::new(Zones::new(self.key, Vec::new())));
        }
        for kept in zones.values() {
            let Some(all) = &*live else { break };
            let served = lock(&kept.served).clone();
            let is_there = all.at(kept.apex.as_name()).map(|there| there.map(Arc::as_ptr));
            if is_there != Some(served.as_ref().map(Arc::as_ptr)) {
                let with = with(all, kept);
                *live = Some(Arc::new(with));
            }
        }
        self.publish_live(&live);
    }

    fn publish_live(self: &Arc<Self>, live: &Option<Arc<Zones>>) {
        let authority = live.as_ref().map(|zones| {
            let common = lock(&self.common);
            Arc::new(Authority {
                zones: Arc::clone(zones),
                keys: common.keys.clone(),
                rights: Arc::clone(&common.rights),
                keeper: Arc::new(Desk(Arc::clone(self))),
                places: Arc::clone(&common.places),
            })
        });
        self.cell.publish_authority(authority);
    }

    /// A zone has a new version: it is served, members of a catalog are adopted, secondaries are told.
    pub(crate) fn changed(self: &Arc<Self>, kept: &Arc<Kept>) {
        if self.have_signed(kept) {
            // It is served when it is signed.
            return;
        }
        if kept.plan().catalog_role == Some(config::settings::CatalogWord::Consumer) {
            let _one_at_a_time = lock(&self.adopting);
            self.settle();
        } else {
            self.publish(kept);
        }
        self.tell(kept);
    }

    /// Has a zone signed, if it is one that is served signed. Returns whether it is.
    fn have_signed(&self, kept: &Kept) -> bool {
        if !kept.plan().signed.has_versions() {
            return false;
        }
        let current = lock(&kept.current).zone.clone();
        if let Some(current) = current {
            self.signer.sign(kept.apex.as_name(), &current);
        }
        true
    }

    fn tell(&self, kept: &Arc<Kept>) {
        if !kept.plan().notify.is_empty() {
            let _ = self.orders.send(Order::Tell(Arc::clone(kept)));
        }
    }
}

/// Returns zones with a zone as it is now.
fn with(zones: &Zones, kept: &Kept) -> Zones {
    match lock(&kept.served).clone() {
        Some(zone) => zones.with_replaced(zone),
        None => zones.with_unloaded(kept.apex.as_name()),
    }
}

fn zones_that_consume(zones: &ByName) -> Vec<Arc<Kept>> {
    let consumes =
        |kept: &&Arc<Kept>| kept.plan().catalog_role == Some(config::settings::CatalogWord::Consumer);
    zones.values().filter(consumes).cloned().collect()
}

/// The keeper as workers see it.
struct Desk(Arc<Shared>);

impl authority::Keeper for Desk {
    fn history(&self, apex: Name<'_>, from: u32, to: u32) -> Option<Vec<Arc<Difference>>> {
        let kept = self.0.zones().get(&folded(apex)).cloned()?;
        let history = lock(&kept.history);
        history.between(from, to)
    }

    fn notified(&self, apex: Name<'_>, from: IpAddr, serial: Option<u32>) {
        let Some(kept) = self.0.zones().get(&folded(apex)).cloned() else { return };
        let is_known = serial == Some(kept.serial()) && lock(&kept.served).is_some();
        if !is_known {
            *lock(&kept.notified_by) = Some(from);
            kept.poke.notify_one();
        }
    }

    fn update(&self, update: Update) -> bool {
        // The place is given back when the update is done.
        let Ok(place) = Arc::clone(&self.0.updates).try_acquire_owned() else { return false };
        let Update { apex, message, scopes, done } = update;
        let done = Box::new(move |rcode| {
            drop(place);
            done(rcode);
        });
        let update = Box::new(Update { apex, message, scopes, done });
        self.0.orders.send(Order::Update(update)).is_ok()
    }
}

/// The keeper's thread: starts what is ordered.
async fn work(shared: &Arc<Shared>, mut ordered: mpsc::UnboundedReceiver<Order>) {
    while let Some(order) = ordered.recv().await {
        match order {
            Order::Follow(kept) => {
                tokio::spawn(refresh::follow(Arc::clone(shared), kept));
            }
            Order::Tell(kept) => {
                tell::tell(shared, &kept);
            }
            Order::Update(update) => {
                let shared = Arc::clone(shared);
                drop(tokio::task::spawn_blocking(move || carry_out(&shared, *update)));
            }
        }
    }
}

fn carry_out(shared: &Arc<Shared>, update: Update) {
    let Update { apex, message, scopes, done } = update;
    let Some(kept) = shared.zones().get(&folded(apex.as_name())).cloned() else {
        return done(wire::Rcode::NOTAUTH);
    };
    let (rcode, is_new) = kept.update(&message, &scopes, shared.key, unix_seconds());
    if is_new {
        shared.changed(&kept);
    }
    done(rcode);
}
