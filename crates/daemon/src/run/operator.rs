//! What the running server does for its operator.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cache::Flush;
use config::sets::{Dynamic, Sets};
use config::settings::{Settings, Startup};
use config::{Diagnostic, Severity, Surroundings as _, System};
use control::Operator;
use control::api::{self, CacheFlush, Request, Response};
use engine::SnapshotCell;
use engine::explain::Recorder;
use engine::gate::bans::RateBans;
use engine::gate::prefixes::Prefix;
use fetch::status::UpstreamState;
use jobs::Jobs;
use jobs::alias::Follower;
use jobs::health::Checker;
use jobs::signing::Signing;
use keeper::Keeper;
use listen::TlsCell;
use tokio::sync::{mpsc, watch};
use tracing::{error, info, warn};
use wire::{NameBuf, Rtype};
use zone::Zone;

use super::caches::{self, Caches, Kept};
use super::chores::Orders;
use super::devices::{BANNED_SHOWN_MAX, Banned, Devices};
use super::log_level;
use super::signing;
use super::worker::{Explaining, Face, Upstreams};
use super::zones;
use crate::explain::Prepared;
use crate::inspect::Origin;
use crate::{log, progress, sys, systemd};

/// How long the workers may take to adopt new upstreams before the policy that uses them is published anyway.
const ADOPTION_PATIENCE: Duration = Duration::from_secs(2);

/// How long a query that is explained may wait for upstreams.
const EXPLANATION_PATIENCE: Duration = Duration::from_secs(30);

/// Looks, one a second, between two writings of dynamic sets.
const LOOKS_PER_WRITE: u64 = 30;

/// The server while it runs, as its operator sees it.
pub(crate) struct Running {
    origin: Origin,
    /// The settings that only a new start changes, as they were at the start.
    startup: Startup,
    started: Instant,
    /// Where it listens: never asked for answers.
    addresses: Vec<SocketAddr>,
    listeners: Vec<api::Listener>,
    faces: Vec<Face>,
    cell: Arc<SnapshotCell>,
    /// Looks after zones.
    keeper: Keeper,
    /// How listeners speak TLS.
    tls: Arc<TlsCell>,
    upstreams: watch::Sender<Upstreams>,
    knob: log::LevelKnob,
    jobs: Jobs,
    /// Signs zones.
    signing: Arc<Signing>,
    follower: Follower,
    checker: Checker,
    /// To the worker that explains queries.
    explaining: mpsc::Sender<Explaining>,
    /// Held while a reload or a dump is at work.
    work: Mutex<Work>,
    orders: Arc<Orders>,
    /// Interfaces that are served past the kernel's network stack.
    devices: Devices,
    /// Held for a moment only.
    view: Mutex<View>,
    /// Who was banned for being over the rate limit at the last look.
    banned: Mutex<BTreeSet<Prefix>>,
    /// What the files looked like lately.
    seen: Mutex<Seen>,
}

/// The files besides the configuration's own that it is made of: a change of one is a reason to compile it again.
pub(crate) struct Watched {
    files: Vec<PathBuf>,
    /// What they looked like before they were read: what changes meanwhile is read once more.
    before: Vec<Option<u64>>,
}

