//! One interleaved session: every server in turn, run after run, so that all see the same noise.
//!
//! Never times a server whose answers were not found right first.

mod bench;
mod beside;
mod dnsperf;
mod event;
mod frames;
mod internet;
mod kxdpgun;
mod recovery;
mod smoke;
mod stubs;
mod zones;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::event::{Change, Done, Event, What};
pub(crate) use self::stubs::free_port;

use self::bench::Bench;
use self::stubs::Stubs;
use crate::certificate::Certificate;
use crate::load::{Tally, Transport};
use crate::pair::Pair;
use crate::probe::Kind;
use crate::queries::Extras;
use crate::quota::{Quota, Throttling};
use crate::rival::Rival;
use crate::scenario::{Load, Maker, Network, Scenario};
use crate::sys;
use crate::world::namespace::Namespace;

/// How long the late upstream of a race waits.
pub const LATE_MS: u32 = 20;
/// Load before the timed part, so that sockets, caches and processor are warm.
const SETTLE: Duration = Duration::from_millis(300);
/// How long asking every name once may take.
const WARM_MAX: Duration = Duration::from_secs(120);
/// How long an answer may take before its query counts as lost.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Our own server over AF_XDP, with which the others are compared between namespaces.
const OVER_FRAMES: &str = "gannet-xdp";

/// What produces the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// Ours.
    Own,
    /// dnsperf, to cross-check ours.
    Dnsperf,
}

/// What to measure and how.
pub struct Plans {
    /// Scenarios in order.
    pub scenarios: Vec<&'static Scenario>,
    /// Servers in order, each with its program.
    pub servers: Vec<(Rival, PathBuf)>,
    /// Timed runs per server and scenario.
    pub runs: usize,
    /// Length of a timed run.
    pub time: Duration,
    /// Clients of the throughput scenarios.
    pub clients: usize,
    /// Loopback addresses the clients are spread over.
    pub client_addresses: usize,
    /// Queries in flight of the throughput scenarios.
    pub outstanding: usize,
    /// What queries carry besides their question.
    pub extras: Extras,
    /// The server's cores.
    pub server_cores: Vec<usize>,
    /// The cores of the load and the stubs.
    pub load_cores: Vec<usize>,
    /// What produces the load.
    pub generator: Generator,
    /// Let dnsperf ask the same process after our own generator.
    pub cross_checks: bool,
    /// Only start, ask and judge; nothing is timed.
    pub is_smoke: bool,
    /// Where configurations and logs go.
    pub work: PathBuf,
}

