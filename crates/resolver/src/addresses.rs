//! Which addresses of name servers are asked at all.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{Name, Prefix, Prefix64};

use crate::heap_name::HeapName;

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Returns the family of an address.
    pub const fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Returns the other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }
}

/// Who names a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Namer {
    /// A zone, which may be a stranger's.
    Zone,
    /// The settings: whoever writes them knows of private addresses.
    Settings,
}

/// Which addresses that zones name for their servers are asked.
///
/// Who names an address of ours, or one of a network that only we reach, makes us ask ourselves or
/// our neighbours (TsuKing, CVE-2026-50251).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Whether servers are asked over IPv4.
    pub v4: bool,
    /// Whether servers are asked over IPv6.
    pub v6: bool,
    /// Whether addresses of the machine itself (loopback, 0.0.0.0/8) are asked; for tests.
    pub loopback: bool,
    /// Whether private and link-local addresses are asked: where the zones of a network of its own
    /// are.
    pub private: bool,
    /// Addresses that are not asked in any case, above all our own.
    pub refused: Vec<Prefix>,
    /// Addresses that records of name servers must not have, as in answers that are protected
    /// against DNS rebinding.
    pub private_addresses: Vec<Prefix>,
    /// Domains whose names may have them.
    pub private_domains: Vec<HeapName>,
    /// The prefix of a translator (NAT64, RFC 6052) through which servers with addresses of IPv4
    /// are asked, in place of asking them over IPv4.
    pub nat64: Option<Prefix64>,
    /// The family that is asked as long as one of its addresses was not asked yet.
    pub preferred: Option<Family>,
}

impl Default for AddressPolicy {
    /// Returns a policy that takes all public addresses of both families.
    fn default() -> Self {
        Self {
            v4: true,
            v6: true,
            loopback: false,
            private: false,
            refused: Vec::new(),
            private_addresses: Vec::new(),
            private_domains: Vec::new(),
            nat64: None,
            preferred: None,
        }
    }
}

impl AddressPolicy {
    /// Returns whether servers with addresses of this family are asked.
    pub const fn has(&self, family: Family) -> bool {
        match family {
            Family::V4 => self.v4 || self.nat64.is_some(),
            Family::V6 => self.v6,
        }
    }

    /// Returns whether a server at this address may be asked.
    pub fn admits(&self, address: IpAddr) -> bool {
        self.admits_of(address, Namer::Zone)
    }

    /// Returns the address at which a server is asked that has this one.
    #[must_use]
    pub fn reached(&self, address: IpAddr) -> IpAddr {
        match (address, self.nat64) {
            (IpAddr::V4(address), Some(prefix)) => {
                Ipv6Addr::from_bits(prefix.embed(address.to_bits())).into()
            }
            _ => address,
        }
    }

    fn admits_of(&self, address: IpAddr, namer: Namer) -> bool {
        let private = self.private || namer == Namer::Settings;
        let is_usable = match address {
            IpAddr::V4(address) => self.admits_v4(address, private),
            IpAddr::V6(address) => self.admits_v6(address, private) && self.admits_behind(address, private),
        };
        is_usable && self.has(Family::of(address)) && !self.refuses(address)
    }

    fn refuses(&self, address: IpAddr) -> bool {
        self.refused.iter().any(|prefix| prefix.contains(address))
    }

    /// Returns whether an address of IPv4 may be asked that this one leads to through a translator:
    /// who names it in place of the other one must not reach more by that.
    fn admits_behind(&self, address: Ipv6Addr, private: bool) -> bool {
        let prefixes = self.nat64.into_iter().chain([Prefix64::WELL_KNOWN]);
        let mut behind = prefixes.filter_map(|prefix| prefix.extract(address.to_bits()));
        behind.all(|bits| {
            let address = Ipv4Addr::from_bits(bits);
            self.admits_v4(address, private) && !self.refuses(address.into())
        })
    }

    /// Reads the data of A and AAAA records of a name server, and returns those addresses that may
    /// be asked.
    pub(crate) fn admitted<'d>(
        &self,
        server: Name<'_>,
        records: impl Iterator<Item = &'d [u8]>,
        namer: Namer,
    ) -> impl Iterator<Item = IpAddr> {
        self.admitted_of(server, records.filter_map(address), namer)
    }

    /// Returns those addresses of a name server that may be asked.
    pub(crate) fn admitted_of(
        &self,
        server: Name<'_>,
        addresses: impl Iterator<Item = IpAddr>,
        namer: Namer,
    ) -> impl Iterator<Item = IpAddr> {
        let may_be_private = self.private_addresses.is_empty()
            || self.private_domains.iter().any(|domain| server.is_at_or_below(domain.as_name()));
        addresses.filter(move |&address| {
            self.admits_of(address, namer) && (may_be_private || !self.is_private(address))
        })
    }

    fn is_private(&self, address: IpAddr) -> bool {
        self.private_addresses.iter().any(|prefix| prefix.contains(address))
    }

    fn admits_v4(&self, address: Ipv4Addr, private: bool) -> bool {
        let is_private = address.is_private() || address.is_link_local();
        // 0.0.0.0/8 is "this network" (RFC 1122 §3.2.1.3), which Linux takes for itself.
        let is_own = address.is_loopback() || address.octets().first() == Some(&0);
        let is_nobody = address.is_multicast() || address.is_broadcast();
        !is_nobody && (self.loopback || !is_own) && (private || !is_private)
    }

    fn admits_v6(&self, address: Ipv6Addr, private: bool) -> bool {
        let is_private = address.is_unique_local() || address.is_unicast_link_local();
        // An address of IPv4 in another dress would evade what is refused of IPv4.
        let is_nobody =
            address.is_unspecified() || address.is_multicast() || address.to_ipv4_mapped().is_some();
        !is_nobody && (self.loopback || !address.is_loopback()) && (private || !is_private)
    }
}