impl Watched {
    /// Looks at the files of a configuration that is about to be compiled.
    pub(crate) fn of(settings: &Settings) -> Arc<Self> {
        let files = config::watched(settings, &System);
        let before = stamps(&files);
        Arc::new(Self { files, before })
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<u64>> {
    files.iter().map(|file| System.stamp(file).ok()).collect()
}

/// What the files looked like lately.
#[derive(Default)]
struct Seen {
    looks: u64,
    watched: Option<Arc<Watched>>,
    /// At the last look.
    last: Vec<Option<u64>>,
    /// When they were last read.
    read: Vec<Option<u64>>,
}

/// What a reload replaces and a dump reads.
struct Work {
    loaded: config::Loaded,
    plans: config::Plans,
    kept: Vec<Kept>,
}

/// Warnings, settings that need a restart, and the files that were read.
type Reloaded = (Vec<Diagnostic>, Vec<String>, Arc<Watched>);

/// Who is banned, as the configuration in use has it.
#[derive(Clone)]
struct LiveBans {
    /// How many prefixes the configuration itself bans.
    configured: usize,
    /// A set that is changed while the server runs.
    set: Option<Arc<sets::DynamicAddresses>>,
    /// Those who kept on being over the rate limit.
    rate: Option<Arc<RateBans>>,
    /// Who has no rate limit.
    exempt: Arc<[Prefix]>,
}

impl LiveBans {
    fn of(plans: &config::Plans, loaded: &config::Loaded) -> Self {
        let gate = &plans.snapshot.gate;
        let rate = gate.rate.as_ref().and_then(|rule| rule.ban.as_ref()).map(|(_, bans)| Arc::clone(bans));
        Self {
            configured: loaded.settings.deny.len(),
            set: gate.banned_live.clone(),
            rate,
            exempt: loaded.settings.limits.rate.exempt.clone().into(),
        }
    }

    /// Returns who is banned for the rate, and until when.
    fn for_rate(&self, now_ms: u64) -> impl Iterator<Item = (Prefix, u64)> {
        self.rate.iter().flat_map(move |rate| rate.list(now_ms))
    }
}

/// What is shown of the configuration in use.
struct View {
    caches: Caches,
    sets: Sets,
    /// Who is banned while the server runs.
    bans: LiveBans,
    watched: Arc<Watched>,
    generation: u64,
    adopted: Instant,
    is_last_reload_refused: bool,
}

/// What a running server is made of.
pub(crate) struct Parts {
    pub(crate) origin: Origin,
    pub(crate) startup: Startup,
    pub(crate) started: Instant,
    pub(crate) listeners: Vec<api::Listener>,
    pub(crate) faces: Vec<Face>,
    pub(crate) cell: Arc<SnapshotCell>,
    pub(crate) keeper: Keeper,
    pub(crate) tls: Arc<TlsCell>,
    pub(crate) upstreams: watch::Sender<Upstreams>,
    pub(crate) knob: log::LevelKnob,
    pub(crate) explaining: mpsc::Sender<Explaining>,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) plans: config::Plans,
    pub(crate) kept: Vec<Kept>,
    pub(crate) loaded: config::Loaded,
    pub(crate) watched: Arc<Watched>,
    pub(crate) devices: Devices,
    pub(crate) orders: Arc<Orders>,
    pub(crate) jobs: Jobs,
    pub(crate) signing: Arc<Signing>,
    pub(crate) follower: Follower,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic ends the process, so a poisoned lock is never seen.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks what records lead to, as the plans say.
fn begin_checks(checker: &Checker, plans: &config::Plans) {
    if let Err(error) = checker.adopt(&plans.zones.checks.watched) {
        error!(%error, "not everything can be checked: no thread for it");
    }
}

impl Running {
    /// Puts the parts together.
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            origin,
            startup,
            started,
            listeners,
            faces,
            cell,
            keeper,
            tls,
            upstreams,
            knob,
            explaining,
            addresses,
            plans,
            kept,
            jobs,
            signing,
            follower,
            loaded,
            watched,
            devices,
            orders,
        } = parts;
        let view = View {
            caches: caches::by_name(&plans),
            sets: plans.sets.clone(),
            bans: LiveBans::of(&plans, &loaded),
            watched,
            generation: 1,
            adopted: Instant::now(),
            is_last_reload_refused: false,
        };
        let checker = Checker::default();
        begin_checks(&checker, &plans);
        let work = Mutex::new(Work { loaded, plans, kept });
        Self {
            origin,
            startup,
            started,
            addresses,
            listeners,
            faces,
            cell,
            keeper,
            tls,
            upstreams,
            knob,
            jobs,
            signing,
            follower,
            checker,
            explaining,
            orders,
            devices,
            work,
            view: Mutex::new(view),
            banned: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    /// Returns one line about the server, for systemd.
    pub(crate) fn summary(&self) -> String {
        let mut addresses: Vec<&str> = self.listeners.iter().map(|listener| listener.at.as_str()).collect();
        addresses.dedup();
        format!("answers on {}; configuration {}", addresses.join(", "), lock(&self.view).generation)
    }

    /// Reads the configuration again; with mistakes in it, nothing changes.
    pub(crate) fn reload(&self) -> api::Reload {
        let mut work = lock(&self.work);
        systemd::reloading();
        let begin = Instant::now();
        let outcome = self.try_reload(&mut work);
        let mut view = lock(&self.view);
        let reload = match outcome {
            Ok((warnings, needs_restart, watched)) => {
                view.generation += 1;
                view.adopted = Instant::now();
                view.is_last_reload_refused = false;
                view.caches = caches::by_name(&work.plans);
                view.sets = work.plans.sets.clone();
                view.bans = LiveBans::of(&work.plans, &work.loaded);
                view.watched = watched;
                report(&warnings);
                if !needs_restart.is_empty() {
                    warn!(settings = %needs_restart.join(", "), "changed, but read only at the start");
                }
                info!(generation = view.generation, file = %self.origin.name(), "configuration in use");
                let diagnostics = warnings.iter().map(api::Diagnostic::from).collect();
                api::Reload { is_adopted: true, needs_restart, diagnostics, ..api::Reload::default() }
            }
            Err(mistakes) => {
                view.is_last_reload_refused = true;
                report(&mistakes);
                error!(generation = view.generation, "not reloaded; the running configuration stays in use");
                let diagnostics = mistakes.iter().map(api::Diagnostic::from).collect();
                api::Reload { diagnostics, ..api::Reload::default() }
            }
        };
        let reload = api::Reload {
            generation: view.generation,
            took_ms: begin.elapsed().as_millis() as u64,
            ..reload
        };
        drop(view);
        systemd::ready(&self.summary());
        reload
    }

    /// Returns the warnings, the settings that need a restart, and the files, or every mistake.
    fn try_reload(&self, work: &mut Work) -> Result<Reloaded, Vec<Diagnostic>> {
        let previous = &work.plans;
        let (loaded, watched, plans) = apart(|| -> Result<_, Vec<Diagnostic>> {
            let mut loaded = self.origin.load()?;
            loaded.settings.has_added_zones = self.keeper.has_added();
            let watched = Watched::of(&loaded.settings);
            let plans = config::compile(&loaded, &self.addresses, Some(previous), &progress::logged())?;
            Ok((loaded, watched, plans))
        })?;
        let plans = signing::with_last(&self.signing, &loaded, &self.addresses, plans)?;
        self.put(work, plans);
        self.start_signing();
        self.follower.adopt(signing::alias_plan(&loaded.settings));
        self.knob.turn(log_level(loaded.settings.log_level));
        self.devices.ban(&loaded.settings.deny);
        self.devices.check_routes(config::routes(&loaded.settings.startup));
        let needs_restart = config::settings::diff(&self.startup, &loaded.settings.startup);
        let warnings = [loaded.warnings.clone(), work.plans.warnings.clone()].concat();
        work.loaded = loaded;
        Ok((warnings, needs_restart.into_iter().map(|setting| setting.path).collect(), watched))
    }

    /// Brings a configuration into use.
    fn put(&self, work: &mut Work, plans: config::Plans) {
        let mut kept = caches::kept(&plans);
        for kept in &mut kept {
            kept.inherit(&work.kept);
        }
        report_sets(&plans.sets);
        // First the workers know the new upstreams beside the old ones, then the policy that asks the new ones comes
        // into use, then the old ones go: no query meets an upstream that its worker does not know.
        // Before the first query that tells by the new numbers.
        self.orders.adopt(&self.jobs, &plans);
        self.adopt(Arc::new(both(&plans.fetch, &work.plans.fetch)), &plans.relay);
        self.cell.publish(Arc::clone(&plans.snapshot));
        self.keeper.adopt(&plans.zones);
        begin_checks(&self.checker, &plans);
        self.tls.publish(plans.tls.clone());
        self.adopt(Arc::clone(&plans.fetch), &plans.relay);
        work.plans = plans;
        work.kept = kept;
    }

    /// Starts what signs zones, if there is anything to sign.
    pub(crate) fn start_signing(&self) {
        if let Err(error) = self.signing.start(Arc::clone(&self.orders) as _) {
            error!(%error, "zones cannot be signed: no thread for it");
        }
    }

    /// Serves versions of zones that were just signed.
    pub(super) fn serve_signed(&self, zones: Vec<Arc<Zone>>) {
        // Those that change while the server runs are looked after elsewhere.
        let written: Vec<_> =
            zones.into_iter().filter_map(|zone| self.keeper.take_signed(zone).err()).collect();
        if written.is_empty() {
            return;
        }
        let mut work = lock(&self.work);
        let taken = written.into_iter().filter(|zone| work.plans.signing.take(Arc::clone(zone))).count();
        if taken == 0 {
            return;
        }
        let compiled = signing::again(&work.loaded, &self.addresses, &work.plans);
        match compiled {
            Ok(plans) => self.put(&mut work, plans),
            Err(mistakes) => {
                report(&mistakes);
                error!("a signed zone was not taken into use");
            }
        }
    }

    /// Reads the lists of one set again, or every file besides the configuration's own; with mistakes in them, nothing
    /// changes.
    pub(crate) fn refresh(&self, only: Option<&str>) -> Result<api::Reload, String> {
        let mut work = lock(&self.work);
        if let Some(name) = only
            && work.plans.sets.iter().all(|(other, _)| other != name)
        {
            return Err(format!("there is no set \"{name}\""));
        }
        let begin = Instant::now();
        let (loaded, previous) = (&work.loaded, &work.plans);
        let (watched, compiled) = apart(|| {
            let watched = Watched::of(&loaded.settings);
            let progress = progress::logged();
            (watched, config::compile_again(loaded, &self.addresses, Some(previous), &progress, only))
        });
        let is_adopted = compiled.is_ok();
        let found = match compiled {
            Ok(plans) => {
                let warnings = plans.warnings.clone();
                self.put(&mut work, plans);
                warnings
            }
            Err(mistakes) => {
                error!("lists were not taken into use; those in use stay");
                mistakes
            }
        };
        report(&found);
        let mut view = lock(&self.view);
        if is_adopted {
            view.generation += 1;
            view.caches = caches::by_name(&work.plans);
            view.sets = work.plans.sets.clone();
            view.bans = LiveBans::of(&work.plans, &work.loaded);
            if only.is_none() {
                // They may include other files than before.
                view.watched = watched;
            }
        }
        let diagnostics = found.iter().map(api::Diagnostic::from).collect();
        let took_ms = begin.elapsed().as_millis() as u64;
        Ok(api::Reload {
            is_adopted,
            generation: view.generation,
            diagnostics,
            took_ms,
            ..api::Reload::default()
        })
    }

    /// Looks after what changes by itself: what leaves dynamic sets, and files that somebody wrote. Called once a second.
    pub(crate) fn look(&self) {
        self.devices.look();
        let (sets, watched, bans) = {
            let view = lock(&self.view);
            (view.sets.clone(), Arc::clone(&view.watched), view.bans.clone())
        };
        let now = unix_seconds();
        for (_, dynamic) in sets.dynamics() {
            dynamic.sweep(now);
        }
        self.devices.ban_live(self.banned(&bans));
        let stamps = stamps(&watched.files);
        let mut seen = lock(&self.seen);
        seen.looks += 1;
        if seen.looks.is_multiple_of(LOOKS_PER_WRITE) {
            keep(&sets);
        }
        if !seen.watched.as_ref().is_some_and(|known| Arc::ptr_eq(known, &watched)) {
            let read = watched.before.clone();
            *seen = Seen { looks: seen.looks, watched: Some(watched), last: stamps, read };
            return;
        }
        // Not while it is being written: only when two looks see the same.
        let is_settled = stamps == seen.last;
        seen.last = stamps;
        if is_settled && seen.last != seen.read {
            seen.read = seen.last.clone();
            drop(seen);
            info!("a file that the configuration is made of has changed");
            drop(self.refresh(None));
        }
    }

    /// Writes dynamic sets to their files.
    pub(crate) fn keep_sets(&self) {
        keep(&lock(&self.view).sets.clone());
    }

    #[expect(clippy::result_large_err, reason = "a response to a person, once")]
    fn dynamic(&self, name: &str) -> Result<Dynamic, Response> {
        let view = lock(&self.view);
        if let Some(dynamic) = view.sets.dynamic(name) {
            return Ok(dynamic.clone());
        }
        let is_set = view.sets.iter().any(|(other, _)| other == name);
        let why = if is_set { "is not dynamic" } else { "does not exist" };
        Err(Response::error(format!("set \"{name}\" {why}")))
    }

    fn set_list(&self, name: &str) -> Response {
        let dynamic = match self.dynamic(name) {
            Ok(dynamic) => dynamic,
            Err(response) => return response,
        };
        let now = unix_seconds();
        let items = dynamic.list().into_iter().map(|(item, leaves)| api::SetItem {
            item,
            leaves_in_s: leaves.map(|leaves| leaves.saturating_sub(now)),
        });
        Response::SetList(items.collect())
    }

    fn set_change(&self, change: &api::SetChange, adds: bool) -> Response {
        let dynamic = match self.dynamic(&change.name) {
            Ok(dynamic) => dynamic,
            Err(response) => return response,
        };
        let now = unix_seconds();
        let mut changed = 0;
        for item in &change.items {
            let result = if adds {
                dynamic.add(item, now, change.ttl_s).map(|added| added != sets::Added::Renewed)
            } else {
                dynamic.remove(item)
            };
            match result {
                Ok(is_changed) => changed += usize::from(is_changed),
                Err(why) => return Response::error(why),
            }
        }
        Response::SetChanged(api::SetChanged { changed, holds: dynamic.list().len() })
    }

    /// Gives the workers a plan and waits until they have it.
    fn adopt(&self, plan: Arc<fetch::Plan>, relay: &Arc<fetch::RelayPlan>) {
        let (adopted, heard) = sync_channel(self.faces.len());
        self.upstreams.send_replace(Upstreams { plan, relay: Arc::clone(relay), adopted });
        let deadline = Instant::now() + ADOPTION_PATIENCE;
        for _ in &self.faces {
            let left = deadline.saturating_duration_since(Instant::now());
            if heard.recv_timeout(left).is_err() {
                warn!("a worker is slow to adopt the new upstreams");
                return;
            }
        }
    }

    /// Writes the caches that have files; with `Which::Due`, those whose turn it is.
    pub(crate) fn dump(&self, which: Which<'_>) -> Vec<api::Dumped> {
        let mut work = lock(&self.work);
        let due = work.kept.iter_mut().filter(|kept| match which {
            Which::All => true,
            Which::Due => kept.is_due(),
            Which::Named(name) => kept.name() == name,
        });
        due.map(Kept::write).collect()
    }

    /// Returns what looks after zones.
    pub(crate) const fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// Ends the jobs: what was told is still done.
    pub(crate) fn stop_jobs(&self) {
        self.signing.stop();
        self.follower.stop();
        self.checker.stop();
        self.jobs.stop();
    }

    fn zone_add(&self, add: &api::ZoneAdd) -> Response {
        let response = zones::add(&self.keeper, add);
        if !matches!(&response, Response::ZonesChanged(changed) if changed.done > 0) {
            return response;
        }
        let mut work = lock(&self.work);
        if work.plans.zones.served.is_none() {
            // Until now there was nothing that a policy could answer from.
            work.loaded.settings.has_added_zones = true;
            match signing::again(&work.loaded, &self.addresses, &work.plans) {
                Ok(plans) => self.put(&mut work, plans),
                Err(mistakes) => {
                    report(&mistakes);
                    return Response::error("zones were added, and are not answered from before a reload");
                }
            }
        }
        drop(work);
        self.start_signing();
        response
    }

    fn zone(&self, order: &api::ZoneOrder) -> Response {
        if order.what == api::ZoneWhat::Reload {
            // Files that have changed are read again; who has primaries asks them.
            let reload = match self.refresh(None) {
                Ok(reload) => reload,
                Err(why) => return Response::error(why),
            };
            return match zones::refresh_named(&self.keeper, order.name.as_deref()) {
                Ok(()) => Response::Reload(reload),
                Err(why) => Response::error(why),
            };
        }
        let mut response = zones::carry_out(&self.keeper, order);
        if let Response::Zones(zones) = &mut response {
            zones::add_checks(zones, &self.checker.states());
        }
        response
    }

    fn jobs(&self) -> Vec<api::Job> {
        let jobs = self.jobs.schedules().into_iter().map(|state| api::Job {
            name: state.name,
            at: state.at,
            time_zone: state.time_zone,
            tasks: state.tasks,
            next: state.next,
            last: state.last,
            is_running: state.is_running,
            is_failed: matches!(state.outcome, Some(Err(_))),
            outcome: state.outcome.map(|outcome| outcome.unwrap_or_else(|why| why)),
            runs: state.runs,
            skipped: state.skipped,
        });
        jobs.collect()
    }

    fn status(&self) -> api::Status {
        let boards: Vec<fetch::Status> = self.faces.iter().map(|face| face.board.status()).collect();
        let view = lock(&self.view);
        api::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_s: self.started.elapsed().as_secs(),
            workers: self.faces.len(),
            waiting: boards.iter().map(|board| u64::from(board.waiting)).sum(),
            listeners: self.listeners.clone(),
            upstreams: upstreams(&boards),
            configuration: api::Configuration {
                file: self.origin.file().map(|file| file.display().to_string()),
                generation: view.generation,
                age_s: view.adopted.elapsed().as_secs(),
                is_last_reload_refused: view.is_last_reload_refused,
            },
        }
    }

    fn stats(&self) -> api::Stats {
        let mut stats = api::Stats::new();
        for face in &self.faces {
            let mut add = |group: &str, name: &'static str, value| {
                let counters = stats.entry(group.to_owned()).or_default();
                *counters.entry(name.to_owned()).or_default() += value;
            };
            face.engine.read(|name, value| add("engine", name, value));
            face.listen.read(|name, value| add("listen", name, value));
            face.board.counters.read(|name, value| add("fetch", name, value));
        }
        self.devices.read(|group, name, value| {
            stats.entry(group.to_owned()).or_default().insert(name.to_owned(), value);
        });
        self.ban_stats(&mut stats);
        let (made, refused) = self.signing.pool().counts();
        let signatures = [("made".to_owned(), made), ("refused".to_owned(), refused)];
        stats.insert("signatures".to_owned(), signatures.into());
        stats.extend(self.jobs.stats());
        stats
    }

