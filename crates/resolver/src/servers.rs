//! Which name servers lead to a name, for policies that look at them.

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;

use cache::Now;
use cache::rrsets::{Found, Partition, RrsetKey, Rrsets};
use wire::{Class, Name, NameBuf, Rtype};

use crate::addresses::address;
use crate::routes::Routes;
use crate::settings::{Settings, Way};

/// Zones of one name whose servers are looked at, from the closest up: more are not found for one
/// question.
const ZONES_MAX: usize = 32;

/// What is known of a name server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownServer<'a> {
    /// Its name, in lower case.
    Name(Name<'a>),
    /// An address of the one whose name came before.
    Address(IpAddr),
}

/// What a resolver knows of the servers of zones.
///
/// The servers of a name are those of its zone and of the zones above it as far as delegations are
/// known, and those of a stub zone that settings name, as far as these zones have so many labels as
/// settings say. Whom forwarders ask is not known; the servers that are asked in their place if
/// they fail are.
pub struct ServersKnown {
    rrsets: Arc<Rrsets>,
    partition: Partition,
    routes: Routes,
    /// Labels of the highest zones whose servers count.
    zone_labels_min: usize,
    /// Room for a delegation, and for an RRset.
    rooms: RefCell<(Vec<u8>, Vec<u8>)>,
}

impl ServersKnown {
    /// Returns what is known in the table of a resolver with these settings.
    pub fn new(settings: &Settings, rrsets: &Arc<Rrsets>) -> Self {
        Self {
            rrsets: Arc::clone(rrsets),
            partition: settings.partition,
            routes: Routes::new(&settings.routes),
            zone_labels_min: usize::from(settings.ns_labels_min),
            rooms: RefCell::default(),
        }
    }

    /// Returns how many labels a zone has at least whose servers lead to a name; `None`: nobody
    /// knows who does.
    fn labels_min(&self, name: Name<'_>) -> Option<usize> {
        let route = self.routes.closest(name, None).and_then(|key| self.routes.get(key));
        let Some(route) = route else { return Some(self.zone_labels_min) };
        let labels = route.zone.as_name().label_count();
        match &route.way {
            // Those of the zone itself are asked where the others have failed.
            _ if route.first => Some(self.zone_labels_min.max(labels)),
            // Whom forwarders have asked is not known.
            Way::Forward(_) => None,
            Way::Stub(_) | Way::Own => Some(self.zone_labels_min.max(labels + 1)),
        }
    }

    /// Calls `f` with the addresses of a server that the table knows, until it returns true;
    /// returns whether it did.
    fn any_address(
        &self,
        server: Name<'_>,
        now: Now,
        room: &mut Vec<u8>,
        f: &mut dyn FnMut(IpAddr) -> bool,
    ) -> bool {
        for rtype in [Rtype::A, Rtype::AAAA] {
            let key =
                RrsetKey::of_lower_case(self.rrsets.hash_key(), server, rtype, Class::IN, self.partition);
            // What nobody validated is what servers are asked at.
            for key in [key.unchecked(self.rrsets.hash_key()), key] {
                if let Some(Found::Rrset(rrset)) = self.rrsets.look(&key, now, room) {
                    if rrset.records().filter_map(address).any(&mut *f) {
                        return true;
                    }
                    break;
                }
            }
        }
        false
    }

    /// Calls `f` with the servers of the stub zone that a name is in, as settings name them, until
    /// it returns true.
    fn each_of_stub(&self, name: Name<'_>, f: &mut dyn FnMut(KnownServer<'_>) -> bool) {
        let route = self.routes.closest(name, None).and_then(|key| self.routes.get(key));
        let Some((Way::Stub(stub), zone)) = route.map(|route| (&route.way, route.zone.as_name())) else {
            return;
        };
        if zone.label_count() >= self.zone_labels_min
            && !stub.addresses.iter().any(|address| f(KnownServer::Address(address.ip())))
        {
            let _ = stub.hosts.iter().any(|(host, _)| f(KnownServer::Name(host.as_name())));
        }
    }

    /// Calls `f` with the servers that lead to a name, those of the closest zone first, until it
    /// returns true.
    pub fn each(&self, name: Name<'_>, now: Now, f: &mut dyn FnMut(KnownServer<'_>) -> bool) {
        let (Some(labels_min), Ok(mut rooms)) = (self.labels_min(name), self.rooms.try_borrow_mut()) else {
            return;
        };
        let (of_cut, of_rrset) = &mut *rooms;
        let mut place: NameBuf = name.to_buf();
        for _ in 0..ZONES_MAX {
            let cut = self.rrsets.closest_cut(place.as_name(), self.partition, now, of_cut);
            let Some(cut) = cut.filter(|cut| cut.zone.label_count() >= labels_min) else {
                return self.each_of_stub(name, f);
            };
            for (server, glue) in cut.servers() {
                let server = server.as_name().to_folded();
                let mut is_done = f(KnownServer::Name(server.as_name()));
                is_done = is_done || glue.clone().any(|address| f(KnownServer::Address(address)));
                let is_glue = |address| glue.clone().any(|glue| glue == address);
                let mut known = |address| !is_glue(address) && f(KnownServer::Address(address));
                if is_done || self.any_address(server.as_name(), now, of_rrset, &mut known) {
                    return;
                }
            }
            let Some(parent) = cut.zone.parent().map(Name::to_buf) else { break };
            place = parent;
        }
    }
}
