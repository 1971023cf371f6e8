//! What happens when a query has to wait: it is put aside, goes on with the outcome, and may fill the cache.

use std::sync::Arc;

use wire::reply::normalise;
use wire::{EdeCode, Flags, Header, Message, Query, Rcode};

use crate::client::{Client, Now};
use crate::counters::Counters;
use crate::explain::Recorder;
use crate::finish::{Answer, To, finish};
use crate::gate::cookie::Proof;
use crate::names::Sought;
use crate::ops::cache::{Asked, Fill};
use crate::ops::outgoing::Outgoing;
use crate::program::{Op, Position};
use crate::reply::Reply;
use crate::run::{Desktop, End, Run, Workspace};
use crate::snapshot::Snapshot;
use crate::trace::NoTrace;
use crate::want::{Failure, Outcome, Want};
use crate::{Engine, Verdict};

/// Octets of the largest message.
const MESSAGE_OCTETS_MAX: usize = 65_535;
/// Records of an upstream's reply whose TTLs we can age; replies with more are refused.
const RECORDS_MAX: usize = 4096;
/// Errands that one batch may cause; more popular entries than that expire at the same moment only in tests.
const ERRANDS_MAX: usize = 64;

/// Whether this asker's outcome is the one to remember; the others that shared the fetch only read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The first to be resumed: fills the cache.
    First,
    /// A later one.
    Other,
}

/// A query put aside. Keeps its snapshot: a position means nothing in another program.
pub struct Suspended {
    snapshot: Arc<Snapshot>,
    query: Box<[u8]>,
    client: Client,
    proof: Proof,
    name_hash: u64,
    at: Position,
    marks: u64,
    outgoing: Outgoing,
    fill: Option<Fill>,
    want: Want,
    /// Who watches what happens to it.
    recorder: Option<Recorder>,
}

impl Suspended {
    /// Puts a query aside that waits for `want`.
    #[cold]
    pub(crate) fn new(
        snapshot: &Arc<Snapshot>,
        run: &Run<'_>,
        want: Want,
        recorder: Option<Recorder>,
    ) -> Box<Self> {
        Box::new(Self {
            snapshot: Arc::clone(snapshot),
            query: run.query.as_bytes().into(),
            client: *run.client,
            proof: run.proof,
            name_hash: run.sought.hash(),
            at: run.at,
            marks: run.marks,
            outgoing: run.outgoing,
            fill: run.fill,
            want,
            recorder,
        })
    }

    /// Returns what it waits for.
    pub const fn want(&self) -> &Want {
        &self.want
    }

    /// Returns who watches what happens to it, if somebody does.
    pub const fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// Returns whose query it is (for an errand: the client whose query caused it).
    pub const fn client(&self) -> &Client {
        &self.client
    }
}

/// Buffers that queries with a fetch behind them use, and steps that change answers.
pub(crate) struct Scratch {
    pub(crate) message: Box<[u8]>,
    /// For steps that need room.
    pub(crate) spare: Box<[u8]>,
    pub(crate) ttl_offsets: Box<[u16]>,
    #[expect(clippy::vec_box, reason = "they come and go as boxes")]
    errands: Vec<Box<Suspended>>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self {
            message: vec![0; MESSAGE_OCTETS_MAX].into_boxed_slice(),
            spare: vec![0; MESSAGE_OCTETS_MAX].into_boxed_slice(),
            ttl_offsets: vec![0; RECORDS_MAX].into_boxed_slice(),
            errands: Vec::with_capacity(ERRANDS_MAX),
        }
    }

    /// Completes the reply in the message and copies it out.
    pub(crate) fn send(
        &mut self,
        snapshot: &Snapshot,
        counters: &Counters,
        now: Now,
        (to, answer): (&To<'_>, &Answer),
        reply: &mut Reply<'_>,
    ) -> Verdict {
        // The caller's buffer may be smaller than what the client would take.
        let room = reply.buffer().len().min(self.message.len());
        let Some(message) = self.message.get_mut(..room) else { return Verdict::Drop };
        let mut finished = Reply::new(message);
        let is_cut = finish(snapshot, now, to, answer, &mut finished);
        let len = finished.len();
        if let (Some(out), Some(from)) = (reply.buffer().get_mut(..len), self.message.get(..len)) {
            out.copy_from_slice(from);
        }
        reply.set_len(len);
        counters.count(answer.rcode, is_cut);
        if len == 0 { Verdict::Drop } else { Verdict::Answered }
    }
}

/// What an outcome means before the rest of the program has seen it.
struct Brought {
    answer: Answer,
    ttl_count: usize,
    /// An upstream said that the answer is for every subnet (RFC 7871 §7.2.1, scope zero).
    is_for_every_subnet: bool,
    /// Worth keeping as an answer; otherwise it is a failure.
    is_usable: bool,
    /// Cut by the last upstream's transport: passed on, not kept.
    is_truncated: bool,
}

