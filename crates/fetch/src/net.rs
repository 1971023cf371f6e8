//! The operating system's sockets and connections, one set per worker.
//!
//! UDP needs one task per *socket*, which wakes once per batch; queries have none. A connection has one task.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::rc::{Rc, Weak};
use std::time::Duration;

use socket2::{Domain, Socket, TcpKeepalive, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::desk::Desk;
use crate::network::{LinkKey, Network, Remote, SocketKey};
use crate::plan::Bind;
use crate::sys;

/// Datagrams queued on one socket before they are sent without waiting for the flush.
const QUEUE_MAX: usize = sys::BATCH;
/// Time to connect, and to write what is queued.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Data that the peer does not acknowledge for this long ends the connection: it is gone.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(2);
/// Octets read from a connection at once.
const READ_OCTETS: usize = 16 * 1024;
/// Octets queued on one connection: far more than its queries in flight can be.
const OUTBOX_OCTETS_MAX: usize = 1 << 20;
/// Room the kernel keeps for replies on each UDP socket.
const RECEIVE_BUFFER: usize = 1 << 20;

/// A worker's sockets.
pub(crate) struct Net {
    desk: Weak<Desk>,
    sockets: Vec<Option<UdpEntry>>,
    links: Vec<Option<LinkEntry>>,
    /// Sockets with queued datagrams.
    dirty: Vec<SocketKey>,
    failed: Vec<SocketKey>,
}

struct UdpEntry {
    socket: Rc<UdpSocket>,
    reader: AbortHandle,
    /// Queued datagrams one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

struct LinkEntry {
    outbox: Rc<Outbox>,
    task: AbortHandle,
}

/// What is to be written to a connection.
#[derive(Default)]
struct Outbox {
    /// The connection was given up; its task has nothing more to report.
    is_closed: Cell<bool>,
    bytes: RefCell<Vec<u8>>,
    filled: Notify,
    is_signalled: Cell<bool>,
}

impl Drop for UdpEntry {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Drop for LinkEntry {
    fn drop(&mut self) {
        self.outbox.is_closed.set(true);
        self.task.abort();
    }
}

impl Net {
    pub(crate) fn new(desk: Weak<Desk>) -> Self {
        Self { desk, sockets: Vec::new(), links: Vec::new(), dirty: Vec::new(), failed: Vec::new() }
    }
}

/// What wakes a socket's reader. Errors do, too: an ICMP message makes a socket fail, not readable.
const READING: Interest = Interest::READABLE.add(Interest::ERROR);

/// What one round of reading came to.
pub(crate) enum Received {
    /// Everything that had come.
    All,
    /// A fair share; others want to run, too.
    Some,
    /// The socket is no longer in use.
    Closed,
}

impl Net {
    /// Returns whether `socket` is the one that `key` names now.
    pub(crate) fn is_current(&self, key: SocketKey, socket: &Rc<UdpSocket>) -> bool {
        let entry = self.sockets.get(key.0 as usize).and_then(Option::as_ref);
        entry.is_some_and(|entry| Rc::ptr_eq(&entry.socket, socket))
    }
}

impl Network for Net {
    fn open(&mut self, key: SocketKey, remote: &Remote) -> io::Result<()> {
        let socket = Socket::new(Domain::for_address(remote.address), Type::DGRAM.nonblocking(), None)?;
        apply(&socket, &remote.bind)?;
        // A larger buffer only helps against bursts; the default does, too.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        // RFC 6056: binding to port 0 with a wildcard or given address leaves the port to the kernel,
        // which draws it at random.
        socket.bind(&source(&remote.bind, remote.address).into())?;
        socket.connect(&remote.address.into())?;
        let socket = Rc::new(UdpSocket::from_std(socket.into())?);
        let reader = tokio::task::spawn_local(read_socket(self.desk.clone(), key, Rc::clone(&socket)));
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
        if entry.ends.len() >= QUEUE_MAX && !entry.send() {
            self.failed.push(key);
        }
    }

    fn flush(&mut self, failed: &mut Vec<SocketKey>) {
        for key in self.dirty.drain(..) {
            if let Some(Some(entry)) = self.sockets.get_mut(key.0 as usize)
                && !entry.send()
            {
                failed.push(key);
            }
        }
        failed.append(&mut self.failed);
    }

    fn connect(&mut self, key: LinkKey, remote: &Remote) {
        let outbox = Rc::new(Outbox::default());
        let run = run_link(self.desk.clone(), key, remote.clone(), Rc::clone(&outbox));
        let task = tokio::task::spawn_local(run).abort_handle();
        put(&mut self.links, key.0, LinkEntry { outbox, task });
    }

    fn write(&mut self, key: LinkKey, packet: &[u8]) {
        let Some(Some(entry)) = self.links.get_mut(key.0 as usize) else { return };
        let mut bytes = entry.outbox.bytes.borrow_mut();
        if bytes.len() + packet.len() > OUTBOX_OCTETS_MAX {
            // The peer does not read. The query times out, and so does the connection's writer.
            return;
        }
        let Ok(len) = u16::try_from(packet.len()) else { return };
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(packet);
        if !entry.outbox.is_signalled.replace(true) {
            entry.outbox.filled.notify_one();
        }
    }

    fn disconnect(&mut self, key: LinkKey) {
        if let Some(entry) = self.links.get_mut(key.0 as usize) {
            *entry = None;
        }
    }
}

impl UdpEntry {
    /// Sends what is queued; returns whether the network took it.
    ///
    /// What does not fit into the kernel's buffer is dropped: the retransmission timer sends it again.
    fn send(&mut self) -> bool {
        let mut bytes = self.bytes.as_slice();
        let mut ends = self.ends.as_mut_slice();
        let mut is_taken = true;
        // Ends: every round sends at least one datagram or breaks.
        while !ends.is_empty() {
            match sys::send(self.socket.as_fd(), bytes, ends) {
                Ok(count) if count > 0 => {
                    let Some((sent, rest)) = ends.split_at_mut_checked(count) else { break };
                    let end = sent.last().copied().unwrap_or(0);
                    bytes = bytes.get(end as usize..).unwrap_or(&[]);
                    for later in rest.iter_mut() {
                        *later -= end;
                    }
                    ends = rest;
                }
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => {
                    let is_full = error.kind() == io::ErrorKind::WouldBlock
                        || error.raw_os_error() == Some(libc::ENOBUFS);
                    is_taken = is_full;
                    break;
                }
            }
        }
        self.bytes.clear();
        self.ends.clear();
        is_taken
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

/// Returns the address to bind to: the configured one or any, the port for the kernel to choose.
fn source(bind: &Bind, remote: SocketAddr) -> SocketAddr {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(bind.source.unwrap_or(any), 0)
}

fn apply(socket: &Socket, bind: &Bind) -> io::Result<()> {
    if let Some(mark) = bind.mark {
        socket.set_mark(mark)?;
    }
    if let Some(device) = &bind.device {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    Ok(())
}

/// Wakes the desk whenever datagrams have come on one socket.
async fn read_socket(desk: Weak<Desk>, key: SocketKey, socket: Rc<UdpSocket>) {
    while let Ok(ready) = socket.ready(READING).await {
        // Tokio tests and clears one kind of readiness at a time.
        let interest = if ready.is_readable() { Interest::READABLE } else { Interest::ERROR };
        let Some(desk) = desk.upgrade() else { return };
        match desk.receive(key, &socket, interest) {
            Received::All => (),
            Received::Some => tokio::task::yield_now().await,
            Received::Closed => return,
        }
    }
}

/// Connects, then writes queries and reads replies until one side is done.
async fn run_link(desk: Weak<Desk>, key: LinkKey, remote: Remote, outbox: Rc<Outbox>) {
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, connect(&remote)).await;
    if let Ok(Ok(mut stream)) = stream {
        if let Some(desk) = desk.upgrade()
            && !outbox.is_closed.get()
        {
            desk.link_opened(key);
        }
        let (mut reader, mut writer) = stream.split();
        tokio::select! {
            () = read_link(&desk, key, &outbox, &mut reader) => (),
            () = write_link(&outbox, &mut writer) => (),
        }
    }
    if let Some(desk) = desk.upgrade()
        && !outbox.is_closed.get()
    {
        desk.link_closed(key);
    }
}

async fn connect(remote: &Remote) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(remote.address), Type::STREAM.nonblocking(), None)?;
    apply(&socket, &remote.bind)?;
    if remote.bind.source.is_some() {
        socket.bind(&source(&remote.bind, remote.address).into())?;
    }
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(UNACKNOWLEDGED_MAX))?;
    TcpSocket::from_std_stream(socket.into()).connect(remote.address).await
}

async fn read_link(
    desk: &Weak<Desk>,
    key: LinkKey,
    outbox: &Outbox,
    reader: &mut (impl AsyncReadExt + Unpin),
) {
    let mut buffer: Vec<u8> = Vec::with_capacity(READ_OCTETS);
    loop {
        // The machine closes idle connections, and the kernel dead ones: this wait ends.
        match reader.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => (),
        }
        let Some(desk) = desk.upgrade() else { return };
        if outbox.is_closed.get() {
            return;
        }
        let used = desk.messages(key, &buffer);
        buffer.drain(..used);
        if buffer.capacity() - buffer.len() < READ_OCTETS / 2 {
            buffer.reserve(READ_OCTETS);
        }
    }
}

async fn write_link(outbox: &Outbox, writer: &mut (impl AsyncWriteExt + Unpin)) {
    loop {
        let bytes = outbox.bytes.take();
        if bytes.is_empty() {
            outbox.is_signalled.set(false);
            outbox.filled.notified().await;
            continue;
        }
        match tokio::time::timeout(WRITE_TIMEOUT, writer.write_all(&bytes)).await {
            Ok(Ok(())) => (),
            Ok(Err(_)) | Err(_) => return,
        }
    }
}
