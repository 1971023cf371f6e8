//! A query taken through the policy, and what happened to it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ExtendedError, Question, Record};

/// A query to explain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Explain {
    /// The name.
    pub name: String,
    /// The type, by mnemonic or `TYPE` and number.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The client's address; this machine when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The listener, by name; the first when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listener: Option<String>,
    /// Whether the query comes over TCP.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_tcp: bool,
    /// Whether the client asks for DNSSEC records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_dnssec: bool,
}

/// What happened to a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Explained {
    /// What was asked.
    pub question: Question,
    /// The client's address.
    pub client: String,
    /// What happened, in order.
    pub steps: Vec<ExplainedStep>,
    /// What the client gets; absent when it gets nothing, or when nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<ExplainedReply>,
    /// Whether the way ends before an upstream that was not asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut_short: bool,
}

/// One thing that happened to a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ExplainedStep {
    /// The file that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The condition or action as it is written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// For a condition: whether it held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// What came of it.
    pub outcome: String,
}

/// What a client gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ExplainedReply {
    /// The response code's mnemonic, or `RCODE` and the number.
    pub status: String,
    /// The header flags that are set, in header order.
    pub flags: Vec<String>,
    /// The answer section.
    pub answer: Vec<Record>,
    /// The authority section.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authority: Vec<Record>,
    /// Extended errors (RFC 8914).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extended_errors: Vec<ExtendedError>,
}
