//! What changes until the next reload: local zones and data, forward and stub zones, zones whose
//! signatures do not count.
//!
//! Each list that comes in one command is brought into use at once.

use std::net::IpAddr;

use unbound::{ChangeError, Changes, Facts, Scope, ZoneKind, ZoneServers};
use wire::NameBuf;

use super::server::change;
use super::{Call, Failure, Outcome, lists, name, split};
use crate::lines::END;

/// Says why a change is not possible.
fn why(error: ChangeError) -> String {
    match error {
        ChangeError::TooMany => "there are too many changes: write them into the file".to_owned(),
        ChangeError::Text => "no configuration can have this text".to_owned(),
        ChangeError::Option | ChangeError::Restart | ChangeError::NoEffect => "setting option".to_owned(),
    }
}

fn made(call: &mut Call<'_>, make: impl FnOnce(&mut Changes) -> Result<(), ChangeError>) -> Outcome {
    change(call, make, why)?;
    call.ok()
}

/// A zone and its type, checked.
fn zone_and_type(text: &str) -> Result<(NameBuf, &str), Failure> {
    let (zone, kind) = split(text)?;
    let zone = name(zone)?;
    match unbound::local_zone_type(kind) {
        Some(kind) => Ok((zone, kind)),
        None => Err(Failure::Error(format!("not a zone type. {kind}"))),
    }
}

/// Returns what is wrong with a record, and how many octets of it can be read.
fn check_record(text: &str) -> Result<(), (usize, String)> {
    let Some((owner, ..)) = unbound::record_parts(text) else {
        return Err((text.len(), "a name, a type and data are expected".to_owned()));
    };
    if let Err(error) = owner.parse::<NameBuf>() {
        return Err((0, error.to_string()));
    }
    match policy::records::parse(text, wire::Name::ROOT) {
        Ok(_) => Ok(()),
        Err(mistake) => {
            let said = match mistake.expected.as_str() {
                "" => mistake.message,
                expected => format!("{}: expected {expected}", mistake.message),
            };
            Err((text.len(), said))
        }
    }
}

pub(super) fn local_zone(call: &mut Call<'_>) -> Outcome {
    let (zone, kind) = zone_and_type(call.argument)?;
    made(call, |changes| changes.local_zone(None, &zone.to_string(), kind))
}

pub(super) fn local_zone_remove(call: &mut Call<'_>) -> Outcome {
    let zone = call.name()?;
    made(call, |changes| changes.remove_local_zone(None, &zone.to_string()))
}

pub(super) fn local_data(call: &mut Call<'_>) -> Outcome {
    add_data(call, None)
}

fn add_data(call: &mut Call<'_>, scope: Scope) -> Outcome {
    let record = call.argument;
    check_record(record).map_err(|(at, why)| {
        Failure::Error(format!("parsing local-data at position {at} '{record}': {why}"))
    })?;
    made(call, |changes| changes.local_data(scope, record))
}

pub(super) fn local_data_remove(call: &mut Call<'_>) -> Outcome {
    let owner = call.name()?;
    made(call, |changes| changes.remove_local_data(None, &owner.to_string()))
}

/// Takes a list; what can be read of it before the first mistake counts.
fn bulk<T>(
    call: &mut Call<'_>,
    read: impl Fn(usize, &str) -> Result<T, (Failure, bool)>,
    mut make: impl FnMut(&mut Changes, &T) -> Result<(), ChangeError>,
) -> Result<usize, Failure> {
    let mut items = Vec::new();
    let mut mistake = None;
    for number in 1.. {
        let line = call.input.next().ok_or(Failure::Gone)?;
        if line == END {
            break;
        }
        if mistake.is_some() || line.trim().is_empty() {
            continue;
        }
        match read(number, line.trim()) {
            Ok(item) => items.push(item),
            Err((failure, names_line)) => mistake = Some((failure, names_line.then_some(line))),
        }
    }
    if !items.is_empty() {
        change(call, |changes| items.iter().try_for_each(|item| make(changes, item)), why)?;
    }
    if let Some((failure, line)) = mistake {
        match failure {
            Failure::Error(why) => call.line(format_args!("error {why}"))?,
            Failure::Said(text) => call.line(text)?,
            Failure::Gone => return Err(Failure::Gone),
        }
        if let Some(line) = line {
            let first = line.split_whitespace().next().unwrap_or("");
            call.line(format_args!("error for input line: {first}"))?;
        }
    }
    Ok(items.len())
}

