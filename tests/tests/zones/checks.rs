//! Records that are left out while what they lead to does not work.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;
use testkit::{Ask, Authority, Identity, Server, eventually};
use wire::Rtype;

const ORG: &str = "$TTL 3600\n@ SOA ns admin 7 7200 600 86400 60\n@ NS ns\nns A 192.0.2.1\n";

/// A backend that listens on the port of `like`, or any, and answers with a status that can be
/// changed; 0 is no answer.
struct Backend {
    address: SocketAddr,
    status: Arc<AtomicU16>,
}

impl Backend {
    fn start(ip: &str, port: u16, status: u16) -> Self {
        let listener = TcpListener::bind((ip, port)).expect("a free port of the loopback");
        let address = listener.local_addr().expect("a bound socket");
        let status = Arc::new(AtomicU16::new(status));
        let says = Arc::clone(&status);
        // Ends with the process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut request = [0; 1024];
                let len = stream.read(&mut request).unwrap_or(0);
                let is_right = String::from_utf8_lossy(&request[..len])
                    .starts_with("GET /healthy HTTP/1.1\r\nHost: www.example.org\r\n");
                let status = if is_right { says.load(Ordering::Relaxed) } else { 400 };
                let _ = write!(stream, "HTTP/1.1 {status} Whatever\r\nContent-Length: 0\r\n\r\n");
            }
        });
        Self { address, status }
    }
}

fn config(check: &str, from: &str) -> String {
    format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\n\
         listen: [\"@ADDRESS@\"]\n\
         checks: {{web: {check}}}\n\
         zones:\n\
         \x20 - name: example.org\n\
         \x20   file: org\n\
         \x20   choose:\n\
         \x20     - {{name: www.example.org, type: A, check: web, from: [{from}]}}\n\
         policy: {{main: [zones]}}\n"
    )
}

fn directory() -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("org"), ORG).expect("a writable directory");
    directory
}

fn addresses(server: &Server) -> Vec<String> {
    let heard = server.ask(&Ask::new("www.example.org", Rtype::A));
    let mut found: Vec<String> =
        heard.answers().iter().filter_map(|line| line.rsplit(' ').next().map(str::to_owned)).collect();
    found.sort();
    found
}

