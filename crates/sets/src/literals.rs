//! Finds what must be in a text for a regular expression to fit it.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Texts that are followed through alternatives and classes at once.
const EXACT_MAX: usize = 32;
/// Octets after which a literal is long enough to tell texts apart.
const OCTETS_MAX: usize = 64;

/// What is known about the texts that a part of a regular expression fits.
enum Known {
    /// They are exactly these.
    Exact(Vec<Vec<u8>>),
    /// Each contains at least one of these; nothing is known if there are none.
    Contains(Vec<Vec<u8>>),
}

/// Returns texts of which every text that fits contains at least one; empty if there are none such.
pub(crate) fn required(hir: &Hir) -> Vec<Vec<u8>> {
    match known(hir) {
        Known::Exact(literals) => fewest(usable(literals)),
        Known::Contains(literals) => fewest(literals),
    }
}

/// Leaves out texts that contain another of them: whatever contains those contains that one.
fn fewest(literals: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let contains = |text: &[u8], part: &[u8]| text.windows(part.len()).any(|window| window == part);
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut sorted = literals;
    sorted.sort_by_key(Vec::len);
    for literal in sorted {
        if !kept.iter().any(|part| contains(&literal, part)) {
            kept.push(literal);
        }
    }
    kept
}

/// Returns nothing if one of the literals says nothing.
fn usable(literals: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if literals.iter().any(Vec::is_empty) { Vec::new() } else { literals }
}

fn known(hir: &Hir) -> Known {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Known::Exact(vec![Vec::new()]),
        HirKind::Literal(literal) => Known::Exact(vec![literal.0.to_vec()]),
        HirKind::Class(class) => members(class).map_or(Known::Contains(Vec::new()), Known::Exact),
        HirKind::Repetition(repetition) => {
            if repetition.min == 0 {
                return Known::Contains(Vec::new());
            }
            match known(&repetition.sub) {
                Known::Exact(literals) if repetition.max == Some(1) => Known::Exact(literals),
                Known::Exact(literals) => Known::Contains(usable(literals)),
                contains @ Known::Contains(_) => contains,
            }
        }
        HirKind::Capture(capture) => known(&capture.sub),
        HirKind::Concat(parts) => concatenation(parts),
        HirKind::Alternation(parts) => alternation(parts),
    }
}

/// Returns the members of a small class. A name in lower case has no capital letters, so they do not count.
fn members(class: &Class) -> Option<Vec<Vec<u8>>> {
    let mut members = Vec::new();
    match class {
        Class::Bytes(class) => {
            for range in class.ranges() {
                for octet in (range.start()..=range.end()).filter(|octet| !octet.is_ascii_uppercase()) {
                    members.push(vec![octet]);
                    if members.len() > EXACT_MAX {
                        return None;
                    }
                }
            }
        }
        Class::Unicode(class) => {
            for range in class.ranges() {
                for c in (range.start()..=range.end()).filter(|c| !c.is_ascii_uppercase()) {
                    members.push(c.to_string().into_bytes());
                    if members.len() > EXACT_MAX {
                        return None;
                    }
                }
            }
        }
    }
    Some(members)
}

fn concatenation(parts: &[Hir]) -> Known {
    let mut row = vec![Vec::new()];
    let mut best: Vec<Vec<u8>> = Vec::new();
    let mut is_exact = true;
    for part in parts {
        match known(part) {
            Known::Exact(next) if row.len() * next.len() <= EXACT_MAX && !is_long(&row) => {
                row = row
                    .iter()
                    .flat_map(|begin| next.iter().map(move |end| [begin.as_slice(), end.as_slice()].concat()))
                    .collect();
            }
            Known::Exact(next) => {
                best = better(best, usable(row));
                row = next;
                is_exact = false;
            }
            Known::Contains(literals) => {
                best = better(best, usable(std::mem::replace(&mut row, vec![Vec::new()])));
                best = better(best, literals);
                is_exact = false;
            }
        }
    }
    if is_exact { Known::Exact(row) } else { Known::Contains(better(best, usable(row))) }
}

