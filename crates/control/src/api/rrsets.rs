//! RRsets of zones: which there are, and how they are changed.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which RRsets of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RrsetsOf {
    /// The zone.
    pub zone: String,
    /// Those of this name alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Those of this type alone.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub rtype: Option<String>,
    /// So many before these are left out, in the order of the zone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skip: u64,
    /// At most so many; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

// How serde wants it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// RRsets of a version of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Rrsets {
    /// The zone.
    pub zone: String,
    /// The serial of the version; signatures that the server makes are not in it.
    pub serial: u32,
    /// The RRsets: names in canonical order (RFC 4034 §6.1), the SOA first.
    pub rrsets: Vec<Rrset>,
    /// Whether there are more behind these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// An RRset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Rrset {
    /// The owner.
    pub name: String,
    /// The type.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The TTL, in seconds.
    pub ttl: u32,
    /// The data of each record, as a master file has it (RFC 1035 §5.1), names in full.
    pub records: Vec<String>,
    /// What the RRset is known by: another one when TTL or data are another.
    pub tag: String,
}

/// RRsets that are to be changed: all of them, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RrsetsChange {
    /// The zone.
    pub zone: String,
    /// What becomes of which RRset; of each at most once.
    pub changes: Vec<RrsetEdit>,
}

/// What becomes of an RRset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RrsetEdit {
    /// The owner, in full, with a dot at the end or without.
    pub name: String,
    /// The type.
    #[serde(rename = "type")]
    pub rtype: String,
    /// What happens.
    #[serde(default)]
    pub action: RrsetAction,
    /// The TTL, in seconds; that of the RRset as it is when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
    /// The data of records, as a master file has it, names in full. No records, and the action
    /// `replace`, take the RRset away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<String>,
    /// The tag of the RRset that is changed, so that what others have changed meanwhile is not
    /// lost; empty if there must be none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// What happens to an RRset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RrsetAction {
    /// It has these records and no others.
    #[default]
    Replace,
    /// It gets these records besides its own.
    Extend,
    /// It loses these records.
    Prune,
}

/// What came of changed RRsets: they are on disk, and every query from now on gets them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RrsetsChanged {
    /// The zone.
    pub zone: String,
    /// Its serial now.
    pub serial: u32,
    /// Whether anything is another than before.
    pub is_new: bool,
    /// Of a change that was only checked: a line for each record, with `-` or `+` in front.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// Whether it was only checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
}
