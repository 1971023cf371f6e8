//! Names of files with wildcards: `*`, `?`, `[a-z]`, `{a,b}` and `~`.

use std::path::{Path, PathBuf};

use crate::Environment;

/// Names that braces may stand for, so that a line of them does not fill the memory.
const NAMES_MAX: usize = 10_000;

/// Returns the files that a name stands for, sorted. A name without wildcards stands for itself,
/// whether there is such a file or not.
pub fn expand(name: &str, environment: &dyn Environment) -> Vec<PathBuf> {
    let name = match (name.strip_prefix('~'), environment.variable("HOME")) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => name.to_owned(),
    };
    let mut names = Vec::new();
    braces(&name, &mut names);
    let mut found = Vec::new();
    for name in names {
        if is_pattern(&name) {
            let mut files = files(&name, environment);
            files.sort();
            found.append(&mut files);
        } else {
            found.push(name.into());
        }
    }
    found
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Writes out the first braces of a name, and all behind them.
fn braces(name: &str, into: &mut Vec<String>) {
    let whole = name.find('{').and_then(|open| {
        let close = open + name[open..].find('}')?;
        Some((open, close))
    });
    let Some((open, close)) = whole else {
        into.push(name.to_owned());
        return;
    };
    for choice in name[open + 1..close].split(',') {
        if into.len() < NAMES_MAX {
            braces(&format!("{}{choice}{}", &name[..open], &name[close + 1..]), into);
        }
    }
}

/// Returns the files that fit a pattern.
fn files(pattern: &str, environment: &dyn Environment) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = vec![PathBuf::new()];
    let parts: Vec<std::path::Component<'_>> = Path::new(pattern).components().collect();
    for (at, part) in parts.iter().enumerate() {
        let text = part.as_os_str().to_string_lossy();
        if !is_pattern(&text) {
            for path in &mut found {
                path.push(part);
            }
            continue;
        }
        let pattern: Vec<char> = text.chars().collect();
        let mut next = Vec::new();
        for directory in &found {
            let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            let Ok(names) = environment.list(directory) else { continue };
            let fits = |name: &String| {
                // As in a shell, hidden files have to be meant.
                (text.starts_with('.') || !name.starts_with('.'))
                    && fits(&pattern, &name.chars().collect::<Vec<char>>())
            };
            next.extend(names.iter().filter(|name| fits(name)).map(|name| directory.join(name)));
        }
        found = next;
        let _ = at;
    }
    found
}

/// Returns whether a name fits a pattern.
fn fits(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where the last star was, and how much of the name it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some('[') => class(&pattern[p..], name[n]),
            Some('?') => Some(1),
            Some(&c) if c == name[n] => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(step), _) => {
                p += step;
                n += 1;
            }
            (None, Some((at, taken))) => {
                star = Some((at, taken + 1));
                p = at + 1;
                n = taken + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// Returns the length of the class of characters that a pattern begins with, if `c` is in it.
fn class(pattern: &[char], c: char) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = if negated { 2 } else { 1 };
    let close = first + 1 + pattern.get(first + 1..)?.iter().position(|&c| c == ']')?;
    let inside = pattern.get(first..close)?;
    let mut at = 0;
    let mut is_in = false;
    while let Some(&low) = inside.get(at) {
        match (inside.get(at + 1), inside.get(at + 2)) {
            (Some('-'), Some(&high)) => {
                is_in |= (low..=high).contains(&c);
                at += 3;
            }
            _ => {
                is_in |= low == c;
                at += 1;
            }
        }
    }
    (is_in != negated).then_some(close + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, name, expect) in [
            ("*.conf", "a.conf", true),
            ("*.conf", "a.conf.bak", false),
            ("a?c", "abc", true),
            ("a[bx-z]c", "ayc", true),
            ("a[!b]c", "abc", false),
            ("a[]]c", "a]c", true),
            ("a[b", "ab", false),
            ("*", "", true),
        ] {
            let chars = |text: &str| text.chars().collect::<Vec<char>>();
            assert_eq!(fits(&chars(pattern), &chars(name)), expect, "{pattern} {name}");
        }
    }

    #[test]
    fn a_name_stands_for_files_in_order_and_for_none_if_none_fits() {
        let files =
            [("/etc/d/b.conf", ""), ("/etc/d/a.conf", ""), ("/etc/d/.c.conf", ""), ("/etc/e/a.conf", "")];
        let memory = Memory::new(&files);
        let names = |name: &str| {
            expand(name, &memory).iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("/etc/d/*.conf"), ["/etc/d/a.conf", "/etc/d/b.conf"]);
        assert_eq!(names("/etc/{e,d}/a*"), ["/etc/e/a.conf", "/etc/d/a.conf"]);
        assert_eq!(names("/etc/d/*.none"), [""; 0]);
        assert_eq!(names("/etc/none.conf"), ["/etc/none.conf"]);
    }
}
