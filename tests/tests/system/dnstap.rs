//! Copies of messages for receivers of dnstap.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;

use tempfile::TempDir;
use testkit::dnstap::{Capture, Manner, Receiver};
use testkit::{
    Answer, Ask, Authority, Script, Server, Stub, certificate, contains, eventually, forwarding,
    is_installed, lacks,
};
use wire::{Rcode, Rtype};

fn answering() -> Stub {
    Stub::start(Script::answering(|_| Answer::a(300, Ipv4Addr::new(192, 0, 2, 7))))
}

/// Starts a server with these settings of dnstap that forwards to a stub.
fn start(directory: TempDir, stub: &Stub, dnstap: &str) -> Server {
    Server::start_in(directory, &forwarding(&[stub], &format!("dnstap: {{{dnstap}}}\n")))
}

/// Returns whether a receiver has a message of a kind about a name.
fn has(receiver: &Receiver, kind: &str, qname: &str) -> bool {
    let asked = format!("{qname}/IN/A");
    receiver.lines().iter().any(|line| line.starts_with(kind) && line.ends_with(&asked))
}

fn ask(server: &Server, qname: &str) {
    assert_eq!(server.ask(&Ask::new(qname, Rtype::A)).rcode(), Rcode::NOERROR, "{qname}");
}

#[test]
fn fstrm_capture_gets_what_clients_and_upstreams_say_over_unix_and_tcp() {
    if !is_installed("fstrm_capture") || !is_installed("dnstap-read") {
        return;
    }
    for capture in [Capture::unix(), Capture::tcp()] {
        let stub = answering();
        let settings = format!("to: \"{}\", identity: here, version: gannet", capture.place());
        let server = start(TempDir::new().expect("a temporary directory"), &stub, &settings);
        eventually("a connection", || server.stat("dnstap", "connected") == 1);
        ask(&server, "one.example");
        assert_eq!(server.ask_tcp(&Ask::new("one.example", Rtype::A)).rcode(), Rcode::NOERROR);
        let port = server.address().port();
        server.stop();
        let yaml = capture.stop();
        for (kind, expect) in
            [("CLIENT_QUERY", 2), ("CLIENT_RESPONSE", 2), ("FORWARDER_QUERY", 1), ("FORWARDER_RESPONSE", 1)]
        {
            let messages = yaml.split("---\n").filter(|message| message.contains("'one.example. IN A'"));
            let of_kind = messages.filter(|message| message.contains(&format!("type: {kind}\n")));
            assert_eq!(of_kind.count(), expect, "{kind}: {yaml}");
        }
        contains(&yaml, "identity: here\n");
        contains(&yaml, &format!("version: gannet {}\n", env!("CARGO_PKG_VERSION")));
        contains(&yaml, "socket_protocol: UDP\n");
        contains(&yaml, "socket_protocol: TCP\n");
        contains(&yaml, "response_address: \"127.0.0.1\"\n");
        contains(&yaml, &format!("response_port: {port}\n"));
        contains(&yaml, &format!("response_port: {}\n", stub.address().port()));
        contains(&yaml, "192.0.2.7");
    }
}

