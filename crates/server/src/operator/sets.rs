//! Dynamic sets, as their operator sees and changes them.

use config::sets::{Dynamic, DynamicError, Edit, Form, Sets};
use control::api;
use lists::Mistakes;
use tracing::warn;

use super::{Operator, OperatorError, What, unix_seconds};
use crate::lock;

/// Edits of one change.
pub const MEMBERS_MAX: usize = 100_000;
/// Mistakes of one change that are told.
const MISTAKES_TOLD_MAX: usize = 100;

impl Operator {
    /// Writes dynamic sets to their files.
    pub(crate) fn keep_sets(&self) {
        keep(&lock(&self.view).sets.clone());
    }

    fn dynamic(&self, name: &str) -> Result<Dynamic, OperatorError> {
        let view = lock(&self.view);
        if let Some(dynamic) = view.sets.dynamic(name) {
            return Ok(dynamic.clone());
        }
        Err(match view.sets.iter().any(|(other, _)| other == name) {
            true => OperatorError::Refused(format!("set \"{name}\" is not dynamic")),
            false => OperatorError::not_found(What::Set, name),
        })
    }

    /// Says what a dynamic set holds.
    ///
    /// # Errors
    ///
    /// There is no such set, or it is not dynamic.
    pub fn set_list(&self, name: &str) -> Result<Vec<api::SetItem>, OperatorError> {
        let now = unix_seconds();
        let items = self.dynamic(name)?.list().into_iter().map(|(item, leaves)| api::SetItem {
            item,
            leaves_in_s: leaves.map(|leaves| leaves.saturating_sub(now)),
        });
        Ok(items.collect())
    }

    /// Returns what the members of a dynamic set are known by.
    ///
    /// # Errors
    ///
    /// There is no such set, or it is not dynamic.
    pub fn set_tag(&self, name: &str) -> Result<String, OperatorError> {
        Ok(self.dynamic(name)?.tag())
    }

    /// Returns whether changes of a set are kept, with a row of the audit log.
    pub(crate) fn keeps_set(&self, name: &str) -> bool {
        self.components.own_lists.keeper().is_some()
            && self.dynamic(name).is_ok_and(|dynamic| dynamic.is_kept())
    }

    /// Adds to a dynamic set.
    ///
    /// # Errors
    ///
    /// There is no such set, it is not dynamic, or it cannot hold all of that; then nothing is
    /// added.
    pub fn set_add(&self, change: &api::SetChange, by: &str) -> Result<api::SetChanged, OperatorError> {
        let edits = whole(change, Form::Add);
        self.set_edited(&change.name, (&edits, change.ttl_s), change.tag.as_deref(), by).map_err(one)
    }

    /// Removes from a dynamic set.
    ///
    /// # Errors
    ///
    /// There is no such set, it is not dynamic, or it could not hold such items.
    pub fn set_remove(&self, change: &api::SetChange, by: &str) -> Result<api::SetChanged, OperatorError> {
        let edits = whole(change, Form::Remove);
        self.set_edited(&change.name, (&edits, None), change.tag.as_deref(), by).map_err(one)
    }

    /// Adds to a dynamic set and removes from it: all of it, or nothing.
    ///
    /// # Errors
    ///
    /// There is no such set, it is not dynamic, or each edit that makes no sense.
    pub fn set_edit(&self, change: &api::SetEdits, by: &str) -> Result<api::SetChanged, OperatorError> {
        let edits = parts(change)?;
        self.set_edited(&change.name, (&edits, change.ttl_s), change.tag.as_deref(), by)
            .map_err(|error| lines(change, error))
    }

