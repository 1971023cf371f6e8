//! Queries answered from memory pass through the sockets without an allocation.

mod common;

use std::cell::{RefCell, RefMut};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;

use common::{query, run, settle};
use counting::Counting;
use engine::{Client, Now, ReplyTo};
use listen::{Answer, Answered, Counters, Service};
use plan::listeners::{ListenerPlan, Plan};
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
    let listeners = vec![ListenerPlan::new(SocketAddr::from(([127, 0, 0, 1], 0)))];
    let plan = Plan { listeners, ..Plan::default() };
    let sockets = listen::bind(&plan, 1, Vec::new()).expect("loopback has free ports");
    let address = sockets.addresses()[0].address;
    let worker = sockets.into_workers().pop().expect("one worker");
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
