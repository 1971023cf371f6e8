//! `gannet run`: opens the sockets, starts the threads, and looks after them until the end.
//!
//! The main thread is the control plane: signals, the control socket, systemd. Workers answer queries.

mod caches;
mod descriptors;
mod devices;
mod for_jobs;
mod greeting;
mod operator;
mod polling;
mod reclaim;
mod signals;
mod signing;
mod sockets;
mod state;
mod watchdog;
mod worker;
mod zones;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use config::settings::{LocalSocket, LogFormat};
use config::{Loaded, System};
use control::{Operator, Socket, api};
use engine::events::{Doorbell, ring};
use engine::{BusyPoll, Clock, SnapshotCell, Transport};
use exchange::plan::Target;
use jobs::alias::Follower;
use jobs::health::Checker;
use listen::{RefusalReport, Refusals, Stopper, TlsCell};
use plan::listeners::{Connections, Datagrams};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Interval;
use tracing::{debug, error, info, warn};

use crate::cli::{RunArgs, SocketArgs};
use crate::inspect::Origin;
use crate::privileges::{self, Become};
use crate::sys::Kept;
use crate::{inspect, log, out, progress, remote, sys, systemd};
use operator::{Parts, Running, Watched, Which};
use signals::{Order, Signals};
use watchdog::Watchdog;
use worker::{Upstreams, WorkerHandle};

/// The user whom a server started as root becomes if the configuration names nobody.
const USUAL_USER: &str = "gannet";
/// How long the workers may take beyond the deadline for waiting queries, before we end without them.
const GRACE: Duration = Duration::from_secs(1);
/// Octets of each worker's ring of events: some two thousand queries, and the thread that reads them wakes when half of
/// that is full.
const EVENT_OCTETS: usize = 256 << 10;
/// How long the caches and the like may take to be written at the end, or to wait for a reload that is under way.
const DUMP_TIME_MAX: Duration = Duration::from_secs(30);
/// Octets of addresses that a server needs besides its caches: stacks of threads, buffers, what the allocator sets aside.
const BESIDE_CACHES_OCTETS: u64 = 192 << 20;
/// How often files and dynamic sets are looked after.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether there is something to look after, when there was nothing.
const IDLE_LOOK_EVERY: Duration = Duration::from_secs(5);
/// Octets of replies that waited for clients, from which on the memory is given back when they are gone.
const HELD_OCTETS_MUCH: usize = 2 << 20;
/// How often the log has a line on clients that are refused.
const TELL_OF_REFUSALS_EVERY: Duration = Duration::from_secs(60);
/// How often we look whether a cache is due to be written.
const DUMP_LOOK_EVERY: Duration = Duration::from_secs(10);

/// Where zones are kept that change while the server runs, below the folder for state.
const ZONES_FOLDER: &str = "zones";

/// Queries that wait to be explained; operators wait with them.
const EXPLANATIONS_MAX: usize = 4;

/// Runs the server until somebody ends it.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    match try_run(args) {
        Ok(code) => code,
        Err(reason) => {
            out::complain(&reason);
            out::negative()
        }
    }
}

