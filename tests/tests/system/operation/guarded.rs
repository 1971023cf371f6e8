//! What a server keeps from others unless it is told otherwise: the record of queries, and its work
//! for names that are not its own.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use tempfile::TempDir;
use testkit::program::gannet;
use testkit::{Script, Server, Stub, contains, eventually, forwarding};
use wire::{Rcode, Rtype};

use super::ask;

const ZONE: &str = "$TTL 60\n@ SOA ns admin 1 7200 600 86400 300\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n";

#[test]
fn the_record_of_queries_is_for_its_owner_alone_whatever_the_umask() {
    let stub = Stub::start(Script::default());
    let directory = TempDir::new().expect("a temporary directory");
    let config = forwarding(&[&stub], "recorder: {file: queries.db}");
    // A shell sets it: this process has tests in other threads.
    let permissive = |directory: &std::path::Path| {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 0; exec \"$0\" \"$@\""]).arg(gannet()).current_dir(directory);
        command.env("GANNET_SOCKET", directory.join("control.sock")).env("NO_COLOR", "1");
        command
    };
    let server = Server::start_by(permissive, directory, &config, &[]);
    server.ask(&ask("www.example.org"));
    let log = || {
        let output = server.command(&["log", "-c", "gannet.yaml", "--name", "www.example.org"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    eventually("the query is recorded", || log().contains("www.example.org"));
    let files: Vec<_> = std::fs::read_dir(server.directory())
        .expect("its directory")
        .map(|entry| entry.expect("a readable directory"))
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("queries"))
        .collect();
    // The databases, and what SQLite writes beside them while they are open.
    let is_day = |name: &str| name.starts_with("queries-20") && name.ends_with(".db");
    assert!(files.iter().any(|file| is_day(&file.file_name().to_string_lossy())));
    assert!(files.len() > 1, "{files:?}");
    for file in files {
        let mode = file.metadata().expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.file_name());
    }
}

#[test]
fn a_server_with_zones_and_no_policy_asks_nobody() {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("org"), ZONE).expect("a writable directory");
    // Nobody is named who could be asked: without zones it would be the resolvers of the system.
    let config = "server: {workers: 2, state-directory: \"@DIRECTORY@\"}\nlisten: [\"@ADDRESS@\"]\nzones: [{name: example.org, file: org}]\n";
    let server = Server::start_in(directory, config);
    assert_eq!(server.ask(&ask("www.example.org")).answers(), ["www.example.org. 60 A 192.0.2.2"]);
    for name in ["www.example.net", "www.example.com", "example"] {
        for rtype in [Rtype::A, Rtype::AAAA] {
            let heard = server.ask(&testkit::Ask::new(name, rtype).edns(1232));
            assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::REFUSED, 0), "{name}");
            assert_eq!(server.ask_tcp(&testkit::Ask::new(name, rtype)).rcode(), Rcode::REFUSED, "{name}");
        }
    }
    for (group, counter) in [("fetch", "fetches"), ("engine", "deferred")] {
        assert_eq!(server.stat(group, counter), 0, "{group}.{counter}");
    }
}

#[test]
fn an_emptied_configuration_is_refused_and_the_old_one_goes_on() {
    let stub = Stub::start(Script::default());
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("org"), ZONE).expect("a writable directory");
    let config = forwarding(
        &[&stub],
        "zones: [{name: example.org, file: org}]\npolicy: {main: [zones, reject(nxdomain)]}",
    );
    let server = Server::start_in(directory, &config);
    let file = server.directory().join("gannet.yaml");
    for emptied in ["", "\n\n", "# everything is gone\n", "---\n", "{}\n"] {
        std::fs::write(&file, emptied).expect("a writable directory");
        let output = server.command(&["reload"]);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(1), "{emptied:?}: {said}");
        contains(&said, "gannet.yaml");
        assert_eq!(server.ask(&ask("www.example.org")).answers(), ["www.example.org. 60 A 192.0.2.2"]);
        assert_eq!(server.ask(&ask("www.example.net")).rcode(), Rcode::NXDOMAIN, "{emptied:?}");
    }
    server.write_config(&config);
    assert!(server.command(&["reload"]).status.success(), "the next reload works");
    assert_eq!(stub.seen(), []);
}
