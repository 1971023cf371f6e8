//! When certificates are ordered: in time before they end, and after a failure later and later.
//!
//! Pure: whoever calls says what time it is, and what is drawn.

use std::time::Duration;

const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

/// How long after the first failure the next attempt is made. An authority that everybody uses
/// takes five failures an hour.
const RETRY_FIRST: u64 = 5 * 60;
/// How long at most between two attempts.
const RETRY_LAST: u64 = 12 * HOUR;
/// Certificates that live shorter are renewed at half of their life.
const SHORT_LIFE: u64 = 10 * DAY;
/// How long at least between a certificate and the next, however short its life is.
const ORDER_EVERY_MIN: u64 = 10 * 60;
/// How often an authority is asked when a certificate is to be renewed, unless it says (RFC 9773
/// §4.3.3).
const WINDOW_EVERY: u64 = 6 * HOUR;
/// How often at least and at most, whatever it says.
const WINDOW_EVERY_MIN: u64 = 60;
const WINDOW_EVERY_MAX: u64 = DAY;

/// The life of a certificate, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) begins: u64,
    pub(crate) ends: u64,
}

/// When an authority wants a certificate renewed (RFC 9773 §4.2), in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Not before.
    pub start: u64,
    /// Not after.
    pub end: u64,
}

/// Returns a part of a duration, from nothing to all of it.
fn part(seconds: u64, spread: u16) -> u64 {
    (u128::from(seconds) * u128::from(spread) / u128::from(u16::MAX)) as u64
}

/// Returns when a certificate is renewed. `spread` chooses a moment, the same each time that it is
/// asked for the same certificate, so that not all servers come at once (RFC 9773 §4.2).
pub(crate) fn renew_at(life: Life, window: Option<Window>, issued_at: u64, spread: u16) -> u64 {
    let length = life.ends.saturating_sub(life.begins);
    let at = match window {
        Some(window) => window.start.saturating_add(part(window.end.saturating_sub(window.start), spread)),
        None => {
            let after = if length < SHORT_LIFE { length / 2 } else { length / 3 * 2 };
            life.begins.saturating_add(after).saturating_sub(part(length / 50, spread))
        }
    };
    // An authority that always wants a new one gets no order after the other. Nor does one that
    // wants none get us to let the certificate end.
    let earliest = issued_at.saturating_add((length / 24).clamp(ORDER_EVERY_MIN, DAY));
    let latest = life.ends.saturating_sub(length / 10);
    at.max(earliest).min(latest).max(issued_at.saturating_add(ORDER_EVERY_MIN))
}

/// Returns how long to wait after so many failures in a row, at least as long as the authority
/// wants.
pub(crate) fn retry_in(failures: u32, retry_after: Option<Duration>, spread: u16) -> u64 {
    let doubled = RETRY_FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let wait = doubled.min(RETRY_LAST);
    let wait = wait + part(wait / 4, spread);
    wait.max(retry_after.map_or(0, |asked| asked.as_secs()))
}

/// Returns how long until an authority is asked again when a certificate is to be renewed.
pub(crate) fn ask_in(retry_after: Option<Duration>) -> u64 {
    let asked = retry_after.map_or(WINDOW_EVERY, |asked| asked.as_secs());
    asked.clamp(WINDOW_EVERY_MIN, WINDOW_EVERY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Life = Life { begins: 1_000_000, ends: 1_000_000 + 90 * DAY };

    #[test]
    fn a_certificate_is_renewed_at_two_thirds_of_its_life_and_a_short_one_at_half() {
        assert_eq!(renew_at(LIFE, None, LIFE.begins, 0), LIFE.begins + 60 * DAY);
        let earliest = renew_at(LIFE, None, LIFE.begins, u16::MAX);
        assert_eq!(earliest, LIFE.begins + 60 * DAY - 90 * DAY / 50);
        let short = Life { ends: LIFE.begins + 6 * DAY, ..LIFE };
        assert_eq!(renew_at(short, None, LIFE.begins, 0), LIFE.begins + 3 * DAY);
    }

    #[test]
    fn a_window_of_the_authority_counts_and_the_moment_in_it_is_spread() {
        let window = Window { start: LIFE.begins + 10 * DAY, end: LIFE.begins + 12 * DAY };
        let at = |spread| renew_at(LIFE, Some(window), LIFE.begins, spread);
        assert_eq!((at(0), at(u16::MAX)), (window.start, window.end));
        assert!(at(0) < at(20_000) && at(20_000) < at(40_000));
    }

    #[test]
    fn no_window_has_certificates_ordered_one_after_the_other_or_not_at_all() {
        let past = Window { start: 0, end: 1 };
        assert_eq!(renew_at(LIFE, Some(past), LIFE.begins, 9), LIFE.begins + DAY);
        let never = Window { start: u64::MAX - 1, end: u64::MAX };
        assert_eq!(renew_at(LIFE, Some(never), LIFE.begins, 9), LIFE.begins + 81 * DAY);
        // One that has hardly a life does not make us work without end.
        let dead = Life { begins: 5, ends: 5 };
        assert_eq!(renew_at(dead, Some(past), 5, 9), 5 + ORDER_EVERY_MIN);
    }

    #[test]
    fn failures_are_answered_by_waiting_longer_and_within_bounds() {
        let waits: Vec<u64> = (1..12).map(|failures| retry_in(failures, None, 0)).collect();
        assert_eq!(waits[..4], [300, 600, 1200, 2400]);
        assert_eq!(waits.last(), Some(&RETRY_LAST));
        assert_eq!(retry_in(u32::MAX, None, u16::MAX), RETRY_LAST + RETRY_LAST / 4);
        assert_eq!(retry_in(1, Some(Duration::from_secs(7200)), 0), 7200);
        let (none, often, rarely) = (None, Some(Duration::ZERO), Some(Duration::MAX));
        assert_eq!([none, often, rarely].map(ask_in), [WINDOW_EVERY, WINDOW_EVERY_MIN, WINDOW_EVERY_MAX]);
    }
}
