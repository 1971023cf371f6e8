//! Files to settings: reading, includes, merging, checking.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diagnostic::{Diagnostic, FileId, Problem, Sources, Span, diagnostics, io_text};

use crate::groups::Settings;
use crate::lower::Lowering;
use crate::overlay::Layer;
use crate::{link, secrets};
use environment::{Environment, FILE_OCTETS_MAX, System};
use schema::Kind;
use unbound::Changes;
use yaml::{Entry, Node, Value};

/// How deep files may include files.
const INCLUDE_DEPTH_MAX: usize = 8;
/// Files of one configuration.
const FILES_MAX: usize = 1000;

/// The file that everything begins with: the first of all.
const MAIN: FileId = FileId(0);

/// A configuration without mistakes.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it says.
    pub settings: Settings,
    /// What it probably should not say.
    pub warnings: Vec<Diagnostic>,
    /// The files it was read from.
    pub sources: Sources,
    /// What is laid over an `unbound.conf`; none of another configuration.
    pub changes: Option<Arc<Changes>>,
    /// All files' settings as one tree, with the changes that are laid over them.
    pub(crate) tree: Node,
    /// What the files said, before changes.
    pub(crate) base: Arc<Base>,
    /// These changes.
    pub(crate) layers: Arc<[Layer]>,
}

/// What files said, before changes are laid over them.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) sources: Sources,
    pub(crate) entries: Vec<Entry>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) seen: BTreeMap<PathBuf, Option<Span>>,
}

impl Loaded {
    /// Lays other changes over what was read: an `unbound.conf` as it was, whatever its files hold
    /// by now.
    ///
    /// # Errors
    ///
    /// All mistakes that there are with the changes.
    pub fn changed(&self, changes: Changes, environment: &dyn Environment) -> Result<Self, Vec<Diagnostic>> {
        let mut loader = Loader::new(environment);
        loader.sources = Sources::new(self.sources.secret_keys());
        let entries = unbound::read_again(&self.sources, &mut loader.sources, &changes, &mut loader.problems);
        let entries = loader.readable(entries)?;
        Ok(Self { changes: Some(Arc::new(changes)), ..loader.finish_tree(None, entries)? })
    }

    /// Returns all settings as one tree.
    pub const fn tree(&self) -> &Node {
        &self.tree
    }

    /// Returns the mistake of a file that holds no settings any more although there were some
    /// `before`: it is being written, or was cut short, and to take it at its word would take
    /// everything away that was served.
    pub fn emptied(&self, before: &Self) -> Option<Diagnostic> {
        let is_empty = |loaded: &Self| matches!(loaded.tree.value, Value::Null);
        if !is_empty(self) || is_empty(before) {
            return None;
        }
        let problem =
            Problem::of_file(MAIN, "it holds no settings any more: an empty file is not taken over")
                .hint("a restart takes it; a configuration of defaults only is written as \"server: {}\"");
        diagnostics(vec![problem], &self.sources).pop()
    }
}

/// Reads the configuration that begins in the file `path`; errors are all mistakes of all files, in
/// file order.
pub fn load(path: &Path) -> Result<Loaded, Vec<Diagnostic>> {
    load_in(path, &System)
}

/// Like [`load`], in another environment.
pub fn load_in(path: &Path, environment: &dyn Environment) -> Result<Loaded, Vec<Diagnostic>> {
    Loader::new(environment).open(path, FILE_OCTETS_MAX)?.finish()
}

/// Reads the configuration that begins in `path`, an `unbound.conf`.
pub fn load_unbound(path: &Path) -> Result<Loaded, Vec<Diagnostic>> {
    load_unbound_in(path, &System)
}

