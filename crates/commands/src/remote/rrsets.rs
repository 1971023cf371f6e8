//! `gannet zone get`, `set` and `unset`: RRsets of zones of a running server.

use std::fmt::Write as _;
use std::process::ExitCode;

use control::api::{self, Request};

use super::{WORK_PATIENCE, ask};
use crate::cli::{RemoteArgs, ZoneGetArgs, ZoneSetArgs, ZoneUnsetArgs};
use crate::out;

/// Runs `gannet zone get`.
pub(crate) fn get(args: &ZoneGetArgs) -> ExitCode {
    let name = args.name.as_deref().map(|name| owner(name, &args.zone));
    let asked = api::RrsetsOf {
        zone: args.zone.clone(),
        name,
        rtype: args.rtype.clone(),
        ..api::RrsetsOf::default()
    };
    ask(&args.remote, &Request::Rrsets(asked), WORK_PATIENCE)
}

/// Runs `gannet zone set`.
pub(crate) fn set(args: &ZoneSetArgs) -> ExitCode {
    let edit = api::RrsetEdit {
        name: owner(&args.name, &args.zone),
        rtype: args.rtype.clone(),
        action: if args.add { api::RrsetAction::Extend } else { api::RrsetAction::Replace },
        ttl: args.ttl,
        records: args.data.clone(),
        tag: None,
    };
    change(&args.remote, &args.zone, edit)
}

/// Runs `gannet zone unset`.
pub(crate) fn unset(args: &ZoneUnsetArgs) -> ExitCode {
    let edit = api::RrsetEdit {
        name: owner(&args.name, &args.zone),
        rtype: args.rtype.clone(),
        action: if args.data.is_empty() { api::RrsetAction::Replace } else { api::RrsetAction::Prune },
        records: args.data.clone(),
        ..api::RrsetEdit::default()
    };
    change(&args.remote, &args.zone, edit)
}

/// Has one RRset of a zone changed.
fn change(remote: &RemoteArgs, zone: &str, edit: api::RrsetEdit) -> ExitCode {
    let change = api::RrsetsChange { zone: zone.to_owned(), changes: vec![edit] };
    ask(remote, &Request::RrsetsChange(change), WORK_PATIENCE)
}

/// Returns the owner in full: `@` is the zone.
fn owner(name: &str, zone: &str) -> String {
    if name == "@" { zone.to_owned() } else { name.to_owned() }
}

/// Lays out RRsets as a master file.
pub(super) fn text(found: &api::Rrsets) -> String {
    let mut text = String::new();
    for rrset in &found.rrsets {
        for data in &rrset.records {
            let dot = if rrset.name.ends_with('.') { "" } else { "." };
            let _ =
                writeln!(text, "{}{dot} {} IN {} {data}", out::escaped(&rrset.name), rrset.ttl, rrset.rtype);
        }
    }
    text
}

/// Says what came of a change.
pub(super) fn changed_text(changed: &api::RrsetsChanged) -> String {
    let zone = out::escaped(&changed.zone);
    match changed.is_new {
        true => format!("zone {zone} has serial {}\n", changed.serial),
        false => format!("zone {zone} is like that already, with serial {}\n", changed.serial),
    }
}
