//! One connection: frames in, requests out; responses in, frames out.

mod control;
mod requests;
mod responses;

use std::collections::VecDeque;

use crate::frame::{self, Code, Flags, Frame, Kind, PREFACE, Unsplit, WINDOW_AT_FIRST, setting};
use crate::head::Head;
use crate::hpack::{Decoder, Encoder};
use crate::streams::{Stage, Stream, Streams};

/// Octets of output whose memory is kept for the next.
const OUTPUT_KEPT_OCTETS: usize = 4096;
/// Ends of responses whose memory is kept for the next.
const ENDS_KEPT: usize = 128;
/// Heads whose memory is kept for the next requests with bodies.
const SPARE_HEADS_MAX: usize = 4;
/// The ping that asks a client whether it has heard that we leave.
const GOODBYE_PING: &[u8; 8] = b"goodbye!";

/// What one connection may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Streams that are open at once.
    pub streams_max: u32,
    /// Octets of a head, packed or not.
    pub head_octets_max: usize,
    /// Fields of a head.
    pub fields_max: usize,
    /// Octets of a body.
    pub body_octets_max: usize,
    /// Octets of a body that is too large, which are read and thrown away: many clients look for
    /// the response only when all is sent.
    pub discarded_octets_max: usize,
    /// Octets of bodies that are kept, of all streams together.
    pub window_octets: u32,
    /// Streams that the client gives up before they are answered, beyond those that are
    /// (CVE-2023-44487).
    pub resets_max: u32,
    /// Streams that we reset because of mistakes.
    pub mistakes_max: u32,
    /// Frames without a request among them.
    pub idle_frames_max: u32,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing, until more octets come.
    Starved,
    /// To answer the request that was handed over.
    Request,
    /// To forget what was begun for this stream: the client has given it up.
    Gone(u32),
    /// To end the connection when the output is sent.
    Broken,
}

/// What is wrong with a request that is answered nevertheless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestFault {
    /// Nothing.
    #[default]
    None,
    /// The head is larger than allowed; part of it is missing.
    HeadTooLarge,
    /// The body is larger than allowed; part of it is missing.
    BodyTooLarge,
    /// The body took longer than allowed to come.
    BodyTooSlow,
}

/// A request. Its memory is used again for the next.
#[derive(Debug, Default)]
pub struct Request {
    /// The stream that the response is for.
    pub stream: u32,
    /// Its head.
    pub head: Head,
    /// Its body.
    pub body: Vec<u8>,
    /// What is wrong with it.
    pub trouble: RequestFault,
}

/// A field of a response; names are in lower case.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    /// The same in many responses: clients keep it.
    Lasting(&'static str, &'a [u8]),
    /// Another one each time.
    Passing(&'a str, &'a [u8]),
}

/// A response.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The status, of three digits.
    pub status: u16,
    /// The fields.
    pub fields: &'a [Field<'a>],
    /// The body.
    pub body: &'a [u8],
}

/// What is wrong with what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// With a stream.
    Stream(u32, Code),
    /// With the connection.
    Connection(Code),
}

/// A head in several frames.
#[derive(Debug)]
struct Block {
    stream: u32,
    flags: Flags,
    depends_on_itself: bool,
    fragment: Vec<u8>,
    frames: u32,
    since_ms: u64,
}

/// How we take leave (RFC 9113 §6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    /// We do not.
    Stays,
    /// The client was told, and may not have heard it yet.
    Told,
    /// Streams after this one are not answered.
    Last(u32),
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    decoder: Decoder,
    encoder: Encoder,
    streams: Streams,
    /// Octets of the preface that have come.
    preface: usize,
    has_settings: bool,
    /// Whether it has heard ours.
    knows_settings: bool,
    block: Option<Block>,
    /// Octets that the client takes, over all streams.
    window: i64,
    /// Octets that a new stream takes.
    first_window: i64,
    /// Octets that the client may still send.
    credit: i64,
    /// Octets that are no longer kept, and that it was not given back yet.
    owed: u32,
    resets: u32,
    mistakes: u32,
    idle_frames: u32,
    leave: Leave,
    is_broken: bool,
    #[expect(clippy::vec_box, reason = "they move into streams and back, which keep them boxed")]
    spare_heads: Vec<Box<Head>>,
    output: Vec<u8>,
    sent: usize,
    /// Where responses end in the output, counted from its begin; those that were sent are taken
    /// out.
    ends: VecDeque<usize>,
    /// Whether requests are held back.
    holds_requests: bool,
    /// How many are.
    whole: usize,
    /// Octets of heads of requests that are not handed over yet.
    heads_held: usize,
    /// Octets of responses that wait for the client's windows, as long as they take memory.
    held: usize,
    /// Octets of responses that were put into the output, since the connection began.
    written: u64,
}

