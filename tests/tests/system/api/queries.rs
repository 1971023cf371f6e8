//! The record of queries over the API: found, watched, removed.

use std::io::{BufRead as _, BufReader, Write as _};

use testkit::{Ask, Server, Stub, eventually};
use wire::Rtype;

use super::{DEADLINE, ask, connect, get, start};

const RECORDED: &str = "recorder: {file: queries.db}\n\
     sets: {ads: {lists: \"names:ads.txt\"}}\n\
     policy: {main: [{if: qname in ads, do: reject(nxdomain)}, cache(main), forward(default)]}\n";

/// Starts a server that records and has a list.
fn start_recording() -> (Stub, Server) {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("ads.txt"), "# a list\nsuffix:ads.example.org\n").expect("a list");
    let stub = Stub::start(testkit::Script::default());
    let server = Server::start_in(directory, &testkit::forwarding(&[&stub], RECORDED));
    (stub, server)
}

#[test]
fn recorded_queries_are_found_with_what_decided_about_them_page_by_page() {
    let (stub, server) = start_recording();
    for name in ["www.example.org", "www.example.org", "x.ads.example.org", "mail.example.org"] {
        server.ask(&Ask::new(name, Rtype::A));
    }
    let found = |query: &str| get(&server, &format!("/queries?{query}"));
    eventually("all are written", || found("contains=mail").body.contains("mail.example.org"));
    let blocked = found("outcome=blocked,refused&suffix=example.org").json();
    for part in [
        "\"name\": \"x.ads.example.org\"",
        "\"outcome\": \"blocked\"",
        "\"rule\": \"gannet.yaml:",
        " reject(nxdomain)\"",
        "\"line\": 2",
        "ads.txt",
    ] {
        assert!(blocked.contains(part), "no {part} in {blocked}");
    }
    assert_eq!(blocked.matches("\"name\"").count(), 1, "{blocked}");
    assert!(found("list=ads.txt").json().contains("x.ads.example.org"));
    let asked = found("upstream=default").json();
    assert!(asked.contains(&format!("\"upstream\": \"default {}\"", stub.address())), "{asked}");
    assert!(!asked.contains("x.ads.example.org"), "{asked}");
    assert_eq!(found("name=www.example.org&outcome=cached").json().matches("\"name\"").count(), 1);
    // Page after page, the newest first.
    let first = found("count=1&contains=www");
    assert!(first.json().contains("\"outcome\": \"cached\""), "{first:?}");
    let next = first.header("link").expect("a next page").to_owned();
    let next = next.trim_start_matches("</api/v1").split('>').next().expect("a URL").to_owned();
    let second = get(&server, &next);
    assert!(second.json().contains("\"outcome\": \"resolved\""), "{second:?}");
    for wrong in ["regex=(", "type=nonsense", "client=x", "outcome=fine", "since-ms=soon"] {
        assert_eq!(found(wrong).status, 400, "{wrong}");
    }
}

#[test]
fn queries_are_watched_as_they_come_and_from_where_one_was() {
    let (_stub, server) = start_recording();
    let watch = |head: &str| {
        let mut stream = connect(&server);
        let request =
            format!("GET /api/v1/queries/live?contains=mail HTTP/1.1\r\nHost: localhost\r\n{head}\r\n");
        stream.write_all(request.as_bytes()).expect("taken");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        BufReader::new(stream)
    };
    let until = |reader: &mut BufReader<_>, what: &str| {
        let mut line = String::new();
        while !line.starts_with(what) {
            line.clear();
            assert!(reader.read_line(&mut line).expect("a line") > 0, "no {what}");
        }
        line.trim_end().to_owned()
    };
    let mut reader = watch("");
    assert!(until(&mut reader, "content-type").contains("text/event-stream"));
    for name in ["www.example.org", "mail.example.org", "mail.example.net"] {
        server.ask(&Ask::new(name, Rtype::A));
    }
    let id = until(&mut reader, "id: ");
    assert_eq!(until(&mut reader, "event: "), "event: query");
    assert!(until(&mut reader, "data: ").contains("\"name\":\"mail.example.org\""));
    assert!(until(&mut reader, "data: ").contains("\"name\":\"mail.example.net\""));
    drop(reader);
    // Behind the first of them.
    let mut again = watch(&format!("Last-Event-ID: {}\r\n", id.trim_start_matches("id: ")));
    assert!(until(&mut again, "data: ").contains("\"name\":\"mail.example.net\""));
    let mut wrong = watch("Last-Event-ID: soon\r\n");
    assert!(until(&mut wrong, "HTTP/1.1").contains("400"));
}

#[test]
fn sums_say_what_was_asked_for_most_and_when() {
    let (_stub, server) = start_recording();
    for name in ["www.example.org", "www.example.org", "ads.example.org", "mail.example.org"] {
        server.ask(&Ask::new(name, Rtype::A));
    }
    let top = |what: &str| get(&server, &format!("/statistics/top/{what}")).json();
    eventually("all are counted", || top("names").contains("mail.example.org"));
    assert!(top("names").contains("{ \"what\": \"www.example.org\", \"queries\": 2 }"), "{}", top("names"));
    assert!(
        top("blocked").contains("{ \"what\": \"ads.example.org\", \"queries\": 1 }"),
        "{}",
        top("blocked")
    );
    assert!(top("outcomes").contains("{ \"what\": \"blocked\", \"queries\": 1 }"), "{}", top("outcomes"));
    for what in ["clients", "types", "transports", "upstreams", "lists"] {
        assert!(top(what).contains("\"queries\""), "{what}: {}", top(what));
    }
    let over_time = |query: &str| get(&server, &format!("/statistics/over-time/{query}"));
    eventually("sums are written", || {
        over_time("outcomes?period-s=60").json().contains("\"what\": \"resolved\"")
    });
    assert_eq!(over_time("outcomes?period-s=7").status, 400);
    assert_eq!(over_time("names").status, 400);
    assert_eq!(get(&server, "/statistics/top/nonsense").status, 400);
}

