//! A disk that is full, or can only be read: changes are refused with a reason, queries go on, and
//! nothing that was acknowledged is lost.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Script, Server, Stub, contains, forwarding, lacks, program_by};

use super::network::text;
use super::{Heard, JSON, ask, get};

/// Changes of one kind until one is refused: the database reuses some of its room.
const TRIES_MAX: usize = 4_000;
const KINDS: [&str; 5] = ["settings", "members", "lists", "rrsets", "tokens"];

#[expect(clippy::print_stdout, reason = "says why it is skipped")]
fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id(1)");
    let is_root = output.stdout.starts_with(b"0\n");
    if !is_root {
        println!("skipped: only root can mount");
    }
    is_root
}

/// Makes a change of a kind; `name` is a label.
fn change(server: &Server, kind: &str, name: &str) -> Heard {
    let own = format!("{name}.{kind}.example");
    let create = "If-None-Match: *";
    match kind {
        "settings" => ask(server, "PUT", &format!("/settings/local.{own}"), &[JSON, create], "\"192.0.2.1\""),
        "members" => {
            ask(server, "POST", "/sets/bad/members", &[JSON], &format!("{{\"items\": [\"{own}\"]}}"))
        }
        "lists" => {
            let lines = "Content-Type: application/x-ndjson";
            ask(server, "PATCH", "/lists/mine/content", &[lines], &format!("{{\"add\": \"{own}\"}}\n"))
        }
        "rrsets" => {
            let path = format!("/zones/example.org/rrsets/{own}.org/A");
            ask(server, "PUT", &path, &[JSON, create], "{\"ttl\": 300, \"records\": [\"192.0.2.1\"]}")
        }
        _ => {
            ask(server, "POST", "/tokens", &[JSON], &format!("{{\"name\": \"{own}\", \"role\": \"viewer\"}}"))
        }
    }
}

/// Returns everything that there is of each kind.
fn found(server: &Server) -> BTreeMap<&'static str, String> {
    let looks = [
        ("settings", "/changes"),
        ("members", "/sets/bad/members?count=10000"),
        ("lists", "/lists/mine/content"),
        ("rrsets", "/zones/example.org/rrsets?count=10000"),
        ("tokens", "/tokens"),
    ];
    looks.map(|(kind, path)| (kind, get(server, path).body)).into()
}

fn yaml(stub: &Stub) -> String {
    let more = "sets: {bad: {dynamic: {holds: names, persist: true}}, mine: {lists: [{own: mine}]}}\n\
                zones: [{name: example.org, file: example.org.zone}]\n\
                policy: {main: [local, {if: qname in bad|mine, do: reject(nxdomain)}, zones, forward(default)]}\n";
    forwarding(&[stub], more)
        .replace("state-directory: \"@DIRECTORY@\"", "state-directory: \"@DIRECTORY@/state\"")
}

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = "@ 300 SOA ns admin 1 3600 600 86400 300\n@ 300 NS ns\nns 300 A 192.0.2.1\n";
    fs::write(directory.path().join("example.org.zone"), zone).expect("written");
    fs::create_dir(directory.path().join("state")).expect("a folder");
    directory
}

/// Writes to a file until there is no room.
fn fill(file: &Path) {
    let mut out = File::create(file).expect("a file");
    for octets in [1 << 16, 1 << 12, 1] {
        while out.write_all(&vec![b'x'; octets]).is_ok() {}
    }
}

/// Queries are answered, by what was acknowledged and by other servers.
#[track_caller]
fn answers(server: &Server) {
    assert_eq!(super::address(server, "first.settings.example"), ["192.0.2.1"]);
    assert_eq!(server.dig_short(&["first.rrsets.example.org", "A"]), ["192.0.2.1"]);
    assert!(server.dig(&["first.members.example", "A"]).contains("NXDOMAIN"));
    assert!(server.dig(&["first.lists.example", "A"]).contains("NXDOMAIN"));
    assert!(!super::address(server, "www.example.net").is_empty());
}

