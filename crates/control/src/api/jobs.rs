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

/// A recorded query, as `gannet log --json` prints it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Recorded {
    /// When its reply was complete, in milliseconds since 1970.
    pub at_ms: i64,
    /// How long it waited for other servers, with fractions.
    pub waited_ms: f64,
    /// Who asked.
    pub client: String,
    /// `udp` or `tcp`.
    pub transport: String,
    /// The name asked for.
    pub name: String,
    /// The type asked for.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The reply's code; absent when there was no reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Records in the answer section.
    pub answers: u16,
    /// The addresses among them.
    pub addresses: Vec<String>,
    /// The way through the policy: each step and what came of it.
    pub path: Vec<String>,
    /// How many queries it stands for: more than one when they came faster than they could be
    /// recorded.
    pub one_of: u32,
}

/// A name or client and how often it asked or was asked for, as `gannet log --top` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Tally {
    /// The name or the client.
    pub what: String,
    /// Queries.
    pub queries: u64,
}
