//! Who is banned: by the configuration in use, by the rate limit, and by operators.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Bound;
use std::sync::Arc;

use authority::{Ban, Spared, overlap, plain, spared, too_wide, unusual_length};
use control::api::{self, BanSource};
use control::{Caller, Role};
use engine::gate::bans::RateBans;
use engine::gate::rate::RateTable;
use tracing::{info, warn};
use wire::Prefix;

use super::when::rfc3339;
use super::{Operator, OperatorError, SERVER, What, unix_seconds};
use crate::lock;
use crate::reload::Revision;
use devices::{BANNED_SHOWN_MAX, Banned};

/// The group of counters that has the seconds left of each ban by the rate limit.
pub(super) const SECONDS_LEFT: &str = "bans.seconds-left";
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
        if !self.components.devices.have_programs() {
            return Banned::default();
        }
        let from_set = bans.set.iter().flat_map(|(_, set)| set.list()).map(|(prefix, _)| prefix);
        let by_operators = self.bans.prefixes(unix_seconds());
        // Those without a limit are not banned with their neighbours.
        let exempt = match known.is_empty() {
            true => Vec::new(),
            false => bans.exempt.iter().map(prefixes).collect(),
        };
        Banned {
            prefixes: from_set
                .chain(by_operators.iter().map(prefixes))
                .chain(known.iter().map(prefixes))
                .collect(),
            exempt,
        }
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
            ("operator", self.bans.count(unix_seconds()) as u64),
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
            stats.insert(SECONDS_LEFT.to_owned(), seconds);
        }
    }
}

impl Operator {
    /// Returns at most `count` bans that are meant, by prefix; `own` are those of operators.
    fn shown_bans(
        &self,
        own: Vec<Ban>,
        count: usize,
        is_meant: impl Fn(Prefix, BanSource) -> bool,
    ) -> BTreeMap<(Prefix, BanSource), api::Ban> {
        let bans = lock(&self.view).bans.clone();
        let (now, now_ms) = (unix_seconds(), self.facts.clock.since_start().as_millis() as u64);
        let mut all = BTreeMap::new();
        let mut show = |prefix: Prefix, source: BanSource, until: Option<u64>, more: api::Ban| {
            let is_beyond =
                all.len() >= count && all.last_key_value().is_none_or(|(last, _)| *last < (prefix, source));
            if is_beyond || !is_meant(prefix, source) {
                return;
            }
            all.insert((prefix, source), shown(prefix, (source, until), now, more));
            if all.len() > count {
                all.pop_last();
            }
        };
        for prefix in bans.configured.iter() {
            show(*prefix, BanSource::Configuration, None, api::Ban::default());
        }
        if let Some((name, set)) = &bans.set {
            for ((address, bits), leaves) in set.list() {
                let more = api::Ban { set: Some(name.clone()), ..api::Ban::default() };
                show(Prefix::new(address, bits), BanSource::Set, leaves, more);
            }
        }
        for (prefix, end_ms) in bans.for_rate(now_ms) {
            let left_s = end_ms.saturating_sub(now_ms).div_ceil(1000);
            show(prefix, BanSource::RateLimit, Some(now + left_s), api::Ban::default());
        }
        for ban in own {
            let (prefix, until) = (ban.prefix, ban.until);
            show(prefix, BanSource::Operator, until, of_operator(ban));
        }
        all
    }

    fn known_bans(&self) -> Result<&authority::Bans, OperatorError> {
        match self.bans.unread() {
            Some(why) => Err(OperatorError::NotKnown(why)),
            None => Ok(&self.bans),
        }
    }

    /// Says who is banned, by prefix: those that hold for an address or a prefix, or a part of all.
    /// Viewers see neither clients that are over the rate limit nor reasons: who asked for what is
    /// more than how the server is.
    ///
    /// # Errors
    ///
    /// A prefix or an `after` is none, or it is not known who is banned.
    pub fn ban_list(&self, of: &api::BansOf, role: Role) -> Result<Vec<api::Ban>, OperatorError> {
        let (known, now) = (self.known_bans()?, unix_seconds());
        let after = of.after.as_deref().map(|after| {
            ban_key(after).ok_or_else(|| OperatorError::Argument(format!("\"{after}\" is no id of a ban")))
        });
        let (after, wanted) = (after.transpose()?, of.prefix.as_deref().map(prefix).transpose()?);
        let count = of.count.unwrap_or(BANS_SHOWN).min(BANS_SHOWN_MAX) as usize;
        let is_after = |key: (Prefix, BanSource)| after.is_none_or(|after| key > after);
        let own = match (wanted, after) {
            (Some(wanted), _) => known.of(wanted, now),
            (None, Some((after, BanSource::Operator))) => known.list(Bound::Excluded(after), count, now),
            (None, Some((after, _))) => known.list(Bound::Included(after), count, now),
            (None, None) => known.list(Bound::Unbounded, count, now),
        };
        let is_meant = |prefix: Prefix, source: BanSource| {
            let is_shown = source != BanSource::RateLimit || role >= Role::Helper;
            is_shown && is_after((prefix, source)) && wanted.is_none_or(|wanted| holds_for(prefix, wanted))
        };
        let all = self.shown_bans(own, count, is_meant).into_values();
        Ok(all.map(|ban| api::Ban { why: ban.why.filter(|_| role >= Role::Helper), ..ban }).collect())
    }

