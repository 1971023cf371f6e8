//! Lists of the operator that are kept beside the settings, as their operator sees and changes
//! them.

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::time::Instant;

use authority::own_lists::{Own, OwnLists, Text, puts_of_changes, puts_of_file};
use control::api::{self, RuleEdit};
use environment::KeptList;
use lists::ListFormat;
use lists::own::{self, RuleChange, differences_max};
use store::{Draft, Put};
use tracing::{info, warn};

use super::configuration::{apart, report};
use super::{Operator, OperatorError, SERVER, What, unix_seconds};
use crate::compile::{Compiled, compile_for_set};
use crate::reload::{Candidate, Cause, NotCarriedOut, Revision, bring_into_use_kept};
use crate::{lock, progress};

/// Changes in one request.
pub const EDITS_MAX: usize = 1_000_000;
/// Octets of changes that are kept as they are; more are written into the list at once.
const KEPT_CHANGES_OCTETS_MAX: usize = 1 << 20;
/// Rules of one change that the audit log names.
const SAID_MAX: usize = 20;
/// Octets of a part of a text.
const PART_OCTETS: usize = 64 << 10;
/// Readers at a time of lists that have to be in the memory for them.
pub(super) const READS_MAX: usize = 2;
/// A word of the HTTP API that stands where names of lists do.
const FETCH: &str = "fetch";

impl Operator {
    pub(super) fn own_lists(&self) -> &Arc<OwnLists> {
        &self.components.own_lists
    }

    /// Returns the formats in which sets read a list, and these sets.
    fn readers(&self, name: &str) -> Vec<(ListFormat, String)> {
        super::lists::readers(&lock(&self.view).listed, name)
    }

    /// Returns the sets that read a list.
    pub(super) fn sets_with(&self, name: &str) -> Vec<String> {
        self.readers(name).into_iter().map(|(_, set)| set).collect()
    }

    /// Says which lists there are.
    ///
    /// # Errors
    ///
    /// It is not known.
    pub fn own_list_states(&self) -> Result<Vec<api::OwnList>, OperatorError> {
        self.check_known()?;
        let made = self.own_lists().made().into_iter();
        let states = made.map(|(name, own)| {
            let mut sets: Vec<String> = self.readers(&name).into_iter().map(|(_, set)| set).collect();
            sets.dedup();
            api::OwnList {
                octets: own.file.as_ref().map_or(0, |(_, octets)| *octets),
                changes: own.patches.values().sum::<usize>() as u64,
                revision: own.revision,
                sets,
                name,
            }
        });
        Ok(states.collect())
    }

    /// Refuses to say anything of lists if it is not known which there are.
    fn check_known(&self) -> Result<(), OperatorError> {
        let trouble = self.own_lists().trouble();
        trouble.map_or(Ok(()), |why| Err(OperatorError::NotKnown(why)))
    }

    /// Returns the text of a list, part by part.
    ///
    /// # Errors
    ///
    /// There is no such list, or it cannot be read.
    pub fn own_list_text(
        &self,
        name: &str,
    ) -> Result<impl Iterator<Item = api::OwnListText> + use<>, OperatorError> {
        let text = {
            // Its file and its changes, as they go together.
            let _order = self.own_lists().change();
            self.made(name)?;
            self.snapshot(name)?
        };
        let failed = |error| OperatorError::Io { what: "the list cannot be read", error };
        // With changes it has to be in the memory as a whole, and readers may be slow.
        let place = match text.changes.is_empty() {
            true => None,
            false => Some(super::place(&self.list_reads, READS_MAX, "readers of lists with changes")?),
        };
        let whole: Box<dyn io::Read + Send> = match text.file {
            Some(file) if text.changes.is_empty() => Box::new(file),
            file => Box::new(io::Cursor::new(Text { file, ..text }.read().map_err(failed)?)),
        };
        let name = name.to_owned();
        let mut parts = parts(whole);
        Ok(std::iter::from_fn(move || {
            let _place = &place;
            match parts.next()? {
                Ok(part) => Some(part),
                Err(error) => {
                    warn!(list = name, %error, "a list cannot be read to its end");
                    None
                }
            }
        }))
    }

