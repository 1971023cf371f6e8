//! Channels on which operators give orders, beside the control socket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where a channel can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlPlace {
    /// An address.
    Address(SocketAddr),
    /// A Unix socket.
    Path(PathBuf),
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
        }
    }
}
