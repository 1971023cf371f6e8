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

/// Which upstream server to measure, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProbeAsked {
    /// The server as in the settings: one of the configuration, and for admins any other.
    pub server: String,
    /// The query name; further queries use random names below it. `example.com` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A name with valid signatures; `example.com` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<String>,
    /// A name with invalid signatures; `dnssec-failed.org` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bogus: Option<String>,
    /// Queries to send one after the other, 20 at most; 5 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u16>,
    /// How long to wait for each reply, 5000 at most; 2000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
}

/// What an upstream server showed to prove who it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ShownCertificate {
    /// Whom it is for, as RFC 4514 writes it; empty if it does not say.
    pub subject: String,
    /// The names and addresses that it is for.
    pub names: Vec<String>,
    /// From when it is valid (RFC 3339).
    pub begins: String,
    /// Until when (RFC 3339).
    pub ends: String,
    /// Seconds until then; below zero when that is past.
    pub ends_in_s: i64,
    /// The SHA-256 of its public key, as `pins` has it (RFC 7858).
    pub pin: String,
}

/// What `gannet probe` found out about an upstream server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Probe {
    /// The server as written.
    pub server: String,
    /// Where it was asked.
    pub address: String,
    /// `udp`, `tcp`, `tls`, `https`, `h3`, `quic`, `dnscrypt` or `odoh`.
    pub transport: String,
    /// What it showed to prove who it is, also when that was not enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<ShownCertificate>,
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
    /// The response code of the first reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcode: Option<String>,
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
