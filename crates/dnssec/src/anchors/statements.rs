//! Trust anchors in the notation of BIND: `trusted-keys`, `managed-keys`, `trust-anchors`.

use std::iter::Peekable;
use std::str::Chars;

use wire::text::Tokens;
use wire::{NameBuf, Rtype};

use super::text::{AnchorFault, AnchorRow};

/// Statements that have keys.
const STATEMENTS: [&str; 3] = ["trusted-keys", "managed-keys", "trust-anchors"];

/// Returns whether a text has such statements: a master file has none of these words in front of a
/// brace at the start of a line.
pub(super) fn is_so_written(text: &str) -> bool {
    let mut at = 0;
    text.split_inclusive('\n').any(|line| {
        // The brace may stand on the next line.
        let rest = text.get(at..).unwrap_or("").trim_start();
        at += line.len();
        STATEMENTS.iter().any(|word| {
            let is_it = rest.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word));
            is_it && rest.get(word.len()..).is_some_and(|after| after.trim_start().starts_with('{'))
        })
    })
}

/// A piece of the text.
#[derive(PartialEq)]
enum Piece {
    Word(String),
    Quoted(String),
    Open,
    Close,
    End,
}

/// Cuts a text into pieces; comments are as in C, C++ and the shell.
struct Pieces<'t> {
    rest: Peekable<Chars<'t>>,
    line: usize,
}

impl Pieces<'_> {
    fn fault(&self, what: impl Into<String>) -> AnchorFault {
        AnchorFault { line: self.line, what: what.into() }
    }

    fn step(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    /// Passes a comment whose first slash was read.
    fn comment(&mut self) -> Result<(), AnchorFault> {
        match self.step() {
            Some('/') => self.line_comment(),
            Some('*') => {
                let mut before = ' ';
                loop {
                    match self.step() {
                        Some('/') if before == '*' => break,
                        Some(other) => before = other,
                        None => return Err(self.fault("the comment has no end")),
                    }
                }
            }
            _ => return Err(self.fault("expected a comment behind \"/\"")),
        }
        Ok(())
    }

    fn line_comment(&mut self) {
        while self.rest.peek().is_some_and(|&next| next != '\n') {
            self.step();
        }
    }

    fn next_piece(&mut self) -> Result<Option<Piece>, AnchorFault> {
        loop {
            return Ok(match self.step() {
                None => None,
                Some(space) if space.is_whitespace() => continue,
                Some('#') => {
                    self.line_comment();
                    continue;
                }
                Some('/') => {
                    self.comment()?;
                    continue;
                }
                Some('{') => Some(Piece::Open),
                Some('}') => Some(Piece::Close),
                Some(';') => Some(Piece::End),
                Some('"') => {
                    let mut text = String::new();
                    loop {
                        match self.step() {
                            Some('"') => break,
                            Some(other) => text.push(other),
                            None => return Err(self.fault("the quotation has no end")),
                        }
                    }
                    Some(Piece::Quoted(text))
                }
                Some(first) => {
                    let mut word = String::from(first);
                    let is_inside = |c: &char| !c.is_whitespace() && !matches!(c, '{' | '}' | ';' | '"');
                    while let Some(next) = self.rest.peek().copied().filter(is_inside) {
                        self.step();
                        word.push(next);
                    }
                    Some(Piece::Word(word))
                }
            });
        }
    }

    /// Passes what is left of a statement that has nothing to do with keys.
    fn pass_statement(&mut self) -> Result<(), AnchorFault> {
        let mut depth = 0_usize;
        loop {
            match self.next_piece()? {
                Some(Piece::Open) => depth += 1,
                Some(Piece::Close) => depth = depth.saturating_sub(1),
                Some(Piece::End) if depth == 0 => return Ok(()),
                Some(_) => {}
                None => return Err(self.fault("the statement has no end")),
            }
        }
    }

    /// Reads the keys of a statement, behind its name.
    fn keys(&mut self, rows: &mut Vec<AnchorRow>) -> Result<(), AnchorFault> {
        if self.next_piece()? != Some(Piece::Open) {
            return Err(self.fault("expected \"{\""));
        }
        loop {
            match self.next_piece()? {
                Some(Piece::Close) => break,
                Some(Piece::Word(zone) | Piece::Quoted(zone)) => rows.push(self.key(&zone)?),
                _ => return Err(self.fault("expected a zone, or \"}\"")),
            }
        }
        match self.next_piece()? {
            Some(Piece::End) => Ok(()),
            _ => Err(self.fault("expected \";\" behind \"}\"")),
        }
    }

    /// Reads a key, behind its zone.
    fn key(&mut self, zone: &str) -> Result<AnchorRow, AnchorFault> {
        let owner = NameBuf::from_text(zone).map_err(|error| self.fault(error.to_string()))?;
        let (mut rtype, mut data) = (Rtype::DNSKEY, String::new());
        loop {
            match self.next_piece()? {
                Some(Piece::End) => break,
                Some(Piece::Word(word)) if matches!(&*word, "initial-ds" | "static-ds") => rtype = Rtype::DS,
                // Whether a key stays is said by other settings.
                Some(Piece::Word(word)) if matches!(&*word, "initial-key" | "static-key") => {}
                Some(Piece::Word(word)) => {
                    data.push_str(&word);
                    data.push(' ');
                }
                Some(Piece::Quoted(text)) => text.split_whitespace().for_each(|part| data.push_str(part)),
                _ => return Err(self.fault("expected \";\" behind the key")),
            }
        }
        let mut rdata = Vec::new();
        let mut tokens = Tokens::new(&data);
        wire::rdata::parse_tokens(rtype, &mut tokens, None, &mut rdata)
            .map_err(|error| self.fault(error.to_string()))?;
        match tokens.next_token() {
            Ok(None) => Ok(AnchorRow { owner, rtype, ttl: None, rdata, state: None }),
            _ => Err(self.fault("expected nothing behind the key")),
        }
    }
}

/// Reads the keys of all statements; others are passed.
pub(super) fn read(text: &str) -> Result<Vec<AnchorRow>, AnchorFault> {
    let mut pieces = Pieces { rest: text.chars().peekable(), line: 1 };
    let mut rows = Vec::new();
    while let Some(piece) = pieces.next_piece()? {
        match piece {
            Piece::Word(word) if STATEMENTS.iter().any(|known| word.eq_ignore_ascii_case(known)) => {
                pieces.keys(&mut rows)?;
            }
            Piece::Word(_) => pieces.pass_statement()?,
            _ => return Err(pieces.fault("expected a statement")),
        }
    }
    Ok(rows)
}
