//! RRsets of zones over the API, by command, and over the part of PowerDNS's API.

use std::fs;
use std::process::Command;

use testkit::{Server, contains, forwarding, lacks, tool};

use super::network::{curl, shown, start as start_network, token};
use super::{JSON, ask, get, start};

const ZONE: &str = "@ 3600 SOA ns admin 7 3600 600 86400 60\n@ 3600 NS ns\nns 3600 A 192.0.2.1\n";

/// Runs a program to its end and returns what it printed.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().expect("`cargo xtask test` installs it");
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    let (printed, complaint) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {printed}{complaint}");
    printed + &complaint
}

/// Runs a command to the server and returns what it printed.
#[track_caller]
fn order(server: &Server, arguments: &[&str]) -> String {
    let output = server.command(arguments);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {printed}{}", String::from_utf8_lossy(&output.stderr));
    printed
}

/// Adds a zone to a server and gives it records.
fn add(server: &Server, zone: &str) {
    let file = server.directory().join("first.zone");
    fs::write(&file, ZONE).expect("a writable directory");
    order(server, &["zone", "add", zone]);
    order(server, &["zone", "load", zone, file.to_str().expect("a path")]);
}

#[test]
fn an_rrset_is_looked_at_changed_and_taken_away() {
    let (_stub, server) = start("");
    add(&server, "example.org");
    let path = "/zones/example.org/rrsets/www.example.org/A";
    assert_eq!(get(&server, path).status, 404);

    let body = r#"{"ttl": 60, "records": ["192.0.2.7", "192.0.2.8"]}"#;
    assert_eq!(ask(&server, "PUT", path, &[JSON], body).status, 428);
    let made = ask(&server, "PUT", path, &[JSON, "If-None-Match: *"], body);
    assert_eq!(made.status, 200, "{made:?}");
    contains(&made.json(), "\"serial\": 8, \"is-new\": true");
    assert_eq!(server.dig_short(&["www.example.org", "A"]), ["192.0.2.7", "192.0.2.8"]);
    assert_eq!(ask(&server, "PUT", path, &[JSON, "If-None-Match: *"], body).status, 412, "it is there");

    let found = get(&server, path);
    let tag = format!("If-Match: {}", found.header("etag").expect("an ETag"));
    contains(&found.json(), "\"ttl\": 60, \"records\": [ \"192.0.2.7\", \"192.0.2.8\" ]");
    // Another RRset changes, and this one may be changed all the same.
    let other = r#"{"changes": [
        {"name": "mail.example.org", "type": "MX", "ttl": 60, "records": ["10 www.example.org"]},
        {"name": "www.example.org", "type": "TXT", "ttl": 60, "records": ["\"a b\" c"]}]}"#;
    let both = ask(&server, "PATCH", "/zones/example.org/rrsets", &[JSON], other);
    contains(&both.json(), "\"serial\": 9");
    let less = r#"{"records": ["192.0.2.7"]}"#;
    let changed = ask(&server, "PUT", path, &[JSON, &tag], less);
    assert_eq!(changed.status, 200, "{changed:?}");
    let late = ask(&server, "DELETE", path, &[&tag], "");
    assert_eq!(late.status, 412, "{late:?}");
    contains(&late.body, "www.example.org. A is another by now");
    contains(&late.json(), "\"changed\": { \"by\": \"");
    assert_eq!(ask(&server, "DELETE", path, &["If-Match: *"], "").status, 200);
    assert!(server.dig_short(&["www.example.org", "A"]).is_empty());
    assert_eq!(server.dig_short(&["www.example.org", "TXT"]), ["\"a b\" \"c\""]);

    let mut names = Vec::new();
    let mut next = Some("/zones/example.org/rrsets?count=2".to_owned());
    while let Some(path) = next {
        let part = get(&server, &path);
        names.extend(part.body.lines().filter(|line| line.contains("\"name\"")).map(str::to_owned));
        let link = part.header("link").map(str::to_owned);
        next = link.and_then(|link| Some(link.strip_prefix("</api/v1")?.split_once('>')?.0.to_owned()));
    }
    assert_eq!(names.len(), 5, "SOA, NS, ns A, mail MX, www TXT: {names:?}");
}

