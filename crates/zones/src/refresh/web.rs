//! Zones that are master files on web servers.

use std::sync::Arc;

use tracing::{info, warn};
use wire::serial::is_newer;

use super::{taken_over, warn_of_flaws};
use crate::digest::DigestCheck;
use crate::elsewhere::{Validators, WebFile, WebReply};
use crate::lock::lock;
use crate::managed::{ManagedZone, SeenOnWeb};
use crate::shared::{Shared, unix_seconds};

/// What became of one file.
enum Outcome {
    /// It is the version that is here.
    Same,
    /// It is a newer version, which is here now.
    Taken,
}

/// Fetches the zone's files in order, until one can be used. Waits, and compiles what comes.
pub(super) fn look(shared: &Arc<Shared>, managed: &Arc<ManagedZone>, wants_whole: bool) -> bool {
    for url in &managed.loaded().plan.urls {
        let shown = diagnostic::without_secrets(url);
        match take(shared, managed, url, wants_whole) {
            Ok(Outcome::Taken) => {
                let zone = lock(&managed.current).zone.clone();
                let records = zone.as_ref().map_or(0, |zone| zone.facts().records);
                info!(zone = %managed.apex, url = %shown, serial = managed.serial(), records, "taken from a web server");
                warn_of_flaws(managed, zone.as_deref().map_or(&[], zone::Zone::flaws));
                taken_over(shared, managed);
                return true;
            }
            Ok(Outcome::Same) => {
                let was_served = lock(&managed.served).is_some();
                managed.note_refreshed(&mut lock(&managed.current), (unix_seconds(), None));
                if !was_served {
                    shared.publish(managed);
                }
                return true;
            }
            Err(why) => {
                warn!(zone = %managed.apex, url = %shown, why, "the zone was not taken from a web server");
                lock(&managed.current).trouble = Some(format!("{shown}: {why}"));
            }
        }
    }
    false
}

/// Fetches one file, and takes it if it is newer than what is here; an error says why not.
fn take(shared: &Shared, managed: &ManagedZone, url: &str, wants_whole: bool) -> Result<Outcome, String> {
    let have = lock(&managed.current).zone.as_ref().map(|zone| zone.facts().serial);
    let have = have.filter(|_| !wants_whole);
    let seen = lock(&managed.seen_on_web).clone();
    // What was said of another version says nothing about this one.
    let seen = seen.filter(|seen| seen.url == url && have == Some(seen.serial));
    let loaded = managed.loaded();
    let file = WebFile {
        url,
        known: seen.as_ref().map(|seen| &seen.validators),
        patience: loaded.plan.transfer_time,
        octets_max: loaded.plan.transfer_octets_max.unwrap_or_else(|| shared.octets_max()),
    };
    let (text, validators) = match shared.elsewhere.fetch(&file)? {
        WebReply::Unchanged => return Ok(Outcome::Same),
        WebReply::Whole(text, validators) => (text, validators),
    };
    let apex = managed.apex.as_name();
    let zone = zone::receive(apex, &text, shared.key).map_err(|why| why.to_string())?;
    drop(text);
    let serial = zone.facts().serial;
    let note = |validators: Validators| {
        *lock(&managed.seen_on_web) = Some(SeenOnWeb { url: url.to_owned(), serial, validators });
    };
    match have {
        Some(have) if serial == have => {
            note(validators);
            return Ok(Outcome::Same);
        }
        Some(have) if !is_newer(serial, have) => {
            return Err(format!("its serial {serial} is older than ours, {have}"));
        }
        Some(_) | None => {}
    }
    let digest = DigestCheck::new(loaded.plan.zonemd.as_ref(), apex, &*shared.trust)
        .map_err(|why| format!("it is not known which keys the zone has: {why}"))?;
    digest.check(&zone).map_err(|why| format!("serial {serial} is not taken: {why}"))?;
    managed.take_whole(&mut lock(&managed.current), zone, shared.key, (unix_seconds(), None));
    note(validators);
    Ok(Outcome::Taken)
}
