//! Certificates that the server orders.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which certificates are meant: one, or all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CertificatesOf {
    /// The name of one in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The certificate that is to be ordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CertificateName {
    /// Its name in the configuration.
    pub name: String,
}

/// A certificate that the server orders from authorities. Times are in RFC 3339.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OrderedCertificate {
    /// Its name in the configuration.
    pub name: String,
    /// Whom it is for.
    pub names: Vec<String>,
    /// The URL of the authority that gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
    /// From when it holds; absent as long as there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<String>,
    /// Until when it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// Seconds until then; below zero when that is past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_in_s: Option<i64>,
    /// Seconds until it is ordered next; 0 when that is due.
    pub next_in_s: u64,
    /// From when the authority wants it renewed (RFC 9773).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_begins: Option<String>,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ends: Option<String>,
    /// Orders that were begun.
    pub attempts: u64,
    /// Orders in a row that came to nothing.
    pub failures: u32,
    /// What was in the way of the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// How long ago that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_s_ago: Option<u64>,
    /// Whether it is being ordered.
    pub is_at_work: bool,
}
