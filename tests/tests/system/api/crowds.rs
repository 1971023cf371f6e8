//! Many who come over the network, and what others get meanwhile.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};

use testkit::{Ask, tcp_from};
use wire::Rtype;

use super::network::{curl, shown, start, token};

/// Who comes in crowds: of one network.
const CROWD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
/// Somebody of another network.
const OTHER: [u8; 4] = [127, 0, 1, 1];

/// Sends octets from an address, and reads everything that comes until the server ends it.
fn say(at: SocketAddr, octets: &[u8]) -> String {
    let mut stream = tcp_from(OTHER.into(), at).expect("a connection");
    // Who is refused early does not take the rest.
    let _ = stream.write_all(octets);
    hear(stream)
}

fn hear(mut stream: TcpStream) -> String {
    let mut octets = Vec::new();
    // A reset comes after everything that was said.
    let _ = stream.read_to_end(&mut octets);
    String::from_utf8_lossy(&octets).into_owned()
}

/// Reads until a text has come.
fn hear_until(stream: &mut TcpStream, heard: &mut String, text: &str) {
    let mut octets = [0; 4096];
    while !heard.contains(text) {
        let count = stream.read(&mut octets).expect("it is still there");
        assert!(count > 0, "it was ended: {heard}");
        heard.push_str(&String::from_utf8_lossy(&octets[..count]));
    }
}

/// Asks for the status from another network than the crowd.
fn others_get(at: SocketAddr, header: &str) -> u16 {
    curl(at, "/api/v1/status", &["--interface", "127.0.1.1", "--header", header]).0
}

#[test]
fn ten_thousand_connections_of_strangers_end_none_of_others_or_of_who_is_known() {
    let (server, at, _stub) = start("recorder: {file: queries.db}\n");
    let header = shown(&token(&server, "monitoring", &["--role", "helper"]));
    // Two that were there before watch queries, one of them in the crowd's own network.
    let request = format!("GET /api/v1/queries/live HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n");
    let mut watching = [OTHER.into(), CROWD].map(|from| {
        let mut stream = tcp_from(from, at).expect("a connection");
        stream.write_all(request.as_bytes()).expect("taken");
        let mut heard = String::new();
        hear_until(&mut stream, &mut heard, "text/event-stream");
        (stream, heard)
    });
    let mut crowd = std::collections::VecDeque::new();
    for number in 0..10_000 {
        let mut stream = tcp_from(CROWD, at).expect("a connection");
        // Some say nothing, some a part of what they want, some all of it.
        let said: &[u8] = match number % 3 {
            0 => b"",
            1 => b"GET /health HT",
            _ => b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        };
        let _ = stream.write_all(said);
        crowd.push_back(stream);
        if crowd.len() > 200 {
            crowd.pop_front();
        }
        if number % 2_500 == 2_499 {
            assert_eq!(others_get(at, &header), 200, "after {number}");
        }
    }
    server.ask(&Ask::new("www.example.org", Rtype::A));
    for (stream, heard) in &mut watching {
        hear_until(stream, heard, "\"name\":\"www.example.org\"");
    }
    // Nor is the crowd's own network shut out.
    drop(crowd);
    assert_eq!(curl(at, "/api/v1/status", &["--header", &header]).0, 200);
    assert!(server.command(&["status"]).status.success(), "nor those at the control socket");
}

#[test]
fn heads_and_bodies_that_come_slowly_keep_nobody_waiting() {
    let (server, at, _stub) = start("");
    let header = shown(&token(&server, "monitoring", &["--role", "operator"]));
    let head = format!(
        "POST /api/v1/changes HTTP/1.1\r\nHost: localhost\r\n{header}\r\nContent-Type: application/json\r\n\
         Content-Length: 1000000\r\n\r\n{{"
    );
    // More than there are places, each of which goes on octet by octet.
    let mut slow: Vec<TcpStream> = (0..100).map(|_| tcp_from(CROWD, at).expect("a connection")).collect();
    for round in 0..head.len() {
        for (number, stream) in slow.iter_mut().enumerate() {
            // Every other one has sent its head already, and sends a body.
            let part = if number % 2 == 0 {
                &head[round..=round]
            } else if round == 0 {
                head.as_str()
            } else {
                " "
            };
            let _ = stream.write_all(part.as_bytes());
        }
        if round % 50 == 0 {
            assert_eq!(others_get(at, &header), 200, "in round {round}");
            assert_eq!(curl(at, "/api/v1/status", &["--header", &header]).0, 200, "of their own network");
        }
    }
}

