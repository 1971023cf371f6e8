//! Lists of the operator that are kept beside the settings, and changed by single rules.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sets::{ChangingNames, NameSetBuilder, RulesOfName};
use wire::{HashKey, Name, NameBuf};

use crate::reading::{Mistakes, Progress};
use crate::{List, ListFormat, SetBuilder, text};

/// Octets of the text of a list.
pub const OCTETS_MAX: u64 = 256 << 20;
/// Of so many rules, one may be different from what was compiled before a list is compiled anew.
const RULES_FOR_EACH_DIFFERENCE: usize = 100;
/// Rules that may be different of any list, however short.
const DIFFERENCES_MIN: usize = 256;
/// Rules that may be different of any list, however long.
const DIFFERENCES_MAX: usize = 100_000;

/// A rule that is added to a list or removed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleChange {
    /// Whether it is added.
    pub is_added: bool,
    /// The rule, as a line of the list.
    pub rule: String,
}

/// What a rule is compared by: rules that mean the same are the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// A name in wire form, in lower case, and whether those below it are meant.
    Name(Box<[u8]>, bool),
    /// The rule as it is written.
    Text(Box<[u8]>),
}

/// Returns what the rule of a line is compared by; `None` if the line has no rule.
fn key(line: &[u8], format: ListFormat) -> Option<Key> {
    if format != ListFormat::Names {
        return Some(line.trim_ascii()).filter(|line| !line.is_empty()).map(|line| Key::Text(line.into()));
    }
    let rule = text::rule_of(line)?;
    Some(match text::name_rule(rule) {
        Some((name, is_below)) => Key::Name(name.as_name().to_folded().as_bytes().into(), is_below),
        None => Key::Text(rule.into()),
    })
}

/// What became of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// The text then.
    pub text: Vec<u8>,
    /// Rules that were not there, or were.
    pub changed: usize,
}

/// Changes the rules of a text, in order: a rule that is added stands at the end unless it is
/// there; every line with a rule that is removed goes.
pub fn rewrite(text: &[u8], format: ListFormat, changes: &[RuleChange]) -> Rewritten {
    // What is wanted of each rule in the end, in the order of the last changes.
    let mut wanted: HashMap<Key, usize> = HashMap::with_capacity(changes.len());
    for (at, change) in changes.iter().enumerate() {
        if let Some(key) = key(change.rule.as_bytes(), format) {
            wanted.insert(key, at);
        }
    }
    let is_added = |at: usize| changes.get(at).is_some_and(|change| change.is_added);
    let mut there: HashSet<usize> = HashSet::new();
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|&octet| octet == b'\n') {
        let at = key(line, format).and_then(|key| wanted.get(&key).copied());
        if let Some(at) = at {
            there.insert(at);
            if !is_added(at) {
                continue;
            }
        }
        out.extend_from_slice(line);
    }
    let mut changed = 0;
    let mut in_order: Vec<usize> = wanted.into_values().collect();
    in_order.sort_unstable();
    for at in in_order {
        changed += usize::from(is_added(at) != there.contains(&at));
        if is_added(at) && !there.contains(&at) {
            if out.last().is_some_and(|&last| last != b'\n') {
                out.push(b'\n');
            }
            out.extend_from_slice(changes.get(at).map_or("", |change| change.rule.trim()).as_bytes());
            out.push(b'\n');
        }
    }
    Rewritten { text: out, changed }
}

/// Checks rules of a list that nobody reads yet, whatever format they are in: each has to be one
/// line. The number of a mistake's line is that of the change, from 1.
pub fn check_lines(changes: &[RuleChange]) -> Mistakes {
    let mut mistakes = Mistakes::of(true);
    for (number, change) in (1..).zip(changes) {
        check_line(&mut mistakes, (number, &change.rule), ListFormat::Names);
    }
    mistakes
}

/// Returns how many lines of a text that nobody reads yet have a rule.
pub fn count_lines(text: &[u8]) -> usize {
    let lines = text.split(|&octet| octet == b'\n');
    lines.filter(|line| key(line, ListFormat::Names).is_some()).count()
}

/// Adds what is wrong with a rule as a line; returns whether nothing is.
fn check_line(mistakes: &mut Mistakes, (number, rule): (u32, &str), format: ListFormat) -> bool {
    let wrong = if rule.contains(['\n', '\r']) {
        "a rule is one line"
    } else if key(rule.as_bytes(), format).is_none() {
        "it has no rule"
    } else {
        return true;
    };
    mistakes.add(number, || wrong.to_owned());
    false
}

