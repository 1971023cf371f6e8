//! Sizes in octets, as `64MiB`.

use crate::{Misread, Read};

/// The units of size: powers of 1024 and of 1000.
const SIZE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1000),
    ("B", 1),
];

/// Reads `64MiB`, `1GB`, `512kB`, `4096B`; returns octets.
pub fn size(text: &str) -> Read<u64> {
    const EXPECTED: &str = "a size such as 64MiB, 1GiB or 500MB";
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    if number.is_empty() {
        return Err(Misread::whole(text, format!("\"{text}\" is not a size")).expected(EXPECTED));
    }
    if unit.is_empty() && number != "0" {
        return Err(Misread::whole(text, format!("\"{text}\" has no unit"))
            .expected(EXPECTED)
            .hint(format!("\"{text}B\" is that many octets")));
    }
    let scale = match SIZE_UNITS.iter().find(|(word, _)| word.eq_ignore_ascii_case(unit)) {
        Some(&(_, scale)) => scale,
        None if unit.is_empty() => 1,
        None => {
            let misread = Misread::part(
                text.len() - unit.len()..text.len(),
                format!("\"{unit}\" is not a unit of size"),
            )
            .expected("TiB, GiB, MiB, KiB, TB, GB, MB, kB or B");
            return Err(match unit {
                "K" | "k" | "M" | "m" | "G" | "g" | "T" | "t" => {
                    misread.hint(format!("\"{number}{}iB\"?", unit.to_uppercase()))
                }
                _ => misread,
            });
        }
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(scale))
        .ok_or_else(|| Misread::whole(text, format!("\"{text}\" is too large")))
}

/// Writes a size the way [`size`] reads it.
pub fn size_text(octets: u64) -> String {
    let found = SIZE_UNITS.iter().find(|&&(_, scale)| octets >= scale && octets.is_multiple_of(scale));
    found.map_or_else(|| format!("{octets}B"), |(unit, scale)| format!("{}{unit}", octets / scale))
}
