//! Which zones are not found from the root down.

use std::collections::HashMap;
use std::sync::Arc;

use wire::Name;

use crate::delegation::Delegation;
use crate::heap_name::HeapName;
use crate::moment::Moment;
use crate::settings::{Forwarders, Route, Stub, Way};

/// Names a route by its place in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RouteKey(usize);

impl RouteKey {
    /// Returns its place.
    pub(crate) const fn number(self) -> u64 {
        self.0 as u64
    }

    /// The route to zones of this server that no route of the settings names.
    pub(crate) const OWN: Self = Self(usize::MAX);

    /// The second-level cache, which is asked before the way to a name is looked for.
    pub(crate) const SECOND_LEVEL: Self = Self(usize::MAX - 1);
}

/// The routes of a resolver, by zone.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    by_zone: HashMap<Box<[u8]>, RouteKey>,
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    route: Route,
    /// The zone as it is asked for by this route.
    delegation: Arc<Delegation>,
    /// When its servers were last asked which ones the zone has.
    primed_at: Option<Moment>,
    /// The next route of the same zone, if it has several.
    next: Option<RouteKey>,
}

impl Routes {
    pub(crate) fn new(routes: &[Route]) -> Self {
        let same = |at: usize, zone: &HeapName| {
            let behind = routes.iter().enumerate().skip(at + 1);
            behind.filter(|(_, other)| other.zone == *zone).map(|(next, _)| RouteKey(next)).next()
        };
        let known = routes.iter().enumerate().map(|(at, route)| Known {
            next: same(at, &route.zone),
            route: route.clone(),
            delegation: Arc::new(Delegation::of_nobody(route.zone.clone(), Some(RouteKey(at)))),
            primed_at: None,
        });
        // Of several routes of a zone the first counts until it has failed.
        let by_zone = routes.iter().enumerate().rev().map(|(at, route)| {
            let zone = route.zone.as_name().as_bytes();
            (zone.into(), RouteKey(at))
        });
        Self { by_zone: by_zone.collect(), known: known.collect() }
    }

    /// Returns the route of a name; if one has failed, the next of the same zone, or the next above
    /// it.
    pub(crate) fn closest(&self, name: Name<'_>, failed: Option<RouteKey>) -> Option<RouteKey> {
        if self.known.is_empty() {
            return None;
        }
        let failed = failed.and_then(|RouteKey(at)| self.known.get(at));
        if let Some(next) = failed.and_then(|known| known.next) {
            return Some(next);
        }
        let failed = failed.map(|known| known.route.zone.as_name().label_count());
        let folded = name.to_folded();
        let name = folded.as_name();
        let end = failed.unwrap_or(usize::MAX).min(name.label_count() + 1);
        (0..end).rev().find_map(|labels| self.by_zone.get(name.suffix(labels).as_bytes())).copied()
    }

    pub(crate) fn get(&self, RouteKey(at): RouteKey) -> Option<&Route> {
        self.known.get(at).map(|known| &known.route)
    }

    /// Returns the zone of a route as it is asked for.
    pub(crate) fn delegation(&self, RouteKey(at): RouteKey) -> Option<Arc<Delegation>> {
        self.known.get(at).map(|known| Arc::clone(&known.delegation))
    }

    /// Returns the servers of a delegation that settings name.
    pub(crate) fn stub(&self, delegation: &Delegation) -> Option<&Stub> {
        match &self.get(delegation.route?)?.way {
            Way::Stub(stub) => Some(stub),
            Way::Forward(_) | Way::Own => None,
        }
    }

    /// Returns who is asked for names of a delegation that find answers themselves, if settings
    /// name such.
    pub(crate) fn forwarders(&self, delegation: &Delegation) -> Option<Forwarders> {
        match &self.get(delegation.route?)?.way {
            Way::Forward(forwarders) => Some(*forwarders),
            Way::Stub(_) | Way::Own => None,
        }
    }

    /// Returns whether a delegation leads to a zone of this server, which is read.
    pub(crate) fn is_own(&self, delegation: &Delegation) -> bool {
        let way = |key| self.get(key).map(|route| &route.way);
        delegation.route.is_some_and(|key| key == RouteKey::OWN || matches!(way(key), Some(Way::Own)))
    }

