//! Records that wait to be written, and an even sample of them when there are too many.
//!
//! One record stands for [`Sample::one_of`] queries, a power of two. When the records take more
//! room than there is, one of each two neighbours goes, chosen at random, and whatever comes later
//! is thinned likewise: the early records and the late ones of a burst are kept with the same
//! chance, and counts can be scaled by the number that is written beside each row. Neighbours are
//! chosen from at random because clients ask in patterns (A, AAAA, A, AAAA): every second record
//! would be every A.

use std::mem;

use events::EventView;

/// The most queries that one record stands for.
const ONE_OF_MAX: u32 = 1 << 20;

/// Records, one behind the other, and how many queries each stands for.
#[derive(Debug)]
pub(super) struct Sample {
    words: Vec<u64>,
    records: u64,
    one_of: u32,
    /// Of the group of `one_of` records that is being offered: how many were, and which of them is
    /// kept.
    offered: u32,
    chosen: u32,
    chance: u64,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            words: Vec::new(),
            records: 0,
            one_of: 1,
            offered: 0,
            chosen: 0,
            chance: 0x9e37_79b9_7f4a_7c15,
        }
    }
}

impl Sample {
    /// Returns how many records there are.
    pub(super) const fn records(&self) -> u64 {
        self.records
    }

    /// Returns how many queries each record stands for.
    pub(super) const fn one_of(&self) -> u32 {
        self.one_of
    }

