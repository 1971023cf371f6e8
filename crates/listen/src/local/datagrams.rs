//! Datagrams over a Unix socket: a query each, whose reply goes to the socket that the client has
//! bound to a name of its own.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::rc::Rc;
use std::sync::Arc;

use engine::{Address, Client, Outlet, ReplyTo, Transport};
use tokio::io::unix::AsyncFd;
use tokio::task;
use wire::{MESSAGE_OCTETS_MAX, Query};

use crate::bind::ListenerInfo;
use crate::counters::Counters;
use crate::service::{self, Answer as _, Answered, Service};

/// The largest query worth reading, as over UDP.
const QUERY_OCTETS_MAX: usize = 4096;

/// Datagrams before the worker's other tasks get their turn.
const BATCH_MESSAGES: usize = 64;

/// Octets that a client takes if it does not say (RFC 1035 §4.2.1).
const REPLY_OCTETS_UNTOLD: u16 = 512;

/// Whoever it is, it is on this machine.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// One worker's share of a socket.
pub(crate) struct UnixDatagramSocket {
    socket: AsyncFd<UnixDatagram>,
    listener_info: Arc<ListenerInfo>,
    counters: Arc<Counters>,
}

impl UnixDatagramSocket {
    pub(crate) fn new(
        socket: AsyncFd<UnixDatagram>,
        listener_info: Arc<ListenerInfo>,
        counters: Arc<Counters>,
    ) -> Rc<Self> {
        Rc::new(Self { socket, listener_info, counters })
    }

    /// Returns whether replies are still to come.
    pub(crate) fn is_waiting(self: &Rc<Self>) -> bool {
        Rc::strong_count(self) > 1
    }

    fn send(&self, reply: &[u8], to: &SocketAddr) {
        // A client that is gone, or has more replies waiting than it reads, gets none, as over UDP.
        match self.socket.get_ref().send_to_addr(reply, to) {
            Ok(_) => self.counters.udp_replies.bump(),
            Err(_) => self.counters.udp_unsent.bump(),
        }
    }
}

/// Where the late reply to one query goes.
struct Ticket {
    unix_socket: Rc<UnixDatagramSocket>,
    to: SocketAddr,
}

impl Outlet for Ticket {
    fn deliver(&self, _: &Address, reply: &[u8]) {
        self.unix_socket.send(reply, &self.to);
    }

    fn flush(&self) {}

    fn reply_octets_max(&self) -> usize {
        MESSAGE_OCTETS_MAX
    }
}

/// Returns how large a reply may be: as for datagrams of other kinds, whoever asks says so (RFC
/// 6891 §6.2.3); but no network stands between.
fn reply_octets_max(query: &[u8]) -> u16 {
    let told = Query::parse(query).ok().and_then(|query| query.edns).map(|edns| edns.udp_size);
    told.unwrap_or(REPLY_OCTETS_UNTOLD).max(REPLY_OCTETS_UNTOLD)
}

/// Answers datagrams until it is dropped.
pub(crate) async fn serve<S: Service>(service: Rc<S>, unix_socket: Rc<UnixDatagramSocket>) -> io::Result<()> {
    // One octet more, to tell what is too long.
    let mut input = vec![0; QUERY_OCTETS_MAX + 1];
    let mut room = vec![0; MESSAGE_OCTETS_MAX];
    let mut late = Vec::new();
    loop {
        let mut ready = unix_socket.socket.readable().await?;
        let mut queries = 0;
        {
            let now = service.now();
            let mut engine = service.engine();
            engine.begin(now);
            while queries < BATCH_MESSAGES {
                let (octets, from) = match unix_socket.socket.get_ref().recv_from(&mut input) {
                    Ok(received) => received,
                    Err(error) => {
                        if error.kind() != io::ErrorKind::WouldBlock {
                            unix_socket.counters.udp_errors.bump();
                        }
                        ready.clear_ready();
                        break;
                    }
                };
                queries += 1;
                unix_socket.counters.udp_datagrams.bump();
                let Some(query) = input.get(..octets).filter(|query| query.len() <= QUERY_OCTETS_MAX) else {
                    unix_socket.counters.udp_unusable.bump();
                    continue;
                };
                if from.is_unnamed() {
                    // There is nobody to answer.
                    unix_socket.counters.udp_unusable.bump();
                    continue;
                }
                let client = Client {
                    address: HERE,
                    port: 0,
                    transport: Transport::Unix,
                    verified: true,
                    reply_octets_max: reply_octets_max(query),
                    keepalive: None,
                    listener: unix_socket.listener_info.listener,
                    connection: 0,
                    certificate: None,
                };
                match engine.answer(query, &client, &mut room) {
                    Answered::Reply(len) => unix_socket.send(room.get(..len).unwrap_or(&[]), &from),
                    Answered::Nothing => {}
                    Answered::Deferred(deferred) => late.push((deferred, from)),
                }
            }
        }
        for (deferred, to) in late.drain(..) {
            let outlet = Rc::new(Ticket { unix_socket: Rc::clone(&unix_socket), to });
            let address = Address { peer: (HERE, 0).into(), local: None, stream: 0 };
            service.take(deferred, ReplyTo { outlet, address });
        }
        if queries > 0 {
            service::finish(&*service, queries);
        }
        task::yield_now().await;
    }
}
