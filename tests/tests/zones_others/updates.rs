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
    let zone = format!("{{name: example.org, file: org, update: [\"key {KEY}\"], transfer: [loopback]}}");
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
    // A change of the file is merged: what the file says counts, the serial goes on.
    let file = server.directory().join("org");
    let text = std::fs::read_to_string(&file).expect("the file");
    std::fs::write(&file, text.replace("192.0.2.2\n", "192.0.2.22\n")).expect("writable");
    assert!(server.command(&["zone", "reload"]).status.success());
    eventually("the file's change", || server.dig(&["mail.example.org", "A"]).contains("192.0.2.22"));
    let soa = server.dig(&["+short", "example.org", "SOA"]);
    assert!(soa.contains(" 16 "), "{soa}");
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
