//! `gannet zone`: zones of a running server.

use std::fmt::Write as _;

use control::api;

use crate::out;

/// Lays out how zones stand.
pub(super) fn text(zones: &[api::Zone]) -> String {
    let mut text = String::new();
    for zone in zones {
        let serial = zone.serial.map_or_else(|| "not served".to_owned(), |serial| format!("serial {serial}"));
        let _ =
            write!(text, "{}  {}  {serial}  {} records", out::escaped(&zone.name), zone.role, zone.records);
        if let Some(set) = &zone.set {
            let _ = write!(text, "  in the set {set}");
        }
        if zone.is_frozen {
            text.push_str("  frozen");
        }
        if let Some(seconds) = zone.next_look_in_s {
            let _ = write!(text, "  asks in {seconds}s");
        }
        if let Some(seconds) = zone.expires_in_s {
            let _ = write!(text, "  expires in {seconds}s");
        }
        if zone.history > 0 {
            let _ = write!(text, "  {} versions back", zone.history);
        }
        if zone.is_added {
            text.push_str("  added");
        }
        if let Some(catalog) = &zone.catalog {
            let _ = write!(text, "  from {catalog}");
        }
        text.push('\n');
        if let Some(trouble) = &zone.trouble {
            if let Some(file) = &zone.file {
                let _ = writeln!(text, "    file {}", out::escaped(file));
            }
            let _ = writeln!(text, "    {}", out::escaped(trouble));
        }
        for check in &zone.checks {
            let state = if check.is_up { "works" } else { "left out" };
            let _ = write!(text, "    {} {}  {state} ({})", check.name, check.record, check.check);
            if let Some(trouble) = &check.trouble {
                let _ = write!(text, ": {}", out::escaped(trouble));
            }
            text.push('\n');
        }
    }
    text
}

/// Says what was done to zones, and what was not.
pub(super) fn changed_text(changed: &api::ZonesChanged) -> String {
    let mut text = match changed.done {
        1 => "1 zone\n".to_owned(),
        done => format!("{done} zones\n"),
    };
    for note in &changed.notes {
        let _ = writeln!(text, "{}: {}", out::escaped(&note.zone), out::escaped(&note.text));
    }
    for note in &changed.refused {
        let _ = writeln!(text, "{}: not done: {}", out::escaped(&note.zone), out::escaped(&note.text));
    }
    text
}

/// Lays out a zone's keys, and what waits for what.
pub(super) fn keys_text(zone: &api::ZoneKeys) -> String {
    let mut text = String::new();
    for key in &zone.keys {
        let _ =
            writeln!(text, "{} {:>5} {} {} since {}", key.role, key.tag, key.algorithm, key.state, key.since);
        if let Some(ds) = &key.ds {
            let _ = writeln!(text, "    DS {ds}");
        }
    }
    if let Some(next) = &zone.next {
        let _ = writeln!(text, "next {next}");
    }
    if let Some(push) = &zone.push {
        let _ = writeln!(text, "DS at the parent: {}", out::escaped(push));
    }
    if let Some(trouble) = &zone.trouble {
        let _ = writeln!(text, "cannot be signed: {}", out::escaped(trouble));
    }
    text
}
