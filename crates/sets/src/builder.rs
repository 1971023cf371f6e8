//! Rules to a set of names.

use std::collections::HashMap;
use std::sync::Arc;

use regex_automata::MatchKind;
use regex_automata::dfa::{StartKind, dense};
use regex_automata::nfa::thompson::NFA;
use regex_syntax::hir::Hir;
use wire::{HashKey, Name};

use crate::changing::ChangingNames;
use crate::dynamic::DynamicNames;
use crate::fingerprint::FingerprintKey;
use crate::literals;
use crate::names::{NameSet, Part, Source};
use crate::patterns::{
    ANY_TOP, Always, Automat, GLANCE_OCTETS, Group, PIECE_OCTETS, PatternError, Patterns, Piece,
    REGEX_OCTETS_MAX, TOPS, Trial, glance_of, last_of, pairs, part_of, place_of,
};
use crate::sought::top_bit;
use crate::table::{Entry, Outline, Reach, Table};

/// Octets that building one automaton may take.
const BUILD_OCTETS_MAX: usize = 16 << 20;
/// Octets of an automaton of several regular expressions.
const ALWAYS_OCTETS_MAX: usize = 2 << 20;
/// Regular expressions of one automaton, so that a word has a bit for each.
const ALWAYS_MAX: usize = 64;
/// How much larger than two automata that of both may be. What belongs together, such as
/// expressions that begin with `^`, takes little more than before; counted repetitions in any place
/// multiply, and are tried one by one.
const GROWTH_MAX: usize = 4;
/// What putting expressions together may cost for each of them: octets of automata, times states to
/// go through for each. About a millisecond.
const EFFORT_MAX: usize = 1 << 20;
/// What costs more is not worth looking for.
const COMMON_MIN: f64 = 80.0;
/// What one trial costs in nanoseconds, roughly.
const TRIAL_COST: f64 = 2.0;
/// What it costs that a label begins with a piece, before anything is tried.
const BEGIN_COST: f64 = 10.0;
/// What looking for another text in a name costs.
const CONTAINS_COST: f64 = 15.0;
/// Octets that such a text has at least, so that few names contain it.
const ALSO_OCTETS_MIN: usize = 3;
/// What running an automaton costs.
const RUN_COST: f64 = 120.0;
/// What looking at every place of a name costs.
const SCAN_COST: f64 = 20.0;
/// Regular expressions that may require the same: a name that has it is tried with all of them.
const EQUAL_MAX: u32 = 4;
/// What more of them are counted as, so that they look for something else if they can.
const CROWD_COST: f64 = 40.0;
/// Words of the smallest table of bits, which fits any processor's first cache.
const BITS_WORDS_MIN: usize = 1 << 10;
/// Words of the largest table of bits.
const BITS_WORDS_MAX: usize = 1 << 18;

/// A set of names in the making.
pub struct NameSetBuilder {
    key: FingerprintKey,
    entries: Vec<Entry>,
    outline: Outline,
    keywords: Vec<(Vec<u8>, u32)>,
    regexes: Vec<Regex>,
    sources: Vec<Source>,
    /// The highest number of a rule so far.
    highest: u32,
    include: Vec<Part>,
    except: Vec<Arc<NameSet>>,
    live: Option<Arc<DynamicNames>>,
}

struct Regex {
    hir: Hir,
    automat: Automat,
    origin: u32,
}

impl NameSetBuilder {
    /// Returns an empty set; `key` is what names are hashed with everywhere in this process.
    pub fn new(key: &HashKey) -> Self {
        Self {
            key: FingerprintKey::new(key),
            entries: Vec::new(),
            outline: Outline::default(),
            keywords: Vec::new(),
            regexes: Vec::new(),
            sources: Vec::new(),
            highest: 0,
            include: Vec::new(),
            except: Vec::new(),
            live: None,
        }
    }

    /// Says where the rules that follow come from, for people; their lines are counted anew.
    pub fn source(&mut self, label: impl Into<Box<str>>) {
        self.sources.push(Source { label: label.into(), before: self.highest });
    }

