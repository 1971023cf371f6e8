//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Texts of Extended DNS Errors that nobody knows beforehand: what a resolver says of a failure.

use std::cell::Cell;

/// The most octets of a text.
pub(crate) const REASON_OCTETS_MAX: usize = 120;
/// Texts that a worker has at a time. Only an answer that waits while so many others fail goes
/// without its text, and it still has its code.
const TEXTS: usize = 64;

/// A text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    len: u8,
    octets: [u8; REASON_OCTETS_MAX],
}

/// Names a text for as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextId(u32);

/// The last texts of a worker.
pub(crate) struct Texts {
    slots: Box<[Cell<(TextId, Text)>; TEXTS]>,
    next: Cell<u32>,
}

impl Text {
    const EMPTY: Self = Self { len: 0, octets: [0; REASON_OCTETS_MAX] };

    /// Takes as much of a text as there is room for, in whole characters.
    pub(crate) fn new(text: &str) -> Self {
        let mut len = text.len().min(REASON_OCTETS_MAX);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        let mut octets = [0; REASON_OCTETS_MAX];
        for (to, from) in octets.iter_mut().zip(text.bytes().take(len)) {
            *to = from;
        }
        Self { len: len as u8, octets }
    }

    pub(crate) fn as_str(&self) -> &str {
        let octets = self.octets.get(..usize::from(self.len)).unwrap_or(&[]);
        std::str::from_utf8(octets).unwrap_or("")
    }
}

impl Texts {
    pub(crate) fn new() -> Self {
        Self {
            slots: Box::new([const { Cell::new((TextId(u32::MAX), Text::EMPTY)) }; TEXTS]),
            next: Cell::new(0),
        }
    }

    /// Keeps a text, in place of the oldest.
    #[cold]
    pub(crate) fn put(&self, text: Text) -> TextId {
        let id = TextId(self.next.get());
        self.next.set(id.0.wrapping_add(1));
        if let Some(slot) = self.slot(id) {
            slot.set((id, text));
        }
        id
    }

    /// Returns a text, if it is still there.
    #[cold]
    pub(crate) fn text(&self, id: TextId) -> Option<Text> {
        let (kept, text) = self.slot(id)?.get();
        (kept == id).then_some(text)
    }

    fn slot(&self, id: TextId) -> Option<&Cell<(TextId, Text)>> {
        self.slots.get(id.0 as usize % TEXTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_there_until_so_many_others_came() {
        let texts = Texts::new();
        let first = texts.put(Text::new("first"));
        let said = |id| texts.text(id).map(|text| text.as_str().to_owned());
        for _ in 1..TEXTS {
            texts.put(Text::new("other"));
            assert_eq!(said(first).as_deref(), Some("first"));
        }
        let last = texts.put(Text::new("last"));
        assert_eq!((said(first), said(last).as_deref()), (None, Some("last")));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let long = "é".repeat(100);
        assert_eq!(Text::new(&long).as_str(), "é".repeat(60));
        assert_eq!(Text::new(&format!("a{long}")).as_str(), format!("a{}", "é".repeat(59)));
        assert_eq!(Text::new("").as_str(), "");
    }
}
