//! The streams of one connection that are not done, and what is known of those that are.

use crate::connection::RequestFault;
use crate::frame::WINDOW_MAX;
use crate::head::Head;

/// Streams that we have reset whose frames may still be under way.
const RESET_KEPT: usize = 32;
/// Numbers that a client has left out and that are remembered.
const SKIPPED_KEPT: usize = 16;

/// How far a stream is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Its body is still to come.
    Body {
        head: Box<Head>,
        body: Vec<u8>,
        /// Since when, in milliseconds.
        since_ms: u64,
    },
    /// It is whole, and waits to be handed over.
    Whole { head: Box<Head>, body: Vec<u8>, trouble: RequestFault },
    /// It was handed over, and has no response yet.
    Asked,
    /// What is left of the response waits for the client's windows.
    Sending { rest: Vec<u8>, sent: usize },
}

/// A stream that is not done.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) stage: Stage,
    /// Octets that the client takes.
    pub(crate) window: i64,
    /// Whether the client has said everything.
    pub(crate) has_ended: bool,
    /// Octets of it that count against the connection's window, for as long as we keep them.
    pub(crate) held: u32,
    /// Octets of a body that is too large, which were thrown away.
    pub(crate) discarded: usize,
    /// Those of them that the client may not send again yet.
    pub(crate) owed: u32,
}

impl Stream {
    /// Lets the client take more; false if that is more than there can be.
    pub(crate) fn widen(&mut self, by: i64) -> bool {
        self.window += by;
        self.window <= WINDOW_MAX
    }
}

/// What is known of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is not a client's, or was not used yet.
    Idle,
    /// The client has left it out.
    Skipped,
    /// We have reset it a short while ago, and the client may not know yet.
    Reset,
    /// It is done.
    Closed,
}

/// The streams of a connection.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// In the order in which they began, as far as the client opens them in order; searched from
    /// the end.
    open: Vec<Stream>,
    /// The last that the client has opened.
    last: u32,
    /// Those we have reset, the oldest first.
    reset: Vec<u32>,
    /// Ranges of numbers left out.
    skipped: Vec<(u32, u32)>,
}

impl Streams {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) const fn last(&self) -> u32 {
        self.last
    }

    pub(crate) fn position(&self, id: u32) -> Option<usize> {
        self.open.iter().rposition(|stream| stream.id == id)
    }

    pub(crate) fn at(&mut self, place: usize) -> Option<&mut Stream> {
        self.open.get_mut(place)
    }

    pub(crate) fn find(&mut self, id: u32) -> Option<&mut Stream> {
        self.open.iter_mut().rfind(|stream| stream.id == id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.open.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    /// Takes in a stream.
    pub(crate) fn open(&mut self, stream: Stream) {
        self.open.push(stream);
    }

    /// Takes out the stream at this place.
    pub(crate) fn close(&mut self, place: usize) -> Option<Stream> {
        (place < self.open.len()).then(|| self.open.swap_remove(place))
    }

    /// Notes that a client opens a stream.
    pub(crate) fn note(&mut self, id: u32) {
        if id > self.last + 2 {
            if self.skipped.len() >= SKIPPED_KEPT {
                self.skipped.remove(0);
            }
            self.skipped.push((self.last, id));
        }
        self.last = id;
    }

    /// Notes that we reset a stream.
    pub(crate) fn note_reset(&mut self, id: u32) {
        if self.reset.len() >= RESET_KEPT {
            self.reset.remove(0);
        }
        self.reset.push(id);
    }

    /// Returns what is known of a number that is not open.
    pub(crate) fn known(&self, id: u32) -> Known {
        if id.is_multiple_of(2) || id > self.last {
            Known::Idle
        } else if self.reset.contains(&id) {
            Known::Reset
        } else if self.skipped.iter().any(|&(after, before)| after < id && id < before) {
            Known::Skipped
        } else {
            Known::Closed
        }
    }
}
