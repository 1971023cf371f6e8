//! What happens when a query has to wait: it is put aside, goes on with the outcome, and may fill
//! the cache.

use cache::Recovery;
use wire::reply::{Normalised, Unfit, normalise, normalise_relevant};
use wire::{Flags, Header, Message, Query, Rcode, Rtype};

use crate::answer::failure::Failure;
use crate::answer::finish::To;
use crate::answer::put::put;
use crate::answer::reply::Reply;
use crate::answer::report::{BranchReport, Worth};
use crate::answer::texts::Text;
use crate::answer::written::{changed, put_header};
use crate::answer::{Answer, Ending, Interim, Security, SubnetScope};
use crate::observe::explain::Recorder;
use crate::observe::trace::{NoTrace, Tracer};
use crate::ops::cache::{Asked, Fill};
use crate::ops::outgoing::{self, Outgoing};
use crate::ops::quickest::Probe;
use crate::ops::split::SplitStep;
use crate::ops::wait::{Outcome, PoolId, Resolved, Won};
use crate::program::{Op, Position};
use crate::query::names::Sought;
use crate::query::request::Request;
use crate::run::buffers::{Buffers, PREFETCHES_MAX, Workspace};
use crate::run::context::Context;
use crate::run::splits::BranchEnd;
use crate::run::state::{After, End, Run, nothing};
use crate::run::suspended::{BranchOf, Kept, Suspended, recovery};
use crate::run::want::Want;
use crate::{Engine, Verdict};
use clients::gate::cookie::Proof;
use events::{AnswerFacts, EventContext, EventSet, Path};

/// Whether this query's outcome is the one to remember; others with the same
/// [`Continuation`](crate::Continuation) only read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The first of its continuation to be resumed: fills the cache.
    First,
    /// A later one.
    Other,
}

/// A fetch that no client waits for.
#[derive(Clone, Copy)]
pub(crate) struct Prefetched {
    /// Where it begins: behind a look-up in a cache.
    pub(crate) at: Position,
    /// What it fills.
    pub(crate) fill: Fill,
    pub(crate) marks: u64,
    pub(crate) outgoing: Outgoing,
}

/// How a branch that had to wait has ended.
struct Ended<'e> {
    answer: &'e Answer,
    event_set: &'e EventSet,
    /// Options of an upstream's reply that go on to the client, in wire form.
    options: &'e [u8],
}

/// Returns what events tell about an answer, whose octets after the question are `body`.
pub(crate) fn told<'a>(answer: &Answer, body: &'a [u8]) -> AnswerFacts<'a> {
    let [answers, ..] = answer.counts;
    AnswerFacts { rcode: answer.rcode, answers, body, octets: answer.octets, cause: answer.errors.cause() }
}

/// What an outcome means before the rest of the program has seen it.
struct Brought {
    /// The answer there is now; its records stand in the scratch message.
    answer: Option<Answer>,
    /// How many TTL offsets are known.
    ttl_count: Option<usize>,
    /// Whether the query ends with that.
    is_end: bool,
}

impl Brought {
    const fn answer(answer: Answer) -> Self {
        Self { answer: Some(answer), ttl_count: None, is_end: false }
    }

    /// No branch of a split has an answer; what that means is the query's end or not.
    const fn no_branch(is_end: bool) -> Self {
        let failed = Answer::failed(Failure::NoBranch);
        Self { answer: if is_end { None } else { Some(failed) }, ttl_count: None, is_end }
    }
}

