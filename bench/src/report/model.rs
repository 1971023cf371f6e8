//! A session as the report sees it: facts and figures, whether fresh or read back from its files.

use std::collections::BTreeSet;

use super::environment;
use super::metric::{self, Yardstick};
use super::statistics::{Comparison, Spread};

/// The server that does no DNS: the limit of the machine.
pub const ECHO: &str = "echo";
/// The server the others are compared with.
pub const OURS: &str = "gannet";
/// A server busier than this share of its cores is what limits the throughput.
pub const SATURATED: f64 = 0.9;

/// A server that took part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// Its name.
    pub name: String,
    /// What it says of its version.
    pub version: String,
    /// How it was set up.
    pub about: String,
    /// Whether it is an echo and answers nothing.
    pub is_echo: bool,
    /// The server whose program it is, set up in another way.
    pub variant_of: Option<String>,
}

impl ServerFacts {
    /// Returns the server whose program it is.
    pub fn program(&self) -> &str {
        self.variant_of.as_deref().unwrap_or(&self.name)
    }

    /// Returns the number in what it says of its version, such as "1.26.2".
    pub fn release(&self) -> Option<&str> {
        let words = self.version.split([' ', ',', '/', '(', ')']);
        let numbers = words.map(|word| word.trim_start_matches('v'));
        numbers.filter(|word| word.contains('.')).find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    }
}

/// A scenario that was run.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioFacts {
    /// Its name.
    pub name: String,
    /// What a reader should know.
    pub about: String,
    /// How much was asked at a time, in words.
    pub load: String,
    /// Whether the load was to keep the server busy all the time, so that its limit shows.
    pub saturates: bool,
    /// The scenario that differs from it in one thing only, and was run in turn with it.
    pub beside: Option<String>,
    /// The table that it is a line of, and its queries a second.
    pub series: Option<(String, f64)>,
}

/// One timed run.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The scenario's name.
    pub scenario: String,
    /// The server's name.
    pub server: String,
    /// The round; runs of one round followed each other.
    pub round: usize,
    /// The figures, in the order of [`metric::METRICS`].
    pub figures: Vec<f64>,
}

/// What there is to say of a server in a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The scenario's name.
    pub scenario: String,
    /// The server's name.
    pub server: String,
    /// The text.
    pub text: String,
}

/// What happened in a slice of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Right answers.
    pub answered: f64,
    /// Wrong answers.
    pub wrong: f64,
    /// Queries sent in it and never answered.
    pub lost: f64,
    /// The longest that an answer took, in microseconds.
    pub latency_max_us: f64,
}

/// Something that was done during a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Incident {
    /// Seconds from the first query.
    pub at_s: f64,
    /// How long it took, in milliseconds.
    pub took_ms: f64,
    /// What it was.
    pub what: String,
}

/// The course of a run during which something happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// The scenario's name.
    pub scenario: String,
    /// The server's name.
    pub server: String,
    /// The round.
    pub round: usize,
    /// What was done.
    pub incidents: Vec<Incident>,
    /// Slices of a tenth of a second each.
    pub moments: Vec<Moment>,
}

/// All there is to report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// When it was, for people.
    pub date: String,
    /// The command lines.
    pub commands: Vec<String>,
    /// How it was done, in sentences.
    pub method: Vec<String>,
    /// The machine.
    pub environment: String,
    /// The servers, in order.
    pub servers: Vec<ServerFacts>,
    /// Servers that could not be had, and why.
    pub skipped: Vec<(String, String)>,
    /// Scenarios that wait for a capability, and for which.
    pub pending: Vec<(String, String)>,
    /// The scenarios, in order.
    pub scenarios: Vec<ScenarioFacts>,
    /// The runs, in order.
    pub records: Vec<Record>,
    /// Servers that were not timed in a scenario, and why.
    pub failures: Vec<Note>,
    /// Oddities.
    pub remarks: Vec<Note>,
    /// The courses of runs during which something happened.
    pub courses: Vec<Course>,
}