impl Connection {
    /// Begins a connection; there is output at once.
    pub fn new(limits: Limits) -> Self {
        let mut output = Vec::with_capacity(64);
        let settings = [
            (setting::MAX_CONCURRENT_STREAMS, limits.streams_max),
            (setting::INITIAL_WINDOW_SIZE, stream_window(&limits)),
            (setting::MAX_HEADER_LIST_SIZE, u32::try_from(limits.head_octets_max).unwrap_or(u32::MAX)),
        ];
        frame::write_head(&mut output, settings.len() * 6, Kind::SETTINGS, Flags::NONE, 0);
        for (name, value) in settings {
            output.extend_from_slice(&name.to_be_bytes());
            output.extend_from_slice(&value.to_be_bytes());
        }
        let more = i64::from(limits.window_octets) - WINDOW_AT_FIRST;
        if let Some(more) = u32::try_from(more).ok().filter(|&more| more > 0) {
            frame::write_number(&mut output, Kind::WINDOW_UPDATE, 0, more);
        }
        Self {
            limits,
            decoder: Decoder::default(),
            encoder: Encoder::default(),
            streams: Streams::default(),
            preface: 0,
            has_settings: false,
            knows_settings: false,
            block: None,
            window: WINDOW_AT_FIRST,
            first_window: WINDOW_AT_FIRST,
            credit: i64::from(limits.window_octets).max(WINDOW_AT_FIRST),
            owed: 0,
            resets: 0,
            mistakes: 0,
            idle_frames: 0,
            leave: Leave::Stays,
            is_broken: false,
            spare_heads: Vec::new(),
            output,
            sent: 0,
            ends: VecDeque::new(),
            holds_requests: false,
            whole: 0,
            heads_held: 0,
            held: 0,
            written: 0,
        }
    }

    /// Returns what is to be sent.
    pub fn output(&self) -> &[u8] {
        self.output.get(self.sent..).unwrap_or(&[])
    }

    /// Returns what is to be sent up to the end of the first response among it.
    ///
    /// Some clients look at no more than one response for each piece that they read.
    pub fn first_response(&self) -> &[u8] {
        let end = self.ends.front().copied().unwrap_or(self.output.len());
        self.output.get(self.sent..end).unwrap_or(&[])
    }

    /// Returns how many octets of memory responses take that the client has not taken.
    pub fn held(&self) -> usize {
        self.held + self.output().len()
    }

    /// Returns how many octets of responses are still to be sent.
    pub fn unsent(&self) -> usize {
        let waiting = self.streams.iter().map(|stream| match &stream.stage {
            Stage::Sending { rest, sent } => rest.len() - sent,
            Stage::Body { .. } | Stage::Whole { .. } | Stage::Asked => 0,
        });
        self.output().len() + waiting.sum::<usize>()
    }

    /// Returns how many octets of responses were sent since the connection began, or fewer: what
    /// stands in the output counts as responses, so that acknowledgements that the client makes us
    /// send do not look like answers that it takes.
    pub fn taken(&self) -> u64 {
        self.written.saturating_sub(self.output().len() as u64)
    }

    /// Says whether requests that come from now on are held back: everything else, windows above
    /// all, is still taken.
    pub fn hold_requests(&mut self, holds: bool) {
        self.holds_requests = holds;
    }

    /// Returns whether requests that were held back can be handed over.
    pub fn has_requests(&self) -> bool {
        self.whole > 0 && !self.holds_requests
    }

    /// Notes that so many octets of the output were sent.
    pub fn sent(&mut self, octets: usize) {
        self.sent += octets;
        while self.ends.front().is_some_and(|&end| end <= self.sent) {
            self.ends.pop_front();
        }
        if self.sent < self.output.len() {
            // A client that always leaves something must not have all that it was ever sent kept.
            if self.sent >= OUTPUT_KEPT_OCTETS && self.sent >= self.output.len() / 2 {
                self.output.drain(..self.sent);
                self.ends.iter_mut().for_each(|end| *end -= self.sent);
                self.sent = 0;
            }
        } else {
            self.sent = 0;
            self.ends.clear();
            if self.ends.capacity() > ENDS_KEPT {
                self.ends = VecDeque::new();
            }
            if self.output.capacity() > OUTPUT_KEPT_OCTETS {
                self.output = Vec::new();
            } else {
                self.output.clear();
            }
        }
    }

