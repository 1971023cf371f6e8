//! Questions: from the closest zone that is known down to the answer, and along aliases.

use std::sync::Arc;

use cache::rrsets::Renewal;
use cache::{Now, Security};
use dnssec::anchors::Sentinel;
use dnssec::{Dnskey, Ds};
use wire::{EdeCode, Name, Rcode, Rtype};

use super::fetches::FetchEnd;
use super::{Node, Resolver, TaskKey, WaitsAt};
use crate::budget::{Budget, Limit};
use crate::delegation::{Delegation, DsState, NameServer};
use crate::effect::{Effect, Waiter};
use crate::failure::{Failure, Reason};
use crate::failures::Memory;
use crate::few::Few;
use crate::heap_name::{HeapName, HeapQuestion};
use crate::minimise::next_labels;
use crate::moment::Moment;
use crate::prove::{Below, below};
use crate::resolution::{Resolution, Rows, lower};
use crate::routes::RouteKey;
use crate::scrub::{Answer, Beside, Set, Verdict};
use crate::settings::{Minimisation, TrustAnchor};
use crate::tables::{Denied, Known};
use crate::trace::Trace;

/// Microseconds between two questions to the servers of the root or of a stub zone which ones there
/// are, if these lead to nothing.
const PRIMING_US: u64 = 5_000_000;

/// Microseconds that a delegation must still last for an answer to be renewed by it.
const RENEWAL_LEEWAY_US: u64 = 60_000_000;

/// A question that has no answer yet.
pub(super) struct Task {
    pub(super) question: HeapQuestion,
    pub(super) waiters: Few<Waiter>,
    /// Tasks whose names are aliases for this one, and fetches that need it as an address.
    pub(super) parents: Vec<Node>,
    /// Of the clients that wait for it themselves.
    pub(super) budget: Option<Budget>,
    /// Look-ups of name servers' addresses that this one is within.
    pub(super) depth: u8,
    /// Whether servers are asked for what the tables know.
    renews: bool,
    /// Whose servers are asked; `None` before the tables were looked at.
    delegation: Option<Arc<Delegation>>,
    /// The route that has failed last: only those behind it count.
    pub(super) failed_route: Option<RouteKey>,
    /// Whether a zone of ours may have the answer: not any more if it could not say.
    may_be_own: bool,
    /// Whether the second-level cache may have the answer: not any more once it was asked.
    may_be_second_level: bool,
    /// Whether servers answered the whole question, and others may have that, too.
    is_fresh: bool,
    /// Labels of the name that servers of the zone have said something about.
    shown: usize,
    /// Questions that hid a part of the name.
    hiding: u8,
    shows_all: bool,
    /// Aliases that lead away from the name, and what the name at their end has.
    rows: Rows,
    /// The worst of what is in the rows.
    security: Security,
    insecure_because: Option<EdeCode>,
    /// For how many bits of the client's subnet the rows are, if a server looked at that.
    pub(super) scope: Option<u8>,
    /// For a question of type DS.
    below: Option<Below>,
    pub(super) awaits: Option<Node>,
    /// Whether it finds out if servers that failed are back: other failures are not asked then.
    pub(super) is_trial: bool,
    /// What became of the name that this one is an alias for.
    target: Option<Arc<Resolution>>,
    /// What stands beside the answer, behind all that belongs to it.
    pub(super) beside: Option<Box<Beside>>,
    /// For a client that wants to know.
    pub(super) trace: Option<Box<Trace>>,
}

impl Task {
    /// Has the question asked of the servers of this zone, whatever the tables know.
    pub(super) fn begin_at(&mut self, delegation: Arc<Delegation>) {
        if self.awaits.is_none() && self.delegation.is_none() {
            self.delegation = Some(delegation);
        }
    }

    /// Has servers asked for what the tables know, if nothing was done yet.
    pub(super) const fn renew(&mut self) {
        self.renews = self.awaits.is_none() && self.delegation.is_none();
    }

    pub(super) const fn may_be_second_level(&self) -> bool {
        self.may_be_second_level
    }

    /// Returns whose servers are asked.
    pub(super) fn delegation(&self) -> Option<&Delegation> {
        self.delegation.as_deref()
    }

