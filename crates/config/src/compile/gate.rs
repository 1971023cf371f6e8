//! Who may ask, and how often.

use std::sync::Arc;

use engine::ListenerId;
use engine::gate::bans::{BanRule, RateBans};
use engine::gate::cookie::Secrets;
use engine::gate::rate::{RateRule, RateTable};
use engine::gate::{CookieRequired, Gate};
use environment::Environment;
use plan::Secret;
use settings::Settings;

use super::{Keep, prefix_set};

/// Cells of the table that the rate limit counts in: one MiB, shared by all workers.
const RATE_CELLS: usize = 1 << 17;

pub(super) fn gate(settings: &Settings, keep: &mut Keep, environment: &dyn Environment) -> Gate {
    let rate = &settings.limits.rate;
    let random = || {
        let mut seed = [0; 8];
        environment.random(&mut seed);
        u64::from_ne_bytes(seed)
    };
    let lengths = (rate.ipv4_prefix, rate.ipv6_prefix);
    let ban_for = rate.ban_for.filter(|_| rate.per_second.is_some());
    // Bans of other prefixes than are meant now could not be found again, and those of a limit that
    // is gone have no reason.
    keep.rate_bans = ban_for.map(|_| match keep.rate_bans.take() {
        Some((known, bans)) if known == lengths => (known, bans),
        _ => (lengths, Arc::new(RateBans::new(random()))),
    });
    let ban = ban_for.zip(keep.rate_bans.as_ref()).map(|(time, (_, bans))| {
        (BanRule { after: rate.ban_after, for_ms: time.as_millis() as u64 }, Arc::clone(bans))
    });
    let rule = rate.per_second.map(|per_second| RateRule {
        per_second,
        burst: rate.burst,
        slip: rate.slip,
        pass: rate.pass,
        ipv4_prefix: rate.ipv4_prefix,
        ipv6_prefix: rate.ipv6_prefix,
        exempt: prefix_set(&rate.exempt),
        proven_per_second: rate.with_cookie.unwrap_or(0),
        backoff: rate.backoff,
        ban,
    });
    let new_table = |cells: usize| RateTable::new(cells, random());
    if rule.is_some() && keep.rate_table.is_none() {
        keep.rate_table = Some(Arc::new(new_table(RATE_CELLS).with_offenders()));
    }
    let octets = |secret: &Secret| <[u8; 16]>::try_from(secret.reveal()).ok();
    let cookies = &settings.cookies;
    Gate {
        allowed: prefix_set(&settings.allow.value),
        banned: prefix_set(&settings.deny),
        banned_live: None,
        banned_now: Arc::clone(&keep.live_bans),
        query_octets_max: settings.limits.query_size.unwrap_or(u16::MAX),
        cookies: cookies.enabled.then(|| Secrets {
            active: cookies.secret.as_ref().and_then(octets).unwrap_or(keep.cookie_secret),
            staging: cookies.other_secret.as_ref().and_then(octets),
        }),
        cookie_required: cookie_required(settings, &keep.listeners).map(Box::new),
        rate: rule,
        table: keep.rate_table.clone().unwrap_or_else(|| Arc::new(new_table(0))),
    }
}

/// Returns who must show a cookie, if anybody must; listeners by the names of those that are open.
fn cookie_required(settings: &Settings, open: &[Option<String>]) -> Option<CookieRequired> {
    let cookies = &settings.cookies;
    let is_named = |name: &Option<String>| {
        name.as_ref().is_some_and(|name| cookies.required_on.iter().any(|at| at.value == *name))
    };
    let listeners = (0..).zip(open).filter(|(_, name)| is_named(name)).map(|(number, _)| ListenerId(number));
    let required = CookieRequired {
        clients: prefix_set(&cookies.required),
        listeners: listeners.collect(),
        spared: prefix_set(&cookies.not_required),
    };
    (!cookies.required.is_empty() || !required.listeners.is_empty()).then_some(required)
}
