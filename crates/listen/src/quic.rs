//! DNS over QUIC (RFC 9250) and, over the same sockets, HTTP/3.
//!
//! `quinn` speaks QUIC on the worker's own sockets. A client's packets reach the same worker for as
//! long as its address and port stay; when those change in the middle of a connection, another
//! worker may get them, which tells the client at once that it does not know the connection (all
//! workers have the same key for that), and the client begins anew. Data before the end of a
//! handshake (0-RTT) is not taken. What a stranger without a proven address can have is bounded:
//! three times what it sent (RFC 9000 §8.1), and, when many handshakes are under way, a token that
//! it has to come back with.

mod unproven;

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use engine::{Client, ConnectionText, Said, Transport};
use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{
    Connecting, Connection, Endpoint, EndpointConfig, IdleTimeout, Incoming, RecvStream, Runtime as _,
    SendStream, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use rustls::Tls13CipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::CertificateDer;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tokio::time::timeout;
use wire::{MESSAGE_OCTETS_MAX, Message, OptionCode};

use crate::ask::{Asker, TooMany};
use crate::bind::ListenerInfo;
use crate::http::{self, Handle};
use crate::service::Service;
use crate::tcp::{AnyConnection, Ending, Shared};
use crate::tls::ShownCertificate;
use plan::listeners::{Datagrams, TcpPlan};
use unproven::{Bounded, BoundedSocket, Bounds};

/// How DNS over QUIC is called in a handshake (RFC 9250 §4.1.1).
pub(crate) const ALPN_DOQ: &[u8] = b"doq";
/// How HTTP/3 is called in a handshake (RFC 9114 §3.1).
pub(crate) const ALPN_H3: &[u8] = b"h3";

/// Streams of a connection that a client may have open at once.
const STREAMS_MAX: u32 = 128;
/// Streams of HTTP/3 that go one way: control, and the tables of field compression.
const ONE_WAY_STREAMS_MAX: u32 = 8;
/// Octets that a client may send on a stream before we take them: the largest message, and its
/// length.
const STREAM_WINDOW_OCTETS: u32 = (64 << 10) + 1024;
/// Octets that it may send on a connection.
const CONNECTION_WINDOW_OCTETS: u32 = 256 << 10;
/// Octets of replies that a connection keeps until the client has acknowledged them, beside those
/// that are charged to it.
const SEND_OCTETS_MAX: u64 = 64 << 10;
/// Octets of a query that every stream may send at once.
pub(crate) const SMALL_OCTETS_MAX: usize = 1 << 10;
/// Streams of a connection whose larger queries are read at a time.
pub(crate) const LARGE_QUERIES_MAX: usize = 2;
/// Connections of a worker whose handshake is not done, from which on a client has to prove its
/// address first.
const UNPROVEN_MAX: u32 = 64;
/// Connections that a worker may not have looked at yet.
const INCOMING_MAX: usize = 1024;
/// Octets of those.
const INCOMING_OCTETS_MAX: u64 = 4 << 20;
/// Octets of one of those.
const INCOMING_OCTETS_EACH: u64 = 16 << 10;

/// RFC 9250 §8.4 names the codes.
const DOQ_NO_ERROR: VarInt = VarInt::from_u32(0);
const DOQ_INTERNAL_ERROR: VarInt = VarInt::from_u32(1);
const DOQ_PROTOCOL_ERROR: VarInt = VarInt::from_u32(2);
const DOQ_EXCESSIVE_LOAD: VarInt = VarInt::from_u32(4);

/// Returns how QUIC is spoken within the limits of `plan`, with a session of TLS.
pub(crate) fn server_config(tls: Arc<rustls::ServerConfig>, plan: &TcpPlan) -> Option<ServerConfig> {
    // RFC 9001 §5.2: first packets are protected with this suite, whatever is offered.
    let initial = TLS13_AES_128_GCM_SHA256.tls13().and_then(Tls13CipherSuite::quic_suite)?;
    let crypto = QuicServerConfig::with_initial(tls, initial).ok()?;
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(STREAMS_MAX.min(plan.waiting_max).into())
        .max_concurrent_uni_streams(ONE_WAY_STREAMS_MAX.into())
        .stream_receive_window(STREAM_WINDOW_OCTETS.into())
        .receive_window(CONNECTION_WINDOW_OCTETS.into())
        .send_window(SEND_OCTETS_MAX)
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(IdleTimeout::try_from(plan.idle_timeout).ok());
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config
        .transport_config(Arc::new(transport))
        // Packets from another address would reach another worker.
        .migration(false)
        .max_incoming(INCOMING_MAX)
        .incoming_buffer_size(INCOMING_OCTETS_EACH)
        .incoming_buffer_size_total(INCOMING_OCTETS_MAX);
    Some(config)
}

/// Serves one socket until it is dropped.
pub(crate) async fn accept<S: Service + 'static>(
    shared: Rc<Shared<S>>,
    socket: OwnedFd,
    endpoint: EndpointConfig,
    listener_info: Arc<ListenerInfo>,
) -> io::Result<()> {
    let socket = UdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    let runtime = Arc::new(TokioRuntime);
    let bounds = Bounds::default();
    let socket = BoundedSocket { socket: runtime.wrap_udp_socket(socket)?, bounds: bounds.clone() };
    let endpoint = Endpoint::new_with_abstract_socket(endpoint, None, Arc::new(socket), runtime)?;
    let unproven = Rc::new(Cell::new(0));
    let mut changes = shared.tls_changes();
    loop {
        endpoint.set_server_config(config(&shared, &listener_info));
        loop {
            tokio::select! {
                biased;
                changed = changes.changed() => match changed {
                    Ok(()) => break,
                    // Nobody will ever change it again.
                    Err(_) => std::future::pending().await,
                },
                incoming = endpoint.accept() => match incoming {
                    Some(incoming) => open(&shared, incoming, &listener_info, (&unproven, &bounds)),
                    None => return Ok(()),
                },
            }
        }
    }
}