fn said(server: &Server, arguments: &[&str]) -> String {
    let output = server.command(arguments);
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_backend_that_fails_takes_its_record_out_and_its_return_brings_it_back() {
    let one = Backend::start("127.0.0.1", 0, 200);
    let two = Backend::start("127.0.0.2", one.address.port(), 204);
    let spare = Backend::start("127.0.0.3", one.address.port(), 301);
    let check = format!(
        "{{type: http, port: {}, path: /healthy, interval: 1s, timeout: 1s, rise: 2, fall: 2}}",
        one.address.port()
    );
    let from = "{data: [127.0.0.1, 127.0.0.2]}, {data: 127.0.0.3, weight: 0}";
    let mut server = Server::start_in(directory(), &config(&check, from));
    assert_eq!(addresses(&server), ["127.0.0.1", "127.0.0.2"]);
    two.status.store(503, Ordering::Relaxed);
    eventually("the record is left out", || addresses(&server) == ["127.0.0.1"]);
    let line = server.wait_for_log("does not work; its record is left out");
    assert!(line.contains("127.0.0.2") && line.contains("the status is 503"), "{line}");
    let status = said(&server, &["zone", "status", "example.org"]);
    testkit::contains(&status, "www.example.org. A 127.0.0.1  works (web)");
    testkit::contains(&status, "www.example.org. A 127.0.0.2  left out (web): the status is 503");
    // A reload forgets nothing.
    assert!(server.command(&["reload"]).status.success());
    assert_eq!(addresses(&server), ["127.0.0.1"]);
    // All of them fail: the spare one answers; when it fails too, everybody does.
    one.status.store(500, Ordering::Relaxed);
    eventually("the spare one", || addresses(&server) == ["127.0.0.3"]);
    spare.status.store(404, Ordering::Relaxed);
    eventually("everybody", || addresses(&server) == ["127.0.0.1", "127.0.0.2"]);
    two.status.store(200, Ordering::Relaxed);
    eventually("the one that works", || addresses(&server) == ["127.0.0.2"]);
    server.wait_for_log("works again; its record is back");
    one.status.store(200, Ordering::Relaxed);
    eventually("both", || addresses(&server) == ["127.0.0.1", "127.0.0.2"]);
    // Each change is told once.
    let told = server.log().iter().filter(|line| line.contains("its record is left out")).count();
    assert_eq!(told, 3);
}

#[test]
fn what_cannot_be_connected_to_is_left_out() {
    let one = Backend::start("127.0.0.1", 0, 200);
    let port = one.address.port();
    let check = format!("{{port: {port}, interval: 1s, timeout: 1s, rise: 1, fall: 1}}");
    let from = "{data: 127.0.0.1}, {data: 127.0.0.9}";
    let server = Server::start_in(directory(), &config(&check, from));
    eventually("what nobody listens at is left out", || {
        said(&server, &["zone", "status", "example.org"]).contains("A 127.0.0.9  left out (web): ")
    });
    for _ in 0..50 {
        assert_eq!(addresses(&server), ["127.0.0.1"]);
    }
    let two = Backend::start("127.0.0.9", port, 200);
    eventually("both come up", || addresses(&server) == [two.address.ip().to_string()]);
}

#[test]
fn mistakes_in_checks_are_told() {
    let server = Server::start_in(directory(), &config("{port: 80}", "{data: 192.0.2.1}"));
    for (check, expect) in [
        ("{}", "\"port\" is missing"),
        ("{type: http, status: [700]}", "\"700\" is no status of HTTP"),
        ("{type: http, path: healthy}", "\"healthy\" is no path"),
        ("{port: 80, interval: 1s, timeout: 3s}", "a check would take longer than until the next one"),
        ("{port: 80, path: /x}", "\"path\" does nothing with \"type: tcp\""),
    ] {
        server.write_config(&config(check, "{data: 192.0.2.1}"));
        testkit::contains(&said(&server, &["check", "-c", "gannet.yaml"]), expect);
    }
    server.write_config(&config("{port: 80}", "{data: 192.0.2.1}").replace("check: web", "check: wed"));
    let text = said(&server, &["check", "-c", "gannet.yaml"]);
    testkit::contains(&text, "there is no check \"wed\"");
    testkit::contains(&text, "did you mean \"web\"");
    server.write_config(&config("{port: 80}", "{data: text}").replace("type: A", "type: TXT"));
    testkit::contains(
        &said(&server, &["check", "-c", "gannet.yaml"]),
        "TXT has no address that could be checked",
    );
}

/// A page over TLS that shows a certificate until it is given another one.
struct SecurePage {
    port: u16,
    shown: Arc<Mutex<Arc<ServerConfig>>>,
}

impl SecurePage {
    fn start(identity: &Identity) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port of the loopback");
        let port = listener.local_addr().expect("a bound socket").port();
        let shown = Arc::new(Mutex::new(page_config(identity)));
        let shows = Arc::clone(&shown);
        // Ends with the process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let config = Arc::clone(&shows.lock().expect("nobody panicked"));
                let session = ServerConnection::new(config).expect("a configuration that works");
                let mut stream = StreamOwned::new(session, stream);
                let mut request = [0; 1024];
                // Whoever does not believe the certificate asks nothing.
                if matches!(stream.read(&mut request), Ok(1..)) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                }
            }
        });
        Self { port, shown }
    }

    fn show(&self, identity: &Identity) {
        *self.shown.lock().expect("nobody panicked") = page_config(identity);
    }
}

fn page_config(identity: &Identity) -> Arc<ServerConfig> {
    let mut config = ServerConfig::clone(&identity.server());
    config.alpn_protocols = Vec::new();
    Arc::new(config)
}

/// Returns how the record of the one address that is checked stands.
fn stands(server: &Server) -> String {
    let status = said(server, &["zone", "status", "example.org"]);
    let line = status.lines().find(|line| line.contains("A 127.0.0.1 "));
    line.unwrap_or_default().trim().to_owned()
}

