//! The recorder as a whole, on files of its own.

use std::path::{Path, PathBuf};

use super::*;

use engine::Transport;
use engine::events::{Addresses, Event, EventRecord, Tells, ring};
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

/// Returns the words of one record.
fn words(qname: &str, client: &str, monotonic_ms: u64) -> Vec<u64> {
    let (mut writer, mut reader) = ring(0, Arc::default());
    let qname: NameBuf = qname.parse().expect("a name");
    let mut path = engine::events::Path::default();
    path.push(1, Mark::Failed);
    path.push(2, Mark::Hit);
    let body = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7];
    writer.tell(&Event {
        tells: &Tells::default(),
        monotonic_ms,
        waited_ms: 3,
        client: client.parse().expect("an address"),
        port: 5353,
        transport: Transport::Udp,
        qname: qname.as_name(),
        qtype: Rtype::A,
        qclass: Class::IN,
        rcode: Some(Rcode::NOERROR),
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

/// Offers records until they are taken or dropped.
fn take(recorder: &Recorder, words: &[u64], records: u64) {
    while recorder.take(words, records) == Taking::Later {
        std::thread::yield_now();
    }
}

fn record(file: &Path, queries: &[(&str, &str)]) {
    let clock = Clock::new(Instant::now());
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
    assert_eq!((first.qtype, first.rcode, first.waited_ms, first.answers), (1, Some(0), 3, 1));
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
    let database = open(&folder.path().join("queries.db")).expect("a database");
    let check = |sql: &str, index: &str| {
        let plan: String = database
            .query_row(&format!("EXPLAIN QUERY PLAN {sql}"), [], |row| row.get("detail"))
            .expect("a plan");
        assert!(plan.contains(index), "{sql}: {plan}");
    };
    check("SELECT * FROM queries WHERE client = x'c0000201' ORDER BY id DESC LIMIT 20", "queries_by_client");
    check("SELECT * FROM queries WHERE name = 1 ORDER BY id DESC LIMIT 20", "queries_by_name");
    check("SELECT * FROM queries WHERE at_ms >= 5", "queries_by_time");
    check("SELECT * FROM queries ORDER BY at_ms DESC, id DESC LIMIT 20", "queries_by_time");
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
    let recorder = Recorder::start(&rules, Clock::new(Instant::now()), steps(), || ()).expect("a thread");
    take(&recorder, &words("a.example.org", "192.0.2.1", 0), 1);
    recorder.stop();
    assert_eq!((recorder.counts().written.read(), recorder.counts().failed.read()), (0, 1));
    take(&recorder, &words("a.example.org", "192.0.2.1", 0), 1);
    assert_eq!(recorder.counts().dropped.read(), 1, "nobody takes it any more");
    let recorder = Recorder::start(&rules, Clock::new(Instant::now()), steps(), || ()).expect("a thread");
    take(&recorder, &vec![1; WAITING_OCTETS_MAX / 8 + 1], 1000);
    assert_eq!(recorder.counts().dropped.read(), 1000, "there is no room");
    recorder.stop();
}

#[test]
fn a_writer_that_stands_still_costs_records_and_each_is_counted() {
    let shared = Arc::new(Shared {
        waiting: Mutex::new(Waiting { words: Vec::new(), records: 0, is_closed: false }),
        changed: Condvar::new(),
        counts: Counts::default(),
    });
    // Nobody takes out what is put in.
    let recorder = Recorder {
        settings: settings(PathBuf::from("queries.db")),
        shared: Arc::clone(&shared),
        thread: Mutex::new(None),
    };
    let words = words("a.example.org", "192.0.2.1", 0);
    let room = (WAITING_OCTETS_MAX / (words.len() * size_of::<u64>())) as u64;
    for _ in 0..room + 10 {
        take(&recorder, &words, 1);
    }
    assert_eq!((shared.lock().records, recorder.counts().dropped.read()), (room, 10));
    // While the writer is at it, a little is offered again and much is dropped: nobody waits.
    let held = shared.lock();
    assert_eq!(recorder.take(&words, 1), Taking::Later);
    assert_eq!(recorder.counts().dropped.read(), 10);
    assert_eq!(recorder.take(&vec![1; WAITING_OCTETS_MAX / 4], 50), Taking::Done);
    assert_eq!(recorder.counts().dropped.read(), 60);
    drop(held);
    recorder.close();
    take(&recorder, &words, 1);
    assert_eq!(recorder.counts().dropped.read(), 61, "it has ended");
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
