//! What a client may cost over HTTP: heads, streams, bodies, mistakes.

use std::time::Duration;

use http2::Limits;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use plan::listeners::TcpPlan;
use wire::MESSAGE_OCTETS_MAX;

/// Octets of the head of a request.
pub(super) const HEAD_OCTETS_MAX: usize = 16 << 10;
/// Fields in the head of a request.
pub(super) const HEAD_FIELDS_MAX: usize = 64;
/// How long a connection that is told to end may take to do so.
pub(super) const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// Streams of a connection that may be open at once.
const STREAMS_MAX: u32 = 128;
/// Streams that a client may reset before they are answered (CVE-2023-44487); one more ends the
/// connection.
const RESETS_MAX: u32 = 32;
/// Streams with mistakes in them that we reset before the connection ends.
const MISTAKES_MAX: u32 = 64;
/// Octets of a body that is too large, which are read and thrown away before the client is cut off.
const DISCARDED_OCTETS_MAX: usize = 1 << 20;
/// Octets of bodies that a connection may hold: four of the largest messages.
const WINDOW_OCTETS: u32 = 256 << 10;
/// Frames without a request among them: more than bodies in small pieces take, far fewer than a
/// flood.
const IDLE_FRAMES_MAX: u32 = 4096;

/// How HTTP/1.1 is spoken.
pub(crate) type Builder = http1::Builder;

/// Returns how HTTP/1.1 is spoken within the limits of `plan`.
pub(crate) fn limits_h1(plan: &TcpPlan) -> Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // Our own clock for quiet connections rings before; this one is for when it does not.
        .header_read_timeout(plan.idle_timeout + plan.query_timeout)
        .max_headers(HEAD_FIELDS_MAX)
        .max_buf_size(HEAD_OCTETS_MAX);
    builder
}

/// Returns what a connection of HTTP/2 may cost.
pub(super) fn limits_h2(plan: &TcpPlan) -> Limits {
    Limits {
        streams_max: STREAMS_MAX.min(plan.waiting_max).max(1),
        head_octets_max: HEAD_OCTETS_MAX,
        fields_max: HEAD_FIELDS_MAX,
        body_octets_max: MESSAGE_OCTETS_MAX,
        discarded_octets_max: DISCARDED_OCTETS_MAX,
        window_octets: WINDOW_OCTETS,
        resets_max: RESETS_MAX,
        mistakes_max: MISTAKES_MAX,
        idle_frames_max: IDLE_FRAMES_MAX,
    }
}
