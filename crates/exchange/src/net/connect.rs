//! Sockets and connections to other servers: bound as configured, perhaps through a proxy, perhaps
//! secured.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use identity::tls;
use plan::upstreams::Bind;
use socket2::{Domain, Socket, TcpKeepalive, Type};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufWriter};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::socks;
use crate::network::{Remote, is_shortage};

/// Time to connect.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for both sides to prove who they are.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// Data that the peer does not acknowledge for this long ends the connection: it is gone.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(2);

/// A connection that is encrypted, whose records leave together when it is flushed.
pub(super) type Secured = TlsStream<BufWriter<TcpStream>>;

/// Why there is no connection.
pub(super) enum ConnectError {
    /// This process lacks something.
    Local(String),
    /// The network or the server would not.
    Remote(String),
}

impl From<String> for ConnectError {
    fn from(text: String) -> Self {
        Self::Remote(text)
    }
}

impl From<ConnectError> for String {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Local(text) | ConnectError::Remote(text) => text,
        }
    }
}

/// Returns the address to bind to: the configured one or any, the port for the kernel to choose.
pub(super) fn source(bind: &Bind, remote: SocketAddr) -> SocketAddr {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(bind.source.unwrap_or(any), 0)
}

pub(super) fn apply(socket: &Socket, bind: &Bind) -> io::Result<()> {
    if let Some(mark) = bind.mark {
        socket.set_mark(mark)?;
    }
    if let Some(device) = &bind.device {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    Ok(())
}

/// Makes a socket that is bound as configured and connected to `to`.
pub(crate) fn udp(bind: &Bind, to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM.nonblocking(), None)?;
    apply(&socket, bind)?;
    socket.bind(&source(bind, to).into())?;
    socket.connect(&to.into())?;
    UdpSocket::from_std(socket.into())
}

/// Connects to a server; an error says why it could not be done.
pub(super) async fn in_time(remote: &Remote) -> Result<TcpStream, ConnectError> {
    match tokio::time::timeout(CONNECT_TIMEOUT, through_proxy(remote)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) if is_shortage(&error) => Err(ConnectError::Local(error.to_string())),
        Ok(Err(error)) => Err(ConnectError::Remote(error.to_string())),
        Err(_) => Err(ConnectError::Remote(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()))),
    }
}

/// Connects to a server, perhaps through its proxy.
async fn through_proxy(remote: &Remote) -> io::Result<TcpStream> {
    let Some(proxy) = &remote.way().proxy else { return tcp(&remote.way().bind, remote.address).await };
    let mut stream = tcp(&remote.way().bind, proxy.address).await?;
    socks::pass(&mut stream, proxy.login.as_ref(), remote.address).await?;
    Ok(stream)
}

/// Asks one question over a connection of its own; `None` if that fails.
pub(super) async fn ask_once(remote: &Remote, query: &[u8]) -> Option<Vec<u8>> {
    let exchange = async { ask_over(through_proxy(remote).await?, query).await };
    tokio::time::timeout(CONNECT_TIMEOUT + HANDSHAKE_TIMEOUT, exchange).await.ok()?.ok()
}

/// Asks one question over a connection, for which nothing else uses it.
pub(crate) async fn ask_over(mut stream: TcpStream, query: &[u8]) -> io::Result<Vec<u8>> {
    let length = u16::try_from(query.len()).map_err(io::Error::other)?.to_be_bytes();
    stream.write_all(&[&length[..], query].concat()).await?;
    let mut reply = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut reply).await?;
    Ok(reply)
}

/// Connects to an address as configured.
pub(crate) async fn tcp(bind: &Bind, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), None)?;
    apply(&socket, bind)?;
    if bind.source.is_some() {
        socket.bind(&source(bind, to).into())?;
    }
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(UNACKNOWLEDGED_MAX))?;
    TcpSocket::from_std_stream(socket.into()).connect(to).await
}

/// Has the server prove who it is.
pub(super) async fn secured(
    client: &tls::Client,
    remote: &Remote,
    stream: TcpStream,
) -> Result<Secured, String> {
    let plan = &client.plan;
    let connector = TlsConnector::from(client.config()).early_data(plan.early_data);
    match tokio::time::timeout(
        HANDSHAKE_TIMEOUT,
        connector.connect(plan.name_at(remote.address.ip()), BufWriter::new(stream)),
    )
    .await
    {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(tls::explain(&error)),
        Err(_) => Err(format!("no TLS handshake within {} s", HANDSHAKE_TIMEOUT.as_secs())),
    }
}
