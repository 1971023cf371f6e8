//! Log-ins, as the audit log has those that failed, and events all: one row for a prefix and a
//! minute, so that strangers cannot fill the disk.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Prefixes that have rows of their own in a minute; the others share one.
const PREFIXES_MAX: usize = 16;
/// Where these are from.
const OTHERS: &str = "other prefixes";

/// Rows that wait to be written.
const ROWS_MAX: usize = 64;

/// Log-ins of one kind that are not told of yet.
#[derive(Debug, Default)]
pub struct Failures {
    /// Minutes since 1970.
    minute: u64,
    /// Those of that minute.
    by_prefix: BTreeMap<IpAddr, u64>,
    others: u64,
    /// Of earlier minutes: where from, and how many.
    rows: Vec<(String, u64)>,
}

impl Failures {
    /// Notes one.
    pub fn note(&mut self, prefix: IpAddr, minute: u64) {
        if self.minute != minute {
            self.end_minute();
            self.minute = minute;
        }
        if self.by_prefix.len() < PREFIXES_MAX || self.by_prefix.contains_key(&prefix) {
            *self.by_prefix.entry(prefix).or_insert(0) += 1;
        } else {
            self.others += 1;
        }
    }

    fn end_minute(&mut self) {
        let length = |prefix: IpAddr| if prefix.is_ipv4() { 24 } else { 56 };
        for (prefix, count) in std::mem::take(&mut self.by_prefix) {
            match self.rows.len() < ROWS_MAX {
                true => self.rows.push((format!("{prefix}/{}", length(prefix)), count)),
                // Nobody has written rows for minutes.
                false => self.others += count,
            }
        }
        let others = std::mem::take(&mut self.others);
        match self.rows.last_mut().filter(|(from, _)| from == OTHERS) {
            Some((_, count)) => *count += others,
            None if others > 0 => self.rows.push((OTHERS.to_owned(), others)),
            None => {}
        }
    }

    /// Returns whether there are some of a minute that is over.
    pub fn are_due(&self, minute: u64) -> bool {
        !self.rows.is_empty() || (self.minute != minute && !self.by_prefix.is_empty())
    }

    /// Returns where they are from and how many, and forgets them.
    pub fn take(&mut self) -> Vec<(String, u64)> {
        self.end_minute();
        std::mem::take(&mut self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn strangers_make_few_rows_in_a_minute() {
        let mut failures = Failures::default();
        for number in 0..1_000_u32 {
            let prefix = Ipv4Addr::from_bits((192 << 24) + ((number % 100) << 8)).into();
            failures.note(prefix, 5);
        }
        assert!(!failures.are_due(5) && failures.are_due(6));
        let rows = failures.take();
        failures.note(Ipv4Addr::new(127, 0, 0, 0).into(), 5);
        failures.note(Ipv4Addr::new(127, 0, 0, 0).into(), 6);
        assert!(failures.are_due(6));
        assert_eq!(rows.len(), PREFIXES_MAX + 1);
        assert_eq!(rows[0], ("192.0.0.0/24".to_owned(), 10));
        assert_eq!(rows[PREFIXES_MAX], ("other prefixes".to_owned(), 840));
        assert_eq!(rows.iter().map(|(_, count)| count).sum::<u64>(), 1_000);
        assert_eq!(failures.take(), [(); 2].map(|()| ("127.0.0.0/24".to_owned(), 1)));
        assert!(failures.take().is_empty() && !failures.are_due(7));
        for minute in 0..100 {
            for prefix in 0..20_u32 {
                failures.note(Ipv4Addr::from_bits(prefix << 8).into(), minute);
            }
        }
        let rows = failures.take();
        assert!(rows.len() <= ROWS_MAX + 1, "{}", rows.len());
        assert_eq!(rows.iter().map(|(_, count)| count).sum::<u64>(), 2_000);
    }
}
