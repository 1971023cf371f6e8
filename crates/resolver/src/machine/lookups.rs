//! Addresses of name servers: those that are known by now, and those that are looked for.

use std::net::SocketAddr;

use wire::{Name, Rtype};

use super::fetches::OWN_SERVERS_SENDS;
use super::{FetchKey, Node, Resolver, TaskKey};
use crate::addresses::{Family, Namer};
use crate::budget::{Budget, Limit};
use crate::delegation::Delegation;
use crate::failure::Reason;
use crate::heap_name::{HeapName, HeapQuestion};
use crate::moment::Moment;
use crate::resolution::Resolution;
use crate::routes::Routes;
use crate::settings::Settings;
use crate::tables::Known;

/// Milliseconds after which another name server's addresses are looked for, if the first one's do
/// not come.
const LOOKUP_PATIENCE_MS: u32 = 300;

impl Resolver {
    /// Takes the servers that the zone itself named when somebody asked for them, beside those that
    /// its parent names; returns whether there are any. Their addresses are looked for unless they
    /// are in the zone: it is the zone's servers that fail.
    ///
    /// The set is in use for no longer than the parent's delegation, and never renews it.
    pub(super) fn take_own_servers(&mut self, key: FetchKey, now: Moment) -> bool {
        let Self { fetches, memory, settings, .. } = self;
        let Some(fetch) = fetches.get_mut(key.0 as usize) else { return false };
        if std::mem::replace(&mut fetch.has_own_servers, true) || fetch.delegation.route.is_some() {
            return false;
        }
        let zone = fetch.delegation.zone.clone();
        let question = HeapQuestion { name: zone.clone(), rtype: Rtype::NS, unchecked: false, subnet: None };
        let Some(Known::Data(set)) = memory.look(&question, now.seconds()) else { return false };
        let own = set.data().take(settings.servers_max).filter_map(|data| Name::parse(data).ok());
        let mut has_any = false;
        for name in own.map(|(name, _)| HeapName::new(name)) {
            let is_inside = name.as_name().is_at_or_below(zone.as_name());
            let is_waiting = fetch.nameless.contains(&name);
            let mut addresses = Vec::new();
            for rtype in [Rtype::A, Rtype::AAAA] {
                let question = HeapQuestion { name: name.clone(), rtype, unchecked: true, subnet: None };
                if let Some(Known::Data(set)) = memory.look(&question, now.seconds()) {
                    addresses.extend(settings.addresses.admitted(name.as_name(), set.data(), Namer::Zone));
                }
            }
            has_any |= !addresses.is_empty();
            for address in &addresses {
                fetch.add(SocketAddr::new(settings.addresses.reached(*address), settings.port));
            }
            if addresses.is_empty() && !is_inside && !is_waiting {
                fetch.nameless.push(name);
                has_any = true;
            }
        }
        if has_any {
            let sent = fetch.servers.iter().map(|server| server.asked).fold(0, u8::saturating_add);
            let left = settings.limits.sends_per_zone.saturating_sub(sent);
            fetch.sends_left = fetch.sends_left.max(OWN_SERVERS_SENDS.min(left));
        }
        has_any
    }

    /// Takes the addresses of name servers that the tables have by now.
    pub(super) fn take_known_addresses(&mut self, key: FetchKey, now: Moment) {
        let unchecked = self.validates();
        let Self { fetches, memory, settings, routes, .. } = self;
        let Some(fetch) = fetches.get_mut(key.0 as usize) else { return };
        // Whoever joined may have brought a budget.
        fetch.spent = None;
        let names = std::mem::take(&mut fetch.nameless);
        for name in names {
            let known = fetch.servers.len();
            let (namer, port) = named_by(&fetch.delegation, &name, routes, settings);
            for rtype in [Rtype::A, Rtype::AAAA] {
                let question = HeapQuestion { name: name.clone(), rtype, unchecked, subnet: None };
                if let Some(Known::Data(set)) = memory.look(&question, now.seconds()) {
                    for address in settings.addresses.admitted(name.as_name(), set.data(), namer) {
                        fetch.add(SocketAddr::new(settings.addresses.reached(address), port));
                    }
                }
            }
            if fetch.servers.len() == known {
                fetch.nameless.push(name);
            }
        }
    }

