//! Sets that are changed while the server runs: bounded, expiring, and read without a lock.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wire::{HashKey, Name, NameBuf};

use crate::changes::Changes;
use crate::fingerprint::{Fingerprint, FingerprintKey};
use crate::live::LiveTable;
use crate::sought::{DEPTHS_KEPT, Sought};

/// When something leaves that stays for ever.
const NEVER: u64 = u64::MAX;

/// What became of something that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It was not there.
    New,
    /// It was there, and stays longer now if it does not stay for ever.
    Renewed,
    /// It was not there, and what would have left first made room for it.
    MadeRoom,
    /// It was not there, and is not: its lines of the table are full.
    NoRoom,
}

/// What is kept, and until when. Whoever changes it holds the lock; readers of the table do not
/// know of it.
struct Ledger<K> {
    entries: HashMap<K, (u64, u64)>,
    /// When each leaves, and in which order they were added.
    order: BTreeSet<(u64, u64, K)>,
    next: u64,
    is_changed: bool,
}

/// What both kinds have in common.
struct Kept<K> {
    key: FingerprintKey,
    limit: usize,
    /// Seconds that each stays; for ever if there is none.
    ttl: Option<u32>,
    table: LiveTable,
    ledger: Mutex<Ledger<K>>,
}

impl<K: Clone + Eq + Ord + std::hash::Hash> Kept<K> {
    fn new(key: &HashKey, limit: usize, ttl: Option<u32>) -> Self {
        let ledger = Ledger { entries: HashMap::new(), order: BTreeSet::new(), next: 0, is_changed: false };
        Self {
            key: FingerprintKey::new(key),
            limit: limit.max(1),
            ttl,
            table: LiveTable::new(limit.max(1)),
            ledger: Mutex::new(ledger),
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger<K>> {
        // Nothing that could panic runs while it is held.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps something until `leaves`, or as long as the set says.
    fn add(
        &self,
        item: K,
        (now, leaves): (u64, Option<u64>),
        print: impl Fn(&FingerprintKey, &K) -> (Fingerprint, u32),
    ) -> Added {
        let leaves = leaves.unwrap_or_else(|| self.ttl.map_or(NEVER, |ttl| now.saturating_add(ttl.into())));
        let mut ledger = self.ledger();
        ledger.is_changed = true;
        ledger.next += 1;
        let number = ledger.next;
        if let Some(&(old, old_number)) = ledger.entries.get(&item) {
            ledger.order.remove(&(old, old_number, item.clone()));
            ledger.order.insert((leaves, number, item.clone()));
            ledger.entries.insert(item, (leaves, number));
            return Added::Renewed;
        }
        let mut added = Added::New;
        if ledger.entries.len() >= self.limit
            && let Some((_, _, first)) = ledger.order.pop_first()
        {
            ledger.entries.remove(&first);
            let (fingerprint, length) = print(&self.key, &first);
            self.table.remove(fingerprint, length);
            added = Added::MadeRoom;
        }
        let (fingerprint, length) = print(&self.key, &item);
        if !self.table.insert(fingerprint, length) {
            return Added::NoRoom;
        }
        ledger.order.insert((leaves, number, item.clone()));
        ledger.entries.insert(item, (leaves, number));
        added
    }

    fn remove(&self, item: &K, print: impl Fn(&FingerprintKey, &K) -> (Fingerprint, u32)) -> bool {
        let mut ledger = self.ledger();
        let Some((leaves, number)) = ledger.entries.remove(item) else { return false };
        ledger.order.remove(&(leaves, number, item.clone()));
        ledger.is_changed = true;
        let (fingerprint, length) = print(&self.key, item);
        self.table.remove(fingerprint, length);
        true
    }

    /// Forgets what has left by now; returns how many that were.
    fn sweep(&self, now: u64, print: impl Fn(&FingerprintKey, &K) -> (Fingerprint, u32)) -> usize {
        let mut ledger = self.ledger();
        let mut count = 0;
        while ledger.order.first().is_some_and(|&(leaves, _, _)| leaves <= now) {
            if let Some((_, _, item)) = ledger.order.pop_first() {
                ledger.entries.remove(&item);
                let (fingerprint, length) = print(&self.key, &item);
                self.table.remove(fingerprint, length);
                count += 1;
            }
        }
        ledger.is_changed |= count > 0;
        count
    }

    fn list(&self) -> Vec<(K, Option<u64>)> {
        let ledger = self.ledger();
        let items = ledger
            .order
            .iter()
            .map(|(leaves, _, item)| (item.clone(), (*leaves != NEVER).then_some(*leaves)));
        items.collect()
    }

    fn len(&self) -> usize {
        self.ledger().entries.len()
    }

    fn take_changed(&self) -> bool {
        std::mem::take(&mut self.ledger().is_changed)
    }

    fn octets(&self) -> usize {
        // What the ledger takes besides is not read by queries, and only roughly known.
        self.table.octets() + self.len() * 2 * size_of::<(u64, u64, K)>()
    }
}

/// Names that are added and removed while the server runs, each alone or with those below it.
pub struct DynamicNames(Kept<Box<[u8]>>);

/// Addresses and prefixes that are added and removed while the server runs.
pub struct DynamicAddresses(Kept<(IpAddr, u8)>);

/// The length of everything that stands for a name alone; no name has so many labels.
pub(crate) const ALONE: u32 = 191;

/// Returns what a name is kept as: whether what lies below it counts, and the name in lower case.
fn item(name: Name<'_>, is_alone: bool) -> Box<[u8]> {
    [&[u8::from(is_alone)], name.to_folded().as_bytes()].concat().into()
}

fn print_name(key: &FingerprintKey, item: &[u8]) -> (Fingerprint, u32) {
    let Some((&is_alone, name)) = item.split_first() else { return (key.root(), 0) };
    let Ok((name, _)) = Name::parse(name) else { return (key.root(), 0) };
    let labels: Vec<&[u8]> = name.labels().collect();
    let fingerprint = labels.iter().rev().fold(key.root(), |parent, label| key.below(parent, label));
    if is_alone != 0 {
        return (fingerprint.turned(), ALONE);
    }
    (fingerprint, labels.len() as u32)
}

fn print_prefix(key: &FingerprintKey, (address, length): (IpAddr, u8)) -> Fingerprint {
    let of_length = key.below(key.root(), &[length, u8::from(address.is_ipv6())]);
    match address {
        IpAddr::V4(v4) => key.below(of_length, &v4.octets()),
        IpAddr::V6(v6) => key.below(of_length, &v6.octets()),
    }
}

/// Returns the place of a prefix length among those of both families: 0 to 32, and 33 to 161.
const fn length_of(address: IpAddr, length: u8) -> u32 {
    match address {
        IpAddr::V4(_) => length as u32,
        IpAddr::V6(_) => 33 + length as u32,
    }
}

/// Returns an address without the bits beyond `length`, in the family that it means.
fn masked(address: IpAddr, length: u8) -> (IpAddr, u8) {
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() && length >= 96 => {
            let v4 = v6.to_ipv4_mapped().map_or(address, IpAddr::V4);
            masked(v4, length - 96)
        }
        IpAddr::V4(v4) => {
            let length = length.min(32);
            let rest = u32::MAX.checked_shr(length.into()).unwrap_or(0);
            (IpAddr::V4((v4.to_bits() & !rest).into()), length)
        }
        IpAddr::V6(v6) => {
            let length = length.min(128);
            let rest = u128::MAX.checked_shr(length.into()).unwrap_or(0);
            (IpAddr::V6((v6.to_bits() & !rest).into()), length)
        }
    }
}

impl DynamicNames {
    /// Returns an empty set with room for `limit` names, each of which stays for `ttl` seconds;
    /// `key` is what names are hashed with everywhere in this process.
    pub fn new(key: &HashKey, limit: usize, ttl: Option<u32>) -> Self {
        Self(Kept::new(key, limit, ttl))
    }

    /// Adds a name with those below it until the second `leaves`, or as long as the set says.
    pub fn add(&self, name: Name<'_>, now: u64, leaves: Option<u64>) -> Added {
        self.0.add(item(name, false), (now, leaves), |key, item| print_name(key, item))
    }

    /// Like [`DynamicNames::add`], without those below it.
    pub fn add_alone(&self, name: Name<'_>, now: u64, leaves: Option<u64>) -> Added {
        self.0.add(item(name, true), (now, leaves), |key, item| print_name(key, item))
    }

    /// Removes a name, in both forms; returns whether it was there.
    pub fn remove(&self, name: Name<'_>) -> bool {
        let remove = |is_alone| self.0.remove(&item(name, is_alone), |key, item| print_name(key, item));
        remove(false) | remove(true)
    }

    /// Forgets what has left by now; returns how many that were. Called about once a second.
    pub fn sweep(&self, now: u64) -> usize {
        self.0.sweep(now, |key, name| print_name(key, name))
    }

    /// Returns the names, whether each stands for itself alone, and when it leaves; those that
    /// leave first before the others.
    pub fn list(&self) -> Vec<(NameBuf, bool, Option<u64>)> {
        let names = self.0.list().into_iter();
        names
            .filter_map(|(item, leaves)| {
                let (&is_alone, name) = item.split_first()?;
                Some((Name::parse(name).ok()?.0.to_buf(), is_alone != 0, leaves))
            })
            .collect()
    }

    /// Returns whether the set holds the name or one above it.
    #[inline]
    pub fn contains(&self, sought: &Sought<'_>) -> bool {
        let Kept { key, table, .. } = &self.0;
        if table.is_empty() {
            return false;
        }
        let is_kept =
            |depth: u32, fingerprint: Fingerprint| table.may_hold(depth) && table.contains(fingerprint);
        let kept = sought.depth().min(DEPTHS_KEPT as u32);
        let mut found = (0..=kept).any(|depth| is_kept(depth, sought.suffix(key, depth)));
        let mut whole = sought.suffix(key, kept);
        if !found && sought.is_long() {
            sought.long_suffixes(key, |depth, print| {
                found |= is_kept(depth, print);
                whole = print;
            });
        }
        found || (table.may_hold(ALONE) && table.contains(whole.turned()))
    }

    /// Returns how many names there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.table.is_empty()
    }

    /// Returns whether something changed since this was last asked.
    pub fn take_changed(&self) -> bool {
        self.0.take_changed()
    }

    /// Returns the number of changes.
    pub(crate) const fn changes(&self) -> &Changes {
        self.0.table.changes()
    }

    /// Returns how many octets of memory the set takes, roughly.
    pub fn octets(&self) -> usize {
        self.0.octets()
    }
}

impl std::fmt::Debug for DynamicAddresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DynamicAddresses({} prefixes)", self.len())
    }
}

