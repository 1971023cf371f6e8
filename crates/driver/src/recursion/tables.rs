//! What resolvers have learned, shared by all workers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use authorities::CookieSecret;
use cache::rrsets::{Partition, RrsetLimits, Rrsets};
use cache::servers::{ServerLimits, Servers};
use engine::ResolverId;
use plan::resolvers::ResolverPlan;
use rand::Rng as _;
use rand::rngs::StdRng;
use resolver::{NegativeAnchor, Tables, TrustAnchor};
use wire::HashKey;

/// What resolvers have learned, shared by all workers.
///
/// Each resolver has RRsets of its own, for as long as it is told the same: what it learned before
/// it was told something else may not hold any more. What is known of servers is for all of them.
pub struct ResolverTables {
    servers: Arc<Servers>,
    cookie_secret: CookieSecret,
    rrsets: Mutex<Vec<Owned>>,
    trusted: Mutex<Vec<(ResolverId, Trusted)>>,
    /// Moves when what is trusted does.
    trust_generation: AtomicU64,
}

/// What a resolver trusts now, whatever its settings said at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trusted {
    /// Its trust anchors.
    pub anchors: Vec<TrustAnchor>,
    /// Zones that count as unsigned.
    pub negative: Vec<NegativeAnchor>,
}

/// The RRsets of a resolver.
struct Owned {
    plan: ResolverPlan,
    rrsets: Weak<Rrsets>,
}

impl Default for ResolverTables {
    /// Returns empty tables. Memory is taken as they are filled.
    fn default() -> Self {
        let mut rng: StdRng = rand::make_rng();
        Self {
            servers: Arc::new(Servers::new(ServerLimits::default(), hash_key(&mut rng))),
            cookie_secret: CookieSecret::draw(&mut rng),
            rrsets: Mutex::default(),
            trusted: Mutex::default(),
            trust_generation: AtomicU64::new(0),
        }
    }
}

impl ResolverTables {
    /// Returns the tables of a resolver, which stay for as long as somebody has them.
    pub(super) fn of(&self, plan: &ResolverPlan) -> Tables {
        let mut all = self.rrsets.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|owned| owned.rrsets.strong_count() > 0);
        let own = all.iter().find(|owned| owned.plan == *plan);
        let rrsets = own.and_then(|owned| owned.rrsets.upgrade()).unwrap_or_else(|| {
            let limits = RrsetLimits::with_octets(plan.octets_max);
            let rrsets = Arc::new(Rrsets::new(limits, hash_key(&mut rand::make_rng())));
            all.push(Owned { plan: plan.clone(), rrsets: Arc::downgrade(&rrsets) });
            rrsets
        });
        Tables { rrsets, servers: Arc::clone(&self.servers) }
    }

    /// Returns what each resolver in use has learned of zones: its name, its RRsets, and which part
    /// of them is its own.
    pub fn rrsets(&self) -> Vec<(String, Arc<Rrsets>, Partition)> {
        let all = self.rrsets.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = |owned: &Owned| {
            Some((owned.plan.name.clone(), owned.rrsets.upgrade()?, owned.plan.settings.partition))
        };
        all.iter().filter_map(shown).collect()
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
    pub(super) fn blank(&self, octets_max: usize) -> Tables {
        let limits = RrsetLimits::with_octets(octets_max);
        let rrsets = Arc::new(Rrsets::new(limits, hash_key(&mut rand::make_rng())));
        Tables { rrsets, servers: Arc::clone(&self.servers) }
    }

    /// Returns what is known of servers.
    pub const fn servers(&self) -> &Arc<Servers> {
        &self.servers
    }

    pub(super) const fn cookie_secret(&self) -> CookieSecret {
        self.cookie_secret
    }
}

fn hash_key(rng: &mut StdRng) -> HashKey {
    HashKey::new([rng.next_u64(), rng.next_u64()])
}
