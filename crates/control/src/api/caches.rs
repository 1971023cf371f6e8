//! Caches: what to forget, how full they are.

use serde::{Deserialize, Serialize};

/// Which answers to forget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CacheFlush {
    /// The cache's name in the configuration; every cache when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// What to forget in it.
    pub what: Flush,
}

/// A selection of answers by name, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Flushed {
    /// Answers forgotten.
    pub removed: u64,
}

/// What a dump of one cache did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
