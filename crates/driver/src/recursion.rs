//! The resolvers of one worker, and the queries that they have on the wire.
//!
//! Decides nothing: carries what a [`Resolver`] says to [`Authorities`], and what becomes of it
//! back. A state machine without I/O, as both are.

mod counters;
pub(crate) mod lines;
mod probe;
mod second_level;
mod servers;
mod tables;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use authorities::{
    self, Authorities, AuthorityQuery, Encrypt, Event, Heard, PoolLimits, PoolLinkKey, PoolNetwork,
    PoolSocketKey,
};
use cache::claims::Worker;
use dnstap::SharedTap;
use engine::{Authority, OutQuery, ResolverId, Watch};
use plan::resolvers::{Plan, ResolverPlan};
use rand::SeedableRng;
use rand::rngs::StdRng;
use resolver::{
    Arrival, Ask, AskKey, Effect, Forward, ForwardKey, LookUp, Opportunistic, OwnZones, Resolution, Resolver,
    Unanswered, Waiter, Wish,
};
use slab::Slab;
use timers::{Moment, Span};
use wire::{Message, Question};

pub use counters::Counters;
pub use probe::{Probe, Probing};
pub(crate) use second_level::ToSecondLevel;
pub(crate) use servers::AllServers;
use servers::Watching;
pub use tables::{Learned, ResolverTables, Trusted};

/// By how much more than this nothing is late, however much a worker has to do, unless the machine
/// has slept.
const SLEPT: Span = Span::from_ms(20_000);

/// Names a resolver for as long as somebody waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstanceKey(u32);

/// One resolver, from when its plan is adopted until nobody waits for it.
struct Instance {
    plan: ResolverPlan,
    resolver: Resolver,
    /// What it has done that is counted already.
    counted: resolver::Counts,
    /// Questions that somebody waits for.
    wanted: u32,
    /// Queries that it has on the wire, and questions to groups.
    asks: u32,
    /// Whether another one has taken its place.
    is_retired: bool,
    /// Who hears the answer to its one question, if it was made for that.
    probing: Option<SyncSender<Arc<Resolution>>>,
}

/// A question to a group of servers, or to a second-level cache.
struct OpenForward {
    instance: u32,
    key: ForwardKey,
    look_up: Option<LookUp>,
}

/// A query on the wire.
struct OpenAsk {
    instance: u32,
    key: AskKey,
}

/// What a question is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A client's answer.
    Client,
    /// The same, and somebody watches how it is found.
    Watched,
    /// An answer that is about to expire, or has expired.
    Prefetch,
}

/// What became of a question.
pub(crate) struct Resolved {
    /// Whose it was.
    pub(crate) tag: u32,
    /// The answer, or why there is none.
    pub(crate) resolution: Arc<Resolution>,
}

/// What has become of a connection to an authoritative server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinkEvent {
    /// Queries can be written to it.
    Opened,
    /// It has ended, or there was none.
    Closed,
    /// It could not even be tried.
    Lacked,
    /// A message began on it and does not end.
    Stalled,
}

/// The resolvers of one worker.
pub(crate) struct Recursion<P> {
    authorities: Authorities<P>,
    tables: Arc<ResolverTables>,
    counters: Arc<Counters>,
    worker: Worker,
    rng: StdRng,
    instances: Slab<Instance>,
    asks: Slab<OpenAsk>,
    forwards: Slab<OpenForward>,
    /// What second-level caches are to do.
    to_second_level: VecDeque<ToSecondLevel>,
    /// What groups are to be asked, with the tag by which the answer comes.
    to_forward: VecDeque<(u32, Forward)>,
    resolved: VecDeque<Resolved>,
    /// Of what resolvers trust.
    trust_generation: u64,
    forget_generation: u64,
    unix_seconds: u64,
    /// When that was so.
    unix_at: Moment,
    /// Zones of this server.
    own: Option<Arc<Authority>>,
}

