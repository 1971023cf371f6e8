//! DNS over HTTP/3 (RFC 8484 on RFC 9114): each query is a POST on a stream of its own.

use bytes::{Buf as _, BufMut as _, Bytes};
use h3::client::SendRequest;
use h3_quinn::OpenStreams;
use http::Uri;
use identity::tls;
use plan::upstreams::HttpPlan;
use wire::MESSAGE_OCTETS_MAX;

use super::carrier::Carrier;
use super::exchange::{self, Outcome};
use super::https::{HEADERS_OCTETS_MAX, is_message, request, uri};
use super::quic;
use crate::network::Remote;

/// Streams that the server opens: one for control, two for QPACK (RFC 9114 §6.2), and a few that we
/// may ignore.
const SERVER_STREAMS_MAX: u32 = 8;

/// Connects; `opened` is called when queries can be sent. Returns when the connection has ended; an
/// error says why there was none.
pub(super) async fn carry(
    carrier: &Carrier,
    remote: &Remote,
    (client, plan): (&tls::Client, &HttpPlan),
    opened: impl FnOnce(),
) -> Result<(), String> {
    let uri = uri(plan)?;
    let endpoint = quic::endpoint(remote).await?;
    let connection = quic::connect(&endpoint, remote, client, SERVER_STREAMS_MAX).await?;
    let (mut driver, sender) = h3::client::builder()
        .send_grease(false)
        .max_field_section_size(u64::from(HEADERS_OCTETS_MAX))
        .build::<_, _, Bytes>(h3_quinn::Connection::new(connection))
        .await
        .map_err(|error| format!("HTTP/3: {error}"))?;
    opened();
    let ended = async { drop(driver.wait_idle().await) };
    exchange::carry(carrier, ended, |query| ask(sender.clone(), uri.clone(), query)).await;
    Ok(())
}

/// Asks one question; `None` if the connection failed under it.
async fn ask(mut sender: SendRequest<OpenStreams, Bytes>, uri: Uri, query: Vec<u8>) -> Option<Outcome> {
    let request = request(uri, query.len())?;
    // Waits while the server allows no more streams.
    let mut stream = sender.send_request(request).await.ok()?;
    stream.send_data(query.into()).await.ok()?;
    stream.finish().await.ok()?;
    let response = stream.recv_response().await.ok()?;
    if !is_message(&response) {
        return Some(Outcome::Refusal);
    }
    let mut reply = Vec::new();
    while let Some(data) = stream.recv_data().await.ok()? {
        if reply.len() + data.remaining() > MESSAGE_OCTETS_MAX {
            return Some(Outcome::Refusal);
        }
        reply.put(data);
    }
    Some(Outcome::Message(reply))
}
