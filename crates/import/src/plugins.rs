//! Files of plugins as they are written: includes, plugins, sequences. What a plugin means stands
//! elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use diagnostic::suggest::{nearest, one_of};
use diagnostic::{At, FileId, Problem, Scalar, Sources, Span};
use environment::{Environment, FILE_OCTETS_MAX};
use yaml::{Entry, Node, Value};

use super::Dialect;

/// How deep files may include files, in both programs.
const INCLUDE_DEPTH_MAX: usize = 8;
/// Files of one configuration, so that a circle or a tree of includes ends.
const FILES_MAX: usize = 256;

/// Names that OxiDNS replaces for each query, so that they are no variables of the environment.
const TEMPLATE_KEYS: [&str; 17] = [
    "qname",
    "qtype",
    "qtype_name",
    "qclass",
    "qclass_name",
    "client_ip",
    "client_port",
    "server_name",
    "url_path",
    "marks",
    "has_resp",
    "rcode",
    "rcode_name",
    "resp_ip",
    "cron_plugin_tag",
    "cron_job_name",
    "cron_trigger_kind",
];

/// A plugin as declared.
#[derive(Clone, Debug)]
pub(super) struct Plugin {
    /// What others call it; a made-up name if it has none.
    pub(super) tag: At<String>,
    /// What it is.
    pub(super) kind: At<String>,
    /// Its settings.
    pub(super) args: Node,
}

/// A whole configuration.
pub(super) struct Declared {
    /// Plugins in the order in which they are made.
    pub(super) plugins: Vec<Plugin>,
    /// Everything else of the first file.
    pub(super) others: Vec<Entry>,
    /// Every file that was read.
    pub(super) sources: Sources,
    /// What is wrong so far.
    pub(super) problems: Vec<Problem>,
}

impl Declared {
    fn new() -> Self {
        let sources = Sources::new(&settings::secret_keys());
        Self { plugins: Vec::new(), others: Vec::new(), sources, problems: Vec::new() }
    }

    /// Returns the plugin of that tag; the last one, as the programs do.
    pub(super) fn find(&self, tag: &str) -> Option<&Plugin> {
        self.plugins.iter().rev().find(|plugin| plugin.tag.value == tag)
    }
}

/// Reads the file `path` and all that it includes.
pub(super) fn read(dialect: Dialect, path: &Path, environment: &dyn Environment) -> Declared {
    let mut reader =
        Reader { dialect, environment, found: Declared::new(), seen: BTreeSet::new(), anonymous: 0 };
    reader.file(path, None, 0);
    let mut tags: BTreeMap<&str, Span> = BTreeMap::new();
    for plugin in &reader.found.plugins {
        if let Some(first) = tags.insert(&plugin.tag.value, plugin.tag.span) {
            reader.found.problems.push(
                Problem::error(plugin.tag.span, format!("there are two plugins \"{}\"", plugin.tag.value))
                    .hint_at("the first is on ", first, ""),
            );
        }
    }
    reader.found
}

