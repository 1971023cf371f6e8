//! Text of the policy language to words, quoted texts and signs.

use std::ops::Range;

use diagnostic::{Problem, Scalar};

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind,
    /// Its text, without quotation marks.
    pub(super) text: &'t str,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A field, a keyword, a value.
    Word,
    /// A value in quotation marks.
    Quoted,
    /// An operator or bracket.
    Sign,
}

impl Token<'_> {
    pub(super) fn is(&self, text: &str) -> bool {
        self.kind != TokenKind::Quoted && self.text == text
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Returns where the text itself begins: after a quotation mark.
    pub(super) fn text_start(&self) -> usize {
        self.start + usize::from(self.kind == TokenKind::Quoted)
    }
}

/// Which characters compare, and which are part of words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `=`, `!`, `<`, `>` and `&` make operators.
    Condition,
    /// Only brackets, `,` and `|` separate.
    Arguments,
}

impl Dialect {
    const fn signs(self) -> &'static str {
        match self {
            Self::Condition => "=!<>&",
            Self::Arguments => "",
        }
    }
}

/// Splits the text from `start` on into tokens.
pub(super) fn tokens<'t>(
    scalar: &'t Scalar,
    start: usize,
    dialect: Dialect,
    problems: &mut Vec<Problem>,
) -> Option<Vec<Token<'t>>> {
    let text = scalar.text.as_str();
    let is_operator = |c: char| dialect.signs().contains(c);
    let mut tokens = Vec::new();
    let mut at = start;
    while let Some(c) = text[at..].chars().next() {
        let start = at;
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let (kind, inside) = match c {
            '"' | '\'' => {
                let Some(length) = text[at + 1..].find(c) else {
                    problems.push(
                        Problem::error(scalar.span(at, text.len()), "a quoted text is not closed")
                            .expected(format!("{c} at its end")),
                    );
                    return None;
                };
                at += length + 2;
                (TokenKind::Quoted, start + 1..at - 1)
            }
            '(' | ')' | '[' | ']' | ',' | '|' => {
                at += 1;
                (TokenKind::Sign, start..at)
            }
            c if is_operator(c) => {
                at += text[at..].find(|other| !is_operator(other)).unwrap_or(text.len() - at);
                (TokenKind::Sign, start..at)
            }
            _ => {
                let ends = |c: char| c.is_whitespace() || "()[],|\"'".contains(c) || is_operator(c);
                at += text[at..].find(ends).unwrap_or(text.len() - at);
                (TokenKind::Word, start..at)
            }
        };
        tokens.push(Token { kind, text: &text[inside], start, end: at });
    }
    Some(tokens)
}
