//! The thread that looks after all zones that the server signs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use config::signing::{SigningPolicy, ToSign};
use dnssec::rollover::Role;
use tracing::{error, info};
use wire::{HashKey, Name};
use zone::{Pool, Zone};

use super::parent;
use super::zone::{KeyState, RETRY_AFTER, SignedZone};

/// How long the thread sleeps at most: the clock on the wall may be set.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// How long signed zones wait, while there are more to sign, until they are brought into use together.
const PUBLISH_EVERY: Duration = Duration::from_millis(500);

/// Brings signed zones into use.
pub trait Publisher: Send + Sync {
    /// Serves these versions from now on.
    fn publish(&self, zones: Vec<Arc<Zone>>);
}

/// How a zone that is signed stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SigningState {
    /// Its keys.
    pub keys: Vec<KeyState>,
    /// When something is due next, in seconds since 1970.
    pub again_at: u64,
    /// What went wrong at the last turn.
    pub trouble: Option<String>,
}

struct Entry {
    policy: Arc<SigningPolicy>,
    /// `None` as long as no version has come.
    source: Option<Arc<Zone>>,
    /// `None` while the thread has it, or when it could not be opened.
    zone: Option<SignedZone>,
    is_at_work: bool,
    last: Option<Arc<Zone>>,
    state: SigningState,
    /// Whether the configuration does not name it: it stays when that changes.
    is_added: bool,
}

type Entries = BTreeMap<Vec<u8>, Entry>;

struct Shared {
    /// Held for a moment, or while a zone is read from disk: those who wait are operators.
    entries: Mutex<Entries>,
    /// Whether something is new; whether to end.
    news: Mutex<(bool, bool)>,
    wake: Condvar,
    state: PathBuf,
    hash_key: HashKey,
    pool: Arc<Pool>,
    step_back: fn(),
}

