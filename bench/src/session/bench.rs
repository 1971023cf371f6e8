//! One scenario made ready: a fresh process per run, judged, warmed and timed.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use wire::Rtype;

use super::beside::Beside;
use super::event::{self, Change, Done, Event, What};
use super::frames::OverFrames;
use super::internet::Served;
use super::stubs::{Stubs, free_port};
use super::zones::{self, ZoneWork};
use super::{Check, Generator, Plans, SETTLE, Sample, TIMEOUT, WARM_MAX, dnsperf, kxdpgun, recovery};
use crate::load::{self, Expect, Plan, Tally, Transport, Until, quiet};
use crate::pair::{self, Pair};
use crate::probe::{self, Judgement, Kind, Probe};
use crate::process::Server;
use crate::queries::{self, Ask, Packets};
use crate::quota::Quota;
use crate::rival::{Prepared, Rival};
use crate::rules::{self, Rules};
use crate::scenario::{Load, Maker, Outage, Scenario, Upstream};
use crate::transfer::primary::Primary;

/// Names asked at most when only answers are judged.
const SMOKE_MAX: usize = 200;
/// How long a server may take from its start to its first right answer.
const START_MAX: Duration = Duration::from_secs(10);
/// The same where it reads a large set of rules first.
const START_WITH_RULES_MAX: Duration = Duration::from_secs(120);
/// How long a rule that was added may be unknown after the reload, or after the run in which that
/// was.
const RELOAD_MAX: Duration = Duration::from_secs(30);
/// The same where only the rules that are asked about are read.
const SMALL_RELOAD_MAX: Duration = Duration::from_secs(10);
/// How long a server that is not timed may take for all questions.
const ASKED_MAX: Duration = Duration::from_secs(10);
/// How long asking every name the scenario's number of times may take.
const PASSES_MAX: Duration = Duration::from_secs(60);
/// The same where the answers have to be found first.
const FOUND_MAX: Duration = Duration::from_secs(240);
/// How long an answer may take there.
const FOUND_TIMEOUT: Duration = Duration::from_secs(10);
/// Names at most whose TTLs are looked at again after the run.
const FEW_MAX: usize = 100;

/// How long is asked before a run that goes on from there, so that a cache holds what it would hold
/// in the long run.
const GO_ON: Duration = Duration::from_secs(1);
/// How long until nothing may be kept that had a TTL of a second.
const EXPIRED: Duration = Duration::from_millis(2_200);
/// How long at least is asked for what has expired: the first seconds of an outage are those in
/// which a server learns of it.
const STALE_MIN: Duration = Duration::from_secs(5);
/// How long an answer may take there: some servers let a client wait for the upstream first (RFC
/// 8767 §5).
const STALE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an upstream is away in the scenarios of recovery.
const AWAY: Duration = Duration::from_secs(10);
/// The same where nothing is timed.
const AWAY_SHORTLY: Duration = Duration::from_millis(200);

/// The answer to a name that the rules match.
const REFUSED: u8 = 5;

/// A scenario made ready.
pub(super) struct Bench<'a> {
    plans: &'a Plans,
    scenario: &'static Scenario,
    stubs: &'a Stubs<'a>,
    pair: Option<&'a Pair>,
    packets: Packets,
    probes: Vec<Probe>,
    query_file: PathBuf,
    rules: Option<Rules>,
    /// The primary of the zone, where the server is a secondary.
    primary: Option<Primary>,
    /// The simulated internet, where one is asked.
    internet: Option<Served>,
    /// What has to be found beside what is known, where that is asked.
    unknown: Option<Packets>,
}

/// A server that is up and answers right.
struct Up {
    server: Server,
    prepared: Prepared,
    /// Where it answers over UDP.
    address: SocketAddr,
    /// The load of the scenario.
    plan: Plan,
    probes: Vec<Probe>,
    start: Duration,
    resident_octets_at_start: u64,
    judgement: Judgement,
}

/// What came of what was timed.
struct Ran {
    tally: Tally,
    events: Vec<Done>,
    /// Connections that must still be open.
    quiet: Option<quiet::Quiet>,
}

