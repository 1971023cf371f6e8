//! The audit log of the built program: what is in it, and that it cannot be changed unnoticed.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;

use testkit::{contains, program};

use super::{JSON, ask, start};

/// A verifier that shares nothing with ours.
const VERIFIER: &str = r#"
import hashlib, hmac, json, sys
def expand(key):
    prk = hmac.new(b"\0" * 32, key, hashlib.sha256).digest()
    return hmac.new(prk, b"gannet audit\x01", hashlib.sha256).digest()
def compact(value, **how):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, **how)
def fault(export, key):
    before, number = b"\0" * 32, 0
    for line in export.splitlines(keepends=True):
        it = json.loads(line)
        number += 1
        if it["number"] != number:
            return f"row {number} is removed"
        before = hashlib.sha256(before + it["row"].encode()).digest()
        row = json.loads(it["row"])
        if before.hex() != it["hash"] or row["number"] != number or compact(row, sort_keys=True) != it["row"]:
            return f"row {number} is changed"
        if compact({name: it[name] for name in ("number", "row", "hash", "mac")}) + "\n" != line.decode():
            return f"row {number} is changed"
        if number > 1 and (number - 1) % 256 == 0:
            key = expand(key)
        if hmac.new(key, before, hashlib.sha256).hexdigest() != it["mac"]:
            return f"row {number} is forged"
    return None if number else "there is no row"
key = bytes.fromhex(open(sys.argv[2]).read().split()[1])
export = open(sys.argv[1], "rb").read()
if len(sys.argv) > 3:
    def is_found(octets):
        try:
            return octets == export or fault(octets, key) is not None
        except (ValueError, KeyError, TypeError):
            return True
    def others(at):
        for flipped in (1, 32, 128):
            yield export[:at] + bytes([export[at] ^ flipped]) + export[at + 1:]
        yield export[:at] + export[at + 1:]
        yield export[:at] + b" " + export[at:]
        yield export[:at] + export[at + 1:at + 2] + export[at:at + 1] + export[at + 2:]
    for at in range(len(export)):
        for octets in others(at):
            if not is_found(octets):
                sys.exit(f"octet {at} is not found")
    print(len(export), "octets")
why = fault(export, key)
if why:
    sys.exit(why)
print(export.count(b"\n"), "rows")
"#;

#[test]
fn every_octet_of_an_export_that_is_not_as_it_was_is_found_by_who_shares_nothing_with_us() {
    let (_stub, server) = start("");
    for text in ["192.0.2.1", "[192.0.2.1, \"192.0.2.2\"]"] {
        let set = server.command(&["config", "set", "local.nas.home.arpa", text]);
        assert!(set.status.success(), "{set:?}");
    }
    let place = server.directory();
    let export = exported(&server);
    std::fs::write(place.join("export"), &export).expect("written");
    let key = find(place, "audit-first.key");
    let mut command = Command::new("python3");
    command.args(["-c", VERIFIER, "export"]).arg(key).arg("all").current_dir(place);
    let output = command.output().expect("python3 is installed");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    contains(&said, &format!("{} octets", export.len()));
    contains(&said, &format!("{} rows", export.lines().count()));
}

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
    contains(&rows, "1 change set bad 000000000001: +a.example. by ");
    contains(&rows, "2 change settings local.nas.home.arpa by ");
    contains(&rows, ": done (revision 2)");
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
    assert_eq!(found(&["--on", "a.example"]), ["1"]);
    assert_eq!(found(&["--on", "nas.home.arpa"]), ["2"]);
    assert_eq!(found(&["--outcome", "refused"]), ["3"]);
    assert_eq!(found(&["--outcome", "refused", "--what", "reload"]), [""; 0]);
    assert_eq!(found(&["--by", "nobody of that name"]), [""; 0]);
    assert_eq!(found(&["--since", "1h"]).len(), 4);
    assert_eq!(found(&["--until", "1h"]), [""; 0]);
}

/// Returns the rows of an export as text.
fn exported(server: &testkit::Server) -> String {
    String::from_utf8(server.command(&["audit", "export"]).stdout).expect("text")
}