impl Engine {
    /// Goes on with a deferred query. May defer again.
    ///
    /// Of several that shared a fetch, exactly one is resumed with [`Share::First`]; it may be one without a client.
    pub fn resume(
        &mut self,
        suspended: Box<Suspended>,
        outcome: Outcome<'_>,
        share: Share,
        reply: &mut Reply<'_>,
    ) -> Verdict {
        self.counters.resumed.bump();
        let Ok(query) = Query::parse(&suspended.query) else { return Verdict::Drop };
        let snapshot = &*suspended.snapshot;
        let to = To { query: &query, client: &suspended.client, proof: suspended.proof };
        let body_at = Header::LEN + query.question_bytes().len();
        if let Some(recorder) = &suspended.recorder {
            recorder.resumed(&outcome);
        }
        let brought = match outcome {
            Outcome::Reply(message) => {
                let trusts_ad = trusts_ad(snapshot, suspended.at);
                bring(message, trusts_ad, body_at, &mut self.scratch)
            }
            Outcome::Failed(failure) => failed(failure),
        };
        if !brought.is_usable {
            return self.resume_failed(&suspended, &to, &brought.answer, share, reply);
        }
        query.question.qname.fold_into(&mut self.folded);
        let mut run = Run {
            query: &query,
            client: &suspended.client,
            proof: suspended.proof,
            sought: Sought::new(&self.folded, suspended.name_hash),
            at: suspended.at,
            marks: suspended.marks,
            outgoing: suspended.outgoing,
            fill: suspended.fill,
            answer: Some(brought.answer),
            errand: None,
        };
        let folded = &self.folded;
        let Scratch { message, spare, ttl_offsets, .. } = &mut self.scratch;
        let ttl_count = Some(brought.ttl_count);
        let mut work = Workspace { message, spare, ttl_offsets, ttl_count, events: &mut self.events };
        let desktop =
            Desktop { snapshot, counters: &self.counters, now: self.now, folded, random: &self.random };
        let end = match suspended.recorder.as_ref().map(Recorder::share) {
            None => run.interpret(desktop, &mut work, &mut NoTrace),
            Some(mut recorder) => run.interpret(desktop, &mut work, &mut recorder),
        };
        let answer = match end {
            End::Answer(answer) => answer,
            End::Drop => {
                self.counters.dropped.bump();
                return Verdict::Drop;
            }
            End::Wait(want) => {
                self.counters.deferred.bump();
                let Run { at, marks, outgoing, fill, .. } = run;
                let mut suspended = suspended;
                (suspended.at, suspended.marks, suspended.fill, suspended.want) = (at, marks, fill, want);
                suspended.outgoing = outgoing;
                return Verdict::Defer(suspended);
            }
        };
        if share == Share::First
            && !brought.is_truncated
            && let Some(fill) = run.fill
            && let Some(Op::Cache(cache)) = snapshot.program.ops().get(usize::from(fill.step))
            && let Some((body, ttl_offsets)) = work.body(&answer.shape(body_at))
        {
            let Fill { subnet, bits, .. } = fill;
            let asked = Asked { query: &query, folded, name_hash: suspended.name_hash, subnet, bits };
            let is_for_all = brought.is_for_every_subnet;
            cache.store(&asked, self.now.unix_seconds, &answer, body, ttl_offsets, is_for_all);
        }
        self.scratch.send(snapshot, &self.counters, self.now, (&to, &answer), reply)
    }

    /// Answers from the stale data that `suspended` has at hand, because its client waited long enough
    /// (RFC 8767 §5). The caller keeps `suspended`, as an errand that goes on without a client.
    pub fn answer_stale(&mut self, suspended: &Suspended, reply: &mut Reply<'_>) -> Verdict {
        let Ok(query) = Query::parse(&suspended.query) else { return Verdict::Drop };
        let to = To { query: &query, client: &suspended.client, proof: suspended.proof };
        match self.stale(suspended, &query) {
            Some(answer) => {
                self.counters.cache_stale.bump();
                self.scratch.send(&suspended.snapshot, &self.counters, self.now, (&to, &answer), reply)
            }
            None => Verdict::Drop,
        }
    }

    /// Returns the next piece of work that no client waits for; the worker hands it to
    /// [`Desk::errand`](crate::Desk::errand).
    pub fn next_errand(&mut self) -> Option<Box<Suspended>> {
        self.scratch.errands.pop()
    }

