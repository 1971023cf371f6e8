//! Sets that are made of zones from other servers follow these zones.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use ::zones::News;
use wire::{Name, NameBuf};

use crate::for_jobs::Orders;
use crate::{lock, sys};

/// Zones that have another version, in lower case. Each is there once, however often it changes.
#[derive(Default)]
struct Changed {
    zones: Mutex<BTreeSet<Vec<u8>>>,
    is_any: Condvar,
}

/// Hears of new versions of zones, and has the sets made anew that are made of them.
pub(crate) struct PolicyZones(Arc<Changed>);

impl PolicyZones {
    /// Starts the thread that makes the sets.
    pub(crate) fn start(orders: Arc<Orders>) -> io::Result<Self> {
        let changed = Arc::<Changed>::default();
        let own = Arc::clone(&changed);
        std::thread::Builder::new().name("policy-zones".into()).spawn(move || {
            sys::step_back();
            loop {
                let apex = own.next();
                orders.follow_zone(&apex);
            }
        })?;
        Ok(Self(changed))
    }
}

impl Changed {
    /// Waits for the next zone.
    fn next(&self) -> NameBuf {
        let mut zones = lock(&self.zones);
        loop {
            let first = zones.pop_first();
            if let Some((name, _)) = first.as_ref().and_then(|first| Name::parse(first).ok()) {
                return name.to_buf();
            }
            zones = self.is_any.wait(zones).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl News for PolicyZones {
    fn changed(&self, apex: Name<'_>) {
        lock(&self.0.zones).insert(apex.to_folded().as_bytes().to_vec());
        self.0.is_any.notify_one();
    }
}
