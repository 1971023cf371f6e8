//! Trust anchors that follow the keys of their zones (RFC 5011), each resolver's in a file.
//!
//! One thread asks for the DNSKEY RRset of each anchored zone when RFC 5011 §2.3 says so, writes
//! down what comes of it, and tells resolvers what they may trust. How an anchor moves is decided
//! in [`dnssec::anchors`]; the files have the form that Unbound made common.

mod keeper;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use engine::ResolverId;
use plan::anchors::AnchorPlan;
use plan::resolvers::{ResolverPlan, TrustAnchor};
use wire::NameBuf;

pub use keeper::{AnchorState, KeyEntry};

use crate::lock;
use keeper::Keeper;

/// How often it is looked whether something is due: the wall's clock can be set.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The DNSKEY RRset of a zone as it came: nobody has checked it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySet {
    /// The data of its records.
    pub keys: Vec<Box<[u8]>>,
    /// The data of their RRSIG records.
    pub signatures: Vec<Box<[u8]>>,
}

/// What a resolver is to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trusted {
    /// The resolver.
    pub resolver: ResolverId,
    /// Its trust anchors.
    pub anchors: Vec<TrustAnchor>,
}

/// The resolvers whose anchors are followed. Each method is called from the thread that follows
/// them.
pub trait Resolvers: Send + Sync {
    /// Asks servers of a zone for its DNSKEY RRset, as `resolver` would if it had learned nothing,
    /// and checks nothing; an error says why there is none. Blocks.
    fn keys(&self, resolver: &ResolverPlan, zone: &NameBuf) -> Result<KeySet, String>;

    /// Has resolvers trust this from now on.
    fn trust(&self, all: Vec<Trusted>);
}

/// Returns the seconds since 1970; tests have a clock of their own.
pub type WallClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Follows the trust anchors of all resolvers on a thread of its own.
pub struct Anchors(Arc<Shared>);

struct Shared {
    resolvers: Arc<dyn Resolvers>,
    clock: WallClock,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    keepers: Vec<Keeper>,
    ends: bool,
    /// Whether somebody may have given the thread something to do.
    has_news: bool,
}

impl fmt::Debug for Anchors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Anchors")
    }
}

impl Anchors {
    /// Starts the thread, which has nothing to do before [`Anchors::adopt`].
    ///
    /// # Errors
    ///
    /// The machine refuses a thread.
    pub fn start(resolvers: Arc<dyn Resolvers>, clock: WallClock) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { resolvers, clock, state: Mutex::default(), wake: Condvar::new() });
        let inside = Arc::clone(&shared);
        std::thread::Builder::new().name("anchors".into()).spawn(move || inside.run())?;
        Ok(Self(shared))
    }

    /// Goes on by these plans. Anchors whose file is as this server left it go on as they are.
    pub fn adopt(&self, plans: &[AnchorPlan]) {
        let mut state = lock(&self.0.state);
        let mut before = std::mem::take(&mut state.keepers);
        let now = (self.0.clock)();
        for plan in plans {
            let known = before.iter().position(|keeper| keeper.is_of(plan));
            let known = known.map(|at| before.swap_remove(at));
            state.keepers.push(Keeper::new(plan.clone(), known, now));
        }
        state.has_news = true;
        self.0.tell(&state);
        drop(state);
        self.0.wake.notify_all();
    }

    /// Returns how the anchors of each resolver stand.
    pub fn states(&self) -> Vec<AnchorState> {
        lock(&self.0.state).keepers.iter().flat_map(Keeper::states).collect()
    }

    /// Makes the thread end.
    pub fn stop(&self) {
        lock(&self.0.state).ends = true;
        self.0.wake.notify_all();
    }
}

impl Shared {
    fn run(&self) {
        let mut state = lock(&self.state);
        while !state.ends {
            state.has_news = false;
            let now = (self.clock)();
            let due = state.keepers.iter().find_map(|keeper| keeper.due(now));
            let Some((resolver, zone)) = due else {
                let waits = |state: &mut State| !state.ends && !state.has_news;
                let waited = self.wake.wait_timeout_while(state, LOOK_EVERY, waits);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            };
            drop(state);
            let heard = self.resolvers.keys(&resolver, &zone);
            state = lock(&self.state);
            // It may have been replaced meanwhile.
            if let Some(keeper) = state.keepers.iter_mut().find(|keeper| *keeper.resolver() == resolver)
                && keeper.heard(&zone, heard, (self.clock)())
            {
                self.tell(&state);
            }
        }
    }

    /// Tells resolvers what they may trust. The state is locked meanwhile, so that what is told
    /// last is what holds.
    fn tell(&self, state: &State) {
        self.resolvers.trust(state.keepers.iter().map(Keeper::trusted).collect());
    }
}
