//! Sets of names and addresses: from what the configuration and lists say to what queries are compared with.
//!
//! A set is compiled anew only if something that it is made of has changed; otherwise the one in use is taken over.

mod adguard;
mod dynamic;
mod mmdb;
mod pattern;
mod place;
mod reading;
mod rpz;
mod store;
#[cfg(test)]
mod testing;
mod text;
mod v2ray;

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use diagnostic::Problem;
use sets::{AddressSet, AddressSetBuilder, Blocklist, BlocklistBuilder, NameSet, NameSetBuilder};
use wire::{HashKey, Prefix};

pub use dynamic::{Dynamic, DynamicHandle};
pub(crate) use pattern::name_pattern;
pub use place::{UrlList, copy_file};
pub(crate) use place::{file_of, url_lists};
use place::{is_own, label_of, read_list};
pub(crate) use reading::Mistakes;
pub(crate) use reading::address_range;
use reading::{Ear, Reading};

use crate::surroundings::Surroundings;
use crate::settings::{ListFormat, NamePattern, Set, SetList, Settings};

/// Part of what a condition compares with: something written there, or the name of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Term<'a, T> {
    /// As it is written.
    Inline(T),
    /// What the set of that name holds.
    Set(&'a str),
}

/// A set, compiled.
pub struct CompiledSet {
    /// What it was made of: the same number, the same set.
    print: u64,
    /// The state of its lists then.
    stamps: Vec<Option<u64>>,
    /// The names it holds. Rules that look at more than a name are not among them.
    names: Arc<NameSet>,
    addresses: Arc<AddressSet>,
    /// The whole list, if it has exceptions or says what is to become of a query.
    list: Option<Arc<Blocklist>>,
    dynamic: Option<Dynamic>,
    /// What was wrong with each list.
    mistakes: Vec<Vec<Mistake>>,
    /// Rules of its own, and ranges of addresses.
    pub rules: usize,
    /// Octets of memory.
    pub octets: usize,
    /// How long compiling it took.
    pub took: Duration,
}

/// What takes long to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    /// A set.
    Set,
    /// A zone.
    Zone,
}

/// How far a large set or zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetProgress<'a> {
    /// What it is.
    pub what: Loading,
    /// Its name.
    pub set: &'a str,
    /// The list or file that is read; none when all are, and the set is put together, or of many files with zones.
    pub list: Option<&'a str>,
    /// Lines, entries or records that are read, or rules of the set.
    pub count: usize,
}

/// What was wrong with one list.
#[derive(Clone)]
struct Mistake {
    text: String,
    is_error: bool,
}

/// Every set of a configuration, compiled.
#[derive(Clone)]
pub struct Sets {
    key: HashKey,
    all: BTreeMap<String, Arc<CompiledSet>>,
    /// Sets that were compiled anew, and not taken over.
    fresh: Vec<String>,
}

/// What sets are compiled in.
pub(crate) struct Workshop<'a> {
    pub(crate) key: HashKey,
    pub(crate) state_directory: &'a Path,
    pub(crate) surroundings: &'a dyn Surroundings,
    pub(crate) previous: Option<&'a Sets>,
    /// The one set whose lists are looked at; those of all if there is none.
    pub(crate) only: Option<&'a str>,
}

/// Reads a list for the sake of knowing whether it is one; returns how many rules it has, or why it is none.
///
/// A download that is refused here never takes the place of a good copy.
pub fn check_list(list: &SetList, octets: Vec<u8>) -> Result<usize, String> {
    let mut compiler = Compiler::new(HashKey::new([1, 1]), None);
    let label = "download";
    let mistakes = compiler.read(list, label, octets, &HashSet::new());
    let rules = compiler.rules();
    let wrong = mistakes.describe().map_or(String::new(), |text| format!(": {text}"));
    if rules == 0 {
        return Err(format!("it has no rule{wrong}"));
    }
    // A page that says "not found" has lines that happen to be names.
    if mistakes.count > rules {
        return Err(format!("more of it is wrong than right{wrong}"));
    }
    Ok(rules)
}

/// A set in the making.
struct Compiler<'a> {
    key: HashKey,
    set: Option<&'a Set>,
    ear: Ear<'a>,
    names: NameSetBuilder,
    addresses: AddressSetBuilder,
    without: AddressSetBuilder,
    list: BlocklistBuilder,
}