/// Like [`load_unbound`], in another environment.
pub fn load_unbound_in(path: &Path, environment: &dyn Environment) -> Result<Loaded, Vec<Diagnostic>> {
    let mut loader = Loader::of_unbound(environment);
    let changes = Changes::default();
    let entries = unbound::read(path, &mut loader.sources, environment, &changes, &mut loader.problems);
    let entries = loader.readable(entries)?;
    Ok(Loaded { changes: Some(Arc::new(changes)), ..loader.finish_tree(None, entries)? })
}

/// Reads the configuration that begins in `path`, an `unbound.conf`, to see what is wrong with it:
/// what is returned has no names of local zones that are many and alike.
pub fn check_unbound(path: &Path) -> Result<Loaded, Vec<Diagnostic>> {
    let environment = &System;
    let mut loader = Loader::of_unbound(environment);
    let entries = unbound::check(path, &mut loader.sources, environment, &mut loader.problems);
    let entries = loader.readable(entries)?;
    loader.finish_tree(None, entries)
}

/// What diagnostics call the configuration of a server that nobody configured.
const BUILT_IN: &str = "built-in configuration";

/// Returns the configuration of a server that nobody configured.
pub fn built_in() -> Result<Loaded, Vec<Diagnostic>> {
    load_text(Path::new(BUILT_IN), "", &System)
}

/// Reads a configuration from memory; `path` is what diagnostics call it and what includes are
/// relative to.
pub fn load_text(path: &Path, text: &str, environment: &dyn Environment) -> Result<Loaded, Vec<Diagnostic>> {
    let mut loader = Loader::new(environment);
    loader.sources.add(path, text.to_owned());
    loader.finish()
}

/// Writes out what may be said in short: servers alone are those of a group, and those of no group
/// of `default`.
pub(crate) fn short_forms(entries: &mut [Entry]) {
    let is_servers = |node: &Node| matches!(node.value, Value::Scalar(_) | Value::Long(_) | Value::List(_));
    let nothing = |span| Node { span, value: Value::Null };
    let wrap = |entry: &mut Entry, keys: &[&str]| {
        let mut node = std::mem::replace(&mut entry.node, nothing(entry.key_span));
        for key in keys {
            node = yaml::in_mapping(key, entry.key_span, node);
        }
        entry.node = node;
    };
    let Some(upstreams) = entries.iter_mut().find(|entry| entry.key == "upstreams") else { return };
    if is_servers(&upstreams.node) {
        wrap(upstreams, &["servers", "default"]);
    } else if let Value::Map(groups) = &mut upstreams.node.value {
        for group in groups.iter_mut().filter(|group| {
            is_servers(&group.node) && schema::find(&format!("upstreams.*.{}", group.key)).is_none()
        }) {
            wrap(group, &["servers"]);
        }
    }
}

