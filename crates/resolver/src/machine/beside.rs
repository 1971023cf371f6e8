//! Name servers beside answers that the tables have, for clients that are to see them.

use cache::Security;
use wire::Rtype;

use super::{Resolver, TaskKey};
use crate::moment::Moment;
use crate::tables::Known;

impl Resolver {
    /// Has what stands beside data that is known shown with it, if a client is to see that; returns
    /// whether it is there. If it is not, servers are asked: the answer would lack what they say.
    pub(super) fn take_beside(&mut self, key: TaskKey, known: &Known, now: Moment) -> bool {
        let Self { tasks, memory, .. } = self;
        let Known::Data(set) = known else { return true };
        let Some(task) = tasks.get_mut(key.0 as usize).filter(|task| task.follows_aliases()) else {
            return true;
        };
        // Of name servers, keys and delegations nobody wants more than these.
        if matches!(task.question.rtype, Rtype::NS | Rtype::DS | Rtype::DNSKEY) {
            return true;
        }
        let Some(cut) = memory.delegation(task.question.place(), now.seconds()) else { return false };
        let zone = cut.zone.as_name();
        let is_secure = set.security == Security::Secure;
        // What is signed says of which zone it is.
        if is_secure && usize::from(set.signer_labels) != zone.label_count() {
            return false;
        }
        let how = (is_secure, task.question.unchecked);
        let beside = memory.beside_of(zone, how, now.seconds());
        let is_known = beside.is_some();
        task.beside = beside.map(Box::new);
        is_known
    }
}
