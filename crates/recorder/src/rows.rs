//! The rows of one client in a block, with the numbers of their names.

use crate::database::BLOCK_BITS;

/// Bits of an octet that are of the number.
const BITS: u32 = 7;

/// Rows in ascending order, each as how far it is from the one before and as the number of its
/// name, the last bits of each first.
#[derive(Default)]
pub(super) struct Rows {
    octets: Vec<u8>,
    last: i64,
}

impl Rows {
    /// Adds a row behind the others.
    pub(super) fn add(&mut self, id: i64, name: i64) {
        let at = id & ((1 << BLOCK_BITS) - 1);
        for number in [at - self.last, name] {
            let mut rest = number.unsigned_abs();
            while rest >> BITS != 0 {
                self.octets.push(rest as u8 | 1 << BITS);
                rest >>= BITS;
            }
            self.octets.push(rest as u8);
        }
        self.last = at;
    }

    /// Returns them as they stand in the database.
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }
}

/// Reads what stands in the database: the row in its block, and the number of its name.
pub(super) fn read(octets: &[u8]) -> impl Iterator<Item = (i64, i64)> {
    let mut octets = octets.iter();
    let mut last = 0;
    std::iter::from_fn(move || {
        let mut number = || -> Option<i64> {
            let mut number = 0_i64;
            for shift in (0..i64::BITS).step_by(BITS as usize) {
                let octet = *octets.next()?;
                number |= i64::from(octet & 0x7f) << shift;
                if octet >> BITS == 0 {
                    return Some(number);
                }
            }
            None
        };
        let (step, name) = (number()?, number()?);
        last = step.checked_add(last)?;
        Some((last, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_added_and_what_is_cut_off_ends() {
        let all = [(0, 1), (1, 127), (200, 128), (16_383, i64::MAX)];
        let mut rows = Rows::default();
        all.iter().for_each(|(at, name)| rows.add(5 << BLOCK_BITS | at, *name));
        assert_eq!(read(rows.octets()).collect::<Vec<_>>(), all);
        for len in 0..rows.octets().len() {
            let cut: Vec<_> = read(&rows.octets()[..len]).collect();
            assert!(cut.len() < all.len() && all.starts_with(&cut), "{len}");
        }
        assert_eq!(read(&[0xff; 40]).count(), 0);
    }
}
