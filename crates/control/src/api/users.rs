//! Users of the API.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A text that nobody may read but whom it is for: a password, or a code.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A user to add.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UserAdd {
    /// The name to log in with.
    pub name: String,
    /// What they may do: `viewer`, `helper`, `operator` or `admin`.
    pub role: String,
    /// The password; without one they cannot log in with a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
}

/// Which user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UserName {
    /// Their name.
    pub name: String,
    /// What it is made for, as its ETag has it, or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// A password for a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UserPassword {
    /// Their name.
    pub name: String,
    /// The new password.
    pub password: Secret,
    /// What it is made for, as the user's ETag has it, or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// A role for a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UserRole {
    /// Their name.
    pub name: String,
    /// What they may do from now on.
    pub role: String,
    /// What it is made for, as its ETag has it, or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// A user, without their password: the server does not have that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct User {
    /// The name to log in with.
    pub name: String,
    /// What they may do.
    pub role: String,
    /// Whether they can log in with a password.
    pub has_password: bool,
    /// Whether they need a one-time code besides.
    pub has_totp: bool,
    /// Recovery codes that they have left; absent without one-time codes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_codes: Option<u64>,
    /// How many sessions they have.
    pub sessions: u64,
    /// Who added them, or changed their role last.
    pub by: String,
    /// When (RFC 3339).
    pub at: String,
}

impl User {
    /// Returns what they are known by until somebody changes what they may do.
    pub fn tag(&self) -> String {
        super::tag(&[&self.role, &self.by, &self.at])
    }
}

/// A user as the server keeps them, by revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UserKept {
    /// What they may do.
    pub role: String,
}

/// What a user proves themselves with, as the server keeps it: apart from revisions, so that what
/// is replaced is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CredentialsKept {
    /// What the password is known by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<PasswordKept>,
    /// What one-time codes are made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totp: Option<TotpKept>,
    /// Prefixes that they have logged in from lately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
}

/// What a password is known by, and never itself: Argon2id (RFC 9106).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PasswordKept {
    /// Memory.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
    /// The salt, in hexadecimal digits.
    pub salt: String,
    /// The tag, in hexadecimal digits.
    pub tag: String,
}

/// What one-time codes are made of (RFC 6238).
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TotpKept {
    /// The secret that the user's device has, too, in hexadecimal digits.
    pub secret: String,
    /// The step of the code that was used last: none is good twice.
    pub last_step: u64,
    /// The SHA-256 of each recovery code that is left.
    pub recovery: Vec<String>,
}

impl fmt::Debug for TotpKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TotpKept").field("last_step", &self.last_step).finish_non_exhaustive()
    }
}

/// One-time codes that a user is to have, once a code was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TotpBegun {
    /// What the user's device reads: with a secret, shown here and never again.
    pub uri: Secret,
    /// Until when a code has to be shown (RFC 3339).
    pub until: String,
}

/// The first code of a user's device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TotpConfirm {
    /// The user.
    pub name: String,
    /// The code.
    pub code: Secret,
}

/// One-time codes that a user needs from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TotpConfirmed {
    /// Codes for when the device is lost, each good once; shown here and never again.
    pub recovery_codes: Vec<Secret>,
}

macro_rules! kept {
    ($($kind:ty),*) => {$(
        impl $kind {
            /// Reads what [`to_text`](Self::to_text) has written; an error says why it is
            /// something else.
            pub fn parse(text: &str) -> Result<Self, String> {
                serde_json::from_str(text).map_err(|error| error.to_string())
            }

            /// Returns it as text.
            pub fn to_text(&self) -> String {
                super::to_json_line(self)
            }
        }
    )*};
}

kept!(UserKept, CredentialsKept, super::SessionKept);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_printed() {
        let password = Secret("correct horse battery staple".to_owned());
        let asked = UserPassword { name: "anna".to_owned(), password, tag: None };
        assert_eq!(format!("{asked:?}"), "UserPassword { name: \"anna\", password: Secret, tag: None }");
    }
}
