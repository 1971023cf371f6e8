//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The interpreter: takes a query through its program until there is an answer or something to wait for.

use std::cell::Cell;
use std::sync::Arc;

use wire::{EdeCode, Flags, Folded, Header, Query, Rcode};
use zone::Zones;

use crate::authority::Authority;
use crate::client::{Client, Now, Transport};
use crate::counters::Counters;
use crate::edit::{Shape, ttl_offsets};
use crate::events::{Teller, Tells};
use crate::finish::{Answer, put_local_soa};
use crate::gate::cookie::Proof;
use crate::local::{LocalAnswer, LocalData};
use crate::matchers::Facts;
use crate::names::Sought;
use crate::ops;
use crate::ops::answer::Built;
use crate::ops::cache::{Asked, CacheStep, Fill, Found, Outlook, key_bits};
use crate::ops::forward::own_subnet_bits;
use crate::ops::outgoing::{self, Outgoing};
use crate::ops::quickest::Distances;
use crate::ops::split::Parted;
use crate::ops::zone::Given;
use crate::program::{Matcher, Op, Position};
use crate::resume::Suspended;
use crate::shortlist::Candidates;
use crate::snapshot::Snapshot;
use crate::trace::{StepOutcome, Tracer};
use crate::want::Want;

/// One query under way.
pub(crate) struct Run<'q> {
    pub(crate) query: &'q Query<'q>,
    pub(crate) client: &'q Client,
    pub(crate) proof: Proof,
    pub(crate) sought: Sought<'q>,
    pub(crate) at: Position,
    pub(crate) marks: u64,
    /// What is told when the reply is complete.
    pub(crate) tells: Tells,
    /// What the query sent by later steps has besides its question.
    pub(crate) outgoing: Outgoing,
    pub(crate) fill: Option<Fill>,
    /// The answer there is. While there is one and steps go on, the message buffer holds the question too.
    pub(crate) answer: Option<Answer>,
    /// Set when the answer should be fetched anew behind the client's back: where that begins, and what it fills.
    pub(crate) errand: Option<(Position, Fill)>,
    /// Splits that it is inside of.
    pub(crate) depth: u8,
    /// The number of its last look at a shortlist; 0 before the first.
    pub(crate) looked: u64,
}

/// How a run ended.
pub(crate) enum End {
    /// With this answer.
    Answer(Answer),
    /// Without any: nothing in the policy is responsible for this name.
    Nothing,
    /// Without a word.
    Drop,
    /// It must wait.
    Wait(Want),
}

/// What the interpreter works with besides the query.
#[derive(Clone, Copy)]
pub(crate) struct Desktop<'w> {
    pub(crate) snapshot: &'w Arc<Snapshot>,
    /// Has the zones as they are now, where they change without the configuration.
    pub(crate) authority: &'w Option<Arc<Authority>>,
    pub(crate) counters: &'w Counters,
    pub(crate) now: Now,
    /// The name asked for, in lower case.
    pub(crate) folded: &'w Folded,
    /// Where random numbers come from.
    pub(crate) random: &'w Cell<u64>,
}

/// What an engine works with under a snapshot. A macro, because the parts that are not in it can be changed meanwhile.
macro_rules! desktop {
    ($engine:expr, $snapshot:expr) => {
        crate::run::Desktop {
            snapshot: $snapshot,
            authority: &$engine.authority,
            counters: &$engine.counters,
            now: $engine.now,
            folded: &$engine.folded,
            random: &$engine.random,
        }
    };
}
pub(crate) use desktop;

/// What steps write to.
pub(crate) struct Workspace<'w> {
    /// The message in the making: the records of the answer start after the question's place.
    pub(crate) message: &'w mut [u8],
    /// Free for any step to use.
    pub(crate) spare: &'w mut [u8],
    /// Where the TTL fields of the answer are, counted from the end of the question.
    pub(crate) ttl_offsets: &'w mut [u16],
    /// How many TTL fields there are; `None` when the answer changed since they were looked for.
    pub(crate) ttl_count: Option<usize>,
    /// Where steps leave what the world outside is to know.
    pub(crate) events: &'w mut Teller,
    /// How fast addresses connect.
    pub(crate) distances: &'w mut Distances,
    /// Work that no client waits for.
    #[expect(clippy::vec_box, reason = "they come and go as boxes")]
    pub(crate) errands: &'w mut Vec<Box<Suspended>>,
    /// What is left of the last shortlist that was looked at.
    pub(crate) candidates: &'w mut Candidates,
}

impl Workspace<'_> {
    /// Returns the octets after the question and where the TTL fields in them are.
    pub(crate) fn body(&mut self, shape: &Shape) -> Option<(&mut [u8], &[u16])> {
        let count = match self.ttl_count {
            Some(count) => count,
            None => ttl_offsets(self.message, shape, self.ttl_offsets)?,
        };
        self.ttl_count = Some(count);
        let body = self.message.get_mut(shape.body_at..)?.get_mut(..shape.octets)?;
        Some((body, self.ttl_offsets.get(..count)?))
    }
}

