//! The API and its description, held against each other by programs that read the description.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Script, Server, Stub, contains, forwarding, tool};

use super::network::{api_address, token};

/// Streams never end: tests of their own read them.
const STREAMS: &str = "(events|live)$";
/// What is checked of each response.
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn start() -> (Server, Stub) {
    let stub = Stub::start(Script::default());
    let directory = tempfile::tempdir().expect("a directory");
    let zone = "@ 300 SOA ns admin 1 3600 600 86400 300\n@ 300 NS ns\nns 300 A 192.0.2.1\n";
    std::fs::write(directory.path().join("example.org.zone"), zone).expect("written");
    let more = "control: {listen: [\"127.0.0.1:0\"]}\n\
                sets: {bad: {dynamic: {holds: names}}, mine: {lists: [{own: mine}]}}\n\
                zones: [{name: example.org, file: example.org.zone}]\n\
                resolvers: {own: {}}\n\
                recorder: {file: queries}\n\
                policy: {main: [local, {if: qname in bad|mine, do: reject(nxdomain)}, zones, forward(default)]}\n";
    (Server::start_in(directory, &forwarding(&[&stub], more)), stub)
}

/// Takes connections over TCP to the control socket, where the system says who asks.
fn relay(server: &Server) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let socket = server.directory().join("control.sock");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = UnixStream::connect(&socket) else { break };
            let (mut there, mut here) =
                (client.try_clone().expect("a stream"), server.try_clone().expect("a stream"));
            let (mut client, mut server) = (client, server);
            std::thread::spawn(move || {
                let _ = io::copy(&mut there, &mut server);
                let _ = server.shutdown(Shutdown::Write);
            });
            std::thread::spawn(move || {
                let _ = io::copy(&mut here, &mut client);
                let _ = client.shutdown(Shutdown::Both);
            });
        }
    });
    at
}

/// Has schemathesis send what the description lets it, and what it does not.
fn check(server: &Server, at: SocketAddr, more: &[&str]) {
    let output = Command::new("timeout")
        .args(["--kill-after=5", "300"])
        .arg(tool("python/bin/schemathesis"))
        .arg("run")
        .arg(file("docs/openapi.json"))
        .args(["--url", &format!("http://{at}"), "--checks", CHECKS, "--seed", "19", "--no-color"])
        .args(["--exclude-path-regex", STREAMS, "--continue-on-failure", "--request-timeout", "20"])
        .args(["--suppress-health-check", "all", "--no-shrink", "--warnings", "off"])
        .args(more)
        .env("SCHEMATHESIS_HOOKS", "schemathesis_hooks")
        .env("PYTHONPATH", file("tests/tests/clients"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(server.directory())
        .output()
        .expect("timeout(1)");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    contains(&text, "Test cases:");
}

#[test]
fn the_description_is_openapi() {
    let output = Command::new(tool("python/bin/openapi-spec-validator"))
        .arg(file("docs/openapi.json"))
        .output()
        .expect("`cargo xtask tools` installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn what_an_admin_sends_is_answered_as_the_description_says() {
    let (server, _stub) = start();
    check(&server, relay(&server), &["--max-examples", "6", "--phases", "coverage,fuzzing"]);
}

#[test]
fn what_comes_over_the_network_is_answered_as_the_description_says() {
    let (mut server, _stub) = start();
    let at = api_address(&mut server);
    let admin = format!("Authorization: Bearer {}", token(&server, "tester", &["--role", "admin"]));
    let few = ["--max-examples", "1", "--phases", "fuzzing", "--rate-limit", "30/s"];
    check(&server, at, &[&few[..], &["--header", &admin]].concat());
    // Strangers are told apart from others before anything they send is looked at.
    check(&server, at, &few);
}
