//! Tokens of the API.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A token to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TokenAdd {
    /// What it is called, such as the program that gets it.
    pub name: String,
    /// What it may do: `viewer`, `helper`, `operator` or `admin`.
    pub role: String,
    /// Settings that it may change, with all below them. With these or `zones` it may change
    /// nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Zones that it may look after, with all below them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// Addresses and prefixes that it may be shown from; all when absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// How long it lasts; until it is revoked when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_s: Option<u64>,
}

/// Which token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TokenName {
    /// What it is called.
    pub name: String,
    /// What it is made for, as its ETag has it, or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// A token, without its text: the server does not have that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Token {
    /// What it is called.
    pub name: String,
    /// What it may do.
    pub role: String,
    /// Settings that it may change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Zones that it may look after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// Where it may be shown from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Who made it.
    pub by: String,
    /// When (RFC 3339).
    pub at: String,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Whether its time is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
    /// When it was used last; absent when it was not since the server was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<String>,
}

impl Token {
    /// Returns what it is known by: one that is made anew under its name is another.
    pub fn tag(&self) -> String {
        super::tag(&[&self.role, &self.by, &self.at, &self.paths.join(","), &self.zones.join(",")])
    }
}

/// A token that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TokenAdded {
    /// Its text, which is shown here and never again.
    pub secret: String,
    /// What it may do.
    pub token: Token,
}

/// A token as the server keeps it: what it is known by, and never itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TokenKept {
    /// The SHA-256 of its text in hexadecimal digits. Whoever reads it cannot use it: a token is no
    /// password that could be guessed.
    pub sha256: String,
    /// What it may do.
    pub role: String,
    /// Settings that it may change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Zones that it may look after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// Where it may be shown from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// When it ends, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl TokenKept {
    /// Reads what [`to_text`](Self::to_text) has written; an error says why it is something else.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Returns it as text.
    pub fn to_text(&self) -> String {
        super::to_json_line(self)
    }
}