    /// Begins to look for the addresses of another name server, if that can be paid for and makes
    /// sense.
    pub(super) fn look_for_addresses(&mut self, key: FetchKey, now: Moment) {
        let limits = self.settings.limits;
        let Some(fetch) = self.fetch(key) else { return };
        // Two families are one look-up.
        let at_once = fetch.lookups.len().div_ceil(2);
        let depth = fetch.tasks.iter().filter_map(|&task| self.task(task)).map(|task| task.depth).min();
        let depth = depth.unwrap_or(0).saturating_add(1);
        if fetch.sends_left == 0
            || fetch.nameless.is_empty()
            || at_once >= usize::from(limits.glueless_at_once)
        {
            return;
        }
        if depth > limits.depth {
            self.refuse_lookup(key, Reason::Limit(Limit::Depth));
            return;
        }
        while self.fetch(key).is_some_and(|fetch| !fetch.nameless.is_empty()) {
            if let Err(limit) = self.pay_for_fetch(key, Budget::look_for_addresses) {
                self.refuse_lookup(key, Reason::Limit(limit));
                return;
            }
            let Some(name) = self.fetch_mut(key).and_then(|fetch| fetch.nameless.pop()) else { return };
            if self.look_for(key, &name, depth) {
                self.wait_for_lookup(key, now);
                return;
            }
        }
    }

    fn refuse_lookup(&mut self, key: FetchKey, reason: Reason) {
        if let Some(fetch) = self.fetch_mut(key) {
            fetch.refused = Some(reason);
            fetch.nameless.clear();
        }
    }

    /// Begins to look for the addresses of a name server; returns whether there is hope.
    fn look_for(&mut self, key: FetchKey, name: &HeapName, depth: u8) -> bool {
        // What the servers say at an address is validated, not the address: else zones whose
        // servers are in each other could not be validated at all.
        let unchecked = self.validates();
        let is_trial = self.is_trial(key);
        let mut has_begun = false;
        for (family, rtype) in [(Family::V4, Rtype::A), (Family::V6, Rtype::AAAA)] {
            if !self.settings.addresses.has(family) {
                continue;
            }
            let lookup =
                self.task_for(HeapQuestion { name: name.clone(), rtype, unchecked, subnet: None }, depth);
            if self.waits_for(Node::Task(lookup), Node::Fetch(key)) {
                if let Some(fetch) = self.fetch_mut(key) {
                    fetch.refused = Some(Reason::Circle);
                }
                continue;
            }
            if let Some(task) = self.task_mut(lookup) {
                task.parents.push(Node::Fetch(key));
                task.depth = task.depth.min(depth);
                task.is_trial |= is_trial;
            }
            if let Some(fetch) = self.fetch_mut(key) {
                fetch.lookups.push(lookup);
            }
            has_begun = true;
        }
        has_begun
    }

    fn wait_for_lookup(&mut self, key: FetchKey, now: Moment) {
        let Self { fetches, timers, .. } = self;
        if let Some(fetch) = fetches.get_mut(key.0 as usize)
            && fetch.timer.is_none()
        {
            let at = now.after_ms(LOOKUP_PATIENCE_MS);
            fetch.timer = Some(at);
            timers.insert((at, key));
        }
    }

