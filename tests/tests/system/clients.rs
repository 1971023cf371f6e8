//! The built program and the clients people use: `dig` and `kdig`.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use tempfile::TempDir;
use testkit::client::read_reply;
use testkit::{Answer, Ask, Heard, Script, Server, Stub, UdpClient, contains, eventually, forwarding, lacks};
use wire::{Flags, OptionCode, Rcode, Rtype};

fn start(script: Script) -> (Stub, Server) {
    let stub = Stub::start(script);
    let server = Server::start(&forwarding(&[&stub], ""));
    (stub, server)
}

#[test]
fn dig_gets_a_plain_answer_with_the_right_flags() {
    let (_stub, server) = start(Script::default());
    let printed = server.dig(&["example.org", "A"]);
    contains(&printed, "status: NOERROR");
    contains(&printed, "flags: qr rd ra;");
    contains(&printed, "QUERY: 1, ANSWER: 1, AUTHORITY: 0, ADDITIONAL: 1");
    contains(&printed, "; EDNS: version: 0, flags:; udp: 1232");
    contains(&printed, "192.0.2.1");
}

#[test]
fn edns_is_in_the_reply_only_if_it_was_in_the_query() {
    let (_stub, server) = start(Script::default());
    for _ in 0..2 {
        let printed = server.dig(&["+noedns", "example.org", "A"]);
        contains(&printed, "ADDITIONAL: 0");
        lacks(&printed, "EDNS");
    }
    contains(&server.dig(&["example.org", "A"]), "EDNS: version: 0");
    contains(&server.dig(&["+dnssec", "example.org", "A"]), "EDNS: version: 0, flags: do;");
}

#[test]
fn an_edns_version_from_the_future_is_badvers() {
    let (_stub, server) = start(Script::default());
    contains(&server.dig(&["+edns=1", "+noednsnegotiation", "example.org"]), "status: BADVERS");
}

#[test]
fn the_question_keeps_its_letter_case() {
    let (_stub, server) = start(Script::default());
    for _ in 0..2 {
        contains(&server.dig(&["eXaMpLe.OrG", "A"]), ";eXaMpLe.OrG.");
        let heard = server.ask(&Ask::new("EXAMPLE.org", Rtype::A));
        // The second time it comes from the cache, perhaps a second later: the TTL is another
        // test's matter.
        let answers = heard.answers();
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert!(
            answers[0].starts_with("EXAMPLE.org. ") && answers[0].ends_with(" A 192.0.2.1"),
            "{answers:?}"
        );
    }
}

#[test]
fn the_ttl_runs_down() {
    let (stub, server) = start(Script::always(Answer::a(300, Ipv4Addr::new(192, 0, 2, 7))));
    let ask = Ask::new("age.example.org", Rtype::A);
    assert_eq!(server.ask(&ask).ttls(), [300]);
    eventually("the TTL is below 300", || server.ask(&ask).ttls()[0] < 300);
    assert!(server.ask(&ask).ttls()[0] > 200);
    assert_eq!(stub.count("age.example.org."), 1);
}

#[test]
fn a_long_answer_is_truncated_and_comes_whole_over_tcp() {
    let (_stub, server) = start(Script::always(Answer::long_text(300, 3000)));
    for _ in 0..2 {
        let printed = server.dig(&["+bufsize=1232", "long.example.org", "TXT"]);
        contains(&printed, ";; Truncated, retrying in TCP mode.");
        contains(&printed, "ANSWER: 12,");
        contains(&printed, "(TCP)");
    }
    let printed = server.dig(&["+ignore", "+bufsize=1232", "long.example.org", "TXT"]);
    contains(&printed, "flags: qr tc rd ra;");
    let whole = server.kdig(&["+tcp", "long.example.org", "TXT"]);
    contains(&whole, "ANSWER: 12;");
}

#[test]
fn failures_are_explained() {
    let (mut stub, server) = start(Script::always(Answer::rcode(Rcode::REFUSED)));
    let printed = server.dig(&["refused.example.org"]);
    contains(&printed, "; EDE: ");
    stub.die();
    let printed = server.dig(&["dead.example.org"]);
    contains(&printed, "status: SERVFAIL");
    contains(&printed, "; EDE: ");
    contains(&server.kdig(&["+edns", "dead2.example.org"]), "EDE:");
}

