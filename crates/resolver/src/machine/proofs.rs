//! Replies that are not believed before they are judged, and what is asked for that.

use cache::rrsets::Renewal;
use cache::{Now, Security};
use wire::{Name, Rtype};

use super::fetches::{FetchEnd, Held};
use super::{FetchKey, Node, Resolver, TaskKey};
use crate::budget::Limit;
use crate::delegation::DsState;
use crate::failure::{Defect, Failure, Reason};
use crate::failures::Memory;
use crate::heap_name::{HeapName, HeapQuestion};
use crate::moment::Moment;
use crate::prove::{Below, Judge, Obstacle, Why, Work, ZoneTrust};
use crate::resolution::Resolution;
use crate::scrub::{Answer, Fault, Reading, Set};
use crate::settings::Validation;
use crate::tables::{Keep, Known};
use crate::trace::{TraceEvent, TraceServer};
use std::net::SocketAddr;
use std::sync::Arc;

/// Zones above one that a signature names, whose keys are asked for at the same time.
const LINKS_AHEAD: usize = 2;

/// Questions for keys that one fetch begins: two for each of the labels that somebody may hide a
/// delegation behind.
const PROOFS_MAX: u8 = 64;

/// Seconds for which a zone counts as unsigned whose keys are not to be had, if settings say so.
const NO_KEYS_SECONDS: u32 = 60;

/// Seconds for which a delegation is known at least where policies look at its servers: they do so
/// when the answer has come.
const TTL_WITH_SERVERS_MIN: u32 = 5;

impl Resolver {
    /// Takes a reply, and believes it at once if nobody wants it proved.
    pub(super) fn hold(&mut self, key: FetchKey, held: Held, now: Moment) {
        let Some(fetch) = self.fetch_mut(key) else { return };
        if fetch.held.is_some() {
            // Another server was quicker. If that one's reply is bogus, this one is asked again.
            return;
        }
        let is_judged = !fetch.question.unchecked;
        if is_judged && self.validates() {
            self.stop_timer(key);
            if let Some(fetch) = self.fetch_mut(key) {
                fetch.held = Some(Box::new(held));
            }
            self.ready.push_back(Node::Fetch(key));
        } else {
            let (held, ds) = self.peek(key, held, now);
            self.believe(key, held, ds, None, now);
        }
    }

    /// Looks at the DS records of a referral that nobody wants proved, if that takes no more
    /// questions: who wants the zone's names proved later need not ask for them.
    fn peek(&mut self, key: FetchKey, mut held: Held, now: Moment) -> (Held, DsState) {
        let asked = self.fetch(key).map(|fetch| fetch.delegation.zone.clone());
        if let (Reading::Referral(referral), Some(asked)) = (&mut held.reading, asked)
            && self.validates()
            && let Ok((Ok(ds), _)) = self.judge(key, Some(&asked), now, |judge| judge.referral(referral))
        {
            return (held, ds);
        }
        (held, DsState::Unknown)
    }

    /// Asks for what the zone of a fetch is judged by, beside the question.
    pub(super) fn want_proofs(&mut self, key: FetchKey, now: Moment) {
        if !self.validates() {
            return;
        }
        let Self { fetches, chains, settings, .. } = self;
        let Some(fetch) = fetches.get_mut(key.0 as usize) else { return };
        if fetch.has_proofs || fetch.question.unchecked || fetch.broken.is_some() {
            return;
        }
        fetch.has_proofs = true;
        let place = fetch.question.place();
        let zone = match (&fetch.forwarding, chains.trust(place, &settings.trust, now)) {
            (None, _) => &fetch.delegation.zone,
            (Some(_), Some(ZoneTrust::Insecure(_) | ZoneTrust::Indeterminate)) => return,
            // Forwarders answer for all zones: the chain begins where trust does.
            (Some(_), _) => match settings.trust.anchor_of(place) {
                Some(anchor) => &anchor.zone,
                None => return,
            },
        };
        let ds = &fetch.delegation.ds;
        chains.learn_ds(zone, ds, fetch.delegation.ends_at, &settings.trust, now);
        let needed = match chains.trust(zone.as_name(), &settings.trust, now) {
            None => Rtype::DS,
            Some(ZoneTrust::Signed(_)) => Rtype::DNSKEY,
            Some(_) => return,
        };
        let is_own = fetch.question.name == *zone && fetch.question.rtype == needed;
        if !is_own {
            let zone = zone.clone();
            self.begin_proof(key, zone, needed, now);
        }
    }

