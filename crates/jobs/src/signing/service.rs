//! The thread that looks after all zones that the server signs.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dnssec::rollover::Role;
use plan::signing::{ParentServers, SigningPolicy, ToSign};
use tracing::{error, info, warn};
use wire::{HashKey, Name, NameBuf};
use zone::{Pool, Zone};

use super::token::Tokens;
use super::zone::{INCEPTION_OFFSET, KeyState, Push, PushOutcome, RETRY_AFTER, SignedZone};
use super::{parent, store};

use crate::lock;
use crate::server::Server;

/// How long the thread sleeps at most: the clock on the wall may be set.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// Seconds that a clock may go back when it is disciplined, without being set.
const CLOCK_SLACK: u64 = 60;

/// How long signed zones wait, while there are more to sign, until they are brought into use
/// together.
const PUBLISH_EVERY: Duration = Duration::from_millis(500);

/// Sends DS to the servers of parent zones.
pub trait DsPusher: Send + Sync {
    /// Has one of the servers replace the DS of a zone; returns which one did, or why none does.
    /// May take minutes.
    fn push(&self, push: &Push, servers: &ParentServers) -> PushOutcome;
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
    /// How sending its DS to the parent stands, in words.
    pub push: Option<String>,
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
    /// What came of sending these DS to the parent, as long as the thread has not noted it.
    pushed: Option<(Vec<Vec<u8>>, PushOutcome)>,
}

type Entries = BTreeMap<Vec<u8>, Entry>;

/// What waits for being sent to parents: what of a zone comes later replaces what came before.
#[derive(Default)]
struct Outbox {
    pushes: BTreeMap<Vec<u8>, Push>,
    /// Where to, by the name of the policy.
    servers: BTreeMap<String, ParentServers>,
    has_thread: bool,
    is_over: bool,
}

struct Shared {
    /// Held for a moment, or while a zone is read from disk: those who wait are operators.
    entries: Mutex<Entries>,
    /// Whether something is new; whether to end.
    news: Mutex<(bool, bool)>,
    wake: Condvar,
    ds_pusher: Arc<dyn DsPusher>,
    outbox: Mutex<Outbox>,
    posted: Condvar,
    /// Pushes that a server took, and those that none did.
    pushed: (AtomicU64, AtomicU64),
    state: PathBuf,
    hash_key: HashKey,
    pool: Arc<Pool>,
    tokens: Arc<Tokens>,
    step_back: fn(),
    clock: Clock,
    /// The latest time at which something may have been signed, and the time at the last look.
    latest: Mutex<Latest>,
}

/// Serves versions that were signed.
type Publish<'p> = &'p dyn Fn(Vec<Arc<Zone>>);

/// Tells the seconds since 1970.
type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// What the clock on the wall said.
#[derive(Clone, Copy, Default)]
struct Latest {
    /// The latest time.
    ever: u64,
    /// At the last look.
    now: u64,
}

/// Why the keys of a zone are not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SigningError {
    /// The zone is not signed here.
    NotSigned(Box<NameBuf>),
    /// It is being signed at present.
    AtWork(Box<NameBuf>),
    /// It does not go with how its keys stand, as this sentence says.
    Refused(String),
    /// It would not outlive a restart, and so was not done: why.
    NotKept(String),
}