impl<P: PoolNetwork> Recursion<P> {
    /// Returns no resolver yet (see [`Recursion::adopt`]).
    pub(crate) fn new(
        network: P,
        tables: Arc<ResolverTables>,
        mut rng: StdRng,
        (counters, of_authorities): (Arc<Counters>, Arc<authorities::Counters>),
        now: Moment,
    ) -> Self {
        let (servers, secret) = (Arc::clone(tables.servers()), tables.cookie_secret());
        let exchange_rng = StdRng::from_rng(&mut rng);
        Self {
            authorities: Authorities::new(network, servers, secret, exchange_rng, of_authorities, now),
            counters,
            worker: tables.next_worker(),
            tables,
            rng,
            instances: Slab::new(),
            asks: Slab::new(),
            forwards: Slab::new(),
            to_second_level: VecDeque::new(),
            to_forward: VecDeque::new(),
            resolved: VecDeque::new(),
            trust_generation: 0,
            forget_generation: 0,
            unix_seconds: 0,
            unix_at: now,
            own: None,
        }
    }

    /// Returns the network.
    pub(crate) fn network(&self) -> &P {
        self.authorities.network()
    }

    /// Returns the network.
    pub(crate) fn network_mut(&mut self) -> &mut P {
        self.authorities.network_mut()
    }

    /// Copies messages into this ring from now on.
    pub(crate) fn tap_into(&mut self, tap: SharedTap) {
        self.authorities.tap_into(tap);
    }

    /// Has queries leave through new sockets and connections from now on.
    pub(crate) fn renew_sockets(&mut self) {
        self.authorities.renew_sockets();
    }

    /// Resolves as `plans` say from now on. A resolver whose plan is the same goes on; what others
    /// have begun they end.
    pub(crate) fn adopt(&mut self, plan: &Plan) {
        self.authorities.send_options(plan.outgoing.options.clone());
        self.authorities.adopt(PoolLimits { links: plan.connections_max, ..PoolLimits::default() });
        for (_, instance) in &mut self.instances {
            instance.is_retired = instance.probing.is_some() || !plan.resolvers.contains(&instance.plan);
        }
        for plan in &plan.resolvers {
            if self.current(plan.id).is_none() {
                let rng = StdRng::from_rng(&mut self.rng);
                let mut resolver =
                    Resolver::new(plan.settings.clone(), self.tables.of(plan, self.worker), rng);
                resolver.serve(own_zones(self.own.as_ref()));
                self.instances.insert(Instance::new(plan.clone(), resolver));
            }
        }
        self.instances.retain(|_, instance| !instance.is_over());
        // New ones have not heard what they trust.
        self.trust_generation = 0;
        self.take_trust();
    }

    /// Has resolvers trust what they are to trust by now, and forget what they are to forget.
    fn take_trust(&mut self) {
        if self.tables.forgets_since(&mut self.forget_generation) {
            self.instances.iter_mut().for_each(|(_, instance)| instance.resolver.forget_notes());
        }
        let Some(all) = self.tables.trusted_since(&mut self.trust_generation) else { return };
        for (_, instance) in self.instances.iter_mut().filter(|(_, instance)| instance.probing.is_none()) {
            let settings = &instance.plan.settings.trust;
            let now = all.iter().find(|(id, _)| *id == instance.plan.id);
            let (anchors, negative) = now.map_or((&settings.anchors, &settings.negative), |(_, trusted)| {
                (&trusted.anchors, &trusted.negative)
            });
            instance.resolver.trust(anchors, negative);
        }
    }

    /// Has resolvers read these zones from now on.
    pub(crate) fn serve(&mut self, own: Option<&Arc<Authority>>) {
        let is_same = match (&self.own, own) {
            (None, None) => true,
            (Some(known), Some(own)) => Arc::ptr_eq(known, own),
            _ => false,
        };
        if !is_same {
            self.own = own.cloned();
            for (_, instance) in &mut self.instances {
                instance.resolver.serve(own_zones(self.own.as_ref()));
            }
        }
    }

    /// Says what time it is by the calendar, in seconds since 1970.
    pub(crate) fn set_time(&mut self, unix_seconds: u64, now: Moment) {
        (self.unix_seconds, self.unix_at) = (unix_seconds, now);
        for (_, instance) in &mut self.instances {
            instance.resolver.set_time(unix_seconds, instant(now));
        }
    }

    /// Returns the resolver that has this number now.
    pub(crate) fn current(&self, id: ResolverId) -> Option<InstanceKey> {
        let mut all = self.instances.iter();
        all.find(|(_, instance)| instance.is_current(id)).map(|(at, _)| InstanceKey(at as u32))
    }