    /// Begins to ask for DS or DNSKEY records that a judgement needs.
    fn begin_proof(&mut self, key: FetchKey, name: HeapName, rtype: Rtype, now: Moment) {
        let question = HeapQuestion { name, rtype, unchecked: false, subnet: None };
        if rtype == Rtype::DNSKEY && self.take_known_keys(key, &question, now) {
            return;
        }
        let mut is_trial = self.is_trial(key);
        match self.memory.tables.failures.look(&question, is_trial, now) {
            Memory::Nothing => {}
            Memory::Trial => is_trial = true,
            Memory::Failed(_) if self.does_without_keys(&question, now) => {
                return self.ready.push_back(Node::Fetch(key));
            }
            Memory::Failed(failure) => return self.break_chain(key, failure),
        }
        let is_second_level = self.is_second_level(key);
        let Some(fetch) = self.fetch_mut(key) else { return };
        let delegation = Arc::clone(&fetch.delegation);
        let is_own = fetch.delegation.zone == question.name && !is_second_level;
        fetch.proofs_begun += 1;
        if fetch.proofs_begun > PROOFS_MAX {
            return self.break_chain(key, Failure::without_zone(Reason::Limit(Limit::Sends)));
        }
        let depth = self.depth_of(key);
        let zone = question.name.clone();
        let task = self.task_for(question, depth);
        if self.fetch(key).is_some_and(|fetch| fetch.proofs.contains(&task)) {
            return;
        }
        if self.waits_for(Node::Task(task), Node::Fetch(key)) {
            return self.break_chain(key, Failure::of_zone(Reason::Circle, zone));
        }
        if let Some(task) = self.task_mut(task) {
            task.parents.push(Node::Fetch(key));
            task.depth = task.depth.min(depth);
            task.is_trial |= is_trial;
            if is_own && rtype == Rtype::DNSKEY {
                task.begin_at(delegation);
            }
        }
        if let Some(fetch) = self.fetch_mut(key) {
            fetch.proofs.push(task);
        }
    }

    /// Asks forwarders for what the chain of trust to a zone needs besides its DS records, as far
    /// as that can be known: else each link of it would take a round trip after the other. A zone
    /// that a signature names has keys. Below a top-level domain, of which nothing is known yet,
    /// there probably is a zone, signed or not.
    fn ask_ahead(&mut self, key: FetchKey, zone: &HeapName, is_signer: bool, now: Moment) {
        let Some(anchor) = self.settings.trust.anchor_of(zone.as_name()) else { return };
        let (above, labels) = (anchor.zone.as_name().label_count(), zone.as_name().label_count());
        if is_signer {
            for labels in (above + 1).max(labels.saturating_sub(LINKS_AHEAD))..=labels {
                let link = HeapName::new(zone.as_name().suffix(labels));
                if self.chains.trust(link.as_name(), &self.settings.trust, now).is_none() {
                    self.begin_ahead(key, link.clone(), Rtype::DS, now);
                    self.begin_ahead(key, link, Rtype::DNSKEY, now);
                }
            }
        } else if labels == above + 1
            && let Some(fetch) = self.fetch(key)
            && fetch.question.place().label_count() > labels
        {
            let below = HeapName::new(fetch.question.place().suffix(labels + 1));
            self.begin_ahead(key, below, Rtype::DS, now);
            self.begin_ahead(key, zone.clone(), Rtype::DNSKEY, now);
        }
    }

    /// Begins to ask for records that a judgement probably needs. It does not wait for them, and
    /// what becomes of them is no fault of the reply.
    fn begin_ahead(&mut self, key: FetchKey, name: HeapName, rtype: Rtype, now: Moment) {
        let question = HeapQuestion { name, rtype, subnet: None, unchecked: false };
        let is_own = self.fetch(key).is_none_or(|fetch| fetch.question == question);
        if is_own || self.memory.tables.failures.look(&question, true, now) != Memory::Nothing {
            return;
        }
        let Some(fetch) = self.fetch_mut(key).filter(|fetch| fetch.proofs_begun < PROOFS_MAX) else { return };
        fetch.proofs_begun += 1;
        let depth = self.depth_of(key);
        let task = self.task_for(question, depth);
        if let Some(fetch) = self.fetch_mut(key).filter(|fetch| !fetch.ahead.contains(&task)) {
            fetch.ahead.push(task);
            if let Some(task) = self.task_mut(task) {
                task.parents.push(Node::Fetch(key));
                task.depth = task.depth.min(depth);
            }
        }
    }

