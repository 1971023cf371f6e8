//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Which name an address was given for: a bounded table that all workers share.
//!
//! Each entry is a row of atomics behind a version (a sequence lock): whoever writes makes the
//! version odd first, and whoever reads looks at it before and after. Nobody waits: a reader who is
//! disturbed finds nothing, and a writer who meets another leaves its entry away.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use wire::name::NAME_OCTETS_MAX;
use wire::{Name, NameBuf};

/// Entries that an address may be in; the one that expires first makes room.
const WAYS: usize = 4;
/// Words of a name.
const NAME_WORDS: usize = (NAME_OCTETS_MAX + 1) / 8;

/// One address and the name it was given for. 288 octets.
struct Entry {
    /// Odd while somebody writes.
    version: AtomicU64,
    /// When it is forgotten, in seconds since 1970; zero: empty.
    until: AtomicU64,
    address: [AtomicU64; 2],
    name: [AtomicU64; NAME_WORDS],
}

const _: () = assert!(size_of::<Entry>() == 288);

impl Entry {
    const fn empty() -> Self {
        Self {
            version: AtomicU64::new(0),
            until: AtomicU64::new(0),
            address: [const { AtomicU64::new(0) }; 2],
            name: [const { AtomicU64::new(0) }; NAME_WORDS],
        }
    }

    fn holds(&self, [high, low]: [u64; 2]) -> bool {
        let [first, second] = &self.address;
        first.load(Ordering::Relaxed) == high && second.load(Ordering::Relaxed) == low
    }

