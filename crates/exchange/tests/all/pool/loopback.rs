//! The sockets of this machine: many addresses on loopback.

use std::net::{Ipv6Addr, SocketAddr};
use std::rc::Rc;

use authorities::{Arrival, AuthorityQuery, PoolLimits, Unanswered};
use cache::servers::{Edns, LetterCase};
use engine::ops::outgoing::ServerOptions;
use plan::upstreams::{Outgoing, Ports};
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

impl Owner {
    /// Binds sockets as `outgoing` says from now on.
    fn bind(&self, outgoing: Outgoing) {
        let mut authorities = self.authorities.borrow_mut();
        if authorities.network_mut().bind(&std::sync::Arc::new(outgoing)) {
            authorities.renew_sockets();
        }
    }

    fn send_options(&self, options: ServerOptions) {
        self.authorities.borrow_mut().send_options(options);
    }

    fn socket_count(&self) -> usize {
        self.authorities.borrow().socket_count()
    }

    fn link_count(&self) -> usize {
        self.authorities.borrow().link_count()
    }
}

/// Starts a server of datagrams that says where each query came from.
async fn watched(address: &str) -> (SocketAddr, tokio::sync::mpsc::UnboundedReceiver<SocketAddr>) {
    let socket = UdpSocket::bind(address).await.expect("all of 127/8 is ours");
    let server = socket.local_addr().expect("it is bound");
    let (seen, came) = tokio::sync::mpsc::unbounded_channel();
    tokio::task::spawn_local(async move {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let _ = seen.send(from);
            socket.send_to(&reply_to(&buffer[..len], Flags::AA), from).await.expect("loopback takes it");
        }
    });
    (server, came)
}

fn prefix(text: &str, bits: u8) -> wire::Prefix {
    wire::Prefix::new(text.parse().expect("an address"), bits)
}

/// Asks so many times, and returns how many queries were answered.
async fn answered(owner: &Rc<Owner>, server: SocketAddr, count: u32) -> usize {
    let qname = www();
    for tag in 0..count {
        owner.ask(&query_to(server, &qname), tag);
    }
    let ends = ends(owner, count as usize).await;
    ends.iter().filter(|(_, end)| end.is_ok()).count()
}

#[test]
fn outgoing_interface_is_where_queries_come_from() {
    on_a_worker(async {
        let owner = Owner::new(PoolLimits::default());
        let sources = vec![prefix("127.0.12.2", 32), prefix("127.0.12.3", 32), prefix("2001:db8::1", 128)];
        owner.bind(Outgoing { sources, ..Outgoing::default() });
        let (server, mut came) = watched("127.0.12.1:0").await;
        assert_eq!(answered(&owner, server, 100).await, 100);
        let mut seen: Vec<String> = Vec::new();
        while let Ok(from) = came.try_recv() {
            seen.push(from.ip().to_string());
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, ["127.0.12.2", "127.0.12.3"]);
        // Connections, too.
        let listener = TcpListener::bind("127.0.12.1:0").await.expect("a port");
        let server = listener.local_addr().expect("it is bound");
        let accepted = tokio::task::spawn_local(async move { listener.accept().await.expect("one comes").1 });
        owner.ask(&AuthorityQuery { over_tcp: true, ..query_to(server, &www()) }, 1);
        let from = accepted.await.expect("it ends").ip().to_string();
        assert!(["127.0.12.2", "127.0.12.3"].contains(&from.as_str()), "{from}");
    });
}

#[test]
fn outgoing_interface_of_a_prefix_gives_each_socket_an_address_of_its_own() {
    on_a_worker(async {
        let owner = Owner::new(PoolLimits::default());
        owner.bind(Outgoing { sources: vec![prefix("127.9.0.0", 16)], ..Outgoing::default() });
        let (server, mut came) = watched("127.0.13.1:0").await;
        assert_eq!(answered(&owner, server, 200).await, 200);
        let mut seen = std::collections::BTreeSet::new();
        while let Ok(from) = came.try_recv() {
            assert!(from.ip().to_string().starts_with("127.9."), "{from}");
            seen.insert(from.ip());
        }
        assert!(seen.len() > 20, "64 sockets have as many addresses: {}", seen.len());
    });
}

