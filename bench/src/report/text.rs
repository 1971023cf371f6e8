//! Figures as people read them.

/// Writes `value` of `unit` with about three digits that matter, in a unit that suits its size.
pub(super) fn figure(value: f64, unit: &str) -> String {
    match unit {
        "µs" if value >= 999_500.0 => figure(value / 1e6, "s"),
        "µs" if value >= 999.5 => figure(value / 1e3, "ms"),
        "ms" if value >= 9_999.5 => figure(value / 1e3, "s"),
        "MiB" if value >= 9_999.5 => figure(value / 1024.0, "GiB"),
        "q/s" if value >= 999_500.0 => format!("{} M/s", digits(value / 1e6)),
        "q/s" if value >= 9_999.5 => format!("{} k/s", digits(value / 1e3)),
        "q/s" => format!("{}/s", digits(value)),
        "%" => format!("{} %", digits(value)),
        _ => format!("{} {unit}", digits(value)),
    }
}

/// Writes `value` with about three digits that matter.
pub(super) fn digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if size >= 99.95 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size >= 0.0995 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// Writes a whole number with its thousands set apart.
pub(super) fn rate(value: f64) -> String {
    let digits = format!("{value:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}

/// Writes a ratio.
pub(super) fn ratio(value: f64) -> String {
    format!("{} ×", digits(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_fitting_unit() {
        let check = |value, unit, expect: &str| assert_eq!(figure(value, unit), expect);
        check(1.867, "µs", "1.87 µs");
        check(283.7, "µs", "284 µs");
        check(12_345.6, "µs", "12.3 ms");
        check(1000.0, "µs", "1.00 ms");
        check(2_500_000.0, "µs", "2.50 s");
        check(457_453.0, "q/s", "457 k/s");
        check(1_234_567.0, "q/s", "1.23 M/s");
        check(6_048.0, "q/s", "6048/s");
        assert_eq!([rate(500.0), rate(80_000.0), rate(1e6)], ["500", "80,000", "1,000,000"]);
        check(0.0, "%", "0 %");
        check(0.0123, "%", "0.012 %");
        check(23.04, "MiB", "23.0 MiB");
    }
}