    /// Makes room for so many rules.
    pub fn reserve(&mut self, rules: usize) {
        self.entries.reserve(rules);
    }

    /// Adds a name; letter case does not matter. `line` is where it stands in its source, from 1.
    pub fn name(&mut self, name: Name<'_>, reach: Reach, line: u32) {
        let origin = self.origin(line);
        let folded = name.to_folded();
        let name = folded.as_name();
        // The labels from the last one on.
        let mut labels: [&[u8]; 128] = [&[]; 128];
        let mut count = 0;
        for (label, place) in name.labels().zip(labels.iter_mut()) {
            *place = label;
            count += 1;
        }
        let mut fingerprint = self.key.root();
        let labels = labels.get(..count).unwrap_or(&[]);
        for label in labels.iter().rev() {
            fingerprint = self.key.below(fingerprint, label);
        }
        let top = top_bit(labels.last().copied().unwrap_or(&[]));
        self.outline.add(count as u32, top, reach);
        self.entries.push(Entry::new(fingerprint, reach, origin));
    }

    /// Adds a text that a name contains.
    pub fn keyword(&mut self, keyword: &str, line: u32) -> Result<(), PatternError> {
        let origin = self.origin(line);
        if keyword.is_empty() {
            return Err(PatternError::Empty);
        }
        if !keyword.is_ascii() {
            return Err(PatternError::NotAscii);
        }
        // A longer one is in no name; it is kept, so that it is counted.
        let mut octets = keyword.as_bytes().to_ascii_lowercase();
        octets.truncate(usize::from(u16::MAX));
        self.keywords.push((octets, origin));
        Ok(())
    }

    /// Adds a regular expression that some part of a name fits; letter case does not matter.
    pub fn regex(&mut self, regex: &str, line: u32) -> Result<(), PatternError> {
        let origin = self.origin(line);
        let hir = parse_regex(regex)?;
        let automat = determinize(&nfa(&[&hir])?, REGEX_OCTETS_MAX)?;
        self.regexes.push(Regex { hir, automat, origin });
        Ok(())
    }

    /// Adds everything that another set holds.
    pub fn include(&mut self, set: Arc<NameSet>) {
        self.include.push(Part::Set(set));
    }

    /// Adds a list that changes by single rules.
    pub fn changing(&mut self, names: Arc<ChangingNames>) {
        self.include.push(Part::Changing(names));
    }

    /// Takes out everything that another set holds.
    pub fn except(&mut self, set: Arc<NameSet>) {
        self.except.push(set);
    }

    /// Adds names that are added and removed while the server runs.
    pub fn live(&mut self, names: Arc<DynamicNames>) {
        self.live = Some(names);
    }

    /// Returns how many rules were added.
    pub const fn len(&self) -> usize {
        self.entries.len() + self.keywords.len() + self.regexes.len()
    }

    /// Returns whether no rule was added.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Builds names that single rules can be added to and removed from, with room for a difference
    /// of about `limit` names. Other sets are no part of it.
    pub fn compile_changing(mut self, limit: usize) -> ChangingNames {
        (self.include, self.except, self.live) = (Vec::new(), Vec::new(), None);
        let mut both = Vec::new();
        let table = Table::compile_noting(&self.entries, self.outline, &mut both);
        ChangingNames::new(self.with_table(table), both.into(), limit)
    }

    /// Builds the set.
    pub fn compile(self) -> NameSet {
        let table = Table::compile(&self.entries, self.outline);
        self.with_table(table)
    }

    fn with_table(self, table: Table) -> NameSet {
        drop(self.entries);
        NameSet {
            key: self.key,
            table,
            patterns: compile_patterns(self.keywords, self.regexes).map(Box::new),
            include: self.include.into(),
            except: self.except.into(),
            live: self.live,
            sources: self.sources.into(),
        }
    }

