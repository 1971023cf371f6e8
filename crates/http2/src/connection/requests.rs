//! Requests, put together from frames: heads, bodies, and when they are handed over.

use super::{
    Block, Connection, Event, Fault, Leave, Request, RequestFault, SPARE_HEADS_MAX, depends_on, stream_window,
};
use crate::frame::{self, Code, Flags, Frame, Kind};
use crate::head::Bounds;
use crate::streams::{Known, Stage, Stream};

/// Frames that a head may be spread over: of the size that everybody sends, one is enough for what
/// we take.
const HEAD_FRAMES_MAX: u32 = 32;
/// Octets of heads of requests that are not handed over yet, because their bodies are under way or
/// because requests are held back: a few hundred for each of the usual number of streams. Further
/// requests are refused, to be sent again.
const HEADS_HELD_OCTETS_MAX: usize = 128 << 10;

impl Connection {
    pub(super) fn take_data(
        &mut self,
        frame: &Frame<'_>,
        request: &mut Request,
    ) -> Result<Option<Event>, Fault> {
        let id = frame.stream;
        let octets = u32::try_from(frame.payload.len()).unwrap_or(u32::MAX);
        if id == 0 {
            return Err(Fault::Connection(Code::PROTOCOL_ERROR));
        }
        let Some(data) = frame::unpadded(frame) else { return Err(Fault::Connection(Code::PROTOCOL_ERROR)) };
        self.credit -= i64::from(octets);
        if self.credit < 0 {
            return Err(Fault::Connection(Code::FLOW_CONTROL_ERROR));
        }
        let Some(stream) = self.streams.find(id) else {
            self.give_back(octets);
            return match self.streams.known(id) {
                Known::Idle | Known::Skipped => Err(Fault::Connection(Code::PROTOCOL_ERROR)),
                Known::Reset => Ok(None),
                Known::Closed => Err(Fault::Connection(Code::STREAM_CLOSED)),
            };
        };
        stream.held += octets;
        let is_over = stream.held + stream.owed > stream_window(&self.limits);
        let Stage::Body { head, body, .. } = &mut stream.stage else {
            return Err(Fault::Stream(id, Code::STREAM_CLOSED));
        };
        if is_over {
            return Err(Fault::Stream(id, Code::FLOW_CONTROL_ERROR));
        }
        if stream.discarded > 0 || body.len() + data.len() > self.limits.body_octets_max {
            *body = Vec::new();
            return Ok(self.discard(id, frame.flags.has(Flags::END_STREAM), request));
        }
        body.extend_from_slice(data);
        if !frame.flags.has(Flags::END_STREAM) {
            return Ok(None);
        }
        if head.content_length().is_some_and(|length| length != body.len() as u64) {
            return Err(Fault::Stream(id, Code::PROTOCOL_ERROR));
        }
        stream.has_ended = true;
        Ok(self.hand_over(id, RequestFault::None, request))
    }

    /// Throws away what came of a body that is too large, and lets the client go on: a request is
    /// answered when all of it was sent, or too much. A client that is cut off instead may never
    /// look at the response (RFC 9113 §8.1).
    fn discard(&mut self, id: u32, has_ended: bool, request: &mut Request) -> Option<Event> {
        let stream = self.streams.find(id)?;
        let octets = std::mem::take(&mut stream.held);
        stream.discarded += octets as usize;
        stream.owed += octets;
        stream.has_ended = has_ended;
        let is_over = has_ended || stream.discarded > self.limits.discarded_octets_max;
        if !is_over && stream.owed >= stream_window(&self.limits) / 2 {
            frame::write_number(&mut self.output, Kind::WINDOW_UPDATE, id, std::mem::take(&mut stream.owed));
        }
        self.give_back(octets);
        if is_over { self.hand_over(id, RequestFault::BodyTooLarge, request) } else { None }
    }

    /// Hands over a request whose body was waited for.
    pub(super) fn hand_over(
        &mut self,
        id: u32,
        trouble: RequestFault,
        request: &mut Request,
    ) -> Option<Event> {
        let holds = self.holds_requests;
        let stream = self.streams.find(id)?;
        let Stage::Body { head, body, .. } = std::mem::replace(&mut stream.stage, Stage::Asked) else {
            return None;
        };
        stream.stage = Stage::Whole { head, body, trouble };
        self.whole += 1;
        if holds { None } else { self.hand_over_whole(id, request) }
    }

    /// Hands over the first request that was held back.
    pub(super) fn hand_over_held(&mut self, request: &mut Request) -> Option<Event> {
        let is_whole = |stream: &&Stream| matches!(stream.stage, Stage::Whole { .. });
        let first = self.streams.iter().filter(is_whole).map(|stream| stream.id).min();
        first.and_then(|id| self.hand_over_whole(id, request))
    }

    /// Hands over a request that is whole.
    fn hand_over_whole(&mut self, id: u32, request: &mut Request) -> Option<Event> {
        let stream = self.streams.find(id)?;
        let Stage::Whole { mut head, body, trouble } = std::mem::replace(&mut stream.stage, Stage::Asked)
        else {
            return None;
        };
        let held = std::mem::take(&mut stream.held);
        self.whole -= 1;
        self.heads_held -= head.octets_held();
        std::mem::swap(&mut request.head, &mut *head);
        request.body = body;
        request.stream = id;
        request.trouble = trouble;
        if self.spare_heads.len() < SPARE_HEADS_MAX && head.is_small() {
            self.spare_heads.push(head);
        }
        self.idle_frames = 0;
        self.give_back(held);
        Some(Event::Request)
    }

