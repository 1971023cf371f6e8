//! Requests that are sent again because their response was lost: they are carried out once.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aws_lc_rs::digest::{Context, SHA256};
use hyper::header::HeaderName;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::route::Route;

/// The header with what the client calls the request.
const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// What tokens begin with: they are kept nowhere, so that a lost one is made anew.
const TOKEN_PREFIX: &str = "gnt_";
/// Characters of a key.
const KEY_CHARS_MAX: usize = 128;

/// What was answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Noted {
    /// The SHA-256 of what was asked.
    asked: String,
    status: u16,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    body: String,
}

/// Requests with keys that are being carried out.
#[derive(Debug, Default)]
pub(crate) struct UnderWay(Mutex<HashSet<String>>);

impl UnderWay {
    fn keys(&self) -> MutexGuard<'_, HashSet<String>> {
        // A panic ends the process, so a poisoned lock is never seen.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a digest of parts that cannot be mistaken for others.
fn digest(parts: &[&[u8]]) -> String {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    context.finish().as_ref().iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Has a request carried out, unless it was before: then it is answered as it was.
pub(crate) fn once(
    under_way: &UnderWay,
    route: &Route,
    call: &Call,
    carry_out: impl FnOnce() -> Result<Reply, Problem>,
) -> Result<Reply, Problem> {
    let Some(key) = call.header(&HEADER)? else { return carry_out() };
    if !route.takes_key() {
        return Err(Problem::new(400, "this takes no Idempotency-Key"));
    }
    if key.is_empty() || key.len() > KEY_CHARS_MAX || !key.chars().all(|c| c.is_ascii_graphic()) {
        let why = format!("an Idempotency-Key has 1 to {KEY_CHARS_MAX} visible ASCII characters");
        return Err(Problem::new(400, why));
    }
    let name = digest(&[call.caller.name.as_bytes(), key.as_bytes()]);
    let asked = digest(&[route.method.as_bytes(), call.target.as_bytes(), &call.digested_body()]);
    if !under_way.keys().insert(name.clone()) {
        return Err(Problem::new(409, "a request with this Idempotency-Key is being carried out"));
    }
    let outcome = known_or_new(call, (&name, asked), carry_out);
    under_way.keys().remove(&name);
    outcome
}

fn known_or_new(
    call: &Call,
    (name, asked): (&str, String),
    carry_out: impl FnOnce() -> Result<Reply, Problem>,
) -> Result<Reply, Problem> {
    if let Some(text) = call.operator.noted_answer(name)? {
        let damaged = |_| Problem::new(500, "what was answered before cannot be read");
        let noted: Noted = serde_json::from_str(&text).map_err(damaged)?;
        if noted.asked != asked {
            return Err(Problem::new(422, "another request had this Idempotency-Key before"));
        }
        let reply = Reply::again(noted.status, &noted.kind, noted.body);
        let reply = match noted.tag {
            Some(tag) => reply.with("etag", tag),
            None => reply,
        };
        return Ok(reply.with("idempotent-replayed", "true".to_owned()));
    }
    // What is refused has changed nothing, and may be tried again.
    let reply = carry_out()?;
    if let Some((status, kind, tag, body)) = reply.known().filter(|(.., body)| !body.contains(TOKEN_PREFIX)) {
        let noted = Noted { asked, status, kind, tag, body };
        let text = serde_json::to_string(&noted).unwrap_or_default();
        // It is done, and the client is told so. Not noted, it would be done again if it was asked
        // for again.
        if let Err(error) = call.operator.note_answer(name, &text) {
            tracing::warn!(%error, "a response to a request with an Idempotency-Key cannot be kept");
        }
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_not_mistaken_for_others() {
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
        assert_eq!(digest(&[b"a"]).len(), 64);
    }
}
