//! Paths of settings that can be changed: `cache.main.size`, `local.nas.home.arpa`.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use diagnostic::suggest::nearest;
use schema::{Kind, RoleWord, Row};

/// What no change may set: where changes are kept and who may make them, which must be known before
/// they are read, and other files.
const FIXED: [&str; 5] =
    ["include", "server.state-directory", "server.user", "control.changes", "control.locked"];
/// What holds some of these, and is set part by part for that.
const HOLDERS: [&str; 2] = ["server", "control"];
/// Settings that are data: what is blocked, allowed or local, and nothing about how queries are
/// answered or sent.
const DATA: [&str; 6] = ["sets", "local", "hosts", "records", "zones", "zone-directories"];

/// Where a setting is: keys from the top, of which some are names that the user chose. Copies share
/// them: there are thousands of changes, and several lists of all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingPath(Arc<Keys>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Keys {
    keys: Vec<String>,
    /// The same as it is written.
    text: String,
}

impl SettingPath {
    /// Reads a path. A name that has dots may stand in quotation marks, and must where settings
    /// follow that the name could be taken for: `resolvers.default.zones."a.stub".stub`.
    ///
    /// # Errors
    ///
    /// Why it is none, in one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = split(text)?;
        if parts.is_empty() {
            return Err("the path is empty (expected such as cache.main.size)".to_owned());
        }
        let mut keys = Vec::new();
        walk(&parts, "", &mut keys)?;
        let path = Self::of(keys);
        if FIXED.contains(&path.as_str()) {
            return Err(format!(
                "\"{path}\" is set in the file alone: it must be known before changes are read"
            ));
        }
        if HOLDERS.contains(&path.as_str()) {
            return Err(format!(
                "\"{path}\" as a whole is set in the file alone; change its settings one by one"
            ));
        }
        Ok(path)
    }

    fn of(keys: Vec<String>) -> Self {
        let is_plain = |at: usize, key: &str| at + 1 == keys.len() || !key.contains(['.', '"']);
        let written = keys.iter().enumerate().map(|(at, key)| match is_plain(at, key) {
            true => key.clone(),
            false => format!("\"{key}\""),
        });
        let text = written.collect::<Vec<_>>().join(".");
        Self(Arc::new(Keys { keys, text }))
    }

    /// Returns its keys, from the top.
    pub fn keys(&self) -> &[String] {
        &self.0.keys
    }

    /// Returns it as it is written.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns whether it is `other` or part of what stands there.
    pub fn is_within(&self, other: &Self) -> bool {
        self.keys().starts_with(other.keys())
    }

    /// Returns who may change it: the role that may change all that stands there.
    pub fn role(&self) -> RoleWord {
        schema::role_of(&row_of(self.keys()))
    }

    /// Returns whether it is data, and nothing about how queries are answered or sent.
    pub fn is_data(&self) -> bool {
        self.keys().first().is_some_and(|key| DATA.contains(&key.as_str()))
    }
}

/// Paths are ordered by their keys, so that what holds a setting is found by some of these.
impl Borrow<[String]> for SettingPath {
    fn borrow(&self) -> &[String] {
        self.keys()
    }
}

impl fmt::Display for SettingPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the row of the schema that keys lead to, with `*` in place of names that the user chose.
pub(super) fn row_of(keys: &[String]) -> String {
    let mut row = String::new();
    let mut is_name = false;
    for key in keys {
        if is_name {
            row.push_str(".*");
            is_name = false;
            continue;
        }
        if !row.is_empty() {
            row.push('.');
        }
        row.push_str(key);
        is_name = schema::find(&row).is_some_and(|row| matches!(row.kind, Kind::Named(_)));
    }
    row
}

/// A part of a path as it is written.
struct Part<'t> {
    text: &'t str,
    is_quoted: bool,
}

/// Splits a path at its dots.
fn split(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (inside, after) = quoted
                    .split_once('"')
                    .ok_or_else(|| format!("a quotation mark of \"{text}\" is not closed"))?;
                (Part { text: inside, is_quoted: true }, after)
            }
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                let (inside, after) = rest.split_at(end);
                (Part { text: inside, is_quoted: false }, after)
            }
        };
        if part.text.is_empty() {
            return Err(format!("\"{text}\" has an empty part"));
        }
        parts.push(part);
        rest = match after.strip_prefix('.') {
            Some("") => return Err(format!("\"{text}\" ends in a dot")),
            Some(rest) => rest,
            None if after.is_empty() => after,
            None => return Err(format!("\"{text}\" has something behind a quotation mark")),
        };
    }
    Ok(parts)
}

/// Follows a path in the schema from what `parent` names.
fn walk(parts: &[Part<'_>], parent: &str, keys: &mut Vec<String>) -> Result<(), String> {
    let Some((first, rest)) = parts.split_first() else { return Ok(()) };
    let row = child(parent, first.text)?;
    keys.push(row.key().to_owned());
    if rest.is_empty() {
        return Ok(());
    }
    match row.kind {
        Kind::Section => walk(rest, row.path, keys),
        Kind::Named(_) => walk_name(rest, row, keys),
        Kind::Items | Kind::List(_) | Kind::One(_) => {
            let at = keys.join(".");
            Err(format!("\"{at}\" has no parts with names: it is set as a whole"))
        }
    }
}

/// Follows the name that the user chose.
fn walk_name(parts: &[Part<'_>], row: &Row, keys: &mut Vec<String>) -> Result<(), String> {
    let below = format!("{}.*", row.path);
    let whole = || parts.iter().map(|part| part.text).collect::<Vec<_>>().join(".");
    if schema::find(&below).is_some() {
        keys.push(whole());
        return Ok(());
    }
    let (name, rest) = match parts {
        [first, rest @ ..] if first.is_quoted => (first.text.to_owned(), rest),
        _ => {
            // The first part that is a setting ends the name.
            let is_setting =
                |part: &Part<'_>| !part.is_quoted && schema::find_in(&below, part.text).is_some();
            match parts.iter().skip(1).position(is_setting) {
                Some(at) => {
                    let (name, rest) = parts.split_at(at + 1);
                    (name.iter().map(|part| part.text).collect::<Vec<_>>().join("."), rest)
                }
                // Names of zones have dots, those of groups and caches have none.
                None if matches!(row.kind, Kind::Named("zone")) => (whole(), &[][..]),
                None => match parts.split_first() {
                    Some((first, rest)) => (first.text.to_owned(), rest),
                    None => return Ok(()),
                },
            }
        }
    };
    keys.push(name);
    walk(rest, &below, keys)
}

/// Returns the setting of this key directly below `parent`.
fn child(parent: &str, key: &str) -> Result<&'static Row, String> {
    if let Some(row) = schema::find_in(parent, key) {
        return Ok(row);
    }
    let near = nearest(key, schema::children(parent).map(Row::key));
    let hint = near.map_or_else(String::new, |near| format!(" (did you mean \"{near}\"?)"));
    Err(match parent {
        "" => format!("unknown setting \"{key}\"{hint}"),
        parent => format!("unknown setting \"{key}\" in \"{parent}\"{hint}"),
    })
}