impl Run<'_> {
    /// Takes steps until the end; the answer's octets are written to `work.message` after the question's place.
    #[inline(always)]
    pub(crate) fn interpret<T: Tracer + ?Sized>(
        &mut self,
        desktop: &Desktop<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> End {
        self.walk::<T, false>(desktop, work, tracer)
    }

    /// Takes steps as [`Run::interpret`] does; with `OUTSIDE`, for a client that is not on the access list: only zones answer it,
    /// and what would be answered by anything else ends with [`End::Nothing`].
    pub(crate) fn walk<T: Tracer + ?Sized, const OUTSIDE: bool>(
        &mut self,
        desktop: &Desktop<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> End {
        let body_at = Header::LEN + self.query.question_bytes().len();
        let Desktop { snapshot, counters, .. } = *desktop;
        let ops = snapshot.program.ops();
        // Ends: skips lead forward and calls are acyclic; `Program::new` saw to that.
        loop {
            let step = self.at.advance();
            let Some(op) = ops.get(step) else { break };
            match op {
                // What others asked for is not told to strangers, and nobody is asked or waited for on their behalf.
                Op::Cache(_) | Op::Split(_) | Op::Sleep(_) if OUTSIDE => {}
                Op::Forward(_) | Op::Reject(..) if OUTSIDE => {
                    tracer.step(step as u16, StepOutcome::Ended);
                    return End::Nothing;
                }
                Op::SkipUnless(matcher, steps) => {
                    let holds = self.test(step, matcher, desktop, work, tracer);
                    if !holds {
                        self.at.skip(*steps);
                    }
                    continue;
                }
                Op::SkipIf(matcher, steps) => {
                    let holds = self.test(step, matcher, desktop, work, tracer);
                    if holds {
                        self.at.skip(*steps);
                    }
                    continue;
                }
                Op::Seek(seek) => {
                    if let Some(list) = snapshot.program.shortlists().get(usize::from(seek.list)) {
                        let facts = Facts { run: self, desktop, message: work.message };
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
                Op::Mark(bit) => self.marks |= 1 << (bit & 63),
                Op::Unmark(bits) => self.marks &= !bits,
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
                Op::Zone(zones) => {
                    // They may have changed since the configuration was compiled.
                    let zones = desktop.authority.as_ref().map_or(zones, |authority| &authority.zones);
                    if let Some(given) = self.look_up_zones(zones, desktop, work) {
                        tracer.step(step as u16, StepOutcome::Answered);
                        return End::Answer(given.into_answer());
                    }
                }
                Op::ZoneSet(zones) => {
                    if let Some(given) = self.look_up_zones(zones, desktop, work) {
                        tracer.step(step as u16, StepOutcome::Answered);
                        return End::Answer(given.into_answer());
                    }
                }
                Op::Cache(cache) => match self.look_up(cache, step as u16, desktop, work, body_at) {
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
                    let patience_ms = self.patience_ms(snapshot);
                    let want = Want::Fetch(forward.want(&snapshot.key, ops, self, patience_ms));
                    tracer.step(step as u16, StepOutcome::Waits(&want));
                    return End::Wait(want);
                }
                Op::Ttl(rule) => {
                    if let Some(answer) = &self.answer
                        && let Some((body, offsets)) = work.body(&answer.shape(body_at))
                    {
                        rule.rewrite(body, offsets);
                    }
                }
                Op::Split(split) => match self.split((step as u16, split), desktop, work, tracer) {
                    Parted::Passes => {}
                    Parted::GoesOn(answer) => {
                        tracer.step(step as u16, StepOutcome::Answered);
                        self.go_on_with(answer, work);
                        continue;
                    }
                    Parted::Ends(end) => {
                        match &end {
                            End::Wait(want) => tracer.step(step as u16, StepOutcome::Waits(want)),
                            _ => tracer.step(step as u16, StepOutcome::Ended),
                        }
                        return end;
                    }
                },
                Op::Sleep(ms) => {
                    let want = Want::Sleep(*ms);
                    tracer.step(step as u16, StepOutcome::Waits(&want));
                    return End::Wait(want);
                }
                Op::Quickest(quickest) => {
                    if let Some(answer) = &self.answer {
                        let message = (&mut *work.message, body_at);
                        quickest.sort(answer, message, work.distances, desktop.now);
                    }
                }
                Op::Forget => self.answer = None,
                Op::Truncate => {
                    if self.client.transport == Transport::Udp
                        && let Some(answer) = &mut self.answer
                    {
                        answer.is_too_large = true;
                    }
                }
                Op::Edit(edit) => {
                    if let Some(mut answer) = self.answer {
                        edit.apply(self, desktop, &mut answer, work);
                        self.answer = Some(answer);
                        work.ttl_count = None;
                    }
                }
                Op::Answer(build) => match build.build(self, desktop, work) {
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
                    let (query, client) = (self.query, self.client);
                    change.apply(&mut self.outgoing, step as u16, query, client, &snapshot.trusted_peers);
                }
                Op::Event(event) => event.emit(self, work),
            }
            tracer.step(step as u16, StepOutcome::Done);
        }
        match self.answer {
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
        desktop: &Desktop<'_>,
        work: &Workspace<'_>,
        tracer: &mut T,
    ) -> bool {
        let facts = Facts { run: self, desktop, message: work.message };
        let holds = matcher.holds(facts);
        tracer.test(step as u16, matcher, facts, holds);
        holds
    }

    /// Makes `answer`, whose records stand in the message already, the answer that the next steps see.
    #[cold]
    fn go_on_with(&mut self, answer: Answer, work: &mut Workspace<'_>) {
        // Names in the records may point to the question.
        let question = self.query.question_bytes();
        if let Some(place) = work.message.get_mut(Header::LEN..Header::LEN + question.len()) {
            place.copy_from_slice(question);
        }
        work.ttl_count = None;
        self.answer = Some(answer);
    }

    /// Looks in a cache; says whether what it found was fresh. On a miss, the answer to come will be kept there.
    #[inline(always)]
    fn look_up(
        &mut self,
        cache: &CacheStep,
        step: u16,
        desktop: &Desktop<'_>,
        work: &mut Workspace<'_>,
        body_at: usize,
    ) -> Option<(Answer, bool)> {
        let Desktop { counters, now, folded, .. } = *desktop;
        if let Some(refusal) = self.recursion_refused() {
            return Some((refusal, true));
        }
        let subnet = self.outgoing.subnet(self.query, cache.rules.keeps_subnets_apart);
        let bits =
            key_bits(self.outgoing.wants_dnssec(self.query), self.outgoing.checking_disabled(self.query));
        let out = work.message.get_mut(body_at..).unwrap_or(&mut []);
        let fill = |has_stale| Fill { step, subnet, bits, has_stale };
        let asked = Asked { query: self.query, folded, name_hash: self.sought.hash(), subnet, bits };
        match cache.look_up(&asked, now.cache, out) {
            Found::Answer(mut answer, outlook) => {
                answer.subnet_bits = own_subnet_bits(self.query, subnet);
                match outlook {
                    Outlook::Fresh => counters.cache_hits.bump(),
                    Outlook::Prefetch => {
                        counters.cache_hits.bump();
                        self.errand = Some((self.at, fill(false)));
                    }
                    Outlook::Refresh => {
                        counters.cache_stale.bump();
                        self.errand = Some((self.at, fill(true)));
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
        desktop: &Desktop<'_>,
        work: &mut Workspace<'_>,
    ) -> Option<Given> {
        let given = ops::zone::answer(zones, self, desktop, work.message)?;
        desktop.counters.answers_zone.bump();
        self.fill = None;
        Some(given)
    }

    /// Refuses a query without RD: it learns nothing about what others asked for (that would be cache snooping), and
    /// nobody is asked on its behalf.
    #[inline(always)]
    fn recursion_refused(&self) -> Option<Answer> {
        if self.query.header.flags.has(Flags::RD) { None } else { Some(no_recursion()) }
    }

    /// Returns the EDNS options that upstreams are sent besides the client's subnet.
    pub(crate) fn out_options(&self, ops: &[Op]) -> Box<[u8]> {
        match self.outgoing.options(ops) {
            Some(changes) => outgoing::options(changes, self.query),
            None => Box::default(),
        }
    }

    /// Returns how long the client waits if a stale answer is at hand.
    pub(crate) fn patience_ms(&self, snapshot: &Snapshot) -> Option<u32> {
        let fill = self.fill.filter(|fill| fill.has_stale)?;
        match snapshot.program.ops().get(usize::from(fill.step)) {
            Some(Op::Cache(cache)) => Some(cache.rules.stale_client_timeout_ms),
            _ => None,
        }
    }

    #[inline(always)]
    fn look_up_local(&self, local: &LocalData, message: &mut [u8], body_at: usize) -> Option<Answer> {
        let question = &self.query.question;
        let mut answer = Answer { authoritative: true, ..Answer::empty(Rcode::NOERROR, None) };
        match local.answer(&self.sought, question.qtype)? {
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

/// Nothing in the policy is responsible for this name.
#[cold]
pub(crate) const fn nothing() -> Answer {
    Answer::empty(Rcode::REFUSED, Some((EdeCode::NOT_AUTHORITATIVE, "")))
}

#[cold]
fn no_recursion() -> Answer {
    Answer::empty(Rcode::REFUSED, Some((EdeCode::NOT_AUTHORITATIVE, "recursion not desired")))
}