#[test]
fn the_version_is_hidden() {
    let (stub, server) = start(Script::default());
    for name in ["version.bind", "hostname.bind", "id.server"] {
        let printed = server.dig(&[name, "TXT", "CH"]);
        contains(&printed, "ANSWER: 0,");
        lacks(&printed.to_lowercase(), "gannet");
        assert_eq!(stub.count(&format!("{name}.")), 0);
    }
}

#[test]
fn local_names_are_answered_here() {
    let (stub, server) = start(Script::default());
    contains(&server.dig(&["localhost", "A"]), "127.0.0.1");
    contains(&server.dig(&["localhost", "AAAA"]), "::1");
    contains(&server.dig(&["nothing.invalid"]), "status: NXDOMAIN");
    contains(&server.dig(&["-x", "192.168.1.1"]), "status: NXDOMAIN");
    contains(&server.dig(&["ipv4only.arpa", "A"]), "192.0.0.170");
    assert_eq!(stub.seen(), []);
}

#[test]
fn a_short_any_answer_instead_of_everything() {
    let (stub, server) = start(Script::default());
    let printed = server.dig(&["+notcp", "example.org", "ANY"]);
    contains(&printed, "HINFO");
    contains(&printed, "RFC8482");
    assert_eq!(stub.seen(), []);
}

#[test]
fn dig_accepts_our_cookie() {
    let (_stub, server) = start(Script::default());
    let printed = server.dig(&["+cookie", "example.org"]);
    contains(&printed, "; COOKIE: ");
    contains(&printed, "(good)");
}

#[test]
fn kdig_accepts_our_cookie() {
    let (_stub, server) = start(Script::default());
    let printed = server.kdig(&["+cookie", "example.org"]);
    contains(&printed, "status: NOERROR");
    contains(&printed, "COOKIE: ");
    lacks(&printed, "WARNING");
}

#[test]
fn a_cookie_we_gave_is_good_and_another_address_gets_another_one() {
    let (_stub, server) = start(Script::default());
    let client = UdpClient::connect(server.address());
    let ask =
        |cookie: &[u8]| client.ask(&Ask::new("example.org", Rtype::A).option(OptionCode::COOKIE, cookie));
    let first = ask(&[1; 8]).option(OptionCode::COOKIE).expect("a server cookie");
    assert_eq!((first.len(), &first[..8]), (24, &[1; 8][..]));
    // RFC 9018 §4: version 1, three reserved octets of zero, then the time.
    assert_eq!(first[8..12], [1, 0, 0, 0]);
    let again = ask(&first);
    assert_eq!(again.rcode(), Rcode::NOERROR);
    let other_client_half = ask(&[2; 8]).option(OptionCode::COOKIE).expect("a server cookie");
    assert_ne!(first[16..], other_client_half[16..]);
}

#[test]
fn what_is_not_a_query_gets_silence_or_formerr() {
    let (_stub, server) = start(Script::default());
    let client = UdpClient::connect(server.address());
    let good = Ask::new("example.org", Rtype::A).bytes();
    client.expect_silence(&good[..11]);
    let mut reply = good.clone();
    reply[2] |= 0x80;
    client.expect_silence(&reply);
    client.send(&good[..good.len() - 2]);
    let heard = client.receive();
    assert_eq!((heard.id(), heard.rcode()), (4711, Rcode::FORMERR));
    let heard = client.ask(&Ask::new("example.org", Rtype::A).opcode(wire::Opcode::UPDATE));
    assert_eq!(heard.rcode(), Rcode::NOTIMP);
    assert!(heard.has(Flags::QR));
}

#[test]
fn many_queries_on_one_connection_come_back_in_any_order() {
    let (stub, server) = start(Script::default());
    stub.behave(Script::answering(|asked| {
        Answer::a(300, Ipv4Addr::new(192, 0, 2, if asked.qname.starts_with("n1.") { 1 } else { 2 }))
    }));
    let mut client = testkit::TcpClient::connect(server.address());
    let queries: Vec<_> =
        (0..50).map(|id| Ask::new(&format!("n{id}.example.org"), Rtype::A).id(id).bytes()).collect();
    client.send(queries.iter().map(Vec::as_slice));
    let mut ids: Vec<_> = (0..50).map(|_| client.receive().expect("a reply").id()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..50).collect::<Vec<_>>());
}

