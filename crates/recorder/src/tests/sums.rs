//! Sums, against the rows that they are made of.

use super::*;
use crate::sums::Ends;

#[test]
fn sums_are_those_of_the_rows_also_after_a_crash_and_without_a_client_that_was_removed() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let tallies = |of: TopOf| -> Vec<(String, u64)> {
        let top = Reader::new(&file).top(of, 0, 100).expect("an answer");
        top.into_iter().map(|tally| (tally.what, tally.queries)).collect()
    };
    let expect = |names: &[(&str, u64)]| {
        names.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<Vec<_>>()
    };
    record(
        &file,
        &[("a.example.org", "192.0.2.1"), ("a.example.org", "192.0.2.2"), ("b.example.org", "192.0.2.1")],
    );
    let names = expect(&[("a.example.org", 2), ("b.example.org", 1)]);
    assert_eq!(tallies(TopOf::Names), names);
    assert_eq!(tallies(TopOf::By(Kind::Client)), expect(&[("192.0.2.1", 2), ("192.0.2.2", 1)]));
    assert_eq!(tallies(TopOf::By(Kind::Outcome)), expect(&[("cached", 3)]));
    assert_eq!(tallies(TopOf::By(Kind::Type)), expect(&[("A", 3)]));
    let sums = Files::new(&file).sums();
    let over_time = |kind, period| {
        let found = Reader::new(&file).over_time(kind, period, (0, i64::MAX)).expect("an answer");
        found.iter().map(|sum| (sum.key.clone(), sum.queries)).collect::<Vec<_>>()
    };
    for period in [60, 3_600, 86_400] {
        assert_eq!(over_time(Kind::Outcome, period), expect(&[("cached", 3)]));
    }
    assert_eq!(over_time(Kind::Client, 60), []);
    // As if the server had been killed before it wrote the last two rows' sums, and once before it
    // wrote any.
    let database = Connection::open(&sums).expect("a database");
    let go_back = |to: i64| {
        database
            .execute_batch(&format!(
                "DELETE FROM sums; DELETE FROM top; DELETE FROM floors; DELETE FROM day_top; DELETE FROM day_floors; UPDATE files SET last_id = {to};"
            ))
            .expect("it is changed");
    };
    go_back(1);
    assert_eq!(tallies(TopOf::Names), expect(&[("a.example.org", 1), ("b.example.org", 1)]), "by rows");
    record(&file, &[("b.example.org", "192.0.2.1")]);
    assert_eq!(tallies(TopOf::Names), expect(&[("b.example.org", 2), ("a.example.org", 1)]));
    let id: i64 = database.query_row("SELECT last_id FROM files", [], |row| row.get(0)).expect("a number");
    assert_eq!(id, 4);
    go_back(0);
    record(&file, &[("b.example.org", "192.0.2.1")]);
    assert_eq!(tallies(TopOf::Names), expect(&[("b.example.org", 3), ("a.example.org", 2)]));
    let recorder = Recorder::start(&settings(file.clone()), clock(), steps(), || ()).expect("a thread");
    assert_eq!(recorder.forget_clients("192.0.2.1".parse().expect("a client")), Ok(4));
    recorder.stop();
    assert_eq!(tallies(TopOf::By(Kind::Client)), expect(&[("192.0.2.2", 1)]));
    drop(database);
    // A database of sums that is none is begun anew, from the rows.
    std::fs::write(&sums, "no database, and longer than a header, but of nothing else\n".repeat(90))
        .expect("written");
    record(&file, &[("c.example.org", "192.0.2.2")]);
    assert_eq!(tallies(TopOf::Names), expect(&[("a.example.org", 1), ("c.example.org", 1)]));
}

fn sample(queries: &[(&str, &str)]) -> Sample {
    let mut sample = Sample::default();
    for (at, (qname, client)) in queries.iter().enumerate() {
        sample.add(&words(qname, client, at as u64), 1, WAITING_OCTETS_MAX);
    }
    sample
}

