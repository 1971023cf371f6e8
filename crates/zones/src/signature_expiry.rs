//! Signatures of zones that brought their keys: the log warns in time that they end.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::lock::lock;
use crate::shared::{Shared, folded, unix_seconds};
use wire::calendar::date_at;

/// How often is looked.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(3600);
const DAY_S: u64 = 86_400;

/// How near an end is. Each is logged once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    Week,
    Day,
    Over,
}

/// What was logged: by zone, its name in lower case, and end.
#[derive(Default)]
pub(crate) struct Warned(BTreeMap<(Vec<u8>, u32), Nearness>);

fn nearness(until: u32, now: u64) -> Option<Nearness> {
    match u64::from(until).saturating_sub(now) {
        0 => Some(Nearness::Over),
        left if left <= DAY_S => Some(Nearness::Day),
        left if left <= 7 * DAY_S => Some(Nearness::Week),
        _ => None,
    }
}

/// Returns a moment as people write it, in UTC.
fn written(unix_seconds: u32) -> String {
    let (year, month, day) = date_at(unix_seconds.into());
    let minutes = unix_seconds / 60 % 1440;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

impl Shared {
    /// Tells of zones whose own signatures end soon, or are over.
    pub(crate) fn look_at_signatures(&self) {
        let live = lock(&self.live).for_clients.clone();
        let sets = lock(&self.common).sets.clone();
        let zones = live.iter().chain(sets.values()).flat_map(|zones| zones.all());
        let now = unix_seconds();
        let mut told = lock(&self.warned_of_signatures);
        let mut known = BTreeMap::new();
        for zone in zones.filter(|zone| zone.facts().has_own_keys) {
            let Some(until) = zone.signed_until(&self.key) else { continue };
            let Some(nearness) = nearness(until, now) else { continue };
            let key = (folded(zone.apex()), until);
            let (apex, when) = (zone.apex(), written(until));
            if told.0.get(&key).is_none_or(|before| *before < nearness) && !known.contains_key(&key) {
                match nearness {
                    Nearness::Over => {
                        tracing::error!(zone = %apex, "signatures of its own keys ended at {when}: validating clients refuse them");
                    }
                    Nearness::Week | Nearness::Day => {
                        tracing::warn!(zone = %apex, "signatures of its own keys end at {when}: it wants key sets with another \"until\"");
                    }
                }
            }
            known.insert(key, nearness);
        }
        // What is not near any more, or is gone, is logged again if it comes back.
        told.0 = known;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_a_week_and_a_day_before_and_when_it_is_there() {
        let until = 1_800_000_000;
        let at = |before: i64| nearness(until, u64::from(until).saturating_add_signed(-before));
        assert_eq!(at(7 * 86_400 + 1), None);
        assert_eq!((at(7 * 86_400), at(86_401)), (Some(Nearness::Week), Some(Nearness::Week)));
        assert_eq!((at(86_400), at(1)), (Some(Nearness::Day), Some(Nearness::Day)));
        assert_eq!((at(0), at(-86_400)), (Some(Nearness::Over), Some(Nearness::Over)));
        assert_eq!(written(until), "2027-01-15 08:00 UTC");
    }
}
