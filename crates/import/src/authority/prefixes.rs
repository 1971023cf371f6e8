//! Addresses as other programs write them, and what is left of some without others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use wire::Prefix;

/// Prefixes that a range of addresses may take.
const RANGE_PREFIXES_MAX: usize = 128;

/// Writes a prefix; one address without its length.
pub(crate) fn text(prefix: Prefix) -> String {
    let all = if prefix.address().is_ipv4() { 32 } else { 128 };
    if prefix.bits() == all { prefix.address().to_string() } else { prefix.to_string() }
}

/// Reads `ADDRESS` or `ADDRESS@PORT`.
pub(crate) fn with_port(text: &str, port: u16) -> Option<SocketAddr> {
    let (address, port) = match text.split_once('@') {
        Some((address, port)) => (address, port.parse().ok()?),
        None => (text, port),
    };
    Some(SocketAddr::new(address.parse().ok()?, port))
}

/// Reads an address, `ADDRESS/BITS`, `ADDRESS&MASK` or `ADDRESS-ADDRESS`.
pub(crate) fn read(text: &str) -> Option<Vec<Prefix>> {
    if let Some((from, to)) = text.split_once('-') {
        return range(from.trim().parse().ok()?, to.trim().parse().ok()?);
    }
    if let Some((address, mask)) = text.split_once('&') {
        let (address, mask): (Ipv4Addr, Ipv4Addr) = (address.parse().ok()?, mask.parse().ok()?);
        let bits = mask.to_bits().leading_ones();
        return (mask.to_bits().checked_shl(bits).unwrap_or(0) == 0)
            .then(|| vec![Prefix::new(address.into(), bits as u8)]);
    }
    // BIND leaves out octets at the end: 10/8.
    let (address, bits) = text.split_once('/').unwrap_or((text, ""));
    let octets = address.split('.').count();
    let padded = match address.contains(':') {
        false if octets < 4 && !bits.is_empty() => format!("{address}{}/{bits}", ".0".repeat(4 - octets)),
        _ => text.to_owned(),
    };
    values::prefix(&padded).ok().map(|prefix| vec![prefix])
}

/// Returns the prefixes of all addresses between two.
fn range(from: IpAddr, to: IpAddr) -> Option<Vec<Prefix>> {
    let (mut at, end, width) = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => (u128::from(from.to_bits()), u128::from(to.to_bits()), 32),
        (IpAddr::V6(from), IpAddr::V6(to)) => (from.to_bits(), to.to_bits(), 128_u32),
        _ => return None,
    };
    if at > end {
        return None;
    }
    let mut found = Vec::new();
    loop {
        // The largest block that begins here and does not go beyond the end.
        let mut size = at.trailing_zeros().min(width);
        while size > 0 && (size == 128 || end - at < (1_u128 << size) - 1) {
            size -= 1;
        }
        let address = match width {
            32 => IpAddr::V4(Ipv4Addr::from_bits(at as u32)),
            _ => IpAddr::V6(Ipv6Addr::from_bits(at)),
        };
        found.push(Prefix::new(address, (width - size) as u8));
        let last = at + ((1_u128 << size) - 1);
        if last >= end || found.len() >= RANGE_PREFIXES_MAX {
            return (last >= end).then_some(found);
        }
        at = last + 1;
    }
}

/// Returns everything: both families.
pub(crate) fn everything() -> Vec<Prefix> {
    vec![Prefix::new(Ipv4Addr::UNSPECIFIED.into(), 0), Prefix::new(Ipv6Addr::UNSPECIFIED.into(), 0)]
}

/// Returns what is in `from` and not in `without`.
pub(crate) fn subtract(from: &[Prefix], without: &[Prefix]) -> Vec<Prefix> {
    let mut left: Vec<Prefix> = from.to_vec();
    for hole in without {
        left = left.into_iter().flat_map(|prefix| cut(prefix, *hole)).collect();
    }
    left
}

/// Returns a prefix without another one: halves of it, as long as the hole is in one of them.
fn cut(prefix: Prefix, hole: Prefix) -> Vec<Prefix> {
    if hole.bits() <= prefix.bits() && hole.contains(prefix.address()) {
        return Vec::new();
    }
    if !(prefix.bits() < hole.bits() && prefix.contains(hole.address())) {
        return vec![prefix];
    }
    let mut left = Vec::new();
    for bits in prefix.bits() + 1..=hole.bits() {
        left.push(sibling(Prefix::new(hole.address(), bits)));
    }
    left
}

/// Returns the other half of what is one bit shorter.
fn sibling(prefix: Prefix) -> Prefix {
    match prefix.address() {
        IpAddr::V4(address) => {
            let flipped = address.to_bits() ^ (1_u32 << (32 - u32::from(prefix.bits())));
            Prefix::new(Ipv4Addr::from_bits(flipped).into(), prefix.bits())
        }
        IpAddr::V6(address) => {
            let flipped = address.to_bits() ^ (1_u128 << (128 - u32::from(prefix.bits())));
            Prefix::new(Ipv6Addr::from_bits(flipped).into(), prefix.bits())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, expect: &[&str]) {
        let found: Vec<String> = read(written).unwrap_or_default().into_iter().map(text).collect();
        assert_eq!(found, expect, "{written}");
    }

    #[test]
    fn addresses_come_in_many_forms() {
        check("192.0.2.1", &["192.0.2.1"]);
        check("10/8", &["10.0.0.0/8"]);
        check("192.0.2.0&255.255.255.128", &["192.0.2.0/25"]);
        check("192.0.2.0&255.0.255.0", &[]);
        check("192.0.2.1-192.0.2.6", &["192.0.2.1", "192.0.2.2/31", "192.0.2.4/31", "192.0.2.6"]);
        check("2001:db8::-2001:db8::ffff", &["2001:db8::/112"]);
        check("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &["::/1", "8000::/1"]);
        check("192.0.2.9-192.0.2.1", &[]);
        check("example", &[]);
    }

    #[test]
    fn what_is_denied_is_cut_out() {
        let all = read("192.0.2.0/29").expect("a prefix");
        let left = subtract(&all, &read("192.0.2.2").expect("an address"));
        let left: Vec<String> = left.into_iter().map(text).collect();
        assert_eq!(left, ["192.0.2.4/30", "192.0.2.0/31", "192.0.2.3"]);
        assert_eq!(subtract(&all, &read("192.0.0.0/16").expect("a prefix")), []);
        assert_eq!(subtract(&all, &read("2001:db8::/32").expect("a prefix")), all);
    }
}
