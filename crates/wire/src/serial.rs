//! Numbers that go round, such as serials of zones and times of signatures: which of two is newer
//! (RFC 1982), and which comes next.

use crate::calendar::date_at;

/// How the serial of a new version is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SerialPolicy {
    /// One more than before.
    #[default]
    Increment,
    /// The seconds since 1970; one more than before if that is not newer.
    Unixtime,
    /// The date and two digits, such as 2026112000; one more than before if that is not newer.
    Dateserial,
}

/// Returns whether `a` is newer than `b` (RFC 1982 §3.2). Of two that are exactly half of all
/// numbers apart, neither is.
pub const fn is_newer(a: u32, b: u32) -> bool {
    let ahead = a.wrapping_sub(b);
    ahead != 0 && ahead < 1 << 31
}

/// Returns the serial after this one; 0 is left out, because some take it for none (RFC 2136 §4.2).
pub const fn after(serial: u32) -> u32 {
    match serial.wrapping_add(1) {
        0 => 1,
        next => next,
    }
}

impl SerialPolicy {
    /// Returns the serial after `before`, at `now` in seconds since 1970.
    pub const fn next(self, before: u32, now: u64) -> u32 {
        let wanted = match self {
            Self::Increment => return after(before),
            Self::Unixtime => now as u32,
            Self::Dateserial => {
                let (year, month, day) = date_at(now);
                (year as u32).wrapping_mul(1_000_000).wrapping_add(month * 10_000 + day * 100)
            }
        };
        // Not zero, either, for those who take it for none.
        if is_newer(wanted, before) && wanted != 0 { wanted } else { after(before) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: u32, b: u32, expect: bool) {
        assert_eq!(is_newer(a, b), expect, "{a} after {b}");
    }

    #[test]
    fn serials_are_compared_as_in_rfc_1982() {
        check(2, 1, true);
        check(1, 2, false);
        check(1, 1, false);
        check(0, u32::MAX, true);
        check(5, u32::MAX - 5, true);
        check(0x8000_0000, 0, false);
        check(0, 0x8000_0000, false);
        check(0x7fff_ffff, 0, true);
    }

    #[test]
    fn serials_grow_by_their_policy() {
        // 2026-11-20 12:00 UTC, and a leap day.
        let (now, leap) = (1_795_176_000, 1_709_164_800);
        assert_eq!(SerialPolicy::Increment.next(7, now), 8);
        assert_eq!(SerialPolicy::Increment.next(u32::MAX, now), 1);
        assert_eq!(SerialPolicy::Unixtime.next(7, now), 1_795_176_000);
        assert_eq!(SerialPolicy::Unixtime.next(1_795_176_000, now), 1_795_176_001);
        assert_eq!(SerialPolicy::Dateserial.next(7, now), 2_026_112_000);
        assert_eq!(SerialPolicy::Dateserial.next(2_026_112_000, now), 2_026_112_001);
        assert_eq!(SerialPolicy::Dateserial.next(2_026_111_999, now), 2_026_112_000);
        assert_eq!(SerialPolicy::Unixtime.next(2_026_112_000, now), 2_026_112_001);
        assert_eq!(SerialPolicy::Dateserial.next(7, leap), 2_024_022_900);
    }
}
