//! Clients' subnets (RFC 7871): who hears of them, and how many questions that costs.
//!
//! One name asked for many subnets is many outstanding queries, each of which a forged reply may
//! hit (RebirthDay, CVE-2025-5994). So few of them are outstanding at once; others wait, and take
//! the answer if its scope is theirs, too; and when many wait already, the question is asked once
//! for all, without a subnet.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use wire::{ClientSubnet, Message, Name, OptionCode};

use super::fetches::{Fetch, FetchEnd, fetch_hash};
use super::{FetchKey, Node, Resolver, TaskKey};
use crate::delegation::Delegation;
use crate::heap_name::HeapQuestion;
use crate::settings::Forwarders;

/// Questions for one name and type to the servers of one zone that differ in their subnets and are
/// outstanding at once.
const OUTSTANDING_MAX: usize = 2;
/// Tasks that wait for one of those.
const WAITING_MAX: usize = 16;

impl Resolver {
    /// Returns whether anybody who is asked for a name may hear of a client's subnet.
    pub(super) fn may_tell(&self, name: Name<'_>) -> bool {
        let subnets = &self.settings.subnets;
        !(subnets.servers.is_empty() && subnets.forwarders.is_empty()) || subnets.has_zone_of(name)
    }

    /// Returns whether what the tables know may be for other clients than this one.
    pub(super) fn is_tailored(&self, question: &HeapQuestion) -> bool {
        question.subnet.is_some() && self.settings.subnets.has_zone_of(question.name.as_name())
    }

    /// Returns whether an answer is one that a server gave to a client which told nothing, although
    /// it might have another one for those that do: it is for that client.
    pub(super) fn is_for_the_untold(&self, fetch: &Fetch, server: Option<SocketAddr>) -> bool {
        let is_asked = |key: &TaskKey| self.task(*key).is_some_and(|task| !task.waiters.is_empty());
        fetch.question.subnet.is_none()
            && (server.is_some_and(|server| self.settings.subnets.has_server(server.ip()))
                || fetch
                    .forwarding
                    .as_ref()
                    .and_then(|them| them.forwarders)
                    .is_some_and(|them| self.settings.subnets.forwarders.contains(&them)))
            && fetch.tasks.iter().any(is_asked)
    }

    /// Returns what a server of a zone at this address is told. Those of zones above hear of
    /// nobody.
    pub(super) fn told(&self, fetch: &Fetch, address: IpAddr) -> Option<ClientSubnet> {
        let subnets = &self.settings.subnets;
        let is_told = || subnets.has_server(address) || subnets.has_zone_of(fetch.delegation.zone.as_name());
        fetch.question.subnet.filter(|_| is_told())
    }

    /// Returns what forwarders are told that a fetch asks.
    pub(super) fn told_forwarders(&self, fetch: &Fetch, forwarders: Forwarders) -> Option<ClientSubnet> {
        let name = fetch.question.name.as_name();
        fetch.question.subnet.filter(|_| self.settings.subnets.has_forwarders(forwarders, name))
    }

    /// Returns what a task asks the servers of a zone: its question with its subnet, or as for
    /// everybody; `None`: it waits for one that is outstanding for another subnet.
    pub(super) fn admit_subnet(
        &mut self,
        task: TaskKey,
        delegation: &Arc<Delegation>,
        question: HeapQuestion,
    ) -> Option<HeapQuestion> {
        let Some(subnet) = question.subnet else { return Some(question) };
        if !self.sends_to_any(delegation, &question) {
            return Some(question.for_everybody());
        }
        let hash_key = self.hash_key();
        let of_name = fetch_hash(&hash_key, delegation, &question.for_everybody());
        let open = self.of_subnets.get(&of_name).cloned().unwrap_or_default();
        let is_own =
            |key: &FetchKey| self.fetch(*key).is_some_and(|fetch| fetch.question.subnet == Some(subnet));
        if open.len() < OUTSTANDING_MAX || open.iter().any(is_own) {
            return Some(question);
        }
        let waits_for = open.iter().copied().find(|&key| {
            let has_room = self.fetch(key).is_some_and(|fetch| fetch.others.len() < WAITING_MAX);
            has_room && !self.waits_for(Node::Fetch(key), Node::Task(task))
        });
        let Some(key) = waits_for else {
            // What comes is not what others of its subnet would get: it is for this client alone.
            if let Some(task) = self.task_mut(task) {
                task.scope = Some(subnet.prefix);
            }
            return Some(question.for_everybody());
        };
        if let Some(fetch) = self.fetch_mut(key) {
            fetch.others.push(task);
        }
        if let Some(task) = self.task_mut(task) {
            task.awaits = Some(Node::Fetch(key));
        }
        None
    }

