//! Clients, as the record of queries has them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Tally;

/// Which clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClientsOf {
    /// Who asked since the beginning of the hour of this time, in milliseconds since 1970; since
    /// one day ago when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
    /// Those after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// At most so many; 100 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// Which client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClientOf {
    /// An address, a prefix, or a pseudonym, as it is recorded.
    pub client: String,
    /// Not before this time, in milliseconds since 1970; one day ago when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
}

/// A client that asked lately, as far as it is recorded (`recorder.clients`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ClientSeen {
    /// The address; of a prefix the first one; a pseudonym of the day; `unknown`; or `others`, who
    /// are not told apart.
    pub client: String,
    /// The name that the setting `local` gives the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Queries.
    pub queries: u64,
    /// Queries of these that were blocked.
    pub blocked: u64,
    /// When the newest was answered, in milliseconds since 1970; absent if there was no time to
    /// look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ms: Option<i64>,
    /// Since when all of its queries were counted, in milliseconds since 1970, if there was no time
    /// for older ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_from_ms: Option<i64>,
}

/// What became of the queries of a client: of the newest 20,000, as far as a quarter of a second
/// goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ClientShown {
    /// As it is recorded.
    pub client: String,
    /// The name that the setting `local` gives the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Queries that were counted.
    pub queries: u64,
    /// By what became of them, the most frequent first.
    pub outcomes: Vec<Tally>,
    /// By type.
    pub types: Vec<Tally>,
    /// The twenty names that were asked for most.
    pub names: Vec<Tally>,
    /// The twenty names that were blocked most.
    pub blocked: Vec<Tally>,
    /// When the newest was answered, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ms: Option<i64>,
    /// Since when all were counted, in milliseconds since 1970, if there are older ones that were
    /// not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_from_ms: Option<i64>,
}