    /// Returns the file of a list, or its text if it has changes that are not in the file.
    pub(super) fn own_list_file(&self, name: &str) -> Result<Result<std::fs::File, Vec<u8>>, OperatorError> {
        let _order = self.own_lists().change();
        self.made(name)?;
        let text = self.snapshot(name)?;
        match (text.file, text.changes.is_empty()) {
            (Some(file), true) => Ok(Ok(file)),
            _ => self.effective_text(name).map(Err),
        }
    }

    /// Returns the format that the first set reads a list in; `None` if no set reads it.
    pub(super) fn own_list_format(&self, name: &str) -> Option<ListFormat> {
        formats(&self.readers(name)).into_iter().next()
    }

    fn made(&self, name: &str) -> Result<Own, OperatorError> {
        self.check_known()?;
        let own = self.own_lists().get(name).filter(|own| own.is_made);
        own.ok_or_else(|| OperatorError::not_found(What::List, name))
    }

    fn snapshot(&self, name: &str) -> Result<Text, OperatorError> {
        let text = self.own_lists().text(name, self.changing.authority());
        text.map_err(|error| OperatorError::Io { what: "the list cannot be read", error })
    }

    fn effective_text(&self, name: &str) -> Result<Vec<u8>, OperatorError> {
        let read = self.snapshot(name)?.read();
        read.map_err(|error| OperatorError::Io { what: "the list cannot be read", error })
    }

    /// Refuses a list that is not known by what it should be.
    fn check_tag(&self, name: &str, tag: Option<&str>) -> Result<Own, OperatorError> {
        if let Some(why) = self.own_lists().trouble() {
            return Err(OperatorError::NotKept(why));
        }
        let own = self.own_lists().look_up(name);
        let is_expected = match tag {
            None => true,
            // Only if there is none.
            Some("") => !own.is_made,
            Some("*") => own.is_made,
            Some(tag) => own.is_made && own.revision.to_string() == tag,
        };
        if is_expected {
            return Ok(own);
        }
        Err(OperatorError::Conflict(match own.is_made {
            true => format!("the list \"{name}\" is another: revision {} changed it last", own.revision),
            false => format!("there is no list \"{name}\""),
        }))
    }

