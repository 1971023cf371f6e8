//! The command line of `gannet-bench`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]

use std::env;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use clap::{Args, Parser, Subcommand, ValueEnum};
use dnssec::Algorithm;
use testkit::world::{Denial, Options, World};

use gannet_bench::certificate::Certificate;
use gannet_bench::in_place::Command;
use gannet_bench::load::{self, Expect, Plan, Tally, Transport, Until};
use gannet_bench::queries::{self, Expected, Extras, Packets};
use gannet_bench::rival::Rival;
use gannet_bench::scenario::Scenario;
use gannet_bench::session::{self, Generator, Plans};
use gannet_bench::stub_https::Https;
use gannet_bench::world::{self, Service, Sockets, Way};
use gannet_bench::{changes, echo, frames, install, report, scenario, stub, sys};

/// Where the snapshots of versions are kept.
const SNAPSHOTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks");

/// Measures DNS servers side by side.
#[derive(Parser)]
#[command(version, about, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Task>,
    #[command(flatten)]
    run: RunArguments,
}

#[derive(Subcommand)]
enum Task {
    /// Echo datagrams with QR set: the physical limit of this machine.
    Echo(EchoArguments),
    /// Echo queries that come in by a network interface, through AF_XDP: the limit of this machine
    /// without its network stack.
    EchoFrames(EchoFramesArguments),
    /// Put our program on a network interface for a server that brings none, with its maps pinned,
    /// and start that server.
    Filter(FilterArguments),
    /// Serve as an upstream with chosen faults.
    Stub(StubArguments),
    /// Serve a simulated internet: a root, top-level domains and zones computed from a seed, on all
    /// addresses of this network namespace.
    World(WorldArguments),
    /// Ask a server as fast as it answers, or at a rate.
    Load(LoadArguments),
    /// Run scenarios against servers and write a report (also without naming it).
    Run(RunArguments),
    /// Measure what changes of our running server cost.
    Changes(changes::Command),
    /// Measure Unbound and Gannet in its place under one file, in turns: the check of a file, the
    /// start, a change of a response policy zone.
    InPlace(Command),
    /// List scenarios and servers.
    List(Places),
    /// Write the pages of one or more sessions anew, from their tables.
    Report(ReportArguments),
}

#[derive(Args)]
struct EchoArguments {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:5399")]
    listen: SocketAddr,
    /// Send replies of one size to one address as one segmented datagram, and receive likewise.
    #[arg(long)]
    gso: bool,
}

#[derive(Args)]
struct EchoFramesArguments {
    /// The network interface.
    #[arg(long)]
    interface: String,
    /// Whom the queries are to.
    #[arg(long)]
    listen: SocketAddr,
}

