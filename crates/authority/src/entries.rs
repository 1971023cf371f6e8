//! The changes in use by their paths, and what a request makes of them.
//!
//! There may be thousands: what concerns one of them looks at those near it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use settings::ChangesAllowed;
use settings::overlay::{Layer, SettingPath};
use store::Put;

use crate::kept::{Kept, WhatBecame};
use crate::{Edit, Refusal, Request, put_of};

/// Changes by their paths. Copies share them.
pub(crate) type Entries = BTreeMap<SettingPath, Arc<Entry>>;

/// A change, and how it is laid over files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kept: Kept,
    pub(crate) layer: Layer,
}

impl Entry {
    pub(crate) fn new(path: &SettingPath, kept: Kept) -> Arc<Self> {
        let text = match &kept.what {
            WhatBecame::Text(text) => Some(Arc::clone(text)),
            WhatBecame::Nothing => None,
        };
        let name = format!("change {} by {}", kept.revision, kept.by);
        Arc::new(Self { layer: Layer::new(path.clone(), text, name), kept })
    }
}

/// Returns changes as they are laid over files.
pub(crate) fn layers(entries: &Entries) -> Vec<Layer> {
    entries.values().map(|entry| entry.layer.clone()).collect()
}

/// Returns the second since 1970 at which the first of them ends; `u64::MAX` if none does.
pub(crate) fn next_end(entries: &Entries) -> u64 {
    entries.values().filter_map(|entry| entry.kept.until).min().unwrap_or(u64::MAX)
}

/// Returns the changes of a setting, of what holds it, and of its parts.
pub(crate) fn near<'e>(
    entries: &'e Entries,
    path: &'e SettingPath,
) -> impl Iterator<Item = (&'e SettingPath, &'e Arc<Entry>)> {
    let keys = path.keys();
    let above = (1..keys.len()).filter_map(|count| entries.get_key_value(keys.get(..count)?));
    above.chain(from(entries, path))
}

/// Returns the changes of a setting and of its parts.
fn from<'e>(
    entries: &'e Entries,
    path: &'e SettingPath,
) -> impl Iterator<Item = (&'e SettingPath, &'e Arc<Entry>)> {
    let behind = entries.range::<SettingPath, _>((Bound::Included(path), Bound::Unbounded));
    behind.take_while(|(known, _)| known.is_within(path))
}

/// Returns the revision that changed a setting last, or something that it holds or is part of; 0 if
/// none did.
pub(crate) fn last_revision(entries: &Entries, path: &SettingPath) -> u64 {
    near(entries, path).map(|(_, entry)| entry.kept.revision).max().unwrap_or(0)
}

/// What a request has made of changes: those that are others now, as they were before.
#[derive(Debug, Default)]
pub(crate) struct Touched(Vec<(SettingPath, Option<Arc<Entry>>)>);

impl Touched {
    fn note(&mut self, path: &SettingPath, before: Option<Arc<Entry>>) {
        self.0.push((path.clone(), before));
    }

    /// Leaves out what is as it was after all; by path then.
    fn settle(&mut self, entries: &Entries) {
        // What was touched several times was first what it was before.
        self.0.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.0.dedup_by(|(later, _), (first, _)| later == first);
        self.0.retain(|(path, before)| before.as_ref() != entries.get(path));
    }

    /// Returns what the store is to do: what is gone comes first.
    pub(crate) fn puts(&self, entries: &Entries) -> Vec<Put> {
        let now = self.0.iter().map(|(path, _)| (path, entries.get(path)));
        let (new, gone): (Vec<_>, Vec<_>) = now.partition(|(_, entry)| entry.is_some());
        let all = gone.into_iter().chain(new);
        all.map(|(path, entry)| put_of(path, entry.map(|entry| &entry.kept))).collect()
    }

    /// Returns the changes, before and after, that can make settings different which a request is
    /// about: those that hold them or are part of them. Thousands of others say the same before and
    /// after.
    pub(crate) fn near(&self, after: &Entries) -> [Vec<Layer>; 2] {
        let mut all: Vec<&SettingPath> = Vec::with_capacity(self.0.len());
        for (path, _) in &self.0 {
            all.push(path);
            all.extend(near(after, path).map(|(path, _)| path));
            let keys = path.keys();
            let above = (1..keys.len()).filter_map(|count| self.at(keys.get(..count)?));
            all.extend(above.map(|(path, _)| path));
        }
        all.sort();
        all.dedup();
        // With the first change below a setting that holds names, its default counts as said. So
        // one of the others stays for each, if there is one.
        let tops: BTreeSet<&[String]> = self.0.iter().filter_map(|(path, _)| path.keys().get(..1)).collect();
        let witness = |top: &&[String]| {
            let behind = after.range::<[String], _>((Bound::Included(*top), Bound::Unbounded));
            let beside = behind.map(|(path, _)| path).take_while(|path| path.keys().starts_with(top));
            beside.into_iter().find(|path| all.binary_search(path).is_err())
        };
        let witnesses: Vec<&SettingPath> = tops.iter().filter_map(witness).collect();
        all.extend(witnesses);
        all.sort();
        let layer = |entry: Option<&Arc<Entry>>| entry.map(|entry| entry.layer.clone());
        let before = |path: &&SettingPath| match self.at(path.keys()) {
            Some((_, before)) => layer(before.as_ref()),
            None => layer(after.get(*path)),
        };
        let now = |path: &&SettingPath| layer(after.get(*path));
        [all.iter().filter_map(before).collect(), all.iter().filter_map(now).collect()]
    }