    /// Changes single rules of a list: all of them, or none. When this returns, they are on disk,
    /// and every query that is sent meets them.
    ///
    /// # Errors
    ///
    /// Some of them have mistakes, the list is another than expected, or they cannot be kept.
    pub fn own_list_change(
        &self,
        change: &api::OwnListChange,
        by: &str,
    ) -> Result<api::OwnListChanged, OperatorError> {
        let begin = Instant::now();
        let name = change.name.as_str();
        check_name(name)?;
        if change.edits.is_empty() || change.edits.len() > EDITS_MAX {
            return Err(OperatorError::Argument(format!("expected 1 to {EDITS_MAX} changes")));
        }
        let changes: Vec<RuleChange> = change.edits.iter().map(rule_change).collect();
        let readers = self.readers(name);
        let checks = formats(&readers).into_iter().map(|format| own::check(&changes, format));
        // Nobody knows yet how a set will read it.
        let unread = readers.is_empty().then(|| own::check_lines(&changes));
        for mistakes in checks.chain(unread) {
            if mistakes.count > 0 {
                let line = |line: u32| {
                    let at = (line as usize).checked_sub(1).and_then(|at| changes.get(at));
                    at.map_or_else(String::new, |change| change.rule.chars().take(200).collect())
                };
                return Err(OperatorError::of_lines(&format!("list {name}"), &mistakes, &line));
            }
        }
        let changed = |changed: usize, revision: u64, is_compiled: bool| api::OwnListChanged {
            name: name.to_owned(),
            changed: changed as u64,
            revision,
            is_dry_run: change.is_dry_run,
            is_compiled,
            warning: None,
            took_ms: begin.elapsed().as_millis() as u64,
        };
        let octets: usize = changes.iter().map(|change| change.rule.len() + 2).sum();
        let is_short = changes.len() <= differences_max(usize::MAX) && octets <= KEPT_CHANGES_OCTETS_MAX;
        let is_of_names =
            !readers.is_empty() && readers.iter().all(|(format, _)| *format == ListFormat::Names);
        if is_short && is_of_names && own::are_on_names(&changes) {
            let order = self.own_lists().change();
            let own = self.check_tag(name, change.tag.as_deref())?;
            let fits = changes.len() <= differences_max(own.list.rules());
            if let Some(would) = own.list.would_change(&changes).filter(|_| fits) {
                if change.is_dry_run || would == 0 {
                    return Ok(changed(would, own.revision, false));
                }
                let (revision, is_late) = self.keep_and_change(name, &own, &changes, by)?;
                drop(order);
                let merged = if is_late { self.own_list_merge(name) } else { Ok(()) };
                // It is kept whatever becomes of this, and tried again.
                if is_late {
                    self.own_lists().note_late(name, merged.is_err(), Instant::now());
                }
                if let Err(why) = &merged {
                    warn!(list = name, %why, "changes of a list are not in use yet: it cannot be compiled");
                }
                let warning = merged.err().map(|why| late_warning(&why));
                let is_compiled = is_late && warning.is_none();
                return Ok(api::OwnListChanged { warning, ..changed(would, revision, is_compiled) });
            }
        }
        let format = formats(&readers).into_iter().next().unwrap_or(ListFormat::Names);
        let rewritten = |text: Vec<u8>| own::rewrite(&text, format, &changes);
        if change.is_dry_run {
            let _order = self.own_lists().change();
            let own = self.check_tag(name, change.tag.as_deref())?;
            return Ok(changed(rewritten(self.effective_text(name)?).changed, own.revision, false));
        }
        let (count, revision) = self.own_list_replace(name, (change.tag.as_deref(), by), || {
            let rewritten = rewritten(self.effective_text(name)?);
            Ok((rewritten.changed, (rewritten.changed > 0).then(|| self.draft(&rewritten.text)).transpose()?))
        })?;
        Ok(changed(count, revision, !readers.is_empty() && count > 0))
    }

    /// Keeps changes, then has queries meet them; returns the revision, and whether some are met
    /// only when the list is compiled anew.
    fn keep_and_change(
        &self,
        name: &str,
        own: &Own,
        changes: &[RuleChange],
        by: &str,
    ) -> Result<(u64, bool), OperatorError> {
        let (number, puts) = puts_of_changes(name, own, changes);
        let revision = self.keep_list(puts, (by, &summary(changes)))?;
        let (current, others) = self.own_lists().edit(name, |own| {
            own.is_made = true;
            own.revision = revision;
            own.patches.insert(number, changes.len());
            own.others.retain(|other| other.strong_count() > 0);
            (Arc::clone(&own.list), own.others.clone())
        });
        let mut is_late = false;
        let all = std::iter::once(current).chain(others.iter().filter_map(std::sync::Weak::upgrade));
        for list in all {
            is_late |= list.change(changes).is_some_and(|came| came.is_late);
        }
        Ok((revision, is_late))
    }

    fn keep_list(&self, puts: Vec<Put>, (by, why): (&str, &str)) -> Result<u64, OperatorError> {
        let (by, why) = (by.to_owned(), why.to_owned());
        let at = unix_seconds();
        let change = store::Change { by, why, at, puts, ..store::Change::default() };
        let kept = self.changing.authority().keep(&change);
        kept.map_err(|refusal| OperatorError::NotKept(refusal.to_string()))
    }

    /// Begins a file with the text of a list.
    ///
    /// # Errors
    ///
    /// It cannot be written, or nothing is kept.
    pub fn own_list_draft(&self) -> Result<Draft, OperatorError> {
        self.check_known()?;
        let nothing = || OperatorError::Refused("this configuration keeps nothing beside it".to_owned());
        let files = self.own_lists().files().ok_or_else(nothing)?;
        files.draft().map_err(|error| OperatorError::NotKept(error.to_string()))
    }

