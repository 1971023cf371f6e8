//! How the data of a cut is laid out, and the view of it.
//!
//! ```text
//! DS:8 (0 unknown, 1 unsigned, 2 signed) servers:8 child's names:8 DS records:8
//! each server:       name, relative; IPv4 addresses:4 IPv6 addresses:4; the addresses
//! each child's name: name, relative
//! each DS record:    length:16, data
//! ```

use super::{NewCut, NewDs, PARTS_MAX};
use crate::Now;
use crate::relative::Names;
use crate::rrsets::{EntryHead, Octets, Partition, partition_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::{Name, NameBuf};

const HEAD_OCTETS: usize = 4;
/// Addresses of a family that a server may have.
const ADDRESSES_MAX: usize = 15;

/// Appends the data of a cut; `None` if it is too much.
pub(super) fn write(zone: Name<'_>, new: &NewCut<'_>, out: &mut Vec<u8>) -> Option<()> {
    let (ds, records): (u8, &[&[u8]]) = match new.ds {
        NewDs::Unknown => (0, &[]),
        NewDs::Unsigned => (1, &[]),
        NewDs::Signed(records) => (2, records),
    };
    if records.len() > PARTS_MAX || ds == 2 && records.is_empty() {
        return None;
    }
    out.extend_from_slice(&[ds, new.servers.len() as u8, new.child.len() as u8, records.len() as u8]);
    let mut names = Names::near(zone);
    for server in new.servers {
        names.write(server.name, out);
        let four = server.addresses.iter().filter(|address| address.is_ipv4()).count();
        let six = server.addresses.len() - four;
        if four > ADDRESSES_MAX || six > ADDRESSES_MAX {
            return None;
        }
        out.push((four << 4 | six) as u8);
        for address in server.addresses {
            if let IpAddr::V4(address) = address {
                out.extend_from_slice(&address.octets());
            }
        }
        for address in server.addresses {
            if let IpAddr::V6(address) = address {
                out.extend_from_slice(&address.octets());
            }
        }
    }
    for name in new.child {
        names.write(*name, out);
    }
    for record in records {
        out.extend_from_slice(&u16::try_from(record.len()).ok()?.to_be_bytes());
        out.extend_from_slice(record);
    }
    Some(())
}

/// A delegation, copied to the caller's buffer.
#[derive(Clone, Copy)]
pub struct Cut<'b> {
    /// The zone, lower case.
    pub zone: Name<'b>,
    /// Whose it is.
    pub partition: Partition,
    /// Seconds left, at least one.
    pub ttl: u32,
    /// When it ends: what is found by it ends no later.
    pub ends_at: Now,
    ds: u8,
    servers: u8,
    child: u8,
    ds_records: u8,
    data: &'b [u8],
    octets: &'b [u8],
}

/// Whether a zone is signed, as far as its parent tells.
#[derive(Clone)]
pub enum Ds<'b> {
    /// Nobody asked.
    Unknown,
    /// The parent proved that there are no DS records.
    Unsigned,
    /// The data of the DS records.
    Signed(DsRecords<'b>),
}

/// The data of DS records.
pub type DsRecords<'b> = Octets<'b>;

pub(super) fn view<'b>(head: &EntryHead, now: Now, octets: &'b [u8]) -> Option<Cut<'b>> {
    let (zone, data) = octets.split_at_checked(head.name_octets())?;
    let (zone, _) = Name::parse(zone).ok()?;
    let (&[ds, servers, child, ds_records], data) = data.split_first_chunk::<HEAD_OCTETS>()?;
    Some(Cut {
        zone,
        partition: partition_of(head.identity),
        ttl: head.expires_at.saturating_sub(now.0),
        ends_at: Now(head.expires_at),
        ds,
        servers,
        child,
        ds_records,
        data,
        octets,
    })
}

impl<'b> Cut<'b> {
    /// Returns the octets that say all of it but its end: those of equal delegations are equal.
    pub const fn as_bytes(&self) -> &'b [u8] {
        self.octets
    }

    /// Walks the servers that the parent names.
    pub const fn servers(&self) -> CutServers<'b> {
        CutServers { names: Names::near(self.zone), data: self.data, left: self.servers, has_glue: true }
    }

    /// Walks the names that the zone itself gives, none if nobody asked; they have no addresses
    /// here.
    pub fn child(&self) -> CutServers<'b> {
        let mut servers = self.servers();
        servers.by_ref().for_each(drop);
        CutServers { left: self.child, has_glue: false, ..servers }
    }

    /// Returns whether the zone is signed.
    pub fn ds(&self) -> Ds<'b> {
        match self.ds {
            1 => Ds::Unsigned,
            2 => {
                let mut child = self.child();
                child.by_ref().for_each(drop);
                Ds::Signed(Octets::new(child.data, u16::from(self.ds_records)))
            }
            _ => Ds::Unknown,
        }
    }
}

/// Names of servers with their glue.
pub struct CutServers<'b> {
    names: Names<'b>,
    data: &'b [u8],
    left: u8,
    has_glue: bool,
}

impl<'b> Iterator for CutServers<'b> {
    type Item = (NameBuf, Addresses<'b>);

    fn next(&mut self) -> Option<(NameBuf, Addresses<'b>)> {
        self.left = self.left.checked_sub(1)?;
        let name = self.names.read(&mut self.data)?;
        if !self.has_glue {
            return Some((name, Addresses { four: &[], six: &[] }));
        }
        let (&counts, rest) = self.data.split_first()?;
        let (four, rest) = rest.split_at_checked(4 * usize::from(counts >> 4))?;
        let (six, rest) = rest.split_at_checked(16 * usize::from(counts & 15))?;
        self.data = rest;
        Some((name, Addresses { four: four.as_chunks().0, six: six.as_chunks().0 }))
    }
}

/// Addresses of a server, IPv4 first.
#[derive(Clone)]
pub struct Addresses<'b> {
    four: &'b [[u8; 4]],
    six: &'b [[u8; 16]],
}

impl Iterator for Addresses<'_> {
    type Item = IpAddr;

    fn next(&mut self) -> Option<IpAddr> {
        if let Some((address, rest)) = self.four.split_first() {
            self.four = rest;
            return Some(Ipv4Addr::from(*address).into());
        }
        let (address, rest) = self.six.split_first()?;
        self.six = rest;
        Some(Ipv6Addr::from(*address).into())
    }
}