impl Model {
    /// Returns the runs of `server` in `scenario`.
    pub fn records<'a>(&'a self, scenario: &'a str, server: &'a str) -> impl Iterator<Item = &'a Record> {
        self.records.iter().filter(move |record| record.scenario == scenario && record.server == server)
    }

    /// Returns the servers that were timed in `scenario`.
    pub fn timed<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = &'a ServerFacts> {
        self.servers.iter().filter(move |server| self.records(scenario, &server.name).next().is_some())
    }

    /// Returns the servers that ours is compared with: all but the echoes and our own program.
    pub fn rivals(&self) -> impl Iterator<Item = &ServerFacts> {
        self.servers.iter().filter(|server| !server.is_echo && server.program() != OURS)
    }

    /// Returns the servers that stand beside ours in tables: the others, then the variants of ours.
    pub fn columns(&self) -> impl Iterator<Item = &ServerFacts> {
        let variants = self.servers.iter().filter(|server| server.name != OURS && server.program() == OURS);
        self.rivals().chain(variants)
    }

    /// Returns how many programs ours is compared with: variants of one are one.
    pub fn rival_programs(&self) -> usize {
        self.rivals().map(ServerFacts::program).collect::<BTreeSet<_>>().len()
    }

    /// Sums up the column of `server` in `scenario`.
    pub fn spread(&self, scenario: &str, server: &str, column: &str) -> Option<Spread> {
        let place = metric::place(column)?;
        Spread::of(self.records(scenario, server).filter_map(|record| record.figures.get(place).copied()))
    }

    /// Returns the ratios of a column between two servers, for each round that has both.
    pub fn ratios(&self, scenario: &str, server: &str, base: &str, column: &str) -> Vec<f64> {
        self.paired([scenario, server], [scenario, base], column)
    }

    /// Returns the ratios of a column of `server` between two scenarios, for each round that has
    /// both.
    pub fn ratios_beside(&self, scenario: &str, other: &str, server: &str, column: &str) -> Vec<f64> {
        self.paired([scenario, server], [other, server], column)
    }

    fn paired(&self, [scenario, server]: [&str; 2], base: [&str; 2], column: &str) -> Vec<f64> {
        let Some(place) = metric::place(column) else { return Vec::new() };
        self.records(scenario, server)
            .filter_map(|record| {
                let other = self.records(base[0], base[1]).find(|other| other.round == record.round)?;
                let (ours, theirs) = (*record.figures.get(place)?, *other.figures.get(place)?);
                (theirs > 0.0).then(|| ours / theirs)
            })
            .collect()
    }

    /// Returns the median ratio of a column to the echo of the same round.
    pub fn share_of_echo(&self, scenario: &str, server: &str, column: &str) -> Option<f64> {
        Spread::of(self.ratios(scenario, server, ECHO, column)).map(|spread| spread.median)
    }

    /// Compares ours with `rival`; `None` unless both were timed in one round, and where it would
    /// say nothing.
    pub fn comparison(&self, scenario: &str, rival: &str, yardstick: &Yardstick) -> Option<Comparison> {
        if yardstick.needs_saturation
            && (self.is_generator_bound(scenario, OURS) || self.is_generator_bound(scenario, rival))
        {
            return None;
        }
        Comparison::of(&self.ratios(scenario, OURS, rival, yardstick.column), yardstick.better)
    }

    /// Returns whether the load generator and not `server` limited the throughput: the load was to
    /// saturate the server, but it idled for more than a tenth of the time.
    pub fn is_generator_bound(&self, scenario: &str, server: &str) -> bool {
        let saturates = self.scenarios.iter().any(|facts| facts.name == scenario && facts.saturates);
        saturates && self.spread(scenario, server, "busy_share").is_some_and(|busy| busy.median < SATURATED)
    }

    /// Adds what another session found. Its rounds stay apart from those that are here.
    pub fn merge(&mut self, other: Self) {
        let first = self.records.iter().map(|record| record.round + 1).max().unwrap_or(0);
        // What one session could do already does not wait.
        if self.date.is_empty() {
            self.pending = other.pending;
        } else {
            self.pending.retain(|(name, _)| other.pending.iter().any(|(theirs, _)| theirs == name));
        }
        if self.date.is_empty() {
            self.date = other.date;
        }
        self.commands.extend(other.commands);
        if self.environment.is_empty() {
            self.environment = other.environment;
        } else if !environment::is_same(&self.environment, &other.environment) {
            self.environment.push_str("\n\n");
            self.environment.push_str(&other.environment);
        }
        add_new(&mut self.method, other.method, |a, b| a == b);
        add_new(&mut self.servers, other.servers, |a, b| a.name == b.name);
        add_new(&mut self.scenarios, other.scenarios, |a, b| a.name == b.name);
        add_new(&mut self.skipped, other.skipped, |a, b| a.0 == b.0);
        add_new(&mut self.failures, other.failures, |a, b| a == b);
        add_new(&mut self.remarks, other.remarks, |a, b| a == b);
        // What one session lacked another may have had.
        let servers = &self.servers;
        self.skipped.retain(|(name, _)| servers.iter().all(|server| server.name != *name));
        let scenarios = &self.scenarios;
        self.pending.retain(|(name, _)| {
            let is_of = |facts: &ScenarioFacts| {
                facts
                    .name
                    .strip_prefix(name.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            };
            !scenarios.iter().any(is_of)
        });
        self.records
            .extend(other.records.into_iter().map(|record| Record { round: record.round + first, ..record }));
        self.courses
            .extend(other.courses.into_iter().map(|course| Course { round: course.round + first, ..course }));
    }
}