/// Checks rules that are to be added or removed; the number of a mistake's line is that of the
/// change, from 1.
pub fn check(changes: &[RuleChange], format: ListFormat) -> Mistakes {
    let mut mistakes = Mistakes::of(true);
    let mut builder = SetBuilder::new(HashKey::new([1, 1]));
    let list = List { format, select: Vec::new(), is_own: true };
    let mut lines = Vec::new();
    for (number, change) in (1..).zip(changes) {
        let rule = change.rule.as_str();
        if check_line(&mut mistakes, (number, rule), format) {
            lines.extend_from_slice(rule.as_bytes());
        }
        lines.push(b'\n');
    }
    let found = builder.read(&list, "", lines.into(), &HashSet::new(), Progress::default());
    mistakes.append(found);
    mistakes
}

/// Checks a whole text; returns how many rules it has, too.
pub fn check_text(text: &[u8], format: ListFormat) -> (usize, Mistakes) {
    let is_own = matches!(format, ListFormat::Names | ListFormat::Addresses);
    let mut builder = SetBuilder::new(HashKey::new([1, 1]));
    let list = List { format, select: Vec::new(), is_own };
    let mistakes = builder.read(&list, "", text.into(), &HashSet::new(), Progress::default());
    (builder.rules(), mistakes)
}

/// Returns whether a line is a rule of a list of a format, and nothing else; that a rule of another
/// line needs it shows in no line alone.
pub fn is_rule(line: &[u8], format: ListFormat) -> bool {
    // Records of a response policy zone are below its apex, which another line says.
    const ZONE: &[u8] = b"$ORIGIN .\n$TTL 1\n@ SOA . . 1 1 1 1 1\n";
    let head = if format == ListFormat::Rpz { ZONE } else { b"" };
    let (rules, mistakes) = check_text(&[head, line].concat(), format);
    if mistakes.count > 0 {
        return false;
    }
    let mut disabled = HashSet::new();
    List { format, select: Vec::new(), is_own: false }.revoked(line, &mut disabled);
    rules > 0 || !disabled.is_empty()
}

/// What came of changes of a list while it is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Rules that were not there, or were.
    pub changed: usize,
    /// Whether queries meet some of them only when the list is compiled anew.
    pub is_late: bool,
}

/// One text of a list, and what was changed since it was read. All sets that have the list share
/// it.
pub struct OwnList {
    number: u64,
    /// Changes of the text that are made before it is compiled.
    before: Vec<RuleChange>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The names of the list, once a set has them.
    compiled: Option<Compiled>,
    /// What was changed before that, and is in the names then.
    later: Vec<RuleChange>,
}

impl State {
    /// Returns everything that was changed since the text was written.
    fn since(&self) -> Vec<RuleChange> {
        let compiled = self.compiled.iter().flat_map(Compiled::changes);
        self.later.iter().cloned().chain(compiled).collect()
    }

    /// Forgets names that no set has any more; what was changed in them stays.
    fn forget(&mut self) {
        // Those who change a list that no set has do not copy all that was changed before them.
        if self.compiled.is_some() {
            self.later = self.since();
            self.compiled = None;
        }
    }
}

struct Compiled {
    /// Those that have them keep them.
    names: Weak<ChangingNames>,
    mistakes: Mistakes,
    /// Names that were changed, and their rules.
    touched: HashMap<Box<[u8]>, RulesOfName>,
}

impl std::fmt::Debug for OwnList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OwnList({})", self.number)
    }
}

impl OwnList {
    /// Returns a list whose text is read later, with changes of it. No other list has its number,
    /// nor another text of this one.
    pub fn new(number: u64, before: Vec<RuleChange>) -> Self {
        Self { number, before, state: Mutex::default() }
    }

