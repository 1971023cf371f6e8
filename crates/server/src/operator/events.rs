//! What happens to the server, as its operator watches it.

use control::api;
use diagnostic::{Diagnostic, Severity};

use super::{Operator, OperatorError};
use crate::caller::Caller;
use crate::feed::bounded;

/// Settings of a change that are named.
const PATHS_MAX: usize = 100;

/// Returns what is told of changed settings; texts of them may be secrets.
pub(super) fn told(request: &authority::Request) -> api::ChangeEvent {
    use authority::Edit;
    let path = |edit: &Edit| match edit {
        Edit::Set(path, _) | Edit::TakeAway(path) | Edit::Unset(path) => Some(path.to_string()),
        Edit::RollBack(_) => None,
    };
    let back = |edit: &Edit| match edit {
        Edit::RollBack(revision) => Some(*revision),
        _ => None,
    };
    api::ChangeEvent {
        revision: None,
        by: bounded(&request.by),
        why: Some(bounded(&request.why)).filter(|why| !why.is_empty()),
        paths: request.edits.iter().filter_map(path).take(PATHS_MAX).collect(),
        rolled_back_to: request.edits.iter().find_map(back),
    }
}

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
