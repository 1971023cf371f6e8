//! DNS over TLS: handshakes, certificates, order, limits, and clients that are slow or hostile on
//! purpose.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::aead;
use common::{BIG, Running, proxy_header, query, run, run_paused, settle, start_with};
use engine::Transport;
use listen::{Tls, TlsCell};
use plan::Secret;
use plan::certificates::Challenge;
use plan::listeners::{Prefix, Transports};
use plan::tls::{Identity, IdentityError, SuiteWord, TICKET_KEY_OCTETS, TlsPlan};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ConnectionTrafficSecrets, HandshakeKind, RootCertStore, SupportedProtocolVersion,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

type Stream = TlsStream<TcpStream>;

/// A certificate that signed itself, and its key.
struct Certificate {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    name: String,
}

impl Certificate {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate").der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        Self { certificate, key, name: name.to_owned() }
    }

    fn identity(&self) -> Identity {
        let chain = vec![self.certificate.clone()];
        Identity::new(chain, &self.key, vec![self.name.clone()]).expect("they fit")
    }
}

fn tls(certificates: &[&Certificate], change: impl FnOnce(&mut TlsPlan)) -> Arc<Tls> {
    Arc::new(Tls::new(&plan(certificates, change), None).expect("a certificate"))
}

fn plan(certificates: &[&Certificate], change: impl FnOnce(&mut TlsPlan)) -> Arc<TlsPlan> {
    let mut plan = TlsPlan {
        identities: certificates.iter().map(|certificate| certificate.identity()).collect(),
        speaks_tls12: true,
        client_roots: Vec::new(),
        suites: Vec::new(),
        ticket_keys: Vec::new(),
    };
    change(&mut plan);
    Arc::new(plan)
}

fn cell(certificates: &[&Certificate]) -> Arc<TlsCell> {
    Arc::new(TlsCell::new(Some(tls(certificates, |_| {}))))
}

fn start(tls: &Arc<TlsCell>, change: impl FnOnce(&mut plan::listeners::Plan)) -> Running {
    start_with("127.0.0.1:0", tls, |plan| {
        plan.listeners[0].transports = Transports::TLS;
        change(plan);
    })
}

fn client(trusted: &[&Certificate], versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots.add(certificate.certificate.clone()).expect("a certificate");
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(versions).expect("versions");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"dot".to_vec()];
    config
}

fn connector(trusted: &[&Certificate]) -> TlsConnector {
    TlsConnector::from(Arc::new(client(trusted, rustls::ALL_VERSIONS)))
}

async fn connect(server: &Running, connector: &TlsConnector, name: &'static str) -> std::io::Result<Stream> {
    let stream = TcpStream::connect(server.address).await?;
    stream.set_nodelay(true)?;
    connector.connect(ServerName::try_from(name).expect("a name"), stream).await
}

fn framed(message: &[u8]) -> Vec<u8> {
    let len = u16::try_from(message.len()).expect("a short message");
    [&len.to_be_bytes()[..], message].concat()
}

async fn send(stream: &mut Stream, query: &[u8]) {
    stream.write_all(&framed(query)).await.expect("sent");
    stream.flush().await.expect("sent");
}

async fn receive(stream: &mut Stream) -> Vec<u8> {
    let len = stream.read_u16().await.expect("a reply");
    let mut reply = vec![0; usize::from(len)];
    stream.read_exact(&mut reply).await.expect("a whole reply");
    reply
}

async fn ask(stream: &mut Stream, query: &[u8]) -> Vec<u8> {
    send(stream, query).await;
    receive(stream).await
}

#[test]
fn queries_are_answered_when_they_are_ready() {
    run(async {
        let a = Certificate::new("a.example.org");
        let server = start(&cell(&[&a]), |_| {});
        for version in rustls::ALL_VERSIONS {
            let config = client(&[&a], &[version]);
            let connector = TlsConnector::from(Arc::new(config));
            let mut stream = connect(&server, &connector, "a.example.org").await.expect("connected");
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"dot"[..]));
            let queries = [query(1, "late"), query(2, "now"), query(3, "late"), query(4, "now")];
            let all: Vec<u8> = queries.iter().flat_map(|query| framed(query)).collect();
            stream.write_all(&all).await.expect("sent");
            assert_eq!(receive(&mut stream).await, queries[1]);
            assert_eq!(receive(&mut stream).await, queries[3]);
            server.service.until_waiting(2).await;
            server.service.echo(1);
            assert_eq!(receive(&mut stream).await, queries[2]);
            server.service.echo(0);
            assert_eq!(receive(&mut stream).await, queries[0]);
            let seen = server.service.last_client();
            let timeout = seen.keepalive.map(|it| it.timeout);
            assert_eq!((seen.transport, seen.verified, timeout), (Transport::Tls, true, Some(100)));
        }
        assert_eq!((server.count("tls_handshakes"), server.count("tcp_replies")), (2, 8));
    });
}

