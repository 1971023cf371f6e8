//! Zones that come from other servers: when they are asked, what becomes of the answer.

mod web;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plan::transfers::Remote;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tracing::{debug, info, warn};
use transfer::{Have, Heard, Patience, Wish, Word};
use wire::serial::is_newer;
use zone::incoming::Received;
use zone::{Finding, Zone};

use crate::digest::DigestCheck;
use crate::lock::lock;
use crate::managed::ManagedZone;
use crate::shared::{Shared, TransferOutcome, unix_seconds};

/// Seconds between two looks, whatever a SOA says: less would be a nuisance, more would be
/// forgotten.
const LOOK_S: std::ops::RangeInclusive<u64> = 1..=2_419_200;
/// Seconds after the first failure to get a zone that was never there; grows with the square of
/// their number.
const FIRST_RETRY_S: u64 = 2;
/// The most of these.
const FIRST_RETRY_S_MAX: u64 = 7200;

/// A zone that is refreshed, for as long as this is there.
struct Refreshed<'s>(&'s Shared);

impl<'s> Refreshed<'s> {
    fn begin(shared: &'s Shared) -> Self {
        if shared.refreshed.fetch_add(1, Ordering::Relaxed) == 0 {
            shared.refresh_began.notify_one();
        }
        Self(shared)
    }
}

