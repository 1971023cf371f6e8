//! What resolvers have learned, shared by all workers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use authorities::CookieSecret;
use cache::claims::{Claims, Worker};
use cache::proofs::Proofs;
use cache::rrsets::{Partition, RrsetLimits, Rrsets};
use cache::servers::{ServerLimits, Servers};
use engine::ResolverId;
use plan::resolvers::ResolverPlan;
use rand::Rng as _;
use rand::rngs::StdRng;
use resolver::{Failures, Moment, NegativeAnchor, Tables, TrustAnchor, ZoneRate, ZoneRates};
use wire::HashKey;

use crate::second_level::AllHealth;
use crate::second_level::forgotten::{Forgotten, StoredOf};

/// The part of a resolver's memory that is for ranges of names that do not exist.
const PROOFS_PART: usize = 16;

/// What resolvers have learned, shared by all workers.
///
/// Each resolver has RRsets of its own, for as long as it is told the same: what it learned before
/// it was told something else may not hold any more. What is known of servers is for all of them.
pub struct ResolverTables {
    servers: Arc<Servers>,
    cookie_secret: CookieSecret,
    claims: Arc<Claims>,
    rates: Arc<ZoneRates>,
    second_levels: AllHealth,
    stored_forgotten: Forgotten,
    learned: Mutex<Vec<Owned>>,
    trusted: Mutex<Vec<(ResolverId, Trusted)>>,
    /// Moves when what is trusted does.
    trust_generation: AtomicU64,
    /// Moves when workers are to forget what they have noted themselves.
    forget_generation: AtomicU64,
}

/// What a resolver trusts now, whatever its settings said at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trusted {
    /// Its trust anchors.
    pub anchors: Vec<TrustAnchor>,
    /// Zones that count as unsigned.
    pub negative: Vec<NegativeAnchor>,
}

/// What a resolver has learned of zones.
struct Owned {
    plan: ResolverPlan,
    rrsets: Weak<Rrsets>,
    proofs: Weak<Proofs>,
    failures: Weak<Failures>,
}

/// What a resolver in use has learned of zones.
pub struct Learned {
    /// The resolver's name.
    pub name: String,
    /// RRsets, negative answers and delegations.
    pub rrsets: Arc<Rrsets>,
    /// Ranges of names that do not exist.
    pub proofs: Arc<Proofs>,
    /// Which part of them is its own.
    pub partition: Partition,
}

impl Default for ResolverTables {
    /// Returns empty tables. Memory is taken as they are filled.
    fn default() -> Self {
        let mut rng: StdRng = rand::make_rng();
        Self {
            servers: Arc::new(Servers::new(ServerLimits::default(), hash_key(&mut rng))),
            cookie_secret: CookieSecret::draw(&mut rng),
            claims: Arc::default(),
            rates: Arc::default(),
            second_levels: AllHealth::default(),
            stored_forgotten: Forgotten::default(),
            learned: Mutex::default(),
            trusted: Mutex::default(),
            trust_generation: AtomicU64::new(0),
            forget_generation: AtomicU64::new(0),
        }
    }
}

impl ResolverTables {
    /// Returns the number of a worker that begins.
    pub(super) fn next_worker(&self) -> Worker {
        self.claims.enter()
    }

