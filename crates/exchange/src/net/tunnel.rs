//! A socket for QUIC whose datagrams a SOCKS5 proxy relays.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::io::ReadBuf;
use tokio::net::{TcpStream, UdpSocket};

use super::{connect, socks};
use crate::network::Remote;

/// Octets of the largest datagram: far more than QUIC sends in one (RFC 9000 §14), and what stands
/// before it.
const DATAGRAM_OCTETS_MAX: usize = 2048;

/// Relayed datagrams to one server.
pub(super) struct Tunnel {
    socket: UdpSocket,
    server: SocketAddr,
    /// What stands before each datagram.
    header: Vec<u8>,
    /// Datagrams are relayed for as long as this is open.
    _control: TcpStream,
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Tunnel {
    /// Has the proxy at this address relay datagrams; `None` if it does not do that.
    pub(super) async fn open(remote: &Remote) -> io::Result<Option<Arc<Self>>> {
        let Some(proxy) = &remote.way().proxy else { return Ok(None) };
        let mut control = connect::tcp(&remote.way().bind, proxy.address).await?;
        let at = socks::associate(&mut control, proxy.login.as_ref(), proxy.address).await?;
        let Some(at) = at else { return Ok(None) };
        let (server, header) = (remote.address, socks::header(remote.address));
        Ok(Some(Arc::new(Self {
            socket: connect::udp(&remote.way().bind, at)?,
            server,
            header,
            _control: control,
        })))
    }
}

impl AsyncUdpSocket for Tunnel {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable(self))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(&[&self.header, transmit.contents].concat()).map(drop)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut octets = [0; DATAGRAM_OCTETS_MAX];
        let (Some(room), Some(meta)) = (bufs.first_mut(), meta.first_mut()) else {
            return Poll::Ready(Ok(0));
        };
        // Ends: each round takes one datagram, and what is not the server's is passed over.
        loop {
            let mut buffer = ReadBuf::new(&mut octets);
            ready!(self.socket.poll_recv(cx, &mut buffer))?;
            let Some((from, payload)) = socks::unwrapped(buffer.filled()) else { continue };
            let Some(room) = room.get_mut(..payload.len()).filter(|_| from == self.server) else { continue };
            room.copy_from_slice(payload);
            *meta = RecvMeta {
                addr: self.server,
                len: payload.len(),
                stride: payload.len(),
                ..RecvMeta::default()
            };
            return Poll::Ready(Ok(1));
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// Waits until a datagram can be sent.
#[derive(Debug)]
struct Writable(Arc<Tunnel>);

impl UdpPoller for Writable {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.socket.poll_send_ready(cx)
    }
}
