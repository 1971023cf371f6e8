//! Sockets that are not connected to anybody, and connections to authoritative servers.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use authorities::{Carrier, Family, PoolLinkKey, PoolNetwork, PoolSocketKey, Unsent};
use identity::{Registry, Transport};
use plan::tls::ClientTls;
use plan::upstreams::{Bind, Outgoing, Protocol, Way};
use socket2::{Domain, Socket, Type};
use tokio::io::Interest;
use tokio::task::AbortHandle;

use super::carrier::{LinkEvents, Outbox};
use super::connect::apply_udp;
use super::{
    LinkEntry, QUEUE_MAX, QuerySocket, RECEIVE_BUFFER, Received, link, put, read_socket, send_queued, watch,
};
use crate::network::{LinkKey, Remote, is_shortage};
use crate::sys;

/// Whoever drives the queries that the sockets belong to. The keys are those of [`PoolNet`], not of
/// [`Net`](super::Net).
pub trait PoolEvents {
    /// Reads and handles what has come on one socket.
    fn pool_receive(&self, key: PoolSocketKey, socket: &Rc<QuerySocket>, interest: Interest) -> Received;

    /// Hears that queries can be written to a connection.
    fn pool_link_opened(&self, key: PoolLinkKey);

    /// Handles the messages at the front of what a connection brought; returns the octets they
    /// took.
    fn pool_link_hear(&self, key: PoolLinkKey, bytes: &[u8]) -> usize;

    /// Hears that a message began and does not end.
    fn pool_link_stalled(&self, key: PoolLinkKey);

    /// Hears that no connection could be tried, because this process lacks descriptors, memory or
    /// ports.
    fn pool_link_lacked(&self, key: PoolLinkKey);

    /// Hears that a connection has ended, or that there was none.
    fn pool_link_closed(&self, key: PoolLinkKey);
}

/// A worker's sockets to authoritative servers.
pub struct PoolNet {
    owner: Weak<dyn PoolEvents>,
    /// Who hears of connections: passes it on.
    relay: Rc<Relay>,
    /// How servers are asked over TCP, TLS and QUIC.
    transports: [Arc<Transport>; 3],
    sockets: Vec<Option<PoolEntry>>,
    links: Vec<Option<LinkEntry>>,
    /// Sockets with queued datagrams.
    dirty: Vec<PoolSocketKey>,
    unsent: Vec<Unsent>,
}

struct PoolEntry {
    socket: Rc<QuerySocket>,
    reader: AbortHandle,
    /// Queued datagrams one after the other, where each ends, where it goes, and its ID.
    bytes: Vec<u8>,
    ends: Vec<u32>,
    to: Vec<SocketAddr>,
    ids: Vec<u16>,
}

impl Drop for PoolEntry {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl PoolNet {
    /// Returns a network without sockets whose events go to `owner`.
    pub fn new(owner: Weak<dyn PoolEvents>) -> Self {
        Self {
            relay: Rc::new(Relay { owner: owner.clone() }),
            owner,
            transports: transports(&Arc::default()),
            sockets: Vec::new(),
            links: Vec::new(),
            dirty: Vec::new(),
            unsent: Vec::new(),
        }
    }

    /// Binds sockets and connections that are opened from now on as `outgoing` says; returns
    /// whether those that are open are bound otherwise.
    pub fn bind(&mut self, outgoing: &Arc<Outgoing>) -> bool {
        let is_other = *self.bound().outgoing != **outgoing;
        if is_other {
            self.transports = transports(outgoing);
        }
        is_other
    }

    fn bound(&self) -> &Bind {
        let [tcp, ..] = &self.transports;
        &tcp.way().bind
    }

    /// Returns whether `socket` is the one that `key` names now.
    pub fn is_current(&self, key: PoolSocketKey, socket: &Rc<QuerySocket>) -> bool {
        let entry = self.sockets.get(key.0 as usize).and_then(Option::as_ref);
        entry.is_some_and(|entry| Rc::ptr_eq(&entry.socket, socket))
    }

