//! Lists that sets are read from, and their rules.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a list comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ListSource {
    /// It is kept beside the settings.
    #[default]
    Own,
    /// A web server.
    Url,
    /// A file of this machine.
    File,
    /// It stands in the configuration.
    Settings,
    /// A response policy zone.
    Zone,
}

/// A list: one of one's own, or one that a set is read from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListShown {
    /// The name of one's own; of others the set and the number in it, from 1: `ads:1`.
    pub name: String,
    /// Where it comes from.
    pub source: ListSource,
    /// The URL without passwords, the file, or the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// How it is written, such as `hosts`; of one's own, sets say that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// The sets that have it.
    pub sets: Vec<String>,
    /// Rules that the set has read from it, about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<u64>,
    /// Octets of the copy in use, of the file, or of the text without what was changed since it was
    /// written as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub octets: Option<u64>,
    /// Of one's own: the change that made it what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Of one's own: single rules that were changed since it was written as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<u64>,
    /// Seconds since it was known to be the newest, or since the file was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
    /// Seconds until it is asked for again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_in_s: Option<u64>,
    /// Downloads that failed since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u64>,
    /// What is wrong with it, if something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Seconds since the last download that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_s_ago: Option<u64>,
}

/// Which rules of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ListRulesOf {
    /// The list.
    pub name: String,
    /// Where to go on: `next` of the part before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// At most so many; 1,000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Those that have this text in them, whatever its letter case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
}

/// Rules of a list, as its text has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListRules {
    /// Lines that are not empty, in their order.
    pub rules: Vec<String>,
    /// Where to go on: there may be more. Absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