#[test]
fn the_server_name_chooses_the_certificate_and_is_told_to_policy() {
    run(async {
        let (a, b) = (Certificate::new("a.example.org"), Certificate::new("*.example.org"));
        let server = start(&cell(&[&a, &b]), |_| {});
        for (name, certificate, bits) in
            [("a.example.org", &a, 0), ("b.example.org", &b, 1), ("c.example.org", &b, 0)]
        {
            let mut stream = connect(&server, &connector(&[&a, &b]), name).await.expect("connected");
            let shown = stream.get_ref().1.peer_certificates().expect("a certificate")[0].clone();
            assert_eq!(shown, certificate.certificate, "{name}");
            ask(&mut stream, &query(1, "now")).await;
            assert_eq!(server.service.last_client().connection, bits, "{name}");
        }
        // Nobody has that name: the first certificate, which the client refuses.
        let error = connect(&server, &connector(&[&a, &b]), "other.test").await.expect_err("refused");
        assert!(error.to_string().contains("other.test"), "{error}");
    });
}

#[test]
fn long_replies_and_many_queries_come_whole() {
    run(async {
        let a = Certificate::new("a.example.org");
        let server = start(&cell(&[&a]), |_| {});
        let mut stream = connect(&server, &connector(&[&a]), "a.example.org").await.expect("connected");
        for id in 0..3 {
            assert_eq!(ask(&mut stream, &query(id, "big")).await, [7; BIG]);
        }
        let long = query(2, &"x".repeat(65_535 - 12));
        assert_eq!(ask(&mut stream, &long).await, long);
        let all: Vec<u8> = (0..2000).flat_map(|id| framed(&query(id, "now"))).collect();
        stream.write_all(&all).await.expect("sent");
        for id in 0..2000 {
            assert_eq!(receive(&mut stream).await, query(id, "now"));
        }
        // Late ones too, more than fit where they are encrypted at once.
        for id in 0..4 {
            send(&mut stream, &query(id, "late")).await;
        }
        server.service.until_waiting(4).await;
        for _ in 0..4 {
            let (_, to) = server.service.late.borrow_mut().remove(0);
            to.outlet.deliver(&to.address, &[9; 65_535]);
        }
        for _ in 0..4 {
            assert_eq!(receive(&mut stream).await, [9; 65_535]);
        }
    });
}

