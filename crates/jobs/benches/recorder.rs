//! How many queries the recorder writes with a second of a processor, when they come faster than
//! that: a hundred thousand names, a thousand clients, three paths; from the workers' ring to the
//! file.

#![expect(clippy::print_stdout, reason = "a benchmark talks to its user")]

mod nobody;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine::Transport;
use events::{Addresses, Doorbell, Event, EventId, EventSet, Mark, Path as Way, ring};
use jobs::{Clock, Jobs, Parts, StepNames};
use nobody::Nobody;
use plan::jobs::{EventAction, Jobs as Plan, Recorder};
use recorder::{Reader, Wanted};
use wire::{Class, NameBuf, Rcode, Rtype};

const NAMES: usize = 100_000;
const TIME: Duration = Duration::from_secs(10);
const RING_OCTETS: usize = 256 << 10;

/// Returns the seconds of a processor that a thread of this process has used.
fn processor_seconds(thread: &str) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("the process");
    let used = tasks.filter_map(|task| {
        let folder = task.ok()?.path();
        let is_it = std::fs::read_to_string(folder.join("comm")).ok()?.trim() == thread;
        let text = std::fs::read_to_string(folder.join("schedstat")).ok().filter(|_| is_it)?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    used.sum::<f64>() / 1e9
}

fn main() {
    let folder: PathBuf = std::env::temp_dir().join(format!("gannet-recorder-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("queries.db");
    let doorbell = Arc::<Doorbell>::default();
    let since_1970 = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let workers = engine::Clock::start(since_1970, SystemTime::now);
    let (mut writer, reader) = ring(RING_OCTETS, Arc::clone(&doorbell));
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
    let plan =
        Plan { recorder: Some(recorder(&file)), event_set: vec![EventAction::Record], ..Plan::default() };
    let names = ["a", "1: cache(main)", "2: forward(default)"].map(str::to_owned).into();
    let Ok(prepared) = jobs.prepare(&plan) else { panic!("no threads") };
    jobs.adopt(prepared, &plan, &[], StepNames { snapshot: 1, names, facts: Arc::default() });

    let names: Vec<NameBuf> = (0..NAMES)
        .map(|number| format!("host{number}.example{}.org", number % 100).parse().expect("a name"))
        .collect();
    let body = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7];
    let addresses = Addresses::read(&body, 1);
    let mut event_set = EventSet::default();
    assert!(event_set.add(EventId(0), false));
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let begin = Instant::now();
    while begin.elapsed() < TIME {
        for _ in 0..200 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Few names make up most of it, as in life (Zipf).
            let share = (random >> 11) as f64 / (1_u64 << 53) as f64;
            let name = names.get((NAMES as f64).powf(share) as usize - 1).expect("one of them");
            let client = [10, 0, (random >> 8 & 3) as u8, random as u8];
            let mut way = Way::default();
            way.push(1, if random & 7 == 0 { Mark::Missed } else { Mark::Hit });
            if random & 7 == 0 {
                way.push(2, Mark::Waited);
            }
            writer.tell(&Event {
                event_set: &event_set,
                monotonic_ms: begin.elapsed().as_millis() as u64,
                waited_us: random & 0xffff,
                octets: 100,
                client: client.into(),
                port: random as u16,
                transport: Transport::Udp,
                listener: Default::default(),
                cause: None,
                qname: name.as_name(),
                qtype: Rtype::A,
                qclass: Class::IN,
                rcode: Some(Rcode::NOERROR),
                answers: 1,
                addresses: &addresses,
                snapshot: 1,
                path: &way,
                upstream: None,
                refused: 0,
            });
        }
        std::thread::yield_now();
    }
    let stats = jobs.stats();
    let seconds = processor_seconds("recorder");
    let read =
        |group: &str, name: &str| stats.get(group).and_then(|group| group.get(name)).copied().unwrap_or(0);
    let (written, dropped) = (read("recorder", "written"), read("recorder", "dropped"));
    println!(
        "{:.0} queries a second of a processor ({written} written, {dropped} left out, in {seconds:.2} s of {:.2} s)",
        written as f64 / seconds,
        begin.elapsed().as_secs_f64()
    );
    jobs.stop();
    let found =
        Reader::open(&file).and_then(|reader| reader.newest(&Wanted { count: 1, ..Wanted::default() }));
    assert!(found.is_ok_and(|found| found.len() == 1), "what was written can be read");
    std::fs::remove_dir_all(&folder).expect("our folder");
}

fn recorder(file: &Path) -> Recorder {
    Recorder {
        file: file.to_owned(),
        records_all: true,
        share_percent: 100,
        keeps_path: true,
        keep: Duration::from_secs(3600),
        octets_max: 1 << 32,
        clients: Default::default(),
        except_clients: Vec::new(),
    }
}
