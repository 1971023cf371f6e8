//! DNS over HTTP: requests, limits, and clients that are slow or hostile on purpose.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use common::{BIG, Running, query, run, settle, start, start_with};
use engine::Transport;
use h2::client::SendRequest;
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use listen::TlsCell;
use plan::certificates::Challenge;
use plan::listeners::{Plan, Prefix, Transports};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

fn start_http(change: impl FnOnce(&mut Plan)) -> Running {
    start("127.0.0.1:0", |plan| {
        plan.listeners[0].transports = Transports::HTTP;
        change(plan);
    })
}

async fn connect(server: &Running) -> TcpStream {
    let stream = TcpStream::connect(server.address).await.expect("connected");
    stream.set_nodelay(true).expect("set");
    stream
}

/// Returns a POST request.
fn post(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /dns-query HTTP/1.1\r\nHost: dns.example.org\r\nContent-Type: application/dns-message\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A response: its status, its head in lower case, its body.
struct Response {
    status: u16,
    head: String,
    body: Vec<u8>,
}

/// Reads a response; `None` when the connection ends instead.
async fn receive(stream: &mut TcpStream) -> Option<Response> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let length = head.split_once("content-length: ").and_then(|(_, rest)| rest.split("\r\n").next());
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some(Response { status, head, body })
}

async fn ask(stream: &mut TcpStream, request: &[u8]) -> Response {
    stream.write_all(request).await.expect("sent");
    receive(stream).await.expect("a response")
}

/// Speaks HTTP/2 with the server.
async fn connect_h2(server: &Running) -> SendRequest<Bytes> {
    let (client, connection) = h2::client::handshake(connect(server).await).await.expect("a handshake");
    tokio::task::spawn_local(async move { drop(connection.await) });
    client
}

fn request_h2() -> Request<()> {
    Request::post("https://dns.example.org/dns-query")
        .header("content-type", "application/dns-message")
        .body(())
        .expect("a request")
}

async fn ask_h2(client: &SendRequest<Bytes>, body: &[u8]) -> (StatusCode, Vec<u8>) {
    let mut client = client.clone().ready().await.expect("open");
    let (response, mut stream) = client.send_request(request_h2(), false).expect("sent");
    stream.send_data(Bytes::copy_from_slice(body), true).expect("sent");
    let mut response = response.await.expect("a response");
    let status = response.status();
    let mut octets = Vec::new();
    while let Some(data) = response.body_mut().data().await {
        let data = data.expect("a body");
        let _ = response.body_mut().flow_control().release_capacity(data.len());
        octets.extend_from_slice(&data);
    }
    (status, octets)
}

#[test]
fn messages_are_answered_over_http_1() {
    run(async {
        let server = start_http(|_| {});
        let mut stream = connect(&server).await;
        for id in 0..3 {
            let response = ask(&mut stream, &post(&query(id, "now"))).await;
            assert_eq!((response.status, response.body), (200, query(id, "now")));
            assert!(response.head.contains("content-type: application/dns-message"), "{}", response.head);
        }
        let response = ask(&mut stream, &post(&query(9, "big"))).await;
        assert_eq!((response.status, response.body.len()), (200, BIG));
        let seen = server.service.last_client();
        assert_eq!((seen.transport, seen.verified, seen.keepalive), (Transport::Https, true, None));
        stream.write_all(&post(&query(4, "late"))).await.expect("sent");
        server.service.until_waiting(1).await;
        server.service.echo(0);
        assert_eq!(receive(&mut stream).await.expect("a response").body, query(4, "late"));
        assert_eq!(server.count("http_queries"), 5);
    });
}

#[test]
fn streams_of_http_2_are_answered_when_they_are_ready() {
    run(async {
        let server = start_http(|_| {});
        let client = connect_h2(&server).await;
        let late = tokio::task::spawn_local({
            let client = client.clone();
            async move { ask_h2(&client, &query(1, "late")).await }
        });
        server.service.until_waiting(1).await;
        for id in 2..200 {
            assert_eq!(ask_h2(&client, &query(id, "now")).await, (StatusCode::OK, query(id, "now")));
        }
        let (status, body) = ask_h2(&client, &query(9, "big")).await;
        assert_eq!((status, body.len()), (StatusCode::OK, BIG));
        server.service.echo(0);
        assert_eq!(late.await.expect("answered"), (StatusCode::OK, query(1, "late")));
    });
}

