//! A connection to another server, with TLS if that is demanded.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use identity::{Registry, tls};
use plan::tls::ClientTls;
use plan::transfers::Remote;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use wire::{Name, Opcode, Rtype};

use crate::error::PeerError;
use crate::messages::{Expire, query};
use crate::signature::{believed, signed};

/// TLS sessions that are kept although nobody is connected: the next transfer from the same server
/// begins faster.
const SESSIONS_MAX: usize = 64;

/// Times a notification is sent over UDP, usually.
const NOTIFY_TRIES: u32 = 5;

/// Asks other servers of zones; remembers TLS sessions with those that it asked last.
#[derive(Clone)]
pub struct Client {
    registry: Arc<Registry>,
    recent: Arc<Mutex<VecDeque<Arc<tls::Client>>>>,
}

impl Client {
    /// Returns one that shares with others what is known of servers.
    pub fn new(registry: Arc<Registry>) -> Self {
        Self { registry, recent: Arc::default() }
    }

    fn tls(&self, plan: &ClientTls) -> Arc<tls::Client> {
        let client = self.registry.tls(plan);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|other| !Arc::ptr_eq(other, &client));
        recent.truncate(SESSIONS_MAX - 1);
        recent.push_front(Arc::clone(&client));
        client
    }
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// To connect, handshake included.
    pub connect: Duration,
    /// Until the next octets come.
    pub read: Duration,
    /// A whole transfer.
    pub whole: Duration,
    /// Times a notification is sent over UDP before nobody is believed to be there.
    pub notify_tries: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            read: Duration::from_secs(30),
            whole: Duration::from_secs(2 * 3600),
            notify_tries: NOTIFY_TRIES,
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// A connection to another server.
pub(crate) struct Connection {
    stream: Pin<Box<dyn Stream + Send>>,
    patience: Patience,
}

impl Connection {
    pub(crate) async fn open(
        client: &Client,
        remote: &Remote,
        patience: Patience,
    ) -> Result<Self, PeerError> {
        let opening = async {
            let socket = if remote.address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            let stream = socket.connect(remote.address).await?;
            stream.set_nodelay(true)?;
            let Some(plan) = &remote.tls else {
                return Ok::<_, PeerError>(Self { stream: Box::pin(stream), patience });
            };
            let name: ServerName<'static> = plan.name.clone();
            let stream = TlsConnector::from(client.tls(plan).config()).connect(name, stream).await?;
            // RFC 9103 §7.1: both sides have agreed that this is DNS.
            if stream.get_ref().1.alpn_protocol() != Some(&b"dot"[..]) {
                let why = "the server does not speak DNS over TLS (ALPN \"dot\")";
                return Err(io::Error::other(why).into());
            }
            Ok(Self { stream: Box::pin(stream), patience })
        };
        timeout(patience.connect, opening).await.unwrap_or(Err(PeerError::Slow))
    }

    pub(crate) async fn send(&mut self, message: &[u8]) -> Result<(), PeerError> {
        let framed = [&(message.len() as u16).to_be_bytes(), message].concat();
        let sending = async {
            self.stream.write_all(&framed).await?;
            self.stream.flush().await
        };
        Ok(timeout(self.patience.read, sending).await.map_err(|_| PeerError::Slow)??)
    }

    pub(crate) async fn receive(&mut self, buffer: &mut Vec<u8>) -> Result<(), PeerError> {
        let receiving = async {
            let mut length = [0; 2];
            self.stream.read_exact(&mut length).await?;
            buffer.resize(usize::from(u16::from_be_bytes(length)), 0);
            self.stream.read_exact(buffer).await
        };
        timeout(self.patience.read, receiving).await.map_err(|_| PeerError::Slow)??;
        Ok(())
    }

    /// Asks for the SOA and returns the reply.
    pub(crate) async fn ask_soa(
        &mut self,
        remote: &Remote,
        apex: Name<'_>,
        expire: Expire,
    ) -> Result<Vec<u8>, PeerError> {
        let (id, mut message) = query(apex, (Rtype::SOA, Opcode::QUERY), None, expire);
        let mut verifier = signed(remote, &mut message);
        self.send(&message).await?;
        let mut buffer = Vec::new();
        self.receive(&mut buffer).await?;
        believed(&buffer, (id, Opcode::QUERY), verifier.as_mut())
    }
}
