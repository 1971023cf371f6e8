//! Webhooks: the tree to settings.

use std::path::Path;

use diagnostic::Problem;
use plan::Secret;
use plan::jobs::{EventKind, Webhook, WebhookTarget};
use schema::Value;
use values::{Misread, Read};

use super::read::{Values as _, unreachable_kind};
use super::{Lowering, Section};

/// What a secret begins with.
const SECRET_PREFIX: &[u8] = b"whsec_";
/// Octets of a secret.
const SECRET_OCTETS: std::ops::RangeInclusive<usize> = 24..=64;
/// What a Unix socket begins with.
const UNIX: &str = "unix:";

/// Where events go, as it is written.
enum Written {
    Url(String),
    Path(String),
}

fn target(text: &str) -> Read<Written> {
    let wrong = |message: &str| Misread {
        at: 0..text.len(),
        // The text itself is not quoted: it may hold a secret.
        message: message.to_owned(),
        expected: Some(
            "https://HOST/PATH, http:// and an address of this machine, or unix: and a path".to_owned(),
        ),
        hint: None,
    };
    if let Some(path) = text.strip_prefix(UNIX) {
        let is_path = !path.is_empty() && !path.contains('\0');
        return is_path
            .then(|| Written::Path(path.to_owned()))
            .ok_or_else(|| wrong("this is no path of a socket"));
    }
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let rest = rest.ok_or_else(|| wrong("this is no URL of HTTP"))?;
    let host = rest.split(['/', '?']).next().unwrap_or("");
    let is_plain = !text.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '#' | '"'));
    if host.is_empty() || host.contains('@') || !is_plain {
        return Err(wrong("this is no URL of HTTP"));
    }
    // What is behind the last colon of an address in brackets is no port.
    let (name, _) = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).unwrap_or((host, ""));
    let is_local = matches!(name, "127.0.0.1" | "[::1]" | "localhost");
    if !text.starts_with("https://") && !is_local {
        return Err(wrong("what is sent there could be read along"));
    }
    Ok(Written::Url(text.to_owned()))
}

impl Lowering<'_> {
    /// Reads where events are sent.
    pub(super) fn webhooks(&mut self, root: &Section<'_>) -> Vec<Webhook> {
        let control = self.section(root, "control");
        let sections = self.named_sections(&control, "webhooks");
        sections.into_iter().filter_map(|(name, section)| self.webhook(name.value, &section)).collect()
    }

    fn webhook(&mut self, name: String, section: &Section<'_>) -> Option<Webhook> {
        let at = self.optional(section, "url", |lowering, row, node| {
            lowering.read(node, &row.kind.expected(), target)
        });
        let kinds = self.list(section, "kinds", |_, value, scalar| match value {
            Value::Word(words) => Self::one_word(words, &scalar.text, EventKind::parse),
            other => unreachable_kind(other),
        });
        let secret = self.webhook_secret(section, "secret");
        let previous_secret = self.webhook_secret(section, "previous-secret");
        let ca = self.path(section, "ca").map(|at| self.beside(at.span.file, &at.value));
        let (patience, retry_for) = (self.duration(section, "patience"), self.duration(section, "retry-for"));
        for key in ["url", "secret"] {
            if section.entry(key).is_none() {
                self.problems.push(Problem::error(section.span, format!("\"{key}\" is missing")));
            }
        }
        let at = at?;
        let target = match at.value {
            Written::Url(url) => WebhookTarget::Url(url),
            Written::Path(path) => WebhookTarget::Unix(self.beside(at.span.file, Path::new(&path))),
        };
        let (kinds, secret) = (kinds.values(), secret?);
        Some(Webhook { name, target, kinds, secret, previous_secret, ca, patience, retry_for })
    }

    /// Reads what events are signed with.
    fn webhook_secret(&mut self, section: &Section<'_>, key: &str) -> Option<Secret> {
        let text = self.password(section, key)?;
        let encoded = text.reveal().strip_prefix(SECRET_PREFIX).unwrap_or(text.reveal());
        let secret = wire::text::read_base64(encoded).filter(|octets| SECRET_OCTETS.contains(&octets.len()));
        if secret.is_none() {
            let span = section.entry(key).map_or(section.span, |entry| entry.node.span);
            let expected = "\"whsec_\" and 24 to 64 octets in base64, such as of \"openssl rand -base64 32\"";
            self.problems.push(Problem::error(span, "this is no secret to sign with").expected(expected));
        }
        secret.map(Secret::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_go_where_nobody_reads_along() {
        for text in [
            "https://hooks.example.org/a?b=c",
            "http://127.0.0.1:8080/a",
            "http://[::1]:80/",
            "http://[::1]/",
            "http://[::1]",
            "http://localhost",
        ] {
            assert!(matches!(target(text), Ok(Written::Url(url)) if url == text), "{text}");
        }
        assert!(matches!(target("unix:hook.sock"), Ok(Written::Path(path)) if path == "hook.sock"));
        for text in [
            "hooks.example.org",
            "http://hooks.example.org/",
            "http://127.0.0.1@evil.example/",
            "http://127.0.0.1.evil.example/",
            "https://",
            "https:///a",
            "https://a b",
            "unix:",
            "http://[2001:db8::1]/",
            "ftp://localhost/",
        ] {
            assert!(target(text).is_err(), "{text}");
        }
    }
}
