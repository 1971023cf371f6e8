//! The root's key rolls over, as RFC 5011 has it.

use std::sync::PoisonError;

use dnssec::{ENTRY_POINT, REVOKED, ZONE_KEY};
use wire::Rtype;

use super::keys::ZoneKey;
use super::{World, Zone};

/// What the root's second key is drawn for; no zone has this number.
const SECOND: u64 = u64::MAX;

/// Which keys the root has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RootKeys {
    /// The first, which signs all.
    #[default]
    First,
    /// Both; the first signs all.
    Introduced,
    /// Both, and the first revokes itself; the second signs all.
    Revoked,
    /// The second, which signs all.
    Second,
}

impl World {
    /// Has the root's keys be these from now on.
    pub fn roll_root(&self, keys: RootKeys) {
        *self.root_keys.lock().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    fn root_keys(&self) -> RootKeys {
        *self.root_keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn second_key(&self) -> ZoneKey {
        self.draw_key(Zone::Root, SECOND)
    }

    fn revoked_key(&self) -> ZoneKey {
        self.key(Zone::Root).with_flags(ZONE_KEY | ENTRY_POINT | REVOKED)
    }

    /// Returns the data of a zone's DNSKEY records.
    pub(super) fn dnskeys(&self, zone: Zone) -> Vec<Vec<u8>> {
        if zone != Zone::Root {
            return vec![self.dnskey(zone)];
        }
        match self.root_keys() {
            RootKeys::First => vec![self.dnskey(zone)],
            RootKeys::Introduced => vec![self.dnskey(zone), self.second_key().dnskey],
            RootKeys::Revoked => vec![self.revoked_key().dnskey, self.second_key().dnskey],
            RootKeys::Second => vec![self.second_key().dnskey],
        }
    }

    /// Returns the keys that sign a zone's records of a type.
    pub(super) fn signers(&self, zone: Zone, rtype: Rtype) -> Vec<ZoneKey> {
        match (zone, self.root_keys()) {
            (Zone::Root, RootKeys::Revoked) if rtype == Rtype::DNSKEY => {
                vec![self.revoked_key(), self.second_key()]
            }
            (Zone::Root, RootKeys::Revoked | RootKeys::Second) => vec![self.second_key()],
            _ => vec![self.key(zone)],
        }
    }
}
