//! The operating system's sockets and connections, one set per worker.
//!
//! UDP needs one task per *socket*, which wakes once per batch; queries have none. A connection has
//! one task.

pub(crate) mod carrier;
pub(crate) mod connect;
mod datagrams;
mod dnscrypt;
mod exchange;
mod https;
mod https3;
pub(crate) mod link;
mod oblivious;
mod pool;
mod quic;
mod relayed;
mod socks;
mod stream;
mod tunnel;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::{Rc, Weak};

use socket2::{Domain, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::AbortHandle;

use crate::network::{LinkKey, Network, Remote, SocketKey};
use crate::sys;
use carrier::Outbox;
use connect::apply_udp;

pub use carrier::LinkEvents;
pub use pool::{PoolEvents, PoolNet};

/// Datagrams queued on one socket before they are sent without waiting for the flush: the upstream
/// works on these while we write more.
const QUEUE_MAX: usize = 32;
/// Room the kernel keeps for replies on each UDP socket.
const RECEIVE_BUFFER: usize = 1 << 20;

/// A worker's sockets.
pub struct Net {
    owner: Weak<dyn SocketEvents>,
    sockets: Vec<Option<UdpEntry>>,
    links: Vec<Option<LinkEntry>>,
    /// Sockets with queued datagrams.
    dirty: Vec<SocketKey>,
    failed: Vec<(SocketKey, io::ErrorKind)>,
}

struct UdpEntry {
    socket: Rc<QuerySocket>,
    reader: AbortHandle,
    /// Queued datagrams one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

struct LinkEntry {
    outbox: Rc<Outbox>,
    task: AbortHandle,
}

impl Drop for UdpEntry {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Drop for LinkEntry {
    fn drop(&mut self) {
        self.outbox.close();
        self.task.abort();
    }
}

impl Net {
    /// Returns a network without sockets whose events go to `owner`.
    pub fn new(owner: Weak<dyn SocketEvents>) -> Self {
        Self { owner, sockets: Vec::new(), links: Vec::new(), dirty: Vec::new(), failed: Vec::new() }
    }
}

/// A UDP socket by which queries are sent.
///
/// The runtime watches what comes, not whether there is room to send: nobody waits for that, and
/// the kernel would report it for each socket after each batch of queries.
pub type QuerySocket = AsyncFd<OwnedFd>;

/// What wakes a socket's reader. Errors do, too: an ICMP message makes a socket fail, not readable.
const READING: Interest = Interest::READABLE.add(Interest::ERROR);

/// Lets the runtime watch a socket that does not block. Must be called inside it.
fn watch(socket: Socket) -> io::Result<Rc<QuerySocket>> {
    sys::watch(socket.into(), READING).map(Rc::new)
}

/// What one round of reading came to.
pub enum Received {
    /// Everything that had come.
    All,
    /// A fair share; others want to run, too.
    Some,
    /// The socket is no longer in use.
    Closed,
}

/// Whoever drives the exchange that the sockets belong to.
pub trait SocketEvents: LinkEvents {
    /// Reads and handles what has come on one socket.
    fn receive(&self, key: SocketKey, socket: &Rc<QuerySocket>, interest: Interest) -> Received;
}

impl Net {
    /// Returns whether `socket` is the one that `key` names now.
    pub fn is_current(&self, key: SocketKey, socket: &Rc<QuerySocket>) -> bool {
        let entry = self.sockets.get(key.0 as usize).and_then(Option::as_ref);
        entry.is_some_and(|entry| Rc::ptr_eq(&entry.socket, socket))
    }
}

impl Network for Net {
    fn open(&mut self, key: SocketKey, remote: &Remote) -> io::Result<()> {
        let socket = Socket::new(Domain::for_address(remote.address), Type::DGRAM.nonblocking(), None)?;
        // A larger buffer only helps against bursts; the default does, too.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        apply_udp(&socket, &remote.way().bind, remote.address)?;
        socket.connect(&remote.address.into())?;
        let socket = watch(socket)?;
        let owner = self.owner.clone();
        let receive =
            move |socket: &Rc<QuerySocket>, interest| Some(owner.upgrade()?.receive(key, socket, interest));
        let reader = tokio::task::spawn_local(read_socket(Rc::clone(&socket), receive));
        let entry = UdpEntry { socket, reader: reader.abort_handle(), bytes: Vec::new(), ends: Vec::new() };
        put(&mut self.sockets, key.0, entry);
        Ok(())
    }

    fn close(&mut self, key: SocketKey) {
        if let Some(entry) = self.sockets.get_mut(key.0 as usize) {
            *entry = None;
        }
    }

    fn queue(&mut self, key: SocketKey, packet: &[u8]) {
        let Some(Some(entry)) = self.sockets.get_mut(key.0 as usize) else { return };
        if entry.ends.is_empty() {
            self.dirty.push(key);
        }
        entry.bytes.extend_from_slice(packet);
        entry.ends.push(entry.bytes.len() as u32);
        if entry.ends.len() >= QUEUE_MAX
            && let Err(why) = entry.send()
        {
            self.failed.push((key, why));
        }
    }

    fn flush(&mut self, failed: &mut Vec<(SocketKey, io::ErrorKind)>) {
        for key in self.dirty.drain(..) {
            if let Some(Some(entry)) = self.sockets.get_mut(key.0 as usize)
                && let Err(why) = entry.send()
            {
                failed.push((key, why));
            }
        }
        failed.append(&mut self.failed);
    }

    fn reaches(&self, address: IpAddr) -> bool {
        // A socket that is connected has sent nothing yet; the kernel only looks for a route and an
        // address of ours.
        let address = SocketAddr::new(address, 53);
        Socket::new(Domain::for_address(address), Type::DGRAM, None)
            .and_then(|socket| socket.connect(&address.into()))
            .is_ok()
    }

    fn connect(&mut self, key: LinkKey, remote: &Remote) {
        let outbox = Rc::new(Outbox::default());
        let events: Weak<dyn LinkEvents> = self.owner.clone();
        let run = link::run(events, key, remote.clone(), Rc::clone(&outbox));
        let task = tokio::task::spawn_local(run).abort_handle();
        put(&mut self.links, key.0, LinkEntry { outbox, task });
    }

    fn write(&mut self, key: LinkKey, packet: &[u8]) {
        let Some(Some(entry)) = self.links.get_mut(key.0 as usize) else { return };
        entry.outbox.push(packet);
    }

    fn disconnect(&mut self, key: LinkKey) {
        if let Some(entry) = self.links.get_mut(key.0 as usize) {
            *entry = None;
        }
    }
}

impl UdpEntry {
    /// Sends what is queued; an error says that the network did not take it.
    ///
    /// What does not fit into the kernel's buffer is dropped: the retransmission timer sends it
    /// again.
    fn send(&mut self) -> Result<(), io::ErrorKind> {
        let mut outcome = Ok(());
        send_queued(&self.socket, &self.bytes, &mut self.ends, &[], |_, error| {
            let is_full =
                error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS);
            if !is_full {
                outcome = Err(error.kind());
            }
            ControlFlow::Break(())
        });
        self.bytes.clear();
        self.ends.clear();
        outcome
    }
}

/// Sends datagrams that lie one after the other in `bytes`, ending at `ends`, to their addresses in
/// `to`, or to where the socket is connected if there are none. `refused` hears which of them the
/// network did not take, and says whether to go on with the next one.
fn send_queued(
    socket: &QuerySocket,
    mut bytes: &[u8],
    ends: &mut [u32],
    to: &[SocketAddr],
    mut refused: impl FnMut(usize, &io::Error) -> ControlFlow<()>,
) {
    let mut done = 0;
    // Ends: every round is done with at least one datagram, was interrupted, or breaks.
    while let Some(rest) = ends.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let count = match sys::send(socket.as_fd(), bytes, rest, to.get(done..).unwrap_or(&[])) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if refused(done, &error).is_break() => break,
            Err(_) => 1,
        };
        let end = rest.get(count - 1).copied().unwrap_or(0);
        bytes = bytes.get(end as usize..).unwrap_or(&[]);
        for later in rest.iter_mut().skip(count) {
            *later -= end;
        }
        done += count;
    }
}

fn put<T>(list: &mut Vec<Option<T>>, key: u32, entry: T) {
    let key = key as usize;
    if list.len() <= key {
        list.resize_with(key + 1, || None);
    }
    if let Some(room) = list.get_mut(key) {
        *room = Some(entry);
    }
}

/// Has the owner `receive` whenever datagrams have come on one socket, until there is none.
async fn read_socket(
    socket: Rc<QuerySocket>,
    receive: impl Fn(&Rc<QuerySocket>, Interest) -> Option<Received>,
) {
    while let Ok(ready) = socket.ready(READING).await.map(|guard| guard.ready()) {
        // Tokio tests and clears one kind of readiness at a time.
        let interest = if ready.is_readable() { Interest::READABLE } else { Interest::ERROR };
        match receive(&socket, interest) {
            Some(Received::All) => (),
            Some(Received::Some) => tokio::task::yield_now().await,
            Some(Received::Closed) | None => return,
        }
    }
}
