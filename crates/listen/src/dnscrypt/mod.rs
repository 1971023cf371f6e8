//! DNSCrypt to clients: whose keys are in use, and what is remembered of queries.
//!
//! Everything that a configuration says is compiled into one [`Dnscrypt`], which a reload replaces
//! whole. Datagrams and connections are those of plain DNS; what is different about a message is
//! in [`Opener`], which each worker has once.

mod agreed;
mod certificates;
mod opener;
mod replays;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use plan::dnscrypt::ProviderPlan;
use plan::listeners::TcpPlan;

use crate::allowances::Allowances;

pub(crate) use opener::{Carrier, Opener, ReplyKey, Sealed, sealing};
use replays::Replays;

/// How many keys can be agreed on in the time of one handshake of TLS, somewhat less.
const AGREEMENTS_PER_HANDSHAKE: u32 = 16;

/// Returns how many keys clients may have agreed on. It has counters of its own: with datagrams,
/// which may bear anybody's address, nobody can use up the handshakes of another.
pub(crate) fn key_agreements(plan: &TcpPlan) -> Allowances {
    Allowances::new(plan, plan.handshakes_per_second.saturating_mul(AGREEMENTS_PER_HANDSHAKE))
}

/// Who this resolver is over DNSCrypt.
#[derive(Debug)]
pub struct Dnscrypt {
    plan: Arc<ProviderPlan>,
    replays: Arc<Replays>,
}

impl Dnscrypt {
    /// Prepares a plan. What `previous` remembers of queries is still remembered, unless there is
    /// to be room for more or less of it.
    fn new(plan: &Arc<ProviderPlan>, previous: Option<&Self>) -> Self {
        let replays = previous
            .filter(|previous| previous.plan.replay_octets == plan.replay_octets)
            .map_or_else(|| Arc::new(Replays::new(plan.replay_octets)), |it| Arc::clone(&it.replays));
        Self { plan: Arc::clone(plan), replays }
    }
}

/// Holds who this resolver is from now on. Workers look when a batch begins.
#[derive(Debug, Default)]
pub struct DnscryptCell {
    content: RwLock<Option<Arc<Dnscrypt>>>,
    generation: AtomicU64,
}

impl DnscryptCell {
    /// Prepares a plan to be published here.
    pub fn prepare(&self, plan: Option<&Arc<ProviderPlan>>) -> Option<Arc<Dnscrypt>> {
        let (current, _) = self.load();
        match current {
            Some(current) if plan.is_some_and(|plan| Arc::ptr_eq(&current.plan, plan)) => Some(current),
            current => plan.map(|plan| Arc::new(Dnscrypt::new(plan, current.as_deref()))),
        }
    }

    /// Replaces the content for queries that come from now on.
    pub fn publish(&self, dnscrypt: Option<Arc<Dnscrypt>>) {
        *self.content.write().unwrap_or_else(PoisonError::into_inner) = dnscrypt;
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Returns a number that changes when the content does.
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the content and its number.
    fn load(&self) -> (Option<Arc<Dnscrypt>>, u64) {
        // The number first: a content that is newer than its number is only loaded once more.
        let generation = self.generation();
        (self.content.read().unwrap_or_else(PoisonError::into_inner).clone(), generation)
    }
}
