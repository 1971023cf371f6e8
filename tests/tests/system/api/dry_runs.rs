//! Changes that are only checked, and zones that are changed by whoever knows them.

use testkit::Server;

use super::{Heard, JSON, ask, get};

const ZONE: &str = "$TTL 300\n@ SOA ns.example.org. hostmaster.example.org. 1 3600 600 86400 300\n\
                    @ NS ns.example.org.\nns A 192.0.2.1\n";

fn start() -> (testkit::Stub, Server) {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("example.org.zone"), ZONE).expect("written");
    let more = "sets: {bad: {dynamic: {holds: names}}, ads: {lists: [{own: mine}]}}\n\
                zones: [{name: example.org, file: example.org.zone}]\n\
                policy: {main: [zones, {if: qname in bad|ads, do: reject(nxdomain)}, forward(default)]}\n";
    let stub = testkit::Stub::start(testkit::Script::default());
    let yaml = testkit::forwarding(&[&stub], more);
    let server = Server::start_in(directory, &yaml);
    (stub, server)
}

/// Returns all that changes are made of, and how many rows the audit log has.
fn everything(server: &Server) -> String {
    let paths = ["/sets/bad/members", "/zones", "/zones/example.org/rrsets", "/lists", "/bans", "/users"];
    let said: String = paths.map(|path| get(server, path).body).concat();
    let rows = String::from_utf8_lossy(&server.command(&["audit", "export"]).stdout).lines().count();
    // What only time changes is left out.
    let lines = said.lines().filter(|line| !line.contains("-in-s"));
    format!("{}{rows}", lines.collect::<String>())
}

#[test]
fn what_is_only_checked_says_what_would_be_and_leaves_nothing() {
    let (_stub, server) = start();
    let put = ask(&server, "PUT", "/lists/mine/content", &["If-None-Match: *"], "a.example\n");
    assert_eq!(put.status, 200, "{put:?}");
    assert_eq!(ask(&server, "PUT", "/zones/added.example", &[JSON], "{}").status, 200);
    let before = everything(&server);
    let rrset = "/zones/example.org/rrsets/www.example.org/A";
    let patch =
        "{\"changes\": [{\"name\": \"ns.example.org\", \"type\": \"A\", \"records\": [\"192.0.2.9\"]}]}";
    for (method, path, head, body, expect) in [
        ("POST", "/sets/bad/members", JSON, "{\"items\": [\"a.example\", \"a.example\"]}", "\"changed\": 1"),
        ("DELETE", "/sets/bad/members/a.example", "If-Match: *", "", "\"changed\": 0"),
        (
            "PUT",
            rrset,
            "If-None-Match: *",
            "{\"ttl\": 300, \"records\": [\"192.0.2.7\"]}",
            "+ www.example.org. 300 IN A 192.0.2.7",
        ),
        (
            "DELETE",
            "/zones/example.org/rrsets/ns.example.org/A",
            "If-Match: *",
            "",
            "- ns.example.org. 300 IN A 192.0.2.1",
        ),
        ("PATCH", "/zones/example.org/rrsets", "X-A: b", patch, "+ ns.example.org. 300 IN A 192.0.2.9"),
        ("PUT", "/zones/new.example", "If-None-Match: *", "{}", "\"done\": 1"),
        ("DELETE", "/zones/added.example", "If-Match: *", "", "\"done\": 1"),
        ("DELETE", "/lists/mine", "If-Match: *", "", "\"is-compiled\": true"),
        ("POST", "/users", "X-A: b", "{\"name\": \"anna\", \"role\": \"viewer\"}", "\"name\": \"anna\""),
        ("POST", "/bans", "X-A: b", "{\"prefix\": \"192.0.2.1\"}", "\"is-dry-run\": true"),
    ] {
        let heads = if body.is_empty() || head == JSON { vec![head] } else { vec![head, JSON] };
        let heard = ask(&server, method, &format!("{path}?dry-run"), &heads, body);
        assert!(heard.status == 200 && heard.json().contains(expect), "{method} {path}: {heard:?}");
        assert_eq!(everything(&server), before, "{method} {path}");
    }
    // What would be refused is refused.
    for (method, path, head, body, status) in [
        ("POST", "/sets/bad/members", JSON, "{\"items\": [\"a..example\"]}", 400),
        ("POST", "/sets/ads/members", JSON, "{\"items\": [\"a.example\"]}", 409),
        ("PUT", rrset, "If-None-Match: *", "{\"ttl\": 300, \"records\": [\"no address\"]}", 422),
        ("PUT", "/zones/new.example", "If-None-Match: *", "{\"no-such\": 1}", 409),
        ("PUT", "/zones/example.org", "X-A: b", "{}", 428),
        ("PUT", "/zones/example.org", "If-Match: *", "{}", 409),
        ("DELETE", "/zones/added.example", "X-A: b", "", 428),
        ("DELETE", "/zones/example.org", "If-Match: *", "", 409),
        ("DELETE", "/lists/none", "If-Match: *", "", 404),
        ("POST", "/users", "X-A: b", "{\"name\": \"Anna\", \"role\": \"viewer\"}", 400),
        (
            "POST",
            "/users",
            "X-A: b",
            "{\"name\": \"anna\", \"role\": \"viewer\", \"password\": \"short\"}",
            400,
        ),
    ] {
        let heads = if body.is_empty() || head == JSON { vec![head] } else { vec![head, JSON] };
        let heard = ask(&server, method, &format!("{path}?dry-run"), &heads, body);
        assert_eq!(heard.status, status, "{method} {path} {body}: {heard:?}");
        assert_eq!(everything(&server), before, "{method} {path}");
    }
}

