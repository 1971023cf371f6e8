//! Looks after all zones of a server.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;

use engine::SnapshotCell;
use engine::peers::{Places, Scope};
use environment::System;
use plan::zones::{CatalogRole, FileChange};
use tokio::sync::{Notify, Semaphore, mpsc};
use tracing::info;
use wire::{HashKey, Name, NameBuf, Rcode, Rtype};
use zone::rows::Rows;
use zone::update::{RrsetChange, Updated};
use zone::{Difference, Finding, Level, Zone};

use crate::added::{Added, Changed, ExpectZone, Planner};
use crate::digest::{DigestCheck, Trust};
use crate::disk::Folder;
use crate::elsewhere::Elsewhere;
use crate::error::ZoneError;
use crate::load::{LoadedZones, check};
use crate::lock::lock;
use crate::managed::{ManagedZone, Taken};
use crate::register::Register;
use crate::report::{Role, Summary, ZoneReport};
use crate::requests::work;
use crate::shared::{Common, News, Order, Shared, Signer, Watcher, unix_seconds};
use crate::{forwarded, notify, refused};

/// The source of changes that the server makes itself.
const BY_SERVER: &str = "the server";

/// Updates that wait for their turn; more than that get SERVFAIL, and their clients try again.
const UPDATES_MAX: usize = 1000;

/// Updates that are passed on at a time; more than that get SERVFAIL.
const FORWARDS_MAX: usize = 256;

/// Transfers from primaries at a time, unless the configuration says otherwise.
const INCOMING_MAX: usize = 10;

/// Looks after all zones of a server.
pub struct ZoneManager {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    stop: Mutex<Option<tokio::sync::oneshot::Sender<()>>>,
}

/// What a manager is given to work with.
pub struct Dependencies<'a> {
    /// Where zones are published.
    pub cell: Arc<SnapshotCell>,
    /// Signs zones that change while the server runs.
    pub signer: Arc<dyn Signer>,
    /// Checks what zones that come while the server runs lead to.
    pub watcher: Arc<dyn Watcher>,
    /// Finds out which keys zones have.
    pub trust: Arc<dyn Trust>,
    /// Looks up where zones come from.
    pub elsewhere: Arc<dyn Elsewhere>,
    /// Hears of new versions of zones from other servers.
    pub news: Arc<dyn News>,
    /// What names are hashed with.
    pub key: HashKey,
    /// Asks other servers of zones.
    pub transfers: transfer::Client,
    /// Where journals are.
    pub folder: &'a Path,
    /// Zones that were added, as that folder has them.
    pub register: Register,
}

