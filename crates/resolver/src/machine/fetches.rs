//! One question to the servers of one zone: who of them is asked, and when another one.

use std::net::SocketAddr;
use std::sync::Arc;

use cache::Security;
use cache::servers::{Edns, Facts, LetterCase};
use dnssec::Rrsig;
use rand::seq::SliceRandom;
use smallvec::SmallVec;
use wire::{HashKey, Rtype};

use super::claims::Claimed;
use super::{FetchKey, Node, OpenAsk, Resolver, TaskKey};
use crate::addresses::Family;
use crate::budget::Limit;
use crate::choose::{Candidate, choose};
use crate::delegation::Delegation;
use crate::effect::{Ask, AskKey, Effect, ForwardKey, How};
use crate::failure::{Failure, Reason};
use crate::few::Few;
use crate::first_replies::FirstReplies;
use crate::heap_name::{HeapName, HeapQuestion};
use crate::moment::Moment;
use crate::routes::RouteKey;
use crate::scrub::{Answer, Fault, Reading, Referral, Set};
use crate::settings::{Forwarders, Settings, Validation};
use crate::trace::TraceEvent;

/// Queries to a zone's servers if all were silent a short time ago, or as many as it has addresses:
/// one of them may be back, or its packet was lost. So many are left for servers whose addresses
/// are still looked for.
const LAST_RESORT_SENDS: usize = 2;
/// Queries that are left for the servers that a zone itself names, when those fail that its parent
/// does.
pub(super) const OWN_SERVERS_SENDS: u8 = 4;

/// One question to the servers of one zone.
pub(super) struct Fetch {
    pub(super) delegation: Arc<Delegation>,
    pub(super) question: HeapQuestion,
    /// Whose steps it is.
    pub(super) tasks: Few<TaskKey>,
    pub(super) servers: SmallVec<[Server; 4]>,
    /// Name servers without an address, in random order.
    pub(super) nameless: Vec<HeapName>,
    /// Tasks that look for addresses.
    pub(super) lookups: Vec<TaskKey>,
    pub(super) asks: Few<AskKey>,
    pub(super) timer: Option<Moment>,
    pub(super) sends_left: u8,
    /// The limit that keeps it from sending.
    pub(super) spent: Option<Limit>,
    /// Why a look-up was not even begun.
    pub(super) refused: Option<Reason>,
    /// What is known of it if forwarders are asked in place of servers.
    pub(super) forwarding: Option<Forwarding>,
    /// A reply that is not believed yet.
    pub(super) held: Option<Box<Held>>,
    /// Tasks that look for keys, and for what stands for them.
    pub(super) proofs: Vec<TaskKey>,
    /// Whether these are all that is known to be needed.
    pub(super) has_proofs: bool,
    /// Tasks for proofs that were begun.
    pub(super) proofs_begun: u8,
    /// Tasks that look for what will probably be needed; nobody waits for them.
    pub(super) ahead: Vec<TaskKey>,
    /// Why there is no chain of trust to the zone.
    pub(super) broken: Option<Failure>,
    /// A reply that counts if no other server has a better one.
    pub(super) doubtful: Option<Box<Held>>,
    /// The last reply that is bogus, and why.
    pub(super) bogus: Option<Box<(Failure, Held)>>,
    pub(super) bogus_replies: u8,
    pub(super) claimed: Claimed,
    /// Whom the zone's servers want to hear of errors.
    pub(super) agent: Option<HeapName>,
    /// Whether the servers that the zone itself names were looked at.
    pub(super) has_own_servers: bool,
    /// Tasks that want the same for other subnets, and wait until it has ended.
    pub(super) others: Vec<TaskKey>,
}

/// What a query is sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// The answer.
    Answer,
    /// To measure the server, beside another query.
    Beside,
    /// To measure the server, in place of another query, for as long as that one's server would
    /// have been waited for. That it took longer is nothing that it is charged with.
    InPlace {
        /// Milliseconds.
        patience_ms: u32,
    },
}

