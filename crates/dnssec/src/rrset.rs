//! RRsets in canonical form (RFC 4034 §6): what a signature covers.

use std::ops::Range;

use wire::{Class, Malformed, Name, NameBuf, Rtype};

use crate::rrsig::Rrsig;

/// An RRset whose records are in canonical form and order, each once.
#[derive(Debug)]
pub struct Rrset {
    owner: NameBuf,
    rtype: Rtype,
    class: Class,
    octets: Vec<u8>,
    records: Vec<Range<usize>>,
}

impl Rrset {
    /// Begins an RRset without records.
    pub fn new(owner: Name<'_>, rtype: Rtype, class: Class) -> Self {
        Self { owner: owner.to_buf(), rtype, class, octets: Vec::new(), records: Vec::new() }
    }

    /// Returns the RRset of data that stands on its own: names in full, letter case as it came.
    pub fn of<'d>(
        owner: Name<'_>,
        rtype: Rtype,
        data: impl IntoIterator<Item = &'d [u8]>,
    ) -> Result<Self, Malformed> {
        let mut rrset = Self::new(owner, rtype, Class::IN);
        for rdata in data {
            rrset.push(rdata, 0..rdata.len())?;
        }
        Ok(rrset)
    }

    /// Adds a record whose data stands in a message. One that is there already changes nothing (RFC
    /// 4034 §6.3).
    pub fn push(&mut self, message: &[u8], rdata: Range<usize>) -> Result<(), Malformed> {
        let start = self.octets.len();
        if let Err(malformed) = wire::rdata::write_canonical(self.rtype, message, rdata, &mut self.octets) {
            self.octets.truncate(start);
            return Err(malformed);
        }
        let octets = &self.octets;
        let new = octets.get(start..).unwrap_or(&[]);
        let place = self.records.binary_search_by(|range| octets.get(range.clone()).unwrap_or(&[]).cmp(new));
        match place {
            Ok(_) => self.octets.truncate(start),
            Err(place) => self.records.insert(place, start..self.octets.len()),
        }
        Ok(())
    }

    /// Returns the owner, letter case as it came.
    pub fn owner(&self) -> Name<'_> {
        self.owner.as_name()
    }

    /// Returns the type.
    pub const fn rtype(&self) -> Rtype {
        self.rtype
    }

    /// Walks the data of the records in canonical form and order.
    pub fn data(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().map(|range| self.octets.get(range.clone()).unwrap_or(&[]))
    }

    /// Appends the octets that a signature covers (RFC 4034 §3.1.8.1, §6.2): the signature's own
    /// data without the signature, then each record with the owner it was signed with and its
    /// original TTL.
    ///
    /// Returns false if the signature says more labels than the owner has.
    pub fn write_signed(&self, rrsig: &Rrsig<'_>, out: &mut Vec<u8>) -> bool {
        let owner = self.owner.as_name().to_folded();
        let Some(owner) = signed_owner(owner.as_name(), rrsig.labels) else { return false };
        rrsig.write_head(out);
        for data in self.data() {
            out.extend_from_slice(owner.as_name().as_bytes());
            out.extend_from_slice(&self.rtype.0.to_be_bytes());
            out.extend_from_slice(&self.class.0.to_be_bytes());
            out.extend_from_slice(&rrsig.original_ttl.to_be_bytes());
            out.extend_from_slice(&(data.len() as u16).to_be_bytes());
            out.extend_from_slice(data);
        }
        true
    }
}

/// Returns the labels that a signature over this owner says: neither the root nor a leading `*`
/// counts (RFC 4034 §3.1.3).
pub(crate) fn signed_labels(owner: Name<'_>) -> u8 {
    let count = owner.label_count() as u8;
    if owner.labels().next() == Some(b"*") { count - 1 } else { count }
}

/// Returns the owner that a signature was made with: the wildcard, where it says fewer labels (RFC
/// 4035 §5.3.2).
fn signed_owner(owner: Name<'_>, labels: u8) -> Option<NameBuf> {
    match signed_labels(owner).checked_sub(labels)? {
        0 => Some(owner.to_buf()),
        _ => NameBuf::below(b"\x01*", owner.suffix(usize::from(labels))).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_sorted_and_there_once() {
        let owner = NameBuf::from_text("Example.org").expect("a name");
        let data: [&[u8]; 4] =
            [b"\x00\x0a\x01B\x00", b"\x00\x0a\x01a\x00", b"\x00\x05\x01c\x00", b"\x00\x0a\x01b\x00"];
        let rrset = Rrset::of(owner.as_name(), Rtype::MX, data).expect("MX records");
        let found: Vec<&[u8]> = rrset.data().collect();
        let expect: [&[u8]; 3] = [b"\x00\x05\x01c\x00", b"\x00\x0a\x01a\x00", b"\x00\x0a\x01b\x00"];
        assert_eq!(found, expect);
        assert!(Rrset::of(owner.as_name(), Rtype::MX, [&b"\x00\x0a\x01"[..]]).is_err());
    }

    #[test]
    fn a_signature_with_fewer_labels_is_one_of_the_wildcard() {
        let check = |owner: &str, labels, expect: Option<&str>| {
            let owner = NameBuf::from_text(owner).expect("a name");
            let found = signed_owner(owner.as_name(), labels).map(|name| name.to_string());
            assert_eq!(found.as_deref(), expect, "{owner} {labels}");
        };
        check("a.b.example.org", 4, Some("a.b.example.org."));
        check("a.b.example.org", 2, Some("*.example.org."));
        check("*.example.org", 2, Some("*.example.org."));
        check("*.example.org", 1, Some("*.org."));
        check("a.b.example.org", 5, None);
        check(".", 0, Some("."));
        check("org", 0, Some("*."));
    }
}
