//! The stub over QUIC (RFC 9250) and HTTP/3 (RFC 8484): each query on a stream of its own.

use bytes::{BufMut as _, Bytes};
use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{Connection, Endpoint, EndpointConfig, Incoming, TokioRuntime};
use rustls::ServerConfig;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Returns what to say to a query from somewhere, and how much later.
pub(crate) type Reply = Arc<dyn Fn(&[u8], SocketAddr) -> (Duration, Vec<Vec<u8>>) + Send + Sync>;

/// How often it looks whether it should stop.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Octets of the largest query, with its length.
const QUERY_OCTETS_MAX: usize = 65_537;

/// Serves until it is told to stop.
pub(crate) fn serve(udp: UdpSocket, tls: &ServerConfig, reply: &Reply, stop: &AtomicBool) {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![b"doq".to_vec(), b"h3".to_vec()];
    let crypto = QuicServerConfig::try_from(tls).expect("TLS 1.3 and AES-128");
    let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        udp.set_nonblocking(true).expect("a socket");
        let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), udp, Arc::new(TokioRuntime))
            .expect("an endpoint");
        while !stop.load(Ordering::Relaxed) {
            if let Ok(Some(incoming)) = tokio::time::timeout(LOOK_EVERY, endpoint.accept()).await {
                tokio::spawn(converse(incoming, Arc::clone(reply)));
            }
        }
    });
}

async fn converse(incoming: Incoming, reply: Reply) -> Option<()> {
    let connection = incoming.await.ok()?;
    let from = connection.remote_address();
    let data = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
    if data.is_some_and(|data| data.protocol.as_deref() == Some(b"h3")) {
        return converse_http(connection, from, reply).await;
    }
    loop {
        let (mut writer, mut reader) = connection.accept_bi().await.ok()?;
        let reply = Arc::clone(&reply);
        tokio::spawn(async move {
            let query = reader.read_to_end(QUERY_OCTETS_MAX).await.ok()?;
            // RFC 9250 §4.2.1: what has another ID than zero is an error.
            let query = query.get(2..).filter(|query| query.starts_with(&[0, 0]))?;
            let (delay, replies) = reply(query, from);
            tokio::time::sleep(delay).await;
            for reply in replies {
                let framed = [&(reply.len() as u16).to_be_bytes()[..], reply.as_slice()].concat();
                writer.write_all(&framed).await.ok()?;
            }
            writer.finish().ok()
        });
    }
}

async fn converse_http(connection: Connection, from: SocketAddr, reply: Reply) -> Option<()> {
    let mut connection =
        h3::server::builder().build::<_, Bytes>(h3_quinn::Connection::new(connection)).await.ok()?;
    while let Some(resolver) = connection.accept().await.ok()? {
        let reply = Arc::clone(&reply);
        tokio::spawn(async move {
            let (request, mut stream) = resolver.resolve_request().await.ok()?;
            let mut query = Vec::new();
            while let Some(data) = stream.recv_data().await.ok()? {
                query.put(data);
            }
            let is_ours = request.uri().path() == "/dns-query" && query.starts_with(&[0, 0]);
            let (delay, replies) = if is_ours { reply(&query, from) } else { (Duration::ZERO, Vec::new()) };
            tokio::time::sleep(delay).await;
            let status = if is_ours { 200 } else { 404 };
            let head =
                http::Response::builder().status(status).header("content-type", "application/dns-message");
            stream.send_response(head.body(()).ok()?).await.ok()?;
            for reply in replies {
                stream.send_data(Bytes::from(reply)).await.ok()?;
            }
            stream.finish().await.ok()
        });
    }
    Some(())
}
