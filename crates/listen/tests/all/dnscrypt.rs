//! DNSCrypt: strangers who come with new keys all the time.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use ::dnscrypt::{Certificate, ResolverKey, Session, System, Travel, generate};
use listen::DnscryptCell;
use plan::dnscrypt::{ProviderPlan, ResolverKeyPlan};
use plan::listeners::{Plan, Transports};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, UdpSocket};

use crate::common::{Running, query, run, settle, start_sealed};

/// Starts a worker that agrees on at most so many keys with a client; returns what clients know.
fn start(per_client: u32, change: impl FnOnce(&mut Plan)) -> (Running, Certificate) {
    let (secret, key) = generate().expect("a key");
    let certificate =
        Certificate { system: System::XChaCha20, key, magic: *b"magic678", serial: 1, valid: (0, 9) };
    let key = ResolverKey::new(certificate.clone(), &secret).expect("its key");
    let plan = ProviderPlan {
        name: "2.dnscrypt-cert.example.org".parse().expect("a name"),
        keys: vec![ResolverKeyPlan { key, published: None }],
        agreed_octets: 1 << 20,
        replay_octets: 1 << 16,
    };
    let cell = Arc::new(DnscryptCell::default());
    cell.publish(cell.prepare(Some(&Arc::new(plan))));
    let server = start_sealed("127.0.0.1:0", &cell, |plan| {
        plan.listeners[0].transports = Transports::DNSCRYPT;
        plan.tcp.handshakes_per_client = per_client;
        plan.tcp.handshakes_burst = per_client;
        change(plan);
    });
    (server, certificate)
}

/// Somebody who asks from an address.
struct Asker {
    socket: UdpSocket,
    certificate: Certificate,
    session: RefCell<Session>,
    sent: Cell<u16>,
}

impl Asker {
    async fn new(server: &Running, certificate: &Certificate, address: &str) -> Self {
        let socket = UdpSocket::bind((address, 0)).await.expect("loopback has free ports");
        socket.connect(server.address).await.expect("connected");
        let session = RefCell::new(Session::new(certificate).expect("a key"));
        Self { socket, certificate: certificate.clone(), session, sent: Cell::default() }
    }

    fn renew_key(&self) {
        self.session.replace(Session::new(&self.certificate).expect("a key"));
    }

    fn sealed(&self, word: &str) -> Vec<u8> {
        self.sent.set(self.sent.get() + 1);
        self.session.borrow().seal(&query(self.sent.get(), word), Travel::Datagram(256)).expect("room").0
    }

    async fn send(&self) {
        self.socket.send(&self.sealed("echo")).await.expect("sent");
    }

    /// Asks, and waits for the answer to this question.
    async fn ask(&self) {
        self.send().await;
        let mut response = [0; 512];
        let octets = self.socket.recv(&mut response).await.expect("a response");
        let (_, reply) = self.session.borrow().open(&response[..octets]).expect("for this client");
        assert_eq!(reply, query(self.sent.get(), "echo"));
    }

    /// Sends as many queries, each with a new key; returns once all were looked at.
    async fn flood(&self, server: &Running, queries: u64) {
        for _ in 0..queries {
            let before = server.count("udp_datagrams");
            self.renew_key();
            self.send().await;
            while server.count("udp_datagrams") == before {
                settle().await;
            }
        }
    }
}

fn counts(server: &Running) -> [u64; 3] {
    ["dnscrypt_agreed", "dnscrypt_limited", "dnscrypt_malformed"].map(|name| server.count(name))
}

#[test]
fn whoever_sends_a_new_key_with_each_datagram_costs_few_key_agreements_and_holds_nobody_up() {
    run(async {
        let (server, certificate) = start(10, |_| {});
        let asker = |address| Asker::new(&server, &certificate, address);
        let (known, stranger) = (asker("127.0.0.2").await, asker("127.0.0.3").await);
        known.ask().await;
        stranger.flood(&server, 100).await;
        assert_eq!(counts(&server), [11, 90, 0]);
        for _ in 0..20 {
            known.ask().await;
        }
        assert_eq!(counts(&server), [11, 90, 0], "with a known key nothing is agreed on");
        let new = asker("127.0.0.4").await;
        new.ask().await;
        new.renew_key();
        new.ask().await;
        assert_eq!(counts(&server), [13, 90, 0], "others may come with new keys as before");
    });
}

#[test]
fn a_client_whose_key_is_known_is_served_beside_a_stranger_at_its_own_address() {
    run(async {
        let (server, certificate) = start(5, |_| {});
        let asker = || Asker::new(&server, &certificate, "127.0.0.2");
        let (known, stranger) = (asker().await, asker().await);
        known.ask().await;
        stranger.flood(&server, 50).await;
        assert_eq!(counts(&server), [5, 46, 0]);
        known.ask().await;
    });
}

#[test]
fn what_nobody_sealed_counts_as_much_as_a_query() {
    run(async {
        let (server, certificate) = start(5, |_| {});
        let forger = Asker::new(&server, &certificate, "127.0.0.2").await;
        for _ in 0..50 {
            let before = server.count("udp_datagrams");
            forger.renew_key();
            let mut sealed = forger.sealed("echo");
            sealed[100] ^= 1;
            forger.socket.send(&sealed).await.expect("sent");
            while server.count("udp_datagrams") == before {
                settle().await;
            }
        }
        assert_eq!(counts(&server), [5, 45, 5]);
        assert_eq!(server.service.seen(), 0);
        Asker::new(&server, &certificate, "127.0.0.3").await.ask().await;
    });
}

#[test]
fn key_agreements_of_all_clients_together_are_limited_but_known_keys_are_served() {
    run(async {
        let (server, certificate) = start(1000, |plan| plan.tcp.handshakes_per_second = 1);
        let known = Asker::new(&server, &certificate, "127.0.0.2").await;
        known.ask().await;
        for last in 3..13 {
            let stranger = Asker::new(&server, &certificate, &format!("127.0.0.{last}")).await;
            stranger.flood(&server, 3).await;
        }
        assert_eq!(counts(&server), [16, 15, 0], "sixteen for each handshake of TLS");
        known.ask().await;
    });
}

#[test]
fn over_a_connection_a_new_key_beyond_the_limit_gets_silence_and_a_known_one_an_answer() {
    run(async {
        let (server, certificate) = start(2, |_| {});
        let [known, other] = [(); 2].map(|()| Session::new(&certificate).expect("a key"));
        let spare = Session::new(&certificate).expect("a key");
        let socket = TcpSocket::new_v4().expect("a socket");
        let mut stream = socket.connect(server.address).await.expect("connected");
        let sent = [&known, &other, &spare, &known];
        for (id, session) in (0..).zip(sent) {
            let sealed = session.seal(&query(id, "echo"), Travel::Connection).expect("room").0;
            stream.write_all(&(sealed.len() as u16).to_be_bytes()).await.expect("sent");
            stream.write_all(&sealed).await.expect("sent");
        }
        for (id, session) in [(0, &known), (1, &other), (3, &known)] {
            let mut sealed = vec![0; usize::from(stream.read_u16().await.expect("a reply"))];
            stream.read_exact(&mut sealed).await.expect("a reply");
            assert_eq!(session.open(&sealed).expect("for this client").1, query(id, "echo"));
        }
        assert_eq!(counts(&server), [2, 1, 0]);
    });
}