    /// Returns all numbers as Prometheus reads them.
    fn metrics(&self) -> String {
        let descriptions = [
            ("engine", engine::Counters::DESCRIPTIONS),
            ("listen", listen::Counters::DESCRIPTIONS),
            ("fetch", fetch::Counters::DESCRIPTIONS),
        ];
        control::metrics::text(&self.stats(), &self.status(), &self.cache_stats(), &descriptions)
    }

    /// Returns who is banned now, beside those of the configuration, and logs who was not or is no more for being over the
    /// rate limit. Called once a second.
    fn banned(&self, bans: &LiveBans) -> Banned {
        let now_ms = self.started.elapsed().as_millis() as u64;
        let prefixes = |prefix: &Prefix| (prefix.address(), prefix.bits());
        let for_rate: BTreeMap<Prefix, u64> = bans.for_rate(now_ms).collect();
        let mut known = lock(&self.banned);
        for (prefix, end_ms) in for_rate.iter().filter(|(prefix, _)| !known.contains(prefix)) {
            let seconds = end_ms.saturating_sub(now_ms).div_ceil(1000);
            info!(%prefix, seconds, "banned for a time: it kept on being over the rate limit");
        }
        for prefix in known.iter().filter(|prefix| !for_rate.contains_key(prefix)) {
            info!(%prefix, "not banned any more");
        }
        *known = for_rate.keys().copied().collect();
        let from_set = bans.set.iter().flat_map(|set| set.list()).map(|(prefix, _)| prefix);
        // Those without a limit are not banned with their neighbours.
        let exempt = match known.is_empty() {
            true => Vec::new(),
            false => bans.exempt.iter().map(prefixes).collect(),
        };
        Banned { prefixes: from_set.chain(known.iter().map(prefixes)).collect(), exempt }
    }