    /// Returns its number.
    pub const fn number(&self) -> u64 {
        self.number
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic ends the process, so a poisoned lock is never seen.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the text with all changes, for a set that reads it in a format of its own: what is
    /// changed in that is read again.
    pub fn text(&self, read: Vec<u8>) -> Vec<u8> {
        let state = self.state();
        let since = state.since();
        drop(state);
        let changes = [self.before.as_slice(), &since].concat();
        if changes.is_empty() { read } else { rewrite(&read, ListFormat::Names, &changes).text }
    }

    /// Returns the names of the list and what is wrong with it, compiled by the first who asks;
    /// `read` returns its text.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn names(
        &self,
        (key, label): (&HashKey, &str),
        progress: Progress<'_>,
        read: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<(Arc<ChangingNames>, Mistakes)> {
        let since = {
            let mut state = self.state();
            if let Some(known) = state.compiled.as_ref().and_then(Compiled::known) {
                return Ok(known);
            }
            state.forget();
            state.later.clone()
        };
        // Not locked: who changes the list meanwhile does not wait.
        let mut text = read()?;
        let changes = [self.before.as_slice(), &since].concat();
        if !changes.is_empty() {
            text = rewrite(&text, ListFormat::Names, &changes).text;
        }
        let mut builder = SetBuilder::new(*key);
        let list = List { format: ListFormat::Names, select: Vec::new(), is_own: true };
        let mistakes = builder.read(&list, label, text.into(), &HashSet::new(), progress);
        let names: NameSetBuilder = builder.names;
        let room = differences_max(names.len());
        let names = Arc::new(names.compile_changing(room + room / 2));
        let mut state = self.state();
        if let Some(known) = state.compiled.as_ref().and_then(Compiled::known) {
            return Ok(known);
        }
        let mut compiled =
            Compiled { names: Arc::downgrade(&names), mistakes: mistakes.clone(), touched: HashMap::new() };
        let included = since.len().min(state.later.len());
        let meanwhile = state.later.split_off(included);
        compiled.change(&names, &meanwhile);
        // What is in the text is kept until it is written: whoever compiles it anew needs it.
        state.compiled = Some(compiled);
        Ok((names, mistakes))
    }

    /// Changes rules on names, in order; queries meet them when this returns. `None` if no set has
    /// the list yet: then it will have them.
    pub fn change(&self, changes: &[RuleChange]) -> Option<Changed> {
        let mut state = self.state();
        if let Some(compiled) = &mut state.compiled
            && let Some(names) = compiled.names.upgrade()
        {
            return Some(compiled.change(&names, changes));
        }
        state.forget();
        state.later.extend_from_slice(changes);
        None
    }

    /// Returns what changes would come to, and nothing is changed.
    pub fn would_change(&self, changes: &[RuleChange]) -> Option<usize> {
        let state = self.state();
        let compiled = state.compiled.as_ref()?;
        let names = compiled.names.upgrade()?;
        let mut now = HashMap::new();
        Some(changes.iter().filter(|change| compiled.step(&names, &mut now, change).is_some()).count())
    }

    /// Returns how many rules were compiled; 0 before that.
    pub fn rules(&self) -> usize {
        let state = self.state();
        let names = state.compiled.as_ref().and_then(|compiled| compiled.names.upgrade());
        names.map_or(0, |names| names.len())
    }

    /// Returns whether so much is different from what was compiled that it should be compiled anew.
    pub fn is_much_changed(&self) -> bool {
        let touched = self.state().compiled.as_ref().map_or(0, |compiled| compiled.touched.len());
        touched > differences_max(self.rules())
    }
}

/// Returns how many rules of a list may be different from what was compiled.
pub fn differences_max(rules: usize) -> usize {
    (rules / RULES_FOR_EACH_DIFFERENCE).clamp(DIFFERENCES_MIN, DIFFERENCES_MAX)
}

/// Returns whether all changes are of rules on names: queries can meet those at once.
pub fn are_on_names(changes: &[RuleChange]) -> bool {
    changes.iter().all(|change| name_of(change).is_some())
}

/// Returns the name of a rule, and whether those below it are meant.
fn name_of(change: &RuleChange) -> Option<(NameBuf, bool)> {
    text::name_rule(text::rule_of(change.rule.as_bytes())?)
}

/// Returns a name as a rule may have it: all octets that mean something else in a rule, or that no
/// rule has, are escaped.
fn escaped(name: Name<'_>) -> String {
    let mut text = String::new();
    for label in name.labels() {
        if !text.is_empty() {
            text.push('.');
        }
        for &octet in label {
            match octet {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => text.push(char::from(octet)),
                other => {
                    let digits = [other / 100, other / 10 % 10, other % 10];
                    text.extend(std::iter::once('\\').chain(digits.map(|it| char::from(b'0' + it))));
                }
            }
        }
    }
    text
}

impl Compiled {
    /// Returns the names and what is wrong with the list, if somebody has them.
    fn known(&self) -> Option<(Arc<ChangingNames>, Mistakes)> {
        Some((self.names.upgrade()?, self.mistakes.clone()))
    }

