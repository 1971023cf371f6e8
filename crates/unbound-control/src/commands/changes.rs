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
use crate::texts::Texts;

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

/// Lines of a list whose mistakes are told one by one.
const MISTAKES_MAX: usize = 1_000;

/// Takes a list; what can be read of it counts, and each other line is an error. The lines are kept
/// as text, so that they take no more memory than is counted for them, and are read again by
/// `make`.
///
/// The audit log has a row of the list before it is brought into use.
fn bulk(
    call: &mut Call<'_>,
    check: impl Fn(usize, &str) -> Result<(), (Failure, bool)>,
    mut make: impl FnMut(&mut Changes, &str) -> Result<(), ChangeError>,
) -> Result<usize, Failure> {
    let (mut items, mut count) = (Texts::default(), 0);
    let (mut mistakes, mut more) = (Vec::new(), 0);
    for number in 1.. {
        let line = call.input.next()?;
        if line == END {
            break;
        }
        if line.trim().is_empty() {
            continue;
        }
        match check(number, line.trim()) {
            Ok(()) => {
                items.push(line.trim());
                count += 1;
            }
            Err((failure @ (Failure::NoRoom(_) | Failure::Gone), _)) => return Err(failure),
            Err(_) if mistakes.len() == MISTAKES_MAX => more += 1,
            Err((failure, names_line)) => mistakes.push((failure, names_line.then_some(line))),
        }
    }
    if count > 0 {
        call.audit("accepted");
        change(call, |changes| items.lines().try_for_each(|line| make(changes, line)), why)?;
    }
    // Told at the end: who sends a long list reads nothing meanwhile.
    for (failure, line) in mistakes {
        match failure {
            Failure::Error(why) => call.line(format_args!("error {why}"))?,
            Failure::Said(text) => call.line(text)?,
            Failure::NoRoom(_) | Failure::Gone => return Err(failure),
        }
        if let Some(line) = line {
            let first = line.split_whitespace().next().unwrap_or("");
            call.line(format_args!("error for input line: {first}"))?;
        }
    }
    if more > 0 {
        call.line(format_args!("error in {more} more lines"))?;
    }
    Ok(count)
}

pub(super) fn local_zones(call: &mut Call<'_>) -> Outcome {
    let count = bulk(
        call,
        |_, line| zone_and_type(line).map(drop).map_err(|why| (why, true)),
        |changes, line| match zone_and_type(line) {
            Ok((zone, kind)) => changes.local_zone(None, &zone.to_string(), kind),
            Err(_) => Err(ChangeError::Text),
        },
    )?;
    call.line(format_args!("added {count} zones"))
}

fn check_name(_: usize, line: &str) -> Result<(), (Failure, bool)> {
    name(line).map(drop).map_err(|why| (why, true))
}

/// Returns a name of a line that was checked, as changes have it.
fn checked_name(line: &str) -> Result<String, ChangeError> {
    name(line).map(|name| name.to_string()).map_err(|_| ChangeError::Text)
}

pub(super) fn local_zones_remove(call: &mut Call<'_>) -> Outcome {
    let remove = |changes: &mut Changes, line: &str| changes.remove_local_zone(None, &checked_name(line)?);
    let count = bulk(call, check_name, remove)?;
    call.line(format_args!("removed {count} zones"))
}

pub(super) fn local_datas(call: &mut Call<'_>) -> Outcome {
    add_datas(call, &None)
}

fn add_datas(call: &mut Call<'_>, scope: &Scope) -> Outcome {
    let check = |number: usize, line: &str| {
        check_record(line).map_err(|(at, why)| {
            let text = format!("parsing local-data at line {number} position {at} '{line}': {why}");
            (Failure::Error(text), false)
        })
    };
    let count = bulk(call, check, |changes, record| changes.local_data(scope.clone(), record))?;
    call.line(format_args!("added {count} datas"))
}

pub(super) fn local_datas_remove(call: &mut Call<'_>) -> Outcome {
    remove_datas(call, &None)
}

fn remove_datas(call: &mut Call<'_>, scope: &Scope) -> Outcome {
    let remove =
        |changes: &mut Changes, line: &str| changes.remove_local_data(scope.clone(), &checked_name(line)?);
    let count = bulk(call, check_name, remove)?;
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
    let mut inner = Call {
        context: call.context,
        name: call.name,
        argument: &record,
        input: &mut *call.input,
        output: &mut *call.output,
    };
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
