//! The table of settings in the orders in which it is searched: made at compile time.
//!
//! A start with thousands of changed settings asks for a row many thousand times.

use crate::{GROUPS, Row};

/// How many settings there are.
const COUNT: usize = {
    let (mut count, mut group) = (0, 0);
    while group < GROUPS.len() {
        count += GROUPS[group].len();
        group += 1;
    }
    count
};

/// All settings, in the order of the manual.
const ALL: [&Row; COUNT] = {
    let mut all = [&GROUPS[0][0]; COUNT];
    let (mut at, mut group) = (0, 0);
    while group < GROUPS.len() {
        let mut row = 0;
        while row < GROUPS[group].len() {
            all[at] = &GROUPS[group][row];
            (at, row) = (at + 1, row + 1);
        }
        group += 1;
    }
    all
};

/// All settings by their path.
const BY_PATH: [&Row; COUNT] = sorted(By::Path);
/// All settings by what they are a part of; those of one are in the order of the manual.
const BY_PARENT: [&Row; COUNT] = sorted(By::Parent);

/// What settings are sorted by.
#[derive(Clone, Copy)]
enum By {
    Path,
    Parent,
}

/// Returns the row of a path.
pub(crate) fn find(path: &str) -> Option<&'static Row> {
    let at = BY_PATH.binary_search_by(|row| row.path.as_bytes().cmp(path.as_bytes())).ok()?;
    BY_PATH.get(at).copied()
}

/// Returns the row of what `key` says in `parent`.
pub(crate) fn find_in(parent: &str, key: &str) -> Option<&'static Row> {
    // A key that a file says may have dots of its own.
    if key.contains('.') {
        return None;
    }
    if parent.is_empty() {
        return find(key);
    }
    let sought = || parent.bytes().chain([b'.']).chain(key.bytes());
    let at = BY_PATH.binary_search_by(|row| row.path.bytes().cmp(sought())).ok()?;
    BY_PATH.get(at).copied()
}

/// Returns the rows directly below `parent`, in the order of the manual.
pub(crate) fn children(parent: &str) -> &'static [&'static Row] {
    let begin = BY_PARENT.partition_point(|row| row.parent() < parent);
    let behind = BY_PARENT.get(begin..).unwrap_or_default();
    let count = behind.partition_point(|row| row.parent() == parent);
    behind.get(..count).unwrap_or_default()
}

/// Returns all settings in another order: a merge sort, which leaves equal ones as they were.
const fn sorted(by: By) -> [&'static Row; COUNT] {
    let (mut from, mut to) = (ALL, ALL);
    let mut width = 1;
    while width < COUNT {
        let mut start = 0;
        while start < COUNT {
            let (middle, end) = (least(start + width, COUNT), least(start + 2 * width, COUNT));
            let (mut left, mut right, mut at) = (start, middle, start);
            while at < end {
                let takes_left =
                    left < middle && (right >= end || !is_before(from[right].path, from[left].path, by));
                if takes_left {
                    to[at] = from[left];
                    left += 1;
                } else {
                    to[at] = from[right];
                    right += 1;
                }
                at += 1;
            }
            start = end;
        }
        from = to;
        width *= 2;
    }
    from
}

const fn least(one: usize, other: usize) -> usize {
    if one < other { one } else { other }
}

/// Returns whether one path comes before another.
const fn is_before(one: &str, other: &str, by: By) -> bool {
    let (one_len, other_len) = (key_len(one, by), key_len(other, by));
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one_len && at < other_len {
        if one[at] != other[at] {
            return one[at] < other[at];
        }
        at += 1;
    }
    one_len < other_len
}

/// Returns how many octets of a path count.
const fn key_len(path: &str, by: By) -> usize {
    let path = path.as_bytes();
    let mut at = path.len();
    match by {
        By::Path => at,
        By::Parent => {
            while at > 0 {
                at -= 1;
                if path[at] == b'.' {
                    return at;
                }
            }
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::{Row, children, find, find_in, rows};

    #[test]
    fn every_setting_is_found_where_a_look_at_all_of_them_finds_it() {
        for row in rows() {
            assert!(find(row.path).is_some_and(|found| found.path == row.path), "{}", row.path);
            let found = find_in(row.parent(), row.key());
            assert!(found.is_some_and(|found| found.path == row.path), "{}", row.path);
            for other in [format!("{}x", row.path), format!("{}.x", row.path), row.path.to_uppercase()] {
                assert!(find(&other).is_none(), "{other}");
            }
        }
        assert!(find("").is_none() && find("zz").is_none() && find_in("", "").is_none());
        let above: BTreeSet<&str> = rows().map(Row::parent).collect();
        for parent in above {
            let all: Vec<&str> = rows().filter(|row| row.parent() == parent).map(|row| row.path).collect();
            assert_eq!(children(parent).map(|row| row.path).collect::<Vec<_>>(), all, "{parent}");
        }
        assert_eq!(children("nothing").count() + children("zz").count(), 0);
        assert!(find_in("", "cache.*.size").is_none() && find_in("cache", "*.size").is_none());
        // What a template says, a zone says.
        assert_eq!(children("zone-templates.*").count(), children("zones[]").count());
        assert!(find_in("zone-templates.*", "file").is_some());
    }
}
