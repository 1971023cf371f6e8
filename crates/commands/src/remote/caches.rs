//! `gannet cache`: what the caches hold.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use control::api;

use super::{size, span};
use crate::out;

/// Lays out how full caches are, and what is in them in a word.
pub(super) fn text(caches: &BTreeMap<String, api::CacheStats>, entries: &str) -> String {
    let mut text = String::new();
    for (name, cache) in caches {
        let _ = writeln!(
            text,
            "{name}: {} {entries} in {} of {}, {} put in, {} put out",
            cache.entries,
            size(cache.octets),
            size(cache.octets_max),
            cache.inserts,
            cache.evictions
        );
    }
    text
}

/// Lays out what the caches hold.
pub(super) fn entries_text(held: &api::CacheEntries) -> String {
    let mut text = String::new();
    for entry in &held.entries {
        let state = match (entry.fresh_for_s, entry.stale_for_s) {
            (Some(left), _) => format!("fresh for {}", span(left.into())),
            (None, since) => format!("stale since {}", span(since.unwrap_or(0).into())),
        };
        let subnet = entry.client_subnet.as_ref().map_or_else(String::new, |net| format!(", for {net}"));
        let flags = entry.flags.iter().map(|flag| format!(", {flag}")).collect::<String>();
        let _ = writeln!(
            text,
            "{} {} {} in {}, {state}, kept for {} at most{subnet}{flags}",
            entry.name,
            entry.rtype,
            entry.status,
            out::escaped(&entry.cache),
            span(entry.kept_for_s.into()),
        );
        for record in entry.answer.iter().chain(&entry.authority).chain(&entry.additional) {
            let _ = writeln!(text, "    {} {} {} {}", record.name, record.ttl, record.rtype, record.data);
        }
        if let Some(error) = &entry.extended_error {
            let _ = writeln!(text, "    error {} {}", error.code, error.name);
        }
    }
    if held.is_cut_short {
        text.push_str("and more: say a type or a cache\n");
    }
    if held.entries.is_empty() {
        text.push_str("no cache holds it\n");
    }
    text
}

/// Says where the caches were written to.
pub(super) fn dump_text(dumped: &[api::Dumped]) -> String {
    let mut text = String::new();
    for dump in dumped {
        let _ = match &dump.error {
            None => writeln!(text, "{}: {} answers written to {}", dump.cache, dump.entries, dump.file),
            Some(error) => writeln!(text, "{}: not written to {}: {error}", dump.cache, dump.file),
        };
    }
    if dumped.is_empty() {
        text.push_str("no cache has a file to be written to (setting cache.NAME.dump.file)\n");
    }
    text
}