impl DynamicAddresses {
    /// Returns an empty set with room for `limit` addresses or prefixes, each of which stays for
    /// `ttl` seconds.
    pub fn new(key: &HashKey, limit: usize, ttl: Option<u32>) -> Self {
        Self(Kept::new(key, limit, ttl))
    }

    /// Adds the addresses that begin with the first `length` bits of `address`, until the second
    /// `leaves` or as long as the set says.
    pub fn add(&self, address: IpAddr, length: u8, now: u64, leaves: Option<u64>) -> Added {
        let item = masked(address, length);
        self.0.add(item, (now, leaves), |key, item| (print_prefix(key, *item), length_of(item.0, item.1)))
    }

    /// Removes a prefix; returns whether it was there.
    pub fn remove(&self, address: IpAddr, length: u8) -> bool {
        let item = masked(address, length);
        self.0.remove(&item, |key, item| (print_prefix(key, *item), length_of(item.0, item.1)))
    }

    /// Forgets what has left by now; returns how many that were. Called about once a second.
    pub fn sweep(&self, now: u64) -> usize {
        self.0.sweep(now, |key, item| (print_prefix(key, *item), length_of(item.0, item.1)))
    }

    /// Returns the prefixes, those that leave first before the others, and when they leave.
    pub fn list(&self) -> Vec<((IpAddr, u8), Option<u64>)> {
        self.0.list()
    }

