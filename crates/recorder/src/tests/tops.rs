//! The most frequent names of days, against their hours.

use std::collections::HashMap;

use super::*;
use crate::sketch::Sketch;
use crate::tops::{self, Tops};

const TODAY: i64 = 20_000;

/// Returns an empty database of sums, and of a day with names that are called after their numbers.
fn databases() -> (Connection, Connection) {
    let sums = Connection::open_in_memory().expect("a database");
    sums.execute_batch(tops::SCHEMA).expect("tables");
    let day = Connection::open_in_memory().expect("a database");
    day.execute_batch(
        "CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
         WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 9000)
         INSERT INTO names SELECT id, 'n' || id FROM n;",
    )
    .expect("names");
    (sums, day)
}

#[test]
fn days_that_were_added_up_say_what_their_hours_say_within_the_error() {
    let (mut sums, names) = databases();
    let mut right: HashMap<String, u64> = HashMap::new();
    let mut chance = 88_172_645_463_325_252_u64;
    let mut hours = 0;
    // Three days, the last of them not over; more names than are counted, in each hour others.
    for hour in (TODAY - 2) * 24..TODAY * 24 + 5 {
        let mut sketch = Sketch::new(tops::NAMES_MAX);
        for _ in 0..6_000 {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            let share = (chance >> 11) as f64 / (1_u64 << 53) as f64;
            let name = (4_000_f64.powf(share) as i64 + hour * 7 % 50).max(1);
            sketch.add(name, 1);
            *right.entry(format!("n{name}")).or_default() += 1;
        }
        let transaction = sums.transaction().expect("a transaction");
        tops::write(&transaction, &names, (Tops::All, hour * 3_600, hour), &sketch).expect("written");
        transaction.commit().expect("written");
        hours += 1;
    }
    let check = |sums: &Connection| {
        let found = tops::since(sums, Tops::All, 0).expect("an answer");
        for (name, (queries, error)) in &found {
            let exact = right[name];
            assert!(queries.abs_diff(exact) <= *error, "{name}: {queries} +- {error}, {exact}");
        }
        let mut most: Vec<_> = right.iter().collect();
        most.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
        for (name, count) in most.iter().take(100) {
            // They are in each of the hours: nothing is missing.
            assert_eq!(found[*name].0, **count, "{name}");
        }
        found
    };
    let before = check(&sums);
    tops::add_up_days(&mut sums, Day(TODAY)).expect("added up");
    let count = |sums: &Connection, sql: &str| -> i64 {
        sums.query_row(sql, [], |row| row.get(0)).expect("a number")
    };
    assert_eq!(count(&sums, "SELECT count(*) FROM day_floors WHERE kind = 1"), 2);
    assert_eq!(count(&sums, "SELECT count(*) FROM day_top"), 2 * tops::NAMES_MAX as i64);
    assert_eq!(hours, 53);
    let after = check(&sums);
    assert!(after.len() < before.len());
    // A name that is left out of a day had its floor at most.
    let floors = count(&sums, "SELECT sum(queries) FROM day_floors").unsigned_abs();
    let left_out = before.iter().filter(|(name, _)| !after.contains_key(*name));
    assert!(left_out.clone().count() > 0 && left_out.into_iter().all(|(name, _)| right[name] <= floors));
    // An hour of a day that is over changes: the day is added up anew.
    let transaction = sums.transaction().expect("a transaction");
    let mut late = Sketch::new(tops::NAMES_MAX);
    late.add(8_999, 1_000_000);
    tops::write(&transaction, &names, (Tops::All, (TODAY - 1) * 86_400, 7), &late).expect("written");
    transaction.commit().expect("written");
    assert_eq!(tops::since(&sums, Tops::All, 0).expect("an answer")["n8999"].0, 1_000_000);
    tops::add_up_days(&mut sums, Day(TODAY)).expect("added up");
    assert_eq!(count(&sums, "SELECT count(*) FROM day_floors WHERE kind = 1"), 2);
    assert_eq!(tops::since(&sums, Tops::All, 0).expect("an answer")["n8999"].0, 1_000_000);
    // Since an hour in the middle of a day.
    let since = (TODAY - 1) * 86_400 + 3_600;
    assert!(!tops::since(&sums, Tops::All, since).expect("an answer").contains_key("n8999"));
}

#[test]
fn names_that_only_a_removed_client_asked_for_are_not_among_the_most_frequent() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    record(
        &file,
        &[
            ("mine.example.org", "192.0.2.1"),
            ("ours.example.org", "192.0.2.1"),
            ("ours.example.org", "192.0.2.2"),
        ],
    );
    let mut sums = Connection::open(Files::new(&file).sums()).expect("a database");
    // As if it were tomorrow.
    let tomorrow = Day(Day::of(unix_ms_now()).0 + 1);
    let names = || -> Vec<String> {
        let top = Reader::new(&file).top(TopOf::Names, 0, 100).expect("an answer");
        top.into_iter().map(|tally| tally.what).collect()
    };
    tops::add_up_days(&mut sums, tomorrow).expect("added up");
    assert_eq!(names(), ["ours.example.org", "mine.example.org"]);
    let mut recorder = without_writer();
    recorder.settings = settings(file.clone());
    assert_eq!(recorder.forget_clients("192.0.2.1".parse().expect("a client")), Ok(2));
    assert_eq!(names(), ["ours.example.org"]);
    let left: i64 = sums
        .query_row("SELECT count(*) FROM (SELECT name FROM top UNION ALL SELECT name FROM day_top) WHERE name LIKE 'mine%'", [], |row| row.get(0))
        .expect("a number");
    assert_eq!(left, 0);
}
