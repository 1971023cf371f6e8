//! Says every setting once: what it is called, what it takes, what it is by default, and why.
//!
//! Each group of settings has a module of its own. The checker, the manual page, the commented
//! default file and the JSON Schema for editors all read this table. Paths: `cache.*.size` is the
//! setting `size` of each named cache; `listen[].at` is `at` of each item of `listen`.
//!
//! Never reads a setting: that is for `config`.

#![forbid(unsafe_code)]

mod access;
mod alias;
mod besides;
mod cache;
mod certificates;
mod checks;
mod control;
mod dnstap;
mod expected;
mod files;
mod index;
mod jobs;
mod limits;
mod listeners;
mod local;
mod log;
mod policy;
mod records;
mod resolvers;
mod second_level;
mod server;
mod sets;
mod signing;
mod sockets;
mod transfers;
mod upstreams;
mod xdp;
mod zones;

use diagnostic::FileId;
use yaml::Node;

pub use checks::CheckWord;
pub use control::{ChangesWord, RoleWord};
pub use listeners::{DeviceFamilyWord, TlsVersionWord};
pub use log::{LogFormat, LogLevel, LogTime};
pub use resolvers::{FamilyWord, MinimisationWord, OpportunisticWord, ValidationWord};
pub use server::{DaemonizeWord, StayAwake};
pub use signing::{CdsDigestWord, CdsWord, SerialWord, SigningAlgorithmWord, ZonemdWord};
pub use transfers::AlgorithmWord;
pub use upstreams::{ClientSubnetUse, NUMBERED_PICKS, PLAIN_PICKS, VerifyWord};

/// When a changed setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apply {
    /// With `gannet reload`.
    Reload,
    /// When the server is started again; a reload says so.
    Restart,
}

/// The shape of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A mapping whose keys are rows of this table.
    Section,
    /// A mapping from names that the user chooses to what the rows below `path.*` describe.
    Named(&'static str),
    /// A list of mappings, described by the rows below `path[]`; the first of them may stand alone
    /// in place of the mapping, and one item in place of the list.
    Items,
    /// A list of values; one value may stand alone.
    List(Value),
    /// One value.
    One(Value),
}

/// What a single value may be. A `word` stands for what no value can say, such as `off`.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// `true` or `false`.
    Bool,
    /// A number.
    Whole {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// The word for none.
        word: Option<&'static str>,
    },
    /// A duration, in milliseconds.
    Duration {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// The word for none.
        word: Option<&'static str>,
    },
    /// A size, in octets.
    Size {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A percentage.
    Percent {
        /// The smallest.
        min: u8,
        /// The largest.
        max: u8,
        /// The word for none.
        word: Option<&'static str>,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text.
    Text {
        /// The word for none.
        word: Option<&'static str>,
    },
    /// A file or directory, relative to the file that says it.
    Path,
    /// A pattern for files.
    Glob,
    /// An IP address.
    Address,
    /// An IP address and perhaps a port.
    Socket {
        /// The port if none is written.
        port: u16,
        /// The word for none.
        word: Option<&'static str>,
    },
    /// An address prefix, or one of [`PREFIX_WORDS`](values::PREFIX_WORDS).
    Prefix,
    /// An upstream server.
    Server,
    /// The hash of a server's key.
    Pin,
    /// How to choose among servers.
    Pick,
    /// When to ask a second server.
    Hedge {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A response code, or `unusable` for all that are no answer.
    RcodeTerm,
    /// A key of 128 bits as 32 hexadecimal digits, or `file:` and a path. Never printed.
    Secret {
        /// The word for none.
        word: Option<&'static str>,
    },
    /// A secret text, or `file:` and a path. Never printed.
    Password,
    /// A rule on names.
    NamePattern,
    /// An address, a prefix, a range, or one of [`PREFIX_WORDS`](values::PREFIX_WORDS).
    AddressRange,
    /// The format and the place of a list.
    SetList,
    /// A condition of the policy language.
    Condition,
    /// An action of the policy language.
    Action,
    /// A name for something in this file.
    Label,
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Where it stands.
    pub path: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Its value by default, as YAML; `None` if it is not set then.
    pub default: Option<&'static str>,
    /// Why that is the default.
    pub reason: &'static str,
    /// When a change takes effect.
    pub apply: Apply,
    /// Who may change it while the server runs.
    pub role: RoleWord,
    /// What it does.
    pub text: &'static str,
    /// The directives of `unbound.conf` that do the same.
    pub unbound: &'static [&'static str],
}

impl Row {
    /// Returns the last part of the path: the key in the file.
    pub fn key(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path).trim_end_matches("[]")
    }

    /// Returns the path of what it is a part of; empty for the top level.
    pub fn parent(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(parent, _)| parent)
    }

    /// Returns whether its value is never shown.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::One(Value::Secret { .. } | Value::Password))
            || SECRET_TEXTS.contains(&self.path)
    }
}

