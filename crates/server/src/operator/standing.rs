//! Whether what somebody has shown still counts: what lasts, such as a live tail, ends with it.

use super::tokens::sha256;
use super::{Operator, unix_seconds};
use control::Role;

/// What somebody has shown to prove who they are, by its digest.
#[derive(Clone, Debug)]
pub enum Shown {
    /// A token.
    Token(String),
    /// A session.
    Session(String),
}

impl Shown {
    /// Returns that it is this token.
    pub fn token(text: &str) -> Self {
        Self::Token(sha256(text))
    }

    /// Returns that it is the session with this secret.
    pub fn session(secret: &str) -> Self {
        Self::Session(sha256(secret))
    }
}

impl Operator {
    /// Returns whether what somebody has shown still gives them this role. It is no use of it: a
    /// session that nobody uses ends.
    pub fn still_shows(&self, shown: &Shown, role: Role) -> bool {
        let now = unix_seconds();
        let found = match shown {
            Shown::Token(hash) => self.role_of_token(hash, now),
            Shown::Session(hash) => self.role_of_session(hash, now),
        };
        found == Some(role)
    }
}
