//! Dynamic sets.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::RuleEdit;

/// Which set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SetName {
    /// Its name.
    pub name: String,
}

/// What to add to a dynamic set, or to remove from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SetChange {
    /// The set's name.
    pub name: String,
    /// Names, addresses or prefixes.
    pub items: Vec<String>,
    /// How long they stay when they are added; as long as the set says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<u64>,
    /// What the members have to be known by; anything when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// What to add to a dynamic set and to remove from it: all of it, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SetEdits {
    /// The set's name.
    pub name: String,
    /// What becomes of which names, addresses or prefixes, in this order.
    pub edits: Vec<RuleEdit>,
    /// How long those stay that are added; as long as the set says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<u64>,
    /// What the members have to be known by; anything when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// What became of a change of a dynamic set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SetChanged {
    /// How many were not there before, or were.
    pub changed: usize,
    /// How many it holds now.
    pub holds: usize,
    /// Whether it was only checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
}

/// Something that a dynamic set holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SetItem {
    /// A name, or a prefix.
    pub item: String,
    /// Seconds until it leaves; absent if it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves_in_s: Option<u64>,
}

/// Whose history: of a dynamic set, or of a list that is kept beside the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DataHistory {
    /// The set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Or the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// At most so many changes; 20 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// A change of a set or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DataStep {
    /// Its number.
    pub revision: u64,
    /// Who made it.
    pub by: String,
    /// When (RFC 3339).
    pub at: String,
    /// What was added, with `+` in front, and removed, with `-`: the first hundred.
    pub changes: Vec<String>,
    /// How many there are.
    pub count: u64,
}

/// Which set's lists; all when absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ListsOf {
    /// The set's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
}

/// A set and the lists it is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Set {
    /// Its name.
    pub name: String,
    /// Rules of its own, and ranges of addresses.
    pub rules: u64,
    /// Octets of memory.
    pub octets: u64,
    /// What it holds by itself, if it is dynamic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamic_items: Option<u64>,
    /// Its lists, in the order of the configuration.
    pub lists: Vec<List>,
}

/// A list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct List {
    /// Its format, such as `hosts`.
    pub format: String,
    /// The file or URL; absent for rules that stand in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether it comes from a web server.
    pub is_fetched: bool,
    /// Octets of the copy in use, or of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub octets: Option<u64>,
    /// Seconds since it was known to be the newest, or since the file was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
    /// Seconds until it is asked for again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_in_s: Option<u64>,
    /// Downloads that failed since the start.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u64,
    /// What went wrong last, if the last download failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Seconds since that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_s_ago: Option<u64>,
}

const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What became of lists that were fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListsFetched {
    /// Lists that were fetched, or had not changed.
    pub fetched: u64,
    /// Lists that could not be fetched or used.
    pub failed: u64,
    /// How the sets stand now.
    pub sets: Vec<Set>,
}