/// Reads the data of an A or AAAA record.
pub(crate) fn address(data: &[u8]) -> Option<IpAddr> {
    match data.len() {
        4 => data.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets).into()),
        16 => data.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_behind_a_translator_are_held_to_the_rules_of_ipv4() {
        let prefix = |text: &str, bits| Prefix::new(text.parse().expect("an address"), bits);
        let nat64 = Prefix64::of(prefix("2001:db8:64::", 96));
        let refused = vec![prefix("192.0.2.0", 24), prefix("::", 0)];
        let policy = AddressPolicy { v4: false, refused, nat64, ..AddressPolicy::default() };
        let check = |text: &str, expected: Option<&str>| {
            let address: IpAddr = text.parse().expect("an address");
            let reached = policy.admits(address).then(|| policy.reached(address).to_string());
            assert_eq!(reached.as_deref(), expected, "{text}");
        };
        // What is refused of IPv6 is not refused of what is reached over it.
        check("198.51.100.1", Some("2001:db8:64::c633:6401"));
        check("192.0.2.1", None);
        check("10.0.0.1", None);
        check("127.0.0.1", None);
        check("2001:db8::1", None);
        let open = AddressPolicy { refused: vec![prefix("192.0.2.0", 24)], ..policy };
        let admits = |text: &str| open.admits(text.parse().expect("an address"));
        assert!(admits("2001:db8::1") && admits("2001:db8:64::c633:6401"));
        assert!(!admits("2001:db8:64::c000:201"), "192.0.2.1");
        assert!(!admits("2001:db8:64::a00:1") && !admits("64:ff9b::7f00:1"), "10.0.0.1, 127.0.0.1");
    }

    #[test]
    fn private_addresses_are_for_servers_whose_names_are_in_private_domains() {
        let name = |text: &str| HeapName::new(wire::NameBuf::from_text(text).expect("a name").as_name());
        let policy = AddressPolicy {
            private: true,
            private_addresses: vec![Prefix::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8)],
            private_domains: vec![name("corp.example")],
            ..AddressPolicy::default()
        };
        let both = [Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(198, 51, 100, 1)].map(IpAddr::V4);
        let check = |text: &str, namer: Namer, count: usize| {
            let admitted: Vec<_> =
                policy.admitted_of(name(text).as_name(), both.into_iter(), namer).collect();
            assert_eq!(admitted, both[2 - count..], "{text}");
        };
        check("ns.example", Namer::Zone, 1);
        check("ns.example", Namer::Settings, 1);
        check("corp.example", Namer::Zone, 2);
        check("ns.corp.example", Namer::Zone, 2);
        check("nscorp.example", Namer::Zone, 1);
        assert!(policy.admits(both[0]), "hints of the settings have no zone that names them");
    }

    #[test]
    fn addresses_that_are_nobodys_or_ours_are_refused() {
        let own = Prefix::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 0)), 25);
        let public = AddressPolicy { refused: vec![own], ..AddressPolicy::default() };
        let inside = AddressPolicy { loopback: true, private: true, ..public.clone() };
        let no_v6 = AddressPolicy { v6: false, ..public.clone() };
        let check = |text: &str, expected: [bool; 3]| {
            let address = text.parse().expect("an address");
            assert_eq!([&public, &inside, &no_v6].map(|policy| policy.admits(address)), expected, "{text}");
        };
        check("198.51.100.1", [true; 3]);
        check("2001:db8::1", [true, true, false]);
        check("192.0.2.127", [false; 3]);
        check("192.0.2.128", [true; 3]);
        check("0.0.0.0", [false, true, false]);
        check("0.1.2.3", [false, true, false]);
        check("::", [false; 3]);
        check("224.0.0.1", [false; 3]);
        check("255.255.255.255", [false; 3]);
        check("ff02::1", [false; 3]);
        check("::ffff:198.51.100.1", [false; 3]);
        check("127.0.0.53", [false, true, false]);
        check("::1", [false, true, false]);
        check("10.1.2.3", [false, true, false]);
        check("169.254.1.1", [false, true, false]);
        check("fd00::1", [false, true, false]);
        check("fe80::1", [false, true, false]);
    }
}
