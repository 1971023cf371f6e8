//! One connection's task: connects, secures, then carries messages both ways until one side is done.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};
use std::time::Duration;

use socket2::{Domain, Socket, TcpKeepalive, Type};
use tokio::io::BufWriter;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing::{info, warn};

use super::{apply, https, https3, quic, socks, source, stream};
use crate::desk::Desk;
use crate::network::{LinkKey, Remote};
use crate::plan::{Protocol, Secure};
use crate::secure;

/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
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
pub(super) struct Outbox {
    /// The connection was given up; its task has nothing more to report.
    is_closed: Cell<bool>,
    bytes: RefCell<Vec<u8>>,
    filled: Notify,
    is_signalled: Cell<bool>,
}

impl Outbox {
    /// Queues a message. One that finds no room is dropped: the peer does not read. The query times out, and so does
    /// whoever writes.
    pub(super) fn push(&self, packet: &[u8]) {
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
    pub(super) fn close(&self) {
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

/// A connection's task as those see it that carry its messages.
pub(super) struct Carrier {
    pub(super) desk: Weak<Desk>,
    pub(super) key: LinkKey,
    pub(super) outbox: Rc<Outbox>,
}

impl Carrier {
    /// Returns the desk, while it wants to hear of this connection.
    pub(super) fn desk(&self) -> Option<Rc<Desk>> {
        self.desk.upgrade().filter(|_| !self.outbox.is_closed())
    }
}

/// Runs one connection to its end.
pub(super) async fn run(desk: Weak<Desk>, key: LinkKey, remote: Remote, outbox: Rc<Outbox>) {
    let carrier = Carrier { desk, key, outbox };
    let trouble = begin(&carrier, &remote).await.err();
    if let (Some(trouble), Some(secure)) = (&trouble, &remote.way.secure)
        && secure.is_news(remote.address, trouble)
    {
        let (name, address) = (secure.plan().name.to_str(), remote.address);
        warn!("cannot connect to {}{address} ({name}): {trouble}", remote.way.protocol.prefix());
    }
    if let Some(desk) = carrier.desk() {
        desk.link_closed(key, trouble);
    }
}

/// Connects and goes on until the connection ends; an error says why there was none.
async fn begin(carrier: &Carrier, remote: &Remote) -> Result<(), String> {
    let way = &remote.way;
    match (way.protocol, &way.secure, &way.http) {
        (Protocol::Quic, Some(secure), _) => {
            return quic::carry(carrier, remote, secure, || opened(carrier, remote)).await;
        }
        (Protocol::Https3, Some(secure), Some(http)) => {
            return https3::carry(carrier, remote, (secure, http), || opened(carrier, remote)).await;
        }
        _ => (),
    }
    let stream = match tokio::time::timeout(CONNECT_TIMEOUT, connect(remote)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())),
    };
    match (remote.way.protocol, &remote.way.secure) {
        (Protocol::Udp | Protocol::Tcp | Protocol::Quic | Protocol::Https3, _) | (_, None) => {
            opened(carrier, remote);
            stream::carry_plain(carrier, stream).await;
        }
        (Protocol::Tls, Some(secure)) => {
            let stream = secured(secure, stream).await?;
            opened(carrier, remote);
            stream::carry_secured(carrier, stream).await;
        }
        (Protocol::Https, Some(secure)) => {
            let stream = secured(secure, stream).await?;
            let Some(http) = &remote.way.http else { return Err("there is no URL".to_owned()) };
            https::carry(carrier, http, stream, || opened(carrier, remote)).await?;
        }
    }
    Ok(())
}

/// Tells the desk that queries can be written.
fn opened(carrier: &Carrier, remote: &Remote) {
    if let Some(secure) = &remote.way.secure
        && secure.all_is_well(remote.address)
    {
        let (name, address) = (secure.plan().name.to_str(), remote.address);
        info!("connected to {}{address} ({name}) again", remote.way.protocol.prefix());
    }
    if let Some(desk) = carrier.desk() {
        desk.link_opened(carrier.key);
    }
}

async fn connect(remote: &Remote) -> io::Result<TcpStream> {
    let proxy = remote.way.proxy.as_ref();
    let next = proxy.map_or(remote.address, |proxy| proxy.address);
    let socket = Socket::new(Domain::for_address(next), Type::STREAM.nonblocking(), None)?;
    let bind = &remote.way.bind;
    apply(&socket, bind)?;
    if bind.source.is_some() {
        socket.bind(&source(bind, next).into())?;
    }
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(UNACKNOWLEDGED_MAX))?;
    let mut stream = TcpSocket::from_std_stream(socket.into()).connect(next).await?;
    if let Some(proxy) = proxy {
        socks::pass(&mut stream, proxy.login.as_ref(), remote.address).await?;
    }
    Ok(stream)
}

/// Has the server prove who it is.
async fn secured(secure: &Secure, stream: TcpStream) -> Result<Secured, String> {
    let plan = secure.plan();
    let connector = TlsConnector::from(secure.config()).early_data(plan.early_data);
    match tokio::time::timeout(
        HANDSHAKE_TIMEOUT,
        connector.connect(plan.name.clone(), BufWriter::new(stream)),
    )
    .await
    {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(secure::explain(&error)),
        Err(_) => Err(format!("no TLS handshake within {} s", HANDSHAKE_TIMEOUT.as_secs())),
    }
}
