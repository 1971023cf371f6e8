//! How the server is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ChangesSummary;

/// How the server is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// The server's process.
    pub pid: u32,
    /// Seconds since it was ready.
    pub uptime_s: u64,
    /// Worker threads.
    pub workers: usize,
    /// Queries waiting for other servers, all workers together.
    pub waiting: u64,
    /// Where it answers, `address:port` and transport.
    pub listeners: Vec<Listener>,
    /// Whom it asks, by pool.
    pub upstreams: BTreeMap<String, Vec<Upstream>>,
    /// The zones.
    #[serde(default)]
    pub zones: ZonesSummary,
    /// The configuration in use.
    pub configuration: Configuration,
    /// Queries a second, over the last ten seconds at most.
    #[serde(default)]
    pub queries_per_second: f64,
    /// Octets of memory in use (resident), if the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_octets: Option<u64>,
    /// The lists of sets, all together.
    #[serde(default)]
    pub lists: ListsSummary,
    /// The certificates that clients are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<Certificate>,
    /// The database of recorded queries, if they are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder: Option<String>,
    /// Addresses where this API could not be opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_listeners: Vec<MissingListener>,
    /// Whether rows of the audit log could not be written the last time.
    #[serde(default)]
    pub is_audit_failing: bool,
}

/// An address where the API could not be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MissingListener {
    /// Address and port.
    pub at: String,
    /// Why not.
    pub why: String,
}

/// Whether the server does its work, for whoever asks: no more than words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Health {
    /// Whether clients are answered. Otherwise the status is 503.
    pub is_serving: bool,
    /// Whether something is wrong all the same.
    pub is_degraded: bool,
    /// What is wrong: `ending` (the server is about to end), `worker` (a thread that answers has
    /// ended), `settings` (the file and the changes do not go together: what ran last is in use),
    /// `reload` (the last reload was refused), `store` (changes cannot be kept), `audit` (the audit
    /// log cannot be written), `bans` (a ban of the store is not in effect), `listener` (the API
    /// could not be opened at an address).
    pub troubles: Vec<String>,
}

/// The lists of sets, all together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListsSummary {
    /// Sets.
    pub sets: u64,
    /// Their rules.
    pub rules: u64,
    /// Lists that come from web servers.
    pub fetched: u64,
    /// Those of them of which there is no copy yet.
    pub missing: u64,
    /// Those whose last download failed.
    pub failing: u64,
}

/// A certificate that clients are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Certificate {
    /// Its file.
    pub file: String,
    /// The names that it is for.
    pub names: Vec<String>,
    /// Until when it is valid (RFC 3339).
    pub ends: String,
    /// Seconds until then; below zero when that is past.
    pub ends_in_s: i64,
}

/// How many zones there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ZonesSummary {
    /// Those that are served.
    pub served: usize,
    /// Those with which something is wrong.
    pub failing: usize,
    /// The names of some of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// One listening address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Listener {
    /// Address and port, or the path of a Unix socket.
    pub at: String,
    /// What is spoken there, such as `udp`.
    pub transport: String,
}

/// One upstream server as the workers see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Upstream {
    /// The server as configured.
    pub server: String,
    /// `up`, `down` or `untried`.
    pub health: String,
    /// The smoothed round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<f64>,
    /// Why no connection could be made, if it is down for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Queries sent to it.
    pub queries: u64,
    /// Queries it did not answer or answered with a failure.
    pub failures: u64,
}

/// The configuration in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Configuration {
    /// The file; absent when the server runs on its defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The revision of the configuration in use; the one at the start is 1.
    pub revision: u64,
    /// Seconds since it was adopted.
    pub age_s: u64,
    /// Whether the last reload was refused because of mistakes in the file.
    pub is_last_reload_refused: bool,
    /// Settings that were changed while the server ran.
    #[serde(default)]
    pub changes: ChangesSummary,
}

/// Counters by group, summed over the workers.
pub type Stats = BTreeMap<String, BTreeMap<String, u64>>;