    /// Returns whether this resolver is the one that has this number now.
    pub(crate) fn is_current(&self, key: InstanceKey, id: ResolverId) -> bool {
        self.instances.get(key.0 as usize).is_some_and(|instance| instance.is_current(id))
    }

    /// Returns how many questions somebody waits for.
    pub(crate) fn active(&self) -> u32 {
        let for_clients = self.instances.iter().filter(|(_, instance)| instance.probing.is_none());
        for_clients.map(|(_, instance)| instance.wanted).sum()
    }

    /// Returns of how many zones resolvers know which keys they have, or that they have none.
    pub(crate) fn zones_known(&self) -> u32 {
        self.instances.iter().map(|(_, instance)| instance.resolver.zones_known() as u32).sum()
    }

    /// Has a resolver find the answer to a question, which comes as [`Resolved`] with this tag.
    pub(crate) fn begin(
        &mut self,
        InstanceKey(at): InstanceKey,
        query: &OutQuery,
        (tag, purpose, has_stale): (u32, Purpose, bool),
        now: Moment,
    ) {
        self.take_trust();
        let Some(instance) = self.instances.get_mut(at as usize) else { return };
        let OutQuery { qname, qtype, qclass, .. } = query;
        let question = Question { qname: qname.as_name(), qtype: *qtype, qclass: *qclass };
        instance.wanted += 1;
        let (waiter, now_there) = (Waiter(tag), instant(now));
        let unchecked = query.checking_disabled && !instance.plan.settings.ignores_cd;
        let wish = Wish {
            unchecked,
            anew: purpose == Purpose::Prefetch && !unchecked,
            traced: purpose == Purpose::Watched && !unchecked || lines::are_wanted(),
            subnet: query.client_subnet,
            has_stale,
            refers: query.no_recursion,
        };
        instance.resolver.want_so(&question, wish, waiter, now_there);
        self.carry_out(at, now);
        self.take_unanswered(now);
    }

    /// Nobody waits for a question any more. What was begun for it goes on, and fills the tables.
    pub(crate) fn forget(&mut self, key: InstanceKey, tag: u32) {
        if let Some(instance) = self.instances.get_mut(key.0 as usize) {
            instance.resolver.forget(Waiter(tag));
            instance.wanted -= 1;
        }
    }

    /// Has the name servers that led to an answer of a resolver known for as long as it is kept.
    pub(crate) fn want_servers(&mut self, key: InstanceKey) {
        if let Some(instance) = self.instances.get_mut(key.0 as usize) {
            instance.resolver.keep_servers();
        }
    }

    /// Has a resolver ask policies before servers, for the question that begins with this tag.
    pub(crate) fn watch(&mut self, key: InstanceKey, tag: u32, watch: Watch) {
        if let Some(instance) = self.instances.get_mut(key.0 as usize) {
            instance.resolver.watch(Waiter(tag), Arc::new(Watching(watch)));
        }
    }

    /// Returns what the resolvers that have a number now know of name servers.
    pub(crate) fn servers_known(&self) -> AllServers {
        let current = self.instances.iter().filter(|(_, instance)| !instance.is_retired);
        AllServers(current.map(|(_, instance)| instance.resolver.servers_known()).collect())
    }

    /// Returns the next question that has come to its end.
    pub(crate) fn next_resolved(&mut self) -> Option<Resolved> {
        self.resolved.pop_front()
    }

    /// Returns the next question for a group of servers, whose end is reported by its tag: with
    /// [`Recursion::heard_forwarders`] or [`Recursion::forwarders_failed`].
    pub(crate) fn next_forward(&mut self) -> Option<(u32, Forward)> {
        self.to_forward.pop_front()
    }

    /// A group has answered: this server of it, if that is known.
    pub(crate) fn heard_forwarders(
        &mut self,
        tag: u32,
        message: &Message<'_>,
        from: Option<SocketAddr>,
        now: Moment,
    ) {
        let tell = |resolver: &mut Resolver, key| {
            resolver.heard_forwarders(key, message, from, instant(now));
        };
        self.forwarded(tag, tell, now);
    }

