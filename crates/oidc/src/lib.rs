//! OpenID Connect: who somebody is, as a server proves that we believe.
//!
//! Never does I/O and reads no clock: what the other server says comes in as octets, what to ask it
//! goes out as text. Never believes an ID token that is not signed by one of the server's keys, for
//! us, in answer to this log-in, and now.
//!
//! The authorization code flow with PKCE, and nothing else of it (OpenID Connect Core 1.0 §3.1,
//! RFC 7636, RFC 9207): no implicit flow, no encrypted tokens, no symmetric signatures.

#![forbid(unsafe_code)]

mod encoding;
mod keys;
mod provider;
mod token;

pub use encoding::{base64url, unbase64url, url_encoded};
pub use keys::Keys;
pub use provider::{Flow, Provider, TokenRequest, id_token};
pub use token::{Expected, Person, Unproved, check};