fn try_run(args: &RunArgs) -> Result<ExitCode, String> {
    let origin = Origin::find(&args.config);
    let loaded = origin.load().map_err(|found| inspect::human(&origin, &found).trim_end().to_owned())?;
    let log_level =
        log::start(log_format(loaded.settings.startup.log_format), log::filter(loaded.settings.log_level));
    abort_on_panic();
    sys::return_large_blocks();

    check_address_space(&loaded, sys::address_space())?;

    // No thread is started before privileges are given up: capabilities belong to threads.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_name("control")
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    let signals = {
        let _inside = runtime.enter();
        Signals::new().map_err(|error| format!("signals cannot be heard: {error}"))?
    };
    let startup = &loaded.settings.startup;
    let cores = sys::allowed_cores();
    let workers = config::workers(startup, &System);
    let mut listening = config::listening(startup);
    let asking = config::upstream_descriptors(&loaded, workers, &System);
    let asking = descriptors::Workers::new(workers, asking);
    if let Some(limit) = privileges::raise_limits(descriptors::wanted(&listening, asking)) {
        descriptors::fit(&mut listening, limit, asking);
    }
    let mut opened = sockets::open(&listening, workers).map_err(|obstacle| obstacle.explain())?;
    let local = sockets::open_local(&startup.local_sockets, &mut opened.sockets)?;
    let metrics = sockets::open_metrics(&startup.metrics)?;
    let devices = devices::open(startup, opened.sockets.addresses(), workers)?;
    devices.devices.ban(&loaded.settings.deny);
    for unused in opened.sockets.unused() {
        warn!(address = %unused.address, "a socket of the service manager is not used: no listener has its address");
    }
    let plan = Become::plan(Some(startup.user.as_deref().unwrap_or(USUAL_USER)));
    let user = plan.map_err(|error| format!("the user to become cannot be looked up: {error}"))?;
    if let (Become::Nobody { wanted }, true) = (&user, startup.user.is_some()) {
        return Err(format!("the user \"{wanted}\" of the setting server.user does not exist"));
    }
    let state = state::prepare(&loaded.settings, &user);
    let socket = control_socket(&args.socket, &startup.state_directory, &user);
    let kept = if config::jobs::touches_packet_filter(&loaded.settings) {
        Kept::PacketFilter
    } else {
        Kept::Nothing
    };
    privileges::give_up(&user, kept)
        .map_err(|error| format!("cannot become the user of the configuration: {error}"))?;
    if let Err(error) = state {
        debug!(folder = %startup.state_directory.display(), %error, "no folder for state");
    }
    start(Started {
        origin,
        loaded,
        log_level,
        runtime,
        signals,
        cores,
        workers,
        opened,
        local,
        metrics,
        devices,
        socket,
    })
}

/// Returns an error if the caches have no room among the addresses that the process may have: the limit, and what of it is left.
///
/// Whoever finds none when it allocates can say nothing any more.
fn check_address_space(loaded: &Loaded, space: Option<(u64, u64)>) -> Result<(), String> {
    let Some((limit, left)) = space else { return Ok(()) };
    let caches: u64 = loaded.settings.caches.iter().map(|cache| cache.size).sum();
    let needed = caches.saturating_add(BESIDE_CACHES_OCTETS);
    if left >= needed {
        return Ok(());
    }
    let mib = |octets: u64| octets.div_ceil(1 << 20);
    Err(format!(
        "too little address space: {} MiB of the {} MiB that the process may have are left, and {} MiB are needed, {} MiB of them \
         for caches\n   hint: raise the limit (ulimit -v, LimitAS=), or lower cache.*.size",
        left >> 20,
        limit >> 20,
        mib(needed),
        mib(caches)
    ))
}

