//! What the log says while large sets and zones are made: about once a second, and at every
//! millionth entry of a list.

use std::sync::Arc;

use authority::own_lists::OwnLists;
use environment::{Environment, Loading, Pace, Serving, SetProgress};
use tracing::info;
use wire::Name;
use zone::Zone;
use zones::ZoneManager;

/// After so many entries of a list the log has a line, however quickly they were read.
const TELL_ENTRIES: usize = 1 << 20;

/// Returns the machine, for a server that begins: the log says how far sets are.
pub(crate) fn logged(own_lists: &OwnLists) -> impl Environment {
    with(|_| None, own_lists)
}

/// Returns the machine, for a server that has these zones and lists.
pub(crate) fn serving(manager: &ZoneManager, own_lists: &OwnLists) -> impl Environment {
    with(|apex| manager.received(apex), own_lists)
}

fn with(zone: impl Fn(Name<'_>) -> Option<Arc<Zone>>, own_lists: &OwnLists) -> impl Environment {
    let pace = Pace::begin();
    let hear = move |progress: &SetProgress<'_>| {
        let is_milestone = progress.list.is_some() && progress.count.is_multiple_of(TELL_ENTRIES);
        if pace.is_time() || is_milestone {
            match progress.list {
                Some(file) if progress.what == Loading::Zone => {
                    info!(zone = progress.set, file, records = progress.count, "reading a zone");
                }
                Some(list) => info!(set = progress.set, list, entries = progress.count, "reading a list"),
                None if progress.what == Loading::Zone => info!(files = progress.count, "reading zones"),
                None => info!(set = progress.set, rules = progress.count, "putting a set together"),
            }
        }
    };
    let own_list = |name: &str| Some(own_lists.find(name));
    Serving { hear, zone, own_list, keeper: own_lists.keeper() }
}
