//! HTTP/3 (RFC 9114): the same requests over QUIC.

use std::pin::pin;
use std::rc::Rc;

use h3::server::{RequestResolver, RequestStream};
use hyper::StatusCode;
use hyper::body::{Buf as _, Bytes};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tokio::time::timeout;
use wire::MESSAGE_OCTETS_MAX;

use super::answer::{Visit, respond};
use super::limits::HEAD_OCTETS_MAX;
use super::request::Refusal;
use crate::quic;
use crate::service::Service;
use crate::tcp::{Ending, Shared};

/// RFC 9114 §8.1: H3_NO_ERROR.
const NO_ERROR: quinn::VarInt = quinn::VarInt::from_u32(0x100);

/// RFC 9114 §8.1: H3_EXCESSIVE_LOAD.
const EXCESSIVE_LOAD: quinn::VarInt = quinn::VarInt::from_u32(0x107);

type Stream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

/// Answers the requests of a connection until it ends.
pub(crate) async fn talk_h3<S: Service + 'static>(
    shared: &Shared<S>,
    visit: Visit<S>,
    connection: quinn::Connection,
    key: usize,
) -> Ending {
    let visit = Rc::new(visit);
    let handle = Rc::clone(visit.handle());
    let mut builder = h3::server::builder();
    builder.max_field_section_size(HEAD_OCTETS_MAX as u64);
    let built = builder.build::<_, Bytes>(h3_quinn::Connection::new(connection.clone()));
    let mut requests = match handle.unless_evicted(built).await {
        Ok(Ok(requests)) => requests,
        Ok(Err(_)) => return Ending::Malformed,
        Err(ending) => return ending,
    };
    // Dropping it ends the answers.
    let mut streams = JoinSet::new();
    let plan = *shared.plan();
    let large = Rc::new(Semaphore::new(quic::LARGE_QUERIES_MAX));
    let account = handle.account();
    let mut stalled = pin!(account.stalled(plan.write_timeout));
    loop {
        let has_room = account.has_room();
        let is_old = handle.is_old(&plan);
        let is_stopping = is_old || handle.is_stopping();
        if is_stopping && streams.is_empty() {
            connection.close(NO_ERROR, b"");
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
            () = handle.changed() => {
                if handle.is_evicted() {
                    connection.close(NO_ERROR, b"");
                    return handle.eviction();
                }
            }
            () = &mut stalled => {
                connection.close(EXCESSIVE_LOAD, b"");
                return Ending::SlowReader;
            }
            () = account.room(), if !has_room && !is_stopping => {}
            () = handle.grows_old(&plan), if !is_stopping => {}
            error = connection.closed() => return quic::ending(&error),
            request = requests.accept(), if has_room && !is_stopping => match request {
                Ok(Some(request)) => {
                    streams.spawn_local(answer(Rc::clone(&visit), request, Rc::clone(&large)));
                }
                Ok(None) => return Ending::Client,
                Err(_) => return Ending::Malformed,
            },
        }
    }
}

/// Answers one request.
async fn answer<S: Service + 'static>(
    visit: Rc<Visit<S>>,
    request: RequestResolver<h3_quinn::Connection, Bytes>,
    large: Rc<Semaphore>,
) {
    let _working = visit.handle().working();
    let plan = *visit.plan();
    let head = timeout(plan.query_timeout, request.resolve_request()).await;
    // It took too long, or is no request: h3 has told the client.
    let Ok(Ok((head, mut stream))) = head else { return };
    let (head, ()) = head.into_parts();
    let account = visit.handle().account();
    // Whoever holds as much as it may waits, here or when the body is there.
    account.room().await;
    let body = async {
        // Dropped with the body.
        let mut permit = None;
        let read = read_body(&mut stream, &large, &mut permit).await;
        account.room().await;
        read
    };
    let response = respond(&visit, &head, body).await;
    let (head, body) = response.into_parts();
    let write = async {
        stream.send_response(hyper::Response::from_parts(head, ())).await?;
        if let Some(body) = body.0 {
            for piece in account.in_pieces(body) {
                stream.send_data(piece).await?;
            }
        }
        stream.finish().await
    };
    // The client may have gone. One that takes nothing is ended with all its streams: what is given
    // up here would look taken.
    drop(write.await);
}

/// Reads a body that is one message.
///
/// Long ones need a permit, as over DNS over QUIC.
async fn read_body<'t>(
    stream: &mut Stream,
    large: &'t Semaphore,
    permit: &mut Option<SemaphorePermit<'t>>,
) -> Result<Vec<u8>, Refusal> {
    let mut octets = Vec::new();
    loop {
        let broken = Refusal { status: StatusCode::BAD_REQUEST, text: "the body is broken\n" };
        let Some(mut data) = stream.recv_data().await.map_err(|_| broken)? else { return Ok(octets) };
        if octets.len() + data.remaining() > MESSAGE_OCTETS_MAX {
            let text = "larger than a message can be\n";
            return Err(Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, text });
        }
        if permit.is_none() && octets.len() + data.remaining() > quic::SMALL_OCTETS_MAX {
            *permit = large.acquire().await.ok();
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            octets.extend_from_slice(chunk);
            let taken = chunk.len();
            data.advance(taken);
        }
    }
}