/// A reply that is not believed yet.
pub(super) struct Held {
    pub(super) reading: Reading,
    /// The root's servers, if it names them.
    pub(super) root: Option<Referral>,
    /// Who sent it, if that is known.
    pub(super) server: Option<SocketAddr>,
    /// Whether somebody else may have sent it without much trouble.
    pub(super) is_forgeable: bool,
    /// For how many bits of the client's subnet it is, if the server looked at that.
    pub(super) scope: Option<u8>,
}

impl Held {
    /// Returns whether it has a DNAME that is neither signed nor hard to forge: it would take a
    /// whole tree of names.
    pub(super) fn has_weak_dname(&self) -> bool {
        let Reading::Answer(answer) = &self.reading else { return false };
        let is_weak = |set: &Set| set.rtype == Rtype::DNAME && set.security != Security::Secure;
        self.is_forgeable && answer.sets.iter().any(is_weak)
    }

    /// Returns whether a signature in it says that this zone has made it.
    pub(super) fn names_signer(&self, zone: &HeapName) -> bool {
        let Reading::Answer(answer) = &self.reading else { return false };
        let soa = answer.denial.as_ref().and_then(|denial| denial.soa.as_ref());
        let sets = answer.sets.iter().chain(&answer.proofs).chain(soa);
        sets.flat_map(|set| &set.signatures)
            .filter_map(|data| Rrsig::parse(data))
            .any(|rrsig| rrsig.signer == zone.as_name())
    }
}

/// An address of a server of the zone.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) asked: u8,
    pub(super) fault: Option<Fault>,
}

/// What is known of a fetch from forwarders.
pub(super) struct Forwarding {
    /// Who is asked; `None`: the second-level cache.
    pub(super) forwarders: Option<Forwarders>,
    pub(super) open: Option<ForwardKey>,
    /// Those whose replies were bogus.
    pub(super) refused: Vec<SocketAddr>,
    /// Why it fails, once that is known.
    pub(super) failed: Option<Reason>,
}

impl Forwarding {
    pub(super) const fn new(forwarders: Option<Forwarders>) -> Self {
        Self { forwarders, open: None, refused: Vec::new(), failed: None }
    }

    /// Notes that the reply of one of them is bogus: others are asked next, if there are any.
    pub(super) fn refuse(&mut self, server: Option<SocketAddr>) {
        self.refused.extend(server);
    }
}

/// How a fetch ends.
pub(super) enum FetchEnd<'a> {
    Answer(&'a Answer),
    Referral(Arc<Delegation>),
    /// The tables know more by now.
    Known,
    Failed(Failure),
}

impl Fetch {
    pub(super) fn add(&mut self, address: SocketAddr) {
        if !self.servers.iter().any(|server| server.address == address) {
            self.servers.push(Server { address, asked: 0, fault: None });
        }
    }

    /// Returns why it fails, if it does.
    fn failure(&self) -> Failure {
        let has = |is_it: fn(&Server) -> bool| self.servers.iter().any(is_it);
        let reason = match self.spent {
            Some(limit) => Reason::Limit(limit),
            None if let Some(reason) = self.forwarding.as_ref().and_then(|it| it.failed) => reason,
            None if has(|server| {
                matches!(server.fault, Some(Fault::Error(_) | Fault::Malformed | Fault::Bogus))
            }) =>
            {
                Reason::Faulty
            }
            None if has(|server| server.fault.is_none()) => Reason::Silent,
            None if has(|server| server.fault.is_some()) => Reason::Lame,
            None => self.refused.unwrap_or(Reason::NoAddress),
        };
        Failure { agent: self.agent.clone(), ..Failure::of_zone(reason, self.delegation.zone.clone()) }
    }
}