    /// Tells how many prefixes are banned, what became of bans, and how many seconds are left of those that end.
    fn ban_stats(&self, stats: &mut api::Stats) {
        let bans = lock(&self.view).bans.clone();
        let now_ms = self.started.elapsed().as_millis() as u64;
        let of_set = bans.set.as_ref().map_or(0, |set| set.list().len() as u64);
        let for_rate: BTreeMap<Prefix, u64> = bans.for_rate(now_ms).collect();
        let counts = bans.rate.as_ref().map(|rate| rate.counts()).unwrap_or_default();
        let numbers = [
            ("configured", bans.configured as u64),
            ("set", of_set),
            ("rate", for_rate.len() as u64),
            ("rate-begun", counts.begun),
            ("rate-unplaced", counts.unplaced),
        ];
        stats.insert("bans".to_owned(), numbers.map(|(name, value)| (name.to_owned(), value)).into());
        if !for_rate.is_empty() {
            let left = |end_ms: u64| end_ms.saturating_sub(now_ms).div_ceil(1000);
            let shown = for_rate.iter().take(BANNED_SHOWN_MAX);
            let seconds = shown.map(|(prefix, end_ms)| (prefix.to_string(), left(*end_ms))).collect();
            stats.insert("bans.seconds-left".to_owned(), seconds);
        }
    }

