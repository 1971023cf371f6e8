//! Which connections are registered with the runtime.

#[path = "../../tests/common/mod.rs"]
mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use self::common::{Running, query, run, settle, start};
use crate::sys::WATCHED;

/// A query with its length before it.
fn framed() -> Vec<u8> {
    let query = query(1, "now");
    [&[0, query.len() as u8][..], &query].concat()
}

fn connect(server: &Running) -> TcpStream {
    TcpStream::connect(server.address).expect("connected")
}

/// Takes the reply, which is there.
fn receive(mut client: &TcpStream) {
    client.set_nonblocking(true).expect("set");
    let mut reply = [0; 64];
    let len = client.read(&mut reply).expect("a reply");
    client.set_nonblocking(false).expect("set");
    assert_eq!(reply[..len], framed());
}

#[test]
fn a_connection_for_each_query_is_never_registered() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        for asked in 1..=20 {
            let mut clients: Vec<_> = (0..20).map(|_| connect(&server)).collect();
            for client in &mut clients {
                client.write_all(&framed()).expect("sent");
                client.shutdown(Shutdown::Write).expect("half closed");
            }
            settle().await;
            for client in &clients {
                receive(client);
            }
            assert_eq!(server.count("tcp_closed_client"), asked * 20);
        }
        assert_eq!(WATCHED.get(), 0);
    });
}

#[test]
fn a_query_or_an_end_that_comes_while_others_have_their_turn_needs_no_registration() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        for asked in 1..=20 {
            let mut client = connect(&server);
            while server.count("tcp_accepted") < asked {
                tokio::task::yield_now().await;
            }
            client.write_all(&framed()).expect("sent");
            while server.count("tcp_replies") < asked {
                tokio::task::yield_now().await;
            }
            receive(&client);
            drop(client);
            settle().await;
            assert_eq!(server.count("tcp_closed_client"), asked);
        }
        assert_eq!(WATCHED.get(), 0);
    });
}

#[test]
fn a_connection_that_stays_is_registered_once() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        let mut silent = connect(&server);
        settle().await;
        assert_eq!(WATCHED.get(), 1, "it does not poll for ever");
        let mut client = connect(&server);
        for _ in 0..3 {
            client.write_all(&framed()).expect("sent");
            settle().await;
            receive(&client);
        }
        assert_eq!(WATCHED.get(), 2);
        silent.write_all(&framed()).expect("sent");
        settle().await;
        receive(&silent);
        let mut slow = connect(&server);
        slow.write_all(&framed()[..5]).expect("sent");
        settle().await;
        slow.write_all(&framed()[5..]).expect("sent");
        settle().await;
        receive(&slow);
        assert_eq!(WATCHED.get(), 3);
    });
}