impl Engine {
    /// Goes on with a deferred query. May defer again.
    ///
    /// Of several that shared a fetch, exactly one of each [`Continuation`](crate::Continuation) is
    /// resumed with [`Share::First`]; it may be one without a client. The answer of a branch comes
    /// with [`Reply::report`], and is for no client.
    pub fn resume(
        &mut self,
        mut suspended: Box<Suspended>,
        outcome: Outcome<'_>,
        share: Share,
        reply: &mut Reply<'_>,
    ) -> Verdict {
        self.state.counters.resumed.bump();
        let mut path = suspended.path.take();
        suspended.take_over(&outcome);
        let Ok(query) = Query::parse(&suspended.query) else { return Verdict::Drop };
        if let Some(recorder) = &suspended.recorder {
            recorder.resumed(&outcome);
        }
        query.question.qname.fold_into(&mut self.folded);
        self.prefetch_place(&suspended, &query);
        let Some(brought) = self.bring(&suspended, &query, outcome) else {
            return self.end_silently(&suspended, reply);
        };
        let mut run = suspended.run(&query, &self.folded);
        run.interim.answer = brought.answer;
        let context = self.state.context(&suspended.snapshot);
        let mut work = self.buffers.workspace(&mut self.events, brought.ttl_count);
        let recorder = || suspended.recorder.as_ref().map(Recorder::share);
        let mut end = match (brought.is_end, brought.answer) {
            (true, Some(answer)) => End::Answer(answer),
            (true, None) => End::Nothing,
            (false, _) => run.observed(&context, &mut work, (recorder(), path.as_deref_mut())),
        };
        if matches!(&end, End::Answer(answer) if answer.end == Ending::Interim) && suspended.branch.is_none()
        {
            // No rule was for this client: all of it once more, and servers are asked.
            let is_silent = run.event_set.is_silent();
            run = Run {
                outgoing: Outgoing::default().servers_first(),
                event_set: if is_silent { EventSet::SILENT } else { EventSet::NONE },
                ..Run::new(run.request, Position::default())
            };
            work.ttl_count = None;
            end = run.observed(&context, &mut work, (recorder(), path.as_deref_mut()));
        }
        let answer = match end {
            End::Answer(answer) => answer,
            End::Nothing if suspended.branch.is_some() => {
                reply.set_report(BranchReport::empty(Worth::Nothing));
                return Verdict::Drop;
            }
            End::Nothing => nothing(),
            End::Drop => {
                let event_set = run.event_set;
                self.tell(&suspended, &query, &event_set, path.as_deref(), None);
                return self.end_silently(&suspended, reply);
            }
            End::Wait(want) => {
                self.state.counters.deferred.bump();
                let kept = Kept::new(&run, &want, work.message);
                let Run { at, interim: Interim { marks, .. }, event_set, outgoing, fill, .. } = run;
                (suspended.event_set, suspended.path) = (event_set, path);
                suspended.recovery = recovery(&suspended.snapshot, fill.as_ref(), &want);
                (suspended.at, suspended.marks, suspended.fill, suspended.want) = (at, marks, fill, want);
                (suspended.outgoing, suspended.answer) = (outgoing, kept);
                return Verdict::Defer(suspended);
            }
        };
        let answer = run.fill_cache(answer, (share, suspended.recovery), &context, &mut work);
        let event_set = run.event_set;
        if let Some((split, branch)) = suspended.parent() {
            let ended = Ended { answer: &answer, event_set: &event_set, options: &suspended.back };
            return self.buffers.report(split, branch, &query, &ended, reply);
        }
        self.tell(&suspended, &query, &event_set, path.as_deref(), Some(&answer));
        let options = &suspended.back;
        let to = To { query: &query, client: &suspended.client, proof: suspended.proof, options };
        let is_sent = self.buffers.send(&self.state.context(&suspended.snapshot), &to, &answer, reply);
        if !event_set.is_silent() {
            self.tap_late(&suspended, answer.validation(), reply);
        }
        Verdict::of(is_sent)
    }

