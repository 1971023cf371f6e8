//! Finds what must be in a name for a regular expression to fit it.
//!
//! A name is looked at between two dots, one before its first label and one after its last: what
//! must be at its begin or at its end is a text like any other then, and `(^|\.)ads` needs `.ads`.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Texts that are followed through alternatives and classes at once.
const EXACT_MAX: usize = 32;
/// Octets after which a literal is long enough to tell texts apart.
const OCTETS_MAX: usize = 64;

/// What stands for the begin of a name while literals are put together.
const BEGIN: u8 = 0;
/// What stands for its end.
const END: u8 = 1;

/// How often some label begins with a piece, at least, for all that is known: one of up to four
/// octets, of up to six, of more. Labels are words: how rare they are is not a matter of their
/// letters alone.
const BEGIN_FREQUENCIES_MIN: [f64; 3] = [0.02, 0.005, 0.001];

/// What is known about the texts that a part of a regular expression fits.
enum Known {
    /// They are exactly these.
    Exact(Vec<Vec<u8>>),
    /// Each contains at least one of these; nothing is known if there are none.
    Contains(Vec<Vec<u8>>),
}

/// Returns what must be in every name that fits, between its dots: of each row of texts at least
/// one. There may be no row.
pub(crate) fn required(hir: &Hir) -> Vec<Vec<Vec<u8>>> {
    let mut part = hir;
    while let HirKind::Capture(capture) = part.kind() {
        part = &capture.sub;
    }
    let rows = match part.kind() {
        HirKind::Concat(parts) => rows(parts).0,
        _ => match known(part) {
            Known::Exact(literals) | Known::Contains(literals) => vec![literals],
        },
    };
    let finished =
        rows.iter().map(|row| fewest(usable(row.iter().map(|literal| between_dots(literal)).collect())));
    finished.filter(|row| !row.is_empty()).collect()
}

/// Returns what every name that fits ends with, the dot behind its last label included; nothing if
/// nothing is known.
pub(crate) fn tail(hir: &Hir) -> Vec<u8> {
    let mut part = hir;
    while let HirKind::Capture(capture) = part.kind() {
        part = &capture.sub;
    }
    let last = match part.kind() {
        HirKind::Concat(parts) => rows(parts).0.pop(),
        _ => match known(part) {
            Known::Exact(literals) => Some(literals),
            Known::Contains(_) => None,
        },
    };
    let Some(literals) = last else { return Vec::new() };
    if !literals.iter().all(|literal| literal.contains(&END)) {
        return Vec::new();
    }
    let mut texts = literals.iter().map(|literal| between_dots(literal));
    let Some(mut tail) = texts.next() else { return Vec::new() };
    for text in texts {
        let common = tail.iter().rev().zip(text.iter().rev()).take_while(|(one, other)| one == other).count();
        tail.drain(..tail.len() - common);
    }
    tail
}

/// Returns a literal with dots for the begin and the end of the name, and without what cannot be
/// beyond them.
///
/// Both stand there as often as the expression says so.
fn between_dots(literal: &[u8]) -> Vec<u8> {
    let (begins, literal) = match literal.iter().rposition(|&octet| octet == BEGIN) {
        Some(at) => (true, &literal[at + 1..]),
        None => (false, literal),
    };
    let (ends, literal) = match literal.iter().position(|&octet| octet == END) {
        Some(at) => (true, &literal[..at]),
        None => (false, literal),
    };
    // A dot alone is in every name.
    let dot = |is_there: bool| if is_there && !literal.is_empty() { ".".as_bytes() } else { &[] };
    [dot(begins), literal, dot(ends)].concat()
}

/// Returns the literal of an expression if it can be told from what stands for the begin and the
/// end.
fn plain(literal: &[u8]) -> Known {
    if literal.iter().any(|octet| [BEGIN, END].contains(octet)) {
        return Known::Contains(Vec::new());
    }
    Known::Exact(vec![literal.to_vec()])
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
        HirKind::Look(Look::Start) => Known::Exact(vec![vec![BEGIN]]),
        HirKind::Look(Look::End) => Known::Exact(vec![vec![END]]),
        HirKind::Empty | HirKind::Look(_) => Known::Exact(vec![Vec::new()]),
        HirKind::Literal(literal) => plain(&literal.0),
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

/// Returns the members of a small class. A name in lower case has no capital letters, so they do
/// not count.
fn members(class: &Class) -> Option<Vec<Vec<u8>>> {
    let mut members: Vec<Vec<u8>> = Vec::new();
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
    let is_plain = |member: &Vec<u8>| matches!(plain(member), Known::Exact(_));
    members.iter().all(is_plain).then_some(members)
}

fn concatenation(parts: &[Hir]) -> Known {
    let (mut rows, is_exact) = rows(parts);
    match rows.pop() {
        Some(row) if is_exact => Known::Exact(row),
        last => Known::Contains(rows.into_iter().chain(last).map(usable).fold(Vec::new(), better)),
    }
}

/// Returns rows of texts, of each of which a text that fits a concatenation contains at least one,
/// and whether it is exactly one of the only row.
fn rows(parts: &[Hir]) -> (Vec<Vec<Vec<u8>>>, bool) {
    let mut rows = Vec::new();
    let mut row = vec![Vec::new()];
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
                rows.push(std::mem::replace(&mut row, next));
                is_exact = false;
            }
            Known::Contains(literals) => {
                rows.push(std::mem::replace(&mut row, vec![Vec::new()]));
                rows.push(literals);
                is_exact = false;
            }
        }
    }
    rows.push(row);
    (rows, is_exact)
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

