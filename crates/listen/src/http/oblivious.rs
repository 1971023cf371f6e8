//! Responses of an oblivious target and of an oblivious relay (RFC 9230 §4.3).

use engine::Delivery;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use odoh::{ResponseContext, Wrong};

use super::answer::{FAULT, Once, Visit};
use super::request::Refusal;
use crate::oblivious::ObliviousKeys;
use crate::service::Service;

/// Says why an oblivious query cannot be read (RFC 9230 §4.3).
pub(super) fn unopened(wrong: Wrong) -> Refusal {
    match wrong {
        Wrong::Key => Refusal { status: StatusCode::UNAUTHORIZED, text: "this is for another key\n" },
        _ => Refusal { status: StatusCode::BAD_REQUEST, text: "this is no oblivious DNS message\n" },
    }
}

/// Returns the response with a reply that only the client can read; nobody on the way may keep it
/// (RFC 9230 §4.3).
pub(super) fn sealed<S: Service + 'static>(
    visit: &Visit<S>,
    context: &ResponseContext,
    reply: &[u8],
) -> Result<Response<Once>, Refusal> {
    let body = context.seal(reply).map_err(|_| FAULT)?;
    let mut response = Response::new(Once(Some(visit.keep(&body))));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(odoh::MEDIA_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    Ok(response)
}

/// Messages are not carried to this target, or not for this client.
pub(super) const NOT_CARRIED: Refusal =
    Refusal { status: StatusCode::FORBIDDEN, text: "nothing is carried to this target\n" };

/// Passes on what a target said (RFC 9230 §4.3), or says that it could not be reached (RFC 9209).
pub(super) fn relayed<S: Service + 'static>(visit: &Visit<S>, delivery: Option<Delivery>) -> Response<Once> {
    let (status, told, sealed) = match delivery {
        Some(Delivery { status, sealed }) if status == 200 && !sealed.is_empty() => (status, None, sealed),
        // An answer in the clear would be from somebody else.
        Some(Delivery { status: 200, .. }) => {
            (502, Some("gannet; error=http_protocol_error".to_owned()), Vec::new())
        }
        Some(Delivery { status, sealed }) => {
            (status, Some(format!("gannet; received-status={status}")), sealed)
        }
        None => (502, Some("gannet; error=destination_unavailable".to_owned()), Vec::new()),
    };
    let is_sealed = !sealed.is_empty();
    let mut response = Response::new(Once(is_sealed.then(|| visit.keep(&sealed))));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let headers = response.headers_mut();
    if is_sealed {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(odoh::MEDIA_TYPE));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    if let Some(told) = told.and_then(|told| HeaderValue::try_from(told).ok()) {
        headers.insert("proxy-status", told);
    }
    response
}

/// Returns the target's key configurations, as clients fetch them (RFC 9230 §5).
pub(super) fn configs(target: &ObliviousKeys, now_ms: u64) -> Result<Response<Once>, Refusal> {
    let body = target.configs(now_ms).map_err(|_| FAULT)?;
    let mut response = Response::new(Once(Some(Bytes::from(body))));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if let Ok(value) = HeaderValue::try_from(format!("max-age={}", target.fresh_seconds(now_ms))) {
        headers.insert(CACHE_CONTROL, value);
    }
    Ok(response)
}
