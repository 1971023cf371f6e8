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
