//! The built program and upstreams that lose, delay, cut, lie, fail, die and come back.

use std::net::Ipv4Addr;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{Answer, Ask, Lie, Script, Server, Stub, UdpClient, eventually, forwarding};
use wire::{Flags, Rcode, Rtype};

mod hostile;
mod outages;

fn start(script: Script) -> (Stub, Server) {
    start_with(script, "")
}

fn start_with(script: Script, more: &str) -> (Stub, Server) {
    let stub = Stub::start(script);
    let server = Server::start(&forwarding(&[&stub], more));
    (stub, server)
}

fn ask(name: &str) -> Ask {
    Ask::new(name, Rtype::A).edns(1232)
}

fn address(last: u8) -> Answer {
    Answer::a(300, Ipv4Addr::new(192, 0, 2, last))
}

#[test]
fn every_query_is_answered_when_five_percent_of_packets_are_lost() {
    let (_stub, server) = start(Script::default().losing(5));
    let client = UdpClient::connect(server.address());
    for id in 0..300 {
        let heard = client.ask(&ask(&format!("n{id}.example.org")).id(id));
        assert_eq!((heard.id(), heard.rcode(), heard.answers().len()), (id, Rcode::NOERROR, 1), "{heard:?}");
    }
}

#[test]
fn slow_upstreams_do_not_hold_up_what_is_known() {
    let (stub, server) = start(Script::default());
    let client = UdpClient::connect(server.address());
    client.ask(&ask("known.example.org"));
    stub.behave(Script::default().delayed(Duration::from_millis(400)));
    client.send(&ask("slow.example.org").id(1).bytes());
    stub.wait_for("slow.example.org.", 1);
    assert_eq!(client.ask(&ask("known.example.org").id(2)).id(), 2);
    assert_eq!(client.receive().id(), 1);
}

#[test]
fn what_is_truncated_is_asked_again_over_tcp() {
    let (stub, server) = start(Script::default().truncating());
    let heard = server.ask(&ask("cut.example.org"));
    assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1));
    assert!(!heard.has(Flags::TC));
    let transports: Vec<_> = stub.seen().iter().map(|asked| asked.over_tcp).collect();
    assert_eq!(transports.last(), Some(&true), "{transports:?}");
}

#[test]
fn lies_are_not_believed_and_the_truth_behind_them_is() {
    for lie in [Lie::Id, Lie::Question, Lie::NoQuestion, Lie::NotAReply, Lie::Garbage] {
        let (_stub, server) = start(Script::default().lying_first(lie));
        let heard = server.ask(&ask("truth.example.org"));
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1), "{lie:?}: {heard:?}");
    }
}

#[test]
fn nothing_but_lies_is_a_failure_that_is_explained_and_passes() {
    let more = "cache: {main: {failure-ttl: 1s}}";
    let (stub, server) = start_with(Script::default().lying(Lie::Id), more);
    let heard = server.ask(&ask("liar.example.org"));
    assert_eq!(heard.rcode(), Rcode::SERVFAIL);
    assert!(!heard.errors().is_empty(), "{heard:?}");
    stub.behave(Script::default());
    eventually("the upstream is believed again", || {
        server.ask(&ask("liar.example.org")).rcode() == Rcode::NOERROR
    });
}

#[test]
fn a_dead_upstream_is_found_again_when_it_comes_back() {
    let (mut stub, server) = start(Script::default());
    server.ask(&ask("before.example.org"));
    stub.die();
    for number in 0..20 {
        let heard = server.ask(&ask(&format!("dead{number}.example.org")));
        assert_eq!(heard.rcode(), Rcode::SERVFAIL);
        assert!(!heard.errors().is_empty(), "{heard:?}");
    }
    // What it knows, it still knows.
    assert_eq!(server.ask(&ask("before.example.org")).rcode(), Rcode::NOERROR);
    stub.revive();
    let mut number = 0;
    eventually("the upstream is used again", || {
        number += 1;
        server.ask(&ask(&format!("back{number}.example.org"))).rcode() == Rcode::NOERROR
    });
}

