//! Trust anchors that follow the keys of their zones (RFC 5011), each resolver's in a file; and
//! negative ones, which end (RFC 7646).
//!
//! One thread asks for the DNSKEY RRset of each anchored zone when RFC 5011 §2.3 says so, writes
//! down what comes of it, and tells resolvers what they may trust. How an anchor moves is decided
//! in [`dnssec::anchors`]; the files have the form that Unbound made common.

mod keeper;
mod negative;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use engine::ResolverId;
use plan::anchors::AnchorPlan;
use plan::resolvers::{NegativeAnchor, ResolverPlan, TrustAnchor};
use tracing::{info, warn};
use wire::NameBuf;

pub use keeper::{AnchorState, KeyEntry, state_word};
pub use negative::{Finding, NegativeEntry, NegativeError, Source};

use crate::lock;
use keeper::Keeper;
use negative::NegativeList;

/// Seconds between two signals to the zones which of their keys are trusted.
const SIGNAL_EVERY: u64 = 86_400;
/// How often the keys of a zone are asked for at once, while nothing vouches for them: one of its
/// servers may have old ones.
const TRIES: u32 = 6;
/// How often it is looked whether something is due: the wall's clock is set, and a machine that was
/// suspended has keys to catch up with before its users ask.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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
    /// Zones that count as unsigned.
    pub negative: Vec<NegativeAnchor>,
}

/// The resolvers whose anchors are followed. Each method is called from the thread that follows
/// them.
pub trait Resolvers: Send + Sync {
    /// Asks servers of a zone for its DNSKEY RRset, as `resolver` would if it had learned nothing,
    /// and checks nothing; an error says why there is none. Blocks.
    fn keys(&self, resolver: &ResolverPlan, zone: &NameBuf) -> Result<KeySet, String>;

    /// Says whether what servers of a zone say is proved, asked as `resolver` would if it had
    /// learned nothing. Blocks.
    fn test(&self, resolver: &ResolverPlan, zone: &NameBuf) -> Finding;

    /// Asks for a name that tells the servers of a zone something; the answer does not matter.
    /// Blocks.
    fn signal(&self, resolver: &ResolverPlan, name: &NameBuf);

    /// Has a resolver, and whoever keeps answers for clients, forget all about a zone and what is
    /// below it.
    fn forget(&self, resolver: &ResolverPlan, zone: &NameBuf);

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
    /// What is written here wakes the thread.
    wake: UnixStream,
}

#[derive(Default)]
struct State {
    keepers: Vec<Kept>,
    ends: bool,
}

/// What is kept of one resolver.
struct Kept {
    keeper: Keeper,
    negative: NegativeList,
    /// When the zones are told next which keys are trusted.
    signal_at: u64,
}

/// Something to do for a resolver.
enum Due {
    Probe(NameBuf),
    Test(NameBuf),
    Signal(Vec<NameBuf>),
}

impl Kept {
    fn new(plan: &AnchorPlan, before: Option<Self>, now: u64) -> Self {
        let (keeper, negative, signal_at) = match before {
            Some(before) => {
                let keeper = Some(before.keeper).filter(|keeper| keeper.is_of(plan));
                (keeper, Some(before.negative), before.signal_at)
            }
            None => (None, None, now),
        };
        Self {
            keeper: Keeper::new(plan.clone(), keeper),
            negative: NegativeList::new(plan, negative, now),
            signal_at,
        }
    }

    fn trusted(&self) -> Trusted {
        let resolver = self.keeper.resolver().id;
        Trusted { resolver, anchors: self.keeper.trusted(), negative: self.negative.active() }
    }

    fn zones(&self) -> Vec<NameBuf> {
        self.negative.active().iter().map(|anchor| anchor.zone.as_name().to_buf()).collect()
    }

