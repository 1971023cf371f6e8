//! Sets of names and addresses: from what the configuration says to what queries are compared with.
//!
//! A set is compiled anew only if something that it is made of has changed; otherwise the one in
//! use is taken over.

mod dynamic;
mod place;
mod store;
mod zone;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::zone::Zone;
use diagnostic::Problem;
use lists::{CompiledSet, List, ListFormat, Progress, SetBuilder};
use wire::HashKey;

pub use dynamic::{Dynamic, DynamicError, DynamicHandle, Edit, Form};
pub use place::{UrlList, copy_file};
pub(crate) use place::{file_of, policy_zones, url_lists};
use place::{label_of, read_list, read_own_names};
use zone::MadeZone;

use environment::{Environment, Loading, SetProgress};
use settings::{ListPlace, Set, SetList, Settings};

/// A set of the configuration, compiled.
pub struct MadeSet {
    /// What it was made of: the same number, the same set.
    print: u64,
    /// The state of its lists then.
    stamps: Vec<Option<u64>>,
    /// What queries are compared with.
    pub set: Arc<CompiledSet>,
    dynamic: Option<Dynamic>,
    /// What was made of zones from other servers.
    zones: Vec<MadeZone>,
    /// What was wrong with each list.
    mistakes: Vec<Vec<Mistake>>,
    /// How many rules each list brought, about.
    rules: Vec<usize>,
    /// How long compiling it took.
    pub took: Duration,
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
    compiled: lists::Sets,
    made: BTreeMap<String, Arc<MadeSet>>,
    /// Sets that were compiled anew, and not taken over.
    fresh: Vec<String>,
}

/// What sets are compiled in.
pub(crate) struct Workshop<'a> {
    pub(crate) key: HashKey,
    pub(crate) state_directory: &'a Path,
    pub(crate) environment: &'a dyn Environment,
    pub(crate) previous: Option<&'a Sets>,
    /// The one set whose lists are looked at; those of all if there is none.
    pub(crate) only: Option<&'a str>,
}

