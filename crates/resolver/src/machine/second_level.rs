//! The second-level cache: a place behind the tables that others may write to as well, and that
//! outlives this process. It is asked once for a question, before any server.
//!
//! What it says is a reply like that of a forwarder: scrubbed, judged from a trust anchor down, and
//! in the tables no longer than its TTL. If it says nothing, or something that is bogus, the
//! question goes on as if there were no such place.

use std::sync::Arc;

use cache::Security;
use wire::{Name, Rtype};

use super::fetches::Forwarding;
use super::tasks::Task;
use super::{FetchKey, Node, OpenForward, Resolver, TaskKey};
use crate::delegation::Delegation;
use crate::effect::{Effect, ForwardKey, LookUp, Store};
use crate::heap_name::{HeapName, HeapQuestion};
use crate::resolution::Resolution;
use crate::routes::RouteKey;

impl Resolver {
    /// Returns whether a fetch is a look-up in the second-level cache.
    pub(super) fn is_second_level(&self, key: FetchKey) -> bool {
        self.fetch(key).is_some_and(|fetch| fetch.delegation.route == Some(RouteKey::SECOND_LEVEL))
    }

    /// Has a task wait for the second-level cache, if that may have the answer; returns whether it
    /// does.
    pub(super) fn asks_second_level(
        &mut self,
        key: TaskKey,
        question: &HeapQuestion,
        delegation: &Delegation,
    ) -> bool {
        let may_be =
            self.task(key).is_some_and(|task| task.may_be_second_level() && self.is_for_second_level(task));
        if !may_be || self.routes.is_own(delegation) || !self.routes.keeps(delegation) {
            return false;
        }
        let route = Some(RouteKey::SECOND_LEVEL);
        let delegation = Arc::new(Delegation::of_nobody(HeapName::new(Name::ROOT), route));
        if let Some(task) = self.task_mut(key) {
            task.skip_second_level();
            task.begin_at(Arc::clone(&delegation));
        }
        self.join_fetch(key, &delegation, question.clone());
        true
    }

    /// Returns whether what a task asks for is looked up and stored: what clients and the chain of
    /// trust need, and is the same for all clients. Whoever asks for unchecked data gets that from
    /// servers, and where policies look at the servers of an answer, these have to be known.
    fn is_for_second_level(&self, task: &Task) -> bool {
        let HeapQuestion { name, rtype, unchecked, subnet } = &task.question;
        let is_wanted = !task.waiters.is_empty()
            || task.parents.iter().any(|parent| matches!(parent, Node::Task(_)))
            || matches!(*rtype, Rtype::DS | Rtype::DNSKEY);
        self.settings.second_level.is_some()
            && is_wanted
            && !self.keeps_servers
            && !(*unchecked && self.validates())
            && subnet.is_none()
            && !self.may_tell(name.as_name())
    }

    /// Has the second-level cache asked for a fetch, once, if anybody still wants that; returns
    /// whether it is.
    pub(super) fn look_up(&mut self, key: FetchKey) -> bool {
        // It costs no query to anybody.
        let is_wanted = self.pay_for_fetch(key, |_| Ok(())).is_ok();
        let Self { fetches, forwards, effects, .. } = self;
        let Some(fetch) = fetches.get_mut(key.0 as usize) else { return false };
        let Some(Forwarding { open, .. }) = fetch.forwarding.as_mut() else { return false };
        if !is_wanted || fetch.bogus.is_some() {
            return false;
        }
        let key = ForwardKey(forwards.insert(OpenForward { fetch: Some(key), subnet: None }) as u32);
        *open = Some(key);
        let (qname, qtype) = (fetch.question.name.clone(), fetch.question.rtype);
        effects.push_back(Effect::LookUp(LookUp { key, qname, qtype }));
        true
    }

    /// Notes that servers have answered the whole question of a task.
    pub(super) fn note_fresh(&mut self, key: TaskKey) {
        let Self { tasks, routes, .. } = self;
        let Some(task) = tasks.get_mut(key.0 as usize) else { return };
        let is_fresh = task.delegation().is_some_and(|delegation| {
            let is_second_level = delegation.route == Some(RouteKey::SECOND_LEVEL);
            !is_second_level && !routes.is_own(delegation) && routes.keeps(delegation)
        });
        task.set_fresh(is_fresh);
    }

    /// Stores what a task that has ended has found.
    pub(super) fn store(&mut self, task: &Task, resolution: &Arc<Resolution>) {
        let stores = self.settings.second_level.is_some_and(|second_level| second_level.stores);
        let is_good = resolution.failure.is_none() && resolution.security != Security::Bogus;
        if !stores || !is_good || !task.is_fresh() || !self.is_for_second_level(task) {
            return;
        }
        let (qname, qtype) = (task.question.name.clone(), task.question.rtype);
        let resolution = Arc::clone(resolution);
        self.effects.push_back(Effect::Store(Store { qname, qtype, resolution }));
    }
}
