//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Sets of address prefixes as sorted ranges.

use std::net::IpAddr;

use wire::Prefix;

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
            match (prefix.address(), prefix.last()) {
                (IpAddr::V4(first), IpAddr::V4(last)) => v4.push((first.to_bits(), last.to_bits())),
                (IpAddr::V6(first), IpAddr::V6(last)) => v6.push((first.to_bits(), last.to_bits())),
                (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => {}
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
}