impl ZoneManager {
    /// Starts the thread that looks after zones; zones come with [`ZoneManager::adopt`].
    pub fn start(dependencies: Dependencies<'_>) -> io::Result<Self> {
        let (orders, ordered) = mpsc::unbounded_channel();
        let common = Common {
            keys: tsig::Keys::default(),
            places: Arc::new(Places::new(0, 0)),
            octets_max: u64::MAX,
            incoming_max: INCOMING_MAX,
            loaded: Arc::from([]),
            base: None,
            sets: BTreeMap::new(),
            failing: Arc::from([]),
        };
        let shared = Arc::new(Shared {
            cell: dependencies.cell,
            signer: dependencies.signer,
            watcher: dependencies.watcher,
            trust: dependencies.trust,
            elsewhere: dependencies.elsewhere,
            news: dependencies.news,
            key: dependencies.key,
            transfers: dependencies.transfers,
            disk: Arc::new(Folder::new(dependencies.folder)),
            zones: RwLock::default(),
            common: Mutex::new(common),
            live: Mutex::default(),
            adopting: Mutex::new(Added {
                register: dependencies.register,
                planner: None,
                pool: None,
                planned: BTreeMap::new(),
            }),
            orders,
            updates: Arc::new(Semaphore::new(UPDATES_MAX)),
            forwards: Arc::new(Semaphore::new(FORWARDS_MAX)),
            incoming: Arc::new(Semaphore::new(INCOMING_MAX)),
            notify_queues: notify::NotifyQueues::default(),
            refused: refused::Refused::new("an update is refused: it cannot be kept"),
            not_forwarded: refused::Refused::new("an update is not passed on"),
            clock_moved: Notify::new(),
            refreshed: AtomicUsize::new(0),
            refresh_began: Notify::new(),
            forwarded: forwarded::Forwarded::default(),
            warned_of_signatures: Mutex::default(),
        });
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("zones".into()).spawn(move || {
            match tokio::runtime::Builder::new_current_thread().enable_all().thread_name("zones").build() {
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

    /// Looks after these zones from now on; those that were there before stay as they are, but for
    /// what the configuration says. Zones that come from other servers are served as they were
    /// kept, before anybody is asked. `planner` plans zones that are added.
    /// `by` is who changed the configuration, if somebody did.
    pub fn adopt(&self, zones: &LoadedZones, planner: &Arc<dyn Planner>, by: Option<&str>) {
        self.shared.adopt(zones, planner, by);
    }

    /// Returns the last version of a zone that came from other servers, if there is one: also when
    /// it is served no more because none of them was heard of for too long.
    pub fn received(&self, apex: Name<'_>) -> Option<Arc<Zone>> {
        let managed = self.shared.managed(apex).filter(|managed| managed.is_secondary())?;
        lock(&managed.current).zone.clone()
    }

    /// Serves what was signed of a zone. An error gives it back: it is not looked after here.
    pub fn take_signed(&self, zone: Arc<Zone>) -> Result<(), Arc<Zone>> {
        let managed = self.find(zone.apex()).ok().filter(|managed| managed.loaded().signed.has_versions());
        let Some(managed) = managed else { return Err(zone) };
        managed.take_signed(&zone, self.shared.key, unix_seconds());
        self.shared.publish(&managed);
        self.shared.notify(&managed);
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

    /// Says how a zone is, or all that are served and all that should be: those first with which
    /// something is wrong, else in the order of their names.
    pub fn report(&self, only: Option<Name<'_>>) -> Vec<ZoneReport> {
        self.shared.report(only, unix_seconds())
    }

    /// Returns how many zones are served, and those with which something is wrong.
    pub fn summary(&self) -> Summary {
        self.shared.summary()
    }

    /// Returns what a zone is to this server; nothing if it is not one of its own. One that is only
    /// a file of a directory is a primary's.
    pub fn role(&self, apex: Name<'_>) -> Option<Role> {
        match self.shared.managed(apex) {
            Some(managed) => Some(if managed.is_secondary() { Role::Secondary } else { Role::Primary }),
            None => self.shared.is_plain(apex).then_some(Role::Primary),
        }
    }

    /// Has a change of a zone's file that was refused merged with what was changed here, or replace
    /// it.
    pub fn decide(&self, apex: Name<'_>, how: FileChange, by: &str) -> Result<String, ZoneError> {
        let managed = self.find(apex)?;
        let (taken, said) = managed.decide_now(how, self.shared.key, (by, unix_seconds()))?;
        if taken == Taken::New {
            self.shared.changed(&managed);
        }
        Ok(said)
    }

    /// Returns whether the operator has added zones.
    pub fn has_added(&self) -> bool {
        !lock(&self.shared.adopting).register.is_empty()
    }

    /// Adds zones with the same settings, as at an item of `zones`, and serves them. Those that
    /// were added are on disk when this returns; the others stay as they are. Costs in proportion
    /// to their number. `expect` looks at each of them while no other change is made, and says why
    /// it is not the one that was meant; `by` is who adds them.
    pub fn add(
        &self,
        apexes: &[NameBuf],
        said: &str,
        (expect, by): (Option<&ExpectZone<'_>>, &str),
    ) -> Vec<Changed> {
        self.shared.add(apexes, said, (expect, by))
    }

    /// Says what would become of zones that [`ZoneManager::add`] is to add.
    pub fn check_add(&self, apexes: &[NameBuf], said: &str, expect: Option<&ExpectZone<'_>>) -> Vec<Changed> {
        self.shared.check_add(apexes, said, expect)
    }

    /// Says what would become of zones that [`ZoneManager::remove`] is to take out.
    pub fn check_remove(&self, apexes: &[NameBuf], expect: Option<&ExpectZone<'_>>) -> Vec<Changed> {
        self.shared.check_remove(apexes, expect)
    }

    /// Takes zones out that were added, and forgets what was kept of them. `expect` looks at each
    /// of them while it cannot change, and says why it is not the one that was meant.
    pub fn remove(&self, apexes: &[NameBuf], expect: Option<&ExpectZone<'_>>) -> Vec<Changed> {
        self.shared.remove(apexes, expect)
    }

    /// Makes what a file says the next version of a zone, as a change by `by`. Returns the finding
    /// to report.
    pub fn load(&self, apex: Name<'_>, file: &Path, by: &str) -> Result<String, ZoneError> {
        let managed = self.find_made_here(apex)?;
        let checked = check(managed.apex.as_name(), file, self.shared.key, &System)
            .map_err(|why| ZoneError::Unreadable(file.to_owned(), why))?;
        let Some(zone) = checked.zone else {
            return Err(ZoneError::InvalidFile(file.to_owned(), checked.diagnostics));
        };
        self.take(&managed, zone, by)
    }

    /// Makes the records of a text, as a master file has them, the next version of a zone. Returns
    /// a sentence on what came of it.
    pub fn load_text(&self, apex: Name<'_>, text: &str, by: &str) -> Result<String, ZoneError> {
        let managed = self.find_made_here(apex)?;
        let loaded = zone::load_sent(apex, "records", text.as_bytes(), self.shared.key);
        let mistake = loaded.mistakes.first().map(ToString::to_string);
        let Some(zone) = loaded.zone.filter(|_| mistake.is_none()) else {
            let is_error = |finding: &&Finding| finding.problem.level() == Level::Error;
            let finding = loaded.findings.iter().find(is_error);
            let finding = finding.map(|finding| format!("{}: {}", finding.owner, finding.problem));
            return Err(ZoneError::Unfit(mistake.or(finding).unwrap_or_default()));
        };
        self.take(&managed, zone, by)
    }

    /// Changes RRsets of a zone: all of them, or none. They are on disk and served when this
    /// returns. `expect` looks at the version that is changed, and says why it is not the one that
    /// was meant; `by` is who changes it. Returns the serial, and whether it is new.
    pub fn change_rrsets(
        &self,
        apex: Name<'_>,
        changes: &[RrsetChange],
        expect: &dyn Fn(&Zone) -> Result<(), String>,
        by: &str,
    ) -> Result<(u32, bool), ZoneError> {
        let managed = self.find_made_here(apex)?;
        let is_new = managed.change_rrsets(changes, expect, self.shared.key, (by, unix_seconds()))?;
        if is_new {
            self.shared.changed(&managed);
        }
        Ok((managed.serial(), is_new))
    }

    /// Says what a change of RRsets would come to, which [`ZoneManager::change_rrsets`] makes: the
    /// serial, and what would be different; nothing if all of it is so already.
    pub fn check_rrsets(
        &self,
        apex: Name<'_>,
        changes: &[RrsetChange],
        expect: &dyn Fn(&Zone) -> Result<(), String>,
    ) -> Result<(u32, Option<Difference>), ZoneError> {
        let managed = self.find_made_here(apex)?;
        let updated = managed.check_rrsets(changes, expect, self.shared.key, unix_seconds())?;
        Ok(match updated {
            Some(Updated { zone, difference }) => (zone.facts().serial, Some(difference)),
            None => (managed.serial(), None),
        })
    }

    /// Has the secondaries of a zone told of its serial.
    pub fn notify(&self, apex: Name<'_>) -> Result<(), ZoneError> {
        let managed = self.find(apex)?;
        drop(self.shared.orders.send(Order::Notify(managed)));
        Ok(())
    }

    fn take(&self, managed: &Arc<ManagedZone>, zone: Zone, by: &str) -> Result<String, ZoneError> {
        let loaded = managed.loaded();
        let apex = managed.apex.as_name();
        let digest = DigestCheck::new(loaded.plan.zonemd.as_ref(), apex, &*self.shared.trust);
        digest.and_then(|digest| digest.check(&zone)).map_err(|why| {
            ZoneError::Refused(format!("zone \"{}\" is not taken by its digest: {why}", managed.apex))
        })?;
        let is_new = managed.load(zone, self.shared.key, (by, unix_seconds()))?;
        if is_new {
            self.shared.changed(managed);
        }
        let serial = managed.serial();
        info!(zone = %managed.apex, serial, is_new, "loaded by order of the operator");
        Ok(match is_new {
            true => format!("zone \"{}\" has serial {serial}", managed.apex),
            false => format!("zone \"{}\" is like that already, with serial {serial}", managed.apex),
        })
    }

    /// Returns a zone whose records are changed here and nowhere else.
    fn find_made_here(&self, apex: Name<'_>) -> Result<Arc<ManagedZone>, ZoneError> {
        let managed = self.find(apex)?;
        let loaded = managed.loaded();
        let why = if managed.is_secondary() {
            "comes from other servers"
        } else if loaded.plan.catalog_role == Some(CatalogRole::Producer) {
            "is made here"
        } else if loaded.signed.is_file() {
            "is signed as its file says: change that"
        } else {
            return Ok(managed);
        };
        Err(ZoneError::Refused(format!("zone \"{}\" {why}", managed.apex)))
    }

    /// Carries out an update that the server itself makes (RFC 2136): it is on disk when this
    /// returns, and served or on its way to being signed. Blocks.
    ///
    /// # Errors
    ///
    /// The zone is not one that changes here, or it does not take the update.
    pub fn update(&self, apex: Name<'_>, message: &[u8]) -> Result<(), ZoneError> {
        let managed = self.find(apex)?;
        if managed.is_secondary() {
            return Err(ZoneError::Refused(format!("zone \"{}\" comes from other servers", managed.apex)));
        }
        let everything = [Arc::new(Scope::default())];
        let answered = managed.update(message, &everything, self.shared.key, (BY_SERVER, unix_seconds()));
        if answered.is_new {
            self.shared.changed(&managed);
        }
        match (answered.rcode, answered.trouble) {
            (Rcode::NOERROR, _) => Ok(()),
            (_, Some(error)) => Err(ZoneError::NotKept(error)),
            (rcode, None) => Err(ZoneError::Refused(format!(
                "zone \"{}\" does not take the update: {rcode}",
                managed.apex
            ))),
        }
    }

    /// Returns the apex of the zone here that a name is in.
    pub fn closest(&self, name: Name<'_>) -> Option<NameBuf> {
        let mut at = Some(name);
        while let Some(apex) = at {
            if self.role(apex).is_some() {
                return Some(apex.to_buf());
            }
            at = apex.parent();
        }
        None
    }

    fn find(&self, apex: Name<'_>) -> Result<Arc<ManagedZone>, ZoneError> {
        self.shared.managed(apex).ok_or_else(|| match self.shared.is_plain(apex) {
            true => ZoneError::Refused(format!(
                "zone \"{}\" is nothing but a file: it changes when that does",
                apex.to_buf()
            )),
            false => ZoneError::NotFound(Box::new(apex.to_buf())),
        })
    }

    /// Asks the primaries of a zone for a newer version; for the whole zone, whatever its serial,
    /// if `whole`.
    pub fn refresh(&self, apex: Name<'_>, whole: bool) -> Result<(), ZoneError> {
        let managed = self.find(apex)?;
        if !managed.is_secondary() {
            return Err(ZoneError::Refused(format!("zone \"{}\" comes from no other server", managed.apex)));
        }
        if lock(&managed.current).is_frozen {
            return Err(ZoneError::Refused(format!("zone \"{}\" is frozen", managed.apex)));
        }
        if whole {
            managed.wants_whole.store(true, Ordering::Relaxed);
        }
        managed.refresh_now.notify_one();
        Ok(())
    }

    /// Lets a zone change no more, or again.
    pub fn freeze(&self, apex: Name<'_>, is_frozen: bool, by: &str) -> Result<(), ZoneError> {
        let managed = self.find(apex)?;
        {
            let mut current = lock(&managed.current);
            if std::mem::replace(&mut current.is_frozen, is_frozen) != is_frozen {
                current.note_change(by, unix_seconds());
            }
        }
        info!(zone = %managed.apex, is_frozen, "by order of the operator");
        if !is_frozen {
            managed.refresh_now.notify_one();
        }
        Ok(())
    }

    /// Returns what changed since the version in the zone's file, or with the last step.
    pub fn difference(&self, apex: Name<'_>) -> Result<Option<Difference>, ZoneError> {
        let managed = self.find(apex)?;
        // What was signed of it is not what was changed.
        let current = lock(&managed.current).zone.clone();
        if let (Some(file), Some(current)) = (&managed.loaded().zone, current) {
            if Arc::ptr_eq(file, &current) {
                return Ok(None);
            }
            let difference = Difference::between(file, &current, &self.shared.key);
            return Ok(Some(difference));
        }
        let last = lock(&managed.history).last().cloned();
        Ok(last.map(|last| Difference::clone(&last)))
    }

    /// Returns the version of a zone that is changed: without signatures that are made here.
    pub fn unsigned(&self, apex: Name<'_>) -> Option<Arc<Zone>> {
        match self.find(apex) {
            Ok(managed) => lock(&managed.current).zone.clone(),
            Err(_) => self.zone(apex),
        }
    }

    /// Returns the records of a type at a name of a zone; ANY stands for all types.
    pub fn rows(&self, zone: &Zone, owner: Name<'_>, rtype: Rtype) -> Rows {
        zone.rows_at(&self.shared.key, owner, rtype)
    }

    /// Returns the version of a zone that is served, whether it is looked after here or just a file
    /// of a directory.
    pub fn zone(&self, apex: Name<'_>) -> Option<Arc<Zone>> {
        match self.find(apex) {
            Ok(managed) => lock(&managed.served).clone(),
            Err(_) => {
                let live = lock(&self.shared.live)
                    .for_clients
                    .clone()
                    .or_else(|| lock(&self.shared.common).base.clone());
                live.and_then(|zones| zones.get(apex).cloned())
            }
        }
    }
}

impl Drop for ZoneManager {
    fn drop(&mut self) {
        self.stop();
    }
}
