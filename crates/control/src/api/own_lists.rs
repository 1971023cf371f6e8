//! Lists of the operator that are kept beside the settings.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OwnListName {
    /// Its name.
    pub name: String,
}

/// A rule that is added to a list or removed from it: `{"add": "example.org"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleEdit {
    /// This line stands in the list from now on.
    Add(String),
    /// No line that says this stands in the list from now on.
    Remove(String),
}

impl RuleEdit {
    /// Returns the rule.
    pub fn text(&self) -> &str {
        let (Self::Add(text) | Self::Remove(text)) = self;
        text
    }
}

/// Changes of a list: all of them are made, in order, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OwnListChange {
    /// The list.
    pub name: String,
    /// What is added and removed.
    pub edits: Vec<RuleEdit>,
    /// What the list has to be known by; anything when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Whether it is only checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
}

/// A list that is to be gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OwnListRemove {
    /// The list.
    pub name: String,
    /// What it has to be known by; anything when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// A list that is kept beside the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OwnList {
    /// Its name.
    pub name: String,
    /// Octets of its text, without what was changed since it was written as a whole.
    pub octets: u64,
    /// Single rules that were changed since.
    pub changes: u64,
    /// The change that made it what it is.
    pub revision: u64,
    /// The sets that have it.
    pub sets: Vec<String>,
}

/// What became of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OwnListChanged {
    /// The list.
    pub name: String,
    /// Rules that were not there before, or were; of a whole text all rules.
    pub changed: u64,
    /// The change that made it what it is.
    pub revision: u64,
    /// Whether it was only checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
    /// Whether sets were compiled for it: some changes cannot be made beside what is compiled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_compiled: bool,
    /// What did not go well, although the list is kept as it is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// How long it took.
    pub took_ms: u64,
}

/// A part of the text of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OwnListText {
    /// Its lines.
    pub text: String,
    /// Whether there is none behind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_last: bool,
}
