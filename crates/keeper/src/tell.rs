//! Telling secondaries of new versions, and of all zones when the server starts: a few at a time to each of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use fetch::transfer::{self, Patience, Remote, Trouble};
use tokio::sync::Notify;
use tokio::task::{self, AbortHandle, JoinError, JoinSet};
use tracing::{debug, info, warn};
use wire::Rcode;

use crate::kept::{Kept, lock};
use crate::{Shared, folded};

/// Notifications to one server that wait for its reply at a time: a server that starts with 100,000 zones sends no flood.
const WAITING_MAX: usize = 32;
/// Notifications in a row without a reply after which a server counts as silent.
const SILENT_AFTER: u32 = 8;

/// Where a secondary is, and whether it is spoken to over TLS.
type Place = (SocketAddr, bool);

/// What there is to tell each secondary.
#[derive(Default)]
pub(crate) struct Lanes(Mutex<BTreeMap<Place, Lane>>);

/// What there is to tell one secondary, in the order in which it came up. A lane lives as long as somebody works it off.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<Arc<Kept>>,
    /// The names of those that wait, so that none waits twice: what is told is the version of the moment.
    names: BTreeSet<Vec<u8>>,
    /// The notifications under way by name: one a zone.
    under_way: BTreeMap<Vec<u8>, UnderWay>,
    /// Wakes the task that works the lane off: a zone was added.
    added: Arc<Notify>,
}

/// A notification that waits for its reply, or the moment before.
struct UnderWay {
    /// The serial of the SOA record that it carries, if the zone is served.
    serial: Option<u32>,
    task: AbortHandle,
}

impl Lanes {
    /// Adds a zone to the lane of a secondary. A notification of an older version ends (RFC 1996 §3.6); that of the same version
    /// goes on and is not sent twice. Returns what wakes the task of the lane if nobody works it off yet.
    fn add(&self, place: Place, kept: &Arc<Kept>) -> Option<Arc<Notify>> {
        let mut lanes = lock(&self.0);
        let is_new = !lanes.contains_key(&place);
        let lane = lanes.entry(place).or_default();
        let added = Arc::clone(&lane.added);
        let name = folded(kept.apex.as_name());
        match lane.under_way.get(&name) {
            Some(older) if older.serial != serial_of(kept) => {
                older.task.abort();
                lane.under_way.remove(&name);
            }
            Some(_) => return is_new.then_some(added),
            None => {}
        }
        if lane.names.insert(name) {
            lane.waiting.push_back(Arc::clone(kept));
            added.notify_one();
        }
        is_new.then_some(added)
    }

    /// Has `start` begin the next notification. Returns whether there was one.
    fn begin(&self, place: Place, start: impl FnOnce(Arc<Kept>) -> AbortHandle) -> bool {
        let mut lanes = lock(&self.0);
        let Some(lane) = lanes.get_mut(&place) else { return false };
        let Some(kept) = lane.waiting.pop_front() else { return false };
        let name = folded(kept.apex.as_name());
        lane.names.remove(&name);
        let serial = serial_of(&kept);
        lane.under_way.insert(name, UnderWay { serial, task: start(kept) });
        true
    }

    /// Notes that a notification is over.
    fn note_end(&self, place: Place, task: task::Id) {
        if let Some(lane) = lock(&self.0).get_mut(&place) {
            lane.under_way.retain(|_, under_way| under_way.task.id() != task);
        }
    }

    /// Ends the lane if nothing is in it. Returns whether it is over.
    fn end(&self, place: Place) -> bool {
        let mut lanes = lock(&self.0);
        let is_over = lanes.get(&place).is_none_or(|lane| lane.waiting.is_empty());
        if is_over {
            lanes.remove(&place);
        }
        is_over
    }
}

/// Returns the serial that is served of a zone.
fn serial_of(kept: &Kept) -> Option<u32> {
    lock(&kept.served).as_ref().map(|zone| zone.facts().serial)
}

fn place_of(remote: &Remote) -> Place {
    (remote.address, remote.secure.is_some())
}