pub(super) fn local_zones(call: &mut Call<'_>) -> Outcome {
    let count = bulk(
        call,
        |_, line| {
            let (zone, kind) = zone_and_type(line).map_err(|why| (why, true))?;
            Ok((zone.to_string(), kind.to_owned()))
        },
        |changes, (zone, kind)| changes.local_zone(None, zone, kind),
    )?;
    call.line(format_args!("added {count} zones"))
}

fn read_name(line: &str) -> Result<String, (Failure, bool)> {
    Ok(name(line).map_err(|why| (why, true))?.to_string())
}

pub(super) fn local_zones_remove(call: &mut Call<'_>) -> Outcome {
    let count = bulk(call, |_, line| read_name(line), |changes, zone| changes.remove_local_zone(None, zone))?;
    call.line(format_args!("removed {count} zones"))
}

pub(super) fn local_datas(call: &mut Call<'_>) -> Outcome {
    add_datas(call, &None)
}

fn add_datas(call: &mut Call<'_>, scope: &Scope) -> Outcome {
    let read = |number: usize, line: &str| match check_record(line) {
        Ok(()) => Ok(line.to_owned()),
        Err((at, why)) => {
            let text = format!("parsing local-data at line {number} position {at} '{line}': {why}");
            Err((Failure::Error(text), false))
        }
    };
    let count = bulk(call, read, |changes, record| changes.local_data(scope.clone(), record))?;
    call.line(format_args!("added {count} datas"))
}

pub(super) fn local_datas_remove(call: &mut Call<'_>) -> Outcome {
    remove_datas(call, &None)
}

fn remove_datas(call: &mut Call<'_>, scope: &Scope) -> Outcome {
    let remove = |changes: &mut Changes, owner: &String| changes.remove_local_data(scope.clone(), owner);
    let count = bulk(call, |_, line| read_name(line), remove)?;
    call.line(format_args!("removed {count} datas"))
}

/// Returns the view that the argument begins with, if there is one, and what stands behind it.
fn view(call: &Call<'_>) -> Result<(String, String), Failure> {
    let (view, rest) = call.two()?;
    known_view(call, view)?;
    Ok((view.to_owned(), rest.to_owned()))
}

/// Says if there is no such view.
pub(super) fn known_view(call: &Call<'_>, view: &str) -> Result<Facts, Failure> {
    let facts = call.facts()?;
    if facts.has_view(view) { Ok(facts) } else { Err(Failure::Said(format!("no view with name: {view}"))) }
}

pub(super) fn view_local_zone(call: &mut Call<'_>) -> Outcome {
    let (view, rest) = view(call)?;
    let (zone, kind) = zone_and_type(&rest)?;
    made(call, |changes| changes.local_zone(Some(view), &zone.to_string(), kind))
}

pub(super) fn view_local_zone_remove(call: &mut Call<'_>) -> Outcome {
    let (view, rest) = view(call)?;
    let zone = name(&rest)?;
    made(call, |changes| changes.remove_local_zone(Some(view), &zone.to_string()))
}

pub(super) fn view_local_data(call: &mut Call<'_>) -> Outcome {
    let (view, record) = view(call)?;
    let mut inner =
        Call { context: call.context, argument: &record, input: &mut *call.input, output: &mut *call.output };
    add_data(&mut inner, Some(view))
}

pub(super) fn view_local_data_remove(call: &mut Call<'_>) -> Outcome {
    let (view, rest) = view(call)?;
    let owner = name(&rest)?;
    made(call, |changes| changes.remove_local_data(Some(view), &owner.to_string()))
}