    /// Returns whether servers answered the whole question, and others may have that, too.
    pub(super) const fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    pub(super) const fn set_fresh(&mut self, is_fresh: bool) {
        self.is_fresh = is_fresh;
    }

    /// Has the second-level cache left alone.
    pub(super) const fn skip_second_level(&mut self) {
        self.may_be_second_level = false;
    }

    /// Returns what the answer to a question is for the tables.
    pub(super) fn renewal_of(&self, question: &HeapQuestion, has_route: bool) -> Renewal {
        let has_parent = !has_route && !question.name.as_name().is_root();
        match self.renews && self.question.is_like(question) {
            // The way to an answer began with the parent.
            true if question.rtype == Rtype::NS && has_parent => Renewal::Delegated,
            true => Renewal::Prefetched,
            false => Renewal::No,
        }
    }

    /// Adds what belongs to the answer section, and the proofs of expansions to the other.
    fn add_answer(&mut self, sets: &[Set], proofs: &[Set]) {
        for set in sets {
            self.rows.answer(set);
            self.security = lower(self.security, set.security);
        }
        let unchecked = self.question.unchecked;
        proofs.iter().filter(|set| is_shown(set, unchecked)).for_each(|set| self.rows.authority(set));
    }

    /// Adds what the client may ask for next.
    pub(super) fn add_additional(&mut self, sets: &[Set]) {
        sets.iter().for_each(|set| self.rows.additional(set));
    }

    /// Adds what says that there is no name or no data.
    fn add_denial(&mut self, soa: Option<&Set>, proofs: &[Set], security: Security) {
        let unchecked = self.question.unchecked;
        let good = proofs.iter().filter(|set| is_shown(set, unchecked));
        soa.into_iter().chain(good).for_each(|set| self.rows.authority(set));
        self.security = lower(self.security, security);
    }

    /// Returns the aliases that lead away from the name, as far as they are known.
    pub(super) const fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Returns the worst of what is in the rows.
    pub(super) const fn security(&self) -> Security {
        self.security
    }

    /// Returns whether anybody wants what the name is an alias for. Who looks for a name server's
    /// address does not: it has no alias (RFC 2181 §10.3).
    pub(super) fn follows_aliases(&self) -> bool {
        !self.waiters.is_empty() || self.parents.iter().any(|parent| matches!(parent, Node::Task(_)))
    }
}

impl Resolver {
    /// Has a client wait for a question.
    pub(super) fn want_for_client(&mut self, question: HeapQuestion, waiter: Waiter, now: Moment) {
        let key = self.task_for(question, 0);
        let limits = self.settings.limits;
        if let Some(task) = self.task_mut(key) {
            let place = task.waiters.len() as u32;
            task.waiters.push(waiter);
            task.depth = 0;
            task.budget.get_or_insert_with(|| Budget::new(&limits, now));
            self.enter_waiter(waiter, WaitsAt { task: key, place });
        }
    }

    /// Has what happens for a client's question written down.
    pub(super) fn trace_for(&mut self, waiter: Waiter, now: Moment) {
        let key = self.waiter(waiter);
        let Self { tasks, traces, .. } = self;
        if let Some(task) = key.and_then(|key| tasks.get_mut(key.0 as usize))
            && task.trace.is_none()
        {
            task.trace = Some(Box::new(Trace::new(now)));
            *traces += 1;
        }
    }

    /// Has a question answered that nobody waits for.
    pub(super) fn want_for_tables(&mut self, question: HeapQuestion, now: Moment) {
        let key = self.task_for(question, 0);
        let limits = self.settings.limits;
        if let Some(task) = self.task_mut(key) {
            task.budget.get_or_insert_with(|| Budget::new(&limits, now));
        }
    }