    /// Returns the bans of a prefix itself.
    fn bans_of(&self, prefix: Prefix) -> Result<Vec<api::Ban>, OperatorError> {
        let own = self.known_bans()?.of_itself(prefix, unix_seconds());
        let all = self.shown_bans(own.into_iter().collect(), usize::MAX, |of, _| of == prefix);
        Ok(all.into_values().collect())
    }

    /// Returns what the bans of a prefix itself are known by.
    ///
    /// # Errors
    ///
    /// It is none, or it is not known who is banned.
    pub fn ban_tag(&self, text: &str) -> Result<String, OperatorError> {
        Ok(api::Ban::tag(&self.bans_of(prefix(text)?)?))
    }

    /// Refuses to ban whom nobody bans, and whom this caller does not.
    fn check_ban(&self, prefix: Prefix, caller: &Caller) -> Result<(), OperatorError> {
        let is_by_admin = caller.role >= Role::Admin;
        if let Some(why) = too_wide(prefix, is_by_admin) {
            return Err(match too_wide(prefix, true) {
                Some(why) => OperatorError::Refused(why),
                None => OperatorError::Forbidden(why),
            });
        }
        if let Some(why) = unusual_length(prefix).filter(|_| caller.role <= Role::Helper) {
            return Err(OperatorError::Forbidden(why));
        }
        let exempt = Arc::clone(&lock(&self.view).bans.exempt);
        let what = "the addresses of this machine cannot be read";
        let mut own =
            devices::interfaces::own_addresses().map_err(|error| OperatorError::Io { what, error })?;
        own.extend(self.facts.addresses.iter().map(SocketAddr::ip).filter(|ip| !ip.is_unspecified()));
        match spared(prefix, Spared { exempt: &exempt, own: &own, caller: caller.from }) {
            Some(why) => Err(OperatorError::Refused(why)),
            None => self.check_ban_is_theirs(prefix, caller),
        }
    }

    /// Refuses helpers to change what somebody else than a helper has banned.
    fn check_ban_is_theirs(&self, prefix: Prefix, caller: &Caller) -> Result<(), OperatorError> {
        let other = self.bans.of_itself(prefix, unix_seconds()).filter(|ban| !ban.is_by_helper);
        match other.filter(|_| caller.role <= Role::Helper) {
            Some(ban) => Err(OperatorError::Forbidden(format!(
                "{} has banned {prefix}, and helpers change bans of helpers alone",
                ban.by
            ))),
            None => Ok(()),
        }
    }

    /// Bans a prefix, from now on and after a restart.
    ///
    /// # Errors
    ///
    /// It is none, it is one that is not banned or not by this caller, it has another ETag, there
    /// are too many, or it cannot be kept.
    pub fn ban(&self, asked: &api::BanAdd, caller: &Caller) -> Result<api::BanChanged, OperatorError> {
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
        let known = self.known_bans()?;
        self.check_ban(prefix, caller)?;
        let (by, is_by_helper) = (caller.name.clone(), caller.role <= Role::Helper);
        let until = seconds.map(|seconds| at.saturating_add(seconds));
        let wanted = Ban { prefix, by, is_by_helper, at, why: why.to_owned(), until, revision: 0 };
        let same = known.check(&wanted).map_err(|refusal| OperatorError::not_kept(&refusal))?;
        if let (Some(tag), None) = (&asked.tag, &same) {
            self.expect_ban(prefix, tag)?;
        }
        let is_dry_run = asked.is_dry_run;
        if !is_dry_run {
            let (_, is_new) = known
                .ban(self.changing.authority(), wanted)
                .map_err(|refusal| OperatorError::not_kept(&refusal))?;
            if is_new {
                info!(%prefix, by = caller.name, "banned");
            }
            return Ok(api::BanChanged { changed: is_new.into(), bans: self.bans_of(prefix)?, is_dry_run });
        }
        let changed = u64::from(same.is_none());
        let mut bans = self.bans_of(prefix)?;
        bans.retain(|ban| ban.source != BanSource::Operator);
        let would = same.unwrap_or(wanted);
        let more = api::Ban { revision: Some(would.revision).filter(|it| *it > 0), ..of_operator(would) };
        bans.push(shown(prefix, (BanSource::Operator, until), at, more));
        Ok(api::BanChanged { changed, bans, is_dry_run })
    }

    /// Refuses to replace the ban of a prefix by an operator unless its bans have this ETag.
    fn expect_ban(&self, prefix: Prefix, tag: &str) -> Result<(), OperatorError> {
        let is_banned = self.bans.of_itself(prefix, unix_seconds()).is_some();
        let why = match (tag, is_banned) {
            ("", false) | ("*", true) => return Ok(()),
            ("", true) => format!("{prefix} is banned already"),
            ("*", false) => format!("no operator has banned {prefix}"),
            (tag, _) if tag == api::Ban::tag(&self.bans_of(prefix)?) => return Ok(()),
            _ => format!("the bans of {prefix} were changed since they were read"),
        };
        Err(OperatorError::Conflict(why))
    }