#[test]
fn programs_ask_over_unix_sockets_if_the_file_lets_them() {
    let stub = Stub::start(Script::default());
    let more = "allow: [192.0.2.0/24]\n\
                local-sockets: [{path: \"@DIRECTORY@/dns.sock\", mode: 0600, name: programs}, \"@DIRECTORY@/other.sock\"]\n\
                policy:\n  \
                  main:\n    \
                  - {if: listener == programs and qname == who.example.org, do: respond(answer \"@ 60 A 192.0.2.77\")}\n    \
                  - {if: transport == unix and client in loopback, do: [forward(default), accept]}\n    \
                  - reject(refused)";
    let directory = TempDir::new().expect("a temporary directory");
    // What an earlier server left behind is no obstacle.
    let path = directory.path().join("dns.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a writable directory"));
    let server = Server::start_in(directory, &forwarding(&[&stub], more));
    let found = std::fs::metadata(&path).expect("a socket");
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let other = server.directory().join("other.sock");
    assert_eq!(std::fs::metadata(&other).expect("a socket").permissions().mode() & 0o777, 0o660);
    let mut stream = UnixStream::connect(&path).expect("our own socket");
    stream.set_read_timeout(Some(testkit::DEADLINE)).expect("a timeout");
    let mut ask = |name: &str| {
        let query = Ask::new(name, Rtype::A).bytes();
        let framed = [&(query.len() as u16).to_be_bytes()[..], &query].concat();
        stream.write_all(&framed).expect("an open connection");
        read_reply(&mut stream).expect("a reply")
    };
    contains(&ask("who.example.org").answers().join(" "), "192.0.2.77");
    for name in ["a.example.org", "b.example.org"] {
        contains(&ask(name).answers().join(" "), "192.0.2.1");
    }
    // The access list holds for everybody else.
    assert_eq!(server.ask(&Ask::new("a.example.org", Rtype::A)).rcode(), Rcode::REFUSED);
    let status = server.command(&["status"]);
    let status = String::from_utf8_lossy(&status.stdout);
    contains(&status, &path.display().to_string());
    contains(&status, "unix");
    assert_eq!(server.stat("engine", "queries_unix"), 3);
    let (status, log, _directory) = server.stop();
    assert!(status.success(), "{log:?}");
    assert!(!path.exists() && !other.exists(), "a server that ends takes its sockets along");
}

#[test]
fn programs_ask_with_datagrams_over_unix_sockets() {
    let stub = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::TXT => Answer::long_text(300, 3000),
        _ => Answer::a(300, Ipv4Addr::new(192, 0, 2, 1)),
    }));
    let more = "allow: [192.0.2.0/24]\n\
                local-sockets: {path: \"@DIRECTORY@/dns.sock\", kind: datagram, name: programs}\n\
                policy: {main: [{if: listener == programs and transport == unix, do: [forward(default), accept]}, reject(refused)]}";
    let server = Server::start(&forwarding(&[&stub], more));
    let path = server.directory().join("dns.sock");
    let client = |name: &str| {
        let socket = UnixDatagram::bind(server.directory().join(name)).expect("a writable directory");
        socket.connect(&path).expect("a socket of the server's");
        socket.set_read_timeout(Some(testkit::DEADLINE)).expect("a timeout");
        socket
    };
    let receive = |socket: &UnixDatagram| {
        let mut reply = vec![0; 65_535];
        let octets = socket.recv(&mut reply).expect("a reply");
        reply.truncate(octets);
        Heard::new(reply)
    };
    let (first, second) = (client("first"), client("second"));
    // Who has no name cannot be answered, and what is no query is not.
    UnixDatagram::unbound().expect("a socket").send_to(b"nobody", &path).expect("sent");
    first.send(b"nonsense").expect("sent");
    for (id, socket) in [(1, &first), (2, &second), (3, &first)] {
        socket.send(&Ask::new("example.org", Rtype::A).id(id).bytes()).expect("sent");
    }
    let mut ids = [receive(&first).id(), receive(&first).id()];
    ids.sort_unstable();
    assert_eq!((ids, receive(&second).id()), ([1, 3], 2));
    let large = Ask::new("example.org", Rtype::TXT);
    first.send(&large.bytes()).expect("sent");
    let heard = receive(&first);
    assert!(heard.has(Flags::TC) && heard.bytes().len() <= 512, "{heard:?}");
    first.send(&large.edns(4096).bytes()).expect("sent");
    let heard = receive(&first);
    assert!(!heard.has(Flags::TC) && heard.bytes().len() > 3000, "{heard:?}");
    // A client that is gone when its reply comes is no loss to others.
    second.send(&Ask::new("gone.example.org", Rtype::A).bytes()).expect("sent");
    drop(second);
    first.send(&Ask::new("last.example.org", Rtype::A).bytes()).expect("sent");
    contains(&receive(&first).answers().join(" "), "192.0.2.1");
    let (status, log, _directory) = server.stop();
    assert!(status.success(), "{log:?}");
    assert!(!path.exists(), "a server that ends takes its sockets along");
}

