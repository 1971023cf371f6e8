//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Address prefixes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address prefix: the bits after the first `bits` are zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// Returns the prefix of `address`, host bits cleared; `bits` beyond the family's width count
    /// as all.
    pub fn new(address: IpAddr, bits: u8) -> Self {
        match address {
            IpAddr::V4(v4) => {
                let bits = bits.min(32);
                Self { address: Ipv4Addr::from_bits(v4.to_bits() & mask32(bits)).into(), bits }
            }
            IpAddr::V6(v6) => {
                let bits = bits.min(128);
                Self { address: Ipv6Addr::from_bits(v6.to_bits() & mask128(bits)).into(), bits }
            }
        }
    }

    /// Returns the first address.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Returns the last address.
    pub const fn last(self) -> IpAddr {
        match self.address {
            IpAddr::V4(first) => IpAddr::V4(Ipv4Addr::from_bits(first.to_bits() | !mask32(self.bits))),
            IpAddr::V6(first) => IpAddr::V6(Ipv6Addr::from_bits(first.to_bits() | !mask128(self.bits))),
        }
    }

    /// Returns the first and the last address.
    pub const fn range(self) -> (IpAddr, IpAddr) {
        (self.address, self.last())
    }

    /// Returns how many leading bits are fixed.
    pub const fn bits(self) -> u8 {
        self.bits
    }

    /// Returns whether `address` begins with these bits. IPv4-mapped addresses count as IPv4.
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && Self::new(address, self.bits) == self
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns a number whose first `bits` bits are set; at most 32 count.
const fn mask32(bits: u8) -> u32 {
    if bits == 0 { 0 } else { u32::MAX << (32 - bits) }
}

/// Returns a number whose first `bits` bits are set; at most 128 count.
const fn mask128(bits: u8) -> u128 {
    if bits == 0 { 0 } else { u128::MAX << (128 - bits) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_beyond_those_that_are_fixed_are_cleared() {
        let check = |address: &str, bits, expect: &str| {
            let prefix = Prefix::new(address.parse().expect("an address"), bits);
            assert_eq!(prefix.to_string(), expect);
        };
        check("10.1.2.3", 8, "10.0.0.0/8");
        check("10.1.2.3", 0, "0.0.0.0/0");
        check("10.1.2.3", 33, "10.1.2.3/32");
        check("2001:db8::1", 32, "2001:db8::/32");
        check("2001:db8::1", 0, "::/0");
        check("2001:db8::1", 200, "2001:db8::1/128");
    }

    #[test]
    fn a_prefix_holds_the_addresses_that_begin_with_it() {
        let check = |prefix: (&str, u8), address: &str, expect| {
            let prefix = Prefix::new(prefix.0.parse().expect("an address"), prefix.1);
            assert_eq!(prefix.contains(address.parse().expect("an address")), expect, "{prefix} {address}");
        };
        check(("192.0.2.0", 24), "192.0.2.255", true);
        check(("192.0.2.0", 24), "::ffff:192.0.2.255", true);
        check(("192.0.2.0", 24), "192.0.3.0", false);
        check(("0.0.0.0", 0), "2001:db8::1", false);
        check(("::", 0), "192.0.2.1", false);
        check(("2001:db8::", 32), "2001:db8:ffff::1", true);
        check(("2001:db8:0:100::", 56), "2001:db8:0:1ff::1", true);
        check(("2001:db8:0:100::", 56), "2001:db8:0:200::1", false);
        check(("192.0.2.77", 99), "192.0.2.78", false);
    }

    #[test]
    fn a_prefix_ends_with_the_address_whose_other_bits_are_set() {
        let check = |prefix: (&str, u8), last: &str| {
            let prefix = Prefix::new(prefix.0.parse().expect("an address"), prefix.1);
            assert_eq!(prefix.last().to_string(), last, "{prefix}");
        };
        check(("192.0.2.0", 24), "192.0.2.255");
        check(("192.0.2.1", 32), "192.0.2.1");
        check(("0.0.0.0", 0), "255.255.255.255");
        check(("2001:db8::", 32), "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff");
    }
}
