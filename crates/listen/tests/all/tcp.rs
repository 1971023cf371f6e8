//! Connections: order, limits, and clients that are slow on purpose.

use crate::common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{BIG, Running, proxy_header, query, run, run_paused, settle, start};
use plan::listeners::{Prefix, TcpPlan};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

/// Frames a message.
fn framed(message: &[u8]) -> Vec<u8> {
    let len = u16::try_from(message.len()).expect("a short message");
    [&len.to_be_bytes()[..], message].concat()
}

async fn connect(server: &Running) -> TcpStream {
    TcpStream::connect(server.address).await.expect("connected")
}

async fn connect_from(from: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{from}:0").parse().expect("an address")).expect("a loopback address");
    socket.connect(to).await.expect("connected")
}

async fn send(stream: &mut TcpStream, query: &[u8]) {
    stream.write_all(&framed(query)).await.expect("sent");
}

async fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let len = stream.read_u16().await.expect("a reply");
    let mut reply = vec![0; usize::from(len)];
    stream.read_exact(&mut reply).await.expect("a whole reply");
    reply
}

async fn ask(stream: &mut TcpStream, query: &[u8]) -> Vec<u8> {
    send(stream, query).await;
    receive(stream).await
}

/// Waits for the server to close the connection; returns whether it did so without a reset.
async fn closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.is_ok()
}

#[test]
fn replies_come_when_they_are_ready() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        let mut client = connect(&server).await;
        let queries = [query(1, "late"), query(2, "now"), query(3, "late"), query(4, "now")];
        let all: Vec<u8> = queries.iter().flat_map(|query| framed(query)).collect();
        client.write_all(&all).await.expect("sent");
        assert_eq!(receive(&mut client).await, queries[1]);
        assert_eq!(receive(&mut client).await, queries[3]);
        server.service.until_waiting(2).await;
        server.service.echo(1);
        assert_eq!(receive(&mut client).await, queries[2]);
        server.service.echo(0);
        assert_eq!(receive(&mut client).await, queries[0]);
        let seen = server.service.last_client();
        assert!(seen.verified);
        assert_eq!(seen.keepalive.map(|it| it.timeout), Some(100), "the idle timeout in units of 100 ms");
        assert_eq!((server.count("tcp_queries"), server.count("tcp_replies")), (4, 4));
    });
}

#[test]
fn ipv6_works_the_same() {
    run(async {
        let server = start("[::1]:0", |_| {});
        let mut client = connect(&server).await;
        assert_eq!(ask(&mut client, &query(1, "now")).await, query(1, "now"));
        assert_eq!(server.service.last_client().address, server.address.ip());
    });
}

#[test]
fn queries_may_come_in_any_pieces() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        let mut client = connect(&server).await;
        client.set_nodelay(true).expect("set");
        for octet in framed(&query(1, "now")) {
            client.write_u8(octet).await.expect("sent");
            settle().await;
        }
        assert_eq!(receive(&mut client).await, query(1, "now"));

        // The largest message in two pieces, the second with the beginning of the next.
        let long = query(2, &"x".repeat(65_535 - 12));
        let all = [framed(&long), framed(&query(3, "now"))].concat();
        let (first, second) = all.split_at(40_000);
        client.write_all(first).await.expect("sent");
        settle().await;
        let (second, third) = second.split_at(25_540);
        client.write_all(second).await.expect("sent");
        assert_eq!(receive(&mut client).await, long);
        client.write_all(third).await.expect("sent");
        assert_eq!(receive(&mut client).await, query(3, "now"));
    });
}

#[test]
fn it_does_not_matter_how_long_a_client_pauses() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        // Some pauses end before the server waits for the connection, some after.
        for turns in 0..40 {
            let pause = async || {
                for _ in 0..turns {
                    yield_now().await;
                }
            };
            let mut client = connect(&server).await;
            client.set_nodelay(true).expect("set");
            for id in 0..3 {
                pause().await;
                let framed = framed(&query(id, "now"));
                let (begin, end) = framed.split_at(5);
                client.write_all(begin).await.expect("sent");
                pause().await;
                client.write_all(end).await.expect("sent");
                pause().await;
                assert_eq!(receive(&mut client).await, query(id, "now"));
            }
            pause().await;
            send(&mut client, &query(4, "late")).await;
            pause().await;
            client.shutdown().await.expect("half closed");
            server.service.until_waiting(1).await;
            server.service.echo(0);
            assert_eq!(receive(&mut client).await, query(4, "late"));
            assert!(closed(&mut client).await);
        }
        settle().await;
        assert_eq!((server.count("tcp_closed_client"), server.count("tcp_closed_error")), (40, 0));
    });
}

