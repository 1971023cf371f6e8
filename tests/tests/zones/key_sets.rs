//! Zones in JSON that bring the keys they are signed with, as erldns has them: what is served
//! validates, and no key is shown.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use testkit::{Server, contains, ds_of_keys, eventually, lacks, said, write_anchor};

const SECRET: &str = "-----BEGIN PRIVATE KEY-----";

#[track_caller]
fn gannet(directory: &Path, arguments: &[&str]) -> String {
    let output = testkit::program(directory).args(arguments).output().expect("gannet runs");
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    said(&output)
}

/// Makes a KSK and a ZSK of a zone; returns them as a list of key sets.
fn key_sets(directory: &Path, zone: &str, algorithm: &str) -> String {
    let keys = format!("{zone}-{algorithm}");
    for role in ["ksk", "zsk"] {
        let arguments = ["zone", "keys", "generate", zone, "--keys", &keys, "-a", algorithm, "--role", role];
        gannet(directory, &arguments);
    }
    gannet(directory, &["zone", "keys", "export", zone, "--keys", &keys, "--form", "erldns"])
}

fn record(owner: &str, rtype: &str, data: &str) -> String {
    format!(r#"{{"name": "{owner}", "type": "{rtype}", "ttl": 300, "data": {{{data}}}}}"#)
}

/// Returns a zone in JSON.
fn zone(apex: &str, serial: u32, keys: &str) -> String {
    let soa = format!(
        r#""mname": "ns.{apex}", "rname": "admin.{apex}", "serial": {serial}, "refresh": 7200, "retry": 600, "expire": 86400, "minimum": 60"#
    );
    let records = [
        record(apex, "SOA", &soa),
        record(apex, "NS", &format!(r#""dname": "ns.{apex}""#)),
        record(&format!("ns.{apex}"), "A", r#""ip": "192.0.2.1""#),
        record(&format!("www.{apex}"), "A", r#""ip": "192.0.2.3""#),
        record(&format!("alias.{apex}"), "CNAME", &format!(r#""dname": "www.{apex}""#)),
        record(&format!("*.wild.{apex}"), "TXT", r#""txts": ["any"]"#),
        record(&format!("a.b.deep.{apex}"), "TXT", r#""txts": ["deep"]"#),
        record(&format!("open.{apex}"), "NS", r#""dname": "ns.example.net""#),
    ];
    format!("{{\"name\": \"{apex}\", \"records\": [\n{}\n],\n\"keys\": {keys}}}", records.join(",\n"))
}

fn settings(more: &str) -> String {
    format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n{more}\n\
         policy: {{main: [{{do: reject(refused)}}]}}\n"
    )
}

/// Asks with BIND's validator, which trusts the DS of the zone's own KSK.
fn delv(server: &Server, zone: &str, name: &str, rtype: &str) -> String {
    let keys = server.dig(&["+noall", "+answer", zone, "DNSKEY"]);
    let ksks: Vec<&str> = keys.lines().filter(|line| line.contains("DNSKEY\t257 ")).collect();
    let ds = ds_of_keys(server.directory(), zone, &ksks.join("\n")).expect("DS records");
    write_anchor(server.directory(), zone, &ds);
    server.delv(zone, name, rtype)
}

const POSITIVE: &str = "; fully validated";
const NEGATIVE: &str = "; negative response, fully validated";

#[track_caller]
fn judge(server: &Server, zone: &str) {
    for (name, rtype, expect) in [
        ("", "SOA", POSITIVE),
        ("", "DNSKEY", POSITIVE),
        ("www.", "A", POSITIVE),
        ("alias.", "A", POSITIVE),
        ("www.", "TXT", NEGATIVE),
        ("none.", "A", NEGATIVE),
        ("b.deep.", "A", NEGATIVE),
        ("x.wild.", "TXT", POSITIVE),
        ("x.wild.", "A", NEGATIVE),
        ("open.", "DS", NEGATIVE),
    ] {
        let answer = delv(server, zone, &format!("{name}{zone}"), rtype);
        assert!(answer.contains(expect), "{name}{zone} {rtype}:\n{answer}");
    }
}

/// The log, and everything that the server says of a zone, has no private key in it.
#[track_caller]
fn shows_no_key(server: &mut Server, zones: &[&str], keys: &[&str]) {
    let mut all = server.log().join("\n");
    for zone in zones {
        for arguments in [&["zone", "status", zone][..], &["zone", "print", zone], &["zone", "diff", zone]] {
            all += &said(&server.command(arguments));
        }
    }
    all += &said(&server.command(&["status", "--json"]));
    lacks(&all, "PRIVATE KEY");
    for keys in keys {
        // The second line of a PEM is the key's own octets.
        for pem in keys.split(SECRET).skip(1) {
            let octets = pem.split("\\n").nth(1).expect("a line of Base64");
            lacks(&all, octets);
        }
    }
}

#[test]
fn zones_that_bring_keys_are_served_signed_with_them() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path().to_owned();
    let zones = [("example.org", "13"), ("example.net", "15"), ("example.com", "8"), ("448.example", "16")];
    let keys: Vec<String> = zones.iter().map(|(apex, algorithm)| key_sets(&at, apex, algorithm)).collect();
    std::fs::create_dir(at.join("zones")).expect("writable");
    let two = format!("[{},\n{}]", zone("example.org", 7, &keys[0]), zone("example.net", 7, &keys[1]));
    std::fs::write(at.join("zones/two.json"), two).expect("writable");
    std::fs::write(at.join("zones/com.json"), format!("[{}]", zone("example.com", 7, &keys[2])))
        .expect("writable");
    // Of a file of its own, too.
    std::fs::write(at.join("448.json"), format!("[{}]", zone("448.example", 7, &keys[3]))).expect("writable");
    let more = "zone-directories: [{path: zones}]\nzones: [{name: 448.example, file: 448.json}]";
    let mut server = Server::start_in(directory, &settings(more));
    for (apex, algorithm) in zones {
        judge(&server, apex);
        let printed = server.dig(&["+dnssec", &format!("www.{apex}"), "A"]);
        contains(&printed, &format!("RRSIG\tA {algorithm} 3 300 "));
        // Quick keys prove each absence for itself, as erldns does; slow ones have proved it
        // before.
        let absent = server.dig(&["+dnssec", &format!("none.{apex}"), "A"]);
        match algorithm {
            "13" | "15" => {
                contains(&absent, "status: NOERROR");
                let words = absent.split_whitespace().collect::<Vec<_>>().join(" ");
                contains(&words, &format!("none.{apex}. 60 IN NSEC \\000.none.{apex}. RRSIG NSEC TYPE128"));
            }
            _ => contains(&absent, "status: NXDOMAIN"),
        }
        // Who did not ask for signatures gets none.
        let plain = server.dig(&[&format!("none.{apex}"), "A"]);
        contains(&plain, "status: NXDOMAIN");
        lacks(&plain, "RRSIG");
    }
    let names: Vec<&str> = zones.iter().map(|(apex, _)| *apex).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    shows_no_key(&mut server, &names, &keys);
}

#[test]
fn several_key_sets_sign_each_for_its_time() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path().to_owned();
    let one = key_sets(&at, "example.org", "13");
    let other = key_sets(&at, "example.org", "15");
    let bare = |set: &str| set.trim().trim_matches(['[', ']']).to_owned();
    let of_2040 = |set: &str| {
        let (start, rest) = set.split_once("\"until\": \"").expect("a time");
        let (_, end) = rest.split_once('"').expect("its end");
        format!("{start}\"until\": \"2040-01-02T03:04:05Z\"{end}")
    };
    let keys = format!("[{}, {}]", bare(&one), bare(&of_2040(&other)));
    std::fs::write(at.join("org.json"), format!("[{}]", zone("example.org", 7, &keys))).expect("writable");
    let server = Server::start_in(directory, &settings("zones: [{name: example.org, file: org.json}]"));
    judge(&server, "example.org");
    for name in ["www.example.org", "none.example.org"] {
        let printed = server.dig(&["+dnssec", name, "A"]);
        contains(&printed, " 15 3 ");
        contains(&printed, "20400102030405");
        contains(&printed, " 13 3 ");
    }
}

#[test]
fn a_zone_that_others_take_over_brings_its_proofs() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path().to_owned();
    let keys = key_sets(&at, "example.org", "13");
    std::fs::write(at.join("org.json"), format!("[{}]", zone("example.org", 7, &keys))).expect("writable");
    let check = |directory: TempDir, more: &str, proof: &str| {
        let more = format!("zones: [{{name: example.org, file: org.json, transfer: [loopback]{more}}}]");
        let mut server = Server::start_in(directory, &settings(&more));
        judge(&server, "example.org");
        let transfer = server.dig(&["+onesoa", "example.org", "AXFR"]);
        let words = transfer.split_whitespace().collect::<Vec<_>>().join(" ");
        contains(&words, &format!(" IN {proof} "));
        std::fs::write(server.directory().join("axfr"), &transfer).expect("writable");
        let output = Command::new("ldns-verify-zone")
            .args(["-V", "1", "axfr"])
            .current_dir(server.directory())
            .output()
            .expect("ldns-verify-zone runs");
        assert!(output.status.success(), "{}\n{transfer}", said(&output));
        shows_no_key(&mut server, &["example.org"], &[&keys]);
        server.stop().2
    };
    let directory = check(directory, "", "NSEC");
    drop(check(directory, ", key-sets-denial: nsec3", "NSEC3"));
}

#[test]
fn a_zone_with_a_bad_key_stays_as_it_was_and_the_key_is_not_shown() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path().to_owned();
    let keys = key_sets(&at, "example.org", "13");
    let write = |text: &str| std::fs::write(at.join("org.json"), text).expect("writable");
    let good = format!("[{}]", zone("example.org", 7, &keys));
    write(&good);
    let check = |text: &str, place: &str, message: &str| {
        write(text);
        let arguments = ["zone", "check", "org.json", "--name", "example.org"];
        let output = testkit::program(&at).args(arguments).output().expect("gannet runs");
        let said = said(&output);
        assert!(!output.status.success(), "{said}");
        contains(&said, message);
        contains(&said, place);
        lacks(&said, keys.split("\\n").nth(1).expect("a line of Base64"));
    };
    let broken = good.replacen("BEGIN PRIVATE KEY", "BEGIN PUBLIC KEY", 1).replacen(" 7,", " 8,", 1);
    check(
        &good.replacen("\"zsk_alg\": 13", "\"zsk_alg\": 7", 1),
        "8, 10, 13, 14, 15 or 16",
        "\"7\" cannot stand",
    );
    check(&good.replacen("BEGIN PRIVATE KEY", "BEGIN PUBLIC KEY", 1), "\"ksk\"", "a private key");
    // All on one line, and something else is wrong with it.
    check(&good.replace('\n', " ").replacen("192.0.2.3", "192.0.2.300", 1), "192.0.2.300", "an IPv4 address");
    // Old algorithms of two keys, that no validator would take.
    let mixed = good.replacen("\"until\": \"", "\"until\": \"1990-01-01T00:00:00Z\", \"x\": \"", 1);
    check(&mixed, "1990-01-01", "after that of");
    write(&good);
    gannet(&at, &["zone", "check", "org.json", "--name", "example.org"]);
    let mut server = Server::start_in(directory, &settings("zones: [{name: example.org, file: org.json}]"));
    judge(&server, "example.org");
    write(&broken);
    let reloaded = said(&server.command(&["reload"]));
    contains(&reloaded, "serial 7 is still served");
    judge(&server, "example.org");
    shows_no_key(&mut server, &["example.org"], &[&keys]);
    // A server that never had it does not serve it without signatures: who saw it so would remember
    // that.
    let (_, _, directory) = server.stop();
    let mut server = Server::start_in(directory, &settings("zones: [{name: example.org, file: org.json}]"));
    contains(&server.dig(&["www.example.org", "A"]), "status: SERVFAIL");
    shows_no_key(&mut server, &["example.org"], &[&keys]);
    write(&good);
    assert!(server.command(&["reload"]).status.success());
    judge(&server, "example.org");
}

#[test]
fn the_operator_adds_and_loads_zones_that_bring_keys() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path().to_owned();
    let keys = key_sets(&at, "example.org", "13");
    let write = |file: &str, serial: u32| {
        let text = format!("[{}]", zone("example.org", serial, &keys));
        std::fs::write(at.join(file), text).expect("writable");
    };
    write("org.json", 7);
    write("next.json", 8);
    let config = settings("zone-templates: {none: {}}");
    let server = Server::start_in(directory, &config);
    let file = at.join("org.json").display().to_string();
    let added = server.command(&["zone", "add", "example.org", "--with", &format!("file: {file}")]);
    assert!(added.status.success(), "{}", said(&added));
    judge(&server, "example.org");
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &config);
    judge(&server, "example.org");
    assert!(server.command(&["zone", "remove", "example.org"]).status.success());
    // Without a file: what is given is kept as it is signed, without keys.
    let added = server.command(&["zone", "add", "example.org"]);
    assert!(added.status.success(), "{}", said(&added));
    for (file, serial) in [("org.json", 7), ("next.json", 8)] {
        let path = at.join(file).display().to_string();
        let loaded = server.command(&["zone", "load", "example.org", &path]);
        contains(&said(&loaded), &format!("has serial {serial}"));
        judge(&server, "example.org");
    }
    let again = server.command(&["zone", "load", "example.org", &file]);
    assert!(!again.status.success());
    contains(&said(&again), "is not newer");
    let (_, _, directory) = server.stop_by("KILL");
    let mut server = Server::start_in(directory, &config);
    judge(&server, "example.org");
    // It is still known that nobody can sign what changes in it.
    let again = server.command(&["zone", "load", "example.org", &file]);
    assert!(!again.status.success());
    contains(&said(&again), "is not newer");
    shows_no_key(&mut server, &["example.org"], &[&keys]);
    let kept = std::fs::read_dir(server.directory()).expect("a directory");
    let kept = kept.filter_map(Result::ok).filter(|entry| entry.path().is_dir());
    for entry in kept.filter(|entry| !entry.file_name().to_string_lossy().starts_with("example.org-")) {
        for file in std::fs::read_dir(entry.path()).expect("a directory").filter_map(Result::ok) {
            let octets = std::fs::read(file.path()).unwrap_or_default();
            lacks(&String::from_utf8_lossy(&octets), "PRIVATE KEY");
        }
    }
}

/// Returns key sets that end in so many days.
fn ending_in(keys: &str, days: u32) -> String {
    let days = format!("+{days} days");
    let date =
        Command::new("date").args(["-u", "-d", &days, "+%Y-%m-%dT%H:%M:%SZ"]).output().expect("date runs");
    let until = String::from_utf8_lossy(&date.stdout).trim().to_owned();
    let (start, rest) = keys.split_once("\"until\": \"").expect("a time");
    let (_, end) = rest.split_once('"').expect("its end");
    format!("{start}\"until\": \"{until}\"{end}")
}

#[test]
fn signatures_that_end_soon_are_told_of_once() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path().to_owned();
    for (name, days) in
        [("soon.example", 3), ("later.example", 30), ("inside.example", 3), ("given.example", 3)]
    {
        let keys = ending_in(&key_sets(&at, name, "13"), days);
        std::fs::write(at.join(format!("{name}.json")), format!("[{}]", zone(name, 7, &keys)))
            .expect("writable");
    }
    let config = settings(
        "zones: [{name: soon.example, file: soon.example.json}, {name: later.example, file: later.example.json}, \
         {name: inside.example, file: inside.example.json, set: inside}]",
    );
    let config = config.replace("main: [", "main: [{if: client in 198.51.100.0/24, do: zones(inside)}, ");
    let mut server = Server::start_in(directory, &config);
    let is_end = |line: &&String| line.contains("signatures of its own keys end at ");
    eventually("the first two", || server.log().iter().filter(is_end).count() == 2);
    let file = at.join("given.example.json").display().to_string();
    assert!(server.command(&["zone", "add", "given.example"]).status.success());
    assert!(server.command(&["zone", "load", "given.example", &file]).status.success());
    assert!(server.command(&["reload"]).status.success());
    eventually("the third", || server.log().iter().filter(is_end).count() == 3);
    // What was kept without its keys is told of after a restart, too.
    let (_, _, directory) = server.stop_by("KILL");
    let mut server = Server::start_in(directory, &config);
    eventually("the same", || server.log().iter().filter(is_end).count() == 3);
    for name in ["soon.example", "inside.example", "given.example"] {
        assert_eq!(
            server.log().iter().filter(is_end).filter(|line| line.contains(name)).count(),
            1,
            "{name}"
        );
    }
}

#[test]
fn what_cannot_be_signed_with_its_keys_is_refused_with_a_reason() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path().to_owned();
    let keys = key_sets(&at, "example.org", "13");
    std::fs::write(at.join("org.json"), format!("[{}]", zone("example.org", 7, &keys))).expect("writable");
    let check = |zone: &str, expect: &str| {
        std::fs::write(
            at.join("gannet.yaml"),
            settings(&format!("{zone}\nsigning: {{s: {{}}}}"))
                .replace("@ADDRESS@", "127.0.0.1:5300")
                .replace("@DIRECTORY@", "."),
        )
        .expect("writable");
        let output =
            testkit::program(&at).args(["check", "-c", "gannet.yaml"]).output().expect("gannet runs");
        contains(&said(&output), expect);
        said(&output)
    };
    let named = |more: &str| format!("zones: [{{name: example.org, file: org.json{more}}}]");
    check(
        &named(", key-sets-denial: compact, transfer: any"),
        "secondaries could not prove what does not exist",
    );
    check(&named(", update: [\"key k\"]"), "unknown key");
    check(
        &format!("keys: [{{name: k, secret: AAAA}}]\n{}", named(", update: [\"key k\"]")),
        "updates are refused",
    );
    check(&named(", sign: s"), "its own keys are not used");
    check(&named(", key-sets-denial: nsec4"), "compact");
    // With times that are over, it is served as it was meant, and told.
    let text = std::fs::read_to_string(at.join("org.json")).expect("a file");
    let (start, rest) = text.split_once("\"inception\": \"").expect("a time");
    let (_, rest) = rest.split_once("\"until\": \"").expect("a time");
    let (_, end) = rest.split_once('"').expect("its end");
    let old =
        format!("{start}\"inception\": \"2017-01-01T00:00:00Z\", \"until\": \"2017-02-12T11:36:58Z\"{end}");
    std::fs::write(at.join("org.json"), old).expect("writable");
    check(&named(""), "ended at 20170212113658");
}

#[test]
fn a_change_of_the_file_is_signed_when_it_is_reloaded() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path().to_owned();
    let keys = key_sets(&at, "example.org", "15");
    let write = |serial: u32, from: &str, to: &str| {
        let text = format!("[{}]", zone("example.org", serial, &keys)).replace(from, to);
        std::fs::write(at.join("org.json"), text).expect("writable");
    };
    write(7, "", "");
    let more = "zones: [{name: example.org, file: org.json, transfer: [loopback]}]";
    let server = Server::start_in(directory, &settings(more));
    judge(&server, "example.org");
    write(8, "192.0.2.3", "192.0.2.33");
    assert!(server.command(&["reload"]).status.success());
    eventually("the change", || server.dig(&["+short", "www.example.org", "A"]).contains("192.0.2.33"));
    judge(&server, "example.org");
    // Secondaries get the difference, signatures and all.
    let next = server.dig(&["+tcp", "example.org", "IXFR=7"]);
    contains(&next, "192.0.2.33");
    contains(&next, "RRSIG\tA 15 3 ");
}

