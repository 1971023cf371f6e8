//! Keys: a name, an algorithm, a secret.

use std::fmt;
use std::sync::Arc;

use wire::{Name, NameBuf};

use crate::mac::Prepared;

/// What MACs are made with (RFC 8945 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC-MD5: for servers that know nothing better.
    Md5,
    /// HMAC-SHA-1.
    Sha1,
    /// HMAC-SHA-224.
    Sha224,
    /// HMAC-SHA-256.
    Sha256,
    /// HMAC-SHA-384.
    Sha384,
    /// HMAC-SHA-512.
    Sha512,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Md5, Self::Sha1, Self::Sha224, Self::Sha256, Self::Sha384, Self::Sha512];

    /// Returns the word for it in settings.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Md5 => "hmac-md5",
            Self::Sha1 => "hmac-sha1",
            Self::Sha224 => "hmac-sha224",
            Self::Sha256 => "hmac-sha256",
            Self::Sha384 => "hmac-sha384",
            Self::Sha512 => "hmac-sha512",
        }
    }

    /// Returns its name in messages, wire form, in lower case.
    pub const fn name(self) -> &'static [u8] {
        match self {
            Self::Md5 => b"\x08hmac-md5\x07sig-alg\x03reg\x03int\0",
            Self::Sha1 => b"\x09hmac-sha1\0",
            Self::Sha224 => b"\x0bhmac-sha224\0",
            Self::Sha256 => b"\x0bhmac-sha256\0",
            Self::Sha384 => b"\x0bhmac-sha384\0",
            Self::Sha512 => b"\x0bhmac-sha512\0",
        }
    }

    /// Returns how many octets a whole MAC has.
    pub const fn octets(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// Returns how many octets of a MAC there must be at least (RFC 8945 §5.2.2.1).
    pub const fn octets_min(self) -> usize {
        let half = self.octets() / 2;
        if half > 10 { half } else { 10 }
    }
}

/// Why there cannot be such a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadKey {
    /// The secret is empty.
    Empty,
    /// So few or so many octets of a MAC are not possible.
    Truncation,
}

/// A key that two servers share.
pub struct Key {
    name: NameBuf,
    algorithm: Algorithm,
    pub(crate) prepared: Prepared,
    /// Octets of a MAC that are sent, and that must be there at least.
    pub(crate) mac_octets: usize,
    secret: Box<[u8]>,
}

impl Key {
    /// Prepares a key. `mac_bits` is how much of a MAC is sent and demanded; all of it if `None`.
    pub fn new(
        name: Name<'_>,
        algorithm: Algorithm,
        secret: &[u8],
        mac_bits: Option<u16>,
    ) -> Result<Self, BadKey> {
        if secret.is_empty() {
            return Err(BadKey::Empty);
        }
        let mac_octets = mac_bits.map_or(algorithm.octets(), |bits| usize::from(bits / 8));
        let is_whole = mac_bits.is_none_or(|bits| bits.is_multiple_of(8));
        if !is_whole || !(algorithm.octets_min()..=algorithm.octets()).contains(&mac_octets) {
            return Err(BadKey::Truncation);
        }
        // RFC 8945 §4.2: names of keys are compared and digested in canonical form.
        Ok(Self {
            name: name.to_folded().as_name().to_buf(),
            algorithm,
            prepared: Prepared::new(algorithm, secret),
            mac_octets,
            secret: secret.into(),
        })
    }

    /// Returns its name, in lower case.
    pub fn name(&self) -> Name<'_> {
        self.name.as_name()
    }

    /// Returns its algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns how many octets a TSIG record with it takes at most.
    pub fn record_octets(&self) -> usize {
        // Type, class, TTL, length; time, fudge, MAC size, original ID, error, length of other
        // data; that data.
        self.name.as_name().len() + 10 + self.algorithm.name().len() + 16 + self.mac_octets + 6
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.algorithm == other.algorithm
            && self.mac_octets == other.mac_octets
            && self.secret == other.secret
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} {}, secret)", self.name, self.algorithm.word())
    }
}

/// The keys of a server, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys(Vec<Arc<Key>>);

impl Keys {
    /// Puts keys together; of two with the same name, the later one counts.
    pub fn new(keys: impl IntoIterator<Item = Arc<Key>>) -> Self {
        let mut all: Vec<Arc<Key>> = Vec::new();
        for key in keys {
            all.retain(|other| other.name() != key.name());
            all.push(key);
        }
        Self(all)
    }

    /// Finds a key.
    pub fn find(&self, name: Name<'_>) -> Option<&Arc<Key>> {
        self.0.iter().find(|key| key.name() == name)
    }

    /// Returns whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
