//! Asks for the addresses of what ALIAS records lead to, before anybody needs them.
//!
//! One thread knows every target of the zones that are served, and has each asked for again shortly
//! before its TTL is over, by a few threads at a time. While a target cannot be resolved, what it
//! had is used for as long as the configuration says.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::{info, warn};
use wire::{Name, NameBuf, Rtype};
use zone::{Aliases, Zones};

use crate::lock;
use crate::resolver::Lookup;

/// Targets that are asked for at the same time.
const THREADS_MAX: usize = 8;
/// How long the servers may take for one target.
const PATIENCE: Duration = Duration::from_secs(6);
/// How often a target is asked for at most, whatever its TTL is.
const AGAIN_MIN: u32 = 5;
/// How often at least, so that a TTL of years is no promise.
const AGAIN_MAX: u32 = 86_400;
/// When it is tried again after it failed the first time; then twice as long, up to the second
/// number.
const RETRY: (u32, u32) = (2, 60);
/// How often it is looked whether zones have changed.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Who is asked, and for how much.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AliasPlan {
    /// Servers that resolve, in the order in which they are asked; without any, nothing is asked.
    pub resolvers: Vec<SocketAddr>,
    /// For how many seconds addresses are used that could not be asked for again.
    pub stale: u32,
    /// Targets that are looked after.
    pub targets_max: usize,
}

/// Returns the zones that are served now, and a number that changes when they do; nothing if it is
/// still this one.
pub type ServedZones = Box<dyn Fn(Option<u64>) -> Option<(u64, Vec<Arc<Zones>>)> + Send>;

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    plan: AliasPlan,
    has_news: bool,
    ends: bool,
}

/// Looks after the targets on a thread of its own.
pub struct Follower(Arc<Shared>);

/// Who resolves targets, where their addresses go, and the clock by which they age there.
pub struct Resolution {
    /// Asks the servers.
    pub lookup: Arc<dyn Lookup>,
    /// Has the addresses.
    pub memory: Arc<Aliases>,
    /// The workers' clock.
    pub clock: engine::Clock,
}

/// How one target stands.
#[derive(Clone, Copy, Default)]
struct Target {
    again_at: u32,
    /// How often in a row it could not be resolved.
    failures: u32,
}

impl Follower {
    /// Starts the thread.
    pub fn start(resolution: Resolution, served: ServedZones, plan: AliasPlan) -> std::io::Result<Self> {
        let state = State { plan, ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new() });
        let inside = Arc::clone(&shared);
        std::thread::Builder::new().name("aliases".into()).spawn(move || inside.run(&resolution, &served))?;
        Ok(Self(shared))
    }

    /// Goes on by another plan.
    pub fn adopt(&self, plan: AliasPlan) {
        let mut state = lock(&self.0.state);
        state.has_news |= state.plan != plan;
        state.plan = plan;
        drop(state);
        self.0.wake.notify_all();
    }

    /// Makes the thread end.
    pub fn stop(&self) {
        lock(&self.0.state).ends = true;
        self.0.wake.notify_all();
    }
}