    fn transport(&self, carrier: Carrier) -> &Arc<Transport> {
        let [tcp, tls, quic] = &self.transports;
        match carrier {
            Carrier::Tcp => tcp,
            Carrier::Tls => tls,
            Carrier::Quic => quic,
        }
    }
}

/// Returns how servers are asked over TCP, TLS and QUIC.
fn transports(outgoing: &Arc<Outgoing>) -> [Arc<Transport>; 3] {
    // Sessions of TLS are each worker's own.
    let registry = Registry::default();
    let tls = Protocol::Tls(ClientTls::of_anybody(b"dot"));
    let quic = Protocol::Quic(ClientTls::of_anybody(b"doq"));
    [Protocol::Tcp, tls, quic].map(|protocol| {
        let bind = Bind { outgoing: Arc::clone(outgoing), ..Bind::default() };
        let way = Way { protocol, bind, ..Way::default() };
        Arc::new(Transport::of_anybody(way, &registry))
    })
}

impl PoolNetwork for PoolNet {
    fn open(&mut self, key: PoolSocketKey, family: Family) -> io::Result<()> {
        let (domain, any) = match family {
            Family::V4 => (Domain::IPV4, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))),
            Family::V6 => (Domain::IPV6, SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))),
        };
        let socket = Socket::new(domain, Type::DGRAM.nonblocking(), None)?;
        if family == Family::V6 {
            socket.set_only_v6(true)?;
        } else {
            sys::forbid_fragments(socket.as_fd());
        }
        // A larger buffer only helps against bursts; the default does, too.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        apply_udp(&socket, self.bound(), any)?;
        let socket = watch(socket)?;
        let owner = self.owner.clone();
        let receive = move |socket: &Rc<QuerySocket>, interest| {
            Some(owner.upgrade()?.pool_receive(key, socket, interest))
        };
        let reader = tokio::task::spawn_local(read_socket(Rc::clone(&socket), receive)).abort_handle();
        let (bytes, ends, to, ids) = Default::default();
        let entry = PoolEntry { socket, reader, bytes, ends, to, ids };
        put(&mut self.sockets, key.0, entry);
        Ok(())
    }

    fn close(&mut self, key: PoolSocketKey) {
        if let Some(entry) = self.sockets.get_mut(key.0 as usize) {
            *entry = None;
        }
    }

    fn queue(&mut self, key: PoolSocketKey, to: SocketAddr, packet: &[u8]) {
        let Some(Some(entry)) = self.sockets.get_mut(key.0 as usize) else { return };
        if entry.ends.is_empty() {
            self.dirty.push(key);
        }
        entry.bytes.extend_from_slice(packet);
        entry.ends.push(entry.bytes.len() as u32);
        entry.to.push(to);
        entry.ids.push(packet.first_chunk().map_or(0, |id| u16::from_be_bytes(*id)));
        if entry.ends.len() >= QUEUE_MAX {
            entry.send(key, &mut self.unsent);
        }
    }

    fn flush(&mut self, unsent: &mut Vec<Unsent>) {
        for key in self.dirty.drain(..) {
            if let Some(Some(entry)) = self.sockets.get_mut(key.0 as usize) {
                entry.send(key, &mut self.unsent);
            }
        }
        unsent.append(&mut self.unsent);
    }

    fn connect(&mut self, key: PoolLinkKey, to: SocketAddr, carrier: Carrier) {
        let outbox = Rc::new(Outbox::default());
        let relay: Rc<dyn LinkEvents> = Rc::<Relay>::clone(&self.relay);
        let transport = Arc::clone(self.transport(carrier));
        let remote = Remote { address: to, transport };
        let run = link::run(Rc::downgrade(&relay), LinkKey(key.0), remote, Rc::clone(&outbox));
        let task = tokio::task::spawn_local(run).abort_handle();
        put(&mut self.links, key.0, LinkEntry { outbox, task });
    }

    fn write(&mut self, key: PoolLinkKey, packet: &[u8]) {
        let Some(Some(entry)) = self.links.get_mut(key.0 as usize) else { return };
        entry.outbox.push(packet);
    }

    fn disconnect(&mut self, key: PoolLinkKey) {
        if let Some(entry) = self.links.get_mut(key.0 as usize) {
            *entry = None;
        }
    }
}

impl PoolEntry {
    /// Sends what is queued. What the network refuses says nothing about the datagrams after it,
    /// which go elsewhere.
    fn send(&mut self, key: PoolSocketKey, unsent: &mut Vec<Unsent>) {
        let Self { socket, bytes, ends, to, ids, .. } = self;
        send_queued(socket, bytes, ends, to, |at, error| {
            if let (Some(&to), Some(&id)) = (to.get(at), ids.get(at)) {
                let is_ours = is_shortage(error) || error.kind() == io::ErrorKind::NetworkUnreachable;
                unsent.push(Unsent { socket: key, to, id, is_ours });
            }
            ControlFlow::Continue(())
        });
        self.bytes.clear();
        self.ends.clear();
        self.to.clear();
        self.ids.clear();
    }
}

/// Passes on what connections bring, under the keys of the pool.
struct Relay {
    owner: Weak<dyn PoolEvents>,
}

impl LinkEvents for Relay {
    fn opened(&self, key: LinkKey) {
        if let Some(owner) = self.owner.upgrade() {
            owner.pool_link_opened(PoolLinkKey(key.0));
        }
    }

    fn hear(&self, key: LinkKey, bytes: &[u8]) -> usize {
        self.owner.upgrade().map_or(bytes.len(), |owner| owner.pool_link_hear(PoolLinkKey(key.0), bytes))
    }

    fn stalled(&self, key: LinkKey) {
        if let Some(owner) = self.owner.upgrade() {
            owner.pool_link_stalled(PoolLinkKey(key.0));
        }
    }

    fn lacked(&self, key: LinkKey) {
        if let Some(owner) = self.owner.upgrade() {
            owner.pool_link_lacked(PoolLinkKey(key.0));
        }
    }

    fn closed(&self, key: LinkKey, _trouble: Option<String>) {
        if let Some(owner) = self.owner.upgrade() {
            owner.pool_link_closed(PoolLinkKey(key.0));
        }
    }
}
