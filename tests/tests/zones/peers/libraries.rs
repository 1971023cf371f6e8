//! Transfers, updates and notifications by what others build clients with: dnspython and ldns.

use std::process::Command;

use testkit::{Server, eventually, is_installed, tool};

use super::*;

/// Runs a program to its end and returns what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn dnspython_takes_a_zone_changes_it_and_follows_the_change() {
    let server = primary(&format!("transfer: [\"key {KEY}\"], update: [\"key {KEY}\"]"), "");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/zones.py");
    let port = server.address().port().to_string();
    let arguments = [script, "127.0.0.1", &port, "example.org", "xfr.example.org.", SECRET];
    let said = run(Command::new(tool("python/bin/python")).args(arguments));
    let expect = "AXFR 260\n\
        tcp NOERROR\n\
        again YXDOMAIN\n\
        udp NOERROR\n\
        outside NOTZONE\n\
        IXFR 1\n\
        same True 192.0.2.99 None\n\
        key PeerBadKey\n\
        secret PeerBadSignature\n";
    assert_eq!(said, expect);
    assert_eq!(server.stat("engine", "transfers_steps"), 1);
}

/// Has ldns tell a server that there is a newer version.
fn ldns_notify(server: &Server) -> String {
    let key = format!("{KEY}.:{SECRET}:hmac-sha256");
    let port = server.address().port().to_string();
    run(Command::new("ldns-notify").args(["-z", "example.org", "-p", &port, "-y", &key, "127.0.0.1"]))
}

#[test]
fn ldns_takes_a_zone_and_has_us_look_for_a_newer_one() {
    if !is_installed("drill") || !is_installed("ldns-notify") {
        return;
    }
    let server = primary(&format!("transfer: [\"key {KEY}\"], update: [\"key {KEY}\"]"), "");
    let port = server.address().port().to_string();
    let key = format!("{KEY}.:{SECRET}:hmac-sha256");
    let all = run(Command::new("drill").args(["-p", &port, "-y", &key, "@127.0.0.1", "AXFR", "example.org"]));
    assert_eq!(records(&all).iter().filter(|line| line.starts_with("host-")).count(), 250, "{all}");
    let follower = secondary(&format!("\"{} key {KEY}\"", server.address()), "");
    eventually("the zone", || follower.dig(&["host-77.example.org", "A"]).contains("10.1.77.1"));
    let (is_done, said) = nsupdate(&server, "update add new.example.org 60 A 192.0.2.99");
    assert!(is_done, "{said}");
    assert!(follower.dig(&["new.example.org", "A"]).contains("NXDOMAIN"));
    let said = ldns_notify(&follower);
    eventually("the update", || follower.dig(&["new.example.org", "A"]).contains("192.0.2.99"));
    assert!(!said.contains("REFUSED"), "{said}");
}
