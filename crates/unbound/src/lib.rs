//! Reads `unbound.conf` into the tree that YAML is read into.
//!
//! Every node of the tree points at what the file says, so a mistake in a value names its line
//! there. Whatever the tree holds can be printed as YAML.
//!
//! Never reads a setting of ours: what it makes is checked like any other configuration.

#![forbid(unsafe_code)]

mod glob;
mod keywords;
mod lower;
mod read;
mod tree;

use diagnostic::{FileId, Problem, Sources};
use environment::Environment;
use yaml::Entry;

/// Keywords whose values are secrets.
pub const SECRET_KEYS: [&str; 4] =
    ["cookie-secret", "redis-server-password", "redis-replica-server-password", "secret-seed"];

/// What becomes of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It becomes settings.
    Settings,
    /// It has none, for this reason.
    None(&'static str),
    /// What "yes" asks for happens always, for this reason.
    Always(&'static str),
    /// None yet: the file is read all the same.
    NotYet,
    /// None yet: the file is refused unless it says the default.
    Refused,
}

/// Returns all keywords: their sections, their names, their defaults (empty if there is none), and
/// what becomes of them.
pub fn keywords() -> impl Iterator<Item = (&'static str, &'static str, &'static str, Effect)> {
    keywords::all().map(|(section, row)| {
        let effect = match row.becomes {
            keywords::Becomes::Setting => Effect::Settings,
            keywords::Becomes::Nothing(reason) => Effect::None(reason),
            keywords::Becomes::Always(reason) => Effect::Always(reason),
            keywords::Becomes::Lacking => Effect::NotYet,
            keywords::Becomes::Refused => Effect::Refused,
        };
        (section, row.name, row.default, effect)
    })
}

/// Reads the file numbered `main` of `sources`, adds the files that it includes, and returns the
/// settings that they stand for.
pub fn read(
    main: FileId,
    sources: &mut Sources,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Vec<Entry> {
    let statements = read::read(main, sources, environment, problems);
    lower::lower(&statements, main, problems)
}

#[cfg(test)]
mod tests;
