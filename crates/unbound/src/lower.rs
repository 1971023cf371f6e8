//! Statements to settings: each family of keywords has a module.

mod access;
mod authority;
mod built_in;
mod bulk;
mod cache;
mod checks;
mod clients;
mod control;
mod dnscrypt;
mod dnstap;
mod limits;
mod listening;
mod local;
mod log;
mod modules;
mod policy;
mod process;
mod records;
mod resolver;
mod response;
mod second_level;
mod served;
mod sockets;
mod trust;
mod unused;
mod zone_table;
mod zones;

use std::path::{Path, PathBuf};

pub use modules::module_order_mistake;
pub use process::log_level;
pub(crate) use records::is_other_class;
pub use records::record_parts;

use diagnostic::{FileId, Problem, Span};
use yaml::{Entry, Node};

use crate::keywords::{self, Section};
use crate::read::{Block, Statement, Statements, Word};
use crate::tree::{self, Tree};

/// Returns the settings that statements stand for.
pub(crate) fn lower(statements: &Statements, main: FileId, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let mut lowering =
        Lowering { statements, tree: Tree::new(main), problems, steps: policy::Steps::default() };
    lowering.process();
    lowering.check_modules();
    lowering.check_together();
    lowering.check_unused();
    lowering.log();
    lowering.listening();
    lowering.sockets();
    lowering.access();
    lowering.limits();
    lowering.caches();
    lowering.resolver();
    lowering.second_level();
    lowering.trust();
    lowering.zones();
    lowering.local_zones();
    lowering.responses();
    lowering.authority();
    lowering.policy();
    lowering.control();
    lowering.dnstap();
    lowering.dnscrypt();
    lowering.tree.into_entries()
}

struct Lowering<'a> {
    statements: &'a Statements,
    tree: Tree,
    problems: &'a mut Vec<Problem>,
    /// What the policy is made of.
    steps: policy::Steps,
}

/// Where the resolver's settings are.
const RESOLVER: [&str; 2] = ["resolvers", "default"];
/// The policy behind local zones, where these have aliases.
const RESOLVE: &str = "resolve";
/// Where the cache's settings are.
const CACHE: [&str; 2] = ["cache", "main"];

impl<'a> Lowering<'a> {
    /// Returns the statements of `server:`.
    fn server(&self) -> &'a [Statement] {
        let statements = self.statements;
        let block = statements.blocks.iter().find(|block| block.section == Section::Server);
        block.map_or(&[], |block| &block.statements)
    }

    /// Returns the sections of a kind, in the order of the file.
    fn blocks(&self, section: Section) -> impl Iterator<Item = &'a Block> + use<'a> {
        let statements = self.statements;
        statements.blocks.iter().filter(move |block| block.section == section)
    }

    /// Returns the statements with this keyword of `server:`.
    fn all(&self, name: &'static str) -> impl Iterator<Item = &'a Statement> + use<'a> {
        debug_assert!(is_setting(Section::Server, name), "{name}");
        self.server().iter().filter(move |statement| statement.row.name == name)
    }

    /// Returns the value of a keyword of `server:`: of several the last counts.
    fn last(&self, name: &'static str) -> Option<&'a Word> {
        self.all(name).last().map(|statement| statement.word(0))
    }

    /// Returns a number, and where it stands; the other program's default if it does not.
    fn number(&self, name: &'static str) -> (u64, Span) {
        match self.last(name) {
            Some(word) => (keywords::size(&word.text).unwrap_or(0), word.span),
            None => (keywords::size(default(name)).unwrap_or(0), self.tree.whole()),
        }
    }

    /// Returns yes or no, and where it stands.
    fn flag(&self, name: &'static str) -> (bool, Span) {
        match self.last(name) {
            Some(word) => (word.text == "yes", word.span),
            None => (default(name) == "yes", self.tree.whole()),
        }
    }

    /// Puts a number within bounds; says so if it was not.
    fn bounded(&mut self, name: &'static str, min: u64, max: u64) -> (u64, Span) {
        let (number, at) = self.number(name);
        let bounded = number.clamp(min, max);
        if bounded != number {
            let message = format!("\"{name}\" is {bounded} here, not {number}");
            let problem = Problem::warning(at, message).expected(format!("{min} to {max}"));
            self.problems.push(problem);
        }
        (bounded, at)
    }

    fn set(&mut self, path: &[&str], node: Node) {
        self.tree.set(path, node);
    }

    /// Sets a number.
    fn set_number(&mut self, path: &[&str], (number, at): (u64, Span)) {
        self.tree.set(path, tree::text(number.to_string(), at));
    }

    /// Sets a duration in seconds.
    fn set_seconds(&mut self, path: &[&str], (seconds, at): (u64, Span)) {
        self.tree.set(path, tree::text(format!("{seconds}s"), at));
    }

    /// Sets a duration in milliseconds.
    fn set_ms(&mut self, path: &[&str], (ms, at): (u64, Span)) {
        self.tree.set(path, tree::text(format!("{ms}ms"), at));
    }

    /// Returns the path of a file that the other program opens when it is confined to `chroot`:
    /// one outside means the file of this name inside.
    fn file(&self, word: &Word) -> Node {
        let path = self.in_directory(word);
        let inside = self.inside(path.clone());
        if inside == path { self.file_outside(word) } else { tree::text(inside.to_string_lossy(), word.span) }
    }

    /// Returns where a path is for who is confined to `chroot`.
    fn inside(&self, path: PathBuf) -> PathBuf {
        let path = std::path::absolute(&path).unwrap_or(path);
        let chroot = self.last("chroot").map_or("", |chroot| &chroot.text);
        if chroot.is_empty() || path.starts_with(chroot) {
            return path;
        }
        Path::new(chroot).join(path.strip_prefix("/").unwrap_or(&path))
    }

    /// Returns the path of a file that it opens before it confines itself.
    fn file_outside(&self, word: &Word) -> Node {
        if word.text.starts_with('/') {
            return tree::as_written(word);
        }
        let path = self.in_directory(word);
        tree::text(path.to_string_lossy(), word.span)
    }

    /// Returns a path, relative to the directory that the file names.
    fn in_directory(&self, word: &Word) -> PathBuf {
        let path = self.statements.directory.join(&word.text);
        std::path::absolute(&path).unwrap_or(path)
    }

    fn error(&mut self, at: Span, message: impl Into<String>) {
        self.problems.push(Problem::error(at, message));
    }

    fn warn(&mut self, at: Span, message: impl Into<String>) {
        self.problems.push(Problem::warning(at, message));
    }
}

