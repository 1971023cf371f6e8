//! Name servers and addresses beside answers that the tables have, for clients that are to see
//! them.

use cache::Security;
use wire::{Name, Rtype};

use super::{Resolver, TaskKey};
use crate::heap_name::HeapQuestion;
use crate::moment::Moment;
use crate::scrub::{Answer, SERVERS_MAX, Set, host_in};
use crate::tables::Known;

impl Resolver {
    /// Has what stands beside data that is known shown with it, if a client is to see that; returns
    /// whether that is there, or is known to be nothing. If not, servers are asked: the answer
    /// would lack what they say.
    pub(super) fn take_beside(&mut self, key: TaskKey, known: &Known, now: Moment) -> bool {
        let Self { tasks, memory, routes, .. } = self;
        let Known::Data(set) = known else { return true };
        let Some(task) = tasks.get_mut(key.0 as usize).filter(|task| task.follows_aliases()) else {
            return true;
        };
        // Of name servers, keys and delegations nobody wants more than these.
        if matches!(task.question.rtype, Rtype::NS | Rtype::DS | Rtype::DNSKEY) {
            return true;
        }
        let place = task.question.place();
        let route = routes.closest(place, task.failed_route).and_then(|key| routes.delegation(key));
        // What forwarders have beside an answer is as it comes: they may have nothing there ever.
        if route.as_ref().is_some_and(|route| routes.forwarders(route).is_some()) {
            return true;
        }
        let cut = memory.delegation(place, now.seconds());
        let above = [route, cut].into_iter().flatten().map(|it| it.zone.as_name().label_count()).max();
        // Nobody knows whose servers they would be.
        let Some(above) = above else { return true };
        // What is signed says of which zone it is.
        let is_secure = set.security == Security::Secure;
        let zones = match usize::from(set.signer_labels) {
            signer if is_secure => signer..signer + 1,
            // Who serves a zone and one below it refers nobody there.
            _ => above..place.label_count() + 1,
        };
        let how = (is_secure, task.question.unchecked);
        let beside =
            zones.rev().find_map(|labels| memory.beside_of(place.suffix(labels), how, now.seconds()));
        // What an alias leads to is told with what there is: its servers were asked just now.
        let is_known = beside.is_some() || task.waiters.is_empty();
        task.beside = beside.filter(|beside| !beside.is_empty()).map(Box::new);
        is_known
    }

    /// Adds what is known of the addresses of hosts that data from the tables names, if clients are
    /// to see them: those of name servers in any case (RFC 9609 §4.2).
    pub(super) fn add_addresses(&mut self, key: TaskKey, set: &Set, now: Moment) {
        let Self { tasks, memory, settings, .. } = self;
        if settings.minimal_additional && set.rtype != Rtype::NS {
            return;
        }
        let Some(task) = tasks.get_mut(key.0 as usize).filter(|task| !task.waiters.is_empty()) else {
            return;
        };
        let how = (set.security == Security::Secure, task.question.unchecked);
        let mut beside = task.beside.take().unwrap_or_default();
        for host in set.data().filter_map(|data| host_in(set.rtype, data)).take(SERVERS_MAX) {
            for rtype in [Rtype::A, Rtype::AAAA] {
                let is_there = |known: &Set| known.rtype == rtype && known.owner.as_name() == host;
                if !beside.addresses.iter().any(is_there) {
                    beside.addresses.extend(memory.look_beside(host, rtype, how, now.seconds()));
                }
            }
        }
        task.beside = Some(beside).filter(|beside| !beside.is_empty());
    }

    /// Notes that nothing stands beside the data of an answer where servers of this zone would: who
    /// asks for what is known need not ask them for it.
    pub(super) fn note_nothing_beside(
        &self,
        (zone, question): (Name<'_>, &HeapQuestion),
        answer: &Answer,
        now: Moment,
    ) {
        let is_end = |set: &&Set| set.rtype == question.rtype && set.rtype != Rtype::NS;
        let Some(set) = answer.sets.last().filter(is_end) else { return };
        let zone = match set.security {
            Security::Secure => set.owner.as_name().suffix(usize::from(set.signer_labels)),
            _ => zone,
        };
        self.memory.keep_nothing_beside(zone, set.ttl, question.unchecked, now.seconds());
    }
}
