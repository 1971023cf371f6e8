//! The stub behind HTTP/2 and TLS (RFC 8484), for servers that ask their upstream so.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

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
                    let service = service_fn(move |request| answer(Arc::clone(&stub), request));
                    let served = http2::Builder::new(TokioExecutor::new())
                        .max_concurrent_streams(STREAMS_MAX)
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                    served.map_err(io::Error::other)
                });
            }
        })
    }
}

async fn answer(stub: Arc<Stub>, request: Request<Incoming>) -> Result<Response<Once>, Infallible> {
    let query = if request.method() == Method::POST {
        read(request.into_body()).await
    } else {
        request.uri().query().and_then(|query| decode(query.strip_prefix("dns=")?))
    };
    let delay = stub.delay();
    let reply = query.and_then(|query| stub.answer(&query));
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let mut response = Response::new(Once(reply.map(Bytes::from)));
    if response.body().0.is_none() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    let kind = hyper::header::HeaderValue::from_static("application/dns-message");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
    Ok(response)
}

async fn read(mut body: Incoming) -> Option<Vec<u8>> {
    let mut octets = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Some(data) = frame.ok()?.data_ref() {
            octets.extend_from_slice(data);
        }
    }
    Some(octets)
}

/// Reads base64url (RFC 4648 §5), with or without padding.
fn decode(text: &str) -> Option<Vec<u8>> {
    let (mut octets, mut bits, mut held) = (Vec::with_capacity(text.len()), 0_u32, 0);
    for digit in text.trim_end_matches('=').bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            octets.push((bits >> held) as u8);
        }
    }
    Some(octets)
}

/// The body of a response: one piece.
struct Once(Option<Bytes>);

impl Body for Once {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_is_read() {
        for (text, expect) in
            [("", &b""[..]), ("Zg", b"f"), ("Zg==", b"f"), ("Zm8", b"fo"), ("-_-_", b"\xfb\xff\xbf")]
        {
            assert_eq!(decode(text).as_deref(), Some(expect), "{text}");
        }
        assert_eq!(decode("Zm/v"), None);
    }
}
