//! `gannet run`: opens the sockets, starts the threads, and looks after them until the end.
//!
//! The main thread is the control plane: signals, the control socket, systemd. Workers answer
//! queries.

mod background;
mod descriptors;
mod greeting;
mod signals;
mod sockets;
mod state;
mod unbound;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use authority::{Authority, Begun};
use commands::cli::{RunArgs, SocketArgs, UnboundArgs};
use commands::{configuration, out, remote};
use control::Socket;
use environment::System;
use plan::listeners::{ListenerPlan, Plan};
use server::{End, Operator, Order, Role, Server, Serving, SocketUsers, StartError};
use settings::{Loaded, Log, LogPlace, Origin, Startup};
use tokio::sync::mpsc;
use tracing::level_filters::LevelFilter;
use tracing::{debug, error, info, warn};
use unbound_control::{Channel, Hooks, Service, programs};

use crate::log::{self, Output};
use crate::privileges::{self, Become};
use crate::sys::{self, Kept};
use background::Starter;
use signals::Signals;

/// Signals that wait until the one before was heard.
const SIGNALS_MAX: usize = 8;
/// The user whom a server started as root becomes if the configuration names nobody.
pub(crate) const USUAL_USER: &str = "gannet";
/// Octets of addresses that a server needs besides its caches: stacks of threads, buffers, what the
/// allocator sets aside.
const BESIDE_CACHES_OCTETS: u64 = 192 << 20;

/// Runs the server until somebody ends it.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    told(try_run(configuration::find(&args.config), &args.socket, None))
}

/// Runs the server in the place of Unbound, or a program that comes with Unbound.
pub(crate) fn unbound(args: &UnboundArgs) -> ExitCode {
    if let Some((program, arguments)) = args.program.split_first() {
        let name = program.to_string_lossy();
        return programs::run(&name, arguments.iter().cloned(), start_for_us).unwrap_or_else(|| {
            let known: Vec<String> = programs::names().collect();
            out::complain(&format!("there is no program \"{name}\": expected one of {}", known.join(", ")));
            out::negative()
        });
    }
    if args.version {
        out::print(&unbound::version());
        return out::FINE;
    }
    if args.usage {
        out::print(&unbound::usage());
        return out::negative();
    }
    told(try_run(Origin::Unbound(args.config.clone()), &SocketArgs { socket: None }, Some(args)))
}

/// Starts a server that finds answers for this process, for as long as it lives. What it listens on
/// is nobody's business.
fn start_for_us(loaded: Loaded) -> Result<Arc<Operator>, String> {
    let output = Arc::<Output>::default();
    let log_level = log::start(log::Format::of(&loaded.settings.startup.log), LevelFilter::ERROR, &output);
    let nowhere = ListenerPlan::new((Ipv4Addr::LOCALHOST, 0).into());
    let plan = Plan { listeners: vec![nowhere], ..config::listening(&loaded.settings.startup).plan };
    let sockets = listen::bind(&plan, 1, Vec::new())
        .map_err(|error| format!("cannot listen on loopback: {}", error.source))?;
    let devices = devices::Opened::default();
    let cores = server::sys::allowed_cores();
    let begun = Begun { loaded, authority: Authority::of_nobody(), wrong: None };
    let opened =
        server::Opened { origin: Origin::BuiltIn, begun, log_level, cores, workers: 1, sockets, devices };
    let server = server::start(opened).map_err(|error| error.to_string())?;
    let operator = server.operator();
    // It ends with the process, and not before.
    std::mem::forget(server);
    Ok(operator)
}

fn told(result: Result<ExitCode, String>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(reason) => {
            out::complain(&reason);
            out::negative()
        }
    }
}

/// Reads the configuration, and looks up the network devices in it.
fn begin(origin: &Origin) -> Result<Begun, String> {
    authority::begin(origin)
        .and_then(|mut begun| devices::interfaces::look_up(&mut begun.loaded).map(|()| begun))
        .map_err(|found| configuration::human(origin, &found).trim_end().to_owned())
}

