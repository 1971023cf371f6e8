//! Zones that the server signs: which version of them is served.

use std::collections::BTreeMap;
use std::sync::Arc;

use plan::signing::{SigningPolicy, ToSign};
use wire::{Name, NameBuf};
use zone::{Change, Zone, Zones};

/// A zone that is to be signed, as the plan has it.
pub(super) struct Wanted {
    pub(super) apex: NameBuf,
    pub(super) policy: Arc<SigningPolicy>,
    /// Whether it changes while the server runs, by transfers or updates.
    pub(super) changes: bool,
}

/// Zones that the server signs, and what is served of them.
#[derive(Clone, Default)]
pub(super) struct SignedZones {
    /// What is to be signed, in the order of the plan.
    zones: Vec<ToSign>,
    /// The versions that were signed last, by apex in lower case.
    last: BTreeMap<Vec<u8>, Arc<Zone>>,
    /// The zones as they are written.
    written: Option<Arc<Zones>>,
    /// The zones as they are served; none if those that are written have to be looked at again.
    served: Option<Arc<Zones>>,
}

fn key_of(apex: Name<'_>) -> Vec<u8> {
    apex.to_folded().as_bytes().to_vec()
}

impl SignedZones {
    /// Takes a version that was signed; it is served by what is compiled from now on. Returns
    /// whether it is another one than before.
    pub(super) fn take(&mut self, zone: Arc<Zone>) -> bool {
        let key = key_of(zone.apex());
        if self.last.get(&key).is_some_and(|known| Arc::ptr_eq(known, &zone)) {
            return false;
        }
        self.last.insert(key, zone);
        self.served = None;
        true
    }

    /// Returns the version of a zone that was signed last, as far as is known here.
    pub(super) fn last(&self, apex: Name<'_>) -> Option<&Arc<Zone>> {
        self.last.get(&key_of(apex))
    }

    /// Returns the zones that are to be signed, in the order of the plan.
    pub(super) fn to_sign(&self) -> &[ToSign] {
        &self.zones
    }

    /// Returns what is served: in place of what is to be signed, what was signed last. A zone that
    /// was not signed yet is not served: who saw it unsigned would remember that.
    pub(super) const fn served(&self) -> Option<&Arc<Zones>> {
        self.served.as_ref()
    }

    /// Brings what is served to what is written now, and to what is to be signed of it.
    pub(super) fn compile(wanted: Vec<Wanted>, written: Option<&Arc<Zones>>, previous: &Self) -> Self {
        let Some(written) = written else { return Self::default() };
        let mut zones = Vec::new();
        let mut last = BTreeMap::new();
        let mut made = Vec::new();
        for Wanted { apex, policy, changes } in wanted {
            let source = written.get(apex.as_name()).filter(|_| !changes).map(Arc::clone);
            if changes || source.is_some() {
                zones.push(ToSign { apex, policy, source });
            }
            let known = previous.last(apex.as_name());
            made.push(match known.filter(|_| !changes) {
                Some(known) => Change::Serve(Arc::clone(known)),
                // One that changes is served by who keeps it.
                None => Change::Unload(apex),
            });
            if let Some(known) = known {
                last.insert(key_of(apex.as_name()), Arc::clone(known));
            }
        }
        // What is the same is not made twice: the engine would take it for new.
        let is_written = previous.written.as_ref().is_some_and(|known| Arc::ptr_eq(known, written));
        let of = |zone: &ToSign| (zone.apex, zone.source.is_some());
        let is_same = is_written
            && previous.last.len() == last.len()
            && previous.zones.iter().map(of).eq(zones.iter().map(of));
        let served = previous.served.as_ref().filter(|_| is_same).map(Arc::clone);
        let served = served.unwrap_or_else(|| match made.is_empty() {
            true => Arc::clone(written),
            false => Arc::new(written.with_all(made)),
        });
        Self { zones, last, written: Some(Arc::clone(written)), served: Some(served) }
    }
}
