//! Providers to sets, and the lists that matchers write out.

use diagnostic::At;
use lists::{List, ListFormat};

use super::outbound::ListFile;
use super::plugins::{Plugin, words};
use super::records::Expression;
use super::write::{Map, Noted, Out};
use super::{Dialect, Kind, Translator};

impl<'a> Translator<'a> {
    /// Returns what a condition compares names with: `$set`, `&file` and expressions.
    pub(super) fn name_terms(&mut self, argument: &At<String>) -> Option<Vec<String>> {
        let mut terms = Vec::new();
        let mut patterns = Vec::new();
        let mut files = Vec::new();
        for word in words(argument) {
            if let Some(tag) = word.value.strip_prefix('$') {
                let tag = At { value: tag.to_owned(), span: word.span };
                terms.push(self.set_of(&tag)?);
            } else if let Some(file) = word.value.strip_prefix('&') {
                files.push(file.to_owned());
            } else {
                match Expression::read(&word.value, Expression::Domain) {
                    Some(expression) => patterns.push(expression.pattern()),
                    None => {
                        self.wrong(word.span, format!("\"{}\" is no expression for names", word.value));
                        return None;
                    }
                }
            }
        }
        for file in files {
            terms.push(self.file_set("names", &file));
        }
        if !patterns.is_empty() {
            terms.push(self.name_list("names", &patterns));
        }
        Some(terms)
    }

    /// Returns what a condition compares addresses with.
    pub(super) fn address_terms(&mut self, argument: &At<String>) -> Option<Vec<String>> {
        let mut terms = Vec::new();
        for word in words(argument) {
            if let Some(tag) = word.value.strip_prefix('$') {
                let tag = At { value: tag.to_owned(), span: word.span };
                terms.push(self.set_of(&tag)?);
            } else if let Some(file) = word.value.strip_prefix('&') {
                terms.push(self.file_set("addresses", file));
            } else {
                terms.push(self.network(&word)?);
            }
        }
        Some(terms)
    }

    /// Returns a network without host bits.
    fn network(&mut self, word: &At<String>) -> Option<String> {
        let (address, bits) = match word.value.split_once('/') {
            Some((address, bits)) => (address, bits.parse::<u8>().ok()),
            None => (word.value.as_str(), None),
        };
        match values::address(address) {
            Ok(found) if bits.is_none() && !word.value.contains('/') => Some(found.to_string()),
            Ok(found) if bits.is_some_and(|bits| bits <= if found.is_ipv4() { 32 } else { 128 }) => {
                Some(wire::Prefix::new(found, bits.unwrap_or(0)).to_string())
            }
            Ok(_) | Err(_) => {
                self.wrong(word.span, format!("\"{}\" is no address or network", word.value));
                None
            }
        }
    }

    /// Returns the set that is a file.
    fn file_set(&mut self, kind: &'static str, file: &str) -> String {
        let key = format!("{kind} {file}");
        if let Some(known) = self.lists.get(&key) {
            return known.clone();
        }
        let stem = file.rsplit('/').next().unwrap_or(file).split('.').next().unwrap_or(file).to_owned();
        let name = self.fresh(Kind::Set, &stem);
        let mut map = Map::default();
        let lists = self.lists([ListFile::whole(kind, file.to_owned())]);
        map.put("lists", lists);
        self.sets.put(name.clone(), map);
        self.lists.insert(key, name.clone());
        name
    }

    /// Writes a provider as a set, once.
    pub(super) fn set_plugin(&mut self, plugin: &'a Plugin) {
        if self.names.contains_key(&(Kind::Set, plugin.tag.value.clone())) {
            return;
        }
        let name = self.name(Kind::Set, &plugin.tag.value);
        let mut map = Map::default();
        let is_oxidns = self.dialect == Dialect::Oxidns;
        match plugin.kind.value.as_str() {
            "domain_set" => self.domain_set(plugin, &mut map),
            "ip_set" => self.ip_set(plugin, &mut map),
            "geosite" | "geoip" if is_oxidns => {
                if !self.geo_set(plugin, &mut map) {
                    return;
                }
            }
            "adguard_rule" if is_oxidns => self.adguard_set(plugin, &mut map),
            "dynamic_domain_set" if is_oxidns => self.dynamic_set(plugin, &mut map),
            other => {
                self.wrong(plugin.kind.span, format!("\"{other}\" is no set"));
                return;
            }
        }
        self.sets.put(name, map);
    }

    /// Writes names: expressions, files of them, other sets.
    fn domain_set(&mut self, plugin: &'a Plugin, map: &mut Map) {
        let args = self.args(plugin);
        let expressions = args.texts("exps", &mut self.problems);
        let files = args.texts("files", &mut self.problems);
        let sets = args.texts("sets", &mut self.problems);
        args.finish(&mut self.problems);
        let mut items: Vec<Noted> = Vec::new();
        for text in &expressions {
            match Expression::read(&text.value, Expression::Domain) {
                Some(expression) if expression.fits_nothing() => {
                    self.warn(text.span, "left out: letters outside ASCII are in no name, as it is compared");
                }
                Some(expression) => items.push(expression.pattern().into()),
                None => {
                    self.wrong(text.span, format!("\"{}\" is no expression for names", text.value));
                }
            }
        }
        if !items.is_empty() {
            map.put("names", Out::List(items));
        }
        self.files_and_sets(plugin, "names", &files, &sets, map);
        self.empty_set(plugin, "names", map);
    }

