//! Names, and which local zone is closest to them.

use std::collections::BTreeMap;

/// Returns for each zone how many zones lie below it on the longest way down: who goes through them
/// in this order meets the closest zone of a name first.
pub(super) fn heights<'z>(zones: impl Iterator<Item = &'z str> + Clone) -> BTreeMap<&'z str, usize> {
    let mut heights: BTreeMap<&str, usize> = zones.clone().map(|zone| (zone, 0)).collect();
    let mut deepest_first: Vec<&str> = zones.collect();
    deepest_first.sort_by_key(|zone| std::cmp::Reverse(labels(zone)));
    for zone in deepest_first {
        let own = heights.get(zone).copied().unwrap_or(0);
        let mut above = zone;
        let mut height = own;
        while let Some(parent) = parent(above) {
            above = parent;
            if let Some(known) = heights.get_mut(above) {
                height += 1;
                *known = (*known).max(height);
            }
        }
    }
    heights
}

/// Returns the name of a zone without its first label; none of the root.
fn parent(name: &str) -> Option<&str> {
    match name {
        "." => None,
        _ => Some(name.split_once('.').map_or(".", |(_, parent)| parent)),
    }
}

fn labels(name: &str) -> usize {
    if name == "." { 0 } else { name.split('.').count() }
}

/// Returns whether there is a local zone of this name although no file has one.
pub(super) fn is_built_in(name: &str) -> bool {
    const NAMES: [&str; 22] = [
        "localhost",
        "home.arpa",
        "resolver.arpa",
        "service.arpa",
        "onion",
        "test",
        "invalid",
        "127.in-addr.arpa",
        "10.in-addr.arpa",
        "168.192.in-addr.arpa",
        "0.in-addr.arpa",
        "254.169.in-addr.arpa",
        "2.0.192.in-addr.arpa",
        "100.51.198.in-addr.arpa",
        "113.0.203.in-addr.arpa",
        "255.255.255.255.in-addr.arpa",
        "d.f.ip6.arpa",
        "8.e.f.ip6.arpa",
        "9.e.f.ip6.arpa",
        "a.e.f.ip6.arpa",
        "b.e.f.ip6.arpa",
        "8.b.d.0.1.0.0.2.ip6.arpa",
    ];
    // Parts of 172.16/12 and 100.64/10 (RFC 1918 §3, RFC 7793), and :: and ::1.
    let part = |of: &str| name.strip_suffix(of).and_then(|octet| octet.parse::<u8>().ok());
    let zeros =
        |first: &str| name.strip_prefix(first).is_some_and(|rest| rest == ".0".repeat(31) + ".ip6.arpa");
    NAMES.contains(&name)
        || part(".172.in-addr.arpa").is_some_and(|octet| (16..32).contains(&octet))
        || part(".100.in-addr.arpa").is_some_and(|octet| (64..128).contains(&octet))
        || zeros("0")
        || zeros("1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_zone_comes_first() {
        let zones = [".", "example", "a.b.example", "b.example", "net"];
        let heights = heights(zones.into_iter());
        let of = |zone: &str| heights.get(zone).copied();
        assert_eq!(zones.map(of), [Some(3), Some(2), Some(0), Some(1), Some(0)]);
    }
}
