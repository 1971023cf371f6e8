//! What changes of a running server cost, each beside what it has to be measured by: the time of a
//! small change, of many at once, of a start with many, the memory that they leave behind, and what
//! operators' requests cost the clients.
//!
//! Never measures without having seen the change in effect, or undone.

mod client;
mod command;
mod subject;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wire::Rtype;

pub use self::command::Command;

use self::client::Client;
use self::subject::Subject;
use crate::load::{self, Expect, Plan, Tally, Transport, Until};
use crate::queries::{Ask, Extras, Packets};
use crate::sys;

/// Changes in one transaction, and in the store at a start.
const MANY: usize = 10_000;
/// Sets that are added and removed.
const SETS: usize = 10_000;
/// Sets in one transaction.
const SETS_AT_ONCE: usize = 1_000;
/// Operators who follow the queries.
const TAILS: usize = 16;
/// How long the first events may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long memory may take to come to rest.
const REST: Duration = Duration::from_secs(40);

/// What to measure, and how.
#[derive(Clone, Debug)]
struct Order {
    /// Our program.
    gannet: PathBuf,
    /// Names in the set that small changes are made beside.
    names: usize,
    /// How often each time is taken.
    runs: usize,
    /// How long each load lasts.
    time: Duration,
    /// The cores of the server and of the load.
    cores: (usize, usize),
    /// A folder that is there, and empty.
    folder: PathBuf,
}

/// One figure beside another.
#[derive(Clone, Debug)]
struct Row {
    /// What is compared.
    what: String,
    /// The figure, and the one that it is measured by.
    figures: [f64; 2],
    /// Its unit.
    unit: &'static str,
    /// What the quotient may be at most; 0 if nothing is wanted of it.
    wanted: f64,
}

impl Row {
    /// Returns the first figure divided by the second.
    fn quotient(&self) -> f64 {
        self.figures[0] / self.figures[1]
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, figures: [this, that], unit, wanted } = self;
        write!(out, "{what:61} {unit:>3} {this:>11.2} {that:>11.2} {:>8.3}", self.quotient())?;
        if *wanted > 0.0 { write!(out, " {wanted:>7.2}") } else { Ok(()) }
    }
}

/// Measures one after the other; `found` gets each figure as soon as it is known, `progress` a line
/// per step.
fn run(order: &Order, found: &mut dyn FnMut(&Row), progress: &mut dyn FnMut(&str)) -> Result<(), String> {
    progress(&format!("small changes beside a set of {} names", order.names));
    small_changes(order)?.iter().for_each(&mut *found);
    progress(&format!("starts with {MANY} changes and without"));
    found(&starts(order)?);
    progress(&format!("memory after {SETS} sets were added and removed"));
    found(&memory(order)?);
    progress("load alone and in company");
    company(order)?.iter().for_each(&mut *found);
    Ok(())
}

