//! The grammar: words to statements, through all included files.

use std::io::{self, BufRead as _, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diagnostic::suggest::nearest;
use diagnostic::{FileId, LineForm, Problem, Shortened, Source, Sources, Span, io_text};
use environment::{Environment, glob};

use crate::OCTETS_MAX;
use crate::apart::{self, Apart, Names};
use crate::keywords::{self, Becomes, Row, Section};
use crate::words::{Next, Words};

/// How deep files may include files.
const DEPTH_MAX: usize = 32;
/// Files of one configuration, each as often as it is included, so that a few of them that include
/// each other twice do not keep the server from starting.
const FILES_MAX: usize = 10_000;
/// Octets of a file that are read at once.
const PIECE_OCTETS: usize = 64 << 10;

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

/// A `local-zone` that stands in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneLine {
    /// From the keyword to the type.
    at: Span,
    /// Begin and end of the name.
    name: (u32, u32),
    /// Where the type begins.
    kind: u32,
}

/// Lines that follow each other and are kept apart, each a `local-zone`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneRun {
    pub(crate) file: FileId,
    /// Which form of that file.
    pub(crate) form: u32,
    /// The number of the first line.
    line: u32,
    pub(crate) count: u32,
    /// Where its name begins among those of the form.
    first: u32,
}

/// One local zone, or many that are alike.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ZoneLines {
    One(ZoneLine),
    Many(ZoneRun),
}

/// A `local-zone` with its words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneStatement<'s> {
    pub(crate) name: &'s str,
    pub(crate) kind: &'s str,
    /// The place of all of it.
    pub(crate) span: Span,
    /// The place of the name.
    pub(crate) name_span: Span,
    /// The place of the type.
    pub(crate) kind_span: Span,
}

/// A section with what it says; those of `server:` are one.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) section: Section,
    pub(crate) at: Span,
    /// All but local zones.
    pub(crate) statements: Vec<Statement>,
    /// Its local zones, in the order in which they were read.
    pub(crate) zones: Vec<ZoneLines>,
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

impl ZoneLine {
    /// Returns it with its words, which stand in one of the files.
    fn statement(self, sources: &[Arc<Source>]) -> ZoneStatement<'_> {
        let Span { file, end, .. } = self.at;
        let (name_span, kind_span) =
            (Span { file, start: self.name.0, end: self.name.1 }, Span { file, start: self.kind, end });
        let text = |at: Span| {
            let text = sources.get(usize::from(file.0)).map_or("", |source| source.text());
            text.get(at.start as usize..at.end as usize).unwrap_or("")
        };
        ZoneStatement { name: text(name_span), kind: text(kind_span), span: self.at, name_span, kind_span }
    }
}

impl ZoneRun {
    /// Returns what its lines consist of.
    pub(crate) fn form(self, sources: &[Arc<Source>]) -> Option<&LineForm> {
        sources.get(usize::from(self.file.0))?.forms().get(self.form as usize)
    }

    /// Returns the type of its zones.
    pub(crate) fn kind(self, sources: &[Arc<Source>]) -> &str {
        self.form(sources).map_or("", apart::kind_of)
    }

    /// Returns the place of its first line.
    pub(crate) const fn span(self) -> Span {
        Span::of_line(self.file, self.line)
    }

    /// Returns the names of its zones, as long as they are kept.
    pub(crate) fn names(self, sources: &[Arc<Source>]) -> impl Iterator<Item = &str> {
        let words = self.form(sources).and_then(|form| form.words.get(self.first as usize..));
        words.unwrap_or("").split_terminator('\n').take(self.count as usize)
    }

    /// Returns its zones with their words.
    pub(crate) fn statements(self, sources: &[Arc<Source>]) -> impl Iterator<Item = ZoneStatement<'_>> {
        let kind = self.kind(sources);
        (self.line..).zip(self.names(sources)).map(move |(line, name)| {
            let span = Span::of_line(self.file, line);
            ZoneStatement { name, kind, span, name_span: span, kind_span: span }
        })
    }

    /// Returns what is left of it without zones of which `is_gone` says so.
    pub(crate) fn without(self, sources: &[Arc<Source>], is_gone: impl Fn(&str) -> bool) -> Vec<Self> {
        let mut left = Vec::new();
        let mut open = Self { count: 0, ..self };
        let mut first = self.first;
        for (line, name) in (self.line..).zip(self.names(sources)) {
            first += name.len() as u32 + 1;
            if is_gone(name) {
                left.push(open);
                open = Self { line: line + 1, first, count: 0, ..self };
            } else {
                open.count += 1;
            }
        }
        left.push(open);
        left.retain(|run| run.count > 0);
        left
    }
}