/// Returns what a keyword of `server:` is if it is not written.
fn default(name: &str) -> &'static str {
    keywords::rows(Section::Server).iter().find(|row| row.name == name).map_or("", |row| row.default)
}

fn is_setting(section: Section, name: &str) -> bool {
    keywords::rows(section).iter().any(|row| row.name == name && row.becomes.is_setting())
}

impl Block {
    /// Returns the statements with this keyword.
    pub(crate) fn all(&self, name: &'static str) -> impl Iterator<Item = &Statement> {
        debug_assert!(is_setting(self.section, name), "{name}");
        self.statements.iter().filter(move |statement| statement.row.name == name)
    }

    /// Returns the value of a keyword: of several the last counts.
    pub(crate) fn last(&self, name: &'static str) -> Option<&Word> {
        self.all(name).last().map(|statement| statement.word(0))
    }

    /// Returns yes or no, and where it stands.
    fn flag(&self, name: &'static str) -> (bool, Span) {
        match self.last(name) {
            Some(word) => (word.text == "yes", word.span),
            None => {
                let row = keywords::rows(self.section).iter().find(|row| row.name == name);
                (row.is_some_and(|row| row.default == "yes"), self.at)
            }
        }
    }
}

/// Returns a name as policies and sets can have it.
fn label(name: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.replace(|c| !legal(c), "-")
}

/// Returns whether a path is written to mean none.
fn is_none(path: &str) -> bool {
    path.is_empty() || Path::new(path) == Path::new("/dev/null")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A keyword that the table calls a setting, and that nobody reads, would be ignored.
    #[test]
    fn every_keyword_that_becomes_a_setting_is_read_somewhere() {
        let sources = [
            include_str!("lower.rs"),
            include_str!("lower/access.rs"),
            include_str!("lower/authority.rs"),
            include_str!("lower/cache.rs"),
            include_str!("lower/checks.rs"),
            include_str!("lower/clients.rs"),
            include_str!("lower/control.rs"),
            include_str!("lower/dnscrypt.rs"),
            include_str!("lower/dnstap.rs"),
            include_str!("lower/limits.rs"),
            include_str!("lower/listening.rs"),
            include_str!("lower/local.rs"),
            include_str!("lower/log.rs"),
            include_str!("lower/modules.rs"),
            include_str!("lower/policy.rs"),
            include_str!("lower/process.rs"),
            include_str!("lower/records.rs"),
            include_str!("lower/resolver.rs"),
            include_str!("lower/response.rs"),
            include_str!("lower/second_level.rs"),
            include_str!("lower/served.rs"),
            include_str!("lower/sockets.rs"),
            include_str!("lower/trust.rs"),
            include_str!("lower/unused.rs"),
            include_str!("lower/zones.rs"),
            include_str!("read.rs"),
        ];
        for section in keywords::all_sections() {
            for row in keywords::rows(section).iter().filter(|row| row.becomes.is_setting()) {
                let quoted = format!("\"{}\"", row.name);
                assert!(sources.iter().any(|source| source.contains(&quoted)), "{quoted}");
            }
        }
    }
}