#[test]
fn what_was_counted_of_a_client_and_not_written_is_forgotten_with_its_records() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let shared = Arc::<Shared>::default();
    let mut writer = Writer::new(settings(file.clone()), Arc::clone(&shared), clock(), steps());
    let files = Files::new(&file);
    let forget = |client: &str| {
        let clients = client.parse().expect("a client");
        forget::clients(&files, clients, &shared.has_forgotten).expect("removed");
        crate::sums::forget(&files, clients).expect("removed");
    };
    writer.write(&sample(&[("a.example.org", "192.0.2.77"), ("b.example.org", "192.0.2.1")]));
    forget("192.0.2.77");
    // What is written every few seconds.
    writer.write_sums(Ends::No);
    let tallies = || -> Vec<(String, u64)> {
        let top = Reader::new(&file).top(TopOf::By(Kind::Client), 0, 100).expect("an answer");
        top.into_iter().map(|tally| (tally.what, tally.queries)).collect()
    };
    assert_eq!(tallies(), [("192.0.2.1".to_owned(), 1)]);
    // And what is written because of the next rows. Their numbers are new.
    writer.write(&sample(&[("a.example.org", "192.0.2.78")]));
    forget("192.0.2.78");
    writer.write(&sample(&[("c.example.org", "192.0.2.1")]));
    writer.write_sums(Ends::Yes);
    assert_eq!(tallies(), [("192.0.2.1".to_owned(), 2)]);
}

#[test]
fn numbers_of_rows_that_were_removed_are_not_used_again_and_a_new_file_is_counted() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let queries = |client: &'static str| [("a.example.org", client); 3];
    let count = || {
        let sums = Reader::new(&file).over_time(Kind::Outcome, 86_400, (0, i64::MAX)).expect("an answer");
        sums.iter().map(|sum| sum.queries).sum::<u64>()
    };
    record(&file, &queries("192.0.2.1"));
    let mut recorder = without_writer();
    recorder.settings = settings(file.clone());
    let last = Reader::new(&file).last_id().expect("a number");
    assert_eq!(recorder.forget_clients("192.0.2.1".parse().expect("a client")), Ok(3));
    assert_eq!(Reader::new(&file).last_id(), Ok(last));
    record(&file, &queries("192.0.2.2"));
    assert_eq!((Reader::new(&file).last_id(), count()), (Ok(last + 3), 6));
    // By age, and by size.
    let day = day_file(&file);
    let mut database = open(&day).expect("a database");
    assert_eq!(database::clean_by_age(&mut database, i64::MAX).expect("it cleans"), 3);
    assert_eq!(Reader::new(&file).last_id(), Ok(last + 3));
    // As the file of a server that did not note it.
    database.execute_batch("DROP TABLE removed").expect("it is removed");
    drop(database);
    record(&file, &queries("192.0.2.2"));
    assert_eq!(count(), 9);
    // Somebody removes the file.
    day.remove().expect("it is removed");
    record(&file, &queries("192.0.2.2"));
    assert_eq!(count(), 12);
    // Readers see the rows of a new file before they are in the sums.
    day.remove().expect("it is removed");
    let mut writer = Writer::new(settings(file.clone()), Arc::default(), clock(), steps());
    writer.write(&sample(&[("a.example.org", "192.0.2.2")]));
    let top = Reader::new(&file).top(TopOf::By(Kind::Outcome), 0, 10).expect("an answer");
    assert_eq!((count(), top.iter().map(|tally| tally.queries).sum()), (12, 13_u64));
}