/// Signs zones on a thread of its own.
pub struct Signing {
    shared: Arc<Shared>,
    is_started: Mutex<bool>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn is_same(one: Option<&Arc<Zone>>, other: Option<&Arc<Zone>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

fn key_of(apex: Name<'_>) -> Vec<u8> {
    apex.to_folded().as_bytes().to_vec()
}

impl Signing {
    /// Keeps keys and signed zones in the directory `state`, and compiles zones with `hash_key`. Nothing is signed before
    /// [`Signing::start`].
    ///
    /// What is signed while clients wait is remembered in `pool`.
    pub fn new(state: &Path, (hash_key, pool): (HashKey, Pool), step_back: fn()) -> Self {
        let shared = Shared {
            entries: Mutex::default(),
            news: Mutex::default(),
            wake: Condvar::new(),
            state: state.to_owned(),
            hash_key,
            pool: Arc::new(pool),
            step_back,
        };
        Self { shared: Arc::new(shared), is_started: Mutex::new(false) }
    }

    /// Starts the thread, once there is something to sign; later calls do nothing.
    pub fn start(&self, publisher: Arc<dyn Publisher>) -> io::Result<()> {
        let mut is_started = lock(&self.is_started);
        if *is_started || lock(&self.shared.entries).is_empty() {
            return Ok(());
        }
        let inside = Arc::clone(&self.shared);
        let run = move || {
            (inside.step_back)();
            inside.run(&*publisher);
        };
        std::thread::Builder::new().name("signing".into()).spawn(run)?;
        *is_started = true;
        Ok(())
    }

    /// Returns what is remembered of signatures that were made while clients waited.
    pub fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    /// Makes the thread end when it is done with the zone it is at.
    pub fn stop(&self) {
        self.shared.tell(|news| news.1 = true);
    }

    /// Makes these the zones that are signed. Returns for each, in their order, what is served until it is signed again: the
    /// version that was signed last, if there is one.
    pub fn adopt(&self, zones: &[ToSign]) -> Vec<Option<Arc<Zone>>> {
        let mut entries = lock(&self.shared.entries);
        let mut before = std::mem::take(&mut *entries);
        let mut served = Vec::with_capacity(zones.len());
        for zone in zones {
            let key = key_of(zone.apex.as_name());
            let entry = self.entry(zone, before.remove(&key));
            served.push(entry.last.clone());
            entries.insert(key, entry);
        }
        entries.extend(before.into_iter().filter(|(_, entry)| entry.is_added));
        drop(entries);
        self.shared.tell(|news| news.0 = true);
        served
    }

    /// Signs one more zone, which stays when others are adopted. Returns the version that was signed last, if there is one.
    pub fn begin(&self, apex: Name<'_>, policy: &Arc<SigningPolicy>) -> Option<Arc<Zone>> {
        let mut entries = lock(&self.shared.entries);
        let key = key_of(apex);
        let old = entries.remove(&key);
        let zone = ToSign { apex: apex.to_buf(), policy: Arc::clone(policy), source: None };
        let entry = Entry { is_added: true, ..self.entry(&zone, old) };
        let last = entry.last.clone();
        entries.insert(key, entry);
        drop(entries);
        self.shared.tell(|news| news.0 = true);
        last
    }

    /// Does not sign a zone any more that [`Signing::begin`] was called for.
    pub fn end(&self, apex: Name<'_>) {
        let mut entries = lock(&self.shared.entries);
        let key = key_of(apex);
        if entries.get(&key).is_some_and(|entry| entry.is_added) {
            entries.remove(&key);
        }
    }

    /// Returns what is known of a zone that is to be signed; `old` is what was known before.
    fn entry(&self, ToSign { apex, policy, source }: &ToSign, old: Option<Entry>) -> Entry {
        // One that is written counts; versions that came while the server runs stay until there are newer ones.
        let source = source.clone().or_else(|| old.as_ref().and_then(|old| old.source.clone()));
        match old {
            Some(entry) if entry.policy == *policy => {
                let is_same = is_same(entry.source.as_ref(), source.as_ref());
                let again_at = if is_same { entry.state.again_at } else { 0 };
                let state = SigningState { again_at, ..entry.state };
                Entry { source, state, is_added: false, ..entry }
            }
            // The thread has it: it will be opened again when it is done.
            Some(entry) if entry.is_at_work => Entry {
                policy: Arc::clone(policy),
                source,
                state: SigningState { again_at: 0, ..entry.state },
                is_added: false,
                ..entry
            },
            other => {
                let mut entry = Entry {
                    policy: Arc::clone(policy),
                    source,
                    zone: None,
                    is_at_work: false,
                    last: other.and_then(|other| other.last),
                    state: SigningState::default(),
                    is_added: false,
                };
                self.shared.open(apex.as_name(), &mut entry);
                entry
            }
        }
    }

    /// Has this version of a zone signed, which came while the server runs. The publisher hears when it is.
    pub fn give(&self, apex: Name<'_>, source: &Arc<Zone>) {
        if let Some(entry) = lock(&self.shared.entries).get_mut(&key_of(apex)) {
            if is_same(entry.source.as_ref(), Some(source)) {
                return;
            }
            entry.source = Some(Arc::clone(source));
            entry.state.again_at = 0;
        }
        self.shared.tell(|news| news.0 = true);
    }

    /// Returns how a zone stands; `None` if it is not signed here.
    pub fn state(&self, apex: Name<'_>) -> Option<SigningState> {
        lock(&self.shared.entries).get(&key_of(apex)).map(|entry| entry.state.clone())
    }

    /// Takes an operator's word that the parent has the DS of a key, or of all that wait for it.
    pub fn ds_seen(&self, apex: Name<'_>, tag: Option<u16>) -> Result<usize, String> {
        self.change(apex, |zone| zone.ds_seen(tag))
    }

    /// Has a zone's keys of a role replaced now.
    pub fn roll(&self, apex: Name<'_>, role: Role) -> Result<usize, String> {
        self.change(apex, |zone| zone.roll(role))
    }

    fn change(
        &self,
        apex: Name<'_>,
        change: impl FnOnce(&mut SignedZone) -> Result<usize, String>,
    ) -> Result<usize, String> {
        let mut entries = lock(&self.shared.entries);
        let entry = entries.get_mut(&key_of(apex)).ok_or_else(|| format!("{apex} is not signed here"))?;
        if entry.is_at_work {
            return Err(format!("{apex} is being signed; try again in a moment"));
        }
        let zone = entry.zone.as_mut().ok_or_else(|| {
            entry.state.trouble.clone().unwrap_or_else(|| format!("{apex} could not be signed yet"))
        })?;
        let count = change(zone)?;
        entry.state.keys = zone.key_states();
        entry.state.again_at = 0;
        drop(entries);
        self.shared.tell(|news| news.0 = true);
        Ok(count)
    }
}

impl Shared {
    fn tell(&self, change: impl FnOnce(&mut (bool, bool))) {
        change(&mut lock(&self.news));
        self.wake.notify_all();
    }

    /// Reads what there is of a zone on disk.
    fn open(&self, apex: Name<'_>, entry: &mut Entry) {
        let policy = Arc::clone(&entry.policy);
        let memory = (self.hash_key, Arc::clone(&self.pool));
        match SignedZone::open(&self.state, apex, policy, memory, self.step_back) {
            Ok(zone) => {
                entry.last = zone.last(now()).or(entry.last.take());
                entry.state.keys = zone.key_states();
                entry.zone = Some(zone);
            }
            Err(why) => entry.fail(apex, why),
        }
    }

    fn run(&self, publisher: &dyn Publisher) {
        loop {
            let next = self.turn_all(publisher);
            let mut news = lock(&self.news);
            if !news.0 && !news.1 {
                let wait =
                    Duration::from_secs(next.saturating_sub(now())).clamp(Duration::from_secs(1), SLEEP_MAX);
                news = self.wake.wait_timeout(news, wait).unwrap_or_else(PoisonError::into_inner).0;
            }
            if news.1 {
                return;
            }
            news.0 = false;
        }
    }

    /// Does what is due for every zone; returns when something is due next.
    fn turn_all(&self, publisher: &dyn Publisher) -> u64 {
        let due: Vec<Vec<u8>> = {
            let entries = lock(&self.entries);
            let is_due = |entry: &Entry| entry.source.is_some() && entry.state.again_at <= now();
            entries.iter().filter(|(_, entry)| is_due(entry)).map(|(key, _)| key.clone()).collect()
        };
        let mut signed = Vec::new();
        let mut published = Instant::now();
        for key in due {
            if lock(&self.news).1 {
                break;
            }
            if let Ok((apex, _)) = Name::parse(&key) {
                signed.extend(self.turn(apex, &key));
            }
            // Bringing one into use costs nearly as much as bringing all that are there.
            if !signed.is_empty() && published.elapsed() > PUBLISH_EVERY {
                publisher.publish(std::mem::take(&mut signed));
                published = Instant::now();
            }
        }
        if !signed.is_empty() {
            publisher.publish(signed);
        }
        let entries = lock(&self.entries);
        let with_source = entries.values().filter(|entry| entry.source.is_some());
        with_source.map(|entry| entry.state.again_at).min().unwrap_or(u64::MAX)
    }

    /// Does what is due for a zone; returns the new version, if there is one.
    fn turn(&self, apex: Name<'_>, key: &[u8]) -> Option<Arc<Zone>> {
        let (mut zone, source) = {
            let mut entries = lock(&self.entries);
            let entry = entries.get_mut(key)?;
            let source = Arc::clone(entry.source.as_ref()?);
            if entry.zone.is_none() {
                self.open(apex, entry);
            }
            let zone = entry.zone.take()?;
            entry.is_at_work = true;
            (zone, source)
        };
        let outcome = zone.turn(&source, now(), &parent::ask);
        let mut entries = lock(&self.entries);
        // It may have been taken out of the configuration meanwhile, or given another policy.
        let entry = entries.get_mut(key)?;
        entry.is_at_work = false;
        let is_current = is_same(entry.source.as_ref(), Some(&source));
        match outcome {
            Ok(turned) => {
                for what in &turned.told {
                    info!(zone = %apex, "{what}");
                }
                entry.state.keys = zone.key_states();
                entry.state.again_at = if is_current { turned.again_at } else { 0 };
                entry.state.trouble = None;
                if let Some(signed) = &turned.zone {
                    info!(
                        zone = %apex,
                        serial = signed.facts().serial,
                        made = turned.signed.made,
                        kept = turned.signed.kept,
                        "signed"
                    );
                    entry.last = Some(Arc::clone(signed));
                }
                if zone.policy == entry.policy {
                    entry.zone = Some(zone);
                } else {
                    entry.state.again_at = 0;
                }
                turned.zone
            }
            Err(why) => {
                // What is in memory may be ahead of what is on disk: it is read again.
                entry.fail(apex, why);
                None
            }
        }
    }
}

impl Entry {
    fn fail(&mut self, apex: Name<'_>, why: String) {
        if self.state.trouble.as_ref() != Some(&why) {
            error!(zone = %apex, why, "cannot be signed; what was signed last is served");
        }
        self.state.trouble = Some(why);
        self.state.again_at = now() + RETRY_AFTER;
    }
}