    /// Returns the task for a question, which is begun if there is none.
    pub(super) fn task_for(&mut self, question: HeapQuestion, depth: u8) -> TaskKey {
        let hash_key = self.hash_key();
        let Self { tasks, by_question, .. } = self;
        let hash = question.hash(&hash_key);
        let is_equal =
            |key: &TaskKey| tasks.get(key.0 as usize).is_some_and(|task| task.question == question);
        if let Some(&key) = by_question.find(hash, is_equal) {
            return key;
        }
        let key = TaskKey(tasks.insert(Task {
            question,
            waiters: Few::default(),
            parents: Vec::new(),
            budget: None,
            depth,
            renews: false,
            delegation: None,
            failed_route: None,
            may_be_own: true,
            may_be_second_level: true,
            is_fresh: false,
            shown: 0,
            hiding: 0,
            shows_all: false,
            rows: Rows::default(),
            security: Security::Secure,
            insecure_because: None,
            scope: None,
            below: None,
            awaits: None,
            is_trial: false,
            target: None,
            beside: None,
            trace: None,
        }) as u32);
        let hash_of =
            |key: &TaskKey| tasks.get(key.0 as usize).map_or(0, |task| task.question.hash(&hash_key));
        by_question.insert_unique(hash, key, hash_of);
        self.ready.push_back(Node::Task(key));
        key
    }

    /// Lets a task go on that waits for nothing.
    pub(super) fn step_task(&mut self, key: TaskKey, now: Moment) {
        let Some(task) = self.task_mut(key) else { return };
        if let Some(target) = task.target.take() {
            return self.target_ended(key, &target);
        }
        if task.awaits.is_some() {
            return;
        }
        let question = task.question.clone();
        if let Some(delegation) = task.delegation.clone() {
            self.ask_zone(key, &question, &delegation, now);
            return;
        }
        if let Some(own) = self.own_of(key, &question, now) {
            let own = Arc::new(own);
            if let Some(task) = self.task_mut(key) {
                task.delegation = Some(Arc::clone(&own));
            }
            return self.join_fetch(key, &own, question);
        }
        let is_trial = self.task(key).is_some_and(|task| task.is_trial);
        match self.memory.tables.failures.look(&question, is_trial, now) {
            Memory::Nothing => {}
            Memory::Trial => {
                if let Some(task) = self.task_mut(key) {
                    task.is_trial = true;
                }
            }
            Memory::Failed(failure) => {
                self.counts.remembered += 1;
                return self.end(key, Resolution::failed(failure));
            }
        }
        let is_renewed = self.task(key).is_some_and(|task| task.renews);
        let renews = is_renewed || self.is_tailored(&question);
        let known = if renews { None } else { self.memory.look(&question, now.seconds()) };
        let known = known.filter(|known| self.suffices(key, known));
        match known.filter(|known| self.settings.minimal_responses || self.take_beside(key, known, now)) {
            Some(Known::Data(set)) => {
                self.add_addresses(key, &set, now);
                self.end_with_set(key, set, question.unchecked, now);
            }
            Some(Known::NoData(denied)) => self.end_with_known(key, Rcode::NOERROR, &denied),
            Some(Known::NoName(denied)) => self.end_with_known(key, Rcode::NXDOMAIN, &denied),
            Some(Known::Alias(cname)) => match target_of(&cname) {
                Some(target) => self.follow_alias(key, cname, target, question.unchecked, now),
                None => self.fail(key, Failure::without_zone(Reason::Faulty)),
            },
            None => {
                let failed_route = self.task(key).and_then(|task| task.failed_route);
                let delegation = match question.rtype {
                    // Which servers a zone has is its parent's to say, who may know of others; of a
                    // zone with a route the parent need not know.
                    Rtype::NS
                        if is_renewed
                            && !question.name.as_name().is_root()
                            && !self.routes.has(question.name.as_name()) =>
                    {
                        let above = HeapQuestion { rtype: Rtype::DS, ..question.clone() };
                        self.closest(&above, failed_route, (now, is_renewed))
                    }
                    _ => self.closest(&question, failed_route, (now, is_renewed)),
                };
                let floor = delegation.zone.as_name().label_count();
                if !renews
                    && (self.derive(key, &question, floor, now)
                        || self.asks_second_level(key, &question, &delegation))
                {
                    return;
                }
                if let Some(task) = self.task_mut(key) {
                    task.delegation = Some(Arc::clone(&delegation));
                }
                self.ask_zone(key, &question, &delegation, now);
            }
        }
    }