    /// Returns how many streams are not done.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns whether a response waits for the client's windows.
    pub fn is_held_up(&self) -> bool {
        self.streams.iter().any(|stream| matches!(stream.stage, Stage::Sending { .. }))
    }

    /// Returns whether there will be no more requests, and all are answered.
    pub fn is_done(&self) -> bool {
        self.is_broken || (matches!(self.leave, Leave::Last(_)) && self.streams.len() == 0)
    }

    /// Returns since when a part of a request waits for the rest: the earliest such moment.
    pub fn waits_since_ms(&self) -> Option<u64> {
        let bodies = self.streams.iter().filter_map(|stream| match stream.stage {
            Stage::Body { since_ms, .. } => Some(since_ms),
            Stage::Whole { .. } | Stage::Asked | Stage::Sending { .. } => None,
        });
        bodies.chain(self.block.as_ref().map(|block| block.since_ms)).min()
    }

    /// Works on what came, up to the next event; what is left in `came` then is to be handed over
    /// again, with what comes.
    ///
    /// A request is put into `request`.
    pub fn next(&mut self, came: &mut &[u8], now_ms: u64, request: &mut Request) -> Event {
        loop {
            if self.is_broken {
                return Event::Broken;
            }
            if self.has_requests()
                && let Some(event) = self.hand_over_held(request)
            {
                return event;
            }
            if let Some(rest) = PREFACE.get(self.preface..).filter(|rest| !rest.is_empty()) {
                let len = rest.len().min(came.len());
                if came.get(..len) != rest.get(..len) {
                    return self.fail(Code::PROTOCOL_ERROR);
                }
                self.preface += len;
                *came = came.get(len..).unwrap_or(&[]);
                if len < rest.len() {
                    return Event::Starved;
                }
            }
            let bytes = *came;
            let (frame, after) = match frame::split(bytes) {
                Ok(split) => split,
                Err(Unsplit::Incomplete) => return Event::Starved,
                Err(Unsplit::TooLarge) => return self.fail(Code::FRAME_SIZE_ERROR),
            };
            *came = after;
            match self.take(&frame, now_ms, request) {
                Ok(None) => {}
                Ok(Some(event)) => return event,
                Err(Fault::Connection(code)) => return self.fail(code),
                Err(Fault::Stream(id, code)) => {
                    self.reset(id, code);
                    // Who does not know yet how many streams there may be makes no mistake.
                    self.mistakes += u32::from(code != Code::REFUSED_STREAM || self.knows_settings);
                    if self.mistakes > self.limits.mistakes_max {
                        return self.fail(Code::ENHANCE_YOUR_CALM);
                    }
                }
            }
        }
    }

    /// Hands over the first request whose body has waited since `before_ms` or longer; a head that
    /// has breaks the connection.
    pub fn overdue(&mut self, before_ms: u64, request: &mut Request) -> Event {
        if self.is_broken || self.block.as_ref().is_some_and(|block| block.since_ms <= before_ms) {
            return self.fail(Code::ENHANCE_YOUR_CALM);
        }
        let late = self.streams.iter().find_map(|stream| match stream.stage {
            Stage::Body { since_ms, .. } if since_ms <= before_ms && stream.discarded > 0 => {
                Some((stream.id, RequestFault::BodyTooLarge))
            }
            Stage::Body { since_ms, .. } if since_ms <= before_ms => {
                Some((stream.id, RequestFault::BodyTooSlow))
            }
            _ => None,
        });
        match late.and_then(|(id, trouble)| self.hand_over(id, trouble, request)) {
            Some(event) => event,
            None => Event::Starved,
        }
    }

    /// Takes leave: what was asked is answered, and new streams as long as the client may not have
    /// heard of it.
    pub fn leave(&mut self) {
        if self.leave == Leave::Stays && !self.is_broken {
            self.leave = Leave::Told;
            self.write_goaway(u32::MAX >> 1, Code::NO_ERROR);
            frame::write_head(&mut self.output, GOODBYE_PING.len(), Kind::PING, Flags::NONE, 0);
            self.output.extend_from_slice(GOODBYE_PING);
        }
    }

