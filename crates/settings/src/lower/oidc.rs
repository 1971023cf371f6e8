//! Providers of OpenID Connect: the tree to settings.

use std::path::PathBuf;

use diagnostic::{At, Problem, io_text};
use schema::{Kind, RoleWord, Row, Value};
use values::{Misread, Read};
use yaml::Node;

use super::read::{Values as _, unreachable_kind};
use super::{Lowering, Section};
use crate::groups::OidcSettings;

/// The scope without which it is not OpenID Connect.
const OPENID: &str = "openid";

fn misread<T>(text: &str, message: &str, expected: &str) -> Read<T> {
    Err(Misread {
        at: 0..text.len(),
        message: message.to_owned(),
        expected: Some(expected.to_owned()),
        hint: None,
    })
}

/// Reads the URL of a server, without a slash at its end if `is_base`.
fn url(text: &str, is_base: bool) -> Read<String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split('/').next().unwrap_or(""));
    let is_plain =
        !text.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#' | '"'));
    match host {
        Some(host) if !host.is_empty() && !host.contains('@') && is_plain => {}
        _ => return misread(text, "this is no URL of a server", "https://HOST"),
    }
    let name = host.map_or("", |host| host.rsplit_once(':').map_or(host, |(name, _)| name));
    let is_local = matches!(name, "127.0.0.1" | "[::1]" | "localhost");
    if !text.starts_with("https://") && !is_local {
        return misread(
            text,
            "what is said there could be read along",
            "https, or an address of this machine",
        );
    }
    Ok(if is_base { text.trim_end_matches('/') } else { text }.to_owned())
}

