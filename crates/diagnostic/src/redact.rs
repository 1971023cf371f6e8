//! How a text looks without the secrets in it.
//!
//! A mistake in a file may hide from its reader where a secret begins. So lines are covered by what
//! stands in them, too: behind a key whose values are secrets, and in the addresses of web servers
//! and tokens.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::source::{FileId, Span};

/// What stands in place of a secret where settings are shown.
pub const HIDDEN: &str = "(not shown)";
/// The prefix of a secret that is in a file: only its path is shown.
pub const FILE: &str = "file:";
/// Octets from which on a secret is looked for in messages; shorter ones would be found in ordinary
/// words.
const SOUGHT_OCTETS_MIN: usize = 6;

/// A secret that stands in a file.
#[derive(Clone)]
pub struct Secret {
    place: Span,
    text: Box<str>,
}

impl Secret {
    /// Returns the secret `text`, which stands at `place`.
    pub fn new(place: Span, text: &str) -> Self {
        Self { place, text: text.into() }
    }
}

/// Shows where the secret stands, never what it is.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("place", &self.place).finish_non_exhaustive()
    }
}

/// What is known of the secrets in some files.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Keys whose values are secrets, in whichever file.
    pub(crate) keys: Arc<[&'static str]>,
    /// Secrets that were found.
    pub(crate) secrets: Arc<[Secret]>,
}

/// Returns where in a text something stands behind the key of a secret without a colon:
/// `secret abc`, `password=abc`.
pub fn after_keys(text: &str, keys: &[&str]) -> impl Iterator<Item = Range<usize>> {
    keys.iter().flat_map(move |&key| {
        text.match_indices(key).filter_map(move |(found, _)| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if text[..found].chars().next_back().is_some_and(is_part) {
                return None;
            }
            let rest = text[found + key.len()..].strip_prefix([' ', '='])?.trim_start_matches([' ', '=']);
            let start = text.len() - rest.len();
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']'));
            let word = &rest[..end.unwrap_or(rest.len())];
            let is_value = !word.is_empty() && !word.starts_with([':', '#']) && !word.starts_with(FILE);
            is_value.then(|| start..start + word.len())
        })
    })
}

/// Returns a line of a file without the secrets in it, as long as it is; `before` is the file up to
/// it.
pub(crate) fn line(before: &str, text: &str, known: &Known, file: FileId) -> String {
    let at = before.len();
    let mut covered = vec![false; text.len()];
    for secret in known.secrets.iter().filter(|secret| secret.place.file == file) {
        let start = (secret.place.start as usize).saturating_sub(at).min(text.len());
        let end = (secret.place.end as usize).saturating_sub(at).min(text.len());
        covered.get_mut(start..end).into_iter().flatten().for_each(|octet| *octet = true);
    }
    // A mistake may have cost the tree what stands behind it: there the keys tell, those of the
    // lines above too.
    if is_below_secret(before, text, &known.keys) {
        covered.fill(true);
    }
    for key in known.keys.iter() {
        cover_values(text, key, &mut covered);
    }
    cover_parts(text, &mut covered);
    for at in after_keys(text, &known.keys) {
        covered.get_mut(at).into_iter().flatten().for_each(|octet| *octet = true);
    }
    text.char_indices().map(|(at, c)| if covered.get(at) == Some(&true) { '*' } else { c }).collect()
}

/// Returns whether a line belongs to the value of a secret whose key stands on a line above it.
fn is_below_secret(before: &str, text: &str, secret_keys: &[&str]) -> bool {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let mut indent = indentation(text);
    // A list may stand as far left as its key.
    let mut may_be_equal = text.trim_start().starts_with('-');
    // Wrongly indented, it is still most likely meant for the key that has no value yet.
    let last = before.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if secret_keys.iter().any(|key| keys(last, key).any(|(_, value)| value.is_empty())) {
        return true;
    }
    for line in before.lines().rev().filter(|line| !line.trim().is_empty()) {
        let (own, content) = (indentation(line), line.trim_start());
        let is_above = own < indent || (may_be_equal && own == indent && !content.starts_with('-'));
        if !is_above {
            continue;
        }
        if secret_keys.iter().any(|key| keys(content, key).next().is_some()) {
            return true;
        }
        (indent, may_be_equal) = (own, content.starts_with('-'));
    }
    false
}

