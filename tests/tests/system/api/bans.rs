//! Bans by operators, as clients and scripts meet them.

use std::net::Ipv4Addr;

use testkit::{Ask, Script, Server, Stub, UdpClient, eventually, forwarding};
use wire::Rtype;

use super::network::{curl, shown, start as start_network, text, token};
use super::{JSON, ask, get};

/// Its clients' addresses are in PROXY headers: those of this machine cannot be banned.
const LISTEN: &str = "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", proxy-protocol-from: [127.0.0.0/8]}]";
/// Sockets that ask at a time, so that each worker has some.
const SOCKETS: u16 = 16;

const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(198, 51, 101, 7);

fn yaml(stub: &Stub, more: &str) -> String {
    let more = format!("allow: [any]\nlocal: {{nas.home.arpa: 192.0.2.1}}\n{more}");
    forwarding(&[stub], &more).replace("listen: [\"@ADDRESS@\"]", LISTEN)
}

fn start(more: &str) -> (Stub, Server) {
    let stub = Stub::start(Script::default());
    let server = Server::start(&yaml(&stub, more));
    (stub, server)
}

/// Returns a query with a PROXY header over UDP, as from this client.
fn from(client: Ipv4Addr, id: u16) -> Vec<u8> {
    let mut message = b"\r\n\r\n\0\r\nQUIT\n\x21".to_vec();
    message.extend([0x12, 0, 12]);
    message.extend(client.octets());
    message.extend([192, 0, 2, 53, 0x12, 0x34, 0, 53]);
    message.extend(Ask::new("nas.home.arpa", Rtype::A).id(id).bytes());
    message
}

/// Returns whether each of many sockets hears a reply to a client's query: a query of a neighbour
/// behind it is answered in any case.
fn are_answered(server: &Server, client: Ipv4Addr) -> Vec<bool> {
    let socket = |number: u16| {
        let socket = UdpClient::connect(server.another());
        socket.send(&from(client, number));
        socket.send(&from(NEIGHBOUR, 1_000 + number));
        socket.receive().id() == number
    };
    (0..SOCKETS).map(socket).collect()
}

fn expect(server: &Server, client: Ipv4Addr, answered: bool) {
    assert_eq!(are_answered(server, client), vec![answered; SOCKETS.into()], "{client}");
}

fn ban(server: &Server, body: &str) -> super::Heard {
    ask(server, "POST", "/bans", &[JSON], body)
}

fn rows(server: &Server) -> String {
    text(&server.command(&["audit", "tail", "-n", "50"]))
}

#[test]
fn a_ban_counts_for_each_query_sent_afterwards_and_survives_a_kill() {
    let (stub, server) = start("");
    expect(&server, CLIENT, true);
    let made = ban(&server, "{\"prefix\": \"198.51.100.0/24\", \"why\": \"noise\"}");
    assert!(made.status == 200 && made.json().contains("\"why\": \"noise\""), "{made:?}");
    expect(&server, CLIENT, false);
    assert_eq!(server.stat("bans", "operator"), 1);
    let one = get(&server, "/bans/198.51.100.7");
    assert!(one.status == 200 && one.json().contains("\"prefix\": \"198.51.100.0/24\""), "{one:?}");
    let tag = get(&server, "/bans/198.51.100.0%2F24").header("etag").expect("an ETag").to_owned();
    let printed = text(&server.command(&["bans"]));
    assert!(printed.starts_with("198.51.100.0/24 (operator), by "), "{printed}");
    assert!(rows(&server).contains("bans 198.51.100.0/24: noise"), "{}", rows(&server));

    server.signal("KILL");
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &yaml(&stub, ""));
    expect(&server, CLIENT, false);
    // Somebody else is faster.
    let still = "{\"prefix\": \"198.51.100.0/24\", \"why\": \"still\"}";
    let unseen = ban(&server, still);
    assert!(unseen.status == 428 && unseen.json().contains("\"changed\": { \"by\": \""), "{unseen:?}");
    let again = |tag: &str| ask(&server, "POST", "/bans", &[JSON, &format!("If-Match: {tag}")], still).status;
    assert_eq!(again("\"0000000000000000\""), 412);
    assert_eq!(again(&tag), 200);
    let path = "/bans/198.51.100.0%2F24";
    let late = ask(&server, "DELETE", path, &[&format!("If-Match: {tag}")], "");
    assert!(late.status == 412 && late.json().contains("\"changed\": { \"by\": \""), "{late:?}");
    assert_eq!(ask(&server, "DELETE", path, &[], "").status, 428);
    let dry = ask(&server, "DELETE", &format!("{path}?dry-run"), &["If-Match: *"], "");
    assert!(dry.status == 200 && dry.json().contains("\"is-dry-run\": true"), "{dry:?}");
    expect(&server, CLIENT, false);
    let tag = get(&server, path).header("etag").expect("an ETag").to_owned();
    let gone = ask(&server, "DELETE", path, &[&format!("If-Match: {tag}")], "");
    assert_eq!(gone.status, 200, "{gone:?}");
    expect(&server, CLIENT, true);
    assert_eq!(ask(&server, "DELETE", path, &[], "").status, 404);
    assert_eq!(get(&server, path).status, 404);
}

