//! One connection's task: connects, secures, then carries messages both ways until one side is done.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::time::Duration;

use plan::upstreams::Protocol;
use socket2::{Domain, Socket, TcpKeepalive, Type};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufWriter};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing::{info, warn};

use super::{apply, dnscrypt, https, https3, oblivious, quic, relayed, socks, source, stream};
use crate::network::{LinkKey, Remote, is_shortage};
use crate::tls;

/// Time to connect.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for both sides to prove who they are.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// Data that the peer does not acknowledge for this long ends the connection: it is gone.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(2);
/// Octets queued on one connection: far more than its queries in flight can be.
const OUTBOX_OCTETS_MAX: usize = 1 << 20;

/// A connection that is encrypted, whose records leave together when it is flushed.
pub(super) type Secured = TlsStream<BufWriter<TcpStream>>;

/// What is to be written to a connection: messages, each after its length in two octets.
#[derive(Default)]
pub struct Outbox {
    /// The connection was given up; its task has nothing more to report.
    is_closed: Cell<bool>,
    bytes: RefCell<Vec<u8>>,
    filled: Notify,
    is_signalled: Cell<bool>,
}

impl Outbox {
    /// Queues a message. One that finds no room is dropped: the peer does not read. The query times out, and so does
    /// whoever writes.
    pub(crate) fn push(&self, packet: &[u8]) {
        let mut bytes = self.bytes.borrow_mut();
        let Ok(len) = u16::try_from(packet.len()) else { return };
        if bytes.len() + packet.len() > OUTBOX_OCTETS_MAX {
            return;
        }
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(packet);
        if !self.is_signalled.replace(true) {
            self.filled.notify_one();
        }
    }

    /// Gives the connection up.
    pub(crate) fn close(&self) {
        self.is_closed.set(true);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Waits for messages and takes them all. Dropping the future loses none.
    pub(super) async fn take(&self) -> Vec<u8> {
        loop {
            let bytes = self.bytes.take();
            if !bytes.is_empty() {
                return bytes;
            }
            self.is_signalled.set(false);
            self.filled.notified().await;
        }
    }
}

/// Whoever hears what a connection brings.
pub trait Ear {
    /// Hears that queries can be written.
    fn opened(&self, key: LinkKey);

    /// Handles the messages at the front of what was read; returns the octets they took.
    fn hear(&self, key: LinkKey, bytes: &[u8]) -> usize;

    /// Hears that a message began and does not end.
    fn stalled(&self, key: LinkKey);

    /// Hears that no connection could be tried, because this process lacks descriptors, memory or ports.
    fn lacked(&self, key: LinkKey);

    /// Hears that the connection has ended, or why there was none.
    fn closed(&self, key: LinkKey, trouble: Option<String>);
}

/// Why there is no connection.
pub(super) enum Trouble {
    /// This process lacks something.
    Ours(String),
    /// The network or the server would not.
    Theirs(String),
}

impl From<String> for Trouble {
    fn from(text: String) -> Self {
        Self::Theirs(text)
    }
}

impl From<Trouble> for String {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Ours(text) | Trouble::Theirs(text) => text,
        }
    }
}

/// A connection's task as those see it that carry its messages.
pub(super) struct Carrier {
    pub(super) ear: Weak<dyn Ear>,
    pub(super) key: LinkKey,
    pub(super) outbox: Rc<Outbox>,
}

impl Carrier {
    /// Returns who hears of this connection, as long as somebody wants to.
    pub(super) fn ear(&self) -> Option<Rc<dyn Ear>> {
        self.ear.upgrade().filter(|_| !self.outbox.is_closed())
    }
}

/// Runs one connection to its end.
pub(crate) async fn run(ear: Weak<dyn Ear>, key: LinkKey, remote: Remote, outbox: Rc<Outbox>) {
    let carrier = Carrier { ear, key, outbox };
    let trouble = match begin(&carrier, &remote).await.err() {
        None => None,
        Some(Trouble::Theirs(trouble)) => Some(trouble),
        Some(Trouble::Ours(_)) => {
            if let Some(ear) = carrier.ear() {
                ear.lacked(key);
            }
            return;
        }
    };
    if let (Some(trouble), Some((name, errors))) = (&trouble, remote.transport.identity())
        && errors.is_new(remote.address, trouble)
    {
        let address = remote.address;
        warn!("cannot connect to {}{address} ({name}): {trouble}", remote.way().protocol.scheme().prefix());
    }
    if let Some(ear) = carrier.ear() {
        ear.closed(key, trouble);
    }
}