    /// Returns how many look-ups of addresses a fetch is within.
    fn depth_of(&self, key: FetchKey) -> u8 {
        let tasks = self.fetch(key).into_iter().flat_map(|fetch| fetch.tasks.iter());
        tasks.filter_map(|&task| self.task(task)).map(|task| task.depth).min().unwrap_or(0)
    }

    /// Takes the keys of a zone that were validated before, perhaps by another worker, and lets the
    /// fetch go on with them sooner or later; returns whether there are any.
    fn take_known_keys(&mut self, key: FetchKey, question: &HeapQuestion, now: Moment) -> bool {
        let Some(Known::Data(mut set)) = self.memory.look(question, now.seconds()) else { return false };
        if set.security != Security::Secure {
            return false;
        }
        // Whoever kept it has checked it; what stands for the keys is looked at here.
        if let Ok((true, _)) = self.judge(key, Some(&question.name), now, |judge| judge.known_keys(&set)) {
            self.ready.push_back(Node::Fetch(key));
            return true;
        }
        set.security = Security::Unchecked;
        match self.judge(key, Some(&question.name), now, |judge| judge.keys(&mut set, &mut [])) {
            Ok((Ok(()), _)) => {
                self.ready.push_back(Node::Fetch(key));
                true
            }
            Ok((Err(Obstacle::Paused), _)) => {
                if let Some(fetch) = self.fetch_mut(key) {
                    fetch.has_proofs = false;
                }
                self.paused.push_back(key);
                true
            }
            Ok((Err(_), _)) | Err(_) => false,
        }
    }

    /// A task that a judgement needs has ended.
    pub(super) fn proof_ended(
        &mut self,
        key: FetchKey,
        task: TaskKey,
        question: &HeapQuestion,
        resolution: &Resolution,
    ) {
        let now = self.ran_at;
        if resolution.failure.is_some() && self.does_without_keys(question, now) {
            if let Some(fetch) = self.fetch_mut(key) {
                fetch.proofs.retain(|&other| other != task);
            }
            return self.ready.push_back(Node::Fetch(key));
        }
        let Self { fetches, chains, settings, .. } = self;
        let Some(fetch) = fetches.get_mut(key.0 as usize) else { return };
        fetch.proofs.retain(|&other| other != task);
        fetch.has_proofs = false;
        if let Some(failure) = &resolution.failure {
            let is_of_keys = question.rtype == Rtype::DNSKEY && !matches!(failure.reason, Reason::Bogus(_));
            return self.break_chain(key, Failure { is_of_keys, ..failure.clone() });
        }
        if question.rtype == Rtype::DS {
            let ttl = resolution.records().map(|record| record.ttl().seconds()).min().unwrap_or(0);
            let ends_at = Now(now.seconds().0.saturating_add(ttl));
            let zone = &question.name;
            match &resolution.below {
                Some(Below::Signed(records)) => {
                    let ds = DsState::Signed(records.clone());
                    chains.learn_ds(zone, &ds, ends_at, &settings.trust, now);
                }
                Some(Below::Unsigned) => {
                    chains.learn(zone, ZoneTrust::Insecure(Why::Unsigned), ends_at, now);
                }
                Some(Below::NoCut) => chains.learn(zone, ZoneTrust::NoCut, ends_at, now),
                None => {
                    let failure = Failure::of_zone(Reason::Bogus(Defect::NoKeys), zone.clone());
                    return self.break_chain(key, failure);
                }
            }
        }
        self.ready.push_back(Node::Fetch(key));
    }

    /// Has a zone with a trust anchor count as unsigned for some time because its keys are not to
    /// be had or not proved, if the settings say so; returns whether it does.
    fn does_without_keys(&mut self, question: &HeapQuestion, now: Moment) -> bool {
        let Self { chains, settings, .. } = self;
        let trust = &settings.trust;
        let is_anchored = trust.anchors.iter().any(|anchor| anchor.zone == question.name);
        let does = !trust.requires_anchor_keys && is_anchored && question.rtype == Rtype::DNSKEY;
        if does {
            let ends_at = Now(now.seconds().0.saturating_add(NO_KEYS_SECONDS));
            chains.learn(&question.name, ZoneTrust::Insecure(Why::NoKeys), ends_at, now);
        }
        does
    }

