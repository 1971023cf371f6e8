//! `gannet status`.

use std::fmt::Write as _;

use control::api;

use super::{counted, size, span};
use crate::out;

/// Lays out what is wrong with how the server is controlled.
fn of_control(status: &api::Status) -> String {
    let missing = status.missing_listeners.iter();
    let line = |it: &api::MissingListener| format!("NOT AT {} (the API): {}", it.at, out::escaped(&it.why));
    let mut text: String = missing.map(|it| format!("{:<14} {}\n", "", line(it))).collect();
    if status.is_audit_failing {
        text.push_str("audit          THE AUDIT LOG CANNOT BE WRITTEN: see the log\n");
    }
    text
}

/// Lays out how the server stands.
pub(super) fn text(status: &api::Status) -> String {
    let mut text = format!(
        "gannet {}, process {}, up {}, {} workers, {} queries waiting\n",
        status.version,
        status.pid,
        span(status.uptime_s),
        status.workers,
        status.waiting
    );
    let memory = status.memory_octets.map_or_else(String::new, |octets| format!(", memory {}", size(octets)));
    let _ = writeln!(text, "load           {:.1} queries a second{memory}", status.queries_per_second);
    let configuration = &status.configuration;
    let _ = writeln!(
        text,
        "configuration  {} (revision {}, {} old{})",
        configuration.file.as_deref().unwrap_or("built in"),
        configuration.revision,
        span(configuration.age_s),
        if configuration.is_last_reload_refused { "; the last reload was refused" } else { "" }
    );
    let changes = &configuration.changes;
    if changes.revision > 0 {
        let by = changes
            .last_by
            .as_ref()
            .map_or_else(String::new, |by| format!(", the last by {}", out::escaped(by)));
        let _ = writeln!(
            text,
            "changes        {} (revision {}{by}; see gannet config history)",
            counted(changes.settings, "setting"),
            changes.revision
        );
    }
    if let Some(trouble) = &changes.trouble {
        let _ = writeln!(text, "               settings cannot be changed: {}", out::escaped(trouble));
    }
    if !changes.wrong.is_empty() {
        text.push_str(
            "               THE FILE AND THE CHANGES DO NOT GO TOGETHER: what ran last is in use\n",
        );
        for line in &changes.wrong {
            let _ = writeln!(text, "               {}", out::escaped(line));
        }
    }
    let zones = &status.zones;
    if zones.served + zones.failing > 0 {
        let _ = write!(text, "zones          {} served", zones.served);
        if zones.failing > 0 {
            let more = if zones.failing > zones.names.len() { ", …" } else { "" };
            let names = out::escaped(&zones.names.join(", "));
            let _ = write!(text, ", {} failing: {names}{more} (see gannet zone status)", zones.failing);
        }
        text.push('\n');
    }
    for (index, listener) in status.listeners.iter().enumerate() {
        let title = if index == 0 { "listens on" } else { "" };
        let _ = writeln!(text, "{title:<14} {} {}", listener.at, listener.transport);
    }
    text += &of_control(status);
    let lists = &status.lists;
    if lists.sets > 0 {
        let part =
            |count: u64, what: &str| if count == 0 { String::new() } else { format!(", {count} {what}") };
        let _ = writeln!(
            text,
            "lists          {} in {}{}{}{}",
            counted(lists.rules, "rule"),
            counted(lists.sets, "set"),
            part(lists.fetched, "fetched"),
            part(lists.missing, "without a copy"),
            part(lists.failing, "failing; see: gannet lists")
        );
    }
    for (index, certificate) in status.certificates.iter().enumerate() {
        let title = if index == 0 { "certificates" } else { "" };
        let end = match u64::try_from(certificate.ends_in_s) {
            Ok(left) => format!("ends in {}", span(left)),
            Err(_) => "EXPIRED".to_owned(),
        };
        let names = out::escaped(&certificate.names.join(", "));
        let _ = writeln!(text, "{title:<14} {names}, {end} ({})", certificate.ends);
    }
    for (pool, upstreams) in &status.upstreams {
        let _ = writeln!(text, "upstreams      {}", out::escaped(pool));
        let width = upstreams.iter().map(|upstream| upstream.server.chars().count()).max().unwrap_or(0);
        for upstream in upstreams {
            let time = upstream.round_trip_ms.map(|ms| format!(", {ms:.1} ms")).unwrap_or_default();
            let _ = writeln!(
                text,
                "               {:<width$}  {}{time}, {} queries, {} failures{}",
                out::escaped(&upstream.server),
                upstream.health,
                upstream.queries,
                upstream.failures,
                upstream.trouble.as_deref().map(|why| format!(": {}", out::escaped(why))).unwrap_or_default()
            );
        }
    }
    text
}
