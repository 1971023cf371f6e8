//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Which of many rules can concern a query: those that its name, type, client and the like do not
//! rule out.
//!
//! Each of these leads to a row of bits, one for each rule; rules whose bit is set in all of the
//! rows are tried, in order. A bit says "perhaps": the rule's own tests decide. Rows are worked out
//! when the configuration is loaded.

mod build;

use std::net::IpAddr;
use std::sync::Arc;

use sets::NameSet;

use crate::matchers::{Facts, Matcher};
use crate::query::names::{NameTable, Sought};

/// Rules of one shortlist: what is left of them is kept for each worker, and walked for each query.
pub const RULES_MAX: usize = 1024;
/// Words that hold a bit for each rule.
const WORDS_MAX: usize = RULES_MAX / u64::BITS as usize;

/// The number of a row of bits.
pub type Row = u32;

/// Goes on at the first of the rules from `rule` on that can concern the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seek {
    /// Which of the program's shortlists.
    pub list: u16,
    /// The rule whose steps come next.
    pub rule: u16,
    /// How many steps that rule has.
    pub steps: u16,
}

/// What rules are ruled out by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The type asked for.
    Qtype,
    /// Flags of the query, and whether there is an answer.
    Flags,
    /// The marks that it carries.
    Marks,
    /// The listener that it came to.
    Listener,
    /// The transport that it came over.
    Transport,
    /// The client's hardware address.
    ClientMac,
    /// The client's address.
    Client,
    /// The name asked for.
    Qname,
    /// A test that several rules make.
    Test,
}

/// One thing about a query that rules things out.
pub struct Screen {
    /// What it is.
    pub kind: Kind,
    /// What of it leads to which rows.
    pub rows: Rows,
}

/// What leads to which rows.
pub enum Rows {
    /// These numbers, in ascending order, to these rows; all others to the last.
    Numbers(Box<[(u64, Row)]>, Row),
    /// Bits of a word.
    Bits {
        /// The bits that any rule looks at.
        mask: u64,
        /// The row if none of them is set.
        none: Row,
        /// A bit, and the rows if it is clear and if it is set.
        bits: Box<[(u64, [Row; 2])]>,
    },
    /// Addresses, from the first of these on to its row; ascending, the first from zero.
    Addresses {
        /// Addresses of version 4.
        v4: Box<[(u32, Row)]>,
        /// Addresses of version 6.
        v6: Box<[(u128, Row)]>,
    },
    /// Names.
    Names(Box<NameRows>),
    /// A test: the rows if it fails and if it holds.
    Test(Matcher, [Row; 2]),
}

/// Which names lead to which rows.
pub struct NameRows {
    /// All names that rules look for.
    pub any: Arc<NameSet>,
    /// Names, and whether those below them are looked for.
    pub names: NameTable,
    /// The rows for each name itself, and for what is below it, as if no pattern fitted.
    pub rows: Box<[[Row; 2]]>,
    /// The row for what is neither in `names` nor below one of them.
    pub none: Row,
    /// Keywords and regular expressions.
    pub patterns: Option<PatternRules>,
}

/// The keywords and regular expressions of all rules in one set: one pass over the name finds all
/// that fit.
pub struct PatternRules {
    /// The patterns, numbered from one.
    pub set: Arc<NameSet>,
    /// For each of them the rules that look for it: when it fits, nothing rules them out.
    pub rules: Box<[Box<[u16]>]>,
}

impl NameRows {
    #[inline]
    fn row(&self, sought: &Sought<'_>) -> Row {
        if self.any.contains(sought) { self.fitting(sought) } else { self.none }
    }

    fn fitting(&self, sought: &Sought<'_>) -> Row {
        let itself = self.names.exact(sought).map(|index| (index, 0));
        let found = itself.or_else(|| self.names.covering(sought, |found| Some((found.index, 1))));
        let row = found.and_then(|(index, below)| self.rows.get(index)?.get::<usize>(below));
        row.copied().unwrap_or(self.none)
    }
}

impl PatternRules {
    /// Sets the bits of the rules that look for a pattern that fits.
    fn add(&self, sought: &Sought<'_>, bits: &mut [u64]) {
        self.set.each(sought, |pattern| {
            let rules = (pattern.number() as usize).checked_sub(1).and_then(|at| self.rules.get(at));
            for &rule in rules.into_iter().flatten() {
                if let Some(word) = bits.get_mut(usize::from(rule) / 64) {
                    *word |= 1 << (rule % 64);
                }
            }
        });
    }
}

/// The flags of a query as one word: those of its header, and these.
pub mod flags {
    /// It asks for DNSSEC records.
    pub const DNSSEC: u64 = 1 << 16;
    /// It has EDNS.
    pub const EDNS: u64 = 1 << 17;
    /// There is an answer.
    pub const ANSWER: u64 = 1 << 18;
}

