//! What the operator can do with zones while the server runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use ::zones::{ExpectZone, Role, ZoneError, ZoneManager, ZoneReport};
use control::api::{self, FileChange};
use jobs::health::CheckState;
use wire::{Name, NameBuf};
use zone::rows::Rows;
use zone::{Difference, Order, Zone};

use super::configuration::report;
use super::{Operator, OperatorError, What};

/// Lines of a difference that are shown.
const LINES_MAX: usize = 10_000;
/// Octets of text in one part of a zone that is printed; a name's records may go beyond it.
const PART_OCTETS: usize = 64 << 10;

/// Reads the name of a zone.
pub(super) fn parse(name: &str) -> Result<NameBuf, OperatorError> {
    NameBuf::from_text(name)
        .map_err(|error| OperatorError::Argument(format!("\"{name}\" is no name of a zone: {error}")))
}

/// Returns the zones of which the files are not in use, and why.
pub(super) fn refused(manager: &ZoneManager) -> Vec<api::ZoneNote> {
    // Those with which something is wrong come first.
    let failing = manager.report(None).into_iter().take_while(ZoneReport::is_failing);
    // What a primary does is not for a reload to say.
    let of_files = failing.filter(|zone| zone.file.is_some());
    of_files.filter_map(|zone| Some(api::ZoneNote { zone: zone.name, text: zone.trouble? })).collect()
}

impl Operator {
    /// Says how a zone is, or every zone.
    ///
    /// # Errors
    ///
    /// There is no such zone.
    pub fn zone_status(&self, only: Option<&str>) -> Result<Vec<api::Zone>, OperatorError> {
        let only = only.map(parse).transpose()?;
        let only_name = only.as_ref().map(NameBuf::as_name);
        let reports = self.components.manager.report(only_name);
        if let (Some(only), true) = (only, reports.is_empty()) {
            return Err(OperatorError::NotFound { what: What::Zone, name: only.to_string() });
        }
        let mut zones: Vec<api::Zone> = reports.into_iter().map(shown).collect();
        add_checks(&mut zones, &self.components.checker.states(only_name));
        Ok(zones)
    }

    /// Returns since when the versions are served that zones have now, in seconds since 1970, by
    /// the names of the zones.
    pub fn zones_served_since(&self) -> BTreeMap<String, u64> {
        let reports = self.components.manager.report(None);
        reports.into_iter().filter_map(|report| Some((report.name, report.served_since?))).collect()
    }

    /// Reads files that have changed again, and has the primaries of a zone asked; of all zones
    /// that have any, if none is named. A change of its file that was refused is decided on.
    ///
    /// # Errors
    ///
    /// There is no such zone, it is frozen, or a file has mistakes.
    pub fn zone_refresh(
        &self,
        name: Option<&str>,
        file_change: Option<FileChange>,
        by: &str,
    ) -> Result<api::Reload, OperatorError> {
        let mut outcome = self.refresh();
        // Mistakes in some file keep nobody from asking primaries.
        let reload = match &mut outcome {
            Ok(reload) => reload,
            Err(OperatorError::Invalid(rejected)) => &mut rejected.stays,
            Err(_) => return outcome,
        };
        self.ask_primaries(name, (file_change, by), reload)?;
        outcome
    }

