//! The groups of upstreams as they are now: members come and go with names' addresses and with
//! reloads.

use std::net::SocketAddr;
use std::sync::Arc;

use rand::RngExt;
use timers::{Moment, Span};

use crate::machine::names::Named;
use crate::machine::{Forward, NIL, PoolKey};
use crate::status::{Status, UpstreamState, UpstreamStatus};
use exchange::ServerKey;
use exchange::health::State;
use exchange::network::{Network, Remote};
use exchange::server::{LINK_QUERIES_MAX, Meters};
use identity::{Registry, Transport};
use plan::upstreams::{Plan, PoolPlan, Target};

/// One group.
pub(super) struct Pool {
    pub(super) plan: PoolPlan,
    parts: Vec<Part>,
    pub(super) members: Vec<Member>,
    /// Fetches in it, of whatever kind.
    pub(super) fetching: u32,
    /// Those that clients wait for.
    pub(super) active: u32,
    /// How many of these there may be.
    pub(super) room: u32,
    pub(super) hedge_credit: u32,
    /// Fetches that wait for the first member.
    pub(super) parked: Vec<u32>,
    /// When a query may be tried next, should all servers be down.
    pub(super) try_at: Moment,
    /// Replaced by a reload; goes when its last fetch is gone.
    pub(super) is_retired: bool,
}

/// One address that the group asks.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) server: ServerKey,
    pub(super) weight: u16,
    /// Which bit stands for it; see [`engine::OutQuery::members`].
    pub(super) member: u8,
    /// Which of the group's servers it is an address of.
    pub(super) part: u16,
}

/// One server as configured.
enum Part {
    Fixed(Member),
    Named { named: u32, weight: u16, member: u8, transport: Arc<Transport>, port: u16 },
}

impl Pool {
    /// Returns when to give up: a little before the client does.
    pub(super) fn give_up_after(&self) -> Span {
        Span::from_ms(u64::from(self.plan.timeout_ms) * 9 / 10)
    }

    /// Returns whether it may get members yet.
    pub(super) fn awaits_addresses(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Named { .. })) && !self.plan.bootstrap.is_empty()
    }
}

impl<N: Network> Forward<N> {
    /// Runs on `plan` from now on. What is the same keeps its state; fetches under way end as they
    /// began.
    pub fn adopt(&mut self, plan: &Plan, registry: &Registry, now: Moment) {
        self.exchange.adopt(plan.limits);
        let mut by_id = Vec::new();
        for pool in &plan.pools {
            let id = usize::from(pool.id.0);
            if by_id.len() <= id {
                by_id.resize(id + 1, NIL);
            }
            let old = self.pool_of(pool.id);
            let same = self.pools.get(old as usize).is_some_and(|old| old.plan == *pool);
            let runtime = if same { old } else { self.build_pool(pool.clone(), registry, now) };
            if let Some(room) = by_id.get_mut(id) {
                *room = runtime;
            }
        }
        let before = std::mem::replace(&mut self.by_id, by_id);
        for old in before {
            if old != NIL && !self.by_id.contains(&old) {
                self.retire_pool(old);
            }
        }
        self.collect_garbage();
        self.exchange.collect_garbage();
    }

    fn build_pool(&mut self, plan: PoolPlan, registry: &Registry, now: Moment) -> u32 {
        let mut parts = Vec::with_capacity(plan.servers.len());
        let mut unresolved = Vec::new();
        for server in &plan.servers {
            let (weight, member) = (server.weight, server.member);
            let transport = registry.transport(&server.way);
            match &server.target {
                Target::Address(address) => {
                    let remote = Remote { address: *address, transport };
                    let server = self.acquire(remote, now);
                    let part = parts.len() as u16;
                    parts.push(Part::Fixed(Member { server, weight, member, part }));
                }
                Target::Name { name, port } => {
                    let (named, is_new) = self.acquire_name(name, &plan.bootstrap, now);
                    if is_new {
                        unresolved.push(named);
                    }
                    parts.push(Part::Named { named, weight, member, transport, port: *port });
                }
            }
        }
        let pool = self.pools.insert(Pool {
            plan,
            parts,
            members: Vec::new(),
            fetching: 0,
            active: 0,
            room: 0,
            hedge_credit: 0,
            parked: Vec::new(),
            try_at: Moment(0),
            is_retired: false,
        }) as u32;
        self.refresh_members(pool, now);
        for named in unresolved {
            self.resolve_all(named, now);
        }
        pool
    }