impl fmt::Display for SigningError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSigned(zone) => write!(f, "{zone} is not signed here"),
            Self::AtWork(zone) => write!(f, "{zone} is being signed; try again in a moment"),
            Self::Refused(why) | Self::NotKept(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for SigningError {}

/// Zones that are to be signed, with what is known of them.
pub struct Prepared {
    zones: Vec<PreparedZone>,
    parents: BTreeMap<String, ParentServers>,
}

struct PreparedZone {
    zone: ToSign,
    /// Of one that was not signed before.
    opened: Option<Entry>,
    last: Option<Arc<Zone>>,
}

impl Prepared {
    /// Returns what is served of the zones until they are signed again: the version that was signed
    /// last, of those that have one.
    pub fn last(&self) -> impl Iterator<Item = &Arc<Zone>> {
        self.zones.iter().filter_map(|zone| zone.last.as_ref())
    }
}

/// Signs zones on a thread of its own.
pub struct Signing {
    shared: Arc<Shared>,
    is_started: Mutex<bool>,
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
    /// Keeps keys and signed zones in the directory `state`, and compiles zones with `hash_key`.
    /// Nothing is signed before [`Signing::start`].
    ///
    /// What is signed while clients wait is remembered in `pool`; `ds_pusher` speaks with the
    /// servers of parents.
    pub fn new(
        state: &Path,
        (hash_key, pool): (HashKey, Arc<Pool>),
        ds_pusher: Arc<dyn DsPusher>,
        step_back: fn(),
    ) -> Self {
        for folder in ["signing", "keys"] {
            store::remove_leftovers(&state.join(folder));
        }
        Self::with_clock(state, (hash_key, pool), ds_pusher, step_back, Box::new(now))
    }

    fn with_clock(
        state: &Path,
        (hash_key, pool): (HashKey, Arc<Pool>),
        ds_pusher: Arc<dyn DsPusher>,
        step_back: fn(),
        clock: Clock,
    ) -> Self {
        let shared = Shared {
            entries: Mutex::default(),
            news: Mutex::default(),
            wake: Condvar::new(),
            ds_pusher,
            outbox: Mutex::default(),
            posted: Condvar::new(),
            pushed: (AtomicU64::new(0), AtomicU64::new(0)),
            state: state.to_owned(),
            hash_key,
            pool,
            tokens: Arc::default(),
            step_back,
            clock,
            latest: Mutex::default(),
        };
        Self { shared: Arc::new(shared), is_started: Mutex::new(false) }
    }

    /// Starts the thread, once there is something to sign, or is to be with `prepared`; later calls
    /// do nothing.
    pub fn start(&self, prepared: Option<&Prepared>, server: Arc<dyn Server>) -> io::Result<()> {
        let mut is_started = lock(&self.is_started);
        let has_new = prepared.is_some_and(|prepared| !prepared.zones.is_empty());
        if *is_started || !has_new && lock(&self.shared.entries).is_empty() {
            return Ok(());
        }
        let inside = Arc::clone(&self.shared);
        let run = move || {
            (inside.step_back)();
            inside.run(&|zones| server.serve_signed(zones));
        };
        std::thread::Builder::new().name("signing".into()).spawn(run)?;
        *is_started = true;
        Ok(())
    }

    /// Returns what is remembered of signatures that were made while clients waited.
    pub fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    /// Returns how many times a parent's server took DS, and how many times none did.
    pub fn pushed(&self) -> (u64, u64) {
        let (taken, refused) = &self.shared.pushed;
        (taken.load(Ordering::Relaxed), refused.load(Ordering::Relaxed))
    }

    /// Makes the threads end when they are done with the zones they are at.
    pub fn stop(&self) {
        self.shared.tell(|news| news.1 = true);
        lock(&self.shared.outbox).is_over = true;
        self.shared.posted.notify_all();
    }

    /// Reads what there is on disk of zones that are new; what is signed stays as it is until
    /// [`Signing::adopt`]. `parents` are the servers that are sent DS, by the name of the policy.
    pub fn prepare(&self, zones: &[ToSign], parents: &BTreeMap<String, ParentServers>) -> Prepared {
        let entries = lock(&self.shared.entries);
        let zones = zones.iter().map(|zone| {
            let known = entries.get(&key_of(zone.apex.as_name()));
            // Of one that is known, the thread may write meanwhile: it is read again when it is
            // adopted, if need be.
            let opened = known.is_none().then(|| self.entry(zone, None));
            let last = known.or(opened.as_ref()).and_then(|entry| entry.last.clone());
            PreparedZone { zone: zone.clone(), opened, last }
        });
        Prepared { zones: zones.collect(), parents: parents.clone() }
    }

    /// Makes these the zones that are signed.
    pub fn adopt(&self, prepared: Prepared) {
        let Prepared { zones, parents } = prepared;
        lock(&self.shared.outbox).servers = parents;
        let mut entries = lock(&self.shared.entries);
        let mut before = std::mem::take(&mut *entries);
        for PreparedZone { zone, opened, .. } in zones {
            let key = key_of(zone.apex.as_name());
            let old = before.remove(&key);
            let entry = match (old, opened) {
                (None, Some(opened)) => opened,
                (old, _) => self.entry(&zone, old),
            };
            entries.insert(key, entry);
        }
        entries.extend(before.into_iter().filter(|(_, entry)| entry.is_added));
        drop(entries);
        self.shared.tell(|news| news.0 = true);
    }

    /// Signs one more zone, which stays when others are adopted. Returns the version that was
    /// signed last, if there is one.
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
        // One that is written counts; versions that came while the server runs stay until there are
        // newer ones.
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
                    pushed: None,
                };
                self.shared.open(apex.as_name(), &mut entry);
                entry
            }
        }
    }

    /// Has this version of a zone signed, which came while the server runs. The signer notifies the
    /// server when it is.
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
    pub fn ds_seen(&self, apex: Name<'_>, tag: Option<u16>) -> Result<usize, SigningError> {
        self.change(apex, |zone| zone.ds_seen(tag))
    }

    /// Has a zone's keys of a role replaced now.
    pub fn roll(&self, apex: Name<'_>, role: Role) -> Result<usize, SigningError> {
        self.change(apex, |zone| zone.roll(role))
    }

    fn change(
        &self,
        apex: Name<'_>,
        change: impl FnOnce(&mut SignedZone) -> Result<usize, SigningError>,
    ) -> Result<usize, SigningError> {
        let mut entries = lock(&self.shared.entries);
        let entry =
            entries.get_mut(&key_of(apex)).ok_or_else(|| SigningError::NotSigned(Box::new(apex.to_buf())))?;
        if entry.is_at_work {
            return Err(SigningError::AtWork(Box::new(apex.to_buf())));
        }
        let zone = entry.zone.as_mut().ok_or_else(|| {
            let trouble = entry.state.trouble.clone();
            SigningError::Refused(trouble.unwrap_or_else(|| format!("{apex} could not be signed yet")))
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
        match SignedZone::open(&self.state, apex, policy, memory, &self.tokens, self.step_back) {
            Ok(zone) => {
                entry.last = zone.last(self.now()).or(entry.last.take());
                entry.state.keys = zone.key_states();
                entry.state.push = zone.push_state();
                entry.zone = Some(zone);
            }
            Err(why) => entry.fail(apex, why, self.now()),
        }
    }

    fn run(self: &Arc<Self>, publish: Publish<'_>) {
        loop {
            let next = self.turn_all(publish);
            let mut news = lock(&self.news);
            if !news.0 && !news.1 {
                let wait = Duration::from_secs(next.saturating_sub(self.now()))
                    .clamp(Duration::from_secs(1), SLEEP_MAX);
                news = self.wake.wait_timeout(news, wait).unwrap_or_else(PoisonError::into_inner).0;
            }
            if news.1 {
                return;
            }
            news.0 = false;
        }
    }

    fn now(&self) -> u64 {
        (self.clock)()
    }

    /// Has all zones looked at when the clock was set back: what was due at some time is not due
    /// then, and signatures that were made meanwhile may not be valid yet.
    fn look_at_clock(&self) {
        let now = self.now();
        let mut latest = lock(&self.latest);
        let is_set_back = now + CLOCK_SLACK < latest.now;
        let is_early = now + INCEPTION_OFFSET < latest.ever;
        latest.now = now;
        let by = latest.ever.saturating_sub(now);
        latest.ever = if is_early { now } else { latest.ever.max(now) };
        drop(latest);
        if is_early {
            warn!(seconds = by, "the clock was set back: signatures that are not valid yet are made anew");
        }
        if is_set_back || is_early {
            for entry in lock(&self.entries).values_mut() {
                entry.state.again_at = 0;
            }
        }
    }

    /// Does what is due for every zone; returns when something is due next.
    fn turn_all(self: &Arc<Self>, publish: Publish<'_>) -> u64 {
        self.look_at_clock();
        let now = self.now();
        let due: Vec<Vec<u8>> = {
            let entries = lock(&self.entries);
            let is_due = |entry: &Entry| entry.source.is_some() && entry.state.again_at <= now;
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
                publish(std::mem::take(&mut signed));
                published = Instant::now();
            }
        }
        if !signed.is_empty() {
            publish(signed);
        }
        let entries = lock(&self.entries);
        let with_source = entries.values().filter(|entry| entry.source.is_some());
        with_source.map(|entry| entry.state.again_at).min().unwrap_or(u64::MAX)
    }

    /// Does what is due for a zone; returns the new version, if there is one.
    fn turn(self: &Arc<Self>, apex: Name<'_>, key: &[u8]) -> Option<Arc<Zone>> {
        let (mut zone, source, pushed) = {
            let mut entries = lock(&self.entries);
            let entry = entries.get_mut(key)?;
            let source = Arc::clone(entry.source.as_ref()?);
            if entry.zone.is_none() {
                self.open(apex, entry);
            }
            let zone = entry.zone.take()?;
            entry.is_at_work = true;
            (zone, source, entry.pushed.take())
        };
        let now = self.now();
        let noted = pushed.map_or(Ok(()), |(ds, outcome)| zone.note_push(ds, &outcome, now));
        let outcome = noted.and_then(|()| zone.turn(&source, now, &parent::ask));
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
                entry.state.push = zone.push_state();
                // What came of a push meanwhile is noted at once.
                let is_done = is_current && entry.pushed.is_none();
                entry.state.again_at = if is_done { turned.again_at } else { 0 };
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
                drop(entries);
                if let Some(push) = turned.push {
                    self.post(key, push);
                }
                turned.zone
            }
            Err(why) => {
                // What is in memory may be ahead of what is on disk: it is read again.
                entry.fail(apex, why, self.now());
                None
            }
        }
    }
}

