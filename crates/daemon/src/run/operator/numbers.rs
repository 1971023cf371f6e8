//! How the server is, in numbers.

use std::collections::BTreeMap;

use control::api;
use control::metrics::{CheckedRecord, Checks, Numbers, text};
use fetch::status::UpstreamState;

use super::{Running, lock};

impl Running {
    pub(super) fn status(&self) -> api::Status {
        let boards: Vec<fetch::Status> = self.faces.iter().map(|face| face.board.status()).collect();
        let view = lock(&self.view);
        api::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_s: self.started.elapsed().as_secs(),
            workers: self.faces.len(),
            waiting: boards.iter().map(|board| u64::from(board.waiting)).sum(),
            listeners: self.listeners.clone(),
            upstreams: upstreams(&boards),
            configuration: api::Configuration {
                file: self.origin.file().map(|file| file.display().to_string()),
                generation: view.generation,
                age_s: view.adopted.elapsed().as_secs(),
                is_last_reload_refused: view.is_last_reload_refused,
            },
        }
    }

    pub(super) fn stats(&self) -> api::Stats {
        let mut stats = api::Stats::new();
        for face in &self.faces {
            let mut add = |group: &str, name: &'static str, value| {
                let counters = stats.entry(group.to_owned()).or_default();
                *counters.entry(name.to_owned()).or_default() += value;
            };
            face.engine.read(|name, value| add("engine", name, value));
            face.listen.read(|name, value| add("listen", name, value));
            face.board.counters.read(|name, value| add("fetch", name, value));
        }
        self.devices.read(|group, name, value| {
            stats.entry(group.to_owned()).or_default().insert(name.to_owned(), value);
        });
        self.ban_stats(&mut stats);
        let (made, refused) = self.signing.pool().counts();
        let signatures = [("made".to_owned(), made), ("refused".to_owned(), refused)];
        stats.insert("signatures".to_owned(), signatures.into());
        let (taken, refused) = self.signing.pushed();
        let pushes = [("taken".to_owned(), taken), ("refused".to_owned(), refused)];
        stats.insert("ds-push".to_owned(), pushes.into());
        stats.extend(self.jobs.stats());
        stats
    }

    /// Returns all numbers as Prometheus reads them.
    pub(super) fn metrics(&self) -> String {
        let descriptions = [
            ("engine", engine::Counters::DESCRIPTIONS),
            ("listen", listen::Counters::DESCRIPTIONS),
            ("fetch", fetch::Counters::DESCRIPTIONS),
        ];
        text(&Numbers {
            stats: &self.stats(),
            status: &self.status(),
            caches: &self.cache_stats(),
            checks: &self.checks(),
            descriptions: &descriptions,
        })
    }

    /// Returns how checks of what records lead to stand.
    fn checks(&self) -> Checks {
        let records = self.checker.states(None).into_iter().map(|state| CheckedRecord {
            check: state.watched.check.name.clone(),
            name: state.watched.name.to_string(),
            address: state.watched.address.to_string(),
            is_up: state.is_up,
        });
        let made = self.checker.made().into_iter().map(|(check, made)| (check, [made.passed, made.failed]));
        Checks { records: records.collect(), made: made.collect() }
    }
}

/// Adds up what the workers say about each upstream.
fn upstreams(boards: &[fetch::Status]) -> BTreeMap<String, Vec<api::Upstream>> {
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
            // Each worker finds out for itself; one that gets answers proves that the server is there.
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