impl Plans {
    /// Says how much is asked at a time in `scenario`.
    pub fn load_text(&self, scenario: &Scenario) -> String {
        let rate = scenario.rate.map_or_else(String::new, |rate| format!(", {rate} queries a second"));
        let carrier = match scenario.transport {
            Transport::Udp => "UDP",
            Transport::Tcp => "TCP, lasting connections",
            Transport::TcpEach => "TCP, a connection per query",
            Transport::Tls => "DNS over TLS, lasting connections",
            Transport::TlsEach => "DNS over TLS, a connection and a full handshake per query",
            Transport::Https => "DNS over HTTPS (HTTP/2), lasting connections",
        };
        let (clients, addresses, outstanding) =
            scenario.clients((self.clients, self.client_addresses, self.outstanding));
        let load = match scenario.load {
            Load::Single(1) => "One client with one query in flight".to_owned(),
            Load::Single(clients) => format!("{clients} clients with one query in flight each"),
            Load::Quiet(clients) => format!("{clients} connections that ask once and stay"),
            Load::Even(clients) => format!("Queries at even distances from {clients} sockets in turn"),
            Load::Full | Load::Fixed { .. } => {
                format!("{outstanding} queries in flight over {clients} clients of {addresses} addresses")
            }
        };
        let passes =
            scenario.passes.map_or_else(String::new, |passes| format!(", each name asked {passes} times"));
        let maker = match scenario.maker {
            Maker::Session => return format!("{load}, {carrier}{rate}{passes}{}", quota_text(scenario)),
            Maker::Dnsperf(threads) if scenario.network == Network::Loopback => {
                return format!(
                    "dnsperf with {threads} threads, {load}; server and load on the same cores, and as many workers as there are cores"
                );
            }
            Maker::Dnsperf(threads) => format!("dnsperf with {threads} threads, {load}{passes}"),
            Maker::Kxdpgun => format!("kxdpgun{rate}"),
            Maker::Steady => format!("our own generator over AF_XDP{rate}"),
            Maker::Overload => format!("our own generator over AF_XDP{rate}, and a flood in between"),
            Maker::Beside(hostile) if scenario.is_attacked() => {
                return format!(
                    "{load}, {carrier}{rate}; first alone, then beside {hostile} hostile names a second"
                );
            }
            Maker::Beside(misses) => {
                return format!(
                    "{load}, {carrier}{rate}; beside it {misses} names a second that have to be found"
                );
            }
            Maker::Receiver => {
                return "Whole transfers one after the other, each over a TCP connection of its own; a query is a record of it, \
                        latency the time of a transfer"
                    .to_owned();
            }
            Maker::Primary => {
                return "One version after the other; a query is a record of it, latency the time from the notification until the \
                        server answers with the new serial, CPU all that the server uses until it is quiet again"
                    .to_owned();
            }
            Maker::Recovery(_) => {
                return format!(
                    "{} names that are in no cache, each asked every 50 ms until it is answered; a query is a name, latency the time \
                     from the upstream's return to the first answer",
                    recovery::NAMES
                );
            }
            Maker::Operator => {
                return "One zone after the other; a query is a zone that is added, latency the time from the start of the server's \
                        own command until the zone is answered"
                    .to_owned();
            }
        };
        format!("{maker}, between two network namespaces")
    }

    /// Returns whether the load of `scenario` is to keep a server busy all the time. On shared
    /// cores nobody can tell who was the limit.
    pub fn saturates(&self, scenario: &Scenario) -> bool {
        let is_shared = self.load_cores.iter().any(|core| self.server_cores.contains(core));
        let is_full = !matches!(scenario.load, Load::Single(_) | Load::Quiet(_)) && scenario.rate.is_none();
        is_full && scenario.maker == Maker::Session && !is_shared
    }
}

/// Says what a control group grants the server, if it is in one.
fn quota_text(scenario: &Scenario) -> String {
    scenario.quota.map_or_else(String::new, |quota| {
        format!("; the server's control group has {quota} processors, granted by the tenth of a second")
    })
}

/// One timed run.
#[derive(Clone)]
pub struct Sample {
    /// The scenario's name.
    pub scenario: &'static str,
    /// The server's name.
    pub server: String,
    /// Number of the round, from 0.
    pub round: usize,
    /// What the load generator saw.
    pub tally: Tally,
    /// CPU time of the server's process tree per answered query, in microseconds.
    pub cpu_us: f64,
    /// The share of it in user space.
    pub user_share: f64,
    /// CPU time of the server by the time that passed.
    pub busy: f64,
    /// Resident octets after the run.
    pub resident_octets: u64,
    /// Resident octets when the first right answer had come.
    pub resident_octets_at_start: u64,
    /// From start to the first right answer.
    pub start: Duration,
    /// Threads.
    pub threads: u64,
    /// Queries that reached the stubs while it was timed; unknown if something happened to them.
    pub upstream_queries: Option<u64>,
    /// How often its control group stopped it, if it was in one.
    pub throttling: Option<Throttling>,
    /// What was done while it was timed.
    pub events: Vec<Done>,
    /// What dnsperf found right after, if it was asked.
    pub check: Option<Check>,
}

/// What another load generator found.
#[derive(Clone)]
pub struct Check {
    /// What it saw.
    pub tally: Tally,
    /// CPU time of the server's process tree per answered query, in microseconds.
    pub cpu_us: f64,
}

/// A server that was not timed in a scenario, or what was odd about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remark {
    /// The scenario's name.
    pub scenario: &'static str,
    /// The server's name.
    pub server: String,
    /// What there is to say.
    pub text: String,
}

