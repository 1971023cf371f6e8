//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Writes RRsets to the message, whole or not at all: as they stand in the zone, shortened by names
//! that are in the message already, rotated, with their signatures.

use wire::{Class, Cuts, Full, Header, Name, Section, Ttl, eq_ignore_case};

use super::Run;
use crate::block::{Layout, Records, Rrset};
use crate::zone::Zone;

impl Run<'_, '_> {
    /// Writes an RRset without names in its data, with its signatures if they are wanted; its owner
    /// stands at `place`.
    pub(crate) fn under(&mut self, section: Section, rrset: &Rrset<'_>, place: u16) -> Result<(), Full> {
        self.whole(|run| {
            run.writer.ready_under(section, rrset.count, rrset.records, place)?;
            run.signatures_under(section, rrset, place)
        })
    }

    /// Writes the signatures of an RRset whose owner stands at `place`, if they are wanted.
    pub(crate) fn signatures_under(
        &mut self,
        section: Section,
        rrset: &Rrset<'_>,
        place: u16,
    ) -> Result<(), Full> {
        if !self.asked.wants_dnssec || rrset.signature_count == 0 {
            return Ok(());
        }
        self.writer.ready_under(section, rrset.signature_count, rrset.signatures, place)
    }

    /// Returns where the apex of a zone is in the message, if a name in the zone was asked for.
    pub(crate) fn apex_at(&self, zone: &Zone) -> Option<u16> {
        let above = self.asked.qname.len().checked_sub(zone.apex().len())?;
        (!self.has_moved).then_some((Header::LEN + above) as u16)
    }

    /// Writes the SOA of a negative answer (RFC 2308 §3).
    pub(crate) fn negative(&mut self, zone: &Zone) -> Result<(), Full> {
        let negative = &zone.negative;
        let is_short = !negative.short.is_empty() && self.writer.can_point(negative.short.len());
        match self.apex_at(zone).filter(|_| is_short) {
            Some(apex_at) => {
                let (short, pointers) = (&negative.short, &negative.pointers);
                if usize::from(apex_at) == Header::LEN && self.writer.is_at_body() {
                    self.writer.ready(Section::Authority, 1, short)?;
                } else {
                    self.writer.ready_but_for(Section::Authority, short, pointers, usize::from(apex_at))?;
                }
                self.signatures_under(Section::Authority, &negative.rrset(), apex_at)?;
            }
            None => self.rrset(Section::Authority, zone.apex(), &negative.rrset())?,
        }
        self.prove_expansions()
    }

    /// Runs `f`; what it wrote stays only if all of it fits.
    #[inline]
    pub(crate) fn whole(&mut self, f: impl FnOnce(&mut Self) -> Result<(), Full>) -> Result<(), Full> {
        let mark = self.writer.mark();
        f(self).inspect_err(|_| self.writer.take_back(mark))
    }

    /// Writes an RRset, with its signatures if they are wanted.
    #[inline]
    pub(crate) fn rrset(&mut self, section: Section, owner: Name<'_>, rrset: &Rrset<'_>) -> Result<(), Full> {
        if !self.asked.wants_dnssec || rrset.signature_count == 0 {
            return self.unsigned(section, owner, rrset);
        }
        self.whole(|run| {
            let at = run.writer.len();
            run.unsigned(section, owner, rrset)?;
            match run.writer.place_of(at) {
                Some(place) => run.signatures_under(section, rrset, place),
                None => run.plain(section, owner, rrset.signatures, rrset.signature_count),
            }
        })
    }

    /// Writes an RRset without signatures.
    #[inline]
    pub(super) fn unsigned(
        &mut self,
        section: Section,
        owner: Name<'_>,
        rrset: &Rrset<'_>,
    ) -> Result<(), Full> {
        if self.rotation != 0 && rrset.count > 1 && section == Section::Answer {
            return self.rotated(section, owner, rrset);
        }
        match rrset.layout {
            Layout::Plain => self.plain(section, owner, rrset.records, rrset.count),
            Layout::Names { .. } => self.with_names(section, owner, rrset),
        }
    }

