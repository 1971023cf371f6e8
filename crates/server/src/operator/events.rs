//! What happens to the server, as its operator watches it.

use control::api::{self, Request, Response, ZoneOrder, ZoneWhat};
use control::{Answer, Caller};
use diagnostic::{Diagnostic, Severity};

use super::{Operator, OperatorError, SERVER};
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
        what: "settings".to_owned(),
        by: bounded(&request.by),
        why: Some(bounded(&request.why)).filter(|why| !why.is_empty()),
        paths: request.edits.iter().filter_map(path).take(PATHS_MAX).collect(),
        rolled_back_to: request.edits.iter().find_map(back),
        ..api::ChangeEvent::default()
    }
}

/// Returns what is told of a change of what is no setting; `None` if nobody made it: lists that are
/// written as a whole again say what they said.
pub(crate) fn told_of_data(change: &store::Change, revision: u64) -> Option<api::ChangeEvent> {
    let put = change.puts.first()?;
    let (what, name) = match (put.space.split_once(' '), put.space.as_str()) {
        (Some(("set", name)), _) => ("set", name),
        (Some(("list", name)), _) => ("list", name),
        (None, "lists") if change.by == SERVER => return None,
        (None, "lists") => ("list", put.name.as_str()),
        (None, "users") => ("user", put.name.as_str()),
        (None, "tokens") => ("token", put.name.as_str()),
        (None, authority::BANS) => ("ban", put.name.as_str()),
        _ => return None,
    };
    // Bans that end together are one change.
    let names = match what {
        "ban" => change.puts.iter().take(PATHS_MAX).map(|put| bounded(&put.name)).collect(),
        _ => vec![bounded(name)],
    };
    Some(api::ChangeEvent {
        what: what.to_owned(),
        revision: Some(revision),
        by: bounded(&change.by),
        why: Some(bounded(&change.why)).filter(|why| what == "ban" && !why.is_empty()),
        names,
        ..api::ChangeEvent::default()
    })
}

/// Returns what is told of a request that changes what is not kept by revision, when it is carried
/// out.
pub(crate) fn told_of_rest(request: &Request, by: &str) -> Option<api::ChangeEvent> {
    let (what, names) = match request {
        Request::ZoneAdd(add) => ("zone", add.zones.clone()),
        Request::ZoneRemove(names) => ("zone", names.zones.clone()),
        Request::ZoneLoad(load) => ("zone", vec![load.zone.clone()]),
        Request::RrsetsChange(change) => ("zone", vec![change.zone.clone()]),
        Request::ZoneDsSeen(seen) => ("zone", vec![seen.zone.clone()]),
        Request::ZoneRoll(roll) => ("zone", vec![roll.zone.clone()]),
        Request::Zone(ZoneOrder { what: ZoneWhat::Freeze | ZoneWhat::Thaw, name, .. }) => {
            ("zone", name.iter().cloned().collect())
        }
        Request::UserPassword(asked) => ("user", vec![asked.name.clone()]),
        Request::TotpConfirm(asked) => ("user", vec![asked.name.clone()]),
        Request::TotpRemove(user) => ("user", vec![user.name.clone()]),
        _ => return None,
    };
    let names = names.iter().take(PATHS_MAX).map(|name| bounded(name)).collect();
    Some(api::ChangeEvent { what: what.to_owned(), by: bounded(by), names, ..api::ChangeEvent::default() })
}

impl Operator {
    /// Tells of a request that was carried out, by what was answered: nothing if nothing has
    /// changed.
    pub(crate) fn tell_done(&self, told: api::ChangeEvent, answer: &Answer) {
        let Answer::Whole(response) = answer else { return };
        let told = match &**response {
            Response::ZonesChanged(done) if done.done == 0 => return,
            Response::ZonesChanged(done) => {
                let is_done = |name: &String| done.refused.iter().all(|refused| refused.zone != *name);
                api::ChangeEvent { names: told.names.into_iter().filter(is_done).collect(), ..told }
            }
            Response::RrsetsChanged(changed) if !changed.is_new => return,
            Response::RrsetsChanged(changed) => api::ChangeEvent { serial: Some(changed.serial), ..told },
            Response::Error(_) => return,
            _ => told,
        };
        self.tell(api::EventOf::Change(told));
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