#[test]
fn connections_end_whenever_the_server_is_stopped() {
    for turns in 0..40 {
        run(async move {
            let server = start("127.0.0.1:0", |_| {});
            let (mut silent, mut client) = (connect(&server).await, connect(&server).await);
            send(&mut client, &query(1, "now")).await;
            assert_eq!(receive(&mut client).await, query(1, "now"));
            for _ in 0..turns {
                yield_now().await;
            }
            server.stop(Duration::from_secs(3600));
            assert!(closed(&mut silent).await);
            assert!(closed(&mut client).await);
            drop((silent, client));
            server.serving.await.expect("not cancelled").expect("no error");
        });
    }
}

#[test]
fn more_queries_at_once_than_a_turn_answers_are_all_answered() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        let mut client = connect(&server).await;
        let all: Vec<u8> = (0..2000).flat_map(|id| framed(&query(id, "now"))).collect();
        client.write_all(&all).await.expect("sent");
        for id in 0..2000 {
            assert_eq!(receive(&mut client).await, query(id, "now"));
        }
    });
}

#[test]
fn no_more_queries_are_read_than_may_wait() {
    run(async {
        let server = start("127.0.0.1:0", |plan| plan.tcp.waiting_max = 2);
        let mut client = connect(&server).await;
        let all: Vec<u8> = (0..4).flat_map(|id| framed(&query(id, "late"))).collect();
        client.write_all(&all).await.expect("sent");
        server.service.until_waiting(2).await;
        server.service.echo(0);
        assert_eq!(receive(&mut client).await, query(0, "late"));
        server.service.until_waiting(2).await;
        // Behind one that is never answered, no more are read.
        drop(server.service.late.borrow_mut().remove(0));
        server.service.echo(0);
        assert_eq!(receive(&mut client).await, query(2, "late"));
        assert!(closed(&mut client).await);
        assert_eq!(server.service.seen(), 3);
    });
}

#[test]
fn a_client_that_has_said_all_still_gets_its_replies() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        let mut client = connect(&server).await;
        send(&mut client, &query(1, "late")).await;
        client.shutdown().await.expect("half closed");
        server.service.until_waiting(1).await;
        server.service.echo(0);
        assert_eq!(receive(&mut client).await, query(1, "late"));
        assert!(closed(&mut client).await);
        settle().await;
        assert_eq!(server.count("tcp_closed_client"), 1);
    });
}

#[test]
fn what_is_not_dns_ends_the_connection() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        let mut client = connect(&server).await;
        send(&mut client, b"short").await;
        assert!(closed(&mut client).await);
        settle().await;
        assert_eq!((server.count("tcp_closed_malformed"), server.service.seen()), (1, 0));
    });
}

#[test]
fn clients_that_do_not_take_replies_are_not_read_and_then_cut_off() {
    run_paused(async {
        let server = start("127.0.0.1:0", |_| {});
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("set");
        let mut client = socket.connect(server.address).await.expect("connected");
        let started = Instant::now();
        // Replies of 60 MB: far more than all buffers between us hold.
        let all: Vec<u8> = (0..1000).flat_map(|id| framed(&query(id, "big"))).collect();
        client.write_all(&all).await.expect("sent");
        while server.count("tcp_closed_slow_reader") == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(started.elapsed() >= TcpPlan::WRITE_TIMEOUT);
        let answered = server.service.seen();
        assert!(answered < 200, "{answered} were answered");
        assert!(!closed(&mut client).await || answered < 1000);
    });
}

#[test]
fn a_client_that_takes_its_replies_slowly_is_served() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("set");
        let mut client = socket.connect(server.address).await.expect("connected");
        let all: Vec<u8> = (0..100).flat_map(|id| framed(&query(id, "big"))).collect();
        client.write_all(&all).await.expect("sent");
        settle().await;
        for _ in 0..100 {
            assert_eq!(receive(&mut client).await.len(), BIG);
        }
    });
}

#[test]
fn late_replies_nobody_takes_are_bounded() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("set");
        let mut client = socket.connect(server.address).await.expect("connected");
        let all: Vec<u8> = (0..200).flat_map(|id| framed(&query(id, "late"))).collect();
        client.write_all(&all).await.expect("sent");
        server.service.until_waiting(200).await;
        for _ in 0..200 {
            server.service.release(0, &[7; BIG]);
        }
        settle().await;
        assert_eq!(server.count("tcp_closed_slow_reader"), 1);
        assert!(server.count("tcp_replies") < 200);
    });
}

