//! The audit log.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which rows of the audit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AuditRows {
    /// Those after this one; the newest when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// At most so many; 20 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// A row of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AuditRow {
    /// Its number, from 1.
    pub number: u64,
    /// What it says, as it is hashed: JSON with sorted keys and without spaces.
    pub row: String,
    /// The SHA-256 of the hash before and of `row`, in hexadecimal digits.
    pub hash: String,
    /// The HMAC-SHA-256 of `hash`, with the key of its epoch.
    pub mac: String,
}

impl AuditRow {
    /// Reads a line of an export.
    ///
    /// # Errors
    ///
    /// Why it is none.
    pub fn parse(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }

    /// Returns who had what done, for a person.
    pub fn line(&self) -> String {
        let fields: serde_json::Value = serde_json::from_str(&self.row).unwrap_or_default();
        let text = |name: &str| fields.get(name).and_then(serde_json::Value::as_str).unwrap_or("?");
        let revision = fields.get("revision").map_or_else(String::new, |it| format!(" (revision {it})"));
        let (what, on, by, outcome) = (text("what"), text("on"), text("by"), text("outcome"));
        format!("{} {what} {on} by {by}: {outcome}{revision}", self.number)
    }
}
