//! Days of the Gregorian calendar, counted from 1970-01-01; earlier ones are negative.

/// Days from 0000-03-01 to 1970-01-01. Years that begin in March have the leap day last.
const BEFORE_1970: i64 = 719_468;
/// Days of 400 years.
const ERA: i64 = 146_097;

/// Returns the day of a date. A date that does not exist, such as the 30th of February, is a day
/// after the month's end.
pub const fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - BEFORE_1970
}

/// Returns the day of a date in text form, which must exist. Years have up to four digits, and
/// begin with 1970.
pub fn existing_day(year: u32, month: u32, day: u32) -> Option<u32> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days_in_month = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1970..=9999).contains(&year) || !(1..=days_in_month).contains(&day) {
        return None;
    }
    u32::try_from(day_of(year.into(), month.into(), day.into())).ok()
}

/// Returns year, month and day of a day.
pub const fn date_of(day: i64) -> (i64, u32, u32) {
    let days = day + BEFORE_1970;
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
    (year, month as u32, day as u32)
}

/// Returns year, month and day of a moment in seconds since 1970, in UTC.
pub const fn date_at(unix_seconds: u64) -> (i64, u32, u32) {
    date_of((unix_seconds / 86_400) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_a_thousand_years_has_its_date() {
        let mut expect = day_of(1600, 1, 1);
        assert_eq!(expect, -135_140);
        for year in 1600..2600 {
            let is_leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
            let months = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, days) in (1..).zip(months) {
                for day in 1..=days {
                    assert_eq!(day_of(year, month.into(), day.into()), expect, "{year}-{month}-{day}");
                    assert_eq!(date_of(expect), (year, month, day), "{expect}");
                    expect += 1;
                }
            }
        }
    }

    #[test]
    fn only_days_that_exist_are_taken() {
        assert_eq!(existing_day(1970, 1, 1), Some(0));
        assert_eq!(existing_day(2000, 2, 29), Some(11_016));
        assert_eq!(existing_day(2100, 2, 29), None);
        assert_eq!(existing_day(2026, 4, 31), None);
        assert_eq!(existing_day(2026, 13, 1), None);
        assert_eq!(existing_day(2026, 1, 0), None);
        assert_eq!(existing_day(1969, 12, 31), None);
    }
}
