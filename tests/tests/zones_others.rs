//! Zones on their way to and from other servers: transfers, notifications, updates, with keys and without.

use testkit::{Other, Script, Server, Stub, eventually, forwarding, free_address, is_installed, with_input};

const SECRET: &str = "c2VjcmV0IG9mIHR3byBzZXJ2ZXJzIGFuZCBub2JvZHkgZWxzZQ==";
const KEY: &str = "xfr.example.org";

const ORG: &str = "$TTL 3600\n\
    @ SOA ns admin 10 7200 600 86400 300\n\
    @ NS ns\n\
    @ MX 10 mail\n\
    ns A 192.0.2.1\n\
    mail A 192.0.2.2\n\
    mail AAAA 2001:db8::2\n\
    *.wild TXT \"anything\" \"at all\"\n\
    sub NS ns.sub\n\
    ns.sub A 192.0.2.3\n\
    svc SRV 1 2 53 ns\n\
    $GENERATE 1-250 host-$ A 10.1.$.1\n";

/// Starts a server with the zone and these settings; `@DIRECTORY@` stands for its directory.
fn primary(zone: &str, more: &str) -> Server {
    let directory = tempfile::TempDir::new().expect("a temporary directory");

    std::fs::write(directory.path().join("org"), ORG).expect("a writable directory");
    Server::start_in(directory, &config(&format!("{{name: example.org, file: org, {zone}}}"), more))
}

fn config(zones: &str, more: &str) -> String {
    let stub_that_is_not_asked = Stub::start(Script::silent());
    let keys = format!("{{name: {KEY}, secret: {SECRET}}}");
    forwarding(
        &[&stub_that_is_not_asked],
        &format!("keys: [{keys}{more}]\nzones:\n  - {zones}\npolicy: {{main: [{{do: reject(refused)}}]}}\n"),
    )
}

fn secondary(primaries: &str, zone: &str) -> Server {
    let zone = format!("{{name: example.org, primaries: [{primaries}], {zone}}}");
    Server::start(&config(&zone, ""))
}

