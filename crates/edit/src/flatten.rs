//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Answers without aliases: the records at the end of the chain under the name asked for.

use wire::{Full, Header, Name, Rtype, Section};

use super::{Draft, Place, put_record};

impl Draft<'_> {
    /// Removes CNAME and DNAME from the answer section and puts its other records under the name
    /// asked for. Returns whether anything changed.
    ///
    /// The TTL of no record exceeds that of an alias that led to it. Signatures go: they are for
    /// other owners.
    pub fn flatten(&mut self) -> Result<bool, Full> {
        let Some(ttl) = self.smallest_ttl(is_alias) else { return Ok(false) };
        let mut walk = self.shape.walk();
        let mut is_plain = true;
        while let Some(place) = walk.step(self.message) {
            if place.section == Section::Answer {
                is_plain &= goes(self.message, &place) || place.fixed_at - place.at == 2;
            }
        }
        if is_plain {
            // Every owner is a pointer: it can lead to the question instead.
            let mut walk = self.shape.walk();
            while let Some(place) = walk.step(self.message) {
                if place.section == Section::Answer
                    && let Some(owner) = self.message.get_mut(place.at..place.fixed_at)
                    && owner.len() == 2
                {
                    owner.copy_from_slice(&[0xc0, Header::LEN as u8]);
                }
            }
            self.retain(|message, place| place.section != Section::Answer || !goes(message, place))?;
        } else {
            let mut buf = [0; wire::name::NAME_OCTETS_MAX];
            let (Ok((qname, _)), room) =
                (Name::parse(self.message.get(Header::LEN..).unwrap_or(&[])), &mut buf)
            else {
                return Err(Full);
            };
            let length = qname.len();
            room.get_mut(..length).ok_or(Full)?.copy_from_slice(qname.as_bytes());
            let (qname, _) = Name::parse(&buf).map_err(|_| Full)?;
            self.rebuild(|_, record, writer| match record.section {
                Section::Answer if is_for_alias(record.rtype) => Ok(()),
                Section::Answer => put_record(writer, record, Some(qname)),
                Section::Authority | Section::Additional => put_record(writer, record, None),
            })?;
        }
        let mut walk = self.shape.walk();
        while let Some(place) = walk.step(self.message) {
            if place.section == Section::Answer && place.ttl(self.message) > ttl {
                let field = self.message.get_mut(place.ttl_at()..).and_then(|tail| tail.first_chunk_mut());
                if let Some(field) = field {
                    *field = ttl.seconds().to_be_bytes();
                }
            }
        }
        Ok(true)
    }
}

const fn is_for_alias(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::CNAME | Rtype::DNAME | Rtype::RRSIG)
}

fn is_alias(_: &[u8], place: &Place) -> bool {
    place.section == Section::Answer && matches!(place.rtype, Rtype::CNAME | Rtype::DNAME)
}

fn goes(_: &[u8], place: &Place) -> bool {
    is_for_alias(place.rtype)
}
