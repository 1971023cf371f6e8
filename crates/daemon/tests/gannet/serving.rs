//! A running server and the commands that talk to it.

use std::net::UdpSocket;

use crate::harness::{PATIENCE, Place, Server, Upstream, is_root, proc_status, text};

/// A configuration that listens where the system likes and asks `upstream`.
pub(crate) fn config(upstream: &Upstream, more: &str) -> String {
    format!(
        "server: {{workers: 2, state-directory: state}}\n\
         listen: [\"127.0.0.1:0\"]\n\
         upstreams: {{default: {{servers: [\"{}\"]}}}}\n{more}",
        upstream.address
    )
}

#[test]
fn it_answers_from_its_upstream_and_then_from_memory() {
    let upstream = Upstream::start();
    let server = Server::start(&config(&upstream, ""));
    let (code, stdout, stderr) = text(&server.run(&["query", "www.example.org"]));
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains("status     NOERROR  flags: qr rd ra\n"), "{stdout}");
    assert!(stdout.contains("question   www.example.org. IN A\n"), "{stdout}");
    assert!(stdout.contains("answer     www.example.org.  300  A  192.0.2.1\n"), "{stdout}");
    assert!(stdout.contains(&format!("server     {} over UDP, ", server.address())), "{stdout}");

    let (code, stdout, _) = text(&server.run(&["query", "www.example.org", "--tcp", "--json"]));
    assert_eq!(code, 0);
    assert!(
        stdout.contains("\"transport\": \"tcp\"") && stdout.contains("\"data\": \"192.0.2.1\""),
        "{stdout}"
    );

    let (_, stdout, _) = text(&server.run(&["stats"]));
    let hits = stdout.lines().find(|line| line.starts_with("engine.cache-hits "));
    let words: Vec<&str> = hits.unwrap_or_default().split_whitespace().collect();
    assert_eq!(words.join(" "), "engine.cache-hits 1 Queries answered from the cache.", "{stdout}");
    let (_, stdout, _) = text(&server.run(&["cache", "stats"]));
    assert!(stdout.starts_with("main: 1 answers in "), "{stdout}");
}

#[test]
fn forgotten_answers_are_asked_for_again() {
    let upstream = Upstream::start();
    let server = Server::start(&config(&upstream, ""));
    for name in ["a.example.org", "b.example.org", "example.net"] {
        assert_eq!(text(&server.run(&["query", name])).0, 0);
    }
    let flush = |arguments: &[&str]| text(&server.run(&[&["cache", "flush"], arguments].concat()));
    assert_eq!(flush(&["--suffix", "example.org"]).1, "2 answers forgotten\n");
    assert_eq!(flush(&["--name", "example.net", "--type", "AAAA"]).1, "0 answers forgotten\n");
    assert_eq!(flush(&["--name", "example.net", "--type", "A"]).1, "1 answers forgotten\n");
    assert_eq!(flush(&["--all", "--cache", "nowhere"]).0, 1);
    assert_eq!(flush(&["--name", "a..b"]).0, 1);
}

#[test]
fn a_reload_takes_the_new_file_and_refuses_a_bad_one() {
    let upstream = Upstream::start();
    let mut server = Server::start(&config(&upstream, ""));
    assert_eq!(text(&server.run(&["query", "www.example.org"])).0, 0);

    server.place.write("gannet.yaml", &config(&upstream, "local: {nas.home.arpa: [192.0.2.9]}\n"));
    let (code, stdout, stderr) = text(&server.run(&["reload"]));
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.starts_with("revision 2 in use after "), "{stdout}");
    assert_eq!(text(&server.run(&["query", "nas.home.arpa", "--short"])).1, "192.0.2.9\n");
    let (_, stdout, _) = text(&server.run(&["cache", "stats"]));
    assert!(stdout.starts_with("main: 1 answers in "), "the cache was lost: {stdout}");

    server.place.write("gannet.yaml", "listen: [192.0.2.300]\nlokal: {}\n");
    let (code, stdout, _) = text(&server.run(&["reload"]));
    assert_eq!(code, 1);
    assert!(stdout.contains("gannet.yaml:1:") && stdout.contains("gannet.yaml:2:"), "{stdout}");
    assert!(stdout.contains("not reloaded; revision 2 stays in use"), "{stdout}");
    assert_eq!(text(&server.run(&["query", "nas.home.arpa", "--short"])).1, "192.0.2.9\n");

    let more = "local: {nas.home.arpa: [192.0.2.10]}\n";
    server.place.write("gannet.yaml", &config(&upstream, more).replace("workers: 2", "workers: 3"));
    server.forget_notices();
    server.signal(libc::SIGHUP);
    assert!(server.wait_for("RELOADING=1").contains("MONOTONIC_USEC="));
    server.wait_for("READY=1");
    assert_eq!(text(&server.run(&["query", "nas.home.arpa", "--short"])).1, "192.0.2.10\n");
    let (_, stdout, _) = text(&server.run(&["reload"]));
    assert!(stdout.contains("changed, but read only at the start: server.workers"), "{stdout}");
}