#[test]
fn half_queries_are_not_waited_for_for_ever() {
    run_paused(async {
        let server = start("127.0.0.1:0", |_| {});
        let mut client = connect(&server).await;
        assert_eq!(ask(&mut client, &query(1, "now")).await, query(1, "now"));
        let started = Instant::now();
        // Each octet on its own is activity, but not progress.
        for octet in [0, 100, 0, 1, 0, 0] {
            client.write_u8(octet).await.expect("sent");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        assert!(closed(&mut client).await);
        settle().await;
        assert_eq!(server.count("tcp_closed_slow_writer"), 1);
        assert!(started.elapsed() < TcpPlan::QUERY_TIMEOUT + Duration::from_secs(1));
    });
}

#[test]
fn quiet_connections_are_closed() {
    run_paused(async {
        let server = start("127.0.0.1:0", |_| {});
        let started = Instant::now();
        let mut silent = connect(&server).await;
        assert!(closed(&mut silent).await);
        assert!(started.elapsed() < TcpPlan::FIRST_TIMEOUT + Duration::from_secs(1));

        let mut client = connect(&server).await;
        assert_eq!(ask(&mut client, &query(1, "now")).await, query(1, "now"));
        let started = Instant::now();
        send(&mut client, &query(2, "late")).await;
        server.service.until_waiting(1).await;
        tokio::time::sleep(TcpPlan::IDLE_TIMEOUT * 2).await;
        server.service.echo(0);
        assert_eq!(
            receive(&mut client).await,
            query(2, "late"),
            "a connection with a waiting query is not quiet"
        );
        assert!(closed(&mut client).await);
        assert!(started.elapsed() >= TcpPlan::IDLE_TIMEOUT * 3, "and counts from its last reply");
        settle().await;
        assert_eq!(server.count("tcp_closed_idle"), 2);
    });
}

#[test]
fn one_client_may_not_have_all_connections() {
    run(async {
        let server = start("127.0.0.1:0", |plan| {
            plan.tcp.connections_per_client_max = 2;
            plan.tcp.client_bits_v4 = 30;
        });
        let mut first = connect_from("127.0.0.4", server.address).await;
        let mut second = connect_from("127.0.0.5", server.address).await;
        assert_eq!(ask(&mut first, &query(1, "now")).await, query(1, "now"));
        assert_eq!(ask(&mut second, &query(2, "now")).await, query(2, "now"));
        let mut third = connect_from("127.0.0.6", server.address).await;
        assert!(closed(&mut third).await);
        let mut other = connect_from("127.0.0.8", server.address).await;
        assert_eq!(ask(&mut other, &query(3, "now")).await, query(3, "now"));
        drop(first);
        settle().await;
        let mut fourth = connect_from("127.0.0.6", server.address).await;
        assert_eq!(ask(&mut fourth, &query(4, "now")).await, query(4, "now"));
        assert_eq!(server.count("tcp_refused_client"), 1);
    });
}

#[test]
fn when_all_places_are_taken_the_longest_quiet_connection_gives_way() {
    run(async {
        let server = start("127.0.0.1:0", |plan| plan.tcp.connections_max = 3);
        let (mut a, mut b, mut c) = (connect(&server).await, connect(&server).await, connect(&server).await);
        for client in [&mut a, &mut b, &mut c] {
            assert_eq!(ask(client, &query(1, "now")).await, query(1, "now"));
        }
        assert_eq!(ask(&mut a, &query(2, "now")).await, query(2, "now"));
        let mut d = connect(&server).await;
        assert_eq!(ask(&mut d, &query(3, "now")).await, query(3, "now"));
        assert!(closed(&mut b).await);
        assert_eq!(ask(&mut a, &query(4, "now")).await, query(4, "now"));

        for client in [&mut a, &mut c, &mut d] {
            send(client, &query(5, "late")).await;
        }
        server.service.until_waiting(3).await;
        let mut e = connect(&server).await;
        assert!(closed(&mut e).await, "those that wait for replies are not closed for it");
        assert_eq!((server.count("tcp_closed_evicted"), server.count("tcp_refused_full")), (1, 1));
    });
}

#[test]
fn trusted_proxies_speak_for_their_clients() {
    run(async {
        let server = start("127.0.0.1:0", |plan| {
            plan.listeners[0].proxies = vec![Prefix::new([127, 0, 0, 9].into(), 32)];
            plan.tcp.connections_per_client_max = 1;
        });
        let mut first = connect_from("127.0.0.9", server.address).await;
        let header = proxy_header([203, 0, 113, 5], 4242, true);
        let (begin, end) = header.split_at(10);
        first.write_all(begin).await.expect("sent");
        settle().await;
        first.write_all(&[end, &framed(&query(1, "now"))].concat()).await.expect("sent");
        assert_eq!(receive(&mut first).await, query(1, "now"));
        let seen = server.service.last_client();
        assert_eq!(
            (seen.address.to_string(), seen.port, seen.verified),
            ("203.0.113.5".to_owned(), 4242, true)
        );
        assert_eq!(ask(&mut first, &query(2, "now")).await, query(2, "now"), "one header is enough");

        let mut second = connect_from("127.0.0.9", server.address).await;
        second.write_all(&proxy_header([203, 0, 113, 6], 1, false)).await.expect("sent");
        assert_eq!(ask(&mut second, &query(3, "now")).await, query(3, "now"));
        assert!(!server.service.last_client().verified, "behind the proxy it was a datagram");

        let mut third = connect_from("127.0.0.9", server.address).await;
        third.write_all(&header).await.expect("sent");
        assert!(closed(&mut third).await, "limits are those of the client");

        let mut fourth = connect_from("127.0.0.9", server.address).await;
        send(&mut fourth, &query(4, "now")).await;
        let _ = closed(&mut fourth).await;
        settle().await;
        assert_eq!((server.count("tcp_refused_client"), server.count("proxy_malformed")), (1, 1));
    });
}

#[test]
fn a_connection_ends_cleanly_after_its_last_query() {
    run_paused(async {
        let server = start("127.0.0.1:0", |plan| plan.tcp.queries_max = Some(3));
        let mut client = connect(&server).await;
        let all: Vec<u8> = (0..5).flat_map(|id| framed(&query(id, "now"))).collect();
        client.write_all(&all).await.expect("sent");
        for id in 0..3 {
            assert_eq!(receive(&mut client).await, query(id, "now"));
        }
        assert!(closed(&mut client).await, "without a reset, although two queries were not read");
        settle().await;
        assert_eq!(server.count("tcp_closed_finished"), 1);
    });
}

#[test]
fn a_connection_ends_with_a_query_that_gets_no_reply_once_others_have_theirs() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        // One hears at once that there will be nothing, one when its query is given up.
        let (mut first, mut second) = (connect(&server).await, connect(&server).await);
        let all: Vec<u8> = [query(1, "late"), query(2, "now"), query(3, "drop"), query(4, "now")]
            .iter()
            .flat_map(|it| framed(it))
            .collect();
        first.write_all(&all).await.expect("sent");
        assert_eq!(receive(&mut first).await, query(2, "now"));
        send(&mut second, &query(5, "late")).await;
        server.service.until_waiting(2).await;
        drop(server.service.late.borrow_mut().remove(1));
        assert!(closed(&mut second).await);
        server.service.echo(0);
        assert_eq!(receive(&mut first).await, query(1, "late"), "what waited is answered");
        assert!(closed(&mut first).await);
        assert_eq!((server.service.seen(), server.count("tcp_closed_finished")), (4, 2));
    });
}

