//! A session without figures: every server starts and answers once in every way it is set up.
//!
//! Never times anything, so servers run beside each other and scenarios that differ only in their
//! load run once. What our own server answers in each of the others is compared as well; others'
//! servers do not change between two commits, only how we set them up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::bench::Bench;
use super::stubs::Stubs;
use super::{Findings, Plans, Remark, inability};
use crate::pair::Pair;
use crate::report::model::OURS;
use crate::scenario::{Questions, Scenario};

/// Servers that are up at a time, per core.
const SERVERS_PER_CORE: usize = 2;

/// Starts every server for every scenario that sets it up in another way, and ours for every one;
/// `progress` gets a line per step.
pub(super) fn run(
    plans: &Plans,
    scenarios: &[&'static Scenario],
    stubs: &Stubs<'_>,
    pair: Option<&Pair>,
    findings: &mut Findings,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut settings = BTreeSet::new();
    for scenario in scenarios {
        if let Some(other) = seen.get(&shape(scenario)) {
            progress(&format!("{}: answers as {other} does", scenario.name));
            continue;
        }
        seen.insert(shape(scenario), scenario.name);
        progress(&format!("{}: {}", scenario.name, scenario.about));
        let bench = Bench::new(plans, scenario, stubs, pair)?;
        let is_new = settings.insert(scenario.setting);
        for (at, outcome) in outcomes(plans, (scenario, is_new), &bench, pair) {
            let server = plans.servers[at].0.name.clone();
            let remark = |text| Remark { scenario: scenario.name, server: server.clone(), text };
            match outcome {
                Outcome::Unable(reason) => findings.remarks.push(remark(format!("not run: {reason}"))),
                Outcome::Right(remarks) => {
                    progress(&format!("  {server:14} answers right"));
                    findings.remarks.extend(remarks.into_iter().map(remark));
                }
                Outcome::Fault(fault) => {
                    progress(&format!("  {server:14} {fault}"));
                    findings.failures.push(remark(fault));
                }
            }
        }
        if !scenario.upstream_is.is_empty() {
            stubs.restore()?;
        }
    }
    Ok(())
}

/// How a server did.
enum Outcome {
    /// It cannot take part, and why.
    Unable(String),
    /// It answers right, with oddities.
    Right(Vec<String>),
    /// It does not.
    Fault(String),
}

/// Tries all servers if they are set up in a new way and ours otherwise, some of them beside each
/// other; returns the outcomes in the order of the servers.
fn outcomes(
    plans: &Plans,
    (scenario, is_new): (&Scenario, bool),
    bench: &Bench<'_>,
    pair: Option<&Pair>,
) -> Vec<(usize, Outcome)> {
    // A pair has one interface for servers, and there is one upstream to be away.
    let beside = if pair.is_some() || scenario.disturbs_stubs() {
        1
    } else {
        SERVERS_PER_CORE * plans.server_cores.len()
    };
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(plans.servers.len()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((rival, program)) = plans.servers.get(at) else { break };
            if !rival.is_for(scenario.name) || !is_new && rival.name != OURS {
                continue;
            }
            let outcome = match inability(rival, scenario) {
                Some(reason) => Outcome::Unable(reason.to_owned()),
                None => match bench.judge(rival, program) {
                    Ok(judgement) => Outcome::Right(judgement.remarks),
                    Err(fault) => Outcome::Fault(fault),
                },
            };
            // A poisoned lock means that another thread panicked, and that ends the scope anyway.
            if let Ok(mut done) = done.lock() {
                done.push((at, outcome));
            }
        }
    };
    if beside == 1 {
        // On this thread: a stub that is started again ends with the thread that does it.
        work();
    } else {
        thread::scope(|scope| {
            for _ in 0..beside {
                scope.spawn(work);
            }
        });
    }
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    done
}

/// Describes what decides about the answers of a scenario: not how much is asked at a time, nor
/// what goes wrong.
fn shape(scenario: &Scenario) -> String {
    let Scenario { setting, questions, transport, extras, rules, maker, shares_cores, .. } = scenario;
    let (reloads, changes_rules) = (scenario.reloads(), scenario.changes_rules());
    let work = maker.is_of_zones().then_some(maker);
    let (has_quota, disturbs_stubs) = (scenario.quota.is_some(), scenario.disturbs_stubs());
    // How many names of an internet are asked is load, too.
    let questions = match questions {
        Questions::Internet(asked) => format!("{:?} {}", asked.internet, asked.popular.is_some()),
        other => format!("{other:?}"),
    };
    format!(
        "{setting} {questions} {transport:?} {extras:?} {rules:?} {reloads} {changes_rules} {work:?} \
         {shares_cores} {has_quota} {disturbs_stubs}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::SCENARIOS;

    #[test]
    fn scenarios_that_differ_in_their_load_alone_have_one_shape() {
        let of = |name: &str| SCENARIOS.iter().find(|scenario| scenario.name == name).map(shape);
        assert!(of("latency-local-1").is_some());
        assert_eq!(of("latency-local-1"), of("local"));
        assert_ne!(of("local-tcp"), of("local"));
        assert_ne!(of("cache-edns"), of("cache-warm"));
        assert_ne!(of("reload-local"), of("local"));
        assert_ne!(of("reload-1m-changed"), of("reload-1m"));
        assert_eq!(of("resolve-memory"), of("resolve-cold"));
        assert_ne!(of("resolve-signed"), of("resolve-cold"));
        assert_ne!(of("resolve-mixed"), of("resolve-cold"));
        assert_eq!(of("rate-500"), of("cache-warm"));
        assert_ne!(of("quota-20k"), of("cache-warm"));
        assert_ne!(of("seed-cache"), of("cache-warm"));
        assert_eq!(of("recovery-silent"), of("recovery-refused"));
        assert_ne!(of("recovery-refused"), of("cache-20k"));
    }
}
