//! The record of queries: what is in it, and for how long.

use testkit::{Server, Stub, UdpClient, eventually, forwarding};

use super::jobs::{ask, upstream};

#[test]
fn queries_are_recorded_with_their_way() {
    let stub = upstream();
    let server = Server::start(&forwarding(
        &[&stub],
        "recorder: {file: queries.db}\n\
         policy:\n  main:\n\
         \x20 - {if: qname in suffix:ads.example.org, do: reject(nxdomain)}\n\
         \x20 - {if: qname in suffix:drop.example.org, do: drop}\n\
         \x20 - cache(main)\n  - forward(default)\n",
    ));
    server.ask(&ask("Two.example.org"));
    server.ask(&ask("two.example.org"));
    server.ask(&ask("x.ads.example.org"));
    UdpClient::connect(server.address()).expect_silence(&ask("drop.example.org").bytes());
    // The probes of the test kit are recorded too.
    let log = |more: &[&str]| {
        let arguments = [&["log", "-c", "gannet.yaml", "--json", "-n", "100"], more].concat();
        let output = server.command(&arguments);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    eventually("all are written", || log(&[]).contains("drop.example.org"));
    let two = log(&["--name", "two.example.org"]);
    assert_eq!(two.matches("\"name\": \"two.example.org\"").count(), 2, "{two}");
    assert!(!two.contains("x.ads.example.org"), "{two}");
    for part in [
        "\"client\": \"127.0.0.1\"",
        "\"transport\": \"udp\"",
        "\"status\": \"NOERROR\"",
        "192.0.2.1",
        "cache(main): hit",
        "cache(main): miss",
        "forward(default): waits",
        "if qname in suffix:ads.example.org: no",
    ] {
        assert!(two.contains(part), "no {part} in {two}");
    }
    let below = log(&["--name", "ads.example.org", "--below"]);
    assert!(below.contains("x.ads.example.org") && below.contains("NXDOMAIN"), "{below}");
    let dropped = log(&["--name", "drop.example.org"]);
    assert!(dropped.contains("\"path\"") && !dropped.contains("\"status\""), "{dropped}");
    assert!(log(&["--client", "192.0.2.200"]).starts_with("[]"));
    let top = server.command(&["log", "-c", "gannet.yaml", "--top", "names"]);
    let top = String::from_utf8_lossy(&top.stdout).into_owned();
    assert!(top.lines().any(|line| line.trim() == "2  two.example.org"), "{top}");
    assert!(server.stat("recorder", "written") >= 4);
    assert_eq!(server.stat("events", "dropped"), 0);
    // What is told before the end is written before the end, and read without the server.
    server.ask(&ask("last.example.org"));
    let (status, log, directory) = server.stop();
    assert!(status.success(), "{}", log.join("\n"));
    let output = testkit::program::program(directory.path())
        .args(["log", "--file", "queries.db", "-n", "1"])
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("127.0.0.1 last.example.org A NOERROR"), "{said}");
}

/// Returns the newest file of the record.
fn day_file(directory: &std::path::Path) -> std::path::PathBuf {
    let entries = std::fs::read_dir(directory).expect("a directory").flatten().map(|entry| entry.path());
    let is_day = |path: &std::path::PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("queries-20") && name.ends_with(".db")
    };
    entries.filter(is_day).max().expect("a file of the record")
}

/// Lets a server record one query, changes the database with some SQL while no server runs, and
/// starts one again with the same settings.
fn record_again(recorder: &str, sql: &str) -> Server {
    let stub = upstream();
    let config = |stub: &Stub| {
        forwarding(
            &[stub],
            &format!(
                "recorder: {{file: queries.db, queries: chosen, path: false, {recorder}}}\npolicy: {{main: [{{if: qname in suffix:example.org, do: record}}, forward(default)]}}\n"
            ),
        )
    };
    let server = Server::start(&config(&stub));
    server.ask(&ask("old.example.org"));
    eventually("it is written", || server.stat("recorder", "written") == 1);
    let (status, log, directory) = server.stop();
    assert!(status.success(), "{}", log.join("\n"));
    let database = rusqlite::Connection::open(day_file(directory.path())).expect("a database");
    database.execute_batch(sql).expect("the database is as the manual says");
    drop(database);
    let server = Server::start_in(directory, &config(&stub));
    server.ask(&ask("new.example.org"));
    eventually("it is written", || server.stat("recorder", "written") == 1);
    server
}

