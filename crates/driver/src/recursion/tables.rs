//! What resolvers have learned, shared by all workers.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use cache::rrsets::{Partition, RrsetLimits, Rrsets};
use cache::servers::{ServerLimits, Servers};
use exchange::authorities::CookieSecret;
use plan::resolvers::ResolverPlan;
use rand::Rng as _;
use rand::rngs::StdRng;
use resolver::Tables;
use wire::HashKey;

/// What resolvers have learned, shared by all workers.
///
/// Each resolver has RRsets of its own, for as long as it is told the same: what it learned before
/// it was told something else may not hold any more. What is known of servers is for all of them.
pub struct ResolverTables {
    servers: Arc<Servers>,
    cookie_secret: CookieSecret,
    rrsets: Mutex<Vec<Owned>>,
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
