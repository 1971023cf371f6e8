//! The recorder as a whole, on files of its own.

use std::path::{Path, PathBuf};

use super::*;
use crate::database::open;
use crate::days::{Day, DayFile, Files};

use std::fmt::Write as _;
use std::time::Duration;

use events::Mark;
use rusqlite::Connection;

use crate::clock::unix_ms_now;

use engine::Transport;
use events::{Addresses, Event, EventRecord, EventSet, ring};
use wire::{Class, NameBuf, Rcode, Rtype};

mod cleaning;
mod clients;
mod search;
mod sums;
mod tops;

use self::search::week;

fn settings(file: PathBuf) -> settings::Recorder {
    settings::Recorder {
        file,
        records_all: true,
        share_percent: 100,
        keeps_path: true,
        keep: Duration::from_secs(30 * 86_400),
        octets_max: 1 << 30,
        clients: Default::default(),
        except_clients: Vec::new(),
    }
}

/// Returns clocks of which the one of the workers stands still.
fn clock() -> Clock {
    Clock::new(engine::Clock::start(|| Duration::ZERO, std::time::SystemTime::now))
}

/// Returns the words of one record.
fn words(qname: &str, client: &str, monotonic_ms: u64) -> Vec<u64> {
    let (mut writer, mut reader) = ring(0, Arc::default());
    let qname: NameBuf = qname.parse().expect("a name");
    let mut path = events::Path::default();
    path.push(1, Mark::Failed);
    path.push(2, Mark::Hit);
    let body = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7];
    writer.tell(&Event {
        event_set: &EventSet::default(),
        monotonic_ms,
        waited_us: 3_040,
        octets: 100,
        client: client.parse().expect("an address"),
        port: 5353,
        transport: Transport::Udp,
        qname: qname.as_name(),
        qtype: Rtype::A,
        qclass: Class::IN,
        rcode: Some(Rcode::NOERROR),
        listener: Default::default(),
        cause: None,
        answers: 1,
        addresses: &Addresses::read(&body, 1),
        snapshot: 4,
        path: &path,
        upstream: Some("192.0.2.53:53".parse().expect("an address")),
        refused: 0,
    });
    let mut record = EventRecord::default();
    assert!(reader.read(&mut record));
    record.words().to_vec()
}

fn steps() -> Steps {
    let names: Arc<[String]> = ["a", "if b", "cache(main)"].map(str::to_owned).into();
    let place = |line: u32, rule: u32| (format!("gannet.yaml:{line}"), rule);
    let lists = vec![(events::list_number("ads.txt"), "ads.txt".to_owned())];
    let facts = plan::jobs::StepFacts { places: vec![place(1, 0), place(2, 1), place(2, 1)], lists };
    let other = StepNames { snapshot: 9, names: Arc::from([]), facts: Arc::default() };
    Arc::new(Mutex::new(vec![other, StepNames { snapshot: 4, names, facts: Arc::new(facts) }]))
}

/// Offers records once, and calls again until what was put aside is taken or dropped.
fn take(recorder: &Recorder, words: &[u64], records: u64) {
    let mut taking = recorder.take(words, records);
    while taking == Taking::Later {
        std::thread::yield_now();
        taking = recorder.take(&[], 0);
    }
}

/// Returns the file of today, and the one that is written, before midnight or after.
fn day_file(file: &Path) -> DayFile {
    let mut all = Files::new(file).all();
    all.pop().unwrap_or_else(|| Files::new(file).of(Day::of(unix_ms_now())))
}

/// Returns the names that a test stands for.
fn only(test: NameTest) -> Names {
    let mut names = Names::default();
    names.are(test);
    names
}

fn record(file: &Path, queries: &[(&str, &str)]) {
    let clock = clock();
    let recorder = Recorder::start(&settings(file.to_owned()), clock, steps(), || ()).expect("a thread");
    for (at, (qname, client)) in queries.iter().enumerate() {
        take(&recorder, &words(qname, client, at as u64), 1);
    }
    recorder.stop();
    assert_eq!(recorder.counts().written.read(), queries.len() as u64);
}

fn names(found: &[Recorded]) -> Vec<&str> {
    found.iter().map(|query| query.name.as_str()).collect()
}

