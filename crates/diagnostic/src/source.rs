//! The files a configuration was read from, and places in them.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::redact::{self, Known, Secret};

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

    /// Returns the range from the start of `self` to the end of `other`, which is in the same file.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { end: other.end.max(self.end), ..self }
    }
}

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
    /// The text.
    pub text: String,
    /// What relative paths in it are relative to, if that is not the folder of `path`.
    base: Option<PathBuf>,
    /// Where each line starts.
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
    fn new(path: PathBuf, text: String) -> Self {
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at as u32 + 1)).collect();
        Self { path, text, base: None, line_starts }
    }

    /// Returns the folder that relative paths in it are relative to.
    pub fn directory(&self) -> Option<&Path> {
        self.base.as_deref().or_else(|| self.path.parent())
    }

    /// Returns the line and column of the octet at `offset`.
    pub fn place(&self, offset: u32) -> Place {
        let line = self.line_starts.partition_point(|&start| start <= offset).max(1);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start as usize..offset as usize).unwrap_or("");
        Place { line: line as u32, column: before.chars().count() as u32 + 1 }
    }

    /// Returns the text of the line numbered `line`, without its end.
    pub fn line(&self, line: u32) -> &str {
        let start = self.line_starts.get(line as usize - 1).map_or(self.text.len(), |&at| at as usize);
        let end = self.line_starts.get(line as usize).map_or(self.text.len(), |&at| at as usize);
        self.text.get(start..end).unwrap_or("").trim_end_matches(['\n', '\r'])
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
        self.files.push(Arc::new(Source::new(path.to_owned(), text)));
        FileId((self.files.len() - 1).min(usize::from(u16::MAX - 1)) as u16)
    }

    /// Adds a text that is no file, by what people call it; relative paths in it are relative to
    /// `base`.
    pub fn add_beside(&mut self, name: &Path, text: String, base: PathBuf) -> FileId {
        let id = self.add(name, String::new());
        let source = Source { base: Some(base), ..Source::new(name.to_owned(), text) };
        if let Some(last) = self.files.last_mut() {
            *last = Arc::new(source);
        }
        id
    }

    /// Returns the file; `None` for what no file says.
    pub fn file(&self, file: FileId) -> Option<&Source> {
        self.files.get(usize::from(file.0)).map(Arc::as_ref)
    }

    /// Returns what is written at a place, in one line; `None` for what no file says.
    pub fn text(&self, at: Span) -> Option<String> {
        let text = self.file(at.file)?.text.get(at.start as usize..at.end as usize)?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Keeps these out of lines and messages.
    pub fn hide(&mut self, secrets: Vec<Secret>) {
        self.known.secrets = secrets.into();
    }

    /// Returns a line of a file as it may be shown.
    pub(crate) fn shown_line(&self, file: FileId, line: u32) -> String {
        let Some(source) = self.file(file) else { return String::new() };
        let at = source.line_starts.get(line as usize - 1).map_or(source.text.len(), |&at| at as usize);
        let before = source.text.get(..at).unwrap_or_default();
        redact::line(before, source.line(line), &self.known, file)
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
}