#[test]
fn what_cannot_be_answered_has_a_status_that_says_why() {
    run(async {
        let server = start_http(|_| {});
        let mut stream = connect(&server).await;
        let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
        for (request, status) in [
            (get("/"), 404),
            (get("/dns-query"), 400),
            (get("/dns-query?dns=A"), 400),
            (get("/dns-query?name=a..b"), 400),
            (b"DELETE /dns-query HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), 405),
            (b"POST /dns-query HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx".to_vec(), 415),
            // The server says nothing to the first, as over any transport; the second is no query
            // at all.
            (post(&query(1, "drop")), 403),
            (post(b"x"), 400),
        ] {
            let shown = String::from_utf8_lossy(&request).into_owned();
            assert_eq!(ask(&mut stream, &request).await.status, status, "{shown}");
        }
        let head = "POST /dns-query HTTP/1.1\r\nHost: a\r\nContent-Type: application/dns-message\r\n";
        let response = ask(&mut stream, format!("{head}Content-Length: 65536\r\n\r\n").as_bytes()).await;
        assert_eq!(response.status, 413);
        let mut stream = connect(&server).await;
        let endless = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
        stream.write_all(endless.as_bytes()).await.expect("sent");
        let chunk = [b"8000\r\n".to_vec(), vec![0; 0x8000], b"\r\n".to_vec()].concat();
        for _ in 0..3 {
            let _ = stream.write_all(&chunk).await;
        }
        assert_eq!(receive(&mut stream).await.expect("a response").status, 413);
    });
}

#[test]
fn responses_over_http_2_have_the_status_and_the_fields_that_others_have() {
    run(async {
        let server = start_http(|_| {});
        let client = connect_h2(&server).await;
        let ask = async |method: &str, path: &str, body: Option<&[u8]>| {
            let mut client = client.clone().ready().await.expect("open");
            let request = Request::builder()
                .method(method)
                .uri(format!("https://dns.example.org{path}"))
                .header("content-type", "application/dns-message")
                .body(())
                .expect("a request");
            let (response, mut stream) = client.send_request(request, body.is_none()).expect("sent");
            if let Some(body) = body {
                // A body that is refused may be cut off.
                let _ = stream.send_data(Bytes::copy_from_slice(body), true);
            }
            let mut response = response.await.expect("a response");
            let mut octets = 0;
            while let Some(Ok(data)) = response.body_mut().data().await {
                octets += data.len();
            }
            let field = |name: &str| {
                let value = response.headers().get(name)?;
                Some(value.to_str().expect("text").to_owned())
            };
            let length = (octets > 0).then(|| octets.to_string());
            if method != "HEAD" {
                assert_eq!(field("content-length"), length, "{method} {path}");
            }
            (response.status().as_u16(), octets, field("content-type"), field("allow"))
        };
        let message = Some("application/dns-message".to_owned());
        let text = Some("text/plain; charset=utf-8".to_owned());
        let get = "/dns-query?dns=AAAAAAAAAAAAAAAAbm93";
        let query = query(0, "now");
        assert_eq!(ask("GET", get, None).await, (200, query.len(), message.clone(), None));
        assert_eq!(ask("POST", "/dns-query", Some(&query)).await, (200, query.len(), message, None));
        assert_eq!(ask("GET", "/", None).await.0, 404);
        assert_eq!(ask("GET", "/dns-query?dns=A", None).await.0, 400);
        assert_eq!(ask("POST", "/dns-query", Some(&[0; 70_000])).await.0, 413);
        let (status, octets, kind, allow) = ask("PUT", "/dns-query", Some(b"x")).await;
        assert_eq!((status, kind, allow), (405, text, Some("GET, HEAD, POST, OPTIONS".to_owned())));
        assert!(octets > 0);
        assert_eq!(ask("HEAD", "/dns-query", None).await.1, 0, "a head and nothing else");
        let long = format!("/{}", "x".repeat(20_000));
        assert_eq!(ask("GET", &long, None).await.0, 431);
        assert_eq!(ask("GET", get, None).await.0, 200, "and the connection goes on");
    });
}

#[test]
fn a_client_that_sends_all_of_a_body_that_is_too_large_sees_the_status() {
    run(async {
        let server = start_http(|_| {});
        let client = connect_h2(&server).await;
        // Far more than the windows hold: it is sent only if the server goes on reading.
        let (response, mut stream) =
            client.clone().ready().await.expect("open").send_request(request_h2(), false).expect("sent");
        let mut left = 400_000;
        while left > 0 {
            stream.reserve_capacity(left);
            let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
            let room = room.expect("the stream is open").expect("it is not reset").min(left);
            left -= room;
            stream.send_data(Bytes::from(vec![0; room]), left == 0).expect("it is not reset");
        }
        assert_eq!(response.await.expect("a response").status(), 413);
        assert_eq!(ask_h2(&client, &query(7, "now")).await, (StatusCode::OK, query(7, "now")));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn what_ends_within_a_request_is_acknowledged_at_once() {
    /// Returns whether the system lets acknowledgements to this client travel with replies, as it
    /// does within a conversation.
    fn delays_acknowledgements(server: &Running, client: &TcpStream) -> bool {
        let hex = |port: u16| format!(":{port:04X}");
        let (here, far) = (client.local_addr().expect("connected").port(), server.address.port());
        let table = std::fs::read_to_string("/proc/net/tcp").expect("the system's table of connections");
        let found = table.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words.len() > 14 && words[1].ends_with(&hex(far)) && words[2].ends_with(&hex(here)))
                .then(|| words[14].parse::<u32>().expect("a number"))
        });
        found.expect("the server's end is there") & 1 == 1
    }
    const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\x0012345678";
    run(async {
        let server = start_http(|_| {});
        let mut stream = connect(&server).await;
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("sent");
        let mut greeting = [0; 9 + 3 * 6 + 13 + 9];
        stream.read_exact(&mut greeting).await.expect("its settings");
        for _ in 0..100 {
            stream.write_all(PING).await.expect("sent");
            stream.read_exact(&mut [0; PING.len()]).await.expect("the same");
            if delays_acknowledgements(&server, &stream) {
                break;
            }
        }
        assert!(delays_acknowledgements(&server, &stream), "a conversation");
        // A POST request without its body.
        stream.write_all(b"\0\0\x03\x01\x04\0\0\0\x01\x83\x87\x84").await.expect("sent");
        settle().await;
        assert!(
            !delays_acknowledgements(&server, &stream),
            "the client may wait for it before it sends the body"
        );
    });
}

#[test]
fn proxies_are_believed_if_they_are_trusted() {
    run(async {
        let server = start_http(|plan| {
            plan.listeners[0].forwarders = vec![Prefix::new([127, 0, 0, 0].into(), 8)];
        });
        let mut stream = connect(&server).await;
        let with = |header: &str| {
            let request = String::from_utf8(post(&query(1, "now"))).expect("text");
            request.replacen("\r\n", &format!("\r\n{header}\r\n"), 1).into_bytes()
        };
        ask(&mut stream, &with("X-Forwarded-For: 198.51.100.1, 192.0.2.7")).await;
        assert_eq!(server.service.last_client().address.to_string(), "192.0.2.7");
        ask(&mut stream, &with("Forwarded: for=\"[2001:db8::7]\"")).await;
        assert_eq!(server.service.last_client().address.to_string(), "2001:db8::7");
        let strict = start_http(|_| {});
        let mut stream = connect(&strict).await;
        ask(&mut stream, &with("X-Forwarded-For: 192.0.2.7")).await;
        assert_eq!(strict.service.last_client().address.to_string(), "127.0.0.1");
    });
}

/// Returns a frame of HTTP/2 (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[test]
fn streams_that_are_reset_at_once_end_the_connection() {
    run(async {
        let server = start_http(|_| {});
        let mut other = connect(&server).await;
        let mut attacker = connect(&server).await;
        let mut octets = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        octets.extend(frame(4, 0, 0, &[]));
        // CVE-2023-44487: open, reset, and again, without waiting for anything. :method POST,
        // :scheme http, :path /, :authority a (RFC 7541 §6.1, §6.2.2).
        for stream in (1..2000).step_by(2) {
            octets.extend(frame(1, 4, stream, &[0x83, 0x86, 0x84, 0x01, 0x01, b'a']));
            octets.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
        }
        // It may be closed before everything is sent.
        let _ = attacker.write_all(&octets).await;
        let mut told = Vec::new();
        let ended = timeout(Duration::from_secs(10), attacker.read_to_end(&mut told)).await;
        drop(ended.expect("the connection was ended"));
        // GOAWAY with ENHANCE_YOUR_CALM, unless a reset of the connection overtook it.
        let calm = 0xb_u32.to_be_bytes();
        assert!(told.is_empty() || told.windows(4).any(|window| window == calm), "{told:02x?}");
        assert!(server.count("http_requests") < 200, "{}", server.count("http_requests"));
        assert_eq!(ask(&mut other, &post(&query(1, "now"))).await.status, 200, "others go on");
    });
}

#[test]
fn queries_of_streams_that_are_gone_count_against_their_connection() {
    run(async {
        let server = start_http(|plan| plan.tcp.waiting_max = 4);
        let client = connect_h2(&server).await;
        for id in 0..4 {
            let mut client = client.clone().ready().await.expect("open");
            let (response, mut stream) = client.send_request(request_h2(), false).expect("sent");
            stream.send_data(Bytes::from(query(id, "late")), true).expect("sent");
            server.service.until_waiting(usize::from(id) + 1).await;
            drop((response, stream));
            settle().await;
        }
        let (status, _) = ask_h2(&client, &query(9, "now")).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
        server.service.late.borrow_mut().clear();
        assert_eq!(ask_h2(&client, &query(9, "now")).await.0, StatusCode::OK);
    });
}

#[test]
fn slow_requests_are_given_up() {
    run(async {
        let server = start_http(|plan| {
            plan.tcp.first_timeout = Duration::from_millis(100);
            plan.tcp.query_timeout = Duration::from_millis(100);
            plan.tcp.idle_timeout = Duration::from_millis(100);
        });
        // Nothing, part of a head, and part of a body.
        let body = post(&query(1, "now"));
        for part in [&b""[..], b"POST /dns-query HTTP/1.1\r\nHost: a\r\n", &body[..body.len() - 3]] {
            let mut stream = connect(&server).await;
            stream.write_all(part).await.expect("sent");
            let mut rest = Vec::new();
            let ended = timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
            drop(ended.expect("closed in time"));
            let told = String::from_utf8_lossy(&rest);
            assert!(rest.is_empty() || told.contains("408"), "{told}");
        }
        // One that was answered and is quiet.
        let mut stream = connect(&server).await;
        assert_eq!(ask(&mut stream, &post(&query(1, "now"))).await.status, 200);
        let closed =
            timeout(Duration::from_secs(10), stream.read(&mut [0; 8])).await.expect("closed in time");
        assert_eq!(closed.expect("closed cleanly"), 0);
    });
}

#[test]
fn replies_that_nobody_takes_are_not_kept_for_ever() {
    run(async {
        let server = start_http(|plan| plan.tcp.idle_timeout = Duration::from_millis(100));
        let mut stream = connect(&server).await;
        let mut octets = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // SETTINGS_INITIAL_WINDOW_SIZE of zero: no octet of a body may be sent.
        octets.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
        // :method GET, :scheme http, :path with the query of RFC 8484 §4.1.1, :authority a.
        let path = b"/dns-query?dns=AAABAAABAAAAAAAAA25vdwAAAQAB";
        let head = [&[0x82, 0x86, 0x04, path.len() as u8][..], path, &[0x01, 0x01, b'a']].concat();
        octets.extend(frame(1, 5, 1, &head));
        stream.write_all(&octets).await.expect("sent");
        let mut told = Vec::new();
        let ended = timeout(Duration::from_secs(10), stream.read_to_end(&mut told)).await;
        drop(ended.expect("the connection was ended"));
        assert_eq!(server.count("http_queries"), 1);
    });
}

#[test]
fn heads_that_never_end_are_not_listened_to_for_ever() {
    run(async {
        let server = start_http(|_| {});
        let mut stream = connect(&server).await;
        let mut octets = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        octets.extend(frame(4, 0, 0, &[]));
        octets.extend(frame(1, 0, 1, &[0x83, 0x86, 0x84, 0x01, 0x01, b'a']));
        // CVE-2024-27316: continuations without an end.
        let field = [&[0x00, 1, b'x', 100][..], &[b'y'; 100]].concat();
        for _ in 0..20_000 {
            octets.extend(frame(9, 0, 1, &field));
        }
        let _ = stream.write_all(&octets).await;
        let mut told = Vec::new();
        let ended = timeout(Duration::from_secs(10), stream.read_to_end(&mut told)).await;
        drop(ended.expect("the connection was ended"));
        assert_eq!(server.service.seen(), 0);
    });
}

#[test]
fn heads_are_bounded() {
    run(async {
        let server = start_http(|_| {});
        let mut stream = connect(&server).await;
        let long = format!("GET /dns-query HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(60_000));
        let _ = stream.write_all(long.as_bytes()).await;
        let response = receive(&mut stream).await;
        assert!(response.is_none_or(|response| response.status == 431), "too large");
        let mut stream = connect(&server).await;
        let many = format!("GET /dns-query HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(1000));
        let _ = stream.write_all(many.as_bytes()).await;
        let response = receive(&mut stream).await;
        assert!(response.is_none_or(|response| response.status == 431), "too many");
        assert_eq!(server.service.seen(), 0);
    });
}

#[test]
fn a_connection_that_is_old_ends() {
    run(async {
        let server = start_http(|plan| plan.tcp.age_max = Some(Duration::from_millis(100)));
        let client = connect_h2(&server).await;
        let asking = async {
            let mut asked = 0_u32;
            while let Ok(mut client) = client.clone().ready().await
                && let Ok((response, mut stream)) = client.send_request(request_h2(), false)
                && stream.send_data(Bytes::from(query(1, "now")), true).is_ok()
                && response.await.is_ok()
            {
                asked += 1;
            }
            asked
        };
        assert!(timeout(Duration::from_secs(10), asking).await.expect("it ends") > 0);
        while server.count("tcp_closed_finished") == 0 {
            settle().await;
        }
    });
}

#[test]
fn quiet_connections_give_way_to_new_ones() {
    run(async {
        let server = start_http(|plan| plan.tcp.connections_max = 2);
        let (mut first, mut second) = (connect(&server).await, connect(&server).await);
        assert_eq!(ask(&mut second, &post(&query(1, "now"))).await.status, 200);
        assert_eq!(ask(&mut first, &post(&query(1, "now"))).await.status, 200);
        let mut third = connect(&server).await;
        assert_eq!(ask(&mut third, &post(&query(1, "now"))).await.status, 200);
        assert_eq!(second.read(&mut [0; 8]).await.unwrap_or(0), 0, "the longest quiet one was closed");
        assert_eq!(ask(&mut first, &post(&query(1, "now"))).await.status, 200);
        assert_eq!(server.count("tcp_closed_evicted"), 1);
    });
}

#[test]
fn a_stopping_worker_finishes_what_it_has() {
    run(async {
        let server = start_http(|_| {});
        let mut stream = connect(&server).await;
        stream.write_all(&post(&query(1, "late"))).await.expect("sent");
        server.service.until_waiting(1).await;
        server.stop(Duration::from_secs(5));
        settle().await;
        server.service.echo(0);
        assert_eq!(receive(&mut stream).await.expect("a response").body, query(1, "late"));
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap_or(0), 0);
    });
}

/// What browsers and caches ask besides, over HTTP/1.1 as it is on the wire and over HTTP/2.
#[test]
fn head_and_options_are_answered_and_scripts_of_other_sites_may_read_json() {
    run(async {
        let server = start_http(|_| {});
        let json = "/dns-query?name=now";
        let wire = "/dns-query?dns=AAAAAAAAAAAAAAAAbm93";
        let mut stream = connect(&server).await;
        let mut told = Vec::new();
        for (method, path) in [("GET", json), ("GET", wire), ("OPTIONS", "/dns-query")] {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nOrigin: https://b.example\r\n\r\n");
            told.push(ask(&mut stream, request.as_bytes()).await);
        }
        let [got, message, options] = &told[..] else { panic!("three responses") };
        assert_eq!((got.status, message.status, options.status), (200, 200, 204));
        assert!(got.head.contains("access-control-allow-origin: *\r\n"), "{}", got.head);
        assert!(!message.head.contains("access-control"), "{}", message.head);
        for field in [
            "allow: get, head, post, options\r\n",
            "access-control-allow-origin: *\r\n",
            "access-control-allow-methods: get, head, post, options\r\n",
        ] {
            assert!(options.head.contains(field), "{}", options.head);
        }
        assert!(options.body.is_empty());
        // The same head as GET has, and then at once the next response.
        for (path, got) in [(json, got), (wire, message)] {
            let request = format!("HEAD {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let mut stream = connect(&server).await;
            stream.write_all(request.as_bytes()).await.expect("sent");
            let mut octets = Vec::new();
            stream.read_to_end(&mut octets).await.expect("closed");
            let head = String::from_utf8(octets).expect("a head and nothing else").to_ascii_lowercase();
            assert!(head.starts_with("http/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
            assert!(head.contains(&format!("content-length: {}\r\n", got.body.len())), "{head}");
        }
        let mut client = connect_h2(&server).await;
        for (method, path, status, length) in [
            ("HEAD", json, 200, Some(got.body.len())),
            ("HEAD", wire, 200, Some(message.body.len())),
            ("OPTIONS", json, 204, None),
        ] {
            let uri = format!("https://dns.example.org{path}");
            let request = Request::builder().method(method).uri(uri).body(()).expect("a request");
            let (response, _) = client.send_request(request, true).expect("sent");
            let mut response = response.await.expect("a response");
            assert_eq!(response.status().as_u16(), status, "{method} {path}");
            let said = response.headers().get("content-length").map(|value| value.to_str().expect("text"));
            assert_eq!(said, length.map(|length| length.to_string()).as_deref(), "{method} {path}");
            assert!(response.body_mut().data().await.is_none());
            client = client.ready().await.expect("the connection goes on");
        }
    });
}

#[test]
fn an_authority_finds_the_file_that_it_looks_for_and_no_other() {
    run(async {
        let cell = Arc::new(TlsCell::new(None));
        let server = start_with("127.0.0.1:0", &cell, |plan| plan.listeners[0].transports = Transports::HTTP);
        let file = Challenge::File { token: "token_1-A".to_owned(), text: "token_1-A.key".to_owned() };
        cell.answer_challenges(&[file]).expect("a file");
        let request = |method: &str, token: &str| {
            format!("{method} /.well-known/acme-challenge/{token} HTTP/1.1\r\nHost: dns.example.org\r\n\r\n")
        };
        let mut stream = connect(&server).await;
        for _ in 0..2 {
            let response = ask(&mut stream, request("GET", "token_1-A").as_bytes()).await;
            assert_eq!((response.status, &*response.body), (200, &b"token_1-A.key"[..]), "{}", response.head);
        }
        for token in ["other", "", "token_1-A/", "../dns-query"] {
            let response = ask(&mut stream, request("GET", token).as_bytes()).await;
            assert_eq!(response.status, 404, "{token}");
        }
        assert_eq!(ask(&mut stream, request("DELETE", "token_1-A").as_bytes()).await.status, 404);
        let mut client = connect_h2(&server).await.ready().await.expect("open");
        let found = Request::get("http://dns.example.org/.well-known/acme-challenge/token_1-A").body(());
        let (response, _) = client.send_request(found.expect("a request"), true).expect("sent");
        assert_eq!(response.await.expect("a response").status(), StatusCode::OK);
        cell.answer_challenges(&[]).expect("nothing");
        assert_eq!(ask(&mut stream, request("GET", "token_1-A").as_bytes()).await.status, 404);
    });
}
