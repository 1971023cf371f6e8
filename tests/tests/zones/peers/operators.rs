//! What the operator sees of zones of the running server, and has done to them.

use testkit::{Server, eventually};

use super::*;

#[test]
fn the_operator_has_zones_frozen_compared_and_taken_anew() {
    let server = primary(&format!("update: [\"key {KEY}\"], transfer: [loopback]"), "");
    let say = |arguments: &[&str]| {
        let output = server.command(arguments);
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    assert_eq!(say(&["zone", "diff", "example.org"]), (true, String::new()));
    assert!(say(&["zone", "freeze", "example.org"]).0);
    let (is_done, said) = nsupdate(&server, "update add new.example.org 60 A 192.0.2.99");
    assert!(!is_done && said.contains("REFUSED"), "{said}");
    assert!(say(&["zone", "status"]).1.contains("frozen"));
    assert!(say(&["zone", "thaw", "example.org"]).0);
    let (is_done, said) = nsupdate(&server, "update add new.example.org 60 A 192.0.2.99");
    assert!(is_done, "{said}");
    let (_, diff) = say(&["zone", "diff", "example.org"]);
    assert!(diff.contains("+ new.example.org. 60 IN A 192.0.2.99\n"), "{diff}");
    assert_eq!(diff.lines().count(), 3, "{diff}");
    let (is_fine, said) = say(&["zone", "retransfer", "example.org"]);
    assert!(!is_fine && said.contains("comes from no other server"), "{said}");
    let (is_fine, said) = say(&["zone", "status", "example.net"]);
    assert!(!is_fine && said.contains("there is no zone"), "{said}");
    let follower = secondary(&format!("\"{}\"", server.address()), "");
    eventually("the zone", || follower.dig(&["new.example.org", "A"]).contains("192.0.2.99"));
    assert!(follower.command(&["zone", "retransfer", "example.org"]).status.success());
    let mut follower = follower;
    follower.wait_for_log("transferred by AXFR");
}

/// Returns what `gannet zone print` prints.
fn printed(server: &Server, what: &[&str]) -> String {
    let output = server.command(&[&["zone", "print"], what].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn zones_that_are_nothing_but_files_of_a_directory_are_known() {
    let directory = directory_with_org();
    let all = directory.path().join("all");
    std::fs::create_dir(&all).expect("a writable directory");
    for name in ["one.example.zone", "two.example.zone"] {
        std::fs::write(all.join(name), ORG).expect("a writable directory");
    }
    std::fs::write(all.join("bad.example.zone"), "@ SOA\n").expect("a writable directory");
    let settings = config("{name: example.org, file: org}", "") + "zone-directories: [{path: all}]\n";
    let server = Server::start_in(directory, &settings);
    let run = |arguments: &[&str]| {
        let output = server.command(arguments);
        let said = [&output.stdout[..], &output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    };
    let (code, said) = run(&["zone", "status"]);
    let names: Vec<&str> =
        said.lines().filter_map(|line| line.split("  ").next()).filter(|it| !it.is_empty()).collect();
    assert_eq!(
        (code, &names[..]),
        (Some(0), &["bad.example.", "example.org.", "one.example.", "two.example."][..]),
        "{said}"
    );
    assert!(said.contains("bad.example.zone:1:") && said.contains("not served"), "{said}");
    let (code, said) = run(&["zone", "status", "one.example"]);
    assert!(code == Some(0) && said.starts_with("one.example.  primary  serial 10"), "{said}");
    assert_eq!(run(&["zone", "reload", "one.example"]).0, Some(0));
    let (code, said) = run(&["zone", "reload", "bad.example"]);
    assert!(code == Some(1) && said.contains("not taken: bad.example."), "{said}");
    let (code, said) = run(&["zone", "print", "one.example"]);
    assert!(code == Some(0) && said.contains("mail.one.example."), "{said}");
    // There is nothing that could be frozen, and that is what is said.
    let (code, said) = run(&["zone", "freeze", "one.example"]);
    assert!(code == Some(1) && said.contains("is nothing but a file"), "{said}");
    let (code, said) = run(&["zone", "status", "none.example"]);
    assert!(code == Some(1) && said.contains("there is no zone"), "{said}");
    let (_, said) = run(&["status"]);
    assert!(said.contains("3 served, 1 failing: bad.example."), "{said}");
}

#[test]
fn mistakes_in_a_file_that_is_loaded_are_a_line_each() {
    let server = primary("transfer: [loopback]", "");
    std::fs::write(
        server.directory().join("bad"),
        "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns\nns A 192.0.2.300\nx A y\n",
    )
    .expect("a writable directory");
    let output = server.command(&["zone", "load", "example.org", "bad"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && !said.contains("\\u{a}"), "{said}");
    assert!(said.lines().any(|line| line.contains("bad:4:6: error")), "{said}");
    assert!(said.lines().any(|line| line.contains("bad:5:5: error")), "{said}");
}

#[test]
fn the_version_that_is_served_is_printed_whole() {
    let server = primary(&format!("update: [\"key {KEY}\"], transfer: [loopback]"), "");
    let (is_done, said) = nsupdate(&server, "update add new.example.org 60 A 192.0.2.99");
    assert!(is_done, "{said}");
    // What is printed is what is transferred: the update is in it, and it does not end early.
    let as_given = records(&server.dig(&["example.org", "AXFR"]));
    let lines = records(&printed(&server, &["example.org"]));
    assert_eq!(lines, as_given);
    assert!(lines.contains(&"new.example.org. 60 IN A 192.0.2.99".to_owned()), "{lines:?}");
    // What it prints is a zone file.
    std::fs::write(server.directory().join("example.org"), printed(&server, &["example.org"]))
        .expect("a file");
    let again = printed(&server, &["./example.org"]);
    assert_eq!(records(&again), lines);
    assert_eq!(records(&printed(&server, &["--served", "example.org"])), lines);
    let follower = secondary(&format!("\"{}\"", server.address()), "");
    eventually("the zone", || follower.dig(&["new.example.org", "A"]).contains("192.0.2.99"));
    assert_eq!(records(&printed(&follower, &["example.org"])), lines);
    let output = server.command(&["zone", "print", "example.net"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("there is no zone \"example.net.\""), "{said}");
}

#[test]
fn a_zone_of_many_parts_is_printed_whole_and_one_that_is_not_loaded_not_at_all() {
    let directory = directory_with_org();
    let many = "$GENERATE 1-20000 host-$ A 10.${0,0,d}.0.1\n".replace("10.${0,0,d}.0.1", "192.0.2.7");
    let text = format!("$TTL 60\n@ SOA ns admin 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n{many}");
    std::fs::write(directory.path().join("many"), text).expect("a file");
    let zones = "{name: many.example, file: many}\n  - {name: example.net, primaries: [127.0.0.1:1]}";
    let server = Server::start_in(directory, &config(zones, ""));
    assert_eq!(records(&printed(&server, &["many.example"])).len(), 20_003);
    let output = server.command(&["zone", "print", "example.net"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("is not loaded"), "{said}");
}