/// Returns how QUIC is spoken at a listener; `None` when there is no certificate.
fn config<S: Service + 'static>(shared: &Shared<S>, listener_info: &ListenerInfo) -> Option<ServerConfig> {
    let Some(Datagrams::Quic { doq, h3 }) = listener_info.datagrams else { return None };
    let mut protocols = Vec::new();
    if doq {
        protocols.push(ALPN_DOQ);
    }
    if h3 {
        protocols.push(ALPN_H3);
    }
    server_config(shared.quic_config(listener_info, &protocols)?, shared.plan())
}

/// Takes a new connection in, if there is a place.
fn open<S: Service + 'static>(
    shared: &Rc<Shared<S>>,
    incoming: Incoming,
    listener_info: &Arc<ListenerInfo>,
    (unproven, bounds): (&Rc<Cell<u32>>, &Bounds),
) {
    let peer = incoming.remote_address();
    let peer = (peer.ip().to_canonical(), peer.port());
    if unproven.get() >= UNPROVEN_MAX && !incoming.remote_address_validated() && incoming.may_retry() {
        shared.counters().quic_retries.bump();
        // It may be gone already.
        drop(incoming.retry());
        return;
    }
    if !shared.admits_handshake(peer.0) {
        shared.counters().tls_refused.bump();
        incoming.refuse();
        return;
    }
    let Some(mut place) = shared.find_place() else {
        shared.counters().tcp_refused_full.bump();
        incoming.refuse();
        return;
    };
    if !place.charge(shared.plan().client(peer.0)) {
        shared.counters().tcp_refused_client.bump();
        incoming.refuse();
        return;
    }
    let mut bounded = bounds.bind(incoming.remote_address());
    if incoming.remote_address_validated() {
        bounded.prove();
    }
    let Ok(connecting) = incoming.accept() else {
        shared.counters().tls_failed.bump();
        return;
    };
    shared.counters().quic_accepted.bump();
    let handle = Handle::new(place, shared.account());
    let key = shared.insert(Rc::clone(&handle) as Rc<dyn AnyConnection>);
    let unproven = Unproven::new(unproven);
    let listener_info = Arc::clone(listener_info);
    let accepted = Accepted { connecting, unproven, bounded, peer, listener_info, handle, key };
    shared.spawn(run(Rc::clone(shared), accepted));
}

/// Counts a handshake for as long as it lives.
struct Unproven(Rc<Cell<u32>>);