    /// Takes what a query waited for. `None`: it ends without a reply.
    fn bring(&mut self, suspended: &Suspended, query: &Query<'_>, outcome: Outcome<'_>) -> Option<Brought> {
        let body_at = Header::LEN + query.question_bytes().len();
        match (outcome, suspended.split()) {
            (Outcome::Reply(message), None) => {
                let trusts_ad = suspended.want.fetch().is_some_and(|want| want.trusts_ad);
                let is_secure = trusts_ad && message.header.flags.has(Flags::AD);
                let security = if is_secure { Security::Secure } else { Security::Unchecked };
                let mut brought = self.buffers.bring_reply(message, normalise_relevant, security, body_at);
                if let (Want::Fetch(want), Some(answer)) = (&suspended.want, &mut brought.answer)
                    && !answer.end.is_failure()
                {
                    answer.subnet_bits = suspended.outgoing.echoed_bits(query, want.query.client_subnet);
                }
                Some(brought)
            }
            (Outcome::Resolved(Resolved { message, security, is_unsigned, scope, is_interim }), None) => {
                // A resolver has left out what does not concern the question.
                let mut brought = self.buffers.bring_reply(message, normalise, security, body_at);
                if let (Want::Resolve(want), Some(answer)) = (&suspended.want, &mut brought.answer) {
                    answer.scope = scope.map_or(SubnetScope::EVERY, SubnetScope::of);
                    answer.subnet_bits = suspended.outgoing.echoed_bits(query, want.query.client_subnet);
                }
                if let Some(answer) =
                    brought.answer.as_mut().filter(|answer| is_unsigned && answer.end.is_whole())
                {
                    answer.end = Ending::Unsigned;
                }
                if let Some(answer) =
                    brought.answer.as_mut().filter(|answer| is_interim && answer.end.is_whole())
                {
                    answer.end = Ending::Interim;
                }
                Some(brought)
            }
            (Outcome::Unresolved(why), split) => {
                let is_end = split.is_some_and(|(_, split)| split.is_rest());
                let text = self.state.texts.put(Text::new(why.text));
                let answer = Answer::unresolved(why.rcode, why.ede, text);
                Some(Brought { is_end, ..Brought::answer(answer) })
            }
            (Outcome::Failed(failure), split) => {
                let is_end = split.is_some_and(|(_, split)| split.is_rest());
                Some(Brought { is_end, ..Brought::answer(Answer::failed(failure)) })
            }
            (Outcome::Branch(won), Some((_, split))) => {
                let is_end = split.is_rest();
                match won.report.worth {
                    Worth::Dropped if is_end => None,
                    Worth::Dropped | Worth::Nothing => Some(Brought::no_branch(is_end)),
                    Worth::Usable | Worth::Unusable(_) => {
                        let brought = self.buffers.bring_branch(split, &won, query);
                        Some(Brought { is_end, ..brought })
                    }
                }
            }
            (Outcome::NoBranch { is_dropped: true }, Some((_, split))) if split.is_rest() => None,
            (Outcome::NoBranch { .. }, Some((_, split))) => Some(Brought::no_branch(split.is_rest())),
            (Outcome::Slept, None) => {
                let answer = suspended.answer.as_ref().map(|kept| {
                    put(&mut self.buffers.message, Header::LEN, query.question_bytes());
                    put(&mut self.buffers.message, body_at, &kept.octets);
                    kept.answer
                });
                Some(Brought { answer, ttl_count: None, is_end: false })
            }
            // Nobody hands these out: what was brought is not what was waited for.
            (Outcome::Reply(_) | Outcome::Resolved(_) | Outcome::Slept, Some(_))
            | (Outcome::Branch(_) | Outcome::NoBranch { .. }, None) => {
                Some(Brought::answer(Answer::failed(Failure::BadReply(Rcode::SERVFAIL))))
            }
        }
    }

    fn end_silently(&self, suspended: &Suspended, reply: &mut Reply<'_>) -> Verdict {
        if suspended.branch.is_some() {
            reply.set_report(BranchReport::empty(Worth::Dropped));
        } else {
            self.state.counters.dropped.bump();
        }
        Verdict::Drop
    }

