//! What is taken into the table, and for how long.

use super::proof::{Hash, Nsec, Nsec3};
use crate::rrsets::Partition;
use wire::canonical::Key;
use wire::serial::is_newer;
use wire::{Name, Rtype};

/// Flag of NSEC3: there may be unsigned delegations in its range (RFC 5155 §3.1.2.1).
const OPT_OUT: u8 = 1;

/// A validated NSEC or NSEC3 RRset of one record.
#[derive(Clone, Copy, Debug)]
pub struct NewProof<'a> {
    /// Whose it is.
    pub partition: Partition,
    /// The zone that signed it.
    pub zone: Name<'a>,
    /// Its owner.
    pub owner: Name<'a>,
    /// NSEC or NSEC3.
    pub rtype: Rtype,
    /// The data of its record, the name in it in full.
    pub rdata: &'a [u8],
    /// The data of its RRSIG records that were validated.
    pub signatures: &'a [&'a [u8]],
    /// Seconds that it came with.
    pub ttl: u32,
    /// The lesser of the TTL and the MINIMUM of the zone's SOA (RFC 8198 §5.4, RFC 9077).
    pub negative_ttl: u32,
}

/// Whether a range was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was.
    Yes,
    /// It was not.
    No(Untaken),
}

/// Why a range was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untaken {
    /// It covers next to nothing: it was made for one question.
    Minimal,
    /// There may be unsigned delegations in it.
    OptOut,
    /// It or a signature has no time left.
    Expired,
    /// Its names are not in the zone, another zone signed it, or it came from a wildcard.
    Foreign,
    /// It is neither NSEC nor NSEC3 with SHA-1, or not well formed.
    Malformed,
    /// It is too large for the table.
    Size,
}

/// Where a range goes.
pub(super) struct Parts {
    /// What tells the ranges of a zone apart: NSEC, or NSEC3 with its parameters.
    pub(super) kind: Vec<u8>,
    /// Where its owner is among these.
    pub(super) place: Vec<u8>,
    /// Where it ends.
    pub(super) end: Vec<u8>,
}

impl NewProof<'_> {
    /// Returns where the range goes and for how many seconds it may be used.
    pub(super) fn parts(&self, unix_now: u32) -> Result<(Parts, u32), Untaken> {
        if !self.owner.is_at_or_below(self.zone) {
            return Err(Untaken::Foreign);
        }
        let parts = match self.rtype {
            Rtype::NSEC => self.nsec_parts()?,
            Rtype::NSEC3 => self.nsec3_parts()?,
            _ => return Err(Untaken::Malformed),
        };
        let mut seconds = self.ttl.min(self.negative_ttl);
        let is_long = |data: &[u8]| data.len() > usize::from(u16::MAX);
        if self.signatures.is_empty()
            || self.signatures.len() > usize::from(u8::MAX)
            || is_long(self.rdata)
            || self.signatures.iter().any(|signature| is_long(signature))
        {
            return Err(Untaken::Malformed);
        }
        for signature in self.signatures {
            seconds = seconds.min(self.signed_for(signature, unix_now)?);
        }
        if seconds == 0 { Err(Untaken::Expired) } else { Ok((parts, seconds)) }
    }

    fn nsec_parts(&self) -> Result<Parts, Untaken> {
        let nsec = Nsec::parse(self.rdata).ok_or(Untaken::Malformed)?;
        if !nsec.next.is_at_or_below(self.zone) {
            return Err(Untaken::Foreign);
        }
        if is_minimal(self.owner, nsec.next) {
            return Err(Untaken::Minimal);
        }
        let key = |name: Name<'_>| Key::new(name.as_bytes()).as_bytes().to_vec();
        Ok(Parts { kind: vec![0], place: key(self.owner), end: key(nsec.next) })
    }

    fn nsec3_parts(&self) -> Result<Parts, Untaken> {
        let nsec3 = Nsec3::parse(self.rdata).ok_or(Untaken::Malformed)?;
        let owner = hash_of(self.owner).ok_or(Untaken::Malformed)?;
        if self.owner.parent() != Some(self.zone) {
            return Err(Untaken::Foreign);
        }
        if nsec3.flags & OPT_OUT != 0 {
            return Err(Untaken::OptOut);
        }
        if is_narrow(&owner, nsec3.next) {
            return Err(Untaken::Minimal);
        }
        let kind = kind_of_nsec3(nsec3.iterations, nsec3.salt);
        Ok(Parts { kind, place: owner.to_vec(), end: nsec3.next.to_vec() })
    }

    /// Returns the seconds for which a signature lets the range be used (RFC 4034 §3).
    fn signed_for(&self, signature: &[u8], unix_now: u32) -> Result<u32, Untaken> {
        let (head, rest) = signature.split_first_chunk::<18>().ok_or(Untaken::Malformed)?;
        let &[_, _, _, labels, o0, o1, o2, o3, e0, e1, e2, e3, ..] = head;
        let (signer, _) = Name::parse(rest).map_err(|_| Untaken::Malformed)?;
        let is_wildcard = self.owner.labels().next() == Some(b"*");
        if signer != self.zone || usize::from(labels) + usize::from(is_wildcard) != self.owner.label_count() {
            return Err(Untaken::Foreign);
        }
        let expiration = u32::from_be_bytes([e0, e1, e2, e3]);
        if !is_newer(expiration, unix_now) {
            return Err(Untaken::Expired);
        }
        Ok(u32::from_be_bytes([o0, o1, o2, o3]).min(expiration.wrapping_sub(unix_now)))
    }
}

