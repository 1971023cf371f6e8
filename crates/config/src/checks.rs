//! Health checks of record targets: what is watched, over reloads.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plan::checks::{Check, Watched};
use wire::{NameBuf, Rtype};

/// What an alternative is known by, from one configuration to the next: set, zone, owner, type and data.
type Known = (Option<String>, Vec<u8>, Vec<u8>, Rtype, Vec<Vec<u8>>);

/// What is watched, and how it stands, over reloads.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// All that is watched.
    pub watched: Vec<Arc<Watched>>,
    states: BTreeMap<Known, Arc<AtomicU64>>,
}

impl Checks {
    /// Has an alternative watched; returns where it stands which of its records do not work.
    pub(crate) fn watch(
        &mut self,
        before: &Self,
        (set, zone, name, rtype): (Option<&str>, NameBuf, NameBuf, Rtype),
        data: &[Vec<u8>],
        check: &Arc<Check>,
    ) -> Arc<AtomicU64> {
        let folded = |name: NameBuf| name.as_name().to_folded().as_bytes().to_vec();
        let key = (set.map(str::to_owned), folded(zone), folded(name), rtype, data.to_vec());
        let down = before.states.get(&key).map_or_else(Arc::default, Arc::clone);
        for (bit, data) in data.iter().enumerate() {
            let v4 = <[u8; 4]>::try_from(&**data).map(IpAddr::from);
            let address = v4.or_else(|_| <[u8; 16]>::try_from(&**data).map(IpAddr::from));
            let (Ok(address), Ok(bit)) = (address, u8::try_from(bit)) else { continue };
            let (check, down) = (check.of(name), Arc::clone(&down));
            self.watched.push(Arc::new(Watched { zone, name, rtype, address, check, down, bit }));
        }
        self.states.insert(key, Arc::clone(&down));
        down
    }
}