#[test]
fn identical_questions_share_one_fetch() {
    let (release, released) = channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let script = Script::answering(move |asked| {
        if asked.qname.starts_with("same.") {
            drop(released.lock().map(|released| released.recv_timeout(Duration::from_secs(5))));
        }
        address(1)
    });
    let (stub, server) = start(script);
    // One socket is one worker.
    let client = UdpClient::connect(server.address());
    for id in 0..100 {
        let name = if id % 2 == 0 { "same.example.org" } else { "SAME.example.org" };
        client.send(&ask(name).id(id).bytes());
    }
    // The reply to this one says that the hundred before it were read.
    assert_eq!(client.ask(&Ask::new("localhost", Rtype::A).id(1000)).id(), 1000);
    release.send(()).expect("the stub waits");
    drop(release);
    let mut ids: Vec<_> =
        (0..100).map(|_| client.receive()).map(|heard| (heard.id(), heard.answers().len())).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..100).map(|id| (id, 1)).collect::<Vec<_>>());
    // A retransmission is the same fetch: it has its ID or at least its socket's time; hundred
    // questions are not.
    let fetches = stub.count("same.example.org.");
    assert!(fetches <= 3, "{fetches} upstream queries for one question");
}

#[test]
fn the_fastest_of_a_race_wins_and_a_failure_never_does() {
    let slow = Stub::start(Script::always(address(1)).delayed(Duration::from_millis(100)));
    let fast = Stub::start(Script::always(address(2)));
    let broken = Stub::start(Script::always(Answer::rcode(Rcode::SERVFAIL)));
    let config = |upstreams: [&Stub; 2]| {
        let [a, b] = upstreams.map(Stub::address);
        format!(
            "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
             upstreams: {{default: {{pick: race(2), servers: [\"{a}\", \"{b}\"]}}}}\n"
        )
    };
    let server = Server::start(&config([&slow, &fast]));
    assert_eq!(server.ask(&ask("race.example.org")).answers(), ["race.example.org. 300 A 192.0.2.2"]);
    let server = Server::start(&config([&broken, &slow]));
    assert_eq!(server.ask(&ask("race.example.org")).answers(), ["race.example.org. 300 A 192.0.2.1"]);
}

#[test]
fn a_name_goes_to_its_server_whoever_asks() {
    let stubs = [1, 2].map(|last| Stub::start(Script::always(address(last))));
    let [a, b] = stubs.each_ref().map(Stub::address);
    let server = Server::start(&format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{pick: hashed, hedge: off, servers: [\"{a}\", \"{b}\"]}}}}\n\
         policy: {{main: [forward(default)]}}\n"
    ));
    let of = |name: &str| server.ask(&ask(name)).answers().concat().ends_with('1');
    let firsts: Vec<bool> = (0..40).map(|number| of(&format!("n{number}.example.org"))).collect();
    let again: Vec<bool> = (0..40).map(|number| of(&format!("N{number}.Example.ORG"))).collect();
    assert_eq!(firsts, again);
    assert!(firsts.contains(&true) && firsts.contains(&false), "{firsts:?}");
}

#[test]
fn the_next_server_is_asked_when_one_fails() {
    let broken = Stub::start(Script::always(Answer::rcode(Rcode::SERVFAIL)));
    let good = Stub::start(Script::default());
    let [a, b] = [&broken, &good].map(Stub::address);
    let server = Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{pick: ordered, fallback-on: [servfail], servers: [\"{a}\", \"{b}\"]}}}}\n"
    ));
    for number in 0..10 {
        assert_eq!(server.ask(&ask(&format!("n{number}.example.org"))).rcode(), Rcode::NOERROR);
    }
    assert!(!broken.seen().is_empty());
}

#[test]
fn names_that_do_not_exist_are_remembered() {
    let (stub, server) = start(Script::always(Answer::negative(Rcode::NXDOMAIN, 600, 60)));
    for _ in 0..3 {
        let heard = server.ask(&ask("nothing.example.org"));
        assert_eq!(heard.rcode(), Rcode::NXDOMAIN);
        assert_eq!(heard.authorities().len(), 1);
    }
    assert_eq!(stub.count("nothing.example.org."), 1);
}

#[test]
fn failures_are_remembered_for_a_moment() {
    let (stub, server) = start(Script::always(Answer::rcode(Rcode::SERVFAIL)));
    assert_eq!(server.ask(&ask("broken.example.org")).rcode(), Rcode::SERVFAIL);
    let asked = stub.count("broken.example.org.");
    for _ in 0..5 {
        assert_eq!(server.ask(&ask("broken.example.org")).rcode(), Rcode::SERVFAIL);
    }
    assert_eq!(stub.count("broken.example.org."), asked);
}

#[test]
fn a_stale_answer_is_served_when_the_upstream_fails() {
    let more = "cache: {main: {stale: 1h, stale-client-timeout: 100ms}}";
    let (stub, server) = start_with(Script::always(Answer::a(1, Ipv4Addr::new(192, 0, 2, 1))), more);
    assert_eq!(server.ask(&ask("stale.example.org")).ttls(), [1]);
    stub.behave(Script::silent());
    eventually("the answer is stale and says so", || {
        let heard = server.ask(&ask("stale.example.org"));
        assert_eq!(heard.answers().len(), 1, "{heard:?}");
        // RFC 8914 §4.4: 3 is "Stale Answer". Its TTL is no longer than the one that it came with.
        heard.errors().first().is_some_and(|(code, _)| *code == 3) && heard.ttls() == [1]
    });
    stub.behave(Script::always(address(9)));
    eventually("a fresh answer replaces it", || {
        server.ask(&ask("stale.example.org")).answers()[0].ends_with(" A 192.0.2.9")
    });
}

/// A branch waits for the answer, and the client for the branch.
#[test]
fn a_stale_answer_that_an_alias_leads_to_is_served_when_the_client_has_waited_long_enough() {
    // Of answers that are compared none is an old one as long as others may come.
    for (rule, is_impatient) in [
        ("redirect(stale.example.org)", true),
        ("[ask(find), accept]", true),
        ("['race(find, other)', accept]", false),
    ] {
        check_stale_branch(rule, is_impatient);
    }
}

fn check_stale_branch(rule: &str, is_impatient: bool) {
    let stub = Stub::start(Script::always(Answer::a(1, Ipv4Addr::new(192, 0, 2, 1))));
    // Nothing fails before the client has lost its patience.
    let server = Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{servers: [\"{}\"], patience: {{unknown: 1s, max: 1m}}}}}}\n\
         cache: {{main: {{stale: 1h, stale-client-timeout: 1ms}}}}\n\
         policy:\n  find: [cache(main), forward(default)]\n  other: [forward(default)]\n  main:\n\
         \x20 - {{if: qname in exact:found.example.org, do: {rule}}}\n\
         \x20 - cache(main)\n  - forward(default)\n",
        stub.address()
    ));
    assert_eq!(server.ask(&ask("found.example.org")).rcode(), Rcode::NOERROR);
    stub.behave(Script::silent());
    eventually("the answer is stale", || {
        // What comes after a failure may be too late over UDP (`limits.discard-timeout`).
        let heard = server.ask_tcp(&ask("found.example.org"));
        // RFC 8914 §4.4: 3 is "Stale Answer".
        heard.errors().first().is_some_and(|(code, _)| *code == 3) && !heard.answers().is_empty()
    });
    assert_eq!(server.stat("fetch", "impatient") > 0, is_impatient, "{rule}");
    stub.behave(Script::always(address(9)));
    eventually("the fetch goes on, and fills the cache", || {
        server.ask(&ask("found.example.org")).answers().iter().any(|answer| answer.ends_with(" A 192.0.2.9"))
    });
}

#[test]
fn a_popular_answer_is_refreshed_before_it_expires() {
    let more = "cache: {main: {prefetch: 50%}}";
    let (stub, server) = start_with(Script::always(Answer::a(4, Ipv4Addr::new(192, 0, 2, 1))), more);
    let client = UdpClient::connect(server.address());
    eventually("the upstream is asked again while the answer is still good", || {
        client.ask(&ask("popular.example.org"));
        stub.count("popular.example.org.") >= 2
    });
}

#[test]
fn nothing_of_the_first_asker_leaks_to_the_second() {
    let (stub, server) = start(Script::default());
    server.ask(
        &ask("private.example.org")
            .option(wire::OptionCode(65001), b"secret")
            .option(wire::OptionCode::COOKIE, &[1; 8]),
    );
    let seen = stub.seen();
    assert!(!seen[0].bytes.windows(6).any(|window| window == b"secret"), "{:02x?}", seen[0].bytes);
    let heard = server.ask(&ask("private.example.org"));
    assert_eq!(heard.option(wire::OptionCode::COOKIE), None);
    assert_eq!(heard.option(wire::OptionCode(65001)), None);
}

#[test]
fn ids_and_ports_towards_upstreams_do_not_repeat() {
    let (stub, server) = start(Script::default());
    let client = UdpClient::connect(server.address());
    for number in 0..100 {
        client.ask(&ask(&format!("n{number}.example.org")).id(7));
    }
    let seen = stub.seen();
    let distinct = |mut values: Vec<u16>| {
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    let ids = distinct(seen.iter().map(|asked| asked.id).collect());
    let ports = distinct(seen.iter().map(|asked| asked.from.port()).collect());
    assert!(ids > 90, "{ids} different IDs in {} queries", seen.len());
    assert!(ports > 4, "{ports} different source ports in {} queries", seen.len());
}

#[test]
fn one_tcp_connection_serves_many_queries_and_its_end_is_not_their_end() {
    let stub = Stub::start(Script::default());
    let server = Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{servers: [\"tcp://{}\"]}}}}\n",
        stub.address()
    ));
    let client = UdpClient::connect(server.address());
    for number in 0..50 {
        let heard = client.ask(&ask(&format!("n{number}.example.org")));
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1));
    }
    assert!(stub.seen().iter().all(|asked| asked.over_tcp));
    assert!(stub.connections() <= 2, "{} connections", stub.connections());
    stub.behave(Script::default().closing_after(3));
    for number in 0..30 {
        let heard = client.ask(&ask(&format!("m{number}.example.org")));
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1), "m{number}: {heard:?}");
    }
}

#[test]
fn an_upstream_is_found_by_name() {
    let stub = Stub::start(Script::default());
    let directory = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::A => Answer::a(300, Ipv4Addr::LOCALHOST),
        _ => Answer::negative(Rcode::NOERROR, 300, 300),
    }));
    let server = Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{servers: [\"dns.example.net:{}\"], bootstrap: [\"{}\"]}}}}\n",
        stub.address().port(),
        directory.address()
    ));
    let mut number = 0;
    eventually("the name is resolved and the upstream used", || {
        number += 1;
        server.ask(&ask(&format!("n{number}.example.org"))).rcode() == Rcode::NOERROR
    });
    assert!(directory.count("dns.example.net.") >= 1);
    assert!(directory.seen().iter().all(|asked| asked.qname == "dns.example.net."));
}

