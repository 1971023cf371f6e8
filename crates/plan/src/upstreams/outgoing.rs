//! What holds for all sockets to other servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use engine::ops::outgoing::{SERVER_OPTION_OCTETS_MAX, ServerOptions};
use wire::Prefix;

/// What all sockets to other servers are bound to, and what the kernel is told of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outgoing {
    /// Where queries come from: one of these of the server's family, drawn for each socket; of a
    /// prefix any address. If there are some, a family without one is not used. Empty: whatever
    /// the kernel chooses.
    pub sources: Vec<Prefix>,
    /// UDP ports that queries leave through. Empty: those that the kernel draws from.
    pub ports: Ports,
    /// The largest segment over TCP, in octets (`TCP_MAXSEG`).
    pub tcp_mss: Option<u16>,
    /// The DSCP of packets (RFC 2474).
    pub dscp: u8,
    /// EDNS options that certain servers are sent.
    pub options: ServerOptions,
}

/// Ports, as ranges in order that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ports(Vec<(u16, u16)>);

impl Ports {
    /// Returns the ports of ranges, whose ends belong to them, in any order.
    pub fn of(mut ranges: Vec<(u16, u16)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(u16, u16)> = Vec::new();
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, end)) if u32::from(first) <= u32::from(*end) + 1 => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    /// Returns how many there are.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|&(first, last)| u32::from(last) - u32::from(first) + 1).sum()
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the port at a place, counted from 0 over all ranges.
    pub fn at(&self, mut place: u32) -> Option<u16> {
        for &(first, last) in &self.0 {
            let count = u32::from(last) - u32::from(first) + 1;
            if place < count {
                return u16::try_from(u32::from(first) + place).ok();
            }
            place -= count;
        }
        None
    }
}

impl Outgoing {
    /// Returns whether servers of IPv4 (or of IPv6) can be asked: whether there is a source.
    pub fn has_family(&self, is_ipv4: bool) -> bool {
        self.sources.is_empty() || self.sources.iter().any(|source| source.address().is_ipv4() == is_ipv4)
    }
}

/// Returns the address of a prefix that has these bits behind the fixed ones.
pub fn address_in(prefix: Prefix, bits: u128) -> IpAddr {
    match prefix.range() {
        (IpAddr::V4(first), IpAddr::V4(last)) => {
            let free = first.to_bits() ^ last.to_bits();
            Ipv4Addr::from_bits(first.to_bits() | (bits as u32 & free)).into()
        }
        (IpAddr::V6(first), IpAddr::V6(last)) => {
            let free = first.to_bits() ^ last.to_bits();
            Ipv6Addr::from_bits(first.to_bits() | (bits & free)).into()
        }
        (first, _) => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_ranges_are_there_once() {
        let ports = Ports::of(vec![(2000, 2002), (1024, 1024), (2001, 2003), (2004, 2004)]);
        assert_eq!((ports.len(), ports.is_empty()), (6, false));
        let all: Vec<u16> = (0..ports.len()).filter_map(|place| ports.at(place)).collect();
        assert_eq!(all, [1024, 2000, 2001, 2002, 2003, 2004]);
        assert_eq!(ports.at(6), None);
        assert_eq!(Ports::of(vec![(0, 65_535), (5, 6)]).len(), 65_536);
    }

    #[test]
    fn an_address_of_a_prefix_keeps_its_first_bits() {
        let prefix = Prefix::new("2001:db8:0:1::".parse().expect("an address"), 64);
        let expect: IpAddr = "2001:db8:0:1:ffff:ffff:ffff:ffff".parse().expect("an address");
        assert_eq!(address_in(prefix, u128::MAX), expect);
        let host = Prefix::new("192.0.2.1".parse().expect("an address"), 32);
        assert_eq!(address_in(host, u128::MAX), host.address());
        let net = Prefix::new("192.0.2.0".parse().expect("an address"), 30);
        assert_eq!(address_in(net, 6), IpAddr::from([192, 0, 2, 2]));
    }
}