    /// Returns how much room they take.
    pub(super) fn octets(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    /// Returns the words of all records.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Adds `records` records, as many of them as the rate allows, and makes room for them:
    /// `octets_max` is never exceeded. Returns how many records went.
    pub(super) fn add(&mut self, words: &[u64], records: u64, octets_max: usize) -> u64 {
        let before = self.records;
        if self.one_of == 1 && self.octets() + size_of_val(words) <= octets_max {
            self.words.extend_from_slice(words);
            self.records += records;
            return 0;
        }
        let mut rest = words;
        let mut offered = 0;
        while let Some((_, after)) = EventView::split(rest) {
            let record = rest.get(..rest.len() - after.len()).unwrap_or(&[]);
            rest = after;
            offered += 1;
            self.offer(record, octets_max);
        }
        (before + offered).saturating_sub(self.records)
    }

    /// Adds those of another sample, which is empty then; returns how many records went.
    pub(super) fn absorb(&mut self, other: &mut Self, octets_max: usize) -> u64 {
        let before = self.records + other.records;
        while self.one_of < other.one_of {
            self.thin();
        }
        while other.one_of < self.one_of || (other.records > 0 && self.octets() + other.octets() > octets_max)
        {
            if self.one_of == other.one_of {
                self.thin();
            }
            other.thin();
        }
        self.words.append(&mut other.words);
        self.records += mem::take(&mut other.records);
        other.one_of = 1;
        before - self.records
    }

    /// Offers one record.
    fn offer(&mut self, record: &[u64], octets_max: usize) {
        if self.offered == 0 {
            self.chosen = self.random() & (self.one_of - 1);
        }
        let is_chosen = self.offered == self.chosen;
        self.offered = (self.offered + 1) % self.one_of;
        if !is_chosen {
            return;
        }
        while self.octets() + size_of_val(record) > octets_max && !self.words.is_empty() {
            if self.one_of >= ONE_OF_MAX {
                return;
            }
            self.thin();
            if self.random() & 1 == 0 {
                // It is one of two neighbours, too.
                return;
            }
        }
        if self.octets() + size_of_val(record) <= octets_max {
            self.words.extend_from_slice(record);
            self.records += 1;
        }
    }

    /// Leaves out one of each two neighbours.
    fn thin(&mut self) {
        let (mut from, mut to, mut kept, mut index) = (0, 0, 0, 0_u32);
        let mut leaves_first = false;
        while let Some((_, after)) = self.words.get(from..).and_then(EventView::split) {
            let end = self.words.len() - after.len();
            if index.is_multiple_of(2) {
                leaves_first = self.random() & 1 == 0;
            }
            if index.is_multiple_of(2) != leaves_first {
                self.words.copy_within(from..end, to);
                to += end - from;
                kept += 1;
            }
            from = end;
            index += 1;
        }
        self.words.truncate(to);
        self.records = kept;
        self.one_of *= 2;
        // The group that was begun is a half of a larger one.
        self.offered = 0;
    }

    /// Takes the records out, to be written. The next ones are thinned as much if there were many
    /// of these, and half as much if not.
    pub(super) fn take(&mut self, written: Vec<u64>, octets_max: usize) -> Self {
        // The writer is called when they take half of the room: one that keeps up takes them before
        // they take much more.
        let is_crowded = self.octets() > octets_max / 4 * 3;
        let one_of = if is_crowded { self.one_of } else { (self.one_of / 2).max(1) };
        let mut words = written;
        words.clear();
        let chance = u64::from(self.random()) << 32 | u64::from(self.random()) | 1;
        mem::replace(self, Self { words, records: 0, one_of, offered: 0, chosen: 0, chance })
    }

    /// Returns the memory of the records, to be used again.
    pub(super) fn into_words(self) -> Vec<u64> {
        self.words
    }

    /// A number that nobody has to be unable to guess (xorshift).
    const fn random(&mut self) -> u32 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of `len` words, of which the second is a number.
    fn records(numbers: std::ops::Range<u64>, len: u64) -> Vec<u64> {
        numbers
            .flat_map(|number| (0..len).map(move |at| [len, number].get(at as usize).copied().unwrap_or(0)))
            .collect()
    }

    fn numbers(sample: &Sample) -> Vec<u64> {
        let mut rest = sample.words();
        std::iter::from_fn(|| {
            let (_, after) = EventView::split(rest)?;
            let number = rest[1];
            rest = after;
            Some(number)
        })
        .collect()
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let mut sample = Sample::default();
        assert_eq!(sample.add(&records(0..100, 10), 100, 8000), 0);
        assert_eq!((sample.records(), sample.one_of(), sample.octets()), (100, 1, 8000));
        assert_eq!(numbers(&sample), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn of_a_burst_the_early_and_the_late_are_kept_alike() {
        for turn in [1, 7, 100, 100_000] {
            let mut sample = Sample::default();
            let mut went = 0;
            for from in (0..100_000).step_by(turn) {
                let numbers = from..(from + turn as u64).min(100_000);
                let count = numbers.end - numbers.start;
                went += sample.add(&records(numbers, 4), count, 32 * 1000);
                assert!(sample.octets() <= 32 * 1000);
            }
            let kept = numbers(&sample);
            assert_eq!((kept.len() as u64, went), (sample.records(), 100_000 - sample.records()));
            assert!(kept.is_sorted(), "in their order");
            // So many queries they stand for, and in each tenth of the burst as many as in the
            // others.
            let one_of = u64::from(sample.one_of());
            assert!((128..=256).contains(&one_of) && kept.len() >= 390, "{one_of} {}", kept.len());
            assert!((kept.len() as u64 * one_of).abs_diff(100_000) < 5000, "{}", kept.len());
            for tenth in 0..10 {
                let here = kept.iter().filter(|&&number| number / 10_000 == tenth).count() as u64;
                assert!((here * one_of).abs_diff(10_000) < 2500, "{here} of {} in {tenth}", kept.len());
            }
        }
    }

    #[test]
    fn clients_that_ask_in_a_pattern_are_not_halved_by_it() {
        let mut sample = Sample::default();
        sample.add(&records(0..100_000, 4), 100_000, 32 * 1000);
        let kept = numbers(&sample);
        let even = kept.iter().filter(|&&number| number % 2 == 0).count();
        assert!((kept.len() * 2 / 5..kept.len() * 3 / 5).contains(&even), "{even} of {}", kept.len());
    }

    #[test]
    fn the_rate_falls_when_there_is_room_again() {
        let mut sample = Sample::default();
        sample.add(&records(0..9000, 4), 9000, 32 * 1000);
        assert_eq!(sample.one_of(), 16);
        let crowded = sample.take(Vec::new(), crowded_below(&sample));
        assert_eq!((crowded.one_of(), sample.one_of(), sample.records()), (16, 16, 0));
        let mut rates = Vec::new();
        for _ in 0..5 {
            sample.add(&records(0..160, 4), 160, 32 * 1000);
            rates.push(u64::from(sample.one_of()) * sample.records());
            drop(sample.take(Vec::new(), 32 * 1000));
        }
        assert_eq!((rates, sample.one_of()), (vec![160; 5], 1), "each stands for as many as went");
    }

    /// A bound that these are too many for.
    fn crowded_below(sample: &Sample) -> usize {
        sample.octets()
    }

    #[test]
    fn two_samples_of_different_rates_become_one() {
        let (mut one, mut other) = (Sample::default(), Sample::default());
        one.add(&records(0..1000, 4), 1000, 64 * 1000);
        let went = other.add(&records(1000..9000, 4), 8000, 32 * 1000);
        assert_eq!((other.one_of(), other.records(), went), (8, 1000, 7000));
        let went = one.absorb(&mut other, 64 * 1000);
        assert_eq!((one.one_of(), one.records(), went), (8, 1125, 875));
        assert_eq!((other.records(), other.octets(), other.one_of()), (0, 0, 1));
        let mut third = Sample::default();
        third.add(&records(0..1000, 4), 1000, 64 * 1000);
        let went = third.absorb(&mut one, 20 * 1000);
        assert_eq!((third.records() + went, one.records()), (2125, 0));
        assert!(third.octets() <= 20 * 1000);
    }
}
