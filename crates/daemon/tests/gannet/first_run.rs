//! What happens when nobody has configured anything.

use std::net::UdpSocket;

use crate::harness::{Place, Server, Upstream, in_own_network, text};

/// Starts without a configuration, for the network of the calling thread.
fn start() -> Server {
    Server::start_with(Place::new(), |_| {})
}

#[test]
fn with_port_53_free_it_listens_there_and_prints_three_lines() {
    let ran = in_own_network("nameserver 127.0.0.2\n", || {
        let _upstream = Upstream::start_at("127.0.0.2:53");
        let server = start();
        let (code, stdout, stderr) = text(&server.run(&["query", "www.example.org"]));
        assert_eq!(code, 0, "{stdout}{stderr}");
        assert!(
            stdout.contains("192.0.2.1") && stdout.contains("server     127.0.0.1:53 over UDP"),
            "{stdout}"
        );
        assert_eq!(text(&server.run(&["query", "www.example.org", "@::1"])).0, 0);
        let (code, stdout, _) = text(&server.stop());
        assert_eq!(code, 0);
        assert_eq!(stdout.lines().count(), 3, "{stdout}");
        assert!(
            stdout
                .starts_with("gannet answers this machine on 127.0.0.1 and ::1, port 53, and asks 127.0.0.2")
        );
        assert!(stdout.contains("gannet query example.org"), "{stdout}");
    });
    report(ran);
}

#[test]
fn with_port_53_taken_it_listens_on_5300_and_says_why() {
    let ran = in_own_network("nameserver 127.0.0.1\n", || {
        let _upstream = Upstream::start_at("127.0.0.1:53");
        let server = start();
        let (code, stdout, stderr) = text(&server.run(&["query", "www.example.org"]));
        assert_eq!(code, 0, "{stdout}{stderr}");
        assert!(
            stdout.contains("192.0.2.1") && stdout.contains("server     127.0.0.1:5300 over UDP"),
            "{stdout}"
        );
        let (_, stdout, _) = text(&server.stop());
        assert_eq!(stdout.lines().count(), 3, "{stdout}");
        let process = std::process::id();
        let expected = "port 5300 (port 53 is taken by gannet";
        assert!(stdout.contains(expected) && stdout.contains(&format!("(process {process})")), "{stdout}");
    });
    report(ran);
}

#[test]
fn it_never_asks_itself() {
    let ran = in_own_network("nameserver 127.0.0.1\n", || {
        let server = start();
        let (code, stdout, _) = text(&server.run(&["query", "www.example.org"]));
        assert_eq!(code, 1);
        assert!(stdout.contains("SERVFAIL"), "{stdout}");
        let (_, stdout, _) = text(&server.stop());
        assert!(stdout.contains("knows no server to ask"), "{stdout}");
    });
    report(ran);
}

#[test]
fn with_both_ports_taken_it_says_so() {
    let ran = in_own_network("", || {
        let _both = ["127.0.0.1:53", "127.0.0.1:5300"].map(|at| UdpSocket::bind(at).unwrap());
        let (code, _, stderr) = text(&Place::new().run(&[]));
        assert_eq!(code, 1);
        assert!(stderr.contains("cannot listen on 127.0.0.1:5300 (udp)"), "{stderr}");
    });
    report(ran);
}

#[test]
fn without_a_server_a_query_says_what_it_tried() {
    let ran = in_own_network("", || {
        let (code, _, stderr) = text(&Place::new().run(&["query", "www.example.org"]));
        assert_eq!(code, 1);
        assert!(
            stderr.contains("no answer; tried 127.0.0.1:53 (nobody listens there), 127.0.0.1:5300"),
            "{stderr}"
        );
        assert!(stderr.contains("gannet run"), "{stderr}");
    });
    report(ran);
}

/// Says when a test could not be run, for want of a network of its own.
fn report(ran: bool) {
    if !ran {
        eprintln!("not run: this needs the right to make a network namespace");
    }
}