/// Goes into the background if that is wanted; returns who waits for the start then, and where the
/// log goes.
fn leave_foreground(
    theirs: Option<&UnboundArgs>,
    startup: &Startup,
) -> Result<(Option<Starter>, Log), String> {
    let mut log_settings = unbound::log(theirs, &startup.log);
    if !unbound::detaches(theirs, startup.daemonize) {
        return Ok((None, log_settings));
    }
    let starter = background::detach().map_err(|error| in_background(&error))?;
    // Nobody reads standard error: the system's log is the usual place then, as there.
    if log_settings.place == LogPlace::Stderr {
        log_settings.place = LogPlace::Syslog;
    }
    Ok((Some(starter), log_settings))
}

/// Lets the process that was started first go, if this one is in the background.
fn let_go(starter: Option<Starter>, output: &Output) -> Result<(), String> {
    let Some(starter) = starter else { return Ok(()) };
    if output.is_stderr() {
        warn!(
            "there is no /dev/log, and nobody reads standard error from here on: the log is lost (setting log.to)"
        );
    }
    starter.let_go().map_err(|error| in_background(&error))
}

fn in_background(error: &io::Error) -> String {
    format!("cannot go into the background: {error}")
}

/// Opens the channel of `unbound-control`; its Unix sockets belong to `owner`.
fn open_channel(startup: &Startup, owner: Option<(u32, u32)>) -> Result<Channel, String> {
    let channel = devices::interfaces::channel(&startup.unbound_channel)
        .map_err(|why| format!("{why} (setting control.unbound.listen)"))?;
    Channel::open(&channel, owner).map_err(|error| error.to_string())
}

