//! What happens to the server, as its operator watches it.

use control::api;
use diagnostic::{Diagnostic, Severity};

use super::{Operator, OperatorError};
use crate::caller::Caller;
use crate::feed::bounded;

/// Settings of a change that are named.
const PATHS_MAX: usize = 100;

impl Operator {
    /// Returns what happens from now on, or what is kept of what has. Each of its turns lasts until
    /// there is something, or for some seconds.
    ///
    /// # Errors
    ///
    /// What is asked makes no sense or is not for the caller, or there are enough readers.
    pub fn events(
        &self,
        asked: &api::EventsAsked,
        caller: &Caller,
    ) -> Result<impl Iterator<Item = api::EventPart> + Send + use<>, OperatorError> {
        self.components.orders.feed().read(asked, caller)
    }

    /// Has those who watch know of something that happens now. Waits for none of them.
    pub(super) fn tell(&self, event: api::EventOf) {
        self.components.orders.feed().tell(event);
    }

    /// Tells that settings were changed; texts of them may be secrets.
    pub(super) fn tell_change(&self, edits: &[authority::Edit], by: &str, why: &str, revision: u64) {
        let path = |edit: &authority::Edit| match edit {
            authority::Edit::Set(path, _)
            | authority::Edit::TakeAway(path)
            | authority::Edit::Unset(path) => Some(path.to_string()),
            authority::Edit::RollBack(_) => None,
        };
        let back = |edit: &authority::Edit| match edit {
            authority::Edit::RollBack(revision) => Some(*revision),
            _ => None,
        };
        self.tell(api::EventOf::Change(api::ChangeEvent {
            revision: Some(revision),
            by: bounded(by),
            why: Some(bounded(why)).filter(|why| !why.is_empty()),
            paths: edits.iter().filter_map(path).take(PATHS_MAX).collect(),
            rolled_back_to: edits.iter().find_map(back),
        }));
    }

    /// Tells that something was read again.
    pub(super) fn tell_reload(
        &self,
        (what, set): (&str, Option<&str>),
        outcome: &Result<api::Reload, OperatorError>,
    ) {
        let mistakes = |all: &[Diagnostic]| -> Vec<String> {
            let mistakes = all.iter().filter(|it| matches!(it.severity, Severity::Error));
            mistakes.map(|it| bounded(&it.line())).collect()
        };
        let (revision, mistakes) = match outcome {
            Ok(reload) => (reload.revision, Vec::new()),
            Err(OperatorError::Invalid(rejected)) => {
                (rejected.stays.revision, mistakes(&rejected.diagnostics))
            }
            // It was not begun.
            Err(_) => return,
        };
        self.tell(api::EventOf::Reload(api::ReloadEvent {
            what: what.to_owned(),
            set: set.map(str::to_owned),
            revision,
            is_adopted: outcome.is_ok(),
            mistakes: mistakes.len() as u64,
            why: mistakes.into_iter().next(),
        }));
    }
}