fn add_new<T>(here: &mut Vec<T>, others: Vec<T>, is_same: fn(&T, &T) -> bool) {
    for other in others {
        if !here.iter().any(|item| is_same(item, &other)) {
            here.push(other);
        }
    }
}

impl Course {
    /// Returns the answers per slice before the first incident: the median, the first slice left
    /// out.
    pub fn usual(&self) -> Option<f64> {
        let until = self.incidents.first()?.at_s * 10.0;
        let before = self.moments.iter().take(until as usize).skip(1);
        Spread::of(before.map(|moment| moment.answered)).map(|spread| spread.median)
    }

    /// Returns the seconds from the last incident to the first slice from which on, to the end of
    /// the sending, at least nine tenths of the usual number of answers came; `None` if that never
    /// happened.
    pub fn recovery_s(&self) -> Option<f64> {
        let enough = 0.9 * self.usual()?;
        let last = self.incidents.last()?.at_s;
        // The last slice is cut short by the end of the run.
        let whole = self.moments.get(..self.moments.len().checked_sub(1)?)?;
        let bad = whole.iter().rposition(|moment| moment.answered < enough);
        let good = bad.map_or(0, |at| at + 1);
        (good < whole.len()).then(|| (good as f64 / 10.0 - last).max(0.0))
    }

    /// Says what was done, and when.
    pub fn told(&self) -> String {
        let told = |incident: &Incident| format!("{} at {:.1} s", incident.what, incident.at_s);
        self.incidents.iter().map(told).collect::<Vec<_>>().join(", ")
    }

    /// Returns the longest that an answer took, in microseconds.
    pub fn slowest_us(&self) -> f64 {
        self.moments.iter().map(|moment| moment.latency_max_us).fold(0.0, f64::max)
    }