/// All that a session found.
#[derive(Default)]
pub struct Findings {
    /// Timed runs in the order they were made.
    pub samples: Vec<Sample>,
    /// Servers that gave wrong answers or failed.
    pub failures: Vec<Remark>,
    /// Oddities.
    pub remarks: Vec<Remark>,
}

/// Runs the whole session; `progress` gets a line per step.
pub fn run(plans: &Plans, progress: &mut dyn FnMut(&str)) -> Result<Findings, String> {
    fs::create_dir_all(&plans.work).map_err(|error| format!("{}: {error}", plans.work.display()))?;
    sys::pin_thread(&plans.load_cores)
        .map_err(|error| format!("cannot use cores {:?}: {error}", plans.load_cores))?;
    let mut findings = Findings::default();
    let on = |network| plans.scenarios.iter().copied().filter(move |scenario| scenario.network == network);
    let (loopback, pair): (Vec<_>, Vec<_>) = (on(Network::Loopback).collect(), on(Network::Pair).collect());
    let internet: Vec<_> = on(Network::Internet).collect();
    let mut loopback = loopback;
    if loopback.iter().any(|scenario| scenario.quota.is_some())
        && let Err(reason) = Quota::new(1.0)
    {
        let reason = format!("no control group with a CPU quota can be made here: {reason}");
        for scenario in loopback.extract_if(.., |scenario| scenario.quota.is_some()) {
            leave_out(scenario, plans, &reason, &mut findings, progress);
        }
    }
    if !loopback.is_empty() {
        part(plans, &loopback, None, &mut findings, progress)?;
    }
    if !internet.is_empty() {
        match Namespace::new() {
            Ok(namespace) => {
                let _inside = namespace.enter()?;
                part(plans, &internet, None, &mut findings, progress)?;
            }
            Err(reason) => {
                let reason = format!("no network namespace can be made here: {reason}");
                for scenario in internet {
                    leave_out(scenario, plans, &reason, &mut findings, progress);
                }
            }
        }
    }
    if !pair.is_empty() {
        match Pair::new(&plans.load_cores, &plans.server_cores) {
            Ok(made) => {
                // Servers and stubs are on the server's end; what asks goes to the other.
                let _inside = made.enter_server()?;
                part(plans, &pair, Some(&made), &mut findings, progress)?;
            }
            Err(reason) => {
                let reason = format!("not run: no AF_XDP between namespaces here: {reason}");
                progress(&reason);
                for scenario in pair {
                    for (rival, _) in &plans.servers {
                        if rival.reason_against_network(Network::Pair).is_none() {
                            let server = rival.name.clone();
                            findings.remarks.push(Remark {
                                scenario: scenario.name,
                                server,
                                text: reason.clone(),
                            });
                        }
                    }
                }
            }
        }
    }
    findings.remarks.sort();
    findings.remarks.dedup();
    Ok(findings)
}

