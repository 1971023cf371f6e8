//! What strangers and broken programs send, and what others still get meanwhile.

use std::io::Write as _;

use super::{JSON, YAML, ask, connect, get, hear, say, start};

#[test]
fn a_body_that_two_readers_could_delimit_differently_is_not_read() {
    let (_stub, server) = start("");
    let head = "POST /api/v1/changes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let smuggled = "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for lengths in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: chunked\r\n",
    ] {
        let heard = say(&server, format!("{head}{lengths}\r\n0\r\n\r\n{smuggled}").as_bytes());
        assert_eq!(heard.status, 411, "{lengths}: {heard:?}");
        assert!(!heard.body.contains("HTTP/1.1"), "one response: {heard:?}");
    }
    for lengths in
        ["Content-Length: 4\r\nContent-Length: 5\r\n", "Content-Length: -1\r\n", "Content-Length: 1, 2\r\n"]
    {
        let heard = say(&server, format!("{head}{lengths}\r\n{{}}  {smuggled}").as_bytes());
        assert_eq!(heard.status, 400, "{lengths}: {heard:?}");
        assert!(!heard.body.contains("HTTP/1.1"), "one response: {heard:?}");
    }
    assert_eq!(get(&server, "/status").status, 200);
}

#[test]
fn too_much_is_refused_before_it_is_read() {
    let (_stub, server) = start("");
    let long = format!(
        "POST /api/v1/changes HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\nContent-Length: {}\r\n\r\n",
        u64::MAX / 2
    );
    assert_eq!(say(&server, long.as_bytes()).status, 413);
    let endless = format!("GET /api/v1/status HTTP/1.1\r\nX: {}", "a".repeat(64 << 10));
    let heard = say(&server, endless.as_bytes());
    assert!(heard.status == 431 || heard.status == 0, "{heard:?}");
    let many: String = (0..200).map(|number| format!("X-{number}: 1\r\n")).collect();
    let heard = say(&server, format!("GET /api/v1/status HTTP/1.1\r\n{many}\r\n").as_bytes());
    assert_eq!(heard.status, 431, "{heard:?}");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (method, path) in [("POST", "/changes"), ("PUT", "/settings/local")] {
        let heard = ask(&server, method, path, &[JSON, "If-Match: *"], &deep);
        assert!(heard.status == 400 && heard.json().contains("recursion limit"), "{heard:?}");
    }
    assert_eq!(get(&server, "/status").status, 200);
}

#[test]
fn json_that_could_be_misunderstood_is_refused_with_the_reason() {
    let (_stub, server) = start("");
    for (body, why) in [
        ("{\"edits\": [], \"edits\": []}", "twice"),
        ("{\"edits\": [{\"set\": {\"path\": \"a\", \"text\": \"b\", \"path\": \"c\"}}]}", "twice"),
        ("{\"edits\": []}", "no edits"),
        ("{\"edits\": 1}", "invalid type"),
        ("{\"edits\": [], \"for-s\": 1e400}", "out of range"),
        ("{\"edits\": [], \"for-s\": -1}", "invalid value"),
        ("{\"edits\": [], \"for-s\": 99999999999999999999}", "invalid"),
        ("{\"edits\": [], \"fly\": 1}", "unknown field"),
        ("{\"edits\": [", "EOF"),
        ("", "EOF"),
        ("\u{feff}{}", "expected value"),
    ] {
        let heard = ask(&server, "POST", "/changes", &[JSON], body);
        assert!(heard.status == 400 && heard.json().contains(why), "{body}: {heard:?}");
    }
    let form = "Content-Type: application/x-www-form-urlencoded";
    assert_eq!(ask(&server, "POST", "/changes", &[form], "{}").status, 415, "what a page of others can send");
    assert_eq!(ask(&server, "PUT", "/settings/local", &["If-Match: *"], "{}").status, 415);
    let twice = "{\"a.example\": \"192.0.2.1\", \"a.example\": \"192.0.2.2\"}";
    assert_eq!(ask(&server, "PUT", "/settings/local", &[JSON, "If-Match: *"], twice).status, 400);
}

#[test]
fn a_path_leads_nowhere_but_to_resources() {
    let (_stub, server) = start("");
    for path in [
        "/settings/..%2f..%2fetc%2fpasswd",
        "/settings/%2e%2e",
        "/settings/include",
        "/zones/..%2f..%2fetc",
        "/sets/..%2fpasswd/members",
        "/../v1/status",
        "/%2e%2e/status",
        "//status",
        "/status/",
        "/nothing",
        "/settings/a%00b",
    ] {
        let heard = get(&server, path);
        assert!(heard.status == 404 || heard.status == 400, "{path}: {heard:?}");
        assert!(!heard.body.contains("root:"), "{path}");
    }
    let fly = get(&server, "/status?fly=1");
    assert!(fly.status == 400 && fly.json().contains("unknown \\\"fly\\\""), "{fly:?}");
    let delete = ask(&server, "DELETE", "/status", &[], "");
    assert!(delete.status == 405 && delete.header("allow") == Some("GET"), "{delete:?}");
    let both = ask(&server, "PUT", "/settings/local", &[YAML, "If-Match: *", "If-Match: \"1\""], "{}");
    assert_eq!(both.status, 400, "{both:?}");
}

#[test]
fn who_sends_half_a_request_keeps_nobody_waiting() {
    let (_stub, server) = start("");
    let slow: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = connect(&server);
            stream.write_all(b"POST /api/v1/changes HTTP/1.1\r\nHost: loc").expect("taken");
            stream
        })
        .collect();
    let mut cut = connect(&server);
    let head = format!("POST /api/v1/changes HTTP/1.1\r\nHost: l\r\n{JSON}\r\nContent-Length: 100\r\n\r\n{{");
    cut.write_all(head.as_bytes()).expect("taken");
    cut.shutdown(std::net::Shutdown::Write).expect("half closed");
    let heard = hear(cut);
    assert!(heard.status == 400 || heard.status == 0, "{heard:?}");
    assert_eq!(get(&server, "/status").status, 200, "others are answered");
    assert!(server.command(&["status"]).status.success());
    drop(slow);
}
