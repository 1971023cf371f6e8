//! Policies to the engine's steps: gives the compiler of policies what they refer to.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use diagnostic::{Problem, Span};
use engine::explain::Event;
use engine::matchers::rate::RateCells;
use engine::records::Records;
use engine::reverse::ReverseTable;
use engine::{Caches, PoolId, ResolverId, Transport};
use lists::Sets;
use plan::caches::CachePlan;
use plan::jobs::Jobs;
pub(super) use policy::compile::Compiled;
use policy::compile::{Environment, Group};
use policy::explain::{Explained, Origin};
use wire::HashKey;

use super::names::Names;
use super::{Plans, resolvers};
use settings::{ClientSubnetUse, Settings};

/// What policies refer to.
pub(super) struct Parts<'a> {
    pub(super) settings: &'a Settings,
    /// What names are hashed with.
    pub(super) key: HashKey,
    pub(super) pools: &'a BTreeMap<String, u16>,
    pub(super) resolvers: &'a BTreeMap<String, u16>,
    pub(super) caches: &'a Caches,
    pub(super) cache_plans: &'a [CachePlan],
    pub(super) names: &'a Names,
    /// Zones that are answered from before any policy.
    pub(super) has_zones: bool,
    /// Zones that policies answer from.
    pub(super) zone_sets: &'a BTreeMap<String, Arc<zone::Zones>>,
    /// What listeners are called, in the order in which they were opened.
    pub(super) listeners: &'a [Option<String>],
    /// What Unix sockets are called, in the order in which they were opened.
    pub(super) local_sockets: &'a [Option<String>],
    /// What rates were counted in so far.
    pub(super) rate_cells: &'a BTreeMap<String, Arc<RateCells>>,
    pub(super) environment: &'a dyn environment::Environment,
    pub(super) sets: &'a Sets,
    pub(super) jobs: &'a Jobs,
    pub(super) records: &'a BTreeMap<String, Arc<Records>>,
    pub(super) reverse: Option<&'a Arc<ReverseTable>>,
}

/// Compiles the policies.
pub(super) fn compile(parts: &Parts<'_>, problems: &mut Vec<Problem>) -> Option<Compiled> {
    let Parts { settings, jobs, environment, .. } = *parts;
    let zones_place = settings.zones.first().map_or(Span::BUILT_IN, |zone| zone.name.span);
    let environment = Environment {
        written: settings.written(),
        key: parts.key,
        groups: groups(settings, parts.pools),
        resolvers: resolvers::ids(settings, parts.resolvers),
        caches: parts.caches,
        cache_rules: parts.cache_plans.iter().map(|plan| (plan.name.as_str(), plan.rules)).collect(),
        hosts: parts.names.hosts.as_ref(),
        local: &parts.names.local,
        zones: parts.has_zones.then_some(zones_place),
        zone_sets: parts.zone_sets,
        listeners: parts.listeners,
        local_sockets: parts.local_sockets,
        transports: transports(settings),
        is_asked_for_any: !settings.minimal_any || parts.has_zones,
        has_trusted_peers: !settings.trusted_peers.is_empty(),
        rate_cells: parts.rate_cells,
        sets: parts.sets,
        jobs,
        records: parts.records,
        reverse: parts.reverse,
        variable: &|name: &str| environment.variable(name),
        read: &|path: &Path| -> io::Result<Vec<u8>> { environment.read(path) },
    };
    policy::compile::compile(&environment, problems)
}

fn groups<'a>(settings: &'a Settings, pools: &BTreeMap<String, u16>) -> BTreeMap<&'a str, Group<'a>> {
    let groups = settings.upstreams.iter().map(|group| {
        let name = group.name.value.as_str();
        let group = Group {
            pool: pools.get(name).map(|&pool| PoolId(pool)),
            servers: group.servers.iter().map(|server| server.name.as_deref()).collect(),
            forwards_client_subnet: group.client_subnet == ClientSubnetUse::Forward,
            trusts_ad: group.trust_ad,
        };
        (name, group)
    });
    groups.collect()
}

/// Returns how clients can reach the server.
fn transports(settings: &Settings) -> Vec<Transport> {
    let local = settings.startup.local_sockets.iter().map(|socket| socket.plan.kind.transport());
    let others = match &settings.startup.listen {
        Some(listeners) => listeners.iter().flat_map(|at| &at.speaks).map(|word| word.transport()).collect(),
        None => vec![Transport::Udp, Transport::Tcp],
    };
    local.chain(others).collect()
}

impl Plans {
    /// Tells what happened to a query that ran on these plans.
    pub fn explain(&self, events: &[Event]) -> Vec<Explained> {
        let group = |id: PoolId| {
            let pool = self.fetch.pools.iter().find(|pool| pool.id == id);
            pool.map(|pool| pool.name.as_str())
        };
        let resolver = |id: ResolverId| self.resolvers.find(id).map(|resolver| resolver.name.as_str());
        let origin = Origin {
            program: &self.snapshot.program,
            places: &self.places,
            sources: &self.sources,
            caches: &self.caches,
            group: &group,
            resolver: &resolver,
        };
        policy::explain::explain(&origin, events)
    }
}

#[cfg(test)]
mod tests;
