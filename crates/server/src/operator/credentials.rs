//! What somebody proves who they are with, and whether that is valid still: what lasts, such as a
//! live tail, ends with it.

use super::tokens::sha256;
use super::{Operator, unix_seconds};
use control::Role;

/// A token or a session, by its digest.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A token.
    Token(String),
    /// A session.
    Session(String),
}

impl Credential {
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
    /// Returns whether a credential is neither revoked nor expired, and still gives this role. It
    /// is no use of it: a session that nobody uses expires. Waits for no commit of the store.
    pub fn is_valid(&self, credential: &Credential, role: Role) -> bool {
        let now = unix_seconds();
        let found = match credential {
            Credential::Token(hash) => self.role_of_token(hash, now),
            Credential::Session(hash) => self.role_of_session(hash, now),
        };
        found == Some(role)
    }
}
