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

/// Returns whether a name can lie in a zone that is built in: cheap, too.
fn can_be_in(name: &str) -> bool {
    let top = name.rsplit('.').next();
    top.is_some_and(|top| ["arpa", "localhost", "onion", "test", "invalid"].contains(&top))
}

/// The data of the zone `localhost`, which all names below it have, too.
const LOCALHOST: [&str; 2] = ["A 127.0.0.1", "AAAA ::1"];
/// The TTL of what is built in.
const TTL: u32 = 10_800;

/// Zones that are built in, and that no zone of the file takes the place of.
#[derive(Default)]
pub(super) struct BuiltIn {
    names: Vec<String>,
    /// Whether some zone of the file lies above one of them; else they are asked for after all
    /// zones of the file.
    are_below: bool,
}

impl BuiltIn {
    /// Returns those that no zone of the file takes the place of.
    pub(super) fn beside(zones: &Zones<'_>, has_lan: bool) -> Self {
        let lan = lan_zones().filter(|_| has_lan);
        let mut all = Self { names: special_zones().chain(lan).collect(), are_below: true };
        let names: HashSet<&str> = all.names.iter().flat_map(|name| above(name)).collect();
        let near: HashSet<String> = zones
            .iter()
            .map(|zone| &*zone.name)
            .filter(|name| names.contains(name))
            .map(str::to_owned)
            .collect();
        all.names.retain(|name| !near.contains(name));
        all.are_below = zones.iter().any(|zone| all.has_below(&zone.name));
        all
    }

    /// Returns the one that a name lies in.
    pub(super) fn around(&self, name: &str) -> Option<&str> {
        if !can_be_in(name) {
            return None;
        }
        above(name).find_map(|name| self.names.iter().find(|built_in| *built_in == name)).map(String::as_str)
    }

    /// Returns whether one of them lies below a name.
    pub(super) fn has_below(&self, name: &str) -> bool {
        self.are_below && can_be_above(name) && self.below(name).next().is_some()
    }

    /// Returns the one that a name lies in, if it is closer than `zone`.
    pub(super) fn closer(&self, name: &str, zone: &str) -> Option<&str> {
        self.below(zone).find(|built_in| self.are_below && is_below(name, built_in))
    }

    /// Returns those that lie below zones, as a condition; `None` if there are none.
    pub(super) fn condition(&self, zones: &[&Zone<'_>]) -> Option<String> {
        let wide: Vec<&Zone<'_>> = zones.iter().copied().filter(|zone| self.has_below(&zone.name)).collect();
        let is_in = |name: &&String| wide.iter().any(|zone| is_below(name, &zone.name));
        let names: Vec<String> =
            self.names.iter().filter(is_in).map(|name| format!("suffix:{name}")).collect();
        (!names.is_empty()).then(|| format!("qname in {}", names.join("|")))
    }

    fn below(&self, zone: &str) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(move |name| is_strictly_below(name, zone))
    }
}

/// Returns the records of a zone that is built in, but for those whose owner and type the file has
/// itself: there the file counts, or, of addresses, both do.
pub(super) fn records_of(zone: &str, is_written: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut records = Vec::new();
    for data in [format!("SOA {zone}. nobody.invalid. 1 3600 1200 604800 {TTL}"), format!("NS {zone}.")] {
        let (rtype, _) = data.split_once(' ').unwrap_or_default();
        if !is_written(zone, rtype) {
            records.push(format!("{zone}. {TTL} IN {data}"));
        }
    }
    match zone {
        "localhost" => records.extend(LOCALHOST.iter().map(|data| format!("{zone}. {TTL} IN {data}"))),
        "127.in-addr.arpa" => records.push(format!("1.0.0.{zone}. {TTL} IN PTR localhost.")),
        zone if is_loopback(zone) => records.push(format!("{zone}. {TTL} IN PTR localhost.")),
        _ => {}
    }
    if zone == "localhost" {
        let below: Vec<String> = records.iter().map(|record| format!("*.{record}")).collect();
        records.extend(below);
    }
    records
}

fn is_loopback(zone: &str) -> bool {
    crate::names::reverse_owner("::1").is_some_and(|name| name == zone)
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
        all.iter().for_each(|name| assert!(can_be_in(name), "{name}"));
    }
}
