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
        assert!(stdout.contains("finds answers by itself"), "{stdout}");
    });
    report(ran);
}

/// The IPv4 addresses of the root's servers.
const ROOT: [&str; 13] = [
    "198.41.0.4",
    "170.247.170.2",
    "192.33.4.12",
    "199.7.91.13",
    "192.203.230.10",
    "192.5.5.241",
    "192.112.36.4",
    "198.97.190.53",
    "192.36.148.17",
    "192.58.128.30",
    "193.0.14.129",
    "199.7.83.42",
    "202.12.27.33",
];

#[test]
fn where_the_machine_has_no_resolver_it_asks_the_root() {
    for resolv_conf in ["", "nameserver 127.0.0.1\nnameserver ::1\n"] {
        let ran = in_own_network(resolv_conf, || {
            let root = ROOT.map(|address| {
                let add = ["address", "add", address, "dev", "lo"];
                let added = std::process::Command::new("ip").args(add).status();
                assert!(added.is_ok_and(|status| status.success()), "{address} is on loopback");
                let socket = UdpSocket::bind((address, 53)).unwrap();
                socket.set_nonblocking(true).unwrap();
                socket
            });
            let server = start();
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01";
            client.send_to(query, "127.0.0.1:53").unwrap();
            let (mut asked, mut len) = ([0; 1500], 0);
            testkit::eventually("the root is asked", || {
                len = root.iter().find_map(|socket| socket.recv(&mut asked).ok()).unwrap_or(0);
                len > 0
            });
            let query = wire::Query::parse(&asked[..len]).unwrap();
            assert!(!query.header.flags.has(wire::Flags::RD) && query.wants_dnssec());
            drop(server.stop());
        });
        report(ran);
    }
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