/// Returns the records in a transfer that `dig` printed, sorted, one space between words.
fn records(printed: &str) -> Vec<String> {
    let mut lines: Vec<String> = printed
        .lines()
        .filter(|line| !line.starts_with(';') && !line.trim().is_empty() && !line.contains("TSIG"))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Asks with `dig`, whatever it thinks of the answer.
fn dig_anyway(server: &Server, arguments: &[&str]) -> String {
    let port = server.address().port().to_string();
    let output = std::process::Command::new("dig")
        .args(["-r", "@127.0.0.1", "-p", &port, "+time=10", "+tries=1"])
        .args(arguments)
        .output()
        .expect("dig runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn key_option(algorithm: &str) -> String {
    format!("{algorithm}:{KEY}:{SECRET}")
}

const RECORDS: usize = 9 + 250 + 1;

#[test]
fn a_zone_is_given_to_those_who_may_have_it() {
    let server = primary("transfer: [\"key xfr.example.org\"]", "");
    let key = key_option("hmac-sha256");
    let all = records(&server.dig(&["-y", &key, "example.org", "AXFR"]));
    assert_eq!(all.len(), RECORDS, "{all:?}");
    assert!(all.contains(&"*.wild.example.org. 3600 IN TXT \"anything\" \"at all\"".to_owned()), "{all:?}");
    assert_eq!(records(&server.kdig(&["-y", &key, "example.org", "AXFR"])).len(), RECORDS);
    let refused = dig_anyway(&server, &["example.org", "AXFR"]);
    assert!(refused.contains("Transfer failed"), "{refused}");
    let wrong = format!("hmac-sha256:{KEY}:d3Jvbmc=");
    let not_believed = dig_anyway(&server, &["-y", &wrong, "example.org", "SOA"]);
    assert!(not_believed.contains("NOTAUTH") && not_believed.contains("BADSIG"), "{not_believed}");
    let unknown = format!("hmac-sha256:other:{SECRET}");
    let unknown = dig_anyway(&server, &["-y", &unknown, "example.org", "SOA"]);
    assert!(unknown.contains("NOTAUTH") && unknown.contains("BADKEY"), "{unknown}");
    // What is signed is answered signed; dig says so if the signature is wrong.
    let signed = server.dig(&["-y", &key, "mail.example.org", "A"]);
    assert!(signed.contains("192.0.2.2") && signed.contains("TSIG"), "{signed}");
    assert!(!signed.contains("verify"), "{signed}");
    let elsewhere = dig_anyway(&server, &["-y", &key, "example.net", "AXFR"]);
    assert!(elsewhere.contains("Transfer failed"), "{elsewhere}");
    let current = server.dig(&["-y", &key, "+tcp", "example.org", "IXFR=10"]);
    assert_eq!(records(&current).len(), 1, "{current}");
}

#[test]
fn every_algorithm_is_understood_by_others() {
    let words = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"];
    let keys: String = words
        .iter()
        .map(|word| format!(", {{name: {word}.key, algorithm: hmac-{word}, secret: {SECRET}}}"))
        .collect();
    let server = primary("transfer: [any]", &keys);
    for word in words {
        let key = format!("hmac-{word}:{word}.key:{SECRET}");
        let dig = server.dig(&["-y", &key, "example.org", "AXFR"]);
        assert!(records(&dig).len() == RECORDS && !dig.contains("verify"), "{word}: {dig}");
        let kdig = server.kdig(&["-y", &key, "example.org", "SOA"]);
        assert!(kdig.contains("admin.example.org.") && !kdig.contains("WARNING"), "{word}: {kdig}");
    }
}

fn bind_secondary(primary: std::net::SocketAddr) -> Other {
    let conf = format!(
        "options {{ directory \"@DIRECTORY@\"; listen-on port @PORT@ {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};\n\
         pid-file none; lock-file none; session-keyfile \"@DIRECTORY@/session.key\"; recursion no; notify no; dnssec-validation no; max-ixfr-ratio unlimited; }};\n\
         controls {{ }};\nkey \"{KEY}\" {{ algorithm hmac-sha256; secret \"{SECRET}\"; }};\n\
         zone \"example.org\" {{ type secondary; file \"org\"; masterfile-format text;\n\
         primaries {{ 127.0.0.1 port {} key {KEY}; }}; allow-notify {{ 127.0.0.1; }}; }};\n",
        primary.port()
    );
    let address = free_address();
    Other::start("named", &["-g", "-n", "1", "-c", "@DIRECTORY@/conf"], &[("conf", &conf)], address)
}

fn knot_secondary(primary: std::net::SocketAddr) -> Other {
    let conf = format!(
        "server:\n    rundir: @DIRECTORY@\n    listen: 127.0.0.1@@PORT@\ndatabase:\n    storage: @DIRECTORY@\n\
         key:\n  - id: {KEY}\n    algorithm: hmac-sha256\n    secret: {SECRET}\n\
         remote:\n  - id: primary\n    address: 127.0.0.1@{}\n    key: {KEY}\n\
         acl:\n  - id: notify\n    address: 127.0.0.1\n    action: notify\n\
         template:\n  - id: default\n    storage: @DIRECTORY@\n\
         zone:\n  - domain: example.org\n    master: primary\n    acl: notify\n",
        primary.port()
    );
    Other::start("knotd", &["-c", "@DIRECTORY@/conf"], &[("conf", &conf)], free_address())
}

fn nsd_secondary(primary: std::net::SocketAddr) -> Other {
    let conf = format!(
        "server:\n  ip-address: 127.0.0.1@@PORT@\n  username: \"\"\n  zonesdir: \"@DIRECTORY@\"\n  database: \"\"\n\
         \x20 pidfile: \"@DIRECTORY@/pid\"\n  xfrdfile: \"@DIRECTORY@/xfrd\"\n  xfrdir: \"@DIRECTORY@\"\n\
         \x20 zonelistfile: \"@DIRECTORY@/list\"\n  server-count: 1\n  verbosity: 2\n\
         remote-control:\n  control-enable: no\n\
         key:\n  name: {KEY}\n  algorithm: hmac-sha256\n  secret: \"{SECRET}\"\n\
         zone:\n  name: example.org\n  zonefile: org\n  allow-notify: 127.0.0.1 NOKEY\n\
         \x20 request-xfr: 127.0.0.1@{} {KEY}\n",
        primary.port()
    );
    Other::start("nsd", &["-d", "-c", "@DIRECTORY@/conf"], &[("conf", &conf)], free_address())
}

/// A server of ours that is primary of `example.org` and tells `secondary` of news, which may be updated with the key.
fn telling(reserved: std::net::SocketAddr) -> Server {
    let zone = format!("transfer: [\"key {KEY}\"], notify: [\"{reserved}\"], update: [\"key {KEY}\"]",);
    primary(&zone, "")
}

fn nsupdate(server: &Server, commands: &str) -> (bool, String) {
    let input = format!(
        "server 127.0.0.1 {}\nkey hmac-sha256:{KEY} {SECRET}\nzone example.org\n{commands}\nsend\n",
        server.address().port()
    );
    let output = with_input("nsupdate", &["-v"], &input);
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said)
}

/// Has `start` make a secondary of ours; it takes the zone over, and hears of an update.
fn check_secondary(program: &str, start: fn(std::net::SocketAddr) -> Other) {
    if !is_installed(program) {
        return;
    }
    // The secondary's address is known only when it runs: it is told by a reload.
    let server = telling(free_address());
    let other = start(server.address());
    let zone = format!(
        "{{name: example.org, file: org, transfer: [\"key {KEY}\"], notify: [\"{}\"], update: [\"key {KEY}\"]}}",
        other.address()
    );
    server.write_config(&config(&zone, ""));
    assert!(server.command(&["reload"]).status.success());
    eventually("the zone at the secondary", || other.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    assert!(other.dig(&["host-77.example.org", "A"]).contains("10.1.77.1"));
    let (is_done, said) = nsupdate(
        &server,
        "update delete host-77.example.org A\nupdate add new.example.org 60 A 192.0.2.99\n",
    );
    assert!(is_done, "{said}");
    eventually("the update at the secondary", || {
        other.dig(&["new.example.org", "A"]).contains("192.0.2.99")
            && other.dig(&["host-77.example.org", "A"]).contains("NXDOMAIN")
    });
}

#[test]
fn bind_follows_us() {
    check_secondary("named", bind_secondary);
}

#[test]
fn knot_follows_us() {
    check_secondary("knotd", knot_secondary);
}

#[test]
fn nsd_follows_us() {
    check_secondary("nsd", nsd_secondary);
}

const SERVED: &str = "$ORIGIN example.org.\n$TTL 3600\n\
    @ SOA ns admin 20 7200 600 86400 300\n@ NS ns\nns A 192.0.2.1\nmail A 192.0.2.2\nold A 192.0.2.3\n";

fn bind_primary() -> Other {
    let conf = format!(
        "options {{ directory \"@DIRECTORY@\"; listen-on port @PORT@ {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};\n\
         pid-file none; lock-file none; session-keyfile \"@DIRECTORY@/session.key\"; recursion no; notify no; dnssec-validation no; max-ixfr-ratio unlimited; }};\n\
         controls {{ }};\nkey \"{KEY}\" {{ algorithm hmac-sha256; secret \"{SECRET}\"; }};\n\
         zone \"example.org\" {{ type primary; file \"org\"; allow-transfer {{ key {KEY}; }}; allow-update {{ key {KEY}; }}; }};\n"
    );
    let files = [("conf", conf.as_str()), ("org", SERVED)];
    Other::start("named", &["-g", "-n", "1", "-c", "@DIRECTORY@/conf"], &files, free_address())
}

fn knot_primary() -> Other {
    let conf = format!(
        "server:\n    rundir: @DIRECTORY@\n    listen: 127.0.0.1@@PORT@\ndatabase:\n    storage: @DIRECTORY@\n\
         key:\n  - id: {KEY}\n    algorithm: hmac-sha256\n    secret: {SECRET}\n\
         acl:\n  - id: all\n    key: {KEY}\n    action: [transfer, update]\n\
         template:\n  - id: default\n    storage: @DIRECTORY@\n\
         zone:\n  - domain: example.org\n    file: org\n    acl: all\n"
    );
    let files = [("conf", conf.as_str()), ("org", SERVED)];
    Other::start("knotd", &["-c", "@DIRECTORY@/conf"], &files, free_address())
}

fn nsd_primary() -> Other {
    let conf = format!(
        "server:\n  ip-address: 127.0.0.1@@PORT@\n  username: \"\"\n  zonesdir: \"@DIRECTORY@\"\n  database: \"\"\n\
         \x20 pidfile: \"@DIRECTORY@/pid\"\n  xfrdfile: \"@DIRECTORY@/xfrd\"\n  xfrdir: \"@DIRECTORY@\"\n\
         \x20 zonelistfile: \"@DIRECTORY@/list\"\n  server-count: 1\nremote-control:\n  control-enable: no\n\
         key:\n  name: {KEY}\n  algorithm: hmac-sha256\n  secret: \"{SECRET}\"\n\
         zone:\n  name: example.org\n  zonefile: org\n  provide-xfr: 127.0.0.1 {KEY}\n"
    );
    let files = [("conf", conf.as_str()), ("org", SERVED)];
    Other::start("nsd", &["-d", "-c", "@DIRECTORY@/conf"], &files, free_address())
}

/// We take a zone over from `start`'s server; where that can be updated, the difference follows.
fn check_primary(program: &str, start: fn() -> Other, can_update: bool) {
    if !is_installed(program) {
        return;
    }
    let other = start();
    let server = secondary(&format!("\"{} key {KEY}\"", other.address()), "transfer: [loopback]");
    eventually("the zone here", || server.dig(&["old.example.org", "A"]).contains("192.0.2.3"));
    if !can_update {
        return;
    }
    let input = format!(
        "server 127.0.0.1 {}\nkey hmac-sha256:{KEY} {SECRET}\nzone example.org\n\
         update delete old.example.org A\nupdate add new.example.org 60 A 192.0.2.99\nsend\n",
        other.address().port()
    );
    let output = with_input("nsupdate", &["-v"], &input);
    assert!(output.status.success(), "{output:?}");
    assert!(server.command(&["zone", "reload", "example.org"]).status.success());
    eventually("the difference here", || {
        server.dig(&["new.example.org", "A"]).contains("192.0.2.99")
            && server.dig(&["old.example.org", "A"]).contains("NXDOMAIN")
    });
    // It came as a difference, and goes on as one.
    let next = server.dig(&["+tcp", "example.org", "IXFR=20"]);
    let lines = records(&next);
    assert!(lines.iter().any(|line| line.starts_with("old.example.org. ")), "{next}");
    assert!(!lines.iter().any(|line| line.starts_with("mail.example.org. ")), "{next}");
}

#[test]
fn we_follow_bind() {
    check_primary("named", bind_primary, true);
}

#[test]
fn we_follow_knot() {
    check_primary("knotd", knot_primary, true);
}

#[test]
fn we_follow_nsd() {
    check_primary("nsd", nsd_primary, false);
}

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

#[test]
fn a_secondary_serves_what_it_kept_before_its_primary_is_there() {
    let first = primary("transfer: [loopback]", "");
    let primaries = format!("\"{}\"", first.address());
    let server = secondary(&primaries, "");
    eventually("the zone", || server.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    let (_, _, directory) = server.stop_by("KILL");
    drop(first);
    let zone = format!("{{name: example.org, primaries: [{primaries}]}}");
    let server = Server::start_in(directory, &config(&zone, ""));
    assert!(server.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    eventually("the primary's absence is told", || {
        let status = server.command(&["zone", "status", "example.org"]);
        let said = String::from_utf8_lossy(&status.stdout).into_owned();
        said.contains("secondary  serial 10") && said.contains("expires in") && said.contains("refused")
    });
}

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

#[test]
fn a_catalog_says_which_zones_there_are() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("org"), ORG.split("$GENERATE").next().expect("text"))
        .expect("writable");
    std::fs::write(directory.path().join("net"), ORG.split("$GENERATE").next().expect("text"))
        .expect("writable");
    let zones = |more: &str| {
        format!(
            "{{name: catalog.example, catalog-role: producer, transfer: [loopback]}}\n  \
             - {{name: example.org, file: org, transfer: [loopback], catalog: catalog.example}}\n{more}"
        )
    };
    let server = Server::start_in(directory, &config(&zones(""), ""));
    let printed = server.dig(&["catalog.example", "AXFR"]);
    assert!(printed.contains("version.catalog.example.") && printed.contains("example.org."), "{printed}");
    let consumer = config(
        &format!(
            "{{name: catalog.example, catalog-role: consumer, primaries: [\"{}\"], transfer: [loopback]}}",
            server.address()
        ),
        "",
    );
    let follower = Server::start(&consumer);
    eventually("the member", || follower.dig(&["mail.example.org", "A"]).contains("192.0.2.2"));
    assert!(follower.dig(&["mail.example.net", "A"]).contains("REFUSED"));
    server.write_config(&config(
        &zones("  - {name: example.net, file: net, transfer: [loopback], catalog: catalog.example}\n"),
        "",
    ));
    assert!(server.command(&["reload"]).status.success());
    assert!(follower.command(&["zone", "reload", "catalog.example"]).status.success());
    eventually("the new member", || follower.dig(&["mail.example.net", "A"]).contains("192.0.2.2"));
    // Members are there after a restart, before anybody is asked.
    let (_, _, directory) = follower.stop_by("KILL");
    let follower = Server::start_in(directory, &consumer);
    assert!(follower.dig(&["mail.example.net", "A"]).contains("192.0.2.2"));
    server.write_config(&config(&zones(""), ""));
    assert!(server.command(&["reload"]).status.success());
    assert!(follower.command(&["zone", "reload", "catalog.example"]).status.success());
    eventually("the member gone", || follower.dig(&["mail.example.net", "A"]).contains("REFUSED"));
}
