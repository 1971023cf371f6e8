//! Authority zones and response policy zones.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use unbound::AuthZone;

use super::lists::by_labels;
use super::server::change;
use super::{Call, Failure, Outcome, dotted};

/// Returns the zone that the argument names.
fn zone(call: &Call<'_>) -> Result<AuthZone, Failure> {
    let name = call.name()?.to_string();
    let bare = name.trim_end_matches('.').to_ascii_lowercase();
    let bare = if bare.is_empty() { "." } else { &bare };
    let zones = call.facts()?.auth_zones();
    let found = zones.into_iter().find(|zone| zone.name == bare);
    found.ok_or_else(|| Failure::Error(format!("no auth-zone {}", call.argument)))
}

pub(super) fn list_auth_zones(call: &mut Call<'_>) -> Outcome {
    let reports = call.context.operator.zone_status(None)?;
    let times = call.context.operator.zones_served_since();
    let started = unix_seconds().saturating_sub(call.context.operator.uptime().as_secs());
    let mut zones = call.facts()?.auth_zones();
    // As there: response policy zones first.
    zones.sort_by_cached_key(|zone| (Reverse(zone.is_policy), by_labels(&zone.name)));
    let by_name: HashMap<String, _> =
        reports.iter().map(|report| (dotted(&report.name).to_ascii_lowercase(), report)).collect();
    for zone in zones {
        let name = dotted(&zone.name);
        let report = by_name.get(&name.to_ascii_lowercase());
        match report.and_then(|report| report.serial) {
            Some(serial) => {
                let since = report.and_then(|report| times.get(&report.name)).copied().unwrap_or(started);
                serial_since(call, &name, serial, since)?;
            }
            None if zone.is_policy => match policy_serial(&zone) {
                Some(serial) => serial_since(call, &name, serial, started)?,
                None => call.line(format_args!("{name}\tno serial"))?,
            },
            None if report.is_some_and(|report| report.expires_in_s.is_some()) => {
                call.line(format_args!("{name}\texpired"))?;
            }
            None => call.line(format_args!("{name}\tno serial"))?,
        }
    }
    Ok(())
}

/// Says which version is in use, and since when.
fn serial_since(call: &mut Call<'_>, name: &str, serial: u32, since: u64) -> Outcome {
    let at = (call.context.hooks.local_time)(since);
    call.line(format_args!("{name}\tserial {serial}\t since {since} {at}"))
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns the serial in the file of a response policy zone.
fn policy_serial(zone: &AuthZone) -> Option<u32> {
    let text = std::fs::read_to_string(zone.file.as_ref()?).ok()?;
    let mut words = text.split_whitespace().skip_while(|word| !word.eq_ignore_ascii_case("SOA")).skip(3);
    words.find(|word| *word != "(")?.parse().ok()
}

pub(super) fn auth_zone_reload(call: &mut Call<'_>) -> Outcome {
    let zone = zone(call)?;
    call.context.operator.refresh()?;
    let reports = call.context.operator.zone_status(None)?;
    let name = dotted(&zone.name);
    let report = reports.iter().find(|report| dotted(&report.name).eq_ignore_ascii_case(&name));
    let is_there = report.is_some_and(|report| report.serial.is_some())
        || (zone.is_policy && report.is_none() && policy_serial(&zone).is_some());
    if !is_there {
        // With this, and no error.
        let argument = call.argument;
        return call.line(format_args!("zone {argument} has no contents"));
    }
    call.ok()
}

pub(super) fn auth_zone_transfer(call: &mut Call<'_>) -> Outcome {
    let found = zone(call).ok().filter(|zone| zone.has_primaries);
    let Some(zone) = found else {
        return Err(Failure::Error(format!("zone xfr task not found {}", call.argument)));
    };
    // Whether a version comes is seen later, as there.
    call.context.operator.zone_refresh(Some(&zone.name), None, "unbound-control")?;
    call.ok()
}

pub(super) fn rpz_enable(call: &mut Call<'_>) -> Outcome {
    switch(call, true)
}

pub(super) fn rpz_disable(call: &mut Call<'_>) -> Outcome {
    // One that is switched off is not among those in use, and stays so.
    switch(call, false)
}

fn switch(call: &mut Call<'_>, is_enabled: bool) -> Outcome {
    let name = call.name()?.to_string();
    let loaded = call.context.operator.loaded();
    let is_off = loaded.changes.as_ref().is_some_and(|changes| changes.is_disabled(&name));
    if !is_off && !zone(call)?.is_policy {
        return Err(Failure::Error(format!("auth-zone {} not RPZ", call.argument)));
    }
    change(call, |changes| changes.policy_zone(&name, is_enabled), |_| "no such zone".to_owned())?;
    call.ok()
}
