//! Hours of the day and days of the week: `mon-fri 21:00-07:00`.

use engine::matchers::clock::{DAY_MINUTES, Window};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use values::{Misread, Read};

/// Stretches of days by the clock of a time zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Hours {
    /// The stretches; any of them.
    pub windows: Vec<Window>,
    /// The time zone as the database of time zones calls it; `None`: that of the machine.
    pub zone: Option<String>,
}

/// Where the table of offsets begins: 2020-01-01. Nothing asks about the time before.
const FROM: i64 = 1_577_836_800;

impl Hours {
    /// Returns from when on (Unix seconds) the clock is how many seconds ahead of UTC, until 2106.
    pub fn offsets(&self) -> Vec<(u32, i32)> {
        let zone = match &self.zone {
            Some(name) => TimeZone::get(name),
            None => TimeZone::try_system(),
        };
        // Names were checked when they were read; a machine without a zone is on UTC.
        let (Ok(zone), Ok(from)) = (zone, Timestamp::from_second(FROM)) else { return Vec::new() };
        let mut offsets = vec![(0, zone.to_offset(from).seconds())];
        for change in zone.following(from) {
            let Ok(at) = u32::try_from(change.timestamp().as_second()) else { break };
            offsets.push((at, change.offset().seconds()));
        }
        offsets
    }
}

fn wrong(text: &str, part: &str, message: String) -> Misread {
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
    Misread {
        at: start..start + part.len(),
        message,
        expected: Some(
            "hours such as \"mon-fri 21:00-07:00\", \"sat,sun\" or \"day 1-7 09:00-18:00\"".to_owned(),
        ),
        hint: None,
    }
}

/// Returns whether this is meant to be a time zone: those begin with a capital letter, hours never
/// do.
pub(super) fn is_zone(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase()) || (text.contains('/') && !text.contains(':'))
}

/// Reads the name of a time zone.
pub(super) fn zone(text: &str) -> Read<String> {
    match TimeZone::get(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(Misread {
            at: 0..text.len(),
            message: format!("unknown time zone \"{text}\""),
            expected: Some("a name such as Europe/Berlin, America/New_York or UTC".to_owned()),
            hint: None,
        }),
    }
}

/// Reads days, hours, or both.
pub(super) fn window(text: &str) -> Read<Window> {
    let mut window =
        Window { weekdays: Window::EVERY_DAY, monthdays: Window::EVERY_DATE, from: 0, to: DAY_MINUTES };
    let (mut has_days, mut has_dates, mut has_hours) = (false, false, false);
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if word.contains(':') {
            if has_hours {
                return Err(wrong(text, word, format!("\"{word}\" is a second time of day")));
            }
            (window.from, window.to) = times(text, word)?;
            has_hours = true;
        } else if word == "day" && !has_dates {
            let Some(dates) = words.next() else {
                return Err(wrong(text, word, "\"day\" needs days of the month after it".to_owned()));
            };
            window.monthdays = days(
                text,
                dates,
                |day| day.parse::<u32>().ok().filter(|day| (1..=31).contains(day)).map(|day| day - 1),
                31,
            )?;
            has_dates = true;
        } else if !has_days {
            let names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
            let place = |day: &str| names.iter().position(|name| *name == day).map(|day| day as u32);
            window.weekdays = days(text, word, place, 7)? as u8;
            has_days = true;
        } else {
            return Err(wrong(text, word, format!("\"{word}\" cannot stand here")));
        }
    }
    if !(has_days || has_dates || has_hours) {
        return Err(wrong(text, text, "there are no hours".to_owned()));
    }
    Ok(window)
}

/// Reads `mon-fri,sun` as bits; a range may go over the end.
fn days(text: &str, word: &str, read: impl Fn(&str) -> Option<u32>, count: u32) -> Read<u32> {
    let mut bits = 0;
    for piece in word.split(',') {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let read = |day: &str| {
            read(day)
                .ok_or_else(|| wrong(text, piece, format!("\"{piece}\" is not a day or a range of days")))
        };
        let (mut day, last) = (read(first)?, read(last)?);
        bits |= 1 << day;
        while day != last {
            day = (day + 1) % count;
            bits |= 1 << day;
        }
    }
    Ok(bits)
}

fn times(text: &str, word: &str) -> Read<(u16, u16)> {
    let Some((from, to)) = word.split_once('-') else {
        return Err(wrong(text, word, format!("\"{word}\" has no end")));
    };
    let time = |part: &str, last: u16| {
        let minutes = part.split_once(':').and_then(|(hours, minutes)| {
            let number = |digits: &str| {
                let is_number = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
                digits.parse::<u16>().ok().filter(|_| is_number)
            };
            let (hours, minutes) = (number(hours)?, number(minutes)?);
            (minutes < 60).then_some(hours * 60 + minutes)
        });
        minutes
            .filter(|&minutes| minutes <= last)
            .ok_or_else(|| wrong(text, part, format!("\"{part}\" is not a time of day")))
    };
    let (from, to) = (time(from, DAY_MINUTES - 1)?, time(to, DAY_MINUTES)?);
    if from == to {
        return Err(wrong(text, word, format!("\"{word}\" begins and ends at the same time")));
    }
    Ok((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, weekdays: u8, monthdays: u32, from: u16, to: u16) {
        assert_eq!(window(text), Ok(Window { weekdays, monthdays, from, to }), "{text}");
    }

    fn check_wrong(text: &str, message: &str) {
        assert_eq!(window(text).map_err(|misread| misread.message), Err(message.to_owned()), "{text}");
    }

    #[test]
    fn windows_have_days_hours_or_both() {
        check("mon-fri 21:00-07:00", 0x1f, Window::EVERY_DATE, 1260, 420);
        check("sat,sun", 0x60, Window::EVERY_DATE, 0, 1440);
        check("fri-mon", 0x71, Window::EVERY_DATE, 0, 1440);
        check("09:30-24:00", 0x7f, Window::EVERY_DATE, 570, 1440);
        check("day 1-7,31 mon 00:00-00:01", 1, 0x4000_007f, 0, 1);
    }

    #[test]
    fn mistakes_are_named() {
        check_wrong("", "there are no hours");
        check_wrong("monday", "\"monday\" is not a day or a range of days");
        check_wrong("mon 9:00-18:00", "\"9:00\" is not a time of day");
        check_wrong("24:00-01:00", "\"24:00\" is not a time of day");
        check_wrong("09:00-24:01", "\"24:01\" is not a time of day");
        check_wrong("09:00", "\"09:00\" has no end");
        check_wrong("09:00-09:00", "\"09:00-09:00\" begins and ends at the same time");
        check_wrong("mon tue", "\"tue\" cannot stand here");
        check_wrong("day 32", "\"32\" is not a day or a range of days");
        check_wrong("day", "\"day\" needs days of the month after it");
    }

    #[test]
    fn a_clock_is_put_forward_and_back() {
        let berlin = Hours { windows: Vec::new(), zone: Some("Europe/Berlin".to_owned()) }.offsets();
        // 2026-03-29 and 2026-10-25, at one o'clock UTC.
        assert_eq!(berlin[0], (0, 3600));
        assert!(berlin.contains(&(1_774_746_000, 7200)));
        assert!(berlin.contains(&(1_792_890_000, 3600)));
        assert!(berlin.len() > 150, "until 2106");
        assert_eq!(Hours { windows: Vec::new(), zone: Some("UTC".to_owned()) }.offsets(), [(0, 0)]);
        assert!(zone("Europe/Berlim").is_err());
    }
}
