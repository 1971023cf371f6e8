//! Serial numbers: which of two is newer (RFC 1982), and which comes next.

/// How the serial of a new version is chosen when the version does not say.
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

/// Returns whether serial `a` is newer than `b` (RFC 1982 §3.2). Of two that are exactly half of all numbers apart, neither is.
pub const fn is_newer(a: u32, b: u32) -> bool {
    let ahead = a.wrapping_sub(b);
    ahead != 0 && ahead < 1 << 31
}

impl SerialPolicy {
    /// Returns the serial after `before`, at `now` in seconds since 1970.
    pub const fn next(self, before: u32, now: u64) -> u32 {
        let wanted = match self {
            Self::Increment => before.wrapping_add(1),
            Self::Unixtime => now as u32,
            Self::Dateserial => {
                let (year, month, day) = wire::text::date_of(now / 86_400);
                (year * 1_000_000 + month * 10_000 + day * 100) as u32
            }
        };
        let next = if is_newer(wanted, before) { wanted } else { before.wrapping_add(1) };
        // Zero confuses some secondaries (RFC 2136 §4.2 asks to leave it out).
        if next == 0 { 1 } else { next }
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
        assert_eq!(SerialPolicy::Dateserial.next(7, leap), 2_024_022_900);
    }
}