/// A small change beside a large set against a reload without any and three commits; many in one
/// transaction against one.
fn small_changes(order: &Order) -> Result<Vec<Row>, String> {
    let subject = Subject::new(order, "small")?.with_large_set(order.names)?;
    let running = subject.start()?;
    let mut client = Client::connect(&subject.socket())?;
    let mut times: [Vec<Duration>; 4] = [const { Vec::new() }; 4];
    let mut members = [Vec::new(), Vec::new()];
    for round in 0..order.runs {
        let began = Instant::now();
        client.post("/api/v1/reload", "")?;
        times[0].push(began.elapsed());

        let began = Instant::now();
        client.post("/api/v1/sets/live/members", &items(round * 2, 1))?;
        times[1].push(began.elapsed());
        members[0].push(began.elapsed());

        let address = format!("192.0.2.{}", round % 200 + 1);
        let began = Instant::now();
        client.post("/api/v1/changes", &local_names(0..1, &address))?;
        times[2].push(began.elapsed());
        running.expect("n0.changed.test", &address)?;

        let began = Instant::now();
        client.post("/api/v1/changes", &local_names(1..MANY + 1, &address))?;
        times[3].push(began.elapsed());
        running.expect(&format!("n{MANY}.changed.test"), &address)?;

        let began = Instant::now();
        client.post("/api/v1/sets/live/members", &items(1_000_000 + round * MANY, MANY))?;
        members[1].push(began.elapsed());
        client.post("/api/v1/changes", r#"{"edits": [{"roll-back": {"revision": 0}}]}"#)?;
    }
    let [reload, commit, one, many] = times.map(median_ms);
    let [member, all_members] = members.map(median_ms);
    let row = |what: &str, figures, wanted| Row { what: what.to_owned(), figures, unit: "ms", wanted };
    Ok(vec![
        row("one changed setting / a reload and 3 commits", [one, 3.0f64.mul_add(commit, reload)], 1.0),
        row("10,000 changed settings at once / one", [many, one], 10.0),
        row("10,000 members of a set at once / one", [all_members, member], 0.0),
    ])
}

/// The first answer of a server with many changes in its store against one with none.
fn starts(order: &Order) -> Result<Row, String> {
    let with = Subject::new(order, "start-with")?;
    let without = Subject::new(order, "start-without")?;
    {
        let running = with.start()?;
        Client::connect(&with.socket())?.post("/api/v1/changes", &local_names(0..MANY, "192.0.2.1"))?;
        running.expect("n1.changed.test", "192.0.2.1")?;
    }
    drop(without.start()?);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..order.runs {
        for (subject, times) in [&with, &without].into_iter().zip(&mut times) {
            times.push(subject.start()?.ready_after);
        }
    }
    let [with, without] = times.map(median_ms);
    Ok(Row {
        what: format!("first answer with {MANY} changes / without"),
        figures: [with, without],
        unit: "ms",
        wanted: 1.1,
    })
}

/// Resident memory after many sets were added and removed against that before.
fn memory(order: &Order) -> Result<Row, String> {
    let subject = Subject::new(order, "memory")?;
    let running = subject.start()?;
    let mut client = Client::connect(&subject.socket())?;
    // What the first change of all takes stays, and is not what is asked for.
    let round = |client: &mut Client| -> Result<(), String> {
        let mut first = 0;
        while first < SETS {
            client.post("/api/v1/changes", &new_sets(first..first + SETS_AT_ONCE))?;
            first += SETS_AT_ONCE;
        }
        client.post("/api/v1/changes", r#"{"edits": [{"roll-back": {"revision": 0}}]}"#).map(drop)
    };
    client.post("/api/v1/changes", &new_sets(0..1))?;
    client.post("/api/v1/changes", r#"{"edits": [{"roll-back": {"revision": 0}}]}"#)?;
    let before = running.resident_at_rest(REST);
    round(&mut client)?;
    let after = running.resident_at_rest(REST);
    Ok(Row {
        what: format!("memory after {SETS} sets were added and removed / before"),
        figures: [after as f64 / 1024.0, before as f64 / 1024.0],
        unit: "KiB",
        wanted: 1.02,
    })
}

/// What 16 live tails, searches and attempts to log in cost the clients at half of saturation:
/// processor time of the workers, and the 99th percentile. Loads alone and in company take turns.
fn company(order: &Order) -> Result<Vec<Row>, String> {
    let subject = Subject::new(order, "company")?.with_recorder();
    let running = subject.start()?;
    let asks: Vec<Ask> = (0..1000).map(|at| Ask::new(format!("h{at}.hosts.test"), Rtype::A)).collect();
    let packets = Packets::new(&asks, Extras::default())?;
    let plan = Plan {
        server: running.address,
        transport: Transport::Udp,
        secure: None,
        clients: 8,
        client_addresses: 1,
        outstanding: 128,
        rate: None,
        is_even: false,
        begin_at: 0,
        until: Until::Elapsed(order.time),
        timeout: Duration::from_secs(1),
        expect: Expect::AS_ASKED,
        shuffle: None,
    };
    sys::pin_thread(&[order.cores.1]).map_err(|error| format!("core {}: {error}", order.cores.1))?;
    let saturated = load::run(&plan, &packets).map_err(|error| format!("load: {error}"))?;
    let half = Plan { rate: Some(saturated.qps() / 2.0), ..plan };
    let mut measured = [Measured::default(), Measured::default()];
    for _ in 0..order.runs {
        for (with_company, measured) in [true, false].into_iter().zip(&mut measured) {
            let (following, end) = (AtomicUsize::new(0), AtomicBool::new(false));
            thread::scope(|scope| {
                let company = with_company.then(|| keep_company(scope, &subject, (&following, &end)));
                if with_company {
                    running.ask_until(PATIENCE, || following.load(Ordering::Relaxed) == TAILS);
                }
                let before = running.workers_cpu();
                let tally = load::run(&half, &packets);
                let cpu = running.workers_cpu().saturating_sub(before);
                end.store(true, Ordering::Relaxed);
                for joined in company.into_iter().flatten() {
                    joined.join().map_err(|_| "a client panicked".to_owned())??;
                }
                measured.add(&tally.map_err(|error| format!("load: {error}"))?, cpu)
            })?;
        }
    }
    let [with, without] = measured;
    let row = |what: &str, figures, unit, wanted| Row { what: what.to_owned(), figures, unit, wanted };
    Ok(vec![
        row(
            "workers' time a query in company / alone",
            [median(with.cpu_us), median(without.cpu_us)],
            "µs",
            1.03,
        ),
        row("p99 in company / alone", [median(with.p99_us), median(without.p99_us)], "µs", 1.1),
        row("queries lost in company, of those sent", [with.lost as f64, with.sent as f64], "", 0.0),
    ])
}

#[derive(Default)]
struct Measured {
    cpu_us: Vec<f64>,
    p99_us: Vec<f64>,
    lost: u64,
    sent: u64,
}

impl Measured {
    fn add(&mut self, tally: &Tally, cpu: Duration) -> Result<(), String> {
        if tally.answered == 0 || tally.wrong() > 0 {
            return Err(format!("{} answers, {} of them wrong", tally.answered, tally.wrong()));
        }
        self.cpu_us.push(cpu.as_secs_f64() * 1e6 / tally.answered as f64);
        self.p99_us.push(tally.latency.quantile_us(0.99));
        self.lost += tally.lost;
        self.sent += tally.sent;
        Ok(())
    }
}

type Companion<'scope> = thread::ScopedJoinHandle<'scope, Result<(), String>>;

/// Has operators follow, search and try to log in until `end`; `following` is how many of them have
/// had an event.
fn keep_company<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    subject: &'scope Subject,
    (following, end): (&'scope AtomicUsize, &'scope AtomicBool),
) -> Vec<Companion<'scope>> {
    let mut all: Vec<Companion<'scope>> = Vec::new();
    for _ in 0..TAILS {
        all.push(scope.spawn(move || {
            Client::connect(&subject.socket())?.follow("/api/v1/queries/live", following, end)
        }));
    }
    all.push(scope.spawn(move || {
        let mut client = Client::connect(&subject.socket())?;
        while !end.load(Ordering::Relaxed) {
            client.get("/api/v1/queries?name=h99&count=100")?;
        }
        Ok(())
    }));
    all.push(scope.spawn(move || {
        while !end.load(Ordering::Relaxed) {
            client::try_to_log_in(subject.api())?;
        }
        Ok(())
    }));
    all
}

fn items(first: usize, count: usize) -> String {
    let items: Vec<String> = (first..first + count).map(|at| format!("\"m{at}.members.test\"")).collect();
    format!("{{\"items\": [{}]}}", items.join(","))
}

fn local_names(range: std::ops::Range<usize>, address: &str) -> String {
    edits(range.map(|at| (format!("local.n{at}.changed.test"), address.to_owned())))
}

fn new_sets(range: std::ops::Range<usize>) -> String {
    edits(range.map(|at| (format!("sets.s{at}.names"), format!("[a{at}.test, suffix:b{at}.test]"))))
}

fn edits(all: impl Iterator<Item = (String, String)>) -> String {
    let edits: Vec<String> =
        all.map(|(path, text)| format!("{{\"set\":{{\"path\":\"{path}\",\"text\":\"{text}\"}}}}")).collect();
    format!("{{\"edits\": [{}]}}", edits.join(","))
}

fn median_ms(times: Vec<Duration>) -> f64 {
    median(times.into_iter().map(|time| time.as_secs_f64() * 1e3).collect())
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}