fn is_long(row: &[Vec<u8>]) -> bool {
    row.iter().any(|literal| literal.len() > OCTETS_MAX)
}

fn alternation(parts: &[Hir]) -> Known {
    let (mut all, mut is_exact) = (Vec::new(), true);
    for part in parts {
        match known(part) {
            Known::Exact(literals) => all.extend(literals),
            Known::Contains(literals) if literals.is_empty() => return Known::Contains(literals),
            Known::Contains(literals) => {
                is_exact = false;
                all.extend(literals);
            }
        }
        if all.len() > EXACT_MAX {
            return Known::Contains(if is_exact { usable(all) } else { all });
        }
    }
    if is_exact { Known::Exact(all) } else { Known::Contains(usable(all)) }
}

/// Returns the literals that fewer texts contain.
fn better(one: Vec<Vec<u8>>, other: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let cost = |literals: &[Vec<u8>]| match literals {
        [] => f64::INFINITY,
        literals => literals.iter().map(|literal| rarest(literal)).sum(),
    };
    if cost(&other) < cost(&one) { other } else { one }
}

/// Returns how often the part of up to four octets of a literal that is rarest is in a name, by a rough guess.
pub(crate) fn rarest(literal: &[u8]) -> f64 {
    let size = literal.len().clamp(1, crate::patterns::PIECE_OCTETS);
    literal.windows(size).map(frequency).min_by(f64::total_cmp).unwrap_or(1.0)
}

/// Pieces that a large part of all names contain.
const COMMON: [&[u8]; 16] = [
    b".com", b"com", b"www.", b".net", b"net", b".org", b".cn", b".co", b"com.", b".ads", b"api.", b"cdn.",
    b"goog", b"oogl", b"ogle", b"gle.",
];

/// Returns how often a piece is in a name, by a rough guess.
pub(crate) fn frequency(part: &[u8]) -> f64 {
    if COMMON
        .iter()
        .any(|common| *common == part || (part.len() < 3 && common.windows(part.len()).any(|p| p == part)))
    {
        return 0.3;
    }
    // Places in a name times how often each octet stands in one of them.
    20.0 * part.iter().map(|octet| octet_frequency(*octet)).product::<f64>()
}

/// Returns how often an octet stands in a place of a name, by a rough guess.
const fn octet_frequency(octet: u8) -> f64 {
    match octet {
        b'.' | b'e' | b'a' | b'o' => 0.08,
        b'c' | b'i' | b'n' | b'r' | b's' | b't' | b'm' => 0.06,
        b'd' | b'l' | b'u' | b'g' | b'p' | b'b' | b'h' => 0.03,
        b'f' | b'k' | b'v' | b'w' | b'y' | b'-' | b'0'..=b'9' => 0.015,
        b'j' | b'q' | b'x' | b'z' => 0.005,
        _ => 0.001,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(regex: &str, expect: &[&str]) {
        let hir = crate::builder::parse_regex(regex).expect("a regular expression");
        let found: Vec<String> =
            required(&hir).iter().map(|literal| String::from_utf8_lossy(literal).into_owned()).collect();
        assert_eq!(found, expect, "{regex}");
    }

    #[test]
    fn required_texts_are_found() {
        check(r"^ad[sx]?\.example\.org$", &[".example.org"]);
        check(r"(^|\.)tracker[0-9]+\.com$", &["tracker"]);
        check(r"google\.(com|de)$", &["google.de", "google.com"]);
        check(r"^(foo|ba[rz])-", &["foo-", "bar-", "baz-"]);
        check(r"^[0-9a-f]{32}\.", &["."]);
        check(r"^.+$", &[]);
        check(r"^(a.*|)$", &[]);
        check(r"(abc)+x", &["abc"]);
        check(r"(?:xyz){2,3}", &["xyz"]);
        check(r"^Shop[AB]x", &["shopax", "shopbx"]);
    }
}