    /// Writes addresses: networks, files of them, other sets.
    fn ip_set(&mut self, plugin: &'a Plugin, map: &mut Map) {
        let args = self.args(plugin);
        let addresses = args.texts("ips", &mut self.problems);
        let files = args.texts("files", &mut self.problems);
        let sets = args.texts("sets", &mut self.problems);
        args.finish(&mut self.problems);
        let mut items: Vec<Noted> = Vec::new();
        for address in &addresses {
            items.extend(self.network(address).map(Noted::from));
        }
        if !items.is_empty() {
            map.put("addresses", Out::List(items));
        }
        self.files_and_sets(plugin, "addresses", &files, &sets, map);
        self.empty_set(plugin, "addresses", map);
    }

    /// Writes parts of a file of v2ray; returns whether there is one.
    fn geo_set(&mut self, plugin: &'a Plugin, map: &mut Map) -> bool {
        let kind = plugin.kind.value.as_str();
        let args = self.args(plugin);
        let file = args.text("file", &mut self.problems);
        let selectors = args.texts("selectors", &mut self.problems);
        args.finish(&mut self.problems);
        let Some(file) = file else {
            self.wrong(plugin.kind.span, format!("\"{kind}\" needs a \"file\""));
            return false;
        };
        let format = if kind == "geosite" { "geosite" } else { "geoip" };
        let list = |part: Option<String>| ListFile { format, file: file.value.clone(), part };
        let lists: Vec<_> = match selectors.as_slice() {
            [] => vec![list(None)],
            some => some.iter().map(|part| list(Some(part.value.clone()))).collect(),
        };
        let lists = self.lists(lists);
        map.put("lists", lists);
        true
    }

    /// Writes rules in AdGuard's syntax.
    fn adguard_set(&mut self, plugin: &'a Plugin, map: &mut Map) {
        let args = self.args(plugin);
        let rules = args.texts("rules", &mut self.problems);
        let files = args.texts("files", &mut self.problems);
        args.finish(&mut self.problems);
        let mut kept: Vec<Noted> = Vec::new();
        for rule in rules {
            match adguard_rule(&rule) {
                Ok(()) => kept.push(rule.value.into()),
                Err(why) => self.warn(
                    rule.span,
                    format!("this rule is left out: {why}; OxiDNS leaves out what it does not know, too"),
                ),
            }
        }
        if !kept.is_empty() {
            map.put("rules", Out::List(kept));
        }
        if !files.is_empty() {
            let lists = self.lists(files.into_iter().map(|file| ListFile::whole("adguard", file.value)));
            map.put("lists", lists);
        }
    }

    /// Writes a set that learns names.
    fn dynamic_set(&mut self, plugin: &'a Plugin, map: &mut Map) {
        let args = self.args(plugin);
        let _ = args.text("path", &mut self.problems);
        let first = args.texts("bootstrap_rules", &mut self.problems);
        let limit = args.number("max_entries", &mut self.problems);
        let ttl = args.number("entry_ttl_seconds", &mut self.problems);
        args.ignore(
            &["queue_size", "batch_size", "flush_interval_ms", "cleanup_interval_seconds", "metadata_path"],
            "the set looks after itself",
            &mut self.problems,
        );
        args.finish(&mut self.problems);
        let mut dynamic = Map::default();
        dynamic.put("holds", "names");
        dynamic.put_some("limit", limit.map(|limit| limit.value.to_string()));
        dynamic.put_some("ttl", ttl.map(|ttl| format!("{}s", ttl.value)));
        map.note(
            "dynamic",
            vec!["What OxiDNS has learned is not taken over: \"gannet set add\" does that.".to_owned()],
            dynamic,
        );
        if !first.is_empty() {
            let items = first
                .iter()
                .filter_map(|text| Expression::read(&text.value, Expression::Domain))
                .map(|expression| Noted::from(expression.pattern()))
                .collect();
            map.put("names", Out::List(items));
        }
    }

    /// Says of a set without entries what it holds none of.
    fn empty_set(&mut self, plugin: &'a Plugin, kind: &str, map: &mut Map) {
        if map.is_empty() {
            self.warn(plugin.tag.span, "this set is empty: nothing is in it here either");
            map.put(kind, Out::List(Vec::new()));
        }
    }

    fn files_and_sets(
        &mut self,
        plugin: &'a Plugin,
        kind: &'static str,
        files: &[At<String>],
        sets: &[At<String>],
        map: &mut Map,
    ) {
        if !files.is_empty() {
            let lists = self.lists(files.iter().map(|file| ListFile::whole(kind, file.value.clone())));
            map.put("lists", lists);
        }
        let mut include = Vec::new();
        for set in sets {
            let tag = At { value: set.value.trim_start_matches('$').to_owned(), span: set.span };
            if tag.value == plugin.tag.value {
                self.wrong(set.span, "a set cannot hold itself".to_owned());
            } else {
                include.extend(self.set_of(&tag));
            }
        }
        if !include.is_empty() {
            map.put("include", Out::Row(include));
        }
    }
}

/// Says what is wrong with a rule in AdGuard's syntax.
fn adguard_rule(rule: &At<String>) -> Result<(), String> {
    // By itself, what takes back another rule is none.
    if rule.value.contains("badfilter") {
        return Ok(());
    }
    let list = List { format: ListFormat::Adguard, select: Vec::new(), is_own: true };
    list.check(rule.value.clone().into_bytes()).map(drop)
}