#[test]
fn a_ban_outlives_reloads_and_ends_when_its_time_is_over() {
    let (_stub, server) = start("");
    let ban_for = |time: &str| {
        let output = server.command(&["ban", "198.51.100.7", "--for", time, "--why", "a test"]);
        assert!(output.status.success(), "{}", text(&output));
    };
    ban_for("1h");
    expect(&server, CLIENT, false);
    ban_for("1s");
    let lasting = server.command(&["ban", "2001:db8::/32"]);
    assert!(lasting.status.success(), "{}", text(&lasting));
    eventually("the ban has ended", || are_answered(&server, CLIENT).into_iter().all(|it| it));
    eventually("that it has ended is on disk", || rows(&server).contains("its time is over"));
    let output = server.command(&["ban", "198.51.100.7"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(server.command(&["reload"]).status.success());
    let put =
        ask(&server, "PUT", "/settings/local.tv.home.arpa", &[JSON, "If-None-Match: *"], "\"192.0.2.2\"");
    assert_eq!(put.status, 200, "{put:?}");
    expect(&server, CLIENT, false);
    let events = get_events(&server);
    assert!(events.contains("\"what\":\"ban\"") && events.contains("198.51.100.7/32"), "{events}");
    assert!(server.command(&["unban", "198.51.100.7"]).status.success());
    expect(&server, CLIENT, true);
    let all = text(&server.command(&["bans"]));
    assert!(all.starts_with("2001:db8::/32 (operator)") && all.lines().count() == 1, "{all}");
}

fn get_events(server: &Server) -> String {
    text(&server.command(&["events", "--json"])).replace("\": ", "\":")
}

#[test]
fn who_is_not_banned_is_told_why() {
    let more = "limits: {rate: {per-second: 1000, exempt: [198.51.102.0/24]}}\ndeny: [203.0.113.0/24]\n\
                sets: {bad: {dynamic: {holds: addresses}}}\ndeny-set: bad\n";
    let (_stub, server) = start(more);
    for (body, status, why) in [
        ("{\"prefix\": \"127.0.0.1\"}", 409, "this machine"),
        ("{\"prefix\": \"0.0.0.0/0\"}", 409, "too wide"),
        ("{\"prefix\": \"::/0\"}", 409, "too wide"),
        ("{\"prefix\": \"198.51.102.9\"}", 409, "limits.rate.exempt"),
        ("{\"prefix\": \"198.51.0.0/16\"}", 409, "limits.rate.exempt"),
        ("{\"prefix\": \"198.51.100.0/33\"}", 400, "prefix length"),
        ("{\"prefix\": \"nobody\"}", 400, "not an address prefix"),
        ("{\"prefix\": \"198.51.100.7\", \"for-s\": 0}", 400, "1 to"),
        ("{\"prefix\": \"198.51.100.7\", \"for-s\": 18446744073709551615}", 400, "1 to"),
        ("{\"prefix\": \"198.51.100.7\", \"why\": \"two\\nlines\"}", 400, "one line"),
        ("{\"prefix\": \"198.51.100.7\", \"other\": 1}", 400, "other"),
        ("{}", 400, "prefix"),
    ] {
        let heard = ban(&server, body);
        assert!(heard.status == status && heard.body.contains(why), "{body}: {heard:?}");
    }
    let before = rows(&server).lines().count();
    let dry = ask(&server, "POST", "/bans?dry-run", &[JSON], "{\"prefix\": \"198.51.100.7\"}");
    assert!(dry.status == 200 && dry.json().contains("\"is-dry-run\": true"), "{dry:?}");
    assert_eq!(rows(&server).lines().count(), before, "nothing has changed");
    expect(&server, CLIENT, true);

    assert!(server.command(&["set", "add", "bad", "203.0.114.0/24"]).status.success());
    for (prefix, why) in [
        ("203.0.113.0%2F24", "setting deny"),
        ("203.0.113.9", "203.0.113.0/24"),
        ("203.0.114.0%2F24", "deny-set"),
    ] {
        let heard = ask(&server, "DELETE", &format!("/bans/{prefix}"), &[], "");
        assert!(heard.status == 409 && heard.body.contains(why), "{prefix}: {heard:?}");
    }
    assert_eq!(ban(&server, "{\"prefix\": \"203.0.113.0/24\"}").status, 200, "also by an operator");
    let first = get(&server, "/bans?count=1");
    assert!(first.json().contains("\"source\": \"configuration\""), "{first:?}");
    let next = first.header("link").expect("more").to_owned();
    let next = next.trim_start_matches("</api/v1").split_once('>').expect("a URL").0.to_owned();
    let rest = get(&server, &next).json();
    assert!(
        rest.contains("\"source\": \"operator\"") && !rest.contains("\"source\": \"configuration\""),
        "{rest}"
    );
    let sources = get(&server, "/bans").json();
    assert!(sources.contains("\"set\": \"bad\""), "{sources}");
    assert_eq!(get(&server, "/bans?after=nothing").status, 400);
}

#[test]
fn a_ban_by_the_rate_limit_is_listed_and_ended() {
    let (_stub, server) =
        start("limits: {rate: {per-second: 1, burst: 1, ban-for: 1h, ban-after: 5, slip: 0}}\n");
    let socket = UdpClient::connect(server.another());
    eventually("it is banned", || {
        (0..8).for_each(|id| socket.send(&from(CLIENT, id)));
        get(&server, "/bans").json().contains("\"source\": \"rate-limit\"")
    });
    let inside = ask(&server, "DELETE", "/bans/198.51.100.7", &[], "");
    assert!(inside.status == 409 && inside.body.contains("198.51.100.0/24 is"), "{inside:?}");
    assert_eq!(ask(&server, "DELETE", "/bans/198.51.100.0%2F24", &[], "").status, 428);
    let ended = ask(&server, "DELETE", "/bans/198.51.100.0%2F24", &["If-Match: *"], "");
    assert!(ended.status == 200 && ended.json().contains("\"changed\": 1"), "{ended:?}");
    assert!(!get(&server, "/bans").json().contains("rate-limit"));
    assert!(rows(&server).contains("unban"), "{}", rows(&server));
}

#[test]
fn a_ban_that_ends_while_the_server_is_killed_has_ended() {
    let (stub, server) = start("");
    assert_eq!(ban(&server, "{\"prefix\": \"198.51.100.7\", \"for-s\": 1}").status, 200);
    server.signal("KILL");
    let (_, _, directory) = server.stop_by("KILL");
    let server = Server::start_in(directory, &yaml(&stub, ""));
    eventually("the ban has ended", || are_answered(&server, CLIENT).into_iter().all(|it| it));
    eventually("that it has ended is on disk", || rows(&server).contains("its time is over"));
}

#[test]
fn a_ban_that_is_only_checked_is_shown_as_it_would_be() {
    let (_stub, server) = start("");
    let check = |body: &str| ask(&server, "POST", "/bans?dry-run", &[JSON], body);
    let body = "{\"prefix\": \"198.51.100.0/24\", \"why\": \"noise\", \"for-s\": 600}";
    let would = check(body).json();
    for part in ["\"changed\": 1", "\"prefix\": \"198.51.100.0/24\"", "\"why\": \"noise\"", "\"until\": \""] {
        assert!(would.contains(part), "{part}: {would}");
    }
    assert_eq!(get(&server, "/bans/198.51.100.0%2F24").status, 404);
    expect(&server, CLIENT, true);
    let forever = "{\"prefix\": \"198.51.100.0/24\", \"why\": \"noise\"}";
    assert!(ban(&server, forever).json().contains("\"changed\": 1"));
    let before = rows(&server);
    assert!(check(forever).json().contains("\"changed\": 0"));
    assert!(check("{\"prefix\": \"0.0.0.0/1\"}").status == 409);
    let same = ban(&server, forever);
    assert!(same.status == 200 && same.json().contains("\"changed\": 0"), "{same:?}");
    assert_eq!(rows(&server), before, "neither a check nor the same ban has a row");
}

#[test]
fn a_helper_bans_few_and_leaves_bans_of_others() {
    let (server, at, _stub) = start_network("");
    let who = shown(&token(&server, "help", &["--role", "helper"]));
    let operator = shown(&token(&server, "operate", &["--role", "operator"]));
    let ban = |who: &str, prefix: &str| {
        let body = format!("{{\"prefix\": \"{prefix}\"}}");
        curl(at, "/api/v1/bans", &["--header", who, "--header", JSON, "--data", &body])
    };
    let unban = |who: &str| {
        let any = ["--request", "DELETE", "--header", who, "--header", "If-Match: *"];
        curl(at, "/api/v1/bans/198.51.100.7", &any)
    };
    for prefix in ["198.51.100.0/23", "10.0.0.0/8", "2001:db8::/47"] {
        for who in [&who, &operator] {
            let (status, body) = ban(who, prefix);
            assert!(status == 403 && body.contains("admin"), "{prefix}: {status} {body}");
        }
    }
    for (prefix, expect) in [("2001:db8::/49", 403), ("2001:db8::/63", 403), ("2001:db8::/56", 200)] {
        let (status, body) = ban(&who, prefix);
        assert!(status == expect, "{prefix}: {status} {body}");
    }
    assert_eq!(ban(&operator, "2001:db8::/63").0, 200, "an operator bans any length");
    for prefix in ["128.0.0.0/1", "2000::/3"] {
        let output = server.command(&["ban", prefix]);
        assert!(!output.status.success() && text(&output).contains("too wide"), "{}", text(&output));
    }
    assert!(server.command(&["ban", "198.0.0.0/8"]).status.success(), "an admin may");
    assert_eq!(ban(&who, "198.51.100.7").0, 200);
    assert_eq!(unban(&who).0, 200, "of a helper");
    assert!(server.command(&["ban", "198.51.100.7", "--why", "noise"]).status.success());
    assert_eq!((ban(&who, "198.51.100.7").0, unban(&who).0), (403, 403));
    assert!(text(&server.command(&["bans"])).contains("noise"));
    assert_eq!(unban(&operator).0, 200);
}

#[test]
fn a_helper_may_ban_and_a_viewer_may_look() {
    let (server, at, _stub) = start_network("");
    let ban = |who: &str, prefix: &str| {
        let body = format!("{{\"prefix\": \"{prefix}\"}}");
        curl(at, "/api/v1/bans", &["--header", who, "--header", JSON, "--data", &body]).0
    };
    for (role, status) in [("viewer", 403), ("helper", 200)] {
        let who = shown(&token(&server, role, &["--role", role]));
        assert_eq!(ban(&who, "198.51.100.7"), status, "{role}");
        assert_eq!(curl(at, "/api/v1/bans", &["--header", &who]).0, 200, "{role}");
    }
    let seen = |who: &str, path: &str| curl(at, path, &["--header", who]).1;
    let why = ["--header", JSON, "--data", "{\"prefix\": \"198.51.100.9\", \"why\": \"noise\"}"];
    let [viewer, helper] =
        ["viewer", "helper"].map(|role| shown(&token(&server, &format!("{role}2"), &["--role", role])));
    assert_eq!(curl(at, "/api/v1/bans", &[&why[..], &["--header", &helper]].concat()).0, 200);
    for path in ["/api/v1/bans", "/api/v1/bans/198.51.100.9"] {
        assert!(!seen(&viewer, path).contains("noise"), "{path}");
        assert!(seen(&helper, path).contains("noise"), "{path}");
    }
    let bound = shown(&token(&server, "bound", &["--role", "admin", "--path", "local"]));
    assert_eq!(ban(&bound, "198.51.100.8"), 403);
}