/// Rules in a row, and what rules them out.
pub struct Shortlist {
    /// The first step of each rule, and the one after the last rule.
    starts: Box<[u16]>,
    screens: Box<[Screen]>,
    /// Words of a row.
    words: usize,
    /// All rows, one after the other. The first: every rule; the second: those that some row leaves
    /// out.
    bits: Box<[u64]>,
    /// The marks that decide about rows.
    marks: u64,
    /// Whether it decides about rows that there is an answer.
    minds_answers: bool,
}

/// The rules that are left of a shortlist for a query; what a worker keeps of the last look.
pub(crate) struct Candidates {
    /// Whose they are: a number that each look takes anew.
    serial: u64,
    list: u16,
    marks: u64,
    has_answer: bool,
    bits: [u64; WORDS_MAX],
}

impl Default for Candidates {
    fn default() -> Self {
        Self { serial: 0, list: 0, marks: 0, has_answer: false, bits: [0; WORDS_MAX] }
    }
}

impl Shortlist {
    /// Returns whether it leads from a step on only.
    pub(crate) fn leads_forward(&self, seek: Seek, at: usize, steps: usize) -> bool {
        let ahead = self.starts.get(usize::from(seek.rule)..).unwrap_or(&[]);
        ahead.first().is_some_and(|&first| usize::from(first) == at + 1)
            && ahead.len() > 1
            && ahead.is_sorted()
            && ahead.last().is_some_and(|&last| usize::from(last) <= steps)
    }

    /// Returns whether some row leaves the rule out.
    pub fn can_skip(&self, rule: usize) -> bool {
        has(self.row(1), rule)
    }

    fn row(&self, row: Row) -> &[u64] {
        let at = row as usize * self.words;
        self.bits.get(at..at + self.words).unwrap_or(&[])
    }

    /// Returns the step to go on with: the first one of the next rule that can concern the query.
    #[inline]
    pub(crate) fn seek(
        &self,
        seek: Seek,
        facts: Facts<'_>,
        known: u64,
        candidates: &mut Candidates,
    ) -> (u16, u64) {
        let marks = facts.interim.marks & self.marks;
        let has_answer = self.minds_answers && facts.interim.answer.is_some();
        let is_known = known == candidates.serial
            && known != 0
            && candidates.list == seek.list
            && candidates.marks == marks
            && candidates.has_answer == has_answer;
        if !is_known {
            self.look(facts, &mut candidates.bits);
            candidates.serial += 1;
            candidates.list = seek.list;
            candidates.marks = marks;
            candidates.has_answer = has_answer;
        }
        let rule = next(candidates.bits.get(..self.words).unwrap_or(&[]), usize::from(seek.rule));
        let start = rule.and_then(|rule| self.starts.get(rule)).or(self.starts.last());
        (start.copied().unwrap_or(u16::MAX), candidates.serial)
    }

    /// Looks at everything that rules something out.
    #[inline(never)]
    fn look(&self, facts: Facts<'_>, bits: &mut [u64; WORDS_MAX]) {
        let Some(bits) = bits.get_mut(..self.words) else { return };
        bits.copy_from_slice(self.row(0));
        let can_skip = self.row(1);
        let mut keep = |row: &[u64]| {
            let mut left = 0;
            for ((word, kept), can_skip) in bits.iter_mut().zip(row).zip(can_skip) {
                *word &= kept;
                left |= *word & can_skip;
            }
            left != 0
        };
        for screen in &self.screens {
            if !self.each_row(screen, facts, &mut keep) {
                return;
            }
        }
    }

    /// Walks the rows that a screen leads the query to; `keep` returns false if one leaves nothing
    /// to find out. Returns whether it never did.
    #[inline]
    fn each_row(&self, screen: &Screen, facts: Facts<'_>, keep: &mut impl FnMut(&[u64]) -> bool) -> bool {
        if let Rows::Names(names) = &screen.rows
            && let Some(patterns) = &names.patterns
        {
            let sought = &facts.request.sought;
            let mut room = [0; WORDS_MAX];
            let Some(bits) = room.get_mut(..self.words) else { return true };
            bits.copy_from_slice(self.row(names.row(sought)));
            patterns.add(sought, bits);
            return keep(bits);
        }
        screen.each_row(facts, &mut |row| keep(self.row(row)))
    }

    /// Returns what rules out this rule, if anything does.
    #[cold]
    fn why(&self, rule: usize, facts: Facts<'_>) -> Option<Kind> {
        let rules_out = |screen: &&Screen| !self.each_row(screen, facts, &mut |row| has(row, rule));
        self.screens.iter().find(rules_out).map(|screen| screen.kind)
    }

    /// Walks the rules from `seek` on up to the step that it leads to: each one's first step, and
    /// what rules it out.
    pub(crate) fn skipped<'s>(
        &'s self,
        seek: Seek,
        to: u16,
        facts: Facts<'s>,
    ) -> impl Iterator<Item = (u16, Kind)> + 's {
        let starts = self.starts.iter().enumerate().skip(usize::from(seek.rule));
        starts
            .take_while(move |&(_, &start)| start < to)
            .filter_map(move |(rule, &start)| Some((start, self.why(rule, facts)?)))
    }
}

