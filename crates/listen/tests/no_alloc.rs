//! Queries answered from memory pass through the sockets without an allocation.

mod common;

use std::cell::{RefCell, RefMut};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;

use common::{query, run, settle};
use counting::Counting;
use dnscrypt::{Certificate, ResolverKey, Session, System, Travel, generate};
use engine::{Client, Now, ReplyTo};
use listen::{Answer, Answered, Counters, DnscryptCell, Service};
use plan::dnscrypt::{ProviderPlan, ResolverKeyPlan};
use plan::listeners::{ListenerPlan, Plan, Transports};
use tokio::task::{spawn_local, yield_now};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Default)]
struct Echo {
    echoed: u64,
}

impl Answer for Echo {
    type Deferred = ();

    fn begin(&mut self, _now: Now) {}

    fn answer(&mut self, query: &[u8], _client: &Client, room: &mut [u8]) -> Answered<()> {
        self.echoed += 1;
        room[..query.len()].copy_from_slice(query);
        Answered::Reply(query.len())
    }

    fn next_prefetch(&mut self) -> Option<()> {
        None
    }
}

#[derive(Default)]
struct Echoes(RefCell<Echo>);

impl Service for Echoes {
    type Engine = Echo;

    fn engine(&self) -> RefMut<'_, Echo> {
        self.0.borrow_mut()
    }

    fn now(&self) -> Now {
        Now::default()
    }

    fn take(&self, (): (), _to: ReplyTo) {}

    fn prefetch(&self, (): ()) {}

    fn flush(&self) {}
}

/// Starts an echo on a free port; returns it and its address.
fn start() -> (Rc<Echoes>, SocketAddr) {
    start_with(Transports::UDP_AND_TCP, &Arc::default())
}

/// Starts an echo that speaks these transports.
fn start_with(transports: Transports, dnscrypt: &Arc<DnscryptCell>) -> (Rc<Echoes>, SocketAddr) {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let listeners = vec![ListenerPlan { transports, ..ListenerPlan::new(address) }];
    let plan = Plan { listeners, ..Plan::default() };
    let sockets = listen::bind(&plan, 1, Vec::new()).expect("loopback has free ports");
    let address = sockets.addresses()[0].address;
    let worker = sockets.into_workers().pop().expect("one worker").sealed_by(dnscrypt);
    let service = Rc::new(Echoes::default());
    let echoes = Rc::clone(&service);
    spawn_local(async move {
        let (_stopper, stop) = listen::stop();
        listen::serve(echoes, worker, Arc::new(Counters::default()), stop).await
    });
    (service, address)
}

/// Lets `send` send, and the worker answer `count` queries; returns how often that allocated.
async fn allocations(service: &Echoes, count: u64, send: impl FnOnce()) -> u64 {
    send();
    let (echoed, before) = (service.0.borrow().echoed, counting::calls());
    while service.0.borrow().echoed < echoed + count {
        yield_now().await;
    }
    settle().await;
    counting::calls() - before
}

#[test]
fn datagrams_are_answered_without_allocating() {
    run(async {
        let (service, address) = start();
        let client = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
        client.connect(address).expect("connected");
        for count in [1, 1, 3, 64, 100] {
            let send = || {
                for id in 0..count {
                    client.send(&query(id, "hello")).expect("sent");
                }
            };
            let counted = allocations(&service, u64::from(count), send).await;
            let mut buf = [0; 100];
            for id in 0..count {
                let len = client.recv(&mut buf).expect("a reply");
                assert_eq!(buf[..len], query(id, "hello"));
            }
            // The runtime itself settles in with the first batch.
            assert!(service.0.borrow().echoed == 1 || counted == 0, "{counted} for {count} queries");
        }
    });
}

#[test]
fn whole_queries_of_a_connection_are_answered_without_allocating() {
    run(async {
        let (service, address) = start();
        let mut client = TcpStream::connect(address).expect("connected");
        let framed = [&[0, 17][..], &query(7, "hello")].concat();
        for count in [1, 1, 3, 64, 200] {
            let send = || client.write_all(&framed.repeat(count)).expect("sent");
            let counted = allocations(&service, count as u64, send).await;
            let mut replies = vec![0; framed.len() * count];
            client.read_exact(&mut replies).expect("all replies");
            assert_eq!(replies, framed.repeat(count));
            if count > 1 && count <= 64 {
                assert_eq!(counted, 0, "for {count} queries");
            }
        }
    });
}

#[test]
fn sealed_messages_are_answered_without_allocating() {
    run(async {
        let (secret, key) = generate().expect("a key");
        let certificate =
            Certificate { system: System::XChaCha20, key, magic: *b"magic678", serial: 1, valid: (0, 9) };
        let session = Session::new(&certificate).expect("a key");
        let key = ResolverKey::new(certificate, &secret).expect("its key");
        let plan = ProviderPlan {
            name: "2.dnscrypt-cert.example.org".parse().expect("a name"),
            keys: vec![ResolverKeyPlan { key, published: None }],
            agreed_octets: 1 << 16,
            replay_octets: 1 << 16,
        };
        let cell = Arc::new(DnscryptCell::default());
        cell.publish(cell.prepare(Some(&Arc::new(plan))));
        let (service, address) = start_with(Transports::DNSCRYPT, &cell);
        let client = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
        client.connect(address).expect("connected");
        let mut stream = TcpStream::connect(address).expect("connected");
        for count in [1, 1, 3, 32] {
            let session_seal = |id, travel| session.seal(&query(id, "hello"), travel).expect("room").0;
            let datagrams: Vec<_> = (0..count).map(|id| session_seal(id, Travel::Datagram(256))).collect();
            let send = || datagrams.iter().for_each(|sealed| assert!(client.send(sealed).is_ok()));
            let counted = allocations(&service, u64::from(count), send).await;
            let mut buf = [0; 512];
            for id in 0..count {
                let len = client.recv(&mut buf).expect("a reply");
                let (_, reply) = session.open(&buf[..len]).expect("a response");
                assert_eq!(reply, query(id, "hello"));
            }
            // The key is agreed on with the first.
            assert!(service.0.borrow().echoed == 1 || counted == 0, "{counted} for {count} datagrams");

            let framed: Vec<u8> = (0..count)
                .map(|id| session_seal(id, Travel::Datagram(256)))
                .flat_map(|sealed| [&(sealed.len() as u16).to_be_bytes()[..], &sealed].concat())
                .collect();
            let counted =
                allocations(&service, u64::from(count), || stream.write_all(&framed).expect("sent")).await;
            for id in 0..count {
                let mut len = [0; 2];
                stream.read_exact(&mut len).expect("a reply");
                let mut sealed = vec![0; usize::from(u16::from_be_bytes(len))];
                stream.read_exact(&mut sealed).expect("a reply");
                assert_eq!(session.open(&sealed).expect("a response").1, query(id, "hello"));
            }
            assert!(count == 1 || counted == 0, "{counted} for {count} messages of a connection");
        }
    });
}
