//! Resolvers: what they have learned of servers and zones, and what to forget.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something to do with resolvers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ResolverOrder {
    /// The resolver's name in the configuration; every resolver when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolver: Option<String>,
    /// What to do.
    pub what: ResolverWhat,
}

/// What to do with resolvers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ResolverWhat {
    /// Say how full their tables are.
    Stats,
    /// Say what is known of the servers that were asked. All resolvers know the same.
    Servers,
    /// Say which zone is the closest that is known to enclose a name, and by which servers.
    Zone(String),
    /// Say what is trusted, and how it follows the keys of its zones.
    Anchors,
    /// Show or change negative trust anchors.
    Negative(NegativeOrder),
    /// Forget what was learned.
    Flush(ResolverFlush),
}

/// What to do with negative trust anchors (RFC 7646).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum NegativeOrder {
    /// Show them.
    List,
    /// Let the signatures of a zone, and of all below it, not count for a time.
    Add {
        /// The zone.
        zone: String,
        /// For so many seconds.
        seconds: u64,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Remove one that was added.
    Remove {
        /// The zone.
        zone: String,
    },
}

/// The trust anchors of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResolverAnchor {
    /// The resolver's name in the configuration.
    pub resolver: String,
    /// The zone.
    pub zone: String,
    /// Its keys.
    pub keys: Vec<ResolverAnchorKey>,
    /// Whether they follow the keys of the zone (RFC 5011).
    pub is_followed: bool,
    /// The file that they come from or are kept in; absent for those of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// When the zone's keys were asked for last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe: Option<String>,
    /// When that led to something last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success: Option<String>,
    /// When they are asked for next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_probe: Option<String>,
    /// What was wrong the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A key of an anchored zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResolverAnchorKey {
    /// Its tag.
    pub tag: u16,
    /// Its algorithm.
    pub algorithm: String,
    /// Where it stands: `fixed`, `unseen` (a DS whose key was not seen yet), `pending`, `valid`,
    /// `missing`, `revoked` or `removed`.
    pub state: String,
    /// Whether it may check signatures.
    pub is_trusted: bool,
    /// When it came to stand there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// A zone whose signatures do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResolverNegative {
    /// The resolver's name in the configuration.
    pub resolver: String,
    /// The zone.
    pub zone: String,
    /// When the server first heard of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// When it ends; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Whether it has ended; the configuration still has it.
    pub is_over: bool,
    /// Whether a command has added it; the configuration has the others.
    pub is_added: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the zone was tested last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<String>,
    /// What that has come to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// A selection of what resolvers have learned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ResolverFlush {
    /// Everything, that of servers included.
    All,
    /// Every type of one name, and its delegation.
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
    /// What failed validation.
    Bogus,
    /// That there are no such names or records.
    Negative,
}

/// What is known of a server that was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResolverServer {
    /// Its address and port.
    pub address: String,
    /// How long its answers take, smoothed, in milliseconds; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<f64>,
    /// By how much that varies, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation_ms: Option<f64>,
    /// Queries in a row that it did not answer; 255 are that many or more.
    pub silences: u8,
    /// What it makes of EDNS: `works`, `none`, or `up to N octets`; absent when nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edns: Option<String>,
    /// Whether it repeats the letter case of the question; absent when nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps_case: Option<bool>,
    /// Whether its cookie is known (RFC 7873).
    pub has_cookie: bool,
}

/// What is known of servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResolverServers {
    /// Servers, the quickest first, then those that never answered.
    pub servers: Vec<ResolverServer>,
    /// Whether there are more than are told.
    pub is_cut_short: bool,
}

/// A delegation that a resolver knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResolverZone {
    /// The resolver's name in the configuration.
    pub resolver: String,
    /// The zone; absent when nothing but the root hints encloses the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Seconds for which the delegation holds.
    pub holds_for_s: u32,
    /// Whether the parent has DS records for it: `signed`, `unsigned` or `unknown`.
    pub ds: String,
    /// Its servers, by name, with the addresses that came with the delegation.
    pub servers: Vec<ResolverZoneServer>,
}

/// A server of a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResolverZoneServer {
    /// Its name.
    pub name: String,
    /// Addresses that came with the delegation (glue).
    pub addresses: Vec<String>,
}
