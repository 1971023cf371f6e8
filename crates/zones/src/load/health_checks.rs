//! Health checks of record targets: what is watched, and how it stands, from one version of the
//! plan to the next.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plan::checks::{Check, Watched};
use wire::{NameBuf, Rtype};

/// What an alternative is known by, from one plan to the next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    set: Option<String>,
    zone: Vec<u8>,
    name: Vec<u8>,
    rtype: u16,
    data: Vec<Vec<u8>>,
}

/// Where an alternative is.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) set: Option<&'a str>,
    pub(super) zone: NameBuf,
    pub(super) name: NameBuf,
    pub(super) rtype: Rtype,
}

/// What is watched, and how it stands.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// All that is watched.
    pub watched: Vec<Arc<Watched>>,
    states: BTreeMap<Identity, Arc<AtomicU64>>,
}

impl Checks {
    /// Has an alternative watched; returns where it stands which of its records do not work.
    pub(super) fn watch(
        &mut self,
        before: &Self,
        target: Target<'_>,
        data: &[Vec<u8>],
        check: &Arc<Check>,
    ) -> Arc<AtomicU64> {
        let Target { set, zone, name, rtype } = target;
        let folded = |name: NameBuf| name.as_name().to_folded().as_bytes().to_vec();
        let identity = Identity {
            set: set.map(str::to_owned),
            zone: folded(zone),
            name: folded(name),
            rtype: rtype.0,
            data: data.to_vec(),
        };
        let down = before.states.get(&identity).map_or_else(Arc::default, Arc::clone);
        for (bit, data) in data.iter().enumerate() {
            let v4 = <[u8; 4]>::try_from(&**data).map(IpAddr::from);
            let address = v4.or_else(|_| <[u8; 16]>::try_from(&**data).map(IpAddr::from));
            let (Ok(address), Ok(bit)) = (address, u8::try_from(bit)) else { continue };
            let (check, down) = (check.of(name), Arc::clone(&down));
            self.watched.push(Arc::new(Watched { zone, name, rtype, address, check, down, bit }));
        }
        self.states.insert(identity, Arc::clone(&down));
        down
    }
}