impl Unproven {
    fn new(count: &Rc<Cell<u32>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for Unproven {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

struct Accepted {
    connecting: Connecting,
    unproven: Unproven,
    bounded: Bounded,
    peer: (IpAddr, u16),
    listener_info: Arc<ListenerInfo>,
    handle: Rc<Handle>,
    key: usize,
}

/// Serves one connection until it ends.
async fn run<S: Service + 'static>(shared: Rc<Shared<S>>, accepted: Accepted) {
    let Accepted { connecting, unproven, mut bounded, peer, listener_info, handle, key } = accepted;
    // However this ends, also by being dropped, the worker forgets the connection.
    let _entry = shared.entry(key);
    let handshake = timeout(shared.plan().handshake_timeout, connecting);
    let ending = match handle.unless_evicted(handshake).await {
        Err(ending) => ending,
        Ok(Err(_)) => Ending::SlowHandshake,
        Ok(Ok(Err(_))) => Ending::Tls,
        Ok(Ok(Ok(connection))) => {
            drop(unproven);
            bounded.prove();
            shared.counters().tls_handshakes.bump();
            handle.touch();
            let data = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
            let certificate = certificate(&connection);
            let (protocol, server_name) = data.map_or((None, None), |data| (data.protocol, data.server_name));
            if protocol.as_deref() == Some(ALPN_H3) {
                let server_name = server_name.as_deref();
                let visit =
                    http::Visit::new(Rc::clone(&shared), (handle, key), listener_info, peer, Transport::H3);
                http::talk_h3(&shared, visit.named(server_name).shown(certificate), connection, key).await
            } else {
                let client = Client {
                    address: peer.0,
                    port: peer.1,
                    transport: Transport::Quic,
                    verified: true,
                    reply_octets_max: u16::MAX,
                    keepalive: None,
                    listener: listener_info.listener,
                    connection: 0,
                    certificate: None,
                };
                let asker = Asker::new(Rc::clone(&shared), Arc::clone(handle.account()));
                let large = Semaphore::new(LARGE_QUERIES_MAX);
                let talk = Talk { asker, handle, client, server_name, certificate, connection, large };
                talk_doq(&shared, Rc::new(talk), key).await
            }
        }
    };
    ending.count(shared.counters());
}

/// A connection that speaks DNS over QUIC.
struct Talk<S: Service> {
    asker: Asker<S>,
    handle: Rc<Handle>,
    client: Client,
    server_name: Option<String>,
    certificate: Option<ShownCertificate>,
    connection: Connection,
    /// Lets larger queries in.
    large: Semaphore,
}

/// Returns what the client's certificate says, if it has shown one.
fn certificate(connection: &Connection) -> Option<ShownCertificate> {
    let identity = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    ShownCertificate::of(Some(&identity))
}

/// Answers the queries of a connection until it ends.
async fn talk_doq<S: Service + 'static>(shared: &Shared<S>, talk: Rc<Talk<S>>, key: usize) -> Ending {
    // Dropping it ends the answers.
    let mut streams = JoinSet::new();
    let plan = *shared.plan();
    let account = talk.handle.account();
    let mut stalled = pin!(account.stalled(plan.write_timeout));
    loop {
        let has_room = account.has_room();
        let is_old = talk.handle.is_old(&plan);
        let is_stopping = is_old || talk.handle.is_stopping();
        if is_stopping && streams.is_empty() {
            talk.connection.close(DOQ_NO_ERROR, b"");
            return if is_old { Ending::Finished } else { Ending::Stopping };
        }
        if streams.is_empty() {
            shared.quiet(key);
        } else {
            shared.busy(key);
        }
        tokio::select! {
            biased;
            Some(_) = streams.join_next() => {}
            () = talk.handle.changed() => {
                if talk.handle.is_evicted() {
                    // RFC 9250 §5.5.2: a server may close a connection at any time.
                    talk.connection.close(DOQ_NO_ERROR, b"");
                    return talk.handle.eviction();
                }
            }
            () = &mut stalled => {
                talk.connection.close(DOQ_EXCESSIVE_LOAD, b"");
                return Ending::SlowReader;
            }
            () = talk.handle.grows_old(&plan), if !is_stopping => {}
            () = account.room(), if !has_room && !is_stopping => {}
            stream = talk.connection.accept_bi(), if has_room && !is_stopping => match stream {
                Ok((send, receive)) => {
                    streams.spawn_local(answer(Rc::clone(&talk), send, receive));
                }
                Err(error) => return ending(&error),
            },
            error = talk.connection.closed(), if !has_room || is_stopping => return ending(&error),
        }
    }
}

/// Returns why a connection ended.
pub(crate) const fn ending(error: &quinn::ConnectionError) -> Ending {
    match error {
        quinn::ConnectionError::TimedOut => Ending::Idle,
        quinn::ConnectionError::ApplicationClosed(_) => Ending::Client,
        quinn::ConnectionError::LocallyClosed => Ending::Malformed,
        _ => Ending::Error,
    }
}

/// Answers the query of one stream.
async fn answer<S: Service + 'static>(talk: Rc<Talk<S>>, mut send: SendStream, mut receive: RecvStream) {
    let _working = talk.handle.working();
    let shared = talk.asker.shared();
    let read = timeout(shared.plan().query_timeout, read(&mut receive, &talk.large));
    let (octets, _permit) = match read.await {
        Ok(Ok(read)) => read,
        // It took too long, or the client gave up.
        Err(_) | Ok(Err(Unread::Gone)) => {
            let _ = receive.stop(DOQ_NO_ERROR);
            let _ = send.reset(DOQ_INTERNAL_ERROR);
            return;
        }
        Ok(Err(Unread::TooLong)) => return talk.protest(),
    };
    let account = talk.handle.account();
    // It may have been full since the stream was taken.
    account.room().await;
    let Some(query) = query(&octets) else { return talk.protest() };
    shared.counters().quic_queries.bump();
    let say = |text: &ConnectionText| match text {
        ConnectionText::ServerName => talk.server_name.as_deref().map(str::as_bytes).into(),
        ConnectionText::Path | ConnectionText::Header(_) => Said::Nothing,
        ConnectionText::CertificateSubject
        | ConnectionText::CertificateNames
        | ConnectionText::CertificateFingerprint => ShownCertificate::say(talk.certificate.as_ref(), text),
    };
    match talk.asker.ask(query, talk.client.clone(), say).await {
        Ok(Some(reply)) => {
            let len = u16::try_from(reply.len()).unwrap_or(u16::MAX).to_be_bytes();
            let mut pieces = account.in_pieces(reply);
            // The client may have gone.
            if send.write_all(&len).await.is_ok() && send.write_all_chunks(&mut pieces).await.is_ok() {
                let _ = send.finish();
                // Until the client has it, or gives up.
                let _ = timeout(shared.plan().write_timeout, send.stopped()).await;
            }
        }
        Ok(None) => drop(send.reset(DOQ_INTERNAL_ERROR)),
        Err(TooMany) => drop(send.reset(DOQ_EXCESSIVE_LOAD)),
    }
}

