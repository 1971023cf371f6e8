//! Dynamic sets, as their operator sees and changes them.

use config::sets::{Dynamic, Sets};
use control::api::{self, Response};
use tracing::warn;

use super::{Running, unix_seconds};
use crate::lock;

impl Running {
    /// Writes dynamic sets to their files.
    pub(crate) fn keep_sets(&self) {
        keep(&lock(&self.view).sets.clone());
    }

    #[expect(clippy::result_large_err, reason = "a response to a person, once")]
    fn dynamic(&self, name: &str) -> Result<Dynamic, Response> {
        let view = lock(&self.view);
        if let Some(dynamic) = view.sets.dynamic(name) {
            return Ok(dynamic.clone());
        }
        let is_set = view.sets.iter().any(|(other, _)| other == name);
        let why = if is_set { "is not dynamic" } else { "does not exist" };
        Err(Response::error(format!("set \"{name}\" {why}")))
    }

    pub(super) fn set_list(&self, name: &str) -> Response {
        let dynamic = match self.dynamic(name) {
            Ok(dynamic) => dynamic,
            Err(response) => return response,
        };
        let now = unix_seconds();
        let items = dynamic.list().into_iter().map(|(item, leaves)| api::SetItem {
            item,
            leaves_in_s: leaves.map(|leaves| leaves.saturating_sub(now)),
        });
        Response::SetList(items.collect())
    }

    pub(super) fn set_change(&self, change: &api::SetChange, adds: bool) -> Response {
        let dynamic = match self.dynamic(&change.name) {
            Ok(dynamic) => dynamic,
            Err(response) => return response,
        };
        let changed = match adds {
            true => dynamic.add(&change.items, unix_seconds(), change.ttl_s),
            false => dynamic.remove(&change.items),
        };
        let changed = match changed {
            Ok(changed) => changed,
            Err(why) => return Response::error(why),
        };
        Response::SetChanged(api::SetChanged { changed, holds: dynamic.list().len() })
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