    fn cache_stats(&self) -> BTreeMap<String, api::CacheStats> {
        let caches = lock(&self.view).caches.clone();
        let stats = caches.into_iter().map(|(name, cache)| {
            let stats = cache.stats();
            let stats = api::CacheStats {
                entries: stats.entries,
                octets: stats.octets as u64,
                octets_max: stats.octets_max as u64,
                inserts: stats.inserts,
                evictions: stats.evictions,
            };
            (name, stats)
        });
        stats.collect()
    }

    /// Has a worker take a query, and tells what happened to it.
    fn explain(&self, asked: &api::Explain) -> Result<api::Explained, String> {
        let plans = lock(&self.work).plans.clone();
        let prepared = Prepared::new(asked, plans.listeners())?;
        let recorder = Recorder::default();
        let (reply, heard) = sync_channel(1);
        let (query, client) = (prepared.query.clone(), prepared.client);
        let job = Explaining { query, client, recorder: recorder.share(), reply };
        self.explaining.blocking_send(job).map_err(|_| "the server is ending")?;
        let reply = match heard.recv_timeout(EXPLANATION_PATIENCE) {
            Ok(reply) => Some(reply),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => return Err("the query was not answered in time".to_owned()),
        };
        let trace = recorder.take();
        if !trace.snapshot.as_ref().is_some_and(|snapshot| Arc::ptr_eq(snapshot, &plans.snapshot)) {
            return Err("the configuration was replaced meanwhile; ask again".to_owned());
        }
        Ok(prepared.explained(&plans, &trace, reply.as_deref()))
    }

