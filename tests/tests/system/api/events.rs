//! What happens to the server, as it is watched over the API and by command.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use testkit::{Ask, Page, Script, Server, Stub, Web, contains, eventually, forwarding, lacks};
use wire::Rtype;

use super::network::{curl, shown, text, token};
use super::{DEADLINE, JSON, ask, connect, get, start};

/// Someone who watches.
pub(crate) struct Watcher(BufReader<UnixStream>);

impl Watcher {
    /// Begins to watch; `more` are lines of the head.
    pub(crate) fn new(server: &Server, query: &str, more: &str) -> Self {
        Self::try_new(server, query, more).expect("a place")
    }

    /// Begins to watch, unless there are enough who do.
    fn try_new(server: &Server, query: &str, more: &str) -> Option<Self> {
        let mut stream = connect(server);
        let request = format!("GET /api/v1/events{query} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");
        stream.write_all(request.as_bytes()).expect("taken");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        let mut watcher = Self(BufReader::new(stream));
        if watcher.until("HTTP/1.1").contains("409") {
            return None;
        }
        contains(&watcher.until("content-type"), "text/event-stream");
        Some(watcher)
    }

    /// Reads until a line that begins so, and returns it.
    pub(crate) fn until(&mut self, what: &str) -> String {
        let mut line = String::new();
        while !line.starts_with(what) {
            line.clear();
            assert!(self.0.read_line(&mut line).expect("a line") > 0, "no {what}");
        }
        line.trim_end().to_owned()
    }

    /// Returns the data of the next event of a kind, whatever comes before it.
    pub(crate) fn next(&mut self, kind: &str) -> String {
        self.until(&format!("event: {kind}"));
        self.until("data: ").trim_start_matches("data: ").to_owned()
    }
}

/// Changes a setting; each time to something else.
fn change(server: &Server, number: usize) {
    let edits = format!(
        "{{\"edits\": [{{\"set\": {{\"path\": \"local.a.home.arpa\", \"text\": \"192.0.2.{number}\"}}}}], \"why\": \"number {number}\"}}"
    );
    assert_eq!(ask(server, "POST", "/changes", &[JSON], &edits).status, 200);
}

fn id_of(event: &str) -> String {
    let (_, rest) = event.split_once("\"id\":\"").expect("an id");
    rest.split('"').next().unwrap_or_default().to_owned()
}

#[test]
fn changes_and_reloads_are_events_and_nothing_of_their_texts_is() {
    let (_stub, server) = start("");
    let mut watcher = Watcher::new(&server, "", "");
    change(&server, 7);
    let changed = watcher.next("change");
    contains(&changed, "\"kind\":\"change\",\"revision\":1,\"by\":\"root\",\"why\":\"number 7\"");
    contains(&changed, "\"paths\":[\"local.a.home.arpa\"]");
    lacks(&changed, "192.0.2");
    assert_eq!(ask(&server, "POST", "/reload", &[], "").status, 200);
    let reloaded = watcher.next("reload");
    contains(&reloaded, "\"what\":\"configuration\"");
    contains(&reloaded, "\"is-adopted\":true,\"mistakes\":0}");
    let file = server.directory().join("gannet.yaml");
    let good = std::fs::read_to_string(&file).expect("the configuration");
    std::fs::write(&file, format!("{good}nonsense: 1\n")).expect("written");
    assert_eq!(ask(&server, "POST", "/reload", &[], "").status, 422);
    let refused = watcher.next("reload");
    contains(&refused, "\"is-adopted\":false,\"mistakes\":1");
    contains(&refused, "unknown setting");
    std::fs::write(&file, good).expect("written");
    // Of one kind alone, and then on behind what was heard.
    let mut changes = Watcher::new(&server, "?kind=change,list&kept", "");
    assert_eq!(id_of(&changes.next("change")), id_of(&changed));
    assert_eq!(ask(&server, "POST", "/rollback", &[JSON], "{\"revision\": 0}").status, 200);
    contains(&changes.next("change"), "\"rolled-back-to\":0");
    let mut again = Watcher::new(&server, "", &format!("Last-Event-ID: {}\r\n", id_of(&changed)));
    assert_eq!(again.next("reload"), reloaded);
    assert_eq!(again.next("reload"), refused);
    assert_eq!(get(&server, "/events?kind=nonsense").status, 400);
    assert_eq!(ask(&server, "GET", "/events", &["Last-Event-ID: soon"], "").status, 400);
    drop((watcher, changes));
    let heard = ask(&server, "POST", "/requests", &[JSON], "{\"request\":\"events\",\"ends\":true}");
    assert_eq!(heard.body.matches("\"kind\"").count(), 4, "{heard:?}");
    contains(&heard.body, "{\"event\":{\"is-last\":true}}");
}

