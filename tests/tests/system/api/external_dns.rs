//! external-dns, whose provider for PowerDNS and TXT registry keep zones as they are wanted.
//!
//! Its dependencies take minutes to compile, so it is asked for: see CONTRIBUTING.md.

use std::net::SocketAddr;
use std::process::Command;

use testkit::{Server, contains};

use super::network::{api_address, token};

/// The variable that names the built program.
const PROGRAM: &str = "GANNET_EXTERNAL_DNS";

/// Has it bring the zone to what is wanted; returns what it has printed.
fn turn(program: &str, at: SocketAddr, token: &str, wanted: &[[&str; 4]]) -> String {
    let mut command = Command::new(program);
    command.args([&format!("http://{at}"), token, "cluster"]).args(wanted.iter().flatten());
    let output = command.output().expect("the program starts");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn external_dns_creates_updates_and_deletes_what_it_owns_and_nothing_else() {
    let Ok(program) = std::env::var(PROGRAM) else {
        eprintln!("skipped: {PROGRAM} names no program");
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let zone =
        "@ 300 SOA ns admin 1 3600 600 86400 300\n@ 300 NS ns\nns 300 A 192.0.2.1\nmine 300 A 192.0.2.2\n";
    std::fs::write(directory.path().join("org"), zone).expect("written");
    let yaml = "server: {workers: 2, state-directory: \"@DIRECTORY@\"}\nlisten: [\"@ADDRESS@\"]\n\
                zones: [{name: example.org, file: org}]\ncontrol: {listen: [\"127.0.0.1:0\"]}\n\
                policy: {main: [{do: reject(refused)}]}\n";
    let mut server = Server::start_in(directory, yaml);
    let at = api_address(&mut server);
    let token = token(&server, "cluster", &["--role", "operator", "--zone", "example.org"]);
    let turn = |wanted: &[[&str; 4]]| turn(&program, at, &token, wanted);
    let mut wanted = vec![
        ["app.example.org", "A", "60", "192.0.2.10"],
        ["app.example.org", "A", "60", "192.0.2.11"],
        ["mail.example.org", "CNAME", "120", "app.example.org"],
        ["six.example.org", "AAAA", "60", "2001:db8::1"],
    ];
    contains(&turn(&wanted), "create 3, update 0, delete 0");
    let mut found = server.dig_short(&["app.example.org", "A"]);
    found.sort();
    assert_eq!(found, ["192.0.2.10", "192.0.2.11"]);
    assert_eq!(server.dig_short(&["mail.example.org", "CNAME"]), ["app.example.org."]);
    assert_eq!(server.dig_short(&["six.example.org", "AAAA"]), ["2001:db8::1"]);
    let owned = server.dig_short(&["a-app.example.org", "TXT"]).join("");
    contains(&owned, "external-dns/owner=cluster");
    // It finds what it wanted as it wanted it.
    contains(&turn(&wanted), "create 0, update 0, delete 0");
    wanted[2][3] = "ns.example.org";
    wanted[0][2] = "90";
    wanted[1][2] = "90";
    contains(&turn(&wanted), "create 0, update 2, delete 0");
    assert_eq!(server.dig_short(&["mail.example.org", "CNAME"]), ["ns.example.org."]);
    contains(&server.dig(&["app.example.org", "A"]), "90\tIN\tA");
    wanted.truncate(2);
    contains(&turn(&wanted), "delete 2");
    assert!(server.dig(&["mail.example.org", "CNAME"]).contains("NXDOMAIN"));
    // What somebody else has made is not its own.
    contains(&turn(&[["mine.example.org", "A", "60", "192.0.2.66"]]), "delete 1");
    assert_eq!(server.dig_short(&["mine.example.org", "A"]), ["192.0.2.2"]);
    assert!(server.dig(&["a-app.example.org", "TXT"]).contains("NXDOMAIN"), "nothing of it is left");
    assert_eq!(server.dig_short(&["ns.example.org", "A"]), ["192.0.2.1"]);
}