#[test]
fn what_is_recorded_is_found_again() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("new/queries.db");
    record(&file, &[("a.example.org", "192.0.2.1"), ("B.a.example.org", "2001:db8::1"), (".", "192.0.2.1")]);
    // A second run goes on with the same file.
    record(&file, &[("xa.example.org", "192.0.2.1")]);
    let reader = Reader::open(&file).expect("a database");
    let find = |wanted: Wanted| reader.newest(&Wanted { count: 10, ..wanted }).expect("an answer");
    let all = find(Wanted::default());
    assert_eq!(names(&all), ["xa.example.org", ".", "b.a.example.org", "a.example.org"]);
    let first = &all[3];
    assert_eq!((first.qtype, first.rcode, first.waited_us, first.answers), (1, Some(0), 3_040, 1));
    assert_eq!((first.addresses.as_str(), first.transport.as_str()), ("192.0.2.7", "udp"));
    assert_eq!(first.path, "if b: no; cache(main): hit");
    let client = |text: &str| Some(text.parse::<Clients>().expect("an address"));
    assert_eq!(
        names(&find(Wanted { clients: client("2001:db8::1"), ..Wanted::default() })),
        ["b.a.example.org"]
    );
    assert_eq!(find(Wanted { clients: client("192.0.2.0/30"), ..Wanted::default() }).len(), 3);
    let named = |names: Names| find(Wanted { names, ..Wanted::default() });
    let exact = NameTest::Exact("a.example.org".to_owned());
    assert_eq!(names(&named(only(exact))), ["a.example.org"]);
    let below = named(only(NameTest::Suffix("a.example.org".to_owned())));
    assert_eq!(names(&below), ["b.a.example.org", "a.example.org"]);
    let part = |part: &str| names(&named(only(NameTest::part(part)))).join(" ");
    assert_eq!(part("a.exa"), "xa.example.org b.a.example.org a.example.org");
    assert_eq!((part("xa."), part("%"), part("_.")), ("xa.example.org".into(), String::new(), String::new()));
    let regex = NameTest::regex("^x?a[.]").expect("an expression");
    assert_eq!(names(&named(only(regex))), ["xa.example.org", "a.example.org"]);
    let mut both = only(NameTest::part("b."));
    both.are(NameTest::Suffix("example.org".to_owned()));
    assert_eq!(names(&named(both)), ["b.a.example.org"]);
    let mut without = only(NameTest::part("a."));
    without.are_not(NameTest::part("xa."));
    let of_client = Wanted { names: without, clients: client("192.0.2.1"), ..Wanted::default() };
    assert_eq!(names(&find(of_client)), ["a.example.org"]);
    let text = |text: &str| Some(text.to_owned());
    let address = |text: &str| Some(text.parse().expect("an address"));
    for (wanted, count) in [
        (Wanted { qtype: Some(1), ..Wanted::default() }, 4),
        (Wanted { qtype: Some(28), ..Wanted::default() }, 0),
        (Wanted { transport: text("udp"), ..Wanted::default() }, 4),
        (Wanted { transport: text("tcp"), ..Wanted::default() }, 0),
        (Wanted { answer: address("192.0.2.7"), ..Wanted::default() }, 4),
        // A part of an address is none.
        (Wanted { answer: address("192.0.2.70"), ..Wanted::default() }, 0),
        (Wanted { waited_us: Some(3_040), ..Wanted::default() }, 4),
        (Wanted { waited_us: Some(3_041), ..Wanted::default() }, 0),
    ] {
        assert_eq!(find(wanted.clone()).len(), count, "{wanted:?}");
    }
    assert_eq!((first.outcome, all[0].outcome), (Outcome::Cached, Outcome::Cached));
    assert_eq!((first.rule.as_str(), first.list.as_str()), ("gannet.yaml:2 cache(main)", ""));
    assert_eq!((first.upstream.as_str(), first.ede), ("", None), "nobody was asked");
    assert_eq!(reader.newest(&Wanted { count: 1, ..Wanted::default() }).expect("one").len(), 1);
    let top = reader.top(TopOf::By(Kind::Client), 0, 1).expect("an answer");
    assert_eq!(top, [Tally { what: "192.0.2.1".to_owned(), queries: 3, error: 0 }]);
    assert_eq!(reader.top(TopOf::Names, 0, 10).expect("an answer").len(), 4);
    assert_eq!(reader.top(TopOf::Names, i64::MAX, 10).expect("an answer"), []);
}

