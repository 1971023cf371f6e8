//! NOTIFY (RFC 1996): secondaries are notified of new versions, and of all zones when the server
//! starts, a few at a time to each of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use plan::transfers::Remote;
use tokio::sync::Notify;
use tokio::task::{self, AbortHandle, JoinError, JoinSet};
use tracing::{debug, info, warn};
use transfer::{Patience, PeerError};
use wire::Rcode;

use crate::lock::lock;
use crate::managed::ManagedZone;
use crate::shared::{Shared, folded};

/// Notifications to one server that wait for its reply at a time: a server that starts with 100,000
/// zones sends no flood.
const WAITING_MAX: usize = 32;
/// Notifications in a row without a reply after which a server counts as silent.
const SILENT_AFTER: u32 = 8;

/// Where a secondary is, and whether it is spoken to over TLS.
type Destination = (SocketAddr, bool);

/// The zones that each secondary is to be notified of.
#[derive(Default)]
pub(crate) struct NotifyQueues(Mutex<BTreeMap<Destination, NotifyQueue>>);

/// The zones that one secondary is to be notified of, in order. A queue lives as long as a task
/// works it off.
#[derive(Default)]
struct NotifyQueue {
    waiting: VecDeque<Arc<ManagedZone>>,
    /// The names of those that wait, so that none waits twice: a notification carries the version
    /// of the moment.
    names: BTreeSet<Vec<u8>>,
    /// The notifications under way by name: one a zone.
    under_way: BTreeMap<Vec<u8>, UnderWay>,
    /// Wakes the task that works the queue off: a zone was added.
    added: Arc<Notify>,
}

/// A notification that waits for its reply, or the moment before.
struct UnderWay {
    /// The serial of the SOA record that it carries, if the zone is served.
    serial: Option<u32>,
    task: AbortHandle,
}

impl NotifyQueues {
    /// Adds a zone to the queue of a secondary. A notification of an older version ends (RFC 1996
    /// §3.6); that of the same version goes on and is not sent twice. Returns what wakes the task
    /// of the queue if no task works it off yet.
    fn add(&self, destination: Destination, managed: &Arc<ManagedZone>) -> Option<Arc<Notify>> {
        let mut notify_queues = lock(&self.0);
        let is_new = !notify_queues.contains_key(&destination);
        let queue = notify_queues.entry(destination).or_default();
        let added = Arc::clone(&queue.added);
        let name = folded(managed.apex.as_name());
        match queue.under_way.get(&name) {
            Some(older) if older.serial != serial_of(managed) => {
                older.task.abort();
                queue.under_way.remove(&name);
            }
            Some(_) => return is_new.then_some(added),
            None => {}
        }
        if queue.names.insert(name) {
            queue.waiting.push_back(Arc::clone(managed));
            added.notify_one();
        }
        is_new.then_some(added)
    }

    /// Has `start` begin the next notification. Returns whether there was one.
    fn begin(&self, destination: Destination, start: impl FnOnce(Arc<ManagedZone>) -> AbortHandle) -> bool {
        let mut notify_queues = lock(&self.0);
        let Some(queue) = notify_queues.get_mut(&destination) else { return false };
        let Some(managed) = queue.waiting.pop_front() else { return false };
        let name = folded(managed.apex.as_name());
        queue.names.remove(&name);
        let serial = serial_of(&managed);
        queue.under_way.insert(name, UnderWay { serial, task: start(managed) });
        true
    }

    /// Notes that a notification is over.
    fn note_end(&self, destination: Destination, task: task::Id) {
        if let Some(queue) = lock(&self.0).get_mut(&destination) {
            queue.under_way.retain(|_, under_way| under_way.task.id() != task);
        }
    }

    /// Ends the queue if nothing is in it. Returns whether it is over.
    fn end(&self, destination: Destination) -> bool {
        let mut notify_queues = lock(&self.0);
        let is_over = notify_queues.get(&destination).is_none_or(|queue| queue.waiting.is_empty());
        if is_over {
            notify_queues.remove(&destination);
        }
        is_over
    }
}

/// Returns the serial that is served of a zone.
fn serial_of(managed: &ManagedZone) -> Option<u32> {
    lock(&managed.served).as_ref().map(|zone| zone.facts().serial)
}

fn destination_of(remote: &Remote) -> Destination {
    (remote.address, remote.tls.is_some())
}