#[test]
fn a_page_over_https_counts_only_with_the_right_certificate() {
    let (authority, other) = (Authority::new(), Authority::named("somebody else"));
    let right = authority.vouch(&["www.example.org"]);
    let page = SecurePage::start(&right);
    let directory = directory();
    std::fs::write(directory.path().join("authority.pem"), authority.pem()).expect("a writable directory");
    let check = |more: &str| {
        let port = page.port;
        format!("{{type: https, port: {port}, interval: 1s, timeout: 1s, rise: 1, fall: 1{more}}}")
    };
    let from = "{data: 127.0.0.1}, {data: 127.0.0.2, weight: 0}";
    let mut server = Server::start_in(directory, &config(&check(", roots: authority.pem"), from));
    // Of the spare address nobody is heard, so that it is seen when checks are made at all.
    eventually("checks are made", || {
        said(&server, &["zone", "status", "example.org"]).contains("A 127.0.0.2  left out (web)")
    });
    assert_eq!(stands(&server), "www.example.org. A 127.0.0.1  works (web)");
    for wrong in [
        authority.vouch(&["www.example.net"]),
        authority.vouch_until_2020(&["www.example.org"]),
        other.vouch(&["www.example.org"]),
        Identity::self_signed(&["www.example.org"]),
    ] {
        page.show(&wrong);
        eventually("the record is left out", || stands(&server).contains("left out (web): "));
        testkit::contains(&stands(&server), "invalid peer certificate");
        page.show(&right);
        eventually("the record is back", || stands(&server).ends_with("works (web)"));
    }
    // Authorities that everybody trusts do not know ours; whoever does not look does not care.
    server.write_config(&config(&check(""), from));
    assert!(server.command(&["reload"]).status.success());
    eventually("the record is left out", || stands(&server).contains("left out (web): "));
    server.write_config(&config(&check(", verify: false"), from));
    assert!(server.command(&["reload"]).status.success());
    eventually("the record is back", || stands(&server).ends_with("works (web)"));
    server.wait_for_log("works again; its record is back");
    for (more, expect) in [
        (", roots: org", "has no certificates"),
        (", roots: nowhere.pem", "cannot be read"),
        (", verify: false, roots: authority.pem", "\"roots\" is ignored: nothing is verified"),
    ] {
        server.write_config(&config(&check(more), from));
        testkit::contains(&said(&server, &["check", "-c", "gannet.yaml"]), expect);
    }
}

#[test]
fn how_checks_stand_is_among_the_metrics() {
    let one = Backend::start("127.0.0.1", 0, 200);
    let port = one.address.port();
    let check = format!("{{port: {port}, interval: 1s, timeout: 1s, rise: 1, fall: 1}}");
    let server = Server::start_in(directory(), &config(&check, "{data: 127.0.0.1}, {data: 127.0.0.9}"));
    let metrics = || said(&server, &["stats", "--prometheus"]);
    let of = |address: &str| {
        format!("gannet_check_up{{check=\"web\",name=\"www.example.org.\",address=\"{address}\"}}")
    };
    eventually("what nobody listens at is down", || metrics().contains(&format!("{} 0\n", of("127.0.0.9"))));
    eventually("the other was checked, too", || {
        !metrics().contains("gannet_checks_total{check=\"web\",outcome=\"passed\"} 0\n")
    });
    let text = metrics();
    testkit::contains(&text, &format!("{} 1\n", of("127.0.0.1")));
    testkit::contains(&text, "# TYPE gannet_check_up gauge\n");
    testkit::contains(&text, "gannet_check_records{check=\"web\",state=\"up\"} 1\n");
    testkit::contains(&text, "gannet_check_records{check=\"web\",state=\"down\"} 1\n");
    // A check that is gone leaves no numbers.
    server.write_config(&config(&check, "{data: 127.0.0.1}").replace("check: web, ", ""));
    assert!(server.command(&["reload"]).status.success());
    testkit::lacks(&metrics(), "gannet_check");
}
