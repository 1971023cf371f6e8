//! What the operator can do with the RRsets of zones while the server runs.

use std::sync::Arc;

use control::api;
use wire::{NameBuf, Rtype, Ttl};
use zone::Zone;
use zone::update::{RrsetAction, RrsetChange, read_data};

use super::zones::{lines, parse};
use super::{Operator, OperatorError, What};

/// RRsets of a zone that are listed at once.
const LISTED_MAX: u64 = 50_000;
/// RRsets that one change may have.
const CHANGES_MAX: usize = 10_000;

impl Operator {
    /// Returns RRsets of a zone, without signatures that the server makes.
    ///
    /// # Errors
    ///
    /// There is no such zone, or no version of it; a name or a type is none.
    pub fn rrsets(&self, asked: &api::RrsetsOf) -> Result<api::Rrsets, OperatorError> {
        let zone = self.unsigned(&asked.zone)?;
        let name = asked.name.as_deref().map(owner).transpose()?;
        let wanted = asked.rtype.as_deref().map(rtype).transpose()?;
        let count = asked.count.unwrap_or(LISTED_MAX).min(LISTED_MAX);
        let mut found = api::Rrsets {
            zone: zone.apex().to_string(),
            serial: zone.facts().serial,
            rrsets: Vec::new(),
            is_cut: false,
        };
        let mut seen = 0_u64;
        // Returns whether there is room for more.
        let mut put = |rrsets: Vec<Rrset>| {
            for rrset in rrsets.into_iter().filter(|rrset| wanted.is_none_or(|wanted| wanted == rrset.rtype))
            {
                seen += 1;
                if seen <= asked.skip {
                    continue;
                }
                if found.rrsets.len() as u64 >= count {
                    found.is_cut = true;
                    return false;
                }
                found.rrsets.push(rrset.shown());
            }
            true
        };
        if let Some(name) = name {
            put(self.rrsets_at(&zone, name, Rtype::ANY));
            return Ok(found);
        }
        let order = zone.order();
        for number in 0..order.len() {
            let records = zone.records_at(&order, number).map(|record| (record.owner(), record));
            let rows =
                records.map(|(owner, record)| (owner, record.rtype, record.ttl, record.rdata.to_vec()));
            if !put(by_type(rows)) {
                break;
            }
        }
        if found.is_cut && asked.count.is_none() {
            return Err(OperatorError::Refused(format!(
                "zone \"{}\" has more than {LISTED_MAX} RRsets: ask for some of them, or for the zone as a file",
                found.zone
            )));
        }
        Ok(found)
    }

    /// Returns all RRsets of a zone, without signatures that the server makes, as they are in this
    /// version; and its name and serial.
    ///
    /// # Errors
    ///
    /// There is no such zone, or no version of it.
    pub fn rrsets_all(
        &self,
        zone: &str,
    ) -> Result<(String, u32, impl Iterator<Item = api::Rrset> + Send + use<>), OperatorError> {
        let zone = self.unsigned(zone)?;
        let (apex, serial, order) = (zone.apex().to_string(), zone.facts().serial, zone.order());
        let all = (0..order.len()).flat_map(move |number| {
            let rows = zone.records_at(&order, number);
            let rows = rows.map(|row| (row.owner(), row.rtype, row.ttl, row.rdata.to_vec()));
            by_type(rows).into_iter().map(|rrset| rrset.shown()).collect::<Vec<_>>()
        });
        Ok((apex, serial, all))
    }

    /// Changes RRsets of a zone: all of them, or none. They are on disk and served when this
    /// returns.
    ///
    /// # Errors
    ///
    /// There is no such zone, it changes elsewhere, what is given is wrong, or the zone would be;
    /// or an RRset is another by now.
    pub fn rrsets_change(
        &self,
        change: &api::RrsetsChange,
        by: &str,
    ) -> Result<api::RrsetsChanged, OperatorError> {
        let (apex, changes) = self.read_all(change)?;
        let expect = |zone: &Zone| self.expected(zone, change, &changes);
        let manager = &self.components.manager;
        let (serial, is_new) = manager.change_rrsets(apex.as_name(), &changes, &expect, by)?;
        Ok(api::RrsetsChanged { zone: apex.to_string(), serial, is_new, ..Default::default() })
    }

    /// Says what a change of RRsets would make different.
    ///
    /// # Errors
    ///
    /// As of [`Operator::rrsets_change`].
    pub fn rrsets_check(&self, change: &api::RrsetsChange) -> Result<api::RrsetsChanged, OperatorError> {
        let (apex, changes) = self.read_all(change)?;
        let expect = |zone: &Zone| self.expected(zone, change, &changes);
        let (serial, difference) = self.components.manager.check_rrsets(apex.as_name(), &changes, &expect)?;
        Ok(api::RrsetsChanged {
            zone: apex.to_string(),
            serial,
            is_new: difference.is_some(),
            differences: difference.as_ref().map_or_else(Vec::new, lines),
            is_dry_run: true,
        })
    }

    /// Reads the changes of a zone's RRsets.
    fn read_all(&self, change: &api::RrsetsChange) -> Result<(NameBuf, Vec<RrsetChange>), OperatorError> {
        let apex = parse(&change.zone)?;
        if change.changes.len() > CHANGES_MAX {
            let why = format!("{} RRsets at a time: at most {CHANGES_MAX}", change.changes.len());
            return Err(OperatorError::Argument(why));
        }
        let present = self.unsigned(&change.zone)?;
        let read = |edit: &api::RrsetEdit| self.read(edit, &present);
        Ok((apex, change.changes.iter().map(read).collect::<Result<_, _>>()?))
    }