    /// Returns the zone of ours that a task's question falls into, if that can have the answer.
    fn own_of(&mut self, key: TaskKey, question: &HeapQuestion, now: Moment) -> Option<Delegation> {
        let task = self.task(key).filter(|task| task.may_be_own)?;
        let failed_route = task.failed_route;
        self.own_zone(question, failed_route, now)
    }

    /// Returns whether what the tables know is enough: a client that sets CD validates by itself,
    /// and needs the proof that an answer may be made from a wildcard, which is not kept with it.
    fn suffices(&self, key: TaskKey, known: &Known) -> bool {
        match (known, self.task(key)) {
            (Known::Data(set) | Known::Alias(set), Some(task)) => {
                !task.question.unchecked || task.waiters.is_empty() || !set.claims_expansion()
            }
            _ => true,
        }
    }

    /// Returns the closest zone whose servers can be asked; for an answer that is renewed, one of
    /// which that is known for longer.
    fn closest(
        &mut self,
        question: &HeapQuestion,
        failed_route: Option<RouteKey>,
        (now, renews): (Moment, bool),
    ) -> Arc<Delegation> {
        let place = question.place();
        let until = if renews { now.after_us(RENEWAL_LEEWAY_US) } else { now };
        let cut = self.memory.delegation(place, until.seconds());
        let key = self.routes.closest(place, failed_route);
        let Some((key, delegation)) = key.and_then(|key| Some((key, self.routes.delegation(key)?))) else {
            return cut.unwrap_or_else(|| Arc::new(self.root(now)));
        };
        // Forwarders refer to nobody.
        if self.routes.forwarders(&delegation).is_some() {
            return delegation;
        }
        // What is known below the zone was found by this route.
        let primes = self.routes.stub(&delegation).is_some_and(|stub| stub.primes);
        let labels = delegation.zone.as_name().label_count() + usize::from(!primes);
        if let Some(cut) = cut.filter(|cut| cut.zone.as_name().label_count() >= labels) {
            return cut;
        }
        if self.routes.primes_now(key, PRIMING_US, now) {
            self.prime(delegation.zone.clone(), now);
        }
        delegation
    }

    /// Has the servers of a zone asked for as much of the question as they need to see.
    fn ask_zone(&mut self, key: TaskKey, question: &HeapQuestion, delegation: &Arc<Delegation>, now: Moment) {
        let name = question.name.as_name();
        let labels = name.label_count();
        // Forwarders have to find all of it, and nothing is hidden from ourselves.
        if self.routes.forwarders(delegation).is_some() || self.routes.is_own(delegation) {
            return self.join_fetch(key, delegation, question.clone());
        }
        // Ends: each round shows more labels, or all.
        loop {
            let Self { tasks, settings, memory, .. } = self;
            let Some(task) = tasks.get_mut(key.0 as usize) else { return };
            let shown = task.shown.max(delegation.zone.as_name().label_count());
            let minimises = settings.minimisation != Minimisation::Off && !task.shows_all;
            let next = match minimises {
                false => labels,
                true => next_labels(labels, shown, task.hiding, settings.minimised_max),
            };
            let hides_type = settings.hides_type
                && minimises
                && shown < labels
                && task.hiding < settings.minimised_max
                && !matches!(question.rtype, Rtype::A | Rtype::DS);
            if next >= labels && !hides_type {
                return self.join_fetch(key, delegation, question.clone());
            }
            // RFC 9156 §2.1: a type that servers know how to answer for any name.
            let hidden = HeapQuestion {
                name: HeapName::new(name.suffix(next)),
                rtype: Rtype::A,
                unchecked: question.unchecked,
                subnet: None,
            };
            match memory.look(&hidden, now.seconds()) {
                Some(Known::NoName(denied)) if settings.minimisation == Minimisation::Strict => {
                    return self.end_with_known(key, Rcode::NXDOMAIN, &denied);
                }
                Some(Known::NoName(_)) => task.shows_all = true,
                Some(_) => task.shown = next,
                None => {
                    task.hiding += 1;
                    return self.join_fetch(key, delegation, hidden);
                }
            }
        }
    }