#[derive(Args)]
struct FilterArguments {
    /// The network interface.
    #[arg(long)]
    interface: String,
    /// Whom the queries are to.
    #[arg(long)]
    listen: SocketAddr,
    /// Where the maps are pinned: `xskmap`, and `xsk-destinations-v4` and `-v6`. A BPF file system
    /// is mounted above, for the server alone.
    #[arg(long, default_value = "/sys/fs/bpf/dnsdist")]
    folder: PathBuf,
    /// The server and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

#[derive(Args)]
struct StubArguments {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:5398")]
    listen: SocketAddr,
    /// Keep every reply back for this long.
    #[arg(long, default_value_t = 0, value_name = "MS")]
    delay_ms: u64,
    /// Share of queries that get no reply.
    #[arg(long, default_value_t = 0.0, value_name = "PERCENT")]
    loss: f64,
    /// Response code of every reply; 0 gives answers.
    #[arg(long, default_value_t = 0)]
    rcode: u16,
    /// Set TC and leave the answer out.
    #[arg(long)]
    truncate: bool,
    /// Reply with a wrong ID.
    #[arg(long)]
    wrong_id: bool,
    /// Time to live of everything it says.
    #[arg(long, default_value_t = stub::TTL_SECONDS, value_name = "SECONDS")]
    ttl: u32,
    /// Answer over HTTPS too, at this address.
    #[arg(long, requires = "certificate")]
    https: Option<SocketAddr>,
    /// Directory with `certificate.pem` and `key.pem` for HTTPS.
    #[arg(long, value_name = "DIRECTORY")]
    certificate: Option<PathBuf>,
}

#[derive(Args)]
struct WorldArguments {
    /// The port of all servers.
    #[arg(long, default_value_t = 53)]
    port: u16,
    /// The first octet of the servers' addresses. `ip route add local 10.0.0.0/8 dev lo` leads all
    /// of them here, `ip -6 route add local fd00::/8 dev lo` their IPv6 addresses.
    #[arg(long, default_value_t = 10)]
    network: u8,
    /// Everything follows from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Top-level domains: `t000`, `t001`, …
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    tlds: u32,
    /// Zones below them, the first being `z000000.t000`.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    zones: u32,
    /// Share of the zones that are signed.
    #[arg(long, default_value_t = 0, value_name = "PERMILLE", value_parser = clap::value_parser!(u32).range(0..=1_000))]
    signed: u32,
    /// Algorithms of the zones' keys, by number: 8, 13, 14 or 15. The root has the first.
    #[arg(long, value_delimiter = ',', default_value = "13")]
    algorithms: Vec<u8>,
    /// How signed zones deny.
    #[arg(long, value_enum, default_value_t = DenialName::Nsec)]
    denial: DenialName,
    /// Share of the zones whose name servers are in other zones.
    #[arg(long, default_value_t = 0, value_name = "PERMILLE")]
    out_of_zone: u32,
    /// Share of the zones one of whose servers never answers.
    #[arg(long, default_value_t = 0, value_name = "PERMILLE")]
    dead: u32,
    /// Share of the zones one of whose servers refuses to answer.
    #[arg(long, default_value_t = 0, value_name = "PERMILLE")]
    lame: u32,
    /// Share of the zones one of whose servers does not know EDNS.
    #[arg(long, default_value_t = 0, value_name = "PERMILLE")]
    without_edns: u32,
    /// Have the last two top-level domains attack whoever resolves names below them.
    #[arg(long)]
    hostile: bool,
    /// Give the servers no IPv6 addresses.
    #[arg(long)]
    ipv4_only: bool,
    /// Lose everything over IPv6.
    #[arg(long)]
    lose_ipv6: bool,
    /// Keep replies back for so long, drawn for each address from this time on.
    #[arg(long, default_value_t = 0, value_name = "MS")]
    delay_min_ms: u32,
    /// Up to this time.
    #[arg(long, default_value_t = 0, value_name = "MS")]
    delay_max_ms: u32,
    /// Share of datagrams that are lost.
    #[arg(long, default_value_t = 0.0, value_name = "PERCENT")]
    loss: f64,
    /// Sign in advance what questions for so many hosts of each zone need (`www` and others).
    #[arg(long, default_value_t = 0, value_name = "HOSTS")]
    prepare: usize,
    /// The first zones for which that is done; all without it.
    #[arg(long, value_name = "ZONES")]
    prepare_zones: Option<u32>,
    /// Write `root.hints` and, if anything is signed, `root.ds` into this directory.
    #[arg(long, value_name = "DIRECTORY")]
    write: Option<PathBuf>,
}

/// How signed zones deny, on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum DenialName {
    /// With NSEC.
    Nsec,
    /// With NSEC3.
    Nsec3,
    /// Half of them so, half otherwise.
    Mixed,
}

#[derive(Args, Clone, Copy)]
struct ExtrasArguments {
    /// Send an OPT record with this UDP size.
    #[arg(long, value_name = "OCTETS")]
    edns: Option<u16>,
    /// Ask for DNSSEC records (implies --edns 1232).
    #[arg(long)]
    dnssec: bool,
    /// Give the names' letters changing case.
    #[arg(long)]
    mixed_case: bool,
}

impl ExtrasArguments {
    fn extras(self) -> Extras {
        let edns_size = self.edns.or(self.dnssec.then_some(1232));
        Extras { edns_size, wants_dnssec: self.dnssec, mixed_case: self.mixed_case, wants_verdict: false }
    }
}

