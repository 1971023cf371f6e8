//! Dynamic sets.

use serde::{Deserialize, Serialize};

/// Which set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SetName {
    /// Its name.
    pub name: String,
}

/// What to add to a dynamic set, or to remove from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SetChange {
    /// The set's name.
    pub name: String,
    /// Names, addresses or prefixes.
    pub items: Vec<String>,
    /// How long they stay when they are added; as long as the set says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<u64>,
}

/// What became of a change of a dynamic set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SetChanged {
    /// How many were not there before, or were.
    pub changed: usize,
    /// How many it holds now.
    pub holds: usize,
}

/// Something that a dynamic set holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SetItem {
    /// A name, or a prefix.
    pub item: String,
    /// Seconds until it leaves; absent if it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves_in_s: Option<u64>,
}
