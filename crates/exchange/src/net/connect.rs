//! Sockets and connections to other servers: bound as configured, perhaps through a proxy, perhaps
//! secured.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use identity::tls;
use plan::upstreams::{Bind, address_in};
use rand::RngExt as _;
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

/// Ports tried, of those that are set, before a socket counts as one that cannot be had: others of
/// this process have some of them.
const PORTS_TRIED_MAX: u32 = 64;

/// Where a socket comes from.
enum Source {
    /// Any address.
    Any,
    /// This one.
    One(IpAddr),
    /// This one, which no interface needs to have.
    OfPrefix(IpAddr),
}

/// Draws the address that a socket to `remote` comes from.
fn source(bind: &Bind, remote: SocketAddr) -> io::Result<Source> {
    if let Some(source) = bind.source {
        return Ok(Source::One(source));
    }
    let sources = &bind.outgoing.sources;
    if sources.is_empty() {
        return Ok(Source::Any);
    }
    let of_family = || sources.iter().filter(|source| source.address().is_ipv4() == remote.is_ipv4());
    let mut rng = rand::rng();
    let drawn = of_family().nth(rng.random_range(0..of_family().count().max(1)));
    let Some(&drawn) = drawn else {
        return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "this family has no source address"));
    };
    if drawn.address() == drawn.last() {
        return Ok(Source::One(drawn.address()));
    }
    Ok(Source::OfPrefix(address_in(drawn, rng.random())))
}

/// Draws the address that a socket to `remote` comes from, and has the kernel take it.
fn source_address(socket: &Socket, bind: &Bind, remote: SocketAddr) -> io::Result<Option<IpAddr>> {
    match source(bind, remote)? {
        Source::Any => Ok(None),
        Source::One(address) => Ok(Some(address)),
        Source::OfPrefix(address) => {
            // The option of IPv4 is for both families.
            socket.set_freebind_v4(true)?;
            Ok(Some(address))
        }
    }
}

/// Tells the kernel what is configured of a socket to `remote`, and binds it to its source, if it
/// has one: the kernel draws the port.
pub(super) fn apply(socket: &Socket, bind: &Bind, remote: SocketAddr) -> io::Result<()> {
    set_options(socket, bind, remote)?;
    match source_address(socket, bind, remote)? {
        Some(address) => socket.bind(&SocketAddr::new(address, 0).into()),
        None => Ok(()),
    }
}

/// The same for a socket of datagrams, which is bound in any case, and to a port of those that are
/// set.
pub(super) fn apply_udp(socket: &Socket, bind: &Bind, remote: SocketAddr) -> io::Result<()> {
    set_options(socket, bind, remote)?;
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let address = source_address(socket, bind, remote)?.unwrap_or(any);
    let ports = &bind.outgoing.ports;
    if ports.is_empty() {
        // RFC 6056: the kernel draws the port at random, from those that are set aside for this.
        return socket.bind(&SocketAddr::new(address, 0).into());
    }
    let mut rng = rand::rng();
    let mut tried = 0;
    loop {
        tried += 1;
        let port = ports.at(rng.random_range(0..ports.len().max(1))).unwrap_or(0);
        match socket.bind(&SocketAddr::new(address, port).into()) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tried < PORTS_TRIED_MAX => {}
            bound => return bound,
        }
    }
}

fn set_options(socket: &Socket, bind: &Bind, remote: SocketAddr) -> io::Result<()> {
    if let Some(mark) = bind.mark {
        socket.set_mark(mark)?;
    }
    if let Some(device) = &bind.device {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    // The last two bits are for congestion (ECN).
    match (bind.outgoing.dscp, remote) {
        (0, _) => Ok(()),
        (dscp, SocketAddr::V4(_)) => socket.set_tos_v4(u32::from(dscp) << 2),
        (dscp, SocketAddr::V6(_)) => socket.set_tclass_v6(u32::from(dscp) << 2),
    }
}

/// Makes a socket that is bound as configured and connected to `to`.
pub(crate) fn udp(bind: &Bind, to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM.nonblocking(), None)?;
    apply_udp(&socket, bind, to)?;
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
    apply(&socket, bind, to)?;
    if let Some(octets) = bind.outgoing.tcp_mss {
        socket.set_tcp_mss(octets.into())?;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plan::upstreams::Outgoing;
    use socket2::SockRef;

    use super::*;

    #[test]
    fn ip_dscp_and_outgoing_tcp_mss_are_what_the_kernel_has_of_the_sockets() {
        let outgoing = Arc::new(Outgoing { tcp_mss: Some(900), dscp: 10, ..Outgoing::default() });
        let bind = Bind { outgoing, ..Bind::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let server = listener.local_addr().expect("it is bound");
            let stream = tcp(&bind, server).await.expect("it listens");
            let socket = SockRef::from(&stream);
            assert!(socket.tcp_mss().expect("it is known") <= 900);
            assert_eq!(socket.tos_v4().expect("it is known"), 10 << 2);
            let socket = udp(&bind, server).expect("a socket");
            assert_eq!(SockRef::from(&socket).tos_v4().expect("it is known"), 10 << 2);
        });
    }

    #[test]
    fn an_address_of_an_ipv6_prefix_need_be_no_interface_s() {
        let prefix = wire::Prefix::new("2001:db8:0:1::".parse().expect("an address"), 64);
        let outgoing = Arc::new(Outgoing { sources: vec![prefix], ..Outgoing::default() });
        let bind = Bind { outgoing, ..Bind::default() };
        let remote = "[::1]:53".parse().expect("an address");
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..8 {
            let socket = Socket::new(Domain::IPV6, Type::DGRAM, None).expect("a socket");
            apply_udp(&socket, &bind, remote).expect("the kernel takes any address");
            let address = socket.local_addr().expect("it is bound").as_socket().expect("an address").ip();
            assert!(prefix.contains(address), "{address}");
            seen.insert(address);
        }
        assert!(seen.len() > 1, "{seen:?}");
    }
}
