//! What a query to an authoritative server and its reply cost: 64 in flight over loopback, to 256
//! addresses at random.
//!
//! The time is that of this thread's processor, system calls included, not that on the wall: the
//! servers run on another thread. Two questions: what do more sockets cost, and what does it save
//! that queries of one batch share a draw?

#[path = "../tests/all/pool/owner.rs"]
mod owner;

use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Duration;

use authorities::{AuthorityQuery, PoolLimits};
use cache::servers::{Edns, LetterCase};
use criterion::{Criterion, criterion_group, criterion_main};
use owner::Owner;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use wire::{NameBuf, Rtype};

const IN_FLIGHT: u64 = 64;
const SERVERS: u8 = 255;

/// Starts servers that answer on a thread of their own; returns where they are.
fn servers() -> Vec<SocketAddr> {
    let bind =
        |last| UdpSocket::bind(SocketAddr::from(([127, 0, 53, last], 0))).expect("all of 127/8 is ours");
    let sockets: Vec<UdpSocket> = (1..=SERVERS).map(bind).collect();
    let addresses = sockets.iter().map(|socket| socket.local_addr().expect("it is bound")).collect();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        LocalSet::new().block_on(&runtime, async {
            for socket in sockets {
                socket.set_nonblocking(true).expect("a socket can");
                let socket = tokio::net::UdpSocket::from_std(socket).expect("a runtime is here");
                tokio::task::spawn_local(answer(socket));
            }
            std::future::pending::<()>().await;
        });
    });
    addresses
}

/// Repeats the query as its reply; that it has no answer makes no difference to who asked.
async fn answer(socket: tokio::net::UdpSocket) {
    let mut buffer = [0; 512];
    while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
        let Some(message) = buffer.get_mut(..len) else { continue };
        if let Some(flags) = message.get_mut(2) {
            *flags |= 0x80;
        }
        let _ = socket.send_to(message, from).await;
    }
}

/// Returns the time that this thread has had a processor for.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux keeps it");
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("it begins with a number"))
}

/// Asks so many times; every query must be answered.
async fn ask(owner: &Rc<Owner>, servers: &[SocketAddr], count: u64) {
    let qname = NameBuf::from_text("www.example.org").expect("a name");
    let mut places = servers.iter().cycle().step_by(97);
    let (mut asked, mut answered) = (0, 0);
    owner.is_batching.set(true);
    while answered < count {
        while asked < count.min(answered + IN_FLIGHT) {
            let query = AuthorityQuery {
                address: *places.next().expect("it goes around"),
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
            };
            owner.ask(&query, asked as u32);
            asked += 1;
        }
        owner.settle();
        for (_, end) in owner.ended().await {
            assert!(end.is_ok(), "{end:?}");
            answered += 1;
        }
    }
}

fn exchanges(criterion: &mut Criterion) {
    let servers = servers();
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut group = criterion.benchmark_group("authorities");
    for (sockets, draw_queries) in [(64, 1), (64, 8), (64, 32), (256, 1), (1024, 1)] {
        let limits = PoolLimits { sockets, draw_queries, ..PoolLimits::default() };
        let local = LocalSet::new();
        let owner = local.block_on(&runtime, async { Owner::new(limits) });
        group.bench_function(format!("{sockets} sockets, {draw_queries} to a draw"), |bencher| {
            bencher.iter_custom(|count| {
                let began = processor_time();
                local.block_on(&runtime, ask(&owner, &servers, count));
                processor_time() - began
            });
        });
    }
    group.finish();
}

criterion_group!(benches, exchanges);
criterion_main!(benches);