impl ZoneLines {
    /// Returns the zones with their words.
    pub(crate) fn statements(self, sources: &[Arc<Source>]) -> impl Iterator<Item = ZoneStatement<'_>> {
        let (one, many) = match self {
            Self::One(line) => (Some(line.statement(sources)), None),
            Self::Many(run) => (None, Some(run.statements(sources))),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

impl Statements {
    /// Returns the local zones of a section.
    pub(crate) fn zones<'s>(&'s self, block: &'s Block) -> impl Iterator<Item = ZoneStatement<'s>> + use<'s> {
        block.zones.iter().flat_map(|lines| lines.statements(&self.sources))
    }

    /// Returns whether something is said of zones by their names that makes no sense without them.
    pub(crate) fn names_zones(&self) -> bool {
        let names_one = |it: &Statement| matches!(it.row.name, "local-zone-tag" | "local-zone-override");
        self.blocks.iter().any(|block| block.statements.iter().any(names_one))
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

/// What files are read with.
pub(crate) struct Context<'a> {
    pub(crate) sources: &'a mut Sources,
    pub(crate) environment: &'a dyn Environment,
    pub(crate) problems: &'a mut Vec<Problem>,
    pub(crate) names: Names,
}

/// Reads a file, which everything begins with, and those that it includes, to what others have said
/// before; returns whether it could be read, too.
pub(crate) fn read(
    path: &Path,
    input: impl io::Read,
    context: Context<'_>,
    before: Statements,
) -> (Statements, bool) {
    let mut reader =
        Reader { context, files: 1, octets: 0, section: None, begun: None, skips: false, found: before };
    let file = reader.context.sources.add(path, String::new());
    let unread = reader.file(file, input, 0);
    reader.unfinished();
    let is_read = unread.is_none();
    if let Some(why) = unread {
        reader.context.problems.push(Problem::of_file(file, why));
    }
    let Reader { context, mut found, .. } = reader;
    found.sources = context.sources.shared();
    (found, is_read)
}

struct Reader<'a> {
    context: Context<'a>,
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

/// An `include` that does not have its word yet: its place, and whether what is included begins
/// outside of all sections.
type Asked = Option<(Span, bool)>;

/// A line of a file.
struct Line<'l> {
    file: FileId,
    /// How many octets of the file's text stand before it.
    at: u32,
    text: &'l str,
    depth: usize,
}

impl Line<'_> {
    fn span(&self, range: &Range<usize>) -> Span {
        Span { file: self.file, start: self.at + range.start as u32, end: self.at + range.end as u32 }
    }
}

