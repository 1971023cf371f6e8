//! DNS over HTTP/2 (RFC 8484): each query is a POST on a stream of its own.

use bytes::{Bytes, BytesMut};
use h2::client::SendRequest;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};

use super::exchange::{self, MESSAGE_OCTETS_MAX, Said};
use super::link::{Carrier, Secured};
use crate::plan::HttpPlan;

/// The media type of a message.
const MESSAGE: &str = "application/dns-message";
/// Octets that the server may send ahead on one stream, and on all of them.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Octets of the header fields of one response.
pub(super) const HEADERS_OCTETS_MAX: u32 = 16 << 10;

/// Begins to speak HTTP/2; `opened` is called when queries can be sent. Returns when the connection has ended; an error
/// says why there was none.
pub(super) async fn carry(
    carrier: &Carrier,
    plan: &HttpPlan,
    stream: Secured,
    opened: impl FnOnce(),
) -> Result<(), String> {
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Err("the server does not offer HTTP/2".to_owned());
    }
    let uri = uri(plan)?;
    let mut builder = h2::client::Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADERS_OCTETS_MAX);
    let (sender, connection) =
        builder.handshake::<_, Bytes>(stream).await.map_err(|error| format!("HTTP/2: {error}"))?;
    opened();
    // It reads and writes for all exchanges; when it ends, so does the connection.
    let ended = async { drop(connection.await) };
    exchange::carry(carrier, ended, |query| ask(sender.clone(), uri.clone(), query)).await;
    Ok(())
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
    let kind = kind.and_then(|kind| kind.split(|&octet| octet == b';').next()).unwrap_or_default();
    response.status() == StatusCode::OK && kind.trim_ascii().eq_ignore_ascii_case(MESSAGE.as_bytes())
}

/// Asks one question; `None` if the connection failed under it.
async fn ask(sender: SendRequest<Bytes>, uri: Uri, query: Vec<u8>) -> Option<Said> {
    let request = request(uri, query.len())?;
    // Waits while the server allows no more streams.
    let mut sender = sender.ready().await.ok()?;
    let (response, mut body) = sender.send_request(request, false).ok()?;
    body.send_data(query.into(), true).ok()?;
    let response = response.await.ok()?;
    if !is_message(&response) {
        return Some(Said::Refusal);
    }
    let mut body = response.into_body();
    let mut reply = BytesMut::new();
    while let Some(data) = body.data().await {
        let data = data.ok()?;
        if reply.len() + data.len() > MESSAGE_OCTETS_MAX {
            return Some(Said::Refusal);
        }
        reply.extend_from_slice(&data);
        // The window is larger than any message: nothing to do if that fails.
        let _ = body.flow_control().release_capacity(data.len());
    }
    Some(Said::Message(reply.to_vec()))
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
