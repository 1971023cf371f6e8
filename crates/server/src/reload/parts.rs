//! The parts of a server that a configuration changes.

use std::cell::Cell;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use acme::Certificates;
use authority::own_lists::OwnLists;
use diagnostic::{Diagnostic, FileId, Problem, diagnostics};
use driver::ResolverTables;
use engine::SnapshotCell;
use jobs::Jobs;
use jobs::alias::Follower;
use jobs::anchors::Anchors;
use jobs::health::Checker;
use jobs::signing::Signing;
use listen::{DnscryptCell, TlsCell};
use plan::resolvers;
use plan::upstreams::Plan;
use settings::Loaded;
use tokio::sync::watch;
use tracing::{info, warn};
use zones::ZoneManager;

use super::{Candidate, Cause, NotCarriedOut, Part, Prepared, Revision};
use crate::caches::Dumps;
use crate::compile::ZonePlanner;
use crate::for_jobs::Orders;
use crate::log_level::{self, LogLevelHandle};
use crate::signing::alias_plan;
use crate::worker::Upstreams;
use devices::Devices;

/// How long the workers may take to adopt new upstreams before the policy that uses them is
/// published anyway.
const ADOPTION_PATIENCE: Duration = Duration::from_secs(2);

/// Everything that a configuration changes.
pub(crate) struct Components {
    pub(crate) cell: Arc<SnapshotCell>,
    /// Looks after zones.
    pub(crate) manager: ZoneManager,
    /// How listeners speak TLS.
    pub(crate) tls: Arc<TlsCell>,
    /// Who the resolver is over DNSCrypt.
    pub(crate) dnscrypt: Arc<DnscryptCell>,
    /// Whom the workers ask.
    pub(crate) upstreams: watch::Sender<Upstreams>,
    /// What resolvers have learned.
    pub(crate) resolver_tables: Arc<ResolverTables>,
    /// Orders certificates.
    pub(crate) certificates: Certificates,
    pub(crate) jobs: Jobs,
    /// Lists of the operator that are kept beside the settings.
    pub(crate) own_lists: Arc<OwnLists>,
    /// What the jobs know of lists and sets, and who carries out what they want.
    pub(crate) orders: Arc<Orders>,
    /// Signs zones.
    pub(crate) signing: Arc<Signing>,
    /// Follows the trust anchors of resolvers.
    pub(crate) anchors: Anchors,
    /// Follows the targets of ALIAS records.
    pub(crate) follower: Follower,
    /// Checks the health of record targets.
    pub(crate) checker: Checker,
    pub(crate) dumps: Dumps,
    pub(crate) log_level: LogLevelHandle,
    /// Interfaces that are served past the kernel's network stack.
    pub(crate) devices: Devices,
}

/// What parts prepare from.
pub(crate) struct Input<'a> {
    components: &'a Components,
    next: &'a Revision,
    /// `None` at the start.
    previous: Option<&'a Revision>,
    cause: Cause,
    signing: Cell<Option<jobs::signing::Prepared>>,
    /// Who changed the configuration, if somebody did.
    by: Option<&'a str>,
}

/// Brings a candidate into use; returns what is in use then.
///
/// # Errors
///
/// Everything that is in the way; then nothing has changed.
pub(crate) fn bring_into_use(
    components: &Components,
    candidate: Candidate,
    previous: Option<&Revision>,
) -> Result<Revision, Vec<Diagnostic>> {
    let kept = bring_into_use_kept::<Infallible>(components, candidate, previous, || Ok(()));
    kept.map_err(|why| match why {
        NotCarriedOut::Found(found) => found,
        NotCarriedOut::NotKept(never) => match never {},
    })
}

/// Like [`bring_into_use`], with what must be on the disk before it counts.
///
/// # Errors
///
/// Everything that is in the way, or the error of `keep`; then nothing has changed.
pub(crate) fn bring_into_use_kept<E>(
    components: &Components,
    candidate: Candidate,
    previous: Option<&Revision>,
    keep: impl FnOnce() -> Result<(), E>,
) -> Result<Revision, NotCarriedOut<E>> {
    let Candidate { revision, cause, signing, by } = candidate;
    let (signing, by) = (Cell::new(signing), by.as_deref());
    let input = Input { components, next: &revision, previous, cause, signing, by };
    super::carry_out(&parts(), &input, keep)?;
    Ok(revision)
}