/// Returns where `key:` stands in a line, and what follows it.
fn keys<'t>(text: &'t str, key: &str) -> impl Iterator<Item = (usize, &'t str)> {
    let len = key.len();
    text.match_indices(key).filter_map(move |(found, _)| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if text[..found].chars().next_back().is_some_and(is_part) {
            return None;
        }
        let rest = text[found + len..].trim_start_matches(['"', '\'']).trim_start();
        Some((found, rest.strip_prefix(':')?.trim_start()))
    })
}

/// Covers what stands behind `key:`.
fn cover_values(text: &str, key: &str, covered: &mut [bool]) {
    for (found, value) in keys(text, key) {
        let start = text.len() - value.len();
        let is_flow = text[..found].contains(['{', '[']);
        let len = match value.chars().next() {
            _ if value.trim_start_matches(['"', '\'']).starts_with(FILE) => 0,
            Some(quote @ ('"' | '\'')) => value[1..].find(quote).map_or(value.len(), |len| len + 2),
            Some('[' | '{') => value.len(),
            _ if is_flow => value.find([',', '}', ']']).unwrap_or(value.len()),
            _ => value.find(" #").unwrap_or(value.len()),
        };
        covered.get_mut(start..start + len).into_iter().flatten().for_each(|octet| *octet = true);
    }
}

/// Returns whether a text ends in a scheme whose addresses may have a password.
fn has_login(text: &str) -> bool {
    ["http", "https", "socks5"].iter().any(|scheme| text.ends_with(scheme))
}

/// What secrets in the query of a URL are called; other names end with one of these behind `_` or
/// `-`, such as `access_token`.
const QUERY_KEYS: [&str; 10] =
    ["token", "key", "apikey", "secret", "password", "passwd", "pass", "auth", "signature", "sig"];

/// Returns whether a parameter of a URL is called as secrets are.
fn is_secret_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    QUERY_KEYS.iter().any(|key| {
        name.strip_suffix(key).is_some_and(|before| before.is_empty() || before.ends_with(['_', '-']))
    })
}

/// Covers the secrets in addresses: the PIN in the URI of a token (RFC 7512), the password before
/// the host of a URL, and tokens in its query.
fn cover_parts(text: &str, covered: &mut [bool]) {
    const PIN: &str = "pin-value=";
    let mut cover = |start: usize, len: usize| {
        covered.get_mut(start..start + len).into_iter().flatten().for_each(|octet| *octet = true);
    };
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ']' | '}');
    for (found, _) in text.match_indices(PIN) {
        let start = found + PIN.len();
        let rest = &text[start..];
        cover(start, rest.find(|c: char| is_end(c) || matches!(c, '&' | ';' | '?')).unwrap_or(rest.len()));
    }
    for (found, _) in text.match_indices("://") {
        let start = found + 3;
        let rest = &text[start..];
        let url =
            &rest[..rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).unwrap_or(rest.len())];
        if let Some(query) = url.find('?') {
            let mut at = query + 1;
            for parameter in url[at..].split('&') {
                if let Some((name, value)) =
                    parameter.split_once('=').filter(|(name, _)| is_secret_parameter(name))
                {
                    // What is filled in when it is used is no secret, and a list of the file goes
                    // on behind it.
                    let end = value.find([',', ']', '}', '{', '#']).unwrap_or(value.len());
                    cover(start + at + name.len() + 1, end);
                }
                at += parameter.len() + 1;
            }
        }
        let authority =
            &rest[..rest.find(|c: char| is_end(c) || matches!(c, '/' | '?' | '#')).unwrap_or(rest.len())];
        match authority.rsplit_once('@') {
            Some((user, _)) => {
                if let Some((name, password)) = user.split_once(':') {
                    cover(start + name.len() + 1, password.len());
                }
            }
            // The file ends here, or a mistake does: what is no port may be the beginning of a
            // password.
            None if !has_login(&text[..found]) => {}
            None => {
                if let Some((name, port)) = authority.split_once(':')
                    && !authority.starts_with('[')
                    && !port.bytes().all(|octet| octet.is_ascii_digit())
                {
                    cover(start + name.len() + 1, port.len());
                }
            }
        }
    }
}

