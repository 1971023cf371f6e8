//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Rules by a prefix of an address, of which the longest that fits counts. There are few lengths
//! and perhaps many prefixes: each length is one binary search.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Rules by prefix.
#[derive(Default)]
pub(crate) struct PrefixRules {
    /// The longest first.
    groups: Box<[Group]>,
    rules: Box<[PrefixRule]>,
}

/// The rules of one family and length, sorted by network.
struct Group {
    is_v4: bool,
    bits: u8,
    first: u32,
    end: u32,
}

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixRule {
    network: u128,
    /// Leading bits that count, of 128: those of IPv4 stand below 96 others.
    pub(crate) bits: u8,
    /// Which treatment.
    pub(crate) treatment: u16,
    /// Its line.
    pub(crate) line: u32,
}

/// Returns an address as a number at the top of 128 bits.
fn number(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(v4) => (true, u128::from(v4.to_bits()) << 96),
        IpAddr::V6(v6) => (false, v6.to_bits()),
    }
}

/// Returns the first `bits` of a number.
const fn masked(number: u128, bits: u8) -> u128 {
    match u128::MAX.checked_shl(128 - bits as u32) {
        Some(mask) => number & mask,
        None => 0,
    }
}

impl PrefixRules {
    /// Builds the rules; of two on the same prefix the first counts.
    // Once per configuration.
    pub(crate) fn new(mut all: Vec<(IpAddr, u8, u16, u32)>) -> Self {
        let key = |&(address, bits, ..): &(IpAddr, u8, u16, u32)| {
            let (is_v4, number) = number(address);
            (std::cmp::Reverse(bits), is_v4, masked(number, bits))
        };
        all.sort_by_key(key);
        all.dedup_by(|later, first| key(later) == key(first));
        let mut groups: Vec<Group> = Vec::with_capacity(0);
        let mut rules = Vec::with_capacity(all.len());
        for (address, bits, treatment, line) in all {
            let (is_v4, number) = number(address);
            let at = rules.len() as u32;
            match groups.last_mut().filter(|group| group.is_v4 == is_v4 && group.bits == bits) {
                Some(group) => group.end = at + 1,
                None => groups.push(Group { is_v4, bits, first: at, end: at + 1 }),
            }
            let of_128 = if is_v4 { bits + 96 } else { bits };
            rules.push(PrefixRule { network: masked(number, bits), bits: of_128, treatment, line });
        }
        Self { groups: groups.into(), rules: rules.into() }
    }

    /// Returns the rule with the longest prefix that an address has.
    pub(crate) fn find(&self, address: IpAddr) -> Option<&PrefixRule> {
        let (is_v4, number) = number(address);
        self.groups.iter().filter(|group| group.is_v4 == is_v4).find_map(|group| {
            let rules = self.rules.get(group.first as usize..group.end as usize)?;
            let network = masked(number, group.bits);
            let at = rules.binary_search_by_key(&network, |rule| rule.network).ok()?;
            rules.get(at)
        })
    }

    /// Walks the rules with their prefixes.
    // Once per configuration.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (IpAddr, u8, &PrefixRule)> {
        self.groups.iter().flat_map(|group| {
            let rules = self.rules.get(group.first as usize..group.end as usize).unwrap_or(&[]);
            rules.iter().map(|rule| {
                let address: IpAddr = match group.is_v4 {
                    true => Ipv4Addr::from_bits((rule.network >> 96) as u32).into(),
                    false => Ipv6Addr::from_bits(rule.network).into(),
                };
                (address, group.bits, rule)
            })
        })
    }

    /// Returns how many rules there are.
    pub(crate) const fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns how many octets of memory they take.
    pub(crate) fn octets(&self) -> usize {
        size_of_val(&*self.groups) + size_of_val(&*self.rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_counts() {
        let of = |text: &str, bits: u8, treatment: u16| {
            (text.parse::<IpAddr>().expect("an address"), bits, treatment, u32::from(treatment) + 10)
        };
        let rules = PrefixRules::new(vec![
            of("0.0.0.0", 0, 1),
            of("192.0.2.0", 24, 2),
            of("192.0.2.7", 32, 3),
            of("192.0.2.9", 32, 4),
            of("192.0.2.0", 24, 9),
            of("2001:db8::", 32, 5),
            of("2001:db8::1", 128, 6),
        ]);
        let find = |text: &str| rules.find(text.parse().expect("an address")).map(|rule| rule.treatment);
        let found = ["192.0.2.7", "192.0.2.9", "192.0.2.8", "192.0.3.1", "2001:db8::1", "2001:db8::2", "::1"]
            .map(find);
        assert_eq!(found, [Some(3), Some(4), Some(2), Some(1), Some(6), Some(5), None]);
        assert_eq!((rules.len(), PrefixRules::default().find([192, 0, 2, 1].into())), (6, None));
    }
}