#[test]
fn zones_of_master_files_have_their_keys_beside_them() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path().to_owned();
    let keys = key_sets(&at, "example.org", "13");
    for folder in ["zones", "keys"] {
        std::fs::create_dir(at.join(folder)).expect("writable");
    }
    let text = "$TTL 300\n@ SOA ns admin 7 7200 600 86400 60\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.3\nalias CNAME www\n\
        *.wild TXT any\na.b.deep TXT deep\nopen NS ns.example.net.\n";
    for apex in ["example.org", "example.net"] {
        std::fs::write(at.join(format!("zones/{apex}.zone")), text).expect("writable");
    }
    std::fs::write(at.join("keys/example.org.private"), &keys).expect("writable");
    let mut server =
        Server::start_in(directory, &settings("zone-directories: [{path: zones, key-sets: keys}]"));
    judge(&server, "example.org");
    // One without a file of keys is served as it is, until there is one.
    lacks(&server.dig(&["+dnssec", "www.example.net", "A"]), "RRSIG");
    let other = key_sets(&at, "example.net", "15");
    std::fs::write(at.join("keys/example.net.private"), &other).expect("writable");
    assert!(server.command(&["reload"]).status.success());
    eventually("the zone with its keys", || {
        server.dig(&["+dnssec", "www.example.net", "A"]).contains("RRSIG\tA 15 ")
    });
    judge(&server, "example.net");
    // Other keys take over with the next reload, and bad ones leave everything as it was.
    std::fs::write(at.join("keys/example.net.private"), other.replace("\"zsk_alg\": 15", "\"zsk_alg\": 13"))
        .expect("writable");
    let said = said(&server.command(&["reload"]));
    contains(&said, "serial 7 is still served");
    judge(&server, "example.net");
    shows_no_key(&mut server, &["example.org", "example.net"], &[&keys, &other]);
}
