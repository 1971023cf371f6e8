//! A file of which lines that are alike are kept apart: a million of them differ in one word each.

use std::borrow::Cow;
use std::sync::Arc;

/// What lines that are alike consist of besides the word that each has of its own.
#[derive(Clone, Debug)]
pub struct LineForm {
    /// What stands before the word.
    pub before: Box<str>,
    /// What stands behind it, with the end of the line.
    pub behind: Box<str>,
    /// The words of all lines, in the order of the file, each with a line feed behind it; nothing
    /// if nobody needs them.
    pub words: Arc<str>,
    /// How many lines there are.
    pub count: u32,
}

/// Lines of one form that follow each other in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRun {
    /// How many octets of the text that is kept stand before them.
    pub at: u32,
    /// The number of the first one, from one.
    pub line: u32,
    /// How many there are.
    pub count: u32,
    /// Which form they have.
    pub form: u32,
    /// Where the first word is among the words of the form.
    pub first: u32,
}

/// The text of a file, and lines of it that are kept apart. These are named by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Shortened {
    /// All other lines.
    pub text: String,
    /// The forms of lines.
    pub forms: Vec<LineForm>,
    /// Which lines are kept apart, in the order of the file.
    pub runs: Vec<LineRun>,
}

impl Shortened {
    /// Returns the run that a line is in, if it is in one.
    pub(crate) fn run_of(&self, line: u32) -> Option<&LineRun> {
        self.runs.get(self.runs.partition_point(|run| run.line <= line).checked_sub(1)?)
    }

    /// Returns the run that stands before octet `at` of the text.
    pub(crate) fn run_before(&self, at: u32) -> Option<&LineRun> {
        self.runs.get(self.runs.partition_point(|run| run.at <= at).checked_sub(1)?)
    }

    /// Returns the form of a run.
    pub(crate) fn form(&self, run: &LineRun) -> Option<&LineForm> {
        self.forms.get(run.form as usize)
    }

    /// Returns the lines of a run as they stood in the file.
    fn lines_of(&self, run: &LineRun) -> impl Iterator<Item = String> {
        let form = self.form(run);
        let words = form.and_then(|form| form.words.get(run.first as usize..)).unwrap_or("");
        let words = words.split_terminator('\n').take(run.count as usize);
        words.filter_map(move |word| form.map(|form| format!("{}{word}{}", form.before, form.behind)))
    }

    /// Returns a line that is kept apart, with its end.
    pub(crate) fn apart(&self, line: u32) -> Option<String> {
        let run = self.run_of(line)?;
        self.lines_of(run).nth((line - run.line) as usize)
    }

    /// Walks the file as it was: whatever is kept, and the lines that are kept apart, in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let begins = std::iter::once(0).chain(self.runs.iter().map(|run| run.at as usize));
        let ends = self.runs.iter().map(|run| run.at as usize).chain([self.text.len()]);
        let kept = begins.zip(ends).map(|(begin, end)| self.text.get(begin..end).unwrap_or(""));
        kept.zip(self.runs.iter().map(Some).chain([None])).flat_map(|(text, run)| {
            let apart = run.into_iter().flat_map(|run| self.lines_of(run)).map(Cow::Owned);
            std::iter::once(Cow::Borrowed(text)).chain(apart)
        })
    }
}