    fn ask_primaries(
        &self,
        name: Option<&str>,
        (file_change, by): (Option<FileChange>, &str),
        reload: &mut api::Reload,
    ) -> Result<(), OperatorError> {
        let manager = &self.components.manager;
        let Some(name) = name else {
            if file_change.is_some() {
                return Err(OperatorError::Argument("of which zone is the file to be taken?".to_owned()));
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
            None => return Err(OperatorError::NotFound { what: What::Zone, name: apex.to_string() }),
            Some(Role::Secondary) => manager.refresh(apex.as_name(), false)?,
            Some(Role::Primary) => {}
        }
        if let Some(how) = file_change {
            let how = match how {
                FileChange::Merge => plan::zones::FileChange::Merge,
                FileChange::Replace => plan::zones::FileChange::Replace,
            };
            manager.decide(apex.as_name(), how, by)?;
            reload.refused = refused(manager);
        }
        // Others are not what was asked for.
        reload.refused.retain(|refused| parse(&refused.zone).is_ok_and(|refused| refused == apex));
        Ok(())
    }

    /// Has a whole zone taken over from its primaries, whatever its serial.
    ///
    /// # Errors
    ///
    /// There is no such zone, it comes from no other server, or is frozen.
    pub fn zone_retransfer(&self, name: &str) -> Result<(), OperatorError> {
        Ok(self.components.manager.refresh(parse(name)?.as_name(), true)?)
    }

    /// Has the secondaries of a zone told of its serial.
    ///
    /// # Errors
    ///
    /// There is no such zone, or it is nothing but a file.
    pub fn zone_notify(&self, name: &str) -> Result<(), OperatorError> {
        Ok(self.components.manager.notify(parse(name)?.as_name())?)
    }

    /// Lets a zone change no more, as `by` wants.
    ///
    /// # Errors
    ///
    /// There is no such zone.
    pub fn zone_freeze(&self, name: &str, by: &str) -> Result<(), OperatorError> {
        Ok(self.components.manager.freeze(parse(name)?.as_name(), true, by)?)
    }

    /// Lets a zone change again, as `by` wants.
    ///
    /// # Errors
    ///
    /// There is no such zone.
    pub fn zone_thaw(&self, name: &str, by: &str) -> Result<(), OperatorError> {
        Ok(self.components.manager.freeze(parse(name)?.as_name(), false, by)?)
    }

    /// Says what changed of a zone since its file, or with the last transfer: a line for each
    /// record.
    ///
    /// # Errors
    ///
    /// There is no such zone.
    pub fn zone_difference(&self, name: &str) -> Result<Vec<String>, OperatorError> {
        let difference = self.components.manager.difference(parse(name)?.as_name())?;
        Ok(difference.map_or_else(Vec::new, |difference| lines(&difference)))
    }

    /// Returns the version of a zone that is served, in parts.
    ///
    /// # Errors
    ///
    /// There is no such zone, or no version of it.
    pub fn zone_records(
        &self,
        name: &str,
    ) -> Result<impl Iterator<Item = api::ZoneRecords> + Send + use<>, OperatorError> {
        let (apex, manager) = (parse(name)?, &self.components.manager);
        let zone = manager.zone(apex.as_name()).ok_or_else(|| {
            match manager.report(Some(apex.as_name())).is_empty() {
                true => OperatorError::NotFound { what: What::Zone, name: apex.to_string() },
                false => OperatorError::Refused(format!(
                    "zone \"{apex}\" is not loaded, or has expired: see \"gannet zone status {apex}\""
                )),
            }
        })?;
        Ok(Printed { order: zone.order(), zone, next: 0, is_over: false })
    }

    /// Adds zones, now and after a restart.
    ///
    /// # Errors
    ///
    /// They were added, and no policy answers from them before a reload; or a single one has
    /// another ETag. What becomes of each zone else stands in the result.
    pub fn zone_add(&self, add: &api::ZoneAdd, by: &str) -> Result<api::ZonesChanged, OperatorError> {
        if let (Some(records), [zone]) = (&add.records, add.zones.as_slice()) {
            return self.zone_add_with((zone, &add.options, records), by);
        }
        if add.records.is_some() {
            return Err(OperatorError::Argument("records are of a single zone".to_owned()));
        }
        let manager = &self.components.manager;
        let done = meant((add.tag.as_deref(), &add.zones), |zones, expect| {
            changed(zones, |apexes| manager.add(apexes, &add.options, (expect, by)))
        })?;
        if done.done > 0 {
            if let Err(mistakes) = self.serve_added() {
                report(&mistakes);
                let why = "zones were added, and are not answered from before a reload";
                return Err(OperatorError::Refused(why.to_owned()));
            }
            self.start_signing();
        }
        Ok(done)
    }

    /// Adds a zone with its first records. If it cannot have these, it is not there afterwards.
    fn zone_add_with(
        &self,
        (zone, options, records): (&str, &str, &str),
        by: &str,
    ) -> Result<api::ZonesChanged, OperatorError> {
        let (apex, zones) = (parse(zone)?, vec![zone.to_owned()]);
        // One that is there already stays, whatever becomes of this.
        if self.components.manager.role(apex.as_name()).is_some() {
            return Err(OperatorError::Refused(format!("there is a zone \"{apex}\" already")));
        }
        let add =
            api::ZoneAdd { zones: zones.clone(), options: options.to_owned(), ..api::ZoneAdd::default() };
        let added = self.zone_add(&add, by);
        let load =
            || self.components.manager.load_text(apex.as_name(), records, by).map_err(OperatorError::from);
        let loaded = match &added {
            Ok(done) if done.done == 1 => load().map(drop),
            _ => Ok(()),
        };
        if added.is_err() || loaded.is_err() {
            // The reply says what it was refused for.
            drop(self.zone_remove(&api::ZoneNames { zones, tag: None }));
        }
        loaded.and(added)
    }

    /// Takes zones out that were added.
    ///
    /// # Errors
    ///
    /// A single one has another ETag. What becomes of each zone else stands in the result.
    pub fn zone_remove(&self, names: &api::ZoneNames) -> Result<api::ZonesChanged, OperatorError> {
        meant((names.tag.as_deref(), &names.zones), |zones, expect| {
            changed(zones, |apexes| self.components.manager.remove(apexes, expect))
        })
    }

    /// Says what would become of zones that are to be added.
    ///
    /// # Errors
    ///
    /// There are records, whose zone is not there to check them; or a single zone has another ETag.
    pub fn zone_add_check(&self, add: &api::ZoneAdd) -> Result<api::ZonesChanged, OperatorError> {
        if add.records.is_some() {
            return Err(OperatorError::Argument("records of a new zone are not checked alone".to_owned()));
        }
        let manager = &self.components.manager;
        let done = meant((add.tag.as_deref(), &add.zones), |zones, expect| {
            changed(zones, |apexes| manager.check_add(apexes, &add.options, expect))
        })?;
        Ok(api::ZonesChanged { is_dry_run: true, ..done })
    }

    /// Says what would become of zones that are to be taken out.
    ///
    /// # Errors
    ///
    /// As of [`Operator::zone_remove`].
    pub fn zone_remove_check(&self, names: &api::ZoneNames) -> Result<api::ZonesChanged, OperatorError> {
        let done = meant((names.tag.as_deref(), &names.zones), |zones, expect| {
            changed(zones, |apexes| self.components.manager.check_remove(apexes, expect))
        })?;
        Ok(api::ZonesChanged { is_dry_run: true, ..done })
    }

    /// Makes what a file says the next version of a zone; returns a sentence on what came of it.
    ///
    /// # Errors
    ///
    /// There is no such zone, it is made elsewhere, or the file has mistakes.
    pub fn zone_load(&self, load: &api::ZoneLoad, by: &str) -> Result<String, OperatorError> {
        Ok(self.components.manager.load(parse(&load.zone)?.as_name(), Path::new(&load.file), by)?)
    }
}

/// Changes zones, of which a single one may have to have an ETag.
fn meant(
    (tag, zones): (Option<&str>, &[String]),
    change: impl FnOnce(&[String], Option<&ExpectZone<'_>>) -> Result<api::ZonesChanged, OperatorError>,
) -> Result<api::ZonesChanged, OperatorError> {
    let Some(tag) = tag else { return change(zones, None) };
    match zones.len() {
        1 => change(zones, Some(&|found: Option<&ZoneReport>| expected(tag, found))),
        _ => Err(OperatorError::Argument("a tag is of a single zone".to_owned())),
    }
}

/// Says why a zone is not the one with an ETag: `*` is of any, and nothing of one that is not
/// there.
fn expected(tag: &str, found: Option<&ZoneReport>) -> Result<(), String> {
    match (tag, found) {
        ("", None) | ("*", Some(_)) => Ok(()),
        (tag, Some(found)) if tag == shown(found.clone()).tag() => Ok(()),
        ("", Some(found)) => Err(format!("there is a zone \"{}\" already", found.name)),
        (_, Some(found)) => Err(format!("zone \"{}\" was changed since it was read", found.name)),
        (_, None) => Err("there is no such zone".to_owned()),
    }
}

/// Does something with those that are names, and says what became of each.
///
/// # Errors
///
/// One of them is not the one that it is meant for.
fn changed(
    names: &[String],
    change: impl FnOnce(&[NameBuf]) -> Vec<::zones::Changed>,
) -> Result<api::ZonesChanged, OperatorError> {
    let mut refused = Vec::new();
    let mut zones = Vec::with_capacity(names.len());
    for name in names {
        match parse(name) {
            Ok(apex) => zones.push((name, apex)),
            Err(why) => refused.push(api::ZoneNote { zone: name.clone(), text: why.to_string() }),
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
            Err(why @ ZoneError::Conflict(_)) => return Err(why.into()),
            Err(why) => changed.refused.push(note(why.to_string())),
        }
    }
    Ok(changed)
}

/// A zone on its way to the operator: one version from the first record to the last, whatever
/// becomes of it meanwhile.
struct Printed {
    zone: Arc<Zone>,
    order: Order,
    next: usize,
    is_over: bool,
}

impl Iterator for Printed {
    type Item = api::ZoneRecords;

    fn next(&mut self) -> Option<api::ZoneRecords> {
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
        Some(api::ZoneRecords { text, is_last: self.is_over })
    }
}

fn shown(report: ZoneReport) -> api::Zone {
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
pub(super) fn add_checks(zones: &mut [api::Zone], states: &[CheckState]) {
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
pub(super) fn lines(difference: &Difference) -> Vec<String> {
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