fn tag(heard: &Heard) -> String {
    format!("If-Match: {}", heard.header("etag").expect("an ETag"))
}

#[test]
fn a_zone_is_taken_out_by_whoever_knows_how_it_is() {
    let (_stub, server) = start();
    let path = "/zones/added.example";
    assert_eq!(ask(&server, "PUT", path, &[JSON, "If-Match: *"], "{}").status, 412, "there is none yet");
    assert_eq!(ask(&server, "PUT", path, &[JSON, "If-None-Match: *"], "{}").status, 200);
    assert_eq!(ask(&server, "PUT", path, &[JSON, "If-None-Match: *"], "{}").status, 412);
    let first = get(&server, path);
    let known = tag(&first).replace("If-Match", "If-None-Match");
    assert_eq!(ask(&server, "GET", path, &[&known], "").status, 304);
    let rrset = "/zones/added.example/rrsets/www.added.example/A";
    let body = "{\"ttl\": 300, \"records\": [\"192.0.2.7\"]}";
    let zone = get(&server, "/zones/example.org");
    let of_zone = tag(&zone);
    let put = ask(
        &server,
        "PUT",
        &rrset.replace("added.example", "example.org"),
        &[JSON, "If-None-Match: *"],
        body,
    );
    assert_eq!(put.status, 200, "{put:?}");
    assert_ne!(tag(&get(&server, "/zones/example.org")), of_zone, "there is another version");
    let late = ask(&server, "DELETE", "/zones/example.org", &[&of_zone], "");
    assert!(late.json().contains(" was changed since it was read"), "{late:?}");
    assert!(late.status == 412 && late.json().contains("changed it last, at 20"), "{late:?}");
    assert!(late.json().contains("\"changed\": { \"by\": \""), "{late:?}");
    let first = tag(&get(&server, path));
    assert_eq!(ask(&server, "DELETE", path, &[], "").status, 428);
    assert_eq!(ask(&server, "PUT", path, &[JSON], "{}").status, 428, "it is there");
    assert_eq!(ask(&server, "POST", &format!("{path}/freeze"), &[], "").status, 200);
    let frozen = ask(&server, "DELETE", path, &[&first], "");
    assert!(frozen.status == 412 && frozen.json().contains("\"changed\": { \"by\": \""), "{frozen:?}");
    let gone = ask(&server, "DELETE", path, &[&tag(&get(&server, path))], "");
    assert_eq!(gone.status, 200, "{gone:?}");
    assert_eq!(ask(&server, "DELETE", path, &["If-Match: *"], "").status, 412);
}