    /// Returns whether the set holds the address.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        let Kept { key, table, .. } = &self.0;
        if table.is_empty() {
            return false;
        }
        let address = address.to_canonical();
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let (first, last) = (length_of(address, 0), length_of(address, bits));
        table
            .lengths(first, last)
            .any(|length| table.contains(print_prefix(key, masked(address, (length - first) as u8))))
    }

    /// Returns whether the set holds a prefix, or has room for it where it would be kept.
    pub fn fits(&self, address: IpAddr, length: u8) -> bool {
        let item = masked(address, length);
        let Kept { key, table, .. } = &self.0;
        self.0.ledger().entries.contains_key(&item) || table.has_room(print_prefix(key, item))
    }

    /// Returns whether a prefix of the length is held, and how many lengths of its family are: each
    /// costs a look-up of an address two lines of memory.
    pub fn lengths_with(&self, address: IpAddr, length: u8) -> (bool, usize) {
        let (address, length) = masked(address, length);
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let table = &self.0.table;
        let lengths = table.lengths(length_of(address, 0), length_of(address, bits));
        (table.may_hold(length_of(address, length)), lengths.count())
    }

    /// Returns how many prefixes there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.table.is_empty()
    }

    /// Returns whether something changed since this was last asked.
    pub fn take_changed(&self) -> bool {
        self.0.take_changed()
    }

    /// Returns the number of changes.
    pub(crate) const fn changes(&self) -> &Changes {
        self.0.table.changes()
    }

    /// Returns how many octets of memory the set takes, roughly.
    pub fn octets(&self) -> usize {
        self.0.octets()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Folded;

    const KEY: HashKey = HashKey::new([7, 8]);

    fn name(text: &str) -> NameBuf {
        NameBuf::from_text(text).expect("a name")
    }

    fn holds(set: &DynamicNames, text: &str) -> bool {
        let name = name(text);
        let mut folded = Folded::root();
        let hash = KEY.fold(name.as_name(), &mut folded);
        set.contains(&Sought::new(&folded, hash))
    }

    #[test]
    fn names_come_and_go() {
        let set = DynamicNames::new(&KEY, 10, Some(60));
        assert!(!holds(&set, "example.org"));
        assert_eq!(set.add(name("Example.org").as_name(), 100, None), Added::New);
        assert_eq!(set.add(name("for.ever").as_name(), 100, Some(NEVER)), Added::New);
        assert!(holds(&set, "example.org") && holds(&set, "a.b.example.org") && !holds(&set, "org"));
        assert_eq!(set.sweep(159), 0);
        assert_eq!(set.add(name("example.org").as_name(), 150, None), Added::Renewed);
        assert_eq!(set.sweep(160), 0);
        assert_eq!(set.sweep(210), 1);
        assert!(!holds(&set, "example.org") && holds(&set, "x.for.ever"));
        assert_eq!(
            set.list().iter().map(|(name, _, at)| (name.to_string(), *at)).collect::<Vec<_>>(),
            [("for.ever.".to_owned(), None)]
        );
        assert!(set.remove(name("for.ever").as_name()) && !set.remove(name("for.ever").as_name()));
        assert!(set.is_empty() && set.take_changed() && !set.take_changed());
    }

    #[test]
    fn a_name_can_stand_for_itself_alone() {
        let set = DynamicNames::new(&KEY, 10, None);
        set.add_alone(name("example.org").as_name(), 1, None);
        assert!(holds(&set, "example.org") && !holds(&set, "a.example.org") && !holds(&set, "org"));
        set.add(name("example.org").as_name(), 1, None);
        assert!(holds(&set, "a.example.org"));
        assert!(set.remove(name("example.org").as_name()));
        assert!(!holds(&set, "example.org") && set.is_empty());
    }

    #[test]
    fn what_leaves_first_makes_room() {
        let set = DynamicNames::new(&KEY, 3, None);
        for (at, leaves) in [(0, 50), (1, 20), (2, 40)] {
            set.add(name(&format!("n{at}.example")).as_name(), 1, Some(leaves));
        }
        assert_eq!(set.add(name("new.example").as_name(), 1, Some(60)), Added::MadeRoom);
        assert_eq!(set.len(), 3);
        assert!(!holds(&set, "n1.example") && holds(&set, "n0.example") && holds(&set, "new.example"));
    }

    #[test]
    fn a_full_set_holds_all_that_it_says() {
        let set = DynamicNames::new(&KEY, 50_000, None);
        for at in 0..60_000 {
            set.add(name(&format!("n{at}.example")).as_name(), 1, None);
        }
        assert_eq!(set.len(), 50_000);
        for at in 0..60_000 {
            // All stay for ever, so that those that came first made room.
            assert_eq!(holds(&set, &format!("x.n{at}.example")), at >= 10_000, "{at}");
        }
    }

    #[test]
    fn prefixes_come_and_go() {
        let set = DynamicAddresses::new(&KEY, 10, None);
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        set.add(address("192.0.2.77"), 24, 1, None);
        set.add(address("2001:db8::1"), 128, 1, None);
        set.add(address("::ffff:198.51.100.1"), 128, 1, None);
        for text in ["192.0.2.1", "2001:db8::1", "198.51.100.1", "::ffff:192.0.2.9"] {
            assert!(set.contains(address(text)), "{text}");
        }
        for text in ["192.0.3.1", "2001:db8::2", "198.51.100.2", "::"] {
            assert!(!set.contains(address(text)), "{text}");
        }
        assert!(set.remove(address("192.0.2.0"), 24));
        assert!(!set.contains(address("192.0.2.1")) && set.contains(address("2001:db8::1")));
    }
}
