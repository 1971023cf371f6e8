//! Response policy zones that come from other servers: whole, and by what has changed.

use tempfile::TempDir;
use testkit::{Page, Script, Server, Stub, Web, eventually, with_input};

const HEAD: &str =
    "$TTL 60\n@ SOA ns.example.net. admin.example.net. @SERIAL@ 7200 600 86400 300\n@ NS ns.example.net.\n";
/// So many that a change of a few is not one of all.
const MANY: &str = "$GENERATE 1-3000 bad$.example CNAME .\n";

/// Starts a primary of the zone with these rules.
fn primary(rules: &str) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("rpz"), HEAD.replace("@SERIAL@", "10") + rules)
        .expect("a writable directory");
    Server::start_in(
        directory,
        "server: {workers: 1, state-directory: \"@DIRECTORY@\"}\nlisten: [\"@ADDRESS@\"]\n\
         zones: [{name: rpz.test, file: rpz, transfer: any, update: [loopback]}]\n\
         policy: {main: [{do: reject(refused)}]}\n",
    )
}

/// Changes the zone at its primary.
fn change(primary: &Server, commands: &str) {
    let port = primary.address().port();
    let output = with_input(
        "nsupdate",
        &["-v"],
        &format!("server 127.0.0.1 {port}\nzone rpz.test\n{commands}\nsend\n"),
    );
    assert!(output.status.success(), "{}", testkit::said(&output));
}

fn settings(stub: &Stub, source: &str) -> String {
    testkit::forwarding(
        &[stub],
        &format!(
            "zones: [{{name: rpz.test, {source}, notify-from: [loopback], for-clients: false}}]\n\
             sets: {{rpz: {{lists: [{{zone: rpz.test}}]}}}}\n\
             policy:\n  main:\n    - blocklist(rpz)\n    - forward(default)\n    - blocklist(rpz)\n"
        ),
    )
}

fn from_primary(stub: &Stub, primary: &Server) -> Server {
    Server::start(&settings(stub, &format!("primaries: [\"{}\"]", primary.address())))
}

/// Says that there is another version.
fn notify(server: &Server) {
    let said = server.dig(&["+opcode=notify", "rpz.test", "SOA"]);
    assert!(said.contains("status: NOERROR"), "{said}");
}

fn is_blocked(server: &Server, qname: &str) -> bool {
    server.dig(&[qname, "A"]).contains("status: NXDOMAIN")
}

/// Waits until something holds whichever worker is asked: each takes a new version by itself.
fn eventually_everywhere(what: &str, holds: impl Fn() -> bool) {
    eventually(what, || (0..16).all(|_| holds()));
}

#[test]
fn a_policy_zone_is_transferred_and_then_only_what_has_changed() {
    let stub = Stub::start(Script::default());
    let rules = format!("{MANY}*.wild.example CNAME .\n24.0.2.0.192.rpz-ip CNAME .\n");
    let primary = primary(&rules);
    let server = from_primary(&stub, &primary);
    eventually("the policy", || is_blocked(&server, "bad7.example"));
    assert!(is_blocked(&server, "x.wild.example"));
    // What the stub says is within the prefix that is blocked.
    assert!(is_blocked(&server, "anything.example"));
    change(
        &primary,
        "update delete bad7.example.rpz.test CNAME\nupdate add new.example.rpz.test 60 CNAME .\n\
         update add x.wild.example.rpz.test 60 CNAME rpz-passthru.\n\
         update delete 24.0.2.0.192.rpz-ip.rpz.test CNAME\n\
         update add walled.example.rpz.test 60 A 198.51.100.7",
    );
    notify(&server);
    eventually_everywhere("the difference", || is_blocked(&server, "new.example"));
    assert_eq!(server.dig_short(&["bad7.example", "A"]), ["192.0.2.1"]);
    assert_eq!(server.dig_short(&["x.wild.example", "A"]), ["192.0.2.1"]);
    assert_eq!(server.dig_short(&["walled.example", "A"]), ["198.51.100.7"]);
    assert!(is_blocked(&server, "bad8.example") && is_blocked(&server, "y.wild.example"));
    // Back again, and a wildcard above all: from the same version that the first came from.
    change(
        &primary,
        "update add bad7.example.rpz.test 60 CNAME .\nupdate add *.example.rpz.test 60 CNAME .\n\
         update delete new.example.rpz.test CNAME",
    );
    notify(&server);
    eventually_everywhere("the second difference", || is_blocked(&server, "bad7.example"));
    assert!(is_blocked(&server, "other.example") && is_blocked(&server, "new.example"));
    assert_eq!(server.dig_short(&["z.bad8.example", "A"]), ["192.0.2.1"], "the name above it exists");
    assert_eq!(server.dig_short(&["x.wild.example", "A"]), ["192.0.2.1"]);
    let (_, log, _) = server.stop();
    let count = |what: &str| log.iter().filter(|line| line.contains(what)).count();
    assert_eq!((count("transferred by AXFR"), count("transferred by IXFR")), (1, 2), "{log:#?}");
}