    /// A look-up of a name server's address has ended.
    pub(super) fn lookup_ended(
        &mut self,
        key: FetchKey,
        task: TaskKey,
        question: &HeapQuestion,
        resolution: &Resolution,
    ) {
        if self.fetch(key).is_some_and(|fetch| fetch.proofs.contains(&task)) {
            return self.proof_ended(key, task, question, resolution);
        }
        let Self { fetches, memory, settings, routes, ran_at, .. } = self;
        let Some(fetch) = fetches.get_mut(key.0 as usize) else { return };
        if fetch.ahead.contains(&task) {
            return fetch.ahead.retain(|&other| other != task);
        }
        fetch.lookups.retain(|&lookup| lookup != task);
        let found = resolution.rows().data(&question.name, question.rtype);
        let (namer, port) = named_by(&fetch.delegation, &question.name, routes, settings);
        let known = fetch.servers.len();
        for address in settings.addresses.admitted(question.name.as_name(), found, namer) {
            fetch.add(SocketAddr::new(settings.addresses.reached(address), port));
        }
        let failure = resolution.failure.as_ref().map(|failure| failure.reason);
        if fetch.servers.len() == known
            && let Some(Reason::Silent | Reason::Lame | Reason::Faulty | Reason::NoAddress) = failure
        {
            // The servers of its own zone do not say where it is; those of the zone above did.
            let name = question.name.as_name();
            let glue = memory.glue_of(name, ran_at.seconds());
            for address in settings.addresses.admitted_of(name, glue.into_iter(), namer) {
                fetch.add(SocketAddr::new(settings.addresses.reached(address), port));
            }
        }
        let has_more = fetch.servers.len() > known;
        if let Some(failure) = &resolution.failure {
            fetch.refused = Some(failure.reason);
        }
        if has_more {
            self.wait_no_longer_for_the_silent(key);
        }
        self.ready.push_back(Node::Fetch(key));
    }

    /// Takes the addresses that the zone above said of name servers whose own zone takes long to
    /// say theirs, if nobody else can be asked.
    pub(super) fn take_glue_of_late(&mut self, key: FetchKey, now: Moment) {
        let Self { fetches, tasks, memory, settings, routes, .. } = self;
        let Some(fetch) = fetches.get_mut(key.0 as usize).filter(|fetch| fetch.servers.is_empty()) else {
            return;
        };
        for lookup in fetch.lookups.clone() {
            let Some(task) = tasks.get(lookup.0 as usize) else { continue };
            let name = &task.question.name;
            let (namer, port) = named_by(&fetch.delegation, name, routes, settings);
            let glue = memory.glue_of(name.as_name(), now.seconds());
            for address in settings.addresses.admitted_of(name.as_name(), glue.into_iter(), namer) {
                fetch.add(SocketAddr::new(settings.addresses.reached(address), port));
            }
        }
    }

    /// Has a server that was found now asked beside one that was silent a short time ago, if that
    /// one is awaited again.
    fn wait_no_longer_for_the_silent(&mut self, key: FetchKey) {
        let Self { fetches, asks, memory, ran_at, .. } = self;
        let Some(fetch) = fetches.get_mut(key.0 as usize) else { return };
        let awaited = fetch.asks.last().and_then(|ask| asks.get_mut(ask.0 as usize));
        let Some(ask) = awaited.filter(|ask| ask.is_awaited()) else { return };
        let is_again = fetch.servers.iter().any(|it| it.address == ask.address && it.asked > 1);
        let facts = memory.tables.servers.look(ask.address, ran_at.ms());
        if is_again || facts.is_some_and(|facts| facts.barred_for_ms() > 0) {
            ask.is_late = true;
            self.stop_timer(key);
        }
    }
}

/// Returns who says that a server of this name serves the zone, and its port.
fn named_by(
    delegation: &Delegation,
    server: &HeapName,
    routes: &Routes,
    settings: &Settings,
) -> (Namer, u16) {
    let hosts = routes.stub(delegation).map_or(&[][..], |stub| &stub.hosts);
    let host = hosts.iter().find(|(host, _)| host == server);
    host.map_or((Namer::Zone, settings.port), |&(_, port)| (Namer::Settings, port))
}
