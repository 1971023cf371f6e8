//! One interleaved session: every server in turn, run after run, so that all see the same noise.
//!
//! Never times a server whose answers were not found right first.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::load::{self, Expect, Plan, Tally, Until};
use crate::probe::{self, Judgement, Kind};
use crate::process::Server;
use crate::queries::{self, Extras, Packets};
use crate::rival::Rival;
use crate::scenario::{Names, Scenario, Upstream};
use crate::sys;

/// How long the late upstream of a race waits.
pub const LATE_MS: u64 = 20;
/// Load before the timed part, so that sockets, caches and processor are warm.
const SETTLE: Duration = Duration::from_millis(300);
/// How long asking every name once may take.
const WARM_MAX: Duration = Duration::from_secs(120);
/// How long an answer may take before its query counts as lost.
const TIMEOUT: Duration = Duration::from_secs(1);

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
    /// Only start, ask and judge; nothing is timed.
    pub is_smoke: bool,
    /// Where configurations and logs go.
    pub work: PathBuf,
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
    /// Queries that reached the stubs while it was timed.
    pub upstream_queries: u64,
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

/// The stub upstreams of a session.
struct Stubs {
    plain: SocketAddr,
    /// The late one first.
    race: [SocketAddr; 3],
    _processes: Vec<Server>,
}

impl Stubs {
    fn start(plans: &Plans) -> Result<Self, String> {
        let this =
            std::env::current_exe().map_err(|error| format!("cannot find this tool itself: {error}"))?;
        let mut processes = Vec::new();
        let mut start = |delay_ms: u64| -> Result<SocketAddr, String> {
            let address = free_port()?;
            let mut command = Command::new(&this);
            command.args(["stub", "--listen", &address.to_string(), "--delay-ms", &delay_ms.to_string()]);
            let log = plans.work.join(format!("stub-{}.log", address.port()));
            let process = Server::start(command, &plans.load_cores, &log)?;
            processes.push(process);
            let deadline = Instant::now() + Duration::from_secs(5);
            while let Err(error) = probe::stub_count(address) {
                if Instant::now() > deadline {
                    return Err(error);
                }
            }
            Ok(address)
        };
        let plain = start(0)?;
        let race = [start(LATE_MS)?, start(0)?, start(0)?];
        Ok(Self { plain, race, _processes: processes })
    }

    fn count(&self) -> Result<u64, String> {
        let mut sum = probe::stub_count(self.plain)?;
        for stub in self.race {
            sum += probe::stub_count(stub)?;
        }
        Ok(sum)
    }
}

/// Returns a loopback address whose port nobody uses now.
fn free_port() -> Result<SocketAddr, String> {
    // A server may want TCP on the same port.
    let find = || -> io::Result<SocketAddr> {
        loop {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            let address = socket.local_addr()?;
            if std::net::TcpListener::bind(address).is_ok() {
                return Ok(address);
            }
        }
    };
    find().map_err(|error| format!("no free port on loopback: {error}"))
}

/// Runs the whole session; `progress` gets a line per step.
pub fn run(plans: &Plans, progress: &mut dyn FnMut(&str)) -> Result<Findings, String> {
    fs::create_dir_all(&plans.work).map_err(|error| format!("{}: {error}", plans.work.display()))?;
    sys::pin_thread(&plans.load_cores)
        .map_err(|error| format!("cannot use cores {:?}: {error}", plans.load_cores))?;
    let stubs = Stubs::start(plans)?;
    let mut findings = Findings::default();
    for scenario in &plans.scenarios {
        progress(&format!("{}: {}", scenario.name, scenario.about));
        let bench = Bench::new(plans, scenario, &stubs)?;
        let rounds = if plans.is_smoke { 1 } else { plans.runs };
        for round in 0..rounds {
            let mut turn: Vec<_> = plans.servers.iter().collect();
            if round % 2 == 1 {
                turn.reverse();
            }
            for (rival, program) in turn {
                let remark = |text| Remark { scenario: scenario.name, server: rival.name.clone(), text };
                if let Some(reason) = rival.without.get(scenario.setting) {
                    if round == 0 {
                        findings.remarks.push(remark(format!("not run: {reason}")));
                    }
                    continue;
                }
                if findings.failures.iter().any(|f| f.scenario == scenario.name && f.server == rival.name) {
                    continue;
                }
                match bench.measure(rival, program, round) {
                    Ok((sample, judgement)) => {
                        findings.remarks.extend(judgement.remarks.into_iter().map(remark));
                        match sample {
                            Some(sample) => {
                                progress(&describe(&sample));
                                findings.samples.push(sample);
                            }
                            None => progress(&format!("  {:14} answers right", rival.name)),
                        }
                    }
                    Err(fault) => {
                        progress(&format!("  {:14} {fault}", rival.name));
                        findings.failures.push(remark(fault));
                    }
                }
            }
        }
    }
    findings.remarks.sort();
    findings.remarks.dedup();
    Ok(findings)
}

