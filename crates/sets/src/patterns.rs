//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Keywords and regular expressions.
//!
//! Each has a piece that every name it fits must contain, and only what the pieces of a name lead
//! to is tried. The best piece is what a label begins with, up to eight octets, the dot behind the
//! label included: there are as many places to look at as labels. A pattern that does not say where
//! labels begin has up to four octets from anywhere, and one pass over the name looks at every
//! place. Pieces are looked up in a table of bits; no look-up depends on another, so that a name
//! that fits nothing costs a few nanoseconds for each place, however many patterns there are.
//!
//! A pattern is tried at the place of its piece: first eight octets of what it requires are
//! compared, and the last eight of the name with what it must end with, then all that is required,
//! then what it requires besides, and only then does an automaton run.

use regex_automata::dfa::{Automaton, dense};
use regex_automata::util::primitives::StateID;
use regex_automata::{Anchored, Input};

use wire::name::NAME_OCTETS_MAX;

use crate::sought::{Sought, Text, word_at};

/// Octets of the longest piece from anywhere.
pub(crate) const PIECE_OCTETS: usize = 4;
/// Octets of the longest piece that a label begins with.
pub(crate) const BEGIN_OCTETS: usize = 8;
/// Octets of a name that is not unusually long.
const USUAL_OCTETS_MAX: usize = 64;
/// Octets that the automaton of one regular expression may take; larger ones are refused.
pub const REGEX_OCTETS_MAX: usize = 1 << 20;

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// A keyword without a single octet is in every name.
    Empty,
    /// It has letters outside ASCII, which no name has on the wire.
    NotAscii,
    /// Not a regular expression: what is wrong with it.
    Syntax(String),
    /// Its automaton takes more than [`REGEX_OCTETS_MAX`] octets.
    TooLarge,
    /// It asks for something that names cannot be tested for, such as a border between Unicode
    /// words.
    Unsupported(String),
}

impl std::fmt::Display for PatternError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("an empty keyword is in every name"),
            Self::NotAscii => f.write_str(
                "letters outside ASCII are in no name: clients ask for its A-label, such as \"xn--bcher-kva\" (RFC 5891)",
            ),
            Self::Syntax(what) => write!(f, "not a regular expression: {what}"),
            Self::TooLarge => {
                write!(f, "this regular expression is too complex (more than {REGEX_OCTETS_MAX} octets)")
            }
            Self::Unsupported(what) => write!(f, "this regular expression cannot be used: {what}"),
        }
    }
}

impl std::error::Error for PatternError {}

/// A regular expression, ready to be tried: a table that needs no memory of its own while it is.
pub(crate) type Automat = dense::DFA<Vec<u32>>;

/// Octets of what is required that are compared at once.
pub(crate) const GLANCE_OCTETS: usize = 8;

/// A pattern that is tried when its piece was found.
#[derive(Clone, Copy)]
pub(crate) struct Trial {
    /// The octets of what is required that are compared first, and which of the eight count: not
    /// the dots, because they are compared with a name in wire form.
    pub(crate) glance: u64,
    pub(crate) glance_mask: u64,
    /// The same of the last eight octets of the name.
    pub(crate) tail: u64,
    pub(crate) tail_mask: u64,
    /// What must be in the name, between its dots: these octets of [`Patterns::texts`].
    pub(crate) at: u32,
    pub(crate) len: u16,
    /// How many octets of them come before the piece, and before those that are compared first.
    pub(crate) piece_at: u16,
    pub(crate) glance_at: u16,
    /// What must be in the name besides, wherever: these octets of [`Patterns::texts`], and their
    /// pairs as [`pairs`] marks them.
    pub(crate) also_len: u16,
    pub(crate) also_at: u32,
    pub(crate) also_pairs: u64,
    /// One more than the place in [`Patterns::regexes`] of what the text must fit besides; zero if
    /// that is all.
    pub(crate) regex: u32,
    /// The number of the rule.
    pub(crate) origin: u32,
}

const _: () = assert!(size_of::<Trial>() <= 64);

/// What a name must contain for a pattern to be tried.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Piece {
    /// Its octets, the first one lowest.
    pub(crate) octets: u64,
    /// Their number; with [`Piece::BEGINS`] if a label begins with them.
    pub(crate) kind: u8,
}