/// Returns the parts, in the order in which they commit. Each may need what stands above it:
///
/// - A query names its events to jobs by number, so jobs know the new ones before the first query
///   that goes through the new policy.
/// - The policy names pools, so workers know the new pools beside the old ones before the policy
///   comes into use, and lose the old ones after it.
/// - A resolver validates from its first question on, so what it may trust comes before it does.
/// - What is known to be down is left out from the first answer on, so checks come before zones.
/// - The manager of zones has them signed, so the signer knows which those are.
/// - The policy answers from the zones that are served, so these are there before the first query
///   that goes through it.
/// - What costs nothing but a wrong line in a log if it is late comes last.
fn parts<'a>() -> [Part<Input<'a>>; 14] {
    [
        Part { name: "jobs", prepare: jobs },
        Part { name: "trust anchors", prepare: anchors },
        Part { name: "upstreams, beside the old ones", prepare: upstreams_of_both },
        Part { name: "health checks", prepare: checks },
        Part { name: "signing", prepare: signing },
        Part { name: "zones", prepare: zones },
        Part { name: "policy", prepare: policy },
        Part { name: "TLS", prepare: tls },
        Part { name: "DNSCrypt", prepare: dnscrypt },
        Part { name: "upstreams", prepare: upstreams },
        Part { name: "cache dumps", prepare: dumps },
        Part { name: "log and interfaces", prepare: log_and_devices },
        Part { name: "ALIAS", prepare: alias },
        Part { name: "certificates", prepare: certificates },
    ]
}

/// Returns a mistake of a configuration that has no place in its text.
fn mistake(loaded: &Loaded, message: String) -> Vec<Diagnostic> {
    diagnostics(vec![Problem::of_file(FileId(0), message)], &loaded.sources)
}

fn jobs<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    let Input { components, next, .. } = input;
    let prepared = components.jobs.prepare(&next.plans.jobs).map_err(|failed| {
        failed.into_iter().flat_map(|failed| mistake(&next.loaded, failed.to_string())).collect::<Vec<_>>()
    })?;
    Ok(Box::new(move || components.orders.adopt(&components.jobs, prepared, &next.plans)))
}

fn upstreams_of_both<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    let Some(previous) = input.previous else { return Ok(Box::new(move || ())) };
    let (next, previous) = (&input.next.plans, &previous.plans);
    let plan = Arc::new(both(&next.fetch, &previous.fetch));
    let resolvers = Arc::new(both_resolvers(&next.resolvers, &previous.resolvers));
    Ok(Box::new(move || adopt_upstreams(input, plan, resolvers)))
}

fn upstreams<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    let plans = &input.next.plans;
    Ok(Box::new(move || adopt_upstreams(input, Arc::clone(&plans.fetch), Arc::clone(&plans.resolvers))))
}

fn anchors<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    Ok(Box::new(move || input.components.anchors.adopt(&input.next.plans.anchors)))
}

fn checks<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    let Input { components, next, .. } = input;
    let watched = &next.zones.checks().watched;
    components.checker.prepare(watched).map_err(|error| {
        mistake(&next.loaded, format!("health checks cannot run: no thread for them: {error}"))
    })?;
    Ok(Box::new(move || components.checker.adopt(watched)))
}

fn signing<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    let Input { components, next, .. } = input;
    let Some(prepared) = input.signing.take() else { return Ok(Box::new(move || ())) };
    if input.previous.is_some() {
        let started = components.signing.start(Some(&prepared), Arc::clone(&components.orders) as _);
        started.map_err(|error| {
            mistake(&next.loaded, format!("zones cannot be signed: no thread for it: {error}"))
        })?;
    }
    Ok(Box::new(move || {
        components.signing.pool().set_rate(next.loaded.settings.limits.signatures_per_second);
        components.signing.adopt(prepared);
    }))
}

