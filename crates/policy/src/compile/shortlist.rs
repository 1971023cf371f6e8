//! What rules out rules of a policy, worked out beforehand: conditions are looked at with one thing
//! about a query known and all others open.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use engine::matchers::Matcher;
use engine::names::NameTable;
use engine::shortlist::{
    Kind, NameRows, PatternRules, RULES_MAX, Row, Rows, Screen, Shortlist, flags, mac_number,
};
use lists::{NamePattern, Term};
use sets::{AddressSet, Reach};
use wire::NameBuf;

use super::{Emitter, matcher};
use crate::condition::{AddressTerm, NameTerm, TextSource};
use crate::{Condition, Test};

/// Rules that names rule out from which one look-up for all of them pays.
const NAMED_MIN: usize = 4;
/// Rules that something else rules out from which that pays.
const RULES_MIN: usize = 8;
/// Values of one thing: what is kept of them twice stays small.
const VALUES_MAX: usize = 4096;
/// Tests made once for several rules.
const TESTS_MAX: usize = 16;

/// What is known about a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It does not hold, and finding that out counts nothing.
    Fails,
    Holds,
    /// That depends on what is open.
    Open,
    /// Looking at it counts a query: it has to be looked at.
    Counts,
}

/// A condition over tests that are numbered.
enum Tree {
    All(Vec<Tree>),
    Any(Vec<Tree>),
    Not(Box<Tree>),
    Constant(bool),
    Test(usize),
    Counts,
}

impl Tree {
    fn look(&self, known: &dyn Fn(usize) -> Option<bool>) -> Known {
        match self {
            Self::All(parts) => several(parts, Known::Fails, Known::Holds, known),
            Self::Any(parts) => several(parts, Known::Holds, Known::Fails, known),
            Self::Not(inside) => match inside.look(known) {
                Known::Fails => Known::Holds,
                Known::Holds => Known::Fails,
                other => other,
            },
            Self::Constant(true) => Known::Holds,
            Self::Constant(false) => Known::Fails,
            Self::Test(test) => match known(*test) {
                Some(true) => Known::Holds,
                Some(false) => Known::Fails,
                None => Known::Open,
            },
            Self::Counts => Known::Counts,
        }
    }
}

/// Looks at parts in order, as a query does: the first that `decides` ends it, and what counts
/// after one that is open may count.
fn several(parts: &[Tree], decides: Known, otherwise: Known, known: &dyn Fn(usize) -> Option<bool>) -> Known {
    let mut so_far = otherwise;
    for part in parts {
        match part.look(known) {
            found if found == decides => return decides,
            Known::Counts => return Known::Counts,
            Known::Open => so_far = Known::Open,
            Known::Fails | Known::Holds => {}
        }
    }
    so_far
}

/// A row in the making: which rules are not ruled out.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Bits(Box<[u64]>);

impl Bits {
    fn set(&mut self, rule: usize, is_left: bool) {
        let bit = 1 << (rule % 64);
        if is_left {
            self.0[rule / 64] |= bit;
        } else {
            self.0[rule / 64] &= !bit;
        }
    }
}

/// Rules that follow each other, and what is known of what they look at.
struct Stretch<'a> {
    rules: Vec<Tree>,
    tests: Vec<&'a Test>,
    /// The rules that each test is part of.
    users: Vec<BTreeSet<usize>>,
    rows: Vec<Box<[u64]>>,
    /// Rows that are there already.
    numbers: HashMap<Bits, Row>,
    /// Rules that are left out by the row that leaves out most, of those used since this was set to
    /// zero.
    most_left_out: usize,
}

