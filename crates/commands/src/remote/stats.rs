//! `gannet stats`: counters with what they count, and how fast they rise.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use control::api::{self, Request, Response, Stats};
use control::metrics::{Descriptions, sentence};

use super::{LOOK_PATIENCE, ask, ask_once, show};
use crate::cli::StatsArgs;
use crate::out;

/// What the groups are about; those of effects and interfaces have a name behind a dot.
const GROUPS: [(&str, &str); 15] = [
    ("audit-checkpoints", "Checkpoints of the audit log (gannet audit)."),
    ("bans", "Prefixes that are banned."),
    ("downloads", "Lists from web servers (gannet lists)."),
    ("ds-push", "DS records sent to parents."),
    ("effect", "What policies have done outside."),
    ("webhook", "Events sent to web servers."),
    ("engine", "Queries, and what became of them."),
    ("events", "What workers hand to jobs."),
    ("fetch", "What upstream servers are asked."),
    ("label", "Queries that policies counted, by label."),
    ("listen", "Sockets and connections of clients."),
    ("recorder", "The record of queries (gannet log)."),
    ("resolver", "What authoritative servers are asked."),
    ("signatures", "Signatures made while clients wait."),
    ("xdp", "Interfaces served past the kernel's network stack."),
];

/// Runs `gannet stats`; `descriptions` say what counters of workers count.
pub(super) fn run(args: &StatsArgs, descriptions: Descriptions<'_>) -> ExitCode {
    match args.watch {
        Some(every) => watch(args, every),
        None if args.prometheus => ask(&args.remote, &Request::Metrics, LOOK_PATIENCE),
        None => once(args, descriptions),
    }
}

fn once(args: &StatsArgs, descriptions: Descriptions<'_>) -> ExitCode {
    match ask_once(&args.remote, &Request::Stats, LOOK_PATIENCE) {
        Ok(Response::Stats(stats)) if !args.remote.output.json => {
            out::print(&text(&stats, descriptions));
            out::FINE
        }
        Ok(other) => show(&other, args.remote.output),
        Err(why) => out::failed(&why, args.remote.output),
    }
}

/// Prints what rises, again and again, until nobody reads it or the server is gone.
fn watch(args: &StatsArgs, every: Duration) -> ExitCode {
    let mut before: Option<(Instant, Stats)> = None;
    loop {
        let stats = match ask_once(&args.remote, &Request::Stats, LOOK_PATIENCE) {
            Ok(Response::Stats(stats)) => stats,
            Ok(other) => return show(&other, args.remote.output),
            Err(why) => return out::failed(&why, args.remote.output),
        };
        let now = Instant::now();
        if let Some((then, older)) = &before {
            let rates = rates(older, &stats, now.duration_since(*then));
            let text = match args.remote.output.json {
                true => api::to_json_line(&rates),
                false => rates_text(&rates, &stats),
            };
            if !out::still_read(&text) {
                return out::FINE;
            }
        }
        before = Some((now, stats));
        // tidy: allow(sleep): the operator said how often to look
        std::thread::sleep(every);
    }
}

/// What is counted a second, by group and name; only what rose.
type Rates = BTreeMap<String, BTreeMap<String, f64>>;

fn rates(before: &Stats, now: &Stats, between: Duration) -> Rates {
    let mut rates = Rates::new();
    for (group, counters) in now {
        for (name, value) in counters {
            let older = before.get(group).and_then(|counters| counters.get(name)).copied().unwrap_or(0);
            // What falls is no counter.
            let Some(risen @ 1..) = value.checked_sub(older) else { continue };
            let rate = risen as f64 / between.as_secs_f64().max(1e-3);
            rates.entry(group.clone()).or_default().insert(name.clone(), (rate * 10.0).round() / 10.0);
        }
    }
    rates
}