/// Returns the names that are in the record, the newest first.
fn recorded(server: &Server) -> Vec<String> {
    let output = server.command(&["log", "-c", "gannet.yaml", "-n", "1000"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = said.lines().filter_map(|line| line.split(' ').find(|word| word.ends_with(".example.org")));
    names.map(str::to_owned).collect()
}

#[test]
fn records_are_kept_for_as_long_as_the_configuration_says() {
    /// Makes the record an hour and two hours older, twice; a day is a file of its own.
    const SQL: &str = "UPDATE queries SET id = id + 10;
        INSERT INTO names (name) VALUES ('older.example.org');
        INSERT INTO queries SELECT 2, at_ms - 3600000, COLUMNS FROM queries;
        INSERT INTO queries SELECT 1, at_ms - 3600000, COLUMNS FROM queries WHERE id = 2;
        UPDATE queries SET name = (SELECT id FROM names WHERE name = 'older.example.org') WHERE id = 1;
        INSERT INTO name_blocks SELECT 0, id FROM names WHERE name = 'older.example.org';
        UPDATE blocks SET since_ms = since_ms - 7200000;";
    let sql = SQL.replace("COLUMNS", COLUMNS);
    let server = record_again("keep: 90m", &sql);
    eventually("the oldest is removed", || server.stat("recorder", "removed") == 1);
    assert_eq!(recorded(&server), ["new.example.org", "old.example.org", "old.example.org"]);
    let server = record_again("keep: 30m", &sql);
    eventually("the older ones are removed", || server.stat("recorder", "removed") == 2);
    assert_eq!(recorded(&server), ["new.example.org", "old.example.org"]);
}

/// The columns of a recorded query behind its number and time.
const COLUMNS: &str = "waited_ms, client, port, transport, name, type, class, rcode, answers, addresses, path, waited_us, one_of, outcome, decision, ede";

#[test]
fn the_oldest_records_go_when_there_are_too_many() {
    // Some three megabytes of records that are all the same age.
    const SQL: &str = "UPDATE queries SET id = id + 40000; UPDATE name_blocks SET block = 2; UPDATE client_blocks SET block = 2;
        UPDATE blocks SET block = 2; INSERT INTO blocks SELECT 0, since_ms, until_ms, holds FROM blocks;
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        INSERT INTO queries SELECT i, at_ms, COLUMNS FROM n, queries WHERE queries.id > 40000;
        UPDATE queries SET addresses = '2001:db8::1 2001:db8::2 2001:db8::3 2001:db8::4' WHERE id < 40000;";
    let server = record_again("size: 1MiB", &SQL.replace("COLUMNS", COLUMNS));
    eventually("many are removed", || server.stat("recorder", "removed") > 10_000);
    assert!(server.stat("recorder", "removed") < 30_000, "and by far not all");
    assert_eq!(recorded(&server)[..2], ["new.example.org", "old.example.org"]);
}

#[test]
fn chosen_queries_are_recorded_and_others_are_not() {
    let stub = upstream();
    let server = Server::start(&forwarding(
        &[&stub],
        "recorder: {file: queries.db, queries: chosen, path: false}\n\
         policy:\n  main:\n\
         \x20 - {if: qname in suffix:two.example.org, do: record}\n  - forward(default)\n",
    ));
    server.ask(&ask("www.example.org"));
    server.ask(&ask("two.example.org"));
    eventually("it is written", || server.stat("recorder", "written") == 1);
    let output = server.command(&["log", "-c", "gannet.yaml", "--path"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // The query, and what became of it.
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.contains(" two.example.org A NOERROR "), "{said}");
    let upstream = stub.address();
    assert!(said.contains(&format!("resolved: default {upstream}, gannet.yaml:")), "{said}");
}

#[test]
fn a_share_of_the_queries_is_recorded() {
    let stub = upstream();
    let server = Server::start(&forwarding(
        &[&stub],
        "recorder: {file: queries.db, share: 10%}\npolicy: {main: [{if: qname in suffix:example.org, do: label(asked)}, cache(main), forward(default)]}\n",
    ));
    let client = UdpClient::connect(server.address());
    for id in 0..1000 {
        client.ask(&ask("www.example.org").id(id));
    }
    assert_eq!(server.stat("label", "asked"), 1000);
    let told = server.stat("events", "told");
    assert!((40..=200).contains(&told), "{told} of 1000");
    eventually("they are written", || server.stat("recorder", "written") == told);
}