#[test]
fn types_and_upstreams_that_are_told_apart_are_bounded_and_the_rest_is_counted_together() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let day = Day(20_000);
    let of_day = open(&Files::new(&file).of(day)).expect("a database");
    let mut sums = crate::sums::Sums::new(1);
    for round in 0..3_u16 {
        for number in round * 400..round * 400 + 400 {
            let sql = "INSERT INTO decisions VALUES (?1, '', '', 0, 'servers ' || ?1)";
            of_day.execute(sql, [number + 1]).expect("a decision");
            sums.add(&crate::sums::Counted {
                at_ms: day.begin_ms() + 1,
                name: 1,
                client: Client::Unknown,
                qtype: number,
                transport: "udp",
                outcome: Outcome::Resolved,
                decision: Some(i64::from(number) + 1),
                one_of: 1,
            });
        }
        let of_day = (day, i64::from(round) + 1, &of_day);
        sums.write(&Files::new(&file).sums(), of_day, Ends::No).expect("written");
    }
    for (kind, period) in [(Kind::Type, 60), (Kind::Type, 86_400), (Kind::Upstream, 60)] {
        let found = Reader::new(&file).over_time(kind, period, (0, i64::MAX)).expect("an answer");
        assert_eq!(found.iter().map(|sum| sum.queries).sum::<u64>(), 1_200, "{kind:?}");
        assert!(found.len() <= 257, "{kind:?}: {}", found.len());
        assert!(found.iter().any(|sum| sum.key == "others" && sum.queries > 900), "{kind:?}");
    }
}

#[test]
fn a_name_that_only_a_forgotten_client_asked_for_is_not_among_the_most_frequent() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    record(
        &file,
        &[
            ("mine.example.org", "192.0.2.1"),
            ("mine.example.org", "192.0.2.1"),
            ("ours.example.org", "192.0.2.1"),
            ("ours.example.org", "192.0.2.2"),
        ],
    );
    let names = || -> Vec<String> {
        let top = Reader::new(&file).top(TopOf::Names, 0, 100).expect("an answer");
        let mut names: Vec<String> = top.into_iter().map(|tally| tally.what).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(), ["mine.example.org", "ours.example.org"]);
    // Once by a server that has nothing more to write, and once with counters in its memory.
    let mut recorder = without_writer();
    recorder.settings = settings(file.clone());
    assert_eq!(recorder.forget_clients("192.0.2.1".parse().expect("a client")), Ok(3));
    assert_eq!(names(), ["ours.example.org"]);
    let of_files = Files::new(&file);
    let folder_of_all: Vec<_> = std::fs::read_dir(folder.path()).expect("a directory").flatten().collect();
    for entry in &folder_of_all {
        let octets = std::fs::read(entry.path()).expect("readable");
        let is_there = octets.windows(4).any(|part| part == b"mine");
        assert!(!is_there, "it is in {}", entry.path().display());
    }
    let shared = Arc::<Shared>::default();
    let mut writer = Writer::new(settings(file.clone()), Arc::clone(&shared), clock(), steps());
    writer.write(&sample(&[("his.example.org", "192.0.2.3"), ("ours.example.org", "192.0.2.3")]));
    writer.write_sums(Ends::No);
    assert_eq!(names(), ["his.example.org", "ours.example.org"]);
    let clients = "192.0.2.3".parse().expect("a client");
    forget::clients(&of_files, clients, &shared.has_forgotten).expect("removed");
    crate::sums::forget(&of_files, clients).expect("removed");
    assert_eq!(names(), ["ours.example.org"]);
    writer.write(&sample(&[("next.example.org", "192.0.2.4")]));
    writer.write_sums(Ends::Yes);
    assert_eq!(names(), ["next.example.org", "ours.example.org"]);
}

#[test]
fn the_key_of_pseudonyms_goes_with_a_recorder_that_is_switched_off_and_stays_over_a_restart() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let settings =
        settings::Recorder { clients: settings::RecordedClients::Pseudonym, ..settings(file.clone()) };
    let key = Files::new(&file).key();
    let run = |is_off: bool| {
        let recorder = Recorder::start(&settings, clock(), steps(), || ()).expect("a thread");
        let taken = recorder.take(&words("a.example.org", "192.0.2.1", 0), 1);
        assert_eq!(taken, Taking::Done);
        if is_off {
            recorder.forget_key();
        }
        recorder.stop();
    };
    run(false);
    let kept = std::fs::read(&key).expect("a key");
    run(false);
    assert_eq!(std::fs::read(&key).expect("a key"), kept, "a restart goes on with it");
    run(true);
    assert!(!key.exists());
}
