//! Turns the configurations of other programs into ours.
//!
//! Those of mosdns v5 and OxiDNS (once ForgeDNS) here, those of authoritative servers in
//! `authority`. Unbound's is read by a crate of its own, and only printed here; Runbound's dialect
//! of it is another language, and `runbound` reads it.
//!
//! Never guesses: a setting that behaves otherwise here gets a comment beside it, and one that
//! Gannet lacks is an error at its line. Where the two programs read the same text differently,
//! each is taken at its own word.

#![forbid(unsafe_code)]

mod args;
mod authority;
mod caches;
mod executors;
mod matchers;
mod outbound;
mod outside;
mod plugins;
mod policies;
mod records;
mod runbound;
mod servers;
mod sets;
mod settings;
mod upstreams;
mod verify;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use diagnostic::{At, Diagnostic, Problem, Span, diagnostics};
use environment::Environment;

pub use self::authority::{NameServer, name_server};
pub use self::runbound::runbound;
pub use self::settings::unbound;

use self::args::Args;
use self::plugins::{Declared, Plugin};
use self::write::{Map, Out, document};

/// Whose configuration it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// mosdns v5.
    Mosdns,
    /// OxiDNS, and ForgeDNS as it was called before.
    Oxidns,
}

impl Dialect {
    /// Returns the name of the program.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mosdns => "mosdns",
            Self::Oxidns => "OxiDNS",
        }
    }
}

/// A configuration of ours made from another's.
#[derive(Debug)]
pub struct Imported {
    /// The text of the file.
    pub text: String,
    /// What was left out or is done differently; the text has it as comments, too, where there is a
    /// place for it.
    pub warnings: Vec<Diagnostic>,
}

/// Turns the configuration that begins in the file `path` into ours; errors are all places that
/// cannot be expressed.
pub fn forwarder(
    dialect: Dialect,
    path: &Path,
    environment: &dyn Environment,
) -> Result<Imported, Vec<Diagnostic>> {
    let mut declared = plugins::read(dialect, path, environment);
    let problems = std::mem::take(&mut declared.problems);
    let mut translator = Translator {
        dialect,
        environment,
        directory: path.parent().unwrap_or(Path::new("")).to_owned(),
        declared: &declared,
        problems,
        names: BTreeMap::new(),
        taken: BTreeSet::new(),
        marks: BTreeMap::new(),
        trusted: BTreeSet::new(),
        used: BTreeSet::new(),
        lists: BTreeMap::new(),
        policies: Vec::new(),
        wanted: Vec::new(),
        upstreams: Map::default(),
        caches: Map::default(),
        sets: Map::default(),
        records: Map::default(),
        effects: Map::default(),
        schedules: Vec::new(),
        recorder: None,
        has_hosts_files: false,
        others: Map::default(),
        outbound: outbound::Outbound::default(),
    };
    translator.run();
    let text = translator.document(path);
    if !translator.problems.iter().any(Problem::is_error) {
        let owner = |section: &str, name: &str| translator.owner(section, name);
        let refused = verify::verify(path, &text, environment, &declared.sources, &owner);
        translator.problems.extend(refused);
    }
    let failed = translator.problems.iter().any(Problem::is_error);
    let found = diagnostics(translator.problems, &declared.sources);
    if failed { Err(found) } else { Ok(Imported { text, warnings: found }) }
}

/// What a name belongs to; names of different kinds may be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Policy,
    Upstream,
    Cache,
    Set,
    Records,
    Effect,
}

/// A policy to be written: a sequence, or one that stands for some other plugin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    /// The sequence of that tag; `ends_alone`: "accept" in it ends only it, not who called it.
    Sequence { tag: String, ends_alone: bool },
    /// Any other executor as a policy of its own.
    Single(String),
}

/// The new file under way.
struct Translator<'a> {
    dialect: Dialect,
    environment: &'a dyn Environment,
    /// Where the first file is.
    directory: PathBuf,
    declared: &'a Declared,
    problems: Vec<Problem>,
    /// Our name of each plugin, by what it became.
    names: BTreeMap<(Kind, String), String>,
    taken: BTreeSet<(Kind, String)>,
    /// Our mark for each number.
    marks: BTreeMap<u32, u8>,
    /// Forwarders whose word about their clients is taken.
    trusted: BTreeSet<String>,
    /// Plugins that something refers to.
    used: BTreeSet<String>,
    /// Sets made for a list of expressions, by the list.
    lists: BTreeMap<String, String>,
    policies: Vec<(String, policies::Policy)>,
    /// Policies that are still to be written.
    wanted: Vec<(Wanted, String)>,
    upstreams: Map,
    caches: Map,
    sets: Map,
    records: Map,
    effects: Map,
    schedules: Vec<write::Noted>,
    recorder: Option<Map>,
    /// Whether records come from hosts files.
    has_hosts_files: bool,
    others: Map,
    /// How things get in and out.
    outbound: outbound::Outbound,
}

impl<'a> Translator<'a> {
    fn run(&mut self) {
        let mut top = Map::default();
        self.top_level(&mut top);
        self.note_downloads();
        self.servers(&mut top);
        // Writing one policy may ask for others.
        let mut next = 0;
        while let Some((wanted, name)) = self.wanted.get(next).cloned() {
            next += 1;
            let policy = match &wanted {
                Wanted::Sequence { tag, ends_alone } => self.sequence(tag, *ends_alone),
                Wanted::Single(tag) => self.single(tag),
            };
            self.policies.push((name, policy));
        }
        self.jobs();
        self.unused();
        self.unread_downloads();
        if !self.trusted.is_empty() {
            let note = format!("Here {}.", servers::TRUSTED_FROM_THE_START);
            top.note("trusted-peers", vec![note], Out::Row(self.trusted.iter().cloned().collect()));
        }
        if self.has_hosts_files {
            let mut hosts = Map::default();
            hosts.put("ttl", format!("{}s", records::HOSTS_TTL));
            top.put("hosts", hosts);
        }
        if let Some(recorder) = self.recorder.take() {
            top.put("recorder", recorder);
        }
        self.others = top;
    }

