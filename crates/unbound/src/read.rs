//! The grammar: words to statements, through all included files.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diagnostic::suggest::nearest;
use diagnostic::{FileId, Problem, Source, Sources, Span, io_text};
use environment::Environment;

use crate::OCTETS_MAX;
use crate::glob;
use crate::keywords::{self, Becomes, Form, Row, Section};

/// How deep files may include files.
const DEPTH_MAX: usize = 32;
/// Files of one configuration, each as often as it is included, so that a few of them that include
/// each other twice do not keep the server from starting.
const FILES_MAX: usize = 10_000;

/// A word behind a keyword.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// Where it stands, without quotation marks.
    pub(crate) span: Span,
}

/// A keyword with what stands behind it.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) row: &'static Row,
    /// Where the keyword stands.
    pub(crate) at: Span,
    pub(crate) words: Vec<Word>,
}

impl Statement {
    /// Returns the words.
    pub(crate) fn word(&self, at: usize) -> &Word {
        // A statement is kept only with all words that its keyword takes.
        &self.words[at]
    }

    /// Returns the place of all of it.
    pub(crate) fn span(&self) -> Span {
        match self.words.last() {
            Some(last) if last.span.file == self.at.file => self.at.to(last.span),
            _ => self.at,
        }
    }
}

/// A `local-zone`. Blocklists have a million of them: kept is only where each stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneLine {
    /// From the keyword to the type.
    at: Span,
    /// Begin and end of the name.
    name: (u32, u32),
    /// Where the type begins.
    kind: u32,
}

/// A `local-zone` with its words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneStatement<'s> {
    pub(crate) name: &'s str,
    pub(crate) kind: &'s str,
    line: ZoneLine,
}

impl ZoneStatement<'_> {
    /// Returns the place of all of it.
    pub(crate) const fn span(&self) -> Span {
        self.line.at
    }

    /// Returns the place of the name.
    pub(crate) const fn name_span(&self) -> Span {
        Span { start: self.line.name.0, end: self.line.name.1, ..self.line.at }
    }

    /// Returns the place of the type.
    pub(crate) const fn kind_span(&self) -> Span {
        Span { start: self.line.kind, ..self.line.at }
    }
}

/// A section with what it says; those of `server:` are one.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) section: Section,
    pub(crate) at: Span,
    /// All but local zones.
    pub(crate) statements: Vec<Statement>,
    /// Its local zones.
    pub(crate) zones: Vec<ZoneLine>,
}

/// Everything that the files say.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    /// Of `server:` the first block has everything.
    pub(crate) blocks: Vec<Block>,
    /// The directory that names of files are relative to.
    pub(crate) directory: PathBuf,
    /// The files.
    pub(crate) sources: Vec<Arc<Source>>,
}

/// Returns a local zone with its words, which stand in one of the files.
pub(crate) fn zone_statement(sources: &[Arc<Source>], line: ZoneLine) -> ZoneStatement<'_> {
    let text = |start: u32, end: u32| {
        let source = sources.get(usize::from(line.at.file.0));
        source.and_then(|source| source.text.get(start as usize..end as usize)).unwrap_or("")
    };
    ZoneStatement { name: text(line.name.0, line.name.1), kind: text(line.kind, line.at.end), line }
}

impl Statements {
    /// Returns the local zones of a section.
    pub(crate) fn zones<'s>(
        &'s self,
        block: &'s Block,
    ) -> impl ExactSizeIterator<Item = ZoneStatement<'s>> + use<'s> {
        block.zones.iter().map(|&line| zone_statement(&self.sources, line))
    }

    /// Puts what later sections say of a view to what the first one says.
    pub(crate) fn merge_views(&mut self) {
        let mut merged: Vec<Block> = Vec::with_capacity(self.blocks.len());
        for block in std::mem::take(&mut self.blocks) {
            let name_of = |block: &Block| match block.section {
                Section::View => block.last("name").map(|name| name.text.clone()),
                _ => None,
            };
            let name = name_of(&block);
            let same = merged.iter_mut().find(|other| name.is_some() && name_of(other) == name);
            match same {
                Some(other) => {
                    other.statements.extend(block.statements);
                    other.zones.extend(block.zones);
                }
                None => merged.push(block),
            }
        }
        self.blocks = merged;
    }
}

/// Reads the file numbered `main` and those that it includes, to what others have said before.
pub(crate) fn read(
    main: FileId,
    sources: &mut Sources,
    environment: &dyn Environment,
    before: Statements,
    problems: &mut Vec<Problem>,
) -> Statements {
    let mut reader = Reader {
        sources,
        environment,
        problems,
        files: 1,
        octets: 0,
        section: None,
        begun: None,
        skips: false,
        found: before,
    };
    reader.file(main, 0);
    reader.unfinished();
    let mut found = reader.found;
    found.sources = sources.shared();
    found
}

