//! Zones that the built program serves, as clients and operators meet them.

use testkit::{Script, Server, Stub, eventually, forwarding};

const ORG: &str = "$TTL 3600\n\
    @ SOA ns admin 1 7200 600 86400 300\n\
    @ NS ns\n\
    @ MX 10 mail\n\
    ns A 192.0.2.1\n\
    mail A 192.0.2.2\n\
    www CNAME web.example.net.\n\
    *.wild TXT \"anything\"\n\
    sub NS ns.sub\n\
    ns.sub A 192.0.2.3\n\
    $INCLUDE more\n";
const MORE: &str = "included A 192.0.2.4\n$GENERATE 1-3 host-$ A 192.0.2.${100}\n";
const NET: &str =
    "$TTL 60\n@ SOA ns admin 7 7200 600 86400 300\n@ NS ns\nns A 192.0.2.11\nweb A 192.0.2.12\n";
const BROKEN: &str =
    "$TTL 60\n@ SOA ns admin 8 7200 600 86400 300\n@ NS ns\nns A 192.0.2.300\nweb AX 192.0.2.13\n";

fn config() -> String {
    let stub_that_is_not_asked = Stub::start(Script::silent());
    forwarding(
        &[&stub_that_is_not_asked],
        "zones:\n  - {name: example.org, file: example.org.zone}\n  - {name: example.net, file: net}\npolicy: {main: [{do: reject(refused)}]}\n",
    )
}

fn serving(files: &[(&str, &str)]) -> Server {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).expect("a writable directory");
    }
    Server::start_in(directory, &config())
}

#[track_caller]
fn check(server: &Server, question: &[&str], expect: &[&str], not: &[&str]) {
    let said = server.dig(question);
    // dig puts tabs and spaces between the words.
    let said = said
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n");
    for expect in expect {
        assert!(said.contains(expect), "expected {expect:?} for {question:?} in:\n{said}");
    }
    for not in not {
        assert!(!said.contains(not), "did not expect {not:?} for {question:?} in:\n{said}");
    }
}

const FILES: [(&str, &str); 3] = [("example.org.zone", ORG), ("more", MORE), ("net", NET)];

#[test]
fn zones_are_answered_with_authority() {
    let server = serving(&FILES);
    check(
        &server,
        &["ns.example.org", "A"],
        &["status: NOERROR", "flags: qr aa rd;", "ns.example.org. 3600 IN A 192.0.2.1"],
        &[],
    );
    check(
        &server,
        &["example.org", "MX"],
        &["10 mail.example.org.", "mail.example.org. 3600 IN A 192.0.2.2"],
        &[],
    );
    check(
        &server,
        &["none.example.org", "A"],
        &["status: NXDOMAIN", "flags: qr aa", "example.org. 300 IN SOA"],
        &[],
    );
    check(
        &server,
        &["www.example.org", "A"],
        &["www.example.org. 3600 IN CNAME web.example.net.", "web.example.net. 60 IN A 192.0.2.12"],
        &[],
    );
    check(
        &server,
        &["a.b.wild.example.org", "TXT"],
        &["a.b.wild.example.org. 3600 IN TXT \"anything\""],
        &[],
    );
    check(
        &server,
        &["x.sub.example.org", "A"],
        &[
            "status: NOERROR",
            "sub.example.org. 3600 IN NS ns.sub.example.org.",
            "ns.sub.example.org. 3600 IN A 192.0.2.3",
        ],
        &["flags: qr aa"],
    );
    check(&server, &["included.example.org", "A"], &["192.0.2.4"], &[]);
    check(&server, &["host-2.example.org", "A"], &["192.0.2.102"], &[]);
    check(&server, &["+tcp", "ns.example.org", "A"], &["flags: qr aa", "192.0.2.1"], &[]);
    // What is not ours is the policy's.
    check(&server, &["example.com", "A"], &["status: REFUSED"], &["flags: qr aa"]);
}

#[test]
fn a_changed_zone_is_served_after_a_reload() {
    let server = serving(&FILES);
    check(&server, &["web.example.net", "A"], &["192.0.2.12"], &[]);
    std::fs::write(
        server.directory().join("net"),
        NET.replace("192.0.2.12", "192.0.2.99").replace(" 7 ", " 9 "),
    )
    .expect("writable");
    let reloaded = server.command(&["reload"]);
    assert!(reloaded.status.success(), "{reloaded:?}");
    eventually("the new address", || server.dig(&["web.example.net", "A"]).contains("192.0.2.99"));
    check(&server, &["ns.example.org", "A"], &["192.0.2.1"], &[]);
}

