//! DNS over QUIC and HTTP/3: streams, the rules of RFC 9250, limits, and certificates that change.

use crate::common;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use common::{BIG, Running, query, run, settle, start_with};
use engine::Transport;
use hyper::body::{Buf as _, Bytes};
use hyper::{Request, StatusCode};
use listen::{Tls, TlsCell};
use plan::listeners::{Connections, Datagrams, Transports};
use plan::tls::{Identity, TlsPlan};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, ConnectionError, Endpoint};
use rcgen::{CertificateParams, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::UdpSocket;
use tokio::time::timeout;

const NAME: &str = "a.example.org";
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns how to speak TLS with a new certificate, and that.
fn tls() -> (Arc<Tls>, CertificateDer<'static>) {
    tls_for(vec![NAME.to_owned()])
}

fn tls_for(names: Vec<String>) -> (Arc<Tls>, CertificateDer<'static>) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(names).expect("names");
    let certificate = params.self_signed(&key).expect("a certificate").der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let identity = Identity::new(vec![certificate.clone()], &key, vec![NAME.to_owned()]).expect("they fit");
    let plan = TlsPlan {
        identities: vec![identity],
        speaks_tls12: true,
        client_roots: Vec::new(),
        // QUIC begins with another one, which is not offered to clients.
        suites: vec![plan::tls::SuiteWord::Chacha],
        ticket_keys: Vec::new(),
    };
    (Arc::new(Tls::new(&Arc::new(plan), None).expect("a certificate")), certificate)
}

fn start(cell: &Arc<TlsCell>, change: impl FnOnce(&mut plan::listeners::Plan)) -> Running {
    start_with("127.0.0.1:0", cell, |plan| {
        plan.listeners[0].transports =
            Transports { datagrams: Some(Datagrams::Quic { doq: true, h3: true }), connections: None };
        change(plan);
    })
}

/// Connects with the protocol `alpn`, believing `trusted`.
async fn connect(
    server: SocketAddr,
    trusted: &CertificateDer<'static>,
    alpn: &str,
) -> Result<Connection, ConnectionError> {
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
    endpoint.connect_with(client(trusted, alpn), server, NAME).expect("an address").await
}

/// Returns how a client speaks the protocol `alpn` that believes `trusted`, and that sends early
/// data where it may.
fn client(trusted: &CertificateDer<'static>, alpn: &str) -> quinn::ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).expect("a version");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    config.enable_early_data = true;
    let config = QuicClientConfig::try_from(config).expect("suites");
    quinn::ClientConfig::new(Arc::new(config))
}

fn framed(message: &[u8]) -> Vec<u8> {
    let len = u16::try_from(message.len()).expect("a short message");
    [&len.to_be_bytes()[..], message].concat()
}

/// Sends octets on a stream of their own; returns what comes back.
async fn exchange(connection: &Connection, octets: &[u8]) -> Option<Vec<u8>> {
    let (mut send, mut receive) = connection.open_bi().await.ok()?;
    send.write_all(octets).await.ok()?;
    send.finish().ok()?;
    receive.read_to_end(70_000).await.ok()
}

#[test]
fn each_stream_gets_its_reply() {
    run(async {
        let (tls, certificate) = tls();
        let server = start(&Arc::new(TlsCell::new(Some(tls))), |_| {});
        let connection = connect(server.address, &certificate, "doq").await.expect("connected");
        let late = tokio::task::spawn_local({
            let connection = connection.clone();
            async move { exchange(&connection, &framed(&query(0, "late"))).await }
        });
        server.service.until_waiting(1).await;
        for word in ["now", "now again", "and again"] {
            assert_eq!(exchange(&connection, &framed(&query(0, word))).await, Some(framed(&query(0, word))));
        }
        let big = exchange(&connection, &framed(&query(0, "big"))).await.expect("a reply");
        assert_eq!(big.len(), 2 + BIG);
        server.service.echo(0);
        assert_eq!(late.await.expect("answered"), Some(framed(&query(0, "late"))));
        let seen = server.service.last_client();
        assert_eq!((seen.transport, seen.verified, seen.keepalive), (Transport::Quic, true, None));
        assert_eq!(
            exchange(&connection, &framed(&query(0, "drop"))).await,
            None,
            "a stream without a reply is reset"
        );
        assert_eq!(server.count("quic_queries"), 6);
    });
}

#[test]
fn nothing_is_taken_before_the_handshake_is_done() {
    run(async {
        let (tls, certificate) = tls();
        let server = start(&Arc::new(TlsCell::new(Some(tls))), |_| {});
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
        // It remembers sessions, and would send early data with the second if the first had let it.
        let config = client(&certificate, "doq");
        for _ in 0..2 {
            let connecting = endpoint.connect_with(config.clone(), server.address, NAME).expect("an address");
            // RFC 9250 §4.5: what is sent so can be sent again by somebody else.
            let Err(connecting) = connecting.into_0rtt() else { panic!("early data is taken") };
            let connection = connecting.await.expect("connected");
            assert_eq!(
                exchange(&connection, &framed(&query(0, "now"))).await,
                Some(framed(&query(0, "now")))
            );
        }
    });
}

#[test]
fn clients_that_break_the_rules_are_told_so() {
    run(async {
        let (tls, certificate) = tls();
        let server = start(&Arc::new(TlsCell::new(Some(tls))), |_| {});
        let keepalive =
            [&query(0, "")[..10], &[0, 1, 0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 4, 0, 11, 0, 0]].concat();
        // An ID, two queries, half a query, nothing, and an option that is for TCP.
        for wrong in [
            framed(&query(1, "now")),
            [framed(&query(0, "now")), framed(&query(0, "now"))].concat(),
            framed(&query(0, "now"))[..8].to_vec(),
            Vec::new(),
            framed(&keepalive),
        ] {
            let connection = connect(server.address, &certificate, "doq").await.expect("connected");
            assert_eq!(exchange(&connection, &wrong).await, None, "{wrong:02x?}");
            let error = timeout(PATIENCE, connection.closed()).await.expect("closed in time");
            let ConnectionError::ApplicationClosed(close) = error else { panic!("{error}") };
            assert_eq!(close.error_code, 2_u32.into(), "DOQ_PROTOCOL_ERROR");
        }
        assert_eq!(server.service.seen(), 0);
    });
}

#[test]
fn a_new_certificate_is_for_new_connections() {
    run(async {
        let ((old_tls, old), (new_tls, new)) = (tls(), tls());
        let cell = Arc::new(TlsCell::new(None));
        let server = start(&cell, |_| {});
        cell.publish(Some(old_tls));
        settle().await;
        let first = connect(server.address, &old, "doq").await.expect("connected");
        cell.publish(Some(new_tls));
        settle().await;
        connect(server.address, &old, "doq").await.expect_err("another certificate");
        let second = connect(server.address, &new, "doq").await.expect("connected");
        for connection in [&first, &second] {
            assert_eq!(exchange(connection, &framed(&query(0, "now"))).await, Some(framed(&query(0, "now"))));
        }
        connect(server.address, &new, "smtp").await.expect_err("another protocol");
    });
}

#[test]
fn connections_of_a_client_are_limited() {
    run(async {
        let (tls, certificate) = tls();
        let server = start(&Arc::new(TlsCell::new(Some(tls))), |plan| {
            plan.tcp.connections_per_client_max = 2;
        });
        let mut kept = Vec::new();
        for _ in 0..2 {
            kept.push(connect(server.address, &certificate, "doq").await.expect("connected"));
        }
        connect(server.address, &certificate, "doq").await.expect_err("one too many");
        assert_eq!(server.count("tcp_refused_client"), 1);
        assert!(exchange(&kept[0], &framed(&query(0, "now"))).await.is_some(), "the others go on");
        kept[0].close(0_u32.into(), b"");
        settle().await;
        let again = async {
            while connect(server.address, &certificate, "doq").await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, again).await.expect("the place came back");
    });
}

/// Returns the first datagrams of clients that are beginning to connect.
async fn first_datagrams(count: usize, trusted: &CertificateDer<'static>) -> Vec<Vec<u8>> {
    let nobody = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let at = nobody.local_addr().expect("bound");
    let mut found = Vec::new();
    let mut room = [0; 2048];
    for _ in 0..count {
        let connecting = tokio::task::spawn_local({
            let trusted = trusted.clone();
            async move { connect(at, &trusted, "doq").await.map(drop) }
        });
        let (octets, from) =
            timeout(PATIENCE, nobody.recv_from(&mut room)).await.expect("in time").expect("one");
        found.push(room[..octets].to_vec());
        connecting.abort();
        // What it sends again is not another's beginning.
        let _ = connecting.await;
        while let Ok((octets, again)) = nobody.try_recv_from(&mut room) {
            assert!(again == from && octets > 0);
        }
    }
    found
}

#[test]
fn an_address_that_is_not_proven_gets_no_more_than_three_times_what_it_sent() {
    // A certificate that is much larger than what may be sent, and some that leave room for packets
    // that are sent again.
    for (names, timeout_ms) in [(400, 500), (1, 1500), (40, 1500)] {
        check_amplification(names, Duration::from_millis(timeout_ms));
    }
}

fn check_amplification(names: usize, handshake_timeout: Duration) {
    run(async move {
        let names = (0..names).map(|number| format!("host{number}.long-names.example.org")).collect();
        let (tls, certificate) = tls_for(names);
        let server = start(&Arc::new(TlsCell::new(Some(tls))), |plan| {
            plan.tcp.handshake_timeout = handshake_timeout;
        });
        let first = first_datagrams(1, &certificate).await.remove(0);
        let victim = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        victim.send_to(&first, server.address).await.expect("sent");
        let given_up = async {
            while server.count("tls_slow") == 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, given_up).await.expect("the handshake is given up");
        let (mut room, mut received) = ([0; 65_536], 0);
        while let Ok(octets) = victim.try_recv(&mut room) {
            received += octets;
        }
        // RFC 9000 §8.1: at most three times, what is repeated included.
        assert!(received > 0 && received <= 3 * first.len(), "{received} for {}", first.len());
    });
}

#[test]
fn many_handshakes_at_once_make_clients_prove_their_addresses() {
    run(async {
        let (tls, certificate) = tls();
        let server = start(&Arc::new(TlsCell::new(Some(tls))), |plan| {
            plan.tcp.handshakes_per_client = 1000;
            plan.tcp.connections_per_client_max = 1000;
        });
        const MANY: usize = 80;
        let beginnings = first_datagrams(MANY, &certificate).await;
        let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        for datagram in &beginnings {
            stranger.send_to(datagram, server.address).await.expect("sent");
            settle().await;
        }
        let all = async {
            while server.count("quic_accepted") + server.count("quic_retries") < MANY as u64 {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, all).await.expect("all were looked at");
        assert_eq!((server.count("quic_accepted"), server.count("quic_retries")), (64, 16));
        // Who comes back with what it was given is served meanwhile.
        let connection = connect(server.address, &certificate, "doq").await.expect("connected");
        assert_eq!(exchange(&connection, &framed(&query(0, "now"))).await, Some(framed(&query(0, "now"))));
    });
}

#[test]
fn queries_that_wait_count_against_their_connection() {
    run(async {
        let (tls, certificate) = tls();
        let server = start(&Arc::new(TlsCell::new(Some(tls))), |plan| plan.tcp.waiting_max = 4);
        let connection = connect(server.address, &certificate, "doq").await.expect("connected");
        for number in 0..4 {
            let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
            send.write_all(&framed(&query(0, "late"))).await.expect("sent");
            send.finish().expect("sent");
            server.service.until_waiting(number + 1).await;
            drop(receive.stop(3_u32.into()));
        }
        server.service.late.borrow_mut().clear();
        let reply = timeout(PATIENCE, exchange(&connection, &framed(&query(0, "now")))).await;
        assert_eq!(reply.expect("in time"), Some(framed(&query(0, "now"))));
    });
}

#[test]
fn requests_are_answered_over_http_3() {
    run(async {
        let (tls, certificate) = tls();
        let server = start(&Arc::new(TlsCell::new(Some(tls))), |_| {});
        let connection = connect(server.address, &certificate, "h3").await.expect("connected");
        let (mut driver, mut requests) =
            h3::client::new(h3_quinn::Connection::new(connection)).await.expect("HTTP/3");
        tokio::task::spawn_local(async move {
            std::future::poll_fn(|context| driver.poll_close(context)).await;
        });
        for id in 0..3 {
            let message = query(id, "now");
            let request = Request::post(format!("https://{NAME}/dns-query"))
                .header("content-type", "application/dns-message")
                .body(())
                .expect("a request");
            let mut stream = requests.send_request(request).await.expect("sent");
            stream.send_data(Bytes::from(message.clone())).await.expect("sent");
            stream.finish().await.expect("sent");
            let response = stream.recv_response().await.expect("a response");
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()["content-type"], "application/dns-message");
            let mut body = Vec::new();
            while let Some(mut data) = stream.recv_data().await.expect("a body") {
                body.extend_from_slice(&data.copy_to_bytes(data.remaining()));
            }
            assert_eq!(body, message);
        }
        assert_eq!(server.service.last_client().transport, Transport::H3);
        let request = Request::get(format!("https://{NAME}/elsewhere")).body(()).expect("a request");
        let mut stream = requests.send_request(request).await.expect("sent");
        stream.finish().await.expect("sent");
        assert_eq!(stream.recv_response().await.expect("a response").status(), StatusCode::NOT_FOUND);
    });
}

#[test]
fn a_connection_that_is_old_ends() {
    run(async {
        let (tls, certificate) = tls();
        let server = start(&Arc::new(TlsCell::new(Some(tls))), |plan| {
            plan.tcp.age_max = Some(Duration::from_millis(100));
        });
        for alpn in ["doq", "h3"] {
            let connection = connect(server.address, &certificate, alpn).await.expect("connected");
            let error = timeout(PATIENCE, connection.closed()).await.expect("closed in time");
            assert!(matches!(error, ConnectionError::ApplicationClosed(_)), "{error}");
        }
        while server.count("tcp_closed_finished") < 2 {
            settle().await;
        }
    });
}

#[test]
fn a_stopping_worker_says_goodbye() {
    run(async {
        let (tls, certificate) = tls();
        let server = start(&Arc::new(TlsCell::new(Some(tls))), |_| {});
        let connection = connect(server.address, &certificate, "doq").await.expect("connected");
        let late = tokio::task::spawn_local({
            let connection = connection.clone();
            async move { exchange(&connection, &framed(&query(0, "late"))).await }
        });
        server.service.until_waiting(1).await;
        server.stop(Duration::from_secs(5));
        settle().await;
        server.service.echo(0);
        assert_eq!(late.await.expect("answered"), Some(framed(&query(0, "late"))));
    });
}

#[test]
fn a_listener_for_both_announces_http_3() {
    run(async {
        let (tls, certificate) = tls();
        let cell = Arc::new(TlsCell::new(Some(tls)));
        let server = start(&cell, |plan| {
            plan.listeners[0].transports = Transports {
                datagrams: Some(Datagrams::Quic { doq: false, h3: true }),
                connections: Some(Connections::Https),
            };
        });
        connect(server.address, &certificate, "doq").await.expect_err("not spoken here");
        connect(server.address, &certificate, "h3").await.expect("connected");
    });
}