fn rates_text(rates: &Rates, stats: &Stats) -> String {
    let mut text = String::new();
    let rows =
        || rates.iter().flat_map(|(group, names)| names.iter().map(move |(name, rate)| (group, name, rate)));
    let width = rows().map(|(group, name, _)| group.len() + name.len() + 1).max().unwrap_or(0);
    for (group, name, rate) in rows() {
        let value = stats.get(group).and_then(|names| names.get(name)).copied().unwrap_or(0);
        let full = format!("{group}.{name}");
        let _ = writeln!(text, "{full:<width$} {value:>12} {rate:>10.1}/s");
    }
    if text.is_empty() {
        text.push_str("nothing was counted\n");
    }
    text.push('\n');
    text
}

/// Lays counters out by group, each with a sentence.
pub(super) fn text(stats: &Stats, descriptions: Descriptions<'_>) -> String {
    let mut text = String::new();
    let of =
        |group: &str, name: &str| stats.get(group).and_then(|names| names.get(name)).copied().unwrap_or(0);
    let queries: u64 = stats.get("engine").map_or(0, |names| {
        names.iter().filter(|(name, _)| name.starts_with("queries-")).map(|(_, count)| *count).sum()
    });
    let (hits, stale, misses) =
        (of("engine", "cache-hits"), of("engine", "cache-stale"), of("engine", "cache-misses"));
    let share = match hits + stale + misses {
        0 => String::new(),
        looks => format!(
            ", {:.1} % of look-ups answered from the cache",
            (hits + stale) as f64 * 100.0 / looks as f64
        ),
    };
    let _ = writeln!(text, "queries {queries}{share}");
    let width = stats
        .iter()
        .flat_map(|(group, names)| names.keys().map(move |name| group.len() + name.len() + 1))
        .max()
        .unwrap_or(0);
    for (group, counters) in stats {
        let kind = group.split('.').next().unwrap_or(group);
        let about = GROUPS.iter().find(|(known, _)| *known == kind).map_or("", |(_, about)| about);
        let _ = writeln!(text, "\n# {}: {about}", out::escaped(group));
        for (name, value) in counters {
            let full = out::escaped(&format!("{group}.{name}"));
            let row =
                format!("{full:<width$} {value:>12}  {}", sentence(group, name, descriptions).unwrap_or(""));
            text.push_str(row.trim_end());
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(numbers: &[(&str, &str, u64)]) -> Stats {
        let mut stats = Stats::new();
        for (group, name, value) in numbers {
            stats.entry((*group).to_owned()).or_default().insert((*name).to_owned(), *value);
        }
        stats
    }

    #[test]
    fn counters_have_a_sentence_and_the_cache_its_share() {
        let counted = stats(&[
            ("engine", "queries-udp", 3),
            ("engine", "queries-tcp", 1),
            ("engine", "cache-hits", 2),
            ("engine", "cache-stale", 1),
            ("engine", "cache-misses", 1),
            ("downloads", "fetched", 7),
        ]);
        let text = text(&counted, &[("engine", &[("cache_hits", "Queries answered from the cache.")])]);
        assert!(
            text.starts_with("queries 4, 75.0 % of look-ups answered from the cache\n\n# downloads: Lists"),
            "{text}"
        );
        let rows: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for row in
            ["engine.cache-hits 2 Queries answered from the cache.", "downloads.fetched 7 Lists downloaded."]
        {
            assert!(rows.iter().any(|other| other == row), "{text}");
        }
    }

    #[test]
    fn rates_are_of_what_rose() {
        let before = stats(&[("engine", "cache-hits", 10), ("bans", "rate", 5), ("engine", "noerror", 1)]);
        let now = stats(&[("engine", "cache-hits", 25), ("bans", "rate", 4), ("engine", "noerror", 1)]);
        let rates = rates(&before, &now, Duration::from_secs(2));
        assert_eq!(
            rates,
            Rates::from([("engine".to_owned(), BTreeMap::from([("cache-hits".to_owned(), 7.5)]))])
        );
        assert!(rates_text(&rates, &now).contains("engine.cache-hits           25        7.5/s\n"));
    }
}