    fn origin(&mut self, line: u32) -> u32 {
        if self.sources.is_empty() {
            self.source("");
        }
        let before = self.sources.last().map_or(0, |source| source.before);
        let origin = before.saturating_add(line);
        self.highest = self.highest.max(origin);
        origin
    }
}

/// Says what is wrong with a regular expression, if anything is.
pub fn check_regex(regex: &str) -> Result<(), PatternError> {
    determinize(&nfa(&[&parse_regex(regex)?])?, REGEX_OCTETS_MAX).map(drop)
}

/// Reads a regular expression about octets in lower case.
pub(crate) fn parse_regex(regex: &str) -> Result<Hir, PatternError> {
    if !regex.is_ascii() {
        return Err(PatternError::NotAscii);
    }
    // A name has no capital letters, so one in the expression stands for the small letter. To say
    // so for all letters would hide what must be in a name.
    let mut escaped = false;
    let has_capital = regex.bytes().any(|octet| {
        let counts = octet.is_ascii_uppercase() && !escaped;
        escaped = octet == b'\\' && !escaped;
        counts
    });
    let mut parser =
        regex_syntax::ParserBuilder::new().utf8(false).unicode(false).case_insensitive(has_capital).build();
    parser.parse(regex).map_err(|error| {
        let text = match &error {
            regex_syntax::Error::Parse(error) => error.kind().to_string(),
            regex_syntax::Error::Translate(error) => error.kind().to_string(),
            other => other.to_string(),
        };
        PatternError::Syntax(text)
    })
}

fn unsupported(error: &dyn std::fmt::Display) -> PatternError {
    PatternError::Unsupported(error.to_string())
}

/// Builds the automaton of regular expressions that is not determined yet.
fn nfa(hirs: &[&Hir]) -> Result<NFA, PatternError> {
    NFA::compiler()
        .configure(NFA::config().utf8(false).nfa_size_limit(Some(BUILD_OCTETS_MAX)))
        .build_many_from_hir(hirs)
        .map_err(|error| match error.size_limit() {
            Some(_) => PatternError::TooLarge,
            None => unsupported(&error),
        })
}

/// Builds an automaton of at most so many octets.
fn determinize(nfa: &NFA, octets_max: usize) -> Result<Automat, PatternError> {
    let config = dense::Config::new()
        .match_kind(MatchKind::All)
        .start_kind(StartKind::Unanchored)
        .dfa_size_limit(Some(octets_max))
        .determinize_size_limit(Some(BUILD_OCTETS_MAX));
    dense::Builder::new().configure(config).build_from_nfa(nfa).map_err(|error| {
        if error.is_size_limit_exceeded() { PatternError::TooLarge } else { unsupported(&error) }
    })
}

/// What is required, and how many patterns could look for the same.
#[derive(Default)]
struct Pieces {
    /// By their piece, and the kind of the last label of names that fit.
    trials: HashMap<(Piece, u8), Vec<Trial>>,
    texts: Vec<u8>,
    begins_wanted: HashMap<Piece, u32>,
    literals_wanted: HashMap<Vec<u8>, u32>,
}

impl Pieces {
    /// Notes that a regular expression could look for one of these.
    fn want(&mut self, literals: &[Vec<u8>]) {
        for literal in literals {
            for (_, part) in literals::begins(literal) {
                *self.begins_wanted.entry(Piece::begin(part)).or_default() += 1;
            }
            *self.literals_wanted.entry(literal.clone()).or_default() += 1;
        }
    }

