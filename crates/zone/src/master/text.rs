//! The text of a file, and where its octets stand.

use std::borrow::Cow;

/// A file's text as the readers of wire take it. Octets that are not UTF-8 stand as `\DDD`, which
/// means the same.
pub(super) struct Text<'a> {
    text: Cow<'a, str>,
    /// Where in the text `\DDD` took the place of one octet, ascending.
    replaced: Vec<usize>,
    /// Octets before the text that are no part of it.
    skipped: usize,
}

/// Octets that an escape has more than what it stands for.
const ESCAPE_MORE: usize = 3;

impl<'a> Text<'a> {
    pub(super) fn new(octets: &'a [u8]) -> Self {
        // The byte order mark that some editors write.
        let marked = octets.strip_prefix(b"\xef\xbb\xbf");
        let (octets, skipped) = (marked.unwrap_or(octets), if marked.is_some() { 3 } else { 0 });
        if let Ok(text) = std::str::from_utf8(octets) {
            return Self { text: Cow::Borrowed(text), replaced: Vec::new(), skipped };
        }
        let mut text = String::with_capacity(octets.len() + octets.len() / 8);
        let mut replaced = Vec::new();
        for &octet in octets {
            if octet.is_ascii() {
                text.push(char::from(octet));
            } else {
                replaced.push(text.len());
                text.push_str(&format!("\\{octet:03}"));
            }
        }
        Self { text: Cow::Owned(text), replaced, skipped }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the place in the file of an octet of the text.
    pub(super) fn original(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        let before = self.replaced.partition_point(|&replaced| replaced < at);
        // A place inside of an escape is the place of the octet.
        let inside = before
            .checked_sub(1)
            .and_then(|last| self.replaced.get(last))
            .map_or(0, |&last| (ESCAPE_MORE + 1).saturating_sub(at - last).min(ESCAPE_MORE));
        self.skipped + at + inside - before * ESCAPE_MORE
    }

    /// Returns the line and the character in it, both from 1.
    pub(super) fn line_and_column(&self, at: usize) -> (u32, u32) {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &self.text[..at];
        let line_at = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.bytes().filter(|&octet| octet == b'\n').count();
        let escapes = self.replaced.partition_point(|&replaced| replaced < at)
            - self.replaced.partition_point(|&replaced| replaced < line_at);
        let column = 1 + before[line_at..].chars().count() - escapes * ESCAPE_MORE;
        (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    }
}