#[derive(Args)]
struct LoadArguments {
    /// Whom to ask.
    #[arg(long)]
    server: SocketAddr,
    /// Names and types, one pair per line, as dnsperf reads them.
    #[arg(long)]
    queries: PathBuf,
    /// Length of the run.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Sockets, each with its own port.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Loopback addresses the clients are spread over.
    #[arg(long, default_value_t = 1)]
    client_addresses: usize,
    /// Queries in flight.
    #[arg(long, default_value_t = 128)]
    outstanding: usize,
    /// Queries per second; as many as are answered without it.
    #[arg(long)]
    rate: Option<f64>,
    /// Send at even distances, without ever sleeping (UDP, with --rate).
    #[arg(long, requires = "rate")]
    even: bool,
    /// Ask in random order.
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
    /// Ask each query once, again if lost, and stop.
    #[arg(long)]
    once: bool,
    /// What carries the queries.
    #[arg(long, value_enum, default_value_t = TransportName::Udp)]
    transport: TransportName,
    /// Response code of right answers.
    #[arg(long, default_value_t = 0)]
    rcode: u8,
    /// Right answers may be empty.
    #[arg(long)]
    allow_empty: bool,
    /// Right answers are the queries with QR set.
    #[arg(long)]
    echo: bool,
    /// Time after which a query counts as lost.
    #[arg(long, default_value_t = 1000, value_name = "MS")]
    timeout_ms: u64,
    /// Core to run on.
    #[arg(long)]
    core: Option<usize>,
    #[command(flatten)]
    extras: ExtrasArguments,
}

/// What carries queries, on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum TransportName {
    /// UDP.
    Udp,
    /// TCP, a lasting connection per client.
    Tcp,
    /// TCP, a connection per query.
    TcpEach,
}

impl TransportName {
    const fn transport(self) -> Transport {
        match self {
            Self::Udp => Transport::Udp,
            Self::Tcp => Transport::Tcp,
            Self::TcpEach => Transport::TcpEach,
        }
    }
}

#[derive(Args)]
struct Places {
    /// Directory of the rivals' files.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/rivals"))]
    rivals: PathBuf,
    /// Directory of programs that --install built; looked into before PATH.
    #[arg(long, default_value = "/usr/local/lib/gannet-bench/bin")]
    programs: PathBuf,
}