#[test]
fn the_newest_come_first_by_their_time_whatever_worker_recorded_them() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    // Two workers, each with a batch of its own.
    let recorder = Recorder::start(&settings(file.clone()), clock(), steps(), || ()).expect("a thread");
    let batch: Vec<u64> = [("b", 2_000), ("d", 4_000), ("a", 1_000), ("c", 3_000)]
        .iter()
        .flat_map(|(name, at)| words(name, "192.0.2.1", *at))
        .collect();
    take(&recorder, &batch, 4);
    recorder.stop();
    let reader = Reader::open(&file).expect("a database");
    let all = reader.newest(&Wanted { count: 10, ..Wanted::default() }).expect("an answer");
    assert_eq!(names(&all).join(" "), "d c b a");
    assert!(all.is_sorted_by_key(|query| std::cmp::Reverse(query.id)), "recorded in their order");
    let between =
        Wanted { count: 10, since_ms: Some(all[2].at_ms), until_ms: Some(all[0].at_ms), ..Wanted::default() };
    assert_eq!(names(&reader.newest(&between).expect("an answer")).join(" "), "c b");
    let last = reader.last_id().expect("a number");
    record(&file, &[("e", "192.0.2.1")]);
    let new = Wanted { count: 10, after_id: Some(last), ..Wanted::default() };
    assert_eq!(names(&reader.following(&new).expect("an answer")), ["e"]);
}

#[test]
fn what_is_old_or_too_much_is_removed() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let now_ms = unix_ms_now();
    week(&file, 4, 400);
    let days =
        || Files::new(&file).all().iter().map(|file| Day::of(now_ms).0 - file.day.0).collect::<Vec<_>>();
    let writer = |keep: Duration, octets_max: u64| {
        let rules = settings::Recorder { keep, octets_max, ..settings(file.clone()) };
        Writer::new(rules, Arc::default(), clock(), steps())
    };
    let day = |count: u64| Duration::from_secs(count * 86_400);
    assert_eq!(writer(day(7), u64::MAX).try_clean(now_ms), Ok(0));
    // A day goes when all of it is old enough.
    assert_eq!(writer(day(2), u64::MAX).try_clean(now_ms), Ok(400));
    assert_eq!(days(), [2, 1, 0]);
    // Then there is room for one less.
    let octets: u64 = Files::new(&file).all().iter().map(DayFile::octets).sum();
    assert_eq!((writer(day(7), octets - 1).try_clean(now_ms), days()), (Ok(400), vec![1, 0]));
    // Less than a day: row after row.
    let today = Day::of(now_ms);
    let mut by_row = writer(Duration::from_millis(300), u64::MAX);
    assert_eq!((by_row.try_clean(today.begin_ms() + 501), days()), (Ok(400 + 200), vec![0]));
    let reader = Reader::open(&file).expect("a database");
    let left = reader.newest(&Wanted { count: 1000, ..Wanted::default() }).expect("an answer");
    assert_eq!((left.len(), left.last().map(|query| query.at_ms)), (200, Some(today.begin_ms() + 201)));
}

