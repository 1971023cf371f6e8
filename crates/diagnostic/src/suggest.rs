//! "Did you mean": the nearest of the words that would have been right.

/// Returns the candidate that `found` is most likely a slip of the finger away from.
///
/// Letter case, `_` and `-` do not count; otherwise at most a third of the letters may differ.
pub fn nearest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    let found = plain(found);
    if found.chars().count() > WORD_CHARACTERS_MAX {
        return None;
    }
    let allowed = (found.chars().count() / 3).max(1);
    let length = found.chars().count();
    candidates
        .into_iter()
        // Each letter more or less is one that differs.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        .map(|candidate| (distance(&found, &plain(candidate)), candidate))
        .filter(|&(distance, candidate)| distance <= allowed && distance < candidate.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Characters of a word that is worth correcting; the comparison costs the square.
const WORD_CHARACTERS_MAX: usize = 64;

/// Counts the insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, &from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &to) in b.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(from != to)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from == b[j - 1] && a[i - 1] == to {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// Lists words as a person would: `a, b or c`.
pub fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: &str, expect: Option<&str>) {
        assert_eq!(nearest(found, ["cloudflare", "min-ttl", "max-ttl", "AAAA", "off"]), expect, "{found}");
    }

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        check("clodflare", Some("cloudflare"));
        check("min_ttl", Some("min-ttl"));
        check("mni-ttl", Some("min-ttl"));
        check("aaaa", Some("AAAA"));
        check("of", Some("off"));
        check("quad9", None);
        check("", None);
        check(&"x".repeat(10_000), None);
    }
}
