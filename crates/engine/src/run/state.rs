//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A query under way.

use cache::KeyBits;
use wire::{EdeCode, Rcode};

use super::proof::Missed;
use super::want::Want;
use crate::answer::{Answer, Interim};
use crate::matchers::Facts;
use crate::ops::cache::{Fill, key_bits};
use crate::ops::forward::Sending;
use crate::ops::outgoing::{self, Outgoing};
use crate::program::{Position, Program};
use crate::query::request::{Environment, Request};
use events::EventSet;

/// One query under way.
pub(crate) struct Run<'q> {
    pub(crate) request: Request<'q>,
    pub(crate) interim: Interim,
    pub(crate) at: Position,
    /// What is told when the reply is complete.
    pub(crate) event_set: EventSet,
    /// What the query sent by later steps has besides its question.
    pub(crate) outgoing: Outgoing,
    pub(crate) fill: Option<Fill>,
    /// What is done when the query has its answer.
    pub(crate) after: Option<After>,
    /// Splits that it is inside of.
    pub(crate) depth: u8,
    /// The number of its last look at a shortlist; 0 before the first.
    pub(crate) looked: u64,
}

/// What is done when a query has its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum After {
    /// The answer is fetched anew behind the client's back: from this step on, and it fills this.
    Prefetch(Position, Fill),
    /// It is found out whether the answer can be given out early from now on.
    Prove(Missed),
    /// The reply does not say RA.
    ClearRa,
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

impl<'q> Run<'q> {
    /// Returns a query that has taken no step yet, and begins at `at`.
    #[inline(always)]
    pub(crate) fn new(request: Request<'q>, at: Position) -> Self {
        Self {
            request,
            interim: Interim { marks: 0, is_listed_alias: false, answer: None },
            at,
            event_set: EventSet::NONE,
            outgoing: Outgoing::default(),
            fill: None,
            after: None,
            depth: 0,
            looked: 0,
        }
    }

    /// Returns what conditions look at; the records of the answer there is stand in `message`.
    #[inline(always)]
    pub(crate) const fn facts<'f>(&'f self, env: &'f Environment<'f>, message: &'f [u8]) -> Facts<'f> {
        Facts { request: &self.request, interim: &self.interim, env, message }
    }

    /// Returns what a query to others has besides its question.
    #[inline]
    pub(crate) fn sending(&self, program: &Program) -> Sending<'_> {
        let options = match program.options(&self.outgoing) {
            Some(changes) => outgoing::options(changes, self.request.query),
            None => Box::default(),
        };
        Sending { outgoing: &self.outgoing, options, stale_after_ms: self.patience_ms(program) }
    }

    /// Returns DO and CD as upstreams are asked.
    #[inline(always)]
    pub(crate) fn key_bits(&self) -> KeyBits {
        let query = self.request.query;
        key_bits(self.outgoing.wants_dnssec(query), self.outgoing.checking_disabled(query))
    }

    /// Returns how long the client waits if a stale answer is at hand.
    #[inline]
    pub(crate) fn patience_ms(&self, program: &Program) -> Option<u32> {
        let fill = self.fill.filter(|fill| fill.has_stale)?;
        program.cache(fill.step).map(|cache| cache.rules.stale_client_timeout_ms)
    }
}

/// Nothing in the policy is responsible for this name.
#[cold]
pub(crate) const fn nothing() -> Answer {
    Answer::empty(Rcode::REFUSED, Some((EdeCode::NOT_AUTHORITATIVE, "")))
}
