//! How the server is, in numbers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use control::Role;
use control::api;
use control::metrics::{CheckedRecord, Checks, Descriptions, Numbers, text};
use driver::status::UpstreamState;

use super::Operator;
use super::bans::SECONDS_LEFT;
use crate::lock;
use crate::sys;

/// Names of failing zones that are shown.
const FAILING_SHOWN_MAX: usize = 5;

/// What the counters of workers count, by group.
pub const DESCRIPTIONS: Descriptions<'_> = &[
    ("engine", engine::Counters::DESCRIPTIONS),
    ("listen", listen::Counters::DESCRIPTIONS),
    driver::Counts::DESCRIPTIONS[0],
    driver::Counts::DESCRIPTIONS[1],
    driver::Counts::DESCRIPTIONS[2],
    driver::Counts::DESCRIPTIONS[3],
    driver::Counts::DESCRIPTIONS[4],
];

impl Operator {
    /// Says how the server is.
    pub fn status(&self) -> api::Status {
        let boards: Vec<driver::Status> =
            self.facts.worker_handles.iter().map(|worker_handle| worker_handle.board.status()).collect();
        let lists = self.lists_summary();
        self.look_at_pace();
        let queries_per_second = lock(&self.pace).per_second();
        let summary = self.components.manager.summary();
        let changes = self.changes_summary();
        let view = lock(&self.view);
        let now = i64::try_from(super::unix_seconds()).unwrap_or(i64::MAX);
        let certificates = view.certificates.iter().map(|own| api::Certificate {
            file: own.file.display().to_string(),
            names: own.names.clone(),
            ends: jiff::Timestamp::from_second(own.ends).unwrap_or_default().to_string(),
            ends_in_s: own.ends.saturating_sub(now),
        });
        api::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_s: self.facts.clock.since_start().as_secs(),
            workers: self.facts.worker_handles.len(),
            waiting: boards.iter().map(|board| u64::from(board.waiting)).sum(),
            listeners: self.facts.listeners.clone(),
            upstreams: upstreams(&boards),
            zones: api::ZonesSummary {
                served: summary.served,
                failing: summary.failing.len(),
                names: summary.failing.into_iter().take(FAILING_SHOWN_MAX).collect(),
            },
            configuration: api::Configuration {
                file: self.facts.origin.file().map(|file| file.display().to_string()),
                revision: view.revision,
                age_s: view.adopted.elapsed().as_secs(),
                is_last_reload_refused: view.is_last_reload_refused,
                changes,
            },
            queries_per_second,
            memory_octets: sys::resident_octets(),
            lists,
            certificates: certificates.collect(),
            recorder: view.recorder.as_ref().map(|file| file.display().to_string()),
            missing_listeners: lock(&self.missing_listeners).clone(),
            is_audit_failing: self.is_audit_failing.load(Ordering::Relaxed),
        }
    }

    /// Returns whether the server does its work, in words that anybody may know.
    pub fn health(&self) -> api::Health {
        let changes = self.changes_summary();
        let is_ending = self.is_ending.load(Ordering::Relaxed);
        let lacks_worker = self.facts.asking.iter().any(tokio::sync::mpsc::Sender::is_closed);
        let found = [
            ("ending", is_ending),
            ("worker", lacks_worker),
            ("settings", !changes.wrong.is_empty()),
            ("reload", lock(&self.view).is_last_reload_refused),
            ("store", self.changing.authority().standing().trouble.is_some()),
            ("bans", self.bans.trouble().is_some()),
            ("audit", self.is_audit_failing.load(Ordering::Relaxed)),
            ("listener", !lock(&self.missing_listeners).is_empty()),
        ];
        let troubles: Vec<String> =
            found.iter().filter(|(_, is_so)| *is_so).map(|(word, _)| (*word).to_owned()).collect();
        api::Health { is_serving: !is_ending && !lacks_worker, is_degraded: !troubles.is_empty(), troubles }
    }

    /// Notes that the server takes no new queries from now on.
    pub(crate) fn note_end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Notes addresses where the API could not be opened, and why.
    pub fn note_missing(&self, missing: Vec<api::MissingListener>) {
        *lock(&self.missing_listeners) = missing;
    }

    /// Notes how many queries there were. Called once a second.
    pub(crate) fn look_at_pace(&self) {
        lock(&self.pace).note(Instant::now(), self.queries());
    }

    /// Returns how many queries came since the start.
    pub fn queries(&self) -> u64 {
        self.facts.worker_handles.iter().map(|worker_handle| queries(&worker_handle.engine)).sum()
    }

    /// Returns whether there is nothing to look after every second: nobody has asked since the last
    /// look, and nothing changes by itself.
    pub(crate) fn is_idle(&self) -> bool {
        if lock(&self.pace).last() != Some(self.queries()) || self.components.devices.are_some() {
            return false;
        }
        let view = lock(&self.view);
        !self.has_unread(&view.sets)
            && view.watched.is_empty()
            && view.sets.dynamics().next().is_none()
            && !view.bans.are_some()
    }

    /// Returns the counters as somebody may see them, named as all JSON has them: which clients are
    /// over the rate limit is for those who may ban.
    pub fn stats(&self, role: Role) -> api::Stats {
        let mut stats = kebab(self.counters());
        if role < Role::Helper {
            stats.remove(SECONDS_LEFT);
        }
        stats
    }

    fn counters(&self) -> api::Stats {
        let mut stats = api::Stats::new();
        for worker_handle in &self.facts.worker_handles {
            let mut add = |group: &str, name: &'static str, value| {
                let counters = stats.entry(group.to_owned()).or_default();
                *counters.entry(name.to_owned()).or_default() += value;
            };
            worker_handle.engine.read(|name, value| add("engine", name, value));
            worker_handle.listen.read(|name, value| add("listen", name, value));
            worker_handle.board.counts.read(&mut add);
        }
        self.components.devices.read(|group, name, value| {
            stats.entry(group.to_owned()).or_default().insert(name.to_owned(), value);
        });
        self.ban_stats(&mut stats);
        self.change_stats(&mut stats);
        let (made, refused) = self.components.signing.pool().counts();
        let signatures = [("made".to_owned(), made), ("refused".to_owned(), refused)];
        stats.insert("signatures".to_owned(), signatures.into());
        let (taken, refused) = self.components.signing.pushed();
        let pushes = [("taken".to_owned(), taken), ("refused".to_owned(), refused)];
        stats.insert("ds-push".to_owned(), pushes.into());
        stats.extend(self.components.jobs.stats());
        stats
    }

    /// Returns all numbers as Prometheus reads them.
    pub fn metrics(&self) -> String {
        text(&Numbers {
            stats: &self.counters(),
            status: &self.status(),
            caches: &self.cache_stats(),
            checks: &self.checks(),
            sets: &self.lists(None).unwrap_or_default(),
            certificates: &self.certificates(None).unwrap_or_default(),
            waits: &self.waits(),
            replies: &self.reply_times(),
            upstreams: &self.upstream_times(),
            descriptions: DESCRIPTIONS,
        })
    }

    /// Returns how checks of what records lead to stand.
    fn checks(&self) -> Checks {
        let records = self.components.checker.states(None).into_iter().map(|state| CheckedRecord {
            check: state.watched.check.name.clone(),
            name: state.watched.name.to_string(),
            address: state.watched.address.to_string(),
            is_up: state.is_up,
        });
        let made = self
            .components
            .checker
            .made()
            .into_iter()
            .map(|(check, made)| (check, [made.passed, made.failed]));
        Checks { records: records.collect(), made: made.collect() }
    }
}