    /// Returns why an RRset is not the one that a change is made for.
    fn expected(
        &self,
        zone: &Zone,
        change: &api::RrsetsChange,
        changes: &[RrsetChange],
    ) -> Result<(), String> {
        let tags = change.changes.iter().zip(changes);
        tags.filter_map(|(edit, change)| Some((edit.tag.as_deref()?, change))).try_for_each(
            |(tag, change)| {
                let is = self.present(zone, change).map_or_else(String::new, |rrset| rrset.tag());
                let why = || format!("{} {} is another by now", change.owner, change.rtype);
                if is == tag { Ok(()) } else { Err(why()) }
            },
        )
    }

    /// Returns the RRsets of a name in a version of a zone.
    fn rrsets_at(&self, zone: &Zone, owner: NameBuf, rtype: Rtype) -> Vec<Rrset> {
        let rows = self.components.manager.rows(zone, owner.as_name(), rtype);
        by_type(rows.iter().map(|row| (owner, row.rtype, row.ttl, row.rdata.to_vec())))
    }

    /// Returns the RRset that a change is about, as it is.
    fn present(&self, zone: &Zone, change: &RrsetChange) -> Option<Rrset> {
        self.rrsets_at(zone, change.owner, change.rtype).into_iter().next()
    }

    /// Reads a change of an RRset of this version of a zone.
    fn read(&self, edit: &api::RrsetEdit, zone: &Zone) -> Result<RrsetChange, OperatorError> {
        let (owner, rtype) = (owner(&edit.name)?, rtype(&edit.rtype)?);
        let data = |text: &String| {
            read_data(rtype, text).map_err(|(at, why)| {
                let column = text.get(..at).map_or(at, |before| before.chars().count()) + 1;
                OperatorError::Unfit(format!("{owner} {rtype}: \"{text}\", column {column}: {why}"))
            })
        };
        let records: Vec<Vec<u8>> = edit.records.iter().map(data).collect::<Result<_, _>>()?;
        let action = match edit.action {
            api::RrsetAction::Replace => RrsetAction::Replace,
            api::RrsetAction::Extend => RrsetAction::Extend,
            api::RrsetAction::Prune => RrsetAction::Prune,
        };
        let change = RrsetChange { owner, rtype, action, ttl: Ttl::ZERO, records };
        let needs_ttl = action != RrsetAction::Prune && !change.records.is_empty();
        let ttl = match edit.ttl {
            Some(ttl) if i32::try_from(ttl).is_err() => {
                let why = format!("{owner} {rtype}: a TTL is at most {} s (RFC 2181 §8)", i32::MAX);
                return Err(OperatorError::Unfit(why));
            }
            Some(ttl) => Ttl::new(ttl),
            None if needs_ttl => match self.present(zone, &change) {
                Some(rrset) => rrset.ttl,
                None => {
                    return Err(OperatorError::Unfit(format!("{owner} {rtype} is new and needs a TTL")));
                }
            },
            None => Ttl::ZERO,
        };
        Ok(RrsetChange { ttl, ..change })
    }

    fn unsigned(&self, name: &str) -> Result<Arc<Zone>, OperatorError> {
        let apex = parse(name)?;
        let manager = &self.components.manager;
        manager.unsigned(apex.as_name()).ok_or_else(|| match manager.role(apex.as_name()) {
            None => OperatorError::NotFound { what: What::Zone, name: apex.to_string() },
            Some(_) => OperatorError::Refused(format!(
                "zone \"{apex}\" has no records yet, or has expired: see \"gannet zone status {apex}\""
            )),
        })
    }
}

fn owner(text: &str) -> Result<NameBuf, OperatorError> {
    NameBuf::from_text(text)
        .map_err(|error| OperatorError::Argument(format!("\"{text}\" is no name: {error}")))
}

fn rtype(text: &str) -> Result<Rtype, OperatorError> {
    text.parse().map_err(|_| OperatorError::Argument(format!("\"{text}\" is no type of records")))
}

/// An RRset of a zone, or all signatures at a name.
struct Rrset {
    owner: NameBuf,
    rtype: Rtype,
    ttl: Ttl,
    data: Vec<Vec<u8>>,
}

impl Rrset {
    /// Returns what it is known by: FNV-1a over its data in canonical order. It is compared with
    /// itself, and nobody gains by a collision.
    fn tag(&self) -> String {
        let mut data: Vec<&[u8]> = self.data.iter().map(Vec::as_slice).collect();
        data.sort_unstable();
        let ttl = self.ttl.seconds().to_be_bytes();
        let octets = data.iter().flat_map(|data| data.iter().chain(&[0, 0])).chain(&ttl);
        let sum = octets.fold(0xcbf2_9ce4_8422_2325_u64, |sum, octet| {
            (sum ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{sum:016x}")
    }

    fn shown(&self) -> api::Rrset {
        let data = |data: &Vec<u8>| wire::rdata::display(self.rtype, data, 0..data.len()).to_string();
        api::Rrset {
            name: self.owner.to_string(),
            rtype: self.rtype.to_string(),
            ttl: self.ttl.seconds(),
            records: self.data.iter().map(data).collect(),
            tag: self.tag(),
        }
    }
}

/// Puts the records of one name together, type by type, in their order.
fn by_type(rows: impl Iterator<Item = (NameBuf, Rtype, Ttl, Vec<u8>)>) -> Vec<Rrset> {
    let mut rrsets: Vec<Rrset> = Vec::new();
    for (owner, rtype, ttl, rdata) in rows {
        match rrsets.iter_mut().find(|rrset| rrset.rtype == rtype) {
            Some(rrset) => rrset.data.push(rdata),
            None => rrsets.push(Rrset { owner, rtype, ttl, data: vec![rdata] }),
        }
    }
    rrsets
}
