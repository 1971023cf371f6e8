//! Zones that the server signs: which version of them is served.

use std::collections::BTreeMap;
use std::sync::Arc;

use plan::signing::{ParentServers, SigningPolicy, ToSign};
use wire::{Name, NameBuf};
use zone::{Change, Zone, Zones};

/// A zone that is to be signed, as the configuration has it.
pub(crate) struct Wanted {
    pub(crate) apex: NameBuf,
    pub(crate) policy: Arc<SigningPolicy>,
    /// Whether it changes while the server runs, by transfers or updates.
    pub(crate) changes: bool,
}

/// Zones that the server signs, and what is served of them.
#[derive(Clone, Default)]
pub struct SigningPlans {
    /// What is to be signed, in the order of the configuration.
    pub zones: Vec<ToSign>,
    /// The servers that are sent the DS of zones, by the name of their policy.
    pub parents: BTreeMap<String, ParentServers>,
    /// The versions that were signed last, by apex in lower case.
    signed: BTreeMap<Vec<u8>, Arc<Zone>>,
    /// The zones as they are written, and as they are served.
    served: Option<(Arc<Zones>, Arc<Zones>)>,
}

fn key_of(apex: Name<'_>) -> Vec<u8> {
    apex.to_folded().as_bytes().to_vec()
}

impl SigningPlans {
    /// Takes a version that was signed; it is served by what is compiled from now on. Returns whether it is another one than
    /// before.
    pub fn take(&mut self, zone: Arc<Zone>) -> bool {
        let key = key_of(zone.apex());
        if self.signed.get(&key).is_some_and(|known| Arc::ptr_eq(known, &zone)) {
            return false;
        }
        self.signed.insert(key, zone);
        self.served = None;
        true
    }

    /// Returns the version of a zone that was signed last, as far as is known here.
    pub(crate) fn last(&self, apex: Name<'_>) -> Option<&Arc<Zone>> {
        self.signed.get(&key_of(apex))
    }
}

/// Returns the zones as they are served: in place of what is to be signed, what was signed last. A zone that was not signed
/// yet is not served: who saw it unsigned would remember that.
pub(crate) fn compile(
    wanted: Vec<Wanted>,
    written: Option<&Arc<Zones>>,
    previous: Option<&SigningPlans>,
) -> (SigningPlans, Option<Arc<Zones>>) {
    let Some(written) = written else { return (SigningPlans::default(), None) };
    let mut zones = Vec::new();
    let mut signed = BTreeMap::new();
    let mut made = Vec::new();
    for Wanted { apex, policy, changes } in wanted {
        let source = written.get(apex.as_name()).filter(|_| !changes).map(Arc::clone);
        if changes || source.is_some() {
            zones.push(ToSign { apex, policy, source });
        }
        let known = previous.and_then(|previous| previous.last(apex.as_name()));
        made.push(match known.filter(|_| !changes) {
            Some(known) => Change::Serve(Arc::clone(known)),
            // One that changes is served by who keeps it.
            None => Change::Unload(apex),
        });
        if let Some(known) = known {
            signed.insert(key_of(apex.as_name()), Arc::clone(known));
        }
    }
    // What is the same is not made twice: the engine would take it for new.
    let before = previous.and_then(|previous| previous.served.as_ref());
    if let Some((known, before)) = before.filter(|(known, _)| Arc::ptr_eq(known, written)) {
        let is_same = previous.is_some_and(|previous| {
            previous.signed.len() == signed.len()
                && previous.zones.len() == zones.len()
                && previous
                    .zones
                    .iter()
                    .zip(&zones)
                    .all(|(a, b)| (a.apex, a.source.is_some()) == (b.apex, b.source.is_some()))
        });
        if is_same {
            let plans = SigningPlans {
                zones,
                signed,
                served: Some((Arc::clone(known), Arc::clone(before))),
                ..SigningPlans::default()
            };
            return (plans, Some(Arc::clone(before)));
        }
    }
    let served = if made.is_empty() { Arc::clone(written) } else { Arc::new(written.with_all(made)) };
    let plans = SigningPlans {
        zones,
        signed,
        served: Some((Arc::clone(written), Arc::clone(&served))),
        ..SigningPlans::default()
    };
    (plans, Some(served))
}
