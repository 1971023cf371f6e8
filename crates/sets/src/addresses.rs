//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Sets of addresses: sorted ranges behind a table that leads to the right few of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::changes::Changes;
use crate::dynamic::DynamicAddresses;

/// Bits of the largest first-level table.
const TABLE_BITS_MAX: u32 = 16;

/// A number of addresses in a row.
trait Number: Copy + Ord {
    const BITS: u32;
    const ZERO: Self;
    fn minus(self, other: Self) -> Self;
    fn next(self) -> Option<Self>;
    fn previous(self) -> Option<Self>;
    fn leading_zeros(self) -> u32;
    /// Returns the number without its `shift` lowest bits; the caller knows that what is left fits.
    fn shifted(self, shift: u32) -> usize;
}

macro_rules! number {
    ($type:ty) => {
        impl Number for $type {
            const BITS: u32 = Self::BITS;
            const ZERO: Self = 0;
            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }
            fn previous(self) -> Option<Self> {
                self.checked_sub(1)
            }
            fn leading_zeros(self) -> u32 {
                self.leading_zeros()
            }
            #[inline]
            fn shifted(self, shift: u32) -> usize {
                self.checked_shr(shift).unwrap_or(0) as usize
            }
        }
    };
}
number!(u32);
number!(u128);

/// Disjoint ranges of one family, sorted, none touching the next.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ranges<T> {
    first: T,
    last: T,
    ranges: Box<[(T, T)]>,
    /// For each part of the span from the first address to the last, the first range that ends in
    /// it or after it.
    table: Box<[u32]>,
    /// Bits of an address that the table does not look at.
    shift: u32,
}

impl<T: Number> Default for Ranges<T> {
    fn default() -> Self {
        Self { first: T::ZERO, last: T::ZERO, ranges: Box::default(), table: Box::default(), shift: 0 }
    }
}

impl<T: Number> Ranges<T> {
    /// Takes ranges that are sorted and apart.
    // Once per configuration.
    fn new(ranges: Vec<(T, T)>) -> Self {
        let (Some(&(first, _)), Some(&(_, last))) = (ranges.first(), ranges.last()) else {
            return Self::default();
        };
        let span_bits = T::BITS - last.minus(first).leading_zeros();
        let bits = (usize::BITS - ranges.len().leading_zeros()).min(TABLE_BITS_MAX).min(span_bits);
        let shift = span_bits - bits;
        let parts = last.minus(first).shifted(shift) + 1;
        let mut table = std::vec![0_u32; parts + 1];
        let mut next = 0;
        for (at, &(_, end)) in ranges.iter().enumerate() {
            let part = end.minus(first).shifted(shift);
            for entry in table.iter_mut().take(part + 1).skip(next) {
                *entry = at as u32;
            }
            next = next.max(part + 1);
        }
        // The one after the last part: all ranges end before it.
        if let Some(last) = table.last_mut() {
            *last = ranges.len() as u32;
        }
        Self { first, last, ranges: ranges.into_boxed_slice(), table: table.into_boxed_slice(), shift }
    }

    #[inline]
    fn contains(&self, value: T) -> bool {
        if value < self.first || value > self.last {
            return false;
        }
        let part = value.minus(self.first).shifted(self.shift);
        let Some(&[from, to]) = self.table.get(part..).and_then(|table| table.first_chunk()) else {
            return false;
        };
        // The range that ends first at or after the address: in this part, or the first one of the
        // parts behind it.
        let within = self.ranges.get(from as usize..to as usize).unwrap_or(&[]);
        let skipped = within.partition_point(|&(_, end)| end < value);
        self.ranges.get(from as usize + skipped).is_some_and(|&(start, end)| start <= value && value <= end)
    }

    fn octets(&self) -> usize {
        size_of_val(&*self.ranges) + size_of_val(&*self.table)
    }
}

/// A set of addresses. Addresses of version 4 that are written in version 6 (`::ffff:192.0.2.1`)
/// are taken for what they stand for.
#[derive(Clone, Default)]
pub struct AddressSet {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
    /// Addresses that are added and removed while the server runs, and those that are taken out
    /// like this.
    live: Box<[Arc<DynamicAddresses>]>,
    live_out: Box<[Arc<DynamicAddresses>]>,
}

