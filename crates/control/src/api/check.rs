//! Settings that are checked without being used.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Settings to be checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Check {
    /// Their text: a whole configuration.
    pub text: String,
    /// In which language it is.
    #[serde(default)]
    pub language: SettingsLanguage,
    /// What diagnostics call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// In which language settings are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettingsLanguage {
    /// Our own.
    #[default]
    Yaml,
    /// That of Unbound.
    Unbound,
}
