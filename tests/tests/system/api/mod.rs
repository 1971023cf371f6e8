//! The HTTP API of the built program, as scripts and strangers meet it.

mod attempts;
mod audit;
mod backup;
mod bans;
mod clients;
mod crowds;
mod described;
mod dry_runs;
pub(crate) mod events;
mod external_dns;
mod full;
mod health;
mod hostile;
mod kills;
mod lists;
mod members;
mod network;
mod oidc;
mod oidc_provider;
mod own_lists;
mod pages;
mod queries;
mod rrsets;
mod tools;
mod totp;
mod users;
pub(crate) mod webhooks;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use testkit::{Ask, Script, Server, Stub, forwarding};
use wire::Rtype;

/// How long a response may take.
const DEADLINE: Duration = Duration::from_secs(20);

fn start(more: &str) -> (Stub, Server) {
    let stub = Stub::start(Script::default());
    let server = Server::start(&forwarding(&[&stub], more));
    (stub, server)
}

/// Opens a connection to the control socket.
fn connect(server: &Server) -> UnixStream {
    let stream = UnixStream::connect(server.directory().join("control.sock")).expect("a control socket");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    stream
}

/// A response of HTTP.
#[derive(Debug)]
struct Heard {
    status: u16,
    head: String,
    body: String,
}

impl Heard {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn json(&self) -> String {
        // Spaces do not matter.
        self.body.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Reads everything until the server closes the connection.
fn hear(mut stream: UnixStream) -> Heard {
    let mut octets = Vec::new();
    // A reset comes after everything that was said.
    let _ = stream.read_to_end(&mut octets);
    let text = String::from_utf8_lossy(&octets).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Heard { status, head: head.to_owned(), body: body.to_owned() }
}

/// Sends octets and reads everything that comes.
fn say(server: &Server, octets: &[u8]) -> Heard {
    let mut stream = connect(server);
    // Who is refused early does not take the rest.
    let _ = stream.write_all(octets);
    hear(stream)
}

/// Asks for something below `/api/v1` with more lines in the head and a body.
fn ask(server: &Server, method: &str, path: &str, head: &[&str], body: &str) -> Heard {
    let lines: String = head.iter().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    let request = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}Content-Length: {length}\r\n\r\n{body}"
    );
    say(server, request.as_bytes())
}

fn get(server: &Server, path: &str) -> Heard {
    ask(server, "GET", path, &[], "")
}

const YAML: &str = "Content-Type: application/yaml";
const JSON: &str = "Content-Type: application/json";

fn address(server: &Server, name: &str) -> Vec<String> {
    server.dig_short(&[name, "A"])
}

#[test]
fn a_setting_is_looked_at_changed_and_taken_back() {
    let (_stub, server) = start("local: {nas.home.arpa: 192.0.2.1}\n");
    let path = "/settings/local.nas.home.arpa";
    let found = get(&server, path);
    assert_eq!(found.status, 200, "{found:?}");
    assert!(
        found.json().contains("\"text\": \"192.0.2.1\"") && found.json().contains("\"revision\": 0"),
        "{found:?}"
    );
    assert!(found.json().contains(".yaml:"), "where it is said: {found:?}");
    let tag = found.header("etag").expect("an ETag").to_owned();

    let blind = ask(&server, "PUT", path, &[YAML], "192.0.2.2");
    assert_eq!(blind.status, 428, "{blind:?}");
    let match_it = format!("If-Match: {tag}");
    let dry = ask(&server, "PUT", &format!("{path}?dry-run"), &[YAML, &match_it], "192.0.2.2");
    assert_eq!(dry.status, 200, "{dry:?}");
    let expected = "\"before\": \"192.0.2.1\", \"after\": \"192.0.2.2\"";
    assert!(dry.json().contains(expected) && dry.json().contains("\"is-adopted\": false"), "{dry:?}");
    assert_eq!(address(&server, "nas.home.arpa"), ["192.0.2.1"]);

    let changed = ask(&server, "PUT", &format!("{path}?why=a+new%20disk"), &[YAML, &match_it], "192.0.2.2");
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(address(&server, "nas.home.arpa"), ["192.0.2.2"]);
    let new_tag = changed.header("etag").expect("an ETag").to_owned();
    assert!(new_tag.starts_with("\"1-") && new_tag != tag, "{new_tag}");
    let unchanged = ask(&server, "GET", path, &[&format!("If-None-Match: {new_tag}")], "");
    assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""));

    let late = ask(&server, "PUT", path, &[YAML, &match_it], "192.0.2.3");
    assert_eq!(late.status, 412, "{late:?}");
    assert_eq!(late.header("content-type"), Some("application/problem+json"));
    let who = "\"current\": { \"path\": \"local.nas.home.arpa\", \"text\": \"192.0.2.2\"";
    assert!(late.json().contains(who) && late.json().contains("\"why\": \"a new disk\""), "{late:?}");

    let back = ask(&server, "DELETE", path, &[&format!("If-Match: {new_tag}")], "");
    assert_eq!(back.status, 200, "{back:?}");
    assert_eq!(address(&server, "nas.home.arpa"), ["192.0.2.1"]);
    let history = get(&server, "/history?count=1");
    assert!(history.json().contains("\"revision\": 2"), "{history:?}");
    let next = history.header("link").expect("more").to_owned();
    assert_eq!(next, "</api/v1/history?before=2&count=1>; rel=\"next\"");
    let rest = get(&server, "/history?before=2&count=1");
    assert!(rest.json().contains("\"revision\": 1") && rest.header("link").is_none(), "{rest:?}");
}