/// Returns how often the part of up to four octets of a literal that is rarest is in a name, by a
/// rough guess.
pub(crate) fn rarest(literal: &[u8]) -> f64 {
    let literal = between_dots(literal);
    let size = literal.len().clamp(1, crate::patterns::PIECE_OCTETS);
    literal.windows(size).map(frequency).min_by(f64::total_cmp).unwrap_or(f64::INFINITY)
}

/// Returns what labels begin with if a text contains the literal, each with its place in it: up to
/// so many octets as a piece has, the dot behind the label included if the number is even then.
pub(crate) fn begins(literal: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let dots = literal.iter().enumerate().filter(|(_, octet)| **octet == b'.');
    dots.filter_map(|(dot, _)| {
        let rest = literal.get(dot + 1..)?;
        let len = rest.iter().position(|&octet| octet == b'.').map_or(rest.len(), |end| end + 1);
        // An even number: each length in use is another look-up for each label.
        let piece = rest.get(..len.min(crate::patterns::BEGIN_OCTETS) & !1)?;
        (!piece.is_empty()).then_some((dot + 1, piece))
    })
}

/// Returns how often some label of a name begins with a piece, by a rough guess.
pub(crate) fn begin_frequency(piece: &[u8]) -> f64 {
    // Short labels are those that all names have in common.
    let is_short = piece.len() <= 4 && piece.ends_with(b".");
    if is_short || piece.len() <= 2 || COMMON.contains(&piece) {
        return 0.3;
    }
    let [of_four, of_six, of_more] = BEGIN_FREQUENCIES_MIN;
    let least = match piece.len() {
        0..=4 => of_four,
        5 | 6 => of_six,
        _ => of_more,
    };
    least.max(3.0 * piece.iter().map(|octet| octet_frequency(*octet)).product::<f64>())
}

/// Pieces that a large part of all names contain.
const COMMON: [&[u8]; 18] = [
    b".com", b"com", b"www.", b".net", b"net", b".org", b".cn", b".co", b"com.", b".ads", b"api.", b"cdn.",
    b"goog", b"oogl", b"ogle", b"gle.", b"info", b"arpa",
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
        let shown = |literal: &Vec<u8>| String::from_utf8_lossy(literal).into_owned();
        let found: Vec<String> =
            required(&hir).iter().map(|row| row.iter().map(shown).collect::<Vec<_>>().join("|")).collect();
        assert_eq!(found, expect, "{regex}");
    }

    #[test]
    fn what_names_must_end_with_is_found() {
        let check = |regex: &str, expect: &str| {
            let hir = crate::builder::parse_regex(regex).expect("a regular expression");
            assert_eq!(String::from_utf8_lossy(&tail(&hir)), expect, "{regex}");
        };
        check(r"^ads[0-9]+\.example\.org$", ".example.org.");
        check(r"(^|\.)ads(cdn|img)[0-9]*\.Example$", ".example.");
        check(r"ads\.(com|de\.com)$", ".com.");
        check(r"(ads\.com)$", "ads.com.");
        check(r"(ads\.com$)", "ads.com.");
        check(r"^(ads|bads)$", "ads.");
        check(r"ads\.com", "");
        check(r"ads\.com$|x", "");
        check(r"ads[0-9]+$", "");
        check(r"ads(\.com$)?", "");
        check(r"ads(\.com$)*", "");
        check(r"ads(?m:$)", "");
        check(r"abc($|z)($|z)", "");
        check(r"^$", "");
        check(r"", "");
        check(r"ads.\.com$.*", "");
        check(r"(^|[a-z0-9]\.)(a|b)\.com$", ".com.");
    }

    #[test]
    fn required_texts_are_found() {
        check(r"^ad[sx]?\.example\.org$", &[".ad", ".example.org."]);
        check(r"(^|\.)tracker[0-9]+\.com$", &[".tracker", "0|1|2|3|4|5|6|7|8|9", ".com."]);
        check(r"google\.(com|de)$", &["google.de.|google.com."]);
        check(r"^(foo|ba[rz])-", &[".foo-|.bar-|.baz-"]);
        check(r"^[a-f]{32}\.", &["a|b|c|d|e|f", "."]);
        check(r"(^|\.)[^.]+\.example$", &[".example."]);
        check(r"(x|^(a|b)cd+)", &["x|.ac|.bc"]);
        check(r"^.+$", &[]);
        check(r"^$", &[]);
        check(r"(^|x)(^|y)abc", &[".abc|.yabc|xyabc"]);
        check(r"abc($|z)($|z)", &["abc.|abcz.|abczz"]);
        check(r"(?m)^abc$", &["abc"]);
        check(r"a\x00bcde", &[]);
        check(r"^(a.*|)$", &[]);
        check(r"(abc)+x", &["abc", "x"]);
        check(r"(?:xyz){2,3}", &["xyz"]);
        check(r"^Shop[AB]x", &[".shopax|.shopbx"]);
    }
}
