//! Pages of clients, from sums of many.

use super::*;

/// Clients of one day, and days.
const CLIENTS: u64 = 10_000;
const DAYS: u64 = 20;
const PAGE: usize = 100;

#[test]
fn a_page_of_many_clients_reads_a_page_of_each_period() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    record(&file, &[("a.example.org", "192.0.2.1")]);
    let database = Connection::open(Files::new(&file).sums()).expect("a database");
    let fill = format!(
        "DELETE FROM sums;
         WITH RECURSIVE numbers(number) AS (
             SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number + 1 < {}
         )
         INSERT INTO sums SELECT 86400, kind, 86400 * (number / {CLIENTS}),
             printf('10.0.%d.%d', (number % {CLIENTS}) / 100, 100 + (number % {CLIENTS}) % 100), kind
         FROM numbers, (SELECT 7 AS kind UNION ALL SELECT 6);",
        CLIENTS * DAYS
    );
    database.execute_batch(&fill).expect("sums");
    let reader = Reader::new(&file);
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let part = (after.as_deref(), PAGE);
        let page = reader.count_clients(0, part, &|| false).expect("a page");
        assert!(page.rows <= 2 * DAYS * (PAGE as u64 + 1) + 1, "{} rows", page.rows);
        assert!(page.clients.len() <= PAGE && page.counted_from_ms.is_none());
        let Some((last, _)) = page.clients.last_key_value() else { break };
        after = Some(last.clone());
        all.extend(page.clients);
    }
    assert_eq!(all.len() as u64, CLIENTS);
    assert!(all.is_sorted_by(|one, other| one.0 < other.0));
    let (queries, blocked) = (6 * DAYS, 7 * DAYS);
    assert!(all.iter().all(|(_, sums)| *sums == (queries, blocked)), "{:?}", all.first());
}

#[test]
fn a_page_that_is_late_says_since_when_it_counts() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    record(&file, &[("a.example.org", "192.0.2.1")]);
    let database = Connection::open(Files::new(&file).sums()).expect("a database");
    database
        .execute_batch(
            "DELETE FROM sums; INSERT INTO sums VALUES (86400, 6, 0, 'a', 1), (86400, 6, 86400, 'a', 2);",
        )
        .expect("sums");
    let page = Reader::new(&file).count_clients(0, (None, PAGE), &|| true).expect("a page");
    assert_eq!(page.counted_from_ms, Some(86_400_000));
    assert_eq!(page.clients.get("a"), Some(&(2, 0)));
}