    /// Returns the best piece of a literal, its place there, and what it costs a name in
    /// nanoseconds, by a rough guess. `has_also`: something else is looked for in the name before
    /// an automaton runs.
    fn best(&self, literal: &[u8], has_also: bool) -> Option<(usize, Piece, f64)> {
        let equal = self.literals_wanted.get(literal).copied().unwrap_or(0);
        let is_crowd = equal > EQUAL_MAX && !has_also;
        let run = if has_also { CONTAINS_COST } else { RUN_COST };
        let runs = |piece: &[u8], frequency: f64| {
            // What names contain is words, so that each octet more tells less than its frequency
            // says.
            let more = (literal.len() - piece.len()).min(16);
            frequency * 0.2_f64.powi(more as i32) * f64::from(equal) * run
        };
        let begins = literals::begins(literal).map(|(at, part)| {
            let piece = Piece::begin(part);
            let wanted = self.begins_wanted.get(&piece).copied().unwrap_or(1);
            let frequency = literals::begin_frequency(part);
            let tried = BEGIN_COST + f64::from(wanted) * TRIAL_COST;
            let cost = frequency * tried + runs(part, frequency);
            (at, piece, if is_crowd { cost + CROWD_COST } else { cost })
        });
        let size = literal.len().clamp(1, PIECE_OCTETS);
        let parts = literal.windows(size).enumerate().map(|(at, part)| {
            let piece = Piece::anywhere(part);
            let others = self.trials.get(&(piece, ANY_TOP)).map_or(0, Vec::len);
            let frequency = literals::frequency(part);
            let cost = frequency * (1 + others) as f64 * TRIAL_COST + runs(part, frequency);
            (at, piece, SCAN_COST + if is_crowd { cost + CROWD_COST } else { cost })
        });
        begins.chain(parts).min_by(|a, b| a.2.total_cmp(&b.2))
    }

    /// Returns what one row of literals costs a name.
    fn cost(&self, row: &[Vec<u8>], has_also: bool) -> f64 {
        row.iter()
            .map(|literal| self.best(literal, has_also).map_or(f64::INFINITY, |(_, _, cost)| cost))
            .sum()
    }

    /// Notes that `literal` is required: by itself, or by a regular expression whose names end with
    /// `tail` and contain `also`.
    fn require(&mut self, literal: &[u8], (tail, also): (&[u8], &[u8]), (regex, origin): (u32, u32)) {
        let Some((piece_at, piece, _)) = self.best(literal, !also.is_empty()) else { return };
        // What is beside the piece, on the side where there is more: the piece itself is known to
        // be there.
        let piece_end = piece_at + piece.len();
        let glance_at = if piece_at >= literal.len() - piece_end {
            piece_at.saturating_sub(GLANCE_OCTETS)
        } else {
            piece_end
        };
        let glanced = literal.get(glance_at..literal.len().min(glance_at + GLANCE_OCTETS)).unwrap_or(&[]);
        let counted = |octets: &[u8]| -> Vec<u8> {
            octets.iter().map(|octet| if *octet == b'.' { 0 } else { 0xff }).collect()
        };
        let (glance_mask, tail_mask) = (glance_of(&counted(glanced)), last_of(&counted(tail)));
        let trial = Trial {
            glance: glance_of(glanced) & glance_mask,
            glance_mask,
            tail: last_of(tail) & tail_mask,
            tail_mask,
            at: self.texts.len() as u32,
            len: literal.len() as u16,
            piece_at: piece_at as u16,
            glance_at: glance_at as u16,
            also_len: also.len() as u16,
            also_at: (self.texts.len() + literal.len()) as u32,
            also_pairs: pairs(also),
            regex,
            origin,
        };
        self.texts.extend_from_slice(literal);
        self.texts.extend_from_slice(also);
        self.trials.entry((piece, top_of(tail))).or_default().push(trial);
    }
}

