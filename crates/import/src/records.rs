//! `hosts`, `arbitrary`, `redirect`: names that are answered or replaced from lists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use diagnostic::{At, FileId};

use super::plugins::{Plugin, words};
use super::policies::{Action, Policy, Rule};
use super::write::{Map, Out};
use super::{Kind, Translator};

/// The TTL that both programs give to names of `hosts`.
pub(super) const HOSTS_TTL: u32 = 10;
/// The finding about the alias that a redirection puts before an answer.
const ALIAS_TTL: &str = "The alias has the TTL of the answer here; there it has one second.";
/// Lines of a file of names that go into the new file.
const LINES_MAX: usize = 200_000;

/// An expression of a domain list.
pub(super) enum Expression<'t> {
    Full(&'t str),
    Domain(&'t str),
    Keyword(&'t str),
    Regexp(&'t str),
}

impl<'t> Expression<'t> {
    /// Reads one; `otherwise` says what a name without a prefix is.
    pub(super) fn read(text: &'t str, otherwise: fn(&'t str) -> Self) -> Option<Self> {
        let Some((kind, rest)) = text.split_once(':') else { return Some(otherwise(text)) };
        match kind {
            "full" => Some(Self::Full(rest)),
            "domain" => Some(Self::Domain(rest)),
            "keyword" => Some(Self::Keyword(rest)),
            "regexp" => Some(Self::Regexp(rest)),
            _ => None,
        }
    }

    /// Returns whether it looks for letters in names that are in none: names are A-labels.
    pub(super) const fn fits_nothing(&self) -> bool {
        match self {
            Self::Full(_) | Self::Domain(_) => false,
            Self::Keyword(text) | Self::Regexp(text) => !text.is_ascii(),
        }
    }

    /// Returns how conditions and sets write it.
    pub(super) fn pattern(&self) -> String {
        match self {
            Self::Full(name) => format!("exact:{}", name.trim_end_matches('.')),
            Self::Domain(name) => format!("suffix:{}", name.trim_end_matches('.')),
            Self::Keyword(text) => format!("keyword:{text}"),
            Self::Regexp(text) => format!("regex:{text}"),
        }
    }
}

impl<'a> Translator<'a> {
    /// Returns the lines of a file that say something, each with its place.
    pub(super) fn lines(&mut self, file: &At<String>) -> Vec<At<String>> {
        let base =
            self.declared.sources.file(FileId(0)).map(|source| source.path.clone()).unwrap_or_default();
        let path = base.parent().unwrap_or(Path::new("")).join(&file.value);
        let text = match self.environment.read(&path) {
            Ok(octets) => String::from_utf8_lossy(&octets).into_owned(),
            Err(error) => {
                let error = diagnostic::io_text(&error);
                self.wrong(file.span, format!("\"{}\": cannot read it: {error}", path.display()));
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                // The file is not part of the configuration's sources; its name is what points to
                // it.
                found.push(At { value: line.to_owned(), span: file.span });
            }
        }
        if found.len() > LINES_MAX {
            self.wrong(file.span, format!("\"{}\" has more than {LINES_MAX} lines", path.display()));
            found.clear();
        }
        found
    }

    /// Names with addresses.
    pub(super) fn hosts(&mut self, plugin: &'a Plugin) -> Vec<Rule> {
        let is_new = !self.names.contains_key(&(Kind::Records, plugin.tag.value.clone()));
        let args = self.args(plugin);
        let mut entries = args.texts("entries", &mut self.problems);
        let files = args.texts("files", &mut self.problems);
        let ends = args.flag("short_circuit", &mut self.problems).is_some_and(|flag| flag.value);
        args.finish(&mut self.problems);
        let mut kept: Vec<String> = Vec::new();
        for file in &files {
            // The file stays the one that counts; only what no record can say is taken out of it.
            let lines = self.lines(file);
            let is_pattern =
                |line: &At<String>| line.value.starts_with("keyword:") || line.value.starts_with("regexp:");
            if lines.iter().any(|line| !is_pattern(line)) {
                kept.push(file.value.clone());
            }
            let patterns: Vec<_> = lines.into_iter().filter(is_pattern).collect();
            if !patterns.is_empty() {
                self.warn(
                    file.span,
                    "keywords and expressions of this file are copied: what is changed there is to be changed here, too",
                );
            }
            entries.extend(patterns);
        }
        let name = self.name(Kind::Records, &plugin.tag.value);
        let mut text = String::new();
        let mut patterns: Vec<(String, String)> = Vec::new();
        // The last line about a name is the one that counts.
        let mut lines: Vec<(String, String, Vec<std::net::IpAddr>)> = Vec::new();
        for entry in &entries {
            let parts = words(entry);
            let Some((first, rest)) = parts.split_first() else { continue };
            let Some(expression) = Expression::read(&first.value, Expression::Full) else {
                self.wrong(first.span, format!("\"{}\" is no expression for names", first.value));
                continue;
            };
            let mut addresses = Vec::new();
            for word in rest {
                match values::address(&word.value) {
                    Ok(address) => addresses.push(address),
                    Err(_) => self.wrong(word.span, format!("\"{}\" is no address", word.value)),
                }
            }
            if addresses.is_empty() {
                continue;
            }
            match expression {
                Expression::Full(name) => {
                    put(&mut lines, format!("{}.", name.trim_end_matches('.')), "", addresses);
                }
                Expression::Domain(name) => {
                    let owner = format!("{}.", name.trim_end_matches('.'));
                    put(&mut lines, owner, "*.", addresses);
                }
                Expression::Keyword(_) | Expression::Regexp(_) => {
                    let list: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                    patterns.push((expression.pattern(), list.join("|")));
                }
            }
        }
        for (owner, below, addresses) in &lines {
            for address in addresses {
                let kind = if address.is_ipv4() { "A" } else { "AAAA" };
                text.push_str(&format!("{owner} {HOSTS_TTL} {kind} {address}\n"));
                if !below.is_empty() {
                    text.push_str(&format!("{below}{owner} {HOSTS_TTL} {kind} {address}\n"));
                }
            }
        }
        let mut rules = Vec::new();
        if !text.is_empty() || !kept.is_empty() {
            if is_new {
                let mut map = Map::default();
                if !text.is_empty() {
                    map.put("text", Out::Block(text));
                }
                if !kept.is_empty() {
                    self.has_hosts_files = true;
                    let notes = vec!["These files are read again when they change.".to_owned()];
                    map.note("hosts", notes, Out::Row(kept));
                }
                self.records.put(name.clone(), map);
            }
            // Other types than addresses go on to the next step.
            rules.push(finds(format!("records({name})"), Some("qtype in [A, AAAA]".to_owned()), ends));
        }
        for (number, (pattern, addresses)) in patterns.into_iter().enumerate() {
            let list = self.list_set(&format!("{name}-{}", number + 1), &[pattern]);
            let condition = format!("qname in {list} and qtype in [A, AAAA]");
            rules.push(finds(
                format!("block({addresses}, ttl {HOSTS_TTL}s, ede none)"),
                Some(condition),
                ends,
            ));
        }
        rules
    }

    /// Records of any type.
    pub(super) fn arbitrary(&mut self, plugin: &'a Plugin) -> Vec<Rule> {
        let is_new = !self.names.contains_key(&(Kind::Records, plugin.tag.value.clone()));
        let args = self.args(plugin);
        let rules = args.texts("rules", &mut self.problems);
        let files = args.texts("files", &mut self.problems);
        let ends = args.flag("short_circuit", &mut self.problems).is_some_and(|flag| flag.value);
        args.finish(&mut self.problems);
        let name = self.name(Kind::Records, &plugin.tag.value);
        if is_new {
            let mut map = Map::default();
            if !rules.is_empty() {
                let text: String = rules.iter().map(|rule| format!("{}\n", rule.value.trim())).collect();
                map.put("text", Out::Block(text));
            }
            if !files.is_empty() {
                let files = files.iter().map(|file| file.value.clone()).collect();
                map.put("files", Out::Row(files));
            }
            let notes = vec![
                "A name with other types only gets an empty answer here; there it goes on to the next step."
                    .to_owned(),
            ];
            self.records.note(name.clone(), notes, map);
        }
        vec![finds(format!("records({name})"), None, ends)]
    }

    /// Names that are replaced by others.
    pub(super) fn redirect(&mut self, plugin: &'a Plugin) -> Vec<Rule> {
        let args = self.args(plugin);
        let mut entries = args.texts("rules", &mut self.problems);
        let files = args.texts("files", &mut self.problems);
        let _ = args.flag("short_circuit", &mut self.problems);
        args.finish(&mut self.problems);
        for file in &files {
            entries.extend(self.lines(file));
        }
        // One rule for each target, in the order in which the programs look: whole names, what lies
        // below names (the longest first), expressions, parts of names.
        let mut found: Vec<(usize, String, String)> = Vec::new();
        for entry in &entries {
            let parts = words(entry);
            let [pattern, target] = parts.as_slice() else {
                self.wrong(entry.span, format!("\"{}\" is no expression and a name", entry.value));
                continue;
            };
            let Some(expression) = Expression::read(&pattern.value, Expression::Full) else {
                self.wrong(pattern.span, format!("\"{}\" is no expression for names", pattern.value));
                continue;
            };
            if values::name(target.value.trim_end_matches('.')).is_err() {
                self.wrong(target.span, format!("\"{}\" is no name", target.value));
                continue;
            }
            let rank = match (&expression, self.dialect) {
                // The rule that was loaded first wins.
                (_, super::Dialect::Oxidns) => 0,
                (Expression::Full(_), _) => 0,
                (Expression::Domain(name), _) => 1000 - name.len().min(900),
                (Expression::Regexp(_), _) => 2000,
                (Expression::Keyword(_), _) => 3000,
            };
            found.push((rank, expression.pattern(), target.value.trim_end_matches('.').to_owned()));
        }
        found.sort_by_key(|(rank, ..)| *rank);
        let mut grouped: Vec<(Vec<String>, String)> = Vec::new();
        // Where whole names are, which cannot overlap: one rule for each target will do.
        let mut whole: BTreeMap<String, usize> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for (_, pattern, target) in found {
            // The first of two that are the same counts.
            if !seen.insert(pattern.to_ascii_lowercase()) {
                continue;
            }
            let is_whole = self.dialect == super::Dialect::Mosdns && pattern.starts_with("exact:");
            let known = if is_whole { whole.get(&target).copied() } else { grouped.len().checked_sub(1) };
            match known.and_then(|at| grouped.get_mut(at)).filter(|(_, last)| *last == target) {
                Some((patterns, _)) => patterns.push(pattern),
                None => {
                    if is_whole {
                        whole.insert(target.clone(), grouped.len());
                    }
                    grouped.push((vec![pattern], target));
                }
            }
        }
        let tag = plugin.tag.value.clone();
        let key = (Kind::Policy, format!("redirect {tag}"));
        if let Some(name) = self.names.get(&key) {
            return vec![Rule { actions: vec![Action::steers(format!("call({name})"))], ..Rule::default() }];
        }
        let mut policy = Policy { notes: vec![ALIAS_TTL.to_owned()], rules: Vec::new() };
        for (number, (patterns, target)) in grouped.into_iter().enumerate() {
            let list = self.name_list(&format!("{tag}-{}", number + 1), &patterns);
            // A name is replaced once: what stands first counts, and then the policy is left.
            let actions = vec![Action::plain(format!("redirect({target})")), Action::plain("return")];
            policy.rules.push(Rule {
                condition: Some(format!("qname in {list}")),
                actions,
                ..Rule::default()
            });
        }
        if policy.rules.is_empty() {
            self.warn(plugin.tag.span, "it redirects nothing: it is left out");
            return Vec::new();
        }
        let name = self.fresh(Kind::Policy, &tag);
        self.names.insert(key, name.clone());
        self.policies.push((name.clone(), policy));
        vec![Rule { actions: vec![Action::steers(format!("call({name})"))], ..Rule::default() }]
    }

    /// Returns a list of patterns as a condition can have it: in place if it is short and plain,
    /// else as a set.
    pub(super) fn name_list(&mut self, name: &str, patterns: &[String]) -> String {
        let is_plain = |pattern: &String| {
            !pattern.starts_with("regex:")
                && pattern.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:".contains(c))
        };
        if patterns.len() <= 3 && patterns.iter().all(is_plain) {
            return patterns.join("|");
        }
        self.list_set(name, patterns)
    }

    /// Returns the set that holds these patterns.
    pub(super) fn list_set(&mut self, name: &str, patterns: &[String]) -> String {
        let key = patterns.join("\n");
        if let Some(known) = self.lists.get(&key) {
            return known.clone();
        }
        let name = self.fresh(Kind::Set, name);
        let mut map = Map::default();
        map.put("names", Out::List(patterns.iter().map(|pattern| pattern.as_str().into()).collect()));
        self.sets.put(name.clone(), map);
        self.lists.insert(key, name.clone());
        name
    }
}

fn finds(text: String, condition: Option<String>, ends: bool) -> Rule {
    let action = Action::finds(text);
    let action = if ends { action.ending() } else { action };
    Rule { condition, actions: vec![action], ..Rule::default() }
}

/// Puts the addresses of a name down; a later line replaces an earlier one.
fn put(
    lines: &mut Vec<(String, String, Vec<std::net::IpAddr>)>,
    owner: String,
    below: &str,
    addresses: Vec<std::net::IpAddr>,
) {
    lines.retain(|(other, other_below, _)| !(other.eq_ignore_ascii_case(&owner) && other_below == below));
    lines.push((owner, below.to_owned(), addresses));
}
