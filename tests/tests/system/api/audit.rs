//! The audit log of the built program: what is in it, and that it cannot be changed unnoticed.

use std::process::Command;

use testkit::{contains, program};

use super::{JSON, ask, start};

/// A verifier that shares nothing with ours.
const VERIFIER: &str = r#"
import hashlib, hmac, json, sys
def expand(key):
    prk = hmac.new(b"\0" * 32, key, hashlib.sha256).digest()
    return hmac.new(prk, b"gannet audit\x01", hashlib.sha256).digest()
key = bytes.fromhex(open(sys.argv[2]).read().split()[1])
before, number = b"\0" * 32, 0
for line in open(sys.argv[1]):
    it = json.loads(line)
    number += 1
    if it["number"] != number:
        sys.exit(f"row {number} is removed")
    before = hashlib.sha256(before + it["row"].encode()).digest()
    row = json.loads(it["row"])
    canonical = json.dumps(row, sort_keys=True, separators=(",", ":"))
    if before.hex() != it["hash"] or row["number"] != number or canonical != it["row"]:
        sys.exit(f"row {number} is changed")
    if number > 1 and (number - 1) % 256 == 0:
        key = expand(key)
    if hmac.new(key, before, hashlib.sha256).hexdigest() != it["mac"]:
        sys.exit(f"row {number} is forged")
print(number, "rows")
"#;

