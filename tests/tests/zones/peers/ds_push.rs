//! The DS of zones that are signed here, sent to servers of their parents by dynamic update.

use std::time::Duration;

use testkit::tls::NAME;
use testkit::{Other, Server, certificate, contains, eventually_within, is_installed};

use super::*;

/// How long a key may take into use: it is published, waits, is signed, sent and noted, and each
/// step waits for the last.
const PATIENCE: Duration = Duration::from_secs(120);

const CHILD: &str = "$TTL 1\n@ SOA ns admin 7 7200 600 86400 1\n@ NS ns\nns A 192.0.2.3\n";

/// Settings of a zone that is signed, whose keys are known everywhere at once.
fn settings(push: &str, policy: &str) -> String {
    let zone = "{name: sub.example.org, file: sub, sign: mine}";
    let signing = format!(
        "signing:\n  mine:\n    algorithm: ed25519\n    propagation-delay: 0s\n    dnskey-ttl: 1s\n    parent-delay: 0s\n    \
         ds-push: [{push}]\n{policy}"
    );
    config(zone, "") + &signing
}

fn child(push: &str, policy: &str) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("sub"), CHILD).expect("a writable directory");
    Server::start_in(directory, &settings(push, policy))
}

fn soon(what: &str, holds: impl FnMut() -> bool) {
    eventually_within(PATIENCE, what, holds);
}

fn keys(server: &Server) -> String {
    let output = server.command(&["zone", "keys", "status", "sub.example.org"]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the DS that a key of the zone should have at the parent, as `gannet zone keys status`
/// says: those of KSKs.
fn ds_of_keys(server: &Server) -> Vec<String> {
    let text = keys(server);
    // Below its key, so not at the start of a line: "DS at the parent" stands there.
    let mut lines: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("    DS ")).map(plain).collect();
    lines.sort();
    lines
}

/// Brings a DS into one form: `dig` puts spaces into digests.
fn plain(ds: &str) -> String {
    let words: Vec<&str> = ds.split_whitespace().collect();
    let (head, digest) = words.split_at(words.len().min(3));
    format!("{} {}", head.join(" "), digest.concat().to_ascii_uppercase())
}

fn ds_at(dig: &dyn Fn(&[&str]) -> String) -> Vec<String> {
    let mut lines: Vec<String> =
        dig(&["+time=10", "+short", "sub.example.org", "DS"]).lines().map(plain).collect();
    lines.sort();
    lines
}

/// Returns whether the parent has the DS of the zone's only KSK, and no other.
fn has_only_ds(server: &Server, parent: &dyn Fn(&[&str]) -> String) -> bool {
    let wanted = ds_of_keys(server);
    wanted.len() == 1 && ds_at(parent) == wanted
}

/// Has the KSK replaced and waits until the parent has its successor's DS and the successor is
/// alone.
fn check_replaced(server: &Server, parent: &dyn Fn(&[&str]) -> String) {
    // The server that took its DS is believed to have it.
    let is_active = |line: &str| line.starts_with("ksk ") && line.contains(" active ");
    soon("the key in use", || keys(server).lines().any(is_active));
    let before = ds_of_keys(server);
    // While the zone is being signed, an operator is told to try again.
    soon("the key is to be replaced", || {
        server.command(&["zone", "keys", "roll", "sub.example.org", "ksk"]).status.success()
    });
    soon("the DS of the next key alone at the parent", || {
        ds_of_keys(server) != before && has_only_ds(server, parent)
    });
}

/// Waits until the parent has the DS of the zone's only KSK, has that replaced, and waits again.
fn check_pushed(server: &Server, parent: &dyn Fn(&[&str]) -> String) {
    soon("the DS of the first key at the parent", || has_only_ds(server, parent));
    check_replaced(server, parent);
    contains(&keys(server), "DS at the parent: ");
    assert!(server.stat("ds-push", "taken") >= 2);
    let metrics = String::from_utf8_lossy(&server.command(&["stats", "--prometheus"]).stdout).into_owned();
    contains(&metrics, "gannet_ds_push_taken_total ");
}

#[test]
fn another_of_ours_takes_the_ds_of_a_key_and_of_its_successor() {
    let parent = primary(&format!("update: [\"key {KEY} name sub.example.org types DS\"]"), "");
    let push = format!("\"{} key {KEY}\"", parent.address());
    // There are CDS all the time, so there is always something that might be sent once more.
    let policy = "    cds-cdnskey-publish: always\n";
    let mut server = child(&push, policy);
    check_pushed(&server, &|arguments| parent.dig(arguments));
    server.wait_for_log("the parent's server took the DS");
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &settings(&push, policy));
    soon("what was sent is remembered", || keys(&server).contains("sent to the parent at "));
    // After a restart nothing is sent that was taken: the next key's is the first.
    check_replaced(&server, &|arguments| parent.dig(arguments));
    assert_eq!((server.stat("ds-push", "taken"), server.stat("ds-push", "refused")), (1, 0));
}

