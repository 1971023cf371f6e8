//! Durations, as `1h30m`.

use std::time::Duration;

use wire::Ttl;

use crate::{Misread, Read};

/// The units of time, longest first, in milliseconds.
const DURATION_UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Reads `10s`, `1m30s`, `500ms`, `1d`. A bare `0` is no time at all; other numbers need a unit.
pub fn duration(text: &str) -> Read<Duration> {
    const EXPECTED: &str = "a duration such as 500ms, 10s, 1m30s, 2h or 1d";
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let not_one = || Misread::whole(text, format!("\"{text}\" is not a duration")).expected(EXPECTED);
    let mut total: u64 = 0;
    let mut rest = text;
    if rest.is_empty() {
        return Err(not_one());
    }
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        if number.is_empty() {
            return Err(not_one());
        }
        if unit.is_empty() {
            return Err(Misread::whole(text, format!("\"{text}\" has no unit"))
                .expected(EXPECTED)
                .hint(format!("\"{text}s\" is that many seconds")));
        }
        let Some(&(_, scale)) = DURATION_UNITS.iter().find(|(word, _)| *word == unit) else {
            return Err(Misread::part(
                at + digits..at + digits + unit.len(),
                format!("\"{unit}\" is not a unit of time"),
            )
            .expected("w, d, h, m, s or ms"));
        };
        let sum =
            number.parse::<u64>().ok().and_then(|n| n.checked_mul(scale)).and_then(|n| total.checked_add(n));
        total = sum.ok_or_else(|| Misread::whole(text, format!("\"{text}\" is too long a time")))?;
        rest = after;
    }
    Ok(Duration::from_millis(total))
}

/// Writes a duration the way [`duration`] reads it.
pub fn duration_text(duration: Duration) -> String {
    let mut left = duration.as_millis() as u64;
    if left == 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    for (unit, scale) in DURATION_UNITS {
        if unit != "w" && left >= scale {
            out.push_str(&format!("{}{unit}", left / scale));
            left %= scale;
        }
    }
    out
}

/// Returns a duration as a TTL: whole seconds, rounded up so that something does not become
/// nothing.
pub fn ttl(duration: Duration) -> Ttl {
    Ttl::new(duration.as_millis().div_ceil(1000).min(i32::MAX as u128) as u32)
}
