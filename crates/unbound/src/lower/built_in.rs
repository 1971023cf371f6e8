//! Local zones that are there although no file has them: they are closer to their names than a zone
//! of a file above them.

use std::collections::HashSet;

use super::zone_table::{Zone, Zones};
use crate::names::{above, is_below, is_strictly_below, lan_zones, special_zones};

/// Returns whether a zone of this name can lie above one that is built in: cheap, for those who
/// have a million names. Case does not matter, nor a dot at the end.
pub(super) fn can_be_above(name: &str) -> bool {
    let bare = name.strip_suffix('.').unwrap_or(name).as_bytes();
    bare.is_empty() || bare.last_chunk::<4>().is_some_and(|tail| tail.eq_ignore_ascii_case(b"arpa"))
}

/// Zones that are built in, where some zone of the file lies above one of them; else they are asked
/// for after all zones of the file, and nobody has to look at them.
#[derive(Default)]
pub(super) struct BuiltIn(Vec<String>);

impl BuiltIn {
    /// Returns those that no zone of the file takes the place of.
    pub(super) fn beside(zones: &Zones<'_>, has_lan: bool) -> Self {
        let lan = lan_zones().filter(|_| has_lan);
        let mut all = Self(special_zones().chain(lan).collect());
        let names: HashSet<&str> = all.0.iter().flat_map(|name| above(name)).collect();
        let near: HashSet<String> = zones
            .iter()
            .map(|zone| &*zone.name)
            .filter(|name| names.contains(name))
            .map(str::to_owned)
            .collect();
        all.0.retain(|name| !near.contains(name));
        let is_needed = zones.iter().any(|zone| all.has_below(&zone.name));
        if is_needed { all } else { Self::default() }
    }

    /// Returns whether one of them lies below a name.
    pub(super) fn has_below(&self, name: &str) -> bool {
        !self.0.is_empty() && can_be_above(name) && self.below(name).next().is_some()
    }

    /// Returns the one that a name lies in, if it is closer than `zone`.
    pub(super) fn closer(&self, name: &str, zone: &str) -> Option<&str> {
        self.below(zone).find(|built_in| is_below(name, built_in))
    }

    /// Returns those that lie below zones, as a condition; `None` if there are none.
    pub(super) fn condition(&self, zones: &[&Zone<'_>]) -> Option<String> {
        let wide: Vec<&Zone<'_>> = zones.iter().copied().filter(|zone| self.has_below(&zone.name)).collect();
        let is_in = |name: &&String| wide.iter().any(|zone| is_below(name, &zone.name));
        let names: Vec<String> = self.0.iter().filter(is_in).map(|name| format!("suffix:{name}")).collect();
        (!names.is_empty()).then(|| format!("qname in {}", names.join("|")))
    }

    fn below(&self, zone: &str) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str).filter(move |name| is_strictly_below(name, zone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_root_and_names_in_arpa_can_be_above_one_that_is_built_in() {
        for name in [".", "arpa", "ARPA.", "in-addr.arpa", "f.ip6.arpa"] {
            assert!(can_be_above(name), "{name}");
        }
        for name in ["example", "localhost", "arpa.example", "pa", "ärpa.x"] {
            assert!(!can_be_above(name), "{name}");
        }
        let all: Vec<String> = special_zones().chain(lan_zones()).collect();
        let above = all.iter().flat_map(|name| above(name).skip(1));
        above.for_each(|name| assert!(can_be_above(name), "{name}"));
    }
}