/// Passes everything on in single octets.
async fn drip(mut from: TcpStream, mut to: TcpStream) {
    from.set_nodelay(true).expect("set");
    to.set_nodelay(true).expect("set");
    let (mut from_read, mut from_write) = from.split();
    let (mut to_read, mut to_write) = to.split();
    let slowly = async {
        while let Ok(octet) = from_read.read_u8().await {
            if to_write.write_u8(octet).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    let back = tokio::io::copy(&mut to_read, &mut from_write);
    let _ = tokio::join!(slowly, back);
}

#[test]
fn records_may_come_in_any_pieces() {
    run(async {
        let a = Certificate::new("a.example.org");
        let server = start(&cell(&[&a]), |_| {});
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        let between = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connected");
        let (accepted, _) = listener.accept().await.expect("connected");
        let to = TcpStream::connect(server.address).await.expect("connected");
        tokio::task::spawn_local(drip(accepted, to));
        let name = ServerName::try_from("a.example.org").expect("a name");
        let mut stream = connector(&[&a]).connect(name, between).await.expect("a handshake");
        let long = query(7, &"y".repeat(3000));
        assert_eq!(ask(&mut stream, &long).await, long);
        assert_eq!(ask(&mut stream, &query(8, "now")).await, query(8, "now"));
    });
}

/// Encrypts one record as a client of TLS 1.3 does (RFC 8446 §5.2), with a type of our choice.
fn record((sequence, secrets): (u64, &ConnectionTrafficSecrets), kind: u8, text: &[u8]) -> Vec<u8> {
    let ConnectionTrafficSecrets::Aes256Gcm { key, iv } = secrets else { panic!("another cipher") };
    let key = aead::UnboundKey::new(&aead::AES_256_GCM, key.as_ref()).expect("a key");
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&sequence.to_be_bytes());
    for (octet, &other) in nonce.iter_mut().zip(iv.as_ref()) {
        *octet ^= other;
    }
    let mut inner = [text, &[kind]].concat();
    let len = u16::try_from(inner.len() + 16).expect("short").to_be_bytes();
    let head = [23, 3, 3, len[0], len[1]];
    let nonce = aead::Nonce::assume_unique_for_key(nonce);
    aead::LessSafeKey::new(key)
        .seal_in_place_append_tag(nonce, aead::Aad::from(head), &mut inner)
        .expect("sealed");
    [&head[..], &inner].concat()
}

#[test]
fn a_handshake_message_in_pieces_does_not_disturb_replies_between_them() {
    run(async {
        let a = Certificate::new("a.example.org");
        let server = start(&cell(&[&a]), |_| {});
        let mut config = client(&[&a], &[&TLS13]);
        config.enable_secret_extraction = true;
        let connector = TlsConnector::from(Arc::new(config));
        let mut stream = connect(&server, &connector, "a.example.org").await.expect("connected");
        send(&mut stream, &query(1, "late")).await;
        send(&mut stream, &query(2, "late")).await;
        server.service.until_waiting(2).await;
        let (mut stream, session) = stream.into_inner();
        let (sequence, secrets) = session.dangerous_extract_secrets().expect("secrets").tx;
        // The first half of a KeyUpdate (RFC 8446 §4.6.3), which leaves something behind that is
        // not done.
        let half = record((sequence, &secrets), 22, &[24, 0]);
        stream.write_all(&half).await.expect("sent");
        settle().await;
        server.service.echo(0);
        // A reply came, besides the tickets that came before: at least one whole record more.
        let mut octets = vec![0; 4096];
        assert!(
            timeout(Duration::from_secs(10), stream.read(&mut octets)).await.expect("in time").expect("open")
                > 22
        );
        // A query between the halves is against the rules (RFC 8446 §5.1) and ends the session;
        // nothing panics.
        let between = record((sequence + 1, &secrets), 23, &framed(&query(3, "now")));
        stream.write_all(&between).await.expect("sent");
        settle().await;
        server.service.echo(0);
        let mut rest = Vec::new();
        let ended = timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
        drop(ended.expect("closed in time"));
        assert_eq!((server.count("tls_failed"), server.service.seen()), (1, 2));
        // Others go on.
        let mut other = connect(&server, &connector, "a.example.org").await.expect("connected");
        assert_eq!(ask(&mut other, &query(4, "now")).await, query(4, "now"));
    });
}

#[test]
fn a_new_certificate_is_for_new_connections() {
    run(async {
        let (old, new) = (Certificate::new("a.example.org"), Certificate::new("a.example.org"));
        let cell = cell(&[&old]);
        let server = start(&cell, |_| {});
        let both = connector(&[&old, &new]);
        let mut first = connect(&server, &both, "a.example.org").await.expect("connected");
        ask(&mut first, &query(1, "now")).await;
        cell.publish(Some(tls(&[&new], |_| {})));
        let second = connect(&server, &both, "a.example.org").await.expect("connected");
        assert_eq!(second.get_ref().1.peer_certificates().expect("one")[0], new.certificate);
        assert_eq!(ask(&mut first, &query(2, "now")).await, query(2, "now"), "the first one goes on");
        cell.publish(None);
        connect(&server, &both, "a.example.org").await.expect_err("there is no certificate");
        assert_eq!(server.count("tls_refused"), 1);
    });
}

#[test]
fn sessions_are_resumed_on_any_worker_and_with_any_configuration() {
    run(async {
        let a = Certificate::new("a.example.org");
        let first = tls(&[&a], |_| {});
        let make = || {
            let next = Tls::new(&plan(&[&a], |_| {}), Some(&first)).expect("a certificate");
            Arc::new(TlsCell::new(Some(Arc::new(next))))
        };
        let (one, other) = (start(&make(), |_| {}), start(&make(), |_| {}));
        for version in rustls::ALL_VERSIONS {
            let connector = TlsConnector::from(Arc::new(client(&[&a], &[version])));
            let mut stream = connect(&one, &connector, "a.example.org").await.expect("connected");
            ask(&mut stream, &query(1, "now")).await;
            assert_eq!(stream.get_ref().1.handshake_kind(), Some(HandshakeKind::Full));
            let mut stream = connect(&other, &connector, "a.example.org").await.expect("connected");
            ask(&mut stream, &query(1, "now")).await;
            assert_eq!(stream.get_ref().1.handshake_kind(), Some(HandshakeKind::Resumed));
        }
        assert_eq!((one.count("tls_resumed"), other.count("tls_resumed")), (0, 2));
    });
}

#[test]
fn tls_session_ticket_keys_let_clients_resume_with_another_server_that_has_them() {
    run(async {
        let a = Certificate::new("a.example.org");
        let key = |octet: u8| Secret::new((0..TICKET_KEY_OCTETS).map(|at| at as u8 ^ octet).collect());
        let make = |keys: &[u8]| {
            let ticket_keys = keys.iter().map(|&octet| key(octet)).collect();
            Arc::new(TlsCell::new(Some(tls(&[&a], |plan| plan.ticket_keys = ticket_keys))))
        };
        // Others read what the first makes once they have its key, whichever is their own.
        let (first, same) = (start(&make(&[1]), |_| {}), start(&make(&[1]), |_| {}));
        let (rotated, other) = (start(&make(&[2, 1]), |_| {}), start(&make(&[2]), |_| {}));
        for version in rustls::ALL_VERSIONS {
            for (server, expect) in [
                (&same, HandshakeKind::Resumed),
                (&rotated, HandshakeKind::Resumed),
                (&other, HandshakeKind::Full),
            ] {
                let connector = TlsConnector::from(Arc::new(client(&[&a], &[version])));
                let mut stream = connect(&first, &connector, "a.example.org").await.expect("connected");
                ask(&mut stream, &query(1, "now")).await;
                let mut stream = connect(server, &connector, "a.example.org").await.expect("connected");
                ask(&mut stream, &query(1, "now")).await;
                assert_eq!(stream.get_ref().1.handshake_kind(), Some(expect));
            }
        }
    });
}

#[test]
fn tls_ciphers_are_all_that_is_offered() {
    run(async {
        let a = Certificate::new("a.example.org");
        let suites = vec![SuiteWord::Chacha, SuiteWord::EcdsaAes128];
        let cell = Arc::new(TlsCell::new(Some(tls(&[&a], |plan| plan.suites = suites))));
        let server = start(&cell, |_| {});
        for (version, expect) in [(&TLS13, SuiteWord::Chacha), (&TLS12, SuiteWord::EcdsaAes128)] {
            let connector = TlsConnector::from(Arc::new(client(&[&a], &[version])));
            let stream = connect(&server, &connector, "a.example.org").await.expect("both have one");
            let suite = stream.get_ref().1.negotiated_cipher_suite().expect("a suite");
            assert_eq!(suite.suite(), expect.suite());
        }
    });
}

#[test]
fn old_versions_and_other_protocols_are_refused_when_told_so() {
    run(async {
        let a = Certificate::new("a.example.org");
        let cell = Arc::new(TlsCell::new(Some(tls(&[&a], |plan| plan.speaks_tls12 = false))));
        let server = start(&cell, |_| {});
        let old = TlsConnector::from(Arc::new(client(&[&a], &[&TLS12])));
        connect(&server, &old, "a.example.org").await.expect_err("too old");
        let mut config = client(&[&a], rustls::ALL_VERSIONS);
        config.alpn_protocols = vec![b"h2".to_vec()];
        let error = connect(&server, &TlsConnector::from(Arc::new(config)), "a.example.org").await;
        let error = error.expect_err("another protocol").to_string();
        assert!(error.contains("NoApplicationProtocol"), "an alert says so: {error}");
        assert_eq!(server.count("tls_failed"), 2);
    });
}

#[test]
fn clients_without_the_certificate_asked_for_are_turned_away() {
    run(async {
        let a = Certificate::new("a.example.org");
        let mut params = CertificateParams::new(["ca.example.org".to_owned()]).expect("a name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("one");
        let roots = vec![issuer.der().clone()];
        let cell = Arc::new(TlsCell::new(Some(tls(&[&a], |plan| plan.client_roots = roots))));
        let server = start(&cell, |_| {});
        let mut stream = connect(&server, &connector(&[&a]), "a.example.org").await;
        // TLS 1.3 clients hear it only when they read.
        if let Ok(stream) = &mut stream {
            let _ = stream.write_all(&framed(&query(1, "now"))).await;
            stream.read_u16().await.expect_err("no reply");
        }
        assert_eq!(server.service.seen(), 0);

        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["client.example.org".to_owned()]).expect("a name");
        let signed = params.signed_by(&key, &issuer).expect("signed").der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let mut config = client(&[&a], rustls::ALL_VERSIONS);
        let own = rustls::sign::CertifiedKey::new(
            vec![signed],
            rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).expect("a key"),
        );
        config.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(own));
        let connector = TlsConnector::from(Arc::new(config));
        let mut stream = connect(&server, &connector, "a.example.org").await.expect("connected");
        assert_eq!(ask(&mut stream, &query(2, "now")).await, query(2, "now"));
        assert_eq!(server.service.last_client().connection, 2, "policy hears whose it is");
    });
}

