//! Events that the server sends to others: who gets them, and how they are known to be its own.

use std::io::Write as _;
use std::process::{Command, Stdio};

use testkit::web::Request;
use testkit::{Ask, Page, Script, Server, Stub, Web, contains, eventually, forwarding, lacks, tool};
use wire::Rtype;

use super::network::text;
use super::{JSON, ask, get};

/// 24 octets in base64.
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Verifies a request as the Standard Webhooks specification has it, in nothing of ours.
const VERIFY: &str = "
import base64, hashlib, hmac, json, sys, time
given = json.load(sys.stdin)
head, body = given['headers'], given['body'].encode()
secret = base64.b64decode(sys.argv[1].removeprefix('whsec_'))
assert abs(time.time() - int(head['webhook-timestamp'])) < 300, 'time'
signed = f\"{head['webhook-id']}.{head['webhook-timestamp']}.\".encode() + body
expected = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
signatures = [part.partition(',') for part in head['webhook-signature'].split(' ')]
assert any(version == 'v1' and hmac.compare_digest(it, expected) for version, _, it in signatures), 'signature'
assert json.loads(body)['id'] == head['webhook-id'], 'id'
";

pub(crate) fn is_verified(request: &Request, secret: &str) -> bool {
    let mut command = Command::new(tool("python/bin/python"));
    command.args(["-c", VERIFY, secret]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("Python");
    let header = |name: &str| format!("\"{name}\": \"{}\"", request.headers[name]);
    let headers = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(header).join(", ");
    let body = request.body.replace('\\', "\\\\").replace('"', "\\\"");
    let given = format!("{{\"headers\": {{{headers}}}, \"body\": \"{body}\"}}");
    child.stdin.take().expect("a pipe").write_all(given.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = text(&output);
    assert!(output.status.success() || said.contains("AssertionError: signature"), "{said}");
    output.status.success()
}

/// Changes a setting.
fn change(server: &Server, number: usize) {
    let edits = format!(
        "{{\"edits\": [{{\"set\": {{\"path\": \"local.a.home.arpa\", \"text\": \"192.0.2.{number}\"}}}}]}}"
    );
    assert_eq!(ask(server, "POST", "/changes", &[JSON], &edits).status, 200);
}

fn start(hooks: &str, more: &str) -> (Stub, Server) {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("hook.key"), format!("{SECRET}\n")).expect("written");
    let stub = Stub::start(Script::default());
    let yaml = forwarding(&[&stub], &format!("control: {{webhooks: {{{hooks}}}}}\n{more}"));
    (stub, Server::start_in(directory, &yaml))
}

#[test]
fn an_event_is_signed_so_that_others_can_verify_it_and_the_secret_is_nowhere() {
    let receiver = Web::start(|_| Page::status("204 No Content", ""));
    let url = receiver.url("/hook?token=hush");
    let hook = format!("hook: {{url: \"{url}\", kinds: [change], secret: \"file:hook.key\"}}");
    let (_stub, server) = start(&hook, "log: {level: debug}\n");
    assert_eq!(ask(&server, "POST", "/reload", &[], "").status, 200);
    change(&server, 7);
    eventually("it is delivered", || !receiver.heard().is_empty());
    let heard = receiver.heard();
    assert_eq!(heard.len(), 1, "a reload is of another kind: {heard:?}");
    contains(&heard[0].line, "POST /hook?token=hush ");
    contains(&heard[0].headers["content-type"], "application/json");
    contains(&heard[0].body, "\"kind\":\"change\"");
    contains(&heard[0].body, "\"paths\":[\"local.a.home.arpa\"]");
    assert!(is_verified(&heard[0], SECRET));
    let other = SECRET.replace("MfKQ", "MfKR");
    assert!(!is_verified(&heard[0], &other), "another secret");
    let changed = Request { body: heard[0].body.replace("\"root\"", "\"noon\""), ..heard[0].clone() };
    assert_ne!(changed.body, heard[0].body);
    assert!(!is_verified(&changed, SECRET), "another body");
    let shown = get(&server, "/configuration").body;
    contains(&shown, "file:hook.key");
    let metrics = text(&server.command(&["stats", "--prometheus"]));
    contains(&metrics, "gannet_webhook_events_total{webhook=\"hook\",outcome=\"delivered\"} 1");
    let (_, log, _) = server.stop();
    for secret in [SECRET, "MfKQ9r8G", "hush"] {
        lacks(&log.join("\n"), secret);
        lacks(&metrics, secret);
    }
    lacks(&shown, "MfKQ9r8G");
}

#[test]
fn while_a_secret_changes_events_are_signed_with_both() {
    let receiver = Web::start(|_| Page::status("204 No Content", ""));
    let other = SECRET.replace("MfKQ", "MfKR");
    let hook = |secrets: &str| {
        format!(
            "control: {{webhooks: {{hook: {{url: \"{}\", kinds: [change], {secrets}}}}}}}\n",
            receiver.url("/")
        )
    };
    let directory = tempfile::tempdir().expect("a directory");
    for (file, secret) in [("old.key", SECRET), ("new.key", &other)] {
        std::fs::write(directory.path().join(file), secret).expect("written");
    }
    let stub = Stub::start(Script::default());
    let yaml = |secrets: &str| forwarding(&[&stub], &hook(secrets));
    let server = Server::start_in(directory, &yaml("secret: \"file:old.key\""));
    let delivered = |number: usize| {
        change(&server, number);
        eventually("it is delivered", || receiver.heard().len() == number);
        let request = receiver.heard().pop().expect("a request");
        [SECRET, &other].map(|secret| is_verified(&request, secret))
    };
    assert_eq!(delivered(1), [true, false]);
    let steps = [
        ("secret: \"file:new.key\", previous-secret: \"file:old.key\"", [true, true]),
        ("secret: \"file:new.key\"", [false, true]),
    ];
    for (number, (secrets, expected)) in steps.into_iter().enumerate() {
        server.write_config(&yaml(secrets));
        assert_eq!(ask(&server, "POST", "/reload", &[], "").status, 200);
        assert_eq!(delivered(number + 2), expected, "{secrets}");
    }
    let shown = get(&server, "/configuration").body;
    lacks(&shown, "MfK");
}

#[test]
fn an_event_is_sent_again_and_a_receiver_that_is_silent_holds_up_nobody() {
    let good = Web::start(|_| Page::status("503 Later", ""));
    let silent = Web::start(|_| Page::found("half of a body").stalling());
    let never = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let hook = |name: &str, url: &str| format!("{name}: {{url: \"{url}\", secret: \"file:hook.key\"}}");
    let never_at = format!("http://{}/", never.local_addr().expect("an address"));
    let hooks = [hook("good", &good.url("/")), hook("silent", &silent.url("/")), hook("never", &never_at)];
    let (_stub, mut server) = start(&hooks.join(", "), "");
    change(&server, 7);
    eventually("it is tried", || !good.heard().is_empty());
    good.behave(|_| Page::found("ok"));
    for number in 8..12 {
        change(&server, number);
        server.ask(&Ask::new(&format!("n{number}.example.org"), Rtype::A));
    }
    eventually("all are delivered", || {
        good.heard().iter().filter(|it| it.body.contains("change")).count() >= 6
    });
    let ids: Vec<String> = good.heard().iter().map(|it| it.headers["webhook-id"].clone()).collect();
    assert_eq!(ids[0], ids[1], "the same event again");
    let mut later = ids[1..].to_vec();
    later.sort_by_key(|id| id.rsplit_once('-').and_then(|(_, number)| number.parse::<u64>().ok()));
    assert_eq!(later, ids[1..], "in their order");
    assert!(good.heard().iter().all(|request| is_verified(request, SECRET)));
    // What answers has taken it, whatever becomes of its body.
    eventually("the other one has them", || silent.heard().len() >= 5);
    server.wait_for_log("an event is not delivered, and is tried again");
    server.wait_for_log("events are delivered again");
    drop(never);
}

#[test]
fn mistakes_in_webhooks_are_told_at_their_place() {
    let (_stub, server) = start("", "");
    let check = |hook: &str, expected: &str| {
        let text = format!("{{hook: {{{hook}}}}}").replace('"', "\\\"");
        let edits =
            format!("{{\"edits\": [{{\"set\": {{\"path\": \"control.webhooks\", \"text\": \"{text}\"}}}}]}}");
        let heard = ask(&server, "POST", "/changes", &[JSON], &edits);
        assert_eq!(heard.status, 422, "{hook}: {heard:?}");
        contains(&heard.body, expected);
        lacks(&heard.body, "c2VjcmV0");
    };
    check("url: \"https://hooks.example.org/\"", "\\\"secret\\\" is missing");
    check("secret: \"file:hook.key\"", "\\\"url\\\" is missing");
    check("url: \"http://hooks.example.org/\", secret: \"file:hook.key\"", "could be read along");
    check("url: \"https://hooks.example.org/\", secret: c2VjcmV0", "no secret to sign with");
    check("url: \"https://hooks.example.org/\", secret: \"file:other.key\"", "cannot read");
    let previous =
        "url: \"https://hooks.example.org/\", secret: \"file:hook.key\", previous-secret: c2VjcmV0";
    check(previous, "no secret to sign with");
    check("url: \"https://hooks.example.org/\", secret: \"file:hook.key\", kinds: [fly]", "change");
}
