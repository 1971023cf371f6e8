//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Prefixes that the operator bans while the server runs.

use std::fmt;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use sets::{Added, DynamicAddresses};
use wire::{HashKey, Prefix};

/// Prefixes that may be banned so at a time.
pub const LIVE_BANS_MAX: usize = 100_000;
/// Lengths of prefixes of a family that may be banned at a time: a query reads two lines of memory
/// for each.
pub const BANNED_LENGTHS_MAX: usize = 32;

/// Why a prefix cannot be banned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// [`BANNED_LENGTHS_MAX`] other lengths of its family are banned.
    Lengths,
    /// The lines of the table that it would be in are full.
    Lines,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lengths => write!(
                f,
                "prefixes of {BANNED_LENGTHS_MAX} other lengths are banned, which is the most that may be at a time"
            ),
            Self::Lines => f.write_str("there is no room where it would be kept"),
        }
    }
}

/// Who is banned by the operator. All configurations share it; who keeps it knows how long.
///
/// There is no table before the first ban. Then it takes 1.6 MiB, in lines of 64 octets: one line
/// or two are read for each length of prefix that is banned, of the client's family.
pub struct LiveBans {
    /// All that a query reads while nobody is banned.
    has_some: AtomicBool,
    key: HashKey,
    table: OnceLock<DynamicAddresses>,
}

impl LiveBans {
    /// Returns an empty table; `key` is what addresses are hashed with.
    pub const fn new(key: HashKey) -> Self {
        Self { has_some: AtomicBool::new(false), key, table: OnceLock::new() }
    }

    /// Returns whether nobody is banned.
    #[inline(always)]
    pub fn are_none(&self) -> bool {
        !self.has_some.load(Ordering::Relaxed)
    }

    /// Returns whether an address is in a prefix that is banned.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.table.get().is_some_and(|table| table.contains(address))
    }

    /// Returns whether a prefix is banned or can be: [`LiveBans::add`] then finds room, as long as
    /// no other is added before.
    ///
    /// # Errors
    ///
    /// Why it cannot be.
    #[cold]
    pub fn check_room(&self, prefix: Prefix) -> Result<(), NoRoom> {
        let Some(table) = self.table.get() else { return Ok(()) };
        match table.lengths_with(prefix.address(), prefix.bits()) {
            (false, lengths) if lengths >= BANNED_LENGTHS_MAX => Err(NoRoom::Lengths),
            _ if !table.fits(prefix.address(), prefix.bits()) => Err(NoRoom::Lines),
            _ => Ok(()),
        }
    }

    /// Bans a prefix, at most [`LIVE_BANS_MAX`] of them; in effect for whatever is asked
    /// afterwards. One thread adds or removes at a time.
    ///
    /// # Errors
    ///
    /// There is no room for it: it is not banned.
    #[cold]
    pub fn add(&self, prefix: Prefix) -> Result<(), NoRoom> {
        self.check_room(prefix)?;
        let table = self.table.get_or_init(|| DynamicAddresses::new(&self.key, LIVE_BANS_MAX, None));
        if table.add(prefix.address(), prefix.bits(), 0, None) == Added::NoRoom {
            return Err(NoRoom::Lines);
        }
        self.has_some.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Bans a prefix no longer.
    #[cold]
    pub fn remove(&self, prefix: Prefix) {
        if let Some(table) = self.table.get() {
            table.remove(prefix.address(), prefix.bits());
            self.has_some.store(!table.is_empty(), Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for LiveBans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LiveBans({} prefixes)", self.table.get().map_or(0, DynamicAddresses::len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_banned_until_it_is_removed() {
        let bans = LiveBans::new(HashKey::new([3, 4]));
        let prefix = |address: &str, bits| Prefix::new(address.parse().expect("an address"), bits);
        let holds = |address: &str| bans.contains(address.parse().expect("an address"));
        assert!(bans.are_none() && !holds("192.0.2.1"));
        bans.remove(prefix("192.0.2.0", 24));
        for (address, bits) in [("192.0.2.0", 24), ("192.0.2.7", 32), ("2001:db8::", 32)] {
            assert_eq!(bans.add(prefix(address, bits)), Ok(()));
        }
        assert!(!bans.are_none() && holds("192.0.2.1") && holds("::ffff:192.0.2.1") && holds("2001:db8::1"));
        bans.remove(prefix("192.0.2.0", 24));
        assert!(holds("192.0.2.7") && !holds("192.0.2.1"));
        bans.remove(prefix("192.0.2.7", 32));
        bans.remove(prefix("2001:db8::", 32));
        assert!(bans.are_none() && !holds("192.0.2.7"));
    }

    #[test]
    fn few_lengths_are_banned_at_a_time() {
        let bans = LiveBans::new(HashKey::new([3, 4]));
        let prefix = |bits| Prefix::new("2001:db8::".parse().expect("an address"), bits);
        for bits in 64..96 {
            assert_eq!(bans.add(prefix(bits)), Ok(()), "{bits}");
        }
        assert_eq!(bans.add(prefix(128)), Err(NoRoom::Lengths));
        assert!(bans.add(prefix(64)).is_ok() && bans.check_room(prefix(95)).is_ok());
        assert!(bans.add(Prefix::new("192.0.2.0".parse().expect("an address"), 24)).is_ok());
        bans.remove(prefix(70));
        assert_eq!(bans.add(prefix(128)), Ok(()));
    }
}