    /// Starts a branch that `parent` waits for. Its answer, if it has one at once, is in `reply`,
    /// with [`Reply::report`]; a branch that must wait is put aside like any query.
    pub fn branch(&mut self, parent: &Suspended, index: u8, reply: &mut Reply<'_>) -> Verdict {
        let (Ok(query), Some((step, split))) = (Query::parse(&parent.query), parent.split()) else {
            reply.set_report(BranchReport::empty(Worth::Nothing));
            return Verdict::Drop;
        };
        query.question.qname.fold_into(&mut self.folded);
        let run = parent.run(&query, &self.folded);
        let context = self.state.context(&parent.snapshot);
        let mut work = self.buffers.workspace(&mut self.events, None);
        let branch = BranchOf { step, index };
        let end = match parent.recorder.as_ref().map(Recorder::share) {
            None => run.branch(split, branch, &context, &mut work, &mut NoTrace),
            Some(mut recorder) => {
                run.branch(split, branch, &context, &mut work, &mut recorder as &mut dyn Tracer)
            }
        };
        match end {
            BranchEnd::Answer(answer, body_at, report) => {
                put_header(&answer, work.message);
                reply.set_report(report);
                Verdict::of(reply.take(work.message.get(..body_at + answer.octets).unwrap_or(&[])))
            }
            BranchEnd::Ended(worth) => {
                reply.set_report(BranchReport::empty(worth));
                Verdict::Drop
            }
            BranchEnd::Waits(suspended) => Verdict::Defer(suspended),
        }
    }

    /// Answers from the stale data that `suspended` has at hand, because its client waited long
    /// enough (RFC 8767 §5). A branch ends with it, as with any answer. The caller keeps
    /// `suspended`, as a prefetch that goes on without a client.
    pub fn answer_stale(&mut self, suspended: &mut Suspended, reply: &mut Reply<'_>) -> Verdict {
        let Ok(query) = Query::parse(&suspended.query) else { return Verdict::Drop };
        let (client, proof) = (&suspended.client, suspended.proof);
        let to = To { query: &query, client, proof, options: &[] };
        match self.stale(suspended, &query) {
            Some(answer) => {
                self.state.counters.cache_stale.bump();
                if let Some((split, branch)) = suspended.parent() {
                    let ended = Ended { answer: &answer, event_set: &suspended.event_set, options: &[] };
                    let verdict = self.buffers.report(split, branch, &query, &ended, reply);
                    suspended.event_set = EventSet::SILENT;
                    return verdict;
                }
                let path = suspended.path.as_deref();
                self.tell(suspended, &query, &suspended.event_set, path, Some(&answer));
                let context = self.state.context(&suspended.snapshot);
                let is_sent = self.buffers.send(&context, &to, &answer, reply);
                self.tap_late(suspended, answer.validation(), reply);
                // What goes on from here goes on without the client.
                suspended.event_set = EventSet::SILENT;
                Verdict::of(is_sent)
            }
            None => Verdict::Drop,
        }
    }

    /// Notes that a server of a group answers again after having been down: failures of the group
    /// are not remembered any more, by no worker.
    pub fn group_recovered(&self, pool: PoolId) {
        for op in self.snapshot.program.ops() {
            if let Op::Cache(step) = op {
                step.cache.group_recovered(pool.0);
            }
        }
    }

    /// Returns the next piece of work that no client waits for; the worker hands it to
    /// [`Driver::prefetch`](crate::Driver::prefetch).
    pub fn next_prefetch(&mut self) -> Option<Box<Suspended>> {
        self.buffers.prefetches.pop()
    }

    /// Returns the next address whose distance is to be measured, by connecting to it; the worker
    /// tells what came of it with [`Engine::measured`].
    pub fn next_probe(&mut self) -> Option<Probe> {
        self.buffers.distances.next_probe()
    }

    /// Takes a measurement: microseconds that connecting took, or `None` if nothing connected.
    pub fn measured(&mut self, probe: &Probe, micros: Option<u32>) {
        self.buffers.distances.measured(probe, micros, self.state.now);
    }

    /// Does what is left to do when a query has its answer. It went through steps with what `sent`
    /// says.
    #[cold]
    pub(crate) fn follow_up(
        &mut self,
        to: &To<'_>,
        name_hash: u64,
        after: After,
        (marks, outgoing): (u64, Outgoing),
    ) {
        let missed = match after {
            After::Prefetch(at, fill) => {
                return self.begin_prefetch(to, name_hash, Prefetched { at, fill, marks, outgoing });
            }
            After::Prove(missed) => missed,
            After::ClearRa => return,
        };
        let To { query, client, proof, .. } = *to;
        let sought = Sought::new(&self.folded, name_hash);
        let request = Request { query, client, proof, folded: &self.folded, sought };
        let run = Run { outgoing, ..Run::new(request, missed.at) };
        let context = self.state.context(&self.snapshot);
        run.prove(&missed, &context, &mut self.buffers.workspace(&mut self.events, None));
    }

