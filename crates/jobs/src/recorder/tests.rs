//! The recorder as a whole, on files of its own.

use std::path::{Path, PathBuf};

use super::*;

use engine::Transport;
use events::{Addresses, Event, EventRecord, EventSet, ring};
use wire::{Class, NameBuf, Rcode, Rtype};

fn settings(file: PathBuf) -> settings::Recorder {
    settings::Recorder {
        file,
        records_all: true,
        share_percent: 100,
        keeps_path: true,
        keep: Duration::from_secs(3600),
        octets_max: 1 << 30,
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
    });
    let mut record = EventRecord::default();
    assert!(reader.read(&mut record));
    record.words().to_vec()
}

fn steps() -> Steps {
    let names: Arc<[String]> = ["a", "if b", "cache(main)"].map(str::to_owned).into();
    Arc::new(Mutex::new(vec![(9, Arc::from([])), (4, names)]))
}

/// Offers records once, and calls again until what was put aside is taken or dropped.
fn take(recorder: &Recorder, words: &[u64], records: u64) {
    let mut taking = recorder.take(words, records);
    while taking == Taking::Later {
        std::thread::yield_now();
        taking = recorder.take(&[], 0);
    }
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
    let client = |text: &str| Some(text.parse().expect("an address"));
    assert_eq!(
        names(&find(Wanted { client: client("2001:db8::1"), ..Wanted::default() })),
        ["b.a.example.org"]
    );
    let name = Some("a.example.org".to_owned());
    assert_eq!(names(&find(Wanted { name: name.clone(), ..Wanted::default() })), ["a.example.org"]);
    let below = find(Wanted { name, covers_below: true, ..Wanted::default() });
    assert_eq!(names(&below), ["b.a.example.org", "a.example.org"]);
    let text = |text: &str| Some(text.to_owned());
    let part = |part: &str| names(&find(Wanted { part: text(part), ..Wanted::default() })).join(" ");
    assert_eq!(part("a.exa"), "xa.example.org b.a.example.org a.example.org");
    assert_eq!((part("xa."), part("%"), part("_.")), ("xa.example.org".into(), String::new(), String::new()));
    let both =
        Wanted { part: text("b."), name: text("example.org"), covers_below: true, ..Wanted::default() };
    assert_eq!(names(&find(both)), ["b.a.example.org"]);
    let of_client =
        Wanted { part: text("a."), client: client("192.0.2.1"), without: text("xa."), ..Wanted::default() };
    assert_eq!(names(&find(of_client)), ["a.example.org"]);
    for (wanted, count) in [
        (Wanted { qtype: Some(1), ..Wanted::default() }, 4),
        (Wanted { qtype: Some(28), ..Wanted::default() }, 0),
        (Wanted { transport: text("udp"), ..Wanted::default() }, 4),
        (Wanted { transport: text("tcp"), ..Wanted::default() }, 0),
        (Wanted { answer: client("192.0.2.7"), ..Wanted::default() }, 4),
        // A part of an address is none.
        (Wanted { answer: client("192.0.2.70"), ..Wanted::default() }, 0),
        (Wanted { waited_us: Some(3_040), ..Wanted::default() }, 4),
        (Wanted { waited_us: Some(3_041), ..Wanted::default() }, 0),
    ] {
        assert_eq!(find(wanted.clone()).len(), count, "{wanted:?}");
    }
    assert_eq!(reader.newest(&Wanted { count: 1, ..Wanted::default() }).expect("one").len(), 1);
    let top = reader.top_clients(0, 1).expect("an answer");
    assert_eq!(top, [("192.0.2.1".to_owned(), 3)]);
    assert_eq!(reader.top_names(0, 10).expect("an answer").len(), 4);
    assert_eq!(reader.top_names(i64::MAX, 10).expect("an answer"), []);
}

