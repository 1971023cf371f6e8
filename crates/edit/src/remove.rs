//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Which records of an answer stay.

use std::net::IpAddr;

use wire::{Full, Rtype, Section};

use super::addresses::is_address;
use super::params::hints;
use super::{Draft, Place};

impl Draft<'_> {
    /// Removes the records of these types from all sections, and signatures over them. Returns
    /// whether any went.
    pub fn remove_types(&mut self, types: &[Rtype]) -> Result<bool, Full> {
        self.retain(|message, place| {
            let covered = place.covers(message);
            !types.contains(&place.rtype) && !covered.is_some_and(|covered| types.contains(&covered))
        })
    }

    /// Leaves in the answer section only records of these types, aliases, and signatures over
    /// those. Returns whether any went.
    pub fn keep_types(&mut self, types: &[Rtype]) -> Result<bool, Full> {
        let stays = |rtype: Rtype| matches!(rtype, Rtype::CNAME | Rtype::DNAME) || types.contains(&rtype);
        self.retain(|message, place| {
            place.section != Section::Answer || stays(place.rtype) || place.covers(message).is_some_and(stays)
        })
    }

    /// Removes the A and AAAA records whose address `goes`, from the answer and additional
    /// sections, and signatures over RRsets that lost one. Returns whether any went.
    pub fn remove_addresses(&mut self, goes: impl Fn(IpAddr) -> bool) -> Result<bool, Full> {
        self.remove_addresses_that(|_, _, address| goes(address))
    }

    /// Removes the records that have an address that `goes`, also as a hint of SVCB and HTTPS, of
    /// those that `counts`, and signatures over RRsets that lost one. Returns whether any went.
    pub fn remove_with_addresses(
        &mut self,
        counts: impl Fn(&[u8], &Place) -> bool,
        goes: impl Fn(IpAddr) -> bool,
    ) -> Result<bool, Full> {
        let lost =
            self.remove_addresses_that(|message, place, address| goes(address) && counts(message, place))?;
        let leaves = |message: &[u8], place: &Place| {
            matches!(place.rtype, Rtype::SVCB | Rtype::HTTPS)
                && hints(place.rdata(message), &goes)
                && counts(message, place)
        };
        let loses = |draft: &Self, rtype: Rtype| {
            draft.any(|message, place| place.rtype == rtype && leaves(message, place))
        };
        let (loses_svcb, loses_https) = (loses(self, Rtype::SVCB), loses(self, Rtype::HTTPS));
        if !loses_svcb && !loses_https {
            return Ok(lost);
        }
        self.retain(|message, place| match place.covers(message) {
            Some(Rtype::SVCB) => !loses_svcb,
            Some(Rtype::HTTPS) => !loses_https,
            _ => !leaves(message, place),
        })
    }

    fn remove_addresses_that(&mut self, goes: impl Fn(&[u8], &Place, IpAddr) -> bool) -> Result<bool, Full> {
        let (mut loses_v4, mut loses_v6) = (false, false);
        self.each(|message, place| match is_address(message, place) {
            Some(address @ IpAddr::V4(_)) => loses_v4 |= goes(message, place, address),
            Some(address @ IpAddr::V6(_)) => loses_v6 |= goes(message, place, address),
            None => {}
        });
        if !loses_v4 && !loses_v6 {
            return Ok(false);
        }
        self.retain(|message, place| match place.covers(message) {
            Some(Rtype::A) => !loses_v4,
            Some(Rtype::AAAA) => !loses_v6,
            _ => !is_address(message, place).is_some_and(|address| goes(message, place, address)),
        })
    }
}