    fn draft(&self, text: &[u8]) -> Result<Draft, OperatorError> {
        if text.len() as u64 > own::OCTETS_MAX {
            return Err(OperatorError::Argument(format!("a list has at most {} octets", own::OCTETS_MAX)));
        }
        let mut draft = self.own_list_draft()?;
        let written = draft.write_all(text);
        written.map_err(|error| OperatorError::NotKept(format!("the list cannot be written: {error}")))?;
        Ok(draft)
    }

    /// Makes a text that was uploaded that of a list.
    ///
    /// # Errors
    ///
    /// It has mistakes, the list is another than expected, or it cannot be kept.
    pub fn own_list_put(
        &self,
        (name, tag): (&str, Option<&str>),
        draft: Draft,
        is_dry_run: bool,
        by: &str,
    ) -> Result<api::OwnListChanged, OperatorError> {
        let begin = Instant::now();
        check_name(name)?;
        let readers = self.readers(name);
        let unread = |error| OperatorError::Io { what: "what was sent cannot be read again", error };
        let text = std::fs::read(draft.path()).map_err(unread)?;
        if std::str::from_utf8(&text).is_err() {
            return Err(OperatorError::Argument("the text is not UTF-8".to_owned()));
        }
        let mut rules = if readers.is_empty() { own::count_lines(&text) } else { 0 };
        for format in formats(&readers) {
            let (count, mistakes) = own::check_text(&text, format);
            rules = count;
            if mistakes.count > 0 && matches!(format, ListFormat::Names | ListFormat::Addresses) {
                let line = |line: u32| {
                    let at = (line as usize).checked_sub(1);
                    let line = at.and_then(|at| text.split(|&octet| octet == b'\n').nth(at)).unwrap_or(&[]);
                    String::from_utf8_lossy(line).chars().take(200).collect()
                };
                return Err(OperatorError::of_lines(&format!("list {name}"), &mistakes, &line));
            }
        }
        drop(text);
        let revision = if is_dry_run {
            let _order = self.own_lists().change();
            self.check_tag(name, tag)?.revision
        } else {
            self.own_list_replace(name, (tag, by), || Ok((rules, Some(draft))))?.1
        };
        let (name, changed, is_compiled) =
            (name.to_owned(), rules as u64, !is_dry_run && !readers.is_empty());
        let took_ms = begin.elapsed().as_millis() as u64;
        Ok(api::OwnListChanged { name, changed, revision, is_dry_run, is_compiled, warning: None, took_ms })
    }

    /// Removes a list. Sets that name it have nothing of it then.
    ///
    /// # Errors
    ///
    /// There is no such list, it is another than expected, or that cannot be kept.
    pub fn own_list_remove(
        &self,
        asked: &api::OwnListRemove,
        by: &str,
    ) -> Result<api::OwnListChanged, OperatorError> {
        let begin = Instant::now();
        let name = asked.name.as_str();
        self.made(name)?;
        let tag = asked.tag.as_deref().or(Some("*"));
        let (_, revision) = self.replace(name, (tag, by), || Ok((0, Some(None))))?;
        let took_ms = begin.elapsed().as_millis() as u64;
        let is_compiled = !self.readers(name).is_empty();
        Ok(api::OwnListChanged {
            name: name.to_owned(),
            revision,
            is_compiled,
            took_ms,
            ..Default::default()
        })
    }

    /// Says what removing a list would come to.
    ///
    /// # Errors
    ///
    /// As of [`Operator::own_list_remove`].
    pub fn own_list_remove_check(
        &self,
        asked: &api::OwnListRemove,
    ) -> Result<api::OwnListChanged, OperatorError> {
        let name = asked.name.as_str();
        self.made(name)?;
        let revision = self.check_tag(name, asked.tag.as_deref().or(Some("*")))?.revision;
        let is_compiled = !self.readers(name).is_empty();
        Ok(api::OwnListChanged {
            name: name.to_owned(),
            revision,
            is_compiled,
            is_dry_run: true,
            ..Default::default()
        })
    }

