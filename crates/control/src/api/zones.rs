//! Zones: what is asked about them, and how they are.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which zones are to be added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneAdd {
    /// Their names.
    pub zones: Vec<String>,
    /// The settings of each, as in an item of the setting `zones`, in YAML.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub options: String,
    /// The first records of the zone, if it is a single one, as a master file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<String>,
    /// The ETag that the zone has to have, if it is a single one: `*` of any zone, nothing of a
    /// zone that is not there. Not compared when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// Which zones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneNames {
    /// Their names.
    pub zones: Vec<String>,
    /// The ETag that the zone has to have, if it is a single one: `*` of any zone. Not compared
    /// when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// What a zone is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneLoad {
    /// The zone.
    pub zone: String,
    /// A master file, which the server reads once.
    pub file: String,
}

/// What became of zones that were to be added or removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ZonesChanged {
    /// How many were.
    pub done: usize,
    /// What is to be told of some of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ZoneNote>,
    /// The others, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<ZoneNote>,
    /// Whether it was only checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
}

/// Something about a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneNote {
    /// The zone.
    pub zone: String,
    /// What there is to say.
    pub text: String,
}

/// Which zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneName {
    /// Its name.
    pub zone: String,
}

/// Whose DS the parent has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DsSeen {
    /// The zone.
    pub zone: String,
    /// The tag of the key; all that wait when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<u16>,
}

/// Which keys to replace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneRoll {
    /// The zone.
    pub zone: String,
    /// What the keys are for: `ksk`, `zsk` or `csk`.
    pub role: String,
}

/// How the keys of a zone stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneKeys {
    /// The zone.
    pub zone: String,
    /// Its keys.
    pub keys: Vec<ZoneKey>,
    /// When something is due next, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Why it cannot be signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// How sending its DS to the parent stands, if they are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<String>,
}

/// A key of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneKey {
    /// Its tag.
    pub tag: u16,
    /// Its algorithm.
    pub algorithm: String,
    /// What it is for.
    pub role: String,
    /// Where it is in its life.
    pub state: String,
    /// Since when, in UTC.
    pub since: String,
    /// The DS that the parent should have; absent for a ZSK.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ds: Option<String>,
}

/// What to do with zones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneOrder {
    /// What.
    pub what: ZoneWhat,
    /// The zone; all of them when absent, where that makes sense.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What becomes of a change of its file that was refused, when it is read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_change: Option<FileChange>,
}

/// What becomes of a change of a zone's file and what was changed while the server ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileChange {
    /// The zone gets both.
    Merge,
    /// The file counts.
    Replace,
}

/// What can be done with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ZoneWhat {
    /// Say how it is.
    Status,
    /// Read its file again if that has changed, or ask its primaries.
    Reload,
    /// Take the whole zone over from a primary, whatever its serial.
    Retransfer,
    /// Tell its secondaries of its serial.
    Notify,
    /// Let it change no more.
    Freeze,
    /// Let it change again.
    Thaw,
    /// Say what changed since its file, or with the last transfer.
    Diff,
    /// Print the version that is served.
    Print,
}

/// How a zone is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Zone {
    /// Its name.
    pub name: String,
    /// `primary`, or `secondary` if it comes from other servers.
    pub role: String,
    /// The serial that is served; absent when questions get SERVFAIL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u32>,
    /// Records.
    pub records: usize,
    /// Whether it may not change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_frozen: bool,
    /// Seconds until its primaries are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_look_in_s: Option<u64>,
    /// Seconds until it is not served any more, if no primary is heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
    /// Versions that secondaries can get the difference to.
    pub history: usize,
    /// Octets of its journal.
    pub journal_octets: u64,
    /// Whether it was added while the server ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_added: bool,
    /// The catalog that it came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// The set that it is in, for policies to answer from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What is wrong: with its file, with what was kept of it, or with the last attempt to get a
    /// newer version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Its records that are checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<ZoneCheck>,
}

impl Zone {
    /// Returns what it is known by until its version, or what it is, is another. What only time
    /// changes is not in it.
    pub fn tag(&self) -> String {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let serial = self.serial.map_or_else(String::new, |serial| serial.to_string());
        let facts = format!("{} {} {}", self.records, self.is_frozen, self.is_added);
        let (catalog, set, file) = (text(&self.catalog), text(&self.set), text(&self.file));
        super::tag(&[&self.name, &self.role, &serial, &facts, &catalog, &set, &file])
    }
}

/// A record that is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneCheck {
    /// The owner.
    pub name: String,
    /// Its type and address.
    pub record: String,
    /// What the check is called.
    pub check: String,
    /// Whether it is answered.
    pub is_up: bool,
    /// What went wrong with the last check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Some of the records of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneRecords {
    /// Lines of a zone file, each with its end.
    pub text: String,
    /// Whether nothing comes after it.
    pub is_last: bool,
}

/// What became of an order about zones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneDone {
    /// For a person.
    pub message: String,
}
