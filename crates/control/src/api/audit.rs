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

/// Who changed something last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LastChange {
    /// Who.
    pub by: String,
    /// When (RFC 3339).
    pub at: String,
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

    /// Returns what it says.
    pub fn fields(&self) -> AuditFields {
        let fields: serde_json::Value = serde_json::from_str(&self.row).unwrap_or_default();
        let text =
            |name: &str| fields.get(name).and_then(serde_json::Value::as_str).unwrap_or("?").to_owned();
        let number = |name: &str| fields.get(name).and_then(serde_json::Value::as_u64);
        AuditFields {
            at: number("at").unwrap_or(0),
            by: text("by"),
            what: text("what"),
            on: text("on"),
            outcome: text("outcome"),
            revision: number("revision"),
            differences: fields
                .get("differences")
                .and_then(|all| serde_json::from_value(all.clone()).ok())
                .unwrap_or_default(),
        }
    }

    /// Returns who had what done, for a person.
    pub fn line(&self) -> String {
        let AuditFields { by, what, on, outcome, revision, differences, .. } = self.fields();
        let revision = revision.map_or_else(String::new, |it| format!(" (revision {it})"));
        let said = |text: Option<String>| text.unwrap_or_else(|| "nothing".to_owned());
        let difference = |it: AuditDifference| {
            let (path, before, after) = (it.path, said(it.before), said(it.after));
            format!("; {path}: {before} -> {after}")
        };
        let differences: String = differences.into_iter().map(difference).collect();
        format!("{} {what} {on} by {by}: {outcome}{revision}{differences}", self.number)
    }
}

/// What a row of the audit log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFields {
    /// When, in seconds since 1970.
    pub at: u64,
    /// Who.
    pub by: String,
    /// What was asked for.
    pub what: String,
    /// With what.
    pub on: String,
    /// What came of it.
    pub outcome: String,
    /// The revision that it made, if it made one.
    pub revision: Option<u64>,
    /// What it made different.
    pub differences: Vec<AuditDifference>,
}

/// What a row of the audit log says was made different.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AuditDifference {
    /// What.
    pub path: String,
    /// What it said; secrets are digests.
    pub before: Option<String>,
    /// What it says since.
    pub after: Option<String>,
}