/// Returns whether a row has the bit of a rule.
fn has(row: &[u64], rule: usize) -> bool {
    row.get(rule / 64).is_some_and(|word| word >> (rule % 64) & 1 != 0)
}

/// Returns the first bit from `from` on that is set.
#[inline]
fn next(bits: &[u64], from: usize) -> Option<usize> {
    let mut unseen = u64::MAX << (from % 64);
    for (at, word) in bits.iter().enumerate().skip(from / 64) {
        let word = word & unseen;
        if word != 0 {
            return Some(at * 64 + word.trailing_zeros() as usize);
        }
        unseen = u64::MAX;
    }
    None
}

impl Screen {
    /// Walks the rows that the query leads to, of names without regard to patterns; `keep` returns
    /// false if it leaves nothing to find out. Returns whether it never did.
    #[inline]
    fn each_row(&self, facts: Facts<'_>, keep: &mut impl FnMut(Row) -> bool) -> bool {
        match &self.rows {
            Rows::Numbers(numbers, other) => {
                let number = self.number(facts);
                let found = numbers.binary_search_by_key(&number, |&(number, _)| number).ok();
                keep(found.and_then(|at| numbers.get(at)).map_or(*other, |&(_, row)| row))
            }
            Rows::Bits { mask, none, bits } => {
                let word = self.number(facts) & mask;
                if word == 0 {
                    return keep(*none);
                }
                // All of them: each leaves something out.
                let mut is_kept = true;
                for (bit, [clear, set]) in bits {
                    is_kept &= keep(if word & bit == 0 { *clear } else { *set });
                }
                is_kept
            }
            Rows::Addresses { v4, v6 } => keep(match facts.client_address() {
                IpAddr::V4(address) => from_on(v4, address.to_bits()),
                IpAddr::V6(address) => match address.to_ipv4_mapped() {
                    Some(address) => from_on(v4, address.to_bits()),
                    None => from_on(v6, address.to_bits()),
                },
            }),
            Rows::Names(names) => keep(names.row(&facts.request.sought)),
            Rows::Test(matcher, [fails, holds]) => keep(if matcher.holds(facts) { *holds } else { *fails }),
        }
    }

    /// Returns what of a query is a number.
    #[inline]
    fn number(&self, facts: Facts<'_>) -> u64 {
        let query = facts.request.query;
        match self.kind {
            Kind::Qtype => query.question.qtype.0.into(),
            Kind::Marks => facts.interim.marks,
            Kind::Listener => facts.request.client.listener.0.into(),
            Kind::Transport => facts.request.client.transport as u64,
            Kind::ClientMac => facts.client_mac().map_or(u64::MAX, mac_number),
            Kind::Flags => {
                let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
                u64::from(query.header.flags.0)
                    | flag(query.wants_dnssec(), flags::DNSSEC)
                    | flag(query.edns.is_some(), flags::EDNS)
                    | flag(facts.interim.answer.is_some(), flags::ANSWER)
            }
            Kind::Client | Kind::Qname | Kind::Test => 0,
        }
    }
}

/// Returns a hardware address as a number.
pub fn mac_number(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |number, &octet| number << 8 | u64::from(octet))
}

/// Returns the row of the last entry that does not begin after `value`.
#[inline]
fn from_on<T: Copy + Ord>(rows: &[(T, Row)], value: T) -> Row {
    let after = rows.partition_point(|&(from, _)| from <= value);
    rows.get(after.saturating_sub(1)).map_or(0, |&(_, row)| row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_bit_is_found_across_words() {
        let bits = [1 << 5 | 1 << 63, 0, 1];
        for (from, expect) in [(0, Some(5)), (5, Some(5)), (6, Some(63)), (64, Some(128)), (128, Some(128))] {
            assert_eq!(next(&bits, from), expect, "{from}");
        }
        assert_eq!(next(&bits, 129), None);
        assert_eq!(next(&[], 0), None);
    }

    #[test]
    fn an_address_leads_to_the_last_row_that_begins_before_it() {
        let rows = [(0_u32, 7), (10, 8), (20, 7)];
        for (value, expect) in [(0, 7), (9, 7), (10, 8), (19, 8), (20, 7), (u32::MAX, 7)] {
            assert_eq!(from_on(&rows, value), expect, "{value}");
        }
        assert_eq!(from_on::<u32>(&[], 5), 0, "the row of every rule");
    }

    #[test]
    fn rows_have_a_bit_for_each_rule() {
        let row: Box<[u64]> = Box::new([0b101, 1]);
        let list = Shortlist::new(66, std::vec![], &[row]).expect("it fits");
        assert_eq!(list.row(0), [u64::MAX, 3]);
        assert_eq!(list.row(1), [!0b101, 2], "what the row leaves out");
        assert!(list.can_skip(1) && !list.can_skip(2) && !list.can_skip(64) && list.can_skip(65));
        assert!(Shortlist::new(RULES_MAX + 1, std::vec![], &[]).is_none());
        assert!(Shortlist::new(65, std::vec![], &[Box::new([1])]).is_none(), "a row is too short");
    }
}
