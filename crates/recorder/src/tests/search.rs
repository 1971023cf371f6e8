//! Searching, against a plain look at each row.

use super::*;
use crate::database::BLOCK_BITS;
use crate::days::DAY_MS;
use crate::rows::Rows;

fn client_blob(client: std::net::IpAddr) -> Vec<u8> {
    let (octets, len) = Client::Address(client).octets();
    octets[..len].to_vec()
}

/// Writes rows of `days` days, the last of them today, each day with `count` of them, some of each
/// kind; returns them as a plain list, the newest first.
pub(super) fn week(file: &Path, days: i64, count: i64) -> Vec<Recorded> {
    let mut all = Vec::new();
    let today = Day::of(unix_ms_now());
    for day in (0..days).rev().map(|ago| Day(today.0 - ago)) {
        let file = Files::new(file).of(day);
        let mut database = open(&file).expect("a database");
        let transaction = database.transaction().expect("a transaction");
        transaction
            .execute_batch(
                "INSERT INTO decisions VALUES (1, '', 'ads', 7, ''), (2, '', '', 0, 'default 192.0.2.53:53')",
            )
            .expect("decisions");
        for id in 1..=count {
            let seed = id.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(day.0) as u64 >> 33;
            let name = format!("h{}.z{}.example.org", seed % 97, seed % 5);
            let name_id: i64 = {
                let sql =
                    "INSERT INTO names (name) VALUES (?1) ON CONFLICT DO UPDATE SET name = name RETURNING id";
                transaction.query_row(sql, [&name], |row| row.get(0)).expect("a name")
            };
            // One asks seldom.
            let host = if id % 100 == 0 { 8 } else { seed % 7 };
            let (client, decision) = (std::net::IpAddr::from([192, 0, 2, host as u8]), seed % 3);
            let outcome = outcome::ALL[seed as usize % 7];
            let rcode = (outcome != Outcome::Dropped).then_some(seed as u16 % 4);
            let at_ms = day.begin_ms() + id;
            transaction
                .execute(
                    "INSERT INTO queries VALUES (?1, ?2, ?3, ?4, 53, 'udp', ?5, ?6, 1, ?7, 1, '192.0.2.7 192.0.2.8', NULL, ?8, 1, ?9, nullif(?10, 0), NULL)",
                    rusqlite::params![
                        id, at_ms, (seed % 50) as i64, client_blob(client), name_id, (seed % 3 + 1) as i64, rcode,
                        (seed % 1000) as i64, outcome as u8, decision as i64
                    ],
                )
                .expect("a row");
            let mut holds = outcome::Holds::outcome(outcome);
            holds.add(outcome::Holds::rcode(rcode));
            transaction
                .execute_batch(&format!(
                    "INSERT OR IGNORE INTO client_blocks (block, client) SELECT {id} >> 14, client FROM queries WHERE id = {id};
                     INSERT OR IGNORE INTO name_blocks VALUES ({id} >> 14, {name_id});
                     INSERT INTO blocks VALUES ({id} >> 14, {at_ms}, {at_ms}, {0}) ON CONFLICT DO UPDATE
                       SET until_ms = {at_ms}, holds = holds | {0};",
                    holds.0
                ))
                .expect("blocks");
            all.push(Recorded {
                id: day.global(id),
                at_ms,
                waited_us: seed % 50 * 1000 + seed % 1000,
                client: Client::Address(client),
                transport: "udp".to_owned(),
                name,
                qtype: (seed % 3 + 1) as u16,
                rcode,
                answers: 1,
                addresses: "192.0.2.7 192.0.2.8".to_owned(),
                path: String::new(),
                one_of: 1,
                outcome,
                ede: None,
                rule: String::new(),
                list: if decision == 1 { "ads".to_owned() } else { String::new() },
                line: if decision == 1 { 7 } else { 0 },
                upstream: if decision == 2 { "default 192.0.2.53:53".to_owned() } else { String::new() },
            });
        }
        list_full_blocks(&transaction, count);
        transaction.commit().expect("rows");
    }
    all.reverse();
    all
}

