//! Caches: what to forget, how full they are.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ExtendedError, Record};

/// Which answers to forget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CacheFlush {
    /// The cache's name in the configuration; every cache when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// What to forget in it.
    pub what: Flush,
}

/// A selection of answers by name, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Flush {
    /// Everything.
    All,
    /// Every type of one name.
    Name(String),
    /// A name and every name below it.
    Suffix(String),
    /// One type of one name.
    Type {
        /// The name.
        name: String,
        /// The type, by mnemonic or `TYPE` and number.
        rtype: String,
    },
}

/// How full a cache is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CacheStats {
    /// Answers held.
    pub entries: u64,
    /// Octets they take.
    pub octets: u64,
    /// Octets they may take.
    pub octets_max: u64,
    /// Answers put in since the start.
    pub inserts: u64,
    /// Answers put out for want of room since the start.
    pub evictions: u64,
}

/// What a flush did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Flushed {
    /// Answers forgotten.
    pub removed: u64,
}

/// What a dump of one cache did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Dumped {
    /// The cache's name in the configuration.
    pub cache: String,
    /// The file.
    pub file: String,
    /// Answers written.
    pub entries: u64,
    /// Why nothing was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What to look for in the caches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CacheLookup {
    /// The cache's name in the configuration; every cache when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// The name asked for.
    pub name: String,
    /// The type; every type when absent.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub rtype: Option<String>,
    /// Whether names below it count, too.
    #[serde(default)]
    pub covers_below: bool,
}

/// What the caches hold for a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CacheEntries {
    /// Answers, by cache, name and type.
    pub entries: Vec<CacheEntry>,
    /// Whether there are more than are told.
    pub is_cut_short: bool,
}

/// An answer that a cache holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CacheEntry {
    /// The cache's name in the configuration.
    pub cache: String,
    /// The name asked for.
    pub name: String,
    /// The type asked for.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The reply's code.
    pub status: String,
    /// Seconds for which it is fresh; absent when it is stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_for_s: Option<u32>,
    /// Seconds since it became stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_for_s: Option<u32>,
    /// Seconds for which it is kept at most.
    pub kept_for_s: u32,
    /// The network that it is for, if it is not for everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_subnet: Option<String>,
    /// Whether it was asked for with DNSSEC records (DO), or without checks (CD).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// The answer section, TTLs as clients get them now.
    pub answer: Vec<Record>,
    /// The authority section.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authority: Vec<Record>,
    /// The additional section.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional: Vec<Record>,
    /// The extended error that is repeated with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_error: Option<ExtendedError>,
}