/// Starts the workers and stays until the end.
fn start(started: Started) -> Result<ExitCode, String> {
    let Started {
        origin,
        mut loaded,
        log_level,
        runtime,
        signals,
        cores,
        workers,
        opened,
        local,
        metrics,
        devices,
        socket,
    } = started;
    // Their files go when the server does.
    let _local = local;
    let devices::Opened { devices, mut queues } = devices;
    let listeners: Vec<listen::Bound> = opened.sockets.addresses().to_vec();
    let addresses: Vec<SocketAddr> = listeners.iter().map(|bound| bound.address).collect();
    let (refusals, budget) = (opened.sockets.refusals(), opened.sockets.budget());
    let files = Watched::of(&loaded.settings);
    let zones_folder = loaded.settings.startup.state_directory.join(ZONES_FOLDER);
    let register = ::zones::Register::open(&zones_folder);
    loaded.settings.has_added_zones = !register.is_empty();
    let plans = config::compile(&loaded, &addresses, None, &progress::logged())
        .map_err(|found| inspect::human(&origin, &found).trim_end().to_owned())?;
    let pool = plans.zones.pool().ok_or("no zone can be planned")?;
    let signatory = jobs::signing::Signing::new(
        &loaded.settings.startup.state_directory,
        (plans.snapshot.key, Arc::clone(pool)),
        Arc::new(signing::Messenger),
        // Not the least important: signatures must be renewed on a server that is never idle.
        sys::step_back,
    );
    let plans = signing::with_last(&signatory, &loaded, &addresses, plans)
        .map_err(|found| inspect::human(&origin, &found).trim_end().to_owned())?;
    for warning in loaded.warnings.iter().chain(&plans.warnings) {
        warn!("{}", warning.line());
    }
    let kept = caches::kept(&plans);
    kept.iter().for_each(caches::Kept::read);

    let reclaim = reclaim::start().map_err(|error| format!("a thread cannot be started: {error}"))?;
    let reclaim_zones = reclaim::start().map_err(|error| format!("a thread cannot be started: {error}"))?;
    let cell = SnapshotCell::new(Arc::clone(&plans.snapshot), reclaim).reclaiming_zones(reclaim_zones);
    let cell = Arc::new(cell);
    let signatory = Arc::new(signatory);
    let checker = Checker::default();
    let manager = ::zones::ZoneManager::start(::zones::Dependencies {
        cell: Arc::clone(&cell),
        signer: Arc::new(signing::Signatory(Arc::clone(&signatory))),
        watcher: Arc::new(signing::Watch(checker.clone())),
        key: plans.snapshot.key,
        folder: &zones_folder,
        register,
    });
    let manager = manager.map_err(|error| format!("a thread cannot be started: {error}"))?;
    operator::begin_checks(&checker, &plans);
    manager.adopt(&plans.zones);
    let (adopted, _) = std::sync::mpsc::sync_channel(0);
    let (upstreams, watched) = watch::channel(Upstreams {
        plan: Arc::clone(&plans.fetch),
        relay: Arc::clone(&plans.relay),
        adopted,
    });
    let (stopper, stop) = listen::stop();
    let tls = Arc::new(TlsCell::default());
    tls.adopt(plans.tls.as_ref()).map_err(|error| format!("TLS cannot be spoken: {error}"))?;
    let (ended, all_ended) = mpsc::channel(1);
    let clock = Clock::start(sys::since_boot, SystemTime::now);
    let polling = polling::choose(loaded.settings.startup.stay_awake, workers, &cores);
    let (explaining, explanations) = mpsc::channel(EXPLANATIONS_MAX);
    let mut explanations = Some(explanations);
    let mut threads = Vec::with_capacity(workers);
    let mut worker_handles = Vec::with_capacity(workers);
    let notices = Arc::<driver::Notices>::default();
    let doorbell = Arc::<Doorbell>::default();
    let mut readers = Vec::with_capacity(workers);
    for (index, sockets) in opened.sockets.into_workers().into_iter().enumerate() {
        let queues = queues.get_mut(index).map(std::mem::take).unwrap_or_default();
        let worker_handle =
            WorkerHandle { board: Arc::new(driver::Board::sharing(&notices)), ..WorkerHandle::default() };
        worker_handles.push(worker_handle.clone());
        let core = cores.get(index % cores.len().max(1)).copied().unwrap_or(0);
        let (cell, upstreams, stop) = (Arc::clone(&cell), watched.clone(), stop.clone());
        let (events, reader) = ring(EVENT_OCTETS, Arc::clone(&doorbell));
        readers.push(reader);
        // The first worker explains.
        let explaining = explanations.take().unwrap_or_else(|| mpsc::channel(1).1);
        let parts = worker::Parts {
            index,
            core,
            clock,
            cell,
            upstreams,
            sockets: sockets.secured_by(&tls),
            queues,
            busy_poll: BusyPoll::new(polling),
            worker_handle,
            explaining,
            stop,
            events,
        };
        let thread = worker::start(parts, ended.clone());
        threads.push(thread.map_err(|error| format!("a worker cannot be started: {error}"))?);
    }
    drop(ended);

    let server_link = for_jobs::ServerLink::default();
    let jobs = jobs::Jobs::start(jobs::Parts {
        readers,
        doorbell,
        clock: jobs::Clock::new(clock),
        task_runner: Arc::clone(&server_link.0) as _,
        list_store: Arc::clone(&server_link.0) as _,
        set_learner: Some(Arc::clone(&server_link.0) as _),
        lower_priority: sys::lower_priority,
    });
    let jobs = jobs.map_err(|error| format!("the jobs cannot be started: {error}"))?;
    server_link.0.adopt(&jobs, &plans);
    operator::report_sets(&plans.sets);
    let seen = Arc::clone(&cell);
    let served = Box::new(move |generation| seen.zones(generation));
    let memory =
        plans.zones.aliases.clone().unwrap_or_else(|| Arc::new(zone::Aliases::new(0, plans.snapshot.key)));
    let follower = Follower::start(memory, served, signing::alias_plan(&loaded.settings), clock)
        .map_err(|error| format!("a thread cannot be started: {error}"))?;
    let watchdog =
        Watchdog::new(worker_handles.iter().map(|worker_handle| worker_handle.heartbeat.clone()).collect());
    let here = addresses.clone();
    let shutdown_timeout = loaded.settings.startup.shutdown_timeout;
    let is_built_in = origin == Origin::BuiltIn;
    let asks = upstream_names(&plans.fetch);
    let running = Arc::new(Running::new(Parts {
        origin,
        startup: loaded.settings.startup.clone(),
        clock,
        listeners: shown(&listeners, &loaded.settings.startup.local_sockets),
        worker_handles,
        cell,
        manager,
        tls,
        upstreams,
        log_level,
        explaining,
        addresses,
        plans,
        kept,
        jobs,
        signing: signatory,
        follower,
        checker,
        loaded,
        watched: files,
        devices,
        orders: Arc::clone(&server_link.0),
    }));
    server_link.serves(&running);
    running.start_signing();
    if is_built_in {
        out::print(&greeting::greeting(&here, opened.why_not_53.as_deref(), &asks));
    } else {
        info!("{}", running.summary());
    }
    systemd::ready(&running.summary());
    for listener in &metrics {
        if let Ok(address) = listener.local_addr() {
            info!(%address, "metrics can be fetched");
        }
    }
    let watch = Watch {
        running,
        signals,
        socket,
        metrics,
        all_ended,
        watchdog,
        stopper,
        refusals: RefusalLog { refusals, told: None },
        held: HeldMemory { budget, peak: 0 },
    };
    // What reading the configuration, zones and lists has left.
    sys::give_back_memory();
    let code = runtime.block_on(watch.until_the_end(shutdown_timeout, threads));
    // What still reads a file that never ends keeps nobody.
    runtime.shutdown_background();
    Ok(code)
}

