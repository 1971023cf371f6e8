//! Addresses on their way into a set of the packet filter: what to write, for how long, and what is
//! there already.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use plan::jobs::Timeout;

use super::Occurrence;

/// Elements that are remembered; beyond that everything is forgotten, which only costs writing them
/// again.
const REMEMBERED_MAX: usize = 65_536;
/// An element is written again after at most this time: somebody may have emptied the set, as a
/// firewall does that loads its rules again.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// One address or network to be in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Element {
    /// Its first address.
    pub(crate) address: IpAddr,
    /// Its leading bits.
    pub(crate) prefix: u8,
}

impl Element {
    /// Returns the network that an address is in.
    pub(crate) fn new(address: IpAddr, prefix: u8) -> Self {
        let address = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        };
        Self { address, prefix }
    }

    /// Returns the octets of its first address.
    pub(crate) fn first(&self) -> Vec<u8> {
        match self.address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    }

    /// Returns the octets of the address after its last; `None` if its last is the last there is.
    pub(crate) fn end(&self) -> Option<Vec<u8>> {
        match self.address {
            IpAddr::V4(address) => {
                let size = 1_u64 << (32 - u32::from(self.prefix.min(32)));
                let end = u32::try_from(u64::from(address.to_bits()) + size).ok()?;
                Some(end.to_be_bytes().to_vec())
            }
            IpAddr::V6(address) => {
                let size = 1_u128.checked_shl(128 - u32::from(self.prefix.min(128)))?;
                Some(address.to_bits().checked_add(size)?.to_be_bytes().to_vec())
            }
        }
    }
}

/// How addresses become elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) prefix4: u8,
    pub(crate) prefix6: u8,
    pub(crate) timeout: Timeout,
}

/// What to write into a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) element: Element,
    pub(crate) timeout: Option<Duration>,
    /// Whether we wrote it before: its time is to begin anew.
    pub(crate) is_again: bool,
}

/// What is in a set, as far as we put it there.
#[derive(Default)]
pub(crate) struct Known {
    until: HashMap<Element, Instant>,
}

impl Known {
    /// Returns what of `batch` is to be written now, each element once.
    pub(crate) fn writes<'o>(
        &mut self,
        shape: &Shape,
        batch: impl Iterator<Item = &'o Occurrence>,
        wants: impl Fn(IpAddr) -> bool,
        now: Instant,
    ) -> Vec<Write> {
        let mut writes: Vec<Write> = Vec::new();
        for occurrence in batch {
            let timeout = shape.timeout.of(occurrence.ttl);
            for &address in occurrence.addresses.iter().filter(|address| wants(**address)) {
                let prefix = if address.is_ipv4() { shape.prefix4 } else { shape.prefix6 };
                let element = Element::new(address, prefix);
                let again_at = now + timeout.map_or(AGAIN_AFTER, |timeout| AGAIN_AFTER.min(timeout / 2));
                if self.until.get(&element).is_some_and(|until| *until > now) {
                    continue;
                }
                if self.until.len() >= REMEMBERED_MAX {
                    self.until.clear();
                }
                let is_again = self.until.insert(element, again_at).is_some();
                writes.push(Write { element, timeout, is_again });
            }
        }
        writes
    }

    /// Forgets an element that could not be written.
    pub(crate) fn forget(&mut self, element: &Element) {
        self.until.remove(element);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(address: &str, prefix: u8) -> Element {
        Element::new(address.parse().expect("an address"), prefix)
    }

    #[test]
    fn a_network_begins_and_ends_where_its_prefix_says() {
        let check = |address: &str, prefix, first: &str, end: Option<&str>| {
            let element = element(address, prefix);
            assert_eq!(element.address.to_string(), first);
            let octets = |text: &str| match text.parse().expect("an address") {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            assert_eq!(element.end(), end.map(octets), "{address}/{prefix}");
        };
        check("192.0.2.77", 32, "192.0.2.77", Some("192.0.2.78"));
        check("192.0.2.77", 24, "192.0.2.0", Some("192.0.3.0"));
        check("192.0.2.77", 0, "0.0.0.0", None);
        check("255.255.255.255", 32, "255.255.255.255", None);
        check("2001:db8:1:2::3", 48, "2001:db8:1::", Some("2001:db8:2::"));
        check("2001:db8::3", 128, "2001:db8::3", Some("2001:db8::4"));
        check("2001:db8::3", 0, "::", None);
    }

    #[test]
    fn an_element_is_written_again_when_half_its_time_is_over() {
        let shape = Shape {
            prefix4: 24,
            prefix6: 128,
            timeout: Timeout::Ttl { min: Duration::from_secs(10), max: Duration::from_secs(3600) },
        };
        let occurrence = Occurrence {
            addresses: ["192.0.2.1", "192.0.2.2", "2001:db8::1"]
                .iter()
                .map(|text| text.parse().expect("it is"))
                .collect(),
            ttl: 30,
            ..Occurrence::default()
        };
        let mut known = Known::default();
        let start = Instant::now();
        let mut writes = |after| {
            known.writes(&shape, [&occurrence].into_iter(), |_| true, start + Duration::from_secs(after))
        };
        let first = writes(0);
        let elements: Vec<_> = first.iter().map(|write| write.element).collect();
        assert_eq!(elements, [element("192.0.2.0", 24), element("2001:db8::1", 128)]);
        assert!(first.iter().all(|write| write.timeout == Some(Duration::from_secs(30)) && !write.is_again));
        assert!(writes(14).is_empty());
        assert!(writes(15).iter().all(|write| write.is_again));
        let v4 = known.writes(
            &shape,
            [&occurrence].into_iter(),
            |address| address.is_ipv4(),
            start + Duration::from_secs(90),
        );
        assert_eq!(v4.len(), 1);
    }
}