    /// A fetch that a task waited for has ended.
    pub(super) fn fetch_ended(&mut self, key: TaskKey, asked: &HeapQuestion, end: &FetchEnd<'_>) {
        let is_relaxed = self.settings.minimisation == Minimisation::Relaxed;
        let Some(task) = self.task_mut(key) else { return };
        task.awaits = None;
        let is_whole = task.question.is_like(asked);
        match end {
            FetchEnd::Referral(delegation) => task.delegation = Some(Arc::clone(delegation)),
            FetchEnd::Known => task.delegation = None,
            FetchEnd::Answer(answer) if is_whole => {
                self.note_fresh(key);
                return self.take_answer(key, answer);
            }
            FetchEnd::Answer(answer) if answer.verdict == Verdict::NoName => {
                // RFC 9156 §3: servers that say so of names which only have others below them.
                if !is_relaxed {
                    return self.take_denial(key, answer);
                }
                task.shows_all = true;
            }
            FetchEnd::Answer(answer) => {
                task.shown = asked.name.as_name().label_count();
                task.shows_all |= answer.has_dname;
            }
            FetchEnd::Failed(failure) => {
                if self.leave_route(key, is_whole, failure) {
                    return;
                }
                let Some(task) = self.task_mut(key) else { return };
                let is_refusal = matches!(failure.reason, Reason::Lame | Reason::Faulty | Reason::Bogus(_));
                if is_whole || !is_relaxed || !is_refusal {
                    return self.fail(key, failure.clone());
                }
                task.shows_all = true;
            }
        }
        self.ready.push_back(Node::Task(key));
    }

    /// Goes on with the next route, or from the root down, if the servers of a task's route have
    /// failed and may; returns whether it does.
    fn leave_route(&mut self, key: TaskKey, is_whole: bool, failure: &Failure) -> bool {
        let Self { tasks, routes, ready, .. } = self;
        let Some(task) = tasks.get_mut(key.0 as usize) else { return false };
        let route = task.delegation.as_ref().and_then(|delegation| delegation.route);
        if route == Some(RouteKey::SECOND_LEVEL) {
            task.delegation = None;
            ready.push_back(Node::Task(key));
            return true;
        }
        if route == Some(RouteKey::OWN) && !matches!(failure.reason, Reason::Bogus(_) | Reason::Limit(_)) {
            // Its other servers may have what it has not.
            (task.may_be_own, task.delegation) = (false, None);
            ready.push_back(Node::Task(key));
            return true;
        }
        let Some(route) = route.filter(|&key| routes.get(key).is_some_and(|route| route.first)) else {
            return false;
        };
        let is_failure = match failure.reason {
            Reason::Silent | Reason::NoAddress | Reason::Circle | Reason::NotLoaded => true,
            // Servers that do not like a part of the name may have the whole.
            Reason::Lame | Reason::Faulty => is_whole,
            Reason::AliasLoop
            | Reason::Limit(_)
            | Reason::Unsupported
            | Reason::Bogus(_)
            | Reason::Sentinel
            | Reason::Stopped => false,
        };
        if is_failure {
            task.failed_route = Some(route);
            (task.delegation, task.shown, task.shows_all) = (None, 0, false);
            ready.push_back(Node::Task(key));
        }
        is_failure
    }

    fn take_answer(&mut self, key: TaskKey, answer: &Answer) {
        if let Some(task) = self.task_mut(key) {
            task.insecure_because = answer.insecure_because;
            task.scope = task.scope.max(answer.scope);
            task.beside = (!answer.beside.is_empty()).then(|| Box::new(answer.beside.clone()));
        }
        match &answer.verdict {
            Verdict::Data => {
                self.end_with_data(key, Rcode::NOERROR, &answer.sets, &answer.proofs);
            }
            Verdict::TooLong => self.end_with_data(key, Rcode::YXDOMAIN, &answer.sets, &answer.proofs),
            Verdict::NoData | Verdict::NoName => self.take_denial(key, answer),
            Verdict::Alias(target) => {
                // What the reply says about the target is in the tables, if it may be.
                let alias = answer.sets.iter().position(|set| set.rtype == Rtype::CNAME);
                let own = alias.and_then(|at| answer.sets.get(..=at)).unwrap_or(&[]);
                let proofs = if answer.denial.is_none() { &*answer.proofs } else { &[] };
                self.follow(key, own, proofs, target.clone());
            }
        }
    }

