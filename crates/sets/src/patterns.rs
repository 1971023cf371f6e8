//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Keywords and regular expressions. Each has a piece of up to four octets that every name it fits must contain; one
//! pass over the name looks each piece of the name up in a table of bits, and only what is found there is tried. The
//! look-ups of one pass do not depend on each other, so that a name that fits nothing costs about a nanosecond for each
//! octet, however many patterns there are.

use regex_automata::dfa::{Automaton, dense};
use regex_automata::util::primitives::StateID;
use regex_automata::{Anchored, Input};

/// Octets of the longest piece.
pub(crate) const PIECE_OCTETS: usize = 4;
/// Octets that the automaton of one regular expression may take; larger ones are refused.
pub const REGEX_OCTETS_MAX: usize = 1 << 20;

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// A keyword without a single octet is in every name.
    Empty,
    /// Not a regular expression: what is wrong with it.
    Syntax(String),
    /// Its automaton takes more than [`REGEX_OCTETS_MAX`] octets.
    TooLarge,
    /// It asks for something that names cannot be tested for, such as a border between Unicode words.
    Unsupported(String),
}

impl std::fmt::Display for PatternError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("an empty keyword is in every name"),
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

/// A pattern that is tried when its piece was found.
#[derive(Clone, Copy)]
pub(crate) struct Trial {
    /// What must be in the text around the piece: these octets of [`Patterns::texts`].
    pub(crate) at: u32,
    pub(crate) len: u16,
    /// How many octets of them come before the piece.
    pub(crate) piece_at: u16,
    /// One more than the place in [`Patterns::regexes`] of what the text must fit besides; zero if that is all.
    pub(crate) regex: u32,
    /// The number of the rule.
    pub(crate) origin: u32,
}

/// The patterns that have a piece in common.
#[derive(Clone, Copy, Default)]
pub(crate) struct Group {
    pub(crate) piece: u32,
    /// How many octets the piece has; zero for a place that is free.
    pub(crate) len: u8,
    /// The first trial, and the one after the last.
    pub(crate) first: u32,
    pub(crate) end: u32,
}

/// Keywords and regular expressions.
pub(crate) struct Patterns {
    /// One bit for each number that [`mixed`] gives a piece, by its highest bits. A power of two.
    pub(crate) bits: Box<[u64]>,
    /// Bit `n`: some piece has `n` octets.
    pub(crate) lengths: u8,
    /// Found by the highest bits of [`mixed`]; a power of two, at most half full.
    pub(crate) groups: Box<[Group]>,
    pub(crate) trials: Box<[Trial]>,
    pub(crate) texts: Box<[u8]>,
    pub(crate) regexes: Box<[Automat]>,
    /// Regular expressions that are tried on every name, because nothing must be in a name for them to fit.
    pub(crate) always: Box<[Always]>,
    pub(crate) len: usize,
}

/// Regular expressions in one automaton, tried on every name.
pub(crate) struct Always {
    pub(crate) automat: Automat,
    /// The number of the rule of each.
    pub(crate) origins: Box<[u32]>,
}