    /// Makes the hidden pool that resolves upstreams' names.
    pub(super) fn build_bootstrap(&mut self, servers: &[SocketAddr], now: Moment) -> u32 {
        let servers = servers.iter().copied().map(plan::upstreams::ServerPlan::udp).collect();
        let mut plan = PoolPlan::new(engine::PoolId(u16::MAX), "bootstrap", servers);
        plan.pick = plan::upstreams::Pick::Fastest;
        self.build_pool(plan, &Registry::default(), now)
    }

    pub(super) fn retire_pool(&mut self, key: u32) {
        if let Some(pool) = self.pools.get_mut(key as usize) {
            pool.is_retired = true;
            self.has_garbage = true;
        }
    }

    /// Makes a pool's members anew out of its parts.
    fn refresh_members(&mut self, key: u32, now: Moment) {
        let Some(pool) = self.pools.get(key as usize) else { return };
        let mut wanted = Vec::new();
        for (number, part) in pool.parts.iter().enumerate() {
            let number = number as u16;
            match part {
                Part::Fixed(member) => {
                    wanted.push((Ok(member.server), member.weight, member.member, number));
                }
                Part::Named { named, weight, member, transport, port } => {
                    let named = self.named.get(*named as usize);
                    for address in named.map(Named::addresses).unwrap_or_default() {
                        let address = SocketAddr::new(address, *port);
                        let remote = Remote { address, transport: Arc::clone(transport) };
                        wanted.push((Err(remote), *weight, *member, number));
                    }
                }
            }
        }
        let mut members = Vec::with_capacity(wanted.len());
        for (server, weight, member, part) in wanted {
            let server = match server {
                Ok(server) => self.exchange.hold_again(server),
                Err(remote) => self.acquire(remote, now),
            };
            members.push(Member { server, weight, member, part });
        }
        let Some(pool) = self.pools.get_mut(key as usize) else { return };
        let old = std::mem::replace(&mut pool.members, members);
        let room = |member: &Member| match self.exchange.server(member.server) {
            Some(server) if server.is_connected => (server.links_max() * LINK_QUERIES_MAX) as u32,
            _ => u32::MAX,
        };
        // More than connections carry would only fail.
        pool.room = pool.members.iter().map(room).max().unwrap_or(u32::MAX).min(pool.plan.fetching_max);
        for member in old {
            self.release(member.server);
        }
    }

    /// Takes new addresses into the pools that use a name, and starts what waited for them.
    pub(super) fn readdress(&mut self, named: u32, now: Moment) {
        let users: Vec<u32> = self
            .pools
            .iter()
            .filter(|(_, pool)| {
                pool.parts
                    .iter()
                    .any(|part| matches!(part, Part::Named { named: other, .. } if *other == named))
            })
            .map(|(key, _)| key as u32)
            .collect();
        for key in users {
            self.refresh_members(key, now);
            let Some(pool) = self.pools.get_mut(key as usize) else { continue };
            if pool.members.is_empty() {
                continue;
            }
            for fetch in std::mem::take(&mut pool.parked) {
                let is_parked = self
                    .fetches
                    .get(fetch as usize)
                    .is_some_and(|fetch| fetch.is_parked && fetch.pool == key);
                if is_parked {
                    self.start(fetch, now);
                }
            }
        }
    }

