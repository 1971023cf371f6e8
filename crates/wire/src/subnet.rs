//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The EDNS client subnet (RFC 7871).

use std::net::IpAddr;

/// An EDNS client subnet (RFC 7871): address bits beyond `prefix` are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientSubnet {
    /// The address family as IANA numbers it: 1 for IPv4, 2 for IPv6.
    pub family: u8,
    /// The number of leading bits that count.
    pub prefix: u8,
    /// The address, IPv4 in the first four octets.
    pub address: [u8; 16],
}

impl ClientSubnet {
    /// Returns the subnet of an address: its first `prefix` bits.
    pub fn of(address: IpAddr, prefix: u8) -> Self {
        let (family, bits, most) = match address {
            IpAddr::V4(v4) => (1, u128::from(v4.to_bits()) << 96, 32),
            IpAddr::V6(v6) => (2, v6.to_bits(), 128),
        };
        let prefix = prefix.min(most);
        let kept = if prefix == 0 { 0 } else { u128::MAX << (128 - u32::from(prefix)) };
        Self { family, prefix, address: (bits & kept).to_be_bytes() }
    }

    /// Reads the data of the option in a query (RFC 7871 §6): address bits beyond the source prefix
    /// are cut off.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let (&[0, family @ (1 | 2), prefix, _scope], octets) = data.split_first_chunk::<4>()? else {
            return None;
        };
        let bits_max = if family == 1 { 32 } else { 128 };
        if prefix > bits_max || octets.len() != usize::from(prefix).div_ceil(8) {
            return None;
        }
        let mut address = [0; 16];
        for (to, from) in address.iter_mut().zip(octets) {
            *to = *from;
        }
        let kept = if prefix == 0 { 0 } else { u128::MAX << (128 - u32::from(prefix)) };
        Some(Self { family, prefix, address: (u128::from_be_bytes(address) & kept).to_be_bytes() })
    }

    /// Returns whether the data of the option in a query has the form of RFC 7871 §6: as many
    /// octets as the source prefix needs, and no address bits beyond it.
    pub fn is_well_formed(data: &[u8]) -> bool {
        let [_, family, _, scope, octets @ ..] = data else { return false };
        let bits_max = if *family == 1 { 32 } else { 128 };
        Self::parse(data).is_some_and(|subnet| *scope <= bits_max && subnet.address.starts_with(octets))
    }

    /// Returns the subnet with so many leading bits at most: 24 of IPv4 and 56 of IPv6, say.
    #[must_use]
    pub fn cut(self, ipv4: u8, ipv6: u8) -> Self {
        let prefix = self.prefix.min(if self.family == 1 { ipv4 } else { ipv6 });
        let kept = if prefix == 0 { 0 } else { u128::MAX << (128 - u32::from(prefix)) };
        Self { prefix, address: (self.address_bits() & kept).to_be_bytes(), ..self }
    }

    /// Returns whether another subnet is this one or within it.
    pub fn contains(&self, other: &Self) -> bool {
        self.family == other.family
            && other.prefix >= self.prefix
            && other.cut(self.prefix, self.prefix) == *self
    }

    /// Returns the address as a number, IPv4 in the upper 32 bits.
    pub const fn address_bits(&self) -> u128 {
        u128::from_be_bytes(self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_keeps_only_its_prefix() {
        let subnet = ClientSubnet::parse(&[0, 1, 20, 0, 192, 0, 0xff]).expect("well formed");
        assert_eq!((subnet.prefix, &subnet.address[..4]), (20, &[192, 0, 0xf0, 0][..]));
        assert!(!ClientSubnet::is_well_formed(&[0, 1, 20, 0, 192, 0, 0xff]), "bits beyond it");
        assert!(!ClientSubnet::is_well_formed(&[0, 1, 20, 33, 192, 0, 0xf0]), "a scope of no address");
        assert!(ClientSubnet::is_well_formed(&[0, 1, 20, 0, 192, 0, 0xf0]));
        for malformed in
            [&[0, 1, 33, 0, 1, 2, 3, 4, 5][..], &[0, 1, 24, 0, 1, 2], &[0, 3, 8, 0, 1], &[0, 1], &[]]
        {
            assert_eq!(ClientSubnet::parse(malformed), None, "{malformed:?}");
            assert!(!ClientSubnet::is_well_formed(malformed), "{malformed:?}");
        }
    }

    #[test]
    fn a_subnet_is_the_start_of_an_address() {
        for (address, prefix, expected) in [
            ("192.0.2.129", 24, (1, 24, "192.0.2.0")),
            ("192.0.2.129", 25, (1, 25, "192.0.2.128")),
            ("192.0.2.129", 99, (1, 32, "192.0.2.129")),
            ("2001:db8:1:2::3", 56, (2, 56, "2001:db8:1::")),
        ] {
            let subnet = ClientSubnet::of(address.parse().expect("an address"), prefix);
            let shown: IpAddr = match subnet.family {
                1 => <[u8; 4]>::try_from(&subnet.address[..4]).expect("four octets").into(),
                _ => subnet.address.into(),
            };
            assert_eq!((subnet.family, subnet.prefix, shown.to_string().as_str()), expected, "{address}");
        }
    }
}