/// Returns what rules out some of these rules, if that pays.
pub(super) fn compile(emitter: &Emitter<'_>, conditions: &[&Condition]) -> Option<Shortlist> {
    if conditions.len() < NAMED_MIN || conditions.len() > RULES_MAX {
        return None;
    }
    let mut stretch = Stretch {
        rules: Vec::new(),
        tests: Vec::new(),
        users: Vec::new(),
        rows: Vec::new(),
        numbers: HashMap::new(),
        most_left_out: 0,
    };
    for (rule, condition) in conditions.iter().enumerate() {
        let tree = stretch.tree(condition, rule);
        stretch.rules.push(tree);
    }
    let mut screens = Vec::new();
    let mut screened = BTreeSet::new();
    for kind in [
        Kind::Qtype,
        Kind::Flags,
        Kind::Marks,
        Kind::Listener,
        Kind::Transport,
        Kind::ClientMac,
        Kind::Client,
        Kind::Qname,
    ] {
        stretch.most_left_out = 0;
        let Some(rows) = stretch.screen(emitter, kind) else { continue };
        let pays = if kind == Kind::Qname { NAMED_MIN } else { RULES_MIN };
        if stretch.most_left_out >= pays {
            screens.push(Screen { kind, rows });
            let tests = stretch.tests.iter().enumerate();
            screened.extend(tests.filter(|(_, test)| is_decided(test, kind)).map(|(number, _)| number));
        }
    }
    for (test, rows) in stretch.shared(emitter, &screened) {
        screens.push(Screen { kind: Kind::Test, rows: Rows::Test(test, rows) });
    }
    if screens.is_empty() {
        return None;
    }
    Shortlist::new(conditions.len(), screens, &stretch.rows)
}

/// Returns whether something always says how a test ends.
fn is_decided(test: &Test, kind: Kind) -> bool {
    match test {
        Test::Qtype(_) => kind == Kind::Qtype,
        Test::Flag(_) | Test::WantsDnssec | Test::Edns | Test::Answer => kind == Kind::Flags,
        Test::Listener(_) => kind == Kind::Listener,
        Test::Transport(_) => kind == Kind::Transport,
        Test::ClientMac(_) => kind == Kind::ClientMac,
        Test::Client(terms) => {
            kind == Kind::Client && terms.iter().all(|term| matches!(term.value, AddressTerm::Prefixes(_)))
        }
        Test::Qname(terms) => {
            kind == Kind::Qname
                && terms.iter().all(|term| matches!(term.value, NameTerm::Pattern(NamePattern::Name(..))))
        }
        _ => false,
    }
}

/// Returns whether a test says the same of a query for as long as that is not put aside, and takes
/// longer than a row.
fn is_worth_sharing(test: &Test) -> bool {
    match test {
        Test::Qname(_)
        | Test::Client(_)
        | Test::EdnsOption(_)
        | Test::Number(..)
        | Test::Now(_)
        | Test::PtrAddress(_) => true,
        Test::Text(source, _) => {
            matches!(source.value, TextSource::Qname | TextSource::Client | TextSource::ClientId)
        }
        _ => false,
    }
}

