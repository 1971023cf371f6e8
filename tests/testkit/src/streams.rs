//! Clients whose queries have a stream each: HTTP/2, HTTP/3 and QUIC. A connection per query, so that none can spoil another.

use crate::DEADLINE;
use crate::tls::{NAME, client_config};
use bytes::{Buf as _, BufMut as _, Bytes};
use http::Request;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, Endpoint};
use rustls::pki_types::ServerName;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Octets of the largest reply, with its length.
const REPLY_OCTETS_MAX: usize = 2 + 65_535;

/// Sends a message on a stream of DNS over QUIC; `None` if the server resets the stream or ends the connection instead of
/// answering.
///
/// RFC 9250 §4.2.1: the message's ID is zero on the way; the reply has it again.
///
/// # Panics
///
/// When the server cannot be reached, or answers with something that is not one message.
pub fn ask_doq(server: SocketAddr, trusted: &Path, message: &[u8]) -> Option<Vec<u8>> {
    let (id, rest) = message.split_first_chunk::<2>().expect("a message with an ID");
    let framed = [&(message.len() as u16).to_be_bytes()[..], &[0, 0], rest].concat();
    in_runtime(async {
        let (_endpoint, connection) = connect(server, trusted, "doq").await;
        let (mut writer, mut reader) = connection.open_bi().await.ok()?;
        writer.write_all(&framed).await.ok()?;
        writer.finish().ok()?;
        let octets = reader.read_to_end(REPLY_OCTETS_MAX).await.ok()?;
        let (length, reply) = octets.split_first_chunk::<2>().expect("a reply behind its length");
        assert_eq!(usize::from(u16::from_be_bytes(*length)), reply.len(), "one reply and nothing else");
        assert_eq!(reply[..2], [0, 0], "the ID of a reply over QUIC");
        Some([&id[..], &reply[2..]].concat())
    })
}

/// Sends a message to `/dns-query` over HTTP/3; returns the status and the body.
///
/// # Panics
///
/// When the server cannot be reached or its response cannot be read.
pub fn post_h3(server: SocketAddr, trusted: &Path, message: &[u8]) -> (u16, Vec<u8>) {
    let message = Bytes::copy_from_slice(message);
    in_runtime(async {
        let (_endpoint, connection) = connect(server, trusted, "h3").await;
        let connection = h3_quinn::Connection::new(connection);
        let (mut driver, mut sender) = h3::client::new(connection).await.expect("HTTP/3");
        let asked = async {
            let mut stream = sender.send_request(request(message.len())).await.expect("a stream");
            stream.send_data(message).await.expect("sent");
            stream.finish().await.expect("sent");
            let response = stream.recv_response().await.expect("a response");
            let mut body = Vec::new();
            while let Some(data) = stream.recv_data().await.expect("a body") {
                body.put(data);
            }
            (response.status().as_u16(), body)
        };
        tokio::select! {
            ended = driver.wait_idle() => panic!("the connection ended before the response: {ended}"),
            answer = asked => answer,
        }
    })
}

/// Sends a message to `/dns-query` over HTTP/2; returns the status and the body.
///
/// # Panics
///
/// When the server cannot be reached or its response cannot be read.
pub fn post_h2(server: SocketAddr, trusted: &Path, message: &[u8]) -> (u16, Vec<u8>) {
    let message = Bytes::copy_from_slice(message);
    let config = client_config(trusted, "h2").expect("a certificate");
    in_runtime(async {
        let stream = TcpStream::connect(server).await.expect("a connection");
        let name = ServerName::try_from(NAME).expect("a name");
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        let asked = async {
            let mut client = client.ready().await.expect("room for a stream");
            let (response, mut body) = client.send_request(request(message.len()), false).expect("a stream");
            body.send_data(message, true).expect("sent");
            let mut response = response.await.expect("a response");
            let mut octets = Vec::new();
            while let Some(data) = response.body_mut().data().await {
                let data = data.expect("a body");
                response
                    .body_mut()
                    .flow_control()
                    .release_capacity(data.remaining())
                    .expect("its own octets");
                octets.put(data);
            }
            (response.status().as_u16(), octets)
        };
        tokio::select! {
            ended = connection => panic!("the connection ended before the response: {ended:?}"),
            answer = asked => answer,
        }
    })
}

fn request(octets: usize) -> Request<()> {
    Request::post(format!("https://{NAME}/dns-query"))
        .header("content-type", "application/dns-message")
        .header("content-length", octets)
        .body(())
        .expect("a request")
}

async fn connect(server: SocketAddr, trusted: &Path, protocol: &str) -> (Endpoint, Connection) {
    let config = client_config(trusted, protocol).expect("a certificate");
    let crypto = QuicClientConfig::try_from(config).expect("TLS 1.3 and AES-128");
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
    let config = quinn::ClientConfig::new(Arc::new(crypto));
    let connecting = endpoint.connect_with(config, server, NAME).expect("an address");
    let connection = connecting.await.expect("a connection over QUIC");
    (endpoint, connection)
}

fn in_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(DEADLINE, work).await.expect("an answer in time") })
}
