//! Zones changed by updates.

use testkit::{Server, eventually, is_installed, with_input};

use super::*;

#[test]
fn what_is_updated_is_there_after_the_power_was_cut() {
    let server = primary(&format!("update: [\"key {KEY}\"], transfer: [loopback]"), "");
    for number in 1..=5 {
        let (is_done, said) =
            nsupdate(&server, &format!("update add u{number}.example.org 60 A 192.0.2.{number}"));
        assert!(is_done, "{said}");
        let printed = server.dig(&[&format!("u{number}.example.org"), "A"]);
        assert!(printed.contains(&format!("192.0.2.{number}")), "{printed}");
    }
    let (is_done, said) = nsupdate(&server, "prereq nxdomain u1.example.org\nupdate delete u2.example.org");
    assert!(!is_done && said.contains("YXDOMAIN"), "{said}");
    let (_, _, directory) = server.stop_by("KILL");
    let zone = format!(
        "{{name: example.org, file: org, update: [\"key {KEY}\"], transfer: [loopback], on-file-change: merge}}"
    );
    let server = Server::start_in(directory, &config(&zone, ""));
    for number in 1..=5 {
        let printed = server.dig(&[&format!("u{number}.example.org"), "A"]);
        assert!(printed.contains(&format!("192.0.2.{number}")), "{printed}");
    }
    let soa = server.dig(&["+short", "example.org", "SOA"]);
    assert!(soa.contains(" 15 "), "{soa}");
    // The steps are still there for secondaries.
    let steps = server.dig(&["+tcp", "example.org", "IXFR=13"]);
    assert!(steps.contains("u4.example.org.") && steps.contains("u5.example.org."), "{steps}");
    assert!(!steps.contains("u3.example.org.") && !steps.contains("mail"), "{steps}");
    // A change of the file is merged, the serial goes on.
    let file = server.directory().join("org");
    let text = std::fs::read_to_string(&file).expect("the file");
    std::fs::write(&file, text.replace("192.0.2.2\n", "192.0.2.22\n")).expect("writable");
    assert!(server.command(&["zone", "reload"]).status.success());
    eventually("the file's change", || server.dig(&["mail.example.org", "A"]).contains("192.0.2.22"));
    let soa = server.dig(&["+short", "example.org", "SOA"]);
    assert!(soa.contains(" 16 "), "{soa}");
    assert!(server.dig(&["u5.example.org", "A"]).contains("192.0.2.5"));
}

fn updated_zone(more: &str) -> String {
    format!("{{name: example.org, file: org, update: [\"key {KEY}\"], transfer: [loopback]{more}}}")
}

/// Copies files and directories; each gets times of its own.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).expect("a directory").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            std::fs::create_dir_all(&to).expect("a writable directory");
            copy(&from, &to);
        } else if from.is_file() {
            std::fs::copy(&from, &to).expect("a file");
        }
    }
}

#[track_caller]
fn check_updated(server: &Server) {
    let said = server.dig(&["u.example.org", "A"]);
    assert!(said.contains("192.0.2.77"), "{said}");
    let soa = server.dig(&["+short", "example.org", "SOA"]);
    assert!(soa.contains(" 11 "), "{soa}");
}