#[test]
fn the_newest_come_first_by_their_time_whatever_worker_recorded_them() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    record(&file, &[("first.example.org", "192.0.2.1")]);
    let database = open(&file).expect("a database");
    let insert = |name: &str, at_ms: i64, rcode: Option<u16>, path: &str| {
        database
            .execute_batch(&format!(
                "INSERT OR IGNORE INTO names (name) VALUES ('{name}'); INSERT OR IGNORE INTO paths (path) VALUES ('{path}');
                 INSERT INTO queries (at_ms, waited_ms, client, port, transport, name, type, class, rcode, answers, path)
                 VALUES ({at_ms}, 0, x'c0000201', 53, 'udp', (SELECT id FROM names WHERE name = '{name}'), 1, 1, {}, 0,
                 (SELECT id FROM paths WHERE path = '{path}'))",
                rcode.map_or_else(|| "NULL".to_owned(), |rcode| rcode.to_string()),
            ))
            .expect("a row");
    };
    // Two workers, each with a batch of its own.
    insert("b", 2_000, Some(0), "7: if qname in blocked: no; 8: forward(default): waits");
    insert("d", 4_000, Some(3), "7: if qname in blocked: yes; 7: block(nxdomain): answers");
    insert("a", 1_000, Some(2), "8: forward(default): waits");
    insert("c", 3_000, None, "9: drop: ends");
    let reader = Reader::open(&file).expect("a database");
    let find = |wanted: Wanted| {
        let wanted = Wanted { count: 10, until_ms: wanted.until_ms.or(Some(10_000)), ..wanted };
        names(&reader.newest(&wanted).expect("an answer")).join(" ")
    };
    assert_eq!(find(Wanted::default()), "d c b a");
    assert_eq!(find(Wanted { since_ms: Some(2_000), until_ms: Some(4_000), ..Wanted::default() }), "c b");
    assert_eq!(find(Wanted { rcode: Some(Some(2)), ..Wanted::default() }), "a");
    assert_eq!(find(Wanted { rcode: Some(None), ..Wanted::default() }), "c");
    assert_eq!(find(Wanted { blocked: true, ..Wanted::default() }), "d c");
    let last = reader.last_id().expect("a number");
    insert("e", 500, Some(0), "8: forward(default): waits");
    let new = Wanted { count: 10, after_id: Some(last), ..Wanted::default() };
    assert_eq!(names(&reader.following(&new).expect("an answer")), ["e"]);
}

#[test]
fn what_is_old_or_too_much_is_removed() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    record(&file, &(0..500).map(|_| ("a.example.org", "192.0.2.1")).collect::<Vec<_>>());
    let mut database = open(&file).expect("a database");
    let count = |database: &Connection| -> i64 {
        database.query_row("SELECT count(*) FROM queries", [], |row| row.get(0)).expect("a count")
    };
    let mut rules = settings(file);
    assert_eq!(clean(&mut database, &rules, unix_ms_now()), Ok(0));
    rules.octets_max = 40_000;
    let removed = clean(&mut database, &rules, unix_ms_now()).expect("it cleans");
    assert!(removed > 20 && removed < 500, "{removed}");
    assert_eq!(count(&database), 500 - removed as i64);
    let oldest: i64 = database.query_row("SELECT min(id) FROM queries", [], |row| row.get(0)).expect("an id");
    assert_eq!(oldest, removed as i64 + 1, "the oldest go first");
    let later = unix_ms_now() + 2 * 3_600_000;
    clean(&mut database, &rules, later).expect("it cleans");
    assert_eq!(count(&database), 0);
    let left: i64 = database
        .query_row("SELECT (SELECT count(*) FROM names) + (SELECT count(*) FROM paths)", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(left, 0);
}

#[test]
fn nobody_else_can_read_who_asked_for_what() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let modes = || -> Vec<u32> {
        ["", "-wal", "-shm"]
            .iter()
            .map(|end| {
                let path = format!("{}{end}", file.display());
                std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
            })
            .collect()
    };
    let database = open(&file).expect("a database");
    database.execute("INSERT INTO names (name) VALUES ('a.example')", []).expect("a row");
    assert_eq!(modes(), [0o600; 3]);
    // Those of servers that made it for everybody to read.
    for end in ["", "-wal", "-shm"] {
        let path = format!("{}{end}", file.display());
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).expect("rights");
    }
    drop(open(&file).expect("a database"));
    assert_eq!(modes(), [0o600; 3]);
    drop(database);
}