#[test]
fn of_a_day_that_is_too_large_alone_the_oldest_rows_go() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    record(&file, &(0..500).map(|_| ("a.example.org", "192.0.2.1")).collect::<Vec<_>>());
    let mut database = open(&day_file(&file)).expect("a database");
    let removed = database::clean_by_size(&mut database, 40_000).expect("it cleans");
    assert!(removed > 20 && removed < 500, "{removed}");
    let left: (i64, i64) = database
        .query_row("SELECT count(*), min(id) FROM queries", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("a count");
    assert_eq!(left, (500 - removed as i64, removed as i64 + 1), "the oldest go first");
    database::clean_by_age(&mut database, i64::MAX).expect("it cleans");
    let left: i64 = database
        .query_row("SELECT (SELECT count(*) FROM queries) + (SELECT count(*) FROM names) + (SELECT count(*) FROM paths)", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(left, 0);
}

#[test]
fn a_file_that_is_removed_or_cut_off_is_begun_anew_and_the_others_are_read_on() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    week(&file, 2, 5);
    let all = |reader: &Reader| reader.search(&Wanted { count: 100, ..Wanted::default() }).expect("a page");
    let recorder = Recorder::start(&settings(file.clone()), clock(), steps(), || ()).expect("a thread");
    let wait_for = |count: u64| {
        while recorder.counts().written.read() < count {
            std::thread::yield_now();
        }
    };
    take(&recorder, &words("one.example.org", "192.0.2.1", 0), 1);
    wait_for(1);
    // Somebody deletes today's file while it is written.
    let today = day_file(&file);
    today.remove().expect("it is removed");
    take(&recorder, &words("two.example.org", "192.0.2.1", 0), 1);
    wait_for(2);
    recorder.stop();
    let reader = Reader::open(&file).expect("databases");
    assert_eq!(all(&reader).queries.len(), 1 + 5, "what was in it is gone, and the rest is there");
    // Something overwrites it.
    let octets = std::fs::read(&today.path).expect("a file");
    std::fs::write(&today.path, &octets[..octets.len() / 3]).expect("it is written");
    let page = all(&reader);
    assert!(page.queries.len() >= 5 && page.unreadable.len() <= 1, "{page:?}");
    std::fs::write(
        &today.path,
        "no database, and longer than a header, but of nothing else
"
        .repeat(90),
    )
    .expect("it is written");
    let page = all(&reader);
    assert_eq!((page.queries.len(), page.unreadable.len()), (5, 1));
    record(&file, &[("three.example.org", "192.0.2.1"), ("four.example.org", "192.0.2.1")]);
}

#[test]
fn nobody_else_can_read_who_asked_for_what() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    record(&file, &[("b.example", "192.0.2.1")]);
    let day = day_file(&file);
    let modes = || -> Vec<u32> {
        ["", "-wal", "-shm"]
            .iter()
            .map(|end| {
                let path = format!("{}{end}", day.path.display());
                std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
            })
            .collect()
    };
    let database = open(&day).expect("a database");
    database.execute("INSERT INTO names (name) VALUES ('a.example')", []).expect("a row");
    assert_eq!(modes(), [0o600; 3]);
    // Those of servers that made it for everybody to read.
    for end in ["", "-wal", "-shm"] {
        let path = format!("{}{end}", day.path.display());
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).expect("rights");
    }
    drop(open(&day).expect("a database"));
    assert_eq!(modes(), [0o600; 3]);
    drop(database);
}

#[test]
fn files_of_older_versions_are_read_on() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let old = Connection::open(&file).expect("a database");
    old.execute_batch(
        "CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
         CREATE TABLE paths (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE) STRICT;
         CREATE TABLE queries (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, waited_ms INTEGER NOT NULL, client BLOB NOT NULL,
           port INTEGER NOT NULL, transport TEXT NOT NULL, name INTEGER NOT NULL REFERENCES names (id), type INTEGER NOT NULL,
           class INTEGER NOT NULL, rcode INTEGER, answers INTEGER NOT NULL, addresses TEXT, path INTEGER REFERENCES paths (id)) STRICT;
         PRAGMA user_version = 1;
         INSERT INTO names VALUES (1, 'old.example.org');
         INSERT INTO paths VALUES (1, '3: if qname in ads: yes; 3: block: answers');
         INSERT INTO queries VALUES (1, unixepoch() * 1000 - 1000, 12, x'c0000201', 53, 'udp', 1, 1, 1, 0, 1, '192.0.2.7', 1);",
    )
    .expect("a database of version 1");
    let check = |waited_us| {
        record(&file, &[("new.example.org", "192.0.2.1")]);
        let reader = Reader::open(&file).expect("a database");
        let clients = Some("192.0.2.1".parse().expect("an address"));
        let found = reader.newest(&Wanted { count: 9, clients, ..Wanted::default() }).expect("an answer");
        let names = names(&found);
        assert_eq!((names.first(), names.last()), (Some(&"new.example.org"), Some(&"old.example.org")));
        let old = found.last().expect("a row");
        assert_eq!((old.waited_us, old.one_of, old.outcome), (waited_us, 1, Outcome::Blocked));
        let old_name = only(NameTest::part("old"));
        for wanted in [
            Wanted { names: old_name, ..Wanted::default() },
            Wanted { outcomes: vec![Outcome::Blocked], ..Wanted::default() },
            Wanted { waited_us: Some(12_000), ..Wanted::default() },
        ] {
            let wanted = Wanted { count: 9, ..wanted };
            assert_eq!(reader.newest(&wanted).expect("an answer").len(), 1, "{wanted:?}");
        }
        assert_eq!(
            reader.top(TopOf::Names, 0, 9).expect("an answer").last().expect("one").what,
            "old.example.org"
        );
    };
    check(12_000);
    old.execute_batch(
        "ALTER TABLE queries ADD COLUMN waited_us INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE queries ADD COLUMN one_of INTEGER NOT NULL DEFAULT 1;
         CREATE TABLE client_blocks (block INTEGER, client BLOB, PRIMARY KEY (block, client)) STRICT, WITHOUT ROWID;
         CREATE TABLE name_blocks (block INTEGER, name INTEGER, PRIMARY KEY (block, name)) STRICT, WITHOUT ROWID;
         INSERT INTO client_blocks VALUES (0, x'c0000201');
         INSERT INTO name_blocks VALUES (0, 1);
         UPDATE queries SET waited_us = 5;
         PRAGMA user_version = 2;",
    )
    .expect("a database of version 2");
    drop(old);
    check(12_005);
    // It goes when its newest row is too old.
    let rules = settings::Recorder { keep: Duration::from_secs(3600), ..settings(file.clone()) };
    let mut writer = Writer::new(rules, Arc::default(), clock(), steps());
    writer.try_clean(unix_ms_now() + 2 * 3_600_000).expect("it cleans");
    assert!(!file.exists());
}