/// Runs the scenarios of one network.
fn part(
    plans: &Plans,
    scenarios: &[&'static Scenario],
    pair: Option<&Pair>,
    findings: &mut Findings,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let certificate = Certificate::make(&plans.work)?;
    let stubs = Stubs::start(plans, &certificate)?;
    match plans.is_smoke {
        true => smoke::run(plans, scenarios, &stubs, pair, findings, progress),
        false => timed(plans, scenarios, &stubs, pair, findings, progress),
    }
}

fn timed(
    plans: &Plans,
    scenarios: &[&'static Scenario],
    stubs: &Stubs<'_>,
    pair: Option<&Pair>,
    findings: &mut Findings,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    // Scenarios that are compared with each other are run in turn, as servers are.
    for group in scenarios.chunk_by(|one, next| next.beside == Some(one.name)) {
        let mut benches = Vec::with_capacity(group.len());
        for scenario in group {
            progress(&format!("{}: {}", scenario.name, scenario.about));
            benches.push(Bench::new(plans, scenario, stubs, pair)?);
        }
        for round in 0..plans.runs {
            let mut turn: Vec<_> = plans.servers.iter().collect();
            if round % 2 == 1 {
                turn.reverse();
                benches.reverse();
            }
            for (rival, program) in turn {
                for bench in &benches {
                    measure(bench, rival, program, round, findings, progress);
                }
            }
            if round % 2 == 1 {
                benches.reverse();
            }
        }
        if group.iter().any(|scenario| !scenario.upstream_is.is_empty()) {
            stubs.restore()?;
        }
        if pair.is_some() {
            for scenario in group {
                compare(scenario.name, findings, progress);
            }
        }
    }
    Ok(())
}

/// The bare echoes, over AF_XDP and over the kernel's sockets: what they differ by is what AF_XDP
/// can gain here at all.
const ECHOES: (&str, &str) = ("echo-xdp", "echo");

/// Says how the CPU time of our queries over AF_XDP compares with that of all others, round by
/// round, and how that of both bare echoes does.
fn compare(scenario: &'static str, findings: &mut Findings, progress: &mut dyn FnMut(&str)) {
    let of = |server: &str, round: usize| {
        let mut samples = findings.samples.iter();
        samples
            .find(|it| it.scenario == scenario && it.server == server && it.round == round)
            .map(|it| it.cpu_us)
    };
    let mut others: Vec<&str> =
        findings.samples.iter().filter(|it| it.scenario == scenario).map(|it| it.server.as_str()).collect();
    others.sort_unstable();
    others.dedup();
    let mut remarks = Vec::new();
    let ours = others.iter().filter(|other| **other != OVER_FRAMES).map(|other| (OVER_FRAMES, *other));
    for (server, other) in ours.chain([ECHOES]) {
        let rounds = findings.samples.iter().map(|it| it.round).max().unwrap_or(0);
        let mut ratios: Vec<f64> =
            (0..=rounds).filter_map(|round| Some(of(server, round)? / of(other, round)?)).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else { continue };
        let text = format!(
            "{:.2} of {other}'s CPU per query ({least:.2}-{most:.2}, {} rounds)",
            median(&ratios),
            ratios.len()
        );
        progress(&format!("  {server:14} {scenario}: {text}"));
        remarks.push(Remark { scenario, server: server.to_owned(), text });
    }
    findings.remarks.extend(remarks);
}

/// Returns the middle of sorted numbers; of an even count the mean of both.
fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// Measures `rival` once, unless it cannot take part or failed before.
fn measure(
    bench: &Bench<'_>,
    rival: &Rival,
    program: &Path,
    round: usize,
    findings: &mut Findings,
    progress: &mut dyn FnMut(&str),
) {
    let scenario = bench.scenario();
    let remark = |text| Remark { scenario: scenario.name, server: rival.name.clone(), text };
    if !rival.is_for(scenario.name) {
        return;
    }
    if let Some(reason) = inability(rival, scenario) {
        if round == 0 {
            findings.remarks.push(remark(format!("not run: {reason}")));
        }
        return;
    }
    if findings.failures.iter().any(|f| f.scenario == scenario.name && f.server == rival.name) {
        return;
    }
    match bench.measure(rival, program, round) {
        Ok((sample, judgement)) => {
            findings.remarks.extend(judgement.remarks.into_iter().map(remark));
            progress(&describe(&sample));
            findings.samples.push(sample);
        }
        Err(fault) => {
            progress(&format!("  {:14} {fault}", rival.name));
            findings.failures.push(remark(fault));
        }
    }
}

/// Notes that nothing of `scenario` is run on this machine, and why.
fn leave_out(
    scenario: &Scenario,
    plans: &Plans,
    reason: &str,
    findings: &mut Findings,
    progress: &mut dyn FnMut(&str),
) {
    let text = format!("not run: {reason}");
    progress(&format!("{}: {text}", scenario.name));
    let able = |rival: &Rival| rival.is_for(scenario.name) && inability(rival, scenario).is_none();
    for (rival, _) in plans.servers.iter().filter(|(rival, _)| able(rival)) {
        findings.remarks.push(Remark {
            scenario: scenario.name,
            server: rival.name.clone(),
            text: text.clone(),
        });
    }
}

/// Returns why `rival` cannot take part in `scenario`, if it cannot.
fn inability<'a>(rival: &'a Rival, scenario: &Scenario) -> Option<&'a str> {
    if let Some(reason) = rival.reason_against_network(scenario.network) {
        return Some(reason);
    }
    match rival.reason_against_scenario(scenario.name).or_else(|| rival.reason_against(scenario.setting)) {
        Some(reason) => Some(reason),
        None if scenario.maker.is_of_zones() && rival.kind() == Kind::Echo => Some("has no zones"),
        None if matches!(scenario.maker, Maker::Recovery(_)) && rival.kind() == Kind::Echo => {
            Some("asks no upstream")
        }
        None if scenario.network == Network::Internet && rival.kind() == Kind::Echo => {
            Some("finds no answers")
        }
        None if scenario.maker == Maker::Operator && rival.add_zone.is_empty() => {
            Some("adds no zone while it runs")
        }
        None if scenario.transport.is_encrypted() && rival.kind() == Kind::Echo => Some("speaks no TLS"),
        None if scenario.reloads() && rival.reload.is_none() && rival.kind() == Kind::Dns => {
            Some("cannot read its configuration again while it runs")
        }
        None => None,
    }
}

