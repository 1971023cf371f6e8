//! Datagrams: where replies go, where they come from, and who is said to have asked.

use crate::common;

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use common::{proxy_header, query, run, run_paused, settle, start};
use plan::listeners::{Grouping, ListenerPlan, Prefix};
use tokio::net::UdpSocket;

/// A client that takes replies only from the address it asked.
async fn client(from: &str, to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(from).await.expect("loopback has free ports");
    socket.connect(to).await.expect("connected");
    socket
}

async fn ask(socket: &UdpSocket, query: &[u8]) -> Vec<u8> {
    socket.send(query).await.expect("sent");
    receive(socket).await
}

async fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buf = vec![0; 65_535];
    let len = socket.recv(&mut buf).await.expect("a reply");
    buf.truncate(len);
    buf
}

#[test]
fn replies_leave_from_the_address_that_was_asked() {
    run(async {
        let server = start("0.0.0.0:0", |_| {});
        for address in ["127.0.0.1", "127.0.0.2", "127.9.9.9"] {
            let client = client("127.0.0.1:0", server.at(address)).await;
            assert_eq!(ask(&client, &query(1, "now")).await, query(1, "now"));
            client.send(&query(2, "late")).await.expect("sent");
            server.service.until_waiting(1).await;
            server.service.echo(0);
            assert_eq!(receive(&client).await, query(2, "late"), "late replies as well");
        }
        assert_eq!(server.count("udp_replies"), 6);
    });
}

#[test]
fn sock_queue_timeout_drops_what_has_waited_too_long_and_nothing_else() {
    run(async {
        for address in ["127.0.0.1:0", "0.0.0.0:0"] {
            let server = start(address, |plan| plan.udp.queue_timeout_s = 3);
            let client = client("127.0.0.1:0", server.at("127.0.0.1")).await;
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
            let now = now.as_secs() as u32;
            // As if the worker had not come to it for a minute.
            server.service.unix_seconds.set(now + 60);
            client.send(&query(1, "now")).await.expect("sent");
            while server.count("udp_timed_out") < 1 {
                tokio::task::yield_now().await;
            }
            let longest = || server.counters.udp_queued_us_max.read();
            assert!(
                (50_000_000..=60_000_000).contains(&longest()),
                "{} us, although it is dropped",
                longest()
            );
            server.counters.udp_queued_us_max.reset();
            server.service.unix_seconds.set(now);
            assert_eq!(ask(&client, &query(2, "now")).await, query(2, "now"));
            assert_eq!((server.count("udp_timed_out"), server.count("udp_replies")), (1, 1));
            assert!(longest() <= 3_000_000, "{} us", longest());
        }
    });
}

#[test]
fn nothing_is_known_of_the_time_in_the_kernel_without_sock_queue_timeout() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        server.service.unix_seconds.set(u32::MAX);
        let client = client("127.0.0.1:0", server.at("127.0.0.1")).await;
        assert_eq!(ask(&client, &query(1, "now")).await, query(1, "now"));
        assert_eq!(server.counters.udp_queued_us_max.read(), 0);
    });
}

#[test]
fn ipv6_works_the_same() {
    run(async {
        for address in ["[::]:0", "[::1]:0"] {
            let server = start(address, |_| {});
            let client = client("[::1]:0", server.at("::1")).await;
            assert_eq!(ask(&client, &query(1, "now")).await, query(1, "now"));
            assert_eq!(server.service.last_client().address, server.at("::1").ip());
        }
    });
}

#[test]
fn a_burst_is_answered_in_order_and_together() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        let client = client("127.0.0.1:0", server.address).await;
        for id in 0..200 {
            client.send(&query(id, "now")).await.expect("sent");
        }
        for id in 0..200 {
            assert_eq!(receive(&client).await, query(id, "now"));
        }
        assert_eq!((server.count("udp_datagrams"), server.count("udp_replies")), (200, 200));
        if cfg!(target_os = "linux") {
            assert!(server.count("udp_batches") < 20, "they were read in batches");
            assert!(server.count("udp_grouped") > 0, "they left together");
        }
    });
}

#[test]
fn replies_go_apart_when_told_so() {
    run(async {
        let server = start("127.0.0.1:0", |plan| plan.udp.sending = Grouping::Apart);
        let client = client("127.0.0.1:0", server.address).await;
        for id in 0..100 {
            client.send(&query(id, "now")).await.expect("sent");
        }
        for id in 0..100 {
            assert_eq!(receive(&client).await, query(id, "now"));
        }
        assert_eq!((server.count("udp_replies"), server.count("udp_grouped")), (100, 0));
    });
}

