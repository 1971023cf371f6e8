//! Dynamic sets, as their operator sees and changes them.

use config::sets::{Dynamic, DynamicError, Sets};
use control::api;
use tracing::warn;

use super::{Operator, OperatorError, What, unix_seconds};
use crate::lock;

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
        let dynamic = self.dynamic(&change.name)?;
        let _members = lock(&self.changing.members);
        check_tag(&dynamic, change)?;
        let added = dynamic.add(&change.items, (unix_seconds(), change.ttl_s), by);
        let changed = added.map_err(|error| refused(&error))?;
        Ok(api::SetChanged { changed, holds: dynamic.list().len() })
    }

    /// Removes from a dynamic set.
    ///
    /// # Errors
    ///
    /// There is no such set, it is not dynamic, or it could not hold such items.
    pub fn set_remove(&self, change: &api::SetChange, by: &str) -> Result<api::SetChanged, OperatorError> {
        let dynamic = self.dynamic(&change.name)?;
        let _members = lock(&self.changing.members);
        check_tag(&dynamic, change)?;
        let changed = dynamic.remove(&change.items, by).map_err(|error| refused(&error))?;
        Ok(api::SetChanged { changed, holds: dynamic.list().len() })
    }
}

/// Refuses a change that was made for other members.
fn check_tag(dynamic: &Dynamic, change: &api::SetChange) -> Result<(), OperatorError> {
    match &change.tag {
        Some(tag) if *tag != "*" && *tag != dynamic.tag() => {
            Err(OperatorError::Conflict(format!("the members of \"{}\" are others by now", change.name)))
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