#[test]
fn without_room_changes_are_refused_with_a_reason_and_with_room_they_are_made_again() {
    if !is_root() {
        return;
    }
    let stub = Stub::start(Script::default());
    let yaml = yaml(&stub);
    let mount = "mount -t tmpfs -o size=16m tmpfs state && exec \"$0\" \"$@\"";
    let starter = ["unshare", "--mount", "sh", "-c", mount];
    let server = Server::start_by(|directory| program_by(&starter, directory), directory(), &yaml, &[]);
    // The disk is there for as long as its namespace is.
    let namespace = File::open(format!("/proc/{}/ns/mnt", server.pid())).expect("a namespace");
    let mut done = BTreeMap::<&str, Vec<String>>::new();
    for kind in KINDS {
        let first = change(&server, kind, "first");
        assert!((200..300).contains(&first.status), "{kind}: {first:?}");
        done.entry(kind).or_default().push("first".to_owned());
    }
    answers(&server);
    let state = PathBuf::from(format!("/proc/{}/root{}", server.pid(), server.directory().display()));
    let filled = state.join("state/fill");
    fill(&filled);
    let mut refused = Vec::new();
    for kind in KINDS {
        for number in 0.. {
            assert!(number < TRIES_MAX, "{kind} is never refused");
            let name = format!("n{number}");
            let heard = change(&server, kind, &name);
            if heard.status == 507 {
                contains(&heard.body, "\"detail\": \"");
                refused.push((kind, name, heard.body));
                break;
            }
            assert!((200..300).contains(&heard.status), "{kind}: {heard:?}");
            done.entry(kind).or_default().push(name);
        }
    }
    for (kind, _, why) in &refused {
        assert!(why.contains("no room") || why.contains("No space"), "{kind}: {why}");
    }
    answers(&server);
    assert_eq!(get(&server, "/status").status, 200);
    fs::remove_file(&filled).expect("removed");
    for kind in KINDS {
        let heard = change(&server, kind, "last");
        assert!((200..300).contains(&heard.status), "{kind}, with room again: {heard:?}");
        done.entry(kind).or_default().push("last".to_owned());
    }
    answers(&server);
    let (_, _, directory) = server.stop_by("KILL");
    let namespace_at = format!("--mount=/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd());
    let place = format!("cd '{}' && exec \"$0\" \"$@\"", directory.path().display());
    let starter = ["nsenter", &namespace_at, "sh", "-c", &place];
    let server = Server::start_by(|directory| program_by(&starter, directory), directory, &yaml, &[]);
    answers(&server);
    let found = found(&server);
    for (kind, names) in &done {
        for name in names {
            contains(&found[kind], &format!("{name}.{kind}.example"));
        }
    }
    for (kind, name, _) in &refused {
        lacks(&found[kind], &format!("\"{name}.{kind}.example"));
    }
    let export = server.command(&["audit", "export"]);
    fs::write(server.directory().join("export"), &export.stdout).expect("written");
    let key = PathBuf::from(format!("/proc/{}/root{}", server.pid(), server.directory().display()));
    let key = fs::read(key.join("state/changes/audit-first.key")).expect("the first key");
    fs::write(server.directory().join("first.key"), key).expect("written");
    let verified = server.command(&["audit", "verify", "export", "--key", "first.key"]);
    assert!(verified.status.success(), "{}", text(&verified));
}

#[test]
fn on_a_disk_that_can_only_be_read_queries_go_on_and_changes_are_refused_until_it_can_be_written() {
    if !is_root() {
        return;
    }
    let stub = Stub::start(Script::default());
    let yaml = yaml(&stub);
    let server = Server::start_in(directory(), &yaml);
    for kind in KINDS {
        let first = change(&server, kind, "first");
        assert!((200..300).contains(&first.status), "{kind}: {first:?}");
    }
    let (_, _, directory) = server.stop();
    let mount = "mount --bind state state && mount -o remount,bind,ro state && exec \"$0\" \"$@\"";
    let starter = ["unshare", "--mount", "sh", "-c", mount];
    let server = Server::start_by(|directory| program_by(&starter, directory), directory, &yaml, &[]);
    assert_eq!(super::address(&server, "first.settings.example"), ["192.0.2.1"]);
    assert!(!super::address(&server, "www.example.net").is_empty());
    for kind in KINDS {
        let heard = change(&server, kind, "second");
        assert_eq!(heard.status, 507, "{kind}: {heard:?}");
        contains(&heard.body, "can be read only");
    }
    assert_eq!(super::address(&server, "first.settings.example"), ["192.0.2.1"]);
    let pid = server.pid().to_string();
    let state = server.directory().join("state").display().to_string();
    let mut remount = Command::new("nsenter");
    remount.args(["--target", &pid, "--mount", "mount", "-o", "remount,bind,rw", &state]);
    assert!(remount.status().expect("nsenter(1)").success());
    let is_unread = |kind: &str| ["members", "lists"].contains(&kind);
    for kind in KINDS {
        let heard = change(&server, kind, "second");
        // What could not be read at the start is not written over.
        match is_unread(kind) {
            true => assert_eq!(heard.status, 507, "{kind}: {heard:?}"),
            false => assert!((200..300).contains(&heard.status), "{kind}, once it can be written: {heard:?}"),
        }
    }
    assert_eq!(super::address(&server, "second.settings.example"), ["192.0.2.1"]);
    let (_, _, directory) = server.stop();
    let server = Server::start_in(directory, &yaml);
    answers(&server);
    let found = found(&server);
    for kind in KINDS {
        contains(&found[kind], &format!("first.{kind}.example"));
        match is_unread(kind) {
            true => lacks(&found[kind], "second"),
            false => contains(&found[kind], &format!("second.{kind}.example")),
        }
        let heard = change(&server, kind, "third");
        assert!((200..300).contains(&heard.status), "{kind}: {heard:?}");
    }
}
