//! `gannet zone`: zones in files, looked at without a server, and those of the running one.

mod keys;
mod sign;

use std::fmt::Write as _;
use std::process::ExitCode;

use control::api::{self, ZoneWhat};
use diagnostic::Severity;
use environment::System;
use wire::{HashKey, NameBuf};

use crate::cli::{OutputArgs, ZoneCheckArgs, ZoneCommand, ZoneFileArgs, ZonePrintArgs};
use crate::configuration::human_of;
use crate::{out, remote};

/// Octets of text that are printed at once.
const PART_OCTETS: usize = 64 << 10;

/// Runs `gannet zone …`.
pub fn run(command: &ZoneCommand) -> ExitCode {
    match command {
        ZoneCommand::Check(args) => check(args),
        ZoneCommand::Print(args) => print(args),
        ZoneCommand::Import(args) => crate::import::run(args),
        ZoneCommand::Sign(args) => sign::sign(args),
        ZoneCommand::Verify(args) => sign::verify(args),
        ZoneCommand::Keys(command) => keys::run(command),
        ZoneCommand::Status(args) => remote::zone(&args.remote, ZoneWhat::Status, args.name.as_deref()),
        ZoneCommand::Reload(args) => remote::zone_reload(args),
        ZoneCommand::Retransfer(args) => remote::zone(&args.remote, ZoneWhat::Retransfer, Some(&args.name)),
        ZoneCommand::Freeze(args) => remote::zone(&args.remote, ZoneWhat::Freeze, Some(&args.name)),
        ZoneCommand::Thaw(args) => remote::zone(&args.remote, ZoneWhat::Thaw, Some(&args.name)),
        ZoneCommand::Notify(args) => remote::zone(&args.remote, ZoneWhat::Notify, Some(&args.name)),
        ZoneCommand::Get(args) => remote::rrsets::get(args),
        ZoneCommand::Set(args) => remote::rrsets::set(args),
        ZoneCommand::Unset(args) => remote::rrsets::unset(args),
        ZoneCommand::Diff(args) => remote::zone(&args.remote, ZoneWhat::Diff, Some(&args.name)),
        ZoneCommand::Add(args) => remote::zone_add(args),
        ZoneCommand::Remove(args) => remote::zone_remove(args),
        ZoneCommand::Load(args) => remote::zone_load(args),
    }
}

/// Reads the zone; prints why it cannot be read.
fn read(args: &ZoneFileArgs, output: OutputArgs) -> Option<(NameBuf, zones::Checked)> {
    let file = &args.file;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => zones::name_of(file),
    };
    let apex = match NameBuf::from_text(&name) {
        Ok(apex) => apex,
        Err(error) => {
            out::failed(&format!("\"{name}\" is no name of a zone: {error}; say it with --name"), output);
            return None;
        }
    };
    // What names are hashed with matters to a server that strangers ask; nobody asks this one.
    match zones::check(apex.as_name(), file, HashKey::new([0, 0]), &System) {
        Ok(checked) => Some((apex, checked)),
        Err(why) => {
            out::failed(&format!("cannot read \"{}\": {why}", file.display()), output);
            None
        }
    }
}

fn check(args: &ZoneCheckArgs) -> ExitCode {
    let Some((apex, checked)) = read(&args.zone, args.output) else { return out::negative() };
    let has_warnings = checked.diagnostics.iter().any(|found| found.severity == Severity::Warning);
    let is_right = checked.zone.is_some() && !(args.strict && has_warnings);
    let outcome = if is_right { out::FINE } else { out::negative() };
    if args.output.json {
        let facts = checked.zone.as_ref().map(|zone| {
            let facts = zone.facts();
            let denial = match facts.proof {
                zone::Proof::None => "none",
                zone::Proof::Nsec => "nsec",
                zone::Proof::Nsec3 => "nsec3",
                zone::Proof::Compact => "compact",
            };
            api::ZoneFacts {
                serial: facts.serial,
                names: facts.names,
                records: facts.records,
                cuts: facts.cuts,
                denial: denial.to_owned(),
            }
        });
        let diagnostics = checked.diagnostics.iter().map(api::Diagnostic::from).collect();
        let checked = api::CheckedZone { zone: apex.to_string(), is_right, facts, diagnostics };
        out::print(&api::to_json(&checked));
        return outcome;
    }
    let mut text = human_of(&args.zone.file.display().to_string(), &checked.diagnostics);
    if let Some(zone) = &checked.zone {
        let facts = zone.facts();
        let proof = match facts.proof {
            zone::Proof::None => "not signed",
            zone::Proof::Nsec => "signed, with NSEC",
            zone::Proof::Nsec3 => "signed, with NSEC3",
            zone::Proof::Compact => "signed, with proofs made for each question",
        };
        let _ = writeln!(
            text,
            "zone {apex}: serial {}, {} names, {} records, {} zone cuts, {proof}",
            facts.serial, facts.names, facts.records, facts.cuts
        );
    }
    out::print(&text);
    outcome
}

fn print(args: &ZonePrintArgs) -> ExitCode {
    let file = std::path::PathBuf::from(&args.what);
    // A path is a file, there or not; a name that no file has is a zone's.
    if args.served || (args.name.is_none() && !args.what.contains('/') && !file.is_file()) {
        return remote::zone_print(&args.remote, &args.what);
    }
    let output = args.remote.output;
    let args = ZoneFileArgs { file, name: args.name.clone() };
    let Some((_, checked)) = read(&args, output) else { return out::negative() };
    let Some(zone) = checked.zone else {
        out::complain(human_of(&args.file.display().to_string(), &checked.diagnostics).trim_end());
        return out::negative();
    };
    let mut text = String::new();
    zone.for_each_record(|owner, rtype, ttl, rdata| {
        let data = wire::rdata::display(rtype, rdata, 0..rdata.len());
        let _ = writeln!(text, "{owner} {ttl} IN {rtype} {data}");
        // A large zone is not written twice into memory.
        if text.len() >= PART_OCTETS {
            out::print(&text);
            text.clear();
        }
    });
    out::print(&text);
    out::FINE
}
