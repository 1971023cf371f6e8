//! Keys in files: BIND's `K*.key` and `K*.private`, PEM, and erldns's key sets.
//!
//! Texts with private keys are wiped when they are dropped.

pub mod bind;
pub mod erldns;
pub mod pem;

use std::fmt;
use std::sync::Arc;

use wire::{Name, NameBuf};

use crate::dnskey::{Dnskey, ENTRY_POINT};
use crate::secret::{SecretKey, Unusable};

/// A key of a zone, with what files say of it.
#[derive(Debug)]
pub struct ZoneKey {
    /// The zone.
    pub owner: NameBuf,
    /// The flags of its DNSKEY.
    pub flags: u16,
    /// The key; whoever signs with it shares it.
    pub secret: Arc<SecretKey>,
    /// When it does what.
    pub times: Times,
}

impl ZoneKey {
    /// Returns the data of its DNSKEY.
    pub fn dnskey(&self) -> Vec<u8> {
        self.secret.dnskey(self.flags)
    }

    /// Returns its tag.
    pub fn tag(&self) -> u16 {
        Dnskey::parse(&self.dnskey()).map_or(0, Dnskey::tag)
    }

    /// Returns whether it is a secure entry point: a KSK or CSK.
    pub const fn is_entry_point(&self) -> bool {
        self.flags & ENTRY_POINT != 0
    }

    /// Returns the name that its files have, without an ending: `Kexample.org.+013+12345`.
    pub fn file_stem(&self) -> String {
        let start = stem_start(self.owner.as_name());
        format!("{start}{:03}+{:05}", self.secret.algorithm().0, self.tag())
    }
}

/// Returns what the names of a zone's key files begin with.
pub fn stem_start(owner: Name<'_>) -> String {
    // A slash in a zone's name would lead to another directory.
    let owner = owner.to_folded().to_string().replace('/', "%2F");
    format!("K{owner}+")
}

/// When a key does what, in seconds since 1970 (the timing metadata of BIND's files).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// It was made.
    pub created: Option<u64>,
    /// It appears in the zone.
    pub publish: Option<u64>,
    /// It begins to sign.
    pub activate: Option<u64>,
    /// It is revoked.
    pub revoke: Option<u64>,
    /// It ends signing.
    pub inactive: Option<u64>,
    /// It leaves the zone.
    pub delete: Option<u64>,
    /// CDS and CDNSKEY for it appear.
    pub sync_publish: Option<u64>,
    /// CDS and CDNSKEY for it leave.
    pub sync_delete: Option<u64>,
}

impl Times {
    /// Returns whether the key is in the zone at `now`.
    pub fn is_published(&self, now: u64) -> bool {
        self.publish.is_none_or(|at| at <= now) && self.delete.is_none_or(|at| now < at)
    }

    /// Returns whether the key signs at `now`.
    pub fn is_active(&self, now: u64) -> bool {
        self.activate.or(self.publish).is_none_or(|at| at <= now)
            && self.inactive.is_none_or(|at| now < at)
            && self.delete.is_none_or(|at| now < at)
    }
}

/// What is wrong with a key's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFault {
    /// The line, from 1; 0 where it is about the whole.
    pub line: usize,
    /// What it is, in words.
    pub what: String,
    /// Whether all that is wrong is the size of the key.
    pub is_size: bool,
}

impl KeyFault {
    fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into(), is_size: false }
    }
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

impl std::error::Error for KeyFault {}

impl From<Unusable> for KeyFault {
    fn from(unusable: Unusable) -> Self {
        Self { is_size: unusable == Unusable::Size, ..Self::new(0, unusable.to_string()) }
    }
}
