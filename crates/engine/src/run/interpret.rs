//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The interpreter: takes a query through its program until there is an answer or something to wait
//! for.

use wire::{EdeCode, Flags, Header, Rcode, Rtype};
use zone::Zones;

use super::buffers::Workspace;
use super::context::Context;
use super::proof::Missed;
use super::state::{After, End, Run};
use super::want::Want;
use crate::answer::local::{LocalAnswer, LocalData};
use crate::answer::put::{put, put_local_soa};
use crate::answer::{Answer, SubnetScope};
use crate::matchers::Matcher;
use crate::observe::trace::{StepOutcome, Tracer};
use crate::ops;
use crate::ops::answer::{Build, Built, Making};
use crate::ops::cache::{Asked, CacheStep, Early, Fill, Found, Outlook};
use crate::ops::edit::Edit;
use crate::ops::forward::ForwardStep;
use crate::ops::quickest::Quickest;
use crate::ops::recurse::RecurseStep;
use crate::ops::ttl::TtlRule;
use crate::ops::zone::{Given, Unloaded, ZoneStep};
use crate::program::Op;
use crate::program::shortlist::Seek;
use crate::query::request::{Environment, Request};
use clients::client::Transport;
use edit::Draft;
use events::EventSink;

impl Run<'_> {
    /// Takes steps until the end; the answer's octets are written to `work.message` after the
    /// question's place.
    #[inline(always)]
    pub(crate) fn interpret<T: Tracer + ?Sized>(
        &mut self,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> End {
        self.walk::<T, false>(context, work, tracer)
    }

    /// Takes steps as [`Run::interpret`] does; with `OUTSIDE`, for a client that is not on the
    /// access list: only zones answer it, and what would be answered by anything else ends with
    /// [`End::Nothing`].
    pub(crate) fn walk<T: Tracer + ?Sized, const OUTSIDE: bool>(
        &mut self,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> End {
        let Context { snapshot, env, .. } = context;
        let ops = snapshot.program.ops();
        // Ends: skips lead forward and calls are acyclic; `Program::new` saw to that.
        loop {
            let step = self.at.advance();
            let Some(op) = ops.get(step) else { break };
            let step = step as u16;
            match op {
                // What others asked for is not told to strangers, and nobody is asked or waited for
                // on their behalf.
                Op::Cache(_) | Op::Split(_) | Op::Sleep(_) if OUTSIDE => {}
                Op::Forward(_) | Op::Recurse(_) | Op::Reject(..) if OUTSIDE => return unknown(step, tracer),
                Op::SkipUnless(matcher, steps) => {
                    if !self.test(step, matcher, context, work, tracer) {
                        self.at.skip(*steps);
                    }
                    continue;
                }
                Op::SkipIf(matcher, steps) => {
                    if self.test(step, matcher, context, work, tracer) {
                        self.at.skip(*steps);
                    }
                    continue;
                }
                Op::Seek(seek) => {
                    self.seek(step, *seek, context, work, tracer);
                    continue;
                }
                Op::Skip(steps) => self.at.skip(*steps),
                Op::Call(target) => self.at.call(*target),
                Op::Goto(target) => self.at.jump(*target),
                Op::Return if self.at.pop() => {}
                Op::Return | Op::Accept => {
                    tracer.step(step, StepOutcome::Ended);
                    break;
                }
                Op::Drop => return told(End::Drop, step, tracer),
                Op::Mark(bit) => self.interim.marks |= 1 << (bit & 63),
                Op::Unmark(bits) => self.interim.marks &= !bits,
                Op::Local(local) => {
                    if let Some(answer) = self.look_up_local(local, work.message) {
                        return told(self.known::<OUTSIDE>(answer, context), step, tracer);
                    }
                }
                Op::Zone(how) => {
                    if let Some(authority) = context.authority
                        && let Some(given) = self.look_up_zones(&authority.zones, *how, context, work)
                    {
                        return told(End::Answer(given.into_answer()), step, tracer);
                    }
                }
                Op::ZoneSet(zones, how) => {
                    if let Some(given) = self.look_up_zones(zones, *how, context, work) {
                        return told(End::Answer(given.into_answer()), step, tracer);
                    }
                }
                Op::Cache(cache) => match self.look_up(step, cache, context, work, tracer) {
                    Some(answer) if cache.continues => {
                        self.go_on_with(answer, work);
                        continue;
                    }
                    Some(answer) => return End::Answer(answer),
                    None => continue,
                },
                Op::Reject(rcode, ede) => return told(reject(*rcode, *ede, context), step, tracer),
                Op::Forward(forward) => return self.forward(step, forward, context, tracer),
                Op::Recurse(recurse) => return self.recurse(step, *recurse, context, tracer),
                Op::Ttl(rule) => self.change_ttls(*rule, work),
                Op::Split(split) => match self.split(step, split, context, work, tracer) {
                    Some(end) => return end,
                    None => continue,
                },
                Op::Sleep(ms) => return told(End::Wait(Want::Sleep(*ms)), step, tracer),
                Op::Quickest(quickest) => self.sort(quickest, env, work),
                Op::Forget => self.interim.answer = None,
                Op::Truncate => self.truncate(),
                Op::Edit(edit) => self.edit(step, edit, env, work),
                Op::Answer(build) => match self.build::<T, OUTSIDE>(step, build, context, work, tracer) {
                    Some(end) => return end,
                    None => continue,
                },
                Op::Outgoing(change) => {
                    let Request { query, client, .. } = self.request;
                    change.apply(&mut self.outgoing, step, query, client, env.trusted_peers);
                }
                Op::Event(event) => event.emit(&mut self.event_set, work.events),
            }
            tracer.step(step, StepOutcome::Done);
        }
        match self.interim.answer {
            Some(answer) => End::Answer(answer),
            None => End::Nothing,
        }
    }

    /// Returns whether a condition holds.
    #[inline]
    fn test<T: Tracer + ?Sized>(
        &self,
        step: u16,
        matcher: &Matcher,
        context: &Context<'_>,
        work: &Workspace<'_>,
        tracer: &mut T,
    ) -> bool {
        let facts = self.facts(&context.env, work.message);
        let holds = matcher.holds(facts);
        tracer.test(step, matcher, facts, holds);
        holds
    }

    /// Goes on at the next rule that may concern the query.
    #[inline(always)]
    fn seek<T: Tracer + ?Sized>(
        &mut self,
        step: u16,
        seek: Seek,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) {
        let shortlists = context.snapshot.program.shortlists();
        let Some(list) = shortlists.get(usize::from(seek.list)) else { return };
        let facts = self.facts(&context.env, work.message);
        let (to, looked) = list.seek(seek, facts, self.looked, &mut work.memo.candidates);
        if to != self.at.next() {
            tracer.skipped(step, (list, seek, to), facts);
            self.at.go_to(to);
        }
        self.looked = looked;
    }

    /// Makes `answer`, whose records stand in the message already, the answer that the next steps
    /// see.
    #[cold]
    pub(crate) fn go_on_with(&mut self, answer: Answer, work: &mut Workspace<'_>) {
        // Names in the records may point to the question.
        put(work.message, Header::LEN, self.request.query.question_bytes());
        work.ttl_count = None;
        self.interim.answer = Some(answer);
    }

    /// Looks in a cache. On a miss, the answer to come will be kept there.
    #[inline(always)]
    fn look_up<T: Tracer + ?Sized>(
        &mut self,
        step: u16,
        cache: &CacheStep,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> Option<Answer> {
        if cache.rules.early != Early::No {
            return self.look_up_early(step, cache, context, work, tracer);
        }
        let Context { counters, env, .. } = context;
        let Request { query, folded, ref sought, .. } = self.request;
        if !cache.rules.answers_without_rd
            && let Some(refusal) = self.recursion_refused()
        {
            tracer.step(step, StepOutcome::Looked(Some(true)));
            return Some(refusal);
        }
        let subnet = self.outgoing.subnet(query, cache.rules.keeps_subnets_apart);
        let bits = self.key_bits();
        let out = work.message.get_mut(self.request.body_at()..).unwrap_or(&mut []);
        let fill = |has_stale| Fill { step, subnet, bits, has_stale };
        let asked = Asked { query, folded, name_hash: sought.hash(), subnet, bits };
        // On behalf of a query without RD nobody is asked: who may ask is left the refresh.
        let may_refresh = || self.recursion_refused().is_none();
        match cache.look_up(&asked, (env.now.cache, context.texts), out, may_refresh) {
            Found::Answer(mut answer, outlook) => {
                answer.subnet_bits = self.outgoing.echoed_bits(query, subnet);
                let is_fresh = matches!(outlook, Outlook::Fresh | Outlook::Prefetch);
                if is_fresh && subnet.is_some() && answer.scope != SubnetScope::EVERY {
                    counters.cache_subnets.bump();
                }
                match outlook {
                    Outlook::Fresh => counters.cache_hits.bump(),
                    Outlook::Prefetch => {
                        counters.cache_hits.bump();
                        self.after = Some(After::Prefetch(self.at, fill(false)));
                    }
                    Outlook::Refresh => {
                        counters.cache_stale.bump();
                        self.after = Some(After::Prefetch(self.at, fill(true)));
                    }
                    Outlook::Stale => counters.cache_stale.bump(),
                    Outlook::Failure => counters.cache_failures.bump(),
                }
                tracer.step(step, StepOutcome::Looked(Some(is_fresh)));
                Some(answer)
            }
            Found::Nothing { has_stale } => {
                counters.cache_misses.bump();
                // What a query without RD gets in the end answers no other.
                if self.recursion_refused().is_none() {
                    self.fill = Some(fill(has_stale));
                }
                tracer.step(step, StepOutcome::Looked(None));
                None
            }
        }
    }

    /// Looks in a cache for an answer that is known to be left alone by the steps after this one.
    /// If there is none, nothing has happened.
    #[inline(never)]
    fn look_up_early<T: Tracer + ?Sized>(
        &mut self,
        step: u16,
        cache: &CacheStep,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> Option<Answer> {
        let Context { counters, env, snapshot, .. } = context;
        let Request { query, client, folded, ref sought, .. } = self.request;
        // The steps would find marks, or an answer, that they would not find in other queries.
        let is_at_start = self.interim.marks == 0
            && self.interim.answer.is_none()
            && !matches!(self.after, Some(After::Prove(_)));
        if !is_at_start || !query.header.flags.has(Flags::RD) || tracer.wants_every_step() {
            return None;
        }
        let told;
        let address = if env.trusted_peers.is_empty() {
            &client.address
        } else {
            told = client.address_of(query, env.trusted_peers);
            &told
        };
        let known = work.memo.known(cache.rules.early, snapshot, address)?;
        let subnet = self.outgoing.subnet(query, cache.rules.keeps_subnets_apart);
        let asked = Asked { query, folded, name_hash: sought.hash(), subnet, bits: self.key_bits() };
        let body_at = self.request.body_at();
        let room = work.direct.as_deref_mut().unwrap_or(work.message).get_mut(body_at..).unwrap_or(&mut []);
        let mut answer = match cache.look_up_stamped(&asked, env.now.cache, room, known) {
            Ok(answer) => answer,
            Err(is_open) => {
                if is_open {
                    self.after = Some(After::Prove(Missed { step, at: self.at, known }));
                }
                return None;
            }
        };
        if let Some(direct) = work.direct.take() {
            work.message = direct;
        }
        answer.subnet_bits = self.outgoing.echoed_bits(query, subnet);
        if subnet.is_some() {
            counters.cache_subnets.bump();
        }
        counters.cache_hits.bump();
        tracer.step(step, StepOutcome::Looked(Some(true)));
        // Nobody works on it after that.
        if context.snapshot.rotates {
            let shape = answer.shape(body_at);
            ops::edit::rotate(
                &mut Draft { message: work.message, spare: work.spare, shape },
                &self.request,
                env,
            );
        }
        Some(answer)
    }

    /// Looks in zones; what they have is not kept in caches.
    #[inline(always)]
    fn look_up_zones(
        &mut self,
        zones: &Zones,
        how: ZoneStep,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
    ) -> Option<Given> {
        let query = self.request.query;
        // RFC 4035 §3.1.4.1: who recurses finds the DS records of a zone in the parent, and need
        // not say that the zone itself has none.
        if query.question.qtype == Rtype::DS
            && query.header.flags.has(Flags::RD)
            && context.snapshot.recursion_available
            && zones.has_parent_elsewhere(query.question.qname)
        {
            return None;
        }
        let given = ops::zone::answer((zones, how), &self.request, &context.env, context, work.message)?;
        if how.unloaded == Unloaded::Passes && given.is_unloaded() {
            return None;
        }
        if how.ra_needs_rd && !query.header.flags.has(Flags::RD) {
            self.after = Some(After::ClearRa);
        }
        context.counters.answers_zone.bump();
        self.fill = None;
        Some(given)
    }

    /// Asks a group of servers.
    #[inline(always)]
    fn forward<T: Tracer + ?Sized>(
        &self,
        step: u16,
        forward: &ForwardStep,
        context: &Context<'_>,
        tracer: &mut T,
    ) -> End {
        if let Some(refusal) = self.recursion_refused() {
            return End::Answer(refusal);
        }
        let sending = self.sending(&context.snapshot.program);
        let want = forward.want(context.env.key, &self.request, sending);
        told(End::Wait(Want::Fetch(want)), step, tracer)
    }

    /// Has a resolver find the answer.
    #[inline(always)]
    fn recurse<T: Tracer + ?Sized>(
        &mut self,
        step: u16,
        recurse: RecurseStep,
        context: &Context<'_>,
        tracer: &mut T,
    ) -> End {
        let refusal = self.recursion_refused();
        if refusal.is_some() && recurse.refers {
            return self.refer(step, recurse, context, tracer);
        }
        if let Some(refusal) = refusal {
            return End::Answer(refusal);
        }
        let stale_after_ms = self.patience_ms(&context.snapshot.program);
        let watch = if self.outgoing.asks_servers_first() {
            None
        } else {
            context.snapshot.program.watch(context.env.key)
        };
        let how = (stale_after_ms, watch);
        let want = recurse.want(context.env.key, &self.request, &self.outgoing, how, false);
        told(End::Wait(Want::Resolve(want)), step, tracer)
    }

    /// Has a resolver say whom to ask, since the client wants no recursion. That answers no other
    /// query.
    #[cold]
    #[inline(never)]
    fn refer<T: Tracer + ?Sized>(
        &mut self,
        step: u16,
        recurse: RecurseStep,
        context: &Context<'_>,
        tracer: &mut T,
    ) -> End {
        self.fill = None;
        let want = recurse.want(context.env.key, &self.request, &self.outgoing, (None, None), true);
        told(End::Wait(Want::Resolve(want)), step, tracer)
    }

    /// Makes an answer, which ends the query or is the one that the next steps see.
    #[inline(always)]
    fn build<T: Tracer + ?Sized, const OUTSIDE: bool>(
        &mut self,
        step: u16,
        build: &Build,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> Option<End> {
        match build.build(step, &self.making(&context.env, work.events), work.message) {
            Built::End(_) | Built::GoOn(_) if OUTSIDE => Some(told(End::Nothing, step, tracer)),
            Built::End(answer) => {
                context.counters.answers_fixed.bump();
                work.ttl_count = None;
                Some(told(End::Answer(answer), step, tracer))
            }
            Built::GoOn(answer) => {
                context.counters.answers_fixed.bump();
                tracer.step(step, StepOutcome::Answered);
                self.go_on_with(answer, work);
                None
            }
            Built::Silence => Some(End::Drop),
            Built::Nothing => {
                tracer.step(step, StepOutcome::Done);
                None
            }
        }
    }

    /// Changes the records of the answer there is.
    #[inline(never)]
    fn edit(&mut self, step: u16, edit: &Edit, env: &Environment<'_>, work: &mut Workspace<'_>) {
        if let Some(answer) = &mut self.interim.answer {
            let shape = answer.shape(self.request.body_at());
            let draft = Draft { message: work.message, spare: work.spare, shape };
            edit.apply(step, &self.request, env, answer, draft);
            work.ttl_count = None;
        }
    }

    /// Changes the TTLs of the answer there is.
    #[inline(never)]
    fn change_ttls(&self, rule: TtlRule, work: &mut Workspace<'_>) {
        if let Some(answer) = &self.interim.answer
            && let Some((body, offsets)) = work.body(&answer.shape(self.request.body_at()))
        {
            rule.rewrite(body, offsets);
        }
    }

    /// Puts the addresses of the answer there is in the order of their distances.
    #[inline(never)]
    fn sort(&self, quickest: &Quickest, env: &Environment<'_>, work: &mut Workspace<'_>) {
        if let Some(answer) = &self.interim.answer {
            let message = (&mut *work.message, self.request.body_at());
            quickest.sort(answer, message, work.distances, env.now);
        }
    }

    /// Cuts the answer there is for a client that asks over UDP.
    #[inline(always)]
    fn truncate(&mut self) {
        if self.request.client.transport == Transport::Udp
            && let Some(answer) = &mut self.interim.answer
        {
            answer.is_too_large = true;
        }
    }

    /// Refuses a query without RD: it learns nothing about what others asked for (that would be
    /// cache snooping), and nobody is asked on its behalf.
    #[inline(always)]
    fn recursion_refused(&self) -> Option<Answer> {
        let has_rd = self.request.query.header.flags.has(Flags::RD);
        if has_rd || self.outgoing.counts_as_rd() { None } else { Some(no_recursion()) }
    }

    #[inline(always)]
    const fn making<'m>(&'m self, env: &'m Environment<'m>, events: &'m EventSink) -> Making<'m> {
        Making { request: &self.request, env, interim: &self.interim, events }
    }

    /// Looks in local names.
    #[inline(always)]
    fn look_up_local(&self, local: &LocalData, message: &mut [u8]) -> Option<Answer> {
        let (question, body_at) = (&self.request.query.question, self.request.body_at());
        let mut answer = Answer { authoritative: true, ..Answer::empty(Rcode::NOERROR, None) };
        match local.answer(&self.request.sought, question.qtype)? {
            LocalAnswer::Records { count, body } => {
                answer.counts = [count, 0, 0];
                answer.octets = body.len();
                match message.get_mut(body_at..body_at + body.len()) {
                    Some(room) => room.copy_from_slice(body),
                    None => answer.is_too_large = true,
                }
            }
            LocalAnswer::Negative { rcode, apex_octets, ttl } => {
                answer.rcode = rcode;
                let owner_at = Header::LEN + (question.qname.len() - apex_octets.min(question.qname.len()));
                let written = put_local_soa(message, body_at, owner_at, ttl);
                answer.counts = [0, 1, 0];
                answer.octets = written.unwrap_or(0);
                answer.is_too_large = written.is_none();
            }
        }
        Some(answer)
    }

    /// Returns how a query ends whose answer we know by ourselves: it is not kept in caches, and
    /// strangers do not get it.
    #[inline(always)]
    fn known<const OUTSIDE: bool>(&mut self, answer: Answer, context: &Context<'_>) -> End {
        if OUTSIDE {
            return End::Nothing;
        }
        context.counters.answers_local.bump();
        self.fill = None;
        End::Answer(answer)
    }
}

/// Ends the query at a step, and traces it.
#[inline(always)]
fn told<T: Tracer + ?Sized>(end: End, step: u16, tracer: &mut T) -> End {
    tracer.step(
        step,
        match &end {
            End::Answer(_) => StepOutcome::Answered,
            End::Nothing | End::Drop => StepOutcome::Ended,
            End::Wait(want) => StepOutcome::Waits(want.waiting()),
        },
    );
    end
}

/// Ends the query of a stranger at a step that is not for strangers.
#[inline(always)]
fn unknown<T: Tracer + ?Sized>(step: u16, tracer: &mut T) -> End {
    told(End::Nothing, step, tracer)
}

#[inline(always)]
fn reject(rcode: Rcode, ede: Option<EdeCode>, context: &Context<'_>) -> End {
    context.counters.answers_fixed.bump();
    End::Answer(Answer::empty(rcode, ede.map(|code| (code, ""))))
}

#[cold]
fn no_recursion() -> Answer {
    Answer::empty(Rcode::REFUSED, Some((EdeCode::NOT_AUTHORITATIVE, "recursion not desired")))
}