#[test]
fn a_family_without_an_outgoing_interface_is_not_used() {
    on_a_worker(async {
        let owner = Owner::new(PoolLimits::default());
        owner.bind(Outgoing { sources: vec![prefix("2001:db8::1", 128)], ..Outgoing::default() });
        let (server, mut came) = watched("127.0.14.1:0").await;
        let qname = www();
        owner.ask(&query_to(server, &qname), 1);
        assert_eq!(ends(&owner, 1).await, [(1, Err(Unanswered::NotSent))]);
        owner.ask(&AuthorityQuery { over_tcp: true, ..query_to(server, &qname) }, 2);
        assert!(matches!(ends(&owner, 1).await[..], [(2, Err(_))]));
        assert!(came.try_recv().is_err());
    });
}

#[test]
fn outgoing_port_permit_and_avoid_are_the_ports_that_queries_leave_through() {
    on_a_worker(async {
        let owner = Owner::new(PoolLimits::default());
        let ports = Ports::of(vec![(20_011, 20_014), (20_016, 20_016)]);
        let sources = vec![prefix("127.0.15.2", 32)];
        owner.bind(Outgoing { ports, sources, ..Outgoing::default() });
        let (server, mut came) = watched("127.0.15.1:0").await;
        // Others that find no free port left use those that are open.
        assert_eq!(answered(&owner, server, 50).await, 50);
        let mut seen = std::collections::BTreeSet::new();
        while let Ok(from) = came.try_recv() {
            seen.insert(from.port());
        }
        assert!(seen.iter().all(|port| (20_011..=20_016).contains(port) && *port != 20_015), "{seen:?}");
        assert!(seen.len() > 1, "{seen:?}");
    });
}

#[test]
fn sources_that_change_are_used_by_the_next_query() {
    on_a_worker(async {
        let owner = Owner::new(PoolLimits::default());
        let from_to = |last: u8| {
            let sources = vec![prefix(&format!("127.0.16.{last}"), 32)];
            Outgoing { sources, ..Outgoing::default() }
        };
        let (server, mut came) = watched("127.0.16.1:0").await;
        for last in [2, 3, 3] {
            owner.bind(from_to(last));
            assert_eq!(answered(&owner, server, 30).await, 30);
            while let Ok(from) = came.try_recv() {
                assert_eq!(from.ip().to_string(), format!("127.0.16.{last}"));
            }
        }
        assert!(owner.socket_count() <= 64, "{} sockets", owner.socket_count());
    });
}

#[test]
fn connections_that_are_bound_otherwise_take_no_more_queries() {
    on_a_worker(async {
        let owner = Owner::new(PoolLimits::default());
        let listener = TcpListener::bind("127.0.17.1:0").await.expect("a port");
        let server = listener.local_addr().expect("it is bound");
        tokio::task::spawn_local(answer_streams(listener));
        let qname = www();
        let ask = |tag| owner.ask(&AuthorityQuery { over_tcp: true, ..query_to(server, &qname) }, tag);
        ask(1);
        ends(&owner, 1).await;
        ask(2);
        ends(&owner, 1).await;
        assert_eq!(owner.link_count(), 1, "one is used again");
        owner.bind(Outgoing { sources: vec![prefix("127.0.17.2", 32)], ..Outgoing::default() });
        ask(3);
        assert!(ends(&owner, 1).await[0].1.is_ok());
        assert_eq!(owner.link_count(), 2, "the old one idles to its end");
    });
}

#[test]
fn edns_client_string_goes_to_servers_of_its_prefix_alone() {
    on_a_worker(async {
        let owner = Owner::new(PoolLimits::default());
        let option = (prefix("127.0.18.1", 32), wire::OptionCode(65_001), b"branch-7".to_vec());
        owner.send_options(ServerOptions::of(vec![option]));
        let qname = www();
        for (tag, address) in [(1, "127.0.18.1:0"), (2, "127.0.18.2:0")] {
            let socket = UdpSocket::bind(address).await.expect("all of 127/8 is ours");
            let server = socket.local_addr().expect("it is bound");
            owner.ask(&query_to(server, &qname), tag);
            let mut buffer = [0; 2048];
            let (len, _) = socket.recv_from(&mut buffer).await.expect("a query");
            let query = Query::parse(&buffer[..len]).expect("we send queries");
            let edns = query.edns.expect("it has EDNS");
            let sent = edns.option(wire::OptionCode(65_001));
            assert_eq!(sent, (tag == 1).then_some(&b"branch-7"[..]), "{address}");
        }
    });
}