/// The least time between two looks that count.
const PACE_STEP: Duration = Duration::from_millis(200);
/// How far back the pace is taken from.
const PACE_TIME: Duration = Duration::from_secs(10);

/// How many queries there were lately.
#[derive(Default)]
pub(super) struct Pace(VecDeque<(Instant, u64)>);

impl Pace {
    fn note(&mut self, now: Instant, queries: u64) {
        // Whoever asks often gets no finer answer for it.
        if self.0.back().is_some_and(|(at, _)| now.duration_since(*at) < PACE_STEP) {
            return;
        }
        // One that is older, at most: an idle server is looked at less often.
        while self.0.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= PACE_TIME) {
            self.0.pop_front();
        }
        self.0.push_back((now, queries));
    }

    /// Returns how many queries there had been at the last look.
    fn last(&self) -> Option<u64> {
        self.0.back().map(|(_, queries)| *queries)
    }

    /// Returns queries a second between the oldest look and the newest.
    fn per_second(&self) -> f64 {
        let (Some((begin, before)), Some((end, after))) = (self.0.front(), self.0.back()) else { return 0.0 };
        let seconds = end.duration_since(*begin).as_secs_f64();
        if seconds > 0.0 {
            (after.saturating_sub(*before) as f64 / seconds * 10.0).round() / 10.0
        } else {
            0.0
        }
    }
}