/// Lists the rows of each client in blocks that are full.
fn list_full_blocks(transaction: &rusqlite::Transaction<'_>, count: i64) {
    for block in 0..count >> BLOCK_BITS {
        let mut lists: std::collections::HashMap<Vec<u8>, Rows> = std::collections::HashMap::new();
        let sql = "SELECT id, client, name FROM queries WHERE id >> ?1 = ?2 ORDER BY id";
        let mut query = transaction.prepare(sql).expect("a table");
        let mut rows = query.query([i64::from(BLOCK_BITS), block]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            let list = lists.entry(row.get(1).expect("octets")).or_default();
            list.add(row.get(0).expect("a number"), row.get(2).expect("a number"));
        }
        for (client, rows) in lists {
            let sql = "UPDATE client_blocks SET rows = ?3 WHERE block = ?1 AND client = ?2";
            transaction.execute(sql, rusqlite::params![block, client, rows.octets()]).expect("a list");
        }
    }
}

/// Finds what a plain look at each row finds.
fn plainly<'a>(all: &'a [Recorded], wanted: &'a Wanted) -> Vec<Recorded> {
    let fits = |query: &&Recorded| {
        let addresses: Vec<&str> = query.addresses.split(' ').collect();
        wanted.clients.is_none_or(|clients| clients.contains(query.client))
            && wanted.names.fit(&query.name)
            && wanted.qtype.is_none_or(|qtype| query.qtype == qtype)
            && wanted.transport.as_ref().is_none_or(|transport| query.transport == *transport)
            && wanted.answer.is_none_or(|answer| addresses.contains(&answer.to_string().as_str()))
            && wanted.waited_us.is_none_or(|us| query.waited_us >= us)
            && wanted.since_ms.is_none_or(|since| query.at_ms >= since)
            && wanted.until_ms.is_none_or(|until| query.at_ms < until)
            && wanted.rcode.is_none_or(|rcode| query.rcode == rcode)
            && (wanted.outcomes.is_empty() || wanted.outcomes.contains(&query.outcome))
            && wanted.list.as_ref().is_none_or(|list| query.list.contains(list.as_str()))
            && wanted
                .upstream
                .as_ref()
                .is_none_or(|wanted| query.upstream.split(' ').any(|part| part == wanted))
    };
    all.iter().filter(fits).cloned().collect()
}

#[test]
fn a_search_finds_what_a_plain_look_at_each_row_finds() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    // More than a block a day.
    let all = week(&file, 2, 17_000);
    let reader = Reader::open(&file).expect("databases");
    let mut chance = 7_u64;
    let mut draw = |below: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % below
    };
    let mut found_any = 0;
    for _ in 0..60 {
        let mut wanted = Wanted { count: 1 + draw(3000) as u32, ..Wanted::default() };
        for _ in 0..1 + draw(3) {
            let number = draw(100);
            match draw(12) {
                0 => wanted.clients = format!("192.0.2.{}", number % 9).parse().ok(),
                1 => wanted.clients = Some("192.0.2.2/31".parse().expect("a prefix")),
                2 => wanted.names.are(NameTest::part(&format!("{number}.z"))),
                3 => wanted.names.are(NameTest::Suffix(format!("z{}.example.org", number % 6))),
                4 => wanted.names.are_not(NameTest::regex(&format!("^h{}", number % 10)).expect("one")),
                5 => wanted.qtype = Some(1 + (number % 4) as u16),
                6 => wanted.rcode = Some((number % 5 != 4).then_some((number % 5) as u16)),
                7 => {
                    wanted.outcomes =
                        vec![outcome::ALL[number as usize % 7], outcome::ALL[number as usize % 5]];
                }
                8 => wanted.waited_us = Some(number * 500),
                9 => wanted.list = Some(["ads", "others"][number as usize % 2].to_owned()),
                10 => {
                    wanted.upstream = Some(["default", "192.0.2.53:53", "x"][number as usize % 3].to_owned());
                }
                _ => {
                    let from = all[draw(all.len() as u64) as usize].at_ms;
                    (wanted.since_ms, wanted.until_ms) =
                        (Some(from), Some(from + number as i64 * DAY_MS / 50));
                }
            }
        }
        let expected = plainly(&all, &wanted);
        found_any += usize::from(!expected.is_empty());
        let mut found = Vec::new();
        loop {
            let page = reader.search(&wanted).expect("a page");
            assert!(page.queries.len() <= wanted.count as usize);
            found.extend(page.queries);
            wanted.before_id = page.cursor;
            if page.cursor.is_none() {
                break;
            }
        }
        assert!(found == expected, "{wanted:?}: {} of {}", found.len(), expected.len());
    }
    assert!(found_any > 20, "{found_any} searches found something");
}

