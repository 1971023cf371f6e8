//! BIND's configuration as it is written: statements of words and blocks.

use std::path::Path;

use diagnostic::{At, FileId, Span};

use super::super::Files;

/// How deep blocks may nest: protects the stack.
const NESTING_MAX: usize = 16;

/// A word, or statements in braces.
pub(super) enum Part {
    Word(At<String>),
    Block(Vec<Statement>),
}

/// What ends with a semicolon.
pub(super) struct Statement {
    pub(super) parts: Vec<Part>,
    pub(super) span: Span,
}

impl Statement {
    /// Returns the words before the first block.
    pub(super) fn words(&self) -> Vec<&At<String>> {
        let words = self.parts.iter().map_while(|part| match part {
            Part::Word(word) => Some(word),
            Part::Block(_) => None,
        });
        words.collect()
    }

    /// Returns the word that it begins with.
    pub(super) fn key(&self) -> &str {
        self.words().first().map_or("", |word| word.value.as_str())
    }

    /// Returns the word after the first.
    pub(super) fn value(&self) -> Option<&At<String>> {
        self.words().get(1).copied()
    }

    /// Returns the word after `key`, wherever it stands before the block.
    pub(super) fn after(&self, key: &str) -> Option<&At<String>> {
        let words = self.words();
        let at = words.iter().skip(1).position(|word| word.value == key)? + 1;
        words.get(at + 1).copied()
    }

    /// Returns what is in its block.
    pub(super) fn block(&self) -> Option<&[Statement]> {
        self.parts.iter().find_map(|part| match part {
            Part::Block(block) => Some(block.as_slice()),
            Part::Word(_) => None,
        })
    }
}

/// Reads a file and all that it includes.
pub(super) fn read(files: &mut Files<'_>, file: FileId, text: &str) -> Vec<Statement> {
    Reader { text, file, at: 0, depth: 0 }.block(files, 0, None)
}

struct Reader<'a> {
    text: &'a str,
    file: FileId,
    at: usize,
    /// How deep files include files.
    depth: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn span(&self, start: usize) -> Span {
        Span { file: self.file, start: start as u32, end: self.at as u32 }
    }

    /// Goes on to what is neither space nor comment.
    fn skip(&mut self) -> Option<char> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            let line = trimmed.starts_with('#') || trimmed.starts_with("//");
            if line {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                self.at += trimmed.find("*/").map_or(trimmed.len(), |end| end + 2);
            } else {
                return trimmed.chars().next();
            }
        }
    }

    /// Reads statements to the end of the block that began at `open`, or of the file.
    fn block(&mut self, files: &mut Files<'_>, nesting: usize, open: Option<Span>) -> Vec<Statement> {
        let mut statements = Vec::new();
        loop {
            match self.skip() {
                None => {
                    if let Some(open) = open {
                        files.wrong(open, "this \"{\" is not closed");
                    }
                    return statements;
                }
                Some('}') => {
                    self.at += 1;
                    if open.is_some() {
                        return statements;
                    }
                    let at = self.at - 1;
                    files.wrong(self.span(at), "this \"}\" closes nothing");
                }
                Some(';') => self.at += 1,
                Some(_) => {
                    let statement = self.statement(files, nesting);
                    match (statement.key(), statement.value()) {
                        ("include", Some(path)) => {
                            let path = path.clone();
                            self.include(files, &path, &mut statements);
                        }
                        _ => statements.push(statement),
                    }
                }
            }
        }
    }

    fn include(&self, files: &mut Files<'_>, pattern: &At<String>, statements: &mut Vec<Statement>) {
        let directory = files.directory.clone();
        for path in files.included(pattern, Path::new(&directory), self.depth) {
            let Some((file, text)) = files.open(&path, Some(pattern.span)) else { continue };
            let mut reader = Reader { text: &text, file, at: 0, depth: self.depth + 1 };
            statements.extend(reader.block(files, 0, None));
        }
    }

    fn statement(&mut self, files: &mut Files<'_>, nesting: usize) -> Statement {
        let start = self.at;
        let mut parts = Vec::new();
        let mut end = self.at;
        loop {
            match self.skip() {
                None => {
                    let span = Span { file: self.file, start: start as u32, end: end as u32 };
                    files.wrong(span, "a \";\" is missing behind this");
                    break;
                }
                Some(';') => {
                    self.at += 1;
                    break;
                }
                // The end of the block around it: somebody forgot the semicolon.
                Some('}') => {
                    let span = Span { file: self.file, start: start as u32, end: end as u32 };
                    files.wrong(span, "a \";\" is missing behind this");
                    break;
                }
                Some('{') => {
                    let at = self.at;
                    self.at += 1;
                    let open = self.span(at);
                    if nesting >= NESTING_MAX {
                        files.wrong(open, format!("nested more than {NESTING_MAX} levels deep"));
                        self.at = self.text.len();
                        break;
                    }
                    parts.push(Part::Block(self.block(files, nesting + 1, Some(open))));
                }
                Some('"') => {
                    let at = self.at;
                    let inside = self.rest().get(1..).unwrap_or("");
                    let len = inside.find('"').unwrap_or(inside.len());
                    let value = inside.get(..len).unwrap_or("").to_owned();
                    self.at = (self.at + len + 2).min(self.text.len());
                    parts.push(Part::Word(At { value, span: self.span(at) }));
                }
                Some('!') => {
                    let at = self.at;
                    self.at += 1;
                    parts.push(Part::Word(At { value: "!".to_owned(), span: self.span(at) }));
                }
                Some(_) => {
                    let at = self.at;
                    let rest = self.rest();
                    let len =
                        rest.find(|c: char| c.is_whitespace() || "{};\"".contains(c)).unwrap_or(rest.len());
                    let value = rest[..len].to_owned();
                    self.at += len.max(1);
                    parts.push(Part::Word(At { value, span: self.span(at) }));
                }
            }
            end = self.at;
        }
        Statement { parts, span: Span { file: self.file, start: start as u32, end: end as u32 } }
    }
}
