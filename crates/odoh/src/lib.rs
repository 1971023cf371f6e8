//! Oblivious messages (RFC 9230): DNS that a relay carries and only the target can read.
//!
//! Never does I/O and keeps nothing between messages: octets in, octets out. The one suite that
//! every implementation has is the only one here: X25519, HKDF-SHA256, AES-128-GCM.

#![forbid(unsafe_code)]

mod client;
mod hpke;
mod message;
mod target;

pub use client::{Client, QueryContext};
pub use target::{ResponseContext, Target};

use std::fmt;

/// The media type of an oblivious message.
pub const MEDIA_TYPE: &str = "application/oblivious-dns-message";
/// Where a target's configurations are asked for (RFC 9230 says nothing; everybody does this).
pub const CONFIGS_PATH: &str = "/.well-known/odohconfigs";

/// What is wrong with a message or a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is not built as the RFC says.
    Malformed,
    /// It is for another key; a target answers 401 (RFC 9230 §4.3).
    Key,
    /// It cannot be decrypted: another key, or somebody changed it.
    Sealed,
    /// What fills it up is not zero.
    Padding,
    /// There is no configuration of a kind that we know.
    Suite,
    /// The machine has no randomness, or the message is longer than a message can be.
    Machine,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is not an oblivious message",
            Self::Key => "it is for another key",
            Self::Sealed => "it cannot be decrypted",
            Self::Padding => "its padding is not zero",
            Self::Suite => "there is no key for X25519, HKDF-SHA256 and AES-128-GCM",
            Self::Machine => "it cannot be encrypted",
        })
    }
}

impl std::error::Error for Wrong {}