#[test]
fn a_request_that_is_sent_again_is_carried_out_once() {
    let (_stub, server) = start("");
    let key = "Idempotency-Key: 7f3a";
    let edits = "{\"edits\": [{\"set\": {\"path\": \"local.a.home.arpa\", \"text\": \"192.0.2.1\"}}]}";
    let first = ask(&server, "POST", "/changes", &[JSON, key], edits);
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(ask(&server, "POST", "/rollback", &[JSON], "{\"revision\": 0}").status, 200);
    let again = ask(&server, "POST", "/changes", &[JSON, key], edits);
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert!(address(&server, "a.home.arpa").is_empty(), "it was not carried out again");
    let other = ask(&server, "POST", "/changes", &[JSON, key], &edits.replace("192.0.2.1", "192.0.2.2"));
    assert_eq!(other.status, 422, "{other:?}");
    // What was refused may be right the next time.
    let key = "Idempotency-Key: 7f3b";
    let unset = "{\"edits\": [{\"unset\": {\"path\": \"local.a.home.arpa\"}}]}";
    assert_eq!(ask(&server, "POST", "/changes", &[JSON, key], unset).status, 409);
    assert_eq!(ask(&server, "POST", "/changes", &[JSON], edits).status, 200);
    assert_eq!(ask(&server, "POST", "/changes", &[JSON, key], unset).status, 200);
    for wrong in ["Idempotency-Key: a b", "Idempotency-Key: "] {
        assert_eq!(ask(&server, "POST", "/changes", &[JSON, wrong], edits).status, 400, "{wrong}");
    }
}

#[test]
fn what_nobody_says_yet_is_created_once() {
    let (_stub, server) = start("local: {nas.home.arpa: 192.0.2.1}\n");
    let create = "If-None-Match: *";
    let made = ask(
        &server,
        "PUT",
        "/settings/local.tv.home.arpa",
        &[JSON, create],
        "[\"192.0.2.3\", \"192.0.2.4\"]",
    );
    assert_eq!(made.status, 200, "{made:?}");
    let mut found = address(&server, "tv.home.arpa");
    found.sort_unstable();
    assert_eq!(found, ["192.0.2.3", "192.0.2.4"]);
    for path in ["/settings/local.tv.home.arpa", "/settings/local.nas.home.arpa"] {
        let again = ask(&server, "PUT", path, &[JSON, create], "\"192.0.2.5\"");
        assert_eq!(again.status, 412, "{path}: {again:?}");
    }
}

