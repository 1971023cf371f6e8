//! Who is banned: by the configuration in use, by the rate limit, and by operators.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use authority::{Ban, plain, spared};
use control::api::{self, BanSource};
use engine::gate::bans::RateBans;
use engine::gate::rate::RateTable;
use tracing::info;
use wire::Prefix;

use super::when::rfc3339;
use super::{Operator, OperatorError, SERVER, What, unix_seconds};
use crate::lock;
use crate::reload::Revision;
use devices::{BANNED_SHOWN_MAX, Banned};

/// Characters of why somebody is banned.
const WHY_CHARS_MAX: usize = 500;
/// The longest time of a ban that ends: a hundred years.
const FOR_S_MAX: u64 = 100 * 366 * 24 * 60 * 60;
/// Bans that are shown unless somebody wants another number, and the most.
const BANS_SHOWN: u64 = 1_000;
const BANS_SHOWN_MAX: u64 = 10_000;

/// Who is banned, as the configuration in use has it.
#[derive(Clone)]
pub(super) struct LiveBans {
    /// Prefixes that the configuration itself bans.
    pub(super) configured: Arc<[Prefix]>,
    /// A set that is changed while the server runs, and its name.
    pub(super) set: Option<(String, Arc<sets::DynamicAddresses>)>,
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
            configured: loaded.settings.deny.as_slice().into(),
            set: loaded.settings.deny_set.as_ref().map(|set| set.value.clone()).zip(gate.banned_live.clone()),
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
        let from_set = bans.set.iter().flat_map(|(_, set)| set.list()).map(|(prefix, _)| prefix);
        let by_operators = self.bans.list(unix_seconds()).into_iter().map(|ban| prefixes(&ban.prefix));
        // Those without a limit are not banned with their neighbours.
        let exempt = match known.is_empty() {
            true => Vec::new(),
            false => bans.exempt.iter().map(prefixes).collect(),
        };
        Banned { prefixes: from_set.chain(by_operators).chain(known.iter().map(prefixes)).collect(), exempt }
    }

    /// Tells how many prefixes are banned, what became of bans, and how many seconds are left of
    /// those that end.
    pub(super) fn ban_stats(&self, stats: &mut api::Stats) {
        let bans = lock(&self.view).bans.clone();
        let now_ms = self.facts.clock.since_start().as_millis() as u64;
        let of_set = bans.set.as_ref().map_or(0, |(_, set)| set.len() as u64);
        let for_rate: BTreeMap<Prefix, u64> = bans.for_rate(now_ms).collect();
        let counts = bans.rate.as_ref().map(|rate| rate.counts()).unwrap_or_default();
        let numbers = [
            ("configured", bans.configured.len() as u64),
            ("operator", self.bans.count() as u64),
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

impl Operator {
    /// Returns the bans that there are, by prefix.
    fn all_bans(&self) -> Result<BTreeMap<(Prefix, BanSource), api::Ban>, OperatorError> {
        if let Some(why) = self.bans.trouble() {
            return Err(OperatorError::NotKnown(why.to_owned()));
        }
        let bans = lock(&self.view).bans.clone();
        let (now, now_ms) = (unix_seconds(), self.facts.clock.since_start().as_millis() as u64);
        let shown = |prefix: Prefix, source: BanSource, until: Option<u64>| api::Ban {
            id: format!("{prefix},{}", source.word()),
            prefix: prefix.to_string(),
            source,
            until: until.map(rfc3339),
            ends_in_s: until.map(|until| until.saturating_sub(now)),
            ..api::Ban::default()
        };
        let mut all = BTreeMap::new();
        for prefix in bans.configured.iter() {
            let source = BanSource::Configuration;
            all.insert((*prefix, source), shown(*prefix, source, None));
        }
        if let Some((name, set)) = &bans.set {
            for ((address, bits), leaves) in set.list() {
                let (prefix, source) = (Prefix::new(address, bits), BanSource::Set);
                let set = Some(name.clone());
                all.insert((prefix, source), api::Ban { set, ..shown(prefix, source, leaves) });
            }
        }
        for (prefix, end_ms) in bans.for_rate(now_ms) {
            let (source, left_s) = (BanSource::RateLimit, end_ms.saturating_sub(now_ms).div_ceil(1000));
            all.insert((prefix, source), shown(prefix, source, Some(now + left_s)));
        }
        for ban in self.bans.list(now) {
            let source = BanSource::Operator;
            let own = api::Ban {
                by: Some(ban.by),
                at: Some(rfc3339(ban.at)),
                why: Some(ban.why).filter(|why| !why.is_empty()),
                revision: Some(ban.revision),
                ..shown(ban.prefix, source, ban.until)
            };
            all.insert((ban.prefix, source), own);
        }
        Ok(all)
    }

    /// Says who is banned, by prefix: those that hold for an address or a prefix, or a part of all.
    ///
    /// # Errors
    ///
    /// A prefix or an `after` is none, or it is not known who is banned.
    pub fn ban_list(&self, of: &api::BansOf) -> Result<Vec<api::Ban>, OperatorError> {
        let all = self.all_bans()?;
        let after = of.after.as_deref().map(|after| {
            ban_key(after).ok_or_else(|| OperatorError::Argument(format!("\"{after}\" is no id of a ban")))
        });
        let (after, wanted) = (after.transpose()?, of.prefix.as_deref().map(prefix).transpose()?);
        let count = of.count.unwrap_or(BANS_SHOWN).min(BANS_SHOWN_MAX) as usize;
        let is_meant = |(prefix, _): &(Prefix, BanSource)| {
            wanted.is_none_or(|wanted| prefix.bits() <= wanted.bits() && prefix.contains(wanted.address()))
        };
        let rest = all.into_iter().filter(|(key, _)| after.is_none_or(|after| *key > after) && is_meant(key));
        Ok(rest.take(count).map(|(_, ban)| ban).collect())
    }

    /// Returns the bans of a prefix itself.
    fn bans_of(&self, prefix: Prefix) -> Result<Vec<api::Ban>, OperatorError> {
        let all = self.all_bans()?;
        Ok(all.into_iter().filter(|((of, _), _)| *of == prefix).map(|(_, ban)| ban).collect())
    }

    /// Returns what the bans of a prefix itself are known by.
    ///
    /// # Errors
    ///
    /// It is none, or it is not known who is banned.
    pub fn ban_tag(&self, text: &str) -> Result<String, OperatorError> {
        Ok(api::Ban::tag(&self.bans_of(prefix(text)?)?))
    }

    /// Bans a prefix, from now on and after a restart.
    ///
    /// # Errors
    ///
    /// It is none, it is one that is not banned, there are too many, or it cannot be kept.
    pub fn ban(&self, asked: &api::BanAdd, by: &str) -> Result<api::BanChanged, OperatorError> {
        let prefix = prefix(&asked.prefix)?;
        let why = asked.why.as_deref().unwrap_or("").trim();
        let (at, seconds) = (unix_seconds(), asked.for_s);
        if seconds.is_some_and(|seconds| seconds == 0 || seconds > FOR_S_MAX) {
            return Err(OperatorError::Argument(format!(
                "a ban lasts 1 to {FOR_S_MAX} seconds, or for ever"
            )));
        }
        if why.chars().count() > WHY_CHARS_MAX || why.chars().any(char::is_control) {
            let message = format!("a reason has at most {WHY_CHARS_MAX} characters, and is one line");
            return Err(OperatorError::Argument(message));
        }
        let _changing = lock(&self.changing.members);
        if let Some(why) = self.bans.trouble() {
            return Err(OperatorError::NotKnown(why.to_owned()));
        }
        let exempt = Arc::clone(&lock(&self.view).bans.exempt);
        if let Some(why) = spared(prefix, &exempt) {
            return Err(OperatorError::Refused(why));
        }
        let until = seconds.map(|seconds| at.saturating_add(seconds));
        let wanted = Ban { prefix, by: by.to_owned(), at, why: why.to_owned(), until, revision: 0 };
        let is_dry_run = asked.is_dry_run;
        if !is_dry_run {
            self.bans
                .ban(self.changing.authority(), wanted)
                .map_err(|refusal| OperatorError::not_kept(&refusal))?;
            info!(%prefix, by, "banned");
            return Ok(api::BanChanged { changed: 1, bans: self.bans_of(prefix)?, is_dry_run });
        }
        self.bans.check_room(prefix).map_err(|refusal| OperatorError::not_kept(&refusal))?;
        Ok(api::BanChanged { changed: 1, bans: self.bans_of(prefix)?, is_dry_run })
    }

    /// Bans a prefix no longer: what operators have banned, and what the rate limit has within it.
    ///
    /// # Errors
    ///
    /// Neither of them bans it, its bans are others than those it is asked for, or it cannot be
    /// kept.
    pub fn unban(&self, asked: &api::BanRemove, by: &str) -> Result<api::BanChanged, OperatorError> {
        let prefix = prefix(&asked.prefix)?;
        let _changing = lock(&self.changing.members);
        let all = self.all_bans()?;
        let tag = api::Ban::tag(all.iter().filter(|((of, _), _)| *of == prefix).map(|(_, ban)| ban));
        if asked.tag.as_deref().is_some_and(|known| known != "*" && known != tag) {
            return Err(OperatorError::Conflict(format!("the bans of {prefix} are others by now")));
        }
        let is_within = |of: &Prefix| of.bits() >= prefix.bits() && prefix.contains(of.address());
        let is_meant = |(of, source): &(Prefix, BanSource)| match source {
            BanSource::Operator => *of == prefix,
            BanSource::RateLimit => is_within(of),
            BanSource::Configuration | BanSource::Set => false,
        };
        let changed = all.keys().filter(|key| is_meant(key)).count() as u64;
        if changed == 0 {
            return Err(not_ours(prefix, &all));
        }
        let is_dry_run = asked.is_dry_run;
        if is_dry_run {
            let left = all.into_iter().filter(|(key, _)| key.0 == prefix && !is_meant(key));
            return Ok(api::BanChanged { changed, bans: left.map(|(_, ban)| ban).collect(), is_dry_run });
        }
        let unbanned = self.bans.unban(self.changing.authority(), prefix, (by, unix_seconds()));
        let kept = unbanned.map_err(|refusal| OperatorError::not_kept(&refusal))?;
        let rate = lock(&self.view).bans.rate.clone();
        let ended =
            rate.map_or(0, |rate| rate.end(prefix, self.facts.clock.since_start().as_millis() as u64));
        if kept.is_none() && ended > 0 {
            // It is no change of the store, whose row says who made it.
            self.audit(by, ("unban", &prefix.to_string()), "done");
        }
        info!(%prefix, by, "not banned any more");
        Ok(api::BanChanged { changed, bans: self.bans_of(prefix)?, is_dry_run })
    }

    /// Returns whether the time of a ban is over; it waits for nobody.
    pub(super) fn has_ended_bans(&self) -> bool {
        self.bans.has_ended(unix_seconds())
    }

    /// Ends the bans whose time is over.
    pub(super) fn end_bans(&self) {
        match self.bans.end(self.changing.authority(), (SERVER, unix_seconds())) {
            Ok(0) => {}
            Ok(count) => info!(count, "bans have ended"),
            Err(refusal) => tracing::error!(%refusal, "bans have ended, and that cannot be kept"),
        }
    }

    /// Returns who changed the ban of a prefix last.
    pub fn last_change_of_ban(&self, text: &str) -> Option<api::LastChange> {
        let prefix = prefix(text).ok()?.to_string();
        self.last_step(&[(authority::BANS, Some(prefix.as_str()))])
    }
}

/// Reads an address or a prefix that clients are compared with.
fn prefix(text: &str) -> Result<Prefix, OperatorError> {
    values::prefix(text).map(plain).map_err(|misread| OperatorError::Argument(misread.message))
}

/// Reads what names a ban.
fn ban_key(id: &str) -> Option<(Prefix, BanSource)> {
    let (text, word) = id.split_once(',')?;
    let source = BanSource::ALL.into_iter().find(|source| source.word() == word)?;
    Some((values::prefix(text).ok()?, source))
}

/// Says why a prefix cannot be unbanned: who bans it, if somebody does.
fn not_ours(prefix: Prefix, all: &BTreeMap<(Prefix, BanSource), api::Ban>) -> OperatorError {
    let mut wider =
        all.iter().filter(|((of, _), _)| of.bits() <= prefix.bits() && of.contains(prefix.address()));
    let Some(((of, source), ban)) = wider.next_back() else {
        return OperatorError::not_found(What::Ban, &prefix.to_string());
    };
    let of = match *of == prefix {
        true => "it".to_owned(),
        false => of.to_string(),
    };
    OperatorError::Refused(match (source, &ban.set) {
        (BanSource::Configuration, _) => format!("{prefix} stays banned: the setting deny bans {of}"),
        (BanSource::Set, Some(set)) => {
            format!("{prefix} stays banned: the set \"{set}\" (deny-set) has {of}")
        }
        _ => format!("{prefix} is not banned by itself: {of} is"),
    })
}
