//! What commands print that look at zones and keys in files.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Diagnostic;

/// A zone's file, as `gannet zone check --json` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CheckedZone {
    /// The zone.
    pub zone: String,
    /// Whether it can be served; with `--strict`, whether there is nothing to say against it
    /// either.
    pub is_right: bool,
    /// What is in it; absent when it cannot be served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<ZoneFacts>,
    /// Everything that is wrong with it, errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// What is in a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneFacts {
    /// The SOA's serial.
    pub serial: u32,
    /// Names that exist.
    pub names: usize,
    /// Records, signatures and proofs included.
    pub records: usize,
    /// Zone cuts.
    pub cuts: usize,
    /// How absence is proved: `none`, `nsec`, `nsec3` or `compact`.
    pub denial: String,
}

/// A signed zone's file, as `gannet zone verify --json` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct VerifiedZone {
    /// The zone.
    pub zone: String,
    /// Whether all is right at that time.
    pub is_right: bool,
    /// The time (RFC 3339).
    pub at: String,
    /// The digest of the zone: `right`, `wrong`, `absent`, `other-serial` or `unsupported`.
    pub zonemd: String,
    /// What is wrong.
    pub faults: Vec<String>,
    /// Whether there may be more of it.
    pub is_cut_short: bool,
}

/// A key in a directory, as `gannet zone keys list --json` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StoredKey {
    /// The zone.
    pub zone: String,
    /// Its tag.
    pub tag: u16,
    /// Its algorithm.
    pub algorithm: String,
    /// Its size.
    pub bits: usize,
    /// Whether it is a secure entry point (SEP).
    pub is_entry_point: bool,
    /// What it does now: `active`, `published` or `absent`.
    pub state: String,
    /// When it was made (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The token that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Whether it has fewer bits than it should.
    pub is_weak: bool,
    /// Whether others may read its private key.
    pub is_open: bool,
}
