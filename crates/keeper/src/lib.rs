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
mod register;
mod report;
mod tell;
mod trail;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use config::System;
use config::signing::SigningPolicy;
use config::zones::{Addition, Planner, SignedHere, ZonePlan, ZonePlans, explain};
use engine::authority::{Authority, Places, Rights, Update};
use engine::{SnapshotCell, authority};
use tokio::sync::{Semaphore, mpsc};
use tracing::{info, warn};
use wire::{HashKey, Name, NameBuf};
use zone::{Change, Difference, Zone, Zones};

use disk::{Disk, Folder};
use kept::{Kept, Origin, Taken, lock};

pub use register::Register;
pub use report::{Role, ZoneReport};

/// Updates that wait for their turn; more than that get SERVFAIL, and their clients try again.
const UPDATES_MAX: usize = 1000;
/// Transfers from primaries at a time, unless the configuration says otherwise.
const INCOMING_MAX: usize = 10;

/// How often the log says how far the zones that were added are.
const TELL_EVERY: Duration = Duration::from_secs(1);

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
    /// Held for a moment; while all zones are walked, their list is copied.
    zones: RwLock<ByName>,
    common: Mutex<Common>,
    /// The zones that are served. Held while they are put together, so that older ones never come after newer ones.
    live: Mutex<Option<Arc<Zones>>>,
    /// Held while the set of zones changes.
    adopting: Mutex<Added>,
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
    octets_max: u64,
    incoming_max: usize,
    plans: Arc<[ZonePlan]>,
    /// The zones as the configuration has them.
    base: Option<Arc<Zones>>,
}

/// Zones that the operator added while the server ran.
struct Added {
    register: Register,
    /// Plans them by what the configuration says.
    planner: Option<Arc<Planner>>,
    /// What they were planned as, by their names in lower case.
    planned: BTreeMap<Vec<u8>, Addition>,
}