impl Drop for Refreshed<'_> {
    fn drop(&mut self) {
        self.0.refreshed.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Looks after a zone until it is gone.
pub(crate) async fn follow(shared: Arc<Shared>, managed: Arc<ManagedZone>) {
    let _refreshed = Refreshed::begin(&shared);
    let mut failures: u64 = 0;
    let wait = {
        let current = lock(&managed.current);
        match &current.zone {
            // What a file has is as old as the file.
            Some(_) if current.next_look > unix_seconds() => {
                Duration::from_secs(current.next_look.saturating_sub(unix_seconds()))
            }
            // What was kept may be old: whoever restarts asks.
            Some(_) => Duration::from_millis(u64::from(rand_below(500))),
            None => Duration::ZERO,
        }
    };
    let mut look_at = Instant::now() + wait;
    loop {
        let until = managed.copy_due().map_or(look_at, |due| look_at.min(due.into()));
        let poked = tokio::select! {
            () = managed.refresh_now.notified() => true,
            () = tokio::time::sleep_until(until) => false,
            () = shared.clock_moved.notified() => {
                let left_s = lock(&managed.current).next_look.saturating_sub(unix_seconds());
                look_at = look_at.min(Instant::now() + Duration::from_secs(left_s));
                false
            }
        };
        if managed.is_gone.load(Ordering::Relaxed) || !managed.is_secondary() {
            return;
        }
        if managed.copy_due().is_some_and(|due| Instant::from(due) <= Instant::now()) {
            let copied = Arc::clone(&managed);
            drop(tokio::task::spawn_blocking(move || copied.write_copy()).await);
        }
        if !poked && Instant::now() < look_at {
            continue;
        }
        let (is_frozen, is_expired) = {
            let current = lock(&managed.current);
            (current.is_frozen, managed.is_expired(&current, unix_seconds()))
        };
        if is_frozen {
            look_at = Instant::now() + Duration::from_secs(*LOOK_S.end());
            continue;
        }
        if is_expired {
            expire(&shared, &managed).await;
        }
        let Ok(_place) = Arc::clone(&shared.incoming).acquire_owned().await else { return };
        let asked = Arc::clone(&managed);
        let (worker, handle) = (Arc::clone(&shared), Handle::current());
        // What comes is made a zone on a thread of its own: that of a million records takes a
        // second.
        let looked = tokio::task::spawn_blocking(move || {
            let primaries = known_primaries(&worker, &asked);
            handle.block_on(look(&worker, &asked, primaries))
        })
        .await;
        let is_fine = looked.unwrap_or(false);
        failures = if is_fine { 0 } else { failures + 1 };
        if failures == 1 {
            let trouble = lock(&managed.current).trouble.clone().unwrap_or_default();
            shared.news.transfer(managed.apex.as_name(), &TransferOutcome::Failed(&trouble));
        }
        let wait = next_look(&managed, failures);
        look_at = Instant::now() + wait;
        debug!(zone = %managed.apex, poked, is_fine, wait_s = wait.as_secs(), "looked for a newer version");
    }
}

async fn expire(shared: &Arc<Shared>, managed: &Arc<ManagedZone>) {
    let is_news = {
        let current = lock(&managed.current);
        managed.show(&current, unix_seconds())
    };
    if is_news {
        warn!(zone = %managed.apex, "no primary was heard of for too long: questions about the zone get SERVFAIL");
        shared.news.transfer(managed.apex.as_name(), &TransferOutcome::Expired);
        let (shared, managed) = (Arc::clone(shared), Arc::clone(managed));
        drop(tokio::task::spawn_blocking(move || shared.publish(&managed)).await);
    }
}

/// Returns how long to wait until the next look.
fn next_look(managed: &ManagedZone, failures: u64) -> Duration {
    let now = unix_seconds();
    let mut current = lock(&managed.current);
    let seconds = match &current.zone {
        Some(zone) => {
            let times = zone.soa_times();
            let next = if failures == 0 { times.refresh } else { times.retry };
            let next = u64::from(next).clamp(*LOOK_S.start(), *LOOK_S.end());
            // The moment it expires is not slept over.
            let left = managed.expires(&current).map_or(u64::MAX, |expires| expires.saturating_sub(now));
            if left > 0 { next.min(left) } else { next }
        }
        None => (FIRST_RETRY_S * failures * failures).clamp(FIRST_RETRY_S, FIRST_RETRY_S_MAX),
    };
    current.next_look = now + seconds;
    // Many zones of one primary do not come back at once.
    Duration::from_secs(seconds) + Duration::from_millis(u64::from(rand_below(250)))
}

fn rand_below(bound: u32) -> u32 {
    let mut octets = [0; 4];
    // Without randomness, all at once.
    if getrandom::fill(&mut octets).is_err() { 0 } else { u32::from_be_bytes(octets) % bound.max(1) }
}

/// Returns the primaries of a zone with their addresses: those that are hosts have several, or none
/// now. Waits for answers of other servers.
pub(crate) fn known_primaries(shared: &Shared, managed: &ManagedZone) -> Vec<Remote> {
    let mut known = Vec::new();
    for primary in &managed.loaded().plan.primaries {
        let Some(host) = &primary.host else {
            known.push(primary.clone());
            continue;
        };
        match shared.elsewhere.addresses(host.as_name()) {
            Ok(addresses) => known.extend(addresses.into_iter().map(|address| Remote {
                address: SocketAddr::new(address, primary.address.port()),
                host: None,
                ..primary.clone()
            })),
            Err(why) => {
                warn!(zone = %managed.apex, %primary, why, "the addresses of a primary are not known");
                let trouble = format!("{primary}: its addresses are not known: {why}");
                lock(&managed.current).trouble = Some(trouble);
            }
        }
    }
    known
}

/// Asks the primaries in order, the one that has said something first, until one can be used.
async fn look(shared: &Arc<Shared>, managed: &Arc<ManagedZone>, mut primaries: Vec<Remote>) -> bool {
    let loaded = managed.loaded();
    let notified_by = lock(&managed.notified_by).take();
    if let Some(first) = notified_by {
        primaries.sort_by_key(|primary| primary.address.ip() != first);
    }
    let (wants_whole, doubts) = wanted(managed, notified_by.is_some());
    let octets_max = loaded.plan.transfer_octets_max.unwrap_or_else(|| shared.octets_max());
    let patience = Patience { whole: loaded.plan.transfer_time, ..Patience::default() };
    let wish = Wish { key: shared.key, octets_max, doubts, patience };
    let mut has_heard = false;
    for primary in &primaries {
        let have = have(managed).filter(|_| !wants_whole);
        let (client, apex) = (&shared.transfers, managed.apex.as_name());
        let mut word = transfer::refresh(client, primary, apex, have.as_ref(), &wish).await;
        if word.as_ref().is_ok_and(|word| word.is_confirmed) {
            managed.confirmed_at.store(unix_seconds(), Ordering::Relaxed);
        }
        let is_new = word.as_ref().is_ok_and(|word| matches!(word.heard, Heard::New(_)));
        let zonemd = loaded.plan.zonemd.as_ref().filter(|_| is_new);
        let digest = match DigestCheck::new(zonemd, apex, &*shared.trust) {
            Ok(digest) => digest,
            Err(why) => {
                // No other primary would do.
                warn!(zone = %managed.apex, why, "no new version is taken: it is not known which keys the zone has");
                lock(&managed.current).trouble =
                    Some(format!("it is not known which keys the zone has: {why}"));
                return has_heard;
            }
        };
        if let Ok(Word { heard: Heard::New(Received::Steps(steps)), expire_s, .. }) = word {
            let count = steps.len();
            let taken = {
                let mut current = lock(&managed.current);
                managed.take_steps(&mut current, steps, (shared.key, &digest), (unix_seconds(), expire_s))
            };
            match taken {
                Ok(()) => {
                    info!(zone = %managed.apex, %primary, serial = managed.serial(), steps = count, "transferred by IXFR");
                    let zone = lock(&managed.current).zone.clone();
                    warn_of_flaws(managed, zone.as_deref().map_or(&[], Zone::flaws));
                    taken_over(shared, managed);
                    return true;
                }
                Err(why) => {
                    warn!(zone = %managed.apex, %primary, why, "the differences are not taken; the whole zone is asked for");
                    word = transfer::refresh(client, primary, apex, None, &wish).await;
                }
            }
        }
        match word {
            Ok(Word { heard: Heard::New(Received::Whole(zone)), expire_s, .. }) => {
                let serial = zone.facts().serial;
                let fit = is_newer_than_ours(serial, have.as_ref()).and_then(|()| digest.check(&zone));
                if let Err(why) = fit {
                    warn!(zone = %managed.apex, %primary, serial, why, "the version that came is not taken");
                    let why = format!("{primary}: serial {serial} is not taken: {why}");
                    lock(&managed.current).trouble = Some(why);
                    continue;
                }
                let records = zone.facts().records;
                let flaws = zone.flaws().to_vec();
                {
                    let mut current = lock(&managed.current);
                    managed.take_whole(&mut current, *zone, shared.key, (unix_seconds(), expire_s));
                }
                info!(zone = %managed.apex, %primary, serial = managed.serial(), records, "transferred by AXFR");
                warn_of_flaws(managed, &flaws);
                taken_over(shared, managed);
                return true;
            }
            Ok(Word { expire_s, .. }) => {
                // Another primary may have more.
                has_heard = true;
                let was_served = lock(&managed.served).is_some();
                let mut current = lock(&managed.current);
                managed.note_refreshed(&mut current, (unix_seconds(), expire_s));
                drop(current);
                if !was_served {
                    shared.publish(managed);
                }
                if !wants_whole {
                    return true;
                }
            }
            Err(trouble) => {
                warn!(zone = %managed.apex, %primary, %trouble, "no transfer");
                lock(&managed.current).trouble = Some(format!("{primary}: {trouble}"));
            }
        }
    }
    if has_heard || loaded.plan.urls.is_empty() {
        return has_heard;
    }
    web::look(shared, managed, wants_whole)
}

/// Returns whether the whole zone is asked for, and whether what a datagram without a key says of
/// it is confirmed over TCP.
fn wanted(managed: &ManagedZone, is_notified: bool) -> (bool, bool) {
    let is_wanted = managed.wants_whole.swap(false, Ordering::Relaxed);
    let (current, now) = (lock(&managed.current), unix_seconds());
    // Whatever a primary has is better than what is served no more, even if its serial went back.
    let wants_whole = is_wanted || managed.is_expired(&current, now);
    // Who is told of a newer version is not put off by a forged datagram.
    (wants_whole, is_notified || managed.is_unconfirmed(&current, now))
}

/// Returns the version that is here.
fn have(managed: &ManagedZone) -> Option<Have> {
    lock(&managed.current).zone.as_ref().map(|zone| {
        let (ttl, soa) = zone.soa();
        Have { serial: zone.facts().serial, soa: (ttl, soa.into()) }
    })
}

/// Says if a version is not newer than ours: what was announced as newer may come as something
/// else. With our serial and other records, no secondary of ours would ever hear of it.
fn is_newer_than_ours(serial: u32, have: Option<&Have>) -> Result<(), String> {
    match have.filter(|have| !is_newer(serial, have.serial)) {
        Some(have) => Err(format!("it is not newer than {}", have.serial)),
        None => Ok(()),
    }
}

/// Serves a version that was transferred, and tells of it.
fn taken_over(shared: &Arc<Shared>, managed: &Arc<ManagedZone>) {
    shared.changed(managed);
    shared.news.transfer(managed.apex.as_name(), &TransferOutcome::Transferred(managed.serial()));
}

/// Says what is wrong with a zone that only the operator of its primary can put right.
fn warn_of_flaws(managed: &ManagedZone, flaws: &[Finding]) {
    let Some(Finding { owner, problem, .. }) = flaws.first() else { return };
    let mistakes = flaws.len();
    warn!(zone = %managed.apex, mistakes, %owner, %problem, "what came has mistakes; it is served as it came");
}
