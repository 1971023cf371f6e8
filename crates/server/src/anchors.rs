//! Trust anchors: what the job that follows them needs of resolvers.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, SystemTime};

use cache::Security;
use cache::rrsets::RrsetFlush;
use driver::{Probe, Probing, Resolution, ResolverTables};
use jobs::anchors::{Finding, KeySet, Resolvers, Trusted, WallClock};
use plan::resolvers::ResolverPlan;
use tokio::sync::mpsc;
use tracing::debug;
use wire::{NameBuf, Rcode, Rtype, Section};

use crate::for_jobs::Orders;

/// Questions of jobs that no worker has taken yet.
pub(crate) const PROBES_MAX: usize = 4;
/// How long a worker has for one, beyond what the resolver may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Has a worker ask, and tells all of them what to trust.
pub(crate) struct Prober {
    /// To the worker that asks.
    pub(crate) probes: mpsc::Sender<Probe>,
    pub(crate) tables: Arc<ResolverTables>,
    /// Forgets answers for clients.
    pub(crate) orders: Arc<Orders>,
}

impl Prober {
    /// Asks a question and waits for the answer.
    pub(crate) fn ask(
        &self,
        resolver: &ResolverPlan,
        question: (NameBuf, Rtype),
        probing: Probing,
    ) -> Result<Arc<Resolution>, String> {
        let (answer, heard) = sync_channel(1);
        let (qname, qtype) = question;
        let patience = Duration::from_millis(resolver.settings.limits.question_ms.into()) + PATIENCE;
        let probe = Probe { resolver: resolver.clone(), qname, qtype, probing, answer };
        self.probes.try_send(probe).map_err(|_| "no worker takes the question".to_owned())?;
        let resolution = heard.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => "no answer in time".to_owned(),
            RecvTimeoutError::Disconnected => "no worker has asked the question".to_owned(),
        })?;
        match &resolution.failure {
            Some(failure) => Err(failure.to_string()),
            None => Ok(resolution),
        }
    }
}

impl Resolvers for Prober {
    fn keys(&self, resolver: &ResolverPlan, zone: &NameBuf) -> Result<KeySet, String> {
        let resolution = self.ask(resolver, (*zone, Rtype::DNSKEY), Probing::Unchecked)?;
        let mut set = KeySet::default();
        let is_own = |record: &wire::Record<'_>| {
            record.section == Section::Answer
                && record.owner.expand().is_ok_and(|owner| owner.as_name() == zone.as_name())
        };
        for record in resolution.records().filter(is_own) {
            match record.rtype {
                Rtype::DNSKEY => set.keys.push(record.rdata.into()),
                Rtype::RRSIG if record.rdata.starts_with(&Rtype::DNSKEY.0.to_be_bytes()) => {
                    set.signatures.push(record.rdata.into());
                }
                _ => {}
            }
        }
        match (resolution.rcode, set.keys.is_empty()) {
            (Rcode::NOERROR, false) => Ok(set),
            (Rcode::NOERROR, true) => Err("the zone has no DNSKEY".to_owned()),
            (rcode, _) => Err(format!("the answer is {rcode}")),
        }
    }

    fn test(&self, resolver: &ResolverPlan, zone: &NameBuf) -> Finding {
        match self.ask(resolver, (*zone, Rtype::SOA), Probing::Checked) {
            Ok(resolution) => match resolution.security {
                Security::Secure => Finding::Validates,
                Security::Insecure | Security::Indeterminate => Finding::Unsigned,
                Security::Unchecked | Security::Bogus => Finding::Fails("it is bogus".to_owned()),
            },
            Err(why) => Finding::Fails(why),
        }
    }

    fn signal(&self, resolver: &ResolverPlan, name: &NameBuf) {
        // There is no such name; that is not why it is asked for.
        if let Err(why) = self.ask(resolver, (*name, Rtype::NULL), Probing::Unchecked) {
            debug!(resolver = resolver.name, %name, why, "trust anchors are not signalled");
        }
    }

    fn forget(&self, resolver: &ResolverPlan, zone: &NameBuf) {
        for learned in self.tables.learned() {
            if learned.name == resolver.name {
                learned.rrsets.flush(RrsetFlush::Suffix(zone.as_name()));
                learned.proofs.flush(zone.as_name());
            }
        }
        self.orders.forget(zone);
    }

    fn trust(&self, all: Vec<Trusted>) {
        let trusted =
            |Trusted { resolver, anchors, negative }| (resolver, driver::Trusted { anchors, negative });
        self.tables.trust(all.into_iter().map(trusted).collect());
    }
}

/// Returns the clock on the wall.
pub(crate) fn wall_clock() -> WallClock {
    Arc::new(|| SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}
