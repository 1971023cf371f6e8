//! The API over the network: who is let in, and to what.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output};

use testkit::{Script, Server, Stub, certificate, contains, forwarding, lacks};

const NAME: &str = "dns.example.org";

/// Starts a server whose API is at an address of this machine, with a certificate.
pub(super) fn start(more: &str) -> (Server, SocketAddr, Stub) {
    let directory = tempfile::tempdir().expect("a directory");
    certificate(directory.path(), &[NAME, "127.0.0.1"]);
    start_in(directory, more)
}

fn yaml(stub: &Stub, more: &str) -> String {
    let tls = "tls: {certificates: [{certificate: certificate.pem, key: key.pem}]}";
    forwarding(&[stub], &format!("control: {{listen: [\"127.0.0.1:0\"]}}\n{tls}\n{more}"))
}

pub(super) fn start_in(directory: tempfile::TempDir, more: &str) -> (Server, SocketAddr, Stub) {
    let stub = Stub::start(Script::default());
    let mut server = Server::start_in(directory, &yaml(&stub, more));
    let address = api_address(&mut server);
    (server, address, stub)
}

/// Returns where the API of a server is, as its log says.
pub(super) fn api_address(server: &mut Server) -> SocketAddr {
    let line = server.wait_for_log("the API can be reached");
    let (_, port) = line.rsplit_once("127.0.0.1:").expect("an address");
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    SocketAddr::new([127, 0, 0, 1].into(), port.parse().expect("a port"))
}

/// Runs curl without TLS; returns the status and the body.
pub(super) fn curl(at: SocketAddr, path: &str, arguments: &[&str]) -> (u16, String) {
    curl_at(&format!("http://{at}{path}"), arguments)
}

pub(super) fn curl_at(url: &str, arguments: &[&str]) -> (u16, String) {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "20", "--write-out", "\n%{http_code}"]);
    let output = command.args(arguments).arg(url).output().expect("`cargo xtask test` installs curl");
    assert!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (body, status) = text.rsplit_once('\n').expect("a status");
    (status.parse().expect("a status"), body.to_owned())
}

pub(super) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Makes a token by command.
pub(super) fn token(server: &Server, name: &str, more: &[&str]) -> String {
    let output = server.command(&[&["token", "add", name], more].concat());
    assert!(output.status.success(), "{}", text(&output));
    let token = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(token.starts_with("gnt_") && token.len() == 68, "{token}");
    token
}