#[test]
fn updates_stay_when_the_zone_file_is_touched_moved_and_copied() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Server::start_in(directory_with_org(), &config(&updated_zone(""), ""));
    let (is_done, said) = nsupdate(&server, "update add u.example.org 60 A 192.0.2.77");
    assert!(is_done, "{said}");
    let file = server.directory().join("org");
    let reload = |server: &Server| {
        let output = server.command(&["reload"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        check_updated(server);
    };
    std::fs::File::options()
        .append(true)
        .open(&file)
        .and_then(|file| file.set_modified(std::time::SystemTime::UNIX_EPOCH))
        .expect("our file");
    reload(&server);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("our file");
    reload(&server);
    // What an editor does; and a comment is no record.
    std::fs::write(file.with_extension("new"), format!("; nothing\n{ORG}")).expect("a writable directory");
    std::fs::rename(file.with_extension("new"), &file).expect("our file");
    reload(&server);
    let (_, _, directory) = server.stop_by("KILL");
    std::fs::write(&file, ORG).expect("our file");
    let server = Server::start_in(directory, &config(&updated_zone(""), ""));
    check_updated(&server);
    // To another machine.
    let (_, _, directory) = server.stop();
    let other = TempDir::new().expect("a temporary directory");
    copy(directory.path(), other.path());
    let server = Server::start_in(other, &config(&updated_zone(""), ""));
    check_updated(&server);
    assert!(server.command(&["zone", "status"]).stdout.starts_with(b"example.org.  primary  serial 11"));
}

#[test]
fn a_changed_file_is_not_taken_before_the_operator_decides() {
    let mut server = Server::start_in(directory_with_org(), &config(&updated_zone(""), ""));
    let (is_done, said) = nsupdate(&server, "update add u.example.org 60 A 192.0.2.77");
    assert!(is_done, "{said}");
    let file = server.directory().join("org");
    std::fs::write(&file, ORG.replace("192.0.2.2\n", "192.0.2.22\n")).expect("our file");
    for arguments in [&["reload"][..], &["zone", "reload"], &["zone", "reload", "example.org"]] {
        let output = server.command(arguments);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("not taken: example.org.: ") && said.contains("--merge"), "{said}");
        check_updated(&server);
    }
    // It is said once in the log, and as long as it is so in the status.
    server.wait_for_log("the zone's file has changed and is not taken");
    let told = server.log().iter().filter(|line| line.contains("has changed and is not taken")).count();
    assert_eq!(told, 1, "{}", server.log().join("\n"));
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &config(&updated_zone(""), ""));
    check_updated(&server);
    let status = server.command(&["zone", "status", "example.org"]);
    let said = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(said.contains("gannet zone reload example.org.") && said.contains("/org"), "{said}");
    let merged = server.command(&["zone", "reload", "example.org", "--merge"]);
    assert_eq!(merged.status.code(), Some(0), "{merged:?}");
    eventually("the file's change", || server.dig(&["mail.example.org", "A"]).contains("192.0.2.22"));
    assert!(server.dig(&["u.example.org", "A"]).contains("192.0.2.77"));
    // The other way: the file counts.
    std::fs::write(&file, ORG.replace("192.0.2.2\n", "192.0.2.33\n")).expect("our file");
    assert_eq!(server.command(&["reload"]).status.code(), Some(1));
    let replaced = server.command(&["zone", "reload", "example.org", "--replace"]);
    assert_eq!(replaced.status.code(), Some(0), "{replaced:?}");
    eventually("the file's change", || server.dig(&["mail.example.org", "A"]).contains("192.0.2.33"));
    assert!(server.dig(&["u.example.org", "A"]).contains("NXDOMAIN"));
    let (_, log, directory) = server.stop_by("KILL");
    assert!(
        log.iter().any(|line| line.contains("replaces what was kept here") && line.contains("records=1"))
    );
    let aside = directory.path().join("zones/example.org.base.1");
    assert!(aside.is_file(), "{}", log.join("\n"));
    let server = Server::start_in(directory, &config(&updated_zone(""), ""));
    assert!(server.dig(&["mail.example.org", "A"]).contains("192.0.2.33"));
    assert!(server.dig(&["u.example.org", "A"]).contains("NXDOMAIN"));
}

