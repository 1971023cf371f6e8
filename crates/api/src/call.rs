//! One request of HTTP, taken apart.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hyper::header::{HeaderMap, HeaderName};
use server::{Caller, Draft, Operator};

use crate::problem::Problem;

/// A request that belongs to a row of the table.
pub(crate) struct Call {
    pub(crate) operator: Arc<Operator>,
    /// The path of the URL.
    pub(crate) path: String,
    /// The path with the query, as it came.
    pub(crate) target: String,
    /// The parts of the path that the client chose, in their order.
    pub(crate) parts: Vec<String>,
    /// The query of the URL.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// A body that went to a file as it came.
    pub(crate) upload: Mutex<Option<Draft>>,
    /// Who asks.
    pub(crate) caller: Caller,
    /// What the thing that is read was known by before it was read: one that changes meanwhile is
    /// known by something else, and a change that is made for this is refused.
    pub(crate) tag: OnceLock<String>,
}

impl Call {
    /// Returns a part of the path.
    pub(crate) fn part(&self, at: usize) -> String {
        self.parts.get(at).cloned().unwrap_or_default()
    }

    /// Returns what stands for the body where requests are compared.
    pub(crate) fn digested_body(&self) -> Vec<u8> {
        let upload = self.upload.lock().unwrap_or_else(PoisonError::into_inner);
        match &*upload {
            Some(draft) => draft.hash().to_string().into_bytes(),
            None => self.body.clone(),
        }
    }

    /// Takes the body that went to a file, once.
    pub(crate) fn take_upload(&self) -> Option<Draft> {
        self.upload.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns what the query says of `name`.
    pub(crate) fn asked(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether the query has a word: `?dry-run`, or `?dry-run=true`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.asked(name) {
            None | Some("false") => Ok(false),
            Some("" | "true") => Ok(true),
            Some(other) => {
                Err(Problem::new(400, format!("{name}={other}: expected true, false or nothing behind it")))
            }
        }
    }

    /// Returns a number of the query.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.asked(name) else { return Ok(None) };
        let wrong = |_| Problem::new(400, format!("{name}={text}: expected a whole number"));
        text.parse().map(Some).map_err(wrong)
    }

    /// Returns a header as text.
    pub(crate) fn header(&self, name: &HeaderName) -> Result<Option<&str>, Problem> {
        let mut all = self.headers.get_all(name).iter();
        let Some(first) = all.next() else { return Ok(None) };
        if all.next().is_some() {
            return Err(Problem::new(400, format!("the header {name} stands there twice")));
        }
        first.to_str().map(Some).map_err(|_| Problem::new(400, format!("the header {name} is no text")))
    }
}

/// Splits a path into its parts, each without percent-encoding. A part may have a slash in it: it
/// is a name, and nowhere a file.
pub(crate) fn path_parts(path: &str) -> Result<Vec<String>, Problem> {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split('/').map(|part| decoded(part, false)).collect()
}

/// Splits the query of a URL.
pub(crate) fn query_parts(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let mut parts: Vec<(String, String)> = Vec::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let (key, value) = (decoded(key, true)?, decoded(value, true)?);
        if parts.iter().any(|(known, _)| *known == key) {
            return Err(Problem::new(400, format!("\"{key}\" stands in the query twice")));
        }
        parts.push((key, value));
    }
    Ok(parts)
}

/// Takes percent-encoding away.
fn decoded(text: &str, is_query: bool) -> Result<String, Problem> {
    let wrong = || Problem::new(400, "the URL is not percent-encoded as it should be (RFC 3986)");
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'%' => {
                let digit = |octet: Option<u8>| char::from(octet?).to_digit(16);
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                let (Some(high), Some(low)) = (high, low) else { return Err(wrong()) };
                (high * 16 + low) as u8
            }
            b'+' if is_query => b' ',
            other => other,
        });
    }
    let text = String::from_utf8(octets).map_err(|_| wrong())?;
    match text.contains(|c: char| c.is_control()) {
        true => Err(wrong()),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_is_a_name_and_never_leads_elsewhere() {
        let parts = |path: &str| path_parts(path).map_err(|problem| problem.status());
        assert_eq!(parts("/api/v1/status"), Ok(vec!["api".into(), "v1".into(), "status".into()]));
        assert_eq!(
            parts("/zones/0%2f26.2.0.192.in-addr.arpa"),
            Ok(vec!["zones".into(), "0/26.2.0.192.in-addr.arpa".into()])
        );
        assert_eq!(parts("/..%2f.."), Ok(vec!["../..".into()]));
        for wrong in ["/%", "/%2", "/%zz", "/%00", "/%0a", "/%ff"] {
            assert_eq!(parts(wrong), Err(400), "{wrong}");
        }
    }

    #[test]
    fn a_query_says_a_thing_once() {
        let parts = |query: &str| query_parts(query).map_err(|problem| problem.status());
        assert_eq!(parts("a=b+c&d"), Ok(vec![("a".into(), "b c".into()), ("d".into(), String::new())]));
        assert_eq!(parts("a=1&%61=2"), Err(400));
    }
}
