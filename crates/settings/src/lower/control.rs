//! Channels on which operators give orders: the tree to settings.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use diagnostic::Problem;
use plan::jobs::AuditSink;

use super::read::{Values as _, unreachable_kind};
use super::{Lowering, Section};
use crate::groups::{
    ApiSettings, ChangesAllowed, ControlIdentity, ControlPlace, UnboundChannel, UnboundStatistics,
};

use crate::overlay::SettingPath;
use schema::{ChangesWord, RoleWord, Value};

/// The port of `unbound-control`.
const PORT: u16 = 8953;

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
    pub(super) fn api(&mut self, root: &Section<'_>) -> Vec<SocketAddr> {
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
        listen.values()
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
            values::socket_address(&scalar.text, PORT).map(ControlPlace::Address)
        });
        let wants_certificates = self.boolean(section, "certificates");
        let certificate = self.path(section, "certificate");
        let key = self.path(section, "key");
        let addresses = || listen.iter().filter(|at| matches!(at.value, ControlPlace::Address(_)));
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
