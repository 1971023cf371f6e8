//! What one client, or one upstream, can do to the others: nothing.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testkit::{
    Answer, Ask, Script, Server, Stub, TcpClient, TlsClient, UdpClient, certificate, eventually, forwarding,
};
use wire::{Flags, OptionCode, Rcode, Rtype, Section};

use super::{address, ask, start, start_with};

/// Has no answer for names below `dead.example.org`, and an address for all others.
fn half_dead() -> Script {
    Script::answering(|asked| {
        if asked.qname.ends_with(".dead.example.org.") { Answer::silence() } else { address(1) }
    })
}

fn own(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

/// Says that an attack is over, also when what was tried under it has failed.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `attack` until the block is done.
fn while_attacked(attack: impl Fn(u64) + Send + Sync, during: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !is_over.load(Ordering::Relaxed) {
                attack(round);
                round += 1;
            }
        });
        let _over = Over(&is_over);
        during();
    });
}

#[test]
fn names_without_an_answer_that_one_client_asks_cost_others_nothing() {
    // A small table, so that a machine that is slow fills it as well.
    let (stub, server) = start_with(half_dead(), "limits: {waiting: 2048}");
    let greedy = UdpClient::connect_from(own(66), server.address());
    greedy.set_patience(Duration::from_millis(20));
    let attack = |round: u64| {
        for i in 0..32 {
            greedy.send(&ask(&format!("n{round}-{i}.dead.example.org")).bytes());
        }
        // As fast as the server does: what the kernel's queue in front of it loses is not what is
        // looked at.
        let mut left = 32;
        while left > 0 && greedy.try_receive().is_ok() {
            left -= 1;
        }
    };
    while_attacked(attack, || {
        eventually("its share is taken", || server.stat("fetch", "shed_client") > 100);
        let clients: Vec<UdpClient> =
            (2..6).map(|last| UdpClient::connect_from(own(last), server.address())).collect();
        for round in 0..30 {
            for (number, client) in clients.iter().enumerate() {
                let heard = client.ask(&ask(&format!("fresh{number}-{round}.example.org")).id(round));
                assert_eq!((heard.id(), heard.rcode()), (round, Rcode::NOERROR), "{heard:?}");
            }
        }
    });
    assert_eq!(server.stat("fetch", "upstreams_down"), 0);
    drop(stub);
}

#[test]
fn many_connections_of_one_client_cost_others_nothing() {
    let (_stub, server) = start_with(half_dead(), "limits: {waiting: 2048}");
    let mut connections = Vec::new();
    for number in 0..40 {
        let mut connection = TcpClient::connect(server.address());
        let queries: Vec<Vec<u8>> =
            (0..100).map(|i| ask(&format!("n{number}-{i}.dead.example.org")).id(i).bytes()).collect();
        connection.send(queries.iter().map(Vec::as_slice));
        connections.push(connection);
    }
    eventually("its share is taken", || {
        server.stat("fetch", "shed_client") + server.stat("fetch", "shed_oldest") > 0
    });
    let neighbour = UdpClient::connect_from(own(2), server.address());
    for id in 0..50 {
        let heard = neighbour.ask(&ask(&format!("fresh{id}.example.org")).id(id));
        assert_eq!((heard.id(), heard.rcode()), (id, Rcode::NOERROR), "{heard:?}");
    }
}