impl Resolver {
    /// Has a task wait for what the servers of a zone say.
    pub(super) fn join_fetch(&mut self, task: TaskKey, delegation: &Arc<Delegation>, question: HeapQuestion) {
        let Some(question) = self.admit_subnet(task, delegation, question) else { return };
        let hash_key = self.hash_key();
        let hash = fetch_hash(&hash_key, delegation, &question);
        let is_equal = |key: &FetchKey| {
            self.fetch(*key).is_some_and(|fetch| {
                fetch.question == question
                    && fetch.delegation.zone == delegation.zone
                    && fetch.delegation.route == delegation.route
            })
        };
        let key = match self.by_fetch.find(hash, is_equal) {
            Some(&key) if self.waits_for(Node::Fetch(key), Node::Task(task)) => {
                return self.fail(task, Failure::of_zone(Reason::Circle, delegation.zone.clone()));
            }
            Some(&key) => key,
            None => {
                let key = self.begin_fetch(delegation, question);
                let Self { fetches, by_fetch, .. } = self;
                let hash_of = |key: &FetchKey| {
                    let fetch = fetches.get(key.0 as usize);
                    fetch.map_or(0, |fetch| fetch_hash(&hash_key, &fetch.delegation, &fetch.question))
                };
                by_fetch.insert_unique(hash, key, hash_of);
                self.enter_subnet(key);
                key
            }
        };
        if let Some(fetch) = self.fetch_mut(key) {
            fetch.tasks.push(task);
        }
        if let Some(task) = self.task_mut(task) {
            task.awaits = Some(Node::Fetch(key));
        }
        self.ready.push_back(Node::Fetch(key));
    }

    fn begin_fetch(&mut self, delegation: &Arc<Delegation>, question: HeapQuestion) -> FetchKey {
        let mut fetch = Fetch {
            question,
            tasks: Few::default(),
            servers: SmallVec::new(),
            nameless: Vec::new(),
            lookups: Vec::new(),
            asks: Few::default(),
            timer: None,
            sends_left: self.settings.limits.sends_per_zone,
            spent: None,
            refused: None,
            forwarding: match self.routes.forwarders(delegation) {
                None if delegation.route == Some(RouteKey::SECOND_LEVEL) => Some(Forwarding::new(None)),
                forwarders => forwarders.map(|forwarders| Forwarding::new(Some(forwarders))),
            },
            held: None,
            proofs: Vec::new(),
            has_proofs: false,
            proofs_begun: 0,
            ahead: Vec::new(),
            broken: None,
            doubtful: None,
            bogus: None,
            bogus_replies: 0,
            claimed: Claimed::default(),
            agent: None,
            has_own_servers: false,
            others: Vec::new(),
            delegation: Arc::clone(delegation),
        };
        let policy = &self.settings.addresses;
        for &address in &delegation.addresses {
            fetch.add(SocketAddr::new(policy.reached(address), self.settings.port));
        }
        fetch.nameless.extend_from_slice(&delegation.nameless);
        if let Some(stub) = self.routes.stub(delegation) {
            let usable = stub.addresses.iter().filter(|address| policy.has(Family::of(address.ip())));
            usable.for_each(|it| fetch.add(SocketAddr::new(policy.reached(it.ip()), it.port())));
            fetch.nameless.extend(stub.hosts.iter().map(|(host, _)| host.clone()));
        }
        fetch.nameless.shuffle(&mut self.rng);
        for server in &fetch.servers {
            self.memory.tables.servers.prefetch(server.address);
        }
        FetchKey(self.fetches.insert(fetch) as u32)
    }