/// Returns the row of a path.
pub fn find(path: &str) -> Option<&'static Row> {
    index::find(path)
}

/// Returns the row of what `key` says directly below `parent`.
pub fn find_in(parent: &str, key: &str) -> Option<&'static Row> {
    index::find_in(as_written(parent), key)
}

/// Returns who may change what stands at a path of the table, with all below it. What names a file
/// of the machine is for admins, whatever stands around it; see [`Row::names_file`].
pub fn role_of(path: &str) -> RoleWord {
    // What a template of zones says is described where zones are, and decides about many of them.
    if path == ZONE_TEMPLATE || path.starts_with("zone-templates.*.") {
        return RoleWord::Admin;
    }
    let below = most_below(path);
    match (find(path), below) {
        (Some(row), Some(below)) => greater(row.role, below),
        (Some(row), None) => row.role,
        (None, Some(below)) => below,
        // A name that the user chose, with nothing below it.
        (None, None) => match path.rsplit_once('.') {
            Some((parent, _)) => role_of(parent),
            None => RoleWord::Admin,
        },
    }
}

/// Returns the role that may change all that the rows below a path say.
fn most_below(path: &str) -> Option<RoleWord> {
    let of_rows = |parent: String| children(&parent).collect::<Vec<_>>();
    let rows = [path.to_owned(), format!("{path}.*"), format!("{path}[]")].into_iter().flat_map(of_rows);
    let of_row = |row: &'static Row| match most_below(row.path) {
        Some(below) => greater(row.role, below),
        None => row.role,
    };
    // Whether a file is named below a path shows in what is said there.
    rows.filter(|row| row.path != path && !row.is_path()).map(of_row).reduce(greater)
}

const fn greater(one: RoleWord, other: RoleWord) -> RoleWord {
    if one as u8 >= other as u8 { one } else { other }
}

/// Lists of texts that often hold secrets: a token in a header, a password for a program.
const SECRET_TEXTS: [&str; 2] = ["effects.*.headers", "effects.*.environment"];

/// Where templates of zones stand.
const ZONE_TEMPLATE: &str = "zone-templates.*";

/// Returns the rows directly below `parent`, in the order of the manual.
pub fn children(parent: &str) -> impl Iterator<Item = &'static Row> {
    index::children(as_written(parent)).iter().copied()
}

/// Returns where what stands below `parent` is described: what a template says, a zone says.
fn as_written(parent: &str) -> &str {
    if parent == ZONE_TEMPLATE { "zones[]" } else { parent }
}

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

const fn duration(min: u64, max: u64) -> Kind {
    Kind::One(Value::Duration { min, max, word: None })
}

const fn duration_or(min: u64, max: u64, word: &'static str) -> Kind {
    Kind::One(Value::Duration { min, max, word: Some(word) })
}

const fn whole(min: u64, max: u64) -> Kind {
    Kind::One(Value::Whole { min, max, word: None })
}

const fn whole_or(min: u64, max: u64, word: &'static str) -> Kind {
    Kind::One(Value::Whole { min, max, word: Some(word) })
}

const fn text_or(word: &'static str) -> Kind {
    Kind::One(Value::Text { word: Some(word) })
}