    /// Prepares a fetch that no client waits for, from the step after a cache look-up on.
    #[cold]
    fn begin_prefetch(&mut self, to: &To<'_>, name_hash: u64, prefetch: Prefetched) {
        if self.buffers.prefetches.len() >= PREFETCHES_MAX {
            return;
        }
        let Prefetched { at, fill, marks, outgoing } = prefetch;
        // Nobody waits for the answer: policies are asked when somebody wants it.
        let outgoing = outgoing.servers_first();
        let To { query, client, .. } = *to;
        let sought = Sought::new(&self.folded, name_hash);
        let request = Request { query, client, proof: Proof::None, folded: &self.folded, sought };
        let mut run = Run {
            interim: Interim { marks, is_listed_alias: false, answer: None },
            event_set: EventSet::SILENT,
            outgoing,
            fill: Some(fill),
            ..Run::new(request, at)
        };
        let context = self.state.context(&self.snapshot);
        let mut work = self.buffers.workspace(&mut self.events, None);
        if let End::Wait(want) = run.interpret(&context, &mut work, &mut NoTrace) {
            self.state.counters.prefetches.bump();
            let suspended = Suspended::new(&self.snapshot, &run, want, None, work.message, None);
            work.prefetches.push(suspended);
        }
    }

    /// Tells what a query that waited has to tell; its answer stands in the scratch message.
    fn tell(
        &mut self,
        suspended: &Suspended,
        query: &Query<'_>,
        event_set: &EventSet,
        path: Option<&Path>,
        answer: Option<&Answer>,
    ) {
        if event_set.is_empty() || suspended.branch.is_some() {
            return;
        }
        let body = self.buffers.message.get(Header::LEN + query.question_bytes().len()..).unwrap_or(&[]);
        self.events.tell(&EventContext {
            event_set,
            path,
            snapshot: suspended.snapshot.number,
            trusted_peers: &suspended.snapshot.trusted_peers,
            now: self.state.now,
            began_us: suspended.began_us,
            query,
            client: &suspended.client,
            upstream: suspended.upstream,
            answer: answer.map(|answer| told(answer, body)),
        });
    }

    /// Asks memory for the place in a cache where the answer will be kept, so that it comes while
    /// the answer is made. The name of the query is the one that was folded last.
    fn prefetch_place(&self, suspended: &Suspended, query: &Query<'_>) {
        if let Some(Fill { step, subnet, bits, .. }) = suspended.fill
            && let Some(step) = suspended.snapshot.program.cache(step)
        {
            let name_hash = suspended.name_hash;
            let asked = Asked { query, folded: &self.folded, name_hash, subnet, bits };
            step.cache.prefetch_bucket(step.hash(&asked));
        }
    }

    /// Copies the stale answer that `suspended` has at hand into the scratch message.
    fn stale(&mut self, suspended: &Suspended, query: &Query<'_>) -> Option<Answer> {
        let fill = suspended.fill.as_ref().filter(|fill| fill.has_stale)?;
        let cache = suspended.snapshot.program.cache(fill.step)?;
        let body_at = Header::LEN + query.question_bytes().len();
        let out = self.buffers.message.get_mut(body_at..)?;
        let folded = query.question.qname.to_folded();
        let Fill { subnet, bits, .. } = *fill;
        let asked = Asked { query, folded: &folded, name_hash: suspended.name_hash, subnet, bits };
        cache.look_up_stale(&asked, self.state.now.cache, out)
    }
}

