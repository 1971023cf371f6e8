//! What files said when the server ran last, so that the audit log has how they were changed since.
//!
//! The store has the digest; a file beside it has the settings themselves, with digests in place of
//! secrets. They are written before the row of the audit log can be missed, and after it is there:
//! a row may be written twice after a crash, and is never left out.

use std::collections::BTreeMap;
use std::fs;

use store::{Hash, StoreError};

use crate::last_good::{next, put, write_file};
use crate::{Authority, Refusal};

/// Settings and what they say, on one line and without secrets.
pub type FilesSaid = BTreeMap<String, String>;

/// The file, in the folder for changes.
const FILE: &str = "files-said";
/// The name of the note with its digest.
const NOTE: (&str, &str) = ("files", "said");
/// When the note ends.
const NEVER: u64 = i64::MAX as u64;

/// What became of files since the server ran last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// It is not known: nothing was noted.
    Unknown,
    /// They say the same.
    Same,
    /// They say something else; before they said this, if it can still be read.
    Changed(Option<FilesSaid>),
}

impl Authority {
    /// Returns what became of files since it was noted last what they say.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn files_since(&self, said: &FilesSaid, now: u64) -> Result<Meanwhile, StoreError> {
        let Some(digest) = self.noted(NOTE, now)? else { return Ok(Meanwhile::Unknown) };
        if digest == digest_of(&text_of(said)) {
            return Ok(Meanwhile::Same);
        }
        let text = self.folder.as_deref().and_then(|folder| fs::read_to_string(folder.join(FILE)).ok());
        let text = text.filter(|text| digest_of(text) == digest);
        Ok(Meanwhile::Changed(text.as_deref().and_then(said_in)))
    }

    /// Notes what files say; it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn note_files(&self, said: &FilesSaid, now: u64) -> Result<(), Refusal> {
        let text = text_of(said);
        if let Some(folder) = &self.folder {
            let unwritten = |error| Refusal::Store(StoreError::io(&folder.join(FILE), &error));
            write_file(&folder.join(FILE), text.as_bytes()).map_err(unwritten)?;
        }
        self.note(NOTE, &digest_of(&text), (now, NEVER))
    }

    /// Returns whether there is a store: without one nothing was ever changed or audited.
    pub fn has_store(&self) -> bool {
        self.state().store.is_some() || self.folder.as_deref().is_some_and(store::Store::is_in)
    }
}

fn digest_of(text: &str) -> String {
    Hash::of(text.as_bytes()).to_string()
}

fn text_of(said: &FilesSaid) -> String {
    let mut text = String::new();
    said.iter().flat_map(|(path, says)| [path, says]).for_each(|part| put(&mut text, part));
    text
}

/// Reads what [`text_of`] wrote.
fn said_in(mut text: &str) -> Option<FilesSaid> {
    let mut said = FilesSaid::new();
    while !text.is_empty() {
        let path = next(&mut text)?.to_owned();
        said.insert(path, next(&mut text)?.to_owned());
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_said_is_read_as_it_was_written() {
        let said: FilesSaid = [("a.b", "1"), ("local.\"x.y\"", "[\"two\nlines\", ä]"), ("z", "")]
            .map(|(path, says)| (path.to_owned(), says.to_owned()))
            .into();
        assert_eq!(said_in(&text_of(&said)), Some(said));
        assert_eq!(said_in(""), Some(FilesSaid::new()));
        assert_eq!(said_in("3\na.b\n"), None);
        assert_eq!(said_in("3\na.b\n9\n1\n"), None);
    }
}