    /// Returns how many queries were lost or answered wrongly.
    pub fn harmed(&self) -> f64 {
        self.moments.iter().map(|moment| moment.lost + moment.wrong).sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::report::metric::{METRICS, YARDSTICKS};
    use crate::report::statistics::Verdict;

    fn record(server: &str, round: usize, cpu: f64, busy: f64) -> Record {
        let mut figures = vec![1.0; METRICS.len()];
        figures[metric::place("cpu_us_per_query").expect("a column")] = cpu;
        figures[metric::place("queries_per_second").expect("a column")] = 1e6 / cpu;
        figures[metric::place("busy_share").expect("a column")] = busy;
        for (quantile, times) in [("p50", 20.0), ("p95", 40.0), ("p99", 90.0), ("max", 900.0)] {
            figures[metric::place(&format!("latency_{quantile}_us")).expect("a column")] = times * cpu;
        }
        Record { scenario: "cache-warm".to_owned(), server: server.to_owned(), round, figures }
    }

    fn server(name: &str, is_echo: bool) -> ServerFacts {
        let (version, about) = (format!("{name} 1.0"), "one <thread>".to_owned());
        ServerFacts { name: name.to_owned(), version, about, is_echo, variant_of: None }
    }

    /// Five rounds of three servers: ours twice as costly as the echo, the rival twice as costly as
    /// ours.
    pub(in crate::report) fn example() -> Model {
        let records = (0..5).flat_map(|round| {
            let noise = 1.0 + round as f64 / 100.0;
            [("echo", 2.0), ("gannet", 4.0), ("rival", 8.0)]
                .map(|(name, cpu)| record(name, round, cpu * noise, 0.95))
        });
        Model {
            date: "2026-11-20 14:00 UTC".to_owned(),
            commands: vec!["gannet-bench run --scenario cache-warm".to_owned()],
            method: vec!["Five runs.".to_owned()],
            environment: "kernel: Linux 6.1\n".to_owned(),
            servers: vec![server("echo", true), server("gannet", false), server("rival", false)],
            skipped: vec![("mosdns".to_owned(), "no program \"mosdns\" in PATH".to_owned())],
            pending: vec![("zones".to_owned(), "authoritative zones".to_owned())],
            scenarios: vec![ScenarioFacts {
                name: "cache-warm".to_owned(),
                about: "cache hits, 16 names".to_owned(),
                load: "128 queries in flight over 8 clients".to_owned(),
                saturates: true,
                beside: None,
                series: None,
            }],
            records: records.collect(),
            failures: vec![],
            remarks: vec![Note {
                scenario: "cache-warm".to_owned(),
                server: "rival".to_owned(),
                text: "does not copy RD".to_owned(),
            }],
            courses: vec![],
        }
    }

    #[test]
    fn ratios_pair_the_runs_of_one_round() {
        let model = example();
        assert_eq!(model.ratios("cache-warm", "gannet", "rival", "cpu_us_per_query"), [0.5; 5]);
        assert_eq!(model.share_of_echo("cache-warm", "rival", "cpu_us_per_query"), Some(4.0));
        let comparison = model.comparison("cache-warm", "rival", &YARDSTICKS[0]).expect("both were timed");
        assert_eq!(comparison.verdict, Verdict::Ahead);
    }

    /// The example and, in turn with it, the same with a tenth more CPU time.
    pub(in crate::report) fn beside() -> Model {
        let mut model = example();
        let cpu = metric::place("cpu_us_per_query").expect("a column");
        for mut record in model.records.clone() {
            record.scenario = "cache-edns".to_owned();
            record.figures[cpu] *= 1.1;
            model.records.push(record);
        }
        model.scenarios.push(ScenarioFacts {
            name: "cache-edns".to_owned(),
            beside: Some("cache-warm".to_owned()),
            ..model.scenarios[0].clone()
        });
        model
    }

    #[test]
    fn throughput_is_not_compared_when_the_generator_limits_it() {
        let mut model = example();
        assert!(model.comparison("cache-warm", "rival", &YARDSTICKS[1]).is_some());
        let busy = metric::place("busy_share").expect("a column");
        for record in model.records.iter_mut().filter(|record| record.server == "gannet") {
            record.figures[busy] = 0.7;
        }
        assert!(model.is_generator_bound("cache-warm", "gannet"));
        assert_eq!(model.comparison("cache-warm", "rival", &YARDSTICKS[1]), None);
        assert!(model.comparison("cache-warm", "rival", &YARDSTICKS[0]).is_some());
    }

    #[test]
    fn rounds_of_two_sessions_stay_apart() {
        let mut model = example();
        let mut other = example();
        other.skipped = vec![("nsd".to_owned(), "absent".to_owned())];
        other.servers.push(server("mosdns", false));
        model.merge(other);
        assert_eq!(model.records("cache-warm", "gannet").count(), 10);
        assert_eq!(model.ratios("cache-warm", "gannet", "rival", "cpu_us_per_query"), [0.5; 10]);
        // mosdns took part in the second session.
        assert_eq!(model.skipped, [("nsd".to_owned(), "absent".to_owned())]);
        assert_eq!(model.environment, example().environment);
    }

    #[test]
    fn what_another_session_measured_is_not_pending() {
        let mut model = example();
        let mut other = example();
        let pending = |names: &[&str]| -> Vec<(String, String)> {
            names.iter().map(|name| (name.to_string(), format!("what {name} need"))).collect()
        };
        model.pending = pending(&["zones", "xdp", "pools", "transfers"]);
        // It knew how to do transfers, although it measured none.
        other.pending = pending(&["zones", "xdp", "pools"]);
        for name in ["zones", "xdp-30k"] {
            other.scenarios.push(ScenarioFacts { name: name.to_owned(), ..other.scenarios[0].clone() });
        }
        model.merge(other);
        assert_eq!(model.pending, pending(&["pools"]));
    }

    #[test]
    fn variants_of_one_program_are_one() {
        let mut model = example();
        let variant =
            |name: &str, of: &str| ServerFacts { variant_of: Some(of.to_owned()), ..server(name, false) };
        model.servers.push(variant("rival-xdp", "rival"));
        model.servers.push(variant("gannet-asleep", "gannet"));
        let names = |servers: Vec<&ServerFacts>| servers.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(model.rivals().collect()), ["rival", "rival-xdp"]);
        assert_eq!(names(model.columns().collect()), ["rival", "rival-xdp", "gannet-asleep"]);
        assert_eq!(model.rival_programs(), 1);
    }