impl Shared {
    /// Has DS sent to the parent of a zone, on a thread of its own: a parent that is gone holds up
    /// no signature.
    fn post(self: &Arc<Self>, key: &[u8], push: Push) {
        let mut outbox = lock(&self.outbox);
        outbox.pushes.insert(key.to_vec(), push);
        self.posted.notify_one();
        if outbox.has_thread {
            return;
        }
        let inside = Arc::clone(self);
        let run = move || {
            (inside.step_back)();
            inside.deliver();
        };
        match std::thread::Builder::new().name("ds-push".into()).spawn(run) {
            Ok(_) => outbox.has_thread = true,
            Err(error) => {
                // Nobody would ever take it out; like any that was not sent, it is due again after
                // a while.
                let push = outbox.pushes.remove(key);
                drop(outbox);
                if let Some(push) = push {
                    self.hear(key, push, Err(format!("a thread cannot be started: {error}")));
                }
            }
        }
    }

    /// Sends what waits, until the end.
    fn deliver(&self) {
        loop {
            let mut outbox = lock(&self.outbox);
            let (key, push) = loop {
                if outbox.is_over {
                    return;
                }
                match outbox.pushes.pop_first() {
                    Some(next) => break next,
                    None => outbox = self.posted.wait(outbox).unwrap_or_else(PoisonError::into_inner),
                }
            };
            let servers = outbox.servers.get(&push.policy).map(Arc::clone).unwrap_or_default();
            drop(outbox);
            let outcome = self.ds_pusher.push(&push, &servers);
            self.hear(&key, push, outcome);
        }
    }