    /// Prepares a fetch that no client waits for, from the step after a cache look-up on.
    #[cold]
    pub(crate) fn begin_errand(
        &mut self,
        to: &To<'_>,
        name_hash: u64,
        (marks, outgoing): (u64, Outgoing),
        (at, fill): (Position, Fill),
    ) {
        if self.scratch.errands.len() >= ERRANDS_MAX {
            return;
        }
        let mut run = Run {
            query: to.query,
            client: to.client,
            proof: Proof::None,
            sought: Sought::new(&self.folded, name_hash),
            at,
            marks,
            outgoing,
            fill: Some(fill),
            answer: None,
            errand: None,
        };
        let desktop = Desktop {
            snapshot: &self.snapshot,
            counters: &self.counters,
            now: self.now,
            folded: &self.folded,
            random: &self.random,
        };
        let Scratch { message, spare, ttl_offsets, .. } = &mut self.scratch;
        let mut work = Workspace { message, spare, ttl_offsets, ttl_count: None, events: &mut self.events };
        if let End::Wait(want) = run.interpret(desktop, &mut work, &mut NoTrace) {
            self.counters.prefetches.bump();
            let suspended = Suspended::new(&self.snapshot, &run, want, None);
            self.scratch.errands.push(suspended);
        }
    }

    /// Nothing usable came: remembers that, and answers with stale data or the failure.
    #[cold]
    fn resume_failed(
        &mut self,
        suspended: &Suspended,
        to: &To<'_>,
        failure: &Answer,
        share: Share,
        reply: &mut Reply<'_>,
    ) -> Verdict {
        let snapshot = &*suspended.snapshot;
        if let Some(fill) = &suspended.fill
            && share == Share::First
            && let Some(Op::Cache(cache)) = snapshot.program.ops().get(usize::from(fill.step))
        {
            let folded = to.query.question.qname.to_folded();
            let asked = Asked {
                query: to.query,
                folded: &folded,
                name_hash: suspended.name_hash,
                subnet: fill.subnet,
                bits: fill.bits,
            };
            cache.store_failure(&asked, self.now.unix_seconds, failure.rcode);
        }
        match self.stale(suspended, to.query) {
            Some(answer) => {
                self.counters.cache_stale.bump();
                self.scratch.send(snapshot, &self.counters, self.now, (to, &answer), reply)
            }
            None => self.scratch.send(snapshot, &self.counters, self.now, (to, failure), reply),
        }
    }

    /// Copies the stale answer that `suspended` has at hand into the scratch message.
    fn stale(&mut self, suspended: &Suspended, query: &Query<'_>) -> Option<Answer> {
        let fill = suspended.fill.as_ref().filter(|fill| fill.has_stale)?;
        let Some(Op::Cache(cache)) = suspended.snapshot.program.ops().get(usize::from(fill.step)) else {
            return None;
        };
        let body_at = Header::LEN + query.question_bytes().len();
        let out = self.scratch.message.get_mut(body_at..)?;
        let folded = query.question.qname.to_folded();
        let Fill { subnet, bits, .. } = *fill;
        let asked = Asked { query, folded: &folded, name_hash: suspended.name_hash, subnet, bits };
        cache.look_up_stale(&asked, self.now.unix_seconds, out)
    }
}

/// Returns whether the forward step right before `at` believes its group's AD.
fn trusts_ad(snapshot: &Snapshot, at: Position) -> bool {
    let step = usize::from(at.next()).checked_sub(1).and_then(|step| snapshot.program.ops().get(step));
    matches!(step, Some(Op::Forward(forward)) if forward.trusts_ad)
}

/// Copies an upstream's reply into the scratch message, ready to be kept and passed on.
fn bring(message: &Message<'_>, trusts_ad: bool, body_at: usize, scratch: &mut Scratch) -> Brought {
    let rcode = message.rcode();
    let Ok(normal) = normalise(message, &mut scratch.message, &mut scratch.ttl_offsets) else {
        return failed(Failure::BadReply(rcode));
    };
    // Same name, same length, same place: `fetch` compared the questions.
    if normal.body_at != body_at {
        return failed(Failure::BadReply(rcode));
    }
    // RFC 6672 §2.2: YXDOMAIN is an answer too: the name that a DNAME makes is too long.
    if !matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN | Rcode::YXDOMAIN) {
        let mut brought = failed(Failure::BadReply(rcode));
        brought.answer.rcode = rcode;
        return brought;
    }
    let is_truncated = message.header.flags.has(Flags::TC);
    let answer = Answer {
        authentic: trusts_ad && message.header.flags.has(Flags::AD),
        octets: normal.len - body_at,
        counts: [normal.answers, normal.authorities, normal.additionals],
        is_too_large: is_truncated,
        ..Answer::empty(rcode, None)
    };
    let scope = message.edns.and_then(|edns| edns.option(wire::OptionCode::CLIENT_SUBNET));
    Brought {
        answer,
        ttl_count: normal.ttl_count,
        is_for_every_subnet: matches!(scope, Some([_, _, _, 0, ..])),
        is_usable: true,
        is_truncated,
    }
}

fn failed(failure: Failure) -> Brought {
    let (code, text): (EdeCode, &'static str) = failure.ede();
    Brought {
        answer: Answer::empty(Rcode::SERVFAIL, Some((code, text))),
        ttl_count: 0,
        is_for_every_subnet: false,
        is_usable: false,
        is_truncated: false,
    }
}