    /// Writes the entry unless somebody else does.
    fn write(&self, [high, low]: [u64; 2], name: Name<'_>, until: u64) {
        let version = self.version.load(Ordering::Relaxed);
        if version & 1 != 0
            || self
                .version
                .compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
        {
            return;
        }
        // No reader sees a word of what follows together with the even version before.
        fence(Ordering::Release);
        self.until.store(until, Ordering::Relaxed);
        let [first, second] = &self.address;
        first.store(high, Ordering::Relaxed);
        second.store(low, Ordering::Relaxed);
        for (word, octets) in self.name.iter().zip(name.as_bytes().chunks(8)) {
            let mut padded = [0; 8];
            if let Some(room) = padded.get_mut(..octets.len()) {
                room.copy_from_slice(octets);
            }
            word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
        self.version.store(version + 2, Ordering::Release);
    }

    /// Returns the name and until when it holds, if the entry is for this address.
    fn read(&self, address: [u64; 2]) -> Option<(NameBuf, u64)> {
        let before = self.version.load(Ordering::Acquire);
        if before & 1 != 0 || !self.holds(address) {
            return None;
        }
        let until = self.until.load(Ordering::Relaxed);
        let mut octets = [0; NAME_WORDS * 8];
        for (room, word) in octets.chunks_exact_mut(8).zip(&self.name) {
            room.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        fence(Ordering::Acquire);
        if self.version.load(Ordering::Relaxed) != before {
            return None;
        }
        // Octets behind the name's end are what an earlier one left.
        let (name, _) = Name::parse(&octets).ok()?;
        Some((name.to_buf(), until))
    }
}

/// Addresses and the names they were given for.
pub struct ReverseTable {
    entries: Box<[Entry]>,
    /// Spreads addresses so that nobody can choose who shares a place.
    seed: u64,
}

impl ReverseTable {
    /// Returns an empty table for at least `size` addresses.
    // Once per configuration.
    pub fn new(size: usize, seed: u64) -> Self {
        let size = Self::room_for(size);
        Self { entries: (0..size).map(|_| Entry::empty()).collect(), seed }
    }

    /// Returns for how many addresses a table for `size` of them has room.
    pub const fn room_for(size: usize) -> usize {
        let size = size.next_power_of_two();
        if size < WAYS { WAYS } else { size }
    }

    /// Returns for how many addresses there is room.
    pub const fn size(&self) -> usize {
        self.entries.len()
    }

    /// Remembers that `address` was given for `name`, until `until`.
    pub fn put(&self, address: IpAddr, name: Name<'_>, now: u32, until: u32) {
        let words = words(address);
        let ways = self.ways(words);
        let Some(entry) = ways.iter().find(|entry| entry.holds(words)).or_else(|| {
            ways.iter().min_by_key(|entry| {
                let until = entry.until.load(Ordering::Relaxed);
                // Of those that are forgotten anyway, any will do.
                if until <= u64::from(now) { 0 } else { until }
            })
        }) else {
            return;
        };
        entry.write(words, name, u64::from(until));
    }

    /// Returns the name that `address` was last given for, and for how many seconds that holds.
    pub fn find(&self, address: IpAddr, now: u32) -> Option<(NameBuf, u32)> {
        let words = words(address);
        let (name, until) = self.ways(words).iter().find_map(|entry| entry.read(words))?;
        let left = u32::try_from(until).ok()?.checked_sub(now)?;
        (left > 0).then_some((name, left))
    }

    fn ways(&self, [high, low]: [u64; 2]) -> &[Entry] {
        let mixed =
            (u128::from(high ^ self.seed) | 1).wrapping_mul(u128::from(low ^ self.seed.rotate_left(32)) | 1);
        let mixed = (mixed ^ mixed >> 64) as u64;
        let hash = (mixed ^ mixed >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let at = hash as usize & (self.entries.len() - 1) & !(WAYS - 1);
        self.entries.get(at..at + WAYS).unwrap_or(&[])
    }
}

/// Returns an address as two words, IPv4 as IPv6 writes it.
fn words(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    [(bits >> 64) as u64, bits as u64]
}

/// Returns the address that a whole name below in-addr.arpa or ip6.arpa stands for (RFC 1035 §3.5,
/// RFC 3596 §2.5).
pub fn address_of(name: Name<'_>) -> Option<IpAddr> {
    let is = |label: Option<&[u8]>, text: &[u8]| label.is_some_and(|label| label.eq_ignore_ascii_case(text));
    let is_top = |mut rest: wire::name::Labels<'_>, text: &[u8]| {
        is(rest.next(), text) && is(rest.next(), b"arpa") && rest.next().is_none()
    };
    let mut labels = name.labels();
    match name.label_count() {
        6 => {
            let mut octets = [0; 4];
            for octet in octets.iter_mut().rev() {
                *octet = decimal(labels.next()?)?;
            }
            is_top(labels, b"in-addr").then(|| Ipv4Addr::from(octets).into())
        }
        34 => {
            let mut bits = 0;
            for place in 0..32 {
                let &[digit] = labels.next()? else { return None };
                bits |= u128::from(char::from(digit).to_digit(16)?) << (4 * place);
            }
            is_top(labels, b"ip6").then(|| Ipv6Addr::from_bits(bits).into())
        }
        _ => None,
    }
}

/// Reads an octet in decimal, without leading zeros.
fn decimal(label: &[u8]) -> Option<u8> {
    if !(1..=3).contains(&label.len()) || (label.len() > 1 && label.first() == Some(&b'0')) {
        return None;
    }
    label.iter().try_fold(0_u8, |number, octet| {
        octet.is_ascii_digit().then(|| number.checked_mul(10)?.checked_add(octet - b'0'))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::local::reverse_name;
    use crate::query::testing::name;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn reverse_names_are_read_as_they_are_written() {
        for text in ["192.0.2.1", "0.0.0.0", "255.10.1.200", "2001:db8::567:89ab", "::"] {
            assert_eq!(address_of(reverse_name(address(text)).as_name()), Some(address(text)), "{text}");
        }
        for text in [
            "2.0.192.in-addr.arpa",
            "x.1.2.0.192.in-addr.arpa",
            "01.2.0.192.in-addr.arpa",
            "256.2.0.192.in-addr.arpa",
            "1.2.0.192.in-addr.example",
            "1.2.0.192.ip6.arpa",
            "www.example.org",
        ] {
            assert_eq!(address_of(name(text).as_name()), None, "{text}");
        }
    }

    #[test]
    fn the_last_name_of_an_address_is_found_until_it_expires() {
        let table = ReverseTable::new(64, 7);
        let found =
            |text: &str, now| table.find(address(text), now).map(|(name, left)| (name.to_string(), left));
        table.put(address("192.0.2.1"), name("a.long.name.example.org").as_name(), 100, 200);
        table.put(address("2001:db8::1"), name("v6.example.org").as_name(), 100, 200);
        assert_eq!(found("192.0.2.1", 150), Some(("a.long.name.example.org.".into(), 50)));
        assert_eq!(found("2001:db8::1", 150), Some(("v6.example.org.".into(), 50)));
        assert_eq!(found("192.0.2.2", 150), None);
        table.put(address("192.0.2.1"), name("b.example").as_name(), 150, 300);
        assert_eq!(found("192.0.2.1", 250), Some(("b.example.".into(), 50)));
        assert_eq!(found("192.0.2.1", 300), None);
    }

    #[test]
    fn the_table_never_grows_and_what_is_newest_stays() {
        let table = ReverseTable::new(16, 7);
        assert_eq!(table.size(), 16);
        for n in 0..1000_u32 {
            table.put(Ipv4Addr::from_bits(n).into(), name("x.example").as_name(), n, n + 100);
        }
        let found =
            (0..1000_u32).filter(|&n| table.find(Ipv4Addr::from_bits(n).into(), 999).is_some()).count();
        assert!((1..=16).contains(&found), "{found}");
        assert!(table.find(Ipv4Addr::from_bits(999).into(), 999).is_some());
    }

    #[test]
    fn readers_never_see_halves_of_two_names() {
        let table = ReverseTable::new(4, 7);
        let names = [name(&"a.".repeat(100)), name(&"bb.".repeat(80))];
        let at = address("192.0.2.1");
        std::thread::scope(|scope| {
            for name in &names {
                let table = &table;
                scope.spawn(move || (0..20_000).for_each(|_| table.put(at, name.as_name(), 1, 100)));
            }
            for _ in 0..20_000 {
                if let Some((found, _)) = table.find(at, 1) {
                    assert!(names.contains(&found), "{found}");
                }
            }
        });
    }
}
