//! What is done at certain times, and what was recorded.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which job to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct JobRun {
    /// Its name.
    pub name: String,
}

/// Something that is done at certain times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Job {
    /// Its name.
    pub name: String,
    /// When, as cron says it.
    pub at: String,
    /// The time zone that is meant.
    pub time_zone: String,
    /// What it does.
    pub tasks: Vec<String>,
    /// When it runs next (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// When it began last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// Whether it is at work.
    pub is_running: bool,
    /// Whether it failed when it ran last.
    pub is_failed: bool,
    /// What came of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// How often it ran.
    pub runs: u64,
    /// Times at which it was still at work and was not begun again.
    pub skipped: u64,
}