    /// Gives back what a stream held.
    fn forget(&mut self, stream: Stream) {
        match stream.stage {
            Stage::Body { head, .. } => self.spare(head),
            Stage::Whole { head, .. } => {
                self.whole -= 1;
                self.spare(head);
            }
            Stage::Sending { rest, .. } => self.held -= rest.len(),
            Stage::Asked => {}
        }
        self.give_back(stream.held);
    }

    /// Takes the memory of a head that was held.
    fn spare(&mut self, head: Box<Head>) {
        self.heads_held -= head.octets_held();
        if self.spare_heads.len() < SPARE_HEADS_MAX && head.is_small() {
            self.spare_heads.push(head);
        }
    }

    /// Lets the client send again what is no longer kept; not for each request, but when it is
    /// worth a frame.
    fn give_back(&mut self, octets: u32) {
        self.owed += octets;
        let is_much = self.owed >= self.limits.window_octets / 2;
        let is_needed = self.owed > 0 && self.credit < i64::from(stream_window(&self.limits));
        if is_much || is_needed {
            frame::write_number(&mut self.output, Kind::WINDOW_UPDATE, 0, self.owed);
            self.credit += i64::from(self.owed);
            self.owed = 0;
        }
    }

    /// Resets a stream.
    fn reset(&mut self, id: u32, code: Code) {
        frame::write_number(&mut self.output, Kind::RST_STREAM, id, code.0);
        self.streams.note_reset(id);
        if let Some(stream) = self.streams.position(id).and_then(|place| self.streams.close(place)) {
            self.forget(stream);
        }
    }

    /// Ends the connection.
    fn fail(&mut self, code: Code) -> Event {
        if !self.is_broken {
            self.is_broken = true;
            self.write_goaway(self.streams.last(), code);
        }
        Event::Broken
    }

    fn write_goaway(&mut self, last: u32, code: Code) {
        frame::write_head(&mut self.output, 8, Kind::GOAWAY, Flags::NONE, 0);
        self.output.extend_from_slice(&last.to_be_bytes());
        self.output.extend_from_slice(&code.0.to_be_bytes());
    }

    /// Works on one frame.
    fn take(
        &mut self,
        frame: &Frame<'_>,
        now_ms: u64,
        request: &mut Request,
    ) -> Result<Option<Event>, Fault> {
        if !self.has_settings && frame.kind != Kind::SETTINGS {
            // RFC 9113 §3.4.
            return Err(Fault::Connection(Code::PROTOCOL_ERROR));
        }
        if let Some(block) = &self.block
            && (frame.kind != Kind::CONTINUATION || frame.stream != block.stream)
        {
            // RFC 9113 §6.10.
            return Err(Fault::Connection(Code::PROTOCOL_ERROR));
        }
        self.idle_frames += 1;
        if self.idle_frames > self.limits.idle_frames_max {
            return Err(Fault::Connection(Code::ENHANCE_YOUR_CALM));
        }
        match frame.kind {
            Kind::DATA => self.take_data(frame, request),
            Kind::HEADERS => self.take_headers(frame, now_ms, request),
            Kind::CONTINUATION => self.take_continuation(frame, now_ms, request),
            Kind::RST_STREAM => self.take_reset(frame),
            Kind::WINDOW_UPDATE => self.take_window(frame).map(|()| None),
            Kind::SETTINGS => self.take_settings(frame).map(|()| None),
            Kind::PING => self.take_ping(frame).map(|()| None),
            Kind::PRIORITY => Self::take_priority(frame).map(|()| None),
            Kind::GOAWAY if frame.stream != 0 => Err(Fault::Connection(Code::PROTOCOL_ERROR)),
            // Clients push nothing (RFC 9113 §8.4).
            Kind::PUSH_PROMISE => Err(Fault::Connection(Code::PROTOCOL_ERROR)),
            // Who leaves still wants the answers. RFC 9113 §5.5: what is unknown is ignored.
            _ => Ok(None),
        }
    }
}

/// Octets that a client may send on a stream: a body and its padding.
fn stream_window(limits: &Limits) -> u32 {
    u32::try_from(limits.body_octets_max + 1).unwrap_or(u32::MAX).min(limits.window_octets)
}

/// Returns the stream that another depends on; the first bit says how.
fn depends_on(priority: &[u8; 5]) -> u32 {
    let &[a, b, c, d, _] = priority;
    u32::from_be_bytes([a, b, c, d]) & (u32::MAX >> 1)
}

#[cfg(test)]
mod tests;