struct Reader<'a> {
    sources: &'a mut Sources,
    environment: &'a dyn Environment,
    problems: &'a mut Vec<Problem>,
    files: usize,
    octets: u64,
    /// The section that is open, and its place among the blocks.
    section: Option<(Section, usize)>,
    /// A keyword that does not have all its words yet.
    begun: Option<Statement>,
    /// Behind a keyword that nobody knows, words go by until one follows that somebody does.
    skips: bool,
    found: Statements,
}

impl Reader<'_> {
    fn file(&mut self, file: FileId, depth: usize) {
        let Some(source) = self.sources.shared_file(file) else { return };
        let text = &*source.text;
        self.octets += text.len() as u64;
        let mut words = Words { text, at: 0 };
        while let Some(next) = words.next(self.begun.is_none()) {
            let span = |range: &Range<usize>| Span { file, start: range.start as u32, end: range.end as u32 };
            match next {
                Next::Unclosed(range) => {
                    self.problems.push(
                        Problem::error(span(&range), "this quoted text does not end on its line")
                            .expected("the same quotation mark once more"),
                    );
                }
                Next::Word(range, false) if text[range.clone()] == *"include:" => {
                    self.include(&mut words, span(&range), (file, depth), false);
                }
                Next::Word(range, false) if text[range.clone()] == *"include-toplevel:" => {
                    self.include(&mut words, span(&range), (file, depth), true);
                }
                Next::Word(range, false) if self.local_zone(&mut words, file, &range) => {}
                Next::Word(range, is_quoted) => {
                    let word = Word { text: text[range.clone()].to_owned(), span: span(&range) };
                    self.word(word, is_quoted);
                }
            }
        }
    }

    /// Takes a local zone if that is what begins here, and is there whole; returns whether it was.
    fn local_zone(&mut self, words: &mut Words<'_>, file: FileId, keyword: &Range<usize>) -> bool {
        let begins = self.begun.is_none() && words.text[keyword.clone()] == *"local-zone:";
        let block = match self.section {
            Some((Section::Server | Section::View, block)) if begins => block,
            _ => return false,
        };
        let begin = words.at;
        let (Some(Next::Word(name, _)), Some(Next::Word(kind, _)), Some(block)) =
            (words.next(false), words.next(false), self.found.blocks.get_mut(block))
        else {
            words.at = begin;
            return false;
        };
        self.skips = false;
        let at = Span { file, start: keyword.start as u32, end: kind.end as u32 };
        block.zones.push(ZoneLine {
            at,
            name: (name.start as u32, name.end as u32),
            kind: kind.start as u32,
        });
        true
    }

    /// Takes the next word.
    fn word(&mut self, word: Word, is_quoted: bool) {
        if let Some(mut begun) = self.begun.take() {
            begun.words.push(word);
            if begun.words.len() < begun.row.form.words() {
                self.begun = Some(begun);
            } else {
                self.finished(begun);
            }
            return;
        }
        let Some(name) = word.text.strip_suffix(':').filter(|_| !is_quoted) else {
            if !self.skips {
                let message = format!("\"{}\" is not a keyword", word.text);
                let problem = Problem::error(word.span, message).expected("a word with \":\" behind it");
                self.problems.push(match keywords::sections_with(&word.text).first() {
                    Some(_) => problem.hint(format!("write \"{}:\"", word.text)),
                    None => problem,
                });
                self.skips = true;
            }
            return;
        };
        if let Some(section) = keywords::section(name) {
            return self.open(section, word.span);
        }
        let row =
            self.section.and_then(|(section, _)| keywords::rows(section).iter().find(|row| row.name == name));
        match row {
            Some(row) => {
                self.skips = false;
                self.begun = Some(Statement { row, at: word.span, words: Vec::new() });
            }
            None => self.unknown(name, word.span),
        }
    }

    fn unknown(&mut self, name: &str, at: Span) {
        self.skips = true;
        let problem = match (keywords::sections_with(name).as_slice(), self.section) {
            ([], section) => {
                let problem = Problem::error(at, format!("unknown keyword \"{name}\""));
                match nearest(name, keywords::words(section.map(|(section, _)| section))) {
                    Some(near) => problem.hint(format!("did you mean \"{near}\"?")),
                    None => problem,
                }
            }
            ([first, ..], None) => Problem::error(at, format!("\"{name}\" stands in no section"))
                .expected(format!("\"{first}:\" before it")),
            (known, Some((section, _))) => {
                let (open, known) = (keywords::section_name(section), known.join("\" or \""));
                Problem::error(at, format!("\"{name}\" is no keyword of the section \"{open}\""))
                    .expected(format!("it in \"{known}\""))
            }
        };
        self.problems.push(problem);
    }

    fn open(&mut self, section: Section, at: Span) {
        self.skips = false;
        let known = self.found.blocks.iter().position(|block| block.section == section && section.is_one());
        let block = known.unwrap_or_else(|| {
            self.found.blocks.push(Block { section, at, statements: Vec::new(), zones: Vec::new() });
            self.found.blocks.len() - 1
        });
        self.section = Some((section, block));
    }

    fn finished(&mut self, statement: Statement) {
        let form = statement.row.form;
        for word in &statement.words {
            if let Some(expected) = form.expected(&word.text) {
                let message = format!("\"{}\" is no value of \"{}\"", word.text, statement.row.name);
                self.problems.push(Problem::error(word.span, message).expected(expected));
                return;
            }
        }
        let value = &statement.word(0).text;
        if let ("directory", Some((Section::Server, _))) = (statement.row.name, self.section) {
            self.found.directory = value.into();
        }
        self.note(&statement);
        if let Some((_, block)) = self.section
            && let Some(block) = self.found.blocks.get_mut(block)
        {
            if let ("local-zone", [name, kind]) = (statement.row.name, statement.words.as_slice()) {
                // Its words stand in one file: an include between them would have its own.
                let name = (name.span.start, name.span.end);
                block.zones.push(ZoneLine { at: statement.span(), name, kind: kind.span.start });
                return;
            }
            block.statements.push(statement);
        }
    }

    /// Says of a keyword without effect that it has none.
    fn note(&mut self, statement: &Statement) {
        let row = statement.row;
        let says_default = statement.words.len() == 1
            && match row.form {
                Form::Size => keywords::size(&statement.word(0).text) == keywords::size(row.default),
                _ => statement.word(0).text == row.default,
            };
        let name = row.name;
        let problem = match row.becomes {
            Becomes::Setting | Becomes::Silent(_) => return,
            Becomes::Always(_) if statement.word(0).text == "yes" => return,
            Becomes::Nothing(reason) | Becomes::Always(reason) => {
                Problem::warning(statement.at, format!("\"{name}\" has no effect: {reason}"))
            }
            // What is asked for is what happens.
            Becomes::Lacking if says_default => return,
            Becomes::Lacking => Problem::warning(
                statement.span(),
                format!("\"{name}\" has no effect yet: the server behaves as without it"),
            ),
        };
        self.problems.push(problem);
    }

    /// Says that the last keyword lacks a word.
    fn unfinished(&mut self) {
        if let Some(begun) = self.begun.take() {
            let words = begun.row.form.words();
            let expected =
                if words == 1 { "a value behind it".to_owned() } else { format!("{words} values behind it") };
            let message = format!("\"{}\" is not complete", begun.row.name);
            self.problems.push(Problem::error(begun.at, message).expected(expected));
        }
    }

    /// Reads the files that the next word names.
    fn include(&mut self, words: &mut Words<'_>, at: Span, (file, depth): (FileId, usize), is_top: bool) {
        let Some(Next::Word(range, _)) = words.next(false) else {
            self.problems.push(Problem::error(at, "no file is named here").expected("the path of a file"));
            return;
        };
        let asked = Span { file, start: range.start as u32, end: range.end as u32 };
        // `chroot` does not matter: the other program reads files before it confines itself.
        let wanted = self.found.directory.join(&words.text[range]);
        for path in glob::expand(&wanted.to_string_lossy(), self.environment) {
            if is_top {
                self.section = None;
            }
            if !self.include_file(&path, asked, depth) {
                break;
            }
        }
        if is_top {
            self.section = None;
        }
    }

    /// Reads one included file; returns whether further ones may be read.
    fn include_file(&mut self, path: &Path, asked: Span, depth: usize) -> bool {
        let shown = path.display();
        if depth + 1 > DEPTH_MAX {
            let message = format!("files include files more than {DEPTH_MAX} levels deep");
            self.problems.push(Problem::error(asked, message));
            return false;
        }
        if self.files >= FILES_MAX || self.octets >= OCTETS_MAX as u64 {
            // Once is enough: each file on the way here would say it again.
            if self.files != usize::MAX {
                let message =
                    format!("more than {FILES_MAX} files, or {} MiB, are included", OCTETS_MAX >> 20);
                self.problems.push(Problem::error(asked, message));
                self.files = usize::MAX;
            }
            return false;
        }
        self.files += 1;
        let text = self.environment.read_list(path, (OCTETS_MAX as u64).saturating_sub(self.octets));
        match text.map(String::from_utf8) {
            Ok(Ok(text)) => {
                let file = self.sources.add(path, text);
                self.file(file, depth + 1);
            }
            Ok(Err(_)) => {
                self.problems.push(Problem::error(asked, format!("\"{shown}\" is not UTF-8 text")));
            }
            Err(error) => {
                let message = format!("\"{shown}\": cannot read it: {}", io_text(&error));
                self.problems.push(Problem::error(asked, message));
            }
        }
        true
    }
}

/// What comes next in a file.
enum Next {
    /// A word, without its quotation marks; whether it had some.
    Word(Range<usize>, bool),
    /// A quotation mark that has no second one on its line.
    Unclosed(Range<usize>),
}

/// A file, word by word.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl Words<'_> {
    /// Returns the next word. A keyword ends with its colon even if its value follows at once.
    fn next(&mut self, is_keyword: bool) -> Option<Next> {
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