    fn take_denial(&mut self, key: TaskKey, answer: &Answer) {
        let rcode = if answer.verdict == Verdict::NoName { Rcode::NXDOMAIN } else { Rcode::NOERROR };
        let Some(denial) = &answer.denial else { return };
        self.end_with_denial(key, rcode, denial.soa.as_ref(), &answer.proofs, denial.security);
    }

    pub(super) fn end_with_known(&mut self, key: TaskKey, rcode: Rcode, denied: &Denied) {
        self.end_with_denial(key, rcode, Some(&denied.soa), &denied.proofs, denied.security);
    }

    fn end_with_denial(
        &mut self,
        key: TaskKey,
        rcode: Rcode,
        soa: Option<&Set>,
        proofs: &[Set],
        security: Security,
    ) {
        self.note_below(key, security, None, proofs);
        if let Some(task) = self.task_mut(key) {
            task.add_denial(soa, proofs, security);
        }
        self.end_with_rows(key, rcode);
    }

    pub(super) fn end_with_data(&mut self, key: TaskKey, rcode: Rcode, sets: &[Set], proofs: &[Set]) {
        if let Some(set) = sets.first() {
            self.note_below(key, set.security, Some(set), &[]);
        }
        if let Some(task) = self.task_mut(key) {
            task.add_answer(sets, proofs);
            // AD would say that the response code is proved, too.
            if rcode == Rcode::YXDOMAIN {
                task.security = lower(task.security, Security::Indeterminate);
            }
        }
        if let Some(set) = sets.first() {
            self.add_services(key, set, self.ran_at);
        }
        self.end_with_rows(key, rcode);
    }

    /// Ends a task with what is in its rows.
    fn end_with_rows(&mut self, key: TaskKey, rcode: Rcode) {
        let Some(task) = self.task_mut(key) else { return };
        let (mut rows, security) = (std::mem::take(&mut task.rows), task.security);
        if let Some(beside) = task.beside.take() {
            rows.beside(&beside);
        }
        self.end(key, Resolution::new(rcode, rows, security));
    }

    /// Notes what an answer to a question of type DS says of the zone of that name.
    fn note_below(&mut self, key: TaskKey, security: Security, data: Option<&Set>, proofs: &[Set]) {
        let Self { tasks, settings, .. } = self;
        if let Some(task) = tasks.get_mut(key.0 as usize)
            && task.question.rtype == Rtype::DS
        {
            task.below = below(&task.question.name, security, data, proofs, &settings.trust);
        }
    }

    /// Goes on with the name that a task's is an alias for.
    pub(super) fn follow(&mut self, key: TaskKey, aliases: &[Set], proofs: &[Set], target: HeapName) {
        if let Some(alias) = aliases.first() {
            self.note_below(key, alias.security, Some(alias), &[]);
        }
        let Some(task) = self.task_mut(key) else { return };
        task.add_answer(aliases, proofs);
        if !task.follows_aliases() {
            return self.end_with_rows(key, Rcode::NOERROR);
        }
        if self.is_stopped_by_name(key, &target) {
            return self.fail(key, Failure::without_zone(Reason::Stopped));
        }
        let Some(task) = self.task_mut(key) else { return };
        let subnet = task.question.subnet;
        let subnet = subnet.filter(|_| self.may_tell(target.as_name()));
        let Some(task) = self.task_mut(key) else { return };
        let question = HeapQuestion { name: target, subnet, ..task.question.clone() };
        let (depth, is_trial, renews) = (task.depth, task.is_trial, task.renews);
        if let Err(limit) = self.pay_for_task(key, Budget::follow_alias) {
            return self.fail(key, Failure::without_zone(Reason::Limit(limit)));
        }
        let child = self.task_for(question, depth);
        if self.waits_for(Node::Task(child), Node::Task(key)) {
            return self.fail(key, Failure::without_zone(Reason::AliasLoop));
        }
        if let Some(child) = self.task_mut(child) {
            child.parents.push(Node::Task(key));
            child.depth = child.depth.min(depth);
            child.is_trial |= is_trial;
            if renews {
                child.renew();
            }
        }
        if let Some(task) = self.task_mut(key) {
            task.awaits = Some(Node::Task(child));
        }
    }