    /// Returns what is to be done, and for which resolver, as it is to ask.
    fn due(&mut self, now: u64) -> Option<(ResolverPlan, Due)> {
        let resolver = self.keeper.resolver();
        if let Some(zone) = self.keeper.due(now) {
            return Some((resolver.clone(), Due::Probe(zone)));
        }
        if self.keeper.signals() && self.signal_at <= now {
            self.signal_at = now.saturating_add(SIGNAL_EVERY);
            return Some((self.keeper.resolver().clone(), Due::Signal(self.keeper.signal_names())));
        }
        let zone = self.negative.due(now)?;
        let mut resolver = resolver.clone();
        // Other zones that are left out stay so.
        resolver.settings.trust.anchors = self.keeper.trusted();
        resolver.settings.trust.negative = self.negative.active();
        resolver.settings.trust.negative.retain(|other| other.zone.as_name() != zone.as_name());
        Some((resolver, Due::Test(zone)))
    }
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
    /// The machine refuses a thread, or a pair of sockets to wake it.
    pub fn start(resolvers: Arc<dyn Resolvers>, clock: WallClock) -> std::io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let shared = Arc::new(Shared { resolvers, clock, state: Mutex::default(), wake });
        let inside = Arc::clone(&shared);
        std::thread::Builder::new().name("anchors".into()).spawn(move || inside.run(&woken))?;
        Ok(Self(shared))
    }

    /// Goes on by these plans. Anchors whose file is as this server left it go on as they are.
    pub fn adopt(&self, plans: &[AnchorPlan]) {
        let mut state = lock(&self.0.state);
        let mut before = std::mem::take(&mut state.keepers);
        let now = (self.0.clock)();
        let mut changed = Vec::new();
        for plan in plans {
            let known = before.iter().position(|kept| kept.keeper.resolver().name == plan.resolver.name);
            let known = known.map(|at| before.swap_remove(at));
            let zones_before = known.as_ref().map(Kept::zones);
            let kept = Kept::new(plan, known, now);
            if let Some(zones_before) = zones_before {
                let zones = kept.zones();
                let gone = zones_before.iter().filter(|zone| !zones.contains(zone));
                let come = zones.iter().filter(|zone| !zones_before.contains(zone));
                changed.extend(gone.chain(come).map(|zone| (plan.resolver.clone(), *zone)));
            }
            state.keepers.push(kept);
        }
        self.0.tell(&state);
        drop(state);
        changed.iter().for_each(|(resolver, zone)| self.0.resolvers.forget(resolver, zone));
    }

    /// Returns the negative trust anchors of each resolver, by its name.
    pub fn negative(&self) -> Vec<(String, NegativeEntry)> {
        let state = lock(&self.0.state);
        let of_one = |kept: &Kept| {
            let name = kept.keeper.resolver().name.clone();
            kept.negative.entries().iter().map(move |entry| (name.clone(), entry.clone())).collect::<Vec<_>>()
        };
        state.keepers.iter().flat_map(of_one).collect()
    }

    /// Adds a negative trust anchor for so many seconds: to one resolver, or to all. It outlives a
    /// restart.
    ///
    /// # Errors
    ///
    /// Why it cannot be added to the first that does not take it; others may have it.
    pub fn add_negative(
        &self,
        only: Option<&str>,
        zone: NameBuf,
        (seconds, reason): (u64, Option<&str>),
    ) -> Result<(), NegativeError> {
        let now = (self.0.clock)();
        self.0.change(only, &zone, |list| list.add(zone, (seconds, reason.map(str::to_owned)), now))?;
        let (resolver, reason) = (only.unwrap_or("all"), reason.unwrap_or("none given"));
        warn!(resolver, %zone, seconds, reason, "a negative trust anchor was added");
        Ok(())
    }

    /// Removes one that was added.
    ///
    /// # Errors
    ///
    /// No resolver has it, or the settings have it.
    pub fn remove_negative(&self, only: Option<&str>, zone: &NameBuf) -> Result<(), NegativeError> {
        self.0.change(only, zone, |list| list.remove(zone))?;
        info!(resolver = only.unwrap_or("all"), %zone, "a negative trust anchor was removed");
        Ok(())
    }

    /// Returns the resolvers that validate.
    pub fn resolvers(&self) -> Vec<String> {
        lock(&self.0.state).keepers.iter().map(|kept| kept.keeper.resolver().name.clone()).collect()
    }

    /// Returns how the anchors of each resolver stand.
    pub fn states(&self) -> Vec<AnchorState> {
        lock(&self.0.state).keepers.iter().flat_map(|kept| kept.keeper.states()).collect()
    }

    /// Makes the thread end.
    pub fn stop(&self) {
        lock(&self.0.state).ends = true;
        self.0.wake();
    }
}

