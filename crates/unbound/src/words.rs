//! Lines of a file to words.

use std::ops::Range;

/// What comes next in a line.
pub(crate) enum Next {
    /// A word, without its quotation marks; whether it had some.
    Word(Range<usize>, bool),
    /// A quotation mark that has no second one on its line.
    Unclosed(Range<usize>),
}

/// A line, word by word: no word goes on behind the end of one.
pub(crate) struct Words<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl Words<'_> {
    /// Returns the next word. A keyword ends with its colon even if its value follows at once.
    pub(crate) fn next(&mut self, is_keyword: bool) -> Option<Next> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at)? {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'#' => {
                    let rest = &bytes[self.at..];
                    self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
                }
                &quote @ (b'"' | b'\'') => return Some(self.quoted(quote)),
                _ => break,
            }
        }
        let start = self.at;
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' => break,
                b'\\' if bytes.get(self.at + 1).is_some_and(|&byte| byte != b'\n') => self.at += 2,
                b':' if is_keyword => {
                    self.at += 1;
                    break;
                }
                _ => self.at += 1,
            }
        }
        // Behind a backslash may stand the first octet of a longer character.
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        Some(Next::Word(start..self.at, false))
    }

    fn quoted(&mut self, quote: u8) -> Next {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut at = start;
        loop {
            match bytes.get(at) {
                Some(&byte) if byte == quote => {
                    self.at = at + 1;
                    return Next::Word(start..at, true);
                }
                Some(b'\\') if bytes.get(at + 1).is_some_and(|&byte| byte != b'\n') => at += 2,
                None | Some(b'\n' | b'\r') => {
                    self.at = at;
                    return Next::Unclosed(start - 1..at);
                }
                Some(_) => at += 1,
            }
        }
    }
}