    /// Has the thread that signs note what came of sending DS.
    fn hear(&self, key: &[u8], push: Push, outcome: PushOutcome) {
        let (taken, refused) = &self.pushed;
        match &outcome {
            Ok(server) => {
                taken.fetch_add(1, Ordering::Relaxed);
                info!(zone = %push.apex, server, records = push.ds.len(), "the parent's server took the DS");
            }
            Err(why) => {
                refused.fetch_add(1, Ordering::Relaxed);
                warn!(zone = %push.apex, why, "no server of the parent takes the DS; it is tried again");
            }
        }
        if let Some(entry) = lock(&self.entries).get_mut(key) {
            entry.pushed = Some((push.ds, outcome));
            entry.state.again_at = 0;
        }
        self.tell(|news| news.0 = true);
    }
}

impl Entry {
    fn fail(&mut self, apex: Name<'_>, why: String, now: u64) {
        if self.state.trouble.as_ref() != Some(&why) {
            error!(zone = %apex, why, "cannot be signed; what was signed last is served");
        }
        self.state.trouble = Some(why);
        self.state.again_at = now + RETRY_AFTER;
    }
}

#[cfg(test)]
mod tests {
    use super::super::zone::tests::{apex, policy, source};
    use super::*;
    use dnssec::Rrsig;
    use wire::Rtype;

    struct Nobody;

    impl DsPusher for Nobody {
        fn push(&self, _: &Push, _: &ParentServers) -> PushOutcome {
            Err("nobody is there".to_owned())
        }
    }