impl<'a> Compiler<'a> {
    fn new(key: HashKey, set: Option<&'a Set>) -> Self {
        Self {
            key,
            set,
            ear: Ear::default(),
            names: NameSetBuilder::new(&key),
            addresses: AddressSetBuilder::new(),
            without: AddressSetBuilder::new(),
            list: BlocklistBuilder::new(&key),
        }
    }

    /// Reads one list.
    fn read(&mut self, list: &SetList, label: &str, octets: Vec<u8>, revoked: &HashSet<String>) -> Mistakes {
        self.names.source(label);
        self.list.source(label);
        if list.format.has_names() {
            // A guess that spares moving half of a long list about.
            self.names.reserve(octets.len() / 24);
        }
        let mut reading = Reading {
            ear: Ear { list: Some(label), ..self.ear },
            key: &self.key,
            names: &mut self.names,
            addresses: &mut self.addresses,
            without: &mut self.without,
            list: &mut self.list,
            tags: self.set.map_or(&[], |set| set.tags.as_slice()),
            select: list.select.iter().map(|part| part.value.as_str()).collect(),
            revoked,
            is_own: is_own(list),
            mistakes: Mistakes::of(is_own(list)),
        };
        reading.read(list.format, octets);
        reading.mistakes
    }

    /// Returns how many rules there are, roughly.
    fn rules(&self) -> usize {
        self.names.len() + self.addresses.len() + self.without.len() + self.list.len()
    }
}

impl Sets {
    /// Compiles every set, in an order in which those that others are made of come first.
    pub(crate) fn compile(settings: &Settings, workshop: &Workshop<'_>, problems: &mut Vec<Problem>) -> Self {
        let mut sets = Self { key: workshop.key, all: BTreeMap::new(), fresh: Vec::new() };
        let mut open = Vec::new();
        for set in &settings.sets {
            sets.add(set, settings, workshop, &mut open, problems);
        }
        sets
    }