pub(super) fn shown(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

#[test]
fn without_a_token_there_is_the_page_and_whether_it_runs_and_nothing_else() {
    let (server, at, _stub) = start("");
    assert_eq!(curl(at, "/health", &[]).0, 200);
    let (status, page) = curl(at, "/", &["--include"]);
    assert_eq!(status, 200);
    contains(&page.to_lowercase(), "content-security-policy: default-src 'none'");
    for path in
        ["/api/v1/status", "/api/v1/openapi.json", "/api/v1/settings/edns", "/api/v1/nothing", "/nothing"]
    {
        let (status, body) = curl(at, path, &["--include"]);
        assert_eq!(status, 401, "{path}: {body}");
        contains(&body.to_lowercase(), "www-authenticate: bearer");
        lacks(&body, "version");
    }
    let wrong = shown(&format!("gnt_{}", "0".repeat(64)));
    assert_eq!(curl(at, "/api/v1/status", &["--header", &wrong]).0, 401);
    let right = shown(&token(&server, "monitoring", &[]));
    let (status, body) = curl(at, "/api/v1/status", &["--header", &right]);
    assert_eq!(status, 200);
    contains(&body, "\"version\"");
}

#[test]
fn a_token_is_kept_as_a_digest_survives_a_kill_and_ends_when_it_is_revoked() {
    let (server, at, _stub) = start("");
    let secret = token(&server, "monitoring", &["--days", "30"]);
    let header = shown(&secret);
    for _ in 0..3 {
        assert_eq!(curl(at, "/api/v1/status", &["--header", &header]).0, 200);
    }
    let again = server.command(&["token", "add", "monitoring"]);
    contains(&text(&again), "there is a token \"monitoring\" already");
    let list = text(&server.command(&["token", "list"]));
    contains(&list, "monitoring: viewer; made 20");
    contains(&list, "; ends 20");
    let audit = text(&server.command(&["audit", "tail"]));
    contains(&audit, "1 change tokens monitoring by ");
    contains(&audit, "2 log-in 127.0.0.1 by token monitoring: accepted");
    assert_eq!(audit.matches("log-in").count(), 1, "{audit}");
    lacks(&list, "not used");
    lacks(&list, &secret);
    let (_, _, directory) = server.stop_by("KILL");
    let (server, at, _stub) = start_in(directory, "");
    assert_eq!(curl(at, "/api/v1/status", &["--header", &header]).0, 200, "after a kill");
    let grep = Command::new("grep").args(["-rlaF", &secret, "."]).current_dir(server.directory()).output();
    let found = grep.expect("grep(1)").stdout;
    assert!(found.is_empty(), "it is in {}", String::from_utf8_lossy(&found));
    assert!(server.command(&["token", "revoke", "monitoring"]).status.success());
    assert_eq!(curl(at, "/api/v1/status", &["--header", &header]).0, 401, "at once");
    assert_eq!(server.command(&["token", "revoke", "monitoring"]).status.code(), Some(1));
}

#[test]
fn a_token_does_what_its_role_and_its_scope_allow_and_its_name_is_in_the_history() {
    let (server, at, _stub) = start("local: {nas.home.arpa: 192.0.2.1}\n");
    let ask = |token: &str, method: &str, path: &str, body: &str| {
        let header = shown(token);
        let kind = "Content-Type: application/json";
        let arguments = [
            "--request",
            method,
            "--header",
            &header,
            "--header",
            kind,
            "--header",
            "If-Match: *",
            "--data",
            body,
        ];
        curl(at, &format!("/api/v1{path}"), if method == "GET" { &arguments[..4] } else { &arguments })
    };
    let viewer = token(&server, "viewer", &[]);
    let operator = token(&server, "operator", &["--role", "operator"]);
    let one = token(&server, "one", &["--role", "operator", "--path", "local.nas.home.arpa"]);
    let refused = server.command(&["token", "add", "two", "--role", "admin", "--path", "control.oidc"]);
    assert!(!refused.status.success());
    contains(&String::from_utf8_lossy(&refused.stderr), "says who may do what, which is in no scope");
    let (status, body) = ask(&viewer, "PUT", "/settings/local.nas.home.arpa", "\"192.0.2.2\"");
    assert_eq!(status, 403, "{body}");
    contains(&body, "this needs the role operator, and token viewer has viewer");
    assert_eq!(ask(&operator, "PUT", "/settings/local.nas.home.arpa", "\"192.0.2.2\"").0, 200);
    assert_eq!(ask(&operator, "PUT", "/settings/edns.udp-size", "1400").0, 403, "it is no data");
    // Nobody but an admin has the server read a file of their choice.
    let list = "[\"adguard:/etc/gannet/tls.key\"]";
    let named = format!("{{\"lists\": {list}}}");
    let whole = format!("{{\"x\": {named}}}");
    for (path, value) in [
        ("sets.x.lists", list),
        ("sets.x", named.as_str()),
        ("sets", whole.as_str()),
        ("hosts.files", "[\"/etc/shadow\"]"),
        ("hosts", "{\"files\": [\"/etc/shadow\"]}"),
    ] {
        for query in ["", "?dry-run=true"] {
            let edits = format!("{{\"edits\": [{{\"set\": {{\"path\": {path:?}, \"text\": {value:?}}}}}]}}");
            let (status, body) = ask(&operator, "POST", &format!("/changes{query}"), &edits);
            assert_eq!(status, 403, "{path}{query}: {body}");
        }
    }
    let wanted = format!("[{{\"set\": {{\"path\": \"sets.x.lists\", \"text\": {list:?}}}}}]");
    let change = format!("{{\"request\": \"config-change\", \"edits\": {wanted}}}");
    contains(&ask(&operator, "POST", "/requests", &change).1, "this needs the role admin");
    assert_eq!(ask(&viewer, "GET", "/lists/x:1/rules", "").0, 403);
    assert_eq!(ask(&one, "PUT", "/settings/local.nas.home.arpa", "\"192.0.2.3\"").0, 200);
    let (status, body) = ask(&one, "PUT", "/settings/local", "{}");
    assert_eq!(status, 403, "{body}");
    contains(&body, "\\\"local\\\" is not one of its settings");
    assert_eq!(ask(&one, "POST", "/reload", "").0, 403);
    assert_eq!(ask(&operator, "GET", "/tokens", "").0, 403);
    // The same roles count for requests as commands make them.
    let change =
        "{\"request\": \"config-change\", \"edits\": [{\"unset\": {\"path\": \"local.nas.home.arpa\"}}]}";
    contains(&ask(&viewer, "POST", "/requests", change).1, "this needs the role operator");
    let history = ask(&viewer, "GET", "/history", "").1;
    contains(&history, "\"by\": \"token operator\"");
    contains(&history, "\"by\": \"token one\"");
    for wrong in [&["--role", "root"][..], &["--path", "nothing"], &["--from", "here"], &["--zone", "a..b"]] {
        let output = server.command(&[&["token", "add", "x"], wrong].concat());
        assert_eq!(output.status.code(), Some(1), "{wrong:?}: {}", text(&output));
    }
}

#[test]
fn a_token_is_good_where_it_may_be_used_from() {
    let (server, at, _stub) = start("");
    let elsewhere = shown(&token(&server, "elsewhere", &["--from", "192.0.2.0/24"]));
    assert_eq!(curl(at, "/api/v1/status", &["--header", &elsewhere]).0, 401);
    let here = shown(&token(&server, "here", &["--from", "192.0.2.0/24", "--from", "127.0.0.1"]));
    assert_eq!(curl(at, "/api/v1/status", &["--header", &here]).0, 200);
}

#[test]
fn a_request_for_another_host_or_of_another_page_is_refused() {
    let (server, at, _stub) = start("");
    let header = shown(&token(&server, "browser", &[]));
    let ask = |more: &str| curl(at, "/api/v1/status", &["--header", &header, "--header", more]).0;
    // A page of a stranger whose name was made to lead here.
    assert_eq!(ask("Host: evil.example"), 421);
    assert_eq!(curl(at, "/health", &["--header", "Host: evil.example"]).0, 421);
    assert_eq!(ask("Host: localhost:8533"), 200);
    assert_eq!(ask(&format!("Host: {NAME}")), 200, "it is in the certificate");
    let elsewhere = ["--proxy", &format!("http://{at}"), "--header", &header];
    assert_eq!(curl_at("http://evil.example/api/v1/status", &elsewhere).0, 421, "it is no proxy");
    assert_eq!(ask("Origin: https://evil.example"), 403);
    assert_eq!(ask("Origin: null"), 403);
    assert_eq!(ask(&format!("Origin: http://{at}")), 200);
}

#[test]
fn names_are_added_by_a_setting() {
    let (_server, at, _stub) = start("");
    assert_eq!(curl(at, "/health", &["--header", "Host: router.home.arpa"]).0, 421);
    let directory = tempfile::tempdir().expect("a directory");
    certificate(directory.path(), &[NAME]);
    let stub = Stub::start(Script::default());
    let text = yaml(&stub, "").replace("\"127.0.0.1:0\"]", "\"127.0.0.1:0\"], names: [router.home.arpa]");
    let mut server = Server::start_in(directory, &text);
    let line = server.wait_for_log("the API can be reached");
    let port: String = line
        .rsplit_once("127.0.0.1:")
        .expect("an address")
        .1
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let at = SocketAddr::new([127, 0, 0, 1].into(), port.parse().expect("a port"));
    assert_eq!(curl(at, "/health", &["--header", "Host: router.home.arpa"]).0, 200);
}

#[test]
fn who_guesses_is_slowed_and_who_has_a_token_is_not() {
    let (server, at, _stub) = start("");
    let right = shown(&token(&server, "monitoring", &[]));
    let wrong = shown("gnt_guess");
    let statuses: Vec<u16> = (0..40).map(|_| curl(at, "/api/v1/status", &["--header", &wrong]).0).collect();
    assert_eq!(statuses[0], 401);
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(curl(at, "/api/v1/status", &["--header", &right]).0, 200, "from the same address");
    let elsewhere = curl(at, "/api/v1/status", &["--interface", "127.0.1.1"]).0;
    assert_eq!(elsewhere, 401, "from another network");
}

#[test]
fn who_watches_the_servers_health_may_ask_as_often_as_they_like() {
    let (_server, at, _stub) = start("");
    let mut stream = TcpStream::connect(at).expect("a connection");
    // More than anybody has at once, with what would count for ten each.
    let ask = "GET /health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer gnt_guess\r\n";
    let all = format!("{ask}\r\n").repeat(199) + &format!("{ask}Connection: close\r\n\r\n");
    std::thread::scope(|scope| {
        let mut writer = stream.try_clone().expect("a stream");
        scope.spawn(move || writer.write_all(all.as_bytes()).expect("taken"));
        let mut heard = String::new();
        stream.read_to_string(&mut heard).expect("the server ends it");
        assert_eq!(heard.matches("HTTP/1.1 200").count(), 200, "{heard}");
    });
}

#[test]
fn the_same_address_speaks_https_with_the_certificates_of_the_settings() {
    let (server, at, _stub) = start("");
    let header = shown(&token(&server, "monitoring", &[]));
    let ca = server.directory().join("certificate.pem").display().to_string();
    let url = format!("https://127.0.0.1:{}/api/v1/status", at.port());
    let (status, body) = curl_at(&url, &["--cacert", &ca, "--header", &header]);
    assert_eq!(status, 200, "{body}");
    assert_eq!(curl_at(&url, &["--cacert", &ca]).0, 401);
}

#[test]
fn commands_speak_to_a_server_that_is_elsewhere() {
    let (server, at, _stub) =
        start("local: {nas.home.arpa: 192.0.2.1}\nsets: {bad: {dynamic: {holds: names}}}\n");
    let secret = token(&server, "admin", &["--role", "admin"]);
    let elsewhere = tempfile::tempdir().expect("a directory");
    let run = |token: &str, arguments: &[&str]| {
        let mut command = testkit::program(elsewhere.path());
        command.env_remove("GANNET_SOCKET").env("GANNET_TOKEN", token).args(arguments);
        command.output().expect("it starts")
    };
    let url = format!("http://{at}");
    let status = run(&secret, &["--server", &url, "status"]);
    assert!(status.status.success(), "{}", text(&status));
    contains(&text(&status), "upstreams");
    let set = run(&secret, &["config", "set", "local.nas.home.arpa", "192.0.2.2", "--server", &url]);
    assert!(set.status.success(), "{}", text(&set));
    assert_eq!(server.dig_short(&["nas.home.arpa", "A"]), ["192.0.2.2"]);
    contains(&text(&run(&secret, &["config", "history", "--server", &url])), "by token admin");
    contains(&text(&run(&secret, &["set", "add", "bad", "a.example", "--server", &url])), "1 changed");
    // Over TLS, with the token in a file.
    let ca = server.directory().join("certificate.pem").display().to_string();
    let file = elsewhere.path().join("token").display().to_string();
    std::fs::write(&file, format!("{secret}\n")).expect("written");
    let https = format!("https://127.0.0.1:{}/", at.port());
    let over_tls = run("", &["stats", "--server", &https, "--ca", &ca, "--token-file", &file]);
    assert!(over_tls.status.success(), "{}", text(&over_tls));
    let untrusted = run(&secret, &["stats", "--server", &https]);
    assert_eq!(untrusted.status.code(), Some(1));
    let wrong = run("gnt_wrong", &["status", "--server", &url]);
    assert_eq!(wrong.status.code(), Some(1));
    contains(&text(&wrong), "this needs a token");
    let viewer = token(&server, "viewer", &[]);
    let refused = run(&viewer, &["reload", "--server", &url]);
    assert_eq!(refused.status.code(), Some(1));
    contains(&text(&refused), "this needs the role operator, and token viewer has viewer");
}

#[test]
fn an_address_that_others_reach_needs_a_certificate() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("g.yaml"), "control: {listen: [192.0.2.1]}\n").expect("written");
    let mut check = testkit::program(directory.path());
    let output =
        check.args(["check", "-c", "g.yaml"]).current_dir(directory.path()).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    contains(&text(&output), "others can reach 192.0.2.1:8533");
}
