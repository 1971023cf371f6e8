//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Prefixes that the operator bans while the server runs.

use std::fmt;
use std::net::IpAddr;
use std::sync::OnceLock;

use sets::DynamicAddresses;
use wire::{HashKey, Prefix};

/// Prefixes that may be banned so at a time.
pub const LIVE_BANS_MAX: usize = 100_000;

/// Who is banned by the operator. All configurations share it; who keeps it knows how long.
///
/// There is no table before the first ban. Then it takes 1.6 MiB, in lines of 64 octets: one line
/// or two are read for each length of prefix that is banned.
pub struct LiveBans {
    key: HashKey,
    table: OnceLock<DynamicAddresses>,
}

impl LiveBans {
    /// Returns an empty table; `key` is what addresses are hashed with.
    pub const fn new(key: HashKey) -> Self {
        Self { key, table: OnceLock::new() }
    }

    /// Returns whether nobody is banned.
    #[inline(always)]
    pub fn are_none(&self) -> bool {
        self.table.get().is_none_or(DynamicAddresses::is_empty)
    }

    /// Returns whether an address is in a prefix that is banned.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.table.get().is_some_and(|table| table.contains(address))
    }

    /// Bans a prefix, at most [`LIVE_BANS_MAX`] of them; in effect for whatever is asked
    /// afterwards.
    #[cold]
    pub fn add(&self, prefix: Prefix) {
        let table = self.table.get_or_init(|| DynamicAddresses::new(&self.key, LIVE_BANS_MAX, None));
        table.add(prefix.address(), prefix.bits(), 0, None);
    }

    /// Bans a prefix no longer.
    #[cold]
    pub fn remove(&self, prefix: Prefix) {
        if let Some(table) = self.table.get() {
            table.remove(prefix.address(), prefix.bits());
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
        bans.add(prefix("192.0.2.0", 24));
        bans.add(prefix("192.0.2.7", 32));
        bans.add(prefix("2001:db8::", 32));
        assert!(!bans.are_none() && holds("192.0.2.1") && holds("::ffff:192.0.2.1") && holds("2001:db8::1"));
        bans.remove(prefix("192.0.2.0", 24));
        assert!(holds("192.0.2.7") && !holds("192.0.2.1"));
        bans.remove(prefix("192.0.2.7", 32));
        bans.remove(prefix("2001:db8::", 32));
        assert!(bans.are_none() && !holds("192.0.2.7"));
    }
}
