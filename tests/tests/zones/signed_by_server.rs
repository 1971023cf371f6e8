//! Zones that the server signs by itself, as clients and operators meet them.

use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;
use testkit::{Script, Server, Stub, eventually, forwarding};

const ZONE: &str = "$TTL 60\n@ SOA ns admin 7 7200 600 86400 60\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n*.wild TXT \"any\"\n";

fn config(policy: &str) -> String {
    let stub_that_is_not_asked = Stub::start(Script::silent());
    forwarding(
        &[&stub_that_is_not_asked],
        &format!(
            "signing: {{mine: {policy}}}\n\
             zones:\n  - {{name: example.org, file: org, sign: mine}}\n\
             policy: {{main: [{{do: reject(refused)}}]}}\n"
        ),
    )
}

fn serving(policy: &str) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("org"), ZONE).expect("a writable directory");
    let server = Server::start_in(directory, &config(policy));
    eventually("the zone is signed", || server.dig(&["example.org", "SOA"]).contains("status: NOERROR"));
    server
}

fn said(server: &Server, arguments: &[&str]) -> (bool, String) {
    let output = server.command(arguments);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// Checks the zone that is kept on disk, which is the one that is served.
#[track_caller]
fn verify(server: &Server) -> String {
    let (is_fine, text) =
        said(server, &["zone", "verify", "signing/example.org.signed", "--name", "example.org"]);
    assert!(is_fine && text.contains("every signature is good"), "{text}");
    text
}

#[test]
fn a_zone_is_signed_and_served_and_signed_again_after_a_change() {
    let server = serving("{algorithm: ed25519}");
    verify(&server);
    let answer = server.dig(&["+dnssec", "www.example.org", "A"]);
    assert!(answer.contains("192.0.2.2") && answer.contains("RRSIG"), "{answer}");
    let answer = server.dig(&["+dnssec", "none.example.org", "A"]);
    assert!(answer.contains("status: NXDOMAIN") && answer.contains("NSEC"), "{answer}");
    let plain = server.dig(&["www.example.org", "A"]);
    assert!(!plain.contains("RRSIG"), "{plain}");
    // A changed file: signed again, with a serial of its own.
    let before = server.dig_short(&["example.org", "SOA"]);
    std::fs::write(server.directory().join("org"), ZONE.replace("192.0.2.2", "192.0.2.22"))
        .expect("writable");
    let (is_fine, text) = said(&server, &["reload"]);
    assert!(is_fine, "{text}");
    eventually("the new address", || server.dig(&["www.example.org", "A"]).contains("192.0.2.22"));
    assert_ne!(server.dig_short(&["example.org", "SOA"]), before);
    verify(&server);
}

#[test]
fn a_changed_file_is_signed_again_without_a_reload() {
    let server = serving("{algorithm: ed25519}");
    std::fs::write(server.directory().join("org"), ZONE.replace("192.0.2.2", "192.0.2.22"))
        .expect("writable");
    eventually("the new address", || server.dig(&["www.example.org", "A"]).contains("192.0.2.22"));
    verify(&server);
}

#[test]
fn keys_are_private_and_are_shown_and_a_restart_changes_nothing() {
    let server = serving("{single-type-signing: true, nsec3: true, zonemd: sha384}");
    assert!(verify(&server).contains("its ZONEMD is right"));
    let (is_fine, keys) = said(&server, &["zone", "keys", "status", "example.org"]);
    assert!(is_fine && keys.contains("csk") && keys.contains("published") && keys.contains("DS "), "{keys}");
    let keys_directory = server.directory().join("keys");
    let mut private = 0;
    for entry in std::fs::read_dir(&keys_directory).expect("keys") {
        let entry = entry.expect("an entry");
        if entry.path().extension().is_some_and(|end| end == "private") {
            private += 1;
            assert_eq!(entry.metadata().expect("metadata").permissions().mode() & 0o777, 0o600);
        }
    }
    assert_eq!(private, 1);
    let (is_fine, text) = said(&server, &["zone", "keys", "ds-seen", "example.org"]);
    assert!(!is_fine && text.contains("waits for its DS"), "{text}");
    let (is_fine, text) = said(&server, &["zone", "keys", "status", "example.net"]);
    assert!(!is_fine && text.contains("is not signed here"), "{text}");
    let before = server.dig_short(&["+dnssec", "example.org", "SOA"]);
    assert_eq!(before.len(), 2, "{before:?}");
    let (_, log, directory) = server.stop();
    // No log line has a key in it.
    let secret = std::fs::read_dir(directory.path().join("keys"))
        .expect("keys")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .find_map(|text| text.lines().find_map(|line| line.strip_prefix("PrivateKey: ").map(str::to_owned)))
        .expect("a private key");
    assert!(log.iter().all(|line| !line.contains(&secret)));
    let server =
        Server::start_in(directory, &config("{single-type-signing: true, nsec3: true, zonemd: sha384}"));
    assert_eq!(server.dig_short(&["+dnssec", "example.org", "SOA"]), before);
}

#[test]
fn a_policy_that_does_not_exist_is_a_mistake() {
    let server = serving("{}");
    server.write_config(&config("{}").replace("sign: mine", "sign: mien"));
    let (is_fine, text) = said(&server, &["check", "-c", "gannet.yaml"]);
    assert!(
        !is_fine && text.contains("there is no signing policy \"mien\"") && text.contains("\"mine\""),
        "{text}"
    );
    server.write_config(&config("{rrsig-lifetime: 1d, rrsig-refresh: 2d}"));
    let (is_fine, text) = said(&server, &["check", "-c", "gannet.yaml"]);
    assert!(!is_fine && text.contains("due for renewal at once"), "{text}");
}
