//! DNS over HTTP/2 (RFC 8484): each query is a POST on a stream of its own.

use std::cell::Cell;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use h2::client::SendRequest;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use plan::upstreams::HttpPlan;
use tokio::sync::Semaphore;
use wire::MESSAGE_OCTETS_MAX;

use super::carrier::Carrier;
use super::connect::Secured;
use super::exchange::{self, Outcome};

/// Times that a request is made to a server that refuses its stream.
const REFUSALS_MAX: u8 = 8;
/// The media type of a message.
const MESSAGE: &str = "application/dns-message";
/// Octets that the server may send ahead on one stream, and on all of them.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Octets of the header fields of one response.
pub(super) const HEADERS_OCTETS_MAX: u32 = 16 << 10;

/// Begins to speak HTTP/2; `opened` is called when queries can be sent. Returns when the connection
/// has ended; an error says why there was none.
pub(super) async fn carry(
    carrier: &Carrier,
    plan: &HttpPlan,
    stream: Secured,
    opened: impl FnOnce(),
) -> Result<(), String> {
    let uri = uri(plan)?;
    let (web, connection) = begin(stream).await?;
    let web = Rc::new(web);
    opened();
    // It reads and writes for all exchanges; when it ends, so does the connection.
    let ended = async { drop(connection.await) };
    exchange::carry(carrier, ended, |query| ask(Rc::clone(&web), uri.clone(), query)).await;
    Ok(())
}

/// Begins to speak HTTP/2 with a server that has agreed to.
pub(super) async fn begin(stream: Secured) -> Result<(Web, h2::client::Connection<Secured>), String> {
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Err("the server does not offer HTTP/2".to_owned());
    }
    let mut builder = h2::client::Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADERS_OCTETS_MAX);
    let begun = builder.handshake::<_, Bytes>(stream).await;
    let (sender, connection) = begun.map_err(|error| format!("HTTP/2: {error}"))?;
    Ok((Web { sender, turn: Semaphore::new(1), takes_turns: Cell::new(false) }, connection))
}

/// Returns where to send requests.
pub(super) fn uri(plan: &HttpPlan) -> Result<Uri, String> {
    let text = format!("https://{}{}", plan.authority, plan.path);
    text.parse().map_err(|error| format!("\"{text}\" is not a URL: {error}"))
}

/// Returns the head of a request with a query of so many octets.
pub(super) fn request(uri: Uri, octets: usize) -> Option<Request<()>> {
    Request::builder()
        .method(Method::POST)
        .uri(uri)
        .header(header::ACCEPT, MESSAGE)
        .header(header::CONTENT_TYPE, MESSAGE)
        .header(header::CONTENT_LENGTH, octets)
        .body(())
        .ok()
}

/// Returns whether what follows is a message.
pub(super) fn is_message<B>(response: &Response<B>) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    is_of(MESSAGE, response.status(), kind.unwrap_or_default())
}

/// Returns whether a response is of the expected kind, parameters aside.
fn is_of(expected: &str, status: StatusCode, kind: &[u8]) -> bool {
    let kind = kind.split(|&octet| octet == b';').next().unwrap_or_default();
    status == StatusCode::OK && kind.trim_ascii().eq_ignore_ascii_case(expected.as_bytes())
}

/// Asks one question; `None` if the connection failed under it.
async fn ask(web: Rc<Web>, uri: Uri, query: Vec<u8>) -> Option<Outcome> {
    let request = request(uri, query.len())?;
    let got = web.exchange(request, Some(query.into())).await?;
    Some(got.body(MESSAGE).map_or(Outcome::Refusal, |body| Outcome::Message(body.to_vec())))
}

/// What a server answered to one request.
pub(super) struct Got {
    pub(super) status: StatusCode,
    kind: Vec<u8>,
    /// What followed, if it was not too much.
    pub(super) octets: BytesMut,
}

impl Got {
    /// Returns what it answered, if that is of this media type.
    pub(super) fn body(&self, kind: &str) -> Option<&[u8]> {
        is_of(kind, self.status, &self.kind).then_some(&self.octets)
    }
}

/// A connection on which requests are made.
pub(super) struct Web {
    sender: SendRequest<Bytes>,
    /// Whose turn it is, if the server cannot read several requests at once.
    turn: Semaphore,
    takes_turns: Cell<bool>,
}

impl Web {
    /// Sends one request; `None` if the connection failed under it.
    ///
    /// A server may refuse a stream that it has not looked at, and it is safe to try again (RFC
    /// 9113 §8.7). Knot Resolver does so with all whose requests are mixed up with one that has not
    /// come whole; from then on each waits for the one before.
    pub(super) async fn exchange(&self, request: Request<()>, body: Option<Bytes>) -> Option<Got> {
        for _ in 0..REFUSALS_MAX {
            let _turn = if self.takes_turns.get() { Some(self.turn.acquire().await.ok()?) } else { None };
            match exchange_once(self.sender.clone(), request.clone(), body.clone()).await {
                Ok(got) => return Some(got),
                Err(error) if error.reason() == Some(h2::Reason::REFUSED_STREAM) => {
                    self.takes_turns.set(true);
                }
                Err(_) => return None,
            }
        }
        None
    }
}

async fn exchange_once(
    sender: SendRequest<Bytes>,
    request: Request<()>,
    body: Option<Bytes>,
) -> Result<Got, h2::Error> {
    // Waits while the server allows no more streams.
    let mut sender = sender.ready().await?;
    let (response, mut writer) = sender.send_request(request, body.is_none())?;
    if let Some(body) = body {
        writer.send_data(body, true)?;
    }
    let response = response.await?;
    let kind = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.as_bytes().to_vec());
    let mut got = Got { status: response.status(), kind: kind.unwrap_or_default(), octets: BytesMut::new() };
    let mut body = response.into_body();
    while let Some(data) = body.data().await {
        let data = data?;
        if got.octets.len() + data.len() > MESSAGE_OCTETS_MAX {
            got.kind.clear();
            return Ok(got);
        }
        got.octets.extend_from_slice(&data);
        // The window is larger than any message: nothing to do if that fails.
        let _ = body.flow_control().release_capacity(data.len());
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_that_are_said_to_be_ones_are_taken() {
        let response = |status: u16, kind: &str| {
            let response = Response::builder().status(status).header(header::CONTENT_TYPE, kind);
            response.body(()).expect("a response")
        };
        assert!(is_message(&response(200, "application/dns-message")));
        assert!(is_message(&response(200, "Application/DNS-Message; charset=x")));
        assert!(!is_message(&response(200, "text/html")));
        assert!(!is_message(&response(404, "application/dns-message")));
        assert!(!is_message(&Response::new(())));
    }

    #[test]
    fn requests_go_to_the_configured_path() {
        let plan = HttpPlan { authority: "dns.example:8443".to_owned(), path: "/a?b=c".to_owned() };
        let request = request(uri(&plan).expect("a URL"), 33).expect("a request");
        assert_eq!(request.uri().to_string(), "https://dns.example:8443/a?b=c");
        assert_eq!(
            request.headers().get(header::CONTENT_LENGTH).map(HeaderValue::as_bytes),
            Some(&b"33"[..])
        );
    }
}