#[test]
fn a_change_that_is_wrong_is_refused_whole_and_says_what_is_wrong() {
    let (_stub, server) = start("");
    add(&server, "example.org");
    for (edit, why) in [
        (r#"{"name": "x.example.org", "type": "A", "ttl": 1, "records": ["192.0.2.900"]}"#, "column 1"),
        (r#"{"name": "x.example.org", "type": "MX", "ttl": 1, "records": ["10 a..b"]}"#, "column 4"),
        (r#"{"name": "x.example.org", "type": "A", "records": ["192.0.2.9"]}"#, "needs a TTL"),
        (
            r#"{"name": "x.example.org", "type": "A", "ttl": 4294967295, "records": ["192.0.2.9"]}"#,
            "RFC 2181",
        ),
        (r#"{"name": "example.net", "type": "A", "ttl": 1, "records": ["192.0.2.9"]}"#, "not in the zone"),
        (r#"{"name": "ns.example.org", "type": "CNAME", "ttl": 1, "records": ["x"]}"#, "CNAME"),
        (r#"{"name": "example.org", "type": "NS"}"#, "keeps its SOA record"),
        (r#"{"name": "example.org", "type": "NSEC", "ttl": 1, "records": ["x A"]}"#, "not changed by hand"),
        (r#"{"name": "x.example.org", "type": "TXT", "ttl": 1, "records": ["a\nb TXT c"]}"#, "one line"),
    ] {
        let good = r#"{"name": "good.example.org", "type": "A", "ttl": 1, "records": ["192.0.2.9"]}"#;
        let body = format!("{{\"changes\": [{good}, {edit}]}}");
        let refused = ask(&server, "PATCH", "/zones/example.org/rrsets", &[JSON], &body);
        assert_eq!(refused.status, 422, "{edit}: {refused:?}");
        contains(&refused.body, why);
    }
    assert!(server.dig_short(&["good.example.org", "A"]).is_empty());
    let none = ask(&server, "PATCH", "/zones/example.net/rrsets", &[JSON], r#"{"changes": []}"#);
    assert_eq!(none.status, 404, "{none:?}");
    order(&server, &["zone", "freeze", "example.org"]);
    let edit = r#"{"changes": [{"name": "x.example.org", "type": "TXT", "ttl": 1, "records": ["x"]}]}"#;
    let frozen = ask(&server, "PATCH", "/zones/example.org/rrsets", &[JSON], edit);
    assert_eq!(frozen.status, 409, "{frozen:?}");
}

#[test]
fn an_rrset_that_was_changed_by_command_is_there_after_a_kill() {
    let (stub, server) = start("");
    add(&server, "example.org");
    let set = ["zone", "set", "example.org", "www.example.org", "A", "192.0.2.7", "192.0.2.8", "--ttl", "60"];
    contains(&order(&server, &set), "has serial 8");
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &forwarding(&[&stub], ""));
    let found = order(&server, &["zone", "get", "example.org", "www.example.org"]);
    contains(&found, "www.example.org. 60 IN A 192.0.2.7\nwww.example.org. 60 IN A 192.0.2.8\n");
    order(&server, &["zone", "unset", "example.org", "www.example.org", "A", "192.0.2.8"]);
    order(&server, &["zone", "set", "example.org", "@", "A", "192.0.2.9", "--ttl", "60"]);
    assert_eq!(server.dig_short(&["www.example.org", "A"]), ["192.0.2.7"]);
    assert_eq!(server.dig_short(&["example.org", "A"]), ["192.0.2.9"]);
}

#[test]
fn a_token_of_one_zone_changes_no_other() {
    let (server, at, _stub) = start_network("");
    add(&server, "example.org");
    add(&server, "example.net");
    let key = token(&server, "acme", &["--role", "operator", "--zone", "example.org"]);
    let key = format!("X-API-Key: {key}");
    let patch = |zone: &str| {
        let body = format!(
            r#"{{"rrsets": [{{"name": "_acme-challenge.{zone}.", "type": "TXT", "ttl": 60,
                "changetype": "REPLACE", "records": [{{"content": "\"x\"", "disabled": false}}]}}]}}"#
        );
        let path = format!("/api/v1/servers/localhost/zones/{zone}.");
        curl(at, &path, &["--request", "PATCH", "--header", &key, "--header", JSON, "--data", &body])
    };
    assert_eq!(patch("example.org").0, 204);
    let (status, why) = patch("example.net");
    assert_eq!(status, 403, "{why}");
    contains(&why, "\"error\": \"");
    assert_eq!(server.dig_short(&["_acme-challenge.example.org", "TXT"]), ["\"x\""]);
    assert!(server.dig_short(&["_acme-challenge.example.net", "TXT"]).is_empty());
    let (status, _) = curl(at, "/api", &["--header", &key]);
    assert_eq!(status, 200);
    assert_eq!(curl(at, "/api", &[]).0, 401);
    let (_, disabled) = curl(
        at,
        "/api/v1/servers/localhost/zones/example.org.",
        &[
            "--request",
            "PATCH",
            "--header",
            &key,
            "--header",
            JSON,
            "--data",
            r#"{"rrsets": [{"name": "a.example.org.", "type": "A", "ttl": 1, "changetype": "REPLACE",
                "records": [{"content": "192.0.2.1", "disabled": true}]}]}"#,
        ],
    );
    contains(&disabled, "a disabled record is not kept");
}

