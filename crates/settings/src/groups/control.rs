//! Channels on which operators give orders, beside the control socket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use diagnostic::At;
use plan::Secret;
use schema::{ChangesWord, RoleWord};

use super::oidc::OidcSettings;
use crate::overlay::SettingPath;

/// The first key of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditKey {
    /// The file that it is in.
    pub file: PathBuf,
    /// The key, 32 octets.
    pub key: Secret,
}

/// Where the HTTP API is reached, and how people log in to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiSettings {
    /// Names that it is reached by, besides those of the certificates.
    pub names: Vec<String>,
    /// Roles whose users need one-time codes.
    pub totp_roles: Vec<RoleWord>,
    /// Who proves who people are.
    pub oidc: Option<Arc<OidcSettings>>,
}

/// Which settings may be changed while the server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesAllowed {
    /// Those that may.
    pub which: ChangesWord,
    /// Those that may not, with all below them.
    pub locked: Vec<At<SettingPath>>,
}

impl ChangesAllowed {
    /// Returns why a setting may not be changed; `None` if it may.
    pub fn refusal(&self, path: &SettingPath) -> Option<String> {
        match self.which {
            ChangesWord::Allowed => {}
            ChangesWord::Data if path.is_data() => {}
            ChangesWord::Data => {
                return Some(format!(
                    "\"{path}\" is no data, and nothing else may be changed (control.changes: data)"
                ));
            }
            ChangesWord::Never => {
                return Some("no setting may be changed (control.changes: never)".to_owned());
            }
        }
        // What holds a locked setting would change it, too.
        let locked = self.locked.iter().map(|at| &at.value);
        let mut found = locked.filter(|locked| path.is_within(locked) || locked.is_within(path));
        found.next().map(|locked| format!("\"{locked}\" is locked (control.locked)"))
    }
}

/// Where a channel can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlPlace {
    /// An address.
    Address(SocketAddr),
    /// A Unix socket.
    Path(PathBuf),
    /// All addresses of a network device, and the port.
    Device(String, u16),
}

/// The channel of `unbound-control`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnboundChannel {
    /// Where it can be reached; nowhere: it is not there.
    pub places: Vec<ControlPlace>,
    /// What the server proves itself with to whoever comes to an address, and what their
    /// certificates are signed by; none if they need none.
    pub identity: Option<ControlIdentity>,
}

/// Files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlIdentity {
    /// The certificate, in PEM form.
    pub certificate: PathBuf,
    /// Its key, in PEM form.
    pub key: PathBuf,
}

/// What the channel's statistics show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnboundStatistics {
    /// Whether everything is shown.
    pub is_extended: bool,
    /// Whether they go on over being shown.
    pub is_cumulative: bool,
    /// Whether zeros are left out where that program may.
    pub inhibits_zero: bool,
    /// How often the log has them.
    pub interval: Option<Duration>,
}

impl ControlPlace {
    /// Returns it as it is written.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Address(address) => address.to_string(),
            Self::Path(path) => path.display().to_string(),
            Self::Device(name, port) => format!("{name}@{port}"),
        }
    }
}