    /// A group has no answer.
    pub(crate) fn forwarders_failed(&mut self, tag: u32, why: Unanswered, now: Moment) {
        let tell = |resolver: &mut Resolver, key| resolver.forwarders_failed(key, why, instant(now));
        self.forwarded(tag, tell, now);
    }

    fn forwarded(&mut self, tag: u32, report: impl FnOnce(&mut Resolver, ForwardKey), now: Moment) {
        let Some(OpenForward { instance: at, key, .. }) = self.forwards.try_remove(tag as usize) else {
            return;
        };
        let Some(instance) = self.instances.get_mut(at as usize) else { return };
        instance.asks -= 1;
        report(&mut instance.resolver, key);
        self.carry_out(at, now);
        self.take_unanswered(now);
    }

    /// Returns when to call [`Recursion::due`] next.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        let resolvers = self.instances.iter().filter_map(|(_, instance)| instance.resolver.next_due());
        resolvers.map(|at| Moment(at.0)).chain(self.authorities.next_due()).min()
    }

    /// Does what is due by `now`.
    pub(crate) fn due(&mut self, now: Moment) {
        if self.next_due().is_some_and(|at| now >= at + SLEPT) {
            self.instances.iter_mut().for_each(|(_, instance)| instance.resolver.wake(instant(now)));
        }
        self.authorities.due(now);
        self.take_unanswered(now);
        for at in 0..self.instances.capacity() as u32 {
            let Some(instance) = self.instances.get_mut(at as usize) else { continue };
            if instance.resolver.next_due().is_some_and(|due| due.0 <= now.0) {
                instance.resolver.due(instant(now));
                self.carry_out(at, now);
            }
        }
        self.take_unanswered(now);
    }

    /// Sends what was queued, once per batch.
    pub(crate) fn flush(&mut self, now: Moment) {
        self.authorities.flush();
        // Ends: what could not be sent is asked elsewhere at the cost of the question's budget.
        while self.take_unanswered(now) {
            self.authorities.flush();
        }
    }

    /// Has the queries sent that a resolver wants, and keeps what it has found.
    fn carry_out(&mut self, at: u32, now: Moment) {
        let Self {
            instances,
            asks,
            forwards,
            to_forward,
            to_second_level,
            authorities,
            resolved,
            counters,
            ..
        } = self;
        let Some(instance) = instances.get_mut(at as usize) else { return };
        counters.add_since(&mut instance.counted, instance.resolver.counts());
        while let Some(effect) = instance.resolver.next_effect() {
            match effect {
                Effect::Ask(ask) => {
                    let tag = asks.insert(OpenAsk { instance: at, key: ask.key }) as u32;
                    instance.asks += 1;
                    authorities.ask(&query(&ask), tag, now);
                }
                Effect::Forward(wanted) => {
                    let open = OpenForward { instance: at, key: wanted.key, look_up: None };
                    let tag = forwards.insert(open) as u32;
                    instance.asks += 1;
                    to_forward.push_back((tag, wanted));
                }
                Effect::LookUp(look_up) => {
                    instance.asks += 1;
                    let plan = instance.plan.second_level.as_ref();
                    to_second_level.push_back(ToSecondLevel::look_up(look_up, at, plan, forwards));
                }
                Effect::Store(store) => {
                    let plan = instance.plan.second_level.clone();
                    to_second_level.extend(plan.map(|plan| ToSecondLevel::Store { plan, store }));
                }
                Effect::Done { waiter, resolution } => {
                    instance.wanted -= 1;
                    if let Some(probing) = &instance.probing {
                        // Whoever asked may have gone.
                        let _ = probing.try_send(resolution);
                        continue;
                    }
                    resolved.push_back(Resolved { tag: waiter.0, resolution });
                }
            }
        }
        if instance.is_over() {
            instances.remove(at as usize);
        }
    }

    /// Tells resolvers which queries have no reply; returns whether there were any.
    fn take_unanswered(&mut self, now: Moment) -> bool {
        let mut has_any = false;
        while let Some(Event::Unanswered { tag, why }) = self.authorities.next_event() {
            has_any = true;
            let why = match why {
                authorities::Unanswered::Timeout => Unanswered::Timeout,
                authorities::Unanswered::Unreachable => Unanswered::Unreachable,
                authorities::Unanswered::NotSent => Unanswered::NotSent,
            };
            self.reported(tag, |resolver, key| resolver.unanswered(key, why, instant(now)), now);
        }
        has_any
    }

    fn heard(&mut self, heard: &Heard<'_>, now: Moment) {
        let arrival = match heard.arrival {
            authorities::Arrival::Udp => Arrival::Udp,
            authorities::Arrival::UdpWithCookie => Arrival::UdpWithCookie,
            authorities::Arrival::Tcp => Arrival::Tcp,
        };
        let tell = |resolver: &mut Resolver, key| {
            resolver.heard(key, &heard.message, arrival, instant(now));
        };
        self.reported(heard.tag, tell, now);
    }

    /// Reports what became of a query.
    fn reported(&mut self, tag: u32, report: impl FnOnce(&mut Resolver, AskKey), now: Moment) {
        let Some(OpenAsk { instance: at, key }) = self.asks.try_remove(tag as usize) else { return };
        let Some(instance) = self.instances.get_mut(at as usize) else { return };
        instance.asks -= 1;
        report(&mut instance.resolver, key);
        self.carry_out(at, now);
    }
}