impl Ran {
    const fn of(tally: Tally) -> Self {
        Self { tally, events: Vec::new(), quiet: None }
    }
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        plans: &'a Plans,
        scenario: &'static Scenario,
        stubs: &'a Stubs<'a>,
        pair: Option<&'a Pair>,
    ) -> Result<Self, String> {
        let mut asks = scenario.questions.asks();
        let probes = scenario.questions.probes(&asks)?;
        if plans.is_smoke {
            let step = asks.len().div_ceil(SMOKE_MAX);
            asks = asks.into_iter().step_by(step).collect();
        }
        let rules = scenario.rules.map(|shape| {
            let asked = || asks.iter().chain(probes.iter().map(|probe| &probe.ask)).map(|ask| &*ask.name);
            match plans.is_smoke {
                // Large sets are for timed runs; what they say of the names that are asked is the
                // same.
                true => Rules::small(shape, scenario.changes_rules(), asked),
                false => Rules::new(shape, scenario.changes_rules()),
            }
        });
        let primary = match scenario.maker {
            Maker::Primary => Some(zones::primary(scenario.questions, &asks, &probes, plans.is_smoke)?),
            _ => None,
        };
        if let Some(passes) = scenario.passes {
            asks = std::iter::repeat_n(asks, passes).flatten().collect();
        }
        let packets = Packets::new(&asks, scenario.extras.and(plans.extras))?;
        let query_file = plans.work.join(format!("{}.queries", scenario.name));
        if let Some(seed) = scenario.shuffle() {
            // dnsperf asks front to back.
            queries::Dice::new(seed).shuffle(&mut asks);
        }
        queries::write_file(&query_file, &asks)?;
        for change in scenario.upstream_is {
            stubs.change("stub", *change)?;
        }
        let internet = scenario.asked().map(|asked| Served::start(plans, scenario, asked)).transpose()?;
        let unknown =
            scenario.unknown().map(|asked| Packets::new(&asked.asks(), scenario.extras)).transpose()?;
        Ok(Self {
            plans,
            scenario,
            stubs,
            pair,
            packets,
            probes,
            query_file,
            rules,
            primary,
            internet,
            unknown,
        })
    }

    /// Returns what it is made ready for.
    pub(super) const fn scenario(&self) -> &'static Scenario {
        self.scenario
    }

    /// Starts `rival` and judges its answers, also after a reload if there is one.
    pub(super) fn judge(&self, rival: &Rival, program: &Path) -> Result<Judgement, String> {
        let judgement = self.judge_once(rival, program);
        self.mend_stubs()?;
        judgement
    }

    fn judge_once(&self, rival: &Rival, program: &Path) -> Result<Judgement, String> {
        let mut up = self.start(rival, program)?;
        if let Maker::Recovery(outage) = self.scenario.maker {
            let tally = recovery::run(
                up.address,
                &self.packets,
                &|change| self.change(change),
                outage,
                AWAY_SHORTLY,
            )?;
            if tally.lost > 0 {
                return Err(tally.remark.unwrap_or_default());
            }
        }
        let tally = self.load(&Plan { until: Until::EachAnswered(ASKED_MAX), ..up.plan.clone() })?;
        if tally.answered < self.packets.len() as u64 {
            return Err(format!("answered only {}", self.shortfall(&tally)));
        }
        if let (Some(outage), Kind::Dns) = (self.scenario.expired, rival.kind()) {
            self.expire(up.address, &up.probes, outage)?;
            let tally = self.load(&Plan { until: Until::EachAnswered(ASKED_MAX), ..up.plan.clone() })?;
            if tally.answered < self.packets.len() as u64 {
                return Err(format!("while the upstream was away, answered only {}", self.shortfall(&tally)));
            }
        }
        if let (true, Some(reload)) = (self.scenario.reloads(), &up.prepared.reload) {
            up.prepared.change_rules()?;
            up.server.reload(reload)?;
            self.await_change(rival, up.address, &mut up.server, SMALL_RELOAD_MAX)?;
            up.judgement = self.ask(rival, &up.probes, up.address)?;
        }
        if let Some(work) = self.zone_work(&up.server, up.address, &up.prepared, rival.kind()) {
            work.until(Duration::ZERO)?;
        }
        match up.server.obituary() {
            Some(obituary) => Err(obituary),
            None => Ok(up.judgement),
        }
    }

    /// Starts `rival`, judges its answers, warms and times it.
    pub(super) fn measure(
        &self,
        rival: &Rival,
        program: &Path,
        round: usize,
    ) -> Result<(Sample, Judgement), String> {
        let measured = self.measure_once(rival, program, round);
        self.mend_stubs()?;
        measured
    }

    fn measure_once(
        &self,
        rival: &Rival,
        program: &Path,
        round: usize,
    ) -> Result<(Sample, Judgement), String> {
        let Up {
            mut server,
            prepared,
            address,
            mut plan,
            probes,
            start,
            resident_octets_at_start,
            mut judgement,
        } = self.start(rival, program)?;
        let judged = Instant::now();
        let is_asked = !matches!(self.scenario.load, Load::Quiet(_))
            && !matches!(self.scenario.maker, Maker::Recovery(_))
            && !self.scenario.maker.is_of_zones();
        self.settle(rival, address, &mut plan, &probes, is_asked)?;
        let zone_work = self.zone_work(&server, address, &prepared, rival.kind());
        if zone_work.is_some() {
            // What a server does about its zones after it has begun to answer is not part of what
            // is timed.
            zones::await_quiet(&server);
        }
        let disturbs_stubs = self.scenario.disturbs_stubs();
        let upstream_before = if disturbs_stubs { 0 } else { self.upstream_count()? };
        let book = self.internet.as_ref().map(Served::book).transpose()?;
        let throttling_before = server.throttling();
        let received = || self.pair.map_or(Duration::ZERO, Pair::receive_cpu);
        let (before, received_before) = (server.usage(), received());
        let Ran { mut tally, events, quiet } = self.run(&plan, &server, &prepared, zone_work, address)?;
        let (after, received_after) = (server.usage(), received());
        if let Some(mut quiet) = quiet {
            let open = quiet.open();
            if open < plan.clients {
                return Err(format!("closed {} of {} quiet connections", plan.clients - open, plan.clients));
            }
        }
        let throttling =
            server.throttling().zip(throttling_before).map(|(after, before)| after.since(&before));
        // A stub that was started anew has forgotten.
        let upstream_queries = match events.is_empty() && !disturbs_stubs {
            true => Some(self.upstream_count()?.saturating_sub(upstream_before)),
            false => None,
        };
        if let Some(obituary) = server.obituary() {
            return Err(obituary);
        }
        if let (Some(internet), Some(book)) = (&self.internet, &book) {
            // How long it takes to recover is what is measured then.
            if !matches!(self.scenario.maker, Maker::Recovery(_)) {
                internet.judge(&tally, internet.is_lossy())?;
            }
            let account = internet.account(book, &tally)?;
            tally.remark =
                Some(tally.remark.map_or(account.clone(), |remark| format!("{remark}, {account}")));
        }
        if tally.answered == 0 {
            let nothing = "no right answer while it was timed";
            return Err(tally.remark.map_or(nothing.to_owned(), |remark| format!("{nothing}: {remark}")));
        }
        self.await_change(rival, address, &mut server, RELOAD_MAX)
            .map_err(|error| format!("after the run: {error}"))?;
        // dnsperf keeps its connections, and what happened to the server has happened.
        let is_lasting = !matches!(plan.transport, Transport::TcpEach | Transport::TlsEach);
        let can_check = is_lasting && is_asked && events.is_empty();
        let check = match self.plans.cross_checks && can_check {
            true => Some(self.cross_check(&plan, &server)?),
            false => None,
        };
        self.look_back(&mut judgement, rival, address, judged, &tally, upstream_queries);
        let cpu = after.cpu_since(&before) + received_after.saturating_sub(received_before);
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
            throttling,
            events,
            check,
            tally,
        };
        Ok((sample, judgement))
    }

    /// Brings a server to where its timing begins: warm, with what has expired, or in the middle of
    /// its questions.
    fn settle(
        &self,
        rival: &Rival,
        address: SocketAddr,
        plan: &mut Plan,
        probes: &[Probe],
        is_asked: bool,
    ) -> Result<(), String> {
        if self.scenario.warm && rival.kind() == Kind::Dns {
            self.warm(plan)?;
        }
        match (self.scenario.expired, rival.kind()) {
            (Some(outage), Kind::Dns) => self.expire(address, probes, outage)?,
            _ if self.scenario.questions.goes_on() => {
                let settled = self.load(&Plan { until: Until::Elapsed(GO_ON), ..plan.clone() })?;
                plan.begin_at = settled.sent as usize;
            }
            _ if !self.is_fresh() && is_asked => {
                self.load(&Plan { until: Until::Elapsed(SETTLE), ..plan.clone() })?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Changes the upstream, whatever it is.
    fn change(&self, change: Change) -> Result<(), String> {
        self.internet.as_ref().map_or_else(|| self.stubs.change("stub", change), |it| it.change(change))
    }

    /// Returns how many queries servers upstream have had.
    fn upstream_count(&self) -> Result<u64, String> {
        self.internet.as_ref().map_or_else(|| self.stubs.count(), Served::count)
    }

    /// Does what is timed.
    fn run(
        &self,
        plan: &Plan,
        server: &Server,
        prepared: &Prepared,
        zone_work: Option<ZoneWork<'_>>,
        address: SocketAddr,
    ) -> Result<Ran, String> {
        let outage = match self.scenario.maker {
            Maker::Recovery(outage) => Some(outage),
            _ => None,
        };
        Ok(match (self.scenario.load, zone_work, outage) {
            (_, Some(work), _) => Ran::of(work.until(self.plans.time)?),
            (_, None, Some(outage)) => {
                Ran::of(recovery::run(address, &self.packets, &|change| self.change(change), outage, AWAY)?)
            }
            (Load::Quiet(_), None, None) => {
                let opened = quiet::open(plan, &self.packets);
                let (tally, quiet) = opened.map_err(|error| format!("connections: {error}"))?;
                Ran { quiet: Some(quiet), ..Ran::of(tally) }
            }
            (Load::Full | Load::Single(_) | Load::Even(_) | Load::Fixed { .. }, None, None) => {
                let (tally, events) = self.timed(plan, server, prepared)?;
                Ran { events, ..Ran::of(tally) }
            }
        })
    }

    /// Starts a fresh process and asks until it answers; wrong answers are an error.
    fn start(&self, rival: &Rival, program: &Path) -> Result<Up, String> {
        self.stubs.revive()?;
        let address = match self.pair {
            Some(pair) => {
                pair.clear();
                pair.address()
            }
            None => free_port()?,
        };
        let directory = self.plans.work.join(format!("{}-{}", self.scenario.name, rival.name));
        // What an earlier run left (a dumped cache, a database) must not help this one.
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut variables: BTreeMap<String, String> =
            self.stubs.ports().map(|(name, port)| (name.to_owned(), port.to_string())).collect();
        let clients = if self.pair.is_some() { pair::CLIENTS } else { "127.0.0.0/8" };
        let interface = self.pair.map_or("lo", |pair| pair.server.interface.as_str());
        for (name, value) in [
            ("address", address.ip().to_string()),
            ("port", address.port().to_string()),
            ("clients", clients.to_owned()),
            ("interface", interface.to_owned()),
        ] {
            variables.insert(name.to_owned(), value);
        }
        // A server that has all cores may use them as it likes.
        let (threads, workers) = if self.scenario.shares_cores {
            (self.server_cores().len(), "auto".to_owned())
        } else {
            (1, "1".to_owned())
        };
        variables.insert("threads".to_owned(), threads.to_string());
        variables.insert("workers".to_owned(), workers);
        if let Some(primary) = &self.primary {
            variables.insert("primary".to_owned(), primary.address().port().to_string());
        }
        if let Some(internet) = &self.internet {
            variables.extend(internet.variables()?.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        let secure = free_port()?;
        let certificate = self.stubs.certificate();
        for (name, value) in [
            ("secure", secure.port().to_string()),
            ("doh", self.stubs.https_port().to_string()),
            ("certificate", certificate.file.display().to_string()),
            ("key", certificate.key_file.display().to_string()),
        ] {
            variables.insert(name.to_owned(), value);
        }
        let (command, prepared) =
            rival.prepare(program, self.scenario.setting, &directory, &variables, self.rules.as_ref())?;

        let patience =
            if self.rules.is_some() || self.primary.is_some() { START_WITH_RULES_MAX } else { START_MAX };
        let quota = self.scenario.quota.map(Quota::new).transpose()?;
        let started = Instant::now();
        let (cores, log) = (self.server_cores(), directory.join("log"));
        let mut server = Server::start_within(command, &cores, &log, quota)?;
        let codes = rival.codes(self.scenario.setting)?;
        let mut probes = self.probes.clone();
        for probe in &mut probes {
            let code = &mut probe.ask.expected.rcode;
            *code = codes[usize::from(*code & 0xf)];
        }
        let first = probes.first().ok_or("no probes")?;
        let start = self.at_client(|| {
            probe::until_ready(address, rival.kind(), first, &mut server, started, patience)
        })??;
        self.pair.map_or(Ok(()), Pair::pin)?;
        if !self.scenario.shares_cores {
            server.confine(&cores);
        }
        let resident_octets_at_start = server.usage().resident_octets;
        let judgement = self.ask(rival, &probes, address)?;
        let expect = match rival.kind() {
            Kind::Dns => Expect::AsAsked(codes),
            Kind::Echo => Expect::Echo,
        };
        let plan = if self.scenario.transport.is_encrypted() {
            while let Err(error) = TcpStream::connect(secure) {
                if started.elapsed() > patience {
                    return Err(format!("answers over UDP, but nobody listens for TLS: {error}"));
                }
                thread::park_timeout(Duration::from_millis(1));
            }
            Plan { secure: Some(certificate.client()?), ..self.plan(secure, expect) }
        } else {
            self.plan(address, expect)
        };
        Ok(Up { server, prepared, address, plan, probes, start, resident_octets_at_start, judgement })
    }

    /// Returns the cores that the server runs on.
    fn server_cores(&self) -> Vec<usize> {
        if self.scenario.shares_cores { self.all_cores() } else { self.plans.server_cores.clone() }
    }

    /// Returns the cores that dnsperf runs on.
    fn load_cores(&self) -> Vec<usize> {
        if self.scenario.shares_cores { self.all_cores() } else { self.plans.load_cores.clone() }
    }

    fn all_cores(&self) -> Vec<usize> {
        let mut all = [&self.plans.server_cores[..], &self.plans.load_cores].concat();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Waits until what was asked has expired, and lets the upstream be away from then on.
    fn expire(&self, address: SocketAddr, probes: &[Probe], outage: Outage) -> Result<(), String> {
        thread::sleep(EXPIRED);
        let before = self.stubs.count()?;
        // A server that keeps answers for longer than they may be kept would not have to do what is
        // timed.
        if let Some(probe) = probes.first() {
            let deadline = Instant::now() + EXPIRED;
            while probe::ttl_now(address, &probe.ask).is_none() || self.stubs.count()? == before {
                if Instant::now() > deadline {
                    return Err(
                        "answers from memory although the TTL has run out, without asking again".to_owned()
                    );
                }
            }
        }
        self.stubs.change("stub", outage.begins())
    }

    /// Puts back the stubs if the scenario is one that changes them on its own.
    fn mend_stubs(&self) -> Result<(), String> {
        if self.scenario.disturbs_stubs() { self.restore_stubs() } else { Ok(()) }
    }

    fn restore_stubs(&self) -> Result<(), String> {
        self.stubs.restore()?;
        self.scenario.upstream_is.iter().try_for_each(|change| self.stubs.change("stub", *change))
    }

    /// Returns what is done about the server's zones, if it is that which is timed.
    fn zone_work<'w>(
        &'w self,
        server: &'w Server,
        address: SocketAddr,
        prepared: &'w Prepared,
        kind: Kind,
    ) -> Option<ZoneWork<'w>> {
        if kind == Kind::Echo {
            return None;
        }
        let what = match self.scenario.maker {
            Maker::Receiver => {
                // What a transfer begins with comes again at its end.
                zones::What::Take { records: self.rules.as_ref()?.first.records.len() as u64 + 1 }
            }
            Maker::Primary => zones::What::Give(self.primary.as_ref()?),
            Maker::Operator => zones::What::Add(prepared),
            _ => return None,
        };
        Some(ZoneWork { server, address, what })
    }

    /// Judges the answers; wrong ones are an error.
    fn ask(&self, rival: &Rival, probes: &[Probe], address: SocketAddr) -> Result<Judgement, String> {
        let mut judgement = self.at_client(|| probe::judge(address, rival.kind(), probes))?;
        judgement.remarks.extend(rival.remark(self.scenario.setting).map(str::to_owned));
        if judgement.faults.is_empty() {
            Ok(judgement)
        } else {
            Err(format!("wrong answers: {}", judgement.faults.join("; ")))
        }
    }

    /// Waits until the rule that was added is in use, if one was.
    fn await_change(
        &self,
        rival: &Rival,
        address: SocketAddr,
        server: &mut Server,
        patience: Duration,
    ) -> Result<(), String> {
        if !self.scenario.changes_rules() || rival.kind() == Kind::Echo {
            return Ok(());
        }
        let codes = rival.codes(self.scenario.setting)?;
        let mut ask = Ask::new(rules::ADDED, Rtype::A).coded(REFUSED);
        // Where another code stands for it, there are still no records.
        ask.expected.rcode = codes[usize::from(REFUSED)];
        let probe = Probe { ask, addresses: Vec::new(), ttl_max: 0, hashes_min: 0 };
        let (kind, now) = (rival.kind(), Instant::now());
        self.at_client(|| probe::until_ready(address, kind, &probe, server, now, patience))?
            .map_err(|error| format!("the rule that was added is not in use: {error}"))
            .map(drop)
    }

    /// Returns whether the names must be new to the server: nothing may be asked before it is
    /// timed.
    const fn is_fresh(&self) -> bool {
        let has_cache = !matches!(self.scenario.upstream, Upstream::Silent);
        self.scenario.passes.is_some() || (has_cache && self.scenario.questions.is_endless())
    }

    fn plan(&self, server: SocketAddr, expect: Expect) -> Plan {
        let session = (self.plans.clients, self.plans.client_addresses, self.plans.outstanding);
        let (clients, client_addresses, outstanding) = self.scenario.clients(session);
        let (time, timeout) = match self.scenario.expired {
            Some(_) => (self.plans.time.max(STALE_MIN), STALE_TIMEOUT),
            None if self.internet.is_some() => (self.plans.time, FOUND_TIMEOUT),
            None => (self.plans.time.max(event::time_min(self.scenario.events)), TIMEOUT),
        };
        Plan {
            server,
            transport: self.scenario.transport,
            secure: None,
            clients,
            client_addresses,
            outstanding,
            rate: self.scenario.rate,
            is_even: matches!(self.scenario.load, Load::Even(_)),
            begin_at: 0,
            until: match self.scenario.passes {
                Some(_) if self.internet.is_some() => Until::EachOnce(FOUND_MAX),
                Some(_) => Until::EachOnce(PASSES_MAX),
                None => Until::Elapsed(time),
            },
            timeout,
            expect,
            shuffle: self.scenario.shuffle(),
        }
    }

    /// Says how many names were answered, and what was wrong with the others.
    fn shortfall(&self, tally: &Tally) -> String {
        let complaint = tally.complaint().map(|complaint| format!(": {complaint}")).unwrap_or_default();
        format!("{} of {} names{complaint}", tally.answered, self.packets.len())
    }

    /// Asks every name once, gently, and again to let all copies settle.
    fn warm(&self, plan: &Plan) -> Result<(), String> {
        let warm = Plan { until: Until::EachAnswered(WARM_MAX), outstanding: 64, clients: 1, ..plan.clone() };
        for _ in 0..2 {
            let tally = self.load(&warm)?;
            if tally.answered < self.packets.len() as u64 {
                return Err(format!("warmed only {}", self.shortfall(&tally)));
            }
        }
        Ok(())
    }

    /// Does something where clients are.
    fn at_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, String> {
        match self.pair {
            Some(pair) => pair.at_client(work),
            None => Ok(work()),
        }
    }

    fn load(&self, plan: &Plan) -> Result<Tally, String> {
        self.at_client(|| load::run(plan, &self.packets))?.map_err(|error| format!("load: {error}"))
    }

    /// Lets dnsperf ask, with as many threads as the load has cores; front to back once, or for the
    /// session's time.
    fn dnsperf(&self, plan: &Plan, threads: usize, until: dnsperf::Until) -> Result<Tally, String> {
        let cores = &self.load_cores();
        let all_exist = (0..self.packets.len()).all(|at| self.packets.expected(at).rcode == 0);
        self.at_client(|| dnsperf::run(plan, (threads, until), &self.query_file, all_exist, cores))?
    }

    fn over_frames<'b>(&'b self, pair: &'b Pair, plan: &Plan) -> OverFrames<'b> {
        OverFrames {
            pair,
            packets: &self.packets,
            expect: plan.expect,
            rate: self.scenario.rate,
            time: self.plans.time,
        }
    }

    /// Asks for what is known while others ask so much a second.
    fn beside(&self, plan: &Plan, server: &Server, rate: u32) -> Result<Tally, String> {
        let (Some(unknown), Some(internet)) = (&self.unknown, &self.internet) else {
            return Err("nothing is asked beside it".to_owned());
        };
        let beside = Beside { known: &|| self.load(plan), plan, unknown, internet };
        if self.scenario.is_attacked() { beside.attacked(server, rate) } else { beside.found(rate) }
    }

    /// Lets dnsperf ask the same process.
    fn cross_check(&self, plan: &Plan, server: &Server) -> Result<Check, String> {
        let before = server.usage();
        let tally =
            self.dnsperf(plan, self.plans.load_cores.len(), dnsperf::Until::Elapsed(self.plans.time))?;
        let cpu = server.usage().cpu_since(&before);
        Ok(Check { cpu_us: cpu.as_secs_f64() * 1e6 / tally.answered.max(1) as f64, tally })
    }

    /// Makes the load while the scenario's events are carried out.
    fn timed(&self, plan: &Plan, server: &Server, prepared: &Prepared) -> Result<(Tally, Vec<Done>), String> {
        let for_time = dnsperf::Until::Elapsed(self.plans.time);
        let load = || match (self.scenario.maker, self.pair, self.plans.generator) {
            (Maker::Kxdpgun, Some(pair), _) => {
                let rate = self.scenario.rate.ok_or("kxdpgun asks at a rate")?;
                kxdpgun::run(pair, rate, self.plans.time, &self.query_file, &self.plans.load_cores)
            }
            (Maker::Steady, Some(pair), _) => self.over_frames(pair, plan).steady(),
            (Maker::Overload, Some(pair), _) => self.over_frames(pair, plan).overload(),
            (Maker::Beside(rate), ..) => self.beside(plan, server, rate),
            (Maker::Dnsperf(threads), ..) => {
                // The query file has each name as often as it is to be asked.
                self.dnsperf(plan, threads, self.scenario.passes.map_or(for_time, |_| dnsperf::Until::Once))
            }
            (_, _, Generator::Own) => self.load(plan),
            (_, _, Generator::Dnsperf) => self.dnsperf(plan, self.plans.load_cores.len(), for_time),
        };
        // What happens to servers and upstreams does not concern the echo: it is the limit without.
        if self.scenario.events.is_empty() || plan.expect == Expect::Echo {
            return Ok((load()?, Vec::new()));
        }
        // The events stay on this thread: what it starts ends with it.
        let (tally, done) = thread::scope(|scope| {
            let load = scope.spawn(load);
            let done = event::carry_out(self.scenario.events, server, prepared, self.stubs);
            (load.join(), done)
        });
        let changes_stubs = |event: &Event| matches!(event.what, What::Stub(..));
        if self.scenario.events.iter().any(changes_stubs) {
            self.restore_stubs()?;
        }
        let tally = tally.map_err(|_| "the load generator panicked".to_owned())??;
        Ok((tally, done?))
    }

    /// Notes what the timed part itself revealed.
    fn look_back(
        &self,
        judgement: &mut Judgement,
        rival: &Rival,
        address: SocketAddr,
        judged: Instant,
        tally: &Tally,
        upstream_queries: Option<u64>,
    ) {
        if rival.kind() == Kind::Echo {
            return;
        }
        judgement.remarks.extend(tally.complaint());
        judgement.remarks.extend(tally.remark.clone());
        let per_answer = upstream_queries.map(|queries| queries as f64 / tally.answered as f64);
        match (self.scenario.upstream, per_answer) {
            (Upstream::Silent, Some(per_answer)) if per_answer > 0.0 => {
                judgement.remarks.push(format!(
                    "asked upstream for {:.3} % of the answers, which were to come from memory",
                    100.0 * per_answer
                ));
            }
            (Upstream::Asked, Some(per_answer)) if per_answer < 0.99 => {
                judgement.remarks.push("asked upstream less than once per query".to_owned());
            }
            (Upstream::Silent | Upstream::Asked | Upstream::Sometimes, _) => {}
        }
        let is_kept = self.scenario.warm && self.scenario.expired.is_none();
        if is_kept && self.packets.len() <= FEW_MAX && judged.elapsed() >= Duration::from_secs(2) {
            let now = self
                .probes
                .first()
                .and_then(|probe| self.at_client(|| probe::ttl_now(address, &probe.ask)).ok().flatten());
            if let (Some(then), Some(now)) = (judgement.ttl, now)
                && now >= then
            {
                judgement.remarks.push("does not count TTLs down".to_owned());
            }
        }
    }
}
