//! DNSCrypt version 2: certificates of resolvers, and messages sealed for them and by them.
//!
//! Never does I/O and reads no clock: octets in, octets out. Both key exchanges that resolvers
//! offer are here, XChaCha20 and the older XSalsa20 (draft-denis-dprive-dnscrypt).
//!
//! # Limitations
//!
//! Anonymising relays and the post-quantum key exchange of the later drafts are not here.

#![forbid(unsafe_code)]

mod certificate;
mod resolver;
mod sealing;
mod session;

pub use certificate::{CERTIFICATE_OCTETS, Certificate, PROVIDER_KEY_OCTETS, ProviderKey, newest, text};
pub use resolver::{
    QUERY_HEAD_OCTETS, QueryHead, RESPONSE_HEAD_OCTETS, ResolverKey, ResponseKey, datagram_limit, generate,
    public_key, response_octets,
};
pub use sealing::{KEY_OCTETS, NONCE_OCTETS, SharedKey, System, TAG_OCTETS};
pub use session::{Nonce, Session, Travel, is_response, pad, unpad};

use std::fmt;

/// What begins every response.
pub const RESOLVER_MAGIC: [u8; 8] = *b"r6fnvWj8";

/// What is wrong with a certificate or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is not built as the protocol says.
    Malformed,
    /// It is of a kind that we do not know.
    System,
    /// It is not signed with the provider's key.
    Signature,
    /// It cannot be decrypted: another key, or somebody changed it.
    Sealed,
    /// What fills it up is wrong.
    Padding,
    /// The resolver's key is a weak one.
    Key,
    /// The machine has no randomness.
    Machine,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is not of DNSCrypt",
            Self::System => "it is of a kind that is not known",
            Self::Signature => "it is not signed with the provider's key",
            Self::Sealed => "it cannot be decrypted",
            Self::Padding => "its padding is wrong",
            Self::Key => "its key is weak",
            Self::Machine => "it cannot be encrypted",
        })
    }
}

impl std::error::Error for Wrong {}
