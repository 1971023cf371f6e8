//! The RRset of a range: as it is kept, and the view of a copy.

use super::NewProof;
use crate::rrsets::Octets;
use wire::canonical::Key;
use wire::{Name, Rtype};

/// The hash of a name (RFC 5155 §5).
pub type Hash = [u8; 20];

/// How a range relates to the name that was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Its owner is that name: the name exists, and the types say what with.
    Matches,
    /// The name lies in the range: it does not exist.
    Covers,
}

/// An NSEC or NSEC3 RRset, copied to the caller's buffer.
#[derive(Clone, Copy)]
pub struct Proof<'b> {
    /// How it relates to the name that was looked for.
    pub coverage: Coverage,
    /// Its owner, lower case.
    pub owner: Name<'b>,
    /// NSEC or NSEC3.
    pub rtype: Rtype,
    /// The data of its record.
    pub rdata: &'b [u8],
    /// Seconds left, at least one.
    pub ttl: u32,
    signatures: u8,
    data: &'b [u8],
}

impl<'b> Proof<'b> {
    /// Walks the data of its RRSIG records.
    pub const fn signatures(&self) -> Octets<'b> {
        Octets::new(self.data, self.signatures as u16)
    }

    /// Returns whether its owner has records of a type.
    pub fn has_type(&self, rtype: Rtype) -> bool {
        let types = match self.rtype {
            Rtype::NSEC3 => Nsec3::parse(self.rdata).map(|nsec3| nsec3.types),
            _ => Nsec::parse(self.rdata).map(|nsec| nsec.types),
        };
        types.is_some_and(|types| has_type(types, rtype))
    }
}

/// An RRset as it is kept: `owner, type:16, data length:16, data, signatures:8, each with its
/// length:16`.
pub(super) struct Stored(Box<[u8]>);

impl Stored {
    /// Lays out what was found to be well formed, and so is shorter than a message.
    pub(super) fn new(new: &NewProof<'_>) -> Self {
        let owner = new.owner.to_folded();
        let mut octets = owner.as_bytes().to_vec();
        octets.extend(new.rtype.0.to_be_bytes());
        octets.extend((new.rdata.len() as u16).to_be_bytes());
        octets.extend_from_slice(new.rdata);
        octets.push(new.signatures.len() as u8);
        for signature in new.signatures {
            octets.extend((signature.len() as u16).to_be_bytes());
            octets.extend_from_slice(signature);
        }
        Self(octets.into())
    }

    pub(super) fn octets(&self) -> usize {
        self.0.len()
    }

    pub(super) fn owner(&self) -> Option<Name<'_>> {
        view(&self.0, Coverage::Matches, 0).map(|proof| proof.owner)
    }

    pub(super) fn rdata(&self) -> &[u8] {
        view(&self.0, Coverage::Matches, 0).map_or(&[], |proof| proof.rdata)
    }

    pub(super) fn copy<'b>(&self, coverage: Coverage, ttl: u32, out: &'b mut Vec<u8>) -> Option<Proof<'b>> {
        out.clear();
        out.extend_from_slice(&self.0);
        view(out, coverage, ttl)
    }
}

fn view(octets: &[u8], coverage: Coverage, ttl: u32) -> Option<Proof<'_>> {
    let (owner, rest) = Name::parse(octets).ok()?;
    let (&[t0, t1, l0, l1], rest) = rest.split_first_chunk()?;
    let (rdata, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))?;
    let (&signatures, data) = rest.split_first()?;
    let rtype = Rtype(u16::from_be_bytes([t0, t1]));
    Some(Proof { coverage, owner, rtype, rdata, ttl, signatures, data })
}

/// The data of an NSEC record (RFC 4034 §4).
pub(super) struct Nsec<'a> {
    pub(super) next: Name<'a>,
    types: &'a [u8],
}

impl<'a> Nsec<'a> {
    pub(super) fn parse(rdata: &'a [u8]) -> Option<Self> {
        let (next, types) = Name::parse(rdata).ok()?;
        Some(Self { next, types })
    }

    /// Returns whether the range from `owner` on proves that `name`, which is after it, does not
    /// exist; `key` is the name's.
    pub(super) fn covers(&self, owner: Name<'_>, zone: Name<'_>, name: Name<'_>, key: &[u8]) -> bool {
        // The last range of a zone ends with its apex.
        let is_inside = self.next == zone || key < Key::new(self.next.as_bytes()).as_bytes();
        let is_delegation = has_type(self.types, Rtype::NS) && !has_type(self.types, Rtype::SOA);
        let is_cut_off = is_delegation || has_type(self.types, Rtype::DNAME);
        is_inside && name.is_at_or_below(zone) && !(is_cut_off && name.is_at_or_below(owner))
    }
}

/// The data of an NSEC3 record (RFC 5155 §3), SHA-1 only.
pub(super) struct Nsec3<'a> {
    pub(super) flags: u8,
    pub(super) iterations: u16,
    pub(super) salt: &'a [u8],
    pub(super) next: &'a Hash,
    types: &'a [u8],
}

impl<'a> Nsec3<'a> {
    pub(super) fn parse(rdata: &'a [u8]) -> Option<Self> {
        let (&[algorithm, flags, i0, i1, salt], rest) = rdata.split_first_chunk()?;
        let (salt, rest) = rest.split_at_checked(usize::from(salt))?;
        let (&len, rest) = rest.split_first()?;
        let (next, types) = rest.split_first_chunk()?;
        (algorithm == 1 && usize::from(len) == next.len()).then_some(Self {
            flags,
            iterations: u16::from_be_bytes([i0, i1]),
            salt,
            next,
            types,
        })
    }

    /// Returns whether the range from `owner` on covers a hash, which is not its owner's.
    pub(super) fn covers(&self, owner: &Hash, hash: &Hash) -> bool {
        if owner < self.next { owner < hash && hash < self.next } else { owner < hash || hash < self.next }
    }
}

/// Returns whether a type is in a bit map (RFC 4034 §4.1.2).
fn has_type(mut windows: &[u8], rtype: Rtype) -> bool {
    let [window, low] = rtype.0.to_be_bytes();
    // Ends: each turn takes two octets and more.
    while let Some((&[number, len], rest)) = windows.split_first_chunk() {
        let Some((bits, rest)) = rest.split_at_checked(usize::from(len)) else { return false };
        if number == window {
            return bits.get(usize::from(low / 8)).is_some_and(|bits| bits & (0x80 >> (low % 8)) != 0);
        }
        windows = rest;
    }
    false
}
