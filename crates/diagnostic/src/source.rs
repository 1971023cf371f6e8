//! The files a configuration was read from, and places in them.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::redact::{self, Known, Secret};
use crate::shortened::{LineForm, LineRun, Shortened};

/// Which file, by its place in [`Sources`]: files are numbered in the order in which they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u16);

impl FileId {
    /// Stands for what no file says: built-in defaults.
    pub const BUILT_IN: Self = Self(u16::MAX);
}

/// A range of octets in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The first octet.
    pub start: u32,
    /// The octet after the last one.
    pub end: u32,
}

impl Span {
    /// Marks a value that no file wrote.
    pub const BUILT_IN: Self = Self { file: FileId::BUILT_IN, start: 0, end: 0 };

    /// Returns the place of a whole line, by its number from one: of one that is not part of the
    /// text of its file, too.
    pub const fn of_line(file: FileId, line: u32) -> Self {
        let at = LINE | line;
        Self { file, start: at, end: at }
    }

    /// Returns the range from the start of `self` to the end of `other`, which is in the same file.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { end: other.end.max(self.end), ..self }
    }
}

/// Marks the number of a line in the place of an octet. Texts are shorter.
const LINE: u32 = 1 << 31;

/// A value and the place where it was written.
#[derive(Clone, Copy, Debug)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// The place.
    pub span: Span,
}

/// Two settings are equal when they say the same, wherever they say it.
impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}
impl<T: Eq> Eq for At<T> {}

/// One file's text.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path as the user wrote it, joined to the including file's directory.
    pub path: PathBuf,
    /// The text, without lines that are kept apart.
    kept: Shortened,
    /// What relative paths in it are relative to, if that is not the folder of `path`.
    base: Option<Arc<Path>>,
    /// Where each line of the text starts.
    line_starts: Vec<u32>,
}

/// A line and column, both counted from one; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl Source {
    fn new(path: PathBuf, kept: Shortened) -> Self {
        let starts = kept.text.match_indices('\n').map(|(at, _)| at as u32 + 1);
        let line_starts = std::iter::once(0).chain(starts).collect();
        Self { path, kept, base: None, line_starts }
    }

    /// Returns a text that is no file, by what people call it; relative paths in it are relative to
    /// `base`.
    pub fn beside(name: &Path, text: String, base: Arc<Path>) -> Self {
        let kept = Shortened { text, ..Shortened::default() };
        Self { base: Some(base), ..Self::new(name.to_owned(), kept) }
    }

    /// Returns the text, without lines that are kept apart.
    pub fn text(&self) -> &str {
        &self.kept.text
    }

    /// Returns a part of the text; `None` if it has no such part.
    pub fn part(&self, at: Span) -> Option<Cow<'_, str>> {
        match self.kept.text.get(at.start as usize..at.end as usize) {
            Some(text) => Some(Cow::Borrowed(text)),
            None if at.start & LINE != 0 => Some(Cow::Owned(self.line(at.start ^ LINE).trim().to_owned())),
            None => None,
        }
    }

    /// Returns the forms of lines that are kept apart.
    pub fn forms(&self) -> &[LineForm] {
        &self.kept.forms
    }

    /// Walks the file as it was, piece by piece, with lines that are kept apart.
    pub fn pieces(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.kept.pieces()
    }

    /// Returns the folder that relative paths in it are relative to.
    pub fn directory(&self) -> Option<&Path> {
        self.base.as_deref().or_else(|| self.path.parent())
    }

    /// Returns the line and column of the octet at `offset`.
    pub fn place(&self, offset: u32) -> Place {
        if offset & LINE != 0 {
            let line = offset ^ LINE;
            let shown = self.line(line);
            let blank = shown.chars().take_while(|c| c.is_whitespace()).count();
            return Place { line, column: blank as u32 + 1 };
        }
        let number = self.line_starts.partition_point(|&start| start <= offset).max(1) - 1;
        let start = self.line_starts.get(number).copied().unwrap_or(0);
        let before = self.kept.text.get(start as usize..offset as usize).unwrap_or("");
        let line = match self.kept.run_before(start) {
            Some(run) => run.line as usize + run.count as usize + number - self.number_at(run),
            None => number + 1,
        };
        Place { line: line as u32, column: before.chars().count() as u32 + 1 }
    }

    /// Returns how many lines of the text stand before a run.
    fn number_at(&self, run: &LineRun) -> usize {
        self.line_starts.partition_point(|&start| start < run.at)
    }

    /// Returns the number of a line among those of the text, from zero; `None` of one that is kept
    /// apart.
    fn number_of(&self, line: u32) -> Option<usize> {
        match self.kept.run_of(line) {
            None => Some((line as usize).saturating_sub(1)),
            Some(run) => {
                let behind = (line - run.line).checked_sub(run.count)?;
                Some(self.number_at(run) + behind as usize)
            }
        }
    }

    /// Returns the text of the line numbered `line`, without its end.
    pub fn line(&self, line: u32) -> Cow<'_, str> {
        let Some(number) = self.number_of(line) else {
            let text = self.kept.apart(line).unwrap_or_default();
            return Cow::Owned(text.trim_end_matches(['\n', '\r']).to_owned());
        };
        let text = &self.kept.text;
        let start = self.line_starts.get(number).map_or(text.len(), |&at| at as usize);
        let end = self.line_starts.get(number + 1).map_or(text.len(), |&at| at as usize);
        Cow::Borrowed(text.get(start..end).unwrap_or("").trim_end_matches(['\n', '\r']))
    }
}