#[test]
fn a_database_of_another_version_is_put_aside() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    record(&file, &[("a.example.org", "192.0.2.1")]);
    let day = day_file(&file);
    day.remove().expect("it is removed");
    let other = Connection::open(&day.path).expect("a database");
    other.execute_batch("CREATE TABLE x (y); PRAGMA user_version = 7;").expect("it is made");
    drop(other);
    let all = Wanted { count: 9, ..Wanted::default() };
    let reader = Reader::open(&file).expect("a file");
    assert!(
        reader.search(&all).is_err_and(|why| why.contains("no record of queries that this program reads"))
    );
    record(&file, &[("a.example.org", "192.0.2.1")]);
    assert!(days::with_end(&day.path, ".version-7").is_file());
    assert_eq!(reader.search(&all).expect("a page").queries.len(), 1);
}

#[test]
fn what_cannot_be_written_is_counted_and_slows_nobody() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    // A file is no folder.
    let rules = settings(folder.path().join("a file/queries.db"));
    std::fs::write(folder.path().join("a file"), "").expect("a file");
    let recorder = Recorder::start(&rules, clock(), steps(), || ()).expect("a thread");
    take(&recorder, &words("a.example.org", "192.0.2.1", 0), 1);
    recorder.stop();
    assert_eq!((recorder.counts().written.read(), recorder.counts().failed.read()), (0, 1));
    take(&recorder, &words("a.example.org", "192.0.2.1", 0), 1);
    assert_eq!(recorder.counts().dropped.read(), 1, "nobody takes it any more");
    let recorder = Recorder::start(&rules, clock(), steps(), || ()).expect("a thread");
    let many = WAITING_OCTETS_MAX / 8 + 1;
    take(&recorder, &vec![1; many], many as u64);
    recorder.stop();
    let (dropped, failed) = (recorder.counts().dropped.read(), recorder.counts().failed.read());
    assert!(dropped > 1000 && dropped + failed == many as u64, "{dropped} {failed}");
}

/// A recorder without a writer: nobody takes out what is put in.
fn without_writer() -> Recorder {
    Recorder {
        settings: settings(PathBuf::from("queries.db")),
        shared: Arc::default(),
        aside: Mutex::default(),
        thread: Mutex::default(),
    }
}

