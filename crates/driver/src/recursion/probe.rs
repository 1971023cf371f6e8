//! Questions of jobs: each is asked by a resolver of its own, which has learned nothing, so that
//! the answer is how things stand now.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use authorities::PoolNetwork;
use plan::resolvers::ResolverPlan;
use rand::SeedableRng;
use rand::rngs::StdRng;
use resolver::{Resolution, Resolver, Waiter, Way};
use timers::Moment;
use wire::{Class, NameBuf, Question, Rtype};

use super::{Instance, Recursion, instant};

/// Octets of what one question may learn.
const OCTETS_MAX: usize = 1 << 20;
/// Questions of jobs under way at once; more get no answer.
const PROBES_MAX: usize = 16;

/// What is made of the answer's signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probing {
    /// They are checked.
    Checked,
    /// The answer is taken as it comes.
    Unchecked,
}

/// A question of a job's.
#[derive(Clone, Debug)]
pub struct Probe {
    /// How it is asked; nothing of what this resolver has learned is used.
    pub resolver: ResolverPlan,
    /// The name.
    pub qname: NameBuf,
    /// The type.
    pub qtype: Rtype,
    /// Whether the answer must be proved.
    pub probing: Probing,
    /// Hears the answer; dropped without one if there is none.
    pub answer: SyncSender<Arc<Resolution>>,
}

impl<P: PoolNetwork> Recursion<P> {
    /// Asks a question of a job's.
    pub(crate) fn probe(&mut self, probe: Probe, now: Moment) {
        let under_way = self.instances.iter().filter(|(_, instance)| instance.probing.is_some()).count();
        if under_way >= PROBES_MAX {
            return;
        }
        let Probe { resolver: mut plan, qname, qtype, probing, answer } = probe;
        // One question needs no better servers than those it begins with.
        plan.settings.priming = false;
        // What a zone's servers say now is wanted, not what of it is here.
        plan.settings.routes.retain(|route| route.way != Way::Own);
        plan.settings.reads_own_zones = false;
        plan.settings.second_level = None;
        for route in &mut plan.settings.routes {
            if let Way::Stub(stub) = &mut route.way {
                stub.primes = false;
            }
        }
        let tables = self.tables.blank(OCTETS_MAX, self.worker);
        let mut resolver = Resolver::new(plan.settings.clone(), tables, StdRng::from_rng(&mut self.rng));
        resolver.set_time(self.unix_seconds, instant(now));
        let question = Question { qname: qname.as_name(), qtype, qclass: Class::IN };
        match probing {
            Probing::Checked => resolver.want(&question, Waiter(0), instant(now)),
            Probing::Unchecked => resolver.want_unchecked(&question, Waiter(0), instant(now)),
        }
        let instance =
            Instance { wanted: 1, is_retired: true, probing: Some(answer), ..Instance::new(plan, resolver) };
        let at = self.instances.insert(instance) as u32;
        self.carry_out(at, now);
        self.take_unanswered(now);
    }
}