    fn cache_flush(&self, flush: &CacheFlush) -> Response {
        let mut caches = lock(&self.view).caches.clone();
        if let Some(wanted) = &flush.cache {
            caches.retain(|name, _| name == wanted);
            if caches.is_empty() {
                return Response::error(format!("there is no cache \"{wanted}\""));
            }
        }
        match forget(&caches, &flush.what) {
            Ok(removed) => Response::CacheFlush(api::Flushed { removed }),
            Err(why) => Response::error(why),
        }
    }
}

/// Which caches to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which<'a> {
    /// Every one that has a file.
    All,
    /// Those that the configuration wants written now.
    Due,
    /// This one.
    Named(&'a str),
}

impl Operator for Running {
    fn begin(&self, request: &Request) -> Option<control::Parts> {
        match request {
            Request::Zone(order) if order.what == api::ZoneWhat::Print => {
                Some(zones::print(&self.keeper, order))
            }
            _ => None,
        }
    }

    fn carry_out(&self, request: Request) -> Response {
        match request {
            Request::Reload => Response::Reload(self.reload()),
            Request::Status => Response::Status(self.status()),
            Request::Stats => Response::Stats(self.stats()),
            Request::Metrics => Response::Metrics(self.metrics()),
            Request::CacheFlush(flush) => self.cache_flush(&flush),
            Request::CacheDump => Response::CacheDump(self.dump(Which::All)),
            Request::CacheStats => Response::CacheStats(self.cache_stats()),
            Request::Jobs => Response::Jobs(self.jobs()),
            Request::Zone(order) => self.zone(&order),
            Request::ZoneAdd(add) => self.zone_add(&add),
            Request::ZoneRemove(names) => zones::remove(&self.keeper, &names.zones),
            Request::ZoneLoad(load) => zones::load(&self.keeper, &load),
            Request::SetReload(set) => {
                self.refresh(Some(&set.name)).map_or_else(Response::error, Response::Reload)
            }
            Request::SetList(set) => self.set_list(&set.name),
            Request::SetAdd(change) => self.set_change(&change, true),
            Request::SetRemove(change) => self.set_change(&change, false),
            Request::JobRun(job) => match self.jobs.run_now(&job.name) {
                Ok(()) => Response::Jobs(self.jobs()),
                Err(why) => Response::error(why),
            },
            Request::ZoneKeys(asked) => signing::keys(&self.signing, &asked.zone),
            Request::ZoneDsSeen(seen) => signing::ds_seen(&self.signing, &seen),
            Request::ZoneRoll(roll) => signing::roll(&self.signing, &roll),
            Request::Explain(asked) => self.explain(&asked).map_or_else(Response::error, Response::Explained),
        }
    }
}