/// Spreads a piece of `len` octets over 32 bits.
#[inline]
pub(crate) const fn mixed(piece: u32, len: usize) -> u32 {
    // The high bits of the product depend on every bit of the piece.
    (piece ^ (len as u32).wrapping_mul(0x0100_0001)).wrapping_mul(0x9e37_79b1)
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

    /// Returns whether some pattern fits the text.
    #[inline]
    pub(crate) fn fits(&self, text: &[u8]) -> bool {
        (self.has_piece(text) && self.search(text, |_| true)) || self.search_always(text, |_| true)
    }

    /// Calls `f` with the number of the rule of each pattern that fits, until it returns true; returns whether it did.
    pub(crate) fn each(&self, text: &[u8], mut f: impl FnMut(u32) -> bool) -> bool {
        self.search(text, &mut f) || self.search_always(text, &mut f)
    }

    /// Returns whether some part of the text may be the piece of a pattern.
    #[inline]
    fn has_piece(&self, text: &[u8]) -> bool {
        let mut found = 0;
        if self.lengths & 1 << PIECE_OCTETS != 0 {
            for part in text.windows(PIECE_OCTETS) {
                if let Some(&part) = part.first_chunk() {
                    found |= self.bit(u32::from_le_bytes(part), PIECE_OCTETS);
                }
            }
        }
        found != 0 || (self.lengths & !(1 << PIECE_OCTETS) != 0 && self.has_short_piece(text))
    }

    fn has_short_piece(&self, text: &[u8]) -> bool {
        (1..PIECE_OCTETS)
            .filter(|len| self.lengths >> len & 1 != 0)
            .any(|len| text.windows(len).any(|part| self.bit(number(part), len) != 0))
    }

    #[inline]
    fn bit(&self, piece: u32, len: usize) -> u64 {
        let bit = part_of(mixed(piece, len), self.bits.len() * 64);
        self.bits.get(bit >> 6).copied().unwrap_or(0) & 1 << (bit & 63)
    }

    /// Tries what the pieces of the text lead to.
    fn search(&self, text: &[u8], mut f: impl FnMut(u32) -> bool) -> bool {
        for len in (1..=PIECE_OCTETS).filter(|len| self.lengths >> len & 1 != 0) {
            for (at, part) in text.windows(len).enumerate() {
                let piece = number(part);
                if self.bit(piece, len) == 0 {
                    continue;
                }
                let Some(group) = self.group(piece, len) else { continue };
                let trials = self.trials.get(group.first as usize..group.end as usize).unwrap_or(&[]);
                for trial in trials {
                    if self.succeeds(trial, text, at) && f(trial.origin) {
                        return true;
                    }
                }
            }
        }
        false
    }

    fn search_always(&self, text: &[u8], mut f: impl FnMut(u32) -> bool) -> bool {
        self.always.iter().any(|always| match &*always.origins {
            [origin] => fits(&always.automat, text) && f(*origin),
            origins => fitting(&always.automat, text, |pattern| {
                origins.get(pattern).is_some_and(|&origin| f(origin))
            }),
        })
    }

    fn group(&self, piece: u32, len: usize) -> Option<&Group> {
        let mask = self.groups.len().checked_sub(1)?;
        let mut at = part_of(mixed(piece, len), self.groups.len());
        for _ in 0..self.groups.len() {
            let group = self.groups.get(at)?;
            if group.len == 0 {
                return None;
            }
            if group.piece == piece && usize::from(group.len) == len {
                return Some(group);
            }
            at = (at + 1) & mask;
        }
        None
    }

    fn succeeds(&self, trial: &Trial, text: &[u8], piece_at: usize) -> bool {
        let required =
            self.texts.get(trial.at as usize..).and_then(|from| from.get(..usize::from(trial.len)));
        let part = piece_at.checked_sub(usize::from(trial.piece_at)).and_then(|start| text.get(start..));
        let (Some(required), Some(part)) = (required, part) else { return false };
        part.starts_with(required)
            && match trial.regex.checked_sub(1) {
                Some(regex) => self.regexes.get(regex as usize).is_some_and(|automat| fits(automat, text)),
                None => true,
            }
    }
}

/// Returns up to four octets as a number.
#[inline]
pub(crate) fn number(part: &[u8]) -> u32 {
    part.iter().rev().fold(0, |number, &octet| number << 8 | u32::from(octet))
}

/// Returns whether an automaton of one regular expression fits.
fn fits(automat: &Automat, text: &[u8]) -> bool {
    // No octet makes such an automaton give up, so an error cannot come back.
    matches!(automat.try_search_fwd(&Input::new(text).earliest(true)), Ok(Some(_)))
}

/// Calls `f` with each regular expression of an automaton of several that fits, until it returns true.
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