    fn set_edited(
        &self,
        name: &str,
        (edits, ttl_s): (&[Edit<'_>], Option<u64>),
        tag: Option<&str>,
        by: &str,
    ) -> Result<api::SetChanged, NotEdited> {
        let dynamic = self.dynamic(name)?;
        let _members = lock(&self.changing.members);
        check_tag(&dynamic, (name, tag))?;
        let changed = dynamic.edit(edits, (unix_seconds(), ttl_s), by).map_err(NotEdited::Edits)?;
        Ok(api::SetChanged { changed, holds: dynamic.list().len(), is_dry_run: false })
    }

    /// Says what adding to a dynamic set, or removing from it, would change.
    ///
    /// # Errors
    ///
    /// As of [`Operator::set_add`] and [`Operator::set_remove`].
    pub fn set_check(&self, change: &api::SetChange, form: Form) -> Result<api::SetChanged, OperatorError> {
        self.set_checked(&change.name, &whole(change, form), change.tag.as_deref()).map_err(one)
    }

    /// Says what [`Operator::set_edit`] would change.
    ///
    /// # Errors
    ///
    /// As of it.
    pub fn set_edit_check(&self, change: &api::SetEdits) -> Result<api::SetChanged, OperatorError> {
        self.set_checked(&change.name, &parts(change)?, change.tag.as_deref())
            .map_err(|error| lines(change, error))
    }

    fn set_checked(
        &self,
        name: &str,
        edits: &[Edit<'_>],
        tag: Option<&str>,
    ) -> Result<api::SetChanged, NotEdited> {
        let dynamic = self.dynamic(name)?;
        check_tag(&dynamic, (name, tag))?;
        let (changed, holds) = dynamic.would_change(edits).map_err(NotEdited::Edits)?;
        Ok(api::SetChanged { changed, holds, is_dry_run: true })
    }
}

/// Why members stay as they are.
enum NotEdited {
    /// It cannot be done.
    Refused(OperatorError),
    /// These of the edits, by their place.
    Edits(Vec<(usize, DynamicError)>),
}

impl From<OperatorError> for NotEdited {
    fn from(error: OperatorError) -> Self {
        Self::Refused(error)
    }
}

/// Returns the error of a change whose items are no lines.
fn one(error: NotEdited) -> OperatorError {
    match error {
        NotEdited::Refused(error) => error,
        NotEdited::Edits(wrong) => match wrong.first() {
            Some((_, first)) => refused(first),
            None => OperatorError::Argument("there are no items".to_owned()),
        },
    }
}

/// Returns the error of a change whose edits are lines: with the first mistakes.
fn lines(change: &api::SetEdits, error: NotEdited) -> OperatorError {
    let NotEdited::Edits(wrong) = error else { return one(error) };
    if let Some((_, store @ DynamicError::Store(_))) = wrong.first() {
        return refused(store);
    }
    let mut mistakes = Mistakes::of(true);
    mistakes.count = wrong.len();
    let told = wrong.iter().take(MISTAKES_TOLD_MAX);
    mistakes.told =
        told.map(|(at, why)| (u32::try_from(at + 1).unwrap_or(u32::MAX), why.to_string())).collect();
    let text = |line: u32| {
        let edit = (line as usize).checked_sub(1).and_then(|at| change.edits.get(at));
        edit.map_or_else(String::new, |edit| edit.text().to_owned())
    };
    OperatorError::of_lines(&format!("set {}", change.name), &mistakes, &text)
}

fn whole(change: &api::SetChange, form: Form) -> Vec<Edit<'_>> {
    change.items.iter().map(|item| (form, item.as_str())).collect()
}

/// Returns the edits of a change, at most as many as there may be.
fn parts(change: &api::SetEdits) -> Result<Vec<Edit<'_>>, OperatorError> {
    if change.edits.is_empty() || change.edits.len() > MEMBERS_MAX {
        return Err(OperatorError::Argument(format!("a change has 1 to {MEMBERS_MAX} lines")));
    }
    let edit = |edit: &'_ api::RuleEdit| match edit {
        api::RuleEdit::Add(_) => Form::Add,
        api::RuleEdit::Remove(_) => Form::Remove,
    };
    Ok(change.edits.iter().map(|it| (edit(it), it.text())).collect())
}

/// Refuses a change that was made for other members.
fn check_tag(dynamic: &Dynamic, (name, tag): (&str, Option<&str>)) -> Result<(), OperatorError> {
    match tag {
        Some(tag) if tag != "*" && *tag != dynamic.tag() => {
            Err(OperatorError::Conflict(format!("the members of \"{name}\" are others by now")))
        }
        _ => Ok(()),
    }
}

/// Returns the error of a set that stays as it is.
fn refused(error: &DynamicError) -> OperatorError {
    match error {
        DynamicError::Store(_) => OperatorError::NotKept(error.to_string()),
        DynamicError::Misread(_) | DynamicError::Form(_) => OperatorError::Argument(error.to_string()),
    }
}

/// Writes dynamic sets to their files.
pub(super) fn keep(sets: &Sets) {
    for (name, dynamic) in sets.dynamics() {
        if let Err(error) = dynamic.keep() {
            warn!(set = name, %error, "a dynamic set cannot be written");
        }
    }
}