const OCTODNS: &str = "'':
  - {type: NS, values: [ns1.example.org., ns2.example.org.]}
  - {type: MX, values: [{preference: 10, exchange: mail.example.org.}]}
  - {type: TXT, values: ['v=spf1 -all', 'a long text']}
  - {type: CAA, values: [{flags: 0, tag: issue, value: ca.example}]}
ns1: {type: A, value: 192.0.2.1}
ns2: {type: AAAA, value: '2001:db8::2'}
mail: {type: A, values: [192.0.2.3, 192.0.2.4]}
'*.w': {type: CNAME, value: mail.example.org.}
_sip._tcp: {type: SRV, values: [{priority: 1, weight: 2, port: 5060, target: mail.example.org.}]}
svc: {type: SVCB, values: [{svcpriority: 1, targetname: mail.example.org., svcparams: {port: 8443}}]}
";

#[test]
fn octodns_moves_a_zone_here_and_finds_nothing_to_change_afterwards() {
    let (mut server, at, _stub) = start_network("");
    let key = token(&server, "octodns", &["--role", "operator"]);
    let directory = server.directory().to_owned();
    let zone = directory.join("example.org.yaml");
    fs::write(&zone, OCTODNS).expect("a writable directory");
    let provider = format!(
        "class: octodns_powerdns.PowerDnsProvider, host: {}, port: {}, api_key: {key}",
        at.ip(),
        at.port()
    );
    let source = format!("class: octodns.provider.yaml.YamlProvider, directory: {}", directory.display());
    let config = directory.join("octodns.yaml");
    let text = format!(
        "providers:\n  config: {{{source}, enforce_order: false, default_ttl: 300}}\n  gannet: {{{provider}}}\nzones:\n  \
         example.org.: {{sources: [config], targets: [gannet]}}\n"
    );
    fs::write(&config, text).expect("a writable directory");
    let sync = |more: &[&str]| {
        let mut command = Command::new(tool("python/bin/octodns-sync"));
        command.arg("--config-file").arg(&config).args(more);
        run(&mut command)
    };
    contains(&sync(&["--doit"]), "Creates=10");
    assert_eq!(server.dig_short(&["example.org", "NS"]), ["ns1.example.org.", "ns2.example.org."]);
    assert_eq!(server.dig_short(&["x.w.example.org", "CNAME"]), ["mail.example.org."]);
    lacks(&sync(&[]), "Creates=");

    fs::write(&zone, OCTODNS.replace("192.0.2.4", "192.0.2.5").replace("svc:", "other:"))
        .expect("a writable directory");
    contains(&sync(&["--doit"]), "Creates=1, Updates=1, Deletes=1");
    assert_eq!(server.dig_short(&["mail.example.org", "A"]), ["192.0.2.3", "192.0.2.5"]);
    assert!(server.dig_short(&["svc.example.org", "SVCB"]).is_empty());
    lacks(&sync(&[]), "Creates=");
    // The log has neither the key nor a line for each request.
    lacks(&server.log().join("\n"), &key);
    let (status, _) = curl(at, "/api/v1/servers/localhost/zones/example.org.", &["--header", &shown(&key)]);
    assert_eq!(status, 200);
}

#[test]
fn a_zone_that_is_created_is_what_its_records_say_and_no_line_of_a_file() {
    let (server, at, _stub) = start_network("");
    let key = format!("X-API-Key: {}", token(&server, "creator", &["--role", "operator"]));
    let create = |rrset: &str| {
        let body = format!(
            r#"{{"name": "example.org.", "kind": "Native", "nameservers": ["ns.example.net."], "rrsets": [{rrset}]}}"#
        );
        let arguments = ["--request", "POST", "--header", &key, "--header", JSON, "--data", &body];
        curl(at, "/api/v1/servers/localhost/zones", &arguments)
    };
    for (name, content) in [
        ("$GENERATE 1-16777215 h$.example.org. ;", "192.0.2.1"),
        ("a.example.org. 1 IN A 192.0.2.9 ;", "192.0.2.1"),
        ("a.example.org.", "192.0.2.1 ("),
        ("a.example.org.", "192.0.2.1\\nb 1 IN A 192.0.2.2"),
        ("a.example.org.", "192.0.2.900"),
        ("a.example.net.", "192.0.2.1"),
    ] {
        let (status, why) = create(&format!(
            r#"{{"name": "{name}", "type": "A", "ttl": 1, "records": [{{"content": "{content}"}}]}}"#
        ));
        assert_eq!(status, 422, "{name} {content}: {why}");
        assert_eq!(get(&server, "/zones/example.org").status, 404, "nothing is left of it");
    }
    // Names are in full, as in a PATCH.
    let (status, _) = create(
        r#"{"name": "example.org.", "type": "MX", "ttl": 1, "records": [{"content": "10 mail.example.org"}]}"#,
    );
    assert_eq!(status, 201);
    assert_eq!(server.dig_short(&["example.org", "MX"]), ["10 mail.example.org."]);
    assert_eq!(server.dig_short(&["example.org", "NS"]), ["ns.example.net."]);
    // The first records of a request of the control socket are not larger than their text, either.
    let many = r#"{"request": "zone-add", "zones": ["example.net"],
        "records": "@ 1 SOA a b 1 2 3 4 5\n$GENERATE 1-16777215 h$ 1 A 192.0.2.1\n"}"#;
    contains(&ask(&server, "POST", "/requests", &[JSON], many).body, "error");
    assert_eq!(get(&server, "/zones/example.net").status, 404);
}

