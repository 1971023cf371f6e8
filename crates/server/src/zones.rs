//! What the operator can do with zones while the server runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use ::zones::{Role, ZoneManager};
use config::settings::FileChangeWord;
use control::api::{self, FileChange, Response, ZoneOrder, ZoneWhat};
use jobs::health::CheckState;
use wire::{Name, NameBuf};
use zone::rows::Rows;
use zone::{Difference, Order, Zone};

/// Lines of a difference that are shown.
const LINES_MAX: usize = 10_000;
/// Octets of text in one part of a zone that is printed; a name's records may go beyond it.
const PART_OCTETS: usize = 64 << 10;

fn parse(name: &str) -> Result<NameBuf, String> {
    NameBuf::from_text(name).map_err(|error| format!("\"{name}\" is no name of a zone: {error}"))
}

fn named(order: &ZoneOrder) -> Result<NameBuf, String> {
    parse(order.name.as_deref().ok_or("which zone?")?)
}

/// Returns the zones of which the files are not in use, and why.
pub(crate) fn refused(manager: &ZoneManager) -> Vec<api::ZoneNote> {
    // Those with which something is wrong come first.
    let failing = manager.report(None).into_iter().take_while(::zones::ZoneReport::is_failing);
    // What a primary does is not for a reload to say.
    let of_files = failing.filter(|zone| zone.file.is_some());
    of_files.filter_map(|zone| Some(api::ZoneNote { zone: zone.name, text: zone.trouble? })).collect()
}

/// Has the primaries of a zone asked; of all zones that have any, if none is named. A change of its file that was refused is
/// decided on; what is refused then is in `reload`.
pub(crate) fn refresh_named(
    manager: &ZoneManager,
    order: &ZoneOrder,
    reload: &mut api::Reload,
) -> Result<(), String> {
    let Some(name) = &order.name else {
        if order.file_change.is_some() {
            return Err("of which zone is the file to be taken?".to_owned());
        }
        let zones = manager.report(None).into_iter().filter(|zone| zone.role == Role::Secondary);
        for zone in zones {
            // One that is frozen stays as it is.
            let _ = manager.refresh(parse(&zone.name)?.as_name(), false);
        }
        return Ok(());
    };
    let apex = parse(name)?;
    match manager.role(apex.as_name()) {
        None => return Err(format!("there is no zone \"{apex}\"")),
        Some(Role::Secondary) => manager.refresh(apex.as_name(), false)?,
        Some(Role::Primary) => {}
    }
    if let Some(how) = order.file_change {
        let how = match how {
            FileChange::Merge => FileChangeWord::Merge,
            FileChange::Replace => FileChangeWord::Replace,
        };
        manager.decide(apex.as_name(), how)?;
        reload.refused = refused(manager);
    }
    // Others are not what was asked for.
    reload.refused.retain(|refused| parse(&refused.zone).is_ok_and(|refused| refused == apex));
    Ok(())
}

/// Adds zones.
pub(crate) fn add(manager: &ZoneManager, add: &api::ZoneAdd) -> Response {
    changed(&add.zones, |apexes| manager.add(apexes, &add.options))
}

/// Takes zones out that were added.
pub(crate) fn remove(manager: &ZoneManager, names: &[String]) -> Response {
    changed(names, |apexes| manager.remove(apexes))
}

/// Does something with those that are names, and says what became of each.
fn changed(names: &[String], change: impl FnOnce(&[NameBuf]) -> Vec<::zones::Changed>) -> Response {
    let mut refused = Vec::new();
    let mut zones = Vec::with_capacity(names.len());
    for name in names {
        match parse(name) {
            Ok(apex) => zones.push((name, apex)),
            Err(text) => refused.push(api::ZoneNote { zone: name.clone(), text }),
        }
    }
    let apexes: Vec<NameBuf> = zones.iter().map(|(_, apex)| *apex).collect();
    let mut changed = api::ZonesChanged { refused, ..api::ZonesChanged::default() };
    for ((zone, _), outcome) in zones.into_iter().zip(change(&apexes)) {
        let note = |text| api::ZoneNote { zone: zone.clone(), text };
        match outcome {
            Ok(text) => {
                changed.done += 1;
                changed.notes.extend(text.map(note));
            }
            Err(text) => changed.refused.push(note(text)),
        }
    }
    Response::ZonesChanged(changed)
}

/// Makes what a file says the next version of a zone.
pub(crate) fn load(manager: &ZoneManager, load: &api::ZoneLoad) -> Response {
    let loaded = parse(&load.zone).and_then(|apex| manager.load(apex.as_name(), Path::new(&load.file)));
    match loaded {
        Ok(message) => Response::ZoneDone(api::ZoneDone { message }),
        Err(why) => Response::error(why),
    }
}

/// Does what is ordered.
pub(crate) fn carry_out(manager: &ZoneManager, order: &ZoneOrder) -> Response {
    try_carry_out(manager, order).unwrap_or_else(Response::error)
}