impl Shared {
    fn run(&self, woken: &UnixStream) {
        let mut state = lock(&self.state);
        while !state.ends {
            let now = (self.clock)();
            let ended = state.take_ended(now);
            if !ended.is_empty() {
                self.tell(&state);
                drop(state);
                ended.iter().for_each(|(resolver, zone)| self.resolvers.forget(resolver, zone));
                state = lock(&self.state);
                continue;
            }
            if let Some((resolver, due)) = state.keepers.iter_mut().find_map(|kept| kept.due(now)) {
                drop(state);
                state = self.carry_out(&resolver, due);
                continue;
            }
            let end = state.keepers.iter().filter_map(|kept| kept.negative.next_end()).min();
            let patience = end.map_or(LOOK_EVERY, |end| {
                LOOK_EVERY.min(Duration::from_secs(end.saturating_sub(now).max(1)))
            });
            drop(state);
            wait(woken, patience);
            state = lock(&self.state);
        }
    }

    /// Has the thread look what is due. Who finds no room to write finds it awake.
    fn wake(&self) {
        let _ = (&self.wake).write(&[0]);
    }

    /// Does what is due for a resolver, whose questions wait; returns with the state locked.
    fn carry_out(&self, resolver: &ResolverPlan, due: Due) -> MutexGuard<'_, State> {
        match due {
            Due::Probe(zone) => {
                let mut tries = 1;
                loop {
                    let heard = self.resolvers.keys(resolver, &zone);
                    let mut state = lock(&self.state);
                    // It may have been replaced meanwhile.
                    let kept = state.keepers.iter_mut().find(|kept| kept.keeper.resolver() == resolver);
                    let heard = kept.map(|kept| kept.keeper.heard(&zone, heard, (self.clock)()));
                    if heard.is_some_and(|heard| heard.changes_trust) {
                        self.tell(&state);
                    }
                    if tries == TRIES || !heard.is_some_and(|heard| heard.is_unproven) {
                        return state;
                    }
                    tries += 1;
                }
            }
            Due::Test(zone) => {
                let finding = self.resolvers.test(resolver, &zone);
                let mut state = lock(&self.state);
                let of_name = |kept: &&mut Kept| kept.keeper.resolver().name == resolver.name;
                if let Some(kept) = state.keepers.iter_mut().find(of_name) {
                    kept.negative.tested(&resolver.name, &zone, &finding, (self.clock)());
                }
                state
            }
            Due::Signal(names) => {
                names.iter().for_each(|name| self.resolvers.signal(resolver, name));
                lock(&self.state)
            }
        }
    }

    /// Changes the negative trust anchors of resolvers, whose memory of the zone does not count
    /// any more.
    fn change(
        &self,
        only: Option<&str>,
        zone: &NameBuf,
        mut change: impl FnMut(&mut NegativeList) -> Result<(), NegativeError>,
    ) -> Result<(), NegativeError> {
        let mut state = lock(&self.state);
        let (mut changed, mut outcome) = (Vec::new(), Err(NegativeError::Unknown));
        for kept in &mut state.keepers {
            if only.is_some_and(|only| only != kept.keeper.resolver().name) {
                continue;
            }
            match change(&mut kept.negative) {
                Ok(()) => {
                    changed.push(kept.keeper.resolver().clone());
                    outcome = Ok(());
                }
                Err(error) if changed.is_empty() => outcome = Err(error),
                Err(_) => {}
            }
        }
        self.tell(&state);
        drop(state);
        changed.iter().for_each(|resolver| self.resolvers.forget(resolver, zone));
        outcome
    }

    /// Tells resolvers what they may trust, and has the thread look what is due now. The state is
    /// locked meanwhile, so that what is told last is what holds.
    fn tell(&self, state: &State) {
        self.resolvers.trust(state.keepers.iter().map(Kept::trusted).collect());
        self.wake();
    }
}

impl State {
    /// Returns the zones whose negative trust anchors end by now.
    fn take_ended(&mut self, now: u64) -> Vec<(ResolverPlan, NameBuf)> {
        let mut ended = Vec::new();
        for kept in &mut self.keepers {
            let resolver = kept.keeper.resolver().clone();
            let zones = kept.negative.take_ended(&resolver.name, now);
            ended.extend(zones.into_iter().map(|zone| (resolver.clone(), zone)));
        }
        ended
    }
}

/// Waits until somebody writes, at most so long. The kernel counts the time: who sets clocks
/// changes nothing about it.
fn wait(mut woken: &UnixStream, patience: Duration) {
    let _ = woken.set_read_timeout(Some(patience));
    let _ = woken.read(&mut [0; 64]);
}
