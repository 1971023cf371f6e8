//! Points in time as key files write them: `YYYYMMDDHHmmSS` and RFC 3339. Inside, they are seconds
//! since 1970.

use std::fmt::Write as _;

/// Reads `YYYYMMDDHHmmSS`, UTC.
pub fn parse_compact(text: &str) -> Option<u64> {
    if text.len() != 14 || !text.bytes().all(|octet| octet.is_ascii_digit()) {
        return None;
    }
    let part = |range| text.get(range).and_then(|digits: &str| digits.parse::<u32>().ok());
    let time = [part(8..10)?, part(10..12)?, part(12..14)?].map(u64::from);
    seconds(part(0..4)?, part(4..6)?, part(6..8)?, time)
}

/// Reads a timestamp of RFC 3339; fractions of seconds are left out.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let digits = |range| {
        let digits: &str = text.get(range)?;
        digits.bytes().all(|octet| octet.is_ascii_digit()).then(|| digits.parse::<u32>().ok()).flatten()
    };
    let bytes = text.as_bytes();
    let is = |at: usize, octets: &[u8]| bytes.get(at).is_some_and(|octet| octets.contains(octet));
    if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let local = seconds(
        digits(0..4)?,
        digits(5..7)?,
        digits(8..10)?,
        [digits(11..13)?, digits(14..16)?, digits(17..19)?].map(u64::from),
    )?;
    let mut rest = text.get(19..)?;
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction.find(|c: char| !c.is_ascii_digit())?;
        rest = fraction.get(end..).filter(|_| end > 0)?;
    }
    match rest.as_bytes() {
        b"Z" | b"z" => Some(local),
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let hours: u64 = rest.get(1..3)?.parse().ok()?;
            let minutes: u64 = rest.get(4..6)?.parse().ok()?;
            let offset = hours * 3600 + minutes * 60;
            if *sign == b'+' { local.checked_sub(offset) } else { local.checked_add(offset) }
        }
        _ => None,
    }
}

fn seconds(year: u32, month: u32, day: u32, [hour, minute, second]: [u64; 3]) -> Option<u64> {
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = u64::from(wire::calendar::existing_day(year, month, day)?);
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Returns year, month, day, hour, minute, second.
fn parts(time: u64) -> [u64; 6] {
    let (year, month, day) = wire::calendar::date_at(time);
    let seconds = time % 86_400;
    [year as u64, month.into(), day.into(), seconds / 3600, seconds / 60 % 60, seconds % 60]
}

/// Writes `YYYYMMDDHHmmSS`.
pub fn write_compact(time: u64) -> String {
    let [year, month, day, hour, minute, second] = parts(time);
    let mut text = String::with_capacity(14);
    let _ = write!(text, "{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}");
    text
}

/// Writes a timestamp of RFC 3339.
pub(crate) fn write_rfc3339(time: u64) -> String {
    let [year, month, day, hour, minute, second] = parts(time);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Writes a time like C's `ctime`, UTC: `Fri Nov  6 21:20:00 2026`.
pub(crate) fn write_calendar(time: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let [year, month, day, hour, minute, second] = parts(time);
    let weekday = DAYS.get((time / 86_400 % 7) as usize).unwrap_or(&"");
    let month = MONTHS.get((month as usize).wrapping_sub(1)).unwrap_or(&"");
    format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {year}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (compact, rfc3339, seconds) in [
            ("19700101000000", "1970-01-01T00:00:00Z", 0),
            ("20000229120000", "2000-02-29T12:00:00Z", 951_825_600),
            ("20261120204500", "2026-11-20T20:45:00Z", 1_795_207_500),
            ("21000301000000", "2100-03-01T00:00:00Z", 4_107_542_400),
        ] {
            assert_eq!(parse_compact(compact), Some(seconds));
            assert_eq!(parse_rfc3339(rfc3339), Some(seconds));
            assert_eq!(write_compact(seconds), compact);
            assert_eq!(write_rfc3339(seconds), rfc3339);
        }
        assert_eq!(write_calendar(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(write_calendar(1_794_000_000), "Fri Nov  6 21:20:00 2026");
        assert_eq!(parse_rfc3339("1970-01-01T02:00:00.25+02:00"), Some(0));
        assert_eq!(parse_rfc3339("1969-12-31T22:00:00-02:00"), None);
        for bad in ["", "2026", "20260229000000", "20261301000000", "2026112020450", "20261120256000"] {
            assert_eq!(parse_compact(bad), None, "{bad}");
        }
        for bad in
            ["", "2026-11-20", "2026-11-20T20:45:00", "2026-11-20T20:45:00.Z", "2026-11-20T20:45:00+1:0"]
        {
            assert_eq!(parse_rfc3339(bad), None, "{bad}");
        }
    }
}
