//! Members of dynamic sets, many in one request.

use testkit::{Ask, Server, Stub};
use wire::{Rcode, Rtype};

use super::network::{shown, start as start_network, token};
use super::{Heard, JSON, ask, get, say, start};

const LINES: &str = "Content-Type: application/x-ndjson";
const MEMBERS: &str = "/sets/bad/members";
const SETS: &str = "sets: {bad: {dynamic: {holds: names, limit: 200000}}}\n\
                    policy: {main: [{if: qname in bad, do: reject(nxdomain)}, forward(default)]}\n";

fn begin() -> (Stub, Server) {
    start(SETS)
}

fn post(server: &Server, query: &str, head: &[&str], body: &str) -> Heard {
    ask(server, "POST", &format!("{MEMBERS}{query}"), &[&[LINES], head].concat(), body)
}

#[test]
fn a_hundred_thousand_members_come_in_one_request_and_survive_a_kill() {
    let (stub, server) = begin();
    let lines: String = (0..100_000).map(|at| format!("{{\"add\": \"n{at}.example\"}}\n")).collect();
    let dry = post(&server, "?dry-run", &[], &lines);
    assert!(dry.status == 200 && dry.json().contains("\"changed\": 100000"), "{dry:?}");
    assert!(get(&server, MEMBERS).json().starts_with("[]"), "it was only checked");
    let made = post(&server, "", &[], &lines);
    assert!(made.status == 200 && made.json().contains("\"holds\": 100000"), "{made:?}");
    let rcode = |server: &Server, name: &str| server.ask(&Ask::new(name, Rtype::A)).rcode();
    assert_eq!(rcode(&server, "www.n99999.example"), Rcode::NXDOMAIN);
    let some =
        "{\"remove\": \"n5.example\"}\n{\"add\": \"exact:only.example\"}\n{\"remove\": \"none.example\"}\n";
    let changed = post(&server, "?ttl-s=3600", &[], some);
    assert!(changed.json().contains("\"changed\": 2"), "{changed:?}");
    assert!(get(&server, "/sets/bad/members?after=exact%3Aonl").json().contains("\"leaves-in-s\""));
    let row = String::from_utf8_lossy(&server.command(&["audit", "tail"]).stdout).into_owned();
    assert!(row.contains("set bad") && row.contains("more"), "{row}");
    server.signal("KILL");
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &testkit::forwarding(&[&stub], SETS));
    assert_eq!(rcode(&server, "n99999.example"), Rcode::NXDOMAIN);
    assert_eq!(rcode(&server, "n5.example"), Rcode::NOERROR);
    assert_eq!(rcode(&server, "only.example"), Rcode::NXDOMAIN);
    assert_eq!(rcode(&server, "www.only.example"), Rcode::NOERROR);
    let more: String = (0..100_001).map(|at| format!("{{\"add\": \"m{at}.example\"}}\n")).collect();
    assert_eq!(post(&server, "", &[], &more).status, 400, "more than there may be");
}

#[test]
fn lines_that_are_wrong_change_nothing_and_each_is_told() {
    let (_stub, server) = begin();
    let body = "{\"add\": \"a.example\"}\n{\"add\": \"b..example\"}\n{\"remove\": \"regex:c\"}\n";
    let wrong = post(&server, "", &[], body);
    assert!(wrong.status == 422 && wrong.json().contains("\"line\": 2,"), "{wrong:?}");
    assert!(wrong.json().contains("\"line\": 3,") && wrong.json().contains("unknown form"), "{wrong:?}");
    for body in ["{\"add\": 7}", "{\"put\": \"a.example\"}", "", "{\"add\": \"a.example\"", "[]"] {
        let heard = post(&server, "", &[], body);
        assert!([400, 422].contains(&heard.status), "{body}: {heard:?}");
    }
    assert!(get(&server, MEMBERS).json().starts_with("[]"));
    assert_eq!(ask(&server, "POST", MEMBERS, &["Content-Type: text/plain"], "a.example").status, 415);
    let tag = get(&server, MEMBERS).header("etag").expect("an ETag").to_owned();
    let match_it = format!("If-Match: {tag}");
    let one = "{\"add\": \"a.example\"}";
    assert_eq!(post(&server, "", &[&match_it], one).status, 200);
    assert_eq!(post(&server, "", &[&match_it], one).status, 412);
    assert_eq!(post(&server, "?dry-run", &[&match_it], one).status, 412);
    // JSON is no longer than elsewhere.
    let long = format!("{{\"items\": [\"{}\"]}}", "a".repeat(2 << 20));
    assert_eq!(ask(&server, "POST", MEMBERS, &[JSON], &long).status, 413);
    let head = format!(
        "POST /api/v1{MEMBERS} HTTP/1.1\r\nHost: localhost\r\n{LINES}\r\nContent-Length: {}\r\n\r\n",
        17 << 20
    );
    assert_eq!(say(&server, head.as_bytes()).status, 413);
}

#[test]
fn who_may_not_change_members_is_refused_before_anything_is_read() {
    let (server, at, _stub) = start_network(SETS);
    let viewer = shown(&token(&server, "viewer", &[]));
    let mut stream = std::net::TcpStream::connect(at).expect("a connection");
    let head = format!(
        "POST /api/v1{MEMBERS} HTTP/1.1\r\nHost: localhost\r\n{viewer}\r\n{LINES}\r\nContent-Length: 100\r\n\r\n"
    );
    std::io::Write::write_all(&mut stream, head.as_bytes()).expect("taken");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut line).expect("an answer");
    assert!(line.starts_with("HTTP/1.1 403 "), "{line}");
}