    /// Lets a fetch go on that waits for no reply in time.
    pub(super) fn step_fetch(&mut self, key: FetchKey, now: Moment) {
        self.want_proofs(key, now);
        if self.fetch(key).is_some_and(|fetch| fetch.held.is_some()) {
            return self.judge_held(key, now);
        }
        let Some(fetch) = self.fetch(key) else { return };
        if fetch.forwarding.is_some() {
            return self.step_forward(key, now);
        }
        if self.routes.is_own(&fetch.delegation) {
            return self.step_own(key, now);
        }
        self.take_known_addresses(key, now);
        if self.is_stopped_by_servers(key, now) {
            let stopped = Failure::without_zone(Reason::Stopped);
            return self.end_fetch(key, &FetchEnd::Failed(stopped));
        }
        if self.yields(key, now) {
            return;
        }
        let Some(fetch) = self.fetch(key) else { return };
        if fetch.asks.iter().any(|&ask| self.ask(ask).is_some_and(OpenAsk::is_awaited)) {
            return;
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        if let Some(fetch) = self.fetch(key) {
            self.candidates_of(fetch, now, &mut candidates);
        }
        self.step_with(key, &mut candidates, now);
        self.candidates = candidates;
    }

    /// Goes on with a fetch of which nobody is awaited, given the addresses that may be asked.
    fn step_with(&mut self, key: FetchKey, candidates: &mut Vec<Candidate>, now: Moment) {
        let is_last_resort = !candidates.is_empty() && candidates.iter().all(|candidate| candidate.is_barred);
        let unasked = candidates.iter().filter(|candidate| candidate.asked == 0).count();
        if unasked == 0 || is_last_resort {
            self.look_for_addresses(key, now);
        }
        if is_last_resort && let Some(fetch) = self.fetch_mut(key) {
            if fetch.lookups.is_empty() {
                fetch.sends_left = fetch.sends_left.min(saturated(unasked.max(LAST_RESORT_SENDS)));
            } else if unasked == 0 || fetch.sends_left <= saturated(LAST_RESORT_SENDS) {
                // Queries are left for the servers whose addresses are looked for.
                return;
            }
        }
        if self.is_failing(key, candidates) && self.take_own_servers(key, now) {
            let Some(fetch) = self.fetch(key) else { return };
            candidates.clear();
            self.candidates_of(fetch, now, candidates);
            if !candidates.iter().any(|candidate| candidate.asked == 0) {
                self.look_for_addresses(key, now);
            }
        }
        if self.ask_next(key, candidates, now) {
            return;
        }
        if self.fetch(key).is_some_and(|fetch| fetch.lookups.is_empty()) {
            self.end_without_better(key, now);
        }
    }

    /// Ends a fetch of which nobody is left to be asked, with what there is.
    fn end_without_better(&mut self, key: FetchKey, now: Moment) {
        let Some(fetch) = self.fetch_mut(key) else { return };
        if let Some(doubtful) = fetch.doubtful.take() {
            return self.hold(key, *doubtful, now);
        }
        match fetch.bogus.take() {
            Some(bogus) => {
                let (failure, held) = *bogus;
                self.end_unproved(key, held, failure, now);
            }
            None => self.end_failed(key),
        }
    }

    /// Returns whether a fetch is about to fail: nobody is left to be asked, or hardly a query.
    fn is_failing(&self, key: FetchKey, candidates: &[Candidate]) -> bool {
        self.fetch(key).is_some_and(|fetch| {
            let is_looking = !fetch.lookups.is_empty();
            fetch.spent.is_none()
                && !is_looking
                && (fetch.sends_left <= OWN_SERVERS_SENDS
                    || candidates.is_empty() && fetch.nameless.is_empty())
        })
    }

    pub(super) fn end_failed(&mut self, key: FetchKey) {
        let Some(fetch) = self.fetch(key) else { return };
        let failure = fetch.failure();
        self.end_fetch(key, &FetchEnd::Failed(failure));
    }

    /// Ends a fetch whose question may not cost more.
    pub(super) fn end_over_limit(&mut self, key: FetchKey, limit: Limit) {
        let Some(fetch) = self.fetch(key) else { return };
        let failure = Failure::of_zone(Reason::Limit(limit), fetch.delegation.zone.clone());
        self.end_fetch(key, &FetchEnd::Failed(failure));
    }

    /// Adds the addresses that may be asked.
    fn candidates_of(&self, fetch: &Fetch, now: Moment, out: &mut Vec<Candidate>) {
        let facts_of = &self.memory.tables.servers;
        let zone_hash = self.memory.tables.rrsets.hash_key().hash_name(fetch.delegation.zone.as_name());
        let unknown_us = self.settings.patience_unknown_ms * 1000;
        let is_usable = |server: &&Server| server.fault.is_none() && server.asked < self.settings.attempts;
        let has_both = [Family::V4, Family::V6].iter().all(|&family| {
            fetch.servers.iter().filter(is_usable).any(|server| Family::of(server.address.ip()) == family)
        });
        let servers = fetch.servers.iter().enumerate();
        let usable = servers.filter(|(_, server)| is_usable(server)).filter(|(_, server)| {
            let family = Family::of(server.address.ip());
            !has_both || !self.families.is_down(family, now) || self.families.wants_probe(family, now)
        });
        out.extend(usable.map(|(at, server)| {
            let facts = facts_of.look(server.address, now.ms());
            let family = Family::of(server.address.ip());
            Candidate {
                at,
                facts,
                score_us: facts.map_or(unknown_us, |facts| facts.score_us(unknown_us)),
                asked: server.asked,
                is_lame: facts.is_some_and(|facts| facts.is_lame(zone_hash)),
                is_barred: facts.is_some_and(|facts| facts.barred_for_ms() > 0)
                    || has_both && self.families.is_down(family, now),
                family,
            }
        }));
    }

    /// Asks the best of the candidates, or another one in its place to measure it; returns whether
    /// it did.
    fn ask_next(&mut self, key: FetchKey, candidates: &[Candidate], now: Moment) -> bool {
        let late = self.fetch(key).and_then(|fetch| {
            let ask = self.ask(*fetch.asks.last()?).filter(|ask| ask.is_late)?;
            Some(Family::of(ask.address.ip()))
        });
        let usual = self.settings.addresses.preferred;
        let Some(choice) = choose(candidates, late, usual, &mut self.rng) else { return false };
        let how = How::unknown(&self.settings);
        if let Some(explored) = choice.explored {
            // Whoever is as quick as the one in whose place it is asked costs nobody anything.
            let patience_ms = patience_ms(choice.facts.as_ref(), 0, &self.settings, &self.first_replies);
            return self.send(key, explored, how, Aim::InPlace { patience_ms }, now);
        }
        if !self.send(key, (choice.at, choice.facts), how, Aim::Answer, now) {
            return false;
        }
        // A family that is down is tried beside the other one, never instead.
        let probed = candidates
            .iter()
            .find(|candidate| candidate.at != choice.at && self.families.wants_probe(candidate.family, now));
        if let Some(beside) = probed.map(|candidate| (candidate.at, candidate.facts)) {
            self.send(key, beside, how, Aim::Beside, now);
        }
        true
    }

    /// Sends the question to a server, of which so much is known, if that can be paid for; returns
    /// whether it was.
    pub(super) fn send(
        &mut self,
        key: FetchKey,
        (at, facts): (usize, Option<Facts>),
        how: How,
        aim: Aim,
        now: Moment,
    ) -> bool {
        let has_sends = self.fetch(key).is_some_and(|fetch| fetch.sends_left > 0);
        if !has_sends {
            return false;
        }
        if !self.may_ask_zone(key, now) {
            return false;
        }
        let is_exact = self.has_exact_case(key);
        let paid = self.pay_for_fetch(key, |budget| budget.send(now));
        let Self { fetches, settings, families, first_replies, .. } = self;
        let Some(fetch) = fetches.get_mut(key.0 as usize) else { return false };
        if let Err(limit) = paid {
            fetch.spent = Some(limit);
            return false;
        }
        let Some(server) = fetch.servers.get_mut(at) else { return false };
        let address = server.address;
        let patience_ms = match aim {
            Aim::InPlace { patience_ms } => patience_ms,
            Aim::Answer | Aim::Beside => patience_ms(facts.as_ref(), server.asked, settings, first_replies),
        };
        fetch.sends_left -= 1;
        server.asked += 1;
        families.sent(Family::of(address.ip()), now);
        let subnet = self.fetch(key).and_then(|fetch| self.told(fetch, address.ip()));
        let Self { fetches, asks, timers, effects, routes, .. } = self;
        let Some(fetch) = fetches.get_mut(key.0 as usize) else { return false };
        let tcp_only = routes.stub(&fetch.delegation).is_some_and(|stub| stub.tcp_only);
        let how = How { over_tcp: how.over_tcp || tcp_only, ..how };
        let ask = OpenAsk {
            fetch: Some(key),
            address,
            sent_at: now,
            is_first: facts.is_none_or(|facts| facts.round_trip.is_none()),
            is_late: false,
            is_charged: false,
            aim,
            subnet,
        };
        let ask = AskKey(asks.insert(ask) as u32);
        if aim == Aim::Beside {
            // The last one is whom the fetch waits for.
            fetch.asks.push_front(ask);
        } else {
            fetch.asks.push(ask);
            if let Some(timer) = fetch.timer.replace(now.after_ms(patience_ms)) {
                timers.remove(&(timer, key));
            }
            timers.insert((now.after_ms(patience_ms), key));
        }
        effects.push_back(Effect::Ask(Ask {
            key: ask,
            address,
            qname: fetch.question.name.clone(),
            qtype: fetch.question.rtype,
            how: how.with(facts.as_ref()).in_case(is_exact),
            subnet,
        }));
        let event = if how.over_tcp { TraceEvent::SentOverTcp } else { TraceEvent::Sent };
        self.note(key, address, &event, now);
        true
    }

    /// Returns whether a fetch is to find out if servers that failed are back.
    pub(super) fn is_trial(&self, key: FetchKey) -> bool {
        let tasks = self.fetch(key).into_iter().flat_map(|fetch| fetch.tasks.iter());
        tasks.filter_map(|&task| self.task(task)).any(|task| task.is_trial)
    }

    /// Ends a fetch, and tells the tasks that wait for it.
    pub(super) fn end_fetch(&mut self, key: FetchKey, end: &FetchEnd<'_>) {
        let Some(mut fetch) = self.fetches.try_remove(key.0 as usize) else { return };
        self.leave_subnet(key, &mut fetch, end);
        if let Some(at) = fetch.timer {
            self.timers.remove(&(at, key));
        }
        if let Claimed::Ours(hash) = fetch.claimed {
            self.memory.tables.claims.release(hash, self.memory.tables.worker);
        }
        self.paused.retain(|&paused| paused != key);
        for lookup in fetch.lookups.into_iter().chain(fetch.proofs).chain(fetch.ahead) {
            if let Some(task) = self.task_mut(lookup) {
                task.parents.retain(|&parent| parent != Node::Fetch(key));
            }
        }
        if let Some(open) = fetch.forwarding.and_then(|forwarding| forwarding.open)
            && let Some(open) = self.forwards.get_mut(open.0 as usize)
        {
            open.fetch = None;
        }
        for ask in fetch.asks {
            if let Some(ask) = self.ask_mut(ask) {
                ask.fetch = None;
            }
        }
        let hash = fetch_hash(&self.hash_key(), &fetch.delegation, &fetch.question);
        if let Ok(entry) = self.by_fetch.find_entry(hash, |other| *other == key) {
            entry.remove();
        }
        for task in fetch.tasks {
            self.fetch_ended(task, &fetch.question, end);
        }
    }
}

/// Returns what equal fetches are found by: whose servers are asked, by which route, and what.
pub(super) fn fetch_hash(key: &HashKey, delegation: &Delegation, question: &HeapQuestion) -> u64 {
    // Those that differ in their route alone are few.
    key.hash(delegation.zone.as_name(), question.hash(key))
}

fn saturated(count: usize) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}