fn try_carry_out(manager: &ZoneManager, order: &ZoneOrder) -> Result<Response, String> {
    let done = |message: &str| Response::ZoneDone(api::ZoneDone { message: message.to_owned() });
    Ok(match order.what {
        ZoneWhat::Status => {
            let only = order.name.as_deref().map(parse).transpose()?;
            let reports = manager.report(only.as_ref().map(NameBuf::as_name));
            if let (Some(only), true) = (only, reports.is_empty()) {
                return Err(format!("there is no zone \"{only}\""));
            }
            Response::Zones(reports.into_iter().map(shown).collect())
        }
        // The whole configuration is looked at for that.
        ZoneWhat::Reload => done("the zones are looked at"),
        ZoneWhat::Retransfer => {
            manager.refresh(named(order)?.as_name(), true)?;
            done("the whole zone is asked for")
        }
        ZoneWhat::Freeze => {
            manager.freeze(named(order)?.as_name(), true)?;
            done("the zone does not change any more")
        }
        ZoneWhat::Thaw => {
            manager.freeze(named(order)?.as_name(), false)?;
            done("the zone may change")
        }
        // It comes in parts: see `print`.
        ZoneWhat::Print => return Err("a zone is printed in parts".to_owned()),
        ZoneWhat::Diff => {
            let difference = manager.difference(named(order)?.as_name())?;
            Response::ZoneDiff(difference.map_or_else(Vec::new, |difference| lines(&difference)))
        }
    })
}

/// Begins to print the version of a zone that is served.
pub(crate) fn print(manager: &ZoneManager, order: &ZoneOrder) -> control::Parts {
    let begun = named(order).and_then(|apex| {
        manager.zone(apex.as_name()).ok_or_else(|| match manager.report(Some(apex.as_name())).is_empty() {
            true => format!("there is no zone \"{apex}\""),
            false => {
                format!("zone \"{apex}\" is not loaded, or has expired: see \"gannet zone status {apex}\"")
            }
        })
    });
    match begun {
        Ok(zone) => Box::new(Printed { order: zone.order(), zone, next: 0, is_over: false }),
        Err(why) => Box::new(std::iter::once(Response::error(why))),
    }
}

/// A zone on its way to the operator: one version from the first record to the last, whatever becomes of it meanwhile.
struct Printed {
    zone: Arc<Zone>,
    order: Order,
    next: usize,
    is_over: bool,
}

impl Iterator for Printed {
    type Item = Response;

    fn next(&mut self) -> Option<Response> {
        if self.is_over {
            return None;
        }
        let mut text = String::new();
        while self.next < self.order.len() && text.len() < PART_OCTETS {
            for record in self.zone.records_at(&self.order, self.next) {
                let data = wire::rdata::display(record.rtype, record.rdata, 0..record.rdata.len());
                let _ = writeln!(text, "{} {} IN {} {data}", record.owner(), record.ttl, record.rtype);
            }
            self.next += 1;
        }
        self.is_over = self.next >= self.order.len();
        Some(Response::ZoneRecords(api::ZoneRecords { text, is_last: self.is_over }))
    }
}

fn shown(report: ::zones::ZoneReport) -> api::Zone {
    api::Zone {
        name: report.name,
        role: match report.role {
            Role::Primary => "primary",
            Role::Secondary => "secondary",
        }
        .to_owned(),
        serial: report.serial,
        records: report.records,
        is_frozen: report.is_frozen,
        next_look_in_s: report.next_look_in_s,
        expires_in_s: report.expires_in_s,
        history: report.history,
        journal_octets: report.log_octets,
        is_added: report.is_added,
        catalog: report.catalog,
        set: report.set,
        file: report.file.map(|file| file.display().to_string()),
        trouble: report.trouble,
        checks: Vec::new(),
    }
}

/// Adds how the checks of each zone's records stand.
pub(crate) fn add_checks(zones: &mut [api::Zone], states: &[CheckState]) {
    let mut by_zone: BTreeMap<String, Vec<&CheckState>> = BTreeMap::new();
    for state in states {
        by_zone.entry(state.watched.zone.to_string()).or_default().push(state);
    }
    for zone in zones {
        let own = by_zone.get(&zone.name).map_or(&[][..], Vec::as_slice);
        zone.checks = own
            .iter()
            .map(|state| api::ZoneCheck {
                name: state.watched.name.to_string(),
                record: format!("{} {}", state.watched.rtype, state.watched.address),
                check: state.watched.check.name.clone(),
                is_up: state.is_up,
                trouble: state.trouble.clone(),
            })
            .collect();
    }
}

/// Writes a difference, a line for each record.
fn lines(difference: &Difference) -> Vec<String> {
    let show = |sign: char, owner: Name<'_>, ttl: wire::Ttl, rtype: wire::Rtype, rdata: &[u8]| {
        let data = wire::rdata::display(rtype, rdata, 0..rdata.len());
        format!("{sign} {} {ttl} IN {rtype} {data}", owner.to_buf())
    };
    let soa = |sign, (ttl, data): &(wire::Ttl, Box<[u8]>)| {
        show(sign, difference.apex.as_name(), *ttl, wire::Rtype::SOA, data)
    };
    let rows = |sign: char, rows: &Rows| -> Vec<String> {
        rows.iter().map(|row| show(sign, row.owner, row.ttl, row.rtype, row.rdata)).collect()
    };
    let mut lines = vec![soa('-', &difference.old_soa)];
    lines.extend(rows('-', &difference.removed));
    lines.push(soa('+', &difference.new_soa));
    lines.extend(rows('+', &difference.added));
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("… and {more} more"));
    }
    lines
}
