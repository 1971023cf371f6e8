//! Users of the API: who they are, how they log in, and who cannot keep them out.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output, Stdio};

use testkit::{Server, contains, eventually, lacks};

use super::network::{curl, curl_at, start, start_in, text};

pub(super) const PASSWORD: &str = "correct horse battery staple";
const OTHER: &str = "another password entirely";

/// Runs a command that reads a password from standard input.
fn with_password(server: &Server, arguments: &[&str], password: &str) -> Output {
    let mut command = testkit::program(server.directory());
    command.args(arguments).args(["--password-file", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    writeln!(child.stdin.take().expect("a pipe"), "{password}").expect("it reads");
    child.wait_with_output().expect("it ends")
}

pub(super) fn add(server: &Server, name: &str, role: &str) {
    let output = with_password(server, &["users", "add", name, "--role", role], PASSWORD);
    assert!(output.status.success(), "{}", text(&output));
}

/// Tries to log in; returns the status, the cookie, and everything that came.
pub(super) fn log_in(at: SocketAddr, name: &str, password: &str, more: &[&str]) -> (u16, String, String) {
    let body = format!("{{\"name\": \"{name}\", \"password\": \"{password}\"}}");
    let arguments = ["--include", "--header", "Content-Type: application/json", "--data", &body];
    let (status, said) = curl(at, "/api/v1/session", &[&arguments, more].concat());
    let mut cookies = said.lines().filter_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookies.next().and_then(|line| line.split(';').next()).unwrap_or("").to_owned();
    (status, cookie, said)
}

pub(super) fn logged_in(at: SocketAddr, name: &str, password: &str) -> String {
    let (status, cookie, said) = log_in(at, name, password, &[]);
    assert_eq!(status, 200, "{said}");
    assert!(cookie.starts_with("gannet=gns_"), "{said}");
    cookie
}

/// Asks with a cookie, as a page of the server has a browser ask.
pub(super) fn ask(at: SocketAddr, cookie: &str, method: &str, path: &str, more: &[&str]) -> (u16, String) {
    let cookie = format!("Cookie: {cookie}");
    let arguments = ["--request", method, "--header", &cookie];
    let own = ["--header", "Sec-Fetch-Site: same-origin", "--header", "X-Gannet: 1"];
    curl(at, &format!("/api/v1{path}"), &[&arguments[..], &own, more].concat())
}

/// Returns whether a file below the server's directory holds a text.
pub(super) fn is_on_disk(server: &Server, what: &str) -> String {
    let grep = Command::new("grep").args(["-rlaF", what, "."]).current_dir(server.directory()).output();
    String::from_utf8_lossy(&grep.expect("grep(1)").stdout).into_owned()
}

#[test]
fn a_user_logs_in_does_what_the_role_allows_and_logs_out() {
    let (server, at, _stub) = start("local: {nas.home.arpa: 192.0.2.1}\n");
    add(&server, "anna", "operator");
    let (status, cookie, said) = log_in(at, "anna", PASSWORD, &[]);
    assert_eq!(status, 200, "{said}");
    contains(&said, "; Path=/; HttpOnly; SameSite=Strict");
    contains(&said, "\"role\": \"operator\"");
    let (status, body) = ask(at, &cookie, "GET", "/session", &[]);
    assert_eq!(status, 200);
    contains(&body, "\"name\": \"user anna\"");
    contains(&body, "\"from\": \"127.0.0.1\"");
    let json = ["--header", "Content-Type: application/json", "--header", "If-Match: *", "--data"];
    let put = |value: &'static str| [&json[..], &[value]].concat();
    let path = "/settings/local.nas.home.arpa";
    assert_eq!(ask(at, &cookie, "PUT", path, &put("\"192.0.2.2\"")).0, 200);
    let (status, body) = ask(at, &cookie, "GET", "/users", &[]);
    assert_eq!(status, 403, "{body}");
    contains(&body, "this needs the role admin, and user anna has operator");
    contains(&ask(at, &cookie, "GET", "/history", &[]).1, "\"by\": \"user anna\"");
    let (status, said) = ask(at, &cookie, "DELETE", "/session", &["--include"]);
    assert_eq!(status, 200, "{said}");
    contains(&said, "set-cookie: gannet=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    assert_eq!(ask(at, &cookie, "GET", "/session", &[]).0, 401, "a cookie that is shown again");
    let audit = text(&server.command(&["audit", "tail"]));
    contains(&audit, "change users anna");
    contains(&audit, "log-in 127.0.0.1 by user anna: accepted");
    contains(&audit, "log-out 127.0.0.1 by user anna: accepted");
}

#[test]
fn nothing_of_a_password_or_a_session_is_on_the_disk_in_the_log_or_in_a_reply() {
    let (mut server, at, _stub) = start("log: {level: debug}\n");
    add(&server, "anna", "admin");
    let cookie = logged_in(at, "anna", PASSWORD);
    let secret = cookie.trim_start_matches("gannet=").to_owned();
    let (status, _, said) = log_in(at, "anna", OTHER, &[]);
    assert_eq!(status, 401);
    lacks(&said, OTHER);
    let header = format!("X: {OTHER}");
    let kinds = ["--header", "Content-Type: application/json", "--header", &header, "--data"];
    let wrong = format!("{{\"passwort\": \"{PASSWORD}\"}}");
    let (status, said) = ask(at, &cookie, "PUT", "/users/anna/password", &[&kinds[..], &[&wrong]].concat());
    assert_eq!(status, 400, "{said}");
    lacks(&said, PASSWORD);
    let right = format!("{{\"password\": \"{OTHER}\"}}");
    let repeated = ["--header", "Idempotency-Key: 1"];
    let arguments = [&repeated[..], &kinds, &[&right]].concat();
    assert_eq!(
        ask(at, &cookie, "PUT", "/users/anna/password", &arguments).0,
        400,
        "a digest could be guessed"
    );
    let tunnel = format!("{{\"request\": \"user-password\", \"name\": \"anna\", \"password\": \"{OTHER}\"}}");
    let (status, said) = ask(at, &cookie, "POST", "/requests", &[&kinds[..], &[&tunnel]].concat());
    assert_eq!(status, 200, "{said}");
    contains(&said, "\"has-password\":true");
    let audit = text(&server.command(&["audit", "export"]));
    contains(&audit, "user-password");
    let log = server.log().join("\n");
    for text in [PASSWORD, OTHER, &secret] {
        assert_eq!(is_on_disk(&server, text), "", "{text}");
        lacks(&audit, text);
        lacks(&log, text);
    }
}

#[test]
fn users_are_looked_after_by_admins_and_survive_a_kill() {
    let (server, at, _stub) = start("");
    add(&server, "anna", "admin");
    let again = with_password(&server, &["users", "add", "anna"], PASSWORD);
    contains(&text(&again), "there is a user \"anna\" already");
    let short = with_password(&server, &["users", "add", "bob"], "short");
    assert_eq!(short.status.code(), Some(1));
    contains(&text(&short), "the password is too short: expected at least 12 characters");
    let typed = server.command(&["users", "add", "bob"]);
    assert_eq!(typed.status.code(), Some(1), "there is nobody to ask: {}", text(&typed));
    contains(&text(&server.command(&["users", "add", "Bob", "--no-password"])), "a user's name has 1 to 32");
    let cookie = logged_in(at, "anna", PASSWORD);
    let json = ["--header", "Content-Type: application/json", "--data"];
    let with = |body: &'static str| [&json[..], &[body]].concat();
    let bob =
        with("{\"name\": \"bob\", \"role\": \"viewer\", \"password\": \"correct horse battery staple\"}");
    let (status, body) = ask(at, &cookie, "POST", "/users", &bob);
    assert_eq!(status, 200, "{body}");
    contains(&body, "\"by\": \"user anna\"");
    assert_eq!(ask(at, &cookie, "POST", "/users", &bob).0, 409);
    let of_bob = logged_in(at, "bob", PASSWORD);
    for (method, path, body) in [
        ("GET", "/users", None),
        ("DELETE", "/users/anna", None),
        ("PUT", "/users/bob/role", Some("{\"role\": \"admin\"}")),
        ("PUT", "/users/bob/password", Some("{\"password\": \"another password entirely\"}")),
    ] {
        let arguments = body.map(with).unwrap_or_default();
        assert_eq!(ask(at, &of_bob, method, path, &arguments).0, 403, "{method} {path}");
    }
    // What a user may do is as old as the session at most.
    let helper = with("{\"role\": \"helper\"}");
    assert_eq!(ask(at, &cookie, "PUT", "/users/bob/role", &helper).0, 428);
    let any = ["--header", "If-Match: *"];
    let dry = ask(at, &cookie, "PUT", "/users/bob/role?dry-run", &[&any[..], &helper].concat());
    assert_eq!(dry.0, 200, "{dry:?}");
    contains(&dry.1, "\"role\": \"helper\"");
    assert_eq!(ask(at, &of_bob, "GET", "/session", &[]).0, 200, "it was only checked");
    assert_eq!(ask(at, &cookie, "PUT", "/users/bob/role", &[&any[..], &helper].concat()).0, 200);
    assert_eq!(ask(at, &of_bob, "GET", "/session", &[]).0, 401, "another role ends the sessions");
    let of_bob = logged_in(at, "bob", PASSWORD);
    let other = with("{\"password\": \"another password entirely\"}");
    assert_eq!(ask(at, &cookie, "PUT", "/users/bob/password", &other).0, 428);
    let other = [&any[..], &other].concat();
    assert_eq!(ask(at, &cookie, "PUT", "/users/bob/password?dry-run", &other).0, 200);
    assert_eq!(ask(at, &of_bob, "GET", "/session", &[]).0, 200, "it was only checked");
    assert_eq!(ask(at, &cookie, "PUT", "/users/bob/password", &other).0, 200);
    assert_eq!(ask(at, &of_bob, "GET", "/session", &[]).0, 401, "another password does, too");
    assert_eq!(log_in(at, "bob", PASSWORD, &[]).0, 401);
    let of_bob = logged_in(at, "bob", OTHER);
    contains(&ask(at, &cookie, "GET", "/users/bob", &[]).1, "\"role\": \"helper\"");

    let (_, _, directory) = server.stop_by("KILL");
    let (server, at, _stub) = start_in(directory, "");
    assert_eq!(ask(at, &of_bob, "GET", "/session", &[]).0, 200, "a session survives a kill");
    let list = text(&server.command(&["users", "list"]));
    contains(&list, "anna: admin; 1 session; since 20");
    contains(&list, "bob: helper; 1 session; since 20");
    assert!(server.command(&["users", "remove", "bob"]).status.success());
    assert_eq!(ask(at, &of_bob, "GET", "/session", &[]).0, 401, "nobody has no session");
    assert_eq!(log_in(at, "bob", OTHER, &[]).0, 401);
    assert_eq!(server.command(&["users", "remove", "bob"]).status.code(), Some(1));
    lacks(&text(&server.command(&["users", "list"])), "bob");
}

#[test]
fn sessions_are_listed_and_ended_by_who_has_them_and_by_admins() {
    let (server, at, _stub) = start("");
    add(&server, "anna", "admin");
    add(&server, "bob", "viewer");
    let [anna, bob, also_bob] = ["anna", "bob", "bob"].map(|name| logged_in(at, name, PASSWORD));
    let id = |cookie: &str| {
        let body = ask(at, cookie, "GET", "/session", &[]).1;
        body.split("\"id\": \"").nth(1).and_then(|rest| rest.split('"').next()).expect("an id").to_owned()
    };
    let of_bob = ask(at, &bob, "GET", "/sessions", &[]).1;
    assert_eq!((of_bob.matches("\"user\": \"bob\"").count(), of_bob.matches("anna").count()), (2, 0));
    assert_eq!(ask(at, &anna, "GET", "/sessions", &[]).1.matches("\"id\"").count(), 3);
    assert_eq!(ask(at, &bob, "DELETE", &format!("/sessions/{}", id(&anna)), &[]).0, 404, "not theirs");
    assert_eq!(ask(at, &bob, "DELETE", &format!("/sessions/{}", id(&also_bob)), &[]).0, 200);
    assert_eq!(ask(at, &also_bob, "GET", "/session", &[]).0, 401);
    contains(&text(&server.command(&["users", "sessions"])), ": bob from 127.0.0.1; began 20");
    assert!(server.command(&["users", "revoke", &id(&bob)]).status.success());
    assert_eq!(ask(at, &bob, "GET", "/session", &[]).0, 401);
    assert_eq!(ask(at, &anna, "GET", "/session", &[]).0, 200);
    contains(&text(&server.command(&["audit", "tail"])), "session-revoke");
}

#[test]
fn what_a_cookie_shows_changes_something_only_from_a_page_of_the_server() {
    let (server, at, _stub) = start("");
    add(&server, "anna", "admin");
    let cookie = format!("Cookie: {}", logged_in(at, "anna", PASSWORD));
    let own = format!("Origin: http://{at}");
    let post = |headers: &[&str]| {
        let mut arguments = vec!["--request", "POST", "--header", &cookie];
        arguments.extend(headers.iter().flat_map(|header| ["--header", header]));
        curl(at, "/api/v1/reload", &arguments).0
    };
    assert_eq!(post(&[&own, "X-Gannet: 1"]), 200);
    assert_eq!(post(&["Sec-Fetch-Site: same-origin", "X-Gannet: 1"]), 200);
    for headers in [
        &[][..],
        &["X-Gannet: 1"],
        &[&own],
        &["Sec-Fetch-Site: same-site", "X-Gannet: 1"],
        &["Sec-Fetch-Site: cross-site", "X-Gannet: 1"],
        &["Origin: null", "X-Gannet: 1"],
        &["Origin: http://evil.example", "X-Gannet: 1"],
        &["Origin: http://127.0.0.1", "X-Gannet: 1"],
    ] {
        assert_eq!(post(headers), 403, "{headers:?}");
    }
    // Nor does a page of others log somebody in, to have them work as somebody else.
    assert_eq!(log_in(at, "anna", PASSWORD, &["--header", "Origin: http://evil.example"]).0, 403);
    // A cookie of a name that only a page over plain HTTP can have set is none over TLS.
    let ca = server.directory().join("certificate.pem").display().to_string();
    let url = format!("https://127.0.0.1:{}/api/v1/session", at.port());
    assert_eq!(curl_at(&url, &["--cacert", &ca, "--header", &cookie]).0, 401);
    let body = format!("{{\"name\": \"anna\", \"password\": \"{PASSWORD}\"}}");
    let json = ["--include", "--header", "Content-Type: application/json", "--data", &body];
    let (status, said) = curl_at(&url, &[&["--cacert", &ca], &json[..]].concat());
    assert_eq!(status, 200, "{said}");
    contains(&said, "set-cookie: __Host-gannet=gns_");
    contains(&said, "; Path=/; HttpOnly; SameSite=Strict; Secure");
}

#[test]
fn who_guesses_is_slowed_and_keeps_the_owner_out_from_nowhere() {
    let (server, at, _stub) = start("");
    add(&server, "anna", "viewer");
    // Someone who is nobody gets what somebody gets who is wrong.
    let (_, _, of_nobody) = log_in(at, "nobody", OTHER, &["--interface", "127.0.9.1"]);
    let (_, _, of_anna) = log_in(at, "anna", OTHER, &["--interface", "127.0.9.1"]);
    let body = |said: &str| said.rsplit("\r\n\r\n").next().map(str::to_owned);
    assert_eq!(body(&of_nobody), body(&of_anna));
    let guess = |network: u8| log_in(at, "anna", OTHER, &["--interface", &format!("127.0.{network}.1")]);
    let statuses: Vec<u16> = (0..40).map(|_| guess(10).0).collect();
    assert!(statuses.contains(&429) && !statuses.contains(&200), "{statuses:?}");
    let (_, _, said) = guess(10);
    contains(&said, "retry-after: ");
    // One after the other, so that none of it is the prefix's own bucket.
    for network in 20..40 {
        guess(network);
    }
    let from = |network: &str| log_in(at, "anna", PASSWORD, &["--interface", network]);
    assert_eq!(from("127.0.50.1").0, 200, "from a network where nobody guesses");
    for network in 20..40 {
        guess(network);
    }
    assert_eq!(from("127.0.50.1").0, 200, "from where they were before");
    eventually("the guesses are a row for each prefix", || {
        let audit = text(&server.command(&["audit", "tail", "-n", "100"]));
        audit.contains("log-in 127.0.10.0/24 by nobody: refused: ")
    });
    let audit = text(&server.command(&["audit", "tail", "-n", "100"]));
    assert!(audit.matches("127.0.10.0/24").count() <= 3, "{audit}");
}

#[test]
fn a_log_in_is_small_and_is_json() {
    let (_server, at, _stub) = start("");
    let json = "Content-Type: application/json";
    let long = format!("{{\"name\": \"anna\", \"password\": \"{}\"}}", "x".repeat(5_000));
    for (kind, body, expect) in [
        (json, "{\"name\": \"anna\"}", 400),
        (json, "{\"name\": \"anna\", \"password\": \"a\", \"password\": \"b\"}", 400),
        (json, "{\"name\": \"anna\", \"password\": 1}", 400),
        (json, &long, 413),
        ("Content-Type: text/plain", "{\"name\": \"anna\", \"password\": \"a\"}", 415),
        (json, "{\"name\": \"\\u0000\", \"password\": \"\"}", 401),
    ] {
        let (status, said) = curl(at, "/api/v1/session", &["--header", kind, "--data", body]);
        assert_eq!(status, expect, "{body}: {said}");
    }
    assert_eq!(curl(at, "/api/v1/session", &[]).0, 401);
    assert_eq!(curl(at, "/api/v1/session", &["--request", "DELETE"]).0, 401);
}

#[test]
fn bodies_that_never_come_keep_nobody_out() {
    let (server, at, _stub) = start("");
    add(&server, "anna", "viewer");
    let head = "POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Content-Length: 100\r\n\r\n{";
    let slow: Vec<TcpStream> = (0..80)
        .map(|_| {
            let mut stream = TcpStream::connect(at).expect("a connection");
            // The oldest ones make way.
            let _ = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    let (status, _, said) = log_in(at, "anna", PASSWORD, &["--interface", "127.0.9.1"]);
    assert_eq!(status, 200, "{said}");
    drop(slow);
}

#[test]
fn a_change_of_a_user_or_a_token_that_was_made_for_another_is_refused_and_says_who_was_faster() {
    let (server, at, _stub) = start("");
    add(&server, "anna", "admin");
    add(&server, "ben", "viewer");
    let cookie = logged_in(at, "anna", PASSWORD);
    let tag_of = |path: &str| {
        let (status, said) = ask(at, &cookie, "GET", path, &["--include"]);
        assert_eq!(status, 200, "{said}");
        let mut tags = said.lines().filter_map(|line| line.strip_prefix("etag: "));
        format!("If-Match: {}", tags.next().expect("an ETag").trim())
    };
    let role = |tag: &str, role: &str| {
        let body = format!("{{\"role\": \"{role}\"}}");
        let json = ["--header", "Content-Type: application/json", "--header", tag, "--data", &body];
        ask(at, &cookie, "PUT", "/users/ben/role", &json)
    };
    let tag = tag_of("/users/ben");
    assert_eq!(role(&tag, "operator").0, 200);
    let (status, late) = role(&tag, "admin");
    assert_eq!(status, 412, "{late}");
    contains(&late, "is another by now: user anna changed it last, at 20");
    contains(&late, "\"by\": \"user anna\"");
    assert_eq!(ask(at, &cookie, "DELETE", "/users/ben", &["--header", &tag]).0, 412);
    for path in ["/users/ben", "/users/ben/totp"] {
        assert_eq!(ask(at, &cookie, "DELETE", path, &[]).0, 428, "{path}");
    }
    let dry = ask(at, &cookie, "DELETE", "/users/ben?dry-run", &["--header", &tag_of("/users/ben")]);
    assert_eq!(dry.0, 200, "{dry:?}");
    lacks(&dry.1, "\"ben\"");
    assert_eq!(ask(at, &cookie, "GET", "/users/ben", &[]).0, 200, "it was only checked");
    assert_eq!(ask(at, &cookie, "DELETE", "/users/ben", &["--header", &tag_of("/users/ben")]).0, 200);
    super::network::token(&server, "nas", &[]);
    assert_eq!(ask(at, &cookie, "DELETE", "/tokens/nas", &[]).0, 428);
    assert_eq!(ask(at, &cookie, "DELETE", "/tokens/nobody", &[]).0, 404);
    assert_eq!(ask(at, &cookie, "DELETE", "/tokens/nas?dry-run", &["--header", "If-Match: *"]).0, 200);
    assert_eq!(ask(at, &cookie, "GET", "/tokens/nas", &[]).0, 200, "it was only checked");
    let json = ["--header", "Content-Type: application/json", "--data"];
    let made = [&json[..], &["{\"name\": \"tv\", \"role\": \"viewer\"}"]].concat();
    let (status, dry) = ask(at, &cookie, "POST", "/tokens?dry-run", &made);
    assert_eq!(status, 200, "{dry}");
    lacks(&dry, "gnt_");
    assert_eq!(ask(at, &cookie, "GET", "/tokens/tv", &[]).0, 404, "it was only checked");
    let wrong = [&json[..], &["{\"name\": \"tv\", \"role\": \"king\"}"]].concat();
    assert_eq!(ask(at, &cookie, "POST", "/tokens?dry-run", &wrong).0, 400);
    assert_eq!(ask(at, &cookie, "DELETE", "/tokens/nas", &["--header", &tag]).0, 412);
    assert_eq!(ask(at, &cookie, "DELETE", "/tokens/nas", &["--header", &tag_of("/tokens/nas")]).0, 200);
    assert_eq!(ask(at, &cookie, "GET", "/tokens/nas", &[]).0, 404);
}