    /// Makes a file the text of a list, and has sets compiled from it; returns the number that
    /// `make` returns, and the revision. Without a file nothing is changed.
    fn own_list_replace(
        &self,
        name: &str,
        (tag, by): (Option<&str>, &str),
        make: impl FnOnce() -> Result<(usize, Option<Draft>), OperatorError>,
    ) -> Result<(usize, u64), OperatorError> {
        self.replace(name, (tag, by), || {
            let (count, draft) = make()?;
            Ok((count, draft.map(Some)))
        })
    }

    /// Like [`Operator::own_list_replace`]; no list is left where `make` returns one without a
    /// file.
    fn replace(
        &self,
        name: &str,
        (tag, by): (Option<&str>, &str),
        make: impl FnOnce() -> Result<(usize, Option<Option<Draft>>), OperatorError>,
    ) -> Result<(usize, u64), OperatorError> {
        let mut current = lock(&self.current);
        let _order = self.own_lists().change();
        let own = self.check_tag(name, tag)?;
        let (count, Some(draft)) = make()? else { return Ok((0, own.revision)) };
        let file = match draft {
            Some(draft) => {
                let octets = draft.octets();
                let hash = draft.keep().map_err(|error| OperatorError::NotKept(error.to_string()))?;
                Some((hash.to_string(), octets))
            }
            None => None,
        };
        let list = self.own_lists().text_of_list();
        let puts = puts_of_file(name, &own, file.as_ref(), (u64::MAX, 0));
        let path = file.as_ref().zip(self.own_lists().files()).map(|((hash, _), files)| files.path(hash));
        self.own_lists().compile_next(name, Some(KeptList { list: Arc::clone(&list), file: path }));
        let done = self.compile_lists(&mut current, name, || self.keep_list(puts, (by, "")));
        self.own_lists().compile_next(name, None);
        match done {
            Ok(revision) => {
                self.own_lists().edit(name, |own| {
                    own.is_made = file.is_some();
                    own.is_late = false;
                    own.patches.clear();
                    own.others.push(Arc::downgrade(&std::mem::replace(&mut own.list, list)));
                    own.revision = revision;
                    own.file.clone_from(&file);
                });
                self.forget_file(own.file.as_ref(), file.as_ref());
                info!(list = name, by, revision, "a list of the operator's own has another text");
                Ok((count, revision))
            }
            Err(why) => {
                self.forget_file(file.as_ref(), own.file.as_ref());
                Err(why)
            }
        }
    }

    /// Removes the file of a list that is another now; two lists may have the same.
    fn forget_file(&self, file: Option<&(String, u64)>, now: Option<&(String, u64)>) {
        let Some((hash, _)) = file.filter(|file| Some(*file) != now) else { return };
        let is_used = self.own_lists().made().iter().any(|(_, own)| own.file.as_ref() == file);
        if let Some(files) = self.own_lists().files().filter(|_| !is_used) {
            files.remove(hash);
        }
    }

    /// Compiles the sets that have a list, and brings them into use when `keep` has kept it;
    /// returns what that returns.
    fn compile_lists<T>(
        &self,
        current: &mut Revision,
        name: &str,
        keep: impl FnOnce() -> Result<T, OperatorError>,
    ) -> Result<T, OperatorError> {
        let is_used = current
            .loaded
            .settings
            .sets
            .iter()
            .flat_map(|set| &set.lists)
            .any(|list| matches!(&list.place.value, settings::ListPlace::Own(own) if own == name));
        if !is_used {
            return keep();
        }
        let loaded = Arc::clone(&current.loaded);
        let compiled = apart(|| {
            let environment = progress::serving(&self.components.manager, self.own_lists());
            // There is no set without a name, so nothing is read again but lists like this one.
            compile_for_set(&loaded, &self.facts.addresses, current.as_previous(), &environment, "")
        });
        let mut kept = None;
        let changed = compiled.map_err(NotCarriedOut::Found).and_then(|Compiled { plans, zones }| {
            let revision = Revision { number: current.number + 1, loaded, plans, zones };
            let candidate = Candidate { revision, cause: Cause::Files, signing: None, by: None };
            bring_into_use_kept(&self.components, candidate, Some(&*current), || {
                kept = Some(keep()?);
                Ok(())
            })
        });
        match changed {
            Ok(revision) => *current = revision,
            Err(NotCarriedOut::NotKept(error)) => return Err(error),
            Err(NotCarriedOut::Found(diagnostics)) => {
                report(&diagnostics);
                return Err(OperatorError::Lines(diagnostics));
            }
        }
        lock(&self.view).show(current);
        kept.ok_or_else(|| OperatorError::Refused("nothing was kept".to_owned()))
    }