#[test]
fn the_status_shows_who_it_is_and_whom_it_asks() {
    let upstream = Upstream::start();
    let server = Server::start(&config(&upstream, ""));
    assert_eq!(text(&server.run(&["query", "www.example.org"])).0, 0);
    let (code, stdout, _) = text(&server.run(&["status"]));
    assert_eq!(code, 0);
    assert!(stdout.starts_with(concat!("gannet ", env!("CARGO_PKG_VERSION"), ", process ")), "{stdout}");
    assert!(stdout.contains(", 2 workers, "), "{stdout}");
    assert!(stdout.contains(&format!("listens on     {} udp\n", server.address())), "{stdout}");
    assert!(stdout.contains(&upstream.address.to_string()), "{stdout}");
}

#[test]
fn an_end_is_announced_and_clean() {
    let upstream = Upstream::start();
    let mut server = Server::start(&config(&upstream, ""));
    server.signal(libc::SIGTERM);
    server.wait_for("STOPPING=1");
    let socket = server.place.path("control.sock");
    let output = server.end();
    assert_eq!(text(&output).0, 0, "{output:?}");
    assert!(!socket.exists(), "the control socket is removed");
}

#[test]
fn a_cache_outlives_the_server() {
    let upstream = Upstream::start();
    let place = Place::new();
    let more = "cache: {main: {dump: {file: main.cache}}}\n";
    let file = place.write("gannet.yaml", &config(&upstream, more));
    let start = |place| {
        Server::start_with(place, |command| {
            command.arg("run").arg("-c").arg(&file);
        })
    };
    let server = start(place);
    assert_eq!(text(&server.run(&["query", "www.example.org"])).0, 0);
    let (code, stdout, stderr) = text(&server.run(&["cache", "dump"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("main: 1 answers written to "), "{stdout}");
    assert_eq!(text(&server.run(&["query", "mail.example.org"])).0, 0);
    let place = server.stop_in_place();
    let server = start(place);
    let (_, stdout, _) = text(&server.run(&["cache", "stats"]));
    assert!(stdout.starts_with("main: 2 answers in "), "{stdout}");
}

#[test]
fn a_taken_port_is_explained() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let place = Place::new();
    place.write("gannet.yaml", &format!("server: {{state-directory: state}}\nlisten: [\"{at}\"]\n"));
    let (code, _, stderr) = text(&place.run(&["run", "-c", "gannet.yaml"]));
    assert_eq!(code, 1);
    assert!(
        stderr.contains(&format!("cannot listen on {at} (udp): the port is taken by gannet")),
        "{stderr}"
    );
    assert!(stderr.contains(&format!("(process {})", std::process::id())), "{stderr}");
    assert!(stderr.contains("or listen elsewhere"), "{stderr}");
}

#[test]
fn a_missing_file_is_an_error() {
    let (code, _, stderr) = text(&Place::new().run(&["run", "-c", "nowhere.yaml"]));
    assert_eq!(code, 1);
    assert!(stderr.contains("nowhere.yaml"), "{stderr}");
}

#[test]
fn a_bad_file_is_not_run() {
    let place = Place::new();
    place.write("gannet.yaml", "lisen: [\"127.0.0.1:0\"]\n");
    let (code, _, stderr) = text(&place.run(&["run", "-c", "gannet.yaml"]));
    assert_eq!(code, 1);
    assert!(stderr.contains("gannet.yaml:1:1: error: ") && stderr.contains("listen"), "{stderr}");
}

#[test]
fn root_is_given_up_for_the_configured_user() {
    if !is_root() {
        return;
    }
    let upstream = Upstream::start();
    let text_of = config(&upstream, "").replace("workers: 2", "workers: 2, user: nobody");
    let server = Server::start(&text_of);
    let uids = proc_status(server.pid(), "Uid");
    assert!(!uids.split_whitespace().any(|uid| uid == "0"), "{uids}");
    for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        assert_eq!(proc_status(server.pid(), set), "0000000000000000", "{set}");
    }
    assert_eq!(proc_status(server.pid(), "NoNewPrivs"), "1");
    assert_eq!(text(&server.run(&["query", "www.example.org"])).0, 0);
}