/// Returns whether a range was made for one question. It begins just before or at the name that was
/// asked for and ends just after it: at `\000` below it, or with a zero octet or a row of `\255`
/// appended (RFC 4470 §3, RFC 9824 §3).
fn is_minimal(owner: Name<'_>, next: Name<'_>) -> bool {
    let ends_with =
        |name: Name<'_>, octet| name.labels().next().and_then(|label| label.last()) == Some(&octet);
    ends_with(next, 0) || ends_with(owner, u8::MAX)
}

/// Returns whether less than one part in 2^63 of all hashes is in a range. A zone with one name has
/// one that ends where it begins and covers all others.
fn is_narrow(owner: &Hash, next: &Hash) -> bool {
    let first = |hash: &Hash| hash.first_chunk().map_or(0, |octets| u64::from_be_bytes(*octets));
    owner != next && first(next).wrapping_sub(first(owner)) <= 1
}

pub(super) fn kind_of_nsec3(iterations: u16, salt: &[u8]) -> Vec<u8> {
    let [i0, i1] = iterations.to_be_bytes();
    [&[1, i0, i1, salt.len() as u8], salt].concat()
}

/// Returns the hash that the owner of an NSEC3 record stands for.
pub(super) fn hash_of(owner: Name<'_>) -> Option<Hash> {
    wire::text::read_base32_hex(owner.labels().next()?)?.try_into().ok()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use wire::NameBuf;

    #[test]
    fn ranges_that_were_made_for_one_question_are_known() {
        let check = |owner: &str, next: &str, expected| {
            let of = |text| NameBuf::from_text(text).expect("a name");
            assert_eq!(is_minimal(of(owner).as_name(), of(next).as_name()), expected, "{owner} {next}");
        };
        check("a.example", "c.example", false);
        check("example", "a.example", false);
        check("a.example", "example", false);
        check("b.example", "\\000.b.example", true);
        check("b.example", "b\\000.example", true);
        check("a\\255\\255.example", "c.example", true);
    }

    #[test]
    fn narrow_ranges_of_hashes_are_known() {
        let hash = |first: u8, last: u8| {
            let mut hash = [7; 20];
            (hash[0], hash[19]) = (first, last);
            hash
        };
        assert!(is_narrow(&hash(1, 1), &hash(1, 3)));
        assert!(!is_narrow(&hash(1, 1), &hash(1, 1)));
        assert!(!is_narrow(&hash(1, 1), &hash(2, 1)));
        assert!(!is_narrow(&hash(2, 1), &hash(1, 1)));
    }
}
