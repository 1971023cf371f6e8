//! Sets that are made of zones from other servers follow these zones.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use ::zones::{News, TransferOutcome};
use control::api::{EventOf, ZoneEvent};
use wire::{Name, NameBuf};

use crate::feed::bounded;
use crate::for_jobs::Orders;
use crate::{lock, sys};

/// Zones that have another version, in lower case. Each is there once, however often it changes.
#[derive(Default)]
struct Changed {
    zones: Mutex<BTreeSet<Vec<u8>>>,
    is_any: Condvar,
}

/// Hears of zones of other servers: tells of transfers, and has the sets made anew that are made of
/// zones that have changed.
pub(crate) struct PolicyZones {
    changed: Arc<Changed>,
    orders: Arc<Orders>,
}

impl PolicyZones {
    /// Starts the thread that makes the sets.
    pub(crate) fn start(orders: Arc<Orders>) -> io::Result<Self> {
        let changed = Arc::<Changed>::default();
        let own = Arc::clone(&changed);
        let carries_out = Arc::clone(&orders);
        std::thread::Builder::new().name("policy-zones".into()).spawn(move || {
            sys::step_back();
            loop {
                let apex = own.next();
                carries_out.follow_zone(&apex);
            }
        })?;
        Ok(Self { changed, orders })
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
        lock(&self.changed.zones).insert(apex.to_folded().as_bytes().to_vec());
        self.changed.is_any.notify_one();
    }

    fn transfer(&self, apex: Name<'_>, outcome: &TransferOutcome<'_>) {
        let event = ZoneEvent { zone: apex.to_buf().to_string(), ..ZoneEvent::default() };
        self.orders.feed().tell(EventOf::Zone(match *outcome {
            TransferOutcome::Transferred(serial) => {
                ZoneEvent { what: "transferred".to_owned(), serial: Some(serial), ..event }
            }
            TransferOutcome::Failed(why) => {
                ZoneEvent { what: "failed".to_owned(), why: Some(bounded(why)), ..event }
            }
            TransferOutcome::Expired => ZoneEvent { what: "expired".to_owned(), ..event },
        }));
    }
}
