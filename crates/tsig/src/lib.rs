//! Signs messages with keys that two servers share, and checks signatures (TSIG, RFC 8945).
//!
//! Never reads the clock, never shows a secret, and believes nothing that is not signed.

#![forbid(unsafe_code)]

mod key;
mod mac;
mod record;
mod sign;
mod stream;

pub use key::{Algorithm, BadKey, Key, Keys};
pub use record::{Malformed, Signed, TsigError, is_signed, split};
pub use sign::{Refusal, Signer, sign_request, verify};
pub use stream::{Broken, UNSIGNED_MAX, Verifier};

/// Seconds that the clocks of two servers may be apart (RFC 8945 §10).
pub const FUDGE_S: u16 = 300;