#[test]
fn a_policy_zone_is_transferred_with_a_key_and_never_without_the_right_one() {
    let stub = Stub::start(Script::default());
    let key =
        |secret: &str| format!("keys: [{{name: rpz-key, algorithm: hmac-sha256, secret: \"{secret}\"}}]\n");
    let (right, wrong) = ("c2VjcmV0IG9mIHRoZSBwb2xpY3k=", "YW5vdGhlciBzZWNyZXQgb2YgaXQ=");
    let directory = TempDir::new().expect("a temporary directory");
    let zone = HEAD.replace("@SERIAL@", "10") + "bad.example CNAME .\n";
    std::fs::write(directory.path().join("rpz"), zone).expect("a writable directory");
    let primary = Server::start_in(
        directory,
        &format!(
            "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n{}\
             zones: [{{name: rpz.test, file: rpz, transfer: \"key rpz-key\"}}]\n\
             policy: {{main: [{{do: reject(refused)}}]}}\n",
            key(right)
        ),
    );
    let secondary = |keys: &str, suffix: &str| {
        let source = format!("primaries: [\"{}{suffix}\"]", primary.address());
        Server::start(&(keys.to_owned() + &settings(&stub, &source)))
    };
    let server = secondary(&key(right), " key rpz-key");
    eventually("the policy", || is_blocked(&server, "bad.example"));
    for (keys, suffix) in [(key(wrong), " key rpz-key"), (String::new(), "")] {
        let mut server = secondary(&keys, suffix);
        // It says why, and answers as without the policy.
        server.wait_for_log("rpz.test");
        assert!(!is_blocked(&server, "bad.example"));
        assert_eq!(server.dig_short(&["bad.example", "A"]), ["192.0.2.1"]);
    }
}

#[test]
fn what_was_kept_of_a_policy_zone_counts_from_the_first_query_after_a_restart() {
    let stub = Stub::start(Script::default());
    let primary = primary(MANY);
    let server = from_primary(&stub, &primary);
    eventually("the policy", || is_blocked(&server, "bad7.example"));
    let (_, _, directory) = server.stop();
    let address = primary.address();
    drop(primary);
    let server = Server::start_in(directory, &settings(&stub, &format!("primaries: [\"{address}\"]")));
    assert!(is_blocked(&server, "bad7.example"));
    assert_eq!(server.dig_short(&["good.example", "A"]), ["192.0.2.1"]);
}

#[test]
fn a_policy_zone_is_a_file_on_a_web_server() {
    let stub = Stub::start(Script::default());
    let page = |serial: u32, rules: &str| Page::found(HEAD.replace("@SERIAL@", &serial.to_string()) + rules);
    let web = Web::start(move |_| page(7, "bad.example CNAME .\n"));
    let server = Server::start(&settings(&stub, &format!("urls: [\"{}\"]", web.url("/rpz"))));
    eventually("the policy", || is_blocked(&server, "bad.example"));
    // Older, and no zone at all: the last good version stays.
    for page in [page(6, "worse.example CNAME .\n"), Page::found("<html>not found</html>\n")] {
        let before = web.heard().len();
        web.behave(move |_| page.clone());
        eventually("it is asked again", || {
            notify(&server);
            web.heard().len() > before
        });
        assert!(is_blocked(&server, "bad.example") && !is_blocked(&server, "worse.example"));
    }
    web.behave(move |_| page(8, "worse.example CNAME .\n"));
    eventually("the next version", || {
        notify(&server);
        is_blocked(&server, "worse.example")
    });
    assert!(!is_blocked(&server, "bad.example"));
}

#[test]
fn what_a_lying_primary_says_does_no_harm() {
    let stub = Stub::start(Script::default());
    let web = Web::start(|_| {
        Page::found(
            HEAD.replace("@SERIAL@", "1")
                + "loop.example CNAME pool.example.\npool.example CNAME loop.example.\n\
                   self.example CNAME self.example.\n*.deep.example CNAME *.deep.example.\n\
                   outside.test. CNAME .\n1.2.3.rpz-ip CNAME .\nrpz-nsdname CNAME .\nbad.example CNAME .\n",
        )
    });
    let server = Server::start(&settings(&stub, &format!("urls: [\"{}\"]", web.url("/rpz"))));
    eventually("the policy", || is_blocked(&server, "bad.example"));
    for qname in ["loop.example", "x.deep.example"] {
        // However it ends, it ends.
        assert!(server.dig(&[qname, "A"]).contains("status: "), "{qname}");
    }
    assert_eq!(server.dig_short(&["self.example", "A"]), ["192.0.2.1"]);
    assert_eq!(server.dig_short(&["outside.test", "A"]), ["192.0.2.1"]);
    assert!(is_blocked(&server, "bad.example"));
}

#[test]
fn a_set_of_a_zone_that_is_not_there_or_does_not_come_from_elsewhere_is_a_mistake() {
    let directory = TempDir::new().expect("a temporary directory");
    for (zones, why) in [
        ("", "there is no zone \"rpz.test.\" in \"zones\""),
        ("zones: [{name: rpz.test, file: rpz}]\n", "does not come from other servers"),
    ] {
        let text = format!(
            "{zones}sets: {{rpz: {{lists: [{{zone: rpz.test}}]}}}}\npolicy: {{main: [blocklist(rpz)]}}\n"
        );
        std::fs::write(directory.path().join("gannet.yaml"), text).expect("a writable directory");
        let output = testkit::program(directory.path()).args(["check", "gannet.yaml"]).output();
        let said = testkit::said(&output.expect("gannet runs"));
        assert!(said.contains(why), "{said}");
    }
}
