//! Lists that are kept beside the settings, as resources.

use testkit::Server;

use super::network::{shown, start as start_network, token};
use super::{Heard, ask, get, say, start};

const LINES: &str = "Content-Type: application/x-ndjson";
const SETS: &str = "sets: {ads: {lists: [{own: mine}]}}\nlocal: {nas.home.arpa: 192.0.2.1}\n";
const CONTENT: &str = "/lists/mine/content";

fn patch(server: &Server, head: &[&str], body: &str) -> Heard {
    ask(server, "PATCH", CONTENT, &[&[LINES], head].concat(), body)
}

#[test]
fn a_list_is_made_changed_and_removed_by_whoever_knows_how_it_is() {
    let (_stub, server) = start(SETS);
    assert_eq!(get(&server, "/lists/mine").status, 404);
    let made = ask(&server, "PUT", CONTENT, &["If-None-Match: *"], "a.example\nb.example\n");
    assert!(made.status == 200 && made.json().contains("\"changed\": 2"), "{made:?}");
    let tag = made.header("etag").expect("an ETag").to_owned();
    assert_eq!(ask(&server, "PUT", CONTENT, &[], "c.example\n").status, 428);
    assert_eq!(ask(&server, "PUT", CONTENT, &["If-None-Match: *"], "c.example\n").status, 412);
    let content = get(&server, CONTENT);
    assert_eq!((content.status, content.header("etag")), (200, Some(tag.as_str())));
    assert!(content.body.contains("a.example\nb.example\n"), "{content:?}");

    let match_it = format!("If-Match: {tag}");
    let both = "{\"add\": \"c.example\"}\n{\"remove\": \"a.example\"}\n";
    let dry = ask(&server, "PATCH", "/lists/mine/content?dry-run", &[LINES, &match_it], both);
    assert!(dry.status == 200 && dry.json().contains("\"is-dry-run\": true"), "{dry:?}");
    let changed = patch(&server, &[&match_it], both);
    assert!(changed.status == 200 && changed.json().contains("\"changed\": 2"), "{changed:?}");
    assert!(!changed.json().contains("is-compiled"), "it is beside what is compiled: {changed:?}");
    let late = patch(&server, &[&match_it], both);
    assert!(
        late.status == 412 && late.json().contains("\"changed\": { \"by\": \""),
        "who was faster: {late:?}"
    );
    assert!(late.json().contains("changed it last, at 20"), "{late:?}");
    assert_eq!(patch(&server, &[], both).status, 200, "without a condition");
    let lists = get(&server, "/lists").json();
    assert!(lists.contains("\"name\": \"mine\"") && lists.contains("\"sets\": [ \"ads\" ]"), "{lists}");
    let rows = server.command(&["audit", "tail"]);
    let rows = String::from_utf8_lossy(&rows.stdout).into_owned();
    assert!(rows.contains("list mine"), "{rows}");

    assert_eq!(ask(&server, "DELETE", "/lists/mine", &[], "").status, 428);
    assert_eq!(ask(&server, "DELETE", "/lists/mine", &["If-Match: *"], "").status, 200);
    assert_eq!(get(&server, CONTENT).status, 404);
    let history = get(&server, "/lists/mine/history?count=1").json();
    assert!(history.contains("\"removed\"") && !history.contains("+c.example"), "{history}");
}

#[test]
fn a_request_that_is_sent_again_is_carried_out_once() {
    let (_stub, server) = start(SETS);
    let key = "Idempotency-Key: one";
    let put = |text: &str| ask(&server, "PUT", CONTENT, &["If-None-Match: *", key], text);
    assert_eq!(put("a.example\n").status, 200);
    let again = put("a.example\n");
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")));
    assert_eq!(put("b.example\n").status, 422, "another body");
}

#[test]
fn hostile_lines_change_nothing_and_nobody_else_notices() {
    let (_stub, server) = start(SETS);
    ask(&server, "PUT", CONTENT, &["If-None-Match: *"], "a.example\n");
    let deep = "[".repeat(100_000);
    let endless = "a".repeat(900_000);
    for (body, line) in [
        ("{\"add\": \"b.example\"}\n{\"add\": ".to_owned(), 2),
        ("{\"add\": \"b.example\"}\n\n{\"add\": \"c.example\"}".to_owned(), 2),
        (format!("{{\"add\": \"b.example\"}}\n{deep}"), 2),
        (format!("{{\"add\": \"{endless}\"}}"), 1),
        ("{\"add\": \"b.example\", \"add\": \"c.example\"}".to_owned(), 1),
        ("{\"add\": [\"b.example\"]}".to_owned(), 1),
        ("{\"add\": \"b.example\"}\n{\"add\": \"b..example\"}".to_owned(), 2),
        ("{\"add\": \"b.example\\nc.example\"}".to_owned(), 1),
    ] {
        let heard = patch(&server, &[], &body);
        let told = format!("\"line\": {line},");
        assert!(heard.status == 422 && heard.json().contains(&told), "{line}: {heard:?}");
    }
    assert_eq!(patch(&server, &[], "").status, 422);
    assert_eq!(ask(&server, "PATCH", CONTENT, &["Content-Type: text/plain"], "").status, 415);
    for octets in [257_u64 << 20, u64::MAX / 2] {
        let head = format!(
            "PUT /api/v1{CONTENT} HTTP/1.1\r\nHost: localhost\r\nIf-Match: *\r\nContent-Length: {octets}\r\n\r\n"
        );
        assert_eq!(say(&server, head.as_bytes()).status, 413);
    }
    let head = format!(
        "PATCH /api/v1{CONTENT} HTTP/1.1\r\nHost: localhost\r\n{LINES}\r\nContent-Length: {}\r\n\r\n",
        60 << 20
    );
    // One that is begun and never ends keeps another one out, and nobody else.
    let mut slow = super::connect(&server);
    std::io::Write::write_all(&mut slow, head.as_bytes()).expect("taken");
    testkit::eventually("the long body is being read", || say(&server, head.as_bytes()).status == 503);
    assert_eq!(patch(&server, &[], "{\"add\": \"d.example\"}").status, 200);
    assert_eq!(server.dig_short(&["nas.home.arpa", "A"]), ["192.0.2.1"]);
    drop(slow);
    let content = get(&server, CONTENT);
    assert!(content.body.contains("a.example\nd.example\n"), "{content:?}");
    assert!(!content.body.contains("b.example"), "{content:?}");
}