fn describe(sample: &Sample) -> String {
    let tally = &sample.tally;
    let stopped = sample.throttling.map_or_else(String::new, |throttling| {
        format!(", stopped in {} of {} periods", throttling.throttled, throttling.periods)
    });
    let remark = tally.remark.as_ref().map_or_else(String::new, |remark| format!(", {remark}"));
    format!(
        "  {:14} {} run {}: {:6.2} µs CPU a query, {:3.0} % busy, {:8.0} q/s, lost {}, wrong {}, mean {:.1} µs, p99 {:.1} µs{stopped}{remark}",
        sample.server,
        sample.scenario,
        sample.round + 1,
        sample.cpu_us,
        100.0 * sample.busy,
        tally.qps(),
        tally.lost,
        tally.wrong(),
        tally.latency.mean_us(),
        tally.latency.quantile_us(0.99),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_count_is_the_mean_of_two() {
        assert!((median(&[1.0, 2.0, 9.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[1.0, 2.0, 4.0, 9.0]) - 3.0).abs() < 1e-9);
        assert!(median(&[]).is_nan());
    }

    fn sample(server: &str, round: usize, cpu_us: f64) -> Sample {
        Sample {
            scenario: "xdp-30k",
            server: server.to_owned(),
            round,
            tally: Tally::default(),
            cpu_us,
            user_share: 0.0,
            busy: 0.0,
            resident_octets: 0,
            resident_octets_at_start: 0,
            start: Duration::ZERO,
            threads: 1,
            upstream_queries: None,
            throttling: None,
            events: Vec::new(),
            check: None,
        }
    }

    #[test]
    fn runs_of_one_round_are_compared() {
        let mut findings = Findings {
            samples: vec![
                sample("knot-xdp", 0, 2.0),
                sample(OVER_FRAMES, 0, 1.0),
                sample(OVER_FRAMES, 1, 3.2),
                sample("knot-xdp", 1, 4.0),
                sample("echo-xdp", 1, 2.0),
                sample("echo", 1, 5.0),
            ],
            ..Findings::default()
        };
        compare("xdp-30k", &mut findings, &mut |_| {});
        let texts: Vec<_> = findings.remarks.iter().map(|remark| remark.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "0.64 of echo's CPU per query (0.64-0.64, 1 rounds)",
                "1.60 of echo-xdp's CPU per query (1.60-1.60, 1 rounds)",
                "0.65 of knot-xdp's CPU per query (0.50-0.80, 2 rounds)",
                "0.40 of echo's CPU per query (0.40-0.40, 1 rounds)",
            ]
        );
    }
}