impl<'a> Stretch<'a> {
    fn tree(&mut self, condition: &'a Condition, rule: usize) -> Tree {
        let parts = |stretch: &mut Self, parts: &'a [Condition]| -> Vec<Tree> {
            parts.iter().map(|part| stretch.tree(part, rule)).collect()
        };
        match condition {
            Condition::All(list) => Tree::All(parts(self, list)),
            Condition::Any(list) => Tree::Any(parts(self, list)),
            Condition::Not(inside) => Tree::Not(Box::new(self.tree(inside, rule))),
            Condition::Constant(holds) => Tree::Constant(*holds),
            // Put in place before; nothing is known of it.
            Condition::Named(_) => Tree::Counts,
            Condition::Test(Test::Rate(_)) => Tree::Counts,
            Condition::Test(test) => {
                let number = self.tests.iter().position(|known| *known == test).unwrap_or_else(|| {
                    self.tests.push(test);
                    self.users.push(BTreeSet::new());
                    self.tests.len() - 1
                });
                self.users[number].insert(rule);
                Tree::Test(number)
            }
        }
    }

    /// Returns the row of the rules that are not ruled out if tests end as `known` says.
    fn row(&self, known: &dyn Fn(usize) -> Option<bool>) -> Bits {
        let mut bits = Bits(vec![0; self.rules.len().div_ceil(64)].into());
        for (rule, tree) in self.rules.iter().enumerate() {
            bits.set(rule, tree.look(known) != Known::Fails);
        }
        bits
    }

    /// Returns the row that differs from another in what these tests say.
    fn row_but(
        &self,
        other: &Bits,
        tests: impl IntoIterator<Item = usize>,
        known: &dyn Fn(usize) -> Option<bool>,
    ) -> Bits {
        let mut bits = other.clone();
        let rules: BTreeSet<usize> =
            tests.into_iter().flat_map(|test| self.users[test].iter().copied()).collect();
        for rule in rules {
            bits.set(rule, self.rules[rule].look(known) != Known::Fails);
        }
        bits
    }

    fn number(&mut self, bits: &Bits) -> Row {
        self.most_left_out = self.most_left_out.max(self.left_out(bits));
        if let Some(&number) = self.numbers.get(bits) {
            return number;
        }
        // Before them come the row of every rule and that of those that can be left out.
        let number = self.rows.len() as Row + 2;
        self.rows.push(bits.0.clone());
        self.numbers.insert(bits.clone(), number);
        number
    }

    fn left_out(&self, bits: &Bits) -> usize {
        self.rules.len() - bits.0.iter().map(|word| word.count_ones() as usize).sum::<usize>()
    }

    /// Works out what one thing about a query rules out; `None`: nothing.
    fn screen(&mut self, emitter: &Emitter<'_>, kind: Kind) -> Option<Rows> {
        match kind {
            Kind::Client => self.addresses(emitter),
            Kind::Qname => self.names(emitter),
            Kind::Flags | Kind::Marks => self.bits(kind),
            Kind::Qtype | Kind::Listener | Kind::Transport | Kind::ClientMac => self.values(emitter, kind),
            Kind::Test => None,
        }
    }

    fn values(&mut self, emitter: &Emitter<'_>, kind: Kind) -> Option<Rows> {
        let mut tests: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        let mut is_one = vec![false; self.tests.len()];
        for (number, test) in self.tests.iter().enumerate() {
            let values: Vec<u64> = match (kind, test) {
                (Kind::Qtype, Test::Qtype(types)) => types.iter().map(|rtype| rtype.value.0.into()).collect(),
                (Kind::Listener, Test::Listener(names)) => names
                    .iter()
                    .flat_map(|name| matcher::listener_ids(emitter.environment, &name.value))
                    .map(|id| id.0.into())
                    .collect(),
                (Kind::Transport, Test::Transport(terms)) => {
                    terms.iter().map(|term| term.value as u64).collect()
                }
                (Kind::ClientMac, Test::ClientMac(macs)) => macs.iter().map(|mac| mac_number(*mac)).collect(),
                _ => continue,
            };
            is_one[number] = true;
            for value in values {
                tests.entry(value).or_default().insert(number);
            }
        }
        if !is_one.contains(&true) || tests.len() > VALUES_MAX {
            return None;
        }
        let other = self.row(&|test| is_one[test].then_some(false));
        let mut rows = Vec::new();
        for (value, fitting) in tests {
            let known = |test: usize| is_one[test].then(|| fitting.contains(&test));
            let row = self.row_but(&other, fitting.iter().copied(), &known);
            rows.push((value, self.number(&row)));
        }
        Some(Rows::Numbers(rows.into(), self.number(&other)))
    }

    fn bits(&mut self, kind: Kind) -> Option<Rows> {
        // The bits of which one must be set, and whether that is all that a test asks for.
        let wanted: Vec<Option<(u64, bool)>> = self
            .tests
            .iter()
            .map(|test| match (kind, test) {
                (Kind::Marks, Test::Mark(marks)) => {
                    Some((marks.iter().fold(0, |bits, mark| bits | 1 << (mark & 63)), true))
                }
                (Kind::Flags, Test::Flag(flag)) if flag.0.is_power_of_two() => Some((flag.0.into(), true)),
                (Kind::Flags, Test::WantsDnssec) => Some((flags::DNSSEC, true)),
                (Kind::Flags, Test::Edns) => Some((flags::EDNS, true)),
                (Kind::Flags, Test::Answer) => Some((flags::ANSWER, true)),
                (
                    Kind::Flags,
                    Test::Answered
                    | Test::Rcode(_)
                    | Test::Security(_)
                    | Test::AnswerType(_)
                    | Test::AnswerAddress(_)
                    | Test::AnswerCname(_)
                    | Test::ServerName(_)
                    | Test::ServerAddress(_),
                ) => Some((flags::ANSWER, false)),
                _ => None,
            })
            .collect();
        let mask = wanted.iter().flatten().fold(0, |mask, (bits, _)| mask | bits);
        if mask == 0 {
            return None;
        }
        let none = self.row(&|test| wanted[test].map(|_| false));
        let none = self.number(&none);
        let mut rows = Vec::new();
        for bit in (0..u64::BITS).map(|bit| 1 << bit).filter(|bit| mask & bit != 0) {
            let clear = self.row(&|test| wanted[test].filter(|(bits, _)| *bits == bit).map(|_| false));
            let set = self
                .row(&|test| wanted[test].filter(|(bits, is_all)| bits & bit != 0 && *is_all).map(|_| true));
            rows.push((bit, [self.number(&clear), self.number(&set)]));
        }
        Some(Rows::Bits { mask, none, bits: rows.into() })
    }

    fn addresses(&mut self, emitter: &Emitter<'_>) -> Option<Rows> {
        // What each test compares with, and whether that is all.
        let mut wanted: Vec<Option<(Arc<AddressSet>, bool)>> = Vec::new();
        // Where a test begins to hold, and where it ends to.
        let mut changes: [BTreeMap<u128, Vec<(usize, bool)>>; 2] = Default::default();
        for (number, test) in self.tests.iter().enumerate() {
            let Test::Client(terms) = test else {
                wanted.push(None);
                continue;
            };
            let inline = terms.iter().filter_map(|term| match &term.value {
                AddressTerm::Prefixes(prefixes) => Some(Term::Inline(prefixes.as_slice())),
                AddressTerm::Set(_) => None,
            });
            let set = emitter.environment.sets.addresses(inline);
            for (first, last) in set.ranges() {
                let (family, first, last) = match (first, last) {
                    (IpAddr::V4(first), IpAddr::V4(last)) => {
                        (0, first.to_bits().into(), last.to_bits().into())
                    }
                    (IpAddr::V6(first), IpAddr::V6(last)) => (1, first.to_bits(), last.to_bits()),
                    _ => continue,
                };
                changes[family].entry(first).or_default().push((number, true));
                if let Some(after) = u128::checked_add(last, 1) {
                    changes[family].entry(after).or_default().push((number, false));
                }
            }
            wanted.push(Some((set, terms.iter().all(|term| matches!(term.value, AddressTerm::Prefixes(_))))));
        }
        if changes.iter().all(BTreeMap::is_empty)
            || changes.iter().map(BTreeMap::len).sum::<usize>() > VALUES_MAX
        {
            return None;
        }
        let outside = |test: usize| wanted[test].as_ref().and_then(|(_, is_all)| is_all.then_some(false));
        let other = self.row(&outside);
        let [v4, v6] = changes.map(|changes| {
            let mut rows = vec![(0, self.number(&other))];
            let mut holding = BTreeSet::new();
            for (from, changed) in changes {
                for (test, holds) in changed {
                    if holds {
                        holding.insert(test);
                    } else {
                        holding.remove(&test);
                    }
                }
                let known = |test: usize| if holding.contains(&test) { Some(true) } else { outside(test) };
                let row = self.row_but(&other, holding.iter().copied(), &known);
                let number = self.number(&row);
                if from == 0 {
                    rows.clear();
                }
                rows.push((from, number));
            }
            rows
        });
        let narrow = |(from, row): (u128, Row)| Some((u32::try_from(from).ok()?, row));
        Some(Rows::Addresses { v4: v4.into_iter().filter_map(narrow).collect(), v6: v6.into() })
    }

    fn names(&mut self, emitter: &Emitter<'_>) -> Option<Rows> {
        /// The tests that one name stands in, and which names they mean.
        type Said = Vec<(usize, Reach)>;
        let mut all = Vec::new();
        let mut said: BTreeMap<Vec<u8>, (NameBuf, Said)> = BTreeMap::new();
        // Keywords and regular expressions, each with its test.
        let mut patterns: Vec<(&NamePattern, usize)> = Vec::new();
        // For each test on names: whether it has sets.
        let mut wanted: Vec<Option<bool>> = Vec::new();
        for (number, test) in self.tests.iter().enumerate() {
            let Test::Qname(terms) = test else {
                wanted.push(None);
                continue;
            };
            let mut has_sets = false;
            for term in terms {
                match &term.value {
                    NameTerm::Set(_) => has_sets = true,
                    NameTerm::Pattern(pattern @ NamePattern::Name(name, reach)) => {
                        all.push(pattern);
                        let name = name.as_name().to_folded().as_name().to_buf();
                        let entry = said.entry(name.as_name().as_bytes().to_vec());
                        entry.or_insert((name, Vec::new())).1.push((number, *reach));
                    }
                    NameTerm::Pattern(pattern) => patterns.push((pattern, number)),
                }
            }
            wanted.push(Some(has_sets));
        }
        let count = all.len() + patterns.len();
        if count == 0 || count > VALUES_MAX {
            return None;
        }
        // Patterns do not fit here: those that do put back the rules that look for them, whatever
        // the name is.
        let elsewhere = |test: usize| wanted[test].and_then(|has_sets| (!has_sets).then_some(false));
        let none = self.row(&elsewhere);
        let none_row = self.number(&none);
        let mut rows = Vec::new();
        let mut names = Vec::new();
        for (name, own) in said.values() {
            let covers = own.iter().any(|(_, reach)| *reach != Reach::Itself);
            let mut above = BTreeSet::new();
            let mut at = name.as_name().parent();
            // Ends: each step takes one label off.
            while let Some(parent) = at {
                if let Some((_, said)) = said.get(parent.as_bytes()) {
                    above.extend(
                        said.iter().filter(|(_, reach)| *reach != Reach::Itself).map(|(test, _)| *test),
                    );
                }
                at = parent.parent();
            }
            let row = |stretch: &mut Self, unwanted: Reach| {
                let mut holding = above.clone();
                holding.extend(own.iter().filter(|(_, reach)| *reach != unwanted).map(|(test, _)| *test));
                let known = |test: usize| if holding.contains(&test) { Some(true) } else { elsewhere(test) };
                let row = stretch.row_but(&none, holding.iter().copied(), &known);
                stretch.number(&row)
            };
            rows.push([row(self, Reach::Below), row(self, Reach::Itself)]);
            names.push((*name, covers));
        }
        let sets = emitter.environment.sets;
        let rules = |test: usize| self.users[test].iter().map(|&rule| rule as u16).collect();
        let patterns = (!patterns.is_empty()).then(|| PatternRules {
            set: sets.names(patterns.iter().map(|(pattern, _)| Term::Inline(*pattern))),
            rules: patterns.iter().map(|&(_, test)| rules(test)).collect(),
        });
        Some(Rows::Names(Box::new(NameRows {
            any: sets.names(all.into_iter().map(Term::Inline)),
            names: NameTable::compile(emitter.environment.key, &names),
            rows: rows.into(),
            none: none_row,
            patterns,
        })))
    }

    /// Works out which tests are worth making once for all rules, of those that nothing else
    /// decides.
    fn shared(&mut self, emitter: &Emitter<'_>, screened: &BTreeSet<usize>) -> Vec<(Matcher, [Row; 2])> {
        let mut found = Vec::new();
        for number in 0..self.tests.len() {
            let test = self.tests[number];
            if found.len() >= TESTS_MAX
                || screened.contains(&number)
                || self.users[number].len() < RULES_MIN
                || !is_worth_sharing(test)
            {
                continue;
            }
            let rows = [false, true].map(|holds| self.row(&|other| (other == number).then_some(holds)));
            if rows.iter().all(|row| self.left_out(row) < RULES_MIN) {
                continue;
            }
            let mut matchers = matcher::of_query(emitter.environment, test).unwrap_or_default();
            if let (Some(matcher), true) = (matchers.pop(), matchers.is_empty()) {
                found.push((matcher, rows.map(|row| self.number(&row))));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at a condition whose tests 0 and 1 fail and hold, and of whose others nothing is
    /// known.
    fn check(tree: &Tree, expect: Known) {
        let known = |test: usize| match test {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        assert_eq!(tree.look(&known), expect);
    }

    #[test]
    fn what_is_known_of_parts_says_what_is_known_of_the_whole() {
        use Tree::{All, Any, Not, Test};
        check(&Test(0), Known::Fails);
        check(&Not(Box::new(Test(0))), Known::Holds);
        check(&Not(Box::new(Test(2))), Known::Open);
        check(&All(vec![Test(2), Test(0)]), Known::Fails);
        check(&All(vec![Test(2), Test(1)]), Known::Open);
        check(&Any(vec![Test(0), Test(2)]), Known::Open);
        check(&Any(vec![Test(2), Test(1)]), Known::Holds);
        check(&Any(vec![Test(0), Tree::Constant(false)]), Known::Fails);
    }

    #[test]
    fn what_may_count_a_query_is_looked_at() {
        use Tree::{All, Any, Counts, Not, Test};
        check(&All(vec![Test(0), Counts]), Known::Fails);
        check(&All(vec![Counts, Test(0)]), Known::Counts);
        check(&All(vec![Test(2), Counts, Test(0)]), Known::Counts);
        check(&Any(vec![Test(1), Counts]), Known::Holds);
        check(&Any(vec![Test(0), Counts]), Known::Counts);
        check(&Not(Box::new(All(vec![Test(2), Counts]))), Known::Counts);
    }
}
