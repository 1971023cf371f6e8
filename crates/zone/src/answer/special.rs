//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Answers that no record of the zone file gives: chosen for the client, or made from an address.

use wire::{Full, Name, Rcode, Rtype, Section};

use super::{Run, Step};
use crate::alias::ADDRESSES_OCTETS_MAX;
use crate::block::{Hosts, Records, Rrset};
use crate::online::{Share, Types};
use crate::specials::{Choice, MADE_OCTETS_MAX, Made, Specials, copy_without};
use crate::zone::Zone;

impl<'r> Run<'r, '_> {
    /// Answers with what is chosen for the client, if there is a choice at the name.
    #[cold]
    pub(super) fn choose(
        &mut self,
        zone: &'r Zone,
        specials: &'r Specials,
        name: Name<'_>,
        hash: u64,
    ) -> Result<Option<Step>, Full> {
        let qtype = self.asked.qtype;
        let is_wanted = |choice: &&Choice| {
            qtype == Rtype::ANY || choice.rtype() == qtype || choice.rtype() == Rtype::CNAME
        };
        let Some(choice) = specials.choices(name, hash).find(is_wanted) else { return Ok(None) };
        let Some((mut rrset, down)) = choice.choose(self.asked.client, self.asked.random) else {
            return Ok(None);
        };
        self.depends_on_client |= choice.depends_on_client();
        let mut octets = [0; ADDRESSES_OCTETS_MAX];
        if down != 0 {
            let (count, len) = copy_without(rrset.records, down, &mut octets);
            rrset = Rrset { count, records: octets.get(..len).unwrap_or(&[]), ..rrset };
        }
        match self.online(zone) {
            Some(online) => self.sign(online, Section::Answer, name, &rrset, Share::Whole)?,
            None => self.rrset(Section::Answer, name, &rrset)?,
        }
        if rrset.rtype == Rtype::CNAME && !matches!(qtype, Rtype::CNAME | Rtype::ANY) {
            let target = Records(rrset.records).next().and_then(|record| Name::parse(record.rdata).ok());
            return Ok(Some(match target {
                Some((target, _)) => Step::Follow(target.to_buf()),
                None => Step::Done(Rcode::SERVFAIL),
            }));
        }
        self.hosts(zone, &rrset, Hosts::new(&rrset), name);
        Ok(Some(Step::Done(Rcode::NOERROR)))
    }

    /// Answers for a name that no record has: it may be made from an address, or exist because
    /// something is to be chosen at it.
    #[cold]
    pub(super) fn make(
        &mut self,
        specials: &'r Specials,
        zone: &'r Zone,
        name: Name<'_>,
        hash: u64,
    ) -> Result<Option<Step>, Full> {
        let made = specials.make(name, zone.apex());
        if made.is_none() && !specials.has_at_or_below(name, hash) {
            return Ok(None);
        }
        let wanted = made
            .as_ref()
            .filter(|made| matches!(self.asked.qtype, Rtype::ANY) || made.rtype() == self.asked.qtype);
        if let Some(made) = wanted {
            let mut octets = [0; MADE_OCTETS_MAX];
            let Some(rrset) = made.rrset(&mut octets) else { return Ok(Some(Step::Done(Rcode::SERVFAIL))) };
            match self.online(zone) {
                // Whoever owns the network made no more names than it has addresses.
                Some(online) => self.sign(online, Section::Answer, name, &rrset, Share::Part)?,
                None => self.rrset(Section::Answer, name, &rrset)?,
            }
            return Ok(Some(Step::Done(Rcode::NOERROR)));
        }
        self.whole(|run| {
            run.negative(zone)?;
            let Some(online) = run.online(zone) else { return Ok(()) };
            let mut types = Types::new();
            made.iter().map(Made::rtype).for_each(|rtype| types.add(rtype));
            run.deny(zone, online, name, &types, Share::Part)
        })?;
        Ok(Some(Step::Done(Rcode::NOERROR)))
    }
}