fn try_run(origin: Origin, socket: &SocketArgs, theirs: Option<&UnboundArgs>) -> Result<ExitCode, String> {
    let begun = begin(&origin)?;
    let loaded = &begun.loaded;
    unbound::check_anchors(&origin, &loaded.settings)?;
    let (starter, log_settings) = leave_foreground(theirs, &loaded.settings.startup)?;
    let output = Arc::new(Output::open(&log_settings)?);
    let level = server::filter(unbound::log_level(theirs, loaded.settings.log_level));
    let log_level = log::start(log::Format::of(&log_settings), level, &output);
    abort_on_panic();
    server::sys::return_large_blocks();

    check_address_space(loaded, sys::address_space())?;

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
    let cores = server::sys::allowed_cores();
    let workers = config::workers(startup, &System);
    let mut listening = config::listening(startup);
    let asking = config::upstream_descriptors(loaded, workers, &System);
    let api_at = sockets::api_addresses(&origin, &startup.control);
    let operators = if api_at.is_empty() { 0 } else { api::CONNECTIONS_MAX };
    let asking = descriptors::Workers::new(workers, asking).beside(operators);
    if let Some(limit) = privileges::raise_limits(descriptors::wanted(&listening, asking)) {
        descriptors::fit(&mut listening, limit, asking);
    }
    let mut opened = sockets::open(&listening, workers).map_err(|obstacle| obstacle.explain())?;
    let local = sockets::open_local(&startup.local_sockets, &mut opened.sockets)?;
    let metrics = sockets::open_for_operators(&startup.metrics, ("metrics", "metrics.listen"))?;
    let api = sockets::open_for_api(api_at, startup.control.is_said)?;
    let devices =
        devices::open(startup, opened.sockets.addresses(), workers).map_err(|error| error.to_string())?;
    devices.devices.ban(&loaded.settings.deny);
    for unused in opened.sockets.unused() {
        warn!(address = %unused.address, "a socket of the service manager is not used: no listener has its address");
    }
    let plan = Become::plan(Some(startup.user.as_deref().unwrap_or(USUAL_USER)));
    let user = plan.map_err(|error| format!("the user to become cannot be looked up: {error}"))?;
    if let (Become::Nobody { wanted }, true) = (&user, unbound::names_user(&origin, startup)) {
        return Err(format!("the user \"{wanted}\" of the setting server.user does not exist"));
    }
    output.give_to(user.owner());
    let pid_file = PidFile::write(
        startup.pid_file.as_deref().filter(|_| theirs.is_none_or(|theirs| !theirs.no_pid_file)),
        &user,
    )?;
    let state = state::prepare(&loaded.settings, &user);
    let group = sockets::group(startup.socket_group.as_deref())?;
    let socket = control_socket(socket, &startup.state_directory, (&user, group));
    let role = Role::parse(startup.socket_role.word()).unwrap_or(Role::Viewer);
    let group = group.map(|group| (group, role));
    let channel = open_channel(startup, user.owner())?;
    let kept = if settings::jobs::touches_packet_filter(&loaded.settings) {
        Kept::PacketFilter
    } else {
        Kept::Nothing
    };
    privileges::give_up(&user, kept)
        .map_err(|error| format!("cannot become the user of the configuration: {error}"))?;
    if let Err(error) = state {
        debug!(folder = %startup.state_directory.display(), %error, "no folder for state");
    }
    let addresses = opened.sockets.addresses().iter().map(|bound| bound.address).collect::<Vec<_>>();
    let mistakes = origin.clone();
    let server = server::start(server::Opened {
        origin,
        begun,
        log_level,
        cores,
        workers,
        sockets: opened.sockets,
        devices,
    });
    let server = server.map_err(|error| match error {
        StartError::Invalid(found) => configuration::human(&mistakes, &found).trim_end().to_owned(),
        other => other.to_string(),
    })?;
    tell_start((&mistakes, &addresses, opened.why_not_53.as_deref()), &server);
    let (sender, orders) = mpsc::channel(SIGNALS_MAX);
    let service = Service::new(&channel, server.operator(), hooks(&sender, log_settings, &output));
    service.tell_start();
    let_go(starter, &output)?;
    let doors = Doors { socket, group, channel, service: &service, metrics, api, output };
    let end = runtime.block_on(serve(server, (signals, sender, orders), doors));
    service.tell_end();
    // What still reads a file that never ends keeps nobody.
    runtime.shutdown_background();
    // Their files go when the server does.
    drop((local, pid_file));
    Ok(if end == End::Clean { out::FINE } else { out::negative() })
}

/// Says that clients are answered from now on: where the configuration comes from, where they are,
/// and why not at port 53.
fn tell_start((origin, addresses, why_not_53): (&Origin, &[SocketAddr], Option<&str>), server: &Server) {
    match origin {
        Origin::BuiltIn => out::print(&greeting::greeting(addresses, why_not_53, server.upstreams())),
        Origin::File(_) | Origin::Unbound(_) => info!("{}", server.summary()),
    }
}

/// Returns what commands of `unbound-control` need of this process.
fn hooks(sender: &mpsc::Sender<Order>, log_settings: Log, output: &Arc<Output>) -> Hooks {
    let stop = sender.clone();
    Hooks {
        // What does not fit finds others before it that say the same.
        stop: Box::new(move || {
            let _ = stop.try_send(Order::End);
        }),
        reopen_log: Box::new({
            let output = Arc::clone(output);
            move || output.reopen()
        }),
        announce: Box::new({
            let output = Arc::clone(output);
            move |line| log::announce(&log_settings, &output, line)
        }),
        local_time: Box::new(|unix_seconds| {
            let at = sys::local_time(unix_seconds);
            let (date, time) = ((at.year, at.month + 1, at.day), (at.hour, at.minute, at.second));
            format!("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", date.0, date.1, date.2, time.0, time.1, time.2)
        }),
    }
}

/// Where operators come in.
struct Doors<'s> {
    socket: Option<Socket>,
    /// Who may use that, besides root and our own user.
    group: Option<(u32, Role)>,
    channel: Channel,
    service: &'s Service,
    metrics: Vec<std::net::TcpListener>,
    api: sockets::OpenedApi,
    /// The log, which can be opened again.
    output: Arc<Output>,
}