#[test]
fn who_may_not_change_a_list_is_refused_before_anything_is_read() {
    let (server, at, _stub) = start_network(SETS);
    let viewer = shown(&token(&server, "viewer", &[]));
    let bound = shown(&token(&server, "bound", &["--role", "admin", "--zone", "example.org"]));
    for who in [&viewer, &bound] {
        for (method, kind) in [("PUT", "Content-Type: text/plain"), ("PATCH", LINES)] {
            // The body does not come: who reads it first does not answer.
            let mut stream = std::net::TcpStream::connect(at).expect("a connection");
            let head = format!(
                "{method} /api/v1{CONTENT} HTTP/1.1\r\nHost: localhost\r\n{who}\r\n{kind}\r\nIf-Match: *\r\n\
                 Content-Length: 100\r\n\r\n"
            );
            std::io::Write::write_all(&mut stream, head.as_bytes()).expect("taken");
            let mut line = String::new();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut line).expect("an answer");
            assert!(line.starts_with("HTTP/1.1 403 "), "{method}: {line}");
        }
    }
}

#[test]
fn a_list_of_a_store_that_cannot_be_read_is_not_said_to_be_gone() {
    let (stub, server) = start(SETS);
    let put = ask(&server, "PUT", "/lists/later/content", &["If-None-Match: *"], "a.example\n");
    assert_eq!(put.status, 200, "{put:?}");
    let (_, _, directory) = server.stop();
    let places = ["changes/changes.db", "state/changes/changes.db"].map(|file| directory.path().join(file));
    let database = places.iter().find(|file| file.exists()).expect("a store");
    std::fs::write(database, "x".repeat(5_000)).expect("writable");
    let server = Server::start_in(directory, &testkit::forwarding(&[&stub], SETS));
    for path in ["/lists", "/lists/later", "/lists/later/content"] {
        let heard = get(&server, path);
        assert_eq!(heard.status, 503, "{path}: {heard:?}");
        assert!(heard.body.contains("could not be read at the start"), "{path}: {heard:?}");
    }
    let put = ask(&server, "PUT", "/lists/other/content", &["If-None-Match: *"], "a.example\n");
    assert_eq!(put.status, 503, "{put:?}");
    // Queries go on.
    server.ask(&testkit::Ask::new("nas.home.arpa", wire::Rtype::A));
}

#[test]
fn a_list_that_no_set_names_is_kept_and_its_rules_are_lines() {
    let (_stub, server) = start(SETS);
    let content = "/lists/later/content";
    let put = ask(&server, "PUT", content, &["If-None-Match: *"], "# mine\na.example\n||b.example^\n");
    assert!(put.status == 200 && put.json().contains("\"changed\": 2"), "{put:?}");
    let wrong = ask(&server, "PATCH", content, &[LINES], "{\"add\": \"c.example\\nd.example\"}");
    assert!(wrong.status == 422 && wrong.json().contains("a rule is one line"), "{wrong:?}");
    let right = ask(&server, "PATCH", content, &[LINES], "{\"add\": \"||c.example^\"}");
    assert_eq!(right.status, 200, "{right:?}");
    let text = get(&server, content);
    assert!(text.body.contains("# mine\na.example\n||b.example^\n||c.example^\n"), "{text:?}");
    let fetch = ask(&server, "PUT", "/lists/fetch/content", &["If-None-Match: *"], "a.example\n");
    assert_eq!(fetch.status, 400, "{fetch:?}");
}

#[test]
fn members_are_changed_by_whoever_knows_them_and_the_history_says_who() {
    let (_stub, server) = start("sets: {dyn: {dynamic: {holds: names}}}\n");
    let path = "/sets/dyn/members";
    let tag = get(&server, path).header("etag").expect("an ETag").to_owned();
    let match_it = format!("If-Match: {tag}");
    let add = |name: &str, head: &[&str]| {
        let body = format!("{{\"items\": [\"{name}\"]}}");
        ask(&server, "POST", path, &[&[super::JSON], head].concat(), &body).status
    };
    assert_eq!(add("a.example", &[&match_it]), 200);
    assert_eq!(add("b.example", &[&match_it]), 412, "others are there by now");
    assert_eq!(add("b.example", &[]), 200);
    let gone = ask(&server, "DELETE", "/sets/dyn/members/a.example", &[&match_it], "");
    assert_eq!(gone.status, 412, "{gone:?}");
    assert!(gone.json().contains("\"changed\": { \"by\": \""), "who was faster: {gone:?}");
    assert_eq!(ask(&server, "DELETE", "/sets/dyn/members/a.example", &["If-Match: *"], "").status, 200);
    let history = get(&server, "/sets/dyn/history").json();
    let at = |what: &str| history.find(what).unwrap_or_else(|| panic!("{what} in {history}"));
    assert!(at("-a.example.") < at("+b.example.") && at("+b.example.") < at("+a.example."), "{history}");
    assert!(history.contains("\"revision\": 3") && history.contains("\"by\": \""), "{history}");
}