#[test]
fn more_late_queries_than_a_batch_hands_over_are_all_taken() {
    run(async {
        let server = start("127.0.0.1:0", |plan| plan.udp.receiving = Grouping::Together);
        let client = client("127.0.0.1:0", server.address).await;
        for id in 0..150 {
            client.send(&query(id, "late")).await.expect("sent");
        }
        server.service.until_waiting(150).await;
        for id in 0..150 {
            server.service.echo(0);
            assert_eq!(receive(&client).await, query(id, "late"));
        }
    });
}

#[test]
fn datagrams_that_are_too_long_are_dropped_and_counted() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        let client = client("127.0.0.1:0", server.address).await;
        client.send(&[0; 5000]).await.expect("sent");
        client.send(&[]).await.expect("sent");
        assert_eq!(ask(&client, &query(1, "now")).await, query(1, "now"));
        assert_eq!(server.count("udp_unusable"), 1);
    });
}

#[test]
fn replies_larger_than_allowed_are_not_sent() {
    run(async {
        let server = start("127.0.0.1:0", |plan| plan.udp.reply_octets_max = 600);
        let client = client("127.0.0.1:0", server.address).await;
        client.send(&query(1, "late")).await.expect("sent");
        client.send(&query(2, "late")).await.expect("sent");
        server.service.until_waiting(2).await;
        assert_eq!(server.service.last_client().reply_octets_max, 600);
        assert_eq!(server.service.late.borrow()[0].1.outlet.reply_octets_max(), 600);
        server.service.release(0, &[1; 601]);
        server.service.release(0, &[2; 600]);
        assert_eq!(receive(&client).await, [2; 600]);
        assert_eq!(server.count("udp_unsent"), 1);
    });
}

#[test]
fn trusted_proxies_speak_for_their_clients() {
    run(async {
        let server = start("127.0.0.1:0", |plan| {
            plan.listeners[0].proxies = vec![Prefix::new([127, 0, 0, 8].into(), 29)];
        });
        let proxy = client("127.0.0.9:0", server.address).await;
        let message = [proxy_header([203, 0, 113, 5], 4242, false), query(1, "now")].concat();
        assert_eq!(ask(&proxy, &message).await, query(1, "now"), "the proxy gets the reply");
        let seen = server.service.last_client();
        assert_eq!((seen.address.to_string(), seen.port), ("203.0.113.5".to_owned(), 4242));

        let health_check = [&b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"[..], &query(2, "now")].concat();
        assert_eq!(ask(&proxy, &health_check).await, query(2, "now"));
        assert_eq!(server.service.last_client().address.to_string(), "127.0.0.9");

        // Without the header a proxy is not heard, and with it nobody else is believed.
        proxy.send(&query(3, "now")).await.expect("sent");
        let stranger = client("127.0.0.1:0", server.address).await;
        assert_eq!(ask(&stranger, &message).await, message, "to the script it is just some query");
        assert_eq!(server.service.last_client().address.to_string(), "127.0.0.1");
        assert_eq!((server.count("proxy_malformed"), server.service.seen()), (1, 3));
    });
}

#[test]
fn several_listeners_share_a_worker() {
    run(async {
        let server = start("127.0.0.1:0", |plan| {
            plan.listeners.push(ListenerPlan::new("127.0.0.2:0".parse().expect("an address")));
        });
        let client = client("127.0.0.1:0", server.address).await;
        assert_eq!(ask(&client, &query(1, "now")).await, query(1, "now"));
    });
}

#[test]
fn stopping_waits_for_late_replies() {
    run(async {
        let server = start("127.0.0.1:0", |_| {});
        let client = client("127.0.0.1:0", server.address).await;
        client.send(&query(1, "late")).await.expect("sent");
        server.service.until_waiting(1).await;
        server.stop(Duration::from_secs(3600));
        settle().await;
        assert!(!server.serving.is_finished());
        server.service.echo(0);
        assert_eq!(receive(&client).await, query(1, "late"));
        server.serving.await.expect("not cancelled").expect("no error");
    });
}

#[test]
fn stopping_ends_at_the_deadline() {
    run_paused(async {
        let server = start("127.0.0.1:0", |_| {});
        let client = client("127.0.0.1:0", server.address).await;
        client.send(&query(1, "late")).await.expect("sent");
        server.service.until_waiting(1).await;
        server.stop(Duration::from_secs(5));
        server.serving.await.expect("not cancelled").expect("no error");
        server.service.echo(0);
    });
}