    /// Returns a change that is another now, as it was before.
    fn at(&self, keys: &[String]) -> Option<&(SettingPath, Option<Arc<Entry>>)> {
        let at = self.0.binary_search_by(|(path, _)| path.keys().cmp(keys)).ok()?;
        self.0.get(at)
    }
}

/// Edits changes as a request wants it, which is to be `revision`; returns what became of them, and
/// those that are gone with others. `then` says what an earlier revision had.
///
/// # Errors
///
/// It may not be, there is no change to take back, or no such revision.
pub(crate) fn edit(
    entries: &mut Entries,
    (request, revision): (&Request, u64),
    allowed: &ChangesAllowed,
    then: impl Fn(u64) -> Result<Entries, Refusal>,
) -> Result<(Touched, Vec<SettingPath>), Refusal> {
    let new = |what, until| Kept {
        what,
        revision,
        by: request.by.clone(),
        at: request.at,
        why: request.why.clone(),
        until,
    };
    let may = |path: &SettingPath| allowed.refusal(path).map_or(Ok(()), |why| Err(Refusal::NotAllowed(why)));
    let (mut touched, mut replaced) = (Touched::default(), Vec::new());
    for edit in &request.edits {
        let (path, what) = match edit {
            Edit::Set(path, text) => (path, WhatBecame::Text(text.as_str().into())),
            Edit::TakeAway(path) => (path, WhatBecame::Nothing),
            Edit::Unset(path) => {
                // Whatever is locked, the file's word may count again.
                let gone = entries.remove(path).ok_or_else(|| Refusal::NotChanged(path.clone()))?;
                touched.note(path, Some(gone));
                continue;
            }
            Edit::RollBack(to) => {
                let then = then(*to)?;
                for (path, entry) in &then {
                    let kept = &entry.kept;
                    let is_same = entries.get(path).is_some_and(|known| known.kept.what == kept.what);
                    let is_over = kept.until.is_some_and(|until| until <= request.at);
                    if !is_same && !is_over {
                        may(path)?;
                        let entry = Entry::new(path, new(kept.what.clone(), kept.until));
                        touched.note(path, entries.insert(path.clone(), entry));
                    }
                }
                let is_gone = |path: &SettingPath, _: &mut Arc<Entry>| !then.contains_key(path);
                for (path, gone) in entries.extract_if(.., is_gone) {
                    touched.note(&path, Some(gone));
                }
                continue;
            }
        };
        may(path)?;
        let mut near = from(entries, path).peekable();
        let known = near.next_if(|(known, _)| *known == path);
        let is_same =
            known.is_some_and(|(_, known)| known.kept.what == what && known.kept.until == request.until);
        // It says the whole of what stands there.
        let below: Vec<SettingPath> = near.map(|(known, _)| known.clone()).collect();
        for gone in &below {
            touched.note(gone, entries.remove(gone));
        }
        replaced.extend(below);
        if !is_same {
            let entry = Entry::new(path, new(what, request.until));
            touched.note(path, entries.insert(path.clone(), entry));
        }
    }
    touched.settle(entries);
    Ok((touched, replaced))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> SettingPath {
        SettingPath::parse(text).expect("a path")
    }

    fn entries(paths: &[&str]) -> Entries {
        let entry = |text: &&str| {
            let kept = Kept {
                what: WhatBecame::Text("x".into()),
                revision: 1,
                by: "anna".to_owned(),
                at: 0,
                why: String::new(),
                until: None,
            };
            (path(text), Entry::new(&path(text), kept))
        };
        paths.iter().map(entry).collect()
    }

    #[test]
    fn of_many_changes_only_those_that_matter_for_some_are_looked_at() {
        let check = |touched: &[&str], before: &[&str], after: &[&str], expect: [&[&str]; 2]| {
            let (then, now) = (entries(before), entries(after));
            let mut all = Touched::default();
            for path in touched.iter().map(|text| path(text)) {
                all.note(&path, then.get(&path).cloned());
            }
            all.0.sort_by(|(one, _), (other, _)| one.cmp(other));
            let paths = |layers: &[Layer]| layers.iter().map(|it| it.path.to_string()).collect::<Vec<_>>();
            let found = all.near(&now).map(|layers| paths(&layers));
            assert_eq!(found, expect.map(<[&str]>::to_vec), "{touched:?}");
        };
        let many = ["cache.main.size", "local.a.example", "local.b.example", "local.c.example"];
        check(
            &["local.b.example"],
            &[many[0], many[1], many[3]],
            &many,
            [&["local.a.example"], &["local.a.example", "local.b.example"]],
        );
        check(&["cache.main.size", "cache"], &many, &["cache"], [&["cache.main.size"], &["cache"]]);
        check(&["cache.main.size"], &["cache.main"], &["cache.main"], [&["cache.main"], &["cache.main"]]);
        check(&["edns.padding"], &many, &many, [&[], &[]]);
        let all = ["local.a.example", "local.b.example", "local.c.example"];
        check(&all, &many[..1], &many, [&[], &all]);
    }

    #[test]
    fn what_changed_a_setting_last_is_found_near_it() {
        let known = entries(&["cache.main", "cache.other.size", "local.a.example"]);
        let near = |text: &str| {
            let path = path(text);
            near(&known, &path).map(|(path, _)| path.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(near("cache"), ["cache.main", "cache.other.size"]);
        assert_eq!(near("cache.main.size"), ["cache.main"]);
        assert_eq!(near("local.a.example"), ["local.a.example"]);
        assert!(near("local.b.example").is_empty() && near("edns").is_empty());
        assert_eq!((last_revision(&known, &path("cache")), last_revision(&known, &path("edns"))), (1, 0));
    }
}
