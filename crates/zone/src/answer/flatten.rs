//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Addresses that an ALIAS record stands for: those of its target, in one of our zones or
//! remembered.

use wire::{Full, Name, NameBuf, Rtype, Section};

use super::{ALIASES_MAX, Failure, Run};
use crate::alias::ADDRESSES_OCTETS_MAX;
use crate::block::{Layout, Marks, RECORD_HEAD, Records, Rrset};
use crate::online::Share;
use crate::specials::copy_without;
use crate::zone::Zone;

/// What there is of the target of an ALIAS.
enum Target<'z> {
    /// It is in none of our zones.
    Elsewhere,
    /// These records without those whose bits are set, or none.
    Has(Option<(Rrset<'z>, u64)>),
    /// It leads on to another name, and may be kept for so long.
    Leads(NameBuf, u32),
}

impl<'r> Run<'r, '_> {
    /// Answers with the addresses of an ALIAS's target; returns whether it has any of the type
    /// asked for.
    #[cold]
    pub(super) fn flatten(
        &mut self,
        zone: &'r Zone,
        alias: &Rrset<'_>,
        name: Name<'_>,
    ) -> Result<bool, Full> {
        let mut octets = [0; ADDRESSES_OCTETS_MAX];
        let Some((count, len)) = self.addresses_of(alias, self.asked.qtype, &mut octets) else {
            self.fail(Failure::Unfollowed)?;
            return Ok(false);
        };
        if count == 0 {
            return Ok(false);
        }
        let rrset = Rrset {
            rtype: self.asked.qtype,
            layout: Layout::Plain,
            count,
            signature_count: 0,
            records: octets.get(..len).unwrap_or(&[]),
            signatures: &[],
            cuts: &[],
        };
        match self.online(zone) {
            Some(online) => self.sign(online, Section::Answer, name, &rrset, Share::Whole)?,
            None => self.rrset(Section::Answer, name, &rrset)?,
        }
        Ok(true)
    }

    /// Copies what the target of an ALIAS has of a type, as records that stand ready: how many, and
    /// their octets. `None` when that is not known.
    #[cold]
    pub(crate) fn addresses_of(
        &mut self,
        alias: &Rrset<'_>,
        rtype: Rtype,
        out: &mut [u8; ADDRESSES_OCTETS_MAX],
    ) -> Option<(u16, usize)> {
        let record = Records(alias.records).next()?;
        let mut ttl = record.ttl;
        let mut target = Name::parse(record.rdata).ok()?.0.to_buf();
        // Ends: a loop of aliases is as long as they may be.
        for _ in 0..ALIASES_MAX {
            let known = self.zones.known_of(target.as_name());
            let found = match self.zones.zone_for(target.as_name(), known, rtype) {
                None => Target::Elsewhere,
                Some(served) => self.target(served.zone()?, target.as_name(), rtype),
            };
            match found {
                Target::Elsewhere => {
                    let aliases = self.zones.aliases()?;
                    let (count, len) = aliases.find((target.as_name(), rtype), self.asked.age_at.0, out)?;
                    cap_ttls(out.get_mut(..len)?, ttl);
                    return Some((count, len));
                }
                Target::Has(None) => return Some((0, 0)),
                Target::Has(Some((rrset, down))) => {
                    let (count, len) = copy_without(rrset.records, down, out);
                    cap_ttls(out.get_mut(..len)?, ttl);
                    return Some((count, len));
                }
                Target::Leads(next, next_ttl) => (target, ttl) = (next, ttl.min(next_ttl)),
            }
        }
        None
    }

    /// Looks for what a name of one of our zones has of a type.
    fn target(&mut self, zone: &'r Zone, name: Name<'_>, rtype: Rtype) -> Target<'r> {
        let hash = self.key().hash_name(name);
        if let Some(specials) = self.zones.specials_of(zone)
            && let Some(choice) = specials.choices(name, hash).find(|choice| choice.rtype() == rtype)
        {
            self.depends_on_client |= choice.depends_on_client();
            return Target::Has(choice.choose(self.asked.client, self.asked.random));
        }
        let block = match zone.find(name, hash) {
            Some(block) => block,
            None => {
                let Some(missing) = self.closest_encloser(zone, name) else { return Target::Has(None) };
                let marks = missing.encloser.marks();
                if marks.has(Marks::CUT.with(Marks::BELOW).with(Marks::DNAME)) {
                    return Target::Elsewhere;
                }
                match self.wildcard(zone, missing.encloser_name).filter(|_| marks.has(Marks::WILDCARD)) {
                    Some(block) => block,
                    None => return Target::Has(None),
                }
            }
        };
        // What lies below a zone cut is somebody else's.
        if block.marks().has(Marks::CUT.with(Marks::BELOW)) {
            return Target::Elsewhere;
        }
        let lead = |rrset: Rrset<'r>| {
            let record = Records(rrset.records).next()?;
            let (name, _) = Name::parse(record.rdata).ok()?;
            Some(Target::Leads(name.to_buf(), record.ttl))
        };
        block.rrset(rtype).map_or_else(
            || {
                let next = block.rrset(Rtype::CNAME).or_else(|| block.alias());
                next.and_then(lead).unwrap_or(Target::Has(None))
            },
            |rrset| Target::Has(Some((rrset, 0))),
        )
    }
}

/// Makes the TTLs of records that stand ready no larger than `ttl`.
fn cap_ttls(mut records: &mut [u8], ttl: u32) {
    while let Some((head, rest)) = records.split_first_chunk_mut::<RECORD_HEAD>() {
        let &mut [_, _, _, _, _, _, s0, s1, s2, s3, l0, l1] = head;
        let own = u32::from_be_bytes([s0, s1, s2, s3]).min(ttl);
        if let Some(place) = head.get_mut(6..10) {
            place.copy_from_slice(&own.to_be_bytes());
        }
        records = rest.get_mut(usize::from(u16::from_be_bytes([l0, l1]))..).unwrap_or(&mut []);
    }
}