    /// Bans a prefix no longer: what operators have banned, and what the rate limit has within it.
    ///
    /// # Errors
    ///
    /// Neither of them bans it, it is not this caller's to end, its bans are others than those it
    /// is asked for, or it cannot be kept.
    pub fn unban(&self, asked: &api::BanRemove, caller: &Caller) -> Result<api::BanChanged, OperatorError> {
        let (prefix, by) = (prefix(&asked.prefix)?, caller.name.as_str());
        let _changing = lock(&self.changing.members);
        let own = self.known_bans()?.of(prefix, unix_seconds());
        let is_within = |of: Prefix, source: BanSource| {
            source == BanSource::RateLimit && of.bits() >= prefix.bits() && prefix.contains(of.address())
        };
        let all =
            self.shown_bans(own, usize::MAX, |of, source| holds_for(of, prefix) || is_within(of, source));
        let tag = api::Ban::tag(all.iter().filter(|((of, _), _)| *of == prefix).map(|(_, ban)| ban));
        self.check_ban_is_theirs(prefix, caller)?;
        let known = asked.tag.as_deref().filter(|known| !matches!(*known, "" | "*"));
        if known.is_some_and(|known| known != tag) {
            let why = format!("the bans of {prefix} were changed since they were read");
            return Err(OperatorError::Conflict(why));
        }
        let is_meant = |(of, source): &(Prefix, BanSource)| {
            is_within(*of, *source) || (*source == BanSource::Operator && *of == prefix)
        };
        let changed = all.keys().filter(|key| is_meant(key)).count() as u64;
        if changed == 0 {
            return Err(not_ours(prefix, &all));
        }
        // Nothing stands for a prefix that is not banned.
        if asked.tag.as_deref() == Some("") {
            return Err(OperatorError::Conflict(format!("{prefix} is banned")));
        }
        let is_dry_run = asked.is_dry_run;
        if is_dry_run {
            let left = all.into_iter().filter(|(key, _)| key.0 == prefix && !is_meant(key));
            return Ok(api::BanChanged { changed, bans: left.map(|(_, ban)| ban).collect(), is_dry_run });
        }
        let of_rate = all.keys().filter(|(_, source)| *source == BanSource::RateLimit).count();
        let why = match all.contains_key(&(prefix, BanSource::Operator)) {
            true if of_rate > 0 => format!("with {of_rate} by the rate limit"),
            true => String::new(),
            false => {
                // It is no change of the store, whose row says who made it.
                self.audit_first(by, ("unban", &format!("{prefix}: {of_rate} by the rate limit")))?;
                String::new()
            }
        };
        let change = store::Change { by: by.to_owned(), why, at: unix_seconds(), ..store::Change::default() };
        let unbanned = self.bans.unban(self.changing.authority(), prefix, change);
        unbanned.map_err(|refusal| OperatorError::not_kept(&refusal))?;
        if let Some(rate) = lock(&self.view).bans.rate.clone() {
            rate.end(prefix, self.facts.clock.since_start().as_millis() as u64);
        }
        info!(%prefix, by, "not banned any more");
        Ok(api::BanChanged { changed, bans: self.bans_of(prefix)?, is_dry_run })
    }

    /// Logs which prefixes stay banned although clients in them have no rate limit any more.
    pub(super) fn warn_of_bans(&self, exempt_before: &[Prefix], exempt: &[Prefix]) {
        let new: Vec<&Prefix> = exempt.iter().filter(|it| !exempt_before.contains(it)).collect();
        if new.is_empty() {
            return;
        }
        for prefix in self.bans.prefixes(unix_seconds()) {
            if let Some(exempt) = new.iter().find(|exempt| overlap(prefix, ***exempt)) {
                warn!(%prefix, %exempt, "stays banned by an operator, although limits.rate.exempt has it");
            }
        }
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

/// Returns a ban as it is shown; `more` says what there is to say beside its prefix and time.
fn shown(prefix: Prefix, of: (BanSource, Option<u64>), now: u64, more: api::Ban) -> api::Ban {
    let (source, until) = of;
    api::Ban {
        id: format!("{prefix},{}", source.word()),
        prefix: prefix.to_string(),
        source,
        until: until.map(rfc3339),
        ends_in_s: until.map(|until| until.saturating_sub(now)),
        ..more
    }
}

/// Returns what there is to say of a ban by an operator.
fn of_operator(ban: Ban) -> api::Ban {
    api::Ban {
        by: Some(ban.by),
        at: Some(rfc3339(ban.at)),
        why: Some(ban.why).filter(|why| !why.is_empty()),
        revision: Some(ban.revision),
        ..api::Ban::default()
    }
}

/// Returns whether a ban of `banned` holds for all of a prefix.
fn holds_for(banned: Prefix, prefix: Prefix) -> bool {
    banned.bits() <= prefix.bits() && banned.contains(prefix.address())
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