    /// Returns whether there is a route of this zone.
    pub(crate) fn has(&self, zone: Name<'_>) -> bool {
        !self.known.is_empty() && self.by_zone.contains_key(zone.to_folded().as_name().as_bytes())
    }

    /// Returns whether what is answered for a delegation is kept. What is in memory anyway is not,
    /// unless a route says so.
    pub(crate) fn keeps(&self, delegation: &Delegation) -> bool {
        let route = delegation.route.and_then(|key| self.get(key));
        delegation.route != Some(RouteKey::OWN) && route.is_none_or(|route| route.keeps)
    }

    /// Returns whether the servers of a stub zone are to be asked now which ones the zone has, if
    /// they were not for so many microseconds.
    pub(crate) fn primes_now(&mut self, RouteKey(at): RouteKey, after_us: u64, now: Moment) -> bool {
        let Some(known) = self.known.get_mut(at) else { return false };
        let primes = matches!(&known.route.way, Way::Stub(stub) if stub.primes);
        let is_due = known.primed_at.is_none_or(|at| now.since_us(at) >= after_us);
        if primes && is_due {
            known.primed_at = Some(now);
        }
        primes && is_due
    }

    /// Returns whether servers of `zone` that were asked about `place` may not speak for a name,
    /// because a route leads elsewhere between the zone and the name.
    pub(crate) fn leads_away(&self, zone: Name<'_>, place: Name<'_>, name: Name<'_>) -> bool {
        let Some(route) = self.closest(name, None).and_then(|key| self.get(key)) else { return false };
        let other = route.zone.as_name();
        other.label_count() > zone.label_count() && !place.is_at_or_below(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::NameBuf;

    fn name(text: &str) -> NameBuf {
        NameBuf::from_text(text).expect("a name")
    }

    fn routes(zones: &[&str]) -> Routes {
        let route = |zone: &&str| Route {
            zone: HeapName::new(name(zone).as_name()),
            way: Way::Stub(Stub::default()),
            first: false,
            keeps: true,
        };
        Routes::new(&zones.iter().map(route).collect::<Vec<_>>())
    }

    #[test]
    fn a_name_goes_by_the_closest_zone() {
        let routes = routes(&["example.org", "lab.example.org", "."]);
        let check = |text: &str, failed: Option<usize>, expected: &str| {
            let failed = failed.map(RouteKey);
            let route = routes.closest(name(text).as_name(), failed).and_then(|key| routes.get(key));
            assert_eq!(route.map_or("none".to_owned(), |route| route.zone.to_string()), expected, "{text}");
        };
        check("a.LAB.example.ORG", None, "lab.example.org.");
        check("lab.example.org", None, "lab.example.org.");
        check("xlab.example.org", None, "example.org.");
        check("org", None, ".");
        check(".", None, ".");
        check("a.lab.example.org", Some(1), "example.org.");
        check("a.lab.example.org", Some(0), ".");
        check("a.lab.example.org", Some(2), "none");
    }

    #[test]
    fn a_zone_goes_by_its_next_route_before_those_above_it() {
        let routes = routes(&["example.org", "org", "example.org"]);
        let closest =
            |failed: Option<usize>| routes.closest(name("a.example.org").as_name(), failed.map(RouteKey));
        assert_eq!(closest(None), Some(RouteKey(0)));
        assert_eq!(closest(Some(0)), Some(RouteKey(2)));
        assert_eq!(closest(Some(2)), Some(RouteKey(1)));
        assert_eq!(closest(Some(1)), None);
    }

    #[test]
    fn nobody_speaks_for_a_zone_that_is_found_elsewhere() {
        let routes = routes(&["example.org", "lab.example.org"]);
        let check = |zone: &str, place: &str, other: &str, expected: bool| {
            let [zone, place, other] = [zone, place, other].map(name);
            let found = routes.leads_away(zone.as_name(), place.as_name(), other.as_name());
            assert_eq!(found, expected, "{zone} {place} {other}");
        };
        check("example.org", "a.example.org", "b.example.org", false);
        check("example.org", "a.example.org", "b.lab.example.org", true);
        check(".", "a.example.net", "b.example.org", true);
        check(".", "a.example.org", "b.example.org", false);
        check(".", "a.example.net", "b.example.net", false);
    }
}
