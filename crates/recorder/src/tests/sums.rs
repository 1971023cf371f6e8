//! Sums, against the rows that they are made of.

use super::*;

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
                "DELETE FROM sums; DELETE FROM top; DELETE FROM floors; UPDATE files SET last_id = {to};"
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