impl Piece {
    /// A label begins with the octets.
    const BEGINS: u8 = 0x10;

    /// Returns a piece from anywhere, of at most [`PIECE_OCTETS`].
    pub(crate) fn anywhere(octets: &[u8]) -> Self {
        Self { octets: glance_of(octets), kind: octets.len() as u8 }
    }

    /// Returns a piece that a label begins with, of at most [`BEGIN_OCTETS`].
    pub(crate) fn begin(octets: &[u8]) -> Self {
        Self { octets: glance_of(octets), kind: Self::BEGINS | octets.len() as u8 }
    }

    /// Returns the piece of `len` octets that a label with this word begins with.
    #[inline]
    const fn begin_of(word: u64, len: u32) -> Self {
        Self { octets: word & u64::MAX >> (64 - 8 * len), kind: Self::BEGINS | len as u8 }
    }

    /// Returns the number of octets if a label begins with them.
    pub(crate) const fn begin_len(self) -> Option<u8> {
        if self.kind & Self::BEGINS == 0 { None } else { Some(self.kind & !Self::BEGINS) }
    }

    /// Returns the number of octets.
    pub(crate) const fn len(self) -> usize {
        (self.kind & !Self::BEGINS) as usize
    }

    /// Spreads it over 32 bits.
    #[inline]
    pub(crate) const fn mixed(self) -> u32 {
        // The high bits of the product depend on every bit of the piece.
        let salted = self.octets ^ (self.kind as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
        ((salted ^ salted >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }
}

/// Kinds of last labels, as [`Sought::top`] tells them apart.
pub(crate) const TOPS: usize = 64;
/// Names with any last label.
pub(crate) const ANY_TOP: u8 = TOPS as u8;

/// The patterns that have a piece in common, and the last label.
#[derive(Clone, Copy, Default)]
pub(crate) struct Group {
    /// Of kind zero for a place that is free.
    pub(crate) piece: Piece,
    /// Which of the 64 kinds of last labels names have that one of them fits; [`ANY_TOP`] if that
    /// is not known.
    pub(crate) top: u8,
    /// The first trial, and the one after the last.
    pub(crate) first: u32,
    pub(crate) end: u32,
}

/// Keywords and regular expressions.
pub(crate) struct Patterns {
    /// One bit for each number that [`Piece::mixed`] gives, by its highest bits. A power of two.
    pub(crate) bits: Box<[u64]>,
    /// For names with each kind of last label: bit `n`: some piece from anywhere has `n` octets.
    pub(crate) lengths: [u16; TOPS],
    /// The same of pieces that a label begins with.
    pub(crate) begin_lengths: [u16; TOPS],
    /// Found by the highest bits of [`Piece::mixed`]; a power of two, at most half full.
    pub(crate) groups: Box<[Group]>,
    pub(crate) trials: Box<[Trial]>,
    pub(crate) texts: Box<[u8]>,
    pub(crate) regexes: Box<[Automat]>,
    /// Regular expressions that are tried on every name, because nothing must be in a name for them
    /// to fit.
    pub(crate) always: Box<[Always]>,
    pub(crate) len: usize,
}

/// Regular expressions in one automaton, tried on every name.
pub(crate) struct Always {
    pub(crate) automat: Automat,
    /// No text shorter than this fits any of them.
    pub(crate) octets_min: usize,
    /// The number of the rule of each.
    pub(crate) origins: Box<[u32]>,
}

/// Labels of which a word says which may begin with a piece.
const LABELS_MARKED: u32 = u64::BITS / BEGIN_LENGTHS;
/// Lengths that pieces at the begin of labels have: 2, 4, 6, 8.
const BEGIN_LENGTHS: u32 = BEGIN_OCTETS as u32 / 2;

/// Returns the place of the bit for a label and an even length.
#[inline]
const fn mark_of(label: u32, len: u32) -> u32 {
    label.wrapping_mul(BEGIN_LENGTHS).wrapping_add(len / 2).wrapping_sub(1)
}

/// Scales a number to `0..range`, by its high bits.
#[inline]
pub(crate) const fn part_of(mixed: u32, range: usize) -> usize {
    ((mixed as u64 * range as u64) >> 32) as usize
}

impl Patterns {
    /// Returns how many patterns there are.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns how many octets they take.
    pub(crate) fn octets(&self) -> usize {
        let always =
            self.always.iter().map(|always| always.automat.memory_usage() + size_of_val(&*always.origins));
        size_of_val(&*self.bits)
            + size_of_val(&*self.groups)
            + size_of_val(&*self.trials)
            + size_of_val(&*self.texts)
            + self.regexes.iter().map(Automat::memory_usage).sum::<usize>()
            + always.sum::<usize>()
    }

    /// Returns whether some pattern fits the name.
    #[inline]
    pub(crate) fn fits(&self, sought: &Sought<'_>) -> bool {
        let begins = self.begins(sought);
        (begins != 0 && self.search_begins(sought, begins, |_| true))
            || (lengths_of(&self.lengths, sought) != 0 && self.search(sought, |_| true))
            || (!self.always.is_empty() && self.search_always(sought.text(), |_| true))
    }

    /// Calls `f` with the number of the rule of each pattern that fits, until it returns true;
    /// returns whether it did.
    pub(crate) fn each(&self, sought: &Sought<'_>, mut f: impl FnMut(u32) -> bool) -> bool {
        let begins = self.begins(sought);
        (begins != 0 && self.search_begins(sought, begins, &mut f))
            || (lengths_of(&self.lengths, sought) != 0 && self.search(sought, &mut f))
            || (!self.always.is_empty() && self.search_always(sought.text(), &mut f))
    }

    /// Returns which labels may begin with a piece: four bits for each of the first labels, one for
    /// each length of a piece. Zero: none does.
    #[inline]
    fn begins(&self, sought: &Sought<'_>) -> u64 {
        // What lies behind so many labels is looked at one by one.
        let mut found = u64::from(sought.depth() > LABELS_MARKED) << 63;
        let all = lengths_of(&self.begin_lengths, sought);
        if all != 0 {
            let mut label = 0;
            sought.each_begin(|_, word| {
                let mut lengths = all;
                // Ends: each step takes one length out.
                while lengths != 0 {
                    let len = lengths.trailing_zeros();
                    lengths &= lengths - 1;
                    found |= self.bit(Piece::begin_of(word, len)).wrapping_shl(mark_of(label, len));
                }
                label += 1;
            });
        }
        found
    }

    /// Tries what the begins of labels lead to that were found.
    fn search_begins(&self, sought: &Sought<'_>, found: u64, mut f: impl FnMut(u32) -> bool) -> bool {
        let all = lengths_of(&self.begin_lengths, sought);
        let mut ended = false;
        let mut label = 0;
        sought.each_begin(|at, word| {
            let mut lengths = if ended { 0 } else { all };
            // Ends: each step takes one length out.
            while lengths != 0 && !ended {
                let len = lengths.trailing_zeros();
                lengths &= lengths - 1;
                let is_found = label >= LABELS_MARKED || found >> (mark_of(label, len) & 63) & 1 != 0;
                ended = is_found && self.search_at(sought, at, Piece::begin_of(word, len), &mut f);
            }
            label += 1;
        });
        ended
    }

    /// Tries what the pieces in any place of the name lead to.
    #[inline]
    fn search(&self, sought: &Sought<'_>, f: impl FnMut(u32) -> bool) -> bool {
        match sought.name().len() {
            0..=USUAL_OCTETS_MAX => self.search_words::<{ USUAL_OCTETS_MAX / 8 }>(sought, f),
            _ => self.search_words::<{ NAME_OCTETS_MAX.div_ceil(8) }>(sought, f),
        }
    }

    /// Tries what the pieces in any place of a name of at most so many words of eight octets lead
    /// to.
    fn search_words<const WORDS: usize>(&self, sought: &Sought<'_>, mut f: impl FnMut(u32) -> bool) -> bool {
        let wire = sought.name().as_bytes();
        // What makes dots of the lengths of labels.
        let mut dots = [0; WORDS];
        let mut at = 0;
        // Ends: each step goes over one label.
        while let Some(&len) = wire.get(at) {
            if let Some(word) = dots.get_mut(at / 8) {
                *word |= u64::from(len ^ b'.') << (at % 8 * 8);
            }
            at += 1 + usize::from(len);
        }
        let word = |number: usize| word_at(wire, number * 8) ^ dots.get(number).copied().unwrap_or(0);
        let mut next = word(0);
        let all = lengths_of(&self.lengths, sought);
        for number in 0..wire.len().div_ceil(8) {
            let word_here = next;
            next = word(number + 1);
            let octets = u128::from(word_here) | u128::from(next) << 64;
            let mut lengths = all;
            // Ends: each step takes one length out.
            while lengths != 0 {
                let len = lengths.trailing_zeros();
                lengths &= lengths - 1;
                let mut places = match len {
                    4 => self.places::<4>(octets),
                    3 => self.places::<3>(octets),
                    2 => self.places::<2>(octets),
                    _ => self.places::<1>(octets),
                };
                // Ends: each step takes one place out.
                while places != 0 {
                    let place = places.trailing_zeros();
                    places &= places - 1;
                    let piece = Piece {
                        octets: (octets >> (8 * place)) as u64 & u64::MAX >> (64 - 8 * len),
                        kind: len as u8,
                    };
                    if self.search_at(sought, number * 8 + place as usize, piece, &mut f) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Returns one bit for each of the first eight places at which some piece of `LEN` octets may
    /// begin.
    #[inline]
    fn places<const LEN: u8>(&self, octets: u128) -> u32 {
        let mut places = 0;
        for place in 0..8 {
            let octets = (octets >> (8 * place)) as u64 & u64::MAX >> (64 - 8 * LEN);
            places |= (self.bit(Piece { octets, kind: LEN }) as u32) << place;
        }
        places
    }

    /// Returns one if some piece may be this one, else zero.
    #[inline]
    fn bit(&self, piece: Piece) -> u64 {
        let bit = part_of(piece.mixed(), self.bits.len() * 64);
        self.bits.get(bit >> 6).copied().unwrap_or(0) >> (bit & 63) & 1
    }

    /// Tries what the piece in one place leads to.
    #[inline(never)]
    fn search_at(
        &self,
        sought: &Sought<'_>,
        at: usize,
        piece: Piece,
        f: &mut impl FnMut(u32) -> bool,
    ) -> bool {
        let wire = sought.name().as_bytes();
        let tail = last_of(wire);
        let mut marked = None;
        [sought.top().trailing_zeros() as u8, ANY_TOP].iter().any(|&top| {
            let group = self.group(piece, top);
            let trials = group
                .and_then(|group| self.trials.get(group.first as usize..group.end as usize))
                .unwrap_or(&[]);
            trials.iter().any(|trial| {
                let Some(start) = at.checked_sub(usize::from(trial.piece_at)) else { return false };
                let glance = word_at(wire, start + usize::from(trial.glance_at));
                glance & trial.glance_mask == trial.glance
                    && tail & trial.tail_mask == trial.tail
                    && *marked.get_or_insert_with(|| pairs(sought.text().between_dots())) & trial.also_pairs
                        == trial.also_pairs
                    && self.succeeds(trial, sought.text(), start)
                    && f(trial.origin)
            })
        })
    }

    fn search_always(&self, text: &Text, mut f: impl FnMut(u32) -> bool) -> bool {
        let text = text.bare();
        self.always.iter().filter(|always| always.octets_min <= text.len()).any(|always| {
            match &*always.origins {
                [origin] => fits(&always.automat, text) && f(*origin),
                origins => fitting(&always.automat, text, |pattern| {
                    origins.get(pattern).is_some_and(|&origin| f(origin))
                }),
            }
        })
    }

    fn group(&self, piece: Piece, top: u8) -> Option<&Group> {
        let mask = self.groups.len().checked_sub(1)?;
        let mut at = part_of(place_of(piece, top), self.groups.len());
        for _ in 0..self.groups.len() {
            let group = self.groups.get(at)?;
            if group.piece.kind == 0 {
                return None;
            }
            if group.piece == piece && group.top == top {
                return Some(group);
            }
            at = (at + 1) & mask;
        }
        None
    }

    fn succeeds(&self, trial: &Trial, text: &Text, start: usize) -> bool {
        let name = text.between_dots();
        let text_at = |at: u32, len: u16| self.texts.get(at as usize..)?.get(..usize::from(len));
        let required = text_at(trial.at, trial.len);
        let (Some(required), Some(part)) = (required, name.get(start..)) else { return false };
        let Some(also) = text_at(trial.also_at, trial.also_len) else { return false };
        part.starts_with(required)
            && contains(name, also)
            && match trial.regex.checked_sub(1) {
                Some(regex) => {
                    self.regexes.get(regex as usize).is_some_and(|automat| fits(automat, text.bare()))
                }
                // The dots around the name are none that a keyword could be about.
                None => start > 0 && start + required.len() < name.len(),
            }
    }
}

/// Returns the last eight octets as a number, the last one highest, with zeros for those that are
/// not there.
#[inline]
pub(crate) fn last_of(part: &[u8]) -> u64 {
    match part.last_chunk() {
        Some(part) => u64::from_le_bytes(*part),
        None => {
            part.iter().rev().fold(0, |number, &octet| number << 8 | u64::from(octet))
                << (64 - 8 * part.len().max(1))
        }
    }
}

/// Returns the first eight octets as a number, with zeros for those that are not there.
#[inline]
pub(crate) fn glance_of(part: &[u8]) -> u64 {
    match part.first_chunk() {
        Some(part) => u64::from_le_bytes(*part),
        None => part.iter().rev().fold(0, |number, &octet| number << 8 | u64::from(octet)),
    }
}

/// Returns the lengths that pieces have which concern a name.
#[inline]
fn lengths_of(lengths: &[u16; TOPS], sought: &Sought<'_>) -> u16 {
    lengths.get(sought.top().trailing_zeros() as usize).copied().unwrap_or(0)
}

/// Spreads a piece and a kind of last label over 32 bits.
#[inline]
pub(crate) const fn place_of(piece: Piece, top: u8) -> u32 {
    piece.mixed().wrapping_add((top as u32).wrapping_mul(0x9e37_79b9))
}

/// Returns one bit for each pair of octets in a row: a text has those of whatever it contains.
pub(crate) fn pairs(text: &[u8]) -> u64 {
    text.iter().zip(text.iter().skip(1)).fold(0, |bits, (&first, &second)| {
        let mixed = (u32::from(first) << 8 | u32::from(second)).wrapping_mul(0x9e37_79b1);
        bits | 1 << (mixed >> 26)
    })
}

/// Returns whether a text contains another.
fn contains(text: &[u8], part: &[u8]) -> bool {
    let Some(&first) = part.first() else { return true };
    let mut places = text.iter().enumerate().filter(|(_, octet)| **octet == first);
    places.any(|(at, _)| text.get(at..).is_some_and(|rest| rest.starts_with(part)))
}

/// Returns whether an automaton of one regular expression fits.
fn fits(automat: &Automat, text: &[u8]) -> bool {
    // No octet makes such an automaton give up, so an error cannot come back.
    matches!(automat.try_search_fwd(&Input::new(text).earliest(true)), Ok(Some(_)))
}

/// Calls `f` with each regular expression of an automaton of several that fits, until it returns
/// true.
fn fitting(automat: &Automat, text: &[u8], mut f: impl FnMut(usize) -> bool) -> bool {
    let Ok(mut state) = automat.start_state_forward(&Input::new(text).anchored(Anchored::No)) else {
        return false;
    };
    let mut seen: u64 = 0;
    let mut tell = |state: StateID| {
        automat.is_match_state(state)
            && (0..automat.match_len(state)).any(|at| {
                let pattern = automat.match_pattern(state, at).as_usize();
                // A regular expression goes on fitting as the text goes on; it is told of once.
                let is_new = seen >> (pattern & 63) & 1 == 0;
                seen |= 1 << (pattern & 63);
                is_new && f(pattern)
            })
    };
    for &octet in text {
        state = automat.next_state(state, octet);
        if tell(state) {
            return true;
        }
        if automat.is_dead_state(state) || automat.is_quit_state(state) {
            return false;
        }
    }
    tell(automat.next_eoi_state(state))
}
