//! Starts a server: the first configuration, the threads, and what looks after them.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use ::zones::LoadedZones;
use authority::own_lists::OwnLists;
use authority::{Authority, Bans, Begun, WrongPair};
use config::Plans;
use control::api;
use diagnostic::Diagnostic;
use dnstap::{Tap, TapWriter};
use engine::{BusyPoll, Clock, SnapshotCell, Transport};
use environment::System;
use events::{Doorbell, EventReader, EventWriter, ring};
use jobs::alias::{Follower, Resolution};
use jobs::anchors::Anchors;
use jobs::health::Checker;
use jobs::signing::Signing;
use listen::Stopper;
use plan::listeners::Connections;
use plan::upstreams::Target;
use settings::LocalSocket;
use settings::{Loaded, Origin};
use tokio::sync::{mpsc, watch};
use tracing::{error, info, warn};

use crate::caches::Dumps;
use crate::certificates::Listeners;
use crate::compile::{Compiled, compile, compile_for_set};
use crate::for_jobs::{Orders, StubResolver};
use crate::log_level::LogLevelHandle;
use crate::operator::{Changing, Facts, Operator, Watched, unix_seconds};
use crate::policy_zones::PolicyZones;
use crate::reload::{Candidate, Cause, Components, Revision, bring_into_use};
use crate::watch::{HeldMemory, RefusalLog};
use crate::watchdog::Watchdog;
use crate::worker::{Upstreams, WorkerHandle};
use crate::zone_keys::ZoneKeys;
use crate::zone_sources::ZoneSources;
use crate::{anchors, polling, progress, reclaim, signing, sys, worker};

/// Octets of each worker's ring of events: some two thousand queries, and the thread that reads
/// them wakes when half of that is full.
const EVENT_OCTETS: usize = 256 << 10;
/// Octets of each ring that a worker copies messages into, once they are wanted: some thousands of
/// messages.
const TAP_OCTETS: usize = 1 << 20;

/// Where zones are kept that change while the server runs, below the folder for state.
const ZONES_FOLDER: &str = "zones";

/// Queries that wait to be explained; operators wait with them.
const EXPLANATIONS_MAX: usize = 4;

/// What is at hand once the sockets are open and privileges are gone.
pub struct Opened {
    /// Where the configuration comes from, for reloads.
    pub origin: Origin,
    /// The configuration, and who decides about changes of it.
    pub begun: Begun,
    /// Changes what is logged.
    pub log_level: LogLevelHandle,
    /// The processors that workers keep to.
    pub cores: Vec<usize>,
    /// How many workers there are to be.
    pub workers: usize,
    /// Where clients are listened to.
    pub sockets: listen::Sockets,
    /// Interfaces that are served past the kernel's network stack.
    pub devices: devices::Opened,
}

