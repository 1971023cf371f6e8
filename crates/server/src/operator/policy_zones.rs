//! Sets that are made of zones from other servers.

use std::collections::BTreeSet;

use wire::Name;

use super::Operator;
use crate::lock;

impl Operator {
    /// Makes those sets anew that are made of a zone and have not the version of it that is in use.
    pub(super) fn follow_zone(&self, apex: Name<'_>) {
        let Some(version) = self.components.manager.received(apex) else { return };
        let sets: BTreeSet<String> = {
            let view = lock(&self.view);
            let all = view.policy_zones.iter().filter(|(zone, _)| zone.as_name() == apex);
            let behind = all.filter(|(_, set)| !view.sets.is_made_of(set, &version));
            behind.map(|(_, set)| set.clone()).collect()
        };
        for set in sets {
            // What becomes of it is in the log.
            drop(self.set_reload(&set));
        }
    }

    /// Does so for all zones: after a change of settings, as a zone may have come before the sets
    /// that are made of it were in use.
    pub(crate) fn follow_zones(&self) {
        let zones = lock(&self.view).policy_zones.clone();
        for (apex, _) in zones.iter() {
            self.follow_zone(apex.as_name());
        }
    }
}