    /// Returns the tables of a resolver, which stay for as long as somebody has them.
    pub(super) fn of(&self, plan: &ResolverPlan, worker: Worker) -> Tables {
        let mut all = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|owned| owned.rrsets.strong_count() > 0);
        let own = all.iter().find(|owned| owned.plan == *plan);
        let known = own.and_then(|owned| {
            Some((owned.rrsets.upgrade()?, owned.proofs.upgrade()?, owned.failures.upgrade()?))
        });
        let (rrsets, proofs, failures) = known.unwrap_or_else(|| {
            let ((rrsets, proofs), failures) = (empty(plan.octets_max), Arc::<Failures>::default());
            all.push(Owned {
                plan: plan.clone(),
                rrsets: Arc::downgrade(&rrsets),
                proofs: Arc::downgrade(&proofs),
                failures: Arc::downgrade(&failures),
            });
            (rrsets, proofs, failures)
        });
        Tables {
            rrsets,
            proofs,
            failures,
            rates: Arc::clone(&self.rates),
            servers: Arc::clone(&self.servers),
            claims: Arc::clone(&self.claims),
            worker,
        }
    }

    /// Returns what each resolver in use has learned of zones.
    pub fn learned(&self) -> Vec<Learned> {
        let all = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = |owned: &Owned| {
            Some(Learned {
                name: owned.plan.name.clone(),
                rrsets: owned.rrsets.upgrade()?,
                proofs: owned.proofs.upgrade()?,
                partition: owned.plan.settings.partition,
            })
        };
        all.iter().filter_map(shown).collect()
    }

    /// Returns the plan of the resolver in use that has this name, if there is one by now.
    pub fn plan_of(&self, name: &str) -> Option<ResolverPlan> {
        let all = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let mut in_use = all.iter().filter(|owned| owned.rrsets.strong_count() > 0);
        // Of several the last one is that of the plan now.
        in_use.rfind(|owned| owned.plan.name == name).map(|owned| owned.plan.clone())
    }

    /// Returns what a resolver trusts now, if that is not what its settings say.
    pub fn trusted(&self, id: ResolverId) -> Option<Trusted> {
        let all = self.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(other, _)| *other == id).map(|(_, trusted)| trusted.clone())
    }

    /// Has workers forget which questions failed, and what they know of zones' keys.
    pub fn forget_notes(&self) {
        self.forget_generation.fetch_add(1, Ordering::Release);
    }

    /// Returns whether something is to be forgotten since this generation.
    pub(super) fn forgets_since(&self, generation: &mut u64) -> bool {
        let now = self.forget_generation.load(Ordering::Acquire);
        std::mem::replace(generation, now) != now
    }

    /// Has resolvers trust this from their next question on, and others what their settings say.
    pub fn trust(&self, trusted: Vec<(ResolverId, Trusted)>) {
        let mut known = self.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != trusted {
            *known = trusted;
            self.trust_generation.fetch_add(1, Ordering::Release);
        }
    }

    /// Returns what resolvers trust, if that is not what it was at this generation.
    pub(super) fn trusted_since(&self, generation: &mut u64) -> Option<Vec<(ResolverId, Trusted)>> {
        let now = self.trust_generation.load(Ordering::Acquire);
        if now == *generation {
            return None;
        }
        *generation = now;
        Some(self.trusted.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Returns tables for a question that is to be asked as if nothing had been learned.
    pub(super) fn blank(&self, octets_max: usize, worker: Worker) -> Tables {
        let (rrsets, proofs) = empty(octets_max);
        Tables {
            rrsets,
            proofs,
            failures: Arc::default(),
            rates: Arc::clone(&self.rates),
            servers: Arc::clone(&self.servers),
            claims: Arc::default(),
            worker,
        }
    }

    /// Returns what is known of servers.
    pub const fn servers(&self) -> &Arc<Servers> {
        &self.servers
    }

    /// Returns what is known of the servers of second-level caches.
    pub(crate) const fn second_levels(&self) -> &AllHealth {
        &self.second_levels
    }

    /// Has values in second-level caches not count that were written until this second, itself
    /// included.
    pub fn forget_stored(&self, what: StoredOf, unix_seconds: u64) {
        self.stored_forgotten.forget(what, unix_seconds);
    }

    /// Returns which values in second-level caches do not count.
    pub(super) const fn stored_forgotten(&self) -> &Forgotten {
        &self.stored_forgotten
    }

    /// Returns the zones with a limit that were asked in the last two seconds, and how often.
    pub fn zone_rates(&self, since_boot: Duration) -> Vec<ZoneRate> {
        self.rates.list(Moment(u64::try_from(since_boot.as_micros()).unwrap_or(u64::MAX)))
    }

    pub(super) const fn cookie_secret(&self) -> CookieSecret {
        self.cookie_secret
    }
}

/// Returns empty tables of so many octets together.
fn empty(octets_max: usize) -> (Arc<Rrsets>, Arc<Proofs>) {
    let of_proofs = octets_max / PROOFS_PART;
    let limits = RrsetLimits::with_octets(octets_max - of_proofs);
    let mut rng = rand::make_rng();
    let rrsets = Rrsets::new(limits, hash_key(&mut rng));
    (Arc::new(rrsets), Arc::new(Proofs::new(of_proofs, hash_key(&mut rng))))
}

fn hash_key(rng: &mut StdRng) -> HashKey {
    HashKey::new([rng.next_u64(), rng.next_u64()])
}