/// Has all secondaries of a zone told of the version that is served, soon.
pub(crate) fn tell(shared: &Arc<Shared>, kept: &Arc<Kept>) {
    for remote in &kept.plan().notify {
        let place = place_of(remote);
        if let Some(added) = shared.lanes.add(place, kept) {
            tokio::spawn(work_off(Arc::clone(shared), place, added));
        }
    }
}

async fn work_off(shared: Arc<Shared>, place: Place, added: Arc<Notify>) {
    let mut under_way: JoinSet<Heard> = JoinSet::new();
    let mut silence: u32 = 0;
    let mut unknown: usize = 0;
    loop {
        // Whoever says nothing is asked once each: it asks itself when it is back.
        let is_silent = silence >= SILENT_AFTER;
        let usual = Patience::default();
        let patience = if is_silent { Patience { notify_tries: 1, ..usual } } else { usual };
        for _ in under_way.len()..WAITING_MAX {
            let start = |kept| under_way.spawn(one(kept, place, patience, !is_silent));
            if !shared.lanes.begin(place, start) {
                break;
            }
        }
        if under_way.is_empty() {
            if shared.lanes.end(place) {
                break;
            }
            continue;
        }
        // A zone that is added does not wait for the replies about others, which may take a minute and a half.
        let ended = tokio::select! {
            Some(ended) = under_way.join_next_with_id() => ended,
            () = added.notified() => continue,
        };
        let (task, heard) = outcome(ended);
        shared.lanes.note_end(place, task);
        if heard == Heard::Superseded {
            continue;
        }
        silence = if heard == Heard::Nothing { silence.saturating_add(1) } else { 0 };
        unknown += usize::from(heard == Heard::Unknown);
        if silence == SILENT_AFTER {
            warn!(secondary = %place.0, "does not answer notifications; it is told of each zone once more, and no word is said of it");
        }
    }
    if unknown > 0 {
        info!(secondary = %place.0, zones = unknown, "members of a catalog are not known there yet: it takes them over when it has read the catalog");
    }
}

/// Returns which notification ended, and how.
fn outcome(ended: Result<(task::Id, Heard), JoinError>) -> (task::Id, Heard) {
    match ended {
        Ok(ended) => ended,
        // It made room for a newer version.
        Err(failed) if failed.is_cancelled() => (failed.id(), Heard::Superseded),
        Err(failed) => (failed.id(), Heard::Nothing),
    }
}

/// What a secondary said to a notification.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    Something,
    Nothing,
    /// It was not waited for: there is a newer version.
    Superseded,
    /// It does not serve the zone: perhaps it has not read the catalog yet that lists it.
    Unknown,
}

/// Tells one secondary of one zone. Returns what it said.
async fn one(kept: Arc<Kept>, place: Place, patience: Patience, is_said: bool) -> Heard {
    let remote = kept.plan().notify.iter().find(|remote| place_of(remote) == place).cloned();
    let zone = lock(&kept.served).clone();
    let (Some(remote), Some(zone)) = (remote, zone) else { return Heard::Something };
    let (ttl, soa) = zone.soa();
    let serial = zone.facts().serial;
    match transfer::notify(&remote, kept.apex.as_name(), (ttl, soa), patience).await {
        Ok(()) => {
            debug!(zone = %kept.apex, secondary = %remote, serial, "notified");
            Heard::Something
        }
        Err(Trouble::Refused(Rcode::NOTAUTH)) if kept.plan().member_of.is_some() => {
            debug!(zone = %kept.apex, secondary = %remote, serial, "not notified: the secondary does not know the zone");
            Heard::Unknown
        }
        Err(trouble) => {
            if is_said {
                warn!(zone = %kept.apex, secondary = %remote, serial, %trouble, "not notified");
            } else {
                debug!(zone = %kept.apex, secondary = %remote, serial, %trouble, "not notified");
            }
            match trouble {
                Trouble::Slow | Trouble::Io(_) => Heard::Nothing,
                _ => Heard::Something,
            }
        }
    }
}