/// Every file read, in the order in which they were read.
#[derive(Clone, Debug)]
pub struct Sources {
    files: Vec<Arc<Source>>,
    known: Known,
}

impl Sources {
    /// Returns an empty list of files in which the values of these keys are secrets: whoever reads
    /// files must say which.
    pub fn new(secret_keys: &[&'static str]) -> Self {
        Self { files: Vec::new(), known: Known { keys: secret_keys.into(), secrets: Arc::new([]) } }
    }

    /// Returns the keys whose values are secrets.
    pub fn secret_keys(&self) -> &[&'static str] {
        &self.known.keys
    }

    /// Adds a file. More files than a number fits share the last one; the include limit is far
    /// below.
    pub fn add(&mut self, path: &Path, text: String) -> FileId {
        self.add_shortened(path, Shortened { text, ..Shortened::default() })
    }

    /// Adds a file of which some lines are kept apart.
    pub fn add_shortened(&mut self, path: &Path, kept: Shortened) -> FileId {
        self.add_shared(Arc::new(Source::new(path.to_owned(), kept)))
    }

    /// Adds what was made before, which other lists may have, too.
    pub fn add_shared(&mut self, source: Arc<Source>) -> FileId {
        self.files.push(source);
        FileId((self.files.len() - 1).min(usize::from(u16::MAX - 1)) as u16)
    }

    /// Says what a file holds that was added before it was read.
    pub fn fill(&mut self, file: FileId, kept: Shortened) {
        if let Some(place) = self.files.get_mut(usize::from(file.0)) {
            *place = Arc::new(Source::new(place.path.clone(), kept));
        }
    }

    /// Shares with other files whatever words of lines are the same in both.
    pub fn share_words(&mut self, with: &Self) {
        for (file, other) in self.files.iter_mut().zip(&with.files) {
            if file.forms().is_empty() {
                continue;
            }
            let file = Arc::make_mut(file);
            for (form, other) in file.kept.forms.iter_mut().zip(other.forms()) {
                if form.words == other.words {
                    form.words = Arc::clone(&other.words);
                }
            }
        }
    }

    /// Returns the file; `None` for what no file says.
    pub fn file(&self, file: FileId) -> Option<&Source> {
        self.files.get(usize::from(file.0)).map(Arc::as_ref)
    }

    /// Returns what is written at a place, in one line; `None` for what no file says.
    pub fn text(&self, at: Span) -> Option<String> {
        let text = self.file(at.file)?.part(at)?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Keeps these out of lines and messages.
    pub fn hide(&mut self, secrets: Vec<Secret>) {
        self.known.secrets = secrets.into();
    }

    /// Returns a line of a file as it may be shown.
    pub(crate) fn shown_line(&self, file: FileId, line: u32) -> String {
        let Some(source) = self.file(file) else { return String::new() };
        let text = source.text();
        // Before a line that is kept apart stands nothing that it could belong to.
        let before = source.number_of(line).map_or("", |number| {
            let at = source.line_starts.get(number).map_or(text.len(), |&at| at as usize);
            text.get(..at).unwrap_or_default()
        });
        redact::line(before, &source.line(line), &self.known, file)
    }

    /// Returns a sentence as it may be shown.
    pub(crate) fn shown_sentence(&self, text: String) -> String {
        match redact::sentence(&text, &self.known.secrets) {
            Cow::Borrowed(_) => text,
            Cow::Owned(shown) => shown,
        }
    }

    /// Returns the file, to be kept; `None` for what no file says.
    pub fn shared_file(&self, file: FileId) -> Option<Arc<Source>> {
        self.files.get(usize::from(file.0)).cloned()
    }

    /// Returns all files, to be kept.
    pub fn shared(&self) -> Vec<Arc<Source>> {
        self.files.clone()
    }

    /// Returns all files.
    pub fn files(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().map(Arc::as_ref)
    }

    /// Returns "line 3", or "conf.d/a.yaml line 3" when `at` is in another file than `from`.
    pub fn describe(&self, at: Span, from: FileId) -> String {
        let Some(source) = self.file(at.file) else { return "built in".to_owned() };
        let line = source.place(at.start).line;
        if at.file == from {
            format!("line {line}")
        } else {
            format!("{} line {line}", source.path.display())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, offset: u32, line: u32, column: u32, whole: &str) {
        let mut sources = Sources::new(&[]);
        let file = sources.add(Path::new("x"), text.to_owned());
        let source = sources.file(file).expect("just added");
        assert_eq!(source.place(offset), Place { line, column });
        assert_eq!(source.line(line), whole);
    }

    #[test]
    fn columns_count_characters() {
        check("a: b\nüx: ö\n", 0, 1, 1, "a: b");
        check("a: b\nüx: ö\n", 10, 2, 5, "üx: ö");
        check("a: b\r\n", 3, 1, 4, "a: b");
        check("", 0, 1, 1, "");
        check("a\n", 2, 2, 1, "");
    }

    #[test]
    fn lines_that_are_kept_apart_have_their_places() {
        let text = "a\n b \"1\" x\n b \"2\" x\nc\nd\n b \"3\" x\n e 5\n";
        let form =
            LineForm { before: " b \"".into(), behind: "\" x\n".into(), words: "1\n2\n3\n".into(), count: 3 };
        let run = |at, line, count, first| LineRun { at, line, count, form: 0, first };
        let runs = vec![run(2, 2, 2, 0), run(6, 6, 1, 4)];
        let kept = Shortened { text: "a\nc\nd\n e 5\n".to_owned(), forms: vec![form], runs };
        let mut sources = Sources::new(&[]);
        let file = sources.add(Path::new("x"), String::new());
        sources.fill(file, kept);
        let source = sources.file(file).expect("just added");
        assert_eq!(source.pieces().collect::<String>(), text);
        for (line, whole) in (1..).zip(text.lines()) {
            assert_eq!(source.line(line), whole, "{line}");
        }
        for (offset, line, column) in [(0, 1, 1), (2, 4, 1), (4, 5, 1), (6, 7, 1), (9, 7, 4), (11, 8, 1)] {
            assert_eq!(source.place(offset), Place { line, column }, "{offset}");
        }
        let apart = Span::of_line(file, 6);
        assert_eq!(source.place(apart.start), Place { line: 6, column: 2 });
        assert_eq!(sources.text(apart).as_deref(), Some("b \"3\" x"));
        assert_eq!(sources.shown_line(file, 3), " b \"2\" x");
        assert_eq!(sources.describe(apart, file), "line 6");
    }
}
