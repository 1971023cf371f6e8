//! Rules to a set of names.

use std::collections::HashMap;
use std::sync::Arc;

use regex_automata::MatchKind;
use regex_automata::dfa::{StartKind, dense};
use regex_automata::nfa::thompson::NFA;
use regex_syntax::hir::Hir;
use wire::{HashKey, Name};

use crate::dynamic::DynamicNames;
use crate::fingerprint::FingerprintKey;
use crate::literals;
use crate::names::{NameSet, Source};
use crate::patterns::{
    Always, Automat, Group, PIECE_OCTETS, PatternError, Patterns, REGEX_OCTETS_MAX, Trial, mixed, number,
    part_of,
};
use crate::sought::top_bit;
use crate::table::{Entry, Outline, Reach, Table};

/// Octets that building one automaton may take.
const BUILD_OCTETS_MAX: usize = 16 << 20;
/// Octets of an automaton of several regular expressions.
const ALWAYS_OCTETS_MAX: usize = 2 << 20;
/// Regular expressions of one automaton, so that a word has a bit for each.
const ALWAYS_MAX: usize = 64;
/// A piece that so many names contain is not worth looking for.
const COMMON_MIN: f64 = 0.25;
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
    include: Vec<Arc<NameSet>>,
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
        let automat = automat(&[&hir], REGEX_OCTETS_MAX)?;
        self.regexes.push(Regex { hir, automat, origin });
        Ok(())
    }

    /// Adds everything that another set holds.
    pub fn include(&mut self, set: Arc<NameSet>) {
        self.include.push(set);
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

    /// Builds the set.
    pub fn compile(self) -> NameSet {
        let table = Table::compile(&self.entries, self.outline);
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
    automat(&[&parse_regex(regex)?], REGEX_OCTETS_MAX).map(drop)
}

/// Reads a regular expression about octets in lower case.
pub(crate) fn parse_regex(regex: &str) -> Result<Hir, PatternError> {
    // A name has no capital letters, so one in the expression stands for the small letter. To say so for all letters
    // would hide what must be in a name.
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

/// Builds one automaton of regular expressions.
fn automat(hirs: &[&Hir], octets_max: usize) -> Result<Automat, PatternError> {
    let unsupported = |error: &dyn std::fmt::Display| PatternError::Unsupported(error.to_string());
    let nfa = NFA::compiler()
        .configure(NFA::config().utf8(false).nfa_size_limit(Some(BUILD_OCTETS_MAX)))
        .build_many_from_hir(hirs)
        .map_err(|error| match error.size_limit() {
            Some(_) => PatternError::TooLarge,
            None => unsupported(&error),
        })?;
    let config = dense::Config::new()
        .match_kind(MatchKind::All)
        .start_kind(StartKind::Unanchored)
        .dfa_size_limit(Some(octets_max))
        .determinize_size_limit(Some(BUILD_OCTETS_MAX));
    dense::Builder::new().configure(config).build_from_nfa(&nfa).map_err(|error| {
        if error.is_size_limit_exceeded() { PatternError::TooLarge } else { unsupported(&error) }
    })
}

/// What is tried when a piece is found, by the piece's length and octets.
type Pieces = HashMap<(u8, u32), Vec<Trial>>;

/// Notes that `literal` is required: by itself, or by a regular expression.
fn require(pieces: &mut Pieces, texts: &mut Vec<u8>, literal: &[u8], (regex, origin): (u32, u32)) {
    let size = literal.len().min(PIECE_OCTETS);
    // A piece that others have already would lead to more trials.
    let cost = |part: &[u8]| {
        let others = pieces.get(&(size as u8, number(part))).map_or(0, Vec::len);
        literals::frequency(part) * (1 + others) as f64
    };
    let best = literal.windows(size.max(1)).enumerate().map(|(at, part)| (at, part, cost(part)));
    let Some((piece_at, part, _)) = best.min_by(|a, b| a.2.total_cmp(&b.2)) else { return };
    let piece = (size as u8, number(part));
    let trial =
        Trial { at: texts.len() as u32, len: literal.len() as u16, piece_at: piece_at as u16, regex, origin };
    texts.extend_from_slice(literal);
    pieces.entry(piece).or_default().push(trial);
}

fn compile_patterns(keywords: Vec<(Vec<u8>, u32)>, regexes: Vec<Regex>) -> Option<Patterns> {
    let len = keywords.len() + regexes.len();
    if len == 0 {
        return None;
    }
    let mut pieces = Pieces::new();
    let mut texts = Vec::new();
    for (keyword, origin) in keywords {
        require(&mut pieces, &mut texts, &keyword, (0, origin));
    }
    let (mut automats, mut always) = (Vec::new(), Vec::new());
    for regex in regexes {
        let required = literals::required(&regex.hir);
        let common: f64 = required.iter().map(|literal| literals::rarest(literal)).sum();
        if required.is_empty() || common >= COMMON_MIN {
            always.push(regex);
            continue;
        }
        automats.push(regex.automat);
        for literal in &required {
            require(&mut pieces, &mut texts, literal, (automats.len() as u32, regex.origin));
        }
    }
    let words = pieces.len().next_power_of_two().clamp(BITS_WORDS_MIN, BITS_WORDS_MAX);
    let mut patterns = Patterns {
        bits: vec![0; words].into_boxed_slice(),
        lengths: 0,
        groups: vec![Group::default(); (pieces.len() * 2).next_power_of_two()].into_boxed_slice(),
        trials: Box::default(),
        texts: texts.into_boxed_slice(),
        regexes: automats.into_boxed_slice(),
        always: together(always).into_boxed_slice(),
        len,
    };
    let mut trials = Vec::new();
    for ((size, piece), mut some) in pieces {
        patterns.lengths |= 1 << size;
        let mixed = mixed(piece, usize::from(size));
        let bit = part_of(mixed, words * 64);
        if let Some(word) = patterns.bits.get_mut(bit >> 6) {
            *word |= 1 << (bit & 63);
        }
        let first = trials.len() as u32;
        trials.append(&mut some);
        let group = Group { piece, len: size, first, end: trials.len() as u32 };
        let mut at = part_of(mixed, patterns.groups.len());
        // Ends: at least half of the places are free.
        while patterns.groups.get(at).is_some_and(|group| group.len != 0) {
            at = (at + 1) & (patterns.groups.len() - 1);
        }
        if let Some(place) = patterns.groups.get_mut(at) {
            *place = group;
        }
    }
    patterns.trials = trials.into_boxed_slice();
    Some(patterns)
}

/// Puts as many regular expressions into one automaton as its size allows.
fn together(regexes: Vec<Regex>) -> Vec<Always> {
    let mut all = Vec::new();
    let mut rest = regexes.into_iter().peekable();
    while rest.peek().is_some() {
        let some: Vec<Regex> = rest.by_ref().take(ALWAYS_MAX).collect();
        split(some, &mut all);
    }
    all
}

/// Puts regular expressions into one automaton, or halves of them into two.
fn split(mut regexes: Vec<Regex>, all: &mut Vec<Always>) {
    if regexes.len() == 1 {
        let single =
            regexes.pop().map(|regex| Always { automat: regex.automat, origins: [regex.origin].into() });
        all.extend(single);
        return;
    }
    let hirs: Vec<&Hir> = regexes.iter().map(|regex| &regex.hir).collect();
    match automat(&hirs, ALWAYS_OCTETS_MAX) {
        Ok(automat) => {
            all.push(Always { automat, origins: regexes.iter().map(|regex| regex.origin).collect() });
        }
        Err(_) => {
            let second = regexes.split_off(regexes.len() / 2);
            split(regexes, all);
            split(second, all);
        }
    }
}
