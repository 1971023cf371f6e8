//! A configuration is compiled together with its zones: what it says, then what their files hold,
//! then the policies that answer from them.

use std::net::SocketAddr;
use std::sync::Arc;

use config::zones::Outcome;
use config::{Plans, Prepared};
use diagnostic::Diagnostic;
use engine::Caches;
use environment::{Environment, System};
use plan::zones::Finding;
use settings::Loaded;
use wire::Name;
use zones::{Found, LoadedZones, Planned, Planner};

use crate::caches;

/// Octets of a cache in a configuration that is only checked: nothing is ever kept in it.
const CHECKED_OCTETS_MAX: usize = 1 << 20;

/// What a server runs on.
pub struct Compiled {
    /// Everything but zones.
    pub plans: Plans,
    /// The zones of the plans.
    pub zones: LoadedZones,
}

/// What is in use, which the next configuration takes over where it is the same.
#[derive(Clone, Copy)]
pub struct Previous<'a> {
    /// Everything but zones.
    pub plans: &'a Plans,
    /// The zones of the plans.
    pub zones: &'a LoadedZones,
}

/// Compiles a configuration and loads its zones. `own` are the addresses that are listened on:
/// queries are never forwarded there.
///
/// # Errors
///
/// All mistakes, in the configuration and in files of zones.
pub fn compile(
    loaded: &Loaded,
    own: &[SocketAddr],
    previous: Option<Previous<'_>>,
    environment: &dyn Environment,
) -> Result<Compiled, Vec<Diagnostic>> {
    let prepared = config::prepare(loaded, own, previous.map(|previous| previous.plans), environment, None);
    let before = previous.map(|previous| previous.zones);
    let loaded = LoadedZones::load(prepared.zones(), prepared.key(), before, environment);
    finish(prepared, previous.map(|previous| &previous.plans.caches), loaded)
}

/// Like [`compile`], but reads nothing except the lists of one set: other sets and all zones stay
/// as they are.
///
/// # Errors
///
/// All mistakes, in the configuration and in these lists.
pub(crate) fn compile_for_set(
    loaded: &Loaded,
    own: &[SocketAddr],
    previous: Previous<'_>,
    environment: &dyn Environment,
    set: &str,
) -> Result<Compiled, Vec<Diagnostic>> {
    let prepared = config::prepare(loaded, own, Some(previous.plans), environment, Some(set));
    let loaded = previous.zones.replan(prepared.zones());
    finish(prepared, Some(&previous.plans.caches), loaded)
}

/// Finds out what is wrong with a configuration that is not going to be used; returns warnings.
///
/// # Errors
///
/// All mistakes, in the configuration and in files of zones.
pub(crate) fn check(
    loaded: &Loaded,
    environment: &dyn Environment,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let prepared = config::prepare(loaded, &[], None, environment, None);
    let (zones, found) = LoadedZones::load(prepared.zones(), prepared.key(), None, environment);
    let small = prepared.caches().iter().map(|plan| (&*plan.name, plan.octets_max.min(CHECKED_OCTETS_MAX)));
    let caches = Caches::new(prepared.key()).adopt(small);
    Ok(prepared.finish(caches, outcome(&zones, found))?.warnings.clone())
}

fn outcome(zones: &LoadedZones, found: Found) -> Outcome {
    Outcome {
        zones: zones.served().map(Arc::clone),
        sets: zones.sets().clone(),
        findings: found.findings,
        diagnostics: found.diagnostics,
    }
}

fn finish(
    prepared: Prepared<'_>,
    known: Option<&Caches>,
    (zones, found): (LoadedZones, Found),
) -> Result<Compiled, Vec<Diagnostic>> {
    let known = known.map_or_else(|| Caches::new(prepared.key()), Caches::clone);
    let caches = caches::make(prepared.caches(), &known);
    Ok(Compiled { plans: prepared.finish(caches, outcome(&zones, found))?, zones })
}

/// Plans zones that are added while the server runs, as the configuration says.
pub(crate) struct ZonePlanner(pub(crate) Arc<config::zones::Planner>);

impl ZonePlanner {
    /// Returns the planner of a configuration.
    pub(crate) fn of(plans: &Plans) -> Arc<dyn Planner> {
        Arc::new(Self(Arc::clone(&plans.planner)))
    }
}

impl Planner for ZonePlanner {
    fn plan(&self, apex: Name<'_>, said: &str) -> Result<Planned, Vec<Diagnostic>> {
        let planned = self.0.plan(apex, said, &System)?;
        Ok(Planned { plan: planned.plan, warnings: planned.warnings })
    }

    fn place(&self, apex: Name<'_>, said: &str, findings: Vec<Finding>) -> Vec<Diagnostic> {
        self.0.place(apex, said, findings, &System)
    }
}