    /// Compiles a set, and before it those that it is made of.
    fn add<'s>(
        &mut self,
        set: &'s Set,
        settings: &'s Settings,
        workshop: &Workshop<'_>,
        open: &mut Vec<&'s str>,
        problems: &mut Vec<Problem>,
    ) {
        let name = set.name.value.as_str();
        if self.all.contains_key(name) || open.contains(&name) {
            return;
        }
        open.push(name);
        for part in set.include.iter().chain(&set.except) {
            if open.contains(&part.value.as_str()) {
                let circle = [open.as_slice(), &[part.value.as_str()]].concat().join(" -> ");
                problems.push(Problem::error(
                    part.span,
                    format!("sets are made of each other in a circle: {circle}"),
                ));
            } else if let Some(other) = settings.sets.iter().find(|other| other.name.value == part.value) {
                self.add(other, settings, workshop, open, problems);
            }
        }
        open.pop();
        let known = workshop.previous.and_then(|previous| previous.all.get(name));
        let is_looked_at = workshop.only.is_none_or(|only| only == name);
        let stamps = match known.filter(|known| !is_looked_at && known.stamps.len() == set.lists.len()) {
            Some(known) => known.stamps.clone(),
            None => {
                let files = set.lists.iter().map(|list| file_of(set, list, workshop.state_directory));
                files.map(|file| workshop.surroundings.stamp(&file?).ok()).collect()
            }
        };
        let print = self.print(set, &stamps);
        let compiled = match known.filter(|known| known.print == print) {
            Some(known) => Arc::clone(known),
            None => {
                self.fresh.push(name.to_owned());
                Arc::new(self.compile_one(set, (print, stamps), workshop))
            }
        };
        for (list, mistakes) in set.lists.iter().zip(&compiled.mistakes) {
            for mistake in mistakes {
                let text = mistake.text.clone();
                problems.push(if mistake.is_error {
                    Problem::error(list.span, text)
                } else {
                    Problem::warning(list.span, text)
                });
            }
        }
        self.all.insert(name.to_owned(), compiled);
    }

    /// Returns a number for everything that a set is made of: what is said, the state of its files, its parts.
    fn print(&self, set: &Set, stamps: &[Option<u64>]) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{:?} {:?} {:?}", set.names, set.addresses, set.dynamic).hash(&mut hasher);
        for (tag, prefixes) in &set.tags {
            format!("{} {prefixes:?}", tag.value).hash(&mut hasher);
        }
        for list in &set.lists {
            let select: Vec<&str> = list.select.iter().map(|part| part.value.as_str()).collect();
            let said = (list.octets_max, list.is_strict);
            format!("{:?} {:?} {select:?} {said:?}", list.format, list.place).hash(&mut hasher);
        }
        stamps.hash(&mut hasher);
        for (number, parts) in [(1, &set.include), (2, &set.except)] {
            for part in parts {
                (number, &part.value, self.all.get(&part.value).map(|part| part.print)).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    fn compile_one(
        &self,
        set: &Set,
        (print, stamps): (u64, Vec<Option<u64>>),
        workshop: &Workshop<'_>,
    ) -> CompiledSet {
        let begin = Instant::now();
        let mut compiler = Compiler::new(self.key, Some(set));
        compiler.ear.who = Some((workshop.surroundings, &set.name.value));
        compiler.names.source(format!("set {}", set.name.value));
        for (line, pattern) in (1..).zip(&set.names) {
            add(&mut compiler.names, pattern, line);
        }
        for &(first, last) in &set.addresses {
            let is_right = compiler.addresses.range(first, last);
            debug_assert!(is_right, "checked when it was read");
        }
        let mut read: Vec<Result<Vec<u8>, Mistake>> =
            set.lists.iter().map(|list| read_list(set, list, workshop)).collect();
        let mut revoked = HashSet::new();
        for (list, octets) in set.lists.iter().zip(&read) {
            if let (ListFormat::Adguard, Ok(octets)) = (list.format, octets) {
                adguard::revoked(octets, &mut revoked);
            }
        }
        let mistakes = set.lists.iter().zip(read.drain(..)).map(|(list, octets)| match octets {
            Ok(octets) => {
                let label = label_of(set, list);
                let mistakes = compiler.read(list, &label, octets, &revoked);
                let is_error = is_own(list);
                let told = |text: String| Mistake { text: format!("\"{label}\": {text}"), is_error };
                if is_error {
                    mistakes.each().map(told).collect()
                } else {
                    mistakes.describe().map(told).into_iter().collect()
                }
            }
            Err(mistake) => vec![mistake],
        });
        let mistakes = mistakes.collect();
        let dynamic = set.dynamic.as_ref().map(|wanted| {
            let known = workshop.previous.and_then(|previous| previous.all.get(&set.name.value));
            let known = known.and_then(|known| known.dynamic.as_ref());
            Dynamic::new(&set.name.value, wanted, known, workshop)
        });
        compiler.ear.tell(compiler.rules());
        let Compiler { mut names, mut addresses, without, list, .. } = compiler;
        match dynamic.as_ref().map(|dynamic| &dynamic.handle) {
            Some(DynamicHandle::Names(live)) => names.live(Arc::clone(live)),
            Some(DynamicHandle::Addresses(live)) => addresses.live(Arc::clone(live)),
            None => {}
        }
        let parts = |names: &[diagnostic::At<String>]| -> Vec<Arc<CompiledSet>> {
            names.iter().filter_map(|part| self.all.get(&part.value).map(Arc::clone)).collect()
        };
        let (include, except) = (parts(&set.include), parts(&set.except));
        let is_list = !list.is_empty() || include.iter().any(|part| part.list.is_some());
        let mut lists = Vec::new();
        for part in &include {
            match &part.list {
                Some(list) => lists.push(Arc::clone(list)),
                None => names.include(Arc::clone(&part.names)),
            }
            addresses.include(&part.addresses);
        }
        for part in &except {
            names.except(Arc::clone(&part.names));
            addresses.except(&part.addresses);
        }
        addresses.except(&without.compile());
        let addresses = Arc::new(addresses.compile());
        let names = Arc::new(names.compile());
        let mut octets = names.octets() + addresses.octets();
        let mut rules = names.len() + addresses.len();
        let (names, list) = if is_list {
            let out = except.iter().map(|part| Arc::clone(&part.names)).collect();
            let list = list.compile(names, lists, out);
            octets = list.octets() + addresses.octets();
            rules = list.len() + addresses.len();
            (Arc::new(list.names(&self.key)), Some(Arc::new(list)))
        } else {
            (names, None)
        };
        CompiledSet {
            print,
            stamps,
            names,
            addresses,
            list,
            dynamic,
            mistakes,
            rules,
            octets,
            took: begin.elapsed(),
        }
    }

    /// Returns the sets that were compiled anew, with what came of it.
    pub fn fresh(&self) -> impl Iterator<Item = (&str, &CompiledSet)> {
        self.fresh.iter().filter_map(|name| Some((name.as_str(), &**self.all.get(name)?)))
    }

    /// Returns the dynamic part of a set.
    pub fn dynamic(&self, name: &str) -> Option<&Dynamic> {
        self.all.get(name)?.dynamic.as_ref()
    }

    /// Walks the sets that have a dynamic part.
    pub fn dynamics(&self) -> impl Iterator<Item = (&str, &Dynamic)> {
        self.all.iter().filter_map(|(name, set)| Some((name.as_str(), set.dynamic.as_ref()?)))
    }

    /// Walks all sets.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CompiledSet)> {
        self.all.iter().map(|(name, set)| (name.as_str(), &**set))
    }

    /// Returns the list of a set that has exceptions or says what is to become of a query.
    pub(crate) fn list(&self, name: &str) -> Option<Arc<Blocklist>> {
        self.all.get(name)?.list.clone()
    }

    /// Returns the list of a set whatever it holds: one without exceptions blocks the names that it holds.
    pub(crate) fn any_list(&self, name: &str) -> Option<Arc<Blocklist>> {
        let set = self.all.get(name)?;
        Some(match &set.list {
            Some(list) => Arc::clone(list),
            None => {
                let list = BlocklistBuilder::new(&self.key);
                Arc::new(list.compile(Arc::clone(&set.names), Vec::new(), Vec::new()))
            }
        })
    }

    /// Returns the set of the names that a condition compares with; a set that stands alone is shared.
    pub(crate) fn names<'a>(&self, terms: impl Iterator<Item = Term<'a, &'a NamePattern>>) -> Arc<NameSet> {
        let terms: Vec<Term<'a, &'a NamePattern>> = terms.collect();
        if let [Term::Set(name)] = terms.as_slice()
            && let Some(set) = self.all.get(*name)
        {
            return Arc::clone(&set.names);
        }
        let mut builder = NameSetBuilder::new(&self.key);
        builder.source("condition");
        for (line, term) in (1..).zip(terms) {
            match term {
                Term::Inline(pattern) => add(&mut builder, pattern, line),
                Term::Set(name) => {
                    if let Some(set) = self.all.get(name) {
                        builder.include(Arc::clone(&set.names));
                    }
                }
            }
        }
        Arc::new(builder.compile())
    }

    /// Returns the set of the addresses that a condition compares with; a set that stands alone is shared.
    pub(crate) fn addresses<'a>(
        &self,
        terms: impl Iterator<Item = Term<'a, &'a [Prefix]>>,
    ) -> Arc<AddressSet> {
        let terms: Vec<Term<'a, &'a [Prefix]>> = terms.collect();
        if let [Term::Set(name)] = terms.as_slice()
            && let Some(set) = self.all.get(*name)
        {
            return Arc::clone(&set.addresses);
        }
        let mut builder = AddressSetBuilder::new();
        for term in terms {
            match term {
                Term::Inline(prefixes) => add_prefixes(&mut builder, prefixes),
                Term::Set(name) => {
                    if let Some(set) = self.all.get(name) {
                        builder.include(&set.addresses);
                    }
                }
            }
        }
        Arc::new(builder.compile())
    }
}

