//! What was measured of an upstream server, and what a machine can do with AF_XDP.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a machine can do with AF_XDP, as `gannet xdp check --json` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct XdpCheck {
    /// Whether nothing is in the way.
    pub is_usable: bool,
    /// What was looked at, in order.
    pub facts: Vec<XdpFact>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct XdpFact {
    /// What.
    pub what: String,
    /// `ok`, `note` (could be better) or `no` (in the way).
    pub standing: String,
    /// What was found, and what to do if it is not good.
    pub found: String,
}

/// What `gannet probe` found out about an upstream server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Probe {
    /// The server as written.
    pub server: String,
    /// Where it was asked.
    pub address: String,
    /// What became of each transport, at its usual port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<Offered>,
    /// Why the rest could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The time to connect and to prove who is who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<f64>,
    /// The same once more, with what is remembered of the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_ms: Option<f64>,
    /// Queries answered, one after the other, over one connection.
    pub answered: u32,
    /// Queries not answered.
    pub unanswered: u32,
    /// How long the answers took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trips: Option<RoundTrips>,
    /// What became of many queries at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipelining: Option<Pipelining>,
    /// When the server closed the connection that had nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_after_ms: Option<f64>,
    /// How long was waited for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched_for_ms: Option<f64>,
    /// What becomes of a client's subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_subnet: Option<String>,
    /// What becomes of signatures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dnssec: Option<Dnssec>,
}

/// One transport of an upstream server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Offered {
    /// `udp`, `tcp`, `tls`, `https`, `h3` or `quic`.
    pub transport: String,
    /// Whether a query was answered.
    pub answers: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// How long answers took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RoundTrips {
    /// The shortest.
    pub least_ms: f64,
    /// The one in the middle.
    pub median_ms: f64,
    /// Longer than nineteen of twenty.
    pub p95_ms: f64,
    /// The longest.
    pub most_ms: f64,
}

/// What became of queries that were sent at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Pipelining {
    /// Queries sent.
    pub sent: u32,
    /// Queries answered.
    pub answered: u32,
    /// Whether a later one was answered before an earlier one.
    pub out_of_order: bool,
}

/// What an upstream server does with signatures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Dnssec {
    /// Whether they are in its answers.
    pub passes_signatures_on: bool,
    /// Whether it says that it checked them (AD).
    pub says_it_validated: bool,
    /// Whether it refuses what is wrongly signed; absent when that could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuses_bogus: Option<bool>,
}
