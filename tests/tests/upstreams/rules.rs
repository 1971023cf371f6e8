//! What holds for upstreams over UDP holds over every encrypted transport: when a server stops
//! answering another is asked, before it is given up and after; it is found again; and a slow one
//! is not waited for.
//!
//! The servers are our own program, stopped and continued by signals: its sockets stay open and say
//! nothing meanwhile, the worst way to fail. Those of DNSCrypt are stubs.

use std::sync::Arc;
use tempfile::TempDir;
use testkit::dnscrypt::Provider;
use testkit::tls::NAME;
use testkit::{Ask, Script, Server, Stub, UdpClient, certificate, eventually, forwarding};
use wire::{Rcode, Rtype};

/// How servers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Tls,
    Https,
    H3,
    Quic,
    Oblivious,
    Sealed,
}

/// A server that can be silenced.
enum Upstream {
    /// Our own program, and the stub that it asks.
    Ours(Box<Server>, Stub),
    Sealed(Stub, Arc<Provider>),
}

/// Without a cache, so that every question reaches the stub behind it.
const UPSTREAM: &str = "tls: {certificates: [{certificate: certificate.pem, key: key.pem}]}\n\
    oblivious: {target: true}\n\
    limits: {tls: {handshakes-per-client: 10000}}\n\
    policy: {main: [forward(default)]}";

impl Upstream {
    fn start(scheme: Scheme) -> Self {
        if scheme == Scheme::Sealed {
            let provider = Arc::new(Provider::new(dnscrypt::System::XChaCha20));
            return Self::Sealed(Stub::start_dnscrypt(&provider, Script::default()), provider);
        }
        let stub = Stub::start(Script::default());
        let directory = TempDir::new().expect("a temporary directory");
        certificate(directory.path(), &[NAME, "127.0.0.1"]);
        let listen = "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: tls}, \
            {at: \"127.0.0.1:0\", transport: [https, h3]}, {at: \"127.0.0.1:0\", transport: quic}]";
        let config = forwarding(&[&stub], UPSTREAM).replace("listen: [\"@ADDRESS@\"]", listen);
        Self::Ours(Box::new(Server::start_in(directory, &config)), stub)
    }

    /// Returns it as a server in a group.
    fn url(&self, scheme: Scheme) -> String {
        let (server, port) = match self {
            Self::Sealed(stub, provider) => return format!("\"{}\"", provider.stamp(stub.address(), true)),
            Self::Ours(server, _) => match scheme {
                Scheme::Tls => (server, server.another().port()),
                Scheme::Quic => (server, server.port("quic")),
                _ => (server, server.port("https")),
            },
        };
        let url = match scheme {
            Scheme::Tls => format!("tls://127.0.0.1:{port}#{NAME}"),
            Scheme::Quic => format!("quic://127.0.0.1:{port}#{NAME}"),
            Scheme::Https => format!("https://127.0.0.1:{port}/dns-query"),
            Scheme::H3 => format!("h3://127.0.0.1:{port}/dns-query"),
            Scheme::Oblivious | Scheme::Sealed => format!("odoh://127.0.0.1:{port}/dns-query"),
        };
        let roots = server.directory().join("certificate.pem");
        format!("{{address: \"{url}\", roots: \"{}\"}}", roots.display())
    }

    /// Keeps it from saying anything from now on.
    fn silence(&self) {
        match self {
            Self::Ours(server, _) => server.signal("STOP"),
            Self::Sealed(stub, _) => stub.behave(Script::silent()),
        }
    }

    fn wake(&self) {
        match self {
            Self::Ours(server, _) => server.signal("CONT"),
            Self::Sealed(stub, _) => stub.behave(Script::default()),
        }
    }

    /// Returns how many questions with this beginning reached it.
    fn asked(&self, beginning: &str) -> usize {
        let (Self::Ours(_, stub) | Self::Sealed(stub, _)) = self;
        stub.seen().iter().filter(|asked| asked.qname.to_ascii_lowercase().starts_with(beginning)).count()
    }
}

/// Returns a counter of our program.
fn fetched(server: &Server, name: &str) -> u64 {
    server.stat("fetch", name)
}

/// Starts the program with a group of these servers, of which the first is to be asked.
fn start(group: &str) -> Server {
    Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{pick: ordered, {group}}}}}\ncache: {{main: {{failure-ttl: 1s}}}}\n"
    ))
}

/// Asks so many questions at once and returns how many were answered.
fn ask_many(server: &Server, beginning: &str, count: u16) -> usize {
    let client = UdpClient::connect(server.address());
    for id in 0..count {
        client.send(&Ask::new(&format!("{beginning}{id}.example.org"), Rtype::A).edns(1232).id(id).bytes());
    }
    (0..count).map(|_| client.receive()).filter(|heard| heard.rcode() == Rcode::NOERROR).count()
}

