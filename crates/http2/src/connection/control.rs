//! Frames that carry no part of a request: resets, windows, settings, pings, priorities.

use super::{Connection, Event, Fault, GOODBYE_PING, Leave, depends_on};
use crate::frame::{
    self, Code, FRAME_OCTETS_LIMIT, FRAME_OCTETS_MAX, Flags, Frame, Kind, WINDOW_MAX, setting,
};
use crate::streams::Known;

impl Connection {
    pub(super) fn take_reset(&mut self, frame: &Frame<'_>) -> Result<Option<Event>, Fault> {
        if frame.payload.len() != 4 {
            return Err(Fault::Connection(Code::FRAME_SIZE_ERROR));
        }
        let Some(place) = self.streams.position(frame.stream) else {
            return match self.streams.known(frame.stream) {
                Known::Idle => Err(Fault::Connection(Code::PROTOCOL_ERROR)),
                Known::Skipped | Known::Reset | Known::Closed => Ok(None),
            };
        };
        if let Some(stream) = self.streams.close(place) {
            self.forget(stream);
        }
        self.resets += 1;
        if self.resets > self.limits.resets_max {
            return Err(Fault::Connection(Code::ENHANCE_YOUR_CALM));
        }
        Ok(Some(Event::Gone(frame.stream)))
    }

    pub(super) fn take_window(&mut self, frame: &Frame<'_>) -> Result<(), Fault> {
        let Some(&number) = frame.payload.first_chunk::<4>().filter(|_| frame.payload.len() == 4) else {
            return Err(Fault::Connection(Code::FRAME_SIZE_ERROR));
        };
        let by = i64::from(u32::from_be_bytes(number) & (u32::MAX >> 1));
        if frame.stream == 0 {
            self.window += by;
            if by == 0 {
                return Err(Fault::Connection(Code::PROTOCOL_ERROR));
            }
            if self.window > WINDOW_MAX {
                return Err(Fault::Connection(Code::FLOW_CONTROL_ERROR));
            }
        } else {
            let Some(stream) = self.streams.find(frame.stream) else {
                return match self.streams.known(frame.stream) {
                    Known::Idle => Err(Fault::Connection(Code::PROTOCOL_ERROR)),
                    Known::Skipped | Known::Reset | Known::Closed => Ok(()),
                };
            };
            if by == 0 {
                return Err(Fault::Stream(frame.stream, Code::PROTOCOL_ERROR));
            }
            if !stream.widen(by) {
                return Err(Fault::Stream(frame.stream, Code::FLOW_CONTROL_ERROR));
            }
        }
        self.send_on();
        Ok(())
    }

    pub(super) fn take_settings(&mut self, frame: &Frame<'_>) -> Result<(), Fault> {
        if frame.stream != 0 {
            return Err(Fault::Connection(Code::PROTOCOL_ERROR));
        }
        let (settings, rest) = frame.payload.as_chunks::<6>();
        if !rest.is_empty() || (frame.flags.has(Flags::ACK) && !settings.is_empty()) {
            return Err(Fault::Connection(Code::FRAME_SIZE_ERROR));
        }
        if frame.flags.has(Flags::ACK) {
            self.knows_settings = true;
            return if self.has_settings { Ok(()) } else { Err(Fault::Connection(Code::PROTOCOL_ERROR)) };
        }
        self.has_settings = true;
        for &[name_high, name_low, a, b, c, d] in settings {
            let value = u32::from_be_bytes([a, b, c, d]);
            match u16::from_be_bytes([name_high, name_low]) {
                setting::HEADER_TABLE_SIZE => self.encoder.limit(value as usize),
                setting::ENABLE_PUSH if value > 1 => return Err(Fault::Connection(Code::PROTOCOL_ERROR)),
                setting::INITIAL_WINDOW_SIZE => self.set_first_window(i64::from(value))?,
                // More than the least gains nothing for answers of our size.
                setting::MAX_FRAME_SIZE
                    if !(FRAME_OCTETS_MAX as u32..=FRAME_OCTETS_LIMIT).contains(&value) =>
                {
                    return Err(Fault::Connection(Code::PROTOCOL_ERROR));
                }
                _ => {}
            }
        }
        frame::write_head(&mut self.output, 0, Kind::SETTINGS, Flags::ACK, 0);
        self.send_on();
        Ok(())
    }

    /// Changes the windows of all streams (RFC 9113 §6.9.2).
    fn set_first_window(&mut self, octets: i64) -> Result<(), Fault> {
        if octets > WINDOW_MAX {
            return Err(Fault::Connection(Code::FLOW_CONTROL_ERROR));
        }
        let by = octets - self.first_window;
        self.first_window = octets;
        if self.streams.iter_mut().all(|stream| stream.widen(by)) {
            Ok(())
        } else {
            Err(Fault::Connection(Code::FLOW_CONTROL_ERROR))
        }
    }

    pub(super) fn take_ping(&mut self, frame: &Frame<'_>) -> Result<(), Fault> {
        if frame.stream != 0 {
            return Err(Fault::Connection(Code::PROTOCOL_ERROR));
        }
        if frame.payload.len() != 8 {
            return Err(Fault::Connection(Code::FRAME_SIZE_ERROR));
        }
        if !frame.flags.has(Flags::ACK) {
            frame::write_head(&mut self.output, 8, Kind::PING, Flags::ACK, 0);
            self.output.extend_from_slice(frame.payload);
        } else if self.leave == Leave::Told && frame.payload == GOODBYE_PING {
            // It has heard that we leave: what it opens from now on comes too late.
            let last = self.streams.last();
            self.leave = Leave::Last(last);
            self.write_goaway(last, Code::NO_ERROR);
        }
        Ok(())
    }

    /// Checks what is ignored otherwise (RFC 9113 §5.3.2).
    pub(super) fn take_priority(frame: &Frame<'_>) -> Result<(), Fault> {
        let Some(priority) = frame.payload.first_chunk::<5>().filter(|_| frame.payload.len() == 5) else {
            return Err(Fault::Connection(Code::FRAME_SIZE_ERROR));
        };
        if frame.stream == 0 || depends_on(priority) == frame.stream {
            return Err(Fault::Connection(Code::PROTOCOL_ERROR));
        }
        Ok(())
    }
}