/// A file with the number of the process, for as long as it runs.
struct PidFile(PathBuf);

impl PidFile {
    fn write(path: Option<&Path>, user: &Become) -> Result<Option<Self>, String> {
        let Some(path) = path else { return Ok(None) };
        let written =
            std::fs::write(path, format!("{}\n", std::process::id())).and_then(|()| match user.owner() {
                Some((user, group)) => std::os::unix::fs::chown(path, Some(user), Some(group)),
                None => Ok(()),
            });
        written
            .map_err(|error| format!("cannot write {} (setting server.pid-file): {error}", path.display()))?;
        Ok(Some(Self(path.to_owned())))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // In a directory of root's the file stays, empty: nobody takes it for a process.
        if std::fs::remove_file(&self.0).is_err() {
            let _ = std::fs::write(&self.0, "");
        }
    }
}

/// Has a server looked after, and passes signals on to it.
async fn serve(
    server: Server,
    (mut signals, sender, orders): (Signals, mpsc::Sender<Order>, mpsc::Receiver<Order>),
    doors: Doors<'_>,
) -> End {
    let Doors { socket, group, channel, service, metrics, api, output } = doors;
    let commands = async {
        if let Err(error) = unbound_control::serve(&channel, service).await {
            warn!(%error, "no control with unbound-control");
        }
        std::future::pending::<()>().await;
    };
    let sockets::OpenedApi { listeners: api, missing } = api;
    let addresses: Vec<_> = api.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    for address in &addresses {
        info!(%address, "the API can be reached");
    }
    for control::api::MissingListener { at, why } in &missing {
        warn!(address = at, why, "the API cannot be reached here (setting control.listen)");
    }
    let for_resources = server.operator();
    for_resources.note_missing(missing);
    if let Some(link) = for_resources.begin_log_ins(addresses) {
        // Whoever reads the log may be the first user: it is good once, and for a quarter of an
        // hour.
        info!(
            url = link.url,
            until = link.until,
            "nobody can log in to the API yet: this adds the first user"
        );
    }
    let resources = async {
        if let Err(error) = api::serve(api, for_resources).await {
            warn!(%error, "the API cannot be reached over the network");
        }
        std::future::pending::<()>().await;
    };
    let pass_on = async {
        loop {
            let order = signals.next().await;
            if order == Order::Reload {
                output.reopen();
            }
            if sender.send(order).await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    let users = SocketUsers { own_user: sys::effective_user(), group };
    let http = Some(api::http(server.operator(), users));
    let serving = Serving { orders, socket, http, users, metrics, reloaded: service.on_reload() };
    tokio::select! {
        end = server.serve(serving) => end,
        () = pass_on => End::Failed,
        () = commands => End::Failed,
        () = resources => End::Failed,
    }
}

/// Returns an error if the caches have no room among the addresses that the process may have: the
/// limit, and what of it is left.
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

/// Makes a panic anywhere end the process: a server that lost a worker answers some clients and not
/// others.
fn abort_on_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        error!("a defect in gannet ended it; please report the message above");
        std::process::abort();
    }));
}

/// Opens the control socket at the first place that has room for it. Without one the server runs
/// all the same.
fn control_socket(
    args: &SocketArgs,
    state_folder: &Path,
    (user, group): (&Become, Option<u32>),
) -> Option<Socket> {
    let mut paths = remote::socket_paths(args);
    let is_given = paths.len() == 1;
    let own = state_folder.join("control.sock");
    if !is_given && !paths.contains(&own) {
        paths.push(own);
    }
    let mut refusals = Vec::new();
    for path in &paths {
        match Socket::bind(path, user.owner(), group) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_address_space_is_told_before_it_is_missed() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let file = place.path().join("gannet.yaml");
        std::fs::write(&file, "cache: {main: {size: 64MiB}, other: {size: 64MiB}}\n").expect("written");
        let loaded = settings::load(&file).expect("no mistakes");
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
