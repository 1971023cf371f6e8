//! What authorities are asked over: requests and responses of HTTPS, without the client.

use std::path::Path;

/// The media type of signed requests (RFC 8555 §6.2).
pub const SIGNED: &str = "application/jose+json";
/// Octets of a response that are read: a chain of certificates has a few thousand.
pub const RESPONSE_OCTETS_MAX: u64 = 256 * 1024;

/// A request to an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// `GET`, `HEAD` or `POST`.
    pub method: &'static str,
    /// Where to.
    pub url: &'a str,
    /// The body of a signed request, of the type [`SIGNED`].
    pub body: Option<String>,
}

/// What an authority answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The field `Replay-Nonce`.
    pub nonce: Option<String>,
    /// The field `Location`.
    pub location: Option<String>,
    /// The field `Retry-After`.
    pub retry_after: Option<String>,
    /// The body, of at most [`RESPONSE_OCTETS_MAX`].
    pub body: Vec<u8>,
}

/// Speaks HTTPS with authorities.
pub trait Web: Send + Sync {
    /// Begins to speak with one authority, whose server one of those in a file vouches for, or one
    /// that Mozilla trusts.
    ///
    /// # Errors
    ///
    /// The file cannot be used.
    fn session(&self, roots: Option<&Path>) -> Result<Box<dyn Session>, String>;
}

/// Speaks with one authority.
pub trait Session {
    /// Sends a request, and follows no redirection: a signed request names the URL that it is for.
    /// Blocks, for half a minute at most.
    ///
    /// # Errors
    ///
    /// Why there is no response.
    fn send(&self, request: Request<'_>) -> Result<Response, String>;
}
