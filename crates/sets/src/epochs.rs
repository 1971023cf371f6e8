//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Numbers for the states that policy and sets are in, one after the other: what was found out in
//! one of them is believed in no other.

/// What policy and sets are like: the generation of the snapshot and of the zones beside it, and
/// how often sets were changed since. Later states are greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    /// The generation of the snapshot and of the zones.
    pub generation: u64,
    /// How often sets were changed.
    pub changes: u64,
}

/// Gives each state a number.
#[derive(Debug, Default)]
pub struct Epochs {
    newest: State,
    number: u32,
}

impl Epochs {
    /// Returns the number of a state; zero for one that is over, and when there are no more.
    pub fn of(&mut self, state: State) -> u32 {
        if state > self.newest {
            self.newest = state;
            self.number = if self.number == NO_MORE { NO_MORE } else { self.number + 1 };
        }
        if state == self.newest && self.number != NO_MORE { self.number } else { 0 }
    }
}

/// When numbers have run out.
const NO_MORE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_a_number_and_what_is_over_has_none() {
        let state = |generation, changes| State { generation, changes };
        let mut epochs = Epochs::default();
        assert_eq!([epochs.of(state(1, 0)), epochs.of(state(1, 0))], [1, 1]);
        assert_eq!([epochs.of(state(1, 5)), epochs.of(state(1, 0)), epochs.of(state(1, 5))], [2, 0, 2]);
        assert_eq!([epochs.of(state(2, 3)), epochs.of(state(1, 9)), epochs.of(state(2, 3))], [3, 0, 3]);
    }

    #[test]
    fn numbers_are_not_used_twice() {
        let mut epochs = Epochs { number: NO_MORE - 2, ..Epochs::default() };
        let mut next = 0;
        let mut of_next = || {
            next += 1;
            epochs.of(State { generation: next, changes: 0 })
        };
        assert_eq!([of_next(), of_next(), of_next()], [NO_MORE - 1, 0, 0]);
    }
}
