//! Whether the server does its work, and what it refuses when its store is of no use.

use std::fs;

use testkit::{Ask, Script, Server, Stub, client::UdpClient, contains, eventually, forwarding, lacks};
use wire::Rtype;

use super::network::{api_address, curl};
use super::{JSON, ask, get, say};

const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[test]
fn health_says_what_is_wrong_without_saying_more() {
    let stub = Stub::start(Script::default());
    let yaml = forwarding(&[&stub], "local: {secret.home.arpa: 192.0.2.1}\n");
    let server = Server::start(&yaml);
    let health = say(&server, HEALTH);
    assert_eq!(health.status, 200, "{health:?}");
    assert_eq!(health.body.trim(), "{\"is-serving\":true,\"is-degraded\":false,\"troubles\":[]}");
    // What the file says now goes with no change.
    let set = server.command(&["config", "set", "local.secret.home.arpa", "192.0.2.2"]);
    assert!(set.status.success());
    let (_, _, directory) = server.stop();
    let wrong = yaml.replace("192.0.2.1}", "192.0.2.1}\nlocal: {}");
    fs::write(directory.path().join("changes/changes.db"), [b'x'; 4096]).expect("written");
    let server = Server::start_in(directory, &yaml);
    server.write_config(&wrong);
    assert!(!server.command(&["reload"]).status.success(), "a mistake");
    let health = say(&server, HEALTH);
    assert_eq!(health.status, 200, "it serves all the same: {health:?}");
    contains(&health.body, "\"is-serving\":true,\"is-degraded\":true");
    contains(&health.body, "\"reload\",\"store\"");
    for secret in ["secret", "changes.db", "192.0.2", server.directory().to_str().expect("text")] {
        lacks(&health.body, secret);
    }
}

#[test]
fn health_is_503_while_the_server_ends() {
    // A query that is never answered holds the end up.
    let stub = Stub::start(Script::silent());
    let yaml = forwarding(&[&stub], "control: {listen: [\"127.0.0.1:0\"]}\nlocal: {localhost: 127.0.0.1}\n")
        .replace("{workers: 2, ", "{workers: 2, shutdown-timeout: 60s, ");
    let mut server = Server::start(&yaml);
    let at = api_address(&mut server);
    assert_eq!(curl(at, "/health", &[]).0, 200);
    let client = UdpClient::connect(server.address());
    client.send(&Ask::new("www.example.org", Rtype::A).bytes());
    stub.wait_for("www.example.org.", 1);
    server.signal("TERM");
    eventually("it says that it ends", || {
        let (status, body) = curl(at, "/health", &[]);
        status == 503 && body.contains("\"is-serving\":false,\"is-degraded\":true,\"troubles\":[\"ending\"")
    });
    // The second ends it at once.
    server.signal("TERM");
}

/// Nothing that leaves no row is done, whatever it is.
#[test]
fn without_a_row_of_the_audit_log_nothing_is_changed() {
    let stub = Stub::start(Script::default());
    let zone =
        "@ 300 SOA ns admin 1 3600 600 86400 300\n@ 300 NS ns\nns 300 A 192.0.2.1\nwww 300 A 192.0.2.2\n";
    let more = "zones: [{name: example.org, file: example.org.zone}]\n\
                sets: {bad: {dynamic: {holds: names}}}\njobs: {}\n\
                resolvers: {own: {}}\n\
                policy: {main: [local, {if: qname in bad, do: reject(nxdomain)}, zones, forward(default)]}\n";
    let yaml = forwarding(&[&stub], more).replace("jobs: {}\n", "");
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("example.org.zone"), zone).expect("written");
    let server = Server::start_in(directory, &yaml);
    // There is a store, and a user.
    let added = ask(
        &server,
        "POST",
        "/users",
        &[JSON],
        "{\"name\": \"anna\", \"role\": \"admin\", \"password\": \"a long enough one\"}",
    );
    assert_eq!(added.status, 200, "{added:?}");
    let (_, _, directory) = server.stop();
    let database = directory.path().join("changes/changes.db");
    let held = rusqlite::Connection::open(&database).expect("a database");
    held.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").expect("locked");
    let server = Server::start_in(directory, &yaml);
    let before = get(&server, "/zones/example.org/rrsets").json();
    let level = get(&server, "/log-level").json();
    for (method, path, body) in [
        (
            "PUT",
            "/zones/example.org/rrsets/www.example.org/A",
            "{\"ttl\": 300, \"records\": [\"192.0.2.9\"]}",
        ),
        (
            "PATCH",
            "/zones/example.org/rrsets",
            "{\"changes\": [{\"name\": \"www.example.org\", \"type\": \"A\", \"records\": []}]}",
        ),
        ("PUT", "/zones/example.com", "{\"file\": \"example.org.zone\"}"),
        ("DELETE", "/zones/example.org", ""),
        ("POST", "/zones/example.org/freeze", ""),
        ("POST", "/zones/example.org/notify", ""),
        ("PUT", "/log-level", "{\"level\": \"debug\"}"),
        ("PUT", "/users/anna/password", "{\"password\": \"another long one\"}"),
        ("DELETE", "/users/anna/totp", ""),
        ("POST", "/sets/bad/members", "{\"items\": [\"bad.example\"]}"),
        ("POST", "/lists/fetch", ""),
    ] {
        let kind = match (method, path) {
            ("PUT", "/zones/example.com") => &[JSON, "If-None-Match: *"][..],
            _ if body.is_empty() => &["If-Match: *"][..],
            _ => &[JSON, "If-Match: *"][..],
        };
        let refused = ask(&server, method, path, kind, body);
        assert!([503, 507].contains(&refused.status), "{method} {path}: {refused:?}");
        contains(&refused.body, "another process has");
    }
    let login = server.command(&["login", "anna"]);
    assert!(!login.status.success(), "a link");
    assert_eq!(get(&server, "/zones/example.org/rrsets").json(), before);
    assert_eq!(get(&server, "/log-level").json(), level);
    // Clients are served, what is forgotten is, and what is mended is read.
    assert_eq!(server.ask(&Ask::new("www.example.org", Rtype::A)).rcode(), wire::Rcode::NOERROR);
    assert_eq!(ask(&server, "POST", "/caches/flush", &[JSON], "{\"what\": \"all\"}").status, 200);
    assert_eq!(ask(&server, "POST", "/reload", &[], "").status, 200);
    contains(&say(&server, HEALTH).body, "\"audit\"");
    drop(held);
    assert_eq!(ask(&server, "POST", "/zones/example.org/freeze", &[], "").status, 200);
    lacks(&say(&server, HEALTH).body, "\"audit\"");
}