    /// Notes that a fetch is open.
    pub(super) fn enter_subnet(&mut self, key: FetchKey) {
        let hash_key = self.hash_key();
        let Some(fetch) = self.fetch(key).filter(|fetch| fetch.question.subnet.is_some()) else { return };
        let hash = fetch_hash(&hash_key, &fetch.delegation, &fetch.question.for_everybody());
        self.of_subnets.entry(hash).or_default().push(key);
    }

    /// Notes that a fetch has ended: those who waited for it take its answer if that is for them,
    /// too, and ask for themselves otherwise.
    pub(super) fn leave_subnet(&mut self, key: FetchKey, fetch: &mut Fetch, end: &FetchEnd<'_>) {
        let Some(subnet) = fetch.question.subnet else { return };
        let hash = fetch_hash(&self.hash_key(), &fetch.delegation, &fetch.question.for_everybody());
        if let Some(open) = self.of_subnets.get_mut(&hash) {
            open.retain(|&other| other != key);
            if open.is_empty() {
                self.of_subnets.remove(&hash);
            }
        }
        let covered = match end {
            FetchEnd::Answer(answer) => {
                self.counts.subnets += u64::from(answer.scope.is_some());
                let bits = answer.scope.unwrap_or(0);
                (bits <= subnet.prefix).then(|| subnet.cut(bits, bits))
            }
            FetchEnd::Referral(_) => Some(subnet.cut(0, 0)),
            FetchEnd::Known | FetchEnd::Failed(_) => None,
        };
        for task in std::mem::take(&mut fetch.others) {
            let other = self.task(task).and_then(|task| task.question.subnet);
            let is_covered = covered
                .zip(other)
                .is_some_and(|(covered, other)| covered.prefix == 0 || covered.contains(&other));
            if is_covered {
                fetch.tasks.push(task);
            } else if let Some(waiting) = self.task_mut(task) {
                waiting.awaits = None;
                self.ready.push_back(Node::Task(task));
            }
        }
    }

    /// Returns whether any server of a zone hears of the subnet, as far as their addresses are
    /// known.
    fn sends_to_any(&mut self, delegation: &Arc<Delegation>, question: &HeapQuestion) -> bool {
        let subnets = &self.settings.subnets;
        if let Some(forwarders) = self.routes.forwarders(delegation) {
            return subnets.has_forwarders(forwarders, question.name.as_name());
        }
        if subnets.has_zone_of(delegation.zone.as_name()) {
            return true;
        }
        let stub = self.routes.stub(delegation);
        let named = stub.iter().flat_map(|stub| &stub.addresses).map(SocketAddr::ip);
        let glue = delegation.addresses.iter().copied();
        if named.chain(glue).any(|address| subnets.has_server(address)) {
            return true;
        }
        let now = self.ran_at.seconds();
        delegation.nameless.iter().any(|name| {
            let known = self.memory.addresses_of(name, now);
            known.into_iter().any(|address| self.settings.subnets.has_server(address))
        })
    }
}

/// Returns for how many bits of the subnet that was told a reply is; `None`: its server does not
/// look at subnets.
pub(super) fn scope_of(reply: &Message<'_>, told: Option<ClientSubnet>) -> Option<u8> {
    let told = told?;
    match reply.edns?.option(OptionCode::CLIENT_SUBNET)? {
        &[_, _, prefix, scope, ..] if prefix == told.prefix => Some(scope),
        _ => None,
    }
}
