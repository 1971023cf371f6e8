//! Responses: their heads, and as much of their bodies as the client's windows let through.

use super::{Connection, Field, Response};
use crate::frame::{self, Code, FRAME_OCTETS_MAX, Flags, Kind};
use crate::hpack::Encoder;
use crate::streams::Stage;

impl Connection {
    /// Writes the response to a request; nothing if the client has given it up.
    pub fn respond(&mut self, stream: u32, response: &Response<'_>) {
        let Some(place) = self.streams.position(stream) else { return };
        let out = &mut self.output;
        let start = out.len();
        frame::write_head(out, 0, Kind::HEADERS, Flags::END_HEADERS, stream);
        let begin = out.len();
        self.encoder.begin(out, response.status);
        for field in response.fields {
            match *field {
                Field::Lasting(name, value) => self.encoder.lasting(out, name, value),
                Field::Passing(name, value) => Encoder::field(out, name, value),
            }
        }
        let len = out.len() - begin;
        // The length and, if there is no body, the end are known only now. Heads of ours are far
        // shorter than a frame.
        let flags = if response.body.is_empty() {
            Flags::END_HEADERS.with(Flags::END_STREAM)
        } else {
            Flags::END_HEADERS
        };
        if let Some(head) = out.get_mut(start..start + 5)
            && let [high, middle, low, _, of_frame] = head
        {
            let [_, a, b, c] = u32::try_from(len).unwrap_or(0).to_be_bytes();
            (*high, *middle, *low, *of_frame) = (a, b, c, flags.0);
        }
        let Some(open) = self.streams.at(place) else { return };
        let sent = write_data(out, open.id, response.body, (&mut self.window, &mut open.window));
        self.written += (self.output.len() - start) as u64;
        match response.body.get(sent..) {
            Some(rest) if !rest.is_empty() => {
                let held = std::mem::take(&mut open.held);
                open.stage = Stage::Sending { rest: rest.to_vec(), sent: 0 };
                self.held += rest.len();
                self.give_back(held);
            }
            _ => self.finish(place),
        }
        // Whoever gets answers may change its mind now and then.
        self.resets = self.resets.saturating_sub(1);
    }

    /// Ends the stream at this place, whose response stands in the output.
    fn finish(&mut self, place: usize) {
        let Some(stream) = self.streams.close(place) else { return };
        self.ends.push_back(self.output.len());
        if !stream.has_ended {
            // RFC 9113 §8.1: the rest of the request is of no interest.
            frame::write_number(&mut self.output, Kind::RST_STREAM, stream.id, Code::NO_ERROR.0);
            self.streams.note_reset(stream.id);
        }
        self.forget(stream);
    }

    /// Sends what waited for a window.
    pub(super) fn send_on(&mut self) {
        let mut place = 0;
        while let Some(stream) = self.streams.at(place) {
            let Stage::Sending { rest, sent } = &mut stream.stage else {
                place += 1;
                continue;
            };
            let left = rest.get(*sent..).unwrap_or(&[]);
            let windows = (&mut self.window, &mut stream.window);
            let before = self.output.len();
            *sent += write_data(&mut self.output, stream.id, left, windows);
            self.written += (self.output.len() - before) as u64;
            if *sent < rest.len() {
                place += 1;
            } else {
                // Another one takes its place.
                self.finish(place);
            }
        }
    }
}

/// Writes as much of `body` as the windows, of the connection and of the stream, let through, in
/// frames of the size that everybody takes; returns how much.
fn write_data(
    out: &mut Vec<u8>,
    stream: u32,
    body: &[u8],
    (of_all, of_stream): (&mut i64, &mut i64),
) -> usize {
    let mut sent = 0;
    while let Some(rest) = body.get(sent..).filter(|rest| !rest.is_empty()) {
        let window = usize::try_from((*of_all).min(*of_stream)).unwrap_or(0);
        let len = rest.len().min(window).min(FRAME_OCTETS_MAX);
        let Some(chunk) = rest.get(..len).filter(|chunk| !chunk.is_empty()) else { break };
        sent += len;
        let flags = if sent == body.len() { Flags::END_STREAM } else { Flags::NONE };
        frame::write_head(out, len, Kind::DATA, flags, stream);
        out.extend_from_slice(chunk);
        *of_all -= len as i64;
        *of_stream -= len as i64;
    }
    sent
}