#[test]
fn a_writer_that_stands_still_costs_records_and_each_is_counted() {
    let recorder = without_writer();
    let words = words("a.example.org", "192.0.2.1", 0);
    let room = (WAITING_OCTETS_MAX / (words.len() * size_of::<u64>())) as u64;
    let mut offered = 0;
    let mut take_times = |times| {
        for _ in 0..times {
            assert_eq!(recorder.take(&words, 1), Taking::Done);
            offered += 1;
        }
        let waiting = recorder.shared.lock().sample.records();
        (offered, waiting, recorder.counts().dropped.read())
    };
    assert_eq!(take_times(room), (room, room, 0));
    let (offered, waiting, dropped) = take_times(10);
    assert!(waiting > room / 3 && waiting + dropped == offered, "{waiting} {dropped} {offered}");
    let (offered, waiting, dropped) = take_times(5 * room);
    assert!(waiting > room / 3 && waiting + dropped == offered, "{waiting} {dropped} {offered}");
    // While the writer is at it, records are put aside, a sample of them when there are many:
    // nobody waits.
    let held = recorder.shared.lock();
    assert_eq!(recorder.take(&words, 1), Taking::Later);
    assert_eq!(recorder.counts().dropped.read(), dropped);
    for _ in 0..room {
        assert_eq!(recorder.take(&words, 1), Taking::Later);
    }
    drop(held);
    assert_eq!(recorder.take(&[], 0), Taking::Done);
    let offered = offered + 1 + room;
    let (waiting, dropped) = (recorder.shared.lock().sample.records(), recorder.counts().dropped.read());
    assert_eq!(waiting + dropped, offered);
    recorder.close();
    assert_eq!(recorder.take(&words, 1), Taking::Done);
    assert_eq!(recorder.counts().dropped.read(), dropped + 1, "it has ended");
}

#[test]
fn a_burst_is_recorded_as_an_even_sample_that_adds_up_and_is_told_of_once() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    // The burst comes before the writer does.
    let recorder = without_writer();
    let lines = Lines::default();
    let total: u64 = tracing::subscriber::with_default(lines.clone(), || {
        let burst = |qname: &str, count: u64| {
            let words = words(qname, "192.0.2.1", 0);
            let words = words.repeat(100);
            (0..count / 100).for_each(|_| take(&recorder, &words, 100));
            count
        };
        burst("early.example.org", 40_000)
            + burst("middle.example.org", 40_000)
            + burst("late.example.org", 40_000)
    });
    let dropped = recorder.counts().dropped.read();
    let lines = lines.0.lock().expect("nobody panicked").clone();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("an even sample") && lines[0].contains("dropped="), "{lines:?}");
    recorder.close();
    let mut writer = Writer::new(settings(file.clone()), Arc::clone(&recorder.shared), clock(), steps());
    writer.work();
    assert_eq!(recorder.counts().written.read() + dropped, total);
    let reader = Reader::open(&file).expect("a database");
    let top = reader.top(TopOf::Names, 0, 10).expect("an answer");
    assert_eq!(top.len(), 3);
    for Tally { what, queries, error } in top {
        assert!(queries.abs_diff(40_000) < 2_000 && error == 0, "{what}: {queries}");
    }
    let one = reader.newest(&Wanted { count: 1, ..Wanted::default() }).expect("an answer");
    assert!(one[0].one_of > 1, "{one:?}");
}

#[test]
fn what_is_recorded_is_heard_by_who_watches_and_what_is_too_much_is_counted() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    record(&file, &[("old.example.org", "192.0.2.1"), ("a.example.org", "192.0.2.1")]);
    let reader = || Reader::new(&file);
    let last = reader().last_id().expect("a number");
    let heard = |told: Option<Told>| match told {
        Some(Told::Query(query)) => query.name,
        other => format!("{other:?}"),
    };
    // One from now on, for some names, and one that was away.
    let mut now = Live::new(
        reader(),
        Wanted { names: only(NameTest::part("b")), ..Wanted::default() },
        None,
        Arc::default(),
    )
    .expect("a reader");
    let mut away = Live::new(reader(), Wanted::default(), Some(last - 1), Arc::default()).expect("a reader");
    record(&file, &[("c.example.org", "192.0.2.1"), ("b.example.org", "192.0.2.1")]);
    assert_eq!(heard(now.next()), "b.example.org");
    let all: Vec<String> = (0..3).map(|_| heard(away.next())).collect();
    assert_eq!(all, ["a.example.org", "c.example.org", "b.example.org"]);
    let many: Vec<_> = (0..5_000).map(|_| ("b.example.org", "192.0.2.1")).collect();
    record(&file, &many);
    assert_eq!(away.next(), Some(Told::Missed(5_000 - 4_096)));
    assert_eq!(heard(away.next()), "b.example.org");
    assert_eq!(away.by_ref().take(4_095).filter(|told| matches!(told, Told::Query(_))).count(), 4_095);
    away.look();
    record(&file, &[("last.example.org", "192.0.2.1")]);
    assert_eq!(heard(away.next()), "last.example.org");
    // Sixteen share what one could take.
    let readers = Arc::new(());
    let others = vec![Arc::clone(&readers); 15];
    let mut one = Live::new(reader(), Wanted::default(), None, Arc::clone(&readers)).expect("a reader");
    record(&file, &many);
    assert_eq!(one.next(), Some(Told::Missed(5_000 - 4_096 / 16)));
    drop(others);
    record(&file, &[("last.example.org", "192.0.2.1")]);
    assert_eq!(one.by_ref().take(4_096 / 16 + 1).filter(|told| matches!(told, Told::Query(_))).count(), 257);
}

