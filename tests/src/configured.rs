//! A configuration with its zones, as a server compiles it.

use std::sync::Arc;

use config::Plans;
use config::zones::Outcome;
use diagnostic::Diagnostic;
use engine::Caches;
use environment::Environment;
use settings::Loaded;
use zones::LoadedZones;

/// Compiles a configuration and loads its zones.
///
/// # Errors
///
/// All mistakes in it.
pub fn compile(
    loaded: &Loaded,
    environment: &dyn Environment,
) -> Result<(Plans, LoadedZones), Vec<Diagnostic>> {
    let prepared = config::prepare(loaded, &[], None, environment, None);
    let wanted = prepared.caches().iter().map(|plan| (plan.name.as_str(), plan.octets_max));
    let caches = Caches::new(prepared.key()).adopt(wanted);
    let (zones, found) = LoadedZones::load(prepared.zones(), prepared.key(), None, environment);
    let outcome = Outcome {
        zones: zones.served().map(Arc::clone),
        sets: zones.sets().clone(),
        findings: found.findings,
        diagnostics: found.diagnostics,
    };
    Ok((prepared.finish(caches, outcome)?, zones))
}
