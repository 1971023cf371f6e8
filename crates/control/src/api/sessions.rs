//! Sessions of users of the API.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Secret;

/// What somebody logs in with: name and password, or a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogIn {
    /// Their name; with a link that is for somebody it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Their password; with a link, the one that they are to have from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// A one-time code, or a recovery code, for users who need one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Secret>,
    /// The code of a link that `gannet login` has made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Secret>,
}

/// Another password of one's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OwnPassword {
    /// The password that counts.
    pub password: Secret,
    /// The one that is to count: at least 12 characters.
    pub new_password: Secret,
}

/// Whom to make a link for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogInLinkFor {
    /// A user; the first one, who has no name yet, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// A link that logs somebody in, once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LogInLink {
    /// What to open in a browser.
    pub url: String,
    /// Until when it is good (RFC 3339).
    pub until: String,
}

/// A session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Session {
    /// What it is revoked by.
    pub id: String,
    /// Whose it is.
    pub user: String,
    /// The address that it began from.
    pub from: String,
    /// When it began (RFC 3339).
    pub at: String,
    /// When it was used last.
    pub last_used: String,
    /// When it ends, whatever it is used for; without a request for half an hour it ends earlier.
    pub until: String,
}

/// Who asks, and with which session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WhoAsks {
    /// As it stands in the history.
    pub name: String,
    /// What they may do.
    pub role: String,
    /// The session; absent for tokens and users of the control socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
}

/// Which session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SessionId {
    /// What it is revoked by.
    pub id: String,
}

/// A session as the server keeps it, under the SHA-256 of what shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SessionKept {
    /// Whose it is.
    pub user: String,
    /// What they may do; absent: what the user may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The address that it began from.
    pub from: String,
    /// When it began, in seconds since 1970.
    pub at: u64,
    /// When it was used, in seconds since 1970; noted now and then.
    pub used: u64,
}