    /// Returns what was changed since it was compiled.
    fn changes(&self) -> Vec<RuleChange> {
        let touched = self.touched.iter().filter_map(|(folded, rules)| {
            let (name, _) = Name::parse(folded).ok()?;
            let name = escaped(name);
            let change = |form: &str, is_added| RuleChange { is_added, rule: format!("{form}{name}") };
            Some([change("domain:", rules.with_below), change("full:", rules.alone)])
        });
        touched.flatten().collect()
    }

    /// Makes one change in `now`, which comes before what is known; returns the name and its rules
    /// if they are others then.
    fn step(
        &self,
        names: &ChangingNames,
        now: &mut HashMap<Box<[u8]>, RulesOfName>,
        change: &RuleChange,
    ) -> Option<(NameBuf, RulesOfName)> {
        let (name, is_below) = name_of(change)?;
        let folded: Box<[u8]> = name.as_name().to_folded().as_bytes().into();
        let known = now.get(&folded).or_else(|| self.touched.get(&folded)).copied();
        let mut rules = known.unwrap_or_else(|| names.compiled(name.as_name()));
        let rule = if is_below { &mut rules.with_below } else { &mut rules.alone };
        if *rule == change.is_added {
            return None;
        }
        *rule = change.is_added;
        now.insert(folded, rules);
        Some((name, rules))
    }