#[test]
fn there_is_a_thread_for_every_worker() {
    let upstream = Upstream::start();
    let server = Server::start(&config(&upstream, ""));
    // A reload is done when every worker has taken part in it.
    assert_eq!(text(&server.run(&["reload"])).0, 0);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let names: Vec<String> = tasks
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap().trim().to_owned())
        .collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("worker-")).count(), 2, "{names:?}");
}

#[test]
fn logs_are_json_on_request() {
    let upstream = Upstream::start();
    let server = Server::start(&config(&upstream, "log: {format: json}\n"));
    let (code, _, stderr) = text(&server.stop());
    assert_eq!(code, 0);
    assert!(
        !stderr.is_empty() && stderr.lines().all(|line| line.starts_with('{') && line.ends_with('}')),
        "{stderr}"
    );
}

/// Starts a server whose upstream is silent, and a query that waits for it; returns the client's
/// socket.
fn with_a_waiting_query(shutdown_timeout: &str) -> (Server, UdpSocket) {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    let upstream = Upstream { address: silent.local_addr().unwrap() };
    let timeout = format!("workers: 2, shutdown-timeout: {shutdown_timeout}");
    let server = Server::start(&config(&upstream, "").replace("workers: 2", &timeout));
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut query = [0; 512];
    let mut writer = wire::Writer::new(&mut query, 512, 7, wire::Flags::RD);
    let qname: wire::NameBuf = "www.example.org".parse().unwrap();
    let question = wire::Question { qname: qname.as_name(), qtype: wire::Rtype::A, qclass: wire::Class::IN };
    writer.question(&question).unwrap();
    let len = writer.finish();
    client.send_to(&query[..len], server.address()).unwrap();
    // Once the upstream has heard it, it waits.
    silent.recv(&mut [0; 512]).unwrap();
    (server, client)
}

#[test]
fn a_query_that_waits_at_the_end_is_answered_with_a_failure() {
    let (server, client) = with_a_waiting_query("300ms");
    let output = server.stop();
    let mut reply = [0; 512];
    let len = client.recv(&mut reply).unwrap();
    let reply = wire::Message::parse(&reply[..len]).unwrap();
    assert_eq!((reply.header.id, reply.rcode()), (7, wire::Rcode::SERVFAIL));
    assert_eq!(text(&output).0, 0, "{output:?}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (mut server, _client) = with_a_waiting_query("5m");
    server.signal(libc::SIGTERM);
    server.wait_for("STOPPING=1");
    server.signal(libc::SIGINT);
    let (code, _, stderr) = text(&server.end());
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("ends now"), "{stderr}");
}

#[test]
fn lines_for_the_journal_carry_their_priority() {
    let upstream = Upstream::start();
    let server = Server::start(&config(&upstream, "log: {format: journald}\n"));
    let (_, _, stderr) = text(&server.stop());
    // As root on a machine without the usual user, a warning comes first.
    let is_warning = |line: &str| line.starts_with("<4>stays root");
    assert!(stderr.lines().all(|line| line.starts_with("<6>") || is_warning(line)), "{stderr}");
    assert!(stderr.lines().any(|line| line.starts_with("<6>answers on")), "{stderr}");
}
