//! Reads `unbound.conf` into the tree that YAML is read into.
//!
//! Every node of the tree points at what the file says, so a mistake in a value names its line
//! there. Whatever the tree holds can be printed as YAML.
//!
//! Never reads a setting of ours: what it makes is checked like any other configuration.

#![forbid(unsafe_code)]

mod changes;
mod facts;
mod glob;
mod keywords;
mod lower;
mod read;
mod tree;

use std::path::Path;

use diagnostic::{FileId, Problem, Sources};
use environment::Environment;
use read::Statements;
use yaml::Entry;

pub use changes::{ChangeError, Changes, Scope, ZoneKind, ZoneServers};
pub use facts::{AuthZone, Facts, FoundElsewhere, OptionValue, is_address, reverse_owner};

pub use lower::{kind_word as local_zone_type, log_level, record_parts};

/// Keywords whose values are secrets.
pub const SECRET_KEYS: [&str; 4] =
    ["cookie-secret", "redis-server-password", "redis-replica-server-password", "secret-seed"];

/// Octets of all files, each as often as it is included: a million local zones take 60 MiB.
pub const OCTETS_MAX: usize = 1 << 30;

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
}

/// Returns all keywords: their sections, their names, their defaults (empty if there is none), and
/// what becomes of them.
pub fn keywords() -> impl Iterator<Item = (&'static str, &'static str, &'static str, Effect)> {
    keywords::all().map(|(section, row)| {
        let effect = match row.becomes {
            keywords::Becomes::Setting => Effect::Settings,
            keywords::Becomes::Nothing(reason) | keywords::Becomes::Silent(reason) => Effect::None(reason),
            keywords::Becomes::Always(reason) => Effect::Always(reason),
            keywords::Becomes::Lacking => Effect::NotYet,
        };
        (section, row.name, row.default, effect)
    })
}

/// Reads the file numbered `main` of `sources`, adds the files that it includes, lays changes over
/// them, and returns the settings that they stand for.
pub fn read(
    main: FileId,
    sources: &mut Sources,
    environment: &dyn Environment,
    changes: &Changes,
    problems: &mut Vec<Problem>,
) -> Vec<Entry> {
    let statements = statements(main, sources, environment, changes, problems);
    lower::lower(&statements, main, problems)
}

/// What mistakes in changes are reported of, as those in a file.
const CHANGES: &str = "run-time changes";

/// Returns what files say, with changes laid over it.
fn statements(
    main: FileId,
    sources: &mut Sources,
    environment: &dyn Environment,
    changes: &Changes,
    problems: &mut Vec<Problem>,
) -> Statements {
    let mut found = read::read(main, sources, environment, Statements::default(), problems);
    if !changes.is_empty() {
        changes.take_away(&mut found);
        let added = sources.add(Path::new(CHANGES), changes.text());
        found = read::read(added, sources, environment, found, problems);
        found.merge_views();
    }
    found
}

/// Reads configurations again that were read before into `sources`, with other changes; nothing is
/// read from files.
pub fn read_again(
    before: &Sources,
    sources: &mut Sources,
    changes: &Changes,
    problems: &mut Vec<Problem>,
) -> Vec<Entry> {
    let main = FileId(0);
    if let Some(first) = before.file(main) {
        sources.add(&first.path, first.text.clone());
    }
    read(main, sources, &facts::AsLoaded(before), changes, problems)
}

#[cfg(test)]
mod tests;