#[test]
fn rows_of_a_client_are_found_by_lists_of_full_blocks_and_without_them() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let record = |from: usize, to: usize| {
        let recorder = Recorder::start(&settings(file.clone()), clock(), steps(), || ()).expect("a thread");
        for at in from..to {
            // All of one time, so that they stand in this order.
            let client = format!("192.0.2.{}", at % 40);
            take(&recorder, &words(&format!("n{}.example.org", at % 7), &client, 0), 1);
        }
        recorder.stop();
    };
    // The second block goes on in another run of the server, the third begins in it.
    record(0, 17_000);
    record(17_000, 50_000);
    let database = Connection::open(&day_file(&file).path).expect("a database");
    let listed = |block: i64| -> (i64, i64) {
        let sql = "SELECT count(*), count(rows) FROM client_blocks WHERE block = ?1";
        database.query_row(sql, [block], |row| Ok((row.get(0)?, row.get(1)?))).expect("a block")
    };
    assert_eq!([0, 1, 2, 3].map(listed), [(40, 40), (40, 0), (40, 40), (40, 0)]);
    let reader = Reader::open(&file).expect("a database");
    let find = |name: Option<&str>| {
        let names = name.map_or_else(Names::default, |name| only(NameTest::part(name)));
        let clients = "192.0.2.3".parse().ok();
        let found = reader.newest(&Wanted { count: 50_000, clients, names, ..Wanted::default() });
        found.expect("an answer").iter().map(|query| Day::split(query.id).1).collect::<Vec<_>>()
    };
    let expected = |name: Option<i64>| -> Vec<i64> {
        let is_it = |at: &i64| at % 40 == 3 && name.is_none_or(|name| at % 7 == name);
        (0..50_000).rev().filter(is_it).map(|at| at + 1).collect()
    };
    assert_eq!(find(None), expected(None));
    assert_eq!(find(Some("n5.")), expected(Some(5)));
    assert_eq!(find(Some("n8.")), []);
}

#[test]
fn a_search_that_takes_too_long_says_where_to_go_on() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let file = folder.path().join("queries.db");
    let all = week(&file, 2, 20_000);
    let reader = Reader::open(&file).expect("databases");
    // No time at all: each page has one block.
    let names = only(NameTest::part("example"));
    let mut wanted = Wanted { count: 100_000, names, time: Some(Duration::ZERO), ..Wanted::default() };
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let page = reader.search(&wanted).expect("a page");
        found.extend(page.queries);
        pages += 1;
        if page.cursor.is_none() {
            break;
        }
        assert!(page.cursor < wanted.before_id.or(Some(i64::MAX)), "it goes on");
        if pages == 1 {
            let next = found.len();
            assert_eq!(page.searched_to_ms, Some(all[next].at_ms));
        }
        wanted.before_id = page.cursor;
    }
    assert_eq!((found == all, pages), (true, 4));
    // Files without a name that fits are passed over, one with each page.
    let names = only(NameTest::part("nowhere"));
    let mut wanted = Wanted { names, before_id: None, ..wanted };
    wanted.before_id = reader.search(&wanted).expect("a page").cursor;
    assert_eq!(wanted.before_id, Some(Day(Day::split(all[0].id).0.0 - 1).global(Day::ID_MAX)));
    assert_eq!(reader.search(&wanted).expect("a page").cursor, None);
}