/// Why a server does not start.
#[derive(Debug)]
pub enum StartError {
    /// The configuration has mistakes: all of them.
    Invalid(Vec<Diagnostic>),
    /// The machine refuses a thread, with what it was for.
    Thread {
        /// What cannot be started.
        what: &'static str,
        /// What the machine said.
        error: io::Error,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(found) => {
                let lines: Vec<String> = found.iter().map(Diagnostic::line).collect();
                f.write_str(&lines.join("\n"))
            }
            Self::Thread { what, error } => write!(f, "{what} cannot be started: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<Vec<Diagnostic>> for StartError {
    fn from(found: Vec<Diagnostic>) -> Self {
        Self::Invalid(found)
    }
}

/// Returns the error of something that the machine does not start.
fn thread(what: &'static str) -> impl Fn(io::Error) -> StartError {
    move |error| StartError::Thread { what, error }
}

/// A server whose workers answer.
pub struct Server {
    pub(crate) operator: Arc<Operator>,
    pub(crate) threads: Vec<JoinHandle<io::Result<()>>>,
    pub(crate) all_ended: mpsc::Receiver<()>,
    pub(crate) watchdog: Watchdog,
    pub(crate) stopper: Stopper,
    pub(crate) refusals: RefusalLog,
    pub(crate) held: HeldMemory,
    pub(crate) shutdown_timeout: Duration,
    upstreams: Vec<String>,
}

impl Server {
    /// Returns what carries out what its operator wants.
    pub fn operator(&self) -> Arc<Operator> {
        Arc::clone(&self.operator)
    }

    /// Returns one line about the server.
    pub fn summary(&self) -> String {
        self.operator.summary()
    }

    /// Returns the servers that will be asked, without the port that everybody expects.
    pub fn upstreams(&self) -> &[String] {
        &self.upstreams
    }
}

/// Starts the workers, and what works beside them.
///
/// # Errors
///
/// Nothing is left behind that the end of the process does not take away.
pub fn start(opened: Opened) -> Result<Server, StartError> {
    let Opened { origin, begun, log_level, cores, workers, sockets, devices } = opened;
    let Begun { mut loaded, authority, wrong } = begun;
    let (authority, own_lists) = open_for_changes(authority);
    let devices::Opened { devices, queues } = devices;
    let listeners: Vec<listen::Bound> = sockets.addresses().to_vec();
    let addresses: Vec<SocketAddr> = listeners.iter().map(|bound| bound.address).collect();
    let refusals = RefusalLog::new(sockets.refusals());
    let held = HeldMemory::new(sockets.budget());
    let watched = Watched::of(&loaded.settings);
    let zones_folder = loaded.settings.startup.state_directory.join(ZONES_FOLDER);
    let register = ::zones::Register::open(&zones_folder);
    loaded.settings.has_added_zones = !register.is_empty();
    // What workers, transfers and relays know of other servers, they know together.
    let shared = driver::Shared::default();
    let transfers = transfer::Client::new(Arc::clone(&shared.registry));
    let (loaded, compiled, wrong) = first_compiled((loaded, wrong), (&authority, &own_lists), &addresses)?;
    let (candidate, signing) = first_candidate(loaded, compiled, transfers.clone());
    let Revision { loaded, plans, zones, .. } = &candidate.revision;
    loaded.warnings.iter().chain(&plans.warnings).for_each(|warning| warn!("{}", warning.line()));
    let cell = cell(plans)?;
    let checker = Checker::default();
    let orders = Arc::<Orders>::default();
    let (probes, inquiries) = mpsc::channel(anchors::PROBES_MAX);
    let (tables, for_answers) = (Arc::clone(&shared.tables), Arc::clone(&orders));
    let prober = Arc::new(anchors::Prober { probes, tables, orders: for_answers });
    let signer = (Arc::clone(&signing), checker.clone());
    let folder = (zones_folder.as_path(), register);
    let place = Listeners::new(&orders, &prober, transfers.clone());
    let manager = start_zones(&cell, signer, (&prober, &orders), transfers, folder)?;
    let (stopper, stop) = listen::stop();
    let clock = Clock::start(sys::since_boot, SystemTime::now);
    let doorbell = Arc::<Doorbell>::default();
    let (events, readers): (Vec<_>, _) =
        (0..workers).map(|_| ring(EVENT_OCTETS, Arc::clone(&doorbell))).unzip();
    let (taps, tapped) = taps(workers, &listeners);
    let components = Components {
        follower: start_follower(&cell, zones, loaded, clock)?,
        anchors: start_anchors(Arc::clone(&prober))?,
        cell,
        manager,
        tls: place.tls(),
        certificates: place.certificates(),
        dnscrypt: Arc::default(),
        upstreams: watch::Sender::new(Upstreams::first(plans)),
        resolver_tables: Arc::clone(&shared.tables),
        own_lists,
        jobs: start_jobs(&orders, (readers, doorbell), tapped, clock)?,
        orders,
        signing,
        checker,
        dumps: Dumps::read(plans),
        log_level,
        devices,
    };
    let first = bring_into_use(&components, candidate, None)?;
    let first = with_policy_zones(&components, first, &addresses)?;
    let (bans, startup) = (read_bans(&authority, &first), first.loaded.settings.startup.clone());
    let started = Workers {
        clock,
        shared,
        components: &components,
        polling: polling::choose(startup.stay_awake, workers, &cores),
        cores,
        stop,
        probes: inquiries,
    }
    .start(sockets, queues, events.into_iter().zip(taps).collect())?;

    let heartbeats = started.handles.iter().map(|worker_handle| worker_handle.heartbeat.clone()).collect();
    let (shutdown_timeout, asked) = (startup.shutdown_timeout, upstream_names(&first.plans.fetch));
    let facts = Facts {
        origin,
        clock,
        listeners: shown(&listeners, &startup.local_sockets),
        startup,
        worker_handles: started.handles,
        asking: started.asking,
        addresses,
        hosts: ZoneSources::new(prober).hosts(),
    };
    let changes = Changing::new(authority, wrong, &first.loaded);
    let operator = Arc::new(Operator::new(facts, components, (first, watched), (changes, bans)));
    operator.read_store();
    operator.serve_jobs();
    operator.start_signing();
    // What reading the configuration, zones and lists has left.
    sys::give_back_memory();
    Ok(Server {
        operator,
        threads: started.threads,
        all_ended: started.all_ended,
        watchdog: Watchdog::new(heartbeats),
        stopper,
        refusals,
        held,
        shutdown_timeout,
        upstreams: asked,
    })
}

/// Bans who was banned when the server ended: before the first query.
fn read_bans(authority: &Authority, first: &Revision) -> Bans {
    Bans::read(authority, Arc::clone(&first.plans.snapshot.gate.banned_now), unix_seconds())
}

/// Has settings changed from now on, if they can be kept; returns the lists that are kept beside
/// them, too.
fn open_for_changes(authority: Authority) -> (Arc<Authority>, Arc<OwnLists>) {
    if let Err(error) = authority.open() {
        error!(%error, "settings cannot be changed; those that were changed before stay as they are");
    }
    if authority.has_other_audit_key() {
        warn!("the audit log was begun with another key than control.audit.key, and goes on with that one");
    }
    if let Some(file) = authority.first_audit_key() {
        info!(file = %file.display(), "the first key of the audit log: keep it elsewhere, and remove it here");
    }
    let authority = Arc::new(authority);
    let own_lists = OwnLists::read(&authority).unwrap_or_else(|error| {
        error!(%error, "lists that are kept beside the settings cannot be read: sets are without them");
        OwnLists::unread(&authority, &error)
    });
    (authority, Arc::new(own_lists))
}

/// Compiles the configuration. If files and changes do not go together although the files are right
/// alone, what ran last is compiled.
fn first_compiled(
    (loaded, wrong): (Loaded, Option<WrongPair>),
    (authority, own_lists): (&Authority, &OwnLists),
    addresses: &[SocketAddr],
) -> Result<(Loaded, Compiled, Option<WrongPair>), StartError> {
    let compiled = |loaded: &Loaded| compile(loaded, addresses, None, &progress::logged(own_lists));
    let diagnostics = match compiled(&loaded) {
        Ok(compiled) => return Ok((loaded, compiled, wrong)),
        Err(found) => found,
    };
    let without = || {
        let mut files = loaded.without_changes(&System).ok()?;
        files.settings.has_added_zones = loaded.settings.has_added_zones;
        compiled(&files).ok()?;
        let mut good = authority.last_good()?;
        good.settings.has_added_zones = loaded.settings.has_added_zones;
        let compiled = compiled(&good).ok()?;
        Some((files, good, compiled))
    };
    if wrong.is_some() || loaded.layers().is_empty() {
        return Err(diagnostics.into());
    }
    match without() {
        Some((files, good, compiled)) => Ok((good, compiled, Some(WrongPair { files, diagnostics }))),
        None => Err(diagnostics.into()),
    }
}

/// Returns the first configuration, with what was signed of its zones last, and what signs them.
fn first_candidate(
    loaded: Loaded,
    Compiled { plans, zones }: Compiled,
    transfers: transfer::Client,
) -> (Candidate, Arc<Signing>) {
    let signing = Signing::new(
        &loaded.settings.startup.state_directory,
        (plans.snapshot.key, Arc::clone(zones.pool())),
        Arc::new(signing::Messenger(transfers)),
        // Not the least important: signatures must be renewed on a server that is never idle.
        sys::step_back,
    );
    let revision = Revision { number: 1, loaded: Arc::new(loaded), plans, zones };
    let candidate = Candidate::with_last_signed(&signing, revision, Cause::Start);
    (candidate, Arc::new(signing))
}

/// Starts what looks after zones.
fn start_zones(
    cell: &Arc<SnapshotCell>,
    (signing, checker): (Arc<Signing>, Checker),
    (prober, orders): (&Arc<anchors::Prober>, &Arc<Orders>),
    transfers: transfer::Client,
    (folder, register): (&Path, ::zones::Register),
) -> Result<::zones::ZoneManager, StartError> {
    let news = PolicyZones::start(Arc::clone(orders)).map_err(thread("a thread"))?;
    let manager = ::zones::ZoneManager::start(::zones::Dependencies {
        cell: Arc::clone(cell),
        signer: Arc::new(signing::Signatory(signing)),
        watcher: Arc::new(signing::Watch(checker)),
        trust: Arc::new(ZoneKeys(Arc::clone(prober))),
        elsewhere: Arc::new(ZoneSources::new(Arc::clone(prober))),
        news: Arc::new(news),
        key: cell.load().0.key,
        transfers,
        folder,
        register,
    });
    manager.map_err(thread("a thread"))
}

/// Makes sets of the zones from other servers that were kept: before the first query, so that none
/// is answered without them.
fn with_policy_zones(
    components: &Components,
    first: Revision,
    addresses: &[SocketAddr],
) -> Result<Revision, StartError> {
    let mut revision = first;
    let sets: BTreeSet<String> = {
        let zones = revision.plans.policy_zones.iter();
        let kept = zones.filter(|(apex, _)| components.manager.received(apex.as_name()).is_some());
        kept.map(|(_, set)| set.clone()).collect()
    };
    for set in sets {
        let environment = progress::serving(&components.manager, &components.own_lists);
        let compiled =
            compile_for_set(&revision.loaded, addresses, revision.as_previous(), &environment, &set)?;
        let Compiled { plans, zones } = compiled;
        let (number, loaded) = (revision.number, Arc::clone(&revision.loaded));
        let next = Revision { number, loaded, plans, zones };
        let candidate = Candidate { revision: next, cause: Cause::Zones, signing: None, by: None };
        revision = bring_into_use(components, candidate, Some(&revision))?;
    }
    Ok(revision)
}

/// Returns what is told to those who watch the server when an upstream goes down or comes back.
fn upstream_event(news: driver::UpstreamNews) -> api::EventOf {
    let driver::UpstreamNews { server, groups, is_up, why, left_out } = news;
    api::EventOf::Upstream(api::UpstreamEvent { server, groups, is_up, why, left_out })
}

/// Returns what the workers read the first snapshot from, and later ones.
fn cell(plans: &Plans) -> Result<Arc<SnapshotCell>, StartError> {
    let reclaim = reclaim::start().map_err(thread("a thread"))?;
    let reclaim_zones = reclaim::start().map_err(thread("a thread"))?;
    let cell = SnapshotCell::new(Arc::clone(&plans.snapshot), reclaim);
    Ok(Arc::new(cell.reclaiming_zones(reclaim_zones)))
}

/// What all workers are given.
struct Workers<'c> {
    clock: Clock,
    shared: driver::Shared,
    components: &'c Components,
    polling: ::polling::Polling,
    cores: Vec<usize>,
    stop: listen::Stop,
    /// Questions of jobs, for the first.
    probes: mpsc::Receiver<driver::Probe>,
}

/// Workers that run.
struct StartedWorkers {
    threads: Vec<JoinHandle<io::Result<()>>>,
    handles: Vec<WorkerHandle>,
    /// To each of them, for their operator; the first explains queries.
    asking: Vec<mpsc::Sender<worker::Asked>>,
    /// Says that all have ended.
    all_ended: mpsc::Receiver<()>,
}

impl Workers<'_> {
    /// Starts a worker for each share of the sockets.
    fn start(
        self,
        sockets: listen::Sockets,
        mut queues: Vec<Vec<listen::XdpQueue>>,
        rings: Vec<(EventWriter, [TapWriter; 2])>,
    ) -> Result<StartedWorkers, StartError> {
        let (ended, all_ended) = mpsc::channel(1);
        let (mut asking, mut probes) = (Vec::new(), Some(self.probes));
        let feed = Arc::clone(self.components.orders.feed());
        let tell = move |news| feed.tell(upstream_event(news));
        let upstream_log = Arc::new(driver::UpstreamLog::telling(Box::new(tell)));
        let Components { cell, upstreams, tls, dnscrypt, .. } = self.components;
        let (mut threads, mut handles) = (Vec::new(), Vec::new());
        for (index, (sockets, (events, taps))) in sockets.into_workers().into_iter().zip(rings).enumerate() {
            let worker_handle = WorkerHandle {
                board: Arc::new(driver::Board::sharing(&upstream_log)),
                ..WorkerHandle::default()
            };
            handles.push(worker_handle.clone());
            let (ask, asked) = mpsc::channel(EXPLANATIONS_MAX);
            asking.push(ask);
            let parts = worker::Parts {
                index,
                core: self.cores.get(index % self.cores.len().max(1)).copied().unwrap_or(0),
                clock: self.clock,
                cell: Arc::clone(cell),
                upstreams: upstreams.subscribe(),
                shared: self.shared.clone(),
                sockets: sockets.secured_by(tls).sealed_by(dnscrypt),
                queues: queues.get_mut(index).map(std::mem::take).unwrap_or_default(),
                busy_poll: BusyPoll::new(self.polling),
                worker_handle,
                asked,
                // The first worker asks for jobs.
                probes: probes.take().unwrap_or_else(|| mpsc::channel(1).1),
                stop: self.stop.clone(),
                events,
                taps,
            };
            threads.push(worker::start(parts, ended.clone()).map_err(thread("a worker"))?);
        }
        Ok(StartedWorkers { threads, handles, asking, all_ended })
    }
}