fn add(builder: &mut NameSetBuilder, pattern: &NamePattern, line: u32) {
    match pattern {
        NamePattern::Name(name, reach) => builder.name(name.as_name(), *reach, line),
        // Both were tried when they were read.
        NamePattern::Keyword(keyword) => drop(builder.keyword(keyword, line)),
        NamePattern::Regex(regex) => drop(builder.regex(regex, line)),
    }
}

fn add_prefixes(builder: &mut AddressSetBuilder, prefixes: &[Prefix]) {
    for prefix in prefixes {
        let is_right = builder.prefix(prefix.address(), prefix.bits());
        debug_assert!(is_right, "a prefix is never longer than an address");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    use crate::load::load_text;
    use crate::surroundings::Memory;
    use crate::settings::ListPlace;
    use sets::Sought;
    use wire::Folded;

    const KEY: HashKey = HashKey::new([3, 4]);

    fn compile(text: &str, memory: &Memory, previous: Option<&Sets>) -> (Sets, Vec<String>) {
        // A set that no rule uses is worth a warning, and nothing more.
        let loaded = load_text(Path::new("/etc/x.yaml"), text, memory)
            .unwrap_or_else(|found| panic!("{}", found[0].human()));
        let workshop = Workshop {
            key: KEY,
            state_directory: Path::new("/var/lib/gannet"),
            surroundings: memory,
            previous,
            only: None,
        };
        let mut problems = Vec::new();
        let sets = Sets::compile(&loaded.settings, &workshop, &mut problems);
        let found = diagnostic::diagnostics(problems, &loaded.sources);
        (sets, found.iter().map(diagnostic::Diagnostic::line).collect())
    }

    fn holds(sets: &Sets, set: &str, name: &str) -> bool {
        let name = values::name(name).expect("a name");
        let mut folded = Folded::root();
        let hash = KEY.fold(name.as_name(), &mut folded);
        sets.names(std::iter::once(Term::Set(set))).contains(&Sought::new(&folded, hash))
    }

    #[test]
    fn sets_are_made_of_lists_and_other_sets() {
        let memory = Memory::new(&[
            ("/etc/block.txt", "ads.example\nfull:track.example\n"),
            ("/etc/good.txt", "good.ads.example\n"),
        ]);
        let text = "sets:\n  ads: {names: [keyword:banner], lists: [\"names:block.txt\"], except: good}\n  good: {lists: \"names:good.txt\"}\n  all: {include: [ads, good]}\n";
        let (sets, problems) = compile(text, &memory, None);
        assert_eq!(problems, Vec::<String>::new());
        assert!(holds(&sets, "ads", "x.ads.example") && holds(&sets, "ads", "track.example"));
        assert!(holds(&sets, "ads", "the-banner.example"));
        assert!(!holds(&sets, "ads", "x.good.ads.example") && holds(&sets, "all", "x.good.ads.example"));
    }

    #[test]
    fn what_did_not_change_is_taken_over() {
        let mut memory = Memory::new(&[("/etc/a.txt", "a.example\n"), ("/etc/b.txt", "b.example\n")]);
        let text = "sets:\n  a: {lists: [\"names:a.txt\"]}\n  b: {lists: [\"names:b.txt\"]}\n  both: {include: [a, b]}\n  other: {names: x.example}\n";
        let (first, _) = compile(text, &memory, None);
        assert_eq!(first.fresh().count(), 4);
        let (second, _) = compile(&format!("# moved\n{text}"), &memory, Some(&first));
        assert_eq!(second.fresh().count(), 0);
        memory.files.insert("/etc/b.txt".into(), b"c.example\n".to_vec());
        let (third, _) = compile(text, &memory, Some(&second));
        assert_eq!(third.fresh().map(|(name, _)| name).collect::<Vec<_>>(), ["b", "both"]);
        assert!(holds(&third, "both", "c.example") && !holds(&third, "both", "b.example"));
        assert!(Arc::ptr_eq(&third.all["a"], &first.all["a"]));
    }

    #[test]
    fn how_far_a_large_list_is_can_be_heard() {
        let mut memory = Memory::new(&[("/etc/a.txt", &"a.example\n".repeat(200_000))]);
        memory.heard = Some(RefCell::default());
        let text = "sets: {ads: {lists: \"names:a.txt\"}}\n";
        compile(text, &memory, None);
        let heard = memory.heard.expect("somebody hears").into_inner();
        let list = "of /etc/a.txt";
        assert_eq!(
            heard,
            [
                format!("ads: 65536 {list}"),
                format!("ads: 131072 {list}"),
                format!("ads: 196608 {list}"),
                "ads: 200000 of all".to_owned(),
            ]
        );
    }

    #[test]
    fn mistakes_in_own_lists_are_errors_and_in_others_warnings() {
        let memory = Memory::new(&[
            ("/etc/own.txt", "a.example\na..b\n"),
            ("/etc/hosts.txt", "nonsense\n0.0.0.0 x.example\n"),
        ]);
        let text = "sets:\n  own: {lists: [\"names:own.txt\", \"hosts:hosts.txt\", \"names:none.txt\"]}\n  url: {lists: \"adguard:https://example.org/x\"}\n";
        let (sets, problems) = compile(text, &memory, None);
        assert_eq!(
            problems,
            [
                "/etc/x.yaml:2:17: error: \"/etc/own.txt\": line 2: \"a..b\" is not a domain name: a label is empty",
                "/etc/x.yaml:2:34: warning: \"/etc/hosts.txt\": line 1: \"nonsense\" is not an address",
                "/etc/x.yaml:2:53: error: cannot read \"/etc/none.txt\": no such file or directory",
                "/etc/x.yaml:3:16: warning: \"https://example.org/x\" was not fetched yet; the set is without it until then",
            ]
        );
        assert!(holds(&sets, "own", "x.example"));
    }

    #[test]
    fn lists_of_others_never_stand_in_the_way() {
        let memory = Memory::new(&[
            (
                "/etc/n.txt",
                ".dot.example\n*.star.example\na..b\nfull:.x\nkeyword:\nregexp:(\nbücher.example\n",
            ),
            ("/etc/a.txt", "192.0.2.77/24\nnonsense\n2001:db8::1/32\n"),
        ]);
        let set = |strict: bool| {
            format!(
                "sets:\n  n: {{lists: [{{list: \"names:n.txt\", strict: {strict}}}]}}\n  a: {{lists: [{{list: \"addresses:a.txt\", strict: {strict}}}]}}\n"
            )
        };
        let (sets, problems) = compile(&set(false), &memory, None);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("warning: \"/etc/n.txt\": line 3: \"a..b\""), "{problems:?}");
        assert!(problems[0].ends_with("; and 1 more"), "{problems:?}");
        assert!(problems[1].contains("warning: \"/etc/a.txt\": line 2: \"nonsense\""), "{problems:?}");
        for name in
            ["dot.example", "x.dot.example", "star.example", "y.star.example", "xn--bcher-kva.example"]
        {
            assert!(holds(&sets, "n", name), "{name}");
        }
        let addresses = sets.addresses(std::iter::once(Term::Set("a")));
        for address in ["192.0.2.1", "2001:db8:1::"] {
            assert!(addresses.contains(address.parse().expect("an address")), "{address}");
        }
        // One's own must be right.
        let (_, problems) = compile(&set(true), &memory, None);
        assert!(problems.iter().all(|problem| problem.contains("error")), "{problems:?}");
        assert_eq!(problems.len(), 7);
    }

    #[test]
    fn the_last_good_copy_of_a_url_is_read() {
        let file = copy_file(Path::new("/var/lib/gannet"), "ads", "https://example.org/list.txt");
        assert_eq!(file, Path::new("/var/lib/gannet/sets/ads-30e912e722286b4f"));
        let mut memory = Memory::new(&[]);
        memory.files.insert(file, b"||ads.example^\n@@||good.ads.example^\n".to_vec());
        let (sets, problems) =
            compile("sets: {ads: {lists: \"adguard:https://example.org/list.txt\"}}\n", &memory, None);
        assert_eq!(problems, Vec::<String>::new());
        assert!(holds(&sets, "ads", "x.ads.example") && !holds(&sets, "ads", "x.good.ads.example"));
        assert!(sets.list("ads").is_some());
    }

    #[test]
    fn circles_and_large_lists_are_refused() {
        let memory = Memory::new(&[("/etc/a.txt", &"a.example\n".repeat(200))]);
        let (_, problems) = compile("sets: {a: {include: b}, b: {except: a}}\n", &memory, None);
        assert_eq!(
            problems,
            ["/etc/x.yaml:1:37: error: sets are made of each other in a circle: a -> b -> a"]
        );
        let (_, problems) =
            compile("sets: {a: {lists: [{list: \"names:a.txt\", size: 1KiB}]}}\n", &memory, None);
        assert_eq!(
            problems,
            [
                "/etc/x.yaml:1:27: error: \"/etc/a.txt\" is larger than 1KiB; if it may be, say so with \"size\" beside \"list\""
            ]
        );
    }

    #[test]
    fn a_download_that_is_no_list_is_refused() {
        let list = |format| SetList {
            span: diagnostic::Span::BUILT_IN,
            format,
            place: ListPlace::Url("https://example.org/".to_owned()),
            select: Vec::new(),
            refresh: None,
            timeout: Duration::from_secs(1),
            octets_max: 1 << 20,
            is_strict: true,
        };
        assert_eq!(check_list(&list(ListFormat::Names), b"a.example\nb.example\n".to_vec()), Ok(2));
        let page = b"<html>\n<body>\n404 not found\n</body>\n".to_vec();
        assert!(check_list(&list(ListFormat::Names), page.clone()).is_err());
        assert!(check_list(&list(ListFormat::Geosite), page.clone()).is_err());
        assert!(check_list(&list(ListFormat::Hosts), page).is_err());
        assert!(check_list(&list(ListFormat::Adguard), b"! nothing\n".to_vec()).is_err());
    }
}