/// Queries over TLS that give way to others, and connections that have gone by then
/// (CVE-2026-50046).
#[test]
fn queries_over_tls_give_way_and_connections_that_have_gone_harm_nobody() {
    const NAME: &str = "dns.example.org";
    let directory = TempDir::new().expect("a temporary directory");
    certificate(directory.path(), &[NAME]);
    let trusted = directory.path().join("certificate.pem");
    let stub = Stub::start(half_dead());
    let settings = forwarding(&[&stub], "limits: {waiting: 64}").replace("workers: 2", "workers: 1");
    let listen = "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: tls}]\n\
                  tls: {certificates: [{certificate: certificate.pem, key: key.pem}]}";
    let server = Server::start_in(directory, &settings.replace("listen: [\"@ADDRESS@\"]", listen));
    for round in 0..10 {
        let mut connections: Vec<TlsClient> =
            (0..8).map(|_| TlsClient::connect(server.another(), &trusted)).collect();
        for (number, connection) in connections.iter_mut().enumerate() {
            let queries: Vec<Vec<u8>> = (0..40)
                .map(|i| ask(&format!("r{round}n{number}-{i}.dead.example.org")).id(i).bytes())
                .collect();
            connection.send(queries.iter().map(Vec::as_slice));
        }
        // Half of them go while their queries wait; the others hear what becomes of theirs.
        connections.truncate(4);
        let others = UdpClient::connect_from(own(2), server.address());
        for id in 0..20 {
            let heard = others.ask(&ask(&format!("r{round}fresh{id}.example.org")).id(id));
            assert_eq!((heard.id(), heard.rcode()), (id, Rcode::NOERROR), "{heard:?}");
        }
        let fresh = ask(&format!("r{round}last.example.org")).id(4000);
        for connection in &mut connections {
            connection.send([&*fresh.bytes()]);
            let heard = std::iter::from_fn(|| connection.receive()).find(|heard| heard.id() == 4000);
            // It may have to give way, too, but it hears so.
            assert!(heard.is_some(), "round {round}");
        }
    }
    assert!(server.stat("fetch", "shed_oldest") + server.stat("fetch", "shed_client") > 0);
}

#[test]
fn pulses_hold_a_thousand_replies_for_one_address_at_most() {
    let is_held = Arc::new(AtomicBool::new(true));
    let gate = Arc::clone(&is_held);
    let script = Script::answering(move |asked| {
        let is_ours = asked.qname.starts_with("pulse.");
        if is_ours && gate.load(Ordering::Relaxed) { Answer::silence() } else { address(1) }
    });
    let stub = Stub::start(script);
    let yaml = forwarding(&[&stub], "limits: {wait-limit: 50}").replace("workers: 2", "workers: 1");
    let server = Server::start(&yaml);
    let forged = UdpClient::connect(server.address());
    for id in 0..200 {
        forged.send(&ask("pulse.example.org").id(id).bytes());
    }
    eventually("the others were refused", || {
        server.stat("fetch", "shed_client") + server.stat("fetch", "shed_oldest") == 150
    });
    // A client that has proved its address is not concerned.
    let mut proven = TcpClient::connect(server.address());
    let queries: Vec<Vec<u8>> = (0..200).map(|id| ask("pulse.example.org").id(id).bytes()).collect();
    proven.send(queries.iter().map(Vec::as_slice));
    is_held.store(false, Ordering::Relaxed);
    for _ in 0..200 {
        assert_eq!(proven.receive().expect("a reply").rcode(), Rcode::NOERROR);
    }
    let rcodes: Vec<Rcode> = (0..200).map(|_| forged.receive().rcode()).collect();
    assert_eq!(rcodes.iter().filter(|rcode| **rcode == Rcode::NOERROR).count(), 50);
}

#[test]
fn what_is_shed_over_udp_can_be_dropped_and_others_are_answered() {
    let is_held = Arc::new(AtomicBool::new(true));
    let gate = Arc::clone(&is_held);
    let script = Script::answering(move |asked| {
        let is_ours = asked.qname.starts_with("pulse.");
        if is_ours && gate.load(Ordering::Relaxed) { Answer::silence() } else { address(1) }
    });
    let stub = Stub::start(script);
    let limits = "limits: {wait-limit: 50, shed: drop, discard-timeout: off}";
    let server = Server::start(&forwarding(&[&stub], limits).replace("workers: 2", "workers: 1"));
    let forged = UdpClient::connect(server.address());
    let other = UdpClient::connect_from(own(9), server.address());
    for id in 0..200 {
        forged.send(&ask("pulse.example.org").id(id).bytes());
    }
    eventually("the others were dropped", || server.stat("fetch", "shed_silently") == 150);
    assert_eq!(other.ask(&ask("cached.example.org")).rcode(), Rcode::NOERROR);
    is_held.store(false, Ordering::Relaxed);
    let rcodes: Vec<Rcode> = (0..50).map(|_| forged.receive().rcode()).collect();
    assert_eq!(rcodes, [Rcode::NOERROR; 50], "nobody heard of the others");
    // The next reply is the one to the next query.
    assert_eq!(forged.ask(&ask("next.example.org").id(777)).id(), 777);
}

