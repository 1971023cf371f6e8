//! Clients whose queries have a stream each: HTTP/2, HTTP/3 and QUIC. A connection per query, so
//! that none can spoil another.

use crate::DEADLINE;
use crate::tls::{NAME, client_config};
use bytes::{Buf as _, BufMut as _, Bytes};
use http::Request;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, Endpoint, TransportConfig};
use rustls::pki_types::ServerName;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Octets of the largest reply, with its length.
const REPLY_OCTETS_MAX: usize = 2 + 65_535;

/// Sends a message on a stream of DNS over QUIC; `None` if the server resets the stream or ends the
/// connection instead of answering.
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

/// How often a hoarder looks at its connections.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Octets that a hoarder takes of each stream.
const HOARDER_WINDOW: u32 = 64;

/// A client over QUIC that asks on many streams of many connections, takes next to nothing of the
/// answers, and otherwise keeps its connections alive.
pub struct Hoarder {
    asked: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hoarder {
    /// Begins: `protocol` is `doq` or `h3`, `message` a query.
    ///
    /// # Panics
    ///
    /// Its thread does when a connection cannot be opened.
    pub fn start(
        server: SocketAddr,
        trusted: &Path,
        protocol: &'static str,
        (connections, streams): (usize, usize),
        message: &[u8],
    ) -> Self {
        let (asked, stop) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let open = Arc::new(AtomicUsize::new(connections));
        let (trusted, message) = (trusted.to_path_buf(), message.to_vec());
        let thread = {
            let (asked, open, stop) = (Arc::clone(&asked), Arc::clone(&open), Arc::clone(&stop));
            std::thread::spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(async {
                    let mut all = Vec::new();
                    let mut streams_kept = Vec::new();
                    for _ in 0..connections {
                        let (endpoint, connection) = hoarding(server, &trusted, protocol).await;
                        for _ in 0..streams {
                            let Ok((mut writer, reader)) = connection.open_bi().await else { break };
                            // The server may have had enough.
                            let _ = writer.write_all(&question(protocol, &message)).await;
                            let _ = writer.finish();
                            streams_kept.push((writer, reader));
                        }
                        all.push((endpoint, connection));
                        asked.fetch_add(1, Ordering::Relaxed);
                    }
                    while !stop.load(Ordering::Relaxed) {
                        let alive = all.iter().filter(|(_, one)| one.close_reason().is_none()).count();
                        open.store(alive, Ordering::Relaxed);
                        tokio::time::sleep(LOOK_EVERY).await;
                    }
                    for (endpoint, connection) in &all {
                        connection.close(0_u32.into(), b"");
                        // The server hears of it.
                        endpoint.wait_idle().await;
                    }
                });
            })
        };
        Self { asked, open, stop, thread: Some(thread) }
    }

    /// Returns on how many connections it has asked.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Returns how many of its connections the server has not ended.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

impl Drop for Hoarder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic of its was reported already.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Opens a connection that takes little.
async fn hoarding(server: SocketAddr, trusted: &Path, protocol: &str) -> (Endpoint, Connection) {
    let config = client_config(trusted, protocol).expect("a certificate");
    let crypto = QuicClientConfig::try_from(config).expect("TLS 1.3 and AES-128");
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(HOARDER_WINDOW.into()).keep_alive_interval(Some(Duration::from_secs(1)));
    config.transport_config(Arc::new(transport));
    let connecting = endpoint.connect_with(config, server, NAME).expect("an address");
    let connection = connecting.await.expect("a connection over QUIC");
    if protocol == "h3" {
        // The control stream with empty SETTINGS (RFC 9114 §6.2.1, §7.2.4).
        let mut control = connection.open_uni().await.expect("a stream");
        control.write_all(&[0, 4, 0]).await.expect("sent");
        // It must not end.
        std::mem::forget(control);
    }
    (endpoint, connection)
}

