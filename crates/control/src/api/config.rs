//! Settings that are changed while the server runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A change of settings: all of it is made, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConfigChange {
    /// What is to become of which settings, in order.
    pub edits: Vec<ConfigEdit>,
    /// Who makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How long what is set lasts; until it is changed when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_s: Option<u64>,
    /// The revision of the changes that it was made for; refused if there is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// What must hold of single settings; refused if something else does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected_at: Vec<ConfigExpected>,
    /// Whether it is only checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
}

/// What must hold of a setting for a change to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConfigExpected {
    /// Where, such as `cache.main.size`.
    pub path: String,
    /// The revision that changed it last, 0 if it is as the file says; nothing is said there when
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// What is to become of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigEdit {
    /// It says this.
    Set {
        /// Where, such as `cache.main.size`.
        path: String,
        /// As it would stand in the file.
        text: String,
    },
    /// It says nothing, whatever the file says.
    TakeAway {
        /// Where.
        path: String,
    },
    /// It says what the file says again.
    Unset {
        /// Where.
        path: String,
    },
    /// All settings say what they said at a revision of the changes.
    RollBack {
        /// Which.
        revision: u64,
    },
}

/// What came of a change of settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ConfigChanged {
    /// The revision of the changes that is in use.
    pub revision: u64,
    /// Whether it is in use; otherwise it was only checked.
    pub is_adopted: bool,
    /// Earlier changes that are gone, being part of what was set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<String>,
    /// The settings that differ but are read at the start only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<String>,
    /// Warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<super::Diagnostic>,
    /// What it would change, if it was only checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<ConfigDifference>,
    /// How long it took.
    pub took_ms: u64,
}

/// Which setting; all that are said when absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConfigGet {
    /// Where, such as `cache.main.size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A setting in use, without secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Setting {
    /// Where.
    pub path: String,
    /// What is said there, in YAML on one line.
    pub text: String,
    /// The file and line or the change that says it; absent when it is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The revision that changed it last, or something that it holds or is part of; 0 if none did.
    pub revision: u64,
    /// Who made that change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it ends (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Who may change it: `helper`, `operator` or `admin`.
    pub role: String,
}

/// Settings as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ConfigShown {
    /// YAML.
    pub text: String,
}

/// How changed settings are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConfigExport {
    /// Whether secrets are shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_secrets: bool,
}

/// A configuration that another is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigOf {
    /// What the file says alone.
    File,
    /// What is in use.
    Now,
    /// What the file says, with the changes up to this revision.
    Revision(u64),
}

/// Two configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConfigDiff {
    /// The one.
    pub from: ConfigOf,
    /// The other.
    pub to: ConfigOf,
}

/// A setting that two configurations say differently, without secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ConfigDifference {
    /// Where.
    pub path: String,
    /// What the one says; absent if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// What the other says; absent if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// How much of the history is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConfigHistory {
    /// So many; 20 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Those before this revision; the newest when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// A change that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ConfigStep {
    /// Its revision.
    pub revision: u64,
    /// Who made it.
    pub by: String,
    /// When (RFC 3339).
    pub at: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What became of settings; what the file says is absent.
    pub edits: Vec<ConfigDifference>,
}

/// How changed settings stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ChangesSummary {
    /// The revision of the changes that is in use; 0 before the first.
    pub revision: u64,
    /// Changed settings.
    pub settings: u64,
    /// Who made the newest change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_by: Option<String>,
    /// Why nothing can be changed, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Mistakes that the file and the changes have together: what ran before them is in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<String>,
}
