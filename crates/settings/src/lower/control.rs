//! Channels on which operators give orders: the tree to settings.

use std::path::Path;
use std::sync::Arc;

use diagnostic::{Problem, Span, io_text};
use plan::Secret;
use plan::jobs::AuditSink;

use super::read::{Values as _, unreachable_kind};
use super::{Lowering, Section};
use crate::groups::{
    ApiListen, ApiSettings, AuditKey, ChangesAllowed, ControlIdentity, ControlPlace, UnboundChannel,
    UnboundStatistics,
};

use crate::overlay::SettingPath;
use schema::{ChangesWord, RoleWord, Value};

/// The port of `unbound-control`.
const PORT: u16 = 8953;
/// Octets of a key of the audit log.
const AUDIT_KEY_OCTETS: usize = 32;

impl Lowering<'_> {
    /// Reads where `unbound-control` can reach the server, and what its statistics show.
    pub(super) fn control(&mut self, root: &Section<'_>) -> (UnboundChannel, UnboundStatistics) {
        let control = self.section(root, "control");
        let section = self.section(&control, "unbound");
        (self.unbound_channel(&section), self.unbound_statistics(&section))
    }

    /// Reads who may use the control socket, and what for.
    pub(super) fn socket_users(&mut self, root: &Section<'_>) -> (Option<String>, RoleWord) {
        let control = self.section(root, "control");
        (self.text_or(&control, "socket-group"), self.word(&control, "socket-role", RoleWord::parse))
    }

    /// Reads where the API can be reached.
    pub(super) fn api(&mut self, root: &Section<'_>) -> ApiListen {
        let control = self.section(root, "control");
        let listen = self.list(&control, "listen", |_, value, scalar| match value {
            Value::Socket { port, .. } => values::socket_address(&scalar.text, *port),
            other => unreachable_kind(other),
        });
        let tls = self.section(root, "tls");
        let certificates = tls.entry("certificates").map(|entry| &entry.node.value);
        let has_certificates = matches!(certificates, Some(yaml::Value::List(items)) if !items.is_empty());
        for (index, at) in listen.iter().enumerate() {
            if at.value.port() != 0 && listen.iter().take(index).any(|other| other.value == at.value) {
                let message = format!("\"{}\" is listened on twice", at.value);
                self.problems.push(Problem::error(at.span, message));
            } else if !at.value.ip().to_canonical().is_loopback() && !has_certificates {
                let message =
                    format!("others can reach {}, and without a certificate they could read along", at.value);
                let problem = Problem::error(at.span, message);
                self.problems
                    .push(problem.expected("an address of this machine alone, or \"tls.certificates\""));
            }
        }
        // A file that writes every default out means the same as one that says nothing.
        ApiListen { is_said: self.said(&control, "listen").is_some(), at: listen.values() }
    }

    /// Reads where the API is reached, and how people log in to it.
    pub(super) fn api_settings(&mut self, root: &Section<'_>) -> ApiSettings {
        ApiSettings {
            names: self.control_names(root),
            totp_roles: self.totp_roles(root),
            oidc: self.oidc(root).map(Arc::new),
        }
    }

    /// Reads the names that the API is reached by.
    fn control_names(&mut self, root: &Section<'_>) -> Vec<String> {
        let control = self.section(root, "control");
        let names = self.list(&control, "names", |_, _, scalar| {
            let is_name = scalar.text.parse::<wire::NameBuf>().is_ok();
            is_name.then(|| scalar.text.trim_end_matches('.').to_owned()).ok_or_else(|| values::Misread {
                at: 0..scalar.text.len(),
                message: format!("\"{}\" is no name of a host", scalar.text),
                expected: None,
                hint: None,
            })
        });
        names.values()
    }

    /// Reads the roles whose users need one-time codes.
    fn totp_roles(&mut self, root: &Section<'_>) -> Vec<RoleWord> {
        let control = self.section(root, "control");
        self.list(&control, "totp-roles", |_, value, scalar| match value {
            Value::Word(words) => Self::one_word(words, &scalar.text, RoleWord::parse),
            other => unreachable_kind(other),
        })
        .values()
    }

    /// Reads the first key of the audit log.
    pub(super) fn audit_key(&mut self, root: &Section<'_>) -> Option<AuditKey> {
        let control = self.section(root, "control");
        let section = self.section(&control, "audit");
        let at = self.path(&section, "key")?;
        let file = self.beside(at.span.file, &at.value);
        let text = self.file_with_secret(&file, at.span)?;
        // As the server writes one that it makes: behind the number of its epoch.
        let digits = text.strip_prefix("0 ").unwrap_or(&text);
        let Some(key) = values::hex(digits).filter(|key| key.len() == AUDIT_KEY_OCTETS) else {
            // What is there is not quoted: it may be most of a secret.
            let problem =
                Problem::error(at.span, format!("\"{}\" has no key of an audit log", file.display()));
            self.problems
                .push(problem.expected("64 hexadecimal digits").hint("\"openssl rand -hex 32\" prints some"));
            return None;
        };
        Some(AuditKey { file, key: Secret::new(key) })
    }

    /// Reads a file with a secret, without what surrounds it.
    pub(super) fn file_with_secret(&mut self, file: &Path, span: Span) -> Option<String> {
        match (self.read_file)(file) {
            Ok(octets) => {
                self.warn_of_open_file(file, span);
                Some(String::from_utf8_lossy(&octets).trim().to_owned())
            }
            Err(error) => {
                let message = format!("cannot read \"{}\": {}", file.display(), io_text(&error));
                self.problems.push(Problem::error(span, message));
                None
            }
        }
    }

    /// Reads who is given checkpoints of the audit log.
    pub(super) fn audit_sinks(&mut self, root: &Section<'_>) -> Vec<AuditSink> {
        let control = self.section(root, "control");
        let section = self.section(&control, "audit");
        let sinks = self.list(&section, "sinks", |lowering, _, scalar| {
            let text = &scalar.text;
            if text == "syslog" {
                return Ok(AuditSink::Syslog);
            }
            if text.starts_with("https://") || text.starts_with("http://") {
                return Ok(AuditSink::Http(text.clone()));
            }
            if text.contains('/') && !text.contains("://") {
                return Ok(AuditSink::File(lowering.beside(scalar.place().file, Path::new(text))));
            }
            Err(values::Misread {
                at: 0..text.len(),
                message: format!("\"{text}\" keeps no checkpoints"),
                expected: Some("\"syslog\", the path of a file or a URL".to_owned()),
                hint: None,
            })
        });
        sinks.values()
    }

    /// Reads what may be changed while the server runs.
    pub(super) fn changes_allowed(&mut self, root: &Section<'_>) -> ChangesAllowed {
        let control = self.section(root, "control");
        let locked = self.list(&control, "locked", |_, _, scalar| {
            SettingPath::parse(&scalar.text).map_err(|message| values::Misread {
                at: 0..scalar.text.len(),
                message,
                expected: None,
                hint: None,
            })
        });
        ChangesAllowed { which: self.word(&control, "changes", ChangesWord::parse), locked }
    }

    fn unbound_channel(&mut self, section: &Section<'_>) -> UnboundChannel {
        let listen = self.list(section, "listen", |lowering, _, scalar| {
            if scalar.text.contains('/') {
                let path = lowering.beside(scalar.place().file, Path::new(&scalar.text));
                return Ok(ControlPlace::Path(path));
            }
            values::socket_address(&scalar.text, PORT).map(ControlPlace::Address).or_else(|misread| {
                let (name, port) = values::device(&scalar.text, PORT).ok_or(misread)?;
                Ok(ControlPlace::Device(name.to_owned(), port))
            })
        });
        let wants_certificates = self.boolean(section, "certificates");
        let certificate = self.path(section, "certificate");
        let key = self.path(section, "key");
        let addresses = || listen.iter().filter(|at| !matches!(at.value, ControlPlace::Path(_)));
        let mut identity = None;
        match (wants_certificates, certificate, key) {
            (false, ..) => {
                for at in addresses() {
                    if let ControlPlace::Address(address) = &at.value
                        && !address.ip().to_canonical().is_loopback()
                    {
                        let message =
                            format!("without certificates everybody who reaches {address} could give orders");
                        let problem = Problem::error(at.span, message);
                        self.problems.push(problem.expected("a loopback address, a path, or certificates"));
                    }
                }
            }
            (true, Some(certificate), Some(key)) => {
                let [certificate, key] = [certificate, key].map(|at| self.beside(at.span.file, &at.value));
                identity = Some(ControlIdentity { certificate, key });
            }
            (true, ..) => {
                if let Some(at) = addresses().next() {
                    let message = "who comes to an address has to show a certificate, and none is set";
                    let problem = Problem::error(at.span, message);
                    self.problems.push(problem.expected(
                        "\"certificate\" and \"key\" in control.unbound (\"unbound-control-setup\" makes them)",
                    ));
                }
            }
        }
        UnboundChannel { places: listen.into_iter().map(|at| at.value).collect(), identity }
    }

    fn unbound_statistics(&mut self, section: &Section<'_>) -> UnboundStatistics {
        let section = self.section(section, "statistics");
        UnboundStatistics {
            is_extended: self.boolean(&section, "extended"),
            is_cumulative: self.boolean(&section, "cumulative"),
            inhibits_zero: self.boolean(&section, "inhibit-zero"),
            interval: self.duration_or(&section, "interval"),
        }
    }
}

#[cfg(test)]
mod tests {
    use environment::Memory;

    use super::*;

    #[test]
    fn the_key_of_the_audit_log_is_64_digits_and_never_quoted() {
        let load = |key: &str| {
            let memory = Memory::new(&[("/etc/audit.key", key)]);
            let text = "control: {audit: {key: audit.key}}\n";
            crate::load_text(Path::new("/etc/g.yaml"), text, &memory)
        };
        let digits = "0f".repeat(32);
        for text in [format!("{digits}\n"), format!("0 {digits}\n")] {
            let read = load(&text).expect("right").settings.startup.audit_key.expect("a key");
            assert_eq!(
                (read.file.as_path(), read.key.reveal()),
                (Path::new("/etc/audit.key"), &[15; 32][..])
            );
        }
        for wrong in ["hunter2", "", &digits[2..], &format!("1 {digits}"), &format!("{digits}00")] {
            let found = load(wrong).expect_err("wrong");
            assert_eq!(found.len(), 1, "{found:?}");
            let said = found[0].human();
            assert!(said.contains("\"/etc/audit.key\" has no key of an audit log"), "{said}");
            assert!(wrong.is_empty() || !said.contains(wrong), "{said}");
        }
    }
}
