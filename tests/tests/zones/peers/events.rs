//! What becomes of a zone of another server, as whoever watches the events is told.

use serde_json::Value;
use testkit::{Server, eventually};

use super::*;

/// Seconds after which a zone expires whose primary is not heard of.
const EXPIRE_S: u32 = 3;

fn org(serial: u32) -> String {
    format!("@ 300 SOA ns admin {serial} 1 1 {EXPIRE_S} 300\n@ 300 NS ns\nns 300 A 192.0.2.1\n")
}

/// Returns what became of the zone so far, in order, each with the whole event.
fn events(server: &Server) -> Vec<(String, Value)> {
    let output = server.command(&["events", "--json", "--kind", "zone"]);
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    events.map(|event| (event["what"].as_str().expect("a word").to_owned(), event)).collect()
}

/// Waits until these have happened, and returns the last.
fn wait_for(server: &Server, expected: &[&str]) -> Value {
    let mut last = Value::Null;
    eventually("the event", || {
        let events = events(server);
        let words: Vec<&str> = events.iter().map(|(word, _)| word.as_str()).collect();
        last = events.last().map_or(Value::Null, |(_, event)| event.clone());
        assert!(words.len() <= expected.len(), "{words:?}");
        assert!(expected.starts_with(&words), "{words:?}");
        words.len() == expected.len()
    });
    last
}

#[test]
fn a_zone_that_is_transferred_fails_expires_and_comes_back_is_an_event_each_time() {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("org"), org(7)).expect("a writable directory");
    let of_primary = config("{name: example.org, file: org, transfer: [loopback]}", "");
    let primary = Server::start_in(directory, &of_primary);
    let at = primary.address();
    let server = secondary(&format!("\"{at}\""), "transfer: [loopback]");
    let first = wait_for(&server, &["transferred"]);
    assert_eq!((first["zone"].as_str(), first["serial"].as_u64()), (Some("example.org."), Some(7)));
    assert_eq!(first["kind"], "zone");

    std::fs::write(primary.directory().join("org"), org(8)).expect("a writable directory");
    assert!(primary.command(&["reload"]).status.success());
    let next = wait_for(&server, &["transferred", "transferred"]);
    assert_eq!(next["serial"], 8);

    // It fails once however often it is tried, and then it is over.
    let (_, _, directory) = primary.stop_by("KILL");
    let expired = wait_for(&server, &["transferred", "transferred", "failed", "expired"]);
    assert_eq!(expired["zone"], "example.org.");
    assert!(expired["serial"].is_null() && expired["why"].is_null(), "{expired}");
    let (_, failed) = events(&server).swap_remove(2);
    assert!(failed["why"].as_str().is_some_and(|why| why.contains(&at.to_string())), "{failed}");
    assert!(server.dig(&["example.org", "SOA"]).contains("SERVFAIL"));

    // Restored from a backup: an expired zone is worth less than one whose serial went back.
    std::fs::write(directory.path().join("org"), org(6)).expect("a writable directory");
    let primary = Server::start_at(at, directory, &of_primary);
    let back = wait_for(&server, &["transferred", "transferred", "failed", "expired", "transferred"]);
    assert_eq!(back["serial"], 6);
    assert_eq!(server.dig_short(&["ns.example.org", "A"]), ["192.0.2.1"]);
    drop(primary);
}