    /// Returns the server at `remote`, new or known, with one more user.
    fn acquire(&mut self, remote: Remote, now: Moment) -> ServerKey {
        let server = self.exchange.hold(remote, now);
        // It may have gone down while no group had it.
        if !self.exchange.is_up(server) && !self.probes.contains_key(&server) {
            self.plan_probe(server, now);
        }
        server
    }

    fn release(&mut self, server: ServerKey) {
        self.exchange.release(server);
        if self.exchange.server(server).is_none_or(|server| server.users == 0) {
            self.forget_probe(server);
        }
    }

    /// Drops retired pools without fetches, and names without pools.
    pub(super) fn collect_garbage(&mut self) {
        self.has_garbage = false;
        let pools: Vec<u32> = self
            .pools
            .iter()
            .filter(|(_, pool)| pool.is_retired && pool.fetching == 0)
            .map(|(key, _)| key as u32)
            .collect();
        for key in pools {
            let Some(pool) = self.pools.try_remove(key as usize) else { continue };
            for part in pool.parts {
                match part {
                    Part::Fixed(member) => self.release(member.server),
                    Part::Named { named, .. } => self.release_name(named),
                }
            }
            for member in pool.members {
                self.release(member.server);
            }
        }
    }

    /// Describes the pools and how their upstreams are doing; who waits for them is not known here.
    pub fn status(&self, now: Moment) -> Status {
        let mut upstreams = Vec::new();
        for (_, pool) in &self.pools {
            if pool.is_retired {
                continue;
            }
            for member in &pool.members {
                let Some(server) = self.exchange.server(member.server) else { continue };
                let state = match server.health.state() {
                    State::Up => UpstreamState::Up,
                    State::Down { since, .. } => UpstreamState::Down { for_ms: now.since(since).ms() },
                };
                upstreams.push(UpstreamStatus {
                    pool: pool.plan.name.clone(),
                    address: server.remote.address,
                    protocol: server.remote.way().protocol.scheme(),
                    trouble: server.trouble.clone(),
                    state,
                    srtt_us: server.rtt.smoothed().map(|span| span.0),
                    rttvar_us: server.rtt.variation().0,
                    retry_after_ms: server.rtt.retry_after().ms(),
                    outstanding: server.meters.outstanding.read() as u32,
                    tally: server.meters.tally(),
                });
            }
        }
        Status {
            upstreams,
            fetching: self.active,
            waiting: 0,
            sockets: self.exchange.socket_count() as u32,
            connections: self.exchange.connection_count() as u32,
        }
    }

    /// Returns where the upstreams' numbers stand, in the order of [`Forward::status`].
    pub fn meters(&self) -> Vec<Arc<Meters>> {
        let members =
            self.pools.iter().filter(|(_, pool)| !pool.is_retired).flat_map(|(_, pool)| &pool.members);
        let servers = members.filter_map(|member| self.exchange.server(member.server));
        servers.map(|server| Arc::clone(&server.meters)).collect()
    }

    /// Returns which servers of a group may be asked in place of these, as
    /// [`engine::OutQuery::members`] says it: zero, which is all of them, if no other one is up.
    pub fn members_without(&self, pool: PoolKey, refused: &[SocketAddr]) -> u64 {
        let Some(pool) = self.pools.get(pool.0 as usize).filter(|_| !refused.is_empty()) else { return 0 };
        let others = pool.members.iter().filter(|member| {
            let server = self.exchange.server(member.server);
            server.is_some_and(|server| server.health.is_up() && !refused.contains(&server.remote.address))
        });
        others.fold(0, |members, member| members | 1 << (member.member & 63))
    }

    /// Returns a time around `span`, so that workers do not act in step.
    pub(super) fn jittered(&mut self, span: Span) -> Span {
        Span(span.0 * 3 / 4 + self.rng.random_range(0..=span.0 / 2))
    }
}