#[test]
fn an_update_at_a_secondary_is_passed_on_to_its_primary() {
    const OTHER: &str = "b3RoZXIgc2VjcmV0IG9mIHR3byBzZXJ2ZXJzIGFuZCBub2JvZHk=";
    let zone = format!("update: [\"key {KEY}\", \"key other.example\"], transfer: [loopback]");
    let primary = primary(&zone, &format!(", {{name: other.example, secret: {OTHER}}}"));
    let server = secondary(&primary.address().to_string(), "forward-updates: [loopback]");
    eventually("the zone at the secondary", || server.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    // Signed with a key that both know; with one that only the primary knows, over UDP and TCP.
    let send = |name: &str, key: &str, options: &[&str]| {
        let input = format!(
            "server 127.0.0.1 {}\nkey {key}\nzone example.org\nupdate add {name}.example.org 60 A 192.0.2.77\nsend\n",
            server.address().port()
        );
        let output = with_input("nsupdate", options, &input);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    let known = format!("hmac-sha256:{KEY} {SECRET}");
    let unknown = format!("hmac-sha256:other.example {OTHER}");
    for (name, key, options) in
        [("u1", &known, &[][..]), ("u2", &known, &["-v"]), ("u3", &unknown, &[]), ("u4", &unknown, &["-v"])]
    {
        let (is_done, said) = send(name, key, options);
        assert!(is_done, "{name}: {said}");
        assert!(primary.dig(&[&format!("{name}.example.org"), "A"]).contains("192.0.2.77"), "{name}");
        eventually("the update at the secondary", || {
            server.dig(&[&format!("{name}.example.org"), "A"]).contains("192.0.2.77")
        });
    }
    // It is the primary that decides, and what it says comes back.
    let input = format!(
        "server 127.0.0.1 {}\nzone example.org\nupdate add u5.example.org 60 A 192.0.2.5\nsend\n",
        server.address().port()
    );
    let output = with_input("nsupdate", &[], &input);
    assert!(String::from_utf8_lossy(&output.stderr).contains("REFUSED"), "{output:?}");
    // Without a primary nothing waits for long, and the zone is answered meanwhile.
    drop(primary);
    let (is_done, said) = send("u6", &known, &["-v"]);
    assert!(!is_done && said.contains("SERVFAIL"), "{said}");
    assert!(server.dig(&["u4.example.org", "A"]).contains("192.0.2.77"));
}

#[test]
fn an_update_that_servers_pass_to_and_fro_ends_when_it_comes_back() {
    let of =
        |other: &str| format!("{{name: example.org, primaries: [{other}], forward-updates: [loopback]}}");
    // Whose primary is to be the second one, once that has an address.
    let mut first = secondary("127.0.0.1:9", "forward-updates: [loopback]");
    let second = secondary(&first.address().to_string(), "forward-updates: [loopback]");
    first.write_config(&config(&of(&second.address().to_string()), ""));
    assert!(first.command(&["reload"]).status.success());
    let (is_done, said) = nsupdate(&first, "update add u.example.org 60 A 192.0.2.77");
    assert!(!is_done && said.contains("SERVFAIL"), "{said}");
    let line = first.wait_for_log("an update is not passed on");
    assert!(line.contains("it has come back from 127.0.0.1"), "{line}");
}

#[test]
fn updates_at_a_secondary_are_refused_unless_somebody_says_otherwise() {
    let primary = primary(&format!("update: [\"key {KEY}\"], transfer: [loopback]"), "");
    let server = secondary(&primary.address().to_string(), "forward-updates: [192.0.2.0/24]");
    eventually("the zone at the secondary", || server.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    let (is_done, said) = nsupdate(&server, "update add u.example.org 60 A 192.0.2.77");
    assert!(!is_done && said.contains("REFUSED"), "{said}");
    assert!(primary.dig(&["u.example.org", "A"]).contains("NXDOMAIN"));
}

#[test]
fn knsupdate_is_understood() {
    if !is_installed("knsupdate") {
        return;
    }
    let server = primary(&format!("update: [\"key {KEY}\"]"), "");
    let input = format!(
        "server 127.0.0.1 {}\nzone example.org\norigin example.org\nadd k 60 A 192.0.2.55\nsend\n",
        server.address().port()
    );
    let output = with_input("knsupdate", &["-y", &key_option("hmac-sha256")], &input);
    assert!(output.status.success(), "{output:?}");
    assert!(server.dig(&["k.example.org", "A"]).contains("192.0.2.55"));
}

#[test]
fn an_update_is_kept_to_what_its_key_may_change() {
    let zone = format!(
        "update: [\"key {KEY} below home.example.org types A,AAAA\", \"key {KEY} name acme.example.org types TXT\"]"
    );
    let server = primary(&zone, "");
    let check = |commands: &str, expect: Option<&str>| {
        let (is_done, said) = nsupdate(&server, commands);
        match expect {
            None => assert!(is_done, "{commands}: {said}"),
            Some(why) => assert!(!is_done && said.contains(why), "{commands}: {said}"),
        }
    };
    check("update add nas.home.example.org 60 A 192.0.2.5", None);
    check("update add acme.example.org 60 TXT token", None);
    check("update add home.example.org 60 A 192.0.2.5", Some("REFUSED"));
    check("update add nas.home.example.org 60 TXT x", Some("REFUSED"));
    check("update delete nas.home.example.org", Some("REFUSED"));
    check(
        "update add nas.home.example.org 60 A 192.0.2.6\nupdate delete mail.example.org A",
        Some("REFUSED"),
    );
    assert!(!server.dig(&["nas.home.example.org", "A"]).contains("192.0.2.6"), "half an update was done");
    let unsigned = format!(
        "server 127.0.0.1 {}\nzone example.org\nupdate add x.home.example.org 60 A 192.0.2.5\nsend\n",
        server.address().port()
    );
    let output = with_input("nsupdate", &[], &unsigned);
    assert!(String::from_utf8_lossy(&output.stderr).contains("REFUSED"), "{output:?}");
}

/// Runs a program with commands; returns whether it was content, and what it said.
type Run<'a> = &'a dyn Fn(&str) -> (bool, String);

#[test]
fn nothing_is_changed_unless_what_was_required_holds() {
    let server = primary(&format!("update: [\"key {KEY}\"]"), "");
    let port = server.address().port();
    let knsupdate = |commands: &str| {
        let input = format!("server 127.0.0.1 {port}\nzone example.org.\n{commands}\nsend\n");
        let output = with_input("knsupdate", &["-y", &key_option("hmac-sha256")], &input);
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), said)
    };
    let bind = |commands: &str| nsupdate(&server, commands);
    let tools: [(&str, Run<'_>); 2] = [("nsupdate", &bind), ("knsupdate", &knsupdate)];
    for (tool, run) in tools {
        if !is_installed(tool) {
            continue;
        }
        let check = |required: &str, expect: Option<&str>| {
            let name = format!("{tool}-tries.example.org.");
            let (is_done, said) = run(&format!("prereq {required}\nupdate add {name} 60 A 192.0.2.9"));
            let is_there = server.dig(&[&name, "A"]).contains("192.0.2.9");
            match expect {
                None => assert!(is_done && is_there, "{tool}, {required}: {said}"),
                Some(why) => {
                    assert!(!is_done && said.contains(why), "{tool}, {required}: {said}");
                    assert!(!is_there, "{tool}, {required}: it was done all the same");
                }
            }
            if is_there {
                let (is_done, said) = run(&format!("update delete {name} A"));
                assert!(is_done, "{said}");
            }
        };
        check("nxdomain nobody.example.org.", None);
        check("nxdomain mail.example.org.", Some("YXDOMAIN"));
        check("yxdomain mail.example.org.", None);
        check("yxdomain nobody.example.org.", Some("NXDOMAIN"));
        check("nxrrset mail.example.org. TXT", None);
        check("nxrrset mail.example.org. A", Some("YXRRSET"));
        check("yxrrset mail.example.org. AAAA", None);
        check("yxrrset mail.example.org. TXT", Some("NXRRSET"));
        check("yxrrset mail.example.org. A 192.0.2.2", None);
        check("yxrrset mail.example.org. A 192.0.2.3", Some("NXRRSET"));
    }
}

#[test]
fn a_zone_keeps_its_soa_and_its_servers() {
    let server = primary(&format!("update: [\"key {KEY}\"]"), "");
    let (is_done, said) = nsupdate(
        &server,
        "update delete example.org NS\nupdate delete example.org SOA\nupdate delete example.org MX",
    );
    assert!(is_done, "{said}");
    assert!(server.dig(&["example.org", "NS"]).contains("ns.example.org."));
    assert!(server.dig(&["+short", "example.org", "SOA"]).contains(" 11 "));
    assert!(!server.dig(&["example.org", "MX"]).contains("mail.example.org."));
    // RFC 2136 §3.4.2.2: an alias beside data is left out, and so is data beside an alias.
    let (is_done, said) = nsupdate(
        &server,
        "update add mail.example.org 60 CNAME ns.example.org\nupdate add alias.example.org 60 CNAME ns.example.org",
    );
    assert!(is_done, "{said}");
    assert!(server.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    let (is_done, said) = nsupdate(&server, "update add alias.example.org 60 A 192.0.2.9");
    assert!(is_done, "{said}");
    assert!(!server.dig(&["alias.example.org", "A"]).contains("192.0.2.9"));
    // The serial that an update sets is taken if it is newer.
    let (is_done, said) = nsupdate(
        &server,
        "update add example.org 3600 SOA ns.example.org. admin.example.org. 4000 7200 600 86400 300",
    );
    assert!(is_done, "{said}");
    assert!(server.dig(&["+short", "example.org", "SOA"]).contains(" 4000 "));
    let (is_done, said) = nsupdate(&server, "update add elsewhere.example.net 60 A 192.0.2.9");
    assert!(!is_done && said.contains("NOTZONE"), "{said}");
}