impl Run<'_> {
    /// Takes steps until the end, before the eyes of who watches.
    fn observed(
        &mut self,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
        watching: (Option<Recorder>, Option<&mut Path>),
    ) -> End {
        match watching {
            (None, None) => self.interpret(context, work, &mut NoTrace),
            (None, Some(path)) => self.interpret(context, work, path as &mut dyn Tracer),
            (Some(mut recorder), _) => self.interpret(context, work, &mut recorder as &mut dyn Tracer),
        }
    }

    /// Keeps the answer in the cache that the query fills, if it does. Returns what the client
    /// gets: in place of a failure the stale answer, if there is one.
    fn fill_cache(
        &self,
        answer: Answer,
        (share, recovery): (Share, Recovery),
        context: &Context<'_>,
        work: &mut Workspace<'_>,
    ) -> Answer {
        let Some(Fill { step, subnet, bits, has_stale }) = self.fill else { return answer };
        let Some(cache) = context.snapshot.program.cache(step) else { return answer };
        let Request { query, folded, ref sought, .. } = self.request;
        let asked = Asked { query, folded, name_hash: sought.hash(), subnet, bits };
        let (now, body_at) = (context.env.now.cache, self.request.body_at());
        if answer.end.is_failure() {
            if share == Share::First {
                cache.store_failure(&asked, now, &answer, recovery, context.texts);
            }
            let out = work.message.get_mut(body_at..).filter(|_| has_stale);
            if let Some(stale) = out.and_then(|out| cache.look_up_stale(&asked, now, out)) {
                context.counters.cache_stale.bump();
                return stale;
            }
        } else if share == Share::First
            && answer.end.is_whole()
            && let Some((body, ttl_offsets)) = work.body(&answer.shape(body_at))
        {
            cache.store(&asked, now, &answer, body, ttl_offsets);
        }
        answer
    }
}

impl Suspended {
    /// Takes over what an outcome has besides an answer: options for the client, and what a branch
    /// has to tell.
    fn take_over(&mut self, outcome: &Outcome<'_>) {
        match outcome {
            Outcome::Reply(message) => {
                let changes = self.snapshot.program.options(&self.outgoing);
                self.back = changes.map_or_else(Box::default, |changes| outgoing::carried(changes, message));
            }
            Outcome::Branch(won) => {
                self.event_set.merge(&won.report.event_set);
                self.back = outgoing::carried_by_branch(won.message);
            }
            // The answer there is stays the one there is.
            Outcome::Slept => {}
            Outcome::Resolved(_) | Outcome::Unresolved(_) | Outcome::Failed(_) | Outcome::NoBranch { .. } => {
                self.back = Box::default();
            }
        }
    }
}

impl Buffers {
    /// Copies a reply of an upstream or a resolver into the message, ready to be kept and passed
    /// on.
    fn bring_reply(
        &mut self,
        message: &Message<'_>,
        normalise: impl FnOnce(&Message<'_>, &mut [u8], &mut [u16]) -> Result<Normalised, Unfit>,
        security: Security,
        body_at: usize,
    ) -> Brought {
        let rcode = message.rcode();
        let Ok(normal) = normalise(message, &mut self.message, &mut self.ttl_offsets) else {
            return Brought::answer(Answer::failed(Failure::BadReply(rcode)));
        };
        // Same name, same length, same place: `exchange` compared the questions.
        if normal.body_at != body_at {
            return Brought::answer(Answer::failed(Failure::BadReply(rcode)));
        }
        // RFC 6672 §2.2: YXDOMAIN is an answer too: the name that a DNAME makes is too long.
        if !matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN | Rcode::YXDOMAIN) {
            let answer = Answer::failed(Failure::BadReply(rcode));
            // RFC 6891 §6.1.3, RFC 7873 §5.3: extended codes are about one hop, and this one is not
            // the client's.
            let rcode = if rcode.0 < 16 { rcode } else { Rcode::SERVFAIL };
            return Brought::answer(Answer { rcode, end: Ending::Failed, ..answer });
        }
        let is_truncated = message.header.flags.has(Flags::TC);
        let scope = message.edns.and_then(|edns| edns.option(wire::OptionCode::CLIENT_SUBNET));
        let answer = Answer {
            security,
            octets: normal.len - body_at,
            counts: [normal.answers, normal.authorities, normal.additionals],
            is_too_large: is_truncated,
            end: if is_truncated { Ending::Truncated } else { Ending::Complete },
            scope: scope.and_then(|data| data.get(3)).map_or(SubnetScope::OWN, |&bits| SubnetScope::of(bits)),
            ..Answer::empty(rcode, None)
        };
        Brought { answer: Some(answer), ttl_count: Some(normal.ttl_count), is_end: false }
    }