#[test]
fn a_mistake_is_reported_at_its_place_and_changes_nothing() {
    let (_stub, server) = start("");
    let edits = "{\"edits\": [{\"set\": {\"path\": \"local.a.home.arpa\", \"text\": \"192.0.2.1\"}}, \
                 {\"set\": {\"path\": \"cache.main\", \"text\": \"{max-tl: 1h}\"}}]}";
    let refused = ask(&server, "POST", "/changes", &[JSON], edits);
    assert_eq!(refused.status, 422, "{refused:?}");
    let said = refused.json();
    assert!(said.contains("unknown setting \\\"max-tl\\\"") && said.contains("\"column\": 2"), "{said}");
    assert!(address(&server, "a.home.arpa").is_empty(), "all of it or nothing");
    let unknown = get(&server, "/settings/cache.man.size");
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let typo = get(&server, "/settings/cach.main.size");
    assert!(typo.status == 400 && typo.json().contains("did you mean \\\"cache\\\"?"), "{typo:?}");
}

#[test]
fn a_change_is_signed_by_the_user_of_the_socket_whatever_it_says() {
    let (_stub, server) = start("");
    let user =
        String::from_utf8(Command::new("id").arg("-un").output().expect("id(1)").stdout).expect("text");
    let user = user.trim();
    let edits = "{\"by\": \"mallory\", \"edits\": [{\"set\": {\"path\": \"local.a.home.arpa\", \"text\": \"192.0.2.1\"}}]}";
    assert_eq!(ask(&server, "POST", "/changes", &[JSON], edits).status, 200);
    let history = get(&server, "/history");
    assert!(history.json().contains(&format!("\"by\": \"{user} for mallory\"")), "{history:?}");
    assert_eq!(ask(&server, "POST", "/rollback", &[JSON], "{\"revision\": 0}").status, 200);
    let history = get(&server, "/history");
    assert!(history.json().contains(&format!("\"by\": \"{user}\"")), "{history:?}");
    assert!(address(&server, "a.home.arpa").is_empty());
}