fn check(scheme: Scheme) {
    let (first, second) = (Upstream::start(scheme), Upstream::start(scheme));
    let servers = format!("servers: [{}, {}]", first.url(scheme), second.url(scheme));

    // Nothing is asked twice on purpose: it is silence alone that makes the other one answer.
    let server = start(&format!("hedge: off, timeout: 10s, {servers}"));
    assert_eq!(ask_many(&server, "a", 20), 20);
    assert!(first.asked("a") > 0, "{scheme:?}: the first is asked");
    first.silence();
    for round in 0..3 {
        assert_eq!(ask_many(&server, &format!("b{round}x"), 20), 20, "{scheme:?}: none is lost");
    }
    let (of_first, of_second) = (first.asked("b"), second.asked("b"));
    assert!(of_second >= 60, "{scheme:?}: {of_second}, and {of_first} of the first");
    first.wake();
    let mut round = 0;
    eventually("the first one is asked again", || {
        round += 1;
        assert_eq!(ask_many(&server, &format!("d{round}x"), 3), 3);
        first.asked(&format!("d{round}x")) > 0
    });
    drop(server);

    // A slow one is not waited for: the budget for that fills with the questions that are answered
    // in time.
    let server = start(&format!("hedge: 200ms, timeout: 10s, {servers}"));
    let mut round = 0;
    eventually("the second is asked although the first has not failed", || {
        round += 1;
        first.wake();
        assert_eq!(ask_many(&server, &format!("e{round}x"), 50), 50);
        let before = fetched(&server, "hedged");
        first.silence();
        assert_eq!(ask_many(&server, &format!("f{round}x"), 1), 1);
        fetched(&server, "hedged") > before
    });
    first.wake();
}

#[test]
fn upstreams_over_tls_stand_in_for_each_other_and_come_back() {
    check(Scheme::Tls);
}

#[test]
fn upstreams_over_https_stand_in_for_each_other_and_come_back() {
    check(Scheme::Https);
}

#[test]
fn upstreams_over_http3_stand_in_for_each_other_and_come_back() {
    check(Scheme::H3);
}

#[test]
fn upstreams_over_quic_stand_in_for_each_other_and_come_back() {
    check(Scheme::Quic);
}

#[test]
fn oblivious_upstreams_stand_in_for_each_other_and_come_back() {
    check(Scheme::Oblivious);
}

#[test]
fn upstreams_over_dnscrypt_stand_in_for_each_other_and_come_back() {
    check(Scheme::Sealed);
}

#[test]
fn oblivious_messages_go_through_our_own_relay_to_our_own_target() {
    let target = Upstream::start(Scheme::Oblivious);
    let Upstream::Ours(server_of_target, stub) = &target else { unreachable!("not sealed") };
    let roots = server_of_target.directory().join("certificate.pem").display().to_string();
    let authority = format!("127.0.0.1:{}", server_of_target.port("https"));
    let relay = {
        let directory = TempDir::new().expect("a temporary directory");
        certificate(directory.path(), &[NAME, "127.0.0.1"]);
        let more = format!(
            "tls: {{certificates: [{{certificate: certificate.pem, key: key.pem}}]}}\n\
             oblivious: {{relay-to: {{target: \"{authority}\", dial: 127.0.0.1, roots: \"{roots}\"}}}}"
        );
        let listen = "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: https}]";
        // Whoever relays answers nothing itself here.
        let nobody = Stub::start(Script::silent());
        Server::start_in(directory, &forwarding(&[&nobody], &more).replace("listen: [\"@ADDRESS@\"]", listen))
    };
    // One file vouches for both.
    let both = TempDir::new().expect("a temporary directory");
    let pem = |path: &std::path::Path| std::fs::read_to_string(path).expect("a certificate");
    let all = pem(&server_of_target.directory().join("certificate.pem"))
        + &pem(&relay.directory().join("certificate.pem"));
    let file = both.path().join("both.pem");
    std::fs::write(&file, all).expect("a writable directory");
    let server = start(&format!(
        "servers: [{{address: \"odoh://{authority}/dns-query\", relay: \"https://{NAME}:{}/dns-query\", \
         dial: 127.0.0.1, roots: \"{}\"}}]",
        relay.another().port(),
        file.display()
    ));
    assert_eq!(ask_many(&server, "secret", 20), 20);
    assert_eq!(target.asked("secret"), 20);
    // The target hears of the relay, and of nobody else; the relay is asked nothing.
    assert!(stub.seen().iter().all(|asked| asked.from.ip().is_loopback()));
    assert!(server_of_target.stat("engine", "queries_https") >= 20);
    assert_eq!(relay.stat("engine", "queries_https"), 0);
    assert!(relay.stat("listen", "http_requests") >= 20);
}
