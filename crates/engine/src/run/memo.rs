//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What a worker remembers from one query to the next.

use std::net::IpAddr;
use std::sync::Arc;

use sets::Reliance;

use crate::ops::cache::{Early, Known};
use crate::program::shortlist::Candidates;
use crate::program::snapshot::Snapshot;

/// Clients whose class is remembered: about as many as ask within the same moment.
const CLIENTS: usize = 256;
/// In place of a class: the client may be like no other.
const NO_CLASS: u32 = u32::MAX;

/// What a worker remembers.
pub(crate) struct Memo {
    /// What is left of the last shortlist that was looked at.
    pub(crate) candidates: Candidates,
    /// The number of the state of policy and sets; zero if it has none.
    epoch: u32,
    /// Where the snapshot is that this is the number of.
    snapshot: usize,
    clients: [KnownClient; CLIENTS],
}

/// The class of a client. 24 octets.
#[derive(Clone, Copy)]
struct KnownClient {
    address: [u64; 2],
    /// The state that it holds for.
    epoch: u32,
    class: u32,
}

const _: () = assert!(size_of::<KnownClient>() == 24);

impl Default for Memo {
    fn default() -> Self {
        let nobody = KnownClient { address: [0; 2], epoch: 0, class: NO_CLASS };
        Self { candidates: Candidates::default(), epoch: 0, snapshot: 0, clients: [nobody; CLIENTS] }
    }
}

/// Returns an address as two numbers, those of IPv4 as IPv6 writes them.
#[inline(always)]
const fn numbers(address: &IpAddr) -> [u64; 2] {
    match address {
        IpAddr::V4(v4) => [0, 0xffff_0000_0000 | v4.to_bits() as u64],
        IpAddr::V6(v6) => [(v6.to_bits() >> 64) as u64, v6.to_bits() as u64],
    }
}

impl Memo {
    /// Notes the number of the state of a snapshot, which the worker has while this is noted, and
    /// of sets; zero if it has none.
    pub(crate) fn set_epoch(&mut self, epoch: u32, snapshot: &Arc<Snapshot>) {
        (self.epoch, self.snapshot) = (epoch, Arc::as_ptr(snapshot).addr());
    }

    /// Returns what an answer is to be known for, so that the client with this address gets it
    /// early; `None` if it gets none early.
    #[inline(always)]
    pub(crate) fn known(&mut self, early: Early, snapshot: &Arc<Snapshot>, client: &IpAddr) -> Option<Known> {
        let epoch = self.epoch;
        // A query that waited goes on with the snapshot that it began with.
        if epoch == 0 || Arc::as_ptr(snapshot).addr() != self.snapshot {
            return None;
        }
        let reliance = snapshot.program.reliance();
        if !reliance.looks_at_clients() {
            return Some(Known { epoch, class: 0 });
        }
        let class = self.class(reliance, client);
        let is_meant = class == 0 || class != NO_CLASS && early == Early::Yes;
        is_meant.then_some(Known { epoch, class })
    }

    #[inline(always)]
    fn class(&mut self, reliance: &Reliance, client: &IpAddr) -> u32 {
        let address = numbers(client);
        let [high, low] = address;
        let spread = (high ^ low).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // As many bits as there are places.
        let Some(place) = self.clients.get_mut((spread >> (64 - CLIENTS.trailing_zeros())) as usize) else {
            return NO_CLASS;
        };
        if place.address != address || place.epoch != self.epoch {
            let class = reliance.class(*client).unwrap_or(NO_CLASS);
            *place = KnownClient { address, epoch: self.epoch, class };
        }
        place.class
    }
}