/// What became of a zone that was to be added or removed: perhaps with something to be told of it; else why not.
pub type Changed = Result<Option<String>, String>;

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

    /// Signs a zone that the operator added from now on. Returns the version that was signed last, if there is one.
    fn begin(&self, apex: Name<'_>, policy: &Arc<SigningPolicy>) -> Option<Arc<Zone>>;

    /// Does not sign such a zone any more.
    fn end(&self, apex: Name<'_>);
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
    /// Zones that were added, as that folder has them.
    pub register: Register,
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
            zones: RwLock::default(),
            common: Mutex::new(common),
            live: Mutex::default(),
            adopting: Mutex::new(Added { register: parts.register, planner: None, planned: BTreeMap::new() }),
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
        let now = unix_seconds();
        match only {
            Some(apex) => self.shared.kept(apex).map(|kept| report::report(&kept, now)).into_iter().collect(),
            None => self.shared.all().iter().map(|kept| report::report(kept, now)).collect(),
        }
    }

    /// Returns whether the operator has added zones.
    pub fn has_added(&self) -> bool {
        !lock(&self.shared.adopting).register.is_empty()
    }

    /// Adds zones of which the same is said, as at an item of `zones`, and serves them. Those that were added are on disk when
    /// this returns; the others stay as they are. Costs in proportion to their number.
    pub fn add(&self, apexes: &[NameBuf], said: &str) -> Vec<Changed> {
        self.shared.add(apexes, said)
    }

    /// Takes zones out that were added, and forgets what was kept of them.
    pub fn remove(&self, apexes: &[NameBuf]) -> Vec<Changed> {
        self.shared.remove(apexes)
    }

    /// Makes what a file says the next version of a zone. Returns what is to be told of it.
    pub fn load(&self, apex: Name<'_>, file: &Path) -> Result<String, String> {
        let kept = self.find(apex)?;
        let plan = kept.plan();
        if kept.is_secondary() {
            return Err(format!("zone \"{}\" comes from other servers", kept.apex));
        }
        if plan.catalog_role == Some(config::settings::CatalogWord::Producer) {
            return Err(format!("zone \"{}\" is made here", kept.apex));
        }
        if plan.signed.is_file() {
            return Err(format!("zone \"{}\" is signed as its file says: change that", kept.apex));
        }
        let checked = config::zones::check(kept.apex.as_name(), file, self.shared.key, &System)
            .map_err(|why| format!("cannot read \"{}\": {why}", file.display()))?;
        let Some(zone) = checked.zone else {
            let lines: Vec<String> = checked.diagnostics.iter().map(config::Diagnostic::line).collect();
            return Err(format!("\"{}\" has mistakes:\n{}", file.display(), lines.join("\n")));
        };
        let is_new = kept.take_given(zone, self.shared.key, unix_seconds())?;
        if is_new {
            self.shared.changed(&kept);
        }
        let serial = kept.serial();
        info!(zone = %kept.apex, serial, is_new, "loaded by order of the operator");
        Ok(match is_new {
            true => format!("zone \"{}\" has serial {serial}", kept.apex),
            false => format!("zone \"{}\" is like that already, with serial {serial}", kept.apex),
        })
    }

    fn find(&self, apex: Name<'_>) -> Result<Arc<Kept>, String> {
        self.shared.kept(apex).ok_or_else(|| format!("there is no zone \"{}\"", apex.to_buf()))
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
    /// Returns a zone.
    pub(crate) fn kept(&self, apex: Name<'_>) -> Option<Arc<Kept>> {
        let folded = apex.to_folded();
        let zones = self.zones.read().unwrap_or_else(PoisonError::into_inner);
        zones.get(folded.as_bytes()).map(Arc::clone)
    }

    /// Returns all zones, in the order of their names.
    fn all(&self) -> Vec<Arc<Kept>> {
        let zones = self.zones.read().unwrap_or_else(PoisonError::into_inner);
        zones.values().map(Arc::clone).collect()
    }

    /// Changes which zones there are.
    fn change<T>(&self, change: impl FnOnce(&mut ByName) -> T) -> T {
        change(&mut self.zones.write().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn octets_max(&self) -> u64 {
        lock(&self.common).octets_max
    }

    fn adopt(self: &Arc<Self>, plans: &ZonePlans) {
        let mut added = lock(&self.adopting);
        added.planner = plans.planner.as_ref().map(Arc::clone);
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
        self.settle(&mut added);
    }

    /// Brings the set of zones to what the configuration, catalogs and the operator say.
    fn settle(self: &Arc<Self>, added: &mut Added) {
        let now = unix_seconds();
        let (plans, base) = {
            let common = lock(&self.common);
            (Arc::clone(&common.plans), common.base.clone())
        };
        let before = self.zones.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut zones = ByName::new();
        let mut begun: Vec<Arc<Kept>> = Vec::new();
        let mut changed: Vec<Arc<Kept>> = Vec::new();
        for plan in &*plans {
            let name = folded(plan.apex.as_name());
            if zones.contains_key(&name) {
                continue;
            }
            let plan = Arc::new(plan.clone());
            let old = before.get(&name).filter(|old| old.origin == Origin::Configured);
            let kept = match old {
                Some(old) => {
                    let was_secondary = old.is_secondary();
                    if old.replan(&plan, self.key, now) == Taken::New {
                        changed.push(Arc::clone(old));
                    }
                    if !was_secondary && old.is_secondary() {
                        begun.push(Arc::clone(old));
                    }
                    Arc::clone(old)
                }
                None => {
                    let kept = Arc::new(Kept::open(&plan, Origin::Configured, self.key, &self.disk, now));
                    begun.push(Arc::clone(&kept));
                    kept
                }
            };
            zones.insert(name, kept);
        }
        self.put_added(added, (&before, &mut zones), base.as_deref(), (&mut begun, &mut changed));
        for catalog in consumers(zones.values()) {
            for member in catalog::members_of(&catalog).iter() {
                let name = folded(member.zone.as_name());
                let other = zones.get(&name).map(Arc::clone);
                if !self.is_free_for(member.zone.as_name(), other.as_deref(), base.as_deref()) {
                    continue;
                }
                let plan = Arc::new(catalog::plan_of(member, &catalog.plan()));
                let origin = Origin::Member { catalog: catalog.apex, id: member.id.clone() };
                let old = before.get(&name);
                if let Some(old) = old.filter(|old| old.origin == origin) {
                    *lock(&old.plan) = plan;
                    zones.insert(name, Arc::clone(old));
                    continue;
                }
                // RFC 9432 §5.4: another label for the same zone begins it anew.
                if let Some(old) = old.filter(|old| old.origin.is_member_of(&catalog.apex)) {
                    old.remove_files();
                }
                let kept = Arc::new(Kept::open(&plan, origin, self.key, &self.disk, now));
                info!(zone = %kept.apex, "is a new member of a catalog");
                begun.push(Arc::clone(&kept));
                zones.insert(name, kept);
            }
        }
        for (name, old) in &before {
            if !zones.get(name).is_some_and(|kept| Arc::ptr_eq(kept, old)) {
                old.end();
                if !zones.contains_key(name) {
                    self.forget(old);
                }
            }
        }
        drop(before);
        let all: Vec<Arc<Kept>> = zones.values().map(Arc::clone).collect();
        changed.extend(catalog::produce_all(&all, self.key, now));
        let old = self.change(|current| std::mem::replace(current, zones));
        drop(old);
        self.publish_all(&all, base.as_ref());
        self.follow(&begun);
        // Whoever signs knows what is signed already.
        for kept in &all {
            self.have_signed(kept);
        }
        for kept in changed.iter().filter(|kept| !kept.plan().signed.has_versions()) {
            self.tell(kept);
        }
    }

    /// Returns whether a catalog may have a zone of this name; says why not.
    fn is_free_for(&self, apex: Name<'_>, other: Option<&Kept>, base: Option<&Zones>) -> bool {
        match other {
            Some(other) => {
                match other.origin {
                    Origin::Configured => {
                        warn!(zone = %other.apex, "is in a catalog and in the configuration, which counts");
                    }
                    Origin::Added => warn!(zone = %other.apex, "is in a catalog and was added, which counts"),
                    Origin::Member { .. } => {}
                }
                false
            }
            None if base.is_some_and(|base| base.at(apex).is_some()) => {
                warn!(zone = %apex, "is in a catalog and in a directory of zones, which counts");
                false
            }
            None => true,
        }
    }

    /// Forgets what was kept of a zone that is no member of its catalog any more.
    fn forget(&self, gone: &Kept) {
        if matches!(gone.origin, Origin::Member { .. }) {
            info!(zone = %gone.apex, "is no member of its catalog any more and is removed");
            gone.remove_files();
        }
    }

    /// Brings the members of a catalog to what its new version says; other zones are not touched.
    fn settle_members(self: &Arc<Self>, catalog: &Arc<Kept>) {
        let mut added = lock(&self.adopting);
        if consumers(self.all().iter()).len() > 1 {
            // A zone that one of them gives up another may have.
            self.settle(&mut added);
            return;
        }
        let (now, base) = (unix_seconds(), lock(&self.common).base.clone());
        let members = catalog::members_of(catalog);
        let wanted: BTreeMap<&[u8], &[u8]> =
            members.iter().map(|member| (member.zone.as_name().as_bytes(), &*member.id)).collect();
        let is_wanted = |kept: &Kept| {
            let id = wanted.get(kept.apex.as_name().to_folded().as_bytes());
            matches!((&kept.origin, id), (Origin::Member { id, .. }, Some(wanted)) if id == wanted)
        };
        let gone: Vec<Arc<Kept>> = self
            .all()
            .into_iter()
            .filter(|kept| kept.origin.is_member_of(&catalog.apex) && !is_wanted(kept))
            .collect();
        let mut changes: Vec<Change> = Vec::new();
        for kept in &gone {
            self.change(|zones| zones.remove(&folded(kept.apex.as_name())));
            kept.end();
            self.forget(kept);
            changes.push(Change::Remove(kept.apex));
        }
        let template = catalog.plan();
        let mut begun = Vec::new();
        for member in members.iter() {
            let other = self.kept(member.zone.as_name());
            if other.as_ref().is_some_and(|other| other.origin.is_member_of(&catalog.apex))
                || !self.is_free_for(member.zone.as_name(), other.as_deref(), base.as_deref())
            {
                continue;
            }
            let plan = Arc::new(catalog::plan_of(member, &template));
            let origin = Origin::Member { catalog: catalog.apex, id: member.id.clone() };
            let kept = Arc::new(Kept::open(&plan, origin, self.key, &self.disk, now));
            info!(zone = %kept.apex, "is a new member of a catalog");
            self.change(|zones| zones.insert(folded(kept.apex.as_name()), Arc::clone(&kept)));
            changes.push(kept.change());
            begun.push(kept);
        }
        self.publish_changes(changes);
        self.follow(&begun);
        for kept in &begun {
            self.have_signed(kept);
        }
    }

    /// Puts the zones in that the operator added; what the configuration has counts.
    fn put_added(
        &self,
        added: &mut Added,
        (before, zones): (&ByName, &mut ByName),
        base: Option<&Zones>,
        (begun, changed): (&mut Vec<Arc<Kept>>, &mut Vec<Arc<Kept>>),
    ) {
        let now = unix_seconds();
        let count = added.register.zones().len();
        let mut told = Instant::now();
        let mut planned = BTreeMap::new();
        for (number, (name, said)) in added.register.zones().iter().enumerate() {
            if told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                info!(zones = number, of = count, "opening zones that were added");
            }
            let Ok((apex, _)) = Name::parse(name) else { continue };
            let other = match zones.get(name) {
                Some(_) => Some("the configuration"),
                None if base.is_some_and(|base| base.at(apex).is_some()) => Some("a directory of zones"),
                None => None,
            };
            if let Some(other) = other {
                warn!(zone = %apex, "was added and is in {other}, which counts");
                continue;
            }
            let was_signed = added.planned.get(name).is_some_and(|old| old.policy.is_some());
            let plan = match self.plan_added(added, apex, said) {
                Ok((plan, addition)) => {
                    planned.insert(name.clone(), addition);
                    plan
                }
                Err(why) => {
                    tracing::error!(zone = %apex, "was added and cannot be served as it was: {why}");
                    match before.get(name).filter(|old| old.origin == Origin::Added) {
                        Some(old) => {
                            zones.insert(name.clone(), Arc::clone(old));
                            continue;
                        }
                        // It is ours, so it gets SERVFAIL.
                        None => Arc::new(ZonePlan::nothing(apex)),
                    }
                }
            };
            if was_signed && !plan.signed.has_versions() {
                self.signer.end(apex);
            }
            let kept = match before.get(name).filter(|old| old.origin == Origin::Added) {
                Some(old) => {
                    let was_secondary = old.is_secondary();
                    if old.replan(&plan, self.key, now) == Taken::New {
                        changed.push(Arc::clone(old));
                    }
                    if !was_secondary && old.is_secondary() {
                        begun.push(Arc::clone(old));
                    }
                    Arc::clone(old)
                }
                None => {
                    let kept = Arc::new(Kept::open(&plan, Origin::Added, self.key, &self.disk, now));
                    begun.push(Arc::clone(&kept));
                    kept
                }
            };
            zones.insert(name.clone(), kept);
        }
        added.planned = planned;
    }

    /// Returns what is to become of a zone that the operator added.
    fn plan_added(
        &self,
        added: &Added,
        apex: Name<'_>,
        said: &str,
    ) -> Result<(Arc<ZonePlan>, Addition), String> {
        let planner = added.planner.as_ref().ok_or("there is no configuration yet")?;
        let old = added.planned.get(apex.to_folded().as_bytes());
        let addition = planner.plan(apex, said, old, &System).map_err(|found| explain(&found))?;
        for warning in &addition.warnings {
            warn!(zone = %apex, "{}", warning.line());
        }
        let plan = match &addition.policy {
            Some(policy) => {
                let signed = SignedHere::Versions { last: self.signer.begin(apex, policy) };
                Arc::new(ZonePlan { signed, ..ZonePlan::clone(&addition.plan) })
            }
            None => Arc::clone(&addition.plan),
        };
        Ok((plan, addition))
    }

    fn add(self: &Arc<Self>, apexes: &[NameBuf], said: &str) -> Vec<Changed> {
        let mut added = lock(&self.adopting);
        let base = lock(&self.common).base.clone();
        let now = unix_seconds();
        let mut outcomes: Vec<Changed> = Vec::with_capacity(apexes.len());
        let mut planned: BTreeMap<Vec<u8>, (Arc<ZonePlan>, Addition)> = BTreeMap::new();
        for apex in apexes {
            let name = folded(apex.as_name());
            let is_free = match self.kept(apex.as_name()) {
                Some(other) => Err(match &other.origin {
                    Origin::Configured => format!("zone \"{apex}\" is in the configuration"),
                    Origin::Added => format!("zone \"{apex}\" was added before"),
                    Origin::Member { catalog, .. } => {
                        format!("zone \"{apex}\" is a member of the catalog \"{catalog}\"")
                    }
                }),
                None if base.as_ref().is_some_and(|base| base.at(apex.as_name()).is_some()) => {
                    Err(format!("zone \"{apex}\" is in a directory of zones"))
                }
                None if planned.contains_key(&name) => Err(format!("zone \"{apex}\" is there twice")),
                None => Ok(()),
            };
            let plan = is_free.and_then(|()| self.plan_added(&added, apex.as_name(), said));
            outcomes.push(plan.map(|(plan, addition)| {
                let note = (!addition.warnings.is_empty()).then(|| explain(&addition.warnings));
                planned.insert(name, (plan, addition));
                note
            }));
        }
        let new: Vec<NameBuf> = planned.values().map(|(plan, _)| plan.apex).collect();
        if new.is_empty() {
            return outcomes;
        }
        // What was kept of an earlier zone of the name is not this one's.
        let stale = new
            .iter()
            .try_for_each(|apex| journal::Journal::new(Arc::clone(&self.disk), apex.as_name()).unlink());
        let kept = stale.and_then(|()| self.disk.sync_names()).and_then(|()| added.register.add(&new, said));
        if let Err(error) = kept {
            tracing::error!(%error, "no zone is added: that cannot be kept");
            new.iter().for_each(|apex| self.signer.end(apex.as_name()));
            let refused = || format!("it cannot be kept: {error}");
            return outcomes.into_iter().map(|outcome| outcome.and_then(|_| Err(refused()))).collect();
        }
        let mut begun = Vec::with_capacity(new.len());
        for (name, (plan, addition)) in planned {
            let kept = Arc::new(Kept::open(&plan, Origin::Added, self.key, &self.disk, now));
            added.planned.insert(name.clone(), addition);
            self.change(|zones| zones.insert(name, Arc::clone(&kept)));
            begun.push(kept);
        }
        info!(zones = begun.len(), first = %new[0], "added by order of the operator");
        self.publish_changes(begun.iter().map(|kept| kept.change()).collect());
        self.follow(&begun);
        for kept in &begun {
            self.have_signed(kept);
        }
        self.produce_for(begun.iter());
        outcomes
    }

    fn remove(self: &Arc<Self>, apexes: &[NameBuf]) -> Vec<Changed> {
        let mut added = lock(&self.adopting);
        let mut gone: BTreeMap<Vec<u8>, NameBuf> = BTreeMap::new();
        let mut outcomes: Vec<Changed> = Vec::with_capacity(apexes.len());
        for apex in apexes {
            let name = folded(apex.as_name());
            outcomes.push(match self.kept(apex.as_name()) {
                _ if added.register.zones().contains_key(&name) => {
                    gone.insert(name, *apex);
                    Ok(None)
                }
                Some(other) => Err(match &other.origin {
                    Origin::Member { catalog, .. } => {
                        format!("zone \"{apex}\" is a member of the catalog \"{catalog}\"")
                    }
                    Origin::Configured | Origin::Added => {
                        format!("zone \"{apex}\" is in the configuration: take it out there")
                    }
                }),
                None => Err(format!("there is no zone \"{apex}\" that was added")),
            });
        }
        let names: Vec<NameBuf> = gone.values().copied().collect();
        if names.is_empty() {
            return outcomes;
        }
        if let Err(error) = added.register.remove(&names) {
            tracing::error!(%error, "no zone is removed: that cannot be kept");
            let refused = || format!("that cannot be kept: {error}");
            return outcomes.into_iter().map(|outcome| outcome.and_then(|_| Err(refused()))).collect();
        }
        let mut ended = Vec::with_capacity(gone.len());
        for name in gone.keys() {
            added.planned.remove(name);
            let kept = self.change(|zones| match zones.get(name) {
                // The configuration has one of the name, too.
                Some(kept) if kept.origin != Origin::Added => None,
                _ => zones.remove(name),
            });
            ended.extend(kept);
        }
        for kept in &ended {
            kept.end();
        }
        info!(zones = ended.len(), first = %names[0], "removed by order of the operator");
        self.publish_changes(ended.iter().map(|kept| Change::Remove(kept.apex)).collect());
        for kept in &ended {
            self.signer.end(kept.apex.as_name());
            kept.unlink_files();
        }
        if let Err(error) = self.disk.sync_names() {
            warn!(%error, "files of removed zones may come back after a loss of power");
        }
        self.produce_for(ended.iter());
        outcomes
    }

    /// Makes catalogs anew if zones that came or went are listed in them.
    fn produce_for<'k>(self: &Arc<Self>, mut zones: impl Iterator<Item = &'k Arc<Kept>>) {
        if zones.any(|kept| kept.plan().member_of.is_some()) {
            for catalog in catalog::produce_all(&self.all(), self.key, unix_seconds()) {
                self.publish(&catalog);
                self.tell(&catalog);
            }
        }
    }

    /// Looks after zones that come from other servers, from now on, and tells the secondaries of all.
    fn follow(&self, begun: &[Arc<Kept>]) {
        for kept in begun {
            if kept.is_secondary() {
                // Nobody hears it any more when the server ends.
                let _ = self.orders.send(Order::Follow(Arc::clone(kept)));
            }
            // Whoever has an older version may have missed the word: RFC 1996 §4.8 has all of them told at a start.
            if lock(&kept.served).is_some() {
                self.tell(kept);
            }
        }
    }

    /// Makes what is current of a zone what is served, on all workers.
    pub(crate) fn publish(self: &Arc<Self>, kept: &Kept) {
        let mut live = lock(&self.live);
        if let Some(zones) = &*live
            && !kept.is_gone.load(Ordering::Relaxed)
            && zones.at(kept.apex.as_name()).is_some()
        {
            let with = zones.with_all([kept.change()]);
            *live = Some(Arc::new(with));
        }
        self.publish_live(&live);
    }

    /// Makes changes to what is served.
    fn publish_changes(self: &Arc<Self>, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let mut live = lock(&self.live);
        let none = || Arc::new(Zones::new(self.key, Vec::new()));
        let with = live.as_ref().map_or_else(none, Arc::clone).with_all(changes);
        *live = Some(Arc::new(with));
        self.publish_live(&live);
    }

    /// Makes these the zones that are served; `base` has those of the configuration, with what they answer beside records.
    fn publish_all(self: &Arc<Self>, kept: &[Arc<Kept>], base: Option<&Arc<Zones>>) {
        let mut live = lock(&self.live);
        *live = base.map(Arc::clone);
        if live.is_none() && !kept.is_empty() {
            *live = Some(Arc::new(Zones::new(self.key, Vec::new())));
        }
        if let Some(all) = &*live {
            let differs = |kept: &&Arc<Kept>| {
                let is_there = all.at(kept.apex.as_name()).map(|there| there.map(Arc::as_ptr));
                is_there != Some(lock(&kept.served).as_ref().map(Arc::as_ptr))
            };
            let changes: Vec<Change> = kept.iter().filter(differs).map(|kept| kept.change()).collect();
            if !changes.is_empty() {
                let with = all.with_all(changes);
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
            self.settle_members(kept);
        }
        self.publish(kept);
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

fn consumers<'k>(zones: impl Iterator<Item = &'k Arc<Kept>>) -> Vec<Arc<Kept>> {
    let consumes =
        |kept: &&Arc<Kept>| kept.plan().catalog_role == Some(config::settings::CatalogWord::Consumer);
    zones.filter(consumes).map(Arc::clone).collect()
}

/// The keeper as workers see it.
struct Desk(Arc<Shared>);

impl authority::Keeper for Desk {
    fn rights(&self, apex: Name<'_>) -> Option<Arc<Rights>> {
        self.0.kept(apex).map(|kept| Arc::clone(&kept.plan().rights))
    }

    fn history(&self, apex: Name<'_>, from: u32, to: u32) -> Option<Vec<Arc<Difference>>> {
        let kept = self.0.kept(apex)?;
        let history = lock(&kept.history);
        history.between(from, to)
    }

    fn left_s(&self, apex: Name<'_>, unix_seconds: u32) -> Option<u32> {
        self.0.kept(apex)?.left_s(unix_seconds.into())
    }

    fn notified(&self, apex: Name<'_>, from: IpAddr, serial: Option<u32>) {
        let Some(kept) = self.0.kept(apex) else { return };
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
    let Some(kept) = shared.kept(apex.as_name()) else {
        return done(wire::Rcode::NOTAUTH);
    };
    let (rcode, is_new) = kept.update(&message, &scopes, shared.key, unix_seconds());
    if is_new {
        shared.changed(&kept);
    }
    done(rcode);
}
