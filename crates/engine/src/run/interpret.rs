//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The interpreter: takes a query through its program until there is an answer or something to wait
//! for.

use wire::{EdeCode, Flags, Header, Rcode};
use zone::Zones;

use super::buffers::Workspace;
use super::context::Context;
use super::splits::Parted;
use super::state::{End, Run};
use super::want::Want;
use crate::answer::Answer;
use crate::answer::edit::Draft;
use crate::answer::local::{LocalAnswer, LocalData};
use crate::answer::put::put_local_soa;
use crate::matchers::Matcher;
use crate::observe::trace::{StepOutcome, Tracer};
use crate::ops;
use crate::ops::answer::{Built, Making};
use crate::ops::cache::{Asked, CacheStep, Fill, Found, Outlook, key_bits};
use crate::ops::zone::Given;
use crate::program::Op;
use crate::query::client::Transport;
use crate::query::request::{Environment, Request};
use crate::query::subnet::own_subnet_bits;

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
        let body_at = self.request.body_at();
        let Context { snapshot, counters, env, .. } = context;
        let program = &snapshot.program;
        let ops = program.ops();
        // Ends: skips lead forward and calls are acyclic; `Program::new` saw to that.
        loop {
            let step = self.at.advance();
            let Some(op) = ops.get(step) else { break };
            match op {
                // What others asked for is not told to strangers, and nobody is asked or waited for
                // on their behalf.
                Op::Cache(_) | Op::Split(_) | Op::Sleep(_) if OUTSIDE => {}
                Op::Forward(_) | Op::Reject(..) if OUTSIDE => {
                    tracer.step(step as u16, StepOutcome::Ended);
                    return End::Nothing;
                }
                Op::SkipUnless(matcher, steps) => {
                    let holds = self.test(step, matcher, context, work, tracer);
                    if !holds {
                        self.at.skip(*steps);
                    }
                    continue;
                }
                Op::SkipIf(matcher, steps) => {
                    let holds = self.test(step, matcher, context, work, tracer);
                    if holds {
                        self.at.skip(*steps);
                    }
                    continue;
                }
                Op::Seek(seek) => {
                    if let Some(list) = program.shortlists().get(usize::from(seek.list)) {
                        let facts = self.facts(env, work.message);
                        let (to, looked) = list.seek(*seek, facts, self.looked, work.candidates);
                        if to != self.at.next() {
                            tracer.skipped(step as u16, (list, *seek, to), facts);
                            self.at.go_to(to);
                        }
                        self.looked = looked;
                    }
                    continue;
                }
                Op::Skip(steps) => self.at.skip(*steps),
                Op::Call(target) => self.at.call(*target),
                Op::Goto(target) => self.at.jump(*target),
                Op::Return => {
                    if !self.at.pop() {
                        tracer.step(step as u16, StepOutcome::Ended);
                        break;
                    }
                }
                Op::Accept => {
                    tracer.step(step as u16, StepOutcome::Ended);
                    break;
                }
                Op::Drop => {
                    tracer.step(step as u16, StepOutcome::Ended);
                    return End::Drop;
                }
                Op::Mark(bit) => self.interim.marks |= 1 << (bit & 63),
                Op::Unmark(bits) => self.interim.marks &= !bits,
                Op::Local(local) => {
                    if let Some(answer) = self.look_up_local(local, work.message, body_at) {
                        if OUTSIDE {
                            tracer.step(step as u16, StepOutcome::Ended);
                            return End::Nothing;
                        }
                        counters.answers_local.bump();
                        // What we know by ourselves is not kept in caches.
                        self.fill = None;
                        tracer.step(step as u16, StepOutcome::Answered);
                        return End::Answer(answer);
                    }
                }
                Op::Zone => {
                    if let Some(authority) = context.authority
                        && let Some(given) = self.look_up_zones(&authority.zones, context, work)
                    {
                        tracer.step(step as u16, StepOutcome::Answered);
                        return End::Answer(given.into_answer());
                    }
                }
                Op::ZoneSet(zones) => {
                    if let Some(given) = self.look_up_zones(zones, context, work) {
                        tracer.step(step as u16, StepOutcome::Answered);
                        return End::Answer(given.into_answer());
                    }
                }
                Op::Cache(cache) => match self.look_up(cache, step as u16, context, work, body_at) {
                    Some((answer, is_fresh)) => {
                        tracer.step(step as u16, StepOutcome::Looked(Some(is_fresh)));
                        if !cache.continues {
                            return End::Answer(answer);
                        }
                        self.go_on_with(answer, work);
                        continue;
                    }
                    None => {
                        tracer.step(step as u16, StepOutcome::Looked(None));
                        continue;
                    }
                },
                Op::Reject(rcode, ede) => {
                    counters.answers_fixed.bump();
                    tracer.step(step as u16, StepOutcome::Answered);
                    return End::Answer(Answer::empty(*rcode, ede.map(|code| (code, ""))));
                }
                Op::Forward(forward) => {
                    if let Some(refusal) = self.recursion_refused() {
                        return End::Answer(refusal);
                    }
                    let want = Want::Fetch(forward.want(env.key, &self.request, self.sending(program)));
                    tracer.step(step as u16, StepOutcome::Waits(want.waiting()));
                    return End::Wait(want);
                }
                Op::Ttl(rule) => {
                    if let Some(answer) = &self.interim.answer
                        && let Some((body, offsets)) = work.body(&answer.shape(body_at))
                    {
                        rule.rewrite(body, offsets);
                    }
                }
                Op::Split(split) => match self.split(step as u16, split, context, work, tracer) {
                    Parted::Passes => {}
                    Parted::GoesOn(answer) => {
                        tracer.step(step as u16, StepOutcome::Answered);
                        self.go_on_with(answer, work);
                        continue;
                    }
                    Parted::Ends(end) => {
                        match &end {
                            End::Wait(want) => tracer.step(step as u16, StepOutcome::Waits(want.waiting())),
                            _ => tracer.step(step as u16, StepOutcome::Ended),
                        }
                        return end;
                    }
                },
                Op::Sleep(ms) => {
                    let want = Want::Sleep(*ms);
                    tracer.step(step as u16, StepOutcome::Waits(want.waiting()));
                    return End::Wait(want);
                }
                Op::Quickest(quickest) => {
                    if let Some(answer) = &self.interim.answer {
                        let message = (&mut *work.message, body_at);
                        quickest.sort(answer, message, work.distances, env.now);
                    }
                }
                Op::Forget => self.interim.answer = None,
                Op::Truncate => {
                    if self.request.client.transport == Transport::Udp
                        && let Some(answer) = &mut self.interim.answer
                    {
                        answer.is_too_large = true;
                    }
                }
                Op::Edit(edit) => {
                    if let Some(answer) = &mut self.interim.answer {
                        let shape = answer.shape(body_at);
                        let draft = Draft { message: work.message, spare: work.spare, shape };
                        edit.apply(step as u16, &self.request, env, answer, draft);
                        work.ttl_count = None;
                    }
                }
                Op::Answer(build) => match build.build(step as u16, &self.making(env), work.message) {
                    Built::End(_) | Built::GoOn(_) if OUTSIDE => {
                        tracer.step(step as u16, StepOutcome::Ended);
                        return End::Nothing;
                    }
                    Built::End(answer) => {
                        counters.answers_fixed.bump();
                        work.ttl_count = None;
                        tracer.step(step as u16, StepOutcome::Answered);
                        return End::Answer(answer);
                    }
                    Built::GoOn(answer) => {
                        counters.answers_fixed.bump();
                        tracer.step(step as u16, StepOutcome::Answered);
                        self.go_on_with(answer, work);
                        continue;
                    }
                    Built::Silence => return End::Drop,
                    Built::Nothing => {}
                },
                Op::Outgoing(change) => {
                    let (query, client) = (self.request.query, self.request.client);
                    change.apply(&mut self.outgoing, step as u16, query, client, env.trusted_peers);
                }
                Op::Event(event) => event.emit(&mut self.event_set, work.events),
            }
            tracer.step(step as u16, StepOutcome::Done);
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
        step: usize,
        matcher: &Matcher,
        context: &Context<'_>,
        work: &Workspace<'_>,
        tracer: &mut T,
    ) -> bool {
        let facts = self.facts(&context.env, work.message);
        let holds = matcher.holds(facts);
        tracer.test(step as u16, matcher, facts, holds);
        holds
    }

    /// Makes `answer`, whose records stand in the message already, the answer that the next steps
    /// see.
    #[cold]
    fn go_on_with(&mut self, answer: Answer, work: &mut Workspace<'_>) {
        // Names in the records may point to the question.
        let question = self.request.query.question_bytes();
        if let Some(place) = work.message.get_mut(Header::LEN..Header::LEN + question.len()) {
            place.copy_from_slice(question);
        }
        work.ttl_count = None;
        self.interim.answer = Some(answer);
    }

    /// Looks in a cache; says whether what it found was fresh. On a miss, the answer to come will
    /// be kept there.
    #[inline(always)]
    fn look_up(
        &mut self,
        cache: &CacheStep,
        step: u16,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
        body_at: usize,
    ) -> Option<(Answer, bool)> {
        let Context { counters, env, .. } = context;
        let Request { query, folded, ref sought, .. } = self.request;
        if let Some(refusal) = self.recursion_refused() {
            return Some((refusal, true));
        }
        let subnet = self.outgoing.subnet(query, cache.rules.keeps_subnets_apart);
        let bits = key_bits(self.outgoing.wants_dnssec(query), self.outgoing.checking_disabled(query));
        let out = work.message.get_mut(body_at..).unwrap_or(&mut []);
        let fill = |has_stale| Fill { step, subnet, bits, has_stale };
        let asked = Asked { query, folded, name_hash: sought.hash(), subnet, bits };
        match cache.look_up(&asked, env.now.cache, out) {
            Found::Answer(mut answer, outlook) => {
                answer.subnet_bits = own_subnet_bits(query, subnet);
                match outlook {
                    Outlook::Fresh => counters.cache_hits.bump(),
                    Outlook::Prefetch => {
                        counters.cache_hits.bump();
                        self.prefetch = Some((self.at, fill(false)));
                    }
                    Outlook::Refresh => {
                        counters.cache_stale.bump();
                        self.prefetch = Some((self.at, fill(true)));
                    }
                    Outlook::Stale => counters.cache_stale.bump(),
                    Outlook::Failure => counters.cache_failures.bump(),
                }
                Some((answer, matches!(outlook, Outlook::Fresh | Outlook::Prefetch)))
            }
            Found::Nothing { has_stale } => {
                counters.cache_misses.bump();
                self.fill = Some(fill(has_stale));
                None
            }
        }
    }

    /// Looks in zones; what they have is not kept in caches.
    #[inline(always)]
    fn look_up_zones(
        &mut self,
        zones: &Zones,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
    ) -> Option<Given> {
        let given = ops::zone::answer(zones, &self.request, &context.env, context, work.message)?;
        context.counters.answers_zone.bump();
        self.fill = None;
        Some(given)
    }

    /// Refuses a query without RD: it learns nothing about what others asked for (that would be
    /// cache snooping), and nobody is asked on its behalf.
    #[inline(always)]
    fn recursion_refused(&self) -> Option<Answer> {
        if self.request.query.header.flags.has(Flags::RD) { None } else { Some(no_recursion()) }
    }

    #[inline(always)]
    const fn making<'m>(&'m self, env: &'m Environment<'m>) -> Making<'m> {
        Making { request: &self.request, env, interim: &self.interim }
    }

    #[inline(always)]
    fn look_up_local(&self, local: &LocalData, message: &mut [u8], body_at: usize) -> Option<Answer> {
        let question = &self.request.query.question;
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
}

#[cold]
fn no_recursion() -> Answer {
    Answer::empty(Rcode::REFUSED, Some((EdeCode::NOT_AUTHORITATIVE, "recursion not desired")))
}