/// Why a query was not read.
enum Unread {
    /// The stream has ended otherwise.
    Gone,
    /// It is longer than a message can be.
    TooLong,
}

/// Reads what a client sends on a stream. Long queries need a permit, which is returned with them:
/// a client cannot have us keep as many of those as it may open streams.
async fn read<'t>(
    receive: &mut RecvStream,
    large: &'t Semaphore,
) -> Result<(Vec<u8>, Option<SemaphorePermit<'t>>), Unread> {
    let (mut octets, mut permit) = (Vec::new(), None);
    while let Some(chunk) = receive.read_chunk(SMALL_OCTETS_MAX, true).await.map_err(|_| Unread::Gone)? {
        let len = octets.len() + chunk.bytes.len();
        if len > 2 + MESSAGE_OCTETS_MAX {
            return Err(Unread::TooLong);
        }
        if len > SMALL_OCTETS_MAX && permit.is_none() {
            permit = Some(large.acquire().await.map_err(|_| Unread::Gone)?);
        }
        octets.extend_from_slice(&chunk.bytes);
    }
    Ok((octets, permit))
}

impl<S: Service> Talk<S> {
    /// Ends the connection of a client that does not keep to the protocol (RFC 9250 §4.3.3).
    #[cold]
    fn protest(&self) {
        self.connection.close(DOQ_PROTOCOL_ERROR, b"");
    }
}

/// Returns the query on a stream: one message behind its length, with an ID of zero and without
/// edns-tcp-keepalive (RFC 9250 §4.2, §4.2.1, §5.5.2).
fn query(octets: &[u8]) -> Option<&[u8]> {
    let (len, query) = octets.split_first_chunk::<2>()?;
    if usize::from(u16::from_be_bytes(*len)) != query.len() || query.first_chunk::<2>()? != &[0, 0] {
        return None;
    }
    let has_keepalive = |message: Message<'_>| {
        message.edns.is_some_and(|edns| edns.option(OptionCode::TCP_KEEPALIVE).is_some())
    };
    (!Message::parse(query).is_ok_and(has_keepalive)).then_some(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_holds_one_query_without_an_id() {
        let header = [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let framed = |len: u8, rest: &[u8]| [&[0, len][..], rest].concat();
        assert_eq!(query(&framed(12, &header)), Some(&header[..]));
        assert_eq!(query(&framed(13, &header)), None, "too short");
        assert_eq!(query(&framed(11, &header)), None, "too long");
        assert_eq!(query(&[]), None);
        assert_eq!(query(&framed(12, &[0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])), None, "an ID");
        let keepalive = [&header[..10], &[0, 1, 0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 4, 0, 11, 0, 0]].concat();
        assert_eq!(query(&framed(27, &keepalive)), None, "an option of TCP");
    }
}