#[test]
fn a_key_must_fit_its_certificate() {
    let (a, b) = (Certificate::new("a.example.org"), Certificate::new("a.example.org"));
    let found = Identity::new(vec![a.certificate.clone()], &b.key, Vec::new());
    assert_eq!(found.err(), Some(IdentityError::Mismatch));
}

#[test]
fn handshakes_have_a_deadline_however_busy_they_look() {
    run_paused(async {
        let a = Certificate::new("a.example.org");
        let server = start(&cell(&[&a]), |_| {});
        let mut silent = TcpStream::connect(server.address).await.expect("connected");
        let mut slow = TcpStream::connect(server.address).await.expect("connected");
        // The head of a record of 512 octets, and then one octet a second.
        slow.write_all(&[22, 3, 1, 2, 0]).await.expect("sent");
        for octet in [1, 0, 1, 0xfc, 3, 3] {
            if slow.write_u8(octet).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let closed = timeout(Duration::from_secs(1), silent.read_u8()).await.expect("closed by now");
        closed.expect_err("nothing is said");
        timeout(Duration::from_secs(1), slow.read_u8()).await.expect("closed by now").expect_err("nothing");
        assert_eq!(server.count("tls_slow"), 2);
    });
}

#[test]
fn an_established_connection_that_is_quiet_is_closed() {
    run(async {
        let a = Certificate::new("a.example.org");
        let server = start(&cell(&[&a]), |plan| plan.tcp.idle_timeout = Duration::from_millis(50));
        let mut stream = connect(&server, &connector(&[&a]), "a.example.org").await.expect("connected");
        ask(&mut stream, &query(1, "now")).await;
        // With a word of goodbye: without it this would be an error.
        assert_eq!(stream.read(&mut [0; 8]).await.expect("closed cleanly"), 0);
        assert_eq!(server.count("tcp_closed_idle"), 1);
    });
}

#[test]
fn noise_ends_a_connection_and_costs_nobody_else() {
    run(async {
        let a = Certificate::new("a.example.org");
        let server = start(&cell(&[&a]), |_| {});
        let mut good = connect(&server, &connector(&[&a]), "a.example.org").await.expect("connected");
        for noise in
            [&b"GET / HTTP/1.1\r\n\r\n"[..], &[22, 3, 1, 255, 255, 0], &[0; 600], &[23, 3, 3, 0, 1, 0]]
        {
            let mut bad = TcpStream::connect(server.address).await.expect("connected");
            bad.write_all(noise).await.expect("sent");
            let mut rest = Vec::new();
            let _ = bad.read_to_end(&mut rest).await;
            assert!(rest.len() < 64, "an alert at most: {rest:?}");
        }
        assert_eq!(server.count("tls_failed"), 4);
        assert_eq!(ask(&mut good, &query(1, "now")).await, query(1, "now"));
    });
}

#[test]
fn handshakes_are_limited_in_number() {
    run(async {
        let a = Certificate::new("a.example.org");
        let server = start(&cell(&[&a]), |plan| {
            plan.tcp.handshakes_per_client = 2;
            plan.tcp.handshakes_burst = 2;
        });
        let connector = connector(&[&a]);
        let mut kept = Vec::new();
        for _ in 0..2 {
            kept.push(connect(&server, &connector, "a.example.org").await.expect("connected"));
        }
        connect(&server, &connector, "a.example.org").await.expect_err("one too many");
        assert_eq!(server.count("tls_refused"), 1);
        assert_eq!(ask(&mut kept[0], &query(1, "now")).await, query(1, "now"), "the others go on");
    });
}

#[test]
fn a_proxy_speaks_before_tls_begins() {
    run(async {
        let a = Certificate::new("a.example.org");
        let server = start(&cell(&[&a]), |plan| {
            plan.listeners[0].proxies = vec![Prefix::new("127.0.0.0".parse().expect("an address"), 8)];
        });
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        stream.write_all(&proxy_header([192, 0, 2, 7], 4321, true)).await.expect("sent");
        let name = ServerName::try_from("a.example.org").expect("a name");
        let mut stream = connector(&[&a]).connect(name, stream).await.expect("a handshake");
        assert_eq!(ask(&mut stream, &query(1, "now")).await, query(1, "now"));
        let seen = server.service.last_client();
        assert_eq!((seen.address.to_string().as_str(), seen.port), ("192.0.2.7", 4321));
    });
}

#[test]
fn a_stopping_worker_says_goodbye() {
    run(async {
        let a = Certificate::new("a.example.org");
        let server = start(&cell(&[&a]), |_| {});
        let mut stream = connect(&server, &connector(&[&a]), "a.example.org").await.expect("connected");
        send(&mut stream, &query(1, "late")).await;
        server.service.until_waiting(1).await;
        server.stop(Duration::from_secs(5));
        settle().await;
        server.service.echo(0);
        assert_eq!(receive(&mut stream).await, query(1, "late"));
        assert_eq!(stream.read(&mut [0; 8]).await.expect("closed cleanly"), 0);
    });
}

#[test]
fn an_authority_sees_its_certificate_and_gets_nothing_else_while_clients_go_on() {
    run(async {
        let (own, shown) = (Certificate::new("a.example.org"), Certificate::new("b.example.org"));
        let cell = cell(&[&own]);
        let server = start(&cell, |_| {});
        let https = start(&cell, |plan| plan.listeners[0].transports = Transports::HTTPS);
        let authority = |version: &'static SupportedProtocolVersion| {
            let mut config = client(&[&own, &shown], &[version]);
            config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
            TlsConnector::from(Arc::new(config))
        };
        let mut before = connect(&server, &connector(&[&own]), "a.example.org").await.expect("connected");
        assert!(connect(&server, &authority(&TLS13), "b.example.org").await.is_err(), "nobody waits for it");
        let challenge = Challenge::Handshake {
            server_name: "b.example.org".to_owned(),
            certificate: shown.certificate.clone(),
            key: Arc::new(shown.key.clone_key()),
        };
        cell.answer_challenges(&[challenge]).expect("a good key");
        for (server, version) in [(&server, &TLS13), (&server, &TLS12), (&https, &TLS13), (&https, &TLS12)] {
            let mut seen = connect(server, &authority(version), "B.example.org").await.expect("connected");
            assert_eq!(seen.get_ref().1.alpn_protocol(), Some(&b"acme-tls/1"[..]));
            let certificate = seen.get_ref().1.peer_certificates().and_then(|all| all.first());
            assert_eq!(certificate, Some(&shown.certificate));
            // Queries are not for it.
            let _ = seen.write_all(&framed(&query(1, "now"))).await;
            assert!(seen.read_u8().await.is_err(), "{version:?}");
            assert!(connect(server, &authority(version), "a.example.org").await.is_err());
        }
        assert_eq!(ask(&mut before, &query(1, "now")).await, query(1, "now"));
        let mut client = connect(&server, &connector(&[&own]), "a.example.org").await.expect("connected");
        assert_eq!(ask(&mut client, &query(2, "now")).await, query(2, "now"));
        cell.answer_challenges(&[]).expect("nothing");
        assert!(connect(&server, &authority(&TLS13), "b.example.org").await.is_err());
    });
}
