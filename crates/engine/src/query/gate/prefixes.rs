//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Address prefixes, and sets of them as sorted ranges.

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

/// A set of prefixes. A look-up is a binary search over disjoint ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefixSet {
    v4: Box<[(u32, u32)]>,
    v6: Box<[(u128, u128)]>,
}

impl PrefixSet {
    /// Builds the set; order and overlaps do not matter.
    // Once per configuration.
    pub fn compile(prefixes: impl IntoIterator<Item = Prefix>) -> Self {
        let (mut v4, mut v6) = (std::vec![], std::vec![]);
        for prefix in prefixes {
            match prefix.address {
                IpAddr::V4(first) => v4.push((first.to_bits(), first.to_bits() | !mask32(prefix.bits))),
                IpAddr::V6(first) => v6.push((first.to_bits(), first.to_bits() | !mask128(prefix.bits))),
            }
        }
        Self { v4: merged(v4), v6: merged(v6) }
    }

    /// Returns whether `address` lies in one of the prefixes.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => is_covered(&self.v4, v4.to_bits()),
            IpAddr::V6(v6) => is_covered(&self.v6, v6.to_bits()),
        }
    }

    /// Returns whether the set holds no address at all.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }
}

fn merged<T: Ord + Copy>(mut ranges: Vec<(T, T)>) -> Box<[(T, T)]> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, kept| {
        // Prefixes either nest or are disjoint, so an overlap means that one lies in the other.
        let overlaps = next.0 <= kept.1;
        if overlaps && next.1 > kept.1 {
            kept.1 = next.1;
        }
        overlaps
    });
    ranges.into_boxed_slice()
}

fn is_covered<T: Ord + Copy>(ranges: &[(T, T)], value: T) -> bool {
    let after = ranges.partition_point(|&(first, _)| first <= value);
    after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|&(_, last)| value <= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(prefixes: &[&str]) -> PrefixSet {
        PrefixSet::compile(prefixes.iter().map(|text| {
            let (address, bits) = text.split_once('/').expect("a slash");
            Prefix::new(address.parse().expect("an address"), bits.parse().expect("a number"))
        }))
    }

    #[test]
    fn membership_is_by_range() {
        let set = set(&["10.0.0.0/8", "10.1.0.0/16", "192.0.2.1/32", "2001:db8::/32", "0.0.0.0/32"]);
        for inside in ["10.0.0.0", "10.255.255.255", "10.1.2.3", "192.0.2.1", "2001:db8:ffff::1", "0.0.0.0"] {
            assert!(set.contains(inside.parse().expect("an address")), "{inside}");
        }
        for outside in ["9.255.255.255", "11.0.0.0", "192.0.2.0", "192.0.2.2", "2001:db9::", "::", "0.0.0.1"]
        {
            assert!(!set.contains(outside.parse().expect("an address")), "{outside}");
        }
    }

    #[test]
    fn the_zero_prefix_holds_one_family() {
        let set = set(&["0.0.0.0/0"]);
        assert!(set.contains("255.255.255.255".parse().expect("an address")));
        assert!(!set.contains("::1".parse().expect("an address")));
    }

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
}