pub(crate) struct Loader<'a> {
    pub(crate) environment: &'a dyn Environment,
    pub(crate) sources: Sources,
    pub(crate) problems: Vec<Problem>,
    /// Every file read, and where it was asked for.
    pub(crate) seen: BTreeMap<PathBuf, Option<Span>>,
    pub(crate) broken: bool,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(environment: &'a dyn Environment) -> Self {
        Self {
            environment,
            sources: Sources::new(&secrets::keys()),
            problems: Vec::new(),
            seen: BTreeMap::new(),
            broken: false,
        }
    }

    fn of_unbound(environment: &'a dyn Environment) -> Self {
        let keys: Vec<&'static str> = secrets::keys().into_iter().chain(unbound::SECRET_KEYS).collect();
        Self { sources: Sources::new(&keys), ..Self::new(environment) }
    }

    /// Returns what a file says, if it can be read: else nothing else about it matters.
    fn readable(&mut self, entries: Option<Vec<Entry>>) -> Result<Vec<Entry>, Vec<Diagnostic>> {
        entries.ok_or_else(|| diagnostics(std::mem::take(&mut self.problems), &self.sources))
    }

    fn read_text(&self, path: &Path, octets_max: usize) -> Result<String, String> {
        let octets = self.environment.read_list(path, octets_max as u64);
        let octets = octets.map_err(|error| format!("cannot read it: {}", io_text(&error)))?;
        if octets.len() > octets_max {
            return Err(format!("larger than {} MiB", octets_max >> 20));
        }
        String::from_utf8(octets).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            format!("not UTF-8 text (line {line})")
        })
    }

    /// Reads the file that everything begins with.
    fn open(mut self, path: &Path, octets_max: usize) -> Result<Self, Vec<Diagnostic>> {
        match self.read_text(path, octets_max) {
            Ok(text) => {
                self.sources.add(path, text);
                Ok(self)
            }
            Err(message) => {
                let file = self.sources.add(path, String::new());
                Err(diagnostics(vec![Problem::of_file(file, message)], &self.sources))
            }
        }
    }

    fn finish(mut self) -> Result<Loaded, Vec<Diagnostic>> {
        let path = self.sources.file(MAIN).map(|source| source.path.clone()).unwrap_or_default();
        self.seen.insert(path, None);
        let (root_span, mut entries) = self.parse(MAIN);
        self.includes(MAIN, &mut entries, 0);
        let base = Base {
            sources: self.sources.clone(),
            entries: entries.clone(),
            problems: self.problems.clone(),
            seen: self.seen.clone(),
        };
        Ok(Loaded { base: Arc::new(base), ..self.finish_tree(root_span, entries)? })
    }

    /// Makes settings of what the files say.
    pub(crate) fn finish_tree(
        mut self,
        root_span: Option<Node>,
        mut entries: Vec<Entry>,
    ) -> Result<Loaded, Vec<Diagnostic>> {
        short_forms(&mut entries);
        let nothing = entries.is_empty() && !self.broken;
        // With a change something is configured.
        let is_alone = self.sources.files().count() == 1
            && self.seen.len() == 1
            && !self.seen.contains_key(Path::new(BUILT_IN));
        let is_empty = nothing && root_span.is_none() && is_alone;
        let value = if nothing { Value::Null } else { Value::Map(entries) };
        let tree = match root_span {
            Some(node) => node,
            None => Node { span: Span { file: MAIN, start: 0, end: 0 }, value },
        };
        if is_empty {
            let message = "it holds no settings: nothing is configured, and everything has its default";
            self.problems.push(Problem::warning_of_file(MAIN, message));
        }
        if let Value::Map(entries) = &tree.value {
            let is_bare = |entry: &&Entry| {
                ["zones", "zone-directories"].contains(&entry.key.as_str())
                    && matches!(entry.node.value, Value::Null)
            };
            self.problems.extend(entries.iter().filter(is_bare).map(|entry| {
                Problem::warning(
                    entry.key_span,
                    format!("\"{}\" is empty: no zone is served by it", entry.key),
                )
                .hint(format!("if that is meant, \"{}: []\" says so", entry.key))
            }));
        }
        secrets::note(&tree, &mut self.sources);
        let environment = self.environment;
        let read_file = |path: &Path| environment.read(path);
        let mut lowering = Lowering {
            sources: &self.sources,
            problems: &mut self.problems,
            read_file: &read_file,
            is_open_to_all: &|path| environment.is_open_to_all(path),
            #[cfg(test)]
            touched: std::cell::RefCell::default(),
        };
        let mut settings = lowering.settings(&tree);
        // What a file that cannot be read to its end would still have said is not known.
        if !self.broken {
            link::link(&mut settings, &mut self.problems);
        }
        let failed = self.problems.iter().any(Problem::is_error);
        let found = diagnostics(self.problems, &self.sources);
        if failed {
            Err(found)
        } else {
            let base = Base {
                sources: self.sources.clone(),
                entries: Vec::new(),
                problems: Vec::new(),
                seen: BTreeMap::new(),
            };
            let (base, layers) = (Arc::new(base), Arc::new([]));
            Ok(Loaded { settings, warnings: found, sources: self.sources, changes: None, tree, base, layers })
        }
    }

    /// Returns the settings of one file; the first part is the whole tree if that is not a mapping.
    fn parse(&mut self, file: FileId) -> (Option<Node>, Vec<Entry>) {
        let text = self.sources.file(file).map(|source| source.text().to_owned()).unwrap_or_default();
        let environment = self.environment;
        let parsed = yaml::parse(file, &text, &|name| environment.variable(name), &mut self.problems);
        self.broken |= parsed.broken;
        match parsed.root.value {
            Value::Map(entries) => (None, entries),
            Value::Null => (None, Vec::new()),
            Value::Scalar(_) | Value::Long(_) | Value::List(_) => (Some(parsed.root), Vec::new()),
        }
    }

    /// Reads the files that `entries` of `file` include, and puts their settings beside them.
    fn includes(&mut self, file: FileId, entries: &mut Vec<Entry>, depth: usize) {
        let Some(at) = entries.iter().position(|entry| entry.key == "include") else { return };
        let include = entries.remove(at);
        if !self.environment.may_include() {
            self.problems.push(Problem::error(include.key_span, "settings that are sent include no files"));
            return;
        }
        let patterns = match include.node.value {
            Value::List(nodes) => nodes,
            Value::Null => Vec::new(),
            Value::Scalar(_) | Value::Long(_) | Value::Map(_) => vec![include.node],
        };
        for pattern in patterns {
            let Value::Scalar(scalar) = &pattern.value else {
                self.problems.push(Problem::error(pattern.head(), "this is not a file").expected("a path"));
                continue;
            };
            if depth >= INCLUDE_DEPTH_MAX {
                self.problems.push(Problem::error(
                    pattern.span,
                    format!("files include files more than {INCLUDE_DEPTH_MAX} levels deep"),
                ));
                continue;
            }
            let base =
                self.sources.file(file).and_then(|source| source.path.parent()).unwrap_or(Path::new(""));
            let wanted = base.join(&scalar.text);
            for path in self.matching(&wanted, &scalar.text, pattern.span) {
                self.include(&path, pattern.span, entries, depth);
            }
        }
    }

    fn include(&mut self, path: &Path, asked: Span, entries: &mut Vec<Entry>, depth: usize) {
        let name = path.display();
        if let Some(first) = self.seen.get(path) {
            let problem = Problem::error(asked, format!("\"{name}\" is already part of this configuration"));
            self.problems.push(match first {
                Some(first) => problem.hint_at("included on ", *first, ""),
                None => problem.hint("it is the file that everything begins with"),
            });
            return;
        }
        if self.seen.len() >= FILES_MAX {
            self.problems.push(Problem::error(asked, format!("more than {FILES_MAX} files")));
            return;
        }
        self.seen.insert(path.to_owned(), Some(asked));
        let text = match self.read_text(path, FILE_OCTETS_MAX) {
            Ok(text) => text,
            Err(message) => {
                self.problems.push(Problem::error(asked, format!("\"{name}\": {message}")));
                return;
            }
        };
        let file = self.sources.add(path, text);
        let (other, mut added) = self.parse(file);
        if let Some(node) = other {
            self.problems.push(
                Problem::error(node.head(), "this file holds no settings").expected("\"key: value\" lines"),
            );
        }
        self.includes(file, &mut added, depth + 1);
        merge(entries, added, "", &mut self.problems);
    }

    /// Returns the files that a pattern stands for, sorted by name.
    fn matching(&mut self, wanted: &Path, written: &str, asked: Span) -> Vec<PathBuf> {
        let is_pattern = |text: &str| text.contains(['*', '?']);
        if !is_pattern(written) {
            return vec![wanted.to_owned()];
        }
        let directory = wanted.parent().unwrap_or(Path::new(""));
        let last = wanted.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if is_pattern(&directory.to_string_lossy()) {
            let problem =
                Problem::error(asked, format!("\"{written}\" has \"*\" or \"?\" in the name of a directory"));
            self.problems.push(problem.expected("them only after the last \"/\""));
            return Vec::new();
        }
        match self.environment.list(directory) {
            Ok(mut names) => {
                // A pattern does not find hidden files unless it says so, as in a shell.
                names.retain(|name| matches(last, name) && (last.starts_with('.') || !name.starts_with('.')));
                names.sort();
                names.iter().map(|name| directory.join(name)).collect()
            }
            Err(error) => {
                let message =
                    format!("cannot read the directory \"{}\": {}", directory.display(), io_text(&error));
                self.problems.push(Problem::error(asked, message));
                Vec::new()
            }
        }
    }
}

