//! Outages as clients see them: what they get meanwhile, and how soon the end of one shows.

use std::net::Ipv4Addr;
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use testkit::{Answer, Clock, Heard, Script, Server, Stub, UdpClient, eventually, forwarding};
use wire::{OptionCode, Rcode};

use super::ask;

/// Stale answers are kept for an hour; a client waits for a minute before it gets one, a failure is
/// remembered for minutes.
const PATIENT: &str = "cache: {main: {stale: 1h, stale-client-timeout: 1m, failure-ttl: 5m}}";

/// Starts a server with one worker, which knows what any of its clients has met.
fn start() -> (Stub, Server) {
    let stub = Stub::start(brief());
    let server = Server::start(&forwarding(&[&stub], PATIENT).replace("workers: 2", "workers: 1"));
    (stub, server)
}

/// Answers for one second.
fn brief() -> Script {
    Script::always(Answer::a(1, Ipv4Addr::new(192, 0, 2, 1)))
}

/// RFC 8914 §4.4.
fn is_stale(heard: &Heard) -> bool {
    heard.errors().iter().any(|(code, _)| *code == 3)
}

fn is_fresh(heard: &Heard) -> bool {
    heard.rcode() == Rcode::NOERROR && heard.errors().is_empty() && heard.answers().len() == 1
}

/// Asks for a name through an outage; as soon as the server knows that the upstream is back, the
/// name is fresh.
fn check_recovery(begin: impl FnOnce(&mut Stub), end: impl FnOnce(&mut Stub)) {
    let (mut stub, server) = start();
    let client = UdpClient::connect(server.address());
    assert!(is_fresh(&client.ask(&ask("known.example.org"))));
    begin(&mut stub);
    let mut number = 0;
    // Both are remembered as failures, the one with a stale answer and the one without.
    eventually("both have failed", || {
        number += 1;
        let _ = client.ask(&ask(&format!("dead{number}.example.org")));
        let known = client.ask(&ask("known.example.org"));
        let unknown = client.ask(&ask("unknown.example.org"));
        is_stale(&known) && unknown.errors().iter().any(|(code, _)| *code == 13)
    });
    end(&mut stub);
    eventually("the upstream is used again", || {
        number += 1;
        let _ = (client.ask(&ask("known.example.org")), client.ask(&ask("unknown.example.org")));
        is_fresh(&client.ask(&ask(&format!("back{number}.example.org"))))
    });
    for name in ["known.example.org", "unknown.example.org"] {
        let heard = client.ask(&ask(name));
        assert!(is_fresh(&heard), "{heard:?}");
    }
}

#[test]
fn names_asked_for_while_an_upstream_refused_are_fresh_as_soon_as_it_is_back() {
    check_recovery(Stub::die, Stub::revive);
}

#[test]
fn names_asked_for_while_an_upstream_was_silent_are_fresh_as_soon_as_it_is_back() {
    check_recovery(|stub| stub.behave(Script::silent()), |stub| stub.behave(brief()));
}

/// Asks for many names with stale answers while the upstream counts as down: all are served, and
/// few are sent to it.
fn check_outage(begin: impl FnOnce(&mut Stub)) {
    const NAMES: usize = 100;
    let (mut stub, mut server) = start();
    let client = UdpClient::connect(server.address());
    let name = |number: usize| format!("n{number}.example.org");
    for number in 0..NAMES {
        assert!(is_fresh(&client.ask(&ask(&name(number)))));
    }
    begin(&mut stub);
    // The first question of the outage may wait; the worker that answers this client knows then.
    let mut fails = 0;
    eventually("the upstream counts as down", || {
        fails += 1;
        let _ = client.ask(&ask(&format!("dead{fails}.example.org")));
        server.log().iter().any(|line| line.contains("does not answer") || line.contains("down"))
    });
    stub.forget();
    eventually("all are served from what has expired", || {
        (0..NAMES).all(|number| {
            let heard = client.ask(&ask(&name(number)));
            assert_eq!(heard.answers().len(), 1, "{heard:?}");
            is_stale(&heard)
        })
    });
    let asked = stub.seen().iter().filter(|asked| asked.qname.starts_with('n')).count();
    assert!(asked <= NAMES / 4, "{asked} of {NAMES} were sent to an upstream that is down");
}

#[test]
fn while_an_upstream_is_silent_stale_answers_come_at_once() {
    check_outage(|stub| stub.behave(Script::silent()));
}

#[test]
fn while_an_upstream_refuses_stale_answers_come_at_once() {
    check_outage(Stub::die);
}

/// A server whose clock on the wall can be set.
struct Stepped {
    server: Server,
    clock: Clock,
}

impl Stepped {
    fn start(yaml: &str) -> Self {
        let clock = Clock::default();
        let environment = clock.environment();
        let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
        let directory = TempDir::new().expect("a directory");
        Self { server: Server::start_with(directory, yaml, &environment), clock }
    }

    /// Puts the clock so many seconds ahead of the true time, and sees that the server reads it so.
    fn set(&self, seconds: i64) {
        self.clock.set_wall(seconds);
        let truth = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is set").as_secs() as i64;
        // RFC 9018 §4.3: a server cookie has the time it was made at in its second word.
        let heard = self.server.ask(&ask("clock.example.org").option(OptionCode::COOKIE, b"a client"));
        let cookie = heard.option(OptionCode::COOKIE).expect("a cookie");
        let time = u32::from_be_bytes([cookie[12], cookie[13], cookie[14], cookie[15]]);
        let ahead = i64::from(time) - truth;
        assert!((seconds..seconds + 20).contains(&ahead), "set to {seconds}, read as {ahead}");
    }
}

#[test]
fn answers_live_as_long_as_they_should_however_the_wall_clock_is_set() {
    let stub = Stub::start(Script::answering(|asked| {
        let ttl = if asked.qname.starts_with("brief") { 2 } else { 1000 };
        Answer::a(ttl, Ipv4Addr::new(192, 0, 2, 1))
    }));
    let stepped = Stepped::start(&forwarding(&[&stub], "cache: {main: {prefetch: off, stale: off}}"));
    let server = &stepped.server;
    const DAY: i64 = 86_400;
    let mut left = server.ask(&ask("long.example.org")).ttls()[0];
    for (number, seconds) in [3600, DAY, -DAY, 0].into_iter().enumerate() {
        stepped.set(seconds);
        // What came before the step is there, and no younger than it was.
        let now = server.ask(&ask("long.example.org")).ttls()[0];
        assert!(now <= left && now > 900, "{now} s, {left} s before");
        left = now;
        // What comes after it ends in its time; so does what came when the clock was ahead of the
        // next step.
        let brief = format!("brief{number}.example.org");
        server.ask(&ask(&brief));
        stepped.set(seconds - 10);
        eventually("a brief answer has ended", || {
            server.ask(&ask(&brief));
            stub.count(&format!("{brief}.")) >= 2
        });
    }
    assert_eq!(stub.count("long.example.org."), 1, "the cache was emptied");
}