/// Does work that may take seconds on a thread that steps back behind those that answer queries.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            sys::step_back();
            work()
        });
        // A panic ends the process before anybody waits for its outcome.
        thread.join().expect("the thread returned")
    })
}

/// Returns the seconds since 1970.
fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Writes dynamic sets to their files.
fn keep(sets: &Sets) {
    for (name, dynamic) in sets.dynamics() {
        if let Err(error) = dynamic.keep() {
            warn!(set = name, %error, "a dynamic set cannot be written");
        }
    }
}

/// Logs the sets that were compiled anew.
pub(super) fn report_sets(sets: &Sets) {
    for (name, set) in sets.fresh() {
        info!(
            set = name,
            rules = set.rules,
            octets = set.octets,
            took_ms = set.took.as_millis() as u64,
            "set in use"
        );
    }
}

/// Logs what the checker found.
fn report(found: &[Diagnostic]) {
    for diagnostic in found {
        match diagnostic.severity {
            Severity::Error => error!("{}", diagnostic.line()),
            Severity::Warning => warn!("{}", diagnostic.line()),
        }
    }
}

/// Returns a plan with the groups of `new` and those of `old` that are gone.
fn both(new: &fetch::Plan, old: &fetch::Plan) -> fetch::Plan {
    let mut both = new.clone();
    both.pools.extend(old.pools.iter().filter(|old| new.pools.iter().all(|new| new.id != old.id)).cloned());
    both
}

