//! How long searches of a week of queries take: names by a power law, a thousand clients; and what
//! part that is of what the program `sqlite3` takes to count the same rows with `LIKE`.
//!
//! Times are of the processor: other programs do not make them longer.
//!
//! `GANNET_BENCH_QUERIES` says how many queries, 1,000,000 if it does not. With
//! `GANNET_BENCH_FOLDER` they stay there, and the next run searches the same.

#![expect(clippy::print_stdout, reason = "a benchmark talks to its user")]

mod nobody;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use engine::Transport;
use events::{Addresses, Doorbell, Event, EventId, EventSet, EventWriter, Mark, Path as Way, ring};
use jobs::{Clock, Jobs, Parts, StepNames};
use nobody::Nobody;
use plan::jobs::{EventAction, Jobs as Plan, Recorder};
use recorder::{Kind, NameTest, Names, Outcome, Reader, TopOf, Wanted};
use wire::{Class, NameBuf, Rcode, Rtype};

const NAMES: usize = 60_000;
/// How often each search is made.
const RUNS: usize = 5;
const WEEK: Duration = Duration::from_secs(7 * 86_400);

/// The workers' clock: it was zero when the program began, and for everybody else a week has passed
/// since, so that the queries are of the past week.
fn since_boot() -> Duration {
    if std::thread::current().name() == Some("main") { Duration::ZERO } else { WEEK }
}

fn main() {
    let count: u64 =
        std::env::var("GANNET_BENCH_QUERIES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let kept = std::env::var_os("GANNET_BENCH_FOLDER").map(PathBuf::from);
    let own = std::env::temp_dir().join(format!("gannet-search-{}", std::process::id()));
    let folder = kept.clone().unwrap_or_else(|| own.clone());
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("queries.db");
    if Reader::open(&file).is_err() {
        record(&file, count);
        // A server that goes on adds up the days that are over; this one has a moment for it.
        let (jobs, _) = recording(&file);
        std::thread::park_timeout(Duration::from_secs(3));
        jobs.stop();
    }
    let octets: u64 = std::fs::read_dir(&folder)
        .expect("a folder")
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .map(|found| found.len())
        .sum();
    println!("{count} queries of a week, {:.0} octets each", octets as f64 / count as f64);
    let before = resident_mib_from_now();
    searches(&file);
    println!("{} MiB resident more at most", resident_max_mib().saturating_sub(before));
    counts(&folder);
    if kept.is_none() {
        std::fs::remove_dir_all(&own).expect("our folder");
    }
}

/// Starts to record what is written into the ring.
fn recording(file: &Path) -> (Jobs, EventWriter) {
    let doorbell = Arc::<Doorbell>::default();
    let workers = engine::Clock::start(since_boot, SystemTime::now);
    let (writer, reader) = ring(16 << 20, Arc::clone(&doorbell));
    let jobs = Jobs::start(Parts {
        readers: vec![reader],
        doorbell,
        dnstap: jobs::dnstap::Parts { tap: Arc::default(), readers: Vec::new(), listeners: Vec::new() },
        clock: Clock::new(workers),
        server: Arc::new(Nobody),
        lookup: Arc::new(Nobody),
        lower_priority: || (),
    })
    .expect("threads");
    let recorder = Recorder {
        file: file.to_owned(),
        records_all: true,
        share_percent: 100,
        keeps_path: true,
        keep: 3 * WEEK,
        octets_max: 1 << 40,
        clients: Default::default(),
        except_clients: Vec::new(),
    };
    let plan = Plan { recorder: Some(recorder), event_set: vec![EventAction::Record], ..Plan::default() };
    let names = ["a", "1: cache(main)", "2: forward(default)"].map(str::to_owned).into();
    let Ok(prepared) = jobs.prepare(&plan) else { panic!("no threads") };
    jobs.adopt(prepared, &plan, &[], StepNames { snapshot: 1, names, facts: Arc::default() });
    (jobs, writer)
}

/// Records queries that are spread over the past week.
fn record(file: &Path, count: u64) {
    let (jobs, mut writer) = recording(file);
    let written = || {
        let stats = jobs.stats();
        let read = |name: &str| stats.get("recorder").and_then(|group| group.get(name)).copied().unwrap_or(0);
        assert_eq!(read("failed") + read("dropped"), 0, "everything is recorded");
        read("written")
    };
    let names: Vec<NameBuf> = (0..NAMES)
        .map(|number| format!("host{number}.example{}.org", number % 100).parse().expect("a name"))
        .collect();
    let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
    for number in 0..count {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        let share = (chance >> 11) as f64 / (1_u64 << 53) as f64;
        let name = names.get((NAMES as f64).powf(share) as usize - 1).expect("one of them");
        tell(&mut writer, name, chance, WEEK.as_millis() as u64 * number / count);
        // As fast as it is written, and no faster.
        while number % 10_000 == 0 && written() + 20_000 < number {
            std::thread::yield_now();
        }
    }
    jobs.stop();
}

fn tell(writer: &mut EventWriter, name: &NameBuf, chance: u64, monotonic_ms: u64) {
    let body = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7];
    let mut event_set = EventSet::default();
    assert!(event_set.add(EventId(0), false));
    let mut way = Way::default();
    way.push(1, if chance & 7 == 0 { Mark::Missed } else { Mark::Hit });
    if chance & 7 == 0 {
        way.push(2, Mark::Waited);
    }
    writer.tell(&Event {
        event_set: &event_set,
        monotonic_ms,
        waited_us: if chance & 7 == 0 { chance & 0xffff } else { 0 },
        octets: 100,
        client: [10, 0, (chance >> 8 & 3) as u8, chance as u8].into(),
        port: chance as u16,
        transport: Transport::Udp,
        listener: Default::default(),
        cause: None,
        qname: name.as_name(),
        qtype: Rtype::A,
        qclass: Class::IN,
        rcode: Some(Rcode::NOERROR),
        answers: 1,
        addresses: &Addresses::read(&body, 1),
        snapshot: 1,
        path: &way,
        upstream: (chance & 7 == 0).then(|| ([192, 0, 2, 53], 53).into()),
        refused: 0,
    });
}

