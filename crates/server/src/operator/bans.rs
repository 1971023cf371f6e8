//! Who is banned, as the configuration in use and the rate limit have it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use control::api;
use engine::gate::bans::RateBans;
use engine::gate::rate::RateTable;
use tracing::info;
use wire::Prefix;

use super::Operator;
use crate::lock;
use crate::reload::Revision;
use devices::{BANNED_SHOWN_MAX, Banned};

/// Who is banned, as the configuration in use has it.
#[derive(Clone)]
pub(super) struct LiveBans {
    /// How many prefixes the configuration itself bans.
    pub(super) configured: usize,
    /// A set that is changed while the server runs.
    pub(super) set: Option<Arc<sets::DynamicAddresses>>,
    /// Those who kept on being over the rate limit.
    pub(super) rate: Option<Arc<RateBans>>,
    /// Who has no rate limit.
    pub(super) exempt: Arc<[Prefix]>,
    /// What the rate limit counts in, if there is one, and how many queries a client may send.
    limited: Option<(Arc<RateTable>, u32)>,
}

impl LiveBans {
    pub(super) fn of(revision: &Revision) -> Self {
        let Revision { loaded, plans, .. } = revision;
        let gate = &plans.snapshot.gate;
        let rate = gate.rate.as_ref().and_then(|rule| rule.ban.as_ref()).map(|(_, bans)| Arc::clone(bans));
        Self {
            configured: loaded.settings.deny.len(),
            set: gate.banned_live.clone(),
            rate,
            exempt: loaded.settings.limits.rate.exempt.clone().into(),
            limited: gate.rate.as_ref().map(|rule| (Arc::clone(&gate.table), rule.per_second)),
        }
    }

    /// Returns whether somebody may come to be banned while the server runs.
    pub(super) const fn are_some(&self) -> bool {
        self.set.is_some() || self.rate.is_some()
    }

    /// Returns who was over the rate limit in the last two seconds, with how many queries in a
    /// second, and how many they may have.
    pub(super) fn limited(&self, now_ms: u64) -> Vec<(IpAddr, u32, u32)> {
        let Some((table, limit)) = &self.limited else { return Vec::new() };
        let over = table.offenders().into_iter().flat_map(|offenders| offenders.list(now_ms));
        let mut all: Vec<_> =
            over.map(|(address, over)| (address, limit.saturating_add(over), *limit)).collect();
        all.sort_unstable();
        all
    }

    /// Returns who is banned for the rate, and until when.
    pub(super) fn for_rate(&self, now_ms: u64) -> impl Iterator<Item = (Prefix, u64)> {
        self.rate.iter().flat_map(move |rate| rate.list(now_ms))
    }
}

impl Operator {
    /// Returns who is banned now, beside those of the configuration, and logs who was not or is no
    /// more for being over the rate limit. Called once a second.
    pub(super) fn banned(&self, bans: &LiveBans) -> Banned {
        let now_ms = self.facts.clock.since_start().as_millis() as u64;
        let prefixes = |prefix: &Prefix| (prefix.address(), prefix.bits());
        let for_rate: BTreeMap<Prefix, u64> = bans.for_rate(now_ms).collect();
        let mut known = lock(&self.banned);
        for (prefix, end_ms) in for_rate.iter().filter(|(prefix, _)| !known.contains(prefix)) {
            let seconds = end_ms.saturating_sub(now_ms).div_ceil(1000);
            info!(%prefix, seconds, "banned for a time: it kept on being over the rate limit");
        }
        for prefix in known.iter().filter(|prefix| !for_rate.contains_key(prefix)) {
            info!(%prefix, "not banned any more");
        }
        *known = for_rate.keys().copied().collect();
        let from_set = bans.set.iter().flat_map(|set| set.list()).map(|(prefix, _)| prefix);
        // Those without a limit are not banned with their neighbours.
        let exempt = match known.is_empty() {
            true => Vec::new(),
            false => bans.exempt.iter().map(prefixes).collect(),
        };
        Banned { prefixes: from_set.chain(known.iter().map(prefixes)).collect(), exempt }
    }

    /// Tells how many prefixes are banned, what became of bans, and how many seconds are left of
    /// those that end.
    pub(super) fn ban_stats(&self, stats: &mut api::Stats) {
        let bans = lock(&self.view).bans.clone();
        let now_ms = self.facts.clock.since_start().as_millis() as u64;
        let of_set = bans.set.as_ref().map_or(0, |set| set.list().len() as u64);
        let for_rate: BTreeMap<Prefix, u64> = bans.for_rate(now_ms).collect();
        let counts = bans.rate.as_ref().map(|rate| rate.counts()).unwrap_or_default();
        let numbers = [
            ("configured", bans.configured as u64),
            ("set", of_set),
            ("rate", for_rate.len() as u64),
            ("rate-begun", counts.begun),
            ("rate-unplaced", counts.unplaced),
        ];
        stats.insert("bans".to_owned(), numbers.map(|(name, value)| (name.to_owned(), value)).into());
        if !for_rate.is_empty() {
            let left = |end_ms: u64| end_ms.saturating_sub(now_ms).div_ceil(1000);
            let shown = for_rate.iter().take(BANNED_SHOWN_MAX);
            let seconds = shown.map(|(prefix, end_ms)| (prefix.to_string(), left(*end_ms))).collect();
            stats.insert("bans.seconds-left".to_owned(), seconds);
        }
    }
}