const fn text() -> Kind {
    Kind::One(Value::Text { word: None })
}

const fn word(words: &'static [&'static str]) -> Kind {
    Kind::One(Value::Word(words))
}

/// Builds a row that a reload applies.
const fn row(
    path: &'static str,
    kind: Kind,
    default: &'static str,
    reason: &'static str,
    text: &'static str,
) -> Row {
    Row {
        path,
        kind,
        default: Some(default),
        reason,
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text,
        unbound: &[],
    }
}

/// Builds a row that has no default.
const fn unset(path: &'static str, kind: Kind, text: &'static str) -> Row {
    Row {
        path,
        kind,
        default: None,
        reason: "",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text,
        unbound: &[],
    }
}

/// Builds a row that only groups others.
const fn section(path: &'static str, text: &'static str) -> Row {
    Row {
        path,
        kind: Kind::Section,
        default: None,
        reason: "",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text,
        unbound: &[],
    }
}

impl Row {
    const fn restart(self) -> Self {
        Self { apply: Apply::Restart, ..self }
    }

    /// Lets operators change it, because it is data.
    const fn for_operators(self) -> Self {
        Self { role: RoleWord::Operator, ..self }
    }

    const fn unbound(self, unbound: &'static [&'static str]) -> Self {
        Self { unbound, ..self }
    }
}

/// All settings by what they are about, in the order of the manual.
const GROUPS: &[&[Row]] = &[
    server::ROWS,
    listeners::ROWS,
    certificates::ROWS,
    sockets::ROWS,
    xdp::ROWS,
    access::ROWS,
    upstreams::ROWS,
    resolvers::ROWS,
    besides::ROWS,
    second_level::ROWS,
    cache::ROWS,
    local::ROWS,
    zones::ROWS,
    checks::ROWS,
    alias::ROWS,
    signing::ROWS,
    transfers::ROWS,
    records::ROWS,
    limits::ROWS,
    log::ROWS,
    control::ROWS,
    sets::ROWS,
    policy::CONDITIONS,
    jobs::ROWS,
    dnstap::ROWS,
    policy::ROWS,
];

/// Returns all settings, in the order of the manual.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    GROUPS.iter().copied().flatten()
}

/// Returns the value that a default stands for.
pub fn default_node(text: &str) -> Node {
    // No default names a variable.
    yaml::parse(FileId::BUILT_IN, text, &|_| None, &mut Vec::new()).root.built_in()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_may_change_a_setting_may_change_all_that_is_in_it() {
        for (path, expect) in [
            ("local", RoleWord::Operator),
            ("local.*", RoleWord::Operator),
            ("sets", RoleWord::Operator),
            ("sets.*", RoleWord::Operator),
            ("sets.*.lists", RoleWord::Operator),
            ("zones", RoleWord::Operator),
            ("hosts", RoleWord::Operator),
            ("hosts.files", RoleWord::Admin),
            ("records.*", RoleWord::Operator),
            ("records.*.hosts", RoleWord::Admin),
            ("zone-directories", RoleWord::Operator),
            ("zone-templates", RoleWord::Admin),
            ("zone-templates.*", RoleWord::Admin),
            ("zone-templates.*.sign", RoleWord::Admin),
            ("cache.*.size", RoleWord::Admin),
            ("control.audit", RoleWord::Admin),
            ("nothing", RoleWord::Admin),
        ] {
            assert_eq!(role_of(path), expect, "{path}");
        }
    }

    #[test]
    fn files_and_secrets_are_for_admins_and_what_holds_a_setting_needs_what_that_needs() {
        for row in rows() {
            let role = role_of(row.path);
            if row.is_path() || row.is_secret() {
                assert_eq!(role, RoleWord::Admin, "{}", row.path);
            }
            let mut at = row.path;
            while let Some((holder, _)) = at.rsplit_once('.') {
                at = holder.trim_end_matches("[]");
                // That a file is named shows in what is said.
                assert!(row.is_path() || role_of(at) as u8 >= role as u8, "{at} holds {}", row.path);
            }
        }
    }
}