#[test]
fn the_questions_people_ask_use_an_index() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    drop(open(&file).expect("a database"));
    let reader = Reader::open(&file).expect("a database");
    let check_of = |wanted: Wanted, is_frequent: bool, expected: &[&str]| {
        let order = if wanted.after_id.is_some() { "queries.id" } else { "at_ms DESC, queries.id DESC" };
        let sql = read::statement(&wanted, order, is_frequent);
        let mut query = reader.database.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a statement");
        for at in 1..=query.parameter_count() {
            query.raw_bind_parameter(at, rusqlite::types::Null).expect("it is bound");
        }
        let mut rows = query.raw_query();
        let mut plan = Vec::new();
        while let Some(row) = rows.next().expect("a plan") {
            plan.push(row.get::<_, String>("detail").expect("text"));
        }
        let plan = plan.join("\n");
        let mut rest = plan.as_str();
        for part in expected {
            // One after the other.
            rest = rest.split_once(part).unwrap_or_else(|| panic!("no {part} in its place in\n{plan}")).1;
        }
        let is_full = plan.lines().any(|line| line == "SCAN queries");
        assert!(!is_full, "{plan}");
    };
    let check = |wanted: Wanted, expected: &[&str]| check_of(wanted, false, expected);
    let some = Wanted { count: 20, ..Wanted::default() };
    let part = Wanted { part: Some("a".to_owned()), ..some.clone() };
    check(
        part.clone(),
        &["MATERIALIZE chosen", "USING PRIMARY KEY (block=? AND name=?)", "USING INTEGER PRIMARY KEY"],
    );
    // From the newest back, until there are enough.
    check_of(part, true, &["SCAN queries USING INDEX queries_by_time"]);
    let client = Some("192.0.2.1".parse().expect("an address"));
    let name = Some("a.example.org".to_owned());
    const ROWS: &str = "SEARCH queries USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)";
    let by_client = "USING PRIMARY KEY (block=? AND client=?)";
    let by_name = "USING PRIMARY KEY (block=? AND name=?)";
    check(Wanted { client, ..some.clone() }, &["MATERIALIZE chosen", by_client, ROWS]);
    check(Wanted { name: name.clone(), ..some.clone() }, &["MATERIALIZE chosen", by_name, ROWS]);
    let below = Wanted { name: name.clone(), covers_below: true, ..some.clone() };
    check(below, &["MATERIALIZE chosen", by_name, ROWS]);
    let both = Wanted { client, name: name.clone(), since_ms: Some(5), ..some.clone() };
    check(both, &["MATERIALIZE chosen", by_client, by_name, ROWS]);
    check(
        Wanted { name, after_id: Some(5), ..some.clone() },
        &["SEARCH queries USING INTEGER PRIMARY KEY (rowid>?)"],
    );
    check(
        Wanted { since_ms: Some(5), ..some.clone() },
        &["SEARCH queries USING INDEX queries_by_time (at_ms>?)"],
    );
    check(some, &["SCAN queries USING INDEX queries_by_time"]);
}

#[test]
fn a_client_and_a_name_are_found_in_every_block() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let block = 1_i64 << database::BLOCK_BITS;
    let jump = |id: i64| {
        // As if so many rows had been written and removed.
        let database = open(&file).expect("a database");
        let sql =
            "INSERT INTO queries (id, at_ms, waited_ms, client, port, transport, name, type, class, answers)
                   VALUES (?1, 0, 0, x'c0000209', 0, 'udp', 1, 1, 1, 0)";
        database.execute(sql, [id]).expect("a row");
    };
    record(&file, &[("a.example.org", "192.0.2.1"), ("b.example.org", "192.0.2.2")]);
    jump(block - 2);
    record(
        &file,
        &[("b.example.org", "192.0.2.2"), ("a.example.org", "192.0.2.1"), ("a.example.org", "192.0.2.1")],
    );
    jump(4 * block + 7);
    record(&file, &[("A.example.org", "192.0.2.1"), ("x.a.example.org", "192.0.2.2")]);
    let reader = Reader::open(&file).expect("a database");
    let ids = |wanted: Wanted| -> Vec<i64> {
        let found = reader.newest(&Wanted { count: 100, since_ms: Some(1), ..wanted }).expect("an answer");
        let mut ids: Vec<i64> = found.iter().map(|query| query.id).collect();
        ids.sort_unstable();
        ids
    };
    let client = Some("192.0.2.1".parse().expect("an address"));
    let of_client = vec![1, block, block + 1, 4 * block + 8];
    assert_eq!(ids(Wanted { client, ..Wanted::default() }), of_client);
    let name = Some("a.example.org".to_owned());
    assert_eq!(ids(Wanted { name: name.clone(), ..Wanted::default() }), of_client);
    let below = ids(Wanted { name: name.clone(), covers_below: true, ..Wanted::default() });
    assert_eq!(below, [1, block, block + 1, 4 * block + 8, 4 * block + 9]);
    assert!(ids(Wanted { name: Some("c.example.org".to_owned()), ..Wanted::default() }).is_empty());
    let new = Wanted { count: 100, client, after_id: Some(block), ..Wanted::default() };
    assert_eq!(reader.following(&new).expect("an answer").len(), 2);
    let database = open(&file).expect("a database");
    let count = |sql: &str| -> i64 { database.query_row(sql, [], |row| row.get(0)).expect("a count") };
    assert_eq!(count("SELECT count(*) FROM name_blocks WHERE block = 0"), 2, "once for each block");
    assert_eq!(count("SELECT count(*) FROM client_blocks"), 2 + 1 + 2);
}