/// Prints how long searches take.
fn searches(file: &Path) {
    let reader = Reader::open(file).expect("databases");
    let part = |text: &str| {
        let mut names = Names::default();
        names.are(NameTest::part(text));
        names
    };
    let page = Wanted { count: 100, time: Some(Duration::from_millis(250)), ..Wanted::default() };
    let client = || Some("10.0.1.7".parse().expect("a client"));
    let wanted = [
        ("the newest page", page.clone()),
        ("a client", Wanted { clients: client(), ..page.clone() }),
        ("a rare part", Wanted { names: part("host59998."), ..page.clone() }),
        ("a client and a part", Wanted { clients: client(), names: part("host777"), ..page.clone() }),
        ("a common part", Wanted { names: part(".org"), ..page.clone() }),
        ("no such part", Wanted { names: part("nothing"), ..page.clone() }),
        ("no such response code", Wanted { rcode: Some(Some(2)), ..page.clone() }),
        ("no such outcome", Wanted { outcomes: vec![Outcome::Blocked], ..page.clone() }),
        ("no such answer", Wanted { answer: "192.0.2.200".parse().ok(), ..page }),
    ];
    for (what, wanted) in wanted {
        let mut times: Vec<f64> = Vec::new();
        for _ in 0..RUNS {
            let begin = used_ms();
            let found = reader.search(&wanted).expect("a page");
            times.push(used_ms() - begin);
            if times.len() == RUNS {
                let end = if found.cursor.is_some() { "a cursor" } else { "the end" };
                println!("{what}: {}, {} queries and {end}", spread(&mut times), found.queries.len());
            }
        }
    }
    for (what, of) in [("names", TopOf::Names), ("clients", TopOf::By(Kind::Client))] {
        let mut times: Vec<f64> = Vec::new();
        for _ in 0..RUNS {
            let begin = used_ms();
            let found = reader.top(of, 0, 20).expect("an answer");
            times.push(used_ms() - begin);
            assert_eq!(found.len(), 20);
        }
        println!("the most frequent {what} of the week: {}", spread(&mut times));
    }
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..RUNS {
        let begin = used_ms();
        let found = reader.over_time(Kind::Outcome, 3600, (0, i64::MAX)).expect("an answer");
        times.push(used_ms() - begin);
        assert!(found.len() >= 7 * 24);
    }
    println!("outcomes by the hour: {}", spread(&mut times));
}

/// Prints how long the program `sqlite3` takes to count queries, one day's file after another.
fn counts(folder: &Path) {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "db"))
        .collect();
    files.sort();
    let from = "FROM queries JOIN names ON names.id = queries.name WHERE names.name LIKE";
    for (what, sql) in [
        ("a rare part", format!("SELECT count(*) {from} '%host59998.%'")),
        ("a client and a part", format!("SELECT count(*) {from} '%host777%' AND client = x'0a000107'")),
    ] {
        let mut times: Vec<f64> = Vec::new();
        let mut count = 0;
        for _ in 0..RUNS {
            let begin = used_by_others_ms();
            count = files.iter().map(|file| counted(file, &sql)).sum::<u64>();
            times.push(used_by_others_ms() - begin);
        }
        println!("sqlite3 counts {count} of {what}: {}", spread(&mut times));
    }
}

/// Returns what `sqlite3` prints; 0 for the sums, which have no such table.
fn counted(file: &Path, sql: &str) -> u64 {
    let output = Command::new("sqlite3").arg("-readonly").arg(file).arg(sql).output().expect("sqlite3");
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0)
}

/// Begins to measure the most that is resident, and returns what is now, in MiB.
fn resident_mib_from_now() -> u64 {
    // proc(5): sets VmHWM back to what is resident.
    std::fs::write("/proc/self/clear_refs", "5").expect("a kernel that counts it");
    resident_max_mib()
}

/// Returns the most that was resident, in MiB.
fn resident_max_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).expect("a number") / 1024
}

/// Sorts times and returns the median and the longest as text.
fn spread(times: &mut [f64]) -> String {
    times.sort_by(f64::total_cmp);
    let (median, longest) = (times.get(times.len() / 2), times.last());
    format!("{:.1} ms (at most {:.1})", median.expect("some"), longest.expect("some"))
}

/// Returns the milliseconds of a processor that this thread has used.
fn used_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts it");
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number") / 1e6
}

/// Returns those that programs have used that it has started and waited for.
fn used_by_others_ms() -> f64 {
    // proc(5): cutime and cstime, in hundredths of a second; behind the program's name, which may
    // have anything in it.
    let text = std::fs::read_to_string("/proc/self/stat").expect("the process");
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(13).take(2);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10.0
}