#[test]
fn an_answer_over_udp_that_comes_too_late_is_kept_and_not_sent() {
    let script = Script::default().delayed(Duration::from_millis(500));
    let (stub, server) = start_with(script, "limits: {discard-timeout: 100ms}");
    let client = UdpClient::connect(server.address());
    client.expect_silence(&ask("late.example.org").id(1).bytes());
    eventually("it was not sent", || server.stat("fetch", "discarded") == 1);
    let asked = stub.count("late.example.org.");
    let heard = client.ask(&ask("late.example.org").id(2));
    assert_eq!((heard.id(), heard.rcode(), heard.answers().len()), (2, Rcode::NOERROR, 1));
    assert_eq!(stub.count("late.example.org."), asked, "the cache has it");
    // Over TCP nothing can be forged.
    assert_eq!(server.ask_tcp(&ask("slow.example.org")).answers().len(), 1);
}

/// As CVE-2026-56444 of Unbound: a query has two timers.
#[test]
fn a_stale_answer_over_udp_that_would_come_too_late_is_not_sent_either() {
    let script =
        Script::always(Answer::a(1, Ipv4Addr::new(192, 0, 2, 1))).delayed(Duration::from_millis(900));
    let more = "limits: {discard-timeout: 100ms}\ncache: {main: {stale: 1h, stale-client-timeout: 400ms}}";
    let (_stub, server) = start_with(script, more);
    assert_eq!(server.ask_tcp(&ask("twice.example.org")).answers().len(), 1);
    let client = UdpClient::connect(server.address());
    client.set_patience(Duration::from_millis(20));
    let mut heard = Vec::new();
    eventually("a query had no reply", || {
        client.send(&ask("twice.example.org").bytes());
        heard.extend(client.try_receive().ok());
        server.stat("fetch", "discarded") > 0
    });
    heard.extend(std::iter::from_fn(|| client.try_receive().ok()));
    assert!(heard.iter().all(|heard| heard.errors().is_empty()), "one was stale: {heard:?}");
    eventually("a client that cannot be forged has the stale answer", || {
        server.ask_tcp(&ask("twice.example.org")).errors().first().is_some_and(|(code, _)| *code == 3)
    });
}

#[test]
fn a_query_that_had_a_stale_answer_gets_no_other_reply_whatever_becomes_of_its_fetch() {
    let more = "limits: {discard-timeout: 3s}\ncache: {main: {stale: 1h, stale-client-timeout: 100ms}}";
    let (stub, server) = start_with(Script::always(Answer::a(1, Ipv4Addr::new(192, 0, 2, 1))), more);
    let client = UdpClient::connect(server.address());
    let mut id = 0;
    let mut ask_again = || {
        id += 1;
        let heard = client.ask(&ask("twice.example.org").id(id));
        assert_eq!((heard.id(), heard.answers().len()), (id, 1), "{heard:?}");
        heard
    };
    ask_again();
    stub.behave(Script::silent());
    eventually("the answer is stale", || ask_again().errors().first().is_some_and(|(code, _)| *code == 3));
    stub.behave(Script::always(address(9)));
    eventually("a fresh one takes its place", || ask_again().answers()[0].ends_with(" A 192.0.2.9"));
    assert_eq!(server.stat("fetch", "discarded"), 0);
}

#[test]
fn records_that_have_nothing_to_do_with_the_question_do_not_reach_the_client() {
    let script = Script::answering(|_| {
        address(1)
            .with_stray(Section::Answer, "www.bank.example", Rtype::A, &[192, 0, 2, 66])
            .with_stray(Section::Authority, "bank.example", Rtype::NS, b"\x02ns\x04evil\0")
            .with_stray(Section::Additional, "ns.evil", Rtype::A, &[192, 0, 2, 66])
    });
    let (_stub, server) = start(script);
    for _ in ["from the upstream", "from the cache"] {
        let heard = server.ask(&ask("www.example.org"));
        assert_eq!((heard.answers().len(), heard.authorities().len()), (1, 0), "{heard:?}");
        let header = heard.message().header;
        assert_eq!(header.additionals, 1, "OPT alone");
    }
}

#[test]
fn extended_rcodes_of_one_hop_are_failures_for_the_client() {
    for rcode in [22, 23, 3841] {
        let (_stub, server) = start(Script::always(Answer::rcode(Rcode(rcode))));
        let heard = server.ask(&ask("www.example.org"));
        assert_eq!(heard.rcode(), Rcode::SERVFAIL, "{rcode}: {heard:?}");
        assert!(!heard.errors().is_empty(), "{rcode}: {heard:?}");
    }
}

