//! What came of a reload.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ZoneNote;

/// What came of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Reload {
    /// Whether the new configuration is in use; otherwise the old one still is.
    pub is_adopted: bool,
    /// The revision of the configuration that is in use now; the one at the start is 1.
    pub revision: u64,
    /// The settings that differ but are read at the start only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<String>,
    /// Zones that are not as their files say, and files with zones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<ZoneNote>,
    /// Everything the checker found, errors and warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// How long reading and compiling took.
    pub took_ms: u64,
}

/// One finding of the configuration checker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Diagnostic {
    /// `error` or `warning`.
    pub severity: String,
    /// The file, as it was given or included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// How many characters are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// What is wrong.
    pub message: String,
    /// What would have been right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The finding with its source line, as a person reads it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl From<&diagnostic::Diagnostic> for Diagnostic {
    fn from(found: &diagnostic::Diagnostic) -> Self {
        let known = |number: u32| (number > 0).then_some(number);
        Self {
            severity: found.severity.word().to_owned(),
            file: Some(found.file.display().to_string()).filter(|file| !file.is_empty()),
            line: known(found.line),
            column: known(found.column),
            width: known(found.width),
            message: found.message.clone(),
            expected: found.expected.clone(),
            hint: found.hint.clone(),
            text: found.human(),
        }
    }
}