/// Has all secondaries of a zone notified of the version that is served, soon.
pub(crate) fn notify(shared: &Arc<Shared>, managed: &Arc<ManagedZone>) {
    for remote in &managed.loaded().plan.notify {
        let destination = destination_of(remote);
        if let Some(added) = shared.notify_queues.add(destination, managed) {
            tokio::spawn(work_off(Arc::clone(shared), destination, added));
        }
    }
}

async fn work_off(shared: Arc<Shared>, destination: Destination, added: Arc<Notify>) {
    let mut under_way: JoinSet<Reply> = JoinSet::new();
    let mut silence: u32 = 0;
    let mut unknown: usize = 0;
    loop {
        // Whoever says nothing is asked once each: it asks itself when it is back.
        let is_silent = silence >= SILENT_AFTER;
        let usual = Patience::default();
        let patience = if is_silent { Patience { notify_tries: 1, ..usual } } else { usual };
        for _ in under_way.len()..WAITING_MAX {
            let client = &shared.transfers;
            let start =
                |managed| under_way.spawn(one(client.clone(), managed, destination, patience, !is_silent));
            if !shared.notify_queues.begin(destination, start) {
                break;
            }
        }
        if under_way.is_empty() {
            if shared.notify_queues.end(destination) {
                break;
            }
            continue;
        }
        // A zone that is added does not wait for the replies about others, which may take a minute
        // and a half.
        let ended = tokio::select! {
            Some(ended) = under_way.join_next_with_id() => ended,
            () = added.notified() => continue,
        };
        let (task, reply) = outcome(ended);
        shared.notify_queues.note_end(destination, task);
        if reply == Reply::Superseded {
            continue;
        }
        silence = if reply == Reply::Nothing { silence.saturating_add(1) } else { 0 };
        unknown += usize::from(reply == Reply::Unknown);
        if silence == SILENT_AFTER {
            warn!(secondary = %destination.0, "does not answer notifications; it is told of each zone once more, and no word is said of it");
        }
    }
    if unknown > 0 {
        info!(secondary = %destination.0, zones = unknown, "members of a catalog are not known there yet: it takes them over when it has read the catalog");
    }
}

/// Returns which notification ended, and how.
fn outcome(ended: Result<(task::Id, Reply), JoinError>) -> (task::Id, Reply) {
    match ended {
        Ok(ended) => ended,
        // It made room for a newer version.
        Err(failed) if failed.is_cancelled() => (failed.id(), Reply::Superseded),
        Err(failed) => (failed.id(), Reply::Nothing),
    }
}

/// What a secondary said to a notification.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reply {
    Something,
    Nothing,
    /// It was not waited for: there is a newer version.
    Superseded,
    /// It does not serve the zone: perhaps it has not read the catalog yet that lists it.
    Unknown,
}

/// Tells one secondary of one zone. Returns what it said.
async fn one(
    client: transfer::Client,
    managed: Arc<ManagedZone>,
    destination: Destination,
    patience: Patience,
    is_logged: bool,
) -> Reply {
    let remote =
        managed.loaded().plan.notify.iter().find(|remote| destination_of(remote) == destination).cloned();
    let zone = lock(&managed.served).clone();
    let (Some(remote), Some(zone)) = (remote, zone) else { return Reply::Something };
    let (ttl, soa) = zone.soa();
    let serial = zone.facts().serial;
    match transfer::notify(&client, &remote, managed.apex.as_name(), (ttl, soa), patience).await {
        Ok(()) => {
            debug!(zone = %managed.apex, secondary = %remote, serial, "notified");
            Reply::Something
        }
        Err(PeerError::Refused(Rcode::NOTAUTH)) if managed.loaded().plan.member_of.is_some() => {
            debug!(zone = %managed.apex, secondary = %remote, serial, "not notified: the secondary does not know the zone");
            Reply::Unknown
        }
        Err(trouble) => {
            if is_logged {
                warn!(zone = %managed.apex, secondary = %remote, serial, %trouble, "not notified");
            } else {
                debug!(zone = %managed.apex, secondary = %remote, serial, %trouble, "not notified");
            }
            match trouble {
                PeerError::Slow | PeerError::Io(_) => Reply::Nothing,
                _ => Reply::Something,
            }
        }
    }
}