#[test]
fn who_watches_while_the_first_file_is_made_hears_the_first_query() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    // The writer makes the file, then its tables.
    let day = day_file(&file);
    std::fs::write(&day.path, "").expect("a file");
    let mut live = Live::new(Reader::new(&file), Wanted::default(), None, Arc::default()).expect("a reader");
    record(&file, &[("a.example.org", "192.0.2.1")]);
    let heard = live.next();
    assert!(matches!(&heard, Some(Told::Query(query)) if query.name == "a.example.org"), "{heard:?}");
}

#[test]
fn what_one_client_asked_for_is_removed_while_others_are_recorded() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    week(&file, 2, 300);
    let recorder = Recorder::start(&settings(file.clone()), clock(), steps(), || ()).expect("a thread");
    let ask = |queries: &[(&str, &str)], count: u64| {
        queries.iter().for_each(|(name, client)| take(&recorder, &words(name, client, 0), 1));
        while recorder.counts().written.read() < count {
            std::thread::yield_now();
        }
    };
    ask(
        &[
            ("secret.example.org", "192.0.2.77"),
            ("shared.example.org", "192.0.2.77"),
            ("shared.example.org", "192.0.2.1"),
        ],
        3,
    );
    let clients: Clients = "192.0.2.77".parse().expect("a client");
    assert_eq!(recorder.forget_clients(clients), Ok(2));
    assert_eq!(recorder.forget_clients(clients), Ok(0));
    // What was forgotten is written anew when it comes again.
    ask(
        &[
            ("shared.example.org", "192.0.2.1"),
            ("other.example.org", "192.0.2.1"),
            ("secret.example.org", "192.0.2.2"),
        ],
        6,
    );
    recorder.stop();
    let reader = Reader::open(&file).expect("databases");
    let find = |wanted: Wanted| reader.newest(&Wanted { count: 1000, ..wanted }).expect("an answer");
    assert!(find(Wanted { clients: Some(clients), ..Wanted::default() }).is_empty());
    assert_eq!(find(Wanted { names: only(NameTest::part("shared")), ..Wanted::default() }).len(), 2);
    let secret =
        find(Wanted { names: only(NameTest::Exact("secret.example.org".into())), ..Wanted::default() });
    assert_eq!(secret.iter().map(|query| query.client.to_string()).collect::<Vec<_>>(), ["192.0.2.2"]);
    assert_eq!(find(Wanted::default()).len(), 600 + 4);
    // Nothing of it is left in the file of today.
    let octets = std::fs::read(&day_file(&file).path).expect("a file");
    assert!(!octets.windows(4).any(|octets| octets == [192, 0, 2, 77]));
}

/// Collects events as text.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Fields(String);
        impl tracing::field::Visit for Fields {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                let _ = write!(self.0, "{}={value:?} ", field.name());
            }
        }
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.0.lock().expect("nobody panicked").push(fields.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn ways_through_the_policy_and_names_are_told_apart() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    record(
        &file,
        &[("a.example.org", "192.0.2.1"), ("A.Example.ORG", "192.0.2.1"), ("[.example.org", "192.0.2.1")],
    );
    let database = open(&day_file(&file)).expect("a database");
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        database.query_row(&sql, [], |row| row.get(0)).expect("a count")
    };
    assert_eq!((count("queries"), count("names"), count("paths")), (3, 2, 1));
}
