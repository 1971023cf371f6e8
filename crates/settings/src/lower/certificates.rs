//! Certificates that the server orders: the tree to settings.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use diagnostic::{At, Problem};
use plan::Secret;
use plan::certificates::{AuthorityPlan, CertificatePlan, ChallengeWord, Identifier, KeyWord};
use plan::listeners::{ClientCertificates, LocalKind, TransportWord};
use values::{Misread, Read};

use super::read::Values as _;
use super::{Lowering, Section};
use crate::groups::{KeySettings, Listener, OrderedCertificate, Startup, Tls};

/// Where certificates are kept, below the directory for state.
const FOLDER: &str = "certificates";
/// Names that one certificate may have: most authorities take no more.
const NAMES_MAX: usize = 100;
/// Octets of a host name (RFC 1035 §2.3.4, without the last dot).
const HOST_OCTETS_MAX: usize = 253;
/// Octets of one label.
const LABEL_OCTETS_MAX: usize = 63;

fn misread(text: &str, message: String, expected: &str) -> Misread {
    Misread { at: 0..text.len(), message, expected: Some(expected.to_owned()), hint: None }
}

/// Reads a name that a certificate is to have.
fn identifier(text: &str) -> Read<Identifier> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(Identifier::Address(address));
    }
    let host = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= LABEL_OCTETS_MAX
            && label.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let rest = host.strip_prefix("*.").unwrap_or(&host);
    if host.len() > HOST_OCTETS_MAX || !rest.contains('.') || !rest.split('.').all(is_label) {
        return Err(misread(
            text,
            format!("\"{text}\" is no name for a certificate"),
            "a host such as dns.example.org, or an IP address",
        ));
    }
    Ok(Identifier::Host(host))
}

/// Reads the URL of a directory.
fn directory(text: &str) -> Read<String> {
    let rest = text.strip_prefix("https://");
    let is_url = rest.is_some_and(|rest| {
        !rest.is_empty() && !rest.starts_with('/') && rest.bytes().all(|octet| octet.is_ascii_graphic())
    });
    // RFC 8555 §6.1: nothing but HTTPS.
    let expected = "such as https://acme-v02.api.letsencrypt.org/directory";
    if is_url {
        Ok(text.to_owned())
    } else {
        Err(misread(text, format!("\"{text}\" is no URL of HTTPS"), expected))
    }
}

/// Reads whom an authority may write to.
fn contact(text: &str) -> Read<String> {
    let is_uri = text.split_once(':').is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && text.bytes().all(|octet| octet.is_ascii_graphic())
    });
    let wrong = || misread(text, format!("\"{text}\" is no URI"), "such as mailto:hostmaster@example.org");
    if is_uri { Ok(text.to_owned()) } else { Err(wrong()) }
}

