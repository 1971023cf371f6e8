//! Which zones there are: what the configuration, the operator and catalogs say, brought together.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use engine::peers::Places;
use plan::zones::CatalogRole;
use tracing::{info, warn};
use wire::Name;
use zone::{Change, Zones};

use crate::added::{Added, Planner};
use crate::catalog;
use crate::load::{LoadedZone, LoadedZones};
use crate::lock::lock;
use crate::managed::{ManagedZone, Origin, Taken};
use crate::shared::{ByName, Order, Shared, folded, unix_seconds};

impl Shared {
    pub(crate) fn adopt(self: &Arc<Self>, zones: &LoadedZones, planner: &Arc<dyn Planner>, by: Option<&str>) {
        let mut added = lock(&self.adopting);
        added.planner = Some(Arc::clone(planner));
        added.pool = Some(Arc::clone(zones.pool()));
        {
            let mut common = lock(&self.common);
            common.keys = zones.plan().keys.clone();
            common.loaded = Arc::clone(zones.zones());
            common.base = zones.served().map(Arc::clone);
            common.sets.clone_from(zones.sets());
            common.failing = zones.failing().into();
            let limits = zones.plan().transfers;
            common.places =
                Arc::new(Places::new(limits.outgoing_max.into(), limits.outgoing_client_max.into()));
            common.octets_max = limits.octets_max;
            let incoming_max = usize::from(limits.incoming_max);
            if incoming_max > common.incoming_max {
                self.incoming.add_permits(incoming_max - common.incoming_max);
            } else {
                self.incoming.forget_permits(common.incoming_max - incoming_max);
            }
            common.incoming_max = incoming_max;
        }
        self.settle(&mut added, by);
        // Nobody hears it any more when the server ends.
        let _ = self.orders.send(Order::LookAtSignatures);
    }

    /// Brings the set of zones to what the configuration, catalogs and the operator say. `by` is
    /// who changed the configuration, if somebody did.
    pub(crate) fn settle(self: &Arc<Self>, added: &mut Added, by: Option<&str>) {
        let now = unix_seconds();
        let (configured, base) = {
            let common = lock(&self.common);
            (Arc::clone(&common.loaded), common.base.clone())
        };
        let before = self.zones.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut zones = ByName::new();
        let mut begun: Vec<Arc<ManagedZone>> = Vec::new();
        let mut changed: Vec<Arc<ManagedZone>> = Vec::new();
        for loaded in &*configured {
            let name = folded(loaded.plan.apex.as_name());
            if zones.contains_key(&name) {
                continue;
            }
            let old = before.get(&name).filter(|old| old.origin == Origin::Configured);
            let origin = (loaded, Origin::Configured);
            let managed = self.keep(old, origin, (by, now), (&mut begun, &mut changed));
            zones.insert(name, managed);
        }
        self.put_added(added, (&before, &mut zones), (base.as_deref(), by), (&mut begun, &mut changed));
        for catalog in consumers(zones.values()) {
            for member in catalog::members_of(&catalog).iter() {
                let name = folded(member.zone.as_name());
                let other = zones.get(&name).map(Arc::clone);
                if !self.is_free_for(member.zone.as_name(), other.as_deref(), base.as_deref()) {
                    continue;
                }
                let origin = Origin::Member { catalog: catalog.apex, id: member.id.clone() };
                let old = before.get(&name);
                let before = old.and_then(|old| old.loaded().synthesized.clone());
                let loaded = catalog::load_member(member, &catalog.loaded(), self.key, before.as_deref());
                let loaded = Arc::new(loaded);
                if let Some(old) = old.filter(|old| old.origin == origin) {
                    *lock(&old.loaded) = loaded;
                    zones.insert(name, Arc::clone(old));
                    continue;
                }
                // RFC 9432 §5.4: another label for the same zone begins it anew.
                if let Some(old) = old.filter(|old| old.origin.is_member_of(&catalog.apex)) {
                    old.remove_files();
                }
                let managed = Arc::new(ManagedZone::open(&loaded, origin, self.key, &self.disk, now));
                info!(zone = %managed.apex, "is a new member of a catalog");
                begun.push(Arc::clone(&managed));
                zones.insert(name, managed);
            }
        }
        for (name, old) in &before {
            if !zones.get(name).is_some_and(|managed| Arc::ptr_eq(managed, old)) {
                old.end();
                if !zones.contains_key(name) {
                    self.forget(old);
                }
            }
        }
        drop(before);
        let all: Vec<Arc<ManagedZone>> = zones.values().map(Arc::clone).collect();
        changed.extend(catalog::produce_all(&all, self.key, now));
        let old = self.change(|current| std::mem::replace(current, zones));
        self.watch(all.iter());
        self.publish_all(&all, base.as_ref());
        self.unwatch(old.values().filter(|old| {
            self.managed(old.apex.as_name()).is_none_or(|managed| managed.origin == Origin::Configured)
        }));
        drop(old);
        self.follow(&begun);
        // Whoever signs knows what is signed already.
        for managed in &all {
            self.have_signed(managed);
        }
        for managed in changed.iter().filter(|managed| !managed.loaded().signed.has_versions()) {
            self.notify(managed);
        }
    }