    /// Makes the answer of a split out of the answer of the branch that won.
    fn bring_branch(&mut self, split: &SplitStep, won: &Won<'_>, query: &Query<'_>) -> Brought {
        let Won { branch, report, progress, message } = won;
        let flags = message.header.flags;
        let header = &message.header;
        let end = if report.end.is_failure() {
            Ending::Failed
        } else if report.end == Ending::Interim {
            Ending::Interim
        } else if flags.has(Flags::TC) {
            Ending::Truncated
        } else {
            Ending::Complete
        };
        let mut answer = Answer {
            authoritative: flags.has(Flags::AA),
            security: report.security,
            octets: message.as_bytes().len().saturating_sub(message.records_at()),
            counts: [header.answers, header.authorities, header.additionals],
            is_too_large: flags.has(Flags::TC),
            end,
            scope: report.scope,
            errors: report.errors,
            ..Answer::empty(flags.rcode(), None)
        };
        if split.changes(*branch) {
            let note = progress.note();
            return Brought::answer(match split.change(*branch, note, message, query, &mut self.message) {
                Some(written) => changed(&answer, &written),
                None => Answer::failed(Failure::NotRewritten),
            });
        }
        let Ok(normal) = normalise(message, &mut self.message, &mut self.ttl_offsets) else {
            return Brought::answer(Answer::failed(Failure::NotRewritten));
        };
        answer.octets = normal.len - normal.body_at;
        // Without the record that carries the options of an upstream's reply.
        answer.counts = [normal.answers, normal.authorities, normal.additionals];
        Brought { answer: Some(answer), ttl_count: Some(normal.ttl_count), is_end: false }
    }

    /// Hands the answer of a branch, whose records stand in the message, to the query that was
    /// split.
    fn report(
        &mut self,
        split: &SplitStep,
        branch: u8,
        query: &Query<'_>,
        ended: &Ended<'_>,
        reply: &mut Reply<'_>,
    ) -> Verdict {
        let Ended { answer, event_set, options } = *ended;
        let question = query.question_bytes();
        let body_at = Header::LEN + question.len();
        put(&mut self.message, Header::LEN, question);
        put_header(answer, &mut self.message);
        let report = split.judge(branch, answer, &self.message, body_at);
        reply.set_report(BranchReport { event_set: *event_set, ..report });
        let end = body_at + answer.octets;
        if !reply.take(self.message.get(..end).unwrap_or(&[])) {
            return Verdict::Drop;
        }
        if !options.is_empty() {
            append_options(options, end, reply);
        }
        Verdict::Answered
    }
}

/// Appends an OPT with these options to the answer of a branch, which ends at `end`; leaves it as
/// it is if there is no room. Who takes the answer up drops the record and keeps the options.
#[cold]
fn append_options(options: &[u8], end: usize, reply: &mut Reply<'_>) {
    let length = (options.len() as u16).to_be_bytes();
    let fixed = [&[0, 0, Rtype::OPT.0 as u8][..], &[0; 6], &length].concat();
    let buffer = reply.buffer();
    let full = end + fixed.len() + options.len();
    let Some(place) = buffer.get_mut(end..full) else { return };
    let (head, data) = place.split_at_mut(fixed.len());
    head.copy_from_slice(&fixed);
    data.copy_from_slice(options);
    if let Some([high, low]) = buffer.get_mut(10..12) {
        [*high, *low] = u16::from_be_bytes([*high, *low]).saturating_add(1).to_be_bytes();
    }
    reply.set_len(full);
}