/// What the main thread looks after.
struct Watch {
    running: Arc<Running>,
    signals: Signals,
    socket: Option<Socket>,
    /// Where metrics are fetched, until they are served.
    metrics: Vec<std::net::TcpListener>,
    all_ended: mpsc::Receiver<()>,
    watchdog: Watchdog,
    stopper: Stopper,
    refusals: RefusalLog,
    held: HeldMemory,
}

/// Gives memory back that replies have taken which waited for clients.
struct HeldMemory {
    budget: Arc<listen::Budget>,
    peak: usize,
}

impl HeldMemory {
    /// Returns whether much was held, and most of it no longer is.
    fn is_worth_giving_back(&mut self) -> bool {
        self.peak = self.peak.max(self.budget.take_peak());
        let is_worth = self.peak >= HELD_OCTETS_MUCH && self.budget.held() < self.peak / 4;
        if is_worth {
            self.peak = 0;
        }
        is_worth
    }
}

/// Says now and then which clients are refused.
struct RefusalLog {
    refusals: Arc<Refusals>,
    told: Option<Instant>,
}

impl RefusalLog {
    /// Says it, at most once in [`TELL_OF_REFUSALS_EVERY`].
    fn look(&mut self, now: Instant) {
        if self.told.is_some_and(|told| now < told + TELL_OF_REFUSALS_EVERY) {
            return;
        }
        let Some(RefusalReport { client, refused, others }) = self.refusals.take() else { return };
        self.told = Some(now);
        warn!(
            %client,
            connections = refused.connections,
            handshakes = refused.handshakes,
            of_other_clients = others,
            "a client's connections are refused: it has as many as it may (limits.tcp.connections-per-client, \
             limits.tls.handshakes-per-client)"
        );
    }
}