#[test]
fn a_proxy_asks_over_http_on_a_unix_socket() {
    let stub = Stub::start(Script::default());
    let more = "allow: [127.0.0.1, 192.0.2.0/24]\n\
                local-sockets:\n  \
                - {path: \"@DIRECTORY@/http.sock\", kind: http, forwarded: true, name: proxy}\n  \
                - {path: \"@DIRECTORY@/plain.sock\", kind: http, paths: /resolve}\n\
                policy:\n  \
                  main:\n    \
                  - {if: listener == proxy and client in 192.0.2.9, do: respond(answer \"@ 60 A 192.0.2.77\")}\n    \
                  - {if: transport == https, do: [forward(default), accept]}\n    \
                  - reject(refused)";
    let server = Server::start(&forwarding(&[&stub], more));
    let curl = |socket: &str, path: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "20", "--unix-socket"]);
        command.arg(server.directory().join(socket)).args(arguments);
        let output = command.arg(format!("http://dns.example{path}")).output();
        let output = output.expect("`cargo xtask test` installs curl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let asks = "/dns-query?name=www.example.org&type=A";
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let of = |client: &str| {
            curl("http.sock", asks, &[version, "--header", &format!("X-Forwarded-For: {client}")])
        };
        contains(&curl("http.sock", asks, &[version]), "\"data\":\"192.0.2.1\"");
        contains(&of("192.0.2.8"), "\"data\":\"192.0.2.1\"");
        contains(&of("192.0.2.9"), "\"data\":\"192.0.2.77\"");
        // The access list holds for the client that the proxy names.
        contains(&of("198.51.100.1"), "\"Status\":5");
        // What only says so is not believed.
        let claims = [version, "--header", "X-Forwarded-For: 198.51.100.1"];
        let plain = curl("plain.sock", "/resolve?name=www.example.org&type=A", &claims);
        contains(&plain, "\"data\":\"192.0.2.1\"");
        let status = [version, "--output", "/dev/null", "--write-out", "%{http_code}"];
        assert_eq!(curl("plain.sock", asks, &status), "404");
    }
    let status = server.command(&["status"]);
    contains(&String::from_utf8_lossy(&status.stdout), "http+unix");
}

#[test]
fn unix_sockets_that_cannot_be_had_are_explained() {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("notes"), "").expect("a writable directory");
    let run = |socket: &str| {
        let config = format!("listen: [\"127.0.0.1:0\"]\nlocal-sockets: {socket}\n");
        std::fs::write(directory.path().join("gannet.yaml"), config).expect("a writable directory");
        let mut command = testkit::program(directory.path());
        let output = command.args(["run", "-c", "gannet.yaml"]).output().expect("the program starts");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    contains(&run("{path: notes}"), "there is a file that is no socket");
    contains(
        &run("{path: dns.sock, owner: nobody-of-that-name}"),
        "there is no user \"nobody-of-that-name\"",
    );
    contains(&run("{path: dns.sock, group: none-of-that-name}"), "there is no group \"none-of-that-name\"");
    contains(&run("{path: dns.sock, mode: rw}"), "\"rw\" is no file mode");
    contains(&run("{path: dns.sock, kind: packets}"), "stream");
    let config = "local-sockets: {path: dns.sock, forwarded: true}\n";
    std::fs::write(directory.path().join("gannet.yaml"), config).expect("a writable directory");
    let output = testkit::program(directory.path()).args(["check", "gannet.yaml"]).output();
    let found = output.expect("the program starts");
    let found = [found.stdout, found.stderr].concat();
    contains(&String::from_utf8_lossy(&found), "\"forwarded\" is ignored: this socket does not speak HTTP");
    contains(&run("[dns.sock, dns.sock]"), "this socket is opened twice");
}