fn policy<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    let Input { components, next, .. } = input;
    // The workers began with the first one.
    let is_first = input.previous.is_none();
    Ok(Box::new(move || {
        for (name, set) in next.plans.sets.fresh() {
            info!(
                set = name,
                rules = set.set.rules,
                octets = set.set.octets,
                took_ms = set.took.as_millis() as u64,
                "set in use"
            );
        }
        if !is_first {
            components.cell.publish(Arc::clone(&next.plans.snapshot));
        }
    }))
}

fn zones<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    let Input { components, next, .. } = input;
    let planner = ZonePlanner::of(&next.plans);
    Ok(Box::new(move || components.manager.adopt(&next.zones, &planner, input.by)))
}

fn tls<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    let Input { components, next, .. } = input;
    let prepared = components.tls.prepare(next.plans.tls.as_ref()).map_err(|error| {
        mistake(&next.loaded, format!("the TLS library refuses the certificates: {error}"))
    })?;
    Ok(Box::new(move || components.tls.publish(prepared)))
}

fn dnscrypt<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    let Input { components, next, .. } = input;
    let prepared = components.dnscrypt.prepare(next.plans.dnscrypt.as_ref());
    Ok(Box::new(move || components.dnscrypt.publish(prepared)))
}

fn dumps<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    Ok(Box::new(move || input.components.dumps.adopt(&input.next.plans)))
}

fn log_and_devices<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    let Input { components, next, .. } = input;
    // What an operator has changed meanwhile lasts until a reload.
    if input.cause != Cause::Reload {
        return Ok(Box::new(move || ()));
    }
    let settings = &next.loaded.settings;
    Ok(Box::new(move || {
        components.log_level.set(log_level::filter(settings.log_level));
        components.devices.ban(&settings.deny);
        components.devices.check_routes(settings.startup.xdp.check_routes);
    }))
}

fn alias<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    Ok(Box::new(move || input.components.follower.adopt(alias_plan(&input.next.loaded.settings))))
}

fn certificates<'i>(input: &'i Input<'_>) -> Prepared<'i> {
    Ok(Box::new(move || input.components.certificates.adopt(&input.next.plans.ordered)))
}

/// Gives the workers a plan and waits until they have it.
fn adopt_upstreams(input: &Input<'_>, plan: Arc<Plan>, resolvers: Arc<resolvers::Plan>) {
    let upstreams = &input.components.upstreams;
    // Those that have not begun yet find it when they do.
    let workers = upstreams.receiver_count();
    let (adopted, heard) = sync_channel(workers);
    let relay = Arc::clone(&input.next.plans.relay);
    upstreams.send_replace(Upstreams { plan, resolvers, relay, adopted });
    let deadline = Instant::now() + ADOPTION_PATIENCE;
    for _ in 0..workers {
        let left = deadline.saturating_duration_since(Instant::now());
        if heard.recv_timeout(left).is_err() {
            warn!("a worker is slow to adopt the new upstreams");
            return;
        }
    }
}

/// Returns a plan with the resolvers of `new` and those of `old` that are gone.
fn both_resolvers(new: &resolvers::Plan, old: &resolvers::Plan) -> resolvers::Plan {
    let gone = old.resolvers.iter().filter(|old| new.find(old.id).is_none()).cloned();
    resolvers::Plan { resolvers: new.resolvers.iter().cloned().chain(gone).collect(), ..new.clone() }
}

/// Returns a plan with the groups of `new` and those of `old` that are gone.
fn both(new: &Plan, old: &Plan) -> Plan {
    let mut both = new.clone();
    both.pools.extend(old.pools.iter().filter(|old| new.pools.iter().all(|new| new.id != old.id)).cloned());
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_part_needs_commits_before_it() {
        let names = parts().map(|part| part.name);
        let at = |name: &str| names.iter().position(|other| *other == name).expect("a part");
        for (first, then) in [
            ("jobs", "policy"),
            ("trust anchors", "upstreams, beside the old ones"),
            ("upstreams, beside the old ones", "policy"),
            ("health checks", "zones"),
            ("signing", "zones"),
            ("zones", "policy"),
            ("policy", "upstreams"),
        ] {
            assert!(at(first) < at(then), "{first} before {then}");
        }
    }
}
