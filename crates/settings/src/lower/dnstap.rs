//! Who receives messages as dnstap: the tree to settings.

use diagnostic::{At, Problem};
use dnstap::{Kind, Kinds};
use values::{Misread, Read};

use super::notation::{SOCKET_PATH_OCTETS_MAX, path, tls_name};
use super::read::{Values as _, unreachable_kind};
use super::{Lowering, Section};
use crate::groups::{Certificate, DnstapSettings, ReceiverPlace};
use schema::Value;

/// Settings that are for TLS.
const OF_TLS: [&str; 5] = ["tls-name", "roots", "verify", "certificate", "key"];

/// Reads where a receiver is.
fn receiver(text: &str) -> Read<ReceiverPlace> {
    const EXPECTED: &str = "unix:/run/dnstap.sock, tcp://192.0.2.1:6000 or tls://192.0.2.1:6000";
    let wrong = |message: String| Misread::whole(text, message).expected(EXPECTED);
    if let Some(name) = text.strip_prefix("unix:") {
        let place = path(name).map_err(|misread| wrong(misread.message))?;
        if name.len() > SOCKET_PATH_OCTETS_MAX {
            return Err(wrong(format!("\"{name}\" is too long for a socket")));
        }
        return Ok(ReceiverPlace::Unix(place));
    }
    let (make, rest): (fn(_) -> _, _) = match (text.strip_prefix("tcp://"), text.strip_prefix("tls://")) {
        (Some(rest), _) => (ReceiverPlace::Tcp, rest),
        (_, Some(rest)) => (ReceiverPlace::Tls, rest),
        (None, None) => return Err(wrong(format!("\"{text}\" is not where a receiver can be"))),
    };
    let address = values::socket_address(rest, 0).map_err(|misread| wrong(misread.message))?;
    if address.port() == 0 {
        return Err(wrong(format!("\"{rest}\" has no port")));
    }
    Ok(make(address))
}

impl Lowering<'_> {
    pub(super) fn dnstap(&mut self, root: &Section<'_>) -> Option<DnstapSettings> {
        let section = self.section(root, "dnstap");
        let to = self.optional(&section, "to", |lowering, _, node| {
            lowering.read(node, "where a receiver is", receiver)
        });
        let to = to.map(|At { value, span }| match value {
            ReceiverPlace::Unix(path) => {
                At { value: ReceiverPlace::Unix(self.beside(span.file, &path)), span }
            }
            ReceiverPlace::Tcp(_) | ReceiverPlace::Tls(_) => At { value, span },
        });
        let kinds = self.list(&section, "messages", |_, value, scalar| match value {
            Value::Word(words) => Self::one_word(words, &scalar.text, |text| {
                Kind::ALL.into_iter().find(|kind| kind.word() == text)
            }),
            other => unreachable_kind(other),
        });
        let identity_at = section.entry("identity").map_or(section.span, |entry| entry.node.span);
        let identity = self.text_or(&section, "identity");
        let certificate = self.dnstap_certificate(&section);
        let settings = DnstapSettings {
            to: to.clone().unwrap_or(At { value: ReceiverPlace::Unix("".into()), span: section.span }),
            is_bidirectional: self.boolean(&section, "bidirectional"),
            identity: identity.map(|value| At { value, span: identity_at }),
            version: self.text_or(&section, "version"),
            kinds: Kinds::of(kinds.values()),
            one_of: u32::try_from(self.whole(&section, "one-of")).unwrap_or(u32::MAX),
            tls_name: self.optional(&section, "tls-name", |lowering, _, node| {
                lowering.read(node, "a host name or an address", tls_name)
            }),
            roots: self.roots(&section),
            verify: self.boolean(&section, "verify"),
            certificate,
        };
        let ignored: (&[&str], &str) = match to.as_ref().map(|at| &at.value) {
            // A mistake in it was reported.
            None if section.entry("to").is_some() => return None,
            None => (&[], "nothing is sent"),
            Some(ReceiverPlace::Tls(_)) if settings.verify => return Some(settings),
            Some(ReceiverPlace::Tls(_)) => (&["tls-name", "roots"], "the receiver is not verified"),
            Some(ReceiverPlace::Unix(_) | ReceiverPlace::Tcp(_)) => (&OF_TLS, "TLS is not spoken"),
        };
        let (keys, why) = ignored;
        for entry in section.entries.iter() {
            let is_ignored = keys.is_empty() || keys.contains(&entry.key.as_str());
            if is_ignored && self.said(&section, &entry.key).is_some() {
                let message = format!("\"{}\" is ignored: {why}", entry.key);
                self.problems.push(Problem::warning(entry.key_span, message));
            }
        }
        to.map(|_| settings)
    }

    fn dnstap_certificate(&mut self, section: &Section<'_>) -> Option<Certificate> {
        let (chain, key) = (self.path(section, "certificate"), self.path(section, "key"));
        let place =
            |at: At<std::path::PathBuf>| At { value: self.beside(at.span.file, &at.value), span: at.span };
        let (chain, key) = (chain.map(place), key.map(place));
        if let (None, Some(key)) = (&chain, &key) {
            let problem = Problem::error(key.span, "there is no certificate for this key");
            self.problems.push(problem.expected("\"certificate:\" beside it"));
        }
        let chain = chain?;
        Some(Certificate { key: key.unwrap_or_else(|| chain.clone()), chain })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_are_behind_sockets_or_at_addresses() {
        let address = "192.0.2.1:6000".parse().expect("an address");
        for (text, expect) in [
            ("unix:/run/dnstap.sock", Some(ReceiverPlace::Unix("/run/dnstap.sock".into()))),
            ("tcp://192.0.2.1:6000", Some(ReceiverPlace::Tcp(address))),
            ("tls://192.0.2.1@6000", Some(ReceiverPlace::Tls(address))),
            ("tcp://192.0.2.1", None),
            ("tcp://collector.example:6000", None),
            ("unix:", None),
            ("/run/dnstap.sock", None),
            ("udp://192.0.2.1:6000", None),
        ] {
            assert_eq!(receiver(text).ok(), expect, "{text}");
        }
    }
}
