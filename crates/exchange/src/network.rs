//! What the state machine needs of the operating system, so that tests can stand in for it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use identity::Transport;
use plan::upstreams::Way;

/// An address to talk to, and how: what makes two upstreams the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Where it is.
    pub address: SocketAddr,
    /// How it is asked.
    pub transport: Arc<Transport>,
}

impl Remote {
    /// Returns what is planned of how it is asked.
    pub fn way(&self) -> &Way {
        self.transport.way()
    }
}

/// Names a UDP socket; the machine chooses it, and uses it again only after [`Network::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketKey(pub u32);

/// Names a TCP connection in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkKey(pub u32);

/// Sockets and connections. Nothing here waits.
pub trait Network {
    /// Opens a UDP socket on a port of the kernel's random choice and connects it.
    fn open(&mut self, key: SocketKey, remote: &Remote) -> io::Result<()>;

    /// Closes a UDP socket.
    fn close(&mut self, key: SocketKey);

    /// Queues a datagram.
    fn queue(&mut self, key: SocketKey, packet: &[u8]);

    /// Sends all queued datagrams; puts the sockets that cannot send into `failed`, and why.
    fn flush(&mut self, failed: &mut Vec<(SocketKey, io::ErrorKind)>);

    /// Returns whether this machine has a way to an address at all.
    fn reaches(&self, address: IpAddr) -> bool;

    /// Begins to connect; `Machine::link_opened` or `Machine::link_closed` follows.
    fn connect(&mut self, key: LinkKey, remote: &Remote);

    /// Queues a message on a connection that may still be opening.
    fn write(&mut self, key: LinkKey, packet: &[u8]);

    /// Closes a connection, opening or open.
    fn disconnect(&mut self, key: LinkKey);
}

/// Returns whether an error says that this process or machine lacks something: descriptors, memory,
/// ports.
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS | libc::EADDRINUSE | libc::EAGAIN)
    )
}