/// What the network brings.
impl<P: PoolNetwork> Recursion<P> {
    /// Takes one datagram; `is_cut` says that it was longer than our buffer.
    pub(crate) fn datagram(
        &mut self,
        key: PoolSocketKey,
        from: SocketAddr,
        (bytes, is_cut): (&[u8], bool),
        now: Moment,
    ) {
        if let Some(heard) = self.authorities.datagram(key, from, bytes, is_cut, now) {
            self.heard(&heard, now);
        }
        self.take_unanswered(now);
    }

    /// Takes one message from a connection.
    pub(crate) fn message(&mut self, key: PoolLinkKey, bytes: &[u8], now: Moment) {
        if let Some(heard) = self.authorities.message(key, bytes, now) {
            self.heard(&heard, now);
        }
        self.take_unanswered(now);
    }

    /// Takes the news that a socket itself has failed.
    pub(crate) fn socket_failed(&mut self, key: PoolSocketKey, now: Moment) {
        self.authorities.socket_failed(key);
        self.take_unanswered(now);
    }

    /// Takes what has become of a connection.
    pub(crate) fn link(&mut self, key: PoolLinkKey, event: LinkEvent, now: Moment) {
        match event {
            LinkEvent::Opened => self.authorities.link_opened(key, now),
            LinkEvent::Closed => self.authorities.link_closed(key, now),
            LinkEvent::Lacked => self.authorities.link_lacked(key, now),
            LinkEvent::Stalled => self.authorities.link_stalled(key, now),
        }
        self.take_unanswered(now);
    }
}

impl Instance {
    fn new(plan: ResolverPlan, resolver: Resolver) -> Self {
        let counted = resolver.counts();
        Self { plan, resolver, counted, wanted: 0, asks: 0, is_retired: false, probing: None }
    }

    fn is_current(&self, id: ResolverId) -> bool {
        !self.is_retired && self.plan.id == id
    }

    /// Returns whether nobody has use for it any more.
    const fn is_over(&self) -> bool {
        self.is_retired && self.wanted == 0 && self.asks == 0
    }
}

fn query(ask: &Ask) -> AuthorityQuery<'_> {
    AuthorityQuery {
        address: ask.address,
        qname: ask.qname.as_name(),
        qtype: ask.qtype,
        over_tcp: ask.how.over_tcp,
        udp_octets: ask.how.udp_octets,
        edns: ask.how.edns,
        case: ask.how.case,
        dnssec_ok: ask.how.dnssec_ok,
        recursion_desired: false,
        checking_disabled: false,
        cookies: ask.how.cookies,
        encrypt: {
            let Opportunistic { tls, quic, port } = ask.how.encryption;
            Encrypt { tls, quic, port }
        },
        subnet: ask.subnet,
    }
}

/// Returns the zones that resolvers may read.
fn own_zones(own: Option<&Arc<Authority>>) -> OwnZones {
    own.map_or_else(OwnZones::default, |own| OwnZones {
        for_clients: Some(Arc::clone(&own.zones)),
        for_resolvers: own.for_resolvers.clone(),
    })
}

/// Returns a moment as resolvers count it.
const fn instant(now: Moment) -> resolver::Moment {
    resolver::Moment(now.0)
}
