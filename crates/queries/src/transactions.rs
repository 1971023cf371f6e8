//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Which ID on one socket or connection belongs to which query.

use hashbrown::HashTable;
use rand::CryptoRng;

/// Queries outstanding on one socket; more go to another socket.
///
/// Far below 65,536, so that a random ID is free at the first or second draw and
/// a forged reply with a random ID rarely hits any query at all.
pub const TRANSACTIONS_MAX: usize = 4096;
/// Draws before we say that a table is full; at the bound above, 64 misses in a row have
/// probability 16⁻⁶⁴.
const DRAWS_MAX: usize = 64;

/// One query on the wire. 16 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The ID it was sent with.
    pub id: u16,
    /// Which of the request's attempts it is.
    pub attempt: u8,
    /// The request.
    pub request: u32,
    /// A hash of the question, to find whom a reply with a wrong ID is aimed at.
    pub question: u32,
}

/// The outstanding queries of one socket or connection.
#[derive(Default)]
pub struct Transactions(HashTable<Transaction>);

impl Transactions {
    /// Returns how many are outstanding.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Registers a query under a random ID that is not in use here, and returns the ID; `None` when
    /// full.
    pub fn begin(
        &mut self,
        rng: &mut impl CryptoRng,
        request: u32,
        attempt: u8,
        question: u32,
    ) -> Option<u16> {
        if self.0.len() >= TRANSACTIONS_MAX {
            return None;
        }
        for _ in 0..DRAWS_MAX {
            let id = rng.next_u32() as u16;
            if self.find(id).is_none() {
                let transaction = Transaction { id, attempt, request, question };
                self.0.insert_unique(spread(id), transaction, |entry| spread(entry.id));
                return Some(id);
            }
        }
        None
    }

    /// Returns the query with this ID.
    pub fn find(&self, id: u16) -> Option<&Transaction> {
        self.0.find(spread(id), |entry| entry.id == id)
    }

    /// Forgets the query with this ID; returns what was registered.
    pub fn end(&mut self, id: u16) -> Option<Transaction> {
        let entry = self.0.find_entry(spread(id), |entry| entry.id == id).ok()?;
        Some(entry.remove().0)
    }

    /// Walks all outstanding queries.
    pub fn iter(&self) -> impl Iterator<Item = &Transaction> {
        self.0.iter()
    }
}

/// IDs are random already; the table wants their entropy in the upper bits, too.
fn spread(id: u16) -> u64 {
    u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use std::collections::HashMap;

    #[test]
    fn a_full_table_takes_no_more() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut table = Transactions::default();
        for fetch in 0..TRANSACTIONS_MAX as u32 {
            assert!(table.begin(&mut rng, fetch, 0, 0).is_some());
        }
        assert_eq!(table.begin(&mut rng, 0, 0, 0), None);
    }

    proptest! {
        /// IDs in use are distinct, and each leads to what was registered under it.
        #[test]
        fn the_table_equals_a_map(seed: u64, steps in prop::collection::vec((any::<bool>(), any::<u16>()), 1..500)) {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut table = Transactions::default();
            let mut model: HashMap<u16, u32> = HashMap::new();
            for (count, (begin, pick)) in steps.into_iter().enumerate() {
                if begin {
                    let id = table.begin(&mut rng, count as u32, 0, 0).expect("not full");
                    prop_assert!(model.insert(id, count as u32).is_none());
                } else {
                    let id = model.keys().copied().nth(usize::from(pick) % model.len().max(1)).unwrap_or(pick);
                    table.end(id);
                    model.remove(&id);
                }
                prop_assert_eq!(table.len(), model.len());
                for (&id, &fetch) in &model {
                    prop_assert_eq!(table.find(id).map(|entry| entry.request), Some(fetch));
                }
            }
        }
    }
}