#[test]
fn clients_are_copied_over_every_transport() {
    if !is_installed("dnstap-read") || !is_installed("kdig") {
        return;
    }
    let (directory, stub) = (TempDir::new().expect("a temporary directory"), answering());
    certificate(directory.path(), &["dns.example"]);
    let receiver = Receiver::tcp(None, Manner::Reads);
    let yaml = format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\n\
         listen: [\"@ADDRESS@\", {{at: \"127.0.0.1:0\", transport: tls}}, \
                  {{at: \"127.0.0.1:0\", transport: https}}, {{at: \"127.0.0.1:0\", transport: quic}}]\n\
         local-sockets: dns.sock\n\
         tls: {{certificates: [{{certificate: certificate.pem, key: key.pem}}]}}\n\
         upstreams: {{default: {{servers: [\"{}\"]}}}}\n\
         dnstap: {{to: \"tcp://{}\", messages: [client-query, client-response]}}\n",
        stub.address(),
        receiver.address()
    );
    let server = Server::start_in(directory, &yaml);
    for (transport, option) in [("tls", "+tls"), ("https", "+https"), ("quic", "+quic")] {
        let at = SocketAddr::new(server.address().ip(), server.port(transport));
        contains(&testkit::kdig(at, &[option, &format!("{transport}.example"), "A"]), "192.0.2.7");
    }
    let mut local = UnixStream::connect(server.directory().join("dns.sock")).expect("a socket");
    let query = Ask::new("local.example", Rtype::A).bytes();
    local.write_all(&[&(query.len() as u16).to_be_bytes()[..], &query].concat()).expect("it is read");
    assert!(testkit::client::read_reply(&mut local).is_some());
    server.stop();
    eventually("the end", || receiver.finished() == 1);
    // The fields of type 5 and 6, family 1 and the protocol: the reader of BIND 9.18 only tells TCP
    // from UDP.
    for (name, fields) in [
        ("tls", &[0x10, 1, 0x18, 3][..]),
        ("https", &[0x10, 1, 0x18, 4]),
        ("quic", &[0x10, 1, 0x18, 7]),
        ("local", &[0x18, 2]),
    ] {
        let qname = [&[name.len() as u8], name.as_bytes(), b"\x07example\0"].concat();
        let found = receiver.frames_with(&qname);
        for (kind, number) in [("CQ ", 5), ("CR ", 6)] {
            assert!(has(&receiver, kind, &format!("{name}.example")), "{kind}{name}");
            let fields = [&[0x08, number][..], fields].concat();
            let with_fields = found.iter().filter(|frame| frame.windows(fields.len()).any(|it| it == fields));
            assert_eq!(with_fields.count(), 1, "{kind}{name}: {found:?}");
        }
    }
}

#[test]
fn only_the_kinds_that_are_wanted_are_sent_and_a_reload_changes_them() {
    if !is_installed("dnstap-read") {
        return;
    }
    let (directory, stub) = (TempDir::new().expect("a temporary directory"), answering());
    let receiver = Receiver::unix(&directory.path().join("d.sock"), Manner::Reads);
    let settings = "to: \"unix:d.sock\", messages: client-query, bidirectional: false";
    let server = start(directory, &stub, settings);
    ask(&server, "one.example");
    eventually("the query", || has(&receiver, "CQ ", "one.example"));
    let settings = "dnstap: {to: \"unix:d.sock\", messages: [forwarder-response]}\n";
    server.write_config(&forwarding(&[&stub], settings));
    assert!(server.command(&["reload"]).status.success());
    eventually("another connection", || receiver.connections() == 2);
    assert_eq!(receiver.finished(), 1, "the first was ended");
    ask(&server, "two.example");
    eventually("the reply", || has(&receiver, "FR ", "two.example"));
    server.write_config(&forwarding(&[&stub], ""));
    assert!(server.command(&["reload"]).status.success());
    eventually("the end", || receiver.finished() == 2);
    ask(&server, "three.example");
    server.stop();
    let lines = receiver.lines();
    let others = lines.iter().filter(|line| {
        let is_first = line.starts_with("CQ ") && !line.contains("two.example");
        !(is_first || line.starts_with("FR ") && line.contains("two.example"))
    });
    assert_eq!(others.count(), 0, "{lines:?}");
}

