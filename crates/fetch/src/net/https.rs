//! DNS over HTTP/2 (RFC 8484): each query is a POST on a stream of its own.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::client::SendRequest;
use http::{Method, Request, StatusCode, Uri, Version, header};
use tokio::task::JoinSet;
use wire::{Flags, Header, Rcode};

use super::link::{Carrier, Secured};
use crate::plan::HttpPlan;

/// The media type of a message.
const MESSAGE: &str = "application/dns-message";
/// Time for one exchange; whoever waited has long given up by then.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Octets of the largest message.
const MESSAGE_OCTETS_MAX: usize = 65_535;
/// Octets that the server may send ahead on one stream, and on all of them.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Octets of the header fields of one response.
const HEADERS_OCTETS_MAX: u32 = 16 << 10;

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
    let uri: Uri = format!("https://{}{}", plan.authority, plan.path)
        .parse()
        .map_err(|error| format!("\"{}{}\" is not a URL: {error}", plan.authority, plan.path))?;
    let mut builder = h2::client::Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADERS_OCTETS_MAX);
    let (sender, connection) =
        builder.handshake::<_, Bytes>(stream).await.map_err(|error| format!("HTTP/2: {error}"))?;
    opened();
    let mut exchanges = JoinSet::new();
    tokio::pin!(connection);
    loop {
        tokio::select! {
            // It reads and writes for everybody; when it ends, so does the connection.
            _ = &mut connection => return Ok(()),
            queued = carrier.outbox.take() => begin(&mut exchanges, &sender, &uri, &queued),
            Some(first) = exchanges.join_next(), if !exchanges.is_empty() => {
                let mut replies = Vec::new();
                let mut next = Some(first);
                // Ends: as many as there are exchanges.
                while let Some(ended) = next {
                    if let Ok(Some(reply)) = ended {
                        replies.extend_from_slice(&(reply.len() as u16).to_be_bytes());
                        replies.extend_from_slice(&reply);
                    }
                    next = exchanges.try_join_next();
                }
                let Some(desk) = carrier.desk() else { return Ok(()) };
                desk.messages(carrier.key, &replies);
            }
        }
    }
}

/// Begins an exchange for each of the queries in `queued`.
fn begin(exchanges: &mut JoinSet<Option<Vec<u8>>>, sender: &SendRequest<Bytes>, uri: &Uri, queued: &[u8]) {
    for query in messages(queued) {
        let (sender, uri, query) = (sender.clone(), uri.clone(), query.to_vec());
        exchanges.spawn_local(async move {
            tokio::time::timeout(EXCHANGE_TIMEOUT, exchange(sender, uri, query)).await.ok().flatten()
        });
    }
}

/// Walks messages that stand one after the other, each after its length.
pub(super) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (&length, after) = bytes.split_first_chunk::<2>()?;
        let (message, after) = after.split_at_checked(usize::from(u16::from_be_bytes(length)))?;
        bytes = after;
        Some(message)
    })
}

/// Asks one question; `None` if the connection failed under it.
async fn exchange(sender: SendRequest<Bytes>, uri: Uri, mut query: Vec<u8>) -> Option<Vec<u8>> {
    let id = *query.first_chunk::<2>()?;
    // RFC 8484 §4.1: an ID of zero lets caches on the way recognise equal queries; the stream says whose reply it is.
    query.first_chunk_mut::<2>()?.fill(0);
    let request = Request::builder()
        .method(Method::POST)
        .version(Version::HTTP_2)
        .uri(uri)
        .header(header::ACCEPT, MESSAGE)
        .header(header::CONTENT_TYPE, MESSAGE)
        .header(header::CONTENT_LENGTH, query.len())
        .body(())
        .ok()?;
    // Waits while the server allows no more streams.
    let mut sender = sender.ready().await.ok()?;
    let (response, mut body) = sender.send_request(request, false).ok()?;
    body.send_data(query.into(), true).ok()?;
    let response = response.await.ok()?;
    let is_message = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| {
        kind.as_bytes().split(|&octet| octet == b';').next().is_some_and(|kind| kind == MESSAGE.as_bytes())
    });
    if response.status() != StatusCode::OK || !is_message {
        return Some(refusal(id));
    }
    let mut body = response.into_body();
    let mut reply = BytesMut::new();
    while let Some(data) = body.data().await {
        let data = data.ok()?;
        if reply.len() + data.len() > MESSAGE_OCTETS_MAX {
            return Some(refusal(id));
        }
        reply.extend_from_slice(&data);
        // The window is larger than any message: nothing to do if that fails.
        let _ = body.flow_control().release_capacity(data.len());
    }
    *reply.first_chunk_mut::<2>()? = id;
    Some(reply.to_vec())
}

/// Returns a reply that says that the server failed: what HTTP says in its own way.
pub(super) fn refusal(id: [u8; 2]) -> Vec<u8> {
    let flags = Flags::QR.with_rcode(Rcode::SERVFAIL);
    Header { id: u16::from_be_bytes(id), flags, ..Header::default() }.to_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queued_messages_are_told_apart() {
        assert_eq!(messages(b"\0\x02ab\0\x01c").collect::<Vec<_>>(), [b"ab".as_slice(), b"c"]);
        assert_eq!(messages(b"\0\x02a").count(), 0);
        assert_eq!(messages(b"").count(), 0);
    }

    #[test]
    fn a_refusal_is_an_error_without_a_question() {
        let bytes = refusal([1, 2]);
        let header = Header::parse(&bytes).expect("a header");
        assert_eq!((header.id, header.flags.rcode(), header.questions), (258, Rcode::SERVFAIL, 0));
        assert!(header.flags.has(Flags::QR));
    }
}