    /// Takes what is signed.
    #[derive(Default)]
    struct Taken(Mutex<Vec<Arc<Zone>>>);

    impl Taken {
        fn publish(&self, zones: Vec<Arc<Zone>>) {
            lock(&self.0).extend(zones);
        }
    }

    /// Returns when the last of a zone's signatures begins.
    fn inception(zone: &Zone) -> u64 {
        let mut last = 0;
        zone.for_each_record(|_, rtype, _, rdata| {
            if rtype == Rtype::RRSIG {
                last = last.max(Rrsig::parse(rdata).map_or(0, |rrsig| u64::from(rrsig.inception)));
            }
        });
        last
    }

    #[test]
    fn what_is_prepared_is_not_signed_before_it_is_adopted() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let key = HashKey::new([1, 2]);
        let memory = (key, Arc::new(Pool::new(1 << 20, 1000, key)));
        let clock = Box::new(|| 1_795_000_000);
        let signing = Signing::with_clock(directory.path(), memory, Arc::new(Nobody), || {}, clock);
        let zone = "@ 60 SOA ns.example.net. admin 7 7200 600 86400 300\n@ 60 NS ns.example.net.\n";
        let policy = Arc::new(SigningPolicy { parent: Vec::new(), ..policy() });
        let nobody = BTreeMap::new();
        let zones = [ToSign { apex: apex(), policy, source: Some(Arc::new(source(zone))) }];
        let taken = Taken::default();
        drop(signing.prepare(&zones, &nobody));
        signing.shared.turn_all(&|zones| taken.publish(zones));
        assert!(lock(&taken.0).is_empty() && signing.state(apex().as_name()).is_none());
        signing.adopt(signing.prepare(&zones, &nobody));
        signing.shared.turn_all(&|zones| taken.publish(zones));
        assert_eq!(lock(&taken.0).len(), 1);
        // What was signed last is known when the same is prepared again, and nothing is left when
        // nothing is to be signed.
        assert_eq!(signing.prepare(&zones, &nobody).last().count(), 1);
        drop(signing.prepare(&[], &nobody));
        assert!(signing.state(apex().as_name()).is_some());
        signing.adopt(signing.prepare(&[], &nobody));
        assert!(signing.state(apex().as_name()).is_none());
    }

    #[test]
    fn signatures_are_made_anew_when_the_clock_was_set_back() {
        const BEGIN: u64 = 1_795_000_000;
        let directory = tempfile::TempDir::new().expect("a directory");
        let time = Arc::new(AtomicU64::new(BEGIN));
        let told = Arc::clone(&time);
        let clock = Box::new(move || told.load(Ordering::Relaxed));
        let key = HashKey::new([1, 2]);
        let memory = (key, Arc::new(Pool::new(1 << 20, 1000, key)));
        let signing = Signing::with_clock(directory.path(), memory, Arc::new(Nobody), || {}, clock);
        let policy = Arc::new(SigningPolicy { parent: Vec::new(), ..policy() });
        signing.begin(apex().as_name(), &policy);
        let zone = "@ 60 SOA ns.example.net. admin 7 7200 600 86400 300\n@ 60 NS ns.example.net.\n";
        signing.give(apex().as_name(), &Arc::new(source(zone)));
        let taken = Taken::default();
        let turn = |at: u64| {
            time.store(at, Ordering::Relaxed);
            signing.shared.turn_all(&|zones| taken.publish(zones));
            let all = std::mem::take(&mut *lock(&taken.0));
            all.last().map(|zone| inception(zone))
        };
        assert_eq!(turn(BEGIN), Some(BEGIN - INCEPTION_OFFSET));
        // A little, and so far that everything is valid still.
        assert_eq!(turn(BEGIN - 30), None);
        assert_eq!(turn(BEGIN - INCEPTION_OFFSET + 60), None);
        // Two days: nothing is valid any more.
        let back = BEGIN - 2 * 86_400;
        assert_eq!(turn(back), Some(back - INCEPTION_OFFSET));
        assert_eq!(turn(back + 1), None);
        // In several steps, each of which leaves everything valid.
        assert_eq!(turn(back - 3600), None);
        assert_eq!(turn(back - 7200), Some(back - 7200 - INCEPTION_OFFSET));
    }
}
