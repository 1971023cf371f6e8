//! A text whose octets are known to come from a file.

use crate::source::{FileId, Span};

/// Text, and where each octet of it comes from.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The text.
    pub text: String,
    /// Not to be read further: a variable in it is not set, which was reported.
    pub is_refused: bool,
    origin: Origin,
}

/// Where the octets of a scalar come from.
#[derive(Clone, Debug)]
enum Origin {
    /// One to one from this place on.
    Straight(Span),
    /// Octet by octet; used for escapes, folded lines and environment variables.
    Table(Span, Vec<(u32, u32)>),
}

impl Scalar {
    /// Returns a text of which each octet comes from a place of its own: `table` has where each
    /// begins and ends, `place` is all of it.
    pub fn traced(text: String, place: Span, table: Vec<(u32, u32)>) -> Self {
        Self { text, is_refused: false, origin: Origin::Table(place, table) }
    }

    /// Makes it a text that no file wrote.
    pub fn forget_place(&mut self) {
        self.origin = Origin::Straight(Span::BUILT_IN);
    }

    /// Says that it stands in another file, at the same place.
    pub const fn move_to(&mut self, file: FileId) {
        let (Origin::Straight(span) | Origin::Table(span, _)) = &mut self.origin;
        span.file = file;
    }

    /// Returns the place of all of it.
    pub const fn place(&self) -> Span {
        match self.origin {
            Origin::Straight(span) | Origin::Table(span, _) => span,
        }
    }

    /// Returns a text that stands, or seems to stand, at a place.
    pub fn straight(text: String, span: Span) -> Self {
        Self { text, is_refused: false, origin: Origin::Straight(span) }
    }

    /// Returns the place in the file of the octets from `start` to `end` of the text.
    pub fn span(&self, start: usize, end: usize) -> Span {
        match &self.origin {
            Origin::Straight(span) => {
                let at = |offset: usize| span.start + offset.min(self.text.len()) as u32;
                Span { file: span.file, start: at(start), end: at(end).max(at(start)) }
            }
            Origin::Table(span, table) => {
                let first = table.get(start).map(|&(from, _)| from);
                let last = end.checked_sub(1).and_then(|last| table.get(last)).map(|&(_, to)| to);
                let start = first.unwrap_or_else(|| table.last().map_or(span.end, |&(_, to)| to));
                Span { file: span.file, start, end: last.unwrap_or(start).max(start) }
            }
        }
    }
}