#[test]
fn knot_takes_the_ds_of_a_key_and_of_its_successor() {
    if !is_installed("knotd") {
        return;
    }
    let more = format!(
        "{KNOT_KEY}acl:\n  - id: push\n    key: {KEY}\n    action: update\n    update-type: DS\n\
         zone:\n  - domain: example.org\n    storage: @DIRECTORY@\n    file: org\n    acl: push\n"
    );
    let parent = Other::knot(&more, &[("org", &without_generate())]);
    let server = child(&format!("\"{} key {KEY}\"", parent.address()), "");
    check_pushed(&server, &|arguments| parent.dig(arguments));
}

#[test]
fn bind_takes_the_ds_of_a_key_and_of_its_successor() {
    if !is_installed("named") {
        return;
    }
    let more = format!(
        "{BIND_KEY}\nzone \"example.org\" {{ type primary; file \"org\"; allow-update {{ key {KEY}; }}; }};\n"
    );
    let parent = Other::bind("", &more, &[("org", &without_generate())]);
    let server = child(&format!("\"{} key {KEY}\"", parent.address()), "");
    check_pushed(&server, &|arguments| parent.dig(arguments));
}

#[test]
fn ds_go_over_tls_to_a_server_that_proves_itself() {
    let directory = directory_with_org();
    certificate(directory.path(), &[NAME, "127.0.0.1"]);
    let zone = format!("{{name: example.org, file: org, update: [\"tls key {KEY} name sub.example.org\"]}}");
    let yaml = config(&zone, "").replace(
        "listen: [\"@ADDRESS@\"]",
        "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: tls}]\n\
         tls: {certificates: [{certificate: certificate.pem, key: key.pem}]}",
    );
    let parent = Server::start_in(directory, &yaml);
    let roots = parent.directory().join("certificate.pem").display().to_string();
    let push = |name: &str| format!("\"tls://{}#{name} roots {roots} key {KEY}\"", parent.another());
    let server = child(&push(NAME), "");
    check_pushed(&server, &|arguments| parent.dig(arguments));
    // Whoever proves to be somebody else is told nothing.
    let server = child(&push("other.example.net"), "");
    soon("why it is not told", || keys(&server).contains("not taken: tls://"));
    assert_eq!(server.stat("ds-push", "taken"), 0);
}

#[test]
fn a_parent_that_refuses_is_asked_again_until_it_takes_the_ds() {
    let parent = primary("update: [\"key xfr.example.org name other.example.org\"]", "");
    let push = format!("\"{} key {KEY}\"", parent.address());
    // The times between two tries grow no longer than this.
    let mut server = child(&push, "    parent-check-interval: 10s\n");
    let why = format!("not taken: {}: it answers REFUSED", parent.address());
    soon("why", || keys(&server).contains(&why));
    assert!(server.stat("ds-push", "refused") >= 1);
    server.wait_for_log("no server of the parent takes the DS");
    assert!(ds_at(&|arguments| parent.dig(arguments)).is_empty());
    let zone = format!("{{name: example.org, file: org, update: [\"key {KEY} name sub.example.org\"]}}");
    parent.write_config(&config(&zone, ""));
    assert!(parent.command(&["reload"]).status.success());
    soon("the DS at the parent", || has_only_ds(&server, &|arguments| parent.dig(arguments)));
}

#[test]
fn the_next_server_is_tried_when_one_does_not_take_the_ds() {
    let stranger = primary("", "");
    let parent = primary(&format!("update: [\"key {KEY} name sub.example.org types DS\"]"), "");
    let other = Server::start_in(directory_with_org(), &config("{name: example.net, file: org}", ""));
    // One that may not be told, one that does not serve the parent, one that takes it.
    let push = format!(
        "\"{} key {KEY}\", \"{}\", \"{} key {KEY}\"",
        stranger.address(),
        other.address(),
        parent.address()
    );
    let server = child(&push, "");
    check_pushed(&server, &|arguments| parent.dig(arguments));
    assert!(ds_at(&|arguments| stranger.dig(arguments)).is_empty());
}

#[test]
fn a_zone_that_is_to_be_no_longer_secure_has_its_ds_removed() {
    let parent = primary(&format!("update: [\"key {KEY} name sub.example.org types DS\"]"), "");
    let push = format!("\"{} key {KEY}\"", parent.address());
    let server = child(&push, "");
    let at_parent = || ds_at(&|arguments| parent.dig(arguments));
    soon("the DS at the parent", || at_parent().len() == 1);
    server.write_config(&settings(&push, "    cds-cdnskey-publish: delete-dnssec\n"));
    assert!(server.command(&["reload"]).status.success());
    soon("no DS at the parent", || at_parent().is_empty());
}
