//! The buffers of a worker's engine, which queries borrow.

use super::context::Context;
use super::memo::Memo;
use super::suspended::Suspended;
use crate::answer::Answer;
use crate::answer::finish::{To, complete};
use crate::answer::reply::Reply;
use crate::ops::edit::rotate;
use crate::ops::quickest::Distances;
use crate::query::request::{Environment, Request};
use edit::{Draft, Shape, ttl_offsets};
use events::EventSink;

/// Records of an upstream's reply whose TTLs we can age; replies with more are refused.
const RECORDS_MAX: usize = 4096;
/// Prefetches that one batch may cause; more popular entries than that expire at the same moment
/// only in tests.
pub(crate) const PREFETCHES_MAX: usize = 64;

/// What steps write to.
pub(crate) struct Workspace<'w> {
    /// The message in the making: the records of the answer start after the question's place.
    pub(crate) message: &'w mut [u8],
    /// The reply's own buffer where the message is made elsewhere, because steps work on it: taken
    /// by what writes an answer there that no step works on.
    pub(crate) direct: Option<&'w mut [u8]>,
    /// Free for any step to use.
    pub(crate) spare: &'w mut [u8],
    /// Where the TTL fields of the answer are, counted from the end of the question.
    pub(crate) ttl_offsets: &'w mut [u16],
    /// How many TTL fields there are; `None` when the answer changed since they were looked for.
    pub(crate) ttl_count: Option<usize>,
    /// Where steps leave what the world outside is to know.
    pub(crate) events: &'w mut EventSink,
    /// How fast addresses connect.
    pub(crate) distances: &'w mut Distances,
    /// Work that no client waits for.
    #[expect(clippy::vec_box, reason = "they come and go as boxes")]
    pub(crate) prefetches: &'w mut Vec<Box<Suspended>>,
    /// What is remembered from query to query.
    pub(crate) memo: &'w mut Memo,
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

    /// Lends everything out for another answer but the first octets of `spare`.
    pub(crate) fn behind(&mut self, spare_octets: usize) -> Workspace<'_> {
        let Workspace { message, spare, ttl_offsets, events, distances, prefetches, memo, .. } = self;
        let spare = spare.get_mut(spare_octets..).unwrap_or(&mut []);
        let (direct, ttl_count) = (None, None);
        Workspace { message, direct, spare, ttl_offsets, ttl_count, events, distances, prefetches, memo }
    }
}

/// Buffers that queries with a fetch behind them use, and steps that change answers.
pub(crate) struct Buffers {
    pub(crate) message: Box<[u8]>,
    /// For steps that need room.
    pub(crate) spare: Box<[u8]>,
    pub(crate) ttl_offsets: Box<[u16]>,
    #[expect(clippy::vec_box, reason = "they come and go as boxes")]
    pub(crate) prefetches: Vec<Box<Suspended>>,
    pub(crate) distances: Distances,
    pub(crate) memo: Box<Memo>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self {
            message: vec![0; wire::MESSAGE_OCTETS_MAX].into_boxed_slice(),
            spare: vec![0; wire::MESSAGE_OCTETS_MAX].into_boxed_slice(),
            ttl_offsets: vec![0; RECORDS_MAX].into_boxed_slice(),
            prefetches: Vec::with_capacity(PREFETCHES_MAX),
            distances: Distances::default(),
            memo: Box::default(),
        }
    }

    /// Has addresses of the answer in the message take turns in being the first.
    #[cold]
    pub(crate) fn rotate(&mut self, answer: &Answer, request: &Request<'_>, env: &Environment<'_>) {
        let shape = answer.shape(request.body_at());
        rotate(&mut Draft { message: &mut self.message, spare: &mut self.spare, shape }, request, env);
    }

    /// Completes the reply in the message and copies it out. Returns whether there is one.
    pub(crate) fn send(
        &mut self,
        context: &Context<'_>,
        to: &To<'_>,
        answer: &Answer,
        reply: &mut Reply<'_>,
    ) -> bool {
        // The caller's buffer may be smaller than what the client would take.
        let room = reply.buffer().len().min(self.message.len());
        let Some(message) = self.message.get_mut(..room) else { return false };
        let mut finished = Reply::new(message);
        let is_written = complete(context, to, answer, &mut finished);
        is_written & reply.take(finished.bytes())
    }

    /// Lends the buffers out.
    #[inline(always)]
    pub(crate) fn workspace<'w>(
        &'w mut self,
        events: &'w mut EventSink,
        ttl_count: Option<usize>,
    ) -> Workspace<'w> {
        Workspace {
            message: &mut self.message,
            direct: None,
            spare: &mut self.spare,
            ttl_offsets: &mut self.ttl_offsets,
            ttl_count,
            events,
            distances: &mut self.distances,
            prefetches: &mut self.prefetches,
            memo: &mut self.memo,
        }
    }
}