fn compile_patterns(keywords: Vec<(Vec<u8>, u32)>, regexes: Vec<Regex>) -> Option<Patterns> {
    let len = keywords.len() + regexes.len();
    if len == 0 {
        return None;
    }
    let mut pieces = Pieces::default();
    let rows: Vec<Vec<Vec<Vec<u8>>>> = regexes.iter().map(|regex| literals::required(&regex.hir)).collect();
    rows.iter().flatten().for_each(|row| pieces.want(row));
    for (keyword, origin) in keywords {
        pieces.require(&keyword, (&[], &[]), (0, origin));
    }
    let (mut automats, mut always) = (Vec::new(), Vec::new());
    for (regex, rows) in regexes.into_iter().zip(rows) {
        let also = |chosen: &[Vec<u8>]| also(&rows, chosen);
        let cost = |row: &Vec<Vec<u8>>| pieces.cost(row, also(row).is_some());
        let best = rows.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let Some(row) = best.filter(|row| cost(row) < COMMON_MIN) else {
            always.push(regex);
            continue;
        };
        automats.push(regex.automat);
        let tail = literals::tail(&regex.hir);
        let also = also(row).unwrap_or(&[]);
        for literal in row {
            pieces.require(literal, (&tail, also), (automats.len() as u32, regex.origin));
        }
    }
    let Pieces { trials: pieces, texts, .. } = pieces;
    let words = pieces.len().next_power_of_two().clamp(BITS_WORDS_MIN, BITS_WORDS_MAX);
    let mut patterns = Patterns {
        bits: vec![0; words].into_boxed_slice(),
        lengths: [0; TOPS],
        begin_lengths: [0; TOPS],
        groups: vec![Group::default(); (pieces.len() * 2).next_power_of_two()].into_boxed_slice(),
        trials: Box::default(),
        texts: texts.into_boxed_slice(),
        regexes: automats.into_boxed_slice(),
        always: together(always).0.into_boxed_slice(),
        len,
    };
    let mut trials = Vec::new();
    for ((piece, top), mut some) in pieces {
        let (lengths, len) = match piece.begin_len() {
            Some(len) => (&mut patterns.begin_lengths, len),
            None => (&mut patterns.lengths, piece.kind),
        };
        for (kind, lengths) in (0..).zip(lengths) {
            if top == kind || top == ANY_TOP {
                *lengths |= 1 << len;
            }
        }
        let mixed = piece.mixed();
        let bit = part_of(mixed, words * 64);
        if let Some(word) = patterns.bits.get_mut(bit >> 6) {
            *word |= 1 << (bit & 63);
        }
        let first = trials.len() as u32;
        trials.append(&mut some);
        let group = Group { piece, top, first, end: trials.len() as u32 };
        let mut at = part_of(place_of(piece, top), patterns.groups.len());
        // Ends: at least half of the places are free.
        while patterns.groups.get(at).is_some_and(|group| group.piece.kind != 0) {
            at = (at + 1) & (patterns.groups.len() - 1);
        }
        if let Some(place) = patterns.groups.get_mut(at) {
            *place = group;
        }
    }
    patterns.trials = trials.into_boxed_slice();
    Some(patterns)
}

/// Returns the rarest text that every name must contain besides one of those that are chosen.
fn also<'r>(rows: &'r [Vec<Vec<u8>>], chosen: &[Vec<u8>]) -> Option<&'r [u8]> {
    let single = rows.iter().filter(|row| row.as_slice() != chosen).filter_map(|row| match row.as_slice() {
        [literal] if literal.len() >= ALSO_OCTETS_MIN => Some(literal.as_slice()),
        _ => None,
    });
    single.min_by(|a, b| literals::rarest(a).total_cmp(&literals::rarest(b)))
}

/// Returns of which kind the last label of names is that end with `tail`, the dot behind it
/// included.
fn top_of(tail: &[u8]) -> u8 {
    let Some((b'.', before)) = tail.split_last() else { return ANY_TOP };
    match before.iter().rposition(|&octet| octet == b'.') {
        Some(dot) => top_bit(&before[dot + 1..]).trailing_zeros() as u8,
        None => ANY_TOP,
    }
}

/// Returns how many octets a text has at least that the expression fits.
fn octets_min(hir: &Hir) -> usize {
    // None: it fits nothing at all.
    hir.properties().minimum_len().unwrap_or(usize::MAX)
}

/// Regular expressions that share an automaton.
struct Batch {
    hirs: Vec<Hir>,
    origins: Vec<u32>,
    automat: Automat,
}