impl Lowering<'_> {
    /// Reads the certificates that are ordered.
    pub(super) fn certificates(
        &mut self,
        root: &Section<'_>,
        (startup, tls): (&Startup, &Tls),
        keys: &[KeySettings],
    ) -> Vec<OrderedCertificate> {
        let mut certificates = Vec::new();
        for (name, section) in self.named_sections(root, "certificates") {
            let identifiers = self.identifiers(&section);
            let mut authorities = Vec::new();
            for item in self.items(&section, "authorities") {
                authorities.extend(self.authority(&item));
            }
            let challenge = self.word(&section, "challenge", ChallengeWord::parse);
            let key = self.word(&section, "key-type", KeyWord::parse);
            for (missing, what, expected) in [
                (identifiers.is_empty(), "names", "\"names:\" and a list of hosts"),
                (authorities.is_empty(), "authorities", "\"authorities:\" and the URL of a directory"),
            ] {
                if missing && section.entry(what).is_none() {
                    let message = format!("certificate \"{}\" has no {what}", name.value);
                    self.problems.push(Problem::error(name.span, message).expected(expected));
                }
            }
            let update = self.remotes(&section, "update");
            for server in &update {
                self.check_key(keys, server.value.key.as_ref(), server.span);
            }
            if let (Some(entry), true) = (self.said(&section, "update"), challenge != ChallengeWord::Dns) {
                let message = format!("\"update\" is ignored: the challenge is {}", challenge.word());
                self.problems.push(Problem::warning(entry.key_span, message));
            }
            self.check_challenge(&section, (&name, challenge), &identifiers, (startup, tls));
            let file = PathBuf::from(format!("{FOLDER}/{}.pem", name.value));
            let (identifiers, span) = (identifiers.values(), name.span);
            if identifiers.is_empty() || authorities.is_empty() {
                continue;
            }
            let plan = CertificatePlan {
                name: name.value,
                identifiers,
                authorities,
                challenge,
                update: Vec::new(),
                key,
                file,
            };
            certificates.push(OrderedCertificate { plan: Arc::new(plan), update, span });
        }
        self.check_secure(startup, tls, &certificates);
        certificates
    }

    fn identifiers(&mut self, section: &Section<'_>) -> Vec<At<Identifier>> {
        let found = self.texts(section, "names", identifier);
        let mut kept: Vec<At<Identifier>> = Vec::new();
        for at in found {
            if kept.len() == NAMES_MAX {
                let message = format!("a certificate has at most {NAMES_MAX} names");
                self.problems.push(Problem::error(at.span, message));
                break;
            }
            match kept.iter().find(|other| other.value == at.value) {
                Some(first) => {
                    let message = format!("\"{}\" stands here twice", at.value);
                    let problem = Problem::warning(at.span, message);
                    self.problems.push(problem.hint_at("the first time is on ", first.span, ""));
                }
                None => kept.push(at),
            }
        }
        kept
    }

    fn authority(&mut self, item: &Section<'_>) -> Option<AuthorityPlan> {
        let url = self.optional(item, "url", |lowering, _, node| lowering.read(node, "a URL", directory));
        if url.is_none() && item.entry("url").is_none() {
            self.problems.push(Problem::error(item.span, "\"url\" is missing").expected("a URL of HTTPS"));
        }
        let contact = self.texts(item, "contact", contact).values();
        let profile = self.some_text(item, "profile");
        let key_id = self.some_text(item, "eab-key-id");
        let key = self.password(item, "eab-key").and_then(|secret| self.binding_key(item, &secret));
        let roots = self.path(item, "ca").map(|at| self.beside(at.span.file, &at.value));
        for (is_alone, key, other) in [
            (key_id.is_some() && item.entry("eab-key").is_none(), "eab-key-id", "eab-key"),
            (key_id.is_none() && item.entry("eab-key").is_some(), "eab-key", "eab-key-id"),
        ] {
            if let (true, Some(entry)) = (is_alone, item.entry(key)) {
                let message = format!("\"{key}\" without \"{other}\"");
                self.problems.push(Problem::error(entry.key_span, message).expected("both, or neither"));
            }
        }
        Some(AuthorityPlan { url: url?.value, contact, profile, binding: key_id.zip(key), roots })
    }

    /// Reads the key of an account elsewhere, which is never quoted.
    fn binding_key(&mut self, item: &Section<'_>, secret: &Secret) -> Option<Secret> {
        let text = secret.reveal().trim_ascii();
        let text = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
        let mut octets = Vec::new();
        if wire::text::read_base64url(text, &mut octets).is_some() && !octets.is_empty() {
            return Some(Secret::new(octets));
        }
        let span = item.entry("eab-key").map_or(item.span, |entry| entry.node.span);
        self.problems.push(
            Problem::error(span, "the key is not base64url").expected("the text that the authority gave"),
        );
        None
    }

    /// Checks that an authority can see what it looks for.
    fn check_challenge(
        &mut self,
        section: &Section<'_>,
        (name, challenge): (&At<String>, ChallengeWord),
        identifiers: &[At<Identifier>],
        (startup, tls): (&Startup, &Tls),
    ) {
        for At { value, span } in identifiers {
            let is_wildcard = matches!(value, Identifier::Host(host) if host.starts_with("*."));
            // RFC 8555 §7.1.3, RFC 8738 §7.
            let expected = match (challenge, value) {
                (ChallengeWord::Dns, Identifier::Address(_)) => {
                    "\"challenge: http-01\" or \"tls-alpn-01\" for addresses"
                }
                (ChallengeWord::Http | ChallengeWord::TlsAlpn, _) if is_wildcard => {
                    "\"challenge: dns-01\" for wildcards"
                }
                _ => continue,
            };
            let message = format!("no authority gives a certificate for \"{value}\" by {}", challenge.word());
            self.problems.push(Problem::error(*span, message).expected(expected));
        }
        let listeners = || startup.listen.iter().flatten();
        let speaks = |listener: &Listener, word: TransportWord| listener.speaks.contains(&word);
        let needed = match challenge {
            // Which zones there are is known when records are to be put into them.
            ChallengeWord::Dns => None,
            ChallengeWord::Http => {
                let is_there = listeners().any(|listener| speaks(listener, TransportWord::Http))
                    || startup.local_sockets.iter().any(|socket| socket.plan.kind == LocalKind::Http);
                (!is_there).then_some("a listener with \"transport: http\", which port 80 leads to")
            }
            ChallengeWord::TlsAlpn => {
                let is_open =
                    |listener: &Listener| match listener.client_certificates.as_ref().map(|at| at.value) {
                        Some(ClientCertificates::Required) => false,
                        None | Some(ClientCertificates::ByRoots) => tls.client_ca.is_empty(),
                        Some(_) => true,
                    };
                let is_there = listeners().any(|listener| {
                    is_open(listener)
                        && [TransportWord::Tls, TransportWord::Https]
                            .iter()
                            .any(|word| speaks(listener, *word))
                });
                (!is_there).then_some(
                    "a listener with \"transport: https\" or \"tls\" that needs no client certificates, which port 443 leads to",
                )
            }
        };
        if let Some(needed) = needed {
            let span = section.entry("challenge").map_or(name.span, |entry| entry.node.span);
            let message = format!(
                "nothing answers the challenge {} of certificate \"{}\"",
                challenge.word(),
                name.value
            );
            self.problems.push(Problem::error(span, message).expected(needed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_certificates_are_hosts_and_addresses() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(identifier(text).ok().map(|found| found.to_string()).as_deref(), expect, "{text}");
        };
        check("DNS.example.org.", Some("dns.example.org"));
        check("*.example.org", Some("*.example.org"));
        check("2001:DB8::1", Some("2001:db8::1"));
        check("192.0.2.1", Some("192.0.2.1"));
        for wrong in [
            "",
            "example",
            "a..example.org",
            "a.*.example.org",
            "-a.example.org",
            "a b.example.org",
            "*",
            "ä.example.org",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn directories_are_fetched_over_https_alone() {
        assert!(directory("https://ca.example.org/directory").is_ok());
        for wrong in ["http://ca.example.org/directory", "https://", "https:///x", "https://a b"] {
            assert!(directory(wrong).is_err(), "{wrong}");
        }
    }
}
