//! Names and questions that tasks keep: as long as they are, and shared.

use std::fmt;

use wire::{ClientSubnet, HashKey, Name, Rtype, SharedName};

/// A name in lower case on the heap. Tasks, fetches and indexes share one copy.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeapName(SharedName);

impl HeapName {
    /// Copies a name, in lower case.
    pub fn new(name: Name<'_>) -> Self {
        Self(SharedName::new(name))
    }

    /// Returns the name.
    pub fn as_name(&self) -> Name<'_> {
        self.0.as_name()
    }
}

/// What is asked, in class IN, as long as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HeapQuestion {
    pub(crate) name: HeapName,
    pub(crate) rtype: Rtype,
    /// Whether what nobody validated will do: for who sets CD, and for addresses of name servers.
    pub(crate) unchecked: bool,
    /// The client's subnet, for which servers may have an answer of its own.
    pub(crate) subnet: Option<ClientSubnet>,
}

impl HeapQuestion {
    /// Returns what equal questions are found by.
    pub(crate) fn hash(&self, key: &HashKey) -> u64 {
        let hash = key.hash(self.name.as_name(), u64::from(self.rtype.0) | u64::from(self.unchecked) << 16);
        match &self.subnet {
            Some(subnet) => {
                let bits = subnet.address_bits();
                key.mix(key.mix(hash, bits as u64), (bits >> 64) as u64 ^ u64::from(subnet.prefix))
            }
            None => hash,
        }
    }

    /// Returns whether another question is the same but for the client's subnet.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.name, self.rtype, self.unchecked) == (&other.name, other.rtype, other.unchecked)
    }

    /// Returns the question as who tells nothing of his client asks it.
    pub(crate) fn for_everybody(&self) -> Self {
        Self { subnet: None, ..self.clone() }
    }

    /// Returns the name whose closest zone has the answer: the parent has the DS records of a zone
    /// (RFC 4035 §3.1.4.1).
    pub(crate) fn place(&self) -> Name<'_> {
        let name = self.name.as_name();
        match self.rtype {
            Rtype::DS => name.parent().unwrap_or(Name::ROOT),
            _ => name,
        }
    }
}

impl fmt::Debug for HeapName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_name(), f)
    }
}

impl fmt::Display for HeapName {
    /// Writes the name with a dot at its end, special characters escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_name(), f)
    }
}
