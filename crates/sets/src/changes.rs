//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! How often a set was changed that is changed while the server runs: who remembers what a look-up
//! found looks here whether it still holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of changes of one set. It only grows.
#[derive(Clone, Debug, Default)]
pub struct Changes(Arc<AtomicU64>);

impl Changes {
    /// Counts a change that is done: who reads the new number sees the change.
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the number. Numbers of several sets that are read one after the other have one order
    /// for all threads.
    #[inline]
    pub fn number(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Returns whether both are the number of one set.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use wire::{HashKey, NameBuf};

    use super::*;
    use crate::{
        AddressSetBuilder, BlocklistBuilder, DynamicAddresses, DynamicNames, NameSet, NameSetBuilder,
        RulesOfName,
    };

    const KEY: HashKey = HashKey::new([1, 2]);

    /// Returns how often the sets behind a list were changed.
    fn number(each: impl FnOnce(&mut dyn FnMut(&Changes))) -> u64 {
        let mut sum = 0;
        each(&mut |changes| sum += changes.number());
        sum
    }

    fn name() -> NameBuf {
        let mut name = NameBuf::root();
        name.push_label(b"example").expect("short");
        name
    }

    fn set(build: impl FnOnce(&mut NameSetBuilder)) -> Arc<NameSet> {
        let mut set = NameSetBuilder::new(&KEY);
        build(&mut set);
        Arc::new(set.compile())
    }

    #[test]
    fn every_change_of_a_name_counts_wherever_the_set_is() {
        let live = Arc::new(DynamicNames::new(&KEY, 2, Some(10)));
        let inner = set(|set| set.live(Arc::clone(&live)));
        let included = set(|set| set.include(Arc::clone(&inner)));
        let excepted = set(|set| set.except(Arc::clone(&included)));
        let list = BlocklistBuilder::new(&KEY).compile(Arc::clone(&excepted), vec![], vec![]);
        let behind = |list| Arc::new(BlocklistBuilder::new(&KEY).compile(set(|_| {}), vec![list], vec![]));
        let list = behind(Arc::new(list));
        let except = BlocklistBuilder::new(&KEY).compile(set(|_| {}), vec![], vec![Arc::clone(&inner)]);
        let all = || {
            [
                number(|f| inner.each_changes(f)),
                number(|f| included.each_changes(f)),
                number(|f| excepted.each_changes(f)),
                number(|f| list.each_changes(f)),
                number(|f| except.each_changes(f)),
            ]
        };
        assert_eq!(all(), [0; 5]);
        let mut before = 0;
        let mut counts = |what| {
            let [now, others @ ..] = all();
            assert!(now > before && others == [now; 4], "{what}");
            before = now;
        };
        live.add(name().as_name(), 0, None);
        counts("added");
        live.remove(name().as_name());
        counts("removed");
        live.add_alone(name().as_name(), 0, None);
        counts("added alone");
        live.sweep(10);
        counts("expired");
    }

    #[test]
    fn every_change_of_an_own_list_and_of_an_address_counts() {
        let changing = Arc::new(NameSetBuilder::new(&KEY).compile_changing(10));
        let of_list = set(|set| set.changing(Arc::clone(&changing)));
        let now = || number(|f| of_list.each_changes(f));
        let with_below = RulesOfName { with_below: true, alone: false };
        assert!(changing.set(name().as_name(), with_below));
        let added = now();
        assert!(changing.set(name().as_name(), RulesOfName::default()));
        assert!(added > 0 && now() > added);

        let live = Arc::new(DynamicAddresses::new(&KEY, 10, None));
        let (mut with, mut without) = (AddressSetBuilder::new(), AddressSetBuilder::new());
        with.live(Arc::clone(&live));
        let with = with.compile();
        without.except(&with);
        let without = without.compile();
        live.add([192, 0, 2, 0].into(), 24, 0, None);
        assert_eq!([number(|f| with.each_changes(f)), number(|f| without.each_changes(f))], [1, 1]);
    }
}
