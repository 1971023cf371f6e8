//! Providers of OpenID Connect.

use std::path::PathBuf;

use schema::RoleWord;

/// A provider that proves who people are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcSettings {
    /// Who it is.
    pub issuer: String,
    /// What it knows this server as.
    pub client_id: String,
    /// A file with the secret that this server proves itself with.
    pub secret_file: Option<PathBuf>,
    /// The URL that browsers find this server at, without a slash at its end.
    pub url: String,
    /// Certificates of authorities that it is believed by.
    pub ca: Option<PathBuf>,
    /// What is asked of it, with spaces between.
    pub scopes: String,
    /// The claim with the name.
    pub name_claim: String,
    /// The claim with the groups.
    pub groups_claim: String,
    /// The role of each group.
    pub groups: Vec<(String, RoleWord)>,
}
