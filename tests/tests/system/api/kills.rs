//! Changes of all kinds, about a hundred a second, and a kill in their midst.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use testkit::{Script, Server, Stub, contains, eventually, forwarding, lacks};

use super::get;
use super::network::text;

/// Rounds, each of which ends with a kill.
const ROUNDS: usize = 3;
/// Changes of each kind that are acknowledged before the kill.
const MADE_MIN: usize = 15;

/// Sends a request; returns its status, if it was answered to the end.
fn send(socket: &Path, (method, path): (&str, &str), kind: &str, body: &str) -> Option<u16> {
    let mut stream = UnixStream::connect(socket).ok()?;
    let head = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIf-None-Match: *\r\n\
         Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    (length.parse() == Ok(body.len())).then(|| head.split(' ').nth(1)?.parse().ok()).flatten()
}

/// Makes changes of one kind until it is over; returns the names of those that were acknowledged.
fn change(
    socket: &Path,
    kind: &str,
    name: &dyn Fn(usize) -> String,
    is_over: &AtomicBool,
    made: &dyn Fn(),
) -> Vec<String> {
    let (json, lines) = ("application/json", "application/x-ndjson");
    let mut done = Vec::new();
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let (own, wrong) = (name(number), name(number).replacen('n', "ref", 1));
        let (right, refused) = match kind {
            "settings" => (
                send(socket, ("PUT", &format!("/settings/local.{own}")), json, "\"192.0.2.1\""),
                send(socket, ("PUT", &format!("/settings/local.{wrong}")), json, "\"no address\""),
            ),
            "members" => {
                let body = |name: &str| format!("{{\"items\": [\"{name}\"]}}");
                (
                    send(socket, ("POST", "/sets/bad/members"), json, &body(&own)),
                    send(socket, ("POST", "/sets/bad/members"), json, &body(&format!("{wrong}..x"))),
                )
            }
            "lists" => {
                let body = |name: &str| format!("{{\"add\": \"{name}\"}}\n");
                let path = ("PATCH", "/lists/mine/content");
                // It is there from the first on.
                let right = send_any(socket, path, lines, &body(&own));
                (right, send_any(socket, path, lines, &format!("{}{{\"add\": 7}}\n", body(&wrong))))
            }
            "bans" => {
                // The round and the number are in the address, the name in the reason.
                let numbers = own.trim_start_matches('n').split('.').next().unwrap_or("");
                let address = format!("2001:db8:{}::1", numbers.replace('-', ":"));
                let body =
                    |prefix: &str, why: &str| format!("{{\"prefix\": \"{prefix}\", \"why\": \"{why}\"}}");
                (
                    send_any(socket, ("POST", "/bans"), json, &body(&address, &own)),
                    send_any(socket, ("POST", "/bans"), json, &body("127.0.0.1", &wrong)),
                )
            }
            _ => {
                let body = "{\"ttl\": 300, \"records\": [\"192.0.2.1\"]}";
                let path = |name: &str| format!("/zones/example.org/rrsets/{name}.org/A");
                (
                    send(socket, ("PUT", &path(&own)), json, body),
                    send(socket, ("PUT", &path(&wrong)), json, "{\"ttl\": 300, \"records\": [\"x\"]}"),
                )
            }
        };
        if right == Some(200) {
            done.push(own);
            made();
        }
        assert_ne!(refused, Some(200), "{kind} {wrong}");
    }
    done
}

/// Sends a request whatever is there.
fn send_any(socket: &Path, (method, path): (&str, &str), kind: &str, body: &str) -> Option<u16> {
    let mut stream = UnixStream::connect(socket).ok()?;
    let head = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    response.split(' ').nth(1)?.parse().ok()
}

#[test]
fn of_changes_of_all_kinds_nothing_acknowledged_is_lost_by_a_kill_and_nothing_refused_is_there() {
    let stub = Stub::start(Script::default());
    let directory = tempfile::tempdir().expect("a directory");
    let zone = "@ 300 SOA ns admin 1 3600 600 86400 300\n@ 300 NS ns\nns 300 A 192.0.2.1\n";
    fs::write(directory.path().join("example.org.zone"), zone).expect("written");
    let more = "sets: {bad: {dynamic: {holds: names, persist: true}}, mine: {lists: [{own: mine}]}}\n\
                zones: [{name: example.org, file: example.org.zone}]\n\
                policy: {main: [local, {if: qname in bad|mine, do: reject(nxdomain)}, zones, forward(default)]}\n";
    let yaml = forwarding(&[&stub], more);
    let mut server = Server::start_in(directory, &yaml);
    let kinds = ["settings", "members", "lists", "rrsets", "bans"];
    let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for round in 0..ROUNDS {
        let (is_over, made) = (AtomicBool::new(false), Mutex::new(BTreeMap::<&str, usize>::new()));
        let socket = server.directory().join("control.sock");
        let done: Vec<(&str, Vec<String>)> = std::thread::scope(|scope| {
            let (socket, is_over, made) = (&socket, &is_over, &made);
            let threads: Vec<_> = kinds
                .map(|kind| {
                    scope.spawn(move || {
                        let name = |number| format!("n{round}-{number}.{kind}.example");
                        let count = || *made.lock().expect("no panic").entry(kind).or_default() += 1;
                        (kind, change(socket, kind, &name, is_over, &count))
                    })
                })
                .into_iter()
                .collect();
            eventually("some of each kind are made", || {
                let made = made.lock().expect("no panic");
                kinds.iter().all(|kind| made.get(kind).is_some_and(|made| *made >= MADE_MIN))
            });
            server.signal("KILL");
            is_over.store(true, Ordering::Relaxed);
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        for (kind, names) in done {
            all.entry(kind).or_default().extend(names);
        }
        let (_, _, directory) = server.stop_by("KILL");
        server = Server::start_in(directory, &yaml);
        let found = BTreeMap::from([
            ("settings", get(&server, "/changes").body),
            ("members", get(&server, "/sets/bad/members?count=10000").body),
            ("lists", get(&server, "/lists/mine/content").body),
            ("rrsets", get(&server, "/zones/example.org/rrsets?count=10000").body),
            ("bans", get(&server, "/bans?count=10000").body.replace("\"prefix\"", "")),
        ]);
        for (kind, names) in &all {
            for name in names {
                contains(&found[kind], name);
            }
            lacks(&found[kind], "ref");
        }
        let export = server.command(&["audit", "export"]);
        fs::write(server.directory().join("export"), &export.stdout).expect("written");
        let key = server.directory().join("changes/audit-first.key");
        let key = key.to_str().expect("text");
        let verified = server.command(&["audit", "verify", "export", "--key", key]);
        assert!(verified.status.success(), "round {round}: {}", text(&verified));
    }
}
