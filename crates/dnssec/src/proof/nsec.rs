//! What NSEC records prove: the order of names is that of RFC 4034 §6.1.

use wire::canonical::Key;
use wire::{Name, NameBuf, Rtype};

use super::{Delegation, DenialRecord, Unproved, delegation, hides_below, is_nxname, lack};

/// An NSEC: no name lies between owner and next, and the owner has the types.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nsec<'r> {
    owner: Name<'r>,
    next: Name<'r>,
    pub(super) types: &'r [u8],
    /// Whether the next name is the apex, because the owner is the last name.
    is_last: bool,
}

impl Nsec<'_> {
    /// Returns whether the name lies between owner and next, and the zone speaks for it.
    fn covers(&self, name: Name<'_>, key: &Key) -> bool {
        let key = key.as_bytes();
        Key::new(self.owner.as_bytes()).as_bytes() < key
            && (self.is_last || key < Key::new(self.next.as_bytes()).as_bytes())
            && !(name.is_at_or_below(self.owner) && hides_below(self.types))
    }
}

/// The NSEC records of one zone.
#[derive(Debug)]
pub(super) struct Names<'r> {
    zone: Name<'r>,
    records: Vec<Nsec<'r>>,
}

impl<'r> Names<'r> {
    pub(super) const fn new(zone: Name<'r>) -> Self {
        Self { zone, records: Vec::new() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes a record, if it can be one of the zone.
    pub(super) fn add(&mut self, record: &DenialRecord<'r>) {
        let Ok((next, types)) = Name::parse(record.rdata) else { return };
        let is_ours = record.owner.is_at_or_below(self.zone) && next.is_at_or_below(self.zone);
        let is_last = next == self.zone;
        let is_forward =
            is_last || Key::new(record.owner.as_bytes()).as_bytes() < Key::new(next.as_bytes()).as_bytes();
        if is_ours && is_forward {
            self.records.push(Nsec { owner: record.owner, next, types, is_last });
        }
    }

    /// Returns the record of a name.
    pub(super) fn matching(&self, name: Name<'_>) -> Option<&Nsec<'r>> {
        self.records.iter().find(|nsec| nsec.owner == name)
    }

    /// Returns whether a name has no records, but names below it do.
    fn is_empty_non_terminal(&self, name: Name<'_>) -> bool {
        let key = Key::new(name.as_bytes());
        self.records.iter().any(|nsec| nsec.covers(name, &key) && nsec.next.is_at_or_below(name))
    }

    /// Returns a record that proves that neither a name nor names below it exist.
    pub(super) fn absent(&self, name: Name<'_>) -> Result<&Nsec<'r>, Unproved> {
        let key = Key::new(name.as_bytes());
        let mut covering = self.records.iter().filter(|nsec| nsec.covers(name, &key)).peekable();
        if covering.peek().is_none() {
            return Err(self.matching(name).map_or(Unproved::Missing, |_| Unproved::Exists));
        }
        covering.find(|nsec| !nsec.next.is_at_or_below(name)).ok_or(Unproved::Exists)
    }

    /// Returns the wildcard that would stand in for a name that a record proves absent: it is below
    /// the closest encloser, the longest ancestor that the name has in common with the owner or the
    /// next name.
    fn wildcard(nsec: &Nsec<'_>, name: Name<'_>) -> Result<NameBuf, Unproved> {
        let mut encloser = name;
        while !nsec.owner.is_at_or_below(encloser) && !nsec.next.is_at_or_below(encloser) {
            encloser = encloser.parent().ok_or(Unproved::Missing)?;
        }
        NameBuf::below(b"\x01*", encloser).map_err(|_| Unproved::Missing)
    }

    pub(super) fn name_error(&self, qname: Name<'_>) -> Result<(), Unproved> {
        if self.matching(qname).is_some_and(|nsec| is_nxname(nsec.types)) {
            return Ok(());
        }
        let wildcard = Self::wildcard(self.absent(qname)?, qname)?;
        self.absent(wildcard.as_name()).map(|_| ())
    }

    pub(super) fn no_data(&self, qname: Name<'_>, qtype: Rtype) -> Result<(), Unproved> {
        if let Some(nsec) = self.matching(qname) {
            return lack(nsec.types, qname, qtype);
        }
        if self.is_empty_non_terminal(qname) {
            return Ok(());
        }
        let wildcard = Self::wildcard(self.absent(qname)?, qname)?;
        match self.matching(wildcard.as_name()) {
            Some(nsec) => lack(nsec.types, wildcard.as_name(), qtype),
            None if self.is_empty_non_terminal(wildcard.as_name()) => Ok(()),
            None => Err(Unproved::Missing),
        }
    }

    pub(super) fn delegation(&self, name: Name<'_>) -> Result<Delegation, Unproved> {
        if let Some(nsec) = self.matching(name) {
            return delegation(nsec.types, name);
        }
        if !self.is_empty_non_terminal(name) {
            self.absent(name)?;
        }
        Ok(Delegation::NoCut)
    }
}