/// Makes the rings that workers copy messages into, two for each, and what reads them.
fn taps(workers: usize, listeners: &[listen::Bound]) -> (Vec<[TapWriter; 2]>, jobs::dnstap::Parts) {
    let tap = Arc::<Tap>::default();
    let mut readers = Vec::new();
    let writers = (0..workers).map(|_| {
        [(); 2].map(|()| {
            let (writer, reader) = dnstap::ring(TAP_OCTETS, Arc::clone(&tap));
            readers.push(reader);
            writer
        })
    });
    let writers = writers.collect();
    let listeners = listeners.iter().map(|bound| bound.address).collect();
    (writers, jobs::dnstap::Parts { tap, readers, listeners })
}

fn start_jobs(
    orders: &Arc<Orders>,
    (readers, doorbell): (Vec<EventReader>, Arc<Doorbell>),
    dnstap: jobs::dnstap::Parts,
    clock: Clock,
) -> Result<jobs::Jobs, StartError> {
    let jobs = jobs::Jobs::start(jobs::Parts {
        readers,
        doorbell,
        dnstap,
        clock: jobs::Clock::new(clock),
        server: Arc::clone(orders) as _,
        lookup: Arc::new(StubResolver),
        lower_priority: sys::lower_priority,
    });
    let jobs = jobs.map_err(thread("the jobs"))?;
    orders.feed().send_to(jobs.webhooks().clone());
    Ok(jobs)
}

