//! The grammar: words to statements, through all included files.

use std::path::{Path, PathBuf};

use diagnostic::suggest::nearest;
use diagnostic::{FileId, Problem, Sources, Span, io_text};
use environment::Environment;

use crate::glob;
use crate::keywords::{self, Becomes, Form, Row, Section};

/// How deep files may include files.
const DEPTH_MAX: usize = 32;
/// Files of one configuration, each as often as it is included, so that a few of them that include
/// each other twice do not keep the server from starting.
const FILES_MAX: usize = 10_000;
/// Octets of all files, each as often as it is included.
const OCTETS_MAX: u64 = 1 << 30;

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

/// A section with what it says; those of `server:` are one.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) section: Section,
    pub(crate) at: Span,
    pub(crate) statements: Vec<Statement>,
}

/// Everything that the files say.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    /// Of `server:` the first block has everything.
    pub(crate) blocks: Vec<Block>,
    /// The directory that names of files are relative to.
    pub(crate) directory: PathBuf,
}

impl Statements {
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
                Some(other) => other.statements.extend(block.statements),
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
    reader.found
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
        let text = self.sources.file(file).map(|source| source.text.clone()).unwrap_or_default();
        self.octets += text.len() as u64;
        let mut words = Words { text: &text, at: 0 };
        while let Some(next) = words.next(self.begun.is_none()) {
            let span = |range: &std::ops::Range<usize>| Span {
                file,
                start: range.start as u32,
                end: range.end as u32,
            };
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
                Next::Word(range, is_quoted) => {
                    let word = Word { text: text[range.clone()].to_owned(), span: span(&range) };
                    self.word(word, is_quoted);
                }
            }
        }
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
        let known = self.found.blocks.iter().position(|block| {
            block.section == section && matches!(section, Section::Server | Section::RemoteControl)
        });
        let block = known.unwrap_or_else(|| {
            self.found.blocks.push(Block { section, at, statements: Vec::new() });
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
            Becomes::Lacking | Becomes::Refused if says_default => return,
            Becomes::Lacking => Problem::warning(
                statement.span(),
                format!("\"{name}\" has no effect yet: the server behaves as without it"),
            ),
            Becomes::Refused => Problem::error(
                statement.span(),
                format!("\"{name}\" is not supported yet, and without it clients would get other answers"),
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
        if self.files >= FILES_MAX || self.octets >= OCTETS_MAX {
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
        let text = self.environment.read_list(path, OCTETS_MAX - self.octets);
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
    Word(std::ops::Range<usize>, bool),
    /// A quotation mark that has no second one on its line.
    Unclosed(std::ops::Range<usize>),
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