#[derive(Args)]
struct ReportArguments {
    /// Directories of sessions; several become one page.
    #[arg(required = true)]
    sessions: Vec<PathBuf>,
    /// Directory of the result; that of the session if there is one only.
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Args)]
struct RunArguments {
    /// Scenarios: names, families such as `latency`, or `all`.
    #[arg(long, value_delimiter = ',', default_value = "local,cache,forward")]
    scenario: Vec<String>,
    /// Servers in order; `all` means every rival. The echo always runs.
    #[arg(long, value_delimiter = ',', default_value = "all")]
    server: Vec<String>,
    /// Timed runs per server and scenario.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Length of a timed run.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Clients (sockets) in the throughput scenarios.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Loopback addresses the clients are spread over.
    #[arg(long, default_value_t = 1)]
    client_addresses: usize,
    /// Queries in flight in the throughput scenarios.
    #[arg(long, default_value_t = 128)]
    outstanding: usize,
    /// The server's core.
    #[arg(long, default_value_t = 1)]
    server_core: usize,
    /// The core of load and stubs. With the server's core beside it, dnsperf runs on both and so
    /// outruns the server.
    #[arg(long, value_delimiter = ',', default_value = "0")]
    load_core: Vec<usize>,
    /// Let servers, load and stubs share both cores.
    #[arg(long)]
    same_core: bool,
    /// Let dnsperf make the load.
    #[arg(long)]
    dnsperf: bool,
    /// Let dnsperf ask the same processes too, and report both side by side.
    #[arg(long, conflicts_with = "dnsperf")]
    cross_check: bool,
    /// Only start every server, ask, and judge the answers.
    #[arg(long)]
    smoke: bool,
    /// The `gannet` program (or GANNET_BENCH_GANNET, or in PATH).
    #[arg(long)]
    gannet: Option<PathBuf>,
    /// Fetch rivals that are not in the directory of programs, and load generators: the newest
    /// releases that Debian has, unpacked there beside those of the system, and others by go or
    /// cargo at pinned versions.
    #[arg(long)]
    install: bool,
    /// Directory of the results; a new one by date goes in.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/results"))]
    out: PathBuf,
    /// Make it part of the snapshot of this version in docs/benchmarks, whose pages are written
    /// anew from all parts.
    #[arg(long, value_name = "VERSION")]
    snapshot: Option<String>,
    /// What the part of the snapshot is called; one of the same name is replaced.
    #[arg(long, default_value = "session", requires = "snapshot", value_name = "NAME")]
    part: String,
    #[command(flatten)]
    extras: ExtrasArguments,
    #[command(flatten)]
    places: Places,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command.unwrap_or(Task::Run(cli.run)) {
        Task::Echo(arguments) => serve_echo(&arguments),
        Task::EchoFrames(arguments) => {
            frames::echo(&arguments.interface, arguments.listen).map(|()| ExitCode::SUCCESS)
        }
        Task::Filter(FilterArguments { interface, listen, folder, command }) => {
            frames::filter_for(&interface, listen, &folder, &command)
        }
        Task::Stub(arguments) => serve_stub(&arguments),
        Task::World(arguments) => serve_world(&arguments),
        Task::Load(arguments) => make_load(&arguments),
        Task::Run(arguments) => run_session(&arguments),
        Task::InPlace(command) => command.measure().map(|lines| {
            println!("{}", lines.join("\n"));
            ExitCode::SUCCESS
        }),
        Task::List(places) => list(&places),
        Task::Changes(command) => command
            .measure(&mut |line| println!("{line}"), &mut |line| eprintln!("{line}"))
            .map(|()| ExitCode::SUCCESS),
        Task::Report(arguments) => write_report(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn bind(address: SocketAddr) -> Result<UdpSocket, String> {
    UdpSocket::bind(address).map_err(|error| format!("cannot listen on {address}: {error}"))
}

fn serve_echo(arguments: &EchoArguments) -> Result<ExitCode, String> {
    let mode = if arguments.gso { echo::Mode::Segmented } else { echo::Mode::Plain };
    let listener = TcpListener::bind(arguments.listen)
        .map_err(|error| format!("cannot listen on {} over TCP: {error}", arguments.listen))?;
    // Each transport has its thread; the one that is not asked costs nothing.
    thread::spawn(move || {
        if let Err(error) = echo::serve_stream(&listener) {
            eprintln!("error: echo over TCP: {error}");
        }
    });
    echo::serve(&bind(arguments.listen)?, mode).map_err(|error| format!("echo: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

fn serve_stub(arguments: &StubArguments) -> Result<ExitCode, String> {
    let behaviour = stub::Behaviour {
        delay: Duration::from_millis(arguments.delay_ms),
        loss_percent: arguments.loss,
        rcode: arguments.rcode,
        truncates: arguments.truncate,
        lies_about_id: arguments.wrong_id,
        ttl_seconds: arguments.ttl,
    };
    let listener = TcpListener::bind(arguments.listen)
        .map_err(|error| format!("cannot listen on {} over TCP: {error}", arguments.listen))?;
    let socket = bind(arguments.listen)?;
    let stub = Arc::new(stub::Stub::new(behaviour));
    let https = match (arguments.https, &arguments.certificate) {
        (Some(address), Some(directory)) => Some(Https::bind(address, &Certificate::read(directory)?)?),
        (Some(_), None) | (None, _) => None,
    };
    let served = thread::scope(|scope| {
        if let Some(https) = https {
            scope.spawn(|| {
                if let Err(error) = https.serve(&stub) {
                    eprintln!("error: stub over HTTPS: {error}");
                }
            });
        }
        scope.spawn(|| {
            if let Err(error) = stub.serve_stream(&listener) {
                eprintln!("error: stub over TCP: {error}");
            }
        });
        stub.serve(&socket)
    });
    served.map_err(|error| format!("stub: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

fn serve_world(arguments: &WorldArguments) -> Result<ExitCode, String> {
    let unix_seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let algorithms: Vec<Algorithm> = arguments.algorithms.iter().map(|number| Algorithm(*number)).collect();
    if let Some(unknown) = algorithms.iter().find(|algorithm| ![8, 13, 14, 15].contains(&algorithm.0)) {
        return Err(format!("algorithm {unknown} is not known, expected 8, 13, 14 or 15"));
    }
    let world = World::new(Options {
        seed: arguments.seed,
        tlds: arguments.tlds,
        zones: arguments.zones,
        network: arguments.network,
        signed: arguments.signed,
        algorithms,
        denial: match arguments.denial {
            DenialName::Nsec => Denial::Nsec,
            DenialName::Nsec3 => Denial::Nsec3,
            DenialName::Mixed => Denial::Mixed,
        },
        out_of_zone: arguments.out_of_zone,
        dead: arguments.dead,
        lame: arguments.lame,
        without_edns: arguments.without_edns,
        is_hostile: arguments.hostile,
        has_ipv6: !arguments.ipv4_only,
        delay_ms: arguments.delay_min_ms..=arguments.delay_max_ms.max(arguments.delay_min_ms),
        unix_seconds,
    });
    if let Some(directory) = &arguments.write {
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        write("root.hints", &world.hints())?;
        world.anchor().map_or(Ok(()), |anchor| write("root.ds", anchor))?;
    }
    let zones = arguments.prepare_zones.unwrap_or(arguments.zones).min(arguments.zones);
    world::sign_in_advance(&world, zones, arguments.prepare);
    let sockets = Sockets::bind(arguments.port)
        .map_err(|error| format!("cannot listen on port {}: {error}", arguments.port))?;
    let way = Way { loss_ppm: (arguments.loss * 10_000.0) as u32, loses_ipv6: arguments.lose_ipv6 };
    Arc::new(Service::new(world, way)).serve(sockets).map_err(|error| format!("world: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

fn make_load(arguments: &LoadArguments) -> Result<ExitCode, String> {
    if let Some(core) = arguments.core {
        sys::pin_thread(&[core]).map_err(|error| format!("core {core}: {error}"))?;
    }
    let time = Duration::from_secs_f64(arguments.seconds);
    let plan = Plan {
        server: arguments.server,
        transport: arguments.transport.transport(),
        secure: None,
        clients: arguments.clients,
        client_addresses: arguments.client_addresses,
        outstanding: arguments.outstanding,
        rate: arguments.rate,
        is_even: arguments.even,
        begin_at: 0,
        until: if arguments.once { Until::EachAnswered(time) } else { Until::Elapsed(time) },
        timeout: Duration::from_millis(arguments.timeout_ms),
        expect: if arguments.echo { Expect::Echo } else { Expect::AS_ASKED },
        shuffle: arguments.shuffle,
    };
    let mut asks = queries::parse_file(&arguments.queries)?;
    for ask in &mut asks {
        ask.expected =
            Expected { rcode: arguments.rcode, records: !arguments.allow_empty, ..Expected::default() };
    }
    let packets = Packets::new(&asks, arguments.extras.extras())?;
    let tally = load::run(&plan, &packets).map_err(|error| format!("load: {error}"))?;
    print_tally(&tally);
    Ok(if tally.wrong() == 0 && tally.answered > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_tally(tally: &Tally) {
    let latency = &tally.latency;
    println!("sent            {}", tally.sent);
    println!("answered        {}", tally.answered);
    println!("lost            {} ({:.3} %)", tally.lost, tally.loss_percent());
    println!("wrong           {} content, {} question", tally.wrong_content, tally.wrong_question);
    if let Some(complaint) = tally.complaint() {
        println!("                {complaint}");
    }
    println!("unexpected      {}", tally.unexpected);
    println!("elapsed         {:.3} s", tally.elapsed.as_secs_f64());
    println!("queries/second  {:.0}", tally.qps());
    println!(
        "latency mean    {:.1} µs, standard deviation {:.1} µs",
        latency.mean_us(),
        latency.deviation_us()
    );
    println!(
        "latency         p50 {:.1}, p95 {:.1}, p99 {:.1}, p99.9 {:.1}, max {:.1} µs",
        latency.quantile_us(0.5),
        latency.quantile_us(0.95),
        latency.quantile_us(0.99),
        latency.quantile_us(0.999),
        latency.max_us()
    );
    println!(
        "generator       {:.2} µs CPU a query",
        tally.own_cpu.as_secs_f64() * 1e6 / tally.answered.max(1) as f64
    );
}

fn write_report(arguments: &ReportArguments) -> Result<ExitCode, String> {
    let out = match (&arguments.out, &arguments.sessions[..]) {
        (Some(out), _) => out,
        (None, [only]) => only,
        (None, _) => return Err("several sessions need --out".to_owned()),
    };
    report::write(out, &report::read(&arguments.sessions)?)?;
    println!("{}", out.join("index.html").display());
    Ok(ExitCode::SUCCESS)
}

fn list(places: &Places) -> Result<ExitCode, String> {
    println!("scenarios:");
    for scenario in scenario::SCENARIOS {
        let pending = scenario.needs.map(|needs| format!(" (pending: Gannet needs {needs})"));
        println!("  {:22} {}{}", scenario.name, scenario.about, pending.unwrap_or_default());
    }
    for (name, needs) in scenario::PENDING {
        println!("  {name:22} pending: needs {needs}");
    }
    println!("pages:");
    for (name, about, scenarios) in scenario::PAGES {
        println!("  {name:22} {about}: {}", scenarios.join(", "));
    }
    println!("servers:");
    for rival in Rival::read_all(&places.rivals)? {
        let found = match rival.find(std::slice::from_ref(&places.programs)) {
            Ok(program) => rival.version_line(&program),
            Err(reason) => reason,
        };
        println!("  {:18} {}; {found}", rival.name, rival.about);
    }
    Ok(ExitCode::SUCCESS)
}

/// Servers to run, and those that cannot be had with the reason.
type Choice = (Vec<(Rival, PathBuf)>, Vec<(String, String)>);

fn choose(arguments: &RunArguments, scenarios: &[&Scenario]) -> Result<Choice, String> {
    let mut rivals = Rival::read_all(&arguments.places.rivals)?;
    let mut wanted: Vec<String> = Vec::new();
    for name in ["echo".to_owned()].iter().chain(&arguments.server) {
        if name == "all" {
            wanted.extend(rivals.iter().map(|rival| rival.name.clone()));
        } else {
            wanted.push(name.clone());
        }
    }
    // Whoever cannot take part in any of the scenarios is not looked for.
    let takes_part = |rival: &Rival| {
        scenarios.iter().any(|it| rival.is_for(it.name) && rival.reason_against_network(it.network).is_none())
    };
    let mut chosen = Vec::new();
    let mut skipped = Vec::new();
    for name in wanted {
        let Some(at) = rivals.iter().position(|rival| rival.name == name) else {
            if chosen.iter().any(|(rival, _): &(Rival, PathBuf)| rival.name == name)
                || skipped.iter().any(|(n, _)| *n == name)
            {
                continue;
            }
            return Err(format!("unknown server \"{name}\"; `list` names them all"));
        };
        let rival = rivals.remove(at);
        if !takes_part(&rival) {
            continue;
        }
        match program_of(&rival, arguments) {
            Ok(program) => chosen.push((rival, program)),
            Err(reason) => {
                eprintln!("skipped: {}: {reason}", rival.name);
                skipped.push((rival.name, reason));
            }
        }
    }
    Ok((chosen, skipped))
}

fn program_of(rival: &Rival, arguments: &RunArguments) -> Result<PathBuf, String> {
    let is_ours = rival.program_name() == "gannet";
    if is_ours && let Some(path) = &arguments.gannet {
        return std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()));
    }
    let mut extra = vec![arguments.places.programs.clone()];
    if is_ours {
        // A release build of this checkout lies beside this tool.
        let beside = env::current_exe().ok().and_then(|path| path.parent().map(Path::to_owned));
        extra.extend(beside);
    }
    if arguments.install && !is_ours {
        install::install(rival, &arguments.places.programs)?;
    }
    rival.find(&extra)
}

fn run_session(arguments: &RunArguments) -> Result<ExitCode, String> {
    sys::raise_descriptors();
    let (date, directory) = report::date_now();
    let out = arguments.out.join(directory);
    let scenarios = scenario::select(&arguments.scenario)?;
    let environment = report::environment();
    if let Some(version) = &arguments.snapshot {
        // Before anything is timed: an hour later it would be in vain.
        report::check_snapshot(Path::new(SNAPSHOTS), version, &arguments.part, &environment)?;
    }
    if arguments.install {
        install::install_tools()?;
    }
    let (servers, skipped) = choose(arguments, &scenarios)?;
    let versions =
        servers.iter().map(|(rival, program)| (rival.name.clone(), rival.version_line(program))).collect();
    let mut both = arguments.load_core.clone();
    both.push(arguments.server_core);
    // A smoke run times nothing.
    let shares = arguments.same_core || arguments.smoke;
    let work = env::temp_dir().join(format!("gannet-bench-{}", std::process::id()));
    let mut facts = report::Facts {
        environment,
        load_averages: [report::load_average(), String::new()],
        command: format!("gannet-bench {}", env::args().skip(1).collect::<Vec<_>>().join(" ")),
        skipped,
        versions,
        date,
    };
    let plans = Plans {
        scenarios,
        servers,
        runs: arguments.runs.max(1),
        time: Duration::from_secs_f64(arguments.seconds),
        clients: arguments.clients,
        client_addresses: arguments.client_addresses,
        outstanding: arguments.outstanding,
        extras: arguments.extras.extras(),
        server_cores: if shares { both.clone() } else { vec![arguments.server_core] },
        load_cores: if shares { both } else { arguments.load_core.clone() },
        generator: if arguments.dnsperf { Generator::Dnsperf } else { Generator::Own },
        cross_checks: arguments.cross_check,
        is_smoke: arguments.smoke,
        work,
    };
    let findings = session::run(&plans, &mut |line| eprintln!("{line}"))?;
    if !plans.is_smoke {
        facts.load_averages[1] = report::load_average();
        let model = report::model(&plans, &findings, &facts);
        let out = match &arguments.snapshot {
            Some(version) => report::add_to_snapshot(Path::new(SNAPSHOTS), version, &arguments.part, &model)?,
            None => {
                report::write(&out, &model)?;
                out
            }
        };
        println!("{}", out.join("index.html").display());
    }
    let is_ours = |name: &str| {
        plans.servers.iter().any(|(rival, _)| rival.name == name && rival.program_name() == "gannet")
    };
    let ours_failed = findings.failures.iter().any(|failure| is_ours(&failure.server));
    for remark in &findings.failures {
        eprintln!("not timed: {} in {}: {}", remark.server, remark.scenario, remark.text);
    }
    // Logs and configurations are only of use when something went wrong.
    if findings.failures.is_empty() {
        let _ = std::fs::remove_dir_all(&plans.work);
    } else {
        keep_failed(&plans.work, &findings.failures);
        eprintln!("configurations and logs are in {}", plans.work.display());
    }
    Ok(if ours_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Removes what servers and scenarios that did not fail had: zones and lists are gigabytes.
fn keep_failed(work: &Path, failures: &[session::Remark]) {
    let is_kept = |name: &str| {
        failures.iter().any(|failure| {
            let rest = name.strip_prefix(failure.scenario);
            rest.is_some_and(|rest| {
                rest == ".queries" || rest == "-internet" || rest.strip_prefix('-') == Some(&failure.server)
            })
        })
    };
    for entry in std::fs::read_dir(work).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_kept(&entry.file_name().to_string_lossy()) {
            continue;
        }
        if path.is_dir() {
            let _ = std::fs::remove_dir_all(path);
        } else if path.extension().is_some_and(|extension| extension == "queries") {
            let _ = std::fs::remove_file(path);
        }
    }
}
