//! What the program finds when it starts: few descriptors, other things than files, state that root
//! has made.

use std::net::TcpStream;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;
use testkit::program::{gannet, program};
use testkit::{Script, Server, Stub, contains, forwarding};
use wire::Rcode;

use super::ask;

/// Descriptors of a server that has few, and connections that would take them all.
const DESCRIPTORS: u32 = 300;
const CONNECTIONS: u32 = 320;

#[test]
fn quiet_connections_leave_descriptors_for_the_lookups_of_others() {
    let stub = Stub::start(Script::default());
    let mut server = Server::start_with_descriptors(DESCRIPTORS, &forwarding(&[&stub], ""));
    let line = server.wait_for_log("limits.tcp.connections is lowered");
    contains(&line, &format!("descriptors={DESCRIPTORS}"));
    let connections: Vec<_> = (0..CONNECTIONS).map(|_| TcpStream::connect(server.address())).collect();
    assert!(connections.iter().all(Result::is_ok));
    for number in 0..50 {
        let heard = server.ask(&ask(&format!("name{number}.example.org")));
        assert_eq!(heard.rcode(), Rcode::NOERROR, "lookup {number}");
    }
}

/// Runs the program with a time limit, so that one that waits for ever fails the test.
fn in_time(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.arg("15").arg(gannet()).args(arguments).current_dir(directory);
    command.env("GANNET_SOCKET", directory.join("control.sock")).env("NO_COLOR", "1");
    command.output().expect("timeout(1) is installed")
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo(1) is installed").success());
}

#[test]
fn what_is_no_file_is_refused_as_the_configuration() {
    let place = TempDir::new().expect("a temporary directory");
    make_pipe(&place.path().join("pipe"));
    let folder = place.path().display().to_string();
    for (name, what) in [("pipe", "a pipe"), (&*folder, "a directory"), ("/dev/zero", "a device")] {
        for command in ["run", "check"] {
            let output = in_time(place.path(), &[command, "-c", name]);
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let text = text + &String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(1), "{command} {name}: {text}");
            contains(&text, what);
        }
    }
}

#[test]
fn a_pipe_in_place_of_the_configuration_keeps_neither_reloads_nor_the_end() {
    let stub = Stub::start(Script::default());
    let config = forwarding(&[&stub], "");
    let server = Server::start(&config);
    let file = server.directory().join("gannet.yaml");
    std::fs::remove_file(&file).expect("it was there");
    make_pipe(&file);
    let output = in_time(server.directory(), &["reload"]);
    assert_eq!(output.status.code(), Some(1));
    contains(&String::from_utf8_lossy(&[output.stdout, output.stderr].concat()), "a pipe");
    std::fs::remove_file(&file).expect("it was there");
    server.write_config(&config);
    assert!(in_time(server.directory(), &["reload"]).status.success(), "the next reload works");
    std::fs::remove_file(&file).expect("it was there");
    make_pipe(&file);
    server.signal("HUP");
    let (status, log, _) = server.stop();
    assert!(status.success(), "{}", log.join("\n"));
}

#[test]
fn a_file_in_the_place_of_the_control_socket_stays_and_is_named() {
    let place = TempDir::new().expect("a temporary directory");
    let file = place.path().join("control.sock");
    std::fs::write(&file, "precious").expect("a writable directory");
    let stub = Stub::start(Script::default());
    let mut server = Server::start_in(place, &forwarding(&[&stub], ""));
    contains(&server.wait_for_log("no control socket"), "what is there is no socket");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "precious");
    let said = |path: &str| {
        let output = server.command(&["status", "--socket", path]);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    contains(&said("control.sock"), "is no socket");
    contains(&said("."), "is no socket");
}

#[test]
fn the_control_socket_may_be_named_without_a_directory() {
    let place = TempDir::new().expect("a temporary directory");
    let stub = Stub::start(Script::default());
    let server = Server::start_with(place, &forwarding(&[&stub], ""), &[("GANNET_SOCKET", "ctl")]);
    let output = program(server.directory()).env("GANNET_SOCKET", "ctl").arg("status").output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").expect("a process").uid() == 0
}

#[test]
fn a_server_that_stays_root_for_want_of_a_user_says_so() {
    let passwd = std::fs::read_to_string("/etc/passwd").expect("a list of users");
    if !is_root() || passwd.lines().any(|line| line.starts_with("gannet:")) {
        return;
    }
    let stub = Stub::start(Script::default());
    let mut server = Server::start(&forwarding(&[&stub], ""));
    let line = server.wait_for_log("stays root");
    contains(&line, "WARN");
    contains(&line, "user=gannet");
}

#[test]
fn state_that_root_has_made_is_the_servers_own_when_it_runs_as_another_user() {
    if !is_root() {
        return;
    }
    let place = TempDir::new().expect("a temporary directory");
    let state = place.path().join("state");
    std::fs::create_dir_all(state.join("zones")).expect("a writable directory");
    std::fs::write(state.join("zones/left"), "x").expect("a writable directory");
    let stub = Stub::start(Script::default());
    let config = forwarding(&[&stub], "")
        .replace("state-directory: \"@DIRECTORY@\"", "state-directory: \"@DIRECTORY@/state\", user: nobody");
    let server = Server::start_in(place, &config);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")).expect("a user");
    let nobody: u32 = user.split_whitespace().next().expect("a number").parse().expect("a number");
    assert_ne!(nobody, 0);
    for path in ["", "zones", "zones/left"] {
        let owner = std::fs::metadata(state.join(path)).expect("it is there").uid();
        assert_eq!(owner, nobody, "state/{path}");
    }
}
