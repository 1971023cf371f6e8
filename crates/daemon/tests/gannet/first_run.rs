//! What happens when nobody has configured anything.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};

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

/// Sends a request to port 8533 of an address, and returns the response; none if nobody is there.
fn api(at: &str, head: &str) -> Option<String> {
    let mut stream = TcpStream::connect((at, 8533)).ok()?;
    let length = if head.starts_with("POST") { "Content-Length: 2\r\n\r\n{}" } else { "\r\n" };
    stream.write_all(format!("{head}\r\nConnection: close\r\n{length}").as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    Some(response)
}

#[test]
fn strangers_on_this_machine_get_a_page_the_health_and_the_log_in_of_the_api_and_nothing_else() {
    let ran = in_own_network("nameserver 127.0.0.1\n", || {
        let server = start();
        let status = |at: &str, head: &str| {
            let response = api(at, head).expect("somebody is there");
            response.split(' ').nth(1).unwrap_or("").to_owned()
        };
        for at in ["127.0.0.1", "::1"] {
            let health = api(at, "GET /health HTTP/1.1\r\nHost: localhost").expect("somebody is there");
            assert!(health.starts_with("HTTP/1.1 200") && health.contains("\"is-serving\":true"), "{health}");
            let page = api(at, "GET / HTTP/1.1\r\nHost: localhost").expect("somebody is there");
            assert!(page.contains("<h2>Log in</h2>") && !page.contains("Queries"), "{page}");
        }
        let local = "HTTP/1.1\r\nHost: localhost:8533";
        for (path, expected) in [
            ("GET /api/v1/status", "401"),
            ("GET /api/v1/openapi.json", "401"),
            ("GET /api/v1/servers/localhost/zones", "401"),
            ("GET /metrics", "401"),
            ("POST /api/v1/reload", "401"),
            ("POST /api/v1/requests", "401"),
            ("POST /api/v1/session", "415"),
            ("POST /login", "403"),
        ] {
            assert_eq!(status("127.0.0.1", &format!("{path} {local}")), expected, "{path}");
        }
        // A page of another origin, and one whose name leads here.
        assert_eq!(status("127.0.0.1", &format!("POST /login {local}\r\nOrigin: https://a.example")), "403");
        assert_eq!(status("127.0.0.1", "GET / HTTP/1.1\r\nHost: a.example:8533"), "421");
        let other = api("127.0.0.1", &format!("GET /health {local}\r\nOrigin: https://a.example"));
        assert!(other.is_some_and(|it| it.starts_with("HTTP/1.1 403") && !it.contains("access-control")));
        let (code, _, _) = text(&server.stop());
        assert_eq!(code, 0);
    });
    report(ran);
}

#[test]
fn a_taken_port_of_the_api_is_a_warning_by_default_and_an_error_if_it_is_written() {
    let ran = in_own_network("nameserver 127.0.0.1\n", || {
        let taken = TcpListener::bind("127.0.0.1:8533").unwrap();
        let server = start();
        assert!(api("::1", "GET /health HTTP/1.1\r\nHost: localhost").is_some_and(|it| {
            it.starts_with("HTTP/1.1 200") && it.contains("\"is-degraded\":true,\"troubles\":[\"listener\"]")
        }));
        let (_, stdout, _) = text(&server.run(&["status"]));
        assert!(stdout.contains("NOT AT 127.0.0.1:8533 (the API): Address already in use"), "{stdout}");
        let (code, _, stderr) = text(&server.stop());
        assert_eq!(code, 0);
        assert!(stderr.contains("the API cannot be reached here"), "{stderr}");
        let place = Place::new();
        place.write("gannet.yaml", "control: {listen: \"127.0.0.1:8533\"}\n");
        let (code, _, stderr) = text(&place.run(&["run", "-c", "gannet.yaml"]));
        assert_eq!(code, 1);
        assert!(stderr.contains("cannot listen on 127.0.0.1:8533 for the API"), "{stderr}");
        drop(taken);
    });
    report(ran);
}

#[test]
fn the_api_has_no_port_where_it_is_turned_off_and_in_the_place_of_unbound() {
    let ran = in_own_network("nameserver 127.0.0.1\n", || {
        let place = Place::new();
        let yaml = place.write("gannet.yaml", "control: {listen: []}\nserver: {state-directory: state}\n");
        let conf = place.write("unbound.conf", "server:\n username: \"\"\n directory: \"\"\n");
        let server = Server::start_with(place, |command| {
            command.args(["run", "-c"]).arg(&yaml);
        });
        assert_eq!(api("127.0.0.1", "GET /health HTTP/1.1"), None);
        let (code, _, stderr) = text(&server.run(&["login"]));
        assert!(code != 0 && stderr.contains("set control.listen"), "{stderr}");
        let server = Server::start_with(server.stop_in_place(), |command| {
            command.args(["unbound", "-d", "-c"]).arg(&conf);
        });
        assert_eq!(api("127.0.0.1", "GET /health HTTP/1.1"), None);
        drop(server);
    });
    report(ran);
}

#[test]
fn a_link_for_the_first_user_is_in_the_log_of_the_first_start_alone() {
    let ran = in_own_network("nameserver 127.0.0.1\n", || {
        let place = Place::new();
        std::fs::create_dir(place.path("state")).unwrap();
        let yaml = place.write("gannet.yaml", "server: {state-directory: state, user: root}\n");
        let again = |place| {
            Server::start_with(place, |command| {
                command.args(["run", "-c"]).arg(&yaml);
            })
        };
        let server = again(place);
        let (code, stdout, stderr) = text(&server.run(&["login"]));
        assert!(code == 0 && stdout.contains("http://127.0.0.1:8533/login?code=gnl_"), "{stdout}{stderr}");
        let (place, said) = server.stop_and_hear();
        assert!(said.contains("http://127.0.0.1:8533/login?code=gnl_"), "{said}");
        let (_, said) = again(place).stop_and_hear();
        assert!(said.contains("the API can be reached") && !said.contains("gnl_"), "{said}");
    });
    report(ran);
}
