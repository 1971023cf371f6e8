//! The sockets of this machine: many addresses on loopback.

use std::net::{Ipv6Addr, SocketAddr};
use std::rc::Rc;

use authorities::{Arrival, AuthorityQuery, PoolLimits, Unanswered};
use cache::servers::{Edns, LetterCase};
use timers::Span;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::LocalSet;
use wire::{Flags, NameBuf, Query, Rcode, Rtype, Writer};

use super::owner::{End, Owner};

fn www() -> NameBuf {
    NameBuf::from_text("www.example.org").expect("a name")
}

/// Writes a reply without records to a query.
fn reply_to(query: &[u8], flags: Flags) -> Vec<u8> {
    let query = Query::parse(query).expect("we send queries");
    let mut out = vec![0; 512];
    let mut writer = Writer::new(&mut out, 512, query.header.id, Flags(flags.0 | Flags::QR.0));
    writer.question(&query.question).expect("it fits");
    let len = writer.finish();
    out.truncate(len);
    out
}

fn on_a_worker(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, test);
}

fn query_to(address: SocketAddr, qname: &NameBuf) -> AuthorityQuery<'_> {
    AuthorityQuery {
        address,
        qname: qname.as_name(),
        qtype: Rtype::A,
        over_tcp: false,
        udp_octets: 1232,
        edns: Edns::Unknown,
        case: LetterCase::Unknown,
        dnssec_ok: true,
        recursion_desired: false,
        checking_disabled: false,
        cookies: true,
        encrypt: authorities::Encrypt::default(),
        subnet: None,
    }
}

/// Answers datagrams, first from another socket if there is one.
async fn answer(socket: UdpSocket, flags: Flags, other: Option<UdpSocket>) {
    let mut buffer = [0; 2048];
    while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
        let reply = reply_to(&buffer[..len], flags);
        if let Some(other) = &other {
            other.send_to(&reply, from).await.expect("loopback takes it");
        }
        socket.send_to(&reply, from).await.expect("loopback takes it");
    }
}

async fn answer_streams(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::task::spawn_local(async move {
            while let Ok(length) = stream.read_u16().await {
                let mut query = vec![0; usize::from(length)];
                stream.read_exact(&mut query).await.expect("a whole query");
                let reply = reply_to(&query, Flags::AA);
                let framed = [&(reply.len() as u16).to_be_bytes()[..], &reply].concat();
                stream.write_all(&framed).await.expect("we read it");
            }
        });
    }
}

async fn ends(owner: &Rc<Owner>, count: usize) -> Vec<(u32, End)> {
    let mut ends = Vec::new();
    while ends.len() < count {
        ends.extend(owner.ended().await);
    }
    ends.sort_unstable_by_key(|(tag, _)| *tag);
    ends
}

#[test]
fn many_servers_answer_through_few_sockets() {
    on_a_worker(async {
        let owner = Owner::new(PoolLimits { sockets: 8, ..PoolLimits::default() });
        let qname = www();
        let mut servers = Vec::new();
        for last in 1..=200 {
            let socket = UdpSocket::bind((format!("127.0.7.{last}"), 0)).await;
            let socket = socket.expect("all of 127/8 is ours");
            servers.push(socket.local_addr().expect("it is bound"));
            tokio::task::spawn_local(answer(socket, Flags::AA, None));
        }
        let v6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).await;
        if let Ok(v6) = v6 {
            servers.push(v6.local_addr().expect("it is bound"));
            tokio::task::spawn_local(answer(v6, Flags::AA, None));
        }
        owner.is_batching.set(true);
        for (tag, &server) in (0..).zip(&servers) {
            owner.ask(&query_to(server, &qname), tag);
        }
        owner.settle();
        let ends = ends(&owner, servers.len()).await;
        let expected: Vec<(u32, End)> =
            (0..servers.len() as u32).map(|tag| (tag, Ok((Rcode::NOERROR, Arrival::Udp)))).collect();
        assert_eq!(ends, expected);
    });
}

#[test]
fn a_truncated_reply_is_followed_over_tcp() {
    on_a_worker(async {
        let owner = Owner::new(PoolLimits::default());
        let listener = TcpListener::bind("127.0.8.1:0").await.expect("a port");
        let server = listener.local_addr().expect("it is bound");
        let socket = UdpSocket::bind(server).await.expect("the same port");
        tokio::task::spawn_local(answer(socket, Flags::TC, None));
        tokio::task::spawn_local(answer_streams(listener));
        let qname = www();
        for tag in 0..3 {
            owner.ask(&query_to(server, &qname), tag);
        }
        let ok = Ok((Rcode::NOERROR, Arrival::Tcp));
        assert_eq!(ends(&owner, 3).await, [(0, ok), (1, ok), (2, ok)]);
    });
}

#[test]
fn who_answers_for_another_address_is_not_heard() {
    on_a_worker(async {
        let owner = Owner::new(PoolLimits::default());
        let socket = UdpSocket::bind("127.0.9.1:0").await.expect("a port");
        let server = socket.local_addr().expect("it is bound");
        let other = UdpSocket::bind(("127.0.9.2", server.port())).await.expect("the same port");
        tokio::task::spawn_local(answer(socket, Flags::AA, Some(other)));
        owner.ask(&query_to(server, &www()), 1);
        assert_eq!(ends(&owner, 1).await, [(1, Ok((Rcode::NOERROR, Arrival::Udp)))]);
    });
}

#[test]
fn an_address_that_cannot_be_sent_to_does_not_hold_up_others() {
    on_a_worker(async {
        let limits = PoolLimits { sockets: 1, udp_timeout: Span::from_ms(500), ..PoolLimits::default() };
        let owner = Owner::new(limits);
        let socket = UdpSocket::bind("127.0.10.1:0").await.expect("a port");
        let server = socket.local_addr().expect("it is bound");
        tokio::task::spawn_local(answer(socket, Flags::AA, None));
        let qname = www();
        // The kernel refuses broadcasts of who did not ask for them.
        let refused = SocketAddr::from(([255, 255, 255, 255], 53));
        let nobody =
            UdpSocket::bind("127.0.10.2:0").await.expect("a port").local_addr().expect("it is bound");
        owner.is_batching.set(true);
        for (tag, address) in (0..).zip([server, refused, server, nobody, server]) {
            owner.ask(&query_to(address, &qname), tag);
        }
        owner.settle();
        let ok = Ok((Rcode::NOERROR, Arrival::Udp));
        let ends = ends(&owner, 5).await;
        assert!(matches!(ends[1].1, Err(Unanswered::Unreachable | Unanswered::NotSent)), "{ends:?}");
        let rest = [&ends[..1], &ends[2..]].concat();
        assert_eq!(rest, [(0, ok), (2, ok), (3, Err(Unanswered::Timeout)), (4, ok)]);
    });
}

#[test]
fn nobody_behind_a_tcp_port_is_unreachable() {
    on_a_worker(async {
        let owner = Owner::new(PoolLimits::default());
        let listener = TcpListener::bind("127.0.11.1:0").await.expect("a port");
        let nobody = listener.local_addr().expect("it is bound");
        drop(listener);
        let qname = www();
        owner.ask(&AuthorityQuery { over_tcp: true, ..query_to(nobody, &qname) }, 1);
        assert_eq!(ends(&owner, 1).await, [(1, Err(Unanswered::Unreachable))]);
    });
}