/// Verifies an export with a first key as we do, and as somebody else does.
fn verified(place: &std::path::Path, export: &str, key: &str) -> [String; 2] {
    std::fs::write(place.join("export"), export).expect("written");
    let said = |output: std::process::Output| {
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let ours = program(place).args(["audit", "verify", "export", "--key", key]).current_dir(place).output();
    let theirs = Command::new("python3").args(["-c", VERIFIER, "export", key]).current_dir(place).output();
    [said(ours.expect("it starts")), said(theirs.expect("python3 is installed"))]
}

#[test]
fn a_row_says_what_was_different_before_and_secrets_are_digests_of_another_key() {
    const SECRETS: [&str; 2] = ["00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"];
    let (_stub, server) = start("local: {nas.home.arpa: 192.0.2.1}\n");
    let set = |path: &str, text: &str| {
        let output = server.command(&["config", "set", path, text]);
        assert!(output.status.success(), "{output:?}");
    };
    set("local.nas.home.arpa", "192.0.2.2");
    set("cookies", &format!("{{secret: {}}}", SECRETS[0]));
    set("cookies.secret", SECRETS[1]);
    set("cookies.secret", SECRETS[0]);
    assert!(server.command(&["config", "unset", "local.nas.home.arpa"]).status.success());
    let many: Vec<String> = (0..250).map(|number| format!("192.0.2.{number}")).collect();
    set("local.many.home.arpa", &format!("[{}]", many.join(", ")));
    assert!(server.command(&["token", "add", "monitoring", "--role", "operator"]).status.success());
    let rows = exported(&server);
    let row = |number: usize| {
        let line = rows.lines().nth(number - 1).unwrap_or_else(|| panic!("{rows}"));
        serde_json::from_str::<serde_json::Value>(line).expect("JSON")["row"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    contains(
        &row(1),
        "\"differences\":[{\"after\":\"192.0.2.2\",\"before\":\"192.0.2.1\",\"path\":\"local.nas.home.arpa\"}],\"number\":1,",
    );
    let digest_in = |text: &str, which: &str| {
        let (_, rest) =
            text.split_once(&format!("\"{which}\":\"hmac-sha256:")).unwrap_or_else(|| panic!("{text}"));
        rest.split('"').next().unwrap_or("").to_owned()
    };
    assert!(!row(2).contains("\"before\""), "{}", row(2));
    let (first, second) = (digest_in(&row(2), "after"), digest_in(&row(3), "after"));
    assert!(first.len() == 64 && second.len() == 64 && first != second, "{first} {second}");
    assert_eq!(digest_in(&row(3), "before"), first, "the same secret has the same digest");
    assert_eq!((digest_in(&row(4), "before"), digest_in(&row(4), "after")), (second, first.clone()));
    contains(&row(5), "{\"after\":\"192.0.2.1\",\"before\":\"192.0.2.2\",\"path\":\"local.nas.home.arpa\"}");
    contains(&row(6), "\"after\":\"sha256:");
    contains(&rows, "{\\\"after\\\":\\\"operator\\\",\\\"path\\\":\\\"monitoring\\\"}");
    // Whoever has the log and the keys of the log can try no secret.
    let place = server.directory();
    let key_of_log = std::fs::read_to_string(find(place, "audit-first.key")).expect("a key");
    let key_of_log = key_of_log.trim().split_once(' ').expect("an epoch").1.to_owned();
    let script = "import hashlib, hmac, sys; print(hmac.new(bytes.fromhex(sys.argv[1]), sys.argv[2].encode(), hashlib.sha256).hexdigest())";
    let hmac = |key: &str| {
        let output = Command::new("python3").args(["-c", script, key, SECRETS[0]]).output().expect("python3");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_ne!(hmac(&key_of_log), first);
    let key_of_digests = find(place, "audit-secrets.key");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(&key_of_digests).expect("a file").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(hmac(std::fs::read_to_string(key_of_digests).expect("a key").trim()), first);
    for secret in SECRETS {
        assert!(!rows.contains(secret), "{rows}");
    }
    let shown = String::from_utf8(server.command(&["audit", "tail", "-n", "50"]).stdout).expect("text");
    contains(&shown, "; local.nas.home.arpa: 192.0.2.1 -> 192.0.2.2");
    let key = find(place, "audit-first.key").display().to_string();
    let count = rows.lines().count();
    let [ours, theirs] = verified(place, &rows, &key);
    contains(&ours, &format!("{count} rows are as they were written"));
    contains(&theirs, &format!("{count} rows"));
    let changed = rows.replacen("192.0.2.1", "192.0.2.9", 1);
    for said in verified(place, &changed, &key) {
        contains(&said, "row 1 ");
    }
}

#[test]
fn what_a_reload_of_the_file_made_different_is_in_the_audit_log() {
    let (stub, server) = start("local: {nas.home.arpa: 192.0.2.1}\n");
    assert_eq!(server.command(&["reload"]).status.code(), Some(0));
    assert_eq!(exported(&server).lines().count(), 1, "nothing is different");
    let yaml = testkit::forwarding(
        &[&stub],
        "local: {nas.home.arpa: 192.0.2.2, tv.home.arpa: 192.0.2.3}\ncookies: {secret: 00112233445566778899aabbccddeeff}\n",
    );
    server.write_config(&yaml);
    assert_eq!(server.command(&["reload"]).status.code(), Some(0));
    let rows = exported(&server);
    assert_eq!(rows.lines().count(), 3, "{rows}");
    let last = rows.lines().last().expect("a row");
    let row = serde_json::from_str::<serde_json::Value>(last).expect("JSON");
    let row: serde_json::Value = serde_json::from_str(row["row"].as_str().expect("text")).expect("JSON");
    assert_eq!((row["source"].as_str(), row["by"].as_str()), (Some("file"), Some("the file")), "{row}");
    contains(row["on"].as_str().expect("text"), ".yaml");
    let differences = row["differences"].to_string();
    contains(
        &differences,
        "{\"after\":\"192.0.2.2\",\"before\":\"192.0.2.1\",\"path\":\"local.nas.home.arpa\"}",
    );
    contains(&differences, "{\"after\":\"192.0.2.3\",\"path\":\"local.tv.home.arpa\"}");
    contains(&differences, "{\"after\":\"hmac-sha256:");
    assert!(!rows.contains("00112233445566778899"), "{rows}");
    // What was refused has changed nothing.
    server.write_config(&format!("{yaml}nonsense: 1\n"));
    assert_eq!(server.command(&["reload"]).status.code(), Some(1));
    assert!(!exported(&server).lines().skip(3).any(|line| line.contains("differences")));
    let key = find(server.directory(), "audit-first.key").display().to_string();
    let rows = exported(&server);
    for said in verified(server.directory(), &rows, &key) {
        contains(&said, &format!("{} rows", rows.lines().count()));
    }
}

#[test]
fn what_was_changed_of_the_file_while_the_server_was_stopped_is_in_the_audit_log() {
    let (stub, server) = start("local: {nas.home.arpa: 192.0.2.1}\n");
    let again = |server: testkit::Server, more: &str| {
        let address = server.address();
        let (_, _, directory) = server.stop();
        testkit::Server::start_at(address, directory, &testkit::forwarding(&[&stub], more))
    };
    assert_eq!(server.command(&["config", "set", "edns.padding", "128"]).status.code(), Some(0));
    let server = again(server, "local: {nas.home.arpa: 192.0.2.1}\n");
    assert_eq!(exported(&server).lines().count(), 1, "nothing is different");
    let secret = "00112233445566778899aabbccddeeff";
    let yaml = format!(
        "local: {{nas.home.arpa: 192.0.2.2, tv.home.arpa: 192.0.2.3}}\ncookies: {{secret: {secret}}}\n"
    );
    let server = again(server, &yaml);
    let rows = exported(&server);
    assert_eq!(rows.lines().count(), 2, "{rows}");
    let last = rows.lines().last().expect("a row");
    let row = serde_json::from_str::<serde_json::Value>(last).expect("JSON");
    let row: serde_json::Value = serde_json::from_str(row["row"].as_str().expect("text")).expect("JSON");
    let said = (row["source"].as_str(), row["by"].as_str(), row["what"].as_str());
    assert_eq!(said, (Some("file"), Some("the file"), Some("change")), "{row}");
    let differences = row["differences"].to_string();
    contains(
        &differences,
        "{\"after\":\"192.0.2.2\",\"before\":\"192.0.2.1\",\"path\":\"local.nas.home.arpa\"}",
    );
    contains(&differences, "{\"after\":\"192.0.2.3\",\"path\":\"local.tv.home.arpa\"}");
    contains(&differences, "{\"after\":\"hmac-sha256:");
    assert!(!rows.contains(secret), "{rows}");
    let server = again(server, &yaml);
    assert_eq!(exported(&server).lines().count(), 2, "once");
}

#[test]
fn the_first_key_of_the_audit_log_comes_from_outside_and_nothing_of_it_stays() {
    const KEY: &str = "7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a";
    let outside = tempfile::tempdir().expect("a directory");
    let key = outside.path().join("audit.key");
    std::fs::write(&key, format!("0 {KEY}\n")).expect("written");
    let (stub, server) = start(&format!(
        "control: {{audit: {{key: {}}}}}\nsets: {{bad: {{dynamic: {{holds: names}}}}}}\n",
        key.display()
    ));
    for number in 0..300 {
        let body = format!("{{\"items\": [\"n{number}.example\"]}}");
        assert_eq!(ask(&server, "POST", "/sets/bad/members", &[JSON], &body).status, 200);
    }
    let rows = exported(&server);
    let place = server.directory();
    for said in verified(place, &rows, &key.display().to_string()) {
        contains(&said, "300 rows");
    }
    assert!(find(place, "audit-first.key").as_os_str().is_empty(), "none is made");
    let grep = Command::new("grep").args(["-rlF", KEY, "."]).current_dir(place).output().expect("grep(1)");
    assert!(grep.stdout.is_empty(), "{grep:?}");
    // The key of now is lost: it follows from the first one, and the rows go on.
    let (_, _, directory) = server.stop();
    std::fs::remove_file(find(directory.path(), "audit.key")).expect("it was there");
    let yaml = testkit::forwarding(&[&stub], &format!("control: {{audit: {{key: {}}}}}\n", key.display()));
    let server = testkit::Server::start_in(directory, &yaml);
    assert!(server.command(&["reload"]).status.success());
    let rows = exported(&server);
    for said in verified(server.directory(), &rows, &key.display().to_string()) {
        contains(&said, &format!("{} rows", rows.lines().count()));
    }
    // Another key does not count for a log that has rows, and that is said.
    std::fs::write(&key, KEY.replace("7f", "8e")).expect("written");
    let (_, _, directory) = server.stop();
    let mut server = testkit::Server::start_in(directory, &yaml);
    server.wait_for_log("the audit log was begun with another key than control.audit.key");
    std::fs::write(&key, "no key").expect("written");
    let checked = server.command(&["reload"]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{said}");
    contains(&said, "has no key of an audit log");
    assert!(!said.contains("no key\""), "what is in it is not shown: {said}");
}

#[test]
fn what_unbound_control_has_done_has_a_row_each_and_what_it_only_looks_at_has_none() {
    let (_stub, server) = start("control: {unbound: {listen: \"@DIRECTORY@/u.sock\"}}\n");
    let order = |command: &str| {
        let mut stream = UnixStream::connect(server.directory().join("u.sock")).expect("the channel");
        stream.write_all(format!("UBCT1 {command}\n").as_bytes()).expect("taken");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("an answer");
        said
    };
    contains(&order("status"), "version");
    contains(&order("flush_zone example.org"), "ok");
    contains(&order("local_data a.example A 192.0.2.1"), "error");
    contains(&order("add_cookie_secret 00112233445566778899aabbccddeeff"), "");
    assert_eq!(order("reload"), "ok\n");
    let rows = exported(&server);
    let row = |what: &str| {
        let found = rows.lines().find(|row| row.contains(&format!("\\\"what\\\":\\\"{what}\\\"")));
        let found = found.unwrap_or_else(|| panic!("{what} in {rows}")).replace("\\\"", "\"");
        contains(&found, "\"by\":\"unbound-control\"");
        contains(&found, "\"source\":\"unbound-control\"");
        found
    };
    contains(&row("flush_zone"), "\"on\":\"example.org\",\"outcome\":\"done\"");
    contains(&row("local_data"), "\"on\":\"a.example A 192.0.2.1\",\"outcome\":\"refused: ");
    contains(&row("reload"), "\"outcome\":\"done\"");
    row("add_cookie_secret");
    assert!(!rows.contains("00112233"), "{rows}");
    assert!(!rows.contains("status"), "{rows}");
    for said in verified(
        server.directory(),
        &rows,
        &find(server.directory(), "audit-first.key").display().to_string(),
    ) {
        contains(&said, "rows");
    }
}

/// Finds a file somewhere below a directory.
fn find(directory: &std::path::Path, name: &str) -> std::path::PathBuf {
    let output = Command::new("find").arg(directory).args(["-name", name]).output().expect("find(1)");
    String::from_utf8_lossy(&output.stdout).trim().into()
}