    /// Says of plugins that nothing refers to that they are left out.
    fn unused(&mut self) {
        let declared = self.declared;
        for plugin in &declared.plugins {
            if !self.used.contains(&plugin.tag.value) {
                self.problems.push(Problem::warning(
                    plugin.tag.span,
                    format!("nothing uses \"{}\": it is left out", plugin.tag.value),
                ));
            }
        }
    }

    /// Puts the sections together.
    fn document(&mut self, path: &Path) -> String {
        let program = self.dialect.name();
        let mut head = vec![format!("Made from {} ({program}) by \"gannet import\".", path.display())];
        head.push(format!(
            "Comments say where this behaves otherwise than {program}. \"gannet check\" checks it."
        ));
        let mut sections = std::mem::take(&mut self.others);
        let mut put = |key: &str, map: &mut Map| {
            let map = std::mem::take(map);
            if !map.is_empty() {
                sections.put(key, map);
            }
        };
        put("upstreams", &mut self.upstreams);
        put("cache", &mut self.caches);
        put("sets", &mut self.sets);
        put("records", &mut self.records);
        put("effects", &mut self.effects);
        if !self.schedules.is_empty() {
            sections.put("schedules", Out::List(std::mem::take(&mut self.schedules)));
        }
        let policies = policies::write(std::mem::take(&mut self.policies));
        sections.put("policy", policies);
        document(&head, sections)
    }

    /// Returns the place of the plugin that became what the new file calls `name` in `section`.
    fn owner(&self, section: &str, name: &str) -> Option<Span> {
        let kind = match section {
            "upstreams" => Kind::Upstream,
            "cache" => Kind::Cache,
            "sets" => Kind::Set,
            "records" => Kind::Records,
            "effects" => Kind::Effect,
            "policy" => Kind::Policy,
            _ => return None,
        };
        let known = self.names.iter().find(|((known, _), ours)| *known == kind && *ours == name);
        let tag = match known {
            Some(((_, tag), _)) => tag.strip_prefix("redirect ").unwrap_or(tag),
            None => match self.wanted.iter().find(|(_, ours)| kind == Kind::Policy && ours == name)? {
                (Wanted::Sequence { tag, .. } | Wanted::Single(tag), _) => tag,
            },
        };
        self.declared.find(tag).map(|plugin| plugin.tag.span)
    }

    /// Returns our name for a plugin, made unique among its kind.
    fn name(&mut self, kind: Kind, tag: &str) -> String {
        if let Some(name) = self.names.get(&(kind, tag.to_owned())) {
            return name.clone();
        }
        let name = self.fresh(kind, tag);
        self.names.insert((kind, tag.to_owned()), name.clone());
        name
    }

    /// Returns a name that nothing of this kind has.
    fn fresh(&mut self, kind: Kind, wanted: &str) -> String {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let mut base: String = wanted.chars().map(|c| if legal(c) { c } else { '-' }).take(56).collect();
        // Words of the language of conditions, and what begins like a number or an address.
        let is_awkward = policy::condition::is_taken(&base)
            || matches!(base.as_str(), "lan" | "any" | "loopback" | "private" | "continue" | "main")
            || !base.starts_with(|c: char| c.is_ascii_alphabetic());
        if is_awkward && !(base == "main" && kind != Kind::Policy) {
            base.insert_str(0, "the-");
        }
        let mut name = base.clone();
        let mut number = 2;
        while !self.taken.insert((kind, name.clone())) {
            name = format!("{base}-{number}");
            number += 1;
        }
        name
    }

    /// Returns the plugin of a tag; says so if there is none.
    fn plugin(&mut self, tag: &At<String>) -> Option<&'a Plugin> {
        let found = self.declared.find(&tag.value);
        match found {
            Some(plugin) => {
                self.used.insert(plugin.tag.value.clone());
            }
            None => self.wrong(tag.span, format!("there is no plugin \"{}\"", tag.value)),
        }
        found
    }

    /// Returns the settings of a plugin.
    fn args(&mut self, plugin: &'a Plugin) -> Args<'a> {
        Args::new(self.dialect, format!("\"{}\"", plugin.kind.value), &plugin.args, &mut self.problems)
    }

    /// Returns our number for a mark.
    fn mark(&mut self, word: &At<String>) -> Option<u8> {
        let Ok(number) = word.value.parse::<u32>() else {
            self.wrong(word.span, format!("\"{}\" is no mark", word.value));
            return None;
        };
        if let Some(mark) = self.marks.get(&number) {
            return Some(*mark);
        }
        let is_free = |mark: u8| !self.marks.values().any(|other| *other == mark);
        let same = u8::try_from(number).ok().filter(|&mark| mark < 64 && is_free(mark));
        let Some(mark) = same.or_else(|| (0..64).rev().find(|&mark| is_free(mark))) else {
            self.wrong(word.span, "there are more than 64 different marks".to_owned());
            return None;
        };
        self.marks.insert(number, mark);
        Some(mark)
    }

    fn wrong(&mut self, at: Span, message: String) {
        self.problems.push(Problem::error(at, message));
    }

    fn warn(&mut self, at: Span, message: impl Into<String>) {
        self.problems.push(Problem::warning(at, message));
    }
}