#[test]
fn a_receiver_proves_who_it_is_over_tls_and_is_shown_a_certificate() {
    if !is_installed("dnstap-read") {
        return;
    }
    let (authority, clients) = (Authority::new(), Authority::new());
    let identity = authority.vouch(&["collector.example"]);
    let receiver = Receiver::tcp(Some(identity.server_for(Some(&clients))), Manner::Reads);
    let (directory, stub) = (TempDir::new().expect("a temporary directory"), answering());
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("a writable directory");
    };
    write("roots.pem", &authority.pem());
    let own = |authority: &Authority| {
        let (certificate, key) = authority.vouch_for_client("dns.example", "us").pem();
        write("own.pem", &certificate);
        write("own.key", &key);
    };
    own(&authority);
    let settings = |name: &str| {
        let to = receiver.address();
        format!("to: \"tls://{to}\", tls-name: {name}, roots: roots.pem, certificate: own.pem, key: own.key")
    };
    let server = Server::start(&forwarding(&[&stub], ""));
    let place = server.directory().to_owned();
    for name in ["roots.pem", "own.pem", "own.key"] {
        std::fs::copy(directory.path().join(name), place.join(name)).expect("a writable directory");
    }
    let reload = |name: &str| {
        server.write_config(&forwarding(&[&stub], &format!("dnstap: {{{}}}\n", settings(name))));
        let output = server.command(&["reload"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    // Another name than the one in its certificate, and then a certificate of ours that it does not
    // know the authority of.
    let mut failed = 0;
    for name in ["other.example", "collector.example"] {
        reload(name);
        ask(&server, "one.example");
        eventually("a refusal", || {
            server.stat("dnstap", "failed") > failed || server.stat("dnstap", "connected") > 0
        });
        failed = server.stat("dnstap", "failed");
        assert_eq!((receiver.connections(), receiver.count()), (0, 0), "{name}");
    }
    own(&clients);
    for name in ["own.pem", "own.key"] {
        std::fs::copy(directory.path().join(name), place.join(name)).expect("a writable directory");
    }
    reload("collector.example");
    eventually("a connection", || receiver.connections() == 1);
    ask(&server, "two.example");
    eventually("the messages", || has(&receiver, "CR ", "two.example"));
    server.stop();
    eventually("the end", || receiver.finished() == 1);
}

#[test]
fn a_receiver_that_reads_nothing_holds_up_nobody() {
    const QUERIES: u32 = 12_000;
    let (directory, stub) = (TempDir::new().expect("a temporary directory"), answering());
    let receiver = Receiver::unix(&directory.path().join("d.sock"), Manner::Stalls);
    let server = start(directory, &stub, "to: \"unix:d.sock\"");
    eventually("a connection", || receiver.connections() == 1);
    ask(&server, "one.example");
    let client = testkit::UdpClient::connect(server.address());
    for _ in 0..QUERIES {
        assert_eq!(client.ask(&Ask::new("one.example", Rtype::A).edns(1232)).rcode(), Rcode::NOERROR);
    }
    eventually("messages without room", || server.stat("dnstap", "lost") > 0);
    ask(&server, "two.example");
    assert_eq!(receiver.count(), 0);
    server.stop();
}

#[test]
fn a_receiver_that_goes_away_is_found_again() {
    let (directory, stub) = (TempDir::new().expect("a temporary directory"), answering());
    let socket = directory.path().join("d.sock");
    let mut server = start(directory, &stub, "to: \"unix:d.sock\", messages: client-query");
    server.wait_for_log("dnstap: no receiver");
    ask(&server, "one.example");
    let receiver = Receiver::unix(&socket, Manner::Leaves(1));
    eventually("what was asked before", || receiver.count() == 1);
    let mut asked = 0;
    eventually("what is asked then", || {
        asked += 1;
        ask(&server, &format!("n{asked}.example"));
        receiver.count() >= 3
    });
    assert!(receiver.connections() >= 3);
    server.stop();
}

#[test]
fn a_sample_has_queries_with_their_replies() {
    const QUERIES: u32 = 1000;
    if !is_installed("dnstap-read") {
        return;
    }
    let (directory, stub) = (TempDir::new().expect("a temporary directory"), answering());
    let receiver = Receiver::unix(&directory.path().join("d.sock"), Manner::Reads);
    let settings = "to: \"unix:d.sock\", one-of: 10, messages: [client-query, client-response]";
    let server = start(directory, &stub, settings);
    eventually("a connection", || receiver.connections() == 1);
    let client = testkit::UdpClient::connect(server.address());
    for id in 0..QUERIES {
        client.ask(&Ask::new("one.example", Rtype::A).id(id as u16));
    }
    server.stop();
    eventually("the end", || receiver.finished() == 1);
    let lines = receiver.lines();
    let count = |kind: &str| lines.iter().filter(|line| line.starts_with(kind)).count();
    assert_eq!(count("CQ "), count("CR "));
    assert!((40..200).contains(&count("CQ ")), "{} of {QUERIES}", count("CQ "));
}

#[test]
fn without_a_receiver_nothing_is_copied() {
    let stub = answering();
    let server = Server::start(&forwarding(&[&stub], ""));
    ask(&server, "one.example");
    let stats = server.command(&["stats"]);
    lacks(&String::from_utf8_lossy(&stats.stdout), "dnstap");
    server.stop();
}
