//! `cache`: sizes, times and dumps of caches.

use std::ops::RangeInclusive;
use std::time::Duration;

use diagnostic::Problem;

use super::args::Args;
use super::plugins::Plugin;
use super::write::{Map, Out};
use super::{Dialect, Kind, Translator};

/// Octets that an entry of a cache takes here, to turn numbers of entries into sizes.
const ENTRY_OCTETS: u64 = 256;
/// The smallest cache there can be.
const CACHE_OCTETS_MIN: u64 = 1 << 20;
/// The longest times that caches take, in seconds.
const STALE_MAX: u64 = 30 * 86_400;
const TTL_MAX: u64 = 30 * 86_400;
const NEGATIVE_TTL_MAX: u64 = 7 * 86_400;
const DUMP_EVERY_MAX: u64 = 7 * 86_400;

impl<'a> Translator<'a> {
    /// Translates a `cache` plugin, once; returns whether a hit ends the query.
    pub(super) fn cache(&mut self, plugin: &'a Plugin) -> Option<bool> {
        let is_new = !self.names.contains_key(&(Kind::Cache, plugin.tag.value.clone()));
        let name = self.name(Kind::Cache, &plugin.tag.value);
        let args = self.args(plugin);
        let problems = &mut self.problems;
        let entries = args.number("size", problems).map_or(1024, |size| size.value);
        let lazy = args.number("lazy_cache_ttl", problems).map_or(0, |ttl| ttl.value);
        let file = args.text("dump_file", problems);
        let every = args.number("dump_interval", problems).map_or(600, |seconds| seconds.value);
        let mut ends = false;
        let mut cache = Map::default();
        let mut notes = Vec::new();
        cache.put("size", values::size_text(octets(entries)));
        match self.dialect {
            Dialect::Mosdns => {
                notes.push(
                    "mosdns keeps NXDOMAIN for 30 s and NODATA for at most 5 min; here the zone's SOA says how long \
                     (RFC 2308), up to max-negative-ttl."
                        .to_owned(),
                );
                cache.put("max-negative-ttl", "5m");
            }
            Dialect::Oxidns => {
                ends = args.flag("short_circuit", problems).is_some_and(|flag| flag.value);
                oxidns_times(&args, &mut cache, problems);
                let apart = args.flag("ecs_in_key", problems);
                if apart.is_none_or(|flag| !flag.value) {
                    notes.push(
                        "Answers for different client subnets are always kept apart here where subnets are sent."
                            .to_owned(),
                    );
                }
            }
        }
        if lazy > 0 {
            let stale = bounded(&args, "lazy_cache_ttl", lazy, 1..=STALE_MAX, problems);
            let notes = match lazy > STALE_MAX {
                true => vec![format!("{lazy} s there; an answer is never stale for longer than this here.")],
                false => Vec::new(),
            };
            cache.note("stale", notes, Out::Text(stale));
            cache.put("stale-client-timeout", "0s");
            match self.dialect {
                Dialect::Mosdns => cache.put("stale-ttl", "5s"),
                Dialect::Oxidns => cache.note(
                    "stale-ttl",
                    vec![
                        "OxiDNS gives expired answers the TTL that they had; here clients soon ask again."
                            .to_owned(),
                    ],
                    "30s",
                ),
            }
        } else {
            cache.put("stale", "off");
        }
        if let Some(file) = file.filter(|file| !file.value.is_empty()) {
            let mut dump = Map::default();
            dump.put("file", file.value);
            dump.put("every", bounded(&args, "dump_interval", every, 60..=DUMP_EVERY_MAX, problems));
            cache.put("dump", dump);
        }
        args.finish(problems);
        if is_new {
            self.caches.note(name, notes, cache);
        }
        Some(ends)
    }

    /// Puts down a cache of so many entries and nothing else.
    pub(super) fn plain_cache(&mut self, name: &str, entries: u64) {
        let mut cache = Map::default();
        cache.put("size", values::size_text(octets(entries)));
        cache.put("stale", "off");
        self.caches.put(name, cache);
    }
}

/// Writes how long a cache of OxiDNS keeps answers.
fn oxidns_times(args: &Args<'_>, cache: &mut Map, problems: &mut Vec<Problem>) {
    let negative = args.flag("cache_negative", problems).is_none_or(|flag| flag.value);
    let most = args.number("max_negative_ttl", problems).map_or(300, |ttl| ttl.value);
    let most = match negative {
        true => bounded(args, "max_negative_ttl", most, 0..=NEGATIVE_TTL_MAX, problems),
        false => "0s".to_owned(),
    };
    cache.put("max-negative-ttl", most);
    if let Some(most) = args.number("max_positive_ttl", problems) {
        cache.put("max-ttl", bounded(args, "max_positive_ttl", most.value, 1..=TTL_MAX, problems));
    }
    if let Some(least) = args.number("min_positive_ttl", problems)
        && let Some(place) = args.place("min_positive_ttl")
    {
        let message = format!(
            "answers with a TTL below {} s are kept as long as they may be, not left out",
            least.value
        );
        problems.push(Problem::warning(place, message));
    }
    args.ignore(
        &["negative_ttl_without_soa"],
        "without an SOA nobody knows how long a negative answer holds (RFC 2308 §5)",
        problems,
    );
}

/// Returns a time of so many seconds as it can be set here; says so if that is another one.
fn bounded(
    args: &Args<'_>,
    key: &str,
    seconds: u64,
    legal: RangeInclusive<u64>,
    problems: &mut Vec<Problem>,
) -> String {
    let kept = seconds.clamp(*legal.start(), *legal.end());
    if kept != seconds
        && let Some(place) = args.place(key)
    {
        let text = values::duration_text(Duration::from_secs(kept));
        let message = format!("\"{key}\" becomes {text}: {seconds} s cannot be said here");
        problems.push(Problem::warning(place, message));
    }
    format!("{kept}s")
}

/// Returns the memory for so many entries, in whole MiB.
fn octets(entries: u64) -> u64 {
    (entries.saturating_mul(ENTRY_OCTETS)).max(CACHE_OCTETS_MIN).div_ceil(1 << 20) << 20
}