/// Starts what follows trust anchors.
fn start_anchors(prober: Arc<anchors::Prober>) -> Result<Anchors, StartError> {
    Anchors::start(prober, anchors::wall_clock()).map_err(thread("a thread"))
}

/// Starts what follows the targets of ALIAS records.
fn start_follower(
    cell: &Arc<SnapshotCell>,
    zones: &LoadedZones,
    loaded: &Loaded,
    clock: Clock,
) -> Result<Follower, StartError> {
    let seen = Arc::clone(cell);
    let served = Box::new(move |generation| seen.zones(generation));
    let memory = Arc::clone(zones.aliases());
    let resolution = Resolution { lookup: Arc::new(StubResolver), memory, clock };
    Follower::start(resolution, served, signing::alias_plan(&loaded.settings)).map_err(thread("a thread"))
}

/// Returns the listeners as the operator sees them.
fn shown(listeners: &[listen::Bound], local: &[LocalSocket]) -> Vec<api::Listener> {
    let local = local.iter().map(|socket| {
        let word = socket.plan.kind.connections().map_or(Transport::Unix.word(), Connections::word);
        (socket.plan.path.display().to_string(), word)
    });
    let others = listeners
        .iter()
        .flat_map(|bound| bound.transports.words().map(|word| (bound.address.to_string(), word)));
    local.chain(others).map(|(at, word)| api::Listener { at, transport: word.to_owned() }).collect()
}

/// Returns the servers that will be asked, without the port that everybody expects.
fn upstream_names(plan: &plan::upstreams::Plan) -> Vec<String> {
    let servers = plan.pools.iter().flat_map(|pool| &pool.servers);
    let mut names: Vec<String> = servers
        .map(|server| match &server.target {
            Target::Address(address) if address.port() == 53 => address.ip().to_string(),
            Target::Address(address) => address.to_string(),
            Target::Name { name, .. } => name.to_string(),
        })
        .collect();
    names.dedup();
    names
}
