//! Negative answers: that there is no name or no data, and which RRsets say so.
//!
//! The SOA and the records that prove absence are in the table by themselves, once for all negative
//! answers that lean on them. A negative answer has references to them: the name, relative to its
//! own, the type, and two octets of a keyed hash over the data. If an RRset has changed since, the
//! mark tells, and the negative answer counts as unproved.

use super::look::Rrset;
use super::rank::Rank;
use crate::Security;
use crate::relative::Names;
use wire::{Name, NameBuf, Rtype};

/// An RRset that a negative answer leans on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference<N> {
    /// Its owner.
    pub owner: N,
    /// Its type.
    pub rtype: Rtype,
    /// What [`Rrsets::reference_mark`](super::Rrsets::reference_mark) returns for its records.
    pub mark: u16,
}

/// Appends references.
pub(super) fn write_references(name: Name<'_>, references: &[Reference<Name<'_>>], out: &mut Vec<u8>) {
    let mut names = Names::near(name);
    for reference in references {
        names.write(reference.owner, out);
        out.extend_from_slice(&reference.rtype.0.to_be_bytes());
        out.extend_from_slice(&reference.mark.to_be_bytes());
    }
}

/// A negative answer, copied to the caller's buffer.
#[derive(Clone, Copy)]
pub struct Negative<'b>(pub(super) Rrset<'b>);

impl<'b> Negative<'b> {
    /// Returns the name that was asked for, lower case.
    pub const fn name(&self) -> Name<'b> {
        self.0.owner
    }

    /// Returns the type that was asked for; `None` if there is no such name.
    pub fn rtype(&self) -> Option<Rtype> {
        (self.0.rtype != super::key::NO_NAME).then_some(self.0.rtype)
    }

    /// Returns the seconds left, at least one.
    pub const fn ttl(&self) -> u32 {
        self.0.ttl
    }

    /// Returns where it was found.
    pub const fn rank(&self) -> Rank {
        self.0.rank
    }

    /// Returns what is known of the proof.
    pub const fn security(&self) -> Security {
        self.0.security
    }

    /// Returns the labels of the zone that signed the proof.
    pub const fn signer_labels(&self) -> u8 {
        self.0.signer_labels
    }

    /// Walks the RRsets that it leans on.
    pub const fn references(&self) -> References<'b> {
        References { names: Names::near(self.0.owner), data: self.0.data, left: self.0.records }
    }
}

/// The RRsets that a negative answer leans on, in the order in which they were given.
pub struct References<'b> {
    names: Names<'b>,
    data: &'b [u8],
    left: u16,
}

impl Iterator for References<'_> {
    type Item = Reference<NameBuf>;

    fn next(&mut self) -> Option<Reference<NameBuf>> {
        self.left = self.left.checked_sub(1)?;
        let owner = self.names.read(&mut self.data)?;
        let (&[t0, t1, m0, m1], rest) = self.data.split_first_chunk()?;
        self.data = rest;
        Some(Reference {
            owner,
            rtype: Rtype(u16::from_be_bytes([t0, t1])),
            mark: u16::from_be_bytes([m0, m1]),
        })
    }
}