    #[test]
    fn a_release_is_the_number_in_what_a_program_says() {
        let release = |version: &str| {
            let server = ServerFacts { version: version.to_owned(), ..server("x", false) };
            server.release().map(str::to_owned)
        };
        for (version, number) in [
            ("Version 1.26.2", "1.26.2"),
            ("knotd, Knot DNS 3.5.8", "3.5.8"),
            ("dnsdist 2.1.3 (Lua 5.1.4 [LuaJIT 2.1.1761786044])", "2.1.3"),
            ("v5.3.4-0-gb732318", "5.3.4-0-gb732318"),
            ("BIND 9.20.30-1-Debian (Stable Release) <id:>", "9.20.30-1-Debian"),
            ("Dnsmasq version 2.93  Copyright (c) 2000-2026 Simon Kelley", "2.93"),
        ] {
            assert_eq!(release(version).as_deref(), Some(number), "{version}");
        }
        assert_eq!(release("unknown"), None);
    }

    pub(in crate::report) fn course(answered: &[f64]) -> Course {
        let moment = |&answered: &f64| Moment { answered, ..Moment::default() };
        let incident = |at_s: f64, what: &str| Incident { at_s, took_ms: 1.0, what: what.to_owned() };
        Course {
            scenario: "cache-warm".to_owned(),
            server: "gannet".to_owned(),
            round: 0,
            incidents: vec![incident(0.3, "stub stops"), incident(0.5, "stub starts")],
            moments: answered.iter().map(moment).collect(),
        }
    }

    #[test]
    fn recovery_counts_from_the_last_incident_to_lasting_answers() {
        let recovered = course(&[50.0, 100.0, 100.0, 0.0, 0.0, 0.0, 40.0, 100.0, 95.0, 100.0, 10.0]);
        assert_eq!(recovered.usual(), Some(100.0));
        assert!((recovered.recovery_s().expect("recovers") - 0.2).abs() < 1e-9);
        assert_eq!(course(&[50.0, 100.0, 100.0, 0.0, 0.0, 0.0, 0.0]).recovery_s(), None);
        assert_eq!(course(&[100.0; 9]).recovery_s(), Some(0.0));
        assert_eq!(recovered.told(), "stub stops at 0.3 s, stub starts at 0.5 s");
    }
}