#[test]
fn each_change_of_data_is_an_event_with_who_made_it_and_its_revision() {
    let (_stub, server) =
        start("sets: {dyn: {dynamic: {holds: names}}, mine: {lists: [{own: mine, format: names}]}}\n");
    let mut watcher = Watcher::new(&server, "?kind=change", "");
    let mut heard = |revision: &str, what: &str| {
        let event = watcher.next("change");
        contains(&event, &format!("\"kind\":\"change\"{revision},\"by\":\"root\",\"what\":\"{what}\""));
        event
    };
    let add = |item: &str| {
        let body = format!("{{\"items\": [\"{item}\"]}}");
        assert_eq!(ask(&server, "POST", "/sets/dyn/members", &[JSON], &body).status, 200);
    };
    add("a.example");
    let event = heard(",\"revision\":1", "set");
    contains(&event, "\"names\":[\"dyn\"]");
    lacks(&event, "a.example");
    let put = ask(&server, "PUT", "/lists/mine/content", &["If-None-Match: *"], "b.example\n");
    assert_eq!(put.status, 200, "{put:?}");
    contains(&heard(",\"revision\":2", "list"), "\"names\":[\"mine\"]");
    let lines = "{\"add\": \"c.example\"}\n";
    let kind = "Content-Type: application/x-ndjson";
    assert_eq!(ask(&server, "PATCH", "/lists/mine/content", &[kind], lines).status, 200);
    contains(&heard(",\"revision\":3", "list"), "\"names\":[\"mine\"]");
    let command = |arguments: &[&str]| {
        let output = server.command(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    command(&["token", "add", "monitoring", "--role", "viewer"]);
    contains(&heard(",\"revision\":4", "token"), "\"names\":[\"monitoring\"]");
    command(&["zone", "add", "example.net"]);
    contains(&heard("", "zone"), "\"names\":[\"example.net\"]");
    command(&["zone", "freeze", "example.net"]);
    contains(&heard("", "zone"), "\"names\":[\"example.net\"]");
    command(&["zone", "remove", "example.net"]);
    contains(&heard("", "zone"), "\"names\":[\"example.net\"]");
    // What is refused is none.
    assert!(!server.command(&["zone", "remove", "example.net"]).status.success());
    add("d.example");
    heard(",\"revision\":5", "set");
}

#[test]
fn an_upstream_and_its_group_are_events_when_they_go_down_and_when_they_come_back() {
    let (mut stub, server) = start("");
    let mut watcher = Watcher::new(&server, "?kind=upstream", "");
    let mut number = 0;
    let mut ask_until = |is_up: bool| {
        eventually("it changes", || {
            number += 1;
            server.ask(&Ask::new(&format!("n{number}.example.org"), Rtype::A));
            let parts = "{\"request\":\"events\",\"ends\":true}";
            let heard = ask(&server, "POST", "/requests", &[JSON], parts).body;
            heard.matches(&format!("\"groups\":[\"default\"],\"is-up\":{is_up}")).count() == 2
        });
    };
    stub.die();
    ask_until(false);
    let down = watcher.next("upstream");
    let server_at = format!("\"server\":\"{}\",\"groups\":[\"default\"]", stub.address());
    contains(&down, &format!("{server_at},\"is-up\":false,\"why\":"));
    let group = "\"kind\":\"upstream\",\"groups\":[\"default\"]";
    contains(&watcher.next("upstream"), &format!("{group},\"is-up\":false}}"));
    stub.revive();
    ask_until(true);
    contains(&watcher.next("upstream"), &format!("{server_at},\"is-up\":true}}"));
    contains(&watcher.next("upstream"), &format!("{group},\"is-up\":true}}"));
}

#[test]
fn a_list_is_an_event_when_it_is_new_or_not_fetched_and_none_when_it_is_as_it_was() {
    let web = Web::start(|_| Page::found("ads.example.org\n").header("ETag", "\"v1\""));
    let url = web.url("/list?token=hush");
    let stub = Stub::start(Script::default());
    let sets = format!("sets: {{ads: {{lists: \"names:{url}\"}}}}\n");
    let server = Server::start(&forwarding(&[&stub], &sets));
    let mut watcher = Watcher::new(&server, "?kind=list&kept", "");
    let first = watcher.next("list");
    contains(&first, "\"set\":\"ads\"");
    contains(&first, "\"is-fetched\":true,\"octets\":16");
    lacks(&first, "hush");
    // Nothing of this, for the list is as it was.
    web.behave(|_| Page::status("304 Not Modified", ""));
    assert_eq!(ask(&server, "POST", "/lists/fetch", &[], "").status, 200);
    web.behave(|_| Page::status("503 Later", ""));
    assert_eq!(ask(&server, "POST", "/lists/fetch", &[], "").status, 200);
    let failed = watcher.next("list");
    contains(&failed, "\"is-fetched\":false,\"why\":");
    lacks(&failed, "hush");
}

#[test]
fn log_ins_are_counted_by_prefix_and_only_admins_hear_of_them() {
    let (server, at, _stub) = super::network::start("");
    let admin = shown(&token(&server, "boss", &["--role", "admin"]));
    let viewer = shown(&token(&server, "screen", &[]));
    for _ in 0..3 {
        let wrong = shown(&format!("gnt_{}", "0".repeat(64)));
        assert_eq!(curl(at, "/api/v1/status", &["--header", &wrong]).0, 401);
    }
    for _ in 0..2 {
        assert_eq!(curl(at, "/api/v1/status", &["--header", &viewer]).0, 200);
    }
    // What is asked for in the audit log is told of first.
    assert_eq!(curl(at, "/api/v1/audit", &["--header", &admin]).0, 200);
    let events = |header: &str, kind: &str| {
        let body = format!("{{\"request\":\"events\",\"ends\":true{kind}}}");
        let json = ["--header", JSON, "--header", header, "--data", &body];
        curl(at, "/api/v1/requests", &json)
    };
    let (_, all) = events(&admin, "");
    contains(&all, "\"kind\":\"login\",\"from\":\"127.0.0.0/24\",\"is-accepted\":false,\"count\":3}");
    contains(&all, "\"kind\":\"login\",\"from\":\"127.0.0.0/24\",\"is-accepted\":true,\"count\":2}");
    assert_eq!(all.matches("\"login\"").count(), 2, "{all}");
    lacks(&events(&viewer, "").1, "login");
    let (_, refused) = events(&viewer, ",\"kinds\":[\"login\"]");
    contains(&refused, "login needs the role admin");
    assert_eq!(curl(at, "/api/v1/events?kind=login", &["--header", &viewer]).0, 403);
}

/// Begins to watch over the network; returns what comes.
fn watch(at: SocketAddr, header: &str, path: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(at).expect("the API");
    let request = format!("GET /api/v1{path} HTTP/1.1\r\nHost: {at}\r\n{header}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("taken");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        assert!(reader.read_line(&mut line).expect("a line") > 0, "no head");
        assert!(!line.starts_with("HTTP/1.1") || line.contains("200"), "{line}");
    }
    reader
}

#[test]
fn what_is_watched_ends_when_the_token_is_revoked_or_the_session_is_over() {
    let (server, at, _stub) = super::network::start("recorder: {file: queries.db}\n");
    let tokens = ["one", "two"].map(|name| shown(&token(&server, name, &["--role", "admin"])));
    super::users::add(&server, "anna", "admin");
    let cookies = [(); 2].map(|()| super::users::logged_in(at, "anna", super::users::PASSWORD));
    let of_cookies = cookies.clone().map(|cookie| format!("Cookie: {cookie}"));
    let mut gone = Vec::new();
    let mut stays = Vec::new();
    for path in ["/events", "/queries/live"] {
        gone.extend([&tokens[0], &of_cookies[0]].map(|header| watch(at, header, path)));
        stays.extend([&tokens[1], &of_cookies[1]].map(|header| watch(at, header, path)));
    }
    assert!(server.command(&["token", "revoke", "one"]).status.success());
    assert_eq!(super::users::ask(at, &cookies[0], "DELETE", "/session", &[]).0, 200);
    for mut reader in gone {
        let mut rest = String::new();
        reader.read_to_string(&mut rest).expect("it ends before anybody gives it up");
    }
    // The others hear what happens then.
    change(&server, 7);
    server.ask(&Ask::new("www.example.org", Rtype::A));
    for (number, mut reader) in stays.into_iter().enumerate() {
        let expected = if number < 2 { "event: change" } else { "event: query" };
        let mut line = String::new();
        while !line.starts_with(expected) {
            line.clear();
            assert!(reader.read_line(&mut line).expect("a line") > 0, "it has ended");
        }
    }
}

#[test]
fn who_never_reads_holds_up_nobody_and_hears_how_much_is_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("ads.txt"), "ads.example.org\n").expect("a list");
    let stub = Stub::start(Script::default());
    let sets = "sets: {ads: {lists: \"names:ads.txt\"}}\n";
    let server = Server::start_in(directory, &forwarding(&[&stub], sets));
    let mut first = Watcher::new(&server, "", "");
    let mut idle: Vec<Watcher> = (0..14).map(|_| Watcher::new(&server, "", "")).collect();
    let mut reader = Watcher::new(&server, "?kind=reload", "");
    let full = get(&server, "/events");
    assert!(full.status == 409 && full.body.contains("16 readers of root"), "{full:?}");
    // More than is kept.
    let mut socket = connect(&server);
    let mut responses = BufReader::new(socket.try_clone().expect("a socket"));
    let (mut line, mut oldest) = (String::new(), String::new());
    for number in 0..1_100 {
        socket.write_all(b"{\"request\":\"set-reload\",\"name\":\"ads\"}\n").expect("taken");
        line.clear();
        responses.read_line(&mut line).expect("a response");
        let event = reader.next("reload");
        contains(&event, "\"what\":\"set\",\"set\":\"ads\"");
        if number == 0 {
            oldest = id_of(&event);
        }
        if number % 100 == 0 {
            // Queries and commands go on.
            server.ask(&Ask::new(&format!("n{number}.example.org"), Rtype::A));
            assert_eq!(get(&server, "/status").status, 200);
        }
    }
    // The oldest of them all is not kept any more, nor are those behind it.
    drop(idle.pop());
    let head = format!("Last-Event-ID: {oldest}\r\n");
    let mut late = None;
    eventually("a place is free", || {
        late = Watcher::try_new(&server, "", &head);
        late.is_some()
    });
    let mut late = late.expect("it watches");
    let lost: u64 = 1_100 - 1_024 - 1;
    assert_eq!(late.next("lost"), format!("{{\"events\":{lost}}}"));
    assert!(id_of(&late.next("reload")).ends_with(&format!("-{}", lost + 2)));
    // Who reads again gets what is left.
    assert_eq!(id_of(&first.next("reload")), oldest);
}