/// Returns what asks a query on a stream.
fn question(protocol: &str, message: &[u8]) -> Vec<u8> {
    if protocol == "doq" {
        let mut framed = (message.len() as u16).to_be_bytes().to_vec();
        framed.extend_from_slice(&[0, 0]);
        framed.extend_from_slice(message.get(2..).unwrap_or(&[]));
        return framed;
    }
    // HEADERS and DATA (RFC 9114 §7.2); fields by the static table of RFC 9204, or as they are.
    let literal = |index: u8, value: &str| {
        // A name of the static table, beyond the 15 that a prefix of four bits holds.
        [&[0x5f, index - 15, value.len() as u8][..], value.as_bytes()].concat()
    };
    let mut fields = vec![0, 0, 0xc0 | 20, 0xc0 | 23];
    fields.extend([0x50, NAME.len() as u8]);
    fields.extend_from_slice(NAME.as_bytes());
    fields.extend([0x51, 10]);
    fields.extend_from_slice(b"/dns-query");
    fields.extend(literal(44, "application/dns-message"));
    let mut framed = vec![1, fields.len() as u8];
    framed.extend(fields);
    framed.extend([0, message.len() as u8]);
    framed.extend_from_slice(message);
    framed
}

/// A connection of HTTP/2 without TLS whose frames a test writes itself.
pub struct RawHttp2(std::net::TcpStream);

impl RawHttp2 {
    /// Opens a connection whose client takes so many octets of each response, before it says that
    /// it takes more.
    ///
    /// # Errors
    ///
    /// When the server does not listen.
    pub fn connect(server: SocketAddr, window: u32) -> std::io::Result<Self> {
        let stream = std::net::TcpStream::connect(server)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_nodelay(true)?;
        let mut connection = Self(stream);
        let settings = [&[0, 4][..], &window.to_be_bytes()].concat();
        connection.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")?;
        connection.send(4, 0, 0, &settings)?;
        Ok(connection)
    }

    /// Asks with POST on the streams 1, 3, 5 and so on.
    ///
    /// # Errors
    ///
    /// When the server has ended the connection.
    pub fn ask(&mut self, streams: u32, message: &[u8]) -> std::io::Result<()> {
        let frames = questions(streams, message);
        self.write(&frames)
    }

    /// Sends a frame.
    ///
    /// # Errors
    ///
    /// When the server has ended the connection.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> std::io::Result<()> {
        let framed = frame(kind, flags, stream, payload);
        self.write(&framed)
    }

    /// Reads the next frame; returns its kind, flags, stream and how many octets it has, or `None`
    /// if the connection has ended.
    pub fn next_frame(&mut self) -> Option<(u8, u8, u32, usize)> {
        use std::io::Read as _;
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let [high, middle, low, kind, flags, stream @ ..] = head;
        let len = u32::from_be_bytes([0, high, middle, low]) as usize;
        self.0.read_exact(&mut vec![0; len]).ok()?;
        Some((kind, flags, u32::from_be_bytes(stream), len))
    }

    /// Reads frames until one of this kind has come; `None` if the connection ends before.
    pub fn wait_for(&mut self, wanted: u8) -> Option<()> {
        while self.next_frame()?.0 != wanted {}
        Some(())
    }

    /// Reads what has come; false when the server has ended the connection.
    pub fn is_open(&mut self) -> bool {
        use std::io::{ErrorKind, Read as _};
        self.0.set_nonblocking(true).expect("a socket");
        let mut octets = [0; 4096];
        let is_open = loop {
            match self.0.read(&mut octets) {
                Ok(0) => break false,
                Ok(_) => {}
                Err(error) => break error.kind() == ErrorKind::WouldBlock,
            }
        };
        self.0.set_nonblocking(false).expect("a socket");
        is_open
    }

    fn write(&mut self, octets: &[u8]) -> std::io::Result<()> {
        std::io::Write::write_all(&mut self.0, octets)
    }
}

/// Returns what opens a connection of HTTP/2 and asks that often.
pub(crate) fn http2_requests(requests: usize, message: &[u8]) -> Vec<u8> {
    let mut octets = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    octets.extend(frame(4, 0, 0, &[]));
    octets.extend(questions(u32::try_from(requests).expect("not that many"), message));
    octets
}

/// Returns requests with POST on the streams 1, 3, 5 and so on.
fn questions(streams: u32, message: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    for number in 0..streams {
        let stream = 2 * number + 1;
        let mut head = vec![0x83, 0x86, 0x44, 10];
        head.extend_from_slice(b"/dns-query");
        head.extend([0x5f, 23]);
        head.extend_from_slice(b"application/dns-message");
        frames.extend(frame(1, 4, stream, &head));
        frames.extend(frame(0, 1, stream, message));
    }
    frames
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = (payload.len() as u32).to_be_bytes();
    let mut framed = vec![high, middle, low, kind, flags];
    framed.extend(stream.to_be_bytes());
    framed.extend_from_slice(payload);
    framed
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