impl Watch {
    /// Follows orders until the one to end, and sees to a clean end.
    async fn until_the_end(
        mut self,
        patience: Duration,
        threads: Vec<JoinHandle<io::Result<()>>>,
    ) -> ExitCode {
        let is_ordered = self.follow_orders().await;
        info!(patience_s = patience.as_secs_f64(), "ends, after the queries that wait");
        systemd::stopping();
        let deadline = tokio::time::Instant::now() + patience;
        self.stopper.stop(deadline);
        let is_clean = loop {
            tokio::select! {
                _ = self.all_ended.recv() => break true,
                order = self.signals.next() => if order == Order::End {
                    warn!("ends now");
                    return out::negative();
                },
                () = tokio::time::sleep_until(deadline + GRACE) => break false,
            }
        };
        if !is_clean {
            warn!("not every worker ended in time");
        }
        let is_served = is_clean && threads.into_iter().all(|thread| matches!(thread.join(), Ok(Ok(()))));
        let running = Arc::clone(&self.running);
        let dumps = tokio::task::spawn_blocking(move || {
            running.stop_jobs();
            running.manager().stop();
            running.keep_sets();
            running.dump(Which::All)
        });
        tokio::select! {
            _ = dumps => {}
            () = tokio::time::sleep(DUMP_TIME_MAX) => {
                warn!("ends without the rest of what was to be written: something is still under way");
            }
            () = second_end(&mut self.signals) => {
                warn!("ends now; the caches were not written");
                return out::negative();
            }
        }
        drop(self.socket);
        if is_ordered && is_served { out::FINE } else { out::negative() }
    }

    /// Returns whether the end was ordered; otherwise a worker ended by itself.
    async fn follow_orders(&mut self) -> bool {
        let operator: Arc<dyn Operator> = Arc::<Running>::clone(&self.running);
        // Dropped, and its tasks with it, when this function returns.
        let mut readers = JoinSet::new();
        for listener in self.metrics.drain(..) {
            let operator = Arc::clone(&operator);
            readers.spawn(async move {
                if let Err(error) = control::metrics::serve(listener, operator).await {
                    warn!(%error, "no metrics");
                }
            });
        }
        let control = async {
            if let Some(socket) = &self.socket
                && let Err(error) = control::serve(socket, operator, sys::effective_user()).await
            {
                warn!(%error, "no control from the command line");
            }
            std::future::pending::<()>().await;
        };
        tokio::pin!(control);
        let mut dump_looks = watchdog::ticks(DUMP_LOOK_EVERY);
        let mut next_look = tokio::time::Instant::now() + LOOK_EVERY;
        let mut has_settled = false;
        // systemd(1) recommends to be heard twice in its time.
        let mut alive =
            systemd::watchdog().map(|time| watchdog::ticks((time / 2).max(Duration::from_millis(1))));
        // What takes time is done on another thread, in order: the work is behind one lock.
        let spawn = |work: fn(&Running)| {
            let running = Arc::clone(&self.running);
            drop(tokio::task::spawn_blocking(move || work(&running)));
        };
        loop {
            tokio::select! {
                order = self.signals.next() => match order {
                    Order::Reload => spawn(|running| drop(running.reload())),
                    Order::Dump => spawn(|running| drop(running.dump(Which::All))),
                    Order::End => return true,
                },
                () = tokio::time::sleep_until(next_look) => {
                    if !std::mem::replace(&mut has_settled, true) {
                        sys::release_program_pages();
                    }
                    let is_idle = self.running.is_idle();
                    next_look += if is_idle { IDLE_LOOK_EVERY } else { LOOK_EVERY };
                    // After a time without a processor there is one look, not many.
                    next_look = next_look.max(tokio::time::Instant::now());
                    self.refusals.look(Instant::now());
                    if self.held.is_worth_giving_back() {
                        drop(tokio::task::spawn_blocking(sys::give_back_memory));
                    }
                    if is_idle {
                        // Without another thread: nothing in it takes time.
                        self.running.look_at_pace();
                    } else {
                        spawn(Running::look);
                    }
                }
                _ = dump_looks.tick(), if self.running.has_dumps() => {
                    spawn(|running| drop(running.dump(Which::Due)));
                }
                () = tick(alive.as_mut()) => {
                    if self.watchdog.are_all_alive() {
                        systemd::alive();
                    } else {
                        error!("a worker is stuck");
                    }
                }
                _ = self.all_ended.recv() => return false,
                () = &mut control => {}
            }
        }
    }
}