/// Returns how many queries a worker has received.
fn queries(counters: &engine::Counters) -> u64 {
    let mut sum = 0;
    counters.read(|name, value| sum += if name.starts_with("queries_") { value } else { 0 });
    sum
}

/// Returns counters with their names as all JSON has them: with hyphens. Labels and prefixes stay
/// as they are.
fn kebab(stats: api::Stats) -> api::Stats {
    let spelt = |(group, counters): (String, BTreeMap<String, u64>)| match group.as_str() {
        "label" | SECONDS_LEFT => (group, counters),
        _ => (group, counters.into_iter().map(|(name, value)| (name.replace('_', "-"), value)).collect()),
    };
    stats.into_iter().map(spelt).collect()
}

/// Adds up what the workers say about each upstream.
fn upstreams(boards: &[driver::Status]) -> BTreeMap<String, Vec<api::Upstream>> {
    let mut pools: BTreeMap<String, Vec<(api::Upstream, u32)>> = BTreeMap::new();
    for seen in boards.iter().flat_map(|board| &board.upstreams) {
        let server = format!("{}{}", seen.protocol.prefix(), seen.address);
        let pool = pools.entry(seen.pool.clone()).or_default();
        let at = pool.iter().position(|(known, _)| known.server == server).unwrap_or_else(|| {
            pool.push((api::Upstream { server, health: "untried".into(), ..api::Upstream::default() }, 0));
            pool.len() - 1
        });
        let Some((upstream, measured)) = pool.get_mut(at) else { continue };
        let is_down = matches!(seen.state, UpstreamState::Down { .. });
        if is_down && upstream.health == "untried" {
            upstream.health = "down".into();
        } else if !is_down && seen.tally.queries > 0 {
            // Each worker finds out for itself; one that gets answers proves that the server is
            // there.
            upstream.health = "up".into();
        }
        if let Some(srtt_us) = seen.srtt_us {
            *measured += 1;
            let mean = upstream.round_trip_ms.unwrap_or(0.0);
            let sample = srtt_us as f64 / 1000.0;
            upstream.round_trip_ms = Some(mean + (sample - mean) / f64::from(*measured));
        }
        if is_down && upstream.trouble.is_none() {
            upstream.trouble.clone_from(&seen.trouble);
        }
        upstream.queries += seen.tally.queries;
        upstream.failures += seen.tally.timeouts + seen.tally.errors + seen.tally.unusable;
    }
    pools
        .into_iter()
        .map(|(name, upstreams)| (name, upstreams.into_iter().map(|(upstream, _)| upstream).collect()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_pace_is_that_of_the_last_ten_looks() {
        let (mut pace, begin) = (Pace::default(), Instant::now());
        assert_eq!(pace.per_second(), 0.0);
        for second in 0..=20 {
            let queries = if second < 10 { 0 } else { (second - 10) * 50 };
            pace.note(begin + Duration::from_secs(second), queries);
        }
        assert_eq!(pace.per_second(), 50.0);
    }

    #[test]
    fn counters_are_spelt_with_hyphens_and_labels_as_they_are() {
        let stats = [("engine", "cache_hits"), ("label", "my_label"), ("xdp.eth0", "lost-ring-full")];
        let stats = stats.map(|(group, name)| (group.to_owned(), BTreeMap::from([(name.to_owned(), 1)])));
        let names: Vec<String> = kebab(stats.into()).into_values().flat_map(BTreeMap::into_keys).collect();
        assert_eq!(names, ["cache-hits", "my_label", "lost-ring-full"]);
    }
}