impl Sets {
    /// Compiles every set, in an order in which those that others are made of come first.
    pub(crate) fn compile(settings: &Settings, workshop: &Workshop<'_>, problems: &mut Vec<Problem>) -> Self {
        let compiled = lists::Sets::new(workshop.key);
        let mut sets = Self { compiled, made: BTreeMap::new(), fresh: Vec::new() };
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
        if self.made.contains_key(name) || open.contains(&name) {
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
        let known = workshop.previous.and_then(|previous| previous.made.get(name));
        let is_looked_at = workshop.only.is_none_or(|only| only == name);
        let same = known.filter(|known| !is_looked_at && known.stamps.len() == set.lists.len());
        // Whoever replaces a list of the operator's own does not say which sets have it.
        let known_stamp = |at: usize, list: &SetList| match &list.place.value {
            ListPlace::Own(_) => None,
            _ => same?.stamps.get(at).copied(),
        };
        let stamp = |(at, list)| known_stamp(at, list).unwrap_or_else(|| workshop.stamp(set, list));
        let stamps: Vec<Option<u64>> = set.lists.iter().enumerate().map(stamp).collect();
        let print = self.print(set, &stamps);
        let made = match known.filter(|known| known.print == print) {
            Some(known) => Arc::clone(known),
            None => {
                self.fresh.push(name.to_owned());
                Arc::new(self.compile_one(set, (print, stamps), workshop))
            }
        };
        for (list, mistakes) in set.lists.iter().zip(&made.mistakes) {
            for mistake in mistakes {
                let text = mistake.text.clone();
                problems.push(if mistake.is_error {
                    Problem::error(list.place.span, text)
                } else {
                    Problem::warning(list.place.span, text)
                });
            }
        }
        if let Some(why) = made.dynamic.as_ref().and_then(Dynamic::trouble) {
            let message = format!("set \"{name}\" cannot be changed: {why}");
            let problem = Problem::warning(set.name.span, message);
            problems.push(problem.hint(
                "mend a file or move it away, and start the server again; the store is read again by itself",
            ));
        }
        self.compiled.insert(name.to_owned(), Arc::clone(&made.set));
        self.made.insert(name.to_owned(), made);
    }

    /// Returns a number for everything that a set is made of: what is said, the state of its files,
    /// its parts.
    fn print(&self, set: &Set, stamps: &[Option<u64>]) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{:?} {:?} {:?}", set.names, set.addresses, set.dynamic).hash(&mut hasher);
        for (tag, prefixes) in &set.tags {
            format!("{} {prefixes:?}", tag.value).hash(&mut hasher);
        }
        for list in &set.lists {
            let select: Vec<&str> = list.select.iter().map(|part| part.value.as_str()).collect();
            let said = (list.octets_max, list.is_strict, list.is_optional);
            format!("{:?} {select:?} {said:?}", list.format).hash(&mut hasher);
            match &list.place.value {
                // Long ones are not printed first.
                ListPlace::Here(text) => text.hash(&mut hasher),
                place => format!("{place:?}").hash(&mut hasher),
            }
        }
        stamps.hash(&mut hasher);
        for (number, parts) in [(1, &set.include), (2, &set.except)] {
            for part in parts {
                (number, &part.value, self.made.get(&part.value).map(|part| part.print)).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    fn compile_one(
        &self,
        set: &Set,
        (print, stamps): (u64, Vec<Option<u64>>),
        workshop: &Workshop<'_>,
    ) -> MadeSet {
        let begin = Instant::now();
        let mut builder = SetBuilder::new(workshop.key);
        builder.tags(set.tags.iter().map(|(tag, prefixes)| (tag.value.as_str(), prefixes.as_slice())));
        builder.patterns(format!("set {}", set.name.value), &set.names);
        for &range in &set.addresses {
            builder.range(range);
        }
        let known = workshop.previous.and_then(|previous| previous.made.get(&set.name.value));
        let mut zones = Vec::new();
        let before = known.map_or(&[][..], |known| &known.zones);
        let read = read_lists(set, &mut builder, (before, &mut zones), workshop);
        let (mistakes, rules) = read.into_iter().unzip();
        let dynamic = set.dynamic.as_ref().map(|wanted| {
            let known = known.and_then(|known| known.dynamic.as_ref());
            Dynamic::new(&set.name.value, wanted, known, workshop)
        });
        workshop.report(set, None, builder.rules());
        match dynamic.as_ref().map(|dynamic| &dynamic.handle) {
            Some(DynamicHandle::Names(live)) => builder.live_names(Arc::clone(live)),
            Some(DynamicHandle::Addresses(live)) => builder.live_addresses(Arc::clone(live)),
            None => {}
        }
        let parts = |names: &[diagnostic::At<String>]| -> Vec<Arc<CompiledSet>> {
            names.iter().filter_map(|part| Some(Arc::clone(&self.made.get(&part.value)?.set))).collect()
        };
        let compiled = Arc::new(builder.compile(&parts(&set.include), &parts(&set.except)));
        MadeSet { print, stamps, set: compiled, dynamic, zones, mistakes, rules, took: begin.elapsed() }
    }

    /// Returns the sets as conditions are compiled with them.
    pub fn compiled(&self) -> &lists::Sets {
        &self.compiled
    }

    /// Returns the sets that were compiled anew, with what came of it.
    pub fn fresh(&self) -> impl Iterator<Item = (&str, &MadeSet)> {
        self.fresh.iter().filter_map(|name| Some((name.as_str(), &**self.made.get(name)?)))
    }

    /// Returns the dynamic part of a set.
    pub fn dynamic(&self, name: &str) -> Option<&Dynamic> {
        self.made.get(name)?.dynamic.as_ref()
    }

    /// Returns how many rules each list of a set brought, about.
    pub fn rules_of(&self, name: &str) -> Option<&[usize]> {
        Some(&self.made.get(name)?.rules)
    }

    /// Walks the sets that have a dynamic part.
    pub fn dynamics(&self) -> impl Iterator<Item = (&str, &Dynamic)> {
        self.made.iter().filter_map(|(name, set)| Some((name.as_str(), set.dynamic.as_ref()?)))
    }

    /// Returns whether a set has this version of a zone.
    pub fn is_made_of(&self, set: &str, version: &Arc<Zone>) -> bool {
        let made = self.made.get(set);
        made.is_some_and(|made| made.zones.iter().any(|zone| Arc::ptr_eq(&zone.version, version)))
    }

    /// Walks all sets.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CompiledSet)> {
        self.compiled.iter()
    }
}

impl Workshop<'_> {
    /// Returns a number that changes when what a list is read from does; `None` if that is not
    /// there.
    fn stamp(&self, set: &Set, list: &SetList) -> Option<u64> {
        if let ListPlace::Zone(apex) = &list.place.value {
            // A set keeps the version that it was made of, so that no other is at its address.
            return self.environment.zone(apex.as_name()).map(|zone| Arc::as_ptr(&zone).addr() as u64);
        }
        if let ListPlace::Own(name) = &list.place.value {
            return self.environment.own_list(name).map(|kept| kept.list.number());
        }
        self.environment.stamp(&file_of(set, list, self.state_directory)?).ok()
    }

    /// Tells how far a set is.
    fn report(&self, set: &Set, list: Option<&str>, count: usize) {
        let set = set.name.value.as_str();
        self.environment.hear(&SetProgress { what: Loading::Set, set, list, count });
    }
}

/// Reads the lists of a set; returns what is wrong with each, and how many rules it has.
fn read_lists(
    set: &Set,
    builder: &mut SetBuilder<'_>,
    (before, made): (&[MadeZone], &mut Vec<MadeZone>),
    workshop: &Workshop<'_>,
) -> Vec<(Vec<Mistake>, usize)> {
    let lists: Vec<List<'_>> = set.lists.iter().map(SetList::reading).collect();
    let read: Vec<Result<Cow<'_, [u8]>, Mistake>> =
        set.lists.iter().map(|list| read_list(set, list, workshop)).collect();
    let mut revoked = HashSet::new();
    for (list, octets) in lists.iter().zip(&read) {
        if let Ok(octets) = octets {
            list.revoked(octets, &mut revoked);
        }
    }
    let mut rules = builder.rules();
    let each = set.lists.iter().zip(&lists).zip(read).map(|((place, list), octets)| {
        let mistakes = match octets {
            Ok(_) if let ListPlace::Zone(apex) = &place.place.value => {
                let label = label_of(set, place);
                let report = |count| workshop.report(set, Some(&label), count);
                let known = before.iter().find(|known| known.version.apex() == apex.as_name());
                let (zone, mistakes) = zone::make(apex, known, workshop, &report);
                if let Some(zone) = zone {
                    builder.policy_zone(zone.rules.clone());
                    made.push(zone);
                }
                mistakes
            }
            Ok(_)
                if let ListPlace::Here(text) = &place.place.value
                    && list.format == ListFormat::Names =>
            {
                let label = label_of(set, place);
                let report = |count| workshop.report(set, Some(&label), count);
                let pieces = text.pieces().map(str::as_bytes);
                let mistakes = builder.read_names(list, &label, pieces, Progress::to(&report));
                mistakes
                    .each()
                    .map(|text| Mistake { text: format!("\"{label}\": {text}"), is_error: true })
                    .collect()
            }
            Ok(_)
                if let ListPlace::Own(name) = &place.place.value
                    && list.format == ListFormat::Names =>
            {
                let label = label_of(set, place);
                let report = |count| workshop.report(set, Some(&label), count);
                read_own_names((name, &label), builder, workshop, Progress::to(&report))
            }
            Ok(octets) => {
                let label = label_of(set, place);
                let report = |count| workshop.report(set, Some(&label), count);
                let mistakes = builder.read(list, &label, octets, &revoked, Progress::to(&report));
                let told =
                    |text: String| Mistake { text: format!("\"{label}\": {text}"), is_error: list.is_own };
                if list.is_own {
                    mistakes.each().map(told).collect()
                } else {
                    mistakes.describe().map(told).into_iter().collect()
                }
            }
            Err(mistake) => vec![mistake],
        };
        let had = std::mem::replace(&mut rules, builder.rules());
        (mistakes, rules.saturating_sub(had))
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    use environment::Memory;
    use lists::Term;
    use sets::Sought;
    use settings::load::load_text;
    use wire::Folded;

    const KEY: HashKey = HashKey::new([3, 4]);

    fn compile(text: &str, memory: &Memory, previous: Option<&Sets>) -> (Sets, Vec<String>) {
        // A set that no rule uses is worth a warning, and nothing more.
        let loaded = load_text(Path::new("/etc/x.yaml"), text, memory)
            .unwrap_or_else(|found| panic!("{}", found[0].human()));
        let workshop = Workshop {
            key: KEY,
            state_directory: Path::new("/var/lib/gannet"),
            environment: memory,
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
        sets.compiled().names(std::iter::once(Term::Set(set))).contains(&Sought::new(&folded, hash))
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
        assert!(Arc::ptr_eq(&third.made["a"], &first.made["a"]));
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
    fn a_list_that_may_be_missing_is_not_missed() {
        let memory = Memory::new(&[("/etc/x.txt", "x.example\n")]);
        let text = "sets:\n  own: {lists: [{list: \"names:none.txt\", optional: true}, \"names:x.txt\"]}\n";
        let (sets, problems) = compile(text, &memory, None);
        let expected = "/etc/x.yaml:2:24: warning: cannot read \"/etc/none.txt\": no such file or directory";
        assert_eq!(problems, [expected]);
        assert!(holds(&sets, "own", "x.example"));
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
        let addresses = sets.compiled().addresses(std::iter::once(Term::Set("a")));
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
        assert!(sets.compiled().list("ads").is_some());
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
}