#[test]
fn what_was_done_is_in_the_audit_log_and_a_change_of_it_is_noticed() {
    let (_stub, server) = start(
        "sets: {bad: {dynamic: {holds: names}}}\ncontrol: {audit: {sinks: [\"@DIRECTORY@/checkpoints\"]}}\n",
    );
    let run = |arguments: &[&str]| {
        let output = server.command(arguments);
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    };
    contains(&run(&["audit", "tail"]).1, "nobody has had anything done");
    assert_eq!(run(&["set", "add", "bad", "a.example"]).0, Some(0));
    assert_eq!(run(&["config", "set", "local.nas.home.arpa", "192.0.2.1"]).0, Some(0));
    assert_eq!(run(&["config", "set", "cache.main.max-tl", "1h"]).0, Some(1));
    assert_eq!(run(&["reload"]).0, Some(0));
    assert_eq!(run(&["status"]).0, Some(0));
    let members: Vec<String> = (0..300).map(|number| format!("n{number}.example")).collect();
    for member in &members {
        let body = format!("{{\"items\": [\"{member}\"]}}");
        assert_eq!(ask(&server, "POST", "/sets/bad/members", &[JSON], &body).status, 200);
    }
    let rows = run(&["audit", "tail", "-n", "1000"]).1;
    contains(&rows, "1 set-add {\"items\":[\"a.example\"],\"name\":\"bad\"} by ");
    contains(&rows, "2 change settings local.nas.home.arpa by ");
    contains(&rows, ": done (revision 1)");
    contains(&rows, "3 config-change ");
    contains(&rows, ": refused: unknown setting");
    contains(&rows, "4 reload {} by ");
    assert_eq!(rows.lines().count(), 305, "looking at the server is not in it");

    let export = server.command(&["audit", "export"]).stdout;
    let place = server.directory();
    std::fs::write(place.join("audit.ndjson"), &export).expect("written");
    let key = place.join("state/changes/audit-first.key");
    let key = if key.exists() { key } else { find(place, "audit-first.key") }.display().to_string();
    let (_, noted) = rows.trim_end().rsplit_once("to note elsewhere: ").expect("the last row");
    let verify = |file: &str| {
        let mut command = program(place);
        command.args(["audit", "verify", file, "--key", &key, "--noted", noted]).current_dir(place);
        let output = command.output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let theirs = |file: &str| {
        let output = Command::new("python3").args(["-c", VERIFIER, file, &key]).current_dir(place).output();
        let output = output.expect("python3 is installed");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    contains(&verify("audit.ndjson"), "304 rows are as they were written");
    contains(&theirs("audit.ndjson"), "304 rows");
    let text = String::from_utf8(export).expect("text");
    let check = |name: &str, text: String, ours: &str, them: &str| {
        std::fs::write(place.join(name), text).expect("written");
        contains(&verify(name), ours);
        contains(&theirs(name), them);
    };
    check(
        "changed",
        text.replacen("nas.home.arpa", "nox.home.arpa", 1),
        "row 2 was changed",
        "row 2 is changed",
    );
    let without: String =
        text.lines().enumerate().filter(|(at, _)| *at != 2).map(|(_, line)| format!("{line}\n")).collect();
    check("removed", without, "row 3 is not there", "row 3 is removed");
    let cut: String = text.lines().take(100).map(|line| format!("{line}\n")).collect();
    check("cut", cut, "row 101 and all after it are not there", "100 rows");
    let noted = noted.to_owned();
    let (_, log, place) = server.stop();
    let public_key = find(place.path(), "audit-sign.pub").display().to_string();
    let told = log.iter().rev().find(|line| line.contains("the audit log has gone on"));
    contains(told.expect("it is told"), &noted);

    // Who has the last checkpoint from elsewhere needs no note and no key of ours.
    let kept = std::fs::read_to_string(place.path().join("checkpoints")).expect("they are kept");
    contains(kept.lines().last().expect("a checkpoint"), &noted);
    let verify = |file: &str, public_key: &str| {
        let mut command = program(place.path());
        command.args(["audit", "verify", file, "--checkpoint", "checkpoints", "--public-key", public_key]);
        let output = command.current_dir(place.path()).output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    contains(&verify("audit.ndjson", &public_key), "304 rows are as they were written");
    contains(&verify("cut", &public_key), "row 101 and all after it are not there");
    contains(&verify("audit.ndjson", &"0".repeat(64)), "was not signed with this key");
}

#[test]
fn rows_of_the_audit_log_are_found_by_who_what_when_and_what_came_of_it() {
    let (_stub, server) = start("sets: {bad: {dynamic: {holds: names}}}\n");
    for arguments in [
        &["set", "add", "bad", "a.example"][..],
        &["config", "set", "local.nas.home.arpa", "192.0.2.1"],
        &["config", "set", "cache.main.max-tl", "1h"],
        &["reload"],
    ] {
        server.command(arguments);
    }
    let export = server.command(&["audit", "export"]).stdout;
    std::fs::write(server.directory().join("export"), export).expect("written");
    let found = |arguments: &[&str]| {
        let file = server.directory().join("export").display().to_string();
        let of_server = server.command(&[&["audit", "search"], arguments].concat());
        let of_file = server.command(&[&["audit", "search", &file], arguments].concat());
        assert!(of_server.status.success() && of_file.status.success(), "{arguments:?}: {of_server:?}");
        assert_eq!(of_server.stdout, of_file.stdout, "{arguments:?}");
        let text = String::from_utf8(of_server.stdout).expect("text");
        text.lines().map(|line| line.split(' ').next().unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(&[]), ["1", "2", "3", "4"]);
    assert_eq!(found(&["--what", "set"]), ["1"]);
    assert_eq!(found(&["--on", "nas.home.arpa"]), ["2"]);
    assert_eq!(found(&["--outcome", "refused"]), ["3"]);
    assert_eq!(found(&["--outcome", "refused", "--what", "reload"]), [""; 0]);
    assert_eq!(found(&["--by", "nobody of that name"]), [""; 0]);
    assert_eq!(found(&["--since", "1h"]).len(), 4);
    assert_eq!(found(&["--until", "1h"]), [""; 0]);
}

/// Finds a file somewhere below a directory.
fn find(directory: &std::path::Path, name: &str) -> std::path::PathBuf {
    let output = Command::new("find").arg(directory).args(["-name", name]).output().expect("find(1)");
    String::from_utf8_lossy(&output.stdout).trim().into()
}