/// Connects and goes on until the connection ends; an error says why there was none.
async fn begin(carrier: &Carrier, remote: &Remote) -> Result<(), Trouble> {
    let (way, transport) = (remote.way(), &remote.transport);
    let opened = || opened(carrier, remote);
    // The registry makes them of the same plan.
    let client = || transport.tls.as_ref().ok_or_else(|| "there is no TLS".to_owned());
    match &way.protocol {
        Protocol::Udp => {
            // Where the proxy does not relay datagrams it connects.
            if way.proxy.is_none() || !relayed::carry(carrier, remote, opened).await? {
                plain(carrier, remote).await?;
            }
        }
        Protocol::Tcp => plain(carrier, remote).await?,
        Protocol::Tls(_) => {
            let stream = secured(client()?, connect_in_time(remote).await?).await?;
            opened();
            stream::carry_secured(carrier, stream).await;
        }
        Protocol::Https(_, http) => {
            let stream = secured(client()?, connect_in_time(remote).await?).await?;
            https::carry(carrier, http, stream, opened).await?;
        }
        Protocol::Quic(_) => quic::carry(carrier, remote, client()?, opened).await?,
        Protocol::Https3(_, http) => https3::carry(carrier, remote, (client()?, http), opened).await?,
        Protocol::Dnscrypt(_) => {
            let provider = transport.dnscrypt.as_ref().ok_or_else(|| "there is no provider".to_owned())?;
            dnscrypt::carry(carrier, remote, provider, opened).await?;
        }
        Protocol::Odoh { http, .. } => {
            let target = transport.odoh.as_ref().ok_or_else(|| "there is no target".to_owned())?;
            let stream = secured(client()?, connect_in_time(remote).await?).await?;
            oblivious::carry(carrier, (target, http, remote), stream, opened).await?;
        }
    }
    Ok(())
}

/// Connects, and carries messages as they are.
async fn plain(carrier: &Carrier, remote: &Remote) -> Result<(), Trouble> {
    let stream = connect_in_time(remote).await?;
    opened(carrier, remote);
    stream::carry_plain(carrier, stream).await;
    Ok(())
}

/// Tells the desk that queries can be written.
fn opened(carrier: &Carrier, remote: &Remote) {
    if let Some((name, errors)) = remote.transport.identity()
        && errors.resolve(remote.address)
    {
        info!("connected to {}{} ({name}) again", remote.way().protocol.scheme().prefix(), remote.address);
    }
    if let Some(ear) = carrier.ear() {
        ear.opened(carrier.key);
    }
}

/// Connects to a server; an error says why it could not be done.
pub(super) async fn connect_in_time(remote: &Remote) -> Result<TcpStream, Trouble> {
    match tokio::time::timeout(CONNECT_TIMEOUT, connect(remote)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) if is_shortage(&error) => Err(Trouble::Ours(error.to_string())),
        Ok(Err(error)) => Err(Trouble::Theirs(error.to_string())),
        Err(_) => Err(Trouble::Theirs(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()))),
    }
}

/// Connects to a server, perhaps through its proxy.
pub(super) async fn connect(remote: &Remote) -> io::Result<TcpStream> {
    let Some(proxy) = &remote.way().proxy else { return dial(remote, remote.address).await };
    let mut stream = dial(remote, proxy.address).await?;
    socks::pass(&mut stream, proxy.login.as_ref(), remote.address).await?;
    Ok(stream)
}

/// Asks one question over a connection of its own; `None` if that fails.
pub(super) async fn ask_once(remote: &Remote, query: &[u8]) -> Option<Vec<u8>> {
    let exchange = async {
        let mut stream = connect(remote).await.ok()?;
        let length = u16::try_from(query.len()).ok()?.to_be_bytes();
        stream.write_all(&[&length[..], query].concat()).await.ok()?;
        let mut reply = vec![0; usize::from(stream.read_u16().await.ok()?)];
        stream.read_exact(&mut reply).await.ok()?;
        Some(reply)
    };
    tokio::time::timeout(CONNECT_TIMEOUT + HANDSHAKE_TIMEOUT, exchange).await.ok().flatten()
}

/// Connects to an address as configured.
pub(super) async fn dial(remote: &Remote, next: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(next), Type::STREAM.nonblocking(), None)?;
    let bind = &remote.way().bind;
    apply(&socket, bind)?;
    if bind.source.is_some() {
        socket.bind(&source(bind, next).into())?;
    }
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(UNACKNOWLEDGED_MAX))?;
    TcpSocket::from_std_stream(socket.into()).connect(next).await
}

/// Has the server prove who it is.
pub(super) async fn secured(client: &tls::Client, stream: TcpStream) -> Result<Secured, String> {
    let plan = &client.plan;
    let connector = TlsConnector::from(client.config()).early_data(plan.early_data);
    match tokio::time::timeout(
        HANDSHAKE_TIMEOUT,
        connector.connect(plan.name.clone(), BufWriter::new(stream)),
    )
    .await
    {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(tls::explain(&error)),
        Err(_) => Err(format!("no TLS handshake within {} s", HANDSHAKE_TIMEOUT.as_secs())),
    }
}