    fn change(&mut self, table: &ChangingNames, changes: &[RuleChange]) -> Changed {
        let mut now = HashMap::new();
        let mut changed = 0;
        let mut names: HashMap<Box<[u8]>, NameBuf> = HashMap::new();
        for change in changes {
            if let Some((name, _)) = self.step(table, &mut now, change) {
                changed += 1;
                names.insert(name.as_name().to_folded().as_bytes().into(), name);
            }
        }
        let mut is_late = false;
        // Each name once, so that nobody sees what is changed back.
        for (folded, name) in names {
            if let Some(rules) = now.get(&folded) {
                is_late |= !table.set(name.as_name(), *rules);
                self.touched.insert(folded, *rules);
            }
        }
        Changed { changed, is_late }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sets::{NameSet, Sought};
    use wire::Folded;

    const KEY: HashKey = HashKey::new([5, 6]);

    fn change(text: &str) -> RuleChange {
        let (sign, rule) = text.split_at(1);
        RuleChange { is_added: sign == "+", rule: rule.to_owned() }
    }

    fn changes(all: &[&str]) -> Vec<RuleChange> {
        all.iter().map(|text| change(text)).collect()
    }

    fn holds(set: &NameSet, text: &str) -> bool {
        let name = values::name(text).expect("a name");
        let mut folded = Folded::root();
        let hash = KEY.fold(name.as_name(), &mut folded);
        let sought = Sought::new(&folded, hash);
        let is_held = set.contains(&sought);
        assert_eq!(set.find(&sought).is_some(), is_held, "{text}");
        is_held
    }

    /// Returns a set of the list and of the names `others`.
    fn set(list: &OwnList, text: &str, others: &str) -> NameSet {
        let read = || Ok(text.as_bytes().to_vec());
        let (names, _) = list.names((&KEY, "list"), Progress::default(), read).expect("read");
        let mut builder = SetBuilder::new(KEY);
        let reading = List { format: ListFormat::Names, select: Vec::new(), is_own: true };
        builder.read(&reading, "others", others.as_bytes().into(), &HashSet::new(), Progress::default());
        builder.names.changing(names);
        builder.names.compile()
    }

    #[test]
    fn a_line_is_a_rule_of_its_format_or_none() {
        let pem = "-----BEGIN PRIVATE KEY-----";
        let base64 = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2";
        for (format, line, expect) in [
            (ListFormat::Names, "ads.example", true),
            (ListFormat::Names, "regexp:^ads", true),
            (ListFormat::Names, "# ads.example", false),
            (ListFormat::Names, pem, false),
            (ListFormat::Names, base64, false),
            (ListFormat::Names, "root:$6$x:19000:0:99999:7:::", false),
            (ListFormat::Addresses, "192.0.2.0/24 # mine", true),
            (ListFormat::Addresses, pem, false),
            (ListFormat::Addresses, base64, false),
            (ListFormat::Adguard, "||ads.example^", true),
            (ListFormat::Adguard, "||ads.example^$badfilter", true),
            (ListFormat::Adguard, "! a title", false),
            (ListFormat::Adguard, "example.org##.banner", false),
            (ListFormat::Hosts, "0.0.0.0 ads.example", true),
            (ListFormat::Hosts, pem, false),
            (ListFormat::Hosts, base64, false),
            (ListFormat::Dnsmasq, "address=/ads.example/", true),
            (ListFormat::Dnsmasq, pem, false),
            (ListFormat::Rpz, "ads.example CNAME .", true),
            (ListFormat::Rpz, "ads.example.rpz.example. 60 IN CNAME .", true),
            (ListFormat::Rpz, "@ NS ns.example.", false),
            (ListFormat::Rpz, pem, false),
            (ListFormat::Rpz, base64, false),
        ] {
            assert_eq!(is_rule(line.as_bytes(), format), expect, "{format:?}: {line}");
        }
    }

    #[test]
    fn a_text_is_rewritten_rule_by_rule() {
        let text = b"# mine\na.example\nfull:b.example # why\nA.example.\n\nkeyword:ads";
        let all = changes(&[
            "-a.example",
            "+full:B.example",
            "+c.example",
            "-c.example",
            "+d.example",
            "-x.example",
        ]);
        let done = rewrite(text, ListFormat::Names, &all);
        let expect = "# mine\nfull:b.example # why\n\nkeyword:ads\nd.example\n";
        assert_eq!(String::from_utf8_lossy(&done.text), expect);
        assert_eq!(done.changed, 2, "a.example went, d.example came");
        let hosts = rewrite(b"0.0.0.0 a.example\n", ListFormat::Hosts, &changes(&["-0.0.0.0 a.example"]));
        assert_eq!((hosts.text.as_slice(), hosts.changed), (&b""[..], 1));
    }

    #[test]
    fn every_mistake_has_the_number_of_its_change() {
        let all = changes(&["+a.example", "+a..b", "-nonsense:x", "+two words", "+a\nb", "+# nothing"]);
        let told: Vec<u32> = check(&all, ListFormat::Names).told.iter().map(|(line, _)| *line).collect();
        assert_eq!(told, [2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_rule_that_is_removed_leaves_what_others_hold() {
        let text = "a.example\nfull:a.example\nb.example\nsub.b.example\nc.example\nkeyword:d.ex\n";
        let list = OwnList::new(1, Vec::new());
        let set = set(&list, text, "c.example\n");
        let all = changes(&["-a.example", "-sub.b.example", "-c.example", "-d.example", "+e.example"]);
        assert_eq!(list.would_change(&all), Some(4));
        assert_eq!(list.change(&all), Some(Changed { changed: 4, is_late: false }));
        assert!(holds(&set, "a.example") && !holds(&set, "x.a.example"));
        assert!(holds(&set, "x.sub.b.example"), "it is below b.example");
        assert!(holds(&set, "c.example"), "another list has it");
        assert!(holds(&set, "d.example") && holds(&set, "x.e.example"));
        list.change(&changes(&["-full:a.example"]));
        assert!(!holds(&set, "a.example"));
    }

    #[test]
    fn what_is_changed_before_a_set_has_the_list_is_not_lost() {
        let list = OwnList::new(1, changes(&["+b.example", "-a.example"]));
        assert_eq!(list.change(&changes(&["+c.example", "-b.example"])), None);
        let set = set(&list, "a.example\n", "");
        let held = ["a.example", "b.example", "c.example"].map(|name| holds(&set, name));
        assert_eq!(held, [false, false, true]);
    }

    #[test]
    fn names_that_no_set_has_are_gone_and_their_changes_are_not() {
        let list = OwnList::new(1, changes(&["+first.example"]));
        let text = "a.example\n";
        let one = set(&list, text, "");
        list.change(&changes(&["+b.example", "-a.example"]));
        drop(one);
        assert_eq!((list.rules(), list.change(&changes(&["+c.example"]))), (0, None));
        let text_then = String::from_utf8(list.text(text.into())).expect("text");
        assert!(text_then.starts_with("first.example\n") && text_then.contains("b.example"), "{text_then}");
        for _ in 0..2 {
            let set = set(&list, text, "");
            let held = ["first.example", "b.example", "c.example"].map(|name| holds(&set, name));
            assert_eq!((held, holds(&set, "a.example")), ([true; 3], false));
            list.change(&changes(&["+a.example", "-a.example"]));
        }
    }

    #[test]
    fn changes_of_names_with_escapes_outlive_the_set() {
        let added =
            [r"\042.example", r"a\035b.example", r"a\047b.example", r"a\046b.example", r"\032.example"];
        let (kept, removed) = ("example\n", r"c\047d.test");
        let text = format!("{kept}full:{removed}\n");
        let list = OwnList::new(1, Vec::new());
        let one = set(&list, &text, "");
        assert!(holds(&one, removed));
        let mut all = changes(&["-example", "+full:example"]);
        all.extend(added.iter().map(|name| change(&format!("+full:{name}"))));
        all.push(change(&format!("-full:{removed}")));
        assert_eq!(list.change(&all).map(|it| it.changed), Some(all.len()));
        drop(one);
        let two = set(&list, &text, "");
        for name in added {
            assert!(holds(&two, name) && !holds(&two, &format!("x.{name}")), "{name}");
        }
        assert!(holds(&two, "example") && !holds(&two, "x.example") && !holds(&two, removed));
    }

    #[test]
    fn what_finds_no_room_is_said() {
        let list = OwnList::new(1, Vec::new());
        let set = set(&list, "a.example\n", "");
        let many: Vec<RuleChange> = (0..5_000).map(|n| change(&format!("+n{n}.example"))).collect();
        assert_eq!(list.change(&many), Some(Changed { changed: 5_000, is_late: true }));
        assert!(list.is_much_changed() && holds(&set, "a.example"));
    }

    fn rule() -> impl Strategy<Value = String> {
        let label = prop::sample::select(vec!["a", "b", "c", "long-label"]);
        let name = prop::collection::vec(label, 1..11).prop_map(|labels| labels.join("."));
        let form = prop::sample::select(vec!["", "domain:", "full:", ".", "*."]);
        (form, name, any::<bool>()).prop_map(|(form, name, is_upper)| {
            format!("{form}{}", if is_upper { name.to_uppercase() } else { name })
        })
    }

    proptest! {
        #[test]
        fn random_changes_give_what_compiling_the_changed_text_gives(
            text in prop::collection::vec(rule(), 0..40),
            others in prop::collection::vec(rule(), 0..4),
            patches in prop::collection::vec(prop::collection::vec((any::<bool>(), rule()), 1..8), 0..8),
            asked in prop::collection::vec(rule(), 1..60),
        ) {
            let (text, others) = (text.join("\n"), others.join("\n"));
            let list = OwnList::new(1, Vec::new());
            let live = set(&list, &text, &others);
            let mut now = text.clone().into_bytes();
            for patch in &patches {
                let patch: Vec<RuleChange> = patch
                    .iter()
                    .map(|(is_added, rule)| RuleChange { is_added: *is_added, rule: rule.clone() })
                    .collect();
                let done = rewrite(&now, ListFormat::Names, &patch);
                now = done.text;
                let before = list.would_change(&patch);
                let came = list.change(&patch).expect("compiled");
                prop_assert_eq!(before, Some(came.changed));
                prop_assert!(!came.is_late);
            }
            let compiled = set(&OwnList::new(1, Vec::new()), &String::from_utf8(now).expect("text"), &others);
            let all: Vec<RuleChange> = patches
                .into_iter()
                .flatten()
                .map(|(is_added, rule)| RuleChange { is_added, rule })
                .collect();
            let again = set(&OwnList::new(1, all), &text, &others);
            // Names of rules are asked for as well, and names below them.
            let of_rules = text.lines().chain(others.lines()).map(str::to_owned);
            for rule in asked.iter().cloned().chain(of_rules) {
                let name = rule.rsplit(':').next().unwrap_or(&rule).trim_start_matches(['*', '.']);
                for name in [name.to_owned(), format!("x.{name}")] {
                    let expect = holds(&compiled, &name);
                    prop_assert_eq!(holds(&live, &name), expect, "{}", &name);
                    prop_assert_eq!(holds(&again, &name), expect, "{}", &name);
                }
            }
        }
    }
}
