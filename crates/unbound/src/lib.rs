//! Reads `unbound.conf` into the tree that YAML is read into.
//!
//! Every node of the tree points at what the file says, so a mistake in a value names its line
//! there. Whatever the tree holds can be printed as YAML.
//!
//! Never reads a setting of ours: what it makes is checked like any other configuration.

#![forbid(unsafe_code)]

mod apart;
mod changes;
mod facts;
mod keywords;
mod kind;
mod lower;
mod names;
mod read;
mod tree;
mod words;

use std::path::Path;

use apart::Names;
use diagnostic::{FileId, Problem, Sources, io_text};
use environment::Environment;
use read::{Context, Statements};
use yaml::Entry;

pub use changes::{ChangeError, Changes, Scope, ZoneKind, ZoneServers};
pub use facts::{AuthZone, Facts, FoundElsewhere, OptionValue, is_address};
pub use names::reverse_owner;

pub use kind::kind_word as local_zone_type;
pub use lower::{log_level, module_order_mistake, record_parts};

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
    /// It becomes settings, and this is different.
    Partly(&'static str),
    /// It has none, for this reason.
    None(&'static str),
    /// What "yes" asks for happens always, for this reason.
    Always(&'static str),
}

/// Returns all keywords: their sections, their names, their defaults (empty if there is none), and
/// what becomes of them.
pub fn keywords() -> impl Iterator<Item = (&'static str, &'static str, &'static str, Effect)> {
    keywords::all().map(|(section, row)| {
        let effect = match row.becomes {
            keywords::Becomes::Setting => Effect::Settings,
            keywords::Becomes::Partly(difference) => Effect::Partly(difference),
            keywords::Becomes::Nothing(reason) | keywords::Becomes::Silent(reason) => Effect::None(reason),
            keywords::Becomes::Always(reason) => Effect::Always(reason),
        };
        (section, row.name, row.default, effect)
    })
}

/// Reads the file `path` to `sources`, and the files that it includes, lays changes over them, and
/// returns the settings that they stand for; `None` if the file cannot be read.
pub fn read(
    path: &Path,
    sources: &mut Sources,
    environment: &dyn Environment,
    changes: &Changes,
    problems: &mut Vec<Problem>,
) -> Option<Vec<Entry>> {
    let main = FileId(sources.files().count() as u16);
    let context = Context { sources, environment, problems, names: Names::Kept };
    let statements = statements(path, context, changes)?;
    Some(lower::lower(&statements, main, problems))
}

/// Like [`read`], for whoever only wants to know what is wrong: names of local zones that are alike
/// are checked and forgotten, so that block lists take no memory.
pub fn check(
    path: &Path,
    sources: &mut Sources,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Option<Vec<Entry>> {
    let changes = Changes::default();
    let mut known = (sources.clone(), problems.clone());
    let context =
        Context { sources: &mut known.0, environment, problems: &mut known.1, names: Names::Forgotten };
    match statements(path, context, &changes) {
        // Somebody asks for zones by their names.
        Some(statements) if statements.names_zones() => read(path, sources, environment, &changes, problems),
        statements => {
            let main = FileId(sources.files().count() as u16);
            (*sources, *problems) = known;
            Some(lower::lower(&statements?, main, problems))
        }
    }
}

/// What mistakes in changes are reported of, as those in a file.
const CHANGES: &str = "run-time changes";

/// Returns what files say, with changes laid over it; `None` if the main file cannot be read.
fn statements(path: &Path, context: Context<'_>, changes: &Changes) -> Option<Statements> {
    let Context { sources, environment, problems, names } = context;
    let found = match environment.open(path, OCTETS_MAX as u64) {
        Ok(input) => {
            let context = Context { sources: &mut *sources, environment, problems: &mut *problems, names };
            let (found, is_read) = read::read(path, input, context, Statements::default());
            is_read.then_some(found)
        }
        Err(error) => {
            let file = sources.add(path, String::new());
            problems.push(Problem::of_file(file, format!("cannot read it: {}", io_text(&error))));
            None
        }
    };
    let mut found = found?;
    if !changes.is_empty() {
        changes.take_away(&mut found);
        let text = changes.text();
        let context = Context { sources, environment, problems, names };
        (found, _) = read::read(Path::new(CHANGES), text.as_bytes(), context, found);
        found.merge_views();
    }
    Some(found)
}

/// Reads configurations again that were read before into `sources`, with other changes; nothing is
/// read from files.
pub fn read_again(
    before: &Sources,
    sources: &mut Sources,
    changes: &Changes,
    problems: &mut Vec<Problem>,
) -> Option<Vec<Entry>> {
    let main = FileId(0);
    let path = &before.file(main)?.path;
    let environment = facts::AsLoaded(before);
    let context = Context { sources: &mut *sources, environment: &environment, problems, names: Names::Kept };
    let mut statements = statements(path, context, changes)?;
    sources.share_words(before);
    statements.sources = sources.shared();
    Some(lower::lower(&statements, main, problems))
}

#[cfg(test)]
mod tests;