/// Returns whether `name` fits `pattern`, in which `*` is any text and `?` any character.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star was, and how much of the name it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// Puts the settings of another file beside those we have; what both say is an error.
fn merge(into: &mut Vec<Entry>, from: Vec<Entry>, path: &str, problems: &mut Vec<Problem>) {
    let mut known: BTreeMap<String, usize> =
        into.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at)).collect();
    for entry in from {
        let child = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
        let Some(&at) = known.get(&entry.key) else {
            known.insert(entry.key.clone(), into.len());
            into.push(entry);
            continue;
        };
        let groups =
            schema::find(&child).is_some_and(|row| matches!(row.kind, Kind::Section | Kind::Named(_)));
        let first = &mut into[at];
        match (&mut first.node.value, entry.node.value) {
            (_, Value::Null) if groups => {}
            (Value::Null, value) if groups => first.node.value = value,
            (Value::Map(into), Value::Map(from)) if groups => {
                let is_named = schema::find(&child).is_some_and(|row| matches!(row.kind, Kind::Named(_)));
                // What a name stands for is said in one place.
                merge(into, from, if is_named { "\0" } else { &child }, problems);
            }
            _ => problems.push(
                Problem::error(entry.key_span, format!("\"{}\" is set in two files", entry.key)).hint_at(
                    "the first time is in ",
                    first.key_span,
                    "",
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use environment::Memory;

    fn check(files: &[(&str, &str)], expect: &[&str]) {
        let memory = Memory::new(files);
        let found = match load_in(Path::new("/etc/g.yaml"), &memory) {
            Ok(loaded) => loaded.warnings,
            Err(found) => found,
        };
        let lines: Vec<String> = found
            .iter()
            .map(|found| match &found.hint {
                Some(hint) => format!("{}; {hint}", found.line()),
                None => found.line(),
            })
            .collect();
        assert_eq!(lines, expect);
    }

    fn check_text(text: &str, expect: &[&str]) {
        check(&[("/etc/g.yaml", text)], expect);
    }

    #[test]
    fn servers_alone_are_a_group() {
        for text in [
            "upstreams: 192.0.2.1\n",
            "upstreams: [192.0.2.1, 192.0.2.2]\n",
            "upstreams: [{address: 192.0.2.1, weight: 2}]\n",
            "upstreams: {default: 192.0.2.1}\n",
            "upstreams: {default: [192.0.2.1, 192.0.2.2]}\n",
        ] {
            let loaded = load_text(Path::new("x"), text, &Memory::default()).expect("no mistakes");
            let group = &loaded.settings.upstreams[0];
            assert_eq!(group.name.value, "default", "{text}");
            assert!(!group.servers.is_empty() && loaded.settings.upstreams.len() == 1, "{text}");
        }
        check_text(
            "upstreams: {servers: 192.0.2.1}\n",
            &[
                "/etc/g.yaml:1:13: error: \"servers\" is a setting of a upstream group, and no upstream group is named; write \"upstreams: {default: {servers: …}}\"",
            ],
        );
    }

    #[test]
    fn a_missing_name_is_said() {
        check_text(
            "cache: {size: 256MiB}\n",
            &[
                "/etc/g.yaml:1:9: error: \"size\" is a setting of a cache, and no cache is named; write \"cache: {main: {size: …}}\"",
            ],
        );
        check_text(
            "policy: [hosts, local]\n",
            &[
                "/etc/g.yaml:1:9: error: this policy has no name: expected a mapping (\"key: value\" lines, indented); write \"main:\" before it, as in \"policy: {main: …}\"",
            ],
        );
        check_text(
            "port: 5353\n",
            &["/etc/g.yaml:1:1: error: unknown setting \"port\"; here it is \"listen\""],
        );
    }

    #[test]
    fn an_action_that_a_mapping_tears_apart_is_shown_in_quotes() {
        let torn = "inside \"{ }\" the comma ends an entry, so this was split into";
        check_text(
            "sets: {ads: {names: a.example}}\npolicy:\n  main:\n    - {if: qname in ads, do: block(nxdomain, ttl 5m)}\n    - {do: 'ttl(max 1h)', name: a}\n    - {if: qtype in (A, AAAA, MX), do: drop}\n    - forward(default)\n",
            &[
                &format!("/etc/g.yaml:4:30: error: {torn} 2 parts; quote it: \"block(nxdomain, ttl 5m)\""),
                &format!("/etc/g.yaml:6:12: error: {torn} 3 parts; quote it: \"qtype in (A, AAAA, MX)\""),
            ],
        );
    }

    #[test]
    fn what_is_not_filled_in_is_not_logged() {
        check_text(
            "policy: {main: ['log(\"{name} {type}\")', forward(default)]}\n",
            &[
                "/etc/g.yaml:1:23: error: \"{name}\" is not filled in here; name, type, client and result of the query stand beside the text anyway",
            ],
        );
        check_text("policy: {main: ['log(\"a { b\")', forward(default)]}\n", &[]);
    }

    #[test]
    fn a_condition_that_never_holds_is_not_laid_at_the_door_of_another() {
        check_text(
            "policy:\n  main:\n    - {if: qtype == A, do: drop}\n    - {if: qtype == A and false, do: drop}\n    - forward(default)\n",
            &[],
        );
    }

    #[test]
    fn names_that_are_asked_for_elsewhere_are_checked() {
        check_text(
            "upstreams: {default: 192.0.2.1, office: 192.0.2.2}\nsplit:\n  corp.example: office\n  10.in-addr.arpa: [192.0.2.3, \"tls://192.0.2.4#dns.example\"]\n",
            &[],
        );
        check_text(
            "split: {corp.example: 192.0.2.1, CORP.example.: 192.0.2.1, a..b: 192.0.2.1, c.example: }\n",
            &[
                "/etc/g.yaml:1:34: error: \"CORP.example.\" is set twice; the first time is on line 1",
                "/etc/g.yaml:1:60: error: \"a..b\" is not a domain name: a label is empty",
                "/etc/g.yaml:1:77: error: \"c.example\" has no servers: expected a list, each \"system\", an address, a host name, either after \"udp://\", \"tcp://\", \"tls://\" or \"quic://\", or an \"https://\" or \"h3://\" URL, or a DNS stamp, or an upstream group",
            ],
        );
    }

    #[test]
    fn included_files_are_put_beside_each_other() {
        let memory = Memory::new(&[
            ("/etc/g.yaml", "include: conf.d/*.yaml\nedns: {udp-size: 1400}\n"),
            ("/etc/conf.d/a.yaml", "local: {a.example: 192.0.2.1}\n"),
            (
                "/etc/conf.d/b.yaml",
                "include: c.yaml.in\nlocal: {b.example: 192.0.2.2}\nserver: {workers: 2}\n",
            ),
            ("/etc/conf.d/c.yaml.in", "server: {version: x}\n"),
            ("/etc/conf.d/.hidden.yaml", "nonsense: 1\n"),
        ]);
        let settings = load_in(Path::new("/etc/g.yaml"), &memory).expect("no mistakes").settings;
        assert_eq!(settings.local.len(), 2);
        assert_eq!(settings.startup.workers, Some(2));
        assert_eq!(settings.presentation.version.as_deref(), Some("x"));
        assert_eq!(settings.udp_size, 1400);
    }

    #[test]
    fn what_two_files_say_is_an_error_that_names_both() {
        check(
            &[
                ("/etc/g.yaml", "include: [a.yaml, b.yaml]\nedns: {udp-size: 1400}\n"),
                ("/etc/a.yaml", "cache: {main: {size: 1GiB}}\nallow: any\n"),
                ("/etc/b.yaml", "edns:\n  udp-size: 1232\ncache: {main: {max-ttl: 1h}}\nallow: lan\n"),
            ],
            &[
                "/etc/b.yaml:2:3: error: \"udp-size\" is set in two files; the first time is in /etc/g.yaml line 2",
                "/etc/b.yaml:3:9: error: \"main\" is set in two files; the first time is in /etc/a.yaml line 1",
                "/etc/b.yaml:4:1: error: \"allow\" is set in two files; the first time is in /etc/a.yaml line 2",
            ],
        );
    }

    #[test]
    fn includes_end() {
        check(
            &[("/etc/g.yaml", "include: a.yaml\n"), ("/etc/a.yaml", "include: g.yaml\n")],
            &[
                "/etc/a.yaml:1:10: error: \"/etc/g.yaml\" is already part of this configuration; it is the file that everything begins with",
            ],
        );
        check(
            &[("/etc/g.yaml", "include: [none.yaml, \"conf.d/*.yaml\"]\n")],
            &["/etc/g.yaml:1:11: error: \"/etc/none.yaml\": cannot read it: no such file or directory"],
        );
        let files: Vec<(String, String)> =
            (0..12).map(|n| (format!("/etc/{n}.yaml"), format!("include: {}.yaml\n", n + 1))).collect();
        let mut files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files.push(("/etc/g.yaml", "include: 0.yaml\n"));
        check(&files, &["/etc/7.yaml:1:10: error: files include files more than 8 levels deep"]);
    }

    #[test]
    fn files_that_cannot_be_read_are_named() {
        check(&[], &["/etc/g.yaml: error: cannot read it: no such file or directory"]);
        check(
            &[("/etc/g.yaml", "- a\n")],
            &["/etc/g.yaml:1:1: error: this file holds no settings: expected \"key: value\" lines"],
        );
        let mut memory = Memory::default();
        memory.files.insert("/etc/g.yaml".into(), b"a: 1\nb: \xff\n".to_vec());
        let found = load_in(Path::new("/etc/g.yaml"), &memory).expect_err("not text");
        assert_eq!(found[0].line(), "/etc/g.yaml: error: not UTF-8 text (line 2)");
    }

    #[test]
    fn actions_that_yaml_splits_at_a_comma_are_shown_quoted() {
        check(
            &[(
                "/etc/g.yaml",
                "policy:\n  main: [local, ttl(min 1s, max 2s), {if: mark(1), do: [ttl(min 1s, max 2s), accept]}]\n",
            )],
            &[
                "/etc/g.yaml:2:17: error: inside \"[ ]\" the comma ends an item, so this action was split into 2 parts; \
                 quote it: \"ttl(min 1s, max 2s)\"",
                "/etc/g.yaml:2:57: error: inside \"[ ]\" the comma ends an item, so this action was split into 2 parts; \
                 quote it: \"ttl(min 1s, max 2s)\"",
            ],
        );
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, expect) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "a.yaml.bak", false),
            ("a?c", "abc", true),
            ("a*b*c", "aXbYbc", true),
            ("*", "", true),
            ("?", "", false),
        ] {
            assert_eq!(matches(pattern, name), expect, "{pattern} {name}");
        }
    }
}
