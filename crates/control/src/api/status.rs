//! How the server is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How the server is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// The configuration in use.
    pub configuration: Configuration,
}

/// One listening address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Listener {
    /// Address and port, or the path of a Unix socket.
    pub at: String,
    /// What is spoken there, such as `udp`.
    pub transport: String,
}

/// One upstream server as the workers see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Configuration {
    /// The file; absent when the server runs on its defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The number of the configuration in use; the one at the start is 1.
    pub generation: u64,
    /// Seconds since it was adopted.
    pub age_s: u64,
    /// Whether the last reload was refused because of mistakes in the file.
    pub is_last_reload_refused: bool,
}

/// Counters by group, summed over the workers.
pub type Stats = BTreeMap<String, BTreeMap<String, u64>>;