impl Lowering<'_> {
    fn oidc_text(
        &mut self,
        section: &Section<'_>,
        key: &str,
        read: impl Fn(&str) -> Read<String>,
    ) -> Option<At<String>> {
        self.optional(section, key, |lowering: &mut Self, row: &'static Row, node: &Node| {
            lowering.read(node, &row.kind.expected(), |text| match text {
                "" => misread(text, "the text is empty", "some text"),
                _ => read(text),
            })
        })
    }

    /// Reads who proves who people are.
    pub(super) fn oidc(&mut self, root: &Section<'_>) -> Option<OidcSettings> {
        let control = self.section(root, "control");
        let section = self.section(&control, "oidc");
        let own = |text: &str| Ok(text.to_owned());
        let issuer = self.oidc_text(&section, "issuer", |text| url(text, false));
        let client_id = self.oidc_text(&section, "client-id", own);
        let at = self.oidc_text(&section, "url", |text| url(text, true));
        let secret = self.path(&section, "client-secret-file");
        let ca = self.path(&section, "ca");
        let scopes = self.list(&section, "scopes", |_, _, scalar| Ok(scalar.text.to_string())).values();
        let name_claim = self.oidc_text(&section, "name-claim", own)?.value;
        let groups_claim = self.oidc_text(&section, "groups-claim", own)?.value;
        let groups = self.oidc_groups(&section);
        let issuer = issuer?;
        for (key, is_there) in [("client-id", client_id.is_some()), ("url", at.is_some())] {
            if !is_there {
                let message = format!("a provider needs \"{key}\", too");
                self.problems.push(Problem::error(issuer.span, message));
            }
        }
        if !scopes.iter().any(|scope| scope == OPENID) {
            let message = "without the scope \"openid\" nobody proves who people are";
            self.problems.push(Problem::error(issuer.span, message));
        }
        if groups.is_empty() {
            let message = "no group of the provider has a role: nobody is let in";
            self.problems.push(Problem::error(issuer.span, message).expected("\"groups\""));
        }
        if let Some(at) = &secret {
            self.check_client_secret(at);
        }
        if let Some(at) = &ca {
            self.check_readable(at, "the provider is not believed");
        }
        let [secret_file, ca] =
            [secret, ca].map(|path| path.map(|path| self.beside(path.span.file, &path.value)));
        Some(OidcSettings {
            issuer: issuer.value,
            client_id: client_id?.value,
            secret_file,
            url: at?.value,
            ca,
            scopes: scopes.join(" "),
            name_claim,
            groups_claim,
            groups,
        })
    }

    /// Says that a file cannot be read, and what comes of it. The rest of the server does without.
    fn check_readable(&mut self, at: &At<PathBuf>, what: &str) -> Option<Vec<u8>> {
        let file = self.beside(at.span.file, &at.value);
        match (self.read_file)(&file) {
            Ok(octets) => Some(octets),
            Err(error) => {
                let why = io_text(&error);
                let message = format!("cannot read \"{}\": {why}; until it can be, {what}", file.display());
                self.problems.push(Problem::warning(at.span, message));
                None
            }
        }
    }

    /// Looks whether the secret for the provider is there.
    fn check_client_secret(&mut self, at: &At<PathBuf>) {
        let file = self.beside(at.span.file, &at.value);
        let Some(octets) = self.check_readable(at, "nobody can log in at the provider") else { return };
        self.warn_of_open_file(&file, at.span);
        if octets.trim_ascii().is_empty() {
            let message = format!("\"{}\" is empty: nobody can log in at the provider", file.display());
            self.problems.push(Problem::warning(at.span, message));
        }
    }

    fn oidc_groups(&mut self, section: &Section<'_>) -> Vec<(String, RoleWord)> {
        let section = self.section(section, "groups");
        let mut groups = Vec::new();
        for entry in section.entries.iter() {
            let row = self.row(&section, "*");
            let Kind::One(Value::Word(words)) = row.kind else { unreachable_kind(&row.kind) };
            let expected = row.kind.expected();
            let role = self.read(&entry.node, &expected, |text| Self::one_word(words, text, RoleWord::parse));
            if let Some(role) = role {
                groups.push((entry.key.to_string(), role.value));
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use environment::Memory;

    use super::*;

    #[test]
    fn a_secret_that_cannot_be_read_is_reported_and_the_rest_counts() {
        let text = "control: {oidc: {issuer: https://id.example.org, client-id: a, url: https://a.example, \
                    groups: {a: admin}, client-secret-file: secret, ca: ca.pem}}\n";
        let found = |files: &[(&str, &str)]| -> Vec<String> {
            let memory = Memory::new(files);
            let loaded = crate::load_text(Path::new("/etc/g.yaml"), text, &memory).expect("it starts");
            assert!(loaded.settings.api.oidc.is_some());
            loaded.warnings.iter().map(|found| found.message.clone()).collect()
        };
        let secret = ("/etc/secret", "s3cret\n");
        assert_eq!(found(&[secret, ("/etc/ca.pem", "")]), [""; 0]);
        assert_eq!(
            found(&[("/etc/ca.pem", "")]),
            [
                "cannot read \"/etc/secret\": no such file or directory; until it can be, nobody can log in at the provider"
            ]
        );
        assert_eq!(
            found(&[secret]),
            [
                "cannot read \"/etc/ca.pem\": no such file or directory; until it can be, the provider is not believed"
            ]
        );
        assert_eq!(
            found(&[("/etc/secret", " \n"), ("/etc/ca.pem", "")]),
            ["\"/etc/secret\" is empty: nobody can log in at the provider"]
        );
    }

    #[test]
    fn a_provider_is_asked_where_nobody_reads_along() {
        for text in
            ["https://id.example.org", "https://id.example.org:8443/realms/a", "http://127.0.0.1:8080"]
        {
            assert!(url(text, false).is_ok_and(|read| read == text), "{text}");
        }
        assert!(url("https://dns.example.org/", true).is_ok_and(|read| read == "https://dns.example.org"));
        for text in [
            "id.example.org",
            "http://id.example.org",
            "http://127.0.0.1@evil.example",
            "http://127.0.0.1.evil.example",
            "https://",
            "https:///a",
            "https://a b",
            "https://a?x",
        ] {
            assert!(url(text, false).is_err(), "{text}");
        }
    }
}
