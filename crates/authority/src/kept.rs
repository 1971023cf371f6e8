//! Changes of settings as they are kept in the store.

use std::sync::Arc;

use settings::overlay::SettingPath;
use store::{Store, StoreError, Trouble};

use crate::SPACE;
use crate::entries::{Entries, Entry};

/// What became of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhatBecame {
    /// This is said there.
    Text(Arc<str>),
    /// Nothing is said there, whatever the files say.
    Nothing,
}

/// What marks the two in the store.
const TEXT: char = '=';
const NOTHING: &str = "-";

impl WhatBecame {
    pub(crate) fn encoded(&self) -> String {
        match self {
            Self::Text(text) => format!("{TEXT}{text}"),
            Self::Nothing => NOTHING.to_owned(),
        }
    }

    /// Reads what [`Self::encoded`] returned.
    pub fn decode(text: &str) -> Option<Self> {
        match text.strip_prefix(TEXT) {
            Some(text) => Some(Self::Text(text.into())),
            None => (text == NOTHING).then_some(Self::Nothing),
        }
    }
}

/// A change of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What became of it.
    pub what: WhatBecame,
    /// The revision that made it so.
    pub revision: u64,
    /// Who did.
    pub by: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// Why; may be empty.
    pub why: String,
    /// The second since 1970 at which it ends.
    pub until: Option<u64>,
}

/// Returns the error of an entry that is none of ours.
fn strange(name: &str, why: &str) -> StoreError {
    StoreError::Trouble(Trouble::Damaged(name.into(), why.to_owned()))
}

fn parsed(name: &str, text: &str) -> Result<(SettingPath, WhatBecame), StoreError> {
    let path = SettingPath::parse(name).map_err(|why| strange(name, &why))?;
    let what =
        WhatBecame::decode(text).ok_or_else(|| strange(name, "it is neither a text nor taken away"))?;
    Ok((path, what))
}

/// Reads all changes, and the revision.
pub(crate) fn read(store: &Store) -> Result<(Entries, u64), StoreError> {
    let mut entries = Entries::new();
    for entry in store.entries(SPACE)? {
        let (path, what) = parsed(&entry.name, &entry.text)?;
        let (revision, by, at, why, until) = (entry.revision, entry.by, entry.at, entry.why, entry.until);
        let entry = Entry::new(&path, Kept { what, revision, by, at, why, until });
        entries.insert(path, entry);
    }
    Ok((entries, store.position()?.revision))
}

/// Reads the changes that a revision had.
pub(crate) fn read_at(store: &Store, revision: u64) -> Result<Entries, StoreError> {
    let mut entries = Entries::new();
    for (name, (text, until)) in store.entries_at(SPACE, revision)? {
        let (path, what) = parsed(&name, &text)?;
        let (by, why) = (String::new(), String::new());
        let entry = Entry::new(&path, Kept { what, revision, by, at: 0, why, until });
        entries.insert(path, entry);
    }
    Ok(entries)
}