    /// Has a zone go on by a new plan, or begin by it; notes whether it begins to follow others,
    /// and whether it has changed.
    pub(crate) fn keep(
        &self,
        old: Option<&Arc<ManagedZone>>,
        (loaded, origin): (&Arc<LoadedZone>, Origin),
        (by, now): (Option<&str>, u64),
        (begun, changed): (&mut Vec<Arc<ManagedZone>>, &mut Vec<Arc<ManagedZone>>),
    ) -> Arc<ManagedZone> {
        let Some(old) = old else {
            let managed = Arc::new(ManagedZone::open(loaded, origin, self.key, &self.disk, now));
            if let Some(by) = by {
                lock(&managed.current).note_change(by, now);
            }
            begun.push(Arc::clone(&managed));
            return managed;
        };
        let was_secondary = old.is_secondary();
        if old.replan(loaded, self.key, (by, now)) == Taken::New {
            changed.push(Arc::clone(old));
        }
        if !was_secondary && old.is_secondary() {
            begun.push(Arc::clone(old));
        }
        Arc::clone(old)
    }

    /// Returns whether a catalog may have a zone of this name; says why not.
    pub(crate) fn is_free_for(
        &self,
        apex: Name<'_>,
        other: Option<&ManagedZone>,
        base: Option<&Zones>,
    ) -> bool {
        match other {
            Some(other) => {
                match other.origin {
                    Origin::Configured => {
                        warn!(zone = %other.apex, "is in a catalog and in the configuration, which counts");
                    }
                    Origin::Added => warn!(zone = %other.apex, "is in a catalog and was added, which counts"),
                    Origin::Member { .. } => {}
                }
                false
            }
            None if base.is_some_and(|base| base.at(apex).is_some()) => {
                warn!(zone = %apex, "is in a catalog and in a directory of zones, which counts");
                false
            }
            None => true,
        }
    }

    /// Forgets what was kept of a zone that is no member of its catalog any more.
    fn forget(&self, gone: &ManagedZone) {
        if matches!(gone.origin, Origin::Member { .. }) {
            info!(zone = %gone.apex, "is no member of its catalog any more and is removed");
            gone.remove_files();
        }
    }

    /// Brings the members of a catalog to what its new version says; other zones are not touched.
    pub(crate) fn settle_members(self: &Arc<Self>, catalog: &Arc<ManagedZone>) {
        let mut added = lock(&self.adopting);
        if consumers(self.all().iter()).len() > 1 {
            // A zone that one of them gives up another may have.
            self.settle(&mut added, None);
            return;
        }
        let (now, base) = (unix_seconds(), lock(&self.common).base.clone());
        let members = catalog::members_of(catalog);
        let wanted: BTreeMap<&[u8], &[u8]> =
            members.iter().map(|member| (member.zone.as_name().as_bytes(), &*member.id)).collect();
        let is_wanted = |managed: &ManagedZone| {
            let id = wanted.get(managed.apex.as_name().to_folded().as_bytes());
            matches!((&managed.origin, id), (Origin::Member { id, .. }, Some(wanted)) if id == wanted)
        };
        let gone: Vec<Arc<ManagedZone>> = self
            .all()
            .into_iter()
            .filter(|managed| managed.origin.is_member_of(&catalog.apex) && !is_wanted(managed))
            .collect();
        let mut changes: Vec<Change> = Vec::new();
        for managed in &gone {
            self.change(|zones| zones.remove(&folded(managed.apex.as_name())));
            managed.end();
            self.forget(managed);
            changes.push(Change::Remove(managed.apex));
        }
        let template = catalog.loaded();
        let mut begun = Vec::new();
        for member in members.iter() {
            let other = self.managed(member.zone.as_name());
            if other.as_ref().is_some_and(|other| other.origin.is_member_of(&catalog.apex))
                || !self.is_free_for(member.zone.as_name(), other.as_deref(), base.as_deref())
            {
                continue;
            }
            let loaded = Arc::new(catalog::load_member(member, &template, self.key, None));
            let origin = Origin::Member { catalog: catalog.apex, id: member.id.clone() };
            let managed = Arc::new(ManagedZone::open(&loaded, origin, self.key, &self.disk, now));
            info!(zone = %managed.apex, "is a new member of a catalog");
            self.change(|zones| zones.insert(folded(managed.apex.as_name()), Arc::clone(&managed)));
            changes.extend(managed.changes());
            begun.push(managed);
        }
        self.watch(begun.iter());
        self.publish_changes(changes);
        self.unwatch(gone.iter().filter(|gone| self.managed(gone.apex.as_name()).is_none()));
        self.follow(&begun);
        for managed in &begun {
            self.have_signed(managed);
        }
    }
}

fn consumers<'k>(zones: impl Iterator<Item = &'k Arc<ManagedZone>>) -> Vec<Arc<ManagedZone>> {
    let consumes =
        |managed: &&Arc<ManagedZone>| managed.loaded().plan.catalog_role == Some(CatalogRole::Consumer);
    zones.filter(consumes).map(Arc::clone).collect()
}