#[test]
fn nothing_is_smuggled_past_the_end_of_a_request() {
    let (server, at, _stub) = start("");
    let header = shown(&token(&server, "monitoring", &["--role", "operator"]));
    let head = format!(
        "POST /api/v1/changes HTTP/1.1\r\nHost: localhost\r\n{header}\r\nContent-Type: application/json\r\n"
    );
    let smuggled = format!("GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n");
    for odd in [
        // Two lengths, and a length beside chunks (RFC 9112 §6.3).
        "Content-Length: 4\r\nContent-Length: 0\r\n",
        "Content-Length: 4, 0\r\n",
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: identity\r\nContent-Length: 0\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        // A field that is folded (RFC 9112 §5.2), or has a space before the colon (§5.1).
        "X-Folded: a\r\n Content-Length: 0\r\nContent-Length: 4\r\n",
        "Content-Length:\r\n\t0\r\n",
        "Content-Length : 0\r\n",
        " Content-Length: 0\r\n",
        // What some take for a number.
        "Content-Length: +4\r\n",
        "Content-Length: 0x4\r\n",
        "Content-Length: 18446744073709551620\r\n",
        // What some take for the end of a line.
        "X: a\rContent-Length: 0\r\n",
        "X: a\0\r\n",
    ] {
        let said = say(at, format!("{head}{odd}\r\n0\r\n\r\n{smuggled}").as_bytes());
        let status = said.split(' ').nth(1).unwrap_or("");
        assert!(["400", "411", "413", "501"].contains(&status), "{odd:?}: {said}");
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "one response: {odd:?}: {said}");
    }
    assert_eq!(others_get(at, &header), 200);
}

#[test]
fn a_host_that_is_not_ours_gets_nothing_whatever_it_looks_like() {
    let (server, at, _stub) = start("");
    let header = shown(&token(&server, "browser", &[]));
    for (host, expect) in [
        ("Host: localhost", "200"),
        ("Host: LOCALHOST:80", "200"),
        ("Host: 127.0.0.1.evil.example", "421"),
        ("Host: localhost.evil.example", "421"),
        ("Host: localhost.", "421"),
        ("Host: evil.example:8533", "421"),
        ("Host: 2130706433", "421"),
        ("Host: 0x7f.1", "421"),
        ("Host: [::1].evil.example", "421"),
        ("Host: ", "421"),
        ("Host: localhost\r\nHost: evil.example", "400"),
        ("X-Forwarded-Host: localhost", "400"),
        ("X-Forwarded-Host: localhost\r\nHost: evil.example", "421"),
    ] {
        for path in ["/api/v1/status", "/", "/health"] {
            let request = format!("GET {path} HTTP/1.1\r\n{host}\r\nConnection: close\r\n{header}\r\n\r\n");
            let said = say(at, request.as_bytes());
            assert_eq!(said.split(' ').nth(1), Some(expect), "{host:?} {path}: {said}");
            assert!(expect == "200" || !said.contains("\"version\""), "{host}");
        }
    }
    // What comes with HTTP/1.0 has no Host, and is for nobody.
    let said = say(at, format!("GET /api/v1/status HTTP/1.0\r\n{header}\r\n\r\n").as_bytes());
    assert_eq!(said.split(' ').nth(1), Some("400"), "{said}");
}

#[test]
fn a_path_over_the_network_is_the_one_that_was_sent() {
    let (server, at, _stub) = start("");
    let header = shown(&token(&server, "viewer", &[]));
    for (path, expect) in [
        ("/api/v1/status", "200"),
        ("/api/v1/%73tatus", "200"),
        ("/api/v1/x/../status", "404"),
        ("/api/v1/x/%2e%2e/status", "404"),
        ("/api/v1/%2e%2e/%2e%2e/etc/passwd", "404"),
        ("/api/v1//status", "404"),
        ("//api/v1/status", "404"),
        ("/api/v1/./status", "404"),
        ("/api%2fv1/status", "404"),
        ("/api/v1%2fstatus", "404"),
        ("/api/v1/status/", "404"),
        ("/api/v1/status;x=1", "404"),
        ("/api/v1/status%00", "400"),
        ("/api/v1/status%0d%0aX: 1", "400"),
        ("/api/v1/st\\..\\atus", "404"),
        ("/login/%2e%2e/api/v1/status", "404"),
        ("/health/../api/v1/status", "404"),
        ("http://localhost/api/v1/status", "421"),
        ("*", "404"),
    ] {
        // A space ends what is asked for.
        let path = path.replace(' ', "%20");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n\r\n");
        let said = say(at, request.as_bytes());
        assert_eq!(said.split(' ').nth(1), Some(expect), "{path}: {said}");
        assert!(
            !said.contains("root:") && (expect == "200" || !said.contains("\"version\"")),
            "{path}: {said}"
        );
        // And without a token there is nothing behind any of them.
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let said = say(at, request.as_bytes());
        let status = said.split(' ').nth(1).unwrap_or("");
        assert!(["400", "401", "404", "421"].contains(&status), "{path}: {said}");
        assert!(!said.contains("\"version\""), "{path}: {said}");
    }
}