/// Sets are equal that hold the same addresses now and learn the same ones later.
impl PartialEq for AddressSet {
    fn eq(&self, other: &Self) -> bool {
        let are_same = |some: &[Arc<DynamicAddresses>], others: &[Arc<DynamicAddresses>]| {
            some.len() == others.len() && some.iter().zip(others).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        self.v4 == other.v4
            && self.v6 == other.v6
            && are_same(&self.live, &other.live)
            && are_same(&self.live_out, &other.live_out)
    }
}

impl AddressSet {
    /// Returns whether the set holds the address.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        let is_held = match address {
            IpAddr::V4(v4) => self.v4.contains(v4.to_bits()),
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => self.v4.contains(v4.to_bits()),
                None => self.v6.contains(v6.to_bits()),
            },
        };
        (is_held || self.live.iter().any(|live| live.contains(address)))
            && !self.live_out.iter().any(|live| live.contains(address))
    }

    /// Returns whether no address is in the set.
    pub fn is_empty(&self) -> bool {
        self.v4.ranges.is_empty() && self.v6.ranges.is_empty() && self.live.iter().all(|live| live.is_empty())
    }

    /// Returns how many ranges there are, once they are joined.
    pub const fn len(&self) -> usize {
        self.v4.ranges.len() + self.v6.ranges.len()
    }

    /// Returns how many octets of memory the set takes.
    pub fn octets(&self) -> usize {
        size_of::<Self>() + self.v4.octets() + self.v6.octets()
    }

    /// Calls `f` with the number of changes of each set that this one looks into and that is
    /// changed while the server runs.
    // Once per configuration.
    pub fn each_changes(&self, f: &mut dyn FnMut(&Changes)) {
        let Self { v4: _, v6: _, live, live_out } = self;
        live.iter().chain(live_out).for_each(|live| f(live.changes()));
    }

    /// Walks the ranges: those of version 4, then those of version 6, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (IpAddr, IpAddr)> + '_ {
        let v4 = self.v4.ranges.iter().map(|&(first, last)| {
            (IpAddr::V4(Ipv4Addr::from_bits(first)), IpAddr::V4(Ipv4Addr::from_bits(last)))
        });
        let v6 = self.v6.ranges.iter().map(|&(first, last)| {
            (IpAddr::V6(Ipv6Addr::from_bits(first)), IpAddr::V6(Ipv6Addr::from_bits(last)))
        });
        v4.chain(v6)
    }
}

/// A set of addresses in the making. The order in which prefixes are added and taken out does not
/// matter.
#[derive(Default)]
pub struct AddressSetBuilder {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
    without_v4: Vec<(u32, u32)>,
    without_v6: Vec<(u128, u128)>,
    live: Vec<Arc<DynamicAddresses>>,
    live_out: Vec<Arc<DynamicAddresses>>,
}

/// The first address of version 4 as version 6 writes it.
const MAPPED_FIRST: u128 = 0xffff_0000_0000;
/// The last address of version 4 as version 6 writes it.
const MAPPED_LAST: u128 = 0xffff_ffff_ffff;

// Once per configuration.
impl AddressSetBuilder {
    /// Returns an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the addresses that begin with the first `length` bits of `address`; returns false if
    /// there are not so many.
    #[must_use]
    pub fn prefix(&mut self, address: IpAddr, length: u8) -> bool {
        let (first, last) = match address {
            IpAddr::V4(v4) if length <= 32 => {
                let rest = u32::MAX.checked_shr(length.into()).unwrap_or(0);
                (IpAddr::V4((v4.to_bits() & !rest).into()), IpAddr::V4((v4.to_bits() | rest).into()))
            }
            IpAddr::V6(v6) if length <= 128 => {
                let rest = u128::MAX.checked_shr(length.into()).unwrap_or(0);
                (IpAddr::V6((v6.to_bits() & !rest).into()), IpAddr::V6((v6.to_bits() | rest).into()))
            }
            IpAddr::V4(_) | IpAddr::V6(_) => return false,
        };
        self.range(first, last)
    }

    /// Adds the addresses from `first` to `last`; returns false if they are of two families or the
    /// wrong way round.
    #[must_use]
    pub fn range(&mut self, first: IpAddr, last: IpAddr) -> bool {
        match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => {
                self.v4.push((first.to_bits(), last.to_bits()));
            }
            (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => {
                let (first, last) = (first.to_bits(), last.to_bits());
                self.v6.push((first, last));
                // What is written in version 6 but means version 4 is asked for there.
                let (from, to) = (first.max(MAPPED_FIRST), last.min(MAPPED_LAST));
                if from <= to {
                    self.v4.push((from as u32, to as u32));
                }
            }
            _ => return false,
        }
        true
    }

    /// Adds everything that another set holds.
    pub fn include(&mut self, set: &AddressSet) {
        self.v4.extend_from_slice(&set.v4.ranges);
        self.v6.extend_from_slice(&set.v6.ranges);
        self.live.extend(set.live.iter().map(Arc::clone));
    }

    /// Returns how many ranges were added, overlapping ones too.
    pub const fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Returns whether no range was added.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds addresses that are added and removed while the server runs.
    pub fn live(&mut self, addresses: Arc<DynamicAddresses>) {
        self.live.push(addresses);
    }

    /// Takes out everything that another set holds.
    pub fn except(&mut self, set: &AddressSet) {
        self.without_v4.extend_from_slice(&set.v4.ranges);
        self.without_v6.extend_from_slice(&set.v6.ranges);
        self.live_out.extend(set.live.iter().map(Arc::clone));
    }

    /// Builds the set; order and overlaps do not matter.
    pub fn compile(self) -> AddressSet {
        AddressSet {
            v4: Ranges::new(without(joined(self.v4), &joined(self.without_v4))),
            v6: Ranges::new(without(joined(self.v6), &joined(self.without_v6))),
            live: self.live.into(),
            live_out: self.live_out.into(),
        }
    }
}

