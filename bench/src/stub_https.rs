//! The stub behind HTTP/2 and TLS (RFC 8484), for servers that ask their upstream so.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode, Uri};
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use wire::text::read_base64url;

use crate::certificate::Certificate;
use crate::stub::Stub;

/// The protocol of HTTP/2 in a handshake (RFC 9113 §3.1).
const ALPN_H2: &[u8] = b"h2";
/// Streams that a client may have open at once: more than servers keep in flight.
const STREAMS_MAX: u32 = 1024;

/// A listener that is ready to serve.
pub struct Https {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

impl Https {
    /// Listens at `address` with a certificate.
    pub fn bind(address: SocketAddr, certificate: &Certificate) -> Result<Self, String> {
        let config = certificate.server(&[ALPN_H2])?;
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| format!("cannot listen on {address} over TCP: {error}"))?;
        Ok(Self { listener, config })
    }

    /// Answers until an error.
    pub fn serve(self, stub: &Arc<Stub>) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let acceptor = TlsAcceptor::from(self.config);
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let (acceptor, stub) = (acceptor.clone(), Arc::clone(stub));
                // A connection that breaks is its peer's affair.
                tokio::spawn(async move {
                    let stream = acceptor.accept(stream).await?;
                    talk(stream, &stub).await.map_err(io::Error::other)
                });
            }
        })
    }
}

/// Answers the requests of one connection.
async fn talk(stream: TlsStream<TcpStream>, stub: &Arc<Stub>) -> Result<(), h2::Error> {
    let mut builder = h2::server::Builder::new();
    let mut connection = builder.max_concurrent_streams(STREAMS_MAX).handshake::<_, Bytes>(stream).await?;
    while let Some(asked) = connection.accept().await {
        let (request, response) = asked?;
        let stub = Arc::clone(stub);
        if request.method() == Method::GET && stub.delay().is_zero() {
            answer(&stub, query_of(request.uri()), response)?;
            continue;
        }
        tokio::spawn(async move {
            let (head, body) = request.into_parts();
            let query = if head.method == Method::POST { read(body).await } else { query_of(&head.uri) };
            tokio::time::sleep(stub.delay()).await;
            answer(&stub, query, response)
        });
    }
    Ok(())
}

/// Sends the stub's reply.
fn answer(stub: &Stub, query: Option<Vec<u8>>, mut response: SendResponse<Bytes>) -> Result<(), h2::Error> {
    let reply = query.and_then(|query| stub.answer(&query));
    let status = if reply.is_some() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let mut head = Response::new(());
    *head.status_mut() = status;
    let kind = HeaderValue::from_static("application/dns-message");
    head.headers_mut().insert(CONTENT_TYPE, kind);
    let mut body = response.send_response(head, reply.is_none())?;
    match reply {
        Some(reply) => body.send_data(Bytes::from(reply), true),
        None => Ok(()),
    }
}

/// Returns the message in an address.
fn query_of(address: &Uri) -> Option<Vec<u8>> {
    decode(address.query()?.strip_prefix("dns=")?)
}

async fn read(mut body: RecvStream) -> Option<Vec<u8>> {
    let mut octets = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.ok()?;
        octets.extend_from_slice(&data);
        body.flow_control().release_capacity(data.len()).ok()?;
    }
    Some(octets)
}

/// Reads base64url (RFC 4648 §5), with or without padding.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut octets = Vec::new();
    read_base64url(text.trim_end_matches('=').as_bytes(), &mut octets)?;
    Some(octets)
}
