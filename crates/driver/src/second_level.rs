//! Second-level caches of resolvers: Redis servers, asked over connections beside the worker's
//! sockets.
//!
//! Nobody waits for a server that is gone: what is asked for while there is no connection is
//! answered at once, with nothing, and so is what a server was not quick enough with.

mod connection;
pub(crate) mod entry;
pub(crate) mod forgotten;

use std::rc::Weak;
use std::sync::Arc;

use plan::resolvers::{Plan, RedisPlace, RedisPlan, SecondLevelPlan};

use crate::recursion::Counters;
use connection::Connection;
pub(crate) use connection::Health;

/// Takes what became of look-ups, all that are known at one time.
pub(crate) trait Replies {
    /// Each has the tag that it was asked with; `None`: there is no value, or nobody says.
    fn found(&self, values: Vec<(u32, Option<Vec<u8>>)>);
}

/// The second-level caches of one worker.
#[derive(Default)]
pub(crate) struct SecondLevels {
    all: Vec<SecondLevel>,
}

/// One second-level cache.
struct SecondLevel {
    plan: Arc<SecondLevelPlan>,
    server: Connection,
    replica: Option<Connection>,
}

impl SecondLevel {
    /// Returns who is asked.
    fn reader(&self) -> &Connection {
        self.replica.as_ref().unwrap_or(&self.server)
    }
}

/// Whom a worker's connections tell what, and what they share with those of other workers.
pub(crate) struct Surroundings<'s> {
    /// Who takes replies.
    pub(crate) replies: Weak<dyn Replies>,
    /// What is counted.
    pub(crate) counters: &'s Arc<Counters>,
    /// What is known of a server by all workers.
    pub(crate) health: &'s dyn Fn(&RedisPlace) -> Arc<Health>,
}

impl SecondLevels {
    /// Has connections to the servers of this plan, and to no others; returns the look-ups that get
    /// no reply any more.
    pub(crate) fn adopt(&mut self, plan: &Plan, surroundings: &Surroundings<'_>) -> Vec<u32> {
        let wanted: Vec<_> =
            plan.resolvers.iter().filter_map(|resolver| resolver.second_level.clone()).collect();
        let is_wanted = |known: &SecondLevel| wanted.contains(&known.plan);
        let (kept, gone) = std::mem::take(&mut self.all).into_iter().partition(is_wanted);
        self.all = kept;
        for plan in wanted {
            if self.of(&plan).is_none() {
                let connect = |server: &RedisPlan| Connection::begin(server.clone(), surroundings);
                let (server, replica) = (connect(&plan.server), plan.replica.as_ref().map(connect));
                self.all.push(SecondLevel { plan, server, replica });
            }
        }
        gone.iter().flat_map(|gone: &SecondLevel| gone.reader().give_up()).collect()
    }

    fn of(&self, plan: &Arc<SecondLevelPlan>) -> Option<&SecondLevel> {
        self.all.iter().find(|known| known.plan == *plan)
    }

    /// Has a key looked up; returns whether it is: what becomes of it is told by the tag then.
    pub(crate) fn look_up(&self, plan: &Arc<SecondLevelPlan>, key: &entry::Key, tag: u32) -> bool {
        self.of(plan).is_some_and(|known| known.reader().look_up(key, tag))
    }

    /// Has a value stored that is good for so many seconds; returns whether there was room for it.
    pub(crate) fn store(
        &self,
        plan: &Arc<SecondLevelPlan>,
        key: &entry::Key,
        value: &[u8],
        seconds: u32,
    ) -> bool {
        let seconds = Some(seconds).filter(|_| plan.expires);
        self.of(plan).is_some_and(|known| known.server.store(key, value, seconds))
    }
}

/// What connections of several workers have in common, by server.
#[derive(Default)]
pub(crate) struct AllHealth(std::sync::Mutex<Vec<(RedisPlace, std::sync::Weak<Health>)>>);

impl AllHealth {
    pub(crate) fn of(&self, place: &RedisPlace) -> Arc<Health> {
        let mut all = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.retain(|(_, health)| health.strong_count() > 0);
        let known = all.iter().find(|(other, _)| other == place).and_then(|(_, health)| health.upgrade());
        known.unwrap_or_else(|| {
            let health = Arc::<Health>::default();
            all.push((place.clone(), Arc::downgrade(&health)));
            health
        })
    }
}
