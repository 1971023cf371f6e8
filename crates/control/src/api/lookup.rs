//! A reply in presentation form.

use serde::{Deserialize, Serialize};

/// What `gannet query --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Lookup {
    /// Who answered.
    pub server: String,
    /// `udp` or `tcp`.
    pub transport: String,
    /// From the first packet sent to the reply.
    pub time_ms: f64,
    /// The reply's length.
    pub size_octets: usize,
    /// The response code's mnemonic, or `RCODE` and the number.
    pub status: String,
    /// The response code.
    pub rcode: u16,
    /// The header flags that are set, in header order.
    pub flags: Vec<String>,
    /// What was asked.
    pub question: Question,
    /// The answer section.
    pub answer: Vec<Record>,
    /// The authority section.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authority: Vec<Record>,
    /// The additional section without OPT.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional: Vec<Record>,
    /// Extended errors (RFC 8914).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extended_errors: Vec<ExtendedError>,
}

/// A question in presentation form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Question {
    /// The name, with its final dot.
    pub name: String,
    /// The type.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The class.
    pub class: String,
}

/// A record in presentation form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// The owner, with its final dot.
    pub name: String,
    /// Seconds the record may be kept.
    pub ttl: u32,
    /// The class.
    pub class: String,
    /// The type.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The data.
    pub data: String,
}

/// An extended error (RFC 8914).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExtendedError {
    /// The code.
    pub code: u16,
    /// What the code means.
    pub name: String,
    /// What the server adds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}