/// Returns a text as it may be shown, such as the URL of a list in the log: without passwords,
/// tokens and PINs in addresses.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    sentence(text, &[])
}

/// Returns a sentence without the secrets in it.
pub(crate) fn sentence<'t>(text: &'t str, secrets: &[Secret]) -> Cow<'t, str> {
    let mut shown = Cow::Borrowed(text);
    for secret in secrets.iter().filter(|secret| secret.text.len() >= SOUGHT_OCTETS_MIN) {
        if shown.contains(&*secret.text) {
            shown = Cow::Owned(shown.replace(&*secret.text, HIDDEN));
        }
    }
    let mut covered = vec![false; shown.len()];
    cover_parts(&shown, &mut covered);
    if covered.contains(&true) {
        shown = Cow::Owned(
            shown
                .char_indices()
                .map(|(at, c)| if covered.get(at) == Some(&true) { '*' } else { c })
                .collect(),
        );
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_long_without_its_secrets() {
        let file = FileId(0);
        let keys = ["secret", "other-secret", "password", "environment"];
        let known = Known { keys: Arc::new(keys), secrets: Arc::new([]) };
        for (text, shown) in [
            ("secret: abc # why", "secret: *** # why"),
            ("  {secret: abc, name: k}", "  {secret: ***, name: k}"),
            ("password: 'a b', user: u", "password: *****, user: u"),
            ("secret: file:/etc/key", "secret: file:/etc/key"),
            ("other-secret: x", "other-secret: *"),
            ("token: pkcs11:a?pin-value=1234&b", "token: pkcs11:a?pin-value=****&b"),
            ("url: https://u:pw@h/", "url: https://u:**@h/"),
            ("url: \"https://u:pw", "url: \"https://u:**"),
            ("url: https://h:8080/", "url: https://h:8080/"),
            ("url: https://[2001:db8::1]:8080/", "url: https://[2001:db8::1]:8080/"),
            ("secret: \"file:/etc/key\"", "secret: \"file:/etc/key\""),
            ("no-secrets: x", "no-secrets: x"),
            ("url: ftp://u:pw@h/", "url: ftp://u:**@h/"),
            ("url: tls://dns.example:853", "url: tls://dns.example:853"),
            (
                "url: \"https://h/l?a=b&token=abc&access_key=de\"",
                "url: \"https://h/l?a=b&token=***&access_key=**\"",
            ),
            ("url: https://h/l?monkey=abc&name={name}", "url: https://h/l?monkey=abc&name={name}"),
            ("list: [https://h/l?sig=abc, x]", "list: [https://h/l?sig=***, x]"),
            ("- {name: k, secret abc}", "- {name: k, secret ***}"),
            ("password=abc # why", "password=*** # why"),
        ] {
            assert_eq!(line("", text, &known, file), shown);
        }
        for (before, text, shown) in [
            ("environment:\n", "  - A=b", "*******"),
            ("environment:\n", "- A=b", "*****"),
            ("environment:\n  - A=b\n\n", "  - C=d", "*******"),
            ("environment:\n  - A=b\n", "other: e", "other: e"),
            ("  environment:\n", "other: e", "********"),
            ("effects:\n  s:\n    type: script\n", "    - A=b", "    - A=b"),
        ] {
            assert_eq!(line(before, text, &known, file), shown, "{before}");
        }
    }
}