    /// Ends a task without an answer.
    pub(super) fn fail(&mut self, key: TaskKey, failure: Failure) {
        self.report(key, &failure, self.ran_at);
        let Self { tasks, memory, settings, ran_at, .. } = self;
        if let Some(task) = tasks.get(key.0 as usize) {
            let is_remembered = match failure.reason {
                Reason::Silent | Reason::Lame | Reason::Faulty | Reason::NoAddress | Reason::Bogus(_) => true,
                // What others want of the zone says nothing about the question.
                Reason::Limit(Limit::ZoneRate) => false,
                // Another question may have paid for it, or come from another side.
                Reason::Limit(_) | Reason::Circle | Reason::AliasLoop => task.budget.is_some(),
                // The zone may come at any time.
                Reason::NotLoaded | Reason::Unsupported | Reason::Sentinel | Reason::Stopped => false,
            };
            if is_remembered {
                let seconds_max = match failure.reason {
                    Reason::Bogus(_) => settings.bogus_seconds_max,
                    _ => settings.failure_seconds_max,
                };
                let failures = &memory.tables.failures;
                failures.note(&task.question, &failure, seconds_max, task.is_trial, *ran_at);
            }
        }
        self.end(key, Resolution::failed(failure));
    }

    /// Ends a task, and tells all who wait for it.
    fn end(&mut self, key: TaskKey, mut resolution: Resolution) {
        let Some(mut task) = self.tasks.try_remove(key.0 as usize) else { return };
        let hash = task.question.hash(&self.hash_key());
        if let Ok(entry) = self.by_question.find_entry(hash, |other| *other == key) {
            entry.remove();
        }
        if resolution.failure.is_none() {
            self.memory.tables.failures.answered(&task.question);
        }
        let refusal = self.refusal_of_sentinel(&task, &resolution);
        resolution.below = task.below.take();
        resolution.scope = resolution.scope.max(task.scope);
        resolution.insecure_because = resolution.insecure_because.or(task.insecure_because);
        if let Some(trace) = task.trace.take() {
            resolution.trace = trace.lines;
            self.traces -= 1;
        }
        self.limit_bogus(&task, &mut resolution);
        let resolution = Arc::new(resolution);
        self.store(&task, &resolution);
        // Only clients hear it: what a name is an alias for has another name.
        let told = match refusal {
            Some(mut refusal) => {
                refusal.trace.clone_from(&resolution.trace);
                Arc::new(refusal)
            }
            None => Arc::clone(&resolution),
        };
        let mut referral = None;
        for waiter in task.waiters {
            self.take_waiter(waiter);
            let refers = !self.referrals.is_empty() && self.referrals.remove(&waiter);
            let resolution = match &referral {
                _ if !refers => Arc::clone(&told),
                Some(known) => Arc::clone(known),
                None => {
                    let made = self.referral_to(&task.question.name, &told);
                    referral = Some(Arc::clone(&made));
                    made
                }
            };
            self.effects.push_back(Effect::Done { waiter, resolution });
        }
        for parent in task.parents {
            match parent {
                Node::Task(alias) => {
                    if let Some(alias) = self.task_mut(alias) {
                        alias.target = Some(Arc::clone(&resolution));
                    }
                    self.ready.push_back(parent);
                }
                Node::Fetch(parent) => self.lookup_ended(parent, key, &task.question, &resolution),
            }
        }
    }

    /// Has bogus data that clients get all the same kept for no longer than the failure would be.
    /// Who sets CD gets what nobody has checked: it is bogus if the question was found to be so for
    /// others.
    fn limit_bogus(&self, task: &Task, resolution: &mut Resolution) {
        if task.waiters.is_empty() || resolution.failure.is_some() || !self.validates() {
            return;
        }
        if task.question.unchecked {
            let checked = HeapQuestion { unchecked: false, ..task.question.clone() };
            // Failures of other kinds are for the servers to tell about.
            let known = self.memory.tables.failures.look(&checked, true, self.ran_at);
            if matches!(known, Memory::Failed(Failure { reason: Reason::Bogus(_), .. })) {
                resolution.security = Security::Bogus;
            }
        }
        if resolution.security == Security::Bogus {
            resolution.keep_for(self.settings.bogus_seconds_max);
        }
    }

