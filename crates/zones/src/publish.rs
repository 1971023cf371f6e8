//! The current version of a zone becomes the one that is served; secondaries and the signer are
//! notified.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::peers::Authority;
use plan::zones::CatalogRole;
use zone::{Change, Zones};

use crate::catalog;
use crate::lock::lock;
use crate::managed::{ManagedZone, Origin};
use crate::requests::Requests;
use crate::shared::{Live, Order, Shared, unix_seconds};

impl Shared {
    /// Makes catalogs anew if zones that came or went are listed in them.
    pub(crate) fn produce_for<'k>(self: &Arc<Self>, mut zones: impl Iterator<Item = &'k Arc<ManagedZone>>) {
        if zones.any(|managed| managed.loaded().plan.member_of.is_some()) {
            for catalog in catalog::produce_all(&self.all(), self.key, unix_seconds()) {
                self.publish(&catalog);
                self.notify(&catalog);
            }
        }
    }

    /// Looks after zones that come from other servers, from now on, and notifies the secondaries of
    /// all.
    pub(crate) fn follow(&self, begun: &[Arc<ManagedZone>]) {
        for managed in begun {
            if managed.is_secondary() {
                // Nobody hears it any more when the server ends.
                let _ = self.orders.send(Order::Follow(Arc::clone(managed)));
            }
            // A secondary may have missed a notification: RFC 1996 §4.8 notifies all of them at a
            // start.
            if lock(&managed.served).is_some() {
                self.notify(managed);
            }
            if managed.is_secondary() && lock(&managed.current).zone.is_some() {
                self.news.changed(managed.apex.as_name());
            }
        }
    }

    /// Makes what is current of a zone what is served, on all workers.
    pub(crate) fn publish(self: &Arc<Self>, managed: &ManagedZone) {
        let mut live = lock(&self.live);
        let place = match managed.loaded().plan.is_for_resolvers {
            true => &mut live.for_resolvers,
            false => &mut live.for_clients,
        };
        if let Some(zones) = place
            && !managed.is_gone.load(Ordering::Relaxed)
            && zones.at(managed.apex.as_name()).is_some()
        {
            let with = zones.with_all([managed.change()]);
            *place = Some(Arc::new(with));
        }
        self.publish_live(&live);
    }

    /// Has checked what zones lead to that came while the server runs. Before they are served: what
    /// is known to be down then is left out from the first answer on.
    pub(crate) fn watch<'k>(&self, zones: impl Iterator<Item = &'k Arc<ManagedZone>>) {
        for managed in zones.filter(|managed| managed.origin != Origin::Configured) {
            let loaded = managed.loaded();
            let watched = loaded.synthesized.as_ref().map_or(&[][..], |it| &it.checks.watched);
            self.watcher.watch(managed.apex.as_name(), watched);
        }
    }

    /// Checks nothing any more of zones that are gone.
    pub(crate) fn unwatch<'k>(&self, zones: impl Iterator<Item = &'k Arc<ManagedZone>>) {
        for managed in zones.filter(|managed| managed.origin != Origin::Configured) {
            self.watcher.watch(managed.apex.as_name(), &[]);
        }
    }

    /// Makes changes to what is served.
    pub(crate) fn publish_changes(self: &Arc<Self>, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let mut live = lock(&self.live);
        let none = || Arc::new(Zones::new(self.key, Vec::new()));
        // Those for resolvers alone are in the configuration, where nothing comes or goes.
        let with = live.for_clients.as_ref().map_or_else(none, Arc::clone).with_all(changes);
        live.for_clients = Some(Arc::new(with));
        self.publish_live(&live);
    }

    /// Makes these the zones that are served; `base` has those of the configuration, with what they
    /// answer beside records.
    pub(crate) fn publish_all(self: &Arc<Self>, managed: &[Arc<ManagedZone>], base: Option<&Arc<Zones>>) {
        let mut live = lock(&self.live);
        let (for_resolvers, managed): (Vec<_>, Vec<_>) =
            managed.iter().partition(|managed| managed.loaded().plan.is_for_resolvers);
        live.for_resolvers = (!for_resolvers.is_empty()).then(|| {
            let changes = for_resolvers.iter().map(|managed| managed.change());
            Arc::new(Zones::new(self.key, Vec::new()).with_all(changes))
        });
        live.for_clients = base.map(Arc::clone);
        if live.for_clients.is_none() && !(managed.is_empty() && for_resolvers.is_empty()) {
            live.for_clients = Some(Arc::new(Zones::new(self.key, Vec::new())));
        }
        if let Some(all) = &live.for_clients {
            let differs = |managed: &&&Arc<ManagedZone>| {
                let is_there = all.at(managed.apex.as_name()).map(|there| there.map(Arc::as_ptr));
                is_there != Some(lock(&managed.served).as_ref().map(Arc::as_ptr))
            };
            // The configuration knows what its own zones answer beside their records.
            let is_special = |managed: &&&Arc<ManagedZone>| {
                managed.origin != Origin::Configured && managed.loaded().synthesized.is_some()
            };
            let changing = managed.iter().filter(|managed| differs(managed) || is_special(managed));
            let changes: Vec<Change> = changing.flat_map(|managed| managed.changes()).collect();
            if !changes.is_empty() {
                let with = all.with_all(changes);
                live.for_clients = Some(Arc::new(with));
            }
        }
        self.publish_live(&live);
    }

    fn publish_live(self: &Arc<Self>, live: &Live) {
        let authority = live.for_clients.as_ref().map(|zones| {
            let common = lock(&self.common);
            Arc::new(Authority {
                zones: Arc::clone(zones),
                for_resolvers: live.for_resolvers.clone(),
                keys: common.keys.clone(),
                keeper: Arc::new(Requests(Arc::clone(self))),
                places: Arc::clone(&common.places),
            })
        });
        self.cell.publish_authority(authority);
    }

    /// A zone has a new version: it is served, members of a catalog are adopted, secondaries are
    /// notified.
    pub(crate) fn changed(self: &Arc<Self>, managed: &Arc<ManagedZone>) {
        managed.write_copy();
        if managed.is_secondary() {
            self.news.changed(managed.apex.as_name());
        }
        if self.have_signed(managed) {
            // It is served when it is signed.
            return;
        }
        if managed.loaded().plan.catalog_role == Some(CatalogRole::Consumer) {
            self.settle_members(managed);
        }
        self.publish(managed);
        self.notify(managed);
    }

    /// Has a zone signed, if it is one that is served signed. Returns whether it is.
    pub(crate) fn have_signed(&self, managed: &ManagedZone) -> bool {
        if !managed.loaded().signed.has_versions() {
            return false;
        }
        let current = lock(&managed.current).zone.clone();
        if let Some(current) = current {
            self.signer.sign(managed.apex.as_name(), &current);
        }
        true
    }

    pub(crate) fn notify(&self, managed: &Arc<ManagedZone>) {
        if !managed.loaded().plan.notify.is_empty() {
            let _ = self.orders.send(Order::Notify(Arc::clone(managed)));
        }
    }
}
