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
