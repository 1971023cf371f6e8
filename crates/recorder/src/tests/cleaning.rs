//! What is removed, and what live readers see meanwhile.

use super::*;

#[test]
fn a_server_that_records_nothing_removes_old_files_and_the_key_too() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    week(&file, 4, 10);
    std::fs::write(Files::new(&file).key(), [1; 40]).expect("a key of another day");
    let rules = settings::Recorder { keep: Duration::from_secs(2 * 86_400), ..settings(file.clone()) };
    let recorder = Recorder::start(&rules, clock(), steps(), || ()).expect("a thread");
    while recorder.counts().removed.read() < 10 {
        std::thread::yield_now();
    }
    recorder.stop();
    assert_eq!(Files::new(&file).all().len(), 3);
    assert!(!Files::new(&file).key().exists());
}

#[test]
fn the_file_that_was_written_last_is_removed_when_its_day_is_too_old() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let rules = settings::Recorder { keep: Duration::from_secs(86_400), ..settings(file.clone()) };
    let mut writer = Writer::new(rules, Arc::default(), clock(), steps());
    let mut sample = Sample::default();
    sample.add(&words("a.example.org", "192.0.2.1", 0), 1, WAITING_OCTETS_MAX);
    writer.write(&sample);
    let now_ms = unix_ms_now();
    assert_eq!((writer.try_clean(now_ms), Files::new(&file).all().len()), (Ok(0), 1));
    let removed = writer.try_clean(now_ms + 3 * days::DAY_MS);
    assert_eq!((removed, Files::new(&file).all().len()), (Ok(1), 0));
    writer.write(&sample);
    assert_eq!(Files::new(&file).all().len(), 1, "it goes on");
}

#[test]
fn rows_that_are_too_old_are_all_removed_however_many_they_are() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    week(&file, 1, 41_000);
    let mut database = open(&day_file(&file)).expect("a database");
    assert_eq!(database::clean_by_age(&mut database, i64::MAX).expect("it cleans"), 41_000);
    let left: i64 = database
        .query_row("SELECT (SELECT count(*) FROM blocks) + (SELECT count(*) FROM names)", [], |row| {
            row.get(0)
        })
        .expect("a count");
    assert_eq!(left, 0);
}

fn told(live: &mut Live) -> Vec<String> {
    live.look();
    let mut names = Vec::new();
    while let Some(Told::Query(query)) = live.told() {
        names.push(query.name);
    }
    names
}

#[test]
fn a_live_reader_goes_on_when_the_file_is_begun_anew() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    record(&file, &[("a.example.org", "192.0.2.1"); 5]);
    let mut live = Live::new(Reader::new(&file), Wanted::default(), None, Arc::default()).expect("a reader");
    day_file(&file).remove().expect("it is removed");
    record(&file, &[("b.example.org", "192.0.2.1")]);
    told(&mut live);
    record(&file, &[("c.example.org", "192.0.2.1")]);
    assert_eq!(told(&mut live), ["c.example.org"]);
}

#[test]
fn a_live_reader_hears_of_rows_that_come_after_midnight_for_the_day_before() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let today = Day::of(unix_ms_now());
    let add = |day: i64, name: &str| {
        let database = open(&Files::new(&file).of(Day(day))).expect("a database");
        let sql = format!(
            "INSERT OR IGNORE INTO names (name) VALUES ('{name}');
             INSERT INTO queries SELECT (SELECT coalesce(max(id), 0) + 1 FROM queries), 1, 0, x'', 53, 'udp', id, 1, 1, 0, 0, NULL, NULL, 0, 1, 1, NULL, NULL
               FROM names WHERE name = '{name}';
             INSERT INTO blocks VALUES (0, 1, 1, -1) ON CONFLICT DO NOTHING;"
        );
        database.execute_batch(&sql).expect("a row");
    };
    add(today.0 - 1, "old");
    let mut live = Live::new(Reader::new(&file), Wanted::default(), None, Arc::default()).expect("a reader");
    add(today.0 - 1, "a");
    add(today.0, "b");
    assert_eq!(told(&mut live), ["a", "b"]);
    add(today.0 - 1, "c");
    assert_eq!(told(&mut live), ["c"]);
    add(today.0, "d");
    add(today.0 - 1, "e");
    assert_eq!(told(&mut live), ["e", "d"]);
    assert_eq!(told(&mut live), [""; 0]);
    // One that comes just after midnight.
    let mut live = Live::new(Reader::new(&file), Wanted::default(), None, Arc::default()).expect("a reader");
    add(today.0 - 1, "f");
    assert_eq!(told(&mut live), ["f"]);
}