#[test]
fn an_answer_that_is_truncated_over_tcp_is_a_failure() {
    let (_stub, server) = start(Script::always(address(1).cut()));
    for heard in [server.ask(&ask("www.example.org")), server.ask_tcp(&ask("other.example.org"))] {
        assert_eq!((heard.rcode(), heard.has(Flags::TC)), (Rcode::SERVFAIL, false), "{heard:?}");
        assert!(!heard.errors().is_empty());
    }
}

#[test]
fn upstreams_that_go_down_and_come_back_are_in_the_log_once_each() {
    let (mut stub, mut server) = start(Script::default());
    server.ask(&ask("before.example.org"));
    stub.die();
    for number in 0..20 {
        server.ask(&ask(&format!("dead{number}.example.org")));
    }
    let at = stub.address();
    server.wait_for_log(&format!("upstream {at} (default) is down: connection refused"));
    server.wait_for_log("upstream group \"default\" is down");
    stub.revive();
    server.wait_for_log(&format!("upstream {at} (default) answers again"));
    let mut number = 0;
    eventually("all workers use it again", || {
        number += 1;
        server.ask(&ask(&format!("back{number}.example.org"))).rcode() == Rcode::NOERROR
    });
    let (_, log, _) = server.stop();
    for part in ["is down: connection refused", "upstream group", "answers again"] {
        let count = log.iter().filter(|line| line.contains(part) && !line.contains("has a server")).count();
        assert!(count <= 2, "{part}: {log:#?}");
    }
    assert_eq!(log.iter().filter(|line| line.contains("is down: connection refused")).count(), 1, "{log:#?}");
}

#[test]
fn status_counts_a_query_as_soon_as_it_is_answered() {
    let (_stub, server) = start(Script::default());
    for number in 1..=5 {
        server.ask(&ask(&format!("n{number}.example.org")));
        let status = String::from_utf8_lossy(&server.command(&["status"]).stdout).into_owned();
        assert!(status.contains(" 0 queries waiting"), "{number}: {status}");
    }
}

/// A server over TCP that sends its replies octet by octet, for ever.
fn dripping() -> TcpListener {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let copy = listener.try_clone().expect("the same socket");
    std::thread::spawn(move || {
        while let Ok((stream, _)) = copy.accept() {
            std::thread::spawn(move || drip(stream));
        }
    });
    listener
}

fn drip(mut stream: TcpStream) {
    let mut query = [0; 512];
    if stream.read(&mut query).is_err() {
        return;
    }
    // A length, and then one octet after the other.
    if stream.write_all(&[0, 200]).is_err() {
        return;
    }
    let mut next = Instant::now();
    loop {
        next += Duration::from_millis(400);
        std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
        if Instant::now() >= next && stream.write_all(&[0]).is_err() {
            return;
        }
    }
}

#[test]
fn an_upstream_that_sends_octet_by_octet_is_not_there() {
    let dripper = dripping();
    let stub = Stub::start(Script::default());
    let at = dripper.local_addr().expect("an address");
    let yaml = forwarding(&[&stub], "").replace("servers: [", &format!("servers: [\"tcp://{at}\", "));
    let mut server = Server::start(&yaml);
    assert_eq!(server.ask(&ask("www.example.org")).rcode(), Rcode::NOERROR, "the other is asked");
    server.wait_for_log("is down: its replies take seconds to arrive");
}

#[test]
fn a_cookie_proves_an_address_and_late_answers_are_sent_there() {
    let script = Script::default().delayed(Duration::from_millis(500));
    let (_stub, server) = start_with(script, "limits: {discard-timeout: 100ms}");
    let client = UdpClient::connect(server.address());
    let first = client.ask(&Ask::new("localhost", Rtype::A).edns(1232).option(OptionCode::COOKIE, &[7; 8]));
    let cookie = first.option(OptionCode::COOKIE).expect("a cookie");
    let heard = client.ask(&ask("late.example.org").id(9).option(OptionCode::COOKIE, &cookie));
    assert_eq!((heard.id(), heard.answers().len()), (9, 1));
}