#[test]
fn a_flood_of_distinct_names_is_shed_and_says_why() {
    let (stub, server) = start_with(Script::silent(), "limits: {waiting: 64}");
    let client = UdpClient::connect(server.address());
    for id in 0..200 {
        client.send(&ask(&format!("n{id}.example.org")).id(id).bytes());
    }
    // The bound is shared between the workers, so this one socket may have less than sixty-four.
    let mut shed = 0;
    while shed < 200 - 64 {
        let heard = client.receive();
        assert_eq!(heard.rcode(), Rcode::SERVFAIL, "{heard:?}");
        assert!(!heard.errors().is_empty(), "{heard:?}");
        shed += 1;
    }
    assert_eq!(server.ask(&Ask::new("localhost", Rtype::A)).rcode(), Rcode::NOERROR);
    let mut names: Vec<_> = stub.seen().into_iter().map(|asked| asked.qname).collect();
    names.sort();
    names.dedup();
    assert!(names.len() <= 64, "{} names were asked upstream", names.len());
}

#[test]
fn the_clients_subnet_is_its_own_affair_unless_configured() {
    // RFC 7871 §6: family 1, source prefix 24, scope 0, 198.51.100.
    let subnet = [0, 1, 24, 0, 198, 51, 100];
    for (setting, expected) in [("strip", false), ("forward", true)] {
        let stub = Stub::start(Script::default());
        let server = Server::start(&format!(
            "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
             upstreams: {{default: {{client-subnet: {setting}, servers: [\"{}\"]}}}}\n",
            stub.address()
        ));
        server.ask(&ask("subnet.example.org").option(wire::OptionCode::CLIENT_SUBNET, &subnet));
        let seen = stub.seen();
        let has_subnet = seen[0].bytes.windows(3).any(|window| window == [198, 51, 100]);
        assert_eq!(has_subnet, expected, "{setting}");
    }
}
