//! Backups: what is in one, and what became of one.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is in a backup: its first file, `manifest.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BackupManifest {
    /// The version of the format: 1.
    pub format: u32,
    /// The program that made it.
    pub version: String,
    /// When (RFC 3339).
    pub at: String,
    /// The revision of the changes.
    pub revision: u64,
    /// Whether it has secrets.
    pub has_secrets: bool,
    /// What is left out because it is secret, or was: settings by path, tokens and others by name.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// The files.
    pub files: Vec<BackupFile>,
}

/// A file of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BackupFile {
    /// Its path below the state directory.
    pub path: String,
    /// How long it is.
    pub octets: u64,
    /// Its SHA-256.
    pub sha256: String,
}

/// What became of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Restored {
    /// When the backup was made.
    pub at: String,
    /// The revision that it brings back.
    pub revision: u64,
    /// Its files.
    pub files: u64,
    /// Whether it has secrets.
    pub has_secrets: bool,
    /// Whether the next start of the server takes it up; not when it was only checked.
    pub is_ready: bool,
}

impl BackupManifest {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| error.to_string())
    }
}