#[test]
fn a_database_of_version_1_is_taken_over() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let old = Connection::open(&file).expect("a database");
    old.execute_batch(
        "CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
         CREATE TABLE paths (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE) STRICT;
         CREATE TABLE queries (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, waited_ms INTEGER NOT NULL, client BLOB NOT NULL,
           port INTEGER NOT NULL, transport TEXT NOT NULL, name INTEGER NOT NULL REFERENCES names (id), type INTEGER NOT NULL,
           class INTEGER NOT NULL, rcode INTEGER, answers INTEGER NOT NULL, addresses TEXT, path INTEGER REFERENCES paths (id)) STRICT;
         CREATE INDEX queries_by_client ON queries (client, id);
         CREATE INDEX queries_by_name ON queries (name, id);
         CREATE INDEX queries_by_time ON queries (at_ms);
         PRAGMA user_version = 1;
         INSERT INTO names VALUES (1, 'old.example.org');
         INSERT INTO queries VALUES (1, unixepoch() * 1000 - 1000, 12, x'c0000201', 53, 'udp', 1, 1, 1, 0, 1, '192.0.2.7', NULL);",
    )
    .expect("a database of version 1");
    drop(old);
    assert!(Reader::open(&file).is_err_and(|why| why.contains("older version")));
    record(&file, &[("new.example.org", "192.0.2.1")]);
    let reader = Reader::open(&file).expect("a database");
    let client = Some("192.0.2.1".parse().expect("an address"));
    let found = reader.newest(&Wanted { count: 9, client, ..Wanted::default() }).expect("an answer");
    assert_eq!(names(&found), ["new.example.org", "old.example.org"]);
    assert_eq!((found[1].waited_us, found[1].one_of, found[0].waited_us), (12_000, 1, 3_040));
    assert_eq!(reader.last_id(), Ok(2));
}

#[test]
fn a_database_of_another_version_is_put_aside() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let other = Connection::open(&file).expect("a database");
    other.execute_batch("CREATE TABLE x (y); PRAGMA user_version = 7;").expect("it is made");
    drop(other);
    assert!(Reader::open(&file).is_err());
    record(&file, &[("a.example.org", "192.0.2.1")]);
    assert!(folder.path().join("queries.db.version-7").is_file());
    assert!(Reader::open(&file).is_ok());
}

#[test]
fn what_cannot_be_written_is_counted_and_slows_nobody() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    // A folder is no database.
    let rules = settings(folder.path().to_owned());
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
    let mut writer = Writer {
        settings: settings(file.clone()),
        shared: Arc::clone(&recorder.shared),
        clock: clock(),
        steps: steps(),
        database: None,
        names: Known::new(10),
        paths: Known::new(10),
        block: Block::default(),
        cleaned: None,
        paused_until: None,
        is_well: true,
    };
    writer.work();
    assert_eq!(recorder.counts().written.read() + dropped, total);
    let reader = Reader::open(&file).expect("a database");
    let top = reader.top_names(0, 10).expect("an answer");
    assert_eq!(top.len(), 3);
    for (name, queries) in top {
        assert!(queries.abs_diff(40_000) < 2_000, "{name}: {queries}");
    }
    let one = reader.newest(&Wanted { count: 1, ..Wanted::default() }).expect("an answer");
    assert!(one[0].one_of > 1, "{one:?}");
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
    let database = open(&file).expect("a database");
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        database.query_row(&sql, [], |row| row.get(0)).expect("a count")
    };
    assert_eq!((count("queries"), count("names"), count("paths")), (3, 2, 1));
}