    /// Writes an RRset with names in its data, without signatures.
    #[inline(never)]
    fn with_names(&mut self, section: Section, owner: Name<'_>, rrset: &Rrset<'_>) -> Result<(), Full> {
        match self.cuts_of(section, owner, rrset) {
            Some((cuts, above)) => self.writer.shortened(section, rrset.count, rrset.records, &cuts, above),
            None => self.whole(|run| run.records(section, owner, rrset.layout, rrset.records)),
        }
    }

    /// Returns where the names in the data of an RRset are cut if it is written next, and how many
    /// octets of the question's name are in front of its owner; nothing if that was not worked out
    /// for this place.
    #[inline]
    pub(super) fn cuts_of<'z>(
        &self,
        section: Section,
        owner: Name<'_>,
        rrset: &Rrset<'z>,
    ) -> Option<(Cuts<'z>, u8)> {
        let is_rotated = self.rotation != 0 && rrset.count > 1 && section == Section::Answer;
        let (cuts, above) = rrset.cuts().filter(|_| !is_rotated).zip(self.octets_above(owner))?;
        (above == 0 || !self.leads_on(rrset, above)).then_some((cuts, above))
    }

    /// Returns whether a name in the data that ends with the owner may have more labels in common
    /// with the question's name, which has so many octets in front of the owner.
    fn leads_on(&self, rrset: &Rrset<'_>, above: u8) -> bool {
        let mut label = self.asked.qname.as_bytes().get(..usize::from(above)).unwrap_or(&[]);
        // Ends: each turn takes a label off.
        while let Some((_, rest)) =
            label.split_first().and_then(|(&len, _)| label.split_at_checked(usize::from(len) + 1))
            && !rest.is_empty()
        {
            label = rest;
        }
        rrset.ends().any(|end| {
            let end = end.len().checked_sub(label.len()).and_then(|at| end.get(at..));
            end.is_some_and(|end| eq_ignore_case(end, label))
        })
    }

    /// Returns how many octets of the question's name are in front of `owner`, if nothing is
    /// written but the question and it was taken from there.
    #[inline]
    fn octets_above(&self, owner: Name<'_>) -> Option<u8> {
        let (asked, owner) = (self.asked.qname.as_bytes(), owner.as_bytes());
        let above = asked.len().checked_sub(owner.len())?;
        let is_part = asked.get(above..).is_some_and(|part| std::ptr::eq(part, owner));
        (is_part && self.writer.is_at_body()).then_some(above as u8)
    }

    /// Writes an RRset without signatures, beginning with the record that the rotation chooses.
    #[cold]
    fn rotated(&mut self, section: Section, owner: Name<'_>, rrset: &Rrset<'_>) -> Result<(), Full> {
        let mut rest = Records(rrset.records);
        let skipped = self.rotation as usize % usize::from(rrset.count);
        for _ in 0..skipped {
            rest.next();
        }
        let (first, last) = rrset.records.split_at(rrset.records.len() - rest.0.len());
        self.whole(|run| {
            run.records(section, owner, rrset.layout, last)?;
            run.records(section, owner, rrset.layout, first)
        })
    }

    /// Writes records whose data stands as it is sent.
    #[inline]
    fn plain(&mut self, section: Section, owner: Name<'_>, records: &[u8], count: u16) -> Result<(), Full> {
        // Mostly it is not only the same name, but the same memory.
        if std::ptr::eq(owner.as_bytes(), self.asked.qname.as_bytes()) || self.writer.is_asked_for(owner) {
            return self.writer.ready(section, count, records);
        }
        match self.target.filter(|(address, _)| *address == owner.as_bytes().as_ptr().addr()) {
            Some((_, place)) => self.writer.ready_under(section, count, records, place),
            None => self.whole(|run| run.records(section, owner, Layout::Plain, records)),
        }
    }

    /// Writes records one by one.
    pub(super) fn records(
        &mut self,
        section: Section,
        owner: Name<'_>,
        layout: Layout,
        records: &[u8],
    ) -> Result<(), Full> {
        for record in Records(records) {
            self.writer.record(section, owner, record.rtype, Class::IN, Ttl::new(record.ttl), |writer| {
                layout.write(writer, record.rdata)
            })?;
        }
        Ok(())
    }
}