/// Forgets in every one of `caches`; an error says what cannot be understood.
fn forget(caches: &Caches, what: &api::Flush) -> Result<u64, String> {
    let name_of = |text: &str| text.parse::<NameBuf>().map_err(|error| format!("\"{text}\": {error}"));
    let flush = |flush: Flush<'_>| caches.values().map(|cache| cache.flush(flush) as u64).sum();
    Ok(match what {
        api::Flush::All => flush(Flush::All),
        api::Flush::Name(name) => flush(Flush::Name(name_of(name)?.as_name())),
        api::Flush::Suffix(name) => flush(Flush::Suffix(name_of(name)?.as_name())),
        api::Flush::Type { name, rtype } => {
            let rtype: Rtype = rtype.parse().map_err(|_| format!("\"{rtype}\" is not a record type"))?;
            flush(Flush::Type(name_of(name)?.as_name(), rtype))
        }
    })
}

/// Adds up what the workers say about each upstream.
fn upstreams(boards: &[fetch::Status]) -> BTreeMap<String, Vec<api::Upstream>> {
    let mut pools: BTreeMap<String, Vec<(api::Upstream, u32)>> = BTreeMap::new();
    for seen in boards.iter().flat_map(|board| &board.upstreams) {
        let server = format!("{}{}", seen.protocol.prefix(), seen.address);
        let pool = pools.entry(seen.pool.clone()).or_default();
        let at = pool.iter().position(|(known, _)| known.server == server).unwrap_or_else(|| {
            pool.push((api::Upstream { server, health: "untried".into(), ..api::Upstream::default() }, 0));
            pool.len() - 1
        });
        let Some((upstream, measured)) = pool.get_mut(at) else { continue };
        let is_down = matches!(seen.state, UpstreamState::Down { .. });
        if is_down && upstream.health == "untried" {
            upstream.health = "down".into();
        } else if !is_down && seen.tally.queries > 0 {
            // Each worker finds out for itself; one that gets answers proves that the server is there.
            upstream.health = "up".into();
        }
        if let Some(srtt_us) = seen.srtt_us {
            *measured += 1;
            let mean = upstream.round_trip_ms.unwrap_or(0.0);
            let sample = srtt_us as f64 / 1000.0;
            upstream.round_trip_ms = Some(mean + (sample - mean) / f64::from(*measured));
        }
        if is_down && upstream.trouble.is_none() {
            upstream.trouble.clone_from(&seen.trouble);
        }
        upstream.queries += seen.tally.queries;
        upstream.failures += seen.tally.timeouts + seen.tally.errors + seen.tally.unusable;
    }
    pools
        .into_iter()
        .map(|(name, upstreams)| (name, upstreams.into_iter().map(|(upstream, _)| upstream).collect()))
        .collect()
}