struct Reader<'a> {
    dialect: Dialect,
    environment: &'a dyn Environment,
    found: Declared,
    seen: BTreeSet<PathBuf>,
    /// Plugins without a tag so far.
    anonymous: usize,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, asked: Option<Span>, depth: usize) {
        let text = match self.environment.read(path) {
            Ok(octets) if octets.len() > FILE_OCTETS_MAX => {
                Err(format!("larger than {} MiB", FILE_OCTETS_MAX >> 20))
            }
            Ok(octets) => String::from_utf8(octets).map_err(|_| "not UTF-8 text".to_owned()),
            Err(error) => Err(format!("cannot read it: {}", diagnostic::io_text(&error))),
        };
        let text = match (text, asked) {
            (Ok(text), _) => text,
            (Err(message), Some(asked)) => {
                let message = format!("\"{}\": {message}", path.display());
                self.found.problems.push(Problem::error(asked, message));
                return;
            }
            (Err(message), None) => {
                let file = self.found.sources.add(path, String::new());
                self.found.problems.push(Problem::of_file(file, message));
                return;
            }
        };
        self.seen.insert(path.to_owned());
        let file = self.found.sources.add(path, text.clone());
        let (dialect, environment) = (self.dialect, self.environment);
        let variables = |name: &str| variable(dialect, environment, name);
        let parsed = yaml::parse(file, &text, &variables, &mut self.found.problems);
        let entries = match parsed.root.value {
            Value::Map(entries) => entries,
            Value::Null => Vec::new(),
            Value::Long(_) | Value::Scalar(_) | Value::List(_) => {
                let problem = Problem::error(parsed.root.head(), "this file holds no plugins");
                self.found.problems.push(problem.expected("a mapping with the key \"plugins\""));
                return;
            }
        };
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        // Included files come first: plugins are made in this order.
        for entry in entries.iter().filter(|entry| entry.key == "include") {
            self.includes(entry, &directory, depth);
        }
        for entry in entries {
            match entry.key.as_str() {
                "include" => {}
                "plugins" => self.plugins(entry.node, file),
                _ if depth == 0 => self.found.others.push(entry),
                // Both programs read nothing else of an included file.
                _ => self.found.problems.push(Problem::warning(
                    entry.key_span,
                    format!("\"{}\" of an included file has no effect there either", entry.key),
                )),
            }
        }
    }

    fn includes(&mut self, entry: &Entry, directory: &Path, depth: usize) {
        for node in items(&entry.node) {
            let Value::Scalar(scalar) = &node.value else {
                self.found.problems.push(Problem::error(node.head(), "this is no file").expected("a path"));
                continue;
            };
            let wanted = match self.dialect {
                // Relative to where the program is started, which is usually where its file is.
                Dialect::Mosdns if depth == 0 => directory.join(&scalar.text),
                Dialect::Mosdns => self.root().join(&scalar.text),
                Dialect::Oxidns => directory.join(&scalar.text),
            };
            if depth >= INCLUDE_DEPTH_MAX || self.seen.len() >= FILES_MAX {
                let message = format!("files include files more than {INCLUDE_DEPTH_MAX} levels deep");
                self.found.problems.push(Problem::error(node.span, message));
                continue;
            }
            if self.seen.contains(&wanted) {
                let message = format!("\"{}\" is already part of this configuration", wanted.display());
                self.found.problems.push(Problem::error(node.span, message));
                continue;
            }
            self.file(&wanted, Some(node.span), depth + 1);
        }
    }

    /// Returns the directory of the first file.
    fn root(&self) -> PathBuf {
        let first = self.found.sources.file(FileId(0)).map(|source| source.path.clone()).unwrap_or_default();
        first.parent().unwrap_or(Path::new("")).to_owned()
    }

    fn plugins(&mut self, node: Node, file: FileId) {
        let list = match node.value {
            Value::List(list) => list,
            Value::Null => return,
            Value::Long(_) | Value::Scalar(_) | Value::Map(_) => {
                let problem = Problem::error(node.head(), "this is no list of plugins");
                self.found
                    .problems
                    .push(problem.expected("a list of mappings with \"tag\", \"type\" and \"args\""));
                return;
            }
        };
        for node in list {
            let head = node.head();
            let Value::Map(entries) = node.value else {
                self.found.problems.push(
                    Problem::error(head, "this is no plugin").expected("\"tag\", \"type\" and \"args\""),
                );
                continue;
            };
            let mut tag = None;
            let mut kind = None;
            let mut args = Node { span: Span { file, start: head.end, end: head.end }, value: Value::Null };
            for entry in entries {
                match (entry.key.as_str(), entry.node.value) {
                    ("tag", Value::Scalar(scalar)) => {
                        tag = Some(At { value: scalar.text, span: entry.node.span });
                    }
                    ("type", Value::Scalar(scalar)) => {
                        kind = Some(At { value: scalar.text, span: entry.node.span });
                    }
                    ("args", value) => args = Node { span: entry.node.span, value },
                    ("tag" | "type", _) => {
                        let message = format!("\"{}\" of a plugin is a word", entry.key);
                        self.found.problems.push(Problem::error(entry.key_span, message));
                    }
                    (other, _) => {
                        let problem =
                            Problem::error(entry.key_span, format!("a plugin has no key \"{other}\""));
                        let problem = problem.expected(one_of(&["tag", "type", "args"]));
                        self.found.problems.push(match nearest(other, ["tag", "type", "args"]) {
                            Some(near) => problem.hint(format!("did you mean \"{near}\"?")),
                            None => problem,
                        });
                    }
                }
            }
            let Some(kind) = kind else {
                self.found.problems.push(Problem::error(head, "this plugin has no \"type\""));
                continue;
            };
            let tag = tag.unwrap_or_else(|| {
                self.anonymous += 1;
                At { value: format!("unnamed-{}", self.anonymous), span: kind.span }
            });
            self.found.plugins.push(Plugin { tag, kind, args });
        }
    }
}