    /// Returns what clients get in place of a secure answer, if their question is whether a key of
    /// the root is trusted and the answer is no (RFC 8509 §3.1).
    fn refusal_of_sentinel(&self, task: &Task, resolution: &Resolution) -> Option<Resolution> {
        let HeapQuestion { name, rtype, unchecked, .. } = &task.question;
        let trust = &self.settings.trust;
        let is_asked = trust.root_key_sentinel && !unchecked && matches!(*rtype, Rtype::A | Rtype::AAAA);
        if !is_asked || task.waiters.is_empty() || resolution.security != Security::Secure {
            return None;
        }
        let sentinel = Sentinel::parse(name.as_name())?;
        let tags = trust.anchors.iter().filter(|anchor| anchor.zone.as_name().is_root()).flat_map(tags_of);
        let stands = sentinel.stands(&tags.collect::<Vec<_>>());
        (!stands).then(|| Resolution::failed(Failure::without_zone(Reason::Sentinel)))
    }

    /// The task of the name that another one is an alias for has ended.
    fn target_ended(&mut self, key: TaskKey, target: &Resolution) {
        let aliases_max = self.settings.limits.aliases;
        let Some(task) = self.task_mut(key) else { return };
        let (rows, security, beside) = (std::mem::take(&mut task.rows), task.security, task.beside.take());
        if let Some(failure) = &target.failure {
            // It was reported by its own name.
            return self.fail(key, Failure { agent: None, ..failure.clone() });
        }
        if target.aliases >= aliases_max {
            // Others have paid for some of them.
            return self.fail(key, Failure::without_zone(Reason::Limit(Limit::Aliases)));
        }
        self.end(key, Resolution::of_alias(rows, security, target, beside.as_deref()));
    }

    /// Returns the root with the servers that are known by configuration, and asks these which
    /// there are (RFC 9609 §3).
    fn root(&mut self, now: Moment) -> Delegation {
        let Self { settings, primed_at, .. } = self;
        let is_due = primed_at.is_none_or(|at| now.since_us(at) >= PRIMING_US);
        if settings.priming && is_due {
            *primed_at = Some(now);
            self.prime(HeapName::new(Name::ROOT), now);
        }
        let policy = &self.settings.addresses;
        let servers = self.settings.hints.iter().map(|hint| NameServer {
            name: hint.name.clone(),
            glue: hint.addresses.iter().copied().filter(|&address| policy.admits(address)).collect(),
        });
        Delegation::new(HeapName::new(Name::ROOT), servers.collect(), Now(u32::MAX), DsState::Unknown)
    }

    /// Asks the servers of a zone that settings name which ones the zone has.
    fn prime(&mut self, zone: HeapName, now: Moment) {
        let question = HeapQuestion { name: zone, rtype: Rtype::NS, unchecked: false, subnet: None };
        self.want_for_tables(question, now);
    }
}

/// Returns whether a client sees a proof; one that sets CD sees all.
const fn is_shown(proof: &Set, unchecked: bool) -> bool {
    unchecked || !matches!(proof.security, Security::Unchecked | Security::Bogus)
}

/// Returns the tags of the keys that an anchor stands for.
fn tags_of(anchor: &TrustAnchor) -> impl Iterator<Item = u16> {
    let ds = anchor.ds.iter().filter_map(|ds| Ds::parse(ds)).map(|ds| ds.tag);
    ds.chain(anchor.keys.iter().filter_map(|key| Dnskey::parse(key)).map(Dnskey::tag))
}

/// Returns what a CNAME RRset leads to.
fn target_of(cname: &Set) -> Option<HeapName> {
    let data = cname.records.first()?;
    Name::parse(data).ok().map(|(name, _)| HeapName::new(name))
}