    /// Writes a list as a whole, and compiles it, beside the changes that go on meanwhile.
    ///
    /// # Errors
    ///
    /// It cannot be written, or sets that have it cannot be compiled; then it stays as it was.
    fn own_list_merge(&self, name: &str) -> Result<(), OperatorError> {
        self.merge(name, |_| true)
    }

    /// Does that if it is still `wanted` when nothing else is being compiled.
    fn merge(&self, name: &str, wanted: impl Fn(&Own) -> bool) -> Result<(), OperatorError> {
        let mut current = lock(&self.current);
        if !self.own_lists().get(name).is_some_and(|own| wanted(&own)) {
            return Ok(());
        }
        let begin = Instant::now();
        let list = self.own_lists().text_of_list();
        let (own, snapshot) = {
            let _order = self.own_lists().change();
            let own = self.own_lists().edit(name, |own| {
                // What is changed from now on comes after its text.
                own.others.push(Arc::downgrade(&list));
                own.clone()
            });
            (own, self.snapshot(name)?)
        };
        let read = snapshot.read();
        let text = read.map_err(|error| OperatorError::Io { what: "the list cannot be read", error })?;
        let draft = self.draft(&text)?;
        drop(text);
        let octets = draft.octets();
        let hash = draft.keep().map_err(|error| OperatorError::NotKept(error.to_string()))?.to_string();
        let path = self.own_lists().files().map(|files| files.path(&hash));
        let file = (hash, octets);
        self.own_lists().compile_next(name, Some(KeptList { list: Arc::clone(&list), file: path }));
        let merged = own.patches.last_key_value().map_or(0, |(number, _)| *number);
        let mut order = None;
        let done = self.compile_lists(&mut current, name, || {
            order = Some(self.own_lists().change());
            let puts = puts_of_file(name, &own, Some(&file), (merged, own.revision));
            self.keep_list(puts, (SERVER, ""))
        });
        self.own_lists().compile_next(name, None);
        match done {
            Ok(_) => {
                self.own_lists().edit(name, |own| {
                    own.patches.retain(|number, _| *number > merged);
                    own.others.push(Arc::downgrade(&std::mem::replace(&mut own.list, Arc::clone(&list))));
                    own.others
                        .retain(|other| other.strong_count() > 0 && !other.ptr_eq(&Arc::downgrade(&list)));
                    own.file = Some(file.clone());
                });
                self.forget_file(own.file.as_ref(), Some(&file));
                info!(
                    list = name,
                    took_ms = begin.elapsed().as_millis() as u64,
                    "a list was compiled with its changes"
                );
                Ok(())
            }
            Err(why) => {
                self.forget_file(Some(&file), own.file.as_ref());
                Err(why)
            }
        }
    }

    /// Returns whether so much of a list was changed that it is to be written as a whole again.
    pub(crate) fn has_changed_lists(&self) -> bool {
        !self.own_lists().is_merging() && !self.own_lists().much_changed(Instant::now()).is_empty()
    }

    /// Writes lists as a whole again of which much was changed.
    pub(crate) fn merge_lists(&self) {
        self.own_lists().merging(|| {
            for name in self.own_lists().much_changed(Instant::now()) {
                let merged = self.merge(&name, Own::is_to_be_written);
                let is_first = self.own_lists().note_merged(&name, merged.is_ok(), Instant::now());
                if let Some(why) = merged.err().filter(|_| is_first) {
                    warn!(
                        list = name,
                        %why,
                        "a list cannot be compiled with its changes; they stay beside it, and it is tried again"
                    );
                }
            }
        });
    }
}