impl Batch {
    /// Puts two into one, if that does not grow beyond measure. Adds what it costs to `spent`, up
    /// to `effort`.
    fn merge(self, other: Self, spent: &mut usize, effort: usize) -> Result<Self, Box<[Self; 2]>> {
        let left = effort.saturating_sub(*spent);
        if self.hirs.len() + other.hirs.len() > ALWAYS_MAX || left == 0 {
            return Err(Box::new([self, other]));
        }
        let hirs: Vec<&Hir> = self.hirs.iter().chain(&other.hirs).collect();
        let Ok(nfa) = nfa(&hirs) else { return Err(Box::new([self, other])) };
        let states = nfa.states().len().max(1);
        let before = self.automat.memory_usage() + other.automat.memory_usage();
        let octets_max = (GROWTH_MAX * before).min(ALWAYS_OCTETS_MAX).min(left / states);
        let automat = determinize(&nfa, octets_max);
        let octets = automat.as_ref().map_or(octets_max, Automat::memory_usage);
        // At least one, so that there is an end to it.
        *spent += octets.max(1) * states;
        match automat {
            Ok(automat) => Ok(Self {
                hirs: [self.hirs, other.hirs].concat(),
                origins: [self.origins, other.origins].concat(),
                automat,
            }),
            Err(_) => Err(Box::new([self, other])),
        }
    }
}

/// Puts regular expressions into as few automata as pays; returns also what that cost. Neighbours
/// are put together, then the neighbours of what came of it.
fn together(regexes: Vec<Regex>) -> (Vec<Always>, usize) {
    let effort = regexes.len() * EFFORT_MAX;
    let mut spent = 0;
    let mut rest: Vec<Batch> = regexes
        .into_iter()
        .map(|Regex { hir, automat, origin }| Batch { hirs: vec![hir], origins: vec![origin], automat })
        .collect();
    let mut done = Vec::new();
    // Ends: each round leaves at most half, rounded up.
    while rest.len() > 1 {
        let mut merged = Vec::new();
        let mut batches = rest.into_iter();
        while let Some(first) = batches.next() {
            match batches.next() {
                None => merged.push(first),
                Some(second) => match first.merge(second, &mut spent, effort) {
                    Ok(both) => merged.push(both),
                    Err(apart) => done.extend(*apart),
                },
            }
        }
        rest = merged;
    }
    done.append(&mut rest);
    let always = done.into_iter().map(|batch| Always {
        octets_min: batch.hirs.iter().map(octets_min).min().unwrap_or(0),
        automat: batch.automat,
        origins: batch.origins.into(),
    });
    (always.collect(), spent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many automata expressions become, and what putting them together cost.
    fn check(regexes: &[String]) -> (usize, usize) {
        let regexes = (0..).zip(regexes).map(|(origin, regex)| {
            let hir = parse_regex(regex).expect("a regular expression");
            let automat = determinize(&nfa(&[&hir]).expect("small"), REGEX_OCTETS_MAX).expect("small");
            Regex { hir, automat, origin }
        });
        let (always, effort) = together(regexes.collect());
        (always.len(), effort)
    }

    #[test]
    fn expressions_that_belong_together_share_an_automaton() {
        let alike: Vec<String> =
            (0..64).map(|count| format!("^[a-z]{{{}}}[0-9]?\\.", 3 + count % 30)).collect();
        let (automata, effort) = check(&alike);
        assert!(automata == 1 && effort < 64 * EFFORT_MAX, "{automata} {effort}");
    }

    #[test]
    fn counted_repetitions_are_not_multiplied_with_each_other() {
        let hashes = (0..50).map(|count| format!("[0-9a-f]{{{},}}\\.", 8 + count % 16));
        let words = (0..50).map(|count| {
            let from = char::from(b'b' + count % 20);
            format!("[{from}-z]{{{},}}[0-9]{{2,}}[a-v]+[0-9]", 3 + count % 4)
        });
        let all: Vec<String> = hashes.chain(words).collect();
        let (automata, effort) = check(&all);
        assert!(automata < all.len(), "{automata}");
        // The last step may take a little more than what is left.
        assert!(effort <= (all.len() + 1) * EFFORT_MAX, "{effort}");
    }
}