    fn break_chain(&mut self, key: FetchKey, failure: Failure) {
        if let Some(fetch) = self.fetch_mut(key) {
            fetch.broken = Some(failure);
        }
        self.ready.push_back(Node::Fetch(key));
    }

    /// Lets a judge work on behalf of a fetch, whose question pays; returns what it found, and why
    /// something signed is insecure.
    fn judge<R>(
        &mut self,
        key: FetchKey,
        asked: Option<&HeapName>,
        now: Moment,
        run: impl FnOnce(&mut Judge<'_>) -> R,
    ) -> Result<(R, Option<Why>), Limit> {
        // What nobody wants any more nobody pays for.
        let payer = self.payer_of_judgement(key).ok_or(Limit::Sends)?;
        let budget = self.task(payer).and_then(|task| task.budget).ok_or(Limit::Sends)?;
        let (checks, hashes) = (budget.checks, budget.hashes);
        let Self { chains, settings, checks_now, counts, .. } = self;
        let work = Work { checks, hashes, checks_now: *checks_now };
        // Forwarders answer for all zones.
        let root = HeapName::new(Name::ROOT);
        let (asked, is_forwarded) = (asked.unwrap_or(&root), asked.is_none());
        let mut judge =
            Judge { chains, settings: &settings.trust, now, work, asked, is_forwarded, why: None };
        let found = run(&mut judge);
        let (work, why) = (judge.work, judge.why);
        *checks_now = work.checks_now;
        counts.signatures += u64::from(checks.left().saturating_sub(work.checks.left()));
        if let Some(budget) = self.task_mut(payer).and_then(|task| task.budget.as_mut()) {
            (budget.checks, budget.hashes) = (work.checks, work.hashes);
        }
        Ok((found, why))
    }

    /// Judges the reply that a fetch has got, as far as what is known allows.
    pub(super) fn judge_held(&mut self, key: FetchKey, now: Moment) {
        let Some(fetch) = self.fetch_mut(key) else { return };
        let Some(held) = fetch.held.take() else { return };
        let mut held = *held;
        let (asked, question) = (fetch.delegation.zone.clone(), fetch.question.clone());
        let (qtype, is_forwarded) = (question.rtype, fetch.forwarding.is_some());
        let judged =
            self.judge(key, (!is_forwarded).then_some(&asked), now, |judge| match &mut held.reading {
                Reading::Answer(answer) => judge.answer(answer, qtype).map(|()| DsState::Unknown),
                Reading::Referral(referral) => judge.referral(referral),
                Reading::Doubtful(..) | Reading::Fault(_) => Ok(DsState::Unknown),
            });
        match judged {
            Ok((Ok(ds), why)) => self.believe(key, held, ds, why, now),
            // A reply that could only be believed by what it does not say.
            Ok((Err(Obstacle::Needs(zone, rtype)), _)) if (&zone, rtype) == (&question.name, qtype) => {
                self.refuse(key, held, Defect::NoKeys, zone, now);
            }
            // It was known when the zone's servers were asked, and is forgotten since.
            Ok((Err(Obstacle::Needs(zone, Rtype::DS)), _)) if zone == asked && self.relearns(key) => {
                self.put_back(key, held);
                self.ready.push_back(Node::Fetch(key));
            }
            Ok((Err(Obstacle::Needs(zone, rtype)), _)) => {
                let (broken, agent) =
                    self.fetch(key).map_or((None, None), |it| (it.broken.clone(), it.agent.clone()));
                match broken {
                    Some(mut failure) => {
                        // Of a zone whose keys are wrong, other replies name the agent as well.
                        if failure.zone.as_ref() == Some(&asked) {
                            failure.agent = failure.agent.or(agent);
                        }
                        self.end_unproved(key, held, failure, now);
                    }
                    None => {
                        let is_signer = held.names_signer(&zone);
                        self.put_back(key, held);
                        if is_forwarded && rtype == Rtype::DS {
                            self.ask_ahead(key, &zone, is_signer, now);
                        }
                        self.begin_proof(key, zone, rtype, now);
                    }
                }
            }
            Ok((Err(Obstacle::Paused), _)) => {
                self.put_back(key, held);
                self.paused.push_back(key);
            }
            Ok((Err(Obstacle::Bogus(defect, zone)), _)) => self.refuse(key, held, defect, zone, now),
            Ok((Err(Obstacle::Spent(limit)), _)) | Err(limit) => {
                let failure = Failure::of_zone(Reason::Limit(limit), asked);
                self.end_unproved(key, held, failure, now);
            }
        }
    }

    /// Has a fetch look again for what its zone is judged by, if its delegation says so: nobody
    /// need be asked for that.
    fn relearns(&mut self, key: FetchKey) -> bool {
        let Some(fetch) = self.fetch_mut(key) else { return false };
        if fetch.delegation.ds == DsState::Unknown || fetch.proofs_begun >= PROOFS_MAX {
            return false;
        }
        fetch.proofs_begun += 1;
        fetch.has_proofs = false;
        true
    }

    fn put_back(&mut self, key: FetchKey, held: Held) {
        if let Some(fetch) = self.fetch_mut(key) {
            fetch.held = Some(Box::new(held));
        }
    }

    /// A reply is bogus: other servers of the zone are asked, but not many.
    fn refuse(&mut self, key: FetchKey, held: Held, defect: Defect, zone: HeapName, now: Moment) {
        self.counts.bogus += 1;
        let who = held.server.map_or(TraceServer::Unnamed, TraceServer::At);
        self.note(key, who, &TraceEvent::Bogus(defect), now);
        let replies_max = self.settings.trust.bogus_replies_max;
        let server = held.server.map(|server| server.ip());
        let Some(fetch) = self.fetch_mut(key) else { return };
        let agent = fetch.agent.clone();
        let failure = Failure { server, agent, ..Failure::of_zone(Reason::Bogus(defect), zone) };
        fetch.bogus_replies += 1;
        if fetch.bogus_replies >= replies_max {
            return self.end_unproved(key, held, failure, now);
        }
        if let Some(server) = fetch.servers.iter_mut().find(|server| Some(server.address) == held.server) {
            server.fault = Some(Fault::Bogus);
        }
        if let Some(forwarding) = &mut fetch.forwarding {
            forwarding.refuse(held.server);
        }
        fetch.bogus = Some(Box::new((failure, held)));
        self.ready.push_back(Node::Fetch(key));
    }

    /// Ends a fetch whose reply could not be proved.
    pub(super) fn end_unproved(&mut self, key: FetchKey, held: Held, failure: Failure, now: Moment) {
        if self.is_second_level(key) {
            // Whatever is wrong with what it has, servers may say something else.
            return self.end_fetch(key, &FetchEnd::Failed(failure));
        }
        let Some(fetch) = self.fetch(key) else { return };
        let question = fetch.question.clone();
        let trust = self.chains.trust(question.name.as_name(), &self.settings.trust, now);
        // Once it does so, it is judged a second time and not a third.
        if !matches!(trust, Some(ZoneTrust::Insecure(_))) && self.does_without_keys(&question, now) {
            self.put_back(key, held);
            return self.ready.push_back(Node::Fetch(key));
        }
        match held.reading {
            Reading::Answer(mut answer) if self.settings.validation == Validation::Permissive => {
                answer.sets.iter_mut().for_each(|set| set.security = Security::Bogus);
                if let Some(fetch) = self.fetch(key) {
                    answer.drop_foreign_soa(&fetch.delegation.zone);
                }
                if let Some(denial) = &mut answer.denial {
                    denial.security = Security::Bogus;
                }
                let qtype = self.fetch(key).map_or(Rtype::A, |fetch| fetch.question.rtype);
                answer.scope = held.scope;
                answer.keep_for(self.settings.bogus_seconds_max);
                let how = Keep { unchecked: true, renewal: Renewal::No };
                self.keep_answer(key, (&answer, held.server), (qtype, how), now);
                self.end_fetch(key, &FetchEnd::Answer(&answer));
            }
            Reading::Referral(_) if self.settings.validation == Validation::Permissive => {
                self.believe(key, held, DsState::Unknown, None, now);
            }
            _ => self.end_fetch(key, &FetchEnd::Failed(failure)),
        }
    }

    /// Keeps an answer of a server, if what that says is to be kept.
    fn keep_answer(
        &self,
        key: FetchKey,
        (answer, server): (&Answer, Option<SocketAddr>),
        (qtype, how): (Rtype, Keep),
        now: Moment,
    ) {
        let Some(fetch) = self.fetch(key) else { return };
        // What is for one subnet is for who asked alone: the tables are shared by all clients.
        let is_for_all = answer.scope.unwrap_or(0) == 0 && !self.is_for_the_untold(fetch, server);
        if is_for_all && self.routes.keeps(&fetch.delegation) {
            self.memory.keep_answer(answer, qtype, how, now.seconds());
        }
    }

    /// Keeps what a reply says, and ends its fetch.
    fn believe(&mut self, key: FetchKey, held: Held, ds: DsState, why: Option<Why>, now: Moment) {
        let is_weak = self.settings.checks_dnames && held.has_weak_dname();
        if let Some(server) = held.server.filter(|_| is_weak) {
            return self.ask_over_tcp(key, server, now);
        }
        let Some(fetch) = self.fetch(key) else { return };
        let (question, ends_at) = (fetch.question.clone(), fetch.delegation.ends_at);
        let (delegation, tasks) = (Arc::clone(&fetch.delegation), fetch.tasks.clone());
        if !self.is_second_level(key) {
            self.memory.tables.failures.heard_good(&delegation.zone, now);
        }
        match held.reading {
            Reading::Answer(mut answer) => {
                answer.insecure_because = why.and_then(Why::ede);
                answer.scope = held.scope;
                if self.routes.keeps(&delegation) {
                    let soa = answer.denial.as_ref().and_then(|denial| denial.soa.as_ref());
                    self.keep_ranges(&answer.proofs, soa, now);
                }
                answer.drop_foreign_soa(&delegation.zone);
                if self.keeps_servers {
                    answer.keep_for(ends_at.0.saturating_sub(now.seconds().0).max(TTL_WITH_SERVERS_MIN));
                }
                if let Some(root) = held.root {
                    self.memory.keep_referral(root, DsState::Unknown, Now(u32::MAX), now.seconds());
                }
                let has_route = self.routes.has(question.name.as_name());
                let tasks = tasks.iter().filter_map(|&task| self.task(task));
                let renewal =
                    tasks.map(|task| task.renewal_of(&question, has_route)).max().unwrap_or_default();
                if let Some(ttl) = answer.ns_ttl {
                    let now = now.seconds();
                    self.memory.shorten_cut(delegation.zone.as_name(), Now(now.0.saturating_add(ttl)), now);
                }
                // What is for one subnet is kept by itself, servers included.
                let is_for_all = question.subnet.is_none() && answer.scope.unwrap_or(0) == 0;
                if is_for_all && !answer.beside.is_empty() {
                    self.memory.age_beside(&mut answer.beside, question.unchecked, now.seconds());
                }
                if is_for_all && !self.settings.minimal_responses && answer.beside.servers.is_empty() {
                    self.note_nothing_beside((delegation.zone.as_name(), &question), &answer, now);
                }
                let how = Keep { unchecked: question.unchecked, renewal };
                self.keep_answer(key, (&answer, held.server), (question.rtype, how), now);
                self.end_fetch(key, &FetchEnd::Answer(&answer));
            }
            Reading::Referral(mut referral) => {
                self.keep_ranges(&referral.proofs, None, now);
                if let Some(ds) = referral.ds.as_ref().filter(|ds| ds.security == Security::Secure) {
                    self.memory.keep_ds(ds, now.seconds());
                }
                if self.keeps_servers {
                    referral.ttl = referral.ttl.max(TTL_WITH_SERVERS_MIN);
                }
                let below = self.memory.keep_referral(referral, ds, ends_at, now.seconds());
                self.end_fetch(key, &FetchEnd::Referral(Arc::new(below)));
            }
            Reading::Doubtful(..) | Reading::Fault(_) => {}
        }
    }

    /// Keeps what proofs that were found good say of other names.
    fn keep_ranges(&self, proofs: &[Set], soa: Option<&Set>, now: Moment) {
        if self.settings.aggressive_nsec && self.validates() {
            let present = self.chains.unix_seconds(now) as u32;
            let unix_now = self.settings.trust.time.or(present);
            self.memory.keep_ranges(proofs, soa, now.seconds(), unix_now);
        }
    }
}