impl Shared {
    fn run(&self, resolution: &Resolution, served: &ServedZones) {
        let mut targets: BTreeMap<Vec<u8>, Target> = BTreeMap::new();
        let mut generation = None;
        let mut is_over = false;
        loop {
            let plan = {
                let mut state = lock(&self.state);
                if state.ends {
                    return;
                }
                if std::mem::take(&mut state.has_news) {
                    generation = None;
                    targets.clear();
                }
                state.plan.clone()
            };
            if let Some((now, zones)) = served(generation) {
                generation = Some(now);
                let wanted = wanted(&zones);
                if wanted.len() > plan.targets_max && !is_over {
                    warn!(
                        targets = wanted.len(),
                        max = plan.targets_max,
                        "not all targets of ALIAS records are followed"
                    );
                }
                is_over = wanted.len() > plan.targets_max;
                let followed = wanted.into_iter().take(plan.targets_max).map(|name| {
                    let known = targets.get(&name).copied().unwrap_or_default();
                    (name, known)
                });
                targets = followed.collect();
            }
            if !plan.resolvers.is_empty() {
                ask(&mut targets, &plan, resolution);
            }
            let state = lock(&self.state);
            let waits = |state: &mut State| !state.ends && !state.has_news;
            if plan.resolvers.is_empty() {
                // There is nobody to ask, whatever zones come.
                drop(self.wake.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner));
            } else {
                let waited = self.wake.wait_timeout_while(state, LOOK_EVERY, waits);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}

/// Returns the names whose addresses are to be asked for, in lower case and in order.
fn wanted(zones: &[Arc<Zones>]) -> std::collections::BTreeSet<Vec<u8>> {
    let mut wanted = std::collections::BTreeSet::new();
    for zones in zones {
        for zone in zones.all().filter(|zone| zone.facts().aliases > 0) {
            for target in zone.alias_targets() {
                if let Some(end) = zones.end_of_alias(target.as_name()) {
                    wanted.insert(end.as_name().to_folded().as_bytes().to_vec());
                }
            }
        }
    }
    wanted
}

/// Asks for what is due.
fn ask(targets: &mut BTreeMap<Vec<u8>, Target>, plan: &AliasPlan, resolution: &Resolution) {
    let begun = resolution.clock.cache_now().0;
    let mut due: Vec<(&[u8], &mut Target)> =
        targets.iter_mut().filter(|(_, it)| it.again_at <= begun).map(|(name, it)| (&**name, it)).collect();
    if due.is_empty() {
        return;
    }
    let share = due.len().div_ceil(THREADS_MAX);
    std::thread::scope(|scope| {
        for part in due.chunks_mut(share) {
            scope.spawn(move || {
                for (name, target) in part {
                    if let Ok((name, _)) = Name::parse(name) {
                        refresh(name, target, plan, resolution);
                    }
                }
            });
        }
    });
}

/// Returns an address as the data of a record.
fn octets(address: IpAddr) -> Box<[u8]> {
    match address {
        IpAddr::V4(v4) => v4.octets().into(),
        IpAddr::V6(v6) => v6.octets().into(),
    }
}

/// Asks for the addresses of one target.
fn refresh(name: Name<'_>, target: &mut Target, plan: &AliasPlan, resolution: &Resolution) {
    let Resolution { lookup, memory, clock } = resolution;
    let now = || clock.cache_now().0;
    let owned: NameBuf = name.to_buf();
    let mut again = AGAIN_MAX;
    let mut trouble = None;
    for rtype in [Rtype::A, Rtype::AAAA] {
        match lookup.addresses(&plan.resolvers, &owned, rtype, Instant::now() + PATIENCE) {
            Ok(found) => {
                let ttl = found.ttl.clamp(AGAIN_MIN, AGAIN_MAX);
                let data: Vec<Box<[u8]>> = found.list.into_iter().map(octets).collect();
                memory.put((name, rtype), data.iter().map(|data| &**data), (ttl, plan.stale), now());
                again = again.min(ttl);
            }
            Err(why) => trouble = Some(why),
        }
    }
    if let Some(why) = trouble {
        if target.failures == 0 {
            warn!(target = %owned, why, "what an ALIAS leads to cannot be resolved");
        }
        let wait = RETRY.0.checked_shl(target.failures.min(8)).unwrap_or(RETRY.1).min(RETRY.1);
        target.failures = target.failures.saturating_add(1);
        target.again_at = now().saturating_add(wait);
        return;
    }
    if target.failures > 0 {
        info!(target = %owned, "what an ALIAS leads to is resolved again");
    }
    // A little early, so that nobody sees the end of it.
    *target = Target { again_at: now().saturating_add(again - again / 5), failures: 0 };
}