fn describe(sample: &Sample) -> String {
    let tally = &sample.tally;
    format!(
        "  {:14} run {}: {:6.2} µs CPU a query, {:3.0} % busy, {:8.0} q/s, lost {}, wrong {}, mean {:.1} µs, p99 {:.1} µs",
        sample.server,
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

/// A scenario made ready.
struct Bench<'a> {
    plans: &'a Plans,
    scenario: &'static Scenario,
    stubs: &'a Stubs,
    packets: Packets,
    probes: Vec<probe::Probe>,
    query_file: PathBuf,
}

impl<'a> Bench<'a> {
    fn new(plans: &'a Plans, scenario: &'static Scenario, stubs: &'a Stubs) -> Result<Self, String> {
        let mut asks = scenario.asks();
        let packets = Packets::new(&asks, plans.extras)?;
        let query_file = plans.work.join(format!("{}.queries", scenario.name));
        if let Some(seed) = scenario.shuffle() {
            // dnsperf asks front to back.
            queries::Dice::new(seed).shuffle(&mut asks);
        }
        queries::write_file(&query_file, &asks)?;
        Ok(Self { plans, scenario, stubs, packets, probes: scenario.probes()?, query_file })
    }

    fn measure(
        &self,
        rival: &Rival,
        program: &Path,
        round: usize,
    ) -> Result<(Option<Sample>, Judgement), String> {
        let address = free_port()?;
        let directory = self.plans.work.join(format!("{}-{}", self.scenario.name, rival.name));
        // What an earlier run left (a dumped cache, a database) must not help this one.
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let [race1, race2, race3] = self.stubs.race;
        let ports =
            [address, self.stubs.plain, race1, race2, race3].map(|address| address.port().to_string());
        let names = ["port", "stub", "race1", "race2", "race3"];
        let variables: BTreeMap<String, String> = names.map(str::to_owned).into_iter().zip(ports).collect();
        let command = rival.prepare(program, self.scenario.setting, &directory, &variables)?;

        let started = Instant::now();
        let mut server = Server::start(command, &self.plans.server_cores, &directory.join("log"))?;
        let first = self.probes.first().ok_or("no probes")?;
        let start = probe::until_ready(address, rival.kind(), first, &mut server, started)?;
        server.confine(&self.plans.server_cores);
        let resident_octets_at_start = server.usage().resident_octets;
        let mut judgement = probe::judge(address, rival.kind(), &self.probes);
        if !judgement.faults.is_empty() {
            return Err(format!("wrong answers: {}", judgement.faults.join("; ")));
        }
        let judged = Instant::now();

        let expect = match rival.kind() {
            Kind::Dns => Expect::Answer { rcode: 0, records: true },
            Kind::Echo => Expect::Echo,
        };
        let plan = self.plan(address, expect);
        if self.scenario.warm && rival.kind() == Kind::Dns {
            self.warm(&plan)?;
        }
        if self.plans.is_smoke {
            let once = Plan { until: Until::EachAnswered(WARM_MAX), ..plan };
            self.load(&once)?;
            return Ok((None, judgement));
        }
        self.load(&Plan { until: Until::Elapsed(SETTLE), ..plan.clone() })?;

        let upstream_before = self.stubs.count()?;
        let before = server.usage();
        let tally = self.timed(&plan)?;
        let after = server.usage();
        let upstream_queries = self.stubs.count()?.saturating_sub(upstream_before);
        if let Some(obituary) = server.obituary() {
            return Err(obituary);
        }
        if tally.answered == 0 {
            return Err("no right answer while it was timed".to_owned());
        }
        self.look_back(&mut judgement, rival, address, judged, &tally, upstream_queries);
        let cpu = after.cpu_since(&before);
        let sample = Sample {
            scenario: self.scenario.name,
            server: rival.name.clone(),
            round,
            cpu_us: cpu.as_secs_f64() * 1e6 / tally.answered as f64,
            user_share: after.user_share_since(&before),
            busy: cpu.as_secs_f64() / tally.elapsed.as_secs_f64(),
            resident_octets: after.resident_octets,
            resident_octets_at_start,
            start,
            threads: after.threads,
            upstream_queries,
            tally,
        };
        Ok((Some(sample), judgement))
    }

    fn plan(&self, server: SocketAddr, expect: Expect) -> Plan {
        Plan {
            server,
            clients: self.scenario.clients.unwrap_or(self.plans.clients),
            client_addresses: self.plans.client_addresses,
            outstanding: self.scenario.clients.unwrap_or(self.plans.outstanding),
            rate: None,
            until: Until::Elapsed(self.plans.time),
            timeout: TIMEOUT,
            expect,
            shuffle: self.scenario.shuffle(),
        }
    }

    /// Asks every name once, gently, and again to let all copies settle.
    fn warm(&self, plan: &Plan) -> Result<(), String> {
        let warm = Plan { until: Until::EachAnswered(WARM_MAX), outstanding: 64, clients: 1, ..plan.clone() };
        for _ in 0..2 {
            let tally = self.load(&warm)?;
            if tally.answered < self.packets.len() as u64 {
                return Err(format!("warmed only {} of {} names", tally.answered, self.packets.len()));
            }
        }
        Ok(())
    }

    fn load(&self, plan: &Plan) -> Result<Tally, String> {
        load::run(plan, &self.packets).map_err(|error| format!("load: {error}"))
    }

    fn timed(&self, plan: &Plan) -> Result<Tally, String> {
        match self.plans.generator {
            Generator::Own => self.load(plan),
            Generator::Dnsperf => self.dnsperf(plan),
        }
    }

    /// Lets dnsperf make the load, with the same clients and queries in flight.
    fn dnsperf(&self, plan: &Plan) -> Result<Tally, String> {
        let mut command = Command::new("dnsperf");
        command.args(["-s", &plan.server.ip().to_string(), "-p", &plan.server.port().to_string()]);
        command.arg("-d").arg(&self.query_file);
        command.args(["-c", &plan.clients.to_string(), "-T", "1", "-q", &plan.outstanding.to_string()]);
        command.args(["-l", &self.plans.time.as_secs().max(1).to_string(), "-t", "1"]);
        command.stdin(Stdio::null());
        sys::confine(&mut command, &self.plans.load_cores);
        let output = command.output().map_err(|error| format!("cannot start dnsperf: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        parse_dnsperf(&text)
            .ok_or_else(|| format!("dnsperf: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }

    /// Notes what the timed part itself revealed.
    fn look_back(
        &self,
        judgement: &mut Judgement,
        rival: &Rival,
        address: SocketAddr,
        judged: Instant,
        tally: &Tally,
        upstream_queries: u64,
    ) {
        if rival.kind() == Kind::Echo {
            return;
        }
        judgement.remarks.extend(tally.complaint());
        let per_answer = upstream_queries as f64 / tally.answered as f64;
        match self.scenario.upstream {
            Upstream::Silent if upstream_queries > 0 => {
                judgement.remarks.push(format!(
                    "asked upstream for {:.3} % of the answers, which were to come from memory",
                    100.0 * per_answer
                ));
            }
            Upstream::Asked if per_answer < 0.99 => {
                judgement.remarks.push("asked upstream less than once per query".to_owned());
            }
            Upstream::Silent | Upstream::Asked => {}
        }
        if self.scenario.warm
            && self.scenario.names == Names::Few
            && judged.elapsed() >= Duration::from_secs(2)
        {
            let now = self.probes.first().and_then(|probe| probe::ttl_now(address, &probe.ask));
            if let (Some(then), Some(now)) = (judgement.ttl, now)
                && now >= then
            {
                judgement.remarks.push("does not count TTLs down".to_owned());
            }
        }
    }
}

/// Reads dnsperf's summary.
fn parse_dnsperf(text: &str) -> Option<Tally> {
    let number = |label: &str| -> Option<f64> {
        let line = text.lines().map(str::trim).find(|line| line.starts_with(label))?;
        line.strip_prefix(label)?.split_whitespace().next()?.parse().ok()
    };
    let mut tally = Tally {
        sent: number("Queries sent:")? as u64,
        answered: number("Queries completed:")? as u64,
        lost: number("Queries lost:")? as u64,
        elapsed: Duration::from_secs_f64(number("Run time (s):")?),
        ..Tally::default()
    };
    // dnsperf gives no distribution: only the mean can be carried over.
    tally.latency.record((number("Average Latency (s):")? * 1e9) as u64);
    Some(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_dnsperf_is_read() {
        let text = "Statistics:\n\n  Queries sent:         1000\n  Queries completed:    990 (99.00%)\n  Queries lost:         10 (1.00%)\n\n  Run time (s):         2.000000\n  Queries per second:   495.0\n\n  Average Latency (s):  0.000250 (min 0.000010, max 0.002000)\n";
        let tally = parse_dnsperf(text).expect("well-formed");
        assert_eq!((tally.sent, tally.answered, tally.lost), (1000, 990, 10));
        assert!((tally.qps() - 495.0).abs() < 1e-6);
        assert!((tally.latency.mean_us() - 250.0).abs() < 1e-6);
    }
}
