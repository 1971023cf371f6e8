//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The interpreter: takes a query through its program until there is an answer or something to wait for.

use wire::{EdeCode, Flags, Folded, Header, Query, Rcode, Rtype};

use crate::client::{Client, Now};
use crate::counters::Counters;
use crate::finish::{Answer, put_record};
use crate::gate::cookie::Proof;
use crate::local::{LocalAnswer, LocalData};
use crate::names::Sought;
use crate::ops::cache::{Asked, Fill, Found, Outlook};
use crate::ops::forward::client_subnet;
use crate::program::{Matcher, Op, Position};
use crate::snapshot::Snapshot;
use crate::want::Want;

/// One query under way.
pub(crate) struct Run<'q> {
    pub(crate) query: &'q Query<'q>,
    pub(crate) client: &'q Client,
    pub(crate) proof: Proof,
    pub(crate) sought: Sought<'q>,
    pub(crate) at: Position,
    pub(crate) marks: u64,
    pub(crate) fill: Option<Fill>,
    pub(crate) answer: Option<Answer>,
    /// Set when the answer should be fetched anew behind the client's back: where that begins, and what it fills.
    pub(crate) errand: Option<(Position, Fill)>,
}

/// How a run ended.
pub(crate) enum End {
    /// With this answer.
    Answer(Answer),
    /// Without a word.
    Drop,
    /// It must wait.
    Wait(Want),
}

/// What the interpreter works with besides the query.
#[derive(Clone, Copy)]
pub(crate) struct Desktop<'w> {
    pub(crate) snapshot: &'w Snapshot,
    pub(crate) counters: &'w Counters,
    pub(crate) now: Now,
    /// The name asked for, in lower case.
    pub(crate) folded: &'w Folded,
    /// Where the TTL fields of an upstream's answer are, counted from the end of the question.
    pub(crate) ttl_offsets: &'w [u16],
}

impl Run<'_> {
    /// Takes steps until the end; the answer's octets are written to `message` after the question's place.
    pub(crate) fn interpret(&mut self, desktop: Desktop<'_>, message: &mut [u8]) -> End {
        let body_at = Header::LEN + self.query.question_bytes().len();
        let Desktop { snapshot, counters, now, folded, ttl_offsets } = desktop;
        let ops = snapshot.program.ops();
        // Ends: skips lead forward and calls are acyclic; `Program::new` saw to that.
        loop {
            let step = self.at.advance();
            let Some(op) = ops.get(step) else { break };
            match op {
                Op::SkipUnless(matcher, steps) => {
                    if !self.matches(matcher) {
                        self.at.skip(*steps);
                    }
                }
                Op::SkipIf(matcher, steps) => {
                    if self.matches(matcher) {
                        self.at.skip(*steps);
                    }
                }
                Op::Skip(steps) => self.at.skip(*steps),
                Op::Call(target) => self.at.call(*target),
                Op::Return => {
                    if !self.at.pop() {
                        break;
                    }
                }
                Op::Accept => break,
                Op::Drop => return End::Drop,
                Op::Mark(bit) => self.marks |= 1 << (bit & 63),
                Op::Local(local) => {
                    if let Some(answer) = self.look_up_local(local, message, body_at) {
                        counters.answers_local.bump();
                        return End::Answer(answer);
                    }
                }
                Op::Cache(cache) => {
                    if !self.query.header.flags.has(Flags::RD) {
                        return End::Answer(no_recursion());
                    }
                    let subnet =
                        if cache.rules.keeps_subnets_apart { client_subnet(self.query) } else { None };
                    let out = message.get_mut(body_at..).unwrap_or(&mut []);
                    let fill = |has_stale| Fill { step: step as u16, subnet, has_stale };

                    let asked = Asked { query: self.query, folded, name_hash: self.sought.hash(), subnet };
                    match cache.look_up(&asked, now.unix_seconds, out) {
                        Found::Answer(answer, outlook) => {
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
                            return End::Answer(answer);
                        }
                        Found::Nothing { has_stale } => {
                            counters.cache_misses.bump();
                            self.fill = Some(fill(has_stale));
                        }
                    }
                }
                Op::Reject(rcode, ede) => {
                    counters.answers_fixed.bump();
                    return End::Answer(Answer::empty(*rcode, ede.map(|code| (code, ""))));
                }
                Op::Forward(forward) => {
                    if !self.query.header.flags.has(Flags::RD) {
                        return End::Answer(no_recursion());
                    }
                    let stale_after_ms = self.fill.filter(|fill| fill.has_stale).and_then(|fill| {
                        match ops.get(usize::from(fill.step)) {
                            Some(Op::Cache(cache)) => Some(cache.rules.stale_client_timeout_ms),
                            _ => None,
                        }
                    });
                    return End::Wait(forward.want(
                        &snapshot.key,
                        self.query,
                        self.sought.hash(),
                        &self.at,
                        stale_after_ms,
                    ));
                }
                Op::Ttl(rule) => {
                    if self.answer.is_some()
                        && let Some(body) = message.get_mut(body_at..)
                    {
                        rule.rewrite(body, ttl_offsets);
                    }
                }
            }
        }
        match self.answer {
            Some(answer) => End::Answer(answer),
            // Nothing in the policy is responsible for this name.
            None => End::Answer(Answer::empty(Rcode::REFUSED, Some((EdeCode::NOT_AUTHORITATIVE, "")))),
        }
    }

    fn matches(&self, matcher: &Matcher) -> bool {
        match matcher {
            Matcher::Qname(set) => set.contains(&self.sought),
            Matcher::Qtype(types) => types.contains(&self.query.question.qtype),
            Matcher::Client(set) => set.contains(self.client.address),
            Matcher::Mark(bit) => self.marks >> (bit & 63) & 1 != 0,
        }
    }

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
                let written =
                    put_record(message, body_at, owner_at, Rtype::SOA, ttl, &local_soa(owner_at, ttl));
                answer.counts = [0, 1, 0];
                answer.octets = written.unwrap_or(0);
                answer.is_too_large = written.is_none();
            }
        }
        Some(answer)
    }
}

/// Octets of the data of a local SOA.
const LOCAL_SOA_OCTETS: usize = 2 + 16 + 20;

/// RFC 6303 §3: `@ nobody.invalid. 1 3600 1200 604800 10800`, the apex as a pointer.
fn local_soa(apex_at: usize, minimum: wire::Ttl) -> [u8; LOCAL_SOA_OCTETS] {
    let mut data = *b"..\x06nobody\x07invalid\0\0\0\0\x01\0\0\x0e\x10\0\0\x04\xb0\0\x09\x3a\x80....";
    if let Some(pointer) = data.first_chunk_mut::<2>() {
        *pointer = (0xc000 | apex_at as u16).to_be_bytes();
    }
    if let Some(field) = data.last_chunk_mut::<4>() {
        *field = minimum.seconds().to_be_bytes();
    }
    data
}

/// A query without RD learns nothing about what others asked for: that would be cache snooping.
fn no_recursion() -> Answer {
    Answer::empty(Rcode::REFUSED, Some((EdeCode::NOT_AUTHORITATIVE, "recursion not desired")))
}