impl How {
    /// Returns how a server is asked of which nothing is known.
    pub(super) const fn unknown(settings: &Settings) -> Self {
        Self {
            over_tcp: settings.tcp_only,
            udp_octets: settings.udp_octets,
            edns: Edns::Unknown,
            case: LetterCase::Unknown,
            dnssec_ok: !matches!(settings.validation, Validation::Off),
            cookies: settings.cookies,
            encryption: settings.opportunistic,
        }
    }

    fn with(self, facts: Option<&Facts>) -> Self {
        facts.map_or(self, |facts| Self { edns: facts.edns, case: facts.case, ..self })
    }
}

/// Returns the milliseconds after which another server is asked beside one that has been asked so
/// often already: the round trip and four times its variation (RFC 6298 §2.3), doubled each time.
/// Of a server that was not asked before, the first replies of others tell.
fn patience_ms(facts: Option<&Facts>, asked: u8, settings: &Settings, first: &FirstReplies) -> u32 {
    let known = facts.and_then(|facts| facts.round_trip);
    let patience_ms = match known {
        Some(known) => known.timeout_us().div_ceil(1000).max(settings.patience_ms_min),
        None => first.patience_ms(settings.patience_unknown_ms),
    };
    patience_ms.saturating_mul(1 << asked.min(8)).min(settings.patience_ms_max)
}
