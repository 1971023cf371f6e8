//! Certificates that the server orders.

use std::sync::Arc;

use diagnostic::{At, Span};
use plan::certificates::CertificatePlan;

use super::RemoteSettings;

/// A certificate that is ordered from authorities.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderedCertificate {
    /// How it is ordered; its file is below the directory for state.
    pub plan: Arc<CertificatePlan>,
    /// Servers that take the records of `dns-01`.
    pub update: Vec<At<RemoteSettings>>,
    /// Where it stands.
    pub span: Span,
}