#[test]
fn what_a_client_asked_for_is_removed() {
    let (_stub, server) = start_recording();
    server.ask(&Ask::new("www.example.org", Rtype::A));
    let count = || get(&server, "/queries?contains=www").body.matches("\"name\"").count();
    eventually("it is written", || count() == 1);
    let removed = ask(&server, "DELETE", "/queries?client=192.0.2.1", &[], "");
    assert!(removed.status == 200 && removed.json().contains("\"removed\": 0"), "{removed:?}");
    let removed = ask(&server, "DELETE", "/queries?client=127.0.0.0/8", &[], "");
    assert!(removed.status == 200 && !removed.json().contains("\"removed\": 0"), "{removed:?}");
    assert_eq!(count(), 0);
    assert_eq!(ask(&server, "DELETE", "/queries", &[], "").status, 400);
    server.ask(&Ask::new("www.example.org", Rtype::A));
    eventually("the next one is written", || count() == 1);
    let (_stub, other) = start("");
    assert_eq!(get(&other, "/queries").status, 409, "nothing is recorded");
}

#[test]
fn a_command_removes_a_client_and_the_names_that_only_they_have_asked_for() {
    let (_stub, server) = start_recording();
    let ask_from = |own: &str, name: &str| {
        let own = own.parse().expect("an address");
        testkit::UdpClient::connect_from(own, server.address()).ask(&Ask::new(name, Rtype::A));
    };
    ask_from("127.0.0.2", "theirs.example.org");
    ask_from("127.0.0.2", "everybodys.example.org");
    ask_from("127.0.0.3", "everybodys.example.org");
    let queries = || get(&server, "/queries?suffix=example.org").body.matches("\"name\"").count();
    eventually("all are written", || queries() == 3);
    let forget = |arguments: &[&str]| {
        let output = server.command(&[&["log", "--forget"], arguments].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(forget(&["127.0.0.2"]), (Some(0), "2 queries removed\n".to_owned()));
    assert_eq!(forget(&["127.0.0.2"]).1, "0 queries removed\n");
    assert_eq!(queries(), 1);
    let top = get(&server, "/statistics/top/names").body;
    assert!(top.contains("everybodys.example.org") && !top.contains("theirs.example.org"), "{top}");
    assert_eq!(forget(&["nobody"]).0, Some(2));
    assert_eq!(forget(&["127.0.0.3", "--top", "names"]).0, Some(2), "one or the other");
}

#[test]
fn of_queries_that_are_turned_away_a_sample_is_recorded_that_adds_up() {
    let (_stub, server) = start("allow: 127.0.0.1/32\nrecorder: {file: queries.db}\n");
    let stranger = std::net::UdpSocket::bind("127.0.0.2:0").expect("an address");
    stranger.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    stranger.connect(server.address()).expect("the server");
    let mut sent = 0;
    let found = || get(&server, "/queries?outcome=refused&client=127.0.0.2&count=1000").json();
    let sum = |found: &str| -> u64 {
        let counts = found
            .split("\"one-of\": ")
            .skip(1)
            .filter_map(|rest| rest.split([',', ' ']).next()?.parse::<u64>().ok());
        counts.sum()
    };
    // One after the other, until several of them are in one record.
    eventually("a record stands for several", || {
        for _ in 0..50 {
            stranger.send(&Ask::new("www.example.org", Rtype::A).bytes()).expect("sent");
            let mut reply = [0; 512];
            assert!(stranger.recv(&mut reply).expect("a reply") > 12 && reply[3] & 15 == 5, "REFUSED");
            sent += 1;
        }
        let found = found();
        found.matches("\"name\"").count() > 1 && sum(&found) > found.matches("\"name\"").count() as u64
    });
    let found = found();
    assert!(sum(&found) <= sent && found.contains("\"status\": \"REFUSED\""), "{sent}: {found}");
    assert!((found.matches("\"name\"").count() as u64) < sent, "a sample");
}

#[test]
fn clients_are_recorded_under_a_pseudonym_or_not_at_all() {
    let recorded = |more: &str| {
        let (_stub, server) = start(&format!("recorder: {{file: queries.db, {more}}}\n"));
        server.ask(&Ask::new("www.example.org", Rtype::A));
        server
    };
    let found = |server: &Server| get(server, "/queries?contains=www").json();
    let server = recorded("clients: pseudonym");
    eventually("it is written", || found(&server).contains("\"client\": \"~"));
    let key = server.directory().join("queries.key");
    assert!(key.is_file());
    // It goes when nobody goes on with it.
    let stub = Stub::start(testkit::Script::default());
    server.write_config(&testkit::forwarding(&[&stub], ""));
    assert!(server.command(&["reload"]).status.success());
    eventually("the key is gone", || !key.exists());
    let server = recorded("clients: none");
    eventually("it is written", || found(&server).contains("\"client\": \"unknown\""));
    let server = recorded("clients: prefix");
    eventually("it is written", || found(&server).contains("\"client\": \"127.0.0.0\""));
    let server = recorded("except-clients: 127.0.0.0/8");
    // What is told before the end is written before the end.
    let (status, log, directory) = server.stop();
    assert!(status.success(), "{}", log.join("\n"));
    let files = std::fs::read_dir(directory.path()).expect("a directory").flatten();
    assert!(!files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with("queries")));
}