/// Sorts ranges and joins those that overlap or touch.
// Once per configuration.
fn joined<T: Number>(mut ranges: Vec<(T, T)>) -> Vec<(T, T)> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, kept| {
        let joins = kept.1.next().is_none_or(|after| next.0 <= after);
        if joins {
            kept.1 = kept.1.max(next.1);
        }
        joins
    });
    ranges
}

/// Takes the second ranges out of the first; both are sorted and apart.
// Once per configuration.
fn without<T: Number>(ranges: Vec<(T, T)>, out: &[(T, T)]) -> Vec<(T, T)> {
    if out.is_empty() {
        return ranges;
    }
    let mut left = std::vec![];
    let mut next = 0;
    for (mut first, last) in ranges {
        while out.get(next).is_some_and(|&(_, end)| end < first) {
            next += 1;
        }
        let mut is_left = true;
        for &(start, end) in out.get(next..).unwrap_or(&[]) {
            if start > last {
                break;
            }
            if let Some(before) = start.previous()
                && before >= first
                && start > first
            {
                left.push((first, before));
            }
            match end.next() {
                Some(after) if after <= last => first = after,
                _ => {
                    is_left = false;
                    break;
                }
            }
        }
        if is_left {
            left.push((first, last));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn builder(texts: &[&str]) -> AddressSetBuilder {
        let mut builder = AddressSetBuilder::new();
        for text in texts {
            let is_right = if let Some((first, length)) = text.split_once('/') {
                builder.prefix(address(first), length.parse().expect("a length"))
            } else {
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                builder.range(address(first), address(last))
            };
            assert!(is_right, "{text}");
        }
        builder
    }

    fn check(set: &AddressSet, inside: &[&str], outside: &[&str]) {
        for text in inside {
            assert!(set.contains(address(text)), "{text}");
        }
        for text in outside {
            assert!(!set.contains(address(text)), "{text}");
        }
    }

    #[test]
    fn membership_is_by_range() {
        let set = builder(&[
            "10.0.0.0/8",
            "10.1.0.0/16",
            "192.0.2.1/32",
            "198.51.100.7-198.51.100.9",
            "2001:db8::/32",
            "0.0.0.0",
        ])
        .compile();
        check(
            &set,
            &["10.0.0.0", "10.255.255.255", "192.0.2.1", "198.51.100.8", "2001:db8:ffff::1", "0.0.0.0"],
            &[
                "9.255.255.255",
                "11.0.0.0",
                "192.0.2.0",
                "192.0.2.2",
                "198.51.100.10",
                "2001:db9::",
                "::",
                "0.0.0.1",
            ],
        );
        assert_eq!(set.len(), 5);
    }

    #[test]
    fn the_whole_space_and_its_ends_are_held() {
        check(&builder(&["0.0.0.0/0"]).compile(), &["0.0.0.0", "255.255.255.255"], &["::1", "ff::"]);
        check(
            &builder(&["255.255.255.255"]).compile(),
            &["255.255.255.255"],
            &["255.255.255.254", "0.0.0.0"],
        );
        let end = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        check(&builder(&[end]).compile(), &[end], &["::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"]);
        check(&AddressSet::default(), &[], &["0.0.0.0", "::"]);
        check(&builder(&["::/0"]).compile(), &["::", end, "192.0.2.1", "::ffff:192.0.2.1"], &[]);
    }

    #[test]
    fn mapped_addresses_mean_version_4() {
        check(
            &builder(&["192.0.2.0/24"]).compile(),
            &["::ffff:192.0.2.9"],
            &["::ffff:192.0.3.9", "::192.0.2.9"],
        );
        check(
            &builder(&["::ffff:192.0.2.0/120"]).compile(),
            &["192.0.2.9", "::ffff:192.0.2.9"],
            &["192.0.3.9"],
        );
    }

    #[test]
    fn sets_are_taken_out_of_sets() {
        let out = builder(&["10.0.0.0/32", "10.0.0.5-10.0.0.6", "10.0.0.255-10.0.1.7", "::5"]).compile();
        let mut all = builder(&["10.0.0.0/24", "10.0.2.0/24", "::/125"]);
        all.except(&out);
        let ranges: Vec<String> =
            all.compile().ranges().map(|(first, last)| format!("{first}-{last}")).collect();
        assert_eq!(
            ranges,
            ["10.0.0.1-10.0.0.4", "10.0.0.7-10.0.0.254", "10.0.2.0-10.0.2.255", "::-::4", "::6-::7"]
        );
        let mut nothing = builder(&["192.0.2.0/24"]);
        nothing.except(&builder(&["0.0.0.0/0"]).compile());
        assert!(nothing.compile().is_empty());
    }

    #[test]
    fn nonsense_is_refused() {
        let mut builder = AddressSetBuilder::new();
        assert!(!builder.prefix(address("10.0.0.0"), 33));
        assert!(!builder.range(address("10.0.0.1"), address("10.0.0.0")));
        assert!(!builder.range(address("10.0.0.1"), address("::2")));
        assert!(builder.compile().is_empty());
    }
}