/// Returns what `${name}` stands for.
fn variable(dialect: Dialect, environment: &dyn Environment, name: &str) -> Option<String> {
    let as_written = || Some(format!("${{{name}}}"));
    match dialect {
        Dialect::Mosdns => as_written(),
        Dialect::Oxidns if TEMPLATE_KEYS.contains(&name) => as_written(),
        Dialect::Oxidns => {
            environment.variable(name.strip_prefix("env:").unwrap_or(name)).filter(|value| !value.is_empty())
        }
    }
}

/// Returns the items of a list; what is no list is its own only item.
pub(super) fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(list) => list,
        Value::Null => &[],
        Value::Long(_) | Value::Scalar(_) | Value::Map(_) => std::slice::from_ref(node),
    }
}

/// One rule of a sequence.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// All of them must hold.
    pub(super) matches: Vec<Quick>,
    /// What is done.
    pub(super) exec: Option<Quick>,
    /// The whole rule.
    pub(super) span: Span,
}

/// `type argument` or `$tag argument`, perhaps with `!` before it.
#[derive(Clone, Debug)]
pub(super) struct Quick {
    /// Whether the result is turned round.
    pub(super) negated: bool,
    /// Whether the head is the tag of a plugin.
    pub(super) is_reference: bool,
    /// The type or tag.
    pub(super) head: At<String>,
    /// The rest.
    pub(super) argument: At<String>,
}