#[test]
fn members_of_the_group_of_the_socket_do_what_their_role_allows() {
    const GROUP: u32 = 54_321;
    if !Command::new("id").arg("-u").output().expect("id(1)").stdout.starts_with(b"0\n") {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    let (_stub, server) = start(&format!("control: {{socket-group: {GROUP}, socket-role: operator}}\n"));
    let socket = server.directory().join("control.sock");
    Command::new("chmod").args(["a+x"]).arg(server.directory()).status().expect("chmod(1)");
    let ask = |group: u32, method: &str, path: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", &format!("--groups={group}"), "curl", "--silent"]);
        command.args(["--max-time", "20", "--request", method, "--unix-socket"]).arg(&socket);
        command.arg(format!("http://localhost/api/v1{path}"));
        let output = command.output().expect("setpriv(1) and curl(1)");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert!(ask(GROUP, "GET", "/status").1.contains("\"version\""));
    assert!(ask(GROUP, "POST", "/reload").1.contains("\"is-adopted\": true"));
    let refused = ask(GROUP, "GET", "/tokens").1;
    assert!(refused.contains("this needs the role admin, and nobody has operator"), "{refused}");
    let (is_answered, said) = ask(GROUP + 1, "GET", "/status");
    assert!(!is_answered && said.is_empty(), "{said}");
}

#[test]
fn members_of_a_set_are_added_listed_in_parts_and_removed() {
    let (_stub, server) = start(
        "sets: {bad: {dynamic: {holds: names}}}\npolicy: {main: [local, {if: qname in bad, do: reject(nxdomain)}, forward(default)]}\n",
    );
    let added = ask(
        &server,
        "POST",
        "/sets/bad/members",
        &[JSON],
        "{\"items\": [\"c.example.org\", \"a.example.org\", \"b.example.org\"]}",
    );
    assert!(added.status == 200 && added.json().contains("\"changed\": 3"), "{added:?}");
    let first = get(&server, "/sets/bad/members?count=2");
    let next = first.header("link").expect("a next part").to_owned();
    assert!(first.json().contains("a.example.org") && !first.json().contains("c.example.org"), "{first:?}");
    let next = next.trim_start_matches("</api/v1").split('>').next().expect("a URL").to_owned();
    let second = get(&server, &next);
    assert!(
        second.json().contains("c.example.org") && !second.json().contains("b.example.org"),
        "{second:?}"
    );
    assert!(second.header("link").is_none());
    assert_eq!(server.ask(&Ask::new("a.example.org", Rtype::A)).rcode(), wire::Rcode::NXDOMAIN);
    let removed = ask(&server, "DELETE", "/sets/bad/members/a.example.org", &[], "");
    assert!(removed.json().contains("\"changed\": 1"), "{removed:?}");
    assert_eq!(get(&server, "/sets/nothing").status, 404);
}

#[test]
fn whatever_is_looked_at_is_json_that_the_description_has() {
    let (_stub, server) = start("recorder: {file: queries.db}\n");
    server.ask(&Ask::new("www.example.org", Rtype::A));
    let description = get(&server, "/openapi.json");
    assert_eq!(description.status, 200);
    // Every resource without a name of the user's in it.
    let paths: Vec<&str> = description
        .body
        .split('"')
        .filter(|word| word.starts_with("/api/v1/") && !word.contains('{'))
        .collect();
    assert!(paths.len() > 20, "{paths:?}");
    // What has no end is looked at elsewhere.
    let ends = |path: &&str| !path.ends_with("/live") && !path.ends_with("/events");
    for path in paths.into_iter().filter(ends) {
        let path = path.trim_start_matches("/api/v1");
        let asked = if path == "/caches/answers" { "/caches/answers?name=www.example.org" } else { path };
        let heard = get(&server, asked);
        // Those that have no GET say so, and no resolver has anchors here.
        if path.ends_with("anchors") {
            assert!(heard.status == 409 && heard.json().contains("no resolver validates"), "{heard:?}");
            continue;
        }
        assert!(
            heard.status == 200 || (heard.status == 405 && heard.header("allow").is_some()),
            "{path}: {heard:?}"
        );
        assert_eq!(heard.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    let answers = get(&server, "/caches/answers?name=www.example.org");
    assert!(answers.json().contains("\"name\": \"www.example.org.\""), "{answers:?}");
    let flushed = ask(&server, "POST", "/caches/flush", &[JSON], "{\"what\": {\"suffix\": \"example.org\"}}");
    assert!(flushed.json().contains("\"removed\": 1"), "{flushed:?}");
    let explained =
        ask(&server, "POST", "/explain", &[JSON], "{\"name\": \"a.example.org\", \"type\": \"A\"}");
    assert!(explained.status == 200 && explained.json().contains("\"steps\""), "{explained:?}");
}

#[test]
fn curl_speaks_http_to_the_control_socket_and_commands_still_speak_lines() {
    let (_stub, server) = start("");
    let socket = server.directory().join("control.sock");
    let curl = |url: &str, arguments: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "20", "--unix-socket"]).arg(&socket);
        let output = command.args(arguments).arg(url).output().expect("`cargo xtask test` installs curl");
        assert!(output.status.success(), "{url}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(curl("http://localhost/api/v1/status", &[]).contains("\"version\""));
    assert!(curl("http://localhost/health", &[]).contains("true"));
    assert!(curl("http://localhost/", &[]).contains("<h1>Gannet</h1>"));
    assert!(curl("http://localhost/api/v1/metrics", &[]).contains("gannet_engine_"));
    let reloaded = curl("http://localhost/api/v1/reload", &["--request", "POST"]);
    assert!(reloaded.contains("\"is-adopted\": true"), "{reloaded}");
    assert!(server.command(&["status"]).status.success());
    assert!(server.command(&["reload"]).status.success());
}

#[test]
fn the_examples_of_the_manual_do_what_it_says() {
    let (_stub, server) = start("");
    let page = std::fs::read_to_string("../docs/manual/api.md").expect("the manual");
    let mut blocks = page
        .split("```sh\n")
        .skip(1)
        .filter(|block| block.contains("curl"))
        .filter_map(|rest| rest.split("```").next());
    let first = blocks.next().expect("an example").replace("/run/gannet/control.sock", "control.sock");
    let script = format!("set -eu\n{first}{}", blocks.next().expect("an example"));
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(server.directory()).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !said.contains("about:blank"), "{said}");
    assert!(said.to_lowercase().contains("etag: \"0-"), "{said}");
    assert!(said.contains("\"after\": \"192.0.2.8\""), "{said}");
    assert!(get(&server, "/settings/edns.udp-size").json().contains("\"text\": \"1400\""));
    assert!(address(&server, "nas.home.arpa").is_empty());
}