#[test]
fn a_connection_that_is_old_ends_when_nothing_waits() {
    run(async {
        let server = start("127.0.0.1:0", |plan| plan.tcp.age_max = Some(Duration::from_millis(200)));
        // One is quiet, one is busy all the time, one waits.
        let mut quiet = connect(&server).await;
        let mut waiting = connect(&server).await;
        send(&mut waiting, &query(1, "late")).await;
        server.service.until_waiting(1).await;
        let mut busy = connect(&server).await;
        let asking = async {
            let mut asked = 0_u32;
            loop {
                if busy.write_all(&framed(&query(2, "now"))).await.is_err() || busy.read_u16().await.is_err()
                {
                    return asked;
                }
                busy.read_exact(&mut vec![0; query(2, "now").len()]).await.expect("a whole reply");
                asked += 1;
            }
        };
        let asked = timeout(Duration::from_secs(10), asking).await.expect("it ends");
        assert!(asked > 0);
        assert!(closed(&mut quiet).await);
        server.service.echo(0);
        assert_eq!(receive(&mut waiting).await, query(1, "late"), "what waited is answered");
        assert!(closed(&mut waiting).await);
        assert_eq!(server.count("tcp_closed_finished"), 3);
    });
}

#[test]
fn stopping_waits_for_late_replies_and_takes_no_more_queries() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        let (mut quiet, mut client) = (connect(&server).await, connect(&server).await);
        send(&mut client, &query(1, "late")).await;
        server.service.until_waiting(1).await;
        server.stop(Duration::from_secs(3600));
        assert!(closed(&mut quiet).await);
        send(&mut client, &query(2, "now")).await;
        settle().await;
        assert!(TcpStream::connect(server.address).await.is_err(), "nobody listens any more");
        server.service.echo(0);
        assert_eq!(receive(&mut client).await, query(1, "late"));
        assert!(closed(&mut client).await);
        drop((client, quiet));
        server.serving.await.expect("not cancelled").expect("no error");
        assert_eq!(server.service.seen(), 1);
    });
}

#[test]
fn stopping_ends_at_the_deadline() {
    run_paused(async {
        let server = start("127.0.0.1:0", |_| {});
        let mut client = connect(&server).await;
        send(&mut client, &query(1, "late")).await;
        server.service.until_waiting(1).await;
        server.stop(Duration::from_secs(5));
        server.serving.await.expect("not cancelled").expect("no error");
        assert!(closed(&mut client).await);
        server.service.echo(0);
    });
}