#[test]
fn a_change_over_powerdns_s_api_that_is_sent_again_is_made_once() {
    let (server, at, _stub) = start_network("");
    add(&server, "example.org");
    let key = format!("X-API-Key: {}", token(&server, "acme", &["--role", "operator"]));
    let patch = |address: &str, once: &str| {
        let body = format!(
            r#"{{"rrsets": [{{"name": "a.example.org.", "type": "A", "ttl": 1, "changetype": "REPLACE",
                "records": [{{"content": "{address}"}}]}}]}}"#
        );
        let once = format!("Idempotency-Key: {once}");
        let path = "/api/v1/servers/localhost/zones/example.org.";
        let head =
            ["--request", "PATCH", "--header", &key, "--header", JSON, "--header", &once, "--data", &body];
        curl(at, path, &head).0
    };
    assert_eq!((patch("192.0.2.1", "one"), patch("192.0.2.2", "two")), (204, 204));
    assert_eq!(patch("192.0.2.1", "one"), 204, "as it was answered before");
    assert_eq!(server.dig_short(&["a.example.org", "A"]), ["192.0.2.2"]);
}

#[test]
fn programs_that_speak_the_api_of_powerdns_get_zones_of_any_size_as_a_whole() {
    const HOSTS: usize = 60_000;
    let (server, at, _stub) = start_network("");
    let key = format!("X-API-Key: {}", token(&server, "reader", &[]));
    let file = server.directory().join("large.zone");
    fs::write(&file, format!("{ZONE}$GENERATE 1-{HOSTS} host-$ 60 A 192.0.2.1\n")).expect("written");
    order(&server, &["zone", "add", "example.org"]);
    order(&server, &["zone", "load", "example.org", file.to_str().expect("a path")]);
    let (status, body) = curl(at, "/api/v1/servers/localhost/zones/example.org.", &["--header", &key]);
    assert_eq!(status, 200);
    let zone: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((zone["id"].as_str(), zone["serial"].as_u64()), (Some("example.org."), Some(7)));
    let rrsets = zone["rrsets"].as_array().expect("RRsets");
    assert_eq!(rrsets.len(), HOSTS + 3, "SOA, NS and ns besides");
    assert_eq!(rrsets[0]["type"], "SOA");
    let last = rrsets.iter().find(|rrset| rrset["name"] == format!("host-{HOSTS}.example.org."));
    assert_eq!(last.expect("it is there")["records"][0]["content"], "192.0.2.1");
    // Some of them, and none, are asked for as before.
    let some = "/api/v1/servers/localhost/zones/example.org.?rrset_name=host-7.example.org.";
    assert_eq!(curl(at, some, &["--header", &key]).1.matches("\"content\"").count(), 1);
    let none = "/api/v1/servers/localhost/zones/example.org.?rrsets=false";
    lacks(&curl(at, none, &["--header", &key]).1, "rrsets");
    assert_eq!(curl(at, "/api/v1/servers/localhost/zones/example.net.", &["--header", &key]).0, 404);
}

#[test]
fn the_manual_s_example_of_rrsets_works() {
    let (_stub, server) = start("");
    add(&server, "example.org");
    order(&server, &["zone", "set", "example.org", "old.example.org", "CNAME", "example.net", "--ttl", "9"]);
    let page = fs::read_to_string("../docs/manual/api.md").expect("the manual");
    let blocks = || page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let known = blocks().find(|block| block.contains("api=\"curl")).expect("where api and url are set");
    let known: String = known.split_inclusive('\n').take(2).collect();
    let example = blocks().find(|block| block.contains("/rrsets")).expect("an example");
    let script = format!("set -eu\n{known}{example}");
    let said = run(Command::new("sh").args(["-c", &script]).current_dir(server.directory()));
    lacks(&said, "about:blank");
    contains(&said, "10 mail.example.org.");
    assert_eq!(server.dig_short(&["www.example.org", "A"]), ["192.0.2.7"]);
    assert!(server.dig_short(&["old.example.org", "CNAME"]).is_empty());
}