    pub(super) fn take_headers(
        &mut self,
        frame: &Frame<'_>,
        now_ms: u64,
        request: &mut Request,
    ) -> Result<Option<Event>, Fault> {
        if frame.stream.is_multiple_of(2) {
            return Err(Fault::Connection(Code::PROTOCOL_ERROR));
        }
        let Some(mut fragment) = frame::unpadded(frame) else {
            return Err(Fault::Connection(Code::PROTOCOL_ERROR));
        };
        let mut depends_on_itself = false;
        if frame.flags.has(Flags::PRIORITY) {
            let Some((priority, rest)) = fragment.split_first_chunk::<5>() else {
                return Err(Fault::Connection(Code::FRAME_SIZE_ERROR));
            };
            depends_on_itself = depends_on(priority) == frame.stream;
            fragment = rest;
        }
        if frame.flags.has(Flags::END_HEADERS) {
            return self.head(frame.stream, frame.flags, depends_on_itself, fragment, now_ms, request);
        }
        self.block = Some(Block {
            stream: frame.stream,
            flags: frame.flags,
            depends_on_itself,
            fragment: fragment.to_vec(),
            frames: 1,
            since_ms: now_ms,
        });
        Ok(None)
    }

    pub(super) fn take_continuation(
        &mut self,
        frame: &Frame<'_>,
        now_ms: u64,
        request: &mut Request,
    ) -> Result<Option<Event>, Fault> {
        let Some(mut block) = self.block.take() else { return Err(Fault::Connection(Code::PROTOCOL_ERROR)) };
        block.frames += 1;
        if block.frames > HEAD_FRAMES_MAX
            || block.fragment.len() + frame.payload.len() > 2 * self.limits.head_octets_max
        {
            // CVE-2024-27316. What is only somewhat too large is told so.
            return Err(Fault::Connection(Code::ENHANCE_YOUR_CALM));
        }
        block.fragment.extend_from_slice(frame.payload);
        if frame.flags.has(Flags::END_HEADERS) {
            let Block { stream, flags, depends_on_itself, fragment, .. } = block;
            return self.head(stream, flags, depends_on_itself, &fragment, now_ms, request);
        }
        self.block = Some(block);
        Ok(None)
    }

    /// Works on a whole head.
    fn head(
        &mut self,
        id: u32,
        flags: Flags,
        depends_on_itself: bool,
        fragment: &[u8],
        now_ms: u64,
        request: &mut Request,
    ) -> Result<Option<Event>, Fault> {
        let head = &mut request.head;
        head.clear(Bounds { octets_max: self.limits.head_octets_max, fields_max: self.limits.fields_max });
        // Whatever becomes of it: the table has to stay in step.
        if self.decoder.decode(fragment, head).is_err() {
            return Err(Fault::Connection(Code::COMPRESSION_ERROR));
        }
        let has_ended = flags.has(Flags::END_STREAM);
        if let Some(stream) = self.streams.find(id) {
            let Stage::Body { head: first, body, .. } = &stream.stage else {
                return Err(Fault::Stream(id, Code::STREAM_CLOSED));
            };
            let is_too_large = stream.discarded > 0;
            let is_whole =
                is_too_large || first.content_length().is_none_or(|length| length == body.len() as u64);
            if !has_ended || !head.is_trailer() || !is_whole {
                return Err(Fault::Stream(id, Code::PROTOCOL_ERROR));
            }
            stream.has_ended = true;
            let trouble = if is_too_large { RequestFault::BodyTooLarge } else { RequestFault::None };
            return Ok(self.hand_over(id, trouble, request));
        }
        if id <= self.streams.last() {
            return match self.streams.known(id) {
                Known::Reset => Ok(None),
                Known::Closed => Err(Fault::Connection(Code::STREAM_CLOSED)),
                Known::Idle | Known::Skipped => Err(Fault::Connection(Code::PROTOCOL_ERROR)),
            };
        }
        self.streams.note(id);
        if matches!(self.leave, Leave::Last(last) if id > last) {
            // The client was told that it is not answered, and neither is the rest of it.
            self.streams.note_reset(id);
            return Ok(None);
        }
        if depends_on_itself {
            return Err(Fault::Stream(id, Code::PROTOCOL_ERROR));
        }
        let is_too_large = head.is_too_large();
        let is_short = has_ended && head.content_length().is_some_and(|length| length != 0);
        if !is_too_large && (head.is_malformed() || is_short) {
            return Err(Fault::Stream(id, Code::PROTOCOL_ERROR));
        }
        if self.streams.len() >= self.limits.streams_max as usize {
            return Err(Fault::Stream(id, Code::REFUSED_STREAM));
        }
        let is_whole = has_ended || is_too_large;
        let trouble = if is_too_large { RequestFault::HeadTooLarge } else { RequestFault::None };
        let is_asked = is_whole && !self.holds_requests;
        let stage = if is_asked {
            Stage::Asked
        } else {
            if self.heads_held + head.octets_held() > HEADS_HELD_OCTETS_MAX {
                // It is no mistake of the client's.
                self.reset(id, Code::REFUSED_STREAM);
                return Ok(None);
            }
            self.heads_held += head.octets_held();
            let mut kept = self.spare_heads.pop().unwrap_or_default();
            std::mem::swap(&mut *kept, head);
            if is_whole {
                self.whole += 1;
                Stage::Whole { head: kept, body: Vec::new(), trouble }
            } else {
                Stage::Body { head: kept, body: Vec::new(), since_ms: now_ms }
            }
        };
        self.streams.open(Stream {
            id,
            stage,
            window: self.first_window,
            has_ended,
            held: 0,
            discarded: 0,
            owed: 0,
        });
        if !is_asked {
            return Ok(None);
        }
        request.stream = id;
        request.body.clear();
        request.trouble = trouble;
        self.idle_frames = 0;
        Ok(Some(Event::Request))
    }
}
