//! Builds shortlists, once per configuration.

use super::{Kind, RULES_MAX, Rows, Screen, Shortlist, flags};

impl Shortlist {
    /// Returns a shortlist of `rules` rules that has rows of bits, a bit for each rule; the first
    /// row is number 2.
    ///
    /// `None` if there are more than [`RULES_MAX`].
    pub fn new(rules: usize, screens: Vec<Screen>, rows: &[Box<[u64]>]) -> Option<Self> {
        let words = rules.div_ceil(u64::BITS as usize);
        if rules == 0 || rules > RULES_MAX || rows.iter().any(|row| row.len() != words) {
            return None;
        }
        let mut every = vec![0_u64; words];
        for rule in 0..rules {
            if let Some(word) = every.get_mut(rule / 64) {
                *word |= 1 << (rule % 64);
            }
        }
        let mut left_out = vec![0_u64; words];
        for row in rows {
            for ((out, word), all) in left_out.iter_mut().zip(row).zip(&every) {
                *out |= all & !word;
            }
        }
        let bits = [&*every, &*left_out].into_iter().chain(rows.iter().map(|row| &**row)).flatten();
        let watched = |kind: Kind| {
            screens.iter().find(|screen| screen.kind == kind).map_or(0, |screen| match &screen.rows {
                Rows::Bits { mask, .. } => *mask,
                _ => 0,
            })
        };
        Some(Self {
            starts: Box::default(),
            words,
            bits: bits.copied().collect(),
            marks: watched(Kind::Marks),
            minds_answers: watched(Kind::Flags) & flags::ANSWER != 0,
            screens: screens.into_boxed_slice(),
        })
    }

    /// Says where the rules begin, and where the last one ends.
    pub fn set_starts(&mut self, starts: Vec<u16>) {
        self.starts = starts.into_boxed_slice();
    }
}
