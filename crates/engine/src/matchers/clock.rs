//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Hours of the day and days of the week, by the clock on the wall of some place.
//!
//! When that clock is put forward or back is worked out when the configuration is loaded.

use wire::calendar::date_of;

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Minutes of a day.
pub const DAY_MINUTES: u16 = 1440;

/// One stretch of a day, on some days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// One bit for each day of the week on which it begins, Monday first.
    pub weekdays: u8,
    /// One bit for each day of the month on which it begins, the first in bit 0.
    pub monthdays: u32,
    /// The minute of the day at which it begins.
    pub from: u16,
    /// The minute before which it ends; not after `from`: on the next day.
    pub to: u16,
}

impl Window {
    /// Every day of the week.
    pub const EVERY_DAY: u8 = 0x7f;
    /// Every day of the month.
    pub const EVERY_DATE: u32 = 0x7fff_ffff;

    /// Returns whether it begins on this day, counted from 1970-01-01.
    fn is_on(&self, day: i64) -> bool {
        // 1970-01-01 was a Thursday.
        let weekday = (day + 3).rem_euclid(7);
        self.weekdays >> weekday & 1 != 0 && self.monthdays >> (date_of(day).2 - 1) & 1 != 0
    }

    fn holds(&self, day: i64, minute: u16) -> bool {
        if self.from < self.to {
            return (self.from..self.to).contains(&minute) && self.is_on(day);
        }
        // Over midnight: the day on which it began counts.
        (minute >= self.from && self.is_on(day)) || (minute < self.to && self.is_on(day - 1))
    }
}

/// Stretches of time by a clock on some wall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hours {
    windows: Box<[Window]>,
    /// From when on (Unix seconds) the clock is how many seconds ahead of UTC; ascending, the first
    /// from zero.
    offsets: Box<[(u32, i32)]>,
}

impl Hours {
    /// Returns the hours. `offsets` says from when on (Unix seconds) the clock is how many seconds
    /// ahead of UTC, in ascending order; before the first it is as far ahead as from then on.
    // Once per configuration.
    pub fn new(windows: Vec<Window>, offsets: Vec<(u32, i32)>) -> Self {
        Self { windows: windows.into_boxed_slice(), offsets: offsets.into_boxed_slice() }
    }

    /// Returns whether a moment, in Unix seconds, is within one of them.
    pub fn hold(&self, unix_seconds: u32) -> bool {
        let after = self.offsets.partition_point(|&(from, _)| from <= unix_seconds);
        let offset = self.offsets.get(after.saturating_sub(1)).map_or(0, |&(_, offset)| offset);
        let local = i64::from(unix_seconds) + i64::from(offset);
        let (day, minute) = (local.div_euclid(DAY), (local.rem_euclid(DAY) / 60) as u16);
        self.windows.iter().any(|window| window.holds(day, minute))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-20, a Friday, at midnight UTC.
    const FRIDAY: u32 = 1_795_132_800;

    fn window(weekdays: u8, from: u16, to: u16) -> Window {
        Window { weekdays, monthdays: Window::EVERY_DATE, from, to }
    }

    fn check(window: Window, offset: i32, seconds: i64, expect: bool) {
        let hours = Hours::new(vec![window], vec![(0, offset)]);
        let at = i64::from(FRIDAY) + seconds;
        assert_eq!(hours.hold(at as u32), expect, "{window:?} {seconds}");
    }

    #[test]
    fn a_window_begins_with_its_first_minute_and_ends_before_its_last() {
        let morning = window(1 << 4, 9 * 60, 18 * 60);
        for (seconds, expect) in
            [(9 * 3600 - 1, false), (9 * 3600, true), (18 * 3600 - 1, true), (18 * 3600, false)]
        {
            check(morning, 0, seconds, expect);
        }
        check(morning, 0, 9 * 3600 + 86_400, false);
        check(morning, 0, 9 * 3600 - 86_400, false);
        check(window(1 << 4, 0, 1440), 0, 0, true);
        check(window(1 << 4, 0, 1440), 0, 86_399, true);
        check(window(1 << 4, 0, 1440), 0, 86_400, false);
    }

    #[test]
    fn a_night_belongs_to_the_day_on_which_it_begins() {
        let night = window(1 << 4, 21 * 60, 7 * 60);
        for (hour, expect) in
            [(6, false), (20, false), (21, true), (24, true), (30, true), (31, false), (45, false)]
        {
            check(night, 0, hour * 3600, expect);
        }
    }

    #[test]
    fn the_clock_on_the_wall_counts() {
        let noon = window(Window::EVERY_DAY, 12 * 60, 13 * 60);
        check(noon, 3600, 11 * 3600, true);
        check(noon, 3600, 12 * 3600, false);
        check(noon, -5 * 3600, 17 * 3600, true);
        // Put forward by an hour at half past ten UTC.
        let hours = Hours::new(vec![noon], vec![(0, 3600), (FRIDAY + 37_800, 7200)]);
        let held: Vec<u32> = (0..24).filter(|hour| hours.hold(FRIDAY + hour * 3600)).collect();
        assert_eq!(
            held,
            [] as [u32; 0],
            "from ten to eleven UTC the clock skips noon's half; none starts on the hour"
        );
        let held: Vec<u32> = (0..48).filter(|half| hours.hold(FRIDAY + half * 1800)).collect();
        assert_eq!(held, [21], "half past ten is half past twelve now");
    }

    #[test]
    fn days_of_the_month_are_those_of_the_wall() {
        let first = Window { monthdays: 1, ..window(Window::EVERY_DAY, 0, 1440) };
        let december = 11 * 86_400;
        check(first, 0, december - 1, false);
        check(first, 0, december, true);
        check(first, 3600, december - 1, true);
        check(first, 0, december + 86_400, false);
    }
}