#[test]
fn a_zone_with_mistakes_leaves_the_one_that_is_served_in_place() {
    let server = serving(&FILES);
    std::fs::write(server.directory().join("net"), BROKEN).expect("writable");
    std::fs::write(server.directory().join("more"), "included A 192.0.2.44\n").expect("writable");
    let reloaded = server.command(&["reload"]);
    let said =
        String::from_utf8_lossy(&reloaded.stdout).into_owned() + &String::from_utf8_lossy(&reloaded.stderr);
    // A script sees that not everything is as it is written.
    assert_eq!(reloaded.status.code(), Some(1), "{said}");
    for expect in [
        "net:4:6",
        "\"192.0.2.300\" cannot stand here",
        "net:5:5",
        "zone \"example.net.\" is not loaded",
        "serial 7 is still served",
    ] {
        assert!(said.contains(expect), "expected {expect:?} in:\n{said}");
    }
    // The other zone is the new one.
    eventually("the new address", || server.dig(&["included.example.org", "A"]).contains("192.0.2.44"));
    check(&server, &["web.example.net", "A"], &["status: NOERROR", "192.0.2.12"], &[]);
    check(&server, &["example.net", "SOA"], &[" 7 7200"], &[]);
    // The older version is served, and still it is the first that an operator sees, with file and
    // reason.
    let status = server.command(&["zone", "status"]);
    let said = String::from_utf8_lossy(&status.stdout).into_owned();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("example.net.  primary  serial 7"), "{said}");
    assert!(lines[1].contains("file ") && lines[1].ends_with("/net"), "{said}");
    assert!(lines[2].contains("net:4:6: error: \"192.0.2.300\" cannot stand here"), "{said}");
    assert!(lines[3].starts_with("example.org.  primary  serial 1"), "{said}");
    let status = server.command(&["status"]);
    let said = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(said.contains("2 served, 1 failing: example.net."), "{said}");
    // The same for zones alone; a zone with which nothing is wrong is no reason for a complaint.
    for (arguments, code) in [
        (&["zone", "reload"][..], 1),
        (&["zone", "reload", "example.net"], 1),
        (&["zone", "reload", "example.org"], 0),
    ] {
        assert_eq!(server.command(arguments).status.code(), Some(code), "{arguments:?}");
    }
    std::fs::write(server.directory().join("net"), NET).expect("writable");
    assert_eq!(server.command(&["reload"]).status.code(), Some(0));
    let status = server.command(&["status"]);
    let said = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(said.contains("2 served\n"), "{said}");
}

#[test]
fn a_zone_that_was_never_loaded_fails_and_the_others_are_served() {
    let server = serving(&[("example.org.zone", ORG), ("more", MORE), ("net", BROKEN)]);
    check(&server, &["web.example.net", "A"], &["status: SERVFAIL", "flags: qr aa"], &[]);
    check(&server, &["ns.example.org", "A"], &["status: NOERROR", "192.0.2.1"], &[]);
}

#[test]
fn zone_files_are_checked_and_printed_without_a_server() {
    let server = serving(&FILES);
    let directory = server.directory();
    let run = |arguments: &[&str]| {
        let output =
            testkit::program(directory).args(arguments).current_dir(directory).output().expect("gannet runs");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (is_fine, said) = run(&["zone", "check", "example.org.zone"]);
    assert!(
        is_fine
            && said.contains("no mistakes found")
            && said.contains("zone example.org.: serial 1, 12 names, 13 records, 1 zone cuts, not signed"),
        "{said}"
    );
    std::fs::write(directory.join("broken"), BROKEN).expect("writable");
    let (is_fine, said) = run(&["zone", "check", "broken", "--name", "example.net"]);
    assert!(
        !is_fine
            && said
                .contains("broken:4:6: error: \"192.0.2.300\" cannot stand here: expected an IPv4 address")
            && said.contains("2 errors"),
        "{said}"
    );
    let (is_fine, said) = run(&["zone", "print", "net", "--name", "example.net"]);
    assert!(
        is_fine
            && said.starts_with(
                "example.net. 60 IN SOA ns.example.net. admin.example.net. 7 7200 600 86400 300\n"
            ),
        "{said}"
    );
    assert_eq!(said.lines().count(), 4);
}