impl Quick {
    /// Splits the text of a scalar.
    pub(super) fn read(scalar: &Scalar, may_be_negated: bool) -> Self {
        let text = scalar.text.as_str();
        let offset = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
        let mut rest = text.trim();
        let negated = may_be_negated && rest.starts_with('!');
        if negated {
            rest = rest[1..].trim_start();
        }
        let is_reference = rest.starts_with('$');
        if is_reference {
            rest = &rest[1..];
        }
        let (head, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let argument = argument.trim();
        let at = |part: &str| {
            let start = if part.is_empty() { text.trim_end().len() } else { offset(part) };
            At { value: part.to_owned(), span: scalar.span(start, start + part.len()) }
        };
        Self { negated, is_reference, head: at(head), argument: at(argument) }
    }

    /// Returns the words of the argument, each with its place.
    pub(super) fn words(&self) -> Vec<At<String>> {
        words(&self.argument)
    }

    /// Returns the place of the whole.
    pub(super) fn span(&self) -> Span {
        if self.argument.value.is_empty() { self.head.span } else { self.head.span.to(self.argument.span) }
    }
}

/// Splits at blanks. Places are exact where the text stands as it is in the file.
pub(super) fn words(text: &At<String>) -> Vec<At<String>> {
    text.value
        .split_whitespace()
        .map(|word| {
            let start = (word.as_ptr() as usize - text.value.as_ptr() as usize) as u32;
            let start = (text.span.start + start).min(text.span.end);
            let end = (start + word.len() as u32).min(text.span.end);
            At { value: word.to_owned(), span: Span { file: text.span.file, start, end } }
        })
        .collect()
}

/// Reads the rules of a sequence.
pub(super) fn rules(node: &Node, problems: &mut Vec<Problem>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for item in items(node) {
        let Value::Map(entries) = &item.value else {
            problems
                .push(Problem::error(item.head(), "this is no rule").expected("\"matches\" and \"exec\""));
            continue;
        };
        let mut rule = Rule { matches: Vec::new(), exec: None, span: item.head().to(item.span) };
        for entry in entries {
            match entry.key.as_str() {
                "matches" => {
                    for node in items(&entry.node) {
                        match &node.value {
                            Value::Scalar(scalar) if !scalar.text.trim().is_empty() => {
                                rule.matches.push(Quick::read(scalar, true));
                            }
                            _ => problems.push(Problem::error(node.head(), "this is no matcher")),
                        }
                    }
                }
                "exec" => match &entry.node.value {
                    Value::Scalar(scalar) if !scalar.text.trim().is_empty() => {
                        rule.exec = Some(Quick::read(scalar, false));
                    }
                    Value::Null => {}
                    _ => problems.push(Problem::error(entry.node.head(), "this is no executor")),
                },
                other => {
                    let problem = Problem::error(entry.key_span, format!("a rule has no key \"{other}\""));
                    problems.push(problem.expected(one_of(&["matches", "exec"])));
                }
            }
        }
        rules.push(rule);
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use environment::Memory;

    fn plugins(dialect: Dialect, files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let found = read(dialect, Path::new(files[0].0), &Memory::new(files));
        let problems = diagnostic::diagnostics(found.problems, &found.sources);
        let plugins =
            found.plugins.iter().map(|plugin| format!("{}:{}", plugin.tag.value, plugin.kind.value));
        (plugins.collect(), problems.iter().map(diagnostic::Diagnostic::line).collect())
    }

    #[test]
    fn included_plugins_come_first() {
        let files = [
            ("a.yaml", "include: [b.yaml]\nplugins:\n  - {tag: x, type: cache}\nlog: {level: info}\n"),
            ("b.yaml", "plugins:\n  - tag: y\n    type: forward\n    args: {}\nlog: {level: warn}\n"),
        ];
        let (found, problems) = plugins(Dialect::Mosdns, &files);
        assert_eq!(found, ["y:forward", "x:cache"]);
        assert_eq!(problems, ["b.yaml:5:1: warning: \"log\" of an included file has no effect there either"]);
    }

    #[test]
    fn mistakes_of_the_form_are_all_told() {
        let text = "include: c.yaml\nplugins:\n  - {tag: x, typ: cache}\n  - [1]\n  - {tag: y, type: a}\n  - {tag: y, type: b}\n";
        let (_, problems) = plugins(Dialect::Mosdns, &[("a.yaml", text)]);
        assert_eq!(
            problems,
            [
                "a.yaml:1:10: error: \"c.yaml\": cannot read it: no such file or directory",
                "a.yaml:3:6: error: this plugin has no \"type\"",
                "a.yaml:3:14: error: a plugin has no key \"typ\": expected tag, type or args",
                "a.yaml:4:5: error: this is no plugin: expected \"tag\", \"type\" and \"args\"",
                "a.yaml:6:11: error: there are two plugins \"y\"",
            ]
        );
    }

    #[test]
    fn only_one_of_the_programs_knows_variables() {
        let text = "plugins:\n  - {tag: \"${TAG:-x}-${qname}\", type: t}\n";
        assert_eq!(plugins(Dialect::Oxidns, &[("a", text)]).0, ["x-${qname}:t"]);
        let text = "plugins:\n  - {tag: \"${TAG}\", type: t}\n";
        assert_eq!(plugins(Dialect::Mosdns, &[("a", text)]).0, ["${TAG}:t"]);
    }

    #[test]
    fn quick_forms_are_split() {
        let check = |text: &str, expect: (bool, bool, &str, &str)| {
            let span = Span { file: FileId(0), start: 0, end: text.len() as u32 };
            let quick = Quick::read(&Scalar::straight(text.to_owned(), span), true);
            let found = (quick.negated, quick.is_reference, &*quick.head.value, &*quick.argument.value);
            assert_eq!(found, expect, "{text}");
        };
        check("qname $a b", (false, false, "qname", "$a b"));
        check(" ! qtype  1 28 ", (true, false, "qtype", "1 28"));
        check("!$lan", (true, true, "lan", ""));
        check("accept", (false, false, "accept", ""));
    }
}