#[test]
fn after_a_kill_who_goes_on_hears_that_events_are_lost() {
    let (stub, server) = start("");
    change(&server, 7);
    let mut watcher = Watcher::new(&server, "?kept", "");
    let before = id_of(&watcher.next("change"));
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &forwarding(&[&stub], ""));
    change(&server, 8);
    let mut watcher = Watcher::new(&server, "", &format!("Last-Event-ID: {before}\r\n"));
    assert_eq!(watcher.next("lost"), "{}", "how many, nobody knows");
    let after = watcher.next("change");
    contains(&after, "\"why\":\"number 8\"");
    assert_ne!(id_of(&after), before);
}

#[test]
fn the_command_prints_what_is_kept_and_then_what_comes() {
    let (_stub, server) = start("");
    change(&server, 7);
    let printed = server.command(&["events"]);
    assert!(printed.status.success(), "{}", text(&printed));
    contains(&text(&printed), " change root changed local.a.home.arpa (revision 1): number 7\n");
    let json = text(&server.command(&["events", "--json", "--kind", "change,reload"]));
    contains(&json, "\"kind\":\"change\",\"revision\":1");
    assert_eq!(json.lines().count(), 1, "{json}");
    assert!(server.command(&["events", "--kind", "reload"]).stdout.is_empty());
    assert_eq!(server.command(&["events", "--kind", "nonsense"]).status.code(), Some(2));
    let mut command = testkit::program(server.directory());
    let mut child =
        command.args(["events", "-f"]).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("what is kept");
    contains(&line, "number 7");
    change(&server, 8);
    line.clear();
    lines.read_line(&mut line).expect("what comes");
    contains(&line, "number 8");
    child.kill().expect("it ends");
    child.wait().expect("it has ended");
}