/// Waits for the next tick; for ever without a clock.
async fn tick(clock: Option<&mut Interval>) {
    match clock {
        Some(clock) => drop(clock.tick().await),
        None => std::future::pending().await,
    }
}

async fn second_end(signals: &mut Signals) {
    while signals.next().await != Order::End {}
}

/// Makes a panic anywhere end the process: a server that lost a worker answers some clients and not others.
fn abort_on_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        error!("a defect in gannet ended it; please report the message above");
        std::process::abort();
    }));
}

fn log_format(wanted: LogFormat) -> log::Format {
    match wanted {
        LogFormat::Auto => log::Format::detect(),
        LogFormat::Text => log::Format::text(),
        LogFormat::Json => log::Format::Json,
        LogFormat::Journald => log::Format::Journal,
    }
}

/// Opens the control socket at the first place that has room for it. Without one the server runs all the same.
fn control_socket(args: &SocketArgs, state_folder: &Path, user: &Become) -> Option<Socket> {
    let mut paths = remote::socket_paths(args);
    let is_given = paths.len() == 1;
    let own = state_folder.join("control.sock");
    if !is_given && !paths.contains(&own) {
        paths.push(own);
    }
    let mut refusals = Vec::new();
    for path in &paths {
        match Socket::bind(path, user.owner()) {
            Ok(socket) => return Some(socket),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                refusals.push(format!("{} (another gannet is there)", path.display()));
            }
            Err(error) => refusals.push(format!("{} ({error})", path.display())),
        }
    }
    warn!(
        "no control socket, so \"gannet reload\" and the like cannot reach this server: {}",
        refusals.join(", ")
    );
    None
}

/// Returns the listeners as the operator sees them.
fn shown(listeners: &[listen::Bound], local: &[LocalSocket]) -> Vec<api::Listener> {
    let mut shown = Vec::new();
    for socket in local {
        let at = socket.path.value.display().to_string();
        shown.push(api::Listener { at, transport: Transport::Unix.word().to_owned() });
    }
    for bound in listeners {
        let mut show = |transport: &str| {
            shown.push(api::Listener { at: bound.address.to_string(), transport: transport.to_owned() });
        };
        match bound.transports.datagrams {
            Some(Datagrams::Dns) => show("udp"),
            Some(Datagrams::Quic { doq, h3 }) => {
                if doq {
                    show("quic");
                }
                if h3 {
                    show("h3");
                }
            }
            None => {}
        }
        match bound.transports.connections {
            Some(Connections::Dns) => show("tcp"),
            Some(Connections::Local) => show(Transport::Unix.word()),
            Some(Connections::Tls) => show("tls"),
            Some(Connections::Https) => show("https"),
            Some(Connections::Http) => show("http"),
            None => {}
        }
    }
    shown
}

/// Returns the servers that will be asked, without the port that everybody expects.
fn upstream_names(plan: &exchange::Plan) -> Vec<String> {
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

/// What is at hand once the sockets are open and privileges are gone.
struct Started {
    origin: Origin,
    loaded: Loaded,
    log_level: log::LogLevelHandle,
    runtime: tokio::runtime::Runtime,
    signals: Signals,
    cores: Vec<usize>,
    workers: usize,
    opened: sockets::Opened,
    local: Vec<listen::LocalFile>,
    /// Where metrics are to be fetched.
    metrics: Vec<std::net::TcpListener>,
    devices: devices::Opened,
    socket: Option<Socket>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_address_space_is_told_before_it_is_missed() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let file = place.path().join("gannet.yaml");
        std::fs::write(&file, "cache: {main: {size: 64MiB}, other: {size: 64MiB}}\n").expect("written");
        let loaded = config::load(&file).expect("no mistakes");
        let check = |space| check_address_space(&loaded, space);
        assert_eq!(check(None), Ok(()));
        assert_eq!(check(Some((1 << 30, 400 << 20))), Ok(()));
        let said = check(Some((300 << 20, 250 << 20))).expect_err("it is not enough");
        assert!(
            said.contains("250 MiB of the 300 MiB") && said.contains("128 MiB of them for caches"),
            "{said}"
        );
    }
}