pub(super) fn view_local_datas(call: &mut Call<'_>) -> Outcome {
    known_view(call, call.argument)?;
    add_datas(call, &Some(call.argument.to_owned()))
}

pub(super) fn view_local_datas_remove(call: &mut Call<'_>) -> Outcome {
    known_view(call, call.argument)?;
    remove_datas(call, &Some(call.argument.to_owned()))
}

pub(super) fn insecure_add(call: &mut Call<'_>) -> Outcome {
    let zone = call.name()?;
    made(call, |changes| changes.insecure(&zone.to_string(), true))
}

pub(super) fn insecure_remove(call: &mut Call<'_>) -> Outcome {
    let zone = call.name()?;
    made(call, |changes| changes.insecure(&zone.to_string(), false))
}

/// Reads addresses and names of servers.
fn servers(text: &str) -> Result<Vec<String>, Failure> {
    let servers: Vec<&str> = text.split_whitespace().collect();
    for server in &servers {
        let (place, _) = server.split_once('#').unwrap_or((server, ""));
        let (host, port) = place.split_once('@').map_or((place, None), |(host, port)| (host, Some(port)));
        let is_host = host.parse::<IpAddr>().is_ok() || host.parse::<NameBuf>().is_ok();
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
        if !is_host || !is_port {
            return Err(Failure::Error(format!("cannot parse '{server}'")));
        }
    }
    Ok(servers.into_iter().map(str::to_owned).collect())
}

fn add_zone(call: &mut Call<'_>, kind: ZoneKind, letters: &str) -> Outcome {
    let letters = call.letters(letters)?;
    let (zone, rest) = split(call.argument)?;
    let (zone, servers) = (name(zone)?.to_string(), servers(rest)?);
    let servers = ZoneServers { servers, over_tls: letters.contains('t'), primes: letters.contains('p') };
    made(call, |changes| {
        if letters.contains('i') {
            changes.insecure(&zone, true)?;
        }
        changes.servers(kind, &zone, Some(servers))
    })
}

fn remove_zone(call: &mut Call<'_>, kind: ZoneKind) -> Outcome {
    let letters = call.letters("i")?;
    let zone = call.name()?.to_string();
    made(call, |changes| {
        if letters.contains('i') {
            changes.insecure(&zone, false)?;
        }
        changes.servers(kind, &zone, None)
    })
}

pub(super) fn forward_add(call: &mut Call<'_>) -> Outcome {
    add_zone(call, ZoneKind::Forward, "it")
}

pub(super) fn forward_remove(call: &mut Call<'_>) -> Outcome {
    remove_zone(call, ZoneKind::Forward)
}

pub(super) fn stub_add(call: &mut Call<'_>) -> Outcome {
    add_zone(call, ZoneKind::Stub, "ipt")
}

pub(super) fn stub_remove(call: &mut Call<'_>) -> Outcome {
    remove_zone(call, ZoneKind::Stub)
}

/// Shows or changes whom everything is asked of.
pub(super) fn forward(call: &mut Call<'_>) -> Outcome {
    match call.argument {
        "" => {
            let root = call.facts()?.forwards().into_iter().find(|zone| zone.name == ".");
            match root {
                Some(zone) => call.line(lists::servers(&zone)),
                None => call.line("off (using root hints)"),
            }
        }
        "off" => made(call, |changes| changes.servers(ZoneKind::Forward, ".", None)),
        text => {
            let servers = ZoneServers { servers: servers(text)?, over_tls: false, primes: false };
            made(call, |changes| changes.servers(ZoneKind::Forward, ".", Some(servers)))
        }
    }
}

/// Shows what was changed since the files were read.
pub(super) fn list_changes(call: &mut Call<'_>) -> Outcome {
    let loaded = call.context.operator.loaded();
    let Some(changes) = &loaded.changes else { return Ok(()) };
    for line in changes.lines() {
        call.line(line)?;
    }
    Ok(())
}

/// Takes all changes back; what is on disk is not looked at.
pub(super) fn undo_changes(call: &mut Call<'_>) -> Outcome {
    made(call, |changes| {
        *changes = Changes::default();
        Ok(())
    })
}