impl Reader<'_> {
    /// Reads a file, line by line; returns why it cannot be read to its end, if it cannot.
    fn file(&mut self, file: FileId, input: impl io::Read, depth: usize) -> Option<String> {
        let mut input = BufReader::with_capacity(PIECE_OCTETS, input);
        let (mut text, mut apart) = (Vec::new(), Apart::default());
        let mut asked: Asked = None;
        let mut wrong = None;
        for number in 1.. {
            let at = text.len();
            let octets = match input.read_until(b'\n', &mut text) {
                Ok(0) => break,
                Ok(octets) => octets,
                Err(error) => {
                    wrong = Some(format!("cannot read it: {}", io_text(&error)));
                    break;
                }
            };
            self.octets += octets as u64;
            if self.octets > OCTETS_MAX as u64 {
                wrong = Some(format!("larger than {} MiB", OCTETS_MAX >> 20));
                break;
            }
            if self.takes_apart(file, &mut apart, text.get(at..).unwrap_or(&[]), (number, at as u32), asked) {
                text.truncate(at);
                continue;
            }
            let Ok(line) = std::str::from_utf8(text.get(at..).unwrap_or(&[])) else {
                text.truncate(at);
                wrong = Some(format!("not UTF-8 text (line {number})"));
                break;
            };
            self.line(&Line { file, at: at as u32, text: line, depth }, &mut asked);
        }
        if let Some((at, _)) = asked {
            self.names_no_file(at);
        }
        let (forms, runs) = apart.finish();
        text.shrink_to_fit();
        let text = String::from_utf8(text).unwrap_or_default();
        self.context.sources.fill(file, Shortened { text, forms, runs });
        wrong
    }

    /// Keeps a line apart if it is a local zone like many others.
    fn takes_apart(
        &mut self,
        file: FileId,
        apart: &mut Apart,
        line: &[u8],
        place: (u32, u32),
        asked: Asked,
    ) -> bool {
        let Some((Section::Server | Section::View, number)) = self.section else { return false };
        if self.begun.is_some() || asked.is_some() {
            return false;
        }
        let Some(taken) = apart.take(line, number, place, self.context.names) else { return false };
        let Some(block) = self.found.blocks.get_mut(number) else { return false };
        self.skips = false;
        if taken.goes_on
            && let Some(ZoneLines::Many(run)) = block.zones.last_mut()
        {
            run.count += 1;
            return true;
        }
        let run = ZoneRun { file, form: taken.form, line: place.0, count: 1, first: taken.first };
        block.zones.push(ZoneLines::Many(run));
        true
    }

    /// Takes the words of a line.
    fn line(&mut self, line: &Line<'_>, asked: &mut Asked) {
        let text = line.text;
        let mut words = Words { text, at: 0 };
        while let Some(next) = words.next(self.begun.is_none() && asked.is_none()) {
            let include = asked.take();
            match next {
                Next::Unclosed(_) if let Some((at, _)) = include => self.names_no_file(at),
                Next::Unclosed(range) => {
                    self.context.problems.push(
                        Problem::error(line.span(&range), "this quoted text does not end on its line")
                            .expected("the same quotation mark once more"),
                    );
                }
                Next::Word(range, _) if let Some((_, is_top)) = include => {
                    let name = text.get(range.clone()).unwrap_or("");
                    self.include(name, line.span(&range), line.depth, is_top);
                }
                Next::Word(range, false) if text[range.clone()] == *"include:" => {
                    *asked = Some((line.span(&range), false));
                }
                Next::Word(range, false) if text[range.clone()] == *"include-toplevel:" => {
                    *asked = Some((line.span(&range), true));
                }
                Next::Word(range, false) if self.local_zone(&mut words, line, &range) => {}
                Next::Word(range, is_quoted) => {
                    let word = Word { text: text[range.clone()].to_owned(), span: line.span(&range) };
                    self.word(word, is_quoted);
                }
            }
        }
    }

    /// Takes a local zone if that is what begins here, and is there whole; returns whether it was.
    fn local_zone(&mut self, words: &mut Words<'_>, line: &Line<'_>, keyword: &Range<usize>) -> bool {
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
        let (name, kind) = (line.span(&name), line.span(&kind));
        let at = line.span(keyword).to(kind);
        block.zones.push(ZoneLines::One(ZoneLine { at, name: (name.start, name.end), kind: kind.start }));
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
                self.context.problems.push(match keywords::sections_with(&word.text).first() {
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
        self.context.problems.push(problem);
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
        for word in &statement.words {
            if let Some(expected) = statement.row.expected(&word.text) {
                let message = format!("\"{}\" is no value of \"{}\"", word.text, statement.row.name);
                self.context.problems.push(Problem::error(word.span, message).expected(expected));
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
                let line = ZoneLine { at: statement.span(), name, kind: kind.span.start };
                block.zones.push(ZoneLines::One(line));
                return;
            }
            block.statements.push(statement);
        }
    }

    /// Says of a keyword without effect that it has none.
    fn note(&mut self, statement: &Statement) {
        let row = statement.row;
        let name = row.name;
        let problem = match row.becomes {
            Becomes::Setting | Becomes::Silent(_) => return,
            Becomes::Partly(_) if statement.word(0).text.is_empty() => return,
            Becomes::Partly(difference) => {
                Problem::warning(statement.at, format!("\"{name}\" is different here: {difference}"))
            }
            Becomes::Always(_) if statement.word(0).text == "yes" => return,
            Becomes::Nothing(reason) | Becomes::Always(reason) => {
                Problem::warning(statement.at, format!("\"{name}\" has no effect: {reason}"))
            }
        };
        self.context.problems.push(problem);
    }

    /// Says that the last keyword lacks a word.
    fn unfinished(&mut self) {
        if let Some(begun) = self.begun.take() {
            let words = begun.row.form.words();
            let expected =
                if words == 1 { "a value behind it".to_owned() } else { format!("{words} values behind it") };
            let message = format!("\"{}\" is not complete", begun.row.name);
            self.context.problems.push(Problem::error(begun.at, message).expected(expected));
        }
    }

    fn names_no_file(&mut self, at: Span) {
        let problem = Problem::error(at, "no file is named here").expected("the path of a file");
        self.context.problems.push(problem);
    }

    /// Reads the files that a name stands for.
    fn include(&mut self, name: &str, asked: Span, depth: usize, is_top: bool) {
        if !self.context.environment.may_include() {
            self.context.problems.push(Problem::error(asked, "settings that are sent include no files"));
            return;
        }
        // `chroot` does not matter: the other program reads files before it confines itself.
        let wanted = self.found.directory.join(name);
        for path in glob::expand(&wanted.to_string_lossy(), self.context.environment) {
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
            self.context.problems.push(Problem::error(asked, message));
            return false;
        }
        if self.files >= FILES_MAX || self.octets >= OCTETS_MAX as u64 {
            // Once is enough: each file on the way here would say it again.
            if self.files != usize::MAX {
                let message =
                    format!("more than {FILES_MAX} files, or {} MiB, are included", OCTETS_MAX >> 20);
                self.context.problems.push(Problem::error(asked, message));
                self.files = usize::MAX;
            }
            return false;
        }
        self.files += 1;
        let environment = self.context.environment;
        let left = (OCTETS_MAX as u64).saturating_sub(self.octets);
        let unread = match environment.open(path, left) {
            Ok(input) => {
                let file = self.context.sources.add(path, String::new());
                self.file(file, input, depth + 1)
            }
            Err(error) => Some(format!("cannot read it: {}", io_text(&error))),
        };
        if let Some(why) = unread {
            self.context.problems.push(Problem::error(asked, format!("\"{shown}\": {why}")));
        }
        true
    }
}