/// Returns the parts of a text: whole lines, so that no character is cut, unless a line is longer
/// than all memory that is meant for it.
fn parts(mut text: impl io::Read) -> impl Iterator<Item = io::Result<api::OwnListText>> {
    let mut rest: Vec<u8> = Vec::new();
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        loop {
            let before = rest.len();
            let read = (&mut text).take(PART_OCTETS as u64).read_to_end(&mut rest);
            if let Err(error) = read {
                is_over = true;
                return Some(Err(error));
            }
            is_over = rest.len() - before < PART_OCTETS;
            let new = rest.get(before..).unwrap_or_default();
            let cut = new.iter().rposition(|&octet| octet == b'\n').map(|last| before + last + 1);
            let end = match is_over {
                true => rest.len(),
                false => match cut {
                    Some(cut) => cut,
                    None => continue,
                },
            };
            let after = rest.split_off(end);
            let text = String::from_utf8_lossy(&std::mem::replace(&mut rest, after)).into_owned();
            return Some(Ok(api::OwnListText { text, is_last: is_over }));
        }
    })
}

/// Returns the formats in which a list is read.
fn formats(readers: &[(ListFormat, String)]) -> Vec<ListFormat> {
    let mut formats: Vec<ListFormat> = readers.iter().map(|(format, _)| *format).collect();
    formats.dedup();
    formats
}

/// Returns what is said of changes that are on disk, and that queries do not meet yet.
fn late_warning(why: &OperatorError) -> String {
    format!("the changes are kept, but some are not in use yet, for the list cannot be compiled: {why}")
}

fn check_name(name: &str) -> Result<(), OperatorError> {
    match values::identifier(name) {
        Ok(_) if name == FETCH => Err(OperatorError::Argument(format!(
            "a list cannot be called \"{FETCH}\": the HTTP API has that word"
        ))),
        Ok(_) => Ok(()),
        Err(misread) => Err(OperatorError::Argument(misread.message)),
    }
}

/// Returns what the audit log says of changes.
fn summary(changes: &[RuleChange]) -> String {
    let said = changes.iter().take(SAID_MAX).map(|change| {
        let sign = if change.is_added { '+' } else { '-' };
        format!("{sign}{}", change.rule.trim())
    });
    let more = changes.len().saturating_sub(SAID_MAX);
    let more = (more > 0).then(|| format!("{more} more"));
    said.chain(more).collect::<Vec<_>>().join(", ")
}

fn rule_change(edit: &RuleEdit) -> RuleChange {
    match edit {
        RuleEdit::Add(rule) => RuleChange { is_added: true, rule: rule.clone() },
        RuleEdit::Remove(rule) => RuleChange { is_added: false, rule: rule.clone() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lengths of the parts of a text, which has to be what they are put together.
    fn lengths(text: &str) -> Vec<usize> {
        let parts: Vec<_> = parts(text.as_bytes()).map(|part| part.expect("readable")).collect();
        let put_together: String = parts.iter().map(|part| part.text.as_str()).collect();
        assert!(put_together == text);
        let lasts: Vec<bool> = parts.iter().map(|part| part.is_last).collect();
        assert_eq!(lasts.iter().rposition(|is_last| !is_last).map_or(0, |at| at + 1), parts.len() - 1);
        parts.iter().map(|part| part.text.len()).collect()
    }

    #[test]
    fn a_text_is_sent_in_whole_lines() {
        assert_eq!(lengths(""), [0]);
        assert_eq!(lengths("a.example"), [9]);
        // The two octets of the letter are in two reads.
        let long = format!("a\n{}\u{fc}\nb", "x".repeat(PART_OCTETS - 3));
        assert_eq!(lengths(&long), [2, long.len() - 2]);
        assert_eq!(lengths(&"x".repeat(3 * PART_OCTETS)), [3 * PART_OCTETS]);
        let lines = "1234567\n".repeat(2 * PART_OCTETS / 8);
        assert_eq!(lengths(&lines), [PART_OCTETS, PART_OCTETS, 0]);
    }

    #[test]
    fn a_word_of_the_api_is_no_name_of_a_list() {
        assert!(check_name("fetch").is_err() && check_name("a b").is_err());
        assert!(check_name("fetched").is_ok());
    }
}
